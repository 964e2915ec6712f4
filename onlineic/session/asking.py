"""A session as one of several askers has it: the same answers, paid from a quota, one outcome a question."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Protocol, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.ask.bind import check_many
from onlineic.ask.places import without_python
from onlineic.errors import InvalidParameterError, OnlineICError, checked_list, shown
from onlineic.ledger.records import Certified, Easy, EasyBatch, Hard, Ledger, Single
from onlineic.queries.answers import Answer
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.within import Within, checked_within
from onlineic.questions.derived import Answering
from onlineic.questions.linear import Estimate, PublicFacts
from onlineic.session.explain import Explanation, explained
from onlineic.session.loop import Loop
from onlineic.session.quota import Quota


@final
@attrs.frozen
class Outcome:
    """What became of one question of several: an answer, or a refusal that left the others alone.

    Attributes:
        at: Place in the transcript of the record that told it; None of what no record tells of: a constant,
            an untested answer, a refusal.
        error: Why it was refused; one of the two is None.
    """

    answer: Answer | None = None
    at: int | None = None
    error: OnlineICError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, which `json.dumps` takes: the answer with `at`, or code and message.

        The message's remedy is in JSON.
        """
        if self.answer is not None:
            return {**self.answer.to_dict(), "law": self.answer.law, "at": self.at}
        error = self.error or OnlineICError("refused")
        return {"error": {"code": error.code, "message": without_python(str(error))}}


@final
class Places:
    """Where in the record each question was released; brought up to date when it is asked."""

    __slots__ = ("_found", "_seen")

    def __init__(self) -> None:
        self._found: dict[Any, int] = {}
        self._seen = 0

    def of(self, ledger: Ledger, key: Any) -> int | None:
        """Return the latest place at which a question with this key was released."""
        self.take(ledger)
        return self._found.get(key)

    def before(self, length: int, key: Any) -> int | None:
        """Return the place of the latest release taken in, if it stands among so many records."""
        place = self._found.get(key)
        return place if place is not None and place < length else None

    def take(self, ledger: Ledger) -> None:
        """Take in what the ledger has grown by."""
        for place, record in enumerate(ledger.records(self._seen), self._seen):
            if isinstance(record, Easy | Certified | Hard | Single):
                self._found[record.query.key] = place
            elif isinstance(record, EasyBatch):
                self._found.update((query.key, place) for query in record.queries)
        self._seen = len(ledger)


class Run(Protocol):
    """Runs an act alone in the session, paid by one quota."""

    def __call__(self, act: Callable[[], Any], /) -> Any: ...


@final
class Asking(Answering):
    """A session with the quota of one asker; made by `OnlineIC.paid_by`."""

    def __init__(
        self,
        session: Answering,
        loop: Callable[[], Loop],
        run: Run,
        places: Places,
        quota: Quota | None = None,
    ) -> None:
        self._session, self._loop, self._run, self._places = session, loop, run, places
        self._quota = quota

    @property
    def facts(self) -> PublicFacts:
        facts = self._session.facts
        return facts if self._quota is None else facts.of_asker(self._quota.finest)

    @property
    def paid(self) -> Fraction:
        """What the asker has paid, as a part of the budget; without a quota all that is spent."""

        def told() -> Fraction:
            self._loop().book.catch_up()
            account, payments = self._loop().ledger.account, self._loop().core.payments
            spent = account.spent if self._quota is None else payments.by(self._quota.name)
            return spent / account.capacity

        found: Fraction = self._run(told)  # alone: what is added up now is added up once
        return found

    def _wish(self, within: float | Within | None) -> Within | None:
        """Return how exact answers are to be; None: as nobody has said.

        Raises:
            TooFineWishError: If the asker may have no such wish.
        """
        if within is None:
            return self.facts.within
        wish = checked_within(within)
        if self._quota is not None:
            self._quota.check(wish)
        return wish

    def unprojected(self, queries: Iterable[Any]) -> list[Estimate | None]:
        return self._session.unprojected(queries)

    @property
    def length(self) -> int:
        """Records in the transcript."""
        return len(self._loop().ledger)

    def answer(self, query: Any, *, within: float | Within | None = None) -> Answer:
        """Answer one query, as `OnlineIC.answer`; untested where the quota cannot pay."""
        wish = self._wish(within)
        found: Answer = self._run(lambda: self._loop().answer(query, wish))
        return found

    def answer_many(self, queries: Any, *, within: float | Within | None = None) -> Any:
        """Answer queries in order, as `OnlineIC.answer_many`."""
        check_many(queries)
        asked, wish = checked_list("queries", queries, remedy="write [query, ...]"), self._wish(within)
        return self._run(lambda: self._loop().answer_many(asked, wish))

    def answer_within(self, queries: Iterable[Any], within: Within) -> list[Answer]:
        """Answer the queries of one call, each within a wish, as `OnlineIC.answer_within`."""
        return [*self.answer_many([*queries], within=within)]

    def buy_call(self, queries: Iterable[Any], within: Within) -> dict[Any, float]:
        """Buy what a call needs as a whole to be answered within a wish: its questions follow one by one.

        Returns:
            What it cost of the budget, in equal parts, by the keys of the questions.
        """
        asked, wish = checked_list("queries", queries), self._wish(within)

        def bought() -> dict[Any, float]:
            core = self._loop().core
            return core.buy_call([*map(core.bound, asked)], wish or within)

        found: dict[Any, float] = self._run(bought)
        return found

    def believed(self, queries: Iterable[Any]) -> list[float]:
        """Return what the hypothesis says of each query, as `OnlineIC.believed`."""
        return self._session.believed(queries)

    def outcomes(
        self, questions: Iterable[Any], within: Iterable[Within | None] = itertools.repeat(None)
    ) -> list[Outcome]:
        """Answer questions in order, each by itself: one that is refused leaves the others alone.

        The answers are those of one call of `answer` each.

        Args:
            within: How exact each is to be; None: as the session wishes.
        """
        asked = checked_list("questions", questions, remedy="write [question, ...]")
        pairs = list(zip(asked, within, strict=False))

        def each() -> list[Outcome]:
            return [self._outcome(question, wish) for question, wish in pairs]

        found: list[Outcome] = self._run(each)
        return found

    def count(self, told: Iterable[Answer]) -> None:
        """Count constants and repeats that were told from a `View`, as if they had been asked here."""
        answers = list(told)

        def counted() -> None:
            counts = Counter(answer.status for answer in answers)
            roundings = (answer.query.rounding for answer in answers if answer.query is not None)
            self._loop().book.count_untaken(counts, max(roundings, default=0.0))

        self._run(counted)

    def _outcome(self, question: Any, within: Within | None) -> Outcome:
        loop = self._loop()
        try:
            answer = loop.answer(question, self._wish(within))
        except OnlineICError as error:
            return Outcome(error=error)
        tested = answer.status != "untested" and answer.query is not None and answer.query.constant is None
        key = answer.query.key if tested and answer.query is not None else None
        return Outcome(answer, self._places.of(loop.ledger, key) if tested else None)

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return bounds that hold at once, as `OnlineIC.joint_bounds`."""
        return self._session.joint_bounds(queries, answers)

    def snapshot(self, queries: Iterable[Any], answers: Iterable[Answer]) -> list[Answer]:
        """Return these answers as the hypothesis says them now, as `OnlineIC.snapshot`."""
        return self._session.snapshot(queries, answers)

    def explain(self, question: Any, *, within: float | Within | None = None) -> Explanation:
        """Return what a question may cost this asker and what it is worth, as `OnlineIC.explain`."""
        wish = None if within is None else self._wish(within)
        found: Explanation = self._run(lambda: explained(self._loop(), question, wish, self._quota))
        return found


def check_answers(asked: Sequence[Question], given: Sequence[Any]) -> None:
    """Raise `InvalidParameterError` unless these are as many answers as questions, each of its shape."""
    if len(given) != len(asked) or not all(isinstance(answer, Answer) for answer in given):
        raise InvalidParameterError(
            f"answers must be the answers to these {len(asked)} queries, got {len(given)} objects; "
            "give one Answer a query, in their order."
        )
    for place, (question, answer) in enumerate(zip(asked, given, strict=True)):
        shape = question.cells.shape if isinstance(question, BoundMarginal) else ()
        if np.shape(answer.value) != shape:  # numpy would spread a number over a table
            raise InvalidParameterError(
                f"answers[{place}] must have shape {shape}, as {shown(question, 200)} has, got "
                f"{np.shape(answer.value)}; give one Answer a query, in their order."
            )
