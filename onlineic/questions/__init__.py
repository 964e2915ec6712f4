"""Questions made of several queries: means, totals, quantiles, groups, SQL statements, synthetic records."""

from onlineic.questions.covariances import correlation, covariance, slope
from onlineic.questions.derived import Answering
from onlineic.questions.distributions import Cdf, Quantile, cdf, quantile
from onlineic.questions.groups import Groups, group_by
from onlineic.questions.means import Derived, mean, total, variance
from onlineic.questions.ranks import Top
from onlineic.questions.series import series
from onlineic.questions.shares import share
from onlineic.questions.statements import AnswerTable
from onlineic.questions.synthetic import Synthetic

__all__ = [
    "AnswerTable",
    "Answering",
    "Cdf",
    "Derived",
    "Groups",
    "Quantile",
    "Synthetic",
    "Top",
    "cdf",
    "correlation",
    "covariance",
    "group_by",
    "mean",
    "quantile",
    "series",
    "share",
    "slope",
    "total",
    "variance",
]
