"""A server as an institution runs it: it stops at once, its log says who and when, its numbers are listed."""

import contextlib
import datetime
import http.client
import importlib
import json
import logging
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import onlineic as ic
from onlineic.cli import main
from onlineic.service import Users, logs
from onlineic.service.metrics import COUNTED, INFO, NUMBERS
from onlineic.service.openapi import openapi
from onlineic.service.scheduler import Scheduler
from onlineic.service.users import Asked
from support.events import FOR_EVER
from support.served import served

DOCS = Path(__file__).parents[3] / "docs"
DOMAIN = ic.Domain.of(age=range(20, 52), region=list("nesw"), sex=["F", "M"])
TABLE = np.random.default_rng(1).multinomial(40_000, np.full(256, 1 / 256)).reshape(DOMAIN.shape)
GROUPS = "SELECT age, region, AVG(age) FROM t WHERE sex = '{}' GROUP BY age, region"


@contextlib.contextmanager
def one(tmp_path, **more):
    data = ic.PrivateData(TABLE, DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), ledger=tmp_path / "a.db", table="t", durability="all")
    with served(session, tmp_path, **more) as server:
        yield server


def call(server, method, path, body=None, who="ann"):
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    headers = {} if who is None else {"Authorization": f"Bearer {server.tokens[who]}"}
    line.request(method, path, None if body is None else json.dumps(body), headers)
    reply = line.getresponse()
    found = reply.status, reply.headers, reply.read().decode()
    line.close()
    return found


def sent(server, path, body):
    """A connection on which a request was sent, whose reply nobody reads."""
    line = socket.create_connection(("127.0.0.1", server.port))
    raw = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.tokens['ann']}\r\n"
    line.sendall(head.encode() + f"Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
    return line


@contextlib.contextmanager
def standing(monkeypatch, owner, name):
    """The first call of a function of the answering thread waits until the block ends."""
    inside, free, real = threading.Event(), threading.Event(), getattr(owner, name)

    def waits(*arguments, **more):
        if threading.current_thread().name == "onlineic-writer" and not inside.is_set():
            inside.set()
            free.wait()
        return real(*arguments, **more)

    monkeypatch.setattr(owner, name, waits)
    try:
        yield inside, free
    finally:
        free.set()


def waiting(server):
    return int(call(server, "GET", "/metrics", who="bob")[2].split("\nonlineic_waiting ")[1].split()[0])


def test_what_nobody_waits_for_any_more_is_not_asked(tmp_path, monkeypatch):
    """Statements and lists whose connections were closed are given up before their turn."""
    with one(tmp_path) as server, standing(monkeypatch, Scheduler, "_allowed") as (inside, free):
        first = sent(server, "/v1/answers", {"questions": [{"sex": "F"}]})
        assert inside.wait(FOR_EVER)
        lines = [sent(server, "/v1/sql", {"sql": GROUPS.format("FM"[at % 2])}) for at in range(4)]
        lines += [sent(server, "/v1/answers", {"questions": [{"age": at}]}) for at in range(20, 30)]
        while waiting(server) < 11:
            pass
        for line in lines:
            line.close()
        free.set()
        while waiting(server):
            pass
        told = json.loads(call(server, "GET", "/v1/statistics")[2])
        first.close()
    assert told["length"] <= 1 + 16 + 64  # but for the parts that were on their way


def test_a_stop_gives_up_what_nobody_waits_for(tmp_path, monkeypatch):
    """At the end of the loop nobody is there any more: a queue of one user holds nothing up."""
    users = Users(tmp_path / "u.db", create=True)
    users.add("ann")
    ann = users.one("ann")
    users.close()
    data = ic.PrivateData(TABLE, DOMAIN)
    with ic.OnlineIC(data, ic.Budget(1.0), ledger=tmp_path / "b.db", table="t", durability="all") as session:
        scheduler = Scheduler(session, tmp_path / "u.db")
        with standing(monkeypatch, Scheduler, "_allowed") as (inside, free):
            scheduler.start()
            from onlineic.service.scheduler import Job

            acts = [(1, lambda face, session: face.answer({"sex": "F"}))]
            batches = [scheduler.put(Job(ann, "x"), acts, last=True) for _ in range(500)]
            assert inside.wait(FOR_EVER)
            ending = threading.Thread(target=scheduler.stop)
            ending.start()
            for batch in batches[1:]:
                assert "ends" in str(batch.future.exception(FOR_EVER))
            free.set()
            ending.join()
        assert batches[0].future.done()
        assert session.statistics().asked <= 1


def test_a_line_of_the_log_says_who_and_when_and_nothing_of_a_question(tmp_path, capfd):
    held = [(name, list(logging.getLogger(name).handlers)) for name in logs.LOGGERS]
    try:
        logs.to_stderr("json", logging.INFO)
        with one(tmp_path) as server:
            status, headers, _ = call(server, "POST", "/v1/answers", {"questions": [{"age": 33}]})
            call(server, "GET", "/?kind=count&a0=age&v0=33", who=None)
            call(server, "GET", "/secret-33", who="bob")
        logs.to_stderr("text", logging.INFO)
        try:
            raise ValueError("the count is 512")
        except ValueError:
            logs.log.exception("request failed")
    finally:
        for name, handlers in held:
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = handlers, True
            logger.setLevel(logging.NOTSET)
    *lines, text = capfd.readouterr().err.splitlines()
    told = [json.loads(line) for line in lines if line.startswith("{")]

    assert 200 == status
    assert {"time", "level", "user", "request", "message"} == {*told[0]}
    (mine,) = [one for one in told if one["message"] == "POST /v1/answers 200"]
    assert ("ann", headers["x-request-id"], "info") == (mine["user"], mine["request"], mine["level"])
    datetime.datetime.fromisoformat(mine["time"])
    assert "GET / 200" in [one["message"] for one in told]
    assert "GET - 404" in [one["message"] for one in told]
    said = [one["message"] for one in told if one["request"]]  # the others name a port
    assert not re.search(r"33|512", " ".join([*said, text.partition(" ")[2]]))
    assert text.endswith("request failed: ValueError")


def test_the_log_of_users_is_printed_and_cut_by_age(tmp_path, capsys):
    path = tmp_path / "u.db"
    with contextlib.closing(Users(path, create=True)) as users:
        users.add("ann")
        now = datetime.datetime.now(datetime.UTC).timestamp()
        old = Asked("ann", "ab" * 32, 0, 1, "easy:1", now - 400 * 86400)
        users.log([old, Asked("bob", "cd" * 32, 1, 3, "easy:1 hard:1", now)])
    assert 0 == main(["user", "log", "--users", str(path), "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ["ann", "bob"] == [line["user"] for line in lines]
    assert ("easy:1 hard:1", 1, 3) == tuple(lines[1][name] for name in ("statuses", "from", "to"))
    assert 0 == main(["user", "log", "--users", str(path), "--since", "2026-01-01", "--user", "bob"])
    assert capsys.readouterr().out.count("\n") == 1

    assert 0 == main(["user", "forget", "--users", str(path), "--days", "365"])
    assert "1 lines" in capsys.readouterr().err
    assert 0 == main(["user", "log", "--users", str(path)])
    assert "ann" not in capsys.readouterr().out
    with contextlib.closing(Users(path)) as users:
        assert ["ann"] == [user.name for user in users.list()]
    assert 2 == main(["user", "forget", "--users", str(path), "--days", "0"])


def test_the_documents_list_every_number_and_no_other():
    rows = re.findall(r"^\| `(\w+)` \| (gauge|counter) \| (.+) \|$", (DOCS / "serving.md").read_text(), re.M)
    told = [INFO, *((name, "counter", text) for name, _, text in COUNTED), *(one[:3] for one in NUMBERS)]

    assert told == rows


def test_prometheus_reads_the_numbers(tmp_path):
    parser = pytest.importorskip("prometheus_client.parser")
    with one(tmp_path) as server:
        call(server, "POST", "/v1/answers", {"questions": [{"age": 33}]})
        found = [*parser.text_string_to_metric_families(call(server, "GET", "/metrics")[2])]
    assert "onlineic_budget_spent" in [family.name for family in found]
    assert all(family.documentation and family.samples for family in found)


def test_the_description_is_valid():
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(openapi())


@pytest.mark.operations
def test_a_client_that_is_generated_from_the_description_asks(tmp_path, monkeypatch):
    pytest.importorskip("openapi_python_client")
    (tmp_path / "api.json").write_text(json.dumps(openapi()))
    (tmp_path / "how.json").write_text('{"post_hooks": []}')
    words = [
        "generate",
        "--path",
        "api.json",
        "--config",
        "how.json",
        "--output-path",
        "made",
        "--meta",
        "none",
    ]
    made = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert 0 == made.returncode, made.stderr
    assert "Unable to process" not in made.stdout + made.stderr
    monkeypatch.syspath_prepend(tmp_path)
    client = importlib.import_module("made")
    with one(tmp_path) as server, contextlib.ExitStack() as stack:
        to = stack.enter_context(client.AuthenticatedClient(server.url, server.tokens["ann"]))
        statistics = importlib.import_module("made.api.default.get_v1_statistics").sync(client=to)
        asked = importlib.import_module("made.api.default.post_v1_answers")
        body = importlib.import_module("made.models").PostV1AnswersBody.from_dict(
            {"questions": [{"age": 33}]}
        )
        answer = asked.sync(client=to, body=body).answers[0]
    assert 40_000 == statistics.n
    assert "ann" == statistics.you.name
    assert answer.status in ("easy", "hard")
