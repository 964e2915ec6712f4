"""`onlineic audit`: does this installation draw, test and charge as it claims, and would an audit tell?"""

import argparse
import json
import math

import attrs

from onlineic.audit.gates import run_audit
from onlineic.cli.ask import FAILED


def _audit(arguments: argparse.Namespace) -> int:
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
