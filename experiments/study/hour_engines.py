"""The rivals of hour.py, in environments of their own, which `make rivals` installs.

    .venv-rivals-sql/bin/python experiments/study/hour_engines.py NAME FOLDER NEIGHBOURS RUNS

Reads a table and its questions, `table.npz` and `asked.json`, and prints as JSON what one rival answers in
every run: a list of cells a question, None where it has none. Each has a twentieth of the budget for each
question, written as the documentation of the package says; domains and group keys are public for all. A
column of 0 and 1 for each rate is added to the table beforehand, row by row.
"""

import json
import sys
import tempfile
import time
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np


class Asked:
    """A table, its questions and what is public about it."""

    def __init__(self, folder):
        facts = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
        self.epsilon, self.delta = facts["budget"]
        self.kinds, self.questions = facts["kinds"], facts["questions"]
        with np.load(folder / "table.npz") as held:
            self.columns = {name: held[name] for name in self.kinds}

    @property
    def n(self):
        return len(next(iter(self.columns.values())))

    def values(self, name):
        """Return the labels or whole numbers of a column."""
        kind = self.kinds[name]
        return kind["labels"] or list(range(int(kind["low"]), int(kind["high"]) + 1))

    def ends(self, name):
        return float(self.kinds[name]["low"]), float(self.kinds[name]["high"])

    def parts(self, condition):
        """Yield column, comparison and value of a condition."""
        for name, value in condition.items():
            if not isinstance(value, list):
                yield name, "=", value
                continue
            low, high = value
            if low is not None:
                yield name, ">=", low
            if high is not None:
                yield name, "<" if self.kinds[name]["bins"] or low is None else "<=", high

    def kept(self, condition):
        found = np.ones(self.n, bool)
        for name, sign, value in self.parts(condition):
            column = self.columns[name]
            if sign == "=":
                found &= column == value
            elif sign == ">=":
                found &= column >= value
            else:
                found &= (column < value) if sign == "<" else (column <= value)
        return found

    def there(self, question):
        """Return which records a mean or a median is over: their value is not missing."""
        found = self.kept(question["condition"])
        return found & ~np.isnan(self.columns[question["of"]]) if question["of"] else found

    def shape(self, question):
        return [len(self.values(name)) for name in question["by"]]

    def place(self, question, keys):
        """Return the place of a group in the table of a question."""
        codes = [self.values(name).index(key) for name, key in zip(question["by"], keys, strict=True)]
        return int(np.ravel_multi_index(codes, self.shape(question)))


def best(cells, k):
    """Return the k largest cells, None in the place of the others; all if k is 0."""
    if not k:
        return [float(cell) for cell in cells]
    told = set(np.argsort([-cell for cell in cells])[:k].tolist())
    return [float(cell) if place in told else None for place, cell in enumerate(cells)]


def ratio(part, whole):
    """Return a rate in per cent, which is no less than 0 and no more than 100."""
    return 100.0 * min(max(part / max(whole, 1.0), 0.0), 1.0)


def diffprivlib(asked, neighbours):
    """A twentieth of epsilon for each question, delta 0; disjoint groups have the whole part each.

    The number of records that a mean or a rate is over is exact here, and decides about its noise.
    """
    from diffprivlib import tools

    share = asked.epsilon / len(asked.questions)

    def run():
        found = []
        for question in asked.questions:
            kind, by, kept = question["kind"], question["by"], asked.there(question)
            if kind == "count":
                found.append([float(tools.count_nonzero(kept, epsilon=share))])
            elif kind == "share":
                held = kept[asked.kept(question["among"])].astype(float)
                found.append([100.0 * float(tools.mean(held, epsilon=share, bounds=(0, 1)))])
            elif kind in ("mean", "median"):
                tool = tools.mean if kind == "mean" else tools.median
                values, ends = asked.columns[question["of"]][kept], asked.ends(question["of"])
                found.append([float(tool(values, epsilon=share, bounds=ends))])
            elif kind in ("shares", "means"):
                values, ends = (kept.astype(float), (0, 1)) if kind == "shares" else (
                    asked.columns[question["of"]], asked.ends(question["of"])
                )  # fmt: skip
                cells, factor = [], 100.0 if kind == "shares" else 1.0
                for label in asked.values(by[0]):
                    group = asked.columns[by[0]] == label
                    group &= kept if kind == "means" else True
                    some = values[group]
                    mean = tools.mean(some, epsilon=share, bounds=ends) if len(some) else np.nan
                    cells.append(None if np.isnan(mean) else factor * float(mean))
                found.append(cells)
            else:
                codes = []
                for name in by:
                    places = {label: place for place, label in enumerate(asked.values(name))}
                    codes.append([places[value] for value in asked.columns[name].tolist()])
                edges = [np.arange(size + 1) - 0.5 for size in asked.shape(question)]
                cells, _ = tools.histogramdd(
                    np.array(codes).T, epsilon=share, bins=edges, range=[(e[0], e[-1]) for e in edges]
                )
                found.append(best(np.ravel(cells), question["k"]))
        return found

    return run


def smartnoise(asked, neighbours):
    """SQL with a twentieth of the budget for each statement, which it counts itself; it has no median."""
    import pandas as pd
    import snsql

    frame = pd.DataFrame({f"c_{name}": column for name, column in asked.columns.items()})
    described = {"row_privacy": True, "censor_dims": False, "clamp_columns": True, "rows": asked.n}
    for name, kind in asked.kinds.items():
        if kind["labels"]:
            described[f"c_{name}"] = {"type": "string"}
        else:
            low, high = asked.ends(name)
            real = bool(kind["bins"])
            described[f"c_{name}"] = {"type": "float" if real else "int"} | (
                {"lower": low, "upper": high} if real else {"lower": int(low), "upper": int(high)}
            )
            if not real:
                frame[f"c_{name}"] = frame[f"c_{name}"].astype(int)
    for place, question in enumerate(asked.questions):
        if question["kind"] in ("share", "shares"):
            frame[f"q_{place}"] = asked.kept(question["condition"]).astype(int)
            described[f"q_{place}"] = {"type": "int", "lower": 0, "upper": 1}
    tables = {"": {"": {"t": described}}}
    many = len(asked.questions)

    def spelled(condition):
        words = [
            f"c_{name} {sign} " + (f"'{value}'" if isinstance(value, str) else str(value))
            for name, sign, value in asked.parts(condition)
        ]
        return f" WHERE {' AND '.join(words)}" if words else ""

    def statement(place, question):
        kind, keys = question["kind"], [f"c_{name}" for name in question["by"]]
        condition = question["among"] if kind == "share" else question["condition"]
        told = {"count": "COUNT(*)", "counts": "COUNT(*)", "top": "COUNT(*)"}.get(kind)
        if kind in ("share", "shares"):
            told, condition = f"SUM(q_{place}) AS s, COUNT(*)", question["among"]
        elif kind in ("mean", "means"):
            told = f"AVG(c_{question['of']})"
        groups = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, told])} AS m FROM t{spelled(condition)}{groups}"

    def reading(epsilon, delta):
        privacy = snsql.Privacy(epsilon=epsilon, delta=delta)
        return snsql.from_df(frame, privacy=privacy, metadata=tables)

    def prepared():
        """Return a reader for each statement, which costs a twentieth: some statements cost several parts."""
        readers = {}
        for place, question in enumerate(asked.questions):
            if question["kind"] == "median":
                continue
            text = statement(place, question)
            cost = reading(1.0, 1e-9).get_privacy_cost(text)[0]
            readers[place] = text, reading(asked.epsilon / many / cost, asked.delta / many / cost)
        return readers

    readers = prepared()

    def run():
        found = []
        for place, question in enumerate(asked.questions):
            if place not in readers:
                found.append([None])
                continue
            text, reader = readers[place]
            rows, kind = reader.execute(text)[1:], question["kind"]
            if kind == "share":
                found.append([ratio(float(rows[0][0]), float(rows[0][1]))])
            elif not question["by"]:
                found.append([float(rows[0][0])])
            else:
                size, cells = int(np.prod(asked.shape(question))), {}
                for row in rows:
                    keys, values = row[: len(question["by"])], row[len(question["by"]) :]
                    cells[asked.place(question, keys)] = (
                        ratio(float(values[0]), float(values[1])) if kind == "shares" else float(values[0])
                    )
                empty = 0.0 if kind in ("counts", "top") else None  # groups that it does not tell
                table = [cells.get(one, empty) for one in range(size)]
                found.append(best(table, question["k"]) if kind in ("counts", "top") else table)
        return found

    return run


def rho_of(epsilon, delta):
    """Return the zCDP that is (epsilon, delta)-DP (Canonne, Kamath, Steinke 2020, proposition 12)."""
    orders = 1.0 + np.geomspace(1e-3, 1e3, 2000)

    def lost(rho):
        powers = (orders - 1.0) * (orders * rho - epsilon) + orders * np.log1p(-1.0 / orders)
        return float(np.min(powers - np.log(orders - 1.0)))

    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if lost(middle) <= np.log(delta) else (low, middle)
    return low


def opendp(asked, neighbours):
    """Gaussian measurements and private quantiles under zCDP, a twentieth for each question.

    A mean is a sum over a count, a rate too, each with half of the question's part. Its contexts over Polars
    frames split as evenly and release the same, but take a minute for twenty questions.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    share = rho_of(asked.epsilon, asked.delta) / len(asked.questions)
    replaced = neighbours == "replace-one"
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)

    def released(exact, moved, rho):
        """Return a vector that one record moves by this much in L2."""
        scale = dp.binary_search_param(
            lambda scale: dp.m.make_gaussian(*space, scale=scale), d_in=float(moved), d_out=rho, T=float
        )
        return np.array(dp.m.make_gaussian(*space, scale=scale)([float(one) for one in exact]))

    def quantile(values, candidates):
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))

        def made(scale):
            return dp.m.make_private_quantile(
                domain, dp.symmetric_distance(), dp.zero_concentrated_divergence(),
                candidates=candidates, alpha=0.5, scale=scale,
            )  # fmt: skip

        # to replace a record is to remove one and to add another
        return made(dp.binary_search_param(made, d_in=1 + replaced, d_out=share, T=float))(values)

    def answered(question):
        kind, by, kept = question["kind"], question["by"], asked.there(question)
        if kind == "median":
            low, high = asked.ends(question["of"])
            bins = asked.kinds[question["of"]]["bins"]
            candidates = np.linspace(low, high, (bins or int(high - low)) + 1).tolist()
            return [float(quantile(asked.columns[question["of"]][kept].tolist(), candidates))]
        size, place = int(np.prod(asked.shape(question)) if by else 1), np.zeros(asked.n, int)
        for name in by:
            codes = {label: code for code, label in enumerate(asked.values(name))}
            place = place * len(codes) + np.array([codes[value] for value in asked.columns[name].tolist()])
        groups = 2**0.5 if by and replaced else 1.0  # a replaced record moves two groups

        def summed(weights):
            return np.bincount(place, weights=weights, minlength=size)

        if kind in ("count", "counts", "top"):
            told = released(summed(kept.astype(float)), groups, share)
            return best(told, question["k"])
        if kind in ("share", "shares"):
            among, ends = asked.kept(question["among"]), (0.0, 1.0)
            values = kept.astype(float)
        else:
            among, ends = kept, asked.ends(question["of"])
            values = np.where(kept, asked.columns[question["of"]], 0.0)
        most = max(abs(ends[0]), abs(ends[1]), 0.0 if by or not replaced else ends[1] - ends[0])
        parts = released(summed(np.where(among, values, 0.0)), most * groups, share / 2.0)
        wholes = released(summed(among.astype(float)), groups, share / 2.0)
        factor = 100.0 if kind in ("share", "shares") else 1.0
        return [factor * float(one) for one in np.clip(parts / np.maximum(wholes, 1.0), *ends)]

    return lambda: [answered(question) for question in asked.questions]


def tumult(asked, neighbours):
    """A session over Spark with a zCDP budget, a twentieth a question; rows are added or removed."""
    import os

    os.environ["PYSPARK_PYTHON"] = sys.executable  # else its workers are of another environment
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, QueryBuilder, RhoZCDPBudget, Session

    place = tempfile.mkdtemp()
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.warehouse.dir", place).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame = {}
    for name, column in asked.columns.items():
        kind = asked.kinds[name]
        frame[name] = column if kind["labels"] or kind["bins"] else column.astype(np.int64)
    for place, question in enumerate(asked.questions):
        if question["kind"] in ("share", "shares"):
            frame[f"q{place}"] = asked.kept(question["condition"]).astype(np.int64)
    data = spark.createDataFrame(pd.DataFrame(frame)).cache()
    rho = rho_of(asked.epsilon, asked.delta)

    def spelled(parts):
        words = [
            f"{name} {sign} " + (f"'{value}'" if isinstance(value, str) else str(value))
            for name, sign, value in parts
        ]
        return " AND ".join(words)

    def answered(session, place, question):
        kind, by = question["kind"], question["by"]
        query = QueryBuilder("t")
        text = spelled(
            asked.parts(question["among"] if kind in ("share", "shares") else question["condition"])
        )
        if question["of"] and asked.kinds[question["of"]]["missing"]:
            query = query.drop_null_and_nan([question["of"]])
        if text:
            query = query.filter(text)
        if by:
            query = query.groupby(KeySet.from_dict({name: list(asked.values(name)) for name in by}))
        if kind in ("share", "shares"):
            query, factor = query.average(f"q{place}", 0, 1, name="m"), 100.0
        elif kind in ("mean", "means"):
            query, factor = query.average(question["of"], *asked.ends(question["of"]), name="m"), 1.0
        elif kind == "median":
            query, factor = query.median(question["of"], *asked.ends(question["of"]), name="m"), 1.0
        else:
            query, factor = query.count(name="m"), 1.0
        cells = [None] * int(np.prod(asked.shape(question)) if by else 1)
        budget = RhoZCDPBudget(
            rho / len(asked.questions) * (1.0 - 1e-9)
        )  # twenty of a float are more than it
        for row in session.evaluate(query, budget).collect():
            cells[asked.place(question, [row[name] for name in by]) if by else 0] = factor * float(row["m"])
        return best(cells, question["k"]) if kind in ("counts", "top") else cells

    def run():
        session = Session.from_dataframe(RhoZCDPBudget(rho), "t", data, protected_change=AddOneRow())
        return [answered(session, place, question) for place, question in enumerate(asked.questions)]

    return run


ENGINES = {
    "OpenDP": ("opendp", opendp),
    "SmartNoise": ("smartnoise-sql", smartnoise),
    "diffprivlib": ("diffprivlib", diffprivlib),
    "Tumult Analytics": ("tmlt.analytics", tumult),
}


def main(name, folder, neighbours, runs):
    warnings.simplefilter("ignore")
    package, engine = ENGINES[name]
    version, run, found = metadata.version(package), engine(Asked(Path(folder)), neighbours), []
    for _ in range(runs):
        began = time.perf_counter()
        answers = run()
        found.append({"answers": answers, "seconds": time.perf_counter() - began, "version": version})
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
