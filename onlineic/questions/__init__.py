"""Questions made of several queries: means, totals, quantiles, groups, SQL statements, synthetic records."""

from onlineic.questions.association import ChiSquare, Statistic, chi_square, correlation, covariance
from onlineic.questions.derived import Answering
from onlineic.questions.distributions import Cdf, Quantile, cdf, quantile
from onlineic.questions.groups import Groups, group_by
from onlineic.questions.linear import PublicFacts
from onlineic.questions.means import Derived, mean, total, variance
from onlineic.questions.ranks import Top
from onlineic.questions.regression import (
    LeastSquares,
    LeastSquaresByGroup,
    least_squares,
    least_squares_by,
    sums_of_products,
)
from onlineic.questions.series import series
from onlineic.questions.shares import share
from onlineic.questions.statements import AnswerTable
from onlineic.questions.synthetic import Synthetic

__all__ = [
    "AnswerTable",
    "Answering",
    "Cdf",
    "ChiSquare",
    "Derived",
    "Groups",
    "LeastSquares",
    "LeastSquaresByGroup",
    "PublicFacts",
    "Quantile",
    "Statistic",
    "Synthetic",
    "Top",
    "cdf",
    "chi_square",
    "correlation",
    "covariance",
    "group_by",
    "least_squares",
    "least_squares_by",
    "mean",
    "quantile",
    "series",
    "share",
    "sums_of_products",
    "total",
    "variance",
]
