"""What is told of a question that was bought by itself: between its number and what the hypothesis said.

The answer is h + a (y - h): h was said before, y is the number, and a is the share of their distance that is
no noise. It follows from the predicted error, which the distances of all numbers bought so far correct.

Proof: docs/theory/session.md, 4.9a.
"""

from typing import Any, final

import attrs
import numpy as np

ROUNDS = 30  # of a fixed point that some ten rounds find


@final
@attrs.frozen
class Singles:
    """Squared distances of numbers from what was said before, of their noise, and of predicted errors.

    Attributes:
        seen: Of each purchase, the mean over the cells of a table.
    """

    seen: tuple[tuple[float, float, float], ...] = ()

    def after(self, gap: Any, deviation: float, predicted: Any) -> "Singles":
        """Return the same with one more purchase."""
        one = (float(np.mean(np.square(gap))), deviation**2, float(np.mean(np.square(predicted))))
        return Singles((*self.seen, one))

    @property
    def over(self) -> float:
        """How many times its predicted square the square of an error is, by all that was seen.

        The most likely one if both are normal, drawn to 1 as by one more purchase.
        """
        seen = np.array(self.seen, np.float64).reshape(-1, 3)
        gaps, noise, predicted = seen[seen[:, 2] > 0.0].T
        over = 1.0
        for _ in range(ROUNDS):
            taken = over * predicted / (over * predicted + noise)
            squares = taken**2 * gaps + taken * noise
            over = float((1.0 + (squares / predicted).sum()) / (1.0 + len(predicted)))
        return over

    def taken(self, deviation: float, predicted: Any) -> Any:
        """Return which share of the distance from what the hypothesis said is not noise."""
        size = self.over * np.square(predicted)
        return size / (size + deviation**2)
