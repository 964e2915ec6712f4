"""What it would cost to answer the first questions well, when nobody says how many will come.

    python experiments/untold_length.py [--quick] [--from-json]

The first questions of a stream over five attributes of Adult are measured directly, with Laplace noise at a
share of epsilon each, and the others answered by the default session of the epsilon that is left: pure shares
add up, so this is what a session at (1, 1e-9) could do. Regret is the rms error of the first m answers over
that of the best engine that is told m, as in the gallery (results/gallery.json, which is read); the stream
goes on to 1,000 questions. Nothing is gained by Gaussian noise in the filter of the session: there one number
for all of the budget errs by four times the noise of Laplace. Simulated noise: NOT PRIVATE.
Writes results/untold_length.json; the markdown table and the figure are made from that file alone.
"""

import json
import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from gallery import rival
from study.outcome import RESULTS, script, seeds, stamped
from study.sources import Stream, adult5_data, stream_of
from study.streams import Sizes, distinct

import onlineic as ic
from onlineic.noise import SimulatedNoise

NAME = "untold_length"
DELTA, PARTS = 1e-9, 2**20  # parts of a record, in which the noise of a number is drawn
WORST = 3.24  # at which thirty questions, from what is left, were expected to have it too


def even(regret: float) -> tuple[float, ...]:
    """Return the shares of five questions at about this regret of one of them and of all five.

    One number of all of epsilon errs by s = sqrt(2)/(epsilon n), five by 5 s each: the first may err by
    regret s, the others by regret s sqrt((5 5^2 - 1)/4).
    """
    return (1.0 / regret, *[1.0 / (regret * math.sqrt((5 * 25 - 1) / 4))] * 4)


STARTS: dict[str, tuple[float, ...]] = {
    "the default": (),
    "one at .05": (0.05,),
    "one at .1": (0.1,),
    "one at .2": (0.2,),
    "one at .4": (0.4,),
    "five at .08": (0.08,) * 5,
    "twelve, .16/j^1.3": tuple(0.16 * place**-1.3 for place in range(1, 13)),
    "five, regret even": even(WORST),
}


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    lengths: tuple[int, ...] = Sizes().few
    starts: tuple[str, ...] = tuple(STARTS)
    runs: int = 20
    stream: int = Sizes().seed
    seed: int = 20261122


def numbers(stream: Stream, shares: tuple[float, ...], seed: int) -> np.ndarray:
    """Return the errors of the first questions, of noise at these shares of epsilon = 1."""
    noise, n = SimulatedNoise(seed), stream.data.n
    drawn = [noise.discrete_laplace(Fraction(math.ceil(PARTS / share)), 1)[0] for share in shares]
    return np.array(drawn, np.float64) / (PARTS * n)


def row_of(stream: Stream, label: str, config: Config, best: dict[int, float]) -> dict:
    """Return the regret of one start, for every length."""
    began, shares = time.process_time(), STARTS[label]
    budget = ic.Budget(1.0 - sum(shares), DELTA)
    squares = []
    for seed in seeds(config.seed, config.runs):
        session = ic.OnlineIC(stream.data, budget, noise=SimulatedNoise(seed))
        values = np.array([answer.value for answer in session.answer_many(stream.queries[len(shares) :])])
        errors = np.concatenate([numbers(stream, shares, seed), values - stream.truths[len(shares) :]])
        squares.append(errors**2)
    means = np.cumsum(np.mean(squares, axis=0)) / np.arange(1, len(stream.queries) + 1)
    rms = {length: math.sqrt(means[length - 1]) for length in config.lengths}
    return {
        "start": label,
        "shares": shares,
        "left": budget.epsilon,
        "rms": [rms[length] for length in config.lengths],
        "best": [best[length] for length in config.lengths],
        "regret": [rms[length] / best[length] for length in config.lengths],
        "seconds": time.process_time() - began,
    }


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(lengths=(1, 5, 30), starts=tuple(STARTS)[:3], runs=1) if quick else Config()
    known = {row["stream"]: row for row in json.loads((RESULTS / "gallery.json").read_text())["rows"]}
    best = {length: rival(known[f"adult5, {length:,} asked"])[1] for length in config.lengths}
    data, size = adult5_data(), max(config.lengths)
    stream = stream_of("", data, distinct(data.domain, size, config.stream))
    rows = [row_of(stream, label, config, best) for label in config.starts]
    return stamped(config, start, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, data = Config(), adult5_data()
    stream = stream_of("", data, distinct(data.domain, max(config.lengths), config.stream))
    best = dict.fromkeys(config.lengths, 1.0)  # the rivals are those of the gallery, and not compared here
    return {"rows/0/rms": row_of(stream, config.starts[0], config, best)["rms"]}


def table(result: dict) -> str:
    lengths = result["config"]["lengths"]
    lines = [
        "| measured directly, shares of ε | left | "
        + " | ".join(f"{length:,} asked" for length in lengths)
        + " |",
        "|" + "---|" * (len(lengths) + 2),
    ]
    for row in result["rows"]:
        shown = " | ".join(
            f"{regret:.2f} ({1e5 * rms:.3g})" for regret, rms in zip(row["regret"], row["rms"], strict=True)
        )
        lines.append(f"| {row['start']} | {row['left']:.2f} | {shown} |")
    told = " | ".join(f"{1e5 * best:.3g}" for best in result["rows"][0]["best"])
    lines += [f"| best engine that is told, rms | 1 | {told} |", ""]
    return "\n".join([*lines, "Regret, and in parentheses rms error in 1e-5 of the records."])


def figure(result: dict, path: Path) -> None:
    """Draw regret against the length of the stream, a line for every start; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = canvas.add_subplot()
    colours = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#000000"]
    for row, colour in zip(result["rows"], colours, strict=False):
        axes.plot(result["config"]["lengths"], row["regret"], "o-", color=colour, label=row["start"])
    axes.axhline(2.5, color="#BBBBBB", linewidth=1.0, linestyle="--", zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_yticks([1, 2, 2.5, 5, 10, 20], ["1", "2", "2.5", "5", "10", "20"])
    axes.minorticks_off()
    axes.set_xlabel("questions asked")
    axes.set_ylabel("rms error / that of the best engine that is told how many")
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    canvas.legend(loc="outside right upper", fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
