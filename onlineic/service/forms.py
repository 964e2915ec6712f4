"""What a form of the page asks: checked field by field, and said again in words, SQL, Python and by curl."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, final
from urllib.parse import parse_qsl, urlencode

import attrs

from onlineic.ask.json import described, within_written, written
from onlineic.ask.places import without_python
from onlineic.ask.sql import statement
from onlineic.display.text import shortened
from onlineic.domain.attributes import Binned, Categorical, IntegerRange
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidQueryError, MissingExtraError, OnlineICError, shown
from onlineic.queries.expressions import Expression, where
from onlineic.queries.marginals import marginal
from onlineic.queries.within import Within
from onlineic.questions.derived import Answering
from onlineic.questions.groups import Groups
from onlineic.questions.means import Numbers
from onlineic.service.face import ALL, Shown, Span, span_of
from onlineic.service.words import label, values_of
from onlineic.session.explain import Explanation
from onlineic.session.quota import Quota
from onlineic.slips import nearest

EXPLAINED = 1024  # questions that one which is explained may become
ROWS = 3  # conditions of the form
LONGEST_TEXT = 4096  # letters of a statement
SEARCHED = 2**16  # values of an attribute among which the one that is meant is looked for
FIELDS = (
    "form", "kind", "of", "by", "since", "until", "text", "exact", "unit", "sure",
    *(f"{part}{row}" for row in range(ROWS) for part in "aovw"),
)  # fmt: skip
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
    "in": "is one of",
    "from": "is at least",
    "below": "is below",
    "between": "is from .. to",
}
PROVABLY, USUALLY = "provably", "usually"
MOST_WISHED = 1e12
RANGES = ("from", "below", "between")
APART = re.compile(r"\s*(?:;|\.\.+|\bto\b|(?<=[\w%])\s*[-–]\s*(?=[\w]))\s*")  # 20; 30 and 20-30 and 20 to 30
CODE = re.compile(r"[({\[=]|\bwrite\b|\bdeclare\b|\bbuild the domain\b")  # of a remedy that is for programs
NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
RESERVED = frozenset(
    "select from where group by order and or not in is null between as case when then else end having "
    "limit true false".upper().split()
)


@final
class FieldError(InvalidQueryError):
    """What stands in one field of the form cannot be asked; the others may be right."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


FieldError.code = InvalidQueryError.code


@final
@attrs.frozen
class AskedForm:
    """What a form asks.

    Attributes:
        said: The question in words.
        of: What asks it.
        explain: What `explain` takes.
        fields: That are filled in.
        statement: The same in SQL; empty where there is no such form.
        sent: The question as a program sends it, if one question is enough.
        call: The call in Python.
        wish: How exact the answer is to be, if that was said.
    """

    said: str
    of: Callable[[Answering], Any]
    explain: Any
    fields: Mapping[str, str]
    statement: str = ""
    sent: Any = None
    call: str = ""
    span: Span = ALL
    wish: "Wished | None" = None

    @property
    def query(self) -> str:
        """The form as the query of an address."""
        return query_of(self.fields)

    def explained(self, view: Shown, quota: Quota) -> Explanation:
        """Return what it may cost who asks, and what it is worth to them."""
        within = None if self.wish is None or callable(self.explain) else self.wish.within
        return view.explain(self.explain, EXPLAINED, quota, within)

    @property
    def title(self) -> str:
        """The question in words, and how exact its answer is to be."""
        return self.said if self.wish is None else f"{self.said}, {self.wish.said}"

    def snippets(self) -> list[tuple[str, str]]:
        """Return the same question in other languages, each under its name."""
        ends = {name: end for name, end in zip(("since", "until"), self.span, strict=True) if end}
        over = (
            f".over({', '.join(f'{name}={json.dumps(end)}' for name, end in ends.items())})" if ends else ""
        )
        found = [("SQL", self.statement)] if self.statement and not ends else []
        found.append(
            ("Python", f"import onlineic as ic\nsession = ic.connect(URL, TOKEN){over}\n{self.call}")
        )
        body: dict[str, Any] | None = None
        path = "/v1/answers"
        if self.sent is not None:
            body = {"questions": [self.sent]}
        elif self.statement:
            path, body = "/v1/sql", {"sql": self.statement}
        if body is not None and self.wish is not None:
            body["within"] = within_written(self.wish.within)
        if body is not None:
            quoted = json.dumps({**ends, **body}).replace("'", "'\\''")
            found.append(("curl", f"curl -H \"Authorization: Bearer $TOKEN\" --data '{quoted}' URL{path}"))
        return found


@final
@attrs.frozen
class Wished:
    """How exact an answer is to be.

    Attributes:
        within: In the unit of the call that asks it.
        said: In words.
    """

    within: Within
    said: str

    @property
    def call(self) -> str:
        """The argument of a call in Python."""
        number = f"{self.within.radius:.12g}"
        return f", within={number if self.within.certain else f'ic.expected({number})'}"


def query_of(fields: Mapping[str, str]) -> str:
    """Return what a form holds as the query of an address: what is empty is left out."""
    return urlencode([(name, fields[name]) for name in FIELDS if fields.get(name)])


def fields_of(query: str) -> dict[str, str]:
    """Return what a form holds of the query of an address; what is no field of it is left out."""
    try:
        told = dict(parse_qsl(query, keep_blank_values=False, max_num_fields=200))
    except ValueError:
        return {}
    return {name: told[name] for name in FIELDS if name in told}


def read_form(form: Mapping[str, str], domain: Domain, n: int = 1) -> AskedForm:
    """Return what a form asks, of periods over those that it names.

    Args:
        n: The number of records, in which a wish can be said.

    Raises:
        FieldError: If what stands in a field does not fit the domain; in words, and beside the field.
        InvalidQueryError: If it is no form of the page.
    """
    span = span_of({name: form.get(name) or None for name in ("since", "until")})
    left_out = () if form.get("exact", "").strip() else ("exact", "unit", "sure")
    fields = {name: form[name] for name in FIELDS if form.get(name) and name not in left_out}
    return attrs.evolve(_read_form(form, domain, fields, n), span=span)


def _read_form(form: Mapping[str, str], domain: Domain, fields: Mapping[str, str], n: int) -> AskedForm:
    if form.get("form") == "sql":
        return _statement(form.get("text", "").strip(), fields, _wished(form, n))
    kind, of, by = form.get("kind", ""), form.get("of", ""), form.get("by", "")
    if kind not in KINDS and kind != SERIES[0]:
        raise InvalidQueryError(f"kind must be one of {', '.join(KINDS)}, got {shown(kind)}.")
    among, words = _conditions(form, domain)
    said = f" where {words}" if words else ""
    condition = "" if among is None else f", {written(among)}"
    if kind == "count":
        question: Expression = where() if among is None else among
        wish = _wished(form, n)
        return AskedForm(
            f"records{said}" if said else "all records",
            lambda to: _told_within(to, question, wish),
            question,
            fields,
            _checked_sql(domain, f"SELECT COUNT(*) FROM t{_where(form, domain)}", question),
            written(question),
            f"session.answer({written(question)}{_argument(wish)})",
            wish=wish,
        )
    if kind == SERIES[0]:
        name = domain.names[0]  # of periods that is theirs

        def over_time(to: Answering) -> Groups:
            return to.group_by(name, among)

        call = f"session.group_by({json.dumps(name)}{condition})"
        return AskedForm(f"records by {name}{said}", over_time, over_time, fields, call=call)
    if not of:
        raise FieldError("of", "Choose an attribute.")
    if of not in domain.names:
        raise FieldError("of", f"There is no attribute {shortened(of)}.")
    if kind == "table":
        return _table(of, by, among, said, domain, fields, _where(form, domain), _wished(form, n))
    wish = _wished_of(form, kind, of, among, domain, n)
    return _aggregate(kind, of, among, said, domain, fields, condition, _where(form, domain), wish)


def _wished(form: Mapping[str, str], n: int) -> Wished | None:
    """Return how exact numbers of records are to be: the wish is a fraction of all of them."""
    if (found := _number_wished(form)) is None:
        return None
    number, percent, said = found
    of_what = "% of all records" if percent else "records"
    radius = number / 100.0 if percent else number / n
    return Wished(Within(radius, certain=said == PROVABLY), f"{said} within {number:g} {of_what}")


def _wished_of(
    form: Mapping[str, str], kind: str, of: str, among: Expression | None, domain: Domain, n: int
) -> Wished | None:
    """Return how exact an average, a sum or a median is to be."""
    found = _number_wished(form)
    if found is None or kind == "median":
        return _wished(form, n)
    number, percent, said = found
    _check_numbers(of, domain)
    numbers = Numbers.of(domain, of, among)
    whole = (numbers.high - numbers.low) * (n if kind == "sum" else 1)
    of_what = f" % of the range of {shortened(of)}" if percent else ""
    radius = number / 100.0 * whole if percent else float(number)
    if not radius > 0.0:
        raise FieldError("exact", f"{shortened(of)} has one value: leave this out.")
    return Wished(Within(radius, certain=said == PROVABLY), f"{said} within {number:g}{of_what}")


def _number_wished(form: Mapping[str, str]) -> tuple[float, bool, str] | None:
    """Return the number of a wish, whether it is per cent, and how sure; None without one."""
    text = form.get("exact", "").strip()
    if not text:
        return None
    number = _number(text.removesuffix("%").strip())
    if number is None or not 0.0 < number <= MOST_WISHED:
        raise FieldError("exact", "Give a number above 0, such as 1 or 0.5, or leave this empty.")
    said = USUALLY if form.get("sure") == USUALLY else PROVABLY
    return float(number), text.endswith("%") or form.get("unit") != "own", said


def _argument(wish: Wished | None) -> str:
    return "" if wish is None else wish.call


def _told_within(to: Answering, question: Any, wish: Wished | None) -> Any:
    return to.answer(question) if wish is None else to.answer_within([question], wish.within)[0]


def _statement(text: str, fields: Mapping[str, str], wish: Wished | None) -> AskedForm:
    if not text:
        raise FieldError("text", "Write a statement, such as SELECT COUNT(*) FROM t.")
    if len(text) > LONGEST_TEXT:
        raise FieldError("text", f"A statement has at most {LONGEST_TEXT:,} letters, this one {len(text):,}.")
    if text[:6].upper() != "SELECT":
        raise FieldError("text", "A statement begins with SELECT, such as SELECT COUNT(*) FROM t.")
    within = None if wish is None else wish.within
    return AskedForm(
        text,
        lambda to: to.sql(text, within=within),
        text,
        fields,
        text,
        call=f"session.sql({json.dumps(text)}{_argument(wish)})",
        wish=wish,
    )


def _table(
    of: str,
    by: str,
    among: Expression | None,
    said: str,
    domain: Domain,
    fields: Mapping[str, str],
    rest: str,
    wish: Wished | None,
) -> AskedForm:
    if by and by not in domain.names:
        raise FieldError("by", f"There is no attribute {shortened(by)}.")
    if by == of:
        raise FieldError("by", "Choose another second attribute, or none.")
    names = (of, by) if by else (of,)
    cells = marginal(*names, where=among)
    try:
        cells.bind(domain)
    except OnlineICError as error:
        raise FieldError("of", in_plain_words(str(error))) from None
    keys = ", ".join(map(_quoted, names))
    sql = f"SELECT {keys}, COUNT(*) FROM t{rest} GROUP BY {keys}"
    title = f"records by {' and '.join(map(shortened, names))}{said}"
    return AskedForm(
        title,
        lambda to: _told_within(to, cells, wish),
        cells,
        fields,
        _checked_sql(domain, sql, among),
        written(cells),
        f"session.answer({written(cells)}{_argument(wish)})",
        wish=wish,
    )


def _aggregate(
    kind: str, of: str, among: Expression | None, said: str, domain: Domain, fields: Mapping[str, str],
    condition: str, rest: str, wish: Wished | None,
) -> AskedForm:  # fmt: skip
    if kind == "median":
        if not domain.attribute(of).ordered:
            ordered = [name for name, one in domain if one.ordered]
            raise FieldError("of", f"{shortened(of)} has no order{_instead(ordered)}.")
    else:
        _check_numbers(of, domain)

    within = None if wish is None else wish.within

    def worked_out(to: Answering) -> Any:
        if kind == "mean":
            return to.mean(of, among, within=within)
        if kind == "sum":
            return to.sum(of, among, within=within)
        return to.quantile(of, 0.5, among, within=within)

    call, share = ("quantile", ", 0.5") if kind == "median" and wish is not None else (kind, "")
    name = {"mean": "AVG", "sum": "SUM"}.get(kind)
    sql = f"SELECT {name}({_quoted(of)}) FROM t{rest}" if name else ""
    return AskedForm(
        f"{kind} of {shortened(of)}{said}",
        worked_out,
        worked_out,
        fields,
        _checked_sql(domain, sql, among) if sql else "",
        call=f"session.{call}({json.dumps(of)}{share}{condition}{_argument(wish)})",
        wish=wish,
    )


def _check_numbers(of: str, domain: Domain) -> None:
    def has_numbers(name: str) -> bool:
        try:
            Numbers.of(domain, name, None)
        except OnlineICError:
            return False
        return True

    if not has_numbers(of):
        raise FieldError(
            "of", f"{shortened(of)} has no numbers{_instead([*filter(has_numbers, domain.names)])}."
        )


def _instead(names: list[str]) -> str:
    return f"; choose {', '.join(map(shortened, names[:6]))}" if names else ""


# -- conditions ---------------------------------------------------------------------------------------------


def _conditions(form: Mapping[str, str], domain: Domain) -> tuple[Expression | None, str]:
    """Return the conditions of a form, all of which must hold, and in words."""
    found: Expression | None = None
    said = []
    for row in range(ROWS):
        name = form.get(f"a{row}", "")
        if not name:
            if form.get(f"v{row}", "").strip():
                raise FieldError(f"a{row}", "Choose an attribute for this value, or leave the value out.")
            continue
        operator, values = _values(form, row, domain)
        try:
            one = described({name: _told(operator, values, domain.attribute(name))}, domain)
        except InvalidQueryError as error:
            raise FieldError(f"v{row}", in_plain_words(str(error))) from None
        if isinstance(one, Expression):  # it is: the name of an attribute hides a form called like it
            found = one if found is None else found & one
        said.append(_row_in_words(name, operator, values))
    return found, " and ".join(said)


def _values(form: Mapping[str, str], row: int, domain: Domain) -> tuple[str, list[Any]]:
    """Return the kind of a condition and its values, each as the domain has it."""
    name, operator = form[f"a{row}"], form.get(f"o{row}", "is")
    if name not in domain.names:
        raise FieldError(f"a{row}", f"There is no attribute {shortened(name)}.")
    kind = domain.attribute(name)
    if operator not in OPERATORS:
        raise FieldError(f"o{row}", "Choose a kind of condition.")
    if operator in RANGES and not kind.ordered:
        raise FieldError(f"o{row}", f"{shortened(name)} has no order: choose is, is not or is one of.")
    texts = [form.get(f"v{row}", "").strip()]
    if operator == "in":
        texts = [text.strip() for text in texts[0].split(";")]
    elif operator == "between":
        other = form.get(f"w{row}", "").strip()
        texts = [texts[0], other] if other else [text for text in APART.split(texts[0]) if text]
        if len(texts) != 2:
            raise FieldError(f"w{row}", "Give both ends of the range.")
    fields = [f"w{row}" if operator == "between" and at else f"v{row}" for at in range(len(texts))]
    read = [_value(*pair, name, kind, operator) for pair in zip(texts, fields, strict=True)]
    return operator, read


def _value(text: str, field: str, name: str, kind: Any, operator: str) -> Any:
    """Return the label or number that a text names."""
    if not text and not getattr(kind, "missing", False):
        raise FieldError(field, f"Give a value of {shortened(name)}: {values_of(kind)}.")
    if operator in RANGES:
        return _end(text, field, name, kind)
    if kind.size <= SEARCHED:
        for code in range(kind.size):
            one = kind.label(code)
            if str(one) == text or (one is None and text in ("", "missing")):
                return one
    number = _number(text)
    if isinstance(kind, IntegerRange) and number is not None:
        last = kind.label(kind.size - 1 - kind.missing)
        if number == int(number) and kind.start <= number <= int(str(last)):
            return int(number)
    if isinstance(kind, Binned):
        raise FieldError(
            field,
            f"{shortened(name)} is {values_of(kind)}. Choose is at least, is below or is from .. to, with "
            "these steps.",
        )
    if isinstance(kind, Categorical | IntegerRange):
        near = nearest(text, kind.labels) if isinstance(kind, Categorical) else None
        meant = f" Did you mean {label(near)}?" if near is not None else ""
        raise FieldError(
            field, f"{shortened(name)} has no {shortened(text)}.{meant} It has {values_of(kind)}."
        )
    return text


def _end(text: str, field: str, name: str, kind: Any) -> Any:
    """Return an end of a range."""
    number = _number(text)
    if isinstance(kind, IntegerRange | Binned) and number is None:
        raise FieldError(field, f"{shortened(name)} takes numbers, not {shortened(text)}: {values_of(kind)}.")
    if isinstance(kind, IntegerRange) and number is not None:
        last = int(str(kind.label(kind.size - 1 - kind.missing)))
        if not kind.start <= number <= last:
            raise FieldError(field, f"{shortened(name)} goes from {kind.start} to {last}, not to {text}.")
    if isinstance(kind, Binned) and number is not None and number not in kind.edges:
        near = sorted(sorted(kind.edges, key=lambda edge: abs(edge - number))[:2])
        raise FieldError(
            field,
            f"{shortened(name)} is held in steps: the nearest to {text} are "
            f"{' and '.join(f'{edge:,g}' for edge in near)}.",
        )
    return text if number is None else number


def _number(text: str) -> int | float | None:
    plain = text.replace(",", "").replace("_", "")
    for kind in (int, float):
        try:
            number = kind(plain)
        except ValueError:
            continue
        return number if number == number and abs(number) != float("inf") else None
    return None


def _told(operator: str, values: list[Any], kind: Any) -> Any:
    """Return a condition as `onlineic.ask.described` reads it."""
    if operator in ("is", "in"):
        return {"one_of": values}
    if operator == "between":
        closed = not isinstance(kind, Binned) or kind.integer
        return {"from": values[0], "to" if closed else "below": values[1]}
    return {operator: values[0]}


def _row_in_words(name: str, operator: str, values: list[Any]) -> str:
    told = [label(value) for value in values]
    verb = {"not": "is not", "from": "is at least", "below": "is below", "between": "is from"}.get(
        operator, "is"
    )
    if operator == "in" and len(told) > 1:
        verb = "is one of"
    return f"{shortened(name)} {verb} {(' to ' if operator == 'between' else ', ').join(told)}"


def in_plain_words(message: str) -> str:
    """Return a refusal for a reader who writes no code: without a remedy that is code."""
    text = without_python(message)
    head, apart, remedy = text.rpartition("; ")
    text = f"{head}." if apart and CODE.search(remedy) else text
    return text[:1].upper() + text[1:]


# -- SQL ----------------------------------------------------------------------------------------------------


def _where(form: Mapping[str, str], domain: Domain) -> str:
    """Return the conditions of a form, which was checked, as a clause of SQL."""
    rows = []
    for row in range(ROWS):
        if name := form.get(f"a{row}", ""):
            operator, values = _values(form, row, domain)
            rows.append(_in_sql(_quoted(name), operator, values, domain.attribute(name)))
    return f" WHERE {' AND '.join(rows)}" if rows else ""


def _in_sql(name: str, operator: str, values: list[Any], kind: Any) -> str:
    told = [_literal(value) for value in values if value is not None]
    missing = [f"{name} IS NULL"] if None in values else []
    if operator == "not":
        if missing:
            return f"{name} IS NOT NULL"
        return f"({name} <> {told[0]} OR {name} IS NULL)" if kind.missing else f"{name} <> {told[0]}"
    if operator == "between":
        if isinstance(kind, Binned) and not kind.integer:
            return f"{name} >= {told[0]} AND {name} < {told[1]}"
        return f"{name} BETWEEN {told[0]} AND {told[1]}"
    if operator in ("from", "below"):
        return f"{name} {'>=' if operator == 'from' else '<'} {told[0]}"
    if told:
        missing.append(f"{name} = {told[0]}" if len(told) == 1 else f"{name} IN ({', '.join(told)})")
    return missing[0] if len(missing) == 1 else f"({' OR '.join(missing)})"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return repr(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


def _quoted(name: str) -> str:
    plain = NAME.match(name) and name.upper() not in RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def _checked_sql(domain: Domain, sql: str, condition: Expression | None) -> str:
    """Return a statement if it is read as the same question; else nothing: it has no form in SQL."""
    try:
        read = statement(sql, domain).aggregates[0].condition
        meant = where() if condition is None else condition
        same = (where() if read is None else read).bind(domain).key == meant.bind(domain).key
    except (OnlineICError, MissingExtraError):
        return ""
    return sql if same else ""
