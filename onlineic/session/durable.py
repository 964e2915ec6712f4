"""A session and its ledger file: what is written at the beginning, and what is read from it to go on.

The plan itself is written, so that a session goes on as it was planned under every later version of the
package; and the settings from which it was made, so that others are refused by name.
"""

import contextlib
import datetime
import hashlib
import os
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Literal, final

import attrs

from onlineic.accounting.budget import Budget, Charge
from onlineic.accounting.neighbours import ADD_REMOVE, AddRemove, ReplaceRows
from onlineic.accounting.of_table import per_row
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit, parts_of
from onlineic.errors import (
    InvalidParameterError,
    LedgerCorruptError,
    LedgerMismatchError,
    LedgerWriteError,
    OnlineICError,
    check_choice,
    checked_integer,
    shown,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.interactions.demand import Expected
from onlineic.ledger.kinds import Line
from onlineic.ledger.lines import domain_of
from onlineic.ledger.place import checked_path, exists
from onlineic.ledger.records import Ledger
from onlineic.ledger.settings import (
    beginning_of,
    check_beginning,
    check_kind,
    check_settings,
    checked_label,
    name_in_files,
    package_version,
    settings_from_json,
    settings_to_json,
)
from onlineic.ledger.sqlite import SqliteLedger
from onlineic.plan.announced import Announcement
from onlineic.plan.defaults import RULES
from onlineic.plan.demand import DemandPurchases
from onlineic.plan.older import (
    BoughtBefore,
    TablesBefore,
    of_other_rules,
    older_plan,
    without_settled_tables,
)
from onlineic.plan.plan import Plan
from onlineic.plan.purchase import Purchase
from onlineic.plan.purchase_rule import TestsOnly
from onlineic.plan.settings import Settings
from onlineic.queries.counted import Counted, divided
from onlineic.queries.partitions import PartitionRule
from onlineic.queries.reach import Reach
from onlineic.queries.within import Within
from onlineic.sparse.exponential import ExponentialSparse
from onlineic.sparse.gumbel import GumbelSparse
from onlineic.sparse.laplace import LaplaceSparse
from onlineic.sparse.unconditional import UnconditionalNumbers
from onlineic.updates.fitted_tables import FittedTables
from onlineic.updates.maximum_entropy import MaximumEntropy
from onlineic.updates.median import Median
from onlineic.updates.mixture import MixtureOfProducts
from onlineic.updates.multiplicative_weights import MeasuredWeights, MultiplicativeWeights
from onlineic.updates.perceptron import Perceptron
from onlineic.updates.steps import FittedAt, FittedStart, MeasuredSteps

Durability = Literal["hits", "all"]
KNOWN: Mapping[str, type[Any]] = {
    name_in_files(kind): kind
    for kind in (
        AddRemove, Announcement, Budget, Charge, Counted, DemandPurchases, Expected, ExponentialSparse,
        FittedAt, FittedStart, FittedTables, GumbelSparse,
        LaplaceSparse, MaximumEntropy, MeasuredSteps, MeasuredWeights, Median, MixtureOfProducts,
        MultiplicativeWeights, PartitionRule, Perceptron, Plan, Purchase, Reach, ReplaceRows, TestsOnly,
        UnconditionalNumbers, Unit, Within,
    )
}  # fmt: skip

COUNTING = ".counting"  # ends the name of the mark of a count that no ledger holds yet
MECHANISMS = (ExponentialSparse, GumbelSparse, LaplaceSparse, UnconditionalNumbers)


@final
@attrs.frozen
class LedgerFile:
    """Where a session is to be recorded, and from what it was made."""

    path: str | os.PathLike[str]
    table: str
    durability: Durability
    settings: Line
    update: Any  # as it was given

    @property
    def new(self) -> bool:
        """Whether there is no file yet."""
        return not exists(self.path)

    def begin_count(self) -> None:
        """Leave a mark beside the file to come: a number of records was drawn for it, or is about to be.

        It goes once the file holds that number. Where it stays, the draw is known to nobody's record.

        Raises:
            LedgerMismatchError: If there is one: the budget was spent, and no record tells on what.
            LedgerWriteError: If it cannot be written.
            InvalidParameterError: If no ledger may lie there.
        """
        mark = self._mark()
        try:
            with open(mark, "x", encoding="utf-8") as file:
                file.write("A number of records was drawn for a ledger that was not begun: see onlineic.\n")
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            raise LedgerMismatchError(
                f"ledger must be one for which no number of records was drawn, got {shown(mark, 200)}: a "
                "session began there and was not recorded, and its budget is spent. Another session adds "
                "its budget: if you want that, remove the mark."
            ) from None
        except OSError as error:
            raise LedgerWriteError(
                f"ledger must be writable, got {type(error).__name__} for {shown(mark, 200)}; choose a "
                "folder."
            ) from None

    def end_count(self) -> None:
        """Take the mark away: the file holds the number that was drawn, or none was."""
        os.unlink(self._mark())

    def _mark(self) -> str:
        return f"{checked_path(self.path)}{COUNTING}"  # of one file, whatever links lead to it

    def opened(
        self, domain: Domain, n: int | None, plan: Plan, counted: Counted | None = None
    ) -> tuple[SqliteLedger, Plan]:
        """Return a new ledger, or that in the file, if it is of this very session; and the plan of it.

        Args:
            n: None: private, and as it was `counted` if the ledger is new, else as the file tells.

        Raises:
            LedgerError, InvalidParameterError: As `SqliteLedger.create` and `SqliteLedger.open`; of another
                table, or other settings, by name.
        """
        if self.new:
            beginning = beginning_of(
                created=datetime.datetime.now(datetime.UTC).isoformat(),
                version=package_version(),
                rules=RULES,
                table=self.table,
                domain=domain,
                n=plan.sparse.n if n is None else n,
                account=plan.sparse.account(),
                settings=self.settings,
                plan=settings_to_json(plan, KNOWN),
                counted=None if counted is None else settings_to_json(counted, KNOWN),
            )
            return SqliteLedger.create(self.path, beginning, self.durability), plan
        ledger = SqliteLedger.open(self.path, self.durability)
        try:
            check_kind(ledger.beginning, total=False)
            check_unit_of(ledger.beginning, settings_from_json(self.settings.get("unit"), KNOWN, domain))
            check_relation(ledger.beginning, n is None)
            check_beginning(ledger.beginning, table=self.table, domain=domain, n=n)
            check_settings(without_settled_tables(ledger.beginning), self.settings)
            return ledger, planned(ledger.beginning, domain, self.update)  # by whatever rules it was made
        except BaseException:
            ledger.release()
            raise


def ledger_choice(
    ledger: Ledger | str | os.PathLike[str] | None,
    table: str | None,
    durability: Durability,
    settings: Mapping[str, Any],
) -> Ledger | LedgerFile | None:
    """Return where to record a session, checked; nothing is opened yet.

    Raises:
        InvalidParameterError: If a file is given without the label of its table, a label without a file, or a
            file that is open.
    """
    check_choice("durability", durability, "hits", "all")
    if isinstance(ledger, SqliteLedger):  # nobody has compared its table and its settings with these
        raise InvalidParameterError(
            f"ledger must be the path of a ledger file, got the open {shown(ledger, 200)}; release it, "
            f"and give "
            "its path: ledger='FILE.db', table='LABEL', or OnlineIC.resume('FILE.db', data)."
        )
    if not isinstance(ledger, (str, os.PathLike)):
        if table is not None and (ledger is None or isinstance(ledger, Ledger)):
            raise InvalidParameterError(
                f"table must be None without a ledger file, got table={shown(table)}; give ledger='FILE.db'."
            )
        return ledger
    table, rule = checked_label(table), settings.get("purchases")
    if type(rule) not in (type(None), DemandPurchases, TestsOnly):
        raise InvalidParameterError(
            "purchases must be TestsOnly or DemandPurchases with a ledger file, which others "
            f"read, got a {type(rule).__name__}; leave out one of them."
        )
    written = {name: settings_to_json(_public(value), KNOWN) for name, value in settings.items()}
    return LedgerFile(ledger, table, durability, written, settings.get("update"))


def _public(value: Any) -> Any:
    """Return a setting, a hypothesis by its digest: it is public, and too large for a line."""
    return prior_digest(value) if hasattr(value, "evaluate_many") else value


def prior_digest(prior: Hypothesis | None) -> str | None:
    """Return a digest of a public start, by which it is known again.

    Raises:
        InvalidParameterError: If it does not tell its cells.
    """
    if prior is None:
        return None
    probabilities = getattr(prior, "probabilities", None)
    if probabilities is None:
        raise InvalidParameterError(
            f"prior must be a Histogram with a ledger file, got a {type(prior).__name__}; leave one "
            "of them out."
        )
    return hashlib.sha256(probabilities().astype("<f8").tobytes()).hexdigest()


def check_prior(beginning: Line, prior: Hypothesis | None) -> None:
    """Raise `LedgerMismatchError` unless this is the start that a session was opened with."""
    held = beginning["settings"].get("prior")
    if prior_digest(prior) != held:
        raise LedgerMismatchError(
            f"prior must be {'None' if held is None else f'the one with digest {str(held)[:16]}'}"
            f", as the ledger "
            f"was opened, got {'none' if prior is None else 'another'}; "
            f"{'leave it out' if held is None else 'give that one'}."
        )


def counted_of(beginning: Line) -> Counted | None:
    """Return the number of records as a recorded session released it, None where it is public.

    Raises:
        LedgerCorruptError: If there is one, and the budget is for a public number, or the other way round; or
            n is another.
    """
    domain = domain_of(beginning)
    found = settings_from_json(beginning.get("counted"), KNOWN, domain)
    private = budget_of(beginning, domain).neighbours == ADD_REMOVE
    unit = unit_of(beginning)
    n = parts_of(found.n, unit) if isinstance(found, Counted) else None
    if told_in(beginning) and beginning["settings"]["counted"] != beginning.get("counted"):
        n = -1  # another than the session was told
    if private is not isinstance(found, Counted) or (n is not None and n != beginning["n"]):
        raise LedgerCorruptError(
            "ledger must hold the number of records as it was counted, got another; restore the file from a "
            "backup, and give its newest receipt."
        )
    return found if isinstance(found, Counted) else None


def check_relation(beginning: Line, private: bool) -> None:
    """Raise `LedgerMismatchError` unless the number of records is as private as the session promised."""
    if (counted_of(beginning) is not None) is not private:
        held, given = ("add-remove", "replace-one")[:: -1 if private else 1]
        raise LedgerMismatchError(
            f"neighbours must be '{held}', as the ledger was opened, got '{given}'; load the table with "
            "those, or open a new ledger (budgets add)."
        )


def told_written(told: Counted | None) -> dict[str, Any]:
    """Return what a ledger file says of a number of records that the session was told: nothing of none."""
    return {} if told is None else {"counted": told}


def told_in(beginning: Line) -> bool:
    """Whether a recorded session was told its number of records, and so paid for none."""
    return beginning["settings"].get("counted") is not None


def unit_written(unit: Unit | None) -> dict[str, Any]:
    """Return what a ledger file says of the unit: nothing where it is one record, as older files."""
    return {} if unit is None else {"unit": unit}


def unit_of(beginning: Line) -> Unit | None:
    """Return the unit of a recorded session."""
    unit = settings_from_json(beginning["settings"].get("unit"), KNOWN, domain_of(beginning))
    if unit is not None and not isinstance(unit, Unit):
        raise LedgerCorruptError(
            "ledger must hold a unit of persons, got another; restore the file from a backup, and give its "
            "newest receipt."
        )
    return unit


def check_unit_of(beginning: Line, unit: Unit | None) -> None:
    """Raise `LedgerMismatchError` unless a table protects whom the recorded session promised to protect."""
    held = unit_of(beginning)
    if held != unit:
        raise LedgerMismatchError(
            f"unit must be {held}, as the ledger was opened, got {unit}; load the table with that unit, or "
            "open a new ledger (budgets add)."
        )


def planned(beginning: Line, domain: Domain, update: Any = None) -> Plan:
    """Return the plan of a recorded session.

    Raises:
        LedgerMismatchError: If its rule is not of the package, and not brought.
        LedgerCorruptError: If it spends more than the budget that stands beside it, or is no plan.
    """
    if of_other_rules(beginning):
        known: dict[str, type[Any]] = {**KNOWN, **{one.__name__: one for one in (BoughtBefore, TablesBefore)}}
        plan = settings_from_json(older_plan(beginning), known, domain, update)
    else:
        plan = settings_from_json(beginning["plan"], KNOWN, domain, update)
    if not isinstance(plan, Plan) or type(plan.sparse) not in MECHANISMS or not hasattr(plan.update, "init"):
        raise LedgerCorruptError(
            "ledger must hold a plan, got none; restore the file from a backup, and give its newest receipt."
        )
    rule, account = plan.purchases, plan.sparse.account()
    first = rule.tables if isinstance(rule, BoughtBefore) else (plan.first_tables,)
    settled = [one for one in first if one is not None]
    if (
        type(rule) not in (BoughtBefore, DemandPurchases, TestsOnly)
        or type(plan.hit_price) is not Fraction
        or type(plan.next_share) not in (type(None), Fraction)
        # by whatever neighbours and account tables say that they are paid: those of the mechanism count
        or any(one.neighbours != plan.sparse.neighbours for one in settled)
        or any((one.charge.unit, one.charge.order) != (account.unit, account.order) for one in settled)
    ):
        raise LedgerCorruptError(
            "ledger must hold a plan of tables and prices, got another; restore "
            "it from a backup, and give its newest receipt."
        )
    budget, sparse = row_budget_of(beginning, domain), plan.sparse
    epsilon = Fraction(getattr(sparse, "epsilon", 0))
    delta = Fraction(getattr(sparse, "delta", 0))
    if (
        epsilon > budget.epsilon_exact
        or delta > budget.delta_exact
        or sparse.neighbours != budget.neighbours
        or sparse.n != beginning["n"]
    ):
        raise LedgerCorruptError(
            f"ledger must hold a plan for n={beginning['n']} and at most {budget}, got another; restore "
            "it from a backup, and give its newest receipt."
        )
    return plan


@contextlib.contextmanager
def restoring(resumed: bool) -> Iterator[None]:
    """Make what is read from a file into a session: nothing private is at hand, and the file may be anything.

    Raises:
        LedgerCorruptError: If that fails of a session that is resumed.
    """
    try:
        yield
    except OnlineICError:
        raise
    except Exception as error:
        if not resumed:
            raise
        raise LedgerCorruptError(
            "ledger must hold lines that a session can be made from, got others; restore the file from a "
            "backup, and give its newest receipt, or mend the rule that was given."
        ) from error


def settings_in(beginning: Line, domain: Domain, prior: Hypothesis | None) -> Settings:
    """Return what a recorded session goes by besides its plan; the plan tells the rest."""
    return Settings(
        budget_of(beginning, domain),
        rows_per_person=rows_of(beginning),
        prior=prior,
        exhausted=beginning["settings"].get("exhausted"),
    )


def wish_in(beginning: Line) -> Within | None:
    """Return how exact the answers of a recorded session are to be, if that was said."""
    held = beginning["settings"].get("within")
    return None if held is None else Within(held["fields"]["radius"], held["fields"]["certain"])


def budget_of(beginning: Line, domain: Domain) -> Budget:
    """Return the budget of a recorded session."""
    budget = settings_from_json(beginning["settings"].get("budget"), KNOWN, domain)
    if not isinstance(budget, Budget):
        raise LedgerCorruptError(
            "ledger must hold a budget, got none; restore "
            "the file from a backup, and give its newest receipt."
        )
    return budget


def row_budget_of(beginning: Line, domain: Domain) -> Budget:
    """Return what a recorded session may spend on one row: less than its budget, if a person has several.

    Or if the number of records was released.
    """
    budget = budget_of(beginning, domain)
    if counted_of(beginning) is not None and not told_in(beginning):
        budget = divided(budget)[1]  # the number of records was paid before
    return per_row(budget, rows_of(beginning))


def rows_of(beginning: Line) -> int:
    """Return how many rows of a person a recorded session was opened for."""
    rows = beginning["settings"].get("rows_per_person")
    return checked_integer("rows_per_person", 1 if rows is None else rows, at_least=1)
