"""One value of one attribute, chosen privately: a quantile, the median, the most frequent value.

Records without a value (the missing cell) are left out.

Proof: docs/theory/offline.md, 12.2.
"""

from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import Literal, final

import attrs

from onlineic._typing import Ints
from onlineic.accounting.neighbours import ADD_REMOVE
from onlineic.data.private import PrivateData
from onlineic.data.release import most_of, records_of
from onlineic.display.text import upward
from onlineic.domain.attributes import Categorical, Label
from onlineic.errors import InvalidQueryError, check_choice, shown
from onlineic.mechanisms.quantiles import exact_share, quantile_scores, whole_share
from onlineic.mechanisms.selection import ExponentialMechanism, NoisyMax
from onlineic.noise.sources import Noise
from onlineic.offline.release import Release, Result
from onlineic.queries.counted import Counted
from onlineic.queries.partitions import one_way

Engine = Literal["noisy max", "exponential"]
FINE = 16  # bits below a count: candidates of one score are then equally likely, and less is lost


@final
@attrs.frozen(kw_only=True, repr=False)
class Choice(Result):
    """A value chosen among those of an attribute.

    Attributes:
        value: As in the domain: an integer, a label, or a bin as text.
        code: Of the value: its place in the attribute.
        error_bound: By how much the choice may miss, fraction of all n records, with probability 1 - beta: in
            rank for a quantile, in frequency for `most_popular`.
    """

    attribute: str
    value: Label
    code: int
    error_bound: float

    def _shown(self) -> str:
        bound = f"within {upward(self.error_bound)} of the records at {self._sure}"
        return f"{self.attribute} = {shown(self.value)}, {bound}"


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
    candidates, all values of the attribute, whether they occur or not. With a missing cell n is the number of
    records that have a value; the bound stays a number of records over all n.

    Dwork & Roth (2014), Theorem 3.10, or `NoisyMax`, on `quantile_scores` (theory 12.2).

    Args:
        attribute: Ordered: a range of integers or bins. Grids too fine for a table:
            `mechanisms.QuantileMechanism`.
        q: In [0, 1]. A float is read as the decimal that it prints as: .1 is 1/10.
        epsilon: In (0, 20].
        beta: In (0, 1). Failure probability of `error_bound`.
        counted: Where the number of records is private: as `count` released it. Its `beta` adds to this one.
        mechanism: `NoisyMax` on scores refined to 2^-16 of a record, or `ExponentialMechanism`.

    Raises:
        InvalidQueryError: If the attribute is unknown or has no order.

    Examples:
        >>> from onlineic.offline import quantile
        >>> ages = {"age": 20 + np.arange(60_000) % 60}  # uniform on 20, ..., 79
        >>> data = ic.PrivateData.from_records(ages, ic.Domain.of(age=range(0, 120)))
        >>> tenth = quantile(data, "age", 0.1, epsilon=1.0)
        >>> tenth.value in (25, 26), round(60_000 * tenth.error_bound)  # 6,000 records are below 26
        (True, 14)
    """
    release, (n, off) = Release.pure(data, epsilon, noise, beta), records_of(data, counted)
    if isinstance(data.domain.attribute(attribute), Categorical):
        raise InvalidQueryError(
            f"{attribute} must be ordered, got labels; declare a range of integers or binned(edges)."
        )
    share = exact_share(q)
    most = n + off
    farthest = most - min(whole_share(share, most), whole_share(1 - share, most))
    # whoever comes or goes moves shares of n too: candidates on both sides of the quantile, each its way
    return _chosen(release, attribute, mechanism, lambda c: quantile_scores(c, share), farthest, counted)


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

    Examples:
        >>> from onlineic.offline import median
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

    With probability 1 - beta, r = n error_bound. Arguments and errors as of `quantile`; the attribute may be
    of any kind. Where one person votes for many candidates, count the votes yourself and hand them to
    `NoisyMax.select`.

    Dwork & Roth (2014), section 3.3; theory 12.2.

    Examples:
        >>> from onlineic.offline import most_popular
        >>> films = ic.Domain.of(film=["Metropolis", "Nosferatu", "Vampyr"])
        >>> votes = ic.PrivateData.from_counts({"film": ["Nosferatu", "Vampyr"]}, [700, 500], films)
        >>> most_popular(votes, "film", epsilon=1.0).value
        'Nosferatu'
    """
    release, most = Release.pure(data, epsilon, noise, beta), sum(records_of(data, counted))
    alike = data.neighbours == ADD_REMOVE
    return _chosen(release, attribute, mechanism, lambda counts: counts, most, counted, alike)


def _chosen(
    release: Release,
    attribute: str,
    mechanism: Engine,
    scores: Callable[[Ints], Ints],
    farthest: int,
    counted: Counted | None,
    alike: bool = False,
) -> Choice:
    """Choose by scores of sensitivity 1, none of which is more than `farthest` below the best.

    Scores that all move the same way (`alike`) are told apart with half the noise: they count twice.
    """
    data, budget, source, beta = release.data, release.budget, release.noise, release.beta
    kind, (n, off) = data.domain.attribute(attribute), records_of(data, counted)
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
    code = release.read(lambda: engine.select(scores(data.exact_counts(cells)[:candidates]) << bits, source))
    failing, private = (beta, True) if counted is None else (beta + counted.beta, counted.private)
    bound = min(1.0, radius / max(1, n - off))
    return Choice(
        attribute=attribute,
        value=kind.label(code),
        code=code,
        error_bound=bound,
        beta=failing,
        private=private and release.private,
    )
