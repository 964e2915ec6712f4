"""Sparse-vector mechanisms: which queries are hard, and a number for those that are."""

from onlineic.sparse.above_threshold import AboveThreshold as AboveThreshold
from onlineic.sparse.above_threshold import Sparse as Sparse
from onlineic.sparse.base import Hit as Hit
from onlineic.sparse.base import NumericSparse as NumericSparse
from onlineic.sparse.base import SparseState as SparseState
from onlineic.sparse.exponential import ExponentialSparse as ExponentialSparse
from onlineic.sparse.gumbel import GumbelSparse as GumbelSparse
from onlineic.sparse.laplace import LaplaceSparse as LaplaceSparse
from onlineic.sparse.scales import exponential_resolution as exponential_resolution
from onlineic.sparse.scales import gumbel_resolution as gumbel_resolution
