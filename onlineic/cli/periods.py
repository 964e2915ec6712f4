"""`onlineic periods`: a table that grows by periods: the next one in, a year closed, and what is there."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from onlineic.accounting.budget import Budget
from onlineic.cli.numbers import whole
from onlineic.cli.statuses import SAID
from onlineic.cli.table import add_loading, read_domain, read_table
from onlineic.data.private import PrivateData
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit
from onlineic.ledger.lines import Written
from onlineic.ledger.place import exists
from onlineic.ledger.sqlite import read
from onlineic.periods.periods import Periods, book_of, persons_of, protected_over, whose_budget
from onlineic.periods.persons import Persons
from onlineic.periods.ranges import COUNT_SHARE

PLACE = "{}"  # what a label stands in for, in the name of a file


def _add(arguments: argparse.Namespace) -> int:
    with _opened(arguments) as held:
        data = None if arguments.csv is None else _table(arguments, held, arguments.label, arguments.csv)
        held.add(arguments.label, data, late=arguments.late)
        print(f"onlineic: {held}", file=sys.stderr)
    return 0


def _close(arguments: argparse.Namespace) -> int:
    with _opened(arguments) as held:
        held.close(arguments.label)
        print(f"onlineic: {held}", file=sys.stderr)
    return 0


def _show(arguments: argparse.Namespace) -> int:
    print(shown_periods(read(arguments.file), arguments.json))
    return 0


def _opened(arguments: argparse.Namespace) -> Periods:
    """Return the periods of a root ledger; `add` makes a new one, if its settings are given."""
    load = _loader(arguments)
    if exists(arguments.file):
        return Periods.resume(arguments.file, load=load, receipt=arguments.receipt)
    for name in ("domain", "epsilon", "table"):
        if getattr(arguments, name, None) is None:
            arguments.parser.error(f"--{name} must be given for a new root ledger")
    levels = None if arguments.levels is None else [one.strip() for one in arguments.levels.split(",")]
    most, within = arguments.most_periods, arguments.within
    persons = None if most is None and within is None else Persons(periods=most, within=within)
    wish = {} if arguments.max_queries is None else {"max_queries": arguments.max_queries}
    budget, domain = Budget(arguments.epsilon, arguments.delta), read_domain(arguments.domain)
    return Periods(
        arguments.file,
        domain,
        budget,
        levels=levels,
        persons=persons,
        neighbours=arguments.neighbours,
        n_at_most=arguments.n_at_most,
        table=arguments.table,
        load=load,
        **wish,
    )


def _loader(arguments: argparse.Namespace) -> Callable[[str], PrivateData] | None:
    """Return what loads the table of a block that was added earlier, or None."""
    if getattr(arguments, "data", None) is None:
        return None
    return loader(arguments, arguments.file)


def loader(arguments: argparse.Namespace, root: str) -> Callable[[str], PrivateData]:
    """Return what loads the table of a block of a root ledger, from a file that its label names."""
    if PLACE not in arguments.data:
        arguments.parser.error(f"--data must have {PLACE} where the label stands")
    settings = read(root).beginning["settings"]
    domain = Domain.from_json(settings["domain"])
    protected = _protected(arguments.person, settings.get("n_at_most"))
    return lambda label: read_table(arguments, arguments.data.replace(PLACE, label), domain, protected)


def _protected(person: str | None, n_at_most: int | None) -> dict[str, Any]:
    """Return who is protected, as loaders take it.

    Of a person one row counts in a period, chosen by a public hash. With a cap the number of records is
    private.
    """
    near = {} if n_at_most is None else {"neighbours": "add-remove", "n_at_most": n_at_most}
    return {"unit": None if person is None else Unit(person, units=1), **near}


def _table(arguments: argparse.Namespace, held: Periods, label: str, path: str) -> PrivateData:
    """Return the table of a file, checked by its dates if there is a column of them."""
    domain = held.domain
    if arguments.date is not None:
        domain = held.loading(label, arguments.date, late=arguments.late)
    protected = _protected(arguments.person, held.n_at_most)
    return read_table(arguments, path, domain, protected, fits="its domain and its period")


def shown_periods(written: Written, as_json: bool) -> str:
    """Return what a root ledger says; its draws are checked again."""
    budget, book = book_of(written)
    line = written.beginning
    persons = persons_of(line["settings"])
    protects = protected_over(book.calendar.finest, persons, book.counting is not None)
    if as_json:
        return json.dumps(
            {
                "periods": True,
                "table": line["table"],
                "epsilon": budget.epsilon,
                "delta": budget.delta,
                "levels": list(book.calendar.levels),
                "shares": [str(part) for part in book.shares],
                "protects": protects,
                **({} if book.counting is None else {"n_at_most": book.counting.n_at_most}),
                "blocks": [
                    {"label": one.label, "n": one.n, "late": one.late, "left": str(book.account.left(label))}
                    for label, one in book.blocks.items()
                ],
                "nodes": [
                    {"label": one.label, "blocks": list(one.blocks), "charge": str(one.charge.amount)}
                    for one in book.nodes.values()
                ],
                "receipt": str(written.receipt),
            }
        )
    finest, order = book.calendar.finest, book.account.whole.order
    whose = whose_budget(finest, persons)
    adds = "epsilons add" if order is None else f"Renyi order {float(order):.6g}"
    shares = ", ".join(
        f"{level} {float(part):.4g}" for level, part in zip(book.calendar.levels, book.shares, strict=True)
    )
    lines = [
        f"periods   of the table {line['table']}; {adds}",
        f"opened    {line['created']} by onlineic {line['version']}",
        f"budget    epsilon {budget.epsilon:g}, delta {budget.delta:g}, of {whose}",
        f"shares    {shares}",
        protects.replace("protects ", "protects  ", 1),
        f"receipt   {written.receipt}",
    ]
    for label, block in book.blocks.items():
        late = ", late rows of earlier ones among them" if block.late else ""
        off = book.n_bound([label], COUNT_SHARE * line["settings"]["beta"])
        bound = f" ± {off:,}" if off else ""
        lines.append(
            f"{finest:9} {label}, n {block.n:,}{bound}, {float(book.account.left(label)):.4%} left{late}"
        )
    for label, node in book.nodes.items():
        lines.append(f"session   {label}, over {len(node.blocks)} {finest}s, ledger {node.file[:16]}")
    return "\n".join([*lines, "holds     chain, order of blocks, and what every node drew"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `onlineic periods` takes."""
    parser.description = (
        "A table that grows by days, months or years: each has a session with its part of the whole budget, "
        "and ranges are asked from Python by onlineic.Periods.resume(FILE).over(since, until)."
    )
    actions = parser.add_subparsers(required=True, metavar="{add,close,show}")
    for name, run, text in (
        ("add", _add, "begin the next period with its records, for good; the first one makes FILE"),
        ("close", _close, "open the session of a coarser period, a year say, over all of its records"),
        ("show", _show, "what is there: periods, sessions, and what every period has left"),
    ):
        action = actions.add_parser(name, allow_abbrev=False, help=text, description=text, epilog=SAID)
        action.add_argument("file", metavar="FILE", help="the root ledger")
        action.set_defaults(run=run, parser=action, receipt=None)
        if name == "show":
            action.add_argument("--json", action="store_true", help="one JSON object instead of a text")
            continue
        action.add_argument("label", metavar="PERIOD", help="such as 2026-01, or 2026 to close a year")
        action.add_argument(
            "--person", metavar="COLUMN", help="whose row it is: one row of each person counts in a period"
        )
        action.add_argument("--receipt", metavar="RECEIPT", help="an older copy of FILE is refused")
        add_loading(action)
        if name == "close":
            action.add_argument(
                "--data", metavar="NAME{}.csv", required=True, help="tables of its periods, {} is the label"
            )
            continue
        action.add_argument(
            "csv", nargs="?", metavar="CSV", help="its records, CSV or Parquet; none: there are none"
        )
        action.add_argument(
            "--date", metavar="COLUMN", help="dates by which rows of other periods are refused"
        )
        action.add_argument("--late", action="store_true", help="rows of earlier periods are among them")
        action.add_argument("--domain", metavar="FILE.json", help="of a new FILE: the public domain")
        action.add_argument("--epsilon", type=float, help="of a new FILE: of every period")
        action.add_argument("--delta", type=float, default=0.0, help="default 0")
        action.add_argument("--levels", help="finest first, default month,year; of persons month")
        action.add_argument("--table", metavar="LABEL", help="of a new FILE: the name of the table")
        action.add_argument(
            "--neighbours",
            choices=("replace-one", "add-remove"),
            default="replace-one",
            help="of a new FILE: add-remove protects whether one is there at all",
        )
        action.add_argument(
            "--n-at-most", type=whole, metavar="N", help="with add-remove: the most records of a period"
        )
        action.add_argument("--max-queries", type=whole, metavar="Q", help="of every session")
        action.add_argument(
            "--most-periods", type=whole, metavar="P", help="of a new FILE: a person has rows in at most P"
        )
        action.add_argument(
            "--within",
            type=whole,
            metavar="W",
            help="of a new FILE: all of a person's rows lie in W in a row",
        )
