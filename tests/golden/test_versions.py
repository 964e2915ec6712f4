"""Files that a version wrote are read by every later one: they tell again what they told, and go on.

`ledgers/VERSION/` holds exports of the files of five kinds of sessions, and `told.json` what they answered.
Each version writes a folder of its own as its last step before it is released; no later one changes it:

    PYTHONPATH=.:tests python tests/golden/test_versions.py
"""

import contextlib
import json
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import onlineic as ic
from onlineic import where
from onlineic.cli import main
from onlineic.errors import OtherRulesWarning
from onlineic.ledger import exported, imported, read
from support.ledgers import COUNTS, DOMAIN, LABEL, file_of, quick_folder, table

FOLDER = Path(__file__).parent / "ledgers"
VERSIONS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
MONTHS = ("2026-01", "2026-02", "2026-03")
FILES = {  # kind: its files, first that which is opened
    "session": ("session.db",),
    "wish": ("wish.db",),
    "textbook": ("textbook.db",),
    "share": ("share.db", "total.db"),
    "periods": ("periods.db", *(f"periods.db.nodes/{label}.db" for label in (*MONTHS, "2026-Q1"))),
}
ASKED = (
    where(a=ic.between(1, 3), c="x"),
    where(b=ic.at_least(2)),
    ic.marginal("a", "c"),
    ~where(a=0),
    where(a=2) | where(c="z"),
    where(a=ic.weights([0, 0.25, 0.5, 0.5, 0.75, 1])),
)
LATER = (
    where(a=ic.between(0, 1), b=3),
    where(a=5, c="y"),
    ic.marginal("b"),
)  # once the files are opened again


@contextlib.contextmanager
def opened(kind, folder, *, new=False):
    """Open the files of this kind in a folder, or make them, until the end of the block."""
    path, budget = folder / FILES[kind][0], ic.Budget(1.0, 1e-6)
    data = table(COUNTS * 1000 if kind == "textbook" else COUNTS)
    with contextlib.ExitStack() as stack:
        if kind == "periods":
            levels = ("month", "quarter")
            held = ic.Periods(path, DOMAIN, budget, levels=levels, table=LABEL, load=lambda _: table())
            yield stack.enter_context(held)
            return
        if kind == "share":
            total = ic.TableBudget(ic.Budget(2.0, 1e-6), ledger=folder / FILES[kind][1], table=LABEL)
            stack.callback(total.close)
            data.draw_on(total)
            budget = total.share(0.5) if new else budget
        if not new:
            held = ic.OnlineIC.resume(path, data)
        elif kind == "textbook":
            held = ic.OnlineIC.textbook(data, epsilon=5.0, max_queries=50, ledger=path, table=LABEL)
        else:
            held = ic.OnlineIC(
                data, budget, within=0.01 if kind == "wish" else None, ledger=path, table=LABEL
            )
        yield stack.enter_context(held)


def asked(kind, held, questions):
    """Ask the session, or periods in three places, and return statuses and values."""
    places = [held]
    if kind == "periods":
        places = [held["2026-02"], held.over(*MONTHS[:2]), held["2026-Q1"]]
    answers = [place.answer(one) for place in places for one in questions]
    return [[str(one.status), np.asarray(one.value).tolist()] for one in answers]


def write(folder):
    """Write the folder of this version."""
    shutil.rmtree(folder, ignore_errors=True)
    told = {}
    for kind, names in FILES.items():
        with quick_folder() as place:
            with opened(kind, place, new=True) as held:
                if kind == "periods":
                    for month in MONTHS:
                        held.add(month, table())
                    held.close("2026-Q1")
                told[kind] = asked(kind, held, ASKED)
            for name in names:
                file = (folder / name).with_suffix(".jsonl")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("".join(f"{line}\n" for line in exported(read(place / name))))
    (folder / "told.json").write_text(json.dumps(told) + "\n")


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_a_version_tell_what_they_told_and_go_on(version, kind, capsys):
    told = json.loads((FOLDER / version / "told.json").read_text())[kind]
    with quick_folder() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", OtherRulesWarning)  # once plans or answers are others
        for name in FILES[kind]:
            (place / name).parent.mkdir(exist_ok=True)
            lines = (FOLDER / version / name).with_suffix(".jsonl").read_text().splitlines()
            file_of(imported(lines), place / name)
        with opened(kind, place) as held:
            again, later = asked(kind, held, ASKED), asked(kind, held, LATER)
        verdicts = [main(["ledger", "verify", str(place / name)]) for name in FILES[kind]]

    if kind == "textbook":  # it tests every question anew, with what it had learned
        for (_, value), (_, now) in zip(told, again, strict=True):
            assert np.abs(np.subtract(value, now)).max() <= 2.0 * held.statistics().error_bound
    else:
        assert [["repeat", value] for _, value in told] == again
    assert {"easy", "hard"} >= {status for status, _ in later}
    assert all(np.isfinite(value).all() for _, value in later)
    assert verdicts == [0] * len(verdicts), capsys.readouterr()


def test_this_version_has_written_its_files():
    assert ic.__version__ in VERSIONS, "run this file"


if __name__ == "__main__":
    write(FOLDER / ic.__version__)
    sys.stdout.write(f"{FOLDER / ic.__version__}\n")
