"""The private mean of values that were clipped at a private bound."""

from collections.abc import Iterable
from typing import Literal, final

import attrs
import numpy as np

from onlineic.accounting.budget import Budget
from onlineic.accounting.rounding import float_down
from onlineic.data.private import PrivateData
from onlineic.data.release import check_types, checked_noise, is_private, released
from onlineic.errors import InvalidParameterError, checked_real
from onlineic.mechanisms.additive import LaplaceMechanism
from onlineic.noise.sources import Noise
from onlineic.offline.clipping import bound_search
from onlineic.offline.means import LEAST_BETA, integers, width_of
from onlineic.queries.partitions import one_way

__all__ = ["AutoAverage", "auto_avg"]


@final
@attrs.frozen(repr=False)
class AutoAverage:
    """A released mean of values clipped at a released bound.

    With probability 1 - beta the mean of the records is in
    [value - noise_radius, value + noise_radius + bias_bound].

    Attributes
    ----------
    value : float
        least value + (noisy sum of min(x, bound) - least value)/denominator; itself not clipped.
    bound : int
    hit : bool
        As in `ClippingBound`.
    noise_radius : float
        How far noise in sum and count moves the value from the mean of the CLIPPED values.
    bias_bound : float
        How much clipping may have taken off the mean: records above the bound, times their largest loss, / n.
    denominator : int
        n, or the noisy count, raised to 1 where it is less.
    beta : float
        Of the whole statement, shared equally by its two or three parts.
    private : bool
        False: simulated noise was used, the mean is NOT PRIVATE.
    """

    value: float
    bound: int
    hit: bool
    noise_radius: float
    bias_bound: float
    denominator: int
    beta: float
    private: bool

    @property
    def error_bound(self) -> float:
        """|value - mean of the records| is at most this with probability 1 - beta."""
        return self.noise_radius + self.bias_bound

    def __repr__(self) -> str:
        clipped = f"clipped at {self.bound}{'' if self.hit else ', no hit'}"
        stamp = "" if self.private else ", NOT PRIVATE"
        bound = f"{self.error_bound:.3g} at {1 - self.beta:.4g}"
        return f"AutoAverage({self.value:.6g} ± {bound}, {clipped}{stamp})"


def auto_avg(
    data: PrivateData,
    attribute: str,
    epsilon: float,
    *,
    bounds: Iterable[int] | None = None,
    threshold: int = 0,
    count: Literal["public", "noisy"] = "public",
    beta: float = 0.05,
    noise: Noise | None = None,
) -> AutoAverage:
    """Return the mean of min(x, b) at a private b, with noise b - least value: (epsilon, 0)-private.

    epsilon/2 for `clipping_bound`, then epsilon/2 for the sum of min(x, b) - least value, which a replaced
    record moves by at most b - least value (b, where the range starts at 0): discrete Laplace of that
    scale over epsilon/2. The sum is divided by the public n.

    It pays where the public range is more than twice as wide as most values need: otherwise `mean` over the
    whole range, which spends everything on the sum, has less noise.

    Parameters
    ----------
    data : PrivateData
    attribute : str
        A range of integers without a missing cell; it may start below 0.
    epsilon : float, in (0, 20]
        Of everything together.
    bounds, threshold
        As in `clipping_bound`.
    count : "public" or "noisy"
        "noisy" is the textbook's split, epsilon/3 each for bound, sum and count: the denominator is n +
        Lap(3/epsilon), raised to 1 where it is less, since it can be 0 or negative. It is worth paying only
        where n is private: value, bound and denominator are epsilon-private also for neighbours that add or
        remove a record, under which search, sum and count have the same sensitivities. That arguments are
        refused for n (a threshold below -n, a range too wide) then tells something of it.
    beta : float, in [1e-300, 1)
    noise : Noise, optional
        By default the system's entropy.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range; nothing was spent.
    InvalidQueryError
        If the attribute is unknown, or not a range of two or more integers without a missing cell.

    References
    ----------
    Dwork & Roth (2014), Algorithm 1, Theorem 3.6 and, for the parts, basic composition, Theorem 3.14: the
    sum's noise depends on the bound, which is released. The texts' `auto_avg` divides by the noisy
    count whatever it is.

    Examples
    --------
    >>> import numpy as np, onlineic as ic
    >>> from onlineic.offline import auto_avg
    >>> ages = ic.PrivateData.from_records({"age": 17 + np.arange(50_000) % 60}, ic.Domain.of(age=range(151)))
    >>> average = auto_avg(ages, "age", epsilon=1.0)
    >>> average.private, abs(average.value - 46.5) < 0.5
    (True, True)
    """
    source, budget = checked_noise(noise), Budget(epsilon)
    check_types(data, budget)
    if count not in ("public", "noisy"):
        raise InvalidParameterError(f"count must be 'public' or 'noisy', got count={count!r:.60}.")
    kind = integers(data.domain, attribute)
    width = width_of(kind, data.n)
    beta = checked_real("beta", beta, at_least=LEAST_BETA, below=1.0)  # for radii behind the read
    parts = 2 if count == "public" else 3
    share, failure = float_down(budget.epsilon_exact / parts), beta / parts
    search = bound_search(kind, data.n, share, bounds, threshold, failure)
    number, _ = LaplaceMechanism(share), LaplaceMechanism(share, width)  # refused here, if ever
    cells, codes = one_way(data.domain, data.domain.axis(attribute)), np.arange(kind.size)

    def private() -> tuple[int | None, int, int]:
        counts = data.exact_counts(cells)
        index = search.index(counts, source)
        top = search.bound(index) - kind.start
        total = LaplaceMechanism(share, top).release(int(np.minimum(codes, top) @ counts), source)
        records = number.release(data.n, source) if count == "noisy" else [data.n]
        return index, int(total[0]), int(records[0])

    index, total, records = released(data, budget, source, private)
    bound, largest = search.bound(index), kind.stop - 1
    reach = LaplaceMechanism(share, bound - kind.start).radius(failure)
    above = search.records_above(index, kind, data.n)
    shift, denominator = total / max(1, records), max(1, records)
    if count == "public":
        radius = reach / data.n
    else:  # sum and count are each within their radius: how far can their quotient be?
        off = number.radius(failure)
        ends = max(0, total - reach) / max(1, records + off), max(0, total + reach) / max(1, records - off)
        radius = max(shift - ends[0], ends[1] - shift)
    return AutoAverage(
        value=kind.start + shift,
        bound=bound,
        hit=index is not None,
        noise_radius=radius,
        bias_bound=above * (largest - bound) / data.n,
        denominator=denominator,
        beta=beta,
        private=is_private(source),
    )
