"""nginx and Caddy before a server, by the blocks of docs/operating.md: TLS, login, events, HTTP/2, names."""

import contextlib
import http.client
import json
import re
import shutil
import socket
import subprocess
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import onlineic as ic
from onlineic.cli import main
from onlineic.errors import InvalidParameterError
from onlineic.service import Users
from support.events import FOR_EVER
from support.served import Limits, served, serving

from onlineic.service.trust import Trusted  # isort: skip  # needs the extra

PAGE = (Path(__file__).parents[3] / "docs" / "operating.md").read_text(encoding="utf-8")
NAME = "private.example.org"
HOSTS = frozenset({NAME, "127.0.0.1"})
DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"])
TABLE = np.full(DOMAIN.shape, 500)
SECRET = "s" * 32
FORM = "form=form&kind=count&a0=sex&v0=F"


def needs(*programs):
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")


def opened(folder):
    data = ic.PrivateData(TABLE, DOMAIN)
    return ic.OnlineIC(data, ic.Budget(1.0, 1e-6), ledger=folder / "a.db", table="t", durability="all")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as line:
        return line.getsockname()[1]


def certified(folder):
    """A certificate of the name, for a day."""
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={NAME}"]
    made += ["-keyout", folder / f"{NAME}.key", "-out", folder / f"{NAME}.pem"]
    subprocess.run(made, check=True, capture_output=True)


@contextlib.contextmanager
def run(command, port, **how):
    """A proxy that takes connections, until the block ends."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, **how)
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, process.stderr.read().decode()
        yield
    finally:
        process.terminate()
        process.stderr.read()
        process.stderr.close()
        process.wait()


@contextlib.contextmanager
def nginx(folder, kind, **replaced):
    """nginx with a block of the page, on a free port."""
    needs("nginx", "openssl", "curl")
    certified(folder)
    (block,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S)
    port = free_port()
    replaced |= {"listen 443": f"listen 127.0.0.1:{port}", "/etc/ssl/": f"{folder}/"}
    for old, new in replaced.items():
        assert old in block
        block = block.replace(old, new)
    temporary = "".join(f"{one}_temp_path {folder}/{one};" for one in ("client_body", "proxy"))
    user = "user root;" if Path(folder).owner() == "root" else ""
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{block}}}"
    )
    with run(["nginx", "-p", folder, "-c", folder / "nginx.conf"], port):
        yield port


@contextlib.contextmanager
def caddy(folder, backend):
    needs("caddy", "openssl", "curl")
    certified(folder)
    (block,) = re.findall(r"```caddy\n(.*?)```", PAGE, re.S)
    port = free_port()
    for old, new in {
        f"{NAME} {{": f"https://{NAME}:{port} {{",
        "/etc/ssl/": f"{folder}/",
        "127.0.0.1:8765": f"127.0.0.1:{backend}",
    }.items():
        assert old in block
        block = block.replace(old, new)
    (folder / "Caddyfile").write_text("{\nadmin off\nauto_https off\n}\n" + block)
    home = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "XDG_DATA_HOME": str(folder)}
    with run(["caddy", "run", "--config", folder / "Caddyfile"], port, env=home):
        yield port


def curl(port, path, *more):
    """Status, HTTP version, headers and body of a request through the proxy."""
    known = ["--resolve", f"{NAME}:{port}:127.0.0.1", "--insecure", "--silent", "--show-error", "--include"]
    url = f"https://{NAME}:{port}{path}"
    found = subprocess.run(["curl", *known, *more, url], check=True, capture_output=True, text=True).stdout
    head, _, body = found.replace("\r\n", "\n").partition("\n\n")
    first, *rest = head.splitlines()
    version, status = first.split()[:2]
    headers = dict(line.lower().split(": ", 1) for line in rest)
    return int(status), version, headers, body


def tried(port, token):
    """What the issue asks of a proxy: HTTP/2, TLS kept, login, a question by the page, events."""
    bearer = ["-H", f"Authorization: Bearer {token}"]
    status, version, _, body = curl(port, "/v1/about", *bearer)
    assert (200, "HTTP/2") == (status, version)
    assert json.loads(body)["n"] == TABLE.sum()
    assert 404 == curl(port, "/v1/about/", *bearer)[0]  # no redirect, which would lose TLS

    origin = ["-H", f"Origin: https://{NAME}:{port}", "-H", "Sec-Fetch-Site: same-origin"]
    status, _, headers, _ = curl(port, "/login", *origin, "--data", f"token={token}")
    assert (303, "./") == (status, headers["location"])
    assert "secure" in headers["set-cookie"]
    cookie = ["-H", f"Cookie: {headers['set-cookie'].split(';')[0]}"]
    status, _, headers, _ = curl(port, "/ask", *origin, *cookie, "--data", FORM)
    assert 303 == status
    assert headers["location"].startswith("./?")
    assert "answer" in curl(port, headers["location"].removeprefix("."), *cookie)[3]
    assert 403 == curl(port, "/ask", "-H", "Origin: https://evil.example", *cookie, "--data", FORM)[0]

    command = ["curl", "--resolve", f"{NAME}:{port}:127.0.0.1", "--insecure", "--silent", "--no-buffer"]
    with subprocess.Popen(
        [*command, *bearer, f"https://{NAME}:{port}/v1/events"], stdout=subprocess.PIPE, text=True
    ) as events:  # the first arrives while the stream goes on
        assert "event: facts\n" == events.stdout.readline()
        assert '"asked": 1' in events.stdout.readline()
        events.terminate()


@pytest.mark.operations
def test_behind_nginx(tmp_path):
    needs("nginx", "openssl", "curl")
    with served(opened(tmp_path), tmp_path, hosts=HOSTS, secure=True) as server:
        there = {"127.0.0.1:8765": f"127.0.0.1:{server.port}"}
        with nginx(tmp_path, "nginx", **there) as port:
            tried(port, server.tokens["ann"])


@pytest.mark.operations
def test_behind_nginx_under_a_path(tmp_path):
    needs("nginx", "openssl", "curl")
    with served(opened(tmp_path), tmp_path, hosts=HOSTS, secure=True) as server:
        there = {
            "http://127.0.0.1:8765;": f"http://127.0.0.1:{server.port}/;",
            "location /": "location /census/",
        }
        with nginx(tmp_path, "nginx", **there) as port:
            origin = ["-H", f"Origin: https://{NAME}:{port}", "-H", "Sec-Fetch-Site: same-origin"]
            token = f"token={server.tokens['ann']}"
            status, _, headers, _ = curl(port, "/census/login", *origin, "--data", token)
            assert (303, "./") == (status, headers["location"])
            assert "path" not in headers["set-cookie"]  # of the folder of its address
            cookie = ["-H", f"Cookie: {headers['set-cookie'].split(';')[0]}"]
            page = curl(port, "/census/", *cookie)[3]
            for link in re.findall(r'(?:href|src|action)="([^"#]*)"', page):
                assert not link.startswith("/")
                if "/" not in link and "?" not in link and link not in ("ask", "logout"):
                    assert 200 == curl(port, f"/census/{link}", *cookie)[0], link
            accept = ["-H", "Accept: text/html"]
            assert 'href="../page.css"' in curl(port, "/census/v1/none", *accept)[3]
            remote = curl(
                port, "/census/v1/statistics", "-H", f"Authorization: Bearer {server.tokens['ann']}"
            )
            assert 200 == remote[0]


@pytest.mark.operations
def test_behind_caddy(tmp_path):
    needs("caddy", "openssl", "curl")
    with (
        served(opened(tmp_path), tmp_path, hosts=HOSTS, secure=True) as server,
        caddy(tmp_path, server.port) as port,
    ):
        tried(port, server.tokens["ann"])


# -- sign-in by a header -------------------------------------------------------------------------------------


@contextlib.contextmanager
def on_socket(folder, trusted):
    """A server on a Unix socket that believes a header."""
    path = folder / "s"
    with contextlib.closing(Users(folder / "users.db", create=True)) as users:
        users.add("ann", 0.5)
        users.add("gone")
        users.revoke("gone")
    line = serving.bound(f"unix:{path}", 0)
    limits = Limits(hosts=HOSTS, secure=True, trusted=trusted)
    begun = threading.Event()
    with (
        contextlib.closing(line),
        serving.standing(
            opened(folder), folder / "users.db", f"unix:{path}", 0, limits, begun=lambda _: begun.set()
        ) as server,
    ):
        thread = threading.Thread(target=lambda: server.run(sockets=[line]), daemon=True)
        thread.start()
        assert begun.wait(FOR_EVER)
        try:
            yield path
        finally:
            server.should_exit = True
            thread.join()


class Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__(NAME)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


def sent(path, method="GET", to="/v1/statistics", body=None, **headers):
    line = Local(path)
    line.putrequest(method, to)
    for name, value in headers.items():
        for one in [value] if isinstance(value, str) else value:
            line.putheader(name.replace("_", "-"), one)
    raw = b"" if body is None else body.encode()
    line.putheader("Content-Length", str(len(raw)))
    line.endheaders(raw)
    reply = line.getresponse()
    found = reply.status, reply.read().decode()
    line.close()
    return found


def test_who_asks_is_named_by_the_proxy_alone(tmp_path):
    with on_socket(tmp_path, Trusted("x-remote-user", SECRET)) as path:
        mine = {"X_Remote_User": "ann", "X_Onlineic_Secret": SECRET}
        status, told = sent(path, **mine)
        assert (200, "ann", 0.5) == (status, *(json.loads(told)["you"][one] for one in ("name", "share")))
        assert 401 == sent(path)[0]  # the proxy has set no header
        assert 401 == sent(path, X_Remote_User="ann")[0]
        assert 401 == sent(path, X_Remote_User="ann", X_Onlineic_Secret="s" * 31 + "t")[0]
        assert 401 == sent(path, **mine | {"X_Onlineic_Secret": [SECRET, SECRET]})[0]
        assert 401 == sent(path, X_Onlineic_Secret=SECRET)[0]
        for name in (["ann", "bob"], "", "gone", "bob", "an\xffn"):
            assert 403 == sent(path, **mine | {"X_Remote_User": name})[0]
        asked = {"method": "POST", "to": "/v1/answers", "body": '{"questions": [{"sex": "F"}]}'}
        assert 403 == sent(path, **asked, **mine)[0]  # another site could have sent it
        assert 403 == sent(path, **asked, **mine, Origin="https://evil.example")[0]
        page = {"Origin": f"https://{NAME}", "Sec_Fetch_Site": "same-origin"}
        assert 200 == sent(path, **asked, **mine, **page)[0]


def test_groups_have_parts(tmp_path):
    parts = {"staff": Fraction(1, 10), "guests": Fraction(1, 50)}
    with on_socket(tmp_path, Trusted("x-remote-user", None, "x-groups", parts)) as path:
        for name, groups, share in (
            ("new", "guests, staff", 0.1),
            ("new", "guests", 0.1),  # as it was first, or as the curator has it since
            ("other", "guests", 0.02),
            ("ann", "staff", 0.5),
        ):
            status, told = sent(path, X_Remote_User=name, X_Groups=groups)
            assert (200, share) == (status, json.loads(told)["you"]["share"])
        for name, more in (
            ("x", {}),
            ("ann", {}),
            ("ann", {"X_Groups": "staffs"}),
            ("gone", {"X_Groups": "staff"}),
        ):
            assert 403 == sent(path, X_Remote_User=name, **more)[0]
        assert 403 == sent(path, X_Remote_User="n" * 65, X_Groups="staff")[0]
    with contextlib.closing(Users(tmp_path / "users.db")) as users:
        assert {"ann", "gone", "new", "other"} == {user.name for user in users.list()}


def test_a_header_that_anybody_could_send_is_refused(tmp_path, capsys):
    for more in ({}, {"secret": "short"}, {"secret": SECRET, "groups": ("staff=0.1",)}):
        with pytest.raises(InvalidParameterError):
            Trusted.checked("X-User", on_socket=False, **more)
    for group in ("staff", "staff=2", "=x"):
        with pytest.raises(InvalidParameterError):
            Trusted.checked("X-User", on_socket=True, groups_header="X-Groups", groups=(group,))
    assert Trusted.checked("X-User", on_socket=True) == Trusted("x-user")
    assert SECRET not in repr(Trusted.checked("X-User", on_socket=False, secret=SECRET))
    with contextlib.closing(Users(tmp_path / "u.db", create=True)) as users:
        users.add("ann")
    command = ["serve", str(tmp_path / "a.db"), "--data", "x.csv", "--users", str(tmp_path / "u.db")]
    assert 2 == main([*command, "--trust-header", "X-User"])
    assert 2 == main([*command, "--group", "staff=0.1"])


def test_a_socket_that_somebody_listens_at_is_not_taken(tmp_path):
    path = tmp_path / "s"
    with contextlib.closing(serving.bound(f"unix:{path}", 0)) as first:
        first.listen()
        assert 0o660 == path.stat().st_mode & 0o777
        with pytest.raises(InvalidParameterError, match="free"):
            serving.bound(f"unix:{path}", 0)
    serving.bound(f"unix:{path}", 0).close()  # of a server that was killed
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidParameterError, match="free"):
        serving.bound(f"unix:{tmp_path / 'file'}", 0)
    assert "mine" == (tmp_path / "file").read_text()


@pytest.mark.operations
def test_a_name_is_signed_in_by_nginx(tmp_path):
    needs("nginx", "openssl", "curl")
    (tmp_path / "passwords").write_text("bob:{PLAIN}good\n")
    trusted = Trusted("x-remote-user", None, "x-remote-groups", {"staff": Fraction(1, 10)})
    with on_socket(tmp_path, trusted) as path:
        there = {"/run/onlineic/census.sock": str(path), "/etc/onlineic/": f"{tmp_path}/"}
        with nginx(tmp_path, "nginx-sign-on", **there) as port:
            assert 401 == curl(port, "/v1/statistics")[0]
            told = curl(port, "/v1/statistics", "--user", "bob:good", "-H", "X-Remote-User: ann")[3]
            assert ("bob", 0.1) == tuple(json.loads(told)["you"][one] for one in ("name", "share"))
            assert 'name="a0"' in curl(port, "/", "--user", "bob:good")[3]  # no login
