"""What a session says once: after the answers, which nothing may stop, and without working anything out."""

import contextlib
import math
import warnings
from typing import final

from onlineic.display.text import upward
from onlineic.errors import (
    MoreThanAnnouncedWarning,
    UpdateFailedWarning,
    WideBoundWarning,
    callers_line,
)
from onlineic.plan.plan import Plan

WIDE = 0.1  # a bound of a tenth of all records, or more, says next to nothing


@final
class Notices:
    """Warnings of one session; also as errors they are not raised."""

    __slots__ = ("_more", "_plan", "_wide")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._wide = plan.textbook  # whose own bound is known at the opening, and wide at any usual n
        self._more = False

    def looked_at(self, bound: float) -> None:
        """Say once that bounds are wide, when one that is stated is looked at."""
        if WIDE < bound < math.inf and not self._wide:
            self._wide = True
            with contextlib.suppress(WideBoundWarning):
                warnings.warn(
                    f"error_bound must be <= {WIDE} to say much, got {upward(bound, 2)} of all: "
                    "raise epsilon or n, or lower max_queries or hard_answers. Said once a session.",
                    WideBoundWarning,
                    stacklevel=callers_line(),
                )

    def asked(self) -> None:
        """Say once that more was asked than announced."""
        if not self._more:
            self._more = True
            with contextlib.suppress(MoreThanAnnouncedWarning):
                warnings.warn(
                    f"max_queries must be at least the number of answers for a bound on all of them at once, "
                    f"got max_queries={self._plan.max_queries:,} and more answers: that bound is inf from "
                    "here on, and m answers that make one number hold together with probability "
                    "1 - m beta. Each answer keeps its own bound. Raise max_queries in the next session, or "
                    "questions where few were announced. Said once a session.",
                    MoreThanAnnouncedWarning,
                    stacklevel=callers_line(),
                )

    def failed(self) -> None:
        """Say that the update rule failed on a release."""
        with contextlib.suppress(UpdateFailedWarning):
            warnings.warn(
                f"{type(self._plan.update).__name__} failed on a release; the old hypothesis is kept. "
                "Find out why by onlineic.testing.check_update_rule(rule).",
                UpdateFailedWarning,
                stacklevel=callers_line(),
            )
