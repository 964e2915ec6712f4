"""Streams of queries for experiments, and their exact answers. NOT PRIVATE."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlineic._typing import Floats
from onlineic.ask.bind import bind_queries
from onlineic.data.private import PrivateData
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import check_kind, checked_integer
from onlineic.noise.sources import public_generator
from onlineic.queries.expressions import Expression, between, where
from onlineic.queries.partitions import Partition
from onlineic.queries.query import session_grid_bits


def exact_values(data: PrivateData, stream: Sequence[Any]) -> Floats:
    """Return the exact answers, (queries,) fractions of records. NOT PRIVATE.

    Of a table that stays where it lives each set of attributes is counted there first.

    Raises:
        TooLargeError: If such a table cannot be counted over the attributes of a query; nothing was counted.
    """
    check_kind("data", data, PrivateData)
    bound = bind_queries(stream, data.domain, session_grid_bits(data.mass))
    units = np.array([data.mass << query.grid_bits for query in bound], np.float64)
    if data.reach is None:
        return data.exact_counts_many(bound) / units
    sets: dict[tuple[int, ...], list[int]] = {}
    for place, query in enumerate(bound):
        sets.setdefault(query.axes, []).append(place)
    for axes in sets:
        data.reach.check(data.domain, axes)
    counts = np.zeros(len(bound))
    for axes, places in sets.items():  # one after the other: not all may be kept
        data.fetch([axes])
        counts[places] = data.exact_counts_many([bound[place] for place in places])
    return counts / units


def exact_marginal(data: PrivateData, name: str) -> Floats:
    """Return the exact fraction of records with each value of an attribute. NOT PRIVATE."""
    check_kind("data", data, PrivateData)
    axis = data.domain.axis(name)
    if data.reach is not None:
        data.reach.check(data.domain, (axis,))
        data.fetch([(axis,)])
    codes = np.arange(data.domain.shape[axis], dtype=np.int64)
    return data.exact_counts(Partition(data.domain, (axis,), (codes,))) / data.mass


def random_stream(domain: Domain, size: int, seed: int = 0) -> list[Expression]:
    """Return random conjunctions over 1 to 3 attributes: a range of integers, or a label.

    Args:
        seed: Public.
    """
    check_domain(domain)
    size, generator = checked_integer("size", size, at_least=0), public_generator(seed)
    stream = []
    for _ in range(size):
        conditions: dict[str, Any] = {}
        count = int(generator.integers(1, min(3, len(domain.names)) + 1))
        for axis in sorted(generator.permutation(len(domain.names))[:count].tolist()):
            name, kind = domain.names[axis], domain.attributes[axis]
            first, last = sorted(generator.integers(0, kind.size - kind.missing, 2).tolist())
            if kind.ordered:
                conditions[name] = between(kind.label(first), kind.label(last))
            else:
                conditions[name] = kind.label(first)
        stream.append(where(conditions))
    return stream
