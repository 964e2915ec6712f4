"""Bounds of several answers, and the probabilities that are stated for them."""

import itertools
import math
import warnings
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import where
from onlineic.accounting import Charge
from onlineic.errors import MoreThanAnnouncedWarning, OtherRulesWarning
from onlineic.ledger import Hard
from onlineic.noise import SimulatedNoise
from onlineic.plan import ALL_HARD, DemandPurchases, PurchaseRule
from onlineic.plan.purchase import Purchase
from onlineic.queries import Answer
from onlineic.queries.partitions import one_way
from onlineic.questions import Answering, PublicFacts
from onlineic.session import durable
from onlineic.sparse import GumbelSparse, Hit
from support.ledgers import opened, queries, resumed, table

DOMAIN = ic.Domain.of(age=range(12), sex=["F", "M"])
BETA = 0.05


class Other(Answering):
    """Answers .15 to everything, each with a bound of its own, and any bound of all at once."""

    facts = PublicFacts(DOMAIN, 1000, BETA)

    def __init__(self, own, together):
        self.own, self.together = own, together

    def answer(self, query):
        return Answer(0.15, 150.0, "easy", self.own)

    def joint_bounds(self, queries, answers):
        return np.full(len(answers), self.together)


def test_a_mean_that_was_answered_is_answered_again_however_bad_other_answers_were():
    first = Other(0.0605, math.inf).mean("age", where(sex="F"))
    later = Other(0.0605, 0.64).mean("age", where(sex="F"))

    assert first.error_bound == later.error_bound
    assert later.confidence == pytest.approx(1 - 2 * BETA)


def test_bounds_of_all_answers_at_once_are_taken_where_they_are_no_larger():
    assert Other(0.06, 0.06).mean("age", where(sex="F")).confidence == 1 - BETA


def test_bounds_are_compared_by_the_probability_that_is_left_of_them():
    """Twelve bounds of their own hold together with probability .4: those at once are better."""
    found = Other(0.05, 0.06).cdf("age", where(sex="F"))

    assert len(found.answers) == 12
    assert found.confidence == 1 - BETA
    assert (Other(0.05, 0.2).cdf("age", where(sex="F")).confidence) == pytest.approx(1 - 12 * BETA)


def test_bounds_that_hold_together_with_no_probability_are_never_taken():
    assert Other(0.05, 0.9).group_by(["age", "sex"]).confidence == 1 - BETA


def announced(count, **settings):
    generator = np.random.default_rng(1)
    columns = {"age": generator.integers(0, 12, 3000), "sex": generator.choice(["F", "M"], 3000)}
    data = ic.PrivateData.from_records(columns, DOMAIN)
    return ic.OnlineIC(
        data,
        ic.Budget(1.0, 1e-9),
        max_queries=count,
        questions=count,
        noise=SimulatedNoise(1),
        **settings,
    )


def singly(session, ages):
    for age in ages:
        session.answer(where(age=age))


def together(session, ages):
    session.answer_many([where(age=age) for age in ages])


@pytest.mark.parametrize("ask", [singly, together])
def test_the_first_answer_beyond_those_announced_says_so_once(ask):
    session = announced(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(session, range(4))
    with pytest.warns(MoreThanAnnouncedWarning, match="got max_queries=4 and more answers") as told:
        ask(session, range(4, 8))

    assert len(told) == 1
    assert session.statistics().error_bound == math.inf


def test_an_answer_beyond_those_announced_is_given_where_warnings_are_errors():
    session = announced(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        singly(session, range(2))

    assert session.statistics().asked == 2


def test_bounds_that_hold_by_themselves_alone_are_not_said_to_hold_together():
    session = announced(3, certify=0.5)
    groups = session.group_by(["age", "sex"], ~where(sex="M", age=3))

    assert groups.confidence == 0.0
    assert "(not sure together, each by itself, 24 answers" in repr(groups)


def fires(patched):
    """Let every test fire, as it may by chance; return the failure probabilities of the radii worked out."""
    step, radius, found = GumbelSparse.step, GumbelSparse.sum_radius, list[float]()

    def stepped(self, state, gap, moved, noise):
        return step(self, state, gap, moved, noise)[0], Hit(side=1, excess=0)

    def told(self, target, weights, beta):
        found.append(beta)
        return radius(self, target, weights, beta)

    patched.setattr(GumbelSparse, "step", stepped)
    patched.setattr(GumbelSparse, "sum_radius", told)
    return found


def test_hits_that_come_before_tables_share_what_all_hits_may_fail_with(monkeypatch):
    """What tables are planned to cost goes to hits where these come first."""
    domain = ic.Domain.of(dict.fromkeys("abcdefgh", 4))
    table = ic.PrivateData.from_records(
        {
            name: np.random.default_rng(place).integers(0, 4, 20_000)
            for place, name in enumerate(domain.names)
        },
        domain,
    )
    session = ic.OnlineIC(
        table, ic.Budget(1.0, 1e-6), purchases=DemandPurchases(rent=0), noise=SimulatedNoise(1)
    )
    shares, betas = [], fires(monkeypatch)
    for names in itertools.combinations(domain.names, 2):
        betas.clear()
        if session.answer(where(dict.fromkeys(names, 1))).status == "hard":
            shares.append(min(betas))
    hits = [one.charge.amount for one in session.transcript if isinstance(one, Hard)]
    account = session.account

    assert len(hits) == len(shares)
    assert sum(hits) > account.capacity - session.plan.purchases.planned(account)
    assert sum(shares) <= ALL_HARD * session.plan.tested_beta


def test_hits_of_a_file_whose_tables_never_come_share_what_all_may_fail_with(tmp_path, monkeypatch):
    """Its first tables were planned by other rules, and not bought by them."""
    path = tmp_path / "session.db"
    with monkeypatch.context() as before:
        before.setattr(durable, "RULES", "others")
        opened(path).close()
    shares, betas = [], fires(monkeypatch)
    with pytest.warns(OtherRulesWarning):
        session = resumed(path)
    with session:
        for question in queries(50):
            betas.clear()
            if session.answer(question).status == "hard" and betas:
                shares.append(min(betas))
        assert sum(shares) <= ALL_HARD * session.plan.tested_beta


@attrs.frozen
class SaidAlone(PurchaseRule):
    """Says which tables come first, and buys none."""

    fixed: Purchase | None

    def start(self):
        return None

    def heard(self, so_far, record):
        return None

    def next(self, facts):
        return None


def test_hits_share_what_all_may_fail_with_where_a_rule_never_buys_what_it_says(monkeypatch):
    data, budget = table(), ic.Budget(1.0, 1e-6)
    account = ic.OnlineIC(data, budget, purchases=SaidAlone(None), noise=SimulatedNoise(1)).account
    charge = Charge(account.capacity * Fraction(3, 4), "tables", account.unit, account.order)
    tables = Purchase((one_way(data.domain, 0),), (2**10,), charge, False)
    session = ic.OnlineIC(data, budget, purchases=SaidAlone(tables), noise=SimulatedNoise(1))
    shares, betas = [], fires(monkeypatch)
    for question in queries(60):
        betas.clear()
        if session.answer(question).status == "hard" and betas:
            shares.append(min(betas))

    assert session.account.spent > account.capacity / 4
    assert sum(shares) <= ALL_HARD * session.plan.tested_beta
