"""Installed peers on the stream of a group, for `make bench-full`: those that can be imported, others absent.

They are not online engines: those that answer query by query share the budget over a number of queries told
in advance, those that build a model are told to measure all pairs of attributes. All run as they come.
"""

import importlib
import itertools
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import metadata
from typing import Any

import attrs
import numpy as np
import pytest

import onlineic as ic
from benchmarks.grid import GRIDS, LIMIT, Case, Point, case, interval, seeds
from onlineic.accounting import zcdp_rho
from onlineic.queries import Partition

pytestmark = pytest.mark.filterwarnings("default")  # of foreign code
Answers = Callable[[Point, Case], np.ndarray]


@lru_cache(maxsize=8)
def rows(held: Case) -> dict[str, np.ndarray]:
    """Return the records, a column of codes for each attribute."""
    domain = held.data.domain
    every = Partition(domain, tuple(range(len(domain.shape))), tuple(map(np.arange, domain.shape)))
    cells = np.repeat(np.arange(domain.size), held.data.exact_counts(every))
    return dict(zip(domain.names, np.unravel_index(cells, domain.shape), strict=True))


@lru_cache(maxsize=8)
def base(held: Case) -> sqlite3.Connection:
    """Return the records as table t of SQLite."""
    columns, made = rows(held), sqlite3.connect(":memory:")
    made.execute(f"CREATE TABLE t ({', '.join(columns)})")
    filled = f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})"
    made.executemany(filled, zip(*(column.tolist() for column in columns.values()), strict=True))
    return made


def ranges(held: Case) -> list[dict[str, tuple[int, int]]]:
    """Return the questions: by attribute the first code that is meant, and the one after the last."""
    domain = held.data.domain
    bound = [query.bind(domain, 0) for query in held.stream]
    return [{domain.names[axis]: query.ends(axis) for axis in query.axes} for query in bound]


def masks(held: Case) -> Iterator[np.ndarray]:
    """Yield which records each question counts."""
    columns, n = rows(held), held.data.n
    for question in ranges(held):
        mask = np.ones(n, np.bool_)
        for name, (first, end) in question.items():
            mask &= (columns[name] >= first) & (columns[name] < end)
        yield mask


def opendp(point: Point, held: Case) -> np.ndarray:
    """Discrete Laplace noise on every count, the budget divided equally."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    scale = point.queries / point.epsilon
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    laplace = dp.m.make_laplace(*space, scale=scale)
    return np.array([laplace(int(np.count_nonzero(mask))) for mask in masks(held)]) / point.n


def diffprivlib(point: Point, held: Case) -> np.ndarray:
    """Its count of records for every question, epsilon divided equally and delta left over."""
    from diffprivlib import tools

    share = point.epsilon / point.queries
    return np.array([tools.count_nonzero(mask, epsilon=share) for mask in masks(held)]) / point.n


def smartnoise(point: Point, held: Case) -> np.ndarray:
    """A statement for every question, the budget divided equally."""
    import snsql

    domain = held.data.domain
    kinds = {
        name: {"type": "int", "lower": 0, "upper": size - 1}
        for name, size in zip(domain.names, domain.shape, strict=True)
    }
    told = {"row_privacy": True, "censor_dims": False, "rows": point.n}  # small counts are told, too
    described = {"": {"": {"t": {**told, **kinds}}}}
    privacy = snsql.Privacy(epsilon=point.epsilon / point.queries, delta=point.delta / point.queries)
    texts = [
        "SELECT COUNT(*) AS n FROM t"
        + " WHERE " * bool(question)
        + " AND ".join(
            f"{name} >= {first} AND {name} <= {end - 1}" for name, (first, end) in question.items()
        )
        for question in ranges(held)
    ]
    reader = snsql.from_connection(base(held), engine="sqlite", privacy=privacy, metadata=described)
    return np.array([reader.execute(text)[1][0] for text in texts]) / point.n


def mbi(point: Point, held: Case) -> np.ndarray:
    """Private-PGM: Gaussian noise on all two-way tables, and a graphical model fitted to them."""
    os.environ.setdefault("JAX_ENABLE_X64", "1")  # in single precision it stalls at large n
    from mbi import Domain, LinearMeasurement
    from mbi.estimation import MirrorDescent

    domain, rng = held.data.domain, np.random.default_rng(held.seed)
    pairs = list(itertools.combinations(domain.names, 2))
    sigma = np.sqrt(2.0 * len(pairs) / (2.0 * zcdp_rho(point.epsilon, point.delta)))  # L2 sensitivity sqrt(2)
    measured = []
    for pair in pairs:
        sizes = [domain.attribute(name).size for name in pair]
        cells = [
            ic.where(dict(zip(pair, place, strict=True))).bind(domain, 0)
            for place in itertools.product(*map(range, sizes))
        ]
        table = held.data.exact_counts_many(cells) + rng.normal(0.0, sigma, len(cells))
        measured.append(LinearMeasurement(table, pair, stddev=sigma))
    model = MirrorDescent().estimate(Domain(domain.names, domain.shape), measured, known_total=point.n)
    table = np.asarray(model.project(domain.names).datavector()).reshape(domain.shape)
    weights = [query.bind(domain, 0).weights().reshape(domain.shape) for query in held.stream]
    return np.array([float((one * table).sum()) for one in weights]) / point.n


# what is imported of each, what holds the records for it, what answers
PEERS: dict[str, tuple[str, Callable[[Case], Any], Answers]] = {
    "OpenDP, Laplace a query": ("opendp", rows, opendp),
    "diffprivlib, a count a query": ("diffprivlib", rows, diffprivlib),
    "SmartNoise SQL, a statement a query": ("snsql", base, smartnoise),
    "private-pgm, all pairs": ("mbi", rows, mbi),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    grid = GRIDS[metafunc.config.getoption("--grid")]
    asked = [
        (peer, Point("ranges", cells, grid.records[-1], 1.0, 1e-9, grid.queries))
        for cells in grid.cells
        if grid.peers and 4 < cells <= 10_000
        for peer in PEERS
    ]
    metafunc.parametrize(("peer", "at"), asked, ids=[f"{at.name}, {peer}" for peer, at in asked])


def test_peer(request: pytest.FixtureRequest, record: Any, peer: str, at: Point) -> None:
    grid = GRIDS[request.config.getoption("--grid")]
    module, loaded, answers = PEERS[peer]
    named = {"group": attrs.asdict(at), "peer": peer}
    try:
        importlib.import_module(module)
    except ImportError as error:
        record("peers", **named, refused=f"absent: {error}")
        return
    held = [case(at, seed) for seed in seeds(grid, grid.seeds)]
    for one in held:
        loaded(one)  # timed of none
    began = time.process_time()
    answers(at, held[0])  # compilers warm up
    if time.process_time() - began > LIMIT:
        held = held[:1]
    benchmark = request.getfixturevalue("benchmark")
    benchmark.group = "peers"
    began = time.process_time()
    values = benchmark.pedantic(lambda: [answers(at, one) for one in held], rounds=1, iterations=1)
    seconds = time.process_time() - began
    rms = [
        float(np.sqrt(np.mean((value - one.truths) ** 2)))
        for value, one in zip(values, held, strict=True)
        if one.truths is not None
    ]
    record(
        "peers",
        **named,
        version=metadata.version(metadata.packages_distributions()[module][0]),
        rms=interval(rms),
        rms_by_seed=rms,
        microseconds_each=1e6 * seconds / (at.queries * len(held)),
    )
