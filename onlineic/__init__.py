"""Online differentially private answers to linear queries, by the OnlineIC framework."""

from onlineic.accounting import Budget as Budget
from onlineic.answers import Answer as Answer
from onlineic.answers import SessionStatistics as SessionStatistics
from onlineic.attributes import binned as binned
from onlineic.data import PrivateData as PrivateData
from onlineic.domain import Domain as Domain
from onlineic.domain import optional as optional
from onlineic.expressions import at_least as at_least
from onlineic.expressions import below as below
from onlineic.expressions import between as between
from onlineic.expressions import dense as dense
from onlineic.expressions import one_of as one_of
from onlineic.expressions import span as span
from onlineic.expressions import weights as weights
from onlineic.expressions import where as where
from onlineic.hypothesis import Histogram as Histogram
from onlineic.marginals import marginal as marginal
from onlineic.queries import Measurement as Measurement
from onlineic.session import OnlineIC as OnlineIC
from onlineic.transcript import replay as replay
from onlineic.updates import MaximumEntropy as MaximumEntropy
from onlineic.updates import MeasuredWeights as MeasuredWeights
from onlineic.updates import Median as Median
from onlineic.updates import MultiplicativeWeights as MultiplicativeWeights
from onlineic.updates import Perceptron as Perceptron
from onlineic.updates import UpdateRule as UpdateRule

__version__ = "0.1.0"
