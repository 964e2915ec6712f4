"""Each sampler is taken apart and enumerated: equalities of integers and fractions, no p-values."""

import inspect
import itertools
import math
import struct
import types
from fractions import Fraction

import numpy as np
import pytest

from onlineic.errors import InternalError
from onlineic.noise import samplers as _samplers
from onlineic.noise.samplers import (
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    geometric_e1,
    uniform_below,
    words,
)

COINS = [  # numerator, denominator, steps enumerated
    (1, 2, 6),
    (1, 1, 8),
    (1, 3, 5),
    (2, 3, 5),
    (3, 3, 5),
    (1, 4, 5),
    (3, 4, 5),
    (5, 7, 4),
    (0, 5, 4),
    (5, 5, 4),
]


def no_bytes(size):
    raise AssertionError(f"{size} bytes were asked for")


def cycle(values, lane):
    """Byte source that plays the lanes of `values` for ever."""
    stream = itertools.cycle(values)
    width = struct.calcsize(lane)
    return lambda size: b"".join(
        struct.pack("<" + lane, value) for value in itertools.islice(stream, size // width)
    )


def enumerate_coin(module, monkeypatch, numerator, denominator, steps):
    """Accepted share of ALL combinations of the first `steps` uniforms; undecided ones count as refused.

    Any other request than one uniform below denominator * k for each lane still active fails.
    """
    limits = [denominator * step for step in range(1, steps + 1)]
    columns = np.unravel_index(np.arange(math.prod(limits)), limits)
    state = {"step": 0, "active": np.arange(math.prod(limits)), "undecided": None}

    def play(limit, size, source):
        step, active = state["step"], state["active"]
        state["step"] += 1
        assert (limit, size) == (denominator * (step + 1), active.size)
        if step == steps:
            state["undecided"] = active
            state["active"] = active[:0]
            return np.full(size, limit, np.int64)  # ends every undecided lane
        state["active"] = active[columns[step][active] < numerator]
        return columns[step][active].astype(np.int64)

    monkeypatch.setattr(module, "uniform_below", play)
    accepted = module.bernoulli_exp(np.full(math.prod(limits), numerator, np.int64), denominator, no_bytes)
    if state["undecided"] is not None:
        accepted[state["undecided"]] = False
    return Fraction(int(accepted.sum()), accepted.size)


@pytest.mark.parametrize("limit", [2, 3, 5, 7, 10, 16, 17, 100, 127, 128, 129, 200, 255, 256])
def test_every_byte_once_gives_every_value_equally_often(limit):
    lanes_each = 256 >> (limit - 1).bit_length()

    values = uniform_below(limit, limit * lanes_each, cycle(range(256), "B"))

    assert [lanes_each] * limit == np.bincount(values, minlength=limit).tolist()


@pytest.mark.parametrize("limit", [257, 1000, 4096, 40_000, 65_535, 65_536])
def test_every_two_bytes_once_give_every_value_equally_often(limit):
    lanes_each = 65_536 >> (limit - 1).bit_length()

    values = uniform_below(limit, limit * lanes_each, cycle(range(65_536), "H"))

    assert [lanes_each] * limit == np.bincount(values, minlength=limit).tolist()


@pytest.mark.parametrize(
    ("limit", "lane", "lanes", "expected"),
    [
        (65_537, "I", [0, 65_536, 65_537, 2**17 - 1, 2**31 + 5], [0, 65_536, 5]),
        (2**32, "I", [0, 2**32 - 1], [0, 2**32 - 1]),
        (2**32 + 1, "Q", [2**32, 2**32 + 1, 2**40 + 7], [2**32, 7]),
        (2**53 - 1, "Q", [2**53 - 1, 2**53 - 2], [2**53 - 2, 2**53 - 2]),
        (2**63 - 1, "Q", [2**63 - 1, 2**63 - 2, 2**64 - 2], [2**63 - 2, 2**63 - 2]),
        (2**63, "Q", [2**63 - 1, 2**64 - 1, 2**63], [2**63 - 1, 2**63 - 1, 0]),
    ],
)
def test_wide_lanes_keep_their_low_bits_and_are_rejected_from_the_limit_on(limit, lane, lanes, expected):
    assert expected == uniform_below(limit, len(expected), cycle(lanes, lane)).tolist()


def test_one_value_needs_no_bytes():
    assert [0, 0, 0] == uniform_below(1, 3, no_bytes).tolist()


def test_no_values_are_no_values():
    source = cycle(range(256), "B")

    assert [0] * 6 == [
        uniform_below(3, 0, source).size,
        geometric_e1(0, source).size,
        geometric(3, 2, 0, source).size,
        discrete_laplace(3, 2, 0, source).size,
        discrete_gaussian(3, 0, source).size,
        words(0, source).size,
    ]


def test_words_are_the_bytes():
    assert [1, 2**64 - 1] == words(2, cycle([1, 2**64 - 1], "Q")).tolist()


@pytest.mark.parametrize(("numerator", "denominator", "steps"), COINS)
def test_coin_has_bias_exp_minus_x_on_every_combination_of_uniforms(
    monkeypatch, numerator, denominator, steps
):
    x = Fraction(numerator, denominator)
    expected = sum(
        x ** (step - 1) / math.factorial(step - 1) - x**step / math.factorial(step)
        for step in range(1, steps + 1, 2)
    )

    assert expected == enumerate_coin(_samplers, monkeypatch, numerator, denominator, steps)


@pytest.mark.parametrize(
    ("shipped", "broken"),
    [
        ("return accepted\n", "return ~accepted\n"),
        (", source) < numerators", ", source) <= numerators"),
        ("limit = denominator * step\n", "limit = denominator\n"),
    ],
    ids=["parity flipped", "<= in the coin", "denominator not multiplied by the step"],
)
def test_broken_coin_fails_the_enumeration(monkeypatch, shipped, broken):
    source = inspect.getsource(_samplers)
    assert source.count(shipped) == 1
    mutant = types.ModuleType("mutant")
    exec(source.replace(shipped, broken), mutant.__dict__)  # the shipped text but for the planted error
    x = Fraction(2, 3)
    right = 1 - x + x**2 / 2 - x**3 / 6 + x**4 / 24 - x**5 / 120

    assert right == enumerate_coin(_samplers, monkeypatch, 2, 3, 5)
    try:
        share = enumerate_coin(mutant, monkeypatch, 2, 3, 5)
    except AssertionError:
        return  # it asked for another uniform than the algorithm's
    assert right != share


def test_undecided_coin_at_the_edge_of_int64_is_an_internal_error(monkeypatch):
    monkeypatch.setattr(_samplers, "uniform_below", lambda limit, size, source: np.zeros(size, np.int64))

    with pytest.raises(InternalError, match="undecided after 2\\^63 / denominator steps"):
        bernoulli_exp(np.ones(1, np.int64), 2**53, no_bytes)


@pytest.mark.parametrize("coins", ["HHTTHT", "TTT", "HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHT", "THHT"])
def test_runs_of_heads_are_read_off_across_rounds(monkeypatch, coins):
    """The script plays whatever the number of coins asked for at once, so runs cross rounds."""
    expected = [len(run) for run in coins.split("T")[:-1]]
    stream = itertools.chain(coins, itertools.repeat("T"))
    monkeypatch.setattr(
        _samplers,
        "bernoulli_exp",
        lambda numerators, denominator, source: np.array([next(stream) == "H" for _ in numerators]),
    )

    assert expected == geometric_e1(len(expected), no_bytes).tolist()


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 1), (10, 1), (37, 10), (1, 3), (7, 16)])
def test_low_digit_and_run_make_every_integer_once(monkeypatch, numerator, denominator):
    """U + t V takes each integer once, with weight exp(-U/t) exp(-V) = exp(-(U + t V)/t); Y = . // s."""
    runs = 5
    tested = []

    def coin(numerators, denominator, source):
        tested.append((numerators.tolist(), denominator))
        return np.ones(numerators.size, np.bool_)

    digits = np.repeat(np.arange(numerator), runs)
    monkeypatch.setattr(_samplers, "uniform_below", lambda limit, size, source: np.resize(digits, size))
    monkeypatch.setattr(_samplers, "bernoulli_exp", coin)
    monkeypatch.setattr(_samplers, "geometric_e1", lambda size, source: np.arange(size) % runs)
    values = geometric(numerator, denominator, numerator * runs, no_bytes)

    assert [y // denominator for y in range(numerator * runs)] == sorted(values.tolist())
    assert (np.resize(digits, len(tested[0][0])).tolist(), numerator) == tested[0]


def test_each_sign_of_each_size_is_kept_once_and_zero_once(monkeypatch):
    monkeypatch.setattr(_samplers, "geometric", lambda t, s, size, source: np.arange(size) % 8 // 2)
    monkeypatch.setattr(_samplers, "uniform_below", lambda limit, size, source: np.arange(size) % limit)

    assert [0, 1, -1, 2, -2, 3, -3] == discrete_laplace(5, 1, 7, no_bytes).tolist()


@pytest.mark.parametrize("sigma", [1, 5, 100, 2**26])
def test_gaussian_acceptance_is_the_exact_exponent_also_beyond_int64(monkeypatch, sigma):
    """Whole and part add up to (|y| - sigma)^2 / (2 sigma^2); offsets of 2^31 and more never raise."""
    far = [2**31 - 1, 2**31, 2**31 + 1, 3 * 2**31, 2**40, 2**61] if sigma > 100 else [2**31 - 1, 2**20]
    proposals = [0, 1, -1, sigma, -sigma, 2 * sigma, 3 * sigma + 1, -4 * sigma]
    proposals += [sign * (sigma + offset) for offset in far for sign in (1, -1)]
    parts = []

    def coin(numerators, denominator, source):
        parts[:] = [Fraction(part, denominator) for part in numerators.tolist()]
        return np.ones(numerators.size, np.bool_)

    monkeypatch.setattr(_samplers, "bernoulli_exp", coin)
    for index, proposal in enumerate(proposals):
        exponent = Fraction((abs(proposal) - sigma) ** 2, 2 * sigma**2)
        wholes = min(math.floor(exponent), 2**62)
        # One lane at a time; the run of successes is exactly long enough, then one short (then long).
        for run, expected in [(wholes, proposal), (wholes - 1, None)]:
            if run < 0:
                continue
            runs = iter([run])
            lanes = iter([proposal])
            monkeypatch.setattr(
                _samplers,
                "discrete_laplace",
                lambda t, s, size, source, lanes=lanes: np.array([next(lanes, sigma)], np.int64),
            )
            monkeypatch.setattr(
                _samplers,
                "geometric_e1",
                lambda size, source, runs=runs: np.array([next(runs) for _ in range(size)], np.int64),
            )
            value = discrete_gaussian(sigma, 1, no_bytes).tolist()

            assert [sigma if expected is None else expected] == value, (index, run)
            if expected is not None:
                assert exponent - math.floor(exponent) == parts[0]
