"""Linear queries with weights outside of [0, 1]: asked on [0, 1], read in their own units.

Proof: docs/theory/offline.md, 12.3.
"""

from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.domain.grid import Grid
from onlineic.errors import InvalidQueryError
from onlineic.queries.answers import Answer
from onlineic.queries.expressions import Expression, dense, weights, where
from onlineic.slips import public

FLOATS = 2.0**-49  # relative error of the float operations between a weight and its share of the range


@final
@attrs.frozen
class Rescaled:
    """The linear query low + (high - low) f, where `expression` asks for f, with weights in [0, 1].

    Attributes:
        expression: For a session, or whatever answers queries. It costs what any query costs.
        low, high: Least and largest weight, public.
        rounding: How far weights on a `Grid` may be from the numbers that were rounded to it.
    """

    expression: Expression
    low: float
    high: float
    rounding: float = 0.0

    def restored(self, answer: Answer) -> tuple[float, float]:
        """Return the mean weight of a record, and its error bound with the probability of the answer's.

        Both are the answer's times high - low, the value from low on: noise on weights in [-1, 1] is twice
        that on weights in [0, 1]. Where n is private the bound is of `fraction_bound`. n times the value is
        the sum over the records, within n times the bound, where n is public; else that sum is known as
        (high - low) `count` + low n, within n (high - low) `error_bound` + abs(low) `n_bound`, and `rounding`
        for each record.
        """
        width = self.high - self.low
        value = self.low + width * float(answer) if width else self.low
        bound = width * float(answer.fraction_bound) if width else 0.0
        slack = FLOATS * (abs(self.low) + abs(self.high))
        return value, bound * (1.0 + FLOATS) + self.rounding + slack


@public
def rescaled(values: Any = None, /, **by_attribute: Any) -> Rescaled:
    """Return the query "the mean of a real weight", for weights of any finite range.

    Affine maps of the weights: sensitivities and errors are multiplied by high - low, exactly.

    Args:
        values: Numbers, shape (|X|,), or of the domain's shape. A weight for every cell; or
        **by_attribute: Numbers, shape (size,), or Grid. For ONE attribute a weight for every code, a grid for
            its points. A weight times a condition on other attributes is no multiple of a product on [0, 1]:
            write it cell by cell.

    Raises:
        InvalidQueryError: If these are no finite numbers, or not one array of them.

    Examples:
        Does age go with income? A signed weight for every cell, -1 where they disagree:

        >>> import numpy as np, onlineic as ic
        >>> domain = ic.Domain.of(old=[False, True], rich=[False, True])
        >>> counts = np.array([[40_000, 10_000], [20_000, 30_000]])
        >>> agreement = ic.rescaled(np.array([[1, -1], [-1, 1]]))
        >>> session = ic.OnlineIC(ic.PrivateData(counts, domain), ic.Budget(1.0, 1e-9), max_queries=10)
        >>> value, error_bound = agreement.restored(session.answer(agreement.expression))
        >>> abs(value - 0.4) < 0.02, 0.0 < error_bound < 0.05
        (True, True)
    """
    if (values is None) == (len(by_attribute) != 1) or (values is not None and by_attribute):
        raise InvalidQueryError(
            f"rescaled must have weights for all cells or for one attribute, got {len(by_attribute)} "
            "attributes; multiply them out, one weight a cell."
        )
    name, given = next(iter(by_attribute.items()), (None, values))
    rounding = given.rounding if isinstance(given, Grid) else 0.0
    array = _numbers(given.values if isinstance(given, Grid) else given)
    low, high = float(array.min()), float(array.max())
    if high == low:
        return Rescaled(where(), low, high, rounding)
    shares = np.clip((array - low) / (high - low), 0.0, 1.0)
    expression = dense(shares) if name is None else where({name: weights(shares)})
    return Rescaled(expression, low, high, rounding)


def _numbers(values: Any) -> Floats:
    """Return finite numbers as float64 whose differences are finite too."""
    try:
        array = np.asarray(values)
    except Exception:  # whatever the object raises: it is no data
        raise InvalidQueryError(
            "weights must be an array of numbers, got a ragged or other sequence; give one number a value."
        ) from None
    if (
        isinstance(values, np.ma.MaskedArray)
        or array.dtype.kind not in "fiub"
        or not array.ndim
        or not array.size
    ):
        raise InvalidQueryError(
            f"weights must be an array of numbers, got dtype {array.dtype} and shape {array.shape}."
        )
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all() or np.abs(numbers).max() > 1e300:
        raise InvalidQueryError("weights must be finite, at most 1e300 in size, and were not; clip them.")
    return numbers
