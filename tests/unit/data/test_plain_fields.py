"""Plain numbers and moments of a CSV file are read without a text each, cell for cell as texts are."""

import itertools

import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.domain import Dates
from onlineic.errors import InvalidDataError
from onlineic.queries import marginal

NUMBERS = [
    "0", "-0", "7", "007", "12.5", "12.50", "5.", ".5", "-.5", "-5.", "-12.25", "1.2.3", "-", ".", "-.",
    "--5", "5-", "+5", "1e1", "1E-1", "1_0", " 5", "5 ", "inf", "-inf", "nan", "NaN", "0x1", "٣", "½",
    "9.113286095743397", "99999999", "9007199254740993", "123456789012345", "1234567890123456", "0.1",
    "0.30000000000000004",
    "19.999999999999999", "20", "20.0", "19.99999999999999", "-0.0", "1,5", "\t5", "00000000000000005",
    "1.000000000000000000000",
]  # fmt: skip
MOMENTS = [
    "2024", "2024-03", "2024-3-05", "2024-03-05", "2024-02-29", "2023-02-29", "2024-02-30", "2024-13-01",
    "2024-00-10", "2024-03-00", "2024-03-05T14:30", "2024-03-05 14:30", "2024-03-05T14:30:15",
    "2024-03-05t14:30", "2024-03-05T24:00", "2024-03-05T23:59:59", "2024-03-05T23:59:60",
    "2024-03-05T14:60", "2024-03-05T14:30Z", "2024-03-05T14:30+01", "2024-03-05T14:30:15.5",
    "2024-03-05T14", "2024-03-05 1:30", "2024/03/05", "20240305", "0999-01-01", "9999-12-31",
    "9998-12-31", "2024-W10", "2024-Q1", "2024-03-05 14:30:1x", "2024-03-05T14-30", "2030-01-01",
    "1990-01-01", " 2024-03-05", "2024-03-05 ", "２024-03-05", "2024-12-31T23:59", "", "x" * 19,
]  # fmt: skip
KINDS = {
    "binned": (ic.binned([-13.0, -0.25, 0.0, 0.1, 5.0, 9.113286095743398, 12.5, 20.0, 1e8]), NUMBERS),
    "whole bins": (ic.binned([-20, 0, 5, 20, 1e16], integer=True), NUMBERS),
    "clipped": (ic.binned([0.0, 5.0, 20.0], clip=True), NUMBERS),
    "optional": (ic.optional(ic.binned([0.0, 5.0, 20.0]), missing=["NA", "-9"]), [*NUMBERS, "", "NA", "-9"]),
    "integers": (ic.integers(-5, 40_000), NUMBERS),
    "clipped integers": (ic.integers(0, 9, clip=True), NUMBERS),
    "days": (ic.dates("2023-01-01", "2024-12-31"), MOMENTS),
    "weeks": (ic.dates("2023-W02", "2024-W51", by="week"), MOMENTS),
    "months": (ic.dates("2023-01", "2024-12", by="month", clip=True), MOMENTS),
    "hours": (ic.dates("2024-03-05T00", "2024-03-05T23", by="hour"), MOMENTS),
    "minutes": (ic.optional(ic.dates("2024-03-05T14:00", "2024-03-05T14:59", by="minute")), MOMENTS),
    "zone": (ic.dates("2024-03-05T00", "2024-03-05T23", by="hour", zone="Europe/Paris"), MOMENTS),
}
GOOD = {Dates: "2024-03-05T14:30"}


def read(folder, domain, texts, encoding, **form):
    """Return the counts of a file, or what is said of it; only one in UTF-8 is read as bytes.

    Behind its first lines, which are read as text.
    """
    texts = [GOOD.get(type(domain.attributes[0]), "5")] * 200 + [*texts]
    path = folder / f"{encoding}.csv"
    path.write_text("".join(f"{text}\n" for text in ["a;b", *(f"{text};0" for text in texts)]), encoding)
    form = {"delimiter": ";", "encoding": encoding, **form}
    try:
        data = PrivateData.from_csv(path, domain, **form)
    except InvalidDataError as error:
        return str(error)
    return data.exact_counts(marginal("a").bind(domain).partition).tolist()


@pytest.mark.parametrize("name", KINDS)
def test_every_odd_field_is_read_as_its_text_is(name, tmp_path):
    kind, texts = KINDS[name]
    domain = ic.Domain.of(a=kind, b=range(2))
    for text in texts:
        found, expected = (read(tmp_path, domain, [text] * 3, encoding) for encoding in ("utf-8", "utf-16"))
        assert found == expected, text


@pytest.mark.parametrize("name", KINDS)
def test_many_fields_are_read_as_their_texts_are(name, tmp_path):
    """Of all that fit, in one column, many times: also behind the texts that are remembered."""
    kind, texts = KINDS[name]
    domain = ic.Domain.of(a=kind, b=range(2))
    fitting = [text for text in texts if isinstance(read(tmp_path, domain, [text], "utf-16"), list)]
    rng = np.random.default_rng(1)
    texts = [fitting[place] for place in rng.integers(0, len(fitting), 3000)]

    assert read(tmp_path, domain, texts, "utf-8") == read(tmp_path, domain, texts, "utf-16")


def test_a_decimal_comma_is_a_point(tmp_path):
    domain = ic.Domain.of(a=ic.binned([0.0, 1.5, 5.0, 20.0]), b=range(2))
    for text in ["1,5", "1,49", "1.5", "3", "1.2.3", ",5", "5,"]:
        found, expected = (
            read(tmp_path, domain, [text], encoding, decimal=",") for encoding in ("utf-8", "utf-16")
        )
        assert found == expected, text


def test_ever_new_numbers_land_where_float_puts_them(tmp_path):
    rng = np.random.default_rng(2)
    texts = [f"{number:.{places}f}" for number, places in zip(
        rng.normal(0, 50, 40_000), itertools.cycle(range(13)), strict=False)]  # fmt: skip
    domain = ic.Domain.of(a=ic.binned(np.linspace(-300, 300, 1001)), b=range(2))
    edges = domain.attribute("a").edges
    held = [*map(float, texts), *[5.0] * 200]
    expected = np.bincount(np.searchsorted(edges, held, side="right") - 1, minlength=1000)

    assert expected.tolist() == read(tmp_path, domain, texts, "utf-8")


@pytest.mark.parametrize("kind", [ic.binned([0, 10, 100]), range(100)], ids=["bins", "codes"])
@pytest.mark.parametrize("first", [True, False])
def test_a_column_of_numbers_that_is_empty_in_a_whole_block_of_the_file_is_read(kind, first, tmp_path):
    path, gaps, numbers = tmp_path / "t.csv", ",F\n" * 100_000, "5,M\n7,F\n"
    path.write_text("pay,sex\n" + (gaps + numbers if first else numbers * 50_000 + gaps))
    domain = ic.Domain.of(pay=ic.optional(kind, missing=[""]), sex=["F", "M"])

    data = PrivateData.from_csv(path, domain)

    assert 100_000 + (2 if first else 100_000) == data.n
    gaps = ic.where(pay=None).bind(domain)
    assert 100_000 << gaps.grid_bits == data.exact_counts(gaps)
