"""The private table: loading, exact counts, and what it never shows."""

import copy
import logging
import pickle
import threading

import numpy as np
import pytest

from onlineic.data import PrivateData
from onlineic.data import private as module
from onlineic.datasets import adult5
from onlineic.domain import Domain, binned, optional
from onlineic.errors import DomainMismatchError, InternalError, InvalidDataError, TooLargeError
from onlineic.queries import Partition, at_least, between, dense, one_of, tables, weights, where

DOMAIN = Domain.of(age=range(17, 91), sex=["F", "M"])
SMALL = Domain.of(a=2, b=["x", "y", "z"])
COLUMNS = {"age": [30, 30, 45, 17, 90], "sex": ["F", "M", "F", "F", "M"]}


def counts(data, **conditions):
    return data.exact_counts(where(**conditions).bind(data.domain))


def read(tmp_path, text, domain=DOMAIN, **options):
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return PrivateData.from_csv(path, domain, **options)


# ---------------------------------------------------------------- counts


def test_counts_of_records():
    data = PrivateData.from_records(COLUMNS, DOMAIN)

    assert 5 == data.n
    assert 3 == counts(data, sex="F")
    assert 2 == counts(data, sex="F", age=between(30, 50))
    assert 5 == counts(data)
    assert int is type(counts(data, sex="F"))


def test_structured_arrays_and_mappings_give_the_same_table():
    table = np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=[("age", "i2"), ("sex", "U1")])

    assert 2 == counts(PrivateData.from_records(table, DOMAIN), sex="F", age=between(30, 50))


def test_masked_entries_count_in_the_missing_cell():
    domain = Domain.of(a=optional(["x", "?"]))
    data = PrivateData.from_records({"a": np.ma.masked_array(["x", "x", "?"], [False, True, False])}, domain)

    assert [1, 1, 1] == [counts(data, a=label) for label in ("x", "?", None)]


def test_golden_counts_of_the_shipped_adult_table():
    columns, multiplicities = adult5()
    race = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]
    domain = Domain.of(
        age=range(17, 91),
        education_num=range(1, 17),
        race=race,
        sex=["Female", "Male"],
        income=["<=50K", ">50K"],
    )
    data = PrivateData.from_counts(columns, multiplicities, domain)

    assert (23_680, 48_842) == (domain.size, data.n)
    assert 16_192 == counts(data, sex="Female")
    assert 11_687 == counts(data, income=">50K")
    assert 7_268 == counts(data, sex="Female", age=between(30, 50))
    assert 297 == counts(data, age=20, education_num=10, race="White", sex="Female", income="<=50K")


def test_fractional_queries_count_on_their_grid():
    data = PrivateData(np.array([1, 2, 3, 4, 5, 6]), SMALL)
    query = where(b=weights([0.25, 0.5, 1])).bind(SMALL)

    assert (2, 1 * 5 + 2 * 7 + 4 * 9) == (query.grid_bits, data.exact_counts(query))


def test_partition_counts_are_int64_and_many_queries_are_one_array():
    data = PrivateData(np.array([[1, 2, 3], [4, 5, 6]]), SMALL)
    blocks = data.exact_counts(Partition(SMALL, (1,), (np.array([0, 1, 0]),)))
    many = data.exact_counts_many([where(a=0).bind(SMALL), where().bind(SMALL)])

    assert ([14, 7], np.int64) == (blocks.tolist(), blocks.dtype)
    assert ([6, 21], np.int64) == (many.tolist(), many.dtype)


def test_counts_stay_exact_up_to_two_to_the_53():
    top = 2**53
    cells = np.array([1, 2, 3, top - 12, 5, 1])
    data = PrivateData(cells, SMALL)
    full = Partition(SMALL, (0, 1), (np.arange(2), np.arange(3)))

    assert top == data.n
    assert cells.tolist() == data.exact_counts(full).tolist()
    assert top - 12 + 5 + 1 == counts(data, a=1)
    assert 1 + 5 + 1 == counts(data, a=0, b="x") + counts(data, a=1, b=one_of("y", "z"))
    assert top - 1 == data.exact_counts((~where(a=0, b="x")).bind(SMALL))


def test_a_grid_too_fine_for_the_number_of_records_is_our_own_bug():
    cells = np.array([1, 2, 3, 2**34, 5, 6])
    data = PrivateData(cells, SMALL)
    fine = where(b=weights([0.1, 0.2, 0.3])).bind(SMALL)
    limit = where(b=weights([0.1, 0.2, 0.3])).bind(SMALL, 18)
    expected = sum(int(a) * int(b) for a, b in zip(cells, limit.weights().ravel(), strict=True))

    assert expected == data.exact_counts(limit)
    with pytest.raises(InternalError, match="at most 2"):
        data.exact_counts(fine)


def test_order_of_rows_does_not_matter_and_rows_may_repeat():
    first = PrivateData.from_counts({"age": [30, 40, 30], "sex": ["F", "M", "F"]}, [2, 0, 3], DOMAIN)
    second = PrivateData.from_counts({"sex": ["F"], "age": [30]}, np.array([5], np.uint8), DOMAIN)

    assert (5, 5) == (first.n, second.n)
    assert 5 == counts(first, age=30, sex="F") == counts(second, age=30, sex="F")


def test_counts_over_many_axes_at_once():
    domain = Domain.of({f"b{i}": 2 for i in range(18)})
    cells = np.random.default_rng(0).integers(0, 3, domain.size)
    data = PrivateData(cells, domain)
    point = where({f"b{i}": i % 2 for i in range(18)})
    expected = int(cells.reshape(domain.shape)[tuple(i % 2 for i in range(18))])

    assert expected == data.exact_counts(point.bind(domain))
    assert data.n - expected == data.exact_counts((~point).bind(domain))


def test_a_million_records_load_fast_and_exact():
    rng = np.random.default_rng(0)
    age = rng.integers(17, 91, 10**6).astype(np.int8)
    sex = rng.integers(0, 2, 10**6).astype(bool)
    data = PrivateData.from_records({"age": age, "sex": sex}, Domain.of(age=range(17, 91), sex=[False, True]))

    assert int(((age >= 40) & sex).sum()) == counts(data, age=at_least(40), sex=True)


def test_later_changes_of_the_callers_counts_do_not_reach_the_data():
    cells = np.ones(6, np.int64)
    data = PrivateData(cells, SMALL)
    cells[:] = 9

    assert 3 == counts(data, a=1)


# ---------------------------------------------------------------- refusals at loading


@pytest.mark.parametrize(
    "cells",
    [
        [0] * 6,
        [],
        [1] * 5,
        np.ones((3, 2), np.int64),
        np.ones((6, 1), np.int64),
        [1, 2, 3, 4, 5, -1],
        [1.0] * 6,
        [True] * 6,
        [1, 2, 3, 4, 5, None],
        ["1"] * 6,
        [1, 2, 3, 4, 5, np.nan],
        [2**53, 1, 0, 0, 0, 0],
        [2**62, 2**62, 2**62, 2**62, 5, 0],
        np.array([2**63, 2**63, 5, 0, 0, 0], np.uint64),
        np.array([2**64 - 1] * 6, np.uint64),
        [10**30, 0, 0, 0, 0, 0],
        np.ma.masked_array([1] * 6, [True] * 6),
        None,
        5,
    ],
    ids=repr,
)
def test_cells_must_be_a_sane_contingency_table(cells):
    """Sums of int64 wrap around: 4 times 2^62 plus 5 is 5."""
    with pytest.raises(InvalidDataError, match="must"):
        PrivateData(cells, SMALL)


@pytest.mark.parametrize(
    "multiplicities",
    [
        *[[1, -1], [1.0, 2.0], [1], [1, 2, 3], [[1], [2]], [True, False], ["1", "2"], [np.nan, 1], None, 3],
        *[[2**62, 2**62], np.array([2**63, 2**63], np.uint64), [2**53, 1], [0, 0]],
        np.ma.masked_array([1, 2], [True, False]),
    ],
    ids=repr,
)
def test_multiplicities_must_be_integers_one_a_row(multiplicities):
    with pytest.raises(InvalidDataError, match="must"):
        PrivateData.from_counts({"age": [30, 40], "sex": ["F", "M"]}, multiplicities, DOMAIN)


def test_no_records_are_refused():
    for columns in ({"age": [], "sex": []}, {"age": np.array([], np.int64), "sex": np.array([], "U1")}):
        with pytest.raises(InvalidDataError, match="one or more"):
            PrivateData.from_records(columns, DOMAIN)
        with pytest.raises(InvalidDataError, match="one or more"):
            PrivateData.from_counts(columns, np.array([], np.int64), DOMAIN)


def test_rows_outside_the_domain_are_never_dropped():
    for wrong in ({"age": [30, 16], "sex": ["F", "F"]}, {"age": [30, 30], "sex": ["F", None]}):
        with pytest.raises(InvalidDataError, match=r"got (other|missing) values"):
            PrivateData.from_records(wrong, DOMAIN)
        with pytest.raises(InvalidDataError, match=r"got (other|missing) values"):
            PrivateData.from_counts(wrong, [1, 0], DOMAIN)


def test_domains_too_large_are_refused_before_anything_is_read(monkeypatch):
    huge = Domain.of(a=2**41, b=2**41)
    for build in (
        lambda: PrivateData(np.ones(3, np.int64), huge),
        lambda: PrivateData.from_records({"a": iter(()), "b": 1 / 3}, huge),
        lambda: PrivateData.from_counts(None, None, huge),
    ):
        with pytest.raises(TooLargeError, match="a must have at most 1,099,511,627,776 cells"):
            build()
    with pytest.raises(TooLargeError, match="at most 1,099,511,627,776 cells, got 1,099,511,627,777"):
        PrivateData.from_records({"a": [1]}, Domain.of(a=optional(range(2**40))))
    monkeypatch.setattr(module, "MAX_CELLS", 2**10)  # of an attribute that is not long
    with pytest.raises(TooLargeError, match="a must have at most 1,024 cells, got 1,025"):
        PrivateData.from_records({"a": 1 / 3}, Domain.of(a=optional(range(2**10))))


def test_a_long_attribute_with_a_missing_cell_is_read_by_rows():
    data = PrivateData.from_records({"a": [1, 2**29, None]}, Domain.of(a=optional(range(2**30))))

    assert [1, 2, 1] == [counts(data, a=one) for one in (1, between(0, 2**30 - 1), None)]


# ---------------------------------------------------------------- CSV


def test_csv_is_read_by_the_kinds_of_the_domain(tmp_path):
    domain = Domain.of(
        age=optional(range(17, 91)), sex=["F", "M, x", ""], w=optional(binned([0, 1.5, 3])), ok=[True, False]
    )
    text = '\ufeffid, age, sex, w, ok\r\n1, 30, F, 0.5, true\r\n2,,"M, x",,0\n\n3, 17.0, "", 1.5, False\n'
    data = read(tmp_path, text, domain)

    assert 3 == data.n
    assert 1 == counts(data, age=30, sex="F", w="[0, 1.5)", ok=True)
    assert 1 == counts(data, age=None, sex="M, x", w=None, ok=False)
    assert 1 == counts(data, age=17, sex="", w="[1.5, 3)", ok=False)


def test_csv_with_a_count_column(tmp_path):
    data = read(tmp_path, "age,n,sex\n30,5,F\n30,2,F\n40,0,M\n", count="n")

    assert 7 == data.n == counts(data, age=30, sex="F")


def test_a_count_column_may_be_named_like_nothing(tmp_path):
    assert 7 == read(tmp_path, "age,,sex\n30,7,F\n", count="").n


def test_integer_labels_are_read_as_integers(tmp_path):
    domain = Domain.of(code=optional([10, 20]))
    data = read(tmp_path, 'code,x\n10,\n20.0,\n"",\n', domain)

    assert [1, 1, 1] == [counts(data, code=label) for label in (10, 20, None)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "one column for age, got 0"),
        ("age,sex\n", "one or more"),
        ("age\n30\n", "one column for sex, got 0"),
        ("age,sex,age\n30,F,40\n", "one column for age, got 2"),
        ("age,sex\n30,F\n30\n", "as many fields as the header"),
        ("age,sex\n30,F,x\n", "as many fields as the header"),
        ("age,sex\n16,F\n", "a whole number from 17 to 90"),
        ("age,sex\n3_0,F\n", "must hold whole numbers"),
        ("age,sex\n30.5,F\n", "must hold whole numbers"),
        ("age,sex\nthirty,F\n", "must hold whole numbers"),
        ("age,sex\n,F\n", "optional"),
        ("age,sex\n30,\n", "optional"),
        ("age,sex\n30,f\n", "sex must be one of"),
        ("age,sex\n30,F \n", "sex must be one of"),
        ("age,sex\n1e400,F\n", "age must hold whole numbers"),
        (b"age,sex\n30,F\xff\n", "UTF-8"),
        ("age,sex\n30," + "F" * 200_000 + "\n", "CSV table"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    with pytest.raises(InvalidDataError) as caught:
        read(tmp_path, text)

    assert message in str(caught.value)


@pytest.mark.parametrize("field", ["", "x", "1.5", "-1", "1_000", "10000000000000000000000", "nan"])
def test_bad_multiplicities_in_a_file_are_refused(tmp_path, field):
    with pytest.raises(InvalidDataError, match="must"):
        read(tmp_path, f"age,sex,n\n30,F,{field}\n", count="n")


@pytest.mark.parametrize("field", ["1_0", "True", "0x1", "1,5", ""])
def test_bins_are_read_from_plain_numbers_only(tmp_path, field):
    with pytest.raises(InvalidDataError, match="w must"):
        read(tmp_path, f'w,x\n"{field}",1\n', Domain.of(w=binned([0, 20])))


# ---------------------------------------------------------------- what it never shows


def test_repr_shows_domain_and_number_of_records_only():
    data = PrivateData(np.array([1, 2, 3, 4, 5, 6]), SMALL)

    assert "PrivateData(n=21, domain=2 x 3 cells)" == repr(data) == str(data) == f"{data}"
    assert not hasattr(data, "__dict__")


def test_a_notebook_shows_the_domain_and_who_is_protected_only():
    domain = Domain.of({"<b>": ["<i>", "b"]})
    counts = ([1, 2], [2, 1], [3, 3])
    one, other, more = (PrivateData(np.array(each), domain)._repr_html_() for each in counts)
    private_n = [
        PrivateData.from_counts({"<b>": ["<i>", "b"]}, each, domain, neighbours="add-remove", n_at_most=9)
        for each in counts
    ]

    assert one == other
    assert "Private table of 3 records" in one
    assert "one record" in one
    assert "&lt;i&gt;" in one
    assert "<i>" not in one
    assert one.replace("of 3 ", "of 6 ") == more
    assert 1 == len({each._repr_html_() for each in private_n})
    assert "at most 9 records, how many is private" in private_n[0]._repr_html_()


@pytest.mark.parametrize("wrap", [lambda data: data, lambda data: [data]], ids=["bare", "inside a list"])
@pytest.mark.parametrize("use", [pickle.dumps, copy.deepcopy])
def test_pickles_and_deep_copies_are_refused(use, wrap):
    with pytest.raises(TypeError, match="PrivateData cannot be"):
        use(wrap(PrivateData(np.ones(6, np.int64), SMALL)))


@pytest.mark.parametrize(
    "use", [copy.copy, lambda data: data.__reduce__(), lambda data: data.__reduce_ex__(4)]
)
def test_copies_and_their_parts_are_refused(use):
    with pytest.raises(TypeError, match="PrivateData cannot be"):
        use(PrivateData(np.ones(6, np.int64), SMALL))


def test_reading_leaves_nothing_in_the_log(caplog):
    with caplog.at_level(logging.DEBUG):
        counts(PrivateData.from_records(COLUMNS, DOMAIN), sex="F")

    assert [] == caplog.records


def test_reads_are_counted_and_refused_reads_are_not():
    data = PrivateData(np.ones(6, np.int64), SMALL)
    query = where(a=1).bind(SMALL)
    for _ in range(3):
        data.exact_counts(query)
    data.exact_counts(Partition(SMALL, (0,), (np.arange(2),)))
    data.exact_counts_many([query] * 5)
    with pytest.raises(DomainMismatchError):
        data.exact_counts(where(age=30).bind(DOMAIN))
    with pytest.raises(DomainMismatchError):
        data.exact_counts_many([query, where(age=30).bind(DOMAIN)])

    assert 3 + 1 + 5 == data.reads


def test_refusals_of_a_read_say_the_same_on_neighbouring_databases():
    messages = set()
    for cells in ([2**34, 0, 0, 0, 0, 1], [2**34 - 1, 0, 0, 1, 0, 1], [0, 0, 0, 0, 0, 2**34 + 1]):
        data = PrivateData(np.array(cells), SMALL)
        for target in (
            where(age=30).bind(DOMAIN),
            dense(np.arange(6) / 7).bind(SMALL),
            Partition(DOMAIN, (1,), (np.arange(2),)),
        ):
            with pytest.raises((DomainMismatchError, InternalError)) as caught:
                data.exact_counts(target)
            messages.add(str(caught.value))

    assert 2 == len(messages)


def test_which_tables_are_made_and_kept_depends_on_the_queries_alone(monkeypatch):
    made, contract = [], tables.contract
    monkeypatch.setattr(
        tables, "contract", lambda cells, axes: made[-1].append(axes) or contract(cells, axes)
    )
    for cells in ([21, 0, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6]):
        data = PrivateData(np.array(cells), SMALL)
        made.append([])
        for conditions in ({"a": 1}, {"a": 0, "b": "x"}, {"b": one_of("x", "z")}, {"a": 0}):
            counts(data, **conditions)

    assert made[0] == made[1]
    assert 2 == made[0].count((0,)) + made[0].count((1,))  # one of each: kept for further counts


def test_threads_count_every_read_and_get_the_same_answers():
    data = PrivateData(np.arange(DOMAIN.size), DOMAIN)
    queries = [where(age=between(17 + i, 60)).bind(DOMAIN) for i in range(20)] * 20
    expected = [data.exact_counts(query) for query in queries]
    found = []
    threads = [
        threading.Thread(target=lambda: found.append([*map(data.exact_counts, queries)])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [expected] * 4 == found
    assert 5 * len(queries) == data.reads


def test_a_read_whose_sums_no_float_holds_exactly_is_refused():
    """n 2^k beyond 2^53: such a query is never asked by a session, whose grid is coarser then."""
    domain = Domain.of(x=4)
    data = PrivateData(np.array([2**34 - 6, 1, 2, 3]), domain)
    at_most, too_fine = (dense(np.array([0.0, 2.0**-bits, 0.5, 1.0])).bind(domain, bits) for bits in (19, 20))

    assert (data.n, 19, 20) == (2**34, at_most.grid_bits, too_fine.grid_bits)
    assert 1 + (2 << 18) + (3 << 19) == data.exact_counts(at_most)
    with pytest.raises(InternalError, match="2\\^53"):
        data.exact_counts(too_fine)
    with pytest.raises(InternalError, match="2\\^53"):
        data.exact_counts_many([at_most, too_fine])


def test_a_list_of_records_is_a_table():
    rows = [dict(zip(COLUMNS, row, strict=True)) | {"id": 1} for row in zip(*COLUMNS.values(), strict=True)]

    assert 2 == counts(PrivateData.from_records(rows, DOMAIN), sex="F", age=between(30, 50))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"age": 30, "sex": "F"}, {"age": 31}], "every record must have a value for sex.* write None"),
        ([{"age": 30, "Sex": "F"}], "every record must have a value for sex.*did you mean 'Sex'"),
        ([{"age": 30, "sex": "F"}, (31, "M")], "got a list with a tuple; write {name: column}"),
        ([30, 31], "got a list with a int"),
        ([], "records must be one or more"),
    ],
)
def test_lists_of_records_are_whole(rows, message):
    with pytest.raises(InvalidDataError, match=message):
        PrivateData.from_records(rows, DOMAIN)


def test_tables_of_rows_and_of_counts_of_a_long_attribute_are_put_together():
    domain = Domain.of(t=range(2**23))
    counts = np.zeros(2**23, np.int64)
    counts[[5, 7]] = 2
    asked = [where(t=condition).bind(domain) for condition in (between(0, 2**23 - 1), 5, 7, 2**23 - 1)]
    for first in (True, False):
        held = [PrivateData.from_records({"t": [5, 5, 2**23 - 1]}, domain), PrivateData(counts, domain)]
        both = PrivateData.union(held if first else held[::-1])

        assert [7, 4, 2, 1] == [int(both.exact_counts(one)) for one in asked]


def test_rows_are_kept_of_a_long_attribute_where_their_number_is_public_alone(monkeypatch):
    """The time of a read of rows tells how many there are."""

    class NoRows(module.Rows):
        def __init__(self, *given):
            raise InternalError("rows")

    monkeypatch.setattr(module, "Rows", NoRows)
    columns, domain = {"t": [5, 7]}, Domain.of(t=range(2**23))
    with pytest.raises(InternalError, match="rows"):
        PrivateData.from_records(columns, domain)
    held = PrivateData.from_records(columns, domain, neighbours="add-remove")

    assert 1 == held.exact_counts(where(t=5).bind(domain))
