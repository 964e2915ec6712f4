"""Public test tables and streams of queries over them. The files lie outside of the project.

The folder of data is `ONLINEIC_DATA`, else `../shared/data` beside the checkout; `workloads/` lies beside it.
"""

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import onlineic as ic
from onlineic.datasets import adult5
from onlineic.evaluate import exact_values
from onlineic.queries import Partition, Query


class MissingDataError(Exception):
    """A file that an experiment needs is not there."""


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


def external(*parts: str) -> Path:
    """Return the path of an external file, or raise `MissingDataError`; "workloads" lies beside the data."""
    named = os.environ.get("ONLINEIC_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
    path = (folder.parent if parts[0] == "workloads" else folder).joinpath(*parts)
    if not path.is_file():
        raise MissingDataError(f"no file {'/'.join(parts)}: set ONLINEIC_DATA to the folder of external data")
    return path


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


def adult_workload(name: str, most: int | None = None) -> Stream:
    """Return the stream of a JSON workload over Adult, its first `most` queries."""
    workload = json.loads(external("workloads", f"{name}.json").read_text())
    ordered = set(workload["ordered"])
    domain = ic.Domain.of(
        {
            key: range(size) if key in ordered else list(range(size))
            for key, size in workload["domain"].items()
        }
    )
    with external(*workload["data"].split("/")).open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    columns = {key: [int(row[key]) for row in rows] for key in workload["domain"]}
    expressions = [
        ic.where({key: ic.between(*ends) if key in ordered else ends[0] for key, ends in query.items()})
        for query in workload["queries"][:most]
    ]
    return stream_of(name, ic.PrivateData.from_records(columns, domain), expressions)


def nltcs() -> ic.PrivateData:
    """Return the National Long Term Care Survey: 16 binary attributes."""
    with external("nltcs", "nltcs.csv").open(newline="") as stream:
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
    """Return a histogram of DPBench: one ordered attribute of 4,096 values."""
    counts = np.load(external("dpbench1d", f"{name}.npy"), allow_pickle=False)
    return ic.PrivateData(counts, ic.Domain.of(x=range(counts.size)))


@attrs.frozen(eq=False)
class Covid:
    """The file of the Turbo comparison: counts, 0/1 masks by attribute, and the stream of row numbers."""

    counts: np.ndarray
    shape: tuple[int, ...]
    masks: np.ndarray
    stream: np.ndarray

    def supports(self) -> np.ndarray:
        """Return which cells each query holds, bool (queries, cells)."""
        parts = np.split(self.masks, np.cumsum(self.shape)[:-1], axis=1)
        cells = np.ones((len(self.masks), 1), bool)
        for part in parts:
            cells = (cells[:, :, None] & part[:, None, :]).reshape(len(self.masks), -1)
        return cells

    def asked(self, label: str, most: int | None = None) -> Stream:
        """Return the stream as queries of the library."""
        names = ("positive", "gender", "age", "ethnicity")
        domain = ic.Domain.of({name: list(range(size)) for name, size in zip(names, self.shape, strict=True)})
        data = ic.PrivateData(self.counts, domain)
        order = self.stream[:most]
        queries = {}
        for row in np.unique(order).tolist():
            parts = np.split(self.masks[row], np.cumsum(self.shape)[:-1])
            held = {
                name: ic.one_of(*np.flatnonzero(part).tolist())
                for name, part in zip(names, parts, strict=True)
                if not part.all()
            }
            queries[row] = ic.where(held).bind(domain)
        ids = list(queries)
        place = {row: index for index, row in enumerate(ids)}
        values = exact_values(data, [queries[row] for row in ids])
        rows = order.tolist()
        return Stream(label, data, [queries[row] for row in rows], values[[place[row] for row in rows]])


def covid(name: str) -> Covid:
    """Return a workload file of the Turbo comparison, such as covid128_z0."""
    with np.load(external("covid", f"{name}.npz"), allow_pickle=False) as held:
        return Covid(held["hist"], tuple(held["shape"].tolist()), held["masks"], held["stream"])
