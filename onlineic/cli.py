"""The command line: `onlineic demo` and `onlineic ask`.

Answers go to standard output, everything else to standard error. What `ask` prints about a query depends on
released numbers and the query alone; what is wrong with the table itself may quote a record and is shown
only on demand.
"""

import argparse
import csv
import io
import json
import math
import os
import sys
import textwrap
import time
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import attrs

from onlineic._typing import Floats
from onlineic.accounting import Budget
from onlineic.answers import Answer
from onlineic.bounds import least_n
from onlineic.data import PrivateData
from onlineic.domain import Domain
from onlineic.errors import (
    InvalidDataError,
    InvalidInputError,
    MissingExtraError,
    OnlineICError,
)
from onlineic.evaluate import (
    Trace,
    coverage,
    exact_marginal,
    exact_values,
    known_baselines,
    random_stream,
    trace,
)
from onlineic.expressions import Expression, where
from onlineic.noise import Noise, SimulatedNoise
from onlineic.query_json import parsed_query
from onlineic.report import new_figure, plot_errors, plot_marginal, rows, text_table
from onlineic.session import OnlineIC
from onlineic.tables import adult5
from onlineic.updates import MultiplicativeWeights

__all__ = ["adult_domain", "main"]

FIELDS = ("value", "count", "status", "error_bound", "spent", "line")
FAILED, USAGE, INTERRUPTED, CLOSED_PIPE = 1, 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        0; 1 if a line or a file failed; 2 for arguments that cannot be used; 130 after Ctrl-C; 141 if
        the reader of the output has gone.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a narrow locale must not stop an answer that is paid
    arguments = _parser().parse_args(argv)
    try:
        status = arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("onlineic: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # the interpreter flushes once more at its end: let it write to nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except OSError as error:
        print(f"onlineic: error: {error.filename or 'a file'}: {error.strerror}", file=sys.stderr)
        return FAILED
    except OnlineICError as error:
        print(f"onlineic: error: {error}", file=sys.stderr)
        wrong_usage = isinstance(error, InvalidInputError) and not isinstance(error, InvalidDataError)
        return USAGE if wrong_usage else FAILED
    return int(status)


def _parser() -> argparse.ArgumentParser:
    """Build the parser; abbreviations are refused: a mistyped --eps must not pass for --epsilon."""
    parser = argparse.ArgumentParser(
        prog="onlineic",
        allow_abbrev=False,
        description="Differentially private answers to a stream of counting queries under one budget.",
    )
    commands = parser.add_subparsers(required=True, metavar="{demo,ask}")
    demo = commands.add_parser(
        "demo",
        allow_abbrev=False,
        help="answer a random stream about a public census table, beside the trivial baselines",
        description="Answer a random stream about the public Adult table, beside the trivial baselines.",
    )
    demo.add_argument("--queries", type=_positive, default=4000, metavar="Q", help="default 4000")
    demo.add_argument("--epsilon", type=float, default=1.0, help="default 1")
    demo.add_argument("--delta", type=float, default=1e-9, help="default 1e-9")
    demo.add_argument("--seed", type=_seed, help="simulated noise: repeatable, NOT PRIVATE")
    demo.add_argument(
        "--plot", default="onlineic-demo.png", metavar="FILE", help="default ./onlineic-demo.png"
    )
    demo.set_defaults(run=_demo)
    ask = commands.add_parser(
        "ask",
        allow_abbrev=False,
        help="answer queries about a CSV table, one JSON object a line",
        description='One query a line: {"age": [30, 50], "sex": "F"}. A list of two numbers is a closed '
        'range of an ordered attribute, null the missing value; {"one_of": [..]}, {"not": ..}, '
        '{"at_least": v} and {"below": v} stand for a condition; a whole line {"not": {..}} for all other '
        "records. "
        "Every run spends its whole budget anew: the budgets of several runs on one table add.",
    )
    ask.add_argument("--csv", required=True, metavar="FILE", help="the private table, with a header line")
    ask.add_argument("--domain", required=True, metavar="FILE.json", help="the public domain of its columns")
    ask.add_argument("--epsilon", type=float, required=True)
    ask.add_argument("--delta", type=float, default=0.0, help="default 0")
    wish = ask.add_mutually_exclusive_group()
    wish.add_argument("--hard-answers", type=_positive, metavar="C", help="how many queries may be measured")
    wish.add_argument("--alpha", type=float, help="accuracy to certify instead, fraction of records")
    ask.add_argument("--max-queries", type=_positive, metavar="Q", help="length that accuracy speaks of")
    ask.add_argument("--format", choices=("text", "json", "csv"), default="text")
    ask.add_argument(
        "--show-data-errors",
        action="store_true",
        help="say what is wrong with a table that does not fit its domain; may quote a record",
    )
    ask.add_argument("queries", nargs="?", metavar="QUERIES", help="file of queries; default standard input")
    ask.set_defaults(run=_ask)
    return parser


def _positive(text: str) -> int:
    return _whole(text, 1)


def _seed(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, got {text!r:.40}")
    return int(text)


# -- ask -------------------------------------------------------------------------------------------


def _ask(arguments: argparse.Namespace) -> int:
    budget = Budget(arguments.epsilon, arguments.delta)  # refused before the table is read
    with open(arguments.domain, encoding="utf-8-sig", errors="replace") as file:
        domain = Domain.from_json(file.read())
    options = {
        name: value
        for name in ("hard_answers", "alpha", "max_queries")
        if (value := getattr(arguments, name)) is not None
    }
    try:
        data = PrivateData.from_csv(arguments.csv, domain)
    except InvalidDataError:
        if arguments.show_data_errors:
            raise
        raise InvalidDataError(
            "the table must fit its domain, got another; --show-data-errors says more, maybe a record."
        ) from None
    session = OnlineIC(data, budget, **options)
    print(f"onlineic: {session!r}; every run spends this budget anew", file=sys.stderr)
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


# -- demo ------------------------------------------------------------------------------------------


def adult_domain() -> Domain:
    """Return the public domain of `tables.adult5`, 23,680 cells."""
    races = ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"]
    ranges = {"age": range(17, 91), "education_num": range(1, 17)}
    return Domain.of({**ranges, "race": races, "sex": ["Female", "Male"], "income": ["<=50K", ">50K"]})


def _demo(arguments: argparse.Namespace) -> int:
    budget = Budget(arguments.epsilon, arguments.delta)
    columns, counts = adult5()
    domain = adult_domain()
    data = PrivateData.from_counts(columns, counts, domain)
    stream = random_stream(domain, arguments.queries)
    truths = exact_values(data, stream)
    source = "the system's entropy"
    if arguments.seed is not None:
        source = f"simulated with seed {arguments.seed}, NOT PRIVATE"
    _say(
        f"{data.n:,} records of the Adult census table, {len(domain.names)} attributes, {domain.size:,} "
        f"cells. {len(stream):,} random range and point queries, answered in order under one budget of "
        f"epsilon {budget.epsilon:g}, delta {budget.delta:g}. Noise: {source}. The table is public: hence "
        "the exact counts and errors below, which nobody could show of a private one."
    )

    def noise() -> Noise | None:
        return None if arguments.seed is None else SimulatedNoise(arguments.seed)

    session = OnlineIC(data, budget, max_queries=len(stream), noise=noise())
    line = _Progress(sys.stderr, len(stream))
    main_trace = trace(
        "session", session, data, stream, truths=truths, seed=arguments.seed, progress=line.show
    )
    line.clear()
    _print_examples(session, stream[:4], truths)
    traces = [main_trace]
    for label, make in known_baselines(data, budget, stream).items():
        traces.append(trace(label, make(noise()), data, stream, truths=truths, seed=arguments.seed))
    print(text_table(traces))
    print(f"errors: fractions of the {data.n:,} records; * smallest of its column\n")
    _say(_verdict(traces, domain))
    kept, bounded = coverage([main_trace])
    _say(
        f"Stated bounds of the session: {kept:,} of {bounded:,} answers that had one lie within it "
        f"({kept / max(bounded, 1):.1%}). Each is stated at 95%; most are easy, and their true errors far "
        "smaller than a test can certify."
    )
    _say(_textbook(data, budget, stream, truths, noise()))
    return _plot(arguments.plot, traces, session, data)


def _print_examples(session: OnlineIC, queries: Sequence[Expression], truths: Floats) -> None:
    """Show a few answers; the session remembers them, so that asking again is free."""
    n = round(session.answer(where()).count)
    for query, truth in zip(queries, truths, strict=False):
        answer = session.answer(query)
        bound = f"± {n * answer.error_bound:,.0f}" if math.isfinite(answer.error_bound) else "(no bound)"
        print(f"  {query!r}\n      {answer.count:,.0f} {bound} records; exactly {n * truth:,.0f}")
    print()


def _verdict(traces: Sequence[Trace], domain: Domain) -> str:
    """Say which baselines are more accurate, and what they were told."""
    session, *others = rows(traces)
    better = [row for row in others if row.rms < session.rms]
    if not better:
        return f"No baseline has a smaller rms error than the session's {session.rms:.4f} on this stream."
    named = "; ".join(f"{row.label} {row.rms:.4f}" for row in sorted(better, key=lambda row: row.rms))
    return (
        f"Where baselines win: {len(better)} of {len(others)} have a smaller rms error on this stream "
        f"than the session's {session.rms:.4f}: {named}. Per-query noise and tables were told the number "
        "of queries, of distinct ones, or the attribute sets in advance. The histogram was told nothing, "
        "but holds every cell, and its error grows with their number: "
        f"{domain.size:,} are few for it. It and the tables are "
        "accurate for queries chosen without knowledge of their noise, as these were."
    )


def _textbook(
    data: PrivateData, budget: Budget, stream: Sequence[Expression], truths: Floats, noise: Noise | None
) -> str:
    """Say in a line what the book's theorem promises at this size, and what its algorithm does."""
    update = MultiplicativeWeights(variant="book")
    try:
        session = OnlineIC.textbook(
            data,
            epsilon=budget.epsilon,
            delta=budget.delta,
            max_queries=len(stream),
            update=update,
            noise=noise,
        )
    except InvalidInputError as error:
        return f"Textbook mode: {error}"
    done = trace("textbook", session, data, stream, truths=truths)
    alpha, bound = session.statistics().alpha, session.statistics().error_bound
    needed = least_n(
        lambda wanted: update.update_bound(data.domain, wanted) or math.inf,
        0.05 / 3,
        max_queries=len(stream),
        epsilon=budget.epsilon,
        delta=budget.delta,
    )
    return (
        f"Textbook mode: alpha = {alpha:.3f}, every error at most 3 alpha = {bound:.3f}"
        f"{', no promise at all' * (bound >= 1.0)}; here rms {done.rms_error:.4f} with {done.hard} hard. "
        f"Loose at this n because the theorem pays for {session.plan.hard_answers} worst-case updates "
        "(T(alpha) = 4 ln|X| / alpha^2) and keeps all tests within alpha at once; an error of 0.05 would "
        f"need n = {needed:.2g}."
    )


def _say(text: str) -> None:
    print(textwrap.fill(text, 106, break_on_hyphens=False) + "\n")


def _plot(path: str, traces: Sequence[Trace], session: OnlineIC, data: PrivateData) -> int:
    """Write the figure if matplotlib is there, else say how to get it."""
    try:
        figure = new_figure(12.0, 4.6)
    except MissingExtraError as error:
        print(f"No plot: {error}")
        return 0
    left, right = figure.subplots(1, 2)
    plot_errors(left, traces)
    ages = range(17, 91)
    belief = session.hypothesis.evaluate_many([where(age=age).bind(data.domain) for age in ages])
    plot_marginal(right, ages, exact_marginal(data, "age"), belief, name="age", n=data.n)
    figure.savefig(path)
    print(f"Plot: {path}")
    return 0


@attrs.define
class _Progress:
    """One line on a terminal, at most five times a second, once the job has lasted two seconds."""

    out: TextIO
    total: int
    began: float = attrs.field(factory=time.monotonic)
    shown: float = 0.0
    width: int = 0

    def show(self, stats: Any) -> None:
        """Rewrite the line from a session's statistics."""
        now = time.monotonic()
        if not self.out.isatty() or now - self.began < 2.0 or now - self.shown < 0.2:
            return
        text = (
            f"{stats.asked:,} of {self.total:,} asked, {stats.hard} hard, {stats.hard_left} left, "
            f"{stats.spent:.0%} spent, {stats.asked / (now - self.began):,.0f}/s"
        )
        self.out.write("\r" + text.ljust(self.width))
        self.out.flush()
        self.shown, self.width = now, len(text)

    def clear(self) -> None:
        """Wipe the line."""
        if self.width:
            self.out.write("\r" + " " * self.width + "\r")
            self.out.flush()
