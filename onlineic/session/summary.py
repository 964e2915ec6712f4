"""A page about a session that can be handed on: released and public facts alone, as text, HTML, Markdown.

What the hypothesis says carries no guarantee, and is called so. Intervals beside it, where there are any,
come from the noise of the first tables, which is known: they hold for all of them at once.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.accounting.budget import Budget
from onlineic.display.figures import COLOURS, FEW, axes_for, bare, draw_counts, plain, stamped
from onlineic.display.html import bars, card, facts, heading, note, page, share, table
from onlineic.display.text import (
    GAP,
    aligned,
    cut_rows,
    percent,
    probability,
    records,
    records_between,
    shortened,
)
from onlineic.domain.domain import Domain
from onlineic.domain.unit import whose
from onlineic.errors import (
    InvalidParameterError,
    shown,
)
from onlineic.hypothesis.base import HasBlocks, Hypothesis
from onlineic.known_noise.instalments import Instalments
from onlineic.plan.plan import Plan, plan_facts
from onlineic.queries.answers import LONGEST_QUERY, Answer, answer_head, answer_rows
from onlineic.queries.marginals import marginal
from onlineic.session.statistics import SessionStatistics, budget_facts
from onlineic.session.wish_spending import WishSpending, steps_said
from onlineic.slips import public

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_CODES = 10_000  # of an attribute that is shown
IN_TEXT = 8  # values of an attribute in text and Markdown, and wishes
IN_NOTEBOOK = 3  # attributes and answers in a notebook; a page has all
NO_GUARANTEE = "What the hypothesis believes, without a guarantee"


@final
@attrs.frozen(eq=False)
class BelievedMarginal:
    """What a hypothesis believes of one attribute.

    Attributes:
        labels: Shape (m,).
        counts: Shape (m,). n times the hypothesis: no guarantee.
        low, high: Shape (m,). Numbers of records that hold the exact counts, of all attributes at once, with
            probability 1 - `plan.known` beta, less that of the number of records where that is private; None
            where the first tables do not tell.
    """

    name: str
    labels: tuple[Any, ...]
    counts: Floats
    low: Floats | None
    high: Floats | None
    ordered: bool

    @property
    def brackets(self) -> tuple[Floats, Floats] | None:
        """(low, high), or None."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def believed_marginals(
    hypothesis: Hypothesis, estimates: Instalments | None, n: int, names: Iterable[str]
) -> tuple[BelievedMarginal, ...]:
    """Return the marginals of a hypothesis, those of very long attributes left out."""
    domain, found = hypothesis.domain, []
    for name in names:
        axis = domain.axis(name)
        kind = domain.attributes[axis]
        if not isinstance(hypothesis, HasBlocks) or kind.size > MOST_CODES:
            continue
        table = marginal(name).bind(domain)
        ends = None if estimates is None else estimates.table_brackets(table)
        low, high = (None, None) if ends is None else (n * ends[0], n * ends[1])
        counts = n * table.table(np.asarray(hypothesis.blocks(table.partition)))
        found.append(BelievedMarginal(name, table.labels[name], counts, low, high, kind.ordered))
    return tuple(found)


@public
@final
@attrs.frozen(eq=False, repr=False)
class Summary:
    """What a session has released and planned: public, to be handed on.

    Attributes:
        answers: The latest tested ones, oldest first, without what was left then.
        expected: Root-mean-square of `Answer.expected_error` of the first 256 answers, fraction of records:
            no promise. None before the first, where one of them is not known, and where wishes say it.
        told: The same, had the session been told what would be asked, where it was told nothing and that is
            less by a third.
        wishes: What was spent for each, that with most answers first.
        spending: Pairs of questions answered by a test or a release, and the part of the budget that was
            spent by then, after each release; of a session without wishes none.
    """

    domain: Domain
    n: int
    budget: Budget
    plan: Plan
    statistics: SessionStatistics
    marginals: tuple[BelievedMarginal, ...]
    answers: tuple[Answer, ...]
    expected: float | None = None
    told: float | None = None
    wishes: tuple[WishSpending, ...] = ()
    spending: tuple[tuple[int, float], ...] = ()

    @property
    def title(self) -> str:
        """One line."""
        return f"Differentially private answers about {self.n:,} {self._what}"

    @property
    def _what(self) -> str:
        return whose(self.statistics.unit)

    def _facts(self) -> list[tuple[str, str]]:
        told = [domain_fact(self.domain), *budget_facts(self.statistics)]
        if self.expected is not None:
            counts = f"about {records(self.n * self.expected)} {self._what}"
            said = f"{counts}, of its first answers; no promise"
            if self.told is not None:
                said += f". Told of them by questions=, about {records(self.n * self.told)}"
            told.append(("expected error", said))
        told += [one.said() for one in self.wishes[:IN_TEXT]]
        if others := self.wishes[IN_TEXT:]:  # of means, each with a radius of its own
            part, many = sum(one.spent for one in others), sum(one.answers for one in others)
            told.append(
                (f"{len(others)} other wishes", f"{percent(part)} of the budget for {many:,} answers")
            )
        if self.spending:
            told.append(("spent by answers", steps_said(self.spending)))
        return told

    def _joint(self) -> str:
        if all(float(np.ptp(one.counts)) == 0.0 for one in self.marginals):
            return "Nothing has told of single attributes yet: all values of one are taken to be alike."
        counted = self.statistics.counted  # its event too: counts over a private number of records
        sure = 1.0 - self.plan.known * self.plan.beta - (0.0 if counted is None else counted.beta)
        return (
            "Intervals, where there are any, hold the exact numbers, all at once, "
            f"with probability {probability(sure)}; the numbers beside them have no guarantee."
        )

    def _answers_note(self, shown: int) -> str:
        given = self.statistics.easy + self.statistics.hard
        return (
            f"The latest {shown:,} of {given:,} tested answers. Each keeps its bound with "
            f"probability {probability(1.0 - self.statistics.beta)}."
        )

    def __str__(self) -> str:
        stamp = [] if self.statistics.private else ["NOT PRIVATE: simulated noise"]
        told = [*self._facts(), *plan_facts(self.plan, self.statistics.unit)]
        wide = max(len(name) for name, _ in told)
        lines = [self.title, *stamp, *(f"{name.ljust(wide)}  {text}" for name, text in told)]
        if self.marginals:
            lines += ["", f"{NO_GUARANTEE}.", self._joint()]
        for one in self.marginals:
            lines += ["", aligned([shortened(one.name), self._what, "between"], _rows(one))]
        if self.answers:
            lines += [
                "",
                self._answers_note(len(self.answers)),
                aligned(answer_head(self._what), answer_rows(self.answers)),
            ]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Return the summary as Markdown."""
        lines = [f"# {self.title}", ""]
        if not self.statistics.private:
            lines += ["**NOT PRIVATE: simulated noise**", ""]
        lines += _markdown_table(["", ""], self._facts())
        lines += ["", "## Plan", "", *_markdown_table(["", ""], plan_facts(self.plan, self.statistics.unit))]
        if self.marginals:
            lines += ["", f"## {NO_GUARANTEE}", "", self._joint()]
        for one in self.marginals:
            lines += ["", *_markdown_table([shortened(one.name), self._what, "between"], _rows(one))]
        if self.answers:
            lines += ["", "## Answers", "", self._answers_note(len(self.answers)), ""]
            lines += _markdown_table(answer_head(self._what), answer_rows(self.answers))
        return "\n".join(lines) + "\n"

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the summary as a whole page without scripts, and write it to `path`, if there is one."""
        text = page(self.title, self._html(len(self.marginals), len(self.answers)))
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return text

    def _repr_html_(self) -> str:
        return self._html(IN_NOTEBOOK, IN_NOTEBOOK)

    def _html(self, most_marginals: int, most_answers: int) -> str:
        stats, parts = self.statistics, []
        if self.marginals:
            parts += [heading(NO_GUARANTEE), note(self._joint())]
        for one in self.marginals[:most_marginals]:
            title = f"{self._what} by {one.name}, as the hypothesis believes"
            parts += [heading(one.name), bars(one.labels, one.counts, *(one.brackets or ()), title=title)]
        shown = self.answers[len(self.answers) - min(most_answers, len(self.answers)) :]
        if shown:
            parts += [heading("Answers"), note(self._answers_note(len(shown)))]
            parts.append(table(answer_head(self._what), answer_rows(shown), longest=LONGEST_QUERY))
        less = len(self.marginals) > most_marginals or len(shown) < len(self.answers)
        return card(
            self.title,
            share(stats.spent, "budget used or set aside"),
            facts(self._facts()),
            heading("Plan"),
            facts(plan_facts(self.plan, stats.unit)),
            *parts,
            *([note("Cut to fit a notebook: to_html(path) writes all of it.")] if less else []),
            private=stats.private,
        )

    def plot(self, attribute: str, ax: "Axes | None" = None) -> "Axes":
        """Draw what the hypothesis believes of one attribute, with its intervals; a line where it is ordered.

        Args:
            ax: None: of a new figure, `ax.figure`.

        Raises:
            InvalidQueryError, InvalidParameterError: If there is no such attribute, or the summary does not
                hold it.
            MissingExtraError: If matplotlib is not installed.
        """
        self.domain.axis(attribute)
        found = [one for one in self.marginals if one.name == attribute]
        if not found:
            raise InvalidParameterError(
                f"attribute must be one that the summary holds, got {shown(attribute)}; write "
                "session.summary(attributes=[..])."
            )
        axes, one = axes_for(ax), found[0]
        draw_counts(
            axes, one.name, one.labels, one.counts, one.brackets, line=one.ordered and len(one.labels) > FEW
        )
        axes.set_ylabel(self._what)
        stamp = "" if self.statistics.private else " (NOT PRIVATE)"
        axes.set_title(f"{NO_GUARANTEE}: {plain(one.name)}{stamp}", loc="left", fontsize=11)
        return axes

    def plot_spending(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the part of the budget that was spent against the questions answered, where there were wishes.

        Args:
            ax: None: of a new figure, `ax.figure`.

        Raises:
            InvalidParameterError: If nothing was asked with a wish.
            MissingExtraError: If matplotlib is not installed.
        """
        if not self.spending:
            raise InvalidParameterError(
                "summary must be of a session that was asked with a wish, got one without; write within=.01."
            )
        axes, (answers, parts) = axes_for(ax), zip(*self.spending, strict=True)
        axes.step(answers, [100.0 * part for part in parts], where="post", color=COLOURS[0])
        axes.set_xlabel("questions answered by a test or a release")
        axes.set_ylabel("% of the budget")
        axes.set_title(stamped("Spent", self.statistics.private), loc="left", fontsize=11)
        bare(axes)
        return axes

    def __repr__(self) -> str:
        stamp = "" if self.statistics.private else ", NOT PRIVATE"
        return f"Summary(n={self.n:,}, {len(self.marginals)} marginals, {len(self.answers)} answers{stamp})"


def domain_fact(domain: Domain) -> tuple[str, str]:
    """Return what a domain is, in words."""
    names = ", ".join(f"{name} ({kind.size:,})" for name, kind in domain)
    return "domain", shortened(f"{domain.size:,} cells: {names}", 300)


def session_html(domain: Domain, n: int, plan: Plan, stats: SessionStatistics) -> str:
    """Return a session as a block of HTML."""
    return card(
        f"Session on {n:,} {whose(stats.unit)}",
        share(stats.spent, "budget used or set aside"),
        facts([domain_fact(domain), *budget_facts(stats)]),
        heading("Plan"),
        facts(plan_facts(plan, stats.unit)),
        private=stats.private,
    )


def _rows(one: BelievedMarginal) -> list[list[str]]:
    """Return label, count and interval of the values of an attribute, the middle of many left out."""
    places, gap = cut_rows(len(one.labels), IN_TEXT)
    rows = []
    for at in places:
        between = "" if one.brackets is None else records_between(*(float(end[at]) for end in one.brackets))
        rows.append([shortened(one.labels[at]), records(float(one.counts[at])), between])
    if gap is not None:
        rows.insert(gap, [GAP, "", ""])
    return rows


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, no text of which is taken for markup."""
    lines = [head, ["---"] * len(head), *([_literal(cell) for cell in row] for row in rows)]
    lines[0] = [_literal(cell) for cell in head]
    return [f"| {' | '.join(line)} |" for line in lines]


def _literal(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + letter if letter in "\\`*_[]|#~" else letter for letter in text)
