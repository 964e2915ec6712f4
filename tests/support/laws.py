"""Exact laws of noise and choices from first principles, and p-values of counts."""

import math
from fractions import Fraction

import numpy as np
from scipy import stats

from onlineic.audit import Law


def lap(scale):
    return Law("discrete_laplace", Fraction(scale))


def exponential_law(scores, scale):
    """P(index) proportional to e^(score / scale)."""
    weights = np.exp((np.asarray(scores) - max(scores)) / scale)
    return weights / weights.sum()


def noisy_max_law(scores, scale):
    """P(index) of the lowest index of the largest score + geometric noise, by summing over the winner's."""
    q = math.exp(-1 / scale)
    top = int(max(scores)) + np.arange(math.ceil(45 * scale))
    law = []
    for index, score in enumerate(scores):
        mass = (1 - q) * q ** (top - float(score))
        for other, rival in enumerate(scores):
            if other != index:
                mass = mass * (1 - q ** (top - float(rival) + (other > index)))
        law.append(mass.sum())
    return np.array(law)


def two_sided(law, value):
    """Exact two-sided p-value of a discrete statistic: twice the smaller tail."""
    return min(1.0, 2 * min(law.cdf(value), law.sf(value - 1)))


def too_many(failures, trials, probability):
    """P(at least so many) if each happens with this probability."""
    return stats.binom.sf(failures - 1, trials, probability)
