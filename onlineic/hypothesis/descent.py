"""Accelerated mirror descent in the potentials of an exponential family."""

import math
from collections.abc import Callable

import numpy as np

from onlineic._typing import Floats
from onlineic.progress import advance
from onlineic.queries.tables import dot

GROWTH = 1.03  # of the step, an iteration, as long as that is stable
STABLE = 1.1  # over the curvature: the longest step
MOMENTUM = 0.92  # at most: with more, a fit that is stopped early overshoots (NLTCS by 7 % of its error)
FIRST_LOOK = 8  # evaluations before the curvature is looked at, and twice as many before each next time
PATIENCE = 4  # evaluations in a row that lower the loss by too little
TURNS, SMALL = 2, 1e-4  # of the power method, and the largest change of a potential in it


def descend(
    evaluate: Callable[[Floats], tuple[Floats, float]],
    start: Floats,
    observed: Floats,
    variance: Floats,
    step: float,
    *,
    evaluations: int = 30,
    kl_weight: float = 0.0,
    tolerance: float = 1e-4,
    enough: float = 0.0,
    dear: bool = False,
) -> tuple[Floats, Floats, int]:
    """Minimise ``sum (m - observed)^2 / (2 variance) + kl_weight KL(h || prior)`` over potentials of h.

    Mirror descent with Nesterov's momentum, restarted when the loss rises by 2 % or the gradient turns
    against the momentum. The best point seen is returned: its loss is never above that of `start`.

    With momentum, steps up to 4/3 of the inverse curvature are stable: above, rounding errors grow from one
    evaluation to the next. So the curvature is measured after 8, 16, 32, .. evaluations, and the step follows
    it.

    O'Donoghue and Candes (2015), "Adaptive restart for accelerated gradient schemes", the gradient scheme;
    here with a measured step and a second test against the extrapolation direction.

    Args:
        evaluate: Potentials to (block masses of ``h ~ prior * exp(potentials)``, log-normaliser), prior of
            total 1.
        start, observed, variance: Shape (blocks,). First potentials, noisy masses, variances of their noise.
        step: First step, in units of variance; it grows by 3 % an iteration until the curvature is known.
        evaluations, kl_weight, tolerance, enough: As in `fit`; four evaluations in a row that lower the loss
            by less than the share `tolerance` end it.
        dear: Look at the curvature after the first evaluation, and take the longest stable step from there:
            few evaluations then learn as much as many, but fit noise as soon.

    Returns:
        Best point, and the number of evaluations.
    """
    x = y = start
    t, flat, used = 1.0, 0, 0
    look, longest, bent = 1 if dear else FIRST_LOOK, math.inf, np.zeros(0)
    best: tuple[float, Floats, Floats] = (math.inf, start, start)  # loss, potentials, masses
    while used < evaluations:
        advance("fit", used, evaluations)
        masses, log_normaliser = evaluate(y)
        residual = masses - observed
        loss = dot(residual, residual / variance) / 2
        if kl_weight:
            loss += kl_weight * (dot(y, masses) - log_normaliser)
        used += 1
        if loss < best[0]:
            flat = flat + 1 if best[0] - loss < tolerance * loss else 0
            best = loss, y, masses
        else:
            flat += 1
            rises = not loss <= 1.02 * best[0]  # written so that a loss that is not a number does, too
            if rises or flat == PATIENCE - 1:  # before it gives up: one step without momentum
                step, t = step / 2 if rises else step, 1.0
                _, y, masses = best
                x = y
        if flat >= PATIENCE or 2 * best[0] <= enough * len(observed):
            break
        if used >= look and used + TURNS < evaluations:
            curved, bent = _curvature(evaluate, y, masses, variance, bent)
            longest = STABLE / (curved + kl_weight) if curved > 0.0 else math.inf
            step = longest if look == 1 and curved > 0.0 else min(step, longest)
            used, look = used + TURNS, 2 * max(look, FIRST_LOOK)
        gradient = (masses - observed) / variance
        if kl_weight:
            gradient += kl_weight * y
        ahead = y - step * gradient
        if t > 1 and dot(gradient, ahead - x) > 0 and dot(gradient, y - x) > 0:
            t = 1.0
            x = y = ahead
            continue
        faster = (1 + math.sqrt(1 + 4 * t * t)) / 2
        y = ahead + min((t - 1) / faster, MOMENTUM) * (ahead - x)
        x, t, step = ahead, faster, min(step * GROWTH, longest)
    advance("fit", evaluations, evaluations)
    return best[1], best[2], used


def _curvature(
    evaluate: Callable[[Floats], tuple[Floats, float]],
    potentials: Floats,
    masses: Floats,
    variance: Floats,
    direction: Floats,
) -> tuple[float, Floats]:
    """Return the largest curvature of the loss in the potentials there, and the direction that bends most.

    The largest eigenvalue of the covariance of the blocks over their variances, by the power method along
    differences of masses, from where it stopped before. Two turns mostly reach 97 % of it; `STABLE` leaves
    room.
    """
    found, image = 0.0, direction if len(direction) else masses / variance
    for _ in range(TURNS):
        largest = float(np.abs(image).max())
        if not largest > 0.0:  # all blocks of each table weigh the same
            return 0.0, np.zeros(0)
        direction = image * (SMALL / largest)
        image = (evaluate(potentials + direction)[0] - masses) / variance
        found = math.sqrt(dot(image, image * variance) / dot(direction, direction * variance))
    return found, image
