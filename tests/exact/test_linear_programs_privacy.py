"""The indices of linear programs above a threshold cost at most epsilon, exactly; naive variants cost more.

The laws are those of the noise rule read off the running `Sparse`, over the scores that the running code
compares, on every pair of neighbours of a tiny table.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

import onlineic as ic
from onlineic.audit import goodness_of_fit, observe, transcript_law
from onlineic.errors import InvalidParameterError
from onlineic.noise import SimulatedNoise
from onlineic.offline import LinearPrograms, linear_programs_above, simplex
from onlineic.sparse import Sparse

TIGHT = 1 + 1e-9
EPSILON = 1.0


def worst(score, pairs, cutoff=2, epsilon=EPSILON):
    """THE audit: the largest |ln P/P'| of a transcript over pairs of column sums; infinite where P' = 0."""
    sparse = Sparse(epsilon, 0, cutoff, allocation="optimal")
    rule = observe(sparse.init(), sparse.step)

    @cache
    def law(totals):
        return transcript_law(rule, score(totals))

    return max(
        (
            abs(math.log(law(one)[text] / law(other)[text]))
            if min(law(one)[text], law(other)[text]) > 0
            else math.inf * (law(one)[text] != law(other)[text] or 0)
            for one, other in pairs
            for text in law(one)
        ),
        default=0.0,
    )


def neighbours(columns, n=2, most=2):
    """Column sums of all pairs of neighbours over {0, .., most}^columns."""
    records = list(itertools.product(range(most + 1), repeat=columns))
    for rest in itertools.combinations_with_replacement(records, n - 1):
        base = np.sum(rest, axis=0)
        sums = [tuple(int(total) for total in base + record) for record in records]
        yield from itertools.combinations(sums, 2)


def objectives(**changes):
    """Two private coefficients over three polytopes."""
    return LinearPrograms(
        **{
            "matrix": [[1, 2], [3, 1]],
            "right_hand_sides": [[1, 2], [2, 6], [4, 3]],
            "lower": [0, 0],
            "upper": [2, 2],
            "n": 2,
            **changes,
        }
    )


def demands(**changes):
    """Two private capacities and a public budget."""
    return LinearPrograms(
        **{
            "matrix": [[1, 0], [0, 1], [1, 1]],
            "right_hand_sides": [[0, 0, 1], [0.5, 0, 2], [1, 1, 3]],
            "lower": [0, 0, 0],
            "upper": [2, 2, 0],
            "n": 2,
            "objective": [1, 3],
            **changes,
        }
    )


def shown(programs, threshold):
    """The scores that the running code compares, of column sums without the public columns."""
    public = len(programs.lower) - 2

    def score(totals):
        return programs.scores([*totals, *[0] * public], threshold).tolist()

    return score


# The right mechanism


@pytest.mark.parametrize("path", ["vertices", "simplex"])
@pytest.mark.parametrize("make", [objectives, demands])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_pair_of_neighbours_tells_more_than_epsilon(make, path, epsilon, monkeypatch):
    if path == "simplex":
        monkeypatch.setattr(simplex, "MOST_BASES", 0)
    slack = {} if make is objectives else {"right_hand_sides": [[1, 1, 1], [0.5, 1, 2], [1, 1, 3]]}
    loss = max(
        worst(shown(make(**slack), threshold), neighbours(2), epsilon=epsilon)
        for threshold in (Fraction(3, 4), 2)
    )

    assert loss <= epsilon * TIGHT
    assert loss > (0.2 * epsilon if path == "vertices" else -1)  # three programs do not reach what many do


def test_many_programs_that_move_against_each_other_come_close_to_epsilon():
    """The noise is no larger than it must be: 400 programs fall by one unit, and one rises."""
    programs = LinearPrograms(
        matrix=[[1, 0], [0, 1]], right_hand_sides=[[1, 0]] * 400 + [[0, 1]], lower=[0, 0], upper=[1, 1], n=20
    )
    loss = worst(shown(programs, Fraction(16, 20)), [((4, 3), (3, 4))], cutoff=1)

    assert 0.9 * EPSILON < loss <= EPSILON * TIGHT


@pytest.mark.statistical
def test_the_released_indices_follow_the_audited_law():
    programs, counts = objectives(), {}
    data = ic.PrivateData.from_records({"a": [2, 0], "b": [1, 1]}, ic.Domain.of(a=range(3), b=range(3)))
    sparse = Sparse(EPSILON, 0, 2, allocation="optimal")
    law = transcript_law(observe(sparse.init(), sparse.step), shown(programs, 1)((2, 2)))
    noise = SimulatedNoise(7)
    for _ in range(1500):
        result = linear_programs_above(data, ["a", "b"], programs, 1, EPSILON, cutoff=2, noise=noise)
        text = "".join("01"[place in result.above] for place in range(result.tested))
        counts[text] = counts.get(text, 0) + 1
    off = {
        text: round(1500 * p)
        for text, p in transcript_law(observe(sparse.init(), sparse.step), shown(programs, 4)((2, 2))).items()
    }

    assert goodness_of_fit(counts, law) > 1e-9
    assert goodness_of_fit(off, law) < 1e-9  # another threshold is told apart


# Mutants


def test_mutant_that_forgets_the_width_of_the_polytope_costs_more():
    """Sensitivity of a mean, max(upper - lower)/n, where the optimum moves by it times the plan."""
    programs = objectives(right_hand_sides=[[12, 18], [24, 60], [30, 30]])

    def naive(totals):
        unit = Fraction(2, programs.n)
        return [math.floor((value - 5) / unit) for value in programs.optima(totals)]

    assert worst(shown(programs, 5), neighbours(2)) <= EPSILON * TIGHT
    assert worst(naive, neighbours(2)) > 2 * EPSILON


def test_mutant_that_accepts_an_infeasible_program_costs_without_end():
    """max -x, h <= x <= 1/2: the price of the demand has no bound where h > 1/2; dual vertices know nothing
    of it and say 1.
    """
    demand = {
        "matrix": [[-1], [1]],
        "right_hand_sides": [[0, 0.5]],
        "upper": [0, 0],
        "objective": [-1],
        "n": 2,
    }

    def accepted(totals):
        value = Fraction(-totals[0], 2) if totals[0] <= 1 else Fraction(-1000)  # the solver's "infeasible"
        return [math.floor(value / Fraction(1, 2))]

    with pytest.raises(InvalidParameterError, match="feasible for all data"):
        LinearPrograms(**demand, lower=[-1, 0])  # -x <= -h, h in [0, 1]
    roomy = LinearPrograms(**{**demand, "right_hand_sides": [[0, 1]]}, lower=[-1, 0])

    assert (Fraction(1, 2),) == roomy.sensitivities
    assert worst(lambda t: roomy.scores([-t[0], 0], -0.5).tolist(), [((1,), (2,))]) <= EPSILON * TIGHT
    assert worst(accepted, [((1,), (2,))]) > 100 * EPSILON


def test_mutant_that_trusts_a_float_solver_costs_more_where_it_drops_a_row():
    """HiGHS ignores coefficients of 1e-10: x <= 1 written so is lost, the optimum moves 50 times too far."""
    tiny = Fraction(1, 10**10)
    programs = LinearPrograms(
        matrix=[[tiny], [1]], right_hand_sides=[[tiny, 50]] * 3, lower=[0], upper=[1], n=20
    )

    def floats(totals):
        reached = linprog([-totals[0] / 20], A_ub=[[1e-10], [1]], b_ub=[1e-10, 50])
        return [math.floor((-reached.fun - 0.5) / (1 / 20))] * 3

    pair = [((9,), (10,))]

    assert (Fraction(1, 20),) * 3 == programs.sensitivities
    assert worst(lambda t: programs.scores(t, 0.5).tolist(), pair) <= EPSILON * TIGHT
    assert worst(floats, pair) > 5 * EPSILON


def test_mutant_that_trusts_float_rounding_costs_twice_epsilon():
    """max c.x, 3x <= 1: a record moves 3 n v from 3 to 4; floats floor that to 2 and 4, two units apart."""
    n = 10
    programs = LinearPrograms(
        matrix=[[3, 0], [0, 3]], right_hand_sides=[[1, 0]] * 400 + [[0, 1]], lower=[0, 0], upper=[1, 1], n=n
    )

    def floats(totals):
        ups = [math.floor(-linprog([-total / n], A_ub=[[3]], b_ub=[1]).fun * (3 * n)) for total in totals]
        return [ups[0] - 14] * 400 + [ups[1] - 14]

    def right(totals):
        return programs.scores(totals, Fraction(14, 30)).tolist()

    pair = [((3, 4), (4, 3))]
    jumps = [abs(one - other) for one, other in zip(*map(floats, pair[0]), strict=True)]

    assert {2} == set(jumps)
    assert worst(right, pair, cutoff=1) <= EPSILON * TIGHT
    assert worst(floats, pair, cutoff=1) > 1.99 * EPSILON
