"""The tables that a partition session buys before its first query: every pair of attributes, coarsely.

Which tables, with what noise and at what charge is a function of the domain, n and the budget. They teach the
hypothesis all two-way interactions at once, so that few queries are hard afterwards; and like every release
they are charged before they are drawn. Where the cells are few, or few for n epsilon, one table of all of
them is better, and a single attribute has its cells, or levels of them, in the place of pairs.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.composition import zcdp_rho
from onlineic.accounting.first_release import FirstRelease
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.accounting.renyi import TICK, gaussian_charge, laplace_charge
from onlineic.accounting.rounding import float_up
from onlineic.domain.domain import Domain
from onlineic.errors import BudgetExceededError, InvalidParameterError, checked_ratio, set_fields
from onlineic.ledger.records import Easy, EasyBatch, Hard, Ledger, Opened
from onlineic.noise.sources import RATIO_LIMIT, SIGMA_LIMIT, Noise, scale_at_least
from onlineic.plan.defaults import (
    BRANCH,
    CLEAR,
    FLAT,
    LAYER,
    LAYERED_PARTS,
    MOST_PARTS,
    PARTS_AT_MOST,
    QUIETER,
    ROOT,
)
from onlineic.queries.cuts import Cut, grid_of, long_axes
from onlineic.queries.partitions import Measurement, Partition, PartitionRule, one_way
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.exponential import ExponentialSparse
from onlineic.sparse.gumbel import GumbelSparse

RECORD_PARTS = (
    16  # in which Gaussian noise is drawn: whole records waste up to a tenth of it where it is small
)
MOST_SAVED = 1.25  # divergence of first tables, over what pays for them as the first release
CLASSES = {Partition, Charge}  # of what a rule hands over
MOST_CELLS = 2**22  # of a table of all: more would take gigabytes after the read


@final
@attrs.frozen
class FirstTables:
    """Tables to release together, and what they cost.

    Attributes
    ----------
    targets : tuple of Partition
    scales : tuple of Fraction
        Of each one's noise, records: sigma of a discrete Gaussian on the multiples of one over its own
        denominator, or the scale of a discrete Laplace on whole records.
    charge : Charge
        Of all of them: a neighbour moves each, by L1 and squared L2, so their costs add; each is
        order * L2 / (2 sigma^2) in Renyi divergence, L1 / scale in epsilon, or the Renyi divergence of that.
        Less pays for Gaussian ones that are the `first` release.
    pure : bool
        Whether the noise is Laplace.
    first : FirstRelease or None
        What their charge counts on, if it counts on their being the first release of the account.
    neighbours : Neighbours
        By which they move.

    Raises
    ------
    InvalidParameterError
        If they cost more than their charge: no plan that is read from a file may buy them for less.
    """

    targets: tuple[Partition, ...]
    scales: tuple[Fraction, ...]
    charge: Charge
    pure: bool = False
    first: FirstRelease | None = attrs.field(default=None, metadata={"later": True})
    neighbours: Neighbours = attrs.field(
        default=REPLACE_ONE, kw_only=True, repr=False, metadata={"later": True}
    )

    def __attrs_post_init__(self) -> None:
        scales = tuple(checked_ratio("scales", scale, above=0.0) for scale in self.scales)
        set_fields(self, targets=tuple(self.targets), scales=scales, pure=bool(self.pure))
        if len(self.targets) != len(self.scales) or not self._paid:
            cost = float_up(self.cost) if self.charge.order is None else math.ceil(self.cost)
            raise InvalidParameterError(
                f"charge must pay for {len(self.targets)} tables at {len(self.scales)} scales, which cost "
                f"{cost}, got {self.charge.amount} {self.charge.unit}; charge what they cost, or take "
                "larger scales."
            )

    @property
    def _paid(self) -> bool:
        """Whether the charge pays for their noise."""
        first, own = self.first, (self.charge.order, self.neighbours)
        if first is None or self.pure or (first.order, first.neighbours) != own:
            return self.cost <= self.charge.amount
        return first.pays(self.scales, math.floor(self.charge.amount))

    @property
    def cost(self) -> Fraction:
        """What they cost by their scales, wherever they come, in the unit of the charge."""
        order = self.charge.order
        if order is None:
            if not self.pure:
                raise InvalidParameterError("charge must be in ticks for Gaussian tables, got epsilon.")
            return sum((self.neighbours.table_l1() / scale for scale in self.scales), Fraction(0))
        if self.pure:
            return _laplace_price(order, self.scales, self.neighbours)
        return sum((_gaussian_price(order, scale, self.neighbours) for scale in self.scales), Fraction(0))

    def affordable(self, account: Filter) -> bool:
        """Whether the account can pay them, and has paid nothing where they are paid as its first release."""
        return account.affords(self.charge) and (self.first is None or not account.spent)

    def noise(self, scale: Fraction, blocks: int, noise: Noise) -> tuple[Ints, int]:
        """Return fresh noise for so many blocks, and in how many parts of a record it is."""
        if self.pure:
            return noise.discrete_laplace(scale, blocks), 1
        sigma, unit = scale.as_integer_ratio()
        return noise.discrete_gaussian(sigma, blocks), unit

    @property
    def drawable(self) -> bool:
        """Whether the samplers draw noise of these scales."""
        if self.pure:
            return all(max(scale.as_integer_ratio()) < RATIO_LIMIT for scale in self.scales)
        return all(scale.numerator <= SIGMA_LIMIT for scale in self.scales)

    def measure(self, counts: Iterable[Ints], noise: Noise, n: int) -> tuple[Measurement, ...]:
        """Return the noisy blocks of all, fractions of n records, from their exact counts (PRIVATE)."""
        released = []
        held = zip(self.targets, self.scales, self.deviations(n), counts, strict=True)
        for target, scale, deviation, exact in held:
            drawn, unit = self.noise(scale, target.blocks, noise)
            released.append(Measurement(target, (exact * unit + drawn) / (n * unit), deviation))
        return tuple(released)

    def deviations(self, n: int) -> tuple[float, ...]:
        """Return the standard deviation of the noise in each one's blocks, fraction of n records."""
        unit = math.sqrt(2.0) if self.pure else 1.0
        return tuple(unit * float(scale) / n for scale in self.scales)

    def released_by(self, record: Opened, n: int) -> bool:
        """Return whether a record holds these tables, with this noise at this charge."""
        targets = tuple(one.target for one in record.measurements)
        scales = tuple(one.scale for one in record.measurements)
        return (self.targets, self.charge, self.deviations(n)) == (targets, record.charge, scales)


def over_codes(tables: FirstTables, domain: Domain) -> FirstTables:
    """Return tables of the domain that was planned with, as tables of the domain itself.

    The codes of a long attribute are the parts of its grid there.
    """
    long = long_axes(domain)
    if not long:
        return tables
    targets = []
    for target in tables.targets:
        cuts = [
            Cut.at(domain.shape[axis], grid_of(domain.attributes[axis]).firsts[cut.firsts])
            if axis in long
            else cut
            for axis, cut in zip(target.axes, target.cuts, strict=True)
        ]
        targets.append(Partition(domain, target.axes, cuts))
    return attrs.evolve(tables, targets=tuple(targets))


def checked_tables(named: object) -> FirstTables:
    """Return what a rule names, if it and its parts are of the classes of this package.

    A subclass may say one thing when it is priced, and another when it is charged or drawn.
    """
    if type(named) is FirstTables and {*map(type, (*named.targets, named.charge))} == CLASSES:
        return named
    raise InvalidParameterError(
        f"purchases must name FirstTables with a Partition or more, got a {type(named).__name__}, or "
        "parts of other classes; nothing was spent: mend the rule."
    )


def check_bought(
    tables: FirstTables, ledger: Ledger, sparse: NumericSparse, domain: Domain, planned: bool
) -> FirstTables:
    """Return what a rule names, if it pays for itself; nothing that a rule says is trusted.

    Its class prices it when it is made, by the neighbours and the first release that the rule handed over: so
    it is priced once more by those of the mechanism. Tables that are paid as the first release of a filter
    (theory 4.10) are, and easy tests before them are releases too, although they cost nothing.

    Parameters
    ----------
    tables : FirstTables
        As `checked_tables` returns them.
    ledger : Ledger
    sparse : NumericSparse
    domain : Domain
        Of the table that is read.
    planned : bool
        Whether the rule releases these first for certain (`demand.opens_with`): of what it saves as the first
        release a total of the table knows, and nothing but Gaussian tables and tests comes after it.

    Raises
    ------
    BudgetExceededError
        If something was released before a first release.
    InvalidParameterError
        If it is something else than tables of this package, is priced for another account, or cannot be
        read or drawn.
    """
    if ledger.account.unit == "shares" or tables.charge.amount <= 0:
        raise InvalidParameterError(
            "purchases must be charged to an account that prices tables, got one of shares, or a charge of "
            "0; nothing was spent: test by 'gumbel' or 'exponential'."
        )
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
    if tables.first is None:
        return attrs.evolve(tables, neighbours=sparse.neighbours)
    if not planned:
        raise InvalidParameterError(
            "purchases must be the planned ones to be paid as the first release, got another rule; nothing "
            "was spent: leave first out, and charge what the tables cost."
        )
    if not isinstance(sparse, GumbelSparse) or tables.first != sparse.first_release():
        raise InvalidParameterError(
            "first tables must be paid as the first release of this account, got those of another; nothing "
            "was spent: take what the plan made."
        )
    tested = any(isinstance(record, Easy | EasyBatch | Hard | Opened) for record in ledger.records())
    if ledger.account.spent or tested:
        raise BudgetExceededError(
            "first tables must be the first release of their account, got one that has tested, or of "
            f"which {float(ledger.account.spent / ledger.account.capacity):.4g} is used up; nothing was "
            "spent: open a session with a new ledger."
        )
    return attrs.evolve(tables, first=sparse.first_release(), neighbours=sparse.neighbours)


def chosen_first_tables(
    mechanism: GumbelSparse | ExponentialSparse,
    domain: Domain,
    rule: PartitionRule,
    *,
    one_way_share: Fraction,
    pair_share: Fraction,
    laplace: bool = False,
    given_order: bool = False,
) -> FirstTables | None:
    """Return the one-way marginals and a cover of all pairs, at their shares of the capacity, or None.

    Small attributes stand together in tables.

    With `laplace` (see `laplace_suits`) there is one table of all cells instead, its noise Laplace at both
    shares of epsilon; or, of one attribute, its levels. Where the order of the filter was given, and could
    not be chosen for the rest of epsilon, both shares are of the capacity. Elsewhere Gaussian tables are paid
    as the first release of the account, which takes less than their divergence: a given order is that of a
    total, from which others draw too.

    An attribute's one-way share grows with its size: large ones are harder to learn. A domain of one ordered
    attribute has no pairs: there the marginal is released on several levels of coarseness instead, so that
    long ranges need not be summed from many noisy cells. Very many attributes have too many pairs: hits find
    those that are asked.
    """
    axes = [axis for axis, size in enumerate(domain.shape) if size > 1]
    if laplace:
        whole = Fraction(mechanism.epsilon)
        if given_order:
            whole = min(whole, mechanism.account().capacity * TICK)
        return _laplace_tables(mechanism, domain, axes, (one_way_share + pair_share) * whole)
    if len(axes) == 1:
        wanted = levels(domain, axes[0])
        power = 1 if isinstance(mechanism, ExponentialSparse) else 2
        shares = [part * (one_way_share + pair_share) for part in _parts(mechanism, wanted, power)]
    else:
        ones = [one_way(domain, axis) for axis in axes]
        paired = pair_share > 0 and not too_many_pairs(domain)
        cover = pair_cover(domain, rule) if paired else []
        layered = isinstance(mechanism, GumbelSparse) and rule.parts >= LAYERED_PARTS
        pairs = [_layers(rule.table(domain, held), layered) for held in cover]
        blocks = sum(target.blocks for target in ones)
        wanted = [*ones, *itertools.chain.from_iterable(pairs)]
        shares = [one_way_share * Fraction(target.blocks, blocks) for target in ones]
        shares += [pair_share / (len(pairs) * len(layers)) for layers in pairs for _ in layers]
    account = mechanism.account()
    first = None
    if isinstance(mechanism, GumbelSparse) and not given_order:
        first = mechanism.first_release()
    scales = _least_scales(mechanism, shares, first)
    bought = [place for place, scale in enumerate(scales) if scale is not None]
    if not bought:
        return None
    kept = tuple(scale for scale in scales if scale is not None)
    amount = sum((_price(mechanism, scale) for scale in kept), Fraction(0))
    if first is not None:
        most = math.floor(sum(shares[place] for place in bought) * account.capacity)
        amount = min(amount, Fraction(most))
    charge = Charge(amount, f"{len(bought)} opening tables", account.unit, account.order)
    targets = tuple(wanted[place] for place in bought)
    pure = isinstance(mechanism, ExponentialSparse)
    return FirstTables(targets, kept, charge, pure, first, neighbours=mechanism.neighbours)


def cells_instead(mechanism: GumbelSparse | ExponentialSparse, domain: Domain, most: Fraction) -> FirstTables:
    """Return one table of all cells, its noise Laplace, at the charge of all tables that pairs would bring.

    Whichever of the two is bought, what is left is the same, and so are the prices of hits.
    """
    axes = tuple(axis for axis, size in enumerate(domain.shape) if size > 1)
    cells = Partition(domain, axes, tuple(np.arange(domain.shape[axis]) for axis in axes))
    moved = mechanism.neighbours.table_l1()
    if isinstance(mechanism, ExponentialSparse):
        scales: tuple[Fraction, ...] = (scale_at_least(moved / most),)
    else:
        enough = (scale_at_least(moved / (most * TICK)),)
        scales = _least_laplace(mechanism.order, most, enough, mechanism.neighbours)
    account, event = mechanism.account(), "one opening table of all cells, Laplace"
    charge = Charge(most, event, account.unit, account.order)
    return FirstTables((cells,), scales, charge, pure=True, neighbours=mechanism.neighbours)


def ranges_instead(
    mechanism: GumbelSparse | ExponentialSparse, domain: Domain, tables: FirstTables
) -> FirstTables | None:
    """Return these levels of one attribute with less noise in coarse ones, at their charge, or None.

    Ranges are sums of many fine blocks but where a coarse one stands for them; a code is one fine block. None
    where there is one level, or where these have no other noise.
    """
    parts = _parts(mechanism, tables.targets, 1 if tables.pure else 2, ranges=True)
    most, moved = tables.charge.amount, mechanism.neighbours.table_l1()
    found: list[Fraction | None]
    if isinstance(mechanism, ExponentialSparse):
        found = [scale_at_least(moved / (part * most)) for part in parts]
    elif tables.pure:
        enough = tuple(scale_at_least(moved / (part * most * TICK)) for part in parts)
        found = [*_least_laplace(mechanism.order, most, enough, mechanism.neighbours)]
    else:
        shares = [part * most / mechanism.account().capacity for part in parts]
        found = _least_scales(mechanism, shares, tables.first)
    scales = tuple(scale for scale in found if scale is not None and scale <= SIGMA_LIMIT)
    if scales == tables.scales or len(scales) < len(found):
        return None
    charge = attrs.evolve(tables.charge, event=f"{tables.charge.event}, of ranges")
    return attrs.evolve(tables, scales=scales, charge=charge)


def laplace_suits(domain: Domain, n: int, budget: Budget, share: float) -> bool:
    """Return whether to open with Laplace noise, at this share of epsilon: few tables have less of it so.

    One table of all cells, where a mean cell stands clear of its noise; or the m levels of one attribute, if
    2 (L1 m/(share epsilon))^2 is below the variance m L2/(2 share rho) of Gaussian noise in the same budget,
    L1 and L2 those of a table and squared.
    """
    l1 = budget.neighbours.table_l1()
    axes = [axis for axis, size in enumerate(domain.shape) if size > 1]
    if len(axes) > 1:
        deviation = math.sqrt(2.0) * l1 / (share * budget.epsilon)
        return domain.size <= MOST_CELLS and n / domain.size >= CLEAR * deviation
    if not axes or budget.pure:
        return False
    rho = zcdp_rho(budget.epsilon, budget.delta)
    wider = 4.0 * l1**2 / budget.neighbours.table_squared()
    return wider * len(levels(domain, axes[0])) * rho <= share * budget.epsilon**2


def laplace_opens(domain: Domain, n: int, budget: Budget, bought: Fraction) -> bool:
    """Return whether to open with Laplace noise: not at a given order, which suits Gaussian noise."""
    return budget.order is None and laplace_suits(domain, n, budget, float(bought))


def _laplace_tables(
    mechanism: GumbelSparse | ExponentialSparse, domain: Domain, axes: list[int], most: Fraction
) -> FirstTables:
    """Return one table of all cells, or the levels of one attribute, with Laplace noise."""
    cells = Partition(domain, tuple(axes), tuple(np.arange(domain.shape[axis]) for axis in axes))
    targets = [cells] if len(axes) > 1 else levels(domain, axes[0])
    moved = mechanism.neighbours.table_l1()
    scales = tuple(scale_at_least(moved / (part * most)) for part in _parts(mechanism, targets, 1))
    amount = sum((moved / scale for scale in scales), Fraction(0))
    if isinstance(mechanism, GumbelSparse):
        scales = _least_laplace(mechanism.order, most / TICK, scales, mechanism.neighbours)
        amount = _laplace_price(mechanism.order, scales, mechanism.neighbours)
    account = mechanism.account()
    charge = Charge(amount, f"{len(targets)} opening tables, Laplace", account.unit, account.order)
    return FirstTables(tuple(targets), scales, charge, pure=True, neighbours=mechanism.neighbours)


def _parts(
    mechanism: GumbelSparse | ExponentialSparse,
    tables: Sequence[Partition],
    power: int,
    *,
    ranges: bool = False,
) -> list[Fraction]:
    """Return what part of their price each of these tables gets, finest first: all alike, but for `ranges`.

    These rest on coarse levels, codes do not. So coarse ones have less noise, by a factor that grows as
    records are few beside cells: noise drowns most cells then. Noise costs this power of its inverse scale.
    """
    quieter = 1.0
    if ranges:
        few = tables[0].blocks / (mechanism.n * mechanism.epsilon)
        quieter = (1.0 + QUIETER * min(1.0, math.sqrt(few))) ** (1.0 / (len(tables) - 1))
    weights = [round(1000 * quieter ** (power * level)) for level in range(len(tables))]
    return [Fraction(weight, sum(weights)) for weight in weights]


def _laplace_price(order: Fraction, scales: Sequence[Fraction], neighbours: Neighbours) -> Fraction:
    """Return the cost of tables, in ticks: alike ones are rounded up once."""
    count, moved = Counter(scales), neighbours.table_l1()
    if neighbours.largest_gap() > 1:  # of a block that moves by more than one, only the pure price is proven
        return Fraction(sum(math.ceil(moved * times / scale / TICK) for scale, times in count.items()))
    return Fraction(sum(laplace_charge(order, scale, moved * times) for scale, times in count.items()))


def too_many_pairs(domain: Domain) -> bool:
    """Return whether tables of all pairs would take too long to release and to fit, whatever n is."""
    return sum(min(size, PARTS_AT_MOST) for size in domain.shape if size > 1) > MOST_PARTS


def pair_cover(domain: Domain, rule: PartitionRule) -> list[tuple[int, ...]]:
    """Return sets of axes that hold every pair, small attributes together.

    One joins a set as long as no pair has more noise in it than in a table of its own, of the same budget.
    """
    width = {axis: rule.parts_of(attribute) for axis, attribute in enumerate(domain.attributes)}
    # least wide first: of several that gain as much the first one joins
    axes = sorted((axis for axis in width if width[axis] > 1), key=lambda axis: (width[axis], axis))
    widths = [width[axis] for axis in axes]
    worth = np.array([math.log2(parts) for parts in widths])
    kinds, kind_of = np.unique(widths, return_inverse=True)
    todo = ~np.eye(len(axes), dtype=bool)  # pairs of places in `axes` that no set holds yet
    cover = []
    for pair in sorted(
        itertools.combinations(range(len(axes)), 2),
        key=lambda pair: (widths[pair[0]] * widths[pair[1]], sorted(axes[place] for place in pair)),
        reverse=True,
    ):
        held = [*pair] if todo[pair] else []
        while held:
            wide = [widths[place] for place in held]
            room = np.array([_noise_of_pairs(sorted([*wide, parts])) <= 1.0 for parts in kinds.tolist()])
            gains = todo[held].sum(axis=0) * room[kind_of]
            gains[held] = 0
            if not gains.any():
                todo[np.ix_(held, held)] = False
                cover.append(tuple(sorted(axes[place] for place in held)))
                break
            held.append(int(np.argmax(gains / worth)))
    return cover


def _noise_of_pairs(widths: list[int]) -> float:
    """Return the most noise of a pair in one table over that in a table of its own, of the same budget.

    Widths rise. A block of the two least wide attributes is the sum of so many blocks as the others have
    together; of as many tables as there are pairs, each has as many times the variance.
    """
    return math.sqrt(math.prod(widths[2:]) / math.comb(len(widths), 2))


def _layers(table: Partition, layered: bool) -> list[Partition]:
    """Return a cross table and, if `layered`, the same with each long ordered axis finely or coarsely cut.

    A range over two attributes is then the sum of few coarse blocks and some fine ones at its rim. With
    Gaussian noise alone, where twice the tables have sqrt(2) times the noise and not twice.
    """
    if not layered:
        return [table]
    choices = []
    for axis, classes, parts in zip(table.axes, table.classes, table.shape, strict=True):
        long = table.domain.attributes[axis].ordered and 2 * parts >= 3 * LAYER
        choices.append([classes * LAYER // parts, classes] if long else [classes])
    return [Partition(table.domain, table.axes, classes) for classes in itertools.product(*choices)]


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


def _least_scales(
    mechanism: GumbelSparse | ExponentialSparse, shares: Sequence[Fraction], first: FirstRelease | None
) -> list[Fraction | None]:
    """Return about the least scales with which tables together cost at most their shares; None: not drawable.

    Those of the first release get more than their shares of divergence, all alike, as far as it pays.
    """

    def at(gain: float) -> dict[Fraction, Fraction | None]:
        return {share: _least_scale(mechanism, share * Fraction(gain)) for share in set(shares)}

    scales = at(1.0)
    bought = [share for share in shares if scales[share] is not None]
    if first is not None and bought:
        low, high, most = 1.0, MOST_SAVED, math.floor(sum(bought) * mechanism.account().capacity)
        for _ in range(10):
            middle = (low + high) / 2
            tried = at(middle)
            if first.pays([scale for share in bought if (scale := tried[share]) is not None], most):
                low, scales = middle, {share: tried[share] for share in bought}
            else:
                high = middle
    return [scales.get(share) for share in shares]


def _least_scale(mechanism: GumbelSparse | ExponentialSparse, share: Fraction) -> Fraction | None:
    """Return the least scale with which one table costs at most its share, or None if none is drawable."""
    most = share * mechanism.account().capacity
    if isinstance(mechanism, ExponentialSparse):
        return least_laplace(most, mechanism.neighbours)
    return least_gaussian(mechanism.order, most, mechanism.neighbours)


def least_gaussian(order: Fraction, most: Fraction, neighbours: Neighbours) -> Fraction | None:
    """Return the least sigma, records, with which one table costs at most so many ticks, or None."""
    if most < 1:
        return None
    # odd, so that it stays on that grid: on a coarser one a first release loses more by being discrete
    square = float(order) * 2**40 * (neighbours.table_squared() / 2) / float(most)
    sigma = max(1, math.floor(math.sqrt(square) * RECORD_PARTS) - 2) | 1
    while _gaussian_price(order, Fraction(sigma, RECORD_PARTS), neighbours) > most:
        sigma += 2
    return Fraction(sigma, RECORD_PARTS) if sigma <= SIGMA_LIMIT else None


def _price(mechanism: GumbelSparse | ExponentialSparse, scale: Fraction) -> Fraction:
    """Return the cost of one table.

    A Gaussian one is drawn in parts of a record, in which the blocks' counts change by `unit` each.
    """
    if isinstance(mechanism, ExponentialSparse):
        return mechanism.neighbours.table_l1() / scale
    return _gaussian_price(mechanism.order, scale, mechanism.neighbours)


def _gaussian_price(order: Fraction, scale: Fraction, neighbours: Neighbours) -> Fraction:
    sigma, unit = scale.as_integer_ratio()
    return Fraction(gaussian_charge(order, Fraction(sigma), neighbours.table_squared(unit)))
