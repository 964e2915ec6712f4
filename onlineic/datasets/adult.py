"""Real tables that ship with the package; origin and licence in the README beside them."""

import csv
import gzip
import importlib.resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineic._typing import Ints
from onlineic.domain.domain import Domain


def adult5() -> tuple[dict[str, NDArray[Any]], Ints]:
    """Return the distinct rows of five attributes of UCI Adult, and how many of 48,842 records hold each.

    The table fits `adult5_domain`, 23,680 cells.

    Becker, B. and Kohavi, R. (1996), Adult, UCI Machine Learning Repository.

    Returns:
        columns: Dict of (5162,) arrays. ``age`` and ``education_num`` in int64; ``race``, ``sex`` and
            ``income`` as text. Rows are distinct and sorted.
        counts: Shape (5162,), at least 1. Records per row; the sum is 48,842.
    """
    packed = importlib.resources.files("onlineic.datasets").joinpath("adult5.csv.gz").read_bytes()
    header, *rows = csv.reader(gzip.decompress(packed).decode("ascii").splitlines())
    text = dict(zip(header, map(np.array, zip(*rows, strict=True)), strict=True))
    counts = text.pop("count").astype(np.int64)
    numbers = {name: text[name].astype(np.int64) for name in ("age", "education_num")}
    return {**text, **numbers}, counts


def adult5_domain() -> Domain:
    """Return the public domain of `adult5`: 74 ages, 16 years of education, 5 races, 2 sexes, 2 incomes."""
    races = ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"]
    ranges = {"age": range(17, 91), "education_num": range(1, 17)}
    return Domain.of({**ranges, "race": races, "sex": ["Female", "Male"], "income": ["<=50K", ">50K"]})
