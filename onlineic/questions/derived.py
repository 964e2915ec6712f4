"""Questions that are made of linear ones: means, sums, quantiles, distribution functions and tables by group.

All are functions of a session's public face: they ask it linear queries, on its budget, and work on what it
releases. Their bounds follow from those of the answers, and say with which probability.
"""

from collections.abc import Iterable, Mapping
from typing import final

from onlineic.ask.sql import statement
from onlineic.ask.sql_conditions import Value
from onlineic.queries.answers import Answer
from onlineic.questions.distributions import Cdf, Quantile, cdf, quantile
from onlineic.questions.groups import Groups, group_by
from onlineic.questions.linear import AnsweringLinear, Where
from onlineic.questions.means import Aggregate, Derived, mean, total, variance
from onlineic.questions.statements import AnswerTable, answered
from onlineic.slips import public


@public
class Answering(AnsweringLinear):
    """What answers linear queries, and so questions that are made of them."""

    @final
    def mean(self, attribute: str, where: Where = None) -> Derived:
        """Return the mean of an attribute among the records that meet a condition: `questions.mean`."""
        return mean(self, attribute, where)

    @final
    def sum(self, attribute: str, where: Where = None) -> Derived:
        """Return the sum of an attribute over the records that meet a condition: `questions.total`."""
        return total(self, attribute, where)

    @final
    def variance(self, attribute: str, where: Where = None) -> Derived:
        """Return the variance of an attribute among the records that count: `questions.variance`."""
        return variance(self, attribute, where)

    @final
    def quantile(self, attribute: str, q: float, where: Where = None, *, narrow: bool = False) -> Quantile:
        """Return where a share q of the records lies at or below: `questions.quantile`."""
        return quantile(self, attribute, q, where, narrow=narrow)

    @final
    def median(self, attribute: str, where: Where = None, *, narrow: bool = False) -> Quantile:
        """Return the quantile of one half."""
        return quantile(self, attribute, 0.5, where, narrow=narrow)

    @final
    def cdf(self, attribute: str, where: Where = None) -> Cdf:
        """Return the share of the records at or below every label of an attribute (`questions.cdf`)."""
        return cdf(self, attribute, where)

    @final
    def histogram(self, attribute: str, where: Where = None) -> Groups:
        """Return the count of records of every label: `group_by` of one attribute."""
        return group_by(self, attribute, where)

    @final
    def group_by(
        self,
        keys: str | Iterable[str],
        where: Where = None,
        aggregate: Aggregate = "count",
        of: str | None = None,
        *,
        unbiased: bool = False,
    ) -> Groups:
        """Return a count, or a mean, sum or variance of an attribute, by group: `questions.group_by`."""
        return group_by(self, keys, where, aggregate, of, unbiased=unbiased)

    def sql(
        self,
        text: str,
        table: str = "t",
        params: Mapping[str, Value] | None = None,
        dialect: str | None = None,
    ) -> Answer | Derived | AnswerTable:
        """Answer a SELECT statement: counts, sums and averages, by group or not, as `OnlineIC.sql` says."""
        return answered(self, statement(text, self.domain, table, params, dialect))
