"""Mechanisms that break their promise, each by one slip: an audit that does not find them finds nothing.

Two families. `THRESHOLD_BREACHES` are variants of the sparse vector technique as they were published or
printed, and of ours; their losses are exact sums. `SESSION_BREACHES` are slips around it, planted in the
running engine through what a user may bring: noise, ledger and update rule.
"""

from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints, Words
from onlineic.accounting.budget import Budget
from onlineic.audit.laws import Law, ThresholdRule, worst_loss
from onlineic.data.private import PrivateData
from onlineic.domain.domain import Domain
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.histogram import Histogram
from onlineic.noise.sources import Noise
from onlineic.queries.expressions import one_of, where
from onlineic.queries.partitions import Measurement
from onlineic.session.session import OnlineIC
from onlineic.updates.base import UpdateRule
from onlineic.updates.multiplicative_weights import MultiplicativeWeights


@final
@attrs.frozen
class ThresholdBreach:
    """A variant of the sparse vector technique that was claimed to cost `claimed`.

    Attributes
    ----------
    name : str
    rule : ThresholdRule
    claimed : float
        Epsilon.
    released : "bit" or "value"
        What a hit shows; "value" is the noisy value that was compared.
    """

    name: str
    rule: ThresholdRule
    claimed: float = 1.0
    released: Literal["bit", "value"] = "bit"

    def loss(self) -> float:
        """Return the largest |ln P/P'| of the family of `worst_loss`: above `claimed`."""
        return worst_loss(self.rule, released=self.released)


def _laplace(scale: float | Fraction) -> Law:
    return Law("discrete_laplace", Fraction(scale))


_NONE = Law("none")

# Lyu, Su & Li (2017), Figure 1, at epsilon = 1 and c = 3 hits; then what two textbooks print
THRESHOLD_BREACHES = (
    ThresholdBreach(
        "Lyu, Su & Li, Algorithm 3: the noisy value that was compared is released",
        ThresholdRule(60, _laplace(2), _laplace(6), 3),
        released="value",
    ),
    ThresholdBreach(
        "Lyu, Su & Li, Algorithm 4: test noise without the number of hits",
        ThresholdRule(60, _laplace(4), _laplace(Fraction(4, 3)), 3),
    ),
    ThresholdBreach(
        "Lyu, Su & Li, Algorithm 5: no test noise, no end", ThresholdRule(60, _laplace(2), _NONE, 3)
    ),
    ThresholdBreach("Lyu, Su & Li, Algorithm 6: no end", ThresholdRule(60, _laplace(2), _laplace(2), 12)),
    ThresholdBreach(
        "Sparse as printed: half of the test noise that a kept threshold needs",
        ThresholdRule(60, _laplace(2), _laplace(6), 3),
    ),
    ThresholdBreach(
        "AboveThreshold with test noise 4/(3 epsilon)",
        ThresholdRule(60, _laplace(2), _laplace(Fraction(4, 3))),
    ),
    ThresholdBreach("AboveThreshold without threshold noise", ThresholdRule(60, _NONE, _laplace(4))),
    ThresholdBreach(
        "a threshold drawn again at the noise of one that is kept",
        ThresholdRule(
            60, _laplace(Fraction(43, 10)), _laplace(Fraction(78, 10)), 3, redraw=_laplace(Fraction(43, 10))
        ),
    ),
)


DOMAIN = Domain.of(x=4)
TABLE, NEIGHBOUR = (20, 0, 10, 10), (19, 1, 10, 10)  # one record replaced
BUDGET = Budget(1.0)
# two numbers are bought, whatever the table
PLAIN: dict[str, object] = {
    "sparse": "laplace",
    "threshold": 0.01,
    "hard_answers": 2,
    "update": MultiplicativeWeights(rate=0.1),
}

Slip = Callable[[Noise, PrivateData], dict[str, object]]


@final
@attrs.frozen
class SessionBreach:
    """A session of the running engine, of claimed epsilon 1, with a slip in what it was given.

    Attributes
    ----------
    name : str
    slip : callable, optional
        From a source of noise and the table to settings of `OnlineIC`; None: there is no slip.
    claimed : float
    learned : bool
        Whether a third answer is looked at, and not the first two.
    """

    name: str
    slip: Slip | None = None
    claimed: float = 1.0
    learned: bool = False

    def run(self, counts: tuple[int, ...], noise: Noise) -> Hashable:
        """Return what an analyst makes of two answers of one session on this table."""
        data = PrivateData(np.array(counts), DOMAIN)
        settings = PLAIN | {"noise": noise} | (self.slip(noise, data) if self.slip is not None else {})
        session = OnlineIC(data, BUDGET, **settings)  # type: ignore[arg-type]
        first, second = (session.answer(where(x=cell)) for cell in (0, 1))
        if self.learned:  # untested, or tested and easy: what the hypothesis says
            third = session.answer(where(x=one_of(0, 2)))
            return "learned", round(data.n * third.value)
        if second.hard:
            return first.hard, "difference", round(data.n * (first.value - second.value))
        return first.hard, "easy", round(data.n * second.value)


@final
class _Slipped(Noise):
    """Another source's noise, changed by one function of a whole draw."""

    def __init__(self, source: Noise, change: Callable[[Ints], Ints]) -> None:
        self._source, self._change = source, change

    @property
    def simulated(self) -> bool:
        return self._source.simulated

    def words(self, size: int) -> Words:
        return self._source.words(size)

    def geometric(self, scale: Fraction, size: int) -> Ints:
        return self._change(self._source.geometric(scale, size))

    def discrete_laplace(self, scale: Fraction, size: int) -> Ints:
        return self._change(self._source.discrete_laplace(scale, size))

    def discrete_gaussian(self, sigma: int, size: int) -> Ints:
        return self._change(self._source.discrete_gaussian(sigma, size))

    def unread(self, count: int) -> None:
        self._source.unread(count)


class _Echo:
    """The first value, for ever."""

    def __init__(self) -> None:
        self._first: int | None = None

    def __call__(self, drawn: Ints) -> Ints:
        if self._first is None:
            self._first = int(drawn[0])
        return np.full_like(drawn, self._first)


@final
class _Peeking(UpdateRule[Histogram]):
    """A rule that was built from the table, and learns it at the first hit."""

    def __init__(self, data: PrivateData) -> None:
        shares = [data.exact_counts(where(x=cell).bind(DOMAIN)) / data.n for cell in range(4)]
        self._learned = Histogram(DOMAIN, np.maximum(shares, 1e-12))

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Histogram:
        return Histogram(domain)

    def update(self, hypothesis: Histogram, measurements: tuple[Measurement, ...], alpha: float) -> Histogram:
        return self._learned

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return None


SESSION_BREACHES = (
    SessionBreach("noise that is zero", lambda noise, data: {"noise": _Slipped(noise, np.zeros_like)}),
    SessionBreach("noise that is used again", lambda noise, data: {"noise": _Slipped(noise, _Echo())}),
    SessionBreach(
        "noise that ends at three counts",
        lambda noise, data: {"noise": _Slipped(noise, lambda drawn: np.clip(drawn, -3, 3))},
    ),
    SessionBreach(
        "noise of a hundredth of its scale",
        lambda noise, data: {"noise": _Slipped(noise, lambda drawn: np.rint(drawn / 100).astype(np.int64))},
    ),
    SessionBreach(
        "an update rule that was shown the table",
        lambda noise, data: {"update": _Peeking(data)},
        learned=True,
    ),
)
RIGHT_SESSIONS = (
    SessionBreach("two numbers, a session without a slip"),
    SessionBreach("a session as it opens by default", lambda noise, data: dict.fromkeys(PLAIN)),
)
