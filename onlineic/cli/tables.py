"""`onlineic serve FOLDER`: several tables behind one login, a process a table."""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator
from typing import Any

from onlineic.errors import InvalidParameterError, shown
from onlineic.service.users import Users

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
TAKEN = {"health", "login", "logout", "ready"}  # paths of the front
OF_FRONT = {
    "after-crashes", "behind-proxy", "group", "host", "instead-of", "listen", "new", "spent", "ssl-certfile",
    "ssl-keyfile", "trust-groups", "trust-header", "trust-secret", "while-stdin",
}  # fmt: skip  # what a file of a table cannot say: of the front, or of one start
STOPS = 60.0  # seconds for a process of a table to end in order


def serve_folder(arguments: argparse.Namespace) -> int:
    """Serve every table of a folder until told to end."""
    from onlineic.service.front import HEADER, Table, socket_of
    from onlineic.service.serving import bound, host_and_port, serve_tables

    folder = os.path.abspath(arguments.ledger)
    commands = {name: _command(folder, name) for name in _names(folder)}
    for name in (
        "data", "domain", "table", "epsilon", "total", "receipt", "instead_of", "spent", "new", "curator",
        "trust_header", "trust_secret", "trust_groups", "group",
    ):  # fmt: skip
        if getattr(arguments, name):
            arguments.parser.error(f"--{name.replace('_', '-')} must stand in the file of a table")
    tls = arguments.ssl_certfile is not None
    host, port = host_and_port(arguments.listen, tls=tls, behind_proxy=arguments.behind_proxy)
    Users(arguments.users).close()
    with contextlib.ExitStack() as stack:
        line = stack.enter_context(contextlib.closing(bound(host, port)))
        sockets = stack.enter_context(tempfile.TemporaryDirectory(prefix="onlineic-"))  # of this user alone
        shared = ["--trust-header", HEADER, "--while-stdin", "--log", arguments.log]
        shared += ["--after-crashes"] * arguments.after_crashes + ["--log-requests"] * arguments.log_requests
        hosts = [word for one in (host, *arguments.host) for word in ("--host", one)]
        tables = {}
        for name, (label, command) in commands.items():
            at = socket_of(sockets, name)
            stack.enter_context(_process(folder, name, [*command, *shared, *hosts, "--listen", f"unix:{at}"]))
            tables[name] = Table(label, at)

        def begun(address: str) -> None:
            print(f"onlineic: serving {', '.join(tables)} on {address}", file=sys.stderr, flush=True)

        serve_tables(
            tables,
            arguments.users,
            listen=arguments.listen,
            line=line,
            begun=begun,
            hosts=tuple(arguments.host),
            ssl_certfile=arguments.ssl_certfile,
            ssl_keyfile=arguments.ssl_keyfile,
            behind_proxy=arguments.behind_proxy,
        )
    return 0


def _names(folder: str) -> list[str]:
    found = sorted(one.removesuffix(".toml") for one in os.listdir(folder) if one.endswith(".toml"))
    for name in found:
        if not NAME.fullmatch(name) or name in TAKEN:
            raise InvalidParameterError(
                "the file of a table must be called NAME.toml, of small letters, digits and -, got "
                f"{shown(name)}."
            )
    if not found:
        raise InvalidParameterError(
            f"a folder of tables must hold NAME.toml of each, got none in {shown(folder, 200)}; "
            "see docs/operating.md."
        )
    return found


def _command(folder: str, name: str) -> tuple[str, list[str]]:
    """Return the label of a table, and the command that serves it: its file holds options of `serve`."""
    try:
        with open(os.path.join(folder, f"{name}.toml"), "rb") as file:
            said: dict[str, Any] = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeError):
        raise InvalidParameterError(
            f"{name}.toml must be TOML, got something else; see docs/operating.md."
        ) from None
    ledger = said.pop("ledger", f"{name}.db")
    said.setdefault("users", f"{name}.users.db")
    words = []
    for option, value in said.items():
        each = value if isinstance(value, list) else [value]
        if option in OF_FRONT or not all(isinstance(one, str | int | float) for one in [ledger, *each]):
            raise InvalidParameterError(
                f"{name}.toml must hold options of a table, got {shown(option)}; leave it out."
            )
        for one in each:
            words += [f"--{option}"] if one is True else [] if one is False else [f"--{option}", str(one)]
    return str(said.get("table", name)), [sys.executable, "-m", "onlineic", "serve", str(ledger), *words]


@contextlib.contextmanager
def _process(folder: str, name: str, command: list[str]) -> Iterator[None]:
    """Run the process of a table: it ends with this one, whatever becomes of that, and is not begun again.

    A crash costs a measured answer: somebody looks into the log before the next start.
    """
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE)

    def watched() -> None:
        status = process.wait()
        print(f"onlineic: {name} is served no more: status {status}", file=sys.stderr, flush=True)

    threading.Thread(target=watched, name=f"onlineic-{name}", daemon=True).start()
    try:
        yield
    finally:
        process.terminate()
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOPS)
        except subprocess.TimeoutExpired:
            process.kill()
