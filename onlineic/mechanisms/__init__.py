"""One-shot releases of a number or a choice."""

from onlineic.bounds.sparse_vector import laplace_bound
from onlineic.mechanisms.additive import GaussianMechanism, LaplaceMechanism, discrete_gaussian_delta
from onlineic.mechanisms.quantiles import QuantileMechanism, quantile_scores
from onlineic.mechanisms.selection import ExponentialMechanism, NoisyMax, exponential_bound

__all__ = [
    "ExponentialMechanism",
    "GaussianMechanism",
    "LaplaceMechanism",
    "NoisyMax",
    "QuantileMechanism",
    "discrete_gaussian_delta",
    "exponential_bound",
    "laplace_bound",
    "quantile_scores",
]
