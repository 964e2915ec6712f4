"""The session: OnlineIC itself, one budget and one ledger behind the face that analysts ask.

It opens, resumes, locks and closes; how a question becomes an answer stands in `onlineic.session.loop`.

Proof: docs/theory/ledger-and-restarts.md, 5.4; docs/theory/queries.md, 1.9; docs/theory/session.md, 4.1.
"""

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Literal, NoReturn, TypeVar, final, overload

import attrs

from onlineic._typing import Floats
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.ask.bind import bind_question, check_many
from onlineic.ask.sql import Statements
from onlineic.ask.sql_values import Value
from onlineic.data.private import PrivateData, warn_large_delta
from onlineic.data.release import check_data, check_outside, is_private, lock_of
from onlineic.display.html import card
from onlineic.display.text import upward
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit, parts_of, persons_of, whose
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    LedgerMismatchError,
    SessionStateError,
    VacuousPromiseWarning,
    callers_line,
    check_kind,
    checked_integer,
    checked_list,
    shown,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.ledger.lines import Receipt
from onlineic.ledger.memory import MemoryLedger
from onlineic.ledger.records import FrozenLedger, Ledger
from onlineic.ledger.settings import check_beginning, package_version
from onlineic.ledger.settings import check_kind as check_kind_of_file
from onlineic.ledger.sqlite import SqliteLedger, file_of, receipt_of
from onlineic.ledger.transcript import Transcript
from onlineic.noise.sources import Noise, SystemNoise, checked_source
from onlineic.plan.announced import Questions
from onlineic.plan.certificates import textbook_plan
from onlineic.plan.demand import DemandPurchases
from onlineic.plan.forecasts import counted_out, told_would
from onlineic.plan.listening import told_nothing
from onlineic.plan.older import warn_other_rules
from onlineic.plan.plan import TRIVIAL, Plan
from onlineic.plan.planning import session_plan
from onlineic.plan.purchase_rule import PurchaseRule
from onlineic.plan.settings import Exhausted, Release, Settings, settings_of
from onlineic.progress import Progress, checked_progress, reporting
from onlineic.queries.answers import Answer
from onlineic.queries.batch import Queries
from onlineic.queries.counted import Counted
from onlineic.queries.expressions import Expression
from onlineic.queries.marginals import Question
from onlineic.queries.query import Query
from onlineic.queries.within import Within, checked_within
from onlineic.questions.derived import Answering
from onlineic.questions.linear import Estimate, PublicFacts
from onlineic.questions.means import Derived
from onlineic.questions.statements import AnswerTable, answered
from onlineic.questions.synthetic import Synthetic, check_sampled, synthetic
from onlineic.questions.wishes import Wishing
from onlineic.reentry import NonReentrantLock
from onlineic.session.answers import AnswerBook
from onlineic.session.askable import check_supported
from onlineic.session.asking import Asking, Places, check_answers
from onlineic.session.belief import Belief
from onlineic.session.columns import Answers
from onlineic.session.core import Core
from onlineic.session.counting import (
    after_count,
    check_told,
    drawn_number,
    pay_again,
    rest_of,
    with_relation,
)
from onlineic.session.durable import (
    Durability,
    LedgerFile,
    check_prior,
    check_relation,
    check_unit_of,
    counted_of,
    ledger_choice,
    planned,
    restoring,
    settings_in,
    told_in,
    told_written,
    unit_of,
    unit_written,
)
from onlineic.session.explain import Explanation, Previewer, explained
from onlineic.session.loop import Loop
from onlineic.session.persons import finest, of_persons, planning
from onlineic.session.quota import Quota
from onlineic.session.statistics import SessionStatistics
from onlineic.session.summary import Summary, believed_marginals, session_html
from onlineic.session.view import View
from onlineic.session.wish_spending import spending_of, spent_by_wish
from onlineic.slips import public
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.kinds import SparseName
from onlineic.updates.base import UpdateRule, check_rule
from onlineic.updates.multiplicative_weights import MultiplicativeWeights

T = TypeVar("T")
TWICE = "a session must be opened once, got __init__ again; open a new one."


def check_record(ledger: object, noise: object) -> None:
    """Raise `InvalidParameterError` unless a session can be recorded there, with this noise."""
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


NOT_NEW = (
    "ledger must be new, got one with {:,} records; write MemoryLedger(), or the path of a file, from which "
    "a session goes on."
)


@public
@final
class OnlineIC(Answering):
    """Answers to a stream of linear queries about one private table, under one budget.

    Everything that a session releases (values, labels, bounds, statistics, messages, its records) is jointly
    (epsilon, delta)-differentially private for replace-one neighbours with public n, for every adaptive
    stream of queries. One record is replaced, or one person with all of their rows, if the table was loaded
    with a `Unit`; the number of persons is public then, and counts are numbers of persons, weighed. It
    protects against people who see what is released, not against people who can look inside this process.

    Use it as `with OnlineIC(...) as session:`, or call `close`: both give the standing reservation back. A
    session cannot be copied, pickled or used after a fork: a copy would copy the budget.

    Dwork & Roth (2014), section 5.2.2, Algorithm 11.

    Args:
        budget: For the whole life of the session, however many queries are asked. A share of the total of the
            table is made by `TableBudget.share`. `plan.Settings` hold a budget and the keywords up to
            `restarts`.
        rows_per_person: At least 1. The most rows that a person can have: the budget is a person's then, and
            each row gets a part of it. Nothing checks the table: cap the rows of a person before loading. How
            many rows a person has is not protected. A table that was loaded with a `Unit` needs none: it
            protects all rows of a person, and their number, at the noise of one row.
        hard_answers: How many measured answers to plan for. They hardly run out: after the first, each costs
            at most a twentieth of the budget that is left, with more noise, and `statistics().hard_left`
            stays near 20. Where `certify`, `threshold`, a `sparse` of your own or textbook mode fixes their
            price, they can.
        certify: Accuracy to certify: the gap above which a query is hard, fraction of records. Then the hard
            answers to single queries cannot run out, and `plan.error_bound` holds for each of the first
            `max_queries` of them. Give at most one of `hard_answers` and `certify`; without either the
            session plans both from n, the domain, the budget and `questions`.
        max_queries, beta: For how many queries the session-wide bound holds, and the probability that it
            fails. To say how many will come, write `questions`.
        update, sparse, release, threshold: As in `plan.Settings`; by default partition releases and
            maximum-entropy refits, with pay-per-hit tests for delta > 0 and pure tests for delta = 0.
        prior: A public start, never made from the private rows. Without one records are spread evenly
            at first. The hypothesis of another session is public: that session has paid for it.
        exhausted: When the budget pays for no measured answer any more: answer from the hypothesis without
            touching the data, bounded by the noise of bought tables alone; or raise `SessionExhaustedError`.
        purchases: As in `plan.Settings`: what is bought without a test. By default the session buys tables as
            queries come, or with the first query one of all cells; `TestsOnly()` buys nothing.
        questions: A number; or an iterable of names, of sets of names, or of questions. What is known of the
            questions to come, and public: about how many different ones (20: if they are few, each is
            measured), sets of attributes that they will join ([("age", "sex"), "city"]: their tables are
            bought), or the questions themselves, which tell both. Conjunctions of conditions are told well by
            tables of pairs of attributes. Dense queries are arrays of weights without such a form; if there
            are some in the list, the session starts from all cells, or measures each query.
        within: How exact each answer is to be, a fraction of the records. A number: its `error_bound` is at
            most so much, or the answer says why not. `expected(number)`: 95 of 100 answers are expected
            within so much, which costs less. Each question is paid for no more than it needs. A call can wish
            otherwise. See `docs/within.md`.
        counted: The number of records as `offline.count` released it, if it is private. By default the
            session releases one from its own budget. That the number is off by more than its bound has a
            probability of its own, besides `beta`.
        ledger: File that records all spending. A session that is opened with the same file, table, label and
            settings goes on where it was, in any process. By default the record is in memory, and every
            session is a new budget. See `docs/ledger.md`.
        table: With a file: the public name of the table and its release. Bounds hold for the table as it was.
        restarts: With a file: how often the session will be closed and resumed. A mechanism that keeps a
            threshold (delta = 0) pays for it again each time. So many restarts are paid for in advance; each
            further one takes from the hard answers. `statistics().restarts_left` tells how many are left.
        durability: With a file: charges and hard answers are durable before they leave. "hits": up to 256
            easy answers can be lost by a crash, which are then tested again; "all": none.
        noise: By default the system's entropy. Simulated noise stamps everything NOT PRIVATE.
        progress: Called with (stage, done, total), or "bar". Called while tables are bought, hypotheses
            fitted and batches answered, with public facts alone. "bar" shows a bar for whatever takes more
            than two seconds; it needs the extra `onlineic[progress]`. If the callable raises, the call stops
            safely: answers that were released are in the transcript, and asking them again costs nothing. If
            it asks the session, the session raises `SessionStateError`.

    Examples:
        >>> session = OnlineIC(data, Budget(epsilon=1.0, delta=1e-9))
    """

    def __init__(
        self,
        data: PrivateData,
        budget: Budget | Settings,
        *,
        rows_per_person: int = 1,
        hard_answers: int | None = None,
        certify: float | None = None,
        max_queries: int = 10_000,
        beta: float = 0.05,
        update: UpdateRule[Any] | None = None,
        sparse: SparseName | NumericSparse | None = None,
        release: Release | None = None,
        threshold: float | None = None,
        prior: Hypothesis | None = None,
        exhausted: Exhausted = "untested",
        purchases: PurchaseRule[Any] | None = None,
        questions: Questions | None = None,
        within: float | Within | None = None,
        counted: Counted | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        table: str | None = None,
        restarts: int = 0,
        durability: Durability = "hits",
        noise: Noise | None = None,
        progress: Progress | Literal["bar"] | None = None,
    ) -> None:
        check_data(data)
        check_told(data, counted, noise)
        settings = settings_of(
            budget,
            rows_per_person=rows_per_person,
            hard_answers=hard_answers,
            certify=certify,
            max_queries=max_queries,
            beta=beta,
            update=update,
            sparse=sparse,
            release=release,
            threshold=threshold,
            prior=prior,
            exhausted=exhausted,
            restarts=restarts,
            purchases=purchases,
            questions=questions,
            within=within,
        )
        settings = with_relation(data, settings.of_domain(data.domain))
        if data.reach is not None and not data.reach.is_whole(data.domain):
            settings = attrs.evolve(settings, reach=data.reach)
        # of a private number what cannot be planned even of the most is refused before anything is spent
        known = None if counted is None else counted.n
        persons = data.n if data.n_at_most is None else known or data.n_at_most

        def made(unit: Unit | None) -> tuple[Settings, Plan]:
            of_parts, n = of_persons(unit, data.total is not None, settings), parts_of(persons, unit)
            with planning(unit, of_parts):
                draws = data.n_at_most is not None and counted is None
                return of_parts, session_plan(data.domain, n, after_count(of_parts) if draws else of_parts)

        unit, (settings, plan) = finest(data.units(), made)
        written = {**settings.written(), **unit_written(unit), **told_written(counted)}
        chosen = ledger_choice(ledger, table, durability, written)
        data.cut_into(unit)
        self._open(data, settings, plan, chosen, noise, progress, counted)

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

        Args:
            data: The very table: same domain and n; nothing in the file could tell that its rows are others,
                for which privacy would hold and the stated bounds would not.
            table: Label to insist on.
            receipt: As `receipt` returned it at any time: an older copy of the file is refused.
            update, prior: Those of the session, where they are not of this package, or were given.
            progress: Called with (stage, done, total), or "bar". As at its opening.

        Raises:
            LedgerLockedError, LedgerCorruptError, LedgerRollbackError: If a session has the file, it is not
                whole, or older than the receipt.
            LedgerMismatchError: If it is of another table.
        """
        kept = SqliteLedger.open(ledger, durability, receipt)
        try:
            check_kind_of_file(kept.beginning, total=False)
            beginning = kept.beginning
            check_data(data)
            promised = unit_of(beginning)
            check_unit_of(beginning, promised if promised in data.units() else data.unit)
            private = data.n_at_most is not None
            check_relation(beginning, private)
            known = None if private else parts_of(data.n, promised)
            check_beginning(beginning, table=table, domain=data.domain, n=known)
            check_prior(beginning, prior)
            plan = planned(beginning, data.domain, update)
            settings = settings_in(beginning, data.domain, prior)
            data.cut_into(promised)
            return cls.__new__(cls)._open(data, settings, plan, kept, None, progress)
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

        Args:
            alpha: None: the least that the theorem allows.
            update: With a proven T(alpha); by default `MultiplicativeWeights(variant="book")`.

        Raises:
            InfeasibleAccuracyError: If alpha is infeasible; the message names the least feasible one.
        """
        check_data(data)
        if data.unit is not None:
            raise InvalidParameterError(
                "data must be of one record a person in textbook mode, got persons with many rows; open "
                "OnlineIC(data, budget), or load one row a person without unit=."
            )
        if data.n_at_most is not None:
            raise InvalidParameterError(
                'neighbours must be "replace-one" in textbook mode, whose theorem is of fractions of a '
                "public n, got add-remove; open OnlineIC(data, budget), or load the table without it."
            )
        check_rule(update)
        opened = Settings(Budget(epsilon, delta), exhausted=exhausted)
        plan = textbook_plan(
            data.domain,
            data.n,
            opened.budget,
            update or MultiplicativeWeights(variant="book"),
            beta=beta,
            max_queries=max_queries,
            alpha=alpha,
        )
        settings = {
            "textbook": True,
            "budget": opened.budget,
            "beta": beta,
            "max_queries": max_queries,
            "update": update,
            "alpha": alpha,
            "exhausted": exhausted,
        }
        chosen = ledger_choice(ledger, table, durability, settings)
        return cls.__new__(cls)._open(data, opened, plan, chosen, noise, progress)

    def _open(
        self,
        data: PrivateData,
        settings: Settings,
        plan: Plan,
        ledger: Ledger | LedgerFile | None,
        noise: Noise | None,
        progress: Progress | Literal["bar"] | None = None,
        told: Counted | None = None,
    ) -> "OnlineIC":
        of_row = settings.of_row
        check_record(ledger, noise)
        if self._is_open:
            raise SessionStateError(TWICE)
        if plan.certified and plan.error_bound >= TRIVIAL:
            warnings.warn(
                f"the session's promise must be below {TRIVIAL} to say anything, got an error bound of "
                f"{upward(plan.error_bound)}: the answer 1/2 to everything keeps it too. Raise n or epsilon, "
                "ask fewer queries over fewer cells, or open OnlineIC(data, budget), which promises less.",
                VacuousPromiseWarning,
                stacklevel=callers_line(),
            )
        self._progress = checked_progress(progress)
        noise = noise if noise is not None else SystemNoise()
        self._data, self._noise, self._settings, self._private = data, noise, settings, is_private(noise)
        self._lock, self._statements = NonReentrantLock("session", (lock_of(data),)), Statements(data.domain)
        self._places = Places()
        check_outside(data, noise)
        released, public, drawn = told, data.n_at_most is None, False
        begins = not isinstance(ledger, SqliteLedger) and (not isinstance(ledger, LedgerFile) or ledger.new)
        if not public and begins:
            if isinstance(ledger, Ledger) and len(ledger):
                raise LedgerMismatchError(NOT_NEW.format(len(ledger)))
            # a start that is none is refused before that
            Belief.begun(plan.update, data.domain, settings.prior)
            if released is None:
                file, drawn = ledger if isinstance(ledger, LedgerFile) else None, True
                released = drawn_number(data, settings, noise, file)
                with planning(data.unit, settings):
                    plan = session_plan(data.domain, parts_of(released.n, data.unit), after_count(settings))
        if isinstance(ledger, LedgerFile):
            if ledger.new and public:  # no file is left of a session that the total of the table does not pay
                data.check_affords(of_row, plan.drawn)
            opening = ledger
            ledger, plan = opening.opened(data.domain, data.mass if public else None, plan, released)
            if drawn:
                opening.end_count()
        if not public and isinstance(ledger, SqliteLedger):
            released = counted_of(ledger.beginning)
        n = data.mass if released is None else parts_of(released.n, data.unit)
        persons = persons_of(n, data.unit)
        held, loop = ledger if ledger is not None else MemoryLedger(), None
        try:
            resumed = isinstance(ledger, SqliteLedger) and not ledger.fresh
            if resumed:
                warn_other_rules(plan.purchases)
            told_before = isinstance(ledger, SqliteLedger) and resumed and told_in(ledger.beginning)
            if told_before and data.total is not None:
                raise InvalidParameterError(
                    "data must be without a total to go on with a session that was told its number of "
                    "records, got one, whose shares pay for a number each; resume it without the total."
                )
            loop = Loop(data.domain, n, plan, held, self._private, data.unit, released)
            belief = Belief.begun(plan.update, data.domain, settings.prior)
            data.check_file(held, held.file)
            held.claim(loop, plan.sparse.account(), self._private)
            with restoring(resumed):
                raises, said = settings.exhausted == "raise", whose(data.unit)
                book = AnswerBook(
                    plan, data.domain, n, held, belief, self._private, persons, raises, released, said
                )
                loop.restore(Core(data, noise, book, n))
            if resumed:
                loop.bought()  # refuses tables that the plan does not buy
            elif len(held):
                raise LedgerMismatchError(NOT_NEW.format(len(held)))
            if self._private and not drawn:
                pay_again(data, settings, held.file)
            spent, paid = rest_of(data, settings) if self._private else None, drawn and data.total is None
            data.enter(held, spent, held.file, plan.drawn, settings.rows_per_person, paid)
            if isinstance(ledger, SqliteLedger) and resumed:
                ledger.restart(package_version())  # after all that could refuse it
            data.begun(held)
            if told is not None and self._private and not resumed:
                warn_large_delta(of_row, n)
            if self._is_open:
                raise SessionStateError(TWICE)
            self._loop = loop
            if resumed:
                loop.book.catch_up()
            return self
        except BaseException:
            # a traceback holds what is half open: it must not test beside the next owner of the ledger
            if loop is None:
                held.give_back(self)
            else:
                loop.give_up()
            raise

    def answer(self, query: Expression | Query | Any, *, within: float | Within | None = None) -> Answer:
        """Answer one query.

        Args:
            query: Expression, Query, Marginal, text or dict, or array of weights in [0, 1], one a cell. A
                text is a condition in SQL, as of `ask.condition`. A dict is read as JSON is: {"age": [30,
                50], "sex": "F"} has both ends of the range, as `ask.described` says.
            within: How exact the answer is to be, as of the session; None: as the session wishes.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If the query cannot be asked; nothing has
                changed and nothing was spent.
            SessionExhaustedError: With exhausted="raise", when the hard answers are used up.
            SessionSealedError, ForkedSessionError: If the session can no longer answer.
            SessionStateError: If it is closed; or if a signal's handler or a callback asks in the middle of
                another call of this session, or of a read of its table: nothing was spent.

        Examples:
            >>> session.answer(where(sex="Female"))  # a fraction of the records; `count` is their number
            Answer(0.33... ± 0.00..., 16... records...)
        """
        wish = None if within is None else checked_within(within)
        return self._alone(lambda: self._loop.answer(query, wish))

    @overload
    def answer_many(  # type: ignore[overload-overlap]
        self, queries: Queries, *, within: float | Within | None = None
    ) -> Answers: ...
    @overload
    def answer_many(
        self, queries: Iterable[Expression | Query | Any], *, within: float | Within | None = None
    ) -> list[Answer]: ...
    def answer_many(
        self, queries: Queries | Iterable[Expression | Query | Any], *, within: float | Within | None = None
    ) -> Answers | list[Answer]:
        """Answer queries in order, at array speed, under the same noise, charges and bounds as one by one.

        All queries are checked before the first is answered. A session that buys tables by what is asked
        (`plan.DemandPurchases`) reads all queries of the call first, so that asking in one call lowers
        errors; other sessions give the same numbers as one by one. If an exception stops the call, the
        answers released before it are in the transcript, and asking them again costs nothing.

        Args:
            queries: Queries, or iterable of Expression, Query, Marginal, dict or array of weights.
            within: As of `answer`, for each of them. The call is fixed before anything is bought for it: so
                tables may answer it for less than numbers one by one would.

        Returns:
            Of a batch as columns, columns.

        Examples:
            >>> session.answer_many([where(sex="Female"), where(sex="Male")])
            [Answer(0.33... records...), Answer(0.66... records...)]
        """
        check_many(queries)
        asked: Queries | list[Any] | tuple[Any, ...]
        if isinstance(queries, Queries | list | tuple):
            asked = queries
        else:  # a generator may ask on its own, or never end
            asked = checked_list("queries", queries, remedy="write [query, ...]")
        wish = None if within is None else checked_within(within)
        return self._alone(lambda: self._loop.answer_many(asked, wish))

    def answer_within(self, queries: Iterable[Any], within: Within) -> list[Answer]:
        """Answer the queries of one call, each within a wish, as `answer_many`.

        Args:
            queries: Iterable of Expression, Query, Marginal, dict or array of weights.
        """
        asked = checked_list("queries", queries, remedy="write [query, ...]")
        wish = checked_within(within)
        return self._alone(lambda: [*self._loop.answer_many(asked, wish)])

    def believed(self, queries: Iterable[Any]) -> list[float]:
        """Return what the hypothesis says of each query: free, and without any guarantee.

        Args:
            queries: Iterable of Expression, Query or array of weights.
        """
        asked = checked_list("queries", queries, remedy="write [query, ...]")

        def said() -> list[float]:
            book, grid = self._loop.book, self._loop.plan.weight_bits
            book.catch_up()
            bound = [bind_question(query, self._data.domain, grid) for query in asked]
            return [book.said(question) for question in bound]

        return self._alone(said)

    def bind(self, question: Any) -> Question:
        """Return a question as it would be tested, or raise if it cannot be asked; nothing is asked.

        Args:
            question: Expression, Query, Marginal, text, dict or array of weights.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If it does not fit the domain or the plan.
        """
        loop = self._loop
        bound = bind_question(question, self._data.domain, loop.plan.weight_bits)
        check_supported(bound, loop.plan.sparse, loop.book.belief.hypothesis, self._data.reach)
        return bound

    def view(self) -> View:
        """Return a frozen copy of all public facts; any thread can read it while the session works on.

        Nothing is bought: before the first question the hypothesis believes nothing yet.
        """

        def taken() -> View:
            loop = self._loop
            loop.book.catch_up()
            statistics = loop.statistics(self._settings)  # what it works out is in the copy
            previewer = Previewer.of(loop).frozen(FrozenLedger(loop.ledger))
            self._places.take(loop.ledger)
            return View(
                domain=self._data.domain,
                n=self.n,
                plan=loop.plan,
                statistics=statistics,
                hypothesis=previewer.book.belief.hypothesis,
                answers_tables=loop.answers_tables,
                account=loop.ledger.account,
                reserved=loop.ledger.reserved,
                owed=previewer.owed,
                owed_alone=previewer.owed_alone,
                paid=loop.book.state.paid,
                length=len(loop.ledger),
                previewer=previewer,
                places=self._places,
            )

        return self._alone(taken)

    def paid_by(self, quota: Quota | None) -> Asking:
        """Return this session for one of several askers, who can spend no more than their quota holds.

        Args:
            quota: None: the curator, who may spend all of the budget.
        """
        if quota is not None:
            check_kind("quota", quota, Quota, remedy="write Quota('name', Fraction(..))")

        def paying(act: Callable[[], T]) -> T:
            def paid() -> T:
                payments = self._loop.core.payments
                before, payments.quota = payments.quota, quota
                try:
                    return act()
                finally:
                    payments.quota = before

            return self._alone(paid)

        return Asking(self, lambda: self._loop, paying, self._places, quota)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Make what is answered inside durable at the end, in one write, where durability is "all".

        For a server with many askers. Answers that are given inside must not be handed on before the block
        has ended, and one thread at a time may use the session. Charges and releases are durable at once, as
        ever.

        Raises:
            LedgerError: At its end, if the write fails: then nothing that was answered inside may be handed
                on.
        """
        ledger = self._loop.ledger
        ledger.gather()
        try:
            yield
        finally:
            self._alone(ledger.settle)

    def released(self, start: int = 0, stop: int | None = None) -> list[tuple[int, Answer]]:
        """Return (place, answer) of each of these records whose answer still stands.

        Args:
            start, stop: Places in the transcript, at least 0; by default all.

        Raises:
            InvalidParameterError: If a place is no whole number, or below 0.
        """
        start = checked_integer("start", start, at_least=0)
        stop = None if stop is None else checked_integer("stop", stop, at_least=0)

        def found() -> list[tuple[int, Answer]]:
            book = self._loop.book
            book.catch_up()
            return book.released(start, len(self._loop.ledger) if stop is None else stop)

        return self._alone(found)

    def told(self, question: Any) -> Answer | None:
        """Return the earlier answer of a question, as a repeat; asks nothing, and costs nothing.

        Args:
            question: Expression, Query, Marginal, text, dict or array of weights.

        Returns:
            A repeat; None if it was never answered, or without a test.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If it does not fit the domain or the plan.
        """
        bound = self.bind(question)

        def found() -> Answer | None:
            self._loop.book.catch_up()
            return self._loop.book.told(bound)

        return self._alone(found)

    def sql(
        self,
        text: str,
        table: str = "t",
        params: Mapping[str, Value] | None = None,
        dialect: str | None = None,
        *,
        within: float | Within | None = None,
    ) -> Answer | Derived | AnswerTable:
        """Answer a SELECT statement: counts, sums and averages, by group or not. See `docs/sql.md`.

        Args:
            text: Such as "SELECT region, COUNT(*) FROM t WHERE age BETWEEN 30 AND 50 GROUP BY region".
            table: The name that stands after FROM.
            params: Values of the parameters `:name`.
            dialect: As sqlglot names it, for quotes and spellings.
            within: How exact the numbers of records are to be that it is made of, all at once: a fraction of
                the records.

        Returns:
            Of one COUNT, of one SUM or AVG, and of several of them or GROUP BY.

        Raises:
            InvalidQueryError, TooLargeError, InvalidParameterError: If the statement is not understood, or
                does not fit the domain: nothing of it was asked.
            TooFewRecordsError: If it is one AVG, over too few records.
            MissingExtraError: Without the extra `onlineic[sql]`.

        Examples:
            >>> session.sql("SELECT COUNT(*) FROM t WHERE sex = 'Female'").count
            16...
        """
        wish = None if within is None else checked_within(within)
        read = self._statements.read(text, table, params, dialect)
        return answered(self if wish is None else Wishing(self, wish), read)

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return bounds on answers of this session that hold all at once, and with all its others.

        The event, of probability 1 - beta, is that of `statistics().error_bound`, which bounds them too; the
        noise of the first tables bounds some of them better in the same event.

        Args:
            queries: Iterable of Expression, Query, Marginal or array of weights.
            answers: What this session answered to each.

        Returns:
            Fractions; of a constant what it was rounded by, inf where nothing is known.
        """
        chosen = checked_list("queries", queries, remedy="write them in brackets")
        given = checked_list("answers", answers, remedy="write what answer_many returned")

        def bounds() -> Floats:
            book, grid = self._loop.book, self._loop.plan.weight_bits
            book.catch_up()
            asked = [bind_question(query, self._data.domain, grid) for query in chosen]
            check_answers(asked, given)
            return book.joint_bounds(asked, given)

        return self._alone(bounds)

    def snapshot(self, queries: Iterable[Any], answers: Iterable[Answer]) -> list[Answer]:
        """Return answers of this session with the values of its present hypothesis; free, and not remembered.

        Means, cumulative shares, groups and statements in SQL are worked out from these, so that their parts
        fit together. A bound grows by the distance from what was told, if released tables bound it no better.

        Args:
            queries: Iterable of Expression, Query or array of weights.
            answers: What this session answered to each.

        Returns:
            Those that differ are "untested". What was measured, untested or exact stays; so does all where
            the update rule does not fit all that was measured.
        """
        chosen = checked_list("queries", queries, remedy="write them in brackets")
        given = checked_list("answers", answers, remedy="write what answer_many returned")

        def read() -> list[Answer]:
            book, grid = self._loop.book, self._loop.plan.weight_bits
            book.catch_up()
            asked = [bind_question(query, self._data.domain, grid) for query in chosen]
            check_answers(asked, given)
            return book.snapshot(asked, given)

        return self._alone(read)

    def unprojected(self, queries: Iterable[Any]) -> list[Estimate | None]:
        """Return what released tables say of each query by themselves, None where nothing is known.

        Answers come from a fit that is never below 0, and so are too large in the mean where next to nobody
        is. These estimates have no bias for queries that were chosen before the tables were released, and can
        be negative. Free: nothing is asked or read.

        Args:
            queries: Iterable of Expression, Query, Marginal or array of weights.

        Returns:
            Also None of a cross table: ask for its cells.
        """
        chosen = checked_list("queries", queries, remedy="write them in brackets")

        def found() -> list[Estimate | None]:
            book, grid = self._loop.book, self._loop.plan.weight_bits
            book.catch_up()
            return [book.unprojected(bind_question(query, self._data.domain, grid)) for query in chosen]

        return self._alone(found)

    def explain(self, question: Any, *, within: float | Within | None = None) -> Explanation:
        """Return what a question is, what it may cost and what its answer will be worth; asks nothing.

        From public facts alone: neither the data nor the noise is touched, nothing is recorded or counted.
        Before the first question bounds are those of its test; the noise of first tables may say more.

        Args:
            question: Expression, Query, Marginal, text, array of weights, list of these or function of a
                session. A text is a condition in SQL, or a SELECT statement from t. A derived question is a
                function, such as `lambda session: session.mean("age")`: it is called with a stand-in that
                answers from the hypothesis, as if all tests turned out easy.
            within: How exact each of its numbers is to be, as of `answer`; None: as the session wishes. Then
                `prices` tells what each way to answer it costs, as a part of the budget and as the epsilon
                that this is by itself, and which will be taken; `likely` what is to be expected.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If it cannot be asked.
        """
        if isinstance(getattr(question, "__self__", None), OnlineIC):
            raise InvalidQueryError(
                "a derived question must be a function of a session, got a method of one; write "
                "explain(lambda session: session.mean('age'))."
            )
        wish = None if within is None else checked_within(within)
        return self._alone(lambda: explained(self._loop, question, wish))

    @property
    def durability(self) -> Durability | None:
        """Which answers no crash can lose, "hits" or "all"; None: there is no ledger file."""
        return self._loop.ledger.durability

    @property
    def receipt(self) -> Receipt:
        """Length and head of the ledger file as far as it is durable: `resume` refuses an older copy by it.

        Raises:
            SessionStateError: Without a ledger file.
        """
        return receipt_of(self._loop.ledger, "session")

    def copy_to(self, path: str | os.PathLike[str]) -> Receipt:
        """Write a copy of the ledger file while the session goes on, from any thread; return its receipt.

        The copy is read as any ledger; it is gone on with once it has taken the place of a lost original.

        Args:
            path: Of a file that is not there yet.

        Raises:
            LedgerError: If it cannot be written.
            SessionStateError: Without a ledger file.
        """
        return file_of(self._loop.ledger, "session").copy_to(path)

    def close(self) -> None:
        """Answer nothing more, give back what is reserved for the next hit, and let the ledger file go.

        Nothing is given back of a sealed session, nor what tests against a kept threshold have used up: the
        noise of such a threshold ends with its process, and is never stored.
        """
        self._alone(self._closed)

    @property
    def closed(self) -> bool:
        """Whether it answers nothing more, as it was closed; one with a file is resumed from that."""
        return self._loop.core.read_guard.closed

    def _closed(self) -> None:
        loop = self._loop
        try:
            if not loop.core.read_guard.closed:
                if not loop.ledger.broken:
                    loop.book.catch_up()
                    loop.book.keep_checkpoint()
                self._data.leave(loop.ledger)
                loop.core.close()
        finally:
            if loop.core.read_guard.closed:
                loop.ledger.give_back(loop)

    def __enter__(self) -> "OnlineIC":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _is_open(self) -> bool:
        return hasattr(self, "_loop") and self._loop.usable

    def _alone(self, act: Callable[[], T]) -> T:
        """Return what `act` returns, called alone, and tell the callback how far it has come.

        Refused in a forked process, where nobody may ever open the lock, and in the middle of a read or a
        draw of this thread, where nothing could be tested: before anything is spent.
        """
        try:
            core = self._loop.core
        except AttributeError:
            raise SessionStateError(
                "a session must be open to be used, got one whose opening failed; open another."
            ) from None
        core.read_guard.check_process()
        self._noise.check_outside()
        return self._lock.run(act if self._progress is None else partial(self._told, act))

    def _told(self, act: Callable[[], T]) -> T:
        with reporting(self._progress):
            return act()

    @property
    def hypothesis(self) -> Hypothesis:
        """The current hypothesis: public, and without any guarantee for a query that was not tested.

        Where the session has no wish, tables that were left to the first question are bought before. Of
        numbers that were bought by themselves it has learned nothing.
        """
        return self._alone(lambda: self._loop.hypothesis())

    @property
    def facts(self) -> PublicFacts:
        """What is public of the table and of the session: each can be read of the session itself."""
        loop, unit = self._loop, self._data.unit
        return PublicFacts(
            domain=self._data.domain,
            n=persons_of(loop.n, unit),
            beta=loop.beta,
            n_bound=0 if loop.counted is None else loop.counted.bound,
            answers_tables=loop.answers_tables,
            rounded_in=unit if self._data.whole and not loop.plan.purchases.ended else None,
            within=loop.plan.within,
        )

    @property
    def domain(self) -> Domain:
        """The public domain."""
        return self._data.domain  # without all other facts: a server looks at it for each question

    @property
    def unit(self) -> Unit | None:
        """Who is protected: one record where it is None, else one person with all of their rows."""
        return self._data.unit

    @property
    def plan(self) -> Plan:
        """The public parameters."""
        return self._loop.plan

    @property
    def transcript(self) -> Transcript:
        """Everything recorded so far, in order: public; `replay` rebuilds the hypothesis from it."""

        def recorded() -> Transcript:
            self._loop.book.catch_up()  # an update that fails is recorded after its release
            return Transcript(self._loop.ledger.records())

        return self._alone(recorded)

    @property
    def account(self) -> Filter:
        """What the budget pays, exactly: unit, capacity, and what is spent; the transcript says for what."""
        return self._alone(lambda: self._loop.ledger.account)

    @property
    def reserved(self) -> Charge | None:
        """What is set aside for the next hard answer, in the unit of the account."""
        return self._alone(lambda: self._loop.ledger.reserved)

    def statistics(self) -> SessionStatistics:
        """Return a snapshot of public facts."""

        def counted() -> SessionStatistics:
            self._loop.book.catch_up()
            return self._loop.statistics(self._settings)

        return self._alone(counted)

    def summary(self, answers: int = 20, attributes: Iterable[str] | None = None) -> Summary:
        """Return a page about the session that can be handed on: text, HTML, Markdown and figures.

        Released and public facts alone; nothing is read or spent. What the hypothesis believes of each
        attribute carries no guarantee, and is called so. Before the first question it believes nothing yet.

        Args:
            answers: How many of the latest tested answers to list, with their bounds.
            attributes: Which to show; by default all of at most 10,000 values.

        Raises:
            InvalidParameterError, InvalidQueryError: If the number is negative or above 10,000, or a name is
                unknown.
        """
        answers = checked_integer("answers", answers, at_least=0, at_most=10_000)
        domain = self._data.domain
        if isinstance(attributes, str):
            raise InvalidParameterError(
                f"attributes must be a list of names, got the text {shown(attributes)}; write it in brackets."
            )
        listed = domain.names if attributes is None else checked_list("attributes", attributes)
        names = [domain.names[domain.axis(one)] for one in listed]

        def summed_up() -> Summary:
            book, ledger = self._loop.book, self._loop.ledger
            book.catch_up()
            marginals = believed_marginals(book.belief.hypothesis, book.estimates, self.n, names)
            wishes = spent_by_wish(records := ledger.records(), ledger.account)
            expected = None if wishes else book.expected_of_told()
            return Summary(
                domain,
                self.n,
                self._settings.budget,
                self._loop.plan,
                self._loop.statistics(self._settings),
                marginals,
                book.latest(answers) if answers else (),
                expected,
                self._worth_telling(expected),
                wishes,
                spending_of(records, ledger.account) if wishes else (),
            )

        return self._alone(summed_up)

    def _worth_telling(self, expected: float | None) -> float | None:
        """Return what would be expected, had this session been told what was asked; None of no third less."""
        rule, domain, heard = self._loop.plan.purchases, self._data.domain, self._loop.core.purchases.heard
        if expected is None or type(rule) is not DemandPurchases or not told_nothing(rule, domain):
            return None
        settings = counted_out(self._settings)
        told = told_would(domain, self.n, settings, heard.sets, max(1, len(heard.asked)))
        return told if told <= expected * 2 / 3 else None

    def synthetic(self, rows: int, seed: int = 0) -> Synthetic:
        """Return synthetic records, drawn from the hypothesis: free, and without any guarantee.

        Tables are bought before, if none were yet: records are drawn from what tables have taught.

        Args:
            seed: Public: the records follow from it and the hypothesis.

        Raises:
            InvalidParameterError: If a number is outside its range, or the rule's hypothesis cannot be
                sampled.
        """
        # before it buys anything: the hypothesis of now is of the kind of the next one
        self._alone(lambda: check_sampled(self._loop.book.belief.hypothesis, rows, seed))
        drawn_from = self._alone(lambda: self._loop.hypothesis(of_tables=True))
        return synthetic(drawn_from, rows, seed, self._private)

    def __repr__(self) -> str:
        if not self._is_open:
            return "OnlineIC(not open)"
        stats = self._loop.statistics(self._settings)  # of what was taken in: a repr must not run an update
        shape = " x ".join(map(str, self._data.domain.shape))
        stamp = ", sealed" * stats.sealed + ", NOT PRIVATE" * (not self._private)
        budget, rows = self._settings.budget, self._settings.rows_per_person
        unit = self._data.unit
        persons = f"rows_per_person={rows}, " if rows > 1 and unit is None else ""
        n = f"n={self.n}" if stats.counted is None else f"n={self.n} ± {self.n_bound}"
        n += "" if unit is None else f" {whose(unit)}"
        n += "" if unit is None and stats.counted is None else f", protects {stats.protects}"
        return (
            f"OnlineIC({n}, {shape} cells, epsilon={budget.epsilon:g}, "
            f"delta={budget.delta:g}, {persons}{self._loop.plan.update!r}, {stats.asked} asked, "
            f"{stats.hard} hard, at least {stats.hard_left} measured answers left{stamp})"
        )

    def _repr_html_(self) -> str:
        if not self._is_open:
            return card("A session that is not open")
        return session_html(
            self._data.domain,
            self.n,
            self._loop.plan,
            self._loop.statistics(self._settings),
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "OnlineIC cannot be copied or pickled: its budget would be copied too; hand on summary(), or "
            "go on elsewhere from a ledger file by OnlineIC.resume."
        )
