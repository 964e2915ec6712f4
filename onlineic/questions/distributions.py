"""Quantiles and distribution functions of ordered attributes, from the shares below cuts between labels."""

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, NoReturn, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.ask.bind import as_condition
from onlineic.display.figures import COLOURS, axes_for, bare, draw_labels, plain, stamped
from onlineic.display.html import MOST_BARS, bars, card, facts
from onlineic.display.text import (
    probability,
    records,
    records_bound,
    shortened,
    sure,
    upward,
    usually,
    usually_and_provably,
)
from onlineic.domain.attributes import Attribute, Binned, IntegerRange, Label
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    TooFewRecordsError,
    TooLargeError,
    checked_list,
    checked_real,
    is_number_of,
    shown,
)
from onlineic.queries.answers import LONGEST_QUERY, Answer, MadeOfAnswers, made_of
from onlineic.queries.cuts import is_long
from onlineic.queries.expressions import Expression, below, between, where
from onlineic.questions.formulas import Leaf, Number
from onlineic.questions.groups import Groups, of_made
from onlineic.questions.keys import GroupKeys
from onlineic.questions.linear import (
    FLOATS,
    LONGEST_TITLE,
    AnsweringLinear,
    Found,
    Where,
    allowed,
    allowed_ends,
    asked_together,
    bounded,
    check_answering,
    counted,
    event_of,
    known_error,
    narrowing,
    nobody,
    too_few,
)
from onlineic.questions.means import Derived, Made
from onlineic.slips import public

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LABELS = 4096  # answers of one distribution function
SHARE = "write 0.9 for the value that nine in ten do not exceed"


@public
@final
@attrs.frozen
class Quantile(MadeOfAnswers):
    """A quantile of an ordered attribute, by binary search.

    Attributes:
        value: Between neighbouring labels, the one where the released shares pass q; of a number the place
            between the edges of its bin at which they do, if the records of the bin are spread evenly.
        rank_error: The exact share below `value` is at most q + rank_error, that up to and with it at least q
            - rank_error, in fractions of the records that count, with probability `confidence`.
        low, high: The least and the largest label that the exact quantile can be, in the same event; of a
            number the edges between which it lies.
        confidence: As of `Derived`.
        answers: The share that counts, unless that is everybody, and the steps of the search.
        expected_rank_error: Root-mean-square error that is expected of the shares beside `value`, as of
            `Derived`.
        expected_error: Of a number that of `value`, as far as the records are spread evenly there; else None.
    """

    name: str
    value: Label
    rank_error: float
    low: Label
    high: Label
    confidence: float
    answers: tuple[Answer, ...]
    expected_rank_error: float | None = None
    expected_error: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what it says as plain numbers, labels and texts."""
        fields = attrs.asdict(self, recurse=False, filter=lambda field, _: field.name != "answers")
        return {**fields, "private": self.private}

    @property
    def _number(self) -> int | float:
        if not is_number_of(self.value, Real):
            raise InvalidParameterError(
                f"a quantile must be of numbers to be read as one, got {shown(self.value)}; use its value."
            )
        return self.value  # type: ignore[return-value]

    def __float__(self) -> float:
        return float(self._number)

    def __int__(self) -> int:
        return int(self._number)

    def __format__(self, form: str) -> str:
        return format(self._number, form) if form else repr(self)

    def __bool__(self) -> NoReturn:
        raise TypeError("a quantile has no truth value: compare its value instead.")

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        usual = usually(self.expected_rank_error, self.rank_error)
        return (
            f"{self.name} = {self.value!r}, in {self.low!r} .. {self.high!r} "
            f"({sure(self.confidence)}), "
            f"rank ± {upward(self.rank_error)}{f', {usual}' if usual else ''}, {counted(self.answers)}{stamp}"
        )

    def _repr_html_(self) -> str:
        between = f"{shortened(self.low)} to {shortened(self.high)}"
        said = [
            ("between", f"{between}, with probability {probability(self.confidence)}"),
            ("rank", f"± {upward(self.rank_error)} of the {self.of_what} that count"),
            (
                "error of the rank",
                usually_and_provably(self.expected_rank_error, self.rank_error, self.confidence),
            ),
        ]
        title = f"{shortened(self.name, LONGEST_QUERY)} = {shortened(self.value)}"
        return card(title, facts(said), made_of(self.answers), private=self.private)


def quantile(
    session: AnsweringLinear,
    attribute: str,
    q: float | Iterable[float],
    where: Where = None,
    *,
    narrow: bool = False,
) -> Quantile | list[Quantile]:
    """Return where a share q of the records that meet a condition and have a value lies at or below.

    It is searched among the cuts between labels: at most ceil(log2(labels)) answers, and one for the
    condition. The search ends between two cuts, of which the lower one was released below q f_1 and the upper
    one at or above it, or is an end: so the exact shares there miss q by no more than the errors of that cut
    and q times that of f_1. A label is excluded only by a cut whose release says so with both errors added.
    The bounds hold at once for whichever cuts are asked. Arguments and errors: `Answering.quantile`.

    Args:
        narrow: Whether to ask more cuts, on both sides of the label, until the range ends beside cuts that
            are certainly off: at most 4 log2(labels) answers more. Where the session has no bounds that hold
            for all its answers at once, none are asked.
    """
    check_answering(session)
    several = isinstance(q, Iterable) and not isinstance(q, str)
    given = checked_list("q", q, remedy="write [0.25, 0.5, 0.75]") if several else [q]
    shares = [checked_real("q", one, above=0.0, below=1.0, remedy=SHARE) for one in given]
    if type(narrow) is not bool:
        raise InvalidParameterError(
            f"narrow must be True or False, got narrow={shown(narrow)}; leave it out."
        )
    where = as_condition(where, session.domain)
    cuts = _Cuts.of(session.domain, attribute, where, n_public=not session.n_bound)
    found = [_searched(session, cuts, one, where, narrow) for one in shares]
    return found if several else found[0]


def _searched(
    session: AnsweringLinear, cuts: "_Cuts", q: float, where: Where, narrow: bool, jointly: bool = False
) -> Quantile:
    """Return one quantile; `jointly` by bounds that hold for all answers of the session at once."""
    search = _Search.of(session, cuts, q)
    first, last = cuts.first, cuts.last  # bins between which the quantile lies, half-open
    while last - first > 1:
        middle = (first + last) // 2
        if search.share(middle) < q * search.whole:
            first = middle
        else:
            last = middle
    proved = search.proved(jointly)
    name = f"quantile({cuts.attribute}{'' if where is None else f', {shown(where, 100)}'}, {q:g})"
    if not search.whole > 2.0 * proved.whole_bound:
        raise too_few(session.n, name, search.whole, proved.whole_bound, proved.found.answers)
    if proved.missed(first, last) >= proved.least_whole and not cuts.everybody:
        raise too_few(session.n, name, search.whole, proved.missed(first, last), proved.found.answers)
    if narrow and search.holds_at_once():
        search.pin_down(first, -1)
        search.pin_down(last, 1)
        proved = search.proved()
    expected = search.expected(first, last)
    apart = search.apart(first, last) * expected
    return Quantile(
        name=name,
        value=cuts.inside(first, search.passed(first, last)),
        rank_error=min(1.0, proved.missed(first, last) / proved.least_whole),
        low=cuts.least(proved.low),
        high=cuts.largest(proved.high - 1),
        confidence=proved.found.confidence,
        answers=proved.found.answers,
        expected_rank_error=None if math.isnan(expected) else expected,
        expected_error=apart if math.isfinite(apart) else None,
    )


def quantile_number(
    session: AnsweringLinear, name: str, attribute: str, q: float, where: Where = None
) -> Derived:
    """Return a quantile of numbers as a number with a half-width, which arithmetic can go on with."""
    found = quantile(session, attribute, q, where)
    made = _as_made(found)  # type: ignore[arg-type]
    value, bound = np.array([made.value]), np.array([made.bound])
    expected, few = np.array([made.expected]), np.zeros(1, np.bool_)
    leaf = Leaf.stated(value, bound, found.confidence, expected, 0.0, few, found.answers)  # type: ignore[union-attr]
    return Derived(
        name=name,
        value=made.value,
        error_bound=made.bound,
        confidence=found.confidence,  # type: ignore[union-attr]
        bias=0.0,
        count=None,
        count_bound=None,
        answers=found.answers,  # type: ignore[union-attr]
        expected_error=None if math.isnan(made.expected) else made.expected,
        number=Number.of(leaf),
    )


def _as_made(found: Quantile) -> Made:
    """Return a quantile as a number with a half-width."""
    value, low, high = (float(one) for one in (found.value, found.low, found.high))  # type: ignore[arg-type]
    expected = math.nan if found.expected_error is None else found.expected_error
    bound = max(value - low, high - value)
    return Made(value, bound, 0.0, 1.0, 0.0, expected, joint=bound)


def quantiles_by_group(
    session: AnsweringLinear, name: str, attribute: str, q: float, where: Where, groups: GroupKeys
) -> Groups:
    """Return a quantile of numbers in every group: of one over too few records nothing is said."""
    made, answers = [], list[Answer]()
    for one in groups.conditions(narrowing(session.domain, where)):
        try:
            cuts = _Cuts.of(session.domain, attribute, one, n_public=not session.n_bound)
            found = _searched(session, cuts, q, one, narrow=False, jointly=True)
            made.append(_as_made(found))
            answers += found.answers
        except TooFewRecordsError as error:
            answers += error.answers
            made.append(Made(math.nan, math.inf, 0.0, 0.0, 0.0))
        except InvalidQueryError:  # nobody can be there
            made.append(Made(math.nan, 0.0, 0.0, 0.0, 0.0, own=0.0, joint=0.0))
    own = np.array([answer.error_bound for answer in answers])
    told = Found(tuple(answers), (), own, 1.0 - session.beta, own=own, joint=own, event=event_of(session))
    return of_made(session.n, groups, name, told, made, (slice(None),))


@final
@attrs.frozen(eq=False)
class _Proved:
    """What the releases at some cuts prove of a quantile, in the event of their bounds.

    Attributes:
        errors: Mapping of cut to bound.
        whole_bound, least_whole: Error of the share that counts, and the least that it can be.
        rank: q times the error of the share that counts, and the slack of float operations.
        low, high: Codes between which the quantile lies, half-open: cuts that are certainly off, or the ends.
    """

    found: Found
    errors: Mapping[int, float]
    whole_bound: float
    least_whole: float
    rank: float
    low: int
    high: int

    def missed(self, *cuts: int) -> float:
        """Return by how much the shares at cuts may miss q of those that count."""
        return max(self.errors.get(cut, 0.0) for cut in cuts) + self.rank


@final
@attrs.frozen(eq=False)
class _Search:
    """The search of one quantile: what was asked so far."""

    session: AnsweringLinear
    cuts: "_Cuts"
    q: float
    whole: float
    queries: list[Expression]
    answers: list[Answer]
    shares: dict[int, float]  # by cut, in the order in which they were asked

    @classmethod
    def of(cls, session: AnsweringLinear, cuts: "_Cuts", q: float) -> "_Search":
        """Begin by the share that counts, unless that is everybody."""
        queries = [] if cuts.everybody else [cuts.everyone()]
        answers = [session.answer(query) for query in queries]
        return cls(session, cuts, q, float(answers[0]) if answers else 1.0, queries, answers, {})

    def share(self, cut: int) -> float:
        """Return the released share below a cut, asked once."""
        if cut not in self.shares:
            query = self.cuts.up_to(cut)
            answer = self.session.answer(query)
            self.queries.append(query)
            self.answers.append(answer)
            self.shares[cut] = float(answer)
        return self.shares[cut]

    def passed(self, first: int, last: int) -> float:
        """Return how far between two cuts the released shares pass q, from 0 to 1."""
        low, high = self.shares.get(first, 0.0), self.shares.get(last, self.whole)
        if not high > low:
            return 0.5
        return min(1.0, max(0.0, (self.q * self.whole - low) / (high - low)))

    def apart(self, first: int, last: int) -> float:
        """Return how far apart two cuts are by the share of the records between them; NaN of no numbers."""
        rise = (self.shares.get(last, self.whole) - self.shares.get(first, 0.0)) / self.whole
        ends = self.cuts.least(first), self.cuts.largest(last - 1)
        if not isinstance(self.cuts.kind, Binned | IntegerRange) or not rise > 0.0:
            return math.nan
        return float(ends[1] - ends[0] + (isinstance(ends[0], int))) / rise

    def proved(self, jointly: bool = False) -> _Proved:
        """Return what the releases prove."""
        found, shares, q = bounded(self.session, self.queries, self.answers), self.shares, self.q
        if jointly:
            together = self.session.joint_bounds(self.queries, self.answers)
            found = attrs.evolve(found, bounds=together.tolist(), confidence=1.0 - self.session.beta)
        whole_bound = 0.0 if self.cuts.everybody else found.bounds[0]
        errors = dict(zip(shares, found.bounds[len(found.bounds) - len(shares) :], strict=True))
        least, most = q * (self.whole - whole_bound), q * (self.whole + whole_bound)
        above = (cut for cut, share in shares.items() if share + errors[cut] + FLOATS < least)
        below = (cut for cut, share in shares.items() if share - errors[cut] - FLOATS >= most)
        return _Proved(
            found=found,
            errors=errors,
            whole_bound=whole_bound,
            least_whole=self.whole - whole_bound,
            rank=q * whole_bound + FLOATS,
            low=max(above, default=self.cuts.first),
            high=min(below, default=self.cuts.last),
        )

    def expected(self, *cuts: int) -> float:
        """Return what the shares at cuts are expected to miss q by, of those that count; NaN if unknown."""
        errors = dict(
            zip(
                self.shares,
                map(known_error, self.answers[len(self.queries) - len(self.shares) :]),
                strict=True,
            )
        )
        whole = 0.0 if self.cuts.everybody else known_error(self.answers[0])
        found = [math.hypot(errors.get(cut, 0.0), self.q * whole) / self.whole for cut in cuts]
        return min(1.0, float(np.max(found)))

    def holds_at_once(self) -> bool:
        """Whether the session bounds all its answers in one event, however many and whichever are asked."""
        return bool(np.isfinite(self.session.joint_bounds(self.queries, self.answers)).all())

    def pin_down(self, start: int, step: int) -> None:
        """Ask cuts ever farther from `start`, until one is certainly off, and then those between."""
        inside, reach, off = start, 1, self._off(step)
        while (off - inside) * step > 1:
            cut = inside + step * min(reach, (off - inside) * step // 2)
            self.share(cut)
            off = self._off(step)
            if (off - cut) * step > 0:
                inside, reach = cut, 2 * reach
            else:
                reach = self.cuts.last  # from now on half of what is left

    def _off(self, step: int) -> int:
        """Return the nearest cut on one side that is certainly off, or the end."""
        proved = self.proved()
        return proved.low if step < 0 else proved.high


@public
@final
@attrs.frozen(eq=False)
class Cdf(MadeOfAnswers):
    """The distribution of an ordered attribute among the records that count.

    Attributes:
        values: Shape (labels,). Share of those records at or below each label: rising, in [0, 1], 1 at the
            last.
        low, high: Shape (labels,). Between them lie the exact shares, all at once with probability
            `confidence`; both rise.
        confidence: As of `Derived`.
        count, count_bound: Records that it is about.
        expected_errors: Shape (labels,). Root-mean-square error that is expected of each share, as of
            `Derived`; NaN where it is unknown.
        ends: Each of shape (value, value). Of numbers in bins the edges of each, between which quantiles lie.
    """

    name: str
    labels: tuple[Label, ...]
    values: Floats
    low: Floats
    high: Floats
    confidence: float
    count: float
    count_bound: float
    answers: tuple[Answer, ...]
    expected_errors: Floats
    ends: tuple[tuple[Any, Any], ...] | None = None

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns: label, value, the ends of the band, and what each share is expected to err by."""
        return {
            "label": list(self.labels),
            "value": self.values.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "expected_error": self.expected_errors.tolist(),
        }

    def quantile(self, q: float) -> Quantile:
        """Return the first label at or below which there is a share q, and the labels that it can be.

        Args:
            q: In (0, 1).
        """
        q = checked_real("q", q, above=0.0, below=1.0, remedy=SHARE)
        first = int((self.values >= q).argmax())
        around = slice(max(0, first - 1), first + 1)
        off = np.maximum(self.values - self.low, self.high - self.values)[around]
        expected = float(self.expected_errors[around].max())
        low, high = int((self.high >= q).argmax()), int((self.low >= q).argmax())
        value, ends = self.labels[first], (self.labels[low], self.labels[high])
        if self.ends is not None:
            before = float(self.values[first - 1]) if first else 0.0
            rise = float(self.values[first]) - before
            value = _between(*self.ends[first], (q - before) / rise if rise > 0.0 else 0.5)
            ends = self.ends[low][0], self.ends[high][1]
        return Quantile(
            name=f"quantile({self.name[4:-1]}, {q:g})",
            value=value,
            rank_error=float(off.max()),
            expected_rank_error=None if math.isnan(expected) else expected,
            low=ends[0],
            high=ends[1],
            confidence=self.confidence,
            answers=self.answers,
        )

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        widest, usual = float((self.high - self.low).max()), usually(float(self.expected_errors.max()))
        return (
            f"{self.name}: {len(self.labels)} labels, band of at most {upward(widest)}"
            f"{f', each {usual}' if usual else ''} ({sure(self.confidence)}), {counted(self.answers)}{stamp}"
        )

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the shares as steps, in the band that holds all of them, with matplotlib.

        Args:
            ax: None: of a new figure, `ax.figure`.
        """
        axes = axes_for(ax)
        place = np.arange(len(self.labels) + 1)  # a share holds from its label to the next
        low, high, values = (np.append(part, part[-1]) for part in (self.low, self.high, self.values))
        axes.fill_between(place, low, high, step="post", color=COLOURS[5], alpha=0.4, linewidth=0)
        axes.step(place, values, where="post", color=COLOURS[0], linewidth=1.8)
        draw_labels(axes, self.labels)
        axes.set_xlim(0, len(self.labels))
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel(plain(self.name[4:-1], LONGEST_TITLE))
        axes.set_ylabel("share at or below")
        bare(axes)
        title = f"{plain(self.name, LONGEST_TITLE)}\nband {sure(self.confidence)}"
        axes.set_title(stamped(title, self.private), loc="left", fontsize=11)
        return axes

    def _repr_html_(self) -> str:
        drawing = bars(self.labels, self.values, self.low, self.high, title=f"{self.name}, share at or below")
        if len(self.labels) > MOST_BARS:  # shares at or below do not add up: each part shows its last
            step = -(-len(self.labels) // MOST_BARS)
            kept = [*range(step - 1, len(self.labels), step)]
            some = [np.asarray(ends)[kept] for ends in (self.values, self.low, self.high)]
            drawing = bars([self.labels[at] for at in kept], *some, title=f"{self.name}, share at or below")
        said = [
            ("band", f"holds all shares at once, with probability {probability(self.confidence)}"),
            *([("each share", usual)] if (usual := usually(float(self.expected_errors.max()))) else []),
            ("about", f"{records(self.count)} ± {records_bound(self.count_bound)} {self.of_what}"),
        ]
        title = shortened(self.name, LONGEST_QUERY)
        return card(title, drawing, facts(said), made_of(self.answers), private=self.private)


def cdf(session: AnsweringLinear, attribute: str, where: Where = None) -> Cdf:
    """Return the share of the records that count at or below every label: one answer a label, as one batch.

    The exact function rises: so the largest lower bound to the left is a lower bound, the least upper bound
    to the right an upper one. The released shares are made to rise by isotonic regression, and brought
    between the two.

    Args:
        attribute: Ordered, of at most 4,096 labels.

    Raises:
        TooFewRecordsError, InvalidQueryError: As `quantile`.
        TooLargeError: If there are more labels.
    """
    check_answering(session)
    where = as_condition(where, session.domain)
    cuts = _Cuts.of(session.domain, attribute, where, n_public=not session.n_bound)
    count = cuts.last - cuts.first
    if count > MOST_LABELS:
        raise TooLargeError(
            f"{attribute} must have at most {MOST_LABELS:,} labels for a distribution function, got "
            f"{count:,}; ask for a few quantiles, or a histogram of bins."
        )
    places = range(cuts.first + 1, cuts.last)
    queries = [cuts.up_to(cut) for cut in places]
    found = asked_together(session, queries if cuts.everybody else [*queries, cuts.everyone()])
    values, bounds = np.array(found.values), np.array(found.bounds)
    whole, whole_bound = (1.0, 0.0) if cuts.everybody else (found.values[-1], found.bounds[-1])
    name = f"cdf({attribute}{'' if where is None else f', {shown(where, 100)}'})"
    if not whole > 2.0 * whole_bound:
        raise too_few(session.n, name, whole, whole_bound, found.answers)
    shares, errors = values[: len(queries)], bounds[: len(queries)] + FLOATS
    low = np.append(np.maximum.accumulate(np.clip(shares - errors, 0.0, None)), 0.0) / (whole + whole_bound)
    high = np.append(np.minimum.accumulate((shares + errors)[::-1])[::-1], 0.0) / (whole - whole_bound)
    low[-1] = high[-1] = 1.0
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    rising = np.append(_rising(shares) / whole, 1.0)
    known = np.array(found.errors)
    of_whole = 0.0 if cuts.everybody else known[-1]
    expected = np.append(np.hypot(known[: len(queries)], rising[:-1] * of_whole) / whole, 0.0)
    return Cdf(
        name=name,
        labels=tuple(cuts.label(place) for place in range(cuts.first, cuts.last)),
        values=np.clip(rising, low, np.maximum(low, high)),
        low=low,
        high=high,
        confidence=found.confidence,
        count=session.n * whole,
        count_bound=session.n * whole_bound,
        answers=found.answers,
        expected_errors=np.minimum(expected, 1.0),
        ends=tuple((cuts.least(place), cuts.largest(place)) for place in range(cuts.first, cuts.last))
        if isinstance(cuts.kind, Binned)
        else None,
    )


@final
@attrs.frozen(eq=False)
class _Cuts:
    """An ordered attribute under a condition: the cuts between its labels.

    Attributes:
        first, last: Half-open range of the codes that may count, of a number its bins: after the last are no
            records.
        everybody: Whether all records count, and their number is public.
    """

    attribute: str
    kind: Attribute
    condition: Expression | None
    first: int
    last: int
    everybody: bool

    @classmethod
    def of(cls, domain: Domain, attribute: str, where: Where, n_public: bool) -> "_Cuts":
        axis = domain.axis(attribute)
        kind = domain.attributes[axis]
        if not kind.ordered:
            raise InvalidQueryError(
                f"{attribute} must be ordered for a quantile, got labels without order; ask for counts by "
                "group_by."
            )
        condition = narrowing(domain, where)
        known = kind.size - kind.missing
        if kind.missing and not is_long(kind):
            codes = np.flatnonzero(allowed(domain, axis, condition)[:known])
            first, last = (int(codes[0]), int(codes[-1]) + 1) if len(codes) else (0, 0)
        else:  # the last code is no value, and may be the only one that meets the condition
            first, last = (min(end, known) for end in allowed_ends(domain, axis, condition))
        if first == last:
            raise nobody(attribute, where)
        if isinstance(kind, Binned):
            first, last = first // kind.cells, -(-last // kind.cells)
        everybody = n_public and condition is None and not kind.missing
        return cls(attribute, kind, condition, first, last, everybody)

    def up_to(self, cut: int) -> Expression:
        """Return the query that counts the codes below a cut."""
        below_it = _below(self.attribute, self.kind, cut)
        return below_it if self.condition is None else below_it & self.condition

    def everyone(self) -> Expression:
        """Return the query that counts all that have a value."""
        if not self.kind.missing:
            return where() if self.condition is None else self.condition
        return self.up_to((self.kind.size - 1) // (self.kind.cells if isinstance(self.kind, Binned) else 1))

    def label(self, place: int) -> Label:
        """Return the value at a place; of numbers their bin."""
        if isinstance(self.kind, Binned):
            return self.kind.bin_label(place * self.kind.cells)
        return self.kind.label(place)

    def inside(self, place: int, passed: float) -> Label:
        """Return the value at a place, of a bin the one that lies so far between its edges."""
        if not isinstance(self.kind, Binned):
            return self.kind.label(place)
        label: Label = _between(self.least(place), self.largest(place), passed)
        return label

    def least(self, place: int) -> Any:
        """Return the least value at a place: of a bin its lower edge."""
        return (
            _typed(self.kind, self.kind.edges[place])
            if isinstance(self.kind, Binned)
            else self.kind.label(place)
        )

    def largest(self, place: int) -> Any:
        """Return the largest value at a place: of a bin its upper edge, or the last whole number below."""
        if not isinstance(self.kind, Binned):
            return self.kind.label(place)
        return _typed(self.kind, self.kind.edges[place + 1] - self.kind.integer)


def _below(attribute: str, kind: Attribute, cut: int) -> Expression:
    """Return the condition that a code lies below a cut."""
    if isinstance(kind, IntegerRange):
        return where({attribute: below(kind.start + cut)})
    if isinstance(kind, Binned):
        return where({attribute: below(kind.edges[cut])})
    if cut < kind.size - kind.missing:
        return where({attribute: below(kind.label(cut))})
    return where({attribute: between(kind.label(0), kind.label(cut - 1))})


def _typed(kind: Binned, edge: float) -> int | float:
    """Return an edge as a value of its attribute."""
    return int(edge) if kind.integer and math.isfinite(edge) else edge


def _between(low: Any, high: Any, passed: float) -> Any:
    """Return the number that lies so far between two, to a thousandth of their distance."""
    if math.isinf(low) or math.isinf(high):  # a bin without an end
        return low if math.isinf(high) else high
    if type(low) is int and type(high) is int:
        return min(high, low + math.floor(passed * (high + 1 - low)))
    digits = 3 - math.floor(math.log10(high - low))
    return min(max(round(low + passed * (high - low), digits), low), high)


def _rising(values: Floats) -> Floats:
    """Return the closest rising sequence: neighbours that fall are pooled."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2:] = [(means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size]
            sizes[-2:] = [size]
    return np.repeat(means, sizes).astype(np.float64)
