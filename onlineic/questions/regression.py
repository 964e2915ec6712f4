"""Least squares of one number on others, from sums and sums of products that were released.

Proof: docs/theory/queries.md, 1.10.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NoReturn, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.display.frames import Framed
from onlineic.display.html import card, facts, table
from onlineic.display.text import (
    FEW,
    around,
    of_bins,
    records,
    records_bound,
    shortened,
    sure,
    upward,
    usually,
    within,
)
from onlineic.domain.attributes import Binned, Label
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import (
    IllConditionedError,
    InvalidParameterError,
    InvalidQueryError,
    OnlineICError,
    TooFewRecordsError,
    TooLargeError,
    checked_list,
    checked_real,
    shown,
)
from onlineic.queries.answers import LONGEST_QUERY, Answer, MadeOfAnswers, made_of
from onlineic.queries.expressions import Expression, span, where
from onlineic.questions.association import (
    BASES,
    OUTSIDE,
    SIMULATED,
    WORST,
    Basis,
    basis_of,
)
from onlineic.questions.linear import (
    FLOATS,
    AnsweringLinear,
    Found,
    Where,
    asked_together,
    check_answering,
    checked_condition,
    counted,
)
from onlineic.questions.moments import Moments, Released, Scored, Sums, asked_of, moments_of, sums_of, usual
from onlineic.slips import public

Ridge = float | Literal["adaptive"]
CLEAR = 2.0  # sizes of errors that the least eigenvalue exceeds, so that no slope is off by more than itself
MOST_GROUPS = 100
ROUNDED = 1e-9  # least eigenvalue, of scaled attributes, that floats tell from nothing


@public
@final
@attrs.frozen(eq=False)
class LeastSquares(MadeOfAnswers, Framed):
    """A number as a linear function of others, that with the least mean square error.

    Attributes:
        name: What was asked.
        regressors: What the slopes are of, (p,).
        slopes: How much one unit of each adds to the outcome, the others held, (p,).
        error_bounds: Half-widths around the slopes that hold all exact ones, with this ridge, with
            probability `confidence`; inf where none can be proved.
        expected_errors: As `expected_error` of `Statistic`; NaN where it is unknown.
        intercept: Outcome where all regressors are 0.
        intercept_bound: As of the slopes.
        intercept_expected: As of the slopes.
        r_squared: Share of the outcome's variance that the slopes explain, from 0 to 1.
        r_squared_expected: As of the slopes; nothing bounds it.
        residual: Standard deviation of what is not explained.
        ridge: What was added to the variance of every regressor, scaled to [-1, 1]; 0: nothing. Slopes with a
            ridge are drawn to 0, and all errors are those of slopes with that ridge.
        bias: How far values in bins may put off each slope besides, (p,).
        bases: What the sums of products of each regressor rest on, as of `Statistic`: the weakest of them.
        confidence: 1 - beta, as of `Derived`.
        count: Records that it is about: those that have all values and meet the condition.
        count_bound: Half-width around that.
        answers: What it was made of.
        outside: Whether what was released explained more than all, and was taken to the end of its range.
        few_records: Whether it is over no more records than twice their error: then nothing bounds it.
    """

    name: str
    regressors: tuple[str, ...]
    slopes: Floats
    error_bounds: Floats
    expected_errors: Floats
    intercept: float
    intercept_bound: float
    intercept_expected: float | None
    r_squared: float
    r_squared_expected: float | None
    residual: float
    ridge: float
    bias: Floats
    bases: tuple[Basis, ...]
    confidence: float
    count: float
    count_bound: float
    answers: tuple[Answer, ...]
    outside: bool = False
    few_records: bool = False

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader has to know besides, in words."""
        told = [
            f"the slope of {name} {BASES[basis]}"
            for name, basis in zip(self.regressors, self.bases, strict=True)
            if BASES[basis]
        ]
        if self.ridge:
            told.append(f"a ridge of {upward(self.ridge)} draws the slopes to 0: see ridge")
        return (*told, *[f"R squared {OUTSIDE}"] * self.outside, *[FEW] * self.few_records)

    def predict(self, **values: float) -> float:
        """Return the outcome that the slopes give to a record, without an error of its own.

        Raises:
            InvalidParameterError: If a regressor has no value, or there is another.
        """
        if set(values) != set(self.regressors):
            raise InvalidParameterError(
                f"values must be those of {', '.join(self.regressors)}, got {shown(sorted(values))}; name "
                "each."
            )
        parts = (
            float(slope) * values[name] for name, slope in zip(self.regressors, self.slopes, strict=True)
        )
        return self.intercept + sum(parts)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns: the intercept and each regressor with slope, bound, usual error, bias, basis."""
        return {
            "term": ["intercept", *self.regressors],
            "value": [self.intercept, *self.slopes.tolist()],
            "error_bound": [self.intercept_bound, *self.error_bounds.tolist()],
            "expected_error": [
                math.nan if self.intercept_expected is None else self.intercept_expected,
                *self.expected_errors.tolist(),
            ],
            "bias": [math.nan if self.bias.any() else 0.0, *self.bias.tolist()],
            "basis": ["", *self.bases],
        }

    def __bool__(self) -> NoReturn:
        raise TypeError("a regression has no truth value: compare its slopes instead.")

    def _rows(self) -> Iterator[tuple[str, float, float, float | None]]:
        yield "intercept", self.intercept, self.intercept_bound, self.intercept_expected
        rows = zip(self.regressors, self.slopes, self.error_bounds, self.expected_errors, strict=True)
        for name, slope, bound, error in rows:
            yield name, float(slope), float(bound), None if math.isnan(error) else float(error)

    def _explained(self) -> str:
        usual_said = usually(self.r_squared_expected, 1.0)
        return ", ".join(filter(None, (f"R squared {self.r_squared:.4g}", usual_said)))

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        lines = [
            f"{self.name} ({sure(self.confidence)}, {self.count:.1f} {self.of_what}, "
            f"{counted(self.answers)}{stamp})"
        ]
        for name, value, bound, error in self._rows():
            said = around(value, bound, expected=error)
            lines.append(f"  {name}: {said}{f' {SIMULATED}' * bool(error)}")
        lines.append(f"  {self._explained()}, residual {self.residual:.4g}")
        if self.bias.any():
            lines.append(f"  {' '.join(of_bins(float(self.bias.max())))}")
        return "\n".join([*lines, *(f"  {one}" for one in self.remarks)])

    def _repr_html_(self) -> str:
        rows = []
        for name, value, bound, error in self._rows():
            text, reach = within(value, bound, separated=True)
            rows.append(
                [name, text, usually(error, bound), f"± {reach}" if math.isfinite(bound) else "no bound"]
            )
        said = [
            ("explained", f"{self._explained()}, residual {self.residual:.4g}"),
            ("bounds", f"hold all at once, {sure(self.confidence)}"),
            ("usual errors", SIMULATED),
            *(("note", one) for one in self.remarks),
            ("about", f"{records(self.count)} ± {records_bound(self.count_bound)} {self.of_what}"),
        ]
        if self.bias.any():
            said.append(of_bins(float(self.bias.max())))
        head = ["", "value", "error", "bound"]
        title = shortened(self.name, LONGEST_QUERY)
        return card(title, table(head, rows), facts(said), made_of(self.answers), private=self.private)


@public
@final
@attrs.frozen(eq=False)
class LeastSquaresByGroup(Framed):
    """Least squares in each group of records by the label of an attribute.

    Attributes:
        name: What was asked.
        by: The attribute.
        labels: Of the groups.
        groups: Of every group its regression, or the error that says why there is none.
    """

    name: str
    by: str
    labels: tuple[Label, ...]
    groups: tuple[LeastSquares | TooFewRecordsError | IllConditionedError, ...]

    @property
    def private(self) -> bool:
        """False: simulated noise was used for the answers, the numbers are NOT PRIVATE."""
        return all(one.private for one in self.groups if isinstance(one, LeastSquares))

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[tuple[Label, LeastSquares | OnlineICError]]:
        """Go through (label, regression or error)."""
        yield from zip(self.labels, self.groups, strict=True)

    def __getitem__(self, label: Label) -> LeastSquares:
        """Return the regression of a group.

        Raises:
            TooFewRecordsError: If its records are too few.
            IllConditionedError: If its sums leave the slopes open.
            InvalidQueryError: If there is no such group.
        """
        if label not in self.labels:
            raise InvalidQueryError(f"{self.by} must be one of the groups, got {shown(label)}; see labels.")
        found = self.groups[self.labels.index(label)]
        if isinstance(found, LeastSquares):
            return found
        raise found

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of all groups, with the label in a column of the attribute's name."""
        columns: dict[str, list[Any]] = {}
        for label, one in self:
            if isinstance(one, LeastSquares):
                held = one.to_dict()
                held = {self.by: [label] * len(held["term"]), **held}
                for name, column in held.items():
                    columns.setdefault(name, []).extend(column)
        return columns

    def __repr__(self) -> str:
        parts = [self.name]
        for label, one in self:
            said = repr(one) if isinstance(one, LeastSquares) else f"none: {one}"
            parts.append(f"{self.by} = {shown(label, 40)}: {said}")
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        return "".join(
            one._repr_html_()
            if isinstance(one, LeastSquares)
            else card(f"{self.by} = {shown(label, 40)}", facts([("none", str(one))]))
            for label, one in self
        )


def least_squares(
    session: AnsweringLinear,
    outcome: Scored,
    on: Scored | Iterable[Scored],
    where: Where = None,
    *,
    ridge: Ridge = "adaptive",
) -> LeastSquares:
    """Return the least squares of a number on one or several others, with an intercept.

    Only sums and sums of products of two attributes are asked. With A the covariances of the regressors, b
    those with the outcome, and what may be wrong with them bounded by E and f cell by cell, the slopes
    x = A^-1 b are off by at most (I - |A^-1| E)^-1 |A^-1| (f + E |x|), if the powers of |A^-1| E vanish.

    Wang, Y.-X. (2018), Revisiting differentially private linear regression. It spends a part of the budget on
    the least eigenvalue; here the released matrix tells it, and its error is simulated.

    Args:
        ridge: "adaptive": as much as brings the least eigenvalue of A to twice the size of its error, nothing
            if that is more already (AdaSSP). A number: that, and an error where it is too little.

    Raises:
        IllConditionedError: If a regressor hardly varies, or the sums leave the slopes open at this ridge,
            as where regressors are collinear.
        TooFewRecordsError: If fewer records count than there are slopes.
        InvalidQueryError: If an attribute has no numbers or is there twice, or nobody can meet the condition.
        InvalidParameterError: If ridge is below 0.
        TooLargeError: If two attributes have more than 2^22 pairs of values.
    """
    check_answering(session)
    ridge = _checked_ridge(ridge)
    sums, read = asked_of(session, _attributes(outcome, on), where)
    name = _named(sums, read)
    return _worked_out(session, sums, asked_together(session, sums.queries), name, ridge)


def least_squares_by(
    session: AnsweringLinear,
    outcome: Scored,
    on: Scored | Iterable[Scored],
    by: str,
    where: Where = None,
    *,
    ridge: Ridge = "adaptive",
) -> LeastSquaresByGroup:
    """Return least squares in each group by the label of an attribute; all are asked at once.

    Raises:
        InvalidQueryError: As of `least_squares`, or if the attribute is one of those.
        TooLargeError: If there are more groups.
    """
    check_answering(session)
    ridge = _checked_ridge(ridge)
    given = _attributes(outcome, on)
    labels, conditions = _groups(session.domain, by)
    if any(by == (one if isinstance(one, str) else next(iter(one), None)) for one in given):
        raise InvalidQueryError(f"by must be another attribute than those of the slopes, got {shown(by)}.")
    read = None if where is None else checked_condition(session.domain, where)
    parts = [
        asked_of(session, given, condition if read is None else read & condition)[0]
        for condition in conditions
    ]
    found = asked_together(session, [query for sums in parts for query in sums.queries])
    groups: list[LeastSquares | TooFewRecordsError | IllConditionedError] = []
    start = 0
    for label, sums in zip(labels, parts, strict=True):
        stop = start + len(sums.queries)
        held = attrs.evolve(
            found,
            answers=found.answers[start:stop],
            values=found.values[start:stop],
            bounds=found.bounds[start:stop],
            errors=found.errors[start:stop],
        )
        start = stop
        try:
            name = f"{_named(sums, read)}, {by} = {shown(label, 40)}"
            groups.append(_worked_out(session, sums, held, name, ridge))
        except (TooFewRecordsError, IllConditionedError) as error:
            error.__traceback__ = None
            groups.append(error)
    return LeastSquaresByGroup(f"{_named(parts[0], read)} by {by}", by, labels, tuple(groups))


@public
def sums_of_products(
    domain: Domain,
    attributes: Iterable[Scored],
    where: Where = None,
    *,
    by: str | None = None,
    n_public: bool = True,
) -> list[Expression]:
    """Return the queries behind least squares, covariances and correlations of some attributes: to announce.

    A session that is told so by `questions=` measures each as a number of its own, so that noise alone is in
    the slopes, and its law is known. Else a fit to tables may tell them.

    Args:
        domain: Of the table.
        attributes: The outcome and the regressors, in any order, each as of `least_squares`.
        where: The condition that will be asked.
        by: The attribute of groups that will be asked.
        n_public: Whether the number of records is; False for a table of neighbours "add-remove".

    Raises:
        InvalidQueryError: As of `least_squares`.

    Examples:
        >>> domain = ic.Domain.of(age=range(90), pay=ic.number(0, 100_000), sex=["F", "M"])
        >>> len(sums_of_products(domain, ["pay", "age", {"sex": "M"}]))
        8
    """
    check_domain(domain)
    given = checked_list("attributes", attributes, remedy="write ['pay', 'age']")
    read = None if where is None else checked_condition(domain, where)
    groups = [None] if by is None else _groups(domain, by)[1]
    found: list[Expression] = []
    for group in groups:
        both = group if read is None else read if group is None else read & group
        found += sums_of(domain, given, both, n_public)[0].queries
    return list(dict.fromkeys(found))


def _checked_ridge(ridge: object) -> Ridge:
    if isinstance(ridge, str) and ridge == "adaptive":
        return "adaptive"
    return checked_real("ridge", ridge, at_least=0.0, remedy="write 'adaptive', or 0 for none")


def _attributes(outcome: Scored, on: Scored | Iterable[Scored]) -> list[Scored]:
    listed = [on] if isinstance(on, (str, Mapping)) else checked_list("on", on, remedy="write ['age']")
    if not listed:
        raise InvalidQueryError("on must name one attribute or more, got none; write on=['age'].")
    return [outcome, *listed]


def _named(sums: Sums, read: Expression | None) -> str:
    outcome, *others = (one.name for one in sums.scores)
    said = f"{outcome} on {', '.join(others)}"
    return f"least_squares({said})" if read is None else f"least_squares({said}, {shown(read, 100)})"


def _groups(domain: Domain, by: str) -> tuple[tuple[Label, ...], list[Expression]]:
    """Return the labels of groups, the missing one apart, and who is in each."""
    kind = domain.attribute(by)
    if isinstance(kind, Binned):
        pairs = list(zip(kind.edges, kind.edges[1:], strict=False))
        labels: list[Label] = [kind.bin_label(kind.cells * at) for at in range(len(pairs))]
        conditions = [where({by: span(*pair)}) for pair in pairs]
    else:
        labels = [kind.label(code) for code in range(min(kind.size - kind.missing, MOST_GROUPS + 1))]
        conditions = [where({by: label}) for label in labels]
    if len(labels) > MOST_GROUPS:
        raise TooLargeError(
            f"{by} must have at most {MOST_GROUPS} groups, got {kind.size - kind.missing:,}; take another."
        )
    return tuple(labels), conditions


def _worked_out(session: AnsweringLinear, sums: Sums, found: Found, name: str, ridge: Ridge) -> LeastSquares:
    many = len(sums.scores) - 1
    released = Released.by(session)
    held = moments_of(sums, session.n, found, name, released, least=many + 2)
    outer, inner = held.covariances[1:, 1:], held.covariances[1:, 0]
    added = _ridge(name, held, ridge)
    matrix = outer + added * np.eye(many)
    inverse = np.linalg.inv(matrix).astype(np.float64)
    slopes = inverse @ inner
    bounds = _slope_bounds(inverse, slopes, held.bounds)
    bias = np.zeros(many)
    if held.off.any():
        bias = _slope_bounds(inverse, slopes, held.off)
        if np.isfinite(bounds).all():
            bias = np.maximum(_slope_bounds(inverse, slopes, held.bounds + held.off) - bounds, 0.0)
    halves, middles = held.halves, held.middles
    units = halves[0] / halves[1:]
    variance = float(held.covariances[0, 0])
    explained = float(_explained(slopes, outer, inner, variance)) if variance > 0.0 else 0.0
    intercepts, errors = _intercepts(held, slopes, bounds)
    drawn = _drawn(held, added)
    expected = usual(slopes, None if drawn is None else drawn[0])
    intercept = halves[0] * intercepts + middles[0] - float((units * slopes) @ middles[1:])
    of_intercept = None
    if drawn is not None:
        centred = drawn[1] * halves[0] + middles[0] - (drawn[0] * units) @ middles[1:]
        of_intercept = usual(intercept, centred)
    middle_bound = float((units * bounds) @ np.abs(middles[1:])) if np.isfinite(bounds).all() else math.inf
    regressors = tuple(one.name for one in sums.scores[1:])
    return LeastSquares(
        name=name,
        regressors=regressors,
        slopes=slopes * units,
        error_bounds=bounds * units,
        expected_errors=expected * units,
        intercept=float(intercept),
        intercept_bound=float(halves[0] * errors + middle_bound),
        intercept_expected=of_intercept,
        r_squared=min(max(explained, 0.0), 1.0),
        r_squared_expected=None if drawn is None else usual(min(max(explained, 0.0), 1.0), drawn[2]),
        residual=float(halves[0] * math.sqrt(max(0.0, variance * (1.0 - explained)))),
        ridge=added,
        bias=bias * units,
        bases=_bases(session, sums, held, released),
        confidence=found.confidence,
        count=held.n * held.share,
        count_bound=held.n * held.share_bound,
        answers=found.answers,
        outside=not (variance > 0.0 and 0.0 <= explained <= 1.0),
        few_records=held.few,
    )


def _bases(session: AnsweringLinear, sums: Sums, held: Moments, released: Released) -> tuple[Basis, ...]:
    """Return of each regressor on what its sums of products rest, with the outcome and with the others."""
    names = [one.attribute for one in sums.scores]
    pairs = {
        pair: basis_of(
            session.domain,
            (names[pair[0]], names[pair[1]]),
            [held.answers[place] for place in places],
            released,
        )
        for pair, places in sums.places.items()
        if pair[0] != pair[1]
    }
    return tuple(
        min((basis for pair, basis in pairs.items() if at in pair), key=WORST.index)
        for at in range(1, len(names))
    )


def _ridge(name: str, held: Moments, ridge: Ridge) -> float:
    """Return what is added to the variances, or refuse it if slopes stay open (theory 1.10)."""
    outer = held.covariances[1:, 1:]
    least = float(np.linalg.eigvalsh(outer)[0])
    size = float(np.linalg.norm(held.bounds[1:, 1:])) if held.size is None else held.size
    needed = max(CLEAR * size, ROUNDED) if math.isfinite(size) else ROUNDED
    if least >= needed:
        return 0.0 if ridge == "adaptive" else float(ridge)
    if ridge == "adaptive":
        return needed - least
    if least + ridge >= needed:
        return float(ridge)
    error = IllConditionedError(
        f"{name} must have regressors that are told apart, got sums whose least eigenvalue is {least:.2g} "
        f"with an error of {size:.2g}: some are collinear, or noise is as large as they are; leave one out, "
        f"or write ridge='adaptive' for {upward(needed - least)}."
    )
    error.answers = held.answers
    raise error


def _slope_bounds(inverse: Floats, slopes: Floats, bounds: Floats) -> Floats:
    """Return by how much slopes may be off, if covariances may be by these bounds: inf where that is open.

    With (A + E) x' = b + f: x' - x = A^-1 (f - E x') ... read from the released side, as
    |x - x'| <= (I - |A'^-1| E)^-1 |A'^-1| (f + E |x'|) for the released A', x' (theory 1.10).
    """
    many = len(slopes)
    if not np.isfinite(bounds).all():
        return np.full(many, math.inf)
    large = np.abs(inverse)
    grown = large @ bounds[1:, 1:]
    if not np.abs(np.linalg.eigvals(grown)).max() < 1.0 - 1e-9:
        return np.full(many, math.inf)
    first = large @ (bounds[1:, 0] + bounds[1:, 1:] @ np.abs(slopes))
    found = np.linalg.solve(np.eye(many) - grown, first)
    return np.asarray(np.maximum(found, 0.0) * (1.0 + 1e-9) + FLOATS)


def _explained(slopes: Floats, outer: Floats, inner: Floats, variance: Any) -> Any:
    """Return the share of the variance that slopes explain: 1 less that of what they leave."""
    through = np.einsum("...i,...ij,...j->...", slopes, outer, slopes)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (2.0 * np.einsum("...i,...i->...", slopes, inner) - through) / variance


def _intercepts(held: Moments, slopes: Floats, bounds: Floats) -> tuple[float, float]:
    """Return the intercept of scaled attributes, and its bound."""
    value = float(held.means[0] - slopes @ held.means[1:])
    if not np.isfinite(bounds).all():
        return value, math.inf
    off = held.mean_bounds[0] + np.abs(slopes) @ held.mean_bounds[1:]
    return value, float(off + bounds @ (np.abs(held.means[1:]) + held.mean_bounds[1:]))


def _drawn(held: Moments, ridge: float) -> tuple[Floats, Floats, Floats] | None:
    """Return slopes (draws, p), intercepts (draws,) and explained shares (draws,) with other noise."""
    if held.drawn is None:
        return None
    means, covariances = held.drawn
    outer, inner = covariances[:, 1:, 1:], covariances[:, 1:, 0]
    matrices = outer + ridge * np.eye(outer.shape[-1])
    try:
        slopes = np.linalg.solve(matrices, inner[..., None])[..., 0].astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    intercepts = means[:, 0] - (slopes * means[:, 1:]).sum(axis=1)
    shares = np.clip(np.nan_to_num(_explained(slopes, outer, inner, covariances[:, 0, 0])), 0.0, 1.0)
    return slopes, intercepts, shares
