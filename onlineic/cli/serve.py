"""`onlineic serve` and `onlineic user`: a session that others ask, and who may."""

import argparse
import contextlib
import datetime
import json
import logging
import os
import signal
import sys
import threading
from typing import Any

from onlineic.accounting.budget import Budget
from onlineic.cli.going_on import check_options
from onlineic.cli.numbers import WISH, fraction, wish_of
from onlineic.cli.periods import loader
from onlineic.cli.table import add_loading, add_protected, protected_by, read_domain, read_table
from onlineic.cli.tables import serve_folder
from onlineic.data.private import PrivateData
from onlineic.errors import (
    InvalidParameterError,
    LedgerMismatchError,
    MissingExtraError,
    SessionStateError,
    checked_integer,
    shown,
)
from onlineic.ledger.place import exists
from onlineic.ledger.settings import package_version
from onlineic.ledger.sqlite import SqliteLedger, read
from onlineic.ledger.total import TableBudget, total_of
from onlineic.periods.periods import Periods
from onlineic.periods.served import ServedPeriods
from onlineic.service.users import PER_MINUTE, Users
from onlineic.session.session import OnlineIC

SERVE = """\
The table stays in this process; analysts ask over HTTP, by a page in the browser, by
onlineic.connect in Python, or by curl. All share one budget; each has a part of it.
The ledger is made at the first start, by --new and --epsilon, and gone on with at the next.
A root ledger of onlineic periods is served with all of its periods."""


def _serve(arguments: argparse.Namespace) -> int:
    try:
        from onlineic.service.serving import bound, host_and_port
    except ImportError:
        raise MissingExtraError(
            "starlette, uvicorn and jinja2 must be installed to serve; write pip install 'onlineic[serve]'."
        ) from None
    if os.path.isdir(arguments.ledger):
        return serve_folder(arguments)
    if arguments.data is None:
        arguments.parser.error("--data must be given")
    tls, proxy = arguments.ssl_certfile is not None, arguments.behind_proxy
    host, port = host_and_port(arguments.listen, tls=tls, behind_proxy=proxy)
    Users(arguments.users).close()
    _trusted(arguments)
    with contextlib.closing(bound(host, port)) as arguments.line:  # before a ledger is made
        return _served_there(arguments)


def _served_there(arguments: argparse.Namespace) -> int:
    _check_new(arguments)
    if exists(arguments.ledger) and read(arguments.ledger).beginning.get("periods"):
        return _serve_periods(arguments)
    if arguments.domain is None:
        arguments.parser.error("--domain must be given, but for a root ledger of periods")
    domain = read_domain(arguments.domain)
    data = read_table(arguments, arguments.data, domain, protected_by(arguments))
    with contextlib.ExitStack() as stack:
        if arguments.total is not None:
            data.draw_on(stack.enter_context(_total(arguments)))
        return _served(arguments, data)


def _check_new(arguments: argparse.Namespace) -> None:
    """Refuse to begin a ledger in silence where one was lost, and to begin one that is there."""
    there = exists(arguments.ledger)
    if arguments.new and there:
        raise InvalidParameterError(
            f"--new must be left out for a ledger that has begun, got one at {shown(arguments.ledger, 200)}."
        )
    if arguments.new and arguments.instead_of is not None:
        raise InvalidParameterError("--new must be left out with --instead-of, got both; leave one out.")
    if not (there or arguments.new):
        raise InvalidParameterError(
            f"ledger must be there, got none at {shown(arguments.ledger, 200)}: a lost one is not begun "
            "anew, since its budget would be spent twice. Restore a copy; at the very first start add --new."
        )
    if arguments.spent is not None and arguments.instead_of is None:
        raise InvalidParameterError("--spent must be left out without --instead-of, got one.")


def _serve_periods(arguments: argparse.Namespace) -> int:
    """Serve a table that grows: its settings stand in its root ledger."""
    for name, option in (
        ("total", "--total"),
        ("instead_of", "--instead-of"),
        ("epsilon", "--epsilon"),
        ("domain", "--domain"),
        ("rows_per_person", "--rows-per-person"),
        ("questions", "--questions"),
        ("max_queries", "--max-queries"),
        ("hard_answers", "--hard-answers"),
        ("within", "--within"),
    ):
        if getattr(arguments, name) is not None:
            arguments.parser.error(
                f"{option} must be left out for a root ledger of periods, which has its own"
            )
    load = loader(arguments, arguments.ledger)
    held = Periods.resume(arguments.ledger, load=load, receipt=arguments.receipt, durability="all")
    try:
        if arguments.table is not None and arguments.table != held.table:
            raise LedgerMismatchError(
                f"table must be that of the root ledger, {shown(held.table)}, got {shown(arguments.table)}."
            )
        return _go(arguments, ServedPeriods(held))
    finally:
        held.release()


def _total(arguments: argparse.Namespace) -> TableBudget:
    """Return the total of the table, made at the first start, of which the session takes all."""
    path = arguments.total
    if exists(path):
        written = read(path)
        budget, _ = total_of(written)
        return TableBudget(
            budget,
            rows_per_person=written.beginning["settings"]["rows_per_person"],
            ledger=path,
            table=written.beginning["table"],
        )
    if exists(arguments.ledger):
        raise InvalidParameterError(
            f"total must be there for a ledger that has begun, got none at {shown(path, 200)}; restore it."
        )
    _check_first(arguments)
    budget, rows = Budget(arguments.epsilon, arguments.delta), arguments.rows_per_person or 1
    return TableBudget(budget, rows_per_person=rows, ledger=path, table=arguments.table)


def _check_first(arguments: argparse.Namespace) -> None:
    if arguments.epsilon is None or not (arguments.table or "").strip():
        arguments.parser.error("--epsilon and --table must be given at the first start, of a new ledger")


def _served(arguments: argparse.Namespace, data: PrivateData) -> int:
    if exists(arguments.ledger):
        check_options(read(arguments.ledger).beginning, arguments, left_out=False)
        _take_over(arguments)
        session = OnlineIC.resume(
            arguments.ledger, data, table=arguments.table, receipt=arguments.receipt, durability="all"
        )
    else:
        _check_first(arguments)
        options: dict[str, Any] = {
            name: getattr(arguments, name)
            for name in ("questions", "max_queries", "rows_per_person", "hard_answers", "within")
            if getattr(arguments, name) is not None
        }
        budget = Budget(arguments.epsilon, arguments.delta)
        session = OnlineIC(
            data, budget, ledger=arguments.ledger, table=arguments.table, durability="all", **options
        )
    return _go(arguments, session)


def _take_over(arguments: argparse.Namespace) -> None:
    """Let a copy take the place of a lost original, where that is said."""
    if arguments.instead_of is None:
        return
    charge = SqliteLedger.take_over(
        arguments.ledger,
        arguments.instead_of,
        package_version(),
        receipt=arguments.receipt,
        spent=arguments.spent,
    )
    said = "nothing" if charge is None else "what the lost original may have spent"
    print(f"onlineic: the copy is the ledger from here on; it has paid for {said}", file=sys.stderr)


def _go(arguments: argparse.Namespace, session: Any) -> int:
    """Serve a session, or what has the face of one, until the process is told to end."""
    from onlineic.service import logs
    from onlineic.service.control import heard
    from onlineic.service.serving import check_served, serve

    try:
        check_served(session)
        logs.to_stderr(arguments.log, logging.INFO if arguments.log_requests else logging.WARNING)
        said = repr(session)
        if arguments.while_stdin:
            threading.Thread(target=_end_with_stdin, name="onlineic-stdin", daemon=True).start()

        def begun(address: str) -> None:
            print(f"onlineic: serving on {address}; {said}", file=sys.stderr, flush=True)

        acts = {"copy": lambda sent: {"receipt": _copied(session, sent["path"])}}
        with heard(arguments.ledger, acts):
            serve(
                session,
                arguments.users,
                listen=arguments.listen,
                line=arguments.line,
                begun=begun,
                hosts=tuple(arguments.host),
                ssl_certfile=arguments.ssl_certfile,
                ssl_keyfile=arguments.ssl_keyfile,
                behind_proxy=arguments.behind_proxy,
                after_crashes=arguments.after_crashes,
                curators=tuple(arguments.curator),
                trusted=_trusted(arguments),
            )
    finally:
        session.close()
    return 0


def _trusted(arguments: argparse.Namespace) -> Any:
    """Return what a proxy may say of who asks, or None."""
    from onlineic.service.trust import Trusted

    if arguments.trust_header is None:
        if arguments.trust_secret or arguments.trust_groups or arguments.group:
            raise InvalidParameterError("--trust-header must be given with what goes with it, got none.")
        return None
    secret = None
    if arguments.trust_secret is not None:
        with open(arguments.trust_secret, encoding="ascii") as file:
            secret = file.read().strip()
    return Trusted.checked(
        arguments.trust_header,
        on_socket=arguments.listen.startswith("unix:"),
        secret=secret,
        groups_header=arguments.trust_groups,
        groups=tuple(arguments.group),
    )


def _end_with_stdin() -> None:
    """End this process in order once nobody holds the other end of its standard input."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _copied(session: Any, path: str) -> str:
    """Copy the ledger of a session that is served, and return the receipt of the copy."""
    if isinstance(session, ServedPeriods):
        raise SessionStateError(
            "a table that grows must be copied, and a period added, while its server is down, got a running "
            "one: its ledgers are several, and what lies between two of them is no copy. End it first."
        )
    return str(session.copy_to(path))


def _user_add(arguments: argparse.Namespace) -> int:
    with contextlib.closing(Users(arguments.users, create=True)) as users:
        rate, finest = arguments.per_minute or PER_MINUTE, arguments.finest or 0.0
        token = users.add(arguments.name, arguments.share, rate, finest)
    if arguments.no_token:
        return 0
    print(token)
    print("onlineic: this token is not shown again; the file holds its digest", file=sys.stderr)
    return 0


def _user_renew(arguments: argparse.Namespace) -> int:
    with contextlib.closing(Users(arguments.users)) as users:
        print(users.renew(arguments.name))
    return 0


def _user_list(arguments: argparse.Namespace) -> int:
    with contextlib.closing(Users(arguments.users)) as users:
        active, listed = users.active, users.list()
    for user in listed:
        made = datetime.datetime.fromtimestamp(user.created, datetime.UTC).date()
        state = (
            "revoked"
            if user.revoked is not None
            else f"{float(user.part(active)):.1%} of what hits can spend"
        )
        kept = "" if user.share is None else ", by hand"
        wish = f"\twithin {user.finest:.6g} at best" if user.finest else ""
        print(f"{user.name}\t{state}{kept}\t{user.per_minute}/min\tsince {made}{wish}")
    return 0


def _user_revoke(arguments: argparse.Namespace) -> int:
    with contextlib.closing(Users(arguments.users)) as users:
        users.revoke(arguments.name)
    return 0


def _user_quota(arguments: argparse.Namespace) -> int:
    given = arguments.share, arguments.per_minute, arguments.finest
    if all(one is None for one in given):
        arguments.parser.error(f"--share, --per-minute or --finest must be given for {shown(arguments.name)}")
    with contextlib.closing(Users(arguments.users)) as users:
        users.quota(arguments.name, *given)
    return 0


def _user_log(arguments: argparse.Namespace) -> int:
    since = 0.0 if arguments.since is None else arguments.since.timestamp()
    with contextlib.closing(Users(arguments.users)) as users:
        for when, line in users.since(since, arguments.user):
            time = datetime.datetime.fromtimestamp(when, datetime.UTC).isoformat(timespec="seconds")
            said: dict[str, Any] = {"time": time, "user": line.user, "question": line.digest}
            said |= {"from": line.start, "to": line.stop, "statuses": line.statuses}
            print(json.dumps(said) if arguments.json else "\t".join(map(str, said.values())))
    return 0


def _user_forget(arguments: argparse.Namespace) -> int:
    days = checked_integer("days", arguments.days, at_least=1, at_most=36_500)
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days)
    with contextlib.closing(Users(arguments.users)) as users:
        print(f"onlineic: {users.forget(before.timestamp()):,} lines of the log removed", file=sys.stderr)
    return 0


def _day(text: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `onlineic serve` takes."""
    parser.description, parser.formatter_class = SERVE, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "ledger",
        metavar="FILE.db",
        help="the ledger, made at the first start; or that of periods; or a folder of NAME.toml, one a table",
    )
    parser.add_argument(
        "--data",
        "--csv",
        metavar="FILE",
        help="CSV or Parquet; of periods NAME{}.csv; adult5: shipped",
    )
    add_loading(parser)
    parser.add_argument("--domain", metavar="FILE.json", help="its public domain; not of periods")
    add_protected(parser)
    parser.add_argument("--table", metavar="LABEL", help="name and release of the table")
    parser.add_argument("--users", required=True, metavar="FILE.db", help="made by onlineic user add")
    parser.add_argument("--epsilon", type=float, help="at the first start")
    parser.add_argument("--delta", type=float, default=0.0, help="default 0")
    parser.add_argument("--rows-per-person", type=int, metavar="K", help="default 1")
    parser.add_argument("--questions", type=int, metavar="M", help="about how many will come")
    parser.add_argument("--max-queries", type=int, metavar="Q", help="length that accuracy speaks of")
    parser.add_argument("--hard-answers", type=int, metavar="C", help="how many measured answers to plan for")
    parser.add_argument("--within", type=wish_of, metavar="W", help=WISH)
    parser.add_argument("--new", action="store_true", help="at the very first start: make the ledger")
    parser.add_argument("--receipt", metavar="TEXT", help="refuse a ledger that is older than this")
    parser.add_argument(
        "--instead-of", metavar="ORIGINAL", help="once: the ledger is a copy, and this one is lost for good"
    )
    parser.add_argument(
        "--spent",
        type=float,
        metavar="PART",
        help="the most of the budget that the lost one can have spent; default all, nothing by its newest "
        "--receipt",
    )
    parser.add_argument(
        "--total", metavar="TOTAL.db", help="total of the table, kept elsewhere: refuses an older ledger"
    )
    parser.add_argument(
        "--listen", default="127.0.0.1:8765", metavar="HOST:PORT", help="or unix:PATH, for a proxy"
    )
    parser.add_argument("--host", action="append", default=[], metavar="NAME", help="a name of it; again")
    parser.add_argument("--ssl-certfile", metavar="FILE.pem")
    parser.add_argument("--ssl-keyfile", metavar="FILE.pem")
    parser.add_argument(
        "--behind-proxy", action="store_true", help="a proxy ends TLS; nobody else comes here"
    )
    parser.add_argument("--trust-header", metavar="NAME", help="the proxy names who asks in this header")
    parser.add_argument("--trust-secret", metavar="FILE", help="of the proxy, which sends x-onlineic-secret")
    parser.add_argument("--trust-groups", metavar="NAME", help="the header in which it names their groups")
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="NAME=PART",
        help="who is in it may ask, and has this part from the first time on; again",
    )
    parser.add_argument(
        "--curator", action="append", default=[], metavar="NAME", help="a user who sees all users; again"
    )
    parser.add_argument(
        "--log", choices=("text", "json"), default="text", help="form of the log, on standard error"
    )
    parser.add_argument("--log-requests", action="store_true", help="a line for every request, too")
    parser.add_argument("--while-stdin", action="store_true", help="end when standard input ends")
    parser.add_argument("--after-crashes", action="store_true", help="in spite of three crashes")
    parser.set_defaults(run=_serve, parser=parser)


def add_user_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `onlineic user` takes."""
    acts = parser.add_subparsers(required=True, metavar="{add,list,renew,revoke,quota,log,forget}")
    for name, run, text in (
        ("add", _user_add, "add a user and print the token, once"),
        ("list", _user_list, "list users and their parts"),
        ("renew", _user_renew, "print another token; the old one ends"),
        ("revoke", _user_revoke, "let a user ask no more"),
        ("quota", _user_quota, "give a user another part or rate"),
        ("log", _user_log, "print the log: time, user, digest of the question, records, statuses"),
        ("forget", _user_forget, "cut the log and the histories by age"),
    ):
        act = acts.add_parser(name, allow_abbrev=False, help=text)
        if name == "log":
            act.add_argument("--user", metavar="NAME", help="of this user alone")
            act.add_argument("--since", type=_day, metavar="DATE", help="such as 2026-05-01, in UTC")
            act.add_argument("--json", action="store_true", help="one JSON object a line")
        elif name == "forget":
            act.add_argument("--days", type=int, required=True, metavar="D", help="older lines are removed")
        elif name != "list":
            act.add_argument("name", metavar="NAME")
        act.add_argument("--users", required=True, metavar="FILE.db")
        if name in ("add", "quota"):
            act.add_argument("--share", type=float, metavar="S", help="of what hits can spend, 0 to 1")
            act.add_argument("--per-minute", type=int, metavar="M", help="questions")
            act.add_argument(
                "--finest",
                type=fraction,
                metavar="W",
                help="the finest wish that they may have of a number, .005 or .5%% of the records; 0: any",
            )
        if name == "add":
            act.add_argument("--no-token", action="store_true", help="a proxy or a login names them")
        act.set_defaults(run=run, parser=act)
