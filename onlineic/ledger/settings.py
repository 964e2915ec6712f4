"""Settings as JSON, exactly: whatever a session is made from, in the first line of its ledger.

Frozen classes are written by the name of the class and its fields, and read through their own checks. Of a
class that is not known by name only that name is written: whoever resumes brings the object again.
"""

import contextlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import attrs
import numpy as np

from onlineic.accounting.budget import Filter
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    LedgerCorruptError,
    LedgerError,
    LedgerMismatchError,
    shown,
)
from onlineic.ledger.kinds import Line, account_to_json
from onlineic.ledger.lines import FORMAT, domain_of
from onlineic.noise.sources import SystemNoise
from onlineic.queries.exact import partition_from_json, partition_to_json
from onlineic.queries.partitions import Partition

Known = Mapping[str, type[Any]]
NAMES_IN_FILES = {"Purchase": "FirstTables"}  # of classes that are called otherwise today
SHOWN = 4  # parts of a long tuple in a message, before its first part that is another
NONCE = 4  # random words of 64 bits that no other file has


def name_in_files(kind: type[Any]) -> str:
    """Return the name by which settings of a class stand in files."""
    return NAMES_IN_FILES.get(kind.__name__, kind.__name__)


def settings_to_json(value: Any, known: Known) -> Any:
    """Return a setting as JSON."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if np.isfinite(number) else {"float": repr(number)}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, (tuple, list)):
        return [settings_to_json(one, known) for one in value]
    if isinstance(value, Partition):
        return {"partition": partition_to_json(value)}
    kind = type(value)
    is_known = known.get(name_in_files(kind)) is kind
    if isinstance(value, Neighbours) and not is_known:
        raise InvalidParameterError(
            f"neighbours must be {REPLACE_ONE} in a ledger file, or those of the table, got {shown(value)}; "
            "leave the file out."
        )
    if is_known:
        fields = {
            field.name: settings_to_json(getattr(value, field.name), known)
            for field in attrs.fields(kind)
            # what a later version added is written where it says something: older files stay the same
            if field.init
            and not (field.metadata.get("later") and getattr(value, field.name) == field.default)
        }
        return {"class": name_in_files(kind), "fields": fields}
    return {"brought": f"{kind.__module__}.{kind.__qualname__}"}


def settings_from_json(written: Any, known: Known, domain: Domain, brought: Any = None) -> Any:
    """Return the setting; `brought` stands for what was written by its name alone.

    Raises:
        LedgerMismatchError: If something must be brought and is not, or is of another class.
        LedgerCorruptError: If a class or a field is unknown.
    """
    try:
        return _setting(written, known, domain, brought)
    except LedgerError:
        raise
    except Exception:  # of a text that was put together by hand: whatever is wrong with it
        raise LedgerCorruptError(
            "ledger must hold settings as they are written, got others; restore "
            "the file from a backup, and give its newest receipt."
        ) from None


def _setting(written: Any, known: Known, domain: Domain, brought: Any) -> Any:
    """Return the setting, or raise anything."""
    if isinstance(written, list):
        return tuple(_setting(one, known, domain, brought) for one in written)
    if not isinstance(written, dict):
        return written
    if "float" in written:
        return float(written["float"])
    if "fraction" in written:
        return Fraction(written["fraction"])
    if "partition" in written:
        return partition_from_json(written["partition"], domain)
    if "brought" in written:
        name = None if brought is None else f"{type(brought).__module__}.{type(brought).__qualname__}"
        if name != written["brought"]:
            raise LedgerMismatchError(
                f"update must be the {written['brought']} that the session was opened with, got "
                f"{'none' if name is None else name}; give it to resume."
            )
        return brought
    kind = known.get(written.get("class", ""))
    if kind is None:
        raise LedgerCorruptError(
            f"ledger must be made of known classes, got {shown(written.get('class'))}; use the version of "
            "onlineic that wrote it."
        )
    aliases = {field.name: field.alias for field in attrs.fields(kind) if field.init}
    fields = {
        aliases.get(name, name): _setting(one, known, domain, brought)
        for name, one in written["fields"].items()
    }
    try:
        return kind(**fields)
    except (TypeError, ValueError):
        raise LedgerCorruptError(
            f"ledger must hold settings that {kind.__name__} takes, got others; use the version of onlineic "
            "that wrote it."
        ) from None


def beginning_of(
    *,
    created: str,
    version: str,
    table: str,
    domain: Domain,
    n: int,
    account: Filter,
    settings: Line,
    plan: Any,
    rules: str = "",
    counted: Any = None,
) -> Line:
    """Return the first line of a ledger: what it is about, and all that its session was made from.

    `rules` is the stamp of those by which it was planned; none is known of a plan without one. `counted` is
    the number of records as it was released, before the plan; without one it is public.

    There is no digest of the rows: with one, whoever has a candidate table could test it.
    """
    line = _first_line(created, version, table, account, settings)
    line |= {} if counted is None else {"counted": counted}
    return {**line, "domain": _domain_to_json(domain), "n": n, "rules": rules, "plan": plan}


def beginning_of_total(*, created: str, version: str, table: str, account: Filter, settings: Line) -> Line:
    """Return the first line of the total of a table."""
    return {**_first_line(created, version, table, account, settings), "total": True}


def _first_line(created: str, version: str, table: str, account: Filter, settings: Line) -> Line:
    """Return what every ledger begins with; a nonce makes it one file's, whatever the clock says.

    A file is known by the link of this line: two that shared it would be charged once by a total.
    """
    return {
        "kind": "ledger",
        "format": FORMAT,
        "created": created,
        "version": version,
        "table": table,
        "account": account_to_json(account),
        "settings": settings,
        "private": True,
        "nonce": SystemNoise().words(NONCE).tobytes().hex(),
    }


def _domain_to_json(domain: Domain) -> list[Any]:
    """Return (name, kind) of each attribute: a list, since order makes the cells, and objects have none."""
    return [[name, kind] for name, kind in json.loads(domain.to_json()).items()]


def checked_label(table: object) -> str:
    """Return the label of a table, or raise `InvalidParameterError` if it names none."""
    if not isinstance(table, str) or not table.strip():
        raise InvalidParameterError(
            f"table must name the table and its release, got table={shown(table)}; write table='census 2026, "
            "release 3': a ledger is of one table as it is."
        )
    return table


def check_label(beginning: Line, table: str) -> None:
    """Raise `LedgerMismatchError` unless a ledger is of the table with this label."""
    if beginning["table"] != table:
        raise LedgerMismatchError(
            f"table must be {shown(beginning['table'], 200)}, as the ledger was opened, got "
            f"table={shown(table, 200)}; "
            "open a new ledger for another table."
        )


def check_beginning(beginning: Line, *, table: str | None, domain: Domain, n: int | None) -> None:
    """Raise `LedgerMismatchError`, by name, unless a ledger is of this table; n is None if private."""
    if table is not None:
        check_label(beginning, table)
    found = _domain_difference(domain_of(beginning), domain)
    if found is not None:
        raise LedgerMismatchError(
            f"data must have the domain of the ledger, {found}; load the table over that domain, which is "
            "onlineic.ledger.read(FILE).domain(), or open a new ledger for another table."
        )
    if n is not None and beginning["n"] != n:
        raise LedgerMismatchError(
            f"data must have n={beginning['n']} records, as the ledger was opened, got n={n}; open a new "
            "ledger for another table."
        )


def _domain_difference(held: Domain, given: Domain) -> str | None:
    """Return in words where a domain is first another than that of a ledger, or None: both are public."""
    if held == given:
        return None
    if held.names != given.names:
        return f"with the attributes {shown(list(held.names))} in this order, got {shown(list(given.names))}"
    for name, one, other in zip(held.names, held.attributes, given.attributes, strict=True):
        if type(one) is not type(other):
            return f"where {name} is a {type(one).__name__}, got a {type(other).__name__}"
        here, there = (attrs.asdict(kind, recurse=False) for kind in (one, other))
        other_values = [field for field in here if here[field] != there[field]]
        for field in other_values or [field for field in here if repr(here[field]) != repr(there[field])]:
            return (
                f"where {name} has {field}={_first(here[field], there[field])}, got "
                f"{_first(there[field], here[field])}"
                f"{', and a file keeps the bins that it was declared with' * (field == 'edges')}"
            )
    return "got another"


def _first(one: Any, other: Any) -> str:
    """Return a value in words, of a long tuple from the first part on that another has not."""
    if not isinstance(one, tuple) or not isinstance(other, tuple):
        return shown(one)
    differing = (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    same = next(differing, min(len(one), len(other)))
    return shown(one) if same < SHOWN else f"(.., {shown(one[same:])[1:]}"


def check_kind(beginning: Line, *, total: bool) -> None:
    """Raise `LedgerMismatchError` unless a ledger is the total of a table, or that of a session."""
    if bool(beginning.get("total", False)) is not total:
        wanted, got = ("the total of a table", "that of a session")[:: 1 if total else -1]
        remedy = "ic.OnlineIC.resume" if total else "ic.TableBudget"
        raise LedgerMismatchError(f"ledger must be {wanted}, got {got}; open it by {remedy}.")


def check_settings(beginning: Line, settings: Line) -> None:
    """Raise `LedgerMismatchError` by the name of the first setting that is another than in the ledger."""
    held = beginning["settings"]
    alone = beginning.get("total") or beginning.get("periods")  # what no session goes on with by itself
    again = "give it so" if alone else "call OnlineIC.resume"
    for name in sorted({*held, *settings}):
        if held.get(name) != settings.get(name):
            raise LedgerMismatchError(
                f"{name} must be {_said(held.get(name))}, as the ledger was opened, got "
                f"{_said(settings.get(name))}; {again}, or open a new ledger (budgets add)."
            )


def _said(written: Any) -> str:
    """Return a setting of a line as it was given: objects by their class and fields."""
    if isinstance(written, dict) and "class" in written and isinstance(written.get("fields"), dict):
        fields = ", ".join(f"{name}={_said(value)}" for name, value in sorted(written["fields"].items()))
        return f"{written['class']}({fields})"[:120]
    return f"{shown(written, 80)}"


def package_version() -> str:
    """Return the version of the package, as far as it is installed."""
    from importlib.metadata import version  # few sessions have a file: imported with it

    with contextlib.suppress(ImportError):  # run from its source
        return version("onlineic")
    return "unknown"
