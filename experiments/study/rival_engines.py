"""The rivals of rivals.py, in an environment of their own: `make rivals` installs it in .venv-rivals.

    .venv-rivals/bin/python experiments/study/rival_engines.py NAME TABLE.npz SEED

Reads codes of a table, one array a column, and prints as JSON what one rival answers to the ten questions,
each as a list of numbers, and its seconds. All rivals are told the ten questions, or their columns, and
have (1, 1e-6) in all.
"""

import itertools
import json
import sys
import time
import warnings
from importlib import metadata

import numpy as np

EPSILON, DELTA, N_QUESTIONS = 1.0, 1e-6, 10
SIZES = {
    "month": 24, "age": 111, "sex": 2, "city": 6, "ward": 5, "icd": 11, "cost": 6, "los": 31, "readmitted": 2
}  # fmt: skip


def exact(table):
    """Return the ten answers of a table of codes."""

    def counted(*names):
        codes = tuple(table[name] for name in names)
        found = np.zeros([SIZES[name] for name in names])
        np.add.at(found, codes, 1.0)
        return found.ravel().tolist()

    emergency, surgery = table["ward"] == 0, table["ward"] == 2
    older = (table["sex"] == 0) & (table["age"] >= 65) & emergency
    return [
        [float((table["readmitted"] == 1).sum())],
        [float(older.sum())],
        [mean(table["age"], emergency)],
        [mean(table["los"], surgery)],
        counted("city"),
        counted("month"),
        counted("sex", "icd"),
        counted("month", "ward"),
        counted("cost"),
        [float(np.quantile(table["los"], 0.9))],
    ]


def mean(values, kept):
    return float(values[kept].mean()) if kept.any() else 0.0


def ranked(counts, share=0.9):
    """Return the quantile of a noisy histogram."""
    sums = np.cumsum(np.maximum(counts, 0.0))
    return float(np.searchsorted(sums, share * sums[-1]))


def opendp(table, seed):
    """Twelve Gaussian releases under one zCDP budget: two for each mean, a histogram for the quantile."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    ten, emergency, surgery = exact(table), table["ward"] == 0, table["ward"] == 2
    sums = [float(table["age"][emergency].sum()), float(table["los"][surgery].sum())]
    stays = np.bincount(table["los"], minlength=SIZES["los"]).astype(float).tolist()
    # vectors, and how far one replaced record moves them in L2
    asked = [
        (ten[0], 1.0), (ten[1], 1.0), ([sums[0]], 110.0), ([float(emergency.sum())], 1.0), ([sums[1]], 30.0),
        ([float(surgery.sum())], 1.0), *((ten[place], 2**0.5) for place in (4, 5, 6, 7, 8)), (stays, 2**0.5),
    ]  # fmt: skip
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)

    def together(scale):
        parts = [dp.m.make_gaussian(*space, scale=scale) for _ in asked]  # in units of its sensitivity
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.c.make_basic_composition(parts)), DELTA)

    scale = dp.binary_search(
        lambda scale: together(scale).map(1.0)[0] <= EPSILON, bounds=(0.1, 1000.0)
    )  # fmt: skip
    released = [
        dp.m.make_gaussian(*space, scale=scale * moved)([int(value) for value in values])
        for values, moved in asked
    ]
    first, second, age, er, los, surgeries, *tables, stays = released
    return [first, second, [age[0] / er[0]], [los[0] / surgeries[0]], *tables, [ranked(stays)]]


def diffprivlib(table, seed):
    """A tenth of epsilon for each question, delta 0."""
    from diffprivlib import tools

    share, emergency, surgery = EPSILON / N_QUESTIONS, table["ward"] == 0, table["ward"] == 2

    def counts(*names):
        edges = [np.arange(SIZES[name] + 1) - 0.5 for name in names]
        sample = np.stack([table[name] for name in names], axis=1)
        found, _ = tools.histogramdd(
            sample, epsilon=share, bins=edges, range=[(e[0], e[-1]) for e in edges], random_state=seed
        )
        return np.asarray(found, float).ravel().tolist()

    older = (table["sex"] == 0) & (table["age"] >= 65) & emergency
    given = {"epsilon": share, "random_state": seed}
    return [
        [float(tools.count_nonzero(table["readmitted"] == 1, **given))],
        [float(tools.count_nonzero(older, **given))],
        [float(tools.mean(table["age"][emergency], bounds=(0, 110), **given))],
        [float(tools.mean(table["los"][surgery], bounds=(0, 30), **given))],
        *(counts(*names) for names in (("city",), ("month",), ("sex", "icd"), ("month", "ward"), ("cost",))),
        [float(tools.quantile(table["los"], 0.9, bounds=(0, 30), **given))],
    ]


def smartnoise(table, seed):
    """SQL, a tenth of the budget for each question; it has no quantile."""
    import pandas as pd
    import snsql

    columns = {
        f"c_{name}": {"type": "int", "lower": 0, "upper": size - 1} for name, size in SIZES.items()
    }  # its grammar keeps `month` for itself
    facts = {"row_privacy": True, "censor_dims": False, "rows": len(table["sex"])}  # every group is public
    described = {"": {"": {"t": {**facts, **columns}}}}
    privacy = snsql.Privacy(epsilon=EPSILON / N_QUESTIONS, delta=DELTA / N_QUESTIONS)
    reader = snsql.from_df(
        pd.DataFrame({f"c_{name}": codes for name, codes in table.items()}),
        privacy=privacy,
        metadata=described,
    )

    def asked(text):
        return reader.execute(text)[1:]

    def by(*names):
        keys = ", ".join(f"c_{name}" for name in names)
        found = np.zeros([SIZES[name] for name in names])
        for *codes, count in asked(f"SELECT {keys}, COUNT(*) AS n FROM t GROUP BY {keys}"):
            found[tuple(int(code) for code in codes)] = count
        return found.ravel().tolist()

    count = "SELECT COUNT(*) AS n FROM t WHERE"
    return [
        [float(asked(f"{count} c_readmitted = 1")[0][0])],
        [float(asked(f"{count} c_sex = 0 AND c_age >= 65 AND c_ward = 0")[0][0])],
        [float(asked("SELECT AVG(c_age) AS m FROM t WHERE c_ward = 0")[0][0])],
        [float(asked("SELECT AVG(c_los) AS m FROM t WHERE c_ward = 2")[0][0])],
        *(by(*names) for names in (("city",), ("month",), ("sex", "icd"), ("month", "ward"), ("cost",))),
        None,
    ]


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


def counted(table, sizes, held):
    """Return how many records have each combination of codes of some columns, as a vector."""
    found = np.zeros([sizes[name] for name in held])
    np.add.at(found, tuple(table[name] for name in held), 1.0)
    return found.ravel()


def fitted(table, sizes, sets, rounds, rng, replaced=True):
    """Return the model of MWEM+PGM, whose hypothesis is a graphical model (McKenna, Sheldon, Miklau 2019).

    It is told the sets of attributes. A tenth of the budget of a round chooses the set that the model holds
    worst, by the exponential mechanism, the rest measures it with Gaussian noise. Where a record is replaced,
    their number is public; where one is there or not, it costs as much as a round, and noise is smaller.
    Written after the authors' script: their package has the model and its fit, and no mechanisms.
    """
    import os

    os.environ["JAX_ENABLE_X64"] = "1"  # in single precision it stalls
    from mbi import Domain, LinearMeasurement
    from mbi.estimation import MirrorDescent

    names, n, begun = tuple(sizes), len(next(iter(table.values()))), time.perf_counter()
    moved = 2.0 if replaced else 1.0  # cells that a record moves by 1
    share = rho_of(EPSILON, DELTA) / (rounds + (not replaced))
    sigma, tilt = np.sqrt(moved) * np.sqrt(0.5 / (0.9 * share)), np.sqrt(8.0 * 0.1 * share)
    if not replaced:
        n = max(n + rng.normal(0.0, np.sqrt(0.5 / share)), 1.0)
    exact = [counted(table, sizes, held) for held in sets]
    domain, measured, first = Domain(names, tuple(sizes.values())), [], min(names, key=sizes.get)
    even = LinearMeasurement(np.full(sizes[first], n / sizes[first]), (first,), stddev=n)
    model = MirrorDescent().estimate(domain, [even], n)
    for place in range(rounds):
        print(f"round {place + 1} after {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
        held_by = asking(model, sizes)
        worst = np.array(
            [np.abs(right - held_by(*held).ravel()).sum() for right, held in zip(exact, sets, strict=True)]
        ) - [len(right) for right in exact]
        odds = np.exp(tilt / (2.0 * moved) * (worst - worst.max()))  # one record moves a score by `moved`
        chosen = rng.choice(len(sets), p=odds / odds.sum())
        noisy = exact[chosen] + rng.normal(0.0, sigma, len(exact[chosen]))
        measured.append(LinearMeasurement(noisy, sets[chosen], stddev=sigma))
        model = MirrorDescent().estimate(domain, measured, n)
    return model


def asking(model, sizes, small=2**17):
    """Return columns -> their table in a graphical model; a small one is made into a table of all once."""
    names = list(sizes)
    if np.prod([float(size) for size in sizes.values()]) > small:
        return lambda *held: np.ravel(model.project(held).datavector()).reshape(
            [sizes[name] for name in held]
        )
    joint = np.ravel(model.project(tuple(names)).datavector()).reshape(list(sizes.values()))

    def summed(*held):
        axes = [names.index(name) for name in held]
        rest = tuple(axis for axis in range(len(names)) if axis not in axes)
        return joint.sum(axis=rest).transpose(np.argsort(np.argsort(axes)))

    return summed


def mwem_pgm(table, seed):
    """MWEM+PGM, told the attributes of the ten questions: a round for each set."""
    sets = [
        ("readmitted",), ("age", "sex", "ward"), ("ward", "los"), ("city",), ("month",), ("sex", "icd"),
        ("month", "ward"), ("cost",), ("los",),
    ]  # fmt: skip
    model = fitted(table, SIZES, sets, len(sets), np.random.default_rng(seed))
    held_by = asking(model, SIZES)
    people, stays = held_by("age", "sex", "ward"), held_by("ward", "los")[2]
    ages, cells = people[:, :, 0].sum(axis=1), [held_by("city"), held_by("month"), held_by("sex", "icd")]
    cells += [held_by("month", "ward"), held_by("cost")]
    return [
        [float(held_by("readmitted")[1])],
        [float(people[65:, 0, 0].sum())],
        [float(np.arange(len(ages)) @ ages / ages.sum())],
        [float(np.arange(len(stays)) @ stays / stays.sum())],
        *(one.ravel().tolist() for one in cells),
        [ranked(held_by("los"))],
    ]


def told_rounds(begun):
    """Let AIM tell on stderr when a round begins: who stops it says how far it came."""
    from dpmm.models.aim import AIM

    chosen, rounds = AIM.worst_approximated, itertools.count(1)

    def choose(*args, **options):
        print(f"round {next(rounds)} after {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
        return chosen(*args, **options)

    AIM.worst_approximated = choose


def drawn(kind, table, sizes, seed, records=None, **options):
    """Return synthetic records of AIM or MST, as many as its model says unless told."""
    import pandas as pd
    from dpmm.pipelines import AIMPipeline, MSTPipeline

    told_rounds(time.perf_counter())
    pipeline = {"AIM": AIMPipeline, "MST": MSTPipeline}[kind](
        epsilon=EPSILON, delta=DELTA, disable_processing=True, n_jobs=1, **options
    )
    pipeline.fit(pd.DataFrame(table), domain=sizes, random_state=seed)
    pipeline.set_random_state(seed)
    made = pipeline.gen.generate(n_records=records)
    return {name: made[name].to_numpy().astype(int) for name in sizes}


def synthetic(kind, **options):
    """Return AIM or MST: a table of as many synthetic records, of which the ten answers are taken."""
    return lambda table, seed: exact(drawn(kind, table, SIZES, seed, len(table["sex"]), **options))


def quicker(rounds):
    """Return options of AIM with fewer and shorter rounds, and a smaller model."""
    return {"max_model_size": 10, "gen_kwargs": {"rounds": rounds, "n_iters": 300}}


ENGINES = {
    # as it comes: at most 144 rounds of 1,000 steps, and a model of any size
    "AIM, to its own end": ("dpmm", synthetic("AIM")),
    "AIM, 27 rounds": ("dpmm", synthetic("AIM", **quicker(27))),
    "MST": ("dpmm", synthetic("MST")),
    "MWEM+PGM": ("mbi", mwem_pgm),
    "OpenDP, told the ten": ("opendp", opendp),
    "SmartNoise": ("smartnoise-sql", smartnoise),
    "diffprivlib": ("diffprivlib", diffprivlib),
}


def main(name, path, seed):
    warnings.simplefilter("ignore")
    np.random.seed(seed)  # noqa: NPY002  # what some of them draw from
    with np.load(path) as held:
        table = {column: held[column] for column in SIZES}
    package, engine = ENGINES[name]
    began = time.perf_counter()
    answers = engine(table, seed)
    said = {"answers": answers, "seconds": time.perf_counter() - began, "version": metadata.version(package)}
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
