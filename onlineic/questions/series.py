"""Counts and other numbers over time: groups by period of a date, drawn as a line."""

import attrs

from onlineic.domain.dates import Dates
from onlineic.errors import InvalidQueryError, shown
from onlineic.queries.groupings import date_trunc
from onlineic.questions.groups import Groups, group_by
from onlineic.questions.linear import AnsweringLinear, Where, check_answering
from onlineic.questions.means import Aggregate


def series(
    session: AnsweringLinear,
    attribute: str,
    by: str | None = None,
    where: Where = None,
    aggregate: Aggregate = "count",
    of: str | None = None,
) -> Groups:
    """Return a number for every period of a date, which `plot` draws as a line with its band."""
    check_answering(session)
    kind = session.domain.attribute(attribute)
    if not isinstance(kind, Dates):
        raise InvalidQueryError(
            f"{attribute} must hold dates for a series, got another kind; write "
            f"histogram({shown(attribute)}), or group_by."
        )
    key = attribute if by is None or by == kind.by else date_trunc(attribute, by)
    return attrs.evolve(group_by(session, key, where, aggregate, of), over_time=True)
