"""A number cut at an attribute's edges by the engine that has the rows: it need not hand out every value.

The engine only says between which two edges a number lies, in Python's own comparison of doubles. Which cell
that is says the attribute, from one number that stands for all of the piece.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar, final

from onlineic._typing import Ints
from onlineic.domain.attributes import EXACT, Attribute, Binned
from onlineic.domain.dates import MINUTES, Dates

MISSING, NAN, POSITIVE, NEGATIVE = -4, -3, -2, -1  # in the place of a piece of finite numbers

EDGES = 500  # above, an engine takes longer to read the expression than to hand out the numbers

T = TypeVar("T")


@final
class Pieces:
    """The pieces of the number line between the finite edges of bins [edge, next edge).

    Piece p holds the finite numbers that are below the edge p, and not below the one before it.

    Attributes:
        edges: Finite, increasing.
        values: A value of every piece: first those of `MISSING`, `NAN`, `POSITIVE` and `NEGATIVE`, then of 0,
            1, ..
    """

    __slots__ = ("edges", "values")

    def __init__(self, kind: Binned) -> None:
        self.edges = [float(edge) for edge in kind.edges if math.isfinite(edge)]
        below = math.nextafter(self.edges[0], -math.inf) if self.edges else 0.0
        finite = [float(math.floor(below)) if kind.integer else below, *self.edges]
        self.values: list[Any] = [None, math.nan, math.inf, -math.inf, *finite]

    def tree(self, is_below: Callable[[float], T], choose: Callable[[T, Any, Any], Any], leaf: Any) -> Any:
        """Return the choice of a finite number's piece: few comparisons deep, even for many edges."""

        def half(first: int, last: int) -> Any:
            if first == last:
                return leaf(first)
            middle = (first + last) // 2
            return choose(is_below(self.edges[middle]), half(first, middle), half(middle + 1, last))

        return half(0, len(self.edges))

    def sql(self, number: str, is_nan: str, infinity: str, double: Callable[[float], str]) -> str:
        """Return the SQL expression of the piece of a column of doubles; missing is asked first.

        Args:
            number, is_nan: Expressions: the double, and whether it is NaN, which equals itself in some
                engines.
            infinity: How the engine writes it.
            double: How it writes an edge; called in the order of the text.
        """
        chosen = self.tree(
            lambda edge: f"{number} < {double(edge)}",
            lambda test, yes, no: f"CASE WHEN {test} THEN {yes} ELSE {no} END",
            str,
        )
        return (
            f"CASE WHEN {number} IS NULL THEN {MISSING} WHEN {is_nan} THEN {NAN} "
            f"WHEN {number} = {infinity} THEN {POSITIVE} WHEN {number} = -{infinity} THEN {NEGATIVE} "
            f"ELSE {chosen} END"
        )

    def value(self, piece: int) -> Any:
        """Return the value that stands for a piece."""
        return self.values[piece - MISSING]

    def places(self, codes: Ints) -> tuple[list[Any], Ints]:
        """Return the values of pieces, and which of them every one of `codes` is."""
        return self.values, codes - MISSING


def pieces(kind: Attribute, *, whole: bool) -> Pieces | None:
    """Return the pieces of an attribute that is cut at edges, None for others.

    Args:
        whole: Whether the column can hold whole numbers only. If not, an attribute that asks for whole
            numbers has to see every value. If so, no edge may be so large that a number beside it is no
            double.
    """
    if not isinstance(kind, Binned) or kind.ends or len(kind.edges) > EDGES or (kind.integer and not whole):
        return None
    if whole and any(EXACT <= abs(edge) < math.inf for edge in kind.edges):
        return None
    return Pieces(kind)


def by_days(kind: Attribute) -> bool:
    """Return whether an attribute takes a time, without a zone, exactly as it takes its day."""
    return isinstance(kind, Dates) and kind.by not in MINUTES
