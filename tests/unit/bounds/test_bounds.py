"""Theory as functions: tails against sums, constants against derivations, inverses against each other."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from onlineic import bounds
from onlineic.accounting import Budget, advanced_composition
from onlineic.errors import InfeasibleAccuracyError, InvalidParameterError
from onlineic.noise.laws import DiscreteLaplace
from onlineic.sparse import LaplaceSparse

SETTING = {"n": 10**5, "max_queries": 100, "epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
RULES = {
    "mw_book": partial(bounds.mw_book_bound, 1024),
    "mw_tight": partial(bounds.mw_tight_bound, 1024),
    "perceptron_book": partial(bounds.perceptron_book_bound, 64),
    "perceptron_centred": partial(bounds.perceptron_centred_bound, 64),
    "median_book": lambda alpha: bounds.median_book_bound(1024, alpha, 100),
    "median_sampling": lambda alpha: bounds.median_sampling_bound(1024, alpha, 100, 10**5),
    "median_dimension": partial(bounds.median_dimension_bound, 16),
}


def laplace_tail(distance, scale):
    """P(|Z| >= t), Z Laplace."""
    return math.exp(-distance / scale)


def laplace_margins(n, max_queries, epsilon, delta=0.0):
    """c -> margins of the mechanism calibrated for c hard answers."""

    def margins(cutoff):
        plan = {"n": n, "hard_answers": cutoff, "max_queries": max_queries, "grid_bits": 20}
        sparse = LaplaceSparse.calibrated(Budget(epsilon, delta), threshold=0.5, **plan)
        return sparse.margins(max_queries, 0.05, cutoff)

    return margins


# ------------------------------------ exact tails
def laws(scale, reach=4000):
    """Probabilities of the discrete Laplace law on -reach..reach."""
    q = math.exp(-1 / scale)
    z = np.arange(-reach, reach + 1)
    return z, (1 - q) / (1 + q) * q ** np.abs(z)


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 60.0])
@pytest.mark.parametrize("distance", [0, 1, 2, 17, 100])
def test_discrete_tails_are_sums_of_their_laws(scale, distance):
    z, laplace = laws(scale)

    assert laplace[np.abs(z) >= distance].sum() == pytest.approx(
        DiscreteLaplace(Fraction(scale)).tail(distance)
    )


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 7.5, 1e6, Fraction(10**12, 7)])
@pytest.mark.parametrize("beta", [1e-300, 1e-9, 0.05, 0.5, 1 - 1e-9])
def test_discrete_radius_is_the_least_that_covers(scale, beta):
    radius = DiscreteLaplace(Fraction(scale)).radius(beta)

    assert DiscreteLaplace(Fraction(scale)).tail(radius + 1) <= beta
    assert radius == 0 or DiscreteLaplace(Fraction(scale)).tail(radius) > beta


def test_scripted_coverage_at_one_and_a_half():
    """At scale 1, q = .3679: P(|Z| <= t) = .4621, .8022, .9272, .9732 for t = 0..3."""
    q = math.exp(-1)

    assert [0, 1, 2, 3] == [
        DiscreteLaplace(Fraction(1)).radius(2 * q ** (t + 1) / (1 + q) * 1.0001) for t in range(4)
    ]


# ------------------------------------ one-shot answers
@pytest.mark.parametrize(("count", "sensitivity"), [(1, 1.0), (50, 3.0)])
def test_laplace_bound_covers_with_beta_exactly_for_one_and_by_union_for_many(count, sensitivity):
    bound = bounds.laplace_bound(0.5, 0.05, sensitivity, count)
    one = laplace_tail(bound, sensitivity * count / 0.5)

    assert 0.05 == pytest.approx(count * one)
    assert 1 - (1 - one) ** count <= 0.05 + 1e-15


def test_an_absurd_number_of_records_is_refused():
    with pytest.raises(InfeasibleAccuracyError, match=r"n must be <= 2\^63"):
        bounds.least_n(lambda alpha: 1e300, 0.1, max_queries=10, epsilon=1e-10)


# ------------------------------------ sparse vector
def test_above_threshold_alpha_splits_beta_between_threshold_and_queries():
    alpha, queries, epsilon, beta = bounds.above_threshold_alpha(1000, 0.7, 0.02), 1000, 0.7, 0.02

    assert beta / 2 == pytest.approx(queries * laplace_tail(alpha / 2, 4 / epsilon))
    assert laplace_tail(alpha / 2, 2 / epsilon) <= beta / 2


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_sparse_alpha_is_above_threshold_at_a_share_of_epsilon_and_beta(delta):
    cutoff, epsilon = 40, 0.7
    share = epsilon / (2 * math.sqrt(2 * cutoff * math.log(1 / delta))) if delta else epsilon / cutoff

    assert bounds.above_threshold_alpha(1000, share, 0.05 / cutoff) == pytest.approx(
        bounds.sparse_alpha(cutoff, 1000, epsilon, delta, 0.05)
    )


def test_golden_scales():
    pure, repaired = (bounds.numeric_sparse_scales(10, 1.0, 1e-6, branch) for branch in ("pure", "repaired"))

    assert (Fraction(45, 2), Fraction(45), Fraction(90)) == (pure.threshold, pure.query, pure.number)
    assert [76.65511323, 153.3102265, 306.6204529] == pytest.approx(
        [float(repaired.threshold), float(repaired.query), float(repaired.number)], rel=1e-9
    )


@pytest.mark.parametrize("cutoff", [1, 7, 1000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), 0.1, 1, 10.0])
def test_pure_budget_identity_is_exact(cutoff, epsilon):
    scales = bounds.numeric_sparse_scales(cutoff, epsilon)

    assert Fraction(epsilon) == cutoff * (2 / scales.threshold) + cutoff / scales.number
    assert (2 * scales.threshold, 4 * scales.threshold) == (scales.query, scales.number)


@pytest.mark.parametrize("cutoff", [1, 2, 10, 117, 5000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.3])
def test_repaired_scales_are_rounded_up_and_cost_at_most_epsilon_or_are_refused(cutoff, epsilon, delta):
    spread = math.sqrt(2 * cutoff * math.log(2 / delta))
    shares = (8 * epsilon / 9 / (2 * spread), epsilon / 9 / (2 * spread))
    cost = sum(advanced_composition(share, delta / 2, cutoff) for share in shares)
    if cost > epsilon:
        with pytest.raises(InvalidParameterError, match=r"Corollary 3\.21"):
            bounds.numeric_sparse_scales(cutoff, epsilon, delta, "repaired")
        return
    scales = bounds.numeric_sparse_scales(cutoff, epsilon, delta, "repaired")
    spent = sum(
        advanced_composition(float(share), delta / 2, cutoff)
        for share in (2 / scales.threshold, 1 / scales.number)
    )

    assert spent <= epsilon
    assert float(2 / scales.threshold) == pytest.approx(shares[0], rel=1e-9)
    assert (2 * scales.threshold, 4 * scales.threshold) == (scales.query, scales.number)
    assert float((scales.threshold * Fraction(epsilon)) ** 2) >= 81 / 2 * cutoff * math.log(2 / delta) * (
        1 - 1e-14
    )


def test_a_known_failure_of_the_corollary_is_refused():
    with pytest.raises(InvalidParameterError, match='use branch="pure"'):
        bounds.numeric_sparse_scales(1, 20.0, 0.9, "repaired")


def test_refusals_of_a_branch_without_delta():
    with pytest.raises(InvalidParameterError, match='delta must be > 0 for branch="repaired"'):
        bounds.numeric_sparse_scales(10, 1.0, 0.0, "repaired")
    with pytest.raises(InvalidParameterError, match=r'got delta=0.0; branch="repaired" needs delta > 0'):
        bounds.numeric_sparse_alpha(10, 100, 1.0, 0.0, 0.05, 1, "repaired")


@pytest.mark.parametrize(("delta", "last"), [(1e-6, 116), (1e-9, 171)])
def test_the_branch_with_the_smaller_alpha_and_noise_is_taken(delta, last):
    for cutoff, branch in [(1, "pure"), (last, "pure"), (last + 1, "repaired"), (10**6, "repaired")]:
        both = {
            name: bounds.numeric_sparse_alpha(cutoff, 1000, 1.0, delta, 0.05, 1, name)
            for name in ("pure", "repaired")
        }
        scales = bounds.numeric_sparse_scales(cutoff, 1.0, delta)

        assert (
            branch == bounds.numeric_sparse_branch(cutoff, delta) == min(both, key=both.get) == scales.branch
        )
        assert min(both.values()) == bounds.numeric_sparse_alpha(cutoff, 1000, 1.0, delta, 0.05)
        assert scales.threshold <= bounds.numeric_sparse_scales(cutoff, 1.0).threshold


def test_golden_alpha_of_numeric_sparse():
    pure, repaired = (
        bounds.numeric_sparse_alpha(10, 1000, 1.0, 1e-6, 0.05, 1, branch) for branch in ("pure", "repaired")
    )

    assert [1223.313, 4167.698] == pytest.approx([pure, repaired], abs=1e-3)
    assert 9 * math.sqrt(8) / 9 * math.sqrt(math.log(2e6) / 10) == pytest.approx(repaired / pure)


@pytest.mark.parametrize("branch", ["pure", "repaired"])
@pytest.mark.parametrize(("cutoff", "queries"), [(1, 1), (10, 1000), (1000, 1000)])
def test_alpha_of_numeric_sparse_follows_from_its_scales(branch, cutoff, queries):
    """Threshold noise alpha/2 and query noise alpha/2 share beta/2, the numbers have the other half."""
    beta = 0.05
    scales = bounds.numeric_sparse_scales(cutoff, 1.0, 1e-6, branch)
    alpha = bounds.numeric_sparse_alpha(cutoff, queries, 1.0, 1e-6, beta, 1, branch)

    # Each of the c epochs may fail with beta/(2c): half of it to its threshold, half to its queries.
    each = beta / (4 * cutoff)
    assert each == pytest.approx(queries * laplace_tail(alpha / 2, float(scales.query)))
    assert laplace_tail(alpha / 2, float(scales.threshold)) <= each
    assert cutoff * laplace_tail(alpha, float(scales.number)) <= beta / 2


def number_failure(cutoff, queries, delta, branch):
    """Chance that one of c numbers is off by more than alpha, for the false printed constants too."""
    spread = math.sqrt(cutoff * math.log(2 / delta))
    if branch == "printed":
        ratio = math.sqrt(512) + 1
        alpha = ratio * (math.log(queries) + math.log(4 * cutoff / 0.05)) * spread
        scale = ratio * math.sqrt(8) * spread
    else:
        alpha = bounds.numeric_sparse_alpha(cutoff, queries, 1.0, delta, 0.05, 1, branch)
        scale = float(bounds.numeric_sparse_scales(cutoff, 1.0, delta, branch).number)
    return -math.expm1(cutoff * math.log1p(-laplace_tail(alpha, scale)))


@pytest.mark.parametrize(
    ("cutoff", "queries", "printed", "repaired"),
    [
        (1, 1, 0.212, 0.0125),
        (100, 100, 0.560, 1.2e-4),
        (1000, 1000, 0.800, 1.2e-5),
        (1000, 10**6, 0.130, 1.2e-8),
    ],
)
def test_the_printed_constant_breaks_the_numbers_and_the_repaired_one_does_not(
    cutoff, queries, printed, repaired
):
    assert printed == pytest.approx(number_failure(cutoff, queries, 1e-6, "printed"), abs=1e-3)
    assert repaired == pytest.approx(number_failure(cutoff, queries, 1e-6, "repaired"), rel=0.05)
    assert repaired == pytest.approx(number_failure(cutoff, queries, 1e-6, "pure"), rel=0.05)


@pytest.mark.parametrize("cutoff", [1, 2, 10, 1000])
def test_sparse_margin_bounds_the_exponential_moment_of_the_largest_threshold(cutoff):
    """E e^(R/2s) = prod 2i/(2i-1) for the largest R of c exponentials, below sqrt(pi (c + 1/2))."""
    moment = math.prod(2 * i / (2 * i - 1) for i in range(1, cutoff + 1))
    margin = bounds.sparse_margin(cutoff, 200, 22.5, 0.05)

    assert moment == pytest.approx(
        math.gamma(0.5) * math.exp(math.lgamma(cutoff + 1) - math.lgamma(cutoff + 0.5))
    )
    assert 200 * moment * math.exp(-margin / 45) / 2 <= 0.05
    assert 200 * moment * math.exp(-margin / 45) / 2 >= 0.05 * (1 - 0.125 / cutoff)


def test_sparse_margin_is_far_below_the_printed_one_and_above_the_one_comparison_formula():
    margin, one = bounds.sparse_margin(10, 200, 22.5, 0.025), 45 * math.log(2 * 200 / (3 * 0.025))

    assert 452 == round(margin)
    assert 1078 == round(bounds.numeric_sparse_alpha(10, 200, 1.0, 0.0, 0.05))
    assert one < margin
    assert 0.0 < bounds.sparse_margin(1, 1, 1.0, 1 - 1e-16) < 0.17


# ------------------------------------ T(alpha)
@pytest.mark.parametrize(
    ("size", "rows"), [(1, 5), (2, 10), (4, 50), (16, 12), (300, 2000), (1500, 1500), (5000, 3)]
)
def test_log_multisets_is_the_binomial(size, rows):
    assert math.log(math.comb(size + rows - 1, rows)) == pytest.approx(
        bounds.log_multisets(size, rows), rel=1e-12, abs=1e-300
    )


def test_log_multisets_stays_accurate_where_log_gammas_cancel():
    size, rows = 3000, 10**15

    expected = math.log(math.comb(size + rows - 1, size - 1))
    assert expected == pytest.approx(bounds.log_multisets(size, rows), rel=1e-12)


def test_update_bounds_have_their_closed_forms():
    log = math.log(1024)

    assert 4 * log / 0.01 == pytest.approx(bounds.mw_book_bound(1024, 0.1))
    assert log / 0.02 == pytest.approx(bounds.mw_tight_bound(1024, 0.1))
    assert 0.25 * 2 / 0.02 / 4 == pytest.approx(
        bounds.mw_tight_bound(1024, 0.1, divergence=0.25, width=1 / math.sqrt(2))
    )
    assert 3200 == pytest.approx(bounds.perceptron_book_bound(8, 0.05))
    assert 700 == pytest.approx(bounds.perceptron_centred_bound(8, 0.05))
    assert 10 * math.log(100) / 0.01 == pytest.approx(bounds.median_book_bound(1024, 0.1, 100))
    assert math.log2(math.comb(4 + 20 - 1, 20)) == pytest.approx(bounds.median_dimension_bound(4, 0.05))
    assert math.log2(math.comb(2 + 264, 265)) == pytest.approx(
        bounds.median_sampling_bound(2, 0.1, 100, 10**6)
    )
    assert math.log2(math.comb(16 + 6, 7)) == pytest.approx(bounds.median_sampling_bound(16, 0.01, 100, 7))


def test_nothing_to_learn_needs_no_update():
    flat = bounds.perceptron_centred_bound(64, 0.01, p2=1 / 64)

    assert [0.0] * 4 == [
        bounds.mw_book_bound(1, 0.1),
        bounds.mw_tight_bound(1024, 0.1, divergence=0.0),
        bounds.log_multisets(1, 7),
        flat,
    ]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_update_bounds_fall_with_alpha(rule):
    values = [rule(10 ** (i / 7)) for i in range(-60, 40)]

    assert sorted(values, reverse=True) == values


@pytest.mark.parametrize(
    "call",
    [
        lambda: bounds.mw_book_bound(0, 0.1),
        lambda: bounds.mw_book_bound(8, 0.0),
        lambda: bounds.mw_tight_bound(8, math.nan),
        lambda: bounds.mw_tight_bound(8, 0.1, divergence=-1.0),
        lambda: bounds.perceptron_book_bound(8, 0.1, p2=0.1),
        lambda: bounds.perceptron_centred_bound(8, 0.1, p2=1.5),
        lambda: bounds.median_book_bound(8, 0.1, 1),
        lambda: DiscreteLaplace(Fraction(1)).tail(1.5),
        lambda: bounds.laplace_bound(1.0, 1.0),
        lambda: bounds.numeric_sparse_scales(0, 1.0),
        lambda: bounds.numeric_sparse_scales(1, math.inf),
        lambda: bounds.numeric_sparse_alpha(0.5, 10, 1.0, 0.0, 0.05),
        lambda: bounds.least_alpha(RULES["mw_book"], n=0, max_queries=1, epsilon=1.0),
        lambda: bounds.least_alpha(RULES["mw_book"], n=10, max_queries=0, epsilon=1.0),
        lambda: bounds.least_alpha(RULES["mw_book"], n=10, max_queries=1, epsilon=0.0),
    ],
)
def test_parameters_outside_their_range_are_refused_by_name(call):
    with pytest.raises(InvalidParameterError, match=r"^\w+ must be .*got \w+="):
        call()


# ------------------------------------ the online engine
def test_golden_online_accuracy():
    found = bounds.online_ic_accuracy(RULES["mw_book"], n=10**6, max_queries=100, epsilon=1.0)

    assert [0.1607869513, 1072.466786, 0.3215739026, 0.4823608539] == pytest.approx(
        [found.alpha, found.updates, found.threshold, found.error_bound], rel=1e-9
    )
    assert (1072, "pure") == (found.cutoff, found.branch)
    assert 8.94e5 == pytest.approx(
        bounds.least_n(RULES["mw_book"], 1 / 6, max_queries=100, epsilon=1.0), rel=1e-3
    )


def test_golden_online_accuracy_with_delta():
    found = bounds.online_ic_accuracy(RULES["mw_tight"], **SETTING, branch="repaired")

    assert [0.1621287067, 131.8486322] == pytest.approx([found.alpha, found.updates], rel=1e-9)


@pytest.mark.parametrize(("branch", "factor"), [("pure", 36 * math.log(1024)), ("repaired", None)])
def test_solution_is_the_fixed_point_of_the_closed_form_for_multiplicative_weights(branch, factor):
    alpha = bounds.least_alpha(RULES["mw_book"], **SETTING, branch=branch)
    logs = math.log(100) + math.log(32 * math.log(1024) / (alpha**2 * 0.05))
    right = (
        factor * logs / (alpha**2 * 1e5)
        if factor
        else 36 * math.sqrt(2) * math.sqrt(math.log(1024) * math.log(2e6)) * logs / (alpha * 1e5)
    )

    assert alpha == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_delta_never_hurts(rule):
    for n in (10**3, 10**5, 10**7):
        with_delta = bounds.least_alpha(rule, **SETTING | {"n": n})
        pure = bounds.least_alpha(rule, **SETTING | {"n": n, "delta": 0.0})
        repaired = bounds.least_alpha(rule, **SETTING | {"n": n}, branch="repaired")

        assert min(pure, repaired) == pytest.approx(with_delta, rel=1e-12)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_least_alpha_is_monotone_in_every_public_parameter(rule):
    def solve(**changes):
        return bounds.least_alpha(rule, **SETTING | changes)

    falling = [
        [solve(n=10**power) for power in range(2, 9)],
        [solve(epsilon=epsilon) for epsilon in (0.01, 0.1, 1, 10)],
        [solve(beta=beta) for beta in (1e-300, 1e-9, 0.05, 0.5, 1 - 1e-12)],
        [solve(max_queries=10**power) for power in (18, 9, 4, 2, 0)],
        [solve(delta=delta) for delta in (0.0, 1e-12, 1e-6, 1e-3)],
    ]

    assert [sorted(values, reverse=True) for values in falling] == falling
    assert solve(pair=False) <= solve(pair=True)


@pytest.mark.parametrize(
    "bound", [bounds.mw_book_bound, bounds.mw_tight_bound, bounds.perceptron_centred_bound]
)
def test_least_alpha_rises_with_the_universe(bound):
    alphas = [bounds.least_alpha(partial(bound, 2**power), **SETTING) for power in (1, 4, 10, 20)]

    assert sorted(alphas) == alphas


def test_a_rule_that_needs_no_update_still_pays_for_one_hit():
    found = bounds.online_ic_accuracy(lambda alpha: 0.0, n=10**4, max_queries=1, epsilon=1.0, beta=0.05)

    assert (0.0, 1) == (found.updates, found.cutoff)
    assert 9 * (math.log(2) + math.log(4 / 0.05)) / 1e4 == pytest.approx(found.alpha)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_infeasible_alpha_is_refused_and_the_named_one_is_accepted(rule):
    least = bounds.least_alpha(rule, **SETTING)
    with pytest.raises(InfeasibleAccuracyError, match=r"alpha must be >= [\d.e+-]+ at n=100000") as refusal:
        bounds.online_ic_accuracy(rule, **SETTING, alpha=least * 0.7)
    named = float(str(refusal.value).split(">= ")[1].split(" ")[0])
    found = bounds.online_ic_accuracy(rule, **SETTING, alpha=named)

    assert least <= named <= least * 1.002
    assert (named, 2 * named, 3 * named) == (found.alpha, found.threshold, found.error_bound)
    assert max(1, math.floor(rule(named))) == found.cutoff


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_given_cutoff_is_large_enough_for_its_alpha(rule):
    for cutoff in (70, 200, 5000):
        found = bounds.online_ic_accuracy(rule, **SETTING, cutoff=cutoff)
        needed = bounds.numeric_sparse_alpha(cutoff, 200, 1.0, 1e-6, 0.05, 10**5)

        assert (cutoff, True, True) == (found.cutoff, rule(found.alpha) <= cutoff, found.alpha >= needed)
        assert found.alpha >= bounds.least_alpha(rule, **SETTING) * (1 - 0.01)


def test_alpha_and_cutoff_together_are_refused():
    with pytest.raises(InvalidParameterError, match="alpha must be None if cutoff is given"):
        bounds.online_ic_accuracy(RULES["mw_book"], **SETTING, alpha=0.5, cutoff=10)


def test_a_cutoff_below_every_value_of_t_names_the_least():
    with pytest.raises(InfeasibleAccuracyError, match="cutoff must be >= 4 for this rule, got cutoff=3"):
        bounds.online_ic_accuracy(RULES["median_dimension"], **SETTING, cutoff=3)


def test_a_branch_that_the_corollary_cannot_pay_for_is_refused():
    with pytest.raises(InvalidParameterError, match=r"Corollary 3\.21"):
        bounds.online_ic_accuracy(
            lambda alpha: 1.0, n=10**5, max_queries=10, epsilon=20.0, delta=0.9, branch="repaired"
        )


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("pair", [True, False])
@pytest.mark.parametrize("rule", [RULES["mw_book"], RULES["mw_tight"], RULES["perceptron_centred"]])
def test_least_n_and_most_queries_are_exact(rule, pair, delta):
    options = {"epsilon": 0.5, "delta": delta, "beta": 0.1, "pair": pair}

    def feasible(n, queries):
        comparisons = 2 * queries if pair else queries
        return 0.1 >= bounds.numeric_sparse_alpha(max(1.0, rule(0.1)), comparisons, 0.5, delta, 0.1, n)

    n = bounds.least_n(rule, 0.1, max_queries=1000, **options)
    queries = bounds.most_queries(rule, 0.1, n=n, **options)

    assert feasible(n, 1000)
    assert not feasible(n - 1, 1000)
    assert queries >= 1000
    assert feasible(n, queries)
    assert not feasible(n, queries + 1)


def test_least_epsilon_needs_no_more_and_no_less():
    epsilon = bounds.least_epsilon(RULES["mw_tight"], 0.1, n=10**5, max_queries=100, delta=1e-6)
    options = {"n": 10**5, "max_queries": 100, "delta": 1e-6}

    assert bounds.least_alpha(RULES["mw_tight"], epsilon=epsilon, **options) == pytest.approx(0.1, rel=1e-12)
    assert bounds.online_ic_accuracy(RULES["mw_tight"], epsilon=epsilon, alpha=0.1, **options).alpha == 0.1


def test_most_queries_is_capped_and_names_the_alpha_of_one_query():
    assert 2**63 - 1 == bounds.most_queries(RULES["mw_tight"], 0.1, n=10**9, epsilon=1.0)
    with pytest.raises(InfeasibleAccuracyError, match="for one query at n=1000") as refusal:
        bounds.most_queries(RULES["mw_tight"], 0.1, n=1000, epsilon=1.0)
    named = float(str(refusal.value).split(">= ")[1].split(" ")[0])

    assert bounds.most_queries(RULES["mw_tight"], named, n=1000, epsilon=1.0) >= 1


# ------------------------------------ certificates
@pytest.mark.parametrize(
    ("size", "queries", "n", "error", "cutoff"),
    [
        (2**6, 10**4, 10**5, 0.2624, 66),
        (2**10, 10**4, 10**4, 0.6599, 18),
        (2**10, 10**4, 10**5, 0.3117, 78),
        (2**10, 10**4, 10**6, 0.1471, 353),
        (2**20, 10**6, 10**5, 0.4310, 83),
        (2**20, 10**6, 10**6, 0.2026, 374),
    ],
)
def test_golden_certificates_of_laplace_sparse(size, queries, n, error, cutoff):
    margins = laplace_margins(n=n, max_queries=queries, epsilon=1.0)
    found = bounds.least_error(partial(bounds.mw_tight_bound, size), margins)

    assert error == pytest.approx(found.error_bound, abs=5.1e-5)
    assert cutoff == found.cutoff
    assert math.sqrt(math.log(size) / (2 * cutoff)) == pytest.approx(found.alpha)
    assert found.number_margin <= found.alpha
    assert found.threshold + found.miss_margin == found.error_bound


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_no_cutoff_beats_the_certificate(rule):
    margins = laplace_margins(n=10**5, max_queries=1000, epsilon=1.0)
    found = bounds.least_error(rule, margins)
    near, others = range(max(1, found.cutoff - 20), found.cutoff + 21), []
    for cutoff in sorted({*near, *range(1, 1200, 5)}):
        try:
            others.append(bounds.certificate(rule, margins, cutoff).error_bound)
        except InfeasibleAccuracyError:
            continue

    assert found.error_bound == min(others)
    assert found.error_bound < 3 * bounds.least_alpha(rule, **SETTING | {"max_queries": 1000, "delta": 0.0})


def test_a_certificate_with_numbers_worse_than_its_gap_is_refused():
    margins = laplace_margins(n=10**4, max_queries=100, epsilon=1.0)
    with pytest.raises(InfeasibleAccuracyError, match="cutoff must leave a_num <= alpha_d, got cutoff=5000"):
        bounds.certificate(RULES["mw_tight"], margins, 5000)
    with pytest.raises(InfeasibleAccuracyError, match="n must be large enough"):
        bounds.least_error(RULES["perceptron_book"], laplace_margins(n=1, max_queries=10, epsilon=0.01), 10)


def test_delta_improves_a_certificate_with_many_hits():
    pure = laplace_margins(n=10**7, max_queries=1000, epsilon=1.0)
    mixed = laplace_margins(n=10**7, max_queries=1000, epsilon=1.0, delta=1e-6)

    better, worse = (bounds.least_error(RULES["mw_tight"], margins) for margins in (mixed, pure))
    assert better.error_bound < worse.error_bound
    assert better.cutoff > 116


@pytest.mark.parametrize("scale", [0.2, 1 / math.log(2), 3.7, 45.0, 1e4])
def test_discrete_radius_is_the_least_also_where_beta_is_a_tail_exactly(scale):
    """There the formula for a first guess is a hair from an integer."""
    for radius in (0, 1, 2, 5, 17, 100):
        beta = DiscreteLaplace(Fraction(scale)).tail(radius + 1)
        if 0.0 < beta < 1.0:
            assert radius == DiscreteLaplace(Fraction(scale)).radius(beta)


@pytest.mark.parametrize("told", [-3, -math.inf, math.nan, None, "7"])
@pytest.mark.parametrize(
    "asked",
    [
        lambda bound: bounds.least_alpha(bound, **SETTING),
        lambda bound: bounds.online_ic_accuracy(bound, **SETTING, alpha=0.5),
        lambda bound: bounds.online_ic_accuracy(bound, **SETTING, cutoff=3),
        lambda bound: bounds.least_n(bound, 0.1, max_queries=10, epsilon=1.0),
        lambda bound: bounds.least_epsilon(bound, 0.1, n=1000, max_queries=10),
        lambda bound: bounds.most_queries(bound, 0.1, n=1000, epsilon=1.0),
        lambda bound: bounds.certificate(bound, lambda cutoff: (0.1, 0.1, 0.01), 3),
        lambda bound: bounds.offline_ic_alpha(bound, queries=10, n=1000, epsilon=1.0),
        lambda bound: bounds.offline_ic_n(bound, 0.1, queries=10, epsilon=1.0),
    ],
)
def test_a_bound_on_updates_that_is_none_is_refused_and_not_taken_for_one(told, asked):
    with pytest.raises(InvalidParameterError, match=r"update_bound must return a number >= 0, got .* at al"):
        asked(lambda alpha: told)


def test_a_bound_that_is_infinite_is_refused_by_name():
    endless = lambda alpha: math.inf  # noqa: E731
    with pytest.raises(InvalidParameterError, match="cutoff must be a number"):
        bounds.online_ic_accuracy(endless, **SETTING, alpha=0.5)
    with pytest.raises(InfeasibleAccuracyError, match="cutoff must be finite"):
        bounds.online_ic_accuracy(endless, **SETTING, cutoff=3)
