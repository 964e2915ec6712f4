"""What a session needs of its public belief about the private table, and what it asks of it.

A hypothesis is a function of public facts and released numbers only, so nothing here can cost privacy,
and nothing here may see data. The bounds of easy answers do not depend on it: the very number that
`evaluate` returns is rounded, tested and released.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import InvalidParameterError, InvalidQueryError, TooLargeError
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query

MAX_CELLS = 2**26
NO_BLOCKS = (
    "a marginal must be asked of a hypothesis with blocks, got one without; use a shipped update rule."
)
NOT_FINITE = "hypothesis must evaluate to finite numbers, one a query, got others; mend the update rule."


@runtime_checkable
class Hypothesis(Protocol):
    """Anything that linear queries can be evaluated on. A rule with more state brings its own class."""

    @property
    def domain(self) -> Domain:
        """The domain of the queries."""

    def supports(self, query: Query) -> bool:
        """Whether `evaluate` takes this query."""

    def evaluate(self, query: Query) -> float:
        """Return f(hypothesis), a fraction of records in [0, 1]."""

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        """Return f(hypothesis) of every query, shape (m,): the same bits as one at a time."""


@runtime_checkable
class HasBlocks(Protocol):
    """A hypothesis that also evaluates partitions: cross tables and partition releases need one."""

    def blocks(self, partition: Partition) -> Floats:
        """Return the guess of every block, shape (blocks,)."""


@runtime_checkable
class SupportsMany(Protocol):
    """A hypothesis that says at once whether it takes a whole batch: others are asked query by query."""

    def supports_many(self, queries: Queries) -> bool:
        """Whether `evaluate` takes all of these queries."""


class HasDomain(Protocol):
    """What has a domain."""

    @property
    def domain(self) -> Domain:
        """The domain of the queries."""


class OverDomain:
    """What a hypothesis says that takes all queries of its domain."""

    __slots__ = ()

    def supports(self: HasDomain, query: Query) -> bool:
        return query.domain is self.domain or query.domain == self.domain

    def supports_many(self: HasDomain, queries: Queries) -> bool:
        return queries.domain == self.domain


def check_answers(hypothesis: Hypothesis, question: Question | Queries) -> None:
    """Raise `InvalidQueryError` unless a hypothesis answers a question, or all of a batch."""
    if isinstance(question, BoundMarginal):
        if not isinstance(hypothesis, HasBlocks):
            raise InvalidQueryError(NO_BLOCKS)
    elif not (
        supports_all(hypothesis, question) if type(question) is Queries else hypothesis.supports(question)
    ):
        raise InvalidQueryError("query must be supported by the hypothesis, got one that is not.")


def supports_all(hypothesis: Hypothesis, queries: Queries) -> bool:
    """Return whether the hypothesis takes every query of the batch."""
    if isinstance(hypothesis, SupportsMany):
        return bool(hypothesis.supports_many(queries))
    return all(map(hypothesis.supports, queries))


def batch_guesses(hypothesis: Hypothesis, queries: Queries, n: int) -> Ints:
    """Return `grid_guesses` of a batch, shape (m,): the same integers. Public.

    Raises:
        InvalidParameterError: If the hypothesis does not give one finite number a query.
    """
    values = _finite(hypothesis.evaluate_many(queries), len(queries))
    most = np.int64(n) << queries.grid_bits  # n 2^k is below 2^53: as a float it is itself
    return np.clip(np.rint(most * values), 0, most).astype(np.int64)


def grid_guesses(hypothesis: Hypothesis, queries: Sequence[Query], n: int) -> list[int]:
    """Return n 2^k f(hypothesis) of each query, evaluated and rounded once, in [0, n 2^k]. Public.

    This very integer is tested and, if easy, released, so an easy answer's error bound needs nothing from the
    hypothesis. It is Python's own: an object of the hypothesis's own class would see the counts it is
    compared with.

    Raises:
        InvalidParameterError: If the hypothesis does not give one finite number a query.
    """
    if len(queries) == 1:
        return [grid_guess(hypothesis, queries[0], n)]
    values = _finite(hypothesis.evaluate_many(queries), len(queries)).tolist()
    return [_on_grid(n << query.grid_bits, value) for query, value in zip(queries, values, strict=True)]


def grid_guess(hypothesis: Hypothesis, query: Query, n: int) -> int:
    """Return `grid_guesses` of one query: the same integer. Public.

    Raises:
        InvalidParameterError: If the hypothesis does not give a finite number.
    """
    try:
        value = float(hypothesis.evaluate(query))
    except OverflowError:  # an integer that no float holds
        value = math.inf
    if not math.isfinite(value):
        raise InvalidParameterError(NOT_FINITE)
    return _on_grid(n << query.grid_bits, value)


def _on_grid(most: int, value: float) -> int:
    guess = round(most * min(max(value, 0.0), 1.0))  # of 1e308 times most there is no integer
    return min(guess, most)


def block_guesses(hypothesis: Hypothesis, partition: Partition, n: int) -> tuple[int, ...]:
    """Return n f(hypothesis) of every block, rounded once, in [0, n]. Public.

    Raises:
        InvalidQueryError: If the hypothesis has no blocks.
        InvalidParameterError: If it does not give one finite number a block.
    """
    if not isinstance(hypothesis, HasBlocks):
        raise InvalidQueryError(NO_BLOCKS)
    blocks = np.clip(_finite(hypothesis.blocks(partition), partition.blocks), 0.0, 1.0)
    return tuple(np.rint(n * blocks).astype(np.int64).tolist())


def _finite(values: object, count: int) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise InvalidParameterError(NOT_FINITE)
    return array


def check_size(domain: Domain) -> None:
    """Raise `TooLargeError` where a dense hypothesis would not fit into memory."""
    check_domain(domain)
    if domain.size > MAX_CELLS:
        raise TooLargeError(
            f"domain must have at most {MAX_CELLS:,} cells for a histogram, got {domain.size:,}; "
            "project it to fewer attributes, or leave update out: sessions then fit a MixtureOfProducts."
        )


def check_cells(cells: int) -> None:
    """Raise `TooLargeError` where a table of so many numbers would not fit into memory."""
    if cells > MAX_CELLS:
        raise TooLargeError(
            f"tables must have at most {MAX_CELLS:,} cells together, got {cells:,}; measure fewer attributes "
            "at once, or coarser ones."
        )


@lru_cache(256)
def cells_of_all(sizes: tuple[int, ...], count: int) -> int:
    """Return the cells of the tables over all sets of so many attributes, or fewer, together."""
    cells = [1] + [0] * count  # by number of attributes
    for size in sizes:
        for chosen in range(count, 0, -1):
            cells[chosen] += cells[chosen - 1] * size
    return sum(cells)
