"""What follows from the leading records, kept beside them: so that who resumes need not work it out again.

Proof: docs/theory/ledger-and-restarts.md, 5.4.
"""

import itertools
import math
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.hypothesis.base import block_guesses
from onlineic.ledger.records import Checkpoint, Hard, Ledger, ToldAnswer
from onlineic.plan.older import of_other_rules
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.session.belief import Belief
from onlineic.updates.base import HasParameters, UpdateRule

SPACING = 16  # the hypothesis is kept after each sixteenth part of the updates: what is kept stays small


@final
class Checkpoints:
    """Keeps what was learned and told in a ledger that outlives its process, and takes it from there."""

    __slots__ = ("_alpha", "_fitted", "_found", "_kept", "_ledger", "_update", "restoring")

    def __init__(self, ledger: Ledger, update: UpdateRule[Any], alpha: float) -> None:
        self._ledger, self._update, self._alpha = ledger, update, alpha
        # records of a session of other rules, which told cross tables as they were measured, and kept none
        beginning = getattr(ledger, "beginning", None)
        self._found = len(ledger) if beginning is not None and of_other_rules(beginning) else 0
        self._fitted: dict[int, float] = {}
        self._kept = (0, 0)  # records and updates that they follow from
        self.restoring = 0  # leading records whose updates a checkpoint makes needless

    @property
    def fitted(self) -> dict[int, float]:
        """By record, what the hypothesis after a hard answer says of its query, or NaN."""
        return dict(self._fitted)

    def parameters(self, belief: Belief) -> tuple[Floats, ...] | None:
        """Return the numbers from which the rule rebuilds this hypothesis; None if it repeats updates."""
        rule = self._update
        return (rule.parameters(belief.hypothesis) or None) if isinstance(rule, HasParameters) else None

    def hard_at(self, place: int) -> None:
        """Note that a hard answer is made of the record at this place."""
        self._fitted.setdefault(place, math.nan)

    def learned_of(self, place: int, question: Question, learned: Belief, n: int) -> Any:
        """Return what was learned of the question of that record, or what a checkpoint says of a query.

        NaN of a cross table that was answered by other rules, or before a checkpoint: what was told is kept.
        """
        if place < self.restoring:
            return self._fitted[place]
        if isinstance(question, BoundMarginal):
            if place < self._found:
                return math.nan
            return question.table(np.array(block_guesses(learned.hypothesis, question.partition, n)) / n)
        self._fitted[place] = float(learned.hypothesis.evaluate(question))
        return self._fitted[place]

    def told(self, place: int, value: Any, learned: bool) -> Any:
        """Return the value of that hard answer: the one that was given before, if it was answered before.

        It is kept if it may be what was `learned`: what was measured is in the record.
        """
        known = self._ledger.told
        if place in known:
            return np.reshape(known[place], np.shape(value)) if np.ndim(value) else known[place]
        if learned and self._ledger.lasting:
            self._ledger.keep(ToldAnswer(place, tuple(np.ravel(value).tolist()) if np.ndim(value) else value))
        return value

    def keep_if_due(self, records: int, belief: Belief) -> None:
        """Keep a checkpoint once there are enough updates that resuming would have to repeat."""
        version = belief.version
        if version == 1 or version - self._kept[1] >= max(2, version // SPACING):
            self.keep(records, belief)

    def keep(self, records: int, belief: Belief) -> None:
        """Let the ledger keep what follows from so many records, if it outlives the process."""
        if not self._ledger.lasting or records <= max(self._kept[0], self.restoring):
            return
        fitted = [held for place, held in sorted(self._fitted.items()) if self._kept[0] <= place < records]
        self._ledger.keep(
            Checkpoint(
                records=records,
                values=np.array(fitted, np.float64),
                version=belief.version,
                failures=belief.failures,
                parameters=None if belief.version == self._kept[1] else self.parameters(belief),
            )
        )
        self._kept = (records, belief.version)

    def begin(self) -> int:
        """Return how many leading records need no updates; `end` restores the belief after them."""
        known = self._ledger.checkpoints
        if known:
            records = self._ledger.records(0, known[-1].records)
            stated = itertools.chain.from_iterable(one.values.tolist() for one in known)
            hard = (place for place, record in enumerate(records) if isinstance(record, Hard))
            self._fitted = {place: next(stated) for place in hard}
            self.restoring = len(records)
        return self.restoring

    def end(self, start: Belief) -> Belief:
        """Return the belief after the records that `begin` counted.

        Args:
            start: Before the first of them.
        """
        known, records = self._ledger.checkpoints, self._ledger.records(0, self.restoring)
        # a checkpoint says no parameters again that the one before has said
        said = [one.parameters for one in known if one.parameters and one.version == known[-1].version]
        made = attrs.evolve(known[-1], parameters=said[-1] if said else None)
        belief = start.restored(records, self._update, self._alpha, made)
        self._kept = (self.restoring, belief.version)
        return belief
