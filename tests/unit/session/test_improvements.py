"""A question asked again: the number that was told, or that of a hypothesis which errs a third less."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic import where
from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.hypothesis import Histogram
from onlineic.interactions import Predictor
from onlineic.ledger import Easy, EasyBatch, Hard, Improved, Opened, exported, imported, read
from onlineic.ledger.lines import START, canonical_text, line_of, linked
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan
from onlineic.plan.demand import DemandPurchases
from onlineic.queries import AnswerMemory, Queries
from onlineic.queries.memory import Remembered
from onlineic.session.improvements import Improvements, moved

DOMAIN = ic.Domain.of(a=5, b=3, c=6)
COUNTS = np.random.default_rng(1).multinomial(2_000, np.random.default_rng(2).dirichlet(np.ones(90) / 2))
# a twentieth before the first question, and all of it after the fourth: errors fall to a quarter
RULE = DemandPurchases(after=(1, 4), parts=(Fraction(1, 20), Fraction(1)))
ASKED = where(a=1)
OTHERS = [where(b=code) for code in range(3)]


def data():
    return PrivateData(COUNTS.reshape(DOMAIN.shape), DOMAIN)


def opened(**settings):
    settings = {"noise": SimulatedNoise(1), "purchases": RULE} | settings
    return ic.OnlineIC(data(), ic.Budget(1.0, 1e-9), **settings)


def told(session):
    """The session with a question that was told before the second purchase, and its first answer."""
    first = session.answer(ASKED)
    for other in OTHERS:
        session.answer(other)
    return first


def kept(path):
    return opened(noise=None, ledger=path, table="t")


def test_a_question_is_told_as_it_was_until_its_predicted_error_has_fallen_by_a_third():
    session = opened()
    first = told(session)
    assert (first.status, first.reason) == ("easy", "bought")
    again = session.answer(OTHERS[2])
    assert (again.status, again.reason) == ("repeat", "improved")  # the purchase came before it

    better = session.answer(ASKED)
    predictor = Predictor(DOMAIN)
    for record in session.transcript:
        if isinstance(record, Opened):
            predictor = predictor.after(record.measurements)
    question = session.bind(ASKED)
    assert (better.status, better.reason) == ("repeat", "improved")
    assert predictor.error(question) < predictor.error(question, 1) * 2 / 3
    assert better.value == pytest.approx(session.hypothesis.evaluate(question), abs=1 / 2_000)
    assert better.value != first.value
    assert better.error_bound < first.error_bound
    assert "repeat, improved" in repr(better)
    assert "errs less now" in better._repr_html_()
    assert "improved" == better.to_dict()["reason"]


def test_an_improved_answer_costs_nothing_is_recorded_and_is_told_from_then_on():
    session = opened()
    first = told(session)
    session.answer(where(c=3))  # buys
    spent, reads = session.account.spent, len(session.transcript)
    explained = session.explain(ASKED)
    assert explained.free
    assert () == session.told(where(c=4))
    better = session.answer(ASKED)

    assert spent == session.account.spent
    record = session.transcript[-1]
    assert isinstance(record, Improved)
    assert reads + 1 == len(session.transcript)
    assert record.guess == round(better.value * 2_000)
    assert explained.bound_easy == better.error_bound
    again = session.answer(ASKED)
    assert ("repeat", "known", better.value) == (again.status, again.reason, again.value)
    assert reads + 1 == len(session.transcript)
    assert [first.value, better.value] == [one.value for one in session.told(ASKED)]
    assert ["known", "improved"] == [one.reason for one in session.told(ASKED)]
    released = dict(session.released())
    assert better.value == released[reads].value
    assert 1 == sum(one.query.key == better.query.key for one in released.values())
    assert better.value in [one.value for one in session.summary().answers]


def test_what_was_told_of_a_question_of_many_levels_is_told_again_after_more_tables():
    """Of 5184 combinations of levels a design tells fewer apart than the predicted error sums over."""
    sizes = dict(zip("abcdefghi", (16, 9, 30, 5, 40, 7, 12, 3, 60), strict=True))
    rows = {name: np.random.default_rng(size).integers(0, size, 2_000) for name, size in sizes.items()}
    table = PrivateData.from_records(rows, ic.Domain.of(sizes))
    session = ic.OnlineIC(table, ic.Budget(1.0, 1e-6), purchases=DemandPurchases(), noise=SimulatedNoise(1))
    wide = where(dict.fromkeys(sizes, ic.between(0, 1)))
    assert session.explain(wide).expected > 0.0
    session.answer(wide)
    for code in range(4):
        session.answer(where(a=code, b=code))

    assert len([one for one in session.transcript if isinstance(one, Opened)]) > 1
    assert session.explain(wide).expected > 0.0
    assert session.answer(wide).status == "repeat"


def test_one_minus_it_moves_with_it():
    session = opened()
    told(session)
    other = session.answer(~ASKED)

    assert ("repeat", "improved") == (other.status, other.reason)
    assert session.answer(ASKED).value == pytest.approx(1.0 - other.value, abs=1e-12)
    assert "known" == session.answer(ASKED).reason


def test_a_cross_table_improves_as_a_whole():
    session = opened()
    first = session.answer(ic.marginal("a"))
    for other in OTHERS:
        session.answer(other)
    better = session.answer(ic.marginal("a"))

    assert ("repeat", "improved") == (better.status, better.reason)
    assert 1e-9 < np.abs(better.value - first.value).max()
    assert isinstance(session.transcript[-1].guess, tuple)
    np.testing.assert_array_equal(better.value, session.told(ic.marginal("a"))[-1].value)


@pytest.mark.parametrize("columns", [False, True])
def test_a_batch_says_and_records_what_one_at_a_time_does(columns):
    asked = [OTHERS[0], where(c=1), ASKED, where(), OTHERS[0], where(c=2), ~ASKED, where(c=1), OTHERS[1]]
    bound = [one.bind(DOMAIN) for one in asked]
    alone, batch = opened(), opened()
    for session in (alone, batch):
        told(session)
    answers = [alone.answer(one) for one in bound]
    together = batch.answer_many(Queries.bound(DOMAIN, bound) if columns else bound)

    facts = [(one.value, one.status, one.reason, one.error_bound) for one in answers]
    assert facts == [(one.value, one.status, one.reason, one.error_bound) for one in together]
    assert [*map(line_of, alone.transcript)] == [*map(line_of, batch.transcript)]
    assert {"improved", "known", "covered"} <= {one.reason for one in together}
    if columns:
        assert [one.reason for one in answers] == together.reasons.tolist()
        assert [one.reason for one in answers] == together.to_dict()["reason"].tolist()


def test_who_resumes_an_audit_and_a_replay_tell_the_same(tmp_path):
    path = tmp_path / "session.db"
    with kept(path) as session:
        told(session)
        better = session.answer(ASKED)
        values = [one.value for one in session.told(ASKED)]
        transcript, plan = session.transcript, session.plan
    with ic.OnlineIC.resume(path, data()) as again:
        assert values == [one.value for one in again.told(ASKED)]
        same = again.answer(ASKED)
        assert (better.value, better.error_bound) == (same.value, same.error_bound)
        assert "known" == same.reason
        hypothesis = again.hypothesis.probabilities()
        assert session.statistics().error_bound == again.statistics().error_bound

    report = verified(imported(exported(read(path))))
    assert () == report.problems
    assert 0 == report.differing
    made = ic.session.replay(transcript, DOMAIN, plan.update, plan.alpha)
    np.testing.assert_array_equal(made.probabilities(), hypothesis)


def test_a_number_that_no_rule_gives_is_found_in_the_record(tmp_path, monkeypatch):
    """Told anew without a purchase, or by another hypothesis than that of the record."""
    path = tmp_path / "session.db"
    with kept(path) as session:
        told(session)
        with monkeypatch.context() as patched:
            patched.setattr("onlineic.session.answers.IMPROVED", 1.0)
            session.answer(OTHERS[0])
            session.answer(OTHERS[0])  # nothing was bought in between

    problems = verified(read(path)).problems
    assert any("told anew that has not improved enough" in one for one in problems)


def test_a_forged_improvement_is_found(tmp_path):
    path = tmp_path / "session.db"
    with kept(path) as session:
        told(session)
        session.answer(ASKED)
    texts, chain, lines = [], START, [*read(path).lines]
    for line in lines:
        if line["kind"] == "improved":
            line = {**line, "guess": line["guess"] + 40}
        texts.append(canonical_text(line))
    forged = []
    for text in texts:
        chain = linked(chain, text)
        forged.append(json.dumps({**json.loads(text), "chain": chain.hex()}))
    end = json.dumps({"kind": "end", "receipt": f"{len(texts)}:{chain.hex()}"})

    problems = verified(imported([*forged, end])).problems
    assert any("a tested number that the hypothesis does not give" in one for one in problems)


def test_what_a_view_knows_is_what_the_session_would_tell():
    session = opened()
    told(session)
    session.answer(where(c=3))  # buys
    before = session.view()
    assert before.known(ASKED) is None  # the session has a better answer
    assert before.explain(ASKED).free
    better = session.answer(ASKED)
    after = session.view()

    assert better.value == after.known(ASKED).answer.value
    assert len(session.transcript) - 1 == after.known(ASKED).at
    assert before.known(ASKED) is None


def test_a_session_that_is_sealed_tells_what_it_told(monkeypatch):
    session = opened()
    first = told(session)
    session.answer(where(c=3))  # buys
    with monkeypatch.context() as patched:
        patched.setattr(PrivateData, "exact_counts", lambda *_: 1 / 0)
        with pytest.raises(ic.errors.SessionSealedError):
            session.answer(where(c=5))

    again = session.answer(ASKED)
    assert (first.value, "repeat", "known") == (again.value, again.status, again.reason)
    (same,) = session.answer_many(Queries.bound(DOMAIN, [ASKED.bind(DOMAIN)]))
    assert first.value == same.value


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


def test_the_bound_holds_whatever_the_hypothesis_says_by_now(monkeypatch):
    wrong = np.full(DOMAIN.size, 0.4 / 89)
    wrong[0] = 0.6
    wrong = wrong.reshape(DOMAIN.shape)
    later(monkeypatch, lambda: Histogram(DOMAIN, wrong))
    session = opened(threshold=0.2)
    first = session.answer(weights())
    for other in OTHERS:
        session.answer(other)
    worse = session.answer(weights())
    truth = float((weights() * COUNTS.reshape(DOMAIN.shape)).sum()) / 2_000

    assert "improved" == worse.reason
    assert 0.6 < worse.value
    assert abs(first.value - truth) <= first.error_bound < abs(worse.value - truth) <= worse.error_bound
    assert worse.error_bound == min(worse.value, first.error_bound + worse.value - first.value)
    assert abs(worse.value - truth) <= session.joint_bounds([weights()], [worse])[0]
    assert abs(worse.value - truth) <= session.statistics().error_bound
    assert [first.error_bound, worse.error_bound] == [one.error_bound for one in session.told(weights())]


def test_where_an_update_failed_nothing_has_improved(monkeypatch):
    later(monkeypatch, lambda: 1 / 0)
    session = opened()
    first = told(session)
    with pytest.warns(ic.errors.UpdateFailedWarning):
        again = session.answer(ASKED)

    assert (first.value, "known") == (again.value, again.reason)
    (same,) = session.answer_many(Queries.bound(DOMAIN, [ASKED.bind(DOMAIN)]))
    assert (first.value, "known") == (same.value, same.reason)


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


def instalments(session):
    return [record.measurements for record in session.transcript if isinstance(record, Opened)]


def test_what_was_measured_is_known_beside_the_tables_then_and_now():
    """A quiet number of its own does not become better by tables that say less."""
    session = opened()
    told(session)
    session.answer(where(c=3))
    held, question = Improvements(session.plan, DOMAIN), session.bind(ASKED)
    for place, one in enumerate(instalments(session)):
        held.bought(place, one)
    known = Remembered(question, 0.2, 0.1, 1)
    batch = Queries.bound(DOMAIN, [question])
    memory = AnswerMemory(lasting=True)
    memory.remember(question, 0.2, 0.1, 1)
    recalled = memory.recall_many(batch, 1)

    alone = held.left(question, known)
    assert alone < 2 / 3
    assert [alone] == held.left_of(batch, recalled).tolist()
    held.measured(question, 1e-5)
    assert 0.99 < held.left(question, known) <= 1.0
    assert [held.left(question, known)] == held.left_of(batch, recalled).tolist()
    held.measured(question, 0.05)
    assert alone < held.left(question, known) < 0.99


@pytest.mark.parametrize(("may", "update"), [(True, None), (False, ic.MultiplicativeWeights())])
def test_answers_improve_only_where_the_rule_fits_all_that_was_measured(may, update):
    session = opened()
    told(session)
    session.answer(where(c=3))
    plan = session_plan(DOMAIN, 2_000, ic.Budget(1.0, 1e-9), update=update)
    held, question = Improvements(plan, DOMAIN), session.bind(ASKED)
    for place, one in enumerate(instalments(session)):
        held.bought(place, one)

    assert may == (held.left(question, Remembered(question, 0.2, 0.1, 1)) < 1.0)


def test_one_minus_it_is_off_by_what_n_may_be():
    first = Remembered(ASKED.bind(DOMAIN), 0.25, 0.1)

    assert 0.125 == moved((~ASKED).bind(DOMAIN), 0.625, first, 0.0)
    assert 0.25 == moved((~ASKED).bind(DOMAIN), 0.625, first, 0.125)
    assert 0.5 == moved(ASKED.bind(DOMAIN), 0.75, first, 0.125)


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
    monkeypatch.setattr("onlineic.session.answers.IMPROVED", 0.0)
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


def test_a_repeat_that_was_told_anew_is_written_before_it_is_told(tmp_path):
    """A process that is killed after it must not forget by how much its answer moved: bounds count that."""
    path = tmp_path / "told.db"
    session = kept(path)
    told(session)
    assert "improved" == session.answer(ASKED).reason

    killed = tmp_path / "killed.db"
    shutil.copy(path, killed)  # what another process would find
    assert "improved" in [line["kind"] for line in read(killed).lines]
    session.close()


def test_who_looks_after_the_first_question_buys_nothing():
    session = opened()
    told(session)
    spent, records = session.account.spent, len(session.transcript)
    session.synthetic(10)
    assert session.hypothesis is not None
    assert (spent, records) == (session.account.spent, len(session.transcript))
    session.answer(where(c=3))
    assert spent < session.account.spent  # the purchase was due, and waited for a question
