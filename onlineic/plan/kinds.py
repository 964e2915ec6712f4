"""Of which kind a question is: whether a session can answer it, and whether tables of pairs say something
about it, from its weights alone."""

import itertools

from onlineic.errors import (
    InvalidQueryError,
    shown,
)
from onlineic.hypothesis.base import NO_BLOCKS, HasBlocks, Hypothesis, supports_all
from onlineic.plan.defaults import BEYOND_PAIRS
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.query import Factor, Query
from onlineic.queries.reach import Axes, Reach
from onlineic.sparse.base import NumericSparse


def answers_tables(sparse: NumericSparse, hypothesis: Hypothesis) -> bool:
    """Whether cross tables can be asked: a hit can be paid, and the hypothesis has their cells."""
    return sparse.releases_tables and isinstance(hypothesis, HasBlocks)


def check_supported(
    question: Question | Queries,
    sparse: NumericSparse,
    hypothesis: Hypothesis,
    reach: Reach | None = None,
) -> None:
    """Raise `InvalidQueryError` if the mechanism or the hypothesis does not know such questions.

    And `TooLargeError` if the table cannot be counted over their attributes, where it has such a `reach`.
    """
    if reach is not None:
        domain = question.partition.domain if isinstance(question, BoundMarginal) else question.domain
        for axes in sets_asked(question):
            reach.check(domain, axes)
    if isinstance(question, BoundMarginal):
        if not sparse.releases_tables:
            raise InvalidQueryError(
                "a cross table must be asked of a session that measures tables, got one that was planned to "
                "measure single numbers, as with delta = 0 or release='answer'; ask its counts by group, "
                f"session.group_by({shown(list(question.names), 100)}) or GROUP BY in SQL, or open a "
                f"session with "
                "delta above 0 and without these settings."
            )
        sparse.price(question.partition)
        if not isinstance(hypothesis, HasBlocks):
            raise InvalidQueryError(NO_BLOCKS)
    elif not (
        supports_all(hypothesis, question) if type(question) is Queries else hypothesis.supports(question)
    ):
        raise InvalidQueryError("query must be supported by the hypothesis, got one that is not.")


def sets_asked(question: Question | Queries) -> list[Axes]:
    """Return the sets of attributes of a question, or of a batch, each once in their order there."""
    if isinstance(question, BoundMarginal):
        return [question.partition.axes]
    if isinstance(question, Queries):
        held = [(int(group.places[0]), group.axes) for group in question.boxes]
        held += [(place, query.axes) for place, query in question.others]
        return [*dict.fromkeys(axes for _, axes in sorted(held))]
    return [question.axes]


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
