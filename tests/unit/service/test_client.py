"""The client: what a session has it has too, or refuses by name; what was sent twice is asked once."""

import contextlib
import http.client
import math
import threading

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidQueryError, TooLargeError
from onlineic.noise import SimulatedNoise
from onlineic.queries import Within
from onlineic.service import Remote, Users
from onlineic.service.client import NOT_SERVED, NotServedError
from onlineic.session import Quota
from support.events import FOR_EVER
from support.served import served, stalled

DOMAIN = ic.Domain.of(
    age=range(20, 40),
    sex=["F", "M"],
    gap=ic.optional(["=a", "'b"]),
    day=ic.dates("2024-01", "2024-06", by="month"),
)
COUNTS = np.random.default_rng(4).multinomial(
    30_000, np.random.default_rng(5).dirichlet(np.full(20 * 2 * 3 * 6, 0.2))
)
TABLE = COUNTS.reshape(DOMAIN.shape)


def opened(seed, **more):
    noise = SimulatedNoise(seed)
    return ic.OnlineIC(ic.PrivateData(TABLE, DOMAIN), ic.Budget(1.0, 1e-6), noise=noise, **more)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A session at hand, and a served one of the same seed."""
    folder = tmp_path_factory.mktemp("client")
    with (
        served(opened(7), folder, names=["ann"]) as server,
        ic.connect(server.url, server.tokens["ann"]) as far,
    ):
        yield opened(7), far


ASKED = [
    [ic.where(sex="F"), {"age": [22, 30]}, "age > 30"],
    lambda session: session.mean("age", ic.where(sex="F")),
    lambda session: session.median("age"),
    lambda session: session.group_by("sex", aggregate="mean", of="age"),
    lambda session: session.sum("age"),
    lambda session: session.answer(ic.where(sex="M")),
    ic.marginal("sex", "gap"),
    "SELECT sex, COUNT(*), AVG(age) FROM t GROUP BY sex",
]
WISHED = [
    *ASKED,
    lambda session: session.mean("age", ic.where(sex="F"), within=0.5),
    lambda session: session.group_by("sex", within=ic.expected(200)),
]


def said(found):
    """What an explanation says, but which part of one's own it is: a session at hand knows none."""
    return {name: one for name, one in found.to_dict().items() if name != "of_part"}


@pytest.mark.parametrize("place", range(len(ASKED)))
def test_every_kind_of_question_is_explained_as_at_hand(both, place):
    near, far = both
    assert said(near.explain(ASKED[place])) == said(far.explain(ASKED[place]))


@pytest.mark.parametrize("place", range(len(WISHED)))
def test_what_a_wish_costs_is_told_as_at_hand(both, place):
    near, far = both
    view = near.view()
    own = view.explain(WISHED[place], quota=Quota("ann", view.pool), within=Within(0.03))

    assert own.to_dict() == {**far.explain(WISHED[place], within=0.03).to_dict(), "asked": own.asked}


def test_a_function_over_too_few_records_has_an_infinite_bound_there_too(both):
    near, far = both

    def ask(session):
        return session.mean("age", {"age": 20, "sex": "F", "gap": "=a", "day": "2024-01"})

    assert said(near.explain(ask)) == said(far.explain(ask))
    assert far.explain(ask).bound_derived in (math.inf, near.explain(ask).bound_derived)


def test_synthetic_rows_are_those_of_the_session_and_labels_stay_what_they_are(both):
    near, far = both
    near.answer({"sex": "F"})
    far.answer({"sex": "F"})
    here, there = near.synthetic(300, 5), far.synthetic(300, 5)

    assert here.to_dict() == there.to_dict()
    assert {None, "=a", "'b"} == {*there.columns["gap"]}
    assert (near.statistics().private, 5, 300) == (there.private, there.seed, len(there))
    with pytest.raises(TooLargeError):
        far.synthetic(10_001)


def test_the_family_and_the_unit_are_told_too(both):
    near, far = both
    near.answer({"sex": "F"})
    far.answer({"sex": "F"})

    assert near.statistics().family == far.statistics().family
    assert near.unit == far.unit
    assert (near.domain, near.n, near.n_bound, near.beta) == (far.domain, far.n, far.n_bound, far.beta)


def test_what_a_served_session_has_not_is_refused_by_name(both):
    _, far = both
    missing = {name for name in dir(ic.OnlineIC) if name[0] != "_"} - set(dir(Remote))

    assert missing == set(NOT_SERVED)
    for name in missing:
        assert not hasattr(far, name)
        with pytest.raises(NotServedError, match=f"{name} must be asked of a session at hand"):
            getattr(far, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = far.nothing
    with pytest.raises(InvalidQueryError, match="must be made of conditions"):
        far.answer(np.ones(DOMAIN.shape))


@contextlib.contextmanager
def losing(cuts):
    """The first replies to what is sent arrive, and are lost; give the headers of what was sent."""
    sent, request, reply = [], http.client.HTTPConnection.request, http.client.HTTPConnection.getresponse

    def noted(line, method, path, body=None, headers=None):
        sent.append((method, headers or {}))
        request(line, method, path, body, headers or {})

    def lost(line):
        found = reply(line)
        if sent[-1][0] == "POST" and sum(method == "POST" for method, _ in sent) <= cuts:
            found.read()
            raise ConnectionResetError
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http.client.HTTPConnection, "request", noted)
        patch.setattr(http.client.HTTPConnection, "getresponse", lost)
        yield sent


def test_a_reply_that_was_lost_is_told_again_and_nothing_is_asked_twice(tmp_path):
    """Its asker has no part: the answer stands in no record, and would be counted each time."""
    with (
        served(opened(3), tmp_path, names=["eve"], share=0) as server,
        ic.connect(server.url, server.tokens["eve"]) as far,
    ):
        with losing(2) as sent:
            answer = far.answer({"age": [21, 33]})
        asked = far.statistics().asked

    assert "untested" == answer.status
    assert ["POST"] * 3 == [method for method, _ in sent]
    assert 1 == len({headers["Idempotency-Key"] for _, headers in sent})
    assert 1 == asked


def test_who_waits_is_told_how_far_it_is(tmp_path, monkeypatch):
    held, free = stalled(monkeypatch)
    told = []

    def heard(stage, done, total):
        told.append((stage, done, total))
        if stage == "turn":
            free.set()

    with served(opened(3), tmp_path) as server, ic.connect(server.url, server.tokens["bob"]) as bob:
        thread = threading.Thread(target=bob.summary)
        thread.start()
        assert held.wait(FOR_EVER)
        monkeypatch.setattr("onlineic.service.client.LOOK", 0.05)
        with ic.connect(server.url, server.tokens["ann"], progress=heard) as ann:
            ann.answer_many([{"age": age} for age in range(20, 25)])
        thread.join()

    assert ("turn", 0, 5) in told


def test_who_asks_too_much_is_told_how_long_to_wait(tmp_path, monkeypatch):
    now, told = [0.0], []
    monkeypatch.setattr(
        "onlineic.service.client.time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    with served(opened(3), tmp_path, clock=lambda: now[0]) as server:
        with contextlib.closing(Users(server.users)) as users:
            users.quota("ann", per_minute=2)
        with ic.connect(server.url, server.tokens["ann"], progress=lambda *step: told.append(step)) as far:
            for age in range(20, 24):
                far.answer({"age": age})

    assert ("pause", 0, 30) in told
    assert 60.0 <= now[0] < 70.0


def test_a_callback_that_stops_the_wait_closes_the_line(tmp_path, monkeypatch):
    class StopError(Exception):
        pass

    def stop(stage, done, total):
        if stage == "pause":
            raise StopError

    with (
        served(opened(3), tmp_path, per_minute=1, clock=lambda: 0.0) as server,
        ic.connect(server.url, server.tokens["ann"], progress=stop) as far,
    ):
        far.answer({"age": 20})
        with pytest.raises(StopError):
            far.answer({"age": 21})
        assert 1 == far.statistics().asked
