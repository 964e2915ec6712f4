"""The keys of groups over a domain: attributes and groupings of them, and the condition of each group."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.ask.truth import of_codes
from onlineic.domain.attributes import Attribute, Binned, Label
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidQueryError, TooLargeError, checked_list, shown
from onlineic.queries.expressions import Expression, where
from onlineic.queries.groupings import Grouping, bins
from onlineic.queries.marginals import Key, Marginal, marginal

MOST_GROUPS = 10_000  # answers of one GROUP BY


@final
@attrs.frozen
class GroupKey:
    """One key over a domain.

    Attributes:
        key: As it was given.
        name: As its column is called.
        labels: Of its groups, in order.
        ordered: Whether they have an order.
        conditions: Of each group; what counts everybody is `where()`.
        tabular: Whether a cross table can have it.
    """

    key: Key
    name: str
    labels: tuple[Label, ...]
    ordered: bool
    conditions: tuple[Expression, ...]
    tabular: bool = True

    @classmethod
    def of(cls, key: Key, domain: Domain) -> "GroupKey":
        """Return a key over a domain.

        Raises:
            InvalidQueryError: If the attribute is unknown, or has no such groups.
        """
        if isinstance(key, str):
            kind = domain.attribute(key)
            if not (isinstance(kind, Binned) and kind.ends):
                _check(kind.size)
                labels = tuple(kind.label(code) for code in range(kind.size))
                return cls(key, key, labels, kind.ordered, tuple(where({key: label}) for label in labels))
            found = bins(key).over(domain)
        else:
            found = key.over(domain)
        if found.axis is None or found.classes is None:
            return cls(key, found.name, found.labels, found.ordered, found.conditions, tabular=False)
        _check(len(found.labels))
        name, kind = domain.names[found.axis], domain.attributes[found.axis]
        conditions = tuple(
            _held(name, kind, np.flatnonzero(found.classes == place)) for place in range(len(found.labels))
        )
        return cls(key, found.name, found.labels, found.ordered, conditions)


@final
@attrs.frozen
class GroupKeys:
    """The keys of one question by group."""

    keys: tuple[GroupKey, ...]

    @classmethod
    def of(cls, domain: Domain, keys: Any) -> "GroupKeys":
        """Return keys over a domain.

        Raises:
            InvalidQueryError: If a key is unknown, or stands there twice.
            TooLargeError: If there are too many groups.
        """
        if not isinstance(keys, Iterable) and type(keys) is not Grouping:
            raise InvalidQueryError(
                f"keys must be an attribute or a list of them, got a {type(keys).__name__}; write "
                "['sex', 'age']."
            )
        one = isinstance(keys, str | Grouping)
        given: Sequence[Any] = (keys,) if one else checked_list("keys", keys)
        for key in given:
            if not isinstance(key, Grouping):
                domain.axis(key)
        names = [key.name if isinstance(key, Grouping) else key for key in given]
        if not names or len(set(names)) < len(names):
            raise InvalidQueryError(
                f"keys must be one or more different attributes, got {shown(names, 100)}; write "
                "['sex', 'age'], and name groupings by called('..')."
            )
        plain = [domain.attribute(key).size for key in given if isinstance(key, str)]
        _check(math.prod(plain))
        found = cls(tuple(GroupKey.of(key, domain) for key in given))
        _check(math.prod(found.shape))
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called."""
        return tuple(key.name for key in self.keys)

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """Of every key."""
        return tuple(key.labels for key in self.keys)

    @property
    def ordered(self) -> tuple[bool, ...]:
        """Of every key."""
        return tuple(key.ordered for key in self.keys)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of groups by key."""
        return tuple(len(key.labels) for key in self.keys)

    @property
    def tabular(self) -> bool:
        """Whether a cross table can have them all."""
        return all(key.tabular for key in self.keys)

    def table(self, condition: Expression | None, *more: Grouping) -> Marginal:
        """Return the cross table of the groups, and of further keys."""
        return marginal(*(key.key for key in self.keys), *more, where=condition)

    def conditions(self, condition: Expression | None) -> Iterator[Expression]:
        """Go through the conditions of all groups, the last key fastest."""
        for group in itertools.product(*(key.conditions for key in self.keys)):
            parts = [one for one in (*group, condition) if one is not None and one != where()]
            found = parts[0] if parts else where()
            for part in parts[1:]:
                found = _both(found, part)
            yield found


def _both(one: Expression, other: Expression) -> Expression:
    """Return the conjunction, of conditions on different attributes as one."""
    if one.form == other.form == "where" and not {*one.names} & {*other.names}:
        return where({**dict(one.parts), **dict(other.parts)})
    return one & other


def _held(name: str, kind: Attribute, codes: Ints) -> Expression:
    """Return the condition that an attribute has one of these codes."""
    if len(codes) == kind.size:
        return where()
    breaks = np.flatnonzero((np.diff(codes) > 1) | (codes[1:] == kind.size - kind.missing)) + 1
    runs = [(int(run[0]), int(run[-1]) + 1) for run in np.split(codes, breaks)]
    return where({name: of_codes(kind, runs)})


def _check(groups: int) -> None:
    if groups > MOST_GROUPS:
        raise TooLargeError(
            f"keys must have at most {MOST_GROUPS:,} groups, got {groups:,}; use fewer attributes, "
            "or ask for the groups of interest by conditions."
        )
