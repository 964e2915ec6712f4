"""What the tables of several nodes say together: a fit to those of all, and what all of one node say.

Functions of what was released: free, whatever they do.

Proof: docs/theory/periods.md, 13.6.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.hypothesis.base import Hypothesis
from onlineic.interactions.predictor import Predictor
from onlineic.known_noise.estimates import Estimates, TableDesign
from onlineic.ledger.records import Bought, Record, measured
from onlineic.plan.plan import Plan
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.updates.base import UpdateRule

BRACKETS = 0.5  # of brackets that nobody asks for
# the variances, records, around which the radius of a pooled estimate is narrow: each has an equal part of
# what it may fail with
NARROW_AT = tuple(16.0**power for power in range(8))


@final
@attrs.frozen
class Known:
    """What all tables of a node say of a question together: unbiased, each purchase weighted by precision.

    Attributes:
        value: Fraction of the node's records.
        error: Root of the sum of the variances, each times its weight squared.
        gaussian: Whether all noise is Gaussian: the variance is that of the law then, too.
    """

    value: float
    error: float
    gaussian: bool


@final
@attrs.frozen(eq=False)
class BlockPurchases:
    """The tables of a node, purchase by purchase, and its public number of records.

    Also those that were bought by themselves. Numbers are left out, since they tell of no other question.

    Attributes:
        laplace: Of each, whether its noise is Laplace.
    """

    n: int
    releases: tuple[tuple[Measurement, ...], ...]
    laplace: tuple[bool, ...]

    @classmethod
    def of(cls, n: int, records: Iterable[Record], plan: Plan) -> "BlockPurchases | None":
        """Return what a record says was bought; None before that."""
        account, rule = plan.sparse.account(), plan.purchases
        found = [(one, measured(one)) for one in records if isinstance(one, Bought) and measured(one)]
        laws = [rule.laplace(one, before, account) for before, (one, _) in enumerate(found)]
        return cls(n, tuple(tables for _, tables in found), tuple(laws)) if found else None

    @cached_property
    def tables(self) -> tuple[Measurement, ...]:
        """Each table once: one that was bought again as the mean by precision."""
        held: dict[Any, list[Measurement]] = {}
        for released in self.releases:
            for one in released:
                held.setdefault(one.target.key, []).append(one)
        return tuple(_mean(same) for same in held.values())

    @cached_property
    def _estimates(self) -> tuple[Estimates, ...]:
        found = []
        for released, pure in zip(self.releases, self.laplace, strict=True):
            targets = [one.target for one in released if isinstance(one.target, Partition)]  # all are
            unit = math.sqrt(2.0) if pure else 1.0
            design = TableDesign(targets, [one.scale * self.n / unit for one in released], pure=pure)
            found.append(Estimates(design, [one.values for one in released], self.n, BRACKETS))
        return tuple(found)

    def known(self, query: Query) -> Known | None:
        """Return what all purchases say of a question, or None where none does.

        The weight of a purchase is one over its own variance, which is settled before its noise is drawn.
        """
        told = [(one.point(query), one.pure) for one in self._estimates]
        points = [(point, pure) for point, pure in told if point is not None and point[1] > 0.0]
        if not points:
            return None
        weights = np.array([1.0 / error**2 for (_, error), _ in points])
        values = np.array([value for (value, _), _ in points])
        gaussian = not any(pure for _, pure in points)
        return Known(float(weights @ values / weights.sum()), 1.0 / math.sqrt(weights.sum()), gaussian)


def _mean(same: Sequence[Measurement]) -> Measurement:
    """Return one table for several of the same blocks."""
    if len(same) == 1:
        return same[0]
    weights = np.array([1.0 / one.scale**2 for one in same])
    values: Floats = np.tensordot(weights / weights.sum(), [one.values for one in same], axes=1)
    return Measurement(same[0].target, values, 1.0 / math.sqrt(weights.sum()))


def pooled(bought: Sequence[BlockPurchases]) -> tuple[Measurement, ...]:
    """Return the tables of the union of disjoint blocks, from those that all of their nodes have.

    A table of the union is the sum of theirs, in records; so are the variances of its noise.

    Args:
        bought: One or more.

    Returns:
        None where they were cut in different ways.
    """
    n = sum(one.n for one in bought)
    by_target: list[dict[Any, Measurement]] = [
        {one.target.key: one for one in node.tables} for node in bought
    ]
    found = []
    for key, first in by_target[0].items():
        if not all(key in held for held in by_target):
            continue
        parts = [(node.n / n, held[key]) for node, held in zip(bought, by_target, strict=True)]
        values = np.sum([share * one.values for share, one in parts], axis=0)
        scale = math.sqrt(math.fsum((share * one.scale) ** 2 for share, one in parts))
        found.append(Measurement(first.target, values, scale))
    return tuple(found)


@final
@attrs.frozen(eq=False)
class Fit:
    """The hypothesis that a rule makes of pooled tables, and what it is expected to err by."""

    hypothesis: Hypothesis
    predictor: Predictor

    @classmethod
    def of(cls, rule: UpdateRule[Any], domain: Domain, bought: Sequence[BlockPurchases]) -> "Fit | None":
        """Return the fit, or None if the nodes have no table in common."""
        tables = pooled(bought)
        if not tables:
            return None
        return cls(rule.update(rule.init(domain), tables, 0.0), Predictor(domain).after(tables))


def chosen_radius(
    shares: Sequence[float], known: Sequence[Known], records: Sequence[int], nats: float
) -> float:
    """Return how far the sum of what several nodes say may be off, whatever made them buy what they did.

    Theory 13.6: a mixture of supermartingales (Robbins 1970), one direction a node.

    Args:
        shares: Of each node in the sum.
        known: All with Gaussian noise.
        records: Of each node.
        nats: ln(1/probability) with which it may fail.
    """
    held = np.array([one.error * n for one, n in zip(known, records, strict=True)]) ** 2
    squares = np.array([share * one.error for share, one in zip(shares, known, strict=True)]) ** 2
    radii = []
    for variance in NARROW_AT:
        wider = held / variance  # eta over V of the proof, a node
        inside = nats + math.log(len(NARROW_AT)) + 0.5 * float(np.log1p(1.0 / wider).sum())
        radii.append(math.sqrt(2.0 * inside * float((squares * (1.0 + wider)).sum())))
    return min(radii)
