"""Numbers of a server in the text form of Prometheus: all of them public, and all of them listed here."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from onlineic.ledger.settings import package_version
from onlineic.service.desk import Desk

# name, kind, what it means, and its number
NUMBERS: tuple[tuple[str, str, str, Callable[[Desk], Any]], ...] = (
    ("waiting", "gauge", "cost of the questions that wait, a plain one counts 1", lambda desk: desk.waiting),
    ("uncounted", "gauge", "requests told from the view, not counted yet", lambda desk: desk.uncounted),
    ("turns_total", "counter", "turns of the answering thread", lambda desk: desk.turns),
    ("records", "gauge", "places of the record", lambda desk: desk.view.length),
    (
        "budget_spent",
        "gauge",
        "part of the budget that is spent or reserved, 0 to 1",
        lambda desk: desk.view.statistics.spent,
    ),
    (
        "measured_answers_left",
        "gauge",
        "measured answers that can still be paid, at least",
        lambda desk: desk.view.statistics.hard_left,
    ),
    (
        "sealed",
        "gauge",
        "1 once nothing more is tested until a restart",
        lambda desk: int(desk.view.statistics.sealed),
    ),
    ("ready", "gauge", "1 while questions can be answered", lambda desk: int(desk.ready)),
)
COUNTED = (
    ("answers_total", "status", "answers by status, refusals by code"),
    ("responses_total", "code", "replies by status of HTTP"),
)
INFO = ("info", "gauge", "1, with the version of the package")


def metrics_of(desk: Desk, replies: Counter[int]) -> str:
    """Return all numbers of now."""
    lines = [*_headed(*INFO), f'onlineic_info{{version="{package_version()}"}} 1']
    held: tuple[Counter[Any], ...] = (desk.answered, replies)
    for (name, label, text), counts in zip(COUNTED, held, strict=True):
        lines += _headed(name, "counter", text)
        lines += [f'onlineic_{name}{{{label}="{one}"}} {many}' for one, many in sorted(counts.items())]
    for name, kind, text, number in NUMBERS:
        lines += [*_headed(name, kind, text), f"onlineic_{name} {number(desk)}"]
    return "\n".join([*lines, ""])


def _headed(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP onlineic_{name} {text}", f"# TYPE onlineic_{name} {kind}"]
