"""What docs/operating.md lets people type: each block runs, or its own tools check it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import onlineic as ic
from support.served import served  # noqa: F401  # skips without the extra

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"])
PLACES = {"/var/lib/onlineic": "lib", "/mnt/other": "other", "/mnt/copies": "copies", "/opt/onlineic": "opt"}


def block(kind):
    (found,) = re.findall(rf"```{re.escape(kind)}\n(.*?)```", PAGE, re.S)
    return found


def placed(text, folder):
    for place, name in PLACES.items():
        text = text.replace(place, str(folder / name))
    return text


@pytest.fixture
def folder(tmp_path):
    """The folders of the page, a table, and the command on the path."""
    for name in ("lib", "other", "copies", "bin"):
        (tmp_path / name).mkdir()
    lines = [f"{20 + at % 20},{'FM'[at % 2]}" for at in range(30_000)]
    (tmp_path / "lib" / "people.csv").write_text("\n".join(["age,sex", *lines, ""]))
    (tmp_path / "lib" / "domain.json").write_text(DOMAIN.to_json())
    command = tmp_path / "bin" / "onlineic"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m onlineic "$@"\n')
    command.chmod(0o755)
    return tmp_path


def run(folder, *texts, port="8765"):
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    environment = {
        **os.environ,
        "PATH": path,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    script = "set -eu\n" + "\n".join(texts)
    script = (
        placed(script, folder)
        .replace("8765", port)
        .replace("serve census.db", f"serve census.db {LISTEN}{port}")
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=environment)
    assert 0 == done.returncode, done.stderr
    return done


LISTEN = "--listen 127.0.0.1:"
SERVE = """
onlineic serve census.db --data people.csv --domain domain.json --table "census 2026" --users users.db \\
    --total /mnt/other/total.db & server=$!
until curl --silent --fail http://127.0.0.1:8765/ready; do sleep 1; done
"""
ASK = """
curl --silent --fail --header "Authorization: Bearer $(cat ann.token)" \\
    --data '{"questions": [{"sex": "F"}]}' http://127.0.0.1:8765/v1/answers
"""


@pytest.mark.operations
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_table_is_begun_copied_lost_and_restored_as_the_page_says(folder):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as line:
        port = str(line.getsockname()[1])
    run(folder, block("sh first"), port=port)
    began = run(
        folder,
        "cd /var/lib/onlineic",
        SERVE,
        ASK,
        block("sh night"),
        block("sh month"),
        "kill -9 $server",
        port=port,
    )
    night = next((folder / "copies").iterdir())
    assert 0.0 < float((night / "spent").read_text()) < 1.0
    assert "holds     chain, charges, prices and releases" in began.stdout
    assert '"user": "ann"' in next((folder / "lib").glob("log-*.jsonl")).read_text()
    assert "census 2026" in next((folder / "lib").glob("report-*.txt")).read_text()
    value = re.search(r'"value":([\d.]+)', began.stdout)[1]

    for name in ("census.db", "census.db.lock", "users.db"):
        (folder / "lib" / name).unlink()
    restored = run(folder, block("sh restore"), port=port)
    assert re.search(r"spent     9\d\.", restored.stdout)
    again = run(folder, "cd /var/lib/onlineic", SERVE, ASK, "kill $server; wait $server", port=port)
    assert '"repeat"' in again.stdout
    assert value == re.search(r'"value":([\d.]+)', again.stdout)[1]


@pytest.mark.operations
def test_it_is_installed_as_the_page_says(folder):
    pytest.importorskip(
        "hatchling", reason="the wheel is built without the network by hatchling of this environment"
    )
    text = block("sh install").replace(
        'pip install "onlineic[serve]"', f"pip install --no-index --no-deps --no-build-isolation {ROOT}"
    )
    text = text.replace("-m venv", "-m venv --system-site-packages").replace("python3", sys.executable)
    assert "onlineic " in run(folder, text).stdout


def test_the_units_are_what_systemd_takes(folder):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    names = ("onlineic.service", "onlineic-copy.service", "onlineic-copy.timer")
    for name in names:
        text = placed(block(f"ini {name}"), folder).replace(
            str(folder / "opt" / "bin" / "onlineic"), "/bin/true"
        )
        (folder / name).write_text(re.sub("User=.*", "User=root", text))
    done = subprocess.run(
        ["systemd-analyze", "verify", *(str(folder / name) for name in names)], capture_output=True, text=True
    )
    said = [line for line in done.stderr.splitlines() if str(folder) in line or "onlineic" in line]
    assert [] == said


@pytest.mark.operations
def test_the_container_file_builds_where_a_daemon_runs():
    program = next((one for one in ("podman", "docker") if shutil.which(one)), None)
    if program is None or subprocess.run([program, "info"], capture_output=True).returncode:
        pytest.skip("needs podman, or docker with its daemon")
    command = [program, "build", "--file", ROOT / "Containerfile", ROOT]
    done = subprocess.run(command, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
