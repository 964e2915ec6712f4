"""What an engine is expected to err by, from public facts alone, and which start a default session takes.

The errors of plain noise follow from its calibration. Those of sessions that start from tables are what the
rule that buys them expects, by the predictor that tells what an answer is worth: nothing promises them.

Proof: docs/theory/session.md, 4.6.
"""

import contextlib
import math
import sys
from collections.abc import Iterable
from typing import Literal, final

import attrs
import numpy as np

from onlineic.accounting.budget import Budget
from onlineic.accounting.composition import gaussian_mu
from onlineic.accounting.neighbours import ADD_REMOVE
from onlineic.accounting.of_table import alike
from onlineic.accounting.renyi import TICK
from onlineic.display.html import card, note, table
from onlineic.display.text import records, upward
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
)
from onlineic.interactions.demand import Axes, Demand
from onlineic.interactions.levels import levels_of
from onlineic.interactions.predictor import Predictor
from onlineic.interactions.sizes import informed, rows_of
from onlineic.noise.laws import normal_quantile
from onlineic.plan.announced import Announcement
from onlineic.plan.defaults import BELIEVED, KNOWN_TESTS
from onlineic.plan.demand import DemandPurchases
from onlineic.plan.listening import FEW, account_of_purchases, listening_rule
from onlineic.plan.purchase import MOST_CELLS, levels
from onlineic.plan.purchase_rule import Facts
from onlineic.plan.settings import Settings
from onlineic.queries.counted import divided
from onlineic.queries.cuts import planned
from onlineic.queries.query import session_grid_bits
from onlineic.queries.reach import Reach
from onlineic.sparse.unconditional import UnconditionalNumbers

UNKNOWN = 0.5  # expected of answers between 0 and 1 of which nothing is known
Start = Literal["numbers", "cells", "levels", "pairs"]

SAID = {
    "numbers": "so few questions are best measured one by one, without a test",
    "cells": "a table of all cells is expected to tell more than tables of pairs of attributes",
    "levels": "one attribute is known from its levels",
    "pairs": "tables bought as questions come, and hits for what they do not hold",
}
MOST_FORESEEN = 128  # attributes: of more a programme takes longer than a second


@final
@attrs.frozen
class EngineForecast:
    """One row of a forecast.

    Attributes:
        rms: Expected root-mean-square error of an answer, fraction of records; of a session from tables,
            whose answers lie between 0 and 1, at most 1/2.
        bound: That one answer keeps with probability .95: of plain noise the quantile of its law, of sessions
            from tables twice the expected error, which is no promise; the plan states the bounds that are.
        start: The start of a session that this is; None: an engine of `onlineic.baselines`.
    """

    engine: str
    rms: float
    bound: float
    start: Start | None = None


@final
@attrs.frozen(repr=False)
class Forecast:
    """Expected errors of the engines for one table, budget and stream, and the start that a session takes.

    Attributes:
        engines: Least expected error first.
        start: The one expected to err least; but known noise is taken that is not much larger than what a
            session that buys by what is asked, "pairs", is believed to err by.
        n, max_queries: Records, and the questions that were announced, or else are bounded.
    """

    engines: tuple[EngineForecast, ...]
    start: Start
    reason: str
    n: int
    max_queries: int

    def __repr__(self) -> str:
        width = max(len(row.engine) for row in self.engines)
        lines = [f"{'engine':<{width}}  rms error (records)  95 % of one answer"]
        for row in self.engines:
            mark = "  <- the session" if row.start == self.start else ""
            lines.append(
                f"{row.engine:<{width}}  {row.rms:9.3g} ({self.n * row.rms:7.3g})  "
                f"{upward(row.bound):>9}{mark}"
            )
        lines.append(f"{self.max_queries:,} questions of {self.n:,} records: {self.reason}.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        n = self.n
        rows = [
            [
                row.engine + " (the session)" * (row.start == self.start),
                f"{row.rms:.3g}",
                records(n * row.rms) if math.isfinite(row.rms) else "unknown",
                upward(row.bound),
            ]
            for row in self.engines
        ]
        return card(
            f"{self.max_queries:,} questions of {n:,} records",
            table(["engine", "rms error", "in records", "95 % of one answer"], rows),
            note(self.reason),
        )


def of_engines(domain: Domain, n: int, settings: Settings) -> Forecast:
    """Return what every engine is expected to err by, with these settings."""
    return expected(domain, n, counted_out(settings.of_domain(domain)))


def counted_out(settings: Settings) -> Settings:
    """Return what is left to every engine: where the number of records is private, it is paid first."""
    if settings.budget.neighbours != ADD_REMOVE:
        return settings
    return attrs.evolve(settings, budget=divided(settings.budget)[1])


def expected(domain: Domain, n: int, settings: Settings, announced: Announcement | None = None) -> Forecast:
    """Return the forecast of a session to which all of this budget is left, as n is public or was counted.

    What was `announced` takes the place of what the settings tell of the questions.
    """
    domain, announced = planned(domain), settings.announced if announced is None else announced
    asked = announced.count or settings.max_queries
    rows = _rows(domain, n, settings, asked, announced.dense)
    if announced.count is None:  # nobody knows for how many numbers to pay
        rows = [row for row in rows if row.start != "numbers"]
    ranked = tuple(sorted(rows, key=lambda row: row.rms))
    start = _least(rows)
    return Forecast(ranked, start, SAID[start], n, asked)


def told_would(domain: Domain, n: int, settings: Settings, sets: Iterable[Axes], count: int) -> float:
    """Return what a session would have been expected to err by that was told these sets and this number.

    Args:
        sets: Places of attributes that were asked together.
        count: How many questions were asked.
    """
    names = tuple(tuple(domain.names[axis] for axis in axes) for axes in sets if axes)
    told = [Announcement(count), Announcement(sets=names)]
    alone = Settings(settings.of_row, max_queries=settings.max_queries, beta=settings.beta)
    found = [expected(domain, n, attrs.evolve(alone, questions=one)) for one in told]
    return min(row.rms for one in found for row in one.engines if row.start == one.start)


def _least(rows: list[EngineForecast]) -> Start:
    """Return the start of least error; of tables all cells are taken up to a multiple of what is believed."""
    by_start = {row.start: row.rms for row in rows if row.start is not None}
    if by_start.get("cells", math.inf) <= BELIEVED * by_start.get("pairs", math.inf):
        by_start.pop("pairs", None)
    else:
        by_start.pop("cells", None)
    return min(by_start, key=lambda start: by_start[start])


def _rows(domain: Domain, n: int, settings: Settings, max_queries: int, dense: bool) -> list[EngineForecast]:
    budget, demand = alike(settings.of_row), _demand(domain, settings)
    axes = [axis for axis, size in enumerate(domain.shape) if size > 1]
    cell = budget.neighbours.table_l1() * math.sqrt(2.0) / (_laplace_epsilon(n, settings) * n)  # deviation
    rms = _of_cells(domain, axes, demand, cell, dense, fitted=False)
    rows = [EngineForecast("one noisy histogram", rms, normal_quantile(0.025) * rms)]
    with contextlib.suppress(InvalidParameterError):  # no sampler draws so wide a noise
        numbers = UnconditionalNumbers.calibrated(
            budget, n=n, answers=max_queries, grid_bits=session_grid_bits(n)
        )
        own, (alone, tested) = numbers.deviation, (numbers.margins(1, beta, 1)[2] for beta in (0.05, 0.025))
        rows.append(EngineForecast("noise on every answer", own, alone))
        # the rest is for tests, and for questions beyond those announced
        kept = float((1 - KNOWN_TESTS) ** 2)
        kept = kept if numbers.order is None else math.sqrt(kept)
        rows.append(EngineForecast("session of numbers", own / kept, tested / kept, "numbers"))
    if not axes:  # one cell: every answer is known
        return [*rows, EngineForecast("session from levels", 0.0, 0.0, "levels")]
    if len(axes) == 1:
        rms = _of_levels(domain, axes[0], n, budget, demand, dense)
        return [*rows, EngineForecast("session from levels", rms, 2.0 * rms, "levels")]
    # all that is bought must be one of the sets that were counted at load
    counted = settings.reach is not None and settings.reach.sets is not None
    if domain.size <= MOST_CELLS and not counted:
        rms = min(UNKNOWN, _of_cells(domain, axes, demand, cell / float(1 - KNOWN_TESTS), dense, fitted=True))
        rows.append(EngineForecast("session from all cells", rms, 2.0 * rms, "cells"))
    rms = UNKNOWN if dense else _of_listening(domain, n, settings, max_queries)
    return [*rows, EngineForecast("session that listens", rms, 2.0 * rms, "pairs")]


def budget_of_numbers(settings: Settings) -> Budget:
    """Return the budget of a session of numbers: without its delta where Laplace noise errs less."""
    budget, asked = settings.budget, settings.expects
    bare = attrs.evolve(budget, delta=0.0) if budget.order is None else budget
    numbers = UnconditionalNumbers.calibrated(settings.of_row, n=1, answers=asked, grid_bits=0)
    return bare if numbers.order is None else budget


def _laplace_epsilon(n: int, settings: Settings) -> float:
    """Return the epsilon of Laplace noise in a budget, which a given order, that suits Gaussian, prices."""
    epsilon = alike(settings.of_row).epsilon
    if settings.budget.order is None:
        return epsilon
    return min(epsilon, float(account_of_purchases(n, settings).capacity * TICK))


def _demand(domain: Domain, settings: Settings) -> Demand:
    """Return what is expected of the questions before any was asked."""
    rule = listening_rule(domain, settings.announced, settings.reach)
    return Demand.of(domain, (), rule.announced, rule.listed)


def _of_cells(
    domain: Domain, axes: list[int], demand: Demand, cell: float, dense: bool, *, fitted: bool
) -> float:
    """Return the error of questions that are sums of cells with this deviation, or of a fit to these."""
    if dense or len(axes) > MOST_FORESEEN:  # of half of the cells, each 0 or 1
        return math.sqrt(min(domain.size, 10**300) / 4.0) * cell
    levels = levels_of(domain)
    key = tuple((axis, levels[axis].finest) for axis in axes)
    known = informed(levels, demand.subspaces, rows_of([key], len(domain.shape)))[:, 0] / cell**2
    if fitted:
        known = known + Predictor(domain).known(demand.subspaces)
    with np.errstate(divide="ignore", over="ignore"):
        rms = float(np.sqrt((demand.weights / known).sum()))
    return rms if rms < math.inf else sys.float_info.max


def _of_levels(domain: Domain, axis: int, n: int, budget: Budget, demand: Demand, dense: bool) -> float:
    """Return the error of a fit to the levels of one attribute, of the law of less noise."""
    tables = levels(domain, axis)
    unit = math.sqrt(2.0) * budget.neighbours.table_l1() * len(tables) / budget.epsilon
    if not budget.pure:
        squared = budget.neighbours.table_squared()
        unit = min(unit, math.sqrt(squared * len(tables)) / gaussian_mu(budget.epsilon, budget.delta))
    if dense:
        return min(UNKNOWN, math.sqrt(domain.size / 4.0) * unit / n)
    return min(UNKNOWN, Predictor(domain).expecting((one, unit / n) for one in tables).expected(demand))


def _of_listening(domain: Domain, n: int, settings: Settings, questions: int) -> float:
    """Return the error of a session that listens, of questions over the sets announced.

    Where no sets were, nobody knows how many attributes of a wide table will be combined: it is the geometric
    mean of two errors, of questions over few attributes and of questions over all.
    """
    told, reach = settings.announced, settings.reach
    live = [axis for axis, size in enumerate(domain.shape) if size > 1]
    account, near = account_of_purchases(n, settings), settings.of_row.neighbours

    def error(some: Domain, rule: DemandPurchases) -> float:
        return min(UNKNOWN, rule.expected(Facts(some, n, account, near, rule.start()), questions))

    if told.sets or len(live) <= FEW:
        return error(domain, listening_rule(domain, told, reach))
    of_few = DemandPurchases.of((), reach and Reach(reach.cells), told.count)  # places are others there
    few, every = error(_few_of(domain, live), of_few), UNKNOWN
    if len(live) <= MOST_FORESEEN:
        every = error(domain, DemandPurchases.of((), reach, told.count))
    return math.sqrt(few * every)


def _few_of(domain: Domain, live: list[int]) -> Domain:
    """Return the domain of a few of these attributes, evenly from the shortest to the longest."""
    ranked = sorted(live, key=lambda axis: domain.shape[axis])
    return domain.project(
        *(domain.names[ranked[place * (len(live) - 1) // (FEW - 1)]] for place in range(FEW))
    )
