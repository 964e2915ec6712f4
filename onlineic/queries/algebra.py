"""Products of weights over disjoint sets of attributes: their intersection, and their finest form.

A form is (complement, factors): the product of the factors, or one minus it. It says the same for every
way of writing a query, so that a question asked before is recognised.
"""

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.errors import TooLargeError
from onlineic.queries.tables import spread

JOINT_CELLS = 2**22  # largest joint factor that the algebra may need
Joint = dict[tuple[int, ...], Floats]  # axes -> weights in [0, 1], shape of those axes
Form = tuple[bool, Joint]


def intersection(domain: Domain, left: Form, right: Form) -> Form:
    """Return the product of two forms; a complement of several factors needs one joint factor."""
    result: Joint = {}
    for complement, joint in (left, right):
        if complement:  # 1 - product: one factor over all its axes
            tied, product = _outer(domain, tuple(_proper(joint).items()))
            joint = peeled(tied, 1.0 - product)
        for axes, part in joint.items():
            touching = [(known, result.pop(known)) for known in list(result) if set(known) & set(axes)]
            result.update(peeled(*_outer(domain, (*touching, (axes, part)))) if touching else {axes: part})
    return False, result


def _proper(joint: Joint) -> Joint:
    """Leave out factors that are 1 everywhere."""
    return {axes: part for axes, part in joint.items() if not (part == 1.0).all()}


def _outer(domain: Domain, parts: Sequence[tuple[tuple[int, ...], Floats]]) -> tuple[tuple[int, ...], Floats]:
    """Return the product of parts over the union of their axes, if it is not too large."""
    if not parts:  # the constant 1
        return (0,), np.ones(domain.shape[0])
    axes = tuple(sorted({axis for part_axes, _ in parts for axis in part_axes}))
    cells = math.prod(domain.shape[axis] for axis in axes)
    if cells > JOINT_CELLS:
        raise TooLargeError(
            f"a condition must tie at most {JOINT_CELLS:,} joint cells, got {cells:,} over "
            f"{', '.join(domain.names[axis] for axis in axes)}; ask the parts: a + b - (a & b)."
        )
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
