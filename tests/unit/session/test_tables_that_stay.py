"""Tables that stay where they live: counted there a set of attributes at a time, and asked by a session."""

import math
import os
import sqlite3
from contextlib import closing
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData, released
from onlineic.data.standing import Source, StandingTables, covering
from onlineic.errors import (
    EngineError,
    InvalidDataError,
    InvalidParameterError,
    SessionSealedError,
    TooLargeError,
)
from onlineic.evaluate import compare, exact_marginal, exact_values
from onlineic.ledger import BoughtTables, Hard, MemoryLedger
from onlineic.noise import SimulatedNoise, SystemNoise
from onlineic.queries import Partition, where
from onlineic.queries.partitions import PartitionRule
from onlineic.queries.reach import Reach
from onlineic.session import Quota
from support import databases

BUDGET = ic.Budget(epsilon=2.0, delta=1e-9)
N = 30_000
DOMAIN = ic.Domain.of(
    age=range(18, 98),
    sex=["F", "M"],
    job=["a", "A", "b", "c", "d"],
    pay=ic.optional(ic.binned([0, 10, 20, 40, 80, 160])),
    city=range(12),
    kids=range(8),
    home=["own", "rent", "other"],
)
ALL = [one for count in (1, 2, 3) for one in combinations(DOMAIN.names, count)]


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(7)
    age = rng.integers(0, 80, N)
    city = rng.integers(0, 12, N)
    pay = np.where(rng.random(N) < 0.1, np.nan, rng.gamma(2.0, 15.0, N) * (1 + (age > 40) * (city % 3)))
    return {
        "age": age + 18,
        "sex": np.array(["F", "M"])[((city > 6) ^ (age > 30) ^ (rng.random(N) < 0.1)).astype(int)],
        "job": np.array(["a", "A", "b", "c", "d"])[(age // 16 + (rng.random(N) < 0.3)) % 5],
        "pay": np.minimum(pay, 159.0),
        "city": city,
        "kids": (age // 20 + rng.integers(0, 3, N)) % 6,
        "home": np.array(["own", "rent", "other"])[(city + (age > 50)) % 3],
    }


@pytest.fixture(scope="module")
def path(columns, tmp_path_factory):
    pytest.importorskip("narwhals", reason="needs the extra frames")
    pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    path = tmp_path_factory.mktemp("stay") / "table.parquet"
    write_table(pyarrow.table(columns), path)
    return path


def connection_of(columns):
    connection = databases.opened()
    kinds = {"age": "INTEGER", "city": "INTEGER", "kids": "INTEGER", "pay": "REAL"}
    held = ", ".join(f"{name} {kinds.get(name, 'TEXT COLLATE NOCASE')}" for name in columns)
    connection.execute(f"CREATE TABLE t ({held})")
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    cleaned = ([None if value != value else value for value in row] for row in rows)
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", cleaned)
    connection.commit()
    return connection


def questions(count, seed=3):
    rng = np.random.default_rng(seed)
    numbers = {"age": (18, 98), "city": (0, 12), "kids": (0, 8)}
    found = []
    for place in range(count):
        asked = {}
        for name in rng.choice(DOMAIN.names, 2 + place % 2, replace=False):
            if name in numbers:
                low, high = sorted(rng.integers(*numbers[name], 2).tolist())
                asked[name] = ic.between(low, high)
            elif name == "pay":
                asked[name] = ic.span(10, 40)
            else:
                asked[name] = DOMAIN.attribute(name).label(int(rng.integers(0, 2)))
        found.append(where(**asked))
    return found


def session_of(data, seed=5, **settings):
    return ic.OnlineIC(data, BUDGET, noise=SimulatedNoise(seed), **settings)


def told(session, answers):
    facts = [(one.value, one.status, one.error_bound) for one in answers]
    released = [
        (tuple(one.values.tobytes() for one in record.measurements), record.charge)
        if isinstance(record, BoughtTables)
        else (record.measurement.values.tobytes(), record.charge)
        for record in session.transcript
        if isinstance(record, BoughtTables | Hard)
    ]
    return facts, released, session.account.spent


def partition(*names):
    axes = tuple(sorted(DOMAIN.axis(name) for name in names))
    return Partition(DOMAIN, axes, tuple(np.arange(DOMAIN.shape[axis]) for axis in axes))


class Engine:
    """An engine in this process, that can fail, with all that was asked of it."""

    def __init__(self, columns):
        self.codes = [DOMAIN.attribute(name).read(columns[name]) for name in DOMAIN.names]
        self.asked, self.broken, self.version, self.heard = [], 0, 1, []

    def count(self, sets):
        self.asked.append(tuple(sets))
        self.heard.append("count")
        if self.broken:
            self.broken -= 1
            raise OSError("record 17: age=42")
        found = []
        for axes in sets:
            sizes = [DOMAIN.shape[axis] for axis in axes]
            flat = np.ravel_multi_index([self.codes[axis] for axis in axes], sizes)
            cells, records = np.unique(flat, return_counts=True)
            found.append(([*np.unravel_index(cells, sizes)], records))
        return found

    def data(self, announced=(), on_demand=True, versioned=True):
        told = (lambda: self.version) if versioned else None
        source = Source(DOMAIN, lambda: len(self.codes[0]), self.count, told)
        return PrivateData.standing(source, "test", announced, on_demand)


@pytest.fixture
def engine(columns):
    return Engine(columns)


# ---------------------------------------------------------------- the same answers


@pytest.mark.parametrize("budget", [BUDGET, ic.Budget(1.0)])
def test_a_session_on_a_table_that_stays_is_that_on_its_rows_to_the_last_digit(path, columns, budget):
    asked = questions(12)
    expected, seen = (
        ic.OnlineIC(data, budget, noise=SimulatedNoise(5))
        for data in (
            PrivateData.from_records(columns, DOMAIN),
            PrivateData.from_frame(path, DOMAIN, counting="on demand"),
        )
    )

    assert told(expected, [*map(expected.answer, asked)]) == told(seen, [*map(seen.answer, asked)])
    again = [where(age=ic.between(20 + at, 50 + at), city=at % 12, home="own") for at in range(10)]
    again += questions(10, seed=9)

    assert told(expected, expected.answer_many(again)) == told(seen, seen.answer_many(again))
    if not budget.pure:
        table = ic.marginal("sex", "home", where=where(age=ic.between(30, 60)))
        one, other = expected.answer(table), seen.answer(table)

        assert one.value.tolist() == other.value.tolist()


def test_hits_of_such_a_session_release_the_same_partitions(columns, engine, monkeypatch):
    expected, seen = (
        session_of(data, purchases=ic.plan.TestsOnly(), threshold=0.01)
        for data in (PrivateData.from_records(columns, DOMAIN), engine.data())
    )
    asked = questions(12)

    assert told(expected, expected.answer_many(asked)) == told(seen, seen.answer_many(asked))
    assert seen.statistics().hard > 2


def test_sqlite_gives_the_same(columns):
    few = {name: values[:2000] for name, values in columns.items()}
    connection = connection_of(few)
    seen = PrivateData.from_dbapi(connection, "t", DOMAIN, counting="on demand")
    expected = PrivateData.from_records(few, DOMAIN)
    session = session_of(seen)
    session.answer_many(questions(6))
    connection.execute("UPDATE t SET city = 1 WHERE rowid = 1")
    for names in combinations(DOMAIN.names, 2):
        assert (
            expected.exact_counts(partition(*names)).tolist() == seen.exact_counts(partition(*names)).tolist()
        )
    with pytest.raises(EngineError):
        session.answer(where(city=1, kids=2, sex="F", home="own"))


def attached(file, other):
    connection = databases.opened()
    connection.execute("ATTACH ? AS aux", (str(file),))
    return connection, "aux.t", lambda: other.executescript("UPDATE t SET city = 1")


def renamed(file, other):
    """A job that loads a table beside the old one, and then swaps their names."""
    other.executescript("CREATE TABLE new AS SELECT * FROM t; UPDATE new SET city = 1")
    connection = databases.opened(file)
    script = "ALTER TABLE t RENAME TO old; ALTER TABLE new RENAME TO t"
    return connection, "t", lambda: connection.executescript(script)


def written_by_another(file, other):
    return databases.opened(file), "t", lambda: other.executescript("UPDATE t SET city = 1")


@pytest.mark.parametrize("made", [attached, renamed, written_by_another])
def test_a_change_of_a_file_of_sqlite_is_seen_before_anything_is_counted_of_it(columns, made, tmp_path):
    """Else a pair would be of the old table, and three attributes that hold it of the new one."""
    file = tmp_path / "t.db"
    with closing(connection_of({name: values[:500] for name, values in columns.items()})) as filled:
        filled.execute("VACUUM INTO ?", (str(file),))
    with closing(sqlite3.connect(file)) as other:
        connection, table, change = made(file, other)
        with closing(connection):
            data = PrivateData.from_dbapi(connection, table, DOMAIN, counting="on demand")
            change()

            with pytest.raises(InvalidDataError, match="got another version"):
                data.fetch([partition("city", "kids", "sex", "home").axes])


def test_rows_that_may_be_rolled_back_are_not_counted_again_after_the_load(columns):
    connection = connection_of({name: values[:500] for name, values in columns.items()})
    connection.execute("UPDATE t SET city = 1")

    with pytest.raises(InvalidParameterError, match=r"connection must have no open transaction .* commit it"):
        PrivateData.from_dbapi(connection, "t", DOMAIN, counting="on demand")
    assert 500 == PrivateData.from_dbapi(connection, "t", DOMAIN, counting="at load").n


def test_counts_of_every_set_are_those_of_the_rows(columns, engine):
    expected, seen = PrivateData.from_records(columns, DOMAIN), engine.data()
    seen.fetch([tuple(sorted(DOMAIN.axis(name) for name in names)) for names in ALL])
    for names in ALL:
        cut = partition(*names)

        assert expected.exact_counts(cut).tolist() == seen.exact_counts(cut).tolist()
    bound = [one.bind(DOMAIN) for one in questions(50)]
    weighted = where(age=ic.weights(np.arange(80) / 100), city=ic.between(2, 7)).bind(DOMAIN)

    assert expected.exact_counts_many(bound).tolist() == seen.exact_counts_many(bound).tolist()
    seen.fetch([weighted.axes])
    assert expected.exact_counts(weighted) == seen.exact_counts(weighted)


def test_tables_of_more_cells_than_records_are_groups_of_as_many_rows_as_records(columns, monkeypatch):
    monkeypatch.setattr("onlineic.data.standing.SMALL", 64)
    few = {name: values[:300] for name, values in columns.items()}
    expected, seen = PrivateData.from_records(few, DOMAIN), Engine(few).data()
    sets = [("age", "city"), ("age", "city", "job"), ("age", "sex", "pay")]
    seen.fetch([partition(*names).axes for names in sets])
    for names in [*sets, ("age", "job"), ("age",), ("job",)]:
        cut = partition(*names)

        assert expected.exact_counts(cut).tolist() == seen.exact_counts(cut).tolist()
    for query in (
        where(age=ic.between(30, 50), city=ic.between(0, 11), job="A"),
        where(age=ic.between(30, 50), city=3, job=ic.one_of("a", "c")),
        where(age=ic.weights(np.arange(80) / 100), city=3, job="b"),
        ~where(age=ic.between(30, 50), city=3, job="b"),
        where(age=ic.between(18, 40), sex="F") | where(age=ic.between(60, 70), sex="M"),
    ):
        bound = query.bind(DOMAIN)

        assert expected.exact_counts(bound) == seen.exact_counts(bound)
        assert expected.exact_counts_many([bound]).tolist() == seen.exact_counts_many([bound]).tolist()


# ---------------------------------------------------------------- what is counted, and when


def test_what_is_counted_follows_from_domain_n_and_questions_alone(columns):
    alike = {name: np.repeat(values[:1], N) for name, values in columns.items()}
    engines = [Engine(columns), Engine(alike)]
    for one in engines:
        data = one.data()
        data.fetch([bound.axes for bound in (query.bind(DOMAIN) for query in questions(30))])

    assert engines[0].asked == engines[1].asked


def test_all_sets_of_two_and_those_announced_are_counted_at_load_and_no_others(engine):
    session = session_of(engine.data([(0, 2, 4)], on_demand=False, versioned=False))
    (counted,) = engine.asked
    assert all(any({*axes} <= {*one} for one in counted) for axes in (*combinations(range(7), 2), (0, 2, 4)))
    session.answer(where(age=ic.between(20, 40), home="own"))
    session.answer(where(age=ic.between(20, 40), job="b", city=3))
    session.answer_many([where(age=ic.between(20, 40), city=at) for at in range(12)])
    with pytest.raises(TooLargeError, match=r"counted together at load, got age, job, home; load .*sets="):
        session.answer(where(age=30, job="b", home="own"))
    with pytest.raises(TooLargeError, match="age, job, home"):
        session.answer_many([where(age=30), where(age=30, job="b", home="own")])
    for refused in (session.bind, session.explain):
        with pytest.raises(TooLargeError, match="age, job, home"):
            refused(where(age=30, job="b", home="own"))

    assert 1 == len(engine.asked)
    bought = [one.target.axes for one in _measured(session)]
    assert all(len(axes) <= 2 or {*axes} <= {0, 2, 4} for axes in bought)


def _measured(session):
    return [
        one
        for record in session.transcript
        if isinstance(record, BoughtTables)
        for one in record.measurements
    ]


def test_a_set_above_the_cap_is_refused_before_anything_is_counted(engine, monkeypatch):
    monkeypatch.setattr("onlineic.data.standing.MOST_ENTRIES", 4000)
    monkeypatch.setattr("onlineic.data.standing.JOINED", 4000)
    session = session_of(engine.data())
    before, reserved = len(engine.asked), session.reserved
    with pytest.raises(TooLargeError, match=r"at most 4,000 cells together.*got age, job, city"):
        session.answer(where(age=30, job="b", city=3))

    assert (before, reserved, 0) == (len(engine.asked), session.reserved, session.account.spent)
    session.answer(where(age=30, job="b"))
    assert all(math.prod(DOMAIN.shape[axis] for axis in axes) <= 4000 for one in engine.asked for axes in one)
    with pytest.raises(TooLargeError, match="at most 4,000 cells each"):
        engine.data([(0, 2, 4)])


def test_what_is_kept_is_booked_at_its_largest_size_and_let_go_in_order(engine, monkeypatch):
    monkeypatch.setattr("onlineic.data.standing.KEPT_BYTES", 2 * 16 * 80 * 12 * 8)
    source = Source(DOMAIN, lambda: N, engine.count, None)
    tables = StandingTables(source, [], True)
    assert 16 * 80 * 12 * 8 == tables.booked((0, 4, 5))
    for axes in [(0, 4, 5), (0, 2, 4), (0, 4, 5), (0, 1, 4), (0, 4, 6), (0, 4, 5), (0, 2, 4)]:
        tables.fetch([axes])

    assert [((0, 4, 5),), ((0, 2, 4),), ((0, 1, 4),), ((0, 4, 6),), ((0, 2, 4),)] == engine.asked[1:]


def test_nothing_is_let_go_that_was_fetched_to_be_read(engine, monkeypatch):
    """Of very many attributes one set is more than is kept: it was let go before others were read from it."""
    tables = StandingTables(Source(DOMAIN, lambda: N, engine.count, None), [], True)
    wide, parts = (0, 1, 4, 5), [(0, 1, 4), (0, 4, 5), (1, 4, 5)]
    monkeypatch.setattr("onlineic.data.standing.KEPT_BYTES", tables.booked(wide) - 1)

    def everybody(axes):
        return tables.box(axes, (0,) * len(axes), tuple(DOMAIN.shape[axis] for axis in axes))

    tables.fetch([wide, (0, 4, 6)])
    assert [N, N] == [everybody(wide), everybody((0, 4, 6))]
    tables.fetch(parts)
    assert [N] * 3 == [*map(everybody, parts)]
    whole = [Partition(DOMAIN, axes, [np.arange(DOMAIN.shape[axis]) for axis in axes]) for axes in parts]
    tables.fetch([], whole)
    assert [N] * 3 == [int(tables.measure(one).sum()) for one in whole]
    assert 3 == len(engine.asked)  # at load, and the two of the first call


def test_what_another_session_let_go_is_counted_once_more(engine, monkeypatch):
    tables = StandingTables(Source(DOMAIN, lambda: N, engine.count, None), [], True)
    monkeypatch.setattr("onlineic.data.standing.KEPT_BYTES", tables.booked((0, 4, 5)))
    blocks = Partition(DOMAIN, (0, 4, 6), [np.arange(DOMAIN.shape[axis]) for axis in (0, 4, 6)])
    tables.fetch([(0, 4, 5)], [blocks])
    tables.fetch([(0, 2, 5)], [blocks])

    assert N == tables.box((0, 4, 5), (0, 0, 0), (80, 12, 8))
    assert [N, N] == [int(tables.measure(blocks).sum()) for _ in range(2)]


def test_a_batch_is_cut_where_its_tables_are_more_than_are_kept(columns, engine, monkeypatch):
    monkeypatch.setattr("onlineic.data.standing.KEPT_BYTES", 2 * 16 * 80 * 12 * 6)
    expected, seen = session_of(PrivateData.from_records(columns, DOMAIN)), session_of(engine.data())
    asked = questions(20, seed=4)

    assert told(expected, expected.answer_many(asked)) == told(seen, seen.answer_many(asked))


@pytest.mark.parametrize("count", [1, 2, 3, 10, 45])
def test_few_sets_hold_all_that_are_wanted(count):
    rng = np.random.default_rng(count)
    shape = tuple(rng.integers(2, 300, 10).tolist())
    sets = [tuple(sorted(rng.choice(10, 1 + place % 3, replace=False).tolist())) for place in range(count)]
    covers = covering(sets, shape)

    assert all(any({*axes} <= {*one} for one in covers) for axes in sets)
    assert all(one in sets or math.prod(shape[axis] for axis in one) <= 2**16 for one in covers)
    assert len(covers) <= len({*sets})
    assert 8 > len(covering([*combinations(range(10), 2)], (8,) * 10))


def test_too_much_at_load_is_refused(engine, monkeypatch):
    monkeypatch.setattr("onlineic.data.standing.MOST_SETS", 20)
    with pytest.raises(TooLargeError, match=r"counted at load must be at most 20.*got 21"):
        engine.data()


# ---------------------------------------------------------------- fetch, reserve, read


def test_a_set_is_counted_before_anything_is_reserved_for_it(engine, monkeypatch):
    happened = []
    ledger = MemoryLedger()
    session = session_of(engine.data(), ledger=ledger)
    reserve = ledger.reserve
    monkeypatch.setattr(ledger, "reserve", lambda charge: (happened.append("reserve"), reserve(charge)))
    engine.heard = happened
    read = PrivateData.exact_counts
    monkeypatch.setattr(
        PrivateData, "exact_counts", lambda self, target: (happened.append("read"), read(self, target))[1]
    )
    # the first of them needs a set of its own, while no hit is paid for yet
    for query in (where(age=30, job="b", city=3), *questions(6)):
        happened.append("asked")
        session.answer(query)

    text = "".join({"asked": "|", "count": "c", "reserve": "r", "read": "x"}[one] for one in happened)
    assert "c" in text
    assert "r" in text
    assert "rc" not in text  # nothing is counted for what is reserved already


def test_nothing_is_counted_for_a_question_that_its_asker_cannot_pay(engine):
    session = session_of(engine.data(), purchases=ic.TestsOnly(), release="answer")
    cheap, dear = where(sex=ic.weights([0.0, 0.5])), where(age=30, job="b", city=3)
    price = Fraction(session.explain(cheap).price) * session.account.capacity
    counted = len(engine.asked)
    answers = session.paid_by(Quota("ann", price * 3 / 2)).answer_many([cheap, dear])

    assert "untested" != answers[0].status
    assert "untested" == answers[1].status
    assert not any(len(axes) > 2 for sets in engine.asked[counted:] for axes in sets)
    session.answer(dear)
    assert any(len(axes) > 2 for sets in engine.asked[counted:] for axes in sets)


def test_an_engine_that_fails_costs_nothing_and_its_text_is_dropped(engine, caplog):
    session = session_of(engine.data())
    session.answer(where(age=30))
    before = (session.account.spent, session.reserved, len(session.transcript))
    engine.broken = 2
    for place in (1, 2):
        with pytest.raises(EngineError, match=f"{place} of 3 in a row") as refused:
            session.answer(where(age=30, job="b", city=3))

        assert refused.value.__cause__ is refused.value.__context__ is None
        assert "17" not in str(refused.value) + caplog.text
    assert before == (session.account.spent, session.reserved, len(session.transcript))
    session.answer(where(age=30, job="b", city=3))  # and counts from none again
    engine.broken = 1
    with pytest.raises(EngineError, match="1 of 3"):
        session.answer(where(age=30, kids=2, city=3))
    assert not session.statistics().sealed


def test_three_failures_in_a_row_end_the_session_and_what_was_released_stands(engine):
    session = session_of(engine.data())
    first = session.answer(where(age=30))
    spent = session.account.spent
    engine.broken = 3
    for _ in range(3):
        with pytest.raises(EngineError):
            session.answer(where(age=30, job="b", city=3))
    with pytest.raises(SessionSealedError, match="engine failed three times"):
        session.answer(where(age=31, job="b", city=3))

    assert first.value == session.answer(where(age=30)).value
    assert spent == session.account.spent


def test_a_table_that_changed_is_not_counted(engine, columns, path, tmp_path):
    session = session_of(engine.data())
    engine.version = 2
    with pytest.raises(EngineError):
        session.answer(where(age=30, job="b", city=3))
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(path.read_bytes())
    session = session_of(PrivateData.from_frame(copy, DOMAIN, counting="on demand"))
    os.utime(copy, (1, 1))
    with pytest.raises(EngineError):
        session.answer(where(age=30, job="b", city=3))
    changed = Engine(columns)
    data = changed.data()
    changed.codes = [codes[1:] for codes in changed.codes]
    with pytest.raises(InvalidDataError, match="other records"):
        data.fetch([(0, 2, 4)])


def test_neither_ledger_nor_message_knows_the_snapshot(engine, tmp_path):
    engine.version = "secret-7"
    file = tmp_path / "stay.db"
    data = engine.data([(0, 2, 4)], on_demand=False)
    session = ic.OnlineIC(data, BUDGET, ledger=file, table="t")
    session.answer(where(age=30, job="b", city=3))
    text = repr(session) + repr(data) + data.loading
    session.close()

    assert b"secret-7" not in file.read_bytes()
    assert "secret-7" not in text


def test_a_ledger_file_of_such_a_session_is_resumed_and_audited(engine, tmp_path):
    from onlineic.audit import ledgers
    from onlineic.ledger import read

    file = tmp_path / "stay.db"
    with ic.OnlineIC(engine.data([(0, 2, 4)], on_demand=False), BUDGET, ledger=file, table="t") as session:
        first = session.answer(where(age=30, job="b", city=3))
    with ic.OnlineIC.resume(file, engine.data([(0, 2, 4)], on_demand=False)) as session:
        assert first.value == session.answer(where(age=30, job="b", city=3)).value
    report = ledgers.verified(read(file))

    assert () == tuple(report.problems)


# ---------------------------------------------------------------- what is refused


def test_what_needs_the_rows_here_refuses_such_a_table(engine):
    data = engine.data()
    with pytest.raises(InvalidParameterError, match="held in this process"):
        released(data, BUDGET, SystemNoise(), lambda: data.exact_counts(where(age=30).bind(DOMAIN)))
    with pytest.raises(InvalidParameterError, match="held in this process"):
        PrivateData.union([data, engine.data()])
    with pytest.raises(InvalidParameterError, match="held in this process"):
        data.projected("age", "sex")

    assert () == data.budgets


def test_bad_arguments_are_refused_by_name(path, columns):
    with pytest.raises(InvalidParameterError, match="counting must be"):
        PrivateData.from_frame(path, DOMAIN, counting="always")
    with pytest.raises(InvalidParameterError, match="sets must be lists of names, got the text 'age'"):
        PrivateData.from_frame(path, DOMAIN, counting="at load", sets=["age"])
    with pytest.raises(InvalidParameterError, match="version must be a function"):
        PrivateData.from_frame(path, DOMAIN, counting="at load", version=3)
    with pytest.raises(InvalidParameterError, match="counting must be None or 'rows' with unit"):
        PrivateData.from_frame(path, DOMAIN, counting="at load", unit=ic.Unit(person="id"))
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.read_parquet(str(path))
    with pytest.raises(InvalidParameterError, match="version must be given"):
        PrivateData.from_frame(relation, DOMAIN, counting="on demand")
    polars = pytest.importorskip("polars")
    with pytest.raises(InvalidParameterError, match="only DuckDB, Spark and SQLite"):
        PrivateData.from_frame(polars.scan_parquet(path), DOMAIN, counting="at load")
    data = PrivateData.from_frame(relation, DOMAIN, counting="on demand", version=lambda: 1)
    assert "stays where it lives (duckdb)" in data.loading


def test_a_small_domain_is_counted_by_one_group_by_all_the_same(path):
    data = PrivateData.from_frame(path, DOMAIN.project("age", "sex", "city"), counting="at load")

    assert data.reach is None
    assert "GROUP BY" in data.loading


def test_the_rule_of_partitions_adds_no_attribute_beyond_the_reach():
    query = where(sex="F").bind(DOMAIN)
    free, held = PartitionRule(), PartitionRule(reach=Reach(2**40, ((1, 2),)))

    assert len(free.partition(query).axes) > 2
    assert (1, 2) == held.partition(query).axes
    assert (1,) == PartitionRule(reach=Reach(3)).partition(query).axes


def test_such_a_table_is_evaluated_a_set_at_a_time(columns, engine):
    here, stays, stream = PrivateData.from_records(columns, DOMAIN), engine.data(), questions(20)
    alone = compare(stays, BUDGET, stream, {"maximum entropy": None}, [0], baselines=False)

    assert exact_values(here, stream).tolist() == exact_values(stays, stream).tolist()
    assert exact_marginal(here, "kids").tolist() == exact_marginal(stays, "kids").tolist()
    assert len(alone[0].errors) == 20
    with pytest.raises(InvalidParameterError, match="held in this process"):
        compare(stays, BUDGET, stream, {"maximum entropy": None}, [0])


def test_what_such_a_table_cannot_count_is_refused_before_it_is_evaluated(engine, monkeypatch):
    stays = engine.data(on_demand=False)
    asked = len(engine.asked)
    with pytest.raises(TooLargeError):
        exact_values(stays, [where(age=30), where(age=30, sex="F", kids=2, city=3)])

    assert asked == len(engine.asked)
