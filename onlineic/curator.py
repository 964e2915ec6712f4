"""The private half of a session: the only code that reads counts to answer a query.

The order is the guarantee: reserve, read, draw, commit. Before the reservation a failure changes nothing.
From the read to the commit any exception seals the session and burns the reservation, because falling back to
the old state would tell, unpaid, whether the hard path was taken.
"""

import contextlib
import logging
import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar, final

import attrs
import numpy as np

from onlineic._guard import guarded, place_of
from onlineic._typing import Ints
from onlineic.accounting import Charge
from onlineic.data import PrivateData
from onlineic.errors import (
    BudgetExceededError,
    ForkedSessionError,
    InternalError,
    InvalidParameterError,
    InvalidQueryError,
    SessionSealedError,
)
from onlineic.hypothesis import Believed, Hypothesis
from onlineic.ledger import Easy, Hard, Ledger, Opened
from onlineic.marginals import BoundMarginal
from onlineic.noise import Noise
from onlineic.opening import Opening
from onlineic.partitions import Pairs, PartitionRule, one_way, pairs_of
from onlineic.queries import Measurement, Partition, Query
from onlineic.sparse import NumericSparse, SparseState

__all__ = ["Curator", "Verdict", "block_guesses", "grid_guesses"]

SEALED = (
    "session must not have been interrupted between reading the data and its record, but was: the charge "
    "stays spent; open a new session (budgets add)."
)
T = TypeVar("T")
_log = logging.getLogger("onlineic")


@final
@attrs.frozen
class Verdict:
    """What the tests of one fixed hypothesis released.

    Attributes
    ----------
    easy : int
        Leading queries whose test did not fire.
    measurement : Measurement or None
        The answer of the query behind them, if its test fired.
    """

    easy: int
    measurement: Measurement | None


@final
class Curator:
    """Tests queries against the private table and measures the hard ones, each paid before it is read.

    Parameters
    ----------
    data : PrivateData
    sparse : NumericSparse
    noise : Noise
    ledger : Ledger
    partitions : PartitionRule, optional
        Which partition a hard query releases; None: its number alone.
    """

    __slots__ = (
        "_capacity", "_data", "_ledger", "_noise", "_opening", "_pairs", "_partitions", "_prices", "_process",
        "_sealed", "_sparse", "_state", "_table_price",
    )  # fmt: skip

    def __init__(
        self,
        data: PrivateData,
        sparse: NumericSparse,
        noise: Noise,
        ledger: Ledger,
        partitions: PartitionRule | None = None,
    ) -> None:
        self._data = data
        self._sparse = sparse
        self._noise = noise
        self._ledger = ledger
        self._state: SparseState = sparse.init()  # holds the secret threshold noise: never shown
        self._capacity = sparse.account().capacity
        opening = sparse.opening()
        self._opening = opening.amount if opening is not None else Fraction(0)  # due with the first test
        self._prices: dict[tuple[int, int], Fraction] = {}
        self._partitions = partitions
        self._pairs: Pairs = frozenset()  # of axes that stand together in a released partition
        # a hit of a partition session costs what a partition does, or the number that is released instead:
        # which of the two, no test can change
        self._table_price = sparse.price(one_way(data.domain, 0)).amount if partitions is not None else None
        self._sealed = False
        self._process = os.getpid()

    @property
    def sealed(self) -> bool:
        """Whether an answer was interrupted after the data were read."""
        return self._sealed

    def check_process(self) -> None:
        """Raise `ForkedSessionError` in another process than the one that opened the session."""
        if os.getpid() != self._process:
            raise ForkedSessionError(
                "session must be used in the process that opened it, got a forked one; open a new session."
            )

    def check_unsealed(self) -> None:
        """Raise `SessionSealedError` if nothing may be answered any more, or a test is in flight."""
        if self._sealed:
            raise SessionSealedError(SEALED)

    def cover(self, queries: Sequence[Query]) -> list[bool]:
        """Reserve a hit, and return which of the leading queries may be tested. Public; reads nothing.

        A standing reservation serves every test until a hit uses it up, and is topped up for the first
        payable query, if that is dearer. The list ends before the next one that is dearer still: so a
        batch pays what its queries pay one at a time.
        """
        return self._cover([self._price(query) for query in queries])

    def check_table(self, table: BoundMarginal, hypothesis: Hypothesis) -> None:
        """Raise `InvalidQueryError` if the mechanism or the hypothesis knows no tables."""
        self._sparse.price(table.partition)
        _check_believed(hypothesis)

    def cover_table(self, target: Partition) -> bool:
        """Reserve a hit that releases a partition: whether it can be paid. Public; reads nothing."""
        return self._cover([self._sparse.price(target).amount])[0]

    def _cover(self, prices: list[Fraction]) -> list[bool]:
        standing = self._ledger.reserved
        level = covered = self._covered()
        if all(price <= level for price in set(prices)):
            return [True] * len(prices)
        used = self._ledger.spent - (standing.amount if standing is not None else 0)
        left = self._capacity - used - self._opening
        payable: list[bool] = []
        for price in prices:
            if level < price <= left:
                if any(payable):
                    break
                level = price
            payable.append(price <= left)
        if any(payable) and (standing is None or level > covered):
            self._ledger.reserve(Charge(level + self._opening, "one hard answer with its tests"))
        return payable

    def _covered(self) -> Fraction:
        """Return the dearest hit that the standing reservation pays: after a Ctrl-C only the ledger knows."""
        standing = self._ledger.reserved
        return Fraction(0) if standing is None else standing.amount - self._opening

    def test(self, queries: Sequence[Query], guesses: Sequence[int]) -> Verdict:
        """Test covered queries in order up to the first hit, which is measured and committed.

        Parameters
        ----------
        queries : sequence of Query
            All covered by the standing reservation.
        guesses : sequence of int
            The public integers n 2^k f(hypothesis) that are tested and, if easy, released.

        Raises
        ------
        SessionSealedError
            If anything failed after the data were read. Its cause is not chained: a traceback could hold
            a private number. The curator's log says where, never what.
        """
        self._check_covered(max(self._price(query) for query in queries))
        return self._guarded(lambda: self._tested(queries, guesses))

    def test_table(self, table: BoundMarginal, guesses: tuple[int, ...]) -> Measurement | None:
        """Test a covered cross table by its largest cell gap; None if easy, else all its blocks.

        Parameters
        ----------
        guesses : tuple of int
            The public integers n f(hypothesis) of all blocks of the table's partition.
        """
        self._check_covered(self._sparse.price(table.partition).amount)
        return self._guarded(lambda: self._tested_table(table, guesses))

    def _check_covered(self, price: Fraction) -> None:
        """Raise unless a reservation of this price stands: a rule of its own may have asked meanwhile."""
        if self._ledger.reserved is None or price > self._covered():
            raise InternalError("a test must be reserved before the data are read.")

    def _tested_table(self, table: BoundMarginal, guesses: tuple[int, ...]) -> Measurement | None:
        counts = self._data.exact_counts(table.partition)
        cells = np.unique(table.cells[table.cells >= 0])
        largest = int(np.abs(counts - np.array(guesses, np.int64))[cells].max())
        largest <<= self._sparse.grid_bits
        state, hit = self._sparse.step_table(self._state, largest, self._noise)
        measurement = None
        if hit is None:
            self._ledger.note(Easy(table, guesses))
        else:
            charge = self._ledger.reserved
            if charge is None:
                raise InternalError("a hit must be reserved before the data are read.")
            measurement = self._sparse.measure(hit, table.partition, 0, counts, self._noise)
            self._ledger.commit(Hard(table, guesses, measurement, charge))
            self._opening = Fraction(0)
            self._pairs |= pairs_of(table.partition)
        self._state = state
        return measurement

    def measure_tables(self, opening: Opening) -> tuple[Measurement, ...]:
        """Release partitions with fresh noise before the first query, in one charge.

        Raises
        ------
        SessionSealedError
            As in `test`.
        """
        if self._ledger.spent + opening.charge.amount > self._capacity:
            raise BudgetExceededError(
                "the opening tables must fit the budget, and do not; nothing was spent."
            )
        self._ledger.reserve(opening.charge)
        return self._guarded(lambda: self._measured_tables(opening))

    def _measured_tables(self, opening: Opening) -> tuple[Measurement, ...]:
        n = self._data.n
        released = []
        for target, scale in zip(opening.targets, opening.scales, strict=True):
            counts = self._data.exact_counts(target)
            if opening.pure:
                drawn, deviation = self._noise.discrete_laplace(scale, target.blocks), math.sqrt(2.0) * scale
            else:
                drawn, deviation = self._noise.discrete_gaussian(int(scale), target.blocks), float(scale)
            released.append(Measurement(target, (counts + drawn) / n, deviation / n))
            self._pairs |= pairs_of(target)
        self._ledger.commit(Opened(tuple(released), opening.charge))
        return tuple(released)

    def _guarded(self, private: Callable[[], T]) -> T:
        """Run what reads the data: sealed while it runs, and for good if it does not end."""
        self._sealed = True  # until all is recorded: a second Ctrl-C, or a nested call, finds it closed
        released = guarded(private, self._close, SEALED)
        self._sealed = False
        return released

    def _tested(self, queries: Sequence[Query], guesses: Sequence[int]) -> Verdict:
        """Read, draw, record: the only frame that holds private numbers."""
        grid = self._sparse.grid_bits
        counts: Sequence[int] | Ints
        if len(queries) == 1:
            query, shift = queries[0], grid - queries[0].grid_bits
            counts = (self._data.exact_counts(query),)
            gap = (counts[0] - guesses[0]) << shift
            state, hit = self._sparse.step(self._state, gap, query.sensitivity << shift, self._noise)
            easy = 1 if hit is None else 0
        else:
            counts = self._data.exact_counts_many(queries)
            shifts = np.array([grid - query.grid_bits for query in queries])
            gaps = (counts - np.array(guesses, np.int64)) << shifts
            sensitivities = np.array([query.sensitivity for query in queries], np.int64) << shifts
            state, easy, hit = self._sparse.step_many(self._state, gaps, sensitivities, self._noise)
        for query, guess in zip(queries[:easy], guesses, strict=False):
            self._ledger.note(Easy(query, guess))
        measurement = None
        if hit is not None:
            query, guess, charge = queries[easy], guesses[easy], self._ledger.reserved
            if charge is None:
                raise InternalError("a hit must be reserved before the data are read.")
            # a function of the query and the transcript before its test: the test cannot make it dearer
            target = self._partitions.partition(query, self._pairs) if self._partitions is not None else None
            if target is None:
                measurement = self._sparse.measure(hit, query, guess, int(counts[easy]), self._noise)
            else:
                blocks = self._data.exact_counts(target)
                measurement = self._sparse.measure(hit, target, guess, blocks, self._noise)
                self._pairs |= pairs_of(target)
            self._ledger.commit(Hard(query, guess, measurement, charge))
            self._opening = Fraction(0)
        self._state = state
        return Verdict(easy, measurement)

    def seal(self, error: BaseException) -> None:
        """Burn the reservation, if one stands, and stop for good."""
        self._sealed = True
        self._close(type(error).__name__, place_of(error))

    def _close(self, name: str, place: str) -> None:
        with contextlib.suppress(Exception):  # a reservation that cannot be burned still counts as spent
            self._ledger.burn()
        _log.error("session sealed: %s at %s", name, place)

    def hard_left(self) -> int:
        """Return how many hits of the largest price can still be paid."""
        if self._sealed:
            return 0
        standing = self._ledger.reserved
        used = self._ledger.spent - (standing.amount if standing is not None else 0)
        return int((self._capacity - used - self._opening) // self._dearest())

    def _dearest(self) -> Fraction:
        if self._table_price is not None:
            return self._table_price
        shape = self._data.domain.shape
        axis = max(range(len(shape)), key=shape.__getitem__)
        if shape[axis] == 1:  # every query is constant: none is ever tested
            return self._capacity + 1
        return self._price(one_way(self._data.domain, axis).block(0))

    def _price(self, query: Query) -> Fraction:
        key = (query.sensitivity, query.grid_bits)
        if key not in self._prices:
            number = self._sparse.price(query).amount
            self._prices[key] = number if self._table_price is None else max(number, self._table_price)
        return self._prices[key]

    def __repr__(self) -> str:
        return f"Curator({self._data!r}, {self._ledger!r})"


def block_guesses(hypothesis: Hypothesis, partition: Partition, n: int) -> tuple[int, ...]:
    """Return n f(hypothesis) of every block, rounded once, in [0, n]. Public.

    Raises
    ------
    InvalidQueryError
        If the hypothesis has no blocks.
    InvalidParameterError
        If it does not give finite numbers.
    """
    blocks = np.clip(_check_believed(hypothesis).blocks(partition), 0.0, 1.0)
    if not np.isfinite(blocks).all():
        raise InvalidParameterError(
            "hypothesis must evaluate to finite numbers, got another one; mend the update rule."
        )
    return tuple(np.rint(n * blocks).astype(np.int64).tolist())


def _check_believed(hypothesis: Hypothesis) -> Believed:
    if not isinstance(hypothesis, Believed):
        raise InvalidQueryError("a marginal must be asked of a hypothesis with blocks, got one without.")
    return hypothesis


def grid_guesses(hypothesis: Hypothesis, queries: Sequence[Query], n: int) -> list[int]:
    """Return n 2^k f(hypothesis) of each query, evaluated and rounded once, in [0, n 2^k]. Public.

    This very integer is tested and, if easy, released, so an easy answer's error bound needs nothing
    from the hypothesis.

    Raises
    ------
    InvalidParameterError
        If the hypothesis does not give a finite number.
    """
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
        most = n << query.grid_bits
        guesses.append(min(max(round(most * value), 0), most))
    return guesses
