"""Who is protected: what of a table belongs to one person, and what a person counts.

Proof: docs/theory/queries.md, 1.7.
"""

from typing import Literal, final

import attrs

from onlineic.errors import InvalidParameterError, check_choice, checked_integer, set_fields, shown
from onlineic.slips import public

UNITS = (64, 16, 1)  # a person's parts: finer ones have no plan where epsilon is small


@public
@final
@attrs.frozen
class Unit:
    """One person with all of their rows is protected, however many these are; every person counts one.

    A person is split into `units` equal parts. Each cell gets as many parts as the person's share of rows
    there, rounded up or down. So counts are weighed numbers of persons: somebody with half of their rows in
    the emergency room counts as half a person there. The number of a person's rows is protected, too.

    Args:
        person: Column that tells whose row it is: whole numbers or texts, never missing. It is no attribute.
            None: each record is a person of its own, as where an attribute is a `number` and no unit is
            given.
        units: 64, 16 or 1. The largest number of parts. If epsilon is too small for a plan with so many, the
            first session of the table takes fewer; only budget, settings and the number of persons decide
            that. 1: one row a person, chosen by a public hash.
        weigh: Whether a person or a row counts one. Rows need `at_most`, and a table of neighbours
            "add-remove", because a public number of rows would tell how many a person has.
        at_most: k, with rows: the most of each person that count, chosen by a public hash and that person's
            rows alone. From public knowledge, never from the table. Noise is k times that of one row.
        per: One row a period is refused.

    Raises:
        InvalidParameterError: If a parameter is another.
    """

    person: str | None
    units: int = attrs.field(default=UNITS[0], kw_only=True)
    weigh: Literal["persons", "rows"] = attrs.field(default="persons", kw_only=True)
    at_most: int | None = attrs.field(default=None, kw_only=True, metadata={"later": True})
    per: None = attrs.field(default=None, kw_only=True, metadata={"later": True})

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
        check_choice("weigh", self.weigh, "persons", "rows")
        if self.per is not None:
            raise InvalidParameterError(
                f"per must be None, got per={shown(self.per)}: what one row a period moves depends on each "
                "question, and nothing is proven of whole sessions; load one row of a person a period, and "
                "say how many there can be by at_most."
            )
        if (self.weigh == "rows") is not (self.at_most is not None):
            raise InvalidParameterError(
                f"at_most must be given with weigh='rows' and only with it, got weigh={shown(self.weigh)}, "
                f"at_most={shown(self.at_most)}; write Unit(person='id', weigh='rows', at_most=10)."
            )
        if self.at_most is not None:
            if self.person is None:
                raise InvalidParameterError("person must name a column with weigh='rows', got None.")
            set_fields(self, at_most=checked_integer("at_most", self.at_most, at_least=1), units=1)

    @property
    def moved(self) -> int:
        """How many records of the table one person is, at most."""
        return self.units if self.at_most is None else self.at_most

    @property
    def sensitivity(self) -> int:
        """By how much one person moves the number that is counted: of persons, or of rows."""
        return 1 if self.at_most is None else self.at_most

    @property
    def said(self) -> str:
        """What is protected, in words."""
        if self.person is None:
            return f"one record, in {self.units} parts"
        if self.at_most is not None:
            return (
                f"all rows of a person (by {shown(self.person, 40)}), of which at most {self.at_most} count"
            )
        fewer = "" if self.units == UNITS[0] else f" in {self.units} part{'s' * (self.units > 1)}"
        return f"all rows of a person (by {shown(self.person, 40)}), weighed to one{fewer}"


def check_unit(unit: object, names: tuple[str, ...], n_private: bool = False) -> None:
    """Raise `InvalidParameterError` unless this is a unit of a table with these attributes, or None."""
    if unit is None:
        return
    if type(unit) is not Unit:
        raise InvalidParameterError(
            f"unit must be a Unit or None, got {shown(unit)}; write unit=Unit(person='id')."
        )
    if unit.weigh == "rows" and not n_private:
        raise InvalidParameterError(
            "weigh must be 'persons' where n is public, got weigh='rows': a public number of rows would tell "
            'how many a person has; leave it out, or load with neighbours="add-remove".'
        )
    if unit.person is not None and unit.person in names:
        raise InvalidParameterError(
            f"unit must name a column that is no attribute, got person={shown(unit.person)}: an attribute is "
            "asked about; take it out of the domain."
        )


def cut_anew(unit: Unit) -> tuple[Unit, ...]:
    """Return this unit and those of fewer parts of the same person, the finest first."""
    if unit.person is None or unit.at_most is not None:
        return (unit,)
    return tuple(attrs.evolve(unit, units=units) for units in UNITS if units <= unit.units)


def persons_of(n: int, unit: Unit | None) -> int:
    """Return how many persons so many equal parts are, or how many records where each is one."""
    return n if unit is None else n // unit.units


def parts_of(persons: int, unit: Unit | None) -> int:
    """Return how many equal parts so many persons, or records, are."""
    return persons if unit is None else persons * unit.units


def whose(unit: Unit | None) -> str:
    """Return what is counted, in a word."""
    if unit is None or unit.person is None:
        return "records"
    return "persons" if unit.at_most is None else "rows"


def protected(unit: Unit | None, n_private: bool) -> str:
    """Return what is protected, in words; with the number of records also whether one is there."""
    what = "one record" if unit is None else unit.said
    return f"{what}, and whether it is there at all" if n_private else what
