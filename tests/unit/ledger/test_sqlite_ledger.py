"""A ledger in a file: whole steps, one process at a time, and no history that is silently shorter."""

import contextlib
import gc
import os
import re
import sqlite3
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge, Filter, TableCharge
from onlineic.errors import (
    BudgetExceededError,
    ForkedSessionError,
    InternalError,
    InvalidParameterError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerMismatchError,
    LedgerWriteError,
)
from onlineic.ledger import (
    BlockBegun,
    BoughtTables,
    Checkpoint,
    Closed,
    CountPaid,
    Drawn,
    Easy,
    EasyBatch,
    Forfeited,
    Hard,
    NodeOpened,
    Noted,
    Paid,
    Reserved,
    Resumed,
    Shared,
    Single,
    SqliteLedger,
    ToldAnswer,
    UpdateFailed,
    exported,
    imported,
    read,
)
from onlineic.ledger import place as place_module
from onlineic.ledger import sqlite as sqlite_module
from onlineic.ledger.kinds import KINDS, line_of
from onlineic.ledger.lines import canonical_text, chained, record_of
from onlineic.ledger.settings import beginning_of
from onlineic.queries import Measurement, Partition
from onlineic.queries.batch import Queries
from support.ledgers import in_a_process, quick_folder

DOMAIN = ic.Domain.of(a=4, b=["x", "y"], c=100)
HIT = ic.where(a=0).bind(DOMAIN)
FINE_WRITTEN = ic.where(a=ic.weights([0.1, 0.2, 1 / 3, 1.0])) & ic.where(c=ic.one_of(1, 5, 7))
FINE = FINE_WRITTEN.bind(DOMAIN)
DENSE = ic.dense(np.random.default_rng(1).random((4, 2, 100))).bind(DOMAIN)
COST = Charge(Fraction(1, 7), "a hit")


def measured(target=HIT, values=(0.1,)):
    return Measurement(target, np.array(values), 1 / 3)


@pytest.fixture
def path():
    with quick_folder() as folder:
        yield folder / "census.db"


def made(path, capacity=1, durability="hits"):
    beginning = beginning_of(
        created="2026-11-22T12:00:00+00:00", version="0", table="census", domain=DOMAIN, n=10,
        account=Filter(Fraction(capacity)), settings={}, plan={},
    )  # fmt: skip
    ledger = SqliteLedger.create(path, beginning, durability)
    ledger.claim("me", Filter(Fraction(capacity)))
    return ledger


def with_a_hit(path, **more):
    ledger = made(path, **more)
    ledger.reserve(COST)
    ledger.commit([Easy(HIT, 3), Hard(HIT, 3, measured(), COST)])
    return ledger


def texts(ledger):
    """What the records of a ledger say, to the bit."""
    return [canonical_text(line_of(record)) for record in ledger.records()]


def reopened(path):
    ledger = SqliteLedger.open(path)
    ledger.release()
    return ledger


TABLE = Partition(DOMAIN, (0, 1), (np.array([0, 0, 1, 1]), np.array([0, 1])))
MIXED = Partition(DOMAIN, (2,), (np.arange(100) % 7,))
MARGINAL = ic.marginal("b", "a", where=ic.where(c=ic.between(3, 60))).bind(DOMAIN)
RENYI = Charge(Fraction(5), "tables", "ticks", Fraction(129, 64))
FILE, SPENT = "ab" * 32, ic.Budget(0.5, 1e-9, allow_large_epsilon=True)
EVERY = [
    Reserved(RENYI),
    Easy(HIT, 2**60),
    Easy((~FINE_WRITTEN).bind(DOMAIN), 5),
    Easy(DENSE, 7),
    Easy(MARGINAL, tuple(range(MARGINAL.partition.blocks))),
    Easy(ic.where().bind(DOMAIN), 1),
    EasyBatch(
        Queries.bound(DOMAIN, [ic.where(a=ic.between(1, 2)).bind(DOMAIN), HIT, FINE] * 40),
        np.arange(120) << 40,
    ),
    Hard(HIT, 3, measured(), COST),
    Hard(FINE, 3, measured(TABLE, np.random.default_rng(2).normal(size=4)), COST),
    Hard(MARGINAL, (1,) * MARGINAL.partition.blocks, measured(MARGINAL.partition, np.ones(16)), COST),
    BoughtTables(
        (measured(TABLE, np.ones(4)), measured(Partition(DOMAIN, (2,), (np.arange(100) % 7,)), np.ones(7))),
        COST,
    ),
    Single(HIT, 3, measured(), COST),
    Single(MARGINAL, (1,) * MARGINAL.partition.blocks, measured(MARGINAL.partition, np.ones(16)), COST),
    UpdateFailed("MemoryError"),
    Forfeited(COST, "closed"),
    Closed(1, 2, 3, 0.1 + 0.2),
    Resumed("0.1.0"),
    ToldAnswer(3, 0.25),
    ToldAnswer(3, (0.25, 0.5)),
    Paid(3, "ann"),
    Drawn(TableCharge(RENYI, Fraction(1, 9)), SPENT, Filter(Fraction(7)), "session", FILE),
    Drawn(TableCharge(COST), ic.Budget(30.0, 1e-9, allow_large_epsilon=True, order=Fraction(8))),
    Noted(FILE, 12, bytes(range(32))),
    Shared(Filter(Fraction(7), "ticks", Fraction(129, 64)), Fraction(1, 3)),
    CountPaid("2026-01", COST),
    BlockBegun("2026-01", 1, True, -3),
    BlockBegun("2026-02", 0),
    NodeOpened("2026", ("2026-01", "2026-02"), FILE, RENYI),
]


@pytest.mark.parametrize("record", EVERY, ids=lambda record: type(record).__name__)
def test_every_record_is_read_as_it_was_written_to_the_bit(record):
    text = canonical_text(line_of(record))
    again = record_of(__import__("json").loads(text), DOMAIN)

    assert text == canonical_text(line_of(again))
    if isinstance(record, Easy | Hard | Single):
        assert (again.query.key, again.query.complement, again.guess) == (
            record.query.key, record.query.complement, record.guess,
        )  # fmt: skip
        assert again.query.rounding == record.query.rounding
        assert getattr(again.query, "sensitivity", 0) == getattr(record.query, "sensitivity", 0)
    elif isinstance(record, EasyBatch):
        assert [*again] == [*record]
    elif not isinstance(record, BoughtTables | Single):
        assert again == record

    if isinstance(record, Hard | Single):
        assert record.measurement.target == again.measurement.target or isinstance(
            record.query, type(MARGINAL)
        )
        assert record.measurement.values.tobytes() == again.measurement.values.tobytes()
        assert (record.measurement.scale, record.charge) == (again.measurement.scale, again.charge)


NO_LINES = [  # a kind, and what a line of it never holds
    ("reserved", {"charge": {"amount": "1/7", "event": "a hit", "unit": 3}}),
    ("reserved", {"charge": {"amount": "1/0", "event": "a hit", "unit": "epsilon"}}),
    ("easy", {"guess": [1, 2]}),
    ("hard", {"guess": [1, 2]}),
    ("single", {"guess": [1, 2]}),
    ("single", {"released": line_of(EVERY[8])["released"]}),  # of another partition than the question's
    ("opened", {"released": 3}),
    ("burned", {"reason": "lost"}),
    ("update_failed", {"error": None}),
    ("closed", {"constants": -1}),
    ("closed", {"repeats": True}),
    ("closed", {"rounding": -0.5}),
    ("resumed", {"durability": "some"}),
    ("told", {"value": []}),
    ("told", {"value": 1}),
    ("told", {"record": -1}),
    ("paid", {"name": ""}),
    ("drawn", {"what": "other"}),
    ("drawn", {"file": "00"}),
    ("drawn", {"account": {}}),
    ("noted", {"head": "00"}),
    ("noted", {"lines": "12"}),
    ("shared", {"account": {"capacity": "7", "unit": "epsilon"}}),
    ("count", {"label": 3}),
    ("block", {"n": -1}),
    ("block", {"drawn": 3}),
    ("block", {"late": 0}),
    ("node", {"blocks": "2026"}),
    ("node", {"blocks": [3]}),
]


@pytest.mark.parametrize(("kind", "other"), NO_LINES, ids=str)
def test_a_line_that_no_record_is_written_as_is_refused(kind, other):
    line = next(line for line in map(line_of, EVERY) if line["kind"] == kind)
    assert canonical_text(line_of(record_of(line, DOMAIN))) == canonical_text(line)
    with pytest.raises(LedgerCorruptError, match="another one at place 5"):
        record_of({**line, **other, "at": 5}, DOMAIN)
    for name in line.keys() - {"heard", "drawn"}:  # of which nothing is written where there is none
        with pytest.raises(LedgerCorruptError, match="another one at place 5"):
            record_of({field: one for field, one in line.items() if field != name} | {"at": 5}, DOMAIN)


def test_what_is_read_is_what_was_written(path):
    ledger = with_a_hit(path)
    ledger.reserve(COST)
    ledger.keep(
        Checkpoint(
            records=3, values=np.array([0.5, np.nan]),
            version=1, failures=0, parameters=(np.random.default_rng(1).normal(size=100),),
        )
    )  # fmt: skip
    ledger.commit([UpdateFailed("MemoryError")])
    ledger.forfeit()
    records = texts(ledger)
    ledger.release()
    again = reopened(path)

    assert records == texts(again)
    assert (Reserved(COST), Easy(HIT, 3)) == again.records(0, 2)
    assert (Fraction(2, 7), None) == (again.account.spent, again.reserved)
    assert 1 == len(again.checkpoints)
    assert np.random.default_rng(1).normal(size=100).tolist() == again.checkpoints[0].parameters[0].tolist()
    assert np.isnan(again.checkpoints[0].values[1])


def test_easy_answers_wait_for_a_charge_and_never_more_than_256_of_them(path):
    ledger = with_a_hit(path)
    written = ledger.durable
    ledger.commit([Easy(HIT, 3)] * 200)
    waiting = ledger.durable
    ledger.commit([Easy(HIT, 3)] * 57)
    full = ledger.durable
    ledger.commit([Easy(HIT, 3)])
    ledger.reserve(COST)

    assert (written, written, written + 257, written + 259) == (3, waiting, full, ledger.durable)
    ledger.release()
    assert len(reopened(path)) == len(ledger)


def test_with_durability_all_no_easy_answer_waits(path):
    ledger = with_a_hit(path, durability="all")
    ledger.commit([Easy(HIT, 3)])
    assert ledger.durable == len(ledger) == 4


def test_a_refused_step_changes_nothing(path):
    ledger = with_a_hit(path)
    receipt, before = ledger.receipt, ledger.records()
    with pytest.raises(BudgetExceededError):
        ledger.reserve(Charge(Fraction(7), "too much"))
    with pytest.raises(InternalError, match="must be reserved"):
        ledger.commit([Hard(HIT, 3, measured(), COST)])
    with pytest.raises(InternalError, match="come last"):
        ledger.commit([Hard(HIT, 3, measured(), COST), Easy(HIT, 3)])
    assert (receipt, before) == (ledger.receipt, ledger.records())


def test_a_file_is_of_one_session_at_a_time_even_if_somebody_closes_a_descriptor_of_it(path):
    ledger = with_a_hit(path)
    path.read_bytes()
    for again in (SqliteLedger.open, read, lambda path: made(path)):
        with pytest.raises(LedgerLockedError):
            again(path)
    with pytest.raises(LedgerLockedError, match="another has"):
        ledger.claim("you", ledger.account)
    os.link(path, path.with_name("other.db"))
    with pytest.raises(LedgerLockedError):  # its own lock is another file: SQLite's is of the file itself
        read(path.with_name("other.db"))
    ledger.give_back("you")
    ledger.reserve(COST)
    ledger.give_back("me")
    with pytest.raises(LedgerError, match="must be open"):
        ledger.reserve(COST)
    with pytest.raises(LedgerMismatchError, match="which exists"):
        made(path)


def test_a_ledger_that_nobody_holds_any_more_lets_its_file_go(path):
    ledger = with_a_hit(path)
    del ledger
    assert len(reopened(path)) == 3


def test_a_forked_process_takes_nothing_and_harms_nothing(path):
    ledger = with_a_hit(path)

    def act(tell):
        for use in (lambda: ledger.reserve(COST), lambda: ledger.commit([Easy(HIT, 3)]), ledger.forfeit):
            with pytest.raises(ForkedSessionError):
                use() if ledger.reserved or use is not ledger.forfeit else ledger._check()
        ledger.release()
        tell("unharmed")

    ledger.reserve(COST)
    told, _ = in_a_process(act)
    assert [("unharmed",)] == told
    with pytest.raises(LedgerLockedError):
        read(path)
    ledger.commit([Hard(HIT, 3, measured(), COST)])
    ledger.release()
    assert (Fraction(2, 7), 5) == (reopened(path).account.spent, len(reopened(path)))


class Failing:
    """A connection whose writes fail, at one of them, as on a full disk."""

    def __init__(self, inner, word):
        self.inner, self.word = inner, word

    def execute(self, text, *more):
        if text.startswith(self.word):
            raise sqlite3.OperationalError("database or disk is full")
        return self.inner.execute(text, *more)

    def executemany(self, text, rows):
        return self.execute("INSERT") if self.word == "INSERT" else self.inner.executemany(text, rows)

    def __getattr__(self, name):
        return getattr(self.inner, name)


@pytest.mark.parametrize("word", ["BEGIN", "INSERT", "UPDATE", "COMMIT"])
def test_a_full_disk_stops_the_ledger_and_what_stood_reserved_stays_so(word, path):
    ledger = with_a_hit(path)
    ledger.reserve(COST)
    records = ledger.records()
    ledger._connection = Failing(ledger._connection, word)
    with pytest.raises(LedgerWriteError, match="resume the session"):
        ledger.commit([Hard(HIT, 3, measured(), COST)])
    assert records == ledger.records()
    assert COST == ledger.reserved
    ledger._connection = ledger._connection.inner
    for later in (lambda: ledger.reserve(COST), ledger.forfeit, lambda: ledger.commit([Easy(HIT, 3)])):
        with pytest.raises(LedgerWriteError, match="last write failed"):
            later()
    ledger.release()
    assert (COST, texts(ledger)) == (reopened(path).reserved, texts(reopened(path)))


class Interrupted(Failing):
    """A connection behind which Ctrl-C comes, before or after one of its statements."""

    def __init__(self, inner, word, after):
        super().__init__(inner, word)
        self.after = after

    def execute(self, text, *more):
        if text.startswith(self.word) and not self.after:
            raise KeyboardInterrupt
        result = self.inner.execute(text, *more)
        if text.startswith(self.word):
            raise KeyboardInterrupt
        return result

    def executemany(self, text, rows):
        if self.word == "INSERT":
            if self.after:
                self.inner.executemany(text, rows)
            raise KeyboardInterrupt
        return self.inner.executemany(text, rows)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("word", ["BEGIN", "INSERT", "UPDATE", "COMMIT"])
@pytest.mark.parametrize("step", ["reserve", "commit", "forfeit", "restart"])
def test_a_step_is_whole_or_has_not_happened_wherever_it_is_interrupted(step, word, after, path):
    """The file decides: what it holds is what the ledger says, now and when it is opened again."""

    def act(ledger):
        if step == "reserve":
            ledger.reserve(Charge(Fraction(1, 6), "a dearer hit"))
        elif step == "commit":
            ledger.commit([Easy(HIT, 5), Hard(HIT, 3, measured(), COST)])
        elif step == "forfeit":
            ledger.forfeit()
        else:
            ledger.restart("1")

    ledger = with_a_hit(path)
    ledger.commit([Easy(HIT, 4)])
    ledger.reserve(COST)
    before = texts(ledger)
    ledger._connection = Interrupted(ledger._connection, word, after)
    with pytest.raises(KeyboardInterrupt):
        act(ledger)
    ledger._connection = ledger._connection.inner
    held, happened = texts(ledger), after and word == "COMMIT"
    assert happened is (held != before)
    ledger._check()  # it goes on
    if ledger.reserved is None:
        ledger.reserve(COST)
    ledger.commit([Hard(HIT, 3, measured(), COST)])
    spent = ledger.spent
    ledger.release()
    again = reopened(path)

    assert texts(ledger) == texts(again)
    assert (
        spent == again.spent == Fraction(3 if happened and step != "reserve" else 2, 7) or step == "reserve"
    )


def altered(path, content, tally):
    """Read an altered file: refused, or the very same history."""
    for name in (path, path.with_name(path.name + "-journal")):
        name.unlink(missing_ok=True)
    path.write_bytes(content)
    try:
        lines = read(path).lines
    except (LedgerCorruptError, LedgerMismatchError):
        tally["refused"] += 1
        return None
    tally["same"] += 1
    return lines


def test_no_flipped_bit_and_no_truncation_gives_a_shorter_or_another_history(path, monkeypatch):
    """Every third byte; ONLINEIC_KILLS=1000 flips in each of them."""
    monkeypatch.setattr(sqlite_module, "PAGE", 512)
    ledger = with_a_hit(path)
    ledger.reserve(COST)
    ledger.commit([Hard(HIT, 3, measured(), COST)])
    ledger.release()
    whole, content = read(path).lines, path.read_bytes()
    tally = {"refused": 0, "same": 0}
    step = 1 if int(os.environ.get("ONLINEIC_KILLS", "60")) >= 1000 else 3
    for at in range(0, len(content), step):
        flipped = bytearray(content)
        flipped[at] ^= 1 << (at // step % 8)
        assert altered(path, bytes(flipped), tally) in (None, whole)
    for length in range(0, len(content), 97):
        assert altered(path, content[:length], tally) is None
    assert tally["refused"] > len(content) // step // 4
    assert altered(path, content, tally) == whole


def test_lines_that_are_taken_away_or_altered_are_named(path):
    ledger = with_a_hit(path)
    ledger.release()
    content = path.read_bytes()
    for change, told in [
        ("DELETE FROM line WHERE at = 3", "head"),
        ("DELETE FROM line WHERE at = 1", "gap"),
        ("UPDATE line SET text = replace(text, '1/7', '1/9') WHERE at = 3", "place 3"),
        ("UPDATE head SET lines = 3", "head"),
        ("DELETE FROM head", "head"),
        ("PRAGMA application_id = 5", "whole file"),
    ]:
        path.write_bytes(content)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute(change)
        other.close()
        with pytest.raises(LedgerCorruptError, match=told):
            read(path)
    path.write_text("no ledger", encoding="ascii")
    with pytest.raises(LedgerCorruptError):
        read(path)
    path.unlink()
    with pytest.raises(LedgerCorruptError, match="got none"):
        read(path)


def test_the_guide_tells_of_every_kind_of_line():
    guide = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
    listed, _, _ = guide.partition("| `kind` | holds |\n")[2].partition("\n\n")

    assert {"ledger", *KINDS} == {*re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)}


def test_a_file_of_another_schema_is_refused(path):
    with_a_hit(path).release()
    for number in (7, 0):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute(f"PRAGMA user_version = {number}")
        with pytest.raises(LedgerMismatchError, match=f"of schema {number}; use the version"):
            read(path)


def test_an_export_is_read_again_and_a_part_of_it_is_not(path):
    with_a_hit(path).release()
    written = read(path)
    lines = [*exported(written)]
    again = imported(lines)

    assert (written.lines, written.links) == (again.lines, again.links)
    for part in (
        lines[:-1],
        lines[:-2] + lines[-1:],
        lines[1:],
        [],
        ["{}"],
        lines[:2] + lines[3:],
        [*lines, lines[-1]],
    ):
        with pytest.raises(LedgerCorruptError):
            imported(part)
    for number in range(len(lines) - 1):
        altered = lines.copy()
        altered[number] = altered[number].replace("1/7", "1/8").replace('"guess":3', '"guess":4')
        if altered != lines:
            with pytest.raises(LedgerCorruptError, match=f"place {number}"):
                imported(altered)


def test_there_is_no_ledger_on_a_network_drive_on_windows_or_nowhere(path, monkeypatch, tmp_path):
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(place_module, "MOUNTS", str(mounts))
    for kind, refused in [
        ("nfs4", True),
        ("cifs", True),
        ("fuse.sshfs", True),
        ("ext4", False),
        ("fuseblk", False),
    ]:
        mounts.write_text(f"1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / {path.parent} rw - {kind} b rw\n")
        if refused:
            with pytest.raises(InvalidParameterError, match=f"local drive, got .* on {kind}"):
                made(path)
        else:
            place_module.checked_path(path)
    mounts.unlink()
    place_module.checked_path(path)  # where the system does not tell
    with pytest.raises(InvalidParameterError, match="in a directory"):
        made(path.parent / "gone" / "census.db")
    with pytest.raises(InvalidParameterError, match="got the directory"):
        made(path.parent)
    monkeypatch.setattr(place_module.sys, "platform", "win32")
    with pytest.raises(InvalidParameterError, match="Windows"):
        made(path)


def test_a_ledger_that_cannot_be_made_leaves_no_file(path, monkeypatch):
    def broken(*_):
        raise OSError

    monkeypatch.setattr(sqlite_module, "sync_folder", broken)
    monkeypatch.setattr(sqlite_module.os, "link", broken)
    with pytest.raises(LedgerWriteError, match="make room"):
        made(path)
    assert not path.exists()
    monkeypatch.undo()
    assert 1 == made(path).receipt.lines


def test_the_file_is_the_owner_s_and_holds_what_it_should(path):
    ledger = with_a_hit(path)
    ledger.close(None, Closed(1, 2, 3, 0.5))
    assert 0o600 == path.stat().st_mode & 0o777
    assert (Closed(1, 2, 3, 0.5),) == reopened(path).records(3)
    with pytest.raises(InvalidParameterError, match="durability"):
        SqliteLedger.open(path, "some")
    with pytest.raises(InvalidParameterError, match="receipt must be"):
        SqliteLedger.open(path, receipt="12:xy")


def test_a_batch_is_read_with_the_distance_of_each_query_from_the_one_written():
    """Planted: intervals whose roundings are left out, so that bounds are smaller behind a restart."""
    weights = np.array([0.0, 1.0, 1.0, 1e-7])
    rounded = ic.where(a=ic.weights(weights)).bind(DOMAIN)
    assert rounded.rounding > 0
    assert rounded.box is not None
    batch = EasyBatch(Queries.bound(DOMAIN, [HIT, rounded, FINE, rounded]), np.array([1, 2, 3, 4]))
    line = {**line_of(batch), "at": 1}

    again = record_of(line, DOMAIN)

    assert again.queries.roundings.tolist() == batch.queries.roundings.tolist()
    assert again.queries.roundings[1] == rounded.rounding
    assert line_of(again) == line_of(batch)
    group = next(group for group in line["boxes"] if "roundings" in group)
    for wrong in ([0.0], [0.0] * 5, [2.0] * len(group["roundings"]), [-0.1] * len(group["roundings"])):
        with pytest.raises(LedgerCorruptError):
            record_of({**line, "boxes": [{**group, "roundings": wrong}]}, DOMAIN)


@pytest.mark.parametrize(
    "text",
    [
        '{"at":0,"format":1,"kind":"ledger","n":1,"n":2}',
        '{"at": 0,"format":1,"kind":"ledger"}',
        '{"format":1,"kind":"ledger","at":0}',
        '{"at":0,"format":1,"kind":"ledger","n":NaN}',
    ],
)
def test_a_line_is_the_one_canonical_text(text):
    """Planted: texts that other readers take for something else, under a chain that holds."""
    assert chained([('{"at":0,"format":1,"kind":"ledger","n":1}', None)]).beginning["n"] == 1
    with pytest.raises(LedgerCorruptError, match="place 0"):
        chained([(text, None)])


def test_an_opening_that_failed_does_not_close_the_lock_of_another_ledger_later(path, monkeypatch):
    made(path).release()
    with monkeypatch.context() as patched:
        patched.setattr(sqlite_module.Book, "after_all", lambda *_: {}["gone"])
        with pytest.raises(LedgerCorruptError) as failed:
            SqliteLedger.open(path)
    other = made(path.with_name("other.db"))  # whose lock takes the descriptor that is free again
    del failed  # and with it the half-made ledger
    gc.collect()

    with pytest.raises(LedgerLockedError):
        read(path.with_name("other.db"))
    other.release()
