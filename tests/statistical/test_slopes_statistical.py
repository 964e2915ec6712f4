"""Usual errors of covariances and slopes are those that fresh noise of the answers' expected errors makes."""

import numpy as np
import pytest
from scipy.stats import chi2

import onlineic as ic
from onlineic.questions.linear import Found
from onlineic.questions.moments import Released, moments_of, sums_of, usual
from support.exact_answers import Exactly

N = 6_000
DRAW = np.random.default_rng(2)
AGE = DRAW.integers(18, 90, N)
SEX = DRAW.choice(["F", "M"], N)
YEARS = (AGE - 18 + DRAW.integers(0, 30, N)) // 3
DATA = ic.PrivateData.from_records(
    {"age": AGE, "sex": SEX, "years": YEARS}, ic.Domain.of(age=range(18, 90), sex=["F", "M"], years=range(34))
)
RUNS = 40_000


@pytest.mark.statistical
@pytest.mark.parametrize("where", [None, "sex = 'F'"])
def test_usual_errors_are_root_mean_square_errors(where):
    given = ["years", "age"] if where else ["years", "age", {"sex": "M"}]
    session = Exactly(DATA)
    sums = sums_of(DATA.domain, given, where)[0]
    exact = np.array([float(answer) for answer in session.answer_many(sums.queries)])
    errors = np.linspace(5e-4, 2e-3, len(exact))
    released = Released(numbers=frozenset(query.bind(DATA.domain).key for query in sums.queries), known=True)
    answers = tuple(session.answer_many(sums.queries))
    held = moments_of(sums, N, Found(answers, exact, np.full(len(exact), 1e-3), 0.95, errors), "", released)
    fresh = exact + np.random.default_rng(9).standard_normal((RUNS, len(exact))) * errors
    _, covariances = sums.spread(*sums.moments(fresh))
    slopes = np.linalg.solve(covariances[:, 1:, 1:], covariances[:, 1:, :1])[:, 0, 0]
    exact_slope = np.linalg.solve(held.covariances[1:, 1:], held.covariances[1:, :1])[0, 0]
    drawn = held.drawn[1]
    told_slopes = np.linalg.solve(drawn[:, 1:, 1:], drawn[:, 1:, :1])[:, 0, 0]

    for found, expected in (
        (covariances[:, 0, 1] - held.covariances[0, 1], usual(held.covariances[0, 1], drawn[:, 0, 1])),
        (slopes - exact_slope, usual(exact_slope, told_slopes)),
    ):
        total = float(((found / expected) ** 2).sum())

        # the variance of 2,000 draws is itself off by some hundredths
        assert chi2.sf(total / 1.1, RUNS) > 1e-9
        assert chi2.cdf(total * 1.1, RUNS) > 1e-9
        assert chi2.sf(total / 0.9**2 / 1.1, RUNS) < 1e-9
        assert chi2.cdf(total / 1.1**2 * 1.1, RUNS) < 1e-9
