"""Rules and trivial baselines side by side: one budget, the same tables, streams and seeds. NOT PRIVATE."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import attrs
import numpy as np

from onlineic.accounting.budget import Budget
from onlineic.ask.bind import bind_queries
from onlineic.baselines.engines import MAX_CELLS, NoisyTables, PerQueryNoise, noisy_histogram
from onlineic.data.private import PrivateData
from onlineic.data.release import check_types
from onlineic.errors import (
    InvalidParameterError,
    UpdateFailedError,
    check_choice,
    checked_integer,
    checked_list,
    shown,
)
from onlineic.evaluate.streams import exact_values
from onlineic.evaluate.traces import Analyst, Engine, Timing, Trace, trace
from onlineic.noise.sources import Noise, SimulatedNoise
from onlineic.plan.announced import announcement
from onlineic.plan.demand import DemandPurchases
from onlineic.plan.forecasts import counted_out
from onlineic.plan.planning import settled_purchases
from onlineic.plan.purchase_rule import TestsOnly
from onlineic.plan.settings import Settings
from onlineic.progress import advance
from onlineic.queries.query import session_grid_bits
from onlineic.session.session import OnlineIC
from onlineic.updates.base import UpdateRule

TABLE_CELLS = 2**24  # all noisy tables together
ASKED = 10_000  # `max_queries` of a session that is not told; baselines pay for as many answers to an analyst
OWN = {"noise", "ledger", "update"}
ASIDE = {"purchases", "questions", "release", "progress"}  # of which no opening depends
BOOK: Mapping[str, Any] = {"purchases": TestsOnly(), "release": "answer"}  # nothing is bought without a test


def compare(
    data: PrivateData | Mapping[str, PrivateData],
    budget: Budget,
    stream: Iterable[Any] | Analyst | Mapping[str, Iterable[Any] | Analyst],
    rules: Mapping[str, UpdateRule[Any] | None],
    seeds: Iterable[int],
    *,
    baselines: bool = True,
    timing: Timing = "batch",
    failures: Literal["raise", "keep"] = "raise",
    **options: Any,
) -> list[Trace]:
    """Return a trace for every rule and seed, with the trivial baselines at the same budget. NOT PRIVATE.

    All rules have one plan: as in the book nothing is bought before a test fires, and hits release numbers.
    Left to itself a session has another plan for each rule, and then most of the difference is the plan's.
    `purchases=DemandPurchases()` starts all of them from the same purchase, settled beforehand for what
    `questions` tells (`plan.settled_purchases`), `release="partition"` lets hits release whole tables,
    `sparse` and `hard_answers` say the rest; `Trace.given` tells what each one got.

    Noise is paired: all engines of one seed draw from equal `SimulatedNoise(seed)`, so that differences
    between rules are less noisy than the rules. To choose a rule for a private session by the result on the
    same table is a release outside of every promise; choose on public or synthetic data.

    Args:
        budget: Of each engine, in full.
        stream: Iterable of queries, or Analyst, or mapping of label to either. Each is asked of every table.
            Queries are fixed in advance, the same for all engines. An analyst is called with the answers so
            far and returns the next query, or None to end; each engine has its own interview, which begins
            without answers.
        rules: None: the default session, which chooses rule and plan by itself, but for what `options` say.
        seeds: Each at least 0.
        baselines: Whether to add `known_baselines`: they know a stream in advance, and of an analyst the
            number that `questions` tells, or else `max_queries`.
        timing: As in `trace`: "single" gives every answer a time of its own.
        failures: What to do when a rule fails at an update: stop, since from there on the session keeps the
            hypothesis it had and the comparison is not of that rule any more; or go on and count in
            `update_failures`.
        **options: Of `OnlineIC`, the same for all rules; of those unsaid `purchases` is `TestsOnly()` and
            `release` "answer", unless a rule of one's own buys tables by what is asked.

    Returns:
        Table by table, stream by stream, seed by seed: the rules in order, then the baselines.

    Raises:
        UpdateFailedError: With the traces that were done.
    """
    check_choice("failures", failures, "raise", "keep")
    if OWN & options.keys():
        raise InvalidParameterError(
            "options must leave noise, ledger and update to the comparison, got "
            f"{sorted(OWN & options.keys())}; give rules and seeds."
        )
    tables = data if isinstance(data, Mapping) else {"": data}
    streams = stream if isinstance(stream, Mapping) else {"": stream}
    fixed = {
        label: one if callable(one) else checked_list("stream", one, remedy="write queries in brackets")
        for label, one in streams.items()
    }
    if not isinstance(rules, Mapping):
        raise InvalidParameterError(
            f"rules must be a mapping of label to rule, got a {type(rules).__name__}; write {{'mw': rule}}."
        )
    if not isinstance(seeds, Iterable):
        raise InvalidParameterError(f"seeds must be a list of integers, got {shown(seeds)}; write range(3).")
    drawn = list(seeds)
    for name, given, remedy in (
        ("data", tables, "give a table, or {'label': table}"),
        ("stream", streams, "give queries, or {'label': queries}"),
        (
            "rules",
            rules,
            "write {'default': None} for the session's own; baselines alone are known_baselines",
        ),
        ("seeds", drawn, "write range(3)"),
    ):
        if not given:
            raise InvalidParameterError(f"{name} must be one or more, got none; {remedy}.")
    told = options.get("max_queries", ASKED)
    if options.get("questions") is not None:
        options["questions"] = announced = announcement(options["questions"])
        told = announced.count or told
    result: list[Trace] = []
    said = options.get("purchases", BOOK["purchases"])
    held_plan = BOOK if isinstance(said, DemandPurchases | TestsOnly) else {}  # others buy whole tables

    def opened(rule: UpdateRule[Any] | None, table: PrivateData, begun: Mapping[str, Any], seed: int) -> Any:
        plan = {**options, **begun} if rule is None else {**held_plan, **options, **begun}
        return OnlineIC(table, budget, update=rule, noise=SimulatedNoise(seed), **plan)

    for held, table in tables.items():
        begun = dict[str, Any]()
        if isinstance(said, DemandPurchases):  # one opening, whatever each rule would ask for
            alike = {name: one for name, one in options.items() if name not in ASIDE}
            settings = counted_out(Settings(budget, **alike))
            begun["purchases"] = settled_purchases(table.domain, table.n, settings, options.get("questions"))
            begun["questions"] = None if options.get("questions") is None else announced.count
        for asked, questions in fixed.items():
            truths = None if callable(questions) else exact_values(table, questions)
            known = told if callable(questions) else questions
            makes = known_baselines(table, budget, known) if baselines else {}
            if overlap := makes.keys() & rules.keys():
                raise InvalidParameterError(
                    "labels of rules must differ from those of the baselines, got "
                    f"{sorted(overlap)}; rename them."
                )
            for seed in drawn:
                engines: dict[str, Callable[[], Engine]] = {
                    **{label: partial(opened, rule, table, begun, seed) for label, rule in rules.items()},
                    **{label: partial(_made, make, seed) for label, make in makes.items()},
                }
                for label, engine in engines.items():
                    watched = partial(_check_updates, label, seed, result) if failures == "raise" else None
                    one = trace(
                        label,
                        engine,
                        table,
                        questions,
                        truths=truths,
                        seed=seed,
                        progress=watched,
                        timing=timing,
                    )
                    result.append(attrs.evolve(one, data=held, stream=asked))
                    advance("comparison", len(result), len(engines) * len(drawn) * len(tables) * len(fixed))
    return result


def _made(make: Callable[[Noise | None], Engine], seed: int) -> Engine:
    return make(SimulatedNoise(seed))


def _check_updates(label: str, seed: int, done: Sequence[Trace], statistics: Any) -> None:
    """Raise `UpdateFailedError` if a rule has failed at an update."""
    if count := getattr(statistics, "update_failures", 0):
        error = UpdateFailedError(
            f"rule {shown(label)} must update the hypothesis after every hard answer, but failed {count} "
            f"times by "
            f"answer {statistics.asked} at seed {seed}; mend it (onlineic.testing.check_update_rule), or "
            "write failures='keep'."
        )
        error.traces = tuple(done)
        raise error


def known_baselines(
    data: PrivateData, budget: Budget, stream: Sequence[Any] | int
) -> dict[str, Callable[[Noise | None], Engine]]:
    """Return label -> maker of every trivial baseline that this budget and stream allow.

    They are told what an online engine is not: the number of queries, of distinct ones, or the attribute
    sets. Per-query Gaussian noise needs delta > 0; noisy tables of more than 2^24 cells are left out, a
    histogram of more than 2^26, and tables where only the number of queries is known.

    Args:
        stream: Sequence of queries, or int. All queries, or, where an analyst chooses them one by one, how
            many answers to pay for.
    """
    check_types(data, budget)
    sets: list[tuple[int, ...]] = []
    if isinstance(stream, Sequence):
        asked = bind_queries(stream, data.domain, session_grid_bits(data.n))
        bound = [query for query in asked if query.constant is None]
        paid = max(1, len(bound))
        distinct = max(1, len({query.key for query in bound}))
        sets = sorted({query.axes for query in bound}) or [(0,)]
    else:
        paid = distinct = checked_integer("stream", stream, at_least=1)
    shape, names = data.domain.shape, data.domain.names
    tables = [[names[axis] for axis in axes] for axes in sets]
    makers: dict[str, Callable[[Noise | None], Engine]] = {
        "per-query Laplace": lambda noise: PerQueryNoise(
            data, budget, answers=paid, noise_law="laplace", noise=noise
        )
    }
    if not budget.pure:
        makers["per-query Gaussian"] = lambda noise: PerQueryNoise(data, budget, answers=paid, noise=noise)
    makers["per-query noise, cached"] = lambda noise: PerQueryNoise(
        data, budget, answers=distinct, noise_law="best", cache=True, noise=noise
    )
    if data.domain.size <= MAX_CELLS:
        makers["one noisy histogram"] = lambda noise: noisy_histogram(data, budget, noise=noise)
    if sets and sum(int(np.prod([shape[axis] for axis in axes])) for axes in sets) <= TABLE_CELLS:
        makers[f"noisy tables ({len(tables)} set{'s' * (len(tables) != 1)})"] = lambda noise: NoisyTables(
            data, budget, tables, noise=noise
        )
    return makers
