"""Blocks of text and HTML: cut to size, and no label is ever markup."""

import math
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from onlineic.display import (
    aligned,
    around,
    bars,
    card,
    cut_rows,
    decimals,
    facts,
    free_name,
    heading,
    new_figure,
    note,
    page,
    pandas_frame,
    polars_frame,
    probability,
    records,
    records_between,
    records_bound,
    share,
    shortened,
    span_bar,
    table,
    to_its_bound,
    upward,
    within,
)
from onlineic.errors import MissingExtraError

EVIL = ["<=50K", "<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "a & b", None]


class Reader(HTMLParser):
    """Tags and attributes as a browser sees them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in {"meta", "rect", "path"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if tag not in {"meta", "rect", "path"}:
            assert tag == self.open.pop()


@pytest.mark.parametrize(
    "made",
    [
        lambda texts: bars(texts, range(len(texts)), title=texts[1]),
        lambda texts: bars(texts * 50, range(5 * 50), title=texts[2]),
        lambda texts: table(texts, [texts, texts]),
        lambda texts: table(texts * 5, [texts * 5] * 100, left=2),
        lambda texts: facts([(texts[1], texts[2])]),
        lambda texts: card(texts[1], heading(texts[2]), note(texts[1]), private=False),
        lambda texts: share(0.3, texts[1]) + span_bar(0.1, 0.2, 0.3, texts[2]),
        lambda texts: page(texts[1], note(texts[2])),
    ],
)
def test_no_label_is_markup(made):
    reader, plain = Reader(made(EVIL)), Reader(made(["a", "b", "c", "d", "e"]))

    assert plain.tags == reader.tags
    assert [] == reader.open
    assert not {"script", "img", "link", "iframe"} & {*reader.tags}
    assert [] == [name for name, _ in reader.attributes if name.startswith("on") or name in {"src", "href"}]


def test_drawings_have_a_role_and_a_label():
    for drawn in (bars(["a"], [1.0], title="t"), share(0.5, "t"), span_bar(0.1, 0.2, 0.3, "t")):
        attributes = dict(Reader(drawn).attributes)

        assert "img" == attributes["role"]
        assert attributes["aria-label"].startswith("t")


def test_at_most_120_bars_are_drawn_and_nothing_is_lost():
    drawn = bars(range(1000), [1.0] * 1000, [0.0] * 1000, [2.0] * 1000, title="t")

    assert 112 == drawn.count("<rect")  # of nine values each, the last of one
    assert "largest 9" in drawn
    assert "each bar is 9 neighbouring values, added up" in drawn
    assert '<path d="M60 ' not in drawn.split("</g>")[1]  # whiskers of sums would be others
    assert 120 == bars(range(120), [1.0] * 120, title="t").count("<rect")
    assert len(drawn) < 20_000


def test_bars_below_zero_and_of_nothing_are_drawn():
    assert 'height="-' not in bars(["a", "b"], [-3.0, 2.0], title="t")
    assert "nan" not in bars(["a"], [0.0], title="t")
    assert "nan" not in bars([], [], title="t")


def test_a_long_table_keeps_its_first_and_last_rows():
    shown = table(["a", "b"], [[f"row {at}", at] for at in range(1000)])

    assert "row 0<" in shown
    assert "row 999<" in shown
    assert "row 500<" not in shown
    assert "976 more" in shown
    assert len(shown) < 20_000


@pytest.mark.parametrize(("count", "most", "expected"), [
    (3, 3, ([0, 1, 2], None)), (4, 3, ([0, 1, 2, 3], None)), (5, 3, ([0, 1, 2], 3)),
    (10, 4, ([0, 1, 2, 9], 3)),
    (0, 3, ([], None)),
])  # fmt: skip
def test_places_of_a_cut_list(count, most, expected):
    assert expected == cut_rows(count, most)


@pytest.mark.parametrize(("count", "text"), [
    (7500.4, "7,500"), (3.0, "3"), (3.26, "3.3"), (-0.01, "0"), (9.98, "10"), (-2.5, "-2.5"), (0.0, "0"),
])  # fmt: skip
def test_records_are_whole_unless_they_are_few(count, text):
    assert text == records(count)


def test_labels_are_one_line():
    assert "a b" == shortened("a\n  b")
    assert "missing" == shortened(None)
    assert 40 == len(shortened("x" * 99))


def test_columns_are_aligned():
    assert "a     b\nxyz  12\nu     3" == aligned(["a", "b"], [["xyz", "12"], ["u", "3"]])


def test_a_free_name_is_no_attribute():
    assert "value__" == free_name("value", {"value", "value_"})


@pytest.mark.parametrize(("module", "make", "extra"), [
    ("pandas", pandas_frame, "pandas"), ("polars", polars_frame, "polars"),
])  # fmt: skip
def test_without_a_frame_library_the_remedy_is_named(monkeypatch, module, make, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=re.escape(f"pip install 'onlineic[{extra}]'")):
        make({"a": [1]})


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onlineic.display.pictures", None)  # all that imports it
    with pytest.raises(MissingExtraError, match=r"pip install 'onlineic\[plot\]'"):
        new_figure(7.0, 4.2)


@pytest.mark.parametrize(
    ("value", "bound", "text"),
    [
        (27_948_226.0, 33.4, "27,948,226"),
        (27_948_226.0, 0.0, "27,948,226"),
        (27_948_226.4, 3e5, "2.79482e+07"),
        (1043.25, 86.6, "1,043.25"),
        (0.123456789, 3e-8, "0.123456789"),
        (-5_123_456_789.0, 1.0, "-5,123,456,789"),
        (0.0, 1e-9, "0"),
        (0.25, math.inf, "0.25"),
    ],
)
def test_a_number_is_not_cut_by_more_than_a_hundredth_of_its_bound(value, bound, text):
    """A count of a large table with six digits is off by more than the bound beside it."""
    assert text == to_its_bound(value, bound, separated=True)
    assert math.isinf(bound) or abs(float(text.replace(",", "")) - value) <= bound / 100


def test_a_fraction_has_the_decimals_of_its_bound():
    assert (" 0.250000", "0.010000") == decimals(0.25, 0.01)
    assert ("0.1234567890", "0.0000000304") == decimals(0.123456789, 3.04e-8)
    assert (" 0.500000", "0.000000") == decimals(0.5, 0.0)
    assert " 0.500000" == decimals(0.5, math.inf)[0]


@pytest.mark.parametrize(
    ("sure", "text"),
    [
        (0.95, "0.95"),
        (0.985, "0.985"),
        (1.0 - 3 * 0.05, "0.85"),
        (1.0, "1"),
        (0.0, "0"),
        (1 - 1e-6, "0.999999"),
    ],
)
def test_a_probability_below_1_is_not_written_as_1(sure, text):
    assert text == probability(sure)


@pytest.mark.parametrize(
    ("bound", "text"),
    [(0.1, "0.1"), (0.36301, "0.364"), (2660.1, "2670"), (706.0, "706"), (1e-9, "1e-09"), (1.2e7, "1.2e+07")],
)
def test_a_bound_is_rounded_up(bound, text):
    assert text == upward(bound)
    assert float(text) >= bound


@pytest.mark.parametrize("sure", [0.94996, 0.98765432, 1.0 - 0.05 / 3, 1.0 - 2.0**-40])
def test_a_promised_probability_is_rounded_down(sure):
    assert 0.0 <= sure - float(probability(sure)) <= 0.01 * (1.0 - sure) + 1e-15


def test_what_is_printed_holds_what_is_stated():
    """Of a number, of counts and of their interval; also where the number was rounded itself."""
    generator = np.random.default_rng(1)
    for _ in range(2000):
        value, bound = (10.0 ** generator.uniform(-6, 6, 2)).tolist()
        for text, reach in (within(value, bound, separated=True), decimals(value, bound)):
            shown, beside = float(text.replace(",", "")), float(reach.replace(",", ""))
            assert shown - beside <= value - bound + 1e-9 * value
            assert shown + beside >= value + bound - 1e-9 * value
        shown, beside = (float(text.replace(",", "")) for text in (records(value), records_bound(bound)))
        assert shown - beside <= value - bound
        assert value + bound <= shown + beside
        low, high = (
            float(end.replace(",", "")) for end in records_between(value, value + bound).split(" to ")
        )
        assert low <= value + 1e-6
        assert value + bound <= high + 1e-6


def test_exact_numbers_and_unknown_bounds_stay_what_they_are():
    assert ("5", "0") == within(5.0, 0.0)
    assert "5 no bound" == around(5.0, math.inf)
    assert ("0", "inf") == (records_bound(0.0), records_bound(math.inf))
    assert "1,234 to 1,234" == records_between(1234.0000000002, 1233.9999999998)
