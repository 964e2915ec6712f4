"""Of which sets of attributes a table can be counted: public, and known before anything is asked.

Proof: docs/theory/session.md, 4.12.
"""

import math
from typing import final

import attrs

from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, TooLargeError, shown

Axes = tuple[int, ...]


@final
@attrs.frozen
class Reach:
    """The sets of attributes of which a table that stays where it lives can be counted.

    Attributes:
        cells: The most cells that a set may span. A table of fewer records has no more groups than records,
            so that its limit is that of the domain.
        sets: Rising places in the domain: these sets, and what is inside one of them, can be counted. None:
            any.

    Raises:
        InvalidParameterError: If the number of cells is none.
    """

    cells: int
    sets: tuple[Axes, ...] | None = None

    def __attrs_post_init__(self) -> None:
        if type(self.cells) is not int or self.cells < 1:
            raise InvalidParameterError(
                f"cells must be a whole number >= 1, got {shown(self.cells)}; take what the table says."
            )

    def holds(self, shape: tuple[int, ...], axes: Axes) -> bool:
        """Return whether the table of these attributes can be counted; `shape` is that of the domain."""
        if math.prod(shape[axis] for axis in axes) > self.cells:
            return False
        return self.sets is None or not axes or any({*axes} <= {*one} for one in self.sets)

    def is_whole(self, domain: Domain) -> bool:
        """Return whether every set of attributes can be counted."""
        return self.sets is None and domain.size <= self.cells

    def check(self, domain: Domain, axes: Axes) -> None:
        """Raise `TooLargeError` unless the table of these attributes can be counted."""
        if self.holds(domain.shape, axes):
            return
        names = ", ".join(domain.names[axis] for axis in axes)
        if self.sets is not None:
            raise TooLargeError(
                f"question must be about attributes that were counted together at load, got {names}; load "
                "the table with sets=[(..)] that name them, or with counting='on demand' or 'rows'."
            )
        raise TooLargeError(
            f"question must be about attributes of at most {self.cells:,} cells together, where the table is "
            f"counted on demand, got {names}; ask about fewer of them, or load longer ones in bins."
        )
