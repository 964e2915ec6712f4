"""Many questions at array speed: runs of them are tested at once, up to the first that is hard.

A rule of purchases hears the questions of a call before the first is answered. But for what it buys by them,
the answers, the noise used and the record are those of one at a time.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.errors import SessionExhaustedError
from onlineic.ledger.records import EasyBatch, Hard, Ledger
from onlineic.progress import advance
from onlineic.queries.answers import Answer, Status
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.memory import Recalled
from onlineic.queries.query import Query
from onlineic.session.columns import EASY, KNOWN, NO_REASON, UNTESTED, Answers, Columns
from onlineic.session.core import Core
from onlineic.session.prices import Cover

RUN, LONGEST_RUN = 64, 2**16  # queries that are tested at once, to begin with and at most


@final
class Batches:
    """Answers batches through a core.

    Args:
        ledger: That of the core.
    """

    def __init__(self, core: Core, ledger: Ledger, n: int) -> None:
        self._core, self._book, self._ledger, self._n = core, core.book, ledger, n
        self._quiet = RUN  # queries that the next run may hold

    def answer(self, parts: Sequence[Queries | BoundMarginal], whole: bool) -> Answers | list[Answer]:
        """Answer parts of a batch in order; of one that is `whole` as columns."""
        answers: list[Answer] = []
        self._core.fresh = None  # of a call that was interrupted
        if heard := self._heard(parts):
            self._core.buy(heard)
        total = sum(len(part) if isinstance(part, Queries) else 1 for part in parts)
        for part in parts:
            try:
                if isinstance(part, Queries):
                    found = self._stream(part, self._quiet if whole else RUN, len(answers), total)
                    if whole:
                        return found
                    answers += found
                else:
                    answers.append(self._core.answer_bound(part))
                    advance("answers", len(answers), total)
            except SessionExhaustedError as error:
                error.answers = (*answers, *error.answers)
                raise
        return answers

    def _heard(self, parts: Sequence[Queries | BoundMarginal]) -> tuple[Question, ...]:
        """Return the questions that a purchase before the first of them may rest on: new ones, each once."""
        found, most = dict[Any, Question](), self._core.purchases.lookahead
        for part in parts:
            if len(found) >= most:
                break
            for one in _first_tested(part, most):
                if len(found) < most and not self._book.remembers(one):
                    found.setdefault(one.key, one)
        return tuple(found.values())

    def _stream(self, queries: Queries, length: int, before: int, total: int) -> Answers:
        """Answer a batch in order: between two hits all at once, in runs that double while there is none."""
        columns = Columns.empty(len(queries))
        start = 0
        while start < len(queries):
            stop = min(len(queries), start + min(length, self._book.left_in_theorem or length))
            try:
                taken = self._run(queries[start:stop], columns.part(start, stop))
            except SessionExhaustedError as error:
                error.answers = tuple(self._book.answers(queries[:start], columns.part(0, start)))
                raise
            length = min(2 * length, LONGEST_RUN) if start + taken == stop else max(RUN, 2 * taken)
            start, self._quiet = start + taken, length
            advance("answers", before + start, total)
        return self._book.answers(queries, columns)

    def _run(self, queries: Queries, columns: Columns) -> int:
        """Answer up to the first hard one, which is included, or one that must wait; return how many."""
        place = self._first_asked(queries)
        first = queries[place]
        testable = self._core.buy((first,))
        if (bought := self._core.bought(first)) is None:
            return self._begun(queries, columns, testable)
        if place:  # constants, and what is known
            self._begun(queries[:place], columns.part(0, place), testable)
        alone = columns.part(place, place + 1)
        alone.rest_on(self._book.context)
        alone.give(0, bought)
        return place + 1

    def _first_asked(self, queries: Queries) -> int:
        """Return the place of the first query that a purchase is, or may be, for: a tested one, if any."""
        place = first_tested(queries)
        if self._core.purchases.lookahead > 1 and self._book.remembers(queries[place]):
            told = self._book.recalled_many(queries).known | np.isfinite(queries.constants)
            if self._core.fresh is not None and (bought := self._core.fresh.query) is not None:
                told &= [one.key != bought.key for one in queries]
            place = int(np.argmin(told)) if not told.all() else place
        return place

    def _begun(self, queries: Queries, columns: Columns, testable: bool) -> int:
        """Answer a run, or its beginning, before which nothing more is to be bought; return how many."""
        if len(queries) > 1 and self._buys_behind(queries[0], queries[1]):
            return self._begun(queries[:1], columns.part(0, 1), testable)
        book, recalled = self._book, self._book.recalled_many(queries)
        columns.rest_on(book.context)
        radius = book.easy_radius()
        constant = np.isfinite(queries.constants)
        asked = ~recalled.known & ~constant
        first = recalled.first == np.arange(len(queries), dtype=np.int32)
        tested = np.flatnonzero(asked & first)
        due = self._core.purchases.due_at(queries[at] for at in tested.tolist())
        # a rule may say anything, also of no questions
        if due is not None and 0 < due <= len(tested) and (told := int(tested[due - 1]) + 1) < len(queries):
            # those after it have what they buy
            return self._begun(queries[:told], columns.part(0, told), testable)
        if testable and (fits := self._core.fetching.together(queries, tested)) < len(tested):
            stop = int(tested[fits])
            return self._begun(queries[:stop], columns.part(0, stop), testable)
        cover, payable, stop = self._payable(queries, tested, testable)
        unpaid = np.setdiff1d(tested[tested < stop], payable, assume_unique=True)
        if len(unpaid):  # and the same once more: nothing is remembered of it
            unpaid = np.flatnonzero(asked[:stop] & np.isin(recalled.first[:stop], unpaid))
            columns.put(unpaid, self._guessed(queries.chosen(unpaid)), UNTESTED, math.inf, NO_REASON)
        if cover is not None:
            batch = queries.chosen(payable)
            reasons = book.reasons(batch)
            values, hard = self._tested(cover, batch)
            columns.put(payable[: len(values)], values, EASY, radius, reasons[: len(values)])
            if hard is not None:
                stop = int(payable[len(values)]) + 1  # those after it were not tested
                columns.give(stop - 1, hard)
        self._repeat(queries, columns, recalled, stop, int((unpaid < stop).sum()))
        return stop

    def _buys_behind(self, first: Query, second: Query) -> bool:
        """Whether something is bought between two tested questions: before the second no other is looked up.

        Of a wide table each question can be over attributes of its own, and the whole rest of the call would
        be looked up for each.
        """
        if first.key == second.key or self._book.remembers(first) or self._book.remembers(second):
            return False
        return self._core.purchases.due_at((first, second)) == 1

    def _payable(self, queries: Queries, tested: Ints, testable: bool) -> tuple[Cover | None, Ints, int]:
        """Return what pays for tests, the places of these, and how many answers can be given by them.

        Raises:
            SessionExhaustedError, SessionSealedError: If the first answer cannot.
        """
        if len(tested) == 0:
            return None, tested, len(queries)
        first = int(tested[0])
        if self._core.read_guard.sealed:
            if first == 0:
                self._core.read_guard.check()
            return None, tested[:0], first
        cover = self._core.cover(queries.chosen(tested)) if testable else None
        covered = np.zeros(len(tested), np.bool_) if cover is None else np.array(cover.payable, np.bool_)
        if self._book.raises and not covered.all():
            covered = covered[: covered.argmin()]
            if len(covered) == 0 and first == 0:
                raise SessionExhaustedError(self._book.used_up())
        stop = int(tested[len(covered)]) if len(covered) < len(tested) else len(queries)
        payable = tested[: len(covered)][covered]
        return cover.first(len(payable)) if cover is not None and len(payable) else None, payable, stop

    def _tested(self, cover: Cover, batch: Queries) -> tuple[Floats, Answer | None]:
        """Test a batch up to its first hard one; return the values of those before it, and its answer."""
        length = len(self._ledger)
        alone = (batch[0],) if len(batch) == 1 else None
        asked_for = self._book.guesses_many(batch) if alone is None else self._book.guesses(alone)
        guesses = np.asarray(asked_for, np.int64)
        self._core.test(cover, asked_for)
        *_, last = records = self._ledger.records(length)  # what is answered comes by way of the ledger
        easy, hard = len(batch), None
        if isinstance(last, Hard):
            easy = sum(len(record) for record in records if isinstance(record, EasyBatch))
            hard = self._book.answered()
        self._book.catch_up()
        return guesses[:easy] / (np.int64(self._n) << batch.grid_bits[:easy]), hard

    def _guessed(self, queries: Queries) -> Floats:
        """Return the hypothesis's answers, on the grid."""
        return self._book.guesses_many(queries) / (np.int64(self._n) << queries.grid_bits)

    def _repeat(
        self, queries: Queries, columns: Columns, recalled: Recalled, stop: int, untested: int
    ) -> None:
        """Enter the constants and repeats of a run, also those of a query earlier in it, and count them."""
        places = np.arange(stop, dtype=np.int32)
        constants = queries.constants[:stop]
        constant = np.isfinite(constants)
        known = np.flatnonzero(recalled.known[:stop] & ~constant)
        first = recalled.first[:stop]
        again = np.flatnonzero((first != places) & ~recalled.known[:stop] & ~constant)
        again = again[columns.codes[first[again]] != UNTESTED]
        alone = np.flatnonzero(constant)
        columns.put(alone, constants[alone], EASY, 0.0, KNOWN)
        columns.recall(known, recalled, queries)
        columns.repeat(again, first[again], queries)
        counts: dict[Status, int] = {
            "easy": len(alone),
            "repeat": len(known) + len(again),
            "untested": untested,
        }
        rounding = 0.0
        if queries.rounding > 0.0:
            rounding = float(queries.roundings[np.concatenate([alone, known, again])].max(initial=0.0))
        self._book.count_untaken(counts, rounding)


def first_tested(queries: Queries) -> int:
    """Return the place of the first query of a batch that is no constant, or of a constant."""
    return int(np.argmin(np.isfinite(queries.constants)))


def _first_tested(part: Queries | BoundMarginal, most: int) -> Iterable[Question]:
    """Return the first so many questions of a part that are no constants."""
    if isinstance(part, Queries):
        return part.chosen(np.flatnonzero(~np.isfinite(part.constants))[:most])
    return (part,)
