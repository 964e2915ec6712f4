"""Two attributes together: covariance, correlation, and chi-square of their table.

Proof: docs/theory/queries.md, 1.10.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NoReturn, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.display.html import card, facts
from onlineic.display.plain import strict
from onlineic.display.text import (
    FEW,
    around,
    of_bins,
    records,
    records_bound,
    shortened,
    sure,
    to_its_bound,
    upward,
    usually_and_provably,
)
from onlineic.domain.domain import Domain
from onlineic.errors import IllConditionedError, InvalidQueryError, shown
from onlineic.noise.sources import public_generator
from onlineic.queries.answers import LONGEST_QUERY, Answer, MadeOfAnswers, made_of
from onlineic.questions.groups import group_by
from onlineic.questions.linear import (
    AnsweringLinear,
    Where,
    asked_together,
    check_answering,
    checked_condition,
    counted,
    too_few,
)
from onlineic.questions.moments import (
    DRAWS,
    SEED,
    Moments,
    Released,
    Scored,
    asked_of,
    moments_of,
    usual,
)
from onlineic.slips import public

Basis = Literal["measured", "tables", "test", "nothing", "unknown"]
WORST: tuple[Basis, ...] = ("nothing", "test", "unknown", "tables", "measured")
BASES = {
    "measured": "",
    "tables": "",
    "unknown": "",
    "test": "rests on nothing that was bought: a test alone says how far it may be off",
    "nothing": "rests on nothing: neither bought nor tested",
}
SIMULATED = "by simulated noise"
OUTSIDE = "outside its range: taken to its end"


@public
@final
@attrs.frozen
class Statistic(MadeOfAnswers):
    """One number about two attributes, worked out from released answers.

    Attributes:
        name: What was asked, such as "correlation(age, hours)".
        value: In the units of the attributes; of a correlation none.
        error_bound: Half-width around `value` that holds the exact number with probability `confidence`; inf
            where none can be proved.
        expected_error: Root-mean-square error by simulation of public noise: it is drawn anew to the expected
            errors of the answers, as if these were independent, and to three times those of sums of products
            that a fit to tables tells. Nothing promises it. None where one is unknown.
        confidence: 1 - beta, as of `Derived`.
        bias: How far values in bins may put it off besides, with the same probability.
        count: Records that it is about, those that meet the condition and have both values.
        count_bound: Half-width around that.
        answers: What it was made of.
        basis: What the sum of products rests on: "measured", a number for itself; "tables", a fit to tables
            of which one is over both attributes; "test", the hypothesis's own guess, which a test agreed
            to; "nothing", a guess without a test; "unknown", of engines without a record.
        outside: Whether what was released lay outside of the range of such a number, and it was taken to its
            end.
        few_records: Whether it is over no more records than twice their error: then nothing bounds it.
    """

    name: str
    value: float
    error_bound: float
    expected_error: float | None
    confidence: float
    bias: float
    count: float
    count_bound: float
    answers: tuple[Answer, ...]
    basis: Basis
    outside: bool = False
    few_records: bool = False

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader has to know besides, in words."""
        return remarks(self.basis, self.outside, self.few_records)

    def to_dict(self) -> dict[str, Any]:
        """Return all that it says as plain values, which `json.dumps` takes, but for its answers."""
        told = attrs.asdict(self, filter=lambda field, _: field.name != "answers")
        found: dict[str, Any] = strict(told | {"private": self.private, "remarks": list(self.remarks)})
        return found

    def __float__(self) -> float:
        return self.value

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __format__(self, form: str) -> str:
        return format(self.value, form) if form else repr(self)

    def __bool__(self) -> NoReturn:
        raise TypeError("a statistic has no truth value: compare its value instead.")

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        bias = f" and {upward(self.bias)} for values in bins" if self.bias else ""
        said = around(self.value, self.error_bound, expected=self.expected_error)
        said += f" {SIMULATED}" * bool(self.expected_error)
        notes = "".join(f"; {one}" for one in self.remarks)
        return (
            f"{self.name} = {said}{bias} ({sure(self.confidence)}), {self.count:.1f} {self.of_what}, "
            f"{counted(self.answers)}{stamp}{notes}"
        )

    def _repr_html_(self) -> str:
        usual_said = usually_and_provably(self.expected_error, self.error_bound, self.confidence)
        said = [("error", usual_said), ("usual error", SIMULATED)]
        said += [("note", one) for one in self.remarks]
        if self.bias:
            said.append(of_bins(self.bias))
        said.append(("about", f"{records(self.count)} ± {records_bound(self.count_bound)} {self.of_what}"))
        title = f"{shortened(self.name, LONGEST_QUERY)} = {to_its_bound(self.value, self.error_bound)}"
        return card(title, facts(said), made_of(self.answers), private=self.private)


def remarks(basis: Basis, outside: bool, few: bool) -> tuple[str, ...]:
    """Return what a reader has to know of a number, in words."""
    return tuple(filter(None, (BASES[basis], OUTSIDE * outside, FEW * few)))


def basis_of(domain: Domain, names: Iterable[str], answers: Sequence[Answer], released: Released) -> Basis:
    """Return what the answers about some attributes together rest on, by what a session has released."""
    axes = {domain.axis(name) for name in names}
    if all(map(released.measures, answers)):
        return "measured"
    if any(axes <= table for table in released.tables):
        return "tables"
    if any(answer.status == "untested" for answer in answers):
        return "nothing"
    return "test" if released.known else "unknown"


def covariance(session: AnsweringLinear, first: Scored, second: Scored, where: Where = None) -> Statistic:
    """Return the covariance of two attributes among the records that meet a condition and have both values.

    Over all of these records, and not one less (COVAR_POP). With z and z' the attributes scaled to [-1, 1]
    about the middle of their public ends, it is the product of half their widths with E[z z'] - E[z] E[z'].

    Raises:
        TooFewRecordsError: If fewer than two records count, or no more than their bound and no error is
            expected of them; the answers are paid.
        InvalidQueryError: If an attribute has no numbers, or nobody can meet the condition; nothing was
            asked.
        TooLargeError: If the two have more than 2^22 pairs of values.
    """
    name, pair = _pair(session, "covariance", first, second, where)
    value = float(pair.covariances[0, 1])
    unit = float(pair.halves[0] * pair.halves[1])
    drawn = None if pair.drawn is None else pair.drawn[1][:, 0, 1]
    expected = usual(value, drawn)
    # no covariance of values in [-1, 1] is farther from 0 than 1
    bound = math.inf if pair.few else min(float(pair.bounds[0, 1]), 1.0 + abs(value))
    return _statistic(
        session, name, pair, value * unit, bound * unit, _times(expected, unit), pair.off[0, 1] * unit
    )


def correlation(session: AnsweringLinear, first: Scored, second: Scored, where: Where = None) -> Statistic:
    """Return Pearson's correlation of two attributes among the records that meet a condition and have both.

    Raises:
        IllConditionedError: If a variance is no more than twice its usual error: the answers are paid, and
            stand in the exception.
        TooFewRecordsError, InvalidQueryError, TooLargeError: As of `covariance`.
    """
    name, pair = _pair(session, "correlation", first, second, where)
    _check_varied(name, pair)
    made, low, high = _correlated(pair.covariances, pair.bounds)
    value = min(max(made, -1.0), 1.0)
    bound = math.inf if pair.few else max(high - value, value - low)
    wide_low, wide_high = _correlated(pair.covariances, pair.bounds + pair.off)[1:]
    bias = 0.0 if pair.few else max(0.0, max(wide_high - value, value - wide_low) - bound)
    drawn = None
    if pair.drawn is not None:
        parts = pair.drawn[1]
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sqrt(np.maximum(parts[:, 0, 0] * parts[:, 1, 1], 0.0))
            drawn = np.clip(np.nan_to_num(parts[:, 0, 1] / spread), -1.0, 1.0)
    return _statistic(session, name, pair, value, bound, usual(value, drawn), bias, outside=abs(made) > 1.0)


def _check_varied(name: str, pair: Moments) -> None:
    """Raise `IllConditionedError` if an attribute does not vary by more than twice its usual error."""
    for at in range(2):
        value = float(pair.covariances[at, at])
        drawn = None if pair.drawn is None else pair.drawn[1][:, at, at]
        error = usual(value, drawn)
        least = 2.0 * (float(pair.bounds[at, at]) if error is None else error)
        if not value > (least if math.isfinite(least) else 0.0):
            unit = pair.scores[at].half ** 2
            said = around(value * unit, float(pair.bounds[at, at]) * unit, expected=_times(error, unit))
            failure = IllConditionedError(
                f"{name} must be of attributes that vary by more than twice their usual error, got "
                f"{pair.scores[at].name} with a variance of {said}; widen the condition, or spend more on it."
            )
            failure.answers = pair.answers
            raise failure


def _correlated(covariances: Floats, bounds: Floats) -> tuple[float, float, float]:
    """Return the correlation of two attributes, and between what it lies by bounds of their covariances."""
    value = float(covariances[0, 1])
    spread = covariances[0, 0] * covariances[1, 1]
    variances = np.diag(covariances)
    reach = np.diag(bounds)
    least, most = variances - reach, variances + reach
    made = value / math.sqrt(spread) if spread > 0.0 else math.copysign(math.inf, value)
    if not (least > 0.0).all() or not np.isfinite(bounds).all():
        return made, -1.0, 1.0
    near, far = math.sqrt(float(np.prod(most))), math.sqrt(float(np.prod(least)))
    low, high = value - float(bounds[0, 1]), value + float(bounds[0, 1])
    return made, max(-1.0, low / (far if low < 0.0 else near)), min(1.0, high / (far if high > 0.0 else near))


def _pair(
    session: AnsweringLinear, what: str, first: Scored, second: Scored, where: Where
) -> tuple[str, Moments]:
    check_answering(session)
    sums, read = asked_of(session, (first, second), where)
    names = ", ".join(one.name for one in sums.scores)
    name = f"{what}({names})" if read is None else f"{what}({names}, {shown(read, 100)})"
    found = asked_together(session, sums.queries)
    return name, moments_of(sums, session.n, found, name, Released.by(session))


def _statistic(
    session: AnsweringLinear,
    name: str,
    pair: Moments,
    value: float,
    bound: float,
    expected: float | None,
    bias: float,
    outside: bool = False,
) -> Statistic:
    answers = [pair.answers[place] for place in pair.places[0, 1]]
    names = [one.attribute for one in pair.scores]
    return Statistic(
        name=name,
        value=value,
        error_bound=bound,
        expected_error=expected,
        confidence=pair.found.confidence,
        bias=float(bias),
        count=pair.n * pair.share,
        count_bound=pair.n * pair.share_bound,
        answers=pair.answers,
        basis=basis_of(session.domain, names, answers, Released.by(session)),
        outside=outside,
        few_records=pair.few,
    )


def _times(error: float | None, unit: float) -> float | None:
    return None if error is None else error * unit


# ---------------------------------------------------------------- a table


@public
@final
@attrs.frozen
class ChiSquare(MadeOfAnswers):
    """How far a table of two attributes is from that of independent ones.

    Nothing is proved of these numbers: all errors are by simulation of public noise.

    Attributes:
        name: What was asked.
        chi_square: Pearson's statistic of the counts, without what noise adds to it in the mean.
        degrees: Its degrees of freedom, (rows - 1) (columns - 1).
        p_value: Share of simulated tables of independent attributes, of as many records and with noise, whose
            statistic is as large.
        cramers_v: Its root over the number of records and the smaller side less one, from 0 to 1.
        expected_error: Of `cramers_v`, as of `Statistic`; None where an answer's is unknown.
        count: Records that have both values and meet the condition.
        answers: What it was made of.
        basis: As of `Statistic`.
    """

    name: str
    chi_square: float
    degrees: int
    p_value: float | None
    cramers_v: float
    expected_error: float | None
    count: float
    answers: tuple[Answer, ...]
    basis: Basis

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader has to know besides, in words."""
        return remarks(self.basis, False, False)

    def to_dict(self) -> dict[str, Any]:
        """Return all that it says as plain values, which `json.dumps` takes, but for its answers."""
        told = attrs.asdict(self, filter=lambda field, _: field.name != "answers")
        found: dict[str, Any] = strict(told | {"private": self.private, "remarks": list(self.remarks)})
        return found

    def _said(self) -> list[tuple[str, str]]:
        v = around(self.cramers_v, math.inf, expected=self.expected_error).replace(" no bound", "")
        p = "unknown" if self.p_value is None else f"{self.p_value:.3g}"
        return [
            ("chi-square", f"{self.chi_square:,.1f} of {self.degrees} degrees of freedom, p {p}"),
            ("Cramer's V", f"{v} {SIMULATED}" if self.expected_error else v),
        ]

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        said = "; ".join(f"{name} {text}" for name, text in self._said())
        notes = "".join(f"; {one}" for one in self.remarks)
        made = f"{self.count:.1f} {self.of_what}, {counted(self.answers)}"
        return f"{self.name}: {said}, {made}{stamp}{notes}"

    def _repr_html_(self) -> str:
        said = [*self._said(), *(("note", one) for one in self.remarks)]
        said.append(("about", f"{records(self.count)} {self.of_what}"))
        return card(
            shortened(self.name, LONGEST_QUERY), facts(said), made_of(self.answers), private=self.private
        )


def chi_square(session: AnsweringLinear, first: str, second: str, where: Where = None) -> ChiSquare:
    """Return chi-square and Cramer's V of the table of two attributes, without their missing values.

    Noise makes every table look dependent. So noise is drawn to the expected errors of the cells, what it
    adds to the statistic in the mean is taken off, and the p-value compares with tables of independent
    attributes that were drawn with the same noise (Gaboardi, Lim, Rogers and Vadhan 2016).

    Raises:
        TooFewRecordsError: If fewer records than cells are in the table; the answers are paid.
        InvalidQueryError: If an attribute is unknown, the two are one, or one has a single value.
        TooLargeError: If the table has more than 10,000 cells.
    """
    check_answering(session)
    domain = session.domain
    read = None if where is None else checked_condition(domain, where)
    _check_labels(domain, first)
    _check_labels(domain, second)
    groups = group_by(session, [first, second], read)
    by = f"{first}, {second}" if read is None else f"{first}, {second}, {shown(read, 100)}"
    there = np.ix_(*([label is not None for label in labels] for labels in groups.labels))
    errors = np.broadcast_to(groups.expected_errors, groups.values.shape)[there]
    name, counts = f"chi_square({by})", np.maximum(groups.values[there], 0.0)
    total, known = float(counts.sum()), bool(np.isfinite(errors).all())
    if total < counts.size:
        raise too_few(session.n, name, total / session.n, counts.size / session.n, groups.answers)
    most = min(counts.shape) - 1
    plain = _distance(counts)
    value, error, p_value = plain, None, None
    if known:
        draw = public_generator(SEED)
        noise = draw.standard_normal((DRAWS, *counts.shape)) * errors
        noisy = _distance(counts + noise)
        value = max(0.0, plain - float(np.mean(noisy) - plain))
        added = plain - value
        spread = np.sqrt(np.maximum(noisy - added, 0.0) / most)
        error = usual(math.sqrt(value / most), spread)
        rows, columns = counts.sum(axis=1) / total, counts.sum(axis=0) / total
        shares = np.outer(rows, columns).ravel()
        sampled = draw.multinomial(round(total), shares / shares.sum(), DRAWS).reshape(noise.shape)
        null = _distance(sampled + draw.standard_normal(noise.shape) * errors)
        p_value = float((1 + (null >= plain).sum()) / (1 + DRAWS))
    return ChiSquare(
        name=name,
        chi_square=total * value,
        degrees=int((counts.shape[0] - 1) * (counts.shape[1] - 1)),
        p_value=p_value,
        cramers_v=min(1.0, math.sqrt(value / most)),
        expected_error=error,
        count=total,
        answers=groups.answers,
        basis=basis_of(domain, (first, second), groups.answers, Released.by(session)),
    )


def _check_labels(domain: Domain, name: str) -> None:
    """Raise `InvalidQueryError` unless an attribute has several values, the missing one apart."""
    kind = domain.attribute(name)
    if kind.size - kind.missing < 2:
        raise InvalidQueryError(f"{name} must have several values, got one; take another attribute.")


def _distance(counts: Floats) -> Any:
    """Return chi-square over the number of records of tables (.., rows, columns); what is below 0 is none."""
    held = np.maximum(counts, 0.0)
    total = held.sum(axis=(-2, -1), keepdims=True)
    expected = held.sum(axis=-1, keepdims=True) * held.sum(axis=-2, keepdims=True) / total
    with np.errstate(invalid="ignore", divide="ignore"):
        terms = np.where(expected > 0.0, (held - expected) ** 2 / expected, 0.0)
    found = terms.sum(axis=(-2, -1)) / total[..., 0, 0]
    return float(found) if np.ndim(found) == 0 else found
