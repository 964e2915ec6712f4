"""Whether tables of pairs say something about a question, from its weights alone."""

import itertools

from onlineic.plan.defaults import BEYOND_PAIRS
from onlineic.queries.marginals import Question
from onlineic.queries.query import Factor, Query


def is_dense(question: Question) -> bool:
    """Return whether much of a question is beyond what pairs of attributes hold.

    Of weights that join several attributes: the mean square of what is left of them once all functions of
    two attributes are fitted, each cell alike. Of unions it is .016 or less, of halfspaces .08, of parities
    and random halves of the cells about .25. Two attributes are one table, which is cut coarsely: there every
    joint weight counts.
    """
    if not isinstance(question, Query):
        return False
    attributes = sum(size > 1 for size in question.domain.shape)
    if attributes == 2:
        return any(len(factor.axes) == 2 for factor in question.factors)
    return any(len(factor.axes) > 2 and beyond_pairs(factor) > BEYOND_PAIRS for factor in question.factors)


def beyond_pairs(factor: Factor) -> float:
    """Return the mean square of a joint factor's weights that no sum of functions of two axes fits."""
    weights = factor.floats / (1 << factor.bits)
    axes = range(weights.ndim)

    def explained(*kept: int) -> float:
        return float(weights.mean(axis=tuple(axis for axis in axes if axis not in kept)).var())

    own = [explained(axis) for axis in axes]
    pairs = [explained(*pair) - own[pair[0]] - own[pair[1]] for pair in itertools.combinations(axes, 2)]
    return max(0.0, float(weights.var()) - sum(own) - sum(pairs))
