"""Slips of the texts that no other test shows: what is printed fails here, what the library uses holds.

`docs/errata.md` lists all slips and the test of each.
"""

import itertools
import math

import numpy as np
import pytest

import onlineic as ic
from onlineic import bounds
from onlineic.hypothesis import SignedHistogram, VersionSpace

LOGS = {"max_queries": 100, "beta": 0.05}


def test_of_the_two_comparisons_of_one_query_at_least_one_is_below():
    """Proof of 4.14: of gap >= T and -gap >= T with T > 0 at least one is BELOW, not at most one."""
    below = {(gap < 3, -gap < 3) for gap in range(-9, 10)}

    assert {(True, True), (True, False), (False, True)} == below


def test_the_log_sum_inequality_needs_its_logarithm():
    """4.11: sum a ln(a/b) >= (sum a) ln(sum a / sum b); without the second ln, a = b = 1 refutes it."""
    generator = np.random.default_rng(411)
    for _ in range(200):
        a, b = generator.random((2, 5)) + 1e-3

        assert (a * np.log(a / b)).sum() >= a.sum() * math.log(a.sum() / b.sum()) - 1e-12
    assert 1.0 * math.log(1.0 / 1.0) < 1.0 * (1.0 / 1.0)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_weights_gain_a_quarter_of_alpha_squared_a_step_so_no_step_is_left_over(alpha):
    """4.10 prints 1 + 4 ln|X|/alpha^2: the potential starts at ln|X| at most, and each step has its share."""
    size = 64
    domain = ic.Domain.of(x=size)
    rule, belief = ic.MultiplicativeWeights(variant="book"), ic.Histogram(domain)
    steps = 0
    while True:
        first = ic.where(x=0).bind(domain)
        if 1.0 - belief.evaluate(first) <= alpha:
            break
        belief = rule.update(belief, (ic.Measurement(first, np.ones(1), 0.0),), alpha)
        steps += 1

    assert steps <= rule.update_bound(domain, alpha) <= 4 * math.log(size) / alpha**2


def test_the_change_of_variables_behind_above_threshold_adds_the_neighbours_value():
    """3.24's privacy proof: v-hat = v + g(D) - g(D') + f_k(D') - f_k(D); the swapped sign moves the event."""
    swapped = 0
    for g, g_other, f, f_other, rho, nu in itertools.product(
        (0, 1), (0, 1), (2, 3), (2, 3), (-2, 0, 2), (-1, 1)
    ):
        rho_hat = rho + g - g_other
        nu_hat = nu + g - g_other + f_other - f
        nu_swapped = nu + g - g_other + f - f_other

        assert (g < rho_hat <= f + nu_hat) == (g_other < rho <= f_other + nu)
        swapped += (g < rho_hat <= f + nu_swapped) != (g_other < rho <= f_other + nu)
    assert swapped > 0


def test_the_two_shares_of_algorithm_3_add_up_only_with_the_plus_one():
    """3.27: eps2 = eps/(sqrt512 + 1) beside eps1 = sqrt512 eps/(sqrt512 + 1); eps/sqrt512 overspends."""
    root = math.sqrt(512)

    assert root / (root + 1) + 1 / (root + 1) == pytest.approx(1.0, abs=1e-15)
    assert root / (root + 1) + 1 / root > 1.001


def test_sqrt512_is_eight_times_sqrt8_and_521_a_misprint():
    """5.15: Sparse loses 8(ln k + ln(2c/beta))/eps0 counts with eps0 = eps/sqrt(8 c ln(1/delta))."""
    c, k, epsilon, delta, beta = 10, 1000, 0.5, 1e-6, 0.05
    derived = 8 * (math.log(k) + math.log(2 * c / beta)) * math.sqrt(8 * c * math.log(1 / delta)) / epsilon
    ours = bounds.sparse_alpha(c, k, epsilon, delta, beta)

    assert ours == pytest.approx(derived, rel=1e-12)
    assert ours * math.sqrt(521 / 512) != pytest.approx(derived, rel=1e-3)


@pytest.mark.parametrize("branch", ["pure", "repaired"])
def test_t_stands_outside_of_the_logarithm_of_delta(branch):
    """5.15: sqrt(T ln(2/delta)), so four times T doubles the noise with delta (and 4 times without)."""
    few, many = (
        bounds.numeric_sparse_alpha(c, 1, 1.0, 1e-6, 0.05, 1000, branch) / (math.log(4 * c / 0.05))
        for c in (100, 400)
    )

    assert many / few == pytest.approx(2.0 if branch == "repaired" else 4.0, rel=1e-12)


def test_the_perceptron_on_simple_graphs_needs_alpha_of_n_to_minus_three_quarters():
    """After 5.12 some copies print (1/n)^3: with p2 = 1/n, alpha^2 is proportional to 1/n^1.5, up to logs."""
    size = 2**44

    def rule(n):
        return lambda alpha: bounds.perceptron_book_bound(size, alpha, 1 / n)

    found = [bounds.least_alpha(rule(n), n=n, epsilon=1.0, delta=1e-6, branch="repaired", **LOGS)
             for n in (10**9, 10**12)]  # fmt: skip
    slope = math.log(found[1] / found[0]) / math.log(10**3)

    assert slope == pytest.approx(-0.75, abs=0.02)


def test_every_rule_starts_from_its_own_hypothesis_and_not_from_the_uniform_one():
    """Algorithm 11 writes the uniform start for every U; the book's perceptron starts at zero."""
    domain = ic.Domain.of(x=4)
    one = ic.where(x=0).bind(domain)
    starts = {
        "weights": ic.MultiplicativeWeights().init(domain),
        "perceptron": ic.Perceptron(variant="book").init(domain),
        "median": ic.Median(size=3).init(domain),
    }

    assert starts["weights"].evaluate(one) == 0.25
    assert isinstance(starts["perceptron"], SignedHistogram)
    assert starts["perceptron"].evaluate(one) == 0.0
    assert isinstance(starts["median"], VersionSpace)


@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")
def test_the_perceptrons_bound_never_reads_the_norm_of_the_data():
    """5.10, 5.12 contain ||x||_2, which is private: tables of equal n give sessions of equal alpha and c."""
    domain = ic.Domain.of(x=8)
    facts = []
    for counts in ([8000, 0, 0, 0, 0, 0, 0, 0], [1000] * 8):
        data = ic.PrivateData(np.array(counts), domain)
        session = ic.OnlineIC.textbook(
            data, epsilon=5.0, max_queries=10, update=ic.Perceptron(variant="book"), alpha=0.9
        )
        facts.append((session.statistics().alpha, session.statistics().hard_left))

    assert facts[0] == facts[1]


def test_remark_5_2_counts_databases_with_one_logarithm():
    """log2|X| ln|Q|/alpha^2 halvings: |X|^m databases, m = ln|Q|/alpha^2; log log|X| is far too few."""
    size, queries, alpha = 2**10, 100, 0.1
    rows = math.log(queries) / alpha**2

    assert bounds.median_book_bound(size, alpha, queries) == pytest.approx(rows * math.log2(size), rel=1e-12)
    assert rows * math.log2(math.log2(size)) < 0.5 * bounds.median_book_bound(size, alpha, queries)


def test_a_set_halved_to_the_end_holds_less_than_one_database():
    """Proof of 5.8: |D^t| <= |D^(t-1)|/2, so after more than log2|D^1| steps |D^L| < 1, which cannot be."""
    domain = ic.Domain.of(x=2)
    space = ic.Median(size=7).init(domain)
    sizes = [space.candidates]
    for weight in (0.9, 0.8, 0.7, 0.6):
        query = ic.dense([weight, 0.0]).bind(domain)
        space = space.halved(query, above=True)
        sizes.append(space.candidates)

    assert all(after <= before / 2 for before, after in itertools.pairwise(sizes) if after < before)
    assert sizes[-1] >= 1


def test_the_offline_perceptron_has_four_roots_of_four_and_beta_inside_the_logarithm():
    """5.12: alpha = 4 sqrt4 (4|X| p2 ln(1/delta))^(1/4) sqrt(ln(8|Q||X| p2/(alpha^2 beta))/(n epsilon))."""
    size, p2, queries, n, epsilon, delta, beta = 256, 0.1, 50, 10**6, 1.0, 1e-6, 0.05
    alpha = bounds.offline_ic_accuracy(
        lambda alpha: bounds.perceptron_book_bound(size, alpha, p2),
        queries=queries,
        n=n,
        epsilon=epsilon,
        delta=delta,
        beta=beta,
        composition="advanced",
    ).alpha
    root = (4 * size * p2 * math.log(1 / delta)) ** 0.25
    logs = math.log(8 * queries * size * p2 / (alpha**2 * beta))

    assert alpha == pytest.approx(4 * math.sqrt(4) * root * math.sqrt(logs / (n * epsilon)), rel=1e-6)
    assert alpha > 1.4 * 4 * 4**0.25 * root * math.sqrt(logs / (n * epsilon))
