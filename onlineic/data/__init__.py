"""The private table, and the one way to it."""

from onlineic.data.private import MAX_CELLS, PrivateData
from onlineic.data.problems import TableReport
from onlineic.data.release import (
    charged,
    check_types,
    checked_noise,
    checked_release,
    guarded,
    is_private,
    log_failure,
    released,
    stamp,
)

__all__ = [
    "MAX_CELLS",
    "PrivateData",
    "TableReport",
    "charged",
    "check_types",
    "checked_noise",
    "checked_release",
    "guarded",
    "is_private",
    "log_failure",
    "released",
    "stamp",
]
