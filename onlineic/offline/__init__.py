"""Mechanisms that see all their questions at once, on the same noise, queries, rules and accounting.

Each takes a `PrivateData` and an epsilon or `Budget` of its own (budgets add), checks everything public, is
charged, and only then reads: after `InvalidParameterError` nothing was spent. The noise is the system's
entropy where none is given. n is public and neighbours replace one record; some take a number that `count`
released where it is private. Examples name numpy np and onlineic ic.
"""

from onlineic.offline.cdf import PrivateCdf, private_cdf, threshold_functions
from onlineic.offline.construction import Construction
from onlineic.offline.distinguishers import iterative_construction
from onlineic.offline.large_counts import LargeCounts, range_queries
from onlineic.offline.linear_programs import LinearPrograms, ProgramsAbove, linear_programs_above
from onlineic.offline.means import (
    AutoAverage,
    ClippingBound,
    Mean,
    auto_avg,
    clipping_bound,
    mean,
    sensitivity,
)
from onlineic.offline.multiplicative_weights import mwem
from onlineic.offline.nets import small_database
from onlineic.offline.records import count
from onlineic.offline.selection import Choice, median, most_popular, quantile
from onlineic.offline.statistics import (
    Statistic,
    column_mean,
    distinct_count,
    exceptions,
    fraction,
    on_grid,
    statistic,
)
from onlineic.offline.thresholds import threshold_database
from onlineic.offline.values_above import ValuesAbove, numeric_sparse

__all__ = [
    "AutoAverage",
    "Choice",
    "ClippingBound",
    "Construction",
    "LargeCounts",
    "LinearPrograms",
    "Mean",
    "PrivateCdf",
    "ProgramsAbove",
    "Statistic",
    "ValuesAbove",
    "auto_avg",
    "clipping_bound",
    "column_mean",
    "count",
    "distinct_count",
    "exceptions",
    "fraction",
    "iterative_construction",
    "linear_programs_above",
    "mean",
    "median",
    "most_popular",
    "mwem",
    "numeric_sparse",
    "on_grid",
    "private_cdf",
    "quantile",
    "range_queries",
    "sensitivity",
    "small_database",
    "statistic",
    "threshold_database",
    "threshold_functions",
]
