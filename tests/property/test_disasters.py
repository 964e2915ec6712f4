"""Ten disasters of a server that runs for years: what is told, and what is spent before and after.

`make operations` runs them; `pytest -s -m operations tests/property/test_disasters.py` prints the table.
After each everything that was told is told again, nothing is given back, and the ledger holds.
"""

import contextlib
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import onlineic as ic
from onlineic.audit import summarised, verified
from onlineic.ledger import read
from onlineic.service import Users
from onlineic.service.backup import back_up
from onlineic.service.control import heard
from support.events import FOR_EVER
from support.served import Limits, running

pytestmark = pytest.mark.operations
DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"])
ROWS = [f"{20 + (at * at) % 20},{'FM'[at % 3 == 0]}" for at in range(30_000)]
ASKED = [{"sex": "F"}, {"age": [20, 29]}, {"age": [25, 37], "sex": "M"}]
MORE = [{"age": [low, high], "sex": sex} for low in range(20, 30) for high in range(30, 40) for sex in "FM"]
COMMAND = "import os, sys\n{}\nfrom onlineic.cli import main\nsys.exit(main(sys.argv[1:]))"
DAYS = 30


class World:
    """Files of a server, and the process that serves them, if one does."""

    def __init__(self, folder):
        self.folder, self.process, self.port = folder, None, 0

    def path(self, name):
        return self.folder / name

    def words(self, *more, data="people.csv", domain="d.json", listen="127.0.0.1:0"):
        files = ["--data", data, "--domain", domain, "--users", "u.db", "--total", "total.db"]
        return ["serve", "a.db", *files, "--table", "t", "--listen", listen, *more]

    def command(self, *words, before="", **how):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND.format(before), *words],
            cwd=self.folder,
            env=environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **how,
        )

    def run(self, *words, **how):
        """Status and standard error of a command."""
        process = self.command(*words, **how)
        told = process.communicate()[1]
        return process.returncode, told

    def start(self, *more, before="", limit=None, **files):
        """Serve; return how the process ended, and what it said, where it did not begin."""
        how = (
            {}
            if limit is None
            else {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit,) * 2)}
        )
        process = self.command(*self.words(*more, **files), before=before, **how)
        lines = []
        while line := process.stderr.readline():
            lines.append(line)
            if "serving on" in line:
                self.process = process
                if found := re.search(r"127\.0\.0\.1:(\d+);", line):
                    self.port = int(found[1])
                return None, line
        self.end(process, None)
        return process.wait(), "".join(lines)

    def end(self, process=None, how=signal.SIGTERM):
        """End the server by a signal; return its status."""
        process = process or self.process
        if how is not None:
            process.send_signal(how)
        process.stderr.read()
        process.stderr.close()
        process.stdout.close()
        self.process = None
        return process.wait()

    def sent(self, path, body=None, who="ann", **headers):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=FOR_EVER)
        if who is not None:
            headers["Authorization"] = f"Bearer {self.path(who).read_text()}"
        line.request(
            "GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers
        )
        reply = line.getresponse()
        found = reply.status, reply.read().decode()
        line.close()
        return found

    def ask(self, question, **how):
        """Status and value of one question, or the status of HTTP and None."""
        status, told = self.sent("/v1/answers", {"questions": [question]}, **how)
        if status != 200:
            return status, None
        (answer,) = json.loads(told)["answers"]
        return answer.get("status", answer.get("error", {}).get("code")), answer.get("value")

    def spent(self):
        """Part of the budget, with what stands reserved, by the file; of a server by its numbers."""
        if self.process is not None:
            told = self.sent("/metrics")[1]
            return float(re.search(r"^onlineic_budget_spent (\S+)$", told, re.M)[1])
        report = summarised(read(self.path("a.db")))
        return float(report.spent + report.reserved)

    def whole(self):
        """What was told before stands, and is told again; the ledger holds."""
        if self.process is None:
            assert None is self.start("--after-crashes")[0]
        told = json.loads(self.path("told").read_text())
        for question, value in zip(ASKED, told, strict=True):
            assert ("repeat", value) == self.ask(question)
        assert 0 == self.end()
        report = verified(read(self.path("a.db")))
        assert report.whole, report.problems


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A ledger that has answered three questions, closed; a copy of a time when it had answered one."""
    folder = tmp_path_factory.mktemp("base")
    world = World(folder)
    world.path("people.csv").write_text("\n".join(["age,sex", *ROWS, ""]))
    world.path("d.json").write_text(DOMAIN.to_json())
    with contextlib.closing(Users(world.path("u.db"), create=True)) as users:
        for name in ("ann", "bob"):
            world.path(name).write_text(users.add(name, 1.0))
    begin = ["--new", "--epsilon", "1", "--delta", "1e-6", "--hard-answers", "20"]
    assert None is world.start(*begin)[0]
    told = [world.ask(ASKED[0])[1]]
    assert 0 == world.run("ledger", "backup", "a.db", "copy", "--users", "u.db")[0]
    told += [world.ask(question)[1] for question in ASKED[1:]]
    world.path("told").write_text(json.dumps(told))
    assert 0 == world.end()
    return folder


@pytest.fixture
def world(base, tmp_path):
    folder = tmp_path / "w"
    shutil.copytree(base, folder)
    made = World(folder)
    yield made
    if made.process is not None:
        made.end(how=signal.SIGKILL)


@pytest.fixture
def tells(world, request):
    """Print a line of the table: what was told, and what was spent before and after."""
    before = world.spent()

    def told(said, after=None):
        after = world.spent() if after is None else after
        assert after >= before - 1e-12
        name = request.node.name.removeprefix("test_").replace("_", " ")
        sys.stdout.write(f"\n{name:32} | {said:64} | {before:.4f} | {after:.4f}\n")

    return told


def test_the_disk_is_full(world, tells):
    full = max(world.path(name).stat().st_size for name in ("a.db", "u.db", "total.db")) + 3 * 4096
    assert None is world.start(limit=full)[0]
    given = {}
    for place, question in enumerate(MORE):
        status, value = world.ask(question)
        if value is None:
            break
        given[place] = value
    assert 503 == status
    assert 503 == world.sent("/ready", who=None)[0]
    world.end()
    assert None is world.start()[0]
    for place, value in given.items():
        assert value == world.ask(MORE[place])[1]
    tells(f"503; {len(given)} answers before it come back")
    world.whole()


def test_the_file_is_lost(world, tells):
    assert None is world.start()[0]
    world.path("a.db").unlink()
    assert {None} == {world.ask(question)[1] for question in MORE[:3]}
    assert 503 == world.sent("/ready", who=None)[0]
    world.end()
    status, said = world.start()
    assert 2 == status
    assert "a lost one is not begun anew" in said
    world.path("u.db").unlink()
    restore = ["ledger", "restore", "a.db", "copy", "--users", "u.db"]
    status, said = world.run(*restore, "--total", "total.db")  # which has heard of more
    assert 1 == status
    assert not world.path("a.db").exists()
    assert 0 == world.run(*restore)[0]
    words = world.words("--instead-of", "a.db", "--spent", "0.8")
    at = words.index("--total")
    world.words = lambda *more, **_: [*words[:at], *words[at + 2 :], *more]
    assert None is world.start()[0]
    assert 0.8 <= world.spent() <= 1.0
    assert "repeat" == world.ask(ASKED[0])[0]
    tells("503, then: a lost one is not begun anew; the copy has paid 0.8")
    assert 0 == world.end()
    assert verified(read(world.path("a.db"))).whole


def test_an_older_copy_is_put_back(world, tells):
    shutil.copyfile(world.path("a.db"), world.path("old.db"))
    newest = world.path("newest.db")
    assert None is world.start()[0]
    world.ask(MORE[0])
    assert 0 == world.end()
    world.path("a.db").rename(newest)
    shutil.copyfile(world.path("old.db"), world.path("a.db"))
    status, said = world.start()
    assert 1 == status
    assert "older" in said or "receipt" in said or "goes on" in said, said
    shutil.copyfile(world.path("copy") / "ledger.db", world.path("a.db"))
    status, marked = world.start()
    assert 1 == status
    assert "--instead-of" in marked
    newest.replace(world.path("a.db"))
    tells("refused, by the total and by the mark of the copy")
    world.whole()


def test_the_users_file_is_replaced(world, tells):
    assert None is world.start()[0]
    shutil.copyfile(world.path("u.db"), world.path("v.db"))
    world.path("v.db").chmod(0o600)
    with contextlib.closing(Users(world.path("v.db"))) as users:
        users.revoke("ann")
    paid = json.loads(world.sent("/v1/statistics")[1])["you"]["paid"]
    shutil.copyfile(world.path("u.db"), world.path("kept.db"))
    world.path("kept.db").chmod(0o600)
    world.path("v.db").replace(world.path("u.db"))
    assert 401 == world.ask(MORE[0])[0]
    assert 200 == world.sent("/v1/statistics", who="bob")[0]
    world.path("kept.db").replace(world.path("u.db"))
    assert paid == json.loads(world.sent("/v1/statistics")[1])["you"]["paid"]
    tells("401 at the next request; with the old file who paid is the same")
    world.whole()


def test_the_clock_is_set_back(world, tells):
    back = "import time\nreal = time.time\ntime.time = lambda: real() - 400 * 86400"
    assert None is world.start(before=back)[0]
    assert ("repeat", json.loads(world.path("told").read_text())[0]) == world.ask(ASKED[0])
    assert 200 == world.sent("/v1/statistics")[0]
    status, _ = world.run("ledger", "backup", "a.db", "night", "--users", "u.db", before=back)
    assert 0 == status
    tells("nothing: no charge and no order rests on the clock")
    world.whole()


def test_a_kill_while_a_copy_is_made(world, tells):
    fatal = "import onlineic.ledger.sqlite as it\nit.mark_copy = lambda path: os.kill(os.getpid(), 9)"
    assert None is world.start(before=fatal)[0]
    status, said = world.run("ledger", "backup", "a.db", "night", "--users", "u.db")
    assert 1 == status
    assert not world.path("night").exists()
    assert -signal.SIGKILL == world.end(how=None)
    status, said = world.start()
    assert status is None, said
    status, _ = world.run("ledger", "backup", "a.db", "night", "--users", "u.db")
    assert 0 == status
    dead = "import onlineic.service.backup as it\nit._digest = lambda path: os.kill(os.getpid(), 9)"
    assert -9 == world.run("ledger", "backup", "a.db", "other", "--users", "u.db", before=dead)[0]
    assert not world.path("other").exists()
    assert 0 == world.run("ledger", "backup", "a.db", "other", "--users", "u.db")[0]
    for name in ("night", "other"):
        assert verified(read(world.path(name) / "ledger.db")).whole
    tells("the copy is not there, and is made the next time")
    world.whole()


def test_a_second_server(world, tells):
    assert None is world.start()[0]
    first = world.process
    status, said = world.start()
    world.process = first
    assert 1 == status
    assert "one session at a time" in said
    tells("the second is refused: the ledger is used by one at a time")
    world.whole()


def test_the_proxy_names_nobody(world, tells):
    path = world.path("s")
    assert None is world.start("--trust-header", "X-User", listen="unix:s")[0]
    line = socket.socket(socket.AF_UNIX)
    held = os.open(world.folder, os.O_RDONLY)
    line.connect(f"/proc/self/fd/{held}/{path.name}")
    os.close(held)
    body = b'{"questions": [{"age": 33}]}'
    head = f"POST /v1/answers HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    line.sendall(head.encode() + body)
    assert b"401" in line.recv(4096).split(b"\r\n")[0]
    line.close()
    assert 0 == world.end()
    tells("401: nobody is signed in")
    world.whole()


def test_the_table_is_another(world, tells):
    world.path("fewer.csv").write_text("\n".join(["age,sex", *ROWS[:-1], ""]))
    world.path("e.json").write_text(ic.Domain.of(age=range(20, 41), sex=["F", "M"]).to_json())
    status, fewer = world.start(data="fewer.csv")
    assert 1 == status
    assert re.search(r"\bn\b", fewer)
    status, said = world.start(domain="e.json")
    assert 1 == status
    assert "domain" in said
    tells("refused by n, and by the domain")
    world.whole()


def test_the_package_is_upgraded(world, tells):
    newer = "import onlineic.ledger.settings as it\nit.package_version = lambda: '99.0'"
    status, said = world.start(before=newer)
    assert status is None, said
    assert "repeat" == world.ask(ASKED[0])[0]
    assert world.ask(MORE[0])[1] is not None
    assert 0 == world.end()
    lines = [line for line in read(world.path("a.db")).lines if line["kind"] == "resumed"]
    assert "99.0" == lines[-1]["version"]
    tells("goes on; the ledger records the version")
    world.whole()


def test_a_month_with_a_copy_every_night(tmp_path):
    """Thirty days of two users, restarts once a week: no answer is lost, and each copy is whole."""
    table = np.random.default_rng(3).multinomial(40_000, np.full(40, 1 / 40)).reshape(DOMAIN.shape)
    data, chance = ic.PrivateData(table, DOMAIN), np.random.default_rng(4)
    ledger, users = tmp_path / "a.db", tmp_path / "u.db"
    with contextlib.closing(Users(users, create=True)) as held:
        tokens = [held.add(name, 1.0, 10**6) for name in ("ann", "bob")]
    told, receipts = {}, []
    budget = ic.Budget(1.0, 1e-6)
    session = ic.OnlineIC(data, budget, ledger=ledger, table="t", durability="all")
    for week in range(0, DAYS, 7):
        with (
            running(session, users, Limits()) as port,
            heard(ledger, {"copy": lambda sent, to=session: {"receipt": str(to.copy_to(sent["path"]))}}),
        ):
            for day in range(week, min(week + 7, DAYS)):
                for token in tokens:
                    with ic.connect(f"http://127.0.0.1:{port}", token) as remote:
                        asked = [MORE[at] for at in chance.integers(0, len(MORE), 8)]
                        for question, answer in zip(asked, remote.answer_many(asked), strict=True):
                            if answer.status in ("easy", "hard"):
                                told[json.dumps(question)] = answer
                receipts.append(back_up(ledger, users, tmp_path / f"copy-{day:02}"))
        session = ic.OnlineIC.resume(ledger, ic.PrivateData(table, DOMAIN), durability="all")
    lost = [one for one in told if session.answer(json.loads(one)).status != "repeat"]
    session.close()
    final = read(ledger)
    for day, receipt in enumerate(receipts):
        report = verified(read(tmp_path / f"copy-{day:02}" / "ledger.db"))
        assert report.whole
        assert report.receipt == receipt
        final.check(receipt)
    sys.stdout.write(
        f"\n{DAYS} days, {len(receipts)} copies verified, {len(told)} answers, {len(lost)} lost\n"
    )

    assert DAYS == len(receipts)
    assert [] == lost
    assert len(told) > DAYS
    assert verified(final).whole
