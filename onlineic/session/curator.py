"""The private half of a session: the only code that reads counts to answer a query.

The order is the guarantee: reserve, read, draw, commit. Before the reservation a failure changes nothing.
From the read to the commit any exception seals the session and burns the reservation, because falling back to
the old state would tell, unpaid, whether the hard path was taken. What was released is handed on through the
ledger alone: nothing behind the commit can lose it.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Charge, Filter
from onlineic.data.private import PrivateData
from onlineic.data.release import check_outside, guarded
from onlineic.errors import (
    BudgetExceededError,
    ForkedSessionError,
    InternalError,
    LedgerError,
    SessionSealedError,
    SessionStateError,
)
from onlineic.ledger.records import Closed, Easy, EasyBatch, Hard, Ledger, Opened, UpdateFailed
from onlineic.noise.sources import Noise
from onlineic.queries.ask import Guess, Question
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.partitions import AxisSets, Measurement, Partition, PartitionRule, one_way, sets_of
from onlineic.queries.query import Query
from onlineic.session.belief import measured
from onlineic.session.first_tables import FirstTables
from onlineic.session.spending import Spending, Spent, dearest_hit, restarts_left
from onlineic.sparse.base import Hit, NumericSparse, SparseState, steps_down, steps_up

SEALED = (
    "session must not test another query while a test runs, or after one was interrupted between reading the "
    "data and its record, whose charge stays spent. What was released stands: repeats are answered, "
    "hypothesis and transcript can be read; open a new session for more (budgets add)."
)

UNWRITTEN = (
    "session must be recorded to go on, got a ledger that did not take the last record; what was reserved "
    "for it stays spent, and nothing that was not recorded was released. Make room, or mend what the "
    "drive lacks, and go on with OnlineIC.resume(FILE, data)."
)

CLOSED = (
    "session must be open to answer, got a closed one; go on with OnlineIC.resume(FILE, data), if it has a "
    "ledger file."
)

_log = logging.getLogger("onlineic")


@final
@attrs.frozen(eq=False)
class _Standing:
    """What the next test rests on: worked out once from the very objects that it names.

    Attributes
    ----------
    account : Filter
    reserved : Charge or None
        Of the ledger: after a Ctrl-C only it knows.
    due : Fraction
        What the first hit pays besides its price.
    sparse : NumericSparse
        The mechanism of the next test: what the record has spent decides, and nothing else.
    covered : Fraction
        The dearest hit that the reservation pays.
    serving : Fraction
        The same of single queries, 0 if it is for dearer questions. A hit uses up all that was set aside.
        What an easy cross table left standing would make hits of single queries as dear as its own, and a
        certificate's hard answers run out: then less is set aside anew.
    pays : dict of (sensitivity, grid bits) to bool
        Whether it serves single queries of each kind, as far as it was asked.
    """

    account: Filter
    reserved: Charge | None
    due: Fraction
    sparse: NumericSparse
    covered: Fraction
    serving: Fraction
    pays: dict[tuple[int, int], bool] = attrs.field(factory=dict)


@final
class Curator:
    """Tests questions against the private table and measures the hard ones, each paid before it is read.

    Parameters
    ----------
    data : PrivateData
    spending : Spending
        Which mechanism tests next.
    noise : Noise
    ledger : Ledger
        Claimed for the account of its mechanism. All that is released goes there.
    partitions : PartitionRule, optional
        Which partition a hard query releases; None: its number alone.
    """

    __slots__ = (
        "_closed", "_data", "_dearest_of", "_due", "_held", "_ledger", "_noise", "_partitions", "_priced",
        "_process", "_sealed", "_spending", "_spent", "_standing", "_state", "_unwritten",
    )  # fmt: skip

    def __init__(
        self,
        data: PrivateData,
        spending: Spending,
        noise: Noise,
        ledger: Ledger,
        partitions: PartitionRule | None = None,
    ) -> None:
        self._data = data
        self._spending = spending
        sparse = spending.sparse
        self._noise = noise
        self._ledger = ledger
        self._state: SparseState = sparse.init()  # holds the secret threshold noise: never shown
        start = sparse.start_charge()
        self._due = start.amount if start is not None else Fraction(0)  # with the first hit
        # a mechanism and its prices, replaced together: another thread may ask for a repr at any time
        self._priced: tuple[NumericSparse, dict[tuple[int, int], Fraction]] = (sparse, {})
        self._standing: _Standing | None = None  # each test asks for it several times
        self._dearest_of: tuple[NumericSparse | None, Fraction] = (None, Fraction(0))
        self._partitions = partitions
        self._spent: tuple[int, Spent] = (0, Spent())  # of so many records
        # of axes that stand together in a released partition
        self._held: AxisSets = frozenset()
        for record in ledger.records():
            self._learn_sets(*(released.target for released in measured(record)))
        self._sealed = self._closed = self._unwritten = False
        self._process = os.getpid()

    def anew(self, spending: Spending, partitions: PartitionRule | None) -> "Curator":
        """Return the curator of another plan, of the same table, noise and ledger."""
        return Curator(self._data, spending, self._noise, self._ledger, partitions)

    @property
    def sealed(self) -> bool:
        """Whether nothing may be tested: an answer was interrupted after the data were read, or runs."""
        return self._sealed

    def check_process(self) -> None:
        """Raise `ForkedSessionError` in another process than the one that opened the session."""
        if os.getpid() != self._process:
            raise ForkedSessionError(
                "session must be used in the process that opened it, got a forked one; open a new session."
            )

    def check_outside(self) -> None:
        """Raise `SessionStateError` in the middle of a read of this table, or a draw, of the same thread."""
        check_outside(self._data, self._noise)

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    def check_open(self) -> None:
        """Raise `SessionStateError` behind `close`."""
        if self._closed:
            raise SessionStateError(CLOSED)

    def check_unsealed(self) -> None:
        """Raise `SessionSealedError`, or `SessionStateError` behind `close`, if nothing may be tested."""
        if self._closed or self._sealed:
            self.check_open()
            raise SessionSealedError(self._why_sealed())

    def _why_sealed(self) -> str:
        """Return the public cause: a record that could not be written, or an interruption."""
        return UNWRITTEN if self._unwritten else SEALED

    @property
    def spent(self) -> Spent:
        """What prices take from the record."""
        known, spent = self._spent
        if known < len(self._ledger):
            records = self._ledger.records(known)
            for record in records:
                spent = self._spending.after(spent, record)
            self._spent = (known + len(records), spent)
        return spent

    def _now(self) -> _Standing:
        """Return what the next test rests on."""
        held, account, reserved = self._standing, self._ledger.account, self._ledger.reserved
        if (
            held is None
            or held.account is not account
            or held.reserved is not reserved
            or held.due is not self._due
        ):
            sparse, level, serving = self._spending.at(self.spent), Fraction(0), Fraction(0)
            if reserved is not None:
                level = reserved.amount - self._due
                serving = level if level <= self._dearest(sparse) else Fraction(0)
            self._standing = held = _Standing(account, reserved, self._due, sparse, level, serving)
        return held

    def cover(self, questions: Sequence[Question]) -> list[bool]:
        """Reserve a hit, and return which of the leading questions may be tested. Public; reads nothing.

        A standing reservation serves every test until a hit uses it up, and is topped up for the first
        payable question, if that is dearer. The list ends before the next one that is dearer still: so a
        batch pays what its questions pay one at a time.
        """
        self.check_unsealed()
        standing, first = self._now(), questions[0]
        if len(questions) == 1 and self._pays(standing, first):
            return [True]
        prices = self._prices(standing.sparse, questions)
        level = covered = standing.covered if isinstance(first, BoundMarginal) else standing.serving
        if all(price <= level for price in _different(prices)):
            return [True] * len(prices)
        left = self._ledger.account.left - self._due - self._spending.set_aside(self.spent)
        payable: list[bool] = []
        for price in prices:
            if level < price <= left:
                if any(payable):
                    break
                level = price
            payable.append(price <= left)
        if any(payable) and (self._ledger.reserved is None or level > covered):
            account, event = self._ledger.account, "one hard answer with its tests"
            self._ledger.reserve(Charge(level + self._due, event, account.unit, account.order))
        return payable

    def _prices(self, sparse: NumericSparse, questions: Sequence[Question]) -> list[Fraction]:
        """Return the price of each: most of a batch have one."""
        if not isinstance(questions, Queries):
            return [self._price(sparse, question) for question in questions]
        prices: list[Fraction] = []
        for group in questions.boxes:
            prices = [self._price(sparse, questions[int(group.places[0])])] * len(questions)
            break
        prices = prices or [Fraction(0)] * len(questions)
        for place, query in questions.others:
            prices[place] = self._price(sparse, query)
        return prices

    def _pays(self, standing: _Standing, question: Question) -> bool:
        """Return whether the standing reservation serves this question and pays its hit."""
        if standing.reserved is None:
            return False
        if isinstance(question, BoundMarginal):
            return self._price(standing.sparse, question) <= standing.covered
        kind = (question.sensitivity, question.grid_bits)
        known = standing.pays.get(kind)
        if known is None:
            known = standing.pays[kind] = self._price(standing.sparse, question) <= standing.serving
        return known

    def test(self, questions: Sequence[Question], guesses: Sequence[Guess] | Ints) -> None:
        """Test covered questions in order up to the first hit, which is measured; all goes to the ledger.

        Parameters
        ----------
        questions : Queries, or a sequence of one Query or BoundMarginal
            All covered by the standing reservation. A cross table is tested by its largest cell gap, and its
            hit releases all its blocks.
        guesses : int64 array, or a sequence of one int or tuple of int
            The public integers n 2^k f(hypothesis) that are tested and, if easy, released; of a cross table
            those of all its blocks.

        Raises
        ------
        SessionSealedError
            If anything failed after the data were read. Its cause is not chained: a traceback could hold
            a private number. The curator's log says where, never what.
        """
        standing = self._now()  # what is priced here is what is drawn from below
        if type(questions) is Queries:
            dearest = max(_different(self._prices(standing.sparse, questions)))
            paid = standing.reserved is not None and dearest <= standing.covered
        elif len(questions) == 1:
            paid = self._pays(standing, questions[0])
        else:
            raise InternalError("questions must be a batch, or one alone.")
        if not paid:
            self.check_unsealed()  # then nothing is reserved
            raise InternalError("a test must be reserved before the data are read.")
        self._guarded(lambda: self._tested(standing.sparse, questions, guesses))

    def test_alone(self, question: Question, guess: Guess) -> bool:
        """Test one question as `test` does, covered here, and return whether a hit could be paid.

        Raises
        ------
        SessionSealedError
            As `test`.
        """
        standing = self._now()
        if not self._pays(standing, question):
            if not self.cover((question,))[0]:
                return False
            standing = self._now()
            if not self._pays(standing, question):
                raise InternalError("a test must be reserved before the data are read.")
        self._guarded(lambda: self._tested(standing.sparse, (question,), (guess,)))
        return True

    def _tested(
        self, sparse: NumericSparse, questions: Sequence[Question], guesses: Sequence[Guess] | Ints
    ) -> None:
        """Read, draw, record: only from here on do frames hold private numbers."""
        records: list[Easy | EasyBatch | Hard]
        if type(questions) is Queries:
            state, easy, hit, count = self._stepped_many(sparse, questions, np.asarray(guesses, np.int64))
            counts: int | Ints = count
            records = [EasyBatch(questions[:easy], np.array(guesses[:easy], np.int64))] if easy else []
        else:
            state, hit, counts = self._stepped(sparse, questions[0], guesses[0])
            easy, records = (0, []) if hit is not None else (1, [Easy(questions[0], guesses[0])])
        if hit is not None:
            question, guess, charge = questions[easy], guesses[easy], self._ledger.reserved
            if charge is None:
                raise InternalError("a hit must be reserved before the data are read.")
            guess = guess if isinstance(guess, tuple) else int(guess)
            measurement = self._measured(sparse, hit, question, guess, counts)
            records.append(Hard(question, guess, measurement, charge))
            self._due = Fraction(0)
        self._state = state
        self._record(records)

    def _stepped(
        self, sparse: NumericSparse, question: Question, guess: Guess
    ) -> tuple[SparseState, Hit | None, int | Ints]:
        """Return the new state, and a hit with its exact counts."""
        grid = sparse.grid_bits
        if isinstance(question, BoundMarginal):
            counts = self._data.exact_counts(question.partition)
            gaps = counts - np.array(guess, np.int64)
            largest = int(np.abs(gaps)[np.unique(question.cells[question.cells >= 0])].max()) << grid
            state, hit = sparse.step_table(self._state, largest, self._noise)
            return state, hit, counts
        count, bits = self._data.exact_counts(question), question.grid_bits
        gap = steps_down(count - (guess if isinstance(guess, int) else 0), bits, grid)
        state, hit = sparse.step(self._state, gap, steps_up(question.sensitivity, bits, grid), self._noise)
        return state, hit, count

    def _stepped_many(
        self, sparse: NumericSparse, queries: Queries, guesses: Ints
    ) -> tuple[SparseState, int, Hit | None, int]:
        """Return the new state, the number of leading easy queries, and a hit with its exact count."""
        counts = self._data.exact_counts_many(queries)
        shifts = sparse.grid_bits - queries.grid_bits
        up, down = np.maximum(shifts, 0), np.maximum(-shifts, 0)
        gaps = counts - guesses << up >> down  # rounded down, and sensitivities up: `steps_down`
        sensitivities = -(-queries.sensitivities << up >> down)
        state, easy, hit = sparse.step_many(self._state, gaps, sensitivities, self._noise)
        return state, easy, hit, 0 if hit is None else int(counts[easy])

    def _measured(
        self, sparse: NumericSparse, hit: Hit, question: Question, guess: Guess, counts: int | Ints
    ) -> Measurement:
        """Return the released answer of a hit: the number, or all blocks of a partition."""
        if isinstance(question, BoundMarginal):
            target = question.partition
        else:
            chosen = self.released_by(question)
            if isinstance(chosen, Query):
                tested = guess if isinstance(guess, int) else 0
                return sparse.measure(hit, question, tested, counts, self._noise)
            target, counts = chosen, self._data.exact_counts(chosen)
        self._learn_sets(target)
        return sparse.measure(hit, target, 0, counts, self._noise)

    def released_by(self, question: Question) -> Query | Partition:
        """Return what a hit releases: settled before its test by the question and the transcript alone."""
        if isinstance(question, BoundMarginal):
            return question.partition
        if self._partitions is None or question.constant is not None:
            return question
        chosen = self._partitions.partition(question, self._held)
        return question if chosen is None else chosen

    def _learn_sets(self, *targets: Query | Partition) -> None:
        tables = (target for target in targets if isinstance(target, Partition))
        self._held = self._held.union(*map(sets_of, tables))  # at once: one by one takes a copy of all each

    def measure_tables(self, tables: FirstTables) -> None:
        """Release partitions with fresh noise before the first query, in one charge, to the ledger.

        Raises
        ------
        BudgetExceededError
            If the account cannot pay them, or has paid something where they are paid as its first release;
            nothing was spent.
        SessionSealedError
            As in `test`.
        """
        self.check_unsealed()
        account = self._ledger.account
        # theory 4.10 holds before anything else is released, easy tests among it, which cost nothing
        tested = tables.first is not None and any(
            isinstance(record, Easy | EasyBatch | Hard | Opened) for record in self._ledger.records()
        )
        if tables.first is not None and (account.spent or tested):
            raise BudgetExceededError(
                "first tables must be the first release of their account, got one that has tested, or of "
                f"which {float(account.spent / account.capacity):.4g} is used up; nothing was spent: open a "
                "session with a new ledger."
            )
        self._ledger.reserve(tables.charge)
        self._guarded(lambda: self._measured_tables(tables))

    def _measured_tables(self, tables: FirstTables) -> None:
        n = self._data.n
        released = []
        deviations = tables.deviations(n)
        for target, scale, deviation in zip(tables.targets, tables.scales, deviations, strict=True):
            counts = self._data.exact_counts(target)
            if tables.pure:
                drawn, unit = self._noise.discrete_laplace(scale, target.blocks), 1
            else:  # in parts of a record
                sigma, unit = scale.as_integer_ratio()
                drawn = self._noise.discrete_gaussian(sigma, target.blocks)
            released.append(Measurement(target, (counts * unit + drawn) / (n * unit), deviation))
        self._learn_sets(*tables.targets)
        self._record([Opened(tuple(released), tables.charge)])

    def _record(self, records: Sequence[Easy | EasyBatch | Hard | Opened]) -> None:
        """Commit what was released, behind which nothing private is left to do."""
        try:
            self._ledger.commit(records)
        except LedgerError:
            self._unwritten = True
            raise
        self._sealed = False

    def _guarded(self, private: Callable[[], None]) -> None:
        """Run what reads the data and ends with `_record`: sealed while it runs, for good if it fails.

        What pays for it still stands: nobody can have asked since, as the door of the session is closed.
        """
        if self._sealed or self._closed:
            self.check_unsealed()
        length = len(self._ledger)

        def failed(name: str, place: str, interrupted: bool) -> None:
            written = self._ledger.records(length)  # an update may have failed meanwhile, which is no release
            if interrupted and any(not isinstance(record, UpdateFailed) for record in written):
                self._sealed = False  # behind the commit: what was released is recorded, and all else done
                return
            self._sealed = True
            with contextlib.suppress(Exception):  # a reservation that cannot be burned still counts as spent
                self._ledger.burn()
            _log.error("session sealed: %s at %s", name, place)
            if self._unwritten and not interrupted:
                raise SessionSealedError(UNWRITTEN)

        self._sealed = True  # a second Ctrl-C finds it closed
        guarded(private, failed, SEALED)

    def close(self, record: Closed) -> None:
        """Test nothing more, and give the standing reservation back, but for what easy tests have used up."""
        self._closed = True  # first: nobody tests under what is given back
        if self._sealed or self._ledger.broken:  # what stands reserved may be all that pays for what was read
            with contextlib.suppress(LedgerError):  # of a file that cannot be written a restart burns it
                self._ledger.burn()
            return
        standing, kept = self._ledger.reserved, None
        if standing is not None and self._state.threshold_noise is not None:
            amount = self._now().sparse.unfinished(standing.amount, self._due)
            kept = attrs.evolve(standing, amount=amount, event="easy tests of a run that was closed")
        self._ledger.close(kept if kept is not None and kept.amount else None, record)

    def cost(self, question: Question) -> Fraction:
        """Return what a hit would cost now with all that it is owed, in the unit of the account.

        A hit uses up all that stands reserved, also what a dearer question before it has left standing.
        """
        standing = self._now()
        price = self._price(standing.sparse, question)
        serving = standing.covered if isinstance(question, BoundMarginal) else standing.serving
        if standing.reserved is not None and price <= serving:
            return standing.reserved.amount
        return price + self._due

    def threshold(self) -> float:
        """Return the threshold of the next test, fraction of records."""
        sparse = self._now().sparse
        return sparse.threshold / (self._data.n << sparse.grid_bits)

    def hard_left(self, owed: Fraction = Fraction(0), account: Filter | None = None) -> int:
        """Return how many hits of the largest price can at least be paid: as many as at that of the next.

        Parameters
        ----------
        owed : Fraction
            For first tables that are not bought yet.
        account : Filter, optional
            That of the ledger, unless it is not claimed for this mechanism yet.
        """
        if self._sealed:
            return 0
        left = (self._ledger.account if account is None else account).left - self._due - owed
        left -= self._spending.set_aside(self.spent)
        return max(0, int(left // self._dearest(self._now().sparse)))

    def restarts_left(self, owed: Fraction = Fraction(0)) -> int | None:
        """Return how often the session can be closed and resumed; None: any number, or it cannot be."""
        if not self._ledger.lasting:
            return None
        of_tables = self._partitions is not None
        return restarts_left(self._spending, self._data.domain, of_tables, self.spent, self._due, owed)

    def _dearest(self, sparse: NumericSparse) -> Fraction:
        held = self._dearest_of
        if held[0] is not sparse:
            price = dearest_hit(sparse, self._data.domain, self._partitions is not None)
            self._dearest_of = held = (sparse, price)
        return held[1]

    def _price(self, sparse: NumericSparse, question: Question) -> Fraction:
        if isinstance(question, BoundMarginal):
            return sparse.price(question.partition).amount
        held, prices = self._priced
        if held is not sparse:
            prices = {}
            self._priced = (sparse, prices)
        key = (question.sensitivity, question.grid_bits)
        if key not in prices:
            number = sparse.price(question).amount
            # a hit of a partition session costs what a partition does, or the number that is released
            # instead: which of the two, no test can change
            prices[key] = number if self._partitions is None else max(number, self._table_price(sparse))
        return prices[key]

    def _table_price(self, sparse: NumericSparse) -> Fraction:
        return sparse.price(one_way(self._data.domain, 0)).amount

    def __repr__(self) -> str:
        return f"Curator({self._data!r}, {self._ledger!r})"


def _different(prices: list[Fraction]) -> Iterable[Fraction]:
    """Return each object among the prices once: most questions of a batch share one, and hashing is slow."""
    return prices if len(prices) == 1 else {id(price): price for price in prices}.values()
