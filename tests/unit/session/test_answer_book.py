"""The public half of a session: answers, bounds and beliefs are a fold over its records."""

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge, Filter
from onlineic.ask.bind import bind_question
from onlineic.errors import UpdateFailedWarning
from onlineic.ledger import BoughtTables, Easy, Forfeited, Hard, MemoryLedger, Reserved, UpdateFailed
from onlineic.noise import SimulatedNoise
from onlineic.plan import EASY_OR_HARD, session_plan
from onlineic.queries import Measurement, Partition, derived
from onlineic.session.answers import AnswerBook
from onlineic.session.belief import Belief
from onlineic.testing import ScriptedNoise
from onlineic.updates import FittedTables
from support.failures import BrokenError, plant
from support.sessions import hits, tests_alone

DOMAIN = ic.Domain.of(a=4, b=3)
N, BETA = 30_000, 0.1
BUDGET = ic.Budget(1.0)
SETTINGS = {"hard_answers": 3, "max_queries": 20, "threshold": 0.05, "beta": BETA}
PLANS = {
    "numbers": session_plan(DOMAIN, N, BUDGET, sparse="laplace", **SETTINGS),
    "partitions": session_plan(DOMAIN, N, BUDGET, prior=ic.Histogram(DOMAIN), **SETTINGS),
}
BITS = PLANS["numbers"].sparse.grid_bits
QUERY, OTHER = ic.where(a=0).bind(DOMAIN, BITS), ic.where(b=1).bind(DOMAIN, BITS)
COST = Charge(Fraction(1, 4), "a hit")


def book(name="numbers", ledger=None, counted=None):
    plan = PLANS[name]
    if ledger is None:
        ledger = MemoryLedger()
        ledger.claim("a test", Filter(Fraction(1)))
    belief = Belief(plan.update.init(DOMAIN))
    return AnswerBook(plan, DOMAIN, N, ledger, belief, private=False, counted=counted), ledger


def released(ledger, *records):
    """Reserve and commit what a curator would."""
    if ledger.reserved is None:
        ledger.reserve(COST)
    ledger.commit(records)


def taken(answers):
    """Take everything in; return the answers among it."""
    found = []
    while answers.pending:
        found += [answer for answer in [answers.take()] if answer is not None]
    return found


def grid(query, share):
    return round(share * (N << query.grid_bits))


def number(query, value):
    return Hard(query, grid(query, 0.25), Measurement(query, np.array([value]), 0.01), COST)


def table(name="partitions", values=(0.4, 0.3, 0.2, 0.1), guess=0.4, query=QUERY):
    target = Partition(DOMAIN, (0,), (np.arange(4),))
    return Hard(query, grid(query, guess), Measurement(target, np.array(values), 0.01), COST)


# -- one record --------------------------------------------------------------------------------------------


def test_an_easy_record_is_the_guess_that_was_tested_with_the_bound_of_an_easy_answer():
    answers, ledger = book()
    released(ledger, Easy(QUERY, grid(QUERY, 0.3)))
    ((question, answer),) = taken(answers)

    assert (QUERY, "easy") == (question, answer.status)
    assert answer.value == pytest.approx(0.3, abs=1e-9)
    assert answer.error_bound == PLANS["numbers"].sparse.easy_radius(BETA / 2) + QUERY.rounding
    assert (0, {"easy": 1, "hard": 0, "repeat": 0, "untested": 0}) == (answers.belief.version, answers.counts)


def test_a_number_is_answered_as_measured_unclipped_and_teaches():
    answers, ledger = book()
    released(ledger, number(QUERY, 1.2))
    ((question, answer),) = taken(answers)

    assert (QUERY, "hard", 1.2, False) == (question, answer.status, answer.value, answer.private)
    assert answer.error_bound == min(PLANS["numbers"].sparse.hard_radius(QUERY, BETA / 2), 1.2)
    assert (1, 1) == (answers.belief.version, answers.counts["hard"])
    assert answers.belief.hypothesis.evaluate(QUERY) > 0.25


def test_what_is_no_answer_is_taken_without_one():
    answers, ledger = book()
    measured = Measurement(Partition(DOMAIN, (1,), (np.arange(3),)), np.array([0.2, 0.3, 0.5]), 0.01)
    ledger.reserve(COST)
    ledger.commit([BoughtTables((measured,), COST)])
    ledger.reserve(COST)
    ledger.forfeit()
    kinds = [type(record) for record in ledger.records()]

    assert [] == taken(answers)
    assert [Reserved, BoughtTables, Reserved, Forfeited] == kinds
    assert (1, (measured,)) == (answers.belief.version, answers.belief.measurements)
    assert 0 == sum(answers.counts.values())


@pytest.mark.parametrize("away", [0.0, 0.9, -0.9, 5.0])
def test_what_was_learned_is_the_answer_where_it_lies_within_the_noise_of_what_was_measured(away):
    """Of the measured sum, .4; the bound grows by the distance, of what learning has to be no further."""
    record, plan = table(), PLANS["partitions"]
    target, weights = record.measurement.target, derived(QUERY, record.measurement)[1]
    radius = plan.sparse.sum_radius(target, weights, EASY_OR_HARD * plan.tested_beta)

    class Fixed:
        def evaluate(self, query):
            return 0.4 + radius * away

    answer = book("partitions")[0]._hard(record, Belief(Fixed()))
    moved = radius * away if abs(away) <= 1.0 else 0.0
    assert answer.value == pytest.approx(0.4 + moved)
    assert answer.error_bound == pytest.approx(min(radius + abs(moved), max(answer.value, 1 - answer.value)))


def test_each_cell_of_a_measured_cross_table_is_what_was_learned_within_its_noise():
    """Of a table that was measured twice the fit to both; but for cells that lie too far from that."""
    question = bind_question(ic.marginal("a"), DOMAIN, BITS)
    answers, ledger = book("partitions")
    measured = np.array([(0.4, 0.3, 0.2, 0.1), (0.404, 0.296, 0.2, 0.1), (0.2, 0.3, 0.2, 0.3)])
    learned = []
    for values in measured:
        record = table(values=values)
        released(ledger, attrs.evolve(record, query=question, guess=(0, 0, 0, 0)))
        answer = taken(answers)[-1][1]
        hypothesis = answers.belief.hypothesis
        learned.append([hypothesis.evaluate(ic.where(a=code).bind(DOMAIN, BITS)) for code in range(4)])
        if len(learned) == 2:
            second = answer
    plan, target = PLANS["partitions"], record.measurement.target
    radius = plan.sparse.hard_radius(target, EASY_OR_HARD * plan.tested_beta, tests=plan.max_queries)
    moved = np.abs(learned[1] - measured[1]).max()

    assert learned[1] == pytest.approx([0.402, 0.298, 0.2, 0.1], abs=2e-3)
    assert second.value == pytest.approx(learned[1], abs=1e-4)
    assert second.error_bound == pytest.approx(radius + moved + plan.steps, abs=1e-4)
    assert (0.2, 0.3) == (answer.value[0], answer.value[3])
    assert answer.value[1:3] == pytest.approx(learned[2][1:3], abs=1e-4)


# -- what is known best of a hard answer -------------------------------------------------------------------

COUNTS = np.array([[0, 0, 0], [0, 5000, 100], [20_000, 7, 3], [0, 0, 4890]])
ABOVE = [0] * 6 + [4] * 3 + [0] * 3  # noise of the table of all cells: 12 records too many of QUERY
QUERY_OF_MANY, MANY = ic.where(a=2), 20_010 / N
FAR, OFF = [0, 0, 800, 0], [0, 0, 250, 0]  # of the measured blocks, whose deviation is 120 records


@attrs.frozen
class Hit:
    """The first answer of a session from all cells, as a test that fires makes it."""

    session: ic.OnlineIC
    answer: ic.Answer
    measured: float
    deviation: float
    radius: float  # of the measured value

    @classmethod
    def of(cls, cells, blocks):
        """Play the noise of the cells, a word that fires, and the noise of the blocks, in records."""
        noise = ScriptedNoise([*cells, 2**64 - 1, *blocks])
        data, budget = ic.PrivateData(COUNTS, DOMAIN), ic.Budget(1.0, 1e-6)
        session = ic.OnlineIC(data, budget, noise=noise, hard_answers=3)
        plan, answer = session.plan, session.answer(QUERY_OF_MANY)
        (record,) = hits(session)
        value, weights = derived(record.query, record.measurement)
        radius = plan.sparse.sum_radius(record.measurement.target, weights, EASY_OR_HARD * plan.tested_beta)
        return cls(session, answer, value, record.measurement.scale * float(np.linalg.norm(weights)), radius)


def test_a_measured_number_gives_way_to_the_fit_of_all_tables_within_its_noise(monkeypatch):
    """The bound is about what was measured, with fresh noise: it grows by all of the distance."""
    tests_alone(monkeypatch)
    hit = Hit.of(ABOVE, OFF)
    answer = hit.answer
    fitted = hit.session.hypothesis.evaluate(QUERY_OF_MANY.bind(DOMAIN))
    moved = abs(fitted - hit.measured)

    assert hit.radius > moved > hit.deviation
    assert ("hard", pytest.approx(fitted, abs=1e-12)) == (answer.status, answer.value)
    assert answer.error_bound == pytest.approx(hit.radius + moved, rel=1e-9)
    assert abs(answer.value - MANY) < 15 / N < abs(hit.measured - MANY)


def test_what_was_measured_is_the_answer_where_the_noise_of_the_first_tables_has_chosen_the_query(
    monkeypatch,
):
    """It was answered with 4,000 records too many, and is asked for that: the estimate errs by them."""
    tests_alone(monkeypatch)
    hit = Hit.of([0] * 6 + [4000, 0, 0] + [0] * 3, [0, 0, 100, 0])
    apart = abs(hit.answer.estimate - hit.measured)

    assert apart > 5.0 * math.hypot(hit.deviation, hit.answer.standard_error)
    assert ("hard", hit.measured) == (hit.answer.status, pytest.approx(hit.answer.value, abs=1e-12))
    assert hit.answer.error_bound == pytest.approx(hit.radius, rel=1e-9)


@pytest.mark.filterwarnings("ignore::onlineic.errors.UpdateFailedWarning")
def test_where_nothing_was_learned_what_was_measured_is_the_answer(monkeypatch):
    """The rule failed: the hypothesis is uniform, and far off."""
    tests_alone(monkeypatch)
    monkeypatch.setattr(FittedTables, "update", lambda *_: 1 / 0)
    hit = Hit.of(ABOVE, FAR)

    assert ("hard", hit.measured) == (hit.answer.status, hit.answer.value)
    assert hit.answer.error_bound == pytest.approx(hit.radius, rel=1e-9)


def test_what_a_rule_that_does_not_fit_all_measurements_has_learned_is_no_answer(monkeypatch):
    tests_alone(monkeypatch)
    monkeypatch.setattr(FittedTables, "fits_all", False)
    hit = Hit.of(ABOVE, OFF)

    assert ("hard", hit.measured) == (hit.answer.status, hit.answer.value)


# -- the fold ----------------------------------------------------------------------------------------------


def test_a_second_book_on_the_same_ledger_gives_the_same_answers_and_belief():
    answers, ledger = book()
    released(ledger, Easy(OTHER, grid(OTHER, 0.3)), number(QUERY, 0.6))
    released(ledger, number(OTHER, 0.2))
    first = taken(answers)
    again, _ = book(ledger=ledger)

    assert first == taken(again)
    assert (answers.counts, answers.error_bound()) == (again.counts, again.error_bound())
    both = [one.belief.hypothesis.probabilities().tobytes() for one in (answers, again)]
    assert both[0] == both[1]


def test_a_failed_update_is_recorded_once_keeps_the_hypothesis_and_the_answer_and_warns(monkeypatch):
    answers, ledger = book()
    released(ledger, number(QUERY, 0.6))
    before = answers.belief.hypothesis
    with monkeypatch.context() as patched:
        plant(patched, ic.MultiplicativeWeights, "update", 1, BrokenError, after=False)
        with pytest.warns(UpdateFailedWarning, match="MeasuredSteps failed"):
            ((_, answer),) = taken(answers)

    assert 0.6 == answer.value
    assert UpdateFailed("BrokenError") == ledger.records()[-1]
    assert (before, 1, 0) == (answers.belief.hypothesis, answers.belief.failures, answers.belief.version)
    again, _ = book(ledger=ledger)  # knows from the record, and warns no more
    assert [(QUERY, answer)] == taken(again)
    assert (3, 1) == (len(ledger), again.belief.failures)


# -- without a test ----------------------------------------------------------------------------------------


def test_a_remembered_question_and_a_constant_need_no_test_and_others_are_answered_without_a_bound():
    answers, ledger = book()
    released(ledger, number(QUERY, 0.6))
    ((_, answer),) = taken(answers)
    everyone = ic.where().bind(DOMAIN, BITS)
    again, constant, unknown = (answers.recalled(query) for query in (QUERY, everyone, OTHER))
    untested = answers.untested(OTHER)

    assert unknown is None
    assert ("repeat", answer.value, answer.error_bound) == (again.status, again.value, again.error_bound)
    assert ("easy", 1.0, 0.0) == (constant.status, constant.value, constant.error_bound)
    assert ("untested", math.inf) == (untested.status, untested.error_bound)
    assert untested.value == pytest.approx(answers.belief.hypothesis.evaluate(OTHER), abs=1 / N)
    assert {"easy": 1, "hard": 1, "repeat": 1, "untested": 1} == answers.counts


def test_ends_that_cross_are_answered_zero_without_a_test_a_read_or_a_charge():
    data = ic.PrivateData.from_records({"age": [20, 30, 40, 40]}, ic.Domain.of(age=range(18, 91)))
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), questions=10, noise=SimulatedNoise(1))
    before, reads = session.statistics(), data.reads
    answer = session.answer(ic.where(age=ic.between(31, 29)))

    assert (0.0, 0.0, "easy") == (answer.value, answer.error_bound, answer.status)
    assert reads == data.reads
    assert before.spent == session.statistics().spent


def test_guesses_are_what_is_believed_on_the_grid_of_the_question_or_by_blocks():
    answers, _ = book()
    cross = ic.marginal("b").bind(DOMAIN)

    assert [grid(QUERY, 1 / 4), grid(OTHER, 1 / 3)] == list(answers.guesses([QUERY, OTHER]))
    assert [(N // 3,) * 3] == list(answers.guesses([cross]))


# -- the bound of all --------------------------------------------------------------------------------------


def test_the_bound_of_all_answers_is_the_worst_of_plan_and_hits_and_counts_no_untested_ones():
    answers, ledger = book()
    planned = answers.error_bound()
    released(ledger, number(QUERY, 0.6))
    taken(answers)
    hit = answers.error_bound()
    for _ in range(SETTINGS["max_queries"]):
        answers.untested(OTHER)  # they say nothing that could fail
    last = answers.error_bound()

    assert PLANS["numbers"].error_bound == planned <= hit == last < 1.0


def test_the_text_of_a_used_up_budget_says_how_much_of_it_and_by_what():
    answers, ledger = book()
    released(ledger, number(QUERY, 0.6))
    taken(answers)

    assert "25.0% is used up, by 1 hard answers" in answers.used_up()
