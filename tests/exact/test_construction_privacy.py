"""Whole constructions keep their budget: exact laws of transcripts, and breaches that the audit finds.

The walker takes the place of the two draws of a round: each run follows one path through the choices and a
list of answers, with exact probabilities from the scores, values and scales that the running code hands over.
Answers outside the list cost no more: the ratio of two discrete Laplace laws is constant beyond both centres.
"""

import itertools
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Budget, zcdp_rho
from onlineic.data import PrivateData
from onlineic.domain import Domain
from onlineic.mechanisms import ExponentialMechanism, NoisyMax
from onlineic.noise import SimulatedNoise
from onlineic.offline import iterative_construction, mwem
from onlineic.offline.construction import Workload, construct
from onlineic.offline.release import Release
from onlineic.offline.rounds import Rounds, paid_rounds
from onlineic.queries import dense
from onlineic.testing import ScriptedNoise
from onlineic.updates import MeasuredWeights, MultiplicativeWeights
from support.laws import exponential_law, noisy_max_law

TIGHT = 1 + 1e-9
DOMAIN = Domain.of(x=3)
CLASS = [dense(np.array(weights)) for weights in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])]
HALVES = [dense(np.array(weights)) for weights in ([1.0, 0.5, 0.0], [0.0, 0.0, 1.0])]
# one record moves from a cell to another: where the chosen query's score rises all others fall
NEIGHBOURS = [
    ((90, 5, 5), (89, 6, 5)),
    ((60, 40, 0), (61, 39, 0)),
    ((40, 60, 0), (41, 59, 0)),
    ((34, 33, 33), (33, 34, 33)),
    ((20, 10, 70), (20, 11, 69)),
    ((20, 10, 70), (19, 10, 71)),
    ((0, 90, 10), (1, 90, 9)),
]


def choice_law(mechanism, scores):
    law = noisy_max_law if isinstance(mechanism, NoisyMax) else exponential_law
    return law(scores, float(mechanism.scale))


def laplace_law(values, centre, scale):
    q = math.exp(-1 / float(scale))
    return (1 - q) / (1 + q) * q ** np.abs(np.asarray(values) - centre)


class Walker:
    """Walks every path of choices and answers; `reuse` releases the score's noise for fresh noise."""

    def __init__(self, monkeypatch, values, *, reuse=False):
        self.values, self.reuse, self.path, self.log = values, reuse, (), []
        monkeypatch.setattr(Rounds, "choose", lambda plan, scores, noise: self.chosen(plan, scores))
        monkeypatch.setattr(Rounds, "answer", lambda plan, exact, noise, shift=0: self.answered(plan, exact))

    def chosen(self, plan, scores):
        self.scores = scores
        if not self.reuse:
            return self.branch(range(len(scores)), choice_law(plan.choice, scores))
        scale = float(plan.choice.scale)
        q = math.exp(-1 / scale)
        pairs, law = [], []
        for (index, score), extra in itertools.product(enumerate(scores), range(8)):
            rivals = [
                1 - q ** max(0, score + extra - rival + (other > index))
                for other, rival in enumerate(scores)
                if other != index
            ]
            pairs.append((index, extra))
            law.append((1 - q) * q**extra * math.prod(rivals))
        index, self.extra = self.branch(pairs, np.array(law))
        return index

    def answered(self, plan, exact):
        if self.reuse:
            return exact + self.extra
        return np.array([self.branch(self.values, laplace_law(self.values, int(exact[0]), plan.scale))])

    def branch(self, options, law):
        """Follow the path, or start a new one with the first option."""
        step = len(self.log)
        taken = self.path[step] if step < len(self.path) else 0
        self.log.append((taken, len(law), float(law[taken])))
        return list(options)[taken]

    def law(self, run):
        """Transcript -> probability, over every path of `run`."""
        result, self.path = {}, ()
        while self.path is not None:
            self.log = []
            transcript = run()
            result[transcript] = result.get(transcript, 0.0) + math.prod(one for _, _, one in self.log)
            taken = [(place, size) for place, size, _ in self.log]
            while taken and taken[-1][0] == taken[-1][1] - 1:
                taken.pop()
            path = tuple(place for place, _ in taken)
            self.path = (*path[:-1], path[-1] + 1) if taken else None
        return result


def transcript(course, workload):
    """All that is released, as a key: chosen queries, their values, and whether the construction stopped."""
    places = {query.key: place for place, query in enumerate(workload.queries)}
    units = workload.units
    return (
        *(
            (places[one.target.key], round(float(one.values[0]) * units, 6) + 0.0)
            for one in course.measurements
        ),
        course.stopped,
    )


def run_of(counts, plan, workload, stop, update=None):
    update = update or MultiplicativeWeights(rate=0.05)  # so slow that both rounds meet the same gaps
    data, noise = PrivateData(np.array(counts), DOMAIN), SimulatedNoise(0)

    def run():
        start = update.init(DOMAIN)
        course = construct(
            Release(data, Budget(1.0), noise, 0.05), workload, plan, update, start, 0.1, stop=stop
        )
        return transcript(course, workload)

    return run


def worst_loss(first, second):
    """Largest |ln P/Q| over transcripts; infinite where only one law can release it."""
    loss = 0.0
    for key in first.keys() | second.keys():
        p, q = first.get(key, 0.0), second.get(key, 0.0)
        if p or q:
            loss = max(loss, abs(math.log(p / q)) if p and q else math.inf)
    return loss


def cost(monkeypatch, plan, *, neighbours=NEIGHBOURS, queries=CLASS, stop=12, values=None, **options):
    """Worst log-ratio of all transcripts over the neighbours."""
    losses = []
    for first, second in neighbours:
        workload = Workload.of(queries, DOMAIN, sum(first))
        units = workload.units
        listed = values or [
            -4,
            *range(0, units + 1, units // 5),
            *(int(units * one) for one in (0.33, 0.9)),
            units + 4,
        ]
        walker = Walker(monkeypatch, sorted(set(listed)), **options)
        laws = [walker.law(run_of(counts, plan, workload, stop)) for counts in (first, second)]
        losses.append(worst_loss(*laws))
    return max(losses)


# The claim, and that it is tight


@pytest.mark.parametrize("distinguisher", ["noisy max", "exponential"])
@pytest.mark.parametrize(("epsilon", "rounds"), [(1.0, 1), (2.0, 2)])
def test_pure_construction_costs_its_epsilon_and_no_less(monkeypatch, epsilon, rounds, distinguisher):
    plan = paid_rounds(Budget(epsilon), rounds, "basic", distinguisher=distinguisher)

    loss = cost(monkeypatch, plan, neighbours=NEIGHBOURS if rounds == 1 else NEIGHBOURS[1:3])

    assert 0.97 * epsilon < loss <= epsilon * TIGHT


def test_fractional_weights_are_paid_for_on_the_grid(monkeypatch):
    plan = paid_rounds(Budget(1.0), 1, "basic", sensitivity=2)

    loss = cost(monkeypatch, plan, queries=HALVES)

    assert 2 == Workload.of(HALVES, DOMAIN, 100).sensitivity
    assert 0.9 < loss <= TIGHT


def test_the_whole_iterative_construction_costs_its_epsilon_with_its_early_stop(monkeypatch):
    walker = Walker(monkeypatch, [-9, 0, 250, 667, 800, 1000, 1300, 2009])
    laws, stops = [], set()
    for counts in ((1000, 900, 100), (999, 901, 100)):
        data, noise = PrivateData(np.array(counts), DOMAIN), SimulatedNoise(0)
        workload = Workload.of(CLASS, DOMAIN, 2000)

        def run(data=data, noise=noise, workload=workload):
            built = iterative_construction(
                data, CLASS, Budget(1.0), update=MeasuredWeights(), rounds=2, noise=noise
            )
            stops.add((built.stopped, len(built.measurements)))
            return transcript(built, workload)

        laws.append(walker.law(run))

    assert {(True, 1), (True, 2), (False, 2)} == stops
    assert 0.7 < worst_loss(*laws) <= TIGHT


def test_mwem_costs_its_epsilon(monkeypatch):
    walker = Walker(monkeypatch, [-9, 0, 20, 33, 50, 90, 109])
    laws = []
    for counts in NEIGHBOURS[1]:
        data, noise = PrivateData(np.array(counts), DOMAIN), SimulatedNoise(0)
        workload = Workload.of(CLASS, DOMAIN, 100)

        def run(data=data, noise=noise, workload=workload):
            return transcript(mwem(data, CLASS, Budget(2.0), rounds=2, noise=noise), workload)

        laws.append(walker.law(run))

    assert 1.4 < worst_loss(*laws) <= 2.0 * TIGHT


# Planted breaches


def test_breach_each_round_at_epsilon_over_t_for_epsilon_over_2t(monkeypatch):
    plan = paid_rounds(Budget(2.0), 1, "basic")

    assert 1.9 < cost(monkeypatch, plan)


def test_breach_choice_with_half_its_noise(monkeypatch):
    plan = paid_rounds(Budget(1.0), 1, "basic")
    breach = attrs.evolve(plan, choice=NoisyMax(2 * plan.choice.epsilon))

    assert 1.4 < cost(monkeypatch, breach)


def test_breach_sensitivity_of_the_scores_halved(monkeypatch):
    plan = paid_rounds(Budget(1.0), 1, "basic", sensitivity=2)
    breach = attrs.evolve(plan, choice=NoisyMax(plan.choice.epsilon, sensitivity=1))

    assert 1.3 < cost(monkeypatch, breach, queries=HALVES)


def test_breach_noise_of_the_choice_released_with_the_answer(monkeypatch):
    plan = paid_rounds(Budget(1.0), 1, "basic")

    assert math.inf == cost(monkeypatch, plan, reuse=True)


def by_hand(counts, plan, workload, walker, stop, *, true_gap):
    """Algorithm 8 written out again, with the early stop on the noisy value or on the true gap."""
    rule, data = MultiplicativeWeights(rate=0.05), PrivateData(np.array(counts), DOMAIN)

    def run():
        hypothesis, released, past = rule.init(DOMAIN), [], ()
        exact = workload.exact(data)
        for _ in range(plan.rounds):
            guesses = workload.guesses(hypothesis)
            index = plan.choose(np.abs(exact - guesses), None)
            value = int(plan.answer(exact[index : index + 1], None)[0])
            released.append((index, float(value)))
            if abs((int(exact[index]) if true_gap else value) - int(guesses[index])) < stop:
                return (*released, True)
            past = (*past, ic.Measurement(workload.queries[index], np.array([value / workload.units]), 1.0))
            hypothesis = rule.update(hypothesis, past, 0.1)
        return (*released, False)

    return walker.law(run)


def test_breach_early_stop_on_the_true_gap(monkeypatch):
    plan = paid_rounds(Budget(2.0), 2, "basic")
    workload = Workload.of(CLASS, DOMAIN, 100)
    walker = Walker(monkeypatch, [-4, 0, 20, 33, 60, 90, 104])
    pair = (45, 30, 25), (44, 30, 26)  # the gap is 12, then 11
    shipped = [walker.law(run_of(counts, plan, workload, 12)) for counts in pair]
    faithful, breach = (
        [by_hand(counts, plan, workload, walker, 12, true_gap=true_gap) for counts in pair]
        for true_gap in (False, True)
    )

    assert shipped == faithful
    assert worst_loss(*shipped) <= 2.0 * TIGHT
    assert math.inf == worst_loss(*breach)


# Zero-concentrated accounting


@pytest.mark.parametrize("distinguisher", [None, "noisy max", "exponential"])
@pytest.mark.parametrize("rounds", [1, 7, 231])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-9), (0.1, 1e-6), (8.0, 1e-12)])
def test_rho_of_all_rounds_is_at_most_that_of_the_budget_exactly(epsilon, delta, rounds, distinguisher):
    capacity = Fraction(zcdp_rho(epsilon, delta))
    for sensitivity, tables in ((1, False), (1 << 10, False), (1 << 10, True)):
        plan = paid_rounds(
            Budget(epsilon, delta),
            rounds,
            "zcdp",
            sensitivity=sensitivity,
            distinguisher=distinguisher,
            tables=tables,
        )
        chosen = Fraction(plan.choice.epsilon) ** 2 / (2 if distinguisher == "noisy max" else 8)
        answered = Fraction(2 if tables else sensitivity**2) / (2 * plan.scale**2)

        assert chosen + answered == plan.price
        assert rounds * plan.price <= capacity
        assert capacity == plan.capacity
        # nothing is wasted: no larger epsilon, no smaller sigma would do
        share = capacity / rounds
        wider = Fraction(math.nextafter(plan.choice.epsilon, math.inf)) ** 2 / (
            2 if distinguisher == "noisy max" else 8
        )
        assert wider > share / 2 or plan.choice.epsilon == 20.0
        assert plan.scale == 1 or (
            chosen + Fraction(2 if tables else sensitivity**2) / (2 * (plan.scale - 1) ** 2) > share
        )


def test_noise_asked_for_under_zcdp_is_one_word_and_one_gaussian_a_round():
    budget, rounds = Budget(1.0, 1e-9), 20
    plan = paid_rounds(budget, rounds, "zcdp")
    noise = ScriptedNoise([2**62, 3] * rounds)
    data = PrivateData(np.array([500, 300, 200]), DOMAIN)
    learned = mwem(data, CLASS, budget, rounds=rounds, noise=noise)

    sigma = math.ceil(math.sqrt(rounds / zcdp_rho(1.0, 1e-9)))
    assert sigma == plan.scale
    assert [("words", None, 1), ("discrete_gaussian", sigma, 1)] * rounds == noise.scales
    assert plan == learned.plan


def renyi(p, q, order):
    logs = order * np.log(p) + (1 - order) * np.log(q)
    return (math.log(np.exp(logs - logs.max()).sum()) + logs.max()) / (order - 1)


SCORES = [(0, 0), (0, 5), (3, 0), (0, 0, 0), (7, 0, 2), (0, 30, 1)]
ORDERS = (1.001, 2.0, 8.0, 64.0)


def steepest(mechanism, law):
    """Largest Renyi divergence per order, over scores and all their moves by one."""
    return max(
        renyi(
            law(np.array(scores), float(mechanism.scale)),
            law(np.array(scores) + move, float(mechanism.scale)),
            order,
        )
        / order
        for scores in SCORES
        for move in map(np.array, itertools.product((-1, 0, 1), repeat=len(scores)))
        for order in ORDERS
    )


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_exponential_choice_costs_an_eighth_of_epsilon_squared(epsilon):
    mechanism = ExponentialMechanism(epsilon)

    worst = steepest(mechanism, exponential_law)

    assert 0.94 * float(mechanism.zcdp) < worst <= float(mechanism.zcdp) * TIGHT


def test_breach_noisy_max_charged_as_the_exponential_mechanism():
    mechanism = NoisyMax(0.5)

    worst = steepest(mechanism, noisy_max_law)

    assert 3 * 0.5**2 / 8 < worst <= 0.5**2 / 2
