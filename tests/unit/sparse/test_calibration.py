"""The one calibration of the three mechanisms: what it refuses, what it pays, where thresholds stand."""

import math
from fractions import Fraction

import pytest

from onlineic.accounting import Budget
from onlineic.errors import InvalidParameterError
from onlineic.sparse import ExponentialSparse, GumbelSparse, LaplaceSparse, NumericSparse
from onlineic.sparse.calibration import Calibration

BUDGET = Budget(1.0, 1e-6)
PLAN = {"n": 1_000, "hard_answers": 10, "max_queries": 400}
MADE = [ExponentialSparse, GumbelSparse, LaplaceSparse]


def of(**changes):
    settings = {"grid_bits": 2, "alpha": None, "threshold": None, "beta": 0.05, "usual": 0.2}
    return Calibration(BUDGET, **PLAN | settings | changes)


def height(part, of):
    """Of a noise with so simple a law that thresholds are worked out by hand."""
    return 1.0 / (part * of)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, "n must be an integer >= 1, got n=0"),
        ({"hard_answers": 0}, "hard_answers must be an integer >= 1, got hard_answers=0"),
        ({"max_queries": 1.5}, "max_queries must be an integer >= 1, got max_queries=1.5"),
        ({"grid_bits": -1}, "grid_bits must be an integer >= 0, got grid_bits=-1"),
        ({"beta": 1.0}, r"beta must be a number in \(0, 1\), got beta=1.0"),
        ({"alpha": 0.0}, r"alpha must be a number in \(0, .*\), got alpha=0.0"),
        ({"threshold": -0.1}, r"threshold must be a number in \(0, .*\), got threshold=-0.1"),
        (
            {"alpha": 0.1, "threshold": 0.2},
            "at most one of alpha and threshold must be given, got alpha=0.1, threshold=0.2",
        ),
    ],
    ids=str,
)
def test_every_mechanism_refuses_the_same_plans(made, changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        made.calibrated(BUDGET, **PLAN | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"false_hits": 0.0}, "false_hits must be > 0 without alpha or threshold, got false_hits=0"),
        ({"false_hits": -0.1}, r"false_hits must be a number in \[0, inf\), got false_hits=-0.1"),
        ({"reserved": Fraction(1)}, r"reserved must be a number in \[0, 1\)"),
        ({"restarts": -1}, "restarts must be an integer >= 0, got restarts=-1"),
        ({"alpha": 1.0}, r"alpha must be a number in \(0, 1\), got alpha=1.0"),
        ({"threshold": 1.5}, r"threshold must be a number in \(0, 1\), got threshold=1.5"),
    ],
    ids=str,
)
def test_what_only_some_mechanisms_take_is_checked_in_one_place(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        of(**changes)


def test_thresholds_of_the_book_may_be_beyond_every_gap():
    """Its constants are so large: a session of few records then has easy answers alone."""
    assert 1_501 == LaplaceSparse.calibrated(BUDGET, **PLAN, threshold=1.5).threshold
    assert 1_500.0 == of(grid_bits=0, threshold=1.5, below=math.inf).level(1, height, 0.8)


@pytest.mark.parametrize(
    ("made", "own"),
    [
        *((made, "unknown") for made in MADE),
        *((ExponentialSparse, own) for own in ("ratio", "partition", "pair", "usual", "below")),
        *((GumbelSparse, own) for own in ("restarts", "fresh", "answer_share", "pair")),
        *((LaplaceSparse, own) for own in ("false_hits", "reserved", "fresh", "ratio")),
    ],
)
def test_what_a_mechanism_does_not_know_is_no_keyword_of_it(made, own):
    with pytest.raises(TypeError, match=own):
        made.calibrated(BUDGET, **PLAN, **{own: 1})


def test_a_mechanism_of_ones_own_says_that_it_has_no_calibration():
    class Mine(NumericSparse):
        """Only a name."""

    with pytest.raises(InvalidParameterError, match="got Mine; construct it by its scales"):
        Mine.calibrated(BUDGET, **PLAN)


@pytest.mark.parametrize(
    ("changes", "tolerated", "paid"),
    [
        ({}, 0.2, 12),  # 10 true ones and 2 false ones
        ({"false_hits": 0.25}, 0.25, 13),
        ({"hard_answers": 3}, 0.2, 4),
        ({"threshold": 0.1}, 0.2, 12),
        ({"threshold": 0.1, "false_hits": 0.0}, 0.0, 10),
        ({"alpha": 0.1}, 0.0, 10),  # no hit is false
        ({"alpha": 0.1, "false_hits": 0.5}, 0.5, 15),
    ],
    ids=str,
)
def test_false_hits_are_paid_besides_unless_every_hit_is_a_true_one(changes, tolerated, paid):
    assert (tolerated, paid) == (of(**changes).tolerated, of(**changes).paid)


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({"alpha": 0.1}, 427.0),  # 1000/10 counts of 4 units, 1/(.8 * .05) = 25, and 2
        ({"threshold": 0.3}, 1_200.0),
        ({}, 0.5),  # 1/(.2 * 10)
        ({"false_hits": 0.05}, 2.0),
    ],
    ids=str,
)
def test_a_threshold_is_of_a_gap_or_given_or_of_the_false_hits(changes, level):
    assert level == pytest.approx(of(**changes).level(4, height, share=0.8), rel=1e-15)


def test_no_threshold_is_below_equal_numbers_and_slack_is_on_top_of_a_gap_alone():
    assert 0.0 == of().level(4, lambda part, of: -7.0, 0.8)
    assert 425.0 == pytest.approx(of(alpha=0.1).level(4, height, 0.8, slack=0.0), rel=1e-15)
    assert 1_200.0 == of(threshold=0.3).level(4, height, 0.8, slack=9.0)


@pytest.mark.parametrize("wish", [{"alpha": 0.01}, {"threshold": 0.25}, {}], ids=str)
@pytest.mark.parametrize("made", MADE)
def test_every_mechanism_puts_its_threshold_by_one_rule(made, wish):
    """By the law of its own noise: 6.4 and 6.5 of the theory, k = 400, c = 10, beta = .05."""
    sparse = made.calibrated(BUDGET, **PLAN | {"n": 100_000}, **wish)
    if made is GumbelSparse:
        scale = float(sparse.scale)
        of_gap, often, more = scale * math.log(400 / 0.04) + 2, scale * math.log(400 / 2), 0
    elif made is ExponentialSparse:
        b1, b2 = float(sparse.threshold_scale), float(sparse.query_scale)
        odds = 2 * 400 * b2 / (b1 + b2)
        of_gap, often, more = b2 * math.log(odds / 0.0475) + 2, b2 * math.log(odds / 0.5), 0
    else:  # s = 22.5 and q = 45 in the pure branch
        assert (Fraction(45, 2), Fraction(45)) == (sparse.threshold_scale, sparse.query_scale)
        of_gap = 45 * math.log(400 * math.sqrt(math.pi * 10.5) / 0.09)
        often, more = 45 * math.log(2 * 400 / 6), 1
    level = {"alpha": 1_000 + of_gap, "threshold": 25_000}.get(next(iter(wish), ""), often)
    if made is GumbelSparse and "threshold" in wish:
        assert level <= 26 * sparse.scale  # which it was widened for

    assert math.ceil(level) + more == sparse.threshold
