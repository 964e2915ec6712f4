"""Hostile requests: no error of the server, no hang, nothing changed; some in the suite.

ONLINEIC_REQUESTS=10000 makes them ten thousand (about a minute).
"""

import http.client
import json
import os
import random
import resource

import numpy as np
import pytest

import onlineic as ic
from support.events import FOR_EVER
from support.served import served

REQUESTS = int(os.environ.get("ONLINEIC_REQUESTS", "400"))
DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"], day=ic.dates("2024-01-01", "2024-01-31"))
TABLE = np.full(DOMAIN.shape, 30)
PATHS = [
    "/v1/answers", "/v1/sql", "/v1/explain", "/v1/bounds", "/v1/statistics", "/v1/transcript", "/ask",
    "/login", "/v1/answers.csv", "/v1/synthetic.csv", "/", "/metrics", "//", "/v1/../etc", "/%00",
    "/v1/answers?x=%ff",
]  # fmt: skip
METHODS = ["POST", "POST", "POST", "GET", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "PATCH", "FOO"]
LEAVES = [
    None, True, 0, -1, 10**400, 1e308, -0.5, "", "F", "x" * 5000, "\u0000", "\ud800", "age",
    "2024-13-99", "2024-01",
    "age > 1 OR 1=1; DROP TABLE line", "SELECT * FROM t", "SELECT AVG(age) FROM t GROUP BY sex", "' OR ''='",
    "((((((((((", "age BETWEEN 1 AND", "SELECT " + "(" * 500, "{}", "NaN",
]  # fmt: skip
KEYS = [
    "age", "sex", "day", "not", "or", "and", "marginal", "where", "weigh", "by", "from", "to", "below",
    "one_of",
    "at_least", "box", "constant", "rounding", "dense", "questions", "sql", "question", "values", "statuses",
    "",
    "__class__", "\u202e",
]  # fmt: skip


def grown(chance, depth=0):
    """A value that JSON could hold, mostly of names that the server knows."""
    if depth > 4 or chance.random() < 0.35:
        return chance.choice(LEAVES)
    if chance.random() < 0.5:
        return [grown(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(KEYS): grown(chance, depth + 1) for _ in range(chance.randrange(1, 4))}


def body_of(chance):
    kind = chance.randrange(8)
    if kind == 0:
        return chance.randbytes(chance.randrange(300))
    if kind == 1:
        return chance.choice(
            [
                b"[" * 50_000,
                b'{"a":' * 9_000,
                b'{"questions":[' + b"{}," * 20_000,
                b"9" * 60_000,
                b" " * 70_000,
            ]
        )
    if kind == 2:
        return b"form=form&kind=%s&a0=%s&v0=%s" % tuple(chance.randbytes(4).hex().encode() for _ in range(3))
    name = chance.choice(["questions", "sql", "question", "values"])
    sent = {name: grown(chance, 1)}
    if name == "questions":
        sent[name] = [grown(chance, 1) for _ in range(chance.randrange(5))]
    try:
        return json.dumps(sent).encode("utf-8", "surrogatepass")
    except ValueError:  # an integer of too many digits
        return b'{"questions": [' + b"1" * 5000 + b"]}"


@pytest.mark.slow
def test_no_request_is_an_error_of_the_server_or_changes_what_it_holds(tmp_path):
    chance = random.Random(11)
    data = ic.PrivateData(TABLE, DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), ledger=tmp_path / "a.db", table="t", durability="all")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with served(session, tmp_path, names=["ann"], share=0) as server:  # who has no part can change nothing
        paths, held = [], session.account.capacity
        for number in range(REQUESTS):
            method, path = chance.choice(METHODS), chance.choice(PATHS)
            headers = {"Authorization": f"Bearer {server.tokens['ann']}"}
            if chance.random() < 0.3:
                headers[
                    chance.choice(["Host", "Origin", "Cookie", "Content-Type", "Accept", "X-Forwarded-For"])
                ] = chance.choice(["", "x" * 8000, "\xff\xfe", "a;b=c;;=", "null", "http://[", "onlineic=1"])
            if chance.random() < 0.1:
                headers["Authorization"] = chance.choice(
                    ["", "Bearer", "Basic x", "Bearer \xff", "bearer " * 99]
                )
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
            try:
                connection.request(method, path, body_of(chance) if method != "GET" else None, headers)
                status = connection.getresponse().status
            except (ConnectionError, http.client.HTTPException, UnicodeError):
                status = 0  # cut off, or never sent
            finally:
                connection.close()
            paths.append((number, method, path, status))
            assert status not in (500, 502, 504), paths[-1]
        with ic.connect(server.url, server.tokens["ann"]) as remote:
            assert 0.0 == remote.part()["paid"]
            assert not remote.statistics().sealed
        assert {200, 401, 405, 422} <= {status for *_, status in paths}
        assert held == session.account.capacity
        assert not session.view().paid
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB
