"""The numbers by which a default session decides, all of them found by experiment and none proven to be best.

How it divides its budget, how much it plans for, which first tables it buys and when it trusts its fit. Each
depends on public facts alone. `experiments/README.md` shows where they win and where they lose, and
`tests/golden/test_accuracy.py` holds what they achieve. What a class of a lower row decides when it stands
alone is a default of its own parameters: `PartitionRule`, `MaximumEntropy`, and the false hits and noise
ratios of the mechanisms.
"""

import math
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.budget import Budget
from onlineic.domain.domain import Domain

# by what rules sessions are planned, learn and answer: a digest of the stored plans and transcripts of
# `tests/golden/`, where a test holds it. Files of other rules keep their plan and what was told
RULES = "c6f9b8de8a8103d9"

# how much is planned; shares are of the budget
MOST_PLANNED = 100  # hard answers: each refit takes a while
USUAL_QUERIES = 10_000  # of which nobody has told a number
TESTS = 0.1  # for tests and hits: with half of it bounds of three attributes are 1.4 times as wide
# beside tables of all cells and levels, whose noise is known, and beside numbers for questions that were not
# announced: with more these tell less, with less a test says little of sets of codes
KNOWN_TESTS = Fraction(1, 20)
# of beta, that each outcome of a test may fail with: one answer is easy or hard (theory 6.0)
EASY_OR_HARD = 0.5
LEAST_EPSILON = 2e-4  # of tests beside Laplace tables, up to half of all: for less no order suits
# sigma / b of a table: tests and tables have about equal noise. At 2, the mechanism's own, chains err by 1.1
PARTITION_RATIO = Fraction(1)
# for each planned hit, where all is learned from hits. With the mechanism's own .2 NLTCS, Covid, a chain and
# ranges without structure err by 1.2 to 1.3 times as much, Adult by .97 to 1.4. Beside tables it does nothing
FALSE_HITS_ALONE = 1.0
NEXT_SHARE = Fraction(1, 20)  # of what is left: the most that a hit costs once there was one
ROOM = 5  # bits by which the noise of later tests may grow

# which first tables
# parts of an ordered attribute in a pair, and fewer of few records: else ranges err by 1.05 at epsilon = .1
PARTS_AT_MOST = 32
# one attribute of more cells has coarse levels: a block has at most so many parts on the next level, and the
# root so many times these. With a root of 1 HEPTH errs by 1.08 times as much
FLAT, BRANCH, ROOT = 256, 13, 2
# mean square of weights that no functions of two attributes fit, from which a first question wants all cells
BEYOND_PAIRS = 0.03

# times the error of a session that listens, which rests on believed sizes, up to which known noise is taken:
# at 1.5 dense questions about few cells err 6 times as much, at 2 ranges of Adult 3 times under add-remove
BELIEVED = 1.9

# when the fit is trusted
FITTED_AT = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # where all are measured; one fit to 512 takes a second


@final
@attrs.frozen
class Shares:
    """How a default partition session divides its capacity, and how finely it cuts.

    Attributes:
        hard_answers: c, planned true hard answers.
        tables: Share of tables that are settled beforehand; the rest pays hard answers.
        parts: Equal parts into which a long ordered attribute is cut.
    """

    hard_answers: int
    tables: Fraction
    parts: int


def default_shares(
    n: int, budget: Budget, domain: Domain, questions: int, hard_answers: int | None, cells: bool = False
) -> Shares:
    """Return the shares for a budget, from n epsilon and the domain; found by experiment, not proven best.

    Large n epsilon resolves more than two-way tables hold, so more hard answers are planned, and finer cuts.
    The levels of a single attribute hold all there is to know, and so does a table of all `cells`: one is
    planned beside them. A wish for more hard answers takes their price from the tables.
    """
    size = n * budget.epsilon / 5e4
    planned = min(questions, MOST_PLANNED, max(2, round(10.0 / 3.0 * size**0.8)))
    tests = TESTS
    if hard_answers is not None:
        tests = min(0.9, max(tests, tests * hard_answers / planned))
    elif cells or sum(length > 1 for length in domain.shape) == 1:
        planned = 1
        tests = max(float(KNOWN_TESTS), min(0.5, LEAST_EPSILON / budget.epsilon))
    return Shares(
        hard_answers=planned if hard_answers is None else hard_answers,
        tables=Fraction(round((1.0 - tests) * 1000), 1000),
        parts=int(min(float(PARTS_AT_MOST), max(4.0, round(24.0 * size**0.6)))),
    )


def default_numbers(n: int, budget: Budget, domain: Domain, questions: int) -> int:
    """Return c for a session that releases numbers and names neither an accuracy nor c.

    One number teaches little: many are planned. Found by experiment, not proven to be best.
    """
    planned: float = 85.0 * (n * budget.epsilon / 5e4) ** 0.45 * math.sqrt(len(domain.names) / 6.0)
    return min(questions, max(4, math.ceil(planned)))
