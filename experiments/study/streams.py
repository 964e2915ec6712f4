"""The streams of the gallery: real tables, made-up ones without structure or with too much, few questions.

Every stream is made by a function of its name alone, so that a script can run some of them.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

import onlineic as ic
from onlineic.evaluate import random_stream
from onlineic.plan.announced import Announcement
from study.sources import (
    Stream,
    adult5_data,
    adult5_ranges,
    adult_workload,
    conjunctions,
    covid,
    mixture,
    nltcs,
    one_dimensional,
    present,
    stream_of,
)

DENSE = ("random subsets", "halfspaces", "parities", "conjunctions")  # over a table without structure
FEW = "few records"  # random subsets over one of which a mean cell does not stand clear of its noise
RANGES = {"HEPTH": "hepth", "GROSS": "salaries", "FRANK": "capital-loss", "PATENT": "patent"}
REAL = ("adult6", "adult5", "NLTCS", "adult8-2way", *RANGES)  # tables of people
CHAIN = (12, 8, 6, 5, 4)  # codes of attributes of which each depends on the one before
DELTA, DELTA_OF_DENSE = 1e-9, 1e-6


@attrs.frozen
class Sizes:
    """How long the streams are, at most; all of them come from one seed."""

    queries: int = 10_000
    covid: int = 20_000
    mixture: int = 20_000
    dense: int = 300
    made: int = 1_000
    few: tuple[int, ...] = (1, 5, 30, 100, 1_000)
    seed: int = 7


def quick_sizes() -> Sizes:
    return Sizes(queries=200, covid=200, mixture=200, dense=20, made=50, few=(1, 30))


def makers(sizes: Sizes) -> dict[str, Callable[[], Stream]]:
    """Return label -> maker of every stream."""
    seed = sizes.seed
    found: dict[str, Callable[[], Stream]] = {
        "adult6": partial(adult_workload, "adult6", sizes.queries),
        "adult5": partial(adult5_ranges, sizes.queries, 1),
        "NLTCS": partial(_survey, sizes.queries),
        "adult8-2way": partial(adult_workload, "adult8-2way", sizes.queries),
    }
    found |= {label: partial(_ranges, name, sizes.queries) for label, name in RANGES.items()}
    for exponent in (0, 1):
        label = f"covid, Zipf {exponent}"
        found[label] = partial(_covid, exponent, label, sizes.covid)
    found["bin17"] = partial(_mixture, sizes.mixture)
    found |= {f"no structure, {kind}": partial(_dense, kind, sizes.dense, seed) for kind in DENSE}
    found[f"no structure, {FEW}"] = partial(_dense, "random subsets", sizes.dense, seed, 10_000)
    found["no structure, ranges"] = partial(_unstructured, sizes.made, seed)
    for depth in (3, 5):
        found[f"chain of {depth}"] = partial(_chain, depth, sizes.made, seed)
    for size in sizes.few:
        found[f"adult5, {size:,} asked"] = partial(_few, size, seed)
    return {label: partial(_called, label, make) for label, make in found.items()}


def streams(sizes: Sizes, absent: list[str], only: Sequence[str] = ()) -> Iterator[Stream]:
    """Yield every stream whose table is there, or those of these names, one at a time."""
    made = makers(sizes)
    yield from present({label: make for label, make in made.items() if not only or label in only}, absent)


def runs_of(stream: Stream, least: int, answers: int, most: int) -> int:
    """Return how many runs there are of a stream: of few questions more, for so many answers in all."""
    return max(least, min(most, math.ceil(answers / len(stream.queries))))


def budget_of(stream: Stream) -> ic.Budget:
    """Return (1, 1e-9), or (1, 1e-6) for the tables without structure."""
    return ic.Budget(1.0, DELTA_OF_DENSE if _is_loose(stream.label) else DELTA)


def announced(stream: Stream) -> Announcement:
    """Return what `onlineic.forecast` is told: how many queries there are, and whether they are dense."""
    dense = _is_loose(stream.label) and not stream.label.endswith("conjunctions")
    return Announcement(len(stream.queries), dense=dense)


def _is_loose(label: str) -> bool:
    return label.partition("no structure, ")[2] in (*DENSE, FEW)


def _called(label: str, make: Callable[[], Stream]) -> Stream:
    return attrs.evolve(make(), label=label)


def _survey(size: int) -> Stream:
    data = nltcs()
    return stream_of("", data, conjunctions(data.domain, size, 4, 1))


def _ranges(name: str, size: int) -> Stream:
    data = one_dimensional(name)
    return stream_of("", data, random_stream(data.domain, size, 1))


def _covid(exponent: int, label: str, size: int) -> Stream:
    return covid(exponent).asked(label, size)


def _mixture(size: int) -> Stream:
    return mixture().asked("bin17", size)


def _dense(kind: str, size: int, seed: int, n: int = 100_000) -> Stream:
    """Return queries over ten binary attributes of a random table, of which pairs hold next to nothing."""
    generator = np.random.default_rng([seed, DENSE.index(kind)])
    domain = ic.Domain.of({f"b{place}": 2 for place in range(10)})
    data = ic.PrivateData(generator.multinomial(n, generator.dirichlet(np.full(1024, 0.3))), domain)
    return stream_of("", data, dense_queries(kind, size, generator))


def dense_queries(kind: str, size: int, generator: np.random.Generator) -> list[Any]:
    """Return queries of one of the kinds of `DENSE` over ten binary attributes."""
    corners = np.array(list(np.ndindex(*(2,) * 10)))
    asked = []
    for _ in range(size):
        three = generator.choice(10, 3, replace=False)
        if kind == "conjunctions":
            asked.append(ic.where({f"b{place}": int(generator.integers(2)) for place in three}))
            continue
        if kind == "random subsets":
            inside = generator.integers(0, 2, len(corners))
        elif kind == "halfspaces":
            inside = (corners - 0.5) @ generator.normal(size=10) >= 0.0
        else:
            inside = corners[:, three].sum(axis=1) % 2
        asked.append(ic.dense(np.asarray(inside, np.float64).reshape((2,) * 10)))
    return asked


def _unstructured(size: int, seed: int) -> Stream:
    """Return ranges over a random table of five attributes, too large to buy all of its cells."""
    generator = np.random.default_rng(seed)
    domain = ic.Domain.of({f"a{place}": codes for place, codes in enumerate(CHAIN)})
    law = generator.dirichlet(np.full(domain.size, 0.3))
    data = ic.PrivateData(generator.multinomial(100_000, law), domain)
    return stream_of("", data, random_stream(domain, size, seed))


def _chain(depth: int, size: int, seed: int) -> Stream:
    """Return ranges over a table of which each attribute is a noisy copy of the one before."""
    generator, records = np.random.default_rng([seed, depth]), 60_000
    codes = [generator.integers(0, CHAIN[0], records)]
    for before, width in itertools.pairwise(CHAIN[:depth]):
        copied = (codes[-1] * width // before + (generator.random(records) < 0.3)) % width
        codes.append(np.where(generator.random(records) < 0.1, generator.integers(0, width, records), copied))
    domain = ic.Domain.of({f"a{place}": width for place, width in enumerate(CHAIN[:depth])})
    counts = np.bincount(np.ravel_multi_index(codes, CHAIN[:depth]), minlength=domain.size)
    data = ic.PrivateData(counts, domain)
    return stream_of("", data, random_stream(domain, size, seed))


def _few(size: int, seed: int) -> Stream:
    data = adult5_data()
    return stream_of("", data, distinct(data.domain, size, seed))


def distinct(domain: ic.Domain, size: int, seed: int) -> list[Any]:
    """Return the first so many different questions of a random stream."""
    found: dict[Any, Any] = {}
    for expression in random_stream(domain, 3 * size + 20, seed):
        query = expression.bind(domain)
        if query.constant is None:
            found.setdefault(query.key, expression)
    return list(found.values())[:size]
