"""Options of a command that goes on with a ledger file: they must be those under which it was opened."""

import argparse
from typing import Any

import attrs

from onlineic.errors import LedgerMismatchError, shown
from onlineic.ledger.lines import Line
from onlineic.plan.settings import Settings

OPTIONS = ("hard_answers", "certify", "questions", "max_queries", "restarts", "rows_per_person")


def check_options(beginning: Line, arguments: argparse.Namespace, *, left_out: bool) -> None:
    """Raise `LedgerMismatchError` that says what to type, where an option is another than in the ledger.

    Parameters
    ----------
    beginning : dict
        The first line of the ledger.
    arguments : Namespace
        As they were typed.
    left_out : bool
        Whether an option that was left out stands for its default; else it leaves what the ledger says.
    """
    if beginning.get("total"):
        return  # no session goes on with it
    held = beginning["settings"]
    budget = held["budget"]["fields"]
    wanted: dict[str, tuple[Any, Any]] = {
        **({} if arguments.epsilon is None else {name: (budget[name], 0.0) for name in ("epsilon", "delta")}),
        **{name: (held.get(name), attrs.fields_dict(Settings)[name].default) for name in OPTIONS},
    }
    for name, (value, default) in wanted.items():
        value, given = default if value is None else value, getattr(arguments, name, None)
        if given is None and not left_out:
            continue
        if value == (given := default if given is None else given) or not isinstance(
            value, float | int | None
        ):
            continue  # what no option can say is told by the session
        option = "--" + name.replace("_", "-")
        usual = value == default
        must, remedy = ("left out", "leave it out") if usual else (f"{value}", f"write {option} {value}")
        raise LedgerMismatchError(
            f"{option} must be {must}, as the ledger was opened, got "
            f"{'none' if given == default else shown(given)}; {remedy}, or open a new ledger (budgets add)."
        )
