"""Experiments: errors against the truth, of sessions and baselines, on one stream. NOT PRIVATE.

Everything here reads the exact answers and hands out functions of them, whatever noise is used. Running it on
the real table and then choosing the rule, the threshold or the budget of a private session by what was seen
is a release that no promise covers: use public or synthetic data for that.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.accounting.budget import Budget
from onlineic.baselines.engines import NoisyTables, PerQueryNoise, noisy_histogram
from onlineic.data.private import PrivateData
from onlineic.errors import InvalidParameterError, checked_integer
from onlineic.evaluate.streams import exact_values
from onlineic.noise.sources import Noise, SimulatedNoise
from onlineic.queries.answers import Answer
from onlineic.queries.ask import bind_queries
from onlineic.queries.query import session_grid_bits
from onlineic.session.session import OnlineIC
from onlineic.updates.base import UpdateRule

__all__ = ["Trace", "compare", "coverage", "known_baselines", "trace"]

CHUNK = 256  # queries between two reports of progress
TABLE_CELLS = 2**24  # all noisy tables together
Progress = Callable[[Any], None]


class Engine(Protocol):
    """What can be traced: a session or a baseline."""

    def answer_many(self, queries: Iterable[Any], /) -> list[Answer]:
        """Answer queries in order."""

    def statistics(self) -> Any:
        """Return a snapshot with the counts of answers by status and the share spent."""


@final
@attrs.frozen(eq=False)
class Trace:
    """What one engine did on one stream, against the truth. NOT PRIVATE.

    Attributes
    ----------
    label : str
    seed : int or None
        Of the simulated noise; None for the system's entropy.
    errors : float64 array, (queries,)
        Answer minus exact value, fractions of records.
    bounds : float64 array, (queries,)
        The error bounds that were stated; inf where none was.
    easy, hard, repeat, untested : int
        Answers by status.
    spent : float
        Share of the budget used up or reserved at the end, in [0, 1].
    seconds : float
        Wall time of all answers, without opening the engine.
    """

    label: str
    seed: int | None
    errors: Floats
    bounds: Floats
    easy: int
    hard: int
    repeat: int
    untested: int
    spent: float
    seconds: float

    @property
    def mean_error(self) -> float:
        """Mean absolute error over all answers, untested ones too."""
        return float(np.abs(self.errors).mean())

    @property
    def rms_error(self) -> float:
        """Root of the mean squared error over all answers."""
        return float(np.sqrt(np.square(self.errors).mean()))

    @property
    def max_error(self) -> float:
        """Largest absolute error over all answers."""
        return float(np.abs(self.errors).max())

    @property
    def queries_per_second(self) -> float:
        """Answers per second of wall time."""
        return len(self.errors) / max(self.seconds, 1e-9)

    @property
    def bounded(self) -> Bools:
        """Which answers came with a finite bound."""
        return np.isfinite(self.bounds)

    def __repr__(self) -> str:
        return (
            f"Trace({self.label!r}, seed={self.seed}, {len(self.errors)} answers, {self.hard} hard, "
            f"rms {self.rms_error:.3g}, max {self.max_error:.3g}, NOT PRIVATE)"
        )


def trace(
    label: str,
    engine: Engine,
    data: PrivateData,
    stream: Sequence[Any],
    *,
    truths: Floats | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Return what an open engine answers to a stream, beside the truth. NOT PRIVATE.

    Parameters
    ----------
    label : str
    engine : session or baseline
        Open, on `data`.
    data : PrivateData
    stream : sequence of queries, at least one
    truths : float64 array, (queries,), optional
        `exact_values(data, stream)`, if it is at hand.
    seed : int, optional
        What to note as the seed.
    progress : callable, optional
        Called with the engine's statistics after every few hundred answers.
    """
    if not len(stream):
        raise InvalidParameterError("stream must hold one or more queries, got none; write some.")
    seed = None if seed is None else checked_integer("seed", seed)
    values, bounds = np.empty(len(stream)), np.empty(len(stream))
    seconds = 0.0
    for start in range(0, len(stream), CHUNK):
        began = time.perf_counter()
        answers = engine.answer_many(stream[start : start + CHUNK])
        seconds += time.perf_counter() - began
        values[start : start + CHUNK] = [answer.value for answer in answers]
        bounds[start : start + CHUNK] = [answer.error_bound for answer in answers]
        if progress is not None:
            progress(engine.statistics())
    stats = engine.statistics()
    exact = exact_values(data, stream) if truths is None else np.asarray(truths, np.float64)
    return Trace(
        label=label,
        seed=seed,
        errors=values - exact,
        bounds=bounds,
        easy=stats.easy,
        hard=stats.hard,
        repeat=stats.repeat,
        untested=stats.untested,
        spent=stats.spent,
        seconds=seconds,
    )


def compare(
    data: PrivateData,
    budget: Budget,
    stream: Iterable[Any],
    rules: Mapping[str, UpdateRule[Any] | None],
    seeds: Iterable[int],
    *,
    baselines: bool = True,
    **options: Any,
) -> list[Trace]:
    """Return a trace for every rule and seed, with the trivial baselines at the same budget. NOT PRIVATE.

    Noise is paired: all engines of one seed draw from equal `SimulatedNoise(seed)`, so that differences
    between rules are less noisy than the rules. To choose a rule for a private session by the result on the
    same table is a release outside of every promise; choose on public or synthetic data.

    Parameters
    ----------
    data : PrivateData
    budget : Budget
        Of each engine, in full.
    stream : iterable of queries
        Fixed in advance, the same for all.
    rules : mapping of label to UpdateRule or None
        None: the session's default.
    seeds : iterable of int, >= 0
    baselines : bool
        Whether to add `known_baselines`, which know the stream in advance.
    **options
        Of `OnlineIC`, the same for all rules.

    Returns
    -------
    list of Trace
        Seed by seed: the rules in order, then the baselines.
    """
    stream = list(stream)
    truths = exact_values(data, stream)
    known = known_baselines(data, budget, stream) if baselines else {}
    if overlap := known.keys() & rules.keys():
        raise InvalidParameterError(
            f"labels of rules must differ from those of the baselines, got {sorted(overlap)}; rename them."
        )
    result = []
    for seed in seeds:
        for label, rule in rules.items():
            result.append(_simulated(label, data, budget, stream, rule, seed, truths, options))
        for label, make in known.items():
            engine = make(SimulatedNoise(seed))
            result.append(trace(label, engine, data, stream, truths=truths, seed=seed))
    return result


def known_baselines(
    data: PrivateData, budget: Budget, stream: Sequence[Any]
) -> dict[str, Callable[[Noise | None], Engine]]:
    """Return label -> maker of every trivial baseline that this budget and stream allow.

    They are told what an online engine is not: the number of queries, of distinct ones, or the attribute
    sets. Per-query Gaussian noise needs delta > 0; noisy tables of more than 2^24 cells are left out.

    Parameters
    ----------
    data, budget
    stream : sequence of queries
    """
    asked = bind_queries(stream, data.domain, session_grid_bits(data.n))
    bound = [query for query in asked if query.constant is None]
    paid = max(1, len(bound))
    distinct = max(1, len({query.key for query in bound}))
    shape, names = data.domain.shape, data.domain.names
    sets = sorted({query.axes for query in bound}) or [(0,)]
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
    makers["one noisy histogram"] = lambda noise: noisy_histogram(data, budget, noise=noise)
    if sum(int(np.prod([shape[axis] for axis in axes])) for axes in sets) <= TABLE_CELLS:
        makers[f"noisy tables ({len(tables)} sets)"] = lambda noise: NoisyTables(
            data, budget, tables, noise=noise
        )
    return makers


def coverage(traces: Iterable[Trace]) -> tuple[int, int]:
    """Return (answers within their stated bound, answers that had one), over all traces. NOT PRIVATE.

    One answer's bound is kept with probability at least 1 - beta; answers of one trace are dependent.
    """
    kept = bounded = 0
    for one in traces:
        held = one.bounded
        kept += int((np.abs(one.errors[held]) <= one.bounds[held]).sum())
        bounded += int(held.sum())
    return kept, bounded


def _simulated(
    label: str,
    data: PrivateData,
    budget: Budget,
    stream: Sequence[Any],
    rule: UpdateRule[Any] | None,
    seed: int,
    truths: Floats | None,
    options: Mapping[str, Any],
) -> Trace:
    if {"noise", "ledger", "update"} & options.keys():
        raise InvalidParameterError(
            "options must leave noise, ledger and update to the comparison, got "
            f"{sorted({'noise', 'ledger', 'update'} & options.keys())}; give rules and seeds."
        )
    session = OnlineIC(data, budget, update=rule, noise=SimulatedNoise(seed), **options)
    return trace(label, session, data, stream, truths=truths, seed=seed)
