"""A fit, and for each set of attributes that is asked what the released tables contradict of it.

Sums of many blocks of a fit can lie far from the released ones although every block is as near as its noise
explains. What tables say is divided into subspaces, one for each choice of levels (`interactions.levels`). In
each the residual, released less fitted, tells how likely the fit is wrong there, and with it which share of
the residual goes to the answer.

Proof: docs/theory/updates.md, 7.8.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.hypothesis.by_sets import BySets
from onlineic.hypothesis.pieces import Pieces, PiecewiseHistogram, Raised
from onlineic.interactions.levels import Levels, levels_of
from onlineic.interactions.sizes import (
    Key,
    Table,
    informed,
    known_at,
    rows_of,
    table_key,
    table_of,
    tables_of,
    told_by,
)
from onlineic.queries.partitions import Measurement, Partition

MOST_CELLS = 2**18  # of a set whose table is corrected: a tenth of a second when the set is first asked
ROUNDS = 100  # of a fixed point that some twenty rounds find


@final
@attrs.frozen(eq=False)
class _Component:
    """What all tables at levels say of one subspace.

    Attributes:
        totals: Sums of the parts beyond those of the level before, fractions of records, one axis an
            attribute.
        precision: One over the variance of each.
        taken: Which share of it the best linear estimate takes: signal / (1 + signal).
    """

    totals: Floats
    precision: float
    dimensions: int
    taken: float

    def beyond(self, fitted: Floats) -> Floats:
        """Return what was released of it less what a fit says of it."""
        return self.totals.reshape(fitted.shape) - fitted


@final
@attrs.frozen(eq=False, repr=False)
class CorrectedFit(BySets):
    """A fit whose answers follow the released tables where these contradict it.

    Answers lie in [0, 1]; the blocks of a table are the nearest that are not negative and have its corrected
    sum. Along a long attribute parts of its grid are corrected, evenly within each. A set with more than
    2^18 cells, or of which no table at levels was released, is left to the fit. Synthetic records are drawn
    from the fit.

    Strawderman (1971) for the law of the residual where the fit is wrong: its variance is that of the noise
    over a number that is even in (0, 1). Johnstone & Silverman (2004) for a share of wrong subspaces that is
    learned from all of them; here by the rule of succession, so that it is never 0.

    Args:
        fit: With `blocks`.
        measurements: All that was released.
    """

    fit: Any
    measurements: tuple[Measurement, ...]

    @property
    def beneath(self) -> Any:
        return self.fit

    def _made(self, axes: tuple[int, ...]) -> Floats | Raised | None:
        """Return the corrected table of a set of attributes: of total 1, and below 0 in some empty cells."""
        levels = [levels_of(self.domain)[axis] for axis in axes]
        grids = {axis: one.grid for axis, one in zip(axes, levels, strict=True) if one.grid is not None}
        shape = tuple(one.parts[-1] for one in levels)
        if math.prod(shape) > MOST_CELLS or (grids and not isinstance(self.fit, PiecewiseHistogram)):
            return None
        known = self._known(axes)
        if not known:
            return None
        target = Partition(self.domain, axes, tuple(one.cut(one.finest) for one in levels))
        fitted = np.asarray(self.fit.blocks(target), np.float64).reshape(shape)
        table, says = np.zeros(shape) if grids else fitted.copy(), _said(levels, fitted)
        for key in known:
            one, chosen = self._components[key], dict(key)
            choice = tuple(chosen.get(axis, 0) for axis in axes)
            residual = one.beyond(says(choice))
            added = one.taken * self._wrong(one, residual) * residual
            for place, (each, level) in enumerate(zip(levels, choice, strict=True)):
                added = each.even(added, level, place)
            table += added
        return Raised(self.fit, Pieces(self.domain, grids), axes, table) if grids else table

    def _known(self, axes: tuple[int, ...]) -> list[Key]:
        """Return the subspaces of these attributes of which tables tell, in the order of the record."""
        held, sets = self._by_axes, 2 ** len(axes)
        found: list[tuple[int, Key]] = []
        if sets <= len(held):
            for order in range(1, len(axes) + 1):
                for some in itertools.combinations(axes, order):
                    found += held.get(some, ())
        else:
            asked = frozenset(axes)
            found = [one for some, keys in held.items() if asked.issuperset(some) for one in keys]
        return [key for _, key in sorted(found)]

    @cached_property
    def _by_axes(self) -> Mapping[tuple[int, ...], list[tuple[int, Key]]]:
        """The subspaces of each set of attributes, each with its place among all."""
        found = dict[tuple[int, ...], list[tuple[int, Key]]]()
        for place, key in enumerate(self._components):
            found.setdefault(tuple([axis for axis, _ in key]), []).append((place, key))
        return found

    def _wrong(self, one: _Component, residual: Floats) -> float:
        """Return how likely it is that the fit is wrong in a subspace."""
        energy = one.precision * float((residual**2).sum())
        return float(_likely(self._often, np.array(_ratio(one.dimensions, energy))))

    @cached_property
    def _often(self) -> float:
        """In what share of the subspaces the fit is wrong."""
        ratios, often = np.array([*self._ratios()]), 0.5
        for _ in range(ROUNDS):
            often = (1.0 + float(_likely(often, ratios).sum())) / (2.0 + len(ratios))
        return often

    def _ratios(self) -> Iterator[float]:
        """Yield how much likelier each residual is if the fit is wrong."""
        seen = set[Key]()
        for table in sorted(self._tables, key=lambda table: -len(table.key)):
            says = None
            for choice, key in _subspaces(table.key):
                if key in seen or key not in self._components:
                    continue
                seen.add(key)
                if says is None:
                    held = np.reshape(self.fit.blocks(table_of(self.domain, table.key)), table.counts.shape)
                    says = self._says(table.key, held)
                one = self._components[key]
                residual = one.beyond(says(choice))
                yield _ratio(one.dimensions, one.precision * float((residual**2).sum()))

    def _says(self, key: Key, totals: Floats) -> Callable[[tuple[int, ...]], Floats]:
        """Return what a table at levels says, by choice of levels."""
        levels = levels_of(self.domain)
        return _said([levels[axis] for axis, _ in key], totals, [fine for _, fine in key])

    @cached_property
    def _tables(self) -> list[Table]:
        """The released tables at levels."""
        return tables_of(self.domain, self.measurements)

    @cached_property
    def _components(self) -> Mapping[Key, _Component]:
        """What the tables say of each subspace, but where tables that are cut elsewhere say more."""
        levels, found = levels_of(self.domain), dict[Key, tuple[float, Any]]()
        for table in self._tables:
            says = self._says(table.key, table.counts)
            for choice, key in _subspaces(table.key):
                totals, precision = says(choice), table.precision
                for (axis, fine), level in zip(table.key, choice, strict=True):
                    precision *= levels[axis].parts[level] / levels[axis].parts[fine]
                before, total = found.get(key, (0.0, 0.0))
                found[key] = before + precision, total + precision * totals.ravel()
        keys, width = [*found], len(levels)
        if not keys:
            return {}
        partitions = tuple(one for one in self.measurements if isinstance(one.target, Partition))
        _, sizes = told_by(self.domain, partitions)
        precisions = np.array([precision for precision, _ in found.values()])
        signals = sizes.squares(rows_of(keys, width)) * precisions
        elsewhere = np.zeros(len(keys))
        for one in self.measurements:
            if isinstance(one.target, Partition) and one.scale > 0.0 and table_key(one.target) is None:
                key, precision = known_at(one.target, one.scale)
                elsewhere += precision * informed(levels, rows_of(keys, width), rows_of([key], width))[:, 0]
        return {
            key: _Component(
                total / precision,
                precision,
                math.prod(levels[axis].parts[level] - levels[axis].parts[level - 1] for axis, level in key),
                float(signal / (1.0 + signal)),
            )
            for (key, (precision, total)), signal, other in zip(
                found.items(), signals.tolist(), elsewhere.tolist(), strict=True
            )
            if other <= precision
        }

    def __repr__(self) -> str:
        return f"CorrectedFit({self.fit!r})"


def _said(
    levels: Sequence[Levels], totals: Floats, finest: Sequence[int] | None = None
) -> Callable[[tuple[int, ...]], Floats]:
    """Return what counts of parts say by choice of levels; what choices share is worked out once."""
    fine = [one.finest for one in levels] if finest is None else finest
    held: dict[tuple[int, ...], Floats] = {(): totals}

    def says(choice: tuple[int, ...]) -> Floats:
        if choice not in held:
            place = len(choice) - 1
            held[choice] = levels[place].between(says(choice[:-1]), fine[place], choice[-1], place)
        return held[choice]

    return says


def _subspaces(key: Key) -> Iterator[tuple[tuple[int, ...], Key]]:
    """Yield the levels of each subspace of a table, and its key; that of all records is known."""
    for choice in itertools.product(*[range(level + 1) for _, level in key]):
        if any(choice):
            yield choice, tuple((axis, level) for (axis, _), level in zip(key, choice, strict=True) if level)


def _likely(often: float, ratios: Floats) -> Floats:
    """Return how likely each subspace is wrong, by how often one is and the ratio of the densities."""
    return np.asarray(1.0 / (1.0 + (1.0 - often) / (often * ratios)))


def _ratio(dimensions: int, energy: float) -> float:
    """Return the density of a residual where the fit is wrong over that of noise alone.

    The integral over k from 0 to 1 of k^(d/2) exp((1 - k) e / 2), by Kummer's function.
    """
    from scipy.special import hyp1f1

    order = dimensions / 2.0 + 1.0
    return float(hyp1f1(1.0, order + 1.0, energy / 2.0)) / order


def fit_of(hypothesis: Any) -> Any:
    """Return what a corrected hypothesis corrects; another one as it is."""
    return hypothesis.fit if isinstance(hypothesis, CorrectedFit) else hypothesis
