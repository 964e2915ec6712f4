"""`onlineic ask`: queries about a CSV table, one a line.

What is printed about a query depends on released numbers and the query alone; what is wrong with the table
itself may quote a record and is shown only on demand.
"""

import argparse
import csv
import io
import json
import math
import sys
from collections.abc import Iterable
from typing import TextIO

from onlineic.accounting.budget import Budget
from onlineic.data.private import PrivateData
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidDataError, InvalidInputError
from onlineic.queries.answers import Answer
from onlineic.queries.json import parsed_query
from onlineic.session.session import OnlineIC

FIELDS = ("value", "count", "status", "error_bound", "spent", "line")
FAILED, USAGE, INTERRUPTED, CLOSED_PIPE = 1, 2, 130, 141


def _ask(arguments: argparse.Namespace) -> int:
    budget = Budget(arguments.epsilon, arguments.delta)  # refused before the table is read
    with open(arguments.domain, encoding="utf-8-sig", errors="replace") as file:
        domain = Domain.from_json(file.read())
    options = {
        name: value
        for name in ("hard_answers", "certify", "max_queries", "ledger", "table")
        if (value := getattr(arguments, name)) is not None
    }
    try:
        data = PrivateData.from_csv(arguments.csv, domain)
    except InvalidDataError:
        if arguments.show_data_errors:
            print(PrivateData.check(arguments.csv, domain).curator_report(), file=sys.stderr)
        raise InvalidDataError(
            "the table must fit its domain, got another; --show-data-errors says more, and quotes records."
        ) from None
    with OnlineIC(data, budget, **options) as session:
        again = "every run spends this budget anew" if arguments.ledger is None else "of its ledger"
        print(f"onlineic: {session!r}; {again}", file=sys.stderr)
        return _answered(arguments, session, domain)


def _answered(arguments: argparse.Namespace, session: OnlineIC, domain: Domain) -> int:
    if arguments.queries is None:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        return _answer_lines(session, domain, sys.stdin, arguments.format)
    with open(arguments.queries, encoding="utf-8-sig", errors="replace") as file:
        return _answer_lines(session, domain, file, arguments.format)


def _answer_lines(session: OnlineIC, domain: Domain, lines: Iterable[str], form: str) -> int:
    """Answer line by line; a bad line is reported and the next one read."""
    status = 0
    if form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerow(FIELDS)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            answer = session.answer(parsed_query(line, domain))
        except InvalidInputError as error:
            print(f"onlineic: line {number}: {error}", file=sys.stderr)
            status = FAILED
            continue
        _print_answer(sys.stdout, answer, session.statistics().spent, number, form)
    return status


def _print_answer(out: TextIO, answer: Answer, spent: float, line: int, form: str) -> None:
    """Write one line, at once: whoever reads the pipe may choose the next query by it."""
    bounded = math.isfinite(answer.error_bound)
    if form == "text":
        bound = f"± {answer.error_bound:.6f}" if bounded else "no bound  "
        text = f"{answer.value:9.6f} {bound}  {answer.count:14,.1f} records  {answer.status:8}"
        print(f"{text}  {spent:4.0%} spent", file=out, flush=True)
        return
    values = (answer.value, round(answer.count, 6), answer.status, answer.error_bound, spent, line)
    if form == "csv":
        csv.writer(out, lineterminator="\n").writerow(values)
        out.flush()
    else:
        known = dict(zip(FIELDS, values, strict=True)) | ({} if bounded else {"error_bound": None})
        print(json.dumps(known, allow_nan=False), file=out, flush=True)
