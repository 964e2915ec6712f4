"""Which codes a fit tells apart, so that its classes stay few however much is measured.

A fit in product form costs as many operations as there are class cells: the product, over the attributes that
joint tables read, of their classes. Every hard answer brings the cuts of its own query.
"""

import math
from collections.abc import Sequence

import numpy as np

from onlineic._typing import Ints
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query


def product_of_cuts(target: Query | Partition) -> Partition:
    """The partition itself, or the coarsest product of classes that a 0/1 query can be told from."""
    if isinstance(target, Partition):
        return target
    classes = {
        axis: factor.weights(target.domain)
        if factor.axes == (axis,)
        else np.arange(target.domain.shape[axis])
        for factor in target.factors
        for axis in factor.axes
    }
    return Partition(target.domain, target.axes, tuple(classes[axis] for axis in target.axes))


def common_refinement(cuts: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Class of every value, when values of one class differ in no cut, and the first value of each class."""
    joint = np.zeros_like(cuts[0])
    for cut in {cut.tobytes(): cut for cut in cuts}.values():
        joint = np.unique(joint * (cut.max() + 1) + cut, return_inverse=True)[1]
    _, first, joint = np.unique(joint, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # number the classes by their first value: ordered cuts stay ordered
    return rank[joint], np.sort(first)


def class_cells(targets: Sequence[Query | Partition]) -> int:
    """Return how many class cells a fit to these measured targets has, from a prior that is a product."""
    kept = kept_classes([product_of_cuts(target) for target in targets], math.inf)
    return math.prod(int(classes.max()) + 1 for classes in kept.values())


def kept_classes(tables: Sequence[Partition], most: float) -> dict[int, Ints]:
    """Return the class of every code, by axis, for a fit of at most `most` class cells.

    Joint tables are taken in order, and the attributes of each in order: codes that one tells apart are kept
    apart as long as there is room.
    """
    kept: dict[int, Ints] = {}
    counts: dict[int, int] = {}
    for table in tables:
        if len(table.axes) > 1:
            for axis, labels in zip(table.axes, table.classes, strict=True):
                if axis in kept and _tells_apart(kept[axis], labels):
                    continue
                classes, first = common_refinement([kept.get(axis, np.zeros_like(labels)), labels])
                if math.prod({**counts, axis: len(first)}.values()) <= most:
                    kept[axis], counts[axis] = classes, len(first)
    return kept


def few_cells(tables: Sequence[Partition], most: int) -> bool:
    """Whether the classes of these tables have clearly at most so many cells: a quick look at their cuts."""
    held: dict[int, set[bytes]] = {}
    steps: dict[int, Ints] = {}
    for table in tables:
        if len(table.axes) > 1:
            for axis, labels in zip(table.axes, table.classes, strict=True):
                if (key := labels.tobytes()) not in held.setdefault(axis, set()):
                    held[axis].add(key)
                    steps[axis] = steps.get(axis, 0) | (labels[1:] != labels[:-1])
    return math.prod(int(cuts.sum()) + 1 for cuts in steps.values()) <= most


def _tells_apart(classes: Ints, labels: Ints) -> bool:
    """Whether every class lies in one block."""
    blocks = np.zeros(int(classes.max()) + 1, labels.dtype)
    blocks[classes] = labels
    return bool((blocks[classes] == labels).all())


def merged(table: Partition, kept: dict[int, Ints]) -> tuple[Partition, Ints]:
    """Return the finest table whose blocks are made of kept classes, and the block of it of every block."""
    from scipy.sparse import coo_array  # of large fits alone: imported with them
    from scipy.sparse.csgraph import connected_components

    classes: list[Ints] = []
    places: Ints = np.zeros(1, np.int64)
    for axis, labels in zip(table.axes, table.classes, strict=True):
        own = kept.get(axis, np.zeros_like(labels))
        size = int(labels.max()) + 1
        if _tells_apart(own, labels):
            classes.append(labels)
            places = np.add.outer(places * size, np.arange(size)).ravel()
            continue
        links = (np.ones(len(labels)), (labels, size + own))  # a block and a class that share a code
        nodes = size + int(own.max()) + 1
        found = connected_components(coo_array(links, shape=(nodes, nodes)), directed=False)[1]
        joined = common_refinement([found[:size].astype(np.int64)])[0]
        classes.append(joined[labels])
        places = np.add.outer(places * (int(joined.max()) + 1), joined).ravel()
    return Partition(table.domain, table.axes, tuple(classes)), places
