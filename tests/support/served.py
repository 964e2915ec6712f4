"""A session that is served in a thread of this process, on a port of its own."""

import contextlib
import threading

import attrs
import pytest

uvicorn = pytest.importorskip("uvicorn", reason="the server needs the extra: pip install onlineic[serve]")
pytest.importorskip("starlette", reason="the server needs the extra: pip install onlineic[serve]")

import onlineic as ic  # noqa: E402
from onlineic.service import Users, serving  # noqa: E402
from onlineic.service.gate import Limits  # noqa: E402
from support.events import FOR_EVER  # noqa: E402


@attrs.frozen
class Served:
    """A running server.

    Attributes:
        users: Path of the users file.
        tokens: Dict of name to token.
    """

    url: str
    users: object
    tokens: dict
    port: int


def stalled(monkeypatch):
    """Let summaries of sessions wait: two events, that one has begun, and that all may go on."""
    held, free, summary = threading.Event(), threading.Event(), ic.OnlineIC.summary

    def waits(*given):
        held.set()
        free.wait()
        return summary(*given)

    monkeypatch.setattr(ic.OnlineIC, "summary", waits)
    return held, free


@contextlib.contextmanager
def served(session, folder, names=("ann", "bob"), share=None, per_minute=10**6, **limits):
    """Serve a session until the block ends."""
    path = folder / "users.db"
    users = Users(path, create=True)
    tokens = {name: users.add(name, share, per_minute) for name in names}
    users.close()
    with running(session, path, Limits(**limits)) as port:
        yield Served(f"http://127.0.0.1:{port}", path, tokens, port)


@contextlib.contextmanager
def running(session, users, limits=None):
    """Serve a session in a thread until the block ends; give the port."""
    begun = threading.Event()
    ended = []
    with serving.standing(session, users, "127.0.0.1", 0, limits or Limits()) as server:
        startup = server.startup

        async def told(sockets=None):
            await startup(sockets)
            begun.set()

        server.startup = told
        thread = threading.Thread(target=lambda: ended.append(server.run()), daemon=True)
        thread.start()
        assert begun.wait(FOR_EVER)
        try:
            yield server.servers[0].sockets[0].getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
