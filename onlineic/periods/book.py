"""The root ledger of a table that grows: blocks, nodes over them, and the account of each block.

A fold over its records, and the covers of a range by nodes: public facts alone.

Proof: docs/theory/periods.md, 13.3, 13.6, 13.7.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.blocks import BlockAccount
from onlineic.accounting.budget import Charge
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, shown
from onlineic.ledger.records import BlockBegun, CountPaid, NodeOpened, Noted, Record
from onlineic.noise.laws import DiscreteLaplace
from onlineic.periods.calendar import Calendar
from onlineic.queries.counted import Counted
from onlineic.queries.query import Query

MOST_AXES = 4  # of a conjunction whose estimates are added
ROUNDED = Fraction(1, 10**6)  # of a charge: what another machine works out may be less by its rounding


@final
@attrs.frozen
class Counting:
    """How the private number of records of every block is released: once, with Laplace noise.

    Attributes:
        epsilon: Of each number.
        n_at_most: The most records of a block, from public knowledge.
        scale: Of the noise, in records.
        charge: To be paid by its block before it is drawn.
    """

    epsilon: float
    n_at_most: int
    scale: Fraction
    charge: Charge


@final
@attrs.frozen
class PeriodsBook:
    """Blocks and nodes of a root ledger, and what every block has left.

    Attributes:
        shares: Of every level, the part of a block's capacity that one node of it draws.
        counting: How numbers of records are released, where they are private.
        blocks: In order of time.
        known: By file of a node, how far it was when the root last heard of it.
    """

    calendar: Calendar
    shares: tuple[Fraction, ...]
    account: BlockAccount
    counting: Counting | None = None
    blocks: Mapping[str, BlockBegun] = attrs.field(factory=dict)
    nodes: Mapping[str, NodeOpened] = attrs.field(factory=dict)
    known: Mapping[str, Noted] = attrs.field(factory=dict)

    def after(self, record: Record) -> "PeriodsBook":
        """Return the book after one more record.

        Raises:
            InvalidParameterError, BudgetExceededError: If it does not belong there: a block that is there or
                out of order, a node over blocks that are not, or one that they cannot pay.
        """
        if isinstance(record, CountPaid):
            self.check_next(record.label)
            self._check_paid(record)
            account = self._begun(record.label).drawn([record.label], record.charge)
            return attrs.evolve(self, account=account)
        if isinstance(record, BlockBegun):
            self.check_next(record.label)
            self._check_counted(record)
            blocks = {**self.blocks, record.label: record}
            return attrs.evolve(self, blocks=blocks, account=self._begun(record.label))
        if isinstance(record, NodeOpened):
            covered = self.check_node(record.label)
            if covered != record.blocks:
                raise InvalidParameterError(
                    f"blocks must be those of {shown(record.label)} that have records, got others; leave it."
                )
            account = self.account.drawn(record.blocks, record.charge)
            return attrs.evolve(self, nodes={**self.nodes, record.label: record}, account=account)
        if isinstance(record, Noted):
            return self.after_all([record])
        return self

    def _begun(self, label: str) -> BlockAccount:
        """Return the accounts with that of the block, which may have paid for its number of records."""
        return self.account if label in self.account.blocks else self.account.begun(label)

    def _check_paid(self, record: CountPaid) -> None:
        held, due = record.charge, None if self.counting is None else self.counting.charge
        if (
            due is None
            or (held.unit, held.order) != (due.unit, due.order)
            or held.amount < (1 - ROUNDED) * due.amount
        ):
            raise InvalidParameterError(
                f"{record.label} must pay for its number of records, where that is private, what its noise "
                f"costs, got {held.amount} {held.unit}; restore the file from a backup."
            )

    def _check_counted(self, record: BlockBegun) -> None:
        paid = record.label in self.account.blocks
        if (record.drawn is not None) is not (self.counting is not None and record.n > 0) or (
            record.drawn is not None and not paid
        ):
            raise InvalidParameterError(
                f"{record.label} must have a number of records as public as those of the others, and paid "
                "for where it is private, got another; leave it."
            )

    def after_all(self, records: Iterable[Record]) -> "PeriodsBook":
        """Return the book after these records."""
        book, noted = self, dict[str, Noted]()
        for record in records:
            if isinstance(record, Noted):  # of which there are many: all go into one copy
                noted[record.file] = record
            else:
                book = book.after(record)
        return attrs.evolve(book, known={**book.known, **noted}) if noted else book

    def check_next(self, label: str) -> None:
        """Raise `InvalidParameterError` unless the next block may have this label."""
        finest = self.calendar.finest
        if self.calendar.level(label) != finest:
            raise InvalidParameterError(
                f"label must be that of a {finest}, the finest level, got {shown(label)}; coarser periods "
                "are closed by close(label)."
            )
        if label in self.blocks:
            raise InvalidParameterError(
                f"label must be that of a new {finest}, got {shown(label)}, which is there; rows that came "
                f"late go into the next {finest}: add(.., late=True)."
            )
        if self.blocks:
            due = self.calendar.following([*self.blocks][-1])
            if label != due:
                raise InvalidParameterError(
                    f"label must be the next {finest}, {shown(due)}, got {shown(label)}; periods begin in "
                    f"order, one without records by add({shown(due)}, None)."
                )

    def check_node(self, label: str) -> tuple[str, ...]:
        """Return the blocks with records over which a node of this label is to be opened.

        Raises:
            InvalidParameterError: If it is open, a block in it has not begun, or none has records.
        """
        level = self.calendar.level(label)
        if label in self.nodes:
            raise InvalidParameterError(
                f"label must be that of a {level} that is not open, got {shown(label)}; ask it: "
                f"periods[{shown(label)}]."
            )
        inside = self.calendar.within(label, self.calendar.finest)
        missing = [one for one in inside if one not in self.blocks]
        if missing:
            raise InvalidParameterError(
                f"{label} must have all of its {len(inside)} {self.calendar.finest}s, got none of "
                f"{missing[0]}; add it first, one without records by add({shown(missing[0])}, None)."
            )
        covered = tuple(one for one in inside if self.blocks[one].n)
        if not covered:
            raise InvalidParameterError(f"{label} must have records, got none; there is nothing to open.")
        return covered

    def share(self, label: str) -> Fraction:
        """Return the part of a block's capacity that the node of this label draws."""
        return self.shares[self.calendar.levels.index(self.calendar.level(label))]

    def rows(self, blocks: int) -> int:
        """Return at how many rows of one person a node over so many blocks is priced."""
        return self.account.rows_in(blocks)

    def part(self, label: str, blocks: int) -> Fraction:
        """Return the part of the capacity that a node over so many blocks may spend by itself.

        It is its share, r/p of it where a person has p rows in all and r of them in the node: each block
        draws p/r times that.
        """
        return self.share(label) * Fraction(self.rows(blocks), self.account.rows)

    def left_for(self, label: str, blocks: int) -> Fraction:
        """Return the part of the capacity that the session of a node may spend, its number paid before.

        A block is counted once, or once more where a crash lost the number: its own session has the rest of
        its share. A node over several blocks is told theirs.
        """
        part = self.part(label, blocks)
        account = self.account.blocks.get(label)  # of a block before its session: what its number cost
        if account is None or not account.spent:
            return part
        rows = Fraction(self.rows(1), self.account.rows)
        return max(Fraction(0), part - rows * account.spent / account.capacity)

    def variance(self, label: str) -> Fraction:
        """Return the variance of a node's noise, in squared records, up to one factor of all nodes.

        At one Renyi order it is that of r rows over what the node may spend; where epsilons add, squared.
        """
        blocks = len(self.nodes[label].blocks)
        rows, part = self.rows(blocks), self.part(label, blocks)
        return rows**2 / (part**2 if self.account.whole.order is None else part)

    def span(self, since: object, until: object) -> tuple[str, ...]:
        """Return the blocks from one period to another, both included and of any level; None is an end.

        Raises:
            InvalidParameterError: If one is no period, ends are swapped, or a block between them has not
                begun.
        """
        if not self.blocks:
            raise InvalidParameterError("periods must have begun to be asked, got none; add one.")
        labels, finest = [*self.blocks], self.calendar.finest
        ends = []
        for name, label, place in (("since", since, 0), ("until", until, -1)):
            if label is None:
                ends.append(labels[place])
                continue
            self.calendar.level(label)
            end = self.calendar.within(str(label), finest)[place]
            if end not in self.blocks:
                raise InvalidParameterError(
                    f"{name} must lie in what was added, {labels[0]} to {labels[-1]}, got {shown(label)}; "
                    "ask for that."
                )
            ends.append(end)
        first, last = labels.index(ends[0]), labels.index(ends[1])
        if last < first:
            raise InvalidParameterError(
                f"since must not come after until, got {shown(since)} and {shown(until)}; swap them."
            )
        return tuple(labels[first : last + 1])

    def cover(self, blocks: Sequence[str]) -> tuple[str, ...]:
        """Return the nodes, in order, of least predicted `variance` that hold consecutive blocks once.

        Months of half the capacity are worth a year of the other half each, so one node is better than
        several; where a person has a row in every month it is no better than they are.
        """
        places = {label: place for place, label in enumerate(blocks)}
        ends: dict[int, list[tuple[int, str]]] = {}  # by the place after its last block: where it begins
        for label in self.nodes:
            inside = self.calendar.within(label, self.calendar.finest)
            if inside[0] in places and inside[-1] in places:
                ends.setdefault(places[inside[-1]] + 1, []).append((places[inside[0]], label))
        best: list[tuple[Fraction, int, tuple[str, ...]]] = [(Fraction(0), 0, ())]
        for stop in range(1, len(blocks) + 1):
            found = []
            for start, label in ends.get(stop, []):
                variance, count, nodes = best[start]
                found.append((variance + self.variance(label), count + 1, (*nodes, label)))
            if not self.blocks[blocks[stop - 1]].n:
                found.append(best[stop - 1])  # nobody is in it
            best.append(min(found, key=lambda one: one[:2]))
        return best[-1][2]

    def n(self, label: str) -> int:
        """Return the public number of records of a node, at least 1."""
        return self.number(self.nodes[label].blocks)

    def number(self, blocks: Iterable[str]) -> int:
        """Return the public number of records of some blocks: at least 1, if one of them has any.

        Numbers with noise are added as they were drawn: of each that is raised to 1 the sum would grow.
        """
        held = [self.blocks[one] for one in blocks if self.blocks[one].n]
        if self.counting is None or not held:
            return sum(one.n for one in held)
        total = sum(one.n if one.drawn is None else one.drawn for one in held)
        return min(max(1, total), self.counting.n_at_most * len(held))

    def counted(self, blocks: Sequence[str], beta: float) -> Counted | None:
        """Return that number, whose bound fails with probability beta; None: it is public."""
        if self.counting is None:
            return None
        draws = sum(1 for one in blocks if self.blocks[one].n)
        return Counted(self.number(blocks), self.counting.scale, beta, draws=draws)

    def n_bound(self, blocks: Sequence[str], beta: float) -> int:
        """Return how far the numbers of some of these blocks, each by itself, may be off in all.

        Theory 13.7.

        Args:
            blocks: Consecutive ones.
            beta: Probability with which this fails for some such sequence, all that will ever be taken
                together.
        """
        draws = sum(1 for one in blocks if self.blocks[one].n)
        if self.counting is None or not draws:
            return 0
        end = [*self.blocks].index(blocks[-1]) + 1
        share = beta / (float(end) ** 2 * (end + 1))
        radius = DiscreteLaplace(self.counting.scale).excess_radius(0, draws, share, sides=2)
        return math.floor(radius) + draws  # of a block of nobody one record may be said


def range_nats(calendar: Calendar, blocks: Sequence[str], end: int, domain: Domain, query: Query) -> float:
    """Return ln(1/share) less ln(1/beta) for the share of beta that one conjunction over one range gets.

    Theory 13.6.

    Args:
        blocks: Of the range.
        end: At least 1. Number of its last block among all, from 1.
        query: One with a `box` over at most four attributes, or the complement of one.
    """
    axes = len(domain.shape)
    sets = sum(math.comb(axes, held) for held in range(1, MOST_AXES + 1))
    nats = math.log(float(end) ** 2 * (end + 1)) + calendar.coarser(blocks) * math.log(2.0)
    for axis in query.axes:
        size = domain.shape[axis]
        nats += math.log(size * (size + 1) / 2)
    return nats + math.log(sets)
