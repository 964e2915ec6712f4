"""The gallery of experiments is complete: script, command, figure, and a stamped result for each.

Every script has rows of its own on a fresh clone, and all of them once the public tables are fetched.
"""

import csv
import gzip
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import attrs
import numpy as np
import pytest

from onlineic.datasets import CATALOGUE
from support.events import FOR_EVER

FOLDER = Path(__file__).resolve().parent.parent / "experiments"
GALLERY = (FOLDER / "README.md").read_text(encoding="utf-8")
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("make_"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_gallery_shows_command_figure_and_table_of_every_script(name):
    section = next(part for part in GALLERY.split("\n## ") if f"    python experiments/{name}.py\n" in part)

    assert f"](results/{name}.png)" in section
    assert re.search(r"^\|", section, re.M) or f"](results/{name}.md)" in section
    assert "**Finding.**" in section


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_result_carries_its_settings_seed_versions_and_time(name):
    result = json.loads((FOLDER / "results" / f"{name}.json").read_text(encoding="utf-8"))

    assert isinstance(result["config"]["seed"], int)
    assert {"onlineic", "numpy", "python"} <= result["versions"].keys()
    assert 0 < result.get("processor_seconds", result["wall_seconds"])
    for ending in (".md", ".png"):
        assert (FOLDER / "results" / f"{name}{ending}").stat().st_size > 100


def test_no_result_is_left_of_a_script_that_is_gone():
    assert set(SCRIPTS) == {path.stem for path in (FOLDER / "results").iterdir()}


def external(folder, path):
    """A file of the folder of external data, or the test is skipped."""
    if not (folder / path).is_file():
        pytest.skip(f"no {path} in the folder of external data")
    return folder / path


@pytest.fixture
def script(monkeypatch):
    """Import a script by name; what it brings along is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


def settings(module):
    """The settings of a script with the shortest streams."""
    names = {field.name for field in attrs.fields(module.Config)}
    short = dict.fromkeys(names & {"queries", "covid_queries", "runs", "many"}, 20)
    if hasattr(module, "quick_sizes"):
        short["sizes"] = module.quick_sizes()
    return attrs.evolve(module.Config(), **short)


# Script: its rows that rest on data, how many are there without a fetched table, and how many with all. The
# other rows of small_database and turbo are made from seeds.
ROWS_OF_DATA = {
    "certificates": (lambda m, c, absent: [*m.streams(c, absent)], 4, 5),
    "changing_streams": (lambda m, c, absent: [*m.named(c, ["NLTCS"], absent)], 0, 1),
    "clipping_bound": (lambda m, c, absent: m.columns(absent), 1, 2),
    "frontier": (lambda m, c, absent: [*m.named(c, ["ordinary", "ordinary, of 14"], absent)], 1, 2),
    "gallery": (lambda m, c, absent: [*m.streams(c.sizes, absent)], 14, 21),
    "large_domains": (lambda m, c, absent: [*m.streams(c, absent)], 3, 10),
    "listening": (lambda m, c, absent: [*m.named(m.makers_of(c), absent)], 2, 10),
    "online_offline": (lambda m, c, absent: [*m.streams(c, absent)], 1, 4),
    "online_part": (lambda m, c, absent: [*m.named(m.makers_of(c), absent)], 5, 8),
    "predicted_errors": (lambda m, c, absent: [*m.known(absent)], 2, 10),
    "range_queries": (lambda m, c, absent: [m.ages(c, absent)], 1, 1),
    "small_database": (lambda m, c, absent: m.salaries(c, absent), 0, 2),
    "reproduction": (lambda m, c, absent: [*m.of_adult(c, [1, 2, 3, 4], absent)], 0, 2),
    "stated_bounds": (lambda m, c, absent: [*m.streams(c.sizes, absent)], 14, 21),
    "sweeps": (lambda m, c, absent: [m.table_or_stand_in(absent)], 1, 1),
    "synthetic_tables": (lambda m, c, absent: [*m.sources(c, ["NLTCS"], absent)], 0, 1),
    "within": (lambda m, c, absent: [*m.streams_of(c, absent)], 2, 4),
}
FETCHING = re.compile(
    r"\b((adult_workload|adult_rows|nltcs|one_dimensional|fetched)\("
    r"|from study\.streams import .*(streams|Sizes, makers)$|from listening import|^import listening$)",
    re.M,
)


def test_every_script_that_reads_fetched_tables_is_tried_without_them():
    reading = {name for name in SCRIPTS if FETCHING.search((FOLDER / f"{name}.py").read_text("utf-8"))}

    assert set(ROWS_OF_DATA) == reading


@pytest.mark.parametrize("name", ROWS_OF_DATA)
def test_what_is_absent_is_named_and_the_other_rows_are_there(name, script, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ONLINEIC_DATA", str(tmp_path))
    rows_of_data, few, _ = ROWS_OF_DATA[name]
    module, absent = script(name), []

    rows = rows_of_data(module, settings(module), absent)

    printed = re.findall(
        r"^(.*): absent, .* python -m onlineic\.datasets fetch", capsys.readouterr().out, re.M
    )
    assert few == len(rows)
    assert absent
    assert printed == [label.partition(" (")[0] for label in absent]


@pytest.mark.parametrize("name", ROWS_OF_DATA)
def test_with_all_tables_nothing_is_absent(name, script, data_folder):
    for label, dataset in CATALOGUE.items():
        if label != "adult-training" or name == "reproduction":
            external(data_folder, dataset.path)
    rows_of_data, _, all_of_them = ROWS_OF_DATA[name]
    module, absent = script(name), []

    rows = rows_of_data(module, settings(module), absent)

    assert all_of_them == len(rows)
    assert [] == absent


@pytest.mark.slow
def test_a_part_of_the_rows_does_not_replace_a_result(tmp_path):
    before = {path.name: path.read_bytes() for path in (FOLDER / "results").glob("range_queries.*")}
    run = subprocess.run(
        [sys.executable, FOLDER / "range_queries.py"],
        env={**os.environ, "ONLINEIC_DATA": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=FOR_EVER,
    )

    (written,) = tmp_path.glob("*/range_queries.json")
    assert (0, "") == (run.returncode, run.stderr)
    assert "Absent: Age, training rows (Age, all rows instead)." in run.stdout
    assert ["Age, training rows (Age, all rows instead)"] == json.loads(written.read_text())["absent"]
    assert before == {path.name: path.read_bytes() for path in (FOLDER / "results").glob("range_queries.*")}


def test_some_streams_replace_their_rows_of_a_result_with_the_same_settings(script, tmp_path):
    outcome, path = script("study.outcome"), tmp_path / "one.json"
    rows = [{"stream": name, "seconds": 1.0} for name in "ac"]
    path.write_text(json.dumps({"config": {"seed": 1}, "rows": rows, "analysts": [1]}))
    new = {"config": {"seed": 1}, "rows": [{"stream": "b", "seconds": 2.0}, {"stream": "c", "seconds": 3.0}]}

    found = outcome.merged(path, new, "abc")

    assert [("a", 1.0), ("b", 2.0), ("c", 3.0)] == [(row["stream"], row["seconds"]) for row in found["rows"]]
    assert [1] == found["analysts"]
    with pytest.raises(SystemExit, match="other settings"):
        outcome.merged(path, new | {"config": {"seed": 2}}, "abc")


def test_tests_above_a_useful_threshold_are_blind_and_those_of_numbers_are_none(script):
    outcome, streams = script("study.outcome"), script("study.streams")
    (many,) = streams.streams(streams.quick_sizes(), [], ["chain of 3"])
    (few,) = streams.streams(streams.quick_sizes(), [], ["adult5, 30 asked"])
    rows = [
        outcome.measured("one", outcome.default_session(one, streams.budget_of(one)), one, [1], useful=useful)
        for one, useful in ((many, 0.0), (many, 1.0), (few, 0.0))
    ]
    easy = len(many.queries) - rows[0]["hard"] - sum(query.constant is not None for query in many.queries)
    repeats = len(many.queries) - len({query.key for query in many.queries})

    assert easy - repeats <= rows[0]["blind"] <= easy
    assert [0.0, 0.0] == [row["blind"] for row in rows[1:]]
    assert rows[0]["unbounded"] == rows[0]["blind"]
    assert [0.0, 0.0, 0.0] == [row["trivial"] for row in rows]


def test_the_parts_of_the_engine_that_are_off_spend_nothing(script):
    part, streams = script("online_part"), script("study.streams")
    (stream,) = streams.streams(streams.Sizes(made=150), [], ["chain of 5"])
    found = {label: part.followed(make, stream, 1) for label, make in part.sessions(stream).items()}

    assert [0.0, 0.0] == [found[label]["tables"] for label in (part.BOOK, part.TESTS)]
    assert (0.0, 0) == (found[part.NO_HITS]["hits"], found[part.NO_HITS]["hard"])
    assert (
        max(found[label]["tables"] for label in (part.NO_HITS, part.DEFAULT)) < found[part.TABLES]["tables"]
    )


def test_streams_that_ship_are_those_beside_the_external_data(data_folder):
    beside = data_folder.parent / "workloads"
    if not beside.is_dir():
        pytest.skip("no workloads beside the external data")

    for path in (FOLDER / "workloads").iterdir():
        external(beside, path.stem)
        assert (beside / path.stem).read_bytes() == gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("exponent", [0, 1])
def test_the_covid_table_is_made_as_it_was_first_made(exponent, script, data_folder):
    made = script("study.sources").covid(exponent)
    with np.load(external(data_folder, f"covid/covid128_z{exponent}.npz"), allow_pickle=False) as held:
        first = {name: held[name] for name in held}

    assert tuple(first["shape"]) == made.shape
    for name, array in (("hist", made.counts), ("masks", made.masks), ("stream", made.stream)):
        assert first[name].dtype == array.dtype
        assert np.array_equal(first[name], array)


@pytest.mark.parametrize(
    ("file", "place", "groups"),
    [
        ("covidgender", 0, ("Male", "Female")),
        ("covidage", 1, ("0-17", "18-49", "50-64", "65+")),
        (
            "covidethnicity",
            2,
            (
                "American Indian or Alaska Native",
                "Asian",
                "Latino",
                "Multi-Race",
                "Native Hawaiian and other Pacific Islander",
                "Other",
                "White",
                "Black",
            ),
        ),
    ],
)
def test_percentages_of_the_covid_table_are_means_over_all_days(file, place, groups, script, data_folder):
    with external(data_folder, f"covid/{file}.csv").open(newline="") as stream:
        rows = [list(row.values()) for row in csv.DictReader(stream)]
    means = [np.mean([float(row[2]) for row in rows if row[0] == group]) for group in groups]

    assert list(script("study.sources").POSITIVE[place]) == pytest.approx(means, abs=0.05)
