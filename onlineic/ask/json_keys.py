"""Keys of groups as JSON, and rates by group: `{"share": {..}, "where": {..}, "by": [..]}`."""

from collections.abc import Callable
from typing import Any, final

import attrs

from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, InvalidQueryError, shown
from onlineic.queries.expressions import Expression
from onlineic.queries.groupings import Grouping, cut, date_trunc, extract, of_cases
from onlineic.queries.marginals import Key

FORMS = ("date_trunc", "extract", "cut", "case")
EXAMPLES = (
    '{"date_trunc": "month", "of": "day"}, {"extract": "year", "of": "day"}, {"cut": "age", "at": [18, 65]}'
)
Read = Callable[[Any], Expression]


@final
@attrs.frozen
class Share:
    """A rate as written: who is counted, among whom, and by which keys."""

    cond: Expression
    where: Expression | None = None
    by: tuple[Key, ...] | None = None

    def asked(self, session: Any) -> Any:
        """Return what a session says of it."""
        return session.share(self.cond, self.where, self.by)


def key_read(written: Any, domain: Domain, read: Read) -> Key:
    """Return a key of groups: the name of an attribute, or an object that makes groups of one.

    Args:
        written: As JSON has it.
        domain: Public.
        read: Reads a condition.

    Raises:
        InvalidQueryError: If it is none, or the attribute is unknown.
    """
    if isinstance(written, str):
        domain.axis(written)
        return written
    form = next((one for one in FORMS if isinstance(written, dict) and one in written), "")
    allowed = {"date_trunc": {"of"}, "extract": {"of"}, "cut": {"at", "labels"}, "case": {"else"}}
    if not form or not written.keys() <= {form, "name", *allowed[form]}:
        raise InvalidQueryError(
            f"a key must be the name of an attribute or one of {EXAMPLES}, got another object; write one of "
            "them."
        )
    try:
        found = _made(form, written, domain, read)
        found.over(domain)
        return found.called(written["name"]) if "name" in written else found
    except InvalidParameterError as error:
        raise InvalidQueryError(str(error)) from None


def _made(form: str, written: dict[str, Any], domain: Domain, read: Read) -> Grouping:
    if form == "cut":
        domain.axis(written["cut"])
        return cut(written["cut"], written.get("at", ()), written.get("labels"))
    if form in ("date_trunc", "extract"):
        domain.axis(written.get("of"))  # type: ignore[arg-type]
        return (date_trunc if form == "date_trunc" else extract)(written["of"], written[form])
    cases = written["case"]
    fits = isinstance(cases, list) and all(
        isinstance(one, dict) and one.keys() == {"when", "then"} for one in cases
    )
    if not fits or not cases:
        raise InvalidQueryError(
            'case must hold a list of {"when": condition, "then": label}, got others; write so.'
        )
    labels = [one["then"] for one in cases] + ([written["else"]] if "else" in written else [])
    if not all(type(label) in (str, int, float, bool) for label in labels):
        raise InvalidQueryError(
            f"labels must be texts, numbers or booleans, got {shown(labels)}; write texts."
        )
    return of_cases([(one["then"], read(one["when"])) for one in cases], written.get("else"))


def key_written(key: Key, write: Callable[[Expression], dict[str, Any]]) -> Any:
    """Return a key as JSON has it.

    Raises:
        InvalidQueryError: If it has no such form.
    """
    if isinstance(key, str):
        return key
    if key.form in ("date_trunc", "extract"):
        said: dict[str, Any] = {key.form: key.parts[0], "of": key.attribute}
    elif key.form == "cut":
        at, labels = key.parts
        said = {"cut": key.attribute, "at": list(at), **({"labels": list(labels)} if labels else {})}
    elif key.form == "case":
        pairs, otherwise = key.parts
        said = {"case": [{"when": write(one), "then": label} for label, one in pairs]}
        said |= {} if otherwise is None else {"else": otherwise}
    else:
        return key.attribute
    plain = attrs.evolve(key, name="").name
    return said if key.name == plain else {**said, "name": key.name}
