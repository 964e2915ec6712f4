"""Every code block of the README runs, in one namespace, top to bottom; its commands exist; it is short."""

import json
import math
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "experiments" / "results"
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)


@pytest.mark.filterwarnings("ignore::onlineic.errors.BudgetsAddWarning")  # a tour of one table; it says so
def test_every_block_runs(capsys):
    namespace = {}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out

    assert 3 == len(BLOCKS)
    told = re.search(r"```text\n(.*?)```", TEXT, re.S)[1]
    shape = re.compile(r"-?\d[\d,.]*\d|\d")  # the first two lines, but for what noise moves
    assert shape.sub("#", told).split() == shape.sub("#", printed).split()[: len(told.split())]
    assert "±" in printed
    assert "max entropy" in printed
    assert namespace["session"].statistics().private
    assert 0.0 < namespace["book"].statistics().alpha


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


def test_what_is_bought_by_what_is_asked_errs_as_told():
    found = engines("listening", "five of 14")
    told = re.search(r"err by ([\d,]+), and by ([\d,]+) with settled\s+first tables", TEXT)
    measured = [round(1e5 * found[label]) for label in ("by what is asked", "fixed beforehand")]

    assert measured == [int(number.replace(",", "")) for number in told.groups()]


def test_tests_gain_as_little_as_told_and_bound_all_answers():
    """Geometric mean over the streams of errors without tests over those with them; largest joint bound."""
    errors, bounds = [], []
    for row in json.loads((RESULTS / "online_part.json").read_text(encoding="utf-8"))["rows"]:
        one = {engine["engine"]: engine["runs"] for engine in row["engines"]}
        without, default = one["tables alone"], one["default"]
        squares = [sum(run["rms"] ** 2 for run in runs) for runs in (without, default)]
        errors.append(math.log(squares[0] / squares[1]) / 2.0)
        joint = [sum(run["joint"] or math.inf for run in runs) for runs in (without, default)]
        bounds.append(joint[0] / joint[1])
    fall = int(re.search(r"errors fall by (\d+) % in the mean", TEXT)[1])
    wide = float(re.search(r"at once is up to ([\d.]+) times as\s+wide", TEXT)[1])

    assert fall == round(100 * (1.0 - math.exp(sum(errors) / len(errors))))
    assert wide == round(max(bounds), 1)


def test_below_thirty_questions_plain_noise_does_as_well_and_from_a_hundred_on_the_session():
    for asked in (1, 3, 10, 30, 100, 1_000):
        found = engines("sweeps", asked)
        static = min(rms for label, rms in found.items() if not label.startswith("default"))

        assert (static <= found["default"]) == (asked <= 30), asked


def test_the_best_rival_errs_less_than_the_best_session_on_ten_known_questions():
    result = json.loads((RESULTS / "rivals.json").read_text(encoding="utf-8"))
    mean = {
        row["engine"]: sum(math.log(max(error, 1e-9)) for error in row["errors"][:-1])
        for row in result["rows"]
    }
    sessions = {label for label in mean if label.startswith("session")}

    assert min(mean[label] for label in mean.keys() - sessions) < min(mean[label] for label in sessions)
