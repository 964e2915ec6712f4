"""Sessions over 10^8 codes: opened and answered without a number for each, as over a coarser attribute."""

import itertools
import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.cli import main
from onlineic.data import PrivateData
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases
from onlineic.queries import Queries
from onlineic.queries.cuts import GRID
from onlineic.session import OnlineIC, replay

WIDTH = 25_000  # codes of a part of the grid
SIZE = GRID * WIDTH  # a hundred million
RECORDS = 100_000
BUDGET = ic.Budget(1.0, 1e-9)


def columns(size, several):
    rng = np.random.default_rng(5)
    share = rng.beta(2, 5, RECORDS)
    held = {"t": np.floor(share * GRID).astype(np.int64) * (size // GRID)}
    return held | ({"k": (rng.random(RECORDS) < share).astype(int) + 2 * (share > 0.3)} if several else {})


def opened(size, several, budget=BUDGET, **more):
    domain = ic.Domain.of({"t": range(size)} | ({"k": 4} if several else {}))
    data = PrivateData.from_records(columns(size, several), domain)
    noise = None if more else SimulatedNoise(3)  # a record in a file takes no other
    return OnlineIC(data, budget, max_queries=1_000, noise=noise, **more)


def questions(size, several):
    rng, width = np.random.default_rng(8), size // GRID
    for low, high in np.sort(rng.integers(0, GRID, (60, 2)), axis=1).tolist():
        condition = {"t": ic.between(low * width, (high + 1) * width - 1)}
        yield ic.where(condition | ({"k": low % 4} if several else {}))


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("budget", [BUDGET, ic.Budget(1.0), ic.Budget(10.0, 1e-9)], ids=repr)
def test_a_long_attribute_is_answered_as_the_coarser_one(several, budget):
    """The same draws, labels and charges as over the parts of the grid, whichever way tables are bought."""
    long, coarse = opened(SIZE, several, budget), opened(GRID, several, budget)
    asked = 5  # more than the first instalment hears
    answers = [
        [session.answer(one) for one in itertools.islice(questions(size, several), asked)]
        for session, size in ((long, SIZE), (coarse, GRID))
    ]

    assert type(coarse.plan.purchases) is type(long.plan.purchases)
    assert coarse.statistics().spent == long.statistics().spent
    for many, few in zip(*answers, strict=True):
        assert few.status == many.status
        # its codes are corrected part by part of the grid, as those of the coarser one
        assert few.value == pytest.approx(many.value, abs=3.0 / RECORDS)
        # of all cells of the coarser one any weights are bounded too
        assert few.error_bound <= 1.002 * many.error_bound + 2.0 / RECORDS
        assert many.error_bound <= 1.5 * few.error_bound + 2.0 / RECORDS


def test_bounds_hold_for_ranges_that_end_between_the_cuts():
    session = opened(SIZE, True)
    codes, kinds = columns(SIZE, True).values()
    rng, asked, missed = np.random.default_rng(1), 0, 0
    for low, high in np.sort(rng.integers(0, SIZE, (20, 2)), axis=1).tolist():
        answer = session.answer(ic.where(t=ic.between(low, high), k=low % 4))
        truth = ((codes >= low) & (codes <= high) & (kinds == low % 4)).mean()
        asked, missed = asked + 1, missed + (abs(answer.value - truth) > answer.error_bound)

    assert missed <= 0.05 * asked


def test_a_heavy_code_between_the_cuts_is_found_by_its_test():
    rng = np.random.default_rng(2)
    seconds = np.where(rng.random(RECORDS) < 0.3, 12_345_678, rng.integers(0, SIZE, RECORDS))
    data = PrivateData.from_records({"t": seconds}, ic.Domain.of(t=range(SIZE)))
    session = OnlineIC(data, BUDGET, max_queries=1_000, noise=SimulatedNoise(3))
    found = session.answer(ic.where(t=12_345_678))
    beside = session.answer(ic.where(t=ic.between(12_345_679, 12_346_000)))

    assert found.hard
    assert 0.3 == pytest.approx(found.value, abs=0.02)
    assert 0.0 == pytest.approx(beside.value, abs=0.02)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_it_is_resumed_and_replayed_to_the_bit(tmp_path, epsilon):
    path, domain = tmp_path / "long.db", ic.Domain.of(t=range(SIZE), k=4)
    more = {"ledger": str(path), "table": "a test"}
    session = opened(SIZE, True, ic.Budget(epsilon, 1e-9), **more)
    asked = [ic.where(t=ic.between(7 * low, 10**6 * low + 9), k=low % 4) for low in range(1, 12)]
    before = session.answer_many(asked)
    bound = [one.bind(domain) for one in asked]
    guesses = session.hypothesis.evaluate_many(bound).tolist()
    again = replay(session.transcript, domain, session.plan.update, session.plan.alpha)
    session.close()
    data = PrivateData.from_records(columns(SIZE, True), domain)
    resumed = OnlineIC.resume(str(path), data, table="a test")

    assert guesses == again.evaluate_many(bound).tolist()
    assert guesses == resumed.hypothesis.evaluate_many(bound).tolist()
    assert [one.value for one in before] == [resumed.answer(one).value for one in asked]
    assert resumed.answer(ic.where(t=ic.below(123))).error_bound < 1.0
    resumed.close()
    assert path.stat().st_size < 2**21


@pytest.mark.parametrize("command", ["verify", "show"])
def test_its_file_is_read_without_a_number_for_each_code(tmp_path, capsys, command):
    path = str(tmp_path / "long.db")
    session = opened(SIZE, True, ledger=path, table="a test")
    session.answer(ic.where(t=ic.below(10**6)))
    session.answer(ic.marginal("k", where=ic.where(t=ic.below(10**7))))
    answered = session.statistics()
    session.close()

    assert 0 == main(["ledger", command, path])
    assert f"{answered.easy} easy, {answered.hard} hard" in capsys.readouterr().out
    assert 2 == answered.easy + answered.hard  # a test of real noise may fire


@pytest.mark.parametrize(
    "more",
    [{"update": ic.MultiplicativeWeights()}, {"release": "answer"}, {"update": ic.MixtureOfProducts()}],
    ids=repr,
)
def test_rules_that_write_every_code_are_refused_by_name_before_anything_is_spent(more):
    domain = ic.Domain.of(t=range(SIZE), k=4)
    data = PrivateData.from_records(columns(SIZE, True), domain)

    with pytest.raises(ic.errors.TooLargeError, match="at most"):
        OnlineIC(data, BUDGET, max_queries=100, **more)
    assert 0.9 < OnlineIC(data, BUDGET, max_queries=100).answer(ic.where(t=ic.at_least(0))).value


def test_questions_made_of_several_are_answered_over_a_long_attribute():
    session = opened(SIZE, True)
    median = session.quantile("t", 0.5)
    groups = session.group_by("k", where=ic.where(t=ic.between(10**6, 5 * 10**7)))
    table = session.answer(ic.marginal("k", where=ic.where(t=ic.between(10**6, 5 * 10**7))))
    codes, kinds = columns(SIZE, True).values()

    assert abs((codes <= median.value).mean() - 0.5) <= median.rank_error
    held = (codes >= 10**6) & (codes <= 5 * 10**7)
    truth = np.bincount(kinds[held], minlength=4) / RECORDS
    assert np.abs(table.value - truth).max() <= table.error_bound < math.inf
    assert truth == pytest.approx(groups.values / RECORDS, abs=0.05)
    assert "PiecewiseHistogram" in repr(session.hypothesis)
    assert 5 == len(session.hypothesis.sample(5, 1)["t"])


def with_missing(size):
    """The same records, of which the first thousand have no value."""
    held = columns(size, True)
    return held | {"t": [None] * 1_000 + held["t"][1_000:].tolist()}


@pytest.mark.parametrize("size", [10**8, 10**9], ids=repr)
def test_a_long_attribute_with_a_missing_cell_is_never_written_code_by_code(size):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    domain = ic.Domain.of(t=ic.optional(range(size)), k=4)
    data = PrivateData.from_records(with_missing(size), domain)
    session = OnlineIC(data, BUDGET, max_queries=1_000, noise=SimulatedNoise(3))
    codes, kinds = columns(size, True).values()
    half = size // 2
    met = (np.arange(RECORDS) >= 1_000) & (codes >= half)

    upper = session.answer(ic.where(t=ic.at_least(half), k=3))
    assert abs((met & (kinds == 3)).mean() - upper.value) <= upper.error_bound < 0.05
    nothing = session.answer("t IS NULL")
    assert 0.01 == pytest.approx(nothing.value, abs=min(0.005, nothing.error_bound))
    assert session.answer("t IS NOT NULL").value == pytest.approx(1.0 - nothing.value)
    median = session.quantile("t", 0.5)
    assert abs((codes[1_000:] <= median.value).mean() - 0.5) <= median.rank_error
    assert {None} <= {None, *session.synthetic(2_000, seed=1).to_dict()["t"]}
    assert session.group_by("k", where=ic.where(t=None)).values.sum() == pytest.approx(1_000, abs=500)


def test_a_quantile_of_minutes_asks_for_ranges():
    first, minutes = np.datetime64("1980-01-01T00:00"), 25_000_000  # more than numbers are written for
    domain = ic.Domain.of(
        t=ic.optional(ic.dates(str(first), str(first + np.timedelta64(minutes, "m")), by="minute"))
    )
    stamps = first + np.random.default_rng(1).integers(0, minutes, 20_000).astype("timedelta64[m]")
    data = PrivateData.from_records({"t": stamps}, domain)
    session = OnlineIC(data, BUDGET, max_queries=1_000, noise=SimulatedNoise(3))
    median = session.quantile("t", 0.5)

    found = np.datetime64(median.value)
    assert abs((stamps <= found).mean() - 0.5) <= median.rank_error + 1e-4
    assert "2027" <= session.quantile("t", 0.999).value


def test_what_a_number_rounds_to_is_bounded_beside_very_many_codes():
    domain = ic.Domain.of(t=range(2**36), v=ic.number(0, 10, bins=5))
    rng = np.random.default_rng(1)
    data = PrivateData.from_records({"t": rng.integers(0, 2**36, 500), "v": rng.random(500) * 10}, domain)
    session = OnlineIC(data, BUDGET, max_queries=1_000, noise=SimulatedNoise(3))

    mean = session.mean("v", where=ic.where(t=ic.below(2**35)))
    assert 0.0 < mean.bias < 0.1
    assert abs(mean.value - 5.0) <= mean.error_bound + mean.bias


@pytest.mark.parametrize("kind", [range(SIZE), ic.optional(range(SIZE))], ids=["whole", "optional"])
def test_batches_of_ranges_are_expected_to_err_as_each_alone(kind):
    domain = ic.Domain.of(t=kind, k=4)
    data = PrivateData.from_records(columns(SIZE, True), domain)
    rule = DemandPurchases(rent=0)  # tables: a batch is heard whole
    session = OnlineIC(data, BUDGET, max_queries=1_000, noise=SimulatedNoise(3), purchases=rule)
    low, high = [0, 7, 10**6, 5 * 10**7], [SIZE, 40_000_000, 10**6 + 5, SIZE]
    many = session.answer_many(Queries.where(domain, {"t": (low, high), "k": ([1] * 4, [2] * 4)}))

    assert min(many.expected_errors) > 0.0
    assert many.expected_errors.tolist() == pytest.approx([one.expected_error for one in many], rel=1e-12)
