"""A question asked again: the number that was told, with its bound, free; `snapshot` gives that of now."""

from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic import where
from onlineic.data import PrivateData
from onlineic.hypothesis import Histogram
from onlineic.interactions import Predictor
from onlineic.ledger import BoughtTables, Easy, EasyBatch, Hard
from onlineic.noise import SimulatedNoise
from onlineic.plan.demand import DemandPurchases
from onlineic.queries import Queries, derived

DOMAIN = ic.Domain.of(a=5, b=3, c=6)
COUNTS = np.random.default_rng(1).multinomial(2_000, np.random.default_rng(2).dirichlet(np.ones(90) / 2))
# a twentieth before the first question, and all of it after the fourth: errors fall to a quarter
RULE = DemandPurchases(rent=0, after=(1, 4), parts=(Fraction(1, 20), Fraction(1)))
ASKED = where(a=1)
OTHERS = [where(b=code) for code in range(3)]


def data():
    return PrivateData(COUNTS.reshape(DOMAIN.shape), DOMAIN)


def opened(**settings):
    settings = {"noise": SimulatedNoise(1), "purchases": RULE} | settings
    return ic.OnlineIC(data(), ic.Budget(1.0, 1e-9), **settings)


def bought(asked):
    """A session that told the answer to a question, and then bought all tables; and that answer."""
    session = opened()
    first = session.answer(asked)
    for other in (*OTHERS, where(c=3)):
        session.answer(other)
    return session, first


@pytest.mark.parametrize("asked", [ASKED, ic.marginal("a")], ids=str)
def test_a_repeat_tells_what_was_told_with_its_bound_free_whatever_was_bought_since(asked):
    session, first = bought(asked)
    spent, records, view = session.account.spent, len(session.transcript), session.view()
    assert 2 <= sum(isinstance(record, BoughtTables) for record in session.transcript)
    explained, told = session.explain(asked), session.told(asked)
    again = [session.answer(asked), *session.answer_many([asked, asked]), told, view.known(asked).answer]

    assert explained.free
    assert again[0].error_bound == explained.bound_easy <= first.error_bound
    for one in again:
        assert ("repeat", "known", again[0].error_bound) == (one.status, one.reason, one.error_bound)
        np.testing.assert_array_equal(one.value, first.value)
    assert (spent, records) == (session.account.spent, len(session.transcript))
    assert session.told(where(c=4)) is None


def test_a_repeat_in_a_batch_of_columns_is_what_one_at_a_time_is_and_its_complement_too():
    session, first = bought(ASKED)
    batch = session.answer_many(Queries.bound(DOMAIN, [one.bind(DOMAIN) for one in (ASKED, ~ASKED)]))

    assert [first.value, 1.0 - first.value] == batch.values.tolist()
    assert [session.answer(one).error_bound for one in (ASKED, ~ASKED)] == batch.bounds.tolist()
    assert ["known", "known"] == batch.reasons.tolist()


def test_a_snapshot_reads_the_hypothesis_of_now_and_what_was_told_stands_beside_it():
    session, first = bought(ASKED)
    records = len(session.transcript)
    (now,) = session.snapshot([ASKED], [session.answer(ASKED)])
    truth = COUNTS.reshape(DOMAIN.shape)[1].sum() / 2_000

    assert now.value == pytest.approx(session.hypothesis.evaluate(session.bind(ASKED)), abs=1 / 2_000)
    assert abs(now.value - truth) < abs(first.value - truth)
    assert now.error_bound < first.error_bound
    assert first.value == session.answer(ASKED).value
    assert records == len(session.transcript)


def test_of_what_was_told_the_error_of_then_is_expected_and_of_what_was_not_that_of_now():
    session, _ = bought(ASKED)

    assert session.explain(ASKED).expected > 2 * session.explain(where(a=2)).expected > 0.0


def test_what_was_told_of_a_question_of_many_levels_is_told_again_after_more_tables():
    """Of 5184 combinations of levels a design tells fewer apart than the predicted error sums over."""
    sizes = dict(zip("abcdefghi", (16, 9, 30, 5, 40, 7, 12, 3, 60), strict=True))
    rows = {name: np.random.default_rng(size).integers(0, size, 2_000) for name, size in sizes.items()}
    table = PrivateData.from_records(rows, ic.Domain.of(sizes))
    session = ic.OnlineIC(
        table, ic.Budget(1.0, 1e-6), purchases=DemandPurchases(rent=0), noise=SimulatedNoise(1)
    )
    wide = where(dict.fromkeys(sizes, ic.between(0, 1)))
    assert session.explain(wide).expected > 0.0
    session.answer(wide)
    for code in range(4):
        session.answer(where(a=code, b=code))

    assert len([one for one in session.transcript if isinstance(one, BoughtTables)]) > 1
    assert session.explain(wide).expected > 0.0
    assert session.answer(wide).status == "repeat"


def later(monkeypatch, learn):
    """Put another rule in the place of the second and every further update."""
    rule = type(opened().plan.update)
    update, calls = rule.update, []

    def updated(self, hypothesis, measurements, alpha):
        calls.append(measurements)
        return update(self, hypothesis, measurements, alpha) if len(calls) == 1 else learn()

    monkeypatch.setattr(rule, "update", updated)


def weights():
    """A question of which no released table says how far an answer is off."""
    held = np.zeros(DOMAIN.shape)
    held[0, 0], held[1, 2] = 1.0, 0.5
    return held


def test_reasons_of_answers_that_are_no_repeats():
    session = opened()
    first, second = session.answer_many([ASKED, where(c=2)])
    later, constant = session.answer(where(c=3)), session.answer(where())

    assert ("bought", "bought") == (first.reason, second.reason)
    assert ("easy", "covered") == (later.status, later.reason)
    assert ("easy", "known") == (constant.status, constant.reason)
    assert repr(later).endswith("easy, NOT PRIVATE)")
    assert "easy, bought" in repr(first)
    assert {"covered", "bought"} == {one.reason for _, one in session.released()}
    records = [record for record in session.transcript if isinstance(record, Easy | EasyBatch | Hard)]
    assert 3 == len(records)


def test_a_measured_answer_is_due_to_its_test_and_an_untested_one_has_no_reason():
    session = opened(purchases=ic.plan.TestsOnly(), hard_answers=1, threshold=0.001)
    answers = [session.answer(where(a=code, b=b)) for code in range(5) for b in range(3)]
    found = {(one.status, one.reason) for one in answers}

    assert {("hard", "test"), ("untested", None)} <= found
    assert found <= {("hard", "test"), ("easy", "covered"), ("untested", None)}
    assert {"test"} == {one.reason for _, one in session.released() if one.hard}


def test_what_is_made_of_several_numbers_is_read_from_one_hypothesis_and_the_told_ones_stand_beside():
    """The groups of a condition that is no conjunction are asked one by one."""
    session = opened()
    spread = ~where(b=0, c=1)
    early = [session.answer(where(a=code) & spread) for code in (0, 3)]
    for other in OTHERS:
        session.answer(other)
    found = session.group_by("a", spread)
    questions = [session.bind(where(a=code) & spread) for code in range(5)]
    now = [session.hypothesis.evaluate(question) for question in questions]
    truth = COUNTS.reshape(DOMAIN.shape).copy()
    truth[:, 0, 1] = 0
    missed = np.abs(found.values - truth.sum(axis=(1, 2)))

    assert found.values == pytest.approx(2_000 * np.array(now), abs=0.51)
    assert (missed <= found.error_bounds).all()
    again = session.answer_many(questions)
    assert [one.value for one in again] == [one.value for one in found.answers]
    assert {"known"} == {one.reason for one in again}
    assert {early[0].query.key, early[1].query.key} <= {one.query.key for one in found.answers}


def test_a_snapshot_moves_what_was_told_and_its_bound_with_it(monkeypatch):
    wrong = np.full(DOMAIN.size, 0.4 / 89)
    wrong[0] = 0.6
    later(monkeypatch, lambda: Histogram(DOMAIN, wrong.reshape(DOMAIN.shape)))
    session = opened(threshold=0.2)
    first = session.answer(weights())
    for other in OTHERS:
        session.answer(other)
    session.answer(where(c=3))  # buys
    (told,) = session.answer_many([weights()])
    (now,) = session.snapshot([weights()], [told])
    (same,) = session.snapshot([where()], [session.answer(where())])

    assert first.value == told.value < 0.6 < now.value
    assert now.error_bound == min(now.value, first.error_bound + now.value - first.value)
    assert session.answer(weights()).value == first.value
    assert same.value == 1.0
    assert (now.status, now.reason) == ("untested", None)
    with pytest.raises(ic.errors.InvalidParameterError, match="answers must be the answers"):
        session.snapshot([weights()], [])


def test_what_was_measured_is_not_read_from_the_hypothesis():
    session = opened(purchases=ic.plan.TestsOnly(), threshold=0.001)
    answers = [session.answer(where(a=code, b=b)) for code in range(5) for b in range(3)]
    questions = [answer.query for answer in answers]
    measured = [place for place, answer in enumerate(answers) if answer.hard]
    again = session.answer_many(questions)
    now = session.snapshot(questions, again)

    assert measured
    assert [again[place].value for place in measured] == [now[place].value for place in measured]


def test_who_looks_after_the_first_question_buys_nothing():
    session = opened()
    session.answer_many([ASKED, *OTHERS])
    spent, records = session.account.spent, len(session.transcript)
    session.synthetic(10)
    assert session.hypothesis is not None
    assert (spent, records) == (session.account.spent, len(session.transcript))
    session.answer(where(c=3))
    assert spent < session.account.spent  # the purchase was due, and waited for a question


def test_of_what_was_measured_less_is_expected_than_of_its_noise_alone_or_of_the_tables_alone():
    session = opened(threshold=0.001, hard_answers=8)
    session.answer_many([where(a=code, b=b, c=3) for code in range(5) for b in range(3)])
    tables, hits = Predictor(DOMAIN), []
    for record in session.transcript:
        if isinstance(record, BoughtTables):
            tables = tables.after(record.measurements)
        elif isinstance(record, Hard):
            hits.append((record.query, record.measurement, tables))

    assert hits
    for query, measurement, known in hits:
        _, weights = derived(query, measurement)
        noise = measurement.scale * (1.0 if weights is None else np.linalg.norm(weights))
        assert 0.0 < session.explain(query).expected < min(noise, known.error(query))
