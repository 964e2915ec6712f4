"""The engines of synthetic_tables.py, in environments of their own, which `make rivals` installs.

    .venv-rivals/bin/python experiments/study/synthetic_engines.py NAME FOLDER SEED

Reads a table as codes, `codes.npz`, one array a column, and what is public, `told.json`: how many codes each
column has, the sets of columns that will be asked, and the most rounds of the engine that measures these.
Writes synthetic records as codes, `NAME.npz`, and prints as JSON the seconds and the version. All have
(1, 1e-6) and protect whether a record is there; AIM and MST are not told what will be asked.
"""

import json
import sys
import time
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
from rival_engines import drawn, fitted, quicker


def modelled(kind, **options):
    """Return AIM or MST, which make as many records as their model says."""
    return lambda table, told, seed: drawn(kind, table, told["sizes"], seed, **options)


def mwem_pgm(table, told, seed):
    """MWEM+PGM: a round for each set of columns, as far as there may be so many."""
    sets, sizes = [tuple(held) for held in told["sets"]], told["sizes"]
    rounds = min(len(sets), told["rounds"])
    model = fitted(table, sizes, sets, rounds, np.random.default_rng(seed), replaced=False)
    made = model.synthetic_data().to_dict()
    return {name: np.asarray(made[name]).astype(int) for name in sizes}


ENGINES = {
    "AIM, to its own end": ("dpmm", modelled("AIM")),
    "AIM, 27 rounds": ("dpmm", modelled("AIM", **quicker(27))),
    "AIM, 48 rounds": ("dpmm", modelled("AIM", **quicker(48))),
    "MST": ("dpmm", modelled("MST")),
    "MWEM+PGM": ("mbi", mwem_pgm),
}


def main(name, folder, seed):
    warnings.simplefilter("ignore")
    np.random.seed(seed)  # noqa: NPY002  # what they draw from
    told = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    with np.load(folder / "codes.npz") as held:
        table = {column: held[column] for column in told["sizes"]}
    package, engine = ENGINES[name]
    began = time.perf_counter()
    made = engine(table, told, seed)
    said = {"seconds": time.perf_counter() - began, "version": metadata.version(package)}
    np.savez(folder / f"{name}.npz", **made)
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
