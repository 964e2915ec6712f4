"""What the mechanisms of this wing share: how they meet the table, and what all their results say.

A mechanism checks everything public, makes a `Release`, and returns a `Result`.
"""

import abc
from collections.abc import Callable
from typing import TypeVar, final

import attrs

from onlineic.accounting.budget import Budget
from onlineic.data.private import PrivateData
from onlineic.data.release import check_types, checked_noise, checked_release, is_private, released, stamp
from onlineic.display.text import probability
from onlineic.errors import checked_real
from onlineic.noise.sources import Noise

T = TypeVar("T")


@final
@attrs.frozen(eq=False, repr=False)
class Release:
    """One release of a table: checked, and charged before anything is read.

    Attributes:
        beta: Failure probability of what will be stated.
    """

    data: PrivateData
    budget: Budget
    noise: Noise
    beta: float

    @classmethod
    def of(
        cls, data: PrivateData, budget: Budget, noise: Noise | None, beta: float, least: float | None = None
    ) -> "Release":
        """Return a release at a budget; nothing is spent yet.

        Args:
            noise: None: the system's entropy.
            beta: At least `least`, or above 0, and below 1.
        """
        check_types(data, budget)
        return cls(data, budget, checked_noise(noise), _checked_beta(beta, least))

    @classmethod
    def pure(
        cls, data: PrivateData, epsilon: float, noise: Noise | None, beta: float, least: float | None = None
    ) -> "Release":
        """Return a release at an epsilon, with delta 0, for the neighbours of the table."""
        source, budget = checked_release(data, epsilon, noise)
        return cls(data, budget, source, _checked_beta(beta, least))

    @property
    def private(self) -> bool:
        """Whether the noise is the system's: what is released is private."""
        return is_private(self.noise)

    def read(self, private: Callable[[], T]) -> T:
        """Charge the budget, then return what `private` reads and draws; its failure shows no number."""
        return released(self.data, self.budget, self.noise, private)


def _checked_beta(beta: float, least: float | None) -> float:
    if least is None:
        return checked_real("beta", beta, above=0.0, below=1.0)
    return checked_real("beta", beta, at_least=least, below=1.0)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Result(abc.ABC):
    """What a mechanism has released.

    Attributes:
        beta: Probability that a stated bound fails.
        private: False: noise was simulated, so the result is NOT PRIVATE.
    """

    beta: float
    private: bool

    @abc.abstractmethod
    def _shown(self) -> str:
        """Return what the text of the result says between its brackets."""

    @property
    def _sure(self) -> str:
        """The probability that a stated bound holds, as text."""
        return probability(1 - self.beta)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown()}{stamp(self.private)})"
