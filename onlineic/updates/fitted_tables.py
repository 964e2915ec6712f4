"""A fit to all that was released, stopped where interactions end and noise begins.

Proof: docs/theory/updates.md, 7.8.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.errors import checked_integer
from onlineic.hypothesis.base import MAX_CELLS, Hypothesis
from onlineic.hypothesis.by_sets import joint
from onlineic.hypothesis.classes import class_cells
from onlineic.hypothesis.fitting import Prior, fit
from onlineic.hypothesis.histogram import Histogram
from onlineic.hypothesis.local_fits import LocalFits
from onlineic.hypothesis.mixture import Mixture
from onlineic.hypothesis.nested import fit_nested
from onlineic.hypothesis.pieces import Pieces, PiecewiseHistogram
from onlineic.hypothesis.product import ProductHistogram
from onlineic.interactions.sizes import expected_misfit, table_key, told_by
from onlineic.queries.cuts import long_axes
from onlineic.queries.partitions import Measurement, Partition, pooled
from onlineic.updates.base import UpdateRule
from onlineic.updates.corrected import CorrectedFit, fit_of
from onlineic.updates.maximum_entropy import FittedHistogram, MaximumEntropy, start_over
from onlineic.updates.mixture import MixtureOfProducts

# of a fit to tables of hits alone, which tell no sizes: what `hypothesis.fit` calls a good fit; and of any at
# most, as at 1 a fit would not begin
USUAL_MISFIT, MOST_MISFIT = 0.75, 0.97
# class cells times tables up to which a fit may take all its evaluations: beyond, it would take longer than
# the few seconds that somebody waits for an answer
FEW_ENTRIES = 2**21
LEAST_MASS = 1e-12  # of a code in a start, whose logarithm is to be finite


@final
@attrs.frozen
class FittedTables(UpdateRule[Any]):
    """Maximum entropy where its class cells can be held, a mixture of products beyond.

    Each instalment of tables is followed by a new fit to all that was released; a single release, as of a
    hit, by a few steps more. A mixture goes on from where it stands, also after an instalment: a new one
    takes three times as long, and errs no less. A fit stops at the misfit of the best linear estimate
    (`interactions.expected_misfit`), which depends on how large the released tables show interactions to be
    beside their noise.

    No T(alpha) is proven: `update_bound` is None.

    Args:
        evaluations: Of a fit, at most: most end at their misfit long before. Where class cells times tables
            are more than 2^21, fewer in proportion, down to the 200 that a first fit of `MaximumEntropy` may
            take.
        steps, dear_steps: Evaluations after a single table; the second of fits that write many class cells,
            see `dear_evaluations` of `MaximumEntropy`.
        most_cells: Class cells up to which maximum entropy is fitted.
    """

    fits_all: ClassVar[bool] = True

    evaluations: int = 1600
    steps: int = 60
    dear_steps: int = 9
    most_cells: int = 2**22

    def __attrs_post_init__(self) -> None:
        for name in ("evaluations", "steps", "dear_steps", "most_cells"):
            object.__setattr__(self, name, checked_integer(name, getattr(self, name), at_least=1))

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Any:
        prior = joint(prior)
        if prior is None and long_axes(domain):
            pieces = Pieces.whole(domain)
            small = pieces.small
            inner = start_over(pieces) if small.size <= MAX_CELLS else MixtureOfProducts().init(small)
            return PiecewiseHistogram(pieces, inner)
        if prior is None and domain.size > MAX_CELLS:
            return MixtureOfProducts().init(domain)
        return MaximumEntropy().init(domain, prior)

    def update(self, hypothesis: Any, measurements: tuple[Measurement, ...], alpha: float) -> Any:
        before = fit_of(hypothesis)
        fit = self._fitted(before, measurements, alpha)
        if fit is before and not isinstance(measurements[-1].target, Partition):
            return hypothesis  # nothing new that can be read
        return CorrectedFit(fit, measurements)

    def _fitted(self, fit: Any, measurements: tuple[Measurement, ...], alpha: float) -> Any:
        if isinstance(fit, PiecewiseHistogram):
            return fit.updated(
                measurements, lambda inner, held, pieces: self._updated(inner, held, alpha, pieces)
            )
        return self._updated(fit, measurements, alpha, None)

    def _updated(
        self, hypothesis: Any, measurements: tuple[Measurement, ...], alpha: float, pieces: Pieces | None
    ) -> Any:
        """Return the hypothesis after what was measured last; over pieces of long attributes, if any."""
        domain = hypothesis.domain
        tables = _merged(measurements, pieces)
        if not tables:
            return hypothesis
        if not self._holds(domain, tables):
            mixture = MixtureOfProducts()
            fitted = isinstance(hypothesis, Mixture | LocalFits)
            if not fitted:
                begun: Any = mixture.init(domain)
                hypothesis = _over(hypothesis, begun, tables) if pieces is None else pieces.even(begun)
            return mixture.update(hypothesis, measurements, alpha)
        held = _begun(hypothesis) if pieces is None else start_over(pieces)
        if (nested := self._nested(held.prior, tables)) is not None:
            return nested
        goes_on = self._goes_on(hypothesis, measurements, tables, pieces)
        if goes_on and not (_is_fitted(measurements[-1]) and _is_at_levels(measurements[-1], pieces)):
            return self._further(hypothesis, tables) if _is_fitted(measurements[-1]) else hypothesis
        bought = [one for one in tables if _is_at_levels(one, pieces)]  # beside what hits have released
        if bought and (nested := self._nested(held.prior, bought)) is not None:
            return self._further(nested, tables)
        if goes_on:
            return self._further(hypothesis, tables)
        levels = domain if pieces is None else pieces.domain  # those of long attributes are of their grid
        levelled, sizes = told_by(levels, tuple(_over_codes(one, pieces) for one in tables))
        misfit = expected_misfit(levels, levelled, sizes) if levelled else USUAL_MISFIT
        misfit = min(MOST_MISFIT, max(0.0, misfit))
        rule = MaximumEntropy(self._limit(domain, tables), misfit=misfit, most_cells=self.most_cells)
        return rule.update(held, tables, alpha)

    def most_passes(self, releases: int) -> int:
        whole = MaximumEntropy(self.evaluations, misfit=USUAL_MISFIT).most_passes(releases)
        return max(whole, self.steps, self.dear_steps, MixtureOfProducts().most_passes(releases))

    def _nested(self, prior: Prior, tables: Sequence[Measurement]) -> FittedHistogram | None:
        """Return the estimate from tables that refine each other, or None if these do not."""
        found = fit_nested(prior, tables)
        if found is None:
            return None
        return FittedHistogram(found.histogram, prior, found.potentials, self.most_cells, found.exponents)

    def _goes_on(
        self,
        hypothesis: Any,
        measurements: tuple[Measurement, ...],
        tables: tuple[Measurement, ...],
        pieces: Pieces | None,
    ) -> bool:
        """Whether the last release alone is new: a further table, or one of those that were fitted, again."""
        before = [one.target for one in _merged(measurements[:-1], pieces)]
        fitted = len(getattr(hypothesis, "potentials", ()))
        return fitted == len(before) > 0 and [one.target for one in tables[:fitted]] == before

    def _further(self, hypothesis: FittedHistogram, tables: tuple[Measurement, ...]) -> FittedHistogram:
        """Return the hypothesis after some steps from where it stands, towards the last release."""
        most_cells = max(hypothesis.most_cells, self.most_cells)
        found = fit(
            hypothesis.prior,
            tables,
            hypothesis.potentials,
            histogram=hypothesis.histogram,
            evaluations=self.steps,
            dear_evaluations=self.dear_steps,
            most_cells=most_cells,
        )
        return FittedHistogram(
            found.histogram, hypothesis.prior, found.potentials, most_cells, found.exponents
        )

    def _limit(self, domain: Domain, tables: tuple[Measurement, ...]) -> int:
        """Return how many evaluations a fit to these tables may take."""
        cells = min(domain.size, class_cells([one.target for one in tables]))
        return max(1, self.evaluations * FEW_ENTRIES // max(FEW_ENTRIES, cells * len(tables)))

    def _holds(self, domain: Domain, tables: tuple[Measurement, ...]) -> bool:
        few = domain.size <= self.most_cells  # classes of tables of one attribute each are not counted
        return few or 1 < class_cells([one.target for one in tables]) <= self.most_cells

    def parameters(self, hypothesis: Any) -> tuple[Floats, ...]:
        hypothesis = fit_of(hypothesis)
        if isinstance(hypothesis, PiecewiseHistogram):
            return self.parameters(hypothesis.inner)
        return MaximumEntropy().parameters(hypothesis) if hasattr(hypothesis, "exponents") else ()

    def restored(
        self, start: Any, measurements: tuple[Measurement, ...], parameters: tuple[Floats, ...]
    ) -> Any:
        start = fit_of(start)
        if isinstance(start, PiecewiseHistogram):
            fit: Any = start.updated(
                measurements,
                lambda _, held, pieces: MaximumEntropy().restored(
                    start_over(pieces), _merged(held, pieces), parameters
                ),
            )
        else:
            fit = MaximumEntropy().restored(_begun(start), _merged(measurements, None), parameters)
        return CorrectedFit(fit, measurements)

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return None


def _begun(hypothesis: Any) -> FittedHistogram:
    """Return the public start of a hypothesis, with nothing fitted to it; of a mixture the even one."""
    domain, prior = hypothesis.domain, getattr(hypothesis, "prior", None)
    start: Histogram | ProductHistogram = ProductHistogram(domain)
    if isinstance(prior, tuple):
        start = ProductHistogram.of_factors(domain, prior)
    elif prior is not None:
        start = Histogram(domain, prior)
    begun: FittedHistogram = MaximumEntropy().init(domain, start)
    return begun


def _over(hypothesis: FittedHistogram, mixture: Mixture, tables: Sequence[Measurement]) -> Mixture:
    """Return the mixture over the public start of a hypothesis, attribute by attribute.

    Even on those that a table tells of: a first fit begins at what it says.
    """
    prior, dimensions = hypothesis.prior, len(mixture.domain.shape)
    told = {axis for one in tables for axis in one.target.axes}
    logits = np.split(mixture.logits, np.cumsum(mixture.domain.shape)[:-1])
    for axis in range(dimensions):
        others = tuple(other for other in range(dimensions) if other != axis)
        masses = prior[axis] if isinstance(prior, tuple) else prior.sum(axis=others)
        if axis not in told and np.ptp(masses) > 0.0:
            logits[axis] = logits[axis] + np.log(np.maximum(masses, LEAST_MASS))[:, np.newaxis]
    return attrs.evolve(mixture, logits=np.concatenate(logits))


def _is_fitted(one: Measurement) -> bool:
    """Whether a fit can read a release: weights between 0 and 1 cut no blocks."""
    return one.target.grid_bits == 0 and one.scale > 0.0


def _merged(measurements: tuple[Measurement, ...], pieces: Pieces | None) -> tuple[Measurement, ...]:
    """Return what a fit can read, a table that was released again in its mean by precision.

    Tables at levels come first, as purchases release them, each kind oldest first.
    """
    merged = pooled(filter(_is_fitted, measurements))
    return tuple(sorted(merged, key=lambda one: not _is_at_levels(one, pieces)))


def _is_at_levels(one: Measurement, pieces: Pieces | None) -> bool:
    target = _over_codes(one, pieces).target
    return isinstance(target, Partition) and table_key(target) is not None


def _over_codes(one: Measurement, pieces: Pieces | None) -> Measurement:
    """Return what was measured as over the codes of long attributes, if it is a table of runs."""
    target = one.target
    if pieces is None or not isinstance(target, Partition) or not all(cut.in_order for cut in target.cuts):
        return one
    return attrs.evolve(one, target=pieces.over_codes(target))
