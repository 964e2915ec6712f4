"""Checks for authors of update rules and hypotheses: what a session relies on, tried on them.

Proof: docs/theory/updates.md, 7.5.
"""

import math
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, final

import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import (
    InvalidParameterError,
    checked_integer,
    checked_list,
    checked_real,
    shown,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.histogram import Histogram
from onlineic.noise.sources import public_generator
from onlineic.progress import Progress, advance, reporting
from onlineic.queries.expressions import dense
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.testing.streams import STEP, STREAMS, Stream, cells_of, probes
from onlineic.updates.base import ExactBound, UpdateRule, rule_at, rule_for_stream

Rule = UpdateRule[Any]
UNBOUNDED_STEPS = 40  # updates of a rule without T(alpha)


def check_hypothesis(hypothesis: Hypothesis, *, seed: int = 0) -> None:
    """Check that a hypothesis, ours or a plug-in's, is a function of the query alone, with values in [0, 1].

    Evaluation must be finite, repeatable, independent of order and batch to the last bit, and survive a
    pickle; a query of another domain must be declined by `supports`.

    Args:
        seed: At least 0. Of the probing queries.

    Raises:
        AssertionError: With the promise that is broken.
    """
    whose = f"{type(hypothesis).__name__} (the hypothesis)"
    assert isinstance(hypothesis, Hypothesis), (
        f"{whose} must have domain, supports, evaluate and evaluate_many; one is missing."
    )
    domain = hypothesis.domain
    assert isinstance(domain, Domain), f"{whose} must have a Domain, got a {type(domain).__name__}."
    foreign = dense(np.array([0.0, 1.0, 1.0])).bind(Domain.of(elsewhere=3))
    assert not hypothesis.supports(foreign), f"{whose} must not support a query of another domain."
    assert domain.size > 1, f"domain must have two or more cells to be asked about, got {domain.size}."
    queries = [query for query in probes(domain, seed) if hypothesis.supports(query)]
    assert queries, f"{whose} must support some query of its own domain, got none of those tried."
    alone = [hypothesis.evaluate(query) for query in queries]
    for value in alone:
        assert isinstance(value, float), f"{whose}.evaluate must return a float, got {type(value).__name__}."
        assert 0.0 <= value <= 1.0, f"{whose}.evaluate must be finite and in [0, 1], got {value}."
    together = hypothesis.evaluate_many(queries)
    assert isinstance(together, np.ndarray), f"{whose}.evaluate_many must return a numpy array."
    assert together.shape == (len(queries),), (
        f"{whose}.evaluate_many must have shape ({len(queries)},), got {together.shape}."
    )
    assert together.tolist() == alone, f"{whose}.evaluate_many must return the same bits as evaluate."
    assert hypothesis.evaluate_many([]).shape == (0,), f"{whose}.evaluate_many([]) must have shape (0,)."
    again = [hypothesis.evaluate(query) for query in reversed(queries)][::-1]
    assert again == alone, f"{whose}.evaluate must not depend on what was evaluated before."
    copied = [pickle.loads(pickle.dumps(hypothesis)).evaluate(query) for query in queries]
    assert copied == alone, f"{whose} must evaluate to the same bits after a pickle round trip."


def check_update_rule(
    rule: Rule,
    *,
    domain: Domain | None = None,
    alpha: float = 0.2,
    truths: Sequence[Any] | None = None,
    steps: int = 2000,
    seed: int = 0,
    progress: Progress | Literal["bar"] | None = None,
) -> None:
    """Check that an update rule, ours or a plug-in's, keeps every promise that a session relies on.

    The rule is a frozen value (equality, repr, pickle); `init` and `update` are pure and deterministic; a
    hypothesis is sound (`check_hypothesis`); the first update along a query moves its answer towards the
    measurement; partitions and priors work; and no random or adversarial stream of legal updates (gap above
    alpha, answers exact or off by just under alpha) is longer than `update_bound`.

    Streams are of any weights. A hypothesis that declines those (`supports` is False of weights that are no
    product over attributes) is asked single cells and ranges instead.

    Dwork & Roth (2014), Definition 5.3, with a strict gap.

    Args:
        domain: By default 2 x 3 cells.
        alpha: In (0, 1). Gap of the streams.
        truths: One entry a cell. Histograms (normalised here) to learn; give your own if the rule relies on a
            promise about the data. By default a point mass, two cells, and a skewed one.
        steps: At least 1. Updates after which a stream is cut off.
        seed: At least 0. Of the streams.
        progress: Called with (stage, done, total), or "bar". Told after each part of the check, since that of
            a slow rule takes minutes; "bar" shows a bar of tqdm.

    Raises:
        AssertionError: With the promise that is broken, and by whom.
    """
    domain = Domain.of(a=2, b=3) if domain is None else domain
    check_domain(domain)
    alpha = checked_real("alpha", alpha, above=0.0, below=1.0)
    steps = checked_integer("steps", steps, at_least=1)
    listed = _truths(domain) if truths is None else checked_list("truths", truths)
    assert listed, "truths must be one or more histograms, got none; leave them out."
    histograms = [_normalised(truth, domain) for truth in listed]
    _check_frozen(rule)
    rule = rule_at(rule_for_stream(rule, steps, 1_000_000), domain, alpha)
    bound = _checked_bound(rule, domain, alpha)
    checker = _Checker(rule, domain, alpha, seed)
    parts: list[tuple[str, Callable[[], None]]] = [
        ("start", checker.check_start),
        ("direction", checker.check_direction),
        ("partitions", checker.check_partition),
        ("prior", checker.check_prior),
    ]
    for truth in histograms:
        for stream in STREAMS:
            for offset in (0.0, alpha * (1.0 - 1e-6)):
                run = partial(checker.check_stream, truth, stream, offset, bound, steps)
                parts.append((f"stream {len(parts) - 3}", run))
    with reporting(progress):
        for done, (name, check) in enumerate(parts):
            advance(f"check of {type(rule).__name__}, {name}", done, len(parts))
            check()
        advance(f"check of {type(rule).__name__}", len(parts), len(parts))


def _check_frozen(rule: Rule) -> None:
    remedy = f"{rule.__name__}()" if isinstance(rule, type) else "MultiplicativeWeights()"
    assert isinstance(rule, UpdateRule), (
        f"a rule must be an UpdateRule, got a {type(rule).__name__}; write {remedy}."
    )
    copy = pickle.loads(pickle.dumps(rule))
    assert copy == rule, (
        f"{shown(rule, 200)} (the rule) must equal its pickle; make it an attrs.frozen class."
    )
    assert repr(copy) == repr(rule), (
        f"{shown(rule, 200)} (the rule) must show its settings only, not its address."
    )
    for name in (
        *getattr(rule, "__dict__", ()),
        *(field.name for field in getattr(rule, "__attrs_attrs__", ())),
    ):
        try:
            setattr(rule, name, getattr(rule, name))
        except AttributeError:
            continue
        raise AssertionError(
            f"{shown(rule, 200)} (the rule) must be frozen, but {name} can be set; use attrs.frozen."
        )


def _checked_bound(rule: Rule, domain: Domain, alpha: float) -> int | None:
    """Return T(alpha), an integer that does not grow with alpha."""
    bounds = [rule.update_bound(domain, factor * alpha) for factor in (1.0, 1.5, 2.0)]
    for bound in bounds:
        assert bound is None or (type(bound) is int and bound >= 0), (
            f"{shown(rule, 200)}.update_bound must be None or an int >= 0, got {shown(bound)}."
        )
    known = [math.inf if bound is None else bound for bound in bounds]
    assert bounds[0] is None or known == sorted(known, reverse=True), (
        f"{shown(rule, 200)}.update_bound must not grow with alpha, got {bounds} at 1, 1.5 and 2 times "
        f"{alpha:g}."
    )
    exact = rule.exact_update_bound(domain, alpha) if isinstance(rule, ExactBound) else bounds[0]
    assert (exact is None) == (bounds[0] is None), f"{shown(rule, 200)} must have both bounds or none."
    assert exact is None or bounds[0] in (math.floor(exact), math.floor(exact + 1e-9)), (
        f"{shown(rule, 200)}.update_bound must be floor(exact_update_bound), got {bounds[0]} and {exact}."
    )
    return bounds[0]


@final
class _Checker:
    """One rule over one domain, with a fixed set of probing queries."""

    def __init__(self, rule: Rule, domain: Domain, alpha: float, seed: int) -> None:
        self.rule, self.domain, self.alpha, self.seed = rule, domain, alpha, seed
        self.start = self.init()
        tried = probes(domain, seed)
        self.probes = [query for query in tried if self.start.supports(query)]
        self.declines = len(self.probes) < len(tried)

    def init(self, prior: Hypothesis | None = None) -> Hypothesis:
        hypothesis: Hypothesis = self.rule.init(self.domain, prior)
        assert isinstance(hypothesis, Hypothesis), f"{shown(self.rule, 200)}.init must return a Hypothesis."
        assert hypothesis.domain == self.domain, (
            f"{shown(self.rule, 200)}.init must keep the domain it was given."
        )
        return hypothesis

    def seen(self, hypothesis: Hypothesis) -> list[float]:
        values: list[float] = hypothesis.evaluate_many(self.probes).tolist()
        assert all(0.0 <= value <= 1.0 for value in values), (
            f"{shown(self.rule, 200)}: after an update the hypothesis must evaluate to finite numbers in "
            f"[0, 1], "
            f"got {next(value for value in values if not 0.0 <= value <= 1.0)}; the update left its range."
        )
        return values

    def updated(self, hypothesis: Hypothesis, past: tuple[Measurement, ...]) -> Hypothesis:
        """Return the update, having checked that it changed none of its arguments."""
        before, values = self.seen(hypothesis), [measurement.values.copy() for measurement in past]
        whose = repr(self.rule)
        try:
            result: Hypothesis = self.rule.update(hypothesis, past, self.alpha)
        except Exception as error:
            raise AssertionError(
                f"{whose}.update must take every legal measurement, but raised {shown(error)}."
            ) from error
        assert isinstance(result, Hypothesis), (
            f"{whose}.update must return a Hypothesis, got {shown(result)}."
        )
        assert whose == repr(self.rule), f"{whose}.update must not change the rule itself."
        assert all(map(np.array_equal, values, [measurement.values for measurement in past])), (
            f"{whose}.update must not write to the measurements: they are the session's record."
        )
        self.seen(result)
        assert before == self.seen(hypothesis), (
            f"{whose}.update must not change the hypothesis it is given: a failed commit goes back to it."
        )
        return result

    def check_start(self) -> None:
        assert self.seen(self.start) == self.seen(self.init()), (
            f"{shown(self.rule, 200)}.init must be deterministic."
        )
        check_hypothesis(self.start, seed=self.seed)

    def check_direction(self) -> None:
        """A first measurement above the guess moves it up, one below down, and not beyond [0, 1]."""
        for query in self.probes:
            guess = self.start.evaluate(query)
            for value in (guess + 0.3, guess - 0.3):
                if query.grid_bits or not 0.0 <= value <= 1.0:
                    continue
                result = self.updated(self.start, (Measurement(query, np.array([value]), 0.01),))
                moved = (result.evaluate(query) - guess) * (1.0 if value > guess else -1.0)
                assert moved > 0.0, (
                    f"{shown(self.rule, 200)}.update must move towards the measurement: at the guess "
                    f"{guess:g} and the "
                    f"answer {value:g} it went to {guess + moved * (1.0 if value > guess else -1.0):g}; "
                    "the sign of the step is wrong, or there is none."
                )
                check_hypothesis(result, seed=self.seed)

    def check_partition(self) -> None:
        """Measurements of whole partitions are legal; the guess of one moves as little as the rule likes."""
        hypothesis, past = self.init(), ()  # type: tuple[Hypothesis, tuple[Measurement, ...]]
        for axis, size in enumerate(self.domain.shape):
            values = public_generator(self.seed + axis).dirichlet(np.ones(size))
            past = (*past, Measurement(Partition(self.domain, (axis,), (np.arange(size),)), values, 0.01))
            hypothesis = self.updated(hypothesis, past)

    def check_prior(self) -> None:
        """A public prior is refused by InvalidParameterError, or used and left as it was.

        Used is one that the first answers are nearer to than those of a start without it.
        """
        prior = Histogram(self.domain, np.arange(1.0, self.domain.size + 1.0))
        before = self.seen(prior)
        try:
            hypothesis = self.init(prior)
        except InvalidParameterError:
            return
        assert before == self.seen(prior), (
            f"{shown(self.rule, 200)}.init must leave the prior as it was: the caller's."
        )
        near, far = (
            max(abs(value - wanted) for value, wanted in zip(self.seen(one), before, strict=True))
            for one in (hypothesis, self.start)
        )
        assert near < far, (
            f"{shown(self.rule, 200)}.init must start from the prior that it is given, but answers up to "
            f"{near:.3g} "
            f"from it, without one up to {far:.3g}; use it, or refuse it by InvalidParameterError."
        )
        query = next(query for query in self.probes if not query.grid_bits)
        self.updated(hypothesis, (Measurement(query, np.array([0.5]), 0.01),))
        assert before == self.seen(prior), (
            f"{shown(self.rule, 200)}.update must leave the prior as it was: the caller's."
        )

    def _bound(self, weights: Floats) -> Query:
        return dense(np.clip(weights, 0.0, 1.0)).bind(self.domain)

    def check_stream(
        self,
        truth: Floats,
        stream: Stream,
        offset: float,
        bound: int | None,
        steps: int,
    ) -> None:
        """Ask hard queries until there is none; the answers are off by `offset`, towards the guess."""
        generator = public_generator(self.seed)
        points = cells_of(self.domain)
        hypothesis, past = self.init(), ()  # type: tuple[Hypothesis, tuple[Measurement, ...]]
        limit = min(steps, UNBOUNDED_STEPS if bound is None else bound + 1)
        for _ in range(limit):
            cells = hypothesis.evaluate_many(points)
            dense_ones = map(self._bound, stream(truth, cells, self.alpha, generator))
            for query in [*self.probes, *points] if self.declines else dense_ones:
                value = float(query.weights().ravel() @ truth) / (1 << query.grid_bits)
                gap = value - hypothesis.evaluate(query)
                if query.constant is None and abs(gap) > self.alpha + STEP / 8:
                    break
            else:
                break
            noisy = value - math.copysign(offset, gap)
            past = (*past, Measurement(query, np.array([noisy]), self.alpha / 10))
            # the whole contract is checked on a few updates of each stream: it costs several evaluations
            checked = len(past) <= 4 or len(past) == limit
            update = (
                self.updated if checked else lambda old, all_past: self.rule.update(old, all_past, self.alpha)
            )
            hypothesis = update(hypothesis, past)
        end = self.seen(hypothesis)
        assert bound is None or len(past) <= bound, (
            f"{shown(self.rule, 200)}.update_bound claims {bound} updates at alpha={self.alpha:g} over "
            f"{self.domain.size} cells, but a legal stream needed {len(past)}: the rule breaks its own "
            "T(alpha), by a wrong step or a wrong bound."
        )
        copy, again = pickle.loads(pickle.dumps(self.rule)), self.init()
        for count in range(1, len(past) + 1):
            again = copy.update(again, past[:count], self.alpha)
        assert end == self.seen(again), (
            f"{shown(self.rule, 200)}.update must be deterministic: the same measurements led to another "
            f"hypothesis."
        )


def _truths(domain: Domain) -> list[Floats]:
    """A point mass, two cells, and a skewed histogram."""
    point, pair = np.zeros(domain.size), np.zeros(domain.size)
    point[0] = 1.0
    pair[[0, -1]] = 0.3, 0.7
    return [point, pair, np.asarray(0.5 ** np.arange(domain.size), np.float64)]


def _normalised(truth: Any, domain: Domain) -> Floats:
    try:
        array = np.array(truth, np.float64).ravel()
    except Exception:  # whatever the object raises
        array = np.zeros(0)
    if array.shape != (domain.size,) or not (array >= 0.0).all() or not 0.0 < array.sum() < math.inf:
        raise InvalidParameterError(
            f"truths must be histograms of {domain.size} cells, got shape {array.shape}; give counts, >= 0."
        )
    return np.asarray(array / array.sum())
