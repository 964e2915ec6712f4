"""What a session can be asked: what its mechanism releases, its hypothesis answers and its table counts."""

from onlineic.hypothesis.base import Hypothesis, check_answers
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.reach import Axes, Reach
from onlineic.sparse.base import NumericSparse


def answers_tables(sparse: NumericSparse, hypothesis: Hypothesis) -> bool:
    """Whether cross tables can be asked."""
    # as `isinstance` of `HasBlocks`, which takes as long as a question
    return sparse.releases_tables and callable(getattr(hypothesis, "blocks", None))


def check_supported(
    question: Question | Queries, sparse: NumericSparse, hypothesis: Hypothesis, reach: Reach | None = None
) -> None:
    """Raise `InvalidQueryError` unless mechanism and hypothesis can answer a question, or all of a batch.

    And `TooLargeError` if the table, where it has such a `reach`, cannot be counted over their attributes.
    """
    if reach is not None:
        domain = question.partition.domain if isinstance(question, BoundMarginal) else question.domain
        for axes in sets_asked(question):
            reach.check(domain, axes)
    if isinstance(question, BoundMarginal):
        sparse.check_releases(question)
    check_answers(hypothesis, question)


def sets_asked(question: Question | Queries) -> list[Axes]:
    """Return the attribute sets of a question or a batch, each once, in order of appearance."""
    if isinstance(question, BoundMarginal):
        return [question.partition.axes]
    if isinstance(question, Queries):
        held = [(int(group.places[0]), group.axes) for group in question.boxes]
        held += [(place, query.axes) for place, query in question.others]
        return [*dict.fromkeys(axes for _, axes in sorted(held))]
    return [question.axes]
