"""What is told beforehand of the questions to come: how many, over which attributes, and whether dense."""

from collections.abc import Iterable
from numbers import Real
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, checked_integer, checked_list, set_fields, shown
from onlineic.interactions.demand import Expected, expected_of
from onlineic.plan.kinds import is_dense
from onlineic.plan.plan import MOST
from onlineic.queries.expressions import Expression, dense
from onlineic.queries.marginals import BoundMarginal, Marginal
from onlineic.queries.query import Query

# a question, or attributes that will be asked together
Announced = str | Iterable[str] | Expression | Marginal | Query | BoundMarginal | Floats
MOST_LEVELS = 2**8  # combinations of levels that a file holds of one set, at most
REMEDY = "write 20, or [('age', 'sex'), 'city']"


@final
@attrs.frozen
class Announcement:
    """What `questions=` has told: public, and what is None, empty or False was not told.

    Attributes:
        count: About how many different numbers will be asked for: each cell of a cross table is one.
        sets: Names of attributes that will be asked together, sorted.
        dense: Whether there are dense ones among them, of which pairs of attributes say nothing.
        expected: What a list of questions asks of each set, once a domain has told.
        asked: The questions themselves, until a domain has told whether they can be asked; no file holds
            them.

    Raises:
        InvalidParameterError: If the count is no integer >= 1, or a set is none of different names.
    """

    count: int | None = None
    sets: tuple[tuple[str, ...], ...] = ()
    dense: bool = False
    expected: tuple[Expected, ...] = attrs.field(default=(), kw_only=True, metadata={"later": True})
    asked: tuple[Any, ...] = attrs.field(
        default=(), kw_only=True, eq=False, repr=False, metadata={"later": True}
    )

    def __attrs_post_init__(self) -> None:
        if self.count is not None:
            set_fields(self, count=checked_integer("questions", self.count, at_least=1, at_most=MOST))
        found = {_checked(one, _names(one)) for one in checked_list("questions", self.sets)}
        set_fields(self, sets=tuple(sorted(found)), dense=bool(self.dense))

    def written(self) -> "int | tuple[tuple[str, ...], ...] | Announcement":
        """Return what a ledger file holds: a count or sets alone as they were told, as in older files."""
        if not self.sets and not self.dense and self.count is not None:
            return self.count
        plain = self.count is None and not self.dense and not self.expected
        return self.sets if plain else attrs.evolve(self, asked=())

    def of_domain(self, domain: Domain) -> "Announcement":
        """Return what was told without the questions, each of which can be asked of this domain.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If one cannot, as where it is asked.
        """
        bound = []
        for one in self.asked:
            if isinstance(one, BoundMarginal):  # bound anew from its words, as a session does
                one = one.unbound
            bound.append(one.bind(domain))
        if not self.asked:
            return self
        # of sets beside them nobody says how they are asked
        listed = self.count is not None and not self.dense
        expected = expected_of(domain, bound, MOST_LEVELS) if listed else ()
        return attrs.evolve(self, asked=(), expected=expected)


Questions = int | Iterable[Announced] | Announcement  # as `questions=` takes them


def announcement(questions: object) -> Announcement:
    """Return what was told of the questions to come, or raise `InvalidParameterError`."""
    if isinstance(questions, Announcement):
        return questions
    if isinstance(questions, Real):
        return Announcement(checked_integer("questions", questions, at_least=1, at_most=MOST, remedy=REMEDY))
    told = checked_list("questions", questions, remedy=REMEDY)
    if not told:
        raise InvalidParameterError("questions must name attributes, got none; leave it out.")
    told = [dense(one) if _is_weights(one) else one for one in told]  # as a session takes them
    asked = [one for one in told if isinstance(one, Expression | Marginal | Query | BoundMarginal)]
    different = {one.key if isinstance(one, Query | BoundMarginal) else one for one in asked}
    named = [one for one in told if not (isinstance(one, Expression) and _is_array(one))]
    return Announcement(
        # of sets of attributes nobody says how many questions will join them
        len(different) if len(asked) == len(told) else None,
        tuple(_checked(one, _names(one)) for one in named),
        any(map(_is_dense, asked)),
        asked=tuple(asked),
    )


def _checked(told: object, names: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the names of a set of attributes, sorted, or raise `InvalidParameterError`."""
    if not names or not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        raise InvalidParameterError(
            "questions must be names of attributes, sets of different ones, or questions that name some, "
            f"got {shown(told)}; {REMEDY}."
        )
    return tuple(sorted(names))


def _names(told: object) -> tuple[Any, ...]:
    """Return the names of attributes that will be asked together."""
    if isinstance(told, str):
        return (told,)
    if isinstance(told, Expression):
        return told.names
    if isinstance(told, Query):
        return tuple(told.domain.names[axis] for axis in told.axes)
    if isinstance(told, BoundMarginal):
        return tuple(told.partition.domain.names[axis] for axis in told.partition.axes)
    if isinstance(told, Marginal):
        own = () if told.condition is None else told.condition.names
        return tuple(sorted({*told.names, *own}))
    return tuple(checked_list("questions", told, remedy=REMEDY))


def _is_weights(told: object) -> bool:
    """Whether this is an array of numbers: one of texts names attributes."""
    return isinstance(told, np.ndarray) and told.dtype.kind in "biuf"


def _is_array(expression: Expression) -> bool:
    """Whether an expression is over all cells, and so names no attribute."""
    return any(one.form == "dense" for one in _arrays(expression))


def _is_dense(question: object) -> bool:
    """Whether tables of pairs say nothing of a question, as far as can be told without the domain."""
    if not isinstance(question, Expression):
        return isinstance(question, Query) and is_dense(question)
    for one in _arrays(question):
        if one.form == "dense" and len(one.shape) == 1:  # of which nobody knows the attributes yet
            return True
        if one.form == "dense" or len(one.shape) > 2:
            domain = Domain.of({f"x{place}": size for place, size in enumerate(one.shape)})
            names = one.parts[:-1] and domain.names
            alone = Expression(one.form, (*names, one.parts[-1]), one.shape)
            if is_dense(alone.bind(domain)):
                return True
    return False


def _arrays(expression: Expression) -> list[Expression]:
    """Return the arrays of weights that an expression is made of."""
    found, left = list[Expression](), [expression]
    while left:
        one = left.pop()
        if one.form in ("dense", "joint"):
            found.append(one)
        elif one.form != "where":
            left += one.parts
    return found
