"""The command line: `onlineic demo`, `ask`, `domain`, `audit`, `ledger`, `periods`, `serve` and `user`.

Answers go to standard output, everything else to standard error.
"""

import argparse
import contextlib
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TextIO, final

from onlineic.cli.statuses import CLOSED_PIPE, FAILED, INTERRUPTED, SAID, USAGE
from onlineic.errors import InvalidDataError, InvalidInputError, OnlineICError, WideBoundWarning

# control signs but for the tab, the ends of lines and the way back to the start of one; surrogates; signs
# that turn the direction of writing
CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@final
class _Command(argparse.ArgumentParser):
    """The parser of one command, which imports what runs it when it is chosen, and no other."""

    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        add, self.add_arguments = self.add_arguments, None
        if add is not None:
            add(self)
        return super().parse_known_args(args, namespace)


@final
class _Version(argparse.Action):
    """Prints the version of the package; the look-up is imported with the wish."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"onlineic {version('onlineic')}")
        parser.exit()


def _demo(parser: argparse.ArgumentParser) -> None:
    from onlineic.cli.demo import add_arguments

    add_arguments(parser)


def _ask(parser: argparse.ArgumentParser) -> None:
    from onlineic.cli.ask import add_arguments

    add_arguments(parser)


def _domain(parser: argparse.ArgumentParser) -> None:
    from onlineic.cli.domain import add_arguments

    add_arguments(parser)


def _audit(parser: argparse.ArgumentParser) -> None:
    from onlineic.cli.audit import add_arguments

    add_arguments(parser)


def _ledger(parser: argparse.ArgumentParser) -> None:
    from onlineic.cli.ledger import add_arguments

    add_arguments(parser)


def _periods(parser: argparse.ArgumentParser) -> None:
    from onlineic.cli.periods import add_arguments

    add_arguments(parser)


def _serve(parser: argparse.ArgumentParser) -> None:
    from onlineic.cli.serve import add_arguments

    add_arguments(parser)


def _user(parser: argparse.ArgumentParser) -> None:
    from onlineic.cli.serve import add_user_arguments

    add_user_arguments(parser)


COMMANDS = {
    "demo": (_demo, "answer a random stream about a public census table, beside the trivial baselines"),
    "ask": (_ask, "answer questions about a CSV table, one a line: JSON, conditions or SQL"),
    "domain": (_domain, "draft the domain file of a table"),
    "audit": (
        _audit,
        "audit this installation's noise, tests and sessions, and the audit by planted breaches",
    ),
    "ledger": (_ledger, "show, verify or export the ledger file of a session"),
    "periods": (_periods, "a table that grows: the next month in, a year closed, and what is there"),
    "serve": (_serve, "answer analysts over HTTP, by a page and by programs, under one budget"),
    "user": (_user, "who may ask a server, and how much"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        argv: Arguments without the program's name; by default those of the process.

    Returns:
        0; 1 if a line or a file failed; 2 for arguments that cannot be used; 130 after Ctrl-C; 141 if the
        reader of the output has gone.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a narrow locale must not stop an answer that is paid
    out, told = contextlib.redirect_stdout(_Plain(sys.stdout)), contextlib.redirect_stderr(_Plain(sys.stderr))
    with out, told, warnings.catch_warnings():
        warnings.showwarning = partial(_warned, warnings.showwarning)
        return _run(argv)


def _warned(otherwise: Callable[..., None], message: Warning | str, kind: type[Warning], *where: Any) -> None:
    """Tell a warning of this package as errors are told: whoever types a command has no use for its line."""
    if kind.__module__ == WideBoundWarning.__module__:
        print(f"onlineic: warning: {_said(message)}", file=sys.stderr)
    else:
        otherwise(message, kind, *where)


def _said(message: object) -> str:
    """Return a message of the package with remedies that can be typed here."""
    from onlineic.ask.places import without_python  # of a refusal alone: its wing takes long to import

    return without_python(str(message))


class _Plain(io.TextIOBase):
    """Writes texts without what commands a terminal: questions, labels and names of files may hold it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # as JSON does
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        pass  # the stream stays open, and may be closed already: this is called when the object is let go

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
        print(f"onlineic: error: {_said(error)}", file=sys.stderr)
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
        epilog=SAID,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(
        required=True, metavar="{demo,ask,domain,audit,ledger,periods,serve,user}", parser_class=_Command
    )
    for name, (add_arguments, text) in COMMANDS.items():
        commands.add_parser(name, allow_abbrev=False, help=text).add_arguments = add_arguments
    return parser
