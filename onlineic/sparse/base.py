"""`NumericSparse`: the test that tells hard queries from easy ones, and the number for a hard one.

All arithmetic is on integers. A mechanism compares gaps in units of 1/(n 2^grid_bits), the session's grid;
a query on a coarser grid has its gap multiplied up, one on a finer grid has it rounded down. The number of a
hard answer is on the query's own grid, or on the session's if that is coarser.

Proof: docs/theory/accuracy.md, 6.2, 6.4; docs/theory/ledger-and-restarts.md, 5.4; docs/theory/noise.md, 3.4,
6.2a; docs/theory/queries.md, 1.3, 1.4; docs/theory/session.md, 4.5; docs/theory/sparse.md, 3.3, 5.3.
"""

import abc
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, partial
from operator import index
from typing import Any, Self, TypeVar, final, overload

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.neighbours import Neighbours
from onlineic.errors import InternalError, InvalidParameterError, InvalidQueryError, checked_integer, shown
from onlineic.noise.laws import DiscreteGaussian, DiscreteLaplace, checked_tail
from onlineic.noise.sources import Noise
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.sparse.calibration import Calibration

Units = TypeVar("Units", int, Ints)
Law = DiscreteGaussian | DiscreteLaplace
Asked = Callable[..., Calibration]  # what a mechanism alone knows -> the plan of its user
SCALAR = 4  # up to so many values plain integers are faster than arrays


@final
@attrs.frozen
class SparseState:
    """What a mechanism remembers between tests.

    Attributes:
        hits: Hard answers so far; released.
        threshold_noise: Noise of the current threshold, drawn by the first test that it serves. SECRET: not
            shown.
    """

    hits: int = attrs.field(default=0, converter=index)
    threshold_noise: int | None = attrs.field(
        default=None, repr=False, converter=attrs.converters.optional(index)
    )


@final
@attrs.frozen
class Hit:
    """A fired test. Holds released numbers only.

    Attributes:
        side: +1 or -1: which of a pair of tests fired; 0 for a test of the absolute gap.
        excess: Noisy gap minus noisy threshold where the mechanism releases it for free (grid units).
    """

    side: int = attrs.field(default=0, converter=index)
    excess: int | None = attrs.field(default=None, converter=attrs.converters.optional(index))


@final
@attrs.frozen
class Value:
    """An integer of bounded sensitivity that is no linear query, priced like the number of one.

    Attributes:
        sensitivity: At least 1. How far one replaced record moves it, units 2^-grid_bits: as if it were a
            weight up to that.
    """

    sensitivity: int
    grid_bits: int

    @property
    def lowest(self) -> int:
        """Least value, for the price: 0."""
        return 0

    @property
    def highest(self) -> int:
        """Largest value, for the price: the sensitivity."""
        return self.sensitivity


def check_measurable(target: object) -> None:
    """Raise `InvalidQueryError` unless the price of a number made of this target is known."""
    if not isinstance(target, (Query, Partition, Value)):
        raise InvalidQueryError(
            f"target must be a Query or a Partition, got a {type(target).__name__}; an integer of bounded "
            "sensitivity is tested and released by ValueSparse."
        )


def checked_grid(n: int, grid_bits: int) -> dict[str, int]:
    """Return n and K as Python's integers, which do not wrap around, if n 2^K is exact as a float."""
    n, bits = checked_integer("n", n, at_least=1), checked_integer("grid_bits", grid_bits, at_least=0)
    if n << bits > 2**53:
        raise InvalidParameterError(
            f"n 2^grid_bits must be <= 2^53, got n={n}, grid_bits={bits}; lower grid_bits."
        )
    return {"n": n, "grid_bits": bits}


class NumericSparse(abc.ABC):
    """Frozen settings of a sparse-vector mechanism with numeric answers: the interface, and `calibrated`."""

    @classmethod
    def calibrated(
        cls,
        budget: Budget,
        *,
        n: int,
        hard_answers: int,
        max_queries: int,
        grid_bits: int = 0,
        alpha: float | None = None,
        threshold: float | None = None,
        beta: float = 0.05,
        **own: Any,
    ) -> Self:
        """Return the settings with the least noise that pay for the planned hard answers.

        Real-valued optima are rounded to the private side: scales up to what the sampler draws.

        Args:
            budget: With delta > 0 for `GumbelSparse`; `ExponentialSparse` uses epsilon alone, `LaplaceSparse`
                the better of its two branches.
            n: At least 1. Number of records, public.
            hard_answers: At least 1. c, planned true hard answers of full range.
            max_queries: At least 1. k, planned queries. Privacy does not depend on it.
            grid_bits: At least 0. Finest grid wanted. `GumbelSparse` and `LaplaceSparse` lower it where their
                noise would leave the sampler's range.
            alpha: In (0, 1). Gap, fraction of records, that every hit of k queries shall have with
                probability 1 - beta: T = alpha + a_hit. `GumbelSparse` raises b and lowers sigma / b where T
                would exceed 26 b.
            threshold: In (0, 1). T as a fraction of records, instead. With neither, T is such that k queries
                whose guess is right cause false_hits c false hits on average. (`LaplaceSparse` takes any
                alpha or threshold > 0: the book's constants may lead beyond 1.)
            beta: In (0, 1).
            **own: What the mechanism alone knows, listed below.

        Keyword Args:
            false_hits: At least 0. Of `GumbelSparse` and `ExponentialSparse`: rho, false hits for each
                planned true one, so that ceil(c (1 + rho)) hits are paid; by default .2 and .05, with alpha
                0. (`LaplaceSparse` pays c, and its T with neither is for rho = .2.)
            reserved: In [0, 1). Of the same two: share of the capacity, or of epsilon, kept for other
                releases of the same account, such as a noisy prior.
            restarts: At least 0. Of `ExponentialSparse` and `LaplaceSparse`: sessions paid for besides,
                resumed after they ended; each has a threshold noise of its own.
            ratio: Above 0. Of `GumbelSparse`: sigma / b; less where b was raised for the threshold.
            partition: Of `GumbelSparse`: hard answers release whole partitions.
            fresh: Of `ExponentialSparse`: plan fresh answers, numbers and partitions, which get
                `answer_share`.
            answer_share: In (0, 1). Of `ExponentialSparse`: share of epsilon for fresh answers. At 1/3 their
                95 % quantile is about a quarter of what a test resolves.
            pair: Of `LaplaceSparse`: test gap and -gap, as the book does.

        Raises:
            InfeasibleAccuracyError: If the noise would leave the sampler's range.
        """
        asked = partial(Calibration, budget, n, hard_answers, max_queries, grid_bits, alpha, threshold, beta)
        return cls._calibrated(asked, **own)

    @classmethod
    def _calibrated(cls, asked: Asked, *_: Any, **own: Any) -> Self:
        """Return the settings for the plan that `asked` makes of what the mechanism alone knows.

        Each mechanism names what it takes, and with `*_` besides `**own` a type checker lets it.
        """
        raise InvalidParameterError(
            f"sparse must be a mechanism with a calibration, got {cls.__name__}; construct it by its scales."
        )

    @property
    @abc.abstractmethod
    def n(self) -> int:
        """Number of records, public."""

    @property
    @abc.abstractmethod
    def grid_bits(self) -> int:
        """K: gaps and sensitivities are passed in units of 1/(n 2^K)."""

    @property
    @abc.abstractmethod
    def threshold(self) -> int:
        """Noise-free threshold in units of 1/(n 2^K); ties are hits."""

    @property
    @abc.abstractmethod
    def neighbours(self) -> Neighbours:
        """By which gaps, numbers and tables move: prices and noise are for these."""

    @cached_property  # asked by each test
    def widest(self) -> int:
        """The most that a neighbour moves a gap, units of 1/(n 2^K): of weights in [0, 1], or of a table."""
        return self.neighbours.any_gap(1 << self.grid_bits)

    def bits_of(self, target: "Query | Partition | Value") -> int:
        """Return the grid that the number of a target is released on: its own, or K if that is coarser.

        Weights may be finer than K: their exact count is then rounded down to a multiple of 2^-K, before any
        noise, so that counts which differ by at most Delta units of 2^-k differ by at most
        ceil(Delta/2^(k-K)) steps (theory 1.3): `moved_by`.
        """
        return min(target.grid_bits, self.grid_bits)

    def moved_by(self, target: "Query | Value") -> int:
        """Return how far a neighbour moves a number of this target, in units of its own grid, `bits_of`."""
        moved = self.neighbours.number(target.lowest, target.highest)
        rows = self.neighbours.rows  # one after the other: fewer cost at most their part, rounded up
        return rows * steps_up(-(-moved // rows), target.grid_bits, self.bits_of(target))

    @overload
    def tested_by(self, target: "Query | Value") -> int: ...
    @overload
    def tested_by(self, target: Queries) -> Ints: ...
    def tested_by(self, target: "Query | Value | Queries") -> Any:
        """Return how far a neighbour moves the gap of this target, in units of 1/(n 2^K); of many, (m,)."""
        ends = target.extremes if type(target) is Queries else (target.lowest, target.highest)
        moved, rows = self.neighbours.test(*ends), self.neighbours.rows
        return rows * steps_up(-(-moved // rows), target.grid_bits, self.grid_bits)

    @abc.abstractmethod
    def account(self) -> Filter:
        """Return the whole budget of the mechanism, nothing spent, in its own unit."""

    @abc.abstractmethod
    def start_charge(self) -> Charge | None:
        """Return what the first test of a run costs besides `price`, or None."""

    def restart_price(self) -> Fraction:
        """Return the most that a session which is closed in order and resumed spends again.

        Only the noise of a kept threshold is lost (theory 5.4): where there is none this is 0.
        """
        start = self.start_charge()
        return Fraction(0) if start is None else start.amount

    @abc.abstractmethod
    def price(self, target: Query | Partition) -> Charge:
        """Return the charge of one hard answer, its test included; public.

        Raises:
            InvalidQueryError: If the mechanism cannot release this target.
        """

    def check_releases(self, table: BoundMarginal) -> None:
        """Raise `InvalidQueryError` unless a hit releases cross tables, and this one can be priced."""
        if not self.releases_tables:
            raise InvalidQueryError(
                "a cross table must be asked of a session that measures tables, got one that was planned to "
                "measure single numbers, as with delta = 0 or release='answer'; ask its counts by group, "
                f"session.group_by({shown(list(table.names), 100)}) or GROUP BY in SQL, or open a session "
                "with delta above 0 and without these settings."
            )
        self.price(table.partition)

    @property
    def releases_tables(self) -> bool:
        """Whether a hit may release a whole table: `price` and `measure` take partitions."""
        return True

    def stretched(self, cheaper: Fraction) -> "NumericSparse":
        """Return the mechanism with more noise and a higher threshold, whose hits cost `cheaper` times less.

        Less where the samplers end. Account, order and grid stay, and states go from one to the other: the
        noise of a kept threshold has the scale it had. By default the same mechanism.

        Args:
            cheaper: At least 1.
        """
        return self

    def init(self) -> SparseState:
        """Return the state before the first test. Draws nothing."""
        return SparseState()

    def unfinished(self, reserved: Fraction, start: Fraction) -> Fraction:
        """Return what easy tests have used up of a reserved hit, when their process ends in order.

        Asked only where the noise of a kept threshold was drawn: it is lost with the process and never
        stored, and what it cost is not given back (theory 5.4).

        Args:
            reserved: Of the next hit, `start` included.
            start: The part that pays the start of this run; 0 once a hit has paid it.
        """
        return reserved

    @abc.abstractmethod
    def step(
        self, state: SparseState, gap: int, sensitivity: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        """Test one gap: (new state, None) if easy, (new state, hit) if hard.

        Args:
            gap: Exact count minus guess, signed, units 1/(n 2^K). PRIVATE.
            sensitivity: How far a neighbour moves the gap, same units.
        """

    @abc.abstractmethod
    def step_many(
        self, state: SparseState, gaps: Ints, sensitivities: Ints, noise: Noise
    ) -> tuple[SparseState, int, Hit | None]:
        """Test gaps in order until one is hard: (state, number of leading easy ones, hit or None).

        The law, the state and the noise used are those of `step` one at a time; noise drawn for gaps
        after the first hit was never looked at and is given back.
        """

    @abc.abstractmethod
    def step_table(
        self, state: SparseState, largest_gap: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        """Test a cross table by max_i |gap_i| over its cells: an easy answer certifies all of them.

        Args:
            largest_gap: Units 1/(n 2^K); replacing one record moves it by at most one count. PRIVATE.
        """

    def _law(self, target: Query | Partition) -> Law:
        """Return the law of fresh noise in each value of a target, in units of its own grid, `bits_of`."""
        raise InternalError(f"{type(self).__name__} must have a law of fresh answers.")

    def _tested(self, target: Query) -> int:
        """Return `tested_by` of a query that is no constant."""
        tested = self.tested_by(target)
        if tested < 1:
            raise InvalidQueryError(
                f"query must have sensitivity >= 1, got sensitivity={tested}; answer a constant "
                "query without a test."
            )
        return tested

    def measure(
        self, hit: Hit, target: Query | Partition, guess: int, counts: int | Ints, noise: Noise
    ) -> Measurement:
        """Return the released answer of a hit: by default a fresh one, whose noise is never the test's.

        Args:
            guess: The public integer that was tested, units 1/(n 2^k).
            counts: Exact n 2^k f(D) of a query, or block counts of a partition. PRIVATE.
        """
        check_measurable(target)
        bits, law = self.bits_of(target), self._law(target)
        exact = np.atleast_1d(np.asarray(counts, dtype=np.int64)) >> target.grid_bits - bits
        records = self.n << bits
        return Measurement(target, (exact + law.draw(noise, len(exact))) / records, law.deviation / records)

    def noise_of(self, target: Query | Partition) -> float:
        """Return the standard deviation of the noise in each value that `measure` releases, fraction."""
        return self._law(target).deviation / (self.n << self.bits_of(target))

    @abc.abstractmethod
    def easy_radius(self, beta: float, tests: int = 1) -> float:
        """Return r: every easy answer among `tests` has |f(D) - guess| <= r, but with probability beta."""

    def hard_radius(
        self, target: Query | Partition, beta: float, answers: int = 1, tests: int | None = None
    ) -> float:
        """Return r: each value of `answers` hard answers is within r, given that they are hard, but for beta.

        By default of fresh answers, around their counts rounded to the grid.

        Args:
            tests: Most tests that come before them, over which a union stands in for the condition, if that
                is made.
        """
        beta, answers = checked_tail(beta, answers)
        values = target.blocks if isinstance(target, Partition) else 1
        return self._law(target).radius(beta / (answers * values)) / (self.n << self.bits_of(target))

    def sum_radius(self, target: Partition, weights: Floats, beta: float) -> float:
        """Return r: the sum of weights times the noises of a measured partition is within r, but for beta.

        Args:
            weights: Shape (blocks,).
        """
        return self._law(target).sum_radius(weights, beta) / self.n

    @abc.abstractmethod
    def margins(self, max_queries: int, beta: float, hard_answers: int) -> tuple[float, float, float]:
        """Return (a_hit, a_miss, a_num), fractions, together failing with probability <= beta.

        No hit has |gap| < T - a_hit, no easy answer |gap| > T + a_miss, no number of a query errs by more
        than a_num, over `max_queries` tests and `hard_answers` numbers.
        """


def steps_down(units: Units, bits: Units, grid: int) -> Units:
    """Return multiples of 2^-bits as multiples of 2^-grid, rounded down: a number, or (m,) of them."""
    up = (grid - bits) * (grid >= bits)
    return units << up >> up - (grid - bits)


def steps_up(units: Units, bits: Units, grid: int) -> Units:
    """Return multiples of 2^-bits as multiples of 2^-grid, rounded up."""
    return -steps_down(-units, bits, grid)


def first_reaching(
    values: Sequence[int] | Ints, level: int, draw: Callable[[int], Ints], noise: Noise
) -> tuple[int, int | None]:
    """Return (index, value + nu - level) of the first value with value + nu >= level; (number, None) if none.

    `draw` gives so many fresh nu of `noise`. Those drawn for values after the first were never looked at and
    are given back. What is left above the level is PRIVATE, unless the proof of the mechanism pays for it.
    """
    if len(values) <= SCALAR:
        for index, value in enumerate(values):
            excess = int(value) + int(draw(1)[0]) - level
            if excess >= 0:
                return index, excess
        return len(values), None
    since = noise.calls
    nu = draw(len(values))
    above = np.flatnonzero(np.asarray(values, np.int64) + nu >= level)
    if len(above) == 0:
        return len(values), None
    first = int(above[0])
    noise.unread(len(values) - 1 - first, since)  # after the first hit: never looked at
    return first, int(values[first]) + int(nu[first]) - level
