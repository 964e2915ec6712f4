"""Files of other rules: their plan stands, what was told is told again, and nobody calls them dishonest.

The frozen exports `tables*` are of sessions over the table of `made_table`, of which `tables_open` was killed
before its second purchase; `hits` is one over that of `support.ledgers`. Whoever changes the layout of files
keeps them, and freezes more of the new layout: this file, run with the name of a folder, writes them there.
"""

import json
import sys
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import audit
from onlineic.cli import main
from onlineic.errors import InvalidParameterError, LedgerCorruptError, OtherRulesWarning
from onlineic.ledger import BoughtTables, Hard, exported, imported, read
from onlineic.ledger.lines import canonical_text, chained
from onlineic.plan import DemandPurchases, TestsOnly, defaults
from onlineic.session import durable
from onlineic.session import session as sessions
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
        lines = [*imported(file).lines]
    lines[0] = {**lines[0], "rules": "others"}
    written = chained((canonical_text(line), None) for line in lines)
    return written, json.loads((FROZEN / f"{name}.json").read_text())


def made_table():
    """The table of the files `tables*`: c follows from a and b, f from d, so that pairs tell little of c."""
    rng, n, sizes = np.random.default_rng(7), 60_000, (5, 5, 5, 4, 4, 3)
    columns = [rng.integers(0, size, n) for size in sizes]
    columns[2] = np.where(rng.random(n) < 0.8, (columns[0] + columns[1]) % 5, columns[2])
    columns[5] = np.where(rng.random(n) < 0.6, columns[3] % 3, columns[5])
    names = dict(zip("abcdef", sizes, strict=True))
    return ic.PrivateData.from_records(dict(zip(names, columns, strict=True)), ic.Domain.of(names))


def asked_first(place):
    """The question that stands at this place in the answers of the files `tables*`."""
    if place == 1:
        return ic.where(a=ic.between(1, 2), b=2, c=ic.one_of(3, 4))
    if place == 3:
        return ic.marginal("d", "f")
    if place == 7:
        return ic.where(d=1, f=1, a=ic.between(0, 2))
    if place % 3 == 2:
        return ic.where(a=place % 5, b=ic.between(0, 2), c=(place + 1) % 5)
    return ic.where(a=place % 5, d=ic.between(0, place % 4))


TABLES = {"tables": 2, "tables_pure": 1, "tables_open": 1}  # releases of tables in them


def resumed_file(written, path):
    return ic.OnlineIC.resume(file_of(written, path), made_table())


def first_planned(lines):
    """The tables that a plan releases first, as a file holds them."""
    return lines[0]["plan"]["fields"]["purchases"]["fields"]["first"]["fields"]["first"]["fields"]


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


@pytest.mark.parametrize("name", TABLES)
def test_a_file_of_other_rules_tells_what_it_told_and_goes_on_without_purchases(name, path, capsys):
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
    assert TABLES[name] == kinds(path).count("opened")
    assert {"easy", "hard"} >= {answer.status for answer in more} - {"untested"}
    assert type(mechanism).__name__ == written.beginning["plan"]["fields"]["sparse"]["class"]
    report = audit.verified(read(path))
    assert report.whole, report.problems


def test_a_total_pays_for_tables_of_other_rules_what_they_cost_wherever_they_come():
    """As the first release of their filter they were charged less (theory 4.10)."""
    written, _ = frozen("tables")
    plan = durable.planned(written.beginning, written.domain())
    account, (tables, *_) = plan.sparse.account(), plan.purchases.tables

    assert tables.first
    assert 0 < tables.saved <= tables.charge.amount / 4
    assert plan.drawn.capacity == account.capacity + tables.saved
    with pytest.raises(InvalidParameterError, match="charge must pay"):
        attrs.evolve(tables, first=False)
    with pytest.raises(InvalidParameterError, match="charge must pay"):
        attrs.evolve(tables, scales=tuple(scale * 4 / 5 for scale in tables.scales))


def test_a_hypothesis_is_made_of_the_recorded_measurements_of_a_file_of_other_rules(path):
    """Of a kept file it stands in a checkpoint; without one it is fitted to the measurements again."""
    written, _ = frozen("tables")
    held = []
    for kept in (written, without(written, "checkpoint")):
        place = file_of(kept, path.with_name(f"{len(held)}.db"))
        with resumed_first(place) as session:
            held.append(np.asarray(session.hypothesis.marginal("a", "b", "c")))
            tables = [record for record in session.transcript if isinstance(record, BoughtTables)]
    assert np.allclose(held[0], held[1], atol=1e-3)
    (later,) = [one for one in tables[1].measurements if one.target.axes == (0, 1, 2)]
    assert np.corrcoef(held[0].ravel(), np.ravel(later.values))[0, 1] > 0.99


def test_hits_go_on_at_the_recorded_mechanism_and_price(path):
    """The distance of c from what pairs tell is a hit, whose number is charged as those before it were."""
    file_of(frozen("tables_open")[0], path)
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


def test_a_file_of_other_rules_before_its_first_question_buys_nothing(path):
    written, _ = frozen("tables")
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


@pytest.mark.parametrize("changed", ["charge", "scale", "more"])
def test_tables_that_a_file_of_other_rules_does_not_pay_are_found_by_verify(changed, path):
    """Planted: of later tables half the charge, half the noise, or more than was set aside."""
    written, _ = frozen("tables")
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
        lines[at + 1 : at + 1] = [dict(one) for _ in range(4) for one in (before, later)]
        lines = [{**line, "at": place} for place, line in enumerate(lines)]
    forged = chained((canonical_text(line), None) for line in lines)

    assert any("tables" in text for text in audit.verified(forged).problems)


def test_tables_that_other_neighbours_would_pay_are_found_by_verify_and_refused(path):
    """Planted: of the first tables .8 of the noise, at a price that is enough if records come and go."""
    written, _ = frozen("tables")
    lines = [json.loads(canonical_text(line)) for line in written.lines]
    planned = first_planned(lines)
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
    written, _ = frozen("tables")
    lines = [json.loads(canonical_text(line)) for line in written.lines[:1]]
    first_planned(lines)["charge"]["fields"]["amount"]["fraction"] = amount
    with pytest.raises(LedgerCorruptError, match="whose purchases can be read"):
        resumed_file(chained((canonical_text(line), None) for line in lines), path)


def test_hits_of_a_file_of_other_rules_tell_what_they_told_and_it_is_not_called_dishonest(path):
    written, told = frozen("hits")
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
    written, told = frozen("hits")
    file_of(written, path)
    other_rules_of_answers(monkeypatch)
    lacking = file_of(without(written, "told"), path.with_name("lacking.db"))

    assert [value for _, value in told] == [answer.value for answer in told_again(path)]
    assert [value for _, value in told] != [answer.value for answer in told_again(lacking)]


def test_a_bound_of_a_told_answer_reaches_what_was_measured_under_any_rules(path, monkeypatch):
    """It grows by the distance of the number that was told from the measured one."""
    written, _ = frozen("hits")
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
        other.setattr("onlineic.plan.demand.checked_axes", tuple)
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


def write_frozen(folder):
    """Write sessions as this version does, and what they told."""

    def told(session, asked):
        answers = [session.answer(one) for one in asked]
        return [[one.status, np.asarray(one.value).tolist()] for one in answers]

    default, pure, first = ic.Budget(1.0, 1e-6), ic.Budget(1.0), {"table": "made, first release"}
    for name, budget, count in (
        ("tables", default, 14),
        ("tables_pure", pure, 14),
        ("tables_open", default, 3),
    ):
        with quick_folder() as place:
            files = {"ledger": place / "session.db", "durability": "all", **first}
            session, ledger = with_ledger(ic.OnlineIC, made_table(), budget, **files)
            values = told(session, map(asked_first, range(count)))
            ledger.release() if name == "tables_open" else session.close()
            write_one(folder / name, files["ledger"], values)
    with quick_folder() as place:
        with opened(place / "session.db") as session:
            values = told(session, queries(14))
        write_one(folder / "hits", place / "session.db", values)


def write_one(path, file, values):
    path.with_suffix(".json").write_text(json.dumps(values))
    path.with_suffix(".jsonl").write_text("".join(f"{line}\n" for line in exported(read(file))))


if __name__ == "__main__":
    write_frozen(Path(sys.argv[1]))
