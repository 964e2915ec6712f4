"""An interrupt or a failure at every line of a session: its record is learned, counted and remembered.

Lines are those of the modules through which an answer goes. At the first visit of each, and in the audit at
every visit, something is raised; then the session, or another one opened on the same ledger, is asked on.
"""

import logging
import os
import warnings
from collections import Counter

import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import SessionSealedError
from onlineic.ledger import BoughtTables, Easy, Forfeited, Hard, MemoryLedger, Reserved, UpdateFailed, records
from onlineic.ledger import memory as ledger
from onlineic.noise import SimulatedNoise
from onlineic.queries import Query
from onlineic.session import answers as releases
from onlineic.session import belief as transcript
from onlineic.session import core, prices, read_guard, session
from onlineic.updates import FittedTables
from support.failures import Traced

FILES = {
    os.path.realpath(module.__file__)
    for module in (core, ledger, prices, records, releases, read_guard, session, transcript)
}
DOMAIN = ic.Domain.of(a=4, b=3)
COUNTS = np.array([[4000, 0, 10], [0, 500, 100], [2000, 7, 3], [0, 0, 489]])
DATA = PrivateData(COUNTS, DOMAIN)  # of one table: only there may a ledger be taken over
ASKED = [
    ic.where(a=0, b=0),
    [ic.where(b=1), ic.where(a=ic.between(1, 2)), ic.where(b=1), ic.where(), ic.where(a=2, b=2)],
    ic.where(a=0, b=0),
]
TABLES = [ic.marginal("a", "b")]


def tilted(rule, hypothesis, measurements, alpha):
    """Learn something from every release that no two of them teach alike, without a fit."""
    target = measurements[-1].target
    return hypothesis.tilted(target if isinstance(target, Query) else target.block(0), 0.1)


class Twice(ic.UpdateRule):
    """Multiplicative weights that fail on every second release."""

    def init(self, domain, prior=None):
        return ic.Histogram(domain)

    def update(self, hypothesis, measurements, alpha):
        if len(measurements) % 2 == 0:
            raise ArithmeticError
        return tilted(self, hypothesis, measurements, alpha)

    def update_bound(self, domain, alpha):
        return None


SESSIONS = {
    "gumbel": {
        "budget": ic.Budget(1.0, 1e-6),
        "hard_answers": 4,
        "threshold": 0.02,
        "update": ic.MaximumEntropy(1),
        "asked": ASKED + TABLES,
    },
    "pure": {
        "budget": ic.Budget(1.0),
        "hard_answers": 4,
        "threshold": 0.02,
        "update": ic.MaximumEntropy(1),
        "asked": ASKED + TABLES,
    },
    "numbers": {
        "budget": ic.Budget(2.0),
        "hard_answers": 6,
        "threshold": 0.05,
        "release": "answer",
        "update": Twice(),
        "asked": ASKED,
    },
    "book": {"budget": ic.Budget(20.0), "asked": ASKED},
}


class Once(Traced):
    """Raises at one visit of one line of the traced files; or records all visits."""

    files = FILES

    def __init__(self, failure=None, line=None, visit=0):
        self.failure, self.line, self.left = failure, line, visit
        self.visits = []

    def stepped(self, frame, event, argument):
        place = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and self.line is None:
            self.visits.append(place)
        elif event == "line" and place == self.line:
            self.left -= 1
            if self.left < 0:
                self.fail(frame, self.failure)
        return self.stepped


def opened(name, kept):
    settings = {key: value for key, value in SESSIONS[name].items() if key != "asked"}
    data = DATA
    budget, noise = settings.pop("budget"), SimulatedNoise(3)
    if name == "book":
        return ic.OnlineIC.textbook(
            data, epsilon=budget.epsilon, max_queries=20, alpha=0.4, noise=noise, ledger=kept
        )
    return ic.OnlineIC(data, budget, noise=noise, ledger=kept, **settings)


def asked(session, name):
    for question in SESSIONS[name]["asked"]:
        if isinstance(question, list):
            session.answer_many(question)
        else:
            session.answer(question)


def planned():
    """Plans are made once: they are not what is interrupted here."""
    made = {}
    plan, book = session.session_plan, session.textbook_plan

    def kept(planner):
        def once(*arguments, **settings):
            key = (planner, arguments[2], settings.get("release"))
            if key not in made:
                made[key] = planner(*arguments, **settings)
            return made[key]

        return once

    return kept(plan), kept(book)


def check(opened_session, kept, name):
    """Everything that a record promises, whatever happened before."""
    believed = opened_session.hypothesis  # if it was interrupted before, the tables are bought now
    records = opened_session.transcript
    stats = opened_session.statistics()
    plan = opened_session.plan
    assert stats.hard == sum(isinstance(record, Hard) for record in records)
    assert stats.easy >= sum(isinstance(record, Easy) for record in records)
    assert kept.spent <= plan.sparse.account().capacity
    reserved = None
    for record in records:
        if isinstance(record, Reserved):
            reserved = record.charge
        elif isinstance(record, (Hard, BoughtTables, Forfeited)):
            assert record.charge == reserved
            reserved = None
        elif isinstance(record, Easy):
            assert reserved is not None
    assert reserved == kept.reserved
    charged = sum(
        record.charge.amount for record in records if isinstance(record, (Hard, BoughtTables, Forfeited))
    )
    assert charged + (reserved.amount if reserved is not None else 0) == kept.spent
    again = ic.replay(records, DOMAIN, plan.update, plan.alpha)
    assert again.probabilities().tobytes() == believed.probabilities().tobytes()
    if name != "book":  # which asks again
        for record in records:
            if isinstance(record, (Easy, Hard)):
                question = (
                    record.query if isinstance(record.query, Query) else ic.marginal(*record.query.names)
                )
                assert opened_session.answer(question).status == "repeat"


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    plan, book = planned()
    monkeypatch.setattr(session, "session_plan", plan)
    monkeypatch.setattr(session, "textbook_plan", book)
    monkeypatch.setattr(ic.MaximumEntropy, "init", Twice.init)  # nor are fits
    monkeypatch.setattr(FittedTables, "update", tilted)
    method = PrivateData.exact_counts, PrivateData.exact_counts_many
    held = []

    def reserved(read):
        def counts(*arguments):
            assert held[-1].reserved is not None, "a read without a reservation"
            return read(*arguments)

        return counts

    monkeypatch.setattr(PrivateData, "exact_counts", reserved(method[0]))
    monkeypatch.setattr(PrivateData, "exact_counts_many", reserved(method[1]))
    logging.getLogger("onlineic").setLevel(logging.CRITICAL)
    yield held
    logging.getLogger("onlineic").setLevel(logging.NOTSET)


def interrupted(name, failure, visits_of_a_line, held, apart=1):
    """Inject at each line, or one of so many; return how many injections, and how many left it open."""
    with Once() as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = MemoryLedger()
        held.append(kept)
        asked(opened(name, kept), name)
    total = open_after = 0
    for line, count in sorted(Counter(watch.visits).items())[::apart]:
        for visit in range(min(count, visits_of_a_line)):
            total += 1
            kept = MemoryLedger()
            held.append(kept)
            one = None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    with Once(failure, line, visit):
                        one = opened(name, kept)
                        asked(one, name)
                except (type(failure), SessionSealedError):
                    pass
                if one is None:  # nothing was paid: another session begins with its ledger
                    assert 0 == len(kept)
                    one = opened(name, kept)
                check(one, kept, name)
                if not one.statistics().sealed:
                    open_after += 1
                    one.answer(ic.where(a=3))
                    check(one, kept, name)
    return total, open_after


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("gumbel", KeyboardInterrupt()),
        pytest.param("pure", MemoryError(), marks=pytest.mark.audit),
        ("numbers", KeyboardInterrupt()),
        ("book", MemoryError()),
    ],
)
@pytest.mark.parametrize("apart", [3, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_what_the_record_holds_is_learned_counted_and_remembered_after_an_interrupt_at_every_line(
    name, failure, apart, fast
):
    """Of three lines one, in the suite."""
    total, open_after = interrupted(name, failure, 1, fast, apart)

    assert total > 150 // apart
    assert open_after > total // 2


@pytest.mark.audit
@pytest.mark.parametrize("failure", [KeyboardInterrupt(), MemoryError()], ids=["interrupt", "failure"])
@pytest.mark.parametrize("name", SESSIONS)
def test_so_it_is_at_every_visit_of_every_line(name, failure, fast):
    total, _ = interrupted(name, failure, 10**6, fast)

    assert total > 400


class Asking(ic.UpdateRule):
    """A rule that asks its own session."""

    session = None

    def init(self, domain, prior=None):
        return ic.Histogram(domain)

    def update(self, hypothesis, measurements, alpha):
        self.session.answer(ic.where(a=3))
        return hypothesis

    def update_bound(self, domain, alpha):
        return None


@pytest.mark.filterwarnings("ignore::onlineic.errors.UpdateFailedWarning")
def test_a_rule_that_asks_its_own_session_fails_and_the_answer_stands(fast):
    rule, kept = Asking(), MemoryLedger()
    fast.append(kept)
    one = ic.OnlineIC(
        PrivateData(COUNTS, DOMAIN), ic.Budget(2.0), hard_answers=4, threshold=0.05, release="answer",
        update=rule, noise=SimulatedNoise(1), ledger=kept,
    )  # fmt: skip
    rule.session = one
    answer = one.answer(ic.where(a=0))

    records = [record for record in one.transcript if isinstance(record, UpdateFailed)]

    assert ("hard", 1, [UpdateFailed("SessionStateError")]) == (
        answer.status,
        one.statistics().update_failures,
        records,
    )
    check(one, kept, "numbers")
