"""Files of other rules: their plan stands, what was told is told again, and nobody calls them dishonest.

The frozen exports were written by an earlier commit, and by this one under another stamp.
"""

import json
from pathlib import Path

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import audit
from onlineic.errors import LedgerCorruptError
from onlineic.ledger import Hard, imported, read
from onlineic.ledger.lines import canonical_text, chained
from onlineic.plan import TestsOnly, defaults
from onlineic.session import durable
from onlineic.session import session as sessions
from onlineic.updates import MaximumEntropy, MixtureOfProducts
from support.inside import ledger_of
from support.ledgers import LABEL, MECHANISMS, file_of, opened, queries, quick_folder, resumed, table

FROZEN = Path(__file__).parents[2] / "golden" / "ledgers"
GUMBEL = {name: value for name, value in MECHANISMS["gumbel"].items() if name != "budget"}


def frozen(name):
    """Return the lines of a frozen export, and the answers that its session gave."""
    with (FROZEN / f"{name}.jsonl").open() as file:
        written = imported(file)
    return written, json.loads((FROZEN / f"{name}.json").read_text())


def without(written, kind):
    """Return the lines but those of one kind, chained anew."""
    kept = [line for line in written.lines if line["kind"] != kind]
    return chained((canonical_text({**line, "at": place}), None) for place, line in enumerate(kept))


def other_rules_of_answers(patched):
    """Let fits never be told, as other rules of answers might."""
    for rule in (MaximumEntropy, MixtureOfProducts):
        patched.setattr(rule, "fits_all", False)


@pytest.fixture
def path():
    with quick_folder() as folder:
        yield folder / "session.db"


def told_again(path, count=14):
    with resumed(path) as session:
        return [session.answer(one) for one in queries(count)]


@pytest.mark.parametrize("name", ["other_rules", "no_stamp"])
def test_a_frozen_file_tells_what_it_told_and_is_not_called_dishonest(name, path):
    written, told = frozen(name)
    file_of(written, path)
    again = told_again(path)

    assert written.beginning.get("rules") != defaults.RULES
    assert "hard" in {status for status, _ in told}
    assert [value for _, value in told] == [answer.value for answer in again]
    assert {"repeat"} == {answer.status for answer in again}
    report = audit.verified(read(path))
    assert report.whole, report.problems
    assert not report.replayed


def test_a_hard_answer_is_read_from_the_record_whatever_the_rules_of_answers_are_now(path, monkeypatch):
    written, told = frozen("other_rules")
    file_of(written, path)
    other_rules_of_answers(monkeypatch)
    lacking = file_of(without(written, "told"), path.with_name("lacking.db"))

    assert [value for _, value in told] == [answer.value for answer in told_again(path)]
    assert [value for _, value in told] != [answer.value for answer in told_again(lacking)]


def test_a_bound_of_a_told_answer_reaches_what_was_measured_under_any_rules(path, monkeypatch):
    """It grows by the distance of the number that was told from the measured one."""
    written, _ = frozen("other_rules")
    before = told_again(file_of(written, path))
    other_rules_of_answers(monkeypatch)
    after = told_again(file_of(written, path.with_name("again.db")))

    assert [one.error_bound for one in before] == pytest.approx([one.error_bound for one in after])


def test_a_process_that_died_behind_a_hard_answer_kept_what_it_told_with_its_next_charge(path, monkeypatch):
    session = opened(path)
    asked = queries(60)
    told = [session.answer(one) for one in asked]
    hard = [place for place, one in enumerate(told) if one.status == "hard"]
    ledger_of(session).release()  # as a killed process leaves it
    kept = [line["value"] for line in read(path).lines if line["kind"] == "told"]
    assert [told[place].value for place in hard][: len(kept)] == kept
    assert len(hard) - 1 <= len(kept) <= len(hard)
    other_rules_of_answers(monkeypatch)
    with resumed(path) as session:
        assert kept == [session.answer(asked[place]).value for place in hard[: len(kept)]]


def cross_tables(path, count):
    """A session that knows nothing before its hits, and its answers to cross tables that overlap."""
    with opened(path, threshold=0.005, hard_answers=8, purchases=TestsOnly()) as session:
        pairs = [("a", "b"), ("a", "c"), ("b", "c")]
        return [session.answer(ic.marginal(*names)) for names in pairs][:count]


@pytest.mark.parametrize("kept", [True, False])
def test_a_cross_table_that_was_told_comes_back_under_any_rules(path, monkeypatch, kept):
    """Files of rules that told them as they were measured keep none beside the record: that is told again."""
    told = cross_tables(path, 3)
    assert "hard" in {one.status for one in told}
    written = read(path) if kept else without(read(path), "told")
    again = file_of(written, path.with_name("again.db"))
    if not kept:
        monkeypatch.setattr("onlineic.session.checkpoints.RULES", "others")
    else:
        other_rules_of_answers(monkeypatch)
    with resumed(again) as session:
        same = [session.answer(ic.marginal(*one.query.names)).value for one in told]
    measured = [
        record.query.table(record.measurement.values)
        for record in session.transcript
        if isinstance(record, Hard)
    ]
    hard = [(one.value, now) for one, now in zip(told, same, strict=True) if one.status == "hard"]
    for (before, now), released in zip(hard, measured, strict=True):
        assert np.array_equal(now, before if kept else released)
    assert any(not np.array_equal(before, one) for (before, _), one in zip(hard, measured, strict=True))


def test_a_session_goes_on_as_it_was_planned_whichever_way_it_is_opened(path, monkeypatch):
    """Another version plans otherwise: neither way may take the plan that it would make."""
    made = sessions.session_plan

    def planned_otherwise(*given, **more):
        plan = made(*given, **more)
        return attrs.evolve(plan, max_queries=9_999, hit_price=plan.hit_price * 2)

    with monkeypatch.context() as other:
        other.setattr(sessions, "session_plan", planned_otherwise)
        with opened(path) as session:
            held = session.plan
            session.answer(queries(1)[0])
    for again in (opened, resumed):
        with again(path) as session:
            assert held == session.plan
    assert held != ic.OnlineIC(table(), MECHANISMS["gumbel"]["budget"], **GUMBEL).plan


def test_a_plan_of_these_rules_is_made_again_and_one_of_others_is_taken_as_it_stands(path, monkeypatch):
    made = sessions.session_plan
    monkeypatch.setattr(
        sessions,
        "session_plan",
        lambda *given, **more: attrs.evolve(made(*given, **more), max_queries=9_999),
    )
    opened(path).close()
    assert ("the plan is another than the settings give",) == audit.verified(read(path)).problems
    monkeypatch.setattr(durable, "RULES", "others")
    opened(path.with_name("other.db")).close()
    assert audit.verified(read(path.with_name("other.db"))).whole


def test_a_number_that_was_not_told_is_found_by_verify(path):
    with opened(path) as session:
        [session.answer(one) for one in queries(14)]
    written = read(path)

    def changed(change):
        lines = [dict(line) for line in written.lines]
        change(next(line for line in lines if line["kind"] == "told"))
        return chained((canonical_text(line), None) for line in lines)

    assert audit.verified(written).whole
    assert not audit.verified(changed(lambda line: line.update(value=line["value"] + 1e-6))).whole
    assert not audit.verified(changed(lambda line: line.update(record=0))).whole
    for wrong in ({"record": -1}, {"record": True}, {"value": "1"}, {"value": 1}):
        with pytest.raises(LedgerCorruptError):
            audit.verified(changed(lambda line, wrong=wrong: line.update(wrong)))


def test_a_stamp_is_in_the_first_line_of_every_file(path):
    opened(path).close()
    assert defaults.RULES == read(path).beginning["rules"]
    assert LABEL == read(path).beginning["table"]
