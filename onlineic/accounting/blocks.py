"""An account a block: disjoint blocks of records, each with the whole capacity, and what draws on several.

A node is whatever is released of the union of some blocks. It takes its charge from every block that it
covers, so that a year takes once from each of its months, and months take nothing from one another. Where a
person has rows in several blocks, each of them pays for the person's other ones too.

Proof: docs/theory/periods.md, 13.1, 13.3.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.budget import Charge, Filter
from onlineic.errors import (
    BudgetExceededError,
    InvalidParameterError,
    check_kind,
    checked_integer,
    set_fields,
    shown,
)


@final
@attrs.frozen
class BlockAccount:
    """Exact accounts of disjoint blocks: what all nodes draw from one block stays <= its capacity.

    So the charges of all nodes over the blocks of one person stay <= one capacity, in all.

    Theory 13.1, and 13.3 for persons. McSherry (2009), Theorem 4, is parallel composition of mechanisms that
    are fixed in advance.

    Args:
        whole: What every block has when it begins: capacity, unit and Renyi order, nothing spent. Fixed
            before the first release of any block.
        blocks: The account of every block that began, in order.
        rows: At least 1. p, the most rows of one person, at most one of them in each block.

    Raises:
        InvalidParameterError: If `whole` is no filter, or one of which something is spent, or `rows` is below
            1.
    """

    whole: Filter
    blocks: Mapping[str, Filter] = attrs.field(factory=dict)
    rows: int = 1

    def __attrs_post_init__(self) -> None:
        set_fields(self, rows=checked_integer("rows", self.rows, at_least=1))
        check_kind("whole", self.whole, Filter, remedy="write Filter(capacity)")
        if self.whole.spent:
            raise InvalidParameterError(
                f"whole must be unspent, got spent={self.whole.spent}; give what every block begins with."
            )

    def begun(self, label: str) -> "BlockAccount":
        """Return the accounts with one more block, of which nothing is spent.

        Raises:
            InvalidParameterError: If there is a block of this label: it would get a second capacity.
        """
        if label in self.blocks:
            raise InvalidParameterError(
                f"label must be of a new block, got {shown(label)}, which there is; a block begins once."
            )
        return attrs.evolve(self, blocks={**self.blocks, label: self.whole})

    def rows_in(self, blocks: int) -> int:
        """Return r = min(p, m), the most rows of one person in so many blocks: its node is priced at them."""
        return min(self.rows, checked_integer("blocks", blocks, at_least=1))

    def drawn(self, labels: Iterable[str], charge: Charge) -> "BlockAccount":
        """Return the accounts after a node over the union of these blocks: each pays p/r times its charge.

        Args:
            labels: Every block of the union once: what holds a block twice moves twice as far.
            charge: The most that the node ever spends, priced at `rows_in` of its blocks: its steps are those
                of a table of which so many rows are replaced at once. It is taken whole when the node begins.

        Raises:
            InvalidParameterError: If there is no block, one is unknown or named twice, or the charge counts
                something else.
            BudgetExceededError: If one of them cannot pay; nothing is spent of any.
        """
        covered = tuple(labels)
        if not covered or len({*covered}) < len(covered):
            raise InvalidParameterError(
                f"labels must name every block of a union once, got {shown(list(covered), 100)}; leave out "
                "what is there twice."
            )
        after = dict(self.blocks)
        part = Fraction(self.rows, self.rows_in(len(covered)))
        charge = attrs.evolve(charge, amount=part * charge.amount)
        for label in covered:
            if label not in after:
                raise InvalidParameterError(
                    f"labels must be those of blocks, got {shown(label)}; let it begin first."
                )
            if not after[label].affords(charge):
                raise BudgetExceededError(
                    f"every block must have left what a node over it draws, got {charge.amount} for "
                    f"{charge.event} with {after[label].left} left of {shown(label)}; nothing was spent: "
                    "open nodes of the planned levels only."
                )
            after[label] = after[label].charge(charge)
        return attrs.evolve(self, blocks=after)

    def left(self, label: str) -> Fraction:
        """Return the part of its capacity that a block has left, in [0, 1].

        Raises:
            InvalidParameterError: If there is no such block.
        """
        if label not in self.blocks:
            raise InvalidParameterError(f"label must be that of a block, got {shown(label)}; let it begin.")
        return self.blocks[label].left / self.whole.capacity if self.whole.capacity else Fraction(0)
