"""Update rules against the theorems: potentials, closed forms, and how many updates can be forced."""

import math

import numpy as np
import pytest

from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError, TooLargeError
from onlineic.hypothesis import Histogram, SignedHistogram, VersionSpace
from onlineic.noise import public_generator
from onlineic.queries import Measurement, Partition, dense, where
from onlineic.updates import ExactBound, Median, MultiplicativeWeights, NeedsAccuracy, Perceptron, UpdateRule

JUST = 2.0**-18  # strictly above, by a few steps of the grid of weights
RULES = [
    MultiplicativeWeights(),
    MultiplicativeWeights(variant="book"),
    Perceptron(),
    Perceptron(variant="book"),
    Median(size=10),
]


def line(size):
    return Domain.of(x=size)


def measured(query, value):
    return (Measurement(query, np.array([value]), 0.01),)


def dense_values(query):
    return query.weights().ravel() / (1 << query.grid_bits)


def point_mass(size):
    truth = np.zeros(size)
    truth[0] = 1.0
    return truth


def kl(truth, cells):
    held = truth > 0
    return float(truth[held] @ np.log(truth[held] / cells.ravel()[held]))


def lever_queries(size, alpha, cells, halves):
    """Per subset of the other cells: the weights whose gap against a point mass on cell 0 just exceeds alpha.

    One row a query, and the sign of its gap; the gap is exact for a linear hypothesis.
    """
    halves = halves.copy()
    halves[:, 0] = 0.0
    rest = halves @ cells
    rows, signs = [], []
    for sign in (1.0, -1.0):
        weight = (sign * (alpha + JUST) + rest) / (1.0 - cells[0])
        legal = (weight >= 0.0) & (weight <= 1.0)
        tuned = halves[legal]
        tuned[:, 0] = weight[legal]
        rows.append(tuned)
        signs.append(np.full(len(tuned), sign))
    return np.concatenate(rows), np.concatenate(signs)


# -- multiplicative weights ------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3])
@pytest.mark.parametrize(
    ("rule", "least"), [(MultiplicativeWeights(), 2.0), (MultiplicativeWeights("book"), 0.25)]
)
def test_every_legal_step_lowers_the_divergence_by_what_the_proof_says(rule, least, alpha):
    generator = public_generator(1)
    for size in (2, 7, 50):
        truth = generator.dirichlet(np.ones(size) * 0.3) + 1e-12
        truth /= truth.sum()
        hypothesis = rule.init(line(size))
        for _ in range(60):
            query = dense(generator.integers(0, 2, size) * generator.choice([1.0, 0.9])).bind(line(size))
            value = float(dense_values(query) @ truth)
            gap = value - hypothesis.evaluate(query)
            if abs(gap) <= alpha:
                continue
            before = kl(truth, hypothesis.probabilities())
            hypothesis = rule.update(hypothesis, measured(query, value), alpha)
            drop = before - kl(truth, hypothesis.probabilities())
            rate = 4 * alpha if rule.variant == "tight" else alpha / 2

            assert drop >= rate * abs(gap) - rate**2 / 8 - 1e-12
            assert drop >= least * alpha**2 - 1e-12


def test_hypothesis_is_the_softmax_of_all_steps_in_any_order():
    generator = public_generator(2)
    domain, rule, alpha = line(20), MultiplicativeWeights(), 0.07
    queries = [dense(row).bind(domain) for row in generator.random((30, 20))]
    found = []
    for order in (range(30), generator.permutation(30)):
        hypothesis, logs = rule.init(domain), np.zeros(20)
        for place in order:
            value = float(place % 2)  # above or below every guess
            hypothesis = rule.update(hypothesis, measured(queries[place], value), alpha)
            logs += (1 if value else -1) * 4 * alpha * dense_values(queries[place])
        found.append(hypothesis.probabilities())
        expected = np.exp(logs - logs.max())

        assert np.abs(expected / expected.sum() - found[-1]).max() < 1e-12
    assert np.abs(found[0] - found[1]).max() < 1e-12


@pytest.mark.parametrize(("shift", "factor"), [(0.25, 0.5), (0.5, 0.25), (0.0, 1.0), (0.75, -0.5)])
def test_rescaled_queries_with_the_inverse_rate_are_the_same_update(shift, factor):
    domain = line(16)
    weights = np.arange(16) / 16
    plain = Histogram(domain).tilted(dense(weights).bind(domain), 0.8)
    moved = Histogram(domain).tilted(dense(shift + factor * weights).bind(domain), 0.8 / factor)

    assert np.abs(plain.probabilities() - moved.probabilities()).max() < 1e-12


def test_a_query_and_its_complement_are_the_same_update():
    domain, rule = Domain.of(a=3, b=4), MultiplicativeWeights()
    query = where(a=1, b=2).bind(domain)
    plain = rule.update(rule.init(domain), measured(query, 0.9), 0.2)
    turned = rule.update(rule.init(domain), measured((~where(a=1, b=2)).bind(domain), 0.1), 0.2)

    assert np.abs(plain.probabilities() - turned.probabilities()).max() < 1e-15


@pytest.mark.parametrize("constant", [0.0, 0.3, 1.0])
def test_a_constant_query_changes_nothing(constant):
    domain, rule = line(5), MultiplicativeWeights()
    before = Histogram(domain, [1, 2, 3, 4, 5])
    cells = before.probabilities()
    after = rule.update(before, measured(dense(np.full(5, constant)).bind(domain), 0.9), 0.1)

    assert np.array_equal(cells, after.probabilities())


def test_a_rate_times_sum_of_ten_thousand_does_not_overflow():
    domain, rule = line(8), MultiplicativeWeights(rate=100.0)
    query = where(x=0).bind(domain)
    hypothesis = rule.init(domain)
    for _ in range(100):
        hypothesis = rule.update(hypothesis, measured(query, 2.0), 0.1)
    top = hypothesis.evaluate(query)
    for _ in range(100):
        hypothesis = rule.update(hypothesis, measured(query, -1.0), 0.1)

    assert 1.0 == top
    assert abs(1 / 8 - hypothesis.evaluate(query)) < 1e-12


def test_a_vacuous_alpha_beyond_the_range_of_exp_is_survived():
    """Textbook sessions on a handful of records have alpha in the hundreds."""
    domain = line(4)
    query = where(x=0).bind(domain)
    hypothesis = MultiplicativeWeights().update(Histogram(domain), measured(query, 9.0), 400.0)

    assert 1.0 == hypothesis.evaluate(query)


def test_one_cell_needs_no_update():
    domain = line(1)

    assert 0 == MultiplicativeWeights().update_bound(domain, 0.1)
    assert 0 == MultiplicativeWeights(variant="book").update_bound(domain, 0.1)
    assert 0 == Perceptron().update_bound(domain, 0.1)
    assert 0 == Median(size=3).update_bound(domain, 0.1)
    assert 1.0 == MultiplicativeWeights().init(domain).probabilities().sum()
    assert 1 == Median(size=3).init(domain).candidates


def most_updates_of_weights(rule, size, alpha, tries):
    """Updates forced by the query of least progress among many whose gap just exceeds alpha."""
    generator = public_generator(3)
    domain, truth = line(size), point_mass(size)
    rate = 4 * alpha if rule.variant == "tight" else alpha / 2
    hypothesis, updates = rule.init(domain), 0
    while True:
        cells = hypothesis.probabilities()
        counts = generator.integers(1, size, (tries, 1))
        halves = (generator.random((tries, size)).argsort(axis=1) < counts).astype(float)
        rows, signs = lever_queries(size, alpha, cells, halves)
        if not len(rows):
            return updates
        drops = signs * rate * rows[:, 0] - np.log(np.exp(signs[:, None] * rate * rows) @ cells)
        query = dense(rows[np.argmin(drops)]).bind(domain)
        value = float(dense_values(query) @ truth)

        assert abs(value - hypothesis.evaluate(query)) > alpha
        hypothesis = rule.update(hypothesis, measured(query, value), alpha)
        updates += 1


def test_an_adversary_reaches_the_known_share_of_the_books_bound():
    """854 of 1663 in the literature of this rule; 8/15 of the bound is the proven ceiling at rate alpha/2."""
    rule = MultiplicativeWeights(variant="book")
    updates, bound = most_updates_of_weights(rule, 64, 0.1, 32), 4 * math.log(64) / 0.01

    assert 1663 == rule.update_bound(line(64), 0.1)
    assert 0.505 * bound <= updates <= 8 / 15 * bound


def test_an_adversary_reaches_the_known_share_of_the_tight_bound():
    updates = most_updates_of_weights(MultiplicativeWeights(), 64, 0.1, 64)

    assert 207 == MultiplicativeWeights().update_bound(line(64), 0.1)
    assert 168 <= updates <= 176


def test_a_swapped_sign_raises_the_divergence_on_the_first_step():
    domain, alpha, truth = line(64), 0.1, point_mass(64)
    query = where(x=0).bind(domain)
    start = Histogram(domain)
    before = kl(truth, start.probabilities())
    right = MultiplicativeWeights().update(start, measured(query, 1.0), alpha)
    wrong = start.tilted(query, -4 * alpha)

    assert kl(truth, right.probabilities()) < before - 2 * alpha**2
    assert kl(truth, wrong.probabilities()) > before


def test_a_prior_is_where_the_rules_start():
    domain = line(3)
    prior = Histogram(domain, [1, 2, 1])

    for rule in (MultiplicativeWeights(), Perceptron(), Perceptron(variant="book")):
        start = rule.init(domain, prior)

        assert 0.5 == pytest.approx(start.evaluate(where(x=1).bind(domain)), abs=1e-15)
        with pytest.raises(InvalidParameterError, match="prior must be a Histogram"):
            rule.init(domain, SignedHistogram(domain, np.ones(3)))
        with pytest.raises(InvalidParameterError, match="prior must be a Histogram"):
            rule.init(line(4), prior)
    with pytest.raises(InvalidParameterError, match="prior must be None"):
        Median(size=2).init(domain, prior)


@pytest.mark.parametrize("rule", RULES[:4], ids=repr)
def test_a_wrong_prior_can_need_more_updates_than_the_uniform_start_but_no_more_than_its_own_bound(rule):
    """Prior nearly all on the wrong cell: the bound for the rule's own start is exceeded."""
    domain, alpha, truth = line(8), 0.1, point_mass(8)
    prior = Histogram(domain, [1e-6] * 7 + [1.0])
    hypothesis, updates, generator = rule.init(domain, prior), 0, public_generator(7)
    while updates < 5000:
        cells = hypothesis.probabilities() if isinstance(hypothesis, Histogram) else hypothesis.cells()
        halves = np.concatenate([np.full((1, 8), 1.0 - 2.0**-20), np.round(generator.random((31, 8)))])
        rows, _ = lever_queries(8, alpha, cells, halves)
        rows = rows[np.abs(rows[:, 0] - np.clip(rows @ cells, 0.0, 1.0)) > alpha + JUST / 2]
        if not len(rows):
            break
        means = 0.0 if rule == Perceptron(variant="book") else rows.mean(axis=1, keepdims=True)
        query = dense(rows[np.argmax(((rows - means) ** 2).sum(axis=1))]).bind(domain)
        hypothesis = rule.update(hypothesis, measured(query, float(dense_values(query) @ truth)), alpha)
        updates += 1
    uniform = Histogram(domain)

    assert rule.update_bound(domain, alpha) < updates <= rule.exact_update_bound(domain, alpha, prior)
    if rule != Perceptron(variant="book"):  # which starts from zero instead
        assert rule.exact_update_bound(domain, alpha, uniform) == pytest.approx(
            rule.exact_update_bound(domain, alpha)
        )


# -- perceptron ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "least"), [("book", 1.0), ("centred", 4.0)])
def test_every_legal_step_shortens_the_distance_by_what_the_proof_says(variant, least):
    generator = public_generator(4)
    rule, alpha = Perceptron(variant=variant), 0.1
    for size in (2, 9, 40):
        truth = generator.dirichlet(np.ones(size) * 0.3)
        hypothesis = rule.init(line(size))
        for _ in range(100):
            query = dense(generator.choice([0.0, 0.5, 1.0], size)).bind(line(size))
            value = float(dense_values(query) @ truth)
            if query.constant is not None or abs(value - hypothesis.evaluate(query)) <= alpha:
                continue
            before = np.sum((truth - hypothesis.cells()) ** 2)
            hypothesis = rule.update(hypothesis, measured(query, value), alpha)
            drop = before - np.sum((truth - hypothesis.cells()) ** 2)

            assert drop >= least * alpha**2 / size - 1e-15
            if variant == "centred":
                assert abs(1.0 - hypothesis.cells().sum()) < 1e-12


def most_updates_of_the_perceptron(rule, size, alpha, tries):
    """Updates forced by the query of the largest (centred) norm among many whose gap just exceeds alpha."""
    generator = public_generator(5)
    domain, truth = line(size), point_mass(size)
    hypothesis, updates = rule.init(domain), 0
    while True:
        cells = hypothesis.cells()
        halves = np.round(generator.random((tries, size)))
        halves[0] = 1.0 - 2.0**-20  # nearly all of every cell, and yet no constant query
        rows, _ = lever_queries(size, alpha, cells, halves)
        rows = rows[np.abs(rows[:, 0] - np.clip(rows @ cells, 0.0, 1.0)) > alpha + JUST / 2]
        if not len(rows):
            return updates
        norms = ((rows - rows.mean(axis=1, keepdims=True) * (rule.variant == "centred")) ** 2).sum(axis=1)
        query = dense(rows[np.argmax(norms)]).bind(domain)
        value = float(dense_values(query) @ truth)

        assert abs(value - hypothesis.evaluate(query)) > alpha
        hypothesis = rule.update(hypothesis, measured(query, value), alpha)
        updates += 1


def test_an_adversary_uses_nearly_all_of_the_books_bound():
    rule = Perceptron(variant="book")
    updates = most_updates_of_the_perceptron(rule, 8, 0.05, 1)

    assert rule.update_bound(line(8), 0.05) in (3199, 3200)
    assert 3100 <= updates <= 3200


def test_an_adversary_uses_nearly_all_of_the_books_bound_on_many_cells():
    updates = most_updates_of_the_perceptron(Perceptron(variant="book"), 128, 0.1, 1)

    assert 0.95 * 12_800 < updates <= 12_800


def test_an_adversary_uses_most_of_the_centred_bound():
    updates = most_updates_of_the_perceptron(Perceptron(), 8, 0.05, 32)

    assert Perceptron().update_bound(line(8), 0.05) in (699, 700)
    assert 600 <= updates <= 700


def test_cells_go_negative_while_answers_stay_in_range():
    """Known example: two cells, all mass in the second, and a query that overshoots into the first."""
    domain, rule, alpha = line(2), Perceptron(variant="book"), 0.4
    both, first = dense(np.array([0.5, 1.0])).bind(domain), where(x=0).bind(domain)
    hypothesis = rule.init(domain)
    for query, value in ((both, 1.0), (first, -0.2)):
        hypothesis = rule.update(hypothesis, measured(query, value), alpha)

    assert [0.1 - 0.2, 0.2] == pytest.approx(hypothesis.cells().tolist(), abs=1e-15)
    assert 0.0 == hypothesis.evaluate(first)
    assert [0.0] == hypothesis.evaluate_many([first]).tolist()


def test_counts_and_fractions_agree():
    """The book counts records (step alpha n / |X|); this package counts fractions."""
    generator = public_generator(6)
    domain, rule, alpha, n = line(6), Perceptron(variant="book"), 0.15, 12_000
    hypothesis, counts = rule.init(domain), np.zeros(6)
    for _ in range(50):
        query = dense(generator.integers(0, 2, 6).astype(float)).bind(domain)
        if query.constant is not None:
            continue
        value = float(generator.random())
        above = min(max(dense_values(query) @ counts / n, 0.0), 1.0) > value
        counts += (-1 if above else 1) * alpha * n / 6 * dense_values(query)
        hypothesis = rule.update(hypothesis, measured(query, value), alpha)

    assert np.abs(counts / n - hypothesis.cells()).max() < 1e-12


def test_a_public_promise_on_the_length_enters_the_bound():
    flat = 1 / 1024

    assert 25_600 == pytest.approx(Perceptron(variant="book").exact_update_bound(line(64), 0.05))
    assert 400 == pytest.approx(Perceptron(variant="book", p2=flat).exact_update_bound(line(1024), 0.05))
    assert 0.0 == Perceptron(p2=flat).exact_update_bound(line(1024), 0.05)
    assert 0.0 == Perceptron(p2=flat / 2).exact_update_bound(line(1024), 0.05)  # no histogram is shorter


# -- median ----------------------------------------------------------------------------------------


def integer_truth(size, net, seed):
    return public_generator(seed).multinomial(net, np.ones(size) / size) / net


@pytest.mark.parametrize("seed", range(6))
def test_at_least_half_go_and_a_truth_of_the_net_stays(seed):
    generator = public_generator(10 + seed)
    domain, rule, alpha = line(4), Median(size=10, n=10), 0.05
    truth = integer_truth(4, 10, seed)
    hypothesis, updates = rule.init(domain), 0
    for _ in range(300):
        query = dense(generator.choice([generator.random(4), generator.integers(0, 2, 4)])).bind(domain)
        value = float(dense_values(query) @ truth)
        gap = value - hypothesis.evaluate(query)
        if abs(gap) <= alpha:
            continue
        before = hypothesis.candidates
        noisy = value - math.copysign(alpha * 0.999, gap)
        hypothesis = rule.update(hypothesis, measured(query, noisy), alpha)
        updates += 1

        assert hypothesis.candidates <= before // 2
        assert 0 == hypothesis.stalled
        assert (np.abs(hypothesis.databases / 10 - truth[:, None]).max(axis=0) < 1e-12).any()

    assert 0 < updates <= rule.update_bound(domain, alpha)


def test_an_adversary_halves_as_often_as_can_be():
    """8 of log2 286 = 8.16 updates: the query that leaves the most survivors, among many."""
    generator = public_generator(20)
    domain, rule, alpha = line(4), Median(size=10, n=10), 0.05
    most = 0
    for _ in range(6):
        truth = generator.multinomial(10, np.ones(4) / 4) / 10
        hypothesis, updates = rule.init(domain), 0
        while True:
            best = None
            for row in (*generator.integers(0, 2, (4, 4)).astype(float), *generator.random((60, 4))):
                query = dense(row).bind(domain)
                value = float(dense_values(query) @ truth)
                if abs(value - hypothesis.evaluate(query)) > alpha:
                    after = rule.update(hypothesis, measured(query, value), alpha)
                    if best is None or after.candidates > best.candidates:
                        best = after
            if best is None:
                break
            hypothesis, updates = best, updates + 1
        most = max(most, updates)

    assert 8 == rule.update_bound(domain, alpha)
    assert 0.9 * math.log2(286) <= most <= 8


def test_the_tie_example_does_not_empty_the_set():
    """Gaps of exactly alpha, which the printed theorem allows, would leave no candidate after two updates."""
    domain, rule, alpha = line(2), Median(size=2), 0.25
    query = where(x=0).bind(domain)  # values 0, 1/2, 1 on the three databases; f(x) = 1/4
    start = rule.init(domain)
    first = rule.update(start, measured(query, 0.25), alpha)
    second = rule.update(first, measured(query, 0.25), alpha)

    assert (3, 0.5) == (start.candidates, start.evaluate(query))
    assert (1, 0.0) == (first.candidates, first.evaluate(query))
    assert (1, 1) == (second.candidates, second.stalled)


@pytest.mark.parametrize(
    ("size", "net", "rows"), [(4, 50, 23_426), (8, 20, 888_030), (2, 265, 266), (1, 9, 1), (3, 300, 45_451)]
)
def test_the_net_holds_every_multiset_once(size, net, rows):
    space = Median(size=net).init(line(size))
    databases = space.databases.astype(np.int64)

    assert rows == space.candidates == math.comb(size + net - 1, net)
    assert (databases.sum(axis=0) == net).all()
    assert rows == len(np.unique((net + 1) ** np.arange(size) @ databases))


@pytest.mark.parametrize(("size", "net"), [(16, 12), (64, 20), (1024, 265)])
def test_a_net_that_cannot_be_enumerated_is_refused_with_its_size(size, net):
    expected = math.log2(math.comb(size + net - 1, net))

    with pytest.raises(TooLargeError, match=rf"at most 2\^24 databases, got 2\^{expected:.1f}"):
        Median(size=net).init(line(size))


@pytest.mark.parametrize("size", [2, 4, 8])
def test_the_dimension_net_has_radius_cells_over_four_m_and_attains_it(size):
    """Total variation from a histogram to the nearest database of m records, by largest remainders."""
    generator, net = public_generator(30), 6
    half_integers = (np.arange(size) % 2 + 0.5) * (np.arange(size) % 2 == 0) + 0.5 * (np.arange(size) % 2)
    half_integers[0] += net - half_integers.sum()
    truths = [half_integers / net, *generator.dirichlet(np.ones(size), 500)]
    space = Median(size=net).init(line(size))
    distances = [0.5 * np.abs(space.databases / net - truth[:, None]).sum(axis=0).min() for truth in truths]

    assert size / (4 * net) == pytest.approx(distances[0], abs=1e-12)
    assert max(distances) <= size / (4 * net) + 1e-12


def test_nets_have_the_published_sizes():
    known = {"max_queries": 100, "n": 10**6}

    assert 265 == Median(variant="sampling", **known).at(line(2), 0.1).size
    assert 50 == Median(variant="dimension").at(line(4), 0.02).size
    assert 20 == Median(variant="smaller", **known).at(line(8), 0.1).size
    assert 461 == Median(variant="book", **known).at(line(2), 0.1).size
    assert 30 == Median(variant="sampling", max_queries=100, n=30).at(line(2), 0.1).size
    assert 2**10 == round(2 ** Median(variant="dimension").exact_update_bound(line(2), 0.5 / 1023))


@pytest.mark.parametrize("queries", [1, 2, 3])
def test_the_books_net_serves_short_streams_too(queries):
    """ln 1 = 0 records, or one, would be no net: a half could not be told from nothing."""
    alpha = 0.1
    net = Median(variant="book", max_queries=queries, n=10**6).at(line(2), alpha)
    space = net.init(line(2))
    truth = 0.123
    nearest = np.abs(space.databases[0] / space.size - truth).min()

    assert nearest <= alpha
    assert 2 * queries * math.exp(-2 * net.size * alpha**2) <= 1.0


def test_a_net_of_a_given_size_has_a_bound_only_where_it_covers_alpha():
    domain = line(8)

    assert 6 == Median(size=3).update_bound(domain, 0.7)
    assert Median(size=3).update_bound(domain, 0.1) is None
    assert 6 == Median(size=3, n=3).update_bound(domain, 0.1)  # holds the truth itself
    assert Median(size=4, n=3).update_bound(domain, 0.1) is None
    assert Median(size=265, max_queries=100).update_bound(domain, 0.1) is not None
    assert Median(size=19, max_queries=100).update_bound(domain, 0.1) is None
    assert Median(size=19, max_queries=1, variant="book").update_bound(domain, 0.1) is None
    assert Median(size=70, max_queries=2, variant="book").update_bound(domain, 0.1) is not None


def test_a_net_that_does_not_cover_alpha_stalls_for_ever():
    """Why that bound is None: 3 records cannot describe a sixth."""
    domain, rule, alpha = line(2), Median(size=1), 0.1
    query = where(x=0).bind(domain)
    hypothesis = rule.init(domain)
    for _ in range(20):
        hypothesis = rule.update(hypothesis, measured(query, 0.5), alpha)

    assert hypothesis.stalled >= 18
    assert abs(hypothesis.evaluate(query) - 0.5) > alpha


def test_a_session_overrides_a_foreign_stream_length_and_n():
    fixed = Median(max_queries=1, n=3).for_stream(1000, 500)

    assert (1000, 500) == (fixed.max_queries, fixed.n)


# -- all rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_only_the_side_of_the_answer_counts(rule):
    """A noisy answer just inside alpha gives the trajectory of the exact one, bit for bit."""
    generator = public_generator(40)
    domain, alpha = line(4), 0.1
    truth = generator.dirichlet(np.ones(4))
    exact, noisy = rule.init(domain), rule.init(domain)
    queries = [dense(row).bind(domain) for row in generator.integers(0, 2, (60, 4)).astype(float)]
    for query in queries:
        value = float(dense_values(query) @ truth)
        gap = value - exact.evaluate(query)
        if query.constant is None and abs(gap) > alpha:
            exact = rule.update(exact, measured(query, value), alpha)
            noisy = rule.update(noisy, measured(query, value - math.copysign(alpha, gap) * (1 - 1e-9)), alpha)

        assert exact.evaluate_many(queries).tolist() == noisy.evaluate_many(queries).tolist()


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_an_answer_equal_to_the_guess_counts_as_above(rule):
    domain = line(4)
    query = where(x=2).bind(domain)
    start = rule.init(domain)
    guess = start.evaluate(query)
    after = rule.update(start, measured(query, guess), 0.1)

    assert after.evaluate(query) > guess


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_of_a_partition_the_block_with_the_largest_gap_moves(rule):
    domain = line(4)
    start = rule.init(domain)
    partition = Partition(domain, (0,), (np.arange(4),))
    values = start.blocks(partition) + np.array([0.1, -0.05, 0.2, 0.0])
    by_partition = rule.update(start, (Measurement(partition, values, 0.01),), 0.1)
    by_query = rule.update(start, measured(where(x=2).bind(domain), values[2]), 0.1)

    assert np.array_equal(by_query.blocks(partition), by_partition.blocks(partition))


def test_of_equal_gaps_the_lowest_block_moves():
    domain = line(4)
    partition = Partition(domain, (0,), (np.arange(4),))
    after = MultiplicativeWeights().update(
        Histogram(domain), (Measurement(partition, np.array([0.25, 0.5, 0.5, 0.25]), 0.01),), 0.1
    )

    assert 1 == int(np.argmax(after.probabilities()))


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_only_the_latest_measurement_is_used(rule):
    domain = line(4)
    first, second = where(x=0).bind(domain), where(x=1).bind(domain)
    start = rule.init(domain)
    alone = rule.update(start, measured(second, 0.9), 0.1)
    together = rule.update(start, measured(first, 0.9) + measured(second, 0.9), 0.1)

    assert alone.evaluate(first) == together.evaluate(first)
    assert alone.evaluate(second) == together.evaluate(second)


@pytest.mark.parametrize(
    ("rule", "size", "alpha", "expected"),
    [
        (MultiplicativeWeights(variant="book"), 256, 0.05, 8872),
        (MultiplicativeWeights(), 256, 0.05, 1109),
        (MultiplicativeWeights(rate=0.1), 256, 0.05, None),
        (MultiplicativeWeights(variant="book"), 2**10, 0.1607869513, 1072),
        (Perceptron(), 128, 0.05, 12_700),
        (Median(variant="sampling", max_queries=100, n=10**6), 8, 0.1, 44),
    ],
)
def test_update_bounds_equal_the_published_ones(rule, size, alpha, expected):
    found = rule.update_bound(line(size), alpha)

    assert expected == found or (abs(expected - found) == 1 and isinstance(rule, Perceptron))


def test_rules_show_their_contracts():
    for rule in RULES:
        assert isinstance(rule, UpdateRule)
        assert isinstance(rule, ExactBound)
        assert isinstance(rule, NeedsAccuracy) == isinstance(rule, Median)
    assert isinstance(Median(size=2).init(line(2)), VersionSpace)


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: MultiplicativeWeights(variant="loose"), "variant must be 'tight' or 'book'"),
        (lambda: MultiplicativeWeights(rate=0.0), "rate must be a number in"),
        (lambda: MultiplicativeWeights(rate=101.0), "rate must be a number in"),
        (lambda: MultiplicativeWeights(rate=math.nan), "rate must be a number in"),
        (lambda: Perceptron(variant="tight"), "variant must be 'centred' or 'book'"),
        (lambda: Perceptron(p2=0.0), "p2 must be a number in"),
        (lambda: Perceptron(p2=1.1), "p2 must be a number in"),
        (lambda: Median(variant="net"), "variant must be 'smaller', 'sampling', 'dimension' or 'book'"),
        (lambda: Median(size=0), "size must be an integer >= 1"),
        (lambda: Median(max_queries=1.5), "max_queries must be an integer >= 1"),
        (lambda: Median(n=True), "n must be an integer >= 1"),
        (lambda: Median().init(line(2)), "size must be given to Median"),
        (lambda: Median(variant="book").update_bound(line(2), 0.1), "max_queries must be given"),
        (lambda: Median().update_bound(line(2), 0.0), "alpha must be a number in"),
        (lambda: MultiplicativeWeights().update_bound(line(2), math.nan), "alpha must be a number in"),
    ],
)
def test_settings_out_of_range_are_refused(build, complaint):
    with pytest.raises(InvalidParameterError, match=complaint):
        build()
