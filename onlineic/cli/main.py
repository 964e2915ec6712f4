"""The command line: `onlineic demo`, `ask`, `domain`, `audit`, `ledger`, `serve` and `user`.

Answers go to standard output, everything else to standard error.
"""

import argparse
import contextlib
import io
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from typing import TextIO

from onlineic.cli.ask import CLOSED_PIPE, FAILED, INTERRUPTED, USAGE, _ask
from onlineic.cli.audit import _audit
from onlineic.cli.demo import _demo
from onlineic.cli.domain import _domain_commands
from onlineic.cli.ledger import _ledger_commands
from onlineic.cli.questions import HELP
from onlineic.cli.serve import _serve_commands
from onlineic.errors import (
    InvalidDataError,
    InvalidInputError,
    OnlineICError,
    shown,
)

# control signs but for the tab, the ends of lines and the way back to the start of one; surrogates; signs
# that turn the direction of writing
COMMANDS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
STATUSES = """\
exit status: 0 done; 1 a line, a file or a check failed; 2 arguments that cannot be used, nothing was paid;
130 after Ctrl-C; 141 if the reader of the output has gone."""


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
    with contextlib.redirect_stdout(_Plain(sys.stdout)), contextlib.redirect_stderr(_Plain(sys.stderr)):
        return _run(argv)


class _Plain(io.TextIOBase):
    """Writes texts without what commands a terminal: questions, labels and names of files may hold it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # as JSON does
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True


def _run(argv: Sequence[str] | None) -> int:
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
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Differentially private answers to a stream of counting queries under one budget.",
        epilog=STATUSES,
    )
    parser.add_argument("--version", action="version", version=f"onlineic {version('onlineic')}")
    commands = parser.add_subparsers(required=True, metavar="{demo,ask,domain,audit,ledger,serve,user}")
    demo = commands.add_parser(
        "demo",
        allow_abbrev=False,
        help="answer a random stream about a public census table, beside the trivial baselines",
        description="Answer a random stream about the public Adult table, beside the trivial baselines.",
    )
    demo.add_argument("--queries", type=_whole, default=4000, metavar="Q", help="default 4000")
    demo.add_argument("--epsilon", type=float, default=1.0, help="default 1")
    demo.add_argument("--delta", type=float, default=1e-9, help="default 1e-9")
    demo.add_argument(
        "--seed", type=partial(_whole, least=0), help="simulated noise: repeatable, NOT PRIVATE"
    )
    demo.add_argument("--plot", metavar="FILE", help="by default in a temporary folder, which is printed")
    demo.set_defaults(run=_demo)
    ask = commands.add_parser(
        "ask",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        help="answer questions about a CSV table, one a line: JSON, conditions or SQL",
        description=f"{HELP}\n\nAll files are opened before anything is paid. Without --ledger every run "
        "spends its whole\nbudget anew: budgets of several runs on one table add.",
        epilog=STATUSES,
    )
    ask.add_argument("--csv", metavar="FILE", help="the private table, with a header line")
    ask.add_argument("--delimiter", default=",", help="between its fields, default ','")
    ask.add_argument("--encoding", default="utf-8", help="of the table, default utf-8")
    ask.add_argument("--decimal", default=".", help="before the fraction of a number, default '.'")
    ask.add_argument(
        "--missing", action="append", default=[], metavar="TEXT", help="a text for no value; again for more"
    )
    ask.add_argument("--domain", metavar="FILE.json", help="the public domain of its columns")
    ask.add_argument("--epsilon", type=float)
    ask.add_argument("--url", help="ask a server instead, with the token in ONLINEIC_TOKEN")
    ask.add_argument("--delta", type=float, default=0.0, help="default 0")
    wish = ask.add_mutually_exclusive_group()
    wish.add_argument("--hard-answers", type=_whole, metavar="C", help="how many queries may be measured")
    wish.add_argument("--certify", type=float, help="accuracy to certify instead, fraction of records")
    ask.add_argument("--max-queries", type=_whole, metavar="Q", help="length that accuracy speaks of")
    ask.add_argument(
        "--ledger", metavar="FILE.db", help="spend the budget from this file, made at the first run"
    )
    ask.add_argument("--table", metavar="LABEL", help="name and release of the table, with --ledger")
    ask.add_argument(
        "--restarts", type=_whole, metavar="R", help="runs after the first that are paid for, with --ledger"
    )
    ask.add_argument("--format", choices=("text", "json", "csv"), default="text")
    ask.add_argument("--repl", action="store_true", help="ask at a prompt; in place of QUERIES")
    ask.add_argument(
        "--show-data-errors",
        action="store_true",
        help="say what is wrong with a table that does not fit its domain; quotes records",
    )
    ask.add_argument("queries", nargs="?", metavar="QUERIES", help="file of queries; default standard input")
    ask.set_defaults(run=_ask, parser=ask)
    audit = commands.add_parser(
        "audit",
        allow_abbrev=False,
        help="audit this installation's noise, tests and sessions, and the audit by planted breaches",
        description="Compare what this installation draws and decides with exact laws, look for more loss "
        "than is claimed, and do the same to mechanisms with a planted breach, which must be found. "
        "About half a minute; exit status 1 if a gate fails.",
    )
    audit.add_argument(
        "--runs",
        type=partial(_whole, least=1000),
        default=3000,
        metavar="N",
        help="sessions on either table in each row, default 3000",
    )
    audit.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    audit.set_defaults(run=_audit)
    _domain_commands(commands)
    _ledger_commands(commands)
    _serve_commands(commands)
    return parser


def _whole(text: str, least: int = 1) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, got {shown(text)}")
    return int(text)
