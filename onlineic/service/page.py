"""The page: written by the server, usable without its one script, every text escaped and no style inline.

Blocks of `onlineic.display.html` are shown without their own styles, which a strict content policy forbids:
the looks stand in `page.css`.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final
from urllib.parse import quote

import attrs
import numpy as np

from onlineic.ask.json import described, written
from onlineic.display.html import bars, escaped, facts, share, span_bar, table
from onlineic.display.plain import csv_field
from onlineic.display.text import (
    around,
    probability,
    records,
    records_between,
    records_bound,
    shortened,
    upward,
    usually,
    usually_and_provably,
    within,
)
from onlineic.domain.attributes import Categorical
from onlineic.domain.domain import Domain
from onlineic.domain.unit import whose
from onlineic.errors import InvalidQueryError, shown
from onlineic.queries.answers import STATUS_SAID, Answer, answer_head, answer_rows
from onlineic.queries.expressions import Expression, where
from onlineic.queries.marginals import marginal
from onlineic.questions.derived import Answering
from onlineic.questions.distributions import Quantile
from onlineic.questions.groups import Groups
from onlineic.questions.means import Derived
from onlineic.questions.statements import AnswerTable
from onlineic.service.face import ALL, Grown, Shown, Span, span_of
from onlineic.session.explain import Explanation
from onlineic.session.purse import Purse

EXPLAINED = 1024  # questions that one which is explained may become
ROWS = 3  # conditions of the form
MOST_OPTIONS = 200  # labels that are offered to choose from
FEW = 12  # bars whose numbers are shown below them
MAPPED = 24  # rows and columns of a heat map
KINDS = {
    "count": "how many records",
    "table": "a table by",
    "mean": "the mean of",
    "sum": "the sum of",
    "median": "the median of",
}
SERIES = ("series", "records over time")
OPERATORS = {
    "is": "is",
    "not": "is not",
    "in": "is one of (a; b)",
    "from": "at least",
    "below": "below",
    "between": "from; to",
}
BUTTONS = (
    '<div class="row"><button type="submit" name="act" value="explain" class="quiet">Explain first</button>'
    '<button type="submit" name="act" value="ask">Ask</button></div>'
)
SYNTHETIC = (
    ' · <a href="/v1/synthetic.csv?rows=1000">1,000 synthetic rows</a> to develop on first: drawn from the '
    "hypothesis, without any guarantee.</p>"
)
USERS_HEAD = ("name", "state", "part", "paid", "left", "a minute", "since")
LOG_HEAD = ("when", "who", "digest", "records", "answers")
STYLE = re.compile(r' style="[^"]*"')  # a quote inside of a text is escaped


def bare(block: str) -> str:
    """Return a block of the package's HTML without its inline styles."""
    return STYLE.sub("", block)


def whole(title: str, *parts: str) -> str:
    """Return a document."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escaped(title)}</title>\n<link rel="stylesheet" href="/page.css">\n'
        '<script src="/page.js" defer></script>\n</head>\n<body>\n'
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def card(title: str, *parts: str, kind: str = "", private: bool = True) -> str:
    """Return a section with a title."""
    stamp = "" if private else ' <strong class="alarm">NOT PRIVATE: simulated noise</strong>'
    return f'<section class="card {kind}"><h2>{escaped(title)}{stamp}</h2>{"".join(parts)}</section>'


def note(text: str) -> str:
    """Return a remark."""
    return f'<p class="note">{escaped(text)}</p>'


def problem_block(code: str, message: str) -> str:
    """Return a refusal: nothing was spent on what is refused."""
    title = {"too-few-records": "Too few records"}.get(code, "This cannot be answered")
    return card(title, f'<p role="alert">{escaped(message)}</p>', kind="problem")


def login_page(problem: str = "") -> str:
    """Return the page on which a token is given."""
    said = f'<p role="alert">{escaped(problem)}</p>' if problem else ""
    return whole(
        "Log in · onlineic",
        "<main>",
        card(
            "Private answers",
            said,
            '<form method="post" action="/login"><div class="row"><label for="token">Your token</label>'
            '<input id="token" name="token" type="password" autocomplete="current-password" required '
            'autofocus><button type="submit">Log in</button></div></form>',
            note("The curator makes tokens by onlineic user add NAME. A token says who pays for a question."),
            kind="login",
        ),
        "</main>",
    )


def page_of(
    domain: Domain,
    view: Shown,
    told: Mapping[str, Any],
    latest: Sequence[tuple[int, Answer]],
    form: Mapping[str, str],
    result: str,
    curator: bool = False,
) -> str:
    """Return the page of one who has logged in."""
    you, statistics = told["you"], view.statistics
    grown = view if isinstance(view, Grown) else None
    link = '<a href="/curator">Users</a> · ' if curator else ""
    head = (
        f"<header><h1>{escaped(f'Private answers about {view.n:,} {whose(statistics.unit)}')}</h1>"
        f'<form method="post" action="/logout" class="leave">{link}<span>{escaped(you["name"])}</span> '
        '<button type="submit">Log out</button></form></header>'
    )
    left = max(0.0, 1.0 - statistics.spent)
    own = you["left"] / you["share"] if you["share"] else 0.0
    gauge = card(
        "What is left",
        f'<p id="left-all">All: {left:.1%} of the budget, at least {statistics.hard_left:,} '
        "measured answers.</p>",
        f'<div id="bar-all">{bare(share(left, "left of the budget, of all"))}</div>',
        f'<p id="left-own">Yours: {you["left"]:.1%} of what measured answers share; you used '
        f"{you['paid']:.1%}.</p>",
        f'<div id="bar-own">{bare(share(own, "left of your part"))}</div>',
        note(
            "An answer costs nothing if it was released before, or if what was learned so far turns out good "
            "enough. Others are measured."
        ),
        kind="gauge",
        private=statistics.private,
    )
    rows = zip([at for at, _ in latest], answer_rows([answer for _, answer in latest]), strict=True)
    listed = [[at, *row] for at, row in rows][::-1]
    named = ["at", *answer_head(whose(statistics.unit))]
    released = bare(table(named, listed, left=2)) if listed else note("Nothing yet.")
    record = card(
        "What was released",
        '<p id="news" role="status" hidden>More was released since: <a href="/">show it</a>.</p>'
        f'<div class="wide released" id="released" data-length="{told["length"]}">{released}</div>',
        '<p><a href="/v1/answers.csv">All as CSV</a>' + ("</p>" if grown else SYNTHETIC),
        note(
            ("Since the server started. " if grown else "")
            + "Everybody who asks sees the same record. Asked again these are repeated, and free, as long as "
            "nothing was learned since."
        ),
    )
    attributes = card(
        "What is known of a record",
        bare(facts([(shortened(name), _described(kind)) for name, kind in domain])),
        note(f"Bounds hold with probability {probability(1.0 - statistics.beta)} each."),
    )
    return whole(
        "Private answers · onlineic", head, '<main><div class="two"><div>',
        f'<div id="result" aria-live="polite">{result}</div>', ask_form(domain, form, grown), sql_form(form),
        "</div><div>", gauge, "" if grown is None else periods_card(grown), record,
        attributes, "</div></div></main>",
    )  # fmt: skip


def curator_page(
    users: Sequence[Sequence[Any]], log: Sequence[Sequence[Any]], summary: str, private: bool
) -> str:
    """Return the page of a curator: who asks, who has paid, and the session.

    Parameters
    ----------
    users, log : sequences of rows
        As `USERS_HEAD` and `LOG_HEAD` name their cells.
    summary : str
        HTML of the package.
    """
    return whole(
        "Users · onlineic",
        '<header><h1>Users</h1><a href="/">Back to the questions</a></header><main>',
        card(
            "Who may ask",
            f'<div class="wide">{bare(table(USERS_HEAD, users, left=2))}</div>',
            note(
                "Parts are of what measured answers share. Users are added, renewed, revoked and limited by "
                "onlineic user, and never over HTTP."
            ),
        ),
        card(
            "Who asked last",
            f'<div class="wide">{bare(table(LOG_HEAD, log, left=3))}</div>' if log else note("Nobody yet."),
            note("Times are in UTC. The log holds digests of questions and no values."),
        ),
        card("The session", f'<div class="wide summary">{bare(summary)}</div>', private=private),
        "</main>",
    )


def _described(kind: Any) -> str:
    labels = [str(kind.label(code)) for code in range(min(kind.size, 6))]
    if kind.size <= 6:
        return ", ".join(map(shortened, labels))
    return f"{shortened(kind.label(0))} to {shortened(kind.label(kind.size - 1))}: {kind.size:,} values"


def _options(names: Sequence[tuple[str, str]], chosen: str) -> str:
    return "".join(
        f'<option value="{escaped(value)}"{" selected" if value == chosen else ""}>'
        f"{escaped(shortened(said))}</option>"
        for value, said in names
    )


def periods_card(grown: Grown) -> str:
    """Return what periods there are, and what of them is protected."""
    rows = [
        [label, level, f"{n:,}", "late rows of earlier ones among them" if late else ""]
        for label, n, level, _, late in grown.rows()
    ]
    many = f"{len(rows):,} periods"
    listed = bare(table(["period", "level", "records", ""], rows, left=2))
    shown_open = " open" if len(rows) <= FEW else ""
    return card(
        "Periods",
        f'<details{shown_open}><summary>{many}</summary><div class="wide">{listed}</div></details>',
        note(_capital(f"{grown.protects}.")),
    )


def _span_row(grown: Grown, form: Mapping[str, str]) -> str:
    """Return the ends of the range that is asked about."""
    ends = [(label, label) for label in sorted(grown.labels)]
    since, until = (
        f'<label for="{name}">{said}</label><select id="{name}" name="{name}">'
        f"{_options([('', usual), *ends], form.get(name, ''))}</select>"
        for name, said, usual in (("since", "from", "the first"), ("until", "to", "the last"))
    )
    return f'<div class="row">{since}{until}</div>'


def ask_form(domain: Domain, form: Mapping[str, str], grown: Grown | None = None) -> str:
    """Return the form that makes a question from the domain, of periods over some of them."""
    kinds = [*KINDS.items(), *([] if grown is None else [SERIES])]
    names = [("", "choose"), *((name, name) for name in domain.names)]
    rows = [_condition_row(domain, form, row) for row in range(ROWS)]
    return card(
        "Ask",
        '<form method="post" action="/ask" id="ask"><input type="hidden" name="form" value="form">'
        '<div class="row"><label for="kind">I want</label><select id="kind" name="kind">'
        f"{_options(kinds, form.get('kind', 'count'))}</select>"
        f'<select id="of" name="of" aria-label="attribute">{_options(names, form.get("of", ""))}</select>'
        '<select id="by" name="by" aria-label="second attribute">'
        f"{_options(names, form.get('by', ''))}</select></div>"
        f"{'' if grown is None else _span_row(grown, form)}"
        f"<fieldset><legend>among records where</legend>{''.join(rows)}</fieldset>"
        f"{_labels(domain)}"
        f"{BUTTONS}</form>",
        note("Explain tells the price and the bound before anything is asked, and costs nothing."),
    )


def _condition_row(domain: Domain, form: Mapping[str, str], row: int) -> str:
    names = [("", "any record"), *((name, name) for name in domain.names)]
    return (
        f'<div class="row"><select name="a{row}" aria-label="attribute of condition {row + 1}">'
        f"{_options(names, form.get(f'a{row}', ''))}</select>"
        f'<select name="o{row}" aria-label="kind of condition {row + 1}">'
        f"{_options([*OPERATORS.items()], form.get(f'o{row}', 'is'))}</select>"
        f'<input name="v{row}" aria-label="value of condition {row + 1}" '
        f'value="{escaped(form.get(f"v{row}", ""))}" list="labels" autocomplete="off"></div>'
    )


def _labels(domain: Domain) -> str:
    known: dict[str, None] = {}
    for _, kind in domain:
        if isinstance(kind, Categorical) and kind.size <= MOST_OPTIONS:
            known |= dict.fromkeys(str(kind.label(code)) for code in range(kind.size))
    options = "".join(f'<option value="{escaped(one[:200])}"></option>' for one in [*known][:MOST_OPTIONS])
    return f'<datalist id="labels">{options}</datalist>'


def sql_form(form: Mapping[str, str]) -> str:
    """Return the form for a statement."""
    example = "SELECT COUNT(*) FROM t WHERE ..."
    return card(
        "Ask in SQL",
        '<form method="post" action="/ask" id="sql"><input type="hidden" name="form" value="sql">'
        '<label for="text">A SELECT statement from t</label>'
        f'<textarea id="text" name="text" rows="3" maxlength="4096" placeholder="{escaped(example)}">'
        f"{escaped(form.get('text', ''))}</textarea>"
        f"{BUTTONS}</form>",
    )


@final
@attrs.frozen
class AskedForm:
    """What a form asks.

    Attributes
    ----------
    text : str
        A statement, or nothing.
    said : str
        The question in words.
    of : (Answering) -> result
    explain : object
        What `explain` takes.
    sent : object
        The question as a program sends it, if one question is enough.
    call : str
        The call in Python that asks it, if it becomes several.
    span : (since, until)
        Of periods, None where it is an end of all.
    """

    text: str
    said: str
    of: Callable[[Answering], Any]
    explain: Any
    sent: Any
    call: str = ""
    span: Span = ALL

    def answered(self, to: Answering) -> str:
        """Ask, and return the answer as a block."""
        return result_block(self.said, self.of(to), to.n, to.beta) + self._snippets()

    def explained(self, view: Shown, purse: Purse) -> str:
        """Explain, and return it as a block."""
        return explanation_block(self.said, view.explain(self.explain, EXPLAINED, purse), view.n)

    def _snippets(self) -> str:
        body: dict[str, Any] | None = None
        call, path = self.call, "/v1/answers"
        if self.text:
            call, path, body = f"session.sql({json.dumps(self.text)})", "/v1/sql", {"sql": self.text}
        elif not call:
            call, body = f"session.answer({self.sent})", {"questions": [self.sent]}
        ends = {name: end for name, end in zip(("since", "until"), self.span, strict=True) if end}
        over = (
            f".over({', '.join(f'{name}={json.dumps(end)}' for name, end in ends.items())})" if ends else ""
        )
        python = f"import onlineic as ic\nsession = ic.connect(URL, TOKEN){over}\n{call}"
        parts = [f"<pre>{escaped(python)}</pre>"]
        if body is not None:
            quoted = json.dumps({**ends, **body}).replace("'", "'\\''")
            curl = f"curl -H \"Authorization: Bearer $TOKEN\" --data '{quoted}' URL{path}"
            parts.append(f"<pre>{escaped(curl)}</pre>")
        title = "The same in Python" + (" and by curl" if body is not None else "")
        return f"<details><summary>{title}</summary>{''.join(parts)}</details>"


def read_form(form: Mapping[str, str], domain: Domain) -> AskedForm:
    """Return what a form asks, of periods over those that it names.

    Raises
    ------
    InvalidQueryError
        If it does not fit the domain.
    """
    return attrs.evolve(
        _read_form(form, domain),
        span=span_of({name: form.get(name) or None for name in ("since", "until")}),
    )


def _read_form(form: Mapping[str, str], domain: Domain) -> AskedForm:
    """Return what a form asks.

    Raises
    ------
    InvalidQueryError
        If it does not fit the domain.
    """
    if form.get("form") == "sql":
        text = form.get("text", "").strip()
        if text[:6].upper() != "SELECT":
            raise InvalidQueryError(f"a statement must begin with SELECT, got {shown(text)}.")
        return AskedForm(text, text, lambda to: to.sql(text), text, None)
    kind, of, by = form.get("kind", ""), form.get("of", ""), form.get("by", "")
    among = _conditions(form, domain)
    said = f" where {words}" if (words := _in_words(form)) else ""
    if kind == "count":
        question: Expression = where() if among is None else among
        return AskedForm("", f"records{said}", lambda to: to.answer(question), question, written(question))
    if kind == "table":
        names = tuple(name for name in (of, by) if name)
        if not names:
            raise InvalidQueryError("a table must be by one attribute or two, got none; choose one.")
        cells = marginal(*names, where=among)
        cells.bind(domain)
        title = f"records by {' and '.join(names)}{said}"
        return AskedForm("", title, lambda to: to.answer(cells), cells, written(cells))

    if kind == SERIES[0]:
        name = domain.names[0]  # of periods that is theirs
        given = json.dumps(name) + (f", {written(among)}" if among is not None else "")
        title = f"records by {name}{said}"

        def over_time(to: Answering) -> Groups:
            return to.group_by(name, among)

        return AskedForm("", title, over_time, over_time, None, f"session.group_by({given})")
    if kind in ("mean", "sum", "median"):
        domain.axis(of)

        def worked_out(to: Answering) -> Any:
            if kind == "mean":
                return to.mean(of, among)
            return to.sum(of, among) if kind == "sum" else to.median(of, among)

        given = json.dumps(of) + (f", {written(among)}" if among is not None else "")
        call = f"session.{kind}({given})"
        return AskedForm("", f"{kind} of {of}{said}", worked_out, worked_out, None, call)
    raise InvalidQueryError(f"kind must be one of {', '.join(KINDS)}, got {shown(kind)}.")


def _in_words(form: Mapping[str, str]) -> str:
    rows = [
        (form.get(f"a{row}", ""), form.get(f"o{row}", "is"), form.get(f"v{row}", "")) for row in range(ROWS)
    ]
    return " and ".join(_row_in_words(*row) for row in rows if row[0])


def _row_in_words(name: str, operator: str, text: str) -> str:
    parts = [shortened(part.strip()) for part in text.split(";")]
    said = {"in": f"is one of {', '.join(parts)}", "between": f"is from {' to '.join(parts)}"}.get(operator)
    verb = {"is": "is", "not": "is not", "from": "is at least", "below": "is below"}.get(operator, operator)
    return f"{shortened(name)} {said or f'{verb} {shortened(text)}'}"


def _conditions(form: Mapping[str, str], domain: Domain) -> Expression | None:
    found: Expression | None = None
    for row in range(ROWS):
        name = form.get(f"a{row}", "")
        if name:
            kind = domain.attribute(name)
            told = _condition(form.get(f"o{row}", "is"), form.get(f"v{row}", ""), kind)
            one = described({name: told}, domain)
            if isinstance(one, Expression):  # it is: the name of an attribute hides a form called like it
                found = one if found is None else found & one
    return found


def _condition(operator: str, text: str, kind: Any) -> dict[str, Any]:
    """Return a condition as `onlineic.ask.described` reads it."""
    parts = [_label(part.strip(), kind) for part in text.split(";")] if operator in ("in", "between") else []
    if operator == "between" and len(parts) == 2:
        return {"from": parts[0], "to": parts[1]}
    if operator == "in":
        return {"one_of": parts}
    if operator in ("from", "below", "is", "not"):
        value = _label(text.strip(), kind)
        return {"one_of": [value]} if operator == "is" else {operator: value}
    raise InvalidQueryError(
        f"a condition must have a value, from .. to two, got {shown(text)}; write 20; 64."
    )


def _label(text: str, kind: Any) -> Any:
    """Return the label that a text names."""
    if kind.size <= 2**16:
        for code in range(kind.size):
            label = kind.label(code)
            if str(label) == text or (label is None and text in ("", "missing")):
                return label
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def result_block(said: str, found: Any, n: int, beta: float) -> str:
    """Return an answer in words, with its interval and a drawing."""
    if isinstance(found, Answer):
        return (
            _table_block(said, found)
            if isinstance(found.value, np.ndarray)
            else _number_block(said, found, beta)
        )
    if isinstance(found, Derived):
        return _derived_block(said, found)
    if isinstance(found, Quantile):
        ends = f"from {shortened(found.low)} to {shortened(found.high)}"
        text = f"The {said}, {ends}{_sure(found.confidence)}."
        return card(shortened(found.value), f"<p>{escaped(text)}</p>", kind="answer", private=found.private)
    if isinstance(found, Groups):
        return _series_block(said, found)
    if isinstance(found, AnswerTable):
        block = f'<div class="wide">{bare(found._repr_html_())}</div>'
        return card(shortened(said, 200), block, kind="answer statement")
    return card("Answer", f"<pre>{escaped(shortened(repr(found), 1000))}</pre>", kind="answer")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sure(confidence: float) -> str:
    return f" with probability {probability(confidence)}" if confidence > 0.0 else ""


def _derived_block(said: str, found: Derived) -> str:
    """Return a number that was worked out, with the interval that its bound leaves."""
    text = f"The {said}."
    if math.isfinite(found.error_bound):
        value, reach = within(found.value, found.error_bound, separated=True)
        text = f"The {said}: {value}, at most {reach} off{_sure(found.confidence)}."
    elif found.few_records:
        text = f"The {said}, over few records: nothing bounds it."
    if found.bias:
        text += f" Values in bins may put it off by {upward(found.bias)} besides."
    error = usually_and_provably(found.expected_error, found.error_bound, found.confidence)
    about = ""
    if found.count is not None and found.count_bound is not None and 0.0 < found.count_bound < math.inf:
        about = f"It is about {records(found.count)} ± {records_bound(found.count_bound)} records."
    return card(
        around(found.value, found.error_bound, separated=True),
        f"<p>{escaped(text)}</p>",
        note(f"{_capital(error)}.") if found.expected_error else "",
        note(about) if about else "",
        kind="answer",
        private=found.private,
    )


def _number_block(said: str, answer: Answer, beta: float) -> str:
    n, (low, high) = answer.n or 0, answer.bracket
    error = usually_and_provably(answer.count_expected_error, n * answer.error_bound, 1.0 - beta)
    if math.isfinite(answer.error_bound):
        holds = "exactly" if answer.error_bound == 0.0 else f"with probability {probability(1.0 - beta)}"
        between_ = f"From {records_between(n * low, n * high)} of {n:,}, {holds}."
    else:
        between_ = "Nothing bounds this answer: it is what the hypothesis says."
    return card(
        f"{records(float(answer.count))} records",
        f"<p>{escaped(_capital(said))}: {answer.value:.2%} of all. {escaped(between_)}</p>",
        note(f"{_capital(error)}.") if answer.usually else "",
        bare(span_bar(low, float(answer.value), high, "share of all records")),
        _status(answer),
        kind="answer",
        private=answer.private,
    )


def _status(answer: Answer) -> str:
    return f'<p class="status {answer.status}">{escaped(STATUS_SAID[answer.status])}</p>'


def _table_block(said: str, answer: Answer) -> str:
    labels, n = answer.labels, answer.n or 1
    bounded = math.isfinite(answer.error_bound)
    bound = (
        f"Each ± {records_bound(n * answer.error_bound)} records, all at once." if bounded else "No bound."
    )
    parts = [f"<p>{escaped(bound)}</p>"]
    if answer.usually:
        parts.append(note(f"Each {answer.usually_and_provably}."))
    counts = np.asarray(answer.count)
    if len(labels) == 1:
        ((name, axis),) = labels.items()
        low, high = answer.bracket
        whiskers = (n * low, n * high) if bounded else (None, None)
        parts.append(bare(bars(axis, counts, *whiskers, title=f"records by {name}")))
        rows = [[label, records(float(count))] for label, count in zip(axis, counts, strict=True)]
        numbers = bare(table([name, "records"], rows))
        title = f"The {len(rows):,} numbers"
        shown = " open" if len(rows) <= FEW else ""
        parts.append(f'<details{shown}><summary>{title}</summary><div class="wide">{numbers}</div></details>')
    elif len(labels) == 2:
        parts.append(f'<div class="wide">{_heat(answer)}</div>')
    else:
        parts.append(note("A table of more than two attributes: take it as CSV."))
    parts.append(_status(answer))
    return card(_capital(shortened(said, 200)), *parts, kind="answer", private=answer.private)


def _series_block(said: str, found: Groups) -> str:
    """Return a count for each period: drawn with whiskers, as a table, and as CSV."""
    (labels,), (name,) = found.labels, found.keys
    values, bounds = found.values.tolist(), found.error_bounds.tolist()
    lows = [max(0.0, value - bound) for value, bound in zip(values, bounds, strict=True)]
    highs = [value + bound for value, bound in zip(values, bounds, strict=True)]
    finite = all(map(math.isfinite, highs))
    whiskers = (lows, highs) if finite else (None, None)
    errors = found.expected_errors.ravel().tolist()
    rows = [
        [
            label,
            records(value),
            usually(error, bound),
            f"± {records_bound(bound)}" if math.isfinite(bound) else "no bound",
        ]
        for label, value, bound, error in zip(labels, values, bounds, errors, strict=True)
    ]
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow([name, "count", "error_bound", "low", "high", "expected_error"])
    for row in zip(labels, values, bounds, lows, highs, errors, strict=True):
        lines.writerow(map(csv_field, row))
    file = f"data:text/csv;charset=utf-8,{quote(out.getvalue())}"
    numbers = bare(table([name, "records", "error", "off by at most"], rows))
    shown_open = " open" if len(rows) <= FEW else ""
    together = f"All hold at once{_sure(found.confidence)}." if finite else "Not all are bounded."
    return card(
        _capital(shortened(said, 200)),
        bare(bars([str(label) for label in labels], values, *whiskers, title=f"records by {name}")),
        f'<details{shown_open}><summary>The {len(rows):,} numbers</summary><div class="wide">{numbers}</div>'
        "</details>",
        f'<p><a href="{escaped(file)}" download="by-{escaped(name)}.csv">As CSV</a></p>',
        note(together),
        kind="answer",
        private=all(answer.private for answer in found.answers),
    )


def _heat(answer: Answer) -> str:
    """Return a cross table whose cells are the darker the more records are in them."""
    (first, down), (second, across) = answer.labels.items()
    counts = np.asarray(answer.count)[:MAPPED, :MAPPED]
    most = max(float(counts.max(initial=0.0)), 1.0)
    head = "".join(f'<th scope="col">{escaped(shortened(label))}</th>' for label in across[:MAPPED])
    body = []
    for label, row in zip(down[:MAPPED], counts.tolist(), strict=True):
        shades = [max(0, min(9, int(9 * one / most))) for one in row]
        cells = "".join(
            f'<td class="h{shade}">{records(one)}</td>' for shade, one in zip(shades, row, strict=True)
        )

        body.append(f'<tr><th scope="row">{escaped(shortened(label))}</th>{cells}</tr>')
    cut = len(down) > MAPPED or len(across) > MAPPED
    more = note(f"Cut to {MAPPED} rows and columns: the CSV holds all.") if cut else ""
    corner = escaped(f"{shortened(first)} \\ {shortened(second)}")
    top = f"<thead><tr><th>{corner}</th>{head}</tr></thead>"
    return f'<table class="heat">{top}<tbody>{"".join(body)}</tbody></table>{more}'


def explanation_block(said: str, found: Explanation, n: int) -> str:
    """Return what a question may cost and be worth, in words."""
    count = f"{found.answers:,} answer{'s' * (found.answers != 1)}"
    known = found.constants + found.repeats
    finite = math.isfinite(found.bound_easy)
    easy = f"± {records_bound(n * found.bound_easy)} records" if finite else "no bound"
    told = [("it becomes", count)]
    if known:
        told.append(("known already", f"{known:,} of them, free"))
    if found.free:
        told.append(("price", "nothing"))
    elif not found.payable:
        told.append(("price", "more than is left: it would be answered untested"))
    else:
        most = f"{found.at_most:.2%} of the budget; nothing if what was learned is good enough"
        told.append(("price at most", most))

    told.append(("expected bound of each", easy))
    if found.bound_derived is not None and math.isfinite(found.bound_derived):
        told.append(("bound", f"± {upward(found.bound_derived)}"))
    return card(f"If asked: {shortened(said, 200)}", bare(facts(told)), kind="explain")
