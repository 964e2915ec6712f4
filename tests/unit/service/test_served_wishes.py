"""Wishes of those who ask a server: what they are told before, what they pay, and what is refused."""

import contextlib
import json
import sqlite3
import urllib.error
import urllib.request

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidQueryError, TooFineWishError
from onlineic.service import Users
from support.served import served

DOMAIN = ic.Domain.of(age=range(20, 60), sex=["F", "M"], region=range(12), ill=ic.boolean())
GENERATOR = np.random.default_rng(20261130)
COUNTS = GENERATOR.multinomial(60_000, GENERATOR.dirichlet(np.full(DOMAIN.size, 2.0))).reshape(DOMAIN.shape)
OLDER = """CREATE TABLE user (name TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, created REAL NOT NULL,
revoked REAL, share TEXT, per_minute INTEGER NOT NULL)"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of a session without a wish: bob may have none finer than 1 %, eve has next to nothing."""
    folder = tmp_path_factory.mktemp("wishes")
    data = ic.PrivateData(COUNTS, DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), ledger=folder / "a.db", table="t", durability="all")
    with served(session, folder, ["ann", "bob", "eve"]) as running:
        with contextlib.closing(Users(running.users)) as users:
            users.quota("bob", finest=0.01)
            users.quota("eve", share=1e-6)
        yield running


@contextlib.contextmanager
def asking(server, *names):
    with contextlib.ExitStack() as open_ones:
        yield [open_ones.enter_context(ic.connect(server.url, server.tokens[name])) for name in names]


def post(server, who, path, **body):
    request = urllib.request.Request(
        f"{server.url}/v1/{path}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {server.tokens[who]}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def paid(server, who):
    with asking(server, who) as (one,):
        return one.part()["paid"]


def test_what_is_told_before_is_paid_afterwards_of_the_part_of_who_asks(server):
    question = {"sex": "F", "ill": True}
    before = paid(server, "ann")
    _, told = post(server, "ann", "explain", question=question, within=0.02)
    _, reply = post(server, "ann", "answers", questions=[question], within=0.02)
    _, again = post(server, "bob", "answers", questions=[question], within={"certain": 0.05})
    (answer,) = reply["answers"]

    assert told["payable"]
    assert 0.0 < reply["paid"] == pytest.approx(told["at_most"])
    assert reply["paid_of_part"] == pytest.approx(told["of_part"])
    assert (reply["within"], told["within"]) == (0.02, 0.02)
    assert (answer["status"], answer["reason"]) == ("hard", "bought")
    assert answer["error_bound"] <= 0.02
    assert answer["cost"] == pytest.approx(reply["paid"])
    assert paid(server, "ann") > before
    assert (again["paid"], again["answers"][0]["value"]) == (0.0, answer["value"])


def test_what_was_told_less_exactly_is_not_told_again_for_a_finer_wish(server):
    with asking(server, "ann", "bob") as (ann, bob):
        wide = bob.answer({"age": [20, 30]}, within=0.06)
        fine = ann.answer({"age": [20, 30]}, within=0.02)

    assert wide.error_bound <= 0.06
    assert fine.error_bound <= 0.02
    assert fine.status == "hard"


def test_a_call_is_bought_as_a_whole_and_its_questions_can_differ(server):
    cells = [{"region": region, "sex": "M"} for region in range(12)]
    _, told = post(server, "ann", "explain", questions=cells, within=0.02)
    _, reply = post(
        server,
        "ann",
        "answers",
        questions=[*cells, {"ill": False, "within": {"expected": 0.05}}],
        within=0.02,
    )

    assert max(one["error_bound"] for one in reply["answers"][:12]) <= 0.02
    assert reply["paid"] >= told["at_most"] * 0.999
    assert sum(one["cost"] for one in reply["answers"]) == pytest.approx(reply["paid"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("answers", {"questions": [{"age": 21}], "within": 0.009}),
        (
            "answers",
            {"questions": [{"sex": "F", "ill": True}], "within": {"expected": 0.009}},
        ),  # that was told
        ("sql", {"sql": "SELECT AVG(age) FROM t", "within": 0.001}),
        ("explain", {"question": {"age": 21}, "within": 0.009}),
        ("explain", {"question": {"age": 21, "within": 0.009}}),
    ],
)
def test_a_finer_wish_than_one_may_have_is_refused_and_costs_nothing(server, path, body):
    if path == "sql":
        pytest.importorskip("sqlglot", reason="needs the extra sql")
    before = paid(server, "bob")
    status, problem = post(server, "bob", path, **body)

    assert (status, problem["type"]) == (422, "too-fine-wish")
    assert "at least 0.01 of the records for bob" in problem["detail"]
    assert paid(server, "bob") == before


def test_a_wish_in_one_question_that_is_too_fine_leaves_the_others_alone(server):
    _, reply = post(
        server, "bob", "answers", questions=[{"age": 22, "within": 0.001}, {"age": 22, "within": 0.05}]
    )
    refused, answer = reply["answers"]

    assert refused["error"]["code"] == "too-fine-wish"
    assert answer["error_bound"] <= 0.05


def test_the_client_raises_what_a_session_would(server):
    with asking(server, "ann", "bob") as (ann, bob):
        assert (ann.facts.finest, bob.facts.finest) == (0.0, 0.01)
        with pytest.raises(TooFineWishError, match=r"at least 0\.01"):
            bob.mean("age", {"sex": "F"}, within=0.1)
        found = ann.mean("age", {"sex": "F"}, within=1.0)
        assert ann.histogram("sex", within=ic.expected(900)).error_bounds.max() < np.inf
        with pytest.raises(InvalidQueryError, match="one wish"):
            ann.explain(lambda to: [to.mean("age", within=1.0), to.sum("age", within=1e6)])
    assert found.error_bound <= 1.0


def test_who_cannot_pay_for_a_wish_is_told_what_is_known_and_pays_nothing(server):
    _, told = post(server, "eve", "explain", question={"age": 44}, within=0.005)
    _, reply = post(server, "eve", "answers", questions=[{"age": 44}], within=0.005)
    (answer,) = reply["answers"]

    assert (answer["status"], answer["reason"], reply["paid"]) == ("untested", "budget", 0.0)
    assert not told["payable"]
    assert told["bound_easy"] == answer["error_bound"]


def test_a_session_s_own_wish_is_no_finer_than_one_may_have(tmp_path):
    data = ic.PrivateData(COUNTS, DOMAIN)
    session = ic.OnlineIC(
        data, ic.Budget(1.0, 1e-9), within=0.02, ledger=tmp_path / "b.db", table="t", durability="all"
    )
    with served(session, tmp_path, ["ann", "bob"]) as running:
        with contextlib.closing(Users(running.users)) as users:
            users.quota("bob", finest=0.04)
        with asking(running, "ann", "bob") as (ann, bob):
            assert [one.facts.within.radius for one in (ann, bob)] == [0.02, 0.04]
            wide, fine = bob.answer({"ill": True}), ann.answer({"ill": True})
            mean, wide_mean = ann.mean("age", {"sex": "F"}), bob.mean("age", {"sex": "M"})
            left = ann.part()["hard_left"]

    assert 0.02 < wide.error_bound <= 0.04
    assert fine.error_bound <= 0.02
    assert (
        mean.error_bound <= 0.02 * 39 < wide_mean.error_bound
    )  # numbers within 4 %, over half of the records
    assert left > 100  # numbers within the wish, and not hits of the plan


def test_a_file_of_users_that_knows_no_wishes_is_used_on(tmp_path):
    path = tmp_path / "users.db"
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(OLDER)
        file.execute("INSERT INTO user VALUES ('ann', 'x', 1.0, NULL, '0.5', 60)")
    path.chmod(0o600)
    with contextlib.closing(Users(path)) as users:
        users.add("bob", finest=0.01)
        users.quota("bob", per_minute=7)
        found = {user.name: (user.per_minute, user.finest) for user in users.list()}
    assert found == {"ann": (60, 0.0), "bob": (7, 0.01)}
