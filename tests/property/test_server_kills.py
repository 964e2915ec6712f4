"""A server that is killed by signal 9: no answer that left is lost or changed, and none is paid twice.

Six kills in the suite, sixty among 5,000 questions of eight clients by `-m kills`; a thousand by
`ONLINEIC_KILLS=1000 make kills`. A kill uses up what stood reserved, so that every twenty of them have a new
ledger: of a spent one only repeats would be told.
"""

import contextlib
import http.client
import json
import os
import random
import resource
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
from onlineic.ledger import BoughtTables, Easy, Forfeited, Hard, read
from onlineic.service import RemoteError, Users
from support.events import FOR_EVER

pytest.importorskip("uvicorn", reason="the server needs the extra: pip install onlineic[serve]")
DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"], pay=range(12))
KILLS = int(os.environ.get("ONLINEIC_KILLS", "60"))
KILLS_EACH, QUESTIONS = 20, 5000
# one process that has imported everything, and forks a server a line: a start takes a twentieth of the time
NURSERY = """
import os, signal, sys
import onlineic.service.serving
from onlineic.cli import main
for line in sys.stdin:
    act, *words = line.rstrip("\\n").split("\\t")
    if act == "end":
        print(os.waitpid(int(words[0]), 0)[1], flush=True)
        continue
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(2, 1)
        os._exit(main(words))
    print(child, flush=True)
"""


class Nursery:
    """Starts servers of one folder, kills them, and waits for their end."""

    def __init__(self, folder):
        self.folder = folder
        with open(folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", NURSERY],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def told(self, *words):
        print(*words, sep="\t", file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def start(self, port):
        words = (
            f"serve {self.folder / 'a.db'} --data {self.folder / 't.csv'} --domain {self.folder / 'd.json'}"
        )
        words += f" --total {self.folder / 'total.db'} --table t --epsilon 1 --delta 1e-6 --hard-answers 20"
        words += f" --users {self.folder / 'u.db'} --listen 127.0.0.1:{port} --after-crashes"
        words += "" if (self.folder / "a.db").exists() else " --new"
        return self.told("start", *words.split())

    def end(self, server, how):
        """Send a signal, and return the status of the end."""
        os.kill(server, how)
        return self.told("end", server)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def question(number):
    chance = random.Random(number)
    low, high = sorted(chance.sample(range(20, 40), 2))
    sent = {"age": [low, high], "sex": chance.choice("FM")}
    if number % 3 == 0:
        sent["pay"] = {"from": chance.randrange(1, 12)}
    return sent


def asked_again(port, token, told):
    for _ in range(50):  # each goes on for seven seconds
        try:
            with ic.connect(f"http://127.0.0.1:{port}", token) as remote:
                return {one: remote.answer(question(one)) for one in list(told)}
        except RemoteError:
            continue
    raise AssertionError("the server has not come up again")


def laid_out(folder, clients):
    """A table, its domain and users in a folder; return tokens and a free port."""
    (folder / "d.json").write_text(DOMAIN.to_json())
    rows = random.Random(5)
    lines = [
        f"{int(20 + 19 * rows.random() ** 2)},{rows.choice('FFM')},{rows.randrange(12)}" for _ in range(9000)
    ]
    (folder / "t.csv").write_text("\n".join(["age,sex,pay", *lines]))
    users = Users(folder / "u.db", create=True)
    tokens = [users.add(f"user{number}", 1.0, 10**6) for number in range(clients)]
    users.close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return tokens, free.getsockname()[1]


def killed(folder, kills, clients, questions=0):
    """Kill a server while clients ask; return the values told of each question, and those told at the end.

    A kill comes behind ten answers, and one since the last, at a moment that the clock chooses.
    """
    tokens, port = laid_out(folder, clients)
    told, ended, heard, asked = {}, threading.Event(), threading.Condition(), [0]

    def client(number):
        chance = random.Random(number)
        while not ended.is_set():
            try:
                with ic.connect(f"http://127.0.0.1:{port}", tokens[number], timeout=FOR_EVER) as remote:
                    while not ended.is_set():
                        many = [chance.randrange(400) for _ in range(chance.choice([1, 1, 4]))]
                        answers = remote.answer_many([*map(question, many)])
                        with heard:
                            asked[0] += len(many)
                            heard.notify_all()
                            for one, answer in zip(many, answers, strict=True):
                                if answer.status != "untested":
                                    told.setdefault(one, set()).add(answer.value)
            except OnlineICError:
                ended.wait(0.02)

    with contextlib.closing(Nursery(folder)) as nursery:
        server = nursery.start(port)
        threads = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(clients)]
        for thread in threads:
            thread.start()
        moments = random.Random(kills)

        def answered_again(least):
            with heard:
                before = asked[0]
                assert heard.wait_for(
                    lambda: asked[0] > before and asked[0] >= least and len(told) >= 10, FOR_EVER + least
                )

        try:
            for place in range(kills):
                answered_again(questions * place // kills)
                time.sleep(moments.random() * 0.05)
                assert signal.SIGKILL == nursery.end(server, signal.SIGKILL)
                server = nursery.start(port)
            answered_again(questions)
            again = asked_again(port, tokens[0], told)
            ended.set()
            for thread in threads:
                thread.join()
            assert 0 == nursery.end(server, signal.SIGTERM), (folder / "log").read_text()[-2000:]
        except BaseException:
            ended.set()
            with contextlib.suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)
            raise
    return told, again, asked[0]


def check(tmp_path, told, again, least=10):
    """What was told stands in the record, and between two purchases no question is paid twice."""
    assert len(told) >= least
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
        if isinstance(record, BoughtTables):
            keys = []
        if isinstance(record, Hard):
            assert place in paid
            assert record.query.key not in keys
            keys.append(record.query.key)
    assert all(isinstance(records[place], Hard | BoughtTables | Forfeited) for place in paid)
    for one, values in told.items():
        query = described(question(one), domain).bind(domain)
        for value in values:
            plain = 1.0 - value if query.complement else value
            assert min(abs(plain - held) for held in recorded[query.key]) < 1e-12, one


@pytest.mark.slow
def test_six_kills_lose_and_change_no_answer(tmp_path):
    told, again, _ = killed(tmp_path, 6, clients=2)
    check(tmp_path, told, again)


@pytest.mark.kills
@pytest.mark.parametrize("part", range(-(-KILLS // KILLS_EACH)))
def test_many_kills_lose_and_change_no_answer(tmp_path, part):
    each = -(-QUESTIONS * KILLS_EACH // KILLS)
    told, again, asked = killed(tmp_path, KILLS_EACH, 8, each)
    check(tmp_path, told, again)

    assert asked >= each


@pytest.mark.slow
def test_a_full_disk_is_an_answer_503_and_loses_nothing(tmp_path):
    """A limit on the size of files, behind which writes fail as on a disk that is full."""
    tokens, port = laid_out(tmp_path, 1)
    with contextlib.closing(Nursery(tmp_path)) as nursery:
        server = nursery.start(port)
        with ic.connect(f"http://127.0.0.1:{port}", tokens[0], timeout=FOR_EVER) as remote:
            kept = {one: remote.answer(question(one)) for one in range(5)}
            size = os.path.getsize(tmp_path / "a.db")
            hard = resource.prlimit(server, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(server, resource.RLIMIT_FSIZE, (size + 4096, hard))
            statuses = []
            for one in range(5, 400):
                line = http.client.HTTPConnection("127.0.0.1", port, timeout=FOR_EVER)
                sent = json.dumps({"questions": [question(one)]})
                line.request("POST", "/v1/answers", sent, {"Authorization": f"Bearer {tokens[0]}"})
                reply = line.getresponse()
                status, body = reply.status, reply.read()
                line.close()
                statuses.append(status)
                if status == 503:
                    assert b"value" not in body
                    break
                (answer,) = json.loads(body)["answers"]
                if answer["status"] != "untested":
                    kept[one] = remote.answer(question(one))
            assert 503 == statuses[-1], statuses
            assert {200} == set(statuses[:-1])
        nursery.end(server, signal.SIGTERM)
        server = nursery.start(port)
        again = asked_again(port, tokens[0], kept)
        assert 0 == nursery.end(server, signal.SIGTERM)
    check(tmp_path, {one: {answer.value} for one, answer in kept.items()}, again, least=5)
