"""Means and sums of products of attributes as numbers, from linear answers, with bounds and simulated errors.

Proof: docs/theory/queries.md, 1.10.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.display.text import USUAL
from onlineic.domain.attributes import Categorical
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit
from onlineic.errors import InvalidQueryError, TooLargeError, shown
from onlineic.noise.sources import public_generator
from onlineic.queries.algebra import JOINT_CELLS
from onlineic.queries.answers import Answer
from onlineic.queries.expressions import Expression, joint, weights, where
from onlineic.queries.query import Query
from onlineic.questions.linear import (
    FLOATS,
    AnsweringLinear,
    Found,
    Where,
    allowed,
    checked_condition,
    narrowing,
    too_few,
)
from onlineic.questions.means import FINEST, LEAST, Numbers

DRAWS = 2000  # of public noise, behind a usual error
SEED = 54  # of these draws: the same answers have the same usual error
LEFT_OUT = 0.05  # of the draws, that a size of their errors does not cover
# A fit to tables spreads what noise hides over all forms of dependence alike, and so takes from that of two
# numbers, which is of one form, more than its expected errors say. How many times as large they are: found by
# experiment on three real tables, for sums of products and for others
FITTED, FITTED_ALONE = 3.0, 1.5
Scored = str | Mapping[str, Any]


@final
@attrs.frozen(eq=False)
class Scores:
    """An attribute as numbers: its own, or 1 of some labels and 0 of others.

    Attributes:
        name: As it is told.
        attribute: Whose codes these are.
        values: Of every code, (size,); anything where it has none.
        held: Which codes have one and may meet the condition, (size,).
        reach: How far a value may be from those that it stands for, as a midpoint may.
        width: Of the widest bin whose records are shared out between its ends, 0 where there are none.
        wrong: The largest share of a record that rounding can put at the wrong end of a bin.
    """

    name: str
    attribute: str
    values: Floats
    held: Bools
    reach: float = 0.0
    width: float = 0.0
    wrong: float = 0.0

    @classmethod
    def of(
        cls,
        domain: Domain,
        given: Scored,
        condition: Expression | None,
        n_public: bool = True,
        unit: Unit | None = None,
    ) -> "Scores":
        """Return the numbers of an attribute, or of {attribute: label, or list of labels} as 1 and 0.

        Raises:
            InvalidQueryError: If it has no numbers, or only one that the condition allows.
        """
        if isinstance(given, Mapping):
            made = cls._coded(domain, given, condition)
        else:
            kind = domain.attribute(given)
            if isinstance(kind, Categorical):
                if not isinstance(kind.labels[0], bool):
                    raise InvalidQueryError(
                        f"{given} must be a number, got labels; write {{{shown(given)}: label}} for 1 of "
                        "those with a label and 0 of the others."
                    )
                made = cls._coded(domain, {given: True}, condition, given, len(kind.labels))
            else:
                numbers = Numbers.of(domain, given, condition, n_public=n_public, unit=unit)
                numbers.check(condition)
                values = numbers.low + numbers.shares * (numbers.high - numbers.low)
                wrong = numbers.wrong if numbers.width else 0.0
                made = cls(given, given, values, numbers.held, numbers.bias, numbers.width, wrong)
        if not made.half > 0.0:
            raise InvalidQueryError(
                f"{made.name} must have several values that the condition allows, got one; widen it."
            )
        return made

    @classmethod
    def _coded(
        cls,
        domain: Domain,
        given: Mapping[str, Any],
        condition: Expression | None,
        name: str = "",
        codes: int | None = None,
    ) -> "Scores":
        if len(given) != 1:
            raise InvalidQueryError(
                f"a coded attribute must be one {{attribute: label}}, got {shown(dict(given))}; "
                "write one of each."
            )
        (attribute, label), *_ = given.items()
        kind = domain.attribute(attribute)
        listed = list(label) if isinstance(label, (list, tuple)) else [label]
        chosen = [kind.code(attribute, one) for one in listed]
        values = np.zeros(kind.size)
        values[chosen] = 1.0
        held = np.arange(kind.size) < (kind.size - kind.missing if codes is None else codes)
        held[chosen] = True
        held &= allowed(domain, domain.axis(attribute), condition)
        told = name or f"{attribute} = {shown(label, 40)}"
        return cls(told, attribute, values, held)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        kept = self.values[self.held]
        return float(kept.min(initial=math.inf)), float(kept.max(initial=-math.inf))

    @property
    def half(self) -> float:
        """Half the way between the two."""
        return 0.5 * (self.ends[1] - self.ends[0])

    @property
    def middle(self) -> float:
        """The middle between the two."""
        return 0.5 * (self.ends[0] + self.ends[1])

    @cached_property
    def scaled(self) -> Floats:
        """The values from -1 to 1, and 0 where there is none, (size,)."""
        return np.where(self.held, np.clip((self.values - self.middle) / self.half, -1.0, 1.0), 0.0)

    @cached_property
    def is_sign(self) -> bool:
        """Whether every value is one of the two ends, so that its square says nothing."""
        return bool((np.abs(self.scaled[self.held]) == 1.0).all())


@final
class Sums:
    """What is asked for the moments of some attributes, and what they are made of.

    The attributes are scaled to [-1, 1] about the middle of their public ends. Noise that is alike in all
    cells then reaches means, squares and products nearly independently.

    Args:
        domain: Of the table.
        scores: The attributes as numbers.
        condition: Whom they are about; None: everybody.
        n_public: Whether the number of records is.
    """

    def __init__(
        self, domain: Domain, scores: Sequence[Scores], condition: Expression | None, n_public: bool = True
    ) -> None:
        self.scores, self._domain, self._condition = tuple(scores), domain, condition
        gaps = [one for one in scores if not one.held.all()]
        self.everybody = n_public and condition is None and not gaps
        self.queries: list[Expression] = []
        self.places: dict[tuple[int, ...], tuple[int, ...]] = {}  # which answers are about which attributes
        many = len(scores)
        self._rows: list[tuple[int, float, int]] = []  # of a moment, how often it holds an answer
        self._constants = np.zeros(1 + many + many * many)
        if self.everybody:
            self._constants[0] = 1.0
        else:
            self._ask((), {0: 1.0}, None)
        for at in range(many):
            self._signed((at,), scores[at].scaled, [1 + at])
        for one in range(many):
            for other in range(one, many):
                moments = sorted({1 + many + one * many + other, 1 + many + other * many + one})
                self._product(one, other, moments)
        self._matrix = np.zeros((len(self._constants), len(self.queries)))
        for moment, factor, place in self._rows:
            self._matrix[moment, place] += factor

    def _product(self, one: int, other: int, moments: list[int]) -> None:
        first, second = self.scores[one], self.scores[other]
        if first.attribute == second.attribute:
            product = first.scaled * second.scaled
            if one == other and first.is_sign:  # the square is 1 of everybody who counts
                if self.everybody:
                    self._constants[moments] = 1.0
                else:
                    self._rows += [(moment, 1.0, 0) for moment in moments]
                return
        else:
            cells = len(first.scaled) * len(second.scaled)
            if cells > JOINT_CELLS:
                raise TooLargeError(
                    f"{first.name} and {second.name} must have at most {JOINT_CELLS:,} pairs of values for a "
                    f"sum of products, got {cells:,}; cut one into fewer bins."
                )
            product = np.multiply.outer(first.scaled, second.scaled)
        if one == other:
            self._ask((one, one), dict.fromkeys(moments, 1.0), product)
        else:
            self._signed((one, other), product, moments)

    def _signed(self, which: tuple[int, ...], array: Floats, moments: list[int]) -> None:
        """Ask for the sum of an array of either sign: of everybody at once, else apart by sign."""
        if self.everybody:
            self._constants[moments] -= 1.0
            self._ask(which, dict.fromkeys(moments, 2.0), 0.5 * (1.0 + array))
        else:
            self._ask(which, dict.fromkeys(moments, 1.0), np.maximum(array, 0.0))
            self._ask(which, dict.fromkeys(moments, -1.0), np.maximum(-array, 0.0))

    def _ask(self, which: tuple[int, ...], moments: Mapping[int, float], array: Floats | None) -> None:
        place = len(self.queries)
        self._rows += [(moment, factor, place) for moment, factor in moments.items()]
        if len(which) == 2:
            self.places[which] = (*self.places.get(which, ()), place)
        names = list(dict.fromkeys(self.scores[at].attribute for at in which))
        parts = [] if self._condition is None else [self._condition]
        if array is not None:
            if len(names) == 1:
                parts.insert(0, where({names[0]: weights(array)}))
            else:
                parts.insert(0, joint(names, array))
        for one in self.scores:  # of others all must have a value
            if one.attribute not in names and not self._has_all(one):
                parts.append(where({one.attribute: weights(one.held.astype(np.float64))}))
                names.append(one.attribute)
        asked = parts[0] if parts else where()
        for part in parts[1:]:
            asked = asked & part
        self.queries.append(asked)

    def _has_all(self, one: Scores) -> bool:
        """Whether the condition already leaves nobody without a value."""
        axis = self._domain.axis(one.attribute)
        return bool((one.held | ~allowed(self._domain, axis, self._condition)).all())

    def moments(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Return shares (..), sums (.., K) and sums of products (.., K, K) of answers (.., m)."""
        many = len(self.scores)
        made = self._constants + np.asarray(values) @ self._matrix.T
        return (
            made[..., 0],
            made[..., 1 : 1 + many],
            made[..., 1 + many :].reshape(*made.shape[:-1], many, many),
        )

    def bounds(self, bounds: Floats) -> tuple[float, Floats, Floats]:
        """Return bounds of the same, of bounds of the answers."""
        many, made = len(self.scores), np.zeros(len(self._constants))
        reached = np.abs(self._matrix) > 0.0
        with np.errstate(invalid="ignore"):  # of infinite ones and no use of them
            made += np.where(reached, np.abs(self._matrix) * np.asarray(bounds), 0.0).sum(axis=1)
        return float(made[0]), made[1 : 1 + many], made[1 + many :].reshape(many, many)

    @cached_property
    def excess(self) -> Floats:
        """Half of what squares between two ends of bins are too large by, at most, in scaled units, (K,)."""
        return np.array([(one.width / one.half) ** 2 / 8.0 for one in self.scores])

    def spread(self, share: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Return means (.., K) and covariances (.., K, K) in scaled units, of shares and sums."""
        with np.errstate(divide="ignore", invalid="ignore"):
            means = first / share[..., None]
            products = second / share[..., None, None] - means[..., :, None] * means[..., None, :]
        return means, products - np.diag(self.excess)


@final
@attrs.frozen(eq=False)
class Moments:
    """Means and covariances of some attributes, from released answers, in scaled units.

    Attributes:
        scores: The attributes as numbers.
        n: Number of records of the table.
        share, share_bound: Of the records that count.
        means, mean_bounds: (K,)
        covariances, bounds: (K, K)
        off: How far values in bins may put off each covariance, (K, K).
        drawn: Means (draws, K) and covariances (draws, K, K) as they would be with other noise; None if some
            answer's error is unknown.
        found: The answers.
        places: Which answers each pair of attributes rests on.
        few: Whether the records that count are no more than twice their error.
    """

    scores: tuple[Scores, ...]
    n: int
    share: float
    share_bound: float
    means: Floats
    mean_bounds: Floats
    covariances: Floats
    bounds: Floats
    off: Floats
    drawn: tuple[Floats, Floats] | None
    size: float | None
    found: Found
    places: Mapping[tuple[int, ...], tuple[int, ...]]
    few: bool

    @property
    def halves(self) -> Floats:
        """What one scaled unit is of every attribute, (K,)."""
        return np.array([one.half for one in self.scores])

    @property
    def middles(self) -> Floats:
        """Where each attribute is scaled to 0, (K,)."""
        return np.array([one.middle for one in self.scores])

    @property
    def answers(self) -> tuple[Answer, ...]:
        """What all of it was made of."""
        return self.found.answers


def sums_of(
    domain: Domain,
    given: Iterable[Scored],
    condition: Where,
    n_public: bool = True,
    unit: Unit | None = None,
) -> tuple[Sums, Expression | None]:
    """Return what to ask for the moments of some attributes, and the condition as it was read.

    Raises:
        InvalidQueryError: If an attribute has no numbers, is there twice, or nobody can meet the condition.
        TooLargeError: If two of them have too many pairs of values.
    """
    read = None if condition is None else checked_condition(domain, condition)
    narrowed = narrowing(domain, read)
    scores = [Scores.of(domain, one, narrowed, n_public=n_public, unit=unit) for one in given]
    names = [one.name for one in scores]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidQueryError(f"attributes must be different, got {shown(twice)} twice; leave one out.")
    return Sums(domain, scores, narrowed, n_public=n_public), read


def asked_of(
    session: AnsweringLinear, given: Iterable[Scored], condition: Where
) -> tuple[Sums, Expression | None]:
    """Return `sums_of` for a session."""
    return sums_of(session.domain, given, condition, not session.n_bound, session.rounded_in)


@final
@attrs.frozen
class Released:
    """What a session has released, by its public record.

    Attributes:
        tables: Sets of attributes, by their places, that stand together in one table.
        numbers: Keys of the queries that were measured by themselves.
        known: Whether there is a record.
    """

    tables: frozenset[frozenset[int]] = frozenset()
    numbers: frozenset[Any] = frozenset()
    known: bool = False

    @classmethod
    def by(cls, session: AnsweringLinear) -> "Released":
        """Return what a session has released until now."""
        record = getattr(session, "transcript", None)
        if record is None:
            return cls()
        tables, numbers = set[frozenset[int]](), set[Any]()
        for one in record:
            for each in getattr(one, "measurements", None) or (getattr(one, "measurement", None),):
                if each is not None and isinstance(each.target, Query):
                    numbers.add(each.target.key)
                elif each is not None:
                    tables.add(frozenset(each.target.axes))
        return cls(frozenset(tables), frozenset(numbers), known=True)

    def measures(self, answer: Answer) -> bool:
        """Return whether an answer is a number that was measured by itself, or a constant."""
        query = answer.query
        if query is None or not self.known:
            return answer.status == "hard"
        return query.constant is not None or query.key in self.numbers


def moments_of(sums: Sums, n: int, found: Found, name: str, released: Released, least: int = 2) -> Moments:
    """Return the moments that answers make.

    Args:
        sums: What was asked.
        n: Number of records.
        found: What was answered.
        released: What the session has released.
        name: Of what is worked out, for messages.
        least: Records that it takes.

    Raises:
        TooFewRecordsError: If fewer count, or no more than their bound and no error is expected of them. The
            answers are paid, and stand in the exception.
    """
    values, bounds = np.asarray(found.values, np.float64), np.asarray(found.bounds, np.float64)
    errors = np.asarray(found.errors, np.float64)
    shares, first, second = sums.moments(values)
    share, (share_bound, first_bounds, second_bounds) = float(shares), sums.bounds(bounds)
    few = not sums.everybody and not share > 2.0 * share_bound
    known = len(errors) == len(values) and bool(np.isfinite(errors).all())
    if n * share < max(least, LEAST) or (few and not known):
        raise too_few(n, name, max(share, 0.0), share_bound, found.answers)
    means, covariances = sums.spread(np.asarray(share), first, second)
    mean_bounds, ratios = _ratio_bounds(share, share_bound, (means, first_bounds)), second / share
    of_products = _ratio_bounds(share, share_bound, (ratios, second_bounds))
    with np.errstate(invalid="ignore"):  # nothing times infinity, which is infinite here
        reach = np.multiply.outer(np.abs(means), mean_bounds)
        bound = of_products + reach + reach.T + np.multiply.outer(mean_bounds, mean_bounds) + FLOATS
    bound = np.where(np.isnan(bound), math.inf, bound)
    drawn = size = None
    if known:
        noise = public_generator(SEED).standard_normal((DRAWS, len(values))) * errors
        drawn = _drawn(sums, values + noise * _factors(sums, found, released), share)
        plain = _drawn(sums, values + noise, share)
        size = None if plain is None else size_of(plain[1][:, 1:, 1:] - covariances[1:, 1:])
    return Moments(
        scores=sums.scores,
        n=n,
        share=share,
        share_bound=share_bound,
        means=means,
        mean_bounds=mean_bounds,
        covariances=covariances,
        bounds=np.full_like(bound, math.inf) if few else bound,
        off=_off(sums, covariances, bound),
        drawn=drawn,
        size=size,
        found=found,
        places=sums.places,
        few=few,
    )


def _drawn(sums: Sums, values: Floats, share: float) -> tuple[Floats, Floats] | None:
    """Return means and covariances of draws of the answers (draws, m)."""
    parts = sums.moments(values)
    held = parts[0] > 0.5 * share  # else a draw divides by next to nothing
    return sums.spread(*(part[held] for part in parts)) if held.any() else None


def _factors(sums: Sums, found: Found, released: Released) -> Floats:
    """Return how many times its expected error each answer errs by, (m,)."""
    products = {place for pair, places in sums.places.items() if pair[0] != pair[1] for place in places}
    return np.array(
        [
            1.0 if released.measures(answer) else FITTED if place in products else FITTED_ALONE
            for place, answer in enumerate(found.answers)
        ]
    )


def _ratio_bounds(share: float, off: float, made: tuple[Floats, Floats]) -> Floats:
    """Return how far ratios to a share may be off: of a true part and a true share, each within its bound."""
    ratios, bounds = made
    if not share > off:
        return np.full_like(ratios, math.inf)
    return (bounds + np.abs(ratios) * off) / (share - off)


def _off(sums: Sums, covariances: Floats, bounds: Floats) -> Floats:
    """Return how far values in bins may put off each covariance, in scaled units, (K, K).

    A value that is moved by at most r moves a covariance by at most r sd' + r' sd + r r' (theory 1.10).
    """
    reaches = np.array([(one.reach + one.width * (one.wrong + FINEST)) / one.half for one in sums.scores])
    if not reaches.any():
        return np.zeros_like(covariances)
    widths = np.array([one.width / one.half for one in sums.scores])
    shares = np.array([min(1.0, one.wrong) for one in sums.scores])
    variances = np.maximum(np.diag(covariances) + np.minimum(np.diag(bounds), 1.0), 0.0) + sums.excess
    deviations = np.sqrt(np.minimum(variances, 1.0))
    turned = np.multiply.outer(reaches, deviations)
    off = turned + turned.T + np.multiply.outer(reaches, reaches)
    off = off + np.multiply.outer(widths, widths) * np.maximum.outer(shares, shares)
    return np.asarray(off + np.diag(sums.excess))


def usual(value: Any, drawn: Floats | None) -> Any:
    """Return the error that draws of public noise show, None or NaN where it is unknown.

    The root of their mean square, or a 1.96th of what 95 in 100 stay within, if that is more: so many are
    within what "usually within" tells, whatever their law.
    """
    if drawn is None:
        return None if np.ndim(value) == 0 else np.full(np.shape(value), math.nan)
    errors = np.abs(drawn - value)
    most = np.quantile(errors, 1.0 - LEFT_OUT, axis=0)
    kept = np.minimum(errors, 2.0 * most)  # a draw that divides by next to nothing says nothing of the others
    error = np.maximum(np.sqrt(np.mean(kept**2, axis=0)), most / USUAL)
    return float(error) if np.ndim(value) == 0 else error


def size_of(errors: Floats) -> float:
    """Return the spectral norm that all but a few draws of a matrix of errors (draws, K, K) stay below."""
    norms = np.abs(np.linalg.eigvalsh(0.5 * (errors + errors.swapaxes(-1, -2)))).max(axis=-1)
    return float(np.quantile(norms, 1.0 - LEFT_OUT))
