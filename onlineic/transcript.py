"""The public transcript of a session, put to use again."""

from collections.abc import Iterable
from typing import Any

from onlineic.domain import Domain
from onlineic.hypothesis import Hypothesis
from onlineic.ledger import Hard, Opened, Record, UpdateFailed
from onlineic.queries import Measurement
from onlineic.updates import UpdateRule

__all__ = ["replay"]


def replay(
    records: Iterable[Record],
    domain: Domain,
    update: UpdateRule[Any],
    alpha: float,
    prior: Hypothesis | None = None,
) -> Hypothesis:
    """Return the hypothesis of a session, rebuilt bit for bit from its public transcript alone.

    Parameters
    ----------
    records : iterable of Record
        `session.transcript`, or a beginning of it.
    update, alpha
        `session.plan.update` and `session.plan.alpha`.
    """
    hypothesis: Hypothesis = update.init(domain, prior)
    measurements: tuple[Measurement, ...] = ()
    records = list(records)
    for place, record in enumerate(records):
        if isinstance(record, Opened):
            measurements = record.measurements
        elif isinstance(record, Hard):
            measurements = (*measurements, record.measurement)
        else:
            continue
        if not isinstance(records[place + 1] if place + 1 < len(records) else None, UpdateFailed):
            hypothesis = update.update(hypothesis, measurements, alpha)
    return hypothesis
