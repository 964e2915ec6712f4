"""Algorithm OnlineIC (Dwork & Roth 2014, section 5.2.2, Algorithm 11): the loop that every session runs.

======================================================  ==================================================
the book                                                here
======================================================  ==================================================
NumericSparse with threshold T and c hard answers       `Prices`: the mechanism of the next test, its price
D^1: the start of the rule U                            `AnswerBook.belief`
for each query f_t in the stream:                       `Core.answer`: bind; known?
  (nothing is bought without a test)                    `Core.buy`: what the purchase rule names
  f_{2t-1} = f_t - f_t(D^t), f_{2t} = f_t(D^t) - f_t    guess: the number that is tested, and released if easy
  a = NumericSparse(f_{2t-1}, f_{2t})                   cover, then `Core._test`: read and step
  if a is bottom twice: answer f_t(D^t)                 record `Easy`
  else: answer f_t(D^t) + a, or f_t(D^t) - a            measure, record `Hard`
        D^{t+1} = U(D^t, f_t, answer)                   `AnswerBook.take`: learn
======================================================  ==================================================

What varies is handed over: mechanism, threshold, prices in `Prices`; update rule and bounds in `AnswerBook`;
what is bought without a test in the `PurchaseRule`. Tables are read between a reservation and a commit.

Proof: docs/theory/queries.md, 1.6; docs/theory/session.md, 4.1, 4.2, 4.9, 4.9a,
4.11.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any, final

import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Charge
from onlineic.ask.bind import bind_question
from onlineic.data.private import PrivateData
from onlineic.data.release import is_private
from onlineic.errors import InternalError, InvalidParameterError, shown
from onlineic.ledger.records import BoughtTables, Certified, Easy, EasyBatch, Hard, Single
from onlineic.noise.sources import Noise
from onlineic.plan.demand import opens_with
from onlineic.plan.purchase import Purchase, check_bought, is_single
from onlineic.plan.purchase_rule import Purchases
from onlineic.plan.within import MOST_HEARD, tester_within
from onlineic.progress import advance
from onlineic.queries.answers import Answer
from onlineic.queries.marginals import BoundMarginal, Guess, Question
from onlineic.queries.query import Query
from onlineic.queries.within import Within
from onlineic.session.answers import AnswerBook
from onlineic.session.askable import check_supported
from onlineic.session.fetching import Fetching
from onlineic.session.prices import Cover, Prices
from onlineic.session.quota import Payments
from onlineic.session.read_guard import ReadGuard
from onlineic.sparse.base import Hit, NumericSparse, SparseState, steps_down


@final
class Core:
    """The private table, the public record, and the algorithm between them; one call at a time.

    Args:
        book: Of a ledger that is claimed for the account of the plan's mechanism. All that is released goes
            there, and comes from there.
        n: By which counts are fractions, where the number of records is private; None: that of the data.

    Attributes:
        fresh: The answer that a purchase of this call has brought, until it is told.
    """

    def __init__(self, data: PrivateData, noise: Noise, book: AnswerBook, n: int | None = None) -> None:
        plan, ledger, self.prices = book.plan, book.ledger, Prices(book, data.domain)
        entered = partial(data.knows, ledger) if is_private(noise) else partial(bool, True)
        self._data, self._noise, self._ledger, self._bits = data, noise, ledger, plan.weight_bits
        self.book, self.read_guard, self._n = book, ReadGuard(ledger, entered), data.mass if n is None else n
        self.purchases = Purchases(
            plan.purchases, ledger, data.domain, self._n, plan.sparse, plan.tested_beta, book, book.slack
        )
        self._planned, self.payments = opens_with(plan.purchases) is not None, Payments(ledger, book)
        self._sparse, self.fetching = plan.sparse, Fetching(data, self.prices, self.read_guard)
        self.fresh: Answer | None = None
        self._state: SparseState = plan.sparse.init()  # holds the secret threshold noise: never shown

    def answer(self, asked: Any) -> Answer:
        """Answer one query, as `OnlineIC.answer` says."""
        return self.answer_bound(self.bound(asked))

    def bound(self, asked: Any) -> Question:
        """Return a question bound to the domain and the grid, if the session can answer it."""
        self.read_guard.check_open()
        question = bind_question(asked, self._data.domain, self._bits)
        self.book.catch_up()  # what an interrupted call has recorded is a repeat
        self.fresh = None
        check_supported(question, self._sparse, self.book.state.belief.hypothesis, self.fetching.reach)
        return question

    def answer_bound(self, question: Question) -> Answer:
        """Answer a question that is bound, after what the rule buys before it."""
        if self.fresh is not None and (bought := self.bought(question)) is not None:
            return bought
        if (known := self.book.recalled(question)) is not None:
            return known
        before = self.book.state
        testable = self._buy_unknown((question,))
        if self.book.state is not before:  # what was bought, or told to a callback, may be the answer
            known = self.bought(question)
            if known is not None or (known := self.book.recalled(question)) is not None:
                return known
        guess = self.book.guesses((question,))[0]
        cover = self.cover((question,)) if testable else None
        if cover is None or not cover.payable[0]:
            return self.book.untested(question)
        self.test(cover, (guess,))
        return self.book.answered()

    def bought(self, question: Question) -> Answer | None:
        """Return what a purchase of this call has brought, if it answers just this question; once."""
        answer = self.fresh
        asked = None if answer is None else answer.query
        if asked is None or (asked.key, asked.complement) != (question.key, question.complement):
            return None  # it may be of a later question of the call
        self.fresh = None
        return answer

    def cover(self, questions: Sequence[Question]) -> Cover:
        """Set aside the price of a hit, and return which of the leading questions it pays."""
        self.read_guard.check()
        if self.book.state.records < len(self._ledger):  # no test begins with records pending
            self.book.catch_up()
        if self.payments.quota is not None:
            count, afforded = self.payments.leading(questions, self.prices.cost)
            if not afforded:
                return Cover([False] * count, (), self._sparse, None)
            questions = questions[:count]  # of others nothing is counted where the table stays
        if self.fetching.reach is not None:
            self.fetching.before_tests(questions)
        return self.prices.cover(questions)

    def buy(self, questions: tuple[Question, ...]) -> bool:
        """Buy all that the rule names before the first of these questions: reserved, drawn and recorded.

        No quota pays for what is bought whatever is asked: the questions of somebody who has something left
        are heard for it. Who cannot pay for the number, or the tables, of their question alone has what is
        bought whatever is asked in its place, or if there is no such thing a test. Return False where the
        tables of a call cannot be paid, or nothing is left to who asks: that sets nothing in motion. A number
        is bought last: it is the answer.
        """
        if questions and all(map(self.book.remembers, questions)):
            return not self.payments.empty
        return self._buy_unknown(questions)

    def _buy_unknown(self, questions: tuple[Question, ...]) -> bool:
        """Buy before questions of which one is not known, or before none, as `buy` says."""
        asker = self.payments.payer
        if asker is not None and self.payments.empty:
            return False  # without working out what would be bought, which takes as long as ten answers
        while self.read_guard.usable:
            if (named := self.purchases.next(questions)) is None:
                break
            payer, heard, alone = asker, questions, is_single(named, questions)
            # what one question asks serves it alone, whatever else is due
            if asker is not None and not alone and self.purchases.due is not None:
                payer = None
            elif not self._affords(named):
                if not alone:
                    return False
                if (due := self.purchases.due) is None:
                    break  # a test may cost less
                named, payer, heard = due, None, ()
            if payer is not asker and not any(one.constant is None for one in questions[:1]):
                return False  # a question that nobody needs to ask
            self._purchase(named, heard, payer)
            self.fresh = self.book.catch_up()
            if questions and all(map(self.book.remembers, questions)):
                break
        return True

    def answer_within(self, questions: Sequence[Question], within: Within) -> list[Answer]:
        """Answer the questions of one call, each as exactly as was wished, for no more than that costs.

        A question that what was bought for the call leaves open is bought by itself.
        """
        begun = len(self._ledger)
        self.buy_call(questions, within)
        answers = [self._within(question, within) for question in questions]
        if not (parts := self._tables_since(begun)):
            return answers
        own = [parts.pop(question.key, 0.0) for question in questions]
        return [answer.costing(more) for answer, more in zip(answers, own, strict=True)]

    def buy_call(self, questions: Sequence[Question], within: Within) -> dict[Any, float]:
        """Buy what a call needs as a whole, where that costs less than its numbers.

        The call is fixed before anything of it is bought: so tables for all of it may answer each of its
        questions by their own noise. Return what it cost of the budget, in equal parts, by the questions.
        """
        self.read_guard.check()
        begun = len(self._ledger)
        if not self.purchases.meets_wishes:
            raise InvalidParameterError(
                f"within must be None in a session that does not buy by what is asked, got {shown(within)}; "
                "open OnlineIC(data, budget, within=..), or without update, purchases and release."
            )
        if len(questions) > 1:  # of one alone `_within` asks the same
            new = {one.key: one for one in questions if not self.book.meets(one, within)}
            if len(new) > 1:
                self._buy_within((*new.values(),)[:MOST_HEARD], within)
        return self._tables_since(begun)

    def _tables_since(self, begun: int) -> dict[Any, float]:
        """Return what tables for wishes have cost since then, in equal parts by their questions."""
        parts, capacity = dict[Any, Fraction](), self._ledger.account.capacity
        for record in self._ledger.records(begun):
            if isinstance(record, BoughtTables) and record.within is not None:
                each = record.charge.amount / len(record.heard)
                parts |= {one.key: parts.get(one.key, Fraction(0)) + each for one in record.heard}
        return {key: float(part / capacity) for key, part in parts.items()}

    def _within(self, question: Question, within: Within) -> Answer:
        """Return the answer to one question, after what it needs was bought, if that can be paid."""
        while True:
            self.fresh = self.book.catch_up()
            if (bought := self.bought(question)) is not None:
                return bought
            if (known := self.book.within(question, within)) is not None:
                return known
            self.read_guard.check()
            if self._test_within(question, within):
                return self.book.answered()
            if not self._buy_within((question,), within):
                return self.book.wide(question)

    def _test_within(self, question: Question, within: Within) -> bool:
        """Test a question at the height that certifies a wish, if that is likely to cost less than a number.

        What stands reserved is replaced: at delta > 0 easy tests have used up nothing of it.
        """
        wish = None if self.payments.empty else self.purchases.test(question, within)
        if wish is None or not isinstance(question, Query):
            return False
        plan = self.book.plan
        tester = tester_within(plan.sparse, question, wish, plan.tested_beta)
        if tester is None or not self.payments.affords(tester.price(question).amount):
            return False
        (guess,) = self.book.guesses((question,))
        self.fetching.before_tests((question,))
        price = tester.price(question)
        self._ledger.reserve(price)
        step = partial(self._measure_within, tester, question, guess, wish)
        self.read_guard.run(step, price, self.payments.payer)
        return True

    def _measure_within(self, tester: NumericSparse, query: Query, guess: Guess, within: Within) -> None:
        """Read, test at this height, measure if it is hard, record: from here on frames hold secrets."""
        counts, charge = self._data.exact_counts(query), self._ledger.reserved
        if charge is None or not isinstance(guess, int):
            raise InternalError("a test must be reserved before the data are read.")
        gap = steps_down(counts - guess, query.grid_bits, tester.grid_bits)
        state, hit = tester.step(self._state, gap, tester.tested_by(query), self._noise)
        record: Certified | Hard = Certified(query, guess, within)
        if hit is not None:
            record = Hard(
                query, guess, tester.measure(hit, query, guess, counts, self._noise), charge, within
            )
        self._record(state, [record], self.payments.payer)

    def _buy_within(self, questions: tuple[Question, ...], within: Within) -> bool:
        """Buy what the rule names for questions that are not known within a wish; who asks pays for it."""
        named = None if self.payments.empty else self.purchases.within(questions, within)
        if named is not None and not self._affords(named) and len(questions) == 1:
            named = self.purchases.number(questions[0], within)  # in the place of tables for later ones
        if named is None or not self._affords(named):
            return False
        self._purchase(named, questions, self.payments.payer, within)
        return True

    @property
    def unfinished(self) -> Charge | None:
        """What tests against a kept threshold have used up, which is paid before anything is bought."""
        return self.prices.unfinished(self._state.threshold_noise is not None)

    def _affords(self, named: Purchase) -> bool:
        """Return whether who asks may spend what this costs, and what tests have used up before it."""
        used = self.unfinished
        return self.payments.affords(named.charge.amount + (used.amount if used else 0))

    def _purchase(
        self,
        named: Purchase,
        questions: tuple[Question, ...],
        payer: str | None,
        within: Within | None = None,
    ) -> None:
        """Reserve, draw and record what a rule named.

        Nothing is bought where it is to be named anew: who is told of the progress asked meanwhile, or what
        tests have used up was paid.
        """
        alone = is_single(named, questions)
        guess: Guess = 0
        used = self.unfinished
        length = len(self._ledger)
        advance("tables", 0, 1)  # who stops it here has changed nothing
        if len(self._ledger) > length:
            return  # who asked here has moved what is named, and what tests have used up
        sparse, domain = self.prices.sparse, self._data.domain
        tables = check_bought(named, self._ledger, sparse, domain, self._planned, questions)
        if alone:
            guess = self.book.guesses(questions)[0]
            self.fetching.before_number(questions[0])
        else:
            self.fetching.before_tables(tables.partitions)
        if used is not None and self.payments.settle(payer, used, tables.charge):
            return  # of what is left the rule names something else, or nothing
        self._ledger.reserve(tables.charge)
        if alone:
            step = partial(self._measure_single, tables, questions[0], guess, payer, within)
        else:
            step = partial(self._measure_tables, tables, questions, payer, within)
        self.read_guard.run(step, tables.charge, payer)
        advance("tables", 1, 1)

    def test(self, cover: Cover, guesses: Any) -> None:
        """Test covered questions in order up to the first hit, which is measured; all goes to the ledger."""
        if cover.charge is None:
            raise InternalError("a test must be reserved before the data are read.")
        step: Any = self._test_many if len(cover.questions) > 1 else self._test
        self.read_guard.run(partial(step, cover, guesses), cover.charge, self.payments.payer)

    def close(self) -> None:
        """Test nothing more, and give the standing reservation back, but for what easy tests have used up."""
        drawn = self._state.threshold_noise is not None
        self.read_guard.close(self.book.closing(), lambda: self.prices.unfinished(drawn))

    def _test(self, cover: Cover, guesses: Sequence[Guess]) -> None:
        """Read, test, measure if it is hard, record: from here on frames hold private numbers."""
        sparse, (question,), (guess,) = cover.sparse, cover.questions, guesses
        if isinstance(question, BoundMarginal):
            counts: Any = self._data.exact_counts(question.partition)
            gap = question.largest_gap(counts, guess) << sparse.grid_bits
            state, hit = sparse.step_table(self._state, gap, self._noise)
        else:
            counts = self._data.exact_counts(question)
            gap = steps_down(counts - guess, question.grid_bits, sparse.grid_bits)
            state, hit = sparse.step(self._state, gap, sparse.tested_by(question), self._noise)
        record = Easy(question, guess) if hit is None else self._measured(cover, hit, question, guess, counts)
        self._record(state, [record], self.payments.payer)

    def _test_many(self, cover: Cover, guesses: Ints) -> None:
        queries: Any = cover.questions
        sparse, counts = cover.sparse, self._data.exact_counts_many(queries)
        gaps = steps_down(counts - guesses, queries.grid_bits, sparse.grid_bits)
        state, easy, hit = sparse.step_many(self._state, gaps, sparse.tested_by(queries), self._noise)
        records: list[Any] = [EasyBatch(queries[:easy], np.array(guesses[:easy], np.int64))] if easy else []
        if hit is not None:
            hard = self._measured(cover, hit, queries[easy], int(guesses[easy]), int(counts[easy]))
            records.append(hard)
        self._record(state, records, self.payments.payer)

    def _measured(self, cover: Cover, hit: Hit, question: Question, guess: Guess, counts: Any) -> Hard:
        """Return what a hit releases: the number with fresh noise, or all blocks of a partition.

        By the mechanism that tested it, of which the price was set aside, whoever looks at prices meanwhile.
        """
        charge, target = cover.charge, self.prices.target(question)
        if charge is None or self._ledger.reserved != charge:
            raise InternalError("a hit must be reserved before the data are read.")
        tested = guess if isinstance(target, Query) and isinstance(guess, int) else 0
        if target is not question and not isinstance(question, BoundMarginal):
            counts = self._data.exact_counts(target)
        measured = cover.sparse.measure(hit, target, tested, counts, self._noise)
        return Hard(question, guess, measured, charge)

    def _measure_tables(
        self, tables: Purchase, heard: tuple[Question, ...], payer: str | None, within: Within | None
    ) -> None:
        released = tables.measure(map(self._data.exact_counts, tables.targets), self._noise, self._n)
        self._record(self._state, [BoughtTables(released, tables.charge, heard, within)], payer)

    def _measure_single(
        self,
        tables: Purchase,
        question: Question,
        guess: Guess,
        payer: str | None,
        within: Within | None,
    ) -> None:
        (target,) = tables.targets
        (released,) = tables.measure((self._data.exact_counts(target),), self._noise, self._n)
        self._record(self._state, [Single(question, guess, released, tables.charge, within)], payer)

    def _record(self, state: SparseState, records: list[Any], payer: str | None) -> None:
        """Commit what was released, and who pays for it: nothing private is left to do."""
        self._state = state
        self.read_guard.commit(records, payer)
