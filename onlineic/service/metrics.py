"""Numbers of a server in the text form of Prometheus: all of them public, and all of them listed here."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from onlineic.ledger.settings import package_version
from onlineic.service.scheduler import Scheduler

# name, kind, what it means, and its number
NUMBERS: tuple[tuple[str, str, str, Callable[[Scheduler], Any]], ...] = (
    (
        "waiting",
        "gauge",
        "cost of the questions that wait, a plain one counts 1",
        lambda scheduler: scheduler.waiting,
    ),
    (
        "uncounted",
        "gauge",
        "requests told from the view, not counted yet",
        lambda scheduler: scheduler.uncounted,
    ),
    ("turns_total", "counter", "turns of the answering thread", lambda scheduler: scheduler.turns),
    ("records", "gauge", "places of the record", lambda scheduler: scheduler.view.length),
    (
        "budget_spent",
        "gauge",
        "part of the budget that is spent or reserved, 0 to 1",
        lambda scheduler: scheduler.view.statistics.spent,
    ),
    (
        "measured_answers_left",
        "gauge",
        "measured answers that can still be paid, at least",
        lambda scheduler: scheduler.view.statistics.hard_left,
    ),
    (
        "sealed",
        "gauge",
        "1 once nothing more is tested until a restart",
        lambda scheduler: int(scheduler.view.statistics.sealed),
    ),
    ("ready", "gauge", "1 while questions can be answered", lambda scheduler: int(scheduler.ready)),
)
COUNTED = (
    ("answers_total", "status", "answers by status, refusals by code"),
    ("responses_total", "code", "replies by status of HTTP"),
)
INFO = ("info", "gauge", "1, with the version of the package")


def metrics_of(scheduler: Scheduler, replies: Counter[int]) -> str:
    """Return all numbers of now."""
    lines = [*_headed(*INFO), f'onlineic_info{{version="{package_version()}"}} 1']
    held: tuple[Counter[Any], ...] = (scheduler.answered, replies)
    for (name, label, text), counts in zip(COUNTED, held, strict=True):
        lines += _headed(name, "counter", text)
        lines += [f'onlineic_{name}{{{label}="{one}"}} {many}' for one, many in sorted(counts.items())]
    for name, kind, text, number in NUMBERS:
        lines += [*_headed(name, kind, text), f"onlineic_{name} {number(scheduler)}"]
    return "\n".join([*lines, ""])


def _headed(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP onlineic_{name} {text}", f"# TYPE onlineic_{name} {kind}"]
