"""Product-form fits against the dense ones, and histograms of any size against their own cells."""

import itertools
import math
import pickle

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic.errors import InvalidParameterError, TooLargeError
from onlineic.hypothesis import Histogram, ProductHistogram, product
from onlineic.hypothesis.classes import class_cells, common_refinement, merged
from onlineic.hypothesis.fitting import CoarseDomain, fit
from onlineic.hypothesis.product import _ClassSums, _CutArea
from onlineic.noise import public_generator
from onlineic.queries import Measurement, Partition, where
from onlineic.queries.partitions import PartitionRule
from onlineic.queries.tables import SummedArea
from onlineic.updates import FittedStart, MaximumEntropy, MultiplicativeWeights

SMALL = settings(max_examples=25)


def domain_of(shape):
    return ic.Domain.of({f"a{axis}": length for axis, length in enumerate(shape)})


def random_partition(rng, domain):
    """Over a few axes, in neighbouring codes or in scattered ones."""
    shape = domain.shape
    axes = tuple(
        sorted(rng.choice(len(shape), rng.integers(1, min(len(shape), 3) + 1), replace=False).tolist())
    )
    classes = []
    for axis in axes:
        count = int(rng.integers(1, shape[axis] + 1))
        labels = np.concatenate([np.arange(count), rng.integers(0, count, shape[axis] - count)])
        classes.append(rng.permutation(labels) if rng.random() < 0.3 else np.sort(labels))
    return Partition(domain, axes, tuple(classes))


def random_problem(seed, most=7, count=8):
    """A domain, factors of a prior, and noisy measurements of a truth: partitions, and queries of blocks."""
    rng = public_generator(seed)
    shape = tuple(rng.integers(2, most, rng.integers(1, 5)).tolist())
    domain = domain_of(shape)
    factors = tuple(rng.dirichlet(np.full(size, 2.0)) + 0.01 for size in shape)
    truth = rng.dirichlet(np.full(domain.size, 0.5)).reshape(shape)
    measured = []
    for _ in range(int(rng.integers(1, count))):
        target = random_partition(rng, domain)
        values = target.measure(truth.sum(axis=tuple({*range(len(shape))} - {*target.axes})))
        if rng.random() < 0.3 and target.blocks > 1:
            block = int(rng.integers(target.blocks))
            target, values = target.block(block), values[[block]]
        measured.append(Measurement(target, values + rng.normal(0, 0.01, len(values)), 0.01))
    return rng, domain, factors, measured


def dense_of(factors):
    cells = np.ones(())
    for factor in factors:
        cells = np.multiply.outer(cells, factor)
    return cells


def random_queries(rng, domain, count=12):
    """Boxes, sets, weights, joint tables and complements."""
    queries = []
    for _ in range(count):
        conditions = {}
        for axis in rng.choice(
            len(domain.shape), rng.integers(1, len(domain.shape) + 1), replace=False
        ).tolist():
            size = domain.shape[axis]
            low, high = sorted(rng.integers(0, size, 2).tolist())
            kind = rng.random()
            scattered = ic.one_of(0, *np.flatnonzero(rng.random(size) < 0.5).tolist())
            conditions[f"a{axis}"] = (
                ic.between(low, high)
                if kind < 0.6
                else scattered
                if kind < 0.8
                else ic.weights(rng.integers(0, 9, size) / 8)
            )
        query = where(conditions)
        queries.append((~query if rng.random() < 0.3 else query).bind(domain))
    queries.append((where(a0=0) | where({f"a{len(domain.shape) - 1}": 1})).bind(domain))
    return queries


@SMALL
@given(seed=st.integers(0, 2**32))
def test_product_and_dense_fits_agree(seed):
    """In cells, masses, loss and evaluations: too few of these for rounding to turn the descent."""
    _, _, factors, measured = random_problem(seed)
    product, dense = fit(factors, measured), fit(dense_of(factors), measured)

    assert isinstance(product.histogram, ProductHistogram)
    assert isinstance(dense.histogram, Histogram)
    assert product.cells == pytest.approx(dense.cells, abs=1e-12)
    assert product.loss == pytest.approx(dense.loss, rel=1e-8, abs=1e-12)
    assert product.evaluations == dense.evaluations
    for one, other in zip(product.masses, dense.masses, strict=True):
        assert one == pytest.approx(other, abs=1e-12)


@SMALL
@given(seed=st.integers(0, 2**32), written=st.sampled_from([(0, 0), (2**16, 0), (0, 2**16), (0, 40)]))
def test_what_a_product_histogram_answers_is_what_its_cells_say(seed, written):
    """Queries alone and together to the same bits, blocks, marginals; with and without tables of codes."""
    rng, domain, factors, measured = random_problem(seed)
    histogram = fit(factors, measured).histogram
    histogram._sums = _ClassSums(*histogram.__getstate__()[1:], *written)
    cells = histogram.probabilities()
    queries = random_queries(rng, domain)
    expected = [float((query.weights() * cells).sum()) / (1 << query.grid_bits) for query in queries]
    alone = [histogram.evaluate(query) for query in queries]

    assert cells.sum() == pytest.approx(1.0, abs=1e-12)
    assert alone == pytest.approx(expected, abs=1e-12)
    assert alone == histogram.evaluate_many(queries).tolist()
    assert cells == pytest.approx(histogram.dense().probabilities(), abs=1e-12)
    for _ in range(4):
        partition = random_partition(rng, domain)
        others = tuple({*range(len(domain.shape))} - {*partition.axes})
        table = cells.sum(axis=others)
        names = [domain.names[axis] for axis in partition.axes]

        assert histogram.blocks(partition) == pytest.approx(partition.measure(table), abs=1e-12)
        assert histogram.marginal(*names) == pytest.approx(table, abs=1e-12)


def test_samples_follow_the_cells_and_the_seed():
    """Chi-square at 1e-9 over 24 cells, and of codes in scattered classes."""
    domain = domain_of((4, 3, 2))
    rng = np.random.default_rng(1)
    labels = (np.array([0, 1, 0, 1]), np.array([0, 1, 1]))
    joint = Partition(domain, (0, 1), labels)
    measured = [
        Measurement(joint, np.array([0.1, 0.4, 0.3, 0.2]), 1e-3),
        Measurement(Partition(domain, (0,), (np.arange(4),)), np.array([0.15, 0.25, 0.35, 0.25]), 1e-3),
    ]
    histogram = fit(tuple(rng.dirichlet(np.ones(size)) for size in domain.shape), measured).histogram
    drawn = histogram.sample(20_000, 7)
    counts = np.zeros(domain.shape)
    np.add.at(counts, tuple(np.array(drawn[name]) for name in domain.names), 1)
    expected = 20_000 * histogram.probabilities()

    assert ((counts - expected) ** 2 / expected).sum() < 90.0  # 23 degrees of freedom
    assert drawn == histogram.sample(20_000, 7)
    assert drawn != histogram.sample(20_000, 8)


def block_codes_of(target):
    """The block of every cell, one after the other, of a partition or of a 0/1 query."""
    if not isinstance(target, Partition):
        return target.weights().ravel()
    labels = np.zeros((1,) * len(target.domain.shape), np.int64)
    for axis, classes in zip(target.axes, target.classes, strict=True):
        shape = [1] * labels.ndim
        shape[axis] = -1
        labels = labels * (classes.max() + 1) + classes.reshape(shape)
    return np.broadcast_to(labels, target.domain.shape).ravel()


def test_many_large_tables_are_fitted_by_running_sums():
    """The same as block by block: the leaves sum the corners of boxes, unless nearly every cell is one."""
    domain = domain_of((30, 24, 20))
    rng = np.random.default_rng(3)
    truth = rng.dirichlet(np.full(domain.size, 0.5)).reshape(domain.shape)
    rule = PartitionRule(parts=6, fine=1, most_spread=100.0)
    measured = []
    for axes in itertools.chain.from_iterable([[(0, 1), (0, 2), (1, 2)], [(0, 1, 2)] * 8]):
        ends = [sorted(rng.integers(0, domain.shape[axis], 2).tolist()) for axis in axes]
        query = where({f"a{a}": ic.between(*pair) for a, pair in zip(axes, ends, strict=True)}).bind(domain)
        target = rule.partition(query)
        others = tuple({0, 1, 2} - {*target.axes})
        values = target.measure(truth.sum(axis=others))
        measured.append(Measurement(target, values + rng.normal(0, 1e-3, len(values)), 1e-3))
    scattered = Partition(domain, (0, 1, 2), (np.arange(30) % 3, np.arange(24) // 9, np.arange(20) % 2))
    every = Partition(domain, (0, 1, 2), (np.arange(30) % 3, np.arange(24) % 2, np.arange(20) % 2))
    measured += [Measurement(target, target.measure(truth), 1e-3) for target in (scattered, every)]
    block = measured[4].target.block(5)
    measured += [Measurement(block, np.array([0.5]), 1e-3)]
    uniform = tuple(np.full(size, 1.0 / size) for size in domain.shape)
    start = fit(uniform, measured[:3], evaluations=5)
    product = fit(uniform, measured, start.potentials, evaluations=20)
    dense = fit(np.full(domain.shape, 1.0 / domain.size), measured, start.potentials, evaluations=20)
    leaf = next(one for one in CoarseDomain.of(uniform, measured).leaves if len(one.shape) == 3)
    codes = {len(code) for _, starts, code in leaf.parts if starts is not None}

    potentials = [rng.normal(0, 1, np.size(part)) for part in product.potentials]
    logs = sum(
        part[block_codes_of(one.target)].reshape(domain.shape)
        for one, part in zip(measured, potentials, strict=True)
    )
    cells = np.exp(logs - logs.max())
    masses, _ = CoarseDomain.of(uniform, measured).evaluate(np.concatenate(potentials))
    expected = [
        np.bincount(block_codes_of(one.target), cells.ravel() / cells.sum(), len(part))
        for one, part in zip(measured, potentials, strict=True)
    ]

    assert masses == pytest.approx(np.concatenate(expected), abs=1e-13)
    assert max(codes) < math.prod(leaf.shape)
    assert any(starts is None for _, starts, _ in leaf.parts)
    assert product.cells == pytest.approx(dense.cells, abs=1e-12)
    for one, masses in zip(measured, product.masses, strict=True):
        if isinstance(one.target, Partition):
            assert product.histogram.blocks(one.target) == pytest.approx(masses, abs=1e-13)
        else:
            assert product.histogram.evaluate(one.target) == pytest.approx(masses[1], abs=1e-13)


def coarse_problem(shape=(40, 30, 12), hits=12):
    """First tables of all pairs, and joint ranges."""
    domain, rng = domain_of(shape), np.random.default_rng(5)
    parts = [rng.dirichlet(np.full(size, 0.5)) for size in shape]
    rule = PartitionRule(parts=4, fine=4)

    def measured(target):
        table = np.ones(())
        for axis, labels in zip(target.axes, target.classes, strict=True):
            table = np.multiply.outer(table, np.bincount(labels, parts[axis]))
        values = table.ravel() + rng.normal(0, 1e-3, target.blocks)
        return Measurement(target, values, 1e-3)

    found = [measured(rule.table(domain, axes)) for axes in itertools.combinations(range(len(shape)), 2)]
    while len(found) < 3 + hits:
        ends = [sorted(rng.integers(0, size, 2).tolist()) for size in shape]
        query = where({f"a{axis}": ic.between(*pair) for axis, pair in enumerate(ends)}).bind(domain)
        if query.constant is None and (target := rule.partition(query)) is not None:
            found.append(measured(target))
    return domain, found


def test_late_cuts_are_merged_where_the_classes_would_be_too_many():
    domain, measured = coarse_problem()
    rule = MaximumEntropy(most_cells=1_000)
    hypothesis = rule.init(domain)
    for count in range(3, len(measured) + 1):
        hypothesis = rule.update(hypothesis, tuple(measured[:count]), 0.1)
        assert hypothesis.histogram._density.size <= 1_000
    blocks = hypothesis.blocks(measured[0].target)

    assert class_cells([one.target for one in measured]) > 1_000
    assert [one.target.blocks for one in measured] == [len(part) for part in hypothesis.potentials]
    assert blocks == pytest.approx(measured[0].values, abs=6e-3)
    # a block that was merged has the sum of its neighbours: the potentials agree
    assert any(len(np.unique(part)) < len(part) for part in hypothesis.potentials[3:])


@pytest.mark.parametrize("seed", range(40))
def test_merged_tables_are_the_finest_that_the_classes_hold(seed):
    """By hand: two blocks of an axis are one where a kept class has codes of both, and so on."""
    rng = np.random.default_rng(seed)
    domain, cuts, kept = domain_of((9, 7)), [], {}
    for axis, size in enumerate(domain.shape):
        finest, coarser = rng.integers(0, size, size), rng.integers(0, 4, size)
        labels = common_refinement([coarser if rng.random() < 0.5 else finest])[0]
        cuts.append(labels)
        finer = rng.random() < 0.4
        kept[axis] = common_refinement([labels, finest] if finer else [rng.integers(0, 5, size)])[0]
    target = Partition(domain, (0, 1), tuple(cuts))
    coarse, places = merged(target, kept)

    for axis, (labels, found) in enumerate(zip(cuts, coarse.classes, strict=True)):
        groups = [{int(label)} for label in np.unique(labels)]
        for one in np.unique(kept[axis]):
            touched = set(labels[kept[axis] == one].tolist())
            joined = [group for group in groups if group & touched]
            groups = [group for group in groups if not group & touched] + [set().union(*joined)]
        same = [{*labels[found == block].tolist()} for block in np.unique(found)]
        assert sorted(map(sorted, groups)) == sorted(map(sorted, same))
    rows, columns = (cut.max() + 1 for cut in cuts)
    for code in np.ndindex(domain.shape):
        own = places.reshape(rows, columns)[tuple(cut[at] for cut, at in zip(cuts, code, strict=True))]
        row, column = (part[at] for part, at in zip(coarse.classes, code, strict=True))
        assert own == row * (coarse.classes[1].max() + 1) + column


def test_no_cut_is_merged_where_there_is_room_and_first_tables_always_have_it():
    domain, measured = coarse_problem(hits=4)
    needed = class_cells([one.target for one in measured])
    rule, narrow = MaximumEntropy(), MaximumEntropy(most_cells=needed)
    learned = [one.update(one.init(domain), tuple(measured), 0.1).probabilities() for one in (rule, narrow)]
    first = MaximumEntropy(most_cells=1).update(rule.init(domain), tuple(measured), 0.1)

    assert learned[0].tobytes() == learned[1].tobytes() == first.probabilities().tobytes()
    assert needed == first.histogram._density.size == first.most_cells


def test_merged_numbers_say_nothing_and_do_no_harm():
    """A single query whose cuts have no room: it is left out, and its potentials stay flat."""
    domain, measured = coarse_problem(hits=0)
    number = Measurement(where(a0=ic.between(3, 7), a1=ic.between(2, 9)).bind(domain), np.array([0.9]), 1e-3)
    rule = MaximumEntropy(most_cells=1)
    before = rule.update(rule.init(domain), tuple(measured), 0.1)
    after = rule.update(before, (*measured, number), 0.1)

    assert [0.0, 0.0] == after.potentials[-1].tolist()
    assert abs(after.evaluate(number.target) - before.evaluate(number.target)) < 0.01


@pytest.mark.parametrize("sizes", [(10,) * 18, (50_000,) * 4, (3,) * 100])
def test_domains_of_any_size_are_fitted_answered_and_sampled(sizes):
    """Where few attributes are tied together nothing is as large as the domain."""
    domain = domain_of(sizes)
    halves = [np.arange(size) * 2 // size for size in sizes[:3]]
    table = Partition(domain, (0, 2), (halves[0], halves[2]))
    one = Partition(domain, (1,), (halves[1],))
    rule = MaximumEntropy()
    past = (
        Measurement(one, np.array([0.2, 0.8]), 1e-4),
        Measurement(table, np.array([0.4, 0.1, 0.2, 0.3]), 1e-4),
    )
    fitted = rule.update(rule.init(domain), past, 0.01)
    above = {f"a{axis}": ic.between(int(np.argmax(halves[axis])), sizes[axis] - 1) for axis in (0, 1, 2)}
    query, many = where(above).bind(domain), where(a0=0, a1=0).bind(domain)
    sample = fitted.sample(2_000, 3)

    assert domain.size > 1e17
    assert fitted.evaluate(query) == pytest.approx(0.8 * 0.3, abs=1e-3)
    assert fitted.blocks(table) == pytest.approx(past[1].values, abs=1e-3)
    assert fitted.evaluate_many([query, many]).tolist() == [fitted.evaluate(query), fitted.evaluate(many)]
    assert np.mean(np.array(sample["a1"]) >= np.argmax(halves[1])) == pytest.approx(0.8, abs=0.05)
    assert list(domain.names) == list(sample)
    with pytest.raises(TooLargeError, match="at most"):
        fitted.probabilities()


def test_classes_that_would_not_fit_into_memory_are_refused():
    domain = domain_of((100,) * 5)
    cut = np.arange(100)
    tables = tuple(
        Measurement(Partition(domain, (a, b), (cut, cut)), np.full(10_000, 1e-4), 1e-3)
        for a, b in itertools.combinations(range(5), 2)
    )
    rule = MaximumEntropy()

    assert 10**10 == class_cells([one.target for one in tables])
    with pytest.raises(TooLargeError, match=r"^tables must have at most 67,108,864 cells together"):
        rule.update(rule.init(domain), tables, 0.1)
    with pytest.raises(TooLargeError, match=r"^tables must have at most"):
        ProductHistogram(domain_of((2**25, 2**25, 2**25)))


def test_a_product_prior_is_kept_as_one_and_another_is_written():
    domain = domain_of((4, 3))
    parts = (np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.0, 2.0]))
    rule, measured = (
        MaximumEntropy(),
        Measurement(where(a0=0, a1=0).bind(domain_of((4, 3))), np.array([0.5]), 1e-4),
    )
    product = ProductHistogram(domain, parts)
    one = rule.update(rule.init(domain, product), (measured,), 0.1)
    other = rule.update(rule.init(domain, Histogram(domain, dense_of(parts))), (measured,), 0.1)
    again = rule.init(domain, one)

    assert isinstance(one.histogram, ProductHistogram)
    assert isinstance(other.histogram, Histogram)
    assert one.probabilities() == pytest.approx(other.probabilities(), abs=1e-12)
    assert isinstance(again.histogram, Histogram)
    assert again.probabilities() == pytest.approx(one.probabilities(), abs=1e-12)


def test_rules_that_move_cells_start_from_the_cells_of_the_fit():
    domain = domain_of((4, 3))
    table = Measurement(Partition(domain, (0,), (np.arange(4),)), np.array([0.1, 0.2, 0.3, 0.4]), 1e-4)
    rule = FittedStart(MultiplicativeWeights(), tables=1)
    started = rule.update(rule.init(domain), (table,), 0.1)

    assert isinstance(started, Histogram)
    assert started.marginal("a0") == pytest.approx(table.values, abs=1e-3)


def test_copies_give_the_same_bits_and_the_repr_tells_the_sizes():
    rng, domain, factors, measured = random_problem(11)
    histogram = fit(factors, measured).histogram
    copy = pickle.loads(pickle.dumps(histogram))
    queries = random_queries(rng, domain)

    assert histogram.evaluate_many(queries).tobytes() == copy.evaluate_many(queries).tobytes()
    assert "ProductHistogram(4 x 3 cells, 1 classes)" == repr(ProductHistogram(domain_of((4, 3))))
    assert math.prod(histogram._density.shape) == histogram._density.size


def test_a_box_inside_of_classes_counts_their_shares():
    """Ends within classes, on three axes, above the size of tables of codes: by hand from a product."""
    domain = domain_of((60, 50, 40))
    rng = np.random.default_rng(2)
    parts = [rng.dirichlet(np.ones(size)) for size in domain.shape]
    tables = [
        Measurement(Partition(domain, (a,), (np.arange(n),)), parts[a], 1e-5)
        for a, n in enumerate((60, 50, 40))
    ]
    tie = Partition(domain, (0, 1, 2), (np.arange(60) // 20, np.arange(50) // 25, np.arange(40) // 10))
    values = np.ones(())
    for labels, part in zip(tie.classes, parts, strict=True):
        values = np.multiply.outer(values, np.bincount(labels, part))
    rule = MaximumEntropy(evaluations=3_000)
    fitted = rule.update(rule.init(domain), (*tables, Measurement(tie, values.ravel(), 1e-5)), 0.1)
    fitted.histogram._sums = _ClassSums(*fitted.histogram.__getstate__()[1:], together=0)
    query = where(a0=ic.between(7, 33), a1=ic.between(11, 29), a2=ic.between(13, 39)).bind(domain)
    expected = parts[0][7:34].sum() * parts[1][11:30].sum() * parts[2][13:].sum()

    assert (3, 2, 4) == fitted.histogram._density.shape
    assert fitted.evaluate(query) == pytest.approx(expected, abs=1e-4)
    assert fitted.evaluate(query) == pytest.approx(
        float((query.weights() * fitted.probabilities()).sum()), abs=1e-13
    )


def test_marginal_tables_of_classes_are_summed_from_shared_ones_with_the_same_bits_in_any_order(monkeypatch):
    rng = np.random.default_rng(4)
    shape = (3, 4, 2, 5, 3)
    state = (
        (0, 1, 2, 4, 5),
        rng.random(shape),
        (*map(np.arange, shape[:3]), np.zeros(6, np.int64), *map(np.arange, shape[3:])),
        (*map(np.ones, (*shape[:3], 6, *shape[3:])),),
    )
    sets = [own for count in range(6) for own in itertools.combinations(range(6), count)]
    monkeypatch.setattr(product, "SHARED_CELLS", 30)
    found = []
    for order in (sets, sets[::-1], [sets[place] for place in rng.permutation(len(sets))]):
        sums = _ClassSums(*state)
        made = {own: sums.coarse(own).copy() for own in order}
        found.append([made[own] for own in sets])
    for own, *several in zip(sets, *found, strict=True):
        left = tuple(place for place, axis in enumerate(state[0]) if axis not in own)
        np.testing.assert_allclose(state[1].sum(axis=left).ravel(), several[0].ravel(), rtol=1e-13)
        np.testing.assert_array_equal(several[0], several[1])
        np.testing.assert_array_equal(several[0], several[2])


def test_tables_over_codes_are_written_where_all_of_as_many_attributes_are_small_together():
    """Whichever are asked: the same bits behind any stream, and their memory has a bound."""
    domain = domain_of((300, 20, 30))
    start = ProductHistogram(domain).__getstate__()[1:]
    pairs = 300 * 20 + 300 * 30 + 20 * 30
    up_to_two = 1 + 300 + 20 + 30 + pairs
    for together, kind in ((up_to_two, SummedArea), (up_to_two - 1, _CutArea)):
        sums = _ClassSums(*start, prefix_cells=0, together=together)
        sums.box((1, 2), (3, 4), (9, 9))
        assert type(sums._areas[(1, 2)]) is kind
        sums.box((0, 1, 2), (3, 4, 5), (9, 9, 9))
        assert type(sums._areas[(0, 1, 2)]) is _CutArea
    assert sums.box((1, 2), (3, 4), (9, 9)) == pytest.approx(6 / 20 * 5 / 30)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([np.ones(4)], "^factors must be 2, one an attribute"),
        ([np.ones(4), np.ones(4)], "^prior must have 3 entries"),
        ([np.array([1.0, 0.0, 1.0, 1.0]), np.ones(3)], "^prior must be positive"),
    ],
)
def test_malformed_factors_are_refused(factors, message):
    with pytest.raises(InvalidParameterError, match=message):
        ProductHistogram(domain_of((4, 3)), factors)


def noisy_pairs(seed, sizes, concentration):
    """Noisy one-way and two-way tables of records of a random law, of noise ten times apart."""
    rng, domain = np.random.default_rng(seed), domain_of(sizes)
    law = rng.dirichlet(np.full(math.prod(sizes), concentration)).reshape(sizes)
    measured = []
    for axes in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]:
        target = Partition(domain, axes, tuple(np.arange(sizes[axis]) for axis in axes))
        scale = 1e-4 if len(axes) == 2 else 1e-3
        truth = target.measure(law.sum(axis=tuple({0, 1, 2} - {*axes})))
        measured.append(Measurement(target, truth + rng.normal(0, scale, truth.shape), scale))
    return tuple(np.ones(size) for size in sizes), measured


@pytest.mark.parametrize("seed", range(3))
def test_long_fits_in_product_form_and_cell_by_cell_do_not_drift_apart(seed):
    """A step beyond what the curvature allows would multiply rounding until it is as large as the answers."""
    factors, measured = noisy_pairs(seed, (12, 10, 8), 0.05)
    product = fit(factors, measured, evaluations=400, tolerance=0.0)
    dense = fit(dense_of(factors), measured, evaluations=400, tolerance=0.0)

    assert product.evaluations > 200
    assert np.abs(product.cells - dense.cells).max() < 1e-12


def entropy_maximiser(prior, measured, weight):
    """The distribution of least loss and divergence, by Newton's method on the potentials: plain numpy."""
    blocks, observed, variances = [], [], []
    for one in measured:
        labels = block_codes_of(one.target)
        blocks.append(labels[None] == np.arange(one.target.blocks)[:, None])
        observed.append(one.values)
        variances.append(np.full(one.target.blocks, one.scale**2))
    held, observed, variances = (
        np.concatenate(blocks).astype(float),
        *map(np.concatenate, (observed, variances)),
    )
    base, potentials = prior.ravel() / prior.sum(), np.zeros(len(observed))

    def state(at):
        cells = base * np.exp(at @ held - (at @ held).max())
        total = cells.sum()
        value = math.log(total) + (at @ held).max() + weight / 2 * at @ (variances * at) - at @ observed
        return cells / total, value

    for _ in range(200):
        cells, value = state(potentials)
        masses = held @ cells
        slope = masses + weight * variances * potentials - observed
        bend = (held * cells) @ held.T - np.outer(masses, masses) + np.diag(weight * variances)
        change, length = np.linalg.solve(bend, slope), 1.0
        while (
            state(potentials - length * change)[1] > value - 1e-4 * length * slope @ change and length > 1e-12
        ):
            length /= 2
        potentials = potentials - length * change
        if np.abs(change).max() < 1e-13:
            break
    return state(potentials)[0].reshape(prior.shape)


@pytest.mark.parametrize("seed", range(3))
def test_fits_of_both_forms_converge_to_the_one_entropy_maximiser(seed):
    """To 1e-9 in every answer, from a method that shares no line with either."""
    factors, measured = noisy_pairs(seed, (5, 4, 3), 100.0)
    measured = [attrs.evolve(one, scale=50 * one.scale) for one in measured]
    expected = entropy_maximiser(dense_of(factors), measured, 100.0)
    for prior in (factors, dense_of(factors)):
        fitted = fit(prior, measured, evaluations=20_000, tolerance=0.0, kl_weight=100.0)

        assert np.abs(fitted.cells - expected).sum() / 2 < 1e-9  # what any query can differ by
