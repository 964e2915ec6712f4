"""NumericSparse over statistics of a table: which reach a threshold, and a private value of those that do.

Proof: docs/theory/offline.md, 12.11.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal, final

import attrs

from onlineic.accounting.budget import Budget
from onlineic.data.private import PrivateData
from onlineic.display.text import around
from onlineic.errors import DomainMismatchError, InvalidParameterError, checked_list, shown
from onlineic.noise.sources import Noise
from onlineic.offline.compared import Compared, noisy_values, number
from onlineic.offline.release import Release
from onlineic.offline.statistics import Statistic, exact, fraction
from onlineic.queries.expressions import Expression
from onlineic.sparse.values import ValueSparse

LEAST_BETA = 1e-9  # tests times its inverse must stay what every mechanism can tell


@final
@attrs.frozen(kw_only=True, repr=False)
class ValuesAbove(Compared):
    """Which statistics were found to reach their threshold, and how large they are.

    Attributes:
        values: Of the hits, with noise, in the units of each statistic.
        value_bounds: For each statistic: within the same event its value, if released, is off by at most
            this.
        claimed: Statistics whose sensitivity is THE CALLER'S CLAIM: the budget covers them only if it is
            true.
    """

    values: tuple[float, ...]
    value_bounds: tuple[float, ...]
    claimed: tuple[int, ...]

    def _shown(self) -> str:
        told = ", ".join(
            f"{place}: {around(value, self.value_bounds[place])}"
            for place, value in zip(self.above, self.values, strict=True)
        )
        claim = f", sensitivity CLAIMED of {len(self.claimed)}" if self.claimed else ""
        return f"{{{told}}}, {self._compared}{claim}"


def numeric_sparse(
    data: PrivateData,
    statistics: Sequence[Statistic | Expression | str | dict[str, Any]],
    threshold: float | Rational | Sequence[float | Rational],
    budget: Budget,
    *,
    cutoff: int = 1,
    mechanism: Literal["laplace", "gumbel", "exponential"] | None = None,
    beta: float = 0.05,
    noise: Noise | None = None,
) -> ValuesAbove:
    """Return the first statistics that reach their threshold, at most `cutoff`, and their noisy values.

    (epsilon, delta)-private, however many statistics are compared, provided that claimed sensitivities are
    true. Noise is in multiples of each statistic's own sensitivity.

    Dwork & Roth (2014), Algorithm 3, through `sparse.ValueSparse`.

    Args:
        statistics: Compared in this order. A condition, `where(..)`, a text in SQL or a mapping as of JSON,
            is the `fraction` of the records that meet it.
        threshold: Number, or one for each statistic. In their units, public.
        budget: For tests and values together, charged before anything is read.
        cutoff: At least 1. c; values cost more than indices, and the noise grows with it.
        mechanism: Algorithm 3 of the book, or its forms with Gumbel (delta > 0) or one-sided geometric noise.
            By default the one of the last two that resolves smaller gaps.
        beta: In [1e-9, 1). Failure probability of the bounds; privacy does not depend on it.

    Raises:
        DomainMismatchError: If a statistic was made for another domain or number of records.
        SessionSealedError: If a statistic failed, or gave no finite number: what it said stays inside, and
            its budget is spent.

    Examples:
        How many records spoil "the postcode settles the region"? Sensitivity 1, and no linear query:

        >>> from onlineic.offline import distinct_count, exceptions, numeric_sparse
        >>> domain = ic.Domain.of(postcode=100, region=10)
        >>> codes = np.arange(20_000) % 100
        >>> regions = np.where(np.arange(20_000) < 19_000, codes // 10, (codes // 10 + 1) % 10)
        >>> data = ic.PrivateData.from_records({"postcode": codes, "region": regions}, domain)
        >>> asked = [distinct_count(domain, "region"), exceptions(domain, ["postcode"], "region")]
        >>> found = numeric_sparse(data, asked, threshold=500, budget=ic.Budget(1.0), beta=1e-9)
        >>> found.above, abs(found.values[0] - 1000) < found.value_bounds[1] < 100
        ((1,), True)
    """
    release = Release.of(data, budget, noise, beta, LEAST_BETA)
    listed = checked_list("statistics", statistics, remedy="write where(..) or a Statistic in brackets")
    if not listed or not all(isinstance(one, Statistic | Expression | str | dict) for one in listed):
        raise InvalidParameterError(
            "statistics must be a list of one or more Statistic or condition, got another; write where(...), "
            "column_mean(...), distinct_count(...), exceptions(...), fraction(...) or statistic(...)."
        )
    asked = [one if isinstance(one, Statistic) else fraction(data, one) for one in listed]
    for one in asked:
        if one.target.domain != data.domain or one.n not in (None, data.n):
            raise DomainMismatchError(
                f"statistics must be made for the domain and n of the data, got {shown(one)}."
            )
    levels = _levels(threshold, len(asked))
    sparse = ValueSparse.calibrated(budget, cutoff=cutoff, max_values=len(asked), mechanism=mechanism)

    def scores() -> Iterator[int]:
        for one, level in zip(asked, levels, strict=True):
            counts = data.exact_counts(one.target)
            yield sparse.score(exact(one.compute(counts)), level, one.sensitivity)

    found = noisy_values(release, sparse, levels, [one.sensitivity for one in asked], scores)
    return ValuesAbove(
        above=found.above,
        tested=found.tested,
        radii=found.radii,
        values=found.values,
        value_bounds=found.bounds,
        claimed=tuple(place for place, one in enumerate(asked) if one.claimed),
        beta=release.beta,
        private=release.private,
    )


def _levels(threshold: object, count: int) -> list[Fraction]:
    """One exact threshold for each statistic."""
    if isinstance(threshold, Sequence) and not isinstance(threshold, str):
        levels = [number("threshold", one) for one in threshold]
    else:
        levels = [number("threshold", threshold)] * count
    if len(levels) != count:
        raise InvalidParameterError(
            f"threshold must be one number, or one for each of {count} statistics, got {len(levels)}."
        )
    return levels
