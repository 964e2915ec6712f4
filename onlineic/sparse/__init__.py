"""Sparse-vector mechanisms: which queries are hard, and a number for those that are."""

from onlineic.sparse.above_threshold import AboveThreshold, Sparse
from onlineic.sparse.base import Hit, NumericSparse, SparseState
from onlineic.sparse.exponential import ExponentialSparse, exponential_resolution
from onlineic.sparse.gumbel import GumbelSparse, gumbel_resolution
from onlineic.sparse.laplace import LaplaceSparse
from onlineic.sparse.unconditional import UnconditionalNumbers

__all__ = [
    "AboveThreshold",
    "ExponentialSparse",
    "GumbelSparse",
    "Hit",
    "LaplaceSparse",
    "NumericSparse",
    "Sparse",
    "SparseState",
    "UnconditionalNumbers",
    "exponential_resolution",
    "gumbel_resolution",
]
