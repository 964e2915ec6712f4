"""Tables to buy together, what they cost, and those that are settled beforehand: all cells, or levels of one.

Like every release they are charged before they are drawn.

Proof: docs/theory/session.md, 4.9a.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.composition import zcdp_epsilon, zcdp_rho
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.accounting.renyi import TICK, gaussian_charge, laplace_charge
from onlineic.accounting.rounding import float_up
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, checked_ratio, set_fields
from onlineic.interactions.sizes import Key, table_of
from onlineic.ledger.records import BoughtTables, Ledger
from onlineic.noise.sources import RATIO_LIMIT, SIGMA_LIMIT, Noise, scale_at_least
from onlineic.plan.defaults import (
    BRANCH,
    FLAT,
    ROOT,
)
from onlineic.plan.numbers import NUMBER_BITS, least_number, number_law, number_price
from onlineic.queries.cuts import Cut, grid_of, long_axes
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.partitions import Measurement, Partition, one_way
from onlineic.queries.query import Query
from onlineic.sparse.base import NumericSparse, steps_down
from onlineic.sparse.exponential import ExponentialSparse
from onlineic.sparse.gumbel import GumbelSparse

RECORD_PARTS = (
    16  # in which Gaussian noise is drawn: whole records waste up to a tenth of it where it is small
)
CLASSES = {Partition, Query}  # of what a rule hands over
MOST_CELLS = 2**22  # of a table of all: more would take gigabytes after the read


@final
@attrs.frozen
class Purchase:
    """Tables and numbers to release together, and what they cost.

    Attributes:
        scales: Of each one's noise, records: of a table sigma of a discrete Gaussian on the multiples of one
            over its own denominator, or the scale of a discrete Laplace on whole records; of a number the
            same on the multiples of 2^-8, to which its count is rounded down.
        charge: Of all of them: a neighbour moves each, by L1 and squared L2, so their costs add; each is
            order * L2 / (2 sigma^2) in Renyi divergence, L1 / scale in epsilon, or the Renyi divergence of
            that. A number moves by its own sensitivity.
        pure: Whether the noise is Laplace.
        neighbours: By which they move.

    Raises:
        InvalidParameterError: If they cost more than their charge: no plan that is read from a file may buy
            them for less.
    """

    targets: tuple[Partition | Query, ...]
    scales: tuple[Fraction, ...]
    charge: Charge
    pure: bool = False
    neighbours: Neighbours = attrs.field(
        default=REPLACE_ONE, kw_only=True, repr=False, metadata={"later": True}
    )

    def __attrs_post_init__(self) -> None:
        scales = tuple(checked_ratio("scales", scale, above=0.0) for scale in self.scales)
        set_fields(self, targets=tuple(self.targets), scales=scales, pure=bool(self.pure))
        if len(self.targets) != len(self.scales) or self.cost > self.charge.amount:
            cost = float_up(self.cost) if self.charge.order is None else math.ceil(self.cost)
            raise InvalidParameterError(
                f"charge must pay for {len(self.targets)} tables at {len(self.scales)} scales, which cost "
                f"{cost}, got {self.charge.amount} {self.charge.unit}; charge what they cost, or take "
                "larger scales."
            )

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The tables among them."""
        return tuple(one for one in self.targets if isinstance(one, Partition))

    @property
    def cost(self) -> Fraction:
        """What they cost by their scales, wherever they come, in the unit of the charge."""
        order = self.charge.order
        if order is None:
            if not self.pure:
                raise InvalidParameterError("charge must be in ticks for Gaussian tables, got epsilon.")
        elif self.pure:
            if any(isinstance(target, Query) for target in self.targets):
                raise InvalidParameterError(
                    "charge must be in epsilon for Laplace noise on a number, got ticks; draw Gaussian noise."
                )
            return _laplace_price(order, self.scales, self.neighbours)
        return sum(map(self._price, self.targets, self.scales), Fraction(0))

    def _price(self, target: Partition | Query, scale: Fraction) -> Fraction:
        """Return what one of them costs; Laplace noise in epsilon."""
        order = self.charge.order
        if isinstance(target, Query):
            return number_price(order, target, scale, self.neighbours)
        if order is None:
            return self.neighbours.table_l1() / scale
        return _gaussian_price(order, scale, self.neighbours)

    def noise(self, scale: Fraction, blocks: int, noise: Noise) -> tuple[Ints, int]:
        """Return fresh noise for so many blocks, and in how many parts of a record it is."""
        if self.pure:
            return noise.discrete_laplace(scale, blocks), 1
        sigma, unit = scale.as_integer_ratio()
        return noise.discrete_gaussian(sigma, blocks), unit

    @property
    def drawable(self) -> bool:
        """Whether the samplers draw noise of these scales."""
        units = [1 << NUMBER_BITS if isinstance(target, Query) else 1 for target in self.targets]
        scales = [scale * unit for scale, unit in zip(self.scales, units, strict=True)]
        if self.pure:
            return all(max(scale.as_integer_ratio()) < RATIO_LIMIT for scale in scales)
        whole = all(unit == 1 or scale.denominator == 1 for scale, unit in zip(scales, units, strict=True))
        return whole and all(scale.numerator <= SIGMA_LIMIT for scale in scales)

    def measure(self, counts: Iterable[Any], noise: Noise, n: int) -> tuple[Measurement, ...]:
        """Return the noisy blocks or number of all, fractions of n records, from exact counts (PRIVATE)."""
        released = []
        held = zip(self.targets, self.scales, self.deviations(n), counts, strict=True)
        for target, scale, deviation, exact in held:
            if isinstance(target, Query):
                law = number_law(scale, self.pure)
                on_grid = steps_down(int(exact), target.grid_bits, NUMBER_BITS)
                values = (on_grid + law.draw(noise, 1)) / (n << NUMBER_BITS)
            else:
                drawn, unit = self.noise(scale, target.blocks, noise)
                values = (exact * unit + drawn) / (n * unit)
            released.append(Measurement(target, values, deviation))
        return tuple(released)

    def deviations(self, n: int) -> tuple[float, ...]:
        """Return the standard deviation of the noise in each one's blocks, fraction of n records."""
        unit = math.sqrt(2.0) if self.pure else 1.0
        return tuple(unit * float(scale) / n for scale in self.scales)

    def released_by(self, record: BoughtTables, n: int) -> bool:
        """Return whether a record holds these tables, with this noise at this charge."""
        targets = tuple(one.target for one in record.measurements)
        scales = tuple(one.scale for one in record.measurements)
        return (self.targets, self.charge, self.deviations(n)) == (targets, record.charge, scales)


def over_codes(tables: Purchase, domain: Domain) -> Purchase:
    """Return tables of the domain that was planned with, as tables of the domain itself.

    The codes of a long attribute are the parts of its grid there.
    """
    long = long_axes(domain)
    if not long:
        return tables
    targets = []
    for target in tables.partitions:
        cuts = [
            Cut.at(domain.shape[axis], grid_of(domain.attributes[axis]).firsts[cut.firsts])
            if axis in long
            else cut
            for axis, cut in zip(target.axes, target.cuts, strict=True)
        ]
        targets.append(Partition(domain, target.axes, cuts))
    return attrs.evolve(tables, targets=tuple(targets))


def checked_tables(named: object) -> Purchase:
    """Return what a rule names, if it and its parts are of the classes of this package.

    A subclass may say one thing when it is priced, and another when it is charged or drawn.
    """
    if type(named) is Purchase and type(named.charge) is Charge:
        kinds = {*map(type, named.targets)}
        if kinds and kinds <= CLASSES:
            return named
    raise InvalidParameterError(
        "purchases must name a Purchase of a Partition or a Query or more, got a "
        f"{type(named).__name__}, or parts of other classes; nothing was spent: mend the rule."
    )


WayKind = Literal["test", "number", "tables"]


@final
@attrs.frozen
class Way:
    """One way to answer a question within its wish.

    Attributes:
        price: What it costs, in the unit of the account: of a test, if it is hard.
        expected: What it is expected to cost: of a test, the price times the chance of a hit.
        taken: Whether it is the one that would be taken.
    """

    kind: WayKind
    price: Fraction
    expected: float
    taken: bool


def epsilon_of(amount: Fraction, account: Filter, delta: float) -> float:
    """Return the epsilon that a charge is worth by itself: of a budget that pays it and no more.

    At delta > 0 that of Gaussian noise that costs as much, at the order which is best for it.
    """
    if account.order is None or not amount:
        return float(amount)
    return zcdp_epsilon(float(amount * TICK / account.order), delta)


def is_single(tables: Purchase, questions: Sequence[Question]) -> bool:
    """Return whether the purchase is just what one question asks, and so its answer."""
    if len(tables.targets) != 1 or len(questions) != 1:
        return False
    (target,), (question,) = tables.targets, questions
    return target == (question if isinstance(question, Query) else question.partition)


def check_bought(
    tables: Purchase,
    ledger: Ledger,
    sparse: NumericSparse,
    domain: Domain,
    planned: bool,
    questions: Sequence[Question] = (),
) -> Purchase:
    """Return what a rule names, if it pays for itself; nothing that a rule says is trusted.

    Its class prices it when it is made, by the neighbours that the rule handed over: so it is priced once
    more by those of the mechanism.

    Args:
        tables: As `checked_tables` returns them.
        domain: Of the table that is read.
        planned: Whether the rule releases these first for certain (`demand.opens_with`), whose law the plan
            tells.

    Raises:
        InvalidParameterError: If it is something else than tables of this package, is priced for another
            account, or cannot be read or drawn.
    """
    if ledger.account.unit == "shares" or tables.charge.amount <= 0:
        raise InvalidParameterError(
            "purchases must be charged to an account that prices tables, got one of shares, or a charge of "
            "0; nothing was spent: test by 'gumbel' or 'exponential'."
        )
    for target in tables.targets:
        if isinstance(target, Query) and not is_single(tables, questions):
            raise InvalidParameterError(
                "purchases must name a number by itself and for the question at hand, got another one; "
                "nothing was spent: take the question of the facts."
            )
        if isinstance(target, Query):
            target.bind(domain)  # one that was put together by hand would lie about its price
    if any(target.domain != domain for target in tables.targets) or not tables.drawable:
        raise InvalidParameterError(
            "purchases must be tables over the domain of the session, of noise that can be drawn, got "
            f"others; nothing was spent: take targets of its {domain.size:,} cells and smaller scales."
        )
    # by whatever is equal to anything a total would have drawn too little for them
    if type(tables.neighbours) is not type(sparse.neighbours) or tables.neighbours != sparse.neighbours:
        raise InvalidParameterError(
            f"purchases must be priced for the neighbours of the session, {sparse.neighbours}, got those of "
            f"{tables.neighbours}; nothing was spent: hand on what the mechanism has."
        )
    # a record tells deviations, not laws: bounds go by the one law that suits the account
    if not planned and tables.pure is not (ledger.account.order is None):
        raise InvalidParameterError(
            "purchases must have the noise of their account, Laplace where it counts epsilon and Gaussian "
            f"where it counts ticks, got pure={tables.pure}; nothing was spent: write pure={not tables.pure}."
        )
    return attrs.evolve(tables, neighbours=sparse.neighbours)


def settled_tables(
    mechanism: GumbelSparse | ExponentialSparse,
    domain: Domain,
    share: Fraction,
    laplace: bool,
    given_order: bool,
) -> Purchase | None:
    """Return one table of all cells, or the levels of one attribute, at this share of the capacity, or None.

    With `laplace` (see `laplace_suits`) the noise is Laplace at this share of epsilon. Where the order of the
    filter was given, and could not be chosen for the rest of epsilon, it is of the capacity.
    """
    axes = [axis for axis, size in enumerate(domain.shape) if size > 1]
    if laplace:
        whole = Fraction(mechanism.epsilon)
        if given_order:
            whole = min(whole, mechanism.account().capacity * TICK)
        return _laplace_tables(mechanism, domain, axes, share * whole)
    wanted = levels(domain, axes[0]) if axes else []
    account, pure = mechanism.account(), isinstance(mechanism, ExponentialSparse)
    scale = least_scale(account.order, share / max(1, len(wanted)) * account.capacity, mechanism.neighbours)
    if scale is None or not wanted:
        return None
    unpaid = Charge(share * account.capacity, f"{len(wanted)} opening tables", account.unit, account.order)
    tables = Purchase(tuple(wanted), (scale,) * len(wanted), unpaid, pure, neighbours=mechanism.neighbours)
    return attrs.evolve(tables, charge=attrs.evolve(unpaid, amount=tables.cost))


def laplace_opens(domain: Domain, budget: Budget, bought: Fraction) -> bool:
    """Return whether the m levels of one attribute have less noise as Laplace, at this share of epsilon.

    If 2 (L1 m/(share epsilon))^2 is below the variance m L2/(2 share rho) of Gaussian noise in the same
    budget, L1 and L2 those of a table and squared; not at a given order, which suits Gaussian noise.
    """
    axes = [axis for axis, size in enumerate(domain.shape) if size > 1]
    if budget.order is not None or budget.pure or not axes:
        return False
    rho, share = zcdp_rho(budget.epsilon, budget.delta), float(bought)
    wider = 4.0 * budget.neighbours.table_l1() ** 2 / budget.neighbours.table_squared()
    return wider * len(levels(domain, axes[0])) * rho <= share * budget.epsilon**2


def _laplace_tables(
    mechanism: GumbelSparse | ExponentialSparse, domain: Domain, axes: list[int], most: Fraction
) -> Purchase:
    """Return one table of all cells, or the levels of one attribute, with Laplace noise."""
    cells = Partition(domain, tuple(axes), tuple(np.arange(domain.shape[axis]) for axis in axes))
    targets = [cells] if len(axes) > 1 else levels(domain, axes[0])
    moved = mechanism.neighbours.table_l1()
    scales = tuple(scale_at_least(moved * len(targets) / most) for _ in targets)
    amount = sum((moved / scale for scale in scales), Fraction(0))
    if isinstance(mechanism, GumbelSparse):
        scales = _least_laplace(mechanism.order, most / TICK, scales, mechanism.neighbours)
        amount = _laplace_price(mechanism.order, scales, mechanism.neighbours)
    account = mechanism.account()
    charge = Charge(amount, f"{len(targets)} opening tables, Laplace", account.unit, account.order)
    return Purchase(tuple(targets), scales, charge, pure=True, neighbours=mechanism.neighbours)


def _laplace_price(order: Fraction, scales: Sequence[Fraction], neighbours: Neighbours) -> Fraction:
    """Return the cost of tables, in ticks: alike ones are rounded up once."""
    count, moved = Counter(scales), neighbours.table_l1()
    if neighbours.largest_gap() > 1:  # of a block that moves by more than one, only the pure price is proven
        return Fraction(sum(math.ceil(moved * times / scale / TICK) for scale, times in count.items()))
    return Fraction(sum(laplace_charge(order, scale, moved * times) for scale, times in count.items()))


def levels(domain: Domain, axis: int) -> list[Partition]:
    """Return what `_levels` does, made once for all that plan with it: of long attributes it is large."""
    return [*_levels(domain, axis)]


@lru_cache(maxsize=2)
def _levels(domain: Domain, axis: int) -> tuple[Partition, ...]:
    """Return the marginal of an attribute, and of a long ordered one also its coarser levels.

    As few as leave no block more than `BRANCH` parts, spread evenly, with `ROOT` times as many parts at the
    root as in a block: an end of a range lies in one block of every level, but both ends share the root.
    """
    levels, size = [one_way(domain, axis)], domain.shape[axis]
    if size <= FLAT or not domain.attributes[axis].ordered:
        return tuple(levels)
    depth = 1
    while size > ROOT * BRANCH**depth:
        depth += 1
    branch = (size / ROOT) ** (1.0 / depth)
    for level in range(1, depth):
        before, parts = levels[-1], round(size / branch**level)
        # of whole blocks of the level before: least squares wants a tree
        levels.append(Partition(domain, (axis,), (before.classes[0] * parts // before.blocks,)))
    return tuple(levels)


def least_scale(order: Fraction | None, most: Fraction, neighbours: Neighbours) -> Fraction | None:
    """Return the least scale, records, of a table for so much of an account of this order, or None."""
    return least_laplace(most, neighbours) if order is None else least_gaussian(order, most, neighbours)


def least_laplace(most: Fraction, neighbours: Neighbours) -> Fraction | None:
    """Return the least Laplace scale, records, of a table for so much epsilon, or None."""
    if most <= 0 or neighbours.table_l1() > most * SIGMA_LIMIT:
        return None
    return scale_at_least(neighbours.table_l1() / most)


def _least_laplace(
    order: Fraction, most: Fraction, enough: tuple[Fraction, ...], neighbours: Neighbours
) -> tuple[Fraction, ...]:
    """Return about the least scales that cost at most so many ticks, of the ratios of pure ones, enough."""
    low, high = float(enough[0]) / 2, float(enough[0])
    best = enough
    for _ in range(30):
        middle = (low + high) / 2
        factor = Fraction(middle) / enough[0]
        scales = tuple(scale_at_least(factor * scale) for scale in enough)
        if _laplace_price(order, scales, neighbours) <= most:
            high, best = middle, min(best, scales)
        else:
            low = middle
    return best


def precision_of(account: Filter, most: Fraction, neighbours: Neighbours) -> float:
    """Return one over the variance, records, of a table for so much in the unit of the account, roughly."""
    if account.order is None:  # Laplace noise, of scale L1 / epsilon
        return float(most / neighbours.table_l1()) ** 2 / 2.0
    # sigma records cost order L / (2 sigma^2) in divergence, L the squared sensitivity of a table
    return float(2 * most * TICK / (account.order * neighbours.table_squared()))


def tables_at(
    domain: Domain, account: Filter, neighbours: Neighbours, design: dict[Key, float], most: Fraction
) -> Purchase | None:
    """Return tables at these parts of so much, with the least noise that so much pays, if it can be drawn."""
    whole = max(Fraction(1), sum(map(Fraction, design.values()), Fraction(0)))  # floats round up, too
    parts = [Fraction(part) / whole for part in design.values()]
    order, pure = account.order, account.order is None
    scales = [least_scale(order, most * part, neighbours) for part in parts]
    bought = [
        (table_of(domain, key), scale) for key, scale in zip(design, scales, strict=True) if scale is not None
    ]
    if not bought:
        return None
    unpaid = Charge(most, f"{len(bought)} tables", account.unit, order)
    tables = Purchase(
        tuple(one for one, _ in bought),
        tuple(scale for _, scale in bought),
        unpaid,
        pure,
        neighbours=neighbours,
    )
    return attrs.evolve(tables, charge=attrs.evolve(unpaid, amount=tables.cost))


def single(
    question: Question,
    most: Fraction,
    account: Filter,
    neighbours: Neighbours,
    at_most: Fraction | None = None,
) -> Purchase | None:
    """Return the purchase of just what a question asks, with the least noise that so much pays, or None.

    Args:
        most: For a number, in the unit of the account; for a cross table that of the same noise.
        at_most: Whatever is asked, if there is less.
    """
    order, pure = account.order, account.order is None
    target: Partition | Query
    if isinstance(question, BoundMarginal):
        number, target = neighbours.number(0, 1), question.partition
        more = Fraction(neighbours.table_l1(), number)
        most *= more if pure else Fraction(neighbours.table_squared(), number**2)
        most = most if at_most is None else min(most, at_most)
        scale = least_scale(order, most, neighbours)
    else:
        target, scale = question, least_number(order, most, question, neighbours)
    if scale is None:
        return None
    unpaid = Charge(most, "a table" if target is not question else "a number", account.unit, order)
    tables = Purchase((target,), (scale,), unpaid, pure, neighbours=neighbours)
    return attrs.evolve(tables, charge=attrs.evolve(unpaid, amount=tables.cost))


def single_at(
    question: Question, deviation: float, account: Filter, neighbours: Neighbours
) -> Purchase | None:
    """Return just what a question asks, with noise of at most this deviation, records, or None.

    None where so little noise cannot be drawn.
    """
    order, pure = account.order, account.order is None
    of_number = isinstance(question, Query)
    target = question if isinstance(question, Query) else question.partition
    unit = 1 << NUMBER_BITS if of_number else 1 if pure else RECORD_PARTS
    finest = 1 if not pure else 1 << RECORD_PARTS  # parts of a unit: Laplace scales are fractions
    most = deviation / math.sqrt(2.0) if pure else deviation
    if not most * unit * finest >= 1.0:
        return None
    scale = Fraction(math.floor(min(most * unit, SIGMA_LIMIT) * finest), unit * finest)
    if isinstance(target, Query):
        cost = number_price(order, target, scale, neighbours)
    else:
        cost = neighbours.table_l1() / scale if order is None else _gaussian_price(order, scale, neighbours)
    charge = Charge(cost, "a number" if of_number else "a table", account.unit, order)
    tables = Purchase((target,), (scale,), charge, pure, neighbours=neighbours)
    return tables if tables.drawable else None


def least_gaussian(order: Fraction, most: Fraction, neighbours: Neighbours) -> Fraction | None:
    """Return the least sigma, records, with which one table costs at most so many ticks, or None."""
    if most < 1:
        return None
    # prices are whole ticks: from the fraction of one, where few are to be had, the steps below would not end
    square = float(order) * 2**40 * (neighbours.table_squared() / 2) / math.floor(most)
    # odd, so that it stays on that grid: on a coarser one a first release loses more by being discrete
    sigma = max(1, math.floor(math.sqrt(square) * RECORD_PARTS) - 2) | 1
    while _gaussian_price(order, Fraction(sigma, RECORD_PARTS), neighbours) > most:
        sigma += 2
    return Fraction(sigma, RECORD_PARTS) if sigma <= SIGMA_LIMIT else None


def _gaussian_price(order: Fraction, scale: Fraction, neighbours: Neighbours) -> Fraction:
    sigma, unit = scale.as_integer_ratio()
    return Fraction(gaussian_charge(order, Fraction(sigma), neighbours.table_squared(unit)))
