"""The audit that anyone can run: are noise, tests and losses what is claimed, and would an audit tell?

Every gate is decided at 1e-9, so that right code passes however often it is run. The last rows are mechanisms
with a planted breach: there a gate passes if the breach is found.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Literal, TypeVar, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget
from onlineic.audit.breaches import (
    NEIGHBOUR,
    RECORD_BREACHES,
    RIGHT_RECORD,
    RIGHT_SESSIONS,
    SESSION_BREACHES,
    TABLE,
    THRESHOLD_BREACHES,
    SessionBreach,
)
from onlineic.audit.laws import Law, transcript_law, worst_loss
from onlineic.audit.observe import black_box_epsilon, goodness_of_fit, observe
from onlineic.display.html import card, heading, table
from onlineic.errors import SessionExhaustedError, WideBoundWarning, checked_integer
from onlineic.noise.sources import Noise, SystemNoise
from onlineic.progress import advance, silenced
from onlineic.sparse.above_threshold import AboveThreshold, Sparse
from onlineic.sparse.base import Hit, Value
from onlineic.sparse.exponential import ExponentialSparse
from onlineic.sparse.gumbel import GumbelSparse
from onlineic.sparse.laplace import LaplaceSparse

T = TypeVar("T")
Kind = Literal["noise", "tests", "loss", "session", "breach"]
GATE = 1e-9
ROUNDING = 1e-9  # of sums that are exact in theory
CELLS = 200  # of a law of noise that are told apart, either way
HITS = 3  # that exponential tests pay


@final
@attrs.frozen
class Gate:
    """One row of an audit.

    Attributes:
        found: A p-value for noise and tests; else epsilon: exact for a loss and for variants of the sparse
            vector technique, a lower bound at confidence .95 for sessions.
        claimed: Epsilon; None for p-values.
    """

    kind: Kind
    name: str
    passed: bool
    found: float
    claimed: float | None = None


@final
@attrs.frozen(repr=False)
class AuditReport:
    """What `run_audit` found."""

    gates: tuple[Gate, ...]

    @property
    def passed(self) -> bool:
        """Whether every gate passed."""
        return all(gate.passed for gate in self.gates)

    def __repr__(self) -> str:
        lines: list[str] = []
        for kind, title in TITLES.items():
            rows = [gate for gate in self.gates if gate.kind == kind]
            lines += ["", title] if lines else [title]
            for row in rows:
                claim = "" if row.claimed is None else f"  claimed {row.claimed:.4g}"
                lines.append(f"  {'ok  ' if row.passed else 'FAIL'}  {row.found:9.3g}{claim}  {row.name}")
        return "\n".join([*lines, "", self._told])

    @property
    def _told(self) -> str:
        failed = sum(not gate.passed for gate in self.gates)
        return f"{len(self.gates)} gates, {failed or 'none'} failed."

    def _repr_html_(self) -> str:
        parts = []
        for kind, title in TITLES.items():
            rows = []
            for gate in [one for one in self.gates if one.kind == kind]:
                claim = "" if gate.claimed is None else f"{gate.claimed:.4g}"
                rows.append([gate.name, "ok" if gate.passed else "FAIL", f"{gate.found:.3g}", claim])
            parts += [heading(title), table(["", "", "found", "claimed"], rows, left=2)]
        return card(self._told, *parts)


TITLES: dict[Kind, str] = {
    "noise": f"Drawn noise against its law: p-value, must be above {GATE:g}",
    "tests": f"How often a test fires against its law: p-value, must be above {GATE:g}",
    "loss": "Largest loss of the mechanism that runs, an exact sum: epsilon, must be what is claimed",
    "session": "Whole sessions on neighbouring tables: lower bound on epsilon (95 %), at most the claim",
    "breach": "Mechanisms with a planted breach: epsilon found (a lower bound), must be above the claim",
}


def run_audit(*, runs: int = 3000, noise: Noise | None = None) -> AuditReport:
    """Audit this installation: its noise, the tests and numbers of sessions, sessions, and the audit itself.

    Mechanisms of one call, as in `offline`, are not run: of them it tells the noise alone.

    Exact losses: `worst_loss`. Drawn ones: Clopper-Pearson bounds of an event that half of the runs chose
    (`black_box_epsilon`). A bound from below proves a breach and never its absence.

    Args:
        runs: At least 1000. Sessions on either of two neighbouring tables for each row of the sessions and
            the breaches. Ten times as many values of each noise are drawn.
        noise: The source that is audited, by default the system's entropy.

    Returns:
        About five minutes of work at the default, on one core.
    """
    runs = checked_integer("runs", runs, at_least=1000)
    source = noise if noise is not None else SystemNoise()
    stage = "noise, tests and losses"
    advance(stage, 0, 1)
    drawn = (*_noise_gates(source, 10 * runs), *_test_gates(source, 10 * runs), *_loss_gates())
    advance(stage, 1, 1)
    return AuditReport((*drawn, *_session_gates(source, runs), *_breach_gates(source, runs)))


def _noise_gates(noise: Noise, size: int) -> Iterator[Gate]:
    """Chi-square over the cells of each law, at scales below, at and far above one."""
    for scale in (Fraction(1, 3), Fraction(37, 10), Fraction(1000)):
        for method, draw in (("discrete_laplace", noise.discrete_laplace), ("geometric", noise.geometric)):
            law = Law(method, scale)  # type: ignore[arg-type]
            yield _fits(f"{method}, scale {scale}", draw(scale, size), float(scale), _masses_of(law))
    for sigma in (1, 100):
        yield _fits(
            f"discrete_gaussian, sigma {sigma}", noise.discrete_gaussian(sigma, size), sigma, _gaussian(sigma)
        )
    nothing, numbers = np.zeros(size, np.int64), Value(sensitivity=1, grid_bits=0)
    for sparse, width, masses in _numbers_of():
        drawn: Any = sparse.measure(Hit(side=1, excess=0), numbers, 0, nothing, noise)
        counts = np.rint(drawn.values * sparse.n).astype(np.int64)
        yield _fits(f"{type(sparse).__name__}, numbers of its hits", counts, width, masses)


def _numbers_of() -> Iterator[tuple[Any, float, Callable[[Ints], Floats]]]:
    """Return mechanisms with the scales and laws of numbers by which their prices are settled."""
    laplace, exponential, gumbel = LaplaceSparse(1000, 1.0, 5000, 3), _exponential(1.0), _gumbel()
    for pure in (laplace, exponential):
        law = Law("discrete_laplace", pure.number_scale or Fraction(1))
        yield pure, float(law.scale), _masses_of(law)
    sigma = int(gumbel.ratio * gumbel.scale)
    yield gumbel, float(sigma), _gaussian(sigma)


def _gumbel() -> GumbelSparse:
    return GumbelSparse(10_000, 1.0, 1e-6, Fraction(19), Fraction(40), 400)


def _exponential(epsilon: float) -> ExponentialSparse:
    """Return settings that pay three hits and their numbers, at about a threshold of 60 records."""
    plan: dict[str, Any] = {"n": 1000, "hard_answers": HITS, "max_queries": 10, "threshold": 0.06}
    return ExponentialSparse.calibrated(Budget(epsilon), **plan, false_hits=0.0, fresh=True)


def _masses_of(law: Law) -> Callable[[Ints], Floats]:
    def masses(edges: Ints) -> Floats:
        return np.diff(np.exp(law.log_below(edges.astype(np.float64))))

    return masses


def _gaussian(sigma: int) -> Callable[[Ints], Floats]:
    def masses(edges: Ints) -> Floats:
        points = np.arange(-40 * sigma, 40 * sigma + 1)
        law = np.exp(-0.5 * (points / sigma) ** 2)
        law /= law.sum()
        held = np.bincount(np.clip(np.searchsorted(edges, points, side="right") - 1, 0, len(edges) - 2), law)
        return np.asarray(held, np.float64)

    return masses


def _fits(name: str, drawn: Ints, scale: float, masses: Callable[[Ints], Floats]) -> Gate:
    """Values are put into cells of a width that leaves a few hundred of them."""
    width = max(1, math.ceil(scale * 20 / CELLS))
    edges = np.arange(-CELLS, CELLS + 2) * width
    edges[0], edges[-1] = -(10**12), 10**12
    law = {str(cell): float(mass) for cell, mass in enumerate(masses(edges))}
    cells = np.searchsorted(edges, drawn, side="right") - 1
    p_value = goodness_of_fit(Counter(map(str, cells.tolist())), law)
    return Gate("noise", name, p_value > GATE, p_value)


def _test_gates(noise: Noise, size: int) -> Iterator[Gate]:
    """P(hit | gap) of the Gumbel test, and whole transcripts of Laplace tests, against exact laws."""
    gumbel = _gumbel()
    for level in (-1, 0, 1, 3):  # (threshold - gap)/scale
        state, hits = gumbel.init(), 0
        gaps, ones = np.full(64, 400 - 40 * level), np.ones(64, np.int64)
        done = 0
        while done < size:
            state, easy, hit = gumbel.step_many(state, gaps, ones, noise)
            done, hits = done + easy + (hit is not None), hits + (hit is not None)
        chance = -math.expm1(-math.exp(-level))
        p_value = goodness_of_fit({"easy": done - hits, "hit": hits}, {"easy": 1 - chance, "hit": chance})
        yield Gate(
            "tests", f"GumbelSparse, gap {-level:+d} scales from its threshold", p_value > GATE, p_value
        )
    sparse = Sparse(1.0, 10, 2)
    values = (0, 10, 30)
    counts: Counter[str] = Counter()
    for _ in range(size // 10):
        text, past = "", sparse.init()
        for value in values:
            try:
                past, fired = sparse.step(past, value, noise)
            except SessionExhaustedError:
                break
            text += str(int(fired))
        counts[text] += 1
    p_value = goodness_of_fit(counts, transcript_law(observe(sparse.init(), sparse.step), values))
    yield Gate("tests", "Sparse, transcripts of three tests with two hits", p_value > GATE, p_value)


def _loss_gates() -> Iterator[Gate]:
    """What the code that runs asks of its noise, read off by a script, costs what it says and no less."""
    for epsilon in (0.3, 1.0):
        above = AboveThreshold(epsilon, 7)
        yield _loss("AboveThreshold", worst_loss(observe(above.init(), above.step)), epsilon)
        for allocation in ("restarts", "optimal"):
            many = Sparse(epsilon, 60, 3, allocation=allocation)
            yield _loss(f"Sparse, 3 hits, {allocation}", worst_loss(observe(many.init(), many.step)), epsilon)
        laplace = LaplaceSparse(1000, epsilon, 5000, 3)

        def step(state, value, noise, sparse=laplace):  # type: ignore[no-untyped-def]
            state, hit = sparse.step(state, max(value, 0), 1, noise)
            return state, hit is not None

        found = worst_loss(observe(laplace.init(), step), number_scale=laplace.number_scale)
        yield _loss("LaplaceSparse, 3 hits and their numbers", found, epsilon)
        exponential = _exponential(epsilon)

        def one_sided(state, value, noise, sparse=exponential):  # type: ignore[no-untyped-def]
            if state.hits == HITS:  # of a session its budget ends the run
                raise SessionExhaustedError("the hits that are paid must be no more than three, got another.")
            state, hit = sparse.step_table(state, value, noise)
            return state, hit is not None

        found = worst_loss(observe(exponential.init(), one_sided), number_scale=exponential.number_scale)
        yield _loss("ExponentialSparse, 3 hits and their numbers", found, epsilon)


def _loss(name: str, found: float, claimed: float) -> Gate:
    return Gate("loss", name, 0.99 * claimed <= found <= claimed * (1 + ROUNDING), found, claimed)


def _session_gates(noise: Noise, runs: int) -> Iterator[Gate]:
    for session in RIGHT_SESSIONS:
        yield _sessions(session, noise, runs, "session")
    cost, problems = _gated(RIGHT_RECORD.name, RIGHT_RECORD.found)
    fits = not problems and cost <= RIGHT_RECORD.claimed
    yield Gate("session", RIGHT_RECORD.name, fits, cost, RIGHT_RECORD.claimed)


def _breach_gates(noise: Noise, runs: int) -> Iterator[Gate]:
    for variant in THRESHOLD_BREACHES:
        loss = variant.loss()
        yield Gate("breach", variant.name, loss > variant.claimed * (1 + ROUNDING), loss, variant.claimed)
    for session in SESSION_BREACHES:
        yield _sessions(session, noise, runs, "breach")
    for record in RECORD_BREACHES:
        cost, problems = _gated(record.name, record.found)
        yield Gate("breach", record.name, bool(problems) and cost > record.claimed, cost, record.claimed)


def _sessions(session: SessionBreach, noise: Noise, runs: int, kind: Kind) -> Gate:
    """Right sessions fail, and breaches pass, if epsilon is above the claim at confidence 1 - 1e-9."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WideBoundWarning)
        here, there = _gated(
            session.name,
            lambda: [[session.run(table, noise) for _ in range(runs)] for table in (TABLE, NEIGHBOUR)],
        )
    shown = black_box_epsilon(here, there)
    breached = black_box_epsilon(here, there, alpha=GATE) > session.claimed
    return Gate(kind, session.name, breached == (kind == "breach"), shown, session.claimed)


def _gated(name: str, run: Callable[[], T]) -> T:
    """Return what a gate finds, and tell its name alone: its sessions would tell of themselves."""
    advance(name, 0, 1)
    found = silenced(run)
    advance(name, 1, 1)
    return found
