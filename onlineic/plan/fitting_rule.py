"""Which rule a default session learns by, where tables are released and where numbers alone are."""

from collections.abc import Sequence
from typing import Any

from onlineic.domain.domain import Domain
from onlineic.errors import TooLargeError
from onlineic.hypothesis.base import MAX_CELLS, Hypothesis
from onlineic.hypothesis.by_sets import joint
from onlineic.hypothesis.classes import class_cells
from onlineic.hypothesis.mixture import Mixture
from onlineic.queries.partitions import Partition
from onlineic.updates.base import UpdateRule
from onlineic.updates.fitted_tables import FittedTables
from onlineic.updates.maximum_entropy import MaximumEntropy
from onlineic.updates.mixture import MixtureOfProducts

MOST_CLASSES = 2**22  # of a domain that is itself too large: a refit takes some two seconds
TABLE_RULES = (FittedTables, MaximumEntropy, MixtureOfProducts)  # that read whole tables


def table_rule(prior: Hypothesis | None) -> UpdateRule[Any]:
    """Return the rule of a session that learns from tables; a mixture as the start goes on as one."""
    return MixtureOfProducts() if isinstance(joint(prior), Mixture) else FittedTables()


def number_rule(domain: Domain) -> UpdateRule[Any]:
    """Return the rule that fits numbers alone: maximum entropy where its cells can be held, or a mixture.

    Where both can be run maximum entropy errs less (`experiments/README.md`).
    """
    return MaximumEntropy() if _holds(domain, ()) else MixtureOfProducts()


def check_holds(update: UpdateRule[Any], domain: Domain, tables: Sequence[Partition]) -> None:
    """Raise `TooLargeError` for a rule of maximum entropy that could not fit these tables."""
    if isinstance(update, MaximumEntropy) and not _holds(domain, tables):
        raise TooLargeError(
            f"domain must have at most {MAX_CELLS:,} cells for MaximumEntropy, or as few classes in its "
            f"first tables, got {domain.size:,}; leave update out, or write update=MixtureOfProducts()."
        )


def _holds(domain: Domain, tables: Sequence[Partition]) -> bool:
    """Whether a fit of maximum entropy holds its cells: those of the domain, or the classes of the tables."""
    return domain.size <= MAX_CELLS or 1 < class_cells(tables) <= MOST_CLASSES
