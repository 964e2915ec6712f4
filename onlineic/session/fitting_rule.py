"""Which rule fits what a default session releases: a choice by public facts, made here and nowhere else."""

from collections.abc import Sequence
from typing import Any

from onlineic.domain.domain import Domain
from onlineic.hypothesis.base import MAX_CELLS, Hypothesis
from onlineic.hypothesis.mixture import Mixture
from onlineic.queries.partitions import Partition
from onlineic.updates.base import UpdateRule
from onlineic.updates.maximum_entropy import MaximumEntropy
from onlineic.updates.mixture import MixtureOfProducts

TABLE_RULES = (MaximumEntropy, MixtureOfProducts)  # that read whole partitions, the first tables among them


def fitting_rule(
    domain: Domain, tables: Sequence[Partition], prior: Hypothesis | None = None, misfit: float = 0.0
) -> UpdateRule[Any]:
    """Return maximum entropy where its cells can be held, above a mixture of products; or the prior's own.

    Where both can be run maximum entropy errs less (`experiments/README.md`).

    Parameters
    ----------
    domain : Domain
    tables : sequence of Partition
        Planned first tables.
    prior : Hypothesis, optional
        A public start; a mixture goes on as one.
    misfit : float
        As in `MaximumEntropy`.
    """
    if isinstance(prior, Mixture) or (prior is None and fitted_cells(domain, tables) > MAX_CELLS):
        return MixtureOfProducts()
    return MaximumEntropy(misfit=misfit)


def fitted_cells(domain: Domain, tables: Sequence[Partition]) -> int:
    """Return how many cells a fit of maximum entropy to these tables writes: those of the domain."""
    return domain.size
