"""Estimates from first tables: dense least squares in closed form, a family counted, brackets that hold."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.domain import Categorical
from onlineic.known_noise import Estimates, TableDesign
from onlineic.known_noise import estimates as module
from onlineic.queries import Partition, marginal
from onlineic.queries.query import canonical

DOMAIN = ic.Domain.of(a=range(7), b=["x", "y", "z"], c=range(5), d=["no", "yes"])
A, C = np.array([0, 0, 1, 1, 1, 2, 3]), np.array([0, 1, 1, 2, 2])
B, D = np.arange(3), np.arange(2)
TARGETS = [
    Partition(DOMAIN, (0,), (np.arange(7),)),
    Partition(DOMAIN, (1,), (B,)),
    Partition(DOMAIN, (2,), (np.arange(5),)),
    Partition(DOMAIN, (0, 1), (A, B)),
    Partition(DOMAIN, (0, 2, 3), (A, C, D)),
    Partition(DOMAIN, (1, 2), (B, C)),
    Partition(DOMAIN, (1, 3), (B, D)),
]
SPREADS = [3.0, 5.0, 4.0, 2.0, 6.0, 7.0, 2.5]
LEVELS = ic.Domain.of(x=range(30))
TREE = [Partition(LEVELS, (0,), (np.arange(30) * parts // 30,)) for parts in (30, 10, 5)]
N = 1000


def exact(targets, cells):
    return [target.measure(cells.sum(axis=_others(target))) for target in targets]


def _others(target):
    return tuple(axis for axis in range(len(target.domain.shape)) if axis not in target.axes)


def dense(targets, spreads):
    """Return (blocks of all tables as rows over cells, spread of each row)."""
    rows = [target.block(block).weights().ravel() for target in targets for block in range(target.blocks)]
    spread = np.concatenate([np.full(t.blocks, s) for t, s in zip(targets, spreads, strict=True)])
    return np.array(rows, float), spread


def least_squares(rows, spread, weights):
    """Return the coefficients of the best linear unbiased estimate of a query, all cells summing to 1."""
    scaled = rows / spread[:, None]
    basis = np.linalg.svd(np.vstack([rows, np.ones(rows.shape[1])]), full_matrices=False)
    kept = basis[2][basis[1] > 1e-9 * basis[1][0]]
    inner, ones = scaled @ kept.T, kept @ np.ones(rows.shape[1])
    normal = np.block([[inner.T @ inner, ones[:, None]], [ones[None], np.zeros((1, 1))]])
    solved = np.linalg.solve(normal, np.append(kept @ weights, 0.0))[:-1]
    return (inner @ solved) / spread


def family(design):
    """Yield (key, blocks along each cut, the query) of every member, by brute force over blocks."""
    for axes, keys in design.by_axes.items():
        for key in keys:
            cuts = [design.cuts[number] for _, number in key]
            spans = [
                [
                    (low, high)
                    for low in range(cut.size)
                    for high in range(low + 1, cut.size + 1)
                    if high - low < cut.size and (cut.ordered or high - low == 1)
                ]
                for cut in cuts
            ]
            for blocks in itertools.product(*spans):
                conditions = {}
                for axis, cut, (low, high) in zip(axes, cuts, blocks, strict=True):
                    attribute, first, last = design.domain.attributes[axis], cut.starts[low], cut.starts[high]
                    conditions[design.domain.names[axis]] = (
                        attribute.label(first)
                        if isinstance(attribute, Categorical)
                        else ic.between(first, last - 1)
                    )
                yield key, blocks, ic.where(conditions).bind(design.domain)


def opened(targets, spreads, values, *, pure=False, beta=0.05, n=N):
    return Estimates(TableDesign(targets, spreads, pure), values, n, beta)


# -- the estimate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("targets", "spreads"), [(TARGETS, SPREADS), (TREE, [3.0, 4.0, 6.0])])
def test_estimate_and_variance_are_those_of_dense_least_squares_for_the_whole_family(targets, spreads):
    domain, generator = targets[0].domain, np.random.default_rng(1)
    cells = generator.dirichlet(np.ones(domain.size)).reshape(domain.shape)
    values = [
        blocks + generator.normal(size=len(blocks)) * spread / N
        for blocks, spread in zip(exact(targets, cells), spreads, strict=True)
    ]
    design = TableDesign(targets, spreads, pure=False)
    estimates = Estimates(design, values, N, 0.05)
    rows, spread = dense(targets, spreads)
    members = list(family(design))
    for key, _, query in members[:: max(1, len(members) // 150)]:
        weights = query.weights().ravel().astype(float)
        coefficients = least_squares(rows, spread, weights)
        constant = float((weights - coefficients @ rows).mean())
        value = coefficients @ np.concatenate(values) + constant
        nats = design.nats(key, 0.05 * design.shares[0])
        radius = math.sqrt(2 * nats * ((coefficients * spread) ** 2).sum()) / N
        low, high = estimates.bracket(query)

        assert np.allclose(weights - coefficients @ rows, constant, atol=1e-9)  # unbiased
        if len({*design.by_axes[tuple(axis for axis, _ in key)]}) == 1 and len(key) == 1:
            assert (low, high) == pytest.approx((max(0, value - radius), min(1, value + radius)), abs=1e-8)
        assert low >= max(0.0, value - radius) - 1e-8  # parts may say more
        assert high <= min(1.0, value + radius) + 1e-8
        assert _own(estimates, key, query) == pytest.approx((value, radius), abs=1e-8)


def _inside(estimates, over, box):
    """Return (estimate, radius) of the blocks inside of a box, from one key alone."""
    held = [
        estimates._sides_of(axis, codes, len(box) > 1)[number].inner
        for (axis, codes), (_, number) in zip(box, over.key, strict=True)
    ]
    sets = any(type(codes) is bytes for _, codes in box)
    nats = over.set_nats if sets and over.set_nats is not None else over.nats
    return estimates._sum(over, held), estimates._radius(over, held, nats)[0]


def _own(estimates, key, query):
    """Return (estimate, radius) of a query from one key alone, turned for a complement."""
    over = next(one for one in estimates._overs(tuple(axis for axis, _ in key)) if one.key == key)
    codes = {factor.axes[0]: (factor.low, factor.high) for factor in query.factors}
    value, radius = _inside(estimates, over, [(axis, codes[axis]) for axis, _ in key])
    return (1 - value if query.complement else value), radius


@pytest.mark.parametrize(("targets", "spreads"), [(TARGETS, SPREADS), (TREE, [3.0, 3.0, 3.0])])
def test_the_radius_of_laplace_noise_is_at_least_that_of_its_exact_moments(targets, spreads):
    """The best tilt of the exact product of moments, with the true coefficients; and not far above it."""
    design = TableDesign(targets, spreads, pure=True)
    estimates = Estimates(design, exact(targets, _even(targets[0].domain)), N, 0.05)
    rows, spread = dense(targets, spreads)
    members, ratios = list(family(design)), []
    for key, _, query in members[:: max(1, len(members) // 80)]:
        counts = np.abs(least_squares(rows, spread, query.weights().ravel().astype(float))) * spread
        nats = design.nats(key, 0.05 * design.shares[0])
        tilts = np.linspace(0.05, 0.999, 400) / counts.max()
        best = min((nats - np.log1p(-((tilt * counts) ** 2)).sum()) / tilt for tilt in tilts)
        ratios.append(_own(estimates, key, query)[1] * N / best)

    assert min(ratios) >= 1 - 1e-4  # the grid of tilts is one of many
    assert np.median(ratios) < 1.15


def _even(domain):
    return np.full(domain.shape, 1.0 / domain.size)


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_the_moments_of_discrete_laplace_noise_are_at_most_those_of_the_continuous_law(scale):
    u = np.linspace(0.01, 0.99, 60) / scale
    q = math.exp(-1 / scale)
    discrete = (1 - q) ** 2 / ((1 - q * np.exp(u)) * (1 - q * np.exp(-u)))

    assert (discrete <= 1 / (1 - (scale * u) ** 2) * (1 + 1e-12)).all()


# -- the family ---------------------------------------------------------------------------------------------


def test_the_family_has_the_size_that_is_printed_and_its_shares_sum_to_beta():
    design = TableDesign(TARGETS, SPREADS, pure=False)
    members = list(family(design))
    shares = math.fsum(2 * math.exp(-design.nats(key, 0.05)) for key, _, _ in members)

    assert len(members) == design.family.size
    assert f"{len(members):,}" in str(design.family)
    assert set(design.family.sets) == {
        *[(name,) for name in "abcd"], *itertools.combinations("acd", 2), ("a", "b"), ("b", "c"), ("b", "d"),
        ("a", "c", "d"),
    }  # fmt: skip
    assert shares == pytest.approx(0.05, rel=1e-9)


def test_sets_of_codes_that_are_no_neighbours_are_left_out():
    domain = ic.Domain.of(a=range(6), b=["x", "y"])
    apart = Partition(domain, (0, 1), (np.array([0, 1, 0, 1, 2, 2]), np.arange(2)))
    design = TableDesign([apart, Partition(domain, (1,), (np.arange(2),))], [1.0, 1.0], pure=False)

    assert (("b",),) == design.family.sets


def test_products_of_sets_have_the_size_that_is_printed_and_shares_that_sum_to_theirs():
    design = TableDesign(TARGETS, SPREADS, pure=False)
    widths = {key: [design.cuts[number].size for _, number in key] for key in design.sizes}
    count = sum(math.prod(2**width - 1 for width in sizes) for sizes in widths.values() if max(sizes) > 2)
    shares = math.fsum(
        2 * math.exp(math.log(math.prod(2**width - 1 for width in widths[key])) - design.set_nats(key, 0.05))
        for key in design.products
    )

    assert math.log2(count) == pytest.approx(design.family.products, rel=1e-12)
    assert f"2^{math.log2(count):.0f} products of any sets of labels" in str(design.family)
    assert shares == pytest.approx(0.05, rel=1e-9)
    assert math.fsum(design.shares) == pytest.approx(1.0, rel=1e-12)
    assert (0.9, 0.1, 0.0) == pytest.approx(design.shares)


def test_families_that_cannot_be_asked_have_no_share_of_beta():
    two = ic.Domain.of(a=range(2), b=["x", "y"])
    pairs = [Partition(two, (0, 1), (np.arange(2), np.arange(2)))]
    long = ic.Domain.of(x=range(600))

    assert (1.0, 0.0, 0.0) == TableDesign(pairs, [1.0], pure=False).shares
    assert (0.85, 0.1, 0.05) == pytest.approx(TableDesign(pairs, [1.0], pure=True).shares)
    line = Partition(long, (0,), (np.arange(600),))
    assert (1.0, 0.0, 0.0) == TableDesign([line], [1.0], pure=False).shares
    assert (0.95, 0.0, 0.05) == pytest.approx(TableDesign([line], [1.0], pure=True).shares)
    coin = Partition(two, (1,), (np.arange(2),))
    assert (1.0, 0.0, 0.0) == TableDesign([coin], [1.0], pure=True).shares
    one = ic.Domain.of(b=["x", "y"])
    design = TableDesign([Partition(one, (0,), (np.arange(2),))], [1.0], pure=True)
    assert (1.0, 0.0, 0.0) == design.shares
    low, high = Estimates(design, [np.array([0.3, 0.7])], N, 0.05).bracket(ic.where(b="y").bind(one))
    assert 0.65 < low < 0.7 < high < 0.75
    assert 0 == TableDesign(pairs, [1.0], pure=False).family.cells


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(("targets", "spreads"), [(TARGETS, SPREADS), (TREE, [3.0, 4.0, 6.0])])
def test_products_of_sets_of_blocks_have_the_estimate_and_variance_of_dense_least_squares(
    targets, spreads, pure
):
    domain, generator = targets[0].domain, np.random.default_rng(5)
    cells = generator.dirichlet(np.ones(domain.size)).reshape(domain.shape)
    values = [
        blocks + generator.normal(size=len(blocks)) * spread / N
        for blocks, spread in zip(exact(targets, cells), spreads, strict=True)
    ]
    if pure and targets is TREE:  # a table of all cells bounds all sets at once
        targets, spreads, values = targets[1:], spreads[1:], values[1:]
    design = TableDesign(targets, spreads, pure)
    estimates = Estimates(design, values, N, 0.05)
    rows, spread = dense(targets, spreads)
    for key in [*design.products] * 6:
        joint, simple = {}, True
        for axis, number in key:
            cut = design.cuts[number]
            held = np.zeros(cut.size, bool)
            held[generator.choice(cut.size, int(generator.integers(1, cut.size)), replace=False)] = True
            joint[axis,] = held[cut.cut.codes].astype(float)
            simple &= held.sum() == 1 or (cut.ordered and np.ptp(np.flatnonzero(held)) + 1 == held.sum())
        query = canonical(domain, False, joint, 20)
        if simple or query.complement:
            continue
        weights = query.weights().ravel().astype(float)
        coefficients = least_squares(rows, spread, weights)
        constant = float((weights - coefficients @ rows).mean())
        value = coefficients @ np.concatenate(values) + constant
        scaled = np.abs(coefficients * spread)
        nats = design.set_nats(key, 0.05 * design.shares[1])
        radius = math.sqrt(2 * nats * (scaled**2).sum()) / N
        if pure:
            tilts = np.linspace(0.02, 0.999, 400) / scaled.max()
            radius = min((nats - np.log1p(-((tilt * scaled) ** 2)).sum()) / tilt for tilt in tilts) / N
        box = tuple((axis, (joint[axis,] > 0).tobytes()) for axis, _ in key)
        over = next(one for one in estimates._overs(tuple(axis for axis, _ in key)) if one.key == key)
        found, reach = _inside(estimates, over, box)
        low, high = estimates.bracket(query)

        assert np.allclose(weights - coefficients @ rows, constant, atol=1e-9)
        assert found == pytest.approx(value, abs=1e-8)
        assert (1 - 1e-4) * radius <= reach <= (1.4 if pure else 1.0 + 1e-6) * radius
        assert low >= max(0.0, value - reach) - 1e-8
        assert high <= min(1.0, value + reach) + 1e-8
        assert estimates.point(query)[1] * N == pytest.approx(
            math.sqrt((scaled**2).sum() * (2 if pure else 1)), abs=1e-6
        )


# -- brackets -----------------------------------------------------------------------------------------------


def questions(domain, count, seed):
    """Boxes, sets, weights, joint weights and their complements over up to four attributes."""
    generator = np.random.default_rng(seed)
    for number in range(count):
        names = generator.choice(domain.names, int(generator.integers(1, 5)), replace=False)
        conditions = {}
        for name in map(str, names):
            attribute = dict(domain)[name]
            if isinstance(attribute, Categorical):
                labels = [attribute.label(code) for code in range(attribute.size)]
                chosen = generator.choice(labels, int(generator.integers(1, len(labels))), replace=False)
                conditions[name] = ic.one_of(*map(str, chosen))
            elif number % 7 == 0:
                conditions[name] = ic.weights(generator.integers(0, 5, attribute.size) / 4)
            else:
                low, high = sorted(generator.integers(0, attribute.size, 2).tolist())
                conditions[name] = ic.between(low, high)
        query = ic.where(conditions)
        yield (~query if number % 3 == 0 else query).bind(domain)


# cuts of one attribute that are no tree: those that do not fit bound its other attributes alone
CROSSED = [
    Partition(DOMAIN, (0,), (A,)),
    Partition(DOMAIN, (0, 1), (np.array([0, 0, 0, 0, 1, 1, 1]), B)),
    Partition(DOMAIN, (0, 1, 2), (A, B, C)),
    Partition(DOMAIN, (1, 2), (B, C)),
    Partition(DOMAIN, (2, 3), (np.array([0, 0, 1, 1, 1]), D)),
    Partition(DOMAIN, (1, 3), (np.array([0, 1, 0]), D)),
    Partition(DOMAIN, (0, 1, 2), (np.array([0, 0, 0, 0, 1, 1, 1]), B, C)),
]


@pytest.mark.parametrize("targets", [TARGETS, CROSSED], ids=["nested", "crossed"])
@pytest.mark.parametrize("pure", [False, True])
def test_without_noise_every_bracket_holds_the_truth_also_where_the_tables_are_cut_elsewhere(pure, targets):
    """n is so large that radii are nothing: what is left is how parts and surroundings bound a query."""
    generator = np.random.default_rng(2)
    for seed in range(4):
        cells = generator.dirichlet(np.full(DOMAIN.size, 0.05)).reshape(DOMAIN.shape)
        estimates = opened(targets, SPREADS[: len(targets)], exact(targets, cells), pure=pure, n=10**12)
        bounded = 0
        for query in questions(DOMAIN, 150, seed):
            found = estimates.bracket(query)
            if query.constant is None and found is not None:
                truth = float((query.weights() * cells).sum()) / 2**query.grid_bits
                bounded += found[1] - found[0] < 0.5

                assert found[0] - 1e-9 <= truth <= found[1] + 1e-9

        assert bounded > 40


RISING, HILL = np.array([0, 0.1, 0.1, 0.3, 0.5, 0.75, 1.0]), np.array([0.2, 0.5, 1.0, 1.0, 0.3, 0, 0])


@pytest.mark.parametrize("targets", [TARGETS, CROSSED], ids=["nested", "crossed"])
@pytest.mark.parametrize("weights", [RISING, 1.0 - RISING, HILL, 0.2 + 0.8 * HILL])
@pytest.mark.parametrize("others", [{}, {"b": "y"}, {"c": ic.between(1, 3)}, {"c": ic.below(3), "d": "no"}])
def test_weights_that_rise_and_fall_are_a_mixture_of_intervals(targets, weights, others):
    generator, bounded = np.random.default_rng(3), []
    for _ in range(4):
        cells = generator.dirichlet(np.full(DOMAIN.size, 0.3)).reshape(DOMAIN.shape)
        spreads = SPREADS[: len(targets)]
        estimates = opened(targets, spreads, exact(targets, cells), n=10**12)
        query = ic.where(a=ic.weights(weights), **others)
        for asked in (query.bind(DOMAIN), (~query).bind(DOMAIN)):
            truth = float((asked.weights() * cells).sum()) / 2**asked.grid_bits
            found = estimates.bracket(asked)

            assert found[0] - 1e-9 <= truth <= found[1] + 1e-9
            bounded.append(found[1] - found[0])

    assert max(bounded) < (1e-6 if not others and targets is TARGETS else 0.6)  # a is cut at all its codes


def test_weights_with_a_gap_or_without_order_are_mixtures_of_sets():
    estimates = opened(TARGETS, SPREADS, exact(TARGETS, _even(DOMAIN)), n=10**12)
    gap, unordered = np.array([1, 0.25, 0.5, 0, 0, 0, 0.125]), np.array([0.125, 0.25, 1.0])

    for held, expected in (
        ({"a": ic.weights(gap)}, gap.mean()),
        ({"b": ic.weights(unordered)}, unordered.mean()),
        ({"b": ic.weights(unordered), "d": "no"}, unordered.mean() / 2),
    ):
        found = estimates.bracket(ic.where(held).bind(DOMAIN))

        assert (expected, expected) == pytest.approx(found, abs=1e-5)


def test_weights_along_two_attributes_have_only_the_bracket_of_the_other_conditions():
    estimates = opened(TARGETS, SPREADS, exact(TARGETS, _even(DOMAIN)), n=10**12)
    half = ic.weights([0.5, 0.25, 0.75])
    query = ic.where(a=ic.weights(RISING), b=half)

    assert estimates.bracket(query.bind(DOMAIN)) is None
    assert (0.0, 0.5) == pytest.approx(estimates.bracket((query & ic.where(d="no")).bind(DOMAIN)), abs=1e-6)


def test_neighbouring_labels_are_no_interval_but_a_set_and_all_but_the_first_are_the_first_ones_complement():
    """Canonical form writes some sets of labels as intervals of codes, which the conjunctions do not know."""
    domain = ic.Domain.of(b=["v", "w", "x", "y", "z"])
    shares = np.array([0.5, 0.2, 0.15, 0.1, 0.05])
    target = Partition(domain, (0,), (np.arange(5),))
    estimates, widths = opened([target], [1.0], [shares], n=10**9), {}

    for chosen in itertools.chain.from_iterable(itertools.combinations("vwxyz", k) for k in range(1, 5)):
        truth = sum(shares["vwxyz".index(label)] for label in chosen)
        found = estimates.bracket(ic.where(b=ic.one_of(*chosen)).bind(domain))

        assert found == pytest.approx((truth, truth), abs=1e-6)
        widths.setdefault(len(chosen), []).append(found[1] - found[0])

    assert max(widths[4]) == pytest.approx(min(widths[1]))  # one label, or all but one
    assert max(widths[1]) < 0.8 * min(widths[2])


def test_a_query_inside_the_family_is_bracketed_by_its_estimate_alone_or_closer():
    estimates = opened(TARGETS, SPREADS, exact(TARGETS, _even(DOMAIN)))
    whole = estimates.bracket(ic.where(a=ic.between(0, 1), b="x").bind(DOMAIN))
    cut = estimates.bracket(ic.where(a=ic.between(0, 2), b="x").bind(DOMAIN))

    assert whole[0] < 2 / 21 < whole[1]
    assert cut[0] <= 3 / 21 <= cut[1]
    assert whole[1] - whole[0] < cut[1] - cut[0] < 0.3


def test_three_conditions_are_bounded_by_their_pairs_and_ones_with_the_noise_of_each():
    """Most records meet all three: f >= ab + ac - a at its least, and 1 - ones + pairs at its most."""
    domain = ic.Domain.of(a=range(3), b=range(3), c=range(3))
    cells = np.full(domain.shape, 0.1 / 26)
    cells[0, 0, 0] = 0.9
    targets = [Partition(domain, axes, (np.arange(3),) * 2) for axes in ((0, 1), (0, 2), (1, 2))]
    estimates = opened(targets, [2.0] * 3, exact(targets, cells))

    def bracket(*names):
        return estimates.bracket(ic.where(dict.fromkeys(names, 0)).bind(domain))

    ones, pairs = [bracket(name) for name in "abc"], [bracket(*pair) for pair in ("ab", "ac", "bc")]
    low = max(
        pairs[one][0] + pairs[other][0] - ones[shared][1]
        for one, other, shared in ((0, 1, 0), (0, 2, 1), (1, 2, 2))
    )
    high = min(*(pair[1] for pair in pairs), 1 + sum(pair[1] for pair in pairs) - sum(one[0] for one in ones))

    assert 0.8 < low < 0.9 < high
    assert (low, high) == pytest.approx(bracket("a", "b", "c"), abs=1e-12)


def test_nothing_follows_for_dense_queries_and_for_more_than_four_attributes():
    domain = ic.Domain.of({name: range(2) for name in "abcde"})
    tables = [Partition(domain, (axis,), (np.arange(2),)) for axis in range(5)]
    estimates = opened(tables, [1.0] * 5, [np.full(2, 0.5)] * 5)
    every = np.random.default_rng(3).integers(0, 2, domain.shape).astype(float)

    assert estimates.bracket(ic.dense(every).bind(domain)) is None
    assert estimates.bracket(ic.where(dict.fromkeys("abcde", 0)).bind(domain)) is None
    assert estimates.bracket(ic.where(dict.fromkeys("abcd", 0)).bind(domain))[1] < 0.6


def test_tables_that_contradict_each_other_bound_nothing():
    """Then the event of the bounds did not happen, and they would say too much."""
    estimates = opened(TARGETS[1:2], [1.0], [np.array([3.0, -1.0, -1.0])])

    assert estimates.bracket(ic.where(b="y").bind(DOMAIN)) is None
    assert estimates.table_brackets(marginal("b").bind(DOMAIN)) is None


@pytest.mark.parametrize("condition", [None, ic.where(a=ic.between(1, 3)), ic.where(b=ic.one_of("x", "z"))])
def test_a_cross_table_has_the_brackets_of_its_cells(condition):
    generator = np.random.default_rng(4)
    cells = generator.dirichlet(np.full(DOMAIN.size, 0.3)).reshape(DOMAIN.shape)
    estimates = opened(TARGETS, SPREADS, exact(TARGETS, cells))
    for names in (("b",), ("d", "b"), ("c", "d")):
        bound = marginal(*names, where=condition).bind(DOMAIN)
        lows, highs = estimates.table_brackets(bound)
        for cell in np.ndindex(lows.shape):
            labels = {name: dict(DOMAIN)[name].label(code) for name, code in zip(names, cell, strict=True)}
            query = ic.where(labels) if condition is None else ic.where(labels) & condition
            query = query.bind(DOMAIN)
            expected = (0.0, 0.0) if query.constant is not None else estimates.bracket(query)

            assert (lows[cell], highs[cell]) == pytest.approx(expected, abs=1e-12)


def test_a_cross_table_of_many_cells_is_not_bracketed(monkeypatch):
    estimates = opened(TARGETS, SPREADS, exact(TARGETS, _even(DOMAIN)))
    bound = marginal("b", "d").bind(DOMAIN)

    assert estimates.table_brackets(bound) is not None
    monkeypatch.setattr(module, "MOST_TABLE", 5)
    assert estimates.table_brackets(bound) is None


def test_sums_of_many_equal_blocks_round_by_their_length():
    """Behind noise far below a record the rounding of floats is what is left."""
    size, each = 100_000, 170_000_000
    domain = ic.Domain.of(a=range(size))
    levels = [Partition(domain, (0,), (np.arange(size) // width,)) for width in (1, 10, 100, 1_000, 10_000)]
    values = [np.full(level.blocks, 1.0 / level.blocks) for level in levels]
    estimates = Estimates(TableDesign(levels, [0.001] * 5, pure=True), values, size * each, 0.05)
    for last in np.linspace(1, size - 2, 60).astype(int).tolist():
        low, high = estimates.bracket(ic.where(a=ic.between(0, last)).bind(domain))
        assert Fraction(low) <= Fraction(last + 1, size) <= Fraction(high)
