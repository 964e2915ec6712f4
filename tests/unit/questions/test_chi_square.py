"""Chi-square and Cramer's V: of exact tables as scipy has them, under noise without what it adds."""

import json
import math

import numpy as np
import pytest
from scipy.stats import chi2_contingency

import onlineic as ic
from onlineic.errors import InvalidQueryError, TooFewRecordsError
from onlineic.noise import SimulatedNoise
from support.exact_answers import Exactly

DRAW = np.random.default_rng(3)
N = 20_000
SEX = DRAW.choice(["F", "M"], N)
WARD = DRAW.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
ILL = (DRAW.random(N) < np.where(SEX == "F", 0.2, 0.35)).tolist()
ILL[:500] = [None] * 500
DOMAIN = ic.Domain.of(sex=["F", "M"], ward=["a", "b", "c"], ill=ic.optional([False, True]))
DATA = ic.PrivateData.from_records({"sex": SEX, "ward": WARD, "ill": ILL}, DOMAIN)
KNOWN = np.array([one is not None for one in ILL])


def exact(first, second, among=KNOWN):
    table = np.array(
        [
            [((first == a) & (second == b) & among).sum() for b in np.unique(second[among])]
            for a in np.unique(first)
        ]
    )
    found = chi2_contingency(table, correction=False)
    return found.statistic, found.dof, math.sqrt(found.statistic / table.sum() / (min(table.shape) - 1))


ILLNESS = np.array([bool(one) for one in ILL])


@pytest.mark.parametrize(
    ("names", "arrays", "among", "where"),
    [
        (("sex", "ill"), (SEX, ILLNESS), KNOWN, None),
        (("sex", "ward"), (SEX, WARD), np.ones(N, bool), None),
        (("sex", "ill"), (SEX, ILLNESS), KNOWN & (WARD == "a"), "ward = 'a'"),
    ],
)
def test_of_exact_tables_it_is_as_scipy_has_it(names, arrays, among, where):
    found = Exactly(DATA).chi_square(*names, where=where)
    statistic, degrees, v = exact(*arrays, among)

    assert statistic == pytest.approx(found.chi_square, rel=1e-6, abs=1e-6)
    assert (degrees, pytest.approx(v, rel=1e-6, abs=1e-6)) == (found.degrees, found.cramers_v)
    assert among.sum() == pytest.approx(found.count)


def test_noise_alone_makes_no_table_dependent_and_dependence_is_found():
    ps, vs = [], []
    for seed in range(12):
        session = ic.OnlineIC(DATA, ic.Budget(0.3, 1e-9), noise=SimulatedNoise(seed), questions=10)
        alike, apart = session.chi_square("sex", "ward"), session.chi_square("sex", "ill")
        ps.append(alike.p_value)
        vs.append(apart.cramers_v)

        assert apart.p_value < 0.01
        assert abs(apart.cramers_v - exact(SEX, ILLNESS)[2]) < 4.0 * apart.expected_error + 0.01
        assert alike.cramers_v < 0.05
    assert 0.2 < np.mean(ps)
    assert exact(SEX, ILLNESS)[2] == pytest.approx(np.mean(vs), abs=0.02)


def test_what_noise_adds_in_the_mean_is_taken_off():
    moves = np.random.default_rng(1).normal(0.0, 1.0 / 3.0, 5000).clip(-1, 1)
    found = [
        Exactly(DATA, 0.06, np.roll(moves, -40 * turn), error=0.02).chi_square("sex", "ward").cramers_v
        for turn in range(40)
    ]

    assert np.mean(found) < 0.07  # what noise alone makes of it is .13


def test_all_is_told_in_words_and_as_plain_values():
    found = Exactly(DATA, 1e-4).chi_square("sex", "ill")

    assert "chi-square 461" in repr(found)
    assert "Cramer's V 0.1" in repr(found)
    assert "by simulated noise" in found._repr_html_()
    assert {"chi_square", "degrees", "p_value", "cramers_v", "basis"} <= set(
        json.loads(json.dumps(found.to_dict()))
    )
    unknown = Exactly(DATA, 1e-4, error=math.nan).chi_square("sex", "ill")
    assert (None, None) == (unknown.p_value, unknown.expected_error)
    assert "p unknown" in repr(unknown)


def test_what_has_one_value_or_too_few_records_is_refused():
    one = ic.Domain.of(sex=["F", "M"], one=["x"])
    data = ic.PrivateData.from_records({"sex": ["F", "M"], "one": ["x", "x"]}, one)
    with pytest.raises(InvalidQueryError, match="one must have several values, got one"):
        Exactly(data).chi_square("sex", "one")
    few = ic.PrivateData.from_records({"sex": ["F", "M"], "ward": ["a", "b"], "ill": [True, None]}, DOMAIN)
    with pytest.raises(TooFewRecordsError, match=r"chi_square\(sex, ward\) must be over more records"):
        Exactly(few).chi_square("sex", "ward")
