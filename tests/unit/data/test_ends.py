"""Real numbers: a record lies on the two ends of its bin, so that sums over ends are sums over records."""

import itertools

import numpy as np
import pytest

import onlineic as ic
from onlineic.domain import Binned, Unit
from onlineic.errors import InvalidDataError, InvalidDomainError, InvalidParameterError, InvalidQueryError
from onlineic.evaluate import exact_marginal, exact_values
from onlineic.noise import SimulatedNoise
from onlineic.queries import Partition
from onlineic.questions.means import Numbers, Parts

COST = ic.number(0, 1000, bins=[0, 10, 100, 1000])
DOMAIN = ic.Domain.of(cost=COST, sex=["F", "M"])
ENDS = np.array([0, 10, 10, 100, 100, 1000])


def parts(data):
    """Return the parts on every end of the first attribute."""
    kind = data.domain.attributes[0]
    return data.exact_counts(Partition(data.domain, (0,), (np.arange(kind.size),)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, [64, 0, 0, 0, 0, 0]),
        (5, [32, 32, 0, 0, 0, 0]),
        (10, [0, 0, 64, 0, 0, 0]),
        (32.5, [0, 0, 48, 16, 0, 0]),
        (1000, [0, 0, 0, 0, 0, 64]),
        (1e300, [0, 0, 0, 0, 0, 64]),
        (float("inf"), [0, 0, 0, 0, 0, 64]),
        (-7, [64, 0, 0, 0, 0, 0]),
        (2**70, [0, 0, 0, 0, 0, 64]),
    ],
)
def test_a_record_lies_on_the_ends_of_its_bin_so_that_their_mean_is_its_value(value, expected):
    data = ic.PrivateData.from_records({"cost": [value], "sex": ["F"]}, DOMAIN)

    assert expected == parts(data).tolist()
    assert (1, 64, Unit(None)) == (data.n, data.mass, data.unit)


def test_a_share_is_rounded_to_parts_by_a_hash_up_as_often_as_down():
    costs = np.random.default_rng(0).uniform(0, 1000, 20_000)
    data = ic.PrivateData.from_records({"cost": costs, "sex": ["F"] * len(costs)}, DOMAIN)
    held = parts(data)

    assert 64 * len(costs) == held.sum()
    deviation = 900 / 64 * np.sqrt(len(costs) / 6)  # of independent roundings
    assert abs((held @ ENDS) / 64 - costs.sum()) < 4 * deviation < 4e-4 * costs.sum()
    for first, last in ((0, 10), (10, 100), (100, 1000)):
        inside = (first <= costs) & (costs < last)
        at = [0, 10, 100].index(first)
        assert 64 * inside.sum() == held[2 * at : 2 * at + 2].sum()  # counts of bins are exact
    for cost in costs[:200]:
        one = parts(ic.PrivateData.from_records({"cost": [cost], "sex": ["F"]}, DOMAIN))
        assert abs(one @ ENDS / 64 - cost) < 900 / 64


def test_of_many_cells_and_of_many_runs_the_rounding_is_up_as_often_as_down():
    domain = ic.Domain.of(stay=ic.number(0, 10, bins=1), place=2000, cost=ic.number(0, 10, bins=1))
    columns = {"stay": [1.0] * 2000, "place": np.arange(2000), "cost": [1.0] * 2000}  # 6.4 parts of 64
    data = ic.PrivateData.from_records(columns, domain)

    for name in ("stay", "cost"):
        assert abs(exact_marginal(data, name) @ [0, 10] - 1.0) < 0.01  # rounded down they are 0.94


def test_missing_numbers_have_a_cell_and_are_in_no_sum():
    domain = ic.Domain.of(cost=ic.optional(COST, ["NA"]), sex=["F", "M"])
    columns = {"cost": [5, None, "NA", float("nan"), 5.0], "sex": ["F"] * 5}
    data = ic.PrivateData.from_records(columns, domain)

    assert [64, 64, 0, 0, 0, 0, 192] == parts(data).tolist()
    with pytest.raises(InvalidDataError, match="cost must have a value in every row"):
        ic.PrivateData.from_records(columns, DOMAIN)
    with pytest.raises(InvalidDataError, match="cost must hold numbers"):
        ic.PrivateData.from_records({"cost": ["5"], "sex": ["F"]}, DOMAIN)


def test_two_numbers_and_persons_go_together():
    draw = np.random.default_rng(3)
    owner = np.repeat(np.arange(500), draw.integers(1, 5, 500))
    cost, stay = draw.uniform(0, 1000, len(owner)), draw.uniform(0, 30, len(owner))
    domain = ic.Domain.of(cost=COST, stay=ic.number(0, 30, bins=4))
    columns = {"id": owner, "cost": cost, "stay": stay}
    data = ic.PrivateData.from_records(columns, domain, unit=Unit("id"))
    rows = np.bincount(owner)
    of_persons = (np.bincount(owner, cost) / rows).mean()

    assert (500, 64 * 500) == (data.n, data.mass)
    assert exact_marginal(data, "cost") @ ENDS == pytest.approx(of_persons, rel=3e-3)
    ends = np.repeat(np.linspace(0, 30, 5), 2)[1:-1]
    assert exact_marginal(data, "stay") @ ends == pytest.approx(
        (np.bincount(owner, stay) / rows).mean(), rel=3e-3
    )
    mixed = draw.permutation(len(owner))
    again = ic.PrivateData.from_records(
        {name: column[mixed] for name, column in columns.items()}, domain, unit=Unit("id")
    )
    assert np.array_equal(parts(data), parts(again))


def test_numbers_come_in_by_every_door(tmp_path):
    costs, sexes = [5.0, 32.5, 999.0, 5.0, 10.0], ["F", "M", "F", "F", "M"]
    expected = parts(ic.PrivateData.from_records({"cost": costs, "sex": sexes}, DOMAIN))
    path = tmp_path / "rows.csv"
    path.write_text("cost;sex;many\n5,0;F;2\n32,5;M;1\n999;F;1\n10;M;1\n")

    held = ic.PrivateData.from_csv(path, DOMAIN, count="many", delimiter=";", decimal=",")
    assert np.array_equal(expected, parts(held))
    counted = ic.PrivateData.from_counts(
        {"cost": [5.0, 32.5, 999.0, 10.0], "sex": ["F", "M", "F", "M"]}, [2, 1, 1, 1], DOMAIN
    )
    assert np.array_equal(expected, parts(counted))
    polars = pytest.importorskip("polars")
    pytest.importorskip("narwhals")
    frame = polars.DataFrame({"cost": costs, "sex": sexes})
    for table in (frame, frame.lazy()):
        assert np.array_equal(expected, parts(ic.PrivateData.from_frame(table, DOMAIN)))


def test_of_many_cells_a_record_is_as_many_rows_as_parts():
    draw = np.random.default_rng(1)
    wide = ic.Domain.of(cost=COST, **{f"x{i}": 10 for i in range(8)})
    columns = {"cost": draw.uniform(0, 1000, 50), **{f"x{i}": draw.integers(0, 10, 50) for i in range(8)}}
    data = ic.PrivateData.from_records(columns, wide)
    weights = ENDS / 1000

    (share,) = exact_values(data, [ic.where(cost=ic.weights(weights))])
    assert 1000 * share == pytest.approx(columns["cost"].mean(), rel=0.01)


def test_of_many_cells_counts_keep_as_many_rows_wherever_the_records_lie():
    """How many cells are met is private, and reads take as long as there are rows."""
    wide, rows = ic.Domain.of(a=2**14, b=2**12, cost=ic.number(0, 8, bins=4)), 100
    question = ic.where(cost=ic.weights(np.repeat([0, 2, 4, 6, 8], 2)[1:-1] / 8))
    for a in (np.zeros(rows, np.int64), np.arange(rows)):
        columns = {"a": a, "b": a, "cost": np.full(rows, 3.0)}
        data = ic.PrivateData.from_counts(columns, np.ones(rows, np.int64), wide)
        assert 4 * rows == len(data._tables.columns((0,))[0][0])
        assert 3 / 8 == pytest.approx(exact_values(data, [question])[0], abs=1 / 64)


def test_a_table_with_fewer_attributes_than_it_was_loaded_with_says_a_whole_bin():
    """Parts were rounded in each cell of all attributes: of how many cells that was is not known any more."""
    domain = ic.Domain.of(g=50, cost=ic.number(0, 4000, bins=4))
    columns = {"g": np.arange(50), "cost": np.full(50, 500.0), "id": np.arange(50)}
    data = ic.PrivateData.from_records(columns, domain, unit=Unit("id", units=1))
    whole = ic.OnlineIC(data, ic.Budget(15.0, 1e-9), noise=SimulatedNoise(1))
    other = ic.PrivateData.from_records(columns, domain, unit=Unit("id", units=1)).projected("cost")
    part = ic.OnlineIC(other, ic.Budget(15.0, 1e-9), noise=SimulatedNoise(1))

    assert Unit("id", units=1) == whole.rounded_in == part.unit
    assert part.rounded_in is None
    assert 1000 <= part.mean("cost").bias <= 1001


def test_conditions_and_groups_that_tell_the_ends_of_a_bin_apart_have_no_mean(claims):
    *_, session = claims
    upper = np.zeros(16)
    upper[1] = 1.0

    for ask in (session.mean, session.sum, session.variance):
        with pytest.raises(InvalidQueryError, match="cost must weigh both ends of a bin alike"):
            ask("cost", ic.where(cost=ic.weights(upper)))
    assert 8 == len(session.group_by("cost")) == len(session.group_by("cost", None, "mean", "cost"))


@pytest.fixture(scope="module")
def claims():
    """A table of log-normal costs, its costs, and a session about it."""
    draw = np.random.default_rng(4)
    costs, sexes = draw.lognormal(8, 1.2, 20_000), draw.choice(["F", "M"], 20_000)
    domain = ic.Domain.of(cost=ic.number(0, 50_000, bins=8), sex=["F", "M"])
    data = ic.PrivateData.from_records({"cost": costs, "sex": sexes}, domain)
    return np.minimum(costs, 50_000), sexes, ic.OnlineIC(data, ic.Budget(1.0, 1e-6))


def test_sums_and_means_are_exact_but_for_noise(claims):
    costs, sexes, session = claims
    total, women = session.sum("cost"), session.mean("cost", ic.where(sex="F"))

    assert 0 < total.bias < 1e-4 * total.value
    assert 0 < women.bias < 1e-4 * women.value
    assert total.value == pytest.approx(costs.sum(), rel=0.05)  # midpoints of the bins: +18 %
    assert abs(total.value - costs.sum()) < total.error_bound
    assert abs(women.value - costs[sexes == "F"].mean()) < women.error_bound
    assert "for values in bins" in repr(total)
    assert "n=20000 records, protects one record" in repr(session)


@pytest.mark.parametrize(("bins", "value"), [(4, 120.0), (64, 120.0), (64, 4500.0)])
def test_equal_records_are_off_by_no_more_than_is_stated(bins, value):
    """Each by itself was rounded to parts alike, far beyond the bound: 120 of 12,500 to one of 64."""
    domain = ic.Domain.of(cost=ic.number(0, 50_000, bins=bins))
    data = ic.PrivateData.from_counts({"cost": [value]}, [2_000_000], domain)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))
    found, total = session.mean("cost"), session.sum("cost")

    assert abs(found.value - value) <= found.error_bound + found.bias < 10
    assert abs(total.value - 2_000_000 * value) <= total.error_bound + total.bias


KINDS = {
    "one": ic.Domain.of(cost=ic.number(0, 100, bins=2), sex=["F", "M"]),
    "uneven": ic.Domain.of(sex=["F", "M"], cost=ic.number(0, 100, bins=[0, 1, 100])),
    "before": ic.Domain.of(cost=ic.number(0, 100, bins=2), stay=ic.number(0, 1, bins=2), sex=["F", "M"]),
    "after": ic.Domain.of(stay=ic.number(0, 1, bins=2), cost=ic.number(0, 100, bins=2), sex=["F", "M"]),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("unit", [None, Unit(None, units=1), Unit("id"), Unit("id", units=1)])
@pytest.mark.parametrize("spread", [0.0, 0.4, 100.0])
def test_of_every_table_rounding_to_parts_is_no_more_than_the_bias(name, unit, spread):
    domain, draw = KINDS[name], np.random.default_rng(7)
    named = unit is not None and unit.person is not None
    rows = 4 if unit == Unit("id") else 1  # of a person: 16 parts each
    for n, among in itertools.product((1, 3, 40), (None, ic.where(sex="F"))):
        many = n * rows
        cost = draw.choice([0.3, 20.6, 99.6], 1) + spread * draw.choice([0, 0, 1, -1], many) * draw.random(
            many
        )
        columns = {"cost": cost.clip(0, 100), "stay": draw.choice([0.2, 0.2, 0.7], many)}
        columns["sex"] = np.where(np.arange(many) % 3 < 2, "F", "M")
        held = {key: columns[key] for key in domain.names}
        held |= {"id": np.arange(many) // rows} if named else {}
        data = ic.PrivateData.from_records(held, domain, unit=unit)
        numbers = Numbers.of(domain, "cost", among, unit=data.unit)
        counts = columns["sex"] == "F" if among is not None else np.ones(many, bool)
        values = columns["cost"][counts]
        truth = {"sum": values.sum() / rows, "mean": values.mean(), "variance": values.var()}
        for aggregate, true in truth.items():
            asked = exact_values(data, numbers.asks(aggregate))
            value, bound, bias, *_ = numbers.worked_out(aggregate, data.n, Parts(asked, [0.0] * len(asked)))
            assert abs(value - true) <= bound + bias + 1e-9 * (1 + abs(true)), (aggregate, n, value, true)


def test_of_a_number_after_another_a_part_can_be_wrong_in_each_of_two_cells():
    domain, draw, worst = KINDS["after"], np.random.default_rng(8), 0.0
    numbers = Numbers.of(domain, "cost", None, unit=Unit(None))
    for cost in draw.uniform(0, 50, 200):
        data = ic.PrivateData.from_records({"stay": [0.25], "cost": [cost], "sex": ["F"]}, domain)
        value, _, bias, *_ = numbers.worked_out(
            "mean", 1, Parts(exact_values(data, numbers.asks("mean")), [0.0])
        )
        worst = max(worst, abs(value - cost) / bias)
    assert 0.5 < worst <= 1.0


def test_sums_in_sql(claims):
    pytest.importorskip("sqlglot")
    costs, _, session = claims

    assert session.sql("SELECT SUM(cost) FROM t").value == session.sum("cost").value
    assert session.sql("SELECT COUNT(*) FROM t WHERE cost < 12500").value == pytest.approx(
        (costs < 12_500).mean(), abs=0.02
    )
    with pytest.raises(InvalidQueryError, match="edge"):
        session.sql("SELECT COUNT(*) FROM t WHERE cost < 12499")


def test_ranges_and_quantiles_go_by_whole_bins(claims):
    costs, _, session = claims
    answer = session.answer(ic.where(cost=ic.span(0, 6250)))

    assert answer.value == pytest.approx((costs < 6250).mean(), abs=0.02)
    assert "where(cost=span(0.0, 6250.0))" in repr(answer.query)
    median = session.median("cost")
    assert (0.0, 6250.0) == (median.low, median.high)
    assert 0.0 < median.value < 6250.0
    with pytest.raises(InvalidQueryError, match="cut at a bin edge"):
        session.answer(ic.where(cost=ic.span(0, 6000)))


def test_a_number_is_a_kind_like_others():
    kind = ic.number(0, 1000, bins=10)

    assert (20, 2) == (kind.size, kind.cells)
    assert ["[0, 100) at 0", "[0, 100) at 100"] == [kind.label(0), kind.label(1)]
    assert 3 == kind.code("cost", "[100, 200) at 200")
    assert (4, 10) == kind.interval("cost", 200, 500, closed=False)
    domain = ic.Domain.of(cost=ic.optional(kind), sex=["F", "M"])
    assert domain == ic.Domain.from_json(domain.to_json())
    assert "both ends of each bin" in repr(domain)
    assert 100 == ic.number(0, 1).size  # bins of 0.02
    codes = domain.project("cost").encode({"cost": [0, 49, 51, 999, None]})[:, 0]
    assert [0, 0, 1, 19, 20] == codes.tolist()  # of two ends the nearer one


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ic.number(0, float("inf")), "two finite ends that rise"),
        (lambda: ic.number(5, 5), "two finite ends that rise"),
        (lambda: ic.number("0", 5), "two finite ends that rise"),
        (lambda: ic.number(0, 5, bins=0), "bins must be from 1"),
        (lambda: ic.number(0, 5, bins="5"), "edges must be a list of numbers"),
        (lambda: ic.number(0, 5, bins=[0, 4]), "edges from low to high"),
        (lambda: Binned((0.0, 5.0), ends=True), "must have finite edges and clip"),
    ],
)
def test_numbers_that_cannot_be_are_refused(call, message):
    with pytest.raises(InvalidDomainError, match=message):
        call()


def test_offline_mechanisms_are_refused_where_records_are_in_parts():
    data = ic.PrivateData.from_records({"cost": [5.0], "sex": ["F"]}, DOMAIN)

    with pytest.raises(InvalidParameterError, match="must be asked by a session, which protects one record"):
        ic.baselines.noisy_histogram(data, ic.Budget(1.0))
