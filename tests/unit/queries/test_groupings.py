"""Keys that are made of a column: parts and periods of dates, ranges, cases; alone and in cross tables."""

import datetime
import itertools
import json

import numpy as np
import pytest

import onlineic as ic
from onlineic.ask import described
from onlineic.errors import InvalidParameterError, InvalidQueryError, TooLargeError
from onlineic.noise import SimulatedNoise
from onlineic.queries import Grouping, marginal
from onlineic.queries.exact import question_from_json, question_to_json

DAYS = ic.dates("2019-11-20", "2021-02-10")
DOMAIN = ic.Domain.of(
    day=ic.optional(DAYS),
    hour=ic.dates("2024-02-28", "2024-03-02", by="hour"),
    month=ic.dates("2019-11", "2022-03", by="month"),
    week=ic.dates("2020-W50", "2021-W03", by="week"),
    age=range(17, 91),
    pay=ic.number(0, 10, bins=5),
    cost=ic.binned([0, 10, 100, float("inf")]),
    sex=["F", "M"],
)
PARTS = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "monthname": lambda day: day.strftime("%B"),
    "week": lambda day: day.isocalendar()[1],
    "isoyear": lambda day: day.isocalendar()[0],
    "day": lambda day: day.day,
    "dayofyear": lambda day: day.timetuple().tm_yday,
    "weekday": lambda day: day.strftime("%A"),
    "isodow": lambda day: day.isoweekday(),
    "dow": lambda day: day.isoweekday() % 7,
}


def groups(grouping, domain=DOMAIN):
    """The label of every code."""
    found = grouping.over(domain)
    return [found.labels[place] for place in found.classes.tolist()]


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_days_are_those_of_the_calendar(part):
    days = [datetime.date.fromisoformat(DAYS.label(code)) for code in range(DAYS.size)]

    assert [*map(PARTS[part], days), None] == groups(ic.extract("day", part))


@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day"])
def test_periods_of_days_are_those_that_the_domain_would_have(unit):
    longer = ic.dates("2019-01-01", "2021-12-31", by=unit)
    labels = [
        longer.label(code) for code in longer.read(np.array([*map(DAYS.label, range(DAYS.size))])).tolist()
    ]

    assert [*labels, None] == groups(ic.date_trunc("day", unit))


def test_hours_have_parts_too():
    hours = [*map(DOMAIN.attribute("hour").label, range(DOMAIN.attribute("hour").size))]

    assert [int(hour[-2:]) for hour in hours] == groups(ic.extract("hour", "hour"))
    assert [hour[:10] for hour in hours] == groups(ic.date_trunc("hour", "day"))
    assert [int(label[:4]) for label in map(DOMAIN.attribute("month").label, range(29))] == groups(
        ic.extract("month", "year")
    )


@pytest.mark.parametrize(
    ("grouping", "labels"),
    [
        (ic.cut("age", [18, 65]), ("[17, 18)", "[18, 65)", "[65, 91)")),
        (ic.cut("age", [0, 18, 65, 200]), ("[17, 18)", "[18, 65)", "[65, 91)")),
        (ic.cut("age", [40], ["young", "old"]), ("young", "old")),
        (ic.cut("pay", [2, 6.000000000000001]), ("[0, 2)", "[2, 6)", "[6, 10)")),
        (ic.cut("cost", [100]), ("[0, 100)", "[100, inf)")),
        (ic.cut("day", ["2020-01-01"]), ("2019-11-20 to 2019-12-31", "2020-01-01 to 2021-02-10", None)),
        (
            ic.case({"kid": ic.where(age=ic.below(18)), "old": ic.where(age=ic.at_least(65))}, "other"),
            ("kid", "old", "other"),
        ),
        (ic.case({"F": ic.where(sex="F"), "M": ~ic.where(sex="F")}, "never"), ("F", "M")),
        (ic.case({1: ic.where(day=None)}), (1, None)),
        (ic.extract("week", "isoyear"), (2020, 2021)),
        (ic.extract("age", "year"), None),
    ],
)
def test_groups_that_some_value_has_are_there(grouping, labels):
    if labels is None:
        with pytest.raises(InvalidQueryError, match="age must hold dates for its year"):
            grouping.over(DOMAIN)
    else:
        assert labels == grouping.over(DOMAIN).labels
        assert 0 < min(np.bincount(grouping.over(DOMAIN).classes))


def test_the_first_case_that_holds_decides():
    cases = ic.case({"young": ic.where(age=ic.below(40)), "middle": ic.where(age=ic.below(60))}, "old")
    ages = range(17, 91)

    assert ["young" if age < 40 else "middle" if age < 60 else "old" for age in ages] == groups(cases)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: ic.cut("age", [30, 20]), InvalidParameterError, "at must be one or more rising numbers"),
        (lambda: ic.cut("age", []), InvalidParameterError, "at must be one or more rising"),
        (lambda: ic.cut("age", [1, "x"]), InvalidParameterError, "at must be one or more rising"),
        (lambda: ic.cut("age", [30], ["a"]), InvalidParameterError, "labels must be 2 different texts"),
        (lambda: ic.cut(3, [30]), InvalidParameterError, "attribute must be the name of one"),
        (lambda: ic.date_trunc("day", "decade"), InvalidParameterError, "unit must be 'year'"),
        (lambda: ic.extract("day", "second"), InvalidParameterError, "part must be 'year'"),
        (lambda: ic.case({}), InvalidParameterError, "conditions must be a mapping"),
        (lambda: ic.case({"a": 3}), InvalidParameterError, "conditions must be a mapping"),
        (lambda: ic.case({None: ic.where()}), InvalidParameterError, "labels must be texts"),
        (lambda: ic.cut("age", [30]).called(""), InvalidParameterError, "name must be a text"),
        (lambda: ic.cut("sex", [30]).over(DOMAIN), InvalidQueryError, "sex must be ordered"),
        (lambda: ic.cut("pay", [3]).over(DOMAIN), InvalidQueryError, "nearest edges are 2 and 4"),
        (lambda: ic.cut("agee", [3]).over(DOMAIN), InvalidQueryError, "did you mean 'age'"),
        (lambda: ic.date_trunc("week", "month").over(DOMAIN), InvalidQueryError, "got one week; declare"),
        (lambda: ic.extract("month", "weekday").over(DOMAIN), InvalidQueryError, "got one month; declare"),
        (
            lambda: ic.case({"a": ic.where(age=ic.weights(np.full(74, 0.5)))}).over(DOMAIN),
            InvalidQueryError,
            "got weights",
        ),
    ],
)
def test_what_makes_no_groups_is_refused_by_name(make, error, said):
    with pytest.raises(error, match=said):
        make()


def test_groupings_are_written_as_they_are_made():
    for text in [
        "cut('age', [18, 65])", "cut('age', [40], ['young', 'old'])", "date_trunc('day', 'month')",
        "extract('day', 'year').called('y')", "case({'a': where(sex='F')}, 'b')", "case({1: where(sex='F')})",
    ]:  # fmt: skip
        assert text == repr(eval(text, {**vars(ic), "where": ic.where}))


# -- cross tables --

SMALL = ic.Domain.of(
    month=ic.optional(ic.dates("2023-11", "2024-02", by="month")),
    a=4,
    pay=ic.number(0, 2, bins=2),
    s=["u", "v"],
)
COUNTS = np.random.default_rng(3).integers(0, 40, SMALL.shape)


def told(table):
    """The cells of a table over the small domain, from its counts."""
    bound = table.bind(SMALL)
    partition = bound.partition
    labels = [cut.codes for cut in partition.cuts]
    summed = COUNTS.sum(axis=tuple(axis for axis in range(4) if axis not in partition.axes))
    blocks = np.zeros(partition.blocks)
    for place in np.ndindex(*summed.shape):
        block = np.ravel_multi_index(
            [label[code] for label, code in zip(labels, place, strict=True)], partition.shape
        )
        blocks[block] += summed[place]
    return bound, bound.table(blocks)


KEYS = [
    "a", "s", "pay", ic.extract("month", "year"), ic.date_trunc("month", "quarter").called("q"),
    ic.cut("a", [1, 3]).called("c"),
    ic.case({"x": ic.where(a=2), "y": ic.where(a=ic.one_of(0, 3))}).called("k"), ic.extract("month", "month"),
]  # fmt: skip
CONDITIONS = [
    None,
    ic.where(s="u"),
    ic.where(a=ic.at_least(1)),
    ic.where(month=ic.at_least("2024-01"), a=ic.below(3)),
    ~ic.where(month=None),
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(
    "keys",
    [
        *itertools.combinations(KEYS, 1),
        *itertools.permutations(KEYS[2:7], 2),
        (KEYS[3], KEYS[7], "a"),
        (KEYS[5], "a", "s"),
    ],
)
def test_a_table_by_groupings_has_the_sums_of_the_cells_of_each_group(keys, condition):
    bound, found = told(marginal(*keys, where=condition))
    weights = COUNTS if condition is None else COUNTS * condition.bind(SMALL).weights()
    expected = np.zeros(found.shape)
    groups_ = []
    for key in keys:
        if isinstance(key, Grouping):
            axis, classes = key.over(SMALL).axis, key.over(SMALL).classes
        else:
            axis = SMALL.axis(key)
            classes = np.arange(SMALL.shape[axis]) // (2 if key == "pay" else 1)
        groups_.append((axis, classes))
    for place in np.ndindex(*SMALL.shape):
        expected[tuple(int(classes[place[axis]]) for axis, classes in groups_)] += weights[place]

    assert np.array_equal(expected, found)
    assert [*found.shape] == [len(labels) for labels in bound.labels.values()]
    again = question_from_json(json.loads(json.dumps(question_to_json(bound))), SMALL)
    assert (bound.key, bound.labels, bound.ordered) == (again.key, again.labels, again.ordered)


@pytest.mark.parametrize("keys", [*itertools.combinations(KEYS, 1), (KEYS[3], "a")])
def test_tables_have_a_form_in_json(keys):
    from onlineic.ask.json import written

    table = marginal(*keys, where=ic.where(s="u"))

    assert table == described(json.loads(json.dumps(written(table))), SMALL)


def test_groups_that_no_value_has_are_known_to_be_empty():
    """November of 2024 is not in the domain."""
    bound = marginal(ic.extract("month", "year"), ic.extract("month", "month")).bind(SMALL)

    assert (2023, 2024, None) == bound.labels["year(month)"]
    assert -1 == bound.cells[1, bound.labels["month(month)"].index(11)]


def test_a_session_remembers_a_table_by_groupings_over_a_restart(tmp_path):
    data = ic.PrivateData(COUNTS, SMALL)
    budget, options = ic.Budget(1.0, 1e-6), {"ledger": str(tmp_path / "f.db"), "table": "t"}
    table = marginal(ic.extract("month", "year"), "pay")
    with ic.OnlineIC(data, budget, **options) as session:
        first = session.answer(table)
    with ic.OnlineIC.resume(str(tmp_path / "f.db"), data) as session:
        again = session.answer(table)

        assert "repeat" == again.status
        assert np.array_equal(first.value, again.value)
        assert {"year(month)": (2023, 2024, None), "pay": ("[0, 1)", "[1, 2)")} == session.released()[0][
            1
        ].labels


def test_long_dates_are_grouped_by_periods_but_not_by_what_is_no_range():
    domain = ic.Domain.of(moment=ic.dates("2024-01-01", "2024-06-30", by="minute"), s=["u", "v"])
    bound = marginal(ic.date_trunc("moment", "month"), "s").bind(domain)

    assert (6, 2) == bound.cells.shape
    with pytest.raises(TooLargeError, match="moment must be grouped by ranges"):
        marginal(ic.extract("moment", "hour")).bind(domain)


def test_cases_over_several_attributes_are_asked_one_by_one():
    cases = ic.case({"x": ic.where(a=2, s="u"), "y": ic.where(a=0) | ic.where(s="v")}, "z")
    data = ic.PrivateData(np.full(SMALL.shape, 64), SMALL)
    with pytest.raises(InvalidQueryError, match="cases over several; ask them by group_by"):
        marginal(cases).bind(SMALL)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), noise=SimulatedNoise(1))
    found = session.group_by(cases)
    exact = {"x": 1 / 8, "y": 5 / 8, "z": 2 / 8}

    assert {
        label: share for ((label,), share) in zip(((one,) for one in exact), exact.values(), strict=True)
    } == exact
    assert all(abs(value - exact[labels[0]] * session.n) <= bound for labels, value, bound in found)
    assert 3 == len(found.answers)
