"""The shipped Adult table is the one that its README describes."""

import gzip
import hashlib
import importlib.resources

import numpy as np
import pytest

from onlineic.datasets import adult5

SHA256 = "597e3f2aed7319814ec42127d28be9ab18e724bde868f974cde22d288156376b"


def records(mask):
    """Number of records in the rows that `mask` marks."""
    _, counts = adult5()
    return int(counts[mask].sum())


def test_unpacked_file_has_the_published_hash():
    packed = importlib.resources.files("onlineic.datasets").joinpath("adult5.csv.gz").read_bytes()

    assert SHA256 == hashlib.sha256(gzip.decompress(packed)).hexdigest()


def test_columns_are_aligned_with_counts():
    columns, counts = adult5()

    assert {"age", "education_num", "race", "sex", "income"} == set(columns)
    assert {(5_162,)} == {column.shape for column in columns.values()} | {counts.shape}
    assert np.int64 == counts.dtype
    assert np.int64 == columns["age"].dtype
    assert np.int64 == columns["education_num"].dtype
    assert 48_842 == counts.sum()
    assert counts.min() == 1


def test_values_fit_the_documented_domain():
    columns, _ = adult5()

    assert (17, 90) == (columns["age"].min(), columns["age"].max())
    assert (1, 16) == (columns["education_num"].min(), columns["education_num"].max())
    assert {"White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"} == set(columns["race"])
    assert {"Female", "Male"} == set(columns["sex"])
    assert {"<=50K", ">50K"} == set(columns["income"])


def test_rows_are_distinct():
    columns, counts = adult5()
    rows = set(zip(*(column.tolist() for column in columns.values()), strict=True))

    assert len(counts) == len(rows)


def test_golden_counts():
    columns, _ = adult5()
    female = columns["sex"] == "Female"

    assert 16_192 == records(female)
    assert 11_687 == records(columns["income"] == ">50K")
    assert 7_268 == records(female & (columns["age"] >= 30) & (columns["age"] <= 50))
    assert 41_762 == records(columns["race"] == "White")


def test_largest_cell():
    columns, counts = adult5()
    largest = int(counts.argmax())
    row = tuple(columns[name][largest] for name in ("age", "education_num", "race", "sex", "income"))

    assert (20, 10, "White", "Female", "<=50K") == row
    assert counts[largest] == 297


@pytest.mark.parametrize(
    ("column", "position", "labels"),
    [
        ("age", 0, range(16, 101)),
        ("education_num", 3, range(1, 17)),
        ("race", 7, ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]),
        ("sex", 8, ["Female", "Male"]),
        ("income", 13, ["<=50K", ">50K"]),
    ],
)
def test_matches_the_integer_codes_of_other_papers(data_folder, column, position, labels):
    """The record-level file of the private-pgm repository gives the same one-way counts."""
    path = data_folder / "adult" / "adult.csv"
    codes = np.loadtxt(path, delimiter=",", skiprows=1, usecols=position, dtype=np.int64)
    columns, counts = adult5()
    expected = np.bincount(codes, minlength=len(labels))
    actual = [counts[columns[column] == label].sum() for label in labels]

    assert expected.tolist() == actual
