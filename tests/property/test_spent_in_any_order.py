"""One list of budgets for all tables of the same records, in any order of calls, against a plain list."""

import contextlib
import gc
import random

import pytest

import onlineic as ic
from onlineic.data.private import paid_by, united
from onlineic.errors import OnlineICError
from onlineic.ledger import MemoryLedger

pytestmark = pytest.mark.filterwarnings("ignore::onlineic.errors.BudgetsAddWarning")
DOMAIN = ic.Domain.of(a=3, b=2)
WHOLE = ic.Budget(100.0, allow_large_epsilon=True)
STEPS = ("load", "project", "pay", "unite", "spend", "spend", "total", "enter", "enter again", "drop")


class Model:
    """Tables with the loads of their records, and what was spent: on which loads, and on which totals."""

    def __init__(self, seed):
        self.draw, self.payer = random.Random(seed), object()
        self.tables, self.spent, self.covered, self.totals, self.ledgers = [], [], {}, [], []
        self.loads, self.known = 0, set()

    def step(self, name):
        draw = self.draw
        if name == "load" or not self.tables:
            data = ic.PrivateData.from_records({"a": [0, 1, 2], "b": [0, 1, 0]}, DOMAIN)
            self.tables.append((data, frozenset([self.loads])))
            self.loads += 1
            return
        data, loads = draw.choice(self.tables)
        if name == "project":
            self.tables.append((data.projected("a", "b"), loads))
        elif name == "pay":
            self.tables.append((paid_by(data, self.payer), loads))
        elif name == "unite":
            some = draw.sample(self.tables, min(len(self.tables), draw.choice([1, 2, 3])))
            parts = [one for one, _ in some]
            made = ic.PrivateData.union(parts) if draw.random() < 0.7 else united(parts, self.payer)
            held = [load for _, of_one in some for load in of_one]
            assert len(held) == len({*held})  # no record is there twice
            self.tables.append((made, frozenset(held)))
        elif name == "spend":
            budget = ic.Budget(draw.choice([0.01, 0.02, 0.03]))
            data.spend(budget)
            self.enter(loads, budget)
        elif name == "total":
            total = draw.choice([ic.TableBudget(WHOLE), *self.totals])
            self.totals += [total] * (total not in self.totals)
            data.draw_on(total)
            fresh = loads - self.covered.keys()
            assert not any(one & fresh for one, _, _ in self.spent)  # what was spent before it would not know
            self.covered |= dict.fromkeys(fresh, total)
        elif name == "drop":
            self.tables.remove((data, loads))
            gc.collect(0)
        else:
            if name == "enter" or not self.ledgers:
                self.ledgers.append((MemoryLedger(), ic.Budget(draw.choice([0.04, 0.05]))))
            ledger, budget = self.ledgers[-1] if name == "enter" else draw.choice(self.ledgers)
            data.enter(ledger, budget)
            groups = {(id(ledger), self.covered.get(load, load)) for load in loads}
            if not groups <= self.known:
                self.enter(loads, budget)
            self.known |= groups

    def enter(self, loads, budget):
        self.spent.append((loads, budget, {self.covered.get(load) for load in loads}))

    def check(self):
        for data, loads in self.tables:
            assert [budget for one, budget, _ in self.spent if one & loads] == [*data.budgets]
        for total in self.totals:
            assert [budget for _, budget, of in self.spent if total in of] == [
                one.budget for one in total.drawn
            ]


@pytest.mark.parametrize("seed", range(40))
def test_each_budget_stands_once_on_the_list_of_every_table_whose_records_it_is_spent_on(seed):
    model = Model(seed)
    for _ in range(40):
        with contextlib.suppress(OnlineICError):
            model.step(model.draw.choice(STEPS))
        model.check()
    assert model.spent
