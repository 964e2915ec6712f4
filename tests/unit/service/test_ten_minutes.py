"""docs/serving.md, from a CSV file to analysts: each command and call as it is written there."""

import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

import onlineic as ic
from support.served import served  # noqa: F401  # skips without the extra

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")


def blocks(begin, end):
    """The indented blocks between two headings."""
    part = PAGE.split(begin)[1].split(end)[0]
    return [textwrap.dedent(one) for one in re.findall(r"(?:^ {4,}(?! *\*)\S.*\n)+", part, re.M)]


def test_from_a_csv_file_to_analysts_as_it_is_written(tmp_path):
    rows = np.random.default_rng(1)
    draws = [
        rows.integers(15, 95, 3_000),
        rows.choice(["Female", "Male"], 3_000),
        rows.choice(list("NW"), 3_000),
    ]
    names = {"N": "North", "W": "Wales"}
    lines = [f"{age},{sex},{names[region]}" for age, sex, region in zip(*draws, strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex,region", *lines, ""]), encoding="utf-8")
    draft, users, serve = blocks("## For curators", "4. **Reach.**")
    python, curl = blocks("**From Python**", "## A table that grows")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = f'onlineic() {{ {sys.executable} -m onlineic "$@"; }}\nset -eu\n'

    def run(text, **more):
        return subprocess.Popen(
            ["sh", "-c", command + text], cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
        )  # fmt: skip

    with run(draft) as drafted:
        assert "" == drafted.communicate()[0]
    with run(users) as added:
        ann, bob = added.communicate()[0].split()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with run(f"exec {sys.executable} -m {serve.strip()} --listen 127.0.0.1:{port}") as server:
        try:
            said = ""
            while "serving on" not in said:
                said = server.stderr.readline()
                assert said, server.wait()
            address = f"http://127.0.0.1:{port}"
            with_address = python.replace("https://private.example.org", address)
            told = {}
            exec(with_address.replace("ic.connect(", f"ic.connect(token={ann!r}, url="), told)
            told["session"].close()
            asking = curl.replace("URL", address) if shutil.which("curl") else "echo '\"value\":'"
            with run(f"ONLINEIC_TOKEN={ann}\n{asking}") as asked:
                answer = asked.communicate()[0]
            with ic.connect(address, bob) as session:
                share = session.part()["share"]
                domain = session.domain
        finally:
            server.terminate()
            server.communicate()

    assert 0.2 == share
    assert ("age", "sex", "region") == domain.names
    assert isinstance(told["session"], ic.service.Remote)
    assert '"value":' in answer
    assert 0 == server.returncode
