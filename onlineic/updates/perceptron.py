"""The perceptron: signed cell weights, moved by a constant step along each hard query.

Proof: docs/theory/updates.md, 7.3.
"""

import math
from typing import Literal, final

import attrs
import numpy as np

from onlineic.bounds.updates import perceptron_book_bound, perceptron_centred_bound
from onlineic.domain.domain import Domain
from onlineic.errors import check_choice, checked_real, set_fields
from onlineic.hypothesis.base import Hypothesis, check_size
from onlineic.hypothesis.histogram import Histogram
from onlineic.hypothesis.signed import SignedHistogram
from onlineic.queries.partitions import Measurement
from onlineic.slips import public
from onlineic.updates.base import UpdateRule, starting_histogram


@public
@final
@attrs.frozen
class Perceptron(UpdateRule[SignedHistogram]):
    """p <- p - step * f if f(p) > v else p + step * f, on signed cell weights.

    Entries may be negative, and `evaluate` clips the answer, never the state. `update_bound` is for the
    rule's own start, see `exact_update_bound`.

    Dwork & Roth (2014), Algorithm 12 and Theorem 5.11 (with p2 for the private ||x||_2^2).

    Args:
        variant: book: from zero, step alpha/|X|, T = p2 |X| / alpha^2. centred: from uniform, along f minus
            its mean with step 4 alpha/|X|, so the sum stays 1; T = (|X| p2 - 1) / (4 alpha^2).
        p2: In (0, 1]. PUBLIC bound on the squared length of the private histogram, in fractions: 1 always
            holds; 1/n where every cell holds at most one record. The length itself is private and must not be
            used.
    """

    variant: Literal["centred", "book"] = "centred"
    p2: float = 1.0

    def __attrs_post_init__(self) -> None:
        check_choice("variant", self.variant, "centred", "book")
        set_fields(self, p2=checked_real("p2", self.p2, above=0.0, at_most=1.0))

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> SignedHistogram:
        if prior is not None:
            return SignedHistogram(domain, starting_histogram(domain, prior).probabilities())
        check_size(domain)
        start = 0.0 if self.variant == "book" else 1.0 / domain.size
        return SignedHistogram(domain, np.full(domain.shape, start))

    def update(
        self, hypothesis: SignedHistogram, measurements: tuple[Measurement, ...], alpha: float
    ) -> SignedHistogram:
        query, value, guess = measurements[-1].against(hypothesis)
        step = (4.0 if self._centred else 1.0) * float(alpha) / hypothesis.domain.size
        return hypothesis.shifted(query, -step if guess > value else step, centre=self._centred)

    def most_passes(self, releases: int) -> int:
        return 1

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return math.floor(self.exact_update_bound(domain, alpha))

    def exact_update_bound(self, domain: Domain, alpha: float, prior: Histogram | None = None) -> float:
        """Return T(alpha), before rounding down.

        From a prior q the largest squared distance is p2 - 2 min q + ||q||^2.
        """
        if prior is not None:
            cells = prior.probabilities()
            distance = max(0.0, self.p2 - 2.0 * float(cells.min()) + float((cells**2).sum()))
            return distance * perceptron_book_bound(domain.size, alpha) / (4.0 if self._centred else 1.0)
        bound = perceptron_centred_bound if self._centred else perceptron_book_bound
        return bound(domain.size, alpha, max(self.p2, 1.0 / domain.size))

    @property
    def _centred(self) -> bool:
        return self.variant == "centred"
