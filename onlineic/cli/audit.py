"""`onlineic audit`: does this installation draw, test and charge as it claims, and would an audit tell?"""

import argparse
import json
import math
import sys
from functools import partial

import attrs

from onlineic.audit.gates import run_audit
from onlineic.cli.numbers import whole
from onlineic.cli.statuses import FAILED
from onlineic.progress import reporting


def _audit(arguments: argparse.Namespace) -> int:
    with reporting(_told if sys.stderr.isatty() else None):
        report = run_audit(runs=arguments.runs)
    if arguments.json:
        rows = [attrs.asdict(gate) for gate in report.gates]
        for row in rows:
            if not math.isfinite(row["found"]):
                row["found"] = "infinite"  # JSON has no word for it
        print(json.dumps({"passed": report.passed, "gates": rows}, indent=1))
    else:
        print(report)
    return 0 if report.passed else FAILED


def _told(stage: str, done: int, total: int) -> None:
    """Say which gate runs, once it begins."""
    if done == 0:
        print(f"onlineic: {stage} ..", file=sys.stderr, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `onlineic audit` takes."""
    parser.description = (
        "Compare what this installation draws and decides with exact laws, look for more loss "
        "than is claimed, and do the same to mechanisms with a planted breach, which must be found. "
        "About five minutes; exit status 1 if a gate fails."
    )
    parser.add_argument(
        "--runs",
        type=partial(whole, least=1000),
        default=3000,
        metavar="N",
        help="sessions on either table in each row, default 3000",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.set_defaults(run=_audit)
