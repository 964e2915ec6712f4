"""`onlineic ask`: questions about a CSV table, one a line, from a file, a pipe or a prompt.

What is printed about a question depends on released numbers and the question alone; what is wrong with the
table itself quotes records and is shown only on demand.
"""

import argparse
import contextlib
import csv
import io
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onlineic.accounting.budget import Budget
from onlineic.ask.places import without_python
from onlineic.cli.going_on import check_options
from onlineic.cli.numbers import WISH, whole, wish_of
from onlineic.cli.questions import HELP, Asked, read_question
from onlineic.cli.statuses import DONE, FAILED, SAID
from onlineic.cli.table import add_loading, add_protected, protected_by, read_domain, read_table
from onlineic.display.frames import free_name
from onlineic.display.plain import csv_field, strict
from onlineic.display.text import FEW, decimals, percent
from onlineic.errors import (
    InvalidInputError,
    LedgerMismatchError,
    MissingExtraError,
    TooFewRecordsError,
    shown,
)
from onlineic.ledger.sqlite import read
from onlineic.queries.answers import Answer
from onlineic.questions.groups import Groups
from onlineic.questions.means import Derived
from onlineic.questions.statements import AnswerTable
from onlineic.session.session import OnlineIC

if TYPE_CHECKING:
    from onlineic.service.client import Remote

FIELDS = (
    "line",
    "query",
    "cell",
    "value",
    "count",
    "status",
    "error_bound",
    "spent",
    "bias",
    "expected_error",
    "cost",
)
LARGE = 0.1  # share of the budget that a prompt does not risk unasked
SHOWN = 60  # characters of a question that are repeated beside its answer
Form = Literal["text", "json", "csv"]


def _ask(arguments: argparse.Namespace) -> int:
    if arguments.repl and arguments.queries is not None:
        arguments.parser.error(
            f"--repl must stand alone, got QUERIES {shown(arguments.queries, 200)} too; leave one out"
        )
    if arguments.ledger is not None and not (arguments.table or "").strip():
        arguments.parser.error(
            "--ledger must stand with the name of its table and release, got none; write "
            "--table 'census 2026, release 3'"
        )
    if arguments.table is not None and arguments.ledger is None:
        arguments.parser.error(
            f"--table must stand with a ledger, got {shown(arguments.table)} alone; write --ledger FILE.db"
        )
    if arguments.url is not None:
        return _ask_server(arguments)
    for name in ("csv", "domain", "epsilon"):
        if getattr(arguments, name) is None:
            arguments.parser.error(f"--{name} must be given, or --url of a server")
    budget = Budget(arguments.epsilon, arguments.delta)  # refused before the table is read
    domain = read_domain(arguments.domain)
    protected = protected_by(arguments)
    options = {
        name: value
        for name in (
            "hard_answers",
            "certify",
            "within",
            "max_queries",
            "questions",
            "ledger",
            "table",
            "restarts",
        )
        if (value := getattr(arguments, name)) is not None
    }
    with contextlib.ExitStack() as files:
        lines = _lines(arguments, files)  # opened before anything is paid
        data = read_table(arguments, arguments.csv, domain, protected)
        try:
            session = files.enter_context(OnlineIC(data, budget, **options))
        except LedgerMismatchError:
            check_options(read(arguments.ledger).beginning, arguments, left_out=True)
            raise
        again = "every run spends this budget anew" if arguments.ledger is None else "of its ledger"
        print(f"onlineic: {session!r}; {again}", file=sys.stderr)
        return _answer_lines(session, lines, arguments.format, prompted=arguments.repl)


def _ask_server(arguments: argparse.Namespace) -> int:
    """Ask a server: its token is read from the environment, where no list of processes shows it."""
    for name in ("csv", "domain", "epsilon", "ledger", "table"):
        if getattr(arguments, name) is not None:
            arguments.parser.error(f"--{name} must be left out with --url: the server holds the table")
    with contextlib.ExitStack() as files:
        lines = _lines(arguments, files)
        from onlineic.service.client import connect  # and the network with it

        session = files.enter_context(connect(arguments.url))
        print(f"onlineic: {session!r}", file=sys.stderr)
        return _answer_lines(session, lines, arguments.format, prompted=arguments.repl)


def _lines(arguments: argparse.Namespace, files: contextlib.ExitStack) -> Iterable[str]:
    if arguments.repl:
        return _prompted()
    if arguments.queries is not None:
        return files.enter_context(open(arguments.queries, encoding="utf-8-sig", errors="replace"))
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
        if sys.stdin.isatty():
            print("onlineic: reading questions from this terminal, one a line; --repl helps", file=sys.stderr)
    return sys.stdin


def _prompted() -> Iterator[str]:
    """Go through what is typed, until the end of the input; the prompt goes to standard error."""
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  # what was typed comes back by the arrow keys
    while True:
        print("onlineic> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            print(file=sys.stderr)
            return
        yield line


def _answer_lines(
    session: "OnlineIC | Remote", lines: Iterable[str], form: Form, *, prompted: bool = False
) -> int:
    """Answer line by line; a bad line is reported and the next one read."""
    status = DONE
    if form == "csv":
        _row(FIELDS)
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if prompted and text in ("quit", "exit"):
            break
        try:
            if prompted and _is_command(session, text):
                continue
            asked = read_question(text, session.domain)
            if prompted and not _agreed(session, asked):
                continue
            answer = asked.of(session)
        except (InvalidInputError, MissingExtraError, TooFewRecordsError) as error:
            print(f"onlineic: line {number}: {without_python(str(error))}", file=sys.stderr)
            status = FAILED
            continue
        _print_answer(answer, text, session.statistics().spent, number, form)
    return DONE if prompted else status


def _is_command(session: "OnlineIC | Remote", text: str) -> bool:
    """Do what a line of a prompt says that is no question."""
    word, _, rest = text.partition(" ")
    if word == "help":
        print(HELP, file=sys.stderr)
    elif word == "domain":
        print(repr(session.domain), file=sys.stderr)
    elif word == "left":
        left = session.statistics()
        again = "" if left.restarts_left is None else f", paid for {left.restarts_left} more runs"
        print(
            f"{left.asked} asked, {left.hard} measured; spent {left.spent_on}; measured answers left: "
            f"{left.left_said}{again}",
            file=sys.stderr,
        )
    elif word == "explain":
        asked = read_question(rest, session.domain)
        print(session.explain(asked.question, within=asked.within), file=sys.stderr)
    else:
        return False
    return True


def _agreed(session: "OnlineIC | Remote", asked: Asked) -> bool:
    """Ask whether to go on where a question may take a large share of the budget; a pipe is not asked."""
    if not sys.stdin.isatty():
        return True
    explanation = session.explain(asked.question, within=asked.within)
    if explanation.free or explanation.at_most + explanation.tables + explanation.shared <= LARGE:
        return True
    print(f"{explanation!r}\nask it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _print_answer(
    answer: Answer | Derived | AnswerTable | Groups, asked: str, spent: float, line: int, form: Form
) -> None:
    """Write one answer, at once: whoever reads the pipe may choose the next question by it."""
    write: dict[Form, Callable[..., None]] = {"text": _text, "csv": _rows, "json": _object}
    write[form](answer, asked, spent, line)
    sys.stdout.flush()


def _text(answer: Answer | Derived | AnswerTable | Groups, asked: str, spent: float, line: int) -> None:
    said = asked if len(asked) <= SHOWN else asked[: SHOWN - 3] + "..."
    took = f"  cost {percent(answer.cost)}," if answer.cost else ""
    if isinstance(answer, Answer) and not isinstance(answer.value, np.ndarray):
        bounded = math.isfinite(answer.error_bound)
        value, around = decimals(float(answer.value), answer.error_bound)
        bound = f"± {around}" if bounded else "no bound  "
        numbers = f"{value} {bound}  {answer.count:14,.1f} {answer.of_what}  {answer.status:8}"
        usual = f"  {answer.usually}" if answer.usually else ""
        print(f"{numbers}{usual}{took}  {spent:4.0%} spent  {said}")
    else:
        print(f"{answer!s}\n{took}  {spent:.0%} spent  {said}")


def _object(answer: Answer | Derived | AnswerTable | Groups, asked: str, spent: float, line: int) -> None:
    said: dict[str, Any] = answer.to_dict()
    if isinstance(answer, AnswerTable):  # whose columns are called as the domain and the statement please
        sure, off = (
            dict(zip(answer.names, each, strict=True)) for each in (answer.confidences, answer.biases)
        )
        said = {"columns": said, "confidences": sure, "biases": off, "private": answer.private}
        if answer.chosen:
            said["chosen"] = answer.chosen
    said |= {"query": asked, "cost": answer.cost, "spent": spent, "line": line}
    print(json.dumps(strict(said), allow_nan=False))


def _rows(answer: Answer | Derived | AnswerTable | Groups, asked: str, spent: float, line: int) -> None:
    """Write one row a number; of a table, `cell` tells in JSON which, and `cost` is of all its rows."""
    for cell, value, count, status, bound, bias, error in _numbers(answer):
        known = "" if error is None or math.isnan(error) else error
        _row((line, asked, cell, value, count, status, bound, spent, bias, known, answer.cost))


def _numbers(answer: Answer | Derived | AnswerTable | Groups) -> Iterator[tuple[Any, ...]]:
    if isinstance(answer, AnswerTable):
        for place, labels in enumerate(answer.labels):
            for column, name in enumerate(answer.names):
                which = dict(zip(answer.keys, labels, strict=True))
                cell = json.dumps({**which, free_name("of", which): name})
                measures = (answer.values, answer.error_bounds, answer.expected_errors)
                value, bound, expected = (float(one[place, column]) for one in measures)
                status = FEW if answer.few_records[place, column] else ""
                yield cell, value, "", status, bound, answer.biases[column], expected
    elif isinstance(answer, Groups):
        columns = (answer.values, answer.error_bounds, answer.expected_errors, answer.few_records)
        told = zip(itertools.product(*answer.labels), *(one.ravel().tolist() for one in columns), strict=True)
        for labels, value, bound, expected, few in told:
            cell = json.dumps(dict(zip(answer.keys, labels, strict=True)))
            yield cell, value, "", FEW if few else "", bound, answer.bias, expected
    elif isinstance(answer, Derived):
        bounds = (answer.error_bound, answer.bias, answer.expected_error)
        count = "" if answer.count is None else round(answer.count, 6)
        yield "", answer.value, count, FEW if answer.few_records else "", *bounds
    elif isinstance(answer.value, np.ndarray):
        names, errors = list(answer.labels), answer.expected_error
        for at in np.ndindex(answer.value.shape):
            cell = json.dumps({name: answer.labels[name][code] for name, code in zip(names, at, strict=True)})
            value, count = float(answer.value[at]), round(float(answer.count[at]), 6)
            error = None if errors is None else float(errors[at])
            yield cell, value, count, answer.status, answer.error_bound, 0.0, error
    else:
        bounds = (answer.error_bound, 0.0, answer.expected_error)
        yield "", answer.value, round(answer.count, 6), answer.status, *bounds


def _row(fields: Iterable[Any]) -> None:
    csv.writer(sys.stdout, lineterminator="\n").writerow(map(csv_field, fields))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `onlineic ask` takes."""
    parser.description = (
        f"{HELP}\n\nAll files are opened before anything is paid. Without --ledger every run "
        "spends its whole\nbudget anew: budgets of several runs on one table add."
    )
    parser.epilog, parser.formatter_class = SAID, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--csv", "--data", metavar="FILE", help="the private table: CSV with a header line, or Parquet"
    )
    add_loading(parser)
    parser.add_argument("--domain", metavar="FILE.json", help="the public domain of its columns")
    add_protected(parser)
    parser.add_argument("--epsilon", type=float)
    parser.add_argument("--url", help="ask a server instead, with the token in ONLINEIC_TOKEN")
    parser.add_argument("--delta", type=float, default=0.0, help="default 0")
    wish = parser.add_mutually_exclusive_group()
    wish.add_argument("--hard-answers", type=whole, metavar="C", help="how many measured answers to plan for")
    wish.add_argument("--certify", type=float, help="accuracy to certify instead, fraction of records")
    wish.add_argument(
        "--within",
        type=wish_of,
        metavar="W",
        help=WISH,
    )
    parser.add_argument("--questions", type=whole, metavar="M", help="about how many will come")
    parser.add_argument("--max-queries", type=whole, metavar="Q", help="length that accuracy speaks of")
    parser.add_argument(
        "--ledger", metavar="FILE.db", help="spend the budget from this file, made at the first run"
    )
    parser.add_argument("--table", metavar="LABEL", help="name and release of the table, with --ledger")
    parser.add_argument(
        "--restarts", type=whole, metavar="R", help="runs after the first that are paid for, with --ledger"
    )
    parser.add_argument("--format", choices=("text", "json", "csv"), default="text")
    parser.add_argument("--repl", action="store_true", help="ask at a prompt; in place of QUERIES")
    parser.add_argument(
        "queries", nargs="?", metavar="QUERIES", help="file of queries; default standard input"
    )
    parser.set_defaults(run=_ask, parser=parser)
