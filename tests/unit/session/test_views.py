"""A view tells what the session told when it was taken, whatever the session does meanwhile."""

import threading

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InternalError, InvalidQueryError, TooLargeError
from onlineic.ledger import MemoryLedger
from onlineic.ledger.records import FrozenLedger
from onlineic.noise import SimulatedNoise
from support.events import FOR_EVER

DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"], region=["n", "e", "s", "w"])
COUNTS = np.random.default_rng(4).multinomial(30_000, np.random.default_rng(5).dirichlet(np.full(160, 0.2)))
TABLE = COUNTS.reshape(DOMAIN.shape)
ASKED = [ic.where(age=ic.between(20, 20 + age), sex=sex) for age in range(1, 19) for sex in "FM"]
OTHERS = [
    ic.where(),
    ic.marginal("sex", "region"),
    ic.where(region=ic.one_of("n", "s")),
    {"age": [22, 33]},
    "SELECT AVG(age) FROM t",
    "SELECT region, COUNT(*) FROM t GROUP BY region",
    lambda session: session.median("age"),
]


@pytest.fixture(params=[{}, {"sparse": "exponential"}, {"purchases": ic.TestsOnly()}], ids=str)
def session(request):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    budget = ic.Budget(1.0, 0.0 if request.param.get("sparse") else 1e-6)
    with ic.OnlineIC(
        ic.PrivateData(TABLE, DOMAIN), budget, noise=SimulatedNoise(7), **request.param
    ) as opened:
        yield opened


def told(view, questions):
    said = [repr(view.explain(question)) for question in questions]
    return said, [one.to_dict() for _, one in view.released()]


def test_a_view_explains_and_repeats_as_the_session_did(session):
    for asked in ([], ASKED[:5], ASKED[5:9]):
        answers = session.answer_many(asked)
        view = session.view()
        assert [repr(session.explain(one)) for one in [*ASKED, *OTHERS]] == told(view, [*ASKED, *OTHERS])[0]
        assert [one.to_dict() for _, one in session.released()] == told(view, [])[1]
        for question, answer in zip(asked, answers, strict=True):
            known = view.known(question)
            again = session.answer(question)
            assert again.to_dict() == known.answer.to_dict()
            assert answer.value == known.answer.value
            assert session.paid_by(None).outcomes([question])[0].at == known.at


def test_what_is_asked_later_does_not_show(session):
    session.answer_many(ASKED[:5])
    view = session.view()
    before = told(view, [*ASKED, *OTHERS])
    session.answer_many(ASKED)
    session.answer(ic.marginal("sex", "region"))

    assert before == told(view, [*ASKED, *OTHERS])
    assert None is view.known(ASKED[-1])
    assert view.known(ic.where()).to_dict() == session.paid_by(None).outcomes([ic.where()])[0].to_dict()
    with pytest.raises(InvalidQueryError):
        view.known({"sex": "x"})
    with pytest.raises(TooLargeError):
        view.explain("SELECT region, AVG(age) FROM t GROUP BY region", most=5)


def test_a_view_is_read_while_the_session_learns(session):
    held, free = threading.Event(), threading.Event()

    session.answer_many(ASKED[:3])
    view = session.view()
    before = told(view, ASKED)

    def waits():
        held.set()
        free.wait()

    thread = threading.Thread(target=session.paid_by(None)._run, args=(waits,))
    thread.start()
    try:
        assert held.wait(FOR_EVER)
        assert before == told(view, ASKED)  # and not behind the session's door
    finally:
        free.set()
        thread.join()


def test_a_ledger_of_one_moment_takes_nothing():
    past = FrozenLedger(MemoryLedger())
    for act in (past.forfeit, lambda: past.commit([]), lambda: past.claim(None, past.account)):
        with pytest.raises(InternalError):
            act()
    assert (0, ()) == (len(past), past.records())
