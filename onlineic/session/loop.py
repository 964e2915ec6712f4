"""A session's core and what stands around it: the ledger that it owns, its plan, its opening, its batches."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, final

from onlineic.ask.bind import bind_batch
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit
from onlineic.errors import LedgerMismatchError
from onlineic.hypothesis.base import Hypothesis
from onlineic.ledger.records import BoughtTables, Ledger
from onlineic.plan.plan import Plan
from onlineic.plan.settings import Settings
from onlineic.queries.answers import Answer
from onlineic.queries.batch import Queries
from onlineic.queries.counted import Counted
from onlineic.queries.within import Within
from onlineic.session.answers import AnswerBook
from onlineic.session.askable import answers_tables, check_supported
from onlineic.session.batches import Batches
from onlineic.session.columns import Answers
from onlineic.session.core import Core
from onlineic.session.statistics import SessionStatistics


@final
class Loop:
    """What answers the questions of a session; one call at a time, which the session sees to.

    It owns the ledger from `Ledger.claim` on, and can be asked once `restore` has given it a core.

    Args:
        private: Whether the noise is the system's.
        unit: Of a table of persons, of which `n` counts the parts.
        counted: What is known of the number of records, or persons, where it is private.
    """

    core: Core

    def __init__(
        self,
        domain: Domain,
        n: int,
        plan: Plan,
        ledger: Ledger,
        private: bool,
        unit: Unit | None = None,
        counted: Counted | None = None,
    ) -> None:
        self.domain, self.n, self.plan, self.ledger, self.private = domain, n, plan, ledger, private
        self.unit, self.counted = unit, counted

    @property
    def usable(self) -> bool:
        """Whether it has a core: not before `restore`, and not once it was given up."""
        return hasattr(self, "core")

    @property
    def book(self) -> AnswerBook:
        """The public half: what was learned, and what is remembered."""
        return self.core.book

    def restore(self, core: Core) -> None:
        """Take in the record of the ledger: what an interrupted opening, or a session, left there."""
        core.book.restore()
        self._take(core)

    def _take(self, core: Core) -> None:
        self.core, self._batches = core, Batches(core, self.ledger, self.n)

    def give_up(self) -> None:
        """Let the ledger go to its next owner, beside whom nothing may be tested from here."""
        self.__dict__.pop("core", None)
        self.ledger.give_back(self)

    def answer(self, query: Any, within: Within | None = None) -> Answer:
        """Answer one query, as `OnlineIC.answer` says."""
        if (wish := within or self.plan.within) is not None:
            (answer,) = self.core.answer_within([self.core.bound(query)], wish)
        else:
            answer = self.core.answer(query)
        self.core.book.warn_if_more()
        return answer

    def answer_many(
        self, queries: Queries | Sequence[Any], within: Within | None = None
    ) -> Answers | list[Answer]:
        """Answer queries in order, as `OnlineIC.answer_many` says."""
        if (wish := within or self.plan.within) is not None:
            found = self.core.answer_within([*map(self.core.bound, queries)], wish)
            self.book.warn_if_more()
            return found
        if len(queries) == 1 and not isinstance(queries, Queries):  # a batch of one takes ten times as long
            return [self.answer(queries[0])]
        self.core.read_guard.check_open()
        parts = bind_batch(queries, self.domain, self.plan.weight_bits)
        self.book.catch_up()
        for part in parts:
            check_supported(part, self.plan.sparse, self.book.belief.hypothesis, self.core.fetching.reach)
        answers = self._batches.answer(parts, isinstance(queries, Queries))
        self.book.warn_if_more()
        return answers

    def hypothesis(self, *, of_tables: bool = False) -> Hypothesis:
        """Return the current hypothesis; where nothing was asked yet, tables are bought before.

        Args:
            of_tables: Whether some are bought also where numbers were, but no tables yet.
        """
        self.book.catch_up()
        # who looks later buys nothing: only questions do, and with a wish no looking does
        looks = of_tables or not self.book.counts["hard"]
        if looks and self.plan.within is None and self.book.estimates is None:
            self.core.buy(())
        return self.book.belief.hypothesis

    @property
    def beta(self) -> float:
        """Failure probability of every stated bound."""
        return self.plan.beta + (0.0 if self.counted is None else self.counted.beta)

    @property
    def answers_tables(self) -> bool:
        """Whether a cross table can be asked."""
        return answers_tables(self.plan.sparse, self.book.belief.hypothesis)

    @property
    def owed(self) -> Fraction:
        """The charge of tables that questions will buy, by this plan: with a wish none whatever is asked."""
        return self.core.purchases.owed if self.plan.within is None else Fraction(0)

    @property
    def owed_alone(self) -> Fraction:
        """The part of it that the asker pays: for numbers that are bought for one question."""
        return self.core.purchases.owed_alone if self.plan.within is None else Fraction(0)

    @property
    def price_alone(self) -> Fraction:
        """The most that a number which is bought by itself costs now; 0: none is bought."""
        rule, wish = self.core.purchases, self.plan.within
        return rule.price_alone if wish is None else rule.price_within(wish)

    def statistics(self, settings: Settings) -> SessionStatistics:
        """Return a snapshot of public facts."""
        plan, book, prices, owed = self.plan, self.book, self.core.prices, self.owed
        return SessionStatistics(
            asked=sum(book.counts.values()),
            easy=book.counts["easy"],
            hard=book.counts["hard"],
            repeat=book.counts["repeat"],
            untested=book.counts["untested"],
            hard_left=0 if self.core.read_guard.sealed else prices.hard_left(owed),
            restarts_left=prices.restarts_left(owed),
            spent=float(self.ledger.spent / self.ledger.account.capacity),
            bought=float((book.state.bought + book.state.alone) / self.ledger.account.capacity),
            prices_fall=plan.next_share is not None,
            budget=settings.budget,
            threshold=prices.threshold(),
            alpha=plan.alpha,
            beta=self.beta,
            error_bound=book.error_bound(),
            certified=book.certified,
            update_failures=book.belief.failures,
            sealed=self.core.read_guard.sealed,
            private=self.private,
            family=book.family,
            rows_per_person=settings.rows_per_person,
            unit=self.unit,
            counted=self.counted,
        )

    def bought(self) -> bool:
        """Whether the ledger holds first tables of this plan already."""
        rule, bought = self.plan.purchases, False
        asked = rule.start()
        for record in self.ledger.records():
            if isinstance(record, BoughtTables) and record.within is None:  # a wish buys others
                if not rule.holds(record, asked, self.plan.sparse.n):
                    raise LedgerMismatchError(
                        "ledger must hold the first tables of this session's plan, got others; open the "
                        "session as it was opened."
                    )
                bought = True
            asked = rule.heard(asked, record)
        return bought
