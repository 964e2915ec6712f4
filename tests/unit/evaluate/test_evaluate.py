"""Traces are the errors that were made, noise is paired by seed, and the baselines stand beside the rules."""

import math

import numpy as np
import pytest

from onlineic.accounting import Budget
from onlineic.data import PrivateData
from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError
from onlineic.evaluate import (
    Trace,
    compare,
    coverage,
    exact_marginal,
    exact_values,
    known_baselines,
    trace,
)
from onlineic.noise import SimulatedNoise
from onlineic.queries import between, weights, where
from onlineic.session import OnlineIC
from onlineic.updates import MultiplicativeWeights, Perceptron

DOMAIN = Domain.of(a=8, b=["x", "y"])
COUNTS = np.array([[900, 100], [50, 0], [300, 20], [10, 400], [1, 1], [0, 90], [600, 8], [20, 500]])
BUDGET = Budget(1.0, 1e-9)
STREAM = [where(a=between(i % 5, 3 + i % 5)) for i in range(40)]
STREAM += [where(a=i % 8, b="x") for i in range(40)] + [where()]


def table():
    return PrivateData(COUNTS.ravel(), DOMAIN)


def test_exact_values_are_sums_over_cells():
    stream = [where(a=between(1, 3)), ~where(b="y"), where(a=weights([0.5] + [0.0] * 7)), where()]
    stream.append(np.full(16, 0.25))

    assert [780 / 3000, 1881 / 3000, 500 / 3000, 1.0, 0.25] == exact_values(table(), stream).tolist()
    assert [1881 / 3000, 1119 / 3000] == exact_marginal(table(), "b").tolist()


def test_trace_holds_answer_minus_truth_and_what_the_session_counted():
    data = table()
    twins = [
        OnlineIC(data, BUDGET, hard_answers=5, max_queries=99, noise=SimulatedNoise(7)) for _ in range(2)
    ]
    answers = twins[0].answer_many(STREAM)
    seen = []
    one = trace("mine", twins[1], data, STREAM, seed=7, progress=seen.append)

    assert np.array_equal([a.value for a in answers] - exact_values(data, STREAM), one.errors)
    assert np.array_equal([a.error_bound for a in answers], one.bounds)
    stats = twins[0].statistics()
    counts = (stats.easy, stats.hard, stats.repeat, stats.untested)
    assert (*counts, stats.spent) == (one.easy, one.hard, one.repeat, one.untested, one.spent)
    assert [81] == [snapshot.asked for snapshot in seen]


def test_summary_numbers_of_a_trace_are_what_they_say():
    errors, bounds = np.array([0.3, -0.4, 0.0, 0.1]), np.array([0.2, 0.5, 0.0, math.inf])
    one = Trace("x", 0, errors, bounds, easy=1, hard=1, repeat=1, untested=1, spent=1.0, seconds=2.0)

    assert (0.2, math.sqrt(0.065), 0.4, 2.0) == pytest.approx(
        (one.mean_error, one.rms_error, one.max_error, one.queries_per_second)
    )
    assert (2, 3) == coverage([one])
    assert (4, 6) == coverage([one, one])
    assert "NOT PRIVATE" in repr(one)


def test_noise_is_paired_by_seed_and_a_rule_never_sees_what_stands_beside_it():
    options = {"hard_answers": 6, "max_queries": len(STREAM)}
    rules = {"mw": MultiplicativeWeights(), "twin": MultiplicativeWeights(), "perceptron": Perceptron()}
    traces = compare(table(), BUDGET, STREAM, rules, seeds=[0, 5], **options)
    mw, twin, _ = traces[:3]
    alone = compare(
        table(), BUDGET, STREAM, {"mw": MultiplicativeWeights()}, seeds=[5], baselines=False, **options
    )
    later = next(one for one in traces if one.seed == 5 and one.label == "mw")

    assert np.array_equal(mw.errors, twin.errors)
    assert np.array_equal(later.errors, alone[0].errors)
    assert not np.array_equal(mw.errors, later.errors)


def test_baselines_are_listed_after_the_rules_of_each_seed_and_know_the_stream():
    traces = compare(table(), BUDGET, STREAM, {"mw": None}, seeds=[0], hard_answers=4)

    assert [
        "mw",
        "per-query Laplace",
        "per-query Gaussian",
        "per-query noise, cached",
        "one noisy histogram",
        "noisy tables (2 sets)",
    ] == [one.label for one in traces]
    by_label = {one.label: one for one in traces}
    assert (80, 0) == (by_label["per-query Gaussian"].hard, by_label["per-query Gaussian"].untested)
    assert (12, 68) == (  # a in 4..7 is one minus a in 0..3
        by_label["per-query noise, cached"].hard,
        by_label["per-query noise, cached"].repeat,
    )
    assert 0 == sum(one.untested for one in traces[1:])
    assert {1.0} == {one.spent for one in traces[1:]}


def test_pure_budget_lists_no_gaussian_noise():
    assert "per-query Gaussian" not in known_baselines(table(), Budget(1.0), STREAM)


def test_errors_of_the_per_query_baseline_have_the_analytic_size():
    """sd sqrt(2) k/epsilon counts with k = 80 paid queries; the constant costs nothing."""
    traces = compare(table(), Budget(1.0), STREAM, {}, seeds=range(20))
    errors = np.concatenate([one.errors[:80] for one in traces if one.label == "per-query Laplace"])

    assert pytest.approx(math.sqrt(2.0) * 80 / 3000, rel=0.1) == float(np.sqrt(np.mean(errors**2)))


@pytest.mark.statistical
def test_stated_bounds_hold_for_sessions_and_baselines():
    traces = compare(
        table(), BUDGET, STREAM, {"mw": MultiplicativeWeights(rate=0.3)}, seeds=range(25), hard_answers=10
    )
    for label in {one.label for one in traces}:
        kept, bounded = coverage(one for one in traces if one.label == label)

        assert bounded > 0
        assert kept / bounded > 0.92


def test_misuse_is_refused():
    with pytest.raises(InvalidParameterError, match="stream must hold"):
        compare(table(), BUDGET, [], {"mw": None}, [0], baselines=False, hard_answers=1)
    with pytest.raises(InvalidParameterError, match="options must leave"):
        compare(table(), BUDGET, STREAM, {"mw": None}, [0], hard_answers=1, noise=SimulatedNoise(0))
    with pytest.raises(InvalidParameterError, match="labels of rules"):
        compare(table(), BUDGET, STREAM, {"one noisy histogram": None}, [0], hard_answers=1)


def test_experiments_open_no_private_budget():
    data = table()
    compare(data, BUDGET, STREAM, {"mw": None}, seeds=[0], hard_answers=2)

    assert [] == data.budgets
