"""A session and what it hands out as facts in words and as HTML: public, all of it."""

import math
from collections.abc import Sequence
from typing import Any

from onlineic.accounting.budget import Budget
from onlineic.display.html import card, facts, heading, note, share, table
from onlineic.display.text import records, shortened
from onlineic.domain.domain import Domain
from onlineic.queries.answers import Answer
from onlineic.session.answers import SessionStatistics
from onlineic.session.columns import Answers
from onlineic.session.forecasts import Forecast
from onlineic.session.plan import Plan

SHOWN = 10  # answers of a batch that are shown, first and last
Facts = list[tuple[str, str]]


def plan_facts(plan: Plan) -> Facts:
    """Return what a plan settles, in words."""
    n = plan.sparse.n
    threshold = plan.sparse.threshold / (n << plan.sparse.grid_bits)
    said: Facts = [
        ("tests", f"{type(plan.sparse).__name__}: an answer that misses by more than about "
         f"{records(n * threshold)} records is measured"),
        ("learns by", shortened(repr(plan.update), 120)),
    ]  # fmt: skip
    if plan.first_tables is not None:
        part = float(plan.first_tables.charge.amount / plan.sparse.account().capacity)
        many = len(plan.first_tables.targets)
        said.append(("first tables", f"{many} of counts, released at the start for {part:.0%} of the budget"))
    released = "a whole table of counts" if plan.partitions is not None else "one number"
    said.append(("a measured answer", f"releases {released}; planned for {plan.hard_answers:,}"))
    promise = "every answer" if plan.certified else "every easy answer"
    bound = f"{promise} of the first {plan.max_queries:,} at once within ± {plan.error_bound:.3g}"
    said.append(("promise", f"{bound}, with probability {1.0 - plan.beta:g}"))
    if plan.textbook:
        said.append(("mode", "textbook: the theorem's own bound, 3 alpha, on every answer"))
    return said


def plan_html(plan: Plan) -> str:
    """Return a plan as a block of HTML."""
    return card(f"Plan for {plan.sparse.n:,} records", facts(plan_facts(plan)))


def budget_facts(budget: Budget, stats: SessionStatistics) -> Facts:
    """Return what is spent and what is left, in words."""
    given = f"{stats.asked:,}: {stats.easy:,} easy, {stats.hard:,} measured, {stats.repeat:,} repeated"
    said: Facts = [
        ("budget", f"epsilon = {budget.epsilon:g}, delta = {budget.delta:g}, for everything together"),
        ("measured answers left", f"{stats.hard_left:,} ({stats.spent:.1%} of the budget used or set aside)"),
        ("answers", given + f", {stats.untested:,} untested" * bool(stats.untested)),
    ]
    if math.isfinite(stats.error_bound):
        holds = (
            f"± {stats.error_bound:.3g} for all tested answers at once, with probability {1 - stats.beta:g}"
        )
        said.append(("bound", holds))
    if stats.sealed:
        said.append(("sealed", "a test was interrupted: nothing more is tested"))
    return said


def domain_fact(domain: Domain) -> tuple[str, str]:
    """Return what a domain is, in words."""
    names = ", ".join(f"{name} ({kind.size:,})" for name, kind in domain)
    return "domain", shortened(f"{domain.size:,} cells: {names}", 300)


def session_html(domain: Domain, n: int, plan: Plan, stats: SessionStatistics) -> str:
    """Return a session as a block of HTML."""
    return card(
        f"Session on {n:,} records",
        share(stats.spent, "budget used or set aside"),
        facts([domain_fact(domain), *budget_facts(stats.budget, stats)]),
        heading("Plan"),
        facts(plan_facts(plan)),
        private=stats.private,
    )


def answer_rows(answers: Sequence[Answer]) -> list[list[str]]:
    """Return query, records, bound and status of answers, as text."""
    rows = []
    for answer in answers:
        written = "" if answer.query is None else shortened(answer.query.written, 120)
        bounded = answer.n is not None and math.isfinite(answer.error_bound)
        bound = f"± {records(answer.n * answer.error_bound)}" if bounded else "no bound"  # type: ignore[operator]
        size = getattr(answer.value, "size", None)
        count = records(float(answer.count)) if size is None else f"table of {size:,} cells"
        rows.append([written, count, bound, answer.status])
    return rows


ANSWER_HEAD = ["query", "records", "bound", "status"]


def answers_html(answers: Answers) -> str:
    """Return the first and last answers of a batch as a block of HTML."""
    shown = [*range(len(answers))] if len(answers) <= 2 * SHOWN else [
        *range(SHOWN), *range(len(answers) - SHOWN, len(answers))
    ]  # fmt: skip
    rows: list[list[Any]] = [[place, *row] for place, row in zip(
        shown, answer_rows([answers[place] for place in shown]), strict=True
    )]  # fmt: skip
    left_out = len(answers) - len(shown)
    parts = [table(["", *ANSWER_HEAD], rows, left=2, names=1)]
    if left_out:
        parts.append(note(f"{left_out:,} between them are not shown: see to_dict(), values, counts, bounds"))
    return card(f"{len(answers):,} answers", *parts, private=answers.private)


def forecast_html(forecast: Forecast) -> str:
    """Return a forecast as a block of HTML."""
    n = forecast.n
    rows = [
        [
            row.engine + " (the session)" * (row.start == forecast.start),
            f"{row.rms:.3g}",
            records(n * row.rms) if math.isfinite(row.rms) else "unknown",
            f"{row.bound:.3g}",
        ]
        for row in forecast.engines
    ]
    return card(
        f"{forecast.max_queries:,} questions of {n:,} records",
        table(["engine", "rms error", "in records", "95 % of one answer"], rows),
        note(forecast.reason),
    )
