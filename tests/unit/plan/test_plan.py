"""Plans are functions of public facts: thresholds, cutoffs, grids, and refusals that name what would do."""

import csv
import math
import re
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.bounds import numeric_sparse_alpha, numeric_sparse_scales, sparse_margin
from onlineic.errors import InfeasibleAccuracyError, InvalidDataError, InvalidParameterError
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan, textbook_plan
from onlineic.queries.query import session_grid_bits
from onlineic.sparse import GumbelSparse, NumericSparse
from support.noise import Silent
from support.sessions import plan_once

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "oracle.csv"
DOMAIN = ic.Domain.of(x=1024)


def textbook(domain=DOMAIN, n=10**6, epsilon=1.0, delta=0.0, update=None, **settings):
    update = update or ic.MultiplicativeWeights(variant="book")
    return textbook_plan(domain, n, ic.Budget(epsilon, delta), update, **({"max_queries": 100} | settings))


def practical(domain=DOMAIN, n=10**6, epsilon=1.0, delta=0.0, update=None, **settings):
    update = update or ic.MultiplicativeWeights()
    return session_plan(
        domain, n, ic.Budget(epsilon, delta), update=update, **({"sparse": "laplace"} | settings)
    )


# -- the textbook --------------------------------------------------------------------------------------


def test_the_textbook_at_a_million_records_over_1024_cells():
    plan = textbook()

    assert 0.1607869513 == pytest.approx(plan.alpha, abs=1e-9)
    assert (1072, 1072) == (plan.hard_answers, plan.sparse.cutoff)
    assert 0.4823608539 == pytest.approx(plan.error_bound, abs=1e-9)
    assert math.ceil(2 * plan.alpha * 10**6 * 2**20) + 1 == plan.sparse.threshold
    assert (True, True, True, "pure") == (
        plan.certified, plan.textbook, plan.sparse.pair, plan.sparse.branch,
    )  # fmt: skip
    assert Fraction(9 * 1072, 4) * 2**20 == plan.sparse.threshold_scale
    assert Fraction(9 * 1072) == plan.sparse.number_scale


def test_a_session_over_a_million_synthetic_records_keeps_the_textbook_plan():
    counts = np.random.default_rng(0).multinomial(10**6, np.full(1024, 1 / 1024))
    data = ic.PrivateData(counts, DOMAIN)
    session = ic.OnlineIC.textbook(data, epsilon=1.0, max_queries=100, noise=SimulatedNoise(0))
    answers = session.answer_many([ic.where(x=ic.between(0, 10 * i)) for i in range(1, 101)])
    cumulative = np.cumsum(counts) / 10**6
    errors = [abs(answer.value - cumulative[10 * i]) for i, answer in enumerate(answers, start=1)]

    assert textbook() == session.plan
    assert max(errors) <= 3 * session.plan.alpha
    assert {3 * session.plan.alpha} == {answer.error_bound for answer in answers}


def test_the_repaired_branch_is_taken_where_its_noise_is_smaller():
    plan = textbook(n=10**5, delta=1e-6, update=ic.MultiplicativeWeights())

    assert 0.1621287067 == pytest.approx(plan.alpha, abs=1e-9)
    assert (131, "repaired") == (plan.hard_answers, plan.sparse.branch)
    assert "pure" == textbook(n=10**5, delta=1e-6, update=ic.MultiplicativeWeights(), alpha=0.2).sparse.branch


def test_the_textbook_solves_every_stored_setting():
    rules = {
        "mw_book": ic.MultiplicativeWeights(variant="book"),
        "mw_tight": ic.MultiplicativeWeights(),
        "perceptron_book": ic.Perceptron(variant="book"),
        "perceptron_centred": ic.Perceptron(),
    }
    solved = 0
    with GOLDEN.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["rule"] not in rules or row["branch"] != "pure" or float(row["alpha"]) > 1e6:
                continue
            if int(float(row["universe"])) > 2**40:
                continue
            domain = ic.Domain.of(x=int(float(row["universe"])))
            plan = textbook(
                domain,
                int(float(row["n"])),
                float(row["epsilon"]),
                update=rules[row["rule"]],
                max_queries=int(float(row["queries"])),
                beta=float(row["beta"]),
            )
            assert float(row["alpha"]) == pytest.approx(plan.alpha, rel=1e-8)
            assert int(row["c"]) == plan.hard_answers
            solved += 1
    assert solved >= 50


def test_alpha_improves_with_records_and_epsilon_and_suffers_from_queries_cells_and_confidence():
    base = textbook().alpha
    for better in ({"n": 2 * 10**6}, {"epsilon": 2.0}, {"max_queries": 10}, {"beta": 0.5}):
        assert textbook(**better).alpha < base
    assert textbook(ic.Domain.of(x=256)).alpha < base


@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")
def test_hits_reach_the_cutoff_at_the_printed_threshold_and_not_at_two_alpha():
    # alpha four times the least one: the closed formula of Algorithm 11 is then a quarter of 2 alpha
    size, n = 64, 10**8
    domain = ic.Domain.of(x=size)
    least = textbook(domain, n, 0.2).alpha
    alpha = 4 * least
    generator = np.random.default_rng(0)
    counts = generator.multinomial(n, generator.dirichlet(np.full(size, 0.5)))

    def opened():
        data = ic.PrivateData(counts, domain)
        return ic.OnlineIC.textbook(data, epsilon=0.2, max_queries=100, alpha=alpha, noise=Silent())

    def hits(mutate):
        session = opened()
        if mutate:
            formula = 2 * numeric_sparse_alpha(session.plan.hard_answers, 200, 0.2, 0.0, 0.05, n)
            sparse = attrs.evolve(session.plan.sparse, threshold=math.ceil(formula * (n << 20)))
            plan = attrs.evolve(session.plan, sparse=sparse)
            with pytest.MonkeyPatch.context() as patched:
                plan_once(patched, plan)
                session = opened()
        for _ in range(session.plan.hard_answers + 10):
            gap = counts / n - session.hypothesis.probabilities()
            if not session.answer((gap > 0).astype(float)).hard:
                break
        return session.statistics().hard, session.plan.hard_answers

    kept, cutoff = hits(mutate=False)
    broken, _ = hits(mutate=True)
    assert kept < cutoff / 4
    assert broken == cutoff


def test_the_textbook_needs_a_proven_number_of_updates():
    with pytest.raises(InvalidParameterError, match="proven"):
        textbook(update=ic.MultiplicativeWeights(rate=0.1))


def test_a_large_epsilon_falls_back_to_pure_noise_where_corollary_321_fails():
    plan = textbook(epsilon=20.0, delta=0.5)

    assert "pure" == plan.sparse.branch
    assert "pure" == practical(epsilon=20.0, delta=0.5, hard_answers=5000).sparse.branch


# -- the practical session -----------------------------------------------------------------------------


def test_a_certified_plan_puts_the_threshold_a_margin_above_alpha():
    plan = practical(certify=0.1, beta=0.02, max_queries=500)
    cutoff = math.floor(math.log(1024) / (2 * 0.1**2))
    scale = 9 * cutoff / 4
    margin = sparse_margin(cutoff, 500, scale, 0.9 * 0.02)

    assert (cutoff, 0.1, True, False) == (plan.hard_answers, plan.alpha, plan.certified, plan.sparse.pair)
    # half a record more: a guess is rounded on the query's own grid, and a gap must exceed alpha strictly
    assert (0.1 * 10**6 + 0.5 + margin) * 2**20 == pytest.approx(plan.sparse.threshold, abs=3)
    assert (0.1 + (0.5 + 2 * margin) / 10**6) == pytest.approx(plan.error_bound, abs=1e-9)
    assert 4 * scale * math.log(cutoff / 0.002) < 0.1 * 10**6  # its numbers lie within alpha


def test_a_prior_that_may_be_wrong_is_certified_with_its_own_bound_or_not_at_all():
    domain = ic.Domain.of(x=8)
    skewed = ic.Histogram(domain, [1.0] + [1e-12] * 7)
    own = practical(domain, certify=0.2)
    plan = practical(domain, certify=0.2, prior=skewed)

    assert math.floor(math.log(8) / (2 * 0.2**2)) == own.hard_answers
    assert math.floor(12 * math.log(10) / (2 * 0.2**2)) == plan.hard_answers
    with pytest.raises(InvalidParameterError, match="from this prior"):
        practical(domain, certify=0.2, prior=skewed, update=ic.Median(variant="dimension"))


@pytest.mark.parametrize(
    ("epsilon", "delta", "n"), [(2.0, 1e-9, 1000), (1.0, 1e-6, 1000), (1.0, 1e-9, 1001), (0.5, 1e-9, 999)]
)
def test_a_mechanism_of_ones_own_may_not_spend_more_than_the_budget_nor_be_made_for_another_table(
    epsilon, delta, n
):
    own = GumbelSparse.calibrated(ic.Budget(epsilon, delta), n=n, hard_answers=5, max_queries=100)
    fits = GumbelSparse.calibrated(ic.Budget(1.0, 1e-9), n=1000, hard_answers=5, max_queries=100)

    assert fits == session_plan(ic.Domain.of(x=8), 1000, ic.Budget(1.0, 1e-9), sparse=fits).sparse
    with pytest.raises(InvalidParameterError, match="sparse must be made for n=1000"):
        session_plan(ic.Domain.of(x=8), 1000, ic.Budget(1.0, 1e-9), sparse=own)


def test_a_mechanism_of_which_nothing_is_proven_is_refused():
    class Mine(NumericSparse):
        grid_bits = n = threshold = neighbours = 1

        def account(self): ...
        def start_charge(self): ...
        def price(self, target): ...
        def init(self): ...
        def step(self, *arguments): ...
        def step_many(self, *arguments): ...
        def step_table(self, *arguments): ...
        def measure(self, *arguments): ...
        def easy_radius(self, *arguments): ...
        def hard_radius(self, *arguments): ...
        def sum_radius(self, *arguments): ...
        def margins(self, *arguments): ...
        def noise_of(self, target): ...

    with pytest.raises(InvalidParameterError, match="nothing is proven"):
        session_plan(ic.Domain.of(x=8), 1000, ic.Budget(1.0), sparse=Mine())


def test_a_given_number_of_hard_answers_tolerates_a_fifth_of_false_hits():
    plan = practical(hard_answers=20, max_queries=3000)
    scale = 9 * 20 / 4
    tail = 2 / 3 * math.exp(-plan.sparse.threshold / 2**20 / (2 * scale))

    assert 0.2 * 20 == pytest.approx(3000 * tail, rel=1e-3)
    assert (False, 20) == (plan.certified, plan.hard_answers)
    assert plan.alpha == pytest.approx(plan.sparse.threshold / 2 / (10**6 << 20), rel=1e-6)


def test_the_error_bound_covers_easy_and_hard_answers():
    plan = practical(hard_answers=1000, max_queries=1, epsilon=5.0)  # here the numbers are the worse part
    number = float(numeric_sparse_scales(1000, 5.0).number) * math.log(1000 / 0.005) + 1

    assert number / 10**6 == pytest.approx(plan.error_bound, rel=1e-9)
    assert plan.sparse.easy_radius(0.045, 1) < plan.error_bound


@pytest.mark.parametrize("variant", ["book", "tight"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("n", "epsilon"), [(10**5, 1.0), (10**6, 0.3), (3 * 10**7, 2.0), (10**6, 20.0)])
@pytest.mark.parametrize(("make", "name"), [(textbook, "alpha"), (practical, "certify")])
def test_an_infeasible_alpha_names_the_nearest_feasible_one(make, name, n, epsilon, delta, variant):
    settings = {
        "n": n,
        "epsilon": epsilon,
        "delta": delta,
        "update": ic.MultiplicativeWeights(variant=variant),
    }
    with pytest.raises(InfeasibleAccuracyError) as refused:
        make(**{name: 1e-4}, **settings)
    named = re.search(rf"{name} must be >= ([0-9.e-]+) at", str(refused.value))
    if named is None:  # not even alpha = 1 would do
        assert "n must be larger" in str(refused.value)
        with pytest.raises(InfeasibleAccuracyError):
            make(**{name: 0.999}, **settings)
        return
    least = float(named[1])

    assert f"got {name}=0.0001;" in str(refused.value)
    assert least == make(**{name: least}, **settings).alpha
    with pytest.raises(InfeasibleAccuracyError):
        make(**{name: least * 0.9}, **settings)  # floor T may take a little less than the real T


@pytest.mark.parametrize(
    "wrong",
    [
        {"certify": 0.1, "hard_answers": 3},
        {"certify": 0.1, "threshold": 0.2},
        {"certify": 0.1, "release": "partition"},
        {"certify": 1.0},
        {"certify": 0.0},
        {"certify": math.nan},
        {"certify": 1e-320},
        {"hard_answers": 0},
        {"hard_answers": 2.5},
        {"hard_answers": True},
        {"hard_answers": 10**400},
        {"hard_answers": 3, "threshold": 0.0},
        {"hard_answers": 3, "threshold": 1.0},
        {"hard_answers": 3, "beta": 0.0},
        {"hard_answers": 3, "beta": 1.0},
        {"hard_answers": 3, "beta": 5e-324},
        {"hard_answers": 3, "max_queries": 0},
        {"hard_answers": 3, "max_queries": 10**400},
        {"hard_answers": 3, "epsilon": 5e-324},
        {"certify": 0.3, "update": ic.MultiplicativeWeights(rate=0.2)},
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(wrong):
    with pytest.raises(InvalidParameterError, match="must be"):
        practical(**wrong)


def test_no_budget_pays_for_noise_beyond_the_samplers():
    with pytest.raises(InfeasibleAccuracyError, match="epsilon must be larger"):
        practical(epsilon=1e-15, hard_answers=5)


# -- the grid ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "bits"), [(1, 20), (2**32, 20), (2**32 + 1, 19), (2**40, 12), (2**44, 8), (2**43 + 1, 8)]
)
def test_the_grid_leaves_every_sum_an_exact_float(n, bits):
    assert bits == session_grid_bits(n)
    assert n << bits <= 2**52


def test_too_many_records_for_a_grid_are_refused():
    with pytest.raises(InvalidParameterError, match="2\\^44"):
        session_grid_bits(2**44 + 1)


@pytest.mark.parametrize("epsilon", [1.0, 1e-6, 1e-9, 1e-11])
def test_the_grid_is_coarser_where_the_noise_would_leave_the_samplers(epsilon):
    plan = practical(epsilon=epsilon, hard_answers=5)
    bits = plan.sparse.grid_bits

    assert plan.sparse.number_scale * 2 ** (bits + 1) <= 2**48 - 1  # a partition doubles it
    assert bits == 20 or plan.sparse.number_scale * 2 ** (bits + 2) >= 2**46
    SimulatedNoise(0).discrete_laplace(plan.sparse.query_scale, 3)


# -- without noise, and at the edges -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "update", [ic.MultiplicativeWeights(variant="book"), ic.Perceptron(variant="book"), ic.Perceptron()]
)
def test_without_noise_errors_stay_within_two_alpha_and_hits_within_t(update, seed):
    domain = ic.Domain.of(a=4, b=2)
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(10**7, generator.dirichlet(np.full(8, 0.2)))
    data = ic.PrivateData(counts, domain)
    session = ic.OnlineIC.textbook(
        data, epsilon=10.0, update=update, max_queries=400, alpha=0.06, noise=Silent()
    )
    for _ in range(400):
        weights = generator.integers(0, 2, 8).astype(float)
        answer = session.answer(weights)
        assert abs(answer.value - weights @ counts / 10**7) <= 2 * session.plan.alpha + 2 / (10**7 << 20)
    assert session.statistics().hard <= session.plan.hard_answers
    assert session.statistics().untested == 0


def test_one_query_one_record_and_fewer_than_one_update_are_lawful():
    domain = ic.Domain.of(x=2)
    session = ic.OnlineIC(
        ic.PrivateData([0, 1], domain), ic.Budget(1.0), hard_answers=1, max_queries=1, noise=SimulatedNoise(0)
    )
    plan = practical(domain, certify=0.9)  # T = ln 2 / (2 .81) < 1

    assert session.answer(ic.where(x=1)).status in ("easy", "hard")
    assert 1 == plan.hard_answers
    assert 1 == textbook(domain, max_queries=1, alpha=2.0).hard_answers


@pytest.mark.parametrize("epsilon", [6e3, 1e8, 1e300])
@pytest.mark.parametrize("delta", [0.0, 1e-15])
def test_an_epsilon_beyond_every_formula_is_refused_by_name(epsilon, delta):
    budget = ic.Budget(epsilon, delta, allow_large_epsilon=True)

    for n in (100, 2**44):
        for settings in ({}, {"release": "answer"}, {"certify": 0.01}):
            with pytest.raises(InvalidParameterError, match="epsilon must be"):
                session_plan(DOMAIN, n, budget, max_queries=1, **settings)
        with pytest.raises(InvalidParameterError, match="epsilon must be"):
            textbook_plan(DOMAIN, n, budget, ic.MultiplicativeWeights(variant="book"))


def test_a_textbook_plan_is_refused_above_the_epsilon_that_its_theorem_is_proved_for():
    large = ic.Budget(math.nextafter(20.0, 21.0), allow_large_epsilon=True)
    rule = ic.MultiplicativeWeights()

    assert textbook_plan(DOMAIN, 1000, ic.Budget(20.0), rule).certified
    with pytest.raises(
        InvalidParameterError, match=r"epsilon must be a number in \(0, 20\], .* textbook mode, whose theorem"
    ):
        textbook_plan(DOMAIN, 1000, large, rule)


def test_an_empty_table_is_refused_at_loading():
    with pytest.raises(InvalidDataError):
        ic.PrivateData([0, 0], ic.Domain.of(x=2))
