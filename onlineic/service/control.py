"""What the curator asks a server that runs, from the same machine: over a socket beside the ledger.

The socket is a file of the owner's, and only processes of the same user are heard. A message is one line of
JSON, and so is the reply. Nothing private is told: what is done here could be done with the files as well.
"""

import contextlib
import json
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from onlineic.errors import LedgerLockedError, OnlineICError, SessionStateError, shown

LONGEST = 2**16  # bytes of a message
WAITS = 10.0  # seconds for a whole message
Acts = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]
_log = logging.getLogger("onlineic.service")


@contextlib.contextmanager
def heard(ledger: str | os.PathLike[str], acts: Acts) -> Iterator[None]:
    """Hear what the curator asks while the block runs; where no socket can be made, it runs without.

    Args:
        ledger: Which this process holds: a socket that a killed one left is removed.
        acts: What can be asked, each with what it makes of the message.
    """
    place = os.path.realpath(os.fspath(ledger))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place + ".socket")
            with _short(place) as short:
                line.bind(short)
            os.chmod(place + ".socket", 0o600)  # nobody can connect before it listens
            line.listen(4)
        except OSError as error:
            _log.warning("no socket for the curator: %s", type(error).__name__)
            yield
            return
        thread = threading.Thread(target=_serve, args=(line, acts), name="onlineic-control", daemon=True)
        thread.start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.unlink(place + ".socket")
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextlib.contextmanager
def _short(place: str) -> Iterator[str]:
    """Return a name of the socket that is short enough for the system, whatever its folder is called."""
    folder, name = os.path.split(place + ".socket")
    held = os.open(folder, os.O_RDONLY)
    try:
        by_number = f"/proc/self/fd/{held}/{name}"
        yield by_number if os.path.isdir(f"/proc/self/fd/{held}") else place + ".socket"
    finally:
        os.close(held)


def _serve(line: socket.socket, acts: Acts) -> None:
    while True:
        try:
            caller, _ = line.accept()
        except OSError:  # the server ends
            return
        with caller, contextlib.suppress(OSError):
            caller.settimeout(WAITS)
            caller.sendall(json.dumps(_reply(caller, acts)).encode() + b"\n")


def _reply(caller: socket.socket, acts: Acts) -> dict[str, Any]:
    try:
        if not _same_user(caller):
            return {"error": "the caller must be the user whom the server runs as, got another."}
        sent = json.loads(_line(caller))
        return acts[sent["act"]](sent)
    except OnlineICError as error:
        return {"error": str(error)}
    except (ValueError, KeyError, TypeError):
        return {"error": f"the message must name one of {', '.join(acts)}, got another; use this version."}
    except Exception as error:  # never its text, which could hold anything
        _log.error("control failed: %s", type(error).__name__)
        return {"error": "it could not be done; look into the log."}


def _same_user(caller: socket.socket) -> bool:
    """Return whether the process at the other end is of this user, or the system's; where it can be told."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the rights of the file tell
    _, user, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return user in (0, os.geteuid())


def _line(line: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\n") and len(found) <= LONGEST:
        more = line.recv(LONGEST)
        if not more:
            break
        found += more
    return found


def asked(ledger: str | os.PathLike[str], act: str, **said: Any) -> dict[str, Any]:
    """Return what the server that has a ledger replies.

    Raises:
        LedgerLockedError: If none hears.
        SessionStateError: If it refuses.
    """
    place = os.path.realpath(os.fspath(ledger))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            with _short(place) as short:
                line.connect(short)
            line.sendall(json.dumps({"act": act, **said}).encode() + b"\n")
            found = json.loads(_line(line))
        except (OSError, ValueError):
            raise LedgerLockedError(
                f"ledger must be closed, or that of a server that runs, got {shown(place, 200)}, which is "
                "open or being read, and no server replies; end the session that has it."
            ) from None
    if "error" in found:
        raise SessionStateError(found["error"])
    return dict(found)
