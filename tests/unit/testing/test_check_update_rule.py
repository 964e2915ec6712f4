"""`check_update_rule` and `check_hypothesis` accept our rules, and catch every broken one, by name."""

import itertools

import attrs
import numpy as np
import pytest

from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError
from onlineic.hypothesis import Histogram, SignedHistogram, VersionSpace
from onlineic.noise import public_generator
from onlineic.testing import check_hypothesis, check_update_rule
from onlineic.updates import Median, MultiplicativeWeights, Perceptron, UpdateRule

SMALL = Domain.of(x=3)
CLOCK = itertools.count()  # a hidden state that no argument shows


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [
        MultiplicativeWeights(),
        MultiplicativeWeights(variant="book"),
        MultiplicativeWeights(rate=0.3),
        Perceptron(),
        Perceptron(variant="book"),
        Median(),
    ],
    ids=repr,
)
def test_shipped_rules_keep_every_promise(rule):
    check_update_rule(rule)


@pytest.mark.parametrize("variant", ["sampling", "dimension", "book"])
def test_every_net_of_the_median_keeps_every_promise(variant):
    check_update_rule(Median(variant=variant), domain=SMALL, alpha=0.3, steps=50)


def test_a_promise_about_the_data_is_kept_by_truths_that_keep_it():
    flat = np.ones(8)

    check_update_rule(Perceptron(p2=1 / 4), domain=Domain.of(x=8), truths=[flat, [1, 1, 1, 1, 0, 0, 0, 0]])


def test_a_broken_promise_about_the_data_is_noticed():
    point = np.eye(8)[0]

    with pytest.raises(AssertionError, match=r"update_bound claims .* legal stream needed"):
        check_update_rule(Perceptron(p2=1 / 4), domain=Domain.of(x=8), truths=[point])


def test_the_check_says_how_far_it_has_come():
    heard = []

    check_update_rule(Perceptron(), domain=SMALL, steps=20, progress=lambda *said: heard.append(said))

    stages, done, totals = zip(*heard, strict=True)
    assert [*range(len(heard))] == [*done]
    assert {len(heard) - 1} == {*totals}
    assert "check of Perceptron, prior" in stages


@attrs.frozen(eq=False)
class Declining:
    """A histogram that takes products of labels alone, and fails where it is asked anything else."""

    held: Histogram

    @property
    def domain(self):
        return self.held.domain

    def supports(self, query):
        return self.held.supports(query) and all(len(factor.axes) == 1 for factor in query.factors)

    def evaluate(self, query):
        assert self.supports(query)
        return self.held.evaluate(query)

    def evaluate_many(self, queries):
        return np.array([self.evaluate(query) for query in queries], np.float64)

    def blocks(self, partition):
        return self.held.blocks(partition)


@attrs.frozen
class OfProducts(UpdateRule):
    sign: float = 1.0

    def init(self, domain, prior=None):
        return Declining(Histogram(domain) if prior is None else prior)

    def update(self, hypothesis, measurements, alpha):
        query, value, guess = measurements[-1].against(hypothesis)
        return Declining(hypothesis.held.tilted(query, self.sign * np.clip(value - guess, -1.0, 1.0)))

    def update_bound(self, domain, alpha):
        return None


def test_a_rule_that_declines_weights_is_asked_products_alone():
    check_update_rule(OfProducts())
    with pytest.raises(AssertionError, match="must move towards the measurement"):
        check_update_rule(OfProducts(sign=-1.0))


# -- broken rules: each inherits the correct parts -------------------------------------------------------


@attrs.frozen
class Correct(UpdateRule[Histogram]):
    """The tight rule, to be broken in one place by each subclass."""

    def init(self, domain, prior=None):
        return MultiplicativeWeights().init(domain, prior)

    def update(self, hypothesis, measurements, alpha):
        return MultiplicativeWeights().update(hypothesis, measurements, alpha)

    def update_bound(self, domain, alpha):
        return MultiplicativeWeights().update_bound(domain, alpha)


@attrs.frozen
class WrongSign(Correct):
    def update(self, hypothesis, measurements, alpha):
        query, value, guess = measurements[-1].against(hypothesis)
        return hypothesis.tilted(query, -4 * alpha if value >= guess else 4 * alpha)


@attrs.frozen
class DoesNothing(Correct):
    def update(self, hypothesis, measurements, alpha):
        return hypothesis


@attrs.frozen
class WrongRate(Correct):
    """0.01 for 0.8: legal steps, but far more of them than T allows."""

    def update(self, hypothesis, measurements, alpha):
        query, value, guess = measurements[-1].against(hypothesis)
        return hypothesis.tilted(query, 0.01 if value >= guess else -0.01)


@attrs.frozen
class BoundTooSmall(Correct):
    def update_bound(self, domain, alpha):
        return super().update_bound(domain, alpha) // 3


@attrs.frozen
class RandomRate(Correct):
    def update(self, hypothesis, measurements, alpha):
        query, value, guess = measurements[-1].against(hypothesis)
        rate = 4 * alpha * np.random.default_rng().uniform(0.9, 1.0)
        return hypothesis.tilted(query, rate if value >= guess else -rate)


@attrs.frozen
class HiddenState(Correct):
    """The rate depends on how often any rule of the class was used before."""

    def update(self, hypothesis, measurements, alpha):
        query, value, guess = measurements[-1].against(hypothesis)
        rate = 4 * alpha / (1 + 1e-6 * next(CLOCK))
        return hypothesis.tilted(query, rate if value >= guess else -rate)


@attrs.frozen
class WritesHypothesis(Correct):
    """Puts the tilted cells into its argument."""

    def init(self, domain, prior=None):
        return SignedHistogram(domain, np.full(domain.shape, 1 / domain.size))

    def update(self, hypothesis, measurements, alpha):
        query, value, guess = measurements[-1].against(hypothesis)
        step = 0.01 if value >= guess else -0.01
        hypothesis.__init__(hypothesis.domain, hypothesis.cells() + step * query.weights())
        return hypothesis


@attrs.frozen
class WritesMeasurement(Correct):
    def update(self, hypothesis, measurements, alpha):
        result = super().update(hypothesis, measurements, alpha)
        measurements[-1].values[:] = np.clip(measurements[-1].values, 0.01, 0.49)
        return result


@attrs.frozen
class NotANumber(Correct):
    def init(self, domain, prior=None):
        return SignedHistogram(domain, np.full(domain.shape, 1 / domain.size))

    def update(self, hypothesis, measurements, alpha):
        cells = hypothesis.cells()
        cells[...] = np.nan
        return SignedHistogram(hypothesis.domain, cells)


@attrs.frozen
class Raises(Correct):
    def update(self, hypothesis, measurements, alpha):
        if not 0 <= measurements[-1].values[0] <= 0.4:
            raise ValueError("answers must lie in [0, 0.4]")
        return super().update(hypothesis, measurements, alpha)


@attrs.frozen
class BoundIsAFloat(Correct):
    def update_bound(self, domain, alpha):
        return np.log(domain.size) / alpha**2


@attrs.frozen
class BoundGrows(Correct):
    def update_bound(self, domain, alpha):
        return int(1000 * alpha)


@attrs.frozen
class TwoBounds(Correct):
    def exact_update_bound(self, domain, alpha):
        return 5000.5


class Thawed(Correct):
    def __init__(self):
        object.__setattr__(self, "rate", 0.5)

    __setattr__ = object.__setattr__


class NoEquality(Correct):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class ShowsItsAddress(Correct):
    __repr__ = object.__repr__


@attrs.frozen
class OtherDomain(Correct):
    def init(self, domain, prior=None):
        return Histogram(Domain.of(other=4), None)


@attrs.frozen
class TakesOverThePrior(Correct):
    """Writes to the prior, which is the caller's and may serve another session."""

    def init(self, domain, prior=None):
        if prior is not None:
            tilted = prior.probabilities() * np.linspace(1, 2, domain.size).reshape(domain.shape)
            prior.__init__(domain, tilted)
        return MultiplicativeWeights().init(domain, prior)


@attrs.frozen
class QueriesOnly(Correct):
    def update(self, hypothesis, measurements, alpha):
        measurements[-1].target.constant  # noqa: B018
        return super().update(hypothesis, measurements, alpha)


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (WrongSign(), "towards the measurement"),
        (DoesNothing(), "towards the measurement"),
        (WrongRate(), "a legal stream needed"),
        (BoundTooSmall(), "a legal stream needed"),
        (RandomRate(), "must be deterministic"),
        (HiddenState(), "must be deterministic"),
        (WritesHypothesis(), "must not change the hypothesis"),
        (WritesMeasurement(), "read-only"),
        (NotANumber(), "finite numbers"),
        (Raises(), "must take every legal measurement"),
        (BoundIsAFloat(), "None or an int"),
        (BoundGrows(), "must not grow with alpha"),
        (TwoBounds(), r"floor\(exact_update_bound\)"),
        (Thawed(), "must be frozen"),
        (NoEquality(), "equal its pickle"),
        (OtherDomain(), "keep the domain"),
        (TakesOverThePrior(), "leave the prior as it was"),
        (QueriesOnly(), "must take every legal measurement"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, UpdateRule) else "",
)
def test_a_broken_rule_is_named_with_its_fault(rule, complaint):
    with pytest.raises(AssertionError, match=complaint) as caught:
        check_update_rule(rule)

    assert type(rule).__name__ in str(caught.value)


def test_a_repr_with_an_address_is_refused():
    with pytest.raises(AssertionError, match="not its address"):
        check_update_rule(ShowsItsAddress())


def test_the_correct_rule_behind_the_broken_ones_passes():
    check_update_rule(Correct())


def test_a_rule_must_be_an_update_rule():
    with pytest.raises(AssertionError, match="must be an UpdateRule, got a str"):
        check_update_rule("mw")


def test_truths_must_be_histograms_of_the_domain():
    for truth in (np.ones(5), [1, 1, 1, 1, 1, -1], np.zeros(6), [np.nan] * 6):
        with pytest.raises(InvalidParameterError, match="truths must be histograms of 6 cells"):
            check_update_rule(MultiplicativeWeights(), truths=[truth])


# -- hypotheses ----------------------------------------------------------------------------------------


class Uniform:
    """A correct hypothesis of the least kind, to be broken by the classes below."""

    def __init__(self, domain):
        self.domain = domain

    def supports(self, query):
        return query.domain == self.domain

    def evaluate(self, query):
        return float(query.weights().mean()) / (1 << query.grid_bits)

    def evaluate_many(self, queries):
        return np.array([self.evaluate(query) for query in queries])


class SupportsAll(Uniform):
    def supports(self, query):
        return True


class SupportsNone(Uniform):
    def supports(self, query):
        return False


class Integer(Uniform):
    def evaluate(self, query):
        return round(super().evaluate(query))


class OutOfRange(Uniform):
    def evaluate(self, query):
        return super().evaluate(query) + 1.0


class Unclean(Uniform):
    def evaluate(self, query):
        return float("nan")


class OtherBatch(Uniform):
    def evaluate_many(self, queries):
        return super().evaluate_many(queries) * (1 + 1e-15)


class ColumnBatch(Uniform):
    def evaluate_many(self, queries):
        return super().evaluate_many(queries).reshape(-1, 1)


class ListBatch(Uniform):
    def evaluate_many(self, queries):
        return super().evaluate_many(queries).tolist()


class NoEmptyBatch(Uniform):
    def evaluate_many(self, queries):
        return super().evaluate_many(queries) if queries else np.zeros(1)


class Wandering(Uniform):
    """Every evaluation moves it, as a sampler with its own generator would."""

    shift = 0.0

    def evaluate(self, query):
        self.shift += 1e-12
        return min(super().evaluate(query) + self.shift, 1.0)

    def evaluate_many(self, queries):
        before, self.shift = self.shift, 0.0
        values = super().evaluate_many(queries)
        self.shift = before
        return values


class LosesItself(Uniform):
    def __reduce__(self):
        return OtherCells, (self.domain,)


class OtherCells(Uniform):
    def evaluate(self, query):
        return super().evaluate(query) * 0.5


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (SupportsAll, "query of another domain"),
        (SupportsNone, "support some query"),
        (Integer, "must return a float, got int"),
        (OutOfRange, r"finite and in \[0, 1\]"),
        (Unclean, r"finite and in \[0, 1\], got nan"),
        (OtherBatch, "same bits as evaluate"),
        (ColumnBatch, "must have shape"),
        (ListBatch, "must return a numpy array"),
        (NoEmptyBatch, r"evaluate_many\(\[\]\)"),
        (Wandering, "must not depend on what was evaluated before"),
        (LosesItself, "pickle round trip"),
    ],
)
def test_a_broken_hypothesis_is_named_with_its_fault(kind, complaint):
    with pytest.raises(AssertionError, match=complaint) as caught:
        check_hypothesis(kind(SMALL))

    assert kind.__name__ in str(caught.value)


def test_something_else_is_no_hypothesis():
    with pytest.raises(AssertionError, match="one is missing"):
        check_hypothesis(np.ones(3))


def test_shipped_hypotheses_pass():
    domain = Domain.of(a=2, b=3)
    cells = public_generator(1).normal(size=domain.shape)
    hypotheses = [
        Uniform(domain),
        Histogram(domain),
        Histogram(domain, np.arange(1, 7)),
        SignedHistogram(domain, cells),
        VersionSpace(domain, np.eye(6, dtype=np.uint8), 1),
    ]

    for hypothesis in hypotheses:
        check_hypothesis(hypothesis)


@attrs.frozen
class ForgetsItsPrior(UpdateRule):
    """Starts at one place whatever it is given: with first tables its errors are ten times larger."""

    rule: MultiplicativeWeights = attrs.field(factory=MultiplicativeWeights)

    def init(self, domain, prior=None):
        return self.rule.init(domain)

    def update(self, hypothesis, measurements, alpha):
        return self.rule.update(hypothesis, measurements, alpha)

    def update_bound(self, domain, alpha):
        return self.rule.update_bound(domain, alpha)


def test_a_rule_that_ignores_its_prior_is_found():
    with pytest.raises(AssertionError, match="must start from the prior that it is given"):
        check_update_rule(ForgetsItsPrior())
