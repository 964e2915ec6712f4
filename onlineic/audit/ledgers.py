"""Everything that a ledger says, computed again from nothing but the ledger: no table, no secret, no trust.

Charges against prices of the mechanism that the record settles, releases against reservations, what was
bought against the plan, and every tested number against a replay of the whole session.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.accounting.budget import Budget
from onlineic.accounting.renyi import TICK
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit, persons_of, protected
from onlineic.errors import BudgetError, InternalError, LedgerCorruptError, LedgerMismatchError, OnlineICError
from onlineic.hypothesis.base import Hypothesis
from onlineic.ledger.book import Book
from onlineic.ledger.kinds import Line, account_from_json, line_of
from onlineic.ledger.lines import Receipt, Written, canonical_text, record_of
from onlineic.ledger.memory import MemoryLedger
from onlineic.ledger.records import (
    IN_ORDER,
    BoughtTables,
    Certified,
    Checkpoint,
    Closed,
    Easy,
    EasyBatch,
    Forfeited,
    Hard,
    Paid,
    Record,
    Resumed,
    Single,
    ToldAnswer,
    UpdateFailed,
    measured,
)
from onlineic.ledger.settings import check_kind, settings_from_json, settings_to_json
from onlineic.noise.sources import SimulatedNoise
from onlineic.plan.certificates import textbook_plan
from onlineic.plan.older import BoughtBefore, of_other_rules
from onlineic.plan.plan import Plan
from onlineic.plan.planning import session_plan
from onlineic.plan.purchase import Purchase, is_single
from onlineic.plan.purchase_rule import Facts, PurchaseRule
from onlineic.plan.spending import Spent
from onlineic.plan.within import MOST_HEARD, tester_within
from onlineic.queries.counted import Counted, divided, divided_beta
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.partitions import AxisSets, Partition, sets_of, whole
from onlineic.queries.query import Query
from onlineic.queries.within import Within
from onlineic.session.answers import AnswerBook
from onlineic.session.belief import Belief
from onlineic.session.durable import (
    KNOWN,
    budget_of,
    check_prior,
    counted_of,
    planned,
    prior_digest,
    row_budget_of,
    rows_of,
    told_in,
    unit_of,
)
from onlineic.sparse.base import Hit, NumericSparse
from onlineic.sparse.laplace import LaplaceSparse
from onlineic.updates.multiplicative_weights import MultiplicativeWeights

TOLERANCE = 1e-12  # between two machines, or two libraries of linear algebra
PLANNED = 1e-6  # between their plans, whose scales are rounded to integers
NO_PLAN = (
    "budget",
    "counted",
    "rows_per_person",
    "unit",
    "prior",
    "exhausted",
)  # settings that are no arguments of a plan


@final
@attrs.frozen
class LedgerReport:
    """What a ledger holds, and what is wrong with it.

    Attributes:
        table, created, version: Label of the table; when and by which version the ledger was made.
        budget: Of a person with `rows_per_person` rows.
        records, easy, hard, resumed: Records; easy and hard answers; how often a process went on with it.
        spent, reserved: Shares of the whole budget: recorded charges, and the standing reservation.
        forfeited: Share, among `spent`, that was used up without an answer.
        replayed: Whether the hypothesis was computed again: its rule is of this package, or was brought.
        numbers, differing: Numbers that the replay computed again, and how many of them had other bits.
        largest: Largest difference among those, fraction of records.
        problems: What does not hold; empty if all does.
        unit: Who is protected: a person with all of their rows, or where it is None one record.
        counted: The number of records as it was released, where it is private.
    """

    table: str
    created: str
    version: str
    n: int
    budget: Budget
    receipt: Receipt
    records: int
    easy: int
    hard: int
    resumed: int
    spent: Fraction
    reserved: Fraction
    forfeited: Fraction
    replayed: bool = False
    numbers: int = 0
    differing: int = 0
    largest: float = 0.0
    problems: tuple[str, ...] = ()
    rows_per_person: int = 1
    unit: Unit | None = None
    counted: Counted | None = None

    @property
    def protects(self) -> str:
        """Who or what is protected, in words."""
        return protected(self.unit, self.counted is not None)

    @property
    def whole(self) -> bool:
        """Whether everything holds that was checked."""
        return not self.problems


def summarised(written: Written) -> LedgerReport:
    """Return what a session's ledger says, its chain alone checked; of a total see `total_report`."""
    check_kind(written.beginning, total=False)
    domain = written.domain()
    records, _ = written.records(domain)
    beginning = written.beginning
    account = account_from_json(beginning["account"])
    problems: tuple[str, ...] = ()
    book = Book(account)
    for place, record in enumerate(records):
        try:
            book = book.after(record)
        except (BudgetError, InternalError):
            problems = (f"record {place}: a charge that was not reserved, or could not be paid",)
            break
    forfeited = sum(
        (record.charge.amount for record in records if isinstance(record, Forfeited)), Fraction(0)
    )
    easy = sum(
        len(one) if isinstance(one, EasyBatch) else isinstance(one, Easy | Certified) for one in records
    )
    standing = Fraction(0) if book.reserved is None else book.reserved.amount
    return LedgerReport(
        table=beginning["table"],
        created=beginning["created"],
        version=beginning["version"],
        n=persons_of(beginning["n"], unit_of(beginning)),
        budget=budget_of(beginning, domain),
        receipt=written.receipt,
        records=len(records),
        easy=easy,
        hard=sum(isinstance(record, Hard | Single) for record in records),
        resumed=sum(isinstance(record, Resumed) for record in records),
        spent=book.account.spent / account.capacity,
        reserved=standing / account.capacity,
        forfeited=forfeited / account.capacity,
        problems=problems,
        rows_per_person=rows_of(beginning),
        unit=unit_of(beginning),
        counted=counted_of(beginning),
    )


def verified(
    written: Written,
    *,
    receipt: Receipt | str | None = None,
    update: Any = None,
    prior: Hypothesis | None = None,
) -> LedgerReport:
    """Return what a ledger says, with everything computed again that follows from its lines.

    Args:
        written: As `onlineic.ledger.read` or `onlineic.ledger.imported` returned it: its chain holds.
        receipt: Of an earlier time.
        update, prior: Those of the session, where they are not of this package, or were given. Without a rule
            that is not of this package neither prices nor replay can be checked; without the prior the replay
            cannot.

    Raises:
        LedgerRollbackError: If the ledger does not go on from the receipt.
        LedgerCorruptError: If its lines do not fit together.
    """
    written.check(receipt)
    report = summarised(written)
    if report.problems:
        return report
    try:
        return _computed(written, report, update, prior)
    except OnlineICError:
        raise
    except Exception:  # of lines that were put together by hand: whatever is wrong with them
        raise LedgerCorruptError(
            "ledger must hold lines that fit together, got some that nothing can be computed from; restore "
            "the file from a backup, and give its newest receipt."
        ) from None


def _computed(written: Written, report: LedgerReport, update: Any, prior: Hypothesis | None) -> LedgerReport:
    """Return the report with all that follows from the lines, or raise anything."""
    domain = written.domain()
    records, checkpoints = written.records(domain)
    try:
        plan = planned(written.beginning, domain, update)
    except LedgerMismatchError as error:
        return attrs.evolve(report, problems=(str(error),))
    problems = [*_miswritten(written, domain), *_unpaid(records, plan, domain, counted_of(written.beginning))]
    problems += _miscounted(written.beginning, domain)
    problems += _replanned(written.beginning, plan, domain, update, prior)
    if account_from_json(written.beginning["account"]) != plan.sparse.account():
        problems.append("the account is not that of the plan's mechanism")
    try:
        check_prior(written.beginning, prior)
    except LedgerMismatchError:
        return attrs.evolve(report, problems=tuple(problems))
    if of_other_rules(written.beginning):
        return attrs.evolve(report, problems=tuple(problems))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were said to those who asked
        replayed = _Replay(
            records,
            checkpoints,
            written.told(domain),
            plan,
            plan.sparse.n,
            Belief(plan.update.init(domain, prior)),
            domain,
        )
    return attrs.evolve(
        report,
        replayed=True,
        numbers=replayed.numbers,
        differing=replayed.differing,
        largest=replayed.largest,
        problems=(*problems, *replayed.problems),
    )


def _miswritten(written: Written, domain: Domain) -> list[str]:
    """Return which lines say what they say in another form than they were written in, or go back."""
    problems, closed, counted, kept, hard = [], Closed(), 0, 0, set[int]()
    for place, line in enumerate(written.lines[1:], 1):
        record = record_of(line, domain)
        if canonical_text({**line_of(record), "at": place}) != canonical_text(line):
            problems.append(f"line {place}: another form than a line of its kind is written in")
        if isinstance(record, Paid):
            if record.record < counted or record.record > counted + 1:
                problems.append(f"line {place}: a payer of a release that is not written with it")
            continue
        if isinstance(record, ToldAnswer):
            if record.record not in hard:
                problems.append(f"line {place}: a number that no hard answer before it has told")
            continue
        if isinstance(record, Checkpoint):
            if not kept < record.records <= counted:
                problems.append(f"line {place}: a checkpoint of records that do not stand before it")
            kept = record.records
            continue
        hard |= {counted} if isinstance(record, Hard | Single) else set()
        counted += 1
        if isinstance(record, Closed):  # over the whole life of the ledger
            if any(now < before for now, before in zip(*map(attrs.astuple, (record, closed)), strict=True)):
                problems.append(f"line {place}: fewer answers than when it was closed before")
            closed = record
    return problems


def _miscounted(beginning: Line, domain: Domain) -> list[str]:
    """Return whether a private number of records has less noise than its part of epsilon pays."""
    counted, unit, moved = counted_of(beginning), unit_of(beginning), rows_of(beginning)
    if counted is None or told_in(beginning):  # what it was told was paid by whoever drew it
        return []
    moved = moved if unit is None else min(moved, unit.sensitivity)  # of a total it is paid by the row
    epsilon = divided(budget_of(beginning, domain))[0].epsilon_exact
    return ["the number of records has less noise than is paid"] if counted.scale * epsilon < moved else []


def _replanned(
    beginning: Line, plan: Plan, domain: Domain, update: Any, prior: Hypothesis | None
) -> list[str]:
    """Return whether the plan is another than is made of the settings, if it was made by the rules of now."""
    if of_other_rules(beginning):  # which may take other settings
        return []
    settings = {
        name: settings_from_json(value, KNOWN, domain, update)
        for name, value in beginning["settings"].items()
    }
    if settings.get("prior") != prior_digest(prior):
        return []
    if {name: settings_to_json(value, KNOWN) for name, value in settings.items()} != beginning["settings"]:
        return ["the settings are written in another form than settings are"]
    budget, textbook = row_budget_of(beginning, domain), settings.pop("textbook", False)
    settings = {name: value for name, value in settings.items() if name not in NO_PLAN}
    if counted_of(beginning) is not None and not told_in(beginning):
        settings["beta"] = divided_beta(settings["beta"])[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if textbook:
                rule = settings.pop("update") or MultiplicativeWeights(variant="book")
                made = textbook_plan(domain, beginning["n"], budget, rule, **settings)
            else:
                made = session_plan(domain, beginning["n"], budget, prior=prior, **settings)
        except (OnlineICError, TypeError, ValueError):
            return ["the settings are none that a session is planned from"]
    alike = plans_alike(settings_to_json(made, KNOWN), beginning["plan"])
    return [] if alike else ["the plan is another than the settings give"]


def plans_alike(made: Any, held: Any) -> bool:
    """Whether two plans are one but for the arithmetic of another machine."""
    if isinstance(made, dict) and isinstance(held, dict):
        if "fraction" in made and "fraction" in held:
            return _close(Fraction(made["fraction"]), Fraction(held["fraction"]))
        return made.keys() == held.keys() and all(plans_alike(made[name], held[name]) for name in made)
    if isinstance(made, list) and isinstance(held, list):
        return len(made) == len(held) and all(map(plans_alike, made, held))
    if type(made) is not type(held):
        return False
    return _close(made, held) if type(made) in (int, float) else bool(made == held)


def _close(made: float | Fraction, held: float | Fraction) -> bool:
    return made == held or abs(float(made) - float(held)) <= PLANNED * max(abs(float(made)), abs(float(held)))


def _unpaid(
    records: Sequence[Record], plan: Plan, domain: Domain, counted: Counted | None = None
) -> list[str]:
    """Return where a charge is less than the price of what it paid for, or something was never planned."""
    account, spending = plan.sparse.account(), plan.spending
    start = plan.sparse.start_charge()
    opening = Fraction(0) if start is None else start.amount
    book, due, pairs, problems = Book(account), opening, AxisSets(), list[str]()
    # whether the noise of the present threshold was drawn: for a run that is paid at its start, or for a hit
    drawn, last = False, None
    tested_before, opened, spent = False, False, Spent()
    rule = plan.purchases
    heard = rule.start()

    def facts(*questions: Question, within: Within | None = None) -> Facts[Any]:
        near, beta = plan.sparse.neighbours, plan.tested_beta
        return Facts(
            domain, plan.sparse.n, book.account, near, heard, questions, within, beta, plan.sparse,
            0.0 if counted is None else counted.slack,
        )  # fmt: skip

    def wrong(place: int, text: str) -> None:
        problems.append(f"record {place}: {text}")

    for place, record in enumerate(records):
        sparse = spending.at(spent)
        standing = Fraction(0) if book.reserved is None else book.reserved.amount
        if not isinstance(record, _next(last)):
            wrong(place, "a line that cannot follow the one before: a run has ended there")
        last = record
        if isinstance(record, Resumed):
            drawn, due = False, opening  # a new run: its start is paid with its first hit
            if standing:
                wrong(place, "a reservation that was standing is not spent")
        if isinstance(record, Certified | Hard) and record.within is not None:
            found = _mistested(record, rule, facts(record.query, within=_wish(record.within)), standing)
            if found is not None:
                wrong(place, found)
        elif isinstance(record, Easy | EasyBatch | Hard):
            tested_before = True
            tested = record.queries if isinstance(record, EasyBatch) else (record.query,)
            dearest = max({_price(sparse, question, plan, domain) for question in _distinct(tested)})
            if standing < dearest + due:
                wrong(place, f"a test that costs {dearest + due}, with {standing} reserved")
            if rule.next(facts(tested[0])) is not None:
                wrong(place, f"a test before {'later' if opened else 'first'} tables that were due")
            elif (
                opened
                and (told := rule.due_at(heard, tested, book.account)) is not None
                and told < len(tested)
            ):
                wrong(place, "a batch that goes on after the question that tells of later tables")
        if isinstance(record, Hard) and record.within is None:
            if record.charge != book.reserved:
                wrong(place, "a hit that is charged something else than was reserved")
            if record.measurement.target != _target(record.query, plan, pairs):
                wrong(place, "a hit that released another target than its query has")
            elif not _near(record.measurement.scale, _scale(sparse, record.measurement.target)):
                wrong(place, "a hit whose noise has another scale than its mechanism draws")
            drawn, due = start is not None, Fraction(0)
        if isinstance(record, Easy | EasyBatch):
            drawn = start is not None or isinstance(sparse, LaplaceSparse)
        if isinstance(record, Closed) and drawn and standing and sparse.unfinished(standing, due):
            wrong(place, "closed without what tests of a kept threshold have used up")
        if isinstance(record, BoughtTables):
            if drawn and due:
                wrong(place, "tables bought before what tests of a kept threshold have used up was paid")
            targets = tuple(one.target for one in record.measurements)
            which, before, opened = "later tables" if opened else "first tables", opened, True
            named: list[Any] = [rule.next(facts(*record.heard, within=record.within))]
            if isinstance(rule, BoughtBefore):
                named = [] if before else [*rule.tables]
            bought = [one for one in named if one and (one.targets, one.charge) == (targets, record.charge)]
            held = [one.scale for one in record.measurements]
            if isinstance(rule, BoughtBefore) and (before or not rule.tables):
                if (unpaid := rule.unpaid(record, heard, sparse)) is not None:
                    wrong(place, unpaid)
            elif not isinstance(rule, BoughtBefore) and len(record.heard) > (
                rule.lookahead(heard) if record.within is None else MOST_HEARD
            ):
                wrong(place, f"{which} for more questions than the rule hears")
            elif not bought:
                wrong(place, f"{which} that the plan does not buy")
            elif not any(all(map(_near, held, one.deviations(sparse.n))) for one in bought):
                wrong(place, f"{which} whose noise has another scale than the plan's")
            elif (book.account.spent or tested_before) and any(
                getattr(one, "first", False) for one in bought
            ):
                wrong(place, f"{which} that are paid as the first release, after another one")
        if isinstance(record, Single):
            opened = True
            if drawn and due:
                wrong(place, "a purchase before what tests of a kept threshold have used up was paid")
            if isinstance(rule, BoughtBefore):
                found = rule.unpaid(record, heard, sparse)
            else:
                asked = facts(record.query, within=record.within)
                own: Purchase | None = rule.next(asked)
                if own is not None and record.within is not None and not is_single(own, (record.query,)):
                    own = rule.number(asked)  # whoever asked could not pay for the tables
                found = _misbought(record, own, sparse)
            if found is not None:
                wrong(place, found)
        if isinstance(record, Forfeited):
            kept = sparse.unfinished(standing, due) if record.reason in IN_ORDER else standing
            if record.charge.amount != kept:
                wrong(place, f"{record.charge.amount} forfeited in the place of {kept}")
            if record.reason == "bought":  # the threshold goes on, and is paid
                due = Fraction(0)
        for released in measured(record):
            if isinstance(released.target, Partition):
                pairs |= sets_of(released.target)
        book, spent = book.after(record), spending.after(spent, record)
        heard = rule.heard(heard, record)
    if isinstance(last, Forfeited) and last.reason in ("closed", "restarted"):
        wrong(len(records), "a line is missing after what was forfeited, which was written with it")
    return problems


def _wish(within: Within) -> Within:
    """Return the wish of a test, as it was before its height was chosen."""
    return attrs.evolve(within, steepness=0)


def _mistested(
    record: Certified | Hard, rule: PurchaseRule[Any], facts: Facts[Any], standing: Fraction
) -> str | None:
    """Return in words what is wrong with a test that was made for a wish, or None.

    Its price is worked out once more from its scale and height, and the noise of a number from its record.
    """
    wish, query = record.within, record.query
    if wish is None or not isinstance(query, Query):
        return "a test for a wish of something else than a query"
    if not isinstance(rule, BoughtBefore) and rule.test(facts) != wish:
        return "a test for a wish that the plan does not make"
    tester = tester_within(facts.sparse, query, wish, facts.beta)
    if tester is None or standing < tester.price(query).amount:
        return "a test for a wish with less reserved than its hit costs"
    if isinstance(record, Hard):
        if record.charge.amount != standing or record.measurement.target != query:
            return "a hit of a test for a wish that is charged or measured otherwise than was reserved"
        if not _near(record.measurement.scale, tester.noise_of(query)):
            return "a hit of a test for a wish whose noise has another scale than its test has"
    return None


def _misbought(record: Single, named: Purchase | None, sparse: NumericSparse) -> str | None:
    """Return in words what is wrong with a question that was bought by itself, or None.

    Its price is worked out once more, from the deviation of its noise and how far a neighbour moves it.
    """
    measurement, charge, near = record.measurement, record.charge, sparse.neighbours
    question = record.query
    own = question.partition if isinstance(question, BoundMarginal) else question
    if named is None or (named.targets, named.charge) != ((own,), charge) or measurement.target != own:
        return "a question bought by itself that the plan does not buy"
    if not _near(measurement.scale, named.deviations(sparse.n)[0]):
        return "a question bought by itself whose noise has another scale than the plan's"
    deviation = measurement.scale * sparse.n
    if isinstance(own, Partition):
        l1, squared = float(near.table_l1()), float(near.table_squared())
    else:
        l1 = math.ldexp(float(near.number(own.lowest, own.highest)), -own.grid_bits)
        squared = l1**2
    if charge.order is None:
        price = l1 * math.sqrt(2.0) / deviation
    else:
        price = float(charge.order / TICK) * squared / (2.0 * deviation**2)
    paid = float(charge.amount) >= price * (1.0 - TOLERANCE)
    return None if paid else "a question bought by itself for less than its noise costs"


def _next(last: Record | None) -> tuple[type[Any], ...]:
    """Return what may follow a record: a run that has ended goes on as another, which is paid anew."""
    if isinstance(last, Closed):
        return (Resumed,)
    if isinstance(last, Forfeited):
        # of a release that was recorded before the interrupted test the update may fail later
        behind = {"closed": (Closed,), "restarted": (Resumed,), "interrupted": (Resumed, UpdateFailed)}
        return behind.get(last.reason, (object,))
    return (object,)


def _scale(sparse: NumericSparse, target: Query | Partition) -> float:
    """Return the deviation of what the mechanism releases of a target: of a release of nothing."""
    values = np.zeros(target.blocks if isinstance(target, Partition) else 1, np.int64)
    return sparse.measure(Hit(side=1, excess=0), target, 0, values, SimulatedNoise(0)).scale


def _near(held: float, made: float) -> bool:
    return math.isclose(held, made, rel_tol=TOLERANCE)


def _distinct(tested: Sequence[Question]) -> Sequence[Question]:
    """Return one query of each price: of a batch most are alike."""
    found: dict[Any, Question] = {}
    for question in tested:
        alike = isinstance(question, BoundMarginal)
        found.setdefault(
            None if alike else (question.lowest, question.highest, question.grid_bits),  # type: ignore[union-attr]
            question,
        )
    return [*found.values()]


def _price(sparse: NumericSparse, question: Question, plan: Plan, domain: Domain) -> Fraction:
    """Return what a hit costs, computed without the session: of a partition session the dearer of the two."""
    if isinstance(question, BoundMarginal):
        return sparse.price(question.partition).amount
    number = sparse.price(question).amount
    return number if plan.partitions is None else max(number, sparse.price(whole(domain)).amount)


def _target(question: Question, plan: Plan, pairs: AxisSets) -> Any:
    if isinstance(question, BoundMarginal):
        return question.partition
    chosen = None if plan.partitions is None else plan.partitions.partition(question, pairs)
    return question if chosen is None else chosen


class _Replay:
    """The session once more, from its records: tested numbers, stated bounds, hypothesis."""

    def __init__(
        self,
        records: Sequence[Record],
        checkpoints: Sequence[Checkpoint],
        told: Mapping[int, float | tuple[float, ...]],
        plan: Plan,
        n: int,
        belief: Belief,
        domain: Domain,
    ) -> None:
        self.numbers = self.differing = 0
        self.largest = 0.0
        self.problems: list[str] = []
        ledger = MemoryLedger.holding(records, plan.sparse.account())
        book = AnswerBook(plan, domain, n, ledger, belief, True)
        kept = {checkpoint.records: checkpoint for checkpoint in checkpoints}
        start = 0
        for place, record in enumerate(records):
            if isinstance(record, Easy | Certified | EasyBatch | Hard | Single):
                self._tested(place, record, book, n)
            answered = book.take()
            if place in told and answered is not None:
                self._compare(np.ravel(told[place]), np.ravel(answered[1].value))
            if len(ledger) > len(records):
                self.problems.append(f"record {place}: an update fails that did not fail when it was made")
                return
            checkpoint = kept.get(place + 1)
            if checkpoint is not None:
                self._against(checkpoint, start, book)
                start = checkpoint.records
        if self.largest > TOLERANCE:
            self.problems.append(f"the replay differs by {self.largest:.3g}, of {TOLERANCE:g} allowed")

    def _tested(
        self, place: int, record: Easy | Certified | EasyBatch | Hard | Single, book: AnswerBook, n: int
    ) -> None:
        """Compare tested integers with those of the replayed hypothesis."""
        questions: Sequence[Question]
        if isinstance(record, EasyBatch):
            questions, held = record.queries, np.asarray(record.guesses)
        else:
            questions, held = (record.query,), np.atleast_1d(np.array(record.guess, np.int64))
        made = np.concatenate([np.atleast_1d(np.array(one)) for one in book.guesses(questions)])
        units = np.array([1 if isinstance(one, BoundMarginal) else 1 << one.grid_bits for one in questions])
        # on the grid of the test a number may fall to the next unit where the hypothesis lies between two
        apart = np.maximum(np.abs(made - held) - 1, 0) / (n * units)
        self.numbers += held.size
        self.differing += int(np.sum(made != held))
        self.largest = max(self.largest, float(apart.max(initial=0.0)))
        if apart.any():
            self.problems.append(f"record {place}: a tested number that the hypothesis does not give")

    def _against(self, checkpoint: Checkpoint, start: int, book: AnswerBook) -> None:
        """Compare what a checkpoint says of the records since the one before."""
        fitted = [value for place, value in sorted(book.fitted.items()) if place >= start]
        values, belief = np.array(fitted, np.float64), book.belief
        same = np.array_equal(np.isnan(values), np.isnan(checkpoint.values))
        if not same or (checkpoint.version, checkpoint.failures) != (belief.version, belief.failures):
            self.problems.append(f"the checkpoint after record {checkpoint.records} is of another replay")
            return
        told = ~np.isnan(values)
        self._compare(checkpoint.values[told], values[told])
        made = book.parameters()
        if checkpoint.parameters is not None and made is not None:
            if [one.shape for one in checkpoint.parameters] != [one.shape for one in made]:
                self.problems.append(f"the checkpoint after record {checkpoint.records} has other parts")
                return
            for held, again in zip(checkpoint.parameters, made, strict=True):
                self._compare(np.exp(held - held.max()), np.exp(again - again.max()))

    def _compare(self, held: Floats, made: Floats) -> None:
        self.numbers += held.size
        self.differing += int(np.sum(held != made))
        self.largest = max(self.largest, float(np.max(np.abs(held - made), initial=0.0)))
