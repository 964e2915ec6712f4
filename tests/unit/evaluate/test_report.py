"""Tables say what the traces say, and figures draw it; without matplotlib one sentence says what to do."""

import sys

import attrs
import numpy as np
import pytest

from onlineic.errors import InvalidParameterError, MissingExtraError
from onlineic.evaluate import Trace, new_figure, plot_errors, plot_marginal, rows, text_table


def one_trace(label, errors, seed=0, **counts):
    errors = np.array(errors)
    statuses = np.repeat(list(counts), list(counts.values())) if counts else np.full(errors.shape, "hard")
    return Trace(
        label=label,
        seed=seed,
        errors=errors,
        bounds=np.full(errors.shape, 0.1),
        statuses=statuses,
        times=np.full(errors.shape, 1.0),
        spent=0.5,
    )


TRACES = [
    one_trace("mine", [0.1, -0.3], seed=0, easy=1, hard=1),
    one_trace("other", [0.2, 0.2]),
    one_trace("mine", [0.0, 0.1], seed=1, easy=2, hard=0),
]


def drawing():
    return new_figure(7.0, 4.2).add_subplot()


def test_rows_join_the_traces_of_a_label():
    mine, other = rows(TRACES)

    assert ("mine", 2, 1.0, 1.5, 0.5) == (mine.label, mine.traces, mine.rate, mine.easy, mine.hard)
    assert (0.125, np.sqrt(0.11 / 4), 0.3) == pytest.approx((mine.mean, mine.rms, mine.largest))
    assert (1, pytest.approx(0.2)) == (other.traces, other.rms)


def test_table_is_aligned_and_stars_the_smallest_errors():
    head, rule, mine, other = text_table(TRACES).splitlines()

    assert "engine answers/s hard easy repeat untested spent mean rms max" == " ".join(head.split())
    assert {"-"} == set(rule)
    assert ["0.12500*", "0.16583*", "0.30000"] == mine.split()[-3:]
    assert ["0.20000", "0.20000", "0.20000*"] == other.split()[-3:]
    assert len(mine.rstrip("* ")) == len(other.rstrip("* "))


def test_several_tables_and_streams_are_rows_of_their_own_and_stars_are_of_one_of_them():
    traces = [
        attrs.evolve(one_trace(label, errors), data=data, stream="s")
        for data, label, errors in (
            ("t", "mine", [0.1]),
            ("t", "other", [0.2]),
            ("u", "mine", [0.4]),
            ("u", "other", [0.3]),
        )
    ]
    shown = text_table(traces).splitlines()[2:]

    assert ["t, s, mine", "t, s, other", "u, s, mine", "u, s, other"] == [row.label for row in rows(traces)]
    assert [3, 0, 0, 3] == [line.count("*") for line in shown]


def test_nothing_to_show_is_refused():
    with pytest.raises(InvalidParameterError, match="traces must be"):
        text_table([])


def test_error_curves_are_the_distribution_of_absolute_errors_in_distinct_colours_and_dashes():
    pytest.importorskip("matplotlib")
    axes = plot_errors(drawing(), TRACES)
    mine, other = axes.lines

    assert [0.1, 0.1, 0.3] == pytest.approx(mine.get_xdata()[1:].tolist())
    assert [0.25, 0.5, 0.75, 1.0] == mine.get_ydata().tolist()
    assert mine.get_color() != other.get_color()
    assert mine.get_linestyle() != other.get_linestyle()
    assert "NOT PRIVATE" in axes.get_title(loc="left")
    assert ["mine", "other"] == [text.get_text() for text in axes.get_legend().get_texts()]


def test_errors_of_zero_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    plot_errors(drawing(), [one_trace("exact", [0.0, 0.0])]).figure.savefig(tmp_path / "zero.png")

    assert (tmp_path / "zero.png").stat().st_size > 1000


def test_marginal_draws_truth_and_hypothesis_in_records():
    pytest.importorskip("matplotlib")
    truth, hypothesis = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    axes = plot_marginal(drawing(), range(3), truth, hypothesis, name="age", n=10)

    assert [5.0, 3.0, 2.0] == pytest.approx([bar.get_height() for bar in axes.patches[:3]])
    assert [4.0, 4.0, 2.0] == pytest.approx(axes.patches[3].get_data().values.tolist())
    assert ("age", "records") == (axes.get_xlabel(), axes.get_ylabel())
    assert "NOT PRIVATE" in axes.get_title(loc="left")  # the bars are exact counts


def test_marginals_of_other_lengths_are_refused():
    pytest.importorskip("matplotlib")
    with pytest.raises(InvalidParameterError, match="equal lengths"):
        plot_marginal(drawing(), range(3), np.ones(3), np.ones(2))


def test_figures_touch_no_global_state():
    pytest.importorskip("matplotlib")
    plot_errors(drawing(), TRACES)

    assert "matplotlib.pyplot" not in sys.modules


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onlineic.display.pictures", None)  # all that imports it
    with pytest.raises(MissingExtraError, match=r"pip install 'onlineic\[plot\]'"):
        new_figure(7.0, 4.2)
