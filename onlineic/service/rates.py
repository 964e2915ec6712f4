"""How much a user may do in a minute: counted by what a request becomes, also where that is known later."""

import math
import threading
from collections.abc import Callable
from typing import final

from onlineic.service.refusals import RefusedError


@final
class Rates:
    """What each user has left of a minute's worth, which fills up evenly.

    A request is let in while something is left; what it becomes beyond that is owed, and the next one waits.

    Args:
        what: What is counted, for the refusal.
        clock: Seconds.
    """

    def __init__(self, what: str, clock: Callable[[], float]) -> None:
        self._what, self._clock = what, clock
        self._left: dict[str, tuple[float, float]] = {}  # at this time
        self._gate = threading.Lock()

    def admit(self, name: str, most: int, count: int = 1) -> None:
        """Count so much, or refuse it: where less is left, unless all of a minute is.

        Raises:
            RefusedError: With the seconds to wait; nothing is counted.
        """
        with self._gate:
            left = self._now(name, most)
            if max(1, count) > left and left < most:
                wait = math.ceil((min(max(1, count), most) - left) * 60.0 / most)
                detail = f"at most {most:,} {self._what} a minute are answered; wait {wait:,} s."
                raise RefusedError(429, "rate", detail, **{"Retry-After": str(wait)})
            self._left[name] = (left - count, self._clock())

    def owe(self, name: str, most: int, count: int) -> None:
        """Count what a request that was let in has become."""
        with self._gate:
            self._left[name] = (self._now(name, most) - count, self._clock())

    def _now(self, name: str, most: int) -> float:
        now = self._clock()
        left, at = self._left.get(name, (float(most), now))
        return min(float(most), left + (now - at) * most / 60.0)
