"""What people write, read into queries: conditions in SQL, JSON, expressions; bound to a domain."""

from onlineic.ask.json import described, parsed_query, written
from onlineic.ask.sql import Aggregate, Statement, Statements, statement
from onlineic.ask.sql_conditions import condition

__all__ = [
    "Aggregate",
    "Statement",
    "Statements",
    "condition",
    "described",
    "parsed_query",
    "statement",
    "written",
]
