"""Streams of hard queries against a known truth, for the checks of update rules: no private data here."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.noise.sources import public_generator
from onlineic.queries.expressions import dense, where
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
    """Return public queries: 0/1 and fractional weights of cells, complements, and products of labels.

    The products come last, for hypotheses that decline all others. None is constant.
    """
    generator = public_generator(seed)
    arrays = np.concatenate(
        [generator.integers(0, 2, (12, domain.size)).astype(np.float64), generator.random((6, domain.size))]
    )
    arrays = np.concatenate([arrays, 1.0 - arrays[9:15]])
    asked = [dense(array).bind(domain) for array in arrays]
    return [query for query in [*asked, *products(domain)] if query.constant is None]


def products(domain: Domain) -> list[Query]:
    """Return the query of the first and of the last label of every attribute, and of their cells."""
    ends = [(kind.label(0), kind.label(kind.size - 1)) for kind in domain.attributes]
    held = [{name: pair[end]} for name, pair in zip(domain.names, ends, strict=True) for end in (0, 1)]
    held += [{name: pair[end] for name, pair in zip(domain.names, ends, strict=True)} for end in (0, 1)]
    return [where(one).bind(domain) for one in held]


def cells_of(domain: Domain) -> list[Query]:
    """Return the query of every cell as a product of labels."""
    labels = [[kind.label(code) for code in range(kind.size)] for kind in domain.attributes]
    return [
        where(dict(zip(domain.names, cell, strict=True))).bind(domain) for cell in itertools.product(*labels)
    ]


def _tuned(truth: Floats, cells: Floats, alpha: float, weights: Floats) -> Iterator[Floats]:
    heavy = int(np.argmax(truth))
    weights[heavy] = 0.0
    lever, rest = float(truth[heavy] - cells[heavy]), float(weights @ (truth - cells))
    for target in (alpha + STEP, -alpha - STEP):
        weight = (target - rest) / lever if lever else -1.0
        if 0.0 <= weight <= 1.0:
            weights[heavy] = weight
            yield weights.copy()
