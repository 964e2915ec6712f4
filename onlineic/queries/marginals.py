"""Cross tables: one vector query, tested by its largest cell gap and released as a whole.

Replacing one record moves it between two cells, so the largest gap of a table has the sensitivity of one
count, and a hard table costs what one partition costs, however many cells it has.

Proof: docs/theory/queries.md, 1.6.
"""

import math
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import InvalidQueryError, TooLargeError, set_fields, shown
from onlineic.queries.cuts import Cut, is_long
from onlineic.queries.expressions import Expression
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import immutable, spread
from onlineic.slips import public

MOST_CELLS = 2**16  # of a cross table and its rest


@final
@attrs.frozen
class Marginal:
    """A cross table as written: attributes, and which records count."""

    names: tuple[str, ...]
    condition: Expression | None = None

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.names))
        return (
            f"marginal({names})" if self.condition is None else f"marginal({names}, where={self.condition!r})"
        )

    def bind(self, domain: Domain) -> "BoundMarginal":
        """Return the table over a domain.

        Raises
        ------
        InvalidQueryError
            If a name is unknown or the condition is not a conjunction of 0/1 conditions.
        TooLargeError
            If the table, cut by its condition, has more than 2^16 blocks.
        """
        check_domain(domain)
        keys = [domain.axis(name) for name in self.names]
        _check_blocks(math.prod(domain.shape[axis] for axis in keys))
        classes: dict[int, Cut | Ints] = {axis: np.arange(domain.shape[axis]) for axis in keys}
        inside: dict[int, Ints] = {}  # of axes that the condition cuts: whether each class counts
        if self.condition is not None:
            query = _checked(self.condition).bind(domain)
            if query.grid_bits or query.constant is not None or (query.complement and len(query.axes) > 1):
                raise InvalidQueryError(
                    "the condition of a marginal must be a conjunction of 0/1 conditions that some cells "
                    "meet and some do not; ask the cells one by one, or leave it out."
                )
            for factor in query.factors:
                if len(factor.axes) > 1:
                    raise InvalidQueryError(
                        "the condition of a marginal must be a conjunction of conditions on one attribute "
                        "each; ask the cells one by one."
                    )
                axis = factor.axes[0]
                if is_long(domain.attributes[axis]):  # no key: its codes alone were too many
                    classes[axis] = cut = Cut.at(domain.shape[axis], np.append(0, factor.changes(domain)[0]))
                    inside[axis] = factor.at(cut.firsts) ^ int(query.complement)
                    continue
                weights = factor.weights(domain)
                weights = 1 - weights if query.complement else weights
                if axis in classes:
                    inside[axis] = weights
                else:
                    classes[axis], inside[axis] = weights, np.array([0, 1])
        axes = tuple(sorted(classes))
        partition = Partition(domain, axes, tuple(classes[axis] for axis in axes))
        blocks = partition.blocks
        _check_blocks(blocks)
        index = np.arange(blocks).reshape(partition.shape)
        counts = np.ones(partition.shape, dtype=bool)
        for axis, kept in inside.items():
            counts &= spread(kept.astype(bool), (axes.index(axis),), len(axes))
        # of an axis that is no key, the cells of the table are those of the class that counts
        counted = {axis: np.flatnonzero(kept) for axis, kept in inside.items() if axis not in keys}
        if any(len(kept) > 1 for kept in counted.values()):  # of a long attribute, what is not in a range
            raise InvalidQueryError(
                "the condition of a marginal must be one range of a long attribute, got all but one; ask the "
                "table of all records and that of the range."
            )
        place = tuple(slice(None) if axis in keys else int(counted[axis][0]) for axis in axes)
        order = np.argsort(np.argsort(keys))
        cells = np.ascontiguousarray(np.where(counts, index, -1)[place].transpose(order))
        return BoundMarginal(self.names, partition, cells, self.condition)


def _check_blocks(blocks: int) -> None:
    if blocks > MOST_CELLS:
        raise TooLargeError(
            f"a marginal must have at most {MOST_CELLS:,} blocks, got {blocks:,}; use fewer attributes."
        )


@public
def marginal(*names: str, where: Expression | None = None) -> Marginal:
    """Return the cross table of these attributes, among the records that satisfy `where`.

    Parameters
    ----------
    *names : str
        One or more different attributes; the table's axes, in this order.
    where : Expression, optional
        A conjunction of 0/1 conditions on one attribute each.

    Examples
    --------
    >>> marginal("sex", "income")
    marginal('sex', 'income')
    """
    if len(names) == 1 and isinstance(names[0], list | tuple) and names[0]:
        raise InvalidQueryError(
            f"marginal must name one or more different attributes, got a {type(names[0]).__name__} of them; "
            f"write marginal({', '.join(map(shown, names[0][:9]))})."
        )
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidQueryError(
            f"marginal must name one or more different attributes, got {shown(list(names))}; write "
            "marginal('age', 'sex')."
        )
    return Marginal(names, None if where is None else _checked(where))


def _checked(condition: object) -> Expression:
    """Return an expression if it is one: a subclass could bring its own way to bind."""
    if type(condition) is not Expression:
        raise InvalidQueryError(
            f"where must be a query made by where(...), got a {type(condition).__name__}; write "
            "where=where(attribute=condition)."
        )
    return condition


@final
@attrs.frozen(eq=False, repr=False)
class BoundMarginal:
    """A cross table over a domain.

    Attributes
    ----------
    names : tuple of str
    partition : Partition
        Of the whole domain; its blocks hold the table's cells, and the rest.
    cells : int64 array, shape of the table
        Block of every cell; -1 for one that the condition excludes, whose value is 0 whatever the data.
    condition : Expression or None
        As it was written.
    """

    names: tuple[str, ...]
    partition: Partition
    cells: Ints
    condition: Expression | None = None
    complement, constant, rounding = False, None, 0.0  # of a query with these: asked and remembered alike

    def __attrs_post_init__(self) -> None:
        set_fields(self, cells=immutable(self.cells))

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for equal tables."""
        return ("marginal", *self.names, *self.partition.key, self.cells.tobytes())

    @property
    def written(self) -> str:
        """The table as `marginal` takes it."""
        return repr(Marginal(self.names, self.condition))

    @cached_property
    def labels(self) -> dict[str, tuple[Any, ...]]:
        """By attribute the labels along its axis of the table, None for the missing cell."""
        kinds = ((name, self.partition.domain.attribute(name)) for name in self.names)
        return {name: tuple(kind.label(code) for code in range(kind.size)) for name, kind in kinds}

    def __repr__(self) -> str:
        return f"BoundMarginal({self.written})"

    def largest_gap(self, counts: Ints, guess: "Guess") -> int:
        """Return how far the count of an asked block is from its guess, at most: PRIVATE."""
        asked = np.unique(self.cells[self.cells >= 0])
        return int(np.abs(counts - np.array(guess, np.int64))[asked].max())

    def table(self, blocks: Floats) -> Floats:
        """Return the cells of the table from the values of all blocks."""
        return np.where(self.cells >= 0, np.append(np.asarray(blocks, np.float64), 0.0)[self.cells], 0.0)


Question = Query | BoundMarginal
# of a hypothesis: n 2^k times its answer to a query, or to each block of a table
Guess = int | tuple[int, ...]
