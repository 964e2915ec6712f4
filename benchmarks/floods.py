"""How long others wait beside eight floods of one user of a server, and what a question takes of a processor.

    python -m benchmarks.floods [KIND ..] [--tree FOLDER --name NAME] [--only PART ..] [--json FILE]

A server of this checkout, or of another in FOLDER, serves a made table of 30,000 records. *floods*: eight
clients of one user send one kind of request as fast as they are answered; another user asks a plain new
question, a repeat, an explanation, the record and a login, one after the other: p50, p99 and the longest, in
milliseconds. *load*: questions a second and processor time of the server a question, for 1, 8 and 32 clients.
*memory*: of the server over many requests. Clients are processes of their own; two cores and a busy machine
make absolute times long: compare two trees by turns. NOT PRIVATE: the table is made.
"""

import argparse
import contextlib
import http.client
import json
import multiprocessing as mp
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
DOMAIN = {
    "age": {"range": [17, 90]},
    "sex": {"labels": ["Female", "Male"]},
    "region": {"labels": ["North", "South", "East", "West", "Île-de-France"], "other": True},
    "income": {"edges": [0, 10000, 20000, 30000, 50000, 100000, 200000, "inf"]},
    "smoker": {"labels": ["0", "1"]},
    "education": {"labels": ["none", "primary", "secondary", "bachelor", "master"]},
}
KINDS = ("plain", "repeat", "explain", "record", "page", "login")
CLIENTS = 8


def made_table(path: Path, rows: int = 30_000) -> None:
    """Write a made table of people."""
    rng = np.random.default_rng(0)
    columns = (
        np.clip(rng.gamma(6, 7, rows).astype(int) + 17, 17, 90),
        rng.choice(["Female", "Male"], rows, p=[0.48, 0.52]),
        rng.choice(["North", "South", "East", "West", "Île-de-France"], rows, p=[0.3, 0.3, 0.2, 0.15, 0.05]),
        np.clip(np.exp(rng.normal(10, 0.6, rows)).astype(int), 0, 199_999),
        (rng.random(rows) < 0.25).astype(int),
        rng.choice(
            ["none", "primary", "secondary", "bachelor", "master"], rows, p=[0.05, 0.2, 0.45, 0.2, 0.1]
        ),
    )
    lines = [",".join(DOMAIN), *(",".join(map(str, row)) for row in zip(*columns, strict=True))]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


class Server:
    """A server in a process of its own, with its users' tokens."""

    def __init__(self, tree: Path, folder: Path, users: list[str], per_minute: int) -> None:
        self.tree, self.folder = tree, folder
        made_table(folder / "people.csv")
        (folder / "domain.json").write_text(json.dumps(DOMAIN), encoding="utf-8")
        self.environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
        rate = ["--per-minute", str(per_minute), "--share", "1"]  # all may pay: else nothing is tested
        self.tokens = {
            name: self.run("user", "add", name, "--users", str(folder / "users.db"), *rate) for name in users
        }
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = ["serve", str(folder / "c.db"), "--data", str(folder / "people.csv"), "--table", "people"]
        words += ["--domain", str(folder / "domain.json"), "--users", str(folder / "users.db")]
        words += ["--listen", f"127.0.0.1:{self.port}", "--epsilon", "1", "--delta", "1e-9"]
        words += ["--new"] * ("--new" in self.run("serve", "--help"))  # older trees have no such option
        self.log = open(folder / "log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "onlineic", *words], env=self.environment, stderr=self.log, cwd=folder
        )
        while True:
            with contextlib.suppress(OSError):
                if call(self.port, "GET", "/ready")[0] == 200:
                    break
            if self.process.poll() is not None:
                raise SystemExit((folder / "log").read_text())
            time.sleep(0.1)

    def run(self, *words: str) -> str:
        """Return what a command prints."""
        done = subprocess.run(
            [sys.executable, "-m", "onlineic", *words], env=self.environment, capture_output=True, text=True,
            check=True, cwd=self.folder,
        )  # fmt: skip
        return done.stdout.strip()

    def processor(self) -> float:
        """Return seconds of the processor that it has taken."""
        told = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Return MB that it holds."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))

    def end(self) -> float:
        """Tell it to end, and return after how many seconds it has."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(120)
        if self.process.poll() is None:
            self.process.kill()
        self.log.close()
        return time.perf_counter() - began


@contextlib.contextmanager
def served(tree: Path, users: list[str], per_minute: int) -> Iterator[Server]:
    """Give a server until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(tree, Path(folder), users, per_minute)
        try:
            yield server
        finally:
            server.end()


def call(
    port: int,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
    timeout: float = 120,
) -> tuple[int, bytes, Any]:
    """Return status, body and headers of one request on a line of its own."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        sent = body if body is None or isinstance(body, bytes | str) else json.dumps(body)
        line.request(method, path, sent, headers or {})
        reply = line.getresponse()
        return reply.status, reply.read(), reply.headers
    finally:
        line.close()


def plain(chance: random.Random) -> dict[str, Any]:
    """Return a question that was hardly asked before."""
    return {
        "age": [chance.randint(17, 50), chance.randint(51, 90)],
        "sex": chance.choice(["Male", "Female"]),
        "region": chance.choice(["North", "South", "East", "West"]),
        "education": chance.choice(["none", "primary", "secondary", "bachelor"]),
    }


def statement(chance: random.Random, keys: str = "age, region, education") -> str:
    where = (
        f"smoker='{chance.choice('01')}' AND age > {chance.randint(30, 60)} "
        f"AND income < {chance.choice([10000, 20000, 30000, 50000])}"
    )
    return f"SELECT {keys}, AVG(age) FROM t WHERE {where} GROUP BY {keys}"


def texts(chance: random.Random) -> dict[str, Any]:
    each = " OR ".join(f"age={17 + chance.randint(0, 70)}" for _ in range(340))[:4000].rsplit(" OR ", 1)[0]
    return {"questions": [each] * 15}


FLOODS: dict[str, Callable[[random.Random], tuple[str, str, Any]]] = {
    "statements": lambda chance: ("POST", "/v1/sql", {"sql": statement(chance)}),
    "tables": lambda chance: (
        "POST", "/v1/answers",
        {"questions": [{"marginal": ["age", "sex", "region", "income", "smoker", "education"]}] * 4},
    ),
    "explanations": lambda chance: ("POST", "/v1/explain", {"question": statement(chance, "age, region")}),
    "long texts": lambda chance: ("POST", "/v1/answers", texts(chance)),
    "synthetic rows": lambda chance: ("GET", f"/v1/synthetic.csv?rows=10000&seed={chance.randrange(10**6)}", None),  # noqa: E501
    "summaries": lambda chance: ("GET", "/v1/summary?answers=256", None),
    "logins": lambda chance: ("LOGIN", "", None),
    "open streams": lambda chance: ("STREAM", "/v1/events", None),
}  # fmt: skip


def flood(port: int, token: str, kind: str, ended: Any, told: Any) -> None:
    """Send one kind of request by several lines until the end; tell how many were answered, by status."""
    statuses: Counter[int] = Counter()
    threads = [
        threading.Thread(target=flood_of, args=(port, token, kind, place, ended, statuses), daemon=True)
        for place in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    ended.wait()
    told.put(dict(statuses))
    told.close()
    told.join_thread()
    os._exit(0)


def flood_of(port: int, token: str, kind: str, seed: int, ended: Any, statuses: Counter[int]) -> None:
    """Send requests one after the other."""
    chance = random.Random(seed)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    held: list[socket.socket] = []
    while not ended.is_set():
        method, path, body = FLOODS[kind](chance)
        try:
            if method == "LOGIN":
                status = login(port, token)[0]
            elif method == "STREAM":
                line = socket.create_connection(("127.0.0.1", port), timeout=30)
                line.sendall(
                    f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()  # noqa: E501
                )
                status = int(line.recv(4096).split()[1])
                held.append(line)
                if len(held) > 40:
                    held.pop(0).close()
            else:
                status = call(port, method, path, body, headers)[0]
        except (OSError, http.client.HTTPException, IndexError):
            status = 0
        statuses[status] += 1


def login(port: int, token: str) -> tuple[int, bytes, Any]:
    """Log in as a browser does."""
    origin = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/x-www-form-urlencoded"}
    return call(port, "POST", "/login", f"token={token}", origin)


def waits(server: Server, seconds: float) -> dict[str, list[float]]:
    """Return how long one user waits for each kind of request, one after the other."""
    chance, found = random.Random(os.getpid()), {kind: [] for kind in KINDS}
    headers = {"Authorization": f"Bearer {server.tokens['bob']}", "Content-Type": "application/json"}
    cookie = {"Cookie": login(server.port, server.tokens["bob"])[2].get("set-cookie", "").split(";")[0]}
    acts: dict[str, Callable[[], Any]] = {
        "plain": lambda: call(server.port, "POST", "/v1/answers", {"questions": [plain(chance)]}, headers),
        "repeat": lambda: call(server.port, "POST", "/v1/answers", {"questions": [{"sex": "Male"}]}, headers),
        "explain": lambda: call(server.port, "POST", "/v1/explain", {"question": plain(chance)}, headers),
        "record": lambda: call(server.port, "GET", "/v1/transcript?from=0&limit=20", None, headers),
        "page": lambda: call(server.port, "GET", "/", None, cookie),
        "login": lambda: login(server.port, server.tokens["bob"]),
    }
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for kind, act in acts.items():
            began = time.perf_counter()
            status = act()[0]
            if status not in (200, 303):
                raise SystemExit(f"{kind}: {status}")
            found[kind].append(1000 * (time.perf_counter() - began))
            time.sleep(0.01)
    return found


def floods(tree: Path, seconds: float, kinds: list[str]) -> Iterator[dict[str, Any]]:
    """Return what another user waits beside each flood."""
    for kind in kinds:
        with served(tree, ["ann", "bob"], 600) as server:
            server.run(
                "user", "quota", "bob", "--per-minute", "1000000", "--users", str(server.folder / "users.db")
            )
            headers = {"Authorization": f"Bearer {server.tokens['bob']}"}
            chance = random.Random(1)  # tables are bought before: those who wait for them are told
            warm = {"questions": [{"sex": "Male"}, *(plain(chance) for _ in range(200))]}
            call(server.port, "POST", "/v1/answers", warm, headers)
            ended, told = mp.Event(), mp.Queue()
            other = mp.Process(target=flood, args=(server.port, server.tokens["ann"], kind, ended, told))
            if kind != "none":
                other.start()
                time.sleep(0.5)
            found = waits(server, seconds)
            asked = json.loads(call(server.port, "GET", "/v1/statistics", None, headers)[1])["asked"]
            ended.set()
            statuses = told.get() if kind != "none" else {}
            if kind != "none":
                other.join()
            row = {"flood": kind, "statuses": statuses, "asked": asked}
            for name, held in found.items():
                row[name] = [*np.percentile(held, [50, 99]).tolist(), max(held), len(held)]
            print(shown(row), flush=True)
            yield row


def shown(row: dict[str, Any]) -> str:
    each = "  ".join(f"{name} {row[name][0]:.0f}/{row[name][1]:.0f}/{row[name][2]:.0f}" for name in KINDS)
    return f"{row['flood']:15} {each}  n={row['plain'][3]}, asked {row['asked']}, {row['statuses']}"


LOADS: dict[str, tuple[int, Callable[[random.Random], tuple[str, str, Any]]]] = {
    "repeat": (1, lambda chance: ("POST", "/v1/answers", {"questions": [{"sex": "Male"}]})),
    "new easy": (1, lambda chance: ("POST", "/v1/answers", {"questions": [plain(chance)]})),
    "batch 256 new": (256, lambda chance: ("POST", "/v1/answers", {"questions": [plain(chance) for _ in range(256)]})),  # noqa: E501
    "batch 256 repeats": (256, lambda chance: ("POST", "/v1/answers", {"questions": [{"age": 17 + at % 70} for at in range(256)]})),  # noqa: E501
    "statement of 18 numbers": (1, lambda chance: ("POST", "/v1/sql", {"sql": f"SELECT region, COUNT(*), AVG(age) FROM t WHERE age>{chance.randint(17, 60)} GROUP BY region"})),  # noqa: E501
    "explain": (1, lambda chance: ("POST", "/v1/explain", {"question": {"age": [20, chance.randint(21, 90)]}})),  # noqa: E501
    "statistics": (1, lambda chance: ("GET", "/v1/statistics", None)),
    "page": (1, lambda chance: ("GET", "/", None)),
}  # fmt: skip


def client(port: int, token: str, cookie: str, kind: str, seconds: float, seed: int, told: Any) -> None:
    """Send one kind of request for so long; tell how long each took."""
    chance, taken = random.Random(seed), []
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    if kind == "page":
        headers = {"Cookie": cookie}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        method, path, body = LOADS[kind][1](chance)
        began = time.perf_counter()
        line.request(method, path, None if body is None else json.dumps(body), headers)
        reply = line.getresponse()
        reply.read()
        if reply.status != 200:
            told.put(f"{kind}: {reply.status}")
            return
        taken.append(1000 * (time.perf_counter() - began))
    told.put(taken)


def load(tree: Path, seconds: float, kinds: list[str], counts: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Return questions a second, waits, and processor time of the server a question."""
    names = [f"u{place}" for place in range(max(counts))]
    with served(tree, names, 1_000_000) as server:
        cookies = [login(server.port, server.tokens[name])[2]["set-cookie"].split(";")[0] for name in names]
        headers = {"Authorization": f"Bearer {server.tokens['u0']}"}
        warm = {"questions": [{"sex": "Male"}, *({"age": 17 + at} for at in range(70))]}
        call(server.port, "POST", "/v1/answers", warm, headers)
        chance = random.Random(1)  # and what is bought for the first thousand questions
        for _ in range(5):
            call(
                server.port,
                "POST",
                "/v1/answers",
                {"questions": [plain(chance) for _ in range(256)]},
                headers,
            )
        for kind in kinds:
            for many in counts:
                told = mp.Queue()
                before = server.processor()
                each = [
                    mp.Process(target=client, args=(server.port, server.tokens[f"u{place}"], cookies[place], kind, seconds, 7 * place + many, told))  # noqa: E501
                    for place in range(many)
                ]  # fmt: skip
                for one in each:
                    one.start()
                got = [told.get() for _ in each]
                for one in each:
                    one.join()
                if any(isinstance(one, str) for one in got):
                    raise SystemExit(str([one for one in got if isinstance(one, str)]))
                time.sleep(0.3)
                taken = [one for part in got for one in part]
                questions = LOADS[kind][0] * len(taken)
                row = {"kind": kind, "clients": many, "rate": questions / seconds,
                       "p50": float(np.percentile(taken, 50)), "p99": float(np.percentile(taken, 99)),
                       "processor": 1000 * (server.processor() - before) / questions, "memory": server.memory()}  # fmt: skip  # noqa: E501
                print(
                    f"{kind:24} clients {many:2}: {row['rate']:7.0f} a second, p50 {row['p50']:.1f}, p99 {row['p99']:.1f} ms, "  # noqa: E501
                    f"processor {row['processor']:.3f} ms, {row['memory']} MB", flush=True,
                )  # fmt: skip
                yield row


def memory(tree: Path, requests: int) -> Iterator[dict[str, Any]]:
    """Return MB of the server over so many requests, mostly plain questions."""
    with served(tree, ["ann"], 1_000_000) as server:
        line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        headers = {"Authorization": f"Bearer {server.tokens['ann']}"}
        chance = random.Random(3)
        for place in range(requests + 1):
            if place % (requests // 10) == 0:
                row = {"requests": place, "memory": server.memory()}
                print(row, flush=True)
                yield row
            kind = ("repeat", "repeat", "repeat", "new easy", "explain", "statistics")[place % 6]
            method, path, body = LOADS[kind][1](chance)
            line.request(method, path, None if body is None else json.dumps(body), headers)
            line.getresponse().read()


def main() -> None:
    """Measure, print, and write one JSON if it is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--tree", type=Path, default=HERE)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", default=["floods", "load", "memory"])
    parser.add_argument("--json", type=Path, help="rows of what was measured before and is not now are kept")
    parser.add_argument("--name", default="now", help="of the tree in that file")
    given = parser.parse_args()
    parts: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        "floods": lambda: floods(given.tree, given.seconds, given.kinds or ["none", *FLOODS]),
        "load": lambda: load(given.tree, given.seconds / 2, given.kinds or [*LOADS], tuple(given.clients)),
        "memory": lambda: memory(given.tree, given.requests),
    }
    for part in given.only:
        for row in parts[part]():
            if given.json is not None:
                keep(given.json, given.name, part, row)


def keep(path: Path, name: str, part: str, row: dict[str, Any]) -> None:
    """Write a row into a result file, in the place of one of the same kind."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    held = found.setdefault(name, {}).setdefault(part, [])
    row["machine"] = {"load": round(os.getloadavg()[0], 1), "cores": os.cpu_count()}
    same = [at for at, one in enumerate(held) if key_of(one) == key_of(row)]
    if same:
        held[same[0]] = row
    else:
        held.append(row)
    path.write_text(written(found), encoding="utf-8")


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a row is of."""
    return tuple(row.get(name) for name in ("flood", "kind", "clients", "requests"))


def written(found: dict[str, Any]) -> str:
    """Return a result as JSON, a row a line."""
    trees = []
    for name, parts in found.items():
        each = [
            f"  {json.dumps(part)}: [\n   " + ",\n   ".join(json.dumps(short(row)) for row in rows) + "\n  ]"
            for part, rows in parts.items()
        ]
        trees.append(f" {json.dumps(name)}: {{\n" + ",\n".join(each) + "\n }")
    return "{\n" + ",\n".join(trees) + "\n}\n"


def short(value: Any) -> Any:
    """Return the same with floats of four digits."""
    if isinstance(value, dict):
        return {str(name): short(one) for name, one in value.items()}
    if isinstance(value, list):
        return [short(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
