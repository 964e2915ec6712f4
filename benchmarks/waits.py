"""Where a user waits, before and now: each number of a list measured in one run, most of them as ratios.

`python -m benchmarks.waits FILE` writes one JSON and prints the table; names of parts behind it pick some. A
ratio compares two things of the same run, so that a busy machine changes it little. `before` is the number at
commit 01a91ba. NOT PRIVATE: noise is simulated.
"""

import csv
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import onlineic as ic
from benchmarks.grid import spent
from onlineic.evaluate import random_stream
from onlineic.noise import SimulatedNoise

BUDGET = ic.Budget(1.0, 1e-9)
ROUNDS = 5
SOURCE = "commit 01a91ba, processor time on two busy cores"


@attrs.frozen
class Wait:
    """One number: `aim` is what it should be at most, None where there is none."""

    name: str
    unit: str
    before: float | None
    aim: float | None
    now: float


def seconds(call: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Return the least time of a call."""
    found = []
    for _ in range(rounds):
        began = spent()
        call()
        found.append(spent() - began)
    return min(found)


def opened(data: ic.PrivateData, **more: Any) -> ic.OnlineIC:
    return ic.OnlineIC(data, BUDGET, noise=SimulatedNoise(1), **more)


def table(shape: tuple[int, ...], records: int = 100_000) -> ic.PrivateData:
    """Return records whose attributes go together."""
    rng, names = np.random.default_rng(1), [f"a{axis}" for axis in range(len(shape))]
    share = rng.random(records)
    columns = {
        name: np.minimum((size * (0.6 * share + 0.4 * rng.random(records))).astype(np.int64), size - 1)
        for name, size in zip(names, shape, strict=True)
    }
    return ic.PrivateData.from_records(columns, ic.Domain.of(dict(zip(names, shape, strict=True))))


def long_attributes() -> Iterator[Wait]:
    for codes, before, aim in ((10_000, 0.34, None), (1_000_000, 11.9, None), (10**8, None, 2.0)):
        rng = np.random.default_rng(1)
        held = {"code": (rng.beta(2.0, 5.0, 100_000) * codes).astype(np.int64)}
        data = ic.PrivateData.from_records(held, ic.Domain.of(code=range(codes)))

        def first(data: ic.PrivateData = data, codes: int = codes) -> None:
            _ = opened(data).answer(ic.where(code=ic.between(1, codes // 3))).error_bound

        yield Wait(
            f"one attribute of {codes:,} codes: open and first answer", "s", before, aim, seconds(first, 2)
        )


def bounds() -> Iterator[Wait]:
    """The bound over its answer, median and mean, of easy answers to new questions."""
    for name, shape, records, before in (
        ("1,000 cells", (10, 10, 10), 100_000, 519 / 133),
        ("100,000 cells", (100, 100, 10), 100_000, 826 / 158),
        ("one attribute of 1,000 codes", (1000,), 100_000, 7990 / 347),
        ("20 attributes", (8,) * 20, 100_000, 748 / 231),
        ("8 attributes in instalments", (8,) * 8, 1_000_000, None),
    ):
        data = table(shape, records)
        session, taken = opened(data, max_queries=10_000), []
        for query in dict.fromkeys(random_stream(data.domain, 300, 1)):
            began = time.process_time()
            answer = session.answer(query)
            answered = time.process_time()
            _ = answer.error_bound
            if answer.status == "easy":
                taken.append((answered - began, time.process_time() - answered))
        told = np.array(taken[len(taken) // 5 :])
        one, bound = np.median(told, axis=0)
        yield Wait(f"bound over answer, {name}: median", "ratio", before, 1.0, float(bound / one))
        yield Wait(
            f"bound over answer, {name}: mean", "ratio", None, 1.0, float(told[:, 1].sum() / told[:, 0].sum())
        )


def small_sessions() -> Iterator[Wait]:
    data = table((10, 10, 10))
    queries = list(random_stream(data.domain, 200, 1))
    taken = seconds(lambda: [session.answer(query) for session in [opened(data)] for query in queries])
    fits = np.ones((1000, 40)), np.ones(40)
    dense = seconds(lambda: [fits[0] @ fits[1] for _ in range(200)])
    yield Wait("200 questions at 1,000 cells, a question", "us", 537.0, 268.0, 1e6 * taken / 200)
    yield Wait(
        "200 questions at 1,000 cells over 200 products of 1,000 x 40", "ratio", None, None, taken / dense
    )


def columns() -> Iterator[Wait]:
    """Loading a CSV of three columns, one of them of another kind, over one of three integers."""
    rows, rng = 200_000, np.random.default_rng(1)
    age, hours = rng.integers(17, 91, rows).tolist(), rng.integers(0, 100, rows).tolist()
    days = np.datetime_as_string(np.datetime64("2020-01-01") + rng.integers(0, 1000, rows)).tolist()
    kinds: dict[str, tuple[list[Any], Any]] = {
        "integer": (rng.integers(0, 50, rows).tolist(), range(50)),
        "real": (
            np.round(rng.random(rows) * 49.9, 3).tolist(),
            ic.domain.Binned(tuple(np.linspace(0.0, 50.0, 51).tolist())),
        ),
        "date": (days, ic.domain.Dates("2020-01", "2022-12", by="month")),
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, (held, attribute) in kinds.items():
            path = Path(folder) / f"{kind}.csv"
            text = io.StringIO()
            csv.writer(text).writerows([("age", "hours", "other"), *zip(age, hours, held, strict=True)])
            path.write_text(text.getvalue(), encoding="utf-8")
            domain = ic.Domain.of(age=range(17, 91), hours=range(100), other=attribute)
            found[kind] = seconds(lambda path=path, domain=domain: ic.PrivateData.from_csv(path, domain), 3)
    yield Wait("CSV, integer columns, a row", "ns", 341.0, None, 1e9 * found["integer"] / rows)
    yield Wait(
        "CSV with a real column over integer ones", "ratio", 2496 / 341, 3.0, found["real"] / found["integer"]
    )
    yield Wait(
        "CSV with a date column over integer ones", "ratio", None, 3.0, found["date"] / found["integer"]
    )


def sql() -> Iterator[Wait]:
    import sqlglot

    data, counter = table((100, 100), 10_000), itertools.count()
    session = opened(data, max_queries=10**6)

    def new_shape() -> str:
        return f"SELECT COUNT(*) AS n{next(counter)} FROM t WHERE a0 >= 3 AND a1 >= 2"

    def same_shape() -> str:
        return f"SELECT COUNT(*) FROM t WHERE a0 >= {next(counter) % 90} AND a1 >= 2"

    for text in (new_shape, same_shape, same_shape):
        session.sql(text())
    again = new_shape()
    calls: dict[str, Callable[[], Any]] = {
        "the library's parse": lambda: sqlglot.parse_one(new_shape()),
        "a new shape over the library's parse": lambda: session.sql(new_shape()),
        "a known shape over it": lambda: session.sql(same_shape()),
        "a statement again over it": lambda: session.sql(again),
    }
    # in turn: a machine that others use is slow for a while
    taken = [[seconds(call, 1) for call in calls.values()] for _ in range(300)]
    parse, *asked = np.median(taken, axis=0).tolist()
    for name, took, aim in zip([*calls][1:], asked, (2.0, 2.0, None), strict=True):
        yield Wait(f"SQL, {name}", "ratio", 1190 / 457, aim, took / parse)


def starting() -> Iterator[Wait]:
    def run(code: str, *arguments: str) -> Callable[[], Any]:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        call = [sys.executable, "-W", "ignore", "-c", code, *arguments]
        return lambda: subprocess.run(call, check=True, capture_output=True, env=environment)

    command = "import sys; from onlineic.cli import main; sys.exit(main())"
    bare, numpy = seconds(run("pass")), seconds(run("import numpy, attrs"))
    yield Wait(
        "import onlineic over numpy and attrs",
        "ratio",
        2.3,
        1.5,
        (seconds(run("import onlineic")) - bare) / (numpy - bare),
    )
    yield Wait("onlineic --version", "s", 1.23, 0.3, seconds(run(command, "--version")))
    with tempfile.TemporaryDirectory() as folder:
        rng, rows = np.random.default_rng(1), 50_000
        lines = zip(rng.integers(17, 91, rows), rng.integers(0, 100, rows), strict=True)
        texts = {
            "t.csv": "age,hours\n" + "".join(f"{age},{hours}\n" for age, hours in lines),
            "d.json": ic.Domain.of(age=range(17, 91), hours=range(100)).to_json(),
            "q.txt": '{"age": [30, 50]}\n',
        }
        paths = [Path(folder) / name for name in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        rows_file, domain, questions = map(str, paths)
        asked = run(
            command,
            "ask",
            "--csv",
            rows_file,
            "--domain",
            domain,
            "--epsilon",
            "1",
            "--delta",
            "1e-9",
            questions,
        )
        yield Wait("onlineic ask, 50,000 rows", "s", 2.7, 1.0, seconds(asked, 3))


def wide() -> Iterator[Wait]:
    """The first answer, of many attributes of which ten are asked about, and a call of 165 questions."""
    for name, shape, before in (
        ("100 attributes of 5 codes", (5,) * 100, 7.7),
        ("50 binary attributes", (2,) * 50, 5.94),
        ("300 binary attributes", (2,) * 300, None),
    ):
        data = table(shape)
        sets = (held for order in (1, 2, 3) for held in itertools.combinations(data.domain.names[:10], order))
        queries = [ic.where(dict.fromkeys(held, 1)) for held in itertools.islice(sets, 165)]

        def first(data: ic.PrivateData = data, queries: list[Any] = queries) -> None:
            opened(data).answer(queries[-1])

        def call(data: ic.PrivateData = data, queries: list[Any] = queries) -> None:
            opened(data, max_queries=1000).answer_many(queries)

        yield Wait(f"{name}: first answer", "s", before, 5.0, seconds(first, 2))
        yield Wait(f"{name}: a first call of 165 questions", "s", None, 5.0, seconds(call, 1))


def forecasts() -> Iterator[Wait]:
    domain = ic.Domain.of({f"a{axis}": 5 for axis in range(100)})
    from onlineic.plan import forecast

    yield Wait(
        "forecast, 100 attributes of 5 codes",
        "s",
        None,
        1.0,
        seconds(lambda: forecast(domain, 100_000, BUDGET), 2),
    )


PARTS: tuple[Callable[[], Iterator[Wait]], ...] = (
    starting, long_attributes, bounds, small_sessions, columns, sql, wide, forecasts,
)  # fmt: skip


def written(waits: list[Wait]) -> str:
    """Return the table, in Markdown."""
    lines = ["| wait | before | now | aim | met |", "|---|---|---|---|---|"]
    for one in waits:
        before, aim = ("" if number is None else f"{number:.3g}" for number in (one.before, one.aim))
        met = "" if one.aim is None else "yes" if one.now <= one.aim else "no"
        lines.append(f"| {one.name}, {one.unit} | {before} | {one.now:.3g} | {aim} | {met} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    warnings.simplefilter("ignore")
    file, *picked = arguments
    parts = [part for part in PARTS if not picked or part.__name__ in picked]
    waits = [wait for part in parts for wait in part()]
    held = {
        "source of before": SOURCE,
        "load": os.getloadavg()[2],
        "waits": [attrs.asdict(one) for one in waits],
    }
    Path(file).write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    print(written(waits))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
