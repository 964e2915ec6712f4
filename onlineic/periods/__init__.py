"""Tables that grow: periods with a whole budget each, and ranges of them answered from their sessions."""

from onlineic.periods.book import PeriodsBook, range_nats
from onlineic.periods.calendar import Calendar
from onlineic.periods.periods import Periods, book_of
from onlineic.periods.persons import Persons
from onlineic.periods.pooled import BlockPurchases, Known, chosen_radius, pooled
from onlineic.periods.ranges import Range
from onlineic.periods.served import ServedPeriods

__all__ = [
    "BlockPurchases",
    "Calendar",
    "Known",
    "Periods",
    "PeriodsBook",
    "Persons",
    "Range",
    "ServedPeriods",
    "book_of",
    "chosen_radius",
    "pooled",
    "range_nats",
]
