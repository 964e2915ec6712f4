"""A table as people hand it over: 14 columns, dates, floats, unknown labels, missing values, stray blanks.

`first_domain` is what one would write who has not met the dirt, `domain` takes all of it.
"""

import csv
import datetime

import numpy as np

import onlineic as ic

ROWS = 20_000
HEADER = [
    "id", "joined", "last seen", "age", "sex", "region", "income", "hours", "score", "smoker", "education",
    "note", "status", "children",
]  # fmt: skip


def columns(rows=ROWS, seed=5):
    """Return the clean columns and, beside them, the texts of the file."""
    rng = np.random.default_rng(seed)
    day = datetime.date(2021, 1, 1)
    texts = {
        "id": [str(number) for number in range(rows)],
        "joined": [(day + datetime.timedelta(days=int(d))).isoformat() for d in rng.integers(0, 1400, rows)],
        "last seen": [
            f"2024-{m:02}-{d:02} {h:02}:15:00" for m, d, h in rng.integers([1, 1, 0], [13, 29, 24], (rows, 3))
        ],
        "age": [str(age) for age in rng.integers(18, 91, rows)],
        "sex": rng.choice(["F", "M"], rows).tolist(),
        "region": rng.choice(["North", "South", "East", "West"], rows, p=[0.4, 0.3, 0.2, 0.1]).tolist(),
        "income": [f"{x:.2f}" for x in rng.gamma(2, 15_000, rows)],
        "hours": [str(min(int(h), 99)) for h in rng.gamma(20, 2, rows)],
        "score": [f"{x:.3f}" for x in rng.random(rows)],
        "smoker": rng.choice(["true", "false"], rows).tolist(),
        "education": [str(e) for e in rng.integers(1, 17, rows)],
        "note": ["ok"] * rows,
        "status": rng.choice(["single", "married", "widowed"], rows).tolist(),
        "children": [str(c) for c in rng.integers(0, 5, rows)],
    }
    dirt = {
        "joined": ["", "n/a", "2020-12-31"],
        "age": ["", "17", "104", "41.0"],
        "sex": ["male", "f", "?", ""],
        "region": ["north", "Overseas", "Wset"],
        "income": ["", "inf", "-1", "NA"],
        "hours": ["100", "", "37.5"],
        "score": ["nan", "1.0"],
        "smoker": ["yes", "TRUE", "0"],
        "education": ["17", "none"],
        "note": ["two\nlines", 'he said "no"', "a, b"],
        "status": ["divorced", " married"],
        "children": ["5", "12", "x"],
    }
    for name, values in dirt.items():
        for value in values:
            for row in rng.integers(0, rows, max(1, rows // 2000)).tolist():
                texts[name][row] = value
    return texts


def write(folder, name="survey.csv", rows=ROWS, seed=5):
    """Write the table, with blank lines between some records, and return its path."""
    texts = columns(rows, seed)
    path = folder / name
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for row, values in enumerate(zip(*(texts[name] for name in HEADER), strict=True)):
            writer.writerow(values)
            if row % 5000 == 4999:
                file.write("\n")
    return path


def first_domain():
    """Return the domain as one would write it who has not met the dirt."""
    return ic.Domain.of(
        {
            "joined": ic.dates("2021-01", "2024-12", by="month"),
            "last seen": ic.dates("2024-01-01", "2024-12-31", by="day"),
            "age": range(18, 91),
            "sex": ["F", "M"],
            "region": ["North", "South", "East", "West"],
            "income": ic.binned([0, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000]),
            "hours": range(100),
            "score": ic.binned([0, 0.25, 0.5, 0.75, 1]),
            "smoker": [True, False],
            "education": range(1, 17),
            "status": ["single", "married", "widowed"],
            "children": 5,
        }
    )


def domain():
    """Return the domain that takes every value of the table."""
    return ic.Domain.of(
        {
            "joined": ic.optional(ic.dates("2021-01", "2024-12", by="month", clip=True), ["n/a"]),
            "last seen": ic.dates("2024-01-01", "2024-12-31", by="day"),
            "age": ic.optional(ic.integers(18, 90, clip=True)),
            "sex": ic.optional(ic.categorical(["F", "M"], synonyms={"male": "M", "f": "F"}), ["?"]),
            "region": ic.categorical(
                ["North", "South", "East", "West"], other=True, synonyms={"north": "North", "Wset": "West"}
            ),
            "income": ic.optional(
                ic.binned([0, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000], clip=True), ["NA"]
            ),
            "hours": ic.optional(ic.binned([0, 20, 35, 40, 60, 100], clip=True)),
            "score": ic.optional(ic.binned([0, 0.25, 0.5, 0.75, 1], clip=True)),
            "smoker": ic.categorical([True, False], synonyms={"yes": True}),
            "education": ic.optional(ic.integers(1, 16, clip=True), ["none"]),
            "status": ic.categorical(["single", "married", "widowed"], other=True),
            "children": ic.optional(ic.integers(0, 4, clip=True), ["x"]),
        }
    )
