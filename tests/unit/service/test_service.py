"""The routes over HTTP: who is let in, in which form, who pays, and what is refused without a trace."""

import contextlib
import csv
import http.client
import io
import json
import math
import re
import socket
import subprocess
import sys
import threading
import urllib.parse
from importlib import metadata

import numpy as np
import pytest

import onlineic as ic
from onlineic.audit import verified
from onlineic.cli import main
from onlineic.errors import InvalidParameterError, InvalidQueryError, SessionStateError, TooLargeError
from onlineic.ledger import read
from onlineic.service import RemoteError, Users
from onlineic.service.openapi import ROUTES, SCHEMAS, openapi
from onlineic.service.scheduler import Scheduler
from onlineic.service.wire import cost_of
from support.events import FOR_EVER
from support.served import served, serving

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202eevil",
    "=1+1",
    "x" * 10_000,
]
DOMAIN = ic.Domain.of(age=range(20, 40), label=HOSTILE, sex=["F", "M"])
TABLE = np.random.default_rng(1).multinomial(40_000, np.full(200, 1 / 200)).reshape(DOMAIN.shape)
NOW = [0.0]  # seconds, of the server that tests share: they pass where a test says so


def opened(path, **settings):
    data = ic.PrivateData(TABLE, DOMAIN)
    return ic.OnlineIC(data, ic.Budget(1.0, 1e-6), ledger=path, table="t", durability="all", **settings)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    names = ["ann", "bob", "eve", "slow"]
    with served(opened(folder / "a.db"), folder, names, clock=lambda: NOW[0]) as running:
        users = Users(running.users)
        users.quota("eve", share=0)
        users.quota("slow", per_minute=3)
        users.close()
        yield running


def call(server, method, path, body=None, who="ann", whole=True, **headers):
    """Return status, headers and body of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    if who is not None:
        headers.setdefault("Authorization", f"Bearer {server.tokens[who]}")
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    connection.request(method, path, body, {name.replace("_", "-"): one for name, one in headers.items()})
    reply = connection.getresponse()
    found = reply.status, reply.headers, reply.read() if whole else b""
    connection.close()
    return found


def visit(server, who="ann"):
    """Log in as a browser does; return its headers."""
    form = urllib.parse.urlencode({"token": server.tokens[who]}).encode()
    status, headers, _ = call(server, "POST", "/login", form, who=None, Sec_Fetch_Site="same-origin")
    assert 303 == status
    cookie = headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    return {"Cookie": cookie.split(";")[0], "Sec_Fetch_Site": "same-origin"}


def asked(server, headers, **form):
    """Send a form as a browser does, and go where it is sent."""
    body = urllib.parse.urlencode({"form": "form", "kind": "count", "act": "ask", **form}).encode()
    status, found, told = call(server, "POST", "/ask", body, who=None, **headers)
    if status == 303:
        return call(server, "GET", found["location"].removeprefix("."), who=None, **headers)
    return status, found, told


def settled(server):
    """Public facts once all is counted that was told from views."""
    while b"onlineic_uncounted 0\n" not in call(server, "GET", "/metrics")[2]:
        pass
    return json.loads(call(server, "GET", "/v1/statistics")[2])


def test_a_visit_lasts_twelve_hours(server):
    headers = visit(server)
    NOW[0] += 12 * 3600 - 1
    assert 200 == call(server, "GET", "/v1/statistics", who=None, **headers)[0]
    NOW[0] += 1
    assert 401 == call(server, "GET", "/v1/statistics", who=None, **headers)[0]


def test_a_visit_ends_with_the_token_that_began_it(server):
    users = Users(server.users)
    server.tokens["joe"] = users.add("joe")
    renewed = visit(server, "joe")
    assert 200 == call(server, "GET", "/v1/statistics", who=None, **renewed)[0]
    server.tokens["joe"] = users.renew("joe")
    assert 401 == call(server, "GET", "/v1/statistics", who=None, **renewed)[0]
    revoked = visit(server, "joe")
    users.revoke("joe")
    users.renew("joe")  # who may ask again does so by the new token
    assert 401 == call(server, "GET", "/v1/statistics", who=None, **revoked)[0]
    users.revoke("joe")
    users.close()


def test_the_description_names_the_routes_and_no_others(server):
    status, _, body = call(server, "GET", "/v1/openapi.json")
    told = json.loads(body)

    assert 200 == status
    assert openapi() == told
    for path, methods in told["paths"].items():
        for method in methods:
            found, *_ = call(server, method.upper(), path, b"{}" if method == "post" else None, whole=False)
            assert found not in (404, 405), (method, path)
        other = "PUT"
        assert 405 == call(server, other, path, b"{}")[0]
    assert 404 == call(server, "GET", "/v1/other")[0]


@pytest.mark.parametrize(
    "path", [path for (method, path), one in ROUTES.items() if not one.open and method == "get"]
)
@pytest.mark.parametrize("token", [None, "", "oic_00", "\xff", "x" * 9000])
def test_nobody_without_a_token_is_told_anything(server, path, token):
    headers = {} if token is None else {"Authorization": f"Bearer {token}".encode("latin-1")}
    status, _, body = call(server, "GET", path, who=None, **headers)

    assert 401 == status
    assert "unauthorized" == json.loads(body)["type"]


def test_every_reply_carries_the_policy_and_no_other_origin_is_let_in(server):
    for method, path in (
        ("GET", "/"),
        ("GET", "/v1/statistics"),
        ("GET", "/nothing"),
        ("POST", "/v1/answers"),
    ):
        _, headers, _ = call(
            server, method, path, b"" if method == "POST" else None, Origin="https://evil.example"
        )
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert "nosniff" == headers["x-content-type-options"]
        assert None is headers["access-control-allow-origin"]
        assert None is headers["server"]


def test_another_host_is_refused(server):
    assert 400 == call(server, "GET", "/health", who=None, Host="evil.example")[0]
    assert 200 == call(server, "GET", "/health", who=None, Host=f"localhost:{server.port}")[0]


def test_good_and_bad_questions_of_one_request_are_told_apart(server):
    status, _, body = call(
        server, "POST", "/v1/answers", {"questions": [{"sex": "F"}, {"sex": "x"}, "age > 30", {}]}
    )
    good, bad, text, constant = json.loads(body)["answers"]

    assert 200 == status
    assert "invalid-query" == bad["error"]["code"]
    assert good["at"] != text["at"]
    assert (None, 1.0) == (constant["at"], constant["value"])
    (again,) = json.loads(call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]}, who="bob")[2])[
        "answers"
    ]
    assert ("repeat", good["value"], good["at"]) == (again["status"], again["value"], again["at"])


def test_an_asker_without_a_part_is_answered_untested_and_never_pays(server):
    call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]})
    body = {"questions": [{"age": [25, age]} for age in range(26, 38)] + [{"sex": "F"}]}
    *found, known = json.loads(call(server, "POST", "/v1/answers", body, who="eve")[2])["answers"]

    assert {"untested"} == {one["status"] for one in found}
    assert "repeat" == known["status"]
    assert 0.0 == json.loads(call(server, "GET", "/v1/statistics", who="eve")[2])["you"]["paid"]


def test_a_rate_is_kept(server):
    body = {"questions": [{"sex": "F"}]}
    statuses = [call(server, "POST", "/v1/answers", body, who="slow")[0] for _ in range(5)]
    status, headers, _ = call(server, "POST", "/v1/answers", body, who="slow")

    assert [200, 200, 200, 429] == statuses[:4]
    assert (429, "20") == (status, headers["retry-after"])
    NOW[0] += 19.9
    assert 429 == call(server, "POST", "/v1/answers", body, who="slow")[0]
    NOW[0] += 0.2
    assert 200 == call(server, "POST", "/v1/answers", body, who="slow")[0]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "form"),
        (b"{", 400, "form"),
        (b"\xff\xfe", 400, "form"),
        (b'{"questions": [NaN]}', 400, "form"),
        (b"[" * 60_000, 400, "form"),
        (b'{"questions": [' + b"9" * 5000 + b"]}", 400, "form"),
        (b'{"questions": 3}', 422, "invalid-query"),
        (b'{"questions": [], "questions": []}', 422, "invalid-query"),
        (json.dumps({"questions": [{}] * 257}).encode(), 413, "too-large"),
        (b" " * 70_000, 413, "too-large"),
    ],
)
def test_a_body_that_is_no_request_is_refused_by_its_code(server, body, status, code):
    found, headers, told = call(server, "POST", "/v1/answers", body)

    assert (status, code) == (found, json.loads(told)["type"])
    assert "application/problem+json" == headers["content-type"]


def test_weights_constants_and_roundings_of_strangers_are_not_read(server):
    before = json.loads(call(server, "GET", "/v1/statistics")[2])["error_bound"]
    sent = [
        {"box": [[0, 3, 9]], "rounding": 5.0},
        {"constant": [7, 0]},
        {"weigh": "age", "by": "share", "rounding": 5.0},
        {"tables": []},
        {"dense": [1] * 200},
    ]
    found = json.loads(call(server, "POST", "/v1/answers", {"questions": sent})[2])["answers"]

    assert ["invalid-query"] * 5 == [one["error"]["code"] for one in found]
    assert before == json.loads(call(server, "GET", "/v1/statistics")[2])["error_bound"]


def test_a_statement_with_too_many_groups_is_refused(server):
    text = "SELECT age, label, sex, AVG(age) FROM t GROUP BY age, label, sex"
    status, _, body = call(server, "POST", "/v1/sql", {"sql": text + " " * 5000})

    assert (413, "too-large") == (status, json.loads(body)["type"])
    status, _, body = call(server, "POST", "/v1/sql", {"sql": "SELECT sex, COUNT(*) FROM t GROUP BY sex"})
    assert 200 == status
    assert ["F", "M"] == json.loads(body)["columns"]["sex"]
    assert "chosen" not in json.loads(body)


def test_a_statement_says_that_its_rows_were_chosen_by_noisy_numbers(server):
    text = "SELECT label, COUNT(*) AS n FROM t GROUP BY label HAVING n > -1e9 ORDER BY n DESC LIMIT 2"
    body = json.loads(call(server, "POST", "/v1/sql", {"sql": text})[2])

    assert 2 == len(body["columns"]["label"])
    assert sorted(body["columns"]["n"], reverse=True) == body["columns"]["n"]
    assert body["chosen"].endswith(" groups: HAVING, ORDER BY, LIMIT by noisy numbers")


def test_a_cookie_asks_from_the_page_alone(server):
    headers = visit(server)

    assert 200 == asked(server, headers)[0]
    for site, origin in (
        ("cross-site", None),
        ("same-site", None),
        ("same-origin", "https://evil.example"),
        ("same-origin", "http://["),
        ("same-origin", "null"),
    ):
        other = {**headers, "Sec_Fetch_Site": site} | ({} if origin is None else {"Origin": origin})
        assert 403 == asked(server, other)[0]
        assert 403 == call(server, "POST", "/v1/answers", {"questions": []}, who=None, **other)[0]
    assert 403 == asked(server, {"Cookie": headers["Cookie"]})[0]
    call(server, "POST", "/logout", b"", who=None, **headers)
    assert 401 == asked(server, headers)[0]


def test_a_token_that_is_revoked_ends_requests_and_visits(server):
    users = Users(server.users)
    server.tokens["guest"] = users.add("guest")
    headers = visit(server, "guest")
    assert 200 == call(server, "GET", "/v1/statistics", who="guest")[0]
    users.revoke("guest")
    users.close()

    assert 401 == call(server, "GET", "/v1/statistics", who="guest")[0]
    assert 401 == call(server, "GET", "/v1/statistics", who=None, **headers)[0]


def test_the_page_of_a_curator_is_for_those_who_are_named(server, tmp_path):
    assert 403 == call(server, "GET", "/curator")[0]
    with served(opened(tmp_path / "a.db"), tmp_path, curators=frozenset({"ann"})) as other:
        call(other, "POST", "/v1/answers", {"questions": [{"age": [21, 30]}]}, who="bob")
        body = call(other, "GET", "/curator")[2].decode()
        assert {"ann", "bob"} <= {name for name in other.tokens if f">{name}<" in body}
        assert "easy:1" in body or "hard:1" in body
        assert "Differentially private answers" in body
        assert 403 == call(other, "GET", "/curator", who="bob")[0]
        assert "/curator" not in call(other, "GET", "/", who="bob")[2].decode()


def listened(server, who):
    """An open stream of events: (connection, reply, first facts)."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {server.tokens[who]}"})
    reply = connection.getresponse()
    return connection, reply, heard(reply)


def heard(reply):
    """The next facts of a stream, or None at its end."""
    while line := reply.readline():
        if line.startswith(b"data: "):
            return json.loads(line[6:])
    return None


def test_who_listens_hears_what_has_changed(server):
    connection, _, _ = listened(server, "bob")
    connection.close()
    settled(server)
    connection, reply, first = listened(server, "ann")
    call(server, "POST", "/v1/answers", {"questions": [{"age": [23, 31], "sex": "M"}]})

    assert "text/event-stream; charset=utf-8" == reply.headers["content-type"]
    assert "ann" == first["you"]["name"]
    assert heard(reply)["asked"] == first["asked"] + 1
    connection.close()


def test_a_stream_ends_when_its_token_is_revoked_and_streams_are_few(server):
    users = Users(server.users)
    server.tokens["late"] = users.add("late")
    open_ones = [listened(server, "late") for _ in range(8)]
    assert 429 == call(server, "GET", "/v1/events", who="late", whole=False)[0]
    users.revoke("late")
    users.close()

    for connection, reply, _ in open_ones:
        assert None is heard(reply)
        connection.close()


@contextlib.contextmanager
def writer_held(server):
    """The thread that answers is busy until the block ends."""
    held, free = threading.Event(), threading.Event()

    def summary(*_):
        held.set()
        free.wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ic.OnlineIC, "summary", summary)
        thread = threading.Thread(target=lambda: call(server, "GET", "/v1/summary"))
        thread.start()
        assert held.wait(FOR_EVER)
        try:
            yield
        finally:
            free.set()
            thread.join()


def waiting(server, count):
    """Return once so much waits."""
    while f"onlineic_waiting {count}\n".encode() not in call(server, "GET", "/metrics")[2]:
        pass


@pytest.mark.parametrize("ended", ["revoke", "renew"])
def test_what_waits_under_a_token_that_is_worth_nothing_is_not_answered(tmp_path, ended):
    found = {}
    with served(opened(tmp_path / "a.db"), tmp_path) as server:
        call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]})
        body = {"questions": [{"age": [24, 29]}]}
        thread = threading.Thread(
            target=lambda: found.update(bob=call(server, "POST", "/v1/answers", body, who="bob"))
        )
        with writer_held(server):
            thread.start()
            waiting(server, 1)
            users = Users(server.users)
            getattr(users, ended)("bob")
            users.close()
            before = json.loads(call(server, "GET", "/v1/statistics")[2])["length"]
        thread.join()
        assert 401 == found["bob"][0]
        assert before == json.loads(call(server, "GET", "/v1/statistics")[2])["length"]


def test_what_is_known_and_explained_waits_for_nobody(tmp_path):
    found = {}
    with served(opened(tmp_path / "a.db"), tmp_path) as server:
        known = {"questions": [{"sex": "F"}, {}, {"age": [21, 33]}]}
        first = json.loads(call(server, "POST", "/v1/answers", known)[2])["answers"]
        explained = call(server, "POST", "/v1/explain", {"question": {"age": [22, 30]}})[2]
        told = call(server, "GET", "/v1/transcript")[2]
        headers = visit(server)
        page = call(server, "GET", "/", who=None, **headers)[2]
        asked_before = json.loads(call(server, "GET", "/v1/statistics")[2])["asked"]
        new = {"questions": [{"sex": "F"}, {"age": [24, 29], "sex": "M"}]}
        thread = threading.Thread(
            target=lambda: found.update(bob=call(server, "POST", "/v1/answers", new, who="bob"))
        )
        with writer_held(server):
            again = json.loads(call(server, "POST", "/v1/answers", known)[2])["answers"]
            thread.start()
            waiting(server, 2)  # those of bob: what was told of ann waits for nothing
            assert explained == call(server, "POST", "/v1/explain", {"question": {"age": [22, 30]}})[2]
            assert told == call(server, "GET", "/v1/transcript")[2]
            assert page == call(server, "GET", "/", who=None, **headers)[2]
            assert asked_before == json.loads(call(server, "GET", "/v1/statistics")[2])["asked"]
            assert 422 == call(server, "POST", "/v1/explain", {"question": {"sex": "x"}})[0]
            assert not found
        thread.join()
        assert ["repeat", "easy", "repeat"] == [one["status"] for one in again]
        for one, other in zip(first, again, strict=True):
            assert (one["value"], one["error_bound"], one["at"]) == (
                other["value"],
                other["error_bound"],
                other["at"],
            )
        fresh = json.loads(found["bob"][2])["answers"]
        assert "repeat" == fresh[0]["status"]
        assert fresh[1]["status"] in ("easy", "hard")
        assert asked_before + 5 == json.loads(call(server, "GET", "/v1/statistics")[2])["asked"]
    users = Users(server.users)
    assert "easy:1 repeat:2" in {line.statuses for _, line in users.logged()}
    users.close()


def test_dear_questions_count_as_many_and_let_others_in(tmp_path, monkeypatch):
    domain = ic.Domain.of(age=range(2**13), sex=["F", "M"])
    monkeypatch.setattr("onlineic.service.app.MOST_COST", 2 * 256)
    dear, plain = {"weigh": "age", "by": "square"}, {"sex": "F"}
    assert (2, 1, 1) == tuple(cost_of(one, domain) for one in (dear, plain, {"age": 3}))
    assert 256 == cost_of({"marginal": ["age", "sex"], "where": plain}, domain)
    with pytest.raises(TooLargeError, match="look at no more"):
        cost_of({"age": {"one_of": [*range(200)]}}, domain)

    data = ic.PrivateData.from_records({"age": np.arange(8000), "sex": ["F", "M"] * 4000}, domain)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), ledger=tmp_path / "a.db", table="t", durability="all")
    reading, sent, ended = threading.Event(), threading.Event(), []

    def looked_at(*question):
        """Hold the thread that reads the first question until another request is answered."""
        reading.set()
        sent.wait()
        return cost_of(*question)

    monkeypatch.setattr("onlineic.service.wire.cost_of", looked_at)
    # who has no part is answered without a test
    with served(session, tmp_path, share=0) as server:
        body = {"questions": [dear] * 128}
        thread = threading.Thread(target=lambda: ended.append(call(server, "POST", "/v1/answers", body)[0]))
        other = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
        with writer_held(server):
            thread.start()
            assert reading.wait(FOR_EVER)
            other.request("GET", "/metrics", headers={"Authorization": f"Bearer {server.tokens['bob']}"})
            meanwhile = other.getresponse().read()
            sent.set()
            waiting(server, 2 * 128)
        other.close()
        thread.join()
        tables = {"questions": [{"marginal": ["age", "sex"], "where": {"age": [0, at]}} for at in range(3)]}
        told = json.loads(call(server, "POST", "/v1/answers", tables)[2])["answers"]

    assert [200] == ended
    assert b"onlineic_waiting 0\n" in meanwhile
    assert ["untested"] * 2 == [one["status"] for one in told[:2]]
    assert "too-large" == told[2]["error"]["code"]


def test_what_is_told_from_a_view_is_never_asked_again(tmp_path, monkeypatch):
    """When its turn comes something may have been learned: asked again it could be a new test, and paid."""

    def asked(*_):
        raise AssertionError("asked")

    with served(opened(tmp_path / "a.db"), tmp_path) as server:
        known = {"questions": [{"sex": "F"}, {}]}
        first = json.loads(call(server, "POST", "/v1/answers", known)[2])["answers"]
        before = json.loads(call(server, "GET", "/v1/statistics")[2])
        monkeypatch.setattr("onlineic.session.loop.Loop.answer", asked)
        again = json.loads(call(server, "POST", "/v1/answers", known)[2])["answers"]
        after = settled(server)

    assert [one["value"] for one in first] == [one["value"] for one in again]
    assert (before["asked"] + 2, before["repeat"] + 1) == (after["asked"], after["repeat"])
    assert before["length"] == after["length"]


def test_what_waits_as_the_server_ends_is_counted_though_nobody_is_there_to_be_told(tmp_path, monkeypatch):
    ended, count, stop = threading.Event(), Scheduler._count_told, Scheduler.stop

    def counted(scheduler):
        if scheduler._told:
            ended.wait()
        count(scheduler)

    def stopped(scheduler):
        """The loop of the server is closed."""
        ended.set()
        stop(scheduler)

    monkeypatch.setattr(Scheduler, "_count_told", counted)
    monkeypatch.setattr(Scheduler, "stop", stopped)
    with served(opened(tmp_path / "a.db"), tmp_path) as server:
        for _ in range(3):  # once asked, and twice told from the view
            call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]})
    with contextlib.closing(Users(server.users)) as users:
        assert ["repeat:1", "repeat:1"] == [line.statuses for _, line in users.logged()][:2]


def test_labels_are_text_everywhere(server):
    headers = visit(server)
    pages = [asked(server, headers, kind="table", of="label", by=by)[2].decode() for by in ("", "sex")]
    pages += [asked(server, headers, kind="count", a0="label", v0=label)[2].decode() for label in HOSTILE[:4]]
    for page in pages:
        assert "<script>alert" not in page
        assert "<img" not in page
        assert " style=" not in page
        assert len(page) < 200_000
    for label in HOSTILE[:2]:
        assert "card answer" in asked(server, headers, kind="count", a0="label", v0=label)[2].decode()


def test_a_sheet_holds_no_formula(server):
    call(server, "POST", "/v1/answers", {"questions": [{"marginal": ["label"]}]})
    status, headers, body = call(server, "GET", "/v1/answers.csv")

    assert 200 == status
    assert "attachment" in headers["content-disposition"]
    assert ",'=1+1," in body.decode()
    assert ",=1+1," not in body.decode()


def test_synthetic_rows_say_that_they_are(server):
    status, _, body = call(server, "GET", "/v1/synthetic.csv?rows=5")

    assert 200 == status
    assert "synthetic" == body.decode().splitlines()[0].rpartition(",")[2]
    assert 5 == body.decode().count(",True")
    assert 413 == call(server, "GET", "/v1/synthetic.csv?rows=999999")[0]
    assert 422 == call(server, "GET", "/v1/synthetic.csv?rows=-1")[0]


def test_health_and_numbers_for_prometheus(server):
    assert b"ok\n" == call(server, "GET", "/health", who=None)[2]
    assert b"ready\n" == call(server, "GET", "/ready", who=None)[2]
    body = call(server, "GET", "/metrics")[2].decode()
    for line in body.splitlines():
        assert line.startswith(("# TYPE onlineic_", "# HELP onlineic_")) or math.isfinite(
            float(line.rpartition(" ")[2])
        ), line


def test_the_record_is_told_in_pages(server):
    call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}, {"age": [20, 27]}]})
    told = json.loads(call(server, "GET", "/v1/transcript?from=0&limit=4")[2])

    assert 4 == told["next"]
    assert all("value" in one for one in told["answers"])
    assert 422 == call(server, "GET", "/v1/transcript?from=x")[0]
    with ic.connect(server.url, server.tokens["ann"]) as remote:
        assert {"where(sex='F')", "where(age=between(20, 27))"} <= {one["query"] for one in remote.released()}


def test_the_sheet_holds_the_whole_record_however_long(server, monkeypatch):
    monkeypatch.setattr("onlineic.service.app.PAGE_OF_RECORDS", 3)
    body = {"questions": [{"age": age} for age in range(20, 30)]}
    call(server, "POST", "/v1/answers", body)
    _, headers, told = call(server, "GET", "/v1/answers.csv")
    length = json.loads(call(server, "GET", "/v1/statistics")[2])["length"]
    rows = list(csv.DictReader(io.StringIO(told.decode())))
    later = call(server, "GET", f"/v1/answers.csv?from={length - 1}")[2].decode()

    assert "attachment" in headers["content-disposition"]
    assert {f"where(age={age})" for age in range(20, 30)} <= {row["question"] for row in rows}
    assert int(rows[-1]["at"]) == length - 1
    assert all(int(row["at"]) == length - 1 for row in csv.DictReader(io.StringIO(later)))
    assert 422 == call(server, "GET", "/v1/transcript?limit=0")[0]  # its next page would be itself


def replies(server):
    """One reply of every route that tells JSON, with the name of its schema."""
    given = {"questions": [{"sex": "F"}], "values": [0.5], "statuses": ["easy"]}
    bodies = {
        "/v1/answers": {"questions": [{"sex": "F"}, {"marginal": ["sex"]}, {"sex": "x"}, {}]},
        "/v1/sql": {"sql": "SELECT sex, COUNT(*) FROM t GROUP BY sex"},
        "/v1/share": {"share": {"sex": "F"}},
        "/v1/explain": {"questions": [{"sex": "F"}, {"age": [21, 30]}]},
        "/v1/prospects": {"questions": [{"sex": "F"}, {"age": [21, 30]}]},
        "/v1/bounds": given,
        "/v1/snapshot": given,
    }
    for (method, path), route in ROUTES.items():
        if route.reply in SCHEMAS:
            yield route.reply, call(server, method.upper(), path, bodies.get(path))
    for text in ("SELECT AVG(age) FROM t", "SELECT COUNT(*) FROM t"):
        yield "Statement", call(server, "POST", "/v1/sql", {"sql": text})
    yield "Share", call(server, "POST", "/v1/share", {"share": {"sex": "F"}, "by": ["label"]})
    yield "Explanation", call(server, "POST", "/v1/explain", {"question": "SELECT AVG(age) FROM t"})
    yield "Problem", call(server, "GET", "/v1/nothing")


def test_every_reply_is_as_it_is_described(server):
    jsonschema = pytest.importorskip("jsonschema")
    checked = set()
    for name, (status, _, body) in replies(server):
        schema = {"$ref": f"#/components/schemas/{name}", "components": openapi()["components"]}
        jsonschema.validate(json.loads(body), schema)
        assert status == (404 if name == "Problem" else 200)
        checked.add(name)

    assert {"Outcomes", "Statement", "Explanation", "Statistics", "Transcript", "Summary"} <= checked
    assert "limit" in str(openapi()["paths"]["/v1/transcript"]["get"]["parameters"])
    assert 200 == call(server, "GET", "/v1/openapi.json", who=None)[0]


@pytest.mark.parametrize("body", [[], 3, {"x": 1}, {"share": 3}, {"share": {"sex": "F"}, "by": 3}])
def test_a_rate_that_is_none_is_refused(server, body):
    status, _, told = call(server, "POST", "/v1/share", body)

    assert (422, "invalid-query") == (status, json.loads(told)["type"])


def keyed(server, key, body, who="ann"):
    status, _, told = call(server, "POST", "/v1/answers", body, who=who, Idempotency_Key=key)
    return status, json.loads(told)


def test_a_request_that_comes_twice_is_asked_once(server):
    """Its asker has no part: the answers are untested, and nothing of them stands in the record."""
    body = {"questions": [{"age": [22, 37], "sex": "F"}]}
    before = settled(server)["asked"]
    first, again = keyed(server, "a", body, "eve"), keyed(server, "a", body, "eve")
    other = keyed(server, "b", body, "eve")
    wrong, bob = keyed(server, "a", {"questions": []}, "eve"), keyed(server, "a", body, "bob")

    assert first == again
    assert "untested" == first[1]["answers"][0]["status"]
    assert before + 3 == settled(server)["asked"]  # of eve with two keys, and of bob
    assert other[0] == bob[0] == 200
    assert (422, "invalid-query") == (wrong[0], wrong[1]["type"])
    assert 422 == keyed(server, "k" * 99, body)[0]


def test_a_request_whose_line_was_cut_goes_on_and_is_told_to_who_comes_back(tmp_path):
    with served(opened(tmp_path / "a.db"), tmp_path) as server:
        call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]})
        body = json.dumps({"questions": [{"age": [23, 31]}]}).encode()
        head = f"Host: localhost\r\nAuthorization: Bearer {server.tokens['ann']}\r\nIdempotency-Key: x\r\n"
        with writer_held(server):
            line = socket.create_connection(("127.0.0.1", server.port))
            line.sendall(
                f"POST /v1/answers HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
            )
            waiting(server, 1)
            line.close()
            told = json.loads(call(server, "GET", "/v1/progress?key=x")[2])
            assert ("waiting", 1, 0) == (told["state"], told["before"], told["done"])
        status, answers = keyed(server, "x", {"questions": [{"age": [23, 31]}]})
        asked_once = settled(server)["asked"]
        assert "done" == json.loads(call(server, "GET", "/v1/progress?key=x")[2])["state"]
        assert "unknown" == json.loads(call(server, "GET", "/v1/progress?key=x", who="bob")[2])["state"]

    assert 200 == status
    assert answers["answers"][0]["status"] in ("easy", "hard")  # no repeat: it was asked once
    assert 2 == asked_once


def begun(server, far):
    """A request that does not go on: nothing, a head without an end, or a body of which most is to come."""
    head = f"POST /v1/answers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.tokens['ann']}\r\n"
    return ["", head, head + "Content-Length: 9\r\n\r\n{"][far].encode()


def test_slow_clients_hold_up_nobody(server, monkeypatch):
    monkeypatch.setattr(serving.Deadlined, "deadline", FOR_EVER)
    with contextlib.ExitStack() as lines:
        for number in range(256):
            line = lines.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            line.sendall(begun(server, number % 3))
        assert 200 == call(server, "GET", "/v1/statistics")[0]


@pytest.mark.parametrize("far", range(3))
def test_slow_clients_are_dropped(server, monkeypatch, far):
    monkeypatch.setattr(serving.Deadlined, "deadline", 0.01)

    assert b"" == sent_raw(server, begun(server, far))[0]


def sent_raw(server, *parts):
    """Send parts as they are, until the server closes; return what came back, and whether it cut the line."""
    found, cut = b"", False
    with socket.create_connection(("127.0.0.1", server.port), timeout=FOR_EVER) as line:
        try:
            for part in parts:
                line.sendall(part)
        except ConnectionError:
            cut = True  # what it said before is there to be read
        try:
            while more := line.recv(2**16):
                found += more
        except ConnectionError:
            cut = True
    return found, cut


def test_a_body_without_a_length_is_cut_too(server):
    head = (
        f"Host: localhost\r\nAuthorization: Bearer {server.tokens['ann']}\r\nTransfer-Encoding: chunked\r\n"
    )
    start = f"POST /v1/answers HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode()
    told, _ = sent_raw(server, start, *[b"1000\r\n" + b" " * 4096 + b"\r\n"] * 20)

    assert told.startswith(b"HTTP/1.1 413")


HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD + b"X: " + b"x" * 20_000 + b"\r\n\r\n"],
        [HEAD + b"".join(b"X%d: %s\r\n" % (place, b"x" * 500) for place in range(40)) + b"\r\n"],
        [b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"],
        [HEAD + b"Host: 127.0.0.1\r\n\r\n"],
        [b"GET /health HTTP/1.1\r\n\r\n"],
        [HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
        [HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
        [HEAD + b"Content-Length: -1\r\n\r\n"],
        [HEAD + b" folded: 1\r\n\r\n"],
        [HEAD + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n"],
        [b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"],
        [b"GET http://localhost:99999999/ HTTP/1.1\r\nHost: localhost\r\n\r\n"],
        [b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n"],
        [b"\x16\x03\x01\x02\x00\x01\x00"],
    ],
)
def test_a_head_that_is_none_or_too_long_is_refused(server, parts):
    told, _ = sent_raw(server, *parts, HEAD + b"Connection: close\r\n\r\n")

    assert told.startswith(b"HTTP/1.1 400")
    assert b"ok" not in told.split(b"\r\n\r\n")[1]


@pytest.mark.parametrize(
    "start",
    [
        HEAD + b"X: ",
        b"GET /",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;x=",
    ],
)
def test_a_request_that_never_ends_is_cut(server, start):
    told, cut = sent_raw(server, start, *[b"x" * 2**16] * 64)  # as much as the system's buffers take

    assert cut
    assert b"400" not in told


def test_requests_that_nobody_waits_for_are_few(server):
    """Eight are answered in order of one that sends many without reading; more are not kept."""
    few, _ = sent_raw(server, (HEAD + b"\r\n") * 5 + HEAD + b"Connection: close\r\n\r\n")
    many, _ = sent_raw(server, (HEAD + b"\r\n") * 5000)

    assert 6 == few.count(b"200 OK")
    assert many.count(b"200 OK") <= serving.MOST_AHEAD
    assert 200 == call(server, "GET", "/health")[0]


def test_a_client_tells_how_far_a_long_list_has_come(server, monkeypatch):
    monkeypatch.setattr("onlineic.service.client.AT_ONCE", 2)
    told = []
    asked = [{"age": [20, 20 + more]} for more in range(5)]
    with ic.connect(server.url, server.tokens["ann"], progress=lambda *step: told.append(step)) as remote:
        assert 5 == len(remote.answer_many(asked))
        assert [("answers", 2, 5), ("answers", 4, 5), ("answers", 5, 5)] == told
        remote.answer_many(asked[:2])
    assert 3 == len(told), "one request is not worth a word"
    with pytest.raises(InvalidParameterError, match="progress must be a callable"):
        ic.connect(server.url, server.tokens["ann"], progress=1)


def test_a_client_reads_errors_as_a_session_raises_them(server):
    with pytest.raises(RemoteError) as caught:
        ic.connect(server.url, "oic_00")
    assert 401 == caught.value.status
    with ic.connect(server.url, server.tokens["ann"]) as remote:
        with pytest.raises(InvalidQueryError, match="sex must be one of"):
            remote.answer({"sex": "x"})
        with pytest.raises(TypeError):
            remote.__reduce__()


def test_the_command_line_asks_a_server(server, tmp_path, monkeypatch, capsys):
    (tmp_path / "q.txt").write_text('{"sex": "F"}\nSELECT sex, COUNT(*) FROM t GROUP BY sex\n')
    monkeypatch.setenv("ONLINEIC_TOKEN", server.tokens["ann"])

    assert 0 == main(["ask", "--url", server.url, "--format", "json", str(tmp_path / "q.txt")])
    count, table = map(json.loads, capsys.readouterr().out.splitlines())
    assert 0 < count["value"] < 1
    assert ["F", "M"] == table["columns"]["sex"]
    with pytest.raises(SystemExit):
        main(["ask", "--url", server.url, "--csv", "x"])
    with pytest.raises(SystemExit):
        main(["ask", "--csv", "x"])


@pytest.mark.parametrize("url", ["", "ftp://x", "http://example.org", None, "http://127.0.0.1:99999"])
def test_an_address_that_is_none_or_not_safe_is_refused(url):
    with pytest.raises(InvalidParameterError):
        ic.connect(url, "token")


def test_a_token_is_needed(monkeypatch):
    monkeypatch.delenv("ONLINEIC_TOKEN", raising=False)
    with pytest.raises(InvalidParameterError, match="ONLINEIC_TOKEN"):
        ic.connect("http://127.0.0.1:1")


@pytest.mark.parametrize("listen", ["0.0.0.0:8765", "example.org:80", "8765", "127.0.0.1:x", "10.0.0.1:80"])
def test_another_machine_is_let_in_by_tls_alone(listen):
    with pytest.raises(InvalidParameterError):
        serving.host_and_port(listen, tls=False, behind_proxy=False)
    assert ("0.0.0.0", 80) == serving.host_and_port("0.0.0.0:80", tls=True, behind_proxy=False)
    assert ("::1", 80) == serving.host_and_port("[::1]:80", tls=False, behind_proxy=False)


def test_a_session_that_forgets_or_is_not_private_is_not_served(tmp_path):
    Users(tmp_path / "u.db", create=True).close()
    for settings in ({"noise": ic.noise.SimulatedNoise(1)}, {"ledger": tmp_path / "h.db", "table": "t"}, {}):
        with (
            ic.OnlineIC(ic.PrivateData(TABLE, DOMAIN), ic.Budget(0.1, 1e-6), **settings) as session,
            pytest.raises(InvalidParameterError),
        ):
            serving.serve(session, tmp_path / "u.db")


def test_eight_clients_at_once_agree_and_the_ledger_holds(tmp_path):
    questions = [{"age": [20, 20 + age], "sex": sex} for age in range(1, 19) for sex in "FM"]
    found = {}

    def client(number, server):
        with ic.connect(server.url, server.tokens[f"user{number % 3}"]) as remote:
            found[number] = [one.value for one in remote.answer_many(questions)]

    with served(opened(tmp_path / "a.db"), tmp_path, names=["user0", "user1", "user2"]) as server:
        threads = [threading.Thread(target=client, args=(number, server)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    users = Users(server.users)
    assert {"user0", "user1", "user2"} == {line.user for _, line in users.logged()}
    users.close()
    assert 8 == len(found)
    assert all(one == found[0] for one in found.values())
    assert () == verified(read(tmp_path / "a.db")).problems


def test_what_cannot_be_recorded_is_not_told(tmp_path, monkeypatch):
    with served(opened(tmp_path / "a.db"), tmp_path) as server:
        assert 200 == call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]})[0]

        def full(*_):
            raise ic.errors.LedgerWriteError("ledger must be written, got a full disk.")

        monkeypatch.setattr(ic.ledger.SqliteLedger, "_store", full)
        status, headers, body = call(server, "POST", "/v1/answers", {"questions": [{"age": [21, 33]}]})
        assert (503, "1") == (status, headers["retry-after"])
        assert b"value" not in body
        assert 503 == call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]})[0]
        assert 503 == call(server, "GET", "/ready", who=None)[0]
        told = call(server, "GET", "/v1/transcript")[2].decode()
        assert "sex=" in told
        assert "between(21, 33)" not in told  # nor is it on the page, or told as known
        assert "between(21, 33)" not in call(server, "GET", "/", who=None, **visit(server))[2].decode()
        assert json.loads(told)["length"] == json.loads(call(server, "GET", "/v1/statistics")[2])["length"]
        monkeypatch.undo()
    with ic.OnlineIC.resume(tmp_path / "a.db", ic.PrivateData(TABLE, DOMAIN), durability="all") as session:
        assert "repeat" == session.answer({"sex": "F"}).status


def test_who_looks_and_does_not_ask_makes_the_session_spend_nothing(tmp_path):
    with served(opened(tmp_path / "a.db"), tmp_path) as server:
        headers = visit(server)
        call(server, "GET", "/", who=None, **headers)
        for path in (
            "/v1/summary",
            "/v1/synthetic.csv",
            "/v1/transcript",
            "/v1/answers.csv",
            "/v1/about",
            "/metrics",
        ):
            call(server, "GET", path)
        call(server, "POST", "/v1/explain", {"question": {"sex": "F"}})
        body = {"questions": [{"sex": "F"}], "values": [0.5], "statuses": ["easy"]}
        assert 200 == call(server, "POST", "/v1/bounds", body)[0]
        told = json.loads(call(server, "GET", "/v1/statistics")[2])
        assert (0, 0.0, 0) == (told["asked"], told["spent"], told["length"])


def test_what_one_asks_changes_no_bound_that_another_is_told(server):
    """Answers that a client makes up are looked at, and nothing of them is kept."""
    before = settled(server)
    sent = [{"weigh": "age", "by": "share"}, {"sex": "F"}, {"age": [20, 29]}]
    for value, status in ((1e300, "hard"), (-5.0, "easy"), (0.5, "untested")):
        body = {"questions": sent, "values": [value] * 3, "statuses": [status] * 3}
        assert 200 == call(server, "POST", "/v1/bounds", body)[0]
    assert before == json.loads(call(server, "GET", "/v1/statistics")[2])


def test_a_failing_job_seals_nothing_and_tells_nothing(tmp_path, monkeypatch):
    with served(opened(tmp_path / "a.db"), tmp_path) as server:
        monkeypatch.setattr(ic.OnlineIC, "summary", lambda *_: 1 / 0)
        status, _, body = call(server, "GET", "/v1/summary")
        assert (500, "internal", "") == (status, json.loads(body)["type"], json.loads(body)["detail"])
        assert 200 == call(server, "POST", "/v1/answers", {"questions": [{"sex": "F"}]})[0]


def test_three_starts_without_an_answer_are_enough(tmp_path):
    users = Users(tmp_path / "u.db", create=True)
    for _ in range(3):
        users.begin()
    users.close()
    with opened(tmp_path / "a.db") as session, pytest.raises(SessionStateError, match="after-crashes"):
        serving.serve(session, tmp_path / "u.db")


def test_nothing_of_the_extra_is_imported_before_a_server_starts():
    code = (
        "import sys, onlineic as ic, onlineic.service; ic.connect; "
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & set(sys.argv[1:])))"
    )
    extra = ["starlette", "uvicorn", "h11", "httptools", "anyio", "click", "idna", "sqlglot"]
    extra += ["jinja2", "markupsafe"]
    for one in (code, code.replace(", onlineic.service; ic.connect", "")):
        told = subprocess.run([sys.executable, "-c", one, *extra], capture_output=True, text=True, check=True)
        assert "" == told.stdout.strip(), one


def test_the_extra_is_small():
    """15 MB installed, of the distributions that this environment has for the extra and what they need."""
    wanted, seen = ["starlette", "uvicorn", "httptools", "sqlglot", "jinja2"], set()
    while wanted:
        name = wanted.pop()
        if name not in seen:
            seen.add(name)
            needs = metadata.requires(name) or []
            wanted += [re.match(r"[A-Za-z0-9_.-]+", one)[0] for one in needs if ";" not in one]
    wanted = {"anyio", "h11", "click"} | seen | {"idna"}
    files = [one for name in wanted for one in metadata.files(name) or []]
    size = sum(
        path.stat().st_size for one in files if (path := one.locate()).is_file() and path.suffix != ".pyc"
    )
    assert size < 15e6, f"{size / 1e6:.1f} MB"


def test_a_remote_mean_has_the_bias_of_the_session(tmp_path):
    """How records were rounded to parts follows from whose they are, which the server tells."""
    domain = ic.Domain.of(cost=ic.number(0, 50_000, bins=4), sex=["F", "M"])
    data = ic.PrivateData.from_counts({"cost": [120.0, 9.0], "sex": ["F", "M"]}, [10_000, 5_000], domain)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), ledger=tmp_path / "a.db", table="t", durability="all")
    with served(session, tmp_path) as server, ic.connect(server.url, server.tokens["ann"]) as remote:
        assert session.rounded_in == remote.rounded_in == ic.Unit(None)
        told = remote.mean("cost"), remote.sql("SELECT AVG(cost) FROM t")
    assert {12_500 * (8 / (64 * 15_000) + 2.0**-21)} == {one.bias for one in told}
