"""What the tables of several nodes say together: one table of the union, and starts for the next node.

Functions of what was released: free, whatever they do.

Proof: docs/theory/periods.md, 13.5.
"""

import math
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic.domain.domain import Domain
from onlineic.known_noise.estimates import Estimates, TableDesign
from onlineic.ledger.records import Opened, Record
from onlineic.queries.partitions import Measurement, Partition
from onlineic.updates.base import UpdateRule

BRACKETS = 0.5  # of brackets that nobody asks for


@final
@attrs.frozen(eq=False)
class Bought:
    """The first tables of a node, and its public number of records."""

    n: int
    tables: tuple[Measurement, ...]

    @classmethod
    def of(cls, n: int, records: Sequence[Record]) -> "Bought | None":
        """Return what a record says was bought first; None before that."""
        for record in records:
            if isinstance(record, Opened):
                found = tuple(one for one in record.measurements if isinstance(one.target, Partition))
                return cls(n, found) if found else None
        return None


def pooled(bought: Sequence[Bought]) -> tuple[Measurement, ...]:
    """Return the tables of the union of disjoint blocks, from those that all of their nodes have.

    A table of the union is the sum of theirs, in records; so are the variances of its noise.

    Parameters
    ----------
    bought : sequence of Bought
        One or more.

    Returns
    -------
    tuple of Measurement
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


def fitted(rule: UpdateRule[Any], domain: Domain, bought: Sequence[Bought]) -> Any:
    """Return the hypothesis that a rule makes of the pooled tables of some nodes, or None without any."""
    tables = pooled(bought)
    return rule.update(rule.init(domain), tables, 0.0) if tables else None


def estimates(bought: Sequence[Bought]) -> Estimates | None:
    """Return what the pooled tables of some nodes say by themselves: unbiased, with standard errors."""
    tables, n = pooled(bought), sum(one.n for one in bought)
    if not tables:
        return None
    targets = [one.target for one in tables if isinstance(one.target, Partition)]  # all are
    design = TableDesign(targets, [one.scale * n for one in tables], pure=False)
    return Estimates(design, [one.values for one in tables], n, BRACKETS)
