"""What the benchmarks show of a result file is in it, and the file that is kept leaves out no rule."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # attrs looks classes up there
    spec.loader.exec_module(module)
    return module


tables, grid = loaded("tables"), loaded("grid")
KEPT = json.loads((FOLDER / "results" / "report.json").read_text(encoding="utf-8"))
QUICK = grid.GRIDS["quick"]
POINT = grid.Point("ranges", 4, 10_000, 1.0, 1e-9, 20)


def group(cells=1_000, n=1_000_000, stream="ranges", delta=1e-9):
    return {"stream": stream, "cells": cells, "n": n, "epsilon": 1.0, "delta": delta, "queries": 300}


def figures(engine, rms, at=None, mode="planned", **more):
    parts = {"opening": 1.0, "easy": 20.0, "hard": 30.0, "refit": 4.0}
    return {
        "group": at or group(),
        "engine": engine,
        "mode": mode,
        "rule": engine,
        "rms": {"mean": rms, "half": rms / 10},
        "max": {"mean": 3 * rms, "half": 0.0},
        "bound": 0.02,
        "hard": 12.0,
        "untested": 1234.0,
        "spent": 0.5,
        "update_failures": 0.0,
        "microseconds": parts,
        "microseconds_each": sum(parts.values()),
        "batch_microseconds": 7.0,
        "megabytes": 1.5,
        **more,
    }


def refused(engine, reason, at=None, mode="planned"):
    return {"group": at or group(), "engine": engine, "mode": mode, "rule": engine, "refused": reason}


def result(groups, growth=(), parts=(), peers=()):
    grid = {
        "name": "report",
        "streams": ["ranges"],
        "cells": [1_000],
        "records": [10_000, 1_000_000],
        "budgets": [[1.0, 1e-9]],
        "queries": 300,
        "seeds": 3,
        "more": [],
        "centre": group(),
        "growth": [["cells", [4, 1_000]]],
    }
    versions = {"onlineic": "0", "numpy": "2", "scipy": "1", "python": "3"}
    return {
        "grid": grid,
        "versions": versions,
        "machine": {"cores": 2, "load": 0.5},
        "wall_seconds": 90.0,
        "processor_seconds": 60.0,
        "groups": list(groups),
        "growth": list(growth),
        "parts": list(parts),
        "peers": list(peers),
    }


def test_a_rule_has_a_figure_or_a_named_refusal_in_every_group():
    rows = [
        figures("one", 0.1),
        refused("two", "no"),
        figures("one", 0.1, group(4)),
        refused("two", "", group(4)),
    ]

    assert ["ranges, 4 cells, n = 1,000,000, (1, 1e-09), 300 queries: two"] == tables.missing(result(rows))
    assert [] == tables.missing(result(rows[:2]))


def test_a_group_shows_error_counts_budget_split_time_and_memory():
    reasons = tables.Reasons()
    shown = tables.group_table([figures("one", 0.00123), refused("two", "it is not allowed.")], reasons)

    cells = shown.splitlines()[2].split(" | ")
    assert ["| one", "123 ± 12", "369", "2,000", "12", "1,234", "50%", "55"] == cells[:8]
    assert ["1.0", "20", "34", "4.0", "7.0", "1.5 |"] == cells[8:]
    assert "| two | refused (a) |" in shown
    assert "* (a) it is not allowed.\n" == reasons.listed()


def test_promises_that_promise_nothing_and_failed_updates_are_named():
    cells = tables.group_cells(figures("one", 0.1, bound=1.2, update_failures=2.0), tables.Reasons())

    assert ("none", "12, 2.0 failed updates") == (cells[3], cells[4])


def test_refusals_that_differ_by_their_numbers_share_a_letter():
    reasons = tables.Reasons()
    start = "Median must enumerate at most 2^24 databases, got"

    assert ["a", "b", "a"] == [reasons.letter(text) for text in (f"{start} 2^29.4", "other", f"{start} 2^99")]
    assert 60 == len({reasons.letter(f"reason {number}") for number in range(60)})


def test_the_least_error_of_a_column_is_bold_and_refusals_are_listed():
    other = group(4)
    rows = [
        figures("one", 0.002),
        figures("two", 0.001),
        figures("one", 0.001, other),
        refused("two", "too few cells.", other),
    ]
    shown = tables.errors(result(rows))

    assert "| one | 200 ± 20 | **100 ± 10** |\n" in shown
    assert "| two | **100 ± 10** | (a) |\n" in shown
    assert shown.endswith("Refused:\n\n* (a) too few cells.\n")
    assert "Stream ranges, epsilon 1, delta 1e-09:" in shown


def test_details_are_the_first_stream_and_budget_at_the_most_records():
    kept = figures("one", 0.1)
    others = [
        figures("few", 0.1, group(n=10_000)),
        figures("pure", 0.1, group(delta=0.0)),
        figures("other", 0.1, group(stream="drill-down")),
    ]

    assert {1_000: [kept]} == tables.shown(result([*others, kept]))


def test_the_sentence_on_speed_has_the_figures_of_the_file():
    rows = [
        figures("default session", 0.1, mode="default", microseconds_each=456.0),
        figures("one noisy histogram", 0.1, mode="static", microseconds_each=78.0),
        {"group": group(), "engine": "naive dense loop", "mode": "naive", "microseconds_each": 9.1},
    ]
    said = " ".join(tables.speed(result(rows)).split())

    assert "at 1,000 cells 456 microseconds a query, 4.0 of them refits" in said
    assert "(one noisy histogram 78, the naive loop, without learning, 9.1)" in said
    assert all(len(line) <= 115 for line in tables.speed(result(rows)).splitlines())


def test_ratios_of_parts_refer_to_the_baseline_of_their_part():
    rows = [
        {"part": part, "name": name, "baseline": "base", "seconds": seconds}
        for part, name, seconds in (
            ("p", "base", 2e-6),
            ("p", "other", 3e-5),
            ("q", "base", 2.5),
            ("q", "x", 5e-3),
        )
    ]
    shown = tables.components(result([], parts=rows))

    assert "| p | base | 2.0 µs | baseline |\n| p | other | 30 µs | 15 |\n" in shown
    assert "| q | base | 2.5 s | baseline |\n| q | x | 5.0 ms | 0.00 |\n" in shown


def test_scale_shows_time_beside_error_memory_and_the_longest_call():
    rows = [
        {"part": "p", "name": "base", "baseline": "base", "seconds": 2e-3},
        {
            "part": "p",
            "name": "fast",
            "baseline": "base",
            "seconds": 4e-7,
            "rms": 0.002,
            "hard": 3,
            "bytes_each": 80.4,
            "longest": 0.02,
        },
        {"part": "p", "name": "wide", "baseline": "base", "seconds": 6e-3, "megabytes": 31.0, "total": 2.0},
        {"part": "q", "name": "away", "baseline": "away", "refused": "absent: MissingDataError"},
    ]
    shown = tables.report({**result([]), "scale": rows}).split("# Scale\n")[1]

    assert "| p | base | 2.0 ms | baseline |  |  |  |  |  |" in shown
    assert "| p | fast | 400 ns | 1 / 5,000 | 200 | 3 | 80 bytes each | 20 ms |  |" in shown
    assert "| p | wide | 6.0 ms | 3.0 |  |  | 31 MB |  | 2.0 s |" in shown
    assert "| q | away | absent: MissingDataError |" in shown


def test_a_section_that_was_run_apart_is_put_in_place_and_said_to_be():
    kept = result([figures("one", 0.1)], parts=[1])
    fresh = {**result([]), "scale": [2], "machine": {"cores": 8, "load": 3.0}}
    both = tables.replaced(kept, "scale", fresh)
    said = " ".join(tables.machine(both).split())

    assert ([1], [2], kept["groups"]) == (both["parts"], both["scale"], both["groups"])
    assert "on 2 cores at a load of 0.5" in said
    assert "The section on scale is of a run of its own, of 2 minutes" in said
    assert "on 8 cores at a load of 3" in said


def test_growth_shows_error_and_time_and_names_refusals():
    rows = [
        {"axis": "cells", "value": 4, **figures("one", 0.001)},
        {"axis": "cells", "value": 1_000, "engine": "one", "refused": "too large."},
    ]
    shown = tables.growth(result([], growth=rows))

    assert "| \\|X\\|: rms, µs a query | 4 | 1,000 |" in shown
    assert "| one | 100, 55 | refused (a) |" in shown
    assert "* (a) too large." in shown


def test_peers_are_named_with_their_versions_and_absent_ones_too():
    there = {"group": group(), "peer": "there", "version": "1.2"}
    rows = [
        {**there, "rms": {"mean": 0.001, "half": 0.0}, "microseconds_each": 5.0},
        {"group": group(), "peer": "away", "refused": "absent: no module"},
    ]
    shown = tables.report(result([figures("default session", 0.002)], peers=rows))

    assert "| default session | 200 ± 20 | 55 |" in shown
    assert "| there 1.2 | 100 ± 0 | 5.0 |" in shown
    assert "| away | absent: no module |  |" in shown


def test_the_file_keeps_six_digits_and_a_row_a_line():
    rows = [figures("one", 1 / 3), refused("two", "no")]
    text = tables.written(result(rows))

    assert 0.333333 == json.loads(text)["groups"][0]["rms"]["mean"]
    assert 2 == len(re.findall(r"^  \{", text, re.M))


def test_the_file_keeps_which_answers_were_hard_of_groups_that_are_shown():
    rows = [figures("one", 0.1, hard_at=[1, 5]), figures("one", 0.1, group(n=10_000), hard_at=[2])]
    kept = json.loads(tables.written(result(rows)))["groups"]

    assert [1, 5] == kept[0]["hard_at"]
    assert "hard_at" not in kept[1]
    assert [2] == rows[1]["hard_at"]


def test_one_seed_has_no_interval():
    assert "200" == tables.error({"mean": 0.002, "half": None})


def test_the_kept_result_leaves_out_no_rule_and_the_default_is_in_every_group():
    groups = tables.by_group(KEPT)

    assert [] == tables.missing(KEPT)
    assert all("rms" in rows[0] and rows[0]["engine"] == "default session" for rows in groups.values())
    rules = (
        "MW book",
        "MW tight",
        "MW rate 0.3",
        "perceptron",
        "median",
        "measured weights",
        "maximum entropy",
    )
    for rows in groups.values():
        held = {row["engine"] for row in rows}
        assert all(
            any(name.startswith(rule) and name.endswith(mode) for name in held)
            for rule in rules
            for mode in ("planned", "certified", "textbook")
        )
        assert {"one noisy histogram", "per-query Laplace", "naive dense loop"} <= held


def test_the_median_is_run_where_it_is_at_home():
    modes = {row["mode"] for row in KEPT["groups"] if row["rule"] == "median" and "rms" in row}

    assert {"planned", "certified", "textbook"} == modes


@pytest.mark.parametrize("axis", ["cells", "n", "hard_answers", "queries"])
def test_the_kept_curves_show_the_default(axis):
    rows = [row for row in KEPT["growth"] if (row["axis"], row["engine"]) == (axis, "default session")]

    assert len(rows) >= 3
    assert all("rms" in row for row in rows)


def test_the_kept_result_shows_every_part_of_scale():
    rows = KEPT["scale"]
    parts = {row["part"] for row in rows}

    for name in ("one query, 1,000,000 cells", "one query, 100,000,000 cells", "distinct queries"):
        assert name in parts
    assert {"loading, a row", "Adult, 14 attributes"} <= parts
    assert any(name.startswith("batch of 10,000, 1,000,000 cells") for name in parts)
    assert any(name.startswith("six classes, 20 attributes") for name in parts)


@pytest.mark.parametrize("name", ["error_against_time", "hard_over_stream", "growth"])
def test_figures_of_the_kept_result_are_there(name):
    assert (FOLDER / "results" / f"report_{name}.png").stat().st_size > 10_000


# What is measured


@pytest.mark.parametrize("engine", grid.ENGINES, ids=lambda engine: engine.label)
def test_an_engine_has_a_row_or_a_reason_and_its_times_add_up(engine):
    reason = grid.refusal(engine, POINT, QUICK)
    unproven = engine.name in ("MW rate 0.3", "measured weights", "maximum entropy")

    assert (reason is not None) == (unproven and engine.mode in ("certified", "textbook"))
    if reason is None and engine.mode != "naive":
        row = grid.compared(engine, POINT, QUICK)
        assert row["microseconds_each"] == pytest.approx(sum(row["microseconds"].values()))
        assert 20 == row["easy"] + row["hard"] + row["repeat"] + row["untested"]
        assert row["updates"] == (0 if engine.mode == "static" else row["hard"])
        assert 0.0 < row["rms"]["mean"] <= row["max"]["mean"]


def test_what_is_refused_is_told_in_the_words_of_the_library():
    large = grid.Point("drill-down", 1_000, 10_000, 1.0, 0.0, 20)
    reasons = {engine.label: grid.refusal(engine, large, QUICK) for engine in grid.ENGINES}

    assert reasons["median, certified"].startswith("Median must enumerate at most 2^24 databases")
    assert "fewer than 8 records" in reasons["median, planned"]
    assert "proven T(alpha)" in reasons["MW rate 0.3, textbook"]
    assert "Gaussian noise" in reasons["per-query Gaussian"]
    assert "attribute sets" in reasons["noisy tables"]
    assert reasons["default session"] is None


def test_a_table_whose_cells_cannot_be_held_is_drawn_by_records():
    data = grid.table(10**18, 500, 3)
    asked = grid.ic.where(a=grid.ic.between(0, 499)).bind(data.domain)

    assert (500, 10**18) == (data.n, data.domain.size)
    assert 0 < data.exact_counts_many([asked])[0] < 500
    assert (
        data.exact_counts_many([asked])[0]
        == grid.table.__wrapped__(10**18, 500, 3).exact_counts_many([asked])[0]
    )


def test_the_drilling_analyst_goes_where_the_answers_lead_and_begins_anew():
    domain = grid.table(1_000, 10_000, 7).domain
    analyst = grid.drilling(domain, 12, 7)

    def asked(values):
        answers, queries = [], []
        while (query := analyst(answers)) is not None:
            queries.append(repr(query))
            answers.append(type("Answer", (), {"value": values[len(answers) % 2]}))
        return queries

    lower = asked([0.9, 0.1])

    assert 12 == len(lower) == len(set(lower))
    assert lower == asked([0.9, 0.1])
    assert lower != asked([0.1, 0.9])


def test_a_slow_engine_runs_on_one_seed_and_has_no_interval(monkeypatch):
    monkeypatch.setattr(grid, "LIMIT", 0.0)
    row = grid.compared(grid.DEFAULT, POINT, QUICK)

    assert (1, None, None) == (len(row["rms_by_seed"]), row["rms"]["half"], row["batch_microseconds"])


def test_an_interval_is_that_of_the_mean_by_students_t():
    assert {"mean": 2.0, "half": pytest.approx(4.302653 / 3**0.5, rel=1e-6)} == grid.interval([1.0, 2.0, 3.0])
