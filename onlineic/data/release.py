"""How every mechanism of this package meets the private table: paid first, and private frames stay inside."""

import logging
import os
from collections.abc import Callable
from typing import TypeVar

from onlineic.accounting.budget import Budget, check_budget
from onlineic.data.private import PrivateData
from onlineic.errors import INTERRUPTS, InvalidParameterError, SessionSealedError, check_kind, ends_a_call
from onlineic.noise.sources import Noise, SystemNoise, checked_source
from onlineic.progress import silenced
from onlineic.queries.counted import Counted
from onlineic.reentry import NonReentrantLock

FAILED = (
    "a release must not be interrupted between reading the data and its result, but was: its budget stays "
    "spent; ask again with a budget of its own (budgets add)."
)
T = TypeVar("T")
_log = logging.getLogger("onlineic")


def check_types(data: object, budget: object) -> None:
    """Raise `InvalidParameterError` unless these are a table and a budget."""
    check_data(data)
    check_budget(budget)


def check_data(data: object) -> None:
    """Raise `InvalidParameterError` unless this is a table."""
    if not isinstance(data, PrivateData):
        raise InvalidParameterError(
            f"data must be a PrivateData, got a {type(data).__name__}; write PrivateData.from_records(...)."
        )


def checked_noise(noise: Noise | None) -> Noise:
    """Return the source to draw from: the system's entropy where none is given.

    Raises:
        InvalidParameterError: If it is no `Noise`.
    """
    return SystemNoise() if noise is None else checked_source(noise)


def checked_release(data: PrivateData, epsilon: float, noise: Noise | None) -> tuple[Noise, Budget]:
    """Return source and budget of one pure release.

    Raises:
        InvalidParameterError: If noise, epsilon or data are not what they must be.
    """
    source = checked_noise(noise)
    check_types(data, Budget(epsilon))
    return source, Budget(epsilon, neighbours=data.neighbours)


def records_of(data: PrivateData, counted: Counted | None) -> tuple[int, int]:
    """Return how many records there are, and by how many that may be off: none where the number is public.

    Raises:
        InvalidParameterError: If the number is private and was not counted, or public and was.
    """
    check_kind("data", data, PrivateData)
    if counted is None:
        return data.n, 0
    check_kind("counted", counted, Counted, remedy="write counted=offline.count(data, epsilon=0.05)")
    if data.n_at_most is None:
        raise InvalidParameterError(
            f"counted must be None where the number of records is public, got {counted}; leave it out."
        )
    return counted.n, counted.bound


def most_of(data: PrivateData) -> int:
    """Return the most records that there can be: n where that is public."""
    return data.n if data.n_at_most is None else data.n_at_most


def is_private(noise: Noise) -> bool:
    """Return whether a release is private: of other sources than the system nothing is known."""
    return type(noise) is SystemNoise


def stamp(private: bool) -> str:
    """Return what the text of a release ends with: nothing if it is private."""
    return "" if private else ", NOT PRIVATE"


def check_outside(data: PrivateData, noise: Noise) -> None:
    """Raise `SessionStateError` in the thread that reads this table or draws from this noise: in a handler.

    Asked before anything is spent, it tells for all that follows: a handler that comes later is done before
    the call goes on.
    """
    data.check_outside()
    noise.check_outside()


def lock_of(data: PrivateData) -> NonReentrantLock:
    """Return what a read of a table passes: who asks for one inside of it is refused."""
    return data._lock


def charged(data: PrivateData, budget: Budget, noise: Noise) -> None:
    """Enter `budget` among those of the table, if what is released with this noise is private.

    Everything public must be checked before: from here on the budget is spent, whatever happens.

    Raises:
        InvalidParameterError: If data or budget are of another type, or the table is one of persons, or stays
            where it lives; nothing was spent.
        BudgetExceededError, LedgerError: If the table has a total that does not pay it; nothing was spent.
        SessionStateError: In the middle of a read of this table, or of a draw, of the same thread; nothing
            was spent.
    """
    check_types(data, budget)
    data.check_here()
    data.check_promised(1)
    check_outside(data, noise)
    if is_private(noise):
        data.spend(budget)


def released(data: PrivateData, budget: Budget, noise: Noise, private: Callable[[], T]) -> T:
    """Charge `budget` to the table, then run `private`, which reads the data and draws.

    Raises:
        InvalidParameterError, BudgetExceededError, LedgerError, SessionStateError: As `charged`.
        SessionSealedError: If `private` failed. Its cause is not chained: a traceback could hold a private
            number.
    """
    charged(data, budget, noise)
    return guarded(private, log_failure, FAILED)


def log_failure(name: str, place: str, interrupted: bool) -> None:
    """Say in the log where a release failed, never with what."""
    _log.error("release failed: %s at %s", name, place)


def guarded(private: Callable[[], T], failed: Callable[[str, str, bool], None], message: str) -> T:
    """Return what `private` returns; from a failure let out neither its frames nor its text nor its cause.

    Args:
        private: Reads the data. Its frames are the only ones that hold private numbers.
        failed: (name of the exception, file and line, whether an interrupt passes on) -> None. Called once
            after a failure, outside of the handler.
        message: Of the `SessionSealedError`; says nothing about the failure.

    Raises:
        SessionSealedError: For all but Ctrl-C and the like, which pass on without the frames that they came
            from: what an engine raises beside `Exception`, as a panic, may quote a row.
    """
    interrupt: BaseException | None = None
    name = place = "?"
    try:
        try:
            return silenced(private)  # no callback of whoever waits sees a private frame
        except BaseException as error:
            name, place = type(error).__name__, _place_of(error)
            if ends_a_call(error):
                interrupt = error
    except INTERRUPTS as second:  # Ctrl-C in the handler above; no call here, so a third cannot come
        interrupt = second
    except BaseException:  # whatever a signal's handler has raised there
        interrupt = None
    # here, outside the handlers and the private frame, so that nothing private is chained to what leaves
    if interrupt is not None:
        interrupt.__traceback__ = interrupt.__context__ = interrupt.__cause__ = None
    if interrupt is None:
        failed(name, place, False)
        raise SessionSealedError(message)
    failed(name, place, True)
    raise interrupt


def _place_of(error: BaseException) -> str:
    """Return file and line where an exception was raised: never its text, which could hold a count."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
