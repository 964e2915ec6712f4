"""Default plans at ten points, written down: what was found by experiment changes only on purpose."""

import pytest

import onlineic as ic
from onlineic.plan import session_plan
from onlineic.sparse import ExponentialSparse
from onlineic.updates import FittedTables

DOMAINS = {
    "long": ic.Domain.of(x=range(1000)),
    "many": ic.Domain.of(a=75, b=16, c=5, d=range(100), e=2, f=2),
    "few": ic.Domain.of(a=4, b=3, c=20),
}
# domain, n, epsilon, delta, hard answers wished for
POINTS = [
    ("many", 2_000, 0.5, 0.0, None),
    ("many", 5_000, 1.0, 1e-6, None),
    ("many", 12_000, 1.0, 1e-9, None),
    ("many", 48_842, 1.0, 1e-9, None),
    ("many", 48_842, 3.0, 0.0, None),
    ("few", 10**6, 1.0, 1e-6, None),
    ("few", 10**5, 0.3, 0.0, None),
    ("long", 10**6, 1.0, 1e-9, None),
    ("many", 10**6, 2.0, 1e-9, 200),
    ("few", 10**4, 0.1, 1e-5, 3),
]
NAMES = ["-".join(map(str, point)) for point in POINTS]
# hard answers planned, parts; tables that are settled beforehand, Laplace; scales of the test, of a block and
# threshold, and of those tables, records
TABLES = [
    (2, 4, None, (129.0578, 234.5136, 180.0, 2759.665), None),
    (2, 6, None, (46.12253, 46.12253, 467.0659), None),
    (2, 10, None, (60.19312, 60.19312, 609.5535), None),
    (3, 24, None, (68.43787, 68.43787, 665.2959), None),
    (8, 32, None, (39.34143, 103.1037, 90.0, 1082.234), None),
    (1, 32, (1, True), (258.4766, 258.4766, 2796.659), 2.095474),
    (1, 18, (1, True), (351.9842, 558.7401, 400.0, 6934.336), 7.017548),
    (1, 32, (3, True), (406.0496, 406.0496, 4393.366), 6.249069),
    (200, 32, None, (255.365, 255.365, 1409.988), None),
    (3, 4, (1, True), (777.5044, 777.5044, 7558.25), 22.82896),
]
# mechanism, hard answers planned and threshold in records of a session of 1,000 numbers
NUMBERS = [
    ("ExponentialSparse", 15, 535.6956),
    ("GumbelSparse", 31, 191.8497),
    ("GumbelSparse", 45, 272.9213),
    ("GumbelSparse", 85, 307.1915),
    ("ExponentialSparse", 138, 546.6376),
    ("GumbelSparse", 232, 278.351),
    ("ExponentialSparse", 48, 2322.431),
    ("GumbelSparse", 134, 332.7466),
    ("GumbelSparse", 448, 199.0816),
    ("GumbelSparse", 11, 1108.644),
]


def records(sparse, value):
    return float(value) / (1 << sparse.grid_bits)


@pytest.mark.parametrize(("point", "expected"), list(zip(POINTS, TABLES, strict=True)), ids=NAMES)
def test_a_default_plan_is_the_one_written_down(point, expected):
    domain, n, epsilon, delta, wished = point
    budget = ic.Budget(epsilon, delta)
    plan = session_plan(DOMAINS[domain], n, budget, hard_answers=wished)
    sparse, bought = plan.sparse, plan.first_tables
    pure = isinstance(sparse, ExponentialSparse)
    tests = (sparse.threshold_scale, sparse.query_scale) if pure else (sparse.scale,)
    block = float(sparse.number_scale) if pure else records(sparse, sparse.ratio * sparse.scale)
    chosen = (plan.hard_answers, plan.partitions.parts, bought and (len(bought.targets), bought.pure))
    noise = (*(records(sparse, scale) for scale in tests), block, records(sparse, sparse.threshold))

    assert expected[:3] == chosen
    assert (pure, FittedTables()) == (delta == 0.0, plan.update)
    assert expected[3] == pytest.approx(noise, rel=1e-4)
    if bought is not None:
        assert expected[4] == pytest.approx(float(bought.scales[0]), rel=1e-3)


@pytest.mark.parametrize("n", [1, 10**8])
@pytest.mark.parametrize("size", [2, 257, 4_096])
def test_small_budgets_leave_levels_a_test(size, n):
    plan = session_plan(ic.Domain.of(x=size), n, ic.Budget(0.001, 1e-9))
    assert plan.sparse.account().capacity > plan.first_tables.charge.amount


@pytest.mark.parametrize(("point", "expected"), list(zip(POINTS, NUMBERS, strict=True)), ids=NAMES)
def test_a_default_plan_of_numbers_is_the_one_written_down(point, expected):
    domain, n, epsilon, delta, _ = point
    plan = session_plan(DOMAINS[domain], n, ic.Budget(epsilon, delta), release="answer", max_queries=1000)

    assert expected[:2] == (type(plan.sparse).__name__, plan.hard_answers)
    assert expected[2] == pytest.approx(records(plan.sparse, plan.sparse.threshold), rel=1e-4)


@pytest.mark.parametrize(
    ("hard_answers", "expected"),
    [(7, "ExponentialSparse"), (8, "GumbelSparse")],
)
def test_few_planned_numbers_take_pure_tests_though_delta_is_given(hard_answers, expected):
    """The mechanism that resolves the smaller gap."""
    budget = ic.Budget(1.0, 1e-6)
    plan = session_plan(
        DOMAINS["few"], 10**6, budget, release="answer", hard_answers=hard_answers, max_queries=1000
    )

    assert expected == type(plan.sparse).__name__
