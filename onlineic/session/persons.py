"""A session on a table of persons: its settings, and a plan that there may be none of.

Each of a person's equal parts is a record of the plan, and gets its part of the person's budget.

Proof: docs/theory/accounting.md, 4.8; docs/theory/queries.md, 1.7.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import attrs

from onlineic.domain.unit import UNITS, Unit
from onlineic.errors import InfeasibleAccuracyError, InternalError, InvalidParameterError, shown
from onlineic.plan.settings import Settings

T = TypeVar("T")
NOT_GIVEN = re.compile("epsilon|the noise|.*scale")  # what a plan settles: a caller gives the budget


def of_persons(unit: Unit | None, drawn: bool, settings: Settings) -> Settings:
    """Return settings in which the budget is that of a person of a table with this unit.

    Args:
        drawn: Whether the table draws on a total: its shares are those of one part already.

    Raises:
        InvalidParameterError: If they name another number of rows, or leave no budget for one part of a
            person.
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
    """Try units from the finest to the coarsest; return the first that can be planned with, and its plan.

    Args:
        units: The finest first.
        made: From public facts alone.

    Raises:
        InfeasibleAccuracyError, InvalidParameterError: Of the coarsest, if there is no plan with any.
    """
    failed: Exception | None = None
    for unit in units:
        try:
            return unit, made(unit)
        except (InfeasibleAccuracyError, InvalidParameterError) as error:
            failed = error
    raise failed or InternalError("a table must have a unit, or None.")


@contextlib.contextmanager
def planning(unit: Unit | None, settings: Settings) -> Iterator[None]:
    """Let an error of planning name the budget that was given, what divides it, and what makes a plan.

    The error itself speaks of one part of a person, or of a share of the budget: numbers that nobody gave.
    One of another argument, or of an accuracy that nothing divides, passes as it is.
    """
    try:
        yield
    except (InfeasibleAccuracyError, InvalidParameterError) as error:
        why, rows = str(error).rstrip("."), settings.rows_per_person
        given = NOT_GIVEN.fullmatch(why.partition(" must ")[0]) is None
        if given and not isinstance(error, InfeasibleAccuracyError):
            raise
        if unit is not None and unit.units != UNITS[-1]:
            coarser = UNITS[UNITS.index(unit.units) + 1]
            whom = f"{unit.units} equal parts of each {'record' if unit.person is None else 'person'}"
            remedy = f"load the table with unit=Unit(person={shown(unit.person)}, units={coarser})"
        elif rows > 1:
            whom = f"{rows:,} rows of each person"
            remedy = "cap the rows of a person at fewer before loading"
        elif given:
            raise
        else:
            whom, remedy = "any plan of a session", ""
        less = "lower hard_answers" if settings.hard_answers is not None else ""
        remedies = ", ".join(filter(None, (remedy, less, "or raise epsilon"))).removeprefix("or ")
        raise type(error)(
            f"budget must be larger for {whom}, got epsilon={settings.budget.epsilon:g}, "
            f"delta={settings.budget.delta:g}{f' (of one of them {why})' if given else ''}; "
            f"{remedies}."
        ) from None
