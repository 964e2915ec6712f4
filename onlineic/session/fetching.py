"""Tables that stay where they live: what will be read is counted there, before anything is reserved for it.

What is counted follows from public facts, and nothing that is released depends on it until the reservation
stands. So a failure costs nothing; but that it came may depend on the table.

Proof: docs/theory/session.md, 4.12.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import final

from onlineic._typing import Ints
from onlineic.data.private import PrivateData
from onlineic.data.release import guarded
from onlineic.errors import EngineError
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import Question
from onlineic.queries.partitions import Partition
from onlineic.queries.reach import Axes
from onlineic.session.askable import sets_asked
from onlineic.session.prices import Prices
from onlineic.session.read_guard import ReadGuard

MOST_MISSED = 3  # counts in a row that fail, after which a session tests nothing more
MISSED = (
    "table must be counted by the engine that holds it, got an error, {} of {} in a row that end the "
    "session; nothing was reserved or spent: see that the engine runs and the table is as it was loaded, "
    "and ask again."
)

_log = logging.getLogger("onlineic")


@final
class Fetching:
    """Fetches counts of a table whose rows are elsewhere; of one whose rows are here there is nothing to do.

    Args:
        prices: Of the session: they tell what a hit would release, and whether it can be paid.
        read_guard: Ends the session after `MOST_MISSED` failures in a row.
    """

    def __init__(self, data: PrivateData, prices: Prices, read_guard: ReadGuard) -> None:
        self._data, self._prices, self._read_guard = data, prices, read_guard
        self.reach, self._missed = data.reach, 0

    def before_tests(self, questions: Sequence[Question]) -> None:
        """Have the engine count what tests of these questions read and hits release, if one can be paid.

        Raises:
            TooLargeError: If a table of it cannot be counted.
            EngineError: If the engine failed, whose text is dropped; after three in a row the session tests
                nothing more.
        """
        if self.reach is not None and self._prices.affords(questions[0]):
            self._fetch(self._sets(questions))

    def before_tables(self, partitions: Sequence[Partition]) -> None:
        """Have tables counted that will be bought; raises as `before_tests`."""
        if self.reach is not None:
            self._fetch((), partitions)

    def before_number(self, question: Question) -> None:
        """Have a question counted that will be bought by itself; raises as `before_tests`."""
        if self.reach is not None:
            self._fetch(sets_asked(question))

    def together(self, queries: Queries, tested: Ints) -> int:
        """Return how many of the tested queries of a batch go into one run: they are counted at once."""
        if self.reach is None or not len(tested):
            return len(tested)
        counts, sets = list[int](), list[Axes]()
        for question in queries.chosen(tested):
            sets += self._sets((question,))
            counts.append(len(sets))
        fits = self._data.fitting(sets)
        return max(1, sum(count <= fits for count in counts))

    def _sets(self, questions: Sequence[Question]) -> list[Axes]:
        """Return the sets of attributes that tests of questions read, and those of what hits release."""
        targets = (self._prices.target(question) for question in questions)
        pairs = zip(questions, targets, strict=True)
        return [axes for question, target in pairs for axes in (*sets_asked(question), target.axes) if axes]

    def _fetch(self, sets: Sequence[Axes], partitions: Sequence[Partition] = ()) -> None:
        for axes in (*sets, *(one.axes for one in partitions)):
            if self.reach is not None:
                self.reach.check(self._data.domain, axes)

        def failed(name: str, place: str, interrupted: bool) -> None:
            if interrupted:
                return
            self._missed += 1
            _log.error("table not counted: %s at %s", name, place)
            if self._missed >= MOST_MISSED:
                self._read_guard.end()
            raise EngineError(MISSED.format(min(self._missed, MOST_MISSED), MOST_MISSED))

        guarded(partial(self._data.fetch, sets, partitions), failed, "")
        self._missed = 0
