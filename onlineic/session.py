"""The session: OnlineIC itself, the imperative shell around pure steps.

One answer goes bind, guess, cover, test, update, release; what is private about it happens in
`onlineic.curator` alone. Everything here is a function of released numbers and public facts.
"""

import contextlib
import itertools
import threading
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NoReturn, final

import numpy as np

from onlineic._checks import check_choices, check_types
from onlineic.accounting import Budget
from onlineic.answers import Answer, SessionStatistics
from onlineic.curator import Curator, Verdict, block_guesses, grid_guesses
from onlineic.data import PrivateData
from onlineic.errors import (
    InvalidQueryError,
    SessionExhaustedError,
    UpdateFailedWarning,
)
from onlineic.expressions import Expression, dense
from onlineic.hypothesis import Hypothesis
from onlineic.ledger import Ledger, MemoryLedger, Record, UpdateFailed
from onlineic.marginals import BoundMarginal, Marginal
from onlineic.noise import Noise, SystemNoise
from onlineic.planning import Plan, SparseName, session_plan, textbook_plan
from onlineic.queries import Measurement, Query
from onlineic.releases import Releases
from onlineic.sparse import NumericSparse
from onlineic.transcript import Belief
from onlineic.updates import MultiplicativeWeights, UpdateRule

__all__ = ["OnlineIC"]

CHUNK, LARGEST_CHUNK = 64, 4096


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
    alpha : float, optional
        Accuracy to certify instead: the gap above which queries are hard, fraction of records. At most one
        of the two; with neither, both are planned from n, the domain, the budget and `max_queries`.
    max_queries, beta : int, float
        Length of the stream that the session-wide accuracy statement covers, and its failure probability.
    update, sparse, release, threshold
        As in `planning.session_plan`; by default partition releases and maximum-entropy refits, with
        pay-per-hit tests for delta > 0 and pure tests for delta = 0.
    prior : Hypothesis, optional
        Public start, never made from the private rows; without one, opening tables are bought.
    exhausted : "untested" or "raise"
        What to do when the hard answers are used up: answer from the hypothesis, with no bound and
        without touching the data, or raise `SessionExhaustedError`.
    ledger, noise : Ledger, Noise, optional
        By default in memory, and the system's entropy. Simulated noise stamps everything NOT PRIVATE.

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
        self._belief = Belief(plan.update.init(data.domain, prior))
        self._ledger = ledger if ledger is not None else MemoryLedger()
        self._ledger.claim()
        self._curator = Curator(data, plan.sparse, noise, self._ledger, plan.partitions)
        self._exhausted = exhausted
        self._lock = threading.RLock()
        if self._private:
            data.opened.append(budget)
        if plan.opening is not None:
            self._learn(self._curator.measure_tables(plan.opening))
        self._releases = Releases(plan, data.n, self._curator.hard_left(), self._private)

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
            table = query.bind(self._data.domain)
            self._curator.check_table(table, self._belief.hypothesis)
            return table
        if type(query) in (Expression, Query):  # a subclass could bring a `total` that looks at the counts
            bound: Query = query.bind(self._data.domain, self._sparse.grid_bits)
        elif isinstance(query, np.ndarray):
            bound = dense(query).bind(self._data.domain, self._sparse.grid_bits)
        else:
            raise InvalidQueryError(
                "query must be data (where(...), a Query or an array of weights), "
                f"got a {type(query).__name__}; write where(attribute=condition)."
            )
        if not self._belief.hypothesis.supports(bound):
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
        """Append the answers of the queries up to the first hard one, which is included, or a dearer one."""
        seen: set[tuple[Any, ...]] = set()
        tested: list[Query] = []
        for query in queries:  # a repeat, also of a query earlier in the chunk, needs no test
            if query.key not in seen and not self._releases.known(query, self._belief.version):
                seen.add(query.key)
                tested.append(query)
        payable, later = self._payable(tested) if tested else ([], None)
        belief = self._belief  # all but the hard answer are given under it, whatever follows
        guesses = grid_guesses(belief.hypothesis, payable, self._data.n)
        verdict = self._curator.test(payable, guesses) if payable else Verdict(0, None)
        if verdict.measurement is not None:
            self._learn((verdict.measurement,))
        lane = 0
        for query in queries:
            if query is later:
                return
            if lane < len(payable) and query is payable[lane]:
                if lane == verdict.easy and verdict.measurement is not None:
                    released, learned = verdict.measurement, self._belief.hypothesis
                    answer = self._releases.hard(query, guesses[lane], released, learned, belief.version)
                    answers.append(answer)
                    return
                answers.append(self._releases.easy(query, guesses[lane], belief.version))
                lane += 1
            else:
                answers.append(self._releases.without_test(query, belief.hypothesis, belief.version))

    def _cross_table(self, table: BoundMarginal) -> Answer:
        """Answer a cross table: tested by its largest cell gap, measured as a whole."""
        belief = self._belief
        known = self._releases.known_table(table, belief.version)
        if known is not None:
            return known
        guesses = block_guesses(belief.hypothesis, table.partition, self._data.n)
        if not self._curator.cover_table(table.partition):
            if self._exhausted == "raise":
                raise SessionExhaustedError(self._releases.used_up())
            return self._releases.untested_table(table, guesses)
        measurement = self._curator.test_table(table, guesses)
        if measurement is not None:
            self._learn((measurement,))
        return self._releases.table(table, guesses, measurement, belief.version)

    def _payable(self, tested: list[Query]) -> tuple[list[Query], Query | None]:
        """Return the queries whose tests are paid for, and the first that is left for another chunk."""
        covered = self._curator.cover(tested)
        later = tested[len(covered)] if len(covered) < len(tested) else None
        if not all(covered) and self._exhausted == "raise":
            raise SessionExhaustedError(self._releases.used_up())
        return [query for query, paid in zip(tested, covered, strict=False) if paid], later

    def _learn(self, released: tuple[Measurement, ...]) -> None:
        """Show new measurements to the update rule: post-processing, one assignment."""
        try:
            self._belief = self._updated(released)
        except BaseException as error:
            self._curator.seal(error)  # nothing is burned: the release is in the ledger
            raise

    def _updated(self, released: tuple[Measurement, ...]) -> Belief:
        rule = self._plan.update
        try:
            return self._belief.learned(released, rule, self._plan.alpha)
        except Exception as error:
            # paid and public already: the answer stands, the old hypothesis is kept
            self._ledger.note(UpdateFailed(type(error).__name__))
            with contextlib.suppress(UpdateFailedWarning):  # not even as an error may it stop the answer
                warnings.warn(
                    f"{type(rule).__name__} failed after a hard answer; the old hypothesis is kept.",
                    UpdateFailedWarning,
                    stacklevel=2,
                )
            return self._belief.unmoved(released)

    @property
    def hypothesis(self) -> Hypothesis:
        """The current hypothesis: public, and without any guarantee for a query that was not tested."""
        return self._belief.hypothesis

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
            plan, counts = self._plan, self._releases.counts
            return SessionStatistics(
                asked=sum(counts.values()),
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
                error_bound=self._releases.error_bound(),
                certified=self._releases.certified,
                update_failures=self._belief.failures,
                sealed=self._curator.sealed,
                private=self._private,
            )

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
