"""Audits of threshold mechanisms: exact transcript laws, exact worst losses, tests of drawn transcripts.

A mechanism enters as a `ThresholdRule`, read off running code by `observe`, so that what is judged is what
runs. Integer noise makes every probability a finite sum; nothing here is private or secret.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate

from onlineic.audit.laws import Law, Method, ThresholdRule
from onlineic.errors import (
    InternalError,
    InvalidParameterError,
    SessionExhaustedError,
    checked_integer,
    checked_real,
)
from onlineic.noise.scripted import ScriptedNoise
from onlineic.noise.sources import Noise
from onlineic.sparse.base import SparseState

Step = Callable[[SparseState, int, Noise], tuple[SparseState, bool]]
MOST_HITS = 1000  # of an observed run, so that a mechanism without a cutoff ends too


def observe(init: SparseState, step: Step, *, largest: int = 2**40) -> ThresholdRule:
    """Return the rule that a running step obeys, found by scripted noise alone.

    Draws are told apart by what they do to the least value that fires: a query noise lowers it by itself, a
    threshold noise raises it. A draw that does neither (the unused side of a pair) is passed over. `pair` is
    not observed: drive a pair through each of its sides.

    Args:
        init: State before the first test.
        step: (state, value, noise) -> (state, fired). One test; raises `SessionExhaustedError` after the last
            hit.
        largest: Values are searched in [-largest, largest].

    Raises:
        InternalError: If no such rule explains the outcomes.
    """
    largest = checked_integer("largest", largest, at_least=1)
    base = _least(step, init, [], largest)
    first, query = _roles(step, init, base, largest)
    missed = _run(step, init, -largest, [1000 if first.method != "none" else 0])[0]
    if _least(step, missed, [], largest) != base + 1000 * (first.method != "none"):
        raise InternalError("threshold noise must be kept between hits.")
    state, hits, redraw = init, 0, None
    while True:
        try:
            state, fired = _run(step, state, largest, [1000 if first.method != "none" else 0])
        except SessionExhaustedError:
            break
        hits += 1
        if not fired or hits > MOST_HITS:
            raise InternalError(f"a run must fire at largest={largest} and end after {MOST_HITS} hits.")
        if hits == 1:
            redraw, again = _after_hit(step, state, base, largest)
            if again not in (None, query):
                raise InternalError("query noise must have one law.")
    return ThresholdRule(base, first, query, hits, redraw)


def goodness_of_fit(counts: Mapping[str, int], law: Mapping[str, float]) -> float:
    """Return the chi-square p-value of drawn transcripts; 0 if one of them is impossible.

    Pearson's test. The gate of this package is 1e-9, so that neither retries nor picked seeds are needed.

    Args:
        counts: transcript -> number of runs.
        law: transcript -> probability. Cells with an expectation below 10 are pooled.
    """
    from scipy.special import gammaincc

    counts = {text: int(count) for text, count in counts.items()}
    law = {text: float(p) for text, p in law.items()}
    runs = sum(counts.values())
    if any(count and law.get(text, 0.0) <= 0.0 for text, count in counts.items()):
        return 0.0
    cells = sorted((runs * p, counts.get(text, 0)) for text, p in law.items())
    pooled = [0.0, 0]
    kept = []
    for expected, observed in cells:  # ascending: the pool takes the smallest until it is large enough
        if expected < 10 or 0 < pooled[0] < 10:
            pooled = [pooled[0] + expected, pooled[1] + observed]
        else:
            kept.append((expected, observed))
    if pooled[0] > 0:
        kept.append((pooled[0], int(pooled[1])))
    if len(kept) < 2:
        raise InvalidParameterError("counts must hold enough runs for two cells of expectation 10.")
    statistic = math.fsum((observed - expected) ** 2 / expected for expected, observed in kept)
    return float(gammaincc((len(kept) - 1) / 2, statistic / 2))


def epsilon_lower_bound(
    hits: int, runs: int, other_hits: int, other_runs: int, *, delta: float = 0.0, alpha: float = 0.05
) -> float:
    """Return ln(low(p) - delta) - ln(high(p')), at least 0: epsilon is no smaller, at confidence 1 - alpha.

    Args:
        hits, other_hits: Runs on either neighbour in which an event happened that was fixed before these
            runs.
        runs, other_runs: At least 0. All runs on either; hits <= runs.
        delta: In [0, 1).
        alpha: In (0, 1). Clopper-Pearson bounds at alpha/2 each.

    Raises:
        InvalidParameterError: If a parameter is outside its range: a negative delta would certify too much.
    """
    from scipy.special import betaincinv

    alpha = checked_real("alpha", alpha, above=0.0, below=1.0)
    delta = checked_real("delta", delta, at_least=0.0, below=1.0)
    runs, other_runs = (
        checked_integer("runs", runs, at_least=0),
        checked_integer("other_runs", other_runs, at_least=0),
    )
    hits = checked_integer("hits", hits, at_least=0, at_most=runs)
    other_hits = checked_integer("other_hits", other_hits, at_least=0, at_most=other_runs)
    low = float(betaincinv(hits, runs - hits + 1, alpha / 2)) if hits else 0.0
    misses = other_runs - other_hits
    high = float(betaincinv(other_hits + 1, misses, 1 - alpha / 2)) if misses else 1.0
    if low <= delta:
        return 0.0
    return max(0.0, math.log(low - delta) - math.log(high))


def black_box_epsilon(
    runs: Sequence[Hashable], other: Sequence[Hashable], *, delta: float = 0.0, alpha: float = 0.05
) -> float:
    """Return a lower bound on epsilon from transcripts alone, in the better direction, each at alpha/2.

    The first half of the runs ranks transcripts by the log-ratio of their smoothed frequencies and fixes
    the event, the second half certifies it by `epsilon_lower_bound`. A second net: it misses most errors of
    mechanisms with several hits, which `worst_loss` finds.

    Args:
        runs, other: Sequences of transcripts. Independent runs of the mechanism on two neighbouring inputs,
            in the order of drawing.
        delta, alpha: As in `epsilon_lower_bound`.
    """
    return max(
        _one_direction(list(runs), list(other), delta, alpha / 2),
        _one_direction(list(other), list(runs), delta, alpha / 2),
    )


def _one_direction(runs: list[Hashable], other: list[Hashable], delta: float, alpha: float) -> float:
    """Lower bound from events that are likelier in `runs`."""
    half, other_half = len(runs) // 2, len(other) // 2
    seen, seen_other = Counter(runs[:half]), Counter(other[:other_half])
    ratio = {text: (seen[text] + 1) / (seen_other[text] + 1) for text in seen | seen_other}
    ranked = sorted(ratio, key=lambda text: (-ratio[text], repr(text)))
    hits = accumulate(seen[text] for text in ranked)
    other_hits = accumulate(seen_other[text] for text in ranked)
    bounds = [
        epsilon_lower_bound(upto, half, other_upto, other_half, delta=delta, alpha=alpha)
        for upto, other_upto in zip(hits, other_hits, strict=True)
    ]
    best = max(bounds, default=0.0)
    chosen = set(ranked[: bounds.index(best) + 1]) if best > 0.0 else set()
    return epsilon_lower_bound(
        sum(text in chosen for text in runs[half:]),
        len(runs) - half,
        sum(text in chosen for text in other[other_half:]),
        len(other) - other_half,
        delta=delta,
        alpha=alpha,
    )


def _after_hit(step: Step, state: SparseState, base: int, largest: int) -> tuple[Law | None, Law | None]:
    """(law of the redrawn threshold or None, query noise) after a hit; (None, None) after the last one."""
    try:
        threshold = _least(step, state, [], largest)
    except SessionExhaustedError:
        return None, None
    drawn, query = _roles(step, state, threshold, largest)
    if drawn.method != "none" and threshold != base:
        raise InternalError("a redrawn threshold must forget the old one.")
    return (drawn if drawn.method != "none" else None), query


def _run(step: Step, state: SparseState, value: int, draws: Sequence[int]) -> tuple[SparseState, bool]:
    """One test under a script that is longer than it needs to be."""
    return step(state, value, ScriptedNoise([*draws, *[0] * 8]))


def _asked(step: Step, state: SparseState, value: int) -> list[Law]:
    """Laws of the draws of one test."""
    noise = ScriptedNoise([0] * 8)
    step(state, value, noise)
    laws = []
    for method, scale, size in noise.scales:
        if scale is None or method not in ("discrete_laplace", "geometric"):
            raise InternalError(f"noise must be discrete Laplace or geometric, got {method}.")
        name: Method = "geometric" if method == "geometric" else "discrete_laplace"
        laws += [Law(name, Fraction(scale))] * size
    return laws


def _least(step: Step, state: SparseState, draws: Sequence[int], largest: int) -> int:
    """Least value that fires under these draws."""

    def fires(value: int) -> bool:
        return _run(step, state, value, draws)[1]

    if fires(-largest) or not fires(largest):
        raise InternalError(f"largest must lie beyond the threshold, got largest={largest}.")
    return bisect_left(range(-largest, largest), True, key=fires) - largest


def _roles(step: Step, state: SparseState, base: int, largest: int) -> tuple[Law, Law]:
    """(threshold noise, query noise) of the next test, told apart by what they do to the least value."""
    laws = _asked(step, state, -largest)
    found = {1: Law("none"), -1: Law("none")}
    for place, law in enumerate(laws):
        moved = [_least(step, state, [0] * place + [size], largest) - base for size in (1, 1000)]
        if moved == [0, 0]:
            continue
        side = 1 if moved[0] > 0 else -1
        if moved != [side, 1000 * side] or found[side].method != "none":
            raise InternalError(f"draw {place} must move the threshold or the value one for one.")
        found[side] = law
    return found[1], found[-1]
