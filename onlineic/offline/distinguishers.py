"""The iterative construction: a distinguisher finds a badly answered query, an update rule repairs it.

Proof: docs/theory/offline.md, 12.10.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, Literal, final

import attrs

from onlineic.accounting.budget import Budget
from onlineic.bounds.certificates import Certificate, certificate, least_error
from onlineic.bounds.offline import offline_ic_accuracy
from onlineic.bounds.online import shown_up
from onlineic.data.private import PrivateData
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    check_choice,
    checked_integer,
    checked_real,
    shown,
)
from onlineic.noise.sources import Noise
from onlineic.offline.construction import Construction, Workload, construct, finished
from onlineic.offline.release import Release
from onlineic.offline.rounds import Composition, Distinguisher, Rounds, paid_rounds
from onlineic.updates.base import ExactBound, UpdateRule, check_rule, proven_bound, rule_at, rule_for_stream
from onlineic.updates.multiplicative_weights import MultiplicativeWeights

Rule = UpdateRule[Any]
MOST_ROUNDS = 10**6
LARGEST_ALPHA = 1e6  # far beyond 1, where any promise is empty


def iterative_construction(
    data: PrivateData,
    queries: Iterable[Any],
    budget: Budget,
    *,
    update: Rule | None = None,
    alpha: float | None = None,
    rounds: int | None = None,
    variant: Literal["tight", "book"] = "tight",
    distinguisher: Distinguisher | None = None,
    beta: float = 0.05,
    noise: Noise | None = None,
) -> Construction:
    """Return D with |f(x) - f(D)| <= alpha for every query f of a class, with probability 1 - beta.

    In each round a query with a nearly largest gap is chosen and answered afresh; if the noisy gap is small D
    is returned, else the rule updates D. The whole is (epsilon, delta)-private for every class, rule and
    accuracy: all rounds are paid for (theory 12.10).

    Dwork & Roth (2014), Algorithm 8 and Theorems 5.5 to 5.7, with 32 and 64 for the printed constants 8 and
    16.

    Args:
        queries: Iterable of Expression, Query or arrays of weights. The class, public; copies and constants
            cost nothing.
        update: Any rule; None: `MultiplicativeWeights` of this variant. A rule without T(alpha) needs
            `rounds`, and is certified where it stops.
        alpha: Error to promise; None: the least that the budget allows.
        rounds: How many rounds to pay for, in place of alpha.
        variant: book: Theorem 5.7, gaps above alpha/2 are repaired, it stops below 3 alpha/4. tight: the
            margins of the noise actually drawn, certified as in a session; several times more accurate.
        distinguisher: None: `NoisyMax`, and `ExponentialMechanism` under zero-concentrated accounting.
        beta: In [1e-100, 1).

    Raises:
        InfeasibleAccuracyError: If alpha is below the least that the budget allows, which the message names.

    Examples:
        >>> from onlineic.offline import iterative_construction
        >>> domain = ic.Domain.of(age=range(16), sex=["F", "M"])
        >>> ages = np.minimum(15, np.arange(200_000) % 37)  # more than half are 15
        >>> data = ic.PrivateData.from_records({"age": ages, "sex": ["F", "M"] * 100_000}, domain)
        >>> ranges = [ic.where(age=ic.below(a), sex=s) for a in range(1, 16) for s in ("F", "M")]
        >>> built = iterative_construction(data, ranges, ic.Budget(1.0, 1e-9))
        >>> truth = np.array([np.mean(ages < a) / 2 for a in range(1, 16) for s in ("F", "M")])
        >>> bool(np.abs(built.answers(ranges) - truth).max() < built.error_bound <= built.alpha < 0.08)
        True
    """
    release = Release.of(data, budget, noise, beta, least=1e-100)
    check_rule(update)
    check_choice("variant", variant, "tight", "book")
    if distinguisher is not None:
        check_choice("distinguisher", distinguisher, "noisy max", "exponential")
    if alpha is not None:
        alpha = checked_real("alpha", alpha, above=0.0, at_most=LARGEST_ALPHA)
    if rounds is not None:
        rounds = checked_integer("rounds", rounds, at_least=1, at_most=MOST_ROUNDS)
    workload = Workload.of(queries, data.domain, data.n, budget.neighbours)
    default = MultiplicativeWeights(variant=variant)
    rule = rule_for_stream(default if update is None else update, len(workload.queries), data.n)
    settle = _Settings(workload, budget, rule, data.domain, distinguisher, release.beta)
    settled = settle.book(alpha, rounds) if variant == "book" else settle.tight(alpha, rounds)
    rule = rule_at(rule, data.domain, settled.relied)
    start = rule.init(data.domain)
    run = construct(release, workload, settled.plan, rule, start, settled.relied, stop=settled.stop)
    if run.stopped:
        found = run.gaps[-1] + 0.5 + sum(settle.radii(settled.plan))
        error = found / workload.units + workload.rounding
    else:  # no longer sequence of updates exists: no gap above `relied` is left
        error = settled.relied + workload.rounding if settled.alpha < math.inf else math.inf
    return finished(release, run, workload, settled.plan, alpha=settled.alpha, error_bound=error)


@final
@attrs.frozen
class _Settled:
    """All that a construction fixes before it reads.

    Attributes:
        stop: Least noisy gap that is repaired, grid units.
        relied: alpha_d: every repaired gap is larger, and every answer is off by less, with probability 1 -
            beta.
        alpha: Promised error; inf for a rule without T(alpha).
    """

    plan: Rounds
    stop: int
    relied: float
    alpha: float


@final
@attrs.frozen(eq=False)
class _Settings:
    """The public facts that settle rounds, noise and threshold."""

    workload: Workload
    budget: Budget
    rule: Rule
    domain: Domain
    distinguisher: Distinguisher | None
    beta: float

    def book(self, alpha: float | None, rounds: int | None) -> _Settled:
        """Theorem 5.7: T(alpha/2) rounds, stop below 3 alpha/4."""
        bound = self._bound()
        if bound is None:
            raise InvalidParameterError(
                f"update must have a proven T(alpha) for variant='book', got {shown(self.rule, 200)}; "
                f"use 'tight'."
            )
        if rounds is not None:
            raise InvalidParameterError("rounds must be None for variant='book': T(alpha/2) settles them.")
        # a number that a neighbour moves by r records is as noisy as that of one record among n/r
        moved = max(self.workload.sensitivity, self.workload.tested)
        alike = min(self.workload.n, self.workload.units // moved)

        def solved(composition: Literal["basic", "advanced"] | None) -> _Settled:
            accuracy = offline_ic_accuracy(
                bound,
                queries=len(self.workload.queries),
                n=alike,
                epsilon=self.budget.epsilon,
                delta=self.budget.delta,
                beta=self.beta,
                alpha=alpha,
                composition=composition,
            )
            stop = math.ceil(accuracy.stop * self.workload.units)
            plan = self._plan(accuracy.rounds, accuracy.composition)
            return _Settled(plan, stop, accuracy.alpha / 2, accuracy.alpha + self.workload.rounding)

        try:
            return solved(None)
        except InfeasibleAccuracyError:
            raise
        except InvalidParameterError:
            return solved("basic")  # Corollary 3.21 fails at a large epsilon: pure composition always holds

    def tight(self, alpha: float | None, rounds: int | None) -> _Settled:
        """The margins of the noise itself; of all compositions the one that promises most."""
        kinds: tuple[Composition, ...] = ("basic",) if self.budget.pure else ("basic", "zcdp")
        bound = self._bound()
        if bound is None:
            if rounds is None:
                raise InvalidParameterError(
                    f"rounds must be given for {shown(self.rule, 200)}, which has no proven T(alpha)."
                )
            return self._uncertified(kinds, alpha, rounds)
        if alpha is not None and rounds is not None:
            raise InvalidParameterError(
                f"rounds must be None with alpha, got alpha={alpha}, rounds={rounds}; alpha settles them."
            )
        found: list[tuple[Certificate, Composition]] = []
        for kind in kinds:
            margins = self._margins(kind)
            try:
                best = (
                    least_error(bound, margins, MOST_ROUNDS)
                    if rounds is None
                    else certificate(bound, margins, rounds)
                )
            except InfeasibleAccuracyError:
                continue
            found.append((best, kind))
        if not found:
            raise InfeasibleAccuracyError(
                f"n must be larger at epsilon={self.budget.epsilon}, delta={self.budget.delta}, got "
                f"n={self.workload.n}: no number of rounds leaves answers sharper than the gaps they repair; "
                "raise n or epsilon."
            )
        best, kind = min(found, key=lambda one: one[0].error_bound)
        wanted = None if alpha is None else alpha - self.workload.rounding
        if wanted is not None and wanted < best.error_bound:
            raise InfeasibleAccuracyError(
                f"alpha must be >= {shown_up(best.error_bound + self.workload.rounding)} at "
                f"n={self.workload.n}, epsilon={self.budget.epsilon}, delta={self.budget.delta}, "
                f"beta={self.beta}, got alpha={alpha}; raise alpha, n or epsilon."
            )
        if wanted is not None:
            best = self._fewest(bound, kind, best, wanted)
        plan = self._plan(best.cutoff, kind)
        stop = math.ceil(best.alpha * self.workload.units + 0.5) + self.radii(plan)[0] + 1
        return _Settled(plan, stop, best.alpha, best.error_bound + self.workload.rounding)

    def radii(self, plan: Rounds) -> tuple[int, int]:
        """How far an answer and a choice of any round can be off, grid units, with probability 1 - beta."""
        share = self.beta / (2 * plan.rounds)
        return plan.answer_radius(share), plan.choice_radius(len(self.workload.queries), share)

    def _uncertified(self, kinds: tuple[Composition, ...], alpha: float | None, rounds: int) -> _Settled:
        """A rule without T(alpha): it stops where a gap cannot be told from noise, or where alpha is kept."""
        plan = min((self._plan(rounds, kind) for kind in kinds), key=lambda one: sum(self.radii(one)))
        answer, choice = self.radii(plan)
        stop = 2 * answer + 1
        if alpha is not None:
            stop = (
                math.floor((alpha - self.workload.rounding) * self.workload.units - 0.5) - answer - choice + 1
            )
            if stop <= answer:
                least = (2 * answer + choice + 0.5) / self.workload.units + self.workload.rounding
                raise InfeasibleAccuracyError(
                    f"alpha must be >= {shown_up(least)} for {rounds} rounds at n={self.workload.n}, got "
                    f"alpha={alpha}; raise alpha or n, or take fewer rounds."
                )
        return _Settled(plan, stop, max(stop - answer, 1) / self.workload.units, math.inf)

    def _fewest(
        self, bound: Callable[[float], float], kind: Composition, best: Certificate, wanted: float
    ) -> Certificate:
        """The fewest rounds that promise `wanted`: errors fall with the rounds up to the best number."""
        margins = self._margins(kind)

        def promises(rounds: int) -> bool:
            try:
                return certificate(bound, margins, rounds).error_bound <= wanted
            except InfeasibleAccuracyError:
                return False

        fewest = bisect_left(range(best.cutoff), True, lo=1, hi=best.cutoff, key=promises)
        return best if fewest == best.cutoff else certificate(bound, margins, fewest)

    def _plan(self, rounds: int, composition: Composition) -> Rounds:
        return paid_rounds(
            self.budget,
            rounds,
            composition,
            sensitivity=self.workload.sensitivity,
            tested=self.workload.tested,
            distinguisher=self.distinguisher,
        )

    def _margins(self, composition: Composition) -> Callable[[int], tuple[float, float, float]]:
        """rounds -> how far a repaired gap, the gap of the query that stops, and a number can be off.

        Not stopped: |S + z - h| >= stop, so the gap is above alpha_d. Stopped: |S - h| < stop + answer, and
        no other is above that by more than `choice`. S and h are whole units, h within half a unit of f(D).
        """

        def margins(rounds: int) -> tuple[float, float, float]:
            try:
                answer, choice = self.radii(self._plan(rounds, composition))
            except InvalidParameterError as error:  # noise beyond the samplers
                raise InfeasibleAccuracyError(str(error)) from None
            units = self.workload.units
            return (answer + 2.5) / units, (answer + choice) / units, (answer + 1) / units

        return margins

    def _bound(self) -> Callable[[float], float] | None:
        """alpha -> T(alpha) of the rule, or None where none is proven."""
        exact = self.rule.exact_update_bound if isinstance(self.rule, ExactBound) else self.rule.update_bound
        return proven_bound(exact, self.domain, otherwise=math.inf)
