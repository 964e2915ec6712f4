"""Tables of other libraries: read once, where they lie, into codes.

PRIVATE. What is read, and how, follows from the domain and from the kind of the table, never from its
records. A table that another engine holds (a file, a database, a cluster) is counted there by one GROUP BY,
if the domain has few cells. Otherwise its rows come by once, and only their codes are kept.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from onlineic._typing import Ints
from onlineic.data import relations
from onlineic.data.coding import Batch, coded, integers
from onlineic.data.columns import of_any, of_arrow, of_pandas, of_polars
from onlineic.data.files import is_regular, opened
from onlineic.data.persons import Parted
from onlineic.data.pieces import MISSING, NAN, NEGATIVE, POSITIVE, Pieces, by_days, pieces
from onlineic.data.rows import Column
from onlineic.domain.domain import Domain, nearest_column, persons_of_column
from onlineic.errors import (
    InvalidDataError,
    InvalidParameterError,
    MissingExtraError,
    shown,
)

GROUPED = 2**20  # cells up to which the engine that has the rows counts them
ROWS = 2**20  # that are coded together
# Their GROUP BY tells all values apart that `encode` does; of the others, collations are not known.
COUNTING = ("duckdb", "polars", "pyspark")

Loaded = tuple[list[Column], Ints | None, str]  # codes, records of every row, and how they were read


def read_frame(table: Any, domain: Domain | Parted) -> Loaded:
    """Return the codes of a table's rows or groups, how many records each is, and how that was done.

    Raises:
        InvalidParameterError: If this is neither a table nor the path of a Parquet file.
        InvalidDataError: If a column is absent or there twice, or a value lies outside the domain.
        MissingExtraError: If the extra `frames`, or a reader of Parquet files, is not installed.
    """
    frame, names = opened_frame(table)
    check_columns(names, domain, index=getattr(getattr(table, "index", None), "names", ()))
    check_flat(frame, domain)
    engine = str(frame.implementation)
    if not hasattr(frame, "collect"):
        return *coded(
            _in_memory(frame, domain.columns), domain
        ), f"read from memory, column by column ({engine})"
    if engine in COUNTING and domain.size <= GROUPED:
        return *coded(groups(frame, engine, domain), domain), grouped(engine, domain)
    return *coded(_streamed(frame, engine, domain), domain), streamed(engine, domain)


def is_cluster(table: Any, domain: Domain) -> bool:
    """Return whether a table of this domain is one of a cluster, and too wide for one GROUP BY."""
    return domain.size > GROUPED and type(table).__module__.startswith("pyspark.")


def frame_columns(table: Any, names: Iterable[str]) -> dict[str, list[Any]]:
    """Return the values of those of the named columns that a table has, for a report on all of them.

    Raises:
        InvalidParameterError, InvalidDataError, MissingExtraError: As `read_frame`, but for what a report
            tells.
    """
    frame, known = opened_frame(table)
    columns: dict[str, list[Any]] = {name: [] for name in known}  # the others by name alone, for hints
    chosen = [name for name in names if name in columns]
    if chosen:
        held = _chosen(frame, chosen)
        held = held.collect() if hasattr(held, "collect") else held
        columns |= {name: held[place].to_list() for name, place in zip(chosen, _places(chosen), strict=True)}
    return columns


def opened_frame(table: Any) -> tuple[Any, list[str]]:
    """Return narwhals' view of a table, and the names of its columns."""
    try:
        import narwhals.stable.v2 as nw
        from narwhals.exceptions import DuplicateError
    except ImportError:
        raise MissingExtraError(
            "narwhals must be installed for from_frame; run pip install 'onlineic[frames]'."
        ) from None
    if isinstance(table, (str, os.PathLike)):
        table = _parquet(os.path.abspath(os.fsdecode(table)))  # DuckDB reads "~" and "file:" in its own way
    try:
        frame = nw.from_native(table)
        names = list(frame.collect_schema().names())
    except TypeError:
        raise InvalidParameterError(
            "table must be a data frame, an Arrow table, a DuckDB relation, another table of narwhals, or "
            f"the path of a Parquet file, got a {type(table).__name__}; columns and lists of records go to "
            "from_records, a database connection to from_dbapi."
        ) from None
    except DuplicateError:
        raise InvalidDataError(
            "table must have columns of distinct names, got some twice; rename them."
        ) from None
    return frame, names


def grouped(engine: str, domain: Domain | Parted) -> str:
    """Return the note on a table that its own engine has counted."""
    return f"counted where it lies, by one GROUP BY ({engine}): {domain.size:,} cells are few"


def streamed(engine: str, domain: Domain | Parted) -> str:
    """Return the note on a table whose rows were read one after the other."""
    many = domain.size > GROUPED
    why = f"{domain.size:,} cells are many" if many else f"how {engine} compares text is not known"
    return f"streamed, all rows once, into columns of codes ({engine}): {why}"


def check_columns(names: list[str], domain: Domain | Parted, index: Iterable[Any] = ()) -> None:
    """Raise `InvalidDataError` unless every attribute has one column; the message names the nearest.

    Names of the `index` of a frame of pandas are none of its columns.
    """
    person = domain.unit.person if isinstance(domain, Parted) else None
    for name in dict.fromkeys(domain.columns):
        if names.count(name) != 1:
            what = persons_of_column(person) if name == person else "every attribute"
            remedy = "rename one" if name in names else nearest_column(name, [*map(str, names)])
            if name not in names and name in index:
                remedy = "it is the index, make it a column by table.reset_index()"
            raise InvalidDataError(
                f"table must have one column for {what}, got {names.count(name)} for {name}; {remedy}."
            )


def check_flat(frame: Any, domain: Domain | Parted) -> None:
    """Raise `InvalidDataError` if a column that is read has lists or structures, by its type."""
    for name, kind in frame.collect_schema().items():
        if name in domain.columns and kind.is_nested():
            raise InvalidDataError(
                f"{name} must hold one value a record, got a column of lists or structures; load a column of "
                "single values made of it."
            )


# ---------------------------------------------------------------- files


def is_frame(table: Any) -> bool:
    """Return whether this may be a table of another library, or is the path of a Parquet file."""
    return is_parquet(table) or (callable(getattr(table, "select", None)) and not hasattr(table, "keys"))


def is_parquet(table: Any) -> bool:
    """Return whether this is the path of a Parquet file.

    Raises:
        InvalidParameterError: If it is that of no file.
    """
    if not isinstance(table, (str, os.PathLike)) or not is_regular(table):
        return False
    with opened(table) as file:
        return file.read(4) == b"PAR1"


def _parquet(path: str) -> Any:
    """Return the table of a Parquet file, by the first reader that is installed."""
    if not is_parquet(path):
        raise InvalidParameterError(
            f"table must be the path of a Parquet file, got {shown(path, 200)}, which is none; "
            "a CSV file goes to from_csv."
        )
    try:
        if not {*"*?["} & {*path}:  # DuckDB would look for all files of that pattern
            import duckdb

            # a column of the path's folders is none of the file's
            return duckdb.read_parquet(
                path, hive_partitioning=False
            )  # a connection of its own would be closed too early
    except ImportError:
        pass
    try:
        import polars

        return polars.scan_parquet(path, glob=False)
    except ImportError:
        pass
    try:
        from pyarrow.parquet import read_table

        return read_table(path)
    except ImportError:
        raise MissingExtraError(
            "duckdb, polars or pyarrow must be installed to read a Parquet file; run pip install duckdb."
        ) from None


# ---------------------------------------------------------------- rows


def _places(names: Sequence[Any]) -> list[str]:
    return [f"a{at}" for at in range(len(names))]


def _chosen(frame: Any, names: Sequence[str]) -> Any:
    """Return some columns of a frame, named a0, a1, ..; polars reads "*" and "^b$" as patterns of names."""
    import narwhals.stable.v2 as nw

    places, engine = _places(names), str(frame.implementation)
    if engine == "duckdb":
        return nw.from_native(relations.chosen(frame.to_native(), names))
    if engine == "polars":
        from polars import selectors

        columns = [selectors.by_name(name).alias(place) for name, place in zip(names, places, strict=True)]
        return nw.from_native(frame.to_native().select(columns))
    return frame.select(*(nw.col(name).alias(place) for name, place in zip(names, places, strict=True)))


def _in_memory(frame: Any, names: Sequence[str]) -> Iterator[Batch]:
    read = {"pandas": of_pandas, "polars": of_polars, "pyarrow": of_arrow}.get(
        str(frame.implementation), of_any
    )
    for start in range(0, len(frame), ROWS):
        part = frame[start : start + ROWS]
        yield Batch([read(part[name].to_native()) for name in names], None, len(frame))


def _streamed(frame: Any, engine: str, domain: Domain | Parted) -> Iterator[Batch]:
    """Yield the rows of a table that another engine holds, many at a time if it can hand them out so."""
    if engine == "duckdb":
        yield from relations.rows(frame.to_native(), domain)
        return
    chosen = _chosen(frame, domain.columns)
    table = chosen.to_native()
    if engine == "polars" and hasattr(table, "collect_batches"):
        total = 0
        for part in table.collect_batches(chunk_size=ROWS):
            total += len(part)
            yield Batch([of_polars(column) for column in part.iter_columns()], None, total)
    else:
        yield from _in_memory(chosen.collect(), _places(domain.names))


# ---------------------------------------------------------------- groups


def groups(frame: Any, engine: str, domain: Domain | Parted) -> Iterator[Batch]:
    """Yield the groups of equal records that the engine finds, and the number of all rows, in one run.

    Args:
        frame: Narwhals' view of a table. Every attribute has a column of its name.
    """
    batches: Iterable[list[Any]]
    if engine == "duckdb":
        keyed, cuts = _keyed(frame, engine, domain)
        found = relations.handed_out(_counted(keyed), frame.to_native())
        batches = ([read(column) for column in columns] for columns, read in found)
    elif engine == "polars":
        import polars

        keyed, cuts = _keyed(frame, engine, domain)
        whole = frame.to_native().select(polars.len())
        records, total = polars.collect_all([_counted(keyed), whole])
        batches = [[*map(of_polars, records.iter_columns()), np.full(1, total.item())]]
    else:
        watched, passed = _observed(frame)
        keyed, cuts = _keyed(watched, engine, domain)
        table = _fetched(_counted(keyed))
        batches = [[*map(_read_spark, table.columns), np.full(1, passed.get["total"])]]
    for *columns, counts, total in batches:
        yield Batch(_cut(columns, cuts), integers(counts), int(integers(total)[0]))


def grouping_sets(
    frame: Any, engine: str, domain: Domain, sets: Sequence[tuple[int, ...]]
) -> list[tuple[list[Column], Ints]]:
    """Return the codes and records of the groups over each set of attributes, of DuckDB or Spark: one run.

    Args:
        frame: Narwhals' view of a table.
        engine: "duckdb" or "pyspark".
        sets: Rising places in the domain.
    """
    used = sorted({axis for axes in sets for axis in axes})
    part = domain.project(*(domain.names[axis] for axis in used))
    places = [[used.index(axis) for axis in axes] for axes in sets]
    found: Iterable[tuple[list[Any], Any]]
    if engine == "duckdb":
        keyed, cuts = _keyed(frame, engine, part)
        every = ", ".join(_places(used))
        named = ", ".join(f"({', '.join(f'a{place}' for place in held)})" for held in places)
        records = keyed.to_native().aggregate(
            f"{every}, GROUPING({every}) AS beside, COUNT(*) AS records", f"GROUPING SETS ({named})"
        )
        found = relations.handed_out(records, frame.to_native())
    else:
        import pyarrow
        from pyspark.sql import functions as spark

        watched, passed = _observed(frame)
        keyed, cuts = _keyed(watched, engine, part)
        chosen = [[f"a{place}" for place in held] for held in places]
        grouped = keyed.to_native().groupingSets(chosen, *_places(used))
        counts = spark.grouping_id().alias("beside"), spark.count(spark.lit(1)).alias("records")
        table = _fetched(grouped.agg(*counts)).combine_chunks()
        total = pyarrow.array(np.full(len(table), passed.get["total"], np.int64))
        found = [([*table.columns, total], _read_spark)]
    return _of_sets(found, part, places, cuts)


def _of_sets(
    found: Iterable[tuple[list[Any], Any]],
    domain: Domain,
    sets: Sequence[Sequence[int]],
    cuts: Sequence[Pieces | None],
) -> list[tuple[list[Column], Ints]]:
    """Return the codes and records of the groups over each set, from the groups over all of them.

    With the columns comes which attributes a group does not tell apart, the first one the highest bit.
    """
    last = len(domain.names) - 1
    marks = [2 ** (last + 1) - 1 - sum(1 << (last - place) for place in held) for held in sets]
    batches: list[list[Batch]] = [[] for _ in sets]
    for (*columns, beside, records, total), read in found:
        grouped = integers(read(beside))
        for held, mark, of_set in zip(sets, marks, batches, strict=True):
            rows = np.flatnonzero(grouped == mark)
            if len(rows):
                values = _cut([read(columns[place], rows) for place in held], [cuts[place] for place in held])
                counts, n = (integers(read(column, rows)) for column in (records, total))
                of_set.append(Batch(values, counts, int(n[0])))
    result = []
    for held, of_set in zip(sets, batches, strict=True):
        codes, weights = coded(of_set, domain.project(*(domain.names[place] for place in held)))
        result.append((codes, np.zeros(0, np.int64) if weights is None else weights))
    return result


def _observed(frame: Any) -> tuple[Any, Any]:
    """Return a Spark frame whose rows are counted on their way into the groups, and what counts them."""
    import narwhals.stable.v2 as nw
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    passed = Observation()
    return nw.from_native(frame.to_native().observe(passed, count(lit(1)).alias("total"))), passed


def _fetched(frame: Any) -> Any:
    """Return a Spark frame as an Arrow table."""
    import narwhals.stable.v2 as nw

    return nw.from_native(frame).collect(backend="pyarrow").to_native()


def _counted(keyed: Any) -> Any:
    """Return the groups of equal rows, and how many each has, as the engine's own table."""
    import narwhals.stable.v2 as nw

    names = keyed.collect_schema().names()
    return keyed.group_by(*names).agg(nw.len().alias("records")).select(*names, "records").to_native()


def _keyed(frame: Any, engine: str, domain: Domain | Parted) -> tuple[Any, list[Pieces | None]]:
    """Return what to group by for every attribute, named a0, a1, .., and the pieces of those that are cut."""
    import narwhals.stable.v2 as nw

    chosen, names = _chosen(frame, domain.columns), _places(domain.columns)
    schema = chosen.collect_schema()
    keys: list[Any] = []
    cuts: list[Pieces | None] = []
    for name, kind in zip(names, domain.attributes, strict=True):
        column, dtype = nw.col(name), schema[name]
        whole = dtype in (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32)
        cut = pieces(kind, whole=whole) if whole or dtype.is_float() else None
        if cut is not None:
            column = _piece(column, cut, dtype.is_float(), engine)
        elif (
            dtype == nw.String and engine == "pyspark"
        ):  # a column may have another collation, of which 'a' is 'A'
            column = column.cast(nw.Binary)
        elif dtype == nw.Datetime and dtype.time_zone is None and dtype.time_unit != "ms" and by_days(kind):
            column = column.dt.date()  # else every row would be a group; no day of some ms is a date
        keys.append(column.alias(name))
        cuts.append(cut)
    return chosen.select(*keys), cuts


def _piece(column: Any, cut: Pieces, is_float: bool, engine: str) -> Any:
    """Return the expression of the piece of a number; missing is asked first, else it would fall through."""
    import narwhals.stable.v2 as nw

    number = column.cast(nw.Float64)
    code = cut.tree(
        lambda edge: number < edge, lambda test, yes, no: nw.when(test).then(yes).otherwise(no), nw.lit
    )
    if is_float:
        # DuckDB's isnan() is never true in a file whose statistics, without NaN, hold one number alone
        is_nan = number.cast(nw.String).str.contains("nan") if engine == "duckdb" else number.is_nan()
        for test, piece in ((number == -np.inf, NEGATIVE), (number == np.inf, POSITIVE), (is_nan, NAN)):
            code = nw.when(test).then(nw.lit(piece)).otherwise(code)
    return nw.when(column.is_null()).then(nw.lit(MISSING)).otherwise(code)


def _cut(columns: Sequence[Any], cuts: Sequence[Pieces | None]) -> list[Any]:
    """Return columns with pieces of numbers as the values that stand for them."""
    return [
        column if cut is None else cut.places(integers(column))
        for column, cut in zip(columns, cuts, strict=True)
    ]


def _read_spark(column: Any, rows: Ints | None = None) -> Any:
    """Return a column of Spark's groups, or some rows of it, with text that came as bytes."""
    import pyarrow

    binary = pyarrow.types.is_binary(column.type)
    return relations.read_arrow(column.cast(pyarrow.string()) if binary else column, rows)
