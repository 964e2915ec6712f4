"""The same records err alike, however they are declared: nothing is lost to a cell that nobody falls into.

Each test asks sessions of a few seeds the same ranges of the same records under two declarations.
"""

import itertools

import numpy as np
import pytest

import onlineic as ic
from onlineic.noise import SimulatedNoise

N, VALUES, SEEDS, DAY, MINUTE = 30_000, 40, 12, np.datetime64("2024-01-01"), np.datetime64("2020-01-01T00:00")
RNG = np.random.default_rng(1)
G = RNG.integers(0, 3, N)
X = 39.9995 - np.minimum(RNG.exponential(np.array([3.0, 6.0, 9.0])[G], N), 39.999)  # most lie at the end
RANGES = [sorted(RNG.choice(VALUES, 2, replace=False).tolist()) for _ in range(8)]
ASKED = [*RANGES, *itertools.product(range(2, 38, 6), (VALUES,))]  # and those that reach up to the end
SMALL, WIDE = 100_000, 5_000  # codes a value, of attributes of very many
WHOLE = X.astype(int)
OTHERS = {f"w{place}": np.where(RNG.random(N) < 0.3, G, RNG.integers(0, 4, N)) for place in range(5)}
ANNOUNCED = {"others": OTHERS, "questions": [("x", "g")]}


def plain(value):
    return value


def day(value):
    return str(DAY + value)


def minute(value):
    return str(MINUTE + value * WIDE)


# kind, column, and how its values are written
KINDS = {
    "range": (range(VALUES), WHOLE, plain),
    "clipped": (ic.integers(0, VALUES - 1, clip=True), WHOLE, plain),
    "number": (ic.number(0, VALUES, bins=VALUES), X, plain),
    "open ends": (ic.binned([-np.inf, *range(1, VALUES), np.inf]), X, lambda value: value or -np.inf),
    "dates": (ic.dates("2024-01-01", "2024-02-09"), DAY + WHOLE, day),
    "long": (range(SMALL * VALUES), WHOLE * SMALL, lambda value: value * SMALL),
    "long dates": (
        ic.dates("2020-01-01T00:00", str(MINUTE + WIDE * VALUES - 1), by="minute"),
        MINUTE + WHOLE * WIDE,
        minute,
    ),
}
SESSIONS = {
    "told nothing": {},
    "delta 0": {"budget": ic.Budget(1.0)},
    "one attribute": {"alone": True},
    "sets announced": ANNOUNCED,
    "private n": {"neighbours": "add-remove", "n_at_most": 100_000},
    "persons": {"unit": ic.Unit("person")},
}


def errs(kind, column, written, *, budget=None, alone=False, others=None, questions=None, unit=None, **data):
    """Root mean squares of errors, of expected errors and of bounds, records."""
    columns, kinds = {"x": column}, {"x": kind}
    if not alone:
        columns, kinds = columns | {"g": G}, kinds | {"g": 3}
    columns, kinds = columns | (others or {}), kinds | dict.fromkeys(others or {}, 4)
    if unit is not None:
        columns["person"] = np.arange(N)
    table = ic.PrivateData.from_records(columns, ic.Domain.of(kinds), unit=unit, **data)
    conditions, truths = [], []
    for (low, high), side in itertools.product(ASKED, (None,) if alone else (0, 1)):
        inside = ic.at_least(written(low)) if high == VALUES else ic.span(written(low), written(high))
        conditions.append(ic.where({"x": inside} | ({} if alone else {"g": side})))
        truths.append(((X >= low) & (X < high) & (alone or side == G)).sum())
    found = []
    for seed in range(SEEDS):
        session = ic.OnlineIC(
            table, budget or ic.Budget(1.0, 1e-6), noise=SimulatedNoise(seed), questions=questions
        )
        answers = [session.answer(one) for one in conditions]
        found.append([(one.count, one.count_expected_error, one.count_bound) for one in answers])
    values, expected, bounds = np.moveaxis(np.array(found), 2, 0)
    return [float(np.sqrt(np.mean(np.square(one)))) for one in (values - truths, expected, bounds)]


def asked_alike(first, second, **session):
    """How much more the second declaration errs, is expected to err, and may err."""
    found = [errs(*declared, **session) for declared in (first, second)]
    return [other / one for one, other in zip(*found, strict=True)]


CASES = [
    *itertools.product(("range", "number"), SESSIONS),
    *itertools.product(("clipped", "open ends", "dates"), ("told nothing", "sets announced")),
    *itertools.product(("long",), ("told nothing", "delta 0", "one attribute", "sets announced")),
    ("long dates", "told nothing"),
]


@pytest.mark.parametrize(("kind", "session"), CASES)
def test_a_missing_cell_that_nobody_falls_into_takes_nothing(kind, session):
    declared, column, written = KINDS[kind]
    beside = ic.optional(declared), column, written

    errors, expected, bounds = asked_alike(KINDS[kind], beside, **SESSIONS[session])

    assert errors < 1.15
    assert 1 / 1.05 < expected < 1.05
    assert bounds < 1.05


def halfway(value):
    """Half of the values lie before a gap of as many days, half after it."""
    return value if value <= VALUES // 2 else value + VALUES // 2


GAP = (
    ic.dates("2024-01-01", "2024-02-29"),
    DAY + np.where(WHOLE < VALUES // 2, WHOLE, WHOLE + VALUES // 2),
    lambda value: day(halfway(value)),
)
WIDER = range(3 * VALUES // 2), WHOLE, plain
MORE = (3 / 2) ** 0.5  # of half as many cells more, each with noise


@pytest.mark.parametrize(
    ("kind", "other", "session", "most"),
    [
        ("open ends", KINDS["number"], ANNOUNCED, 1.05),  # its bins: no table for counts tells their ends
        ("dates", GAP, {}, MORE),
        ("dates", GAP, ANNOUNCED, MORE),
        ("range", WIDER, {}, MORE),
    ],
    ids=["two ends", "a gap", "a gap, announced", "values that nobody has"],
)
def test_cells_that_nobody_asks_for_add_their_noise_and_no_more(kind, other, session, most):
    errors, expected, bounds = asked_alike(KINDS[kind], other, **session)

    assert errors < 1.05 * most
    assert expected < 1.05 * most
    assert bounds < 1.05 * most


@pytest.mark.parametrize("session", ["persons", "private n"])
@pytest.mark.parametrize("budget", [ic.Budget(1.0, 1e-6), ic.Budget(0.2, 1e-6), ic.Budget(1.0)], ids=repr)
def test_who_is_protected_takes_nothing(session, budget):
    """Each record is a person of its own; a record that comes or goes moves less than one that changes."""
    found = [errs(*KINDS["range"], budget=budget, **one) for one in ({}, SESSIONS[session])]
    errors, expected, bounds = (other / one for one, other in zip(*found, strict=True))

    assert errors < 1.1
    assert expected < 1.05
    assert bounds < 1.05
