"""The median mechanism: all small databases vote, and each hard query sends at least half of them away.

The small databases are the multisets of m records over |X| cells, listed in order and by blocks.

Proof: docs/theory/updates.md, 7.4.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.bounds.updates import log_multisets
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    TooLargeError,
    check_choice,
    checked_integer,
    checked_real,
    set_fields,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.version_space import VersionSpace
from onlineic.queries.partitions import Measurement
from onlineic.slips import public
from onlineic.updates.base import UpdateRule

MAX_ROWS = 2**24
MAX_BYTES = 2**29


@public
@final
@attrs.frozen
class Median(UpdateRule[VersionSpace]):
    """f(N) = median of f over a set N of databases; each hard query keeps those strictly on its side.

    N starts as an alpha-net: all multisets of m records over the domain. It can be enumerated for
    |X| <= about 8 (16 at coarse alpha); beyond, the rule refuses and names the size it would need.

    Dwork & Roth (2014), Algorithm 10 and Theorem 5.8, with a strict gap (the printed ">= alpha" can empty
    N: an update that would is skipped), and Remark 5.2 counted as multisets.

    Args:
        variant: sampling: m = floor(ln(2Q) / (2 alpha^2)) + 1 (Hoeffding, for Q queries), or n if fewer.
            dimension: m = ceil(|X| / (4 alpha)), for all [0, 1] queries at once. book: m = ln Q / alpha^2.
            smaller: the smaller of sampling and dimension.
        size: m itself. The session fixes it from its alpha where absent; T(alpha) is then log2 of the number
            of multisets of this size for every alpha that the net covers, and None below.
        max_queries: Q of the sampling and book nets, for `update_bound` outside a session (which fixes its
            own).
        n: Number of records, public; caps the sampling net.
    """

    variant: Literal["smaller", "sampling", "dimension", "book"] = "smaller"
    size: int | None = None
    max_queries: int | None = None
    n: int | None = None

    def __attrs_post_init__(self) -> None:
        check_choice("variant", self.variant, "smaller", "sampling", "dimension", "book")
        for name in ("size", "max_queries", "n"):
            if getattr(self, name) is not None:
                set_fields(self, **{name: checked_integer(name, getattr(self, name), at_least=1)})

    def for_stream(self, max_queries: int, n: int) -> "Median":
        """Return the rule for a stream of this length and n; its own would make T(alpha) false here."""
        return attrs.evolve(self, max_queries=max_queries, n=n)

    def at(self, domain: Domain, alpha: float) -> "Median":
        """Return the rule with its net fixed for this accuracy, refused where it cannot be enumerated."""
        fixed = self if self.size is not None else attrs.evolve(self, size=self._net_size(domain, alpha))
        fixed._check(domain)
        return fixed

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> VersionSpace:
        if prior is not None:
            raise InvalidParameterError(
                "prior must be None for Median: it starts from all databases of its net."
            )
        size = self._check(domain)
        return VersionSpace(domain, multisets(domain.size, size), size)

    def update(
        self, hypothesis: VersionSpace, measurements: tuple[Measurement, ...], alpha: float
    ) -> VersionSpace:
        query, value, guess = measurements[-1].against(hypothesis)
        return hypothesis.halved(query, above=value >= guess)

    def most_passes(self, releases: int) -> int:
        return 1

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        bound = self.exact_update_bound(domain, alpha)
        return None if bound is None else math.floor(bound + 1e-9)  # keeps exact powers of two

    def exact_update_bound(self, domain: Domain, alpha: float) -> float | None:
        """Return T(alpha) = log2 of the size of the net; None where a given `size` is no alpha-net."""
        size = self.size if self.size is not None else self._net_size(domain, alpha)
        return log_multisets(domain.size, size) / math.log(2.0) if self._covers(domain, alpha, size) else None

    def _covers(self, domain: Domain, alpha: float, size: int) -> bool:
        """Whether some database of `size` records is within alpha of the truth on every query."""
        if size >= _dimension_size(domain, alpha) or (self.n is not None and size % self.n == 0):
            return True
        if self.max_queries is None:
            return False
        if self.variant == "book" and size >= _book_size(self.max_queries, alpha):
            return True
        return size >= _sampling_size(self.max_queries, alpha)

    def _net_size(self, domain: Domain, alpha: float) -> int:
        dimension = _dimension_size(domain, alpha)
        if self.variant == "dimension" or (self.variant == "smaller" and self.max_queries is None):
            return dimension
        if self.max_queries is None:
            raise InvalidParameterError(
                f"max_queries must be given for the {self.variant} net, got None; "
                "write Median(max_queries=...)."
            )
        if self.variant == "book":
            return _book_size(self.max_queries, alpha)
        sampling = _sampling_size(self.max_queries, alpha)
        sampling = min(sampling, self.n or sampling)  # all databases of n records hold the truth itself
        return sampling if self.variant == "sampling" else min(sampling, dimension)

    def _check(self, domain: Domain) -> int:
        if self.size is None:
            raise InvalidParameterError(
                "size must be given to Median outside a session; or use Median.at(...)."
            )
        rows_log2 = log_multisets(domain.size, self.size) / math.log(2.0)
        entry = 1 if self.size < 256 else 2
        if rows_log2 > math.log2(MAX_ROWS) or 2.0**rows_log2 * domain.size * entry > MAX_BYTES:
            raise TooLargeError(
                f"Median must enumerate at most 2^{math.log2(MAX_ROWS):.0f} databases, got 2^{rows_log2:.1f} "
                f"(all multisets of {self.size} records over {domain.size} cells); take a larger alpha, "
                "fewer cells, or MultiplicativeWeights."
            )
        return self.size


def _dimension_size(domain: Domain, alpha: float) -> int:
    return math.ceil(domain.size / (4.0 * _alpha(alpha)))


def _sampling_size(max_queries: int, alpha: float) -> int:
    return math.floor(math.log(2.0 * max_queries) / (2.0 * _alpha(alpha) ** 2)) + 1


def _book_size(max_queries: int, alpha: float) -> int:
    """Return ln Q / alpha^2; one query needs the net of two (ln 1 = 0 records are no net)."""
    return math.ceil(math.log(max(2, max_queries)) / _alpha(alpha) ** 2)


def _alpha(alpha: float) -> float:
    return checked_real("alpha", alpha, above=0.0)


def multisets(cells: int, size: int) -> Ints:
    """Return all multisets of `size` records over the cells as counts, (cells, K), smallest dtype.

    Column j is the j-th in lexicographic order: the first is all in the last cell, the last all in the first.
    """
    kind = np.min_scalar_type(size)
    if 0 < size < cells:  # few records: they are placed one by one, where many are shared out cell by cell
        places = itertools.combinations_with_replacement(range(cells), size)
        chosen = np.fromiter(itertools.chain.from_iterable(places), np.int64).reshape(-1, size)[::-1]
        counts = np.zeros((cells, len(chosen)), kind)
        for record in chosen.T:
            counts[record, np.arange(len(chosen))] += 1
        return counts
    left = np.array([size], kind)
    columns: list[Ints] = []
    for _ in range(cells - 1):
        choices = left.astype(np.int64) + 1  # this cell takes 0, ..., left
        starts = np.cumsum(choices) - choices
        taken = np.arange(choices.sum()) - np.repeat(starts, choices)
        columns = [np.repeat(column, choices) for column in columns]
        columns.append(taken.astype(kind))
        left = np.repeat(left, choices) - columns[-1]
    return np.stack([*columns, left])


def multiset_blocks(cells: int, size: int, most: int) -> Iterator[Ints]:
    """Yield the columns of `multisets` in order, at most `most` at a time, as (cells, <= most) int64."""
    if cells == 1 or size == 0 or math.comb(cells + size - 1, size) <= most:
        yield multisets(cells, size).astype(np.int64)
        return
    for first in range(size + 1):
        for rest in multiset_blocks(cells - 1, size - first, most):
            yield np.concatenate([np.full((1, rest.shape[1]), first, np.int64), rest])
