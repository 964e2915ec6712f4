"""A server that is killed by signal 9: no answer that left is lost or changed, and none is paid twice.

Two kills in the suite, sixty by `-m kills`; ONLINEIC_KILLS=1000 makes it a thousand.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import onlineic as ic
from onlineic.ask import described
from onlineic.audit import verified
from onlineic.errors import OnlineICError
from onlineic.ledger import Burned, Easy, Hard, Opened, read
from onlineic.service import RemoteError, Users

pytest.importorskip("uvicorn", reason="the server needs the extra: pip install onlineic[serve]")
DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"], pay=range(12))
KILLS = int(os.environ.get("ONLINEIC_KILLS", "60"))


def started(folder, port):
    words = [sys.executable, "-m", "onlineic", "serve", folder / "a.db", "--data", folder / "t.csv"]
    words += [
        "--domain",
        folder / "d.json",
        "--table",
        "t",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--hard-answers",
        "20",
    ]
    words += ["--users", folder / "u.db", "--listen", f"127.0.0.1:{port}", "--after-crashes"]
    with open(folder / "log", "ab") as log:
        return subprocess.Popen([*map(str, words)], stderr=log, stdout=log)


def question(number):
    chance = random.Random(number)
    low, high = sorted(chance.sample(range(20, 40), 2))
    sent = {"age": [low, high], "sex": chance.choice("FM")}
    if number % 3 == 0:
        sent["pay"] = {"from": chance.randrange(1, 12)}
    return sent


def asked_again(port, token, told):
    for _ in range(5):
        try:
            with ic.connect(f"http://127.0.0.1:{port}", token) as remote:
                return {one: remote.answer(question(one)) for one in list(told)}
        except RemoteError:
            continue
    raise AssertionError("the server has not come up again")


def killed(tmp_path, kills, clients=4):
    (tmp_path / "d.json").write_text(DOMAIN.to_json())
    rows = random.Random(5)
    lines = [
        f"{int(20 + 19 * rows.random() ** 2)},{rows.choice('FFM')},{rows.randrange(12)}" for _ in range(9000)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["age,sex,pay", *lines]))
    users = Users(tmp_path / "u.db", create=True)
    tokens = [users.add(f"user{number}", 1.0, 10**6) for number in range(clients)]
    users.close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = started(tmp_path, port)
    told, ended, gate = {}, threading.Event(), threading.Lock()

    def client(number):
        chance = random.Random(number)
        while not ended.is_set():
            try:
                with ic.connect(f"http://127.0.0.1:{port}", tokens[number], timeout=30) as remote:
                    while not ended.is_set():
                        many = [chance.randrange(400) for _ in range(chance.choice([1, 1, 4]))]
                        for one, answer in zip(many, remote.answer_many([*map(question, many)]), strict=True):
                            if answer.status != "untested":
                                with gate:
                                    told.setdefault(one, set()).add(answer.value)
            except OnlineICError:
                time.sleep(0.1)

    threads = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(clients)]
    for thread in threads:
        thread.start()
    moments = random.Random(3)
    try:
        for _ in range(kills):
            before = len(told)
            for _ in range(200):  # until it has answered again
                time.sleep(0.05)
                if len(told) > before or server.poll() is not None:
                    break
            time.sleep(moments.random() * 0.2)
            server.send_signal(signal.SIGKILL)
            server.wait()
            server = started(tmp_path, port)
        again = asked_again(port, tokens[0], told)
        ended.set()
        server.send_signal(signal.SIGTERM)
        assert 0 == server.wait(60), (tmp_path / "log").read_text()[-2000:]
    finally:
        ended.set()
        server.kill()
        server.wait()
    return told, again


def check(tmp_path, told, again):
    """What was told stands in the record, and between two purchases no question is paid twice."""
    assert len(told) >= 10
    assert "untested" not in {answer.status for answer in again.values()}
    written = read(tmp_path / "a.db")
    assert () == verified(written).problems
    domain, n = written.domain(), written.beginning["n"]
    records, _ = written.records(domain)
    numbers, paid, recorded, keys = written.told(domain), written.paid(domain), {}, []
    for place, record in enumerate(records):
        if isinstance(record, Easy | Hard):
            query = record.query
            value = record.guess / (n << query.grid_bits) if isinstance(record, Easy) else numbers[place]
            recorded.setdefault(query.key, []).append(1.0 - value if query.complement else value)
        if isinstance(record, Opened):
            keys = []
        if isinstance(record, Hard):
            assert place in paid
            assert record.query.key not in keys
            keys.append(record.query.key)
    assert all(isinstance(records[place], Hard | Opened | Burned) for place in paid)
    for one, values in told.items():
        query = described(question(one), domain).bind(domain)
        for value in values:
            plain = 1.0 - value if query.complement else value
            assert min(abs(plain - held) for held in recorded[query.key]) < 1e-12, one


@pytest.mark.slow
def test_kills_lose_and_change_no_answer(tmp_path):
    check(tmp_path, *killed(tmp_path, 2, clients=2))


@pytest.mark.kills
def test_many_kills_lose_and_change_no_answer(tmp_path):
    check(tmp_path, *killed(tmp_path, KILLS, clients=8))
