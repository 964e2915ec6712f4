"""Names of test cases that are the same in every process, as tests in parallel want them."""

import re


def lasting(value):
    """Return the repr of a value, of a set in order, without the addresses of objects."""
    shown = f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else repr(value)
    return re.sub(r" at 0x[0-9a-f]+", "", shown)
