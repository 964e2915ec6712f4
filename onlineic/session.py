"""The session: OnlineIC itself, the imperative shell around pure steps.

The order of one answer is the guarantee, and is the same for one query and for many: bind, guess, reserve,
read, draw, commit, update, one assignment. Before the reservation a failure changes nothing; from the read to
the commit any exception seals the session and burns the reservation, because falling back to the old state
would tell, unpaid, whether the hard path was taken.
"""

import contextlib
import logging
import math
import os
import threading
import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal, NoReturn, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting import Budget, Charge
from onlineic.answers import Answer, AnswerMemory, SessionStatistics, Status
from onlineic.data import PrivateData
from onlineic.domain import Domain
from onlineic.errors import (
    ForkedSessionError,
    InternalError,
    InvalidParameterError,
    InvalidQueryError,
    SessionExhaustedError,
    SessionSealedError,
    UpdateFailedWarning,
)
from onlineic.expressions import Expression, dense
from onlineic.hypothesis import Hypothesis
from onlineic.ledger import Easy, Hard, Ledger, MemoryLedger, Record, UpdateFailed
from onlineic.noise import Noise, SystemNoise
from onlineic.planning import Plan, practical_plan, textbook_plan
from onlineic.queries import Measurement, Query
from onlineic.sparse import NumericSparse, SparseState
from onlineic.updates import MultiplicativeWeights, UpdateRule

__all__ = ["OnlineIC", "replay"]

CHUNK, LARGEST_CHUNK = 64, 4096
_log = logging.getLogger("onlineic")


@final
@attrs.frozen(eq=False)
class _State:
    """Everything that an answer may change, replaced by one assignment."""

    hypothesis: Hypothesis
    sparse: SparseState = attrs.field(repr=False)  # holds the secret threshold noise
    opened: bool = False  # a test was made
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
        threshold: float | None = None,
        prior: Hypothesis | None = None,
        exhausted: Literal["untested", "raise"] = "untested",
        ledger: Ledger | None = None,
        noise: Noise | None = None,
    ) -> None:
        _check_types(data, budget, update)
        plan = practical_plan(
            data.domain,
            data.n,
            budget,
            update or MultiplicativeWeights(),
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
        _check_types(data, budget, update)
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
        if exhausted not in ("untested", "raise"):
            raise InvalidParameterError(
                f"exhausted must be 'untested' or 'raise', got exhausted={exhausted!r}."
            )
        self._data = data
        self._budget = budget
        self._plan = plan
        self._sparse: NumericSparse = plan.sparse
        self._noise = noise if noise is not None else SystemNoise()
        self._private = not self._noise.simulated
        if not self._private and ledger is not None and not isinstance(ledger, MemoryLedger):
            raise InvalidParameterError(
                "ledger must be None with simulated noise: such answers are not private."
            )
        self._ledger = ledger if ledger is not None else MemoryLedger()
        self._exhausted = exhausted
        self._state = _State(plan.update.init(data.domain, prior), self._sparse.init())
        self._memory = AnswerMemory(lasting=not plan.textbook)
        self._account = self._sparse.account()
        opening = self._sparse.opening()
        self._opening = opening.amount if opening is not None else Fraction(0)
        self._covered = Fraction(0)  # dearest hit that the standing reservation pays
        self._prices: dict[tuple[int, int], Fraction] = {}
        self._radii: dict[tuple[Status, int, int], float] = {}
        self._counts: dict[Status, int] = {"easy": 0, "hard": 0, "repeat": 0, "untested": 0}
        self._sealed = False
        self._process = os.getpid()
        self._lock = threading.RLock()
        if self._private:
            data.opened.append(budget)

    # -- asking ------------------------------------------------------------------------------------

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
        with self._lock:
            self._check_usable()
            return self._stream([self._bound(query)])[0]

    def answer_many(self, queries: Iterable[Expression | Query | Any]) -> list[Answer]:
        """Answer queries in order: the same answers as one at a time, at array speed.

        All queries are checked before the first is answered.
        """
        with self._lock:
            self._check_usable()
            return self._stream([self._bound(query) for query in queries])

    def _bound(self, query: Any) -> Query:
        if isinstance(query, (Expression, Query)):
            bound = query.bind(self._data.domain, self._sparse.grid_bits)
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

    # -- the order of an answer ----------------------------------------------------------------------

    def _stream(self, queries: Sequence[Query]) -> list[Answer]:
        """Answer bound queries in order, testing in chunks between two hits."""
        answers: list[Answer] = []
        chunk = CHUNK
        while len(answers) < len(queries):
            start = len(answers)
            self._chunk(queries[start : start + chunk], answers)
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
        guesses = self._guesses(payable)
        version = self._state.version  # of the hypothesis that is tested, not of the one after a hard answer
        easy, hard = self._test(payable, guesses) if payable else (0, None)
        lane = 0
        for query in queries:
            if lane < len(payable) and query is payable[lane]:
                if lane == easy and hard is not None:
                    answers.append(self._release(query, "hard", float(hard.values[0]), version))
                    return
                value = guesses[lane] / (self._data.n << query.grid_bits)
                answers.append(self._release(query, "easy", value, version))
                lane += 1
            else:
                answers.append(self._without_test(query))

    def _payable(self, tested: list[Query]) -> list[Query]:
        """Reserve the dearest hit among the queries that can be paid, before any data are read."""
        prices = [self._price(query) for query in tested]
        if self._ledger.reserved is not None and all(price <= self._covered for price in set(prices)):
            return tested  # the standing reservation serves every test until a hit uses it up
        standing = self._ledger.reserved
        extra = self._opening if not self._state.opened else Fraction(0)
        left = self._account.capacity - self._ledger.spent + (standing.amount if standing else 0) - extra
        payable = [query for query, price in zip(tested, prices, strict=True) if price <= left]
        if payable:
            self._covered = max(price for price in prices if price <= left)
            self._ledger.reserve(Charge(self._covered + extra, "one hard answer with its tests"))
        if len(payable) < len(tested) and self._exhausted == "raise":
            raise SessionExhaustedError(
                f"hard answers must be left, got none: {self._ledger.spent} of {self._account.capacity} "
                f"{self._account.unit} are spent; open a session with a larger budget, or exhausted='untested'."
            )
        return payable

    def _price(self, query: Query) -> Fraction:
        key = (query.sensitivity, query.grid_bits)
        if key not in self._prices:
            self._prices[key] = self._sparse.price(query).amount
        return self._prices[key]

    def _guesses(self, queries: Sequence[Query]) -> list[int]:
        """Return n 2^k f(hypothesis), rounded once: this very integer is tested and, if easy, released."""
        hypothesis = self._state.hypothesis
        if len(queries) == 1:
            values = [hypothesis.evaluate(queries[0])]
        else:
            values = hypothesis.evaluate_many(queries).tolist()
        guesses = []
        for query, value in zip(queries, values, strict=True):
            if not math.isfinite(value):
                raise InvalidParameterError(
                    "hypothesis must evaluate to a finite number, got another one; mend the update rule."
                )
            most = self._data.n << query.grid_bits
            guesses.append(min(max(round(most * value), 0), most))
        return guesses

    def _test(self, queries: Sequence[Query], guesses: list[int]) -> tuple[int, Measurement | None]:
        """Test until the first hit: (number of easy queries before it, its measurement or None).

        The only place where private numbers exist, as locals. Charges are reserved already.
        """
        state, grid = self._state, self._sparse.grid_bits
        measurement: Measurement | None = None
        try:
            if len(queries) == 1:
                query = queries[0]
                counts: Sequence[int] | Ints = [self._data.exact_counts(query)]
                gap = (int(counts[0]) - guesses[0]) << (grid - query.grid_bits)
                sensitivity = query.sensitivity << (grid - query.grid_bits)
                sparse, hit = self._sparse.step(state.sparse, gap, sensitivity, self._noise)
                easy = 1 if hit is None else 0
            else:
                counts = self._data.exact_counts_many(queries)
                shifts = np.array([grid - query.grid_bits for query in queries])
                gaps = (np.asarray(counts) - np.array(guesses, np.int64)) << shifts
                sensitivities = np.array([query.sensitivity for query in queries], np.int64) << shifts
                sparse, easy, hit = self._sparse.step_many(state.sparse, gaps, sensitivities, self._noise)
            for query, guess in zip(queries[:easy], guesses, strict=False):
                self._ledger.note(Easy(query, guess))
            if hit is not None:
                query = queries[easy]
                measurement = self._sparse.measure(hit, query, guesses[easy], int(counts[easy]), self._noise)
                charge = self._ledger.reserved
                if charge is None:
                    raise InternalError("a hit must be reserved before the data are read.")
                self._ledger.commit(Hard(query, guesses[easy], measurement, charge))
        except BaseException as error:
            self._seal(error)
            if not isinstance(error, Exception):
                raise  # Ctrl-C passes on bare
        if (
            self._sealed
        ):  # outside the handler, so that the cause is not chained: it could hold a private number
            raise SessionSealedError(_SEALED)
        state = attrs.evolve(state, sparse=sparse, opened=True)
        if measurement is not None:
            state = self._updated(attrs.evolve(state, measurements=(*state.measurements, measurement)))
        self._state = state
        return easy, measurement

    def _updated(self, state: "_State") -> "_State":
        """Return the state after the update rule has seen the newest measurement; post-processing."""
        rule, latest = self._plan.update, state.measurements[-1]
        try:
            hypothesis = rule.update(state.hypothesis, state.measurements, self._plan.alpha)
            target = latest.target
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
            return attrs.evolve(state, update_failures=state.update_failures + 1)
        except BaseException as error:
            self._seal(error)
            raise
        return attrs.evolve(state, hypothesis=hypothesis, version=state.version + 1)

    # -- releasing -----------------------------------------------------------------------------------

    def _release(self, query: Query, status: Status, value: float, version: int) -> Answer:
        """Remember and return a tested answer."""
        answer = self._answer(value, status, self._bounds(query, status))
        self._memory.remember(query, answer, version)
        return answer

    def _without_test(self, query: Query) -> Answer:
        """Return a constant, a repeat, or the hypothesis's answer with no bound."""
        if query.constant is not None:
            return self._answer(query.constant / (1 << query.grid_bits), "easy", query.rounding)
        known = self._memory.recall(query, self._state.version)
        if known is not None:
            return self._answer(known[0], "repeat", known[1])
        (guess,) = self._guesses([query])
        return self._answer(guess / (self._data.n << query.grid_bits), "untested", math.inf)

    def _bounds(self, query: Query, status: Status) -> float:
        if self._plan.textbook:
            return self._plan.error_bound + query.rounding
        key = (status, query.grid_bits, query.sensitivity)
        radius = self._radii.get(key)
        if radius is None:
            beta = self._plan.beta
            if status == "easy":
                radius = self._sparse.easy_radius(beta)
            else:
                radius = self._sparse.hard_radius(query, beta)
            self._radii[key] = radius
        return radius + query.rounding

    def _answer(self, value: float, status: Status, bound: float) -> Answer:
        self._counts[status] += 1
        return Answer(value, self._data.n * value, status, bound, self._private)

    # -- public facts --------------------------------------------------------------------------------

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
                hard_left=self._hard_left(),
                spent=float(self._ledger.spent / self._account.capacity),
                budget=self._budget,
                threshold=self._sparse.threshold / (self._data.n << self._sparse.grid_bits),
                alpha=plan.alpha,
                beta=plan.beta,
                error_bound=plan.error_bound if asked <= plan.max_queries else math.inf,
                certified=plan.certified,
                update_failures=self._state.update_failures,
                sealed=self._sealed,
                private=self._private,
            )

    def _hard_left(self) -> int:
        if self._sealed:
            return 0
        return self._plan.hard_answers - self._counts["hard"]

    def __repr__(self) -> str:
        stats = self.statistics()
        shape = " x ".join(map(str, self._data.domain.shape))
        stamp = "" if self._private else ", NOT PRIVATE"
        return (
            f"OnlineIC(n={self._data.n}, {shape} cells, epsilon={self._budget.epsilon:g}, "
            f"delta={self._budget.delta:g}, {self._plan.update!r}, {stats.asked} asked, {stats.hard} hard, "
            f"{stats.hard_left} hard left{', sealed' * stats.sealed}{stamp})"
        )

    # -- sealing -------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if os.getpid() != self._process:
            raise ForkedSessionError(
                "session must be used in the process that opened it, got a forked one; open a new session."
            )
        if self._sealed:
            raise SessionSealedError(_SEALED)

    def _seal(self, error: BaseException) -> None:
        """Burn the reservation and stop; the curator's log tells where, never what."""
        self._sealed = True
        self._ledger.burn()
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
        _log.error("session sealed: %s at %s", type(error).__name__, place)

    def __reduce__(self) -> NoReturn:
        raise TypeError("OnlineIC cannot be pickled: its budget would be copied too.")

    def __copy__(self) -> NoReturn:
        raise TypeError("OnlineIC cannot be copied: its budget would be copied too.")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("OnlineIC cannot be copied: its budget would be copied too.")


_SEALED = (
    "session must not have been interrupted between reading the data and its record, but was: the charge "
    "stays spent; open a new session (budgets add)."
)


def replay(
    records: Iterable[Record],
    domain: Domain,
    update: UpdateRule[Any],
    alpha: float,
    prior: Hypothesis | None = None,
) -> Hypothesis:
    """Return the hypothesis of a session, rebuilt bit for bit from its public transcript alone.

    Parameters
    ----------
    records : iterable of Record
        `session.transcript`, or a beginning of it.
    update, alpha
        `session.plan.update` and `session.plan.alpha`.
    """
    hypothesis: Hypothesis = update.init(domain, prior)
    measurements: tuple[Measurement, ...] = ()
    records = list(records)
    for place, record in enumerate(records):
        if not isinstance(record, Hard):
            continue
        measurements = (*measurements, record.measurement)
        if not isinstance(records[place + 1] if place + 1 < len(records) else None, UpdateFailed):
            hypothesis = update.update(hypothesis, measurements, alpha)
    return hypothesis


def _check_types(data: object, budget: object, update: object) -> None:
    if not isinstance(data, PrivateData):
        raise InvalidParameterError(
            f"data must be a PrivateData, got a {type(data).__name__}; write PrivateData.from_records(...)."
        )
    if not isinstance(budget, Budget):
        raise InvalidParameterError(
            f"budget must be a Budget, got a {type(budget).__name__}; write Budget(epsilon=1.0, delta=1e-9)."
        )
    if update is not None and not isinstance(update, UpdateRule):
        raise InvalidParameterError(
            f"update must be an UpdateRule, got a {type(update).__name__}; write MultiplicativeWeights()."
        )
