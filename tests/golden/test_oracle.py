"""The table of solved settings: 494 rows, computed by two earlier independent implementations."""

import csv
import math
from pathlib import Path

import pytest

from onlineic import bounds

ROWS = list(csv.DictReader(Path(__file__).with_name("oracle.csv").read_text(encoding="utf-8").splitlines()))
PRINTED = (math.sqrt(512) + 1) / (9 * math.sqrt(8))  # the book's false constant over the repaired one


def update_bound(row):
    """T(alpha) of a row's rule; `perceptron_set` and `_flat` are promises about the data."""
    size, queries, n = int(row["universe"]), int(row["queries"]), int(row["n"])
    return {
        "mw_book": lambda alpha: bounds.mw_book_bound(size, alpha),
        "mw_tight": lambda alpha: bounds.mw_tight_bound(size, alpha),
        "perceptron_book": lambda alpha: bounds.perceptron_book_bound(size, alpha),
        "perceptron_set": lambda alpha: bounds.perceptron_book_bound(size, alpha, p2=1 / n),
        "perceptron_flat": lambda alpha: bounds.perceptron_book_bound(size, alpha, p2=1 / size),
        "perceptron_centred": lambda alpha: bounds.perceptron_centred_bound(size, alpha),
        "median_book": lambda alpha: bounds.median_book_bound(size, alpha, queries),
        "median_sampling": lambda alpha: bounds.median_sampling_bound(size, alpha, queries, n),
        "median_dimension": lambda alpha: bounds.median_dimension_bound(size, alpha),
    }[row["rule"]]


def setting(row):
    """Keywords of the solvers; a printed row is a repaired one at a larger epsilon."""
    printed = row["branch"] == "printed"
    return {
        "n": int(row["n"]),
        "max_queries": int(row["queries"]),
        "epsilon": float(row["epsilon"]) / (PRINTED if printed else 1.0),
        "delta": float(row["delta"]),
        "beta": float(row["beta"]),
        "branch": "repaired" if printed else row["branch"],
    }


def status(alpha):
    """Names of the table."""
    steps = [(alpha >= 1, "vacuous"), (3 * alpha >= 1, "alpha<1"), (3 * alpha >= 0.5, "error<1")]
    return next((name for holds, name in steps if holds), "useful")


def label(row):
    """Readable test name."""
    return "-".join(row[key] for key in ("rule", "universe", "queries", "n", "epsilon", "branch"))


def needed(row, alpha):
    """Right side of the theorem at alpha."""
    options = setting(row)
    queries = 2 * options.pop("max_queries")
    return bounds.numeric_sparse_alpha(max(1.0, update_bound(row)(alpha)), queries, **options)


def test_table_is_complete():
    assert (494, 28) == (len(ROWS), sum(row["jump"] == "1" for row in ROWS))


@pytest.mark.parametrize("row", ROWS, ids=label)
def test_solution_is_the_table_row(row):
    least = bounds.least_alpha(update_bound(row), **setting(row))
    found = bounds.online_ic_accuracy(update_bound(row), **setting(row))

    assert float(row["alpha"]) == pytest.approx(least, rel=1e-8)
    assert least == found.alpha
    assert float(row["T"]) == pytest.approx(found.updates, rel=1e-8)
    assert int(row["c"]) == found.cutoff
    assert float(row["threshold"]) == pytest.approx(found.threshold, rel=1e-8)
    assert float(row["error_bound"]) == pytest.approx(found.error_bound, rel=1e-8)
    assert row["status"] == status(found.alpha)


@pytest.mark.parametrize("row", [row for row in ROWS if row["jump"] == "1"], ids=label)
def test_jump_row_is_feasible_just_above_and_infeasible_just_below(row):
    above, below = float(row["alpha"]) * (1 + 1e-9), float(row["alpha"]) * (1 - 1e-9)

    assert above >= needed(row, above)
    assert below < needed(row, below)


@pytest.mark.parametrize("row", [row for row in ROWS if row["jump"] == "0"], ids=label)
def test_residual_vanishes_and_every_inverse_returns_the_setting(row):
    rule, options = update_bound(row), setting(row)
    alpha = bounds.least_alpha(rule, **options)

    def without(name):
        return {key: value for key, value in options.items() if key != name}

    # T is held at this alpha: for some rules it contains n or Q.
    def held(_):
        return rule(alpha)

    queries = bounds.most_queries(held, alpha, **without("max_queries"))

    assert needed(row, alpha) == pytest.approx(alpha, rel=1e-9)
    assert options["n"] == bounds.least_n(held, alpha, **without("n"))
    assert options["epsilon"] == pytest.approx(
        bounds.least_epsilon(held, alpha, **without("epsilon")), rel=1e-9
    )
    assert options["max_queries"] == queries
