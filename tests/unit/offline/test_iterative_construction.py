"""The offline iterative construction: its theorem with right constants, its noise, its stop, its coverage."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic import bounds
from onlineic.accounting import Budget, ReplaceRows, advanced_share
from onlineic.data import PrivateData
from onlineic.domain import Domain
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    InvalidQueryError,
    SessionSealedError,
)
from onlineic.evaluate import exact_values
from onlineic.noise import SimulatedNoise, SystemNoise, public_generator
from onlineic.offline import iterative_construction, mwem
from onlineic.offline.construction import Workload
from onlineic.offline.rounds import paid_rounds
from onlineic.queries import dense
from onlineic.testing import ScriptedNoise
from onlineic.updates import MaximumEntropy, MeasuredWeights, Median, Perceptron, UpdateRule

GOLDEN = {"queries": 100, "epsilon": 1.0, "beta": 0.05}
LEAST = {  # MW book, |X| = 2^10
    (0.0, 10**5): 0.782,
    (0.0, 10**6): 0.376,
    (0.0, 10**7): 0.180,
    (1e-6, 10**5): 0.593,
    (1e-6, 10**6): 0.201,
    (1e-6, 10**7): 0.068,
}
PRINTED = {10**5: 0.503, 10**6: 0.241, 10**7: 0.115}
EIGHT = Domain.of(x=8)
BELOW = [ic.where(x=ic.below(end)) for end in range(1, 8)]


def updates(alpha):
    return bounds.mw_book_bound(2**10, alpha)


def skewed(n=100_000, size=8):
    counts = np.zeros(size, np.int64)
    counts[0], counts[1] = n - n // 4, n // 4
    return PrivateData(counts, Domain.of(x=size))


# -- the theorem -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "alpha"), LEAST.items())
def test_least_alpha_is_the_golden_one(setting, alpha):
    delta, n = setting

    found = bounds.offline_ic_alpha(updates, n=n, delta=delta, **GOLDEN)

    assert alpha == round(found, 3)
    assert found == bounds.offline_ic_error(updates(found / 2), n=n, delta=delta, **GOLDEN) or math.isclose(
        found, bounds.offline_ic_error(updates(found / 2), n=n, delta=delta, **GOLDEN), rel_tol=1e-12
    )


def test_rows_of_a_person_promise_what_as_many_times_fewer_records_do():
    """All noise is that of r rows: a promise of one row's was kept by chance alone."""
    rows, n = 4, 400_000
    promised = [
        iterative_construction(skewed(n), BELOW, budget, variant="book", noise=SimulatedNoise(1)).alpha
        for n, budget in ((n, Budget(1.0, neighbours=ReplaceRows(rows))), (n // rows, Budget(1.0)))
    ]

    assert promised[0] == promised[1]


def condition_of_theorem_5_6(alpha, n, delta=0.0):
    """max[8 ln(2T/beta)/(e0 n), 8F] as printed there, with e0 of Algorithm 8."""
    total = updates(alpha / 2)
    share = 1 / (2 * total) if delta == 0.0 else 1 / (4 * math.sqrt(total * math.log(1 / delta)))
    error = 2 * math.log(100 * 2 * total / 0.05) / (n * share)
    return max(8 * math.log(2 * total / 0.05) / (share * n), 8 * error)


@pytest.mark.parametrize(("n", "alpha"), PRINTED.items())
def test_constants_8_and_16_of_theorem_5_7_contradict_its_theorem_5_6_and_32_and_64_follow(n, alpha):
    total = updates(alpha / 2)
    logs = math.log(100 * 2 * total / 0.05)
    printed = 8 * total * logs / n

    assert math.isclose(alpha, printed, rel_tol=0.02)
    assert math.isclose(4 * printed, condition_of_theorem_5_6(alpha, n), rel_tol=1e-12)
    for delta in (0.0, 1e-6):
        least = bounds.offline_ic_alpha(updates, n=n, delta=delta, **GOLDEN)
        assert math.isclose(least, condition_of_theorem_5_6(least, n, delta), rel_tol=1e-12)
        if delta == 0.0:
            with pytest.raises(InfeasibleAccuracyError, match=r"alpha must be >= 0\.(78|37|18)"):
                bounds.offline_ic_accuracy(updates, n=n, alpha=alpha, **GOLDEN)
    advanced = 16 * math.sqrt(total * math.log(1e6)) * logs / n
    assert math.isclose(4 * advanced, condition_of_theorem_5_6(alpha, n, 1e-6), rel_tol=1e-12)


def test_accuracy_rounds_t_down_and_stops_at_three_quarters():
    found = bounds.offline_ic_accuracy(updates, n=10**6, alpha=0.5, **GOLDEN)

    assert (0.5, 0.375, "basic") == (found.alpha, found.stop, found.composition)
    assert found.rounds == math.floor(16 * math.log(2**10) / 0.5**2)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_n_is_the_inverse_of_alpha(delta):
    n = bounds.offline_ic_n(updates, 0.3, queries=100, epsilon=1.0, delta=delta)

    assert bounds.offline_ic_alpha(updates, n=n, delta=delta, **GOLDEN) <= 0.3 * (1 + 1e-12)
    assert bounds.offline_ic_alpha(updates, n=n - 2, delta=delta, **GOLDEN) > 0.3


@pytest.mark.parametrize(("total", "expected"), [(55.0, "basic"), (56.0, "advanced")])
def test_composition_is_the_one_with_the_smaller_error(total, expected):
    both = {
        kind: bounds.offline_ic_error(total, 100, 1000, 1.0, 1e-6, composition=kind)
        for kind in ("basic", "advanced")
    }

    assert expected == bounds.offline_ic_composition(total, 1e-6) == min(both, key=both.get)
    assert "basic" == bounds.offline_ic_composition(total, 0.0)
    with pytest.raises(InvalidParameterError, match="composition must"):
        bounds.offline_ic_error(total, 100, 1000, 1.0, 1e-6, composition="zcdp")


@pytest.mark.parametrize(
    "change",
    [
        {"queries": 0},
        {"n": 0},
        {"epsilon": 0.0},
        {"beta": 1.0},
        {"delta": -1.0},
        {"composition": "advanced"},
    ],
)
def test_bounds_refuse_what_is_out_of_range(change):
    with pytest.raises(InvalidParameterError):
        bounds.offline_ic_alpha(updates, **({"n": 1000} | GOLDEN | change))


def test_no_alpha_for_a_budget_of_next_to_nothing():
    with pytest.raises(InfeasibleAccuracyError, match="n must be large"):
        bounds.offline_ic_alpha(updates, queries=100, n=1, epsilon=1e-300)


# -- noise, stop, refusals ---------------------------------------------------------------------------


def test_book_scales_are_2_over_e0_for_the_choice_and_1_over_e0_for_the_answer():
    data = skewed(100_000)
    total = bounds.offline_ic_accuracy(
        lambda alpha: bounds.mw_book_bound(8, alpha), n=100_000, queries=7, epsilon=1.0
    ).rounds
    noise = ScriptedNoise([0] * 1000)
    built = iterative_construction(data, BELOW, Budget(1.0), variant="book", noise=noise)

    assert 0 <= built.plan.choice.scale - 4 * total < Fraction(1, 2**10)
    assert 0 <= built.plan.scale - 2 * total < Fraction(1, 2**10)
    expected = [("geometric", built.plan.choice.scale, 7), ("discrete_laplace", built.plan.scale, 1)]
    assert expected * len(built.measurements) == noise.scales
    assert total == built.plan.rounds


def test_book_with_delta_composes_by_corollary_3_21():
    data = skewed(1_000_000)
    built = iterative_construction(data, BELOW, Budget(1.0, 1e-6), variant="book", noise=SimulatedNoise(1))

    assert "advanced" == built.plan.composition
    assert advanced_share(1.0, 1e-6, 2 * built.plan.rounds) == built.plan.choice.epsilon


def test_book_falls_back_to_pure_composition_where_corollary_3_21_fails():
    data = skewed(3000)
    built = iterative_construction(data, BELOW, Budget(20.0, 0.5), variant="book", noise=SimulatedNoise(1))

    assert "basic" == built.plan.composition
    assert built.plan.rounds * built.plan.price <= 20


def test_tight_is_several_times_more_accurate_than_the_book_and_zcdp_than_pure():
    data, noise = skewed(1_000_000), SimulatedNoise(1)
    alpha = {
        (variant, delta): iterative_construction(
            data, BELOW, Budget(1.0, delta), variant=variant, noise=noise
        ).alpha
        for variant in ("book", "tight")
        for delta in (0.0, 1e-6)
    }

    assert alpha["tight", 0.0] < alpha["book", 0.0] / 2.5
    assert alpha["tight", 1e-6] < alpha["book", 1e-6] / 4
    assert alpha["tight", 1e-6] < alpha["tight", 0.0] / 2


def test_it_stops_on_the_noisy_gap_and_releases_that_number():
    data = skewed(1000, size=8)
    budget = Budget(20.0)
    far = iterative_construction(
        data, BELOW, budget, update=MaximumEntropy(), rounds=3, noise=ScriptedNoise(([0] * 7 + [0]) * 3)
    )
    # the first choice is x < 2, with all 1000 records; its answer is moved onto the guess
    guess = Workload.of(BELOW, data.domain, data.n).guesses(MaximumEntropy().init(data.domain))[1]
    near = iterative_construction(
        data,
        BELOW,
        budget,
        update=MaximumEntropy(),
        rounds=3,
        noise=ScriptedNoise([0] * 7 + [int(guess) - 1000]),
    )

    assert near.stopped
    assert (0.0,) == near.gaps
    assert [guess / 1000] == [float(one.values[0]) for one in near.measurements]
    assert len(far.measurements) > 1
    assert near.plan == far.plan  # the stop costs nothing and refunds nothing
    assert budget == near.budget


def test_bound_of_a_stop_is_its_gap_plus_what_choice_and_answer_can_miss():
    built = iterative_construction(
        skewed(50_000), BELOW, Budget(1.0), update=MaximumEntropy(), rounds=5, noise=SimulatedNoise(3)
    )
    share = 0.05 / (2 * 5)
    missed = built.plan.answer_radius(share) + built.plan.choice_radius(7, share) + 0.5

    assert built.stopped
    assert math.isclose(built.gaps[-1] + missed / 50_000, built.error_bound)
    assert math.inf == built.alpha


def test_a_rule_without_t_promises_nothing_if_its_rounds_run_out():
    built = iterative_construction(
        skewed(50_000), BELOW, Budget(1.0), update=MaximumEntropy(), rounds=1, noise=SimulatedNoise(3)
    )

    assert (False, math.inf) == (built.stopped, built.error_bound)


def test_larger_alpha_takes_fewer_rounds_and_still_keeps_it():
    data, budget = skewed(1_000_000), Budget(1.0)
    least = iterative_construction(data, BELOW, budget, noise=SimulatedNoise(1))
    wide = iterative_construction(data, BELOW, budget, alpha=3 * least.alpha, noise=SimulatedNoise(1))

    assert wide.plan.rounds < least.plan.rounds / 4
    assert 2 * least.alpha < wide.alpha <= 3 * least.alpha


@pytest.mark.parametrize("variant", ["tight", "book"])
def test_infeasible_alpha_is_refused_by_the_least_that_is_feasible(variant):
    data, budget = skewed(1_000_000), Budget(1.0, 1e-6)
    with pytest.raises(InfeasibleAccuracyError) as refused:
        iterative_construction(data, BELOW, budget, variant=variant, alpha=0.001)
    named = float(str(refused.value).split(">= ")[1].split(" ")[0])
    built = iterative_construction(data, BELOW, budget, variant=variant, alpha=named, noise=SimulatedNoise(1))

    assert built.alpha <= named
    with pytest.raises(InfeasibleAccuracyError):
        iterative_construction(data, BELOW, budget, variant=variant, alpha=0.98 * named)


def test_alpha_of_a_rule_without_t_is_kept_where_it_stops():
    data = skewed(200_000)
    with pytest.raises(InfeasibleAccuracyError) as refused:
        iterative_construction(data, BELOW, Budget(1.0), update=MeasuredWeights(), rounds=20, alpha=1e-4)
    named = float(str(refused.value).split(">= ")[1].split(" ")[0])
    built = iterative_construction(
        data, BELOW, Budget(1.0), update=MeasuredWeights(), rounds=20, alpha=named, noise=SimulatedNoise(2)
    )

    assert built.stopped
    assert built.error_bound <= named


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variant": "loose"}, "variant must be"),
        ({"distinguisher": "argmax"}, "distinguisher must be"),
        ({"beta": 0.0}, "beta must be"),
        ({"alpha": 0.0}, "alpha must be"),
        ({"rounds": 0}, "rounds must be"),
        ({"update": "mw"}, "update must be"),
        ({"noise": 7}, "noise must be"),
        ({"update": MaximumEntropy()}, "rounds must be given"),
        ({"update": MaximumEntropy(), "variant": "book"}, r"proven T\(alpha\)"),
        ({"variant": "book", "rounds": 3}, "rounds must be None"),
        ({"alpha": 0.5, "rounds": 3}, "rounds must be None"),
        ({"update": Median()}, "enumerate at most"),
    ],
)
def test_refusals_come_before_the_budget_is_touched(change, message):
    data = skewed(1_000_000, size=16)
    with pytest.raises((InvalidParameterError, ValueError), match=message):
        iterative_construction(data, [ic.where(x=0), ic.where(x=1)], Budget(1.0), **change)

    assert ([], 0) == (list(data.budgets), data.reads)


@pytest.mark.parametrize("queries", [[], [ic.where(x=ic.below(8))], [3]])
def test_a_class_without_a_query_that_can_be_measured_is_refused(queries):
    with pytest.raises(InvalidQueryError, match="queries must"):
        iterative_construction(skewed(), queries, Budget(1.0))


def test_too_few_records_are_refused_by_name():
    with pytest.raises(InfeasibleAccuracyError, match="n must be larger"):
        iterative_construction(skewed(4), BELOW, Budget(0.01))


def test_private_noise_spends_the_budget_once_and_stamps():
    data, budget = skewed(), Budget(1.0, 1e-9)
    real = iterative_construction(data, BELOW, budget, noise=SystemNoise())
    unreal = iterative_construction(data, BELOW, budget, noise=SimulatedNoise(1))

    assert [budget] == list(data.budgets)
    assert (True, False) == (real.private, unreal.private)
    assert "NOT PRIVATE" not in repr(real)
    assert repr(unreal).endswith("NOT PRIVATE)")


def test_a_rule_that_fails_leaves_no_trace_of_the_private_frames():
    class Broken(UpdateRule):
        def init(self, domain, prior=None):
            return ic.Histogram(domain)

        def update(self, hypothesis, measurements, alpha):
            raise RuntimeError("secret")

        def update_bound(self, domain, alpha):
            return None

    data = skewed()
    with pytest.raises(SessionSealedError) as failed:
        iterative_construction(data, BELOW, Budget(1.0), update=Broken(), rounds=2)

    assert (None, None) == (failed.value.__cause__, failed.value.__context__)
    assert [Budget(1.0)] == list(data.budgets)


class Believer:
    """A plug-in's hypothesis that evaluates to whatever it was made with."""

    domain = EIGHT

    def __init__(self, values):
        self.values = values

    def supports(self, query):
        return True

    def evaluate(self, query):
        return float(self.values)

    def evaluate_many(self, queries):
        return np.broadcast_to(self.values, len(queries)) if np.ndim(self.values) == 0 else self.values


class Plugin(UpdateRule):
    """A plug-in's rule without T(alpha): a first hypothesis, and what it does with it."""

    def __init__(self, first, update=None):
        self.first, self.step = first, update

    def init(self, domain, prior=None):
        return self.first

    def update(self, hypothesis, measurements, alpha):
        return self.step(hypothesis)

    def update_bound(self, domain, alpha):
        return None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.array([0.5]), np.full((7, 1), 0.5)])
def test_a_hypothesis_without_one_finite_number_a_query_is_refused_before_anything_is_spent(value):
    """Its scores would wrap around: a query with no record would be the best of all, with one the worst."""
    data = skewed()
    for build in (iterative_construction, mwem):
        with pytest.raises(InvalidParameterError, match="one finite number a query"):
            build(data, BELOW, Budget(1.0), update=Plugin(Believer(value)), rounds=2)
    assert ([], 0) == (list(data.budgets), data.reads)

    later = Plugin(Believer(0.5), lambda hypothesis: Believer(value))
    with pytest.raises(SessionSealedError):  # behind the first round it can only be sealed
        iterative_construction(data, BELOW, Budget(1.0), update=later, rounds=2, noise=SimulatedNoise(0))


@pytest.mark.parametrize(("value", "counted_as"), [(1e300, 1.0), (-1e30, 0.0), (1.5, 1.0), (-0.5, 0.0)])
def test_guesses_outside_of_the_unit_interval_count_as_its_ends_so_that_a_record_moves_a_score_by_one(
    value, counted_as
):
    workload = Workload.of(BELOW, EIGHT, 1000)
    guesses = workload.guesses(Believer(value))
    scores = [
        np.abs(workload.exact(PrivateData(np.array(counts), EIGHT)) - guesses)
        for counts in ([0, 500, 500, 0, 0, 0, 0, 0], [1, 499, 500, 0, 0, 0, 0, 0])
    ]
    update = Plugin(Believer(value), lambda hypothesis: hypothesis)
    built = mwem(skewed(), BELOW, Budget(1.0), update=update, rounds=1, noise=SimulatedNoise(0))

    assert np.full(7, counted_as * workload.units).tolist() == guesses.tolist()
    assert 1 == np.abs(scores[0] - scores[1]).max()
    assert np.full(7, counted_as).tolist() == built.answers(BELOW).tolist()


@pytest.mark.parametrize("build", [iterative_construction, mwem])
def test_no_frame_that_calls_a_rule_or_a_hypothesis_shows_an_exact_answer(build):
    """A log with the locals of all frames, made by a plug-in's own handler, must hold nothing private."""
    counts = np.array([100_003, 200_017, 300_029, 0, 0, 0, 0, 77_777])
    secrets, shown = set(np.cumsum(counts)[:7].tolist()) | set(counts[counts > 0].tolist()), []

    def look():
        frame = sys._getframe(1)
        while frame is not None:
            if "onlineic" in str(frame.f_globals.get("__name__")):
                for local in frame.f_locals.values():
                    numbers = np.ravel(local).tolist() if isinstance(local, (np.ndarray, int)) else []
                    shown.append((frame.f_code.co_name, secrets & {int(number) for number in numbers}))
            frame = frame.f_back

    class Curious(Believer):
        def evaluate_many(self, queries):
            look()
            return super().evaluate_many(queries)

    def update(hypothesis):
        look()
        return hypothesis

    data = PrivateData(counts, EIGHT)
    build(data, BELOW, Budget(0.01), update=Plugin(Curious(0.5), update), rounds=2, noise=SimulatedNoise(0))

    assert {"private"} <= {name for name, _ in shown}
    assert [] == [found for found in shown if found[1]]


@pytest.mark.parametrize("asked", [lambda w: dense(w), lambda w: ic.where(x=ic.weights(w)), lambda w: w])
def test_bounds_hold_for_the_query_as_written_where_many_records_leave_a_coarse_grid(asked):
    """At 2^40 records the grid has 12 bits; on one of 20 an answer can be off by one rounding more."""
    n, half = 2**40, 0.98 * 2.0**-13
    weights = np.array([0.5 - half, 0.75 + half, 0.25 + half])
    data = PrivateData(np.array([n, 0, 0]), Domain.of(x=3))
    query = asked(weights)
    for built in (
        iterative_construction(data, [query], Budget(1.0), noise=SimulatedNoise(0)),
        mwem(data, [query], Budget(1.0), rounds=1, average=1.0, noise=SimulatedNoise(0)),
    ):
        error = abs(float(built.answers([query])[0]) - weights[0])

        assert 12 == built.grid_bits
        assert 0.9 * half < error <= built.error_bound < 1.2 * half


def test_classes_keep_complements_apart_and_drop_copies_and_constants():
    query, half = ic.where(x=0), dense(np.array([1.0, 0.5] + [0.0] * 6))
    workload = Workload.of([query, query, ~query, ic.where(x=ic.below(8)), half], EIGHT, 1000)

    assert (3, 1, 2) == (len(workload.queries), workload.grid_bits, workload.sensitivity)
    assert [500, 1500, 500 + 125] == [
        int(one)
        for one in workload.guesses(ic.Histogram(EIGHT, np.array([2, 1, 1, 1, 0.75, 0.75, 0.75, 0.75])))
    ]


def test_constants_are_answered_exactly_even_by_signed_weights_from_zero():
    data = skewed(1_000_000)
    built = iterative_construction(
        data, BELOW, Budget(1.0), update=Perceptron(variant="book"), variant="book", noise=SimulatedNoise(1)
    )

    assert [1.0, 0.0] == built.answers([ic.where(x=ic.below(8)), ~ic.where(x=ic.below(8))]).tolist()


# -- accuracy ----------------------------------------------------------------------------------------

SETTINGS = [  # rule, variant, distinguisher, delta
    (None, "book", None, 0.0),
    (None, "book", "exponential", 1e-6),
    (None, "tight", None, 0.0),
    (None, "tight", "noisy max", 1e-6),
    (Perceptron(variant="book"), "book", None, 0.0),
    (Perceptron(), "tight", "exponential", 0.0),
    (Median(), "book", None, 0.0),
    (MaximumEntropy(), "tight", None, 1e-6),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("rule", "variant", "distinguisher", "delta"), SETTINGS, ids=repr)
def test_no_query_of_any_class_errs_by_more_than_alpha(rule, variant, distinguisher, delta):
    """12 runs a setting, 96 in all, on three kinds of data: a point, two points, and Dirichlet weights."""
    size, n = (4, 30_000) if isinstance(rule, Median) else (16, 1_000_000)
    rounds = 40 if isinstance(rule, MaximumEntropy) else None
    domain, worst, promised = Domain.of(x=size), 0.0, 0.0
    for seed in range(12):
        generator = public_generator(seed)
        truth = [
            np.eye(size)[0],
            np.r_[0.5, 0.5, np.zeros(size - 2)],
            generator.dirichlet(np.full(size, 0.3)),
        ]
        data = PrivateData(generator.multinomial(n, truth[seed % 3]), domain)
        queries = [dense(row.astype(float)).bind(domain) for row in generator.integers(0, 2, (40, size))]
        built = iterative_construction(
            data,
            queries,
            Budget(1.0, delta),
            update=rule,
            rounds=rounds,
            variant=variant,
            distinguisher=distinguisher,
            noise=SimulatedNoise(seed),
        )
        error = float(np.abs(built.answers(queries) - exact_values(data, queries)).max())
        worst = max(worst, error / built.error_bound)
        promised = max(promised, built.error_bound / built.alpha)

    assert 0.3 < worst <= 1.0
    assert promised <= 1.0


@pytest.mark.parametrize("variant", ["tight", "book"])
def test_early_stop_is_all_that_ends_it_in_practice(variant):
    built = iterative_construction(
        skewed(1_000_000), BELOW, Budget(1.0), variant=variant, noise=SimulatedNoise(4)
    )

    assert built.stopped
    assert len(built.measurements) < built.plan.rounds / 4


# -- the price of rounds -------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 3, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_pure_rounds_never_cost_more_than_epsilon_exactly(epsilon, rounds):
    for tables, sensitivity in ((False, 1), (False, 1 << 12), (True, 1 << 12)):
        plan = paid_rounds(Budget(epsilon), rounds, "basic", sensitivity=sensitivity, tables=tables)

        chosen = 2 * sensitivity / plan.choice.scale
        answered = (2 if tables else sensitivity) / plan.scale
        assert rounds * (chosen + answered) <= rounds * plan.price <= Fraction(epsilon)
        assert plan.price > Fraction(epsilon) / rounds * Fraction(999, 1000)


@pytest.mark.parametrize("kind", [np.int16, np.uint16, np.int32])
@pytest.mark.parametrize("composition", ["basic", "advanced", "zcdp"])
def test_a_sensitivity_of_a_narrow_type_does_not_wrap_around_in_a_square(composition, kind):
    here = paid_rounds(Budget(1.0, 1e-6), 3, composition, sensitivity=30_000)

    assert here == paid_rounds(Budget(1.0, 1e-6), 3, composition, sensitivity=kind(30_000))
    with pytest.raises(InvalidParameterError, match="sensitivity must"):
        paid_rounds(Budget(1.0, 1e-6), 3, composition, sensitivity=0)


@pytest.mark.parametrize("composition", ["advanced", "zcdp"])
def test_compositions_with_delta_are_refused_without(composition):
    with pytest.raises(InvalidParameterError, match="delta must be > 0"):
        paid_rounds(Budget(1.0), 3, composition)


def test_noise_beyond_the_sampler_is_refused_with_its_remedy():
    with pytest.raises(InvalidParameterError, match=r"sigma <= 2\^26"):
        paid_rounds(Budget(0.001, 1e-9), 1000, "zcdp", sensitivity=1 << 20)


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_radii_hold_what_they_say(composition):
    plan = paid_rounds(Budget(1.0, 1e-9), 10, composition)
    values = np.zeros(20_000, np.int64)
    errors = np.abs(plan.answer(values, SimulatedNoise(1)))

    inside = float((errors <= plan.answer_radius(0.1)).mean())
    assert abs(inside - 0.9) < 0.02
    assert plan.choice_radius(7, 0.1) == plan.choice.radius(7, 0.1)
