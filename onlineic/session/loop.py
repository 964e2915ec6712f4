"""The loop of Algorithm OnlineIC over one record: from a question to its answer, and what is bought between.

One answer goes bind, guess, cover, test, record, take in: what is private about it happens in
`onlineic.session.curator` alone, and ends with a record in the ledger. Everything else is a function of
public facts and of those records: `onlineic.session.answers` takes them in one by one, so that no interrupt
loses one. Which tables are bought, and when, follows from the plan and from what the record says was asked.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, final

import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget
from onlineic.domain.domain import Domain
from onlineic.errors import (
    BudgetExceededError,
    LedgerMismatchError,
    SessionExhaustedError,
    SessionStateError,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.ledger.records import EasyBatch, Hard, Ledger, Opened
from onlineic.progress import advance
from onlineic.queries.answers import Answer, Status
from onlineic.queries.ask import Question, bind_batch, bind_question
from onlineic.queries.batch import Queries
from onlineic.queries.memory import Recalled
from onlineic.queries.query import Query
from onlineic.session.answers import AnswerBook, SessionStatistics
from onlineic.session.belief import Belief
from onlineic.session.columns import EASY, UNTESTED, Answers, Columns
from onlineic.session.curator import Curator
from onlineic.session.kinds import answers_tables, check_supported, is_dense
from onlineic.session.later_tables import Asked
from onlineic.session.plan import Plan

RUN, LONGEST_RUN = 64, 2**16  # queries that are tested at once, to begin with and at most


@final
class Loop:
    """What answers the questions of a session; one call at a time, which the session sees to.

    It owns the ledger from `Ledger.claim` on, and can be asked once `restore` has given it a curator.

    Parameters
    ----------
    domain, n : Domain, int
    plan : Plan
    ledger : Ledger
    exhausted : "untested" or "raise"
    private : bool
        Whether the noise is the system's.

    Attributes
    ----------
    begun, resumed : bool
        Whether first tables were bought, if there are any; whether the record was begun by another process.
    for_dense : callable or None
        Returns the plan of a session that is told of dense questions, if the first question may choose it.
    """

    book: AnswerBook
    curator: Curator

    def __init__(
        self,
        domain: Domain,
        n: int,
        plan: Plan,
        ledger: Ledger,
        exhausted: str,
        private: bool,
    ) -> None:
        self.domain, self.n, self.plan, self.ledger, self.private = domain, n, plan, ledger, private
        self._exhausted = exhausted
        self.begun = self.resumed = False
        self.for_dense: Callable[[], Plan] | None = None
        self._opening = False
        self._quiet = RUN  # queries that the next run may hold
        self._asked: tuple[int, Asked] = (0, Asked())  # of so many records
        self._awaits = True  # what is asked, for later tables

    @property
    def usable(self) -> bool:
        """Whether it has a curator: not before `restore`, and not once it was given up."""
        return hasattr(self, "curator")

    def restore(self, belief: Belief, curator: Curator) -> None:
        """Take in the record of the ledger: what an interrupted opening, or a session, left there."""
        self.book = AnswerBook(self.plan, self.domain, self.n, self.ledger, belief, self.private)
        self.book.restore()
        self.curator = curator

    def give_up(self) -> None:
        """Let the ledger go to its next owner, beside whom nothing may be tested from here."""
        self.__dict__.pop("curator", None)
        self.ledger.give_back(self)

    def answer(self, query: Any) -> Answer:
        """Answer one query, as `OnlineIC.answer` says."""
        self.curator.check_open()
        grid = self.plan.sparse.grid_bits
        question = bind_question(query, self.domain, grid)
        self.book.catch_up()
        check_supported(question, self.plan.sparse, self.book.belief.hypothesis)
        self._begin_with(question)
        if grid != self.plan.sparse.grid_bits:  # of another plan, which a signal's handler may have asked for
            question = bind_question(query, self.domain, self.plan.sparse.grid_bits)
        self.book.catch_up()  # no test begins with records pending, of a hypothesis that has asked
        self._buy_later()
        return self._answered(question)

    def answer_many(self, queries: Queries | Iterable[Any]) -> Answers | list[Answer]:
        """Answer queries in order, as `OnlineIC.answer_many` says."""
        self.curator.check_open()
        kept: list[Any] = []  # bound again, if the first of them changes the plan
        remember = not self.begun and not isinstance(queries, Queries)
        grid = self.plan.sparse.grid_bits
        parts = bind_batch(_remembered(queries, kept) if remember else queries, self.domain, grid)
        self.book.catch_up()  # behind the loop, because a generator may have asked on its own
        for part in parts:
            check_supported(part, self.plan.sparse, self.book.belief.hypothesis)
        for part in parts if not self.begun else ():
            self._begin_with(_first_tested(part) if isinstance(part, Queries) else part)
        if grid != self.plan.sparse.grid_bits:
            parts = bind_batch(kept if remember else queries, self.domain, self.plan.sparse.grid_bits)
        self.book.catch_up()  # no test begins with records pending, of a hypothesis that has asked
        self._buy_later()
        answers: list[Answer] = []
        total = sum(len(part) if isinstance(part, Queries) else 1 for part in parts)
        for part in parts:
            try:
                if isinstance(part, Queries):
                    length = self._quiet if part is queries else RUN
                    found = self._stream(part, length, len(answers), total)
                    if part is queries:
                        return found
                    answers += found
                else:
                    answers.append(self._answered(part))
                    advance("answers", len(answers), total)
            except SessionExhaustedError as error:
                error.answers = (*answers, *error.answers)
                raise
        return answers

    def _answered(self, question: Question) -> Answer:
        """Answer one question."""
        book, curator = self.book, self.curator
        known = book.recalled(question)
        if known is not None:
            return known
        guess = book.guesses((question,))[0]
        if not curator.test_alone(question, guess):  # else its answer comes by way of the ledger
            if self._exhausted == "raise":
                raise SessionExhaustedError(book.used_up())
            return book.untested(question)
        answer = self._taken(question)
        answer = self._asked_again(question) if answer is None else answer
        self._buy_later()
        return answer

    def _taken(self, question: Question) -> Answer | None:
        """Return the recorded answer, or None if a hypothesis that asks its own session has taken it."""
        while True:
            released = self.book.take()
            if released is not None and released[0] is question:
                return released[1]
            if not self.book.pending:
                return None

    def _asked_again(self, question: Question) -> Answer:
        """Return the answer of a question whose record a hypothesis that asks its own session has taken."""
        known = self.book.recalled(question)
        return self.book.untested(question) if known is None else known

    def _stream(self, queries: Queries, length: int, before: int, total: int) -> Answers:
        """Answer a batch in order: between two hits all at once, in runs that double while there is none."""
        columns = Columns.empty(len(queries))
        start = 0
        while start < len(queries):
            stop = min(len(queries), start + min(length, self.book.left_in_theorem or length))
            try:
                taken = self._run(queries[start:stop], columns.part(start, stop))
            except SessionExhaustedError as error:
                error.answers = tuple(self.book.answers(queries[:start], columns.part(0, start)))
                raise
            length = min(2 * length, LONGEST_RUN) if start + taken == stop else max(RUN, 2 * taken)
            start, self._quiet = start + taken, length
            advance("answers", before + start, total)
        return self.book.answers(queries, columns)

    def _run(self, queries: Queries, columns: Columns) -> int:
        """Answer up to the first hard one, which is included, or one that must wait; return how many."""
        book, recalled = self.book, self.book.recalled_many(queries)
        columns.rest_on(book.settled)
        radius = book.easy_radius()
        constant = np.isfinite(queries.constants)
        asked = ~recalled.known & ~constant
        first = recalled.first == np.arange(len(queries), dtype=np.int32)
        tested = np.flatnonzero(asked & first)
        telling = self._telling(queries, tested)
        if telling < len(queries):
            return self._run(queries[:telling], columns.part(0, telling))
        payable, stop = self._payable(queries, tested)
        unpaid = np.setdiff1d(tested[tested < stop], payable, assume_unique=True)
        if len(unpaid):  # and the same once more: nothing is remembered of it
            unpaid = np.flatnonzero(asked[:stop] & np.isin(recalled.first[:stop], unpaid))
            columns.put(unpaid, self._guessed(queries.chosen(unpaid)), UNTESTED, math.inf)
        if len(payable):
            values, hard = self._tested(queries.chosen(payable))
            columns.put(payable[: len(values)], values, EASY, radius)
            if hard is not None:
                stop = int(payable[len(values)]) + 1  # those behind it were not tested
                columns.give(stop - 1, hard)
        self._repeat(queries, columns, recalled, stop, int((unpaid < stop).sum()))
        self._buy_later()
        return stop

    def _payable(self, queries: Queries, tested: Ints) -> tuple[Ints, int]:
        """Return the places whose tests are paid for, and how many answers can be given by them.

        Raises
        ------
        SessionExhaustedError, SessionSealedError
            If the first answer cannot.
        """
        if len(tested) == 0:
            return tested, len(queries)
        first = int(tested[0])
        if self.curator.sealed:
            if first == 0:
                self.curator.check_unsealed()
            return tested[:0], first
        covered = np.array(self.curator.cover(queries.chosen(tested)), np.bool_)
        if self._exhausted == "raise" and not covered.all():
            covered = covered[: covered.argmin()]
            if len(covered) == 0 and first == 0:
                raise SessionExhaustedError(self.book.used_up())
        stop = int(tested[len(covered)]) if len(covered) < len(tested) else len(queries)
        return tested[: len(covered)][covered], stop

    def _tested(self, batch: Queries) -> tuple[Floats, Answer | None]:
        """Test a batch up to its first hard one; return the values of those before it, and its answer."""
        length = len(self.ledger)
        if len(batch) == 1:
            alone = (batch[0],)
            asked_for = self.book.guesses(alone)
            guesses = np.array(asked_for, np.int64)
            self.curator.test(alone, asked_for)
        else:
            guesses = self.book.guesses_many(batch)
            self.curator.test(batch, guesses)
        *_, last = records = self.ledger.records(length)  # what is answered comes by way of the ledger
        easy, hard = len(batch), None
        if isinstance(last, Hard):
            easy = sum(len(record) for record in records if isinstance(record, EasyBatch))
            hard = self._taken(last.query)
            hard = self._asked_again(last.query) if hard is None else hard
        self.book.catch_up()
        return guesses[:easy] / (np.int64(self.n) << batch.grid_bits[:easy]), hard

    def _guessed(self, queries: Queries) -> Floats:
        """Return the hypothesis's answers, on the grid."""
        return self.book.guesses_many(queries) / (np.int64(self.n) << queries.grid_bits)

    def _repeat(
        self, queries: Queries, columns: Columns, recalled: Recalled, stop: int, untested: int
    ) -> None:
        """Enter the constants and repeats of a run, also those of a query earlier in it, and count them."""
        places = np.arange(stop, dtype=np.int32)
        constants = queries.constants[:stop]
        constant = np.isfinite(constants)
        known = np.flatnonzero(recalled.known[:stop] & ~constant)
        first = recalled.first[:stop]
        again = np.flatnonzero((first != places) & ~recalled.known[:stop] & ~constant)
        again = again[columns.codes[first[again]] != UNTESTED]
        alone = np.flatnonzero(constant)
        columns.put(alone, constants[alone], EASY, 0.0)
        columns.recall(known, recalled, queries)
        columns.repeat(again, first[again], queries)
        counts: dict[Status, int] = {
            "easy": len(alone),
            "repeat": len(known) + len(again),
            "untested": untested,
        }
        rounding = 0.0
        if queries.rounding > 0.0:
            rounding = float(queries.roundings[np.concatenate([alone, known, again])].max(initial=0.0))
        self.book.count_untaken(counts, rounding)

    def hypothesis(self) -> Hypothesis:
        """Return the current hypothesis; first tables that wait for the first question are bought before."""
        if not self.curator.closed and not self.curator.sealed and not self.begun:
            self.begin(None)
        self.book.catch_up()
        return self.book.belief.hypothesis

    @property
    def answers_tables(self) -> bool:
        """Whether a cross table can be asked."""
        return answers_tables(self.plan.sparse, self.book.belief.hypothesis)

    def statistics(self, budget: Budget) -> SessionStatistics:
        """Return a snapshot of public facts."""
        plan, book = self.plan, self.book
        return SessionStatistics(
            asked=sum(book.counts.values()),
            easy=book.counts["easy"],
            hard=book.counts["hard"],
            repeat=book.counts["repeat"],
            untested=book.counts["untested"],
            hard_left=self.curator.hard_left(self.owed(plan)),
            spent=float(self.ledger.spent / plan.sparse.account().capacity),
            budget=budget,
            threshold=self.curator.threshold(),
            alpha=plan.alpha,
            beta=plan.beta,
            error_bound=book.error_bound(),
            certified=book.certified,
            update_failures=book.belief.failures,
            sealed=self.curator.sealed,
            private=self.private,
            family=book.family,
        )

    def begin(self, question: Question | None) -> None:
        """Buy the first tables, unless they were bought: a function of the plan and the first question.

        They are learned with the next record that is taken in. Where it was left to the first question to
        tell what is bought, it tells by what plan too.
        """
        self._check_not_opening()
        try:
            self._opening = True
            if question is not None:
                plan = self.plan_for(question)
                tell_opening(0.0, plan)  # who stops it here has changed nothing
                if plan is not self.plan:
                    self._plan_anew(plan)
            tables = self.plan.opening(question)
            if not self.begun and tables is not None and not self.bought():
                # of a session that goes on after its tables were burned tests are left
                burned = self.resumed or self.ledger.spent
                with contextlib.suppress(*([BudgetExceededError] if burned else [])):
                    self.curator.measure_tables(tables)
            self.begun = True
        finally:
            self._opening = False

    def _begin_with(self, question: Question) -> None:
        """Open with the first question that is tested, where it was left to tell what is bought."""
        if not self.begun and question.constant is None:
            self.begin(question)
            tell_opening(1.0, self.plan)
            self.book.catch_up()

    def plan_for(self, question: Question) -> Plan:
        """Return the plan of a session that is asked this first: a dense question tells of its kind."""
        if self.for_dense is not None and isinstance(question, Query) and is_dense(question):
            plan = self.for_dense()
            # as it was bound
            if not len(self.ledger) and question.grid_bits <= plan.sparse.grid_bits:
                return plan
        return self.plan

    def _plan_anew(self, plan: Plan) -> None:
        """Take another plan, before anything was reserved or read: its account is of another order."""
        ledger, known = self.ledger, self.book.closing()
        book, curator = self.made_anew(plan)
        book.count_untaken({"easy": known.constants}, known.rounding)
        try:
            ledger.give_back(self)
            ledger.claim(self, plan.sparse.account(), self.private)
            self.plan, self.book, self.curator = plan, book, curator
        except BaseException:
            self.give_up()  # its ledger may be another's
            raise

    def made_anew(self, plan: Plan) -> tuple[AnswerBook, Curator]:
        """Return the two halves of a session with another plan, before the first record."""
        belief = Belief(plan.update.init(self.domain, None))
        book = AnswerBook(plan, self.domain, self.n, self.ledger, belief, self.private)
        return book, self.curator.anew(plan.spending, plan.partitions)

    def bought(self) -> bool:
        """Whether the ledger holds first tables of this plan already."""
        later, asked, bought = self.plan.later_tables, Asked(), False
        for record in self.ledger.records() if self.plan.openings else ():
            if isinstance(record, Opened):
                if self.plan.released(record, asked) is None:
                    raise LedgerMismatchError(
                        "ledger must hold the first tables of this session's plan, got others; open the "
                        "session as it was opened, or leave the ledger out."
                    )
                bought = True
            if later is not None:
                asked = later.behind(asked, record)
        return bought

    def owed(self, plan: Plan) -> Fraction:
        """Return the charge of tables that questions will buy, by this plan."""
        later = plan.later_tables
        if self.begun and later is not None and later.waits(self._asked_so_far()):
            payable = later.charge.amount <= self.ledger.account.left
            return later.charge.amount if payable else Fraction(0)
        tables = None if self.begun else plan.first_tables
        return Fraction(0) if tables is None or self.ledger.spent else plan.spending.bought

    def _asked_so_far(self) -> Asked:
        """Return what the record has asked, as far as later tables go by it."""
        known, asked = self._asked
        later = self.plan.later_tables
        if later is not None and known < len(self.ledger):
            records = self.ledger.records(known)
            for record in records:
                asked = later.behind(asked, record)
            self._asked = (known + len(records), asked)
        return asked

    def _telling(self, queries: Queries, tested: Ints) -> int:
        """Return how many of these queries can be tested before later tables are bought."""
        later = self.plan.later_tables
        if self._awaits and later is not None and len(tested):
            asked = self._asked_so_far()
            if later.waits(asked) and not later.due(asked):
                told = later.due_at(asked, (queries[place] for place in tested.tolist()))
                if told is not None:
                    return int(tested[told - 1]) + 1
        return len(queries)

    def _buy_later(self) -> None:
        """Buy later tables once the questions of the record tell which, unless they cannot be paid any more.

        Behind the answer that tells; or before the next one, where that was interrupted.
        """
        if not self._awaits or not self.begun or self.curator.sealed:
            return
        self._check_not_opening()
        try:
            self._opening = True
            later, asked = self.plan.later_tables, self._asked_so_far()
            self._awaits = later is not None and asked.bought <= later.first
            tables = self.plan.later(asked) if self._awaits else None
            if tables is not None and tables.charge.amount <= self.ledger.account.left:
                self.curator.measure_tables(tables)
                self.book.catch_up()
        finally:
            self._opening = False

    def _check_not_opening(self) -> None:
        """Refuse what comes while tables are bought: the lock lets handlers of the same thread in."""
        if self._opening:
            raise SessionStateError(
                "session must buy its tables before it is asked, got a question of a signal's handler or a "
                "callback while it does; nothing was spent on it: ask when that has returned."
            )


def tell_opening(part: float, plan: Plan) -> None:
    """Tell the callback how much of the first tables of a plan is bought."""
    if plan.first_tables is not None:
        tables = len(plan.first_tables.targets)
        advance("opening", round(part * tables), tables)


def _remembered(queries: Iterable[Any], kept: list[Any]) -> Iterator[Any]:
    """Go through queries, and keep them: one that is refused is the last that is looked at."""
    for query in queries:
        kept.append(query)
        yield query


def _first_tested(queries: Queries) -> Query:
    """Return the first query of a batch that is no constant, or a constant."""
    return queries[int(np.argmin(np.isfinite(queries.constants)))]
