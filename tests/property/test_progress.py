"""Progress: what a callback is told, and that a session stopped at any of its calls can be asked again."""

import sys
import types

import numpy as np
import pytest

import onlineic as ic
import onlineic.data.release as release_module
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError, MissingExtraError, SessionSealedError, SessionStateError
from onlineic.evaluate import compare
from onlineic.ledger import BoughtTables, Forfeited, Hard, MemoryLedger, UpdateFailed
from onlineic.noise import SimulatedNoise
from onlineic.progress import advance, reporting

pytestmark = pytest.mark.usefixtures("listening")  # which are fitted by steps that tell how far they are
DOMAIN = ic.Domain.of(a=14, b=5, c=4)
COUNTS = np.random.default_rng(3).multinomial(6_000, np.random.default_rng(4).dirichlet(np.full(280, 0.2)))
ASKED = [ic.where(a=ic.between(low, low + 3), b=b, c=c) for low in range(9) for b in (0, 3) for c in (0, 2)]
SETTINGS = {
    "default": {"budget": ic.Budget(1.0, 1e-6), "hard_answers": 8, "threshold": 0.02},
    "certified": {"budget": ic.Budget(4.0, 1e-6), "certify": 0.4, "max_queries": 300},
    "numbers": {"budget": ic.Budget(4.0), "max_queries": 3},
}


class StopError(Exception):
    """What the one who waits raises."""


class Told:
    """A callback that keeps what it is told, and raises once, at call `at`."""

    def __init__(self, at=None, error=None):
        self.calls, self.at, self.error = [], at, error

    def __call__(self, stage, done, total):
        self.calls.append((stage, done, total))
        if len(self.calls) - 1 == self.at:
            raise self.error


def plain(record):
    """A record as values that can be compared."""
    if isinstance(record, BoughtTables):
        return [one.values.tolist() for one in record.measurements]
    if isinstance(record, Hard):
        return record.query.key, record.measurement.values.tolist(), record.charge
    return record


def interview(data, name, told):
    """Ask everything, again after every stop; return what came of it, and how often it was stopped."""
    settings, kept, noise = dict(SETTINGS[name]), MemoryLedger(), SimulatedNoise(7)
    budget, session, stops = settings.pop("budget"), None, 0
    while True:
        try:
            if session is None:
                session = ic.OnlineIC(data, budget, ledger=kept, noise=noise, progress=told, **settings)
            answers = session.answer_many(ASKED if name != "numbers" else ASKED[:3])
            statistics = session.statistics()
            return session, answers, statistics, stops
        except (StopError, KeyboardInterrupt):
            stops += 1


@pytest.mark.parametrize("apart", [5, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("error", [StopError(), KeyboardInterrupt()], ids=["exception", "interrupt"])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_session_that_is_stopped_at_any_call_goes_on_as_if_it_had_not_been(name, error, apart):
    """Nothing is lost, drawn twice or charged twice, no update counts as failed, and nothing is sealed.

    It is stopped at one in so many calls.
    """
    whole = Told()
    session, answers, _, stops = interview(PrivateData(COUNTS, DOMAIN), name, whole)
    expected = [plain(record) for record in session.transcript]
    stages = {stage for stage, _, _ in whole.calls}

    assert 0 == stops
    assert {"answers"} <= stages <= {"tables", "fit", "answers"}
    assert all(0 <= done <= total for _, done, total in whole.calls)
    if name == "default":
        assert {"tables", "fit", "answers"} == stages
        assert sum(isinstance(record, Hard) for record in session.transcript) >= 2
    # all but those in the middle of a fit, and some of these
    calls = [call for call in enumerate(whole.calls) if call[1][0] != "fit" or call[1][1] % call[1][2] < 2]
    places = sorted({*(place for place, _ in calls[:18]), *range(0, len(whole.calls), 97)})
    for at in places[::apart]:
        data = PrivateData(COUNTS, DOMAIN)
        again, repeated, statistics, stops = interview(data, name, Told(at, error))
        assert 1 == stops
        assert expected == [plain(record) for record in again.transcript]
        assert [answer.value for answer in answers] == [answer.value for answer in repeated]
        assert not statistics.sealed
        assert 0 == statistics.update_failures
        assert not any(isinstance(record, Forfeited | UpdateFailed) for record in again.transcript)


def test_an_exception_comes_out_as_it_was_raised():
    error = StopError("enough")
    session = ic.OnlineIC(PrivateData(COUNTS, DOMAIN), ic.Budget(1.0), progress=Told(0, error))
    with pytest.raises(StopError) as stopped:
        session.answer(ASKED[0])
    assert stopped.value is error
    data = PrivateData(COUNTS, DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0))
    with pytest.raises(StopError), reporting(Told(0, error)):
        session.answer(ASKED[0])
    assert (0, 0) == (len(session.transcript), data.reads)


@pytest.mark.parametrize("planted", [False, True])
def test_no_callback_is_called_between_the_read_and_the_record(planted, monkeypatch):
    """Planted: a read that counts its steps is heard of, and a callback that raises there seals."""
    reads = {name: getattr(PrivateData, name) for name in ("exact_counts", "exact_counts_many")}

    def counting(read):
        def counted(self, asked):
            advance("reading", 0, 1)
            return read(self, asked)

        return counted

    seen = []

    def heard(stage, done, total):
        seen.append(stage)
        if stage == "reading":
            raise StopError

    session = ic.OnlineIC(
        PrivateData(COUNTS, DOMAIN), ic.Budget(1.0), noise=SimulatedNoise(1), progress=heard
    )
    session.answer(ASKED[0])
    seen.clear()
    for name, read in reads.items():  # of tests, and of what is bought without one
        monkeypatch.setattr(PrivateData, name, counting(read))
    if planted:
        monkeypatch.setattr(release_module, "silenced", lambda private: private())
        with pytest.raises((SessionSealedError, StopError)):
            session.answer_many(ASKED[1:9])
        assert "reading" in seen
        assert session.statistics().sealed
    else:
        session.answer_many(ASKED[1:9])
        assert ["answers"] == sorted(set(seen) - {"fit", "tables"})
        assert not session.statistics().sealed


def test_a_callback_that_asks_its_own_session_is_stopped_and_the_session_goes_on():
    asked = []

    def nosy(stage, done, total):
        if stage == "fit" and not asked:
            asked.append(stage)
            session.answer(ASKED[0])

    session = ic.OnlineIC(
        PrivateData(COUNTS, DOMAIN), ic.Budget(1.0, 1e-6), noise=SimulatedNoise(1), progress=nosy
    )
    with pytest.raises(SessionStateError):
        session.answer_many(ASKED)  # of one alone a number is bought, and nothing is fitted
    assert ["fit"] == asked
    assert session.answer(ASKED[0]).status in ("easy", "hard")
    assert 0 == session.statistics().update_failures


def test_a_comparison_counts_its_traces():
    told = Told()
    data = PrivateData(COUNTS, DOMAIN)
    with reporting(told):
        compare(data, ic.Budget(1.0), ASKED[:5], {"default": None}, [1, 2], baselines=False, max_queries=5)

    assert [(1, 2), (2, 2)] == [call[1:] for call in told.calls if call[0] == "comparison"]


@pytest.mark.parametrize("wrong", ["bars", 3, [], object()])
def test_what_is_no_callback_is_refused_and_costs_nothing(wrong):
    data = PrivateData(COUNTS, DOMAIN)
    with pytest.raises(InvalidParameterError, match="progress must be a callable"):
        ic.OnlineIC(data, ic.Budget(1.0), progress=wrong)
    assert ([], 0) == (list(data.budgets), data.reads)


# -- bars, with a stand-in for tqdm ------------------------------------------------------------------------


class Bar:
    """What tqdm does of what is used of it."""

    made = ()

    def __init__(self, total, desc, delay, leave):
        self.total, self.desc, self.delay, self.leave, self.n, self.closed = (
            total,
            desc,
            delay,
            leave,
            0,
            False,
        )
        Bar.made.append(self)

    def update(self, n):
        assert not self.closed
        self.n += n

    def close(self):
        self.closed = True


@pytest.fixture
def tqdm(monkeypatch):
    auto = types.ModuleType("tqdm.auto")
    auto.tqdm = Bar
    package = types.ModuleType("tqdm")
    package.auto = auto
    monkeypatch.setitem(sys.modules, "tqdm", package)
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    monkeypatch.setattr(Bar, "made", [])
    return Bar.made


def test_bars_follow_each_stage_and_are_closed(tqdm):
    session = ic.OnlineIC(
        PrivateData(COUNTS, DOMAIN), ic.Budget(1.0, 1e-6), noise=SimulatedNoise(1), progress="bar"
    )
    session.answer_many(ASKED)

    assert {"tables", "fit", "answers"} == {bar.desc for bar in tqdm}
    assert all(bar.closed and bar.n == bar.total for bar in tqdm)
    assert {(2.0, False)} == {(bar.delay, bar.leave) for bar in tqdm}


def test_a_stage_that_ended_early_begins_with_a_bar_of_its_own(tqdm):
    with reporting("bar"):
        for done, total in ((0, 9), (4, 9), (1, 9), (9, 9), (2, 5)):
            advance("fit", done, total)

    assert [(4, 9, True), (9, 9, True), (2, 5, False)] == [(bar.n, bar.total, bar.closed) for bar in tqdm]


def test_bars_without_tqdm_name_the_extra_and_cost_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    data = PrivateData(COUNTS, DOMAIN)
    with pytest.raises(MissingExtraError, match=r"pip install 'onlineic\[progress\]'"):
        ic.OnlineIC(data, ic.Budget(1.0), progress="bar")
    assert ([], 0) == (list(data.budgets), data.reads)
