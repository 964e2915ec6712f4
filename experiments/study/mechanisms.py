"""What a mechanism's own calibration says of it, in counts, for comparisons that run no session."""

import math
from fractions import Fraction

from scipy.special import ndtri

import onlineic as ic
from onlineic.bounds import Margins
from onlineic.sparse import ExponentialSparse, GumbelSparse

N, BITS = 10**9, 8  # n plays no part in counts; the grid is fine enough for continuous laws
ALONE = {"max_queries": 1000, "n": N, "grid_bits": BITS, "alpha": 1e-12}  # c hard answers, no false hits


def gumbel_scale(hard_answers: int, epsilon: float, delta: float) -> float:
    """Return b, counts, of a Gumbel test that pays for c hits and next to nothing for their numbers."""
    budget, wide = ic.Budget(epsilon, delta), Fraction(1000)
    return (
        float(GumbelSparse.calibrated(budget, hard_answers=hard_answers, ratio=wide, **ALONE).scale) / 2**BITS
    )


def exponential_scales(hard_answers: int, epsilon: float) -> tuple[Fraction, Fraction]:
    """Return (b1, b2), counts, of the one-sided noises of threshold and tests that pay for c hits."""
    made = ExponentialSparse.calibrated(ic.Budget(epsilon), hard_answers=hard_answers, **ALONE)
    return made.threshold_scale / 2**BITS, made.query_scale / 2**BITS


def gumbel_margins(max_queries: int, epsilon: float, delta: float, beta: float = 0.05) -> Margins:
    """Return c -> (a_hit, a_miss, a_num), counts, of a Gumbel session planned for c hard answers.

    As `GumbelSparse.margins`, whose rounding to whole records matters where n is small, without it.
    """
    budget, ratio = ic.Budget(epsilon, delta), Fraction(2)

    def margins(cutoff: int) -> tuple[float, float, float]:
        made = GumbelSparse.calibrated(budget, hard_answers=cutoff, ratio=ratio, **ALONE)
        scale = float(made.scale) / 2**BITS
        return (
            scale * math.log(max_queries / (0.8 * beta)),
            scale * math.log(math.log(max_queries / (0.1 * beta))),
            -scale * float(ratio) * float(ndtri(0.1 * beta / (2 * cutoff))),
        )

    return margins
