"""Periods by their labels: days, months, quarters and years, each inside one of the next coarser level."""

from collections.abc import Iterable
from typing import final

import attrs

from onlineic.domain.dates import dates
from onlineic.errors import InvalidDomainError, InvalidParameterError, checked_list, set_fields, shown

LONGEST = 10  # letters of a label
LEVELS = ("day", "month", "quarter", "year")  # finest first: each period lies in one of the next level


@final
@attrs.frozen
class Calendar:
    """The levels of a table that grows, finest first.

    Args:
        levels: Iterable of "day", "month", "quarter" and "year". The finest is that of its blocks.

    Raises:
        InvalidParameterError: If there is none, one is unknown or there twice, or they are not in this order.
    """

    levels: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        given: object = self.levels
        listed = [given] if isinstance(given, str) else checked_list("levels", given)
        places = [LEVELS.index(one) for one in listed if one in LEVELS]
        if not listed or len(places) < len(listed) or sorted({*places}) != places:
            raise InvalidParameterError(
                f"levels must be some of {', '.join(LEVELS)}, finest first, got {shown(given)}; write "
                "('month', 'year')."
            )
        set_fields(self, levels=tuple(listed))

    @property
    def finest(self) -> str:
        """The level of the blocks."""
        return self.levels[0]

    @property
    def most_blocks(self) -> int:
        """The most blocks that a period of the coarsest level has."""
        first = {"day": "2024-01-31", "month": "2024-01", "quarter": "2024-Q1", "year": "2024"}
        return len(self.within(first[self.levels[-1]], self.finest))

    def level(self, label: object) -> str:
        """Return the level of a label.

        Raises:
            InvalidParameterError: If it is that of no period of these levels.
        """
        if isinstance(label, str) and len(label) <= LONGEST:
            for level in self.levels:
                if _is_label(label, level):
                    return level
        samples = {"day": "2026-01-31", "month": "2026-01", "quarter": "2026-Q1", "year": "2026"}
        said = ", ".join(f"{level} such as {shown(samples[level])}" for level in self.levels)
        raise InvalidParameterError(f"label must name a {said}, got {shown(label)}; write it so.")

    def within(self, label: str, level: str) -> tuple[str, ...]:
        """Return the periods of a finer level that lie in one, in order."""
        kind = dates(label, label, by=level)
        return tuple(str(kind.label(code)) for code in range(kind.size))

    def around(self, label: str, level: str) -> str:
        """Return the period of a coarser level that a period lies in."""
        return dates(label, label, by=level).first

    def following(self, label: str) -> str:
        """Return the block after one."""
        year = dates(label, label, by="year").first
        kind = dates(year, f"{int(year) + 1:04}", by=self.finest)
        return str(kind.label(kind.code("label", label) + 1))

    def coarser(self, blocks: Iterable[str]) -> int:
        """Return how many periods of coarser levels lie wholly in some blocks."""
        held = {*blocks}
        found = 0
        for level in self.levels[1:]:
            outer = {self.around(label, level) for label in held}
            found += sum(held.issuperset(self.within(one, self.finest)) for one in outer)
        return found


def _is_label(text: str, level: str) -> bool:
    """Return whether a text is written as the label of one period of this level."""
    try:
        kind = dates(text, text, by=level)
    except InvalidDomainError:
        return False
    return kind.size == 1 and kind.first == text
