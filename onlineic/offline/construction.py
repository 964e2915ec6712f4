"""The loop that the iterative construction and MWEM share: choose, answer, update; and what it releases."""

import math
from collections.abc import Callable, Iterable
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.ask.bind import bind_queries
from onlineic.data.private import PrivateData
from onlineic.display.text import upward
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.hypothesis.base import Hypothesis
from onlineic.noise.sources import Noise
from onlineic.offline.release import Release, Result
from onlineic.offline.rounds import Rounds
from onlineic.queries.partitions import AxisSets, Measurement, PartitionRule, sets_of
from onlineic.queries.query import Query, session_grid_bits
from onlineic.updates.base import UpdateRule

Rule = UpdateRule[Any]


@final
@attrs.frozen(kw_only=True, eq=False, repr=False)
class Construction(Result):
    """A hypothesis learned from private answers to the queries that it answered worst. All of it is released.

    Attributes:
        hypothesis: Answers any query over the domain, free of charge.
        measurements: The queries chosen, with noisy answers and standard deviations; one a round.
        gaps: |noisy answer - f(hypothesis)| of each round, fraction of records.
        stopped: Whether a small gap ended the construction before its rounds were used up.
        alpha: With probability 1 - beta no query of the class errs by more, known in advance; or inf.
        error_bound: The same from what was released, never larger.
        grid_bits: Grid on which the class was rounded; below 20 for more than 2^32 records.
        plan: Rounds paid for, their noise and their price.
        budget: Spent as a whole, also where the construction stopped early.
    """

    hypothesis: Hypothesis
    measurements: tuple[Measurement, ...]
    gaps: tuple[float, ...]
    stopped: bool
    alpha: float
    error_bound: float
    grid_bits: int
    plan: Rounds
    budget: Budget

    def answers(self, queries: Iterable[Any]) -> Floats:
        """Return the hypothesis's answers, shape (m,), fractions of records; bounds are for the class alone.

        Raises:
            InvalidQueryError, DomainMismatchError: If a query cannot be bound to the domain on this grid.
        """
        # as the class: of a query rounded otherwise the hypothesis can be off by both roundings more
        asked = bind_queries(queries, self.hypothesis.domain, self.grid_bits)
        values = np.clip(self.hypothesis.evaluate_many(asked), 0.0, 1.0)  # as they were tested; a copy
        for place, query in enumerate(asked):
            if query.constant is not None:  # known; a hypothesis need not have mass 1
                values[place] = query.constant / (1 << query.grid_bits)
        return values

    def _shown(self) -> str:
        ended = "stopped" if self.stopped else "ended"
        known = self.error_bound < math.inf
        bound = f"within {upward(self.error_bound)} at {self._sure}" if known else "no bound"
        return (
            f"{ended} after {len(self.measurements)} of {self.plan.rounds} rounds, {bound}, "
            f"epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}"
        )


@final
@attrs.frozen(eq=False)
class Workload:
    """The distinct queries of a class on one common grid.

    A query and its complement are two: f(D) + (1 - f)(D) is 1 for distributions, but need not be for signed
    weights or the median of many databases.

    Attributes:
        queries: None is constant.
        grid_bits: K of the common grid: one unit is 1/(n 2^K).
        sensitivity, tested: The most that a neighbour moves a number of the class, and its gap, grid units.
        rounding: Largest difference of a query from the one written.
    """

    queries: tuple[Query, ...]
    grid_bits: int
    sensitivity: int
    tested: int
    rounding: float
    n: int

    @classmethod
    def of(
        cls, queries: Iterable[Any], domain: Domain, n: int, neighbours: Neighbours = REPLACE_ONE
    ) -> "Workload":
        """Bind the queries, drop constants, keep one of each.

        Raises:
            InvalidQueryError, DomainMismatchError: If a query cannot be bound, or all are constant.
        """
        asked = bind_queries(queries, domain, session_grid_bits(n))
        distinct = tuple(dict.fromkeys(query for query in asked if query.constant is None))
        if not distinct:
            raise InvalidQueryError(
                "queries must hold one or more that are not constant, got none; name some."
            )
        bits = max(query.grid_bits for query in distinct)
        weights = [(bits - query.grid_bits, query.lowest, query.highest) for query in distinct]
        return cls(
            queries=distinct,
            grid_bits=bits,
            sensitivity=max(neighbours.number(low << up, high << up) for up, low, high in weights),
            tested=max(neighbours.test(low << up, high << up) for up, low, high in weights),
            rounding=max(query.rounding for query in asked),
            n=n,
        )

    @property
    def units(self) -> int:
        """n 2^K: grid units in 1."""
        return self.n << self.grid_bits

    def guesses(self, hypothesis: Hypothesis) -> Ints:
        """Return the hypothesis's answers in grid units, rounded, in [0, n 2^K]: public.

        Raises:
            InvalidParameterError: If they are not one finite number a query: a score would wrap around, and
                one record move it far.
        """
        values = np.array(hypothesis.evaluate_many(self.queries), np.float64)
        if values.shape != (len(self.queries),) or not np.isfinite(values).all():
            raise InvalidParameterError(
                "hypothesis must evaluate to one finite number a query, got others; mend the update rule."
            )
        return np.rint(np.clip(values, 0.0, 1.0) * float(self.units)).astype(np.int64)

    def exact(self, data: PrivateData) -> Ints:
        """Return the exact answers in grid units, (m,) int64. PRIVATE."""
        shifts = np.array([self.grid_bits - query.grid_bits for query in self.queries])
        return np.asarray(data.exact_counts_many(self.queries) << shifts)


@final
@attrs.frozen(eq=False)
class Run:
    """How a construction went: the last hypothesis and every released number.

    Attributes:
        gaps: |v - f(D)|, grid units; of a table none.
    """

    hypothesis: Hypothesis
    measurements: tuple[Measurement, ...]
    gaps: tuple[int, ...]
    stopped: bool


def construct(
    release: Release,
    workload: Workload,
    plan: Rounds,
    update: Rule,
    start: Hypothesis,
    alpha: float,
    *,
    stop: int = 0,
    tables: PartitionRule | None = None,
    observe: Callable[[int, Hypothesis], None] | None = None,
) -> Run:
    """Run the rounds on the private table: Algorithm 8 with `stop`, MWEM without.

    Args:
        alpha: Gap that an update may rely on.
        stop: A noisy gap below it ends the construction, grid units.
        tables: Release the table of a chosen query in the place of its number.
        observe: (round, hypothesis) -> None, before each round.

    Raises:
        InvalidParameterError: If `start` does not evaluate to one finite number a query; nothing was spent.
        SessionSealedError: If anything fails after the data were read.
    """
    first = workload.guesses(start)

    def private() -> Run:
        data, noise = release.data, release.noise
        held, hypothesis = _Held(data, workload, plan, noise), start
        measurements: list[Measurement] = []
        gaps: list[int] = []
        known: AxisSets = frozenset()
        for number in range(plan.rounds):
            if observe is not None:
                observe(number, hypothesis)
            guesses = workload.guesses(hypothesis) if number > 0 else first
            index = held.choose(guesses)
            table = None if tables is None else tables.partition(workload.queries[index], known)
            if table is not None:
                noisy = plan.answer(data.exact_counts(table), noise)
                measurements.append(Measurement(table, noisy / workload.n, plan.deviation / workload.n))
                known |= sets_of(table)
            else:
                value = held.number(index) if tables is None else held.number_for_table(index)
                # tables' scale is in counts, whatever the grid of the number that stands in for one
                scale = plan.deviation / (workload.units if tables is None else workload.n)
                measurements.append(
                    Measurement(workload.queries[index], np.array([value / workload.units]), scale)
                )
                gaps.append(abs(value - int(guesses[index])))
                # the test reads the released value alone, so it is free: post-processing
                if gaps[-1] < stop:
                    return Run(hypothesis, tuple(measurements), tuple(gaps), True)
            hypothesis = update.update(hypothesis, tuple(measurements), alpha)
        return Run(hypothesis, tuple(measurements), tuple(gaps), False)

    return release.read(private)


def finished(
    release: Release,
    run: Run,
    workload: Workload,
    plan: Rounds,
    *,
    hypothesis: Hypothesis | None = None,
    alpha: float = math.inf,
    error_bound: float = math.inf,
) -> Construction:
    """Return what is released of a run, with its last hypothesis or another that was made of it."""
    return Construction(
        hypothesis=run.hypothesis if hypothesis is None else hypothesis,
        measurements=run.measurements,
        gaps=tuple(gap / workload.units for gap in run.gaps),
        stopped=run.stopped,
        alpha=alpha,
        error_bound=min(alpha, error_bound),
        grid_bits=session_grid_bits(workload.n),
        plan=plan,
        budget=release.budget,
        beta=release.beta,
        private=release.private,
    )


@final
class _Held:
    """The exact answers, PRIVATE: an object, so that no frame that calls a rule shows a number."""

    __slots__ = ("_exact", "_noise", "_plan", "_workload")

    def __init__(self, data: PrivateData, workload: Workload, plan: Rounds, noise: Noise) -> None:
        self._workload, self._plan, self._noise = workload, plan, noise
        self._exact = workload.exact(data)

    def choose(self, guesses: Ints) -> int:
        """Return the place of a badly answered query."""
        return self._plan.choose(np.abs(self._exact - guesses), self._noise)

    def number(self, index: int) -> int:
        """Return a noisy answer, grid units."""
        return int(self._plan.answer(self._exact[index : index + 1], self._noise)[0])

    def number_for_table(self, index: int) -> int:
        """Return a noisy answer, grid units, with noise in counts, on the finest grid that can be drawn on.

        Rounded to units of 2^-j a sum still moves by 2^j at most, one count, since it moved by one count.
        """
        shift = self._plan.finest(self._workload.grid_bits)
        coarser = self._workload.grid_bits - shift
        rounded = (self._exact[index : index + 1] + (1 << coarser >> 1)) >> coarser
        return int(self._plan.answer(rounded, self._noise, shift)[0]) << coarser
