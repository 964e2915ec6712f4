"""Database-update algorithms: how a hard answer improves the hypothesis."""

from onlineic.updates.base import ExactBound, NeedsAccuracy, UpdateRule
from onlineic.updates.corrected import CorrectedFit
from onlineic.updates.fitted_tables import FittedTables
from onlineic.updates.maximum_entropy import MaximumEntropy
from onlineic.updates.median import Median
from onlineic.updates.mixture import MixtureOfProducts
from onlineic.updates.multiplicative_weights import MeasuredWeights, MultiplicativeWeights
from onlineic.updates.perceptron import Perceptron
from onlineic.updates.steps import FittedAt, FittedStart, MeasuredSteps

__all__ = [
    "CorrectedFit",
    "ExactBound",
    "FittedAt",
    "FittedStart",
    "FittedTables",
    "MaximumEntropy",
    "MeasuredSteps",
    "MeasuredWeights",
    "Median",
    "MixtureOfProducts",
    "MultiplicativeWeights",
    "NeedsAccuracy",
    "Perceptron",
    "UpdateRule",
]
