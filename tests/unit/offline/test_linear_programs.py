"""Sparse over optima of linear programs: exact optima, true sensitivities, refusals before a read."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import onlineic as ic
from onlineic.errors import InvalidParameterError, InvalidQueryError, SessionSealedError
from onlineic.noise import SimulatedNoise
from onlineic.offline import LinearPrograms, linear_programs_above, simplex
from onlineic.offline.simplex import Polyhedron, feasible, maximum, vertices
from onlineic.sparse import Sparse
from onlineic.testing import ScriptedNoise


def exact(values):
    return [Fraction(int(value)) for value in values]


def polyhedron(matrix, bounds):
    return Polyhedron.of([exact(row) for row in matrix], exact(bounds))


@pytest.fixture(params=["vertices", "simplex"])
def path(request, monkeypatch):
    """Small programs list their vertices; without them the same numbers come from the simplex."""
    if request.param == "simplex":
        monkeypatch.setattr(simplex, "MOST_BASES", 0)
    return request.param


# Exact programs


def test_optima_of_random_programs_are_those_of_scipy(path):
    generator = np.random.default_rng(1)
    kinds = {"empty": 0, "endless": 0, "optimal": 0}
    for _ in range(200):
        m, d = generator.integers(1, 5, 2)
        matrix, bounds = generator.integers(-3, 6, (m, d)), generator.integers(-4, 8, m)
        weights = generator.integers(-4, 6, d)
        plans = polyhedron(matrix, bounds)
        reached = linprog(-weights, A_ub=matrix, b_ub=bounds)
        if plans is None:
            kind, expected = "empty", (2,)
        elif not plans.limits(exact(weights)):
            kind, expected = "endless", (2, 3)  # scipy calls some endless programs infeasible
            assert linprog(0 * weights, A_ub=matrix, b_ub=bounds).status == 0
        else:
            kind, expected = "optimal", (0,)
            assert float(plans.maximum(exact(weights))) == pytest.approx(-reached.fun, abs=1e-7)
        kinds[kind] += 1

        assert reached.status in expected
    assert min(kinds.values()) > 20


def test_every_listed_vertex_is_feasible_and_all_are_listed():
    """The cube cut by its diagonal: 6 corners left of it, 3 of them on it, where bases tie."""
    plans = feasible([exact(row) for row in [*np.eye(3, dtype=int), [1, 1, 1]]], exact([1, 1, 1, 2]))
    found = vertices(plans, 100)

    assert [x for x in itertools.product((0, 1), repeat=3) if sum(x) <= 2] == list(found)
    assert vertices(plans, 6) is None  # more bases than that


def test_simplex_ends_where_steepest_entries_alone_would_cycle():
    """Beale's example: the optimum is 1/20, behind steps of length 0."""
    rows = [
        [Fraction(1, 4), Fraction(-60), Fraction(-1, 25), Fraction(9)],
        [Fraction(1, 2), Fraction(-90), Fraction(-1, 50), Fraction(3)],
        [Fraction(0), Fraction(0), Fraction(1), Fraction(0)],
    ]
    weights = [Fraction(3, 4), Fraction(-150), Fraction(1, 50), Fraction(-6)]

    assert Fraction(1, 20) == maximum(feasible(rows, exact([0, 0, 1])), weights)


def test_an_artificial_variable_left_in_the_basis_is_driven_out():
    """Equations written twice: after phase one the artificial variable is basic at 0."""
    rows = [exact(row) for row in ([1, 1], [-1, -1], [1, 1], [-1, -1])]
    start = feasible(rows, exact([2, -2, 2, -2]))

    assert Fraction(6) == maximum(start, exact([3, 1]))
    assert feasible(rows, exact([2, -3, 2, -2])) is None


# Sensitivity

BOX = 2  # largest value of a private entry


def tables(columns, n=2):
    """All data of n records in {0, .., BOX}^columns, as column sums, and the sums of all their neighbours."""
    records = list(itertools.product(range(BOX + 1), repeat=columns))
    for rest in itertools.combinations_with_replacement(records, n - 1):
        base = np.sum(rest, axis=0)
        yield [base + record for record in records]


def random_programs(generator, private):
    """Programs of two or three variables with mixed signs; None if they are refused."""
    m, d = generator.integers(2, 4, 2)
    matrix = generator.integers(-1, 4, (m, d))
    matrix[0] = generator.integers(1, 4, d)  # bounds every plan
    if private == "objective":
        box, more = [BOX] * d, {}
    else:
        box, more = [BOX, 0, BOX][:m], {"objective": generator.integers(-1, 4, d)}
    sides = [generator.integers(1, 6, m) for _ in range(3)]
    try:
        return LinearPrograms(
            matrix=matrix, right_hand_sides=sides, lower=[0] * len(box), upper=box, n=2, **more
        )
    except InvalidParameterError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("private", ["objective", "right-hand side"])
def test_no_replaced_record_moves_an_optimum_further_than_its_sensitivity(private, path):
    generator, made, attained = np.random.default_rng(2), 0, 0
    for _ in range(12 if private == "objective" else 30):
        programs = random_programs(generator, private)
        if programs is None:
            continue
        made += 1
        private_columns = len(programs.lower)
        masked = [high > 0 for high in programs.upper]
        worst = [Fraction(0)] * 3
        for neighbours in tables(sum(masked)):
            spread = np.zeros((len(neighbours), private_columns), dtype=int)
            spread[:, masked] = neighbours
            values = list(zip(*map(programs.optima, spread), strict=True))
            worst = [max(old, max(one) - min(one)) for old, one in zip(worst, values, strict=True)]
            scores = np.array([programs.scores(totals, Fraction(1, 3)) for totals in spread])

            assert np.ptp(scores, axis=0).max() <= 1  # what is compared has sensitivity 1
        attained += sum(one == bound for one, bound in zip(worst, programs.sensitivities, strict=True))

        assert all(one <= bound for one, bound in zip(worst, programs.sensitivities, strict=True))
    assert made >= 6
    assert attained >= (3 * made if private == "objective" else made if path == "vertices" else 1), (
        attained,
        made,
    )


def test_sensitivity_is_the_widest_feasible_plan_and_is_attained_by_one_record():
    """max w.x over the polytope, not the 1/n of an average: here 3/2 of it, at x = (1/2, 1)."""
    programs = LinearPrograms(
        matrix=[[2, 1], [0, 1]], right_hand_sides=[[2, 1]], lower=[0, 0], upper=[1, 1], n=100
    )
    values = [programs.optima(totals)[0] for totals in ([0, 0], [1, 1])]

    assert (Fraction(3, 200),) == programs.sensitivities
    assert Fraction(3, 200) == values[1] - values[0]


def test_private_capacity_moves_the_optimum_by_the_dearest_price():
    """max x_1 + 2 x_2, x_1 <= h_1, x_2 <= h_2, x_1 + x_2 <= 1/2: a unit of h_2 is worth at most 2."""
    programs = LinearPrograms(
        matrix=[[1, 0], [0, 1], [1, 1]],
        right_hand_sides=[[0, 0, 0.5]],
        lower=[0, 0, 0],
        upper=[1, 1, 0],
        n=10,
        objective=[1, 2],
    )
    values = [programs.optima(totals)[0] for totals in ([0, 0, 0], [0, 1, 0], [1, 1, 0])]

    assert (Fraction(3, 10),) == programs.sensitivities  # y = (1, 2, 0)
    assert [0, Fraction(1, 5), Fraction(3, 10)] == values


def test_twenty_private_capacities_without_slack_have_few_prices():
    """comb(42, 20) bases are possible and some hundred feasible: a list of vertices is tried, and enough."""
    services = 20
    generator = np.random.default_rng(3)
    programs = LinearPrograms(
        matrix=[*np.eye(services, dtype=int), *generator.integers(1, 9, (2, services))],
        right_hand_sides=[[0] * services + [budget, budget] for budget in (1, 2)],
        lower=[0] * (services + 2),
        upper=[1] * services + [0, 0],
        n=1000,
        objective=generator.integers(1, 9, services),
    )
    value = programs.optima([1000] * services + [0, 0])

    assert all(bound > 0 for bound in programs.sensitivities)
    assert value[0] < value[1]


def test_constant_optimum_has_sensitivity_0_and_a_public_score():
    programs = LinearPrograms(matrix=[[1]], right_hand_sides=[[0]], lower=[0], upper=[5], n=4)

    assert (0,) == programs.sensitivities
    assert [[-8], [-8]] == [programs.scores([total], 2).tolist() for total in (0, 20)]


def test_plans_that_no_data_make_optimal_do_not_count():
    """x_2 always loses to x_1 = 1, although it may be 10: the widest plan overall would give 10/n."""
    programs = LinearPrograms(
        matrix=[[1, Fraction(1, 10)]], right_hand_sides=[[1]], lower=[900, 0], upper=[901, 1], n=10
    )

    assert (Fraction(1, 10),) == programs.sensitivities


def test_scores_are_cut_off_where_sums_with_noise_could_overflow():
    programs = LinearPrograms(matrix=[[1]], right_hand_sides=[[1]], lower=[0], upper=[1], n=10)

    assert [2**61, -(2**61)] == [int(programs.scores([3], bound)[0]) for bound in (-1e300, 1e300)]


def test_numbers_are_taken_exactly_whatever_their_type():
    kinds = [0.1, Fraction(0.1), np.float64(0.1)]
    made = [
        LinearPrograms(
            matrix=[[one]], right_hand_sides=[[np.int64(2**62)]], lower=[0], upper=[1], n=np.int64(8)
        )
        for one in kinds
    ]

    assert {(Fraction(2**62) / Fraction(0.1) / 8,)} == {one.sensitivities for one in made}
    assert made[0] == made[1] == made[2]


# Refusals


GOOD = {
    "matrix": [[1, 1]],
    "right_hand_sides": [[1], [2]],
    "lower": [0, 0],
    "upper": [3, 3],
    "n": 4,
}
DUAL = {
    "matrix": [[1, 1], [1, 0]],
    "right_hand_sides": [[1, 1]],
    "lower": [0, 0],
    "upper": [3, 0],
    "n": 4,
    "objective": [1, 1],
}


@pytest.mark.parametrize(
    ("start", "changes", "message"),
    [
        (GOOD, {"matrix": []}, "matrix must hold one or more rows"),
        (GOOD, {"matrix": [[]]}, "matrix must hold one or more rows"),
        (GOOD, {"matrix": [[1, 1], [1]]}, "matrix must hold one or more rows"),
        (GOOD, {"matrix": 7}, "matrix must be a list of rows"),
        (GOOD, {"matrix": ["ab"]}, "matrix must be a list of numbers"),
        (GOOD, {"matrix": [[1, math.nan]]}, "matrix must hold finite numbers, got nan"),
        (GOOD, {"right_hand_sides": [[1, 2]]}, "right_hand_sides must have the 1 entries"),
        (GOOD, {"right_hand_sides": [[math.inf]]}, "right_hand_sides must hold finite numbers"),
        (GOOD, {"lower": [0]}, "lower and upper must be 2 integers each"),
        (GOOD, {"lower": None}, "lower must be a list of integers"),
        (GOOD, {"lower": [0, 4]}, "lower <= upper"),
        (GOOD, {"upper": [3, 2.5]}, "upper must be an integer"),
        (GOOD, {"upper": [3, 2**62]}, "n times the ends"),
        (GOOD, {"n": 0}, "n must be an integer >= 1"),
        (DUAL, {"objective": [1]}, "objective must have the 2 entries"),
        (DUAL, {"objective": 3}, "objective must be a list of numbers"),
        (DUAL, {"upper": [3]}, "lower and upper must be 2 integers each"),
        # no plan, whatever the data; the first candidate is fine
        (GOOD, {"right_hand_sides": [[1], [-1]]}, r"feasible, got right_hand_sides\[1\], under which"),
        # an optimum without bound for some data, although for others it is 0
        (GOOD, {"matrix": [[1, 0]]}, r"bound every optimum for all data, got right_hand_sides\[0\]"),
        (GOOD, {"matrix": [[1, 0]], "lower": [0, -3]}, "bound every optimum for all data"),
        # the dual of a public objective: endless under every right-hand side
        (DUAL, {"matrix": [[1, -1], [1, 0]]}, "objective must be bounded by the rows"),
        # private right-hand sides that can leave no plan: the optimum is -infinity for some data
        (
            DUAL,
            {"matrix": [[1, 1], [-1, 0]], "right_hand_sides": [[2, -1], [1, -2]]},
            r"feasible for all data, got right_hand_sides\[1\]; raise it, or lower",
        ),
        (DUAL, {"lower": [-5, 0]}, r"feasible for all data, got right_hand_sides\[0\]"),
    ],
)
def test_programs_without_a_finite_sensitivity_are_refused_by_name(start, changes, message):
    LinearPrograms(**start)
    with pytest.raises(InvalidParameterError, match=message):
        LinearPrograms(**{**start, **changes})


def test_plans_without_bound_pass_where_no_data_make_them_worth_it(path):
    """x_2 may grow for ever, but costs at least 1 each; the simplex knows 3 x_1 >= x_2 of it, not x_2 = 0."""
    programs = LinearPrograms(**{**GOOD, "matrix": [[1, 0]], "lower": [0, -3], "upper": [3, -1]})
    expected = Fraction(3, 4) if path == "vertices" else Fraction(9, 4)

    assert (expected, 2 * expected) == programs.sensitivities


def test_where_vertices_are_not_listed_a_private_row_without_slack_is_refused(monkeypatch):
    """b + lower = 0: the prices of the row have no bound, although one unit of it is worth at most 1."""
    tight = {**DUAL, "right_hand_sides": [[0, 1]]}

    assert (Fraction(3, 4),) == LinearPrograms(**tight).sensitivities
    monkeypatch.setattr(simplex, "MOST_BASES", 0)
    with pytest.raises(InvalidParameterError, match="slack in every private row"):
        LinearPrograms(**tight)
    assert LinearPrograms(**DUAL).sensitivities[0] >= Fraction(3, 4)  # with slack: a bound, larger


@pytest.mark.parametrize("totals", [[0], [0, 13], [-1, 0], [0, 0, 0]])
def test_sums_outside_of_the_box_are_refused_without_being_shown(totals):
    with pytest.raises(
        InvalidParameterError, match=r"^totals must be the column sums of n records in the box\.$"
    ):
        LinearPrograms(**GOOD).optima(totals)


# The release


def table(first=(3, 1, 0, 2), second=(0, 1, 1, 0)):
    domain = ic.Domain.of(first=range(4), second=range(-1, 3), name=["a", "b"])
    columns = {"first": list(first), "second": list(second), "name": ["a"] * len(first)}
    return ic.PrivateData.from_records(columns, domain)


PROGRAMS = LinearPrograms(
    matrix=[[1, 2]], right_hand_sides=[[budget] for budget in range(5)], lower=[0, -1], upper=[3, 2], n=4
)  # sums 6, 2: v_j = 1.5 j, sensitivity 3 j/4


def test_scores_are_optima_less_the_threshold_in_sensitivities_rounded_down():
    assert [Fraction(3 * j, 2) for j in range(5)] == list(PROGRAMS.optima([6, 2]))
    assert [Fraction(3 * j, 4) for j in range(5)] == list(PROGRAMS.sensitivities)
    # (1.5 j - 4)/(.75 j); for j = 0 the unit is 1/n
    assert [-16, -4, -1, 0, 0] == PROGRAMS.scores([6, 2], 4).tolist()


def test_release_asks_for_the_noise_of_sparse_and_says_what_was_not_reached():
    noise, data = ScriptedNoise([0] * 6), table()
    result = linear_programs_above(data, ["first", "second"], PROGRAMS, 4, 0.5, noise=noise)
    sparse = Sparse(0.5, 0, 1, allocation="optimal")

    assert ((3,), 4, range(4, 5)) == (result.above, result.tested, result.not_reached)
    assert [
        ("discrete_laplace", sparse.threshold_scale, 1),
        ("discrete_laplace", sparse.query_scale, 5),
    ] == noise.scales
    assert "ProgramsAbove((3,), 4 of 5 compared, NOT PRIVATE)" == repr(result)
    assert [] == list(data.budgets)  # simulated: nothing was spent


def test_without_a_hit_all_programs_were_compared():
    noise = ScriptedNoise([0] * 6)
    result = linear_programs_above(table(), ["first", "second"], PROGRAMS, 40, 0.5, cutoff=2, noise=noise)

    assert ((), 5, range(5, 5)) == (result.above, result.tested, result.not_reached)


def test_radii_are_those_of_sparse_plus_the_rounding_in_units_of_the_objective():
    result = linear_programs_above(
        table(), ["first", "second"], PROGRAMS, 4, 0.5, cutoff=2, beta=0.1, noise=ScriptedNoise([0] * 6)
    )
    radius = Sparse(0.5, 0, 2, allocation="optimal").radius(5, 0.1) + 1

    assert tuple(radius * unit for unit in (0.25, 0.75, 1.5, 2.25, 3.0)) == result.radii
    assert (0.1, False) == (result.beta, result.private)


def test_a_private_release_is_charged_to_the_table():
    data = table()
    result = linear_programs_above(data, ["first", "second"], PROGRAMS, -1000, 0.5, cutoff=2)

    assert [ic.Budget(0.5)] == list(data.budgets)
    assert (True, 2) == (result.private, data.reads)
    assert (0, 1) == result.above


def test_constants_and_negative_ranges_enter_the_sums():
    programs = LinearPrograms(matrix=[[1, 1]], right_hand_sides=[[1]], lower=[7, -1], upper=[7, 2], n=4)
    noise = ScriptedNoise([0, 0])
    seen = []
    original = LinearPrograms.scores

    class Spy:
        def __get__(self, instance, owner):
            return lambda totals, threshold: (seen.append(totals), original(instance, totals, threshold))[1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LinearPrograms, "scores", Spy())
        linear_programs_above(table(second=[2, -1, 0, -1]), [None, "second"], programs, 7, 1.0, noise=noise)

    assert [[28, 0]] == seen


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"data": [1]}, InvalidParameterError, "data must be a PrivateData"),
        ({"programs": 3}, InvalidParameterError, "programs must be LinearPrograms"),
        (
            {"data": table([1], [1])},
            InvalidParameterError,
            "n of programs must be that of the data, 1, got n=4",
        ),
        ({"attributes": ["first"]}, InvalidParameterError, "attributes must be a list of 2"),
        ({"attributes": "ab"}, InvalidParameterError, "attributes must be a list of 2"),
        ({"attributes": ["first", None]}, InvalidParameterError, "attributes must name what is private"),
        ({"attributes": ["first", "third"]}, InvalidQueryError, "attribute must be one of"),
        ({"attributes": ["first", "name"]}, InvalidQueryError, "ranges of integers"),
        (
            {"attributes": ["second", "second"]},
            InvalidParameterError,
            "lie in their box, got 'second' from -1",
        ),
        ({"threshold": math.inf}, InvalidParameterError, "threshold must hold finite"),
        ({"epsilon": 0.0}, InvalidParameterError, "epsilon must"),
        ({"cutoff": 0}, InvalidParameterError, "cutoff must"),
        ({"beta": 1.0}, InvalidParameterError, "beta must"),
        ({"noise": 3}, InvalidParameterError, "noise must"),
    ],
)
def test_bad_arguments_are_refused_before_a_read_or_a_charge(changes, error, message):
    data = table()
    given = {
        "data": data,
        "attributes": ["first", "second"],
        "programs": PROGRAMS,
        "threshold": 4,
        "epsilon": 0.5,
        **changes,
    }
    with pytest.raises(error, match=message):
        linear_programs_above(**given)

    assert (0, []) == (data.reads, list(data.budgets))


def test_the_threshold_is_made_exact_before_the_data_are_read():
    """It is the caller's object: a failure of it behind the read would cost the budget."""
    data, reads = table(), []

    class Watched(Fraction):
        @property
        def numerator(self):
            reads.append(data.reads)
            return super().numerator

    linear_programs_above(data, ["first", "second"], PROGRAMS, Watched(4), 0.5, noise=ScriptedNoise([0] * 6))

    assert {0} == set(reads)


def test_an_interrupted_release_stays_charged_and_shows_nothing():
    data = table()
    data._tables = None  # the read will fail
    with pytest.raises(SessionSealedError) as caught:
        linear_programs_above(data, ["first", "second"], PROGRAMS, 4, 0.5)

    assert [ic.Budget(0.5)] == list(data.budgets)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.statistical
def test_radii_keep_their_promise_and_half_of_them_would_not():
    """A hundred equal programs a radius below the threshold are all passed over; a radius above, none is."""
    generator, n, noise = np.random.default_rng(5), 400, SimulatedNoise(11)
    columns = {"first": generator.integers(0, 4, n), "second": generator.integers(-1, 3, n)}
    data = ic.PrivateData.from_records(columns, ic.Domain.of(first=range(4), second=range(-1, 3)))
    programs = LinearPrograms(matrix=[[1, 2]], right_hand_sides=[[1]] * 100, lower=[0, -1], upper=[3, 2], n=n)
    value = float(programs.optima([int(column.sum()) for column in columns.values()])[0])

    def wrong(distance, side):
        """How often some program is on the other side of a threshold this many radii away."""
        failures = 0
        for _ in range(120):
            result = linear_programs_above(
                data, list(columns), programs, value - side * distance * radius, 1.0, beta=0.2, noise=noise
            )
            failures += (result.tested > 1) if side > 0 else bool(result.above)
        return failures / 120

    radius = linear_programs_above(data, list(columns), programs, 0, 1.0, beta=0.2, noise=noise).radii[0]

    assert max(wrong(1.0, -1), wrong(1.0, 1)) <= 0.2
    assert wrong(0.5, -1) > 0.2
