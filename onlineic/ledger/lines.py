"""Records as lines of JSON, chained by SHA-256: the form in a file and in an export (`docs/ledger.md`).

A line is one object in canonical text: keys sorted, no spaces, ASCII. Each link of the chain is the digest of
the link before, 32 bytes, followed by the text. Fractions are text such as "3/7", floats are read back to
their bits, queries are in the canonical form of `onlineic.queries.exact`. Nothing in it is private.
"""

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.of_table import TableCharge
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    LedgerCorruptError,
    LedgerRollbackError,
    shown,
)
from onlineic.ledger.records import (
    Beside,
    BlockBegun,
    Burned,
    Checkpoint,
    Closed,
    CountPaid,
    Drawn,
    Easy,
    EasyBatch,
    Hard,
    Improved,
    NodeOpened,
    Noted,
    OfTotal,
    Opened,
    Paid,
    Record,
    Reserved,
    Resumed,
    Shared,
    Single,
    Told,
    UpdateFailed,
)
from onlineic.queries.batch import Boxes, Queries, code_type
from onlineic.queries.exact import (
    floats_from_json,
    floats_to_json,
    integers_from_json,
    integers_to_json,
    question_from_json,
    question_to_json,
    target_from_json,
    target_to_json,
)
from onlineic.queries.marginals import BoundMarginal, Guess, Question
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query

FORMAT = 1
DURABILITIES = ("hits", "all")
START = bytes(32)  # the link before the first
Line = dict[str, Any]


def canonical_text(line: Line) -> str:
    """Return the one text of a JSON object that is chained."""
    return json.dumps(line, separators=(",", ":"), sort_keys=True, allow_nan=False)


def linked(chain: bytes, text: str) -> bytes:
    """Return the link after one more line."""
    return hashlib.sha256(chain + text.encode("ascii")).digest()


def charge_to_json(charge: Charge) -> Line:
    """Return a charge as JSON."""
    order = {} if charge.order is None else {"order": str(charge.order)}
    return {"amount": str(charge.amount), "event": charge.event, "unit": charge.unit, **order}


def charge_from_json(written: Line) -> Charge:
    """Return the charge."""
    order = None if "order" not in written else Fraction(written["order"])
    return Charge(Fraction(written["amount"]), written["event"], written["unit"], order)


def account_to_json(account: Filter) -> Line:
    """Return a whole budget as JSON."""
    order = {} if account.order is None else {"order": str(account.order)}
    return {"capacity": str(account.capacity), "unit": account.unit, **order}


def account_from_json(written: Line) -> Filter:
    """Return the budget, nothing spent."""
    order = None if "order" not in written else Fraction(written["order"])
    return Filter(Fraction(written["capacity"]), written["unit"], order)


def _drawn_to_json(drawn: Drawn) -> Line:
    budget = drawn.budget
    order = {} if budget.order is None else {"order": str(budget.order)}
    return {
        "kind": "drawn",
        "charge": charge_to_json(drawn.taken.charge),
        "apart": str(drawn.taken.apart),
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta, **order},
        "account": None if drawn.account is None else account_to_json(drawn.account),
        "what": drawn.what,
        "file": drawn.file,
    }


def _drawn(line: Line, _: Domain) -> Drawn:
    budget, account = line["budget"], line["account"]
    order = None if "order" not in budget else Fraction(budget["order"])
    if line["what"] not in ("session", "release") or len(bytes.fromhex(line["file"])) not in (0, len(START)):
        raise ValueError
    return Drawn(
        TableCharge(charge_from_json(line["charge"]), Fraction(line["apart"])),
        Budget(budget["epsilon"], budget["delta"], allow_large_epsilon=True, order=order),
        None if account is None else account_from_json(account),
        line["what"],
        line["file"],
    )


def _shared(line: Line, _: Domain) -> Shared:
    account = account_from_json(line["account"])
    if account.order is None:
        raise ValueError
    return Shared(account, Fraction(line["apart"]))


def _noted(line: Line, _: Domain) -> Noted:
    head = bytes.fromhex(line["head"])
    if not isinstance(line["file"], str) or type(line["lines"]) is not int or len(head) != len(START):
        raise ValueError
    return Noted(line["file"], line["lines"], head)


def _count_paid(line: Line, _: Domain) -> CountPaid:
    if type(line["label"]) is not str:
        raise ValueError
    return CountPaid(line["label"], charge_from_json(line["charge"]))


def _block_begun(line: Line, _: Domain) -> BlockBegun:
    label, n, late, drawn = line["label"], line["n"], line["late"], line.get("drawn")
    if type(label) is not str or type(n) is not int or n < 0 or type(late) is not bool:
        raise ValueError
    if drawn is not None and (type(drawn) is not int or n != max(1, drawn)):
        raise ValueError
    return BlockBegun(label, n, late, drawn)


def _node_opened(line: Line, _: Domain) -> NodeOpened:
    label, blocks, file = line["label"], line["blocks"], line["file"]
    if type(label) is not str or type(blocks) is not list or not all(type(one) is str for one in blocks):
        raise ValueError
    if len(bytes.fromhex(file)) not in (0, len(START)):
        raise ValueError
    return NodeOpened(label, tuple(blocks), file, charge_from_json(line["charge"]))


def _measurement_to_json(one: Measurement, question: Any = None) -> Line:
    target = {} if one.target is question else target_to_json(one.target)
    return {**target, "values": floats_to_json(one.values), "scale": one.scale}


def _measurement_from_json(written: Line, domain: Domain, question: Any = None) -> Measurement:
    own = "partition" not in written and "query" not in written
    target = question if own else target_from_json(written, domain)
    values, scale = floats_from_json(written["values"]), float(written["scale"])
    blocks = target.blocks if isinstance(target, Partition) else 1
    if values.shape != (blocks,) or not np.isfinite([*values, scale]).all() or scale <= 0.0:
        raise ValueError
    return Measurement(target, values, scale)


def line_of(record: Record | Beside) -> Line:
    """Return a record as a JSON object, without its place in a file."""
    if isinstance(record, Easy):
        return {"kind": "easy", "query": question_to_json(record.query), "guess": _guess(record.guess)}
    if isinstance(record, EasyBatch):
        return _batch_to_json(record)
    if isinstance(record, Improved):
        return {"kind": "improved", "query": question_to_json(record.query), "guess": _guess(record.guess)}
    if isinstance(record, Hard | Single):
        return {
            "kind": "hard" if isinstance(record, Hard) else "single",
            "query": question_to_json(record.query),
            "guess": _guess(record.guess),
            "released": _measurement_to_json(record.measurement, record.query),
            "charge": charge_to_json(record.charge),
        }
    if isinstance(record, Opened):
        tables = [_measurement_to_json(one) for one in record.measurements]
        opened = {"kind": "opened", "released": tables, "charge": charge_to_json(record.charge)}
        # files of 0.1.0 do not tell
        return opened | ({"heard": [*map(question_to_json, record.heard)]} if record.heard else {})
    if isinstance(record, Reserved):
        return {"kind": "reserved", "charge": charge_to_json(record.charge)}
    if isinstance(record, Burned):
        return {"kind": "burned", "charge": charge_to_json(record.charge), "reason": record.reason}
    if isinstance(record, UpdateFailed):
        return {"kind": "update_failed", "error": record.error}
    if isinstance(record, Closed):
        return {"kind": "closed", **attrs.asdict(record)}
    if isinstance(record, Resumed):
        return {"kind": "resumed", **attrs.asdict(record)}
    if isinstance(record, Drawn):
        return _drawn_to_json(record)
    if isinstance(record, Shared):
        return {"kind": "shared", "account": account_to_json(record.account), "apart": str(record.apart)}
    if isinstance(record, Noted):
        return {"kind": "noted", "file": record.file, "lines": record.lines, "head": record.head.hex()}
    if isinstance(record, CountPaid):
        return {"kind": "count", "label": record.label, "charge": charge_to_json(record.charge)}
    if isinstance(record, BlockBegun):
        told = attrs.asdict(record)
        return {"kind": "block", **{name: one for name, one in told.items() if one is not None}}
    if isinstance(record, NodeOpened):
        charge, blocks = charge_to_json(record.charge), list(record.blocks)
        return {
            "kind": "node",
            "label": record.label,
            "blocks": blocks,
            "file": record.file,
            "charge": charge,
        }
    if isinstance(record, Told):
        return {"kind": "told", **attrs.asdict(record)}
    if isinstance(record, Paid):
        return {"kind": "paid", **attrs.asdict(record)}
    parameters = record.parameters
    return {
        "kind": "checkpoint",
        "records": record.records,
        "values": floats_to_json(record.values),
        "version": record.version,
        "failures": record.failures,
        "parameters": None if parameters is None else [floats_to_json(part) for part in parameters],
    }


def _guess(guess: Guess) -> Any:
    return guess if isinstance(guess, int) else list(guess)


def _read_guess(written: Any) -> Guess:
    return tuple(map(int, written)) if isinstance(written, list) else int(written)


def _batch_to_json(batch: EasyBatch) -> Line:
    boxes = [
        {
            "axes": list(group.axes),
            "places": integers_to_json(group.places),
            "low": integers_to_json(group.low),
            "high": integers_to_json(group.high),
            "turned": integers_to_json(group.turned.astype(np.int64)),
            **({} if group.roundings is None else {"roundings": floats_to_json(group.roundings)}),
        }
        for group in batch.queries.boxes
    ]
    others = [[place, question_to_json(query)] for place, query in batch.queries.others]
    guesses = integers_to_json(batch.guesses)
    return {"kind": "easy_batch", "count": len(batch), "boxes": boxes, "others": others, "guesses": guesses}


def _batch(line: Line, domain: Domain) -> EasyBatch:
    count, kind, boxes = int(line["count"]), code_type(domain), []
    for group in line["boxes"]:
        axes = tuple(map(int, group["axes"]))
        places = integers_from_json(group["places"], (-1,)).astype(np.int32)
        low, high = (integers_from_json(group[name], (len(places), len(axes))) for name in ("low", "high"))
        sizes = np.array([domain.shape[axis] for axis in axes], np.int64)
        if ((low < 0) | (low >= high) | (high > sizes) | (high - low == sizes)).any():
            raise ValueError
        turned = integers_from_json(group["turned"], (len(places),)).astype(np.bool_)
        roundings = None
        if "roundings" in group:  # part of the bound of each answer
            roundings = floats_from_json(group["roundings"])
            if roundings.shape != places.shape or not ((roundings >= 0) & (roundings <= 1)).all():
                raise ValueError
        boxes.append(Boxes(axes, places, low.astype(kind), high.astype(kind), turned, roundings))
    others = tuple((int(place), question_from_json(query, domain)) for place, query in line["others"])
    held = [place for group in boxes for place in group.places.tolist()] + [place for place, _ in others]
    if sorted(held) != list(range(count)) or not all(isinstance(query, Query) for _, query in others):
        raise ValueError
    queries = Queries.recorded(domain, boxes, others, count)  # type: ignore[arg-type]
    return EasyBatch(queries, integers_from_json(line["guesses"], (count,)))


def _asked(line: Line, domain: Domain) -> tuple[Question, Guess]:
    """Return a question and what was tested of it: a number, or one of each block of a cross table."""
    question, guess = question_from_json(line["query"], domain), _read_guess(line["guess"])
    blocks = question.partition.blocks if isinstance(question, BoundMarginal) else None
    if (len(guess) if isinstance(guess, tuple) else None) != blocks:
        raise ValueError
    return question, guess


def _easy(line: Line, domain: Domain) -> Easy:
    return Easy(*_asked(line, domain))


def _hard(line: Line, domain: Domain) -> Hard:
    question, guess = _asked(line, domain)
    released = _measurement_from_json(line["released"], domain, question)
    return Hard(question, guess, released, charge_from_json(line["charge"]))


def _single(line: Line, domain: Domain) -> Single:
    question, guess = _asked(line, domain)
    released = _measurement_from_json(line["released"], domain, question)
    own = question.partition if isinstance(question, BoundMarginal) else question
    if released.target != own:
        raise ValueError
    return Single(question, guess, released, charge_from_json(line["charge"]))


def _opened(line: Line, domain: Domain) -> Opened:
    tables = tuple(_measurement_from_json(one, domain) for one in line["released"])
    heard = tuple(question_from_json(one, domain) for one in line.get("heard", ()))
    return Opened(tables, charge_from_json(line["charge"]), heard)


def _checkpoint(line: Line, domain: Domain) -> Checkpoint:
    parameters = line["parameters"]
    if parameters == []:
        raise ValueError
    return Checkpoint(
        records=int(line["records"]),
        values=floats_from_json(line["values"]),
        version=int(line["version"]),
        failures=int(line["failures"]),
        parameters=None if parameters is None else tuple(floats_from_json(part) for part in parameters),
    )


def _told(line: Line) -> Told:
    place, value = line["record"], line["value"]
    cells = value if type(value) is list else [value]
    if type(place) is not int or place < 0 or not cells:
        raise ValueError
    if not all(type(one) is float and math.isfinite(one) for one in cells):
        raise ValueError
    return Told(place, tuple(cells) if cells is value else value)


def _paid(line: Line) -> Paid:
    place, name = line["record"], line["name"]
    if type(place) is not int or place < 0 or type(name) is not str or not name:
        raise ValueError
    return Paid(place, name)


def _burned(line: Line) -> Burned:
    if line["reason"] not in ("interrupted", "restarted", "closed", "bought"):
        raise ValueError
    return Burned(charge_from_json(line["charge"]), line["reason"])


def _closed(line: Line) -> Closed:
    counts, rounding = [line[name] for name in ("constants", "repeats", "untested")], line["rounding"]
    if any(type(count) is not int or count < 0 for count in counts) or not 0.0 <= rounding < math.inf:
        raise ValueError
    return Closed(counts[0], counts[1], counts[2], float(rounding))


def _resumed(line: Line) -> Resumed:
    durability = line.get("durability", "hits")
    if durability not in DURABILITIES or type(line["version"]) is not str:
        raise ValueError
    return Resumed(line["version"], durability)


_READ: dict[str, Callable[[Line, Domain], Record | Beside]] = {
    "easy": _easy,
    "easy_batch": _batch,
    "improved": lambda line, domain: Improved(*_asked(line, domain)),
    "hard": _hard,
    "opened": _opened,
    "single": _single,
    "checkpoint": _checkpoint,
    "told": lambda line, _: _told(line),
    "paid": lambda line, _: _paid(line),
    "drawn": _drawn,
    "noted": _noted,
    "shared": _shared,
    "count": _count_paid,
    "block": _block_begun,
    "node": _node_opened,
    "reserved": lambda line, _: Reserved(charge_from_json(line["charge"])),
    "burned": lambda line, _: _burned(line),
    "update_failed": lambda line, _: UpdateFailed(line["error"]),
    "closed": lambda line, _: _closed(line),
    "resumed": lambda line, _: _resumed(line),
}


def record_of(line: Line, domain: Domain) -> Record | Beside:
    """Return what a line says.

    Raises
    ------
    LedgerCorruptError
        If it is no line of this format; names its place.
    """
    try:
        return _READ[line["kind"]](line, domain)
    except Exception:  # of a text that was put together by hand: whatever is wrong with it
        raise LedgerCorruptError(
            f"ledger must hold lines of format {FORMAT}, got another one at place {line.get('at')}; restore "
            "the file from a backup, and give its newest receipt."
        ) from None


@final
@attrs.frozen(repr=False)
class Receipt:
    """How long a ledger was, and the head of its chain then: an older copy of it is told by this.

    Attributes
    ----------
    lines : int
    head : bytes
        32 of them.
    """

    lines: int
    head: bytes

    def __str__(self) -> str:
        return f"{self.lines}:{self.head.hex()}"

    def __repr__(self) -> str:
        return f"Receipt({str(self)!r})"

    @classmethod
    def of(cls, written: "Receipt | str") -> "Receipt":
        """Return the receipt from its text.

        Raises
        ------
        InvalidParameterError
            If it is none.
        """
        if isinstance(written, Receipt):
            return written
        lines, _, head = str(written).strip().partition(":")
        if not (lines.isascii() and lines.isdigit() and len(head) == 64) or set(head) - set(
            "0123456789abcdef"
        ):
            raise InvalidParameterError(
                f"receipt must be a text such as 12:9f86.., got receipt={shown(written)}; copy it whole."
            )
        return cls(int(lines), bytes.fromhex(head))

    def check(self, lines: int, link: bytes | None, whose: str = "its receipt") -> None:
        """Raise `LedgerRollbackError` if a ledger of so many lines does not go on from here.

        Parameters
        ----------
        lines : int
        link : bytes or None
            After as many lines of it as this has; None: it has fewer.
        whose : str
            Who says that it was so long.
        """
        if link != self.head:
            raise LedgerRollbackError(
                f"ledger must go on from {whose} of {self.lines} lines, got {lines} of an older copy or "
                "another ledger; what was spent since is not in it: restore the newest copy."
            )


@final
@attrs.frozen(eq=False, repr=False)
class Written:
    """All lines of a ledger, whose chain holds.

    Attributes
    ----------
    lines : tuple of dict
        The first is the beginning.
    links : tuple of bytes
        Of the chain, one a line.
    """

    lines: tuple[Line, ...]
    links: tuple[bytes, ...]

    @property
    def beginning(self) -> Line:
        """What was fixed when the ledger was made."""
        return self.lines[0]

    @property
    def receipt(self) -> Receipt:
        """Of all of it."""
        return Receipt(len(self.links), self.links[-1])

    @property
    def of_table(self) -> bool:
        """Whether this is the total of a table, and not a session's."""
        return bool(self.beginning.get("total", False))

    def check_beginning(self) -> None:
        """Raise `LedgerCorruptError` if a part of the beginning is missing, or of another kind."""
        line = self.beginning
        try:
            account_from_json(line["account"])
            self.domain()
            texts = [line[name] for name in ("created", "version", "table")]
            whole = type(line["settings"]) is dict and all(type(text) is str for text in texts)
            whole = whole and line["private"] is True  # simulated noise meets no file
            whole = whole and type(line.get("nonce", "")) is str  # earlier files have none
            if not self.of_table:
                counted = type(line["n"]) is int and line["n"] > 0 and type(line["plan"]) is dict
                whole = whole and counted and account_from_json(line["account"]).capacity > 0
                whole = whole and line.get("durability", "hits") in DURABILITIES
        except Exception:  # of a text that was put together by hand: whatever is wrong with it
            whole = False
        if not whole:
            raise LedgerCorruptError(
                "ledger must begin with its table, account and settings, got another beginning; restore the "
                "file from a backup, and give its newest receipt."
            )

    def domain(self) -> Domain:
        """Return the domain of its table; a total is about rows, whatever their domain, and has one cell."""
        return Domain.of(row=1) if self.of_table else domain_of(self.beginning)

    def records(self, domain: Domain) -> tuple[list[Record], list[Checkpoint]]:
        """Return records and checkpoints, each in order.

        Raises
        ------
        LedgerCorruptError
            If a line is none of this format, or of a total in the ledger of a session, or the other way.
        """
        records: list[Record] = []
        checkpoints: list[Checkpoint] = []
        for line in self.lines[1:]:
            found = record_of(line, domain)
            if isinstance(found, OfTotal) is not self.of_table:
                raise LedgerCorruptError(
                    "ledger must hold the lines of a session or those of a total, got both, at place "
                    f"{line['at']}; restore the file from a backup."
                )
            if isinstance(found, Checkpoint):
                checkpoints.append(found)
            elif not isinstance(found, Told | Paid):
                records.append(found)
        return records, checkpoints

    def told(self, domain: Domain) -> dict[int, float | tuple[float, ...]]:
        """Return by the place of its record what each hard answer was, as far as that was kept."""
        kept = [record_of(line, domain) for line in self.lines if line["kind"] == "told"]
        return {
            one.record: one.value for one in reversed(kept) if isinstance(one, Told)
        }  # the first was said

    def paid(self, domain: Domain) -> dict[int, str]:
        """Return by the place of its record who asked for each release, where that was kept."""
        kept = (record_of(line, domain) for line in self.lines if line["kind"] == "paid")
        return {one.record: one.name for one in kept if isinstance(one, Paid)}

    def check(self, receipt: Receipt | str | None) -> None:
        """Raise `LedgerRollbackError` if a ledger had this receipt that this one does not go on from."""
        if receipt is None:
            return
        known = Receipt.of(receipt)
        inside = 1 <= known.lines <= len(self.links)
        known.check(len(self.links), self.links[known.lines - 1] if inside else None)


def domain_of(beginning: Line) -> Domain:
    """Return the domain of a session's ledger."""
    return Domain.from_json(json.dumps(dict(beginning["domain"])))


def checked_text(line: Line) -> str:
    """Return the canonical text of a first line that is read back as it was given.

    Raises
    ------
    InvalidParameterError
        If a file would give back something else, or nothing: two surrogates that are no character, or a
        whole number of thousands of digits.
    """
    with contextlib.suppress(ValueError):
        text = canonical_text(line)
        if json.loads(text) == line:
            return text
    raise InvalidParameterError(
        "domain, label and settings must be texts and numbers that a file gives back as they are, got some "
        "that it does not; write their texts without surrogates, and numbers of fewer digits."
    )


def chained(texts: Iterable[tuple[str, bytes | None]]) -> Written:
    """Return the lines of these texts, each with the link that is claimed for it, if one is.

    Raises
    ------
    LedgerCorruptError
        If a text is not canonical, a link is another, or a place is missing; names the first place.
    """
    lines: list[Line] = []
    links: list[bytes] = []
    chain = START
    for place, (text, claimed) in enumerate(texts):
        try:
            line = json.loads(text)
            chain = linked(chain, text)
            whole = type(line) is dict and line["at"] == place and (claimed is None or claimed == chain)
            whole = whole and canonical_text(line) == text  # a name twice, or NaN, is read in several ways
        except (ValueError, KeyError, RecursionError):
            whole = False
        if not whole:
            raise LedgerCorruptError(
                f"ledger must be the chain that was written, got another line at place {place}; restore the "
                "file from a backup, and give its newest receipt."
            )
        lines.append(line)
        links.append(chain)
    first = lines[0] if lines else {}
    if first.get("kind") != "ledger" or type(first.get("format")) is not int or first["format"] != FORMAT:
        raise LedgerCorruptError(
            f"ledger must begin as one of format {FORMAT}, got another beginning; this is no ledger, or one "
            "of a later version of onlineic."
        )
    return Written(tuple(lines), tuple(links))


def exported(written: Written) -> Iterable[str]:
    """Return the ledger as text lines, each with its link of the chain, and a last one that ends it."""
    for line, link in zip(written.lines, written.links, strict=True):
        yield canonical_text({**line, "chain": link.hex()})
    yield canonical_text({"kind": "end", "receipt": str(written.receipt)})


def imported(text_lines: Iterable[str]) -> Written:
    """Return the ledger that was exported as these lines.

    Raises
    ------
    LedgerCorruptError
        If it is not whole: a line is another one, or the end is missing.
    """
    *lines, last = [text for text in text_lines if text.strip()] or [""]
    written = chained(map(_claimed, lines))
    written.check_beginning()
    try:
        ended = json.loads(last) == {"kind": "end", "receipt": str(written.receipt)}
    except (ValueError, RecursionError):
        ended = False
    if not ended:
        raise LedgerCorruptError(
            f"an export must end with its receipt, got none after place {len(lines) - 1}; export it again."
        )
    return written


def _claimed(text: str) -> tuple[str, bytes | None]:
    try:
        line = json.loads(text)
        claimed = bytes.fromhex(line.pop("chain"))
        return canonical_text(line), claimed
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", None
