"""Values drawn ahead in blocks, one block for each key, handed out by a counter.

Blocks are refilled on the counter only, never on a value, so that the time of a draw does not depend on
what is drawn. What was handed out is zeroed as soon as it can no longer be given back.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import final

import numpy as np

from onlineic._typing import Ints
from onlineic.errors import checked_integer
from onlineic.reentry import NonReentrantLock

Key = tuple[int, int, int]


_Draw = Callable[[], Ints]


_LONG = 4096  # a block that has handed out more than this is cut down to what is left


@final
class _Block:
    """Values of one key; those from `start` to `at` were handed out by the latest call."""

    __slots__ = ("at", "draw", "start", "values")

    def __init__(self, draw: _Draw) -> None:
        self.draw = draw
        self.values: Ints = np.empty(0, np.int64)
        self.start = self.at = 0

    def take(self, size: int) -> Ints:
        """Next `size` values. The counter moves first: no interruption can hand out a value twice."""
        if self.at + size > self.values.size:
            self._refill(self.at + size - self.values.size)
        self.start = start = self.at
        self.at = start + size
        return self.values[start : self.at].copy()

    def take_one(self) -> int:
        """Next value, as an integer."""
        if self.at == self.values.size:
            self._refill(1)
        self.start = start = self.at
        self.at = start + 1
        return self.values.item(start)

    def take_one_more(self) -> int:
        """Next value, as an integer, the latest call's being forgotten: `forget` and `take_one` in one."""
        values, at = self.values, self.at
        if at - self.start != 1 or at > _LONG or at == values.size:
            self.forget()
            return self.take_one()
        values[at - 1] = 0
        self.start = at
        self.at = at + 1
        return values.item(at)

    def forget(self, keep: int = 0) -> None:
        """Zero what the latest call handed out, but for its last `keep` values, which are next again."""
        if self.at - self.start == 1 and not keep:  # the commonest, at a fifth of the time
            self.values[self.start] = 0
        else:
            self.values[self.start : self.at - keep] = 0
        self.at -= keep
        if self.at > _LONG:
            # In this order: an interruption skips values, and never hands out a zeroed one.
            self.values = self.values[self.at :].copy()
            self.at = 0
        self.start = self.at

    def _refill(self, shortage: int) -> None:
        """Append whole draws, as many as are short: the sequence does not depend on how it is chunked."""
        fresh = self.draw()
        pieces = [self.values[self.at :], fresh]
        pieces += (self.draw() for _ in range((shortage - 1) // fresh.size))
        # In this order: an interruption skips values, and never hands out a zeroed one.
        old, self.values = self.values, np.concatenate(pieces)
        self.at = 0
        old[:] = 0


@final
class Blocks:
    """The blocks of all keys; when `held` are there, the one not used for longest makes room.

    Args:
        opener: Returns the draw of a key (validated there): a function that returns one refill, int64.
        held: At least 2. Most blocks kept; None keeps all.

    Attributes:
        lock: Lets one thread draw at a time.
        calls: How many have drawn, whatever they drew: `unread` tells by it which call it is about.
    """

    __slots__ = ("_by_key", "_held", "_latest", "_open", "calls", "lock")

    def __init__(self, opener: Callable[[Key], _Draw], *, held: int | None) -> None:
        self._open = opener
        self._held = held
        self.lock = NonReentrantLock("noise")
        self.calls = 0
        self.drop()

    def drop(self) -> None:
        """Forget every value. Takes no lock: after a fork its holder may not exist any more."""
        self._by_key: OrderedDict[Key, _Block] = OrderedDict()
        self._latest = _Block(lambda: np.empty(0, np.int64))  # stands for "no call yet"

    def take(self, key: Key, size: int) -> Ints:
        """Return the next `size` values of `key`."""
        if type(size) is not int or size < 0:
            size = checked_integer("size", size, at_least=0)
        return self.lock.run(lambda: self._turned_to(key).take(size))

    def take_one(self, key: Key) -> int:
        """Return the next value of `key`, as `take` of one does, without an array."""
        return self.lock.run(partial(self._taken_one, key))

    def _taken_one(self, key: Key) -> int:
        block = self._latest
        if block is self._by_key.get(key):  # one of the same after the other: the commonest
            self.calls += 1
            return block.take_one_more()
        return self._turned_to(key).take_one()

    def _turned_to(self, key: Key) -> _Block:
        """Return the block of a key, what the latest call handed out being forgotten."""
        block = self._by_key.get(key)
        if block is None:
            block = self._add(key)
        elif block is not self._latest:
            self._by_key.move_to_end(key)
        self._latest.forget()
        self._latest = block
        self.calls += 1
        return block

    def unread(self, count: int, since: int) -> None:
        """Put the last `count` values of the latest call back; the others are used.

        The call is the one that came after `since` others: if it is not the latest, all its values are used.
        """
        self.lock.run(lambda: self._put_back(count, since))

    def _put_back(self, count: int, since: int) -> None:
        if self.calls != since + 1:
            return
        block = self._latest
        remedy = "unread at most what the most recent call returned"
        most = block.at - block.start
        block.forget(keep=checked_integer("count", count, at_least=0, at_most=most, remedy=remedy))

    def _add(self, key: Key) -> _Block:
        block = _Block(self._open(key))
        if len(self._by_key) == self._held:
            _, oldest = self._by_key.popitem(last=False)
            oldest.values[:] = 0
        self._by_key[key] = block
        return block
