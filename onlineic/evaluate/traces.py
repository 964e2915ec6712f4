"""What one engine did on one stream, answer by answer, against the truth. NOT PRIVATE.

Everything here reads the exact answers and hands out functions of them, whatever noise is used. Running it on
the real table and then choosing the rule, the threshold or the budget of a private session by what was seen
is a release that no promise covers: use public or synthetic data for that.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, cast, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.data.private import PrivateData
from onlineic.errors import (
    InvalidParameterError,
    check_choice,
    check_kind,
    checked_integer,
    checked_list,
)
from onlineic.evaluate.streams import exact_values
from onlineic.plan.plan import Plan
from onlineic.plan.purchase_rule import TestsOnly
from onlineic.queries.answers import Answer

CHUNK = 256  # queries between two reports of progress
Progress = Callable[[Any], None]
Timing = Literal["batch", "single"]
# from the answers so far, in order, to the next query, or None to end; without answers it begins anew
Analyst = Callable[[Sequence[Answer]], Any]


class Engine(Protocol):
    """What can be traced: a session or a baseline."""

    def answer_many(self, queries: Iterable[Any], /) -> list[Answer]:
        """Answer queries in order."""

    def statistics(self) -> Any:
        """Return a snapshot with the counts of answers by status and the share spent."""


@final
@attrs.frozen(eq=False, kw_only=True)
class Trace:
    """What one engine did on one stream, against the truth. NOT PRIVATE.

    Attributes:
        label: Of the engine.
        data, stream: Of the table and the stream, where there were several to be told apart; else empty.
        seed: Of the simulated noise; None for the system's entropy.
        errors: Shape (queries,). Answer minus exact value, fractions of records.
        bounds: Shape (queries,). The error bounds that were stated; inf where none was.
        statuses: Shape (queries,). "easy", "hard", "repeat" or "untested".
        times: Shape (queries,). Seconds of each answer, the update that a hard one caused included.
        timing: Whether times are those of batches, divided equally among their answers, or were taken one by
            one.
        opening: Seconds from nothing to the first question; None: the engine was open already.
        spent: Share of the budget used up or reserved at the end, in [0, 1].
        update_failures: Updates that the rule failed at: the session kept the hypothesis it had.
        given: Of a session, what it was given besides rule, budget and noise: tables that it buys first, what
            hits release, mechanism, how many hits are planned. Rules with the same words are compared under
            one plan.
    """

    label: str
    data: str = ""
    stream: str = ""
    seed: int | None
    errors: Floats
    bounds: Floats
    statuses: np.ndarray[Any, np.dtype[np.str_]]
    times: Floats
    timing: Timing = "batch"
    opening: float | None = None
    spent: float
    update_failures: int = 0
    given: str = ""

    def __attrs_post_init__(self) -> None:
        for name in ("errors", "bounds", "statuses", "times"):
            check_kind(name, getattr(self, name), np.ndarray)
        sizes = [len(held) for held in (self.errors, self.bounds, self.statuses, self.times)]
        if len(set(sizes)) > 1 or not sizes[0]:
            raise InvalidParameterError(
                f"errors, bounds, statuses and times must be of one length >= 1, got {sizes}."
            )

    @property
    def group(self) -> str:
        """Data and stream, as far as they are named."""
        return ", ".join(part for part in (self.data, self.stream) if part)

    @property
    def name(self) -> str:
        """Data, stream and label, as far as they are named."""
        return f"{self.group}, {self.label}" if self.group else self.label

    @property
    def easy(self) -> int:
        """Answers from the hypothesis after a test, and constants."""
        return self._count("easy")

    @property
    def hard(self) -> int:
        """Answers that were measured."""
        return self._count("hard")

    @property
    def repeat(self) -> int:
        """Answers that had been released before."""
        return self._count("repeat")

    @property
    def untested(self) -> int:
        """Answers without test or bound: the budget was used up."""
        return self._count("untested")

    @property
    def seconds(self) -> float:
        """Time of all answers, without opening the engine."""
        return float(self.times.sum())

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
        """Answers per second."""
        return len(self.errors) / max(self.seconds, 1e-9)

    @property
    def bounded(self) -> Bools:
        """Which answers came with a finite bound."""
        return np.isfinite(self.bounds)

    def _count(self, status: str) -> int:
        return int((self.statuses == status).sum())

    def __repr__(self) -> str:
        return (
            f"Trace({self.name!r}, seed={self.seed}, {len(self.errors)} answers, {self.hard} hard, "
            f"rms {self.rms_error:.3g}, max {self.max_error:.3g}"
            f"{f', given {self.given}' if self.given else ''}, NOT PRIVATE)"
        )


def trace(
    label: str,
    engine: Engine | Callable[[], Engine],
    data: PrivateData,
    stream: Sequence[Any] | Analyst,
    *,
    truths: Floats | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    timing: Timing = "batch",
    clock: Callable[[], float] = time.perf_counter,
) -> Trace:
    """Return what an engine answers to a stream, beside the truth. NOT PRIVATE.

    Args:
        engine: Session or baseline, or a callable that opens one. On `data`. Opening is timed where a
            callable does it. A session buys tables with its first question, whose time they are part of.
        stream: Sequence of queries, at least one, or Analyst. An analyst is called with the answers so far,
            in order, before every question, and returns the next query, or None to end. One that keeps a
            state begins anew when there are no answers yet.
        truths: Shape (queries,). `exact_values(data, stream)`, if it is at hand.
        seed: What to note as the seed.
        progress: Called with the engine's statistics after every few hundred answers.
        timing: Ask in batches, as `answer_many` is meant to be used, or one by one, so that each answer has a
            time of its own. The answers are the same, but of a session that buys tables by what is asked,
            which hears a batch before it answers it. An analyst's are always single.
        clock: Returns seconds: `time.perf_counter`, or `time.process_time` where other programs share the
            cores.
    """
    check_choice("timing", timing, "batch", "single")
    check_types_of_trace(engine, data)
    stream = (
        stream if callable(stream) else checked_list("stream", stream, remedy="write queries in brackets")
    )
    seed = None if seed is None else checked_integer("seed", seed)
    opening, held = None, cast(Engine, engine)
    if callable(engine):
        began = clock()
        held = engine()
        opening = clock() - began
    asked: Sequence[Any]
    if callable(stream):
        timing = "single"
        answers, times, asked = _interviewed(held, stream, progress, clock)
    else:
        asked = stream
        answers, times = _asked(held, asked, progress, clock, 1 if timing == "single" else CHUNK)
    if not answers:
        raise InvalidParameterError("stream must hold one or more queries, got none; write some.")
    stats = held.statistics()
    exact = exact_values(data, asked) if truths is None else np.asarray(truths, np.float64)
    return Trace(
        label=label,
        seed=seed,
        errors=np.array([answer.value for answer in answers]) - exact,
        bounds=np.array([answer.error_bound for answer in answers]),
        statuses=np.array([answer.status for answer in answers]),
        times=np.array(times),
        timing=timing,
        opening=opening,
        spent=stats.spent,
        update_failures=getattr(stats, "update_failures", 0),  # baselines have no rule
        given=_given(held),
    )


def _given(engine: Engine) -> str:
    """Return in words what a session was given besides rule, budget and noise; baselines have no plan."""
    plan = getattr(engine, "plan", None)
    if not isinstance(plan, Plan):
        return ""
    if plan.first_tables is not None:
        start = f"{len(plan.first_tables.targets)} tables first"
    elif isinstance(plan.purchases, TestsOnly):
        start = "no tables first"
    else:
        start = type(plan.purchases).__name__
    release = "numbers" if plan.partitions is None else "tables"
    return f"{start}, hits release {release}, {type(plan.sparse).__name__}, {plan.hard_answers} hits planned"


def _asked(
    engine: Engine,
    stream: Sequence[Any],
    progress: Progress | None,
    clock: Callable[[], float],
    size: int,
) -> tuple[list[Answer], list[float]]:
    """Return answers and seconds of a stream that was fixed in advance, `size` queries a call."""
    answers: list[Answer] = []
    times: list[float] = []
    for start in range(0, len(stream), size):
        part = stream[start : start + size]
        began = clock()
        answers += engine.answer_many(part)
        times += [(clock() - began) / len(part)] * len(part)
        if progress is not None and (len(answers) % CHUNK == 0 or len(answers) == len(stream)):
            progress(engine.statistics())
    return answers, times


def _interviewed(
    engine: Engine, analyst: Analyst, progress: Progress | None, clock: Callable[[], float]
) -> tuple[list[Answer], list[float], list[Any]]:
    """Return answers, seconds and questions of an analyst, whose own time does not count."""
    answers: list[Answer] = []
    times: list[float] = []
    asked: list[Any] = []
    while (query := analyst(tuple(answers))) is not None:
        began = clock()
        answers += engine.answer_many([query])
        times.append(clock() - began)
        asked.append(query)
        if progress is not None and len(answers) % CHUNK == 0:
            progress(engine.statistics())
    if progress is not None:
        progress(engine.statistics())
    return answers, times, asked


def check_types_of_trace(engine: object, data: object) -> None:
    """Raise `InvalidParameterError` unless these are an engine, or make one, and a table."""
    check_kind("data", data, PrivateData, remedy="write PrivateData.from_records(...)")
    if not callable(engine) and not callable(getattr(type(engine), "answer_many", None)):
        raise InvalidParameterError(
            f"engine must have answer_many and statistics, or make what has, got a {type(engine).__name__}."
        )


def checked_traces(traces: Iterable[Trace]) -> list[Trace]:
    """Return traces as a list, or raise `InvalidParameterError`."""
    held = checked_list("traces", traces, remedy="run compare(...) first")
    for one in held:
        check_kind("traces", one, Trace, remedy="run compare(...) first")
    return held


def coverage(traces: Iterable[Trace]) -> tuple[int, int]:
    """Return (answers within their stated bound, answers that had one), over all traces. NOT PRIVATE.

    One answer's bound is kept with probability at least 1 - beta; answers of one trace are dependent.
    """
    kept = bounded = 0
    for one in checked_traces(traces):
        held = one.bounded
        kept += int((np.abs(one.errors[held]) <= one.bounds[held]).sum())
        bounded += int(held.sum())
    return kept, bounded


def frame(traces: Iterable[Trace]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the answers of all traces as columns of equal length, one row an answer. NOT PRIVATE.

    `pandas.DataFrame` and `polars.DataFrame` take the result as it is.

    Args:
        traces: At least one.

    Returns:
        label, data, stream (text); seed (int, -1 for the system's entropy); query (int, its place in the
        stream, from 0); status (text); error, bound (fractions of records); seconds; timing (text).
    """
    held = checked_traces(traces)
    if not held:
        raise InvalidParameterError("traces must be one or more, got none; run compare(...) first.")
    sizes = [len(one.errors) for one in held]

    def each(values: Iterable[Any]) -> np.ndarray[Any, Any]:
        return np.repeat(np.array(list(values)), sizes)

    return {
        "label": each(one.label for one in held),
        "data": each(one.data for one in held),
        "stream": each(one.stream for one in held),
        "seed": each(-1 if one.seed is None else one.seed for one in held),
        "query": np.concatenate([np.arange(size) for size in sizes]),
        "status": np.concatenate([one.statuses for one in held]),
        "error": np.concatenate([one.errors for one in held]),
        "bound": np.concatenate([one.bounds for one in held]),
        "seconds": np.concatenate([one.times for one in held]),
        "timing": each(one.timing for one in held),
    }
