"""What a session believes: a fold of the update rule over public records, and nothing else."""

from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError
from onlineic.ledger import BoughtTables, Easy, Forfeited, Hard, Reserved, UpdateFailed
from onlineic.noise import SimulatedNoise
from onlineic.queries import Measurement
from onlineic.session.belief import Belief, measured, replay

DOMAIN = ic.Domain.of(a=3, b=2)
FIRST, SECOND, THIRD = (ic.where(a=a).bind(DOMAIN) for a in range(3))
COST = Charge(Fraction(1, 5), "a hit")
ALPHA = 0.1


def released(query, value):
    return Measurement(query, np.array([value]), 0.01)


def hit(query, value):
    return Hard(query, 0, released(query, value), COST)


class Moody(ic.UpdateRule):
    """Fails at every second measurement."""

    def init(self, domain, prior=None):
        return ic.Histogram(domain)

    def update(self, hypothesis, measurements, alpha):
        if len(measurements) % 2 == 0:
            raise ArithmeticError("not today")
        query, value, guess = measurements[-1].against(hypothesis)
        return hypothesis.tilted(query, alpha if value >= guess else -alpha)

    def update_bound(self, domain, alpha):
        return None


class Endless(ic.UpdateRule):
    """Believes no number."""

    def init(self, domain, prior=None):
        return ic.Histogram(domain)

    def update(self, hypothesis, measurements, alpha):
        class Unsure:
            def evaluate(self, query):
                return float("nan")

        return Unsure()

    def update_bound(self, domain, alpha):
        return None


def test_what_is_learned_from_is_a_release_and_nothing_else():
    one, other = released(FIRST, 0.5), released(SECOND, 0.25)

    assert (one,) == measured(Hard(FIRST, 0, one, COST))
    assert (one, other) == measured(BoughtTables((one, other), COST))
    assert [()] * 4 == [
        measured(record)
        for record in (Easy(FIRST, 0), Reserved(COST), Forfeited(COST, ""), UpdateFailed("X"))
    ]


def test_a_learned_belief_is_a_new_one_and_shows_the_rule_all_that_was_released_oldest_first():
    seen = []

    class Watching(ic.UpdateRule):
        def init(self, domain, prior=None):
            return ic.Histogram(domain)

        def update(self, hypothesis, measurements, alpha):
            seen.append((measurements, alpha))
            return hypothesis.tilted(measurements[-1].target, alpha)

        def update_bound(self, domain, alpha):
            return None

    start = Belief(ic.Histogram(DOMAIN))
    one, other = released(FIRST, 0.5), released(SECOND, 0.25)
    belief = start.learned((one,), Watching(), ALPHA).learned((other,), Watching(), ALPHA)

    assert [((one,), ALPHA), ((one, other), ALPHA)] == seen
    assert ((one, other), 2, 0) == (belief.measurements, belief.version, belief.failures)
    assert (0, ()) == (start.version, start.measurements)
    assert 1 / 3 == pytest.approx(start.hypothesis.evaluate(FIRST))
    assert belief.hypothesis.evaluate(FIRST) > 1 / 3 < belief.hypothesis.evaluate(SECOND)


def test_an_unmoved_belief_keeps_its_hypothesis_and_what_was_measured():
    start, one = Belief(ic.Histogram(DOMAIN)), released(FIRST, 0.5)
    belief = start.unmoved((one,))

    assert belief.hypothesis is start.hypothesis
    assert ((one,), 0, 1) == (belief.measurements, belief.version, belief.failures)


def test_an_update_to_something_that_gives_no_finite_number_has_failed():
    start = Belief(ic.Histogram(DOMAIN))

    with pytest.raises(ArithmeticError, match="must be finite"):
        start.learned((released(FIRST, 0.5),), Endless(), ALPHA)


# -- replay --------------------------------------------------------------------------------------------------


def test_replay_is_the_fold_of_the_rule_over_releases_that_were_not_followed_by_a_failure():
    rule, one, other, third = ic.MultiplicativeWeights(), hit(FIRST, 0.9), hit(SECOND, 0.9), hit(THIRD, 0.9)
    records = [Reserved(COST), Easy(THIRD, 0), one, Reserved(COST), other, UpdateFailed("X"), third]
    start = Belief(rule.init(DOMAIN))
    expected = start.learned((one.measurement,), rule, ALPHA).unmoved((other.measurement,))
    expected = expected.learned((third.measurement,), rule, ALPHA).hypothesis

    found = replay(iter(records), DOMAIN, rule, ALPHA)
    assert expected.probabilities().tobytes() == found.probabilities().tobytes()
    learned = replay(
        [record for record in records if not isinstance(record, UpdateFailed)], DOMAIN, rule, ALPHA
    )
    assert learned.probabilities().tobytes() != found.probabilities().tobytes()


def test_replay_of_nothing_is_where_the_rule_starts():
    prior = ic.Histogram(DOMAIN, [1, 2, 3, 4, 5, 6])
    rule = ic.MultiplicativeWeights()

    assert np.full((3, 2), 1 / 6) == pytest.approx(replay([], DOMAIN, rule, ALPHA).probabilities())
    assert prior.probabilities() == pytest.approx(replay([], DOMAIN, rule, ALPHA, prior).probabilities())


def test_replay_skips_the_updates_that_failed():
    session = ic.OnlineIC(
        PrivateData(np.array([50_000, 0, 0, 9, 0, 9]), DOMAIN),
        ic.Budget(5.0),
        hard_answers=15,
        threshold=0.05,
        update=Moody(),
        sparse="laplace",
        noise=SimulatedNoise(1),
    )
    session.answer_many([ic.where(a=a, b=b) for a in range(3) for b in range(2)])
    failed = sum(isinstance(record, UpdateFailed) for record in session.transcript)
    again = replay(session.transcript, DOMAIN, session.plan.update, session.plan.alpha)

    assert failed == session.statistics().update_failures >= 1
    assert session.hypothesis.probabilities().tobytes() == again.probabilities().tobytes()


def test_replay_from_a_prior_starts_there():
    prior = ic.Histogram(DOMAIN, [1, 2, 3, 4, 5, 6])
    data = PrivateData(np.array([50_000, 0, 0, 0, 0, 9]), DOMAIN)
    session = ic.OnlineIC(
        data,
        ic.Budget(5.0),
        hard_answers=5,
        threshold=0.05,
        prior=prior,
        sparse="laplace",
        noise=SimulatedNoise(0),
    )
    session.answer_many([ic.where(a=a) for a in range(3)])
    again = replay(session.transcript, DOMAIN, session.plan.update, session.plan.alpha, prior)

    assert 1 <= session.statistics().hard
    assert session.hypothesis.probabilities().tobytes() == again.probabilities().tobytes()


def test_a_rule_that_starts_from_no_hypothesis_is_refused_when_the_session_opens():
    class Nowhere(Moody):
        def init(self, domain, prior=None):
            return None

    data = PrivateData(np.full(DOMAIN.shape, 100), DOMAIN)
    with pytest.raises(
        InvalidParameterError, match=r"Nowhere\.init must return a hypothesis, got a NoneType"
    ):
        ic.OnlineIC(data, ic.Budget(1.0, 1e-9), update=Nowhere(), noise=SimulatedNoise(1))


def test_a_rule_that_starts_over_another_domain_is_refused_when_the_session_opens():
    class Elsewhere(Moody):
        def init(self, domain, prior=None):
            return ic.Histogram(ic.Domain.of(elsewhere=3))

    data = PrivateData(np.full(DOMAIN.shape, 100), DOMAIN)
    with pytest.raises(
        InvalidParameterError, match=r"Elsewhere\.init must .* over the domain that it was given"
    ):
        ic.OnlineIC(data, ic.Budget(1.0, 1e-9), update=Elsewhere(), noise=SimulatedNoise(1))
    assert () == data.budgets
