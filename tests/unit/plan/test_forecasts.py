"""Forecasts: public, readable, what a default session acts on, and near what comes out."""

import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import gaussian_mu
from onlineic.errors import InvalidParameterError
from onlineic.evaluate import exact_values
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases, session_plan
from onlineic.plan.announced import Announcement
from onlineic.sparse import ExponentialSparse, GumbelSparse
from support.events import calls_in
from support.sessions import settled

MANY = ic.Domain.of(a=75, b=16, c=5, d=2, e=2)
FEW = ic.Domain.of({f"b{place}": 2 for place in range(10)})
LONG = ic.Domain.of(x=range(1000))
ONE = ic.Budget(1.0, 1e-9)


@pytest.mark.parametrize(
    ("domain", "n", "questions", "start"),
    [
        (MANY, 48_842, 1, "numbers"),
        (MANY, 48_842, 30, "numbers"),
        (MANY, 48_842, 1_000, "pairs"),
        (FEW, 10**5, 10, "numbers"),
        (FEW, 10**5, 300, "cells"),
        (FEW, 10**4, 300, "cells"),
        (LONG, 10**5, 3, "numbers"),
        (LONG, 10**5, 10_000, "levels"),
        (ic.Domain.of(a=1), 100, 10, "levels"),
    ],
)
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_a_session_starts_as_its_forecast_says(domain, n, questions, start, delta):
    budget = ic.Budget(1.0, delta)
    told = ic.forecast(domain, n, budget, questions=questions)
    plan = session_plan(domain, n, budget, questions=questions)
    tables = plan.first_tables

    assert start == told.start
    rule = plan.purchases
    bought = type(rule) is DemandPurchases and rule.count is not None and rule.rent > 0
    assert bought == (start == "numbers")
    if start == "cells":
        assert [domain.size] == [target.blocks for target in tables.targets]
    elif start == "pairs":
        assert tables is None
    assert told.reason in repr(told)
    assert "<- the session" in repr(told)


@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize("n", [2_000, 200_000])
def test_all_cells_are_the_start_until_their_noise_is_above_what_a_session_that_listens_errs_by(n, delta):
    """By a factor: what a session that listens errs by rests on sizes that are believed."""
    budget, starts = ic.Budget(1.0, delta), []
    for half in (4, 16, 64, 256, 1024):
        domain = ic.Domain.of(a=2, b=half)
        told = ic.forecast(domain, n, budget)
        errors = {row.start: row.rms for row in told.engines}
        starts.append(told.start)
        assert ("cells" == told.start) == (errors["cells"] <= 2.0 * errors["pairs"])
        tables = session_plan(domain, n, budget).first_tables
        assert ("cells" == told.start) == (tables is not None)

    assert starts == sorted(starts)  # first all cells, then what is asked
    assert "cells" == starts[0]


@pytest.mark.parametrize(
    ("shape", "n", "start"),
    [
        ((85, 16, 7, 5, 2, 2), 10**6, "pairs"),  # the six attributes of Adult: pairs err by a tenth of cells
        ((2,) * 16, 10**6, "pairs"),
        ((30, 30, 30), 10**5, "pairs"),
        ((2,) * 16, 10**8, "cells"),
    ],
)
def test_large_tables_start_from_pairs_longer_the_fewer_records_there_are(shape, n, start):
    domain = ic.Domain.of({f"a{place}": codes for place, codes in enumerate(shape)})

    assert start == ic.forecast(domain, n, ic.Budget(1.0, 1e-9), 10**5).start


@pytest.mark.parametrize(("questions", "start"), [(100, "numbers"), (600, "pairs"), (2_000, "pairs")])
def test_many_questions_of_a_wide_table_are_no_numbers_as_they_may_be_about_a_few_attributes(
    questions, start
):
    # asked of five of Adult's fourteen attributes, 600 numbers err by 149 records, tables by 75
    sizes = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
    domain = ic.Domain.of({f"a{place}": codes for place, codes in enumerate(sizes)})

    assert start == ic.forecast(domain, 48_842, ic.Budget(1.0, 1e-9), questions=questions).start


def test_the_wider_a_table_the_larger_the_forecast_and_the_widest_is_foretold_too():
    listens = [
        next(row.rms for row in ic.forecast(domain, 10_000, ONE).engines if row.start == "pairs")
        for domain in (
            ic.Domain.of({f"a{place}": 2 + place % 4 for place in range(width)}) for width in (6, 20, 1_000)
        )
    ]

    assert listens == sorted(listens)
    assert listens[-1] < 0.5


def test_where_an_order_is_given_laplace_noise_is_forecast_as_it_is_priced_there():
    domain, n = ic.Domain.of(a=3, b=3), 10**5  # starts from all cells
    budgets = [ic.Budget(0.7, 1e-9), ic.Budget(0.7, 1e-9, order=Fraction(35))]
    scales = [session_plan(domain, n, budget).first_tables.scales[0] for budget in budgets]
    foretold = [
        next(row.rms for row in ic.forecast(domain, n, budget).engines if row.engine == "one noisy histogram")
        for budget in budgets
    ]

    assert scales[1] > 2 * scales[0]
    assert foretold[1] / foretold[0] == pytest.approx(float(scales[1] / scales[0]), rel=0.2)


@pytest.mark.parametrize(("size", "tables"), [(8, 1), (256, 1), (257, 2)])
def test_ranges_are_sums_of_few_blocks_of_several_levels_and_of_many_cells_of_one(size, tables):
    domain, budget = ic.Domain.of(a=range(size)), ic.Budget(1.0)
    (row,) = (row for row in ic.forecast(domain, 10**5, budget).engines if row.start == "levels")
    cell = 2.0 * math.sqrt(2.0) * tables / 10**5

    assert tables == len(session_plan(domain, 10**5, budget).first_tables.targets)
    # beyond its mean a range is a third of the cells in the mean, and half of these are outside of it
    assert row.rms == pytest.approx(cell * math.sqrt(size / 6.0 if tables == 1 else 7.0), rel=0.5)


def test_of_a_session_that_listens_its_rule_says_what_is_expected_in_all_and_of_what_was_announced():
    domain = ic.Domain.of({f"x{place}": 12 for place in range(14)})
    many, few, told = (
        {row.engine: row.rms for row in ic.forecast(domain, 50_000, ONE, questions=asked).engines}
        for asked in (2_000, 50, [("x0", "x1"), "x2"])
    )
    listens = "session that listens"

    assert told[listens] < many[listens] / 3.0
    assert few["noise on every answer"] < many["noise on every answer"] / 5.0
    assert many[listens] < few[listens]  # of few questions not all is spent
    pure = {row.engine: row.rms for row in ic.forecast(domain, 50_000, ic.Budget(1.0)).engines}
    assert pure[listens] > many[listens]
    with pytest.raises(InvalidParameterError, match="questions must be"):
        ic.forecast(domain, 50_000, ONE, questions=0)


def test_a_forecast_of_many_questions_is_no_more_work_than_one_of_few():
    domain = ic.Domain.of({f"x{place}": 12 for place in range(14)})

    def work(questions):
        return calls_in(lambda: ic.forecast(domain, 50_000, ONE, questions=questions))

    work(2_000)  # what is kept of a first one

    assert work(2_000_000) < 1.5 * work(2_000)


@pytest.mark.parametrize("wish", [{"hard_answers": 3}, {"threshold": 0.01}, {"release": "answer"}])
def test_a_wish_for_hits_or_thresholds_is_kept_however_few_questions_are_announced(wish):
    plan = session_plan(MANY, 48_842, ONE, questions=5, **wish)

    assert isinstance(plan.sparse, GumbelSparse | ExponentialSparse)


WIDE = ic.Domain.of(a=2**12, b=2**12)


def test_of_dense_queries_from_pairs_nothing_is_known_and_numbers_of_more_noise_are_no_start():
    dense = Announcement(10**4, dense=True)
    rows = {row.start: row for row in ic.forecast(WIDE, 48_842, ONE, questions=dense).engines}

    assert rows["numbers"].rms < 0.5 == rows["pairs"].rms
    # 8^20 cells, and numbers that err by more than the constant answer 1/2
    huge = ic.Domain.of({f"a{place}": 8 for place in range(20)})
    told = ic.forecast(huge, 1_000, ONE, questions=dense)
    assert "pairs" == told.start
    assert all(row.rms > 0.5 for row in told.engines if row.start == "numbers")
    assert session_plan(huge, 1_000, ONE, questions=dense).buys


@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize(
    ("domain", "n", "count", "start"),
    [
        (MANY, 48_842, None, "cells"),
        (MANY, 48_842, 10_000, "cells"),
        (MANY, 48_842, 3, "numbers"),
        (MANY, 10, 10_000, "cells"),
        (WIDE, 48_842, 10_000, "numbers"),
        (WIDE, 10**10, 10**9, "numbers"),
    ],
)
def test_with_dense_queries_announced_pairs_are_no_start(delta, domain, n, count, start):
    budget = ic.Budget(1.0, delta)
    dense = Announcement(count, dense=True)
    told = ic.forecast(domain, n, budget, questions=dense)
    plan = session_plan(domain, n, budget, questions=dense)

    assert start == told.start
    assert (start == "cells") == (plan.first_tables is not None)
    if plan.first_tables is not None:
        assert [domain.size] == [target.blocks for target in plan.first_tables.targets]


def test_a_session_asked_or_told_of_dense_queries_errs_about_as_a_histogram_does():
    generator = np.random.default_rng(2)
    counts = generator.multinomial(10_000, generator.dirichlet(np.full(1024, 0.3)))
    data = ic.PrivateData(counts, ic.Domain.of(**dict.fromkeys("abcdefghij", 2)))
    weights = generator.integers(0, 2, (100, 1024)).astype(float)
    truth = weights @ counts / 10_000
    asked = [ic.dense(row.reshape(data.domain.shape)) for row in weights]
    errors = {}
    for label, told in (
        ("told", {"questions": asked}),
        ("asked", {}),
        ("pairs", {"purchases": settled(data.domain, data.n, ONE)}),
    ):
        session = ic.OnlineIC(data, ONE, max_queries=300, noise=SimulatedNoise(3), **told)
        answers = session.answer_many(asked)
        errors[label] = float(np.sqrt(np.mean(([answer.value for answer in answers] - truth) ** 2)))

    assert errors["told"] < 0.0055  # one histogram: sqrt(1024/4) 2 sqrt(2)/n = .0045
    assert errors["asked"] < 2.5 * errors["told"]  # the order of its account was made for Gaussian tables
    assert errors["pairs"] > 1.5 * errors["asked"]


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_streams_of_any_length_are_foretold_and_planned(delta):
    told = ic.forecast(FEW, 1000, ic.Budget(1.0, delta), 2**63 - 1)

    assert "numbers" not in {row.start for row in told.engines}  # no sampler draws so wide a noise
    assert session_plan(FEW, 1000, ic.Budget(1.0, delta), max_queries=2**63 - 1).max_queries == 2**63 - 1


def test_kinds_are_told_by_questions_alone():
    for made in (ic.forecast, session_plan):
        with pytest.raises(TypeError, match="kinds"):
            made(MANY, 100, ONE, kinds=("dense",))


@pytest.mark.parametrize(("max_queries", "within"), [(8, 1.6), (300, 1.6)])
def test_errors_of_dense_queries_are_near_those_foretold(max_queries, within):
    generator = np.random.default_rng(1)
    counts = generator.multinomial(10**5, generator.dirichlet(np.full(1024, 0.3))).reshape(FEW.shape)
    data = ic.PrivateData(counts, FEW)
    asked = [
        ic.dense(generator.integers(0, 2, FEW.shape).astype(float)).bind(FEW, 8) for _ in range(max_queries)
    ]
    truths = np.asarray(exact_values(data, asked))
    told = ic.forecast(FEW, 10**5, ONE, questions=asked)
    errors = [
        [answer.value for answer in session.answer_many(asked)] - truths
        for seed in range(4)
        for session in [ic.OnlineIC(data, ONE, questions=asked, noise=SimulatedNoise(seed))]
    ]
    (expected,) = [row.rms for row in told.engines if row.start == told.start]
    rms = float(np.sqrt(np.mean(np.square(errors))))

    assert expected / within < rms < expected * within
    assert rms < 1.2 * min(row.rms for row in told.engines if row.start is None)


def test_a_session_of_numbers_goes_on_after_those_announced():
    generator = np.random.default_rng(2)
    data = ic.PrivateData(generator.multinomial(10**5, np.full(1024, 1 / 1024)).reshape(FEW.shape), FEW)
    asked = [ic.dense(generator.integers(0, 2, FEW.shape).astype(float)) for _ in range(13)]
    session = ic.OnlineIC(data, ONE, questions=10, noise=SimulatedNoise(1))
    answers = session.answer_many(asked)
    bounds = [answer.error_bound for answer in answers]

    assert ["hard"] * 10 == [answer.status for answer in answers[:10]]
    assert max(bounds[:10]) < 0.0005
    assert max(bounds[:10]) < min(bounds[10:]) <= max(bounds[10:]) < math.inf
    assert session.statistics().spent < 1.0
    assert "repeat" == session.answer(asked[3]).status


def test_domains_of_more_cells_than_a_float_can_tell_are_forecast():
    domain = ic.Domain.of({f"a{place}": 1000 for place in range(120)})
    told = ic.forecast(domain, 2000, ic.Budget(1.0, 1e-9), questions=100)

    assert domain.size == 10**360
    assert told.start != "cells"
    assert all(math.isfinite(one.rms) for one in told.engines if one.start == told.start)
    assert "measured one by one" in repr(told)


@pytest.mark.parametrize("epsilon", [600.0, 601.0, 1000.0])
def test_every_epsilon_of_a_session_has_a_forecast(epsilon):
    budget = ic.Budget(epsilon, 1e-6, allow_large_epsilon=True)

    assert session_plan(FEW, 1000, budget).sparse.epsilon == epsilon
    assert ic.forecast(FEW, 1000, budget, 100).start


def test_beyond_600_gaussian_noise_is_that_of_600():
    assert gaussian_mu(600.0, 1e-6) == gaussian_mu(1000.0, 1e-6)


def test_a_table_in_the_place_of_its_number_of_records_is_told_what_to_write():
    domain = ic.Domain.of(a=3)
    data = ic.PrivateData([1, 2, 3], domain)

    with pytest.raises(InvalidParameterError, match="got n=a PrivateData; write how many records there are"):
        ic.forecast(domain, data, ic.Budget(1.0))
