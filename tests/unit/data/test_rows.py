"""Records kept as rows: the same exact integers as dense counts, whatever the path."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineic.data import MAX_CELLS, PrivateData
from onlineic.data import private as module
from onlineic.data import rows as rows_module
from onlineic.data.rows import Rows, narrowest
from onlineic.domain import Domain, optional
from onlineic.errors import DomainMismatchError, InvalidDataError, TooLargeError
from onlineic.queries import Partition, between, one_of, weights, where
from onlineic.queries.query import totals
from onlineic.queries.tables import Tables

LARGE = Domain.of({f"a{i}": 100 for i in range(14)})


@st.composite
def tables(draw):
    """A small domain, its rows, how many records each stands for, and queries."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 5, 7]), min_size=1, max_size=4))
    domain = Domain.of({f"a{axis}": range(size) for axis, size in enumerate(shape)})
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(1, 40))
    codes = [rng.integers(0, size, count) for size in shape]
    weighted = draw(st.booleans())
    number = rng.integers(0, 5, count) + (np.arange(count) == 0) if weighted else None
    queries = []
    for _ in range(12):
        conditions = {}
        for name, size in zip(domain.names, shape, strict=True):
            low, high = sorted(rng.integers(0, size, 2).tolist())
            kind = rng.integers(0, 5)
            if kind <= 1:
                conditions[name] = between(low, high)
            elif kind == 2:
                conditions[name] = one_of(*{low, high})
            elif kind == 3 and size > 1:
                conditions[name] = weights(rng.random(size))
        query = where(conditions)
        queries.append((query if rng.random() < 0.7 else ~query).bind(domain))
    return domain, codes, number, queries


@given(
    tables(),
    st.sampled_from([(0, 0.0), (10**9, 0.0), (10**9, 3.0), (10**9, 10.0**9)]),
    st.sampled_from([0.01, 0.1, 4]),
)
@settings(max_examples=100, deadline=None)
def test_rows_give_the_integers_of_dense_counts(table, prices, rows_a_sum):
    domain, codes, number, queries = table
    cells = np.zeros(domain.shape)
    np.add.at(cells, tuple(codes), 1 if number is None else number)
    columns = [column.astype(narrowest(size)) for column, size in zip(codes, domain.shape, strict=True)]
    kept = None if number is None else number.astype(np.float64)
    dense, n = Tables(cells, MAX_CELLS), float(cells.sum())
    with pytest.MonkeyPatch.context() as patch:  # all by summed-area tables, bitmaps, some of them, or masks
        patch.setattr(rows_module, "MASKS", prices[0])
        patch.setattr(rows_module, "QUERIES_A_CUT", prices[1])
        patch.setattr(rows_module, "SHARE", 0)
        patch.setattr(rows_module, "SMALL_TABLE", 0 if prices[0] else 2**18)
        patch.setattr(rows_module, "ROWS_A_SUM", rows_a_sum)  # all attributes are counted together, or some
        patch.setattr(rows_module, "BLOCK", 16)
        rows = Rows(columns, kept, domain.shape)
        assert totals(queries, dense, n).tolist() == totals(queries, rows, n).tolist()
        assert [one.total(dense, n) for one in queries] == [one.total(rows, n) for one in queries]
        axes = tuple(range(len(domain.shape)))
        finest = Partition(domain, axes, tuple(np.arange(size) for size in domain.shape))
        assert cells.ravel().astype(int).tolist() == rows.measure(finest).tolist()
        halves = Partition(domain, axes[:1], (np.minimum(np.arange(domain.shape[0]), 1),))
        assert halves.measure(dense.table(axes[:1])).tolist() == rows.measure(halves).tolist()


@pytest.mark.parametrize("price", [0.0, 10.0**9])
def test_columns_of_every_width_compare_without_wrapping(price, monkeypatch):
    monkeypatch.setattr(rows_module, "QUERIES_A_CUT", price)
    monkeypatch.setattr(rows_module, "BITMAP_BYTES", 2**20)  # a million bitmaps take their time
    rng = np.random.default_rng(0)
    for size in (2, 255, 256, 257, 2**16, 2**16 + 1, 2**20):
        domain = Domain.of(a=size, b=2)
        codes = np.concatenate([[0, size - 1, size // 2], rng.integers(0, size, 200)])
        rows = Rows([codes.astype(narrowest(size)), np.ones(len(codes), np.uint8)], None, domain.shape)
        assert narrowest(size).itemsize == (1 if size <= 256 else 2 if size <= 2**16 else 4)
        for low, high in ((0, 1), (1, size), (size - 1, size), (size // 2, size), (0, size)):
            assert int(((codes >= low) & (codes < high)).sum()) == rows.box((0,), (low,), (high,))


def test_records_of_a_large_domain_are_counted():
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, 100, 3000) for name in LARGE.names}
    data = PrivateData.from_records(columns, LARGE)
    written = where(a0=between(10, 60), a13=one_of(1, 5, 70), a5=between(0, 80))
    query = written.bind(LARGE)
    truth = (columns["a0"] >= 10) & (columns["a0"] <= 60) & np.isin(columns["a13"], [1, 5, 70])
    truth &= columns["a5"] <= 80

    assert (3000, int(truth.sum())) == (data.n, data.exact_counts(query))
    assert [3000 - truth.sum(), 3000] == data.exact_counts_many(
        [(~written).bind(LARGE), where().bind(LARGE)]
    ).tolist()
    assert repr(data).startswith("PrivateData(n=3000, domain=100 x 100")


def test_aggregated_rows_of_a_large_domain_are_weighted():
    columns = {name: [1, 2, 1] for name in LARGE.names}
    data = PrivateData.from_counts(columns, [2**40, 5, 0], LARGE)

    assert 2**40 + 5 == data.n
    assert 5 == data.exact_counts(where(a3=2).bind(LARGE))
    assert 2**40 == data.exact_counts(where(a3=1, a4=one_of(1, 50)).bind(LARGE))


def test_both_ways_of_holding_a_table_give_the_same_counts(monkeypatch, tmp_path):
    domain = Domain.of(age=optional(range(17, 91)), sex=["F", "M"])
    (tmp_path / "t.csv").write_text("n,age,sex\n2,30,F\n0,31,M\n7,,M\n1,90,F\n")
    asked = [where(age=None).bind(domain), where(sex="F", age=between(17, 90)).bind(domain)]
    dense = PrivateData.from_csv(tmp_path / "t.csv", domain, count="n")
    monkeypatch.setattr(module, "MAX_CELLS", 100)
    rows = PrivateData.from_csv(tmp_path / "t.csv", domain, count="n")

    assert type(dense._tables) is Tables
    assert type(rows._tables) is Rows
    assert [7, 3] == dense.exact_counts_many(asked).tolist() == rows.exact_counts_many(asked).tolist()


def test_which_tables_are_kept_depends_on_queries_and_sizes_alone(monkeypatch):
    monkeypatch.setattr(rows_module, "CACHE_BYTES", 2**17)
    monkeypatch.setattr(rows_module, "SMALL_TABLE", 10**4)
    kept = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        columns = {name: np.sort(rng.integers(0, 100, 5000) // (1 + 99 * seed)) for name in LARGE.names}
        data = PrivateData.from_records(columns, LARGE)
        for axis in range(6):
            query = where({f"a{axis}": between(3, 20), f"a{axis + 1}": between(0, 4)}).bind(LARGE)
            data.exact_counts_many([query] * 100)
        kept.append((list(data._tables._areas), data._tables._bytes))

        for axes, parts in (((1, 3), 7), ((0, 2, 4), 3), ((5,), 9)):  # 10^4 cells, 10^6, 100
            cuts = tuple(np.arange(100) * parts // 100 for _ in axes)
            coded = sum(
                cuts[0][columns[f"a{axis}"]] * parts**place for place, axis in enumerate(reversed(axes))
            )
            found = data.exact_counts(Partition(LARGE, axes, cuts))
            assert found.tolist() == np.bincount(coded, minlength=parts ** len(axes)).tolist()
        kept.append((list(data._tables._areas), data._tables._bytes))

    assert kept[:2] == kept[2:]
    assert {(1, 3), (5,)} <= {*kept[1][0]}
    assert (0, 2, 4) not in kept[1][0]
    assert 0 < sum(len(axes) == 2 for axes in kept[0][0]) < 6
    assert kept[0][1] <= 2**17


def test_one_pass_counts_the_tables_of_all_sets_of_the_attributes_that_fit(monkeypatch):
    monkeypatch.setattr(rows_module, "CORNER_AXES", 4)
    shape, rng = (3, 9, 2, 5, 4, 200), np.random.default_rng(4)
    columns = [rng.integers(0, size, 4000).astype(np.uint8) for size in shape]
    rows = Rows(columns, None, shape)
    passes = []
    monkeypatch.setattr(
        Rows, "_table", lambda self, axes, old=Rows._table: passes.append(axes) or old(self, axes)
    )
    domain = Domain.of({f"a{axis}": size for axis, size in enumerate(shape)})
    pairs = [*combinations(range(6), 2)]
    for pair in pairs:
        found = rows.measure(Partition(domain, pair, tuple(np.arange(shape[axis]) for axis in pair)))
        expected = np.zeros([shape[axis] for axis in pair], int)
        np.add.at(expected, tuple(columns[axis] for axis in pair), 1)
        assert expected.ravel().tolist() == found.tolist()
    measured = len(passes)

    # 1,000 sums, a quarter of the rows: 4 x 10 x 3 x 6 of them
    assert measured < len(pairs)
    assert {*pairs} <= rows._areas.keys()
    assert (0, 1, 2, 3) == passes[0]
    assert all(np.prod([shape[axis] + 1 for axis in axes]) <= 1000 or len(axes) == 2 for axes in passes)
    for axes in [*rows._areas]:
        low = [int(rng.integers(0, shape[axis])) for axis in axes]
        inside = np.logical_and.reduce([columns[axis] >= at for axis, at in zip(axes, low, strict=True)])
        assert inside.sum() == rows.box(axes, tuple(low), tuple(shape[axis] for axis in axes))
    assert measured == len(passes)
    held = (area.sums if area.sums.base is None else area.sums.base for area in rows._areas.values())
    # no table keeps a larger one in memory
    assert rows._bytes == sum(one.nbytes + rows_module.OWN_BYTES[0] for one in held)


def test_what_is_counted_together_depends_on_the_domain_and_n_alone():
    shape, rng = (4, 6, 5, 3, 7), np.random.default_rng(6)
    domain, kept = Domain.of({f"a{axis}": size for axis, size in enumerate(shape)}), []
    for columns in ([rng.integers(0, size, 3000) for size in shape], [np.zeros(3000)] * 5):
        rows = Rows([column.astype(np.uint8) for column in columns], None, shape)
        rows.measure(Partition(domain, (1,), (np.arange(6),)))
        kept.append(([*rows._areas], rows._bytes))

    assert kept[0] == kept[1]
    assert (
        len(kept[0][0]) == 7
    )  # of three attributes: four have 5 x 7 x 6 x 4 sums, above a quarter of the rows


def test_tables_that_are_counted_together_are_due_once_queries_took_as_long_as_a_pass(monkeypatch):
    shape, rng = (5,) * 8, np.random.default_rng(5)
    rows = Rows([rng.integers(0, 5, 10**4).astype(np.uint8) for _ in shape], None, shape)
    triples = [*combinations(range(8), 3)]
    for triple in triples[: rows_module.MASKS]:
        rows.box(triple, (0, 1, 0), (2, 4, 5))
    asked = triples[rows_module.MASKS]

    assert not rows._areas  # no set was asked twice, and a table pays for its cells besides
    rows.box(asked, (0, 1, 0), (2, 4, 5))
    assert asked in rows._areas
    assert len([axes for axes in rows._areas if len(axes) == 3]) >= 4
    assert rows._scans == 0


@pytest.mark.parametrize("count", [3, 4])
def test_sets_of_which_a_pass_serves_few_wait_for_their_own_queries(count):
    rng = np.random.default_rng(7)
    shape = (2,) * 60 if count == 3 else (5,) * 8
    rows = Rows([rng.integers(0, size, 2000).astype(np.uint8) for size in shape], None, shape)
    sets = [*combinations(range(len(shape)), count)][:60]
    for axes in sets:
        rows.box(axes, (0,) * count, (1,) * count)

    assert not rows._areas
    for _ in range(rows_module.MASKS + 16):
        rows.box(sets[7], (0,) * count, (1,) * count)
    assert sets[7] in rows._areas
    assert rows._passes == 0


def test_passes_are_shared_a_limited_number_of_times(monkeypatch):
    monkeypatch.setattr(rows_module, "PASSES", 16)
    shape, rng = (5,) * 8, np.random.default_rng(8)
    rows = Rows([rng.integers(0, 5, 10**4).astype(np.uint8) for _ in shape], None, shape)
    monkeypatch.setattr(Rows, "_made", lambda self, axes: setattr(self, "_scans", 0))  # evicted at once
    for _ in range(20):
        for triple in combinations(range(8), 3):
            rows.box(triple, (0, 1, 0), (2, 4, 5))

    assert rows._passes == 16


@pytest.mark.parametrize("one_by_one", [False, True])
def test_which_bitmaps_are_kept_depends_on_queries_and_sizes_alone(one_by_one, monkeypatch):
    monkeypatch.setattr(rows_module, "BITMAP_BYTES", 160_000)  # of one attribute: 101 x (632 + 112) bytes
    kept = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        columns = {name: np.sort(rng.integers(0, 100, 5000) // (1 + 99 * seed)) for name in LARGE.names}
        data = PrivateData.from_records(columns, LARGE)
        few = where(a8=between(3, 20), a9=between(0, 4)).bind(LARGE)
        often = [where({f"a{axis}": between(3, 20)}).bind(LARGE) for axis in (4, 2, 6)]
        found = []
        for query, count in ((few, 12), *((one, 13) for one in often)):
            if one_by_one:
                found += [data.exact_counts(query) for _ in range(count)]
            else:
                found += data.exact_counts_many([query] * count).tolist()
        truth = [int(((columns[f"a{axis}"] >= 3) & (columns[f"a{axis}"] <= 20)).sum()) for axis in (4, 2, 6)]
        assert found[12::13] == truth
        kept.append((list(data._tables._below), data._tables._bitmap_bytes))

    assert kept[0] == kept[1] == ([4, 2], 2 * 101 * 744)  # 13 queries of 100 codes, and no room for a third


def test_what_no_column_can_hold_is_refused(monkeypatch):
    with pytest.raises(TooLargeError, match=r"b must have at most .* bin it"):
        PrivateData.from_records({"a": [1], "b": [2]}, Domain.of(a=2, b=2**41))
    with pytest.raises(TooLargeError, match="from_records"):
        PrivateData(np.ones(3, np.int64), LARGE)
    with pytest.raises(InvalidDataError, match="one entry a row"):
        PrivateData.from_counts({name: [1] for name in LARGE.names}, [1, 2], LARGE)
    with pytest.raises(InvalidDataError, match="one or more"):
        PrivateData.from_records({name: [] for name in LARGE.names}, LARGE)
    with pytest.raises(InvalidDataError, match="got 14 misfits"):
        PrivateData.from_records({name: [0, 100] for name in LARGE.names}, LARGE)
    monkeypatch.setattr(module, "MAX_ROWS", 1)
    with pytest.raises(TooLargeError, match="from_counts"):
        PrivateData.from_records({name: [0, 1] for name in LARGE.names}, LARGE)


def test_questions_over_another_domain_are_refused():
    data = PrivateData.from_records({name: [1] for name in LARGE.names}, LARGE)
    with pytest.raises(DomainMismatchError):
        data.exact_counts(where(a0=1).bind(Domain.of(a0=100)))


def test_a_file_of_many_lines_is_read_as_one_of_few(tmp_path, monkeypatch):
    monkeypatch.setattr("onlineic.data.file_parts.LINES", 3)
    monkeypatch.setattr("onlineic.data.file_parts.BLOCK", 40)
    monkeypatch.setattr("onlineic.data.table_file.DISTINCT", 2)
    domain = Domain.of(a=range(10), b=["x", "y, z"])
    lines = [f"{i % 10},{'x' if i % 3 else chr(34) + 'y, z' + chr(34)}" for i in range(50)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *lines[:7], "", *lines[7:], ""]))
    data = PrivateData.from_csv(tmp_path / "t.csv", domain)

    assert (50, 17) == (data.n, data.exact_counts(where(b="y, z").bind(domain)))
    assert 5 == data.exact_counts(where(a=3).bind(domain))

    (tmp_path / "t.csv").write_text("\n".join(["a,b", *lines, "11,x", "12,y", "11,w"]))
    with pytest.raises(InvalidDataError, match=r"(?s)2 misfits.*a must be .*b must be "):
        PrivateData.from_csv(tmp_path / "t.csv", domain)
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *lines, "11,x", "1"]))
    with pytest.raises(InvalidDataError, match="as many fields as the header"):
        PrivateData.from_csv(tmp_path / "t.csv", domain)
