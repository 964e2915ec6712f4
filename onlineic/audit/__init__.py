"""Whether a mechanism keeps its promise, exactly or from samples."""

from onlineic.audit.breaches import (
    RECORD_BREACHES,
    SESSION_BREACHES,
    THRESHOLD_BREACHES,
    RecordBreach,
    SessionBreach,
    ThresholdBreach,
)
from onlineic.audit.gates import AuditReport, Gate, run_audit
from onlineic.audit.laws import (
    Law,
    ThresholdRule,
    first_hit_delta,
    hockey_stick,
    hockey_stick_with_numbers,
    transcript_law,
    worst_loss,
)
from onlineic.audit.ledgers import LedgerReport, summarised, verified
from onlineic.audit.observe import black_box_epsilon, epsilon_lower_bound, goodness_of_fit, observe
from onlineic.audit.totals import TotalReport, total_report

__all__ = [
    "RECORD_BREACHES",
    "SESSION_BREACHES",
    "THRESHOLD_BREACHES",
    "AuditReport",
    "Gate",
    "Law",
    "LedgerReport",
    "RecordBreach",
    "SessionBreach",
    "ThresholdBreach",
    "ThresholdRule",
    "TotalReport",
    "black_box_epsilon",
    "epsilon_lower_bound",
    "first_hit_delta",
    "goodness_of_fit",
    "hockey_stick",
    "hockey_stick_with_numbers",
    "observe",
    "run_audit",
    "summarised",
    "total_report",
    "transcript_law",
    "verified",
    "worst_loss",
]
