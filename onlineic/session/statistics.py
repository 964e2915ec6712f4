"""A snapshot of a session: what it has answered, what is spent, what is left.

Proof: docs/theory/accuracy.md, 6.3; docs/theory/certificates.md, 8.2.
"""

import math
from typing import Any, final

import attrs

from onlineic.accounting.budget import Budget
from onlineic.display.html import card, facts, share
from onlineic.display.plain import strict
from onlineic.display.text import probability, upward
from onlineic.domain.unit import Unit, protected, whose
from onlineic.known_noise.estimates import Family
from onlineic.plan.plan import restarts_text
from onlineic.queries.counted import Counted
from onlineic.slips import public


@public
@final
@attrs.frozen
class SessionStatistics:
    """A snapshot of a session: public facts only.

    Attributes:
        asked, easy, hard, repeat, untested: Answers by status.
        hard_left: Hard answers that can at least be paid, of the largest price: as many as at the price of
            the next. Mostly far more can, at falling prices and with more noise: where each costs at most a
            twentieth of what is left, this number stays near 20 until noise ends. Cheaper ones leave more
            too.
        restarts_left: How often the session can be closed and resumed until no hard answer can be paid, if
            something is tested each time: a kept threshold is paid for again, which `hard_left` falls by.
            None: as often as one likes.
        spent: Share of the budget that is used up or reserved, in [0, 1].
        budget: As it was given: that of a person with `rows_per_person` rows.
        threshold: Gap at which the next query is hard, before noise; fraction of records.
        alpha: Gap that an update relies on; in textbook mode the theorem's alpha.
        error_bound: Bound on all tested answers at once with probability 1 - beta: where first tables were
            bought, on those given so far, else on all of the stream. inf once more than max_queries were
            asked (of each killed process 256 more, which its ledger file may have lost), or a certified
            session has measured a table. With a ledger file each kept threshold has a part of beta.
        certified: Whether the hard answers cannot run out in that event: T(alpha) counts them, of single
            queries, and if every update succeeds; or each question announced is paid.
        sealed: Whether nothing is tested any more, because a test was interrupted before its record; what was
            released is still answered.
        private: False: simulated noise, NOT PRIVATE.
        family: The queries that the noise of the first tables bounds all at once, whichever of them are
            asked, and their number: conjunctions, products of sets of labels, of a table of all cells every
            query.
        unit: Who is protected: a person with all of their rows, or where it is None one record.
        bought: Share of the budget that bought noisy tables without a test, part of `spent`: these answer any
            number of questions.
        prices_fall: Whether later measured answers cost less, with more noise, so that they hardly run out.
        counted: The number of records as it was released, where it is private: whether one is there is
            protected.
    """

    asked: int
    easy: int
    hard: int
    repeat: int
    untested: int
    hard_left: int
    spent: float
    budget: Budget
    threshold: float
    alpha: float
    beta: float
    error_bound: float
    certified: bool
    update_failures: int
    sealed: bool
    private: bool
    family: Family | None = None
    restarts_left: int | None = None
    rows_per_person: int = 1
    unit: Unit | None = None
    counted: Counted | None = None
    bought: float = 0.0
    prices_fall: bool = False

    @property
    def spent_on(self) -> str:
        """What the budget was spent on, and what is left, in words."""
        tables = f"{self.bought:.1%} on numbers and tables that were bought" * (self.bought > 0.0)
        rest = max(0.0, self.spent - self.bought)
        tests = f"{rest:.1%} used or set aside for measured answers" * (rest > 0.0)
        said = ", ".join(filter(None, (tables, tests))) or "nothing yet"
        return f"{said}; {max(0.0, 1.0 - self.spent):.1%} is left"

    @property
    def left_said(self) -> str:
        """How many measured answers are left, in words."""
        return f"at least {self.hard_left:,}{'; later ones cost less, with more noise' * self.prices_fall}"

    @property
    def protects(self) -> str:
        """Who or what is protected, in words."""
        return protected(self.unit, self.counted is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the family as plain values, which `json.dumps` takes; None for an infinite bound."""
        told = {one.name: getattr(self, one.name) for one in attrs.fields(type(self)) if one.name != "family"}
        told["budget"] = {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        told["unit"] = None if self.unit is None else attrs.asdict(self.unit)
        if self.counted is None:
            del told["counted"]
        else:
            told["counted"] = {
                "n": self.counted.n,
                "bound": self.counted.bound,
                "beta": self.counted.beta,
                "scale": str(self.counted.scale),  # of the noise, exactly
                "draws": self.counted.draws,
            }
        found: dict[str, Any] = strict(told)
        return found

    def _repr_html_(self) -> str:
        told = [share(self.spent, "budget used or set aside"), facts(budget_facts(self))]
        return card("Statistics of a session", *told, private=self.private)


def budget_facts(stats: SessionStatistics) -> list[tuple[str, str]]:
    """Return what is spent and what is left, in words."""
    budget = stats.budget
    given = (
        f"{stats.asked:,}: {stats.easy:,} easy (known without a measurement, and tested), "
        f"{stats.hard:,} measured, {stats.repeat:,} repeated"
    )
    rows = stats.rows_per_person
    person = f", of a person with {rows} rows" if rows > 1 and stats.unit is None else ""
    spent = f"epsilon = {budget.epsilon:g}, delta = {budget.delta:g}, for everything together{person}"
    said = [
        *([] if stats.unit is None and stats.counted is None else [("protects", stats.protects)]),
        *([] if stats.counted is None else [("counted", _counted(stats.counted, whose(stats.unit)))]),
        ("budget", spent),
        ("spent", stats.spent_on),
        ("measured answers left", stats.left_said),
        ("answers", given + f", {stats.untested:,} untested" * bool(stats.untested)),
    ]
    if stats.restarts_left is not None:
        said.insert(2, ("restarts left", restarts_text(stats.restarts_left)))
    if math.isfinite(stats.error_bound):
        sure = probability(1.0 - stats.beta)
        holds = f"± {upward(stats.error_bound)} for all tested answers at once, with probability {sure}"
        said.append(("bound", holds))
    if stats.sealed:
        said.append(("sealed", "a test was interrupted: nothing more is tested"))
    return said


def _counted(counted: Counted, what: str) -> str:
    """Return what is known of the number of records, in words."""
    return f"{counted.n:,} ± {counted.bound:,} {what}: released first; fractions carry its error besides"
