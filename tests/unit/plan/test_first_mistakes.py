"""What a newcomer types wrong first: refused by name, with what to write instead, and nothing spent."""

import math
import re

import numpy as np
import pytest

import onlineic as ic
from onlineic import between, offline, where
from onlineic.audit import Law, ThresholdRule, epsilon_lower_bound, first_hit_delta
from onlineic.errors import InvalidParameterError, TooLargeError
from onlineic.mechanisms import ExponentialMechanism, GaussianMechanism, LaplaceMechanism, NoisyMax
from onlineic.noise import SimulatedNoise
from onlineic.sparse import AboveThreshold, Sparse

VALUES = np.array([1, 5, 3])


def ages(cells: int = 60) -> ic.PrivateData:
    return ic.PrivateData(np.full(cells, 10), ic.Domain.of(age=range(cells)))


class TestRemedies:
    @pytest.mark.parametrize("epsilon", [0, -1, "1", None, True, math.nan])
    def test_large_epsilons_are_offered_only_to_those_who_gave_one(self, epsilon):
        with pytest.raises(InvalidParameterError) as caught:
            offline.mean(ages(), "age", epsilon)

        assert f"epsilon must be a number in (0, 20], got epsilon={epsilon!r}." == str(caught.value)

    def test_a_large_epsilon_is_told_where_it_may_be_given(self):
        with pytest.raises(
            InvalidParameterError, match="lower it; in a Budget, allow_large_epsilon=True lifts"
        ):
            offline.mean(ages(), "age", 50)

    def test_a_budget_in_the_place_of_epsilon_is_told_so(self):
        with pytest.raises(
            InvalidParameterError, match=r"got epsilon=a Budget; give the number, budget.epsilon"
        ):
            offline.mean(ages(), "age", ic.Budget(1.0))

    @pytest.mark.parametrize(
        ("bounds", "text"),
        [
            ([], "got none; name one."),
            ([30, 20], "got bounds=[30, 20]; sort them, each once."),
            ([20, 20], "got bounds=[20, 20]; sort them, each once."),
            ([0], "each of bounds must be an integer >= 1 and <= 59, got each of bounds=0"),
        ],
    )
    def test_bounds_are_shown_as_they_were_given(self, bounds, text):
        with pytest.raises(InvalidParameterError, match=re.escape(text)):
            offline.clipping_bound(ages(), "age", 1.0, bounds=bounds)

    def test_a_threshold_written_as_a_share_is_told_that_it_counts_records(self):
        with pytest.raises(InvalidParameterError, match=r"counts records, so write round\(share \* n\)"):
            AboveThreshold(epsilon=1.0, threshold=0.5)

    def test_a_positive_clipping_threshold_is_told_its_sign(self):
        with pytest.raises(InvalidParameterError, match="minus the records that may lie above"):
            offline.clipping_bound(ages(), "age", 1.0, threshold=5)

    def test_a_table_in_the_place_of_a_domain_is_named(self):
        with pytest.raises(InvalidParameterError, match=r"got a PrivateData; write data.domain"):
            offline.threshold_functions(ages(), "age")
        with pytest.raises(InvalidParameterError, match=r"got a NoneType; write Domain.of"):
            ic.PrivateData.from_records({"age": [1]}, None)

    def test_an_epsilon_too_small_to_draw_for_is_told_to_grow(self):
        with pytest.raises(InvalidParameterError, match="raise epsilon"):
            offline.mean(ages(), "age", 1e-320)

    @pytest.mark.parametrize("values", [[1.5, 2.0], [], None, "12"])
    def test_what_is_no_array_of_integers_is_told_to_be_rounded_and_never_shown(self, values):
        text = "array of int64, and were not; round them to a public grid first.$"
        for draw in (NoisyMax(1.0).select, LaplaceMechanism(1.0).release, AboveThreshold(1.0, 3).first):
            with pytest.raises(InvalidParameterError, match=text):
                draw(values, SimulatedNoise(1))

    def test_linear_programs_show_what_they_were_given(self):
        shape = {"lower": [0, 0], "upper": [9, 9], "n": 600}
        programs = offline.LinearPrograms(matrix=[[2, 1]], right_hand_sides=[[1], [2]], **shape)

        shown = "LinearPrograms(2 programs of 1 rows and 2 columns, n=600, private objective)"
        assert shown == repr(programs)
        with pytest.raises(InvalidParameterError, match=r"one length, got rows of \[2, 1\]"):
            offline.LinearPrograms(matrix=[[2, 1], [1]], right_hand_sides=[[1, 1]], **shape)
        with pytest.raises(
            InvalidParameterError, match="attributes must be a list of 2 names or None, got None"
        ):
            offline.linear_programs_above(ages(), None, programs, 1, 1.0)


class TestNoise:
    @pytest.mark.parametrize("noise", [None, 1, np.random.default_rng(0), SimulatedNoise])
    @pytest.mark.parametrize(
        "draw",
        [
            ExponentialMechanism(1.0).select,
            NoisyMax(10.0).select,
            LaplaceMechanism(1.0).release,
            GaussianMechanism(1.0, 1e-6).release,
            AboveThreshold(1.0, 3).first,
            Sparse(1.0, 3, 1).select,
        ],
    )
    def test_what_is_no_noise_of_ours_is_refused(self, draw, noise):
        """The `geometric` of numpy takes a probability where ours takes a scale: at epsilon 10 it ran."""
        with pytest.raises(
            InvalidParameterError, match=r"noise must be a Noise, got a .*; write SystemNoise"
        ):
            draw(VALUES, noise)


class TestSmallDatabase:
    def test_many_cells_are_refused_before_anything_is_spent(self):
        """All databases of ONE record over 23,680 cells are few, and listing them would take hours."""
        data = ages(23_680)

        with pytest.raises(TooLargeError, match=r"must be at most 2\^32, got 2\^43.6, multisets of 1"):
            offline.small_database(data, [where(age=between(0, 9))], 1.0)

        assert [] == list(data.budgets)

    def test_the_size_taken_where_none_is_asked_for_can_be_listed(self):
        chosen = offline.small_database(ages(512), [where(age=between(0, 9))], 1.0, noise=SimulatedNoise(1))

        assert (1, 512) == (chosen.size, chosen.candidates)


class TestReprs:
    def test_a_bound_that_is_not_given_is_not_shown_as_infinite(self):
        budget, asked = ic.Budget(1.0, 1e-9), [where(age=between(0, 9))]
        result = offline.mwem(ages(), asked, budget, average=0, noise=SimulatedNoise(1))

        assert math.inf == result.error_bound
        assert ", no bound, epsilon=1, delta=1e-09, NOT PRIVATE)" in repr(result)

    def test_every_bound_says_its_confidence(self):
        data, noise, asked = ages(), SimulatedNoise(1), [where(age=between(0, 9))]
        shown = [
            offline.auto_avg(data, "age", 1.0, beta=0.1, noise=noise),
            offline.clipping_bound(data, "age", 1.0, threshold=-100, beta=0.1, noise=noise),
            offline.range_queries(data, asked, 1.0, threshold=5, cutoff=1, beta=0.1, noise=noise),
            offline.median(data, "age", 1.0, beta=0.1, noise=noise),
        ]

        assert [True] * 4 == [" at 0.9" in repr(result) for result in shown]


class TestAudit:
    @pytest.mark.parametrize(
        ("arguments", "options", "name"),
        [
            ((110, 100, 10, 100), {}, "hits"),
            ((-1, 100, 10, 100), {}, "hits"),
            ((90, 100, 101, 100), {}, "other_hits"),
            ((90.5, 100, 10, 100), {}, "hits"),
            ((0, -1, 10, 100), {}, "runs"),
            ((90, 100, 10, 100), {"delta": -1}, "delta"),
            ((90, 100, 10, 100), {"delta": 1}, "delta"),
            ((90, 100, 10, 100), {"delta": "x"}, "delta"),
        ],
    )
    def test_a_lower_bound_is_certified_of_possible_counts_only(self, arguments, options, name):
        """With delta=-1 it used to certify 2.3 where 1.5 is all that can be said."""
        with pytest.raises(InvalidParameterError, match=rf"^{name} must be"):
            epsilon_lower_bound(*arguments, **options)

    @pytest.mark.parametrize(
        ("make", "name"),
        [
            (lambda: Law("gauss"), "method"),
            (lambda: Law("geometric", 0), "scale"),
            (lambda: Law("geometric", "2"), "scale"),
            (lambda: Law("geometric", 1, 3), "sign"),
            (lambda: ThresholdRule(5.5, Law("none"), Law("none")), "threshold"),
            (lambda: ThresholdRule(5, Law("none"), Law("none"), 0), "cutoff"),
            (lambda: ThresholdRule(5, "none", Law("none")), "threshold_noise"),
            (lambda: ThresholdRule(5, Law("none"), None), "query_noise"),
        ],
    )
    def test_a_rule_that_no_mechanism_obeys_is_refused(self, make, name):
        with pytest.raises(InvalidParameterError, match=f"^{name} must be"):
            make()

    def test_neighbours_are_asked_the_same_queries(self):
        rule = ThresholdRule(5, Law("discrete_laplace", 2), Law("discrete_laplace", 4))

        with pytest.raises(InvalidParameterError, match="others must have the length of values, got 1 for 2"):
            first_hit_delta(rule, [3, 4], [4], 1.0)
