"""What answers linear queries exactly, or off by as much as it is told, with bounds that are then true."""

import numpy as np

from onlineic.queries import Answer, where
from onlineic.questions import Answering, PublicFacts


class Exactly(Answering):
    """Answers from a table, each moved by a share of its bound.

    `bound` is stated of every answer that is no constant, `moves` are shares of it in [-1, 1], by turns.
    """

    def __init__(self, data, bound=0.0, moves=(0.0,), error=None):
        self._data, self._bound, self._moves = data, bound, moves
        self._error, self.asked = bound if error is None else error, []

    @property
    def facts(self):
        return PublicFacts(self._data.domain, self._data.n, 0.05, answers_tables=False)

    def answer(self, query):
        query = query.bind(self.domain)
        constant = query.constant is not None
        turn = self._moves[len(self.asked) % len(self._moves)]
        off = 0.0 if constant else self._bound * turn
        self.asked.append(query)
        everybody = self._data.exact_counts(where().bind(self.domain))
        value = self._data.exact_counts(query) / everybody / 2.0**query.grid_bits
        bound = (0.0 if constant else self._bound) + query.rounding + 1e-12
        error = None if np.isnan(self._error) else 0.0 if constant else self._error
        return Answer(
            value=value + off,
            count=0.0,
            status="easy",
            error_bound=bound,
            query=query,
            n=self.n,
            expected_error=error,
        )

    def joint_bounds(self, queries, answers):
        return np.array([answer.error_bound for answer in answers])
