"""Files that hold columns with types: by their first bytes, and how all their columns are read.

A format of files is one row of `FORMATS`. CSV, whose columns are texts, is read by `table_file`; Parquet, of
which only some columns are read, by `frames`.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from onlineic.data.frames import is_parquet
from onlineic.data.workbooks import is_workbook, workbook_columns

Path = str | os.PathLike[str]


class FileFormat(NamedTuple):
    """How a file is known, and its columns, as `PrivateData.from_records` takes them. PRIVATE."""

    holds: Callable[[Any], bool]
    columns: Callable[[Path], dict[str, list[Any]]]


FORMATS = (FileFormat(is_workbook, workbook_columns),)


def file_columns(table: Any) -> dict[str, list[Any]] | None:
    """Return the columns of a file of one of the formats, None if it is none."""
    return next((form.columns(table) for form in FORMATS if form.holds(table)), None)


def has_types(path: Path) -> bool:
    """Return whether a file says of which type its columns are: of a CSV file the reader must be told."""
    return is_parquet(path) or any(form.holds(path) for form in FORMATS)
