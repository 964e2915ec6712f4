"""The record of a session: charges and releases, in order, with nothing private in it."""

from onlineic.ledger.memory import MemoryLedger
from onlineic.ledger.records import (
    Burned,
    Easy,
    EasyBatch,
    Hard,
    Ledger,
    Opened,
    Record,
    Reserved,
    UpdateFailed,
)
from onlineic.ledger.transcript import Transcript

__all__ = [
    "Burned",
    "Easy",
    "EasyBatch",
    "Hard",
    "Ledger",
    "MemoryLedger",
    "Opened",
    "Record",
    "Reserved",
    "Transcript",
    "UpdateFailed",
]
