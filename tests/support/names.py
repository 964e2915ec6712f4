"""Names of test cases that are the same in every process, as tests in parallel want them."""

import re


def lasting(value):
    """Return the repr of a value, or of several, without the addresses of objects."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
