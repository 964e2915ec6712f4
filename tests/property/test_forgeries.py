"""One field of a ledger edited by somebody who knows the rule of the chain: refused, wherever it can be.

Every field of every kind of line, in the ledger of a session and in that of a total. What is not refused
stands in `FREE`, with the reason: nothing else in the file says the same. Some edits of each by default, all
with `make fuzz`.
"""

import contextlib
import json
import random
import shutil
import sqlite3
from fractions import Fraction

import pytest

import onlineic as ic
from onlineic.audit import total_report, verified
from onlineic.errors import OnlineICError
from onlineic.ledger import read
from onlineic.ledger.lines import canonical_text, chained
from support.ledgers import opened, queries, quick_folder, resumed, table, with_ledger

ASKED = queries()
WHOLE = ic.Budget(1.0, 1e-9)
# kind of line and path, of which a leading part is enough: what nobody but a receipt can tell
FREE = {
    # words for people, and the curator's names
    ("ledger", "created"), ("ledger", "version"), ("ledger", "table"), ("ledger", "domain"),
    ("ledger", "nonce"),
    # of other rules nothing is planned or learned again, so that those of now refute nothing
    ("ledger", "rules"),
    ("resumed", "version"), ("reserved", "charge", "event"), ("burned", "charge", "event"),
    ("drawn", "charge", "event"),
    # how many easy answers a killed process may have lost; answers without a line, more than there were
    ("ledger", "durability"), ("resumed", "durability"),
    ("closed", "constants"), ("closed", "repeats"), ("closed", "untested"), ("closed", "rounding"),
    # what happens when the budget is gone; a start that must be brought, and is compared then
    ("ledger", "settings", "exhausted"), ("ledger", "settings", "prior"),
    # what the session may be; how far a session's file was: its removal lets an older one pass
    ("ledger", "settings", "budget", "fields", "allow_large_epsilon"), ("noted", "lines"), ("noted", "head"),
    # more than its tests needed, and given back; less is found (`test_ledger_reports`)
    ("reserved", "charge", "amount"),
    # said twice, or left out beside the account that says it, it is the same
    ("drawn", "budget", "order"),
    # a number may fall to the next unit on another machine: counted, `LedgerReport.differing`
    ("easy", "guess"), ("easy_batch", "guesses"), ("hard", "guess"),
    # what tables were bought for is refuted where others would have been bought for it
    ("opened", "heard"),
    # noise is secret: a released value is refuted by what was learned from it, so the last ones are not
    ("hard", "released", "values"), ("hard", "query"), ("easy", "query"), ("easy_batch", "boxes"),
    ("easy_batch", "others"), ("checkpoint", "records"),
}  # fmt: skip


@pytest.fixture(scope="module")
def ledgers():
    """Three sessions of three runs, the first of which was killed, and a total."""
    found = {}
    with quick_folder() as folder:
        for kind, durability in (("exponential", "hits"), ("gumbel", "all"), ("laplace", "hits")):
            path = folder / f"{kind}.db"
            session, ledger = with_ledger(opened, path, kind, durability=durability)
            for query in ASKED[:6]:
                session.answer(query)
            if kind == "gumbel":
                session.answer(ic.marginal("a", "b"))
            session.answer_many([*ASKED[6:20], ASKED[0], ic.where()])
            ledger.release()
            for start in (20, 30):
                with resumed(path) as session:
                    session.answer_many(ASKED[start : start + 10])
            found[kind] = read(path)
        with ic.TableBudget(WHOLE, ledger=folder / "total.db", table="census") as total:
            data = table()
            data.draw_on(total)
            for _ in range(2):
                ic.OnlineIC(data, total.share(0.25), ledger=folder / "one.db", table="census").close()
            ic.offline.median(data, "a", epsilon=0.01)
            total.draw(ic.Budget(0.01, 1e-11))
        found["total"] = read(folder / "total.db")
    return found


def checked(written):
    """Whether a ledger is taken for whole; refusals by name are all that may be raised."""
    written.check_beginning()
    return not (total_report if written.of_table else verified)(written).problems


def leaves(part, path=()):
    """Every field, and every part that holds some."""
    yield path, part
    parts = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for name, one in parts:
        yield from leaves(one, (*path, name))


def edits(held):
    """Other values of a field, and GONE."""
    yield GONE
    if isinstance(held, bool):
        yield not held
    elif isinstance(held, int):
        step = 1 + abs(held) // 1000  # plans of two machines may differ by less
        yield from (held + step, held - step, 2 * held + 3, -held - 1, 0, float(held), str(held))
    elif isinstance(held, float):
        yield from (1.5 * held + 0.1, 0.5 * held - 0.1, -held, 0.0, held * (1 + 1e-5))
    elif isinstance(held, str):
        yield from (f"{held}x", "")
        try:
            exact = Fraction(held)
        except ValueError:
            return
        yield from map(
            str,
            (2 * exact, exact / 2, exact + 1 + abs(exact) / 1000, -exact, exact * Fraction(9999, 10000), 0),
        )
    elif isinstance(held, list):
        yield from (held[1:], [*held, *held[-1:]], held[::-1], [])
    else:
        yield from ({},) if held is not None else (0, "x", [])


GONE = object()


def forged(lines, at, path, new):
    """The ledger with one field replaced, and its chain made anew."""
    line = holder = json.loads(json.dumps(lines[at]))
    for name in path[:-1]:
        holder = holder[name]
    if new is GONE:
        del holder[path[-1]]
    else:
        holder[path[-1]] = new
    texts = [canonical_text(line if place == at else one) for place, one in enumerate(lines)]
    return chained((text, None) for text in texts)


def kinds_of_fields(lines):
    """By kind of line and path, with any place of a list: where such a field stands, and what it holds."""
    found = {}
    for at, line in enumerate(lines):
        for path, held in leaves(line):
            if path and path != ("at",):
                key = (line["kind"], *("#" if isinstance(name, int) else name for name in path))
                found.setdefault(key, []).append((at, path, held))
    return found


def free(key):
    return any(key[: len(one)] == one for one in FREE)


def taken_for_whole(written, tries, seed, most=None):
    """How many edits there were, and those of fields that are not free which nobody refused."""
    rng, count, wrong = random.Random(seed), 0, []
    lines = json.loads(json.dumps(written.lines))
    assert checked(written)
    for key, places in sorted(kinds_of_fields(lines).items()):
        for at, path, held in rng.sample(places, min(tries, len(places))):
            others = [one for one in edits(held) if one is GONE or type(one) is not type(held) or one != held]
            if key[1] == "settings":  # what is left out is the default, with the plan that it gives
                others = [one for one in others if one is not GONE]
            for new in others if most is None else rng.sample(others, min(most, len(others))):
                count += 1
                try:
                    whole = checked(forged(lines, at, path, new))
                except OnlineICError:
                    whole = False
                if whole and not free(key):
                    wrong.append((key, held, "GONE" if new is GONE else new))
    return count, wrong


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), [("exponential", 1), ("total", None)])
def test_no_field_can_be_edited_that_something_else_in_the_ledger_tells(name, most, ledgers):
    count, wrong = taken_for_whole(ledgers[name], 1, 5, most)

    assert [] == wrong
    assert count > 100


@pytest.mark.fuzz
@pytest.mark.parametrize("name", ["exponential", "gumbel", "laplace", "total"])
def test_so_it_is_for_every_kind_of_edit_of_every_mechanism(name, ledgers):
    count, wrong = taken_for_whole(ledgers[name], 1, 7)

    assert [] == wrong
    assert count > 150


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::onlineic.errors.BudgetsAddWarning")  # of edited budgets
@pytest.mark.filterwarnings("ignore::onlineic.errors.LargeDeltaWarning")
def test_a_session_is_made_of_an_edited_file_or_refused_by_name_and_reads_nothing(ledgers):
    """What a file says that was put together by hand can be anything: never an error without a name."""
    lines, data, rng = json.loads(json.dumps(ledgers["exponential"].lines)), table(), random.Random(3)
    made = refused = 0
    with quick_folder() as folder:
        path, base = folder / "edited.db", folder / "base.db"
        opened(base, "exponential").close()
        for _, places in sorted(kinds_of_fields(lines).items()):
            for at, path_of, held in rng.sample(places, 1):
                shutil.copy(base, path)
                try:
                    store(path, forged(lines, at, path_of, rng.choice(list(edits(held)))))
                    with_ledger(resumed, path, data)[1].release()
                    made += 1
                except OnlineICError:
                    refused += 1
    assert 0 == data.reads
    assert min(made, refused) > 25


def store(path, written):
    """Put lines into a ledger file, in the place of those that it had."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM line")
        for place, (line, link) in enumerate(zip(written.lines, written.links, strict=True)):
            connection.execute("INSERT INTO line VALUES (?, ?, ?)", (place, canonical_text(line), link))
        connection.execute("UPDATE head SET lines = ?, chain = ?", (len(written.links), written.links[-1]))
        connection.commit()


def test_every_kind_of_line_is_among_them(ledgers):
    kinds = {line["kind"] for written in ledgers.values() for line in written.lines}
    assert kinds == {
        "ledger", "reserved", "opened", "easy", "easy_batch", "hard", "burned", "closed", "resumed",
        "checkpoint", "told", "drawn", "noted", "shared",
    }  # fmt: skip
    # and `update_failed`, which a rule has to cause: it holds the name of a class, and a replay that differs
