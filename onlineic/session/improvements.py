"""Which answers the hypothesis has outgrown: told again as it says now, free, and recorded.

An answer that was told stands until the predicted error of its question has fallen by a third, by what was
bought since. Questions, purchases and the noise of a measured answer are public, so whoever holds the record
works the decision out again (theory 4.9b).
"""

import copy
import itertools
import math
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.interactions.predictor import Predictor
from onlineic.interactions.sizes import cut_elsewhere
from onlineic.plan.plan import Plan
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import Question
from onlineic.queries.memory import Recalled, Remembered
from onlineic.queries.partitions import Measurement

IMPROVED = 2.0 / 3.0  # of the error when it was told: for less a second number of one question is no gain


@final
@attrs.frozen(eq=False)
class _History:
    """What was told of one question before its present answer."""

    place: int  # of the record that told the present one
    told: tuple[Remembered, ...]  # oldest first


@final
class Improvements:
    """What was told before, and by how much it would err less now: a fold over the record.

    Taking in the same record twice changes nothing.

    Parameters
    ----------
    plan : Plan
        Answers improve where its rule fits all that was measured, nothing is certified, and purchases go on.
    domain : Domain
    """

    __slots__ = ("_earlier", "_may", "_predictor", "_repeats", "_spreads")

    def __init__(self, plan: Plan, domain: Domain) -> None:
        stands = plan.certified or plan.textbook or plan.purchases.ended
        self._may = plan.update.fits_all and not stands
        # numbers are told anew by tables that are cut at levels: what others tell is read roughly
        self._predictor = self._repeats = Predictor(domain)
        self._earlier: dict[Any, _History] = {}
        self._spreads: dict[Any, float] = {}  # of measured answers, standard deviation of the noise

    def copy(self) -> "Improvements":
        """Return what was told until now: what is told later is not in it."""
        other = copy.copy(self)
        other._earlier, other._spreads = dict(self._earlier), dict(self._spreads)
        return other

    def bought(self, before: int, released: Sequence[Measurement]) -> None:
        """Take in tables that were bought after so many purchases."""
        if self._may and before == len(self._predictor.releases):
            told = self._repeats.after([one for one in released if not cut_elsewhere(one.target)])
            same = self._repeats is self._predictor and len(told.releases[-1]) == len(released)
            self._predictor = self._predictor.after(released)
            self._repeats = self._predictor if same else told

    def measured(self, question: Question, spread: float) -> None:
        """Take in with how much noise an answer was measured."""
        if self._may:
            self._spreads[question.key] = spread

    def reads(self, question: Question) -> bool:
        """Return whether the hypothesis of now may be read in the place of what was told of a question.

        A number of its own, that was measured, may be farther from the fit than its noise.
        """
        return self._may and question.key not in self._spreads

    def left(self, question: Question, known: Remembered) -> float:
        """Return the error predicted now over that when it was told: 1 where nothing was bought since."""
        if known.version >= len(self._repeats.releases):
            return 1.0
        then, now = (self._repeats.error(question, after) for after in (known.version, None))
        spread = self._spreads.get(question.key, math.inf)  # what was measured is known in both
        return _over(now, then, spread)

    def left_of(self, queries: Queries, recalled: Recalled) -> Floats:
        """Return the same of a batch, (m,): 1 of what is not known."""
        result = np.ones(len(queries))
        older = recalled.known & (recalled.versions < len(self._repeats.releases))
        if not older.any():
            return result
        for version in np.unique(recalled.versions[older]).tolist():
            places = np.flatnonzero(older & (recalled.versions == version))
            some = queries.chosen(places)
            then, now = (self._repeats.errors(some, after) for after in (version, None))
            held = self._spreads
            spreads = (
                [held.get(query.key, math.inf) for query in some] if held else itertools.repeat(math.inf)
            )
            result[places] = [*map(_over, now.tolist(), then.tolist(), spreads)]
        return result

    def told(self, question: Question) -> tuple[Remembered, ...]:
        """Return what was told of a question before its present answer, oldest first."""
        held = self._earlier.get(question.key)
        return () if held is None else held.told

    def place(self, question: Question) -> int:
        """Return the place of the record that improved a question last, or -1."""
        held = self._earlier.get(question.key)
        return -1 if held is None else held.place

    def tell(self, question: Question, known: Remembered, place: int) -> None:
        """Take in that the record at this place has improved on what was known."""
        if self.place(question) != place:
            self._earlier[question.key] = _History(place, (*self.told(question), known))

    def first(self, question: Question, known: Remembered) -> Remembered:
        """Return the first answer that was told of a question, of which the latest is known."""
        return (*self.told(question), known)[0]


def moved(question: Question, value: Any, first: Remembered, slack: float) -> float:
    """Return how far a value is from what was told first, which may be one minus what is asked now."""
    before, _ = first.again(question)
    turned = slack if question.complement != first.question.complement else 0.0
    return float(np.abs(np.asarray(value) - before).max()) + turned


def _over(now: float, then: float, spread: float) -> float:
    """Return the first error over the second, where a number of this noise is known beside both."""
    if not then > 0.0:
        return 1.0
    share = (then / spread) ** 2 if spread else math.inf
    return (
        now / then * math.sqrt((1.0 + share) / (1.0 + share * (now / then) ** 2)) if share < math.inf else 1.0
    )
