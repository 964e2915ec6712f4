"""What answers state beside what they err by, and how often three analysts find one outside of its bound.

    python experiments/stated_bounds.py [--quick] [--from-json] [--only STREAM ..]

Default sessions with simulated noise: NOT PRIVATE. First part: on every stream of the gallery, the median
bound of all tested answers, repeats apart, beside the 95 % quantile of their errors; by status and by number
of attributes; and how many answers lay outside. Second part ("analysts"): small tables, asked by an analyst
who asks at random, by one who climbs (where what is known of the released tables and the present guess
disagree most, looked at anew after every few answers) and by one who knows the truth (where the guess or the
estimate from the first tables errs most). Of a session all promises that it makes at once may fail together
with probability beta: that on all tested answers, and that on all of the public family.
Writes results/stated_bounds.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import Stream
from study.streams import Sizes, budget_of, makers, quick_sizes, runs_of, streams

import onlineic as ic
from onlineic.evaluate import exact_values, random_stream
from onlineic.known_noise import Instalments
from onlineic.ledger import BoughtTables
from onlineic.noise import SimulatedNoise
from onlineic.plan import KNOWN

NAME = "stated_bounds"
ANALYSTS = ("random", "climbing", "worst case")
ORDERS = ("1-way", "2-way", "3-way", "4-way and more")
QUICK = ["adult5", "HEPTH", "no structure, halfspaces", "adult5, 30 asked", "analysts"]


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    sizes: Sizes = attrs.field(factory=Sizes)
    beta: float = 0.05
    runs: int = 3
    answers: int = 100  # of a stream over all runs, at the least, with at most so many runs:
    most_runs: int = 30
    epsilon: float = 1.0  # of the second part
    delta: float = 1e-9
    stream_seed: int = 1
    sessions: int = 100
    asked: int = 60
    batch: int = 15
    pool: int = 250
    seed: int = 20261122


def stated(stream: Stream, config: Config) -> dict:
    """Return one stream's rows: over all seeds together, by status and number of attributes."""
    found, wide, family, began = [], [], None, time.process_time()
    ways = np.array([len(query.axes) for query in stream.queries])
    drawn = seeds(config.seed, runs_of(stream, config.runs, config.answers, config.most_runs))
    broken = 0
    for seed in drawn:
        session = ic.OnlineIC(
            stream.data,
            budget_of(stream),
            beta=config.beta,
            max_queries=len(stream.queries),
            questions=len(stream.queries),
            noise=SimulatedNoise(seed),
        )
        answers = session.answer_many(stream.queries)
        statistics = session.statistics()
        wide.append(statistics.error_bound)
        family = statistics.family
        errors = np.abs(np.array([answer.value for answer in answers]) - stream.truths)
        bounds = np.array([answer.error_bound for answer in answers])
        status = np.array([answer.status for answer in answers])
        broken += bool((errors[status != "untested"] > statistics.error_bound).any())
        found.append((errors, bounds, status, ways))
    errors, bounds, status, ways = (np.concatenate(column) for column in zip(*found, strict=True))
    tested = ((status == "easy") | (status == "hard")) & (ways > 0)
    rows = []
    for label, chosen in [
        ("all", tested),
        *((kind, tested & (status == kind)) for kind in ("easy", "hard")),
        *((kind, tested & (np.minimum(ways, 4) == count)) for count, kind in enumerate(ORDERS, 1)),
        ("untested", status == "untested"),
    ]:
        if chosen.any():
            rows.append(
                {
                    "answers": label,
                    "count": int(chosen.sum()) / len(drawn),
                    "error": float(np.quantile(errors[chosen], 0.95)),
                    "stated": float(np.median(bounds[chosen])),
                    "outside": float((errors[chosen] > bounds[chosen]).mean()),
                }
            )
    return {
        "stream": stream.label,
        "n": stream.data.n,
        "family": 0 if family is None else family.size,
        "sessions": len(drawn),
        "session_wide": float(np.mean(wide)),
        "session_wide_failed": broken,
        "largest_error": float(errors[tested].max()),
        "seconds": time.process_time() - began,
        "answers": rows,
    }


def arenas(config: Config):
    """Yield (label, table, budget, questions, length that is told) of the second part, for every start."""
    generator = np.random.default_rng(config.stream_seed)
    domain = ic.Domain.of(a=range(40), b=["u", "v", "w", "x", "y"], c=range(6), d=["no", "yes"])
    law = generator.dirichlet(np.full(domain.size, 0.05))
    pairs = ic.PrivateData(generator.multinomial(20_000, law).reshape(domain.shape), domain)
    line = ic.Domain.of(x=range(300))
    levels = ic.PrivateData(generator.multinomial(20_000, generator.dirichlet(np.full(300, 0.1))), line)
    small = ic.Domain.of(a=range(12), b=["u", "v", "w"], c=["no", "yes"])
    cells = ic.PrivateData(generator.multinomial(20_000, generator.dirichlet(np.full(72, 0.2))), small)
    grid = ic.Domain.of(a=range(8), b=range(8), c=range(8), d=range(8))
    a, b, d = generator.integers(0, 8, (3, 60_000))
    c = np.where(generator.random(60_000) < 0.7, (a + b) % 8, generator.integers(0, 8, 60_000))
    threes = ic.PrivateData(np.bincount(np.ravel_multi_index((a, b, c, d), grid.shape), minlength=8**4), grid)
    budget, asked, usual = ic.Budget(config.epsilon, config.delta), config.asked, 10_000
    yield "pairs, Gaussian", pairs, budget, asked, usual
    yield "levels, Laplace", levels, budget, asked, usual
    yield "all cells, Laplace", cells, budget, asked, usual
    yield "sums of two, hits", threes, budget, asked, usual
    yield "numbers", pairs, budget, config.batch, config.batch
    yield "pairs, Laplace (delta = 0)", pairs, ic.Budget(config.epsilon), asked, usual


def opening(session: ic.OnlineIC, beta: float) -> Instalments | None:
    """Return what anybody can compute from the public record: brackets of the first tables, if any."""
    record = next((record for record in session.transcript if isinstance(record, BoughtTables)), None)
    if record is None:
        return None
    plan = session.plan
    pure = plan.purchases.laplace(record, 0, plan.sparse.account())
    return Instalments().then(record.measurements, plan.sparse.n, KNOWN * beta, pure)


def picked(analyst: str, guesses, centre, radius, truths, left: np.ndarray, count: int) -> list[int]:
    """Return which of the queries that are left an analyst asks next, by what is known of them."""
    if analyst == "climbing":
        ranked = np.argsort(-np.abs(centre - guesses) / radius)
        return ranked[np.isin(ranked, left)][:count].tolist()
    estimate = np.argsort(-np.abs(centre - truths) / radius)
    guess = np.argsort(-np.abs(guesses - truths))
    first = estimate[np.isin(estimate, left)][: count // 2].tolist()
    return [*first, *(at for at in guess[np.isin(guess, left)].tolist() if at not in first)][:count]


def attack(analyst: str, session: ic.OnlineIC, pool, truths, most: int, config: Config, generator):
    """Return (places that were asked, answers, brackets of the family's queries in the pool).

    Everybody begins with the pool's first query: the first question decides which tables are bought.
    """
    asked, answers = [0], session.answer_many(pool[:1])
    known = opening(session, config.beta)
    brackets = [None if known is None else known.bracket(query) for query in pool]
    low, high = np.array([bracket or (0.0, 1.0) for bracket in brackets]).T
    centre, radius = (low + high) / 2, np.maximum((high - low) / 2, 1e-9)
    while len(asked) < most:
        left = np.setdiff1d(np.arange(len(pool)), asked)
        if analyst == "random":
            chosen = generator.choice(left, config.batch, replace=False).tolist()
        else:
            guesses = session.hypothesis.evaluate_many(pool)
            chosen = picked(analyst, guesses, centre, radius, truths, left, config.batch)
        asked += chosen
        answers += session.answer_many([pool[at] for at in chosen])
    return asked, answers, brackets


def attacked(config: Config) -> list[dict]:
    """Return a row for each table and analyst: shares of answers and of sessions with a failure."""
    rows = []
    for label, data, budget, most, told in arenas(config):
        expressions = random_stream(data.domain, 4 * config.pool, config.stream_seed)
        pool = list({query.key: query for query in (one.bind(data.domain) for one in expressions)}.values())
        pool = [query for query in pool if query.constant is None][: config.pool]
        truths = exact_values(data, pool)
        for place, analyst in enumerate(ANALYSTS):
            began = time.process_time()
            generator = np.random.default_rng([config.stream_seed, place])
            outside = answered = broken = escaped = either = hard = 0
            errors, bounds = [], []
            for seed in seeds(config.seed + place, config.sessions):
                session = ic.OnlineIC(
                    data, budget, beta=config.beta, questions=told, noise=SimulatedNoise(seed)
                )
                asked, answers, brackets = attack(analyst, session, pool, truths, most, config, generator)
                off = np.abs(np.array([answer.value for answer in answers]) - truths[asked])
                said = np.array([answer.error_bound for answer in answers])
                tested = np.array([answer.status != "untested" for answer in answers])
                outside += int((off > said).sum())
                answered += len(asked)
                hard += sum(answer.hard for answer in answers)
                wide = bool((off[tested] > session.statistics().error_bound).any())
                left = any(
                    one is not None and not one[0] - 1e-12 <= truth <= one[1] + 1e-12
                    for one, truth in zip(brackets, truths, strict=True)
                )
                broken, escaped, either = broken + wide, escaped + left, either + (wide or left)
                errors += off.tolist()
                bounds += said.tolist()
            rows.append(
                {
                    "table": label,
                    "analyst": analyst,
                    "sessions": config.sessions,
                    "hard": hard / config.sessions,
                    "outside": outside / answered,
                    "session_wide_failed": broken / config.sessions,
                    "family_failed": escaped / config.sessions,
                    "failed": either / config.sessions,
                    "stated": float(np.median(bounds)),
                    "error": float(np.quantile(errors, 0.95)),
                    "seconds": time.process_time() - began,
                }
            )
            print(rows[-1], flush=True)
    return rows


def run(quick: bool, only: list[str]) -> dict:
    start, rows, absent = time.perf_counter(), [], []
    quickly = Config(quick_sizes(), runs=1, answers=1, sessions=2, asked=20, batch=10, pool=60)
    config, only = (quickly, only or QUICK) if quick else (Config(), only)
    if only != ["analysts"]:
        for stream in streams(config.sizes, absent, only):
            rows.append(stated(stream, config))
            first = rows[-1]["answers"][0]
            print(rows[-1]["stream"], f"{first['stated'] / first['error']:.2f}", flush=True)
    result = stamped(config, start, absent, rows=rows)
    return result | ({"analysts": attacked(config)} if not only or "analysts" in only else {})


def records(value: float) -> str:
    """Return a number of records, of less than ten one digit more."""
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.1f}"


def pair(row: dict, n: int) -> str:
    """Return how many answers, 95 % quantile of their errors, and median of their bounds, in records."""
    stated = records(n * row["stated"]) if math.isfinite(row["stated"]) else "none"
    return f"{row['count']:,.0f}: {records(n * row['error'])}, {stated}"


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, label = Config(), "adult5, 30 asked"
    found = makers(config.sizes)
    return {f"rows/{list(found).index(label)}": stated(found[label](), config)}


def table(result: dict) -> str:
    lines = [
        "| stream | n | tested | 95 % error | median stated | stated / error | outside | all at once: stated "
        "| largest error | failed, sessions | family |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in result["rows"]:
        n, row = one["n"], one["answers"][0]
        wide = records(n * one["session_wide"]) if math.isfinite(one["session_wide"]) else "none"
        lines.append(
            f"| {one['stream']} | {n:,} | {row['count']:,.0f} | {records(n * row['error'])} "
            f"| {records(n * row['stated'])} | {row['stated'] / row['error']:.1f} | {row['outside']:.4f} "
            f"| {wide} | {records(n * one['largest_error'])} "
            f"| {one['session_wide_failed']}, {one['sessions']} | {one['family']:,} |"
        )
    kinds = ("easy", "hard", *ORDERS, "untested")
    lines += ["", f"| stream | {' | '.join(kinds)} |", "|" + "---|" * (1 + len(kinds))]
    for one in result["rows"]:
        by = {row["answers"]: row for row in one["answers"]}
        cells = " | ".join(pair(by[kind], one["n"]) if kind in by else "" for kind in kinds)
        lines.append(f"| {one['stream']} | {cells} |")
    lines += [
        "",
        "Records; medians of bounds over answers, repeats apart; all seeds together. By status and number of "
        "attributes: how many answers; 95 % quantile of their errors, median bound.",
        "",
        "| table | analyst | sessions | hard | answers outside | session-wide failed | family failed "
        "| either | median stated / 95 % error |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["analysts"]:
        lines.append(
            f"| {row['table']} | {row['analyst']} | {row['sessions']:,} | {row['hard']:.1f} "
            f"| {row['outside']:.4f} | {row['session_wide_failed']:.3f} | {row['family_failed']:.3f} "
            f"| {row['failed']:.3f} | {row['stated'] / max(row['error'], 1e-12):.1f} |"
        )
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw errors and bounds by stream, as fractions; needs matplotlib."""
    from matplotlib.figure import Figure

    shown = result["rows"][::-1]
    canvas = Figure(figsize=(8.0, 1.2 + 0.27 * len(shown)), layout="constrained")
    axes = canvas.add_subplot()
    marks = (
        ("error", "o", "#0072B2", "95 % quantile of the errors"),
        ("stated", "D", "#009E73", "stated bound, median"),
    )
    for place, one in enumerate(shown):
        first = one["answers"][0]
        held = [first[name] for name, *_ in marks]
        axes.plot([min(held), max(held)], [place, place], color="#BBBBBB", zorder=0)
        for (_, mark, colour, label), value in zip(marks, held, strict=True):
            axes.plot(value, place, mark, color=colour, markersize=5, label=label if place == 0 else None)
        if math.isfinite(one["session_wide"]):
            label = "of all answers at once" if place == 0 else None
            axes.plot(one["session_wide"], place, "|", color="black", markersize=9, label=label)
    axes.set_xscale("log")
    axes.set_ylim(-0.5, len(shown) - 0.5)
    axes.set_yticks(range(len(shown)), [f"{one['stream']} (n = {one['n']:,})" for one in shown], fontsize=8)
    axes.set_xlabel("fraction of records")
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    canvas.legend(loc="outside upper center", fontsize=8, ncols=3)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure, order=[*makers(Sizes()), "analysts"])
