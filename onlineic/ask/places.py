"""Remedies where nobody writes Python: lines of JSON, domain files, options of commands.

The package's messages tell what to write in Python. Commands and the server say the same by
`without_python`, and by nothing else. A text that no row knows stays as it is.
"""

import ast
import json
import re
from collections.abc import Callable, Iterable

Rules = Iterable[tuple[str, str | Callable[[re.Match[str]], str]]]


def _literal(name: str) -> Callable[[re.Match[str]], str]:
    """Return what writes a literal of Python as a member of a domain file."""

    def written(found: re.Match[str]) -> str:
        try:
            return f'"{name}": {json.dumps(ast.literal_eval(found[1]), ensure_ascii=False)}'
        except (ValueError, SyntaxError):  # cut short
            return f'"{name}": ..'

    return written


def _quoted(written: str) -> Callable[[re.Match[str]], str]:
    """Return what fills in a form of JSON, texts in double quotes."""
    return lambda found: found.expand(written).replace("'", '"')


JSON: Rules = (
    (r"\bspan\(([^(),]+), inf\)", _quoted(r'{"from": \1}')),
    (r"\bspan\(([^(),]+), ([^(),]+)\)", _quoted(r'{"from": \1, "below": \2}')),
    (r"\bbetween\(([^(),]+), ([^(),]+)\)", _quoted(r"[\1, \2]")),
    (r"\b(at_least|below)\(([^(),.]+)\)", _quoted(r'{"\1": \2}')),
    (r"\bspan\(\.\.\) or between\(\.\.\)|\bbetween\(\.\.\) or span\(\.\.\)", "[low, high]"),
    (r"\bbetween\(\.\.\)", "[low, high]"),
    (r"\bone_of\([^()]*\)", '{"one_of": [..]}'),
    (r"\bat_least or below\b|\bat_least\(\.\.\) or below\(\.\.\)", '{"from": ..} or {"below": ..}'),
    (r"\bbelow\(\.\.\)", '{"below": ..}'),
    (r"\bbetween or span\b", '[..] or {"from": .., "below": ..}'),
    (r"^(?:between|span|at_least|below) must", "a range must"),
    (r"\basked for None\b", "asked for null"),
    (r"\ba label, None,", "a label, null,"),
    (r"\bmissing values None\b", "missing values null"),
    (r"\bmean (True|False)\?", lambda found: f"mean {found[1].lower()}?"),
    (r"\boptional\(\.\.\) when the domain is built", '"missing": true in the domain file'),
    (r"^marginal must", "a cross table must"),
    (r"\bcase\([^()]*(?:\([^()]*\)[^()]*)*\)", '{"case": [{"when": {..}, "then": ..}]}'),
    (r"\bcut\([^()]*\)", '{"cut": .., "at": [..]}'),
    (r"\bdate_trunc\('(\w+)', '(\w+)'\)", r'{"date_trunc": "\2", "of": "\1"}'),
    (r"\bask session\.share\(\.\.\)", "ask it as a line of its own"),
    (r", and name groupings by called\('\.\.'\)", ', and give groupings a "name"'),
    (r"\bmarginal\([^()]*\)", '{"marginal": [attributes]}'),
)
DOMAIN: Rules = (
    (
        r"\bbuild the domain with (.+?)=range\(\.\.\) or binned\(\.\.\)",
        r'let the domain file have {"range": [..]} or {"edges": [..]} for \1',
    ),
    (r"\boptional\((?:\.\.\.?|kind), (?:missing=)?(\[.*?\])\)", _literal("missing")),
    (r"\boptional\(kind, others='missing'\)", '"others": "missing"'),
    (r"\boptional\([^()]*\)", '"missing": true'),
    (r"\bsynonyms=\{\.\.\.\}", '"synonyms": {..}'),
    (r"\b(?:categorical\(\.\.\., )?synonyms=(\{.*?\})\)", _literal("synonyms")),
    (r"\bcategorical\(\.\.\., other=True\)", '"other": true'),
    (r"\b(clip|other|round|integer)=True\b", r'"\1": true'),
    (r"\bbinned\((?:\.\.|\.\.\.|\[\.\.\.?\])\)", '{"edges": [..]}'),
    (r"\bbinned\((\[[^()]*\])\)", r'{"edges": \1}'),
    (r"\bintegers\(([^(),]+), ([^(),]+)\)", r'{"range": [\1, \2]}'),
    (r"\bnumber\((?:low, high|0, 1000)\)", '{"edges": [low, .., high], "ends": true, "clip": true}'),
    (r"\bdates\((\.\.|first, last), by='(\w+)'\)", r'{"dates": [\1], "by": "\2"}'),
    (r"\bdates\(first, last\)", '{"dates": [first, last]}'),
    (r"\bzone= is\b", '"zone" is'),
    (r"\bzone='([^']*)'", r'"zone": "\1"'),
    (r"\bformats=(\[.*?\])", _literal("formats")),
    (r"\bDomain\.of\(age=range\(17, 91\)\)", '{"age": {"range": [17, 90]}}'),
)
SQL: Rules = (
    (r", or use session\.median\b", ""),
    (r"(?:\bwrite :name and )?\bpass params=\{[^{}]*\}", "write the value in its place"),
    (r" by session\.answer\(text\)", ""),
    (r"\bask it by session\.sql\(text\)", "ask it as a line of its own"),
    (r"\b(mean|sum|variance)\(([^(),]+)(?:, where\(.*?\)\)|\)) must be over", r"the \1 of \2 must be over"),
)
OPTIONS: Rules = (
    (r"\bmissing=\['NA', '\?'\]", "--missing NA --missing '?'"),
    (r"\bneighbours=[\"']([\w-]+)[\"']", r"--neighbours \1"),
    (r"\bits encoding=,", "its --encoding,"),
    (r"\b(write|give|with) (delimiter|decimal|table|ledger)=", r"\1 --\2 "),
    (r"\bdecimal=','", "--decimal ,"),
    (r"\bdelimiter='([^'])'", r"--delimiter '\1'"),
    (r"^count must be None with unit", "--count must be left out with --person"),
    (r"\b(max_queries|hard_answers|rows_per_person|n_at_most)\b(?!=)",
     lambda found: "--" + found[1].replace("_", "-")),
    (r"; in a Budget, allow_large_epsilon=True lifts the upper limit", ""),
    (r", or exhausted='untested'", ""),
    (r"^unit must name a column", "--person must name a column"),
    (r"load the table with unit=Unit\(.*?\), or raise epsilon", "raise epsilon"),
    (r"\bUnit\(person=[^()]*\)", "--person COLUMN"),
    (r"\b(go on|opened) with OnlineIC\.resume\(FILE, data\)", r"\1 by the same command with its ledger"),
    (r"\bopen it with OnlineIC\(data, budget, ledger=\.\., table=\.\.\)",
     "begin it by onlineic ask or serve with --epsilon and --table"),
    (r"\bload the table over that domain, which is onlineic\.ledger\.read\(FILE\)\.domain\(\)",
     "give the domain file of that domain"),
    (r"\bopen it by ic\.TableBudget", "give it to onlineic serve --total"),
    (r"; curator_report\(values=None\) shows all", ""),
    (r"\bPrivateData\.check\(table, domain\)\.curator_report\(\) shows", "--show-data-errors shows"),
    (r"\binstalled for from_frame\b", "installed for Parquet files"),
    (r"\bone without records by add\((.*?), None\)", r"one without records by onlineic periods add FILE \1"),
    (r"\bclosed by close\(label\)", "closed by onlineic periods close"),
    (r": add\(\.\., late=True\)", ": onlineic periods add .. --late"),
    (r"\bload over loading\(.*?\), with late=True for", "add it with --late for"),
    (r"\battach\(.*?, data\), or open Periods\(\.\., load=function of a label\)",
     "say by --data NAME{}.csv where it is"),
    (r"\b(?:Periods\(\.\., persons=)?Persons\(periods=(\d+)\)+", r"--most-periods \1"),
    (r"\bPersons\(within=(\d+)\)", r"--within \1"),
    (r"\blevels=\('(\w+)',\)", r"--levels \1"),
)  # fmt: skip


def in_json(message: str) -> str:
    """Return a refusal of a question with its remedy in JSON."""
    return _written(message, JSON)


def without_python(message: str) -> str:
    """Return a message with its remedies as a line, a domain file or a command has them."""
    return _written(message, (*JSON, *DOMAIN, *SQL, *OPTIONS))


def _written(message: str, rules: Rules) -> str:
    for pattern, written in rules:
        message = re.sub(pattern, written, message)
    return message
