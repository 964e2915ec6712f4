"""Which of many range queries are large, by sparse vector, and a number for those that are.

Proof: docs/theory/offline.md, 12.6.
"""

from collections.abc import Iterable
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.accounting.rounding import float_down
from onlineic.ask.bind import bind_queries
from onlineic.data.private import PrivateData
from onlineic.errors import InvalidParameterError, check_choice
from onlineic.mechanisms.additive import LaplaceMechanism
from onlineic.noise.sources import Noise
from onlineic.offline.release import Release, Result
from onlineic.queries.expressions import Expression
from onlineic.queries.query import Query
from onlineic.sparse.above_threshold import Sparse


@final
@attrs.frozen(kw_only=True, repr=False)
class LargeCounts(Result):
    """The counts that a run found large.

    Attributes:
        counts: One entry a query: the noisy count of a hit, else None.
        hits: Places of the queries that have a number.
        tested: Queries that were tested: all, or up to the last hit where the cutoff was used up.
        radius: Every number errs by at most this, with probability 1 - beta/2.
        margin: With probability 1 - beta/2 no hit has an exact count below threshold - margin, and no query
            that was tested and has no number one above threshold + margin.
    """

    counts: tuple[int | None, ...]
    hits: tuple[int, ...]
    tested: int
    radius: int
    margin: int
    threshold: int

    def _shown(self) -> str:
        return (
            f"{len(self.hits)} of {len(self.counts)} queries reach about {self.threshold}, "
            f"{self.tested} tested, counts ± {self.radius} at {self._sure}"
        )


def range_queries(
    data: PrivateData,
    queries: Iterable[Expression | Query | Floats],
    epsilon: float,
    *,
    threshold: int,
    cutoff: int,
    allocation: Literal["optimal", "restarts"] = "optimal",
    divide: Literal["hits", "cutoff"] = "hits",
    beta: float = 0.05,
    noise: Noise | None = None,
) -> LargeCounts:
    """Return the counts of the first queries whose noisy count reaches a threshold: (epsilon, 0)-private.

    epsilon/2 for `Sparse`, which says which queries hit; epsilon/2 for fresh discrete Laplace noise of scale
    2h/epsilon on the counts of the h hits (theory 12.6). Worth it where a few queries among very many are
    large and all others may stay unknown; else a session costs the same and answers everything.

    Dwork & Roth (2014), Algorithm 3 with equal shares; Theorems 3.25, 3.6 and 3.14.

    Args:
        queries: Iterable of expressions, Query or arrays of weights. One or more 0/1 conditions, in the order
            of testing; fixed beforehand.
        epsilon: In (0, 20]. Of everything together.
        threshold: In [-2^60, 2^60]. Records; public.
        cutoff: At least 1. c: after so many hits the run ends.
        allocation: Noise of the tests, see `Sparse`; "restarts" is the textbook's.
        divide: "cutoff" is the textbook's scale 2c/epsilon of the numbers.
        beta: In [1e-200, 1).

    Raises:
        InvalidQueryError: If a query has fractional weights, does not fit the domain, or there is none.

    Examples:
        >>> from onlineic.offline import range_queries
        >>> domain, ages = ic.Domain.of(age=range(17, 91)), 17 + np.arange(50_000) % 60
        >>> data = ic.PrivateData.from_records({"age": ages}, domain)
        >>> asked = [ic.where(age=ic.between(low, low + 9)) for low in range(17, 81)]  # first 8,333 records
        >>> found = range_queries(data, asked, epsilon=1.0, threshold=5_000, cutoff=3)
        >>> found.hits, found.tested, found.counts[3], abs(found.counts[0] - 8_340) < 100
        ((0, 1, 2), 3, None, True)
    """
    release = Release.pure(data, epsilon, noise, beta, least=1e-200)  # divided by the queries
    source, beta = release.noise, release.beta
    check_choice("divide", divide, "hits", "cutoff")
    asked = bind_queries(queries, data.domain, 0)  # no grid: fractional weights are refused
    if not asked:
        raise InvalidParameterError("queries must hold one or more queries, got none; ask one.")
    share = float_down(release.budget.epsilon_exact / 2)
    tests = Sparse(share, threshold, cutoff, allocation=allocation)
    margin = tests.radius(len(asked), beta / 2)
    LaplaceMechanism(share, tests.cutoff)  # too wide a noise is refused here, not after the read

    def private() -> tuple[tuple[int, ...], list[int]]:
        exact = data.exact_counts_many(asked)
        hits = tests.select(exact, source)
        return hits, _numbers(hits).release(exact[np.array(hits)], source).tolist() if hits else []

    def _numbers(hits: tuple[int, ...]) -> LaplaceMechanism:
        return LaplaceMechanism(share, len(hits) if divide == "hits" else tests.cutoff)

    hits, numbers = release.read(private)
    found = dict(zip(hits, numbers, strict=True))
    return LargeCounts(
        counts=tuple(map(found.get, range(len(asked)))),
        hits=hits,
        tested=hits[-1] + 1 if len(hits) == tests.cutoff else len(asked),
        radius=_numbers(hits).radius(beta / 2, len(hits)) if hits else 0,
        margin=margin,
        threshold=tests.threshold,
        beta=beta,
        private=release.private,
    )
