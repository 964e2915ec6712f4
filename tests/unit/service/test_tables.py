"""Several tables behind one login: a process each, with a budget and parts of their own, failing alone."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import onlineic as ic
from onlineic.cli import main
from onlineic.service import RemoteError, Users
from onlineic.service.front import Front, Table
from onlineic.service.gate import Limits
from support.events import FOR_EVER
from support.noise import FAR

pytest.importorskip("uvicorn", reason="the server needs the extra: pip install onlineic[serve]")
DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"])
PAGE = (Path(__file__).parents[3] / "docs" / "operating.md").read_text(encoding="utf-8")
LABELS = {"census": "census 2026, release 3", "clinic": "clinic"}


@pytest.fixture
def folder(tmp_path):
    """Two tables as the page lays them out, one of them by its very block."""
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "domain.json").write_text(DOMAIN.to_json())
    (tables / "census.toml").write_text(block)
    more = block.replace("people", "patients").replace(LABELS["census"], "clinic") + "max-queries = 500\n"
    (tables / "clinic.toml").write_text(more)
    with contextlib.closing(Users(tmp_path / "users.db", create=True)) as users:
        (tmp_path / "tokens").write_text("\n".join(users.add(name) for name in ("ann", "bjørn")))
    for name, rows, file in (("census", 30_000, "people"), ("clinic", 20_000, "patients")):
        lines = [f"{20 + at % 20},{'FM'[at % 2]}" for at in range(rows)]
        (tables / f"{file}.csv").write_text("\n".join(["age,sex", *lines, ""]))
        data = ic.PrivateData.from_csv(tables / f"{file}.csv", DOMAIN)
        budget, label = ic.Budget(1.0, 1e-6), LABELS[name]
        path, more = tables / f"{name}.db", {"max_queries": 500} if name == "clinic" else {}
        ic.OnlineIC(data, budget, ledger=path, table=label, durability="all", **more).close()
        with contextlib.closing(Users(tables / f"{name}.users.db", create=True)) as users:
            for user in ("ann", "bjørn") if name == "census" else ("ann",):
                users.add(user, 1.0 if name == "census" else 0.9)
    return tmp_path


@contextlib.contextmanager
def begun(folder):
    """The servers, all of which take requests; give the process and its port."""
    words = ["serve", str(folder / "tables"), "--users", str(folder / "users.db"), "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "onlineic", *words], stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        lines = []
        while "".join(lines).count("serving ") < 3:  # processes may write on one line
            lines.append(process.stderr.readline())
            assert lines[-1], "".join(lines)
        port = next(int(found[1]) for line in lines if (found := re.search(r"on 127\.0\.0\.1:(\d+)", line)))
        yield process, port
    finally:
        process.terminate()
        process.stderr.read()
        process.stderr.close()
        assert 0 == process.wait()


def call(port, path, body=None, **headers):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=FOR_EVER)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request("GET" if body is None else "POST", path, body, named)
    reply = line.getresponse()
    found = reply.status, reply.headers, reply.read().decode()
    line.close()
    return found


def child_of(process, name):
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process.pid and f"{name}.db" in (entry / "cmdline").read_text():
                return int(entry.name)
    raise AssertionError(name)


@pytest.mark.operations
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes under /proc")
def test_one_login_several_tables_and_one_that_fails_alone(folder):
    ann, bob = (folder / "tokens").read_text().split()
    with begun(folder) as (process, port):
        url = f"http://127.0.0.1:{port}"
        with ic.connect(f"{url}/census", ann) as census, ic.connect(f"{url}/clinic", ann) as clinic:
            first, second = census.answer({"sex": "F"}), clinic.answer({"sex": "F"})
            assert (30_000, 20_000) == (census.n, clinic.n)
            assert (1.0, 0.9) == (census.part()["share"], clinic.part()["share"])
            assert abs(first.count - 15_000) <= FAR * first.count_bound
            assert abs(second.count - 10_000) <= FAR * second.count_bound
        with ic.connect(f"{url}/census", bob) as other:
            assert "bjørn" == other.part()["name"]
            assert "repeat" == other.answer({"sex": "F"}).status
        with pytest.raises(RemoteError):  # no user of that table
            ic.connect(f"{url}/clinic", bob)

        assert (
            401 == call(port, "/census/v1/statistics", X_Onlineic_User="ann")[0]
        )  # a name of a client's own
        assert 401 == call(port, "/census/v1/statistics", Authorization="Bearer none")[0]
        told = call(port, "/census/v1/statistics", Authorization=f"Bearer {bob}", X_Onlineic_User="ann")[2]
        assert "bjørn" == json.loads(told)["you"]["name"]
        for path in ("/none/", "/census%2fv1/about", "/v1/about"):
            assert 404 == call(port, path, Authorization=f"Bearer {ann}")[0]
        assert 400 == call(port, "/", Host="evil.example")[0]

        page = {"Origin": url, "Sec_Fetch_Site": "same-origin"}
        assert "Your token" in call(port, "/")[2]
        assert "Your token" in call(port, "/census/")[2]
        status, headers, _ = call(port, "/census/login", f"token={ann}", **page)
        assert 303 == status
        cookie = {"Cookie": headers["set-cookie"].split(";")[0]}
        assert "Path=/;" in headers["set-cookie"] + ";"
        chooser = call(port, "/", **cookie)[2]
        assert [("census", LABELS["census"]), ("clinic", "clinic")] == re.findall(
            r'<a href="(\w+)/">(.*?)</a>', chooser
        )
        assert 303 == call(port, "/census", **cookie)[0]
        status, headers, _ = call(port, "/clinic/ask", "form=form&kind=count&a0=sex&v0=F", **cookie, **page)
        assert 303 == status
        assert "records" in call(port, "/clinic/" + headers["location"].removeprefix("./"), **cookie)[2]
        assert 403 == call(port, "/clinic/ask", "form=form", **cookie, Origin="https://evil.example")[0]

        assert 200 == call(port, "/ready")[0]
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=FOR_EVER)
        line.request("GET", "/census/v1/events", headers={"Authorization": f"Bearer {ann}"})
        events = line.getresponse()
        assert b"event: facts\n" == events.readline()
        os.kill(child_of(process, "census"), signal.SIGKILL)
        with pytest.raises(http.client.IncompleteRead):  # cut, with the process, and not ended
            events.read()
        line.close()
        while "not served now" not in call(port, "/", **cookie)[2]:
            pass
        assert 503 == call(port, "/ready")[0]
        assert 503 == call(port, "/census/v1/statistics", Authorization=f"Bearer {ann}")[0]
        with ic.connect(f"{url}/clinic", ann) as clinic:
            assert ("repeat", second.value) == (
                clinic.answer({"sex": "F"}).status,
                clinic.answer({"sex": "F"}).value,
            )
        status, headers, _ = call(port, "/logout", "", **cookie, **page)
        assert 303 == status
        assert "Your token" in call(port, "/", **cookie)[2]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("Census.toml", "", "small letters"),
        ("login.toml", "", "small letters"),
        ("census.toml", "= 1", "must be TOML"),
        ("census.toml", "new = true", "options of a table"),
        ("census.toml", "data = {a = 1}", "options of a table"),
        ("census.txt", "", "got none"),
    ],
)
def test_a_folder_that_is_none_is_refused_before_anything_begins(tmp_path, capsys, name, text, said):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / name).write_text(text)
    Users(tmp_path / "u.db", create=True).close()

    assert 2 == main(["serve", str(tmp_path / "t"), "--users", str(tmp_path / "u.db")])
    assert said in capsys.readouterr().err


def test_what_is_of_a_table_stands_in_its_file(tmp_path, capsys):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "census.toml").write_text("")
    for more in (["--epsilon", "1"], ["--new"], ["--trust-header", "X"], ["--data", "x.csv"]):
        with pytest.raises(SystemExit):
            main(["serve", str(tmp_path / "t"), "--users", str(tmp_path / "u.db"), *more])
    assert "must stand in the file of a table" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["serve", str(tmp_path / "a.db"), "--users", str(tmp_path / "u.db")])


def test_a_user_whom_others_name_needs_no_token(tmp_path, capsys):
    assert 0 == main(["user", "add", "ann", "--users", str(tmp_path / "u.db"), "--no-token"])
    assert ("", "") == tuple(capsys.readouterr())
    assert 0 == main(["user", "list", "--users", str(tmp_path / "u.db")])
    assert "ann" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["transfer-encoding", "trailer", "x-onlineic-user", "cookie"])
def test_what_a_client_says_of_the_body_or_of_who_asks_is_not_handed_on(tmp_path, name):
    """A body that a table would read in other parts than the front could name somebody else."""
    heads = []

    async def table(reader, writer):
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        writer.close()

    body = b"0\r\n\r\nGET /v1/statistics HTTP/1.1\r\nx-onlineic-user: ann\r\n\r\n"
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "root_path": "",
        "path": "/census/v1/answers", "raw_path": b"/census/v1/answers", "query_string": b"",
        "headers": [(b"host", b"localhost"), (name.encode(), b"chunked")], "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }  # fmt: skip
    sent = []

    async def asked():
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            return parts.pop() if parts else await asyncio.Event().wait()

        async def send(message):
            sent.append(message)

        with contextlib.closing(Users(tmp_path / "users.db", create=True)) as users:
            front = Front(
                {"census": Table("census", str(tmp_path / "s"))}, users, Limits(hosts={"localhost"})
            )
            server = await asyncio.start_unix_server(table, tmp_path / "s")
            await front.app()(scope, receive, send)
            server.close()

    asyncio.run(asked())
    (head,) = heads
    assert b"chunked" not in head
    assert head.count(b"content-length:") == 1
    assert f"content-length: {len(body)}".encode() in head
    assert 200 == sent[0]["status"]
