"""Update rules on common streams, beside the naive dense loop and the static engines, and how they grow."""

from typing import Any

import attrs
import pytest

from benchmarks.grid import Engine, Grid, Point, compared, grown, placed, refusal


def timed(request: pytest.FixtureRequest, make: Any) -> Any:
    """Return what a function returns, run once under pytest-benchmark; the fixture exists for runs only."""
    benchmark = request.getfixturevalue("benchmark")
    benchmark.group = request.node.originalname
    return benchmark.pedantic(make, rounds=1, iterations=1, warmup_rounds=0)


def test_rule(request: pytest.FixtureRequest, record: Any, grid: Grid, point: Point, engine: Engine) -> None:
    named = {"group": attrs.asdict(point), "engine": engine.label, "mode": engine.mode, "rule": engine.name}
    if (reason := refusal(engine, point, grid)) is not None:
        record("groups", **named, refused=reason)
        return
    record("groups", **named, **timed(request, lambda: compared(engine, point, grid)))


def test_growth(
    request: pytest.FixtureRequest, record: Any, grid: Grid, axis: str, value: int, engine: Engine
) -> None:
    named = {"axis": axis, "value": value, "engine": engine.label}
    engine, point = placed(engine, axis, value, grid)
    if (reason := refusal(engine, point, grid)) is not None:
        record("growth", **named, refused=reason)
        return
    record("growth", **named, **timed(request, lambda: grown(engine, point, grid)))
