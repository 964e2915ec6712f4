"""Online differentially private answers to linear queries, by the OnlineIC framework."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlineic.accounting.budget import Budget as Budget
    from onlineic.ask.sql_conditions import condition as condition
    from onlineic.data.private import PrivateData as PrivateData
    from onlineic.domain.attributes import binned as binned
    from onlineic.domain.attributes import boolean as boolean
    from onlineic.domain.attributes import categorical as categorical
    from onlineic.domain.attributes import integers as integers
    from onlineic.domain.attributes import number as number
    from onlineic.domain.dates import dates as dates
    from onlineic.domain.domain import Domain as Domain
    from onlineic.domain.domain import from_column as from_column
    from onlineic.domain.domain import optional as optional
    from onlineic.domain.grid import Grid as Grid
    from onlineic.domain.unit import Unit as Unit
    from onlineic.hypothesis.histogram import Histogram as Histogram
    from onlineic.ledger.total import TableBudget as TableBudget
    from onlineic.periods.periods import Periods as Periods
    from onlineic.plan.purchase_rule import TestsOnly as TestsOnly
    from onlineic.plan.studies import forecast as forecast
    from onlineic.queries.answers import Answer as Answer
    from onlineic.queries.expressions import at_least as at_least
    from onlineic.queries.expressions import below as below
    from onlineic.queries.expressions import between as between
    from onlineic.queries.expressions import dense as dense
    from onlineic.queries.expressions import one_of as one_of
    from onlineic.queries.expressions import span as span
    from onlineic.queries.expressions import weights as weights
    from onlineic.queries.expressions import where as where
    from onlineic.queries.groupings import case as case
    from onlineic.queries.groupings import cut as cut
    from onlineic.queries.groupings import date_trunc as date_trunc
    from onlineic.queries.groupings import extract as extract
    from onlineic.queries.marginals import marginal as marginal
    from onlineic.queries.partitions import Measurement as Measurement
    from onlineic.queries.partitions import Partition as Partition
    from onlineic.queries.query import Query as Query
    from onlineic.queries.rescaled import rescaled as rescaled
    from onlineic.queries.within import expected as expected
    from onlineic.service.client import connect as connect
    from onlineic.session.belief import replay as replay
    from onlineic.session.session import OnlineIC as OnlineIC
    from onlineic.session.statistics import SessionStatistics as SessionStatistics
    from onlineic.updates.base import UpdateRule as UpdateRule
    from onlineic.updates.maximum_entropy import MaximumEntropy as MaximumEntropy
    from onlineic.updates.median import Median as Median
    from onlineic.updates.mixture import MixtureOfProducts as MixtureOfProducts
    from onlineic.updates.multiplicative_weights import MeasuredWeights as MeasuredWeights
    from onlineic.updates.multiplicative_weights import MultiplicativeWeights as MultiplicativeWeights
    from onlineic.updates.perceptron import Perceptron as Perceptron

__version__ = "0.2.0"

_HOMES = {  # of every name the file that defines it, imported when the name is first used
    "Budget": "accounting.budget",
    "condition": "ask.sql_conditions",
    "PrivateData": "data.private",
    "binned": "domain.attributes",
    "boolean": "domain.attributes",
    "categorical": "domain.attributes",
    "integers": "domain.attributes",
    "number": "domain.attributes",
    "dates": "domain.dates",
    "Domain": "domain.domain",
    "from_column": "domain.domain",
    "optional": "domain.domain",
    "Grid": "domain.grid",
    "Unit": "domain.unit",
    "Histogram": "hypothesis.histogram",
    "TableBudget": "ledger.total",
    "Periods": "periods.periods",
    "forecast": "plan.studies",
    "TestsOnly": "plan.purchase_rule",
    "Answer": "queries.answers",
    "at_least": "queries.expressions",
    "below": "queries.expressions",
    "between": "queries.expressions",
    "dense": "queries.expressions",
    "one_of": "queries.expressions",
    "span": "queries.expressions",
    "weights": "queries.expressions",
    "where": "queries.expressions",
    "case": "queries.groupings",
    "cut": "queries.groupings",
    "date_trunc": "queries.groupings",
    "extract": "queries.groupings",
    "marginal": "queries.marginals",
    "Measurement": "queries.partitions",
    "Partition": "queries.partitions",
    "Query": "queries.query",
    "rescaled": "queries.rescaled",
    "expected": "queries.within",
    "connect": "service.client",
    "replay": "session.belief",
    "OnlineIC": "session.session",
    "SessionStatistics": "session.statistics",
    "UpdateRule": "updates.base",
    "MaximumEntropy": "updates.maximum_entropy",
    "Median": "updates.median",
    "MixtureOfProducts": "updates.mixture",
    "MeasuredWeights": "updates.multiplicative_weights",
    "MultiplicativeWeights": "updates.multiplicative_weights",
    "Perceptron": "updates.perceptron",
}
_WINGS = {
    "accounting", "ask", "audit", "baselines", "bounds", "cli", "data", "datasets", "display", "domain",
    "errors", "evaluate", "hypothesis", "interactions", "known_noise", "ledger", "mechanisms", "noise",
    "offline", "periods", "plan", "progress", "queries", "questions", "reentry", "service", "session",
    "slips", "sparse", "testing", "updates",
}  # fmt: skip


__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import what a name stands for when it is first used: what is not used costs nothing."""
    if name in _HOMES:
        found = getattr(importlib.import_module(f"onlineic.{_HOMES[name]}"), name)
        globals()[name] = found
        return found
    if name not in _WINGS:
        from onlineic.slips import unknown  # of a message alone: imported with it

        raise unknown("onlineic", name, __dir__)
    return importlib.import_module(f"onlineic.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_WINGS} - {"TYPE_CHECKING", "Any"})
