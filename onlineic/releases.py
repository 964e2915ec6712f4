"""What a session hands out, with the bound that its mechanism proves for it; and what it remembers."""

import contextlib
import math
from typing import Any, final

import numpy as np

from onlineic.answers import Answer, AnswerMemory, Status
from onlineic.curator import grid_guesses
from onlineic.hypothesis import Hypothesis
from onlineic.marginals import BoundMarginal
from onlineic.partitions import derived
from onlineic.planning import Plan
from onlineic.queries import Measurement, Partition, Query

__all__ = ["Releases"]

AGREEING = 3.0  # standard deviations of what was measured


@final
class Releases:
    """Turns tested guesses and measurements into answers, and counts and remembers them.

    Parameters
    ----------
    plan : Plan
    n : int
    paid : int
        Hard answers of the largest price that the budget pays for.
    private : bool
        Stamped on every answer.
    """

    __slots__ = (
        "_memory", "_n", "_paid", "_payable", "_plan", "_private", "_radii", "_rounding", "_worst_number",
        "certified", "counts",
    )  # fmt: skip

    def __init__(self, plan: Plan, n: int, paid: int, private: bool) -> None:
        self.counts: dict[Status, int] = {"easy": 0, "hard": 0, "repeat": 0, "untested": 0}
        self._plan = plan
        self._n = n
        self._paid = paid
        self._private = private
        self._memory = AnswerMemory(lasting=not plan.textbook)
        self._radii: dict[tuple[int, int], float] = {}
        self._payable = plan.sparse.account().capacity  # what all hits together can cost
        if plan.opening is not None:
            self._payable -= plan.opening.charge.amount
        self.certified = plan.certified  # no more once a table is measured: T(alpha) counts single queries
        self._worst_number = 0.0  # largest bound of a hard answer, all of them at once
        self._rounding = 0.0  # largest distance of an answered query from the one written

    def known(self, query: Query, version: int) -> bool:
        """Whether the query needs no test: a constant, or remembered."""
        return query.constant is not None or self._memory.recall(query, version) is not None

    def known_table(self, table: BoundMarginal, version: int) -> Answer | None:
        """Return a cross table again, if it is remembered."""
        known = self._memory.recall_table(table.key, version)
        return None if known is None else self._answer(known.value.copy(), "repeat", known.error_bound)

    def easy(self, query: Query, guess: int, version: int) -> Answer:
        """Remember and return the guess that was tested, under the hypothesis of this version."""
        key = (query.grid_bits, query.sensitivity)
        if key not in self._radii:
            self._radii[key] = self._plan.sparse.easy_radius(self._plan.beta)
        bound = self._plan.error_bound if self._in_theorem() else self._radii[key]
        return self._remember(query, "easy", guess / (self._n << query.grid_bits), bound, version)

    def hard(
        self, query: Query, guess: int, measurement: Measurement, learned: Hypothesis, version: int
    ) -> Answer:
        """Remember and return a measured number, the sum of the measured blocks, or what was learned from it.

        A query that was hard by the noise of its test alone is often measured with more noise than the
        hypothesis, fitted to all tables, errs by. Where the guess that was tested and what was learned both
        agree with the sum of blocks, the latter is returned. The bound grows by its distance from the sum;
        all are public.
        """
        value, weights = derived(query, measurement)
        moved = 0.0
        if isinstance(measurement.target, Partition):
            tested = guess / (self._n << query.grid_bits)
            agreeing = AGREEING * measurement.scale * float(np.linalg.norm(weights))
            with contextlib.suppress(Exception):  # paid and recorded: not lost with a hypothesis that fails
                fitted = float(learned.evaluate(query))
                if abs(tested - value) <= agreeing and abs(fitted - value) <= agreeing:  # never with NaN
                    value, moved = fitted, abs(fitted - value)

        def radius(beta: float, answers: int) -> float:
            if isinstance(measurement.target, Query):
                return self._plan.sparse.hard_radius(measurement.target, beta, answers)
            return self._plan.sparse.sum_radius(measurement.target, weights, beta / answers)

        worst = moved + radius(0.1 * self._plan.beta, self._sharing(measurement.target))
        self._worst_number = max(self._worst_number, worst)
        bound = self._plan.error_bound if self._in_theorem() else moved + radius(self._plan.beta, 1)
        return self._remember(query, "hard", value, bound, version)

    def without_test(self, query: Query, hypothesis: Hypothesis, version: int) -> Answer:
        """Return a constant, a repeat, or the hypothesis's answer with no bound."""
        if query.constant is not None:
            return self._answer(query.constant / (1 << query.grid_bits), "easy", query.rounding)
        known = self._memory.recall(query, version)
        if known is not None:
            self._rounding = max(self._rounding, query.rounding)
            return self._answer(known[0], "repeat", known[1])
        (guess,) = grid_guesses(hypothesis, [query], self._n)
        return self._answer(guess / (self._n << query.grid_bits), "untested", math.inf)

    def table(
        self, table: BoundMarginal, guesses: tuple[int, ...], measurement: Measurement | None, version: int
    ) -> Answer:
        """Remember and return a tested cross table: measured, or as guessed."""
        sparse, beta = self._plan.sparse, self._plan.beta
        if measurement is None:
            value = table.table(np.array(guesses) / self._n)
            answer = self._answer(value, "easy", sparse.easy_radius(beta))
        else:
            worst = sparse.hard_radius(table.partition, 0.1 * beta, self._sharing(table.partition))
            self._worst_number = max(self._worst_number, worst)
            self.certified = False
            bound = sparse.hard_radius(table.partition, beta)
            answer = self._answer(table.table(measurement.values), "hard", bound)
        self._memory.remember_table(table.key, answer, version)
        return answer

    def untested_table(self, table: BoundMarginal, guesses: tuple[int, ...]) -> Answer:
        """Return a cross table of the hypothesis, with no bound."""
        return self._answer(table.table(np.array(guesses) / self._n), "untested", math.inf)

    def error_bound(self) -> float:
        """Return the bound on all tested answers at once, or inf where none is proven.

        So it is once more than max_queries were asked, or a certified session has measured a table.
        """
        if sum(self.counts.values()) > self._plan.max_queries or self._plan.certified > self.certified:
            return math.inf
        if self.certified:
            return self._plan.error_bound + self._rounding
        return max(self._plan.error_bound, self._worst_number) + self._rounding

    def used_up(self) -> str:
        """Say that no hard answer is left."""
        return (
            f"hard answers must be left, got {self.counts['hard']} of {self._paid} used; "
            "open a session with a larger budget, or exhausted='untested'."
        )

    def _sharing(self, target: Query | Partition) -> int:
        """Return m: a hit may fail with 1/m of what all may; cheap ones can be many, so m has its price."""
        return max(2, math.ceil(self._payable / self._plan.sparse.price(target).amount))

    def _in_theorem(self) -> bool:
        """Whether the textbook's bound, for all answers at once, covers the next one."""
        return self._plan.textbook and sum(self.counts.values()) < self._plan.max_queries

    def _remember(self, query: Query, status: Status, value: float, bound: float, version: int) -> Answer:
        answer = self._answer(value, status, bound + query.rounding)
        self._memory.remember(query, answer, version)
        self._rounding = max(self._rounding, query.rounding)
        return answer

    def _answer(self, value: Any, status: Status, bound: float) -> Answer:
        self.counts[status] += 1
        return Answer(value, self._n * value, status, bound, self._private)
