"""Synthetic records, drawn from the public hypothesis, and marked as such wherever they go."""

import csv
import os
from typing import Any, final

import attrs

from onlineic.display.frames import free_name, pandas_frame, polars_frame
from onlineic.display.html import card, note, table
from onlineic.errors import InvalidParameterError, checked_integer
from onlineic.hypothesis.base import Hypothesis

MOST_ROWS = 10_000_000
SHOWN = 10
NOTE = (
    "synthetic records, drawn from the hypothesis of a session: nobody's own, and without any guarantee; "
    "for a number with a bound ask the session"
)


@final
@attrs.frozen(eq=False, repr=False)
class Synthetic:
    """Synthetic records as columns of labels: post-processing of what was released, free, no guarantee.

    Attributes
    ----------
    columns : dict of name to list, (rows,)
        Labels by attribute, None for the missing cell.
    seed : int
        Public: the same seed and hypothesis give the same records.
    private : bool
        False: of a session with simulated noise, NOT PRIVATE.
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
        """Return `to_dict` as a pandas DataFrame, with a note in its `attrs`.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        return pandas_frame(self.to_dict(), NOTE)

    def to_polars(self) -> Any:
        """Return `to_dict` as a polars DataFrame.

        Raises
        ------
        MissingExtraError
            If polars is not installed.
        """
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

    Raises
    ------
    InvalidParameterError
        If a number is outside its range, or the hypothesis cannot be sampled.
    """
    rows, seed = check_sampled(hypothesis, rows, seed)
    return Synthetic(hypothesis.sample(rows, seed), seed, private)  # type: ignore[attr-defined]


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
