"""Who is protected: what of a table belongs to one person, and what a person counts.

Proof: docs/theory/queries.md, 1.7.
"""

from typing import Literal, final

import attrs

from onlineic.errors import InvalidParameterError, checked_integer, set_fields, shown

UNITS = (64, 16, 1)  # a person's parts: finer ones have no plan where epsilon is small


@final
@attrs.frozen
class Unit:
    """One person with all of their rows is protected, however many these are; every person counts one.

    A person is `units` equal parts, each on one cell: of the cells of their rows each has its share of the
    rows, rounded up or down to whole parts. So a number of records is a number of persons, weighed: of
    somebody half of whose rows are in the emergency room, one half counts as there. How many rows a person
    has is protected with them.

    Parameters
    ----------
    person : str, optional
        Column that tells whose row it is: whole numbers or texts, never missing. It is no attribute. None:
        each record is a person of its own, as where an attribute is a `number` and no unit is given.
    units : 64, 16 or 1
        Fewer where epsilon is so small that 64 have no plan; 1 is one row a person, chosen by a public hash.
    weigh : "persons"
        What one counts. Of rows the public number would tell how many a person has.

    Raises
    ------
    InvalidParameterError
        If a parameter is another.
    """

    person: str | None
    units: int = attrs.field(default=UNITS[0], kw_only=True)
    weigh: Literal["persons"] = attrs.field(default="persons", kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.person is not None and (type(self.person) is not str or not self.person):
            raise InvalidParameterError(
                f"person must be the name of a column, got person={shown(self.person)}; write "
                "Unit(person='id')."
            )
        units = checked_integer("units", self.units, at_least=1)
        if units not in UNITS:
            raise InvalidParameterError(f"units must be 64, 16 or 1, got units={units}; leave it out for 64.")
        set_fields(self, units=units)
        if self.weigh != "persons":
            raise InvalidParameterError(
                f"weigh must be 'persons', got weigh={shown(self.weigh)}: a public number of rows "
                "would tell how many a person has; leave it out, and ask for persons."
            )

    @property
    def said(self) -> str:
        """What is protected, in words."""
        if self.person is None:
            return f"one record, in {self.units} parts"
        return f"all rows of a person (by {shown(self.person, 40)}), weighed to one"


def check_unit(unit: object, names: tuple[str, ...]) -> None:
    """Raise `InvalidParameterError` unless this is a unit of a table with these attributes, or None."""
    if unit is None:
        return
    if type(unit) is not Unit:
        raise InvalidParameterError(
            f"unit must be a Unit or None, got {shown(unit)}; write unit=Unit(person='id')."
        )
    if unit.person is not None and unit.person in names:
        raise InvalidParameterError(
            f"unit must name a column that is no attribute, got person={shown(unit.person)}: an attribute is "
            "asked about; take it out of the domain."
        )


def persons_of(n: int, unit: Unit | None) -> int:
    """Return how many persons so many equal parts are, or how many records where each is one."""
    return n if unit is None else n // unit.units


def whose(unit: Unit | None) -> str:
    """Return what is counted, in a word."""
    return "records" if unit is None or unit.person is None else "persons"
