"""How exact an answer is to be: the wish of whoever asks.

Proof: docs/theory/within.md, 14.1.
"""

import math
from numbers import Real
from typing import Any, final

import attrs

from onlineic.errors import (
    InvalidParameterError,
    checked_integer,
    checked_real,
    set_fields,
    shown,
)
from onlineic.slips import public

USUAL = 1.959963984540054  # deviations of a normal error within which 95 of 100 lie
MOST_STEEP = 14  # of a test: the threshold over the scale of its noise
MOST_PARTS = 2**40  # of a statement: a probability is divided by so many


@public
@final
@attrs.frozen
class Within:
    """A wish: how far an answer may be from the truth, and whether that is to be certain.

    Attributes:
        radius: Above 0. Fraction of the records, or of what the answer is a part of.
        certain: Whether `error_bound` is to be at most so much; else 1.96 expected errors are, and nothing
            promises it.
        parts: In 1 .. 2^40. Answers that a statement is made of: each bound may fail with its part of beta.
        steepness: Threshold over noise scale of the test that a record made for it; 0 without one.

    Raises:
        InvalidParameterError: If the radius is not a number above 0.
    """

    radius: float
    certain: bool = True
    parts: int = attrs.field(default=1, kw_only=True)
    steepness: int = attrs.field(default=0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        radius = self.radius
        if isinstance(radius, bool) or not isinstance(radius, Real):
            raise InvalidParameterError(
                f"within must be a number above 0, or expected(number), got {shown(radius)}; write .01 for "
                "one per cent."
            )
        set_fields(
            self,
            radius=checked_real("within", radius, above=0.0, remedy="write .01 for one per cent"),
            certain=bool(self.certain),
            parts=checked_integer("parts", self.parts, at_least=1, at_most=MOST_PARTS),
            steepness=checked_integer("steepness", self.steepness, at_least=0, at_most=MOST_STEEP),
        )

    @property
    def expected(self) -> float:
        """The expected error, a root mean square, that meets a wish which is not certain."""
        return self.radius / USUAL

    def at_least(self, radius: float) -> "Within":
        """Return the wish, no finer than this radius."""
        return self if self.radius >= radius else attrs.evolve(self, radius=radius)

    def meets(self, bound: float, error: Any) -> bool:
        """Return whether an answer with this bound and expected error, None where unknown, meets the wish."""
        if self.certain:
            return bool(bound <= self.radius)
        return error is not None and bool(
            math.isfinite(largest := _largest(error)) and largest <= self.expected
        )

    def __repr__(self) -> str:
        return f"{self.radius:g}" if self.certain else f"expected({self.radius:g})"


def _largest(error: Any) -> float:
    return float(max(error.flat)) if hasattr(error, "flat") else float(error)


@public
def expected(within: float) -> Within:
    """Return the wish that 95 of 100 answers are expected within so much; no bound promises it.

    It costs a fifth of a certain one or less, where many questions are asked.

    Args:
        within: Above 0. As `within=` of the call or session that it is given to.

    Examples:
        >>> expected(0.01)
        expected(0.01)
    """
    return Within(within, certain=False)


def checked_within(within: Any) -> Within:
    """Return a wish that was given as a number or as `expected(number)`."""
    return within if type(within) is Within else Within(within)
