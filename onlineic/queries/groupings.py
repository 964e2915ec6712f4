"""Keys of groups that are made of an attribute: periods and parts of dates, ranges of numbers, cases.

A grouping takes values of one attribute together. As a key of a cross table it is asked as coarsely as it is
meant: a record still moves between two cells, and no cell is a sum of finer ones.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.domain.attributes import Attribute, Binned, Categorical, Label
from onlineic.domain.columns import Column, plain, short
from onlineic.domain.dates import Dates
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, InvalidQueryError, check_choice, checked_list, shown
from onlineic.queries.cuts import check_written
from onlineic.queries.expressions import Expression, where
from onlineic.slips import public

FITTING = {  # periods of a domain: the longer ones that they lie in as a whole
    "year": ("year",),
    "quarter": ("year", "quarter"),
    "month": ("year", "quarter", "month"),
    "week": ("week",),
    "day": ("year", "quarter", "month", "week", "day"),
    "hour": ("year", "quarter", "month", "week", "day", "hour"),
    "minute": ("year", "quarter", "month", "week", "day", "hour", "minute"),
}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
# parts of a date: the longest period of a domain that has one alone
NEEDS = {
    "year": "year", "quarter": "quarter", "month": "month", "monthname": "month", "week": "week",
    "isoyear": "week", "day": "day", "dayofyear": "day", "dow": "day", "isodow": "day", "weekday": "day",
    "hour": "hour", "minute": "minute",
}  # fmt: skip


@final
@attrs.frozen
class Resolved:
    """A key over a domain.

    Attributes:
        name: As the column is called.
        labels: Of the groups, in their order; None is the group of missing values, or of no case.
        ordered: Whether they have an order.
        axis: Of the attribute, or None where the groups are conditions on several.
        classes: The group of every code of it, (codes,).
        conditions: Of each group, where the groups are of several attributes.
    """

    name: str
    labels: tuple[Label, ...]
    ordered: bool
    axis: int | None = None
    classes: Ints | None = attrs.field(default=None, eq=False)
    conditions: tuple[Expression, ...] = ()


@public
@final
@attrs.frozen
class Grouping:
    """A key of groups as written; made by `cut`, `date_trunc`, `extract` and `case`.

    Attributes:
        form: Which of them made it; "bins" are those of a number, "told" are labels that a file holds.
        attribute: What is grouped; "" of cases over several attributes.
        parts: What it was made of.
        name: What the column is called; by default as it is written.
    """

    form: Literal["bins", "cut", "date_trunc", "extract", "case", "told"]
    attribute: str
    parts: tuple[Any, ...] = attrs.field(eq=repr)
    name: str = attrs.field(default="", kw_only=True)

    def __attrs_post_init__(self) -> None:
        check_choice("form", self.form, "bins", "cut", "date_trunc", "extract", "case", "told")
        if not (type(self.attribute) is type(self.name) is str and type(self.parts) is tuple):
            raise InvalidParameterError(
                "a grouping must have texts as attribute and name, and a tuple of parts, got others; write "
                'ic.cut("age", [0, 18, 65]).'
            )
        if not self.name:
            object.__setattr__(self, "name", self._written)

    def called(self, name: str) -> "Grouping":
        """Return it under another name.

        Args:
            name: Of the column.

        Raises:
            InvalidParameterError: If it is no text.
        """
        if type(name) is not str or not name:
            raise InvalidParameterError(f"name must be a text, got {shown(name)}; write called('year').")
        return attrs.evolve(self, name=name)

    @property
    def _written(self) -> str:
        if self.form in ("date_trunc", "extract"):
            return f"{self.parts[0]}({self.attribute})"
        return "case" if self.form == "case" else self.attribute

    def __repr__(self) -> str:
        if self.form in ("date_trunc", "extract"):
            said = f"{self.form}({self.attribute!r}, {self.parts[0]!r})"
        elif self.form == "cut":
            at, labels = self.parts
            said = f"cut({self.attribute!r}, {list(at)!r}{f', {list(labels)!r}' if labels else ''})"
        elif self.form == "case":
            pairs, otherwise = self.parts
            said = f"case({dict(pairs)!r}{'' if otherwise is None else f', {otherwise!r}'})"
        else:
            said = repr(self.attribute)
        return said if self.name == self._written else f"{said}.called({self.name!r})"

    def over(self, domain: Domain) -> Resolved:
        """Return the groups over a domain.

        Raises:
            InvalidQueryError: If the attribute is unknown, or has no such groups.
        """
        if self.form == "told":
            raise InvalidQueryError(
                "a table read from a file must be written anew to be asked, got its cells."
            )
        if self.form == "case":
            return _cases(self, domain)
        axis = domain.axis(self.attribute)
        kind = domain.attributes[axis]
        check_written(kind.size)
        made: dict[str, Callable[[Grouping, Attribute], tuple[Sequence[Label], Ints]]]
        made = {"bins": _bins, "cut": _ranges, "date_trunc": _periods, "extract": _parts}
        labels, classes = made[self.form](self, kind)
        if kind.missing:
            labels, classes = [*labels, None], np.append(classes, len(labels))
        kept, classes = np.unique(classes, return_inverse=True)  # groups that some value has
        return Resolved(
            self.name,
            tuple(labels[place] for place in kept.tolist()),
            True,
            axis,
            classes.astype(np.int64),
        )


@public
def cut(attribute: str, at: Iterable[Any], labels: Iterable[str] | None = None) -> Grouping:
    """Return the ranges of a number or a date as a key of groups: [.., a), [a, b), [b, ..].

    Args:
        attribute: Ordered.
        at: Where one range ends and the next begins, rising: numbers, at edges of bins, or dates.
        labels: One for each range; by default "[a, b)".

    Raises:
        InvalidParameterError: If these are no rising values.

    Examples:
        >>> cut("age", [18, 65])
        cut('age', [18, 65])
    """
    _check_name(attribute)
    given = tuple(plain(one) for one in checked_list("at", at, remedy="write [18, 65]"))
    try:
        rising = bool(given) and all(low < high for low, high in pairwise(given))
    except TypeError:
        rising = False
    if not rising or not all(type(one) in (int, float, str) for one in given):
        raise InvalidParameterError(
            f"at must be one or more rising numbers or texts of dates, got {shown(at)}; write [18, 65]."
        )
    words = () if labels is None else tuple(checked_list("labels", labels, remedy="write a list of texts"))
    if labels is not None and not (
        all(type(word) is str for word in words) and len({*words}) == len(words) == len(given) + 1
    ):
        raise InvalidParameterError(
            f"labels must be {len(given) + 1} different texts, one more than cuts, got {shown(labels)}."
        )
    return Grouping("cut", attribute, (given, words))


@public
def date_trunc(attribute: str, unit: str) -> Grouping:
    """Return the longer periods that dates lie in as a key of groups, such as the month of a day.

    Args:
        attribute: Of dates.
        unit: "year", "quarter", "month", "week", "day", "hour" or "minute".

    Examples:
        >>> date_trunc("day", "month")
        date_trunc('day', 'month')
    """
    _check_name(attribute)
    check_choice("unit", unit, *FITTING)
    return Grouping("date_trunc", attribute, (unit,))


@public
def extract(attribute: str, part: str) -> Grouping:
    """Return a part of dates as a key of groups, such as the year or the day of the week.

    Args:
        attribute: Of dates.
        part: "year", "quarter", "month" (1 to 12), "monthname", "week" (of ISO 8601), "isoyear", "day",
            "dayofyear", "weekday" (Monday to Sunday), "isodow" (1 to 7), "dow" (0, Sunday, to 6), "hour"
            or "minute".

    Examples:
        >>> extract("day", "weekday")
        extract('day', 'weekday')
    """
    _check_name(attribute)
    check_choice("part", part, *NEEDS)
    return Grouping("extract", attribute, (part,))


@public
def case(conditions: Mapping[Any, Expression], otherwise: Label = None) -> Grouping:
    """Return cases as a key of groups: a record is in the first group whose condition it meets.

    Args:
        conditions: Of each label what `where` returns.
        otherwise: Label of all others; None is shown as missing.

    Raises:
        InvalidParameterError: If these are no conditions by label.

    Examples:
        >>> from onlineic.queries.expressions import at_least, where
        >>> case({"old": where(age=at_least(65))}, "younger")
        case({'old': where(age=at_least(65))}, 'younger')
    """
    held: Any = conditions
    pairs: tuple[tuple[Any, Any], ...] = tuple(held.items()) if isinstance(held, Mapping) else ()
    if not pairs or not all(type(one) is Expression for _, one in pairs):
        raise InvalidParameterError(
            "conditions must be a mapping of label to condition, got others; write "
            "case({'young': where(age=below(30))}, 'others')."
        )
    labels = [plain(label) for label, _ in pairs]
    if not all(
        type(label) in (str, int, float, bool) for label in [*labels, *[otherwise] * (otherwise is not None)]
    ):
        raise InvalidParameterError("labels must be texts, numbers or booleans, got others; write texts.")
    return of_cases([(label, one) for label, (_, one) in zip(labels, pairs, strict=True)], otherwise)


def of_cases(pairs: Sequence[tuple[Label, Expression]], otherwise: Label) -> Grouping:
    """Return cases as a key; two may have one label."""
    names = sorted({name for _, one in pairs for name in one.names})
    return Grouping("case", names[0] if len(names) == 1 else "", (tuple(pairs), otherwise))


def bins(attribute: str) -> Grouping:
    """Return the bins of a number as a key: one group a bin, whichever of its ends a part lies at."""
    return Grouping("bins", attribute, ())


def _check_name(attribute: object) -> None:
    if type(attribute) is not str:
        raise InvalidParameterError(
            f"attribute must be the name of one, got {shown(attribute)}; write a text."
        )


def _bins(grouping: Grouping, kind: Attribute) -> tuple[Sequence[Label], Ints]:
    if not isinstance(kind, Binned):
        raise InvalidQueryError(f"{grouping.attribute} must have bins, got another kind.")
    count = len(kind.edges) - 1
    return [kind.bin_label(kind.cells * place) for place in range(count)], np.repeat(
        np.arange(count), kind.cells
    )


def _ranges(grouping: Grouping, kind: Attribute) -> tuple[Sequence[Label], Ints]:
    name, (at, words) = grouping.attribute, grouping.parts
    if isinstance(kind, Categorical):
        raise InvalidQueryError(
            f"{name} must be ordered to be cut into ranges, got labels without order; write case(..)."
        )
    codes = []
    for value in at:
        inside = value
        if not isinstance(kind, Dates) and type(value) is not str:
            low, high = (
                (kind.edges[0], kind.edges[-1]) if isinstance(kind, Binned) else (kind.start, kind.stop)
            )
            inside = min(max(value, low), high)
        codes.append(kind.interval(name, -np.inf, inside, False)[1])
    size = kind.size - kind.missing
    ends = [0, *codes, size]
    classes = np.searchsorted(np.array(codes), np.arange(size), side="right").astype(np.int64)
    return words or [_range_label(kind, low, high) for low, high in pairwise(ends)], classes


def _range_label(kind: Attribute, low: int, high: int) -> str:
    """Return the range from a code to another, half-open, as text."""
    if isinstance(kind, Binned):
        edges = kind.edges
        return f"[{short(edges[low // kind.cells])}, {short(edges[high // kind.cells])})"
    if isinstance(kind, Dates):
        return f"{kind.label(low)} to {kind.label(high - 1)}" if low < high else ""
    return f"[{kind.start + low}, {kind.start + high})"  # type: ignore[union-attr]


def _dated(grouping: Grouping, kind: Attribute, longest: str | None = None) -> Dates:
    """Return the dates of an attribute whose periods are short enough, or refuse it by name."""
    name, unit = grouping.attribute, grouping.parts[0]
    if not isinstance(kind, Dates):
        raise InvalidQueryError(
            f"{name} must hold dates for its {unit}, got another kind; declare it dates(first, last)."
        )
    fits = unit in FITTING[kind.by] if longest is None else longest in FITTING[kind.by]
    if not fits:
        raise InvalidQueryError(
            f"{name} must be counted by a period that lies in one {unit}, got one {kind.by}; declare "
            f"dates(.., by={shown(longest or ('day' if unit in FITTING['day'] else unit))})."
        )
    return kind


def _periods(grouping: Grouping, kind: Attribute) -> tuple[Sequence[Label], Ints]:
    classes, labels = _dated(grouping, kind).within(grouping.parts[0])
    return labels, classes


def _parts(grouping: Grouping, kind: Attribute) -> tuple[Sequence[Label], Ints]:
    part = grouping.parts[0]
    values, words = _part_of(_dated(grouping, kind, NEEDS[part]).instants(), part)
    distinct, classes = np.unique(values, return_inverse=True)
    labels: list[Label] = [int(value) if words is None else words[value] for value in distinct]
    return labels, classes.astype(np.int64)


def _part_of(moments: Column, part: str) -> tuple[Ints, Sequence[str] | None]:
    """Return a part of each moment as a number, and the words that stand for it."""
    minutes, days = moments.astype(np.int64), moments.astype("M8[D]").astype(np.int64)
    months, years = (moments.astype(f"M8[{unit}]") for unit in "MY")
    isodow = (days + 3) % 7 + 1  # 1970 began on a Thursday
    thursday = (days + 4 - isodow).astype("M8[D]")  # in whose year its week is counted
    calendar: dict[str, Callable[[], Ints]] = {
        "year": lambda: years.astype(np.int64) + 1970,
        "quarter": lambda: months.astype(np.int64) % 12 // 3 + 1,
        "month": lambda: months.astype(np.int64) % 12 + 1,
        "monthname": lambda: months.astype(np.int64) % 12,
        "week": lambda: (thursday - thursday.astype("M8[Y]").astype("M8[D]")).astype(np.int64) // 7 + 1,
        "isoyear": lambda: thursday.astype("M8[Y]").astype(np.int64) + 1970,
        "day": lambda: days - months.astype("M8[D]").astype(np.int64) + 1,
        "dayofyear": lambda: days - years.astype("M8[D]").astype(np.int64) + 1,
        "dow": lambda: isodow % 7,
        "isodow": lambda: isodow,
        "weekday": lambda: isodow - 1,
        "hour": lambda: minutes // 60 % 24,
        "minute": lambda: minutes % 60,
    }
    return calendar[part](), {"monthname": MONTHS, "weekday": DAYS}.get(part)


def _cases(grouping: Grouping, domain: Domain) -> Resolved:
    """Return the groups of cases: of one attribute as classes of its codes, else as conditions."""
    pairs, otherwise = grouping.parts
    labels = [*dict.fromkeys(label for label, _ in pairs)]
    queries = [one.bind(domain) for _, one in pairs]
    axes = {axis for query in queries for axis in query.axes}
    if any(query.grid_bits for query in queries):
        raise InvalidQueryError("cases must be conditions that hold or do not, got weights; write where(..).")
    if len(axes) != 1:
        return _of_several(grouping.name, pairs, otherwise, domain)
    (axis,) = axes
    if (size := domain.shape[axis]) and otherwise not in labels:
        labels.append(otherwise)
    classes = np.full(size, labels.index(otherwise))
    for (label, _), query in reversed([*zip(pairs, queries, strict=True)]):
        if query.constant is not None:
            held = np.full(size, bool(query.constant))
        else:
            held = np.asarray(query.factors[0].weights(domain), bool) ^ query.complement
        classes[held] = labels.index(label)
    kept, classes = np.unique(classes, return_inverse=True)
    return Resolved(
        grouping.name, tuple(labels[place] for place in kept.tolist()), False, axis, classes.astype(np.int64)
    )


def _of_several(
    name: str, pairs: Sequence[tuple[Label, Expression]], otherwise: Label, domain: Domain
) -> Resolved:
    """Return the groups of cases over several attributes: what meets a condition, and none before it."""
    labels = [*dict.fromkeys(label for label, _ in pairs)]
    held: dict[Label, list[Expression]] = {label: [] for label in labels}
    before: list[Expression] = []
    for label, one in pairs:
        held[label].append(one if not before else _all([one, *before]))
        before.append(~one)
    held.setdefault(otherwise, []).append(_all(before))
    kept: dict[Label, Expression] = {}
    for label, parts in held.items():
        found = parts[0]
        for part in parts[1:]:
            found = found | part
        if found.bind(domain).constant != 0:  # somebody can be there
            kept[label] = found
    return Resolved(name, tuple(kept), False, conditions=tuple(kept.values()))


def _all(parts: Sequence[Expression]) -> Expression:
    found = parts[0] if parts else where()
    for part in parts[1:]:
        found = found & part
    return found
