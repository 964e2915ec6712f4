"""Accelerated mirror descent in the potentials of an exponential family."""

import math
from collections.abc import Callable

from onlineic._typing import Floats
from onlineic.progress import advance
from onlineic.queries.tables import dot


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
) -> tuple[Floats, Floats, int]:
    """Minimise ``sum (m - observed)^2 / (2 variance) + kl_weight KL(h || prior)`` over potentials of h.

    Mirror descent with Nesterov's momentum, restarted when the loss rises by 2 % or the gradient turns
    against the momentum. The best point seen is returned: its loss is never above that of `start`.

    Parameters
    ----------
    evaluate : callable
        Potentials to (block masses of ``h ~ prior * exp(potentials)``, log-normaliser), prior of total 1.
    start, observed, variance : float arrays, shape (blocks,)
        First potentials, noisy masses, variances of their noise.
    step : float
        First step, in units of variance; it grows by 3 % an iteration.
    evaluations, kl_weight, tolerance, enough
        As in `fit`; four evaluations in a row that lower the loss by less than the share `tolerance` end it.

    Returns
    -------
    potentials, masses, used
        Best point, and the number of evaluations.

    References
    ----------
    O'Donoghue and Candes (2015), "Adaptive restart for accelerated gradient schemes", the gradient scheme;
    here with a growing step and a second test against the extrapolation direction.
    """
    x = y = start
    t, flat, used = 1.0, 0, 0
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
            if not loss <= 1.02 * best[0]:  # written so that a loss that is not a number comes here too
                step, t = step / 2, 1.0
                _, y, masses = best
                x = y
        if flat >= 4 or 2 * best[0] <= enough * len(observed):
            break
        gradient = (masses - observed) / variance
        if kl_weight:
            gradient += kl_weight * y
        ahead = y - step * gradient
        if t > 1 and dot(gradient, ahead - x) > 0 and dot(gradient, y - x) > 0:
            t = 1.0
            x = y = ahead
            continue
        faster = (1 + math.sqrt(1 + 4 * t * t)) / 2
        y = ahead + (t - 1) / faster * (ahead - x)
        x, t, step = ahead, faster, step * 1.03
    advance("fit", evaluations, evaluations)
    return best[1], best[2], used
