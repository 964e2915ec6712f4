"""What is asked and what is answered: linear queries, cross tables, partitions, answers."""

from onlineic.queries.answers import Answer, Status
from onlineic.queries.batch import Boxes, Queries
from onlineic.queries.expressions import (
    Condition,
    Expression,
    at_least,
    below,
    between,
    dense,
    one_of,
    span,
    weights,
    where,
)
from onlineic.queries.groupings import Grouping, case, cut, date_trunc, extract
from onlineic.queries.marginals import BoundMarginal, Marginal, marginal
from onlineic.queries.memory import AnswerMemory
from onlineic.queries.partitions import (
    Measurement,
    Partition,
    PartitionRule,
    block_weights,
    derived,
    one_way,
    pairs_of,
    pooled,
    sets_of,
)
from onlineic.queries.query import GRID_BITS, Factor, Query, canonical
from onlineic.queries.reach import Reach
from onlineic.queries.rescaled import Rescaled, rescaled
from onlineic.queries.tables import spread
from onlineic.queries.within import Within, expected

__all__ = [
    "GRID_BITS",
    "Answer",
    "AnswerMemory",
    "BoundMarginal",
    "Boxes",
    "Condition",
    "Expression",
    "Factor",
    "Grouping",
    "Marginal",
    "Measurement",
    "Partition",
    "PartitionRule",
    "Queries",
    "Query",
    "Reach",
    "Rescaled",
    "Status",
    "Within",
    "at_least",
    "below",
    "between",
    "block_weights",
    "canonical",
    "case",
    "cut",
    "date_trunc",
    "dense",
    "derived",
    "expected",
    "extract",
    "marginal",
    "one_of",
    "one_way",
    "pairs_of",
    "pooled",
    "rescaled",
    "sets_of",
    "span",
    "spread",
    "weights",
    "where",
]
