"""`python -m onlineic.datasets`: list public tables, and fetch them."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from onlineic.datasets.fetch import CATALOGUE, Dataset, fetch, find, folder_of_data
from onlineic.errors import DigestMismatchError, InvalidParameterError, MissingDataError, OnlineICError

FAILED, USAGE = 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 1 if a table was not got, 2 for a wrong name."""
    parser = argparse.ArgumentParser(
        prog="python -m onlineic.datasets",
        allow_abbrev=False,
        description="Public tables that do not ship with the package.",
    )
    commands = parser.add_subparsers(required=True, dest="command", metavar="{list,fetch}")
    listing = commands.add_parser("list", help="name, records, source, licence and state of every table")
    getting = commands.add_parser("fetch", help="download tables, each checked against its sha256")
    getting.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    for command in (listing, getting):
        command.add_argument(
            "--folder", type=Path, help="instead of ONLINEIC_DATA, else onlineic in the user's cache"
        )
    arguments = parser.parse_args(argv)
    folder = arguments.folder or folder_of_data()
    if arguments.command == "list":
        print(f"folder: {folder}")
        for dataset in CATALOGUE.values():
            print(_shown(dataset, folder))
        return 0
    return max([_fetched(name, folder) for name in arguments.names or CATALOGUE])


def _shown(dataset: Dataset, folder: Path) -> str:
    """Return what there is to know of a table, one fact a line."""
    try:
        state = f"here: {find(dataset.name, folder)}"
    except MissingDataError:
        state = "not fetched"
    except DigestMismatchError:
        state = f"another file is in its place: {folder / dataset.path}"
    return (
        f"\n{dataset.name}: {dataset.about}\n"
        f"    records  {dataset.records:,}\n"
        f"    source   {dataset.address}\n"
        f"    licence  {dataset.licence}\n"
        f"    sha256   {dataset.sha256}\n"
        f"    state    {state}"
    )


def _fetched(name: str, folder: Path) -> int:
    """Fetch one table and say so; the next one is tried even if this one fails."""
    try:
        print(f"{name}: {fetch(name, folder)}", flush=True)
    except OnlineICError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return USAGE if isinstance(error, InvalidParameterError) else FAILED
    except OSError as error:
        print(f"{name}: error: {error.filename or 'a file'}: {error.strerror}", file=sys.stderr)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
