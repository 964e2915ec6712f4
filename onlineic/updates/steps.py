"""How practical sessions run their rules: steps as long as measured, a fitted start, fits now and then.

Proof: docs/theory/updates.md, 7.6.
"""

import itertools
import math
from collections.abc import Iterable
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    checked_integer,
    checked_real,
    shown,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.queries.partitions import Measurement
from onlineic.updates.base import HasParameters, UpdateRule, check_rule, starting_histogram
from onlineic.updates.maximum_entropy import MaximumEntropy

TRIES = 20  # mostly two to five are made
CLOSE = 0.02  # of the way: nearer than any noise
LONGEST = 100.0  # alpha: weights move by e^400 at most


@final
@attrs.frozen
class MeasuredSteps(UpdateRule[Any]):
    """A rule whose every step goes as far as was measured, f(h') = v, in the place of a step of one alpha.

    A constant alpha must serve the smallest gap that is ever updated on: it creeps along where gaps are
    larger, and moves past v where they are smaller.

    A step of the weights along a 0/1 query helps iff it ends nearer to f(x) in the divergence of two coins,
    one of the perceptron iff it ends nearer in distance (theory 7.6). Nothing says how far v is off in terms
    of the gap, so there is no T(alpha): `update_bound` is None, and no plan is certified.

    Args:
        rule: One that moves f(h) towards v, further with a larger alpha: `MultiplicativeWeights`,
            `Perceptron`.
        left_out: At least 0. Standard deviations of the noise by which the way to v is shortened: no further,
            no step.
    """

    rule: UpdateRule[Any]
    left_out: float = 0.0

    def __attrs_post_init__(self) -> None:
        check_rule(self.rule)
        object.__setattr__(self, "left_out", checked_real("left_out", self.left_out, at_least=0.0))

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Any:
        return self.rule.init(domain, prior)

    def update(self, hypothesis: Any, measurements: tuple[Measurement, ...], alpha: float) -> Any:
        query, value, guess = measurements[-1].against(hypothesis)
        scale = measurements[-1].scale
        inside = min(scale, 0.5)
        gap = min(max(value, inside), 1.0 - inside) - guess
        way = abs(gap) - self.left_out * scale
        if way <= 0.0 or (gap > 0) != (value > guess):
            return hypothesis
        target = guess + math.copysign(way, gap)
        aim = (*measurements[:-1], Measurement(query, np.array([target]), scale))
        step, growth, moved, left = way, 4.0, hypothesis, target - guess  # alpha moves f(h) by alpha at most
        for _ in range(TRIES):  # steps along one query add up, and back where one went too far
            before, moved = left, self.rule.update(moved, aim, step)
            left = target - moved.evaluate(query)
            if abs(left) <= CLOSE * way:
                break
            if left * before < 0.0:
                growth = 0.5
            made = abs(left - before)
            step = min(LONGEST, growth * step, step * abs(left) / made if made > 0.0 else math.inf)
            growth = max(growth, 1.0)
        return moved if abs(left) < way else hypothesis

    def most_passes(self, releases: int) -> int | None:
        each = self.rule.most_passes(releases)
        return None if each is None else TRIES * each

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return None


@final
@attrs.frozen
class FittedStart(UpdateRule[Any]):
    """A rule that starts from the maximum-entropy fit of the tables that a session buys first.

    The tables are released, so the fit is post-processing and a public prior to what follows. The rule itself
    sees the measurements after them. Nothing bounds the updates from there: `update_bound` is None.

    Args:
        rule: One that takes a `Histogram` as its prior.
        tables: At least 1. How many measurements come first.
        misfit: In [0, 1). As in `MaximumEntropy`: where the fit of the tables stops.
    """

    rule: UpdateRule[Any]
    tables: int
    misfit: float = 0.0

    def __attrs_post_init__(self) -> None:
        check_rule(self.rule)
        object.__setattr__(self, "tables", checked_integer("tables", self.tables, at_least=1))
        object.__setattr__(self, "misfit", checked_real("misfit", self.misfit, at_least=0.0, below=1.0))

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Any:
        return self.rule.init(domain, prior)

    def update(self, hypothesis: Any, measurements: tuple[Measurement, ...], alpha: float) -> Any:
        if len(measurements) > self.tables:
            return self.rule.update(hypothesis, measurements[self.tables :], alpha)
        fit, domain = MaximumEntropy(misfit=self.misfit), hypothesis.domain
        fitted = fit.update(fit.init(domain), measurements, alpha)
        return self.rule.init(domain, starting_histogram(domain, fitted))

    def most_passes(self, releases: int) -> int | None:
        later = self.rule.most_passes(releases)
        return None if later is None else max(later, MaximumEntropy(misfit=self.misfit).most_passes(releases))

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return None


@final
@attrs.frozen
class FittedAt(UpdateRule[Any]):
    """A rule that fits again once so many measurements are there, all of them, and rests in between.

    For a session that measures every question: no answer is the hypothesis's, and what a fit costs grows with
    the numbers that it fits. Where the counts double, all fits together cost about two of the last.

    Args:
        rule: One that reads all measurements at each update: `MaximumEntropy`, `MixtureOfProducts`.
        counts: Each at least 1, rising. How many measurements there are when it fits; after the last it rests
            for good.
    """

    rule: UpdateRule[Any]
    counts: tuple[int, ...]

    def __attrs_post_init__(self) -> None:
        check_rule(self.rule)
        given: object = self.counts  # whatever was given
        listed = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
        counts = tuple(checked_integer("counts", count, at_least=1) for count in listed)
        if not counts or any(later <= count for count, later in itertools.pairwise(counts)):
            raise InvalidParameterError(
                f"counts must be integers, each above the one before, got {shown(given)}; write (1, 2, 4)."
            )
        object.__setattr__(self, "counts", counts)

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Any:
        return self.rule.init(domain, prior)

    def update(self, hypothesis: Any, measurements: tuple[Measurement, ...], alpha: float) -> Any:
        due = len(measurements) in self.counts
        return self.rule.update(hypothesis, measurements, alpha) if due else hypothesis

    def parameters(self, hypothesis: Any) -> tuple[Floats, ...]:
        """Return the numbers that the rule makes the hypothesis of again, none if it repeats its updates."""
        return self.rule.parameters(hypothesis) if isinstance(self.rule, HasParameters) else ()

    def restored(
        self, start: Any, measurements: tuple[Measurement, ...], parameters: tuple[Floats, ...]
    ) -> Any:
        """Return the hypothesis that had these parameters."""
        if not isinstance(self.rule, HasParameters):
            raise InvalidParameterError(
                f"rule must have parameters to be restored of, got a {type(self.rule).__name__}; "
                "repeat its updates."
            )
        return self.rule.restored(start, measurements, parameters)

    def most_passes(self, releases: int) -> int | None:
        return self.rule.most_passes(releases)

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return None
