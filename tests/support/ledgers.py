"""Ledger files: a small table with many hits, sessions on it, and processes killed at a named point."""

import contextlib
import os
import pickle
import shutil
import signal
import sqlite3
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.ledger import MemoryLedger, SqliteLedger
from onlineic.ledger.lines import canonical_text
from onlineic.session.session import OnlineIC

DOMAIN = ic.Domain.of(a=6, b=4, c=["x", "y", "z"])
COUNTS = np.random.default_rng(1).multinomial(60_000, np.random.default_rng(2).dirichlet(np.full(72, 0.3)))
LABEL = "census 2026, release 3"
MECHANISMS = {
    # partitions behind first tables; numbers of fresh noise; a kept threshold; a threshold for each hit
    "gumbel": {"budget": ic.Budget(1.0, 1e-6), "hard_answers": 12, "threshold": 0.001},
    "numbers": {
        "budget": ic.Budget(1.0, 1e-6), "release": "answer", "sparse": "gumbel", "hard_answers": 6
    },
    "exponential": {
        "budget": ic.Budget(4.0), "release": "answer", "hard_answers": 60, "threshold": 0.006
    },
    "laplace": {
        "budget": ic.Budget(4.0), "sparse": "laplace", "release": "answer", "hard_answers": 20,
        "threshold": 0.04,
    },
}  # fmt: skip


def table(counts=COUNTS, domain=DOMAIN):
    return PrivateData(counts, domain)


def queries(count=60, seed=5):
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(count):
        low, high = sorted(rng.integers(0, 7, 2).tolist())
        one = ic.where(a=ic.between(low, min(max(low, high), 5)), c="xyz"[rng.integers(3)])
        asked.append(ic.dense(rng.integers(0, 2, 72).astype(float)) if rng.random() < 0.3 else one)
    return asked


def opened(path, kind="gumbel", data=None, **more):
    settings = {"ledger": path, "table": LABEL} | MECHANISMS[kind] | more
    return OnlineIC(data or table(), settings.pop("budget"), **settings)


def resumed(path, data=None, **more):
    return OnlineIC.resume(path, data or table(), **more)


def with_ledger(make, *arguments, **settings):
    """Return the one session that is made so, and the ledger that it claims."""
    claimed = []

    def watched(claim):
        def claims(ledger, *of):
            claim(ledger, *of)
            claimed.append(ledger)

        return claims

    with pytest.MonkeyPatch.context() as patched:
        for kind in (MemoryLedger, SqliteLedger):
            patched.setattr(kind, "claim", watched(kind.claim))
        session = make(*arguments, **settings)
    (ledger,) = claimed
    return session, ledger


@contextlib.contextmanager
def quick_folder():
    """A folder in memory where there is one: a killed process loses nothing of it, and syncs cost nothing."""
    base = "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(dir=base)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder)


def in_a_process(act):
    """Run `act(tell)` in a forked process; return what it told, and the signal that ended it, or 0."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reader)
            act(lambda *told: os.write(writer, pickle.dumps(told)))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        told = []
        while True:
            try:
                told.append(pickle.load(file))
            except EOFError:
                break
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return told, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def killed_at(owner, name, occurrence, *, after):
    """Let a method end its process at the given call, before it acts or after it."""
    method = getattr(owner, name)
    calls = []

    def fatal(*arguments, **more):
        calls.append(1)
        if len(calls) == occurrence and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = method(*arguments, **more)
        if len(calls) == occurrence:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, fatal)


def file_of(written, path):
    """Write lines whose chain holds as a ledger file."""
    first = {name: value for name, value in written.beginning.items() if name not in ("at", "durability")}
    SqliteLedger.create(path, first, written.beginning["durability"]).release()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for line, link in [*zip(written.lines, written.links, strict=True)][1:]:
            connection.execute("INSERT INTO line VALUES (?, ?, ?)", (line["at"], canonical_text(line), link))
        connection.execute("UPDATE head SET lines = ?, chain = ?", (len(written.links), written.links[-1]))
    return path
