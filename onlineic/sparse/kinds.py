"""The mechanisms that a privacy proof is known of, by name, and which of them resolves smaller gaps."""

from typing import Literal

from onlineic.accounting.budget import Budget
from onlineic.sparse.exponential import ExponentialSparse, exponential_resolution
from onlineic.sparse.gumbel import GumbelSparse, gumbel_resolution
from onlineic.sparse.laplace import LaplaceSparse

SparseName = Literal["gumbel", "exponential", "laplace"]
Mechanism = GumbelSparse | ExponentialSparse | LaplaceSparse
KINDS: dict[SparseName, type[Mechanism]] = {
    "gumbel": GumbelSparse,
    "exponential": ExponentialSparse,
    "laplace": LaplaceSparse,
}


def finer_name(cutoff: int, tests: int, budget: Budget) -> SparseName:
    """Return the mechanism of the smaller predicted resolution, from public parameters; delta = 0 has one."""
    if budget.pure:
        return "exponential"
    exponential = exponential_resolution(cutoff, tests, budget.epsilon)
    better = gumbel_resolution(cutoff, tests, budget.epsilon, budget.delta) <= exponential
    return "gumbel" if better else "exponential"
