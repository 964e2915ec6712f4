"""One value of one attribute, chosen privately: a quantile, the median, the most frequent value.

A replaced record moves each count by at most one, and so each score by at most one; so does one that comes
or goes, where n is private. The choice costs epsilon whatever the number of candidates. Records without a
value (the missing cell) are left out.

Proof: docs/theory/offline.md, 12.2.
"""

from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import Literal, final

import attrs

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.neighbours import ADD_REMOVE
from onlineic.data.private import PrivateData
from onlineic.data.release import (
    check_types,
    checked_noise,
    is_private,
    most_of,
    records_of,
    released,
    stamp,
)
from onlineic.display.text import probability, upward
from onlineic.domain.attributes import Categorical, Label
from onlineic.errors import InvalidQueryError, check_choice, checked_real
from onlineic.mechanisms.quantiles import exact_share, quantile_scores, whole_share
from onlineic.mechanisms.selection import ExponentialMechanism, NoisyMax
from onlineic.noise.sources import Noise
from onlineic.queries.counted import Counted
from onlineic.queries.partitions import one_way

Engine = Literal["noisy max", "exponential"]
FINE = 16  # bits below a count: candidates of one score are then equally likely, and less is lost


@final
@attrs.frozen(repr=False)
class Choice:
    """A value chosen among those of an attribute.

    Attributes:
        value: As in the domain: an integer, a label, or a bin as text.
        code: Of the value: its place in the attribute.
        error_bound: By how much the choice may miss, fraction of all n records, with probability 1 - beta: in
            rank for a quantile, in frequency for `most_popular`.
        private: False: simulated noise was used, the choice is NOT PRIVATE.
    """

    attribute: str
    value: Label
    code: int
    error_bound: float
    beta: float
    private: bool

    def __repr__(self) -> str:
        bound = f"within {upward(self.error_bound)} of the records at {probability(1 - self.beta)}"
        return f"Choice({self.attribute} = {self.value!r}, {bound}{stamp(self.private)})"


def quantile(
    data: PrivateData,
    attribute: str,
    q: float | Rational,
    epsilon: float,
    *,
    beta: float = 0.05,
    mechanism: Engine = "noisy max",
    counted: Counted | None = None,
    noise: Noise | None = None,
) -> Choice:
    """Return y with #{< y} <= floor(q n) + r and #{> y} <= floor((1 - q) n) + r: (epsilon, 0)-private.

    With probability 1 - beta, r = n error_bound, about (2/epsilon) ln((m - 1)/(2 beta)) records over m
    candidate values, whatever n is. All values of the attribute are candidates, whether they occur or not: a
    long gap around the quantile holds many that are as good. With a missing cell n is the number of records
    that have a value, which is not released; the bound stays a number of records over all n.

    Scores: `quantile_scores`, of sensitivity 1. Dwork & Roth (2014), Theorem 3.10, or `NoisyMax`.

    Args:
        attribute: Ordered: a range of integers or bins. A continuous column is cut into bins, or rounded to a
            grid, one record at a time (`domain.Grid`); the cell is then the answer. On grids that are too
            fine for a table `mechanisms.QuantileMechanism` draws from the same law as "exponential" here.
        q: In [0, 1]. A float is read as the decimal that it prints as: .1 is 1/10. 0 and 1 are legal; every
            value up to the least record is a 0-quantile.
        epsilon: In (0, 20].
        beta: In (0, 1). Failure probability of `error_bound`.
        counted: Where the number of records is private: as `count` released it. Its `beta` adds to that of
            the choice.
        mechanism: `NoisyMax` on scores refined to 2^-16 of a record, or `ExponentialMechanism`.
        noise: By default the system's entropy.

    Raises:
        InvalidParameterError: If a parameter is outside its range; nothing was spent.
        InvalidQueryError: If the attribute is unknown or has no order; nothing was spent.

    Examples:
        >>> import numpy as np, onlineic as ic
        >>> from onlineic.offline.selection import quantile
        >>> ages = {"age": 20 + np.arange(60_000) % 60}  # uniform on 20, ..., 79
        >>> data = ic.PrivateData.from_records(ages, ic.Domain.of(age=range(0, 120)))
        >>> tenth = quantile(data, "age", 0.1, epsilon=1.0)
        >>> tenth.value in (25, 26), tenth.private  # 6,000 records are below 26
        (True, True)
        >>> round(60_000 * tenth.error_bound)
        14
    """
    check_types(data, Budget(epsilon))
    n, off = records_of(data, counted)
    if isinstance(data.domain.attribute(attribute), Categorical):
        raise InvalidQueryError(
            f"{attribute} must be ordered, got labels; declare a range of integers or binned(edges)."
        )
    share = exact_share(q)
    most = n + off
    farthest = most - min(whole_share(share, most), whole_share(1 - share, most))
    # whoever comes or goes moves shares of n too: candidates on both sides of the quantile, each its way
    return _chosen(
        data,
        attribute,
        epsilon,
        beta,
        mechanism,
        noise,
        lambda c: quantile_scores(c, share),
        farthest,
        counted,
    )


def median(
    data: PrivateData,
    attribute: str,
    epsilon: float,
    *,
    beta: float = 0.05,
    mechanism: Engine = "noisy max",
    counted: Counted | None = None,
    noise: Noise | None = None,
) -> Choice:
    """Return a value with at most n/2 + r records on either side: (epsilon, 0)-private; `quantile` at 1/2.

    One record can carry a median across the whole range (`sensitivity`), so that noise added to it would hide
    it; what is chosen here by its rank is private with an error in ranks that does not depend on the range.

    Examples:
        >>> import onlineic as ic
        >>> from onlineic.offline.selection import median
        >>> grades = ic.Domain.of(grade=range(1, 11))
        >>> data = ic.PrivateData.from_counts({"grade": [3, 7]}, [400, 600], grades)
        >>> median(data, "grade", epsilon=1.0).value  # not between 3 and 7: more than half the records are 7
        7
    """
    half = Fraction(1, 2)
    return quantile(
        data, attribute, half, epsilon, beta=beta, mechanism=mechanism, counted=counted, noise=noise
    )


def most_popular(
    data: PrivateData,
    attribute: str,
    epsilon: float,
    *,
    beta: float = 0.05,
    mechanism: Engine = "noisy max",
    counted: Counted | None = None,
    noise: Noise | None = None,
) -> Choice:
    """Return a value whose count is within r of the largest: (epsilon, 0)-private.

    With probability 1 - beta, r = n error_bound. Scores are the counts: a replaced record moves one up and
    one down; one that comes or goes moves one of them, for which half the noise is enough. Only the value is
    released, not its count. Parameters and errors as in `quantile`; the attribute may be of any kind.

    Where one person votes for many of the candidates, count the votes yourself and hand them to
    `NoisyMax.select`: one vote a candidate keeps the sensitivity at 1, however many votes a person has.

    Dwork & Roth (2014), section 3.3; with replaced records the scale is 2/epsilon, see `NoisyMax`.

    Examples:
        >>> import onlineic as ic
        >>> from onlineic.offline.selection import most_popular
        >>> films = ic.Domain.of(film=["Metropolis", "Nosferatu", "Vampyr"])
        >>> votes = ic.PrivateData.from_counts({"film": ["Nosferatu", "Vampyr"]}, [700, 500], films)
        >>> most_popular(votes, "film", epsilon=1.0).value
        'Nosferatu'
    """
    check_types(data, Budget(epsilon))
    most = sum(records_of(data, counted))
    alike = data.neighbours == ADD_REMOVE
    return _chosen(
        data, attribute, epsilon, beta, mechanism, noise, lambda counts: counts, most, counted, alike
    )


def _chosen(
    data: PrivateData,
    attribute: str,
    epsilon: float,
    beta: float,
    mechanism: Engine,
    noise: Noise | None,
    scores: Callable[[Ints], Ints],
    farthest: int,
    counted: Counted | None,
    alike: bool = False,
) -> Choice:
    """Choose by scores of sensitivity 1, none of which is more than `farthest` below the best.

    Scores that all move the same way (`alike`) are told apart with half the noise: they count twice.
    """
    kind, source = data.domain.attribute(attribute), checked_noise(noise)
    budget, (n, off) = Budget(epsilon, neighbours=data.neighbours), records_of(data, counted)
    beta = checked_real("beta", beta, above=0.0, below=1.0)
    candidates = kind.size - kind.missing
    cells = one_way(data.domain, data.domain.axis(attribute))
    check_choice("mechanism", mechanism, "noisy max", "exponential")
    engine: NoisyMax | ExponentialMechanism
    if mechanism == "noisy max":
        # scores stay below 2^62, and the scale below 2^47
        most = most_of(data).bit_length() + alike
        bits = max(0, min(FINE, 61 - most, int(budget.epsilon_exact * 2**46).bit_length() - 1))
        engine = NoisyMax(budget.epsilon, 1 << bits)
    else:
        bits, engine = 0, ExponentialMechanism(budget.epsilon)
    bits += alike
    radius = min(engine.radius(candidates, beta) >> bits, farthest)
    code = released(
        data,
        budget,
        source,
        lambda: engine.select(scores(data.exact_counts(cells)[:candidates]) << bits, source),
    )
    failing, private = (beta, True) if counted is None else (beta + counted.beta, counted.private)
    bound = min(1.0, radius / max(1, n - off))
    return Choice(attribute, kind.label(code), code, bound, failing, private and is_private(source))
