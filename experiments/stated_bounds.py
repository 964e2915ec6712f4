"""What answers state beside what they err by, and how often three analysts find one outside of its bound.

    python experiments/stated_bounds.py [--quick] [--from-json]

Default sessions at (1, 1e-9), simulated noise: NOT PRIVATE. First part: on six tables, the median bound of
all tested answers, repeats apart, beside the 95 % quantile of their errors; by status and by number of
attributes; and what the tests alone would have stated, with all of beta. Second part: small tables, asked by
an analyst who asks at random, by one who climbs (where the released tables and the fit disagree
most) and by one who knows the truth (where the guess or the estimate from the first tables errs most).
Writes results/stated_bounds.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import (
    Stream,
    adult5_data,
    adult_workload,
    conjunctions,
    nltcs,
    one_dimensional,
    present,
    stream_of,
)

import onlineic as ic
from onlineic.evaluate import exact_values, random_stream
from onlineic.hypothesis import Estimates, TableDesign
from onlineic.ledger import Hard, Opened
from onlineic.noise import SimulatedNoise
from onlineic.queries import Partition, derived
from onlineic.session import EASY_OR_HARD, KNOWN

NAME = "stated_bounds"
ANALYSTS = ("random", "climbing", "worst case")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    epsilon: float = 1.0
    delta: float = 1e-9
    beta: float = 0.05
    queries: int = 10_000
    runs: int = 3
    stream_seed: int = 1
    sessions: int = 100
    asked: int = 60
    pool: int = 250
    seed: int = 20261122


def streams(config: Config, absent: list[str]) -> Iterator[Stream]:
    """Yield every stream whose table is there, one at a time."""
    size, seed = config.queries, config.stream_seed

    def survey() -> Stream:
        data = nltcs()
        return stream_of("NLTCS", data, conjunctions(data.domain, size, 4, seed))

    def ranges(label: str, name: str) -> Stream:
        data = one_dimensional(name)
        return stream_of(label, data, random_stream(data.domain, size, seed))

    def five() -> Stream:
        data = adult5_data()
        return stream_of("adult5", data, random_stream(data.domain, size, seed))

    names = {"HEPTH": "hepth", "GROSS": "salaries", "FRANK": "capital-loss"}
    makers = {
        "adult6": partial(adult_workload, "adult6", size),
        "adult5": five,
        "NLTCS": survey,
        **{label: partial(ranges, label, name) for label, name in names.items()},
    }
    return present(makers, absent)


def tests_alone(session: ic.OnlineIC, answers: list[ic.Answer], beta: float) -> np.ndarray:
    """Return what the test, or the noise of what was measured, proves with all of beta."""
    spending, spent = session.plan.spending, Fraction(0)
    records = [record for record in session.transcript if isinstance(record, Hard | Opened)]
    hard = iter(records)
    if isinstance(records[0], Opened):
        spent = next(hard).charge.amount
    sparse = spending.at(spent)
    easy = sparse.easy_radius(EASY_OR_HARD * beta)
    bounds = []
    for answer in answers:
        bound = easy
        if answer.hard:
            record = next(hard)
            value, weights = derived(record.query, record.measurement)
            norm = record.measurement.scale * float(np.linalg.norm(weights))
            bound = norm * math.sqrt(2 * math.log(2 / (EASY_OR_HARD * beta))) + abs(answer.value - value)
            if not isinstance(record.measurement.target, Partition):
                bound = sparse.hard_radius(record.measurement.target, EASY_OR_HARD * beta)
            spent += record.charge.amount
            sparse = spending.at(spent)
            easy = sparse.easy_radius(EASY_OR_HARD * beta)
        bounds.append(min(bound, max(answer.value, 1 - answer.value)))
    return np.array(bounds)


def stated(stream, config: Config, drawn: list[int]) -> dict:
    """Return one stream's rows: over all seeds together, by status and number of attributes."""
    found, seconds, wide, family = [], 0.0, [], None
    ways = np.array([len(query.axes) for query in stream.queries])
    for seed in drawn:
        began = time.perf_counter()
        session = ic.OnlineIC(
            stream.data,
            ic.Budget(config.epsilon, config.delta),
            beta=config.beta,
            max_queries=len(stream.queries),
            noise=SimulatedNoise(seed),
        )
        answers = session.answer_many(stream.queries)
        seconds += time.perf_counter() - began
        statistics = session.statistics()
        wide.append(statistics.error_bound)
        family = statistics.family
        errors = np.abs(np.array([answer.value for answer in answers]) - stream.truths)
        bounds = np.array([answer.error_bound for answer in answers])
        alone = tests_alone(session, answers, config.beta)
        status = np.array([answer.status for answer in answers])
        found.append((errors, bounds, alone, status, ways))
    errors, bounds, alone, status, ways = (np.concatenate(column) for column in zip(*found, strict=True))
    tested = ((status == "easy") | (status == "hard")) & (ways > 0)
    rows = []
    for label, chosen in [
        ("all", tested),
        *((kind, tested & (status == kind)) for kind in ("easy", "hard")),
        *((f"{count}-way", tested & (ways == count)) for count in np.unique(ways[tested]).tolist()),
        ("untested", status == "untested"),
    ]:
        if chosen.any():
            rows.append(
                {
                    "answers": label,
                    "count": int(chosen.sum()) / len(drawn),
                    "error": float(np.quantile(errors[chosen], 0.95)),
                    "tests_alone": float(np.median(alone[chosen])),
                    "stated": float(np.median(bounds[chosen])),
                    "outside": float((errors[chosen] > bounds[chosen]).mean()),
                }
            )
    return {
        "stream": stream.label,
        "n": stream.data.n,
        "family": family.size,
        "session_wide": float(np.mean(wide)),
        "largest_error": float(errors[tested].max()),
        "seconds": seconds / len(drawn),
        "rows": rows,
    }


def arenas(config: Config):
    """Yield (label, table, budget) of the second part: Gaussian pairs, Laplace levels, pure pairs."""
    generator = np.random.default_rng(config.stream_seed)
    domain = ic.Domain.of(a=range(40), b=["u", "v", "w", "x", "y"], c=range(6), d=["no", "yes"])
    law = generator.dirichlet(np.full(domain.size, 0.05))
    pairs = ic.PrivateData(generator.multinomial(20_000, law).reshape(domain.shape), domain)
    line = ic.Domain.of(x=range(300))
    levels = ic.PrivateData(generator.multinomial(20_000, generator.dirichlet(np.full(300, 0.1))), line)
    yield "pairs, Gaussian", pairs, ic.Budget(config.epsilon, config.delta)
    yield "levels, Laplace", levels, ic.Budget(config.epsilon, config.delta)
    yield "pairs, Laplace (delta = 0)", pairs, ic.Budget(config.epsilon)


def opening(session: ic.OnlineIC, beta: float) -> Estimates:
    """Return what anybody can compute from the public record: brackets of the first tables."""
    tables = session.plan.first_tables
    (record,) = [record for record in session.transcript if isinstance(record, Opened)]
    design = TableDesign(tables.targets, [*map(float, tables.scales)], tables.pure)
    values = [one.values for one in record.measurements]
    return Estimates(design, values, session.plan.sparse.n, KNOWN * beta)


def picked(analyst: str, session: ic.OnlineIC, pool, truths, config: Config, generator) -> list[int]:
    """Return which queries of the pool an analyst asks, in order, having seen the opening."""
    if analyst == "random":
        return generator.choice(len(pool), config.asked, replace=False).tolist()
    brackets = [opening(session, config.beta).bracket(query) or (0.0, 1.0) for query in pool]
    low, high = np.array(brackets).T
    centre, radius = (low + high) / 2, np.maximum((high - low) / 2, 1e-9)
    guesses = session.hypothesis.evaluate_many(pool)
    if analyst == "climbing":
        return np.argsort(-np.abs(centre - guesses) / radius)[: config.asked].tolist()
    half = config.asked // 2
    estimate = np.argsort(-np.abs(centre - truths) / radius)[:half].tolist()
    guess = [at for at in np.argsort(-np.abs(guesses - truths)).tolist() if at not in set(estimate)]
    return [*estimate, *guess[:half]]


def attacked(config: Config) -> list[dict]:
    """Return a row for each table and analyst: shares of answers and of sessions with a failure."""
    rows = []
    for label, data, budget in arenas(config):
        expressions = random_stream(data.domain, 4 * config.pool, config.stream_seed)
        pool = list({query.key: query for query in (one.bind(data.domain) for one in expressions)}.values())
        pool = [query for query in pool if query.constant is None][: config.pool]
        truths = exact_values(data, pool)
        for place, analyst in enumerate(ANALYSTS):
            generator = np.random.default_rng([config.stream_seed, place])
            outside = answered = broken = escaped = 0
            errors, bounds = [], []
            for seed in seeds(config.seed + place, config.sessions):
                session = ic.OnlineIC(
                    data,
                    budget,
                    beta=config.beta,
                    max_queries=config.asked,
                    first_tables=True,
                    noise=SimulatedNoise(seed),
                )
                asked = picked(analyst, session, pool, truths, config, generator)
                answers = [session.answer(pool[at]) for at in asked]
                off = np.abs(np.array([answer.value for answer in answers]) - truths[asked])
                said = np.array([answer.error_bound for answer in answers])
                tested = np.array([answer.status != "untested" for answer in answers])
                outside += int((off > said).sum())
                answered += len(asked)
                broken += bool((off[tested] > session.statistics().error_bound).any())
                known = opening(session, config.beta)
                found = [known.bracket(query) for query in pool]
                escaped += any(
                    one is not None and not one[0] - 1e-12 <= truth <= one[1] + 1e-12
                    for one, truth in zip(found, truths, strict=True)
                )
                errors += off.tolist()
                bounds += said.tolist()
            rows.append(
                {
                    "table": label,
                    "analyst": analyst,
                    "sessions": config.sessions,
                    "outside": outside / answered,
                    "session_wide_failed": broken / config.sessions,
                    "family_failed": escaped / config.sessions,
                    "stated": float(np.median(bounds)),
                    "error": float(np.quantile(errors, 0.95)),
                }
            )
            print(rows[-1], flush=True)
    return rows


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(queries=300, runs=1, sessions=3, asked=20, pool=60) if quick else Config()
    drawn = seeds(config.seed, config.runs)
    results, absent = [], []
    for stream in streams(config, absent):
        results.append(stated(stream, config, drawn))
        first = results[-1]["rows"][0]
        print(results[-1]["stream"], f"{first['stated'] / first['error']:.2f}", flush=True)
    return stamped(config, start, absent, streams=results, analysts=attacked(config))


def table(result: dict) -> str:
    lines = [
        "| stream | answers | count | 95 % error | tests alone | stated | stated / error, before "
        "| outside | session-wide, largest error | family |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in result["streams"]:
        n = one["n"]
        for row in one["rows"]:
            if row["answers"] == "all":
                start = f"| **{one['stream']}** | all tested "
                end = (
                    f"| {n * one['session_wide']:,.0f}, {n * one['largest_error']:,.0f} | {one['family']:,} |"
                )
            else:
                start, end = f"| | {row['answers']} ", "| | |"
            known, tested = math.isfinite(row["stated"]), row["answers"] != "untested"
            bound = f"{n * row['stated']:,.0f}" if known else "none"
            before = f"{n * row['tests_alone']:,.0f}" if tested else "none"
            ratio = f"{row['stated'] / row['error']:.1f}"
            ratio += f", {row['tests_alone'] / row['error']:.1f}" if tested else ""
            lines.append(
                f"{start}| {row['count']:,.0f} | {n * row['error']:,.0f} | {before} "
                f"| {bound} | {ratio if known else ''} "
                f"| {row['outside']:.4f} {end}"
            )
    lines += [
        "",
        "Records; medians of bounds over answers, repeats apart; all seeds together.",
        "",
        "| table | analyst | sessions | answers outside | session-wide failed | family failed "
        "| median stated / 95 % error |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["analysts"]:
        lines.append(
            f"| {row['table']} | {row['analyst']} | {row['sessions']:,} | {row['outside']:.4f} "
            f"| {row['session_wide_failed']:.3f} | {row['family_failed']:.3f} "
            f"| {row['stated'] / max(row['error'], 1e-12):.1f} |"
        )
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw errors and bounds by stream, in records; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(8.0, 3.6), layout="constrained")
    axes = canvas.add_subplot()
    marks = (
        ("error", "o", "#0072B2", "95 % quantile of the errors"),
        ("stated", "D", "#009E73", "stated bound, median"),
        ("tests_alone", "s", "#CC79A7", "of the tests alone"),
    )
    shown = result["streams"][::-1]
    for place, one in enumerate(shown):
        first = one["rows"][0]
        held = [one["n"] * first[name] for name, *_ in marks]
        axes.plot([min(held), max(held)], [place, place], color="#BBBBBB", zorder=0)
        for (_, mark, colour, label), value in zip(marks, held, strict=True):
            axes.plot(value, place, mark, color=colour, label=label if place == 0 else None)
    axes.set_xscale("log")
    axes.set_yticks(range(len(shown)), [one["stream"] for one in shown])
    axes.set_xlabel("records")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8, ncols=3)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
