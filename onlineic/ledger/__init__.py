"""The record of a session: charges and releases, in order, with nothing private in it."""

from onlineic.ledger.lines import Receipt, Written, exported, imported
from onlineic.ledger.memory import MemoryLedger
from onlineic.ledger.records import (
    Burned,
    Checkpoint,
    Closed,
    Easy,
    EasyBatch,
    Hard,
    Ledger,
    Opened,
    Record,
    Reserved,
    Resumed,
    UpdateFailed,
)
from onlineic.ledger.sqlite import SqliteLedger, read
from onlineic.ledger.transcript import Transcript

__all__ = [
    "Burned",
    "Checkpoint",
    "Closed",
    "Easy",
    "EasyBatch",
    "Hard",
    "Ledger",
    "MemoryLedger",
    "Opened",
    "Receipt",
    "Record",
    "Reserved",
    "Resumed",
    "SqliteLedger",
    "Transcript",
    "UpdateFailed",
    "Written",
    "exported",
    "imported",
    "read",
]
