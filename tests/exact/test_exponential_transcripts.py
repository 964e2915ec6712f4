"""The loss of `ExponentialSparse`, exactly: sums over the hidden threshold, and the decisions of the code."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from onlineic.sparse import ExponentialSparse, Hit
from onlineic.testing import ScriptedNoise

MOST = 4  # D, grid units
EASY = (0, 3, 1000, 10**8)


def one_sided(b):
    """(ln P(z), ln P(Z >= z)) of the geometric noise."""
    log_mass = math.log(-math.expm1(-1 / b))
    return (
        lambda z: np.where(z >= 0, log_mass - np.maximum(z, 0) / b, -np.inf),
        lambda z: -np.maximum(z, 0) / b,
    )


def downwards(b):
    """The geometric noise on 0, -1, -2, .. (wrong side)."""
    mass, _ = one_sided(b)
    return lambda z: mass(-z), None


def silent(log_tail):
    """ln P(Z < z) from ln P(Z >= z)."""
    with np.errstate(divide="ignore"):
        return np.log(-np.expm1(np.minimum(log_tail, -1e-300)))


def log_sum(terms):
    top = terms.max()
    return -math.inf if top == -math.inf else float(top + math.log(np.exp(terms - top).sum()))


def log_ratio(b1, b2, hits, sensitivity, released="bit", rho=None, limit=None):
    """Largest ln P/P' of "m easy tests at level q, then hits at level r", q and r moved by the sensitivity.

    Parameters: scales in grid units; rho a law of the threshold noise, None for none; `released` is the
    bit, the free gap, or the compared value.
    """
    t = np.arange(-30 * 40, 60 * 40) if rho else np.zeros(1)
    start = rho(t) if rho else np.zeros(1)
    mass, tail = one_sided(b2)
    worst = 0.0
    for m, q, r, sign in itertools.product(
        EASY, np.arange(-12, 13, 4) * 10, np.arange(-12, 9, 2) * 10, (1, -1)
    ):
        values = []
        for easy_level, level in ((q, r), (q + sign * MOST, r - sign * sensitivity)):
            log = start + (m * silent(tail(t - easy_level)) if m else 0.0)
            if released == "bit":
                log = log + hits * tail(t - level)
            elif released == "gap":
                log = log + hits * mass(t - level + 5)
            else:  # the compared value, v + nu = 6, tells about the threshold
                log = log + hits * np.where(t <= 6, mass(np.full(t.shape, 6 - level)), -np.inf)
            values.append(log_sum(log))
        if limit is not None and values[0] < limit:
            continue
        if values[0] > -600 and values[1] > -math.inf:
            worst = max(worst, values[0] - values[1])
        elif values[0] > -600:
            return math.inf
    return worst


def scales(hits, epsilon=1.0):
    first = epsilon / (1 + (2 * hits) ** (2 / 3))
    return MOST / first, 2 * hits * MOST / (epsilon - first)


class TestLoss:
    @pytest.mark.parametrize("hits", [1, 3])
    @pytest.mark.parametrize("sensitivity", [1, MOST])
    @pytest.mark.parametrize("released", ["bit", "gap"])
    def test_the_largest_loss_is_the_claim_and_no_more(self, hits, sensitivity, released):
        """D/b1 + hits (D + Delta)/b2, met with equality."""
        b1, b2 = scales(hits)
        claim = MOST / b1 + hits * (MOST + sensitivity) / b2

        worst = log_ratio(b1, b2, hits, sensitivity, released, rho=one_sided(b1)[0])

        assert worst <= claim * (1 + 1e-9)
        assert worst >= claim * 0.999

    @pytest.mark.parametrize(
        ("mutant", "least"),
        [
            ("test noise without c", 1.5),
            ("no test noise", 100.0),
            ("factor c for 2c", 1.5),
            ("c+1 hits", 1.2),
            ("sensitivity halved", 1.99),
            ("no threshold noise", 10.0),
            ("threshold noise downwards", 10.0),
            ("compared value released", 10.0),
        ],
    )
    def test_mutants_exceed_the_claim_of_1(self, mutant, least):
        hits = 3
        b1, b2 = scales(hits)
        up = one_sided(b1)[0]
        options = {"rho": up}
        if mutant == "test noise without c":
            b2 /= hits
        elif mutant == "no test noise":
            b2 = 1e-3
        elif mutant == "factor c for 2c":
            b2 /= 2
        elif mutant == "c+1 hits":
            hits += 1
        elif mutant == "sensitivity halved":
            b1, b2 = b1 / 2, b2 / 2
            options = {"rho": one_sided(b1)[0]}
        elif mutant == "no threshold noise":
            options = {}
        elif mutant == "threshold noise downwards":
            options = {"rho": downwards(b1)[0]}
        else:
            options = {"rho": up, "released": "value"}

        assert log_ratio(b1, b2, hits, MOST, **options) > least

    def test_charges_of_narrow_queries_are_met_one_by_one(self):
        """An adaptive stream of hits with sensitivities 1, 4, 2 costs D/b1 + sum (D + Delta)/b2."""
        b1, b2 = scales(3)
        t = np.arange(0, 4000)
        start, tail = one_sided(b1)[0](t), one_sided(b2)[1]
        logs = []
        for moved in (0, 1):
            log = start + 10**8 * silent(tail(t + 40 - MOST * moved))
            for delta in (1, 4, 2):
                log = log + tail(t + 100 + delta * moved)
            logs.append(log_sum(log))

        claim = MOST / b1 + (3 * MOST + 7) / b2
        assert 0.999 * claim <= abs(logs[0] - logs[1]) <= claim * (1 + 1e-9)


class TestDecisions:
    SPARSE = ExponentialSparse(1000, 1.0, 3, Fraction(2), Fraction(5))

    def test_the_code_decides_as_the_mechanism_for_all_small_noises(self):
        """Every (rho, nu, nu') in [0, 5]^3 and gap in [-6, 6]: with exact noise this is the exact law."""
        wrong = 0
        for rho, first, second, gap in itertools.product(range(6), range(6), range(6), range(-6, 7)):
            noise = ScriptedNoise([rho, first, second])
            state, hit = self.SPARSE.step(self.SPARSE.init(), gap, 1, noise)
            if gap + first >= 3 + rho:
                expected, used = Hit(side=1, excess=gap + first - 3 - rho), 2
            elif -gap + second >= 3 + rho:
                expected, used = Hit(side=-1, excess=-gap + second - 3 - rho), 3
            else:
                expected, used = None, 3
            kept = (int(expected is not None), rho)
            wrong += (
                hit != expected or len(noise.scales) != used or (state.hits, state.threshold_noise) != kept
            )

        assert wrong == 0

    def test_batches_decide_as_single_tests_for_all_small_noises(self):
        wrong = 0
        gaps = np.array([1, -2, 0, 3])
        for rho, *nus in itertools.product((0, 2), *[(0, 3)] * 8):
            state, easy, hit = self.SPARSE.step_many(
                self.SPARSE.init(), gaps, np.ones(4, np.int64), ScriptedNoise([rho, *nus])
            )
            values = [
                sign * gap + nu - 3 - rho
                for (gap, sign), nu in zip([(g, s) for g in gaps.tolist() for s in (1, -1)], nus, strict=True)
            ]
            first = next((i for i, value in enumerate(values) if value >= 0), None)
            if first is None:
                wrong += (easy, hit, state.hits) != (4, None, 0)
            else:
                fired = Hit(side=-1 if first % 2 else 1, excess=values[first])
                wrong += (easy, hit, state.hits) != (first // 2, fired, 1)

        assert wrong == 0
