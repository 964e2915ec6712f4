"""`onlineic demo`: a random stream about the public Adult table, beside the trivial baselines."""

import argparse
import math
import os
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, TextIO

import attrs

from onlineic._typing import Floats
from onlineic.accounting.budget import Budget
from onlineic.bounds.online import least_n
from onlineic.cli.numbers import whole
from onlineic.data.private import PrivateData
from onlineic.datasets.adult import adult5, adult5_domain
from onlineic.display.figures import new_figure
from onlineic.display.text import records_bound, upward
from onlineic.domain.domain import Domain
from onlineic.errors import BudgetsAddWarning, InvalidInputError, MissingExtraError, VacuousPromiseWarning
from onlineic.evaluate.comparison import known_baselines
from onlineic.evaluate.report import plot_errors, plot_marginal, rows, text_table
from onlineic.evaluate.streams import exact_marginal, exact_values, random_stream
from onlineic.evaluate.traces import Trace, coverage, trace
from onlineic.noise.sources import Noise, SimulatedNoise
from onlineic.queries.expressions import Expression, where
from onlineic.session.session import OnlineIC
from onlineic.updates.multiplicative_weights import MultiplicativeWeights


def _demo(arguments: argparse.Namespace) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetsAddWarning)  # many engines on one table, which is public
        return _shown(arguments)


def _shown(arguments: argparse.Namespace) -> int:
    budget = Budget(arguments.epsilon, arguments.delta)
    domain = adult5_domain()
    data = PrivateData.from_counts(*adult5(), domain)
    stream = random_stream(domain, arguments.queries)
    truths = exact_values(data, stream)
    simulated = f"simulated with seed {arguments.seed}, NOT PRIVATE"
    source = "the system's entropy" if arguments.seed is None else simulated
    _say(
        f"{data.n:,} records of the Adult census table, {len(domain.names)} attributes, {domain.size:,} "
        f"cells. {len(stream):,} random range and point queries, answered in order under one budget of "
        f"epsilon {budget.epsilon:g}, delta {budget.delta:g}. Noise: {source}. The table is public: hence "
        "the exact counts and errors below, which nobody could show of a private one."
    )

    def noise() -> Noise | None:
        return None if arguments.seed is None else SimulatedNoise(arguments.seed)

    asked = len(stream)
    session = OnlineIC(data, budget, max_queries=asked, questions=asked, noise=noise())
    line = _Progress(sys.stderr, len(stream))
    main_trace = trace(
        "session", session, data, stream, truths=truths, seed=arguments.seed, progress=line.show
    )
    line.clear()
    _print_examples(session, stream[:4], truths)
    baselines = [
        trace(label, make(noise()), data, stream, truths=truths, seed=arguments.seed)
        for label, make in known_baselines(data, budget, stream).items()
    ]
    traces = [main_trace, *baselines]
    print(text_table(traces))
    print(f"errors: fractions of the {data.n:,} records; * smallest of its column\n")
    _say(_verdict(traces, domain))
    kept, bounded = coverage([main_trace])
    _say(
        f"Stated bounds of the session: {kept:,} of {bounded:,} answers that had one lie within it "
        f"({kept / max(bounded, 1):.1%}). Each is stated at 95%; most are easy, and their true errors far "
        "smaller than tests and the noise of the first tables can certify."
    )
    _say(_textbook(data, budget, stream, truths, noise()))
    return _plot(arguments.plot, traces, session, data)


def _print_examples(session: OnlineIC, queries: Sequence[Expression], truths: Floats) -> None:
    """Show a few answers; the session remembers them, so that asking again is free."""
    n = round(session.answer(where()).count)
    for query, truth in zip(queries, truths, strict=False):
        answer = session.answer(query)
        bound = (
            f"± {records_bound(n * answer.error_bound)}"
            if math.isfinite(answer.error_bound)
            else "(no bound)"
        )
        print(f"  {query!r}\n      {answer.count:,.0f} {bound} records; exactly {n * truth:,.0f}")
    print()


def _verdict(traces: Sequence[Trace], domain: Domain) -> str:
    """Say which baselines are more accurate, and what they were told."""
    session, *others = rows(traces)
    better = [row for row in others if row.rms < session.rms]
    if not better:
        return f"No baseline has a smaller rms error than the session's {session.rms:.4f} on this stream."
    named = "; ".join(f"{row.label} {row.rms:.4f}" for row in sorted(better, key=lambda row: row.rms))
    return (
        f"Where baselines win: {len(better)} of {len(others)} have a smaller rms error on this stream "
        f"than the session's {session.rms:.4f}: {named}. Per-query noise and tables were told the number "
        "of queries, of distinct ones, or the attribute sets in advance. The histogram was told nothing, "
        "but holds every cell, and its error grows with their number: "
        f"{domain.size:,} are few for it. It and the tables are "
        "accurate for queries chosen without knowledge of their noise, as these were."
    )


def _textbook(
    data: PrivateData, budget: Budget, stream: Sequence[Expression], truths: Floats, noise: Noise | None
) -> str:
    """Say in a line what the book's theorem promises at this size, and what its algorithm does."""
    update = MultiplicativeWeights(variant="book")
    try:
        with warnings.catch_warnings():  # the line below says it
            warnings.simplefilter("ignore", VacuousPromiseWarning)
            session = OnlineIC.textbook(
                data,
                epsilon=budget.epsilon,
                delta=budget.delta,
                max_queries=len(stream),
                update=update,
                noise=noise,
            )
    except InvalidInputError as error:
        return f"Textbook mode: {error}"
    done = trace("textbook", session, data, stream, truths=truths)
    alpha, bound = session.plan.alpha, session.plan.error_bound
    needed = least_n(
        lambda wanted: update.update_bound(data.domain, wanted) or math.inf,
        0.05 / 3,
        max_queries=len(stream),
        epsilon=budget.epsilon,
        delta=budget.delta,
    )
    return (
        f"Textbook mode: alpha = {alpha:.3f}, every error at most 3 alpha = {upward(bound)}"
        f"{', no promise at all' * (bound >= 0.5)}; here rms {done.rms_error:.4f} with {done.hard} hard. "
        f"Loose at this n because the theorem pays for {session.plan.hard_answers} worst-case updates "
        "(T(alpha) = 4 ln|X| / alpha^2) and keeps all tests within alpha at once; an error of 0.05 would "
        f"need n = {needed:.2g}."
    )


def _say(text: str) -> None:
    print(textwrap.fill(text, 106, break_on_hyphens=False) + "\n")


def _plot(path: str | None, traces: Sequence[Trace], session: OnlineIC, data: PrivateData) -> int:
    """Write the figure if matplotlib is there, else say how to get it."""
    try:
        figure = new_figure(12.0, 4.6)
    except MissingExtraError as error:
        print(f"No plot: {error}")
        return 0
    left, right = figure.subplots(1, 2)
    plot_errors(left, traces)
    ages = range(17, 91)
    belief = session.hypothesis.evaluate_many([where(age=age).bind(data.domain) for age in ages])
    plot_marginal(right, ages, exact_marginal(data, "age"), belief, name="age", n=data.n)
    if path is None:  # no picture is left in the folder from which it was called
        path = os.path.join(tempfile.mkdtemp(prefix="onlineic-demo-"), "errors.png")
    figure.savefig(path)
    print(f"Plot: {path}")
    return 0


@attrs.define
class _Progress:
    """One line on a terminal, at most five times a second, once the job has lasted two seconds."""

    out: TextIO
    total: int
    began: float = attrs.field(factory=time.monotonic)
    shown: float = 0.0
    width: int = 0

    def show(self, stats: Any) -> None:
        """Rewrite the line from a session's statistics."""
        now = time.monotonic()
        if not self.out.isatty() or now - self.began < 2.0 or now - self.shown < 0.2:
            return
        text = (
            f"{stats.asked:,} of {self.total:,} asked, {stats.hard} hard, at least {stats.hard_left} left, "
            f"{stats.spent:.0%} spent, {stats.asked / (now - self.began):,.0f}/s"
        )
        self.out.write("\r" + text.ljust(self.width))
        self.out.flush()
        self.shown, self.width = now, len(text)

    def clear(self) -> None:
        """Wipe the line."""
        if self.width:
            self.out.write("\r" + " " * self.width + "\r")
            self.out.flush()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `onlineic demo` takes."""
    parser.description = "Answer a random stream about the public Adult table, beside the trivial baselines."
    parser.add_argument("--queries", type=whole, default=4000, metavar="Q", help="default 4000")
    parser.add_argument("--epsilon", type=float, default=1.0, help="default 1")
    parser.add_argument("--delta", type=float, default=1e-9, help="default 1e-9")
    parser.add_argument(
        "--seed", type=partial(whole, least=0), help="simulated noise: repeatable, NOT PRIVATE"
    )
    parser.add_argument("--plot", metavar="FILE", help="by default in a temporary folder, which is printed")
    parser.set_defaults(run=_demo)
