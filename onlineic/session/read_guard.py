"""When a session may read its table: open, in its own process, and no read before it that failed.

The order is the guarantee: reserve, read, draw, commit. Before the reservation a failure changes nothing.
From the read to the commit any exception seals the session and burns the reservation, because to fall back
to the old state would tell, unpaid, whether the hard path was taken.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from typing import final

from onlineic.accounting.budget import Charge
from onlineic.data.release import guarded
from onlineic.errors import ForkedSessionError, LedgerError, SessionSealedError, SessionStateError
from onlineic.ledger.records import Closed, Committed, Ledger, UpdateFailed

SEALED = (
    "session must not test another query while a test runs, or after one was interrupted between reading the "
    "data and its record, whose charge stays spent. What was released stands: repeats are answered, "
    "hypothesis and transcript can be read; open a new session for more (budgets add)."
)
UNWRITTEN = (
    "session must be recorded to go on, got a ledger that did not take the last record; what was reserved "
    "for it stays spent, and nothing that was not recorded was released. Make room, or mend what the "
    "drive lacks, and go on with OnlineIC.resume(FILE, data)."
)
ENDED = (
    "session must have a table that its engine counts, got one whose engine failed three times in a row; "
    "nothing was spent for it. What was released stands: repeats are answered, hypothesis and transcript can "
    "be read; with a ledger file go on with OnlineIC.resume(FILE, data), the table loaded anew."
)
ASKED = (
    "session must be asked one call at a time, got a question in the middle of another, which used up what "
    "was reserved for it; nothing was read: ask again."
)
CLOSED = (
    "session must be open to answer, got a closed one; go on with OnlineIC.resume(FILE, data), if it has a "
    "ledger file."
)

_log = logging.getLogger("onlineic")


@final
class ReadGuard:
    """Guards the reads of one session.

    Args:
        ledger: Whose standing reservation pays for what is read.
        entered: Whether the table knows the ledger, and so its total what is about to be spent.
    """

    __slots__ = ("_closed", "_ended", "_entered", "_known", "_ledger", "_process", "_sealed", "_unwritten")

    def __init__(self, ledger: Ledger, entered: Callable[[], bool]) -> None:
        self._ledger, self._entered, self._known = ledger, entered, False
        self._sealed = self._closed = self._unwritten = self._ended = False
        self._process = os.getpid()

    @property
    def sealed(self) -> bool:
        """Whether nothing may be tested: an answer was interrupted after the data were read, or runs."""
        return self._sealed

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    @property
    def usable(self) -> bool:
        """Whether the table may be read."""
        return not (self._sealed or self._closed)

    def check_process(self) -> None:
        """Raise `ForkedSessionError` in another process than the one that opened the session."""
        if os.getpid() != self._process:
            raise ForkedSessionError(
                "session must be used in the process that opened it, got a forked one; open a new session."
            )

    def check_open(self) -> None:
        """Raise `SessionStateError` after `close`."""
        if self._closed:
            raise SessionStateError(CLOSED)

    def check(self) -> None:
        """Raise `SessionSealedError`, or `SessionStateError` after `close`, if nothing may be tested."""
        if self._closed:
            raise SessionStateError(CLOSED)
        if not self._known:
            self._check_entered()
        if self._sealed:
            raise SessionSealedError(ENDED if self._ended else UNWRITTEN if self._unwritten else SEALED)

    def end(self) -> None:
        """Test nothing more: nothing was read, and what stands reserved is kept until the session closes."""
        self._sealed = self._ended = True

    def _check_entered(self) -> None:
        """Raise `SessionStateError` unless the table, and its total, know what is about to be spent."""
        if not self._entered():
            raise SessionStateError(
                "a core with the system's noise must be a session's, whose budget the table knows, got one "
                "alone; open OnlineIC(data, budget), or give SimulatedNoise(seed)."
            )
        self._known = True

    def run(self, private: Callable[[], None], standing: Charge | None, payer: str | None = None) -> None:
        """Run what reads the data and ends with a commit: sealed while it runs, for good if it fails.

        Args:
            standing: What was reserved for it. It must stand still: a question in between may have used it
                up, or have left in its place what pays for another test.
            payer: Who asked, and pays for the reservation if it fails.

        Raises:
            SessionSealedError: If anything failed. Its cause is not chained: a traceback could hold a private
                number. The log says where, never what.
        """
        if self._sealed or self._closed or not self._known:
            self.check()

        def failed(name: str, place: str, interrupted: bool) -> None:
            written = self._ledger.records(length)  # an update may have failed meanwhile, which is no release
            if interrupted and any(not isinstance(record, UpdateFailed) for record in written):
                self._sealed = False  # after the commit: what was released is recorded, and all else done
                return
            self._sealed = True
            with contextlib.suppress(Exception):  # what stands reserved counts as spent in any case
                self._ledger.forfeit(payer)
            _log.error("session sealed: %s at %s", name, place)
            if self._unwritten and not interrupted:
                raise SessionSealedError(UNWRITTEN)

        self._sealed = True  # a second Ctrl-C finds it closed
        length = len(self._ledger)  # after that: nobody else records a test from here on
        if standing is None or self._ledger.reserved is not standing:  # a handler of a core without a lock
            self._sealed = False
            raise SessionStateError(ASKED)
        guarded(private, failed, SEALED)

    def commit(self, records: Sequence[Committed], payer: str | None = None) -> None:
        """Record what was released: the last statement of what `run` runs, nothing private is left to do."""
        try:
            self._ledger.commit(records, payer)
        except LedgerError:
            self._unwritten = True
            raise
        self._sealed = False

    def close(self, record: Closed, kept: Callable[[], Charge | None]) -> None:
        """Test nothing more, and give the standing reservation back, but for what easy tests have used up.

        Args:
            kept: What they have used up; asked once nobody can test any more.
        """
        self._closed = True  # first: nobody tests under what is given back
        if (
            self._sealed or self._ledger.broken
        ):  # what stands reserved may be all that pays for what was read: nobody else has it
            with contextlib.suppress(LedgerError):  # of a file that cannot be written a restart burns it
                self._ledger.forfeit()
            return
        self._ledger.close(kept(), record)
