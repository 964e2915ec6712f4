"""A second instalment of tables, by what was asked: of three attributes at a time, or the pairs once more.

The first tables hold pairs. Whether interactions of three attributes are worth a part of the budget only
the questions tell. So a tenth of what pairs would cost is kept back until a few questions joined three
attributes, and buys all triples of the attributes in them; or until many came without, and then buys the
pairs once more. What is bought, when and at what noise is a function of the plan, of the questions that were
tested and of what releases have cost: no answer has a part in it. Bounds rest on the first tables alone
(theory 6.7).
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.budget import Charge
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError
from onlineic.ledger.records import Easy, EasyBatch, Hard, Opened, Record
from onlineic.plan.defaults import (
    JOINT_QUESTIONS,
    LATER_SHARE,
    MOST_ATTRIBUTES,
    MOST_NOISE,
    PATIENCE,
    TRIPLE_PARTS,
    Shares,
)
from onlineic.plan.first_tables import FirstTables, least_gaussian
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.partitions import Partition, PartitionRule
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.gumbel import GumbelSparse

LEAST_STREAM = 2 * PATIENCE  # questions, from which on it pays to wait for what is asked


@final
@attrs.frozen
class Asked:
    """What the tests of a record have asked, as far as later tables go by it.

    Attributes
    ----------
    releases : int
        How many releases of several tables there were.
    bought : Fraction
        What they have cost, in the unit of the account.
    tested, joint : int
        Questions that were tested after the first tables, and those that join three attributes or more.
    axes : frozenset of int
        Of the joint ones.
    """

    releases: int = 0
    bought: Fraction = Fraction(0)
    tested: int = 0
    joint: int = 0
    axes: frozenset[int] = frozenset()

    def with_release(self, record: Opened) -> "Asked":
        """Return the same with one more release, which counts whatever it was charged."""
        return attrs.evolve(self, releases=self.releases + 1, bought=self.bought + record.charge.amount)

    def along(self, question: Question) -> "Asked":
        """Return the same with one more question that was tested."""
        held = question.partition if isinstance(question, BoundMarginal) else question
        axes = [axis for axis in held.axes if held.domain.shape[axis] > 1]
        joins = len(axes) >= 3
        return attrs.evolve(
            self,
            tested=self.tested + 1,
            joint=self.joint + joins,
            axes=self.axes | {*axes} if joins else self.axes,
        )


@final
@attrs.frozen
class LaterTables:
    """When and what a second release of tables buys.

    Attributes
    ----------
    charge : Charge
        Of all of them together, whichever they are.
    first : Fraction
        What the first tables cost, after which they are bought: no others, and only once.
    joint : int
        Questions of three attributes or more, from which on triples are bought.
    patience : int
        Questions from which on, if that has not come, the pairs are bought once more.
    parts : int
        Into which an ordered attribute of more codes is cut in a triple.
    neighbours : Neighbours
        By which they move.

    Raises
    ------
    InvalidParameterError
        If the charge is not one of Gaussian noise.
    """

    charge: Charge
    first: Fraction
    joint: int = JOINT_QUESTIONS
    patience: int = PATIENCE
    parts: int = TRIPLE_PARTS
    neighbours: Neighbours = attrs.field(
        default=REPLACE_ONE, kw_only=True, repr=False, metadata={"later": True}
    )

    def __attrs_post_init__(self) -> None:
        if self.charge.order is None:
            raise InvalidParameterError("charge must be in ticks for Gaussian tables, got epsilon.")

    def waits(self, asked: Asked) -> bool:
        """Whether the first tables are bought, and these not."""
        return asked.releases == 1 and asked.bought == self.first

    def due(self, asked: Asked) -> bool:
        """Whether the questions so far tell what to buy."""
        return self.waits(asked) and (asked.joint >= self.joint or asked.tested >= self.patience)

    def behind(self, asked: Asked, record: Record) -> Asked:
        """Return what was asked with one more record: questions count until they tell what to buy."""
        if isinstance(record, Opened):
            return asked.with_release(record)
        questions: Iterable[Question] = ()
        if isinstance(record, EasyBatch):
            questions = record.queries
        elif isinstance(record, Easy | Hard):
            questions = (record.query,)
        for question in questions if self.waits(asked) else ():
            if self.due(asked):
                break
            asked = asked.along(question)
        return asked

    def due_at(self, asked: Asked, questions: Iterable[Question]) -> int | None:
        """Return after how many of these questions, if all are tested, it is due; None: not yet."""
        for place, question in enumerate(questions):
            asked = asked.along(question)
            if self.due(asked):
                return place + 1
        return None

    def tables(self, asked: Asked, first: FirstTables) -> FirstTables | None:
        """Return what is bought after these questions, or None; its noise is the least that is paid."""
        order = self.charge.order
        if not self.due(asked) or order is None:
            return None
        pairs = [target for target in first.targets if len(target.axes) > 1]
        joined = asked.joint >= self.joint
        targets = triples(pairs[0].domain, sorted(asked.axes), self.parts) if joined else pairs
        sigma = least_gaussian(order, self.charge.amount / len(targets), self.neighbours)
        if sigma is None:
            return None
        scales = (sigma,) * len(targets)
        return FirstTables(tuple(targets), scales, self.charge, neighbours=self.neighbours)


def triples(domain: Domain, axes: Sequence[int], parts: int) -> list[Partition]:
    """Return the table of every three of these axes, a longer ordered one cut into so many parts."""
    rule = PartitionRule(parts=parts, fine=parts)
    return [rule.table(domain, held) for held in itertools.combinations(axes, 3)]


def kept_share(mechanism: GumbelSparse, domain: Domain, shares: Shares, questions: int) -> Fraction:
    """Return the share of the budget that pairs leave to later tables, 0 where nothing is gained by them.

    Of many attributes there are too many triples for one share, and a table whose blocks have more noise in
    sum than there are records says little.
    """
    axes = [axis for axis, size in enumerate(domain.shape) if size > 1]
    if not 3 <= len(axes) <= MOST_ATTRIBUTES or questions < LEAST_STREAM:
        return Fraction(0)
    share, all_of_them = LATER_SHARE * shares.pairs, triples(domain, axes, TRIPLE_PARTS)
    most = share * mechanism.account().capacity / len(all_of_them)
    sigma = least_gaussian(mechanism.order, most, mechanism.neighbours)
    blocks = max(table.blocks for table in all_of_them)
    return share if sigma is not None and blocks * sigma <= MOST_NOISE * mechanism.n else Fraction(0)


def later_tables(mechanism: NumericSparse, first: FirstTables, share: Fraction) -> LaterTables:
    """Return the tables that wait until after the first ones, at this share of the capacity."""
    account = mechanism.account()
    charge = Charge(
        Fraction(math.floor(share * account.capacity)), "later tables", account.unit, account.order
    )
    return LaterTables(charge, first.charge.amount, neighbours=mechanism.neighbours)


def together(first: FirstTables, later: LaterTables | None) -> Charge:
    """Return the charge of both."""
    amount = first.charge.amount + (Fraction(0) if later is None else later.charge.amount)
    return attrs.evolve(first.charge, amount=amount)
