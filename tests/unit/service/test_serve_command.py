"""`onlineic serve` from files: a table of persons, and one whose number of records is private, over HTTP."""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys

import numpy as np
import pytest

import onlineic as ic
from onlineic.cli import main
from onlineic.service import Users
from support.events import FOR_EVER
from support.noise import FAR
from support.served import running, serving

PEOPLE, ROWS = 3_000, 2


@pytest.fixture
def folder(tmp_path):
    """A table of two rows a person, its domain, and one user."""
    chance = np.random.default_rng(5)
    ages = chance.integers(20, 40, (PEOPLE, ROWS)).tolist()
    rows = [f"p{person},{age},{'FM'[person % 2]}" for person, held in enumerate(ages) for age in held]
    (tmp_path / "rows.csv").write_text("\n".join(["id,age,sex", *rows, ""]), encoding="utf-8")
    domain = ic.Domain.of(age=range(20, 40), sex=["F", "M"])
    (tmp_path / "domain.json").write_text(domain.to_json(), encoding="utf-8")
    with contextlib.closing(Users(tmp_path / "u.db", create=True)) as users:
        (tmp_path / "token").write_text(users.add("ann"), encoding="utf-8")
    return tmp_path


def command(folder, *more, first=True):
    files = ["--data", f"{folder}/rows.csv", "--domain", f"{folder}/domain.json", "--users", f"{folder}/u.db"]
    begin = ["--epsilon", "1", "--delta", "1e-6"] if first else []
    begin += ["--new"] if first and not (folder / "a.db").exists() else []
    free = ["--listen", "127.0.0.1:0"]
    return ["serve", f"{folder}/a.db", *files, "--table", "t", *begin, *free, *more]


@pytest.fixture
def served_by(monkeypatch, folder):
    """Run the command, its server in a thread, and return what a client makes of it."""

    def run(act, *more, first=True):
        found = []

        def serve(session, users, **_):
            with running(session, users) as port:
                url, token = f"http://127.0.0.1:{port}", (folder / "token").read_text(encoding="utf-8")
                with ic.connect(url, token) as remote:
                    found.append(act(remote, port, token))

        monkeypatch.setattr(serving, "serve", serve)
        assert 0 == main(command(folder, *more, first=first))
        return found[0]

    return run


def page(port, token):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=FOR_EVER)
    line.request("GET", "/v1/about", headers={"Authorization": f"Bearer {token}"})
    about = json.loads(line.getresponse().read())
    line.request(
        "POST",
        "/login",
        f"token={token}",
        {"Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"},
    )
    reply = line.getresponse()
    reply.read()
    cookie = reply.headers["set-cookie"].split(";")[0]
    line.request("GET", "/", headers={"Cookie": cookie})
    text = line.getresponse().read().decode()
    line.close()
    return about, text


def test_persons_are_protected_and_counted(served_by):
    def asked(remote, port, token):
        answer = remote.answer({"sex": "F"})
        return answer, remote.n, remote.statistics(), page(port, token), remote.answer({"age": [20, 29]})

    answer, n, told, (about, text), other = served_by(asked, "--person", "id")

    assert PEOPLE == n == about["n"]
    assert "persons" == answer.of_what
    assert abs(answer.count - PEOPLE / 2) <= FAR * answer.count_bound
    assert ic.Unit("id") == told.unit
    assert "all rows of a person (by 'id'), weighed to one" == told.protects
    assert f"{PEOPLE:,} persons" in text

    again = served_by(lambda remote, *_: remote.answer({"age": [20, 29]}), "--person", "id", first=False)
    assert ("repeat", other.value) == (again.status, again.value)


def test_a_port_that_is_taken_is_told_before_anything_is_made(folder, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        assert 2 == main(command(folder, "--listen", listen))
    told = capsys.readouterr().err

    assert f"listen must be an address of this machine that is free, got '{listen}'" in told
    assert "serving on" not in told
    assert not (folder / "a.db").exists()


def test_where_it_serves_is_said_once_it_takes_requests(folder, capfd):
    """At the port that it has found, which answers as soon as it is told."""
    process = subprocess.Popen(
        [sys.executable, "-m", "onlineic", *command(folder)], stderr=subprocess.PIPE, text=True
    )
    try:
        line = next(line for line in process.stderr if "serving on" in line)
        port = int(re.search(r"serving on 127\.0\.0\.1:(\d+);", line)[1])
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=FOR_EVER)
        asked.request("GET", "/ready")
        assert 200 == asked.getresponse().status
        asked.close()
    finally:
        process.terminate()
        process.stderr.read()
        process.stderr.close()
    assert 0 == process.wait()


def test_a_ledger_is_begun_by_that_word_alone_and_once(served_by, folder, capsys, monkeypatch):
    monkeypatch.setattr(serving, "serve", lambda *_, **__: None)
    begin = [one for one in command(folder) if one != "--new"]
    assert 2 == main(begin)
    assert "a lost one is not begun anew" in capsys.readouterr().err
    assert not (folder / "a.db").exists()
    served_by(lambda remote, *_: remote.answer({"sex": "F"}))
    assert 2 == main(command(folder, "--new"))
    assert "--new must be left out" in capsys.readouterr().err


def test_a_copy_of_a_server_that_runs_takes_its_place_once_it_is_lost(served_by, folder, capsys):
    files = [f"{folder}/a.db", f"{folder}/copy", "--users", f"{folder}/u.db"]

    def asked(remote, *_):
        answer = remote.answer({"sex": "F"})
        assert 0 == main(["ledger", "backup", *files])
        return answer

    answer = served_by(asked)
    assert 0 == main(["ledger", "verify", f"{folder}/copy/ledger.db"])
    (folder / "a.db").rename(folder / "lost.db")
    (folder / "u.db").unlink()
    assert 0 == main(["ledger", "restore", *files])
    assert 1 == main(command(folder, first=False))
    assert "--instead-of" in capsys.readouterr().err
    assert 2 == main(command(folder, "--instead-of", f"{folder}/lost.db", first=False))
    (folder / "lost.db").unlink()
    there = ["--instead-of", f"{folder}/a.db", "--spent", "0.5"]
    again = served_by(lambda remote, *_: remote.answer({"sex": "F"}), *there, first=False)
    assert ("repeat", answer.value) == (again.status, again.value)
    assert 2 == main(command(folder, *there, first=False))


def test_another_budget_than_that_of_the_ledger_is_refused_and_not_passed_over(served_by, folder, capsys):
    served_by(lambda remote, *_: remote.answer({"sex": "F"}))

    assert 1 == main(command(folder, "--epsilon", "3", first=False))
    assert "error: --epsilon must be 1.0, as the ledger was opened, got 3.0; write" in capsys.readouterr().err
    served_by(lambda remote, *_: remote.answer({"sex": "F"}))


def test_a_private_number_of_records_is_released_with_its_error(served_by):
    def asked(remote, port, token):
        return remote.answer({"sex": "F"}), remote.n, remote.n_bound, page(port, token)

    answer, n, n_bound, (about, text) = served_by(asked, "--neighbours", "add-remove")

    assert 0 < n_bound == about["n_bound"] < 1000
    assert abs(n - PEOPLE * ROWS) <= FAR * n_bound
    assert n == about["n"]
    assert abs(answer.value - 0.5) <= FAR * answer.fraction_bound
    assert f"{n:,} records" in text


def test_persons_who_may_be_there_or_not_are_both(served_by):
    def asked(remote, *_):
        return remote.answer({"sex": "M"}), remote.n, remote.n_bound, remote.statistics()

    answer, n, n_bound, told = served_by(asked, "--person", "id", "--neighbours", "add-remove")

    assert abs(n - PEOPLE) <= FAR * n_bound
    assert n_bound > 0
    assert (n, n_bound) == (told.counted.n, told.counted.bound)
    assert told.protects.endswith("and whether it is there at all")
    assert abs(answer.value - 0.5) <= FAR * answer.fraction_bound


def test_a_ledger_of_persons_is_no_ledger_of_rows(served_by, folder, capsys):
    served_by(lambda remote, *_: remote.answer({"sex": "F"}), "--person", "id")

    assert 0 != main(command(folder, first=False))
    assert "person" in capsys.readouterr().err


def test_a_table_in_another_form_is_served_as_it_is_asked(served_by, folder, capsys):
    rows = (folder / "rows.csv").read_text(encoding="utf-8").replace(",", ";").replace(";F", ";weiß")
    (folder / "rows.csv").write_text(rows, encoding="latin-1")
    form = ["--delimiter", ";", "--encoding", "latin-1", "--missing", "weiß"]
    domain = ic.Domain.of(age=range(20, 40), sex=ic.optional(["M"]))
    (folder / "domain.json").write_text(domain.to_json(), encoding="utf-8")
    answer = served_by(lambda remote, *_: remote.answer({"sex": None}), *form)

    assert abs(answer.count - PEOPLE * ROWS / 2) <= FAR * answer.count_bound
    assert 2 == main(command(folder, *form[2:], first=False))
    assert "write --delimiter ';'." in capsys.readouterr().err
    assert 1 == main(command(folder, *form[:4], first=False))
    assert "weiß" not in (told := capsys.readouterr().err)
    assert "--show-data-errors says more, and quotes it" in told
    assert 1 == main(command(folder, *form[:4], "--show-data-errors", first=False))
    assert "weiß" in capsys.readouterr().err


def test_parquet_is_read_by_its_content_by_each_command(served_by, folder, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("narwhals")
    from pyarrow import csv as read

    parquet.write_table(read.read_csv(folder / "rows.csv"), folder / "rows.parquet")
    (folder / "rows.parquet").rename(folder / "rows.csv")
    (folder / "questions").write_text('{"sex": "F"}\n', encoding="utf-8")
    files = ["--csv", f"{folder}/rows.csv", "--domain", f"{folder}/domain.json", "--person", "id"]

    assert PEOPLE == served_by(lambda remote, *_: remote.n, "--person", "id")
    capsys.readouterr()
    assert 0 == main(["ask", *files, "--epsilon", "1", "--format", "json", f"{folder}/questions"])
    assert abs(json.loads(capsys.readouterr().out)["count"] - PEOPLE / 2) < PEOPLE / 10
    assert 2 == main(["ask", *files, "--epsilon", "1", "--decimal", ",", f"{folder}/questions"])
    assert "must be left out for a Parquet file or a workbook, got one; declare" in capsys.readouterr().err


def test_a_wish_of_the_first_start_holds_at_later_ones(served_by, folder, capsys):
    def wished(remote, *_):
        return remote.facts.within

    assert served_by(wished, "--within", "expected:2%") == ic.expected(0.02)
    assert served_by(wished, first=False) == ic.expected(0.02)
    assert served_by(wished, "--within", "expected:.02", first=False) == ic.expected(0.02)
    assert 1 == main(command(folder, "--within", "1%", first=False))
    assert "--within must be expected:0.02" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(command(folder, "--within", "none of it", first=False))
