"""Update rules on a common stream, beside the naive dense loop and the trivial baselines.

Run with `make bench`. Times on a shared machine are noisy: compare ratios of one run. Accuracy, hard answers
and spent budget stand beside every time in `extra_info`; what cannot run is recorded with its reason.
"""

import math
import time
from typing import Any

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import baselines, between, where
from onlineic.errors import OnlineICError
from onlineic.noise import SimulatedNoise

QUERIES = 10_000
SHAPES = {1_000: (10, 10, 10), 100_000: (50, 50, 40), 1_000_000: (100, 100, 100)}
RULES = {
    "mw book": ic.MultiplicativeWeights(variant="book"),
    "mw tight": ic.MultiplicativeWeights(),
    "perceptron book": ic.Perceptron(variant="book"),
    "perceptron centred": ic.Perceptron(),
    "median": ic.Median(),
}


@attrs.frozen(eq=False)
class Case:
    data: ic.PrivateData
    stream: list[Any]
    queries: list[Any]  # the same, bound
    truth: np.ndarray


def build(size: int) -> Case:
    """A skewed table of n = 10^6 records and a stream of 2-attribute ranges, seeded."""
    rng = np.random.default_rng(np.random.SeedSequence(20261121, spawn_key=(size,)))
    shape = SHAPES[size]
    domain = ic.Domain.of(dict(zip("abc", shape, strict=True)))
    axes = [np.sort(rng.dirichlet(np.full(length, 0.3))) for length in shape]
    cells = np.multiply.outer(np.multiply.outer(axes[0], axes[1]), axes[2]).ravel()
    data = ic.PrivateData(rng.multinomial(1_000_000, cells / cells.sum()), domain)
    stream = []
    for _ in range(QUERIES):
        names = rng.choice(list("abc"), 2, replace=False)
        ends = [sorted(rng.integers(0, domain.attribute(name).size, 2).tolist()) for name in names]
        stream.append(where({str(name): between(*pair) for name, pair in zip(names, ends, strict=True)}))
    queries = [query.bind(domain) for query in stream]
    truth = data.exact_counts_many(queries) / data.n  # 0/1 queries: in counts
    return Case(data, stream, queries, truth)


@pytest.fixture(scope="module", params=list(SHAPES), ids=lambda size: f"{size:.0e}")
def case(request: pytest.FixtureRequest) -> Case:
    return build(request.param)


def naive_seconds_per_query(case: Case, sample: int = 60) -> float:
    """Seconds of one easy query in the dense loop: weights over X, two dot products, one comparison."""
    hypothesis = np.full(case.data.domain.size, 1.0 / case.data.domain.size)
    private = np.full(
        case.data.domain.size, case.data.n / case.data.domain.size
    )  # the time does not depend on it
    rng = np.random.default_rng(0)
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        for query in case.queries[:sample]:
            weights = np.ones(1)
            ends = dict(zip(query.axes, zip(*query.box, strict=True), strict=True))
            for axis, length in enumerate(query.domain.shape):
                factor = np.ones(length)
                if axis in ends:
                    factor[: ends[axis][0]] = factor[ends[axis][1] :] = 0.0
                weights = np.multiply.outer(weights, factor).ravel()
            if query.complement:
                weights = 1.0 - weights
            gap = weights @ private / case.data.n - weights @ hypothesis
            _ = abs(gap) + rng.laplace(0.0, 0.01) > 0.1
        best = min(best, (time.process_time() - start) / sample)
    return best


def record(benchmark: Any, session: Any, answers: list[ic.Answer], case: Case, seconds: float) -> None:
    errors = np.abs(np.array([answer.value for answer in answers]) - case.truth)
    statistics = session.statistics()
    naive = naive_seconds_per_query(case) * len(answers)
    benchmark.extra_info.update(
        size=case.data.domain.size,
        n=case.data.n,
        queries=len(answers),
        mean_error=float(errors.mean()),
        rms_error=float(np.sqrt((errors**2).mean())),
        max_error=float(errors.max()),
        hard=statistics.hard,
        untested=statistics.untested,
        spent=statistics.spent,
        threshold=getattr(statistics, "threshold", None),  # baselines have none
        error_bound=max(answer.error_bound for answer in answers),
        microseconds_per_query=seconds / len(answers) * 1e6,
        naive_microseconds_per_query=naive / len(answers) * 1e6,
        times_faster_than_naive=naive / seconds,
    )


def run(benchmark: Any, case: Case, make: Any, batch: bool) -> None:
    def answer() -> tuple[Any, list[ic.Answer], float]:
        session = make()  # outside the time: the naive loop starts with its arrays made, too
        start = time.process_time()
        answers = session.answer_many(case.stream) if batch else [session.answer(q) for q in case.stream]
        return session, answers, time.process_time() - start

    session, answers, seconds = benchmark.pedantic(answer, rounds=1, warmup_rounds=0)
    record(benchmark, session, answers, case, seconds)


@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")
@pytest.mark.parametrize("batch", [False, True], ids=["one at a time", "answer_many"])
@pytest.mark.parametrize("rule", RULES)
def test_textbook_session(benchmark: Any, case: Case, rule: str, batch: bool) -> None:
    """10,000 queries in one textbook session at the theorem's parameters."""
    benchmark.group = f"textbook, |X| = {case.data.domain.size:,}"
    benchmark.extra_info.update(rule=rule)

    def make() -> ic.OnlineIC:
        noise = SimulatedNoise(7)
        return ic.OnlineIC.textbook(
            case.data, epsilon=1.0, max_queries=QUERIES, update=RULES[rule], noise=noise
        )

    try:
        make()
    except OnlineICError as error:  # the median's net cannot be enumerated: that is the result
        benchmark.extra_info.update(refused=str(error))
        benchmark.pedantic(lambda: None, rounds=1)
        return
    run(benchmark, case, make, batch)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "median"])
def test_practical_session(benchmark: Any, case: Case, rule: str) -> None:
    """50 hard answers at a threshold of one per cent: updates happen, and cost."""
    benchmark.group = f"50 hard answers, |X| = {case.data.domain.size:,}"
    benchmark.extra_info.update(rule=rule)
    run(
        benchmark,
        case,
        lambda: ic.OnlineIC(
            case.data,
            ic.Budget(1.0, 1e-9),
            hard_answers=50,
            threshold=0.01,
            max_queries=QUERIES,
            update=RULES[rule],
            noise=SimulatedNoise(7),
        ),
        False,
    )


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "median"])
def test_one_update(benchmark: Any, case: Case, rule: str) -> None:
    """One update of a warm hypothesis along a 2-attribute range."""
    benchmark.group = f"one update, |X| = {case.data.domain.size:,}"
    benchmark.extra_info.update(rule=rule, size=case.data.domain.size)
    query = case.queries[0]
    measurement = ic.Measurement(query, np.array([case.truth[0]]), 0.001)
    hypothesis = [RULES[rule].init(case.data.domain)]

    def update() -> None:
        hypothesis[0] = RULES[rule].update(hypothesis[0], (measurement,), 0.01)

    benchmark(update)


BASELINES = {
    "per-query Laplace": lambda case: baselines.PerQueryNoise(
        case.data, ic.Budget(1.0), answers=QUERIES, noise_law="laplace", noise=SimulatedNoise(7)
    ),
    "per-query Gaussian": lambda case: baselines.PerQueryNoise(
        case.data, ic.Budget(1.0, 1e-9), answers=QUERIES, noise=SimulatedNoise(7)
    ),
    "noisy histogram": lambda case: baselines.noisy_histogram(
        case.data, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(7)
    ),
}


@pytest.mark.parametrize("kind", BASELINES)
def test_baseline(benchmark: Any, case: Case, kind: str) -> None:
    """The trivial baselines on the same stream."""
    benchmark.group = f"50 hard answers, |X| = {case.data.domain.size:,}"
    benchmark.extra_info.update(rule=kind)
    run(benchmark, case, lambda: BASELINES[kind](case), False)
