"""Sparse-vector mechanisms: which queries are hard, and a number for those that are."""

from onlineic.sparse.above_threshold import AboveThreshold, Sparse
from onlineic.sparse.base import Hit, NumericSparse, SparseState
from onlineic.sparse.exponential import ExponentialSparse, exponential_resolution
from onlineic.sparse.gumbel import GumbelSparse, gumbel_resolution
from onlineic.sparse.laplace import LaplaceSparse
from onlineic.sparse.unconditional import UnconditionalNumbers
from onlineic.sparse.values import ValueSparse

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
    "ValueSparse",
    "exponential_resolution",
    "gumbel_resolution",
]
