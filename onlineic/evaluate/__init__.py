"""Errors against the truth, for experiments: NOT PRIVATE."""

from onlineic.evaluate.report import (
    Row,
    error_figure,
    marginal_figure,
    new_figure,
    plot_errors,
    plot_marginal,
    rows,
    text_table,
)
from onlineic.evaluate.streams import exact_marginal, exact_values, random_stream
from onlineic.evaluate.traces import Trace, compare, coverage, known_baselines, simulate, trace

__all__ = [
    "Row",
    "Trace",
    "compare",
    "coverage",
    "error_figure",
    "exact_marginal",
    "exact_values",
    "known_baselines",
    "marginal_figure",
    "new_figure",
    "plot_errors",
    "plot_marginal",
    "random_stream",
    "rows",
    "simulate",
    "text_table",
    "trace",
]
