"""Results of a run that are kept: what README.md shows, without the machine's name and every single time."""

import os
from typing import Any

import numpy as np

import onlineic


def pytest_benchmark_update_json(config: Any, benchmarks: Any, output_json: dict[str, Any]) -> None:
    """Reduce the file that `--benchmark-json` writes to groups, rules, least seconds and extra figures."""
    rows = [
        {"group": one["group"], "name": one["name"], "seconds": one["stats"]["min"], **one["extra_info"]}
        for one in output_json["benchmarks"]
    ]
    versions = {
        "onlineic": onlineic.__version__,
        "numpy": np.__version__,
        "python": output_json["machine_info"]["python_version"],
    }
    # times of a busy machine are several times too long: whoever reads them should know
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[2], 1)}
    output_json.clear()
    output_json.update(versions=versions, machine=machine, rows=rows)
