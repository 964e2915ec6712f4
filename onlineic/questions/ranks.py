"""The largest of some released numbers, and from which rank on noise may have put another there.

Proof: docs/theory/queries.md, 1.11.
"""

from collections.abc import Iterator, Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.display.frames import Framed, free_name
from onlineic.display.html import card, note, table
from onlineic.display.text import LONGEST, USUAL, aligned, around, shortened, sure
from onlineic.domain.attributes import Label
from onlineic.queries.answers import LONGEST_QUERY, Answer, MadeOfAnswers, made_of
from onlineic.slips import public


@public
@final
@attrs.frozen(eq=False)
class Top(MadeOfAnswers, Framed):
    """The largest numbers of some groups, in order.

    Attributes:
        name: What was ranked.
        keys: Of the groups.
        labels: Of every row, one for each key.
        values: Falling.
        error_bounds: Half-widths that hold for all groups at once, with probability `confidence`.
        expected_errors: Root-mean-square errors, NaN where unknown.
        groups: Among how many it is the top.
        decided: How many ranks are sure: by their bounds no other group can stand there.
        usually_decided: How many are, by 1.96 expected errors of the differences.
        confidence: Probability that all bounds hold.
        answers: What it was made of.
    """

    name: str
    keys: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    values: Floats
    error_bounds: Floats
    expected_errors: Floats
    groups: int
    decided: int
    usually_decided: int
    confidence: float
    answers: tuple[Answer, ...]

    @classmethod
    def of(
        cls,
        name: str,
        keys: tuple[str, ...],
        labels: Sequence[tuple[Label, ...]],
        values: Floats,
        bounds: Floats,
        expected: Floats,
        *,
        k: int,
        confidence: float,
        answers: tuple[Answer, ...],
    ) -> "Top":
        """Return the k largest of some numbers; those of which nothing can be said are in no rank."""
        known = np.flatnonzero(~np.isnan(values))
        order = known[np.argsort(-values[known], kind="stable")]
        shown = order[:k]
        return cls(
            name,
            keys,
            tuple(labels[place] for place in shown.tolist()),
            values[shown],
            bounds[shown],
            expected[shown],
            len(values),
            ranks_decided(values[order], bounds[order], k),
            ranks_usual(values[order], expected[order], k),
            confidence,
            answers,
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[tuple[tuple[Label, ...], float, float]]:
        """Go through (labels, value, error bound), the largest first."""
        yield from zip(self.labels, self.values.tolist(), self.error_bounds.tolist(), strict=True)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns: rank, the labels of every key, value, error_bound, expected_error."""
        taken = {*self.keys}
        held: dict[str, list[Any]] = {free_name("rank", taken): [*range(1, len(self) + 1)]}
        for place, key in enumerate(self.keys):
            held[key] = [labels[place] for labels in self.labels]
        measures = (self.values, self.error_bounds, self.expected_errors)
        for name, numbers in zip(("value", "error_bound", "expected_error"), measures, strict=True):
            held[free_name(name, taken)] = numbers.tolist()
        return held

    @property
    def said(self) -> str:
        """From which rank on noise decides, in words."""
        return ranks_said(self.decided, self.usually_decided, len(self))

    def _rows(self) -> list[list[str]]:
        told = zip(self, self.expected_errors.tolist(), strict=True)
        return [
            [
                str(rank),
                *(shortened(label, LONGEST) for label in labels),
                around(value, bound, True, expected),
            ]
            for rank, ((labels, value, bound), expected) in enumerate(told, 1)
        ]

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        head = f"top {len(self)} of {self.groups:,}: {self.name} ({sure(self.confidence)}{stamp})"
        lines = aligned(["rank", *self.keys, ""], self._rows(), left=len(self.keys) + 2)
        return f"{head}\n{lines}\n{self.said}"

    def _repr_html_(self) -> str:
        rows = table(["rank", *self.keys, "value"], self._rows(), left=len(self.keys) + 1)
        title = f"Top {len(self)} of {self.groups:,}: {shortened(self.name, LONGEST_QUERY)}"
        return card(title, rows, note(self.said), made_of(self.answers), private=self.private)


def ranks_decided(values: Floats, bounds: Floats, k: int) -> int:
    """Return how many leading ranks no later number can take, by bounds that hold all at once.

    Args:
        values: Falling, all of them.
        bounds: Of each.
        k: At most so many ranks.
    """
    highest = np.maximum.accumulate((values + bounds)[::-1])[::-1]  # of a rank and all later ones
    above = np.append(highest[1:], -np.inf)
    safe = values - bounds > above
    return _leading(safe[:k])


def ranks_usual(values: Floats, expected: Floats, k: int) -> int:
    """Return the same by 1.96 expected errors of the differences."""
    safe = []
    for place in range(min(k, len(values))):
        later = slice(place + 1, None)
        apart = USUAL * np.hypot(expected[place], expected[later])
        safe.append(bool((values[place] - values[later] > apart).all()))
    return _leading(np.array(safe, np.bool_))


def ranks_said(decided: int, usually: int, shown: int) -> str:
    """Return from which rank on noise decides, in words."""
    if decided >= shown:
        return "all of these ranks are sure"
    words = "the order is not sure" if not decided else f"rank {decided} is sure"
    if decided > 1:
        words = f"ranks 1 to {decided} are sure"
    if usually >= shown:
        return f"{words}, and usually all are right"
    return f"{words}; from rank {max(decided, usually) + 1} on noise decides"


def _leading(safe: Any) -> int:
    return len(safe) if safe.all() else int(np.argmin(safe))
