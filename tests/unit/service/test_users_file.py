"""The users file of a running server: moved away and back, replaced by a copy, or locked by another."""

import contextlib
import http.client
import json
import os
import shutil
import threading

import numpy as np
import pytest

import onlineic as ic
from onlineic.service import Users
from onlineic.service import users as file_of_users
from support import databases
from support.events import FOR_EVER
from support.served import served, stalled

DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"])
TABLE = np.full(DOMAIN.shape, 500)


@pytest.fixture
def server(tmp_path):
    data = ic.PrivateData(TABLE, DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), ledger=tmp_path / "a.db", table="t", durability="all")
    with served(session, tmp_path) as running:
        yield running


def asked(server, low, who="ann"):
    """Status and code of a new question."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    body = json.dumps({"questions": [{"age": [low, 39]}]})
    line.request("POST", "/v1/answers", body, {"Authorization": f"Bearer {server.tokens[who]}"})
    reply = line.getresponse()
    told = reply.read()
    line.close()
    return reply.status, json.loads(told).get("type"), told.decode()


def ready(server):
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    line.request("GET", "/ready")
    found = line.getresponse().status
    line.close()
    return found


def logged(server, count):
    """Wait for so many lines of the log."""
    while True:
        with contextlib.closing(Users(server.users)) as users:
            lines = [*users.logged()]
        if len(lines) >= count:
            return lines


def test_a_file_that_is_away_for_a_while_ends_nothing(server):
    assert 200 == asked(server, 20)[0]
    os.rename(server.users, f"{server.users}.away")
    for low in (21, 22):
        status, code, told = asked(server, low)
        assert (503, "unready") == (status, code)
        assert "users.db" not in told  # where it lies is nobody's business
    os.rename(f"{server.users}.away", server.users)

    assert 200 == asked(server, 21)[0]
    assert 200 == ready(server)


def test_a_file_that_is_away_while_a_question_waits_lets_it_go_unasked(server, monkeypatch):
    held, free = stalled(monkeypatch)
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    line.request("GET", "/v1/summary", headers={"Authorization": f"Bearer {server.tokens['bob']}"})
    assert held.wait(FOR_EVER)
    found = []
    thread = threading.Thread(target=lambda: found.append(asked(server, 25)))
    thread.start()
    metrics = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    told = b""
    while b"onlineic_waiting 1\n" not in told:
        metrics.request("GET", "/metrics", headers={"Authorization": f"Bearer {server.tokens['bob']}"})
        told = metrics.getresponse().read()
    metrics.close()
    os.rename(server.users, f"{server.users}.away")
    free.set()
    thread.join()
    os.rename(f"{server.users}.away", server.users)
    line.getresponse().read()
    line.close()

    assert (503, "unready") == found[0][:2]
    assert 200 == asked(server, 25)[0]
    assert 200 == ready(server)


def test_in_a_file_that_took_the_place_of_another_users_are_revoked_and_lines_are_logged(server):
    assert 200 == asked(server, 20)[0]
    logged(server, 1)
    shutil.copy2(server.users, f"{server.users}.copy")
    os.replace(f"{server.users}.copy", server.users)
    with contextlib.closing(Users(server.users)) as users:
        users.revoke("ann")

    assert 401 == asked(server, 21)[0]
    assert 200 == asked(server, 21, "bob")[0]
    assert "bob" == logged(server, 2)[0][1].user


def test_a_file_in_its_place_that_others_may_read_is_refused(server):
    shutil.copyfile(server.users, f"{server.users}.copy")
    os.chmod(f"{server.users}.copy", 0o644)
    os.replace(f"{server.users}.copy", server.users)

    assert (503, "unready") == asked(server, 20)[:2]
    os.chmod(server.users, 0o600)
    assert 200 == asked(server, 20)[0]


def test_while_another_process_writes_the_last_users_stand_for_a_second(server, monkeypatch):
    assert 200 == asked(server, 21)[0]
    logged(server, 1)
    other = databases.opened(server.users)
    other.isolation_level = None
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(file_of_users, "STALE", 10**18)
    assert 200 == asked(server, 22)[0]
    os.utime(server.users)  # as if something had been written: what, nobody can read
    assert 200 == asked(server, 23)[0]
    monkeypatch.setattr(file_of_users, "STALE", -1)
    os.utime(server.users)
    assert (503, "unready") == asked(server, 24)[:2]
    other.execute("ROLLBACK")
    other.close()

    assert 200 == asked(server, 24)[0]
    assert 4 == len({line.digest for _, line in logged(server, 4)})  # those of the time before too
