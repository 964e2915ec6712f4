"""Questions that are made of linear ones: means, sums, quantiles, distribution functions and tables by group.

All are functions of a session's public face: they ask it linear queries, on its budget, and work on what it
releases. Their bounds follow from those of the answers, and say with which probability.
"""

from collections.abc import Iterable, Mapping
from typing import final, overload

from onlineic.ask.sql import statement
from onlineic.ask.sql_values import Value
from onlineic.errors import InvalidParameterError, checked_integer, shown
from onlineic.queries.answers import Answer
from onlineic.queries.marginals import Key
from onlineic.queries.within import Within, checked_within
from onlineic.questions import arithmetic as arithmetic  # which results are combined by
from onlineic.questions.association import ChiSquare, Statistic, chi_square, correlation, covariance
from onlineic.questions.distributions import Cdf, Quantile, cdf, quantile
from onlineic.questions.groups import Groups, group_by
from onlineic.questions.linear import AnsweringLinear, Where
from onlineic.questions.means import Aggregate, Derived, variance
from onlineic.questions.moments import Scored
from onlineic.questions.ranks import Top
from onlineic.questions.regression import (
    LeastSquares,
    LeastSquaresByGroup,
    Ridge,
    least_squares,
    least_squares_by,
)
from onlineic.questions.series import series
from onlineic.questions.statements import AnswerTable, answered
from onlineic.questions.wishes import Wishing, counts_within, mean_within, share_within, sum_within
from onlineic.slips import public


@public
class Answering(AnsweringLinear):
    """What answers linear queries, and so questions that are made of them."""

    @final
    def mean(self, attribute: str, where: Where = None, *, within: float | Within | None = None) -> Derived:
        """Return the mean of an attribute among the records that meet a condition and have a value.

        Its `value` and `error_bound` are in the unit of the attribute: years of an age, never fractions.

        See `onlineic.questions.mean`: how it is worked out.

        Args:
            attribute: Whole numbers or numbers; bins stand for their midpoints, and `bias` says how far that
                may be off.
            where: Expression, text in SQL or dict.
            within: How exact the mean is to be, in the unit of the attribute; None: as the session wishes, of
                a session's wish that part of the range of the values.

        Returns:
            The number that was worked out, made of one answer for all records, else of two.

        Raises:
            TooFewRecordsError: If so few records meet the condition that the mean could be anything; the
                answers are paid.
            InvalidQueryError: If the attribute has no numbers, or nobody can meet the condition; nothing was
                asked.

        Examples:
            >>> session.mean("age", where="sex = 'Female'")
            mean(age, where(sex='Female')) = 3... ± 2... (0.95 sure), 16... records, 2 answers...
        """
        return mean_within(self, attribute, where, within)

    @final
    def share(
        self,
        cond: Where,
        where: Where = None,
        by: Key | Iterable[Key] | None = None,
        *,
        within: float | Within | None = None,
    ) -> Derived | Groups:
        """Return which part of the records that meet `where` also meet `cond`, by group if `by` is given.

        Args:
            cond: Who is counted: an expression, a text in SQL or a dict.
            where: Among whom; by default all records.
            by: An attribute, or a list of attributes and groupings.
            within: How exact the rate is to be, .01 for one point; None: as the session wishes. Not by group.

        Returns:
            A rate from 0 to 1 with its bound and usual error, and the numbers of records beside it: `part` of
            `count`. By group one of each: `values`, `parts`, `counts`.

        Raises:
            TooFewRecordsError: If less than half a record meets `where`; the answers are paid.
            InvalidQueryError: If a condition is none, or nobody can meet `where`; nothing was asked.

        Examples:
            >>> session.share("income = '>50K'", where={"sex": "Female"})
            share(where(income='>50K'), where(sex='Female')) = 0.1... ± 0... 1... of 16... records, 2
            answers...
        """
        return share_within(self, cond, where, by, within)

    @final
    def sum(self, attribute: str, where: Where = None, *, within: float | Within | None = None) -> Derived:
        """Return the sum of an attribute over the records that meet a condition and have a value.

        Its `value` and `error_bound` are in the unit of the attribute, over all those records together.

        See `onlineic.questions.total`: how it is worked out.

        Args:
            attribute: Whole numbers or numbers; bins stand for their midpoints, and `bias` says how far that
                may be off.
            where: Expression, text in SQL or dict.
            within: How exact the sum is to be, in its own unit; None: as the session wishes, of a session's
                wish that part of the range of the values, for all records.

        Raises:
            InvalidQueryError: If the attribute has no numbers, or nobody can meet the condition; nothing was
                asked.

        Examples:
            >>> session.sum("education_num", where={"sex": "Female"})
            sum(education_num, where(sex='Female')) = 16... ± ... (0.95 sure), 16... records, 2 answers...
        """
        return sum_within(self, attribute, where, within)

    @final
    def variance(self, attribute: str, where: Where = None) -> Derived:
        """Return the variance of an attribute among the records that meet a condition and have a value.

        The mean square distance from their mean, over all of them and not one less, in the square of the
        attribute's unit; its root is the standard deviation.

        See `onlineic.questions.variance`: how it is worked out.

        Args:
            where: Expression, text in SQL or dict.

        Raises:
            TooFewRecordsError, InvalidQueryError: As `mean`.

        Examples:
            >>> session.variance("age").value ** 0.5
            13.7...
        """
        return variance(self, attribute, where)

    @final
    def covariance(self, first: Scored, second: Scored, where: Where = None) -> Statistic:
        """Return the covariance of two attributes among the records that have both values.

        See `onlineic.questions.covariance`: how it is worked out, and what is refused.

        Args:
            first, second: A number or a boolean; or {attribute: label}, 1 of those with it, 0 of others.
            where: Among whom; by default all records.

        Examples:
            >>> session.covariance("age", "education_num")
            covariance(age, education_num) = ... ± ... by simulated noise (0.95 sure), 48... records...
        """
        return covariance(self, first, second, where)

    @final
    def correlation(self, first: Scored, second: Scored, where: Where = None) -> Statistic:
        """Return Pearson's correlation of two attributes among the records that have both values.

        See `onlineic.questions.correlation`: how it is worked out, and what is refused.

        Args:
            first, second, where: As of `covariance`.

        Examples:
            >>> session.correlation("education_num", {"income": ">50K"})
            correlation(education_num, income = '>50K') = 0.3... ± ... by simulated noise (0.95 sure)...
        """
        return correlation(self, first, second, where)

    @final
    def least_squares(
        self,
        outcome: Scored,
        on: Scored | Iterable[Scored],
        where: Where = None,
        *,
        ridge: Ridge = "adaptive",
    ) -> LeastSquares:
        """Return the least squares of a number on one or several others, with an intercept.

        See `onlineic.questions.least_squares`: how it is worked out, bounded, and what is refused.

        Args:
            outcome: A number or a boolean; or {attribute: label}, 1 of those with the label, 0 of others.
            on: The regressors, one or a list.
            where: Among whom; by default all records. Those without one of the values are left out.
            ridge: "adaptive": none where the released sums tell the regressors apart, else as little as does.
                A number: that one, or `IllConditionedError`.

        Examples:
            >>> session.least_squares("education_num", ["age", {"sex": "Male"}])
            least_squares(education_num on age, sex = 'Male') (0.95 sure, 48... records, 8 answers...)
              intercept: ...
              age: 0.00... ± ... by simulated noise
              sex = 'Male': 0.0... ± ... by simulated noise
              R squared 0.00..., residual 2.5...
        """
        return least_squares(self, outcome, on, where, ridge=ridge)

    @final
    def least_squares_by(
        self,
        outcome: Scored,
        on: Scored | Iterable[Scored],
        by: str,
        where: Where = None,
        *,
        ridge: Ridge = "adaptive",
    ) -> LeastSquaresByGroup:
        """Return least squares in each group by the label of an attribute; all are asked at once.

        See `onlineic.questions.least_squares_by`: what is refused.

        Args:
            outcome, on, where, ridge: As of `least_squares`.
            by: Attribute of at most 100 labels; of a number each bin is a group.

        Examples:
            >>> session.least_squares_by("education_num", "age", by="sex")["Male"].slopes
            array([...])
        """
        return least_squares_by(self, outcome, on, by, where, ridge=ridge)

    @final
    def chi_square(self, first: str, second: str, where: Where = None) -> ChiSquare:
        """Return chi-square and Cramer's V of the table of two attributes; nothing bounds them.

        See `onlineic.questions.chi_square`: what is done about noise, and what is refused.

        Args:
            first, second: The attributes.
            where: Among whom; by default all records.

        Examples:
            >>> session.chi_square("sex", "income")
            chi_square(sex, income): chi-square 2,2... of 1 degrees of freedom, p 0.0005; Cramer's V 0.2...
        """
        return chi_square(self, first, second, where)

    @overload
    def quantile(
        self,
        attribute: str,
        q: float,
        where: Where = None,
        *,
        narrow: bool = False,
        within: float | Within | None = None,
    ) -> Quantile: ...
    @overload
    def quantile(
        self,
        attribute: str,
        q: Iterable[float],
        where: Where = None,
        *,
        narrow: bool = False,
        within: float | Within | None = None,
    ) -> list[Quantile]: ...
    @final
    def quantile(
        self,
        attribute: str,
        q: float | Iterable[float],
        where: Where = None,
        *,
        narrow: bool = False,
        within: float | Within | None = None,
    ) -> Quantile | list[Quantile]:
        """Return the value that a share q of the records do not exceed, among those that meet a condition.

        It is searched by about log2(number of values) questions. `value`, `low` and `high` are values of the
        attribute, in its own unit: the exact quantile lies between `low` and `high`.

        See `onlineic.questions.quantile`: how it is searched and bounded.

        Args:
            attribute: Ordered: whole numbers, numbers, bins or dates.
            q: In (0, 1), or several. .5 is the median, .9 what nine in ten do not exceed. Of several shares a
                list.
            where: Expression, text in SQL or dict.
            narrow: Whether to ask up to four times as many questions, so that `low` and `high` come nearer.
            within: How exact each number of records is to be that the search asks for, as a fraction of all
                records: how far that lets values be apart the table alone tells. None: as the session wishes.

        Raises:
            TooFewRecordsError: If too few records meet the condition; the answers are paid.
            InvalidQueryError: If the attribute has no order, or nobody can meet the condition; nothing was
                asked.
            InvalidParameterError: If q is not between 0 and 1.

        Examples:
            >>> session.quantile("age", 0.9).value
            58
        """
        asked = self if within is None else Wishing(self, checked_within(within))
        return quantile(asked, attribute, q, where, narrow=narrow)

    @final
    def median(self, attribute: str, where: Where = None, *, narrow: bool = False) -> Quantile:
        """Return the value that half of the records do not exceed, among those that meet a condition.

        The quantile of one half: `value`, `low` and `high` are values of the attribute, in its own unit.

        Args:
            attribute, where, narrow: As of `quantile`.

        Raises:
            TooFewRecordsError, InvalidQueryError: As `quantile`.

        Examples:
            >>> session.median("age", where="sex = 'Male'")
            quantile(age, where(sex='Male'), 0.5) = ..., in ... .. ... (0.95 sure), rank ± ...
        """
        return self.quantile(attribute, 0.5, where, narrow=narrow)

    @final
    def cdf(self, attribute: str, where: Where = None) -> Cdf:
        """Return the distribution of an attribute: for every value the share of the records at or below it.

        Shares are fractions of the records that meet the condition and have a value, in [0, 1], and rise.
        All of them lie between `low` and `high` at once. One question for each value of the attribute.

        Args:
            attribute: Ordered, of at most 4,096 values.
            where: Expression, text in SQL or dict.

        Returns:
            It gives quantiles of every share, without a further question.

        Raises:
            TooFewRecordsError, InvalidQueryError: As `quantile`.
            TooLargeError: If the attribute has more values.

        Examples:
            >>> session.cdf("age").quantile(0.25).value
            28
        """
        return cdf(self, attribute, where)

    @final
    def histogram(
        self, attribute: str, where: Where = None, *, within: float | Within | None = None
    ) -> Groups:
        """Return how many records have each value of an attribute, among those that meet a condition.

        Counts, not fractions, each with its `error_bounds`; one question in all, the table of the attribute.

        Args:
            where: Expression, text in SQL or dict.
            within: How exact all counts are to be at once, in records; None: as the session wishes.

        Returns:
            One count a value; `to_pandas`, `to_polars`, `plot`.

        Raises:
            InvalidQueryError: If the attribute is unknown, or the condition is none; nothing was asked.
            TooLargeError: If it has more than 10,000 values.

        Examples:
            >>> session.histogram("sex")
            count by sex (0.95 sure, 1 answer...)
              Female: 16... ± ...
              Male: 32... ± ...
        """
        return group_by(counts_within(self, within), attribute, where)

    @final
    def top(self, attribute: Key | Iterable[Key], k: int = 10, where: Where = None) -> Top:
        """Return the most frequent values, and from which rank on noise may have decided.

        One question, the counts of all values.

        Args:
            attribute: Whose values are counted; a list of several, or of groupings, for their combinations.
            k: How many are shown.
            where: Among whom; by default all records.

        Examples:
            >>> session.top("race", 2)
            top 2 of 5: count by race (0.95 sure...)
            rank  race
            1     White  41... ± ...
            2     Black   4... ± ...
            all of these ranks are sure
        """
        k = checked_integer("k", k, at_least=1)  # before anything is asked
        return group_by(self, attribute, where).top(k)

    @final
    def series(
        self,
        attribute: str,
        by: str | None = None,
        where: Where = None,
        aggregate: Aggregate = "count",
        of: str | None = None,
    ) -> Groups:
        """Return a number for every period of a date; `plot` draws it as a line with its band.

        Args:
            attribute: Of dates.
            by: The longer period, such as "month"; by default that of the attribute.
            where: Among whom; by default all records.
            aggregate: As of `group_by`.
            of: The attribute of a mean, a sum or a variance.

        Examples:
            >>> session.series("day", by="month").plot()  # doctest: +SKIP
        """
        return series(self, attribute, by, where, aggregate, of)

    @final
    def group_by(
        self,
        keys: Key | Iterable[Key],
        where: Where = None,
        aggregate: Aggregate = "count",
        of: str | None = None,
        *,
        unbiased: bool = False,
        within: float | Within | None = None,
    ) -> Groups:
        """Return the number of records, or the mean, sum or variance of an attribute, in each group.

        Counts are numbers of records, not fractions, and one question in all. Means, sums and variances are
        in the unit of the attribute, and two or three questions a group.

        See `onlineic.questions.group_by`: what is asked, and what the bounds hold for.

        Args:
            keys: Str or Grouping, or list of these. Attributes whose values make the groups, at most 10,000;
                of a number its bins. Groupings are made by `date_trunc`, `extract`, `cut` and `case`.
            where: Expression, text in SQL or dict.
            of: The attribute of a mean, a sum or a variance.
            unbiased: Of counts: each by itself, with its standard error; it can be below 0. Add up such ones.
            within: How exact all counts are to be at once, in records; None: as the session wishes. They are
                one table, which costs little more than a few numbers, however many groups there are. Of means
                ask `mean(.., within=)` for each group.

        Returns:
            One number a group, with its bound; `to_pandas`, `to_polars`, `plot`.

        Raises:
            InvalidQueryError: If an attribute is unknown or named twice, or has no numbers, or nobody can
                meet the condition.
            TooLargeError: If there are more groups.

        Examples:
            >>> session.group_by("sex", aggregate="mean", of="age")
            mean(age) by sex (0.95 sure, 4 answers...)
              Female: 3... ± ...
              Male: 3... ± ...
        """
        if within is not None and not (type(aggregate) is str and aggregate == "count"):
            raise InvalidParameterError(
                f"within must be None with aggregate={shown(aggregate)}, got {shown(within)}: of counts;"
                " write mean(of, where, within=..) for each group."
            )
        return group_by(counts_within(self, within), keys, where, aggregate, of, unbiased=unbiased)

    def sql(
        self,
        text: str,
        table: str = "t",
        params: Mapping[str, Value] | None = None,
        dialect: str | None = None,
        *,
        within: float | Within | None = None,
    ) -> Answer | Derived | AnswerTable:
        """Answer a SELECT statement: counts, sums and averages, by group or not, as `OnlineIC.sql` says.

        Examples:
            >>> session.sql("SELECT COUNT(*) FROM t WHERE sex = 'Female'")
            Answer(0.33... ± 0.00..., 16... records...)
        """
        read = statement(text, self.domain, table, params, dialect)
        return answered(self if within is None else Wishing(self, checked_within(within)), read)
