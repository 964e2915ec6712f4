"""Sessions and their records."""

import math
from fractions import Fraction
from functools import cache

import numpy as np

import onlineic as ic
from onlineic.ledger import BoughtTables, Forfeited, Hard, Reserved
from onlineic.plan import Settings, settled_purchases
from onlineic.plan.purchase import check_bought

# 300,000 records, most of them in few of 240 cells: attributes that depend on each other
WIDE = ic.Domain.of(a=4, b=3, c=20)
WIDE_COUNTS = (
    np.random.default_rng(2)
    .multinomial(300_000, np.random.default_rng(1).dirichlet(np.full(240, 0.1)))
    .reshape(WIDE.shape)
)
uniform = cache(ic.Histogram)


class Still(ic.UpdateRule):
    """Learns nothing: a session believes for ever what it is given, or that all cells are alike."""

    def __init__(self, hypothesis=None):
        self.hypothesis = hypothesis

    def init(self, domain, prior=None):
        return uniform(domain) if self.hypothesis is None else self.hypothesis

    def update(self, hypothesis, measurements, alpha):
        return hypothesis

    def update_bound(self, domain, alpha):
        return None


def hits(session):
    return [record for record in session.transcript if isinstance(record, Hard)]


def reserved(session):
    """Amounts that were reserved, in order."""
    return [record.charge.amount for record in session.transcript if isinstance(record, Reserved)]


def all_spent(session):
    """Recorded charges and the standing reservation."""
    standing = session.reserved
    return session.account.spent + (standing.amount if standing is not None else 0)


def plan_once(monkeypatch, plan):
    """Let every session from here on have this plan: plans take longer to make than sessions to run."""
    for name in ("session_plan", "textbook_plan"):
        monkeypatch.setattr(f"onlineic.session.session.{name}", lambda *arguments, **settings: plan)


def listens_first(monkeypatch):
    """Let a session buy tables by what is asked, though its cells be few enough for one table of all."""
    monkeypatch.setattr("onlineic.plan.forecasts.MOST_CELLS", 0)


def settled(domain, n, budget, **settings):
    """Return one purchase of tables of all pairs, settled before anything is asked."""
    return settled_purchases(domain, n, Settings(budget, **settings))


def tests_alone(monkeypatch):
    """Let the noise of first tables bound nothing: what is stated is what tests and hard answers prove."""
    for name in ("bounds", "columns"):
        monkeypatch.setattr(f"onlineic.session.{name}.known_bound", lambda *_: math.inf)


def charged(ledger):
    """The sum of what is recorded: releases, burns and the standing reservation."""
    paid = sum(
        one.charge.amount for one in ledger.records() if isinstance(one, Hard | BoughtTables | Forfeited)
    )
    return paid + (ledger.reserved.amount if ledger.reserved is not None else 0)


def begun(session):
    """Return the session, once it has bought its first tables."""
    assert session.hypothesis is not None
    return session


def sold_quieter(monkeypatch):
    """Let sessions release what they buy with nine tenths of the noise that it was priced for."""

    def quieter(*asked):
        tables = check_bought(*asked)  # whatever a rule names is priced here, once more
        object.__setattr__(tables, "scales", tuple(scale * Fraction(9, 10) for scale in tables.scales))
        return tables

    monkeypatch.setattr("onlineic.session.core.check_bought", quieter)
