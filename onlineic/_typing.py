"""Aliases for the array types of the package."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


Ints = NDArray[np.int64]


Words = NDArray[np.uint64]


Bools = NDArray[np.bool_]
