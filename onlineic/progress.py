"""How far a call has come, told to whoever waits for it: stages and counts, public facts only.

A callback may stop the call by raising. It is called where nothing private is at hand, never between a read
of the data and its record: what was released is recorded then, and what was not has cost nothing.
"""

from collections.abc import Callable
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Literal, TypeVar, final

from onlineic.errors import InvalidParameterError, MissingExtraError

DELAY = 2.0  # seconds before a bar is shown

Progress = Callable[[str, int, int], object]
T = TypeVar("T")

_callback: ContextVar[Progress | None] = ContextVar("onlineic_progress", default=None)


class _Stopped(BaseException):
    """What a callback raised, on its way out: no update rule may take it for a failure of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def advance(stage: str, done: int, total: int) -> None:
    """Tell the callback of the call that runs, if there is one, that `done` of `total` are done."""
    callback = _callback.get()
    if callback is None:
        return
    try:
        callback(stage, done, total)
    except Exception as error:
        raise _Stopped(error) from None


@final
class reporting:  # noqa: N801
    """A block in which all that counts its steps tells a callback: fits, purchases, batches, comparisons.

    Args:
        progress: Called with (stage, done, total), or "bar". As of `OnlineIC`. None leaves a callback that is
            set further out.

    Raises:
        InvalidParameterError, MissingExtraError: As `checked_progress`.
    """

    __slots__ = ("_outermost", "_progress", "_token")

    def __init__(self, progress: "Progress | Literal['bar'] | None") -> None:
        self._progress = checked_progress(progress)
        self._outermost = False
        self._token: Token[Progress | None] | None = None

    def __enter__(self) -> None:
        self._outermost = _callback.get() is None
        if self._progress is not None:
            self._token = _callback.set(self._progress)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _callback.reset(self._token)
        if self._outermost and isinstance(error, _Stopped):
            raise error.error from None


def silenced(run: Callable[[], T]) -> T:
    """Return what `run` returns, between a read of the data and its record: no callback is called then."""
    token = None if _callback.get() is None else _callback.set(None)
    try:
        return run()
    finally:
        if token is not None:
            _callback.reset(token)


def checked_progress(progress: object) -> Progress | None:
    """Return the callback that was asked for.

    Raises:
        InvalidParameterError: If it is none of a callable, "bar" and None.
        MissingExtraError: If a bar was asked for, and tqdm is not installed.
    """
    if progress is None or callable(progress):
        return progress
    if progress == "bar":
        return Bars()
    raise InvalidParameterError(
        f"progress must be a callable (stage, done, total), 'bar' or None, got a {type(progress).__name__}."
    )


@final
class Bars:
    """Bars of tqdm, on a terminal or in a notebook, one a stage: each is shown after two seconds."""

    __slots__ = ("_bars", "_make")

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise MissingExtraError(
                "tqdm must be installed for bars; run pip install 'onlineic[progress]'."
            ) from None
        self._make: Callable[..., Any] = tqdm
        self._bars: dict[str, Any] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        bar = self._bars.get(stage)
        if bar is not None and (bar.total != total or done < bar.n):  # the last one ended early
            self._bars.pop(stage).close()
            bar = None
        if bar is None:
            bar = self._bars[stage] = self._make(total=total, desc=stage, delay=DELAY, leave=False)
        bar.update(done - bar.n)
        if done >= total:
            self._bars.pop(stage).close()
