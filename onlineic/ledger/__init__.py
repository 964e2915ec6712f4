"""The record of a session: charges and releases, in order, with nothing private in it."""

from onlineic.ledger.lines import Receipt, Written, exported, imported
from onlineic.ledger.memory import MemoryLedger
from onlineic.ledger.records import (
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
    Ledger,
    NodeOpened,
    Noted,
    Paid,
    Record,
    Reserved,
    Resumed,
    Shared,
    Single,
    ToldAnswer,
    UpdateFailed,
)
from onlineic.ledger.sqlite import SqliteLedger, read
from onlineic.ledger.total import TableBudget
from onlineic.ledger.transcript import Transcript

__all__ = [
    "BlockBegun",
    "BoughtTables",
    "Checkpoint",
    "Closed",
    "CountPaid",
    "Drawn",
    "Easy",
    "EasyBatch",
    "Forfeited",
    "Hard",
    "Ledger",
    "MemoryLedger",
    "NodeOpened",
    "Noted",
    "Paid",
    "Receipt",
    "Record",
    "Reserved",
    "Resumed",
    "Shared",
    "Single",
    "SqliteLedger",
    "TableBudget",
    "ToldAnswer",
    "Transcript",
    "UpdateFailed",
    "Written",
    "exported",
    "imported",
    "read",
]
