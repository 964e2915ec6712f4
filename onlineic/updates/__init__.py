"""Database-update algorithms: how a hard answer improves the hypothesis."""

from onlineic.updates.base import ExactBound as ExactBound
from onlineic.updates.base import NeedsAccuracy as NeedsAccuracy
from onlineic.updates.base import UpdateRule as UpdateRule
from onlineic.updates.maximum_entropy import MaximumEntropy as MaximumEntropy
from onlineic.updates.measured_weights import MeasuredWeights as MeasuredWeights
from onlineic.updates.median import Median as Median
from onlineic.updates.multiplicative_weights import MultiplicativeWeights as MultiplicativeWeights
from onlineic.updates.perceptron import Perceptron as Perceptron
