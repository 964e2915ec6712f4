"""What the predictor says that answers err by, beside what they err by.

    python experiments/predicted_errors.py [--quick] [--from-json]

Before each question `session.explain(question).expected` is asked, then the question. Rows are the streams of
`listening.py` and the first tables of `unseen_tables.py` that a session predicts for, which nothing was tuned
on. Within a row the questions are ordered by their prediction, and cut into fifths: a predictor that orders
them well is worth having even where it is too sure of all of them. Simulated noise: NOT PRIVATE.
Writes results/predicted_errors.json; the markdown table and the figure are made from that file alone.
"""

import itertools
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import listening
import numpy as np
import unseen_tables
from study.outcome import script, seeds, stamped
from study.sources import Stream

import onlineic as ic
from onlineic.noise import SimulatedNoise

NAME = "predicted_errors"
FIFTHS = 5


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    queries: int = 600  # of each stream, at most
    early: int = 50  # the first ones, which are told apart
    unseen: int = 60  # tables that are drawn; those of few questions are not predicted
    least: int = 30  # questions of a row
    runs: int = 2
    seed: int = 20261127


def rms(values: np.ndarray) -> float:
    return math.sqrt(float(np.mean(np.square(values))))


def asked(stream: Stream, budget: ic.Budget, config: Config, seed: int) -> np.ndarray | None:
    """Return predicted and real error of each question without a hit, (questions, 2); None: not predicted."""
    queries = stream.queries[: config.queries]
    told = {"max_queries": len(stream.queries), "questions": len(stream.queries)}
    session = ic.OnlineIC(stream.data, budget, noise=SimulatedNoise(seed), **told)
    found = []
    for query, truth in zip(queries, stream.truths, strict=False):
        expected = session.explain(query).expected
        answer = session.answer(query)
        if expected is not None and answer.status in ("easy", "untested"):
            found.append((expected, answer.value - truth))
    return np.array(found) if len(found) >= config.least else None


def row_of(label: str, kind: str, stream: Stream, budget: ic.Budget, config: Config) -> dict[str, Any] | None:
    """Return predictions and errors on one stream, or None if its sessions predict nothing."""
    runs = [asked(stream, budget, config, seed) for seed in seeds(config.seed, config.runs)]
    held = [one for one in runs if one is not None]
    if not held:
        return None
    early = np.concatenate([one[: config.early] for one in held])
    late = [one[config.early :] for one in held if len(one) >= config.early + config.least]
    told = np.concatenate(held)
    fifths = np.array_split(told[np.argsort(told[:, 0], kind="stable")], FIFTHS)
    row = {
        "stream": label,
        "kind": kind,
        "n": stream.data.n,
        "questions": len(told),
        "predicted": rms(told[:, 0]),
        "measured": rms(told[:, 1]),
        "early": rms(early[:, 0]) / rms(early[:, 1]),
        "fifths": [[rms(part[:, 0]), rms(part[:, 1])] for part in fifths],
    }
    if late:
        rest = np.concatenate(late)
        row["late"] = rms(rest[:, 0]) / rms(rest[:, 1])
    return row


def known(absent: list[str]) -> Iterator[tuple[str, str, Stream, ic.Budget]]:
    """Yield label, kind, stream and budget of tables that the defaults were tried on."""
    for label, stream in listening.named(listening.makers_of(listening.Config()), absent):
        pure = label.endswith(listening.PURE)
        yield label, "known", stream, ic.Budget(listening.BUDGET.epsilon) if pure else listening.BUDGET


def unseen(config: Config) -> Iterator[tuple[str, str, Stream, ic.Budget]]:
    """Yield the same of tables that nothing was tuned on."""
    drawing = unseen_tables.Config(most_queries=config.queries)
    for place, child in enumerate(np.random.SeedSequence(config.seed).spawn(config.unseen)):
        drawn = unseen_tables.drawn(drawing, child)
        if drawn is not None and drawn[0]["queries"] >= config.least:
            said, stream, budget = drawn
            shape = " x ".join(map(str, said["shape"]))
            yield f"{place}: {shape}, {said['law']}, {said['kind']}", "unseen", stream, budget


def run(quick: bool) -> dict[str, Any]:
    start, absent, rows = time.perf_counter(), list[str](), list[dict[str, Any]]()
    config = Config(queries=60, unseen=12, runs=1) if quick else Config()
    for label, kind, stream, budget in itertools.chain(() if quick else known(absent), unseen(config)):
        row = row_of(label, kind, stream, budget, config)
        if row is not None:
            rows.append(row)
            print(label, f"{row['predicted']:.2e} {row['measured']:.2e}", flush=True)
    return stamped(config, start, absent, rows=rows)


def again(result: dict[str, Any]) -> dict[str, Any]:
    """Return places in the result and what they give now, for `make fresh`: of the first unseen table."""
    config = Config()
    for label, kind, stream, budget in unseen(config):
        row = row_of(label, kind, stream, budget, config)
        if row is not None:
            place = next(number for number, one in enumerate(result["rows"]) if one["kind"] == kind)
            return {f"rows/{place}": row}
    return {}


def table(result: dict[str, Any]) -> str:
    """Return predicted and measured rms in 1e-5 of the records, and their ratios."""
    lines = [
        "| table and stream | predicted | measured | predicted / measured | first 50 | after | in fifths |",
        "|" + "---|" * 7,
    ]
    for row in result["rows"]:
        fifths = ", ".join(f"{told / met:.2g}" if met else "exact" for told, met in row["fifths"])
        late = f"{row['late']:.2f}" if "late" in row else ""
        lines.append(
            f"| {row['stream']} | {1e5 * row['predicted']:,.1f} | {1e5 * row['measured']:,.1f} | "
            f"{row['predicted'] / row['measured']:.2f} | {row['early']:.2f} | {late} | {fifths} |"
        )
    lines += [
        "",
        "| tables | rows | ratio: median | least | largest | within a factor of two |",
        "|" + "---|" * 6,
    ]
    for kind in ("known", "unseen"):
        ratios = [row["predicted"] / row["measured"] for row in result["rows"] if row["kind"] == kind]
        if ratios:
            near = sum(0.5 <= one <= 2.0 for one in ratios)
            lines.append(
                f"| {kind} | {len(ratios)} | {np.median(ratios):.2f} | {min(ratios):.2f} | "
                f"{max(ratios):.2f} | {near} |"
            )
    lines += ["", "Ratios are predicted over measured: above 1 answers are better than was said."]
    return "\n".join(lines)


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw measured against predicted error of every fifth of every row; needs matplotlib."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(5.6, 5.2), layout="constrained")
    axes = drawn.subplots()
    for kind, colour in (("known", "#0072B2"), ("unseen", "#E69F00")):
        fifths = [pair for row in result["rows"] if row["kind"] == kind for pair in row["fifths"]]
        if fifths:
            told, met = zip(*fifths, strict=True)
            axes.loglog(told, met, "o", markersize=3.5, color=colour, label=f"{kind} tables")
    low, high = axes.get_xlim()
    for factor, style in ((1.0, "-"), (2.0, ":"), (0.5, ":")):
        axes.plot([low, high], [low * factor, high * factor], style, color="#555555", linewidth=1)
    axes.set_xlabel("predicted rms error, fraction of records")
    axes.set_ylabel("measured rms error")
    axes.legend(fontsize=8)
    drawn.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
