"""Random records and edges: engines that count for themselves find what numpy finds in the same records."""

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineic.data import PrivateData
from onlineic.domain import Domain, binned, optional
from onlineic.queries import Partition
from support.sources import LOADERS

ENGINES = ("polars_lazy", "duckdb_table", "duckdb_parquet", "sqlite")
LABELS = ["a", "A", "ä", "Ä", "a ", " a", "", "a'b", 'a"b', "0", "None", "nan"]

doubles = st.floats(allow_nan=False, width=64)
edges = st.lists(doubles, min_size=2, max_size=12, unique_by=lambda edge: edge + 0.0).map(sorted)


@st.composite
def tables(draw):
    """A domain whose bins take every number, and records close to the edges."""
    inner = draw(edges)
    domain = Domain.of(
        number=optional(binned(inner, clip=True)),
        label=optional(LABELS),
        whole=binned(
            sorted({float(round(edge)) for edge in inner if abs(edge) < 1e15} | {0.0, 1.0}),
            integer=True,
            clip=True,
        ),
    )
    close = st.sampled_from(inner).flatmap(
        lambda edge: st.sampled_from([edge, math.nextafter(edge, -math.inf), math.nextafter(edge, math.inf)])
    )
    number = st.one_of(close, doubles, st.sampled_from([None, math.nan, -0.0, math.inf, -math.inf]))
    row = st.tuples(number, st.sampled_from([*LABELS, None]), st.integers(-(2**62), 2**62))
    rows = draw(st.lists(row, min_size=1, max_size=30))
    names = draw(st.sets(st.sampled_from(domain.names), min_size=1))  # alone, nothing else keeps values apart
    columns = dict(zip(domain.names, map(list, zip(*rows, strict=True)), strict=True))
    return domain.project(*names), {name: columns[name] for name in names}


def cells(data):
    classes = tuple(np.arange(size) for size in data.domain.shape)
    return data.exact_counts(Partition(data.domain, tuple(range(len(classes))), classes)).tolist()


@pytest.mark.parametrize("source", ENGINES)
@settings(max_examples=25)
@given(table=tables())
def test_engines_count_what_numpy_counts(source, table):
    domain, columns = table
    with tempfile.TemporaryDirectory() as folder:
        data = LOADERS[source](columns, domain, Path(folder))

    assert "GROUP BY" in data.loading
    assert cells(PrivateData.from_records(columns, domain)) == cells(data)
