"""Sessions with the plans that users get, on simulated noise, against stored transcripts.

Draws, charges, labels and guesses are compared exactly, values and bounds to 1e-12: a change of structure
changes none of them. `python tests/golden/test_default_sessions.py` writes the files anew: the changelog
then says what changed.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import onlineic as ic
from onlineic.ledger import BoughtTables, Easy, Forfeited, Hard
from onlineic.plan import DemandPurchases
from support.noise import Wrapped
from support.sessions import settled

TWO = {"a": 24, "b": 10, "c": 5}
SMALL = {"a": 12, "b": 5, "c": 3}
ONE = {"age": 90}  # of one level
LEVELS = {"x": 300}


class Logged(Wrapped):
    """Simulated noise that notes what was asked of it."""

    def __init__(self, seed):
        super().__init__(seed)
        self.asked = []

    def words(self, size):
        self.asked.append(f"words {size}")
        return super().words(size)

    def geometric(self, scale, size):
        self.asked.append(f"geometric {scale} {size}")
        return super().geometric(scale, size)

    def discrete_laplace(self, scale, size):
        self.asked.append(f"laplace {scale} {size}")
        return super().discrete_laplace(scale, size)

    def discrete_gaussian(self, sigma, size):
        self.asked.append(f"gaussian {sigma} {size}")
        return super().discrete_gaussian(sigma, size)

    def unread(self, count, since):
        self.asked.append(f"unread {count}")
        super().unread(count, since)


def table(shape, n, concentration):
    sizes = tuple(shape.values())
    law = np.random.default_rng(5).dirichlet(np.full(np.prod(sizes), concentration))
    return np.random.default_rng(6).multinomial(n, law).reshape(sizes)


def ranges(shape, count, seed):
    """Random conjunctions of ranges and points, every fifth a repeat, every ninth of fractional weights."""
    generator = np.random.default_rng(seed)
    asked = []
    for number in range(count):
        if asked and number % 5 == 4:
            asked.append(asked[int(generator.integers(len(asked)))])
            continue
        conditions = {}
        for name in generator.choice(
            list(shape), size=min(len(shape), int(generator.integers(1, 4))), replace=False
        ):
            low, high = sorted(generator.integers(0, shape[name], 2).tolist())
            conditions[str(name)] = ic.between(low, high) if number % 3 else low
        if number % 9 == 8:
            name = next(iter(shape))
            conditions = {name: ic.weights((np.arange(shape[name]) % 4) / 4)}
        asked.append(ic.where(**conditions))
    return asked


PAIRS = {"counts": table(TWO, 30_000, 0.02), "shape": TWO}
DELTA = 1e-6
STORED = {BoughtTables: "Opened", Forfeited: "Burned"}  # names of records in stored sessions
LISTENS = {"purchases": DemandPurchases()}  # else all cells are bought: they are few
SESSIONS = {
    "gumbel": {**PAIRS, "budget": (1.0, DELTA), "asked": ranges(TWO, 150, 1)},
    "pure": {**PAIRS, "budget": (1.0, 0.0), "asked": ranges(TWO, 150, 2)},
    "cross tables": {
        **PAIRS,
        "budget": (1.0, DELTA),
        "asked": [
            ic.marginal("a"), ic.where(a=3), ic.marginal("a", "c"), ic.marginal("c", "b"), ic.marginal("a"),
            ic.where(a=ic.between(2, 7), b=1), ic.marginal("a", "b", "c"),
            ic.marginal("b", where=ic.where(c=0)),
        ],
        "settings": LISTENS | {"threshold": 0.002},
    },
    "one attribute": {
        "counts": table(ONE, 3_000, 0.02), "shape": ONE, "budget": (1.0, 1e-9), "asked": ranges(ONE, 60, 3),
    },
    "one attribute, pure": {
        "counts": table(ONE, 3_000, 0.02), "shape": ONE, "budget": (0.5, 0.0), "asked": ranges(ONE, 60, 4),
    },
    "all cells": {
        "counts": table(SMALL, 5_000_000, 0.5), "shape": SMALL, "budget": (2.0, 1e-9),
        "asked": ranges(SMALL, 40, 5),
    },
    "dense": {
        **PAIRS,
        "budget": (1.0, 0.0),
        "asked": [
            ic.dense(np.random.default_rng(seed).integers(0, 2, tuple(TWO.values())).astype(float))
            for seed in range(40)
        ],
        "settings": LISTENS | {"threshold": 0.003},
    },
    "settled": {  # for a rule that reads no tables
        **PAIRS,
        "budget": (1.0, DELTA),
        "asked": ranges(TWO, 30, 8),
        "settings": {
            "purchases": settled(ic.Domain.of(TWO), 30_000, ic.Budget(1.0, DELTA)),
            "update": ic.MultiplicativeWeights(),
        },
    },
    "numbers": {
        **PAIRS, "budget": (1.0, 1e-9), "asked": ranges(TWO, 60, 6), "settings": {"release": "answer"},
    },
    "numbers, pure": {
        **PAIRS, "budget": (1.0, 0.0), "asked": ranges(TWO, 60, 7), "settings": {"release": "answer"},
    },
    "few": {  # each of those announced is bought by itself, and some come after them
        **PAIRS, "budget": (1.0, 1e-3), "asked": ranges(TWO, 14, 9), "settings": {"questions": 10},
    },
    "few, pure": {  # of so few Laplace noise errs less: no delta is spent
        **PAIRS, "budget": (1.0, 1e-9), "asked": ranges(TWO, 7, 9), "settings": {"questions": 4},
    },
    "hits": {
        **PAIRS, "budget": (1.0, DELTA), "asked": ranges(TWO, 80, 9),
        "settings": LISTENS | {"threshold": 0.003},
    },
    "hits, pure": {
        **PAIRS, "budget": (1.0, 0.0), "asked": ranges(TWO, 80, 10),
        "settings": LISTENS | {"threshold": 0.001},
    },
    "hits, one attribute": {
        "counts": table(LEVELS, 3_000, 0.02), "shape": LEVELS, "budget": (1.0, 1e-9),
        "asked": ranges(LEVELS, 60, 11),
        "settings": {"threshold": 0.01, "hard_answers": 20},
    },
    "listening": {
        **PAIRS, "budget": (1.0, DELTA), "asked": ranges(TWO, 60, 13),
        "settings": LISTENS,
    },
    "listening, pure": {
        **PAIRS, "budget": (1.0, 0.0), "asked": ranges(TWO, 60, 14),
        "settings": LISTENS,
    },
    "announced": {
        **PAIRS, "budget": (1.0, DELTA), "asked": ranges(TWO, 60, 15),
        "settings": {"questions": [("a", "b"), "c"]},
    },
    "certified": {
        **PAIRS, "budget": (8.0, 0.0), "asked": ranges(TWO, 40, 8), "settings": {"certify": 0.1},
    },
}  # fmt: skip


def played(name):
    """Return everything that a session asked, charged and released, as JSON."""
    plan = SESSIONS[name]
    noise = Logged(11)
    data = ic.PrivateData(plan["counts"], ic.Domain.of(plan["shape"]))
    session = ic.OnlineIC(data, ic.Budget(*plan["budget"]), noise=noise, **plan.get("settings", {}))
    half = len(plan["asked"]) // 2
    answers = [session.answer(query) for query in plan["asked"][:half]]
    answers += session.answer_many(plan["asked"][half:])
    exact, values = {"asked": noise.asked, "records": [], "labels": [answer.status for answer in answers]}, []
    for record in session.transcript:
        told = [STORED.get(type(record), type(record).__name__)]
        if isinstance(record, Easy | Hard):
            told.append(record.guess)
        if not isinstance(record, Easy) and hasattr(record, "charge"):
            told.append([str(record.charge.amount), record.charge.event])
        measured = record.measurements if isinstance(record, BoughtTables) else ()
        measured = (record.measurement,) if isinstance(record, Hard) else measured
        told += [[repr(one.target), len(one.values)] for one in measured]
        values += [number for one in measured for number in (*one.values.tolist(), one.scale)]
        exact["records"].append(told)
    for answer in answers:
        values += [*np.ravel(answer.value).tolist(), answer.error_bound]
    values += session.hypothesis.probabilities().ravel().tolist()
    stats = session.statistics()
    exact["statistics"] = [stats.asked, stats.hard, stats.hard_left, stats.untested, stats.certified]
    values += [stats.spent, stats.threshold, stats.alpha, stats.error_bound]
    return json.loads(json.dumps({"exact": exact, "values": values}))


def path(name):
    return Path(__file__).with_name(f"default_{name.replace(', ', '_').replace(' ', '_')}.json")


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_of_a_default_plan_is_the_stored_one(name):
    stored = json.loads(path(name).read_text(encoding="utf-8"))
    now = played(name)

    assert stored["exact"] == now["exact"]
    assert stored["values"] == pytest.approx(now["values"], abs=1e-12, rel=1e-9)


def test_the_stored_sessions_hold_what_they_are_for():
    labels = {
        name: json.loads(path(name).read_text(encoding="utf-8"))["exact"]["labels"] for name in SESSIONS
    }

    assert all("easy" in kinds for kinds in labels.values())
    assert all(labels[name].count("hard") >= 3 for name in labels if name.startswith(("hits", "numbers")))
    assert "hard" in labels["cross tables"]
    assert "hard" in labels["dense"]
    assert "untested" in labels["hits"]


if __name__ == "__main__":
    for session_name in sys.argv[1:] or SESSIONS:
        path(session_name).write_text(json.dumps(played(session_name)) + "\n", encoding="utf-8")
