"""e^x twice: in floats with a proven error and the same bits everywhere, and between two integers.

The float part uses + - *, rint and ldexp alone, so its error is proven, not measured: `exp_ieee` has
relative error < 2^-47 for |x| <= 404. k LN2HI and x - k LN2HI are exact, the reduced argument has
|r| < 0.36 and error < 3e-17, the truncated series errs by < 8e-18, Horner's scheme by < 4.2e-15.
Exact decisions (`onlineic.noise.gumbel`, `onlineic.noise.categorical`) screen with it and ask the integers
where the margin is too small.

Proof: docs/theory/noise.md, 3.5.
"""

import math
from fractions import Fraction

import numpy as np

from onlineic._typing import Floats
from onlineic.errors import InternalError

_LOG2E = float.fromhex("0x1.71547652b82fep+0")
_LN2HI = float.fromhex("0x1.62e42feep-1")
_LN2LO = float.fromhex("0x1.a39ef35793c76p-33")
_SERIES = tuple(1.0 / math.factorial(j) for j in range(13, -1, -1))


_C13, _C12, _C11, _C10, _C9, _C8, _C7, _C6, _C5, _C4, _C3, _C2, _C1, _C0 = _SERIES


# Arguments and results of `exp_ieee` as computed under round-to-nearest IEEE double arithmetic.
_GOLDEN = (
    ("0x0.0p+0", "0x1.0000000000000p+0"),
    ("-0x1.5c28f5c28f5c3p-2", "0x1.6c6d28e50ebb6p-1"),
    ("0x1.6666666666666p-2", "0x1.6b4802c805decp+0"),
    ("0x1.8000000000000p+2", "0x1.936dc5690c08fp+8"),
    ("-0x1.e000000000000p+5", "0x1.5ae191a99585ap-87"),
    ("-0x1.9400000000000p+8", "0x1.1c496e050b08fp-583"),
    ("-0x1.2f6c59c6444bfp+7", "0x1.1770a32369459p-219"),
    ("-0x1.528f776da7ad8p+5", "0x1.ecdf5faec8fb4p-62"),
    ("-0x1.6cb28977a61b0p+6", "0x1.60ec8bbde57e0p-132"),
    ("-0x1.38777a482adf6p+8", "0x1.2741cc7cec54ep-451"),
    ("-0x1.1a55498ba7ad2p+8", "0x1.99f73c225e2b4p-408"),
    ("-0x1.9ea6f14f7b3a0p+5", "0x1.2ac72f2e17e85p-75"),
    ("-0x1.90e22310e5202p+8", "0x1.9108d4160857ep-579"),
    ("-0x1.2376f6caa4580p+6", "0x1.d5f05e7199c33p-106"),
    ("-0x1.4a4ff6bb24a4cp+6", "0x1.d2434846cba0ep-120"),
    ("-0x1.d1dc562aa23fap+4", "0x1.fde6333628f83p-43"),
    ("-0x1.3fffb682b0e81p+5", "0x1.3984646ceaadbp-58"),
    ("-0x1.4cfdc4512ba22p+5", "0x1.ee59dd46f0176p-61"),
    ("-0x1.596dc99e941eap+5", "0x1.a1bba983c5ab9p-63"),
    ("-0x1.e9ffda0dca132p+4", "0x1.c32aa8d1edc48p-45"),
    ("-0x1.ab32711e27134p+4", "0x1.65218741bfb2ap-39"),
    ("-0x1.7781bd6578d5ap+4", "0x1.1a4f6fd154f03p-34"),
    ("0x1.6cfe422c67e80p+2", "0x1.2bc55d71826c9p+8"),
    ("-0x1.ebcbca252c6e0p+2", "0x1.e254b2448124fp-12"),
    ("0x1.905b5dbc29db8p-4", "0x1.1a4938e6136e3p+0"),
    ("0x1.908e600ab0f7ep-2", "0x1.7a8c8c3ff616bp+0"),
    ("-0x1.d2702fc36a874p-3", "0x1.97b75f4850096p-1"),
    ("-0x1.165ab386e54e0p-2", "0x1.8622b3a468abep-1"),
    ("0x1.70c50ffe2ce38p-4", "0x1.181e13ed68895p+0"),
    ("-0x1.759a4b02d53a2p-2", "0x1.637bb89a1b878p-1"),
)


def exp_ieee(x: Floats) -> Floats:
    """e^x with relative error < 2^-47 for |x| <= 404, the same bits on every IEEE machine."""
    power = np.rint(x * _LOG2E)
    r = (x - power * _LN2HI) - power * _LN2LO
    total = np.full_like(r, _C13)
    for coefficient in _SERIES[1:]:
        total *= r
        total += coefficient
    return np.ldexp(total, power.astype(np.int32))


def exp_ieee_one(x: float) -> float:
    """e^x of one float: the bits of `exp_ieee`."""
    k = round(x * _LOG2E)
    r = (x - k * _LN2HI) - k * _LN2LO
    total = (((((_C13 * r + _C12) * r + _C11) * r + _C10) * r + _C9) * r + _C8) * r + _C7
    total = ((((((total * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _C2) * r + _C1) * r + _C0
    return math.ldexp(total, k)


def decay_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low <= 2^bits e^-x <= high, x >= 0; directed rounding throughout."""
    if x >= bits:  # e^-x < 2^-bits
        return 0, 1
    square, units = 1 << 2 * bits, x.numerator << bits
    low = square // exp_up(-(-units // x.denominator), bits)
    return low, -(-square // exp_down(units // x.denominator, bits))


def exp_down(y: int, bits: int) -> int:
    """Lower bound of 2^bits e^(y/2^bits), y >= 0: halve below 2^-8, series, square back, floors."""
    halvings = max(0, y.bit_length() - bits + 8)
    fine = bits + halvings  # y is then y/2^halvings in units of 2^-fine: halving is exact
    total = term = 1 << fine
    j = 0
    while term:
        j += 1
        term = (term * y >> fine) // j
        total += term
    for _ in range(halvings):
        total = total * total >> fine
    return total >> halvings


def exp_up(y: int, bits: int) -> int:
    """Upper bound of 2^bits e^(y/2^bits), y >= 0: as `exp_down`, with ceilings."""
    halvings = max(0, y.bit_length() - bits + 8)
    fine = bits + halvings
    total = term = 1 << fine
    j = 0
    while term > 1:
        j += 1
        term = -(-term * y >> fine)
        term = -(-term // j)
        total += term
    total += 1  # the tail: at most term * 2^-7 with term <= 1
    for _ in range(halvings):
        total = -(-total * total >> fine)
    return -(-total >> halvings)


def check_arithmetic(golden: tuple[tuple[str, str], ...] = _GOLDEN) -> None:
    """Raise InternalError unless both forms of e^x give the stored bits on this machine."""
    arguments = [float.fromhex(argument) for argument, _ in golden]
    expected = [float.fromhex(value) for _, value in golden]
    if (
        exp_ieee(np.array(arguments)).tolist() != expected
        or [exp_ieee_one(argument) for argument in arguments] != expected
    ):
        raise InternalError(
            "Floating-point arithmetic must round to nearest in IEEE double precision, and does not here; "
            "exact tests and draws cannot be trusted on this machine."
        )


check_arithmetic()
