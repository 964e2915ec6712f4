"""Columns as data frames of those who have pandas or polars: neither is ever needed."""

import abc
from collections.abc import Collection, Mapping
from typing import Any, final

from onlineic.errors import MissingExtraError


class Framed(abc.ABC):
    """What has columns, and is a data frame for those who want one."""

    __slots__ = ()

    @abc.abstractmethod
    def to_dict(self) -> Mapping[str, Any]:
        """Return the columns by name."""

    @final
    def to_pandas(self) -> Any:
        """Return `to_dict` as a pandas DataFrame."""
        return pandas_frame(self.to_dict())

    @final
    def to_polars(self) -> Any:
        """Return `to_dict` as a polars DataFrame."""
        return polars_frame(self.to_dict())


def pandas_frame(columns: Mapping[str, Any], note: str = "") -> Any:
    """Return a pandas DataFrame of these columns; `note` goes into its `attrs`.

    Labels keep their types: where one is missing beside whole numbers, the column holds objects.
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtraError(
            "pandas must be installed for to_pandas; run pip install 'onlineic[pandas]'."
        ) from None
    frame = pandas.DataFrame(
        {
            name: pandas.Series(column, dtype=object)
            if isinstance(column, list) and None in column
            else column
            for name, column in columns.items()
        }
    )
    if note:
        frame.attrs["note"] = note
    return frame


def polars_frame(columns: Mapping[str, Any]) -> Any:
    """Return a polars DataFrame of these columns."""
    try:
        import polars
    except ImportError:
        raise MissingExtraError(
            "polars must be installed for to_polars; run pip install 'onlineic[polars]'."
        ) from None
    return polars.DataFrame(dict(columns))


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a column's name, with underscores after it while an attribute has the same."""
    while name in taken:
        name += "_"
    return name
