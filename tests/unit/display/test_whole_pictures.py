"""What is left out of a table or a drawing is marked where it is missing, and labels stand whole."""

import re

import numpy as np
import pytest

import onlineic as ic
from onlineic.display import bars, cut_rows, table
from onlineic.noise import SimulatedNoise
from onlineic.queries import weights


def session(months, age=8):
    domain = ic.Domain.of(month=ic.dates("2022-01", months, by="month"), age=age)
    counts = np.full(domain.shape, 500)
    return ic.OnlineIC(
        ic.PrivateData(counts, domain), ic.Budget(1.0, 1e-9), questions=20, noise=SimulatedNoise(1)
    )


def test_a_histogram_of_25_months_shows_all_of_them():
    html = session("2024-01").histogram("month")._repr_html_()

    assert all(f">{year}-{month:02}<" in html for year in (2022, 2023) for month in range(1, 13))
    assert "not shown" not in html


def test_months_that_are_left_out_of_a_histogram_leave_a_mark_where_they_were():
    html = session("2024-12").histogram("month")._repr_html_()
    shown = re.findall(r">(\d{4}-\d\d)<|(&hellip; \d+ more)", html)
    places = [bool(mark) for _, mark in shown]

    assert "12 of 36 are not shown" in html
    assert 1 == sum(places)
    assert 18 == places.index(True)
    assert "&hellip; 12 more" in html


def test_rows_that_were_left_out_before_are_marked_in_their_place():
    html = table(["a"], [["1"], ["9"]], gap=(1, 28))

    assert html.index(">1<") < html.index("&hellip; 28 more") < html.index(">9<")


@pytest.mark.parametrize("most", [1, 4, 24])
def test_a_gap_never_stands_for_one_row(most):
    for count in range(60):
        places, gap = cut_rows(count, most)

        assert (gap is None) == (places == list(range(count)))
        assert gap is None or count - len(places) >= 2


@pytest.mark.parametrize("count", [3, 9, 25, 64, 120])
def test_labels_end_inside_their_drawing(count):
    drawn = bars([*range(count - 1), None], [1.0] * count, title="t")

    for x, anchor, text in re.findall(r'<text x="([\d.]+)" y="163" text-anchor="(\w+)">([^<]*)<', drawn):
        end = float(x) + (7 * len(text) / 2 if anchor == "middle" else 0)
        assert end <= 640


def test_the_query_of_a_mean_says_that_its_weights_rise():
    domain = ic.Domain.of(age=112)
    rising = ic.where(age=weights(np.arange(112) / 111)).bind(domain)
    other = ic.where(age=weights([0.5, 0.1] * 56)).bind(domain)

    assert "age=weights(<112, rising>)" in repr(rising)
    assert "age=weights(<112>)" in repr(other)
