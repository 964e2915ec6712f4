"""What was answered, so that it is answered again: a few dozen bytes a query, found by exact keys.

Conjunctions of intervals are held as columns by attribute set, sorted by key: a large run, and a small one
that is merged into it when it has grown to an eighth. What is answered one at a time waits in a dictionary.

Proof: docs/theory/session.md, 4.1.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.domain.domain import Domain
from onlineic.errors import set_fields
from onlineic.queries.batch import Boxes, Codes, Columns, Queries, key_words
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.query import Query, boxed

WAITING = 4096  # answers given one at a time that are held as objects before they are sorted in
GROWN = 8  # one part in so many: when the small run is merged


@final
@attrs.define  # never written to; frozen it would take three times as long to make, once an answer
class Remembered:
    """One released answer: to which question, as it was asked, the radius behind its bound, and when.

    Attributes:
        value: A number, of a table an array.
        version: Of what was known when it was told.
    """

    question: Query | BoundMarginal
    value: Any
    radius: float
    version: int = 0

    def again(self, question: Query | BoundMarginal) -> tuple[Any, float]:
        """Return (value, slack) for the same question; it may have been rounded to it from farther away."""
        value = _copied(self.value) if self.question.complement == question.complement else 1.0 - self.value
        return value, max(0.0, question.rounding - self.question.rounding)


@final
@attrs.frozen(eq=False)
class Recalled:
    """What is remembered of a batch, one entry a query.

    Attributes:
        known: Shape (m,).
        values, radii: Shape (m,). As they were released; anything where nothing is known.
        turned: Shape (m,). Whether the question as asked first was one minus the one asked now.
        roundings: Of the question as asked first, where that is not 0.
        versions: Shape (m,). Of `Remembered`.
        first: Shape (m,). Of what is not known: the place of the first query of the batch with the same key.
    """

    known: Bools
    values: Floats
    radii: Floats
    turned: Bools
    roundings: dict[int, float]
    versions: Codes
    first: Codes


@final
@attrs.frozen(eq=False)
class _Run:
    """Answers over one attribute set, sorted by key."""

    keys: Any
    values: Floats
    radii: Floats
    turned: Bools
    roundings: Floats | None
    versions: Codes
    _words: memoryview | None = attrs.field(init=False)  # the keys, of one word each: bisected in a fifth

    def __attrs_post_init__(self) -> None:
        set_fields(self, _words=self.keys.data if self.keys.dtype == np.int64 else None)

    def __reduce__(self) -> tuple[Any, ...]:
        held = (self.keys, self.values, self.radii, self.turned, self.roundings, self.versions)
        return _Run, held  # views are not copied

    def __len__(self) -> int:
        return len(self.values)

    def find(self, key: int | tuple[int, ...]) -> int | None:
        """Return where a key of one word, or of several, stands, or None."""
        words = self._words
        if words is not None:
            at = bisect_left(words, key)
            return at if at < len(words) and words[at] == key else None
        at = int(self.keys.searchsorted(np.array([key], self.keys.dtype)[0]))
        return at if at < len(self) and self.keys.item(at) == key else None

    def joined(self, later: "_Run") -> "_Run":
        """Return these answers and later ones, which take the place of those to the same questions."""
        keys = np.concatenate([self.keys, later.keys])
        order = np.argsort(keys, kind="stable")
        told = keys[order]
        order = order[np.append(told[1:] != told[:-1], True)]  # the last of equal keys
        roundings = None
        if self.roundings is not None or later.roundings is not None:
            roundings = np.concatenate(
                [np.zeros(len(run)) if run.roundings is None else run.roundings for run in (self, later)]
            )[order]
        return _Run(
            keys[order],
            np.concatenate([self.values, later.values])[order],
            np.concatenate([self.radii, later.radii])[order],
            np.concatenate([self.turned, later.turned])[order],
            roundings,
            np.concatenate([self.versions, later.versions])[order],
        )


@final
@attrs.frozen(eq=False)
class _Layout:
    """How the ends of an interval along each axis are packed into the words of a key, see `key_words`."""

    words: tuple[tuple[int, int], ...]
    radices: tuple[int, ...] | None  # of each axis, if one word holds them all: the commonest

    @classmethod
    def of(cls, domain: Domain, axes: tuple[int, ...]) -> "_Layout":
        """Return that of the keys over these axes."""
        words = tuple(key_words(domain, axes))
        alone = words[-1][0] == 0  # both ends of an axis have one radix
        return cls(words, tuple(radix for _, radix in words[::2]) if alone else None)

    def packed(self, low: Sequence[int], high: Sequence[int]) -> int | tuple[int, ...]:
        """Return one key, its only word or all of them, as `Boxes.keys` packs them."""
        if self.radices is not None:
            key = 0
            for first, last, radix in zip(low, high, self.radices, strict=True):
                key = (key * radix + first) * radix + last
            return key
        words = [0] * (self.words[-1][0] + 1)
        for place, (word, radix) in enumerate(self.words):
            words[word] = words[word] * radix + (high if place & 1 else low)[place >> 1]
        return tuple(words)


@final
class AnswerMemory:
    """Released answers by question; a query and its complement share one.

    Handing out again what was released is post-processing: free, and never less accurate than before.

    Args:
        lasting: Whether an answer is remembered under every later hypothesis (Dwork & Roth's OnlineIC asks
            again).
    """

    __slots__ = ("_lasting", "_layouts", "_others", "_runs", "_version", "_waiting")

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting
        self._version = 0
        self._layouts: dict[tuple[int, ...], _Layout] = {}  # how keys are packed
        self._forget()

    def __len__(self) -> int:
        """Return how many answers are held."""
        sorted_in = sum(len(run) for runs in self._runs.values() for run in runs)
        return len(self._waiting) + len(self._others) + sorted_in

    def copy(self) -> "AnswerMemory":
        """Return what is remembered now: what is remembered later is not in it."""
        other = AnswerMemory(lasting=self._lasting)
        other._version, other._layouts = self._version, dict(self._layouts)
        other._waiting, other._others, other._runs = dict(self._waiting), dict(self._others), dict(self._runs)
        return other

    def _forget(self) -> None:
        self._waiting: dict[tuple[Any, ...], tuple[Query, Any, float, int]] = {}  # as `Remembered` has them
        self._others: dict[tuple[Any, ...], Remembered] = {}  # of what is no conjunction of intervals
        self._runs: dict[tuple[int, ...], tuple[_Run, ...]] = {}  # the large one, and the small one

    def _turn_to(self, version: int) -> None:
        """Forget what was answered under another hypothesis, unless that lasts."""
        if version != self._version and not self._lasting:
            self._forget()
        self._version = version

    def remember(self, question: Query | BoundMarginal, value: Any, radius: float, version: int) -> None:
        """Keep an answer given by the hypothesis of this version, or measured against it."""
        if version != self._version:
            self._turn_to(version)
        if isinstance(question, BoundMarginal) or question.box is None:
            self._others[question.key] = Remembered(question, _copied(value), radius, version)
        else:
            self._waiting[question.key] = question, value, radius, version
            if len(self._waiting) > WAITING:
                self._sort_in()

    def remember_many(self, queries: Queries, values: Floats, radius: float, version: int) -> None:
        """Keep the answers of a batch, (m,), all of one radius."""
        self._turn_to(version)
        for place, query in queries.others:
            self._others[query.key] = Remembered(query, float(values[place]), radius, version)
        for group in queries.boxes:
            told = np.full(len(group), version, np.int32)
            self._add(queries.domain, group, values[group.places], np.full(len(group), radius), told)

    def recall(self, question: Query | BoundMarginal, version: int) -> Remembered | None:
        """Return an earlier answer that still stands, or None."""
        if version != self._version:
            self._turn_to(version)
        if isinstance(question, BoundMarginal) or question.box is None:
            return self._others.get(question.key)
        known = self._waiting.get(question.key)
        if known is not None:
            return Remembered(*known)
        if question.axes not in self._runs:
            return None
        low, high = question.box
        layout = self._layouts.get(question.axes)
        if layout is None:
            layout = self._layouts[question.axes] = _Layout.of(question.domain, question.axes)
        key = layout.packed(low, high)
        for run in reversed(self._runs[question.axes]):  # the later one first
            at = run.find(key)
            if at is not None:
                rounding = 0.0 if run.roundings is None else float(run.roundings[at])
                turned = bool(run.turned[at])
                first = question
                if turned != question.complement or rounding != question.rounding:
                    first = boxed(question.domain, question.axes, low, high, turned, rounding)
                return Remembered(first, float(run.values[at]), float(run.radii[at]), int(run.versions[at]))
        return None

    def recall_many(self, queries: Queries, version: int) -> Recalled:
        """Return what is known of a batch, and which of its queries are the same."""
        self._turn_to(version)
        if self._waiting:
            self._sort_in()
        count = len(queries)
        found = Recalled(
            np.zeros(count, np.bool_),
            np.zeros(count),
            np.zeros(count),
            np.zeros(count, np.bool_),
            {},
            np.zeros(count, np.int32),
            np.arange(count, dtype=np.int32),
        )
        for group in queries.boxes:
            if group.axes:
                self._find(queries.domain, group, found)
        firsts: dict[tuple[Any, ...], int] = {}
        for place, query in queries.others:
            known = self._others.get(query.key)
            if known is None:
                found.first[place] = firsts.setdefault(query.key, place)
                continue
            found.known[place], found.values[place], found.radii[place] = True, known.value, known.radius
            found.turned[place] = known.question.complement != query.complement
            found.versions[place] = known.version
            if known.question.rounding:
                found.roundings[place] = known.question.rounding
        return found

    def _find(self, domain: Domain, group: Boxes, found: Recalled) -> None:
        keys, places = group.keys(domain), group.places
        for run in self._runs.get(group.axes, ()):
            at = run.keys.searchsorted(keys)
            at[at == len(run)] = 0
            rows = np.flatnonzero(run.keys[at] == keys)
            if len(rows) == 0:
                continue
            at, held = at[rows], places[rows]
            found.known[held] = True
            found.values[held], found.radii[held] = run.values[at], run.radii[at]
            found.versions[held] = run.versions[at]
            found.turned[held] = run.turned[at] != group.turned[rows]
            for place in held.tolist() if found.roundings else ():  # of an earlier answer to the same
                found.roundings.pop(place, None)
            if run.roundings is not None:
                rounded = np.flatnonzero(run.roundings[at])
                found.roundings.update(
                    zip(held[rounded].tolist(), run.roundings[at[rounded]].tolist(), strict=True)
                )
        fresh = np.flatnonzero(~found.known[places])
        if len(fresh):
            _, first, which = np.unique(keys[fresh], return_index=True, return_inverse=True)
            found.first[places[fresh]] = places[fresh[first[which]]]

    def _sort_in(self) -> None:
        """Sort what waits into the runs."""
        waiting = list(self._waiting.values())
        columns = Columns(waiting[0][0].domain)
        for question, *_ in waiting:
            columns.add(question)
        queries = columns.queries()
        values, radii, versions = (_column(held) for held in list(zip(*waiting, strict=True))[1:])
        for group in queries.boxes:
            told = versions[group.places].astype(np.int32)
            self._add(queries.domain, group, values[group.places], radii[group.places], told)
        self._waiting = {}  # last: an interrupt before it sorts the same in twice, which changes nothing

    def _add(self, domain: Domain, group: Boxes, values: Floats, radii: Floats, versions: Codes) -> None:
        keys = group.keys(domain)
        order = np.argsort(keys, kind="stable")
        roundings = None if group.roundings is None else group.roundings[order]
        fresh = _Run(
            keys[order], values[order], radii[order], group.turned[order], roundings, versions[order]
        )
        runs = self._runs.get(group.axes, ())
        if len(runs) == 2:
            fresh = runs[1].joined(fresh)
        if runs and GROWN * len(fresh) > len(runs[0]):
            self._runs[group.axes] = (runs[0].joined(fresh),)
        else:
            self._runs[group.axes] = (*runs[:1], fresh)


def _column(values: Iterable[float]) -> Floats:
    return np.fromiter(values, np.float64)


def _copied(value: Any) -> Any:
    """Return a number, or a copy of a table: a caller may write to his array."""
    return value.copy() if isinstance(value, np.ndarray) else value
