"""Installed peers on the stream of a group, for `make bench-full`: those that can be imported, others absent.

They are not online engines: those that answer query by query share the budget over a number of queries told
in advance, those that build a model are told to measure all pairs of attributes. All run as they come.
"""

import importlib
import itertools
import os
import time
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import onlineic as ic
from benchmarks.grid import GRIDS, Case, Point, case, interval, seeds
from onlineic.accounting import zcdp_rho

pytestmark = pytest.mark.filterwarnings("default")  # of foreign code
Answers = Callable[[Point, Case], np.ndarray]


def counts(held: Case) -> list[int]:
    bound = [query.bind(held.data.domain, 0) for query in held.stream]
    return [int(count) for count in held.data.exact_counts_many(bound)]


def opendp(point: Point, held: Case) -> np.ndarray:
    """Discrete Laplace noise on every count, the budget divided equally."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    scale = point.queries / point.epsilon
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    laplace = dp.m.make_laplace(*space, scale=scale)
    return np.array([laplace(count) for count in counts(held)]) / point.n


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


def smartnoise(point: Point, held: Case) -> np.ndarray:
    raise NotImplementedError("installed, but it builds tables of records from records: no adapter here")


PEERS: dict[str, tuple[str, Answers]] = {
    "OpenDP, Laplace a query": ("opendp", opendp),
    "private-pgm, all pairs": ("mbi", mbi),
    "SmartNoise": ("snsynth", smartnoise),
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
    module, answers = PEERS[peer]
    named = {"group": attrs.asdict(at), "peer": peer}
    try:
        importlib.import_module(module)
    except ImportError as error:
        record("peers", **named, refused=f"absent: {error}")
        return
    held = [case(at, seed) for seed in seeds(grid, grid.seeds)]
    try:
        answers(at, held[0])  # compilers warm up
    except NotImplementedError as error:
        record("peers", **named, refused=str(error))
        return
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
        rms=interval(rms),
        rms_by_seed=rms,
        microseconds_each=1e6 * seconds / (at.queries * len(held)),
    )
