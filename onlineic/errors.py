"""Every exception of the package, and the checks of plain parameters that raise them.

::

    OnlineICError
      InvalidInputError (ValueError)
        InvalidParameterError   an argument is outside its range
          TooFineWishError      an answer is wished more exactly than whoever asks may
        InvalidCallError (TypeError)  a call lacks an argument, or has one that does not exist
        InvalidDomainError      a domain cannot be built
        InvalidDataError        records do not fit the domain (loading only)
        InvalidQueryError       a query cannot be asked
        DomainMismatchError     an object was made for another domain
        TooLargeError           a representation would exceed its size limit
        InfeasibleAccuracyError the wish cannot be met; the message names the nearest that can
      BudgetError
        BudgetExceededError     a release costs more than is left
        SessionExhaustedError   all paid hard answers are used
      SessionStateError
        SessionSealedError      a release was interrupted after the data were read
        ForkedSessionError      the process was forked after the session was opened
      LedgerError
        LedgerLockedError, LedgerCorruptError, LedgerMismatchError,
        LedgerRollbackError, LedgerWriteError
      DatasetError
        MissingDataError        a public table has not been fetched
        DownloadError           its source cannot be reached, or does not have it
        DigestMismatchError     a file is not the one of the catalogue
      TooFewRecordsError        a mean or quantile is over too few records to say anything
      IllConditionedError       a correlation or a slope that released sums leave open
      UpdateFailedError         an update rule failed in a comparison
      MissingExtraError (ImportError)
      InternalError             our bug, please report

An exception is an output: no message, and no choice of message, depends on private data.
`InvalidDataError` exists at loading time only; it tells which columns break which rule, and quotes no record.
Messages read "name must be X, got name=value; remedy." A value of the caller's is quoted by `shown`, and by
nothing else; all of a message can be printed, on one line but for reports of misfits.
"""

import itertools
import math
import re
import reprlib
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, ClassVar, Final

__all__ = [
    "BudgetError",
    "BudgetExceededError",
    "BudgetsAddWarning",
    "DatasetError",
    "DigestMismatchError",
    "DomainMismatchError",
    "DownloadError",
    "ForkedSessionError",
    "IllConditionedError",
    "InfeasibleAccuracyError",
    "InternalError",
    "InvalidCallError",
    "InvalidDataError",
    "InvalidDomainError",
    "InvalidInputError",
    "InvalidParameterError",
    "InvalidQueryError",
    "LargeDeltaWarning",
    "LedgerCorruptError",
    "LedgerError",
    "LedgerLockedError",
    "LedgerMismatchError",
    "LedgerRollbackError",
    "LedgerWriteError",
    "MissingDataError",
    "MissingExtraError",
    "OnlineICError",
    "PrivateLabelsWarning",
    "SessionExhaustedError",
    "SessionSealedError",
    "SessionStateError",
    "TooFewRecordsError",
    "TooFineWishError",
    "TooLargeError",
    "UpdateFailedError",
    "UpdateFailedWarning",
    "VacuousPromiseWarning",
    "WideBoundWarning",
    "callers_line",
    "check_choice",
    "check_function",
    "check_kind",
    "checked_integer",
    "checked_list",
    "checked_ratio",
    "checked_real",
    "is_number_of",
    "printable",
    "set_fields",
    "shown",
]

LONGEST_SHOWN = 60  # characters of a value
MOST_LISTED = 2**20  # entries of a list that is given: some iterators never end
LONGEST_LINE = 2000  # characters of a message: names of attributes may be long too
INTERRUPTS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)


class OnlineICError(Exception):
    """Base of every exception that the package raises on purpose.

    Its `code` names the class for programs and stays the same: "invalid-query", "session-exhausted".
    In IPython and notebooks its traceback is short: the caller's own lines and the message.
    `traceback.print_last()` prints all of it.
    """

    code: ClassVar[str] = "onlineic"  # stable, for programs: InvalidQueryError is "invalid-query"
    _on_lines: ClassVar[bool] = False  # whether a message is a list

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__.removesuffix("Error")).lower()

    def __init__(self, *said: object) -> None:
        super().__init__(*(self._printable(one) if isinstance(one, str) else one for one in said))

    def _printable(self, text: str) -> str:
        """Return a message that every log and terminal takes, whatever stands in names of attributes."""
        return "\n".join(map(printable, text.split("\n") if self._on_lines else [text]))

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows: not those inside the package."""
        import os
        import traceback  # of a rendering alone: imported with it

        inside = os.path.dirname(os.path.abspath(__file__)) + os.sep
        shells = (os.sep + "IPython" + os.sep, os.sep + "ipykernel" + os.sep)
        frames = [
            frame
            for frame in traceback.extract_tb(self.__traceback__)
            if not frame.filename.startswith(inside) and not any(shell in frame.filename for shell in shells)
        ]
        lines = "".join(traceback.format_list(frames)).splitlines()
        return [*lines, f"{type(self).__name__}: {self}"]


class InvalidInputError(OnlineICError, ValueError):
    """The caller's input cannot be used; nothing has changed and nothing was spent."""


class InvalidParameterError(InvalidInputError):
    """A parameter is outside its range."""


class InvalidCallError(InvalidInputError, TypeError):
    """A call lacks an argument, or has one that does not exist; the message names the one that was meant."""


class InvalidDomainError(InvalidInputError):
    """A domain cannot be built as described."""


class InvalidDataError(InvalidInputError):
    """Records do not fit the domain. Raised while loading only; names columns and rules, quotes no record."""

    _on_lines = True


class InvalidQueryError(InvalidInputError):
    """A query is malformed or does not fit the domain."""


class DomainMismatchError(InvalidInputError):
    """An object was built for another domain."""


class TooLargeError(InvalidInputError):
    """A representation would need more cells than its limit."""


class InfeasibleAccuracyError(InvalidInputError):
    """The accuracy asked for cannot be promised; the message names the nearest that can."""


class TooFineWishError(InvalidParameterError):
    """An answer is wished more exactly than whoever asks may; the message names the finest wish."""


class BudgetError(OnlineICError):
    """The release cannot be paid for."""


class BudgetExceededError(BudgetError):
    """A charge is larger than what is left of the budget."""


class SessionExhaustedError(BudgetError):
    """No hard answer can be paid any more, and the session was told to raise.

    Attributes:
        answers: Given by the same call before; asked again, they are repeats.
    """

    answers: tuple[Any, ...] = ()


class SessionStateError(OnlineICError):
    """The session can no longer answer."""


class SessionSealedError(SessionStateError):
    """A release was interrupted after the data were read; its charge stays spent."""


class ForkedSessionError(SessionStateError):
    """The process was forked: two copies of one noise source must not both be used."""


class EngineError(OnlineICError):
    """The engine that holds the table did not count it: nothing was reserved, spent or tested.

    Its own text is dropped, which could quote a record.
    """


class LedgerError(OnlineICError):
    """The record of charges cannot be read, trusted or written."""


class LedgerLockedError(LedgerError):
    """Another session has the ledger open."""


class LedgerCorruptError(LedgerError):
    """The ledger's chain of records is broken."""


class LedgerMismatchError(LedgerError):
    """The ledger was written under other parameters."""


class LedgerRollbackError(LedgerError):
    """The ledger is older than its receipt."""


class LedgerCopyError(LedgerError):
    """The ledger is a copy, and its original may still be gone on with."""


class LedgerWriteError(LedgerError):
    """A record could not be made durable."""


class DatasetError(OnlineICError):
    """A public table cannot be had."""


class MissingDataError(DatasetError):
    """A public table has not been fetched; the message says how to."""


class DownloadError(DatasetError):
    """The source of a public table cannot be reached, or does not have it."""


class DigestMismatchError(DatasetError):
    """A file is not the table of the catalogue: its digest is another."""


class TooFewRecordsError(OnlineICError):
    """A mean or quantile would be over so few records, for their error, that it could be anything.

    Attributes:
        answers: The numbers that say so: released, and repeats when they are asked again.
    """

    answers: tuple[Any, ...] = ()


class IllConditionedError(OnlineICError):
    """A correlation or a slope divides by variances that released sums do not tell from nothing.

    Attributes:
        answers: The numbers that say so: released, and repeats when they are asked again.
    """

    answers: tuple[Any, ...] = ()


class UpdateFailedError(OnlineICError):
    """An update rule failed in a comparison, which would no longer be one of this rule.

    Attributes:
        traces: Of what had been compared before.
    """

    traces: tuple[Any, ...] = ()


class MissingExtraError(OnlineICError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class InternalError(OnlineICError):
    """A bug of onlineic itself: please report it, with its traceback."""

    def _render_traceback_(self) -> list[str]:
        import traceback

        return "".join(traceback.format_exception(self)).splitlines()


class UpdateFailedWarning(UserWarning):
    """An update rule failed; the paid answer stands and the old hypothesis is kept."""


class BudgetsAddWarning(UserWarning):
    """Records without a total got another budget: both add, and the message says to what."""


class LargeDeltaWarning(UserWarning):
    """delta exceeds 1/n: releasing a row at random, in full, is allowed by it."""


class PrivateLabelsWarning(UserWarning):
    """A domain file says that labels in it were read from the private table, which no budget paid for."""


class WideBoundWarning(UserWarning):
    """A stated bound is too wide to be of use; issued once a session.

    Looked at are the first six answers over each set of attributes, ever fewer later, and every hard one.
    """


class MoreThanAnnouncedWarning(UserWarning):
    """A session has given more answers than `max_queries`, or than few announced ones; issued once a session.

    Its bound on all answers at once has ended: each answer keeps its own.
    """


class OtherRulesWarning(UserWarning):
    """A session goes on with a file of other rules: it buys nothing more without a test; issued once."""


class VacuousPromiseWarning(UserWarning):
    """A session was opened whose certified error bound is 1/2 or more: every answer of 1/2 keeps as much."""


def callers_line() -> int:
    """Return the `stacklevel` of a warning, called where it is made: that of the line that uses the package.

    Python shows a text once a line. Were that one of ours, of two tables the second would not be told.
    """
    import os
    import sys

    inside, level = os.path.dirname(os.path.abspath(__file__)) + os.sep, 1
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((inside, "<attrs generated")):
        frame, level = frame.f_back, level + 1
    return level


def ends_a_call(error: BaseException) -> bool:
    """Return whether this is how a call is ended from outside: its text is none of what holds the data."""
    if isinstance(error, INTERRUPTS):
        return True
    if isinstance(error, (Exception, BaseExceptionGroup)):  # a group holds its members' frames
        return False
    from asyncio import CancelledError  # loading it takes as long as all of this package

    return isinstance(error, CancelledError)


def checked_real(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
    remedy: str = "",
) -> float:
    """Return `value` as a finite float inside its range, or raise `InvalidParameterError`."""
    try:  # the float itself is checked: 1/10^400 would become 0, and 10^400 has none
        number = float(value) if is_number_of(value, Real) else math.nan  # type: ignore[arg-type]
    except Exception:  # whatever the value's own code raises
        number = math.nan
    if above < number < below and at_least <= number <= at_most:
        return number
    low, opening = (above, "(") if above > -math.inf or at_least == -math.inf else (at_least, "[")
    high, closing = (below, ")") if below < math.inf or at_most == math.inf else (at_most, "]")
    raise InvalidParameterError(
        f"{name} must be a number in {opening}{low:g}, {high:g}{closing}, "
        f"got {name}={_shown(value)}{'; ' + remedy if remedy else ''}."
    )


def checked_integer(
    name: str,
    value: object,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    remedy: str = "",
) -> int:
    """Return `value` as an int inside its range, or raise `InvalidParameterError`."""
    number: int | None
    try:
        number = int(value) if is_number_of(value, Integral) else None  # type: ignore[call-overload]
    except Exception:  # whatever the value's own code raises
        number = None
    fits = number is not None and not (at_least is not None and number < at_least)
    if number is not None and fits and (at_most is None or number <= at_most):
        return int(number)
    if not remedy and isinstance(value, Real) and not isinstance(value, Integral):
        remedy = _as_integer(value)
    bounds = [f">= {at_least}"] * (at_least is not None) + [f"<= {at_most}"] * (at_most is not None)
    raise InvalidParameterError(
        f"{name} must be an integer {' and '.join(bounds)}".rstrip()
        + f", got {name}={_shown(value)}{'; ' + remedy if remedy else ''}."
    )


def checked_ratio(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
    remedy: str = "",
) -> Fraction:
    """Return `value`, exactly, as a Fraction of Python integers inside its range, or raise.

    A Fraction made of numpy's integers keeps them, and its arithmetic wraps around as theirs does.
    """
    number = checked_real(
        name, value, above=above, at_least=at_least, below=below, at_most=at_most, remedy=remedy
    )
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(number)


def checked_list(name: str, value: object, *, of: str = "", remedy: str = "") -> list[Any]:
    """Return the entries of something that can be gone through, or raise `InvalidParameterError`."""
    entries = None
    if not isinstance(value, (str, bytes, bytearray)):
        try:
            entries = list(itertools.islice(iter(value), MOST_LISTED + 1))  # type: ignore[call-overload]
        except Exception:  # whatever going through it raises
            entries = None
    if entries is None or len(entries) > MOST_LISTED:
        got = shown(value) if entries is None else f"one of more than {MOST_LISTED:,}"
        raise InvalidParameterError(
            f"{name} must be a list{f' of {of}' if of else ''}, got {got}{'; ' + remedy if remedy else ''}."
        )
    return entries


def check_choice(name: str, value: object, *choices: str) -> None:
    """Raise `InvalidParameterError` unless `value` is one of two or more words."""
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        raise InvalidParameterError(
            f"{name} must be {', '.join(others)} or {last}, got {name}={shown(value)}."
        )


def check_kind(name: str, value: object, kind: type[Any], *, remedy: str = "") -> None:
    """Raise `InvalidParameterError` unless `value` is of a class."""
    if not isinstance(value, kind):
        raise InvalidParameterError(
            f"{name} must be a {kind.__name__}, got a {type(value).__name__}"
            f"{'; ' + remedy if remedy else ''}."
        )


def check_function(name: str, value: object, *, remedy: str = "") -> None:
    """Raise `InvalidParameterError` unless `value` can be called."""
    if not callable(value):
        raise InvalidParameterError(
            f"{name} must be a function, got a {type(value).__name__}{'; ' + remedy if remedy else ''}."
        )


def set_fields(instance: object, **values: object) -> None:
    """Replace fields of a frozen instance by their checked values: for `__attrs_post_init__` alone."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def is_number_of(value: object, kind: type[Any]) -> bool:
    """Whether a value is a number; a bool is none, and numpy takes a span of time for an integer."""
    if type(value) is int or type(value) is float:
        return isinstance(value, kind)
    import numpy as np  # here: an error, and a version, can be told without it

    return isinstance(value, kind) and not isinstance(value, (bool, np.timedelta64))


def _as_integer(value: Real) -> str:
    """Return a remedy for a whole number that is written as another kind of number, such as 1e4."""
    try:
        number = float(value)
    except Exception:  # whatever the value's own code raises
        return ""
    return f"write {int(number)}" if number.is_integer() and abs(number) <= 2**53 else ""


def _shown(value: object) -> str:
    """Return short text of what was given for a number: of a container its type alone."""
    plain = isinstance(value, (Real, str, bytes, type(None)))
    return shown(value) if plain else printable(f"a {type(value).__name__}", LONGEST_SHOWN)


class _Short(reprlib.Repr):
    """Looks at a few entries of a container, however long it is."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 20
        self.maxdict = 10
        self.maxstring = self.maxlong = self.maxother = LONGEST_SHOWN


_SHORT = _Short()


def shown(value: object, longest: int = LONGEST_SHOWN) -> str:
    """Return a value of the caller's as a message quotes it: its repr, short, printable and on one line.

    Args:
        value: Whatever its repr does: where it raises or is none, the type is named.
        longest: Characters; more are cut off at the end, of a text or a number in its middle.
    """
    short = _SHORT
    if longest != LONGEST_SHOWN:
        short = _Short()
        short.maxstring = short.maxlong = short.maxother = longest
    try:
        text = short.repr(value)
    except Exception:  # whatever its repr raises; an integer of thousands of digits has no text
        text = f"a {type(value).__name__} without a text"
    if not isinstance(value, str):
        text = re.sub(r"\n\s*", " ", text)  # arrays are written on lines
    return printable(text, longest)


def printable(text: str, longest: int = LONGEST_LINE) -> str:
    """Return a text with escapes for all that has no sign of its own, cut to a length."""
    text = str.__getitem__(text, slice(longest + 1))  # of a subclass, a plain one
    if not text.isprintable():
        text = "".join(
            sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text
        )
    return text if len(text) <= longest else text[: longest - 3] + "..."
