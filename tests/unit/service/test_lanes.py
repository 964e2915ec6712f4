"""Lines of acts of one asker each: what waits, and what is refused."""

import asyncio
import threading

import pytest

from onlineic.service.lanes import BusyError, Lane


def test_of_one_asker_so_many_acts_wait_and_others_go_on():
    lane, going = Lane("test", threads=2, most=2), threading.Event()

    async def asked():
        first, second = (asyncio.create_task(lane.run("ann", act)) for act in (going.wait, lambda: "second"))
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="at most 2 requests of one asker may wait"):
            await lane.run("ann", lambda: "third")
        waiting, other = lane.waiting("ann"), await lane.run("bob", lambda: "other")
        going.set()
        return waiting, other, await first, await second, await lane.run("ann", lambda: "third")

    try:
        assert asyncio.run(asked()) == (2, "other", True, "second", "third")
    finally:
        going.set()
        lane.stop()
