"""Products of weights over disjoint sets of attributes: their intersection, and their finest form.

A form is (complement, factors): the product of the factors, or one minus it. It says the same for every
way of writing a query, so that a question asked before is recognised.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.errors import TooLargeError
from onlineic.queries.tables import spread

JOINT_CELLS = 2**22  # largest joint factor that the algebra may need
MOST_MULTIPLIED = 2**29  # weights that one chain of conditions multiplies: some seconds
Joint = dict[tuple[int, ...], Floats]  # axes -> weights in [0, 1], shape of those axes
Form = tuple[bool, Joint]


def intersection(domain: Domain, forms: Iterable[Form]) -> Form:
    """Return the product of forms; a complement of several factors needs one joint factor.

    Factors over the same axes are multiplied first, each where it is not 1: a chain of many conditions on
    few attributes takes time in its length.

    Raises:
        TooLargeError: If it ties more than `JOINT_CELLS` cells, or multiplies more than `MOST_MULTIPLIED`.
    """
    result: Joint = {}
    waiting: Joint = {}  # products over the same axes, of at most `JOINT_CELLS` or one
    multiplied = 0
    for complement, joint in forms:
        for axes, places, part in _factors(domain, complement, joint):
            if axes not in waiting:
                if sum(known.size for known in waiting.values()) + _cells(domain, axes) > JOINT_CELLS:
                    result, waiting = _tied(domain, result, waiting), {}
                waiting[axes] = np.ones([domain.shape[axis] for axis in axes])
            waiting[axes][places] *= part
            multiplied += part.size
            if multiplied > MOST_MULTIPLIED:
                raise TooLargeError(
                    f"a query must combine at most {MOST_MULTIPLIED:,} cells of its parts, got more; ask "
                    "fewer at once, or write them as weights."
                )
    return False, _tied(domain, result, waiting)


def _factors(domain: Domain, complement: bool, joint: Joint) -> Iterator[tuple[tuple[int, ...], Any, Floats]]:
    """Yield axes, the places over them where a factor may differ from 1, and the factor there."""
    if not complement:
        for axes, part in joint.items():
            yield axes, ..., part
        return
    proper = _proper(joint)  # 1 - product: one factor over all its axes
    if proper and all(len(axes) == 1 and (part != part[0]).any() for axes, part in proper.items()):
        axes = tuple(sorted(axis for (axis,) in proper))
        _cells(domain, axes)
        parts = [proper[axis,] for axis in axes]
        held = [np.flatnonzero(part) for part in parts]
        inside = [part[places] for part, places in zip(parts, held, strict=True)]
        runs = tuple(slice(int(places[0]), int(places[-1]) + 1) for places in held if len(places))
        whole = [run.stop - run.start for run in runs] == list(map(len, held))
        yield axes, runs if whole else np.ix_(*held), 1.0 - reduce(np.multiply, np.ix_(*inside))
        return
    tied, product = _outer(domain, tuple(proper.items()))
    for axes, part in peeled(tied, 1.0 - product).items():
        yield axes, ..., part


def _tied(domain: Domain, joint: Joint, more: Joint) -> Joint:
    """Return the product of factors and more of them, over disjoint axes."""
    result = dict(joint)
    for held, product in more.items():
        for axes, part in peeled(held, product).items():
            touching = [(known, result.pop(known)) for known in list(result) if set(known) & set(axes)]
            result.update(peeled(*_outer(domain, (*touching, (axes, part)))) if touching else {axes: part})
    return result


def _cells(domain: Domain, axes: Sequence[int]) -> int:
    """Return how many cells some axes span, if they are not too many for one factor."""
    cells = math.prod(domain.shape[axis] for axis in axes)
    if cells > JOINT_CELLS and len(axes) > 1:
        raise TooLargeError(
            f"a condition must tie at most {JOINT_CELLS:,} joint cells, got {cells:,} over "
            f"{', '.join(domain.names[axis] for axis in axes)}; ask the parts: a + b - (a & b)."
        )
    return cells


def _proper(joint: Joint) -> Joint:
    """Leave out factors that are 1 everywhere."""
    return {axes: part for axes, part in joint.items() if not (part == 1.0).all()}


def _outer(domain: Domain, parts: Sequence[tuple[tuple[int, ...], Floats]]) -> tuple[tuple[int, ...], Floats]:
    """Return the product of parts over the union of their axes, if it is not too large."""
    if not parts:  # the constant 1
        return (0,), np.ones(domain.shape[0])
    axes = tuple(sorted({axis for part_axes, _ in parts for axis in part_axes}))
    _cells(domain, axes)
    place = {axis: position for position, axis in enumerate(axes)}
    arrays = [spread(part, tuple(place[axis] for axis in held), len(axes)) for held, part in parts]
    shape = [domain.shape[axis] for axis in axes]
    return axes, np.array(np.broadcast_to(reduce(np.multiply, arrays), shape))


def peeled(axes: tuple[int, ...], part: Floats) -> Joint:
    """Split off every axis whose slices are all zero or the same: a 0/1 factor, or none if none is zero."""
    result: Joint = {}
    core, shape, kept = part, list(part.shape), list(axes)
    for axis in axes:
        place = kept.index(axis)
        blocks: Floats = core.reshape(math.prod(shape[:place]), shape[place], -1)
        held = blocks.any(axis=(0, 2))
        if len(kept) == 1 or not held.any():
            break
        first = int(held.argmax())
        same = np.equal(blocks, blocks[:, first : first + 1]).all(axis=(0, 2))
        if (same | ~held).all():
            if not held.all():
                result[(axis,)] = np.array(held, np.float64)
            core = np.array(blocks[:, first])
            del shape[place], kept[place]
    result[tuple(kept)] = core.reshape(shape)
    return result


def settled(complement: bool, joint: Joint) -> Form:
    """Write a lone joint factor w as one minus a product where 1 - w is one.

    At most one of w and 1 - w is a product over several axes, so equal queries end in equal forms.
    """
    joint = _proper(joint)
    if len(joint) == 1 and len(next(iter(joint))) > 1:
        ((axes, part),) = joint.items()
        turned = peeled(axes, 1.0 - part)
        if len(turned) > 1:
            return not complement, turned
    return complement, joint
