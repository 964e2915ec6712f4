"""First tables over a public prior: the same plan but for where the fit starts."""

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidParameterError
from onlineic.ledger import Opened
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan
from onlineic.queries import Measurement, Partition
from onlineic.queries.cuts import Cut
from onlineic.updates import FittedTables

DOMAIN = ic.Domain.of(a=6, b=5, c=4)
BUDGET = ic.Budget(1.0, 1e-9)
PRIOR = ic.Histogram(DOMAIN, np.arange(1.0, 121.0))


def test_a_prior_beside_first_tables_changes_no_purchase_no_charge_and_no_noise():
    alone = session_plan(DOMAIN, 4_000, BUDGET, purchases=ic.FixedTables())
    over = session_plan(DOMAIN, 4_000, BUDGET, purchases=ic.FixedTables(), prior=PRIOR)

    assert attrs.evolve(alone, update=over.update) == over
    assert FittedTables() == alone.update == over.update


def test_tables_are_fitted_over_the_prior():
    counts = np.random.default_rng(1).multinomial(4_000, np.full(120, 1 / 120))
    found = []
    for options in ({}, {"prior": PRIOR}):
        data = ic.PrivateData(counts, DOMAIN)
        session = ic.OnlineIC(data, BUDGET, purchases=ic.FixedTables(), noise=SimulatedNoise(1), **options)
        session.answer(ic.where(a=1, b=2))
        (opened,) = [one for one in session.transcript if isinstance(one, Opened)]
        found.append(
            ([one.values.tolist() for one in opened.measurements], session.hypothesis.probabilities())
        )

    assert found[0][0] == found[1][0]
    assert not np.allclose(found[0][1], found[1][1])


def test_rules_that_start_from_the_tables_themselves_take_no_prior():
    with pytest.raises(InvalidParameterError, match="prior must be None with FixedTables, unless"):
        session_plan(
            DOMAIN, 4_000, BUDGET, purchases=ic.FixedTables(), prior=PRIOR, update=ic.MultiplicativeWeights()
        )


def test_a_default_session_goes_on_from_a_public_start_after_hits_and_reopened():
    """The start is what its own fits are over, and not the even distribution."""
    rule = FittedTables()
    begun = rule.init(DOMAIN, PRIOR)
    table = Partition(DOMAIN, (0,), (Cut.at(6, [0, 3]),))
    measured = (Measurement(table, np.array([0.3, 0.7]), 0.001),)
    fitted = rule.update(begun, measured, 0.01)
    parts = np.asarray(fitted.probabilities())
    within = PRIOR.probabilities()

    assert np.allclose(parts.sum(axis=(1, 2))[:3].sum(), 0.3, atol=0.01)
    for place in (slice(0, 3), slice(3, 6)):  # what nothing was released of is as in the start
        assert np.allclose(parts[place] / parts[place].sum(), within[place] / within[place].sum(), rtol=1e-6)
    again = rule.restored(begun, measured, rule.parameters(fitted))
    assert np.array_equal(parts, again.probabilities())
