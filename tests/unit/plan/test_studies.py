"""What a study is told to cost is what a session spends on it, or near; from public facts alone."""

import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.datasets import adult5, adult5_domain
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.evaluate import random_stream
from onlineic.noise import SimulatedNoise
from onlineic.plan import studies
from onlineic.queries import Within, expected

DOMAIN = adult5_domain()
N = 48_842
FEW = [ic.where(sex="Female"), ic.where(race="Black"), ic.where(age=ic.at_least(60), sex="Male")]


def data():
    columns, counts = adult5()
    return ic.PrivateData.from_counts(columns, counts, DOMAIN)


@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize("within", [Within(0.01), expected(0.01)])
def test_the_epsilon_that_was_told_pays_for_a_few_questions_and_little_less_does_not(within, delta):
    (cost,) = ic.forecast(DOMAIN, N, within=within, delta=delta, questions=[*FEW, FEW[0], ic.where()]).costs
    table = data()
    for times, paid in ((1.02, True), (0.8, False)):
        session = ic.OnlineIC(
            table,
            ic.Budget(cost.epsilon * times, delta),
            within=within,
            questions=FEW,
            noise=SimulatedNoise(0),
        )
        answers = [session.answer(query) for query in [*FEW, FEW[0], ic.where()]]
        assert all(one.reason != "budget" for one in answers) == paid


@pytest.mark.parametrize("within", [Within(0.02), expected(0.02)])
def test_a_session_spends_about_what_was_told(within):
    stream, budget = random_stream(DOMAIN, 25, 3), ic.Budget(1.0, 1e-9)
    (cost,) = ic.forecast(DOMAIN, N, budget, within=within, questions=stream).costs
    session = ic.OnlineIC(data(), budget, within=within, questions=stream, noise=SimulatedNoise(0))
    at_once = ic.OnlineIC(data(), budget, within=within, questions=stream, noise=SimulatedNoise(0))
    for query in stream:
        session.answer(query)
    at_once.answer_many(stream)
    spent, called = (float(one.account.spent / one.account.capacity) for one in (session, at_once))

    assert spent / 2.0 < cost.part < 2.0 * spent
    assert spent / 2.0 < cost.epsilon**2 < 2.0 * spent  # noise goes with the root
    assert called / 2.0 < cost.at_once**2 < 2.0 * called


def test_a_finer_wish_and_more_questions_never_cost_less(monkeypatch):
    monkeypatch.setattr(studies, "REHEARSED", 32)
    told = ic.forecast(DOMAIN, N, within=[0.04, 0.02], questions=8)
    certain, usual, finer, usually = told.costs
    more = ic.forecast(DOMAIN, N, within=expected(0.2), questions=10**6).costs[0]

    assert [one.within for one in told.costs] == [Within(0.04), expected(0.04), Within(0.02), expected(0.02)]
    assert usual.epsilon <= certain.epsilon < finer.epsilon
    assert usual.epsilon < usually.epsilon <= finer.epsilon
    assert more.epsilon < 0.2 * more.alone
    assert told.questions == 8
    assert "0.04, certain" in repr(told)
    assert "each measured" in told._repr_html_()


def test_private_numbers_of_records_are_paid_first():
    near = ic.Budget(1.0, 1e-9, neighbours=ic.accounting.ADD_REMOVE)
    shared, alone = (
        ic.forecast(DOMAIN, N, budget, within=expected(0.05), questions=3).costs[0]
        for budget in (near, ic.Budget(1.0, 1e-9))
    )
    assert alone.part < shared.part < 1.5 * alone.part
    assert alone.epsilon < shared.epsilon < 1.2 * alone.epsilon


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({}, InvalidParameterError, "budget must be given without a wish"),
        ({"within": []}, InvalidParameterError, "within must hold a wish"),
        ({"within": True}, InvalidParameterError, "within must be a number"),
        ({"within": "1%"}, InvalidParameterError, "within must be a number"),
        ({"within": 0.01, "questions": ["colour"]}, InvalidQueryError, "colour"),
        ({"within": 0.01, "delta": 2.0}, InvalidParameterError, "delta"),
    ],
)
def test_what_cannot_be_told_is_refused_by_name(options, error, says):
    with pytest.raises(error, match=says):
        ic.forecast(DOMAIN, N, **options)


def test_noise_too_small_to_be_drawn_costs_more_than_any_epsilon():
    told = ic.forecast(DOMAIN, N, within=1e-9, questions=2)
    assert {one.epsilon for one in told.costs} == {math.inf}
    assert "above 1000" in repr(told)
    assert np.isinf([one.alone for one in told.costs]).all()
