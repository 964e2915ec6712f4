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
from onlineic.queries import Partition

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


HOSTILE = {  # files of a column p of texts, q of whole numbers and w of numbers
    "plain": b"p,q,w\na,1,0.5\nb,2,1e-3\n",
    "nothing": b"",
    "a header alone": b"p,q,w",
    "no line end": b"p,q,w\na,1,0.5",
    "blank lines": b"\n\np,q,w\n\na,1,0.5\n\n",
    "carriage returns alone": b"p,q,w\ra,1,0.5\rb,2,1\r",
    "mixed line ends": b"p,q,w\r\na,1,0.5\nb,2,1\r\nb,3,1",
    "a carriage return in a field": b"p,q,w\na\rb,1,0.5\n",
    "a short line": b"p,q,w\na,1,0.5\nb,2\n",
    "a long line": b"p,q,w\na,1,0.5\nb,2,1,1\n",
    "a trailing delimiter": b"p,q,w,\na,1,0.5,\n",
    "quoted": b'p,q,w\n"a","1","0.5"\n"b",2,1\n',
    "a quoted line end": b'p,q,w\n"a\nb",1,0.5\n',
    "a doubled quote": b'p,q,w\n"a""b",1,0.5\n',
    "a quote inside": b'p,q,w\na"b,1,0.5\n',
    "a quote that is not closed": b'p,q,w\n"a,1,0.5\nb,2,1\n',
    "text after a quote": b'p,q,w\n"a"b,1,0.5\n',
    "a null byte": b"p,q,w\na\0,1,0.5\n",
    "other bytes": b"p,q,w\n\xff\xfe,1,0.5\n",
    "a mark": b"\xef\xbb\xbfp,q,w\na,1,0.5\n",
    "a mark in the middle": b"p,q,w\n\xef\xbb\xbfa,1,0.5\n",
    "half a letter": b"p,q,w\na,1,0.5\n\xc3",
    "a name twice": b"p,q,q,w\na,1,1,0.5\n",
    "a name that is absent": b"p,q\na,1\n",
    "other delimiters": b"p;q;w\na;1;0.5\n",
    "blanks": b"p, q, w\na, 1, 0.5\n",
    "blanks behind": b"p,q,w\na ,1 ,0.5 \n",
    "missing": b"p,q,w\n,1,0.5\n",
    "underscores": b"p,q,w\na,1_0,0.5\nb,1,1_0.5\n",
    "signs": b"p,q,w\na,+1,+0.5\nb,-0,-0.0\n",
    "other digits": "p,q,w\na,١,٠.٥\n".encode(),
    "no numbers": b"p,q,w\na,nan,inf\nb,1e0,0x1\n",
    "a whole number with a point": b"p,q,w\na,1.0,.5\nb,2.,1.\n",
    "a huge number": b"p,q,w\na,1,1e999\nb,99999999999999999999,1\n",
    "a fine number": b"p,q,w\na,1,0.49999999999999994\nb,2,0.5000000000000000000001\n",
    "formulas": b"p,q,w\n=1+1,1,0.5\n",
    "a long field": b"p,q,w\n" + b"a" * 140_000 + b",1,0.5\n",
    "many lines, and one that is no number": b"p,q,w\n" + b"a,1,0.5\n" * 3000 + b"b,x,1\n" + b"b,2,1\n" * 50,
}
KINDS = ic.Domain.of(
    p=ic.categorical(["a", "b", "a\nb", 'a"b', "a ", "=1+1"], other=True),
    q=ic.optional(range(11)),
    w=ic.binned([-1, 0.5, 1, 100], clip=True),
)


def loaded(path):
    """Return the counts of all cells, or the error that a table is refused by."""
    try:
        data = PrivateData.from_csv(path, KINDS)
    except ic.errors.OnlineICError as error:
        return type(error).__name__, str(error)
    return data.exact_counts(Partition(KINDS, (0, 1, 2), tuple(map(np.arange, KINDS.shape)))).tolist()


@pytest.mark.parametrize("size", [8, 4096])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_loaded_or_refused_alike_by_bytes_and_by_the_csv_module(
    name, size, path, monkeypatch
):
    path.write_bytes(HOSTILE[name])
    few_lines(monkeypatch, size)
    by_bytes = loaded(path)
    monkeypatch.setattr("onlineic.data.table_file.BYTEWISE", frozenset())

    assert loaded(path) == by_bytes
    assert name not in ("plain", "quoted", "blanks") or 2 >= sum(by_bytes) >= 1
