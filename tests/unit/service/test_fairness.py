"""What one user sends never keeps others waiting for all of it: floods of every kind, over real sockets."""

import contextlib
import http.client
import json
import threading
import urllib.parse

import numpy as np
import pytest

import onlineic as ic
from onlineic.service import Users
from onlineic.service.replies import PIECE, encoded
from onlineic.service.scheduler import LONG_PART, PART, Scheduler
from support.events import FOR_EVER
from support.served import served

DOMAIN = ic.Domain.of(age=range(20, 52), region=list("nesw"), sex=["F", "M"])
TABLE = np.random.default_rng(1).multinomial(40_000, np.full(256, 1 / 256)).reshape(DOMAIN.shape)
GROUPS = "SELECT age, region, AVG(age) FROM t WHERE sex = '{}' GROUP BY age, region"
NOW = [0.0]  # seconds, of the rates: they pass where a test says so


@contextlib.contextmanager
def one(tmp_path, **more):
    """A server whose clock stands still unless a test moves it."""
    data = ic.PrivateData(TABLE, DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), ledger=tmp_path / "a.db", table="t", durability="all")
    with served(session, tmp_path, clock=lambda: NOW[0], **more) as server:
        yield server


def call(server, method, path, body=None, who="ann", **headers):
    """Status, headers and body of one request."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    if who is not None:
        headers["Authorization"] = f"Bearer {server.tokens[who]}"
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
    line.request(method, path, sent, {name.replace("_", "-"): value for name, value in headers.items()})
    reply = line.getresponse()
    found = reply.status, reply.headers, reply.read()
    line.close()
    return found


def sent_by(server, *request, who="ann"):
    """A thread that sends one request, begun; its reply is the only entry of the list."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call(server, *request, who=who)))
    thread.start()
    return thread, found


@contextlib.contextmanager
def held(patch, owner, name, who="onlineic"):
    """The first call of a function in a thread of this name waits until the block ends; others pass."""
    inside, free, real = threading.Event(), threading.Event(), getattr(owner, name)

    def waits(*arguments, **more):
        if threading.current_thread().name.startswith(who) and not inside.is_set():
            inside.set()
            free.wait()
        return real(*arguments, **more)

    patch.setattr(owner, name, waits)
    try:
        yield inside
    finally:
        free.set()


def waiting(server):
    told = call(server, "GET", "/metrics", who="bob")[2].decode()
    return int(told.split("\nonlineic_waiting ")[1].split()[0])


def test_eight_statements_of_one_user_let_the_question_of_another_in_after_one_part(tmp_path, monkeypatch):
    order, paid_by = [], ic.OnlineIC.paid_by

    def noted(session, quota):
        order.append(None if quota is None else quota.name)
        return paid_by(session, quota)

    with one(tmp_path) as server:
        call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]}, who="bob")
        monkeypatch.setattr(ic.OnlineIC, "paid_by", noted)
        with held(monkeypatch, ic.OnlineIC, "summary") as inside:
            summary, _ = sent_by(server, "GET", "/v1/summary", who="bob")
            assert inside.wait(FOR_EVER)
            many = [
                sent_by(server, "POST", "/v1/sql", {"sql": GROUPS.format("FM"[at % 2])}) for at in range(8)
            ]
            while waiting(server) < 256:  # one is worked out at a time
                pass
            bob, plain = sent_by(server, "POST", "/v1/answers", {"questions": [{"age": [25, 47]}]}, who="bob")
            while waiting(server) < 256 + 1:
                pass
            order.clear()
        bob.join()
        before = order[: order.index("bob")]
        for thread, _ in [(summary, None), *many]:
            thread.join()

    assert 200 == plain[0][0]
    assert before.count("ann") <= 1
    assert order.count("ann") > 2 * 256 / LONG_PART  # in parts, of which others come between
    assert {200} == {found[0][0] for _, found in many}


def test_a_turn_ends_by_time_and_what_it_answered_is_told(tmp_path, monkeypatch):
    """With a clock on which every look takes a second, each turn has one part."""
    look = iter(range(10**9))
    made = Scheduler.__init__
    monkeypatch.setattr(Scheduler, "__init__", lambda *given: made(*given, clock=lambda: float(next(look))))
    with one(tmp_path) as server:
        body = {"questions": [{"age": [20, 20 + at]} for at in range(1, 30)] * 8}
        assert 200 == call(server, "POST", "/v1/answers", body)[0]
        turns = int(
            call(server, "GET", "/metrics")[2].decode().split("\nonlineic_turns_total ")[1].split()[0]
        )

    assert turns >= len(body["questions"]) // PART


def test_a_statement_counts_as_the_questions_that_it_becomes(tmp_path):
    with one(tmp_path) as server:
        with contextlib.closing(Users(server.users)) as users:
            users.quota("ann", per_minute=60)
        status, _, _ = call(server, "POST", "/v1/sql", {"sql": GROUPS.format("F")})
        again = call(server, "POST", "/v1/sql", {"sql": "SELECT COUNT(*) FROM t"})
        bob = call(server, "POST", "/v1/sql", {"sql": GROUPS.format("F")}, who="bob")
        NOW[0] += 256 - 60  # seconds: one question each
        late = call(server, "POST", "/v1/sql", {"sql": "SELECT COUNT(*) FROM t"})[0]
        NOW[0] += 60

    assert (200, 429, 200, 429) == (status, again[0], bob[0], late)
    assert int(again[1]["retry-after"]) > 180


def test_a_table_counts_by_its_cells_and_is_written_in_pieces(tmp_path, monkeypatch):
    with one(tmp_path) as server:
        with contextlib.closing(Users(server.users)) as users:
            users.quota("ann", per_minute=4)
        table = {"questions": [{"marginal": ["age", "region", "sex"]}]}
        assert 200 == call(server, "POST", "/v1/answers", table)[0]
        status, headers, _ = call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]})

    assert 429 == status
    assert int(headers["retry-after"]) >= 15  # 256 cells are 4 questions
    pieces = []
    write = json.JSONEncoder.encode
    monkeypatch.setattr(json.JSONEncoder, "encode", lambda self, one: pieces.append(one) or write(self, one))
    held_back = {"a": np.arange(20_000.0).reshape(20, 10, 100).tolist(), "b": [{"c": 1}], "d": list(range(9))}
    assert json.loads(write(json.JSONEncoder(), held_back)) == json.loads(encoded(held_back))
    assert max(len(str(one)) for one in pieces) < 12 * PIECE


@pytest.mark.parametrize(
    ("owner", "name", "request_", "thread"),
    [
        ("onlineic.session.view.View", "explain",
         ("POST", "/v1/explain", {"question": GROUPS.format("F")}), "onlineic-reader"),
        ("onlineic.service.wire", "cost_of",
         ("POST", "/v1/answers", {"questions": [" OR ".join(f"age={20 + at % 30}" for at in range(300))]}),
         "onlineic-reader"),
        ("onlineic.session.view.View", "released", ("GET", "/v1/transcript", None), "onlineic-reader"),
        ("onlineic.session.view.View", "released", ("GET", "/v1/answers.csv", None), "onlineic-reader"),
        ("onlineic.service.app", "encoded", ("GET", "/v1/summary?answers=256", None), "onlineic-reader"),
        ("onlineic.service.app", "synthetic", ("GET", "/v1/synthetic.csv?rows=5", None), "onlineic-reader"),
        ("onlineic.service.app", "encoded", ("POST", "/v1/sql", {"sql": "SELECT COUNT(*) FROM t"}),
         "onlineic-worker"),
    ],
)  # fmt: skip
def test_while_something_is_read_for_one_user_everything_of_another_goes_on(
    tmp_path, monkeypatch, owner, name, request_, thread
):
    """Explanations, long texts, records, sheets, summaries, synthetic rows and statements."""
    module, _, kind = owner.rpartition(".")
    if kind[0].isupper():
        owner = getattr(__import__(module, fromlist=[kind]), kind)
    else:
        owner = __import__(owner, fromlist=["_"])
    with one(tmp_path) as server:
        call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]}, who="bob")
        with monkeypatch.context() as patch, held(patch, owner, name, thread) as inside:
            slow, told = sent_by(server, *request_)
            assert inside.wait(FOR_EVER)
            new = {"questions": [{"age": [30, 44]}]}
            assert 200 == call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]}, who="bob")[0]
            assert 200 == call(server, "POST", "/v1/answers", new, who="bob")[0]
            assert 200 == call(server, "POST", "/v1/explain", {"question": {"age": 30}}, who="bob")[0]
            assert 200 == call(server, "POST", "/v1/sql", {"sql": "SELECT COUNT(*) FROM t"}, who="bob")[0]
            assert 200 == call(server, "GET", "/v1/transcript", who="bob")[0]
            assert 200 == call(server, "GET", "/v1/answers.csv", who="bob")[0]
            assert 200 == call(server, "GET", "/v1/synthetic.csv?rows=5", who="bob")[0]
            form = urllib.parse.urlencode({"token": server.tokens["bob"]}).encode()
            assert 303 == call(server, "POST", "/login", form, who=None, Sec_Fetch_Site="same-origin")[0]
            assert not told
        slow.join()

    assert 200 == told[0][0]


def test_reads_have_a_rate_of_their_own(tmp_path):
    """A user who has asked too much can still look, and one who looks too much can still ask."""
    with one(tmp_path) as server:
        with contextlib.closing(Users(server.users)) as users:
            users.quota("ann", per_minute=2)
        assert 200 == call(server, "POST", "/v1/sql", {"sql": "SELECT sex, COUNT(*) FROM t GROUP BY sex"})[0]
        while 200 == call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]})[0]:
            pass
        assert 200 == call(server, "GET", "/v1/transcript")[0]
        statuses = {call(server, "GET", "/v1/synthetic.csv?rows=10000")[0] for _ in range(4)}
        assert {200, 429} == statuses
        assert 200 == call(server, "GET", "/v1/statistics")[0]
        assert 200 == call(server, "GET", "/v1/transcript", who="bob")[0]
        NOW[0] += 60.0
        assert 200 == call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]})[0]
        NOW[0] += 60.0


def test_an_explanation_counts_as_what_it_explains(tmp_path):
    with one(tmp_path) as server:
        with contextlib.closing(Users(server.users)) as users:
            users.quota("ann", per_minute=1)
        body = {"question": GROUPS.format("F")}  # 256 questions; 1,200 reads are the least of a minute
        statuses = [call(server, "POST", "/v1/explain", body)[0] for _ in range(6)]

    assert [200, 200, 200] == statuses[:3]
    assert 429 == statuses[-1]


def test_a_summary_is_made_once_for_all_who_ask_before_something_changes(tmp_path, monkeypatch):
    made, summary = [], ic.OnlineIC.summary
    monkeypatch.setattr(ic.OnlineIC, "summary", lambda *given: made.append(1) or summary(*given))
    with one(tmp_path) as server:
        call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]}, who="bob")
        with held(monkeypatch, ic.OnlineIC, "view") as inside:
            new, _ = sent_by(server, "POST", "/v1/answers", {"questions": [{"age": 30}]}, who="bob")
            assert inside.wait(FOR_EVER)
            many = [sent_by(server, "GET", "/v1/summary?answers=9") for _ in range(4)]
            while waiting(server) < 8 + 9 // 4:
                pass
        for thread, _ in [(new, None), *many]:
            thread.join()
        again = call(server, "GET", "/v1/summary?answers=9", who="bob")
        first = len(made)
        call(server, "POST", "/v1/answers", {"questions": [{"age": 31}]}, who="bob")
        later = call(server, "GET", "/v1/summary?answers=9")

    told = {found[0][2] for _, found in many}
    assert 1 <= len(told) <= 2  # of before the new answer, and of after it
    assert first <= 2
    assert again[2] in told
    assert later[2] not in told
    assert first + 1 == len(made)


def test_a_reply_leaves_before_a_dear_part_that_comes_behind_it_begins(tmp_path, monkeypatch):
    """Both wait when the thread that answers is free again; the summary costs as much as 66 questions."""
    with one(tmp_path) as server:
        call(server, "POST", "/v1/answers", {"questions": [{"age": age} for age in range(20, 30)]})
        with held(monkeypatch, ic.OnlineIC, "view") as inside:
            new, _ = sent_by(server, "POST", "/v1/answers", {"questions": [{"age": 30}]})
            assert inside.wait(FOR_EVER)
            bob, plain = sent_by(server, "POST", "/v1/answers", {"questions": [{"age": [30, 44]}]}, who="bob")
            while waiting(server) < 1:
                pass
            ann, summary = sent_by(server, "GET", "/v1/summary?answers=232")
            while waiting(server) < 1 + 66:
                pass
            patched = held(monkeypatch, ic.OnlineIC, "summary")
            begun = patched.__enter__()
        assert begun.wait(FOR_EVER)
        bob.join()
        assert [] == summary
        patched.__exit__(None, None, None)
        ann.join()
        new.join()

    assert (200, 200) == (plain[0][0], summary[0][0])
