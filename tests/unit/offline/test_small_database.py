"""SmallDB: exact scores, honest bounds, its choice by the right law, and the line without enumeration."""

import itertools
import math
import sys
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy import stats

import onlineic as ic
from onlineic import bounds
from onlineic.errors import InvalidParameterError, InvalidQueryError, SessionSealedError, TooLargeError
from onlineic.evaluate import exact_values
from onlineic.hypothesis import HasBlocks, Hypothesis
from onlineic.mechanisms import ExponentialMechanism
from onlineic.noise import SimulatedNoise
from onlineic.offline import (
    nets,
    paths,
    range_queries,
    small_database,
    threshold_database,
    threshold_functions,
)
from onlineic.offline.nets import Scoring
from onlineic.offline.paths import count_paths, path_of_rank, strip_width
from onlineic.offline.thresholds import _beyond, _rows, _uniform_path
from onlineic.queries import Query, one_way
from onlineic.testing import ScriptedNoise
from onlineic.updates.median import multisets

DOMAIN = ic.Domain.of(a=range(3), b=["x", "y"])
DATA = ic.PrivateData(np.array([900, 40, 0, 60, 700, 300]), DOMAIN)
CLASS = [ic.where(a=a, b=b) for a in range(3) for b in ("x", "y")]
MIXED = [ic.where(a=1), ic.dense([0.0, 0.25, 0.5, 1.0, 0.75, 0.125]), ~ic.where(b="y"), ic.dense([0.5] * 6)]
LINE = ic.Domain.of(d=range(8))
ON_LINE = ic.PrivateData(np.array([50, 0, 0, 400, 30, 20, 0, 500]), LINE)


def law_of(choose, draws):
    """Return how often each database was chosen, as {counts: times}."""
    found, noise = {}, SimulatedNoise(1)
    for _ in range(draws):
        key = tuple(choose(noise).counts.ravel().tolist())
        found[key] = found.get(key, 0) + 1
    return found


def chi_square(found, law):
    """Return the p-value of counts {counts: times} against a law {counts: probability}, rare ones pooled."""
    draws = sum(found.values())
    assert set(found) <= set(law)
    ordered = sorted(law, key=law.get)
    observed, expected = [0.0], [0.0]
    for key in ordered:
        observed[-1] += found.get(key, 0)
        expected[-1] += draws * law[key]
        if expected[-1] >= 10:
            observed.append(0.0)
            expected.append(0.0)
    observed[-2:] = [observed[-2] + observed[-1]]
    expected[-2:] = [expected[-2] + expected[-1]]
    return stats.chisquare(observed, expected).pvalue


# ------------------------------------ scores and settings
def test_scores_are_the_worst_error_exactly():
    queries = [query.bind(DOMAIN) for query in MIXED]
    scoring = Scoring.of(queries, DATA.n, 4)
    candidates = multisets(6, 4).astype(np.int64)
    scores = scoring.scores(DATA.exact_counts_many(queries), candidates)
    values = exact_values(DATA, queries)

    for index in range(0, candidates.shape[1], 17):
        held = ic.PrivateData(candidates[:, index], DOMAIN)
        worst = np.abs(exact_values(held, queries) - values).max()
        assert worst == pytest.approx(-scores[index] * scoring.unit, abs=1e-15)
    assert Fraction(1, 2000 * 4 * 8) == Fraction(scoring.unit).limit_denominator(10**6)


def test_the_noise_is_made_for_m_times_the_widest_query():
    noise = ScriptedNoise([0] * math.comb(6 + 3 - 1, 3))
    small_database(DATA, MIXED, 0.5, size=3, mechanism="noisy max", noise=noise)

    # 2 sensitivity/epsilon, sensitivity = 3 records times weights up to 1 = 8 eighths
    assert [("geometric", Fraction(2 * 3 * 8 * 2), 56)] == noise.scales


def test_without_noise_the_best_database_is_chosen():
    queries = [query.bind(DOMAIN) for query in CLASS]
    chosen = small_database(
        DATA, CLASS, 1.0, size=5, mechanism="noisy max", noise=ScriptedNoise([0] * math.comb(10, 5))
    )
    scores = Scoring.of(queries, DATA.n, 5).scores(
        DATA.exact_counts_many(queries), multisets(6, 5).astype(np.int64)
    )

    assert 5 == chosen.size
    worst = np.abs(chosen.evaluate_many(queries) - exact_values(DATA, queries)).max()
    assert worst == pytest.approx(-scores.max() / (5 * 2000))
    assert worst <= chosen.radius


@pytest.mark.parametrize("most", [1, 7, 10**6])
def test_the_choice_does_not_depend_on_the_size_of_blocks(monkeypatch, most):
    expected = small_database(DATA, CLASS, 1.0, size=4, noise=SimulatedNoise(3)).counts
    monkeypatch.setattr(nets, "BLOCK", most)

    assert np.array_equal(expected, small_database(DATA, CLASS, 1.0, size=4, noise=SimulatedNoise(3)).counts)


def test_the_size_follows_alpha_or_is_the_best_within_reach():
    by_alpha = small_database(DATA, CLASS, 1.0, alpha=0.2, noise=SimulatedNoise(0))
    free = small_database(DATA, CLASS, 1.0, noise=SimulatedNoise(0))

    assert (math.ceil(6 / 0.8), by_alpha.size) == (8, bounds.multiset_rows(0.2, 6, 6))
    assert by_alpha.radius <= 0.2
    assert math.comb(5 + free.size, 5) <= nets.QUICK_CANDIDATES
    reachable = [m for m in range(1, 40) if math.comb(5 + m, 5) <= nets.QUICK_CANDIDATES]
    best = min(bounds.net_error(bounds.multiset_radius(m, 6, 6), m, 6, 2000, 1.0) for m in reachable)
    assert free.error_bound == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize(("cells", "rows"), [(4, 291), (8, 25), (16, 10)])
def test_what_can_be_enumerated(cells, rows):
    assert nets._number(cells, rows) <= nets.MAX_CANDIDATES
    with pytest.raises(TooLargeError, match="candidates"):
        nets._number(cells, rows + 1)


def test_as_many_records_as_the_data_are_an_exact_net():
    few = ic.PrivateData(np.array([1, 0, 0, 2, 0, 1]), DOMAIN)

    assert 0.0 == small_database(few, CLASS, 1.0, size=4, noise=SimulatedNoise(0)).radius


def test_a_subclass_of_query_never_meets_the_private_tables():
    """Its own `total` would be handed them: to look at, to keep, or to fail on."""
    seen = []

    class Spy(Query):
        def total(self, tables, mass):
            seen.append(tables)
            return super().total(tables, mass)

    honest = ic.dense([0.0, 1.0, 1.0, 0.0, 1.0, 0.0]).bind(DOMAIN)
    spy = Spy(**{field.alias: getattr(honest, field.name) for field in attrs.fields(Query) if field.init})
    object.__setattr__(spy, "_canonical", True)
    data = ic.PrivateData(np.array([9, 1, 0, 6, 7, 3]), DOMAIN)
    for release in (
        lambda: small_database(data, [honest, spy], 1.0, size=2, noise=SimulatedNoise(0)),
        lambda: range_queries(data, [honest, spy], 1.0, threshold=3, cutoff=1, noise=SimulatedNoise(0)),
    ):
        with pytest.raises(InvalidQueryError, match="Spy"):
            release()

    assert ([], 0, []) == (seen, data.reads, list(data.budgets))


def test_arrays_of_weights_are_queries_too():
    arrays = [query.bind(DOMAIN).weights() / 2.0 ** query.bind(DOMAIN).grid_bits for query in MIXED]
    written, plain = (
        small_database(DATA, queries, 1.0, size=3, noise=SimulatedNoise(1)).counts
        for queries in (MIXED, arrays)
    )

    assert np.array_equal(written, plain)


@pytest.mark.parametrize(
    ("counts", "size", "text"),
    [([2**34, 5], 2, r"2\^53, got 2\^54.0"), ([2**33 - 1, 1], 2**7, r"2\^60, got 2\^60.0")],
)
def test_scores_beyond_exact_integers_are_refused_before_anything_is_spent(counts, size, text):
    data = ic.PrivateData(np.array(counts), ic.Domain.of(a=2))
    with pytest.raises(TooLargeError, match=text):
        small_database(data, [ic.dense([0.0, 1 / 3])], 1.0, size=size)

    assert ([], 0) == (list(data.budgets), data.reads)


# ------------------------------------ bounds
def test_the_radius_holds_for_the_weights_as_they_were_written():
    third = ic.dense([0.0, 1 / 3, 0.0, 0.0, 0.0, 0.0])
    few = ic.PrivateData(np.array([1, 2, 0, 0, 0, 1]), DOMAIN)
    chosen = small_database(few, [third], 20.0, size=4, noise=SimulatedNoise(0))

    assert 0.0 < third.bind(DOMAIN).rounding == chosen.radius < 2.0**-20
    assert 2 == chosen.counts[0, 1]
    assert abs(chosen.evaluate(third.bind(DOMAIN)) - (1 / 3) * 2 / 4) <= chosen.error_bound


def test_the_bound_is_the_nets_and_the_choices():
    chosen = small_database(DATA, CLASS, 1.0, size=10, noise=SimulatedNoise(0))
    printed = bounds.net_error(chosen.radius, 10, 6, DATA.n, 1.0)

    assert chosen.error_bound == chosen.radius + chosen.selection_bound
    assert printed - 1e-3 < chosen.error_bound <= printed
    noisy = small_database(DATA, CLASS, 1.0, size=10, mechanism="noisy max", noise=SimulatedNoise(0))
    saved = chosen.selection_bound - noisy.selection_bound
    assert saved == pytest.approx(2 * math.log(2) / DATA.n, rel=0.1)


@pytest.mark.parametrize("mechanism", ["exponential", "noisy max"])
def test_errors_keep_the_bound(mechanism):
    queries = [query.bind(DOMAIN) for query in CLASS]
    truths = exact_values(DATA, queries)
    for seed in range(40):
        chosen = small_database(
            DATA, queries, 0.2, size=8, beta=1e-6, mechanism=mechanism, noise=SimulatedNoise(seed)
        )
        assert np.abs(chosen.evaluate_many(queries) - truths).max() <= chosen.error_bound


def test_a_size_without_the_logarithm_needs_far_more_candidates_for_the_same_radius():
    """m = |Q|/alpha^2 as a published program has it: 96 records for 29, and then it cannot be enumerated."""
    alpha, queries = 0.25, len(CLASS)
    right, mutant = bounds.small_database_size(alpha, queries), math.ceil(queries / alpha**2)
    assert (28, 96) == (right, mutant)
    chosen = small_database(DATA, CLASS, 1.0, size=right, noise=SimulatedNoise(0))
    assert 237_336 == chosen.candidates

    with pytest.raises(TooLargeError, match=r"2\^26.2, multisets of 96"):
        small_database(DATA, CLASS, 1.0, size=mutant)


# ------------------------------------ laws
@pytest.mark.statistical
def test_databases_are_drawn_by_the_exponential_mechanism():
    data = ic.PrivateData(np.array([7, 1, 2]), ic.Domain.of(a=range(3)))
    queries = threshold_functions(data.domain, "a")
    found = law_of(lambda noise: small_database(data, queries, 1.0, size=3, noise=noise), 2000)
    candidates = multisets(3, 3).astype(np.int64)
    scoring = Scoring.of(queries, 10, 3)
    scores = scoring.scores(np.array([7, 8]), candidates)

    def law(epsilon):
        masses = ExponentialMechanism(epsilon, 3).probabilities(scores)
        return {tuple(y): mass for y, mass in zip(candidates.T.tolist(), masses.tolist(), strict=True)}

    assert chi_square(found, law(1.0)) > 1e-9
    assert chi_square(found, law(2.0)) < 1e-9  # the noise of monotone scores


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_databases_on_a_line_are_drawn_by_the_law_that_enumeration_gives(epsilon):
    data = ic.PrivateData(np.array([7, 0, 1, 2]), ic.Domain.of(a=range(4)))
    found = law_of(lambda noise: threshold_database(data, "a", epsilon, size=3, noise=noise), 1500)
    below, candidates = np.array([7, 7, 8]), multisets(4, 3).T.astype(np.int64)
    gaps = np.abs(3 * below - 10 * np.cumsum(candidates, axis=1)[:, :-1]).max(axis=1)
    levels = -(-gaps // 3)

    def law(weights):
        return {
            tuple(y): w / weights.sum() for y, w in zip(candidates.tolist(), weights.tolist(), strict=True)
        }

    assert chi_square(found, law(np.exp(-epsilon * levels / 2))) > 1e-9
    # mutant: a level drawn without its multiplicity
    alone = np.exp(-epsilon * levels / 2) / np.bincount(levels)[levels]
    assert chi_square(found, law(alone)) < 1e-9


@pytest.mark.parametrize("bits", [None, 1, 3], ids=["one limb", "bits", "octal"])
def test_paths_are_counted_and_numbered_as_in_the_enumeration(monkeypatch, bits):
    """Also where every number is split, carries and borrows."""
    if bits is not None:
        monkeypatch.setattr(paths, "limb_bits", lambda _: bits)
    rng = np.random.default_rng(0)
    for _ in range(60 if bits is None else 40):
        cells, rows, n = int(rng.integers(2, 6)), int(rng.integers(1, 7)), int(rng.integers(1, 25))
        below = np.cumsum(rng.multinomial(n, rng.dirichlet(np.full(cells, 0.5))))[:-1]
        listed = np.cumsum(multisets(cells, rows).T.astype(np.int64), axis=1)
        levels = -(-np.abs(rows * below - n * listed[:, :-1]).max(axis=1) // rows)
        top = int(rng.integers(0, n + 1))
        width = strip_width(n, rows, top)

        counted = count_paths(below, n, rows, np.arange(-1, top + 1), width)
        assert [int((levels <= level).sum()) for level in range(-1, top + 1)] == counted
        for low, high in [*itertools.pairwise(range(-1, top + 1)), (top, n)]:
            members = {tuple(path) for path in listed[(low < levels) & (levels <= high)].tolist()}
            drawn = [
                tuple(path_of_rank(below, n, rows, low, high, strip_width(n, rows, high), rank).tolist())
                for rank in range(len(members))
            ]
            assert len(members) == len(set(drawn))
            assert members == set(drawn)


def test_numbers_of_many_limbs_are_counted_exactly():
    below = np.arange(1, 200) * 5
    total = math.comb(199 + 60, 60)

    assert 2**180 < total
    assert [0, total] == count_paths(below, 1000, 60, np.array([-1, 1000]), strip_width(1000, 60, 1000))


@pytest.mark.parametrize(("cells", "rows", "low", "high"), [(5, 60, 2, 9), (5, 60, -1, 0), (9, 30, 20, 60)])
def test_reading_off_a_path_takes_the_same_steps_whatever_the_data_and_the_path(cells, rows, low, high):
    """A search that stops where it has found, or skips what is out of range, would time the data."""

    def steps(below, rank):
        count, traced = 0, sys.gettrace()

        def trace(frame, event, _):
            nonlocal count
            count += event == "line"
            return trace if frame.f_code.co_filename == paths.__file__ else None

        sys.settrace(trace)
        try:
            path_of_rank(below, 60, rows, low, high, strip_width(60, rows, high), rank)
        finally:
            sys.settrace(traced)
        return count

    found = set()
    for counts in (np.eye(cells)[0], np.eye(cells)[-1], np.full(cells, 1 / cells), np.arange(cells)):
        below = np.cumsum(np.rint(60 * counts / counts.sum()).astype(np.int64))[:-1]
        outside, inside = count_paths(below, 60, rows, np.array([low, high]), strip_width(60, rows, high))
        for rank in {0, (inside - outside) // 2, inside - outside - 1} if inside > outside else ():
            found.add(steps(below, rank))

    assert 1 == len(found)


def beyond_the_last_level():
    """3 cells, 40 records: all but a few of the 861 databases are farther than level 3, at 1e-15 in all."""
    return ic.PrivateData(np.array([20, 0, 20]), ic.Domain.of(d=range(3)))


def test_a_level_beyond_the_last_is_drawn_from_all_databases_until_one_fits():
    """Tables for it could be too large to hold, and the failure would tell the level."""
    near, far = ([20] + [0] * 31, [0] * 32), ([1] + [0] * 31, [39] + [0] * 31)  # bars: of 41 places, of 42
    noise = ScriptedNoise([2**64 - 1, *near[0], *[21] * 32, *far[0], *far[1]])
    chosen = threshold_database(beyond_the_last_level(), "d", 20.0, size=40, noise=noise)

    assert [1, 37, 2] == chosen.counts.ravel().tolist()
    assert [("words", None, size) for size in (1, 32, 32, 32, 32)] == noise.scales
    assert noise.exhausted


@pytest.mark.statistical
def test_databases_beyond_the_last_level_are_uniform_among_themselves():
    below, noise = np.array([2, 2]), SimulatedNoise(3)
    all_paths = np.cumsum(multisets(3, 4).T.astype(np.int64), axis=1)
    far = {tuple(path) for path in all_paths.tolist() if max(abs(path[0] - 2), abs(path[1] - 2)) > 1}
    drawn, kept = {}, {}
    for _ in range(3000):
        for found, path in ((drawn, _uniform_path(3, 4, noise)), (kept, _beyond(below, 4, 4, 1, noise))):
            found[tuple(path.tolist())] = found.get(tuple(path.tolist()), 0) + 1

    assert {tuple(path) for path in all_paths.tolist()} == set(drawn)
    assert far == set(kept)
    assert min(chi_square(found, dict.fromkeys(found, 1 / len(found))) for found in (drawn, kept)) > 1e-9


def test_products_beyond_int64_are_refused_and_never_taken_by_default():
    """n m = 2^64: all levels of the strips would have wrapped."""
    data = ic.PrivateData(np.array([2**31, 2**31]), ic.Domain.of(d=range(2)))
    for wish in ({"size": 2**32}, {"alpha": 1e-9}):
        with pytest.raises(TooLargeError, match=r"below 2\^60"):
            threshold_database(data, "d", 20.0, **wish)

    assert ([], 0) == (list(data.budgets), data.reads)
    assert _rows(2, 2**32, 20.0, None, None, 0.05) * 2**32 < 2**60


def test_the_least_beta_has_a_finite_bound_on_a_line():
    chosen = threshold_database(ON_LINE, "d", 20.0, size=5, beta=5e-324, noise=SimulatedNoise(0))

    assert chosen.selection_bound == pytest.approx((math.log(792) - math.log(5e-324)) / 10 / 1000, abs=2e-3)


# ------------------------------------ on a line
def test_one_of_10_to_the_30_databases_on_a_line_is_chosen_within_the_bound():
    domain = ic.Domain.of(d=range(256))
    rng = np.random.default_rng(1)
    counts = rng.multinomial(10_000, rng.dirichlet(np.full(256, 0.3)))
    data = ic.PrivateData(counts, domain)
    truth = np.cumsum(counts) / 10_000
    for seed in range(5):
        chosen = threshold_database(data, "d", 1.0, size=20, beta=1e-6, noise=SimulatedNoise(seed))
        error = np.abs(np.cumsum(chosen.counts) / 20 - truth).max()

        assert math.comb(255 + 20, 20) == chosen.candidates > 10**29
        assert error <= chosen.error_bound < 0.05
    free = threshold_database(data, "d", 1.0, noise=SimulatedNoise(0))
    assert (34, 0.0359) == (free.size, round(free.error_bound, 4))


def test_the_bound_on_a_line_is_that_of_the_quantile_net():
    chosen = threshold_database(ON_LINE, "d", 1.0, size=5, noise=SimulatedNoise(0))

    assert chosen.radius == 0.1 == bounds.threshold_radius(5)
    assert chosen.error_bound == pytest.approx(bounds.net_error(0.1, 5, 8, 1000, 1.0), abs=1e-3)
    assert 8 == threshold_database(ON_LINE, "d", 1.0, alpha=1 / 16, noise=SimulatedNoise(0)).size
    assert (
        0.0
        == threshold_database(
            ic.PrivateData(np.array([2, 0, 1]), ic.Domain.of(d=range(3))), "d", 1.0, size=3
        ).radius
    )


def test_an_attribute_of_a_larger_table_is_answered_over_its_own_domain():
    chosen = threshold_database(DATA, "a", 5.0, noise=SimulatedNoise(0))
    queries = threshold_functions(chosen.domain, "a")
    truths = np.cumsum(DATA.exact_counts(one_way(DOMAIN, 0)))[:-1] / DATA.n

    assert chosen.domain == DOMAIN.project("a")
    assert np.abs(chosen.evaluate_many(queries) - truths).max() <= chosen.error_bound


# ------------------------------------ a public sample of candidates
def test_a_public_sample_is_no_net_and_says_so():
    domain = ic.Domain.of(a=range(64))
    data = ic.PrivateData(np.arange(64) * 10, domain)
    queries = threshold_functions(domain, "a")
    chosen = small_database(data, queries, 1.0, size=20, candidates=500, seed=7, noise=SimulatedNoise(0))

    assert (None, None, 500) == (chosen.radius, chosen.error_bound, chosen.candidates)
    assert "no bound" in repr(chosen)
    again = small_database(data, queries, 1.0, size=20, candidates=500, seed=7, noise=SimulatedNoise(0))
    assert np.array_equal(chosen.counts, again.counts)
    # its one promise, against the best of the sample
    scoring = Scoring.of(queries, data.n, 20)
    block = np.concatenate(list(nets._sampled_blocks(64, 20, 500, 7, scoring.block)), axis=1)
    scores = scoring.scores(data.exact_counts_many(queries), block)
    worst = np.abs(chosen.evaluate_many(queries) - exact_values(data, queries)).max()
    assert worst <= -scores.max() * scoring.unit + chosen.selection_bound


def test_the_sample_is_uniform_over_multisets():
    drawn = np.concatenate(list(nets._sampled_blocks(3, 2, 6000, 1, 1000)), axis=1)
    kinds, times = np.unique(drawn, axis=1, return_counts=True)

    assert 6 == kinds.shape[1]
    assert stats.chisquare(times).pvalue > 1e-9


# ------------------------------------ a hypothesis
def test_a_small_database_is_a_hypothesis():
    chosen = small_database(DATA, CLASS, 1.0, size=7, noise=SimulatedNoise(0))
    queries = [query.bind(DOMAIN) for query in MIXED]

    assert isinstance(chosen, Hypothesis)
    assert isinstance(chosen, HasBlocks)
    for query, value in zip(queries, chosen.evaluate_many(queries), strict=True):
        weights = query.weights() / 2**query.grid_bits
        assert value == chosen.evaluate(query) == pytest.approx(float((weights * chosen.counts).sum()) / 7)
    assert np.array_equal(chosen.counts.sum(axis=1) / 7, chosen.blocks(one_way(DOMAIN, 0)))
    assert chosen.supports(queries[0])
    assert not chosen.supports(ic.where(d=1).bind(LINE))
    with pytest.raises(ValueError, match="read-only"):
        chosen.counts[0, 0] = 1


# ------------------------------------ privacy of the frame
@pytest.mark.parametrize(
    "release",
    [
        lambda data, noise: small_database(data, CLASS, 0.5, size=3, noise=noise),
        lambda data, noise: threshold_database(data, "a", 0.5, size=3, noise=noise),
    ],
    ids=["enumerated", "line"],
)
def test_the_budget_is_charged_and_simulated_noise_is_stamped(release):
    data = ic.PrivateData(np.array([9, 1, 0, 6, 7, 3]), DOMAIN)
    simulated = release(data, SimulatedNoise(0))
    assert (False, []) == (simulated.private, list(data.budgets))
    assert "NOT PRIVATE" in repr(simulated)
    private = release(data, None)

    assert (True, [ic.Budget(0.5)]) == (private.private, list(data.budgets))
    assert "NOT PRIVATE" not in repr(private)
    with pytest.raises(SessionSealedError, match="interrupted"):
        release(data, ScriptedNoise([]))


BAD = [
    (lambda data: small_database(data, [], 1.0), InvalidParameterError, "queries"),
    (lambda data: small_database(data, ic.where(a=1), 1.0), InvalidParameterError, "queries"),
    (lambda data: small_database(data, [ic.where(a=1), 3], 1.0), InvalidQueryError, "queries"),
    (lambda data: small_database(data, [ic.where(c=1)], 1.0), InvalidQueryError, "attribute"),
    (lambda data: small_database(data, CLASS, 0.0), InvalidParameterError, "epsilon"),
    (lambda data: small_database(data, CLASS, 1.0, beta=0.0), InvalidParameterError, "beta"),
    (lambda data: small_database(data, CLASS, 1.0, size=0), InvalidParameterError, "size"),
    (lambda data: small_database(data, CLASS, 1.0, size=2001), InvalidParameterError, "size"),
    (lambda data: small_database(data, CLASS, 1.0, size=2, alpha=0.5), InvalidParameterError, "size"),
    (lambda data: small_database(data, CLASS, 1.0, mechanism="gumbel"), InvalidParameterError, "mechanism"),
    (lambda data: small_database(data, CLASS, 1.0, candidates=0), InvalidParameterError, "candidates"),
    (lambda data: small_database(data, CLASS, 1.0, candidates=5, seed=-1), InvalidParameterError, "seed"),
    (lambda data: small_database(data, CLASS, 1.0, noise="system"), InvalidParameterError, "noise"),
    (lambda data: small_database(data, CLASS, 1.0, size=300), TooLargeError, "candidates"),
    (lambda data: small_database(CLASS, CLASS, 1.0), InvalidParameterError, "data"),
    (lambda data: threshold_database(data, "b", 1.0), InvalidQueryError, "ordered"),
    (lambda data: threshold_database(data, "c", 1.0), InvalidQueryError, "attribute"),
    (lambda data: threshold_database(data, "a", 1.0, size=5000), InvalidParameterError, "size"),
    (lambda data: threshold_database(data, "a", 1.0, size=5, alpha=0.1), InvalidParameterError, "size"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD)
def test_bad_arguments_cost_nothing(call, error, text):
    data = ic.PrivateData(np.array([900, 40, 0, 60, 700, 300]), DOMAIN)
    with pytest.raises(error, match=text):
        call(data)

    assert ([], 0) == (list(data.budgets), data.reads)


def test_what_would_take_too_long_is_refused_before_anything_is_spent():
    data = ic.PrivateData(np.full(2**14, 100), ic.Domain.of(d=range(2**14)))
    few = ic.PrivateData(np.array([10_000, 10_000]), ic.Domain.of(d=range(2)))
    with pytest.raises(TooLargeError, match="private_cdf"):
        threshold_database(data, "d", 0.1)
    with pytest.raises(TooLargeError, match="private_cdf"):  # soon counted, but in gigabytes
        threshold_database(few, "d", 0.01, size=20_000)

    assert [] == list(data.budgets) == list(few.budgets)
