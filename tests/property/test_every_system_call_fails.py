"""Each call of a ledger or a loader to the system fails in turn: a named refusal, and a whole history.

A spy finds the calls, so that those of tomorrow are among them.
"""

import contextlib
import shutil
import warnings
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge, Filter
from onlineic.errors import LedgerError, OnlineICError, SessionSealedError
from onlineic.ledger import Closed, Easy, Hard, SqliteLedger, TableBudget, exported, read
from onlineic.ledger.settings import beginning_of
from onlineic.queries import Measurement
from support.failures import reached_by
from support.ledgers import LABEL, MECHANISMS, quick_folder, table
from support.system import ERRORS, System

DOMAIN = ic.Domain.of(a=4)
QUERY = ic.where(a=0).bind(DOMAIN)
COST = Charge(Fraction(1, 7), "a hit")
CLOSING = Closed(1, 2, 3, 0.5)
HIT = [Easy(QUERY, 3), Hard(QUERY, 3, Measurement(QUERY, np.array([0.1]), 1 / 3), COST)]
LEDGER = ("onlineic.ledger", "onlineic.session.durable")


@pytest.fixture
def folder():
    with quick_folder() as folder:
        yield folder


@pytest.fixture
def system(monkeypatch):
    return System(monkeypatch, *LEDGER)


def made(path):
    beginning = beginning_of(
        created="2026-11-22T12:00:00+00:00", version="0", table="census", domain=DOMAIN, n=10,
        account=Filter(Fraction(1)), settings={}, plan={},
    )  # fmt: skip
    ledger = SqliteLedger.create(path, beginning)
    ledger.claim("me", Filter(Fraction(1)))
    return ledger


def reserved(path):
    ledger = made(path)
    ledger.reserve(COST)
    return ledger


def closed(path):
    reserved(path).release()


def total(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TableBudget(ic.Budget(1.0, 1e-6), ledger=path, table="census")


# what is done before, and the step in which each call fails
STEPS = {
    "create": (lambda path: None, lambda path, _: made(path)),
    "reserve": (made, lambda path, ledger: ledger.reserve(COST)),
    "commit": (reserved, lambda path, ledger: ledger.commit(HIT)),
    "forfeit": (reserved, lambda path, ledger: ledger.forfeit()),
    "close": (reserved, lambda path, ledger: ledger.close(None, CLOSING)),
    "release": (reserved, lambda path, ledger: ledger.release()),
    "open": (closed, lambda path, _: SqliteLedger.open(path)),
    "restart": (lambda path: closed(path) or SqliteLedger.open(path), lambda path, one: one.restart("1")),
    "newest": (reserved, lambda path, ledger: ledger.check_newest(ledger.receipt, "a test")),
    "read": (closed, lambda path, _: read(path)),
    "export": (closed, lambda path, _: [*exported(read(path))]),
    "a new total": (lambda path: None, lambda path, _: total(path)),
    "an old total": (lambda path: total(path).close(), lambda path, _: total(path)),
    "a draw": (total, lambda path, one: one.draw(ic.Budget(0.1))),
    "a total's end": (total, lambda path, one: one.close()),
}


def lines(path):
    return read(path).lines[1:] if path.exists() else None


def let_go(*holders):
    for held in holders:
        if isinstance(held, (SqliteLedger, TableBudget)):
            with contextlib.suppress(OnlineICError):
                held.release() if isinstance(held, SqliteLedger) else held.close()


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("step", STEPS)
def test_each_call_of_a_ledger_to_the_system_may_fail(step, every, folder, system):
    """With one of the errors in turn for each call, or with every one of them."""
    prepare, act = STEPS[step]

    def after(place, error, name):
        path = folder / f"{name}.db"
        held, told = prepare(path), []
        system.failing(place, error)
        failed = reached_by(lambda: told.append(act(path, held)))
        called = system.calls
        system.failing()
        usable = isinstance(held, SqliteLedger) and held.held
        again = reached_by(held.reserve, COST) if usable and held.reserved is None and failed else None
        let_go(held, *told)
        return path, failed, again, called

    path, failed, _, calls = after(None, "full", "whole")
    whole = lines(path)
    before_path = folder / "before.db"
    let_go(prepare(before_path))
    before = lines(before_path)
    assert failed is None
    assert calls
    for number, error in enumerate(ERRORS):
        for place, name in enumerate(calls):
            if not every and (place + number) % len(ERRORS):
                continue
            path, failed, again, _ = after(place, error, f"{error} {place}")
            told = f"{name} at {place}, {error}: {failed!r}"
            assert failed is None or isinstance(failed, OnlineICError), told
            assert again is None or isinstance(again, LedgerError), told
            left = {one.name.removeprefix(path.name) for one in folder.iterdir() if path.name in one.name}
            if step in ("create", "a new total") and failed is not None:
                assert left <= {".lock"}, told
                let_go(act(path, None))  # and nothing is in its way
                assert whole == lines(path)
                continue
            assert left <= {"", ".lock", "-journal"}, told
            found = lines(path)
            assert found in (before, whole) or (again is None and found[: len(before)] == before), told
            assert failed is not None or found in (before, whole), told
            if found is not None and "total" not in step and "draw" not in step:
                let_go(SqliteLedger.open(path))  # nothing holds it


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The file of a session that has answered, and was closed."""
    path = tmp_path_factory.mktemp("asked") / "session.db"
    settings = {"ledger": path, "table": LABEL, "durability": "all"} | MECHANISMS["laplace"]
    with ic.OnlineIC(table(), settings.pop("budget"), **settings) as session:
        session.answer(ic.where(a=0))
    return path


@pytest.mark.parametrize("apart", [7, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_each_call_of_a_session_that_is_resumed_and_asked_may_fail(apart, asked, folder, system):
    """Or one in so many of them."""
    questions = [ic.where(a=1), ic.where(b=2, c="x"), ic.where(a=5, b=3)]
    held = read(asked).lines

    def act(path, sessions):
        sessions.append(ic.OnlineIC.resume(path, table(), durability="all"))
        for question in questions:
            sessions[0].answer(question)
        sessions[0].close()

    def after(place, error):
        path, sessions = folder / f"{place}.db", []
        shutil.copy(asked, path)
        system.failing(place, error)
        failed = reached_by(act, path, sessions)
        calls = system.calls
        system.failing()
        return path, failed, sessions, calls

    path, failed, sessions, calls = after(None, "full")
    assert failed is None
    sealed = 0
    for place, name in [*enumerate(calls)][::apart]:
        path, failed, sessions, _ = after(place, [*ERRORS][place % len(ERRORS)])
        told = f"{name} at {place}: {failed!r}"
        assert failed is None or isinstance(failed, OnlineICError), told
        if isinstance(failed, SessionSealedError):
            sealed += 1
            assert sessions[0].statistics().sealed, told
            assert "ledger that did not take the last record" in str(failed), told
        for session in sessions:
            assert reached_by(session.close) is None, told
        assert held == read(path).lines[: len(held)], told
        sizes = [read(path).receipt.lines]
        with ic.OnlineIC.resume(path, table()) as again:
            spent = again.statistics().spent
            assert [again.answer(ic.where(a=0)).status] == ["repeat"], told
        assert read(path).receipt.lines > sizes[0]
        assert 0 < spent <= 1
        assert not list(folder.glob("*.new*")), told
    assert sealed


LOADERS = {
    "bytes": lambda folder: ic.PrivateData.from_csv(folder / "t.csv", DOMAIN),
    "text": lambda folder: ic.PrivateData.from_csv(folder / "u.csv", DOMAIN, encoding="utf-16"),
    "report": lambda folder: ic.PrivateData.check(folder / "t.csv", DOMAIN),
    "parquet": lambda folder: ic.PrivateData.from_frame(folder / "t.parquet", DOMAIN),
    "no parquet": lambda folder: ic.PrivateData.from_frame(folder / "t.csv", DOMAIN),
}


@pytest.mark.parametrize("loader", LOADERS)
def test_each_call_of_a_loader_to_the_system_may_fail(loader, folder, monkeypatch):
    (folder / "t.csv").write_text("a\n1\n2\n")
    (folder / "u.csv").write_text("a\n1\n2\n", encoding="utf-16")
    if "parquet" in loader:
        pytest.importorskip("narwhals")
        polars = pytest.importorskip("polars")
        polars.DataFrame({"a": [1, 2]}).write_parquet(folder / "t.parquet")
    system = System(monkeypatch, "onlineic.data")
    system.failing()
    reached_by(LOADERS[loader], folder)
    calls = system.calls

    assert calls
    for error in ERRORS:
        for place in range(len(calls)):
            system.failing(place, error)
            failed = reached_by(LOADERS[loader], folder)
            assert failed is None or isinstance(failed, OnlineICError), f"{calls[place]} {error}: {failed!r}"
