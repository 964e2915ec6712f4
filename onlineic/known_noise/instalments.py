"""What several releases of tables say together, each bounded by itself.

The tables of an instalment are chosen after the noise of earlier ones was seen. Given what was public before
it, its own noise is as fresh as that of the first; so each has a bound of its own at a share of beta, and all
of them hold at once. The pooled estimate has no such bound: its weights depend on the noise that it averages.

Proof: docs/theory/hypothesis.md, 6.7c.
"""

import math
from collections.abc import Sequence
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.known_noise.estimates import Bracket, Estimates, Family, TableDesign
from onlineic.queries.answers import Law
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query

MOST_ASKED = 2  # instalments about a query


@final
@attrs.frozen(eq=False)
class Instalments:
    """Brackets that hold for the families of all instalments at once, with probability 1 - beta.

    Attributes:
        estimates: One an instalment, oldest first; the k-th fails with probability beta / (k (k + 1)) at
            most.
        slack, deviation: As in `Estimates`.
    """

    estimates: tuple[Estimates, ...] = ()
    families: tuple[Family, ...] = ()
    slack: float = 0.0
    deviation: float = 0.0
    _ranked: dict[tuple[int, ...], tuple[Estimates, ...]] = attrs.field(factory=dict, init=False, repr=False)

    def after(self, number: int) -> "Instalments":
        """Return the first so many."""
        return attrs.evolve(self, estimates=self.estimates[:number], families=self.families[:number])

    def then(self, released: Sequence[Measurement], n: int, beta: float, pure: bool) -> "Instalments":
        """Return the same with one more instalment, whose record tells the deviations of its noise.

        Args:
            pure: Whether that is Laplace; Gaussian else.
        """
        targets = [one.target for one in released if isinstance(one.target, Partition)]
        unit = math.sqrt(2.0) if pure else 1.0  # deviations over the scale of Laplace noise
        design = TableDesign(targets, [one.scale * n / unit for one in released], pure)
        number = len(self.estimates) + 1
        share = beta / (number * (number + 1))
        values = [one.values for one in released]
        readers = (one.reader for one in self.estimates if one.reader.sets == bool(design.products))
        reader = next(readers, None)  # so that a query is read once for all of them
        made = Estimates(design, values, n, share, self.slack, self.deviation, reader)
        return attrs.evolve(self, estimates=(*self.estimates, made), families=(*self.families, design.family))

    @property
    def family(self) -> Family | None:
        """The largest of their families."""
        return max(self.families, key=lambda one: one.size, default=None)

    def bracket(self, query: Query) -> Bracket | None:
        """Return (low, high) that holds the exact fraction, or None where nothing follows.

        Where some instalments have tables over all attributes of the query, the two that know these best are
        asked: each of the others takes as long, and has too much noise to cut what they leave. Else those
        with a table over some of them are: of the others nothing follows but [0, 1].
        """
        found = [one for one in (held.bracket(query) for held in self._leading(query)) if one is not None]
        if not found:
            return None
        low, high = max(low for low, _ in found), min(high for _, high in found)
        return (low, high) if low <= high else min(found, key=lambda one: one[1] - one[0])

    def _leading(self, query: Query) -> tuple[Estimates, ...]:
        """Return the instalments that are asked about a query: their designs alone tell which."""
        axes = query.axes
        if axes not in self._ranked:
            known = [held.precision_over(axes) for held in self.estimates]
            best = sorted(range(len(known)), key=lambda place: -known[place])[:MOST_ASKED]
            leading = [self.estimates[place] for place in best if known[place]]
            leading = leading or [held for held in self.estimates if held.touches(axes)]
            self._ranked[axes] = tuple(leading) or self.estimates
        return self._ranked[axes]

    def point(self, query: Query) -> tuple[float, float, Law] | None:
        """Return (estimate, standard error, law) of the instalment that knows a query best, or None."""
        told = [(held.point(query), held.pure) for held in self._leading(query)]
        found = [(*point, _law(pure)) for point, pure in told if point is not None]
        return min(found, key=lambda one: one[1], default=None)

    def table_brackets(self, question: BoundMarginal) -> tuple[Floats, Floats] | None:
        """Return (lows, highs) of the cells of a cross table, or None where one of them has no bracket."""
        found = [one for one in (held.table_brackets(question) for held in self.estimates) if one is not None]
        if not found:
            return None
        lows = np.max([low for low, _ in found], axis=0)
        highs = np.min([high for _, high in found], axis=0)
        return np.minimum(lows, highs), np.maximum(lows, highs)


def _law(pure: bool) -> Law:
    return "laplace" if pure else "gaussian"
