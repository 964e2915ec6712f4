"""The session: OnlineIC itself, the imperative shell around pure steps.

One answer goes bind, guess, cover, test, record, take in: what is private about it happens in
`onlineic.session.curator` alone, and ends with a record in the ledger. Everything else is a function of
public facts and of those records: `onlineic.session.answers` takes them in one by one, so that no interrupt
loses one.
"""

import contextlib
import math
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, final, overload

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget, Filter
from onlineic.accounting.of_table import per_row
from onlineic.data.private import PrivateData
from onlineic.data.release import check_types, is_private
from onlineic.display.html import card
from onlineic.display.text import upward
from onlineic.domain.domain import Domain
from onlineic.domain.hints import nearest
from onlineic.errors import (
    BudgetExceededError,
    InvalidParameterError,
    InvalidQueryError,
    LedgerMismatchError,
    SessionExhaustedError,
    SessionStateError,
    VacuousPromiseWarning,
    checked_integer,
)
from onlineic.hypothesis.base import NO_BLOCKS, HasBlocks, Hypothesis, supports_all
from onlineic.ledger.lines import Receipt
from onlineic.ledger.memory import MemoryLedger
from onlineic.ledger.records import EasyBatch, Hard, Ledger, Opened
from onlineic.ledger.settings import check_beginning, check_kind, package_version
from onlineic.ledger.sqlite import SqliteLedger, receipt_of
from onlineic.ledger.transcript import Transcript
from onlineic.noise.sources import Noise, SystemNoise, checked_source
from onlineic.progress import Progress, advance, checked_progress, reporting
from onlineic.queries.answers import Answer, Status
from onlineic.queries.ask import Question, bind_batch, bind_question, check_many
from onlineic.queries.batch import Queries
from onlineic.queries.expressions import Expression
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.memory import Recalled
from onlineic.queries.query import Query
from onlineic.queries.sql_conditions import Value
from onlineic.session.answers import AnswerBook, SessionStatistics
from onlineic.session.belief import Belief
from onlineic.session.calibration import SparseName
from onlineic.session.certificates import textbook_plan
from onlineic.session.columns import EASY, UNTESTED, Answers, Columns
from onlineic.session.curator import Curator
from onlineic.session.derived import Answering
from onlineic.session.durable import (
    Durability,
    LedgerFile,
    budget_of,
    check_prior,
    ledger_choice,
    planned,
    restoring,
    row_budget_of,
)
from onlineic.session.explain import Explanation, Outlook, Prospect, Rehearsal, explanation
from onlineic.session.forecasts import Kind, checked_kinds
from onlineic.session.kinds import is_dense
from onlineic.session.later_tables import Asked
from onlineic.session.means import Derived
from onlineic.session.plan import TRIVIAL, Plan
from onlineic.session.planning import session_plan
from onlineic.session.statements import AnswerTable, answered
from onlineic.session.summary import Summary, believed_marginals, session_html
from onlineic.session.synthetic import Synthetic, synthetic
from onlineic.sparse.base import NumericSparse
from onlineic.updates.base import UpdateRule, check_rule
from onlineic.updates.multiplicative_weights import MultiplicativeWeights

RUN, LONGEST_RUN = 64, 2**16  # queries that are tested at once, to begin with and at most


def check_choices(exhausted: object, ledger: object, noise: object) -> None:
    """Raise `InvalidParameterError` unless these are choices that a session knows."""
    if not isinstance(exhausted, str) or exhausted not in ("untested", "raise"):
        raise InvalidParameterError(
            f"exhausted must be 'untested' or 'raise', got exhausted={exhausted!r:.60}."
        )
    if ledger is not None and not isinstance(ledger, Ledger | LedgerFile):
        raise InvalidParameterError(
            f"ledger must be the path of a file, a Ledger or None, got a {type(ledger).__name__}; write "
            "ledger='FILE.db', table='LABEL'."
        )
    simulated = noise is not None and type(checked_source(noise)) is not SystemNoise
    if simulated and ledger is not None and not isinstance(ledger, MemoryLedger):
        raise InvalidParameterError(
            "ledger must be None with simulated noise, whose answers are not private, got a ledger too; "
            "leave out one of them."
        )


MEANT = {  # what people look for, by another name
    "count": "answer(where(..)).count",
    "describe": "summary()",
    "budget": "statistics().budget",
    "query": "answer(where(..))",
    "ask": "answer(where(..))",
    "average": "mean",
    "avg": "mean",
}


@final
class OnlineIC(Answering):
    """Answers to a stream of linear queries about one private table, under one budget.

    Everything that a session releases (values, labels, bounds, statistics, messages, its records) is jointly
    (epsilon, delta)-differentially private for replace-one neighbours with public n, for every adaptive
    stream of queries. It protects against people who see what is released, not against people who can
    look inside this process.

    Parameters
    ----------
    data : PrivateData
    budget : Budget
        For the whole life of the session, however many queries are asked. A share of the total of the table
        is made by `TableBudget.share`.
    rows_per_person : int, >= 1
        The most rows that a person can have: the budget is a person's then, and each row gets a part of it.
        Nothing checks the table: cap the rows of a person before loading.
    hard_answers : int, optional
        How many hard queries to plan for. Where delta > 0 some more are paid for, since hits can be false:
        see `statistics().hard_left`.
    certify : float, optional
        Accuracy to certify instead: the gap above which queries are hard, fraction of records. Then hard
        answers of single queries cannot run out, and `plan.error_bound` holds for every one of the first
        `max_queries` of them. At most one of the two; with neither, both are planned from n, the domain, the
        budget and `max_queries`.
    max_queries, beta : int, float
        Length of the stream that the session-wide accuracy statement covers, and its failure probability.
    update, sparse, release, threshold
        As in `session.session_plan`; by default partition releases and maximum-entropy refits, with
        pay-per-hit tests for delta > 0 and pure tests for delta = 0.
    prior : Hypothesis, optional
        Public start, never made from the private rows; without one, first tables are bought. The hypothesis
        of another session is public, and paid for by that one.
    first_tables : bool, optional
        As in `session.session_plan`: True starts any rule from first tables, out of this session's budget,
        and buys them when the session opens.
    kinds : iterable of "conjunctions" or "dense", optional
        What will be asked: by default conjunctions of conditions, of which pairs of attributes say much. With
        "dense" among it, weights without such a form, the session starts from all cells or from numbers. If
        it is not told, and pairs are planned, tables are bought behind the first question: if that is a
        dense one `plan` becomes that of a session which is told; where its account would be
        another than the one that a ledger file or the total of the table has, all cells are bought in that,
        at about twice the noise.
    exhausted : "untested" or "raise"
        What to do when the hard answers are used up: answer from the hypothesis, without touching the data
        and with no bound but that of the first tables, or raise `SessionExhaustedError`.
    ledger : str or path, or Ledger, optional
        File that the budget is spent from for good: a session that was opened with it goes on where it was,
        in whichever process, if the table, its label and all settings are the same. By default in memory,
        where every session is a new budget. See `docs/ledger.md`.
    table : str, optional
        With a file: the public name of the table and its release. Bounds hold for the table as it was.
    durability : "hits" or "all"
        With a file: charges and hard answers are durable before they leave. "hits": up to 256 easy answers
        can be lost by a crash, which are then tested again; "all": none.
    noise : Noise, optional
        By default the system's entropy. Simulated noise stamps everything NOT PRIVATE.
    progress : callable (stage, done, total), or "bar", optional
        Called as the opening, fits and batches go on, with public facts alone; "bar" shows bars of what takes
        more than two seconds, by the extra `onlineic[progress]`. If it raises, the call stops there, safely:
        what was released is in the transcript, and asked again it is a repeat. An opening that was stopped
        behind its release is taken up by a session with the same `ledger`.

    Notes
    -----
    Used as `with OnlineIC(...) as session:`, or closed by `close`, it gives back what is reserved. Not
    copyable, not picklable, not usable after a fork: a copy would copy the budget.

    References
    ----------
    Dwork & Roth (2014), section 5.2.2, Algorithm 11.
    """

    def __init__(
        self,
        data: PrivateData,
        budget: Budget,
        *,
        rows_per_person: int = 1,
        hard_answers: int | None = None,
        certify: float | None = None,
        max_queries: int = 10_000,
        beta: float = 0.05,
        update: UpdateRule[Any] | None = None,
        sparse: SparseName | NumericSparse | None = None,
        release: Literal["answer", "partition"] | None = None,
        threshold: float | None = None,
        prior: Hypothesis | None = None,
        first_tables: bool | None = None,
        kinds: Iterable[Kind] = ("conjunctions",),
        exhausted: Literal["untested", "raise"] = "untested",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        table: str | None = None,
        durability: Durability = "hits",
        noise: Noise | None = None,
        progress: Progress | Literal["bar"] | None = None,
    ) -> None:
        check_types(data, budget)
        check_rule(update)
        of_row, kinds = per_row(budget, rows_per_person), checked_kinds(kinds)
        settings = {
            "budget": budget,
            "rows_per_person": int(rows_per_person) if rows_per_person > 1 else None,
            "hard_answers": hard_answers,
            "certify": certify,
            "max_queries": max_queries,
            "beta": beta,
            "update": update,
            "sparse": sparse,
            "release": release,
            "threshold": threshold,
            "prior": prior,
            "first_tables": first_tables,
            "kinds": sorted(kinds),
            "exhausted": exhausted,
        }
        chosen = ledger_choice(ledger, table, durability, settings)
        planned_for = partial(
            session_plan,
            data.domain,
            data.n,
            of_row,
            update=update,
            sparse=sparse,
            release=release,
            prior=prior,
            beta=beta,
            max_queries=max_queries,
            certify=certify,
            hard_answers=hard_answers,
            threshold=threshold,
            first_tables=first_tables,
        )
        plan, for_dense = planned_for(kinds=kinds), partial(planned_for, kinds=("dense",))
        self._open(data, budget, plan, prior, exhausted, chosen, noise, progress, of_row, for_dense)

    @classmethod
    def resume(
        cls,
        ledger: str | os.PathLike[str],
        data: PrivateData,
        *,
        table: str | None = None,
        receipt: Receipt | str | None = None,
        durability: Durability = "hits",
        update: UpdateRule[Any] | None = None,
        prior: Hypothesis | None = None,
        progress: Progress | Literal["bar"] | None = None,
    ) -> "OnlineIC":
        """Return the session of a ledger file, as it was: hypothesis, memory, statistics and what is spent.

        A reservation that its process did not close is spent, and the mechanism begins a new run: one that
        keeps a threshold pays for it again.

        Parameters
        ----------
        ledger : str or path
        data : PrivateData
            The very table: same domain and n; nothing in the file could tell that its rows are others, for
            which privacy would hold and the stated bounds would not.
        table : str, optional
            Label to insist on.
        receipt : Receipt or str, optional
            As `receipt` returned it at any time: an older copy of the file is refused.
        update, prior : UpdateRule, Hypothesis, optional
            Those of the session, where they are not of this package, or were given.
        progress : callable (stage, done, total), or "bar", optional
            As at its opening.

        Raises
        ------
        LedgerLockedError, LedgerCorruptError, LedgerRollbackError
            If a session has the file, it is not whole, or older than the receipt.
        LedgerMismatchError
            If it is of another table.
        """
        kept = SqliteLedger.open(ledger, durability, receipt)
        try:
            check_kind(kept.beginning, total=False)
            beginning, budget = kept.beginning, budget_of(kept.beginning, kept.domain)
            check_types(data, budget)
            check_beginning(beginning, table=table, domain=data.domain, n=data.n)
            check_prior(beginning, prior)
            plan = planned(beginning, data.domain, update)
            exhausted = beginning["settings"].get("exhausted")
            of_row = row_budget_of(beginning, kept.domain)
            return cls.__new__(cls)._open(data, budget, plan, prior, exhausted, kept, None, progress, of_row)
        except BaseException:
            kept.release()
            raise

    @classmethod
    def textbook(
        cls,
        data: PrivateData,
        *,
        epsilon: float,
        delta: float = 0.0,
        beta: float = 0.05,
        max_queries: int = 1000,
        update: UpdateRule[Any] | None = None,
        alpha: float | None = None,
        exhausted: Literal["untested", "raise"] = "untested",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        table: str | None = None,
        durability: Durability = "hits",
        noise: Noise | None = None,
        progress: Progress | Literal["bar"] | None = None,
    ) -> "OnlineIC":
        """Return Algorithm OnlineIC of the book at the parameters of Theorem 5.14 or 5.15.

        Threshold 2 alpha, the pair of tests with short circuit, c = floor T(alpha) hard answers; with
        probability 1 - beta every error of the first `max_queries` answers is at most 3 alpha.

        Parameters
        ----------
        alpha : float, optional
            None: the least that the theorem allows.
        update : UpdateRule
            With a proven T(alpha); by default `MultiplicativeWeights(variant="book")`.

        Raises
        ------
        InfeasibleAccuracyError
            If alpha is infeasible; the message names the least feasible one.
        """
        budget = Budget(epsilon, delta)
        check_types(data, budget)
        check_rule(update)
        plan = textbook_plan(
            data.domain,
            data.n,
            budget,
            update or MultiplicativeWeights(variant="book"),
            beta=beta,
            max_queries=max_queries,
            alpha=alpha,
        )
        settings = {
            "textbook": True,
            "budget": budget,
            "beta": beta,
            "max_queries": max_queries,
            "update": update,
            "alpha": alpha,
            "exhausted": exhausted,
        }
        chosen = ledger_choice(ledger, table, durability, settings)
        return cls.__new__(cls)._open(data, budget, plan, None, exhausted, chosen, noise, progress)

    def _open(
        self,
        data: PrivateData,
        budget: Budget,
        plan: Plan,
        prior: Hypothesis | None,
        exhausted: str,
        ledger: Ledger | LedgerFile | None,
        noise: Noise | None,
        progress: Progress | Literal["bar"] | None = None,
        of_row: Budget | None = None,
        for_dense: Callable[[], Plan] | None = None,
    ) -> "OnlineIC":
        of_row = budget if of_row is None else of_row
        check_choices(exhausted, ledger, noise)
        if hasattr(self, "_curator"):
            raise SessionStateError("a session must be opened once, got __init__ again; open a new one.")
        if plan.certified and plan.error_bound >= TRIVIAL:
            warnings.warn(
                f"the session's promise must be below {TRIVIAL} to say anything, got an error bound of "
                f"{upward(plan.error_bound)}: the answer 1/2 to everything keeps it too. Raise n or epsilon, "
                "ask fewer queries over fewer cells, or open OnlineIC(data, budget), which promises less.",
                VacuousPromiseWarning,
                stacklevel=3,
            )
        self._progress = checked_progress(progress)
        if isinstance(ledger, LedgerFile):
            if ledger.new:  # no file is left of a session that the total of the table does not pay
                data.check_affords(of_row, plan.sparse.account())
            ledger, plan = ledger.opened(data.domain, data.n, plan)
        self._ledger: Ledger = ledger if ledger is not None else MemoryLedger()
        try:
            self._data = data
            self._budget = budget
            self._plan = plan
            self._sparse: NumericSparse = plan.sparse
            self._exhausted = exhausted
            self._quiet = RUN  # queries that the next run may hold
            self._begun = self._resumed = self._opening = False
            # the account of a file stands in its first line, and a total of the table pays it as it opens
            free = isinstance(self._ledger, MemoryLedger) and data.total is None
            self._for_dense = for_dense if free else None
            self._lock = threading.RLock()
            self._noise = noise = noise if noise is not None else SystemNoise()
            self._private = is_private(noise)
            belief = Belief(plan.update.init(data.domain, prior))
            self._tell_opening(0.0)  # nothing is claimed yet
            data.check_file(self._ledger, self._ledger.file)
            self._ledger.claim(self, plan.sparse.account(), self._private)
            resumed = isinstance(ledger, SqliteLedger) and not ledger.fresh
            if isinstance(ledger, SqliteLedger) and resumed:
                ledger.restart(package_version())
            with restoring(resumed):
                self._book = AnswerBook(plan, data.domain, data.n, self._ledger, belief, self._private)
                self._book.restore()
                self._curator = Curator(data, plan.spending, noise, self._ledger, plan.partitions)
            # a session that was interrupted here left its ledger with what it had paid for
            spent = of_row if self._private else None
            known = data.enter(self._ledger, spent, self._ledger.file, plan.sparse.account())
            if self._ledger.account.spent and not resumed and (plan.first_tables is None or not known):
                raise LedgerMismatchError(
                    "ledger must be new, or of a session on this table that was interrupted while it bought "
                    "the first tables of this plan, got another one; leave the ledger out."
                )
            bought = self._bought()
            paid = plan.first_tables.charge.amount if plan.first_tables is not None and bought else 0
            if not resumed and plan.certified and self._ledger.account.spent != paid:
                raise LedgerMismatchError(
                    "ledger must hold the first tables alone to certify what is left for hard answers, got "
                    "one of which more is used up; leave the ledger out."
                )
            self._resumed, self._begun = resumed, bought
            self._asked: tuple[int, Asked] = (0, Asked())  # of so many records
            self._awaits = True  # what is asked, for later tables
            if plan.dense_tables is None:  # else the first question tells what is bought
                self._begin(None)
                self._tell_opening(1.0)
            if resumed:
                self._book.catch_up()
            return self
        except BaseException:
            # a traceback holds what is half open: it must not test beside the next owner of the ledger
            self.__dict__.pop("_curator", None)
            self._ledger.give_back(self)
            raise

    def _tell_opening(self, part: float, plan: Plan | None = None) -> None:
        bought = (self._plan if plan is None else plan).first_tables
        tables = 0 if bought is None else len(bought.targets)
        with reporting(self._progress):
            if tables:
                advance("opening", round(part * tables), tables)

    def _begin(self, question: Question | None) -> None:
        """Buy the first tables, unless they were bought: a function of the plan and the first question.

        They are learned with the next record that is taken in. Where it was left to the first question to
        tell what is bought, it tells by what plan too.
        """
        self._check_not_opening()
        try:
            self._opening = True
            if question is not None:
                plan = self._plan_for(question)
                self._tell_opening(0.0, plan)  # who stops it here has changed nothing
                if plan is not self._plan:
                    self._plan_anew(plan)
            tables = self._plan.opening(question)
            if not self._begun and tables is not None and not self._bought():
                # of a session that goes on after its tables were burned tests are left
                with contextlib.suppress(*([BudgetExceededError] if self._resumed else [])):
                    self._curator.measure_tables(tables)
            self._begun = True
        finally:
            self._opening = False

    def _owed(self, plan: Plan) -> Fraction:
        """Return the charge of tables that questions will buy, by this plan."""
        later = plan.later_tables
        if self._begun and later is not None and later.waits(self._asked_so_far()):
            payable = later.charge.amount <= self._ledger.account.left
            return later.charge.amount if payable else Fraction(0)
        tables = None if self._begun else plan.first_tables
        return Fraction(0) if tables is None or self._ledger.spent else plan.spending.bought

    def _asked_so_far(self) -> Asked:
        """Return what the record has asked, as far as later tables go by it."""
        known, asked = self._asked
        later = self._plan.later_tables
        if later is not None and known < len(self._ledger):
            records = self._ledger.records(known)
            for record in records:
                asked = later.behind(asked, record)
            self._asked = (known + len(records), asked)
        return asked

    def _buy_later(self) -> None:
        """Buy later tables once the questions of the record tell which, unless they cannot be paid any more.

        Behind the answer that tells; or before the next one, where that was interrupted.
        """
        if not self._awaits or not self._begun or self._curator.sealed:
            return
        self._check_not_opening()
        try:
            self._opening = True
            later, asked = self._plan.later_tables, self._asked_so_far()
            self._awaits = later is not None and asked.bought <= later.first
            tables = self._plan.later(asked) if self._awaits else None
            if tables is not None and tables.charge.amount <= self._ledger.account.left:
                self._curator.measure_tables(tables)
                self._book.catch_up()
        finally:
            self._opening = False

    def _check_not_opening(self) -> None:
        """Refuse what comes while tables are bought: the lock lets handlers of the same thread in."""
        if self._opening:
            raise SessionStateError(
                "session must buy its tables before it is asked, got a question of a signal's handler or a "
                "callback while it does; nothing was spent on it: ask when that has returned."
            )

    def _telling(self, queries: Queries, tested: Ints) -> int:
        """Return how many of these queries can be tested before later tables are bought."""
        later = self._plan.later_tables
        if self._awaits and later is not None and len(tested):
            asked = self._asked_so_far()
            if later.waits(asked) and not later.due(asked):
                told = later.due_at(asked, (queries[place] for place in tested.tolist()))
                if told is not None:
                    return int(tested[told - 1]) + 1
        return len(queries)

    def _begin_with(self, question: Question) -> None:
        """Open with the first question that is tested, where it was left to tell what is bought."""
        if not self._begun and question.constant is None:
            self._begin(question)
            self._tell_opening(1.0)
            self._book.catch_up()

    def _plan_for(self, question: Question) -> Plan:
        """Return the plan of a session that is asked this first: a dense question tells of its kind."""
        if self._for_dense is not None and isinstance(question, Query) and is_dense(question):
            plan = self._for_dense()
            # the total of the table has taken what the account costs that was planned
            if self._data.total is not None and plan.sparse.account() != self._sparse.account():
                return self._plan
            if not len(self._ledger) and question.grid_bits <= plan.sparse.grid_bits:  # as it was bound
                return plan
        return self._plan

    def _plan_anew(self, plan: Plan) -> None:
        """Take another plan, before anything was reserved or read: its account is of another order."""
        ledger, known = self._ledger, self._book.closing()
        book, curator = self._made_anew(plan)
        book.count_untaken({"easy": known.constants}, known.rounding)
        try:
            ledger.give_back(self)
            ledger.claim(self, plan.sparse.account(), self._private)
            self._plan, self._sparse, self._book, self._curator = plan, plan.sparse, book, curator
        except BaseException:
            self.__dict__.pop("_curator", None)  # a session whose ledger may be another's
            ledger.give_back(self)
            raise

    def _made_anew(self, plan: Plan) -> tuple[AnswerBook, Curator]:
        """Return the two halves of a session with another plan, before the first record."""
        data, ledger = self._data, self._ledger
        belief = Belief(plan.update.init(data.domain, None))
        book = AnswerBook(plan, data.domain, data.n, ledger, belief, self._private)
        return book, Curator(data, plan.spending, self._noise, ledger, plan.partitions)

    def _bought(self) -> bool:
        """Whether the ledger holds first tables of this plan already."""
        later, asked, bought = self._plan.later_tables, Asked(), False
        for record in self._ledger.records() if self._plan.openings else ():
            if isinstance(record, Opened):
                if self._plan.released(record, asked) is None:
                    raise LedgerMismatchError(
                        "ledger must hold the first tables of this session's plan, got others; open the "
                        "session as it was opened, or leave the ledger out."
                    )
                bought = True
            if later is not None:
                asked = later.behind(asked, record)
        return bought

    def answer(self, query: Expression | Query | Any) -> Answer:
        """Answer one query.

        Parameters
        ----------
        query : Expression, Query, Marginal, text or dict, or array of weights in [0, 1], one a cell
            A text is a condition in SQL, as of `queries.condition`. A dict is read as JSON is:
            {"age": [30, 50], "sex": "F"} has both ends of the range, as `queries.described` says.

        Returns
        -------
        Answer

        Raises
        ------
        InvalidQueryError, DomainMismatchError, TooLargeError
            If the query cannot be asked; nothing has changed and nothing was spent.
        SessionExhaustedError
            With exhausted="raise", when the hard answers are used up.
        SessionSealedError, ForkedSessionError
            If the session can no longer answer.
        """
        with self._held():
            self._curator.check_open()
            grid = self._sparse.grid_bits
            question = bind_question(query, self._data.domain, grid)
            self._book.catch_up()
            _check_supported(question, self._sparse, self._book.belief.hypothesis)
            self._begin_with(question)
            if grid != self._sparse.grid_bits:  # of another plan, which a signal's handler may have asked for
                question = bind_question(query, self._data.domain, self._sparse.grid_bits)
            self._book.catch_up()  # no test begins with records pending, of a hypothesis that has asked
            self._buy_later()
            return self._answered(question)

    @overload
    def answer_many(self, queries: Queries) -> Answers: ...  # type: ignore[overload-overlap]
    @overload
    def answer_many(self, queries: Iterable[Expression | Query | Any]) -> list[Answer]: ...
    def answer_many(self, queries: Queries | Iterable[Expression | Query | Any]) -> Answers | list[Answer]:
        """Answer queries in order: the same answers as one at a time, at array speed.

        All queries are checked before the first is answered. What an exception in the middle of them leaves
        behind is in the transcript, and remembered: asked again, it is a repeat.

        Parameters
        ----------
        queries : Queries, or iterable of Expression, Query, Marginal, dict or array of weights

        Returns
        -------
        Answers, or list of Answer
            Of a batch as columns, columns.
        """
        check_many(queries)
        with self._held():
            self._curator.check_open()
            if not self._begun and not isinstance(queries, Queries):
                queries = list(queries)  # bound again, if the first of them changes the plan
            grid = self._sparse.grid_bits
            parts = bind_batch(queries, self._data.domain, grid)
            self._book.catch_up()  # behind the loop, because a generator may have asked on its own
            for part in parts:
                _check_supported(part, self._sparse, self._book.belief.hypothesis)
            for part in parts if not self._begun else ():
                self._begin_with(_first_tested(part) if isinstance(part, Queries) else part)
            if grid != self._sparse.grid_bits:
                parts = bind_batch(queries, self._data.domain, self._sparse.grid_bits)
            self._book.catch_up()  # no test begins with records pending, of a hypothesis that has asked
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

    def sql(
        self,
        text: str,
        table: str = "t",
        params: Mapping[str, Value] | None = None,
        dialect: str | None = None,
    ) -> Answer | Derived | AnswerTable:
        """Answer a SELECT statement: counts, sums and averages, by group or not. See `docs/sql.md`.

        Parameters
        ----------
        text : str
            Such as "SELECT region, COUNT(*) FROM t WHERE age BETWEEN 30 AND 50 GROUP BY region".
        table : str
            The name that stands behind FROM.
        params : mapping, optional
            Values of the parameters `:name`.
        dialect : str, optional
            As sqlglot names it, for quotes and spellings.

        Returns
        -------
        Answer, Derived or AnswerTable
            Of one COUNT, of one SUM or AVG, and of several of them or GROUP BY.

        Raises
        ------
        InvalidQueryError, TooLargeError, InvalidParameterError
            If the statement is not understood, or does not fit the domain: nothing of it was asked.
        TooFewRecordsError
            If it is one AVG, over too few records.
        MissingExtraError
            Without the extra `onlineic[sql]`.
        """
        return answered(self, text, table, params, dialect)

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return bounds on answers of this session that hold all at once, and with all its others.

        The event, of probability 1 - beta, is that of `statistics().error_bound`, which bounds them too; the
        noise of the first tables bounds some of them better in the same event.

        Parameters
        ----------
        queries : iterable of Expression, Query, Marginal or array of weights
        answers : iterable of Answer
            What this session answered to each.

        Returns
        -------
        (m,) float64
            Fractions; of a constant what it was rounded by, inf where nothing is known.
        """
        with self._held():
            self._book.catch_up()
            asked = [bind_question(query, self._data.domain, self._sparse.grid_bits) for query in queries]
            given = list(answers)
            if len(given) != len(asked) or not all(isinstance(answer, Answer) for answer in given):
                raise InvalidParameterError(
                    f"answers must be the answers to these {len(asked)} queries, got {len(given)} objects; "
                    "give one Answer a query, in their order."
                )
            return self._book.joint_bounds(asked, given)

    def explain(self, question: Any) -> Explanation:
        """Return what a question is, what it may cost and what its answer will be worth; asks nothing.

        From public facts alone: neither the data nor the noise is touched, nothing is recorded or counted.

        Parameters
        ----------
        question : Expression, Query, Marginal, text, array of weights, list of these or function of a session
            A text is a condition in SQL, or a SELECT statement from t. A derived question is a function, such
            as `lambda session: session.mean("age")`: it is called with
            a stand-in that answers from the hypothesis, as if all tests turned out easy.

        Returns
        -------
        Explanation

        Raises
        ------
        InvalidQueryError, DomainMismatchError, TooLargeError
            If it cannot be asked.
        """
        with self._held():
            self._curator.check_open()
            self._book.catch_up()
            if isinstance(getattr(question, "__self__", None), OnlineIC):
                raise InvalidQueryError(
                    "a derived question must be a function of a session, got a method of one; write "
                    "explain(lambda session: session.mean('age'))."
                )
            outlook = _Outlook(self, self._plan, self._book, self._curator, self._ledger.account)
            asked, derived, questions = outlook.rehearsed(question)
            first = next((one for one in questions if one.constant is None), None)
            plan = self._plan if self._begun or first is None else self._plan_for(first)
            if plan is not self._plan:  # the session that it would make of this one answers
                outlook = _Outlook(self, plan, *self._made_anew(plan), plan.sparse.account())
                asked, derived, questions = outlook.rehearsed(question)
            return explanation(
                asked,
                questions,
                outlook,
                bound_derived=derived,
                hits_left=outlook.hits_left,
                left=outlook.left / outlook.account.capacity,
            )

    @property
    def receipt(self) -> Receipt:
        """Length and head of the ledger file as far as it is durable: `resume` refuses an older copy by it.

        Raises
        ------
        SessionStateError
            Without a ledger file.
        """
        return receipt_of(self._ledger, "session")

    def close(self) -> None:
        """Answer nothing more, give back what is reserved for the next hit, and let the ledger file go.

        Nothing is given back of a sealed session, nor what tests against a kept threshold have used up: the
        noise of such a threshold ends with its process, and is never stored.
        """
        with self._held():
            if not self._curator.closed:
                self._book.catch_up()
                self._book.keep_checkpoint()
                self._data.leave(self._ledger)
                self._curator.close(self._book.closing())
            self._ledger.give_back(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Name what was meant by an attribute that a session does not have."""
            known = [one for one in dir(type(self)) if one[0] != "_"]
            meant = MEANT.get(name) or (None if name[0] == "_" or name in known else nearest(name, known))
            hint = "see dir(session)." if meant is None else f"did you mean {meant}?"
            raise AttributeError(f"a session has no attribute {name!r}; {hint}")

    def __enter__(self) -> "OnlineIC":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _held(self) -> contextlib.AbstractContextManager[Any]:
        """Return the lock, in the session's own process: in a forked one nobody may ever release it."""
        if not hasattr(self, "_curator"):
            raise SessionStateError(
                "a session must be open to be used, got one whose opening failed; open another."
            )
        self._curator.check_process()
        return self._lock if self._progress is None else self._told()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Hold the lock, and tell the callback how far this call has come."""
        with self._lock, reporting(self._progress):
            yield

    def _answered(self, question: Question) -> Answer:
        """Answer one question."""
        book, curator = self._book, self._curator
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
        if self._awaits:
            self._buy_later()
        return answer

    def _asked_again(self, question: Question) -> Answer:
        """Return the answer of a question whose record a hypothesis that asks its own session has taken."""
        known = self._book.recalled(question)
        return self._book.untested(question) if known is None else known

    def _stream(self, queries: Queries, length: int, before: int, total: int) -> Answers:
        """Answer a batch in order: between two hits all at once, in runs that double while there is none."""
        columns = Columns.empty(len(queries))
        start = 0
        while start < len(queries):
            stop = min(len(queries), start + min(length, self._book.left_in_theorem or length))
            try:
                taken = self._run(queries[start:stop], columns.part(start, stop))
            except SessionExhaustedError as error:
                error.answers = tuple(self._book.answers(queries[:start], columns.part(0, start)))
                raise
            length = min(2 * length, LONGEST_RUN) if start + taken == stop else max(RUN, 2 * taken)
            start, self._quiet = start + taken, length
            advance("answers", before + start, total)
        return self._book.answers(queries, columns)

    def _run(self, queries: Queries, columns: Columns) -> int:
        """Answer up to the first hard one, which is included, or one that must wait; return how many."""
        book, recalled = self._book, self._book.recalled_many(queries)
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
        hard: Answer | None = None
        if len(payable):
            batch = queries.chosen(payable)
            if len(batch) == 1:
                alone = (batch[0],)
                asked_for = book.guesses(alone)
                guesses, length = np.array(asked_for, np.int64), len(self._ledger)
                self._curator.test(alone, asked_for)
            else:
                guesses, length = book.guesses_many(batch), len(self._ledger)
                self._curator.test(batch, guesses)
            *_, last = records = self._ledger.records(length)  # what is answered comes by way of the ledger
            easy = len(payable)
            if isinstance(last, Hard):
                easy = sum(len(record) for record in records if isinstance(record, EasyBatch))
                stop = int(payable[easy]) + 1  # those behind it were not tested
                hard = self._taken(last.query)
                hard = self._asked_again(last.query) if hard is None else hard
            self._book.catch_up()
            values = guesses[:easy] / (np.int64(self._data.n) << batch.grid_bits[:easy])
            columns.put(payable[:easy], values, EASY, radius)
            if hard is not None:
                columns.give(stop - 1, hard)
        self._repeat(queries, columns, recalled, stop, int((unpaid < stop).sum()))
        self._buy_later()
        return stop

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
        self._book.count_untaken(counts, rounding)

    def _guessed(self, queries: Queries) -> Floats:
        """Return the hypothesis's answers, on the grid."""
        return self._book.guesses_many(queries) / (np.int64(self._data.n) << queries.grid_bits)

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
        if self._curator.sealed:
            if first == 0:
                self._curator.check_unsealed()
            return tested[:0], first
        covered = np.array(self._curator.cover(queries.chosen(tested)), np.bool_)
        if self._exhausted == "raise" and not covered.all():
            covered = covered[: covered.argmin()]
            if len(covered) == 0 and first == 0:
                raise SessionExhaustedError(self._book.used_up())
        stop = int(tested[len(covered)]) if len(covered) < len(tested) else len(queries)
        return tested[: len(covered)][covered], stop

    def _taken(self, question: Question) -> Answer | None:
        """Return the recorded answer, or None if a hypothesis that asks its own session has taken it."""
        while self._book.pending:
            released = self._book.take()
            if released is not None and released[0] is question:
                return released[1]
        return None

    @property
    def hypothesis(self) -> Hypothesis:
        """The current hypothesis: public, and without any guarantee for a query that was not tested.

        First tables that were left to the first question are bought before, if there was none.
        """
        with self._held():
            if not self._curator.closed and not self._curator.sealed and not self._begun:
                self._begin(None)
            self._book.catch_up()
            return self._book.belief.hypothesis

    @property
    def domain(self) -> Domain:
        """The public domain of the table."""
        return self._data.domain

    @property
    def n(self) -> int:
        """The public number of records."""
        return self._data.n

    @property
    def beta(self) -> float:
        """Failure probability of every stated bound."""
        return self._plan.beta

    @property
    def answers_tables(self) -> bool:
        """Whether a cross table can be asked; if not, `group_by` asks its cells one by one."""
        return _answers_tables(self._sparse, self._book.belief.hypothesis)

    @property
    def plan(self) -> Plan:
        """The public parameters."""
        return self._plan

    @property
    def transcript(self) -> Transcript:
        """Everything recorded so far, in order: public; `replay` rebuilds the hypothesis from it."""
        with self._held():
            self._book.catch_up()  # an update that fails is recorded behind its release
            return Transcript(self._ledger.records())

    def statistics(self) -> SessionStatistics:
        """Return a snapshot of public facts."""
        with self._held():
            self._book.catch_up()
            return self._snapshot()

    def summary(self, answers: int = 20, attributes: Iterable[str] | None = None) -> Summary:
        """Return a page about the session that can be handed on: text, HTML, Markdown and figures.

        Released and public facts alone; nothing is read or spent. What the hypothesis believes of each
        attribute carries no guarantee, and is called so.

        Parameters
        ----------
        answers : int
            How many of the latest tested answers to list, with their bounds.
        attributes : iterable of str, optional
            Which to show; by default all of at most 10,000 values.

        Raises
        ------
        InvalidParameterError, InvalidQueryError
            If the number is negative or above 10,000, or a name is unknown.
        """
        answers = checked_integer("answers", answers, at_least=0, at_most=10_000)
        domain = self._data.domain
        if isinstance(attributes, str):
            raise InvalidParameterError(
                f"attributes must be a list of names, got the text {attributes!r:.60}; write it in brackets."
            )
        names = domain.names if attributes is None else [domain.names[domain.axis(one)] for one in attributes]
        with self._held():
            self._book.catch_up()
            book = self._book
            marginals = believed_marginals(book.belief.hypothesis, book.estimates, self._data.n, names)
            return Summary(
                domain,
                self._data.n,
                self._budget,
                self._plan,
                self._snapshot(),
                marginals,
                book.latest(answers) if answers else (),
            )

    def synthetic(self, rows: int, seed: int = 0) -> Synthetic:
        """Return synthetic records, drawn from the hypothesis: free, and without any guarantee.

        As with `hypothesis`, first tables are bought before, if nothing was asked yet.

        Parameters
        ----------
        rows : int
        seed : int
            Public: the records follow from it and the hypothesis.

        Raises
        ------
        InvalidParameterError
            If a number is outside its range, or the rule's hypothesis cannot be sampled.
        """
        return synthetic(self.hypothesis, rows, seed, self._private)

    def _snapshot(self) -> SessionStatistics:
        plan, counts = self._plan, self._book.counts
        return SessionStatistics(
            asked=sum(counts.values()),
            easy=counts["easy"],
            hard=counts["hard"],
            repeat=counts["repeat"],
            untested=counts["untested"],
            hard_left=self._curator.hard_left(self._owed(self._plan)),
            spent=float(self._ledger.spent / self._sparse.account().capacity),
            budget=self._budget,
            threshold=self._curator.threshold(),
            alpha=plan.alpha,
            beta=plan.beta,
            error_bound=self._book.error_bound(),
            certified=self._book.certified,
            update_failures=self._book.belief.failures,
            sealed=self._curator.sealed,
            private=self._private,
            family=self._book.family,
        )

    def __repr__(self) -> str:
        if not hasattr(self, "_curator"):
            return "OnlineIC(not open)"
        stats = self._snapshot()  # of what was taken in: a repr must not run an update
        shape = " x ".join(map(str, self._data.domain.shape))
        stamp = "" if self._private else ", NOT PRIVATE"
        return (
            f"OnlineIC(n={self._data.n}, {shape} cells, epsilon={self._budget.epsilon:g}, "
            f"delta={self._budget.delta:g}, {self._plan.update!r}, {stats.asked} asked, {stats.hard} hard, "
            f"{stats.hard_left} measured answers left{', sealed' * stats.sealed}{stamp})"
        )

    def _repr_html_(self) -> str:
        if not hasattr(self, "_curator"):
            return card("A session that is not open")
        return session_html(self._data.domain, self._data.n, self._plan, self._snapshot())

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "OnlineIC cannot be copied or pickled: its budget would be copied too; hand on summary(), or "
            "go on elsewhere from a ledger file by OnlineIC.resume."
        )


def _first_tested(queries: Queries) -> Query:
    """Return the first query of a batch that is no constant, or a constant."""
    return queries[int(np.argmin(np.isfinite(queries.constants)))]


def _answers_tables(sparse: NumericSparse, hypothesis: Hypothesis) -> bool:
    """Whether cross tables can be asked: a hit can be paid, and the hypothesis has their cells."""
    return sparse.releases_tables and isinstance(hypothesis, HasBlocks)


def _check_supported(question: Question | Queries, sparse: NumericSparse, hypothesis: Hypothesis) -> None:
    """Raise `InvalidQueryError` if the mechanism or the hypothesis does not know such questions."""
    if isinstance(question, BoundMarginal):
        if not sparse.releases_tables:
            raise InvalidQueryError(
                "a cross table must be asked of a session that measures tables, got one that was planned to "
                "measure single numbers, with delta = 0; ask its counts by group, session.group_by"
                f"({list(question.names)!r:.100}) or GROUP BY in SQL, or open a session with delta above 0."
            )
        sparse.price(question.partition)
        if not isinstance(hypothesis, HasBlocks):
            raise InvalidQueryError(NO_BLOCKS)
    elif not (
        supports_all(hypothesis, question) if type(question) is Queries else hypothesis.supports(question)
    ):
        raise InvalidQueryError("query must be supported by the hypothesis, got one that is not.")


@final
@attrs.frozen
class _Outlook(Outlook):
    """What a session, or that which its first question makes of it, knows of questions not asked yet."""

    session: OnlineIC
    plan: Plan
    book: AnswerBook
    curator: Curator
    account: Filter
    seen: dict[Any, Prospect] = attrs.field(factory=dict)

    @property
    def left(self) -> Fraction:
        """What no release has used up, or will with the first question, in the unit of the account."""
        return self.account.left - self.session._owed(self.plan)

    @property
    def hits_left(self) -> int:
        """Hits of the largest price that can still be paid."""
        return self.curator.hard_left(self.session._owed(self.plan), self.account)

    @property
    def answers_tables(self) -> bool:
        return _answers_tables(self.plan.sparse, self.book.belief.hypothesis)

    def rehearsed(self, question: Any) -> tuple[str, float | None, list[Question]]:
        """Return how a question is called, its bound if it is a derived one, and what it asks."""
        session = self.session
        rehearsal = Rehearsal(self, session.domain, session.n, session.beta)
        if callable(question) and not isinstance(question, np.ndarray):
            return *rehearsal.of(question), rehearsal.questions
        asked, derived = f"{question!r:.80}", None
        if isinstance(question, str) and question.lstrip()[:6].upper() == "SELECT":
            _, derived = rehearsal.of(lambda session: session.sql(question))
            return asked, derived, rehearsal.questions
        several = isinstance(question, Queries | list | tuple)
        return asked, derived, [self.bound(each) for each in (question if several else [question])]

    def bound(self, question: Any) -> Question:
        bound = bind_question(question, self.session.domain, self.plan.sparse.grid_bits)
        _check_supported(bound, self.plan.sparse, self.book.belief.hypothesis)
        return bound

    def prospect(self, question: Question) -> Prospect:
        key = (question.key, question.complement)
        if key not in self.seen:
            self.seen[key] = self._prospect(question)
        return self.seen[key]

    def _prospect(self, question: Question) -> Prospect:
        answer, hard, joint, known = self.book.prospect(question, self.curator.released_by(question))
        price = Fraction(0) if known else self.curator.cost(question) / self.account.capacity
        return Prospect(answer, hard, joint, price, known)
