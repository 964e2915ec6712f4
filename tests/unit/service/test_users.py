"""The users file: tokens as digests, parts and rates, the log, and starts that answered nothing."""

import contextlib
import os
import sqlite3
from fractions import Fraction

import pytest

from onlineic.cli import main
from onlineic.errors import InvalidParameterError, SessionStateError
from onlineic.service import Users
from onlineic.service.users import Asked
from support import databases


@pytest.fixture
def users(tmp_path):
    found = Users(tmp_path / "users.db", create=True)
    yield found
    found.close()


def test_a_token_is_known_until_it_is_revoked_and_stands_nowhere(users):
    token = users.add("ann")

    assert "ann" == users.by_token(token).name
    assert None is users.by_token(token + "0")
    with open(users.path, "rb") as file:
        held = file.read()
    assert token.encode() not in held
    assert token.removeprefix("oic_").encode() not in held
    users.revoke("ann")
    assert None is users.by_token(token)


def test_only_the_owner_may_read_the_file(users):
    assert 0o600 == os.stat(users.path).st_mode & 0o777
    os.chmod(users.path, 0o644)
    with pytest.raises(InvalidParameterError, match="chmod 600"):
        Users(users.path)


def test_another_process_that_revokes_is_heard_at_the_next_request(users):
    token = users.add("ann")
    assert users.by_token(token) is not None
    with contextlib.closing(Users(users.path)) as other:
        other.revoke("ann")

    assert None is users.by_token(token)


def test_a_name_is_given_once_because_it_has_paid(users):
    users.add("ann")
    users.revoke("ann")
    with pytest.raises(InvalidParameterError, match="has paid"):
        users.add("ann")


def test_parts_are_twice_an_equal_share_unless_they_are_given(users):
    for name in "abcd":
        users.add(name)
    users.quota("d", share=0.125)

    assert 4 == users.active
    assert [Fraction(1, 2)] * 3 + [Fraction(1, 8)] == [user.part(users.active) for user in users.list()]
    assert 1 == users.one("a").part(1)


@pytest.mark.parametrize(
    "wrong",
    [{"name": ""}, {"name": "a\n"}, {"name": "x" * 65}, {"share": 2}, {"share": -1}, {"per_minute": 0}],
)
def test_what_is_no_user_is_refused(users, wrong):
    with pytest.raises(InvalidParameterError):
        users.add(**{"name": "ann", **wrong})
    assert [] == users.list()


def test_the_log_holds_who_asked_when_and_no_value(users):
    users.log([Asked("ann", "ab" * 32, 3, 5, "easy:2")])
    ((when, line),) = users.logged()

    assert when > 0
    assert ("ann", 3, 5) == (line.user, line.start, line.stop)


def test_a_fourth_start_after_three_that_answered_nothing_is_refused(users):
    for _ in range(3):
        users.begin()
    with pytest.raises(SessionStateError, match="--after-crashes"):
        users.begin()
    users.begin(after_crashes=True)
    users.good()
    users.begin()


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(InvalidParameterError, match="user add"):
        Users(tmp_path / "none.db")
    path = tmp_path / "text.db"
    path.write_text("no database, but a text that is long enough to be looked at" * 99)
    path.chmod(0o600)
    with pytest.raises(SessionStateError):
        Users(path)


def test_the_command_line_adds_lists_renews_revokes_and_limits(tmp_path, capsys):
    path = str(tmp_path / "users.db")

    def told(*words):
        assert 0 == main(["user", *words, "--users", path])
        return capsys.readouterr().out.strip()

    first = told("add", "ann")
    second = told("renew", "ann")
    told("quota", "ann", "--share", "0.25", "--per-minute", "7")
    with contextlib.closing(Users(path)) as users:
        assert None is users.by_token(first)
        assert (Fraction(1, 4), 7) == (users.by_token(second).share, users.by_token(second).per_minute)
    assert "25.0%" in told("list")
    told("quota", "ann", "--finest", ".5%")
    assert "within 0.005 at best" in told("list")
    told("quota", "ann", "--finest", "0")
    assert "at best" not in told("list")
    told("revoke", "ann")
    assert "revoked" in told("list")
    assert 2 == main(["user", "revoke", "bob", "--users", path])
    assert databases.opened(path).execute("SELECT count(*) FROM user").fetchone() == (1,)


def test_the_command_line_leaves_no_file_of_users_open(tmp_path, monkeypatch, capsys):
    opened, connect = [], sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *at, **how: opened.append(connect(*at, **how)) or opened[-1]
    )
    users, text = tmp_path / "users.db", tmp_path / "text.db"
    text.write_text("no database, but a text that is long enough to be looked at" * 99)
    text.chmod(0o600)
    for words in (
        ["add", "ann"],
        ["renew", "ann"],
        ["list"],
        ["quota", "ann", "--share", "0.25"],
        ["revoke", "ann"],
    ):
        assert 0 == main(["user", *words, "--users", str(users)])
    assert 1 == main(["user", "list", "--users", str(text)])

    assert 6 == len(opened)
    for one in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            one.execute("SELECT 1")
