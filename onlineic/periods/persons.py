"""Who has rows in several blocks: what is said of such persons, and how many rows of one a node can hold.

Proof: docs/theory/periods.md, 13.3, 13.4.
"""

from typing import final

import attrs

from onlineic.errors import InvalidParameterError, checked_integer, set_fields


@final
@attrs.frozen(kw_only=True)
class Persons:
    """One person with all of their rows is protected: at most one row in a block, in so many blocks.

    In which blocks the rows of a person lie is not protected. That nobody has more is the curator's promise,
    from public knowledge: no earlier block is looked at for a person's other rows.

    Theory 13.3 and 13.4.

    Args:
        periods: The most blocks in which anybody has a row.
        within: So many consecutive blocks hold all rows of anybody. Priced as `periods` of the same number,
            which covers such a person too.

    Raises:
        InvalidParameterError: If neither is given, or one is below 1.
    """

    periods: int | None = None
    within: int | None = None

    def __attrs_post_init__(self) -> None:
        given = {
            name: checked_integer(name, value, at_least=1)
            for name, value in (("periods", self.periods), ("within", self.within))
            if value is not None
        }
        if not given:
            raise InvalidParameterError(
                "periods or within must be given, got neither; write Persons(periods=3) for rows in at most "
                "three blocks, or Persons(within=3) for three consecutive ones."
            )
        set_fields(self, **given)

    @property
    def rows(self) -> int:
        """The most rows of one person in all blocks together."""
        return min(one for one in (self.periods, self.within) if one is not None)

    def said(self, finest: str) -> str:
        """Return who is protected, in words, where blocks are called so."""
        where = []
        if self.periods is not None:
            where.append(f"at most {self.periods} {finest}{'s' * (self.periods > 1)}")
        if self.within is not None:
            where.append(f"{self.within} consecutive {finest}s" if self.within > 1 else f"one {finest}")
        return f"all rows of a person who has at most one in a {finest}, in {' and within '.join(where)}"
