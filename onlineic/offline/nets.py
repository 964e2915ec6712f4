"""The net mechanism: one small database, chosen privately, that answers a whole class of queries.

A theorem rather than a tool: exponentially many queries can be answered, at a cost that grows as |X|^m. Over
as few cells as can be enumerated, one noisy count a cell errs less at every n. For threshold functions the
choice needs no enumeration, see `onlineic.offline.thresholds`.

Proof: docs/theory/offline.md, 12.8.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.ask.bind import bind_queries
from onlineic.bounds.nets import best_net, multiset_radius, multiset_rows, net_error
from onlineic.bounds.updates import log_multisets
from onlineic.data.private import PrivateData
from onlineic.display.text import upward
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InternalError,
    InvalidParameterError,
    TooLargeError,
    check_choice,
    checked_integer,
    set_fields,
)
from onlineic.mechanisms.selection import ExponentialMechanism, NoisyMax
from onlineic.noise.sources import Noise, public_generator
from onlineic.offline.release import Release, Result
from onlineic.queries.expressions import Expression
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query, totals
from onlineic.queries.tables import Tables
from onlineic.updates.median import multiset_blocks

MAX_CANDIDATES = 2**22  # whose scores are held at once
QUICK_CANDIDATES = 2**18  # the size that is taken where none is asked for stays below
MAX_WORK = 2**32  # cells^2 times candidates: what listing all databases takes, some ten seconds at the limit
MAX_WEIGHTS = 2**25  # of all queries over all cells, held as one dense matrix
BLOCK = 2**21  # query values held at a time


@final
@attrs.frozen(kw_only=True, eq=False, repr=False)
class SmallDatabase(Result):
    """A database of a few records that answers like the private one: public, a `Hypothesis`.

    Attributes:
        counts: Shape of the domain, read-only. Its records by cell.
        error_bound: How far `evaluate` may be off for any query of the class: `radius` plus
            `selection_bound`. None where the candidates are no net.
        radius: How far the best candidate may be off.
        selection_bound: How much worse than the best candidate the chosen one may be; on the grid.
        candidates: Databases it was chosen from.
    """

    domain: Domain
    counts: Ints
    radius: float | None
    selection_bound: float
    candidates: int
    _tables: Tables = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        counts = np.array(self.counts, np.int64).reshape(self.domain.shape)
        counts.flags.writeable = False
        set_fields(self, counts=counts, _tables=Tables(counts.astype(np.float64), counts.size))

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    @property
    def error_bound(self) -> float | None:
        return None if self.radius is None else self.radius + self.selection_bound

    def supports(self, query: Query) -> bool:
        return query.domain == self.domain

    def evaluate(self, query: Query) -> float:
        return query.total(self._tables, self.size) / (self.size << query.grid_bits)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        scales = np.array([float(self.size << query.grid_bits) for query in queries])
        return np.asarray(totals(queries, self._tables, self.size) / scales)

    def blocks(self, partition: Partition) -> Floats:
        """Return the fraction of records in every block, shape (blocks,)."""
        return partition.measure(self._tables.table(partition.axes)) / self.size

    def _shown(self) -> str:
        bound = "no bound" if self.error_bound is None else f"within {upward(self.error_bound)}"
        return f"{self.size} records over {self.domain.size} cells, {bound} at {self._sure}"


def small_database(
    data: PrivateData,
    queries: Iterable[Expression | Query | Floats],
    epsilon: float,
    *,
    alpha: float | None = None,
    size: int | None = None,
    candidates: int | None = None,
    seed: int = 0,
    beta: float = 0.05,
    mechanism: Literal["exponential", "noisy max"] = "exponential",
    noise: Noise | None = None,
) -> SmallDatabase:
    """Return y of m records with max_f |f(x) - f(y)| <= error_bound, with probability 1 - beta.

    (epsilon, 0)-private. All multisets of m records over the domain are scored by their worst query, and one
    is drawn, both exactly.

    Dwork & Roth (2014), Algorithm 4 and Proposition 4.4, with the nets of `multiset_radius`. The size
    ln|Q|/alpha^2 of the book is `small_database_size`.

    Args:
        data: Over few cells: |X| = 4 up to m = 291, 8 up to 25, 16 up to 10.
        queries: Iterable of expressions, queries or arrays of weights, one or more. The class Q, public.
        epsilon: In (0, 20].
        alpha: In (0, 1]. Radius of the net; settles m = `multiset_rows`.
        size: In [1, n]. m itself, in the place of alpha. With neither, m is the best for the bound among
            those of at most 2^18 candidates.
        candidates: In [1, 2^22]. Score this many databases, drawn uniformly from all multisets by the public
            `seed`: as private, but no net, so that nothing bounds how good the best of them is.
        seed: At least 0. Public, of that sample.
        beta: In (0, 1). Failure probability of the bound.
        mechanism: The book's choice, or `NoisyMax`, which loses (2/(epsilon n)) ln 2 less.

    Raises:
        InvalidQueryError: If a query cannot be bound.
        TooLargeError: If there are more than 2^22 candidates, or |X|^2 times their number exceeds 2^32.

    Examples:
        >>> from onlineic.offline import small_database, threshold_functions
        >>> domain = ic.Domain.of(grade=range(1, 6))
        >>> data = ic.PrivateData.from_counts({"grade": [1, 4, 5]}, [2_000, 5_000, 3_000], domain)
        >>> queries = threshold_functions(domain, "grade")
        >>> chosen = small_database(data, queries, epsilon=1.0, size=20, beta=1e-6)
        >>> chosen.candidates, abs(chosen.evaluate(queries[3]) - 0.7) <= chosen.error_bound
        (10626, True)
    """
    release = Release.pure(data, epsilon, noise, beta)
    domain, n, beta, budget = data.domain, data.n, release.beta, release.budget
    asked = _class(queries, domain)
    if candidates is not None:
        candidates = checked_integer("candidates", candidates, at_least=1, at_most=MAX_CANDIDATES)
    rows = _rows(
        domain.size, len(asked), n, budget.epsilon, alpha, size, beta, sampled=candidates is not None
    )
    scoring = Scoring.of(asked, n, rows, budget.neighbours)
    if candidates is None:
        number, radius = _number(domain.size, rows), multiset_radius(rows, domain.size, len(asked))
        # of the queries as they are written, not as they were rounded
        radius = (0.0 if rows == n else radius) + max(query.rounding for query in asked)
        blocks = partial(multiset_blocks, domain.size, rows, scoring.block)
    else:
        number, radius = candidates, None
        blocks = partial(_sampled_blocks, domain.size, rows, candidates, seed, scoring.block)
        next(blocks())  # a bad seed is found before anything is spent
    check_choice("mechanism", mechanism, "exponential", "noisy max")
    chooser = ExponentialMechanism if mechanism == "exponential" else NoisyMax
    engine = chooser(budget.epsilon, scoring.sensitivity)
    lost = engine.radius(number, beta) * scoring.unit

    def private() -> int:
        exact = data.exact_counts_many(asked)
        scores = [scoring.scores(exact, block) for block in blocks()]
        return engine.select(np.concatenate(scores), release.noise)

    return SmallDatabase(
        domain=domain,
        counts=_candidate(blocks(), release.read(private)),
        radius=radius,
        selection_bound=lost,
        candidates=number,
        beta=beta,
        private=release.private,
    )


def _class(queries: Iterable[Expression | Query | Floats], domain: Domain) -> list[Query]:
    """Return the queries bound to the domain; one or more, and few enough for a dense matrix."""
    asked = bind_queries(queries, domain)
    if not asked:
        raise InvalidParameterError("queries must hold one or more queries, got none; ask one.")
    if len(asked) * domain.size > MAX_WEIGHTS:
        raise TooLargeError(
            f"queries times cells must be at most 2^{math.log2(MAX_WEIGHTS):.0f}, got {len(asked):,} times "
            f"{domain.size:,}; ask fewer, or project the domain."
        )
    return asked


def asked_rows(n: int, alpha: float | None, size: int | None, rows: Callable[[float], int]) -> int | None:
    """Return m as asked for, or `rows` of a net of radius alpha; None if neither size nor radius is given."""
    if alpha is not None and size is not None:
        raise InvalidParameterError(
            f"size must be None if alpha is given, got size={size}, alpha={alpha}; give one of them."
        )
    if size is not None:
        return checked_integer("size", size, at_least=1, at_most=n)
    return None if alpha is None else min(n, rows(alpha))


def _rows(
    cells: int,
    queries: int,
    n: int,
    epsilon: float,
    alpha: float | None,
    size: int | None,
    beta: float,
    *,
    sampled: bool,
) -> int:
    """Return m: as asked for, for a radius of alpha, or the best for the bound."""
    rows = asked_rows(n, alpha, size, lambda radius: multiset_rows(radius, cells, queries))
    if rows is not None:
        return rows
    if sampled:
        return best_net(lambda rows: multiset_radius(rows, cells, queries), cells, n, epsilon, beta)[0]
    best, least = 1, math.inf
    for rows in range(1, n + 1):
        chosen = net_error(0.0, rows, cells, n, epsilon, beta)
        number = math.comb(cells + rows - 1, rows)
        if chosen >= least or number > QUICK_CANDIDATES or (rows > 1 and cells**2 * number > MAX_WORK):
            break
        error = chosen + (0.0 if rows == n else multiset_radius(rows, cells, queries))
        best, least = (rows, error) if error < least else (best, least)
    return best


def _number(cells: int, rows: int) -> int:
    """Return the number of candidates, refused beyond what is enumerated."""
    number = math.comb(cells + rows - 1, rows) if log_multisets(cells, rows) < 40 else math.inf
    if number > MAX_CANDIDATES:
        raise TooLargeError(
            f"size must give at most 2^{math.log2(MAX_CANDIDATES):.0f} candidates, got "
            f"2^{log_multisets(cells, rows) / math.log(2):.1f}, multisets of {rows} over {cells} cells; "
            "take fewer, candidates= for a public sample, or threshold_database."
        )
    if cells**2 * number > MAX_WORK:
        raise TooLargeError(
            f"cells^2 times candidates must be at most 2^{math.log2(MAX_WORK):.0f}, got "
            f"2^{math.log2(cells**2 * number):.1f}, multisets of {rows} over {cells} cells; "
            "project the domain, or take candidates= for a public sample, or threshold_database."
        )
    return int(number)


@final
@attrs.frozen(eq=False)
class Scoring:
    """-max_f |m S_f(x) - n S_f(y)| in units of 1/(n m 2^k): exact integers for every candidate y.

    Replacing a record of x moves a score by at most m times the largest width of a query: 1/n in fractions.

    Attributes:
        weights: Shape (queries, cells). Integers in [0, 2^k], every query on the finest grid of all.
        n, rows: Records of x, which are public, and of y.
    """

    weights: Floats
    shifts: tuple[int, ...]
    widths: tuple[int, ...]
    n: int
    rows: int
    bits: int

    @classmethod
    def of(
        cls, queries: Sequence[Query], n: int, rows: int, neighbours: Neighbours = REPLACE_ONE
    ) -> "Scoring":
        """Return the scoring of a class of queries on one grid; refused where integers would not be exact."""
        bits = max(query.grid_bits for query in queries)
        if n << bits > 2**53:
            raise TooLargeError(
                f"n 2^grid_bits must be at most 2^53, got 2^{math.log2(n) + bits:.1f}; take coarser weights."
            )
        if n * rows << bits >= 2**60:
            raise TooLargeError(
                f"n m 2^grid_bits must be below 2^60, got 2^{math.log2(n * rows) + bits:.1f}; take fewer "
                "records or coarser weights."
            )
        shifts = tuple(bits - query.grid_bits for query in queries)
        widths = tuple(
            neighbours.test(query.lowest << shift, query.highest << shift)
            for query, shift in zip(queries, shifts, strict=True)
        )
        rows_of = [query.weights().ravel() << shift for query, shift in zip(queries, shifts, strict=True)]
        return cls(np.array(rows_of, np.float64), shifts, widths, n, rows, bits)

    @property
    def sensitivity(self) -> int:
        """Of every score; 1 if all queries are constant."""
        return self.rows * max(1, *self.widths)

    @property
    def unit(self) -> float:
        """What one score unit is, fraction of records."""
        return 1.0 / (self.n * self.rows << self.bits)

    @property
    def block(self) -> int:
        """Candidates scored at a time."""
        return max(1, BLOCK // len(self.weights))

    def scores(self, exact: Ints, candidates: Ints) -> Ints:
        """Return the scores of (cells, K) candidates against the exact counts of the queries. PRIVATE."""
        held = exact << np.array(self.shifts, np.int64)
        values = (self.weights @ candidates.astype(np.float64)).astype(np.int64)  # exact: integers < 2^53
        return np.asarray(-np.abs(self.rows * held[:, None] - self.n * values).max(axis=0))


def _sampled_blocks(cells: int, rows: int, candidates: int, seed: int, most: int) -> Iterator[Ints]:
    """Yield uniform multisets: multinomials whose probabilities are uniform on the simplex."""
    generator, most = public_generator(seed), max(1, min(most, BLOCK // cells))
    for start in range(0, candidates, most):
        shares = generator.dirichlet(np.ones(cells), min(most, candidates - start))
        yield generator.multinomial(rows, shares).T


def _candidate(blocks: Iterator[Ints], index: int) -> Ints:
    """Return one column of all blocks."""
    for block in blocks:
        if index < block.shape[1]:
            return np.asarray(block[:, index])
        index -= block.shape[1]
    raise InternalError("the chosen candidate must be one of those scored.")
