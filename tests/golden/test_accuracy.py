"""The tuned accuracy of default sessions is held: their root-mean-square errors on three tables, to 1 %.

`python tests/golden/test_accuracy.py` writes the record anew: the changelog then gives the figures before and
after.
"""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import onlineic as ic
from onlineic.datasets import adult5
from onlineic.evaluate import exact_values, random_stream
from onlineic.noise import SimulatedNoise

RECORD = Path(__file__).with_name("accuracy.json")


def adult():
    columns, counts = adult5()
    domain = ic.Domain.of(
        age=range(17, 91),
        education_num=range(1, 17),
        race=sorted(set(columns["race"].tolist())),
        sex=["Female", "Male"],
        income=["<=50K", ">50K"],
    )
    return ic.PrivateData.from_counts({name: columns[name] for name in domain.names}, counts, domain)


def bumps():
    """One ordered attribute of 1,024 values, most of its records in a few narrow bumps."""
    generator = np.random.default_rng(1)
    values = np.concatenate(
        [
            generator.normal(at, width, size)
            for at, width, size in ((100, 8, 30_000), (420, 60, 20_000), (900, 2, 9_000))
        ]
        + [generator.uniform(0, 1024, 3_000)]
    )
    counts = np.bincount(np.clip(values.astype(int), 0, 1023), minlength=1024)
    return ic.PrivateData(counts, ic.Domain.of(x=1024))


def chain():
    """Six attributes, each a noisy copy of the one before: pairs explain them, and triples a little."""
    generator = np.random.default_rng(2)
    sizes = (12, 8, 6, 5, 4, 3)
    codes = [generator.integers(0, sizes[0], 60_000)]
    for before, size in itertools.pairwise(sizes):
        moved = (codes[-1] * size // before + (generator.random(60_000) < 0.3)) % size
        codes.append(np.where(generator.random(60_000) < 0.1, generator.integers(0, size, 60_000), moved))
    domain = ic.Domain.of({f"a{axis}": size for axis, size in enumerate(sizes)})
    return ic.PrivateData(np.bincount(np.ravel_multi_index(codes, sizes), minlength=domain.size), domain)


TABLES = {"adult": adult, "bumps": bumps, "chain": chain}
BUDGETS = {"delta": ic.Budget(1.0, 1e-9), "pure": ic.Budget(1.0)}


def root_mean_square(table, budget):
    data = TABLES[table]()
    queries = random_stream(data.domain, 400, seed=3)
    truth = np.asarray(exact_values(data, queries))
    errors = []
    for seed in (1, 2):
        session = ic.OnlineIC(data, BUDGETS[budget], noise=SimulatedNoise(seed))
        errors.append([answer.value for answer in session.answer_many(queries)] - truth)
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("table", TABLES)
def test_the_error_of_a_default_session_is_the_recorded_one(table, budget):
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))[f"{table}, {budget}"]

    assert recorded == pytest.approx(root_mean_square(table, budget), rel=0.01)


if __name__ == "__main__":
    figures = {
        f"{table}, {budget}": root_mean_square(table, budget) for table in TABLES for budget in BUDGETS
    }
    RECORD.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
