"""The interface of database-update algorithms.

Proof: docs/theory/updates.md, 7.7.
"""

import abc
import math
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from onlineic._typing import Floats
from onlineic.bounds.certificates import checked_updates
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.by_sets import joint
from onlineic.hypothesis.histogram import Histogram
from onlineic.hypothesis.product import ProductHistogram
from onlineic.queries.partitions import Measurement

H = TypeVar("H", bound=Hypothesis)


class UpdateRule(abc.ABC, Generic[H]):
    """A database-update algorithm: frozen settings, pure and deterministic; sees no data and no noise.

    Check one of your own with `onlineic.testing.check_update_rule`.

    Dwork & Roth (2014), Definition 5.3, with a strict gap: in a sequence of updates every query has
    |f(x) - f(D^t)| > alpha and its noisy answer |f(x) - v| < alpha. T(alpha) bounds the length of any such
    sequence.

    Attributes:
        fits_all: Whether the new hypothesis is fitted to all measurements, each by its noise. Then it tells
            what is known best of a question, and a hit hands that out (theory 6.2); else it hands out what
            was measured.
    """

    fits_all: ClassVar[bool] = False

    @abc.abstractmethod
    def init(self, domain: Domain, prior: Hypothesis | None = None) -> H:
        """Return D^1, from a public prior or the rule's own start."""

    @abc.abstractmethod
    def update(self, hypothesis: H, measurements: tuple[Measurement, ...], alpha: float) -> H:
        """Return D^(t+1) from D^t and all measurements so far, oldest first, never empty.

        Args:
            alpha: Gap that an update may rely on, fraction of records.
        """

    @abc.abstractmethod
    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        """Return floor T(alpha), or None if no bound is proven."""

    def most_passes(self, releases: int) -> int | None:
        """Return how often at most one update goes through the numbers of its hypothesis; None: unknown.

        These are its cells, class cells, small databases or parameters (theory 7.7).

        Args:
            releases: Measurements so far.
        """
        return None


@runtime_checkable
class ExactBound(Protocol):
    """A rule that tells T(alpha) before it is rounded down; the theorems' alpha is solved with it."""

    def exact_update_bound(self, domain: Domain, alpha: float) -> float | None:
        """Return T(alpha), or None if no bound is proven."""


@runtime_checkable
class HasParameters(Protocol):
    """A rule whose hypothesis is a function of a few numbers: a session resumes from them, not by replay."""

    def parameters(self, hypothesis: Any) -> tuple[Floats, ...]:
        """Return the numbers, one array or more; a function of the measurements, as the hypothesis is."""

    def restored(
        self, start: Any, measurements: tuple[Measurement, ...], parameters: tuple[Floats, ...]
    ) -> Any:
        """Return the hypothesis that had these parameters, to the bit.

        Args:
            start: What `init` returns.
            measurements: All that it had learned from, oldest first.
        """


@runtime_checkable
class NeedsAccuracy(Protocol):
    """A rule whose start depends on alpha: the session fixes it once alpha is known."""

    def for_stream(self, max_queries: int, n: int) -> UpdateRule[Hypothesis]:
        """Return the rule that knows the length of the stream and n."""

    def at(self, domain: Domain, alpha: float) -> UpdateRule[Hypothesis]:
        """Return the rule fixed for this accuracy."""


def starting_histogram(domain: Domain, prior: Hypothesis | None) -> Histogram:
    """Return the histogram of a public start, which may be a fitted one; the uniform one without a start."""
    prior = joint(prior)
    histogram = Histogram(domain) if prior is None else getattr(prior, "histogram", prior)
    if isinstance(histogram, ProductHistogram) and histogram.domain == domain:
        histogram = histogram.dense()
    if not isinstance(histogram, Histogram) or histogram.domain != domain:
        got = "one over another" if isinstance(histogram, Histogram) else f"a {type(prior).__name__}"
        raise InvalidParameterError(
            f"prior must be a Histogram over the session's domain, got "
            f"{got}; write Histogram(domain, weights)."
        )
    return histogram


def proven_bound(
    exact: Callable[[Domain, float], float | None], domain: Domain, *, otherwise: float
) -> Callable[[float], float] | None:
    """Return alpha -> T(alpha), `otherwise` where a rule has none at this alpha; None if none is proven.

    None is also infinity, which no plan can pay.

    Raises:
        InvalidParameterError: If what the rule, which anybody may have written, tells is no number >= 0:
            here, and of each alpha.
    """

    def told(alpha: float) -> float | None:
        value: Any = exact(domain, alpha)
        return None if value is None else checked_updates(value, alpha)

    if told(0.5) is None:
        return None

    def bound(alpha: float) -> float:
        value = told(alpha)
        return otherwise if value is None or value == math.inf else value

    return bound


def rule_for_stream(rule: UpdateRule[Any], max_queries: int, n: int) -> UpdateRule[Any]:
    """Return the rule that knows the length of the stream and n, where it asks for them."""
    return rule.for_stream(max_queries, n) if isinstance(rule, NeedsAccuracy) else rule


def rule_at(rule: UpdateRule[Any], domain: Domain, alpha: float) -> UpdateRule[Any]:
    """Return the rule fixed for this accuracy, where it needs to be."""
    return rule.at(domain, alpha) if isinstance(rule, NeedsAccuracy) else rule


def check_rule(update: object) -> None:
    """Raise `InvalidParameterError` unless this is an update rule or None."""
    if update is not None and not isinstance(update, UpdateRule):
        got, remedy = f"a {type(update).__name__}", "MultiplicativeWeights()"
        if isinstance(update, type):
            got, remedy = f"the class {update.__name__}", f"{update.__name__}()"
        raise InvalidParameterError(f"update must be an UpdateRule, got {got}; write {remedy}.")
