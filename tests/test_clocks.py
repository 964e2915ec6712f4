"""No outcome of a test rests on how fast a machine is: tests look at no clock, and wait for events.

A deadline is `support.events.FOR_EVER`, which only what never comes reaches.
"""

import ast
from pathlib import Path

TESTS = Path(__file__).parent
CLOCKS = {"monotonic", "perf_counter", "process_time", "sleep", "thread_time", "time"}
WAITS = {"communicate", "get", "join", "wait", "wait_for"}
MAY = {
    "conftest.py": "makes servers slow where that is asked for",
    "mutants/test_mutants.py": "ends the tests of a mutant that never end",
    "property/test_ledger_kills.py": "kills at moments on which no assertion rests",
    "property/test_server_kills.py": "kills at moments on which no assertion rests",
    "statistical/test_timing.py": "time is its subject: a ratio, taken until it is certain",
    "unit/ask/test_long_questions.py": "time is its subject: a ratio",
    "unit/data/test_servers.py": "looks again and again for a file, as long as its process runs",
}


def number(node):
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def hurried(source):
    """Lines that look at a clock, or wait for so many seconds."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "time" and node.attr.removesuffix("_ns") in CLOCKS:
                yield node.lineno
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            given = [one.value for one in node.keywords if one.arg == "timeout"]
            if any(map(number, given + node.args[:1] * (called in WAITS))):
                yield node.lineno


def test_tests_look_at_no_clock():
    found = {
        path.relative_to(TESTS).as_posix(): lines
        for path in TESTS.rglob("*.py")
        if (lines := [*hurried(path.read_text(encoding="utf-8"))])
    }

    assert {} == {place: lines for place, lines in found.items() if place not in MAY}
    assert set(MAY) == set(found)


def test_clocks_sleeps_and_deadlines_are_found():
    for line in ("time.sleep(1)", "a = time.perf_counter_ns", "from time import sleep", "run(timeout=60)"):
        assert [1] == [*hurried(line)]
    assert [1] == [*hurried("held.wait(0.1)")]
    assert [] == [*hurried("held.wait(); ','.join(names); run(timeout=FOR_EVER); datetime.time(3)")]
