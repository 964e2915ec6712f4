"""Files of other rules: their plan stands, what was told is told again, and nobody calls them dishonest.

The frozen exports were written by earlier commits of version 0.1.0: `first_*` by one whose plans had a field
a kind of table, and `planned_later` by one of two purchase rules, over the table of `made_table`;
`certified_tables` by one whose certified sessions began with tables; `told_anew` by one that told the number
of a better hypothesis when a question was asked again; the others without a stamp, or under another one.
"""

import json
import warnings
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import audit
from onlineic.cli import main
from onlineic.errors import InvalidParameterError, LedgerCorruptError, LedgerMismatchError, OtherRulesWarning
from onlineic.ledger import Hard, Opened, imported, read
from onlineic.ledger.lines import canonical_text, chained
from onlineic.plan import DemandPurchases, TestsOnly, defaults
from onlineic.session import durable
from onlineic.session import session as sessions
from onlineic.session.durable import LedgerFile
from onlineic.updates import FittedTables, MaximumEntropy, MixtureOfProducts
from support.ledgers import (
    LABEL,
    MECHANISMS,
    file_of,
    opened,
    queries,
    quick_folder,
    resumed,
    table,
    with_ledger,
)

FROZEN = Path(__file__).parents[2] / "golden" / "ledgers"
GUMBEL = {name: value for name, value in MECHANISMS["gumbel"].items() if name != "budget"}


def frozen(name):
    """Return the lines of a frozen export, and the answers that its session gave."""
    with (FROZEN / f"{name}.jsonl").open() as file:
        written = imported(file)
    return written, json.loads((FROZEN / f"{name}.json").read_text())


def made_table():
    """The table of the files `first_*`: c follows from a and b, f from d, so that pairs tell little of c."""
    rng, n, sizes = np.random.default_rng(7), 60_000, (5, 5, 5, 4, 4, 3)
    columns = [rng.integers(0, size, n) for size in sizes]
    columns[2] = np.where(rng.random(n) < 0.8, (columns[0] + columns[1]) % 5, columns[2])
    columns[5] = np.where(rng.random(n) < 0.6, columns[3] % 3, columns[5])
    names = dict(zip("abcdef", sizes, strict=True))
    return ic.PrivateData.from_records(dict(zip(names, columns, strict=True)), ic.Domain.of(names))


def asked_first(place):
    """The question that stands at this place in the answers of the files `first_*`."""
    if place == 1:
        return ic.where(a=ic.between(1, 2), b=2, c=ic.one_of(3, 4))
    if place == 3:
        return ic.marginal("d", "f")
    if place == 7:
        return ic.where(d=1, f=1, a=ic.between(0, 2))
    if place % 3 == 2:
        return ic.where(a=place % 5, b=ic.between(0, 2), c=(place + 1) % 5)
    return ic.where(a=place % 5, d=ic.between(0, place % 4))


FIRST = {
    "first_default": 2,
    "first_pure": 1,
    "first_before_later": 1,
    "planned_later": 2,
}  # releases of tables in them


def certified_table():
    """The table of the file `certified_tables`: a + b + c is even, of which pairs tell nothing."""
    domain = ic.Domain.of(dict.fromkeys("abcd", 8))
    even = np.indices(domain.shape)[:3].sum(axis=0) % 2 == 0
    return ic.PrivateData(np.where(even, 30, 0), domain)


def asked_of_certified(place):
    """The question that stands at this place in the answers of the file `certified_tables`."""
    codes = np.indices((8, 8, 8, 8))
    if place % 3 == 1:
        return ic.dense((codes[:3].sum(axis=0) + codes[3] * (place % 2)) % 2.0)
    return ic.where(a=place % 8, b=ic.between(0, place % 3), d=1)


def table_told_anew():
    """The table of the file `told_anew`."""
    domain, law = ic.Domain.of(a=5, b=3, c=6), np.random.default_rng(2).dirichlet(np.full(90, 0.5))
    return ic.PrivateData(np.random.default_rng(1).multinomial(20_000, law).reshape(domain.shape), domain)


def asked_anew():
    """The questions of the file `told_anew`: the first three were told three numbers each."""
    weights = np.zeros((5, 3, 6))
    weights[0, 0, 0], weights[1, 2, 3] = 1.0, 0.5
    first = [ic.where(a=1), ic.marginal("a"), ic.dense(weights), ic.where(b=0), ic.where(b=1)]
    return [*first, ~ic.where(a=2), ic.where(a=3, c=2), ic.where(b=2, c=4)]


def resumed_file(written, path):
    return ic.OnlineIC.resume(file_of(written, path), made_table())


def resumed_first(path):
    with pytest.warns(OtherRulesWarning, match="nothing else is bought"):
        return ic.OnlineIC.resume(path, made_table())


def kinds(path):
    return [line["kind"] for line in read(path).lines]


def without(written, kind):
    """Return the lines but those of one kind, chained anew."""
    kept = [line for line in written.lines if line["kind"] != kind]
    return chained((canonical_text({**line, "at": place}), None) for place, line in enumerate(kept))


def other_rules_of_answers(patched):
    """Let fits never be told, as other rules of answers might."""
    for rule in (FittedTables, MaximumEntropy, MixtureOfProducts):
        patched.setattr(rule, "fits_all", False)


@pytest.fixture
def path():
    with quick_folder() as folder:
        yield folder / "session.db"


def told_again(path, count=14):
    with pytest.warns(OtherRulesWarning), resumed(path) as session:
        return [session.answer(one) for one in queries(count)]


@pytest.mark.parametrize("name", FIRST)
def test_a_file_of_the_first_version_tells_what_it_told_and_goes_on_without_purchases(name, path, capsys):
    written, told = frozen(name)
    file_of(written, path)
    assert audit.verified(read(path)).problems == ()
    assert main(["ledger", "show", str(path)]) == 0
    assert "made, first release" in capsys.readouterr().out

    with resumed_first(path) as session:
        again = [session.answer(asked_first(place)) for place in range(len(told))]
        mechanism = session.plan.sparse
        more = session.answer_many([ic.where(a=a, b=b, c=(a + b) % 5) for a in range(5) for b in range(5)])
    assert {"repeat"} == {answer.status for answer in again}
    for answer, (_, value) in zip(again, told, strict=True):
        assert np.array_equal(value, answer.value)
    assert FIRST[name] == kinds(path).count("opened")
    assert {"easy", "hard"} >= {answer.status for answer in more} - {"untested"}
    assert type(mechanism).__name__ == written.beginning["plan"]["fields"]["sparse"]["class"]
    report = audit.verified(read(path))
    assert report.whole, report.problems


def test_a_total_pays_for_tables_of_other_rules_what_they_cost_wherever_they_come():
    """As the first release of their filter they were charged less (theory 4.10)."""
    written, _ = frozen("first_default")
    plan = durable.planned(written.beginning, written.domain())
    account, (tables, *_) = plan.sparse.account(), plan.purchases.tables

    assert tables.first
    assert 0 < tables.saved <= tables.charge.amount / 4
    assert plan.drawn.capacity == account.capacity + tables.saved
    with pytest.raises(InvalidParameterError, match="charge must pay"):
        attrs.evolve(tables, first=False)
    with pytest.raises(InvalidParameterError, match="charge must pay"):
        attrs.evolve(tables, scales=tuple(scale * 4 / 5 for scale in tables.scales))


def test_a_hypothesis_is_made_of_the_recorded_measurements_of_a_file_of_the_first_version(path):
    """Of a kept file it stands in a checkpoint; without one it is fitted to the measurements again."""
    written, _ = frozen("first_default")
    held = []
    for kept in (written, without(written, "checkpoint")):
        place = file_of(kept, path.with_name(f"{len(held)}.db"))
        with resumed_first(place) as session:
            held.append(np.asarray(session.hypothesis.marginal("a", "b", "c")))
            tables = [record for record in session.transcript if isinstance(record, Opened)]
    assert np.allclose(held[0], held[1], atol=1e-3)
    (later,) = [one for one in tables[1].measurements if one.target.axes == (0, 1, 2)]
    assert np.corrcoef(held[0].ravel(), np.ravel(later.values))[0, 1] > 0.99


def test_hits_go_on_at_the_recorded_mechanism_and_price(path):
    """The distance of c from what pairs tell is a hit, whose number is charged as those before it were."""
    file_of(frozen("first_before_later")[0], path)
    with resumed_first(path) as session:
        spent = session.statistics().spent
        far = [
            ic.where(a=a, b=b, c=ic.one_of((a + b) % 5, (a + b + 1) % 5)) for a in range(5) for b in range(5)
        ]
        statuses = [session.answer(one).status for one in far]
        hits = [record for record in session.transcript if isinstance(record, Hard)]
        assert session.statistics().spent <= 1.0
    assert "opened" not in kinds(path)[15:]
    assert statuses.count("hard") == len(hits) - 1
    assert spent < 1.0


def test_a_file_of_the_first_version_before_its_first_question_buys_nothing(path):
    written, _ = frozen("first_default")
    file_of(chained((canonical_text(line), None) for line in written.lines[:1]), path)
    with resumed_first(path) as session:
        assert session.statistics().spent == 0.0
        assert session.answer(asked_first(0)).status in ("easy", "hard")
        assert session.summary() is not None
    assert "opened" not in kinds(path)
    assert audit.verified(read(path)).whole


def test_a_session_that_listened_under_other_rules_buys_nothing_more_and_says_so_once(path, monkeypatch):
    monkeypatch.setattr(durable, "RULES", "others")
    settings = {"ledger": path, "table": LABEL, "purchases": DemandPurchases(rent=0)}
    with ic.OnlineIC(table(), ic.Budget(1.0, 1e-6), **settings) as session:
        told = [one.value for one in session.answer_many(queries(3))]
    with pytest.warns(OtherRulesWarning) as said:
        session = resumed(path)
    with session:
        assert told == [session.answer(one).value for one in queries(3)]
        session.answer_many(queries(60))
        session.synthetic(10)
    assert 1 == len([one for one in said if one.category is OtherRulesWarning])
    assert 1 == kinds(path).count("opened")
    assert audit.verified(read(path)).whole


def test_a_number_that_other_rules_may_have_rounded_in_another_way_says_a_whole_bin(path, monkeypatch):
    domain = ic.Domain.of(cost=ic.number(0, 100, bins=4), sex=2)
    rows = {"cost": np.arange(2_000) % 100, "sex": np.arange(2_000) % 2}
    monkeypatch.setattr(durable, "RULES", "others")
    with ic.OnlineIC(
        ic.PrivateData.from_records(rows, domain), ic.Budget(1.0, 1e-6), ledger=path, table=LABEL
    ) as session:
        assert ic.Unit(None) == session.rounded_in
        told = session.mean("cost")
    with pytest.warns(OtherRulesWarning):
        session = ic.OnlineIC.resume(path, ic.PrivateData.from_records(rows, domain))
    with session:
        assert session.rounded_in is None
        again = session.mean("cost")
    assert told.value == again.value
    assert told.bias < 1 < 25 <= again.bias


def test_a_certified_file_that_began_with_tables_tells_what_it_told_and_certifies_no_more(path):
    """Its start held a part of the uniform distribution, on which T(alpha) rested, and has none now."""
    written, told = frozen("certified_tables")
    file_of(written, path)
    assert written.beginning["plan"]["fields"]["update"]["fields"]["uniform"] > 0.0
    with pytest.warns(OtherRulesWarning):
        session = ic.OnlineIC.resume(path, certified_table())
    with session:
        again = [session.answer(asked_of_certified(place)) for place in range(len(told))]
        said, spent = session.statistics(), session.account.spent
        more = session.answer(ic.where(a=ic.between(0, 3), c=2))
        tables = next(record for record in session.transcript if isinstance(record, Opened))
        pair = next(one for one in tables.measurements if one.target.axes == (0, 2))
        assert np.allclose(session.hypothesis.marginal("a", "c").ravel(), pair.values, atol=0.01)
    assert {"repeat"} == {answer.status for answer in again}
    assert [value for _, value in told] == [answer.value for answer in again]
    assert "hard" in {status for status, _ in told}
    assert (False, "easy") == (said.certified, more.status)
    assert 0 < spent <= Fraction(written.beginning["account"]["capacity"])
    report = audit.verified(read(path))
    assert report.whole, report.problems


def test_a_file_that_told_answers_anew_tells_the_last_of_each_with_its_bound(path):
    """Their bound is that of the first and the distance from it; that of all at once has the distance too."""
    written, told = frozen("told_anew")
    questions = asked_anew()
    file_of(written, path)
    assert 6 == kinds(path).count("improved")
    with pytest.warns(OtherRulesWarning):
        session = ic.OnlineIC.resume(path, table_told_anew())
    with session:
        released = [answer for _, answer in session.released()]
        again = [session.answer(one) for one in questions]
        many, said = session.answer_many(questions), session.statistics()
        turned = session.answer(~questions[0])
        session.answer(ic.where(a=0, c=1))
    assert {"known"} == {one.reason for one in (*again, *many, turned)}
    for one, same, (value, bound) in zip(again, many, told["told"], strict=True):
        np.testing.assert_array_equal(one.value, value)
        np.testing.assert_array_equal(same.value, value)
        assert one.error_bound == same.error_bound == pytest.approx(bound, rel=1e-9)
    assert turned.value == pytest.approx(1.0 - again[0].value, abs=1e-12)
    assert said.error_bound == pytest.approx(told["all"], rel=1e-9)
    assert sorted(str(one.query.key) for one in again) == sorted(str(one.query.key) for one in released)
    assert 6 == kinds(path).count("improved")
    report = audit.verified(read(path))
    assert report.whole, report.problems


def test_an_answer_told_anew_is_found_in_a_file_of_these_rules(path):
    """Planted: the number that stands before it once more."""
    with opened(path, threshold=0.2) as session:
        assert "easy" == session.answer(ic.where(a=1)).status
    lines = [json.loads(canonical_text(line)) for line in read(path).lines]
    at, easy = next((place, line) for place, line in enumerate(lines) if line["kind"] == "easy")
    lines.insert(at + 1, {**easy, "kind": "improved"})
    lines = [{**line, "at": place} for place, line in enumerate(lines)]
    forged = chained((canonical_text(line), None) for line in lines)

    assert any("told anew" in text for text in audit.verified(forged).problems)


@pytest.mark.parametrize(("fixed", "rule"), [(True, None), (False, ic.TestsOnly()), (None, None)], ids=repr)
def test_a_file_of_two_keywords_is_opened_again_by_the_one_that_says_the_same(fixed, rule, path, monkeypatch):
    """`first_tables` stood beside `purchases`, in every file."""
    written = LedgerFile.__init__

    def before(self, *given, **more):
        written(self, *given, **more)
        held = {name: one for name, one in self.settings.items() if name != "purchases"}
        object.__setattr__(self, "settings", held | {"first_tables": fixed})

    with monkeypatch.context() as other:
        other.setattr(LedgerFile, "__init__", before)
        other.setattr(durable, "RULES", "others")
        with opened(path, purchases=rule) as session:
            told = session.answer(queries(1)[0]).value
    assert fixed is read(path).beginning["settings"]["first_tables"]
    others = {ic.TestsOnly(), None} - {rule}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OtherRulesWarning)
        for wrong in others:
            with pytest.raises(LedgerMismatchError, match="purchases must be"):
                opened(path, purchases=wrong)
        with opened(path, purchases=rule) as session:
            assert told == session.answer(queries(1)[0]).value
        with resumed(path) as session:
            assert told == session.answer(queries(1)[0]).value


@pytest.mark.parametrize("changed", ["charge", "scale", "more"])
def test_tables_that_a_file_of_other_rules_does_not_pay_are_found_by_verify(changed, path):
    """Planted: of later tables half the charge, half the noise, or a second time what was set aside once."""
    written, _ = frozen("first_default")
    lines = [json.loads(canonical_text(line)) for line in written.lines]
    later = [line for line in lines if line["kind"] == "opened"][-1]
    before = lines[lines.index(later) - 1]
    if changed == "charge":
        less = str(int(later["charge"]["amount"]) // 2)
        later["charge"]["amount"] = before["charge"]["amount"] = less
    elif changed == "scale":
        for one in later["released"]:
            one["scale"] /= 2.0
    else:
        at = lines.index(later)
        lines[at + 1 : at + 1] = [dict(before), dict(later)]
        lines = [{**line, "at": place} for place, line in enumerate(lines)]
    forged = chained((canonical_text(line), None) for line in lines)

    assert any("tables" in text for text in audit.verified(forged).problems)


def test_tables_that_other_neighbours_would_pay_are_found_by_verify_and_refused(path):
    """Planted: of the first tables .8 of the noise, at a price that is enough if records come and go."""
    written, _ = frozen("first_default")
    lines = [json.loads(canonical_text(line)) for line in written.lines]
    planned = lines[0]["plan"]["fields"]["first_tables"]["fields"]
    scales = [Fraction(one["fraction"]) * Fraction(4, 5) for one in planned["scales"]]
    planned |= {"first": None, "neighbours": {"class": "AddRemove", "fields": {}}}
    planned["scales"] = [{"fraction": str(scale)} for scale in scales]
    released = next(line for line in lines if line["kind"] == "opened")["released"]
    for one, scale in zip(released, scales, strict=True):
        one["scale"] = float(scale) / lines[0]["n"]
    forged = chained((canonical_text(line), None) for line in lines)
    for read_again in (audit.verified, lambda written: resumed_file(written, path)):
        with pytest.raises(LedgerCorruptError, match="must hold a plan of tables"):
            read_again(forged)


@pytest.mark.parametrize("amount", ["1/0", "nan", "x"])
def test_a_charge_that_is_no_number_is_refused_by_name(amount, path):
    written, _ = frozen("first_default")
    lines = [json.loads(canonical_text(line)) for line in written.lines[:1]]
    charge = lines[0]["plan"]["fields"]["later_tables"]["fields"]["charge"]["fields"]
    charge["amount"]["fraction"] = amount
    with pytest.raises(LedgerCorruptError, match="whose purchases can be read"):
        resumed_file(chained((canonical_text(line), None) for line in lines), path)


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
    session, ledger = with_ledger(opened, path)
    asked = queries(60)
    told = [session.answer(one) for one in asked]
    hard = [place for place, one in enumerate(told) if one.status == "hard"]
    ledger.release()  # as a killed process leaves it
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
        monkeypatch.setattr("onlineic.plan.older.RULES", "others")
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


def test_settings_that_are_refused_now_make_no_file_of_other_rules_dishonest(path, monkeypatch):
    """What was announced was not looked at once: (1, 0) did no harm."""
    with monkeypatch.context() as other:
        other.setattr(durable, "RULES", "others")
        other.setattr("onlineic.plan.demand._checked_axes", tuple)
        rule = DemandPurchases(announced=((1, 0),))
        session = ic.OnlineIC(table(), ic.Budget(1.0, 1e-6), ledger=path, table="t", purchases=rule)
        with session:
            session.answer(queries(1)[0])

    assert () == audit.verified(read(path)).problems


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
