"""Records as lines of JSON, chained by SHA-256: the form in a file and in an export (`docs/ledger.md`).

A line is one object in canonical text: keys sorted, no spaces, ASCII. Each link of the chain is the digest of
the link before, 32 bytes, followed by the text. Fractions are text such as "3/7", floats are read back to
their bits, queries are in the canonical form of `onlineic.queries.exact`. Nothing in it is private.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable
from typing import final

import attrs

from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    LedgerCorruptError,
    LedgerRollbackError,
    shown,
)
from onlineic.ledger.kinds import DURABILITIES, Line, account_from_json, read_line
from onlineic.ledger.records import Annotation, Checkpoint, OfTotal, Paid, Record, ToldAnswer

FORMAT = 1
START = bytes(32)  # the link before the first


def canonical_text(line: Line) -> str:
    """Return the one text of a JSON object that is chained."""
    return json.dumps(line, separators=(",", ":"), sort_keys=True, allow_nan=False)


def linked(chain: bytes, text: str) -> bytes:
    """Return the next link of the chain."""
    return hashlib.sha256(chain + text.encode("ascii")).digest()


def record_of(line: Line, domain: Domain) -> Record | Annotation:
    """Return what a line says.

    Raises:
        LedgerCorruptError: If it is no line of this format; names its place.
    """
    try:
        return read_line(line, domain)
    except Exception:  # of a text that was put together by hand: whatever is wrong with it
        raise LedgerCorruptError(
            f"ledger must hold lines of format {FORMAT}, got another one at place {line.get('at')}; restore "
            "the file from a backup, and give its newest receipt."
        ) from None


@final
@attrs.frozen(repr=False)
class Receipt:
    """Length of a ledger and head of its chain at some time: an older copy is detected by it.

    Attributes:
        head: 32 of them.
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

        Raises:
            InvalidParameterError: If it is none.
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
        """Raise `LedgerRollbackError` unless a ledger continues from this receipt.

        Args:
            link: After as many lines of it as this has; None: it has fewer.
            whose: Who says that it was so long.
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

    Attributes:
        lines: The first is the beginning.
        links: Of the chain, one a line.
    """

    lines: tuple[Line, ...]
    links: tuple[bytes, ...]

    @property
    def beginning(self) -> Line:
        """What was fixed when the ledger was made."""
        return self.lines[0]

    @property
    def receipt(self) -> Receipt:
        """The receipt of the whole ledger."""
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
            texts = [line[name] for name in ("created", "version", "table", "nonce")]
            whole = type(line["settings"]) is dict and all(type(text) is str for text in texts)
            whole = whole and line["private"] is True  # simulated noise meets no file
            whole = whole and line["durability"] in DURABILITIES
            if not self.of_table:
                counted = type(line["n"]) is int and line["n"] > 0 and type(line["plan"]) is dict
                whole = whole and counted and account_from_json(line["account"]).capacity > 0
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

        Raises:
            LedgerCorruptError: If a line is none of this format, or of a total in the ledger of a session, or
                the other way.
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
            elif not isinstance(found, ToldAnswer | Paid):
                records.append(found)
        return records, checkpoints

    def told(self, domain: Domain) -> dict[int, float | tuple[float, ...]]:
        """Return the numbers of hard answers, by the place of their record, as far as they were kept."""
        kept = [record_of(line, domain) for line in self.lines if line["kind"] == "told"]
        return {
            one.record: one.value for one in reversed(kept) if isinstance(one, ToldAnswer)
        }  # the first was said

    def paid(self, domain: Domain) -> dict[int, str]:
        """Return who asked for each release, by the place of its record, as far as it was kept."""
        kept = (record_of(line, domain) for line in self.lines if line["kind"] == "paid")
        return {one.record: one.name for one in kept if isinstance(one, Paid)}

    def check(self, receipt: Receipt | str | None) -> None:
        """Raise `LedgerRollbackError` unless this ledger continues from a receipt."""
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

    Raises:
        InvalidParameterError: If a file would give back something else, or nothing: two surrogates that are
            no character, or a whole number of thousands of digits.
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
    """Return the lines of texts; each link is computed, and compared with the claimed one if there is one.

    Raises:
        LedgerCorruptError: If a text is not canonical, a link is another, or a place is missing; names the
            first place.
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

    Raises:
        LedgerCorruptError: If it is not whole: a line is another one, or the end is missing.
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
