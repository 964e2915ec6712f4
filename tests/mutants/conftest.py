"""Options of the mutants, and the table of what became of them."""

from collections import defaultdict


def pytest_addoption(parser):
    group = parser.getgroup("mutants")
    group.addoption("--workers", type=int, default=2, help="mutants that are tested at a time")
    group.addoption(
        "--full", action="store_true", help="run the whole suite for a mutant that its tests leave"
    )


def pytest_terminal_summary(terminalreporter):
    rows = defaultdict(lambda: [0, 0, 0])  # file -> killed, survived, survived with a reason
    lines = []
    for report in (report for found in terminalreporter.stats.values() for report in found):
        properties = dict(getattr(report, "user_properties", ()))
        if getattr(report, "when", "") != "call" or "mutant" not in properties:
            continue
        file, name, killer, reason = properties["mutant"]
        rows[file][0 if killer else 2 if reason else 1] += 1
        lines.append(f"{name:24} {killer or 'SURVIVED' + (f': {reason}' if reason else '')}")
    if not rows:
        return
    write = terminalreporter.write_line
    terminalreporter.section("mutants")
    for line in lines:
        write(line)
    write(f"\n{'file':44} {'killed':>8} {'survived':>8} {'explained':>9}")
    for file, row in rows.items():
        write(f"{file:44} {row[0]:8} {row[1]:8} {row[2]:9}")
    write(f"{'all':44} " + "{:8} {:8} {:9}".format(*map(sum, zip(*rows.values(), strict=True))))
