"""A file read by bytes holds the fields that the csv module reads, whatever is in it."""

import csv

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic.data import PrivateData, file_parts
from onlineic.data.file_parts import Fields
from onlineic.data.table_file import CsvFormat
from onlineic.errors import InvalidDataError

PIECES = ["a", "b", "12", "1.5", "", " ", "x y", "é", "€uro", "a" * 9, "long label of more than 32 bytes, é"]
ODD = ['"', '""', '"a\nb"', '"c,d"', "\r", "\0", "\ufeff", "\u2028", "\t", ";", ",", "\n\n", "\r\n"]
LABELS = st.sampled_from([*PIECES[:5], *(f"label {i}" for i in range(40))])
ENDS = ["\n", "\r\n", ""]


def lines():
    """Files of plain lines with a few odd ones among them, or of anything at all."""
    field = st.sampled_from(PIECES)
    plain = st.lists(field, min_size=2, max_size=2).map(",".join)
    odd = st.lists(st.sampled_from(PIECES + ODD), max_size=4).map(",".join) | st.text(max_size=6)
    line = st.one_of(plain, plain, plain, plain, odd)
    rows = st.lists(st.tuples(line, st.sampled_from(ENDS[:1] * 6 + ENDS)), max_size=12)
    return st.builds(
        lambda mark, header, end, rows: mark + header + end + "".join(a + b for a, b in rows),
        st.sampled_from(["", "", "\ufeff"]),
        st.sampled_from(["p,q", "p", '"p",q', "", '"p\nx",q']),
        st.sampled_from(ENDS[:2]),
        rows,
    )


def by_parts(path, form):
    """Return all rows in order, or the kind of failure; and how many came as bytes."""
    rows, plain = [], 0
    try:
        parts = form.parts(path)
        rows.append(next(parts))
        for part in parts:
            if isinstance(part, Fields):
                columns = [part.texts(*part.column(place)) for place in range(len(rows[0]))]
                rows += map(list, zip(*columns, strict=True))
                plain += len(columns[0])
            else:
                rows += part
    except (UnicodeError, csv.Error) as error:
        return type(error).__mro__[1].__name__, plain
    return rows, plain


def by_csv(path, form):
    """Return the same by the csv module over the whole file."""
    try:
        with form.open(path) as file:
            header, reader = form.headed(file)
            return [header, *(row for row in reader if row)]
    except (UnicodeError, csv.Error) as error:
        return type(error).__mro__[1].__name__


def few_lines(patch, size):
    """Let blocks be small: the one of the header is read as text, others as bytes."""
    patch.setattr(file_parts, "BLOCK", size)
    patch.setattr(file_parts, "LINES", min(size, 512))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("parts") / "t.csv"


@settings(max_examples=400, deadline=None)
@given(
    lines(),
    st.sampled_from([1, 7, 40, 200]),
    st.booleans(),
    st.sampled_from(["utf-8", "latin-1", "cp1252"]),
)
@example("p,q\r\na,b\r\n ,\r\n", 7, True, "utf-8")
@example("p\n \na\n\n", 7, True, "utf-8")
@example("p,q\r\n1,2\r\n3\r4,5\r\n", 7, True, "utf-8")
@example('p,q\n1,2\n3,"x\ny"\n4,5\n', 7, True, "utf-8")
@example("p,q\n1,2\n\ufeff3,4", 7, True, "utf-8")
def test_bytes_and_the_csv_module_read_the_same(path, text, size, blanks, encoding):
    path.write_bytes(text.encode(encoding, "replace"))
    form = CsvFormat(encoding=encoding, skipinitialspace=blanks)
    with pytest.MonkeyPatch.context() as patch:
        few_lines(patch, size)

        assert by_csv(path, form) == by_parts(path, form)[0]


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([1, 9, 60]))
def test_any_bytes_are_read_or_refused_alike(path, tail, size):
    path.write_bytes(b"p,q\n1,2\n" + tail)
    with pytest.MonkeyPatch.context() as patch:
        few_lines(patch, size)
        for encoding in ("utf-8", "ascii", "latin-1", "utf-16", "shift-jis"):
            form = CsvFormat(encoding=encoding)

            assert by_csv(path, form) == by_parts(path, form)[0]


@settings(max_examples=40, deadline=None)
@given(st.lists(LABELS, min_size=1, max_size=80), st.sampled_from([1, 3, 14]))
def test_codes_do_not_depend_on_the_way_they_are_read(path, texts, slots):
    """Few slots for texts that were met: others are read again."""
    domain = ic.Domain.of(x=ic.optional(sorted({*texts, "-"} - {""})))
    path.write_text("x,y\n" + "".join(f"{text},1\n" for text in texts), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_parts, "SLOTS", slots)
        few_lines(patch, 64)
        data = PrivateData.from_csv(path, domain, skipinitialspace=False)
    for text in {*texts}:
        assert texts.count(text) == data.exact_counts(ic.where(x=text or None).bind(domain))


def test_most_of_a_file_with_a_few_quotes_is_read_as_bytes(path):
    rows = [f"{i % 7},{'F' if i % 2 else 'M'}" for i in range(200_000)]
    for place in (50_000, 150_000):
        rows[place] = '3,"F"'
    path.write_text("\n".join(["p,q", *rows, ""]))
    found, plain = by_parts(path, CsvFormat())

    assert [row.replace('"', "").split(",") for row in rows] == found[1:]
    assert 60_000 < plain < 200_000


def test_multibyte_text_is_never_cut(path):
    """In UTF-16 and Shift-JIS a comma's byte may be half of a letter."""
    domain = ic.Domain.of(p=["能", "表,", "ab"], q=range(3))
    text = 'p,q\n能,1\n"表,",2\nab,0\n'
    for encoding in ("utf-16", "shift-jis", "utf-8", "gbk"):
        path.write_bytes(text.encode(encoding))
        data = PrivateData.from_csv(path, domain, encoding=encoding)

        assert [1, 1, 1] == [
            data.exact_counts(ic.where(p=label).bind(domain)) for label in ("能", "表,", "ab")
        ]


def test_counts_and_refusals_are_those_of_rows(path, monkeypatch):
    path.write_text("a,n\n" + "1,2\n" * 5000 + "7,1\n" + "1,x\n")
    domain = ic.Domain.of(a=range(5))
    messages = set()
    for ways in (file_parts.BYTEWISE, frozenset()):
        monkeypatch.setattr("onlineic.data.table_file.BYTEWISE", ways)
        with pytest.raises(InvalidDataError) as caught:
            PrivateData.from_csv(path, domain, count="n")
        messages.add(str(caught.value))
    path.write_text("a,n\n" + "1,2\n" * 5000 + "2,123456789\n")

    assert 1 == len(messages)
    assert "2 misfits" in messages.pop()
    assert 10_000 + 123_456_789 == PrivateData.from_csv(path, domain, count="n").n


def test_columns_of_many_values_are_read(path):
    values = np.round(np.random.default_rng(0).random(50_000), 9)
    path.write_text("w\n" + "\n".join(map(str, values)) + "\n")
    domain = ic.Domain.of(w=ic.binned([0, 0.25, 1]))
    data = PrivateData.from_csv(path, domain)

    assert int((values < 0.25).sum()) == data.exact_counts(ic.where(w=ic.below(0.25)).bind(domain))


def test_zero_bytes_are_part_of_a_text(path, monkeypatch):
    few_lines(monkeypatch, 64)
    domain = ic.Domain.of(x=["a", "a\0"])
    path.write_text("x,y\n" + "a,1\n" * 300 + "a\0,1\na,1\n")
    data = PrivateData.from_csv(path, domain)

    assert [301, 1] == [
        data.exact_counts(ic.where(x=label).bind(domain)) for label in domain.attributes[0].labels
    ]


def test_columns_that_are_ignored_must_be_of_the_encoding_too(path):
    path.write_bytes(b"x,y\n" + b"a,1\n" * 300 + b"a,\xff\n")
    with pytest.raises(InvalidDataError, match="UTF-8, got other bytes"):
        PrivateData.from_csv(path, ic.Domain.of(x=["a"]))
