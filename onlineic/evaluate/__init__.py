"""Errors against the truth, for experiments: NOT PRIVATE."""

from onlineic.display.figures import new_figure
from onlineic.evaluate.comparison import compare, known_baselines
from onlineic.evaluate.factorisation import FactorisationBound, factorisation_bound
from onlineic.evaluate.report import (
    Row,
    plot_errors,
    plot_marginal,
    rows,
    text_table,
)
from onlineic.evaluate.streams import exact_marginal, exact_values, random_stream
from onlineic.evaluate.traces import Analyst, Trace, coverage, frame, trace

__all__ = [
    "Analyst",
    "FactorisationBound",
    "Row",
    "Trace",
    "compare",
    "coverage",
    "exact_marginal",
    "exact_values",
    "factorisation_bound",
    "frame",
    "known_baselines",
    "new_figure",
    "plot_errors",
    "plot_marginal",
    "random_stream",
    "rows",
    "text_table",
    "trace",
]
