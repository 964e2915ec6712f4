"""What a ledger file costs on this disk: hard answers in bare SQLite commits, and easy ones of a batch.

Times of the wall clock, since a commit waits for the disk; medians, and bare commits in turn with them.
Printed with `python -m pytest -o addopts= --import-mode=importlib -s benchmarks/test_durable.py`.
"""

import contextlib
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import onlineic as ic
from onlineic._typing import Ints
from onlineic.queries import Queries

DOMAIN = ic.Domain.of(a=64, b=32, c=["x", "y", "z", "w"])
ANSWERS = 4096
ROUNDS = 9


def seconds(act: Callable[[], Any]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


@contextlib.contextmanager
def bare(folder: Path) -> Iterator[Callable[[], None]]:
    """Give a durable commit of one row, as the ledger makes them, and of nothing else."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    for text in ("locking_mode = EXCLUSIVE", "journal_mode = TRUNCATE", "synchronous = EXTRA"):
        connection.execute(f"PRAGMA {text}")
    connection.execute("CREATE TABLE line (at INTEGER PRIMARY KEY, text TEXT)")

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO line (text) VALUES (?)", ("x" * 400,))
        connection.execute("COMMIT")

    yield commit
    connection.close()


def opened(file: Path | None, **settings: Any) -> ic.OnlineIC:
    counts = np.random.default_rng(1).multinomial(2_000_000, np.full(DOMAIN.size, 1 / DOMAIN.size))
    if file is not None:
        settings |= {"ledger": file, "table": "benchmark", "durability": "all"}
    return ic.OnlineIC(ic.PrivateData(counts, DOMAIN), ic.Budget(1.0, 1e-9), **settings)


def listed(low: Ints, width: Ints, code: Ints) -> list[Any]:
    return [
        ic.where(a=ic.between(at, at + wide), b=one, c="xyzw"[one % 4])
        for at, wide, one in zip(low.tolist(), width.tolist(), code.tolist(), strict=True)
    ]


def columned(low: Ints, width: Ints, code: Ints) -> Queries:
    return Queries.where(DOMAIN, {"a": (low, low + 1 + width), "b": code, "c": code % 4})


def easy(
    file: Path | None, made: Callable[[Ints, Ints, Ints], Any], commit: Callable[[], None]
) -> tuple[float, float]:
    """Median seconds an answer, of easy batches, each durable before it leaves, and of commits beside."""
    rng, found, commits = np.random.default_rng(7), [], []
    with opened(file, threshold=0.2, max_queries=10**6, purchases=ic.TestsOnly()) as session:
        for _ in range(ROUNDS):
            batch = made(*rng.integers(0, 32, (3, ANSWERS)))
            found.append(seconds(lambda batch=batch: session.answer_many(batch)) / ANSWERS)
            commits.append(seconds(commit))
        assert session.statistics().hard == 0
    return statistics.median(found), statistics.median(commits)


def test_a_ledger_file_costs_a_few_commits_a_hit_and_microseconds_an_easy_answer(tmp_path: Path) -> None:
    with bare(tmp_path) as commit:
        with opened(tmp_path / "numbers.db", questions=40) as numbers:  # each is measured: two commits
            hard, beside = [], []  # in turn: how long a disk takes changes from second to second
            for at in range(40):
                hard.append(seconds(lambda at=at: numbers.answer(ic.where(a=ic.between(at, at + 3)))))
                beside.append(seconds(commit))
        found = {
            name: (easy(None, made, commit), easy(tmp_path / f"{name}.db", made, commit))
            for name, made in (("list", listed), ("columns", columned))
        }
    one, bare_one = statistics.median(hard), statistics.median(beside)
    print(f"\nhard answer {1e3 * one:.2f} ms, {one / bare_one:.2f} bare commits of {1e3 * bare_one:.2f} ms")
    for name, ((memory, _), (file, bare_one)) in found.items():
        print(
            f"easy in a {name}: {1e6 * file:.2f} us an answer, {1e6 * memory:.2f} us without a file; "
            f"that is {(file - memory) * ANSWERS / bare_one:.2f} bare commits a batch"
        )
    assert one < 5 * statistics.median(beside) + 5e-3
    assert found["list"][1][0] < 4 * 100e-6  # several times what is to be kept: the machine is shared
    assert found["columns"][1][0] < 4 * 5e-6
