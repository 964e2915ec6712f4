"""A sealed session stays sealed and says what is true; nothing that a hypothesis brings along meets a count.

A test that was interrupted behind the read leaves a threshold that was drawn and not recorded: whatever asks
the session then, and from wherever, no second one may be drawn, which nobody would have paid.
"""

import logging

import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError, LedgerLockedError, SessionSealedError, SessionStateError
from onlineic.hypothesis import block_guesses, grid_guesses
from onlineic.ledger import BoughtTables, Easy, Forfeited, Hard, MemoryLedger
from onlineic.noise import SimulatedNoise, SystemNoise
from onlineic.session import core, read_guard
from support.sessions import Still, all_spent

DOMAIN = ic.Domain.of(a=4, b=2)
COUNTS = np.array([[90_000, 0], [2500, 2500], [1000, 1500], [1500, 1000]])
PURE, GUMBEL = ic.Budget(1.0), ic.Budget(1.0, 1e-6)
BOXES = [ic.where(a=a, b=b) for a in range(4) for b in range(2)]
CURATOR = {core.__file__, read_guard.__file__}


@pytest.fixture(autouse=True)
def quiet():
    logging.getLogger("onlineic").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("onlineic").setLevel(logging.NOTSET)


# -- who asks in the middle of a test ----------------------------------------------------------------------


def test_a_call_inside_a_running_test_is_refused_and_the_outer_one_goes_on():
    """As a signal handler between the read and the record would."""
    noise, refused = SimulatedNoise(1), []
    session = ic.OnlineIC(
        PrivateData(COUNTS, DOMAIN), PURE, sparse="exponential", release="answer", noise=noise
    )
    real = SimulatedNoise.geometric

    def asking(source, scale, size):
        if not refused:
            for call in (session.statistics, lambda: session.answer(ic.where(a=1))):
                with pytest.raises(SessionStateError, match="nothing was spent") as error:
                    call()
                refused.append(error)
        return real(source, scale, size)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SimulatedNoise, "geometric", asking)
        first = session.answer(ic.where(a=0))

    assert 2 == len(refused)
    assert first.status in ("easy", "hard")
    assert not session.statistics().sealed
    assert session.answer(ic.where(a=1)).status in ("easy", "hard")


# -- a hypothesis that returns more than a number ----------------------------------------------------------


class Spy:
    """A number of the hypothesis's own class: notes all that it is ever told."""

    heard: list = []  # noqa: RUF012

    def __float__(self):
        return 0.5

    def __index__(self):
        Spy.heard.append("index")
        return 0

    def __hash__(self):
        return 1


class SpyFloat(float):
    """A float that does its own arithmetic."""

    heard = Spy.heard


class SpyArray(np.ndarray):
    """An array that does its own arithmetic."""

    def __array_ufunc__(self, ufunc, method, *inputs, **more):
        Spy.heard.append((ufunc.__name__, *(np.asarray(one).tolist() for one in inputs)))
        plain = [one.view(np.ndarray) if isinstance(one, SpyArray) else one for one in inputs]
        return getattr(ufunc, method)(*plain, **more)


def listening(name):
    """A method that notes its operands, and returns what lets the arithmetic go on with the spy in it."""

    def method(self, *others):
        Spy.heard.append((name, *others))
        return {"sub": 0, "rsub": 0, "truediv": 0.5, "int": 0}.get(name, name in ARITHMETIC and self)

    return method


BOTH_SIDES = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
]
ALONE = ["neg", "pos", "abs", "trunc", "floor", "ceil", "int"]
ARITHMETIC = {*BOTH_SIDES, *(f"r{name}" for name in BOTH_SIDES), *ALONE, "round"}
for _name in [*ARITHMETIC - {"round"}, "eq", "ne", "lt", "le", "gt", "ge"]:  # which are false
    for _kind in (Spy, SpyFloat):
        setattr(_kind, f"__{_name}__", listening(_name))
SpyFloat.__hash__ = Spy.__hash__
Spy.__round__ = SpyFloat.__round__ = listening("round")


class Spying:
    """A hypothesis whose numbers are not numbers."""

    domain = DOMAIN

    def __init__(self, one, many):
        self.one, self.many = one, many

    def supports(self, query):
        return True

    def evaluate(self, query):
        return self.one()

    def evaluate_many(self, queries):
        return self.many([self.one() for _ in queries])

    def blocks(self, partition):
        return self.many([self.one() for _ in range(partition.blocks)])


def objects(values):
    return np.array([None, *values], dtype=object)[1:]


def own_array(values):
    return np.full(len(values), 0.5).view(SpyArray)


SPIES = [
    pytest.param(Spy, objects, id="objects"),
    pytest.param(Spy, list, id="list"),
    pytest.param(Spy, tuple, id="tuple"),
    pytest.param(lambda: SpyFloat(0.5), objects, id="floats-objects"),
    pytest.param(lambda: SpyFloat(0.5), list, id="floats"),
    pytest.param(lambda: np.array(0.5).view(SpyArray), own_array, id="arrays"),
    pytest.param(lambda: np.float32(0.5), lambda values: np.full(len(values), 0.5, np.float16), id="numpy"),
]
COUNTED = {*COUNTS.ravel().tolist(), *COUNTS.sum(axis=0).tolist(), *COUNTS.sum(axis=1).tolist()} - {0}


@pytest.mark.parametrize(("one", "many"), SPIES)
@pytest.mark.parametrize("budget", [PURE, GUMBEL], ids=["pure", "gumbel"])
@pytest.mark.parametrize("release", ["answer", "partition"])
def test_what_a_hypothesis_returns_is_a_plain_number_before_the_data_are_read(one, many, budget, release):
    """One at a time, in a batch and as a cross table, easy and hard: it hears of no count."""
    data = PrivateData(COUNTS, DOMAIN)
    sparse = "gumbel" if budget.delta else "exponential"
    session = ic.OnlineIC(
        data, budget, sparse=sparse, release=release, threshold=0.3, hard_answers=6, noise=SimulatedNoise(1),
        update=Still(Spying(one, many)),
    )  # fmt: skip
    Spy.heard.clear()
    answers = [session.answer(ic.where(a=0)), session.answer(ic.where(b=0))]
    answers += session.answer_many([*BOXES[:3], ~BOXES[4], ic.where(a=ic.weights([0.5, 0.25, 1.0, 0.0]))])
    if release == "partition" or budget.delta:
        answers.append(session.answer(ic.marginal("a")))
    records = [record for record in session.transcript if isinstance(record, Easy | Hard)]
    guesses = [g for r in records for g in (r.guess if isinstance(r.guess, tuple) else (r.guess,))]

    assert set() == COUNTED & set(numbers_in(Spy.heard))
    assert {"easy", "hard"} == {answer.status for answer in answers}
    assert all(type(guess) is int for guess in guesses)
    assert all(type(answer.value) in (float, np.ndarray) for answer in answers)


def numbers_in(heard):
    for one in heard:
        if isinstance(one, (tuple, list)):
            yield from numbers_in(one)
        elif isinstance(one, (int, float, np.integer, np.floating)) and not isinstance(one, SpyFloat):
            yield int(one)
        elif isinstance(one, np.ndarray):
            yield from numbers_in(one.ravel().tolist())


@pytest.mark.parametrize(("one", "many"), SPIES)
def test_guesses_are_python_s_own_integers(one, many):
    queries = [query.bind(DOMAIN) for query in BOXES[:3]]
    hypothesis, table = Spying(one, many), ic.marginal("a").bind(DOMAIN).partition
    guesses = [
        *grid_guesses(hypothesis, queries, 1000),
        *grid_guesses(hypothesis, queries[:1], 1000),
        *block_guesses(hypothesis, table, 1000),
    ]

    assert [500] * 8 == guesses
    assert {int} == set(map(type, guesses))


class Wrong:
    def __float__(self):
        return float("nan")


@pytest.mark.parametrize(
    ("one", "many"), [(Wrong, objects), (lambda: np.inf, list), (lambda: 0.5, lambda _: [])]
)
def test_a_hypothesis_without_one_finite_number_a_query_is_refused_before_the_data_are_read(one, many):
    data = PrivateData(COUNTS, DOMAIN)
    session = ic.OnlineIC(
        data, GUMBEL, sparse="gumbel", release="answer", hard_answers=3, update=Still(Spying(one, many)),
        noise=SimulatedNoise(1),
    )  # fmt: skip
    targets = [BOXES[0].bind(DOMAIN), ic.marginal("a").bind(DOMAIN).partition]
    reserved_at_most = max(session.plan.sparse.price(target).amount for target in targets)
    for questions in (BOXES[:2], [ic.marginal("a")]):
        with pytest.raises(InvalidParameterError, match="finite numbers"):
            session.answer_many(questions)

    assert 0 == data.reads
    assert all_spent(session) <= reserved_at_most
    assert not session.statistics().sealed


# -- what a sealed session still does ----------------------------------------------------------------------


SEALABLE = {
    "pure": (PURE, {"threshold": 0.02, "hard_answers": 4}),
    "gumbel": (GUMBEL, {"threshold": 0.02, "hard_answers": 4}),
    "numbers": (PURE, {"threshold": 0.02, "hard_answers": 4, "release": "answer"}),
    "laplace": (PURE, {"threshold": 0.02, "hard_answers": 4, "sparse": "laplace"}),
    "book": (ic.Budget(10.0), None),
}


def sealed(name, monkeypatch, failure=MemoryError):
    """Return a session that was sealed by a failure behind three answers; questions, answers, and table."""
    budget, settings = SEALABLE[name]
    data, noise = PrivateData(COUNTS * 10, DOMAIN), SimulatedNoise(2)
    if settings is None:
        session = ic.OnlineIC.textbook(data, epsilon=budget.epsilon, max_queries=20, alpha=0.2, noise=noise)
    else:
        session = ic.OnlineIC(data, budget, noise=noise, max_queries=50, **settings)
    questions = [ic.where(b=1), ic.where(a=0, b=0), ic.where(a=ic.one_of(1, 2))]
    answers = [session.answer(question) for question in questions]

    def failing(*_):
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(type(session.plan.sparse), "step", failing)
        with pytest.raises(SessionSealedError if issubclass(failure, Exception) else failure):
            session.answer(ic.where(a=3))
    return session, questions, answers, data


@pytest.mark.parametrize("failure", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("name", SEALABLE)
@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")
def test_a_sealed_session_keeps_every_promise_of_its_message(name, failure, monkeypatch):
    session, questions, answers, data = sealed(name, monkeypatch, failure)
    records, reads, before = session.transcript, data.reads, session.statistics()
    with pytest.raises(SessionSealedError) as caught:
        session.answer(ic.where(a=3))
    for fresh in ([ic.where(a=1)], [ic.marginal("a", "b")], [questions[1], ic.where(a=1)]):
        if name == "numbers" and fresh[0] == ic.marginal("a", "b"):
            continue
        with pytest.raises(SessionSealedError):
            session.answer_many(fresh)
    message = str(caught.value)

    for promise in (
        "was interrupted between reading the data and its record",
        "whose charge stays spent",
        "repeats are answered",
        "hypothesis and transcript can be read",
        "open a new session",
    ):
        assert promise in message
    assert before.sealed
    assert "sealed" in repr(session)
    assert isinstance(records[-1], Forfeited)
    charges = [
        record.charge.amount for record in records if isinstance(record, Hard | Forfeited | BoughtTables)
    ]
    assert sum(charges) / session.plan.sparse.account().capacity == pytest.approx(before.spent, rel=1e-12)
    for question, answer in zip(questions, answers, strict=True):
        if name == "book" and before.hard:
            break  # which asks again under another hypothesis
        again = session.answer(question)
        assert ("repeat", answer.value, answer.error_bound) == (again.status, again.value, again.error_bound)
        opposite = session.answer(~question)
        assert ("repeat", 1.0 - answer.value) == (opposite.status, opposite.value)
    assert ("easy", 1.0, 0.0) == (
        (constant := session.answer(ic.where())).status,
        constant.value,
        constant.error_bound,
    )
    believed = session.hypothesis
    again = ic.replay(session.transcript, DOMAIN, session.plan.update, session.plan.alpha)
    assert believed.probabilities().tobytes() == again.probabilities().tobytes()
    after = session.statistics()
    assert (records, reads) == (session.transcript, data.reads)
    assert (True, before.spent, 0) == (after.sealed, after.spent, after.hard_left)
    assert after.error_bound == before.error_bound


def test_a_sealed_session_that_should_go_on_untested_does_not(monkeypatch):
    """Whether a test fails must not be told apart from what it would have said by an untested answer."""
    session, *_ = sealed("pure", monkeypatch)

    with pytest.raises(SessionSealedError):
        session.answer(ic.where(a=2))
    assert 0 == session.statistics().untested


# -- a session that was interrupted while it opened --------------------------------------------------------


def test_tables_whose_purchase_was_interrupted_after_the_record_are_neither_paid_nor_noted_twice(monkeypatch):
    """With the system's noise: the budget is entered on the table once, the tables are bought once."""
    data, kept = PrivateData(COUNTS, DOMAIN), MemoryLedger()
    real = MemoryLedger.commit

    def interrupted(self, *given):
        real(self, *given)
        raise KeyboardInterrupt

    session = ic.OnlineIC(data, PURE, ledger=kept, noise=SystemNoise())
    with monkeypatch.context() as patched:
        patched.setattr(MemoryLedger, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.answer(ic.where(a=0))
    spent = kept.spent
    with pytest.raises(LedgerLockedError):
        ic.OnlineIC(data, PURE, ledger=kept)

    assert session.answer(ic.where(a=0)).status in ("easy", "hard")
    assert spent == session.plan.first_tables.charge.amount > 0
    assert [PURE] == list(data.budgets)
    assert 1 == sum(isinstance(record, BoughtTables) for record in session.transcript)
