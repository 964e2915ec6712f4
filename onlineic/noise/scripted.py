"""Noise from a script, which asserts that exactly these scales are asked for: for tests."""

from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from onlineic._typing import Ints, Words
from onlineic.errors import (
    InternalError,
    checked_integer,
    checked_list,
    checked_ratio,
)
from onlineic.noise.sources import Noise


@final
@attrs.define(eq=False)
class ScriptedNoise(Noise):
    """Noise that plays a list of integers, in order, whatever is asked for: not private.

    Args:
        draws: Values in the order in which they will be asked for, over all methods together.

    Attributes:
        scales: Each (method, scale, size). What was asked for; of `words` the scale is None.

    Raises:
        InvalidParameterError: If a draw lies outside the support of the method that is asked for it.
        InternalError: If more values are asked for than are left; nothing is played then.
    """

    draws: Sequence[int]
    scales: list[tuple[str, Fraction | int | None, int]] = attrs.field(init=False, factory=list)
    _at: int = attrs.field(init=False, default=0)
    _latest: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self.draws = [
            checked_integer(f"draws[{i}]", draw) for i, draw in enumerate(checked_list("draws", self.draws))
        ]

    @property
    def simulated(self) -> bool:
        return True

    @property
    def exhausted(self) -> bool:
        """Whether every draw of the script was played."""
        return self._at == len(self.draws)

    def words(self, size: int) -> Words:
        return np.array(self._play("words", None, size, 0, 2**64 - 1), np.uint64)

    def geometric(self, scale: Fraction, size: int) -> Ints:
        return np.array(self._play("geometric", scale, size, 0), np.int64)

    def discrete_laplace(self, scale: Fraction, size: int) -> Ints:
        return np.array(self._play("discrete_laplace", scale, size, -(2**63)), np.int64)

    def discrete_gaussian(self, sigma: int, size: int) -> Ints:
        return np.array(self._play("discrete_gaussian", sigma, size, -(2**63)), np.int64)

    @property
    def calls(self) -> int:
        return len(self.scales)

    def unread(self, count: int, since: int) -> None:
        if self.calls == since + 1:
            self._at -= checked_integer("count", count, at_least=0, at_most=self._latest)
            self._latest = 0

    def _play(
        self, method: str, scale: Fraction | int | None, size: int, least: int, most: int = 2**63 - 1
    ) -> list[int]:
        """Next `size` draws, all in [least, most]."""
        if scale is not None:  # in Python numbers, whatever the caller's are made of
            ratio = checked_ratio("scale", scale)
            scale = ratio if isinstance(scale, Fraction) else int(ratio)
        size = checked_integer("size", size, at_least=0)
        stop = self._at + size
        if stop > len(self.draws):
            raise InternalError(
                f"draws must hold what is asked for, got {method}(scale={scale}, size={size}) "
                f"with {len(self.draws) - self._at} left; lengthen the script."
            )
        draws = [
            checked_integer(f"draws[{i}]", self.draws[i], at_least=least, at_most=most)
            for i in range(self._at, stop)
        ]
        self.scales.append((method, scale, size))
        self._at, self._latest = stop, size
        return draws
