"""Exact laws of threshold mechanisms: transcripts, hockey sticks and worst losses, as finite sums.

A mechanism is a `ThresholdRule`, right or wrong: mutants are other values of its fields.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal, final, get_args

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.errors import (
    InvalidParameterError,
    check_choice,
    checked_integer,
    checked_ratio,
    checked_real,
    set_fields,
    shown,
)

Method = Literal["discrete_laplace", "geometric", "none"]
REACH = 45  # scales of threshold noise that a transcript law sums over: mass beyond is below 1e-19
COPIES = (0, 3, 1000, 10**8)
EASY_LEVELS = (-6.0, -4.0, -2.0, 0.0, 2.0, 4.0)  # in scales of the widest noise
HARD_LEVELS = (-12.0, -6.0, -2.0, 0.0, 2.0, 4.0, 8.0)
RAREST = -600.0  # events below e^-600 do not count


@final
@attrs.frozen
class Law:
    """Integer noise: P(z) proportional to exp(-|z|/scale), on one side, mirrored, or none at all.

    Args:
        method: The name of the method of `Noise`; "none" is the constant 0.
        scale: Above 0.
        sign: -1: the noise is subtracted.
    """

    method: Method
    scale: Fraction = Fraction(1)
    sign: int = 1

    def __attrs_post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise InvalidParameterError(
                f"method must be one of {', '.join(map(repr, get_args(Method)))}, "
                f"got method={shown(self.method)}."
            )
        scale = checked_ratio("scale", self.scale, above=0.0)
        if self.sign not in (-1, 1):
            raise InvalidParameterError(f"sign must be 1 or -1, got sign={shown(self.sign)}.")
        set_fields(self, scale=scale, sign=int(self.sign))

    def log_mass(self, z: Floats) -> Floats:
        """Return ln P(Z = z)."""
        q, z = 1 / float(self.scale), self.sign * np.asarray(z, np.float64)
        with np.errstate(divide="ignore"):
            if self.method == "discrete_laplace":
                return math.log(-math.expm1(-q) / (1 + math.exp(-q))) - np.abs(z) * q
            if self.method == "geometric":
                return np.where(z >= 0, math.log(-math.expm1(-q)) - z * q, -math.inf)
            return np.where(z == 0, 0.0, -math.inf)

    def log_at_least(self, z: Floats) -> Floats:
        """Return ln P(Z >= z)."""
        z = np.asarray(z, np.float64)
        if self.sign < 0:  # P(-Y >= z) = P(Y < 1 - z)
            return attrs.evolve(self, sign=1).log_below(1 - z)
        q = 1 / float(self.scale)
        if self.method == "discrete_laplace":
            norm = math.log1p(math.exp(-q))
            with np.errstate(over="ignore", divide="ignore"):
                rest = np.log1p(-np.exp(np.minimum((z - 1) * q, 0.0) - norm))
            return np.where(z >= 1, -z * q - norm, rest)
        if self.method == "geometric":
            return -np.maximum(z, 0) * q
        return np.where(z <= 0, 0.0, -math.inf)

    def log_below(self, z: Floats) -> Floats:
        """Return ln P(Z < z)."""
        z = np.asarray(z, np.float64)
        if self.sign < 0:
            return attrs.evolve(self, sign=1).log_at_least(1 - z)
        if self.method == "discrete_laplace":
            return self.log_at_least(1 - z)  # symmetric
        if self.method == "geometric":
            with np.errstate(divide="ignore"):
                return np.log(-np.expm1(-np.maximum(z, 0) / float(self.scale)))
        return np.where(z > 0, 0.0, -math.inf)


@final
@attrs.frozen
class ThresholdRule:
    """Hit iff value + nu >= threshold + rho; the run ends with the cutoff-th hit.

    Args:
        threshold_noise, query_noise: Of rho, for the first hit, and of nu, fresh for every test.
        cutoff: At least 1.
        redraw: Law of the rho that every hit after the first gets; None: one rho is kept for the whole run.
        pair: A query tests its value, then minus its value if that did not fire.
    """

    threshold: int
    threshold_noise: Law
    query_noise: Law
    cutoff: int = 1
    redraw: Law | None = None
    pair: bool = False

    def __attrs_post_init__(self) -> None:
        set_fields(
            self,
            threshold=checked_integer("threshold", self.threshold),
            cutoff=checked_integer("cutoff", self.cutoff, at_least=1),
        )
        for name in ("threshold_noise", "query_noise", "redraw"):
            law = getattr(self, name)
            if not isinstance(law, Law) and not (law is None and name == "redraw"):
                raise InvalidParameterError(
                    f"{name} must be a Law, got a {type(law).__name__}; write Law('discrete_laplace', scale)."
                )


def transcript_law(rule: ThresholdRule, values: Sequence[int]) -> dict[str, float]:
    """Return the probability of every transcript: "0" easy, "1" hard ("+" or "-" in a pair), cut at the end.

    Sum over rho of p(rho) times one factor for each test; where rho is redrawn, a product of such sums.

    Args:
        values: Exact values (gaps of a pair) in the order of the tests, in grid units, not adaptive.
    """
    values = list(map(int, values))
    redraw = rule.redraw or rule.threshold_noise
    first, later = _points(rule.threshold_noise), _points(redraw)
    start, again = np.exp(rule.threshold_noise.log_mass(first)), np.exp(redraw.log_mass(later))
    law: dict[str, float] = {}

    def walk(place: int, hits: int, text: str, rho: Floats, weights: Floats) -> None:
        if place == len(values) or hits == rule.cutoff:
            law[text] = law.get(text, 0.0) + float(weights.sum())
            return
        for sign, symbol in ((1, "+"), (-1, "-")) if rule.pair else ((1, "1"),):
            needed = rule.threshold + rho - sign * values[place]
            fired = weights * np.exp(rule.query_noise.log_at_least(needed))
            weights = weights * np.exp(rule.query_noise.log_below(needed))
            if rule.redraw:
                walk(place + 1, hits + 1, text + symbol, later, again * fired.sum())
            else:
                walk(place + 1, hits + 1, text + symbol, rho, fired)
        walk(place + 1, hits, text + "0", rho, weights)

    walk(0, 0, "", first, start)
    return law


def hockey_stick(law: Mapping[str, float], other: Mapping[str, float], epsilon: float) -> float:
    """Return sum over transcripts of max(0, P - exp(epsilon) P'): the least delta, in this direction.

    Dwork & Roth (2014), Definition 2.4, at the event that maximises its difference.
    """
    factor = math.exp(checked_real("epsilon", epsilon, at_least=0.0, at_most=700.0))
    return math.fsum(max(0.0, float(p) - factor * float(other.get(text, 0.0))) for text, p in law.items())


def hockey_stick_with_numbers(
    law: Mapping[str, float], other: Mapping[str, float], epsilon: float, number_scale: Fraction, cutoff: int
) -> float:
    """Return the hockey-stick delta when every hit also releases its count plus fresh discrete Laplace noise.

    The count of every hit query moves by 1 (grid_bits = 0), the worst that one record can do. Then the
    likelihood ratio of a number is e^(1/s) or e^(-1/s), the former with probability 1/(1 + e^(-1/s)).

    Args:
        law, other: transcript -> probability. Neighbours.
        number_scale: Above 0. s.
        cutoff: Most hits of a transcript.
    """
    epsilon, step = float(epsilon), 1 / float(number_scale)
    more = 1 / (1 + math.exp(-step))
    total = []
    for text, p in law.items():
        hits = sum(symbol != "0" for symbol in text)
        if hits > cutoff:
            raise InvalidParameterError(f"cutoff must be >= the hits of a transcript, got cutoff={cutoff}.")
        for up in range(hits + 1):
            share = math.comb(hits, up) * more**up * (1 - more) ** (hits - up)
            ratio = math.exp(epsilon - step * (2 * up - hits))
            total.append(share * max(0.0, float(p) - ratio * float(other.get(text, 0.0))))
    return math.fsum(total)


def worst_loss(
    rule: ThresholdRule,
    sensitivity: int = 1,
    *,
    released: Literal["bit", "value", "gap"] = "bit",
    monotone: bool = False,
    number_scale: Fraction | None = None,
    copies: Sequence[int] | None = None,
) -> float:
    """Return the largest |ln P/P'| over a structured family of events: a lower bound, met by right rules.

    An event is m easy tests at level q, then a hit at level r, repeated until the cutoff; the neighbour moves
    q and r by the sensitivity, each either way. A pure claim below the result is false. Of a pair one side is
    judged, as if its threshold were so high that the other cannot fire.

    Dwork & Roth (2014), Theorem 3.23, is tight on this family: it gives 1.0000 epsilon. Streams of a few
    fixed queries are not enough; at cutoff 1 a threshold redrawn with too little noise looks right.

    Args:
        sensitivity: At least 1. Grid units.
        released: What a hit shows: nothing more, value + nu, or value + nu - threshold - rho.
        monotone: No value moves down where another moves up.
        number_scale: Fresh discrete Laplace noise on the count of every hit: adds cutoff
            sensitivity/number_scale.
        copies: The m to try, by default 0, 3, 1000 and 10^8. A rule whose loss grows with the number of tests
            has no epsilon at all: give one m after the other and see it grow.
    """
    sensitivity = checked_integer("sensitivity", sensitivity, at_least=1)
    tried = [checked_integer("copies", m, at_least=0) for m in (COPIES if copies is None else copies)]
    if not tried:  # nothing would be tried, and any rule pass
        raise InvalidParameterError("copies must hold one or more integers, got none.")
    check_choice("released", released, "bit", "value", "gap")
    sources = [rule.threshold_noise, rule.query_noise] + [rule.redraw] * (rule.redraw is not None)
    scale = max(float(law.scale) for law in sources if law and law.method != "none")
    easy = np.array(sorted({round(level * scale) for level in EASY_LEVELS}), np.float64)
    hard = np.array(sorted({round(level * scale) for level in HARD_LEVELS}), np.float64)
    steps = itertools.product((-1, 0, 1), repeat=2)
    moves = [(dq, dr) for dq, dr in steps if (dq * dr >= 0 if monotone else dq * dr != 0)]
    shown = (0.0,) if released == "bit" else (0.0, round(scale), round(4.0 * scale))
    worst = 0.0
    for m, excess in itertools.product(tried, shown):
        shifted = {
            (dq, dr): _event(
                rule, scale, m, easy + dq * sensitivity, hard + dr * sensitivity, released, excess
            )
            for dq, dr in {(0, 0), *moves}
        }
        here = shifted[0, 0]
        for there in (shifted[move] for move in moves):
            seen = np.maximum(here, there) > RAREST
            worst = max(worst, float(np.abs(here[seen] - there[seen]).max(initial=0.0)))
    return worst + (rule.cutoff * sensitivity / float(number_scale) if number_scale else 0.0)


def first_hit_delta(
    rule: ThresholdRule,
    values: Sequence[int],
    others: Sequence[int],
    epsilon: float,
    *,
    released: Literal["bit", "value"] = "bit",
) -> float:
    """Return the hockey-stick delta of a run up to its first hit: how LIKELY a loss above epsilon is.

    Exact for what is seen until then: the place of the hit, and with released="value" the number that was
    compared. A run that goes on has no smaller delta.

    Dwork & Roth (2014), Definition 2.4, at the event that maximises its difference.

    Args:
        values, others: Of one length. Exact values in the order of the tests, of the data and of a neighbour,
            not adaptive.
        epsilon: At least 0.

    Raises:
        InvalidParameterError: If the rule is a pair (drive each of its sides), or a parameter is outside its
            range.
    """
    if rule.pair:
        raise InvalidParameterError("rule must not be a pair, got pair=True; drive each of its sides.")
    check_choice("released", released, "bit", "value")
    factor = math.exp(checked_real("epsilon", epsilon, at_least=0.0, at_most=700.0))
    values, others = list(map(int, values)), list(map(int, others))
    rho = rule.threshold + _points(rule.threshold_noise)
    reach = math.ceil(REACH * rule.query_noise.scale)
    beyond = np.arange(rho[-1] + 1, max(rho[-1], *values, *others) + reach + 1)  # no threshold is as high
    numbers = np.concatenate([rho, beyond])

    @lru_cache(maxsize=64)
    def law(level: int) -> tuple[Floats, Floats]:
        """What a test multiplies: (easy, at each threshold; hit, at each threshold or with each number)."""
        noise = rule.query_noise
        fired = noise.log_at_least(rho - level) if released == "bit" else noise.log_mass(numbers - level)
        return np.exp(noise.log_below(rho - level)), np.exp(fired)

    if len(values) != len(others):
        raise InvalidParameterError(
            f"others must have the length of values, got {len(others)} for {len(values)}; "
            "a neighbour is asked the same queries."
        )
    left = [np.exp(rule.threshold_noise.log_mass(rho - rule.threshold))] * 2
    total = 0.0
    for levels in zip(values, others, strict=True):
        seen = []
        for side, level in enumerate(levels):
            easy, fired = law(level)
            if released == "bit":
                seen.append(np.array(left[side] @ fired))
            else:  # a number is possible at the thresholds up to it
                below = np.cumsum(left[side])
                seen.append(fired * np.concatenate([below, np.full(len(beyond), below[-1])]))
            left[side] = left[side] * easy
        total += float(np.maximum(0.0, seen[0] - factor * seen[1]).sum())
    return total + max(0.0, float(left[0].sum()) - factor * float(left[1].sum()))


def _event(
    rule: ThresholdRule, scale: float, m: int, easy: Floats, hard: Floats, released: str, excess: float
) -> Floats:
    """ln P of c times (m easy at level q, a hit at level r), (q, r) array; levels relative to threshold."""

    def epochs(law: Law, count: int) -> Floats:
        rho = np.zeros(1) if law.method == "none" else np.arange(round(-40 * scale), round(80 * scale) + 1.0)
        misses = rule.query_noise.log_below(rho - easy[:, None]) if m else np.zeros((len(easy), 1))
        if released == "bit":
            fired = rule.query_noise.log_at_least(rho - hard[:, None])
        elif released == "gap":
            fired = rule.query_noise.log_mass(rho + excess - hard[:, None])
        else:
            shown = rule.query_noise.log_mass(excess - hard[:, None])
            fired = np.where(rho <= excess, shown, -math.inf)
        # products of the two factors, each scaled by its largest term, so that no exponential overflows
        one = law.log_mass(rho) + (count * m * misses if m else misses)
        two = count * fired
        return np.array([[_log_sum(first + second) for second in two] for first in one])

    if rule.redraw is None:
        return epochs(rule.threshold_noise, rule.cutoff)
    total = epochs(rule.threshold_noise, 1)
    return total + (rule.cutoff - 1) * epochs(rule.redraw, 1) if rule.cutoff > 1 else total


def _log_sum(logs: Floats) -> float:
    """Return ln sum exp."""
    largest = float(logs.max())
    return largest if largest == -math.inf else largest + math.log(float(np.exp(logs - largest).sum()))


def _points(law: Law) -> Floats:
    """Where the noise of a threshold has any mass to speak of."""
    reach = 0 if law.method == "none" else math.ceil(REACH * law.scale)
    return np.arange(-reach, reach + 1, dtype=np.float64)
