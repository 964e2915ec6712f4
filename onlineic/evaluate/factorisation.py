"""How accurate a mechanism can be that knows a whole stream in advance and does not look at the data to plan.

Everything here follows from the domain, n, the budget and the queries alone: nothing private is read.
"""

import math
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
import scipy.linalg

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.composition import gaussian_mu
from onlineic.ask.bind import bind_queries
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import (
    InvalidParameterError,
    TooLargeError,
    check_kind,
    checked_integer,
)
from onlineic.noise.sources import public_generator
from onlineic.queries.query import Query, session_grid_bits

MOST_QUERIES = 12_000  # distinct: their Gram matrix has a gigabyte
MOST_WEIGHTS = 2**27  # of queries that are no products: a gigabyte
ALL_PAIRS = 5_000  # cells among which every pair is compared
SAMPLED, CLIMBED = 2_000, 8  # cells and pairs with which the search over more cells begins
FITTED_TO, ROUNDS = 600, 12  # distinct queries, and steps, by which cells are weighted
FLOOR = 1e-5  # of the largest singular value: below, a direction is measured as if it were there


@final
@attrs.frozen
class FactorisationBound:
    """What Gaussian mechanisms that answer W x by R (A x + noise) can reach on one stream.

    Attributes:
        least: No such mechanism has a smaller root-mean-square error over the stream, fraction of records.
        reached: What the strategy of the singular value decomposition has: an error that can be reached, if
            `every_pair`; else the largest distance of two cells was searched for, and may be larger.
        queries, distinct: Of the stream, and of them those that are no constants, repeats or complements of
            another.
    """

    least: float
    reached: float
    every_pair: bool
    queries: int
    distinct: int


def factorisation_bound(
    domain: Domain, n: int, budget: Budget, stream: Sequence[Any], seed: int = 0
) -> FactorisationBound:
    """Return the least error of matrix mechanisms that know the stream, and what the SVD strategy has.

    A matrix (or factorisation) mechanism fixes A and R with R A = W before it sees the data, releases A x
    with Gaussian noise, and answers a stream W by R times that; x are the counts of the cells, n is public.
    It is unbiased, and its error does not depend on the data. An engine that looks at the data may err less.

    Replacing a record of cell a by one of cell b moves A x by A(e_a - e_b), so noise of deviation s has
    mu = max |A(e_a - e_b)| / s, and the mean squared error is s^2 |R|_F^2 / (k n^2). For independent a, b of
    any law p, given that they differ, the maximum is at least 2 |A C^(1/2)|_F^2 / (1 - sum p^2) with
    C = diag p - p p^T; and |R|_F |A C^(1/2)|_F >= |W C^(1/2)|_*, the sum of the singular values, whatever
    constants R adds, since C 1 = 0. So the error is at least

        sqrt(2 / (1 - sum p^2)) |W C^(1/2)|_* / (sqrt(k) mu n)

    for every p; and no answer errs by less than its own sensitivity over mu n, since |R_i| max |A(e_a - e_b)|
    is at least that. Here p is a product of weights of every attribute's codes, moved towards cells that the
    strategy finds far off. With W C^(1/2) = U S V^T the strategy A = S^(-1/2) U^T W meets the
    second inequality.

    Li & Miklau (2013), "Optimal error of query sets under the differentially-private matrix mechanism";
    Edmonds, Nikolov & Ullman (2020), "The power of factorization mechanisms", for weights of the cells.

    Args:
        budget: With delta > 0.
        stream: Sequence of queries. At most 12,000 distinct ones where there are more cells; those that are
            no products of conditions on single attributes need few cells.
        seed: Public: of the sample of queries by which cells are weighted, and of the cells where a search
            begins.

    Raises:
        InvalidParameterError: Also for delta = 0 and for a stream of constants.
        TooLargeError: For more queries, or more weights, than a gigabyte holds.
    """
    check_domain(domain)
    check_kind("budget", budget, Budget)
    n = checked_integer("n", n, at_least=1)
    if budget.pure:
        raise InvalidParameterError(
            "budget must have delta > 0 for Gaussian noise, got delta=0; give it one."
        )
    asked = bind_queries(stream, domain, session_grid_bits(n))
    counted: dict[tuple[Any, ...], int] = {}
    first: dict[tuple[Any, ...], Query] = {}
    for query in asked:
        if query.constant is None:
            first.setdefault(query.key, query)
            counted[query.key] = counted.get(query.key, 0) + 1
    if not first:
        raise InvalidParameterError("stream must hold a query that is no constant, got none; write some.")
    parts = _weights(domain, list(first.values()))
    times = np.array([counted[key] for key in first], np.float64)

    generator = public_generator(seed)
    law = _weighted(parts, times, generator)
    strategy = _Strategy.of(parts, np.sqrt(times), law)
    unit = 1.0 / (math.sqrt(len(asked)) * gaussian_mu(budget.epsilon, budget.delta) * n)
    distance, every_pair = _diameter(strategy, generator)
    alone = math.sqrt(sum(counted[key] * _sensitivity(query) ** 2 for key, query in first.items()))
    return FactorisationBound(
        least=unit * max(alone, math.sqrt(2.0 / _differ(law)) * float(strategy.singular.sum())),
        reached=unit * math.sqrt(distance * float(strategy.floored.sum())),
        every_pair=every_pair,
        queries=len(asked),
        distinct=len(first),
    )


def _sensitivity(query: Query) -> float:
    return query.sensitivity / (1 << query.grid_bits)


def _weights(domain: Domain, queries: Sequence[Query]) -> list[Floats]:
    """Return (queries, codes) for every axis, whose products are the weights; or one of all cells.

    A complement is as hard as its query, and is left out of account.
    """
    if min(len(queries), domain.size) > MOST_QUERIES:
        raise TooLargeError(
            f"stream must have at most {MOST_QUERIES:,} distinct queries, got {len(queries):,}; take a part."
        )
    products = len(queries) <= domain.size and all(
        len(one.axes) == 1 for query in queries for one in query.factors
    )
    parts = [np.ones((len(queries), size)) for size in (domain.shape if products else [domain.size])]
    if not products and len(queries) * domain.size > MOST_WEIGHTS:
        raise TooLargeError(
            f"stream must have at most {MOST_WEIGHTS:,} weights in all where queries are no products, "
            f"got {len(queries) * domain.size:,}; take a part of it."
        )
    for place, query in enumerate(queries):
        if products:
            for factor in query.factors:
                parts[factor.axes[0]][place] = factor.weights(domain) / (1 << factor.bits)
        else:
            parts[0][place] = query.weights().ravel() / (1 << query.grid_bits)
    return parts


@final
@attrs.frozen(eq=False)
class _Strategy:
    """The strategy of the singular value decomposition, from the smaller Gram matrix of the weighted stream.

    Attributes:
        parts: Each of shape (rows, codes). Of every axis; their products are the columns of cells: weights of
            the queries, or of single cells.
        law: Each of shape (codes,). Weights of every axis, each sums to one.
        singular, floored: Shape (rank,). Singular values of W C^(1/2), those below what floats resolve as 0,
            and at the least the floor.
        inverse: Shape (rows, rows). A^T A, as a form of columns.
    """

    parts: list[Floats]
    law: list[Floats]
    singular: Floats
    floored: Floats
    inverse: Floats

    @classmethod
    def of(cls, parts: list[Floats], scale: Floats, law: list[Floats]) -> "_Strategy":
        """Decompose a stream; `scale` is the root of how often each query is asked."""
        if len(parts) == 1 and parts[0].shape[1] < parts[0].shape[0]:
            return cls._of_cells(parts[0], scale, law)
        gram = _product([(part * weights) @ part.T for part, weights in zip(parts, law, strict=True)])
        mean = _product([part @ weights for part, weights in zip(parts, law, strict=True)])
        gram -= np.outer(mean, mean)
        gram *= scale[:, None]
        gram *= scale
        singular, floored, vectors = _decomposed(gram)
        half = vectors * floored**-0.5
        half *= scale[:, None]
        return cls(parts, law, singular, floored, half @ half.T)

    @classmethod
    def _of_cells(cls, weights: Floats, scale: Floats, law: list[Floats]) -> "_Strategy":
        roots = np.sqrt(np.maximum(law[0], 1e-300))
        centred = (weights - (weights @ law[0])[:, None]) * scale[:, None] * roots
        singular, floored, vectors = _decomposed(centred.T @ centred)
        half = (vectors * (singular / np.sqrt(floored))) / roots[:, None]  # A C^(1/2) = S V^T / floored^(1/2)
        return cls([np.eye(len(roots))], law, singular, floored, half @ half.T)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(part.shape[1] for part in self.parts)

    def columns(self, codes: Ints) -> Floats:
        """Return the columns of some cells, (rows, cells), by their codes (axes, cells)."""
        return _product([part[:, held] for part, held in zip(self.parts, codes, strict=True)])

    def squares(self) -> Floats:
        """Return |A(e_a - e_b)|^2 of all cells, (cells, cells)."""
        return self.between(self.columns(np.indices(self.shape).reshape(len(self.parts), -1)))

    def between(self, columns: Floats) -> Floats:
        """Return |A(e_a - e_b)|^2 of all pairs of some columns, (cells, cells)."""
        inner = columns.T @ (self.inverse @ columns)
        norms: Floats = np.diag(inner)
        return np.asarray(norms[:, None] + norms - 2.0 * inner)

    def far(self, codes: Ints, others: Ints) -> Floats:
        """Return |A(e_a - e_b)|^2 of pairs of cells, each (axes, pairs)."""
        moved = self.columns(codes) - self.columns(others)
        squares: Floats = np.einsum("ij,ij->j", moved, self.inverse @ moved)
        return squares

    def spread(self) -> list[Floats]:
        """Return, of every axis, the mean |A(e_a - mean)|^2 given a's code on it."""
        inverse = self.inverse
        grams = [(part * weights) @ part.T for part, weights in zip(self.parts, self.law, strict=True)]
        means = [part @ weights for part, weights in zip(self.parts, self.law, strict=True)]
        mean = _product(means)
        drawn = inverse @ mean
        found = []
        for axis, part in enumerate(self.parts):
            rest = [gram for other, gram in enumerate(grams) if other != axis]
            held = inverse * _product(rest) if rest else inverse
            left = [one for other, one in enumerate(means) if other != axis]
            turned = drawn * _product(left) if left else drawn
            found.append(
                np.einsum("iv,iv->v", part, held @ part) - 2.0 * (part.T @ turned) + float(mean @ drawn)
            )
        return [np.maximum(one, 0.0) for one in found]


def _product(arrays: Sequence[Floats]) -> Floats:
    result = arrays[0].copy()
    for array in arrays[1:]:
        result *= array
    return result


def _decomposed(gram: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (singular values, the same at the least the floor, eigenvectors) of a Gram matrix."""
    size = len(gram)
    values, vectors = scipy.linalg.eigh(gram, overwrite_a=True, check_finite=False)
    resolved = values > 8.0 * size * np.finfo(np.float64).eps * values[-1]
    singular = np.sqrt(np.where(resolved, values, 0.0))  # what is left out makes the bound smaller, and true
    return singular, np.maximum(singular, FLOOR * singular[-1]), vectors


def _weighted(parts: list[Floats], times: Floats, generator: Any) -> list[Floats]:
    """Return weights of the codes of every axis that make the bound larger.

    Of more queries than a few hundred they are moved on one sample and chosen by another, since weights that
    suit a sample too well are worse than equal ones.
    """
    law = [np.full(part.shape[1], 1.0 / part.shape[1]) for part in parts]
    moving = judging = np.arange(len(times))
    if len(times) > FITTED_TO:
        moving, judging = (
            generator.choice(len(times), FITTED_TO, replace=False, p=times / times.sum()) for _ in range(2)
        )
        times = np.ones(len(times))
    best, least = law, 0.0
    for _ in range(ROUNDS):
        judged = _Strategy.of([part[judging] for part in parts], np.sqrt(times[judging]), law)
        strategy = judged
        if moving is not judging:
            strategy = _Strategy.of([part[moving] for part in parts], np.sqrt(times[moving]), law)
        differ = _differ(law)
        bound = float(judged.singular.sum()) / math.sqrt(differ) if differ > 0.0 else 0.0
        if bound > least:
            best, least = law, bound
        moved = [weights * np.sqrt(spread) for weights, spread in zip(law, strategy.spread(), strict=True)]
        law = [part / part.sum() for part in moved]
    return best


def _differ(law: list[Floats]) -> float:
    """Return the probability that two cells of this law differ."""
    return 1.0 - math.prod(float(np.square(part).sum()) for part in law)


def _diameter(strategy: _Strategy, generator: Any) -> tuple[float, bool]:
    """Return the largest |A(e_a - e_b)|^2, and whether all pairs were compared or it was searched for."""
    shape = strategy.shape
    if math.prod(shape) <= ALL_PAIRS:
        return float(strategy.squares().max()), True
    codes = np.stack([generator.integers(size, size=SAMPLED) for size in shape])
    squares = strategy.between(strategy.columns(codes))
    best = 0.0
    for place in np.argsort(-squares.max(axis=1))[:CLIMBED].tolist():
        pair = np.stack([codes[:, place], codes[:, int(squares[place].argmax())]])
        best = max(best, _climbed(strategy, pair, float(squares[place].max())))
    return best, False


def _climbed(strategy: _Strategy, pair: Ints, value: float) -> float:
    """Return the largest distance that is reached by moving one code of one of two cells at a time."""
    while True:
        before = value
        for side in (0, 1):
            for axis, size in enumerate(strategy.shape):
                tried = np.repeat(pair[side][:, None], size, axis=1)
                tried[axis] = np.arange(size)
                fixed = np.repeat(pair[1 - side][:, None], size, axis=1)
                found = strategy.far(tried, fixed)
                if found.max() > value * (1.0 + 1e-9):
                    value, pair[side, axis] = float(found.max()), int(found.argmax())
        if value == before:
            return value
