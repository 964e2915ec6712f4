"""The private table of a command: how its file is written, whom it protects, and what is told of misfits.

One set of options and one loader serve every command that reads a table.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import attrs

from onlineic.ask.places import without_python
from onlineic.data.formats import has_types
from onlineic.data.private import PrivateData
from onlineic.data.table_file import CsvFormat
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit
from onlineic.errors import InvalidDataError, InvalidDomainError, InvalidParameterError

SHIPPED = "adult5"  # the table for demonstrations
FORM = (*(field.name for field in attrs.fields(CsvFormat)), "count")


def add_form(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how the file of a table is written."""
    told = parser.add_argument_group("a CSV file of another form")
    told.add_argument("--delimiter", type=_mark, help="between the fields, default ','; '\\t' is a tab")
    told.add_argument("--encoding", help="default utf-8")
    told.add_argument("--decimal", help="before the fraction of a number, default '.'")
    told.add_argument(
        "--missing", action="append", metavar="TEXT", help="a text for no value; again for more"
    )
    told.add_argument("--count", metavar="COLUMN", help="how many records each line stands for")
    told.add_argument(
        "--keep-blanks",
        dest="skipinitialspace",
        action="store_const",
        const=False,
        help="blanks after a delimiter belong to the field",
    )


def add_loading(parser: argparse.ArgumentParser) -> None:
    """Add all arguments that `read_table` takes but the file and who is protected."""
    add_form(parser)
    parser.add_argument(
        "--show-data-errors",
        action="store_true",
        help="say what is wrong with a table that does not fit its domain; quotes records",
    )


def add_protected(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say who is protected."""
    parser.add_argument(
        "--person", metavar="COLUMN", help="whose row it is: protect all rows of a person; counts are persons"
    )
    parser.add_argument(
        "--neighbours",
        choices=("replace-one", "add-remove"),
        default="replace-one",
        help="add-remove: protect whether one is there at all; the number of records is released first",
    )


def protected_by(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return who is protected, as loaders take it."""
    unit = None if arguments.person is None else Unit(arguments.person)
    return {"unit": unit, "neighbours": arguments.neighbours}


def form_of(arguments: argparse.Namespace, path: str) -> dict[str, Any]:
    """Return what was said of the form of a file, as `from_csv` takes it; of others nothing can be."""
    form = {name: value for name in FORM if (value := getattr(arguments, name)) is not None}
    if form and has_types(path):
        raise InvalidParameterError(
            "--delimiter, --missing and their like must be left out for a Parquet file or a workbook, got "
            "one; declare gaps in the domain file."
        )
    return form


def read_table(
    arguments: argparse.Namespace,
    path: str,
    domain: Domain,
    protected: dict[str, Any],
    fits: str = "its domain",
) -> PrivateData:
    """Return the private table of a CSV or Parquet file or a workbook, or the one that is shipped.

    Raises:
        InvalidDataError: If it does not fit. What is wrong quotes records: it is told on demand alone, on
            standard error.
    """
    if path == SHIPPED and not os.path.exists(path):
        from onlineic.datasets.adult import adult5

        return PrivateData.from_counts(*adult5(), domain, **protected)
    os.stat(path)  # one that is not there is told as other files are
    form = form_of(arguments, path)
    try:
        if has_types(path):
            return PrivateData.from_frame(path, domain, **protected)
        return PrivateData.from_csv(path, domain, **form, **protected)
    except InvalidDataError:
        if arguments.show_data_errors:
            report = PrivateData.check(path, domain, unit=protected["unit"], **form)
            print(without_python(report.curator_report()), file=sys.stderr)
        raise InvalidDataError(
            f"the table must fit {fits}, got another; --show-data-errors says more, and quotes it."
        ) from None


def read_domain(path: str) -> Domain:
    """Return the domain of a file, or raise `InvalidDomainError` with the file's name."""
    try:
        with open(path, encoding="utf-8-sig") as file:  # a label that was replaced would be another label
            text = file.read()
    except UnicodeError:
        raise InvalidDomainError(
            f"{Path(path).name}: a domain file must be in UTF-8, got other bytes; convert it."
        ) from None
    try:
        return Domain.from_json(text)
    except InvalidDomainError as error:
        raise InvalidDomainError(f"{Path(path).name}: {error}") from None


def _mark(text: str) -> str:
    return "\t" if text == r"\t" else text
