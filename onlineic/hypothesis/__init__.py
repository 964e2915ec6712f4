"""Public beliefs about the private database, on which queries are evaluated."""

from onlineic.hypothesis.base import MAX_CELLS, NO_BLOCKS, HasBlocks, Hypothesis, block_guesses, grid_guesses
from onlineic.hypothesis.histogram import Histogram
from onlineic.hypothesis.local_fits import LocalFits
from onlineic.hypothesis.mixture import Mixture
from onlineic.hypothesis.product import ProductHistogram
from onlineic.hypothesis.signed import SignedHistogram
from onlineic.hypothesis.version_space import VersionSpace

__all__ = [
    "MAX_CELLS",
    "NO_BLOCKS",
    "HasBlocks",
    "Histogram",
    "Hypothesis",
    "LocalFits",
    "Mixture",
    "ProductHistogram",
    "SignedHistogram",
    "VersionSpace",
    "block_guesses",
    "grid_guesses",
]
