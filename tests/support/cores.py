"""A core around one mechanism, with a rule that learns nothing; and the loop of a session."""

import attrs
import pytest

from onlineic.hypothesis import Histogram
from onlineic.ledger import MemoryLedger
from onlineic.noise import SimulatedNoise
from onlineic.plan import Plan, TestsOnly
from onlineic.session.answers import AnswerBook
from onlineic.session.belief import Belief
from onlineic.session.core import Core
from onlineic.session.loop import Loop
from support.sessions import Still


def core_of(data, sparse, partitions=None, noise=None, rule=None):
    """Return a core that tests by this mechanism and buys by this rule, and its ledger."""
    ledger, domain = MemoryLedger(), data.domain
    ledger.claim("a test", sparse.account())
    rule = TestsOnly() if rule is None else rule
    plan = Plan(
        sparse, Still(), 0.1, 0.05, 1000, 3, 0.1, False, partitions=partitions, restarts=0, purchases=rule
    )
    book = AnswerBook(plan, domain, data.n, ledger, Belief(Histogram(domain)), private=False)
    return Core(data, SimulatedNoise(1) if noise is None else noise, book), ledger


def payable(core, questions):
    """Return which of the leading questions the core sets aside a price for."""
    return [*core.cover(questions).payable]


def put_to_test(core, questions, guesses):
    """Test questions, once a price is set aside for them."""
    core.test(core.cover(questions), guesses)


def with_loop(make, *arguments, **settings):
    """Return the one session that is made so, and the loop that answers its questions."""
    loops, restore = [], Loop.restore

    def restored(loop, core):
        loops.append(loop)
        restore(loop, core)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Loop, "restore", restored)
        session = make(*arguments, **settings)
    (loop,) = loops
    return session, loop


def replanned(plan, **tables):
    """Return a plan whose settled purchases are others."""
    return attrs.evolve(plan, purchases=attrs.evolve(plan.purchases, **tables))
