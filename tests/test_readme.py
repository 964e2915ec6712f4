"""Every code block of the README runs, in one namespace, top to bottom; its commands exist; it is short."""

import json
import re
from pathlib import Path

import pytest

from onlineic.datasets import adult5

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "experiments" / "results"
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)


@pytest.mark.filterwarnings("ignore::onlineic.errors.BudgetsAddWarning")  # a tour of one table; it says so
def test_every_block_runs(capsys):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    namespace = {}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out

    assert 3 == len(BLOCKS)
    told = re.search(r"```text\n(.*?)```", TEXT, re.S)[1]
    shape = re.compile(r"-?\d[\d,.]*\d|\d")  # the first two lines, but for what noise moves
    assert shape.sub("#", told).split() == shape.sub("#", printed).split()[: len(told.split())]
    for figure in (r"usually within ([\d.]+)", r"([\d.]+)% of the budget"):  # no noise in them
        assert re.search(figure, told)[1] == re.search(figure, printed)[1]
    # what is shown of a bound also holds by how much the value is rounded, which goes by the noise
    shown = [float(re.search(r"± ([\d.]+),", text)[1]) for text in (told, printed)]
    assert shown == pytest.approx([0.005, 0.005], abs=1.1e-5)
    assert "max entropy" in printed
    assert namespace["session"].statistics().private
    assert 0.0 < namespace["book"].statistics().alpha


def test_the_exact_answer_that_is_told_beside_the_noisy_one():
    columns, counts = adult5()
    met = (columns["sex"] == "Female") & (columns["age"] >= 30) & (columns["age"] <= 50)

    assert f"(Exactly {counts[met].sum():,};" in TEXT


def test_the_readme_is_short_and_its_links_exist():
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)

    assert len(TEXT.splitlines()) < 150
    assert links
    assert [] == [link for link in links if not (ROOT / link).exists()]


@pytest.mark.parametrize("target", sorted(set(re.findall(r"^    make (\w+)", TEXT, re.M))))
def test_every_make_command_is_a_target(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)


def test_no_placeholder_is_left():
    assert "RESULTS" not in TEXT


def engines(name, stream):
    """The root mean square error of every engine on one stream of a result."""
    rows = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    of_queries = [row for row in rows if row.get("sweep", "queries") == "queries"]
    (row,) = [row for row in of_queries if stream in (row.get("stream"), row.get("value"))]
    return {one["engine"]: one["rms"] for one in row["engines"]}


def test_up_to_thirty_questions_plain_noise_does_as_well_and_from_a_hundred_on_the_session():
    for asked in (1, 3, 10, 30, 100, 1_000):
        found = engines("sweeps", asked)
        static = min(rms for label, rms in found.items() if not label.startswith("default"))

        assert (static <= 1.02 * found["default"]) == (asked <= 30), asked


def test_told_twenty_a_session_errs_less_than_its_rivals_but_for_opendp_under_add_remove():
    first = (RESULTS / "hour.md").read_text(encoding="utf-8").split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in first]
    found = {(row[0], row[1]): float(row[7]) for row in rows}
    less = {
        relation: {
            engine
            for (near, engine), error in found.items()
            if near == relation
            and not engine.startswith(("noise", "session", "Tumult"))  # which ran once
            and error < found[near, "session, told twenty"]
        }
        for relation in ("replace-one", "add-remove")
    }

    assert less == {"replace-one": set(), "add-remove": {"OpenDP"}}
