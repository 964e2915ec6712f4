"""Whether a mechanism keeps its promise, exactly or from samples."""

from onlineic.audit.laws import (
    Law,
    ThresholdRule,
    first_hit_delta,
    hockey_stick,
    hockey_stick_with_numbers,
    transcript_law,
    worst_loss,
)
from onlineic.audit.observe import black_box_epsilon, epsilon_lower_bound, goodness_of_fit, observe

__all__ = [
    "Law",
    "ThresholdRule",
    "black_box_epsilon",
    "epsilon_lower_bound",
    "first_hit_delta",
    "goodness_of_fit",
    "hockey_stick",
    "hockey_stick_with_numbers",
    "observe",
    "transcript_law",
    "worst_loss",
]
