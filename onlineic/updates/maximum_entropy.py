"""Maximum entropy: after each hard answer the hypothesis is fitted again to all that was released."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, checked_integer, checked_real, set_fields
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.by_sets import joint
from onlineic.hypothesis.classes import class_cells
from onlineic.hypothesis.fitting import Prior, fit, remade
from onlineic.hypothesis.histogram import Histogram
from onlineic.hypothesis.nested import fit_nested
from onlineic.hypothesis.pieces import Pieces, PiecewiseHistogram
from onlineic.hypothesis.product import ProductHistogram
from onlineic.queries.batch import Queries
from onlineic.queries.cuts import long_axes
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import Sums
from onlineic.slips import public
from onlineic.updates.base import UpdateRule, starting_histogram

CONVERGED_EVALUATIONS = 200  # limit of a first fit that is stopped by its misfit
FIRST_EVALUATIONS = 100  # a fit without earlier potentials wants more


@final
@attrs.frozen(eq=False, repr=False)
class FittedHistogram:
    """A histogram with the potentials of its fit, from which the next fit starts.

    Attributes:
        histogram: In product form if the prior is a product.
        prior: Shape of the domain, or tuple of float64 arrays, one an attribute. Cell masses that the entropy
            is relative to, or the factors whose product they are.
        potentials: One for every measurement that was fitted.
        most_cells: Of the classes of later fits: the rule's, or more if the first fit had more.
        exponents: From which the same cells are made again, to the bit.
    """

    histogram: Histogram | ProductHistogram
    prior: Prior
    potentials: tuple[Floats, ...] = ()
    most_cells: int = 0
    exponents: tuple[Floats, ...] = ()

    @property
    def domain(self) -> Domain:
        return self.histogram.domain

    @property
    def sums(self) -> Sums:
        """What queries are evaluated on, of total mass 1: of a product."""
        return self._product.sums

    def moved(
        self, domain: Domain, divided: Mapping[int, tuple[Ints, Floats]], prior: tuple[Floats, ...]
    ) -> "FittedHistogram":
        """Return the same over a domain of finer codes, as `ProductHistogram.moved`, with the prior there."""
        return attrs.evolve(self, histogram=self._product.moved(domain, divided), prior=prior)

    @property
    def _product(self) -> ProductHistogram:
        if not isinstance(self.histogram, ProductHistogram):
            raise InvalidParameterError("histogram must be in product form to be held by pieces of codes.")
        return self.histogram

    def supports(self, query: Query) -> bool:
        return self.histogram.supports(query)

    def supports_many(self, queries: Queries) -> bool:
        return self.histogram.supports_many(queries)

    def evaluate(self, query: Query) -> float:
        return self.histogram.evaluate(query)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        return self.histogram.evaluate_many(queries)

    def blocks(self, partition: Partition) -> Floats:
        """Return the fraction of records in every block, shape (blocks,)."""
        return self.histogram.blocks(partition)

    def probabilities(self) -> Floats:
        """Return the cell probabilities, shape of the domain; a copy. At most 2^26 cells."""
        return self.histogram.probabilities()

    def marginal(self, *names: str) -> Floats:
        """Return the marginal table over these attributes, in domain order. Public, no guarantee."""
        return self.histogram.marginal(*names)

    def sample(self, size: int, seed: int) -> dict[str, list[Any]]:
        """Return synthetic records as columns of labels; the seed is public."""
        return self.histogram.sample(size, seed)

    def __repr__(self) -> str:
        return f"FittedHistogram({self.histogram!r}, fitted to {len(self.potentials)} measurements)"


def over_codes(domain: Domain) -> PiecewiseHistogram:
    """Return the start that is even over the codes of long attributes, with nothing fitted to it."""
    pieces = Pieces.whole(domain)
    return PiecewiseHistogram(pieces, start_over(pieces))


def start_over(pieces: Pieces) -> FittedHistogram:
    """Return the distribution over pieces that is even over their codes, with nothing fitted to it."""
    return FittedHistogram(ProductHistogram.of_factors(pieces.small, pieces.prior), pieces.prior)


@public
@final
@attrs.frozen
class MaximumEntropy(UpdateRule[Any]):
    """h ~ prior * exp(sum_i theta_i): near the largest entropy relative to the prior among all that fit.

    Every refit reads all measurements, weighted by their noise, and starts from the last potentials.
    Deterministic post-processing of released tables: free of charge, whatever it does.

    No T(alpha) is proven: `update_bound` is None. A measurement of a single query is used if its weights
    are 0/1; others are answered, and ignored here. The fit is measured, not proven, to be good.

    Args:
        evaluations: Evaluations of a refit. 30 is a regulariser: fitting on fits the noise.
        kl_weight: Weight of KL(h || prior); positive values make the optimum unique.
        misfit: In [0, 1). A first fit stops once 2 loss / blocks is this small: far below 1 the noise is
            fitted. 0: it stops by the number of evaluations alone. Where it is positive and the first tables
            refine each other, no descent is needed: shrunken least squares, in closed form.
        most_cells: Most class cells that refits tell apart, from a prior that is a product: what a refit
            costs grows with them. Cuts of later measurements beyond are not told apart: the blocks on both
            sides are fitted by their sum. A domain of no more cells is never touched by it.
        dear_evaluations: Evaluations of a refit each of which writes more than 2^19 class cells, or 2^20
            entries on the way to so many, with steps as long as is stable; as many as of others, if left out.
            After a hit 9 learn as much there as 60 shorter ones of three to five attributes, and of seven
            nine tenths of it.
    """

    fits_all: ClassVar[bool] = True

    evaluations: int = 30
    kl_weight: float = 0.0
    misfit: float = 0.0
    most_cells: int = 2**20  # a refit of half a second; with a third of the cells it wants rms grows by 6 %
    # None where the file of an older session is read
    dear_evaluations: int | None = attrs.field(default=None, metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        dear = self.dear_evaluations
        set_fields(
            self,
            dear_evaluations=None if dear is None else checked_integer("dear_evaluations", dear, at_least=1),
            evaluations=checked_integer("evaluations", self.evaluations, at_least=1),
            kl_weight=checked_real("kl_weight", self.kl_weight, at_least=0.0),
            misfit=checked_real("misfit", self.misfit, at_least=0.0, below=1.0),
            most_cells=checked_integer("most_cells", self.most_cells, at_least=1),
        )

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Any:
        # the one place that chooses how the belief is held: a product, unless the prior is none
        if prior is None and long_axes(domain):
            return over_codes(domain)
        prior = joint(prior)
        start = ProductHistogram(domain) if prior is None else getattr(prior, "histogram", prior)
        if isinstance(start, ProductHistogram) and start.domain == domain and start.factors:
            return FittedHistogram(start, start.factors)
        dense = starting_histogram(domain, prior)
        return FittedHistogram(dense, dense.probabilities())

    def update(self, hypothesis: Any, measurements: tuple[Measurement, ...], alpha: float) -> Any:
        if isinstance(hypothesis, PiecewiseHistogram):
            return hypothesis.updated(measurements, lambda inner, held, _: self.update(inner, held, alpha))
        # weights between 0 and 1 cut no blocks
        tables = [one for one in measurements if one.target.grid_bits == 0]
        if len(tables) <= len(hypothesis.potentials):
            return hypothesis  # nothing new that can be fitted
        known, most_cells = hypothesis.potentials, hypothesis.most_cells
        if not known:  # the tables that were planned are told apart, however many classes they have
            most_cells = max(self.most_cells, class_cells([one.target for one in tables]))
        fitted = fit_nested(hypothesis.prior, tables) if self.misfit and not known else None
        fitted = fitted or fit(
            hypothesis.prior,
            tables,
            known,
            histogram=hypothesis.histogram if known else None,
            evaluations=self.evaluations if known else self._first,
            dear_evaluations=self.dear_evaluations if known else None,
            enough=0.0 if known else self.misfit,
            kl_weight=self.kl_weight,
            most_cells=most_cells,
        )
        return FittedHistogram(
            fitted.histogram, hypothesis.prior, fitted.potentials, most_cells, fitted.exponents
        )

    @property
    def _first(self) -> int:
        """Evaluations of a fit without earlier potentials."""
        return max(self.evaluations, CONVERGED_EVALUATIONS if self.misfit else FIRST_EVALUATIONS)

    def most_passes(self, releases: int) -> int:
        return max(self._first, self.dear_evaluations or 0)

    def parameters(self, hypothesis: Any) -> tuple[Floats, ...]:
        if isinstance(hypothesis, PiecewiseHistogram):
            return self.parameters(hypothesis.inner)
        return (np.array([float(hypothesis.most_cells)]), *hypothesis.exponents)

    def restored(
        self, start: Any, measurements: tuple[Measurement, ...], parameters: tuple[Floats, ...]
    ) -> Any:
        if isinstance(start, PiecewiseHistogram):
            return start.updated(measurements, lambda inner, held, _: self.restored(inner, held, parameters))
        most, *exponents = parameters
        if not exponents:
            return start
        tables = [one for one in measurements if one.target.grid_bits == 0][: len(exponents)]
        most_cells = int(most[0])
        histogram, potentials = remade(start.prior, tables, exponents, most_cells)
        return FittedHistogram(histogram, start.prior, potentials, most_cells, tuple(exponents))

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return None
