"""One who answers exactly, without noise: the oracle of what is worked out from answers."""

import numpy as np

from onlineic.ask.bind import bind_question
from onlineic.queries import Answer
from onlineic.queries.marginals import BoundMarginal
from onlineic.questions import Answering, PublicFacts


class Exact(Answering):
    """Answers from the counts of all cells; `off` is stated as the bound of each, and of all at once.

    With `shift` each number is off by so much, of random signs.
    """

    def __init__(self, domain, counts, off=0.0, shift=0.0, seed=1, tables=True):
        self._domain, self.counts, self.off, self.shift = (
            domain,
            np.asarray(counts, float).reshape(domain.shape),
            off,
            shift,
        )
        self.draw, self.tables, self.asked = np.random.default_rng(seed), tables, []

    @property
    def facts(self):
        return PublicFacts(self._domain, int(self.counts.sum()), 0.05, answers_tables=self.tables)

    def answer(self, query):
        question = bind_question(query, self._domain)
        self.asked.append(question)
        if isinstance(question, BoundMarginal):
            partition = question.partition
            summed = self.counts.sum(
                axis=tuple(a for a in range(len(self._domain.shape)) if a not in partition.axes)
            )
            for place, cut in enumerate(partition.cuts):
                summed = np.apply_along_axis(
                    lambda row, cut=cut: np.bincount(cut.codes, row, cut.parts), place, summed
                )
            value = question.table(summed.ravel() / self.n)
            moved = value + np.where(
                question.cells >= 0, self.shift * self.draw.choice([-1, 1], value.shape), 0.0
            )
            return self._told(moved, question)
        if question.constant is not None:
            return self._told(question.constant / (1 << question.grid_bits), question, 0.0)
        exact = float((self.counts * question.weights()).sum() / (self.n << question.grid_bits))
        return self._told(exact + self.shift * self.draw.choice([-1, 1]), question)

    def _told(self, value, question, off=None):
        off = (self.off if off is None else off) + getattr(question, "rounding", 0.0)
        return Answer(
            value,
            self.n * value,
            "easy",
            off,
            False,
            query=question,
            n=self.n,
            beta=self.beta,
            expected_error=np.full(np.shape(value), off) if np.ndim(value) else off,
        )

    def joint_bounds(self, queries, answers):
        return np.array([answer.error_bound for answer in answers])
