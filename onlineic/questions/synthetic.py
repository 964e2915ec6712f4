"""Synthetic records, drawn from the public hypothesis, and marked as such wherever they go."""

import csv
import math
import os
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.display.frames import free_name, pandas_frame, polars_frame
from onlineic.display.html import card, note, table
from onlineic.domain.attributes import Binned
from onlineic.errors import InvalidParameterError, checked_integer
from onlineic.hypothesis.base import Hypothesis
from onlineic.noise.sources import public_generator

MOST_ROWS = 10_000_000
LARGEST, FLAT = 500.0, 1e-5  # slopes of the densities inside a bin
SHOWN = 10
NOTE = (
    "synthetic records, drawn from the hypothesis of a session: nobody's own, and without any guarantee; "
    "for a number with a bound ask the session"
)


@final
@attrs.frozen(eq=False, repr=False)
class Synthetic:
    """Synthetic records as columns of labels: post-processing of what was released, free, no guarantee.

    Attributes:
        columns: From name to a list of shape (rows,). Labels by attribute, of numbers in bins a number
            inside; None for the missing cell.
        seed: Public: the same seed and hypothesis give the same records.
        private: False: of a session with simulated noise, NOT PRIVATE.
    """

    columns: dict[str, list[Any]]
    seed: int
    private: bool = True

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns, and one named "synthetic" that is True in every row."""
        return {**self.columns, free_name("synthetic", self.columns): [True] * len(self)}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` as CSV (UTF-8, a header, nothing for a missing value)."""
        columns = self.to_dict()
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))

    def to_pandas(self) -> Any:
        """Return `to_dict` as a pandas DataFrame, with a note in its `attrs`."""
        return pandas_frame(self.to_dict(), NOTE)

    def to_polars(self) -> Any:
        """Return `to_dict` as a polars DataFrame."""
        return polars_frame(self.to_dict())

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        return f"Synthetic({len(self):,} rows of {', '.join(self.columns)}; seed={self.seed}{stamp})"

    def _repr_html_(self) -> str:
        rows = [*zip(*(column[:SHOWN] for column in self.columns.values()), strict=True)]
        parts = [table([*self.columns], rows, left=len(self.columns), names=0), note(NOTE)]
        return card(f"{len(self):,} synthetic records", *parts, private=self.private)


def synthetic(hypothesis: Hypothesis, rows: int, seed: int, private: bool) -> Synthetic:
    """Return records drawn from a hypothesis.

    Raises:
        InvalidParameterError: If a number is outside its range, or the hypothesis cannot be sampled.
    """
    rows, seed = check_sampled(hypothesis, rows, seed)
    return Synthetic(drawn(hypothesis, rows, seed), seed, private)


def drawn(hypothesis: Hypothesis, rows: int, seed: int) -> dict[str, list[Any]]:
    """Return records of a hypothesis as columns: labels, and of numbers in bins a number inside the bin.

    Of a number between two ends the mean of a bin is kept: the records of a bin are spread by the
    distribution of most entropy with that mean, those at its lower end below those at its upper one.
    """
    columns: dict[str, list[Any]] = hypothesis.sample(rows, seed)  # type: ignore[attr-defined]
    for place, (name, kind) in enumerate(hypothesis.domain):
        if isinstance(kind, Binned):
            uniform = public_generator(seed + (place + 1 << 40)).random(rows)
            columns[name] = _numbers(kind, columns[name], uniform)
    return columns


def _numbers(kind: Binned, labels: list[Any], uniform: Floats) -> list[Any]:
    """Return numbers inside the bins that labels name, None of missing ones."""
    known = {kind.label(code): code for code in range(kind.size - kind.missing)}
    codes = np.array([known.get(label, -1) for label in labels])
    found: list[Any] = [None] * len(labels)
    for at in np.unique(codes[codes >= 0] // kind.cells).tolist():
        low, high = kind.edges[at], kind.edges[at + 1]
        held = np.flatnonzero((codes >= 0) & (codes // kind.cells == at))
        if math.isinf(low) or math.isinf(high):  # a bin without an end has no inside
            drawn_ = np.full(len(held), high if math.isinf(low) else low)
        elif kind.integer:
            drawn_ = low + np.floor(uniform[held] * (high - low))
        else:
            places = uniform[held]
            if kind.ends:
                upper = codes[held] % 2 == 1
                share = float(upper.mean())
                places = _spread(np.where(upper, 1.0 - share * (1.0 - places), (1.0 - share) * places), share)
            digits = 3 - math.floor(math.log10(high - low))
            drawn_ = np.round(low + places * (high - low), digits)
            drawn_ = np.where(
                drawn_ < high, drawn_, np.round(high - 10.0**-digits, digits)
            )  # not in the next
            drawn_ = np.maximum(drawn_, low)
        for row, number in zip(held.tolist(), drawn_.tolist(), strict=True):
            found[row] = int(number) if kind.integer and math.isfinite(number) else number
    return found


def _spread(ranks: Floats, mean: float) -> Floats:
    """Return numbers in [0, 1] of these ranks, of the density e^(k t) that has this mean."""
    if not 0.0 < mean < 1.0:
        return np.full(ranks.shape, mean)
    low, high = -LARGEST, LARGEST
    for _ in range(80):  # the mean rises with k
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _mean_of(middle) < mean else (low, middle)
    k = 0.5 * (low + high)
    return ranks if abs(k) < FLAT else np.clip(np.log1p(ranks * math.expm1(k)) / k, 0.0, 1.0)


def _mean_of(k: float) -> float:
    """Return the mean of the density e^(k t) on [0, 1]."""
    if abs(k) < FLAT:
        return 0.5 + k / 12.0
    return 1.0 / -math.expm1(-k) - 1.0 / k


def check_sampled(hypothesis: Hypothesis, rows: int, seed: int) -> tuple[int, int]:
    """Return numbers from which records can be drawn of such a hypothesis, or raise as `synthetic` does."""
    rows = checked_integer("rows", rows, at_least=1, at_most=MOST_ROWS)
    seed = checked_integer("seed", seed, at_least=0)
    if not hasattr(hypothesis, "sample"):
        raise InvalidParameterError(
            "hypothesis must be one that can be sampled, got a "
            f"{type(hypothesis).__name__}; open the session with update=MaximumEntropy()."
        )
    return rows, seed
