"""The session: OnlineIC itself, the imperative shell around pure steps.

One answer goes bind, guess, cover, test, update, release; what is private about it happens in
`onlineic.curator` alone. Everything here is a function of released numbers and public facts.
"""

import contextlib
import itertools
import math
import threading
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NoReturn, final

import attrs
import numpy as np

from onlineic._opening import check_choices, check_types
from onlineic.accounting import Budget
from onlineic.answers import Answer, AnswerMemory, SessionStatistics, Status
from onlineic.curator import Curator, Verdict, grid_guesses
from onlineic.data import PrivateData
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    SessionExhaustedError,
    UpdateFailedWarning,
)
from onlineic.expressions import Expression, dense
from onlineic.hypothesis import Hypothesis
from onlineic.ledger import Ledger, MemoryLedger, Record, UpdateFailed
from onlineic.marginals import BoundMarginal, Marginal
from onlineic.noise import Noise, SystemNoise
from onlineic.partitions import derived
from onlineic.planning import Plan, SparseName, session_plan, textbook_plan
from onlineic.queries import Believed, Measurement, Query
from onlineic.sparse import NumericSparse
from onlineic.updates import MultiplicativeWeights, UpdateRule

__all__ = ["OnlineIC"]

CHUNK, LARGEST_CHUNK = 64, 4096


@final
@attrs.frozen(eq=False)
class _State:
    """Everything that an answer may change, replaced by one assignment."""

    hypothesis: Hypothesis
    measurements: tuple[Measurement, ...] = ()
    version: int = 0  # updates so far
    update_failures: int = 0


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
        How many queries may be answered by measurement.
    alpha : float, optional
        Accuracy to certify instead: the gap, as a fraction of records, above which queries are hard.
        Exactly one of the two.
    max_queries : int
        Length of the stream that the session-wide accuracy statement covers.
    beta : float
        Failure probability of accuracy statements.
    update : UpdateRule
        By default `MultiplicativeWeights()`.
    threshold : float, optional
        Fraction of records; with `hard_answers`, overrides the rule of `planning.practical_plan`.
    prior : Hypothesis, optional
        Public start, never made from the private rows.
    exhausted : "untested" or "raise"
        What to do when the hard answers are used up: answer from the hypothesis, with no bound and
        without touching the data, or raise `SessionExhaustedError`.
    ledger : Ledger, optional
        By default in memory.
    noise : Noise, optional
        By default the system's entropy. Simulated noise stamps everything NOT PRIVATE.

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
        alpha: float | None = None,
        max_queries: int = 10_000,
        beta: float = 0.05,
        update: UpdateRule[Any] | None = None,
        sparse: SparseName | NumericSparse | None = None,
        release: Literal["answer", "partition"] | None = None,
        threshold: float | None = None,
        prior: Hypothesis | None = None,
        exhausted: Literal["untested", "raise"] = "untested",
        ledger: Ledger | None = None,
        noise: Noise | None = None,
    ) -> None:
        check_types(data, budget, update)
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
            alpha=alpha,
            hard_answers=hard_answers,
            threshold=threshold,
        )
        self._open(data, budget, plan, prior, exhausted, ledger, noise)

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
        check_types(data, budget, update)
        plan = textbook_plan(
            data.domain,
            data.n,
            budget,
            update or MultiplicativeWeights(variant="book"),
            beta=beta,
            max_queries=max_queries,
            alpha=alpha,
        )
        session = cls.__new__(cls)
        session._open(data, budget, plan, None, exhausted, ledger, noise)
        return session

    def _open(
        self,
        data: PrivateData,
        budget: Budget,
        plan: Plan,
        prior: Hypothesis | None,
        exhausted: str,
        ledger: Ledger | None,
        noise: Noise | None,
    ) -> None:
        check_choices(exhausted, ledger, noise)
        self._data = data
        self._budget = budget
        self._plan = plan
        self._sparse: NumericSparse = plan.sparse
        noise = noise if noise is not None else SystemNoise()
        self._private = type(noise) is SystemNoise  # of any other source nothing is known
        if not self._private and ledger is not None and not isinstance(ledger, MemoryLedger):
            raise InvalidParameterError(
                "ledger must be None with simulated noise: such answers are not private."
            )
        self._state = _State(plan.update.init(data.domain, prior))
        self._ledger = ledger if ledger is not None else MemoryLedger()
        self._ledger.claim()
        self._curator = Curator(data, plan.sparse, noise, self._ledger, plan.partitions)
        self._exhausted = exhausted
        self._memory = AnswerMemory(lasting=not plan.textbook)
        self._radii: dict[tuple[int, int], float] = {}
        self._counts: dict[Status, int] = {"easy": 0, "hard": 0, "repeat": 0, "untested": 0}
        self._lock = threading.RLock()
        self._paid = self._curator.hard_left()
        self._worst_number = 0.0  # largest bound of a hard answer, all of them at once
        if self._private:
            data.opened.append(budget)
        if plan.opening is not None:
            self._learn(self._curator.measure_tables(plan.opening))

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

        All queries are checked before the first is answered.
        """
        if not isinstance(queries, Iterable):
            raise InvalidQueryError(f"queries must be a sequence of queries, got a {type(queries).__name__}.")
        self._curator.check_process()  # before the lock: in a forked process nobody may ever release it
        with self._lock:
            bound = [self._bound(query) for query in queries]
            self._curator.check_unsealed()  # here, because a generator may have asked on its own
            return self._stream(bound)

    def _bound(self, query: Any) -> Query | BoundMarginal:
        if type(query) is Marginal:
            return query.bind(self._data.domain)
        if type(query) in (Expression, Query):  # a subclass could bring a `total` that looks at the counts
            bound: Query = query.bind(self._data.domain, self._sparse.grid_bits)
        elif isinstance(query, np.ndarray):
            bound = dense(query).bind(self._data.domain, self._sparse.grid_bits)
        else:
            raise InvalidQueryError(
                "query must be data (where(...), a Query or an array of weights), "
                f"got a {type(query).__name__}; write where(attribute=condition)."
            )
        if not self._state.hypothesis.supports(bound):
            raise InvalidQueryError("query must be supported by the hypothesis, got one that is not.")
        return bound

    def _stream(self, questions: Sequence[Query | BoundMarginal]) -> list[Answer]:
        """Answer bound queries in order, testing in chunks between two hits; cross tables one by one."""
        answers: list[Answer] = []
        chunk = CHUNK
        while len(answers) < len(questions):
            start = len(answers)
            question = questions[start]
            if isinstance(question, BoundMarginal):
                answers.append(self._cross_table(question))
                continue
            run = itertools.takewhile(lambda one: isinstance(one, Query), questions[start : start + chunk])
            self._chunk([query for query in run if isinstance(query, Query)], answers)
            taken = len(answers) - start
            chunk = min(2 * chunk, LARGEST_CHUNK) if taken >= chunk else max(CHUNK, 2 * taken)
        return answers

    def _chunk(self, queries: Sequence[Query], answers: list[Answer]) -> None:
        """Append the answers of the queries up to the first hard one, which is included."""
        seen: set[tuple[Any, ...]] = set()
        tested: list[Query] = []
        for query in queries:  # a repeat, also of a query earlier in the chunk, needs no test
            known = query.constant is not None or query.key in seen
            if not known and self._memory.recall(query, self._state.version) is None:
                seen.add(query.key)
                tested.append(query)
        payable = self._payable(tested) if tested else []
        state = self._state  # all but the hard answer are given under it, whatever follows
        guesses = grid_guesses(state.hypothesis, payable, self._data.n)
        verdict = self._curator.test(payable, guesses) if payable else Verdict(0, None)
        if verdict.measurement is not None:
            self._learn((verdict.measurement,))
        lane = 0
        for query in queries:
            if lane < len(payable) and query is payable[lane]:
                if lane == verdict.easy and verdict.measurement is not None:
                    answers.append(self._hard(query, verdict.measurement, state.version))
                    return
                answers.append(self._easy(query, guesses[lane], state.version))
                lane += 1
            else:
                answers.append(self._without_test(query, state))

    def _cross_table(self, table: BoundMarginal) -> Answer:
        """Answer a cross table: tested by its largest cell gap, measured as a whole."""
        state, n = self._state, self._data.n
        known = self._memory.recall_table(table.key, state.version)
        if known is not None:
            return self._answer(known.value.copy(), "repeat", known.error_bound)
        believed = state.hypothesis
        if not isinstance(believed, Believed):
            raise InvalidQueryError("a marginal must be asked of a hypothesis with blocks, got one without.")
        blocks = np.clip(believed.blocks(table.partition), 0.0, 1.0)
        if not np.isfinite(blocks).all():
            raise InvalidParameterError(
                "hypothesis must evaluate to finite numbers, got another one; mend the update rule."
            )
        guesses = tuple(np.rint(n * blocks).astype(np.int64).tolist())
        guess = table.table(np.array(guesses) / n)
        if not self._curator.cover_table(table.partition):
            if self._exhausted == "raise":
                raise SessionExhaustedError(self._used_up())
            return self._answer(guess, "untested", math.inf)
        measurement = self._curator.test_table(table, guesses)
        if measurement is None:
            answer = self._answer(guess, "easy", self._sparse.easy_radius(self._plan.beta))
        else:
            self._learn((measurement,))
            radius = self._sparse.hard_radius(table.partition, self._plan.beta)
            worst = self._sparse.hard_radius(table.partition, 0.1 * self._plan.beta, self._paid)
            self._worst_number = max(self._worst_number, worst)
            answer = self._answer(table.table(measurement.values), "hard", radius)
        self._memory.remember_table(table.key, answer, state.version)
        return answer

    def _used_up(self) -> str:
        return (
            f"hard answers must be left, got {self._counts['hard']} of {self._paid} used; "
            "open a session with a larger budget, or exhausted='untested'."
        )

    def _payable(self, tested: list[Query]) -> list[Query]:
        """Return the queries whose tests are paid for."""
        covered = self._curator.cover(tested)
        if all(covered):
            return tested
        if self._exhausted == "raise":
            raise SessionExhaustedError(self._used_up())
        return [query for query, paid in zip(tested, covered, strict=True) if paid]

    def _learn(self, released: tuple[Measurement, ...]) -> None:
        """Show new measurements to the update rule: post-processing, one assignment."""
        try:
            self._state = self._updated(released)
        except BaseException as error:
            self._curator.seal(error)  # nothing is burned: the release is in the ledger
            raise

    def _updated(self, released: tuple[Measurement, ...]) -> _State:
        state, rule = self._state, self._plan.update
        measurements = (*state.measurements, *released)
        try:
            hypothesis = rule.update(state.hypothesis, measurements, self._plan.alpha)
            target = released[-1].target
            if isinstance(target, Query) and not math.isfinite(hypothesis.evaluate(target)):
                raise ArithmeticError
        except Exception as error:
            # paid and public already: the answer stands, the old hypothesis is kept
            self._ledger.note(UpdateFailed(type(error).__name__))
            with contextlib.suppress(UpdateFailedWarning):  # not even as an error may it stop the answer
                warnings.warn(
                    f"{type(rule).__name__} failed after a hard answer; the old hypothesis is kept.",
                    UpdateFailedWarning,
                    stacklevel=2,
                )
            return attrs.evolve(state, measurements=measurements, update_failures=state.update_failures + 1)
        return attrs.evolve(
            state, hypothesis=hypothesis, measurements=measurements, version=state.version + 1
        )

    def _easy(self, query: Query, guess: int, version: int) -> Answer:
        """Remember and return the guess that was tested."""
        key = (query.grid_bits, query.sensitivity)
        if key not in self._radii:
            self._radii[key] = self._sparse.easy_radius(self._plan.beta)
        bound = self._plan.error_bound if self._in_theorem() else self._radii[key]
        value = guess / (self._data.n << query.grid_bits)
        return self._remember(query, "easy", value, bound, version)

    def _hard(self, query: Query, measurement: Measurement, version: int) -> Answer:
        """Remember and return a measured number, or the sum of the measured blocks."""
        value, norm = derived(query, measurement)

        def radius(beta: float, answers: int) -> float:
            if isinstance(measurement.target, Query):
                return self._sparse.hard_radius(measurement.target, beta, answers)
            # a discrete Gaussian is sub-Gaussian with its own scale, and so is a sum of independent ones
            return measurement.scale * norm * math.sqrt(2.0 * math.log(2.0 * answers / beta))

        self._worst_number = max(self._worst_number, radius(0.1 * self._plan.beta, self._paid))
        bound = self._plan.error_bound if self._in_theorem() else radius(self._plan.beta, 1)
        return self._remember(query, "hard", value, bound, version)

    def _in_theorem(self) -> bool:
        """Whether the textbook's bound, for all answers at once, covers the next one."""
        return self._plan.textbook and sum(self._counts.values()) < self._plan.max_queries

    def _remember(self, query: Query, status: Status, value: float, bound: float, version: int) -> Answer:
        answer = self._answer(value, status, bound + query.rounding)
        self._memory.remember(query, answer, version)
        return answer

    def _without_test(self, query: Query, state: _State) -> Answer:
        """Return a constant, a repeat, or the hypothesis's answer with no bound."""
        if query.constant is not None:
            return self._answer(query.constant / (1 << query.grid_bits), "easy", query.rounding)
        known = self._memory.recall(query, state.version)
        if known is not None:
            return self._answer(known[0], "repeat", known[1])
        (guess,) = grid_guesses(state.hypothesis, [query], self._data.n)
        return self._answer(guess / (self._data.n << query.grid_bits), "untested", math.inf)

    def _answer(self, value: Any, status: Status, bound: float) -> Answer:
        self._counts[status] += 1
        return Answer(value, self._data.n * value, status, bound, self._private)

    @property
    def hypothesis(self) -> Hypothesis:
        """The current hypothesis: public, and without any guarantee for a query that was not tested."""
        return self._state.hypothesis

    @property
    def plan(self) -> Plan:
        """The public parameters."""
        return self._plan

    @property
    def transcript(self) -> tuple[Record, ...]:
        """Everything recorded so far, in order: public; `replay` rebuilds the hypothesis from it."""
        return self._ledger.records()

    def statistics(self) -> SessionStatistics:
        """Return a snapshot of public facts."""
        with self._lock:
            plan, counts = self._plan, self._counts
            asked = sum(counts.values())
            return SessionStatistics(
                asked=asked,
                easy=counts["easy"],
                hard=counts["hard"],
                repeat=counts["repeat"],
                untested=counts["untested"],
                hard_left=self._curator.hard_left(),
                spent=float(self._ledger.spent / self._sparse.account().capacity),
                budget=self._budget,
                threshold=self._sparse.threshold / (self._data.n << self._sparse.grid_bits),
                alpha=plan.alpha,
                beta=plan.beta,
                error_bound=self._error_bound() if asked <= plan.max_queries else math.inf,
                certified=plan.certified,
                update_failures=self._state.update_failures,
                sealed=self._curator.sealed,
                private=self._private,
            )

    def _error_bound(self) -> float:
        """Return the bound on all tested answers at once: of the easy ones, and of the numbers so far."""
        certified = self._plan.certified
        return self._plan.error_bound if certified else max(self._plan.error_bound, self._worst_number)

    def __repr__(self) -> str:
        stats = self.statistics()
        shape = " x ".join(map(str, self._data.domain.shape))
        stamp = "" if self._private else ", NOT PRIVATE"
        return (
            f"OnlineIC(n={self._data.n}, {shape} cells, epsilon={self._budget.epsilon:g}, "
            f"delta={self._budget.delta:g}, {self._plan.update!r}, {stats.asked} asked, {stats.hard} hard, "
            f"{stats.hard_left} hard left{', sealed' * stats.sealed}{stamp})"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("OnlineIC cannot be pickled: its budget would be copied too.")

    def __copy__(self) -> NoReturn:
        raise TypeError("OnlineIC cannot be copied: its budget would be copied too.")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("OnlineIC cannot be copied: its budget would be copied too.")
