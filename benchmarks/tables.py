"""Markdown of a result file of the benchmarks: from the JSON alone, without numpy or the package.

`report` makes results/NAME.md, with every row; `MADE` is what README.md and benchmarks/README.md show of
results/report.json (`make tables`).
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

SECTIONS = ("groups", "growth", "parts", "scale", "peers")
SETTINGS = {"growth": ("centre", "growth", "growth_seeds"), "scale": ("scale",)}  # of the grid, by section
Result = dict[str, Any]
Row = dict[str, Any]
AXES = {"cells": "|X|", "n": "n", "hard_answers": "c", "queries": "Q"}


def written(result: Result) -> str:
    """Return the text of the result file: a row a line, floats to six digits.

    Which answers were hard is kept of the groups that are shown only.
    """
    seen = {id(row) for rows in shown(result).values() for row in rows}
    groups = [
        row if id(row) in seen else {key: value for key, value in row.items() if key != "hard_at"}
        for row in result["groups"]
    ]

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: short(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [short(item) for item in value]
        return float(f"{value:.6g}") if isinstance(value, float) else value

    parts = []
    for key, value in short(result | {"groups": groups}).items():
        text = json.dumps(value)
        if key in SECTIONS:
            text = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        parts.append(f' "{key}": {text}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def replaced(kept: Result, section: str, fresh: Result) -> Result:
    """Return a result of which one section is of a run of its own, and is said to be."""
    about = ("versions", "machine", "wall_seconds", "processor_seconds")
    apart = {**kept.get("apart", {}), section: {key: fresh[key] for key in about}}
    empty: Result = {name: [] for name in SECTIONS}
    grid = {**kept["grid"], **{key: fresh["grid"].get(key) for key in SETTINGS.get(section, ())}}
    return {**empty, **kept, "grid": grid, section: fresh[section], "apart": apart}


def missing(result: Result) -> list[str]:
    """Return the rules without a figure and without a named refusal, of every group."""
    groups = by_group(result)
    engines = dict.fromkeys(row["engine"] for row in result["groups"])
    return [
        f"{name}: {engine}"
        for name, rows in groups.items()
        for engine in engines
        if not any(
            row["engine"] == engine and (row.get("refused") or row.get("microseconds_each")) for row in rows
        )
    ]


def by_group(result: Result) -> dict[str, list[Row]]:
    """Return the rows of each group, in order."""
    groups: dict[str, list[Row]] = {}
    for row in result["groups"]:
        groups.setdefault(named(row["group"]), []).append(row)
    return groups


def shown(result: Result) -> dict[int, list[Row]]:
    """Return the groups that are shown row by row, by cells: first stream and budget, most records."""
    held = result["grid"]
    (epsilon, delta), most = held["budgets"][0], max(held["records"])
    wanted = {"stream": held["streams"][0], "n": most, "epsilon": epsilon, "delta": delta}
    return {
        rows[0]["group"]["cells"]: rows
        for rows in by_group(result).values()
        if wanted.items() <= rows[0]["group"].items()
    }


def named(group: Row) -> str:
    return (
        f"{group['stream']}, {group['cells']:,} cells, n = {group['n']:,}, "
        f"({group['epsilon']:g}, {group['delta']:g}), {group['queries']:,} queries"
    )


def report(result: Result) -> str:
    """Return all tables of a run, of rules or of a server."""
    if "now" in result:
        names = {"Floods": floods, "Load": load, "Memory": memory}
        return "\n".join(f"# {name}\n\n{make(result)}" for name, make in names.items())
    parts = [f"Grid `{result['grid']['name']}`. {machine(result)}\n", "# Groups\n"]
    reasons = Reasons()
    for name, rows in by_group(result).items():
        parts += [f"## {name}\n", group_table(rows, reasons)]
    parts += [reasons.listed(), "# Growth\n", growth(result), "# Parts\n", components(result)]
    if result.get("scale"):
        parts += ["# Scale\n", scale(result)]
    if result["peers"]:
        parts += ["# Peers\n", peers(result)]
    return "\n".join(parts)


def machine(result: Result) -> str:
    """Return a sentence on what the times are worth."""
    sentences = [run_of("Processor times of one run", result)]
    for section, held in result.get("apart", {}).items():
        sentences.append(run_of(f"The section on {section} is of a run of its own", held))
    return wrapped(" ".join(sentences))


def run_of(what: str, held: Result) -> str:
    about, versions = held["machine"], held["versions"]
    return (
        f"{what}, of {held['wall_seconds'] / 60:.0f} minutes "
        f"({held['processor_seconds'] / 60:.1f} of them on the processor) on {about['cores']} cores at a "
        f"load of {about['load']:g}, with numpy {versions['numpy']} and Python {versions['python']}."
    )


def grid(result: Result) -> str:
    """Return what was run."""
    held = result["grid"]
    budgets = ", ".join(f"({epsilon:g}, {delta:g})" for epsilon, delta in held["budgets"])
    lines = [
        ["streams", ", ".join(held["streams"])],
        ["cells", ", ".join(f"{cells:,}" for cells in held["cells"])],
        ["n", ", ".join(f"{n:,}" for n in held["records"])],
        ["(epsilon, delta)", budgets],
        ["queries", f"{held['queries']:,}"],
        ["seeds", str(held["seeds"])],
        *(["and beside it", named(point)] for point in held["more"]),
        ["growth from", named(held["centre"])],
        *(
            [f"growth along {AXES[axis]}", ", ".join(f"{value:,}" for value in values)]
            for axis, values in held["growth"]
        ),
    ]
    return table(("axis", "values"), lines)


class Reasons:
    """Refusals by letter, so that a cell of a table can name one."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def letter(self, reason: str) -> str:
        reason = general(reason)
        count = len(self.letters)
        return self.letters.setdefault(
            reason, (chr(96 + count // 26) if count >= 26 else "") + chr(97 + count % 26)
        )

    def listed(self) -> str:
        return "".join(f"* ({letter}) {reason}\n" for reason, letter in self.letters.items())


def general(reason: str) -> str:
    """Return a refusal without the numbers of its group, so that equal reasons share a letter."""
    for start, shown in GENERAL.items():
        if reason.startswith(start):
            return shown
    return reason


GENERAL = {
    "Median must enumerate": "the median must list its net of small databases: this one has more than 2^24.",
    "hard_answers must be given": "no T(alpha) is proven for this rule, so nothing can be certified.",
    "update must have a proven T(alpha)": "no T(alpha) is proven for this rule: the theorem does not apply.",
    "n must be larger": "at this n no accuracy below 1 can be certified.",
    "domain must have at most": "this rule holds every cell: a domain of more than 2^26 is refused.",
    "delta must be": "Gaussian noise needs delta > 0.",
}


def group_table(rows: Iterable[Row], reasons: Reasons) -> str:
    """Return one group: error, counts, budget, time and memory of every engine."""
    head = (
        "engine",
        "rms",
        "max",
        "promise",
        "hard",
        "untested",
        "spent",
        "µs a query",
        "opening µs",
        "easy µs",
        "hard µs",
        "refit µs",
        "batch µs",
        "MB",
    )
    return table(head, [group_cells(row, reasons) for row in rows])


def answering(row: Row) -> dict[str, float]:
    """Return the parts of the time of a query; those of answers with the refits that they caused."""
    parts: dict[str, float] = row["microseconds"]
    # the file holds what hard answers took, less all refits: those after purchases are of easy ones
    return {**parts, "hard": max(0.0, parts["hard"] + parts["refit"])}


def group_cells(row: Row, reasons: Reasons) -> list[str]:
    if "refused" in row:
        return [row["engine"], f"refused ({reasons.letter(row['refused'])})", *[""] * 12]
    each = rounded(row["microseconds_each"])
    if "rms" not in row:
        return [row["engine"], *[""] * 6, each, *[""] * 6]
    bound, batch, megabytes = row["bound"], row["batch_microseconds"], row["megabytes"]
    parts = answering(row)
    failed = f", {row['update_failures']:.1f} failed updates" if row["update_failures"] else ""
    return [
        row["engine"],
        error(row["rms"]),
        small(row["max"]["mean"]),
        "" if bound is None else small(bound) if bound < 1.0 else "none",
        f"{row['hard']:,.0f}{failed}",
        f"{row['untested']:,.0f}",
        f"{row['spent']:.0%}",
        each,
        *(
            "" if row["mode"] == "static" and part in ("easy", "refit") else rounded(taken)
            for part, taken in parts.items()
        ),
        "" if batch is None else rounded(batch),
        "" if megabytes is None else rounded(megabytes),
    ]


def growth(result: Result) -> str:
    """Return rms and time of the curves, an axis a table."""
    parts, reasons = [], Reasons()
    for axis, label in AXES.items():
        rows = [row for row in result["growth"] if row["axis"] == axis]
        values = list(dict.fromkeys(row["value"] for row in rows))
        engines = list(dict.fromkeys(row["engine"] for row in rows))
        found = {(row["engine"], row["value"]): row for row in rows}
        lines = []
        for engine in engines:
            cells = [curve_cell(found[engine, value], reasons) for value in values]
            lines.append([engine, *cells])
        parts.append(table([f"{label}: rms, µs a query", *(f"{value:,}" for value in values)], lines))
    return "\n".join([*parts, reasons.listed()] if reasons.letters else parts)


def curve_cell(row: Row, reasons: Reasons) -> str:
    if "refused" in row:
        return f"refused ({reasons.letter(row['refused'])})"
    return f"{small(row['rms']['mean'])}, {rounded(row['microseconds_each'])}"


def components(result: Result, only: str | None = None) -> str:
    """Return the times of all parts, or of those of one group, with ratios to the baseline of their group."""
    rows = [row for row in result["parts"] if only is None or row["part"] == only]
    seconds = {(row["part"], row["name"]): row["seconds"] for row in rows}
    lines = [
        [
            row["part"],
            row["name"],
            duration(row["seconds"]),
            "baseline"
            if row["name"] == row["baseline"]
            else rounded(row["seconds"] / seconds[row["part"], row["baseline"]]),
        ]
        for row in rows
    ]
    return table(("part", "what", "time", "times the baseline"), lines)


def scale(result: Result) -> str:
    """Return time a query or a row beside the baseline, with error, memory and the longest call."""
    rows = result["scale"]
    seconds = {(row["part"], row["name"]): row["seconds"] for row in rows if "seconds" in row}
    head = ("part", "what", "time each", "times the baseline", "rms", "hard", "memory", "longest", "in all")
    lines = []
    for row in rows:
        if "refused" in row:
            lines.append([row["part"], row["name"], row["refused"], *[""] * 6])
            continue
        first = seconds[row["part"], row["baseline"]]
        ratio = row["seconds"] / first
        memory, whole = row.get("bytes_each"), row.get("megabytes")
        lines.append(
            [
                row["part"],
                row["name"],
                duration(row["seconds"]),
                "baseline"
                if row["name"] == row["baseline"]
                else rounded(ratio)
                if ratio >= 0.1
                else f"1 / {rounded(1 / ratio)}",
                "" if row.get("rms") is None else small(row["rms"]),
                "" if row.get("hard") is None else str(row["hard"]),
                f"{memory:,.0f} bytes each"
                if memory is not None
                else ""
                if whole is None
                else f"{whole:,.0f} MB",
                *("" if row.get(key) is None else duration(row[key]) for key in ("longest", "total")),
            ]
        )
    return table(head, lines)


def peers(result: Result) -> str:
    """Return the installed peers, beside the default session and the noisy histogram of the same group."""
    lines = []
    ours = {(named(row["group"]), row["engine"]): row for row in result["groups"]}
    for name in dict.fromkeys(named(row["group"]) for row in result["peers"]):
        own = [
            ours[name, engine]
            for engine in ("default session", "one noisy histogram")
            if (name, engine) in ours
        ]
        for row in [*own, *(row for row in result["peers"] if named(row["group"]) == name)]:
            who = f"{row.get('peer') or row.get('engine')} {row.get('version', '')}".rstrip()
            cells = (
                [row["refused"], ""]
                if "refused" in row
                else [error(row["rms"]), rounded(row["microseconds_each"])]
            )
            lines.append([name, who, *cells])
    return table(("group", "engine", "rms", "µs a query"), lines)


# What the READMEs show of results/report.json


def errors(result: Result) -> str:
    """Return the rms of every engine in every group; a table for each stream and budget, the least bold."""
    reasons, parts = Reasons(), []
    rows = result["groups"]
    settings = dict.fromkeys(
        (row["group"]["stream"], row["group"]["epsilon"], row["group"]["delta"]) for row in rows
    )
    for setting in settings:
        some = [
            row
            for row in rows
            if tuple(row["group"][key] for key in ("stream", "epsilon", "delta")) == setting
        ]
        places = list(dict.fromkeys((row["group"]["cells"], row["group"]["n"]) for row in some))
        found = {(row["engine"], (row["group"]["cells"], row["group"]["n"])): row for row in some}
        best = {
            place: min(
                found[one, place]["rms"]["mean"]
                for one, at in found
                if at == place and "rms" in found[one, at]
            )
            for place in places
        }
        lines = []
        for engine in dict.fromkeys(row["engine"] for row in some if row["mode"] != "naive"):
            cells = []
            for place in places:
                row = found[engine, place]
                if "refused" in row:
                    cells.append(f"({reasons.letter(row['refused'])})")
                else:
                    bold = "**" * (row["rms"]["mean"] == best[place])
                    cells.append(f"{bold}{error(row['rms'])}{bold}")
            lines.append([engine, *cells])
        stream, epsilon, delta = setting
        parts += [
            f"Stream {stream}, epsilon {epsilon:g}, delta {delta:g}:\n",
            table(["engine", *(f"{cells:,} cells, n = {n:,}" for cells, n in places)], lines),
        ]
    return "\n".join([*parts, "Refused:\n", reasons.listed()])


def details(result: Result) -> str:
    """Return the groups of one stream, n and budget, row by row."""
    reasons, parts = Reasons(), []
    for cells, rows in shown(result).items():
        parts += [f"{cells:,} cells:\n", group_table(rows, reasons)]
    return "\n".join([*parts, reasons.listed()])


def speed(result: Result) -> str:
    """Return the sentence of README.md: the default session beside the histogram and the naive loop."""
    parts = []
    for size, rows in shown(result).items():
        if size < 1_000:
            continue
        found = {row["engine"]: row for row in rows}
        default = found["default session"]
        histogram = found["one noisy histogram"]["microseconds_each"]
        loop = found["naive dense loop"]["microseconds_each"]
        parts.append(
            f"at {size:,} cells {rounded(default['microseconds_each'])} microseconds a query, "
            f"{rounded(default['microseconds']['refit'])} of them refits (one noisy histogram "
            f"{rounded(histogram)}, the naive loop, without learning, {rounded(loop)})"
        )
    about, asked = result["machine"], result["grid"]["queries"]
    return wrapped(
        f"Speed of the default session, {asked} queries one at a time, all costs included: "
        f"{'; '.join(parts)} ([benchmarks](benchmarks/README.md), on {about['cores']} cores at a load "
        f"of {about['load']:g})."
    )


def wrapped(text: str, width: int = 115) -> str:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line]) + "\n"


MADE: dict[str, Callable[[Result], str]] = {
    "speed": speed,
    "machine": machine,
    "grid": grid,
    "errors": errors,
    "details": details,
    "growth": growth,
    "parts": components,
    "scale": scale,
}


# A server: results/floods.json

ASKED = ("repeat", "explain", "record", "login")


def floods(result: Result) -> str:
    """Return how long another user waits beside each flood, milliseconds."""
    before = {row["flood"]: row for row in result.get("before", {}).get("floods", ())}
    lines = []
    for row in result["now"]["floods"]:
        old = before.get(row["flood"])
        plain = ("-", "-") if old is None else map(rounded, old["plain"][:2])
        rest = (rounded(row[kind][1]) for kind in ASKED)
        lines.append([row["flood"], *plain, *map(rounded, row["plain"][:2]), *rest, f"{machine_load(row)}"])
    head = [
        "flood",
        "plain before, p50",
        "p99",
        "plain, p50",
        "p99",
        *(f"{kind}, p99" for kind in ASKED),
        "load",
    ]
    return table(head, lines)


def machine_load(row: Row) -> str:
    return f"{row['machine']['load']:g}"


def load(result: Result) -> str:
    """Return questions a second, waits, and processor time of the server a question, milliseconds."""
    before = {(row["kind"], row["clients"]): row for row in result.get("before", {}).get("load", ())}
    rows = result["now"]["load"]
    counts = sorted({row["clients"] for row in rows})
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        found = {row["clients"]: row for row in rows if row["kind"] == kind}
        cells = [
            f"{found[many]['rate']:,.0f}, {rounded(found[many]['p50'])}/{rounded(found[many]['p99'])}"
            if many in found
            else "-"
            for many in counts
        ]
        old = before.get((kind, counts[0]))
        was = "-" if old is None else rounded(old["processor"])
        lines.append([kind, *cells, rounded(found[counts[0]]["processor"]), was])
    head = ["", *(f"{many} client{'s' * (many > 1)}" for many in counts), "processor", "before"]
    return table(head, lines)


def memory(result: Result) -> str:
    """Return what a server holds in memory over many requests."""
    lines = [[f"{row['requests']:,}", f"{row['memory']:,}"] for row in result["now"].get("memory", ())]
    return table(["requests", "MB"], lines)


SERVED: dict[str, Callable[[Result], str]] = {"floods": floods, "load": load, "memory": memory}


# Cells


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    head = [cell.replace("|", "\\|") for cell in head]
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows]) + "\n"


def error(found: Row) -> str:
    """Return mean and half-width of an interval, in 1e-5 of the records; one seed has no interval."""
    half = "" if found["half"] is None else f" ± {rounded(1e5 * found['half'])}"
    return f"{rounded(1e5 * found['mean'])}{half}"


def small(value: float) -> str:
    """Return a fraction of records in 1e-5."""
    return rounded(1e5 * value)


def rounded(value: float) -> str:
    """Return two digits of a value below 10, else the whole number; of none "0"."""
    return (
        f"{value:,.0f}" if value >= 10 or value == 0.0 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
    )


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{rounded(seconds / size)} {unit}"
    return f"{rounded(seconds * 1e6)} µs" if seconds >= 1e-6 else f"{seconds * 1e9:,.0f} ns"
