"""Variances: of exact values, between two ends, of midpoints; by group, in SQL, over the network."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.domain import Unit
from onlineic.errors import InvalidQueryError
from onlineic.noise import SimulatedNoise
from onlineic.questions.means import Numbers, Parts
from onlineic.service.wire import from_wire, to_wire

DRAW = np.random.default_rng(11)
N = 20_000
ROWS = {
    "age": DRAW.integers(0, 40, N),
    "cost": np.minimum(DRAW.lognormal(4.0, 0.6, N), 400.0),
    "stay": DRAW.gamma(2.0, 3.0, N).clip(0, 30),
    "sex": DRAW.choice(["F", "M"], N),
}
DOMAIN = ic.Domain.of(
    age=range(40),
    cost=ic.number(0, 400, bins=16),
    stay=ic.binned(list(range(0, 32, 2)), clip=True),
    sex=["F", "M"],
)
WOMEN = ROWS["sex"] == "F"


def opened(seed=1, *names, **loading):
    held = names or DOMAIN.names
    domain = DOMAIN.project(*held)
    data = ic.PrivateData.from_records({name: ROWS[name] for name in held}, domain, **loading)
    return ic.OnlineIC(data, ic.Budget(2.0, 1e-6), noise=SimulatedNoise(seed), questions=30)


@pytest.mark.parametrize(
    ("name", "among", "neighbours"),
    [
        ("age", None, "replace-one"),
        ("age", None, "add-remove"),
        ("cost", "F", "replace-one"),
        ("stay", None, "replace-one"),
    ],
)
def test_a_variance_is_within_what_is_stated(name, among, neighbours):
    session = opened(3, name, "sex", neighbours=neighbours)
    found = session.variance(name, None if among is None else ic.where(sex=among))
    values = ROWS[name] if among is None else ROWS[name][WOMEN]

    assert abs(found.value - values.var()) <= found.error_bound + found.bias
    assert found.error_bound < (values.max() - values.min()) ** 2 / 4
    assert (found.bias > 0) is (name != "age")
    assert len(found.answers) == (2 if among is None and neighbours == "replace-one" else 3)
    assert repr(found).startswith(f"variance({name}")
    assert abs(found.count - len(values)) <= found.count_bound + 1e-9


def exact(numbers, weights, everybody=True):
    """Return what is worked out of a variance where all answers are exact."""
    share = weights[numbers.held].sum()
    values = [weights @ numbers.shares, weights @ numbers.squares]
    if not numbers.everybody:
        values.insert(1, share - values[0])
    return numbers.worked_out("variance", 10**15, Parts(values, [0.0] * len(values)))


def test_of_exact_answers_nothing_is_off_but_what_ends_leave():
    numbers = Numbers.of(DOMAIN.project("age"), "age", None)
    counts = np.bincount(ROWS["age"], minlength=40) / N
    value, bound, bias, share, off, *_ = exact(numbers, counts)
    assert (value, bias, share, off) == (pytest.approx(ROWS["age"].var(), rel=1e-9), 0.0, 1.0, 0.0)
    assert bound < 1e-9

    kind = ic.Domain.of(v=ic.number(0, 10, bins=[0, 1, 10]))
    numbers = Numbers.of(kind, "v", None, unit=Unit(None))
    assert 9.0 == numbers.width
    for v in (0.0, 0.5, 1.0, 5.5, 10.0):  # everybody has the same value: no variance at all
        place, edges = (0, (0, 1)) if v < 1 else (1, (1, 10))
        weights = np.zeros(4)
        weights[2 * place] = (edges[1] - v) / (edges[1] - edges[0])
        weights[2 * place + 1] = 1 - weights[2 * place]
        value, bound, bias, *_ = exact(numbers, weights)
        assert 81 / 8 <= bias < 81 / 8 + 1e-3  # of so many records rounding to parts is next to nothing
        assert 0.0 <= value <= bias + bound + 1e-9
    inside = Numbers.of(kind, "v", ic.where(v=ic.below(1)))
    assert 1.0 == inside.width  # of the bins that may count


@pytest.mark.parametrize("error", [0.01, 0.1, 0.4])
def test_bounds_hold_for_every_error_of_the_answers(error):
    draw = np.random.default_rng(5)
    domain = ic.Domain.of(age=range(40), sex=["F", "M"])
    for condition in (None, ic.where(sex="F")):
        numbers = Numbers.of(domain, "age", condition)
        for _ in range(300):
            weights = draw.dirichlet(np.full(40, 0.05)) * draw.uniform(
                0.3, 1.0 if condition is not None else 0.3
            )
            if condition is None:
                weights /= weights.sum()
            true = [
                weights @ numbers.shares,
                weights.sum() - weights @ numbers.shares,
                weights @ numbers.squares,
            ]
            if numbers.everybody:
                del true[1]
            errors = draw.uniform(0, error, len(true))
            values = [one + e * draw.choice([-1, 1]) for one, e in zip(true, errors, strict=True)]
            value, bound, *_ = numbers.worked_out("variance", 1, Parts(values, errors.tolist()))
            places = np.arange(40)
            mean = weights @ places / weights.sum()
            variance = weights @ (places - mean) ** 2 / weights.sum()
            assert not abs(value - variance) > bound  # NaN of too few


def test_by_group_and_in_sql():
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    session = opened(4, "age", "sex")
    groups = session.group_by("sex", aggregate="variance", of="age")
    table = session.sql("SELECT sex, VAR_POP(age), AVG(age), COUNT(*) FROM t GROUP BY sex")
    alone = session.sql("SELECT VAR_POP(age) FROM t WHERE sex = 'F'")
    weighed = session.sql("SELECT VAR_POP(CASE WHEN sex = 'F' THEN age END) FROM t")

    assert "VAR_POP(age)" in str(table).splitlines()[0].split()  # as it was written
    assert groups.values == pytest.approx(table.values[:, 0])
    assert alone.value == pytest.approx(weighed.value) == pytest.approx(groups.values[0])
    for at, chosen in enumerate((WOMEN, ~WOMEN)):
        assert abs(groups.values[at] - ROWS["age"][chosen].var()) <= groups.error_bounds[at]
    assert (
        session.explain("SELECT VAR_POP(age) FROM t").free
        or session.explain(lambda one: one.variance("age")).answers == 2
    )


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("SELECT STDDEV(DISTINCT age) FROM t", "not supported: DISTINCT in an aggregate"),
        ("SELECT VAR_POP(sex) FROM t", "VAR_POP must be over a numeric column"),
        ("SELECT VAR_POP(age) FROM t WHERE 1 = 0", "VAR_POP must be over some records"),
        (
            "SELECT VAR_POP(CASE WHEN sex = 'F' THEN 1 END) FROM t",
            "VAR_POP.CASE .... must have ELSE 0 for a rate",
        ),
    ],
)
def test_other_spreads_are_refused_by_name(text, match):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    with pytest.raises(InvalidQueryError, match=match):
        opened(1, "age", "sex").sql(text)


def test_of_next_to_nobody_there_is_one_without_a_bound():
    few = {"age": ROWS["age"][:50], "sex": ROWS["sex"][:50]}
    data = ic.PrivateData.from_records(few, DOMAIN.project("age", "sex"))
    session = ic.OnlineIC(data, ic.Budget(0.1, 1e-6), noise=SimulatedNoise(1), questions=5)
    found = session.variance("age", ic.where(sex="F"))

    assert (True, np.inf) == (found.few_records, found.error_bound)
    assert 0.0 <= found.value <= 39**2 / 4
    assert 0.0 < found.expected_error <= 39**2 / 4
    assert found.to_dict()["error_bound"] is None


def test_squares_cross_the_network_by_name():
    domain = DOMAIN.project("cost", "sex")
    for asked in Numbers.of(domain, "cost", ic.where(sex="F")).asks("variance"):
        sent = to_wire(asked, domain)
        assert sent["weigh"] == "cost"
        assert from_wire(sent, domain).bind(domain).key == asked.bind(domain).key


def test_persons_have_the_variance_of_their_shares():
    rows = {"id": np.arange(N) // 2, "age": ROWS["age"], "sex": ROWS["sex"]}
    data = ic.PrivateData.from_records(rows, DOMAIN.project("age", "sex"), unit=ic.Unit("id"))
    session = ic.OnlineIC(data, ic.Budget(2.0, 1e-6), noise=SimulatedNoise(3), questions=30)
    found = session.variance("age")

    assert abs(found.value - ROWS["age"].var()) <= found.error_bound  # each has two rows
    assert "persons" in repr(found)
