"""What does not fit a domain, said without showing a value: the column, the rule, and the remedy.

An error at loading may be seen by others than the curator. It says which column breaks which rule, and not
how often, where, or with what; that is in the curator's report alone.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import ParamSpec, Protocol, TypeVar, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.domain.columns import ABSENT, MARKS, OUTSIDE
from onlineic.errors import InvalidDataError, OnlineICError, ends_a_call
from onlineic.slips import public

STRANGE_REMEDY = "convert the column, or name its words for gaps: optional(.., missing=['NA'])"
P = ParamSpec("P")
T = TypeVar("T")
REPORT = "PrivateData.check(table, domain).curator_report() shows values and lines"


class Ruled(Protocol):
    """What the sentences need to know of a kind."""

    @property
    def rule(self) -> str:
        """What a value must be."""

    @property
    def wider(self) -> str:
        """How the domain takes more values."""

    @property
    def form(self) -> str:
        """What a column must hold."""


@final
@attrs.frozen
class Misfit:
    """One rule that a table breaks; no private value is in it but that it does.

    Attributes:
        column: Attribute, or column of counts; empty for the table as a whole.
        rule: What is asked of it, and what was found instead, in words.
    """

    column: str
    rule: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.rule}; {self.remedy}"


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Let no error of a value's own code out of a column: its text may quote a record.

    Raises:
        InvalidDataError: In its place.
    """
    try:
        yield
    except (OnlineICError, MemoryError):
        raise
    except Exception as error:
        raise InvalidDataError(
            f"{name} must hold values that can be compared, got {type(error).__name__} from one; convert the "
            "column."
        ) from None


def loader(load: Callable[P, T]) -> Callable[P, T]:
    """Let nothing of a table out of a loader that fails but its error: no frame, cause or context of it.

    The frames hold columns, the errors behind it quote values, and whatever shows a traceback may show both.

    Raises:
        InvalidDataError: In the place of whatever this package did not raise, but for interrupts; it tells
            the kind alone.
    """

    load = public(load)

    @functools.wraps(load)
    def door(*given: P.args, **named: P.kwargs) -> T:
        failure: BaseException
        try:
            try:
                return load(*given, **named)
            except BaseException as error:
                failure = _told(error)
        except BaseException as second:  # Ctrl-C in the handler above
            failure = second
        # here, outside the handlers, so that nothing is chained to what leaves
        del given, named
        failure.__traceback__ = failure.__context__ = failure.__cause__ = None
        try:
            raise failure
        finally:
            del failure

    return door


def _told(error: BaseException) -> BaseException:
    """Return what is told of a failure: its own text, if this package has written it."""
    if isinstance(error, MemoryError):
        return MemoryError("the table must fit into memory.")
    if isinstance(error, OnlineICError) or ends_a_call(error):
        return error
    return InvalidDataError(
        f"table must be readable to its last row, got {type(error).__name__} from what holds it; read "
        "the attributes' columns without onlineic to see why."
    )


def misfits(name: str, kind: Ruled, codes: Ints) -> list[Misfit]:
    """Return which rules of its kind a column breaks, by the marks among its codes."""
    if not codes.size or codes.min() >= 0:
        return []
    return [misfit(name, kind, mark) for mark in MARKS if np.any(codes == mark)]


def misfit(name: str, kind: Ruled, mark: int) -> Misfit:
    """Return what a mark says of a column."""
    if mark == ABSENT:
        rule = f"{name} must have a value in every row, got missing values"
        return Misfit(name, rule, "declare it optional(...)")
    if mark == OUTSIDE:
        return Misfit(name, f"{name} must be {kind.rule} in every row, got other values", kind.wider)
    remedy = getattr(kind, "readable", STRANGE_REMEDY)  # a person has no word for a gap
    return Misfit(name, f"{name} must hold {kind.form}, got other values", remedy)


def refuse(found: Sequence[Misfit]) -> None:
    """Raise one error that names every misfit, if there is any.

    Raises:
        InvalidDataError: With columns, rules and remedies, and no value of the table.
    """
    if len(found) == 1:
        raise InvalidDataError(f"{found[0]}. {REPORT}.")
    if found:
        lines = "".join(f"\n  {each}." for each in found)
        raise InvalidDataError(f"the table must fit its domain, got {len(found)} misfits:{lines}\n{REPORT}.")
