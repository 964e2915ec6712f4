"""A session on a table of persons: its settings, and a plan that there may be none of.

Each of a person's equal parts is a record of the plan, and gets its part of the person's budget.

Proof: docs/theory/accounting.md, 4.8; docs/theory/queries.md, 1.7.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import attrs

from onlineic.domain.unit import UNITS, Unit
from onlineic.errors import InfeasibleAccuracyError, InternalError, InvalidParameterError, shown
from onlineic.plan.settings import Settings

T = TypeVar("T")


def of_persons(unit: Unit | None, drawn: bool, settings: Settings) -> Settings:
    """Return settings in which the budget is that of a person of a table with this unit.

    Parameters
    ----------
    unit : Unit, optional
    drawn : bool
        Whether the table draws on a total: its shares are those of one part already.
    settings : Settings

    Raises
    ------
    InvalidParameterError
        If they name another number of rows, or leave no budget for one part of a person.
    """
    if unit is None:
        return settings
    if settings.rows_per_person != 1:
        raise InvalidParameterError(
            f"rows_per_person must be left out where records are in parts, got rows_per_person="
            f"{settings.rows_per_person}; load the table with Unit(person=..): that protects all rows of a "
            "person."
        )
    if drawn:
        return settings
    with planning(unit, settings):
        return attrs.evolve(settings, rows_per_person=unit.moved)


def finest(units: Sequence[Unit | None], made: Callable[[Unit | None], T]) -> tuple[Unit | None, T]:
    """Return the unit of most parts with which a session can be planned, and what is made for it.

    Parameters
    ----------
    units : sequence of Unit or None
        The finest first.
    made : (unit) -> result
        From public facts alone.

    Raises
    ------
    InfeasibleAccuracyError, InvalidParameterError
        Of the finest, if there is no plan with any.
    """
    failed: Exception | None = None
    for unit in units:
        try:
            return unit, made(unit)
        except (InfeasibleAccuracyError, InvalidParameterError) as error:
            failed = failed or error
    raise failed or InternalError("a table must have a unit, or None.")


@contextlib.contextmanager
def planning(unit: Unit | None, settings: Settings) -> Iterator[None]:
    """Let an error of planning name what divides the budget, or the unit with which there may be a plan."""
    try:
        yield
    except (InfeasibleAccuracyError, InvalidParameterError) as error:
        if unit is None or unit.units == UNITS[-1]:
            rows = settings.rows_per_person
            if rows == 1:  # or the total of the table divided it
                raise
            name = "rows_per_person" if unit is None else "at_most"
            raise type(error)(
                f"{str(error).rstrip('.')}; epsilon and delta here are those of one row, from "
                f"{settings.budget} with {name}={shown(rows)}: cap the rows of a person at fewer before "
                "loading, or raise epsilon."
            ) from None
        coarser = UNITS[UNITS.index(unit.units) + 1]
        raise type(error)(
            f"{str(error).rstrip('.')}; each of a person's {unit.units} parts is a record here: load the "
            f"table with Unit(person={shown(unit.person)}, units={coarser}), or raise epsilon."
        ) from None
