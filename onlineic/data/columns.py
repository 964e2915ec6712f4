"""Columns of pandas, polars and Arrow, as arrays of numbers or as their distinct values with places.

Values of a typed column are told apart by the library that made it; Python objects one by one, since these
libraries take True for 1. Nothing is converted but missing values, which become NaN or NaT.
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

    if isinstance(series.dtype, pandas.SparseDtype):
        series = series.sparse.to_dense()
    kind = series.dtype
    if isinstance(kind, pandas.ArrowDtype):
        return of_arrow(series.array.__arrow_array__())
    if isinstance(kind, np.dtype) and kind.kind in "iufM":
        return np.asarray(series)
    if pandas.api.types.is_object_dtype(kind):
        return of_any(series)
    if pandas.api.types.is_float_dtype(kind) or (
        pandas.api.types.is_integer_dtype(kind) and not series.hasnans
    ):
        return np.asarray(series.to_numpy(na_value=np.nan, dtype=np.float64 if kind.kind == "f" else None))
    if isinstance(kind, pandas.CategoricalDtype):
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

    kind = series.dtype
    naive = kind == polars.Date or (kind == polars.Datetime and kind.time_zone is None)
    short = kind.is_integer() and not str(kind).endswith("128")
    if kind.is_float() or naive or (short and not series.null_count()):
        return np.asarray(series.to_numpy())  # a null becomes NaN or NaT, missing too
    if kind.is_nested() or kind == polars.Object:
        return of_any(series)
    distinct = series.unique()
    numbers = polars.Series(range(len(distinct)), dtype=polars.UInt32)
    return distinct.to_list(), series.replace_strict(distinct, numbers).to_numpy().astype(np.int64)


def of_arrow(column: Any) -> Column | Places:
    """Return a `pyarrow.Array` or `pyarrow.ChunkedArray`."""
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    kind, types = column.type, pyarrow.types
    naive = types.is_date32(kind) or (types.is_timestamp(kind) and kind.tz is None)
    if types.is_floating(kind) or naive or (types.is_integer(kind) and not column.null_count):
        return np.asarray(column.to_numpy(zero_copy_only=False))  # a null becomes NaN or NaT, missing too
    absent = column.is_null().to_numpy(
        zero_copy_only=False
    )  # kept: of a string view it becomes an empty text
    if not types.is_dictionary(kind):
        try:
            column = column.dictionary_encode()
        except (pyarrow.ArrowNotImplementedError, AttributeError):  # lists and the like
            return of_any(column.to_pylist())
    values = [*column.dictionary.to_pylist(), None]
    if not column.null_count:
        return values, column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    codes = column.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    codes[absent] = len(values) - 1
    return values, codes
