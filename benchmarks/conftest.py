"""The plug-in that makes a report of a run: the grid of `--grid`, and with `--results` its files.

Tests hand their rows to the fixture `record`. At the end of a run without failures the JSON is written, and
from it alone the tables and figures. A run of some tests only writes nothing: it would not be the grid. One
section may be run apart, with `--section`: it takes the place of that section of the file, which says so.
"""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
import scipy

import onlineic
from benchmarks import figures, tables
from benchmarks.grid import ENGINES, GRIDS, GROWING, Grid

RUN = pytest.StashKey[dict[str, Any]]()
TESTS = {
    "groups": "test_rule",
    "growth": "test_growth",
    "parts": "test_part",
    "scale": "test_scale",
    "peers": "test_peer",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--grid", choices=tuple(GRIDS), default="report", help="what is run (default: report)")
    parser.addoption("--results", help="folder for the JSON, the table and the figures of the run")
    parser.addoption("--section", choices=tuple(TESTS), help="run one section of the report alone")


def pytest_configure(config: pytest.Config) -> None:
    # Engines stand side by side on one table, which is made for it or public.
    config.addinivalue_line("filterwarnings", "ignore::onlineic.errors.BudgetsAddWarning")
    sections: dict[str, list[Any]] = {section: [] for section in tables.SECTIONS}
    config.stash[RUN] = {
        "began": (time.perf_counter(), time.process_time()),
        "load": [os.getloadavg()[0]],
        "selected": False,
        **sections,
    }


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    grid = GRIDS[metafunc.config.getoption("--grid")]
    if "point" in metafunc.fixturenames:
        pairs = [(point, engine) for point in grid.points for engine in ENGINES]
        metafunc.parametrize(("point", "engine"), pairs, ids=[f"{p.name}, {e.label}" for p, e in pairs])
    if "axis" in metafunc.fixturenames:
        places = [
            (axis, value, engine) for axis, values in grid.growth for value in values for engine in GROWING
        ]
        names = [f"{axis}, {value}, {engine.label}" for axis, value, engine in places]
        metafunc.parametrize(("axis", "value", "engine"), places, ids=names)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (section := config.getoption("--section")) is not None:
        items[:] = [item for item in items if getattr(item, "originalname", None) == TESTS[section]]


def pytest_deselected(items: list[pytest.Item]) -> None:
    if items:
        items[0].config.stash[RUN]["selected"] = True


@pytest.fixture(scope="session")
def grid(request: pytest.FixtureRequest) -> Grid:
    return GRIDS[request.config.getoption("--grid")]


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Any:
    """Return a function that puts a row into a section of the report."""

    def put(section: str, **row: Any) -> None:
        request.config.stash[RUN][section].append(row)

    return put


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config, folder = session.config, session.config.getoption("--results")
    held = config.stash[RUN]
    if folder is None or exitstatus or held["selected"] or config.option.collectonly:
        return
    name = config.getoption("--grid")
    path = Path(folder) / f"{name}.json"
    result = finished(name, held)
    taken = result["wall_seconds"]
    if (section := config.getoption("--section")) is not None:
        result = tables.replaced(json.loads(path.read_text(encoding="utf-8")), section, result)
    if missing := tables.missing(result):
        raise pytest.UsageError(f"rules without a figure or a named refusal: {missing}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tables.written(result), encoding="utf-8")
    path.with_suffix(".md").write_text(tables.report(result), encoding="utf-8")
    for drawn in figures.draw(result, path):
        print(f"\n{drawn}", end="")
    print(f"\n{path}: {taken:.0f} s")


def finished(name: str, held: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the result file."""
    wall, processor = held["began"]
    return {
        "grid": {"name": name, **attrs.asdict(GRIDS[name])},
        "versions": {
            "onlineic": onlineic.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "python": platform.python_version(),
        },
        # times of a busy machine are too long: whoever reads them should know
        "machine": {
            "cores": os.cpu_count(),
            "load": round(max(0.0, np.mean([*held["load"], os.getloadavg()[2]])), 1),
        },
        "wall_seconds": round(time.perf_counter() - wall, 1),
        "processor_seconds": round(time.process_time() - processor, 1),
        **{section: held[section] for section in tables.SECTIONS},
    }
