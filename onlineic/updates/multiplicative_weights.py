"""Multiplicative weights: the hypothesis is a distribution, tilted along each hard query."""

import math
from typing import Literal, final

import attrs

from onlineic.bounds import mw_book_bound, mw_tight_bound
from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError, checked_real
from onlineic.hypothesis import Histogram, Hypothesis
from onlineic.queries import Measurement
from onlineic.updates.base import UpdateRule

__all__ = ["MultiplicativeWeights"]

MAX_RATE = 100.0


@final
@attrs.frozen
class MultiplicativeWeights(UpdateRule[Histogram]):
    """p(x) <- p(x) exp(s * rate * f(x)) / Z with s = +1 if v >= f(p) else -1, from the uniform start.

    Parameters
    ----------
    variant : "tight" or "book"
        tight: rate 4 alpha, T = ln|X| / (2 alpha^2). book: rate alpha/2, T = 4 ln|X| / alpha^2.
    rate : float in (0, 100], optional
        A free rate instead; voids T(alpha).

    Notes
    -----
    The potential is KL(x || p). By Hoeffding's lemma a step of size `rate` against a gap > alpha lowers it
    by at least rate * gap - rate^2/8, which is 2 alpha^2 at rate 4 alpha and at least alpha^2/4 (the book's
    count) at rate alpha/2. `update_bound` is for the uniform start: a prior that is wrong somewhere can need
    more, see `exact_update_bound`.

    References
    ----------
    Dwork & Roth (2014), Algorithm 5 and Theorem 4.10 without its "+1", which its proof does not need.
    Hardt & Rothblum (2010).
    """

    variant: Literal["tight", "book"] = "tight"
    rate: float | None = None

    def __attrs_post_init__(self) -> None:
        if self.variant not in ("tight", "book"):
            raise InvalidParameterError(f"variant must be 'tight' or 'book', got variant={self.variant!r}.")
        if self.rate is not None:
            rate = checked_real("rate", self.rate, above=0.0, at_most=MAX_RATE)
            object.__setattr__(self, "rate", rate)

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Histogram:
        if prior is None:
            return Histogram(domain)
        if not isinstance(prior, Histogram) or prior.domain != domain:
            raise InvalidParameterError(
                f"prior must be a Histogram over the session's domain, got a {type(prior).__name__}."
            )
        return prior

    def update(self, hypothesis: Histogram, measurements: tuple[Measurement, ...], alpha: float) -> Histogram:
        query, value, guess = measurements[-1].against(hypothesis)
        step = self.rate or float(alpha) * (4.0 if self.variant == "tight" else 0.5)
        return hypothesis.tilted(query, step if value >= guess else -step)

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        bound = self.exact_update_bound(domain, alpha)
        return None if bound is None else math.floor(bound)

    def exact_update_bound(
        self, domain: Domain, alpha: float, prior: Histogram | None = None
    ) -> float | None:
        """Return T(alpha), before rounding down; None with a free rate.

        From a prior the largest divergence is ln(1 / its least probability) in place of ln|X|.
        """
        if self.rate is not None:
            return None
        if prior is not None:
            divergence = -math.log(float(prior.probabilities().min()))
            steps = mw_tight_bound(domain.size, alpha, divergence)
            return steps if self.variant == "tight" else 8.0 * steps
        bound = mw_tight_bound if self.variant == "tight" else mw_book_bound
        return bound(domain.size, alpha)
