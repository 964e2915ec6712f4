"""A number means the same in whatever type it comes: a narrow numpy number must not wrap around or round.

Every numeric argument of every public constructor, function and method is given as each of numpy's integers
and floats. The result must be that of the Python number of the same value, or a refusal of onlineic's own.
"""

import importlib
import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial
from numbers import Rational

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import accounting as ac
from onlineic import audit, baselines, bounds, evaluate, hypothesis, mechanisms, offline, testing, updates
from onlineic import sparse as sp
from onlineic.bounds.certificates import least_accurate, least_cutoff, least_feasible
from onlineic.data import PrivateData
from onlineic.domain import Domain, optional
from onlineic.domain import attributes as at
from onlineic.errors import OnlineICError
from onlineic.ledger import MemoryLedger
from onlineic.noise import SimulatedNoise, SystemNoise, public_generator, scale_at_least
from onlineic.queries import Answer, Measurement, Partition, Queries, marginal, partitions
from onlineic.queries import expressions as ex
from onlineic.testing import ScriptedNoise

F = Fraction
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
FLOATS = (np.float16, np.float32, np.float64, np.longdouble)


class Sizes(tuple):
    """Integers to try: of each type the largest that it holds; the first one while others are varied."""


def sizes(*values):
    return Sizes(values)


# --- what is compared ------------------------------------------------------------------------------------


def seen(value):
    """Return all of a result that a caller can see, with the type of every number."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tolist())
    if isinstance(value, Fraction):
        return (type(value.numerator).__name__, str(value), type(value.denominator).__name__)
    if isinstance(value, (str, bytes, bool, type(None), int, float, np.generic)):
        return repr(value)
    if isinstance(value, Mapping):
        return [(seen(key), seen(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [seen(item) for item in value]
    if isinstance(value, Domain):
        return value.to_json()
    if isinstance(value, (hypothesis.Histogram, hypothesis.ProductHistogram)):
        return seen(value.probabilities())
    if isinstance(value, hypothesis.SignedHistogram):
        return seen(value.cells())
    if isinstance(value, hypothesis.VersionSpace):
        return [seen(value.size), seen(value.stalled), seen(value.databases)]
    if isinstance(value, PrivateData):
        shape = value.domain.shape
        return seen(value.exact_counts(Partition(value.domain, range(len(shape)), [*map(np.arange, shape)])))
    if isinstance(value, np.random.Generator):
        return seen(value.integers(0, 2**40, 4))
    if isinstance(value, Answer):
        return seen(value.to_dict())
    if attrs.has(type(value)) and not isinstance(value, (SimulatedNoise, ScriptedNoise)):
        hidden = ("_prices", "_price", "_axes", "_optima", "_tables", "times", "opening", "_ground")
        fields = [field.name for field in attrs.fields(type(value)) if field.name not in hidden]
        return [type(value).__name__, *((name, seen(getattr(value, name))) for name in fields)]
    return repr(value)


def outcome(call, arguments):
    """Return what a call gives, or that it is refused."""
    try:
        return seen(call(**arguments))
    except OnlineICError as error:
        return f"refused: {type(error).__name__}"


# --- variants of one argument ----------------------------------------------------------------------------


def holds(kind, value):
    """Whether a type holds this number, a float up to rounding."""
    if kind in INTEGERS:
        return np.iinfo(kind).min <= value <= np.iinfo(kind).max
    limits = (math.inf, 0.0) if kind is np.longdouble else (float(np.finfo(kind).max), np.finfo(kind).tiny)
    return abs(value) <= limits[0] and (value == 0 or abs(value) >= float(limits[1]))


def variants(value):
    """Return (type, Python value, numpy value) of all numpy types that can stand for one argument."""
    if isinstance(value, Sizes):
        for kind in INTEGERS:
            fitting = [size for size in value if holds(kind, size)]
            if fitting:
                yield kind.__name__, max(fitting), kind(max(fitting))
        for kind in (kind for kind in FLOATS if holds(kind, value[0])):  # refused, as the Python float is
            yield kind.__name__, float(kind(value[0])), kind(value[0])
    elif isinstance(value, bool) or value is None or isinstance(value, str):
        return
    elif isinstance(value, int):
        yield from variants(Sizes([value]))
    elif isinstance(value, float):
        if math.isinf(value):
            return
        for kind in FLOATS:
            if holds(kind, value):
                yield kind.__name__, float(kind(value)), kind(value)
        if value.is_integer():
            yield from ((k.__name__, int(value), k(value)) for k in INTEGERS if holds(k, value))
    elif isinstance(value, Fraction):
        for kind in INTEGERS:
            if holds(kind, value.numerator) and holds(kind, value.denominator):
                narrow = Fraction(kind(value.numerator), kind(value.denominator))
                yield f"Fraction of {kind.__name__}", value, narrow
        if value.denominator == 1:
            yield from variants(int(value))
    elif isinstance(value, (list, tuple)) and value and not isinstance(value[0], (list, tuple, str)):
        kinds = FLOATS if any(isinstance(item, float) for item in value) else INTEGERS
        for kind in kinds:
            if all(holds(kind, item) for item in value):
                plain = [kind(item).item() if kind is not np.longdouble else item for item in value]
                yield f"array of {kind.__name__}", type(value)(plain), np.array(value, kind)
                yield (
                    f"{type(value).__name__} of {kind.__name__}",
                    type(value)(plain),
                    type(value)(kind(item) for item in value),
                )
    elif isinstance(value, list) and value and isinstance(value[0], list):
        kinds = FLOATS if any(isinstance(item, float) for row in value for item in row) else INTEGERS
        for kind in kinds:
            array = np.array(value)
            if all(holds(kind, item) for item in array.ravel().tolist()):
                plain = array.astype(kind).astype(float if kind in FLOATS else int).tolist()
                yield f"array of {kind.__name__}", plain, array.astype(kind)


def first_difference(one, other):
    """Return the first parts that differ of two results."""
    if type(one) is type(other) and isinstance(one, (list, tuple)) and len(one) == len(other):
        return next(first_difference(*pair) for pair in zip(one, other, strict=True) if pair[0] != pair[1])
    return one, other


@attrs.frozen
class Example:
    """A call and its arguments; those that are numbers, or lists of them, are varied one after the other."""

    call: Callable[..., object]
    arguments: dict
    slow: bool = False  # a few types must do

    def base(self):
        return {
            name: value[0] if isinstance(value, Sizes) else value for name, value in self.arguments.items()
        }


def differences(example, accepted):
    """Return the arguments and types of which a result is neither that of the Python number nor a refusal."""
    base, found = example.base(), []
    known = {(name, repr(seen(value))): accepted for name, value in base.items()}
    for name, value in example.arguments.items():
        for kind, plain, narrow in variants(value):
            if example.slow and kind.split()[-1] not in ("int16", "uint64", "float16"):
                continue
            key = (name, repr(seen(plain)))
            if key not in known:
                try:
                    known[key] = outcome(example.call, {**base, name: plain})
                except (TypeError, AttributeError, ValueError):  # not a type that it takes, nor says so
                    known[key] = "unfit"
            if known[key] == "unfit":
                continue
            try:
                result = outcome(example.call, {**base, name: narrow})
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
            if result != known[key] and not str(result).startswith("refused"):
                here, there = first_difference(result, known[key])
                found.append(f"{name}={narrow!r:.60} ({kind}) gives {here!s:.150} instead of {there!s:.150}")
    return found


# --- examples ---------------------------------------------------------------------------------------------

DOMAIN = Domain.of(a=4, b=range(3), c=["x", "y"])
WEIGHTED = np.array([[0.1, 0.7, 0.0, 1.0], [0.25, 0.5, 1.0, 0.0]])
COUNTS = [[[700, 20], [300, 40], [100, 60]], *[[[80, 9], [30, 17], [200, 5]]] * 3]
DATA = PrivateData(np.array(COUNTS), DOMAIN)
AGES = Domain.of(age=range(40))
OLD = PrivateData(np.array([(7 * age) % 40 + 1 for age in range(40)]), AGES)
BUDGET, APPROXIMATE = ic.Budget(1.0), ic.Budget(1.0, 1e-6)
QUERIES = [ic.where(a=code) for code in range(4)] + [ic.where(b=1), ic.where(a=ic.weights([0.5, 0.75, 0, 1]))]
BOUND = [query.bind(DOMAIN) for query in QUERIES]
TARGET = partitions.one_way(DOMAIN, 0)
FLAT = hypothesis.Histogram(DOMAIN)
MEASURED = (Measurement(BOUND[0], np.array([0.6]), 0.01),)


def noise():
    return SimulatedNoise(7)


def session(made):
    """Return the plan, answers and statistics of a session that stands open."""
    answers = [*made.answer_many(QUERIES), made.answer(ic.where(b=2, c="x"))]
    return made.plan, answers, made.statistics()


def opened(**options):
    return session(ic.OnlineIC(DATA, noise=noise(), **options))


def wished():
    """Return a session that can be asked for wishes."""
    return ic.OnlineIC(DATA, APPROXIMATE, noise=noise())


@cache
def answered():
    """Return a session that was asked a few questions."""
    made = ic.OnlineIC(DATA, ic.Budget(2.0), update=ic.MultiplicativeWeights(), noise=noise())
    made.answer_many(QUERIES)
    return made


def used(mechanism):
    """Return settings, prices, radii and simulated answers of a sparse mechanism."""
    source, state, steps = noise(), mechanism.init(), []
    for gap in (-700, -40, 0, 5, 130, 50_000):
        state, hit = mechanism.step(state, gap, 1, source)
        steps.append((hit, state.hits))
        if hit is not None:
            steps.append(mechanism.measure(hit, BOUND[0], 3, 3 + gap, source))
    gaps = np.array([0, -2, 40_000, 3])
    state, index, hit = mechanism.step_many(state, gaps, np.ones(4, np.int64), source)
    prices = [mechanism.price(BOUND[0]), mechanism.account(), mechanism.start_charge()]
    radii = [mechanism.easy_radius(0.05, 10), mechanism.hard_radius(BOUND[0], 0.05, 3)]
    return mechanism, steps, index, hit, prices, radii, mechanism.margins(100, 0.05, 3)


def using(make):
    return lambda **arguments: used(make(**arguments))


GUMBEL = sp.GumbelSparse.calibrated(APPROXIMATE, n=3000, hard_answers=5, max_queries=100)
FINE = sp.GumbelSparse.calibrated(APPROXIMATE, n=3000, hard_answers=5, max_queries=100, grid_bits=12)
EXPONENTIAL = sp.ExponentialSparse.calibrated(BUDGET, n=3000, hard_answers=5, max_queries=100, fresh=True)
LAPLACE = sp.LaplaceSparse.calibrated(BUDGET, n=3000, hard_answers=5, max_queries=100)
UNCONDITIONAL = sp.UnconditionalNumbers.calibrated(APPROXIMATE, n=3000, answers=5, grid_bits=8)
BOOK = ic.MultiplicativeWeights("book")
ABOVE = sp.AboveThreshold(1.0, threshold=100)
SEVERAL = sp.Sparse(1.0, threshold=100, cutoff=3)
RULE = partitions.PartitionRule()


PROGRAMS = offline.LinearPrograms(
    matrix=[[1]], right_hand_sides=[[1], [2], [3]], lower=[0], upper=[39], n=OLD.n
)
VALUES = sp.ValueSparse.calibrated(BUDGET, cutoff=3, max_values=100, mechanism="laplace")
AGED = [offline.distinct_count(AGES, "age"), offline.column_mean(OLD, "age")]
CDF = offline.private_cdf(OLD, "age", 1.0, noise=noise())
LARGE = PrivateData(np.full(48, 10**7), Domain.of(a=4, b=range(3), c=["x", "y"], d=2))


def rule_domain(rule):
    return Domain.of(a=3) if isinstance(rule, ic.Median) else DOMAIN


def measured(rule):
    return (Measurement(ic.where(a=0).bind(rule_domain(rule)), np.array([0.6]), 0.01),)


def tight(alpha):
    return bounds.mw_tight_bound(48, alpha)


def margins_at(n):
    """Margins of `LaplaceSparse`, calibrated for so many hard answers."""

    def margins(cutoff):
        wish = {"hard_answers": cutoff, "max_queries": 1000, "threshold": 0.5}
        return sp.LaplaceSparse.calibrated(BUDGET, n=n, **wish).margins(1000, 0.05, cutoff)

    return margins


def ranks(rows):
    return bounds.multiset_radius(rows, 48, 100)


LAWS = {"00": 0.5, "01": 0.3, "1": 0.2}, {"00": 0.4, "01": 0.3, "1": 0.3}
LAW = audit.Law("discrete_laplace", F(2))
SVT = audit.ThresholdRule(3, LAW, audit.Law("discrete_laplace", F(4)))
SOLVER = {
    "n": sizes(100_000_000, 100, 20_000),
    "max_queries": sizes(1000, 100, 20_000, 2_000_000_000),
    "epsilon": 2.0,
    "beta": 0.05,
}
OFFLINE = {"n": sizes(10**9, 100, 20_000), "queries": sizes(1000, 100, 20_000, 2_000_000_000), "epsilon": 2.0}
NET = {"size": sizes(48, 100, 20_000), "epsilon": 2.0, "beta": 0.05}
WIDE = sizes(100, 20_000, 2_000_000_000)
BY_NAME = {  # what numbers of a name are, where an example does not say
    "epsilon": 1.0,
    "beta": 0.05,
    "alpha": 0.1,
    "delta": 0.001,
    "n": sizes(3000, 100, 20_000, 2_000_000_000),
    "size": WIDE,
    "max_queries": WIDE,
    "grid_bits": sizes(20),
    "cutoff": WIDE,
    "threshold": 0.25,
    "queries": WIDE,
    "seed": WIDE,
    "values": [-100, 120, 127],
    "order": F(100, 33),
    "low": sizes(-100),
    "high": sizes(127),
    "sensitivity": WIDE,
    "scale": F(100, 3),
    "count": WIDE,
    "rows": WIDE,
    "hard_answers": sizes(5, 100),
    "code": sizes(1),
    "rows_per_person": sizes(3, 100),
    "q": 0.25,
    "sigma": F(100),
    "within": 0.25,
    "counts": [100, 120, 127, 90],
    "value": sizes(127, 255, 32_767, -128),
    "scores": [-100, 120, 122, 60],
    "candidates": WIDE,
    "radius": 0.25,
    "p2": 0.7,
    "number_scale": F(100, 3),
    "reserved": F(1, 100),
    "restarts": sizes(3),
    "misfit": 0.3,
    "step": 100.0,
    "p": 0.6,
    "delta_prime": 0.001,
    "spent_ticks": WIDE,
    "points": WIDE,
    "best": sizes(100),
    "false_hits": 0.5,
    "ratio": F(7, 2),
    "bounds": [10, 20, 39],
    "totals": [120],
    "tests": WIDE,
}


def example(call, names="", *, slow=False, **own):
    """Return an example with the arguments of `BY_NAME` that are named, and those that are its own."""
    return Example(call, {name: BY_NAME[name] for name in names.split()} | own, slow)


def in_step(mechanism):
    def step(gap, sensitivity):
        source, state, hits = noise(), mechanism.init(), []
        for _ in range(8):
            state, hit = mechanism.step(state, gap, sensitivity, source)
            hits.append(hit)
            if state.hits:
                break
        return hits

    return {
        "step": example(step, gap=sizes(0, -128, 127, -32768, 255, 40_000), sensitivity=sizes(1)),
        "step_many": example(
            lambda gaps, sensitivities: mechanism.step_many(
                mechanism.init(), np.asarray(gaps), np.asarray(sensitivities), noise()
            ),
            gaps=[0, 1, -128, 127],
            sensitivities=[1, 1, 1, 1],
        ),
        "step_table": example(
            lambda largest_gap: mechanism.step_table(mechanism.init(), largest_gap, noise()),
            largest_gap=sizes(0, 127, 255, 30_000, 40_000),
        ),
        "measure": example(
            lambda guess, counts, excess: mechanism.measure(
                sp.Hit(1, excess), BOUND[0], guess, counts, noise()
            ),
            guess=sizes(3, 127, 2000),
            counts=sizes(30, 127, 2000),
            excess=sizes(3, 127),
        ),
        "easy_radius": example(mechanism.easy_radius, "beta tests"),
        "hard_radius": example(
            lambda beta, answers, tests: (
                mechanism.hard_radius(BOUND[0], beta, answers, tests),
                mechanism.hard_radius(TARGET, beta, answers, tests),
            ),
            "beta tests",
            answers=sizes(3, 100, 20_000),
        ),
        "sum_radius": example(
            lambda weights, beta: mechanism.sum_radius(TARGET, np.asarray(weights), beta),
            "beta",
            weights=[0.5, 0.1, 1.0, 0.0],
        ),
        "margins": example(mechanism.margins, "max_queries beta", hard_answers=sizes(3, 100, 20_000)),
    }


def drawn(make):
    def draw(size, scale, sigma, count):
        source = make()
        values = [
            source.words(size), source.geometric(scale, size), source.discrete_laplace(scale, size),
            source.discrete_gaussian(sigma, size),
        ]  # fmt: skip
        source.unread(count, source.calls - 1)
        return values, source.discrete_gaussian(sigma, 3)

    return draw


def given_back(make):
    """Of one draw two are given back, which come again: whether they do."""

    def call(since):
        source = make()
        first = source.words(3)
        source.unread(2, since)
        return bool(source.words(1)[0] == first[1])

    return call


DRAW = example(
    drawn(noise),
    "scale",
    slow=True,
    size=sizes(100, 20_000),
    sigma=sizes(100, 20_000, 60_000_000),
    count=sizes(1),
)
COARSE = example(drawn(noise), slow=True, size=sizes(3), scale=F(30_001), sigma=sizes(100), count=sizes(0))


def shapes(size, scale, sigma, count):
    return [np.shape(values) for values in drawn(SystemNoise)(size, scale, sigma, count)[0]]


def scripted(size, scale, sigma, count):
    source = ScriptedNoise(list(range(40)))
    source.words(size), source.geometric(scale, size), source.discrete_laplace(scale, size)
    values = source.discrete_gaussian(sigma, size)
    source.unread(count, source.calls - 1)
    return values, source.discrete_gaussian(sigma, 3), source.scales


def offline_release(function, *given, **options):
    """Call with data, simulated noise, and the varied arguments."""
    return lambda **arguments: function(*given, noise=noise(), **options, **arguments)


def entered(spend, rows_per_person):
    """What a table says that something was spent on."""
    data = PrivateData(np.array(COUNTS), DOMAIN)
    spend(data, APPROXIMATE, rows_per_person=rows_per_person)
    return data.budgets, data.rows_per_person


EXAMPLES = {
    # domain, attributes, expressions
    "Domain.of": example(
        lambda size, labels: Domain.of(a=size, b=labels), size=sizes(100, 20_000), labels=[3, 5, 7]
    ),
    "optional": example(optional, kind=sizes(100, 20_000)),
    "Binned": example(
        lambda edges: (lambda d: (d.attributes, d.to_json(), d.digest(), d.encode({"a": [0.2, 1.0, 2.4]})))(
            Domain.of(a=at.Binned(edges))
        ),
        edges=(0.1, 1.5, 3.0),
    ),
    "Binned.label": example(lambda code: at.binned([0, 1, 2]).label(code), "code"),
    "Binned.bin_label": example(lambda code: at.binned([0, 1, 2]).bin_label(code), "code"),
    "FineBins": example(
        lambda steps: at.FineBins(at.number(0, 4, bins=2), steps).read(np.array([0.5, 3.0])).tolist(),
        steps=sizes(64),
    ),
    "number": example(
        lambda low, high, bins: (lambda d: (d.attributes, d.to_json(), d.encode({"a": [0.2, 2.4]})))(
            Domain.of(a=at.number(low, high, bins=bins))
        ),
        low=sizes(0),
        high=sizes(100),
        bins=sizes(5),
    ),
    "Unit": example(lambda units: ic.Unit("id", units=units), units=sizes(16, 64)),
    "Unit, at_most": example(
        lambda at_most: ic.Unit("id", weigh="rows", at_most=at_most), at_most=sizes(3, 100)
    ),
    "PrivateData, n_at_most": example(
        lambda n_at_most: repr(
            PrivateData(np.array(COUNTS), DOMAIN, neighbours="add-remove", n_at_most=n_at_most)
        ),
        n_at_most=sizes(20_000),
    ),
    "PrivateData.check_promised": example(
        lambda rows: PrivateData(np.array(COUNTS), DOMAIN).check_promised(rows), rows=sizes(3)
    ),
    "Binned.interval": example(
        lambda low, high: at.binned([0, 1, 100], integer=True).interval("a", low, high, True),
        low=sizes(1),
        high=sizes(99),
    ),
    "binned": example(at.binned, edges=[0.1, 1.5, 3.0]),
    "Categorical": example(at.Categorical, labels=(3, 5, 120)),
    "categorical": example(lambda labels: at.categorical(labels, other=True), labels=[3, 5, 120]),
    "integers": example(at.integers, first=sizes(-100), last=sizes(100, 20_000)),
    "Dates.label": example(at.Dates("1000", "9000", "year").label, code=sizes(100, 2000)),
    "TableReport.curator_report": example(
        lambda values, lines: PrivateData.check({"a": [7] * 9 + [8]}, DOMAIN.project("a")).curator_report(
            values, lines
        ),
        values=sizes(1),
        lines=sizes(2),
    ),
    "Categorical.label": example(at.Categorical((3, 5, 120)).label, "code"),
    "Categorical.code": example(lambda label: at.Categorical((3, 5, 120)).code("a", label), label=sizes(120)),
    "IntegerRange": example(
        lambda start, stop: at.IntegerRange(start, stop).read(np.array([0, 50])),
        start=sizes(-100),
        stop=sizes(100, 20_000, 2_000_000_000),
    ),
    "IntegerRange.label": example(at.IntegerRange(100, 300).label, code=sizes(100, 120)),
    "IntegerRange.code": example(
        lambda label: at.IntegerRange(-100, 300).code("a", label), label=sizes(100, 120)
    ),
    "IntegerRange.interval": example(
        lambda low, high: at.IntegerRange(-100, 128).interval("a", low, high, True), "low high"
    ),
    "Condition.codes": example(
        lambda low, high: ex.between(low, high).codes("a", at.IntegerRange(-100, 128)), "low high"
    ),
    "Expression.bind": example(lambda grid_bits: QUERIES[-1].bind(DOMAIN, grid_bits), grid_bits=sizes(9)),
    "Query.bind": example(lambda grid_bits: BOUND[-1].bind(DOMAIN, grid_bits), "grid_bits"),
    "Queries.where": example(
        lambda grid_bits: Queries.where(DOMAIN, {"a": WEIGHTED}, grid_bits=grid_bits).bind(DOMAIN, grid_bits),
        grid_bits=sizes(9),
    ),
    "Queries.bind": example(
        lambda grid_bits: Queries.where(DOMAIN, {"a": WEIGHTED}).bind(DOMAIN, grid_bits), "grid_bits"
    ),
    "at_least": example(ic.at_least, low=sizes(100, 20_000)),
    "below": example(ic.below, high=sizes(100, 20_000)),
    "between": example(ic.between, "low", high=1.5),
    "span": example(ic.span, "low", high=1.5),
    "one_of": example(lambda first, second: ic.one_of(first, second), first=sizes(100), second=1.5),
    "weights": example(
        lambda values: ic.where(a=ic.weights(values)).bind(DOMAIN), values=[0.1, 0.7, 0.0, 1.0]
    ),
    "dense": example(lambda values: ic.dense(values).bind(DOMAIN), values=[0.1] * 23 + [0.75]),
    "where": example(lambda a: ic.where(a=a).bind(DOMAIN), a=sizes(3)),
    "Partition.block": example(TARGET.block, "grid_bits", index=sizes(3)),
    "Partition": example(
        lambda axes, classes: Partition(DOMAIN, axes, (np.asarray(classes),)), axes=(0,), classes=[0, 1, 0, 1]
    ),
    "Partition.measure": example(lambda table: TARGET.measure(np.asarray(table)), table=[0.1, 0.2, 0.3, 0.4]),
    "Measurement": example(
        lambda values, scale: (
            ic.MaximumEntropy()
            .update(ic.MaximumEntropy().init(DOMAIN), (Measurement(TARGET, np.asarray(values), scale),), 0.1)
            .probabilities()
        ),
        values=[0.1, 0.2, 0.3, 0.4],
        scale=0.01,
    ),
    # data, noise
    "PrivateData": example(lambda counts: PrivateData(counts, Domain.of(a=4)), "counts"),
    "PrivateData.from_counts": example(
        lambda column, counts: PrivateData.from_counts({"a": column}, counts, Domain.of(a=range(-100, 101))),
        "counts",
        column=[-100, -100, 27, 100],
    ),
    "PrivateData.from_records": example(
        lambda column, edge: PrivateData.from_records(
            {"a": column, "b": edge}, Domain.of(a=range(-100, 128), b=ic.binned([0.0, 0.5, 1.0]))
        ),
        column=[-100, -100, 27, 127],
        edge=[0.1, 0.5, 0.499, 0.0],
    ),
    "Domain.encode": example(
        lambda a, b, c: Domain.of(
            a=[3, 5, 7], b=range(-100, 128), c=ic.binned([0, 100], integer=True)
        ).encode({"a": a, "b": b, "c": c}),
        a=[3, 5, 7],
        b=[-100, 0, 127],
        c=[0, 50, 99],
    ),
    **{f"SimulatedNoise.{name}": DRAW for name in ("words", "geometric", "discrete_laplace")},
    **{f"SimulatedNoise.{name}": COARSE for name in ("discrete_gaussian", "unread")},
    **{
        f"{kind}.{name}": example(call, **DRAW.arguments | {"size": sizes(4)})
        for kind, call in (("SystemNoise", shapes), ("ScriptedNoise", scripted))
        for name in ("words", "geometric", "discrete_laplace", "discrete_gaussian", "unread")
    },
    **{
        f"{kind}.unread, since": example(given_back(make), since=sizes(0))
        for kind, make in (
            ("SimulatedNoise", noise),
            ("SystemNoise", SystemNoise),
            ("ScriptedNoise", lambda: ScriptedNoise([1, 2, 3, 4])),
        )
    },
    "SimulatedNoise": example(lambda seed: SimulatedNoise(seed).discrete_laplace(F(1000), 5), "seed"),
    "ScriptedNoise": example(
        lambda draws: ScriptedNoise(draws).discrete_laplace(F(1000), 4), draws=[1, -100, 127, 0]
    ),
    "public_generator": example(public_generator, "seed"),
    "scale_at_least": example(scale_at_least, scale=F(30_001, 32_749)),
    # accounting
    "Budget": example(
        lambda epsilon, delta: (lambda b: (b, b.epsilon_exact, b.delta_exact))(ic.Budget(epsilon, delta)),
        "epsilon delta",
    ),
    "Budget, order": example(lambda order: ic.Budget(1.0, 0.001, order=order).order, order=F(300, 7)),
    "TableCharge": example(lambda apart: ac.TableCharge(ac.Charge(F(1), "x"), apart), apart=F(3, 1000)),
    "share_of": example(ac.share_of, "delta", ticks=F(2**36), order=F(30)),
    "per_row": example(lambda rows_per_person: ac.per_row(APPROXIMATE, rows_per_person), "rows_per_person"),
    "per_person": example(
        lambda rows_per_person: ac.per_person(APPROXIMATE, rows_per_person), "rows_per_person"
    ),
    "PrivateData.spend": example(
        lambda rows_per_person: entered(PrivateData.spend, rows_per_person), "rows_per_person"
    ),
    "PrivateData.enter": example(
        lambda rows_per_person: entered(
            lambda data, budget, **more: data.enter(MemoryLedger(), budget, **more), rows_per_person
        ),
        "rows_per_person",
    ),
    "TableBudget": example(
        lambda order, apart, rows_per_person: (
            lambda total: (total.order, total.left, total.apart_left, total.share(1))
        )(ic.TableBudget(ic.Budget(8.0, 0.001), order=order, apart=apart, rows_per_person=rows_per_person)),
        order=F(30),
        apart=F(1, 8),
        rows_per_person=sizes(2, 3),
    ),
    "TableBudget.share": example(lambda part: ic.TableBudget(APPROXIMATE).share(part), part=0.5),
    "Charge": example(
        lambda amount, order: ac.Charge(amount, "x", "ticks", order), amount=F(100, 3), order=F(7, 2)
    ),
    "Filter": example(
        lambda capacity, spent, order: ac.Filter(capacity, "ticks", order, spent=spent).charge(
            ac.Charge(F(1), "y", "ticks", F(7, 2))
        ),
        capacity=F(120),
        spent=F(100, 3),
        order=F(7, 2),
    ),
    "advanced_composition": example(ac.advanced_composition, "delta_prime count", epsilon=0.01),
    "advanced_share": example(ac.advanced_share, "epsilon delta_prime count"),
    "exact_delta": example(ac.exact_delta, "epsilon", share=0.1, count=sizes(100, 120, 300)),
    "exact_share": example(ac.exact_share, "epsilon delta", count=sizes(100, 120)),
    "gaussian_charge": example(
        ac.gaussian_charge, "sigma", order=F(100, 3), squared_sensitivity=sizes(100, 40_000)
    ),
    "laplace_charge": example(ac.laplace_charge, order=F(100, 3), scale=F(7, 2), moved=sizes(6, 100)),
    "gumbel_charge": example(
        ac.gumbel_charge,
        "order sigma",
        sensitivity=sizes(1, 100),
        scale=F(3000),
        squared_sensitivity=sizes(100, 40_000, 2_000_000_000),
    ),
    "gaussian_delta": example(ac.gaussian_delta, "epsilon", mu=1.0),
    "gaussian_mu": example(ac.gaussian_mu, "epsilon delta"),
    "loss_bound": example(ac.loss_bound, "order spent_ticks delta"),
    "renyi_capacity": example(ac.renyi_capacity, "order epsilon delta"),
    "renyi_epsilon": example(ac.renyi_epsilon, "order spent_ticks delta"),
    "zcdp_delta": example(ac.zcdp_delta, rho=0.1, epsilon=2.0),
    "zcdp_rho": example(ac.zcdp_rho, "delta", epsilon=2.0),
    "zcdp_order": example(ac.zcdp_order, "delta", epsilon=2.0),
    # bounds
    "certificate": example(
        lambda cutoff: bounds.certificate(tight, margins_at(10**8), cutoff), cutoff=sizes(100, 20_000)
    ),
    "least_error": example(
        lambda most_cutoff: bounds.least_error(tight, margins_at(10**6), most_cutoff), most_cutoff=WIDE
    ),
    "least_accurate": example(
        lambda n, epsilon: least_accurate(lambda updates: 1e-3 * updates, tight, n, epsilon),
        "epsilon",
        n=WIDE,
    ),
    "least_cutoff": example(lambda alpha, scale: least_cutoff(tight, alpha, scale), alpha=0.125, scale=0.5),
    "least_feasible": example(
        lambda low, high: least_feasible(lambda x: x * x >= 2, low, high), low=0.5, high=3.0
    ),
    "least_update_alpha": example(lambda cutoff: bounds.least_update_alpha(tight, cutoff), "cutoff"),
    "mwem_error": example(
        bounds.mwem_error, "size queries epsilon", n=sizes(10**6, 100, 20_000), rounds=sizes(10, 100)
    ),
    "offline_ic_accuracy": example(
        partial(bounds.offline_ic_accuracy, tight), "delta beta", alpha=0.7, **OFFLINE
    ),
    "offline_ic_alpha": example(partial(bounds.offline_ic_alpha, tight), "delta beta", **OFFLINE),
    "offline_ic_composition": example(bounds.offline_ic_composition, "delta", updates=1000.0),
    "offline_ic_error": example(bounds.offline_ic_error, "delta beta", updates=100.0, **OFFLINE),
    "offline_ic_n": example(partial(bounds.offline_ic_n, tight), "alpha queries epsilon delta beta"),
    "above_threshold_alpha": example(bounds.above_threshold_alpha, "queries epsilon beta"),
    "laplace_bound": example(bounds.laplace_bound, "epsilon beta count", sensitivity=100.0),
    "numeric_sparse_alpha": example(
        bounds.numeric_sparse_alpha, "epsilon delta beta", cutoff=100.0, queries=120.0, n=WIDE
    ),
    "numeric_sparse_branch": example(bounds.numeric_sparse_branch, "delta", cutoff=100.0),
    "numeric_sparse_scales": example(bounds.numeric_sparse_scales, "cutoff epsilon delta"),
    "records_for": example(bounds.records_for, number=100.5),
    "sparse_alpha": example(bounds.sparse_alpha, "cutoff queries epsilon delta beta"),
    "sparse_margin": example(bounds.sparse_margin, "cutoff queries beta", threshold_scale=100.0),
    "best_net": example(partial(bounds.best_net, ranks), slow=True, n=sizes(10**6, 100, 20_000), **NET),
    "least_net_n": example(partial(bounds.least_net_n, ranks), "alpha", slow=True, **NET),
    "least_small_database_error": example(
        bounds.least_small_database_error, "queries", n=sizes(10**6, 100, 20_000), **NET
    ),
    "multiset_radius": example(bounds.multiset_radius, "size queries", rows=sizes(50, 100)),
    "multiset_rows": example(bounds.multiset_rows, "alpha size queries"),
    "net_error": example(
        bounds.net_error, radius=0.05, rows=sizes(50, 100, 20_000), n=sizes(10**6, 100, 20_000), **NET
    ),
    "small_database_alpha": example(
        bounds.small_database_alpha, "queries", n=sizes(10**6, 100, 20_000), **NET
    ),
    "small_database_error": example(
        bounds.small_database_error, "alpha queries", n=sizes(10**6, 100, 20_000), **NET
    ),
    "small_database_n": example(bounds.small_database_n, "alpha queries", **NET),
    "small_database_size": example(bounds.small_database_size, "alpha queries"),
    "threshold_radius": example(bounds.threshold_radius, "rows"),
    "threshold_rows": example(bounds.threshold_rows, alpha=0.01),
    "log_multisets": example(bounds.log_multisets, "size rows"),
    "median_book_bound": example(bounds.median_book_bound, "size alpha max_queries"),
    "median_dimension_bound": example(bounds.median_dimension_bound, "size alpha"),
    "median_sampling_bound": example(bounds.median_sampling_bound, "size alpha max_queries", n=WIDE),
    "mw_book_bound": example(bounds.mw_book_bound, "size alpha"),
    "mw_tight_bound": example(bounds.mw_tight_bound, "size alpha", divergence=3.0, width=0.7),
    "perceptron_book_bound": example(bounds.perceptron_book_bound, "size alpha p2"),
    "perceptron_centred_bound": example(bounds.perceptron_centred_bound, "size alpha p2"),
    "least_alpha": example(partial(bounds.least_alpha, tight), "delta", **SOLVER),
    "online_ic_accuracy": example(partial(bounds.online_ic_accuracy, tight), "delta", alpha=0.5, **SOLVER),
    "online_ic_accuracy, cutoff": example(
        lambda cutoff: bounds.online_ic_accuracy(
            tight, n=10**8, max_queries=1000, epsilon=2.0, delta=0.001, alpha=None, cutoff=cutoff
        ),
        cutoff=sizes(20, 100),
    ),
    "least_n": example(partial(bounds.least_n, tight), "alpha max_queries epsilon delta beta"),
    "least_epsilon": example(
        partial(bounds.least_epsilon, tight),
        "alpha max_queries delta beta",
        n=sizes(10**7, 100),
    ),
    "most_queries": example(
        partial(bounds.most_queries, tight),
        "epsilon delta beta",
        alpha=0.2,
        n=sizes(10**5, 100, 20_000),
    ),
    # grids of real numbers
    "Grid": example(
        lambda **given: (lambda g: (g, g.step, g.rounding))(ic.Grid(**given)), "points", low=-1.5, high=100.0
    ),
    "Grid.codes": example(ic.Grid(-1, 127, points=2**40).codes, column=[-1, 100, 120, 127]),
    "Grid.value": example(ic.Grid(-1, 1000, points=2**40).value, code=WIDE),
    "Grid.restored": example(ic.Grid(-1, 1000, points=2**40).restored, value=100.25, error_bound=100.0),
    "rescaled": example(lambda values: ic.rescaled(values), values=[-100, 100, 120, 127]),
    # mechanisms
    "ExponentialMechanism": example(
        lambda **given: (lambda m: (m, m.zcdp, m.radius(10, 0.05)))(mechanisms.ExponentialMechanism(**given)),
        "epsilon sensitivity",
    ),
    "ExponentialMechanism.select": example(
        lambda scores: mechanisms.ExponentialMechanism(1.0).select(np.asarray(scores), noise()), "scores"
    ),
    "ExponentialMechanism.probabilities": example(
        lambda scores: mechanisms.ExponentialMechanism(1.0).probabilities(np.asarray(scores)), "scores"
    ),
    "ExponentialMechanism.radius": example(
        mechanisms.ExponentialMechanism(1.0).radius, "candidates beta best"
    ),
    "GaussianMechanism": example(
        mechanisms.GaussianMechanism,
        "epsilon delta",
        sensitivity=sizes(100, 1000),
        moved=sizes(2, 100, 20_000),
    ),
    "GaussianMechanism.release": example(
        lambda values: mechanisms.GaussianMechanism(1.0, 0.001, 100).release(values, noise()), "values"
    ),
    "GaussianMechanism.radius": example(mechanisms.GaussianMechanism(1.0, 0.001, 100).radius, "beta count"),
    "LaplaceMechanism": example(mechanisms.LaplaceMechanism, "epsilon sensitivity"),
    "LaplaceMechanism.release": example(
        lambda values: mechanisms.LaplaceMechanism(1.0, 100).release(values, noise()), "values"
    ),
    "LaplaceMechanism.tail": example(
        mechanisms.LaplaceMechanism(1.0, 100).tail, distance=sizes(127, 255, 32_767, 65_535, 2**31 - 1)
    ),
    "LaplaceMechanism.radius": example(mechanisms.LaplaceMechanism(1.0, 100).radius, "beta count"),
    "NoisyMax": example(mechanisms.NoisyMax, "epsilon sensitivity"),
    "NoisyMax.select": example(
        lambda scores: mechanisms.NoisyMax(1.0).select(np.asarray(scores), noise()), "scores"
    ),
    "NoisyMax.radius": example(mechanisms.NoisyMax(1.0).radius, "candidates beta"),
    "QuantileMechanism": example(
        lambda **given: (lambda m: (m, m.radius(0.05)))(mechanisms.QuantileMechanism(**given)),
        "epsilon points q",
    ),
    "QuantileMechanism.select": example(
        lambda values: mechanisms.QuantileMechanism(1.0, 1000).select(np.asarray(values), noise()),
        values=[0, 120, 127, 60],
    ),
    "QuantileMechanism.radius": example(mechanisms.QuantileMechanism(1.0, 1000).radius, "beta"),
    "quantile_scores": example(mechanisms.quantile_scores, "q", counts=[100, 120, 127, 60]),
    "discrete_gaussian_delta": example(
        mechanisms.discrete_gaussian_delta, "epsilon", sigma=sizes(100, 20_000), shift=sizes(100)
    ),
    "exponential_bound": example(
        mechanisms.exponential_bound, "epsilon candidates beta best", sensitivity=100.0
    ),
    # sparse
    "AboveThreshold": example(
        lambda **given: (
            lambda m: (m, m.first(np.arange(0, 300, 20), noise()), m.step(m.init(), 120, noise()))
        )(sp.AboveThreshold(**given)),
        epsilon=0.5,
        threshold=sizes(100, 127, 255, 32_767, 65_535, 2**31 - 1),
    ),
    "AboveThreshold.step": example(lambda value: ABOVE.step(ABOVE.init(), value, noise()), "value"),
    "AboveThreshold.first": example(
        lambda values: ABOVE.first(np.asarray(values), noise()), values=[-128, 0, 3, 127, 127, 50]
    ),
    "AboveThreshold.radius": example(ABOVE.radius, "queries beta"),
    "ValueSparse": example(
        lambda cutoff, shift: (
            lambda m: (m.cutoff, m.select([2**12, 100, 2**20], noise()), m.radii(9, 0.05))
        )(sp.ValueSparse(VALUES.mechanism, cutoff, shift)),
        cutoff=sizes(1, 2),
        shift=sizes(100, 127, 255, -128),
    ),
    "ValueSparse.calibrated": example(
        partial(sp.ValueSparse.calibrated, BUDGET),
        cutoff=sizes(1, 100),
        max_values=sizes(9, 100, 20_000),
    ),
    "ValueSparse.score": example(
        VALUES.score, value=sizes(100, 127, 20_000, 2**40), threshold=sizes(5, 127, -128), sensitivity=0.25
    ),
    "ValueSparse.step": example(
        lambda score: VALUES.step(VALUES.init(), score, noise()), score=sizes(127, 255, 32_767, -128)
    ),
    "ValueSparse.select": example(
        lambda scores: VALUES.select(scores, noise()), scores=[-128, 0, 3, 127, 127, 50]
    ),
    "ValueSparse.radii": example(VALUES.radii, "beta", values=sizes(9, 100, 20_000)),
    "Sparse": example(
        lambda **given: (lambda m: (m, m.select(np.arange(0, 300, 20), noise()), m.radius(100, 0.05)))(
            sp.Sparse(**given)
        ),
        "delta",
        epsilon=0.5,
        threshold=sizes(100, 127, 255, 32_767, 65_535),
        cutoff=sizes(100, 20_000),
    ),
    "Sparse.step": example(lambda value: SEVERAL.step(SEVERAL.init(), value, noise()), "value"),
    "Sparse.select": example(
        lambda values: SEVERAL.select(np.asarray(values), noise()), values=[-128, 0, 3, 127, 127, 50]
    ),
    "Sparse.radius": example(SEVERAL.radius, "queries beta"),
    "Hit": example(
        lambda side, excess: EXPONENTIAL.measure(sp.Hit(side, excess), BOUND[0], 5, 5, noise()),
        side=sizes(-1),
        excess=sizes(100, 127, 20_000),
    ),
    "SparseState": example(
        lambda hits, threshold_noise: EXPONENTIAL.step(
            sp.SparseState(hits, threshold_noise), 100, 1, noise()
        ),
        hits=sizes(1, 127),
        threshold_noise=sizes(30, 127, 20_000),
    ),
    "ExponentialSparse": example(
        using(sp.ExponentialSparse),
        "n epsilon number_scale",
        threshold=sizes(100, 127, 255, 32_767, 65_535, 2**31 - 1),
        threshold_scale=F(100, 3),
        query_scale=F(120, 7),
        grid_bits=sizes(3),
    ),
    "ExponentialSparse.calibrated": example(
        using(partial(sp.ExponentialSparse.calibrated, BUDGET, fresh=True)),
        "hard_answers max_queries grid_bits beta false_hits reserved restarts",
        n=sizes(3000, 100, 20_000),
        alpha=0.25,
        answer_share=F(1, 3),
    ),
    "ExponentialSparse.calibrated, threshold": example(
        using(partial(sp.ExponentialSparse.calibrated, BUDGET, hard_answers=5, max_queries=100)),
        "threshold grid_bits",
        n=sizes(3000, 100, 20_000),
    ),
    "GumbelSparse": example(
        using(sp.GumbelSparse),
        "n epsilon delta ratio",
        order=F(100, 9),
        scale=F(3000, 3),
        threshold=sizes(100, 127, 255, 20_000),
        grid_bits=sizes(3, 5),
    ),
    "GumbelSparse.calibrated": example(
        using(partial(sp.GumbelSparse.calibrated, APPROXIMATE)),
        "n hard_answers max_queries grid_bits beta false_hits ratio reserved",
        alpha=0.25,
    ),
    "GumbelSparse.sigma": example(GUMBEL.sigma, "grid_bits"),
    "GumbelSparse.calibrated, threshold": example(
        using(partial(sp.GumbelSparse.calibrated, APPROXIMATE, hard_answers=5, max_queries=100)),
        "threshold grid_bits",
        n=sizes(3000, 100, 20_000),
    ),
    "LaplaceSparse": example(
        using(sp.LaplaceSparse),
        "n epsilon delta",
        threshold=sizes(100, 127, 255, 32_767, 65_535, 2**31 - 1),
        cutoff=sizes(5, 100),
        grid_bits=sizes(3, 20),
    ),
    "LaplaceSparse.calibrated": example(
        using(partial(sp.LaplaceSparse.calibrated, APPROXIMATE)),
        "n hard_answers max_queries grid_bits beta restarts",
        alpha=0.25,
    ),
    "LaplaceSparse.calibrated, threshold": example(
        using(partial(sp.LaplaceSparse.calibrated, BUDGET, hard_answers=5, max_queries=100)),
        "threshold grid_bits",
        n=sizes(3000, 100, 20_000),
    ),
    "LaplaceSparse.calibrated, neither": example(
        using(partial(sp.LaplaceSparse.calibrated, BUDGET)),
        "hard_answers",
        n=sizes(3000, 100),
        max_queries=sizes(100, 2_000_000_000),
    ),
    **{
        f"{type(mechanism).__name__}.{name}": example
        for mechanism in (GUMBEL, EXPONENTIAL, LAPLACE, UNCONDITIONAL)
        for name, example in in_step(mechanism).items()
    },
    **{
        f"{type(mechanism).__name__}.stretched": example(mechanism.stretched, cheaper=F(7, 2))
        for mechanism in (GUMBEL, EXPONENTIAL, UNCONDITIONAL)
    },
    "UnconditionalNumbers": example(
        using(sp.UnconditionalNumbers),
        "n epsilon delta",
        scale=F(300),
        order=F(100, 9),
        grid_bits=sizes(3, 5),
    ),
    "UnconditionalNumbers.calibrated": example(
        using(partial(sp.UnconditionalNumbers.calibrated, APPROXIMATE)),
        "reserved",
        n=sizes(3000, 100, 20_000),
        answers=sizes(5, 100, 20_000),
        grid_bits=sizes(8),
    ),
    "forecast": example(partial(ic.forecast, DOMAIN, budget=APPROXIMATE), "n max_queries", questions=WIDE),
    "exponential_resolution": example(
        sp.exponential_resolution, "max_queries epsilon", hard_answers=sizes(100, 20_000)
    ),
    "gumbel_resolution": example(
        sp.gumbel_resolution, "max_queries epsilon delta", hard_answers=sizes(100, 20_000)
    ),
    # update rules and hypotheses
    "MaximumEntropy": example(
        ic.MaximumEntropy,
        "misfit",
        evaluations=sizes(100, 20_000),
        kl_weight=0.1,
        most_cells=sizes(100),
        dear_evaluations=sizes(100),
    ),
    "FittedTables": example(updates.FittedTables, evaluations=100, steps=30, dear_steps=9, most_cells=1_000),
    "MixtureOfProducts": example(
        ic.MixtureOfProducts,
        "misfit seed",
        components=sizes(100, 20_000),
        first_steps=WIDE,
        steps=WIDE,
        rate=0.1,
    ),
    "MeasuredSteps": example(lambda left_out: updates.MeasuredSteps(ic.Perceptron(), left_out), left_out=3.0),
    "FittedAt": example(
        lambda first, second: updates.FittedAt(ic.MaximumEntropy(), (first, second)), first=3, second=100
    ),
    "FittedAt.update_bound": example(
        lambda alpha: updates.FittedAt(ic.MaximumEntropy(), (1,)).update_bound(DOMAIN, alpha), "alpha"
    ),
    "FittedStart": example(
        lambda **given: updates.FittedStart(ic.Perceptron(), **given), "misfit", tables=sizes(3)
    ),
    "MeasuredWeights": example(lambda replays: ic.MeasuredWeights("tight", replays), replays=sizes(3)),
    "Median": example(
        lambda **given: (lambda m: (m, m.update_bound(Domain.of(a=3), 0.1)))(ic.Median("smaller", **given)),
        "max_queries",
        size=sizes(40, 100),
        n=WIDE,
    ),
    "Median.for_stream": example(
        lambda **given: ic.Median().for_stream(**given).at(Domain.of(a=3), 0.1), "max_queries", n=WIDE
    ),
    **{
        f"Median.at{', ' * bool(variant) + variant}": example(
            lambda alpha, variant=variant: ic.Median(variant or "smaller", max_queries=3).at(
                Domain.of(a=3), alpha
            ),
            alpha=0.3,
        )
        for variant in ("", "sampling", "book")
    },
    "MultiplicativeWeights": example(
        lambda rate: ic.MultiplicativeWeights(rate=rate).update(FLAT, MEASURED, 0.1), rate=100.0
    ),
    "Perceptron": example(
        lambda p2: (lambda rule: (rule, rule.update_bound(DOMAIN, 0.1)))(ic.Perceptron(p2=p2)), "p2"
    ),
    **{
        f"{type(rule).__name__}.update": example(
            lambda alpha, rule=rule: rule.update(rule.init(rule_domain(rule)), measured(rule), alpha), "alpha"
        )
        for rule in (
            ic.MaximumEntropy(),
            updates.FittedTables(),
            ic.MixtureOfProducts(components=20, first_steps=3),
            ic.MeasuredWeights(),
            updates.MeasuredSteps(ic.MultiplicativeWeights()),
            updates.FittedAt(ic.MaximumEntropy(), (1,)),
            updates.FittedStart(ic.Perceptron(), 1),
            ic.MultiplicativeWeights(),
            ic.Perceptron(),
            ic.Median(size=5),
        )
    },
    **{
        f"{type(rule).__name__}.{name}": example(
            lambda alpha, rule=rule, name=name: getattr(rule, name)(rule_domain(rule), alpha), "alpha"
        )
        for rule in (
            ic.MultiplicativeWeights(),
            ic.Perceptron(),
            ic.Median(max_queries=100),
        )
        for name in ("update_bound", "exact_update_bound")
    },
    **{
        f"{type(rule).__name__}.update_bound": example(
            lambda alpha, rule=rule: rule.update_bound(DOMAIN, alpha), "alpha"
        )
        for rule in (
            ic.MaximumEntropy(),
            updates.FittedTables(),
            ic.MixtureOfProducts(components=20, first_steps=3),
            ic.MeasuredWeights(),
            updates.MeasuredSteps(ic.Perceptron()),
            updates.FittedStart(ic.MultiplicativeWeights(), 1),
        )
    },
    "ReplaceRows": example(
        lambda rows: (lambda near: (near, near.table_l1(), near.table_squared()))(ac.ReplaceRows(rows)),
        rows=3,
    ),
    "BlockAccount": example(
        lambda rows: ac.BlockAccount(ac.Filter(Fraction(1)), {}, rows).rows_in(2), rows=3
    ),
    "BlockAccount.rows_in": example(
        lambda blocks: ac.BlockAccount(ac.Filter(Fraction(1)), {}, 3).rows_in(blocks), blocks=2
    ),
    "MultiplicativeWeights.bound_from": example(
        lambda **given: ic.MultiplicativeWeights().bound_from(DOMAIN, **given), "alpha", divergence=100.0
    ),
    "Answer.interval": example(
        lambda confidence: Answer(0.2, 20.0, "easy", 0.1, True, 0.21, 0.01).interval(confidence),
        confidence=0.5,
    ),
    "quantile, of a session": example(
        lambda q: ic.OnlineIC(DATA, APPROXIMATE, noise=noise()).quantile("b", q).value, q=0.3
    ),
    "Cdf.quantile": example(
        lambda q: ic.OnlineIC(DATA, APPROXIMATE, noise=noise()).cdf("b").quantile(q).value, q=0.3
    ),
    "Histogram": example(
        lambda prior: hypothesis.Histogram(Domain.of(a=4), np.asarray(prior)), prior=[0.1, 0.2, 0.3, 0.4]
    ),
    "Histogram.tilted": example(lambda step: FLAT.tilted(BOUND[-1], step), "step"),
    "ProductHistogram": example(
        lambda factors: hypothesis.ProductHistogram(Domain.of(a=4), [np.asarray(factors)]),
        factors=[0.1, 0.2, 0.3, 0.4],
    ),
    "ProductHistogram.sample": example(hypothesis.ProductHistogram(DOMAIN).sample, "seed", size=sizes(100)),
    "Mixture.sample": example(
        ic.MixtureOfProducts(components=20).init(DOMAIN).sample, "seed", size=sizes(100)
    ),
    "LocalFits.sample": example(
        hypothesis.LocalFits(ic.MixtureOfProducts(components=20).init(DOMAIN), ()).sample,
        "seed",
        size=sizes(100),
    ),
    "Histogram.sample": example(FLAT.sample, "seed", size=sizes(100)),
    "SignedHistogram": example(
        lambda cells: hypothesis.SignedHistogram(Domain.of(a=4), np.asarray(cells)),
        cells=[0.1, 0.2, 0.3, 0.4],
    ),
    "SignedHistogram.shifted": example(
        lambda step: hypothesis.SignedHistogram(DOMAIN, np.zeros(DOMAIN.shape)).shifted(
            BOUND[-1], step, centre=True
        ),
        "step",
    ),
    # partitions, marginals
    "PartitionRule": example(
        lambda **given: (lambda rule: (rule, rule.partition(BOUND[4]), rule.table(AGES, (0,))))(
            partitions.PartitionRule(**given)
        ),
        parts=sizes(8, 100),
        fine=sizes(16, 100),
        blocks=sizes(100, 20_000),
        most_blocks=sizes(100, 20_000),
        most_spread=3.0,
    ),
    "PartitionRule.partition": example(
        lambda low, high: RULE.partition(BOUND[4], frozenset({(low, high)})), low=sizes(0), high=sizes(1)
    ),
    "PartitionRule.table": example(lambda axes: RULE.table(DOMAIN, axes), axes=(0, 1)),
    "one_way": example(lambda axis: partitions.one_way(DOMAIN, axis), axis=sizes(1)),
    "BoundMarginal.table": example(
        lambda blocks: marginal("a").bind(DOMAIN).table(np.asarray(blocks)), blocks=[0.1, 0.2, 0.3, 0.4]
    ),
    # offline
    "auto_avg": example(
        offline_release(offline.auto_avg, OLD, "age"), "epsilon bounds beta", threshold=sizes(-100)
    ),
    "clipping_bound": example(
        offline_release(offline.clipping_bound, OLD, "age"), "epsilon bounds beta", threshold=sizes(-100)
    ),
    "private_cdf": example(
        offline_release(offline.private_cdf, OLD, "age"), "epsilon beta", slow=True, levels=sizes(2)
    ),
    "PrivateCdf.at": example(CDF.at, label=sizes(30)),
    "PrivateCdf.quantile": example(CDF.quantile, q=0.7),
    "iterative_construction": example(
        offline_release(offline.iterative_construction, DATA, QUERIES, BUDGET), "beta", rounds=sizes(3, 100)
    ),
    "iterative_construction, alpha": example(
        offline_release(offline.iterative_construction, LARGE, QUERIES, ic.Budget(10.0)), slow=True, alpha=0.4
    ),
    "linear_programs_above": example(
        lambda programs=None, **given: offline.linear_programs_above(
            OLD, ["age"], PROGRAMS, noise=noise(), **given
        ),
        "threshold epsilon beta",
        cutoff=sizes(1, 100),
    ),
    "LinearPrograms": example(
        offline.LinearPrograms,
        matrix=[[2, 1], [1, 0], [0, 1]],
        right_hand_sides=[[1, 1, 1], [2, 1, 1]],
        lower=[0, 0],
        upper=[10, 100],
        n=sizes(100, 20_000, 2_000_000_000),
        unit=0.25,
    ),
    "distinct_count": example(
        lambda at_least: offline.distinct_count(AGES, "age", at_least=at_least).compute(np.arange(40)),
        at_least=sizes(3, 20),
    ),
    "statistic": example(
        lambda sensitivity: offline.statistic(AGES, ["age"], len, sensitivity).sensitivity, sensitivity=0.25
    ),
    "on_grid": example(
        lambda **given: offline.on_grid([-3.0, 0.1, 7.5, 60.0], **given),
        step=0.25,
        low=sizes(-3, 0),
        high=sizes(20, 100),
    ),
    "numeric_sparse": example(
        lambda **given: offline.numeric_sparse(OLD, AGED, budget=BUDGET, noise=noise(), **given),
        "beta",
        threshold=sizes(15, 100),
        cutoff=sizes(1, 2),
    ),
    "LinearPrograms.optima": example(PROGRAMS.optima, "totals"),
    "LinearPrograms.scores": example(PROGRAMS.scores, "totals threshold"),
    "count": example(
        offline_release(offline.count, PrivateData(np.array(COUNTS), DOMAIN, neighbours="add-remove")),
        "epsilon beta",
    ),
    "mean": example(offline_release(offline.mean, OLD, "age"), "epsilon beta"),
    "mwem": example(
        offline_release(offline.mwem, DATA, QUERIES, BUDGET),
        "beta",
        slow=True,
        rounds=sizes(3, 20),
        replays=sizes(2, 20),
        average=0.5,
    ),
    "range_queries": example(
        offline_release(offline.range_queries, DATA, QUERIES[:5]),
        "epsilon beta",
        threshold=sizes(100, 127, 255),
        cutoff=sizes(3, 100),
    ),
    **{
        function.__name__: example(offline_release(function, OLD, "age"), "epsilon beta")
        for function in (offline.median, offline.most_popular)
    },
    "sensitivity": example(lambda n: offline.sensitivity("mean", Domain.of(x=101).attribute("x"), n), n=WIDE),
    "quantile": example(
        lambda q, epsilon, beta: offline.quantile(OLD, "age", q, epsilon, beta=beta, noise=noise()),
        "epsilon beta",
        q=F(1, 4),
    ),
    "small_database": example(
        offline_release(offline.small_database, PrivateData([50, 30, 90], Domain.of(a=3)), [ic.where(a=1)]),
        "epsilon seed beta",
        size=sizes(5, 100),
        candidates=sizes(100, 20_000),
    ),
    "small_database, alpha": example(
        lambda queries, **given: offline.small_database(
            PrivateData([50, 30, 90], Domain.of(a=3)), list(map(np.asarray, queries)), noise=noise(), **given
        ),
        "epsilon",
        queries=[[0.1, 0.7, 1.0]],
        alpha=0.3,
    ),
    "threshold_database, alpha": example(
        offline_release(offline.threshold_database, OLD, "age"), "epsilon", alpha=0.3
    ),
    "threshold_database": example(
        offline_release(offline.threshold_database, OLD, "age"), "epsilon beta", slow=True, size=sizes(5, 100)
    ),
    # baselines, evaluation
    "NoisyTables": example(
        lambda beta: baselines.NoisyTables(DATA, BUDGET, [["a"]], beta=beta, noise=noise()).answer(
            QUERIES[0]
        ),
        "beta",
    ),
    "PerQueryNoise": example(
        lambda answers, beta: baselines.PerQueryNoise(
            DATA, APPROXIMATE, answers=answers, noise_law="gaussian", beta=beta, noise=noise()
        ).answer_many(QUERIES),
        "beta",
        answers=sizes(100, 20_000),
    ),
    "noisy_histogram": example(
        lambda beta: baselines.noisy_histogram(DATA, BUDGET, beta=beta, noise=noise()).answer(QUERIES[0]),
        "beta",
    ),
    "trace": example(
        lambda truths, seed: evaluate.trace(
            "x",
            baselines.PerQueryNoise(DATA, APPROXIMATE, answers=10, noise=noise()),
            DATA,
            QUERIES,
            truths=np.asarray(truths),
            seed=seed,
        ),
        truths=[0.5, 0.2, 0.1, 0.1, 0.1, 0.9],
        seed=sizes(100, 20_000),
    ),
    "known_baselines": example(
        lambda stream: evaluate.known_baselines(DATA, BUDGET, stream)["per-query Laplace"](
            noise()
        ).statistics(),
        stream=sizes(5, 100, 20_000),
    ),
    "compare": example(
        lambda seeds: evaluate.compare(
            DATA, BUDGET, QUERIES, {"default": None}, seeds, baselines=False, max_queries=10
        ),
        slow=True,
        seeds=[1, 100],
    ),
    "random_stream": example(
        lambda size, seed: evaluate.random_stream(DOMAIN, size, seed), "seed", size=sizes(5, 100)
    ),
    "factorisation_bound": example(
        lambda n, seed: evaluate.factorisation_bound(DOMAIN, n, ic.Budget(1, 1e-6), QUERIES, seed),
        "seed",
        n=sizes(100, 20_000),
    ),
    # audit, testing
    "Law": example(
        lambda scale, sign: audit.Law("geometric", scale, sign).log_at_least(np.arange(3.0)),
        "scale",
        sign=sizes(-1),
    ),
    **{
        f"Law.{name}": example(
            lambda z, name=name: [
                getattr(audit.Law(method, F(2), sign), name)(np.asarray(z))
                for method in ("discrete_laplace", "geometric", "none")
                for sign in (1, -1)
            ],
            z=[-100.0, -1.0, 0.0, 3.0, 100.0],
        )
        for name in ("log_mass", "log_at_least", "log_below")
    },
    "ThresholdRule": example(
        lambda threshold, cutoff: (
            lambda rule: (rule, audit.transcript_law(rule, [threshold, 0]), audit.worst_loss(rule))
        )(audit.ThresholdRule(threshold, LAW, LAW, cutoff)),
        slow=True,
        threshold=sizes(100, 127, 255, 32_767, 65_535),
        cutoff=sizes(2, 100),
    ),
    "black_box_epsilon": example(
        lambda delta, alpha: audit.black_box_epsilon(
            ["a"] * 90 + ["b"] * 10, ["b"] * 100, delta=delta, alpha=alpha
        ),
        "delta",
        alpha=0.05,
    ),
    "epsilon_lower_bound": example(
        audit.epsilon_lower_bound,
        "delta",
        hits=sizes(100, 127, 20_000),
        runs=sizes(127, 32_767, 2_000_000_000),
        other_hits=sizes(3, 127),
        other_runs=sizes(127, 32_767, 2_000_000_000),
        alpha=0.05,
    ),
    "first_hit_delta": example(
        lambda values, others, epsilon: audit.first_hit_delta(SVT, values, others, epsilon),
        values=[3, 0, 120],
        others=[2, 1, 121],
        epsilon=0.5,
    ),
    "goodness_of_fit": example(
        lambda first, second, p: audit.goodness_of_fit({"0": first, "1": second}, {"0": p, "1": 1 - p}),
        first=sizes(100, 127),
        second=sizes(100, 127, 20_000),
        p=0.5,
    ),
    "hockey_stick": example(
        lambda p, epsilon: audit.hockey_stick({**LAWS[0], "1": p}, LAWS[1], epsilon), "p", epsilon=0.1
    ),
    "hockey_stick_with_numbers": example(
        lambda p, epsilon, number_scale, cutoff: audit.hockey_stick_with_numbers(
            {**LAWS[0], "1": p}, LAWS[1], epsilon, number_scale, cutoff
        ),
        "p number_scale",
        epsilon=0.1,
        cutoff=sizes(2, 100),
    ),
    "observe": example(
        lambda largest: audit.observe(ABOVE.init(), ABOVE.step, largest=largest),
        largest=sizes(20_000, 30_000),
    ),
    "transcript_law": example(lambda values: audit.transcript_law(SVT, values), values=[-128, 0, 127]),
    "worst_loss": example(
        lambda sensitivity, number_scale, copies: audit.worst_loss(
            SVT, sensitivity, number_scale=number_scale, copies=copies
        ),
        "number_scale",
        slow=True,
        sensitivity=sizes(1, 3),
        copies=[0, 3, 100],
    ),
    "check_hypothesis": example(lambda seed: testing.check_hypothesis(FLAT, seed=seed), "seed"),
    "check_update_rule": example(
        lambda alpha, steps, seed: testing.check_update_rule(
            BOOK, domain=Domain.of(a=2), truths=[[0.9, 0.1]], alpha=alpha, steps=steps, seed=seed
        ),
        slow=True,
        alpha=0.5,
        steps=sizes(2),
        seed=sizes(100),
    ),
    # session
    "OnlineIC": example(
        lambda **given: opened(budget=APPROXIMATE, release="answer", sparse="gumbel", **given),
        "max_queries beta threshold restarts",
        hard_answers=sizes(3, 100),
    ),
    **{
        f"OnlineIC, {name}": example(
            lambda name=name, **given: opened(budget=BUDGET, release="answer", sparse=name, **given),
            "max_queries",
            certify=0.9,
        )
        for name in ("exponential", "laplace")
    },
    "OnlineIC, rows of a person": example(
        lambda rows_per_person: opened(budget=BUDGET, rows_per_person=rows_per_person),
        rows_per_person=sizes(2, 5),
    ),
    "OnlineIC, partitions": example(
        partial(opened, budget=BUDGET),
        max_queries=sizes(100, 20_000),
        questions=sizes(3, 100, 20_000),
    ),
    "OnlineIC, within": example(lambda within: opened(budget=APPROXIMATE, within=within), "within"),
    "OnlineIC.answer": example(lambda within: wished().answer(QUERIES[0], within=within), "within"),
    "OnlineIC.answer_many": example(lambda within: wished().answer_many(QUERIES, within=within), "within"),
    "OnlineIC.explain": example(lambda within: wished().explain(QUERIES[0], within=within), "within"),
    "Within": example(ic.queries.Within, "radius", parts=sizes(2, 100), steepness=3),
    "Within.at_least": example(lambda radius: ic.queries.Within(0.125).at_least(radius), "radius"),
    "Within.meets": example(lambda bound: ic.queries.Within(0.25).meets(bound, None), bound=0.125),
    "expected": example(ic.queries.expected, "within"),
    "OnlineIC.summary": example(
        lambda answers: str(answered().summary(answers)), answers=sizes(2, 100, 10_000)
    ),
    "OnlineIC.synthetic": example(lambda **given: answered().synthetic(**given), "seed", rows=sizes(100)),
    "OnlineIC.textbook, alpha": example(
        lambda alpha: session(ic.OnlineIC.textbook(LARGE, epsilon=10.0, alpha=alpha, noise=noise())),
        alpha=0.9,
    ),
    "OnlineIC.textbook": example(
        lambda **given: session(ic.OnlineIC.textbook(LARGE, noise=noise(), **given)),
        "delta beta max_queries",
        epsilon=10.0,
    ),
}


# --- that nothing is forgotten -----------------------------------------------------------------------------

MODULES = (
    "domain", "domain.attributes", "queries", "data", "noise", "accounting", "bounds", "bounds.certificates",
    "mechanisms", "sparse", "updates", "hypothesis", "offline", "baselines", "evaluate", "audit", "testing",
    "session",
)  # fmt: skip
OTHERWISE = {  # varied under another name, or holding queries and laws rather than numbers
    "OnlineIC.sql": {"params", "within"},  # as of `answer_many`
    # places of attributes, as the session hands them on: in test_tables_that_stay
    "Reach": {"cells", "sets"},
    "Reach.holds": {"shape", "axes"},
    "Reach.check": {"axes"},
    # codes, cuts and places of attributes, of the package's own hand: in test_cuts and test_pieces
    "Factor.at": {"codes"},
    "Factor.means": {"cuts"},
    "Query.ends": {"axis"},
    "ProductHistogram.moved": {"divided"},
    "ProductHistogram.of_factors": {"factors"},
    "BoundMarginal.largest_gap": {"counts", "guess"},  # of the core, which has read and tests them
    "PrivateData.standing": {"announced"},
    "PrivateData.fetch": {"sets"},
    "PrivateData.fitting": {"sets"},
    **{f"ReplaceRows.{name}": {"unit"} for name in ("table_l1", "table_squared", "largest_gap")},  # of a grid
    # of a session, which counts its releases: in test_bounded_work
    **{
        f"{rule}.most_passes": {"releases"}
        for rule in (
            "FittedAt",
            "FittedStart",
            "FittedTables",
            "MaximumEntropy",
            "MeasuredSteps",
            "MeasuredWeights",
            "Median",
            "MixtureOfProducts",
            "MultiplicativeWeights",
            "Perceptron",
        )
    },
    "Quota": {"limit", "finest"},  # an exact amount of the account: in test_askers; a wish: in test_users
    **{f"Asking.{name}": {"within"} for name in ("answer", "answer_many", "explain")},  # as of a session
    "OnlineIC.released": {"start", "stop"},  # places of records: in test_hostile_calls
    "View.released": {"start", "stop"},
    "View.explain": {"most"},  # in test_views
    # loaders hand it on to `PrivateData`
    "PrivateData.from_records": {"n_at_most"},
    "PrivateData.from_counts": {"n_at_most"},
    "PrivateData.from_csv": {"n_at_most"},
    "PrivateData.from_frame": {"n_at_most"},
    "PrivateData.from_dbapi": {"n_at_most"},
    "Binned.code": {"label"},  # the text of a bin, whatever the annotation says: a number is refused
    "Condition": {"depth"},  # counted by & | ~ themselves
    # edges of bins, of the package's own hand: as `binned` and `Binned` have read them, which are varied
    "beside": {"edges", "value"},
    "decimals": {"edges"},
    "edge_at": {"edges", "value"},
    "even": {"low", "high", "bins"},
    "is_at": {"value", "edge"},
    "rounded": {"low", "high"},
    "case": {"otherwise"},  # a label of a group, as it is shown
    "from_column": {"kind"},  # hands it on, as `Domain.of` does
    "Categorical": {"synonyms"},  # pairs of a value and a label: either may be a text
    "Domain.of": {"kinds", "more"},
    "FittedAt": {"counts"},  # one by one
    "FittedAt.restored": {"parameters"},  # as `parameters` returns them
    "FittedTables.restored": {"parameters"},
    "one_of": {"labels"},
    "where": {"conditions", "more"},
    "range_queries": {"queries"},
    "goodness_of_fit": {"counts", "law"},
    "hockey_stick": {"law", "other"},
    "run_audit": {"runs"},  # in test_gates: it takes seconds
    "hockey_stick_with_numbers": {"law", "other"},
    "PartitionRule.partition": {"measured"},
}
MADE = {  # by the package itself, from numbers that it has checked; a caller only reads them
    "AnswerBook", "AnswerBook.count_untaken", "AnswerBook.latest", "AnswerBook.released", "Core", "Outcome",
    "View", "Prices.hard_left", "Prices.restarts_left", "Answer", "AnswerMemory.recall",
    "AnswerMemory.recall_many", "AnswerMemory.remember", "AnswerMemory.remember_many", "Answers", "Boxes",
    "Queries", "Queries.recorded", "Queries.totals", "Dates.begins", "Dates.holding", "AutoAverage",
    "BaselineStatistics", "Belief", "BelievedMarginal", "Summary", "TotalReport", "Answer.deferred",
    "Answer.costing", "Price", "WishSpending", "Belief.learned", "Explanation", "Row", "SessionStatistics",
    "new_figure", "plot_marginal", "replay", "BoundMarginal", "Certificate", "Choice", "ClippingBound",
    "Construction", "Expression", "Factor", "Gate", "LargeCounts", "Mean", "LocalFits.boxes", "Mixture",
    "Mixture.boxes", "OfflineAccuracy", "SessionBreach", "SessionBreach.run", "ThresholdBreach",
    "Belief.restored", "ExponentialSparse.unfinished", "FactorisationBound", "LedgerReport", "RecordBreach",
    "MaximumEntropy.restored", "OnlineAccuracy", "PrivateCdf", "ProgramsAbove", "Query", "Query.possible",
    "Query.total", "Rescaled", "SparseScales", "Statistic", "Trace", "ValuesAbove", "VersionSpace",
    "block_guesses", "canonical", "grid_guesses", "inside", "shown", "spread", "TableReport", "settled",
    "short",
}  # fmt: skip


def numeric(annotation):
    """Whether an annotation admits a number, or an array or list of them."""
    if annotation in (int, float, Fraction, Rational):
        return True
    if annotation is bool or typing.get_origin(annotation) is Callable:
        return False
    if typing.get_origin(annotation) is typing.Literal:
        return False
    if isinstance(annotation, type) and issubclass(annotation, (np.integer, np.floating)):
        return True
    return any(numeric(part) for part in typing.get_args(annotation))


def parameters(call):
    """Return the names of the numeric parameters of a public function or constructor."""
    if isinstance(call, type):
        call = call.__init__
    hints = typing.get_type_hints(call, localns={"Figure": object, "Axes": object})  # of matplotlib, an extra
    return [
        name
        for name in inspect.signature(call).parameters
        if name in hints and numeric(hints[name]) and name != "self"
    ]


def public():
    """Return name -> numeric parameters of all public functions, constructors and their methods."""
    result = {}
    for module in map(importlib.import_module, (f"onlineic.{name}" for name in MODULES)):
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "").startswith("onlineic.")
        ]
        for name, value in ((name, getattr(module, name)) for name in names):
            if isinstance(value, type) and not issubclass(value, Exception):
                if not inspect.isabstract(value) and not getattr(value, "_is_protocol", False):
                    result[name] = parameters(value)
                    for method, held in vars(value).items():
                        function = getattr(held, "__func__", held)
                        if not method.startswith("_") and isinstance(function, types.FunctionType):
                            result[f"{name}.{method}"] = parameters(function)
            elif not name.startswith("checked_"):
                function = inspect.unwrap(value) if callable(value) else value  # one stands behind a cache
                if isinstance(function, types.FunctionType):
                    result[name] = parameters(function)
    calibrated = parameters(sp.NumericSparse.calibrated)  # which they inherit
    result |= {f"{type(one).__name__}.calibrated": calibrated for one in (GUMBEL, EXPONENTIAL, LAPLACE)}
    return {name: numbers for name, numbers in result.items() if numbers and name not in MADE}


def test_every_public_number_has_an_example():
    varied = {name: set(OTHERWISE.get(name, ())) for name in public()}
    for label, example in EXAMPLES.items():
        varied.setdefault(label.split(", ")[0], set()).update(example.arguments)

    assert [] == [
        f"{name}({number})"
        for name, numbers in public().items()
        for number in numbers
        if number not in varied[name]
    ]


def test_no_name_is_excused_in_vain():
    assert set() == MADE & EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")
def test_a_number_of_any_type_means_the_same(name):
    accepted = outcome(EXAMPLES[name].call, EXAMPLES[name].base())

    assert not str(accepted).startswith("refused")  # else nothing would be compared
    assert [] == differences(EXAMPLES[name], accepted)


# --- the fault that this file is about ---------------------------------------------------------------------

MANY = 200_000
TWO = Domain.of(a=2)


def asked(sparse, gap, **options):
    """Return the answer of a session to a query that is off by `gap` of 200,000 records."""
    data = PrivateData([MANY // 2 + gap, MANY // 2 - gap], TWO)
    made = ic.OnlineIC(data, APPROXIMATE, sparse=sparse, release="answer", noise=noise(), **options)
    return made.answer(ic.where(a=0))


@pytest.mark.parametrize("kind", INTEGERS[4:])
@pytest.mark.parametrize("gap", [7_231, 7_232])
def test_a_narrow_threshold_of_40_000_leaves_small_gaps_easy(kind, gap):
    """With int32, |gap| - T times the scale's denominator wrapped: a gap of 7,231 was always hard."""
    planned = sp.GumbelSparse.calibrated(APPROXIMATE, n=MANY, hard_answers=5, max_queries=100, threshold=0.2)
    sparse = sp.GumbelSparse(
        n=MANY,
        epsilon=1.0,
        delta=1e-6,
        order=planned.order,
        scale=planned.scale + F(1, 65_536),
        threshold=kind(40_000),
        ratio=planned.ratio,
    )

    assert "easy" == asked(sparse, gap).status


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int16])
@pytest.mark.parametrize("name", ["GumbelSparse", "ExponentialSparse", "LaplaceSparse"])
def test_a_narrow_number_of_records_is_not_shifted_out_of_its_type(name, kind):
    """With int32, n 2^grid_bits wrapped: an answer of .93 was released as -.680, its bound was negative."""
    data = PrivateData([2_800, 200], TWO)
    released = []
    for n in (3_000, kind(3_000)):
        calibrated = getattr(sp, name).calibrated
        sparse = calibrated(APPROXIMATE, n=n, hard_answers=5, max_queries=100, grid_bits=20)
        made = ic.OnlineIC(data, APPROXIMATE, sparse=sparse, release="answer", max_queries=100, noise=noise())
        answers = made.answer_many([ic.where(a=ic.weights([0.5, 0.75])), ic.where(a=0)])
        released.append([(answer.value, answer.error_bound, answer.status) for answer in answers])

    expected, actual = released
    assert expected == actual
    assert all(bound > 0.0 for _, bound, _ in actual)


@pytest.mark.parametrize(
    ("sparse", "budget"),
    [
        ("gumbel", APPROXIMATE),  # its noise needs delta > 0
        *[(sparse, budget) for sparse in ("exponential", "laplace") for budget in (BUDGET, APPROXIMATE)],
    ],
)
def test_a_narrow_number_of_queries_narrows_no_radius(sparse, budget):
    """With int16, 20,000 queries on two sides wrapped: the radius of a number was .0032 for .066."""
    data = PrivateData(np.full(16, 1_000), Domain.of(a=4, b=4))
    plans = [
        ic.OnlineIC(data, budget, sparse=sparse, release="answer", max_queries=queries, noise=noise()).plan
        for queries in (20_000, np.int16(20_000))
    ]
    query = ic.where(a=1).bind(data.domain)
    radii = [plan.sparse.hard_radius(query, 0.005, 7) for plan in plans]

    assert radii[0] == radii[1]
    assert plans[0].error_bound == plans[1].error_bound


def test_a_fraction_of_numpy_integers_is_rebuilt():
    """A Fraction keeps numpy's integers, and its arithmetic wraps around as theirs does."""
    narrow = Fraction(np.int8(100), np.int8(3))

    for made in (
        sp.ExponentialSparse(n=9, epsilon=1.0, threshold=5, threshold_scale=narrow, query_scale=narrow),
        sp.GumbelSparse(n=9, epsilon=1.0, delta=0.1, order=narrow, scale=F(100), threshold=5, ratio=narrow),
        audit.Law("geometric", narrow),
    ):
        numbers = [getattr(made, field.name) for field in attrs.fields(type(made))]
        ratios = [number for number in numbers if isinstance(number, Fraction)]

        assert ratios
        assert {int} == {type(part) for ratio in ratios for part in (ratio.numerator, ratio.denominator)}
