"""Options of a command that goes on with a ledger file: they must be those under which it was opened."""

import argparse
from typing import Any, NoReturn

import attrs

from onlineic.cli.numbers import wish_written
from onlineic.errors import LedgerMismatchError
from onlineic.ledger.kinds import Line
from onlineic.plan.settings import Settings
from onlineic.session.durable import counted_of, unit_of, wish_in

OPTIONS = ("hard_answers", "certify", "questions", "max_queries", "restarts", "rows_per_person")


def check_options(beginning: Line, arguments: argparse.Namespace, *, left_out: bool) -> None:
    """Raise `LedgerMismatchError` that says what to type, where an option is another than in the ledger.

    Args:
        beginning: The first line of the ledger.
        arguments: As they were typed.
        left_out: Whether an option that was left out stands for its default; else it leaves what the ledger
            says.
    """
    if beginning.get("total") or arguments.table not in (None, beginning["table"]):
        return  # this session does not go on with it, as it tells by itself
    unit, counted = unit_of(beginning), counted_of(beginning)
    relation = "replace-one" if counted is None else "add-remove"
    for option, must, typed in (
        ("--person", None if unit is None else unit.person, arguments.person),
        ("--neighbours", relation, arguments.neighbours),
    ):
        if typed != must:
            _refuse(option, must, typed)
    held = beginning["settings"]
    wish, typed = wish_written(wish_in(beginning)), getattr(arguments, "within", None)
    if (typed is not None or left_out) and wish != wish_written(typed):
        _refuse("--within", wish, wish_written(typed))
    budget = held["budget"]["fields"]
    wanted: dict[str, tuple[Any, Any]] = {
        **({} if arguments.epsilon is None else {name: (budget[name], 0.0) for name in ("epsilon", "delta")}),
        **{name: (held.get(name), attrs.fields_dict(Settings)[name].default) for name in OPTIONS},
    }
    for name, (value, default) in wanted.items():
        value, given = default if value is None else value, getattr(arguments, name, None)
        if given is None and not left_out:
            continue
        given = default if given is None else given
        if value != given and isinstance(
            value, float | int | None
        ):  # what no option can say the session tells
            _refuse(
                "--" + name.replace("_", "-"),
                None if value == default else value,
                None if given == default else given,
            )


def _refuse(option: str, must: float | str | None, got: float | str | None) -> NoReturn:
    said, remedy = ("left out", "leave it out") if must is None else (must, f"write {option} {must}")
    raise LedgerMismatchError(
        f"{option} must be {said}, as the ledger was opened, got {'none' if got is None else got}; {remedy}, "
        "or open a new ledger (budgets add)."
    )
