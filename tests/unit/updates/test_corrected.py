"""Answers that follow the released tables where these contradict the fit."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.hypothesis import Histogram
from onlineic.interactions.levels import levels_of
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases
from onlineic.queries import Measurement, Partition
from onlineic.updates import CorrectedFit, FittedTables

DOMAIN = ic.Domain.of(x=range(40), g=2)
TARGET = Partition(DOMAIN, (0, 1), (np.arange(40), np.arange(2)))
BUDGET = ic.Budget(1.0, 1e-6)


def truth():
    falling = np.exp(-np.arange(40)[:, None] / np.array([2.5, 6.0]))
    return falling / falling.sum()


def released(scale, seed=0):
    noise = np.random.default_rng(seed).normal(0.0, scale, (40, 2))
    return Measurement(TARGET, (truth() + noise).ravel(), scale)


def queries():
    return [ic.where(x=ic.at_least(low), g=g).bind(DOMAIN) for low in range(2, 30, 3) for g in (0, 1)]


def errors(hypothesis):
    exact = Histogram(DOMAIN, truth())
    return np.array([hypothesis.evaluate(one) - exact.evaluate(one) for one in queries()])


def test_an_answer_goes_with_tables_that_the_fit_contradicts():
    apart = np.outer(truth().sum(axis=1), truth().sum(axis=0))
    fit = Histogram(DOMAIN, apart)  # knows nothing of how the two go together
    corrected = CorrectedFit(fit, (released(1e-5),))

    assert np.abs(errors(corrected)).max() < 0.05 * np.abs(errors(fit)).max()


@pytest.mark.parametrize("epsilon", [0.1, 0.3])
def test_ranges_over_nearly_empty_cells_err_less_than_those_of_the_fit(epsilon):
    """No cell is below 0, so a fit gives to the empty ones what it takes from the others."""
    generator, n = np.random.default_rng(0), 60_000
    g = generator.integers(0, 2, n)
    x = np.minimum(generator.exponential(np.where(g == 1, 6.0, 2.5)).astype(int), 40)
    domain = ic.Domain.of(x=41, g=2)
    data = ic.PrivateData.from_records({"x": x, "g": g}, domain)
    asked = [ic.where(x=ic.at_least(low), g=side) for low in range(2, 30, 3) for side in (0, 1)]
    exact = np.array([data.exact_counts(one.bind(domain)) / n for one in asked])
    corrected, fitted = [], []
    for seed in range(8):
        session = ic.OnlineIC(data, ic.Budget(epsilon, 1e-6), noise=SimulatedNoise(seed))
        session.answer(asked[0])
        for found, hypothesis in ((corrected, session.hypothesis), (fitted, session.hypothesis.fit)):
            found.append(hypothesis.evaluate_many([one.bind(domain) for one in asked]) - exact)

    assert np.sqrt(np.mean(np.square(corrected))) < 2 / 3 * np.sqrt(np.mean(np.square(fitted)))


def test_where_the_fit_is_right_it_is_hardly_moved():
    moved, noise = [], []
    for seed in range(20):
        one = released(1e-4, seed)
        moved.append(errors(CorrectedFit(Histogram(DOMAIN, truth()), (one,))))
        noise.append(errors(CorrectedFit(Histogram(DOMAIN, np.full((40, 2), 1 / 80)), (one,))))

    assert np.sqrt(np.mean(np.square(moved))) < 0.5 * np.sqrt(np.mean(np.square(noise)))


def test_cells_are_not_negative_and_have_the_corrected_sum():
    corrected = CorrectedFit(Histogram(DOMAIN, np.full((40, 2), 1 / 80)), (released(1e-3),))
    table = corrected.marginal("x", "g")

    assert table.min() >= 0.0
    assert table.sum() == pytest.approx(1.0)
    assert corrected.blocks(TARGET).tolist() == table.ravel().tolist()
    assert {*corrected.sample(5, 0)} == {"x", "g"}


def test_one_and_many_are_the_same_to_the_bit():
    corrected = CorrectedFit(Histogram(DOMAIN, np.full((40, 2), 1 / 80)), (released(1e-3),))
    asked = [*queries(), ic.where(x=ic.weights(np.arange(40) / 64)).bind(DOMAIN)]

    assert [corrected.evaluate(one) for one in asked] == corrected.evaluate_many(asked).tolist()


LONG = ic.Domain.of(t=ic.optional(range(400_000)), g=2)
PARTS = levels_of(LONG)[0].parts.index(65)  # sixty-four parts of the values, and the missing cell
CUT = levels_of(LONG)[0].cut(PARTS)
ALONG = Partition(LONG, (0, 1), (CUT, np.arange(2)))
SHARES = np.append(np.exp(-np.arange(64) / 30.0)[:, None] * [1.0, 0.3], [[0.2, 1.0]], axis=0)
SHARES = SHARES / SHARES.sum()
EVEN = FittedTables().init(LONG)  # the fit of nothing
OF_LONG = CorrectedFit(EVEN, (Measurement(ALONG, SHARES.ravel(), 1e-7),))


def share(low, high, side):
    """The truth of a range of codes, even within each part."""
    return float(CUT.inside(low, high) @ SHARES[:, side])


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    ("low", "high"), [(0, 6_250), (6_250, 50_000), (9_999, 123_456), (5, 7), (0, 400_000)]
)
def test_answers_go_with_tables_along_a_long_attribute(low, high, side):
    asked = [ic.where(t=ic.span(low, high), g=side), ~ic.where(t=ic.span(low, high), g=side)]
    asked = [one.bind(LONG) for one in asked]
    values = [OF_LONG.evaluate(one) for one in asked]

    assert [share(low, high, side), 1.0 - share(low, high, side)] == pytest.approx(values, abs=1e-5)
    assert values == OF_LONG.evaluate_many(asked).tolist()
    assert share(400_000, 400_001, side) == pytest.approx(
        OF_LONG.evaluate(ic.where(t=None, g=side).bind(LONG)), abs=1e-5
    )


def test_weights_along_a_long_attribute_are_answered_as_its_codes():
    rising = np.linspace(0.0, 1.0, 400_001)
    means = np.add.reduceat(rising, CUT.firsts) / CUT.widths

    assert OF_LONG.evaluate(ic.where(t=ic.weights(rising), g=1).bind(LONG)) == pytest.approx(
        float(means @ SHARES[:, 1]), abs=1e-5
    )


@pytest.mark.parametrize(
    "cut",
    [CUT, levels_of(LONG)[0].cut(PARTS - 1), np.arange(400_001) // 1_000 % 3, [0, 10, 99_999, 100_000]],
    ids=["its own", "coarser", "by turns", "elsewhere"],
)
def test_blocks_along_a_long_attribute_are_the_sums_of_its_codes(cut):
    cut = type(CUT).at(400_001, cut) if isinstance(cut, list) else cut
    target = Partition(LONG, (0, 1), (cut, np.arange(2)))
    written = OF_LONG.marginal("t", "g")

    assert written.min() >= 0.0
    assert written.sum() == pytest.approx(1.0)
    assert OF_LONG.blocks(target) == pytest.approx(target.measure(written), abs=1e-6)


def test_a_start_that_is_written_code_by_code_is_left_to_its_fit():
    written = Histogram(LONG, np.full(LONG.shape, 1.0 / LONG.size))
    corrected = CorrectedFit(written, OF_LONG.measurements)
    asked = ic.where(t=ic.below(50_000), g=1).bind(LONG)

    assert corrected.evaluate(asked) == written.evaluate(asked)


def test_a_table_cut_elsewhere_that_says_more_is_left_to_the_fit():
    elsewhere = Partition(DOMAIN, (0, 1), (np.arange(40) // 7, np.arange(2)))
    finer = Measurement(elsewhere, np.full(12, 1 / 12), 1e-7)
    fit = Histogram(DOMAIN, np.full((40, 2), 1 / 80))
    asked = ic.where(g=1).bind(DOMAIN)

    assert fit.evaluate(asked) == CorrectedFit(fit, (released(1e-5), finer)).evaluate(asked)
    assert fit.evaluate(asked) != CorrectedFit(fit, (released(1e-5),)).evaluate(asked)


SESSIONS = ["plain", "wide", "mixture", "long", "optional", "number", "private n", "persons", "dense"]


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("kind", SESSIONS)
def test_a_session_is_replayed_to_the_bit_and_keeps_its_bounds(delta, kind):
    generator, n = np.random.default_rng(3), 20_000
    g = generator.integers(0, 2, n)
    values = np.minimum(generator.exponential(np.where(g == 1, 6.0, 2.5)), 39.0)
    x = values if kind == "number" else values.astype(int)
    kinds = {"number": ic.number(0, 40, bins=40), "optional": ic.optional(range(40)), "long": range(10**6)}
    columns = {"x": x * 20_000 if kind == "long" else x, "g": g}
    wide = dict.fromkeys([f"w{place}" for place in range({"wide": 9, "mixture": 17}.get(kind, 0))], 9)
    columns |= {name: generator.integers(0, 9, n) for name in wide}
    domain = ic.Domain.of(x=kinds.get(kind, range(40)), g=2, **wide)
    assert (domain.size > 10**18) is (kind == "mixture")
    more = {"neighbours": "add-remove", "n_at_most": 50_000} if kind == "private n" else {}
    if kind == "persons":
        columns["id"], more = np.arange(n), {"unit": ic.Unit("id")}
    data = ic.PrivateData.from_records(columns, domain, **more)
    rule = DemandPurchases(rent=0)  # tables: numbers that are bought move no fit
    session = ic.OnlineIC(data, ic.Budget(1.0, delta), noise=SimulatedNoise(0), purchases=rule)
    least = [5, 10, 15, 20]
    if kind == "dense":
        ends = [np.arange(40)[:, None] >= low for low in least]
        answers = [session.answer(ic.dense((one & np.array([False, True])) * 0.5)) for one in ends]
        exact = [np.mean((values.astype(int) >= low) & (g == 1)) / 2 for low in least]
    else:
        scale = 20_000 if kind == "long" else 1
        answers = [session.answer(ic.where(x=ic.at_least(low * scale), g=1)) for low in least]
        exact = [np.mean((values.astype(int) >= low) & (g == 1)) for low in least]
    again = ic.replay(session.transcript, domain, session.plan.update, session.plan.alpha)

    assert type(session.hypothesis) is CorrectedFit
    asked = ic.where(g=1).bind(domain)
    assert again.evaluate(asked) == session.hypothesis.evaluate(asked)
    share = n / session.n if kind == "private n" else 1.0  # all counts are over the released number
    for one, true in zip(answers, exact, strict=True):
        assert abs(one.value - true * share) <= one.error_bound
    assert np.min(session.group_by("g").values) >= 0.0
    mean = None if kind == "long" else session.mean("x", ic.where(g=1))
    assert mean is None or 0.0 <= mean.value <= 40.0
    rising = session.cdf("x", ic.where(g=1)).values if kind != "long" else np.zeros(1)
    assert (np.diff(rising) >= 0.0).all()
    quantiles = [session.quantile("x", q, ic.where(g=1)).value for q in (0.1, 0.5, 0.9)]
    assert quantiles == sorted(quantiles, key=lambda one: float(str(one).strip("[").split(",")[0]))


def test_each_node_of_periods_follows_its_tables_and_ranges_keep_their_bounds():
    domain, budget = ic.Domain.of(x=range(40), g=2), ic.Budget(0.3, 1e-6)
    held = ic.Periods(None, domain, budget, levels=("month", "quarter"), noise=SimulatedNoise(2))
    rng, exact = np.random.default_rng(0), 0.0
    for label in ("2026-01", "2026-02", "2026-03", "2026-04"):
        g = rng.integers(0, 2, 5_000)
        x = np.minimum(rng.exponential(np.where(g == 1, 6.0, 2.5)).astype(int), 39)
        held.add(label, ic.PrivateData.from_records({"x": x, "g": g}, domain))
        exact += float(((x >= 15) & (g == 1)).sum())
    held.close("2026-Q1")

    answer = held.over().answer(ic.where(x=ic.at_least(15), g=1))
    assert abs(answer.count - exact) <= answer.count_bound
    assert 0.0 < answer.count_expected_error < answer.count_bound
    held.node("2026-04").answer_many([ic.where(x=ic.at_least(low), g=1) for low in range(1, 30)])
    for label in ("2026-Q1", "2026-04"):  # which have bought tables by now
        assert type(held.node(label).hypothesis) is CorrectedFit
