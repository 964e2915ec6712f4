"""A session and what it hands out as facts in words and as HTML: public, all of it."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlineic.accounting.budget import Budget
from onlineic.display.html import MOST_BARS, bars, card, facts, heading, note, share, table
from onlineic.display.text import (
    MOST_ROWS,
    cut_rows,
    probability,
    records,
    records_bound,
    shortened,
    upward,
    within,
)
from onlineic.domain.domain import Domain
from onlineic.queries.answers import Answer
from onlineic.session.answers import SessionStatistics
from onlineic.session.columns import Answers
from onlineic.session.derived import Cdf, Derived, Groups, Quantile
from onlineic.session.explain import Explanation
from onlineic.session.forecasts import Forecast
from onlineic.session.plan import Plan
from onlineic.session.statements import AnswerTable

LONGEST_QUERY = 100
SHOWN = 10  # answers of a batch that are shown, first and last
Facts = list[tuple[str, str]]


def plan_facts(plan: Plan) -> Facts:
    """Return what a plan settles, in words."""
    n = plan.sparse.n
    threshold = plan.sparse.threshold / (n << plan.sparse.grid_bits)
    falls = plan.next_share is not None and plan.reserve is None  # behind a hit tests have more noise
    said: Facts = [
        ("tests", f"{type(plan.sparse).__name__}: an answer that misses by more than about "
         f"{records(n * threshold)} records is measured{', at first' * falls}"),
        ("learns by", shortened(repr(plan.update), 120)),
    ]  # fmt: skip
    if plan.first_tables is not None:
        part = float(plan.first_tables.charge.amount / plan.sparse.account().capacity)
        many, when = f"{len(plan.first_tables.targets)} of counts", "at the start"
        if plan.dense_tables is not None:
            many = f"{many}, or {len(plan.dense_tables.targets)} of all cells where that is a dense question"
            when = "behind the first question"
        said.append(("first tables", f"released {when} for {part:.0%} of the budget: {many}"))
    released = "a whole table of counts" if plan.partitions is not None else "one number"
    said.append(("a measured answer", f"releases {released}; planned for {plan.hard_answers:,}"))
    promise = "every answer but cross tables" if plan.certified else "every easy answer"
    if falls:
        promise += " before the first measured one or restart"
    bound = f"{promise}, of the first {plan.max_queries:,}, at once within ± {upward(plan.error_bound)}"
    said.append(("promise", f"{bound}, with probability {probability(1.0 - plan.beta)}"))
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
        sure = probability(1.0 - stats.beta)
        holds = f"± {upward(stats.error_bound)} for all tested answers at once, with probability {sure}"
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
        written = "" if answer.query is None else shortened(answer.query.written, LONGEST_QUERY)
        bounded = answer.n is not None and math.isfinite(answer.error_bound)
        bound = f"± {records_bound(answer.n * answer.error_bound)}" if bounded else "no bound"  # type: ignore[operator]
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
    parts = [table(["", *ANSWER_HEAD], rows, left=2, longest=LONGEST_QUERY)]
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
            upward(row.bound),
        ]
        for row in forecast.engines
    ]
    return card(
        f"{forecast.max_queries:,} questions of {n:,} records",
        table(["engine", "rms error", "in records", "95 % of one answer"], rows),
        note(forecast.reason),
    )


def derived_html(derived: Derived) -> str:
    """Return a mean or a sum as a block of HTML."""
    value, reach = within(derived.value, derived.error_bound)
    bound = f"± {reach}, with probability {probability(derived.confidence)}"
    said = [("bound", bound)]
    if derived.bias:
        said.append(("midpoints of bins", f"may be off by {upward(derived.bias)} besides"))
    said.append(("about", f"{records(derived.count)} ± {records_bound(derived.count_bound)} records"))
    title = f"{shortened(derived.name, LONGEST_QUERY)} = {value}"
    return card(title, facts(said), _made_of(derived.answers), private=derived.private)


def quantile_html(quantile: Quantile) -> str:
    """Return a quantile as a block of HTML."""
    between = f"{shortened(quantile.low)} to {shortened(quantile.high)}"
    said = [
        ("between", f"{between}, with probability {probability(quantile.confidence)}"),
        ("rank", f"± {upward(quantile.rank_error)} of the records that count"),
    ]
    title = f"{shortened(quantile.name, LONGEST_QUERY)} = {shortened(quantile.value)}"
    return card(title, facts(said), _made_of(quantile.answers), private=quantile.private)


def cdf_html(cdf: Cdf) -> str:
    """Return a distribution function as a block of HTML."""
    drawing = bars(cdf.labels, cdf.values, cdf.low, cdf.high, title=f"{cdf.name}, share at or below")
    if len(cdf.labels) > MOST_BARS:  # shares at or below do not add up: the last of each part stands for it
        step = -(-len(cdf.labels) // MOST_BARS)
        kept = [*range(step - 1, len(cdf.labels), step)]
        some = [np.asarray(ends)[kept] for ends in (cdf.values, cdf.low, cdf.high)]
        drawing = bars([cdf.labels[at] for at in kept], *some, title=f"{cdf.name}, share at or below")
    said = [
        ("band", f"holds all shares at once, with probability {probability(cdf.confidence)}"),
        ("about", f"{records(cdf.count)} ± {records_bound(cdf.count_bound)} records"),
    ]
    title = shortened(cdf.name, LONGEST_QUERY)
    return card(title, drawing, facts(said), _made_of(cdf.answers), private=cdf.private)


def groups_html(groups: Groups) -> str:
    """Return a table by groups as a block of HTML."""
    kept, gap = cut_rows(len(groups), MOST_ROWS)
    held, wanted = [], {*kept}
    for place, (labels, value, bound) in enumerate(groups):
        if place in wanted:
            text, reach = within(value, bound, separated=True)
            known = math.isfinite(value)
            held.append([*labels, text if known else "too few records", f"± {reach}" if known else ""])
    parts = [table([*groups.keys, "value", "bound"], held, left=len(groups.keys), names=len(groups.keys))]
    if gap is not None:
        parts.append(note(f"{len(groups) - len(kept):,} of {len(groups):,} are not shown: see to_dict()"))
    said = [("bounds", f"hold all at once, with probability {probability(groups.confidence)}")]
    if groups.bias:
        said.append(("midpoints of bins", f"may be off by {upward(groups.bias)} besides"))
    title = shortened(groups.name, LONGEST_QUERY)
    return card(title, *parts, facts(said), _made_of(groups.answers), private=groups.private)


def statement_html(found: AnswerTable) -> str:
    """Return what a statement was answered as a block of HTML."""
    left = sum(place < len(found.keys) for _, place in found.columns)
    names = [name for name, _ in found.columns]
    parts = [table(names, found.written(MOST_ROWS), left=left, names=left)]
    if len(found) > MOST_ROWS:
        parts.append(note(f"{len(found) - MOST_ROWS:,} of {len(found):,} rows are not shown: see to_dict()"))
    said = [
        (shortened(name), f"bounds hold for all rows at once, with probability {probability(sure)}")
        for name, sure in zip(found.names, found.confidences, strict=True)
    ]
    title = f"{len(found):,} row{'s' * (len(found) != 1)}"
    return card(title, *parts, facts(said), _made_of(found.answers), private=found.private)


def explanation_html(explanation: Explanation) -> str:
    """Return what a question would cost as a block of HTML."""
    one = explanation
    said = [("form", one.form), ("about", ", ".join(map(shortened, one.attributes)) or "no attribute")]
    said.append(("answers", f"{one.answers:,}, of which {one.constants + one.repeats:,} known and free"))
    if one.bound_derived is not None:
        said.append(("bound", f"± {upward(one.bound_derived)} if all are easy"))
    said.append(("bound of each", f"± {upward(one.bound_easy)} if easy"))
    if not one.free:
        said[-1] = (said[-1][0], f"{said[-1][1]}, ± {upward(one.bound_hard)} if measured")
        said.append(("price", f"{one.price:.2%} of the budget a measured answer, at most {one.at_most:.2%}"))
    if not one.payable and not one.free:
        said.append(("not payable", "the budget does not pay a measured answer of each"))
    said.append(("measured answers left", f"{one.hits_left:,} ({one.left:.2%} of the budget)"))
    return card(f"If asked: {shortened(one.asked, LONGEST_QUERY)}", facts(said))


def _made_of(answers: Sequence[Answer]) -> str:
    found = Counter(answer.status for answer in answers)
    many = f"{len(answers):,} answer{'s' * (len(answers) != 1)}"
    return note(f"made of {many}: {', '.join(f'{count:,} {status}' for status, count in found.items())}")
