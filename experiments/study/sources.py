"""Public test tables, shipped, made or fetched, and streams of queries over them.

A table that is fetched lies in `../shared/data` beside the checkout, if there is one, else where
`python -m onlineic.datasets fetch` puts it; `ONLINEIC_DATA` names another folder. Streams over it ship.
"""

import csv
import gzip
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs
import numpy as np

import onlineic as ic
from onlineic.datasets import adult5, find
from onlineic.errors import MissingDataError
from onlineic.evaluate import exact_values, random_stream
from onlineic.queries import Partition, Query

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


@attrs.frozen(eq=False)
class Stream:
    """Queries in order over one table, with their exact answers as fractions."""

    label: str
    data: ic.PrivateData
    queries: Sequence[Query]
    truths: np.ndarray

    @property
    def sets(self) -> list[list[str]]:
        """Attribute sets of the queries, as names."""
        names = self.data.domain.names
        return [[names[axis] for axis in axes] for axes in sorted({q.axes for q in self.queries if q.axes})]


def fetched(name: str) -> Path:
    """Return the file of a table of `onlineic.datasets.CATALOGUE`, or raise `MissingDataError`."""
    beside = ROOT.parent / "shared" / "data"
    if not os.environ.get("ONLINEIC_DATA") and beside.is_dir():
        try:
            return find(name, beside)
        except MissingDataError:
            pass
    return find(name)


def present(makers: Mapping[str, Callable[[], T]], absent: list[str]) -> Iterator[T]:
    """Yield what every maker returns, one at a time; where a table is missing, say so and note it."""
    for label, make in makers.items():
        try:
            made = make()
        except MissingDataError as missing:
            absent.append(label)
            print(f"{label}: absent, {missing}", flush=True)
        else:
            yield made


def first(makers: Mapping[str, Callable[[], T]], absent: list[str]) -> T:
    """Return what the first maker returns whose table is there; the last one needs none."""
    missing: list[str] = []
    made = next(present(makers, missing))
    stand_in = list(makers)[len(missing)]
    absent += [f"{label} ({stand_in} instead)" for label in missing]
    return made


def stream_of(label: str, data: ic.PrivateData, expressions: Sequence[Any]) -> Stream:
    """Bind every expression once and add the exact answers."""
    queries = [expression.bind(data.domain) for expression in expressions]
    return Stream(label, data, queries, exact_values(data, queries))


def subsample(counts: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return counts of a sample without replacement."""
    return np.random.default_rng(seed).multivariate_hypergeometric(counts, size, method="marginals")


def whole(domain: ic.Domain) -> Partition:
    """Return the partition into single cells."""
    return Partition(domain, tuple(range(len(domain.shape))), tuple(map(np.arange, domain.shape)))


def adult5_data() -> ic.PrivateData:
    """Return the table that the package ships."""
    columns, counts = adult5()
    labels = {name: sorted(set(columns[name].tolist())) for name in ("race", "sex", "income")}
    domain = ic.Domain.of(age=range(17, 91), education_num=range(1, 17), **labels)
    return ic.PrivateData.from_counts(columns, counts, domain)


def adult5_ranges(size: int, seed: int) -> Stream:
    """Return random ranges and points over the table that the package ships."""
    data = adult5_data()
    return stream_of("adult5, ranges", data, random_stream(data.domain, size, seed))


def adult_rows() -> list[dict[str, str]]:
    """Return the records of Adult as integer codes, those of its training part first."""
    with fetched("adult").open(newline="") as stream:
        return list(csv.DictReader(stream))


def adult_workload(name: str, most: int | None = None) -> Stream:
    """Return the stream of a workload that ships, over Adult, its first `most` queries."""
    rows = adult_rows()
    packed = (ROOT / "experiments" / "workloads" / f"{name}.json.gz").read_bytes()
    workload = json.loads(gzip.decompress(packed))
    ordered = set(workload["ordered"])
    domain = ic.Domain.of(
        {
            key: range(size) if key in ordered else list(range(size))
            for key, size in workload["domain"].items()
        }
    )
    columns = {key: [int(row[key]) for row in rows] for key in workload["domain"]}
    expressions = [
        ic.where({key: ic.between(*ends) if key in ordered else ends[0] for key, ends in query.items()})
        for query in workload["queries"][:most]
    ]
    return stream_of(name, ic.PrivateData.from_records(columns, domain), expressions)


def nltcs() -> ic.PrivateData:
    """Return the National Long Term Care Survey: 16 binary attributes."""
    with fetched("nltcs").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    return ic.PrivateData.from_records(
        {key: [int(row[key]) for row in rows] for key in rows[0]},
        ic.Domain.of({key: [0, 1] for key in rows[0]}),
    )


def conjunctions(domain: ic.Domain, size: int, ways: int, seed: int) -> list[Any]:
    """Return random conjunctions of single labels over 1 to `ways` attributes."""
    generator = np.random.default_rng(seed)
    result = []
    for _ in range(size):
        count = int(generator.integers(1, ways + 1))
        axes = generator.choice(len(domain.names), count, replace=False)
        result.append(
            ic.where(
                {
                    domain.names[axis]: domain.attributes[axis].label(int(generator.integers(size_of)))
                    for axis in axes
                    for size_of in (domain.attributes[axis].size,)
                }
            )
        )
    return result


def one_dimensional(name: str) -> ic.PrivateData:
    """Return a histogram of DPBench (hepth, salaries, ..): one ordered attribute of 4,096 values."""
    counts = np.load(fetched(name), allow_pickle=False)
    return ic.PrivateData(counts, ic.Domain.of(x=range(counts.size)))


@attrs.frozen(eq=False)
class Masked:
    """A table and a stream of conjunctions of sets: counts, 0/1 masks by attribute, stream of row numbers."""

    counts: np.ndarray
    shape: tuple[int, ...]
    masks: np.ndarray
    stream: np.ndarray
    names: tuple[str, ...]

    def supports(self) -> np.ndarray:
        """Return which cells each query holds, bool (queries, cells)."""
        parts = np.split(self.masks, np.cumsum(self.shape)[:-1], axis=1)
        cells = np.ones((len(self.masks), 1), bool)
        for part in parts:
            cells = (cells[:, :, None] & part[:, None, :]).reshape(len(self.masks), -1)
        return cells

    def asked(self, label: str, most: int | None = None) -> Stream:
        """Return the stream as queries of the library."""
        sizes = zip(self.names, self.shape, strict=True)
        domain = ic.Domain.of({name: list(range(size)) for name, size in sizes})
        data = ic.PrivateData(self.counts, domain)
        order = self.stream[:most]
        queries = {}
        for row in np.unique(order).tolist():
            parts = np.split(self.masks[row], np.cumsum(self.shape)[:-1])
            held = {
                name: ic.one_of(*np.flatnonzero(part).tolist())
                for name, part in zip(self.names, parts, strict=True)
                if not part.all()
            }
            queries[row] = ic.where(held).bind(domain)
        ids = list(queries)
        place = {row: index for index, row in enumerate(ids)}
        values = exact_values(data, [queries[row] for row in ids])
        rows = order.tolist()
        return Stream(label, data, [queries[row] for row in rows], values[[place[row] for row in rows]])


COVID_SHAPE = (2, 2, 4, 8)  # male first
COVID_NAMES = ("positive", "gender", "age", "ethnicity")
# Percent by gender, age and ethnicity: of the population, as the generator of columbia/turbo-artifact has
# them, and of those tested positive, means over all days of the Californian totals that it reads.
CENSUS = ((50, 50), (22.4, 31.2, 31.2, 15.2), (0.2, 15.0, 40.2, 4.2, 0.4, 0.6, 34.3, 5.3))
POSITIVE = ((48.2, 50.6), (12.6, 57.1, 19.1, 11.2), (0.3, 7.2, 54.3, 1.3, 0.6, 10.6, 20.9, 4.7))
COVID_SHA256 = {  # of counts, masks and stream
    0: "36f3dde701699c931250b6e0da27d5d78835c7541cb0b1ce52bc82542400f8e1",
    1: "3c57929d1a2e50158ecc234ffb1bee638856e103492a64f1ffd7662924cda78a",
}


def covid(exponent: int) -> Masked:
    """Return the Covid-like table and stream of the Turbo comparison, made from a seed.

    Counts of 50,000 records, 6 % positive (an assumption), with independent attributes given the result; then
    70,000 conjunctions of value sets out of all 34,425 in random order, by Zipf's law with this exponent.
    """
    generator, parts = np.random.default_rng(0), []
    for share, percent in ((0.94, CENSUS), (0.06, POSITIVE)):
        gender, age, ethnicity = (np.array(some) / np.sum(some) for some in percent)
        parts.append(share * np.einsum("i,j,k->ijk", gender, age, ethnicity))
    weights = np.stack(parts).ravel()
    counts = generator.multinomial(50_000, weights / weights.sum())
    sets = [(np.arange(1, 1 << size)[:, None] >> np.arange(size) & 1).astype(bool) for size in COVID_SHAPE]
    places = np.indices([len(some) for some in sets]).reshape(len(sets), -1)
    pool = np.hstack([some[place] for some, place in zip(sets, places, strict=True)])
    pool = pool[generator.permutation(len(pool))]
    law = 1.0 / np.arange(1, len(pool) + 1) ** exponent
    asked, stream = np.unique(generator.choice(len(pool), 70_000, p=law / law.sum()), return_inverse=True)
    made = Masked(counts, COVID_SHAPE, pool[asked], stream.astype(np.int32), COVID_NAMES)
    digest = hashlib.sha256(b"".join(one.tobytes() for one in (made.counts, made.masks, made.stream)))
    if digest.hexdigest() != COVID_SHA256[exponent]:
        raise MissingDataError(f"this numpy draws other counts and streams, sha256 {digest.hexdigest()}")
    return made


def mixture() -> Masked:
    """Return a mixture of eight product laws over 17 binary attributes, which ships: pairs do not hold it.

    300,000 records, and 20,000 conjunctions of three literals, 5,286 of them different.
    """
    packed = gzip.decompress((ROOT / "experiments" / "workloads" / "bin17.npz.gz").read_bytes())
    with np.load(io.BytesIO(packed), allow_pickle=False) as held:
        shape = tuple(held["shape"].tolist())
        names = tuple(f"b{place}" for place in range(len(shape)))
        return Masked(held["hist"].reshape(shape), shape, held["masks"], held["stream"], names)
