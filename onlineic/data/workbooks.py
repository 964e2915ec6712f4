"""Workbooks of Excel and OpenDocument: the one sheet of a file, its first row the names of its columns.

PRIVATE. Cells keep the types that the file says: numbers, texts, dates, times. Nothing is guessed of them.
"""

import os
import zipfile
from typing import Any

from onlineic.data.files import is_regular, opened
from onlineic.errors import InvalidDataError, InvalidParameterError, MissingExtraError, shown

OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # how files of Excel 97 begin
PARTS = (
    "xl/workbook.xml",
    "xl/workbook.bin",
    "content.xml",
)  # of a newer one, one of these is in the archive


def is_workbook(table: Any) -> bool:
    """Return whether this is the path of a workbook.

    Raises:
        InvalidParameterError: If it is that of no file.
    """
    if not isinstance(table, (str, os.PathLike)) or not is_regular(table):
        return False
    with opened(table) as file:
        begin = file.read(len(OLD))
        if begin == OLD:
            return True
        if not begin.startswith(b"PK"):
            return False
        try:
            with zipfile.ZipFile(file) as archive:
                return any(part in archive.namelist() for part in PARTS)
        except zipfile.BadZipFile:
            return False


def workbook_columns(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """Return the columns of a workbook's one sheet; empty cells are None, rows without any are left out.

    Raises:
        InvalidParameterError: If it has several sheets: which is meant nobody has said.
        InvalidDataError: If the first row does not name each column once, or the file cannot be read.
        MissingExtraError: If the reader is not installed.
    """
    try:
        import python_calamine as calamine
    except ImportError:
        raise MissingExtraError(
            "python-calamine must be installed to read a workbook; run pip install 'onlineic[frames]'."
        ) from None
    try:
        book = calamine.CalamineWorkbook.from_path(os.fspath(path))
        sheets = book.sheet_names
        if len(sheets) == 1:
            header, *rows = book.get_sheet_by_index(0).to_python(skip_empty_area=False) or [[]]
    except calamine.CalamineError:
        raise InvalidDataError(
            "the file must be a workbook that can be read, got another; open it, and save it as .xlsx."
        ) from None
    if len(sheets) != 1:
        raise InvalidParameterError(
            f"table must be a workbook of one sheet, got {shown(sheets, 100)}; save the sheet as a "
            "file of its own."
        )
    while header and header[-1] == "":
        header.pop()
    names = [name for name in header if isinstance(name, str) and name]
    if not header or len(names) < len(header) or len(set(names)) < len(header):
        raise InvalidDataError(
            "the first row must name each column once, got names that are empty, repeated or no "
            "texts; correct it."
        )
    held = [[_value(cell) for cell in row[: len(header)]] for row in rows]
    held = [row for row in held if any(value is not None for value in row)]
    return {name: [row[at] for row in held] for at, name in enumerate(names)}


def _value(cell: Any) -> Any:
    """Return the value of a cell: of numbers a workbook has but doubles, and whole ones are meant so."""
    if cell == "" and isinstance(cell, str):
        return None
    return int(cell) if type(cell) is float and cell.is_integer() else cell
