"""`onlineic domain draft`: a domain file, from what a person knows about a table.

Of the table the header line alone is read. Its rows are private: labels are taken from them only on demand,
and what is written then says so.
"""

import argparse
import csv
import json
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from onlineic.cli.table import add_form, form_of
from onlineic.data.formats import file_columns
from onlineic.data.frames import frame_columns, is_parquet, opened_frame
from onlineic.data.table_file import CsvFormat, unquoted, unreadable
from onlineic.domain.attributes import boolean, number
from onlineic.domain.domain import FROM_ROWS, Domain, nearest_column
from onlineic.domain.proposals import Proposal, kind_of, proposals
from onlineic.errors import (
    InvalidDataError,
    InvalidDomainError,
    InvalidParameterError,
    shown,
)

HELP = (
    "range 17 90 | labels F, M | boolean yes no | number 0 50000 | bins 0 20000 50000 inf | "
    "dates 2020-01 2024-12 month | skip; then, after ';': optional, missing ?, NA, others missing, clip, "
    "other, whole, round, written $1,234.5, clock hours, zone Europe/Paris, format %b-%Y, epoch s"
)
FLAGS = {"clip": "clip", "other": "other", "whole": "integer", "round": "round"}
LISTED = {"written": "written", "format": "formats"}  # said again for more
LOUD = "labels were read from the private table"
MOST_LABELS = 1000  # of a column that is taken from rows
RANGE_FROM = 20  # distinct numbers from which a column is taken for numbers


def _draft(arguments: argparse.Namespace) -> int:
    os.stat(arguments.file)  # one that is not there is told as the other files are
    told = form_of(arguments, arguments.file)
    counts = told.pop("count", None)
    form = CsvFormat(**told)
    header = [name for name in _header(arguments.file, form) if name != counts]
    given, rows = _given(arguments.attribute, header), arguments.from_rows or []
    if not {*given, *rows} & {*header}:
        form.check_delimiter(header)
    rows = header if arguments.from_rows == [] else rows
    _check_names("--attribute", given, header)
    _check_names("--from-rows", rows, header)
    open_names = [name for name in header if name not in given and name not in rows]
    if open_names and not sys.stdin.isatty():
        options = " ".join(f"--attribute {shlex.quote(f'{name}=KIND')}" for name in open_names[:8])
        options += " .." * (len(open_names) > 8)
        raise InvalidParameterError(
            f"every column must have a kind where nobody can be asked, got none for {', '.join(open_names)}; "
            f"write {options}, with a KIND such as 'range 17 90', 'labels F, M' or 'skip', or run it on a "
            "terminal. Nothing was written."
        )
    for name in open_names:
        given[name] = _asked(name)
    taken = [name for name in rows if name not in given]
    given |= _from_rows(arguments.file, form, taken)
    kinds = {name: given[name] for name in header if given[name] is not None}
    text = (
        "{\n"
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(kind)}" for name, kind in kinds.items())
        + "\n}\n"
    )
    domain = Domain.from_json(json.dumps({name: _public(kind) for name, kind in kinds.items()}))
    if taken:
        line = "!" * 78
        print(f"{line}\nNOT PRIVATE: {LOUD}: {', '.join(taken)}.", file=sys.stderr)
        print(
            "The list of labels that occur is itself a release; check it against public knowledge.",
            file=sys.stderr,
        )
        print(line, file=sys.stderr)
    print(domain, file=sys.stderr)
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        with open(arguments.out, "x", encoding="utf-8") as file:
            file.write(text)
    return 0


def _header(path: str, form: CsvFormat) -> list[str]:
    """Return the names of the columns: the one line of the table that is read."""
    if is_parquet(path):
        return opened_frame(path)[1]
    if (columns := file_columns(path)) is not None:
        return list(columns)
    try:
        with form.open(path) as file:
            header, _ = form.headed(file)
    except csv.Error:
        raise InvalidDataError(f"{unquoted()}.") from None
    except UnicodeError:
        raise InvalidDataError(
            f"the file must begin with a header line in {form.encoding.upper()}, got other bytes; name its "
            "--encoding."
        ) from None
    if not header or len(set(header)) < len(header) or "" in header:
        raise InvalidDataError(
            "the header must name each column once, got names that are empty or repeated; correct it."
        )
    return header


def _given(options: list[str], header: list[str]) -> dict[str, Any]:
    """Return the kinds that were given as options, by name."""
    given = {}
    for option in options:
        name, equals, answer = option.partition("=")
        while equals and name not in header and "=" in answer:  # a name may hold the sign
            more, equals, answer = answer.partition("=")
            name += "=" + more
        if not equals:
            raise InvalidParameterError(
                f"--attribute must read NAME=KIND, got {shown(option, 200)}; KIND is {HELP}."
            )
        given[name] = _kind(name, answer)
    return given


def _check_names(option: str, names: Any, header: list[str]) -> None:
    for name in names:
        if name not in header:
            raise InvalidParameterError(
                f"{option} must name a column, got {shown(name)}; {nearest_column(name, header)}."
            )


def _asked(name: str) -> Any:
    """Return the kind that a person writes for a column; asked again until it can be read."""
    while True:
        print(f"{name}: {HELP}\n{name}? ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise InvalidParameterError(f"{name} must have a kind, got the end of the input; write one.")
        try:
            return _kind(name, line)
        except InvalidDomainError as error:
            print(error, file=sys.stderr)


def _kind(name: str, answer: str) -> Any:
    """Return the JSON form of a kind as a person writes it; None to leave the column out."""
    answer = answer.strip()
    if answer == "skip":
        return None
    if answer[:1] in ("{", "["):
        try:
            kind = json.loads(answer)
        except (ValueError, RecursionError):  # an integer of thousands of digits is another ValueError
            raise InvalidDomainError(
                f"{name} must be valid JSON, got {shown(answer)}; write {HELP}."
            ) from None
    else:
        kind = _written(name, answer)
    Domain.from_json(json.dumps({name: kind}))  # refused here, by name
    return kind


def _written(name: str, answer: str) -> dict[str, Any]:
    form, *flags = (part.strip() for part in answer.split(";"))
    word, _, rest = form.partition(" ")
    parts = rest.split()
    early = [part for part in form.split() if part in ("optional", *FLAGS)]
    if early and word not in ("labels", "boolean"):  # whose own words these may be
        kept = " ".join(part for part in form.split() if part not in early)
        raise InvalidDomainError(
            f"{name} must have ';' before {shown(early[0])}, got {shown(answer)}; write "
            f"{'; '.join([kept, *early, *flags])}."
        )
    kind: dict[str, Any] = {}
    if word == "range" and len(parts) == 2:
        kind = {"range": [_number(part) for part in parts]}
    elif word == "number" and len(parts) in (2, 3):
        low, high, *bins = map(_number, parts)
        try:
            declared = number(low, high, bins=bins[0] if bins else None)
            kind = json.loads(Domain.of({name: declared}).to_json())[name]
        except (InvalidDomainError, InvalidParameterError) as error:
            raise InvalidDomainError(f"{name}: {error}") from None
    elif word == "bins" and len(parts) > 1:
        kind = {"edges": [part if part in ("inf", "-inf") else _number(part) for part in parts]}
    elif word == "dates" and len(parts) in (2, 3):
        kind = {"dates": parts[:2], "by": parts[2] if len(parts) == 3 else "day"}
    elif word == "boolean" and len(parts) in (0, 2):
        words = [_number(part) for part in parts]
        kind = json.loads(Domain.of({name: boolean(*words)}).to_json())[name]
    elif word == "labels" and rest:
        labels = [label.strip() for label in rest.split(",")]
        if len(labels) == 1 and " " in labels[0]:
            raise InvalidDomainError(
                f"{name} must have labels with commas between them, got the one label {shown(labels[0])}; "
                f"write labels {', '.join(labels[0].split())}, or if it is one label "
                f"{json.dumps({'labels': labels})}."
            )
        kind = {"labels": labels}
    else:
        raise InvalidDomainError(f"{name} must have a kind, got {shown(answer)}; write {HELP}.")
    for flag in flags:
        word, _, rest = flag.partition(" ")
        if word == "optional" and not rest:
            kind.setdefault("missing", True)
        elif word == "missing" and rest:
            kind["missing"] = [text.strip() for text in rest.split(",")]
        elif word in FLAGS and not rest:
            kind[FLAGS[word]] = True
        elif word in ("others", "zone", "clock", "epoch") and rest:
            kind[word] = rest.strip()
        elif word in LISTED and rest:
            kind.setdefault(LISTED[word], []).append(rest.strip())
        else:
            raise InvalidDomainError(
                f"{name} must have words after ';' that are known, got {shown(flag)}; write {HELP}."
            )
    return kind


def _number(text: str) -> Any:
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        return text  # refused by the domain


def _from_rows(path: str, form: CsvFormat, names: list[str]) -> Mapping[str, Any]:
    """Return kinds of what stands in the columns, marked as such. NOT PRIVATE."""
    if not names:
        return {}
    found: dict[str, set[str]] = {name: set() for name in names}
    held = frame_columns(path, names) if is_parquet(path) else file_columns(path)
    if held is not None:
        found = {name: {"" if value is None else str(value) for value in held[name]} for name in names}
        return {name: _seen(name, texts, form) for name, texts in found.items()}
    try:
        with form.open(path) as file:
            header, reader = form.headed(file)
            places = {name: header.index(name) for name in names}
            for row in reader:
                if row and len(row) != len(header):
                    raise InvalidDataError(
                        "every line must have as many fields as the header, got another number; correct the "
                        "file."
                    )
                for name in names if row else ():
                    found[name].add(row[places[name]])
    except UnicodeError:
        raise InvalidDataError(f"{unreadable(form)}.") from None
    except csv.Error:
        raise InvalidDataError(f"{unquoted()}.") from None
    return {name: _seen(name, texts, form) for name, texts in found.items()}


def _seen(name: str, texts: set[str], form: CsvFormat) -> dict[str, Any]:
    gaps = texts & {"", *form.missing}
    missing = {"missing": sorted(gaps - {""}) or True} if gaps else {}
    texts = texts - gaps
    many = len(texts) >= RANGE_FROM
    ways = [way for way in proposals(sorted(texts)) if many or not _may_be_labels(way)]
    plain = next((way for way in ways if way.plain), None)
    declared = [way for way in ways if not way.plain]
    if plain is not None or len(ways) == 1:
        kind = kind_of(plain or ways[0])
        if declared and plain is not None:
            others = " or ".join(way.said for way in declared)
            print(f"{name}: read as it stands; it may be meant as {others}.", file=sys.stderr)
    elif declared:
        said = " and ".join(way.said for way in declared)
        raise InvalidDomainError(
            f"{name} must be read in one way, got texts that fit {said}; write "
            f"--attribute '{name}=..; {_worded(declared[0])}', or another."
        )
    elif not 0 < len(texts) <= MOST_LABELS:
        raise InvalidDomainError(
            f"{name} must have 1 to {MOST_LABELS:,} labels to be taken from rows, got "
            f"{'more' if texts else 'none'}; write --attribute '{name}=bins ..' or '{name}=skip'."
        )
    else:
        kind = {"labels": sorted(texts)}
    return {**kind, **missing, FROM_ROWS: LOUD}


def _may_be_labels(way: Proposal) -> bool:
    """Return whether few texts that are read so may be labels as well: codes, or numbers with a word."""
    forms = way.options.get("written", [])
    return way.plain or way.what == "epoch" or any(letter.isalpha() for form in forms for letter in form)


def _worded(way: Proposal) -> str:
    """Return what to write after ';' for a way to read texts."""
    words = {name: word for word, name in LISTED.items()}
    each = ((words.get(key, key), value) for key, value in way.options.items())
    return "; ".join(
        f"{word} {one}" for word, value in each for one in (value if isinstance(value, list) else [value])
    )


def _public(kind: Any) -> Any:
    """Return a kind without its mark: who drafts has been told."""
    return {key: value for key, value in kind.items() if key != FROM_ROWS} if isinstance(kind, dict) else kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `onlineic domain` takes."""
    parser.description = (
        "The public universe of a table's values, written by a person who knows their meaning."
    )
    parser.set_defaults(run=_draft)
    draft = parser.add_subparsers(required=True, metavar="{draft}").add_parser(
        "draft",
        allow_abbrev=False,
        help="ask for the kind of every column, and write the domain file",
        description="Of the table the header line alone is read. On a terminal the kind of every column is "
        f"asked: {HELP}. A kind may be written in JSON too, as in the domain file.",
    )
    draft.add_argument("file", metavar="FILE", help="the table: CSV or Parquet")
    draft.add_argument("--out", metavar="NEW", help="a new domain file; default standard output")
    draft.add_argument(
        "--attribute",
        action="append",
        default=[],
        metavar="NAME=KIND",
        help="kind of a column, not asked for",
    )
    draft.add_argument(
        "--from-rows",
        action="extend",  # said again for more, as --attribute and --missing are
        nargs="*",
        metavar="NAME",
        help="NOT PRIVATE: take the labels of these columns (none: of all others) from the rows, marked",
    )
    add_form(draft)
