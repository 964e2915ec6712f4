"""Streams of hard queries against a known truth, for the checks of update rules: no private data here."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.noise.sources import public_generator
from onlineic.queries.expressions import dense
from onlineic.queries.query import Query

STEP = 2.0**-18  # by how much an adversary's gap exceeds alpha: a few steps of the grid of weights
# (truth, cells of the hypothesis, alpha, generator) -> candidate weights, best first
Stream = Callable[[Floats, Floats, float, Any], Iterator[Floats]]


def random_stream(truth: Floats, cells: Floats, alpha: float, generator: Any) -> Iterator[Floats]:
    """Random 0/1 and fractional weights, and last the query with the largest gap of a linear hypothesis."""
    for _ in range(12):
        yield generator.integers(0, 2, len(truth)).astype(np.float64)
        yield generator.random(len(truth))
    yield (truth > cells).astype(np.float64)


def whole_stream(truth: Floats, cells: Floats, alpha: float, generator: Any) -> Iterator[Floats]:
    """Weight 1 everywhere but on the heaviest cell, whose weight makes the gap just exceed alpha."""
    yield from _tuned(truth, cells, alpha, np.ones(len(truth)))
    yield from half_stream(truth, cells, alpha, generator)


def half_stream(truth: Floats, cells: Floats, alpha: float, generator: Any) -> Iterator[Floats]:
    """The same on a random half of the cells: a step gains least where the weights vary most."""
    for _ in range(4):
        half = generator.permutation(len(truth)) < len(truth) // 2
        yield from _tuned(truth, cells, alpha, half.astype(np.float64))
    yield from random_stream(truth, cells, alpha, generator)


STREAMS: tuple[Stream, ...] = (random_stream, whole_stream, half_stream)


def probes(domain: Domain, seed: int) -> list[Query]:
    """Return 24 public queries or fewer: 0/1, fractional, and their complements; none is constant."""
    generator = public_generator(seed)
    arrays = np.concatenate(
        [generator.integers(0, 2, (12, domain.size)).astype(np.float64), generator.random((6, domain.size))]
    )
    arrays = np.concatenate([arrays, 1.0 - arrays[9:15]])
    return [query for array in arrays if (query := dense(array).bind(domain)).constant is None]


def _tuned(truth: Floats, cells: Floats, alpha: float, weights: Floats) -> Iterator[Floats]:
    heavy = int(np.argmax(truth))
    weights[heavy] = 0.0
    lever, rest = float(truth[heavy] - cells[heavy]), float(weights @ (truth - cells))
    for target in (alpha + STEP, -alpha - STEP):
        weight = (target - rest) / lever if lever else -1.0
        if 0.0 <= weight <= 1.0:
            weights[heavy] = weight
            yield weights.copy()
