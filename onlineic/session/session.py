"""The session: OnlineIC itself, the imperative shell around pure steps.

One answer goes bind, cover, guess, test, record, take in: what is private about it happens in
`onlineic.session.curator` alone, and ends with a record in the ledger. Everything else is a function of
public facts and of those records: `onlineic.session.answers` takes them in one by one, so that no interrupt
loses one.
"""

import contextlib
import itertools
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NoReturn, final

from onlineic.accounting.budget import Budget
from onlineic.data.private import PrivateData
from onlineic.data.release import check_types, is_private
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    LedgerMismatchError,
    SessionExhaustedError,
    SessionStateError,
    VacuousPromiseWarning,
)
from onlineic.hypothesis.base import NO_BLOCKS, HasBlocks, Hypothesis
from onlineic.ledger.memory import MemoryLedger
from onlineic.ledger.records import Ledger, Opened, Record
from onlineic.noise.sources import Noise, SystemNoise, checked_source
from onlineic.progress import Progress, advance, checked_progress, reporting
from onlineic.queries.answers import Answer
from onlineic.queries.ask import Question, bind_question
from onlineic.queries.expressions import Expression
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.query import Query
from onlineic.session.answers import AnswerBook, SessionStatistics
from onlineic.session.belief import Belief
from onlineic.session.curator import Curator
from onlineic.session.first_tables import FirstTables
from onlineic.session.plan import TRIVIAL, Plan, SparseName, session_plan, textbook_plan
from onlineic.sparse.base import NumericSparse
from onlineic.updates.base import UpdateRule, check_rule
from onlineic.updates.multiplicative_weights import MultiplicativeWeights

CHUNK, LARGEST_CHUNK = 64, 4096


def check_choices(exhausted: object, ledger: object, noise: object) -> None:
    """Raise `InvalidParameterError` unless these are choices that a session knows."""
    if not isinstance(exhausted, str) or exhausted not in ("untested", "raise"):
        raise InvalidParameterError(
            f"exhausted must be 'untested' or 'raise', got exhausted={exhausted!r:.60}."
        )
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidParameterError(f"ledger must be a Ledger or None, got a {type(ledger).__name__}.")
    simulated = noise is not None and type(checked_source(noise)) is not SystemNoise
    if simulated and ledger is not None and not isinstance(ledger, MemoryLedger):
        raise InvalidParameterError("ledger must be None with simulated noise: such answers are not private.")


@final
class OnlineIC:
    """Answers to a stream of linear queries about one private table, under one budget.

    Everything that a session releases (values, labels, bounds, statistics, messages, its records) is jointly
    (epsilon, delta)-differentially private for replace-one neighbours with public n, for every adaptive
    stream of queries. It protects against people who see what is released, not against people who can
    look inside this process.

    Parameters
    ----------
    data : PrivateData
    budget : Budget
        For the whole life of the session, however many queries are asked.
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
        As in `session.session_plan`: True starts any rule from first tables, out of this session's budget.
    exhausted : "untested" or "raise"
        What to do when the hard answers are used up: answer from the hypothesis, without touching the data
        and with no bound but that of the first tables, or raise `SessionExhaustedError`.
    ledger, noise : Ledger, Noise, optional
        By default in memory, and the system's entropy. Simulated noise stamps everything NOT PRIVATE.
    progress : callable (stage, done, total), or "bar", optional
        Called as the opening, fits and batches go on, with public facts alone; "bar" shows bars of what takes
        more than two seconds, by the extra `onlineic[progress]`. If it raises, the call stops there, safely:
        what was released is in the transcript, and asked again it is a repeat. An opening that was stopped
        behind its release is taken up by a session with the same `ledger`.

    Notes
    -----
    Not copyable, not picklable, not usable after a fork: a copy would copy the budget.

    References
    ----------
    Dwork & Roth (2014), section 5.2.2, Algorithm 11.
    """

    def __init__(
        self,
        data: PrivateData,
        budget: Budget,
        *,
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
        exhausted: Literal["untested", "raise"] = "untested",
        ledger: Ledger | None = None,
        noise: Noise | None = None,
        progress: Progress | Literal["bar"] | None = None,
    ) -> None:
        check_types(data, budget)
        check_rule(update)
        plan = session_plan(
            data.domain,
            data.n,
            budget,
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
        self._open(data, budget, plan, prior, exhausted, ledger, noise, progress)

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
        ledger: Ledger | None = None,
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
        return cls.__new__(cls)._open(data, budget, plan, None, exhausted, ledger, noise, progress)

    def _open(
        self,
        data: PrivateData,
        budget: Budget,
        plan: Plan,
        prior: Hypothesis | None,
        exhausted: str,
        ledger: Ledger | None,
        noise: Noise | None,
        progress: Progress | Literal["bar"] | None = None,
    ) -> "OnlineIC":
        check_choices(exhausted, ledger, noise)
        if hasattr(self, "_curator"):
            raise SessionStateError("a session must be opened once, got __init__ again; open a new one.")
        if plan.certified and plan.error_bound >= TRIVIAL:
            warnings.warn(
                f"the session's promise must be below {TRIVIAL} to say anything, got an error bound of "
                f"{plan.error_bound:.3g}: the answer 1/2 to everything keeps it too. Raise n or epsilon, ask "
                "fewer queries over fewer cells, or open OnlineIC(data, budget), which promises less.",
                VacuousPromiseWarning,
                stacklevel=3,
            )
        self._progress = checked_progress(progress)
        self._data = data
        self._budget = budget
        self._plan = plan
        self._sparse: NumericSparse = plan.sparse
        self._exhausted = exhausted
        self._lock = threading.RLock()
        noise = noise if noise is not None else SystemNoise()
        self._private = is_private(noise)
        belief = Belief(plan.update.init(data.domain, prior))
        self._tell_opening(0.0)  # nothing is claimed yet
        self._ledger = ledger if ledger is not None else MemoryLedger()
        try:
            self._ledger.claim(self, plan.sparse.account(), self._private)
            self._book = AnswerBook(plan, data.n, self._ledger, belief, self._private)
            self._curator = Curator(data, plan.spending, noise, self._ledger, plan.partitions)
            # a session that was interrupted here left its ledger with what it had paid for
            known = data.enter(self._ledger, budget if self._private else None)
            if self._ledger.account.spent and (plan.first_tables is None or not known):
                raise LedgerMismatchError(
                    "ledger must be new, or of a session on this table that was interrupted while it bought "
                    "the first tables of this plan, got another one; leave the ledger out."
                )
            bought = plan.first_tables is not None and self._bought(plan.first_tables)
            paid = plan.first_tables.charge.amount if plan.first_tables is not None and bought else 0
            if plan.certified and self._ledger.account.spent != paid:
                raise LedgerMismatchError(
                    "ledger must hold the first tables alone to certify what is left for hard answers, got "
                    "one of which more is used up; leave the ledger out."
                )
            if plan.first_tables is not None and not bought:
                self._curator.measure_tables(plan.first_tables)  # learned with the first question
            self._tell_opening(1.0)
            return self
        except BaseException:
            self._ledger.give_back(self)  # nobody has the session
            raise

    def _tell_opening(self, part: float) -> None:
        tables = 0 if self._plan.first_tables is None else len(self._plan.first_tables.targets)
        with reporting(self._progress):
            if tables:
                advance("opening", round(part * tables), tables)

    def _bought(self, tables: FirstTables) -> bool:
        """Whether the ledger holds the first tables of this plan already."""
        opened = [record for record in self._ledger.records() if isinstance(record, Opened)]
        for record in opened:
            targets = tuple(bought.target for bought in record.measurements)
            scales = tuple(bought.scale for bought in record.measurements)
            if (targets, record.charge, scales) != (
                tables.targets,
                tables.charge,
                tables.deviations(self._data.n),
            ):
                raise LedgerMismatchError(
                    "ledger must hold the first tables of this session's plan, got others; open the "
                    "session as it was opened, or leave the ledger out."
                )
        return bool(opened)

    def answer(self, query: Expression | Query | Any) -> Answer:
        """Answer one query.

        Parameters
        ----------
        query : Expression or Query, or array of weights in [0, 1], one a cell

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
        return self.answer_many([query])[0]

    def answer_many(self, queries: Iterable[Expression | Query | Any]) -> list[Answer]:
        """Answer queries in order: the same answers as one at a time, at array speed.

        All queries are checked before the first is answered. What an exception in the middle of them leaves
        behind is in the transcript, and remembered: asked again, it is a repeat.
        """
        if not isinstance(queries, Iterable):
            raise InvalidQueryError(f"queries must be a sequence of queries, got a {type(queries).__name__}.")
        with self._held():
            domain, grid_bits = self._data.domain, self._sparse.grid_bits
            bound = [bind_question(query, domain, grid_bits) for query in queries]
            self._catch_up()  # behind the loop, because a generator may have asked on its own
            for question in bound:
                self._check_supported(question)
            self._catch_up()  # no test begins with records pending: a hypothesis may have asked on its own
            return self._stream(bound)

    def _held(self) -> contextlib.AbstractContextManager[Any]:
        """Return the lock, in the session's own process: in a forked one nobody may ever release it."""
        self._curator.check_process()
        return self._lock if self._progress is None else self._told()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Hold the lock, and tell the callback how far this call has come."""
        with self._lock, reporting(self._progress):
            yield

    def _check_supported(self, question: Question) -> None:
        """Raise `InvalidQueryError` if the mechanism or the hypothesis does not know such questions."""
        hypothesis = self._book.belief.hypothesis
        if isinstance(question, BoundMarginal):
            self._sparse.price(question.partition)
            if not isinstance(hypothesis, HasBlocks):
                raise InvalidQueryError(NO_BLOCKS)
        elif not hypothesis.supports(question):
            raise InvalidQueryError("query must be supported by the hypothesis, got one that is not.")

    def _stream(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer questions in order, testing in chunks between two hits; cross tables one by one."""
        answers: list[Answer] = []
        chunk = CHUNK
        while len(answers) < len(questions):
            start = len(answers)
            run: Sequence[Question] = questions[start : start + 1]
            if isinstance(run[0], Query):
                run = [
                    *itertools.takewhile(lambda one: isinstance(one, Query), questions[start : start + chunk])
                ]
            try:
                self._chunk(run, answers)
            except SessionExhaustedError as error:
                error.answers = tuple(answers)
                raise
            advance("answers", len(answers), len(questions))
            taken = len(answers) - start
            chunk = min(2 * chunk, LARGEST_CHUNK) if taken >= chunk else max(CHUNK, 2 * taken)
        return answers

    def _chunk(self, questions: Sequence[Question], answers: list[Answer]) -> None:
        """Append the answers up to the first hard one, which is included, or one that must wait its turn."""
        book = self._book
        seen: set[tuple[Any, ...]] = set()
        tested: list[Question] = []
        for question in questions:  # a repeat, also of a query earlier in the chunk, needs no test
            if question.key not in seen and not book.known(question):
                seen.add(question.key)
                tested.append(question)
        payable, later = self._payable(tested, first=questions[0]) if tested else ([], None)
        if payable:
            self._curator.test(payable, book.guesses(payable))  # its answers come by way of the ledger
        waiting = iter(payable)
        following = next(waiting, None)
        for question in questions:
            if question is later:
                return
            if question is following:
                answer = self._taken(question)
                answers.append(book.without_test(question) if answer is None else answer)
                if answers[-1].hard:  # those behind it were not tested
                    return
                following = next(waiting, None)
            else:
                answers.append(book.without_test(question))

    def _payable(
        self, tested: Sequence[Question], first: Question
    ) -> tuple[Sequence[Question], Question | None]:
        """Return the questions whose tests are paid for, and the first that must wait for another chunk.

        Raises
        ------
        SessionExhaustedError, SessionSealedError
            If that is the first of the chunk.
        """
        if self._curator.sealed:
            if tested[0] is first:
                self._curator.check_unsealed()
            return [], tested[0]
        covered = self._curator.cover(tested)
        if not all(covered) and self._exhausted == "raise":
            covered = covered[: covered.index(False)]
            if not covered and tested[0] is first:
                raise SessionExhaustedError(self._book.used_up())
        later = tested[len(covered)] if len(covered) < len(tested) else None
        return [question for question, paid in zip(tested, covered, strict=False) if paid], later

    def _taken(self, question: Question) -> Answer | None:
        """Return the recorded answer, or None if a hypothesis that asks its own session has taken it."""
        while self._book.pending:
            released = self._book.take()
            if released is not None and released[0] is question:
                return released[1]
        return None

    def _catch_up(self) -> None:
        """Take in what an interrupted call, or the opening, left in the ledger: post-processing."""
        while self._book.pending:
            self._book.take()

    @property
    def hypothesis(self) -> Hypothesis:
        """The current hypothesis: public, and without any guarantee for a query that was not tested."""
        with self._held():
            self._catch_up()
            return self._book.belief.hypothesis

    @property
    def plan(self) -> Plan:
        """The public parameters."""
        return self._plan

    @property
    def transcript(self) -> tuple[Record, ...]:
        """Everything recorded so far, in order: public; `replay` rebuilds the hypothesis from it."""
        with self._held():
            self._catch_up()  # an update that fails is recorded behind its release
            return self._ledger.records()

    def statistics(self) -> SessionStatistics:
        """Return a snapshot of public facts."""
        with self._held():
            self._catch_up()
            return self._snapshot()

    def _snapshot(self) -> SessionStatistics:
        plan, counts = self._plan, self._book.counts
        return SessionStatistics(
            asked=sum(counts.values()),
            easy=counts["easy"],
            hard=counts["hard"],
            repeat=counts["repeat"],
            untested=counts["untested"],
            hard_left=self._curator.hard_left(),
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
        stats = self._snapshot()  # of what was taken in: a repr must not run an update
        shape = " x ".join(map(str, self._data.domain.shape))
        stamp = "" if self._private else ", NOT PRIVATE"
        return (
            f"OnlineIC(n={self._data.n}, {shape} cells, epsilon={self._budget.epsilon:g}, "
            f"delta={self._budget.delta:g}, {self._plan.update!r}, {stats.asked} asked, {stats.hard} hard, "
            f"{stats.hard_left} hard left{', sealed' * stats.sealed}{stamp})"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("OnlineIC cannot be copied or pickled: its budget would be copied too.")
