"""Statistics of a table that are no linear queries, with how far one replaced record can move them.

Proof: docs/theory/offline.md, 12.11.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.ask.bind import bind_question
from onlineic.data.private import PrivateData
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import (
    InvalidDataError,
    InvalidParameterError,
    InvalidQueryError,
    check_kind,
    checked_integer,
    checked_list,
    checked_ratio,
    shown,
)
from onlineic.offline.compared import number
from onlineic.offline.means import column, width_of
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query, session_grid_bits

MAX_BLOCKS = 2**22  # of the table that a statistic is made of


@final
@attrs.frozen(eq=False, repr=False)
class Statistic:
    """A number made of the exact counts of a table, and how far one replaced record moves it at most.

    Made by `fraction`, `column_mean`, `distinct_count` and `exceptions`, whose sensitivity is proved, or by
    `statistic`, whose sensitivity is what the caller says.

    Attributes:
        target: What is read.
        compute: From exact counts, PRIVATE, to an integer, Fraction or float.
        sensitivity: Above 0. In the units of the value.
        claimed: Whether the sensitivity is the caller's claim, which nothing has checked: also of one made by
            hand.
        n: Number of records that it was made for; None: for any.
    """

    label: str
    target: Query | Partition
    compute: Callable[[Any], Any]
    sensitivity: Fraction
    claimed: bool = True
    n: int | None = None

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", checked_ratio("sensitivity", self.sensitivity, above=0.0))

    def __repr__(self) -> str:
        stamp = ", CLAIMED by the caller" if self.claimed else ""
        return f"Statistic({self.label}, sensitivity {float(self.sensitivity):.4g}{stamp})"


def statistic(
    domain: Domain,
    attributes: Sequence[str],
    compute: Callable[[Ints], Any],
    sensitivity: float | Rational,
    label: str = "",
) -> Statistic:
    """Return any function of a marginal table, with the sensitivity that THE CALLER CLAIMS for it.

    If replacing one record can move it further, what is released is less private than its budget says.
    Results that rest on such a claim say so (`ValuesAbove.claimed`).

    Args:
        attributes: Of the table, in domain order.
        compute: From counts to an integer, Fraction or float. Of the (attributes' sizes) int64 table, a copy:
            PRIVATE. It must keep nothing of it, and terminate for all tables alike.
        sensitivity: Above 0. It covers the rounding of a float.

    Examples:
        >>> domain = ic.Domain.of(city=["A", "B", "C"])
        >>> statistic(domain, ["city"], lambda counts: counts.max(), 1, "largest city")
        Statistic(largest city, sensitivity 1, CLAIMED by the caller)
    """
    target = _table(domain, attributes)
    if not callable(compute):
        raise InvalidParameterError(f"compute must be callable, got a {type(compute).__name__}.")
    moved = checked_ratio("sensitivity", sensitivity, above=0.0)
    shape = target.shape

    def computed(counts: Ints) -> Any:
        return compute(counts.reshape(shape).copy())

    return Statistic(
        str(label) or f"a function of {', '.join(attributes)}", target, computed, moved, claimed=True
    )


def fraction(data: PrivateData, query: Any) -> Statistic:
    """Return f(D) of a linear query, in fractions of records: sensitivity (max - min weight)/n (theory 1.4).

    Raises:
        InvalidQueryError: If the query cannot be bound, or is constant.

    Examples:
        >>> fraction(ic.PrivateData([30, 50, 20], ic.Domain.of(a=3)), ic.where(a=1))
        Statistic(a fraction of records, sensitivity 0.01)
    """
    check_kind("data", data, PrivateData)
    bound = bind_question(query, data.domain, session_grid_bits(data.n))
    if not isinstance(bound, Query) or bound.constant is not None:
        raise InvalidQueryError("query must be a query whose value depends on the records, got another.")
    records = data.n << bound.grid_bits

    def computed(count: int) -> Fraction:
        return Fraction(count, records)

    return Statistic(
        "a fraction of records", bound, computed, Fraction(bound.sensitivity, records), False, data.n
    )


def column_mean(data: PrivateData, attribute: str) -> Statistic:
    """Return the mean of an attribute, a range of integers: sensitivity (largest - least value)/n (12.3).

    Raises:
        InvalidQueryError: If the attribute is no such range of two or more values, or has a missing cell.

    Examples:
        >>> column_mean(ic.PrivateData([30, 50, 20], ic.Domain.of(score=range(3))), "score")
        Statistic(mean of score, sensitivity 0.02)
    """
    check_kind("data", data, PrivateData)
    kind, _ = column(data.domain, attribute)
    width, above, n = width_of(kind, data.n), np.arange(kind.size), data.n

    def computed(counts: Ints) -> Fraction:
        # n times the width stays inside 64 bits, n times the ends of the range may not
        return Fraction(kind.start * n + int(above @ counts), n)

    target = _table(data.domain, [attribute])
    return Statistic(f"mean of {attribute}", target, computed, Fraction(width, n), False, n)


def distinct_count(domain: Domain, *attributes: str, at_least: int = 1) -> Statistic:
    """Return how many combinations of labels at least so many records have: sensitivity 1 (theory 12.11).

    Examples:
        >>> distinct_count(ic.Domain.of(city=["A", "B"], sex=["F", "M"]), "city", "sex", at_least=10)
        Statistic(distinct city and sex, sensitivity 1)
    """
    mark = checked_integer("at_least", at_least, at_least=1)

    def computed(counts: Ints) -> int:
        return int((counts >= mark).sum())

    table = _table(domain, attributes)
    return Statistic(f"distinct {' and '.join(attributes)}", table, computed, Fraction(1), False)


def exceptions(domain: Domain, given: Sequence[str], of: str) -> Statistic:
    """Return the least number of records to remove until `given` settles `of`: sensitivity 1 (theory 12.11).

    Args:
        of: Not among `given`.

    Examples:
        >>> exceptions(ic.Domain.of(postcode=100, region=10), ["postcode"], of="region")
        Statistic(exceptions to postcode -> region, sensitivity 1)
    """
    names = [given] if isinstance(given, str) else checked_list("given", given, remedy="write its names")
    target = _table(domain, [*names, of])
    last = target.axes.index(domain.axis(of))
    shape = target.shape

    def computed(counts: Ints) -> int:
        return int(counts.sum() - counts.reshape(shape).max(axis=last).sum())

    return Statistic(f"exceptions to {', '.join(names)} -> {of}", target, computed, Fraction(1), False)


def on_grid(values: Any, step: float | Rational, low: int, high: int) -> Ints:
    """Return real numbers as codes of a public grid for loading: round(value/step), brought into [low, high].

    Args:
        values: Real numbers, shape (n,). The codes are those of the attribute `range(low, high + 1)`.
        step: Above 0. Public, as `low` and `high` are: chosen without a look at the values.

    Raises:
        InvalidDataError: If a value is no number.

    Examples:
        >>> on_grid([0.124, 3.0, -7.5], step=0.01, low=0, high=100).tolist()
        [12, 100, 0]
    """
    unit = float(checked_ratio("step", step, above=0.0))
    least = checked_integer("low", low)
    most = checked_integer("high", high, at_least=least)
    column = np.asarray(values)
    if column.dtype.kind not in "iuf" or not np.isfinite(column).all():
        raise InvalidDataError("values must be finite real numbers, got others; mend the column.")
    return np.clip(np.rint(np.clip(column / unit, least, most)), least, most).astype(np.int64)


def exact(value: Any) -> Fraction:
    """Return what a statistic has computed, PRIVATE, as the rational that it is."""
    return number("the value", value)


def _table(domain: Domain, attributes: Sequence[str]) -> Partition:
    """Return the partition into all combinations of labels."""
    check_domain(domain)
    names = (
        [attributes]
        if isinstance(attributes, str)
        else checked_list("attributes", attributes, remedy="write their names")
    )
    axes = tuple(sorted(domain.axis(name) for name in names))
    if not axes or len(set(axes)) < len(axes):
        raise InvalidParameterError(f"attributes must be one or more different names, got {shown(names)}.")
    target = Partition(domain, axes, tuple(np.arange(domain.shape[axis]) for axis in axes))
    if target.blocks > MAX_BLOCKS:
        raise InvalidParameterError(
            f"attributes must span at most 2^22 cells, got {target.blocks}; take fewer, or coarser ones."
        )
    return target
