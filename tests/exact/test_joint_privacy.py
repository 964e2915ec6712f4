"""Parts computed from a public selection and one's own record: what all others see is as private as it.

`part` is the function of `docs/joint_privacy.md` itself.
"""

import itertools
import math
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from onlineic.audit import Law
from onlineic.offline import LinearPrograms
from onlineic.sparse import Sparse

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "joint_privacy.md").read_text(encoding="utf-8")
(BLOCK,) = (block for block in re.findall(r"```python\n(.*?)```", TEXT, re.S) if "def part" in block)
EPSILON, HOURS, GOAL = 0.5, (0.5, 1, 2), 1
PROGRAMS = LinearPrograms(
    matrix=[[2, 1], [1, 0], [0, 1]],
    right_hand_sides=[[budget, 1, 1] for budget in HOURS],
    lower=[0, 0],
    upper=[2, 2],
    n=2,
)
RECORDS = list(itertools.product(range(3), repeat=2))


@pytest.fixture(scope="module")
def part():
    namespace = {}
    exec(BLOCK, namespace)
    return namespace["part"]


def selection(table):
    """P(program) of the first hit, and P(none) last: exact sums over the noise of both scales."""
    mechanism = Sparse(EPSILON, 0, 1, allocation="optimal")
    threshold, test = (
        Law("discrete_laplace", scale) for scale in (mechanism.threshold_scale, mechanism.query_scale)
    )
    reach = math.ceil(40 * float(mechanism.threshold_scale))
    rho = np.arange(-reach, reach + 1.0)
    alive, law = np.exp(threshold.log_mass(rho)), []
    for score in PROGRAMS.scores(np.sum(table, axis=0), GOAL).tolist():
        below = np.exp(test.log_below(rho - score))
        law.append(float(alive @ (1 - below)))
        alive = alive * below
    return [*law, float(alive.sum())]


def seen(table, others, answer):
    """The law of the billboard and of the parts of `others`; a part is `answer(record, program, table)`."""
    law = defaultdict(float)
    for program, chance in enumerate(selection(table)):
        parts = tuple(answer(table[person], program, table) for person in others)
        law[program, parts] += chance
    return law


def loss(others, answer):
    """The largest log-ratio of what others see, over all tables of two and all that differ in the first."""
    worst = 0.0
    for mine, own, other in itertools.product(RECORDS, RECORDS[::4], RECORDS):
        here, there = (seen((record, own), others, answer) for record in (mine, other))
        if here.keys() != there.keys():
            return math.inf
        worst = max(worst, *(abs(math.log(here[view] / there[view])) for view in here))
    return worst


def test_what_all_others_see_costs_what_the_selection_costs(part):
    def answer(record, program, table):
        return part(*record, HOURS[program]) if program < len(HOURS) else None

    assert EPSILON / 4 < loss((1,), answer) <= EPSILON * (1 + 1e-9)


def test_ones_own_part_is_no_secret_from_oneself_so_that_showing_it_to_others_costs_everything(part):
    def answer(record, program, table):
        return part(*record, HOURS[program]) if program < len(HOURS) else None

    assert math.isinf(loss((0, 1), answer))


def test_a_part_that_reads_the_exact_mean_breaks_joint_privacy(part):
    """The planted slip: the treatment that brings more on average first, for everybody."""

    def answer(record, program, table):
        mean = np.mean(table, axis=0)
        return part(*mean, HOURS[program]) if program < len(HOURS) else None

    assert math.isinf(loss((1,), answer))
