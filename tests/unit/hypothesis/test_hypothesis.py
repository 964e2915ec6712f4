"""Hypotheses are exact: a naive dense reference, whatever was evaluated, copied or thrown away before."""

import math
import pickle

import numpy as np
import pytest

from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError, TooLargeError
from onlineic.hypothesis import Histogram, Hypothesis, SignedHistogram, VersionSpace
from onlineic.hypothesis import histogram as module
from onlineic.hypothesis.base import grid_guesses
from onlineic.noise import public_generator
from onlineic.queries import Partition, between, dense, one_of, weights, where

BITS = 1e-12  # hypothesis.md 14


def random_query(domain, generator):
    """A point, range, set, weighted or parity condition over up to three attributes, or a dense one."""
    names = list(domain.names)
    chosen = generator.permutation(len(names))[: generator.integers(1, 4)]
    parts = {}
    for axis in chosen:
        size = domain.shape[axis]
        low, high = sorted(generator.integers(0, size, 2).tolist())
        kind = generator.integers(0, 4)
        if kind == 0:
            parts[names[axis]] = low
        elif kind == 1:
            parts[names[axis]] = between(low, high)
        elif kind == 2:
            parts[names[axis]] = one_of(*np.flatnonzero(generator.integers(0, 2, size)).tolist(), low)
        else:
            parts[names[axis]] = weights(generator.random(size))
    expression = dense(generator.random(domain.size)) if generator.random() < 0.1 else where(parts)
    return (~expression if generator.random() < 0.3 else expression).bind(domain)


def random_domain(generator):
    sizes = generator.integers(2, 8, generator.integers(1, 6)).tolist()
    return Domain.of({f"a{axis}": size for axis, size in enumerate(sizes)})


def values(query):
    """Dense weights in [0, 1], the reference's only view of a query."""
    return query.weights() / (1 << query.grid_bits)


def tilted_reference(start, tilts):
    logs = np.log(start / start.sum())
    for query, step in tilts:
        logs = logs + step * values(query)
    cells = np.exp(logs - logs.max())
    return cells / cells.sum()


# -- Histogram against the dense reference ---------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_histogram_equals_a_naive_dense_one_after_forty_updates(seed):
    generator = public_generator(seed)
    domain = random_domain(generator)
    start = generator.dirichlet(np.ones(domain.size)) + 1e-4 if seed % 2 else np.ones(domain.size)
    histogram, tilts = Histogram(domain, start if seed % 2 else None), []
    asked = [random_query(domain, generator) for _ in range(40)]
    for query in asked:
        histogram.evaluate(query)  # leaves stale tables behind, if anything does
        tilts.append((query, float(generator.normal(0, 1.5))))
        histogram = histogram.tilted(*tilts[-1])
    expected = tilted_reference(start.reshape(domain.shape), tilts)
    partition = Partition(domain, (0,), (np.arange(domain.shape[0]) % 2,))
    parity = expected.reshape(domain.shape[0], -1).sum(axis=1)

    assert BITS > np.abs(expected - histogram.probabilities()).max()
    assert BITS > max(abs(float((values(q) * expected).sum()) - histogram.evaluate(q)) for q in asked)
    assert BITS > np.abs(parity - histogram.marginal("a0")).max()
    assert BITS > abs(parity[::2].sum() - histogram.blocks(partition)[0])


@pytest.mark.parametrize("seed", range(8))
def test_one_query_and_any_batch_give_the_same_bits(seed):
    generator = public_generator(100 + seed)
    domain = random_domain(generator)
    histogram = Histogram(domain)
    for _ in range(5):
        histogram = histogram.tilted(random_query(domain, generator), float(generator.normal()))
    queries = [random_query(domain, generator) for _ in range(60)] + [where().bind(domain)]
    signed = SignedHistogram(domain, generator.normal(size=domain.shape))

    for hypothesis in (histogram, signed):
        alone = [hypothesis.evaluate(query) for query in queries]
        parts = [hypothesis.evaluate_many(queries[i : i + 7]) for i in range(0, len(queries), 7)]

        assert alone == hypothesis.evaluate_many(queries).tolist()
        assert alone == np.concatenate(parts).tolist()


@pytest.mark.parametrize("made", [Histogram, lambda domain: SignedHistogram(domain, np.ones(domain.shape))])
def test_up_to_two_to_the_16_cells_and_22_of_a_plane_a_box_is_read_off_prefix_sums(made):
    """Four entries in the place of a slice: nothing but time would show that they are not used."""
    for sizes, used in (
        ((2**14, 2, 2), True),
        ((2**15, 2, 2), False),
        ((2**21, 2), True),
        ((2**21, 3), False),
    ):
        domain = Domain.of(dict(zip("xyz", sizes, strict=False)))
        hypothesis = made(domain)
        others = dict.fromkeys(domain.names[1:], 1)
        hypothesis.evaluate(where({"x": between(3, sizes[0] - 5), **others}).bind(domain))
        tables = hypothesis._held() if made is Histogram else hypothesis._tables
        _, area = tables._entries[tuple(range(len(sizes)))]

        assert used is (area is not None)


def test_tables_too_large_for_prefix_sums_give_the_same_answers():
    domain = Domain.of(x=2**17, y=2)
    low, high = 3, 2**16 + 5
    query = where(x=between(low, high)).bind(domain)
    histogram = Histogram(domain).tilted(query, 0.7)
    share = (high - low + 1) / 2**17
    expected = share * math.exp(0.7) / (share * math.exp(0.7) + 1 - share)

    assert BITS > abs(expected - histogram.evaluate(query))
    assert histogram.evaluate(query) == histogram.evaluate_many([query])[0]


def test_seven_attributes_are_sliced_where_corners_would_be_128():
    domain = Domain.of({f"a{axis}": 3 for axis in range(7)})
    query = where({f"a{axis}": between(1, 2) for axis in range(7)}).bind(domain)
    histogram = Histogram(domain).tilted(query, 1.0)
    share = (2 / 3) ** 7
    expected = share * math.e / (share * math.e + 1 - share)

    assert BITS > abs(expected - histogram.evaluate(query))


def test_queries_of_another_domain_are_not_supported():
    query = where(x=0).bind(Domain.of(x=2))

    assert Histogram(Domain.of(x=2)).supports(query)
    assert not Histogram(Domain.of(x=3)).supports(query)
    assert not SignedHistogram(Domain.of(x=3), np.zeros(3)).supports(query)
    assert not VersionSpace(Domain.of(x=3), np.eye(3, dtype=np.uint8), 1).supports(query)


# -- handles: taken over, rebuilt, pickled, broken off ---------------------------------------------


def chain(length, seed=1):
    """A histogram, its successors, and the same made from scratch, with steps that force a rebase."""
    generator = public_generator(seed)
    domain = Domain.of(a=4, b=3, c=2)
    start = generator.random(24) + 0.01
    histograms = [Histogram(domain, start)]
    for _ in range(length):
        query = random_query(domain, generator)
        histograms.append(histograms[-1].tilted(query, float(generator.normal(0, 40))))
    return histograms


def test_old_handles_rebuild_the_same_bits_in_any_order():
    histograms = chain(40)
    witnesses = [histogram.probabilities() for histogram in chain(40)]  # rebuilt one by one
    order = public_generator(2).permutation(len(histograms))
    found = {int(i): histograms[i].probabilities() for i in order}

    assert all(np.array_equal(witnesses[i], found[i]) for i in found)


def test_values_read_while_live_equal_values_read_after_a_takeover():
    generator = public_generator(3)
    domain = Domain.of(a=4, b=3)
    histogram, kept = Histogram(domain), []
    for _ in range(60):
        kept.append((histogram, histogram.probabilities()))
        histogram = histogram.tilted(random_query(domain, generator), float(generator.normal(0, 30)))

    assert all(np.array_equal(cells, old.probabilities()) for old, cells in kept)


def test_two_branches_from_one_parent_do_not_meet():
    domain = Domain.of(x=4)
    first, second = where(x=0).bind(domain), where(x=1).bind(domain)
    parent = Histogram(domain).tilted(first, 1.0)
    left, right = parent.tilted(first, 1.0), parent.tilted(second, 1.0)
    left, right = left.tilted(second, -1.0), right.tilted(second, -1.0)

    assert BITS > np.abs(tilted_reference(np.ones(4), [(first, 1.0)]) - parent.probabilities()).max()
    assert (
        BITS
        > np.abs(tilted_reference(np.ones(4), [(first, 2.0), (second, -1.0)]) - left.probabilities()).max()
    )
    assert BITS > np.abs(tilted_reference(np.ones(4), [(first, 1.0)]) - right.probabilities()).max()


def test_pickle_keeps_every_bit_of_live_and_of_old_handles():
    histograms = chain(30)

    for histogram in (histograms[0], histograms[11], histograms[-1]):
        copy = pickle.loads(pickle.dumps(histogram))

        assert np.array_equal(histogram.probabilities(), copy.probabilities())
        assert repr(histogram) == repr(copy)


def test_pickle_of_an_old_handle_holds_its_own_updates_only():
    histograms = chain(30)

    assert len(pickle.dumps(histograms[3])) < len(pickle.dumps(histograms[-1]))


@pytest.mark.parametrize("step", [math.nan, math.inf, -math.inf])
def test_a_step_that_is_no_number_is_refused_and_the_old_handle_stays_right(step):
    histograms = chain(20)
    expected = histograms[-1].probabilities()
    query = where(a=1).bind(histograms[-1].domain)

    with pytest.raises(InvalidParameterError, match="step must be finite"):
        histograms[-1].tilted(query, step)

    assert np.array_equal(expected, histograms[-1].probabilities())
    assert np.array_equal(expected, histograms[-1].tilted(query, 0.0).probabilities())


def test_an_update_interrupted_half_way_leaves_the_old_handle_right(monkeypatch):
    histograms = chain(20)
    expected = histograms[-1].probabilities()
    query = dense(np.linspace(0, 1, 24)).bind(histograms[-1].domain)

    def written_then_interrupted(query):
        histograms[-1]._cells[...] = 7.0
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "relative_weights", written_then_interrupted)
        with pytest.raises(KeyboardInterrupt):
            histograms[-1].tilted(query, 1.0)
    again = histograms[-1].tilted(query, 1.0)

    assert np.array_equal(expected, histograms[-1].probabilities())
    assert BITS > np.abs(tilted_reference(expected, [(query, 1.0)]) - again.probabilities()).max()


def test_a_callers_array_is_copied():
    start = np.array([1.0, 2.0, 3.0])
    histogram = Histogram(Domain.of(x=3), start)
    start[:] = 0.0
    copy = histogram.probabilities()
    copy[:] = 0.0

    assert [1 / 6, 1 / 3, 1 / 2] == pytest.approx(histogram.probabilities().tolist(), abs=BITS)


# -- numeric traps: underflow, overflow, cancellation ----------------------------------------------


def test_two_thousand_steps_down_and_up_again_come_back():
    """Linear weights underflow after 745 nats and never return; the log-weights do."""
    domain = Domain.of(x=4)
    query = where(x=between(0, 1)).bind(domain)
    histogram = Histogram(domain)
    for step in [-1.0] * 2000 + [1.0] * 2000:
        histogram = histogram.tilted(query, step)

    assert BITS > abs(0.5 - histogram.evaluate(query))
    assert BITS > np.abs(0.25 - histogram.probabilities()).max()


@pytest.mark.parametrize("per_step", [2.0, 7.3, 99.0])
def test_long_streams_of_large_steps_keep_to_the_closed_form(per_step):
    generator = public_generator(5)
    domain = Domain.of(a=10, b=10, c=10)
    histogram, logs = Histogram(domain), np.zeros(domain.shape)
    for _ in range(800):
        query = random_query(domain, generator)
        step = per_step * float(generator.choice([-1, 1]))
        histogram = histogram.tilted(query, step)
        logs += step * values(query)
    expected = np.exp(logs - logs.max())

    assert 1e-11 > np.abs(expected / expected.sum() - histogram.probabilities()).max()


def test_a_stream_that_always_shrinks_the_heavier_half_stays_exact():
    """hypothesis.md 4.2: an incremental normaliser is wrong 2.5e15-fold after 100 of these."""
    generator = public_generator(6)
    domain = Domain.of(x=64)
    histogram, tilts = Histogram(domain), []
    for _ in range(100):
        half = np.zeros(64)
        half[np.argsort(-(histogram.probabilities() + 1e-9 * generator.random(64)))[:32]] = 1.0
        tilts.append((dense(half).bind(domain), -2.0))
        histogram = histogram.tilted(*tilts[-1])

    assert BITS > np.abs(tilted_reference(np.ones(64), tilts) - histogram.probabilities()).max()


@pytest.mark.parametrize("step", [600.0, 800.0, 1e4, 1e6])
def test_steps_beyond_the_range_of_exp_stay_finite_and_can_be_undone(step):
    domain = Domain.of(x=4)
    for query in (where(x=0).bind(domain), dense(np.array([1.0, 0.5, 0, 0])).bind(domain)):
        up = Histogram(domain).tilted(query, step)
        back = up.tilted(query, -step)

        assert BITS > abs(1.0 - up.evaluate(where(x=0).bind(domain)))
        assert BITS > abs(float(values(query).mean()) - back.evaluate(query))


def test_a_faint_prior_cell_survives_a_trip_to_the_bottom():
    """Log-weights are first taken from linear cells: none of them may be subnormal by then."""
    domain = Domain.of(x=2)
    query = where(x=1).bind(domain)  # kept as written: the steps fall on the faint cell itself
    faint = 2 * module.MIN_PRIOR
    histogram = Histogram(domain, [1.0, faint])
    for step in (-499.9, -499.9, 499.9, 499.9, -math.log(faint)):
        histogram = histogram.tilted(query, step)

    assert BITS > abs(0.5 - histogram.evaluate(query))


def test_tens_of_thousands_of_updates_keep_full_support_and_mass_one():
    generator = public_generator(7)
    domain = Domain.of(x=16)
    queries = [dense(row).bind(domain) for row in generator.integers(0, 2, (50, 16)).astype(float)]
    signs = generator.choice([-0.05, 0.05], 30_000)
    histogram, counts = Histogram(domain), np.zeros(50)
    for place, step in enumerate(signs.tolist()):
        histogram = histogram.tilted(queries[place % 50], step)
        counts[place % 50] += step
    logs = sum(count * values(query) for count, query in zip(counts, queries, strict=True))
    expected = np.exp(logs - logs.max())
    found = histogram.probabilities()

    assert BITS > abs(1.0 - found.sum())
    assert found.min() > 0
    assert 1e-11 > np.abs(expected / expected.sum() - found).max()


# -- refusals, samples, reprs ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "prior", [[1, 0, 1], [1, -1, 1], [1, math.nan, 1], [1, math.inf, 1], [1e-95, 1, 1], [1, 1], ["a", 1, 1]]
)
def test_a_prior_without_full_support_is_refused(prior):
    with pytest.raises(InvalidParameterError, match="prior must"):
        Histogram(Domain.of(x=3), prior)


def test_domains_beyond_the_memory_are_refused_before_memory_is_taken():
    domain = Domain.of(a=2**14, b=2**13)

    with pytest.raises(TooLargeError, match="at most 67,108,864 cells"):
        Histogram(domain)
    with pytest.raises(TooLargeError, match="got 134,217,728"):
        SignedHistogram(domain, np.zeros(1))


def test_samples_are_labels_with_the_right_frequencies_and_repeat_with_the_seed():
    domain = Domain.of(colour=["red", "green"], size=3)
    histogram = Histogram(domain).tilted(where(colour="red").bind(domain), math.log(3.0))
    columns = histogram.sample(40_000, seed=8)
    red = sum(label == "red" for label in columns["colour"])

    assert columns == histogram.sample(40_000, seed=8)
    assert columns != histogram.sample(40_000, seed=9)
    assert {0, 1, 2} == set(columns["size"])
    assert abs(red - 30_000) < 6 * math.sqrt(40_000 * 3 / 16)


def test_reprs_show_sizes_only():
    domain = Domain.of(a=2, b=3)

    assert "Histogram(2 x 3 cells, 1 updates)" == repr(Histogram(domain).tilted(where(a=0).bind(domain), 1.0))
    assert "SignedHistogram(2 x 3 cells)" == repr(SignedHistogram(domain, np.zeros(6)))
    assert "VersionSpace(6 databases of 1 records, 6 cells)" == repr(
        VersionSpace(domain, np.eye(6, dtype=np.uint8), 1)
    )


def test_all_are_hypotheses():
    domain = Domain.of(x=2)
    all_of_them = [
        Histogram(domain),
        SignedHistogram(domain, np.zeros(2)),
        VersionSpace(domain, np.eye(2, dtype=np.uint8), 1),
    ]

    assert all(isinstance(hypothesis, Hypothesis) for hypothesis in all_of_them)


# -- SignedHistogram -------------------------------------------------------------------------------


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_signed_histogram_equals_a_naive_dense_one(seed, centre):
    generator = public_generator(200 + seed)
    domain = random_domain(generator)
    expected = generator.normal(0, 1 / domain.size, domain.shape)
    signed = SignedHistogram(domain, expected.copy())
    for _ in range(40):
        query, step = random_query(domain, generator), float(generator.normal(0, 0.01))
        weight = values(query)
        expected = expected + step * (weight - centre * weight.mean())
        signed = signed.shifted(query, step, centre=centre)
        truth = float((weight * expected).sum())

        assert BITS > abs(min(max(truth, 0.0), 1.0) - signed.evaluate(query))
    partition = Partition(domain, (0,), (np.arange(domain.shape[0]),))

    assert BITS > np.abs(expected - signed.cells()).max()
    assert BITS > np.abs(expected.reshape(domain.shape[0], -1).sum(axis=1) - signed.blocks(partition)).max()
    assert np.array_equal(signed.blocks(partition), signed.marginal("a0"))


@pytest.mark.parametrize(("constant", "moved"), [(0.0, 0.0), (0.25, 0.125), (1.0, 0.5)])
def test_a_constant_query_shifts_by_its_own_value(constant, moved):
    domain = Domain.of(x=4)
    query = dense(np.full(4, constant)).bind(domain)
    signed = SignedHistogram(domain, np.zeros(4))

    assert [moved] * 4 == signed.shifted(query, 0.5, centre=False).cells().tolist()
    assert [0.0] * 4 == signed.shifted(query, 0.5, centre=True).cells().tolist()


def test_a_shift_leaves_the_old_one_alone():
    domain = Domain.of(x=4)
    signed = SignedHistogram(domain, np.zeros(4))
    signed.shifted(where(x=1).bind(domain), 0.5, centre=True)

    assert [0.0] * 4 == signed.cells().tolist()


# -- VersionSpace ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "kind"), [(7, np.uint8), (250, np.uint8), (40_000, np.uint16)])
def test_version_space_takes_the_lower_median_on_both_its_paths(size, kind):
    """Counted where the values are few, selected where they are many (fractional weights, large size)."""
    generator = public_generator(11)
    domain = Domain.of(x=5)
    for databases in (1, 2, 9, 100):
        counts = generator.multinomial(size, np.ones(5) / 5, databases).T.astype(kind)
        space = VersionSpace(domain, counts, size)
        for array in (*generator.integers(0, 2, (4, 5)).astype(float), *generator.random((4, 5))):
            query = dense(array).bind(domain)
            exact = sorted((query.weights() @ counts.astype(object)).tolist())
            expected = exact[(databases + 1) // 2 - 1] / (size << query.grid_bits)

            assert expected == space.evaluate(query)


def test_halving_keeps_the_strict_side_and_nothing_else():
    domain = Domain.of(x=2)
    space = VersionSpace(domain, np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]], np.uint8), 4)
    query = where(x=0).bind(domain)
    above, below = space.halved(query, above=True), space.halved(query, above=False)

    assert 0.5 == space.evaluate(query)
    assert (2, 2) == (above.candidates, below.candidates)
    assert (0.75, 0.0) == (above.evaluate(query), below.evaluate(query))
    assert (0, 0) == (above.stalled, below.stalled)


def test_an_update_that_would_leave_nothing_is_skipped_and_counted():
    domain = Domain.of(x=2)
    space = VersionSpace(domain, np.array([[1], [1]], np.uint8), 2)
    query = where(x=0).bind(domain)
    twice = space.halved(query, above=True).halved(query, above=False)

    assert (1, 2) == (twice.candidates, twice.stalled)


def test_version_space_survives_a_pickle():
    domain = Domain.of(x=3)
    space = VersionSpace(domain, np.eye(3, dtype=np.uint8), 1).halved(where(x=1).bind(domain), above=True)
    copy = pickle.loads(pickle.dumps(space))
    partition = Partition(domain, (0,), (np.arange(3),))

    assert (1, 0) == (copy.candidates, copy.stalled)
    assert [0.0, 1.0, 0.0] == copy.blocks(partition).tolist()


@pytest.mark.parametrize("said", [1e308, -1e308, 10**400, 2.0], ids=["large", "low", "no float", "two"])
def test_what_a_hypothesis_says_of_one_question_is_clipped_or_refused_as_of_many(said):
    class Said:
        def evaluate(self, query):
            return said

        def evaluate_many(self, queries):
            return [said for _ in queries]

    query, found = where(x=1).bind(Domain.of(x=2), 4), []
    for many in ([query], [query, query]):
        try:
            found.append(grid_guesses(Said(), many, 1000)[0])
        except InvalidParameterError:
            found.append(None)
    most = 1000 << query.grid_bits
    assert {10**400: None, -1e308: 0}.get(said, most) == found[0] == found[1]
