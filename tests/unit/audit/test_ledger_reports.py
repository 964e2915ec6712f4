"""A ledger is computed again from its lines: what was never paid, drawn or believed is found."""

import json
from fractions import Fraction

import pytest

from onlineic.audit import summarised, verified
from onlineic.errors import LedgerRollbackError
from onlineic.ledger import read
from onlineic.ledger.lines import canonical_text, chained
from support.ledgers import LABEL, opened, queries, quick_folder, resumed, with_ledger

ASKED = queries()


@pytest.fixture(scope="module")
def written():
    """Two runs of a pure session, the first of them killed."""
    with quick_folder() as folder:
        path = folder / "census.db"
        session, ledger = with_ledger(opened, path, "exponential")
        session.answer_many(ASKED[:30])
        ledger.release()
        again = resumed(path)
        again.answer_many(ASKED[30:])
        again.close()
        return read(path)


def forged(written, change):
    """A ledger whose lines were altered by somebody who made its chain anew."""
    lines = json.loads(json.dumps(written.lines))
    change(lines)
    return chained((canonical_text({**line, "at": at}), None) for at, line in enumerate(lines))


def of_kind(lines, kind):
    return [line for line in lines if line["kind"] == kind]


def test_a_ledger_as_it_was_written_holds_to_the_bit(written):
    report = verified(written, receipt=written.receipt)

    assert report.whole
    assert report.replayed
    assert (0, 0.0) == (report.differing, report.largest)
    assert report.numbers > 30
    assert (LABEL, 60_000, 1, 0) == (report.table, report.n, report.resumed, report.reserved)
    assert report.hard > 4
    assert 0 < report.forfeited < report.spent < 1
    assert summarised(written).spent == report.spent


def cheaper(line):
    line["charge"]["amount"] = str(Fraction(line["charge"]["amount"]) * Fraction(9, 10))


def cheaper_hit(lines):
    """A charge of nine tenths, reserved and released."""
    cheaper(of_kind(lines, "reserved")[3])
    cheaper(of_kind(lines, "hard")[3])


def forgotten_burn(lines):
    """What stood reserved when the process died is given back."""
    lines.remove(of_kind(lines, "burned")[0])


def unpaid_start(lines):
    """The threshold of the second run is not paid again."""
    at = lines.index(of_kind(lines, "resumed")[0])
    reserved, hard = of_kind(lines[at:], "reserved")[0], of_kind(lines[at:], "hard")[0]
    first = of_kind(lines, "hard")[1]["charge"]["amount"]
    reserved["charge"]["amount"] = hard["charge"]["amount"] = first


def other_guess(lines):
    of_kind(lines, "easy_batch")[0]["guesses"][0] += 2


def other_value(lines):
    """A released number that is not the one that was learned from: every later guess tells."""
    of_kind(lines, "hard")[0]["released"]["values"][0] += 0.25


def not_reserved(lines):
    lines.remove(of_kind(lines, "reserved")[2])


def other_price(lines):
    """A plan whose account is not that of its mechanism."""
    lines[0]["account"]["capacity"] = "5"


def other_target(lines):
    hard = of_kind(lines, "hard")
    hard[0]["released"]["query"] = hard[1]["query"]


def other_checkpoint(lines):
    of_kind(lines, "checkpoint")[0]["version"] += 1


def other_scale(lines):
    """Noise that is told as smaller than it was."""
    of_kind(lines, "hard")[0]["released"]["scale"] /= 2


FORGERIES = {
    other_scale: "another scale",
    cheaper_hit: "a test that costs",
    forgotten_burn: "is not spent",
    unpaid_start: "a test that costs",
    other_guess: "tested number",
    other_value: "tested number",
    not_reserved: "not reserved",
    other_price: "account",
    other_target: "another target",
    other_checkpoint: "another replay",
}


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_a_forged_ledger_is_found_although_its_chain_holds(change, written):
    other = forged(written, change)
    problems = verified(other).problems

    assert any(FORGERIES[change] in problem for problem in problems), problems
    with pytest.raises(LedgerRollbackError):
        verified(other, receipt=written.receipt)


@pytest.fixture(scope="module")
def closed():
    """A pure session that was closed behind an easy test, twice."""
    with quick_folder() as folder:
        path = folder / "census.db"
        with opened(path, "exponential", threshold=0.5) as session:
            session.answer(ASKED[0])
        with resumed(path) as session:
            session.answer(ASKED[1])
        return read(path)


def without(*kinds):
    def change(lines):
        lines[:] = [line for line in lines if (line["kind"], line.get("reason")) not in kinds]

    return change


def test_a_run_that_was_closed_is_paid_and_ends(closed):
    """Planted: closings that give back what a threshold used up, and runs that go on behind their end."""
    kinds = [line["kind"] for line in closed.lines if line["kind"] != "checkpoint"]
    assert kinds == ["ledger", *["reserved", "easy", "burned", "closed", "resumed"] * 2][:-1]
    assert verified(closed).whole

    def problems(change):
        return " ".join(verified(forged(closed, change)).problems)

    assert "used up" in problems(without(("burned", "closed")))
    assert "has ended" in problems(without(("resumed", None)))
    assert "has ended" in problems(without(("closed", None)))
    assert "is missing" in problems(lambda lines: lines.pop())

    def interrupted(lines):
        of_kind(lines, "burned")[0]["reason"] = "interrupted"
        lines.remove(of_kind(lines, "closed")[0])
        lines.remove(of_kind(lines, "resumed")[0])

    assert "has ended" in problems(interrupted)


@pytest.mark.parametrize("kind", ["gumbel", "numbers", "exponential", "laplace"])
def test_ledgers_of_every_mechanism_hold_behind_closings_and_kills(kind):
    with quick_folder() as folder:
        path = folder / "census.db"
        for start in range(0, 40, 10):
            session, ledger = with_ledger(resumed, path) if start else with_ledger(opened, path, kind)
            session.answer_many(ASKED[start : start + 10])
            if start % 20:
                ledger.release()
            else:
                session.close()
        assert verified(read(path)).problems == ()
