"""Threads in which each asker has one act at a time: however much one of them sends, the others go on.

The interpreter switches between threads that work, so that an act of one asker and an act of another share
the processor. What is sent while an act of the same asker runs waits in that asker's own line.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, final

from onlineic.errors import OnlineICError

T = TypeVar("T")


class BusyError(OnlineICError):
    """Too much waits of this asker already; nothing was asked."""


@final
class Lane:
    """Runs acts of many askers, one of each at a time, those of one asker in their order.

    Args:
        name: Of its threads.
        threads: How many acts run at once; further askers are taken in turns.
        most: How many acts of one asker may wait, with the one that runs.
    """

    def __init__(self, name: str, threads: int, most: int) -> None:
        self._pool = ThreadPoolExecutor(threads, f"onlineic-{name}")
        self._most = most
        self._lines: dict[str, deque[tuple[Callable[[], Any], Future[Any]]]] = {}
        self._gate = threading.Lock()

    def waiting(self, name: str) -> int:
        """Return how many acts of an asker wait or run."""
        return len(self._lines.get(name, ()))

    async def run(self, name: str, act: Callable[[], T]) -> T:
        """Return what an act returns; one that nobody waits for any more is left out.

        Raises:
            BusyError: If too many acts of this asker wait.
        """
        future: Future[T] = Future()
        with self._gate:
            line = self._lines.setdefault(name, deque())
            if len(line) >= self._most:
                raise BusyError(f"at most {self._most} requests of one asker may wait, got more; ask later.")
            line.append((act, future))
            if len(line) == 1:
                self._pool.submit(self._next, name)
        return await told(future)

    def _next(self, name: str) -> None:
        """Run the first act of a line, and let the next one wait behind those of other askers."""
        act, future = self._lines[name][0]
        if future.set_running_or_notify_cancel():
            try:
                result = act()
            except BaseException as error:  # whatever it is, who waits is told
                future.set_exception(error)
            else:
                future.set_result(result)
        del act, future
        with self._gate:
            line = self._lines[name]
            line.popleft()
            if line:
                self._pool.submit(self._next, name)
            else:
                del self._lines[name]

    def stop(self) -> None:
        """Finish what runs, and take nothing more: what waits is given up."""
        with self._gate:
            for line in self._lines.values():
                for _, future in line:
                    future.cancel()
        self._pool.shutdown()


async def told(future: Future[T]) -> T:
    """Return what another thread makes of a future; it is cancelled where nobody waits any more."""
    loop = asyncio.get_running_loop()
    mine: asyncio.Future[None] = loop.create_future()

    def ended() -> None:
        if not mine.done():
            mine.set_result(None)

    def wake(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # a loop that is closed
            loop.call_soon_threadsafe(ended)

    future.add_done_callback(wake)
    try:
        await mine
    except asyncio.CancelledError:
        future.cancel()
        raise
    return future.result()
