"""Is it worth to keep a part of the tables back until questions tell which triples of attributes they join?

    python experiments/instalments.py [--quick] [--from-json]

The default session keeps a tenth of what its tables of pairs would cost, and buys tables of all triples of
the attributes that five questions joined, or, if fifty come without, the pairs once more. Beside it on six
streams stand the same session that keeps nothing back, or another share; that buys the pairs again whatever
is asked; and that buys three or six triples only, those farthest from the hypothesis by the exact table (L1
distance less what noise alone would make of it). That choice reads the table and is charged nothing: a
private one by the same score has less to go by, and would pay for it besides.
At (1, 1e-9), simulated noise: NOT PRIVATE. Writes results/instalments.json; the markdown table and the figure
are made from that file alone.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
from study.outcome import default_session, measured, one_seed, script, seeds, stamped
from study.sources import Stream
from study.streams import Sizes, makers, quick_sizes

import onlineic as ic
from onlineic.queries import Partition, PartitionRule

NAME = "instalments"
STREAMS = ("adult5", "adult5, two attributes", "adult5, 1,000 asked", "adult6", "chain of 5")
STREAMS += ("no structure, ranges",)
PLANNING, LATER = "onlineic.plan.planning", "onlineic.plan.later_tables"
NOTHING, DEFAULT = "nothing kept", "the default"


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    sizes: Sizes = attrs.field(factory=Sizes)
    streams: tuple[str, ...] = STREAMS
    runs: int = 10
    seed: int = 20261123


def farthest(stream: Stream, opened: list[Any], most: int) -> Callable[..., list[Partition]]:
    """Return what chooses so many triples by the exact table. NOT PRIVATE."""

    def chosen(domain: ic.Domain, axes: list[int], parts: int) -> list[Partition]:
        rule, n = PartitionRule(parts=parts, fine=parts), stream.data.n
        tables = [rule.table(domain, held) for held in itertools.combinations(axes, 3)]
        if not opened:  # while the session is planned, nobody asks yet
            return tables
        session = opened[-1]
        later, order = session.plan.purchases.later, session.plan.sparse.order
        sigma = math.sqrt(float(order) * most * 2**40 / float(later.charge.amount))

        def score(table: Partition) -> float:
            gaps = stream.data.exact_counts(table) - n * session._loop.book.belief.hypothesis.blocks(table)
            return float(np.abs(gaps).sum()) - math.sqrt(2.0 / math.pi) * sigma * table.blocks

        return sorted(tables, key=score, reverse=True)[:most]

    return chosen


@contextmanager
def variant(label: str, stream: Stream, opened: list[Any]) -> Iterator[None]:
    """Within it sessions are planned, and go on, by another rule."""
    from onlineic.plan.later_tables import later_tables

    def without_triples(*given: Any) -> Any:
        return attrs.evolve(later_tables(*given), joint=10**9)

    with ExitStack() as changed:
        if label == NOTHING:
            changed.enter_context(patch(f"{PLANNING}.kept_share", lambda *_: Fraction(0)))
        elif label.startswith("kept"):
            changed.enter_context(patch(f"{LATER}.LATER_SHARE", Fraction(label.rpartition(" ")[2])))
        elif label == "pairs again":
            changed.enter_context(patch(f"{PLANNING}.later_tables", without_triples))
        elif label != DEFAULT:
            most = int(label.partition(" ")[0])
            changed.enter_context(patch(f"{LATER}.triples", farthest(stream, opened, most)))
        yield


VARIANTS = (NOTHING, DEFAULT, "kept 1/20", "kept 1/5", "pairs again", "3 chosen free", "6 chosen free")


def row_of(stream: Stream, label: str, config: Config) -> dict[str, Any]:
    """Return the errors of one rule on one stream."""
    opened: list[Any] = []

    def make(noise: Any) -> Any:
        opened.clear()
        session = ic.OnlineIC(stream.data, ic.Budget(1.0, 1e-9), noise=noise, max_queries=len(stream.queries))
        opened.append(session)
        return session

    with variant(label, stream, opened):
        row = measured(label, make, stream, seeds(config.seed, config.runs))
    ratio = np.square(row["rms_by_seed"])
    return {
        **row,
        "stream": stream.label,
        "spread": float(ratio.std() / ratio.mean() / math.sqrt(ratio.size)),
    }


def streams(config: Config, absent: list[str]) -> Iterator[Stream]:
    """Yield the streams whose table is there."""
    found = makers(config.sizes)
    for label in config.streams:
        name, _, narrow = label.partition(", two")
        try:
            stream = found[name]()
        except ic.errors.MissingDataError as missing:
            absent.append(label)
            print(f"{label}: absent, {missing}", flush=True)
            continue
        if narrow:
            kept = [place for place, query in enumerate(stream.queries) if len(query.axes) < 3]
            queries = [stream.queries[place] for place in kept]
            stream = Stream(label, stream.data, queries, stream.truths[kept])
        yield stream


def run(quick: bool) -> dict:
    start, absent = time.perf_counter(), []
    config = Config(quick_sizes(), STREAMS[:2], runs=1) if quick else Config()
    rows = []
    for stream in streams(config, absent):
        rows += [row_of(stream, label, config) for label in VARIANTS]
        base = rows[-len(VARIANTS)]["rms"]
        told = ", ".join(f"{row['engine']} {row['rms'] / base:.2f}" for row in rows[-len(VARIANTS) :])
        print(f"{stream.label}: {1e5 * base:.1f}; {told}", flush=True)
    return stamped(config, start, absent, rows=rows)


def by_stream(result: dict) -> dict[str, dict[str, dict]]:
    found: dict[str, dict[str, dict]] = {}
    for row in result["rows"]:
        found.setdefault(row["stream"], {})[row["engine"]] = row
    return found


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    stream = next(streams(config, []))
    make = default_session(stream, ic.Budget(1.0, 1e-9))
    seed = seeds(config.seed, config.runs)[0]
    return one_seed(f"rows/{VARIANTS.index(DEFAULT)}", DEFAULT, make, stream, seed)


def table(result: dict) -> str:
    lines = [f"| stream | {NOTHING} | " + " | ".join(VARIANTS[1:]) + " |", "|" + "---|" * (1 + len(VARIANTS))]
    for stream, rows in by_stream(result).items():
        base = rows[NOTHING]["rms"]
        ratios = " | ".join(f"{rows[label]['rms'] / base:.2f}" for label in VARIANTS[1:])
        lines.append(f"| {stream} | {1e5 * base:.1f} | {ratios} |")
    lines += [
        "",
        "First the rms error in 1e-5 of the records, then the others over it. "
        f"{len(result['rows'][0]['seeds'])} seeds, so about ± .03.",
    ]
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw the error of every rule over that without instalments; needs matplotlib."""
    from matplotlib.figure import Figure

    found = by_stream(result)
    marks = {DEFAULT: ("D", "#0072B2"), "pairs again": ("s", "#999999"), "6 chosen free": ("^", "#D55E00")}
    canvas = Figure(figsize=(7.5, 1.4 + 0.4 * len(found)), layout="constrained")
    axes = canvas.add_subplot()
    for place, (stream, rows) in enumerate([*found.items()][::-1]):
        for shift, (label, (mark, colour)) in enumerate(marks.items()):
            row, base = rows[label], rows[NOTHING]
            axes.errorbar(
                row["rms"] / base["rms"],
                place + 0.15 * (1 - shift),
                xerr=0.5 * math.hypot(row["spread"], base["spread"]) * row["rms"] / base["rms"],
                fmt=mark,
                color=colour,
                label=label if place == 0 else None,
            )
        axes.text(0.0, place, f"{stream}  ", ha="right", va="center", transform=axes.get_yaxis_transform())
    axes.axvline(1.0, color="black", linewidth=1.0)
    axes.set_yticks([])
    axes.set_xlabel("rms error / rms error of the session that keeps nothing back")
    canvas.legend(loc="outside upper center", ncols=3, fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
