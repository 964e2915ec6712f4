"""Mechanisms that break their promise, each by one slip: an audit that does not find them finds nothing.

Two families. `THRESHOLD_BREACHES` are variants of the sparse vector technique as they were published or
printed, and of ours; their losses are exact sums. `SESSION_BREACHES` are slips around it, planted in the
running engine through what a user may bring: noise, ledger and update rule. `RECORD_BREACHES` are such slips
that the record itself tells.
"""

import warnings
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints, Words
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.audit.laws import Law, ThresholdRule, worst_loss
from onlineic.audit.ledgers import verified
from onlineic.data.private import PrivateData
from onlineic.domain.domain import Domain
from onlineic.errors import MoreThanAnnouncedWarning, WideBoundWarning
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.histogram import Histogram
from onlineic.ledger.book import Book
from onlineic.ledger.kinds import line_of
from onlineic.ledger.lines import canonical_text, chained
from onlineic.ledger.memory import MemoryLedger
from onlineic.ledger.records import (
    BoughtTables,
    Closed,
    Committed,
    Hard,
    Ledger,
    Record,
)
from onlineic.ledger.settings import beginning_of, package_version, settings_to_json
from onlineic.noise.sources import Noise
from onlineic.plan.defaults import RULES
from onlineic.plan.planning import settled_purchases
from onlineic.plan.settings import Settings
from onlineic.plan.spending import Spent
from onlineic.queries.expressions import Expression, dense, one_of, where
from onlineic.queries.partitions import Measurement
from onlineic.session.durable import KNOWN
from onlineic.session.session import OnlineIC
from onlineic.updates.base import UpdateRule
from onlineic.updates.multiplicative_weights import MultiplicativeWeights


@final
@attrs.frozen
class ThresholdBreach:
    """A variant of the sparse vector technique that was claimed to cost `claimed`.

    Attributes:
        claimed: Epsilon.
        released: What a hit shows; "value" is the noisy value that was compared.
    """

    name: str
    rule: ThresholdRule
    claimed: float = 1.0
    released: Literal["bit", "value"] = "bit"

    def loss(self) -> float:
        """Return the largest |ln P/P'| of the family of `worst_loss`: above `claimed`."""
        return worst_loss(self.rule, released=self.released)


def _laplace(scale: float | Fraction) -> Law:
    return Law("discrete_laplace", Fraction(scale))


_NONE = Law("none")

# Lyu, Su & Li (2017), Figure 1, at epsilon = 1 and c = 3 hits; then what two textbooks print
THRESHOLD_BREACHES = (
    ThresholdBreach(
        "Lyu, Su & Li, Algorithm 3: the noisy value that was compared is released",
        ThresholdRule(60, _laplace(2), _laplace(6), 3),
        released="value",
    ),
    ThresholdBreach(
        "Lyu, Su & Li, Algorithm 4: test noise without the number of hits",
        ThresholdRule(60, _laplace(4), _laplace(Fraction(4, 3)), 3),
    ),
    ThresholdBreach(
        "Lyu, Su & Li, Algorithm 5: no test noise, no end", ThresholdRule(60, _laplace(2), _NONE, 3)
    ),
    ThresholdBreach("Lyu, Su & Li, Algorithm 6: no end", ThresholdRule(60, _laplace(2), _laplace(2), 12)),
    ThresholdBreach(
        "Sparse as printed: half of the test noise that a kept threshold needs",
        ThresholdRule(60, _laplace(2), _laplace(6), 3),
    ),
    ThresholdBreach(
        "AboveThreshold with test noise 4/(3 epsilon)",
        ThresholdRule(60, _laplace(2), _laplace(Fraction(4, 3))),
    ),
    ThresholdBreach("AboveThreshold without threshold noise", ThresholdRule(60, _NONE, _laplace(4))),
    ThresholdBreach(
        "a threshold drawn again at the noise of one that is kept",
        ThresholdRule(
            60, _laplace(Fraction(43, 10)), _laplace(Fraction(78, 10)), 3, redraw=_laplace(Fraction(43, 10))
        ),
    ),
)


DOMAIN = Domain.of(x=4)
TABLE, NEIGHBOUR = (20, 0, 10, 10), (19, 1, 10, 10)  # one record replaced
BUDGET = Budget(1.0)
# two numbers are bought, whatever the table
PLAIN: dict[str, object] = {
    "sparse": "laplace",
    "threshold": 0.01,
    "hard_answers": 2,
    "update": MultiplicativeWeights(rate=0.1),
}

Slip = Callable[[Noise, PrivateData], dict[str, object]]


@final
@attrs.frozen
class SessionBreach:
    """A session of the running engine, of claimed epsilon 1, with a slip in what it was given.

    Attributes:
        slip: From a source of noise and the table to settings of `OnlineIC`; None: there is no slip.
        look: What is looked at: two answers; a third one; or what was charged.
    """

    name: str
    slip: Slip | None = None
    claimed: float = 1.0
    look: Literal["numbers", "learned", "spent"] = "numbers"

    def run(self, counts: tuple[int, ...], noise: Noise) -> Hashable:
        """Return what an analyst makes of two answers of one session on this table."""
        data = PrivateData(np.array(counts), DOMAIN)
        settings = PLAIN | {"noise": noise} | (self.slip(noise, data) if self.slip is not None else {})
        session = OnlineIC(data, BUDGET, **settings)  # type: ignore[arg-type]
        first, second = (session.answer(where(x=cell)) for cell in (0, 1))
        if self.look == "spent":
            return "spent", session.statistics().spent
        if self.look == "learned":  # untested, or tested and easy: what the hypothesis says
            third = session.answer(where(x=one_of(0, 2)))
            return "learned", round(data.n * third.value)
        if second.hard:
            return first.hard, "difference", round(data.n * (first.value - second.value))
        return first.hard, "easy", round(data.n * second.value)


def _different(count: int) -> list[Expression]:
    """Return different queries."""
    return [dense([1.0, 0.0, (place % 5) / 8, (place // 5) / 8]) for place in range(count)]


@final
@attrs.frozen
class RecordBreach:
    """A session of the running engine with a slip in its ledger, which the record itself gives away.

    Attributes:
        ledger: Makes the ledger; None: there is no slip.
        settings: Of `OnlineIC`.
    """

    name: str
    ledger: Callable[[], Ledger] | None = None
    settings: dict[str, object] = attrs.field(
        factory=lambda: {
            "purchases": settled_purchases(DOMAIN, sum(TABLE), Settings(BUDGET, hard_answers=2)),
            "hard_answers": 2,
        }
    )
    claimed: float = 1.0

    def found(self) -> tuple[float, tuple[str, ...]]:
        """Return what releases cost, whatever was charged, with what is left; and what is found."""
        settings = {"update": MultiplicativeWeights(rate=0.1)} | self.settings
        ledger = MemoryLedger() if self.ledger is None else self.ledger()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WideBoundWarning)
            warnings.simplefilter("ignore", MoreThanAnnouncedWarning)  # one number is announced, 25 are asked
            session = OnlineIC(PrivateData(np.array(TABLE), DOMAIN), BUDGET, ledger=ledger, **settings)  # type: ignore[arg-type]
            for query in _different(25):
                session.answer(query)
        plan, records = session.plan, ledger.records()
        book, start = Book(plan.sparse.account()), plan.sparse.start_charge()
        cost = Fraction(0) if plan.first_tables is None else plan.first_tables.charge.amount
        cost += sum(
            record.charge.amount for record in [one for one in records if isinstance(one, BoughtTables)][1:]
        )
        if start is not None and any(isinstance(record, Hard) for record in records):
            cost += start.amount  # paid with the first of them
        spent = Spent()
        for record in records:
            if isinstance(record, Hard):  # whatever it was charged: the mechanism that ran
                cost += plan.spending.at(spent).price(record.measurement.target).amount
            book, spent = book.after(record), plan.spending.after(spent, record)
        beginning = beginning_of(
            created="",
            version=package_version(),
            rules=RULES,
            table=self.name,
            domain=DOMAIN,
            n=sum(TABLE),
            account=plan.sparse.account(),
            settings={
                name: settings_to_json(value, KNOWN)
                for name, value in ({"budget": BUDGET} | settings).items()
            },
            plan=settings_to_json(plan, KNOWN),
        )
        lines = [beginning, *map(line_of, records)]
        texts = [canonical_text({**line, "at": place}) for place, line in enumerate(lines)]
        return float(cost + book.account.left), verified(chained((text, None) for text in texts)).problems


@final
class _Slipped(Noise):
    """Another source's noise, changed by one function of a whole draw."""

    def __init__(self, source: Noise, change: Callable[[Ints], Ints]) -> None:
        self._source, self._change = source, change

    @property
    def simulated(self) -> bool:
        return self._source.simulated

    def words(self, size: int) -> Words:
        return self._source.words(size)

    def geometric(self, scale: Fraction, size: int) -> Ints:
        return self._change(self._source.geometric(scale, size))

    def discrete_laplace(self, scale: Fraction, size: int) -> Ints:
        return self._change(self._source.discrete_laplace(scale, size))

    def discrete_gaussian(self, sigma: int, size: int) -> Ints:
        return self._change(self._source.discrete_gaussian(sigma, size))

    @property
    def calls(self) -> int:
        return self._source.calls

    def unread(self, count: int, since: int) -> None:
        self._source.unread(count, since)

    def check_outside(self) -> None:
        self._source.check_outside()


class _Echo:
    """The first value, for ever."""

    def __init__(self) -> None:
        self._first: int | None = None

    def __call__(self, drawn: Ints) -> Ints:
        if self._first is None:
            self._first = int(drawn[0])
        return np.full_like(drawn, self._first)


@final
class _Peeking(UpdateRule[Histogram]):
    """A rule that was built from the table, and learns it at the first hit."""

    def __init__(self, data: PrivateData) -> None:
        shares = [data.exact_counts(where(x=cell).bind(DOMAIN)) / data.n for cell in range(4)]
        self._learned = Histogram(DOMAIN, np.maximum(shares, 1e-12))

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Histogram:
        return Histogram(domain)

    def update(self, hypothesis: Histogram, measurements: tuple[Measurement, ...], alpha: float) -> Histogram:
        return self._learned

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return None


class _Kept(Ledger):
    """A ledger in memory, of which one step is another."""

    def __init__(self) -> None:
        self._kept = MemoryLedger()

    def claim(self, owner: object, account: Filter, private: bool = True) -> None:
        self._kept.claim(owner, account, private)

    def give_back(self, owner: object) -> None:
        self._kept.give_back(owner)

    @property
    def account(self) -> Filter:
        return self._kept.account

    @property
    def reserved(self) -> Charge | None:
        return self._kept.reserved

    def reserve(self, charge: Charge) -> None:
        self._kept.reserve(charge)

    def commit(self, records: Sequence[Committed], payer: str | None = None) -> None:
        self._kept.commit(records, payer)

    def forfeit(self, payer: str | None = None) -> None:
        self._kept.forfeit(payer)

    def pay(self, kept: Charge, payer: str | None = None) -> None:
        self._kept.pay(kept, payer)

    def close(self, kept: Charge | None, record: Closed) -> None:
        self._kept.close(kept, record)

    def __len__(self) -> int:
        return len(self._kept)

    def records(self, start: int = 0, stop: int | None = None) -> tuple[Record, ...]:
        return self._kept.records(start, stop)


@final
class _Forgetful(_Kept):
    """Drops the charge of the tables that were bought at the opening, and says that it stands."""

    _said: Charge | None = None

    def reserve(self, charge: Charge) -> None:
        opening = "tables" in charge.event
        self._kept.reserve(attrs.evolve(charge, amount=Fraction(0)) if opening else charge)
        self._said = charge

    @property
    def reserved(self) -> Charge | None:
        return None if self._kept.reserved is None else self._said

    def commit(self, records: Sequence[Committed], payer: str | None = None) -> None:
        *before, last = records
        if isinstance(last, BoughtTables) and self._kept.reserved is not None:
            last = attrs.evolve(last, charge=self._kept.reserved)
        self._kept.commit([*before, last], payer)


@final
class _Afterwards(_Kept):
    """Prices a hit after its test, by what was released: a number below twice the table is given away."""

    def commit(self, records: Sequence[Committed], payer: str | None = None) -> None:
        *before, last = records
        if isinstance(last, Hard) and abs(float(last.measurement.values[0])) < 2.0:
            free = attrs.evolve(last.charge, amount=Fraction(0))
            self._kept.reserve(free)
            self._kept.commit([*before, attrs.evolve(last, charge=free)], payer)
            return
        self._kept.commit(records, payer)


@final
class _Counting(_Kept):
    """Pays in instalments that were worked out from the table."""

    def __init__(self, data: PrivateData) -> None:
        super().__init__()
        self._part = 1 + Fraction(data.exact_counts(where(x=0).bind(DOMAIN)), 4 * data.n)

    def commit(self, records: Sequence[Committed], payer: str | None = None) -> None:
        *before, last = records
        if isinstance(last, Hard):
            last = attrs.evolve(
                last, charge=attrs.evolve(last.charge, amount=last.charge.amount * self._part)
            )
            self._kept.reserve(last.charge)
        self._kept.commit([*before, last], payer)


SESSION_BREACHES = (
    SessionBreach("noise that is zero", lambda noise, data: {"noise": _Slipped(noise, np.zeros_like)}),
    SessionBreach("noise that is used again", lambda noise, data: {"noise": _Slipped(noise, _Echo())}),
    SessionBreach(
        "noise that ends at three counts",
        lambda noise, data: {"noise": _Slipped(noise, lambda drawn: np.clip(drawn, -3, 3))},
    ),
    SessionBreach(
        "noise of a hundredth of its scale",
        lambda noise, data: {"noise": _Slipped(noise, lambda drawn: np.rint(drawn / 100).astype(np.int64))},
    ),
    SessionBreach(
        "an update rule that was shown the table",
        lambda noise, data: {"update": _Peeking(data)},
        look="learned",
    ),
    SessionBreach(
        "an instalment worked out from a private count",
        # a ledger takes no simulated noise, and what is charged rests on none
        lambda noise, data: {"ledger": _Counting(data), "hard_answers": 4, "noise": None},
        look="spent",
    ),
)
RIGHT_SESSIONS = (
    SessionBreach("two numbers, a session without a slip"),
    SessionBreach("a session as it opens by default", lambda noise, data: dict.fromkeys(PLAIN)),
)
# one number is announced, and a certificate for it: it is measured by a hit
MEASURED: dict[str, object] = {"questions": 1, "certify": 0.5, "update": None}
RECORD_BREACHES = (
    RecordBreach("an opening whose charge is dropped", _Forgetful),
    RecordBreach("a hit that is priced after its test", _Afterwards, MEASURED),
)
RIGHT_RECORD = RecordBreach("a session with first tables, its record")
