"""Persons with many rows: each becomes the same number of equal parts, by their own rows alone."""

import queue
import threading

import numpy as np
import pytest

import onlineic as ic
from onlineic import offline
from onlineic.cli import main
from onlineic.data.persons import Parted
from onlineic.domain import Unit
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidDataError,
    InvalidParameterError,
    LedgerMismatchError,
    TooLargeError,
)
from onlineic.evaluate import exact_marginal, exact_values
from onlineic.noise import SimulatedNoise
from onlineic.queries import Partition
from support import databases
from support.events import FOR_EVER, telling_locks

DOMAIN = ic.Domain.of(age=range(20), ward=["ER", "ICU", "home"])
UNIT = ic.Unit(person="id")
ROWS = {
    "id": ["ann", "bob", "ann", "ann", "eve", "bob", "ann"],
    "age": [3, 19, 4, 3, 0, 19, 5],
    "ward": ["ER", "home", "ICU", "ER", "home", "ER", "ER"],
}


def cells(data):
    """Return the parts on every cell."""
    axes = tuple(range(len(data.domain.names)))
    codes = tuple(np.arange(size) for size in data.domain.shape)
    return data.exact_counts(Partition(data.domain, axes, codes)).reshape(data.domain.shape)


def random_rows(persons=300, seed=1):
    """Return the rows of persons, of whom a few have very many."""
    draw = np.random.default_rng(seed)
    rows = np.minimum(1 + np.floor(draw.pareto(1.0, persons)).astype(int), 200)
    owner = np.repeat(np.arange(persons), rows)
    wards = draw.choice(["ER", "ICU", "home"], len(owner))
    return {"id": owner, "age": draw.integers(0, 20, len(owner)), "ward": wards.tolist()}


def test_a_person_is_shared_out_over_the_cells_of_their_rows():
    data = ic.PrivateData.from_records(ROWS, DOMAIN, unit=UNIT)

    assert (3, 192, UNIT) == (data.n, data.mass, data.unit)
    parts = cells(data)
    assert 192 == parts.sum()
    assert (32, 16, 16) == (parts[3, 0], parts[4, 1], parts[5, 0])  # of ann's four rows two are one cell
    assert (32, 32, 64) == (parts[19, 2], parts[19, 0], parts[0, 2])


def test_each_person_has_each_share_rounded_up_or_down_to_whole_parts():
    rows = random_rows()
    for units in (64, 16, 1):
        for person in np.unique(rows["id"])[:80]:
            own = {name: np.asarray(column)[rows["id"] == person] for name, column in rows.items()}
            parts = cells(ic.PrivateData.from_records(own, DOMAIN, unit=Unit("id", units=units)))
            share = cells(ic.PrivateData.from_records(own, DOMAIN)) * units / len(own["id"])

            assert units == parts.sum()
            assert np.all(np.abs(parts - share) < 1)


def test_a_person_is_the_same_whoever_else_is_in_the_table_and_in_whatever_order():
    rows = random_rows(60)
    whole = cells(ic.PrivateData.from_records(rows, DOMAIN, unit=UNIT))
    alone = np.zeros_like(whole)
    for person in np.unique(rows["id"]):
        own = {name: np.asarray(column)[rows["id"] == person] for name, column in rows.items()}
        alone += cells(ic.PrivateData.from_records(own, DOMAIN, unit=UNIT))
    order = np.random.default_rng(2).permutation(len(rows["id"]))
    mixed = {name: np.asarray(column)[order] for name, column in rows.items()}

    assert np.array_equal(whole, alone)
    assert np.array_equal(whole, cells(ic.PrivateData.from_records(mixed, DOMAIN, unit=UNIT)))


def test_shares_are_unbiased_by_the_hash():
    draw = np.random.default_rng(0)
    owner = np.repeat(np.arange(20_000), 3)
    codes = draw.integers(0, 40, len(owner))
    data = ic.PrivateData.from_records({"id": owner, "x": codes}, ic.Domain.of(x=40), unit=UNIT)
    few = ic.PrivateData.from_records({"id": owner, "x": codes}, ic.Domain.of(x=40), unit=Unit("id", units=1))

    exact = np.bincount(codes, minlength=40) / len(codes)
    assert np.abs(exact_marginal(data, "x") - exact)[:20].sum() < 2e-3
    assert abs((exact_marginal(data, "x") - exact)[:20].sum()) < 2e-5  # by the order of codes: 6e-3
    assert abs((exact_marginal(few, "x") - exact)[:20].sum()) < 0.01


def test_the_same_table_comes_in_by_every_door(tmp_path):
    rows = random_rows(50)
    expected = cells(ic.PrivateData.from_records(rows, DOMAIN, unit=UNIT))
    lines = [f"{one},{age},{ward}" for one, age, ward in zip(*rows.values(), strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["id,age,ward", *lines]))
    connection = databases.opened()
    connection.execute("CREATE TABLE visits (id INTEGER, age INTEGER, ward TEXT)")
    taken = [(int(one), int(age), ward) for one, age, ward in zip(*rows.values(), strict=True)]
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", taken)
    texts = {**rows, "id": [str(one) for one in rows["id"]]}
    listed = [dict(zip(rows, record, strict=True)) for record in taken]

    assert np.array_equal(expected, cells(ic.PrivateData.from_csv(path, DOMAIN, unit=UNIT)))
    assert np.array_equal(expected, cells(ic.PrivateData.from_records(texts, DOMAIN, unit=UNIT)))
    assert np.array_equal(expected, cells(ic.PrivateData.from_records(listed, DOMAIN, unit=UNIT)))
    held = ic.PrivateData.from_dbapi(connection, "visits", DOMAIN, unit=UNIT)
    assert np.array_equal(expected, cells(held))
    assert "GROUP BY" in held.loading


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb"])
def test_frames_and_relations_of_persons(library):
    module = pytest.importorskip(library)
    pytest.importorskip("narwhals")
    rows = random_rows(50)
    expected = cells(ic.PrivateData.from_records(rows, DOMAIN, unit=UNIT))
    if library == "duckdb":
        pyarrow = pytest.importorskip("pyarrow")
        frame = pyarrow.table({name: list(column) for name, column in rows.items()})  # noqa: F841
        tables = [module.sql("SELECT * FROM frame")]
    elif library == "pyarrow":
        tables = [module.table({name: list(column) for name, column in rows.items()})]
    else:
        tables = [module.DataFrame(rows)]
        tables += [tables[0].lazy()] if library == "polars" else []
    for table in tables:
        assert np.array_equal(expected, cells(ic.PrivateData.from_frame(table, DOMAIN, unit=UNIT)))


SPACED = {
    "id": ["7", "7 ", " 7", "ann\t", "\u00a0ann", "Ann"],
    "age": [1, 2, 3, 4, 5, 6],
    "ward": ["ER", "ER", "ICU", "ICU", "home", "ER"],
}


def spaced_tables(source, folder):
    """Yield a table of the same rows from one kind of source."""
    listed = [*zip(*SPACED.values(), strict=True)]
    unit = {"unit": UNIT}
    if source == "records":
        for given in (SPACED, [dict(zip(SPACED, row, strict=True)) for row in listed]):
            yield ic.PrivateData.from_records(given, DOMAIN, **unit)
        yield ic.PrivateData.from_records({**SPACED, "id": np.array(SPACED["id"])}, DOMAIN, **unit)
        yield ic.PrivateData.from_records({**SPACED, "id": [7, *SPACED["id"][1:]]}, DOMAIN, **unit)
    elif source == "csv":
        for quote in ("", '"'):
            path = folder / "rows.csv"
            rows = [",".join(f"{quote}{field}{quote}" for field in row) for row in listed]
            path.write_text("\n".join(["id,age,ward", *rows, ""]), encoding="utf-8")
            for skipped in (True, False):
                yield ic.PrivateData.from_csv(path, DOMAIN, skipinitialspace=skipped, **unit)
    elif source in ("sqlite", "duckdb"):
        connection = databases.opened() if source == "sqlite" else pytest.importorskip("duckdb").connect()
        connection.execute("CREATE TABLE visits (id VARCHAR, age INTEGER, ward VARCHAR)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", listed)
        yield ic.PrivateData.from_dbapi(connection, "visits", DOMAIN, **unit)
        if source == "duckdb":
            yield ic.PrivateData.from_frame(connection.sql("SELECT * FROM visits"), DOMAIN, **unit)
            connection.sql("SELECT * FROM visits").write_parquet(str(folder / "rows.parquet"))
            yield ic.PrivateData.from_frame(folder / "rows.parquet", DOMAIN, **unit)
    else:
        module = pytest.importorskip(source)
        frame = module.table(SPACED) if source == "pyarrow" else module.DataFrame(SPACED)
        for given in [frame, *([frame.lazy()] if source == "polars" else [])]:
            yield ic.PrivateData.from_frame(given, DOMAIN, **unit)


@pytest.mark.parametrize("source", ["records", "csv", "sqlite", "duckdb", "pandas", "polars", "pyarrow"])
def test_white_space_at_the_ends_of_an_identifier_makes_no_other_person(source, tmp_path):
    """Letter case does: whether Ann is ann the curator alone knows."""
    plain = ["7", "7", "7", "ann", "ann", "Ann"]
    expected = cells(ic.PrivateData.from_records({**SPACED, "id": plain}, DOMAIN, unit=UNIT))
    for data in spaced_tables(source, tmp_path):
        assert 3 == data.n
        assert np.array_equal(expected, cells(data))


def test_a_text_that_is_missing_in_a_file_is_so_with_white_space_too(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,age,ward\n7,1,ER\nNA ,2,ER\n")
    with pytest.raises(InvalidDataError, match="never missing"):
        ic.PrivateData.from_csv(path, DOMAIN, unit=UNIT, missing=["NA"])


def test_of_many_cells_a_person_is_as_many_rows_as_are_public():
    rows = random_rows(40)
    wide = ic.Domain.of(age=range(20), ward=["ER", "ICU", "home"], **{f"x{i}": 10 for i in range(8)})
    more = {**rows, **{f"x{i}": np.asarray(rows["age"]) % 10 for i in range(8)}}
    data = ic.PrivateData.from_records(more, wide, unit=UNIT)
    questions = [ic.where(ward="ER"), ic.where(age=ic.between(3, 9), x1=4)]

    assert (40, 64 * 40) == (data.n, data.mass)
    assert np.allclose(
        exact_values(ic.PrivateData.from_records(rows, DOMAIN, unit=UNIT), questions[:1]),
        exact_values(data, questions)[:1],
        atol=0.02,
    )


def test_of_many_cells_too_many_persons_are_refused_by_name(monkeypatch):
    monkeypatch.setattr("onlineic.data.private.MAX_ROWS", 100)
    wide = ic.Domain.of(**{f"x{i}": 10 for i in range(8)})
    columns = {"id": [1, 2], **{f"x{i}": [0, 1] for i in range(8)}}

    with pytest.raises(TooLargeError, match="records must be at most 1 over 100,000,000 cells with units=64"):
        ic.PrivateData.from_records(columns, wide, unit=UNIT)


@pytest.mark.parametrize(
    "bad", [None, float("nan"), "", " ", 1.5, True, b"x", ("a",), np.datetime64("NaT", "s")]
)
def test_rows_that_are_nobodys_are_refused_by_name_without_a_value(bad):
    columns = {**ROWS, "id": [*ROWS["id"][:-1], bad]}

    with pytest.raises(InvalidDataError, match=r"^id must") as caught:
        ic.PrivateData.from_records(columns, DOMAIN, unit=UNIT)
    assert "ann" not in str(caught.value)


def test_a_file_with_a_missing_identifier_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,age,ward\n7,3,ER\n,4,ER\n")

    with pytest.raises(InvalidDataError, match="id must be a person's number or name, never missing"):
        ic.PrivateData.from_csv(path, DOMAIN, unit=UNIT)
    path.write_text("id,age,ward\n007,3,ER\n7,4,ER\n")
    assert 2 == ic.PrivateData.from_csv(path, DOMAIN, unit=UNIT).n  # texts


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ic.PrivateData.from_records(ROWS, DOMAIN, unit=ic.Unit("ward")), "unit must name a column"),
        (lambda: ic.PrivateData.from_records(ROWS, DOMAIN, unit="id"), "unit must be a Unit or None"),
        (
            lambda: ic.PrivateData.from_counts(ROWS, [1] * 7, DOMAIN, unit=UNIT),
            "unit must be None with count",
        ),
        (lambda: ic.PrivateData.from_csv("x", DOMAIN, count="n", unit=UNIT), "count must be None with unit"),
        (lambda: ic.Unit(""), "person must be the name of a column"),
        (lambda: ic.Unit(7), "person must be the name of a column"),
        (lambda: ic.Unit("id", units=65), "units must be 64, 16 or 1"),
        (lambda: ic.Unit("id", units=True), "units must be an integer"),
        (lambda: ic.Unit("id", weigh="rows"), "at_most must be given with weigh='rows'"),
        (lambda: ic.Unit("id", at_most=3), "at_most must be given with weigh='rows'"),
        (lambda: ic.Unit("id", weigh="rows", at_most=0), "at_most"),
        (lambda: ic.Unit("id", weigh="shares"), "weigh must be"),
        (lambda: ic.Unit("id", per=("month", 1)), "nothing is proven of whole sessions"),
        (lambda: ic.Unit(None, weigh="rows", at_most=2), "person must name a column"),
        (
            lambda: ic.PrivateData.from_records(ROWS, DOMAIN, unit=Unit("id", weigh="rows", at_most=2)),
            "would tell how many a person has",
        ),
    ],
)
def test_units_that_cannot_be_are_refused_by_name(call, message):
    with pytest.raises(InvalidParameterError, match=message):
        call()


def test_a_table_without_the_column_of_persons_is_refused():
    with pytest.raises(InvalidDataError, match="none for pid"):
        ic.PrivateData.from_records(ROWS, DOMAIN, unit=ic.Unit("pid"))
    with pytest.raises(InvalidDataError, match="one or more"):
        ic.PrivateData.from_records({name: [] for name in ROWS}, DOMAIN, unit=UNIT)


def table(persons=4000, units=64):
    draw = np.random.default_rng(5)
    owner = np.repeat(np.arange(persons), draw.integers(1, 6, persons))
    age, ward = draw.integers(0, 20, len(owner)), draw.choice(["ER", "ICU", "home"], len(owner))
    return ic.PrivateData.from_records(
        {"id": owner, "age": age, "ward": ward}, DOMAIN, unit=Unit("id", units=units)
    )


def test_a_session_counts_persons_and_says_so():
    data = table()
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9))
    answer, many = session.answer(ic.where(ward="ER")), session.answer_many([ic.where(age=3)])

    assert 4000 == data.n == session.n == answer.n
    assert answer.count == pytest.approx(4000 * answer.value)
    assert many[0].count == pytest.approx(4000 * many[0].value)
    assert abs(answer.count - 4000 * exact_marginal(data, "ward")[0]) < 100
    assert UNIT == session.unit == session.statistics().unit
    said = "all rows of a person (by 'id'), weighed to one"
    assert "n=4000 persons" in repr(data)
    assert said in repr(data)
    assert "n=4000 persons" in repr(session)
    assert said in repr(session)
    assert "rows" not in repr(session).replace(said, "")
    summary = str(session.summary())
    assert "about 4,000 persons" in summary
    assert said in summary
    assert "4,000 persons" in session._repr_html_()
    assert 4000 == pytest.approx(sum(session.summary().marginals[1].counts), rel=1e-3)
    assert "weighed by their rows" in refused_distinct(session)


def refused_distinct(session):
    pytest.importorskip("sqlglot")
    with pytest.raises(ic.errors.InvalidQueryError) as caught:
        session.sql("SELECT COUNT(DISTINCT id) FROM t")
    return str(caught.value)


def test_the_budget_is_a_person_s():
    data = table()
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9))

    assert 64 == data.rows_per_person
    (spent,) = data.budgets
    assert (1.0, 1e-9) == (pytest.approx(spent.epsilon), pytest.approx(spent.delta))
    assert session.plan.sparse.epsilon <= 1 / 64
    assert 64 * 4000 == session.plan.sparse.n


def test_only_a_session_may_ask_a_table_of_persons():
    data = table()
    with pytest.raises(InvalidParameterError, match="must be asked by a session"):
        offline.mean(data, "age", epsilon=1.0)
    with pytest.raises(InvalidParameterError, match="must be asked by a session"):
        ic.baselines.noisy_histogram(data, ic.Budget(1.0), noise=ic.noise.SimulatedNoise(1))
    with pytest.raises(InvalidParameterError, match="textbook mode"):
        ic.OnlineIC.textbook(data, epsilon=1.0)
    with pytest.raises(InvalidParameterError, match="rows_per_person must be left out"):
        ic.OnlineIC(data, ic.Budget(1.0), rows_per_person=2)
    with pytest.raises(InvalidParameterError, match=r"rows_per_person=1; write .*rows_per_person=64"):
        data.draw_on(ic.TableBudget(ic.Budget(1.0, 1e-9)))

    assert ((), 0) == (data.budgets, data.reads)


def test_a_total_of_persons_is_shared_by_sessions():
    data = table()
    total = ic.TableBudget(ic.Budget(1.0, 1e-9), rows_per_person=64)
    data.draw_on(total)
    session = ic.OnlineIC(data, total.share(0.5))

    assert 4000 * session.answer(ic.where(ward="ER")).value == pytest.approx(
        session.answer(ic.where(ward="ER")).count
    )
    with pytest.raises(InvalidParameterError, match="must be asked by a session"):
        data.check_promised(2)
    # a share pays for one part, but what counts parts as records would tell 64 times too much
    for ask in (
        lambda: offline.mean(data, "age", epsilon=0.001),
        lambda: ic.baselines.noisy_histogram(data, total.share(0.1)),
    ):
        with pytest.raises(InvalidParameterError, match="must be asked by a session"):
            ask()
    assert 1 == len(data.budgets)


def test_a_session_that_did_not_open_settles_no_parts(tmp_path):
    path, other = tmp_path / "a.db", ic.PrivateData.from_records({"age": [3]}, ic.Domain.of(age=range(20)))
    ic.OnlineIC(other, ic.Budget(1.0, 1e-9), ledger=path, table="other").close()
    small = tmp_path / "small.db"
    ic.OnlineIC(table(), ic.Budget(0.02, 1e-9), ledger=small, table="visits").close()
    data = table()

    with pytest.raises(LedgerMismatchError):
        ic.OnlineIC(data, ic.Budget(0.01, 1e-9), ledger=path, table="visits")
    with pytest.raises(LedgerMismatchError):
        ic.OnlineIC.resume(small, data, table="another")
    assert (UNIT, Unit("id", units=16), Unit("id", units=1)) == data.units()
    assert UNIT == ic.OnlineIC(data, ic.Budget(1.0, 1e-9)).unit


def test_two_sessions_that_open_at_once_do_not_mix_their_parts(monkeypatch):
    others, parts, told = [], Parted.parts, queue.SimpleQueue()
    with telling_locks(lambda: told.put("waits")):
        data = table()

    def other():
        data.cut_into(Unit("id", units=1))
        told.put("came in")

    def interrupted(self, columns, rows):
        if not others:
            others.append(threading.Thread(target=other))
            others[0].start()
            others.append(told.get(timeout=FOR_EVER))
        return parts(self, columns, rows)

    monkeypatch.setattr(Parted, "parts", interrupted)
    data.cut_into(Unit("id", units=16))
    others[0].join()

    assert "waits" == others[1]
    assert (4000, 4000 * data.unit.units) == (data.n, data.mass)
    assert data.mass == cells(data).sum()


@pytest.mark.parametrize(
    "held",
    [
        np.array([2.0**53, 1.0]),
        np.array([2**24, 1], np.float32),
        [2.0**60, "ann"],
        np.array([2.0**11, 1.0], np.float16),
    ],
    ids=["float64", "float32", "mixed", "float16"],
)
def test_persons_that_a_float_does_not_tell_apart_are_refused(held):
    rows = {"id": held, "age": [1, 2], "ward": ["ER", "ER"]}
    with pytest.raises(InvalidDataError, match="of floats those that are exact"):
        ic.PrivateData.from_records(rows, DOMAIN, unit=UNIT)
    whole = ["9007199254740993", 1] if isinstance(held, list) else held - 1
    assert 2 == ic.PrivateData.from_records({**rows, "id": whole}, DOMAIN, unit=UNIT).n


@pytest.mark.parametrize(("epsilon", "units"), [(1.0, 64), (0.01, 16), (0.001, 1)])
def test_where_there_is_no_plan_persons_have_fewer_parts(epsilon, units):
    data = table()
    session = ic.OnlineIC(data, ic.Budget(epsilon, 1e-9))

    assert (4000, Unit("id", units=units), units * 4000) == (session.n, session.unit, data.mass)
    assert np.array_equal(cells(table(units=units)), cells(data))
    assert (f"in {units} part" in repr(session)) is (units < 64)
    # what was released of these parts holds for them, and for no others
    assert (data.unit,) == data.units()
    with pytest.raises(InvalidParameterError, match="unit must be the one"):
        data.cut_into(Unit("id", units=16 if units != 16 else 1))


def test_a_session_of_simulated_noise_settles_the_parts_too():
    data = table()
    ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))

    assert (UNIT,) == data.units()


def test_with_no_plan_at_all_the_message_is_that_of_one_part_a_person():
    data = table()
    with pytest.raises(InfeasibleAccuracyError, match=r"^certify must be >= .* at n="):
        ic.OnlineIC(data, ic.Budget(1.0, 1e-9), certify=1e-9)
    assert (UNIT, 0) == (data.unit, data.reads)


def test_a_file_of_fewer_parts_is_gone_on_with(tmp_path):
    path = tmp_path / "one.db"
    with ic.OnlineIC(table(), ic.Budget(0.01, 1e-9), ledger=path, table="visits") as session:
        assert 16 == session.unit.units
    with ic.OnlineIC.resume(path, table()) as again:
        assert 16 == again.unit.units
    with ic.OnlineIC(table(), ic.Budget(0.01, 1e-9), ledger=path, table="visits") as again:
        assert 16 == again.unit.units


def test_a_ledger_file_keeps_the_unit(tmp_path):
    path, data = tmp_path / "one.db", table()
    with ic.OnlineIC(data, ic.Budget(1.0, 1e-9), ledger=path, table="visits") as session:
        answer = session.answer(ic.where(ward="ER"))
    report = ic.audit.verified(ic.ledger.read(path))

    assert (4000, UNIT, 64, ()) == (report.n, report.unit, report.rows_per_person, report.problems)
    for other in (Unit("id", units=16), None):
        rows = ROWS if other else {name: ROWS[name] for name in ("age", "ward")}
        with pytest.raises(LedgerMismatchError, match="unit must be"):
            ic.OnlineIC.resume(path, ic.PrivateData.from_records(rows, DOMAIN, unit=other))
    with pytest.raises(LedgerMismatchError, match="unit must be"):
        ic.OnlineIC(table(units=16), ic.Budget(1.0, 1e-9), ledger=path, table="visits")
    with ic.OnlineIC.resume(path, table()) as again:
        repeated = again.answer(ic.where(ward="ER"))
    assert (answer.value, answer.count, UNIT) == (repeated.value, repeated.count, again.unit)


def rows_of(columns, most):
    unit = Unit("id", weigh="rows", at_most=most)
    return ic.PrivateData.from_records(columns, DOMAIN, unit=unit, neighbours="add-remove")


@pytest.mark.parametrize("most", [1, 2, 3, 50])
def test_of_rows_at_most_so_many_count_and_each_at_most_once(most):
    rows = random_rows(80)
    whole = np.zeros(DOMAIN.shape, int)
    for person in np.unique(rows["id"]):
        own = {name: np.asarray(column)[rows["id"] == person] for name, column in rows.items()}
        kept, held = cells(rows_of(own, most)), cells(ic.PrivateData.from_records(own, DOMAIN))
        assert min(most, len(own["id"])) == kept.sum()
        assert (kept <= held).all()
        whole += kept
    order = np.random.default_rng(2).permutation(len(rows["id"]))
    mixed = {name: np.asarray(column)[order] for name, column in rows.items()}

    assert np.array_equal(whole, cells(rows_of(mixed, most)))  # by a person's own rows alone


def test_which_rows_count_follows_no_cell():
    owner = np.repeat(np.arange(3000), 4)
    columns = {"id": owner, "age": np.tile([0, 1, 2, 3], 3000), "ward": ["ER"] * 12000}
    kept = cells(rows_of(columns, 1))[:4, 0]

    assert 3000 == kept.sum()
    assert np.abs(kept - 750).max() < 5 * 25


def test_a_session_on_rows_counts_rows_at_the_noise_of_so_many():
    owner = np.repeat(np.arange(2000), 3)
    columns = {"id": owner, "age": owner % 20, "ward": np.tile(["ER", "ICU", "home"], 2000)}
    session = ic.OnlineIC(rows_of(columns, 2), ic.Budget(1.0, 1e-9), noise=SimulatedNoise(3), max_queries=20)
    answer = session.answer(ic.where(ward="ER"))

    assert abs(session.n - 4000) <= session.n_bound
    assert 2 == session.statistics().rows_per_person
    assert session.plan.sparse.epsilon <= 0.95 / 2
    assert "of which at most 2 count, and whether it is there at all" in repr(session)
    assert "persons" not in repr(session)
    assert "rows" in repr(answer)
    with pytest.raises(InvalidParameterError, match="weigh must be 'persons' with a number between two ends"):
        ic.PrivateData.from_records(
            {"id": [1], "y": [0.5]}, ic.Domain.of(y=ic.number(0, 1)), neighbours="add-remove",
            unit=Unit("id", weigh="rows", at_most=2),
        )  # fmt: skip


def test_a_file_keeps_how_many_rows_count(tmp_path):
    path, columns = tmp_path / "rows.db", random_rows(300)
    with ic.OnlineIC(rows_of(columns, 2), ic.Budget(9.0, 1e-3), ledger=path, table="visits") as session:
        n = session.n
    assert ic.audit.verified(ic.ledger.read(path)).whole
    with ic.OnlineIC.resume(path, rows_of(columns, 2)) as again:
        assert n == again.n
    with pytest.raises(LedgerMismatchError, match="unit must be"):
        ic.OnlineIC.resume(path, rows_of(columns, 3))


@pytest.mark.parametrize("form", ["columns", "records", "frame", "file", "database"])
def test_a_column_of_persons_that_is_missing_is_told_as_that_of_the_unit(form, tmp_path):
    held = {"ID": ROWS["id"], "age": ROWS["age"], "ward": ROWS["ward"]}
    records = [dict(zip(held, row, strict=True)) for row in zip(*held.values(), strict=True)]
    if form == "file":
        lines = [",".join(map(str, row.values())) for row in records]
        (tmp_path / "t.csv").write_text("\n".join(["ID,age,ward", *lines, ""]))
        load = lambda domain: ic.PrivateData.from_csv(tmp_path / "t.csv", domain, unit=UNIT)  # noqa: E731
    elif form == "database":
        base = databases.opened()
        base.execute("CREATE TABLE t (ID, age, ward)")
        load = lambda domain: ic.PrivateData.from_dbapi(base, "t", domain, unit=UNIT)  # noqa: E731
    elif form == "frame":
        frame = pytest.importorskip("pandas").DataFrame(held)
        load = lambda domain: ic.PrivateData.from_frame(frame, domain, unit=UNIT)  # noqa: E731
    else:
        given = held if form == "columns" else records
        load = lambda domain: ic.PrivateData.from_records(given, domain, unit=UNIT)  # noqa: E731

    with pytest.raises(InvalidDataError, match=r"for the persons of Unit\(person='id'\), got") as found:
        load(DOMAIN)
    assert "did you mean 'ID'" in str(found.value)
    assert "attribute" not in str(found.value)
    with pytest.raises(InvalidDataError, match=r"bed"):
        load(ic.Domain.of(age=range(20), bed=range(3)))


def test_a_check_finds_rows_of_nobody_as_loading_does(tmp_path, capsys):
    gaps = {**ROWS, "id": ["ann", None, "ann", "ann", "eve", "bob", None]}
    lines = [f"{name or ''},{age},{ward}" for name, age, ward in zip(*gaps.values(), strict=True)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["id,age,ward", *lines, ""]))
    frame = pytest.importorskip("pandas").DataFrame(gaps)

    for table, found in (
        (path, "'' in 2 lines: 3, 8"),
        (gaps, "None in 2 rows"),
        (frame, " in 2 rows: 1, 6"),
    ):
        assert ic.PrivateData.check(table, DOMAIN).fits
        report = ic.PrivateData.check(table, DOMAIN, unit=UNIT)
        assert ["id"] == [misfit.column for misfit in report.misfits]
        assert found in report.curator_report()
        assert "->" not in report.curator_report()  # no way of reading them makes them somebody's
    missing = ic.PrivateData.check(path, DOMAIN, unit=ic.Unit(person="ID"))
    assert "for the persons of Unit(person='ID'), got 0; did you mean 'id'" in str(missing)
    with pytest.raises(InvalidParameterError, match="unit must be a Unit or None"):
        ic.PrivateData.check(path, DOMAIN, unit="id")

    (tmp_path / "d.json").write_text(DOMAIN.to_json())
    command = ["ask", "--csv", path, "--domain", tmp_path / "d.json", "--person", "id", "--epsilon", "1"]
    assert 1 == main([*map(str, command), "--show-data-errors", str(path)])
    assert "'' in 2 lines: 3, 8" in capsys.readouterr().err


def test_an_identifier_that_is_no_text_is_not_told_to_be_a_gap():
    rows = {"id": [1.5], "age": [3], "ward": ["ER"]}
    with pytest.raises(InvalidDataError, match=r"id must hold .*; convert the column to texts"):
        ic.PrivateData.from_records(rows, DOMAIN, unit=UNIT)
    report = ic.PrivateData.check(rows, DOMAIN, unit=UNIT)
    assert "optional" not in report.curator_report()
    assert repr(report).startswith("TableReport(1 row, 1 misfit;")
