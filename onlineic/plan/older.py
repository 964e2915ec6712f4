"""The one reader of files that other rules planned: what was told and bought stands, nothing more is bought.

A file holds its plan, and a stamp of the rules that made it: a digest that changes with every change of what
sessions plan, learn or answer. Under the same stamp a session goes on as if it had never been closed. Under
another one the record alone decides:

* what was told comes back as it was told;
* the hypothesis is made of the recorded measurements;
* tests and hits go on with the recorded mechanism and prices, and teach the recorded update rule;
* nothing is bought without a test any more: which tables to buy next was decided by rules that are gone.

Of the purchases that a plan names this module reads what they cost, and which tables come first. So it needs
none of the classes by which they were decided.

Proof: docs/theory/accounting.md, 4.10; docs/theory/session.md, 4.9c.
"""

import contextlib
import warnings
from fractions import Fraction
from typing import Any, final

import attrs
from attrs.validators import deep_iterable, instance_of

from onlineic.accounting.budget import Charge, Filter
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.errors import (
    InvalidParameterError,
    LedgerCorruptError,
    OtherRulesWarning,
    callers_line,
    checked_ratio,
    set_fields,
)
from onlineic.ledger.kinds import Line, account_from_json
from onlineic.ledger.records import Bought, BoughtTables, Record
from onlineic.ledger.settings import name_in_files
from onlineic.plan.defaults import RULES
from onlineic.plan.purchase import Purchase
from onlineic.plan.purchase_rule import Facts, PurchaseRule
from onlineic.queries.partitions import Partition
from onlineic.sparse.base import NumericSparse

FIRST = ("first", "dense", "ranges")  # of what was settled first: tables of which one release was bought
MOST_SAVED = Fraction(5, 4)  # cost of Gaussian tables over what paid for them as a first release (4.10)
ROUNDED = Fraction(1, 10**9)  # by more a deviation that was written is not off


def of_other_rules(beginning: Line) -> bool:
    """Return whether a session was planned by other rules than those of now, or nobody knows by which."""
    return bool(beginning.get("rules") != RULES)


def warn_other_rules(rule: PurchaseRule[Any]) -> None:
    """Say that a session buys nothing more, if that is so, before anything is done with its file."""
    if rule.ended:
        warnings.warn(
            "ledger must be of the rules of this version to buy tables as questions come, got one of others: "
            "what was told and bought stands, tests and hits go on at the recorded prices, and nothing else "
            "is bought. Use the version of onlineic that wrote it, or open a new ledger (budgets add).",
            OtherRulesWarning,
            stacklevel=callers_line(),
        )


@final
@attrs.frozen
class TablesBefore:
    """Tables that a plan of other rules names, one release of which was bought first.

    Attributes:
        targets, scales, charge, pure, neighbours: As of `Purchase`; but Gaussian ones were charged less
            than they cost as the `first` release.
        first: Whether their charge counts on their being that.

    Raises:
        InvalidParameterError: If they cost more than other rules charged so little for.
    """

    targets: tuple[Partition, ...]
    scales: tuple[Fraction, ...]
    charge: Charge
    pure: bool = False
    first: bool = False
    neighbours: Neighbours = attrs.field(default=REPLACE_ONE, kw_only=True)

    def __attrs_post_init__(self) -> None:
        set_fields(self, scales=tuple(checked_ratio("scales", scale, above=0.0) for scale in self.scales))
        saved = MOST_SAVED if self.first and not self.pure else 1
        most = attrs.evolve(self.charge, amount=saved * self.charge.amount)
        Purchase(self.targets, self.scales, most, self.pure, neighbours=self.neighbours)

    @property
    def saved(self) -> Fraction:
        """What they cost wherever they come, less what was charged for them; 0 where nothing was saved."""
        whole = attrs.evolve(self.charge, amount=MOST_SAVED * self.charge.amount)
        cost = Purchase(self.targets, self.scales, whole, self.pure, neighbours=self.neighbours).cost
        return max(Fraction(0), cost - self.charge.amount)

    def deviations(self, n: int) -> tuple[float, ...]:
        """Return the standard deviation of the noise in each one's blocks, fraction of n records."""
        unit = 2.0**0.5 if self.pure else 1.0
        return tuple(unit * float(scale) / n for scale in self.scales)

    def released_by(self, record: BoughtTables, n: int) -> bool:
        """Return whether a record holds these tables, with this noise at this charge."""
        targets = tuple(one.target for one in record.measurements)
        scales = tuple(one.scale for one in record.measurements)
        return (self.targets, self.charge, self.deviations(n)) == (targets, record.charge, scales)


@final
@attrs.frozen
class BoughtBefore(PurchaseRule[Fraction]):
    """What a session of other rules has bought is in its record, and nothing is bought any more.

    Attributes:
        amount: What its plan set aside for all purchases, in the unit of the account.
        tables: Of which the first release is one, if they were settled before the first question.
    """

    ended = True

    amount: Fraction = attrs.field(validator=instance_of(Fraction))
    tables: tuple[TablesBefore, ...] = attrs.field(validator=deep_iterable(instance_of(TablesBefore)))

    @property
    def saved(self) -> Fraction:
        """What its first tables cost at most beyond their charge: a total pays for that, too."""
        return max((one.saved for one in self.tables), default=Fraction(0))

    def planned(self, account: Filter) -> Fraction:
        return self.amount

    def start(self) -> Fraction:
        return Fraction(0)

    def heard(self, so_far: Fraction, record: Record) -> Fraction:
        return so_far + (record.charge.amount if isinstance(record, Bought) else 0)

    def next(self, facts: Facts[Fraction]) -> None:
        return None

    def described(self, account: Filter) -> list[tuple[str, str]]:
        part = float(self.amount / account.capacity)
        text = f"by other rules, for up to {part:.0%} of the budget: those in the record, and no more"
        return [("tables", text)]

    def holds(self, record: BoughtTables, heard: Fraction, n: int) -> bool:
        return heard > 0 or not self.tables or any(one.released_by(record, n) for one in self.tables)

    def laplace(self, record: Bought, before: int, account: Filter) -> bool:
        targets = tuple(one.target for one in record.measurements)
        settled = [one.pure for one in self.tables if not before and one.targets == targets]
        return settled[0] if settled else super().laplace(record, before, account)

    def unpaid(self, record: Bought, heard: Fraction, sparse: NumericSparse) -> str | None:
        """Return in words what is wrong with tables that the plan does not name, or None.

        Their charge must pay for their noise, and with what tables before them cost be set aside.
        """
        if heard + record.charge.amount > self.amount:
            return "tables that cost more than the plan sets aside"
        account, n = sparse.account(), sparse.n
        pure = account.order is None
        if (record.charge.unit, record.charge.order) != (account.unit, account.order):
            return "tables that are paid in another unit than the account's"
        # whichever way the deviation was rounded when it was written
        unit = Fraction(n) * (1 + ROUNDED) / (Fraction(2.0**0.5) if pure else 1)
        scales = tuple(Fraction(one.scale) * unit for one in record.measurements)
        targets = tuple(one.target for one in record.measurements)
        with contextlib.suppress(InvalidParameterError):
            Purchase(targets, scales, record.charge, pure, neighbours=sparse.neighbours)
            return None
        return "tables whose noise costs more than their charge"


def without_settled_tables(beginning: Line) -> Line:
    """Return the first line of a file as if nobody had said that tables are settled beforehand.

    No rule of now buys such tables; what the file has bought is in its record.
    """
    settings = dict(beginning["settings"])
    if (settings.get("purchases") or {}).get("class") == "FixedTables":
        del settings["purchases"]
    return {**beginning, "settings": settings}


def older_plan(beginning: Line) -> Any:
    """Return the plan of a file of other rules, as JSON, with purchases that have ended.

    A plan that buys nothing stays as it is.

    Raises:
        LedgerCorruptError: If what its purchases cost cannot be read.
    """
    try:
        return _ended(beginning["plan"], account_from_json(beginning["account"]))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise LedgerCorruptError(
            "ledger must hold a plan whose purchases can be read, got another; use the version of onlineic "
            "that wrote it."
        ) from None


def _ended(plan: Any, account: Filter) -> Any:
    """Return the plan with `BoughtBefore` in the place of its purchases, or raise anything."""
    rule = plan["fields"]["purchases"]
    if rule["class"] == "TestsOnly":
        return plan
    if rule["class"] != "DemandPurchases":
        raise KeyError(rule["class"])
    settled, tables = rule["fields"].get("first"), []
    if settled is None or settled["class"] == name_in_files(Purchase):
        tables = [] if settled is None else [settled]
        amount = Fraction(rule["fields"]["share"]["fraction"]) * account.capacity
    else:
        tables = [settled["fields"][name] for name in FIRST if settled["fields"][name] is not None]
        charge = tables[0]["fields"]["charge"]["fields"]["amount"]
        amount = Fraction(charge["fraction"]) + Fraction(settled["fields"]["later"]["fraction"])
    written = {"amount": {"fraction": str(amount)}, "tables": [_before(one) for one in tables]}
    bought = {"class": BoughtBefore.__name__, "fields": written}
    return {**plan, "fields": {**plan["fields"], "purchases": bought}}


def _before(tables: Any) -> Any:
    """Return tables as JSON, of which is left whether they were charged as the first release."""
    fields = tables["fields"]
    return {"class": TablesBefore.__name__, "fields": {**fields, "first": fields.get("first") is not None}}
