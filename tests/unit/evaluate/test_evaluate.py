"""Traces are the errors that were made, noise is paired by seed, and the baselines stand beside the rules."""

import math

import numpy as np
import pytest

from onlineic.accounting import Budget
from onlineic.data import PrivateData
from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError, UpdateFailedError
from onlineic.evaluate import (
    Trace,
    compare,
    coverage,
    exact_marginal,
    exact_values,
    frame,
    known_baselines,
    text_table,
    trace,
)
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases, TestsOnly
from onlineic.queries import between, weights, where
from onlineic.session import OnlineIC
from onlineic.updates import MaximumEntropy, MultiplicativeWeights, Perceptron, UpdateRule

DOMAIN = Domain.of(a=8, b=["x", "y"])
COUNTS = np.array([[900, 100], [50, 0], [300, 20], [10, 400], [1, 1], [0, 90], [600, 8], [20, 500]])
BUDGET = Budget(1.0, 1e-9)
STREAM = [where(a=between(i % 5, 3 + i % 5)) for i in range(40)]
STREAM += [where(a=i % 8, b="x") for i in range(40)] + [where()]


def table():
    return PrivateData(COUNTS.ravel(), DOMAIN)


def test_exact_values_are_sums_over_cells():
    stream = [where(a=between(1, 3)), ~where(b="y"), where(a=weights([0.5] + [0.0] * 7)), where()]
    stream.append(np.full(16, 0.25))

    assert [780 / 3000, 1881 / 3000, 500 / 3000, 1.0, 0.25] == exact_values(table(), stream).tolist()
    assert [1881 / 3000, 1119 / 3000] == exact_marginal(table(), "b").tolist()


def test_trace_holds_answer_minus_truth_and_what_the_session_counted():
    data = table()
    twins = [
        OnlineIC(data, BUDGET, hard_answers=5, max_queries=99, noise=SimulatedNoise(7)) for _ in range(2)
    ]
    answers = twins[0].answer_many(STREAM)
    seen = []
    one = trace("mine", twins[1], data, STREAM, seed=7, progress=seen.append)

    assert np.array_equal([a.value for a in answers] - exact_values(data, STREAM), one.errors)
    assert np.array_equal([a.error_bound for a in answers], one.bounds)
    stats = twins[0].statistics()
    assert [a.status for a in answers] == one.statuses.tolist()
    counts = (stats.easy, stats.hard, stats.repeat, stats.untested)
    assert (*counts, stats.spent) == (one.easy, one.hard, one.repeat, one.untested, one.spent)
    assert [81] == [snapshot.asked for snapshot in seen]


def test_summary_numbers_of_a_trace_are_what_they_say():
    errors, bounds = np.array([0.3, -0.4, 0.0, 0.1]), np.array([0.2, 0.5, 0.0, math.inf])
    statuses = np.array(["hard", "easy", "repeat", "untested"])
    one = Trace(
        label="x", seed=0, errors=errors, bounds=bounds, statuses=statuses, times=np.full(4, 0.5), spent=1.0
    )

    assert (0.2, math.sqrt(0.065), 0.4, 2.0) == pytest.approx(
        (one.mean_error, one.rms_error, one.max_error, one.queries_per_second)
    )
    assert (1, 1, 1, 1) == (one.easy, one.hard, one.repeat, one.untested)
    assert (2.0, "batch", None, 0) == (one.seconds, one.timing, one.opening, one.update_failures)
    assert (2, 3) == coverage([one])
    assert (4, 6) == coverage([one, one])
    assert "NOT PRIVATE" in repr(one)


def test_noise_is_paired_by_seed_and_a_rule_never_sees_what_stands_beside_it():
    options = {"hard_answers": 6, "max_queries": len(STREAM)}
    rules = {"mw": MultiplicativeWeights(), "twin": MultiplicativeWeights(), "perceptron": Perceptron()}
    traces = compare(table(), BUDGET, STREAM, rules, seeds=[0, 5], **options)
    mw, twin, _ = traces[:3]
    alone = compare(
        table(), BUDGET, STREAM, {"mw": MultiplicativeWeights()}, seeds=[5], baselines=False, **options
    )
    later = next(one for one in traces if one.seed == 5 and one.label == "mw")

    assert np.array_equal(mw.errors, twin.errors)
    assert np.array_equal(later.errors, alone[0].errors)
    assert not np.array_equal(mw.errors, later.errors)


def test_baselines_are_listed_after_the_rules_of_each_seed_and_know_the_stream():
    traces = compare(table(), BUDGET, STREAM, {"mw": None}, seeds=[0], hard_answers=4)

    assert [
        "mw",
        "per-query Laplace",
        "per-query Gaussian",
        "per-query noise, cached",
        "one noisy histogram",
        "noisy tables (2 sets)",
    ] == [one.label for one in traces]
    by_label = {one.label: one for one in traces}
    assert (80, 0) == (by_label["per-query Gaussian"].hard, by_label["per-query Gaussian"].untested)
    assert (12, 68) == (  # a in 4..7 is one minus a in 0..3
        by_label["per-query noise, cached"].hard,
        by_label["per-query noise, cached"].repeat,
    )
    assert 0 == sum(one.untested for one in traces[1:])
    assert {1.0} == {one.spent for one in traces[1:]}


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "no tables first, hits release numbers, "),
        ({"purchases": DemandPurchases()}, " tables first, hits release numbers, "),
        ({"release": "partition", "hard_answers": 3}, "no tables first, hits release tables, "),
        ({"purchases": TestsOnly(), "release": "answer"}, "no tables first, hits release numbers, "),
    ],
)
def test_all_rules_are_given_one_plan_and_the_traces_tell_it(told, words):
    rules = {"mw": MultiplicativeWeights(), "perceptron": Perceptron(), "max entropy": MaximumEntropy()}

    traces = compare(table(), BUDGET, STREAM, rules, [0], baselines=False, max_queries=81, **told)

    (given,) = {one.given for one in traces}
    assert words in given
    assert "Sparse, " in given
    assert given in repr(traces[0])
    assert text_table(traces).endswith(f"\nmw; perceptron; max entropy: {given}")


def test_the_default_session_keeps_its_own_plan_and_baselines_have_none():
    traces = compare(table(), BUDGET, STREAM, {"mw": MultiplicativeWeights(), "session": None}, [0])

    assert traces[0].given.startswith("no tables first")
    assert not traces[1].given.startswith("no tables first")
    assert {""} == {one.given for one in traces[2:]}


def test_pure_budget_lists_no_gaussian_noise():
    assert "per-query Gaussian" not in known_baselines(table(), Budget(1.0), STREAM)


def test_errors_of_the_per_query_baseline_have_the_analytic_size():
    """sd sqrt(2) k/epsilon counts with k = 80 paid queries; the constant costs nothing."""
    traces = compare(table(), Budget(1.0), STREAM, {"session": None}, seeds=range(20))
    errors = np.concatenate([one.errors[:80] for one in traces if one.label == "per-query Laplace"])

    assert pytest.approx(math.sqrt(2.0) * 80 / 3000, rel=0.1) == float(np.sqrt(np.mean(errors**2)))


@pytest.mark.statistical
def test_stated_bounds_hold_for_sessions_and_baselines():
    traces = compare(
        table(), BUDGET, STREAM, {"mw": MultiplicativeWeights(rate=0.3)}, seeds=range(25), hard_answers=10
    )
    for label in {one.label for one in traces}:
        kept, bounded = coverage(one for one in traces if one.label == label)

        assert bounded > 0
        assert kept / bounded > 0.92


def test_misuse_is_refused():
    with pytest.raises(InvalidParameterError, match="stream must hold"):
        compare(table(), BUDGET, [], {"mw": None}, [0], baselines=False, hard_answers=1)
    with pytest.raises(InvalidParameterError, match="options must leave"):
        compare(table(), BUDGET, STREAM, {"mw": None}, [0], hard_answers=1, noise=SimulatedNoise(0))
    with pytest.raises(InvalidParameterError, match="labels of rules"):
        compare(table(), BUDGET, STREAM, {"one noisy histogram": None}, [0], hard_answers=1)


def test_experiments_open_no_private_budget():
    data = table()
    compare(data, BUDGET, STREAM, {"mw": None}, seeds=[0], hard_answers=2)

    assert [] == list(data.budgets)


def made(size):
    """What a trace must be given, with arrays of this length."""
    return {"errors": np.zeros(size), "bounds": np.zeros(size), "times": np.zeros(size)}


@pytest.mark.parametrize("size", [0, 2])
def test_arrays_of_a_trace_have_one_length(size):
    with pytest.raises(InvalidParameterError, match=r"errors, bounds, statuses and times"):
        Trace(label="x", seed=0, spent=0.0, statuses=np.full(max(0, size - 1), "easy"), **made(size))


def ticking():
    """A clock that goes on by one at every look."""
    ticks = iter(range(10**6))
    return lambda: float(next(ticks))


def session(seed=3):
    return OnlineIC(table(), BUDGET, hard_answers=5, max_queries=99, noise=SimulatedNoise(seed))


def test_times_are_shares_of_a_batch_or_taken_one_by_one_and_answers_are_the_same():
    batch = trace("x", session(), table(), STREAM, clock=ticking())
    single = trace("x", session, table(), STREAM, timing="single", clock=ticking())

    assert ("batch", None, [1 / 81] * 81) == (batch.timing, batch.opening, batch.times.tolist())
    assert ("single", 1.0, [1.0] * 81) == (single.timing, single.opening, single.times.tolist())
    assert np.array_equal(batch.errors, single.errors)
    assert np.array_equal(batch.statuses, single.statuses)


def test_opening_holds_what_first_tables_teach():
    """The rule has learned the tables before the first question is timed."""
    learned = []

    def opened():
        one = session()
        learned.append(one)
        return one

    one = trace("x", opened, table(), [where(a=1)])

    assert learned[0].plan.first_tables is not None
    assert one.opening > 0.0


def narrowing(answers):
    """An analyst who asks for halves of the half with more records."""
    low, high = 0, 7
    for answer in answers:
        middle = (low + high) // 2
        low, high = (low, middle) if answer.value > 0.25 else (middle + 1, high)
    return where(a=between(low, (low + high) // 2)) if low < high else None


def test_an_analyst_sees_the_answers_so_far_and_ends_with_none():
    seen, looks = [], []

    def analyst(answers):
        seen.append([answer.value for answer in answers])
        return narrowing(answers)

    one = trace("x", session(), table(), analyst, progress=looks.append)
    asked = [narrowing(seen_) for seen_ in map(as_answers, seen)]

    assert [0, 1, 2, 3] == [len(values) for values in seen]
    assert asked[-1] is None
    assert "single" == one.timing
    assert [3] == [look.asked for look in looks]
    assert (seen[-1] - exact_values(table(), asked[:-1])).tolist() == one.errors.tolist()


def as_answers(values):
    return [type("Answer", (), {"value": value}) for value in values]


def test_an_analyst_without_a_question_is_refused():
    with pytest.raises(InvalidParameterError, match="stream must hold"):
        trace("x", session(), table(), lambda answers: None)
    with pytest.raises(InvalidParameterError, match="timing must be"):
        trace("x", session(), table(), STREAM, timing="each")


def test_comparisons_take_several_tables_and_streams_and_analysts():
    tables = {"first": table(), "second": PrivateData(COUNTS[::-1].ravel(), DOMAIN)}
    streams = {"fixed": STREAM, "narrowing": narrowing}
    options = {"hard_answers": 4, "max_queries": 81}
    traces = compare(tables, BUDGET, streams, {"mw": MultiplicativeWeights()}, [0, 1], **options)
    alone = compare(tables["second"], BUDGET, STREAM, {"mw": MultiplicativeWeights()}, [1], **options)

    names = list(dict.fromkeys((one.data, one.stream) for one in traces))
    assert names == [(first, second) for first in tables for second in streams]
    held = [one for one in traces if (one.data, one.stream, one.seed) == ("second", "fixed", 1)]
    assert [one.label for one in alone] == [one.label for one in held]
    assert all(np.array_equal(one.errors, two.errors) for one, two in zip(alone, held, strict=True))
    assert "second, fixed, mw" == held[0].name
    assert [
        "mw",
        "per-query Laplace",
        "per-query Gaussian",
        "per-query noise, cached",
        "one noisy histogram",
    ] == [one.label for one in traces if (one.data, one.stream, one.seed) == ("first", "narrowing", 0)]
    assert all(one.opening is not None for one in traces)


class Failing(UpdateRule):
    """Multiplicative weights that cannot do the second update."""

    def init(self, domain, prior=None):
        return MultiplicativeWeights().init(domain, prior)

    def update(self, hypothesis, measurements, alpha):
        if len(measurements) == 2:
            raise ZeroDivisionError
        return MultiplicativeWeights().update(hypothesis, measurements, alpha)

    def update_bound(self, domain, alpha):
        return None


@pytest.mark.filterwarnings("ignore::onlineic.errors.UpdateFailedWarning")
def test_a_comparison_stops_where_a_rule_fails_unless_told_to_go_on():
    rules = {"mw": MultiplicativeWeights(), "failing": Failing()}
    options = {"baselines": False, "hard_answers": 6, "max_queries": 81}
    kept = compare(table(), BUDGET, STREAM, rules, [0], failures="keep", **options)

    assert [0, 1] == [one.update_failures for one in kept]
    with pytest.raises(UpdateFailedError, match=r"rule 'failing' must update .* failed 1 times") as caught:
        compare(table(), BUDGET, STREAM, rules, [0], **options)
    assert ["mw"] == [one.label for one in caught.value.traces]
    with pytest.raises(InvalidParameterError, match="failures must be"):
        compare(table(), BUDGET, STREAM, rules, [0], failures="ignore", **options)


def test_a_frame_has_one_row_an_answer():
    traces = compare(
        {"t": table()}, BUDGET, {"s": STREAM}, {"mw": None}, [2, 5], baselines=False, hard_answers=4
    )
    columns = frame(traces)

    assert {162} == {len(column) for column in columns.values()}
    assert all(column.ndim == 1 and column.dtype != object for column in columns.values())
    assert [2] * 81 + [5] * 81 == columns["seed"].tolist()
    assert [*range(81)] * 2 == columns["query"].tolist()
    assert np.concatenate([one.errors for one in traces]).tolist() == columns["error"].tolist()
    assert traces[1].statuses.tolist() == columns["status"][81:].tolist()
    assert ({"mw"}, {"t"}, {"s"}, {"batch"}) == tuple(
        set(columns[name].tolist()) for name in ("label", "data", "stream", "timing")
    )
    with pytest.raises(InvalidParameterError, match="traces must be"):
        frame([])


def test_a_frame_marks_the_systems_entropy():
    columns = frame([trace("x", session(), table(), STREAM)])

    assert {-1} == set(columns["seed"].tolist())
