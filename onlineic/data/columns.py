"""Columns of pandas, polars and Arrow, as arrays of numbers or as their distinct values with places.

Values of a typed column are told apart by the library that made it; Python objects one by one, since these
libraries take True for 1. Nothing is converted but missing values among floats, which become NaN.
"""

from typing import Any

import numpy as np

from onlineic.data.coding import Places, places
from onlineic.data.rows import Column


def of_any(column: Any) -> Places:
    """Return a column of values of any kind."""
    return places(list(column))


def of_pandas(series: Any) -> Column | Places:
    """Return a `pandas.Series`."""
    import pandas

    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf":
        return np.asarray(series)
    if series.dtype == object:
        return of_any(series)
    if isinstance(series.dtype, pandas.CategoricalDtype):
        codes, distinct = np.asarray(series.cat.codes, np.int64), series.cat.categories
    else:
        try:
            codes, distinct = series.factorize()
        except (TypeError, NotImplementedError):  # lists and the like
            return of_any(series)
    values = [*distinct, None]
    return values, np.where(codes < 0, len(values) - 1, codes)


def of_polars(series: Any) -> Column | Places:
    """Return a `polars.Series`."""
    import polars

    if series.dtype.is_float() or (series.dtype.is_integer() and not series.null_count()):
        array = np.asarray(series.to_numpy())  # a null among floats becomes NaN, which is missing too
        if array.dtype.kind in "iuf":  # integers of 128 bits have no such array
            return array
    if series.dtype.is_nested() or series.dtype == polars.Object:
        return of_any(series)
    distinct = series.unique()
    numbers = polars.Series(range(len(distinct)), dtype=polars.UInt32)
    return distinct.to_list(), series.replace_strict(distinct, numbers).to_numpy().astype(np.int64)


def of_arrow(column: Any) -> Column | Places:
    """Return a `pyarrow.Array` or `pyarrow.ChunkedArray`."""
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if not column.null_count and (pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if not pyarrow.types.is_dictionary(kind):
        try:
            column = column.dictionary_encode(null_encoding="encode")
        except (pyarrow.ArrowNotImplementedError, AttributeError):  # lists and the like
            return of_any(column.to_pylist())
    values = [*column.dictionary.to_pylist(), None]
    codes = column.indices.fill_null(len(values) - 1) if column.indices.null_count else column.indices
    return values, codes.to_numpy(zero_copy_only=False).astype(np.int64)
