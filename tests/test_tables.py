"""Every table of a README or document that quotes results is what the result files give, to the character."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.events import FOR_EVER

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "experiments" / "study" / "readme.py"
SPEC = importlib.util.spec_from_file_location("study_readme", SCRIPT)
assert SPEC is not None
readme = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(readme)


@pytest.mark.parametrize("path", readme.READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_are_what_the_result_files_give(path):
    text = path.read_text(encoding="utf-8")

    assert "<!-- table: " in text
    assert readme.filled(text) == text, "run make tables"


def test_markdown_of_results_is_what_the_scripts_make_of_them():
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, timeout=FOR_EVER
    )

    assert (0, "") == (run.returncode, run.stdout), run.stdout + run.stderr


@pytest.mark.parametrize("path", readme.READMES[1:], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_table_is_written_by_hand(path):
    """Tables of words are; a row with a number in a cell of its own is of a result file."""
    rest = re.sub(r"<!-- table: .*?<!-- end -->", "", path.read_text(encoding="utf-8"), flags=re.S)

    assert [] == re.findall(r"^\|.*\|\s*\**[-+\d.,]*\d[^|a-zA-Z]*\|.*", rest, re.M)


def test_a_marker_cuts_columns_and_rows(tmp_path, monkeypatch):
    table = "| a | `x\\|y` | c |\n|---|---|---|\n| 1 | 2 | 3 |\n| 4 | 5 | 6 |\n"
    (tmp_path / "one.md").write_text(f"words\n\n{table}\nmore\n\n| d |\n|---|\n| 7 |\n")
    monkeypatch.setattr(readme, "RESULTS", tmp_path)

    assert table == readme.shown("one")
    assert "| `x\\|y` | c |\n|---|---|\n| 5 | 6 |\n" == readme.shown("one, columns 2-3, rows 2")
    assert "| d |\n|---|\n| 7 |\n" == readme.shown("one 2")
    with pytest.raises(ValueError, match="a marker must read"):
        readme.shown("one, rows two")


def test_every_text_has_its_figures_and_every_row_a_verdict():
    rows = [line.split(" | ") for line in readme.shown("reproduction").splitlines()[2:]]
    states = ("reproduced", "private draw", "not reproduced", "no figure printed", "absent")

    assert {"| notebook", "| Laplace in R", "| 5.2.2", "| tutorial", "| lecture"} == {row[0] for row in rows}
    assert len(rows) > 40
    assert [] == [row for row in rows if not row[-1].startswith(states)]
    assert [] == [
        row for row in rows if row[-1].startswith(("not", "private", "absent")) and ": " not in row[-1]
    ]
