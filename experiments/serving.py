"""How fast a server answers beside its session, and how long readers wait while a session learns.

    python experiments/serving.py [--quick] [--from-json]

*Answers*: easy answers a second about five attributes of Adult, each question asked once, every answer
durable before it is told: by `OnlineIC.answer` in one thread, and by a server in a process of its own, asked
by eight clients one question at a time, and eight at a time each. The clients are eight connections of one
thread that does next to nothing, since it shares the cores with the server. All three take turns, five times;
what an answer takes of the processor tells what is left of its time for the disk.
*Waits*: a table of eight attributes, 1,679,616 cells, in which three say more than their pairs. While
one client asks what the session must learn from, others ask for the statistics, an explanation, a repeat and
the record. Milliseconds of those requests that began while a refit ran. One thread for arithmetic.
Writes results/serving.json; the markdown tables and the figure are made from that file alone.
"""

import contextlib
import http.client
import json
import multiprocessing
import os
import selectors
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, stamped

import onlineic as ic
from onlineic.datasets import adult5, adult5_domain

NAME = "serving"
CLIENTS = 8
WAYS = {  # label: questions a request
    "one at a time": 1,
    "eight at a time": 8,
}
KINDS = ("statistics", "explanation", "repeat", "record")


@attrs.frozen
class Config:
    """What is run."""

    answers: int = 2_000  # of each way, in each round
    rounds: int = 5
    rows: int = 300_000
    size: int = 6  # of each of eight attributes
    learned: int = 17  # questions, of which about half are learned from
    seed: int = 20261126


def adult() -> ic.PrivateData:
    return ic.PrivateData.from_counts(*adult5(), adult5_domain())


def chained(config: Config) -> ic.PrivateData:
    """Return a table in which the sum of two attributes tells the next one in seven of ten records."""
    rng, size = np.random.default_rng(config.seed), config.size
    columns = [rng.integers(0, size, config.rows) for _ in range(2)]
    while len(columns) < 8:
        told, other = (columns[-1] + columns[-2]) % size, rng.integers(0, size, config.rows)
        columns.append(np.where(rng.random(config.rows) < 0.7, told, other))
    named = {f"x{place}": column for place, column in enumerate(columns)}
    return ic.PrivateData.from_records(named, ic.Domain.of(dict.fromkeys(named, size)))


def opened(data: ic.PrivateData, folder: str, budget: ic.Budget) -> ic.OnlineIC:
    return ic.OnlineIC(data, budget, ledger=f"{folder}/ledger.db", table="t", durability="all")


def serve(
    folder: str, table: Callable[[], ic.PrivateData], budget: ic.Budget, tokens: int, line: Any
) -> None:
    """Serve a table until the line is closed; send port and tokens first, then processor time when asked."""
    from onlineic.service import Users
    from onlineic.service.gate import Limits
    from onlineic.service.serving import standing

    users = Users(f"{folder}/users.db", create=True)
    made = [users.add(f"user {place}", 1.0, 10**6) for place in range(tokens)]
    users.close()
    session = opened(table(), folder, budget)
    with standing(session, f"{folder}/users.db", "127.0.0.1", 0, Limits()) as server:
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        line.send((server.servers[0].sockets[0].getsockname()[1], made))
        with contextlib.suppress(EOFError):
            while line.recv():
                line.send(time.process_time())
        server.should_exit = True
        thread.join()


@contextlib.contextmanager
def served(table: Callable[[], ic.PrivateData], budget: ic.Budget) -> Iterator[tuple[int, list[str], Any]]:
    """Give port, tokens and line of a server in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        here, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=serve, args=(folder, table, budget, CLIENTS, there))
        process.start()
        there.close()
        try:
            yield *here.recv(), here
        finally:
            here.close()
            process.join()


class Client:
    """One connection of one user."""

    def __init__(self, port: int, token: str) -> None:
        self.line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self.headers = {"Authorization": f"Bearer {token}"}

    def ask(self, path: str, body: Any = None) -> Any:
        sent = None if body is None else json.dumps(body)
        self.line.request("GET" if body is None else "POST", path, sent, self.headers)
        reply = self.line.getresponse()
        raw = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"the server must answer, got {reply.status}: {raw[:200]!r}")
        return json.loads(raw)


def questions(count: int, seed: int) -> list[dict[str, Any]]:
    """Return so many questions about Adult, no two the same."""
    rng, made = np.random.default_rng(seed), {}
    while len(made) < count:
        low, high = sorted(rng.choice(np.arange(17, 91), 2, replace=False).tolist())
        least, most = sorted(rng.integers(1, 17, 2).tolist())
        sex = ["Female", "Male"][int(rng.integers(2))]
        made[low, high, least, most, sex] = {"age": [low, high], "education_num": [least, most], "sex": sex}
    return [*made.values()]


def row(label: str, found: list[str], start: tuple[float, float], processor: float) -> dict[str, Any]:
    """Return what one way took since a start, in wall time and processor time of this process."""
    seconds, own = time.perf_counter() - start[0], time.process_time() - start[1]
    easy, hard = found.count("easy"), found.count("hard")
    return {"way": label, "easy": easy, "hard": hard, "seconds": seconds, "own": own, "server": processor}


def alone(config: Config, seed: int) -> dict[str, Any]:
    """Return how fast the session answers by itself."""
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(adult(), folder, ic.Budget(1.0, 1e-9)) as session,
    ):
        asked = questions(config.answers + 1, seed)
        session.answer(asked[0])
        start = time.perf_counter(), time.process_time()
        found = [session.answer(one).to_dict()["status"] for one in asked[1:]]
        return row("`OnlineIC.answer` with its bound, one thread", found, start, 0.0)


def sent(token: str, asked: list[dict[str, Any]]) -> bytes:
    """Return a request as it crosses the line."""
    body = json.dumps({"questions": asked})
    head = f"POST /v1/answers HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def whole(reply: bytes) -> bool:
    """Return whether a reply has come to its end."""
    head, apart, body = reply.partition(b"\r\n\r\n")
    return bool(apart) and len(body) == int(head.lower().split(b"content-length:")[1].split()[0])


def exchanged(port: int, waiting: list[list[bytes]]) -> list[bytes]:
    """Send the requests of every client, each behind the reply to the one before, and return the replies."""
    replies: list[bytes] = []
    with selectors.DefaultSelector() as lines:
        for requests in waiting:
            line = socket.create_connection(("127.0.0.1", port))
            line.sendall(requests.pop())
            lines.register(line, selectors.EVENT_READ, (requests, []))
        while lines.get_map():
            for key, _ in lines.select():
                line, (requests, parts) = key.fileobj, key.data
                parts.append(line.recv(2**20))
                if not parts[-1]:
                    raise RuntimeError("the server must answer, got a line that it closed.")
                if whole(reply := b"".join(parts)):
                    replies.append(reply)
                    parts.clear()
                    if requests:
                        line.sendall(requests.pop())
                    else:
                        lines.unregister(line)
                        line.close()
    return replies


def together(config: Config, label: str, many: int, seed: int) -> dict[str, Any]:
    """Return how fast a server answers eight clients."""
    with served(adult, ic.Budget(1.0, 1e-9)) as (port, tokens, line):
        asked = questions(config.answers + 1, seed)
        Client(port, tokens[0]).ask("/v1/answers", {"questions": asked[:1]})
        parts = [asked[1 + place :: CLIENTS] for place in range(CLIENTS)]
        requests = [
            [sent(token, part[at : at + many]) for at in range(0, len(part), many)]
            for token, part in zip(tokens, parts, strict=True)
        ]
        line.send(True)
        before = line.recv()
        start = time.perf_counter(), time.process_time()
        replies = exchanged(port, requests)
        told = row(f"server, {CLIENTS} clients, {label}", [], start, 0.0)
        line.send(True)
        told["server"] = line.recv() - before
    found = [one for reply in replies for one in json.loads(reply.partition(b"\r\n\r\n")[2])["answers"]]
    statuses = [one["status"] for one in found]
    return {**told, "easy": statuses.count("easy"), "hard": statuses.count("hard")}


def waits(config: Config) -> list[dict[str, Any]]:
    """Return how long readers waited while the session learned."""
    from functools import partial

    with served(partial(chained, config), ic.Budget(1.0, 1e-9)) as (port, tokens, _):
        asker, known = Client(port, tokens[0]), {"x0": 1, "x3": 2}
        asker.ask("/v1/answers", {"questions": [known]})
        refits: list[tuple[float, float]] = []
        seen: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
        ended = threading.Event()
        acts: dict[str, tuple[str, Any]] = {
            "statistics": ("/v1/statistics", None),
            "explanation": ("/v1/explain", {"question": {"x1": [1, 2], "x4": 2}}),
            "repeat": ("/v1/answers", {"questions": [known]}),
            "record": ("/v1/transcript?from=0&limit=20", None),
        }

        def reader(kind: str, token: str) -> None:
            client = Client(port, token)
            while not ended.is_set():
                start = time.perf_counter()
                client.ask(*acts[kind])
                seen[kind].append((start, time.perf_counter() - start))
                time.sleep(0.01)

        threads = [
            threading.Thread(target=reader, args=pair) for pair in zip(KINDS, tokens[1:], strict=False)
        ]
        for thread in threads:
            thread.start()
        for place in range(config.learned):
            at, low = place % 6, place // 6 % max(1, config.size - 2)
            ends = [low, low + 2]
            start = time.perf_counter()
            asker.ask("/v1/answers", {"questions": [{f"x{at}": ends, f"x{at + 1}": 0, f"x{at + 2}": ends}]})
            if (taken := time.perf_counter() - start) > 0.2:
                refits.append((start, taken))
        ended.set()
        for thread in threads:
            thread.join()
    rows = []
    for kind in KINDS:
        inside = [
            1000 * taken
            for start, taken in seen[kind]
            if any(begin <= start <= begin + length for begin, length in refits)
        ]
        if inside:
            p50, p99 = np.percentile(inside, [50, 99]).tolist()
            rows.append({"asked": kind, "requests": len(inside), "p50": p50, "p99": p99, "most": max(inside)})
    return [{"refits": [length for _, length in refits]}, *rows]


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(answers=60, rounds=1, rows=5_000, size=3, learned=3) if quick else Config()
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    rows = []
    for place in range(config.rounds):
        seed = config.seed + place
        rows += [alone(config, seed), *(together(config, *way, seed) for way in WAYS.items())]
    refits, *held = waits(config)
    return stamped(config, start, rows=rows, waits=held, **refits)


def measured(result: dict) -> dict[str, tuple[list[float], ...]]:
    """Return answers a second, beside the session of the round, and processor ms an answer, by way."""
    found: dict[str, tuple[list[float], ...]] = {}
    alone_at = 1.0
    for one in result["rows"]:
        rates, beside, busy, asking = found.setdefault(one["way"], ([], [], [], []))
        rates.append(one["easy"] / one["seconds"])
        alone_at = alone_at if one["server"] else rates[-1]
        beside.append(rates[-1] / alone_at)
        each = 1000.0 / max(1, one["easy"])
        busy.append(each * (one["server"] or one["own"]))
        asking.append(each * one["own"] * bool(one["server"]))
    return found


def table(result: dict) -> str:
    ways = measured(result)
    lines = [
        "| who is asked | easy answers a second | beside the session | in the rounds | ms an answer "
        "| processor | its clients |",
        "|---|---|---|---|---|---|---|",
    ]
    for way, (rates, beside, busy, asking) in ways.items():
        rate, ends = np.median(rates), f"{min(beside):.2g} to {max(beside):.2g}"
        lines.append(
            f"| {way} | {rate:,.0f} | {np.median(beside):.2g} | {ends} | {1000 / rate:.2g} | "
            f"{np.median(busy):.2g} | {np.median(asking):.2g} |"
        )
    lines += ["", "| while a refit runs | requests | p50, ms | p99, ms | longest |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['asked']} | {row['requests']:,} | {row['p50']:.2g} | {row['p99']:.2g} | {row['most']:.2g} |"
        for row in result["waits"]
    ]
    refits = result["refits"]
    told = f", of {min(refits):.1f} to {max(refits):.1f} seconds" if refits else ""
    return "\n".join([*lines, "", f"{len(refits)} refits{told}."])


def figure(result: dict, path: Path) -> None:
    """Draw how fast answers come; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(7.0, 2.4), layout="constrained")
    axes = canvas.add_subplot()
    ways = measured(result)
    axes.barh(range(len(ways)), [float(np.median(rates)) for rates, *_ in ways.values()], color="#0072B2")
    axes.set_yticks(range(len(ways)), [way.replace("`", "") for way in ways], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("easy answers a second, each durable before it is told")
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
