"""What is bought by what is asked: questions that buy nothing, and questions in a batch."""

import itertools
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import where
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.interactions import Predictor, cheapest
from onlineic.interactions.demand import Demand, asked_of
from onlineic.ledger import BoughtTables, Easy, EasyBatch, Hard
from onlineic.noise import SimulatedNoise
from onlineic.plan import Facts, PurchaseRule, TestsOnly, demand, session_plan
from onlineic.plan.demand import DemandPurchases
from onlineic.plan.settings import Settings
from onlineic.queries.expressions import joint
from onlineic.queries.partitions import Partition
from onlineic.session.quota import Quota

DOMAIN = ic.Domain.of(a=5, b=3, c=6, d=1)
TABLES = DemandPurchases(rent=0)  # no numbers come before them
COUNTS = np.random.default_rng(1).multinomial(2_000, np.full(DOMAIN.size, 1.0 / DOMAIN.size))


def listening(domain=DOMAIN, counts=COUNTS, rule=TABLES):
    data = PrivateData(counts.reshape(domain.shape), domain)
    noise = ic.noise.SimulatedNoise(1)
    return ic.OnlineIC(data, ic.Budget(1.0, 1e-9), purchases=rule, noise=noise)


def bought(session):
    return [record for record in session.transcript if isinstance(record, BoughtTables)]


@pytest.mark.parametrize("domain", [ic.Domain.of(a=1, b=1), ic.Domain.of(a=1, b=2)])
def test_a_cross_table_of_one_code_buys_nothing_of_its_own(domain):
    session = listening(domain, np.full(domain.shape, 50))

    assert session.answer(ic.marginal("a")).value.shape == (1,)


def test_a_table_of_one_code_behind_others_buys_nothing():
    session = listening()
    session.answer(where(a=1))
    before = len(bought(session))
    session.answer(ic.marginal("d"))

    assert before == len(bought(session)) == 1


def test_nothing_is_bought_where_all_tables_have_too_many_blocks():
    long = ic.Domain.of(a=[f"code {code}" for code in range(2**16 + 1)], b=2)
    design = cheapest(
        Predictor(long),
        Demand.of_these(long, [asked_of(Partition(long, (0,), (np.arange(2**16 + 1),)).block(0))]),
        1e6,
    )

    assert design.parts == {}
    assert design.before == design.after > 0.0


def test_a_whole_row_of_a_wide_table_can_be_asked():  # more levels than memory holds, or numpy has axes
    domain = ic.Domain.of({f"x{place}": 2 for place in range(80)} | {"one": 1})
    rows = np.random.default_rng(0).integers(0, 2, (500, 80))
    data = PrivateData.from_records(
        {name: rows[:, place] for place, name in enumerate(domain.names[:-1])} | {"one": np.zeros(500, int)},
        domain,
    )
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), purchases=TABLES, noise=ic.noise.SimulatedNoise(1))
    row = where(dict.fromkeys(domain.names[:70], 1)) & where(one=0)

    answer = session.answer(row)

    assert answer.value == pytest.approx(0.0, abs=0.1)
    assert session.answer(row).status == "repeat"
    assert len(bought(session)) == 1


def test_of_very_many_attributes_the_first_are_told_apart_and_the_rest_take_no_part():
    domain = ic.Domain.of({f"x{place}": 2 for place in range(14)})
    few, many = (
        asked_of(where({f"x{place}": 1 for place in range(count)}).bind(domain)) for count in (12, 14)
    )

    assert few.axes == few.told == tuple(range(12))
    assert many.axes == tuple(range(14))
    assert many.told == few.told
    assert many.energies == pytest.approx(few.energies / 16)  # half of the records each, squared, twice


def test_questions_of_one_call_are_heard_before_the_first_is_answered():
    """The first one asks of one attribute; what is bought before it serves the others too."""
    questions = [
        where(),
        where(a=1),
        *[where(b=1, c=code) for code in range(6)],
        where(a=1),
        ic.marginal("c"),
    ]
    alone, batch = listening(), listening()
    alone.answer(questions[1])
    answers = batch.answer_many(questions)
    targets = [[part.target for part in bought(held)[0].measurements] for held in (alone, batch)]
    first, second, *_ = bought(batch)

    assert targets[0] != targets[1]
    assert [one.key for one in first.heard] == [one.query.key for one in answers if one.status == "easy"][1:]
    assert first.heard == second.heard  # eight questions are more than one instalment
    assert "repeat" == answers[8].status
    rule, account = TABLES, batch.account
    assert first.charge.amount <= rule.parts[0] * rule.planned(account)  # the rest goes by what it tells


def test_what_was_answered_is_not_heard_again():
    session = listening()
    session.answer_many([where(a=code) for code in range(3)])
    before = len(bought(session))
    again = session.answer_many([where(a=code) for code in range(3)])

    assert before == len(bought(session))
    assert {"repeat"} == {one.status for one in again}


def test_a_call_of_many_questions_may_spend_what_as_many_would_one_by_one():
    session = listening()
    session.answer_many([where(a=a, b=b, c=c) for a in range(5) for b in range(3) for c in range(6)] * 3)
    rule, account = TABLES, session.account

    assert len(bought(session)[0].heard) == 90 <= rule.lookahead(rule.start()) == 1024
    spent = sum(one.charge.amount for one in bought(session))
    assert Fraction(9, 10) <= spent / (rule.parts[3] * rule.planned(account)) <= Fraction(11, 10)


def test_what_no_quota_pays_hears_those_alone_who_could_pay_for_a_test():
    asked = [where(a=1), where(b=1), where(c=1)]
    session = listening()
    session.paid_by(Quota("ann", Fraction(0))).outcomes(asked)
    assert [] == bought(session)
    session.paid_by(Quota("bob", session.account.capacity)).outcomes(asked)

    assert len(bought(session)[0].heard) > 0
    assert len(session.view().paid) == 0


def test_what_is_due_after_so_many_questions_of_one_call_is_bought_there():
    after = (1, 4, 16, 64, 256)
    rule = DemandPurchases(rent=0, after=after, parts=[Fraction(one, 5) for one in range(1, 6)])
    session, asked, last = listening(rule=rule), 0, 0
    ages, regions = ([(low, high) for low in range(size) for high in range(low, size - 1)] for size in (5, 6))
    session.answer_many(
        [where(a=ic.between(*a), b=b, c=ic.between(*c)) for b in (0, 1, 2) for a in ages for c in regions]
    )
    for record in session.transcript:
        last = asked if isinstance(record, BoughtTables) else last
        asked += len(record.queries) if isinstance(record, EasyBatch) else isinstance(record, Easy | Hard)

    assert 256 == last < asked


def test_tables_are_bought_for_what_is_left_or_not_at_all():
    """Their part of all is due; where others have used it up, what is left is for tests."""
    session, question = listening(), where(a=1).bind(DOMAIN)
    account, near = session.account, session.plan.sparse.neighbours
    due = TABLES.parts[0] * TABLES.planned(account)
    for left, bought_now in ((due, True), (due * Fraction(3, 4), False)):
        used = attrs.evolve(account, spent=account.capacity - left)
        facts = Facts(DOMAIN, 2_000, used, near, TABLES.start(), (question,))
        assert bought_now == (TABLES.next(facts) is not None)


@pytest.mark.parametrize("made", [{"share": 0}, {"after": (2, 3)}, {"after": (1,)}])
def test_shares_and_counts_that_do_not_rise_are_refused(made):
    with pytest.raises(InvalidParameterError, match="purchases must have"):
        DemandPurchases(**made)


@pytest.mark.parametrize("domain", [ic.Domain.of(a=8, b=8, c=8), ic.Domain.of(a=400)])
def test_a_default_rule_that_was_changed_is_refused_by_what_keeps_it_from_being_used(domain):
    """Its first tables are priced for the account of its own plan; the remedy of the message is one."""
    budget = ic.Budget(1.0, 1e-6)
    rule = session_plan(domain, 20_000, budget).purchases
    for change in ({"rent": Fraction(1, 4)}, {"share": Fraction(1, 2)}):
        with pytest.raises(
            InvalidParameterError, match=r"purchases\.first must be .* write first=None beside"
        ):
            session_plan(domain, 20_000, budget, purchases=attrs.evolve(rule, **change))
        plan = session_plan(domain, 20_000, budget, purchases=attrs.evolve(rule, **change, first=None))
        assert attrs.evolve(rule, **change, first=None) == plan.purchases


def test_a_share_may_be_a_float_and_names_itself_where_it_is_none():
    assert DemandPurchases(share=Fraction(1, 2)) == DemandPurchases(share=0.5)
    with pytest.raises(InvalidParameterError, match="share must be"):
        DemandPurchases(share="half")


@pytest.mark.parametrize("said", [-1, float("nan"), 10**30, "half"])
def test_what_a_rule_plans_must_be_paid_by_the_account(said):
    class Saying(Own):
        def planned(self, account):
            return said

    with pytest.raises(InvalidParameterError, match=r"Saying\.planned must be"):
        session_plan(DOMAIN, 2_000, ic.Budget(1.0, 1e-9), purchases=Saying())


def test_what_a_pure_session_buys_is_bounded_by_the_law_of_its_noise():
    """One attribute and one purchase: all that bounds an answer is Laplace noise, which the answer names."""
    data = PrivateData(COUNTS.reshape(DOMAIN.shape), DOMAIN)
    noise = ic.noise.SimulatedNoise(1)
    session = ic.OnlineIC(data, ic.Budget(1.0), purchases=TABLES, noise=noise)

    assert "laplace" == session.answer(where(a=1)).law
    assert "gaussian" == listening().answer(where(a=1)).law


def wide(told, **settings):
    """A session of fourteen attributes."""
    domain = ic.Domain.of({f"x{place}": 12 for place in range(14)})
    columns = {name: np.random.default_rng(2).integers(0, 12, 5_000) for name in domain.names}
    return ic.OnlineIC(PrivateData.from_records(columns, domain), told, **settings)


def test_announced_sets_are_bought_with_the_first_question():
    told = wide(ic.Budget(1.0, 1e-9), questions=[("x0", "x1"), "x2"])
    told.answer(where(x5=1))
    (record,) = bought(told)

    assert {0, 1, 2} == {axis for one in record.measurements for axis in one.target.axes}
    told.answer_many([where(x5=at) for at in range(2, 6)])  # what was not announced is in the next one
    assert 5 in {axis for one in bought(told)[1].measurements for axis in one.target.axes}
    assert 0.7 < told.statistics().spent < 0.95


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_the_last_bits_of_a_design_which_differ_between_processors_decide_nothing(delta, monkeypatch):
    """Scales lie on a grid, and charges follow from them: an audit elsewhere finds the same tables."""
    plain, released = demand.cheapest, []

    def elsewhere(*arguments, **settings):
        design = plain(*arguments, **settings)
        bits = itertools.cycle([1.0 - 1e-9, 1.0 + 1e-9, 1.0])
        return attrs.evolve(design, parts={key: next(bits) * part for key, part in design.parts.items()})

    for found in (plain, elsewhere):
        monkeypatch.setattr(demand, "cheapest", found)
        session = wide(ic.Budget(1.0, delta), purchases=TABLES, noise=SimulatedNoise(3))
        session.answer_many([where(x5=1, x6=2), where(x7=3)])
        released.append([(one.charge, [held.scale for held in one.measurements]) for one in bought(session)])

    assert released[0] == released[1]
    assert len(released[0][0][1]) > 1  # tables that divide the budget


def test_nothing_is_bought_without_purchases():
    alone = wide(ic.Budget(1.0, 1e-9), purchases=TestsOnly())
    alone.answer(where(x5=1))

    assert [] == bought(alone)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"announced": 5}, "announced must be a list, got 5"),
        ({"announced": ["ab"]}, "announced must be a list of places of attributes, got 'ab'"),
        ({"announced": [(1, 0)]}, r"rising places of attributes in the domain, got \(1, 0\)"),
        ({"announced": [()]}, r"rising places of attributes in the domain, got \(\)"),
        ({"announced": [(True,)]}, "rising places of attributes"),
        ({"reach": 5}, "reach must be a Reach or None, got a int"),
        ({"count": 0}, "count must be an integer >= 1"),
    ],
)
def test_what_is_no_set_of_attributes_is_refused_before_a_session_is(settings, said):
    with pytest.raises(InvalidParameterError, match=said):
        DemandPurchases(**settings)


def test_sets_of_another_domain_are_refused_before_anything_is_spent():
    data = PrivateData(COUNTS.reshape(DOMAIN.shape), DOMAIN)
    with pytest.raises(InvalidParameterError, match="announced must hold places in a domain of"):
        ic.OnlineIC(data, ic.Budget(1.0), purchases=DemandPurchases(announced=[(0, len(DOMAIN.shape))]))

    assert ([], 0) == (list(data.budgets), data.reads)
    assert ((0, 1),) == DemandPurchases(announced=[[0, 1]]).announced


def test_an_answer_is_told_again_after_a_purchase_too():
    session = listening()
    first = session.answer(where(a=1))
    again = session.answer(where(a=1))
    for code in range(4):
        session.answer(where(a=code, b=1))
    later = session.answer(where(a=1))

    assert ("easy", "repeat", "repeat") == (first.status, again.status, later.status)
    assert first.value == again.value
    assert 2 <= len(bought(session))
    assert "bought as questions come, for up to 90% of the budget" in str(session.summary())
    assert session.explain(where(b=1)).left < 0.2  # what questions to come will buy is not left


def test_what_is_expected_of_an_answer_counts_the_tables_that_it_would_buy():
    session = listening()
    first = session.explain(where(a=1)).expected
    assert 0.0 < first < 0.2
    assert [] == bought(session)
    assert "expected error" not in str(session.summary())
    session.answer(where(a=1))

    assert session.explain(where(a=1)).expected == pytest.approx(first, rel=0.5)
    assert 0.0 == session.explain(where()).expected
    assert session.explain(where(a=1)).expected == session.view().explain(where(a=1)).expected
    assert session.summary().expected > 0.0
    assert "of its first answers; no promise" in str(session.summary())
    alone = ic.OnlineIC(
        PrivateData(COUNTS.reshape(DOMAIN.shape), DOMAIN), ic.Budget(1.0), purchases=TestsOnly()
    )
    assert alone.explain(where(a=1)).expected is None


class Own(PurchaseRule):
    """A rule of nobody's but mine."""

    def start(self):
        return None

    def heard(self, so_far, record):
        return None

    def next(self, facts):
        return None


def test_questions_announce_the_attributes_that_they_name():
    asked = [
        where(a=1) & ~where(b=2),
        ic.marginal("c", where=where(a=1)),
        joint(("b", "c"), np.zeros((3, 6))),
    ]
    sets = [("a", "b"), ("a", "c"), ("c", "b")]

    by_questions, by_sets = (Settings(ic.Budget(1.0, 1e-9), questions=one) for one in (asked, sets))

    assert by_questions.announced.sets == by_sets.announced.sets == (("a", "b"), ("a", "c"), ("b", "c"))
    assert (3, None) == (by_questions.announced.count, by_sets.announced.count)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"purchases": 3}, "purchases must be a PurchaseRule, got a int"),
        (
            {"purchases": DemandPurchases(), "certify": 0.1},
            "purchases must be None or TestsOnly with certify",
        ),
        ({"purchases": TestsOnly}, r"got the class TestsOnly; write TestsOnly\(\), or leave it out"),
        ({"questions": []}, "questions must name attributes, got none"),
        ({"questions": [("a", "a")]}, "that name some, got"),
        ({"questions": "a"}, "questions must be a list"),
        ({"questions": [where()]}, "or questions that name some, got"),
        (
            {"questions": ["a"], "update": ic.MaximumEntropy()},
            "questions must be None or a number where rule",
        ),
        ({"purchases": Own(), "ledger": "unused.db", "table": "t"}, "with a ledger file, which others read"),
    ],
)
def test_what_cannot_be_bought_or_announced_is_refused_by_name(settings, message):
    data = PrivateData(COUNTS.reshape(DOMAIN.shape), DOMAIN)
    with pytest.raises(InvalidParameterError, match=message):
        ic.OnlineIC(data, ic.Budget(1.0, 1e-9), **settings)


def test_a_name_that_is_no_attribute_is_refused():
    data = PrivateData(COUNTS.reshape(DOMAIN.shape), DOMAIN)
    with pytest.raises(InvalidQueryError, match="nope"):
        ic.OnlineIC(data, ic.Budget(1.0, 1e-9), questions=["nope"])
