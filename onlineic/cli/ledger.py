"""`onlineic ledger`: what a ledger file says, whether all of it holds, and its lines for others to read."""

import argparse
import json
import os
import sys
from fractions import Fraction
from typing import Any

from onlineic.accounting.of_table import per_person
from onlineic.audit.ledgers import LedgerReport, summarised, verified
from onlineic.audit.totals import TotalReport, total_report
from onlineic.cli.periods import shown_periods
from onlineic.cli.statuses import FAILED
from onlineic.domain.unit import whose
from onlineic.errors import (
    LedgerCorruptError,
    shown,
)
from onlineic.ledger.lines import Written, exported, imported
from onlineic.ledger.sqlite import read

FREE = ("easy", "easy_batch", "checkpoint", "told", "paid")  # lines that charge nothing by themselves
SQLITE = b"SQLite format 3\x00"


def _show(arguments: argparse.Namespace) -> int:
    written = _read(arguments.file)
    if written.beginning.get("periods"):
        print(shown_periods(written, arguments.json))
        return 0
    if written.of_table:
        return _total(written, None, arguments.json)
    report = summarised(written)
    if not arguments.json:
        print(_text(report))
        return FAILED if report.problems else 0
    lines = [line for line in written.lines[1:] if line["kind"] not in FREE]
    print(json.dumps(_object(report) | {"charges": lines}))
    return FAILED if report.problems else 0


def _backup(arguments: argparse.Namespace) -> int:
    from onlineic.service.backup import back_up

    print(f"receipt   {back_up(arguments.file, arguments.users, arguments.folder)}")
    return 0


def _restore(arguments: argparse.Namespace) -> int:
    from onlineic.service.backup import restore

    total, receipt = arguments.total, arguments.receipt
    found = restore(arguments.folder, arguments.file, arguments.users, total=total, receipt=receipt)
    print(f"receipt   {found}")
    if total is None and receipt is None:
        print(
            "onlineic: nothing told whether a newer copy exists: give --total or --receipt", file=sys.stderr
        )
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    written = _read(arguments.file)
    if written.beginning.get("periods"):
        written.check(arguments.receipt)
        print(shown_periods(written, arguments.json))  # checked in any case
        return 0
    if written.of_table:
        return _total(written, arguments.receipt, arguments.json)
    report = verified(written, receipt=arguments.receipt)
    print(json.dumps(_object(report)) if arguments.json else _text(report, verified=True))
    return 0 if report.whole else FAILED


def _total(written: Written, receipt: str | None, as_json: bool) -> int:
    """Print what the total of a table says; its prices are computed again in any case."""
    report = total_report(written, receipt)
    print(json.dumps(_total_object(report, written)) if as_json else _total_text(report))
    return 0 if report.whole else FAILED


def _total_text(report: TotalReport) -> str:
    account, budget = report.account, report.budget
    adds = "epsilons and deltas add" if account.order is None else f"Renyi order {float(account.order):.6g}"
    kept = "own deltas" if account.order is None else "mechanisms without a price at the order"
    persons, rows = _persons(report), report.rows_per_person
    lines = [
        f"total     of the table {report.table}; {adds}",
        f"opened    {report.created} by onlineic {report.version}",
        f"budget    epsilon {budget.epsilon:g}, delta {budget.delta:g}{persons}",
        f"spent     {float(account.spent / account.capacity):.4%}",
        f"left      {float(account.left / account.capacity):.4%}",
        f"apart     delta {float(report.apart):.4g} for {kept}, {float(report.apart_spent):.4g} of it spent",
        f"receipt   {report.receipt}",
    ]
    lengths = {one.file: one.lines for one in report.noted}
    for one, part in zip(report.drawn, report.parts or (Fraction(0),) * len(report.drawn), strict=True):
        known = f", ledger {one.file[:16]} of {lengths.get(one.file, 1)} lines" if one.file else ""
        alone_of = per_person(one.budget, rows)
        alone = f"epsilon {alone_of.epsilon:.6g}, delta {alone_of.delta:.6g} alone{persons}"
        lines.append(f"drawn     {float(part):.4%} by a {one.what}: {alone}{known}")
    lines += [f"WRONG     {problem}" for problem in report.problems]
    return "\n".join([*lines, "holds     chain, capacity and prices"] if report.whole else lines)


def _persons(report: TotalReport | LedgerReport) -> str:
    """Return of whom a budget is, where it is not that of a row."""
    rows = report.rows_per_person if getattr(report, "unit", None) is None else 1
    return f", of a person with {rows} rows" if rows > 1 else ""


def _total_object(report: TotalReport, written: Written) -> dict[str, Any]:
    account = report.account
    return {
        "total": True,
        "table": report.table,
        "created": report.created,
        "version": report.version,
        "epsilon": report.budget.epsilon,
        "delta": report.budget.delta,
        "rows_per_person": report.rows_per_person,
        "order": None if account.order is None else str(account.order),
        "spent": str(account.spent / account.capacity),
        "apart": str(report.apart),
        "apart_spent": str(report.apart_spent),
        "receipt": str(report.receipt),
        "shared": [line for line in written.lines[1:] if line["kind"] == "shared"],
        "drawn": [line for line in written.lines[1:] if line["kind"] == "drawn"],
        "noted": [line for line in written.lines[1:] if line["kind"] == "noted"],
        "problems": list(report.problems),
    }


def _export(arguments: argparse.Namespace) -> int:
    written = _read(arguments.file)
    if arguments.output is None:
        sys.stdout.writelines(f"{line}\n" for line in exported(written))
    else:
        with open(arguments.output, "x", encoding="ascii") as file:
            try:
                file.writelines(f"{line}\n" for line in exported(written))
                file.flush()
            except BaseException:
                os.unlink(arguments.output)  # a part of it is no export
                raise
    return 0


def _read(path: str) -> Written:
    """Return a ledger or an export of one."""
    with open(path, "rb") as file:
        start = file.read(len(SQLITE))
    if start == SQLITE:
        return read(path)
    if not start.startswith(b"{"):
        raise LedgerCorruptError(
            f"ledger must be a file of onlineic or an export of one, got {shown(path, 200)}, which is "
            f"neither; restore "
            "it from a backup, and give its newest receipt."
        )
    with open(path, encoding="ascii", errors="replace") as file:
        return imported(file)


def _text(report: LedgerReport, verified: bool = False) -> str:
    left = 1 - report.spent - report.reserved
    lines = [
        f"table     {report.table}, {report.n:,} {whose(report.unit)}",
        *([] if report.unit is None and report.counted is None else [f"protects  {report.protects}"]),
        *([] if report.counted is None else [f"counted   {report.n:,} ± {report.counted.bound:,}, released"]),
        f"opened    {report.created} by onlineic {report.version}",
        f"budget    epsilon {report.budget.epsilon:g}, delta {report.budget.delta:g}{_persons(report)}",
        f"spent     {float(report.spent):.4%}, of it {float(report.forfeited):.4%} without an answer",
        f"reserved  {float(report.reserved):.4%}; a session that is not closed loses it",
        f"left      {float(left):.4%}",
        f"answers   {report.easy:,} easy, {report.hard:,} hard; resumed {report.resumed} times",
        f"receipt   {report.receipt}",
    ]
    if verified and report.replayed:
        lines.append(
            f"replay    {report.numbers:,} numbers, {report.differing:,} with other bits, by at most "
            f"{report.largest:.3g}"
        )
    elif verified:
        lines.append(
            "replay    none: other rules of planning and learning, or a rule or a start not in the file"
        )
    lines += [f"WRONG     {problem}" for problem in report.problems]
    if report.whole:
        lines.append("holds     " + ("chain, charges, prices and releases" if verified else "the chain"))
    return "\n".join(lines)


def _object(report: LedgerReport) -> dict[str, Any]:
    return {
        "table": report.table,
        "n": report.n,
        "created": report.created,
        "version": report.version,
        "epsilon": report.budget.epsilon,
        "delta": report.budget.delta,
        "rows_per_person": report.rows_per_person,
        "person": None if report.unit is None else report.unit.person,
        **({} if report.counted is None else {"counted": [report.counted.n, report.counted.bound]}),
        "spent": str(report.spent),
        "reserved": str(report.reserved),
        "burned": str(report.forfeited),
        "easy": report.easy,
        "hard": report.hard,
        "resumed": report.resumed,
        "receipt": str(report.receipt),
        "replayed": report.replayed,
        "numbers": report.numbers,
        "differing": report.differing,
        "largest": report.largest,
        "problems": list(report.problems),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `onlineic ledger` takes."""
    parser.description = (
        "Read the ledger file of a closed session, the total of a table, or an export. Exit status 1 if "
        "something does not hold, or cannot be read."
    )
    parser.set_defaults(run=_show)
    actions = parser.add_subparsers(required=True, metavar="{show,verify,export,backup,restore}")
    for name, run, text in (
        ("show", _show, "what it says: budget, what is spent and left, answers; the chain is checked"),
        ("verify", _verify, "compute every charge, price, release and tested number again from its lines"),
        ("export", _export, "write its lines as JSON, for others to verify"),
    ):
        action = actions.add_parser(name, allow_abbrev=False, help=text, description=text)
        action.add_argument("file", metavar="FILE")
        if name != "export":
            action.add_argument("--json", action="store_true", help="one JSON object instead of a text")
        if name == "verify":
            action.add_argument("--receipt", metavar="RECEIPT", help="an older copy than this is refused")
        if name == "export":
            action.add_argument("--output", metavar="NEW", help="a new file; default standard output")
        action.set_defaults(run=run)
    for name, run, text in (
        ("backup", _backup, "copy it and the users file into a new folder, also while a server has them"),
        ("restore", _restore, "put both back from such a folder, where neither is"),
    ):
        action = actions.add_parser(name, allow_abbrev=False, help=text, description=text)
        action.add_argument("file", metavar="FILE", help="the ledger")
        action.add_argument("folder", metavar="FOLDER", help="of the copies")
        action.add_argument("--users", required=True, metavar="USERS.db")
        if name == "restore":
            action.add_argument("--total", metavar="TOTAL.db", help="an older copy than it knows is refused")
            action.add_argument("--receipt", metavar="RECEIPT", help="an older copy than this is refused")
        action.set_defaults(run=run)
