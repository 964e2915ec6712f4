"""The page: templates filled in with facts and answers in words, usable without its one script.

Templates escape every text; drawings are blocks of `onlineic.display.html`, without the inline styles that a
strict content policy forbids: the looks stand in `page.css`.
"""

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from onlineic.display.html import bars, share, span_bar
from onlineic.display.text import records, shortened, upward
from onlineic.domain.attributes import Categorical
from onlineic.domain.domain import Domain
from onlineic.domain.unit import whose
from onlineic.queries.answers import Answer
from onlineic.questions.distributions import Quantile
from onlineic.questions.groups import Groups
from onlineic.questions.linear import PublicFacts
from onlineic.questions.means import Derived
from onlineic.questions.statements import AnswerTable
from onlineic.service.face import Grown, Shown
from onlineic.service.forms import (
    KINDS,
    OPERATORS,
    PROVABLY,
    ROWS,
    SERIES,
    USUALLY,
    AskedForm,
    Wished,
)
from onlineic.service.refusals import Problem
from onlineic.service.users import Put
from onlineic.service.words import (
    NOTHING,
    PIECE,
    in_words,
    label,
    of_error,
    off_by,
    part,
    reach,
    rounded,
    short_status,
    status_of,
    two_digits,
    values_of,
    whole_records,
)
from onlineic.session.explain import Explanation

MOST_OPTIONS = 200  # labels that are offered to choose from
FEW = 12  # rows of numbers that are shown without being asked for
MOST_ROWS = 200  # of a result that are shown; its file holds all
HELD = ("form", "kind", "of", "by", "since", "until", "text", "exact", "unit", "sure")
MAPPED = 24  # rows and columns of a heat map
STYLE = re.compile(r' style="[^"]*"')  # a quote inside of a text is escaped
TITLES = {
    "unauthorized": "Please log in",
    "forbidden": "This page cannot do that",
    "not-found": "There is no such page",
    "method": "There is no such page",
    "rate": "A little slower, please",
    "too-few-records": "Too few records",
    "too-large": "This is too much at once",
    "busy": "Too much of yours waits already",
    "unready": "The server cannot answer now",
    "internal": "Something went wrong here",
}
SENTENCES = {
    "not-found": "Nothing is at this address.",
    "method": "Nothing is at this address.",
    "internal": "The fault is the server's. Nothing was told; try once more.",
}
_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)


def rendered(name: str, **given: Any) -> str:
    """Return a document made of a template."""
    return _environment.get_template(name).render(**{"root": "", **given})


def bare(block: str) -> Markup:
    """Return a block of the package's HTML without its inline styles."""
    return Markup(STYLE.sub("", block))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


_environment.filters |= {"capital": _capital, "part": part, "short": shortened}


# -- an answer ----------------------------------------------------------------------------------------------


@final
@attrs.frozen
class PageAnswer:
    """An answer as the page shows it.

    Attributes:
        title: The number, or what was asked.
        sentence, reach: What it means, and how far off it may be.
        head, rows: Of its numbers; a cell is a text, or a text and a smaller one.
        left: How many columns are text.
        cut: How many rows are not shown.
        shades: Of a cross table's cells.
    """

    title: str
    sentence: str
    reach: str
    status: str = ""
    notes: tuple[str, ...] = ()
    drawing: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    left: int = 1
    cut: int = 0
    shades: tuple[tuple[int, ...], ...] = ()
    private: bool = True
    headline: str = ""

    @property
    def opened(self) -> bool:
        """Whether its numbers are shown at once."""
        return not self.drawing or len(self.rows) <= FEW


def told_of(asked: AskedForm, found: Any, n: int, beta: float) -> PageAnswer:
    """Return an answer in words, with a drawing."""
    said = _capital(shortened(asked.said, 200))
    if isinstance(found, Answer):
        if isinstance(found.value, np.ndarray):
            return _table(said, found, beta)
        return _number(said, found, beta)
    if isinstance(found, Derived):
        return _derived(said, found)
    if isinstance(found, Quantile):
        sure = reach(None, "these ends", found.confidence).removeprefix("Provably within these ends")
        return PageAnswer(
            label(found.value),
            f"{said}: from {label(found.low)} to {label(found.high)}{sure}",
            "",
            private=found.private,
            headline=label(found.value),
        )
    if isinstance(found, Groups):
        return _series(said, found)
    if isinstance(found, AnswerTable):
        return _statement(said, found)
    return PageAnswer(said, shortened(repr(found), 1000), "")


def _number(said: str, answer: Answer, beta: float) -> PageAnswer:
    n, bound = answer.n or 0, (answer.n or 0) * answer.error_bound
    usual = of_error(answer.count_expected_error, bound)
    finite = math.isfinite(answer.error_bound)
    exact = answer.error_bound == 0.0
    far = reach(
        None if usual is None else whole_records(usual), whole_records(bound) if finite else None, 1.0 - beta
    )
    wide = usual if usual is not None and n else (bound if finite else 0.0)
    value = float(answer.value)
    ends = [min(1.0, max(0.0, value + sign * wide / n)) if n else value for sign in (-1, 1)]
    count = records(float(answer.count))
    return PageAnswer(
        f"{count} {answer.of_what}",
        f"{said}: {100.0 * value:.2f} % of all {n:,}.",
        "Exactly." if exact else far,
        status_of(answer),
        drawing=bare(span_bar(ends[0], value, ends[1], f"share of all {answer.of_what}")),
        private=answer.private,
        headline=count if exact else f"{count} ± {whole_records(wide)}" if wide else count,
    )


def _derived(said: str, found: Derived) -> PageAnswer:
    usual, bound = of_error(found.expected_error, found.error_bound), found.error_bound
    value = rounded(found.value, usual, bound)
    finite = math.isfinite(bound)
    far = reach(
        None if usual is None else off_by(found.value, value, usual, 2),
        off_by(found.value, value, bound) if finite else None,
        found.confidence,
    )
    notes = []
    if found.few_records:
        notes.append("It is over so few records that it could be anything: widen the condition.")
    if found.bias:
        notes.append(f"Values are held in steps, which may put it off by {upward(found.bias)} besides.")
    if found.count is not None and found.count_bound is not None and 0.0 < found.count_bound < math.inf:
        around = whole_records(found.count_bound)
        notes.append(f"It is about {records(found.count)} {found.of_what}, give or take {around}.")
    return PageAnswer(
        value,
        f"{said}.",
        "Exactly." if bound == 0.0 and not usual else far,
        notes=tuple(notes),
        private=found.private,
        headline=value if usual is None else f"{value} ± {off_by(found.value, value, usual, 2)}",
    )


def _usual_ends(values: Any, errors: Sequence[float | None], bounds: Sequence[float]) -> Any:
    """Return the ends of usual errors around numbers, or of bounds where one is unknown; None without any."""
    pairs = list(zip(errors, bounds, strict=True))
    usual = [of_error(None if error is None else float(error), bound) for error, bound in pairs]
    if any(one is None for one in usual):
        usual = [bound if math.isfinite(bound) else None for bound in bounds]
    if any(one is None for one in usual):
        return None, None
    known = [float(one) for one in usual if one is not None]
    lows = [max(0.0, value - one) for value, one in zip(values, known, strict=True)]
    return lows, [value + one for value, one in zip(values, known, strict=True)]


def _cell_errors(answer: Answer) -> list[float | None]:
    errors = answer.count_expected_error
    size = int(np.size(answer.value))
    if errors is None:
        return [None] * size
    if np.ndim(errors):
        return [float(one) for one in np.ravel(errors)]
    return [float(errors)] * size


def _far_of_many(errors: Sequence[float | None], bound: float, sure: float) -> str:
    """Return how far off each of many numbers of records may be."""
    known = [of_error(one, bound) for one in errors]
    usual = max((one for one in known if one is not None), default=None)
    usual = usual if None not in known else None
    far = reach(
        None if usual is None else whole_records(usual),
        whole_records(bound) if math.isfinite(bound) else None,
        sure,
        together=True,
    )
    return far if far == NOTHING else f"Each number: {far[:1].lower()}{far[1:]}"


def _table(said: str, answer: Answer, beta: float) -> PageAnswer:
    n, counts = answer.n or 1, np.asarray(answer.count, np.float64)
    bound, errors = n * answer.error_bound, _cell_errors(answer)
    far = _far_of_many(errors, bound, 1.0 - beta)
    more: dict[str, Any] = {"status": status_of(answer), "private": answer.private}
    labels = [[label(one) for one in axis] for axis in answer.labels.values()]
    names = [shortened(name) for name in answer.labels]
    more["headline"] = f"a table of {counts.size:,} numbers"
    if len(labels) == 1:
        lows, highs = _usual_ends(counts.tolist(), errors, [bound] * counts.size)
        drawing = bare(bars(labels[0], counts, lows, highs, title=f"{answer.of_what} by {names[0]}"))
        rows = [
            (one, records(count), "" if error is None else f"± {whole_records(of_error(error, bound) or 0)}")
            for one, count, error in zip(labels[0], counts.tolist(), errors, strict=True)
        ]
        notes = ("Lines on the bars: the usual error.",) if lows is not None else ()
        return PageAnswer(said, "", far, notes=notes, drawing=drawing,
                    head=(names[0], answer.of_what, "usual error"), rows=tuple(rows[:MOST_ROWS]),
                    cut=max(0, len(rows) - MOST_ROWS), **more)  # fmt: skip
    if len(labels) == 2:
        shown = counts[:MAPPED, :MAPPED]
        most = max(float(shown.max(initial=0.0)), 1.0)
        shades = [[max(0, min(9, int(9 * one / most))) for one in row] for row in shown.tolist()]
        rows2 = [
            (name, *map(records, row)) for name, row in zip(labels[0][:MAPPED], shown.tolist(), strict=True)
        ]
        cut = len(labels[0]) > MAPPED or len(labels[1]) > MAPPED
        notes = (f"Cut to {MAPPED} rows and columns: the file holds all.",) if cut else ()
        return PageAnswer(said, "", far, notes=notes, head=(f"{names[0]} \\ {names[1]}", *labels[1][:MAPPED]),
                    rows=tuple(rows2), shades=tuple(map(tuple, shades)), **more)  # fmt: skip
    return PageAnswer(said, f"{counts.size:,} numbers: take them as a file.", far, **more)


def _series(said: str, found: Groups) -> PageAnswer:
    """Return a count for each period: drawn, and as a table."""
    (labels,), (name,) = found.labels, found.keys
    values, bounds = found.values.ravel().tolist(), found.error_bounds.ravel().tolist()
    errors = [None if math.isnan(one) else one for one in found.expected_errors.ravel().tolist()]
    lows, highs = _usual_ends(values, errors, bounds)
    texts = [label(one) for one in labels]
    rows = [
        (
            text,
            records(value),
            "" if (usual := of_error(error, bound)) is None else f"± {whole_records(usual)}",
            f"± {whole_records(bound)}" if math.isfinite(bound) else "unknown",
        )
        for text, value, error, bound in zip(texts, values, errors, bounds, strict=True)
    ]
    sure = found.confidence if all(map(math.isfinite, bounds)) else 0.0
    return PageAnswer(
        said,
        "",
        _far_of_many(errors, max(bounds, default=0.0), sure),
        notes=("Lines on the bars: the usual error.",) if lows is not None else (),
        drawing=bare(bars(texts, values, lows, highs, title=f"records by {name}")),
        head=(shortened(name), "records", "usual error", "provably"),
        rows=tuple(rows[:MOST_ROWS]),
        cut=max(0, len(rows) - MOST_ROWS),
        private=found.private,
        headline=f"{len(rows):,} numbers",
    )


def _statement(said: str, found: AnswerTable) -> PageAnswer:
    """Return the rows of a statement: each number with its usual error and its bound below."""
    left = sum(place < len(found.keys) for _, place in found.columns)
    ordered = sorted(found.columns, key=lambda column: column[1] >= len(found.keys))
    rows = []
    for row in range(min(len(found), MOST_ROWS)):
        cells: list[Any] = []
        for _, place in ordered:
            if place < len(found.keys):
                cells.append(label(found.labels[row][place]))
                continue
            at = place - len(found.keys)
            value, bound = float(found.values[row, at]), float(found.error_bounds[row, at])
            error = float(found.expected_errors[row, at])
            cells.append(_cell(value, None if math.isnan(error) else error, bound))
        rows.append(tuple(cells))
    sure = min(found.confidences, default=0.0)
    notes = [f"Rows: {found.chosen}."] if found.chosen else []
    notes += [
        f"{shortened(name)}: values are held in steps, which may put it off by {upward(bias)} besides."
        for name, bias in zip(found.names, found.biases, strict=True)
        if bias
    ]
    far = reach("the first", "the second", sure, together=True)
    return PageAnswer(
        said,
        "",
        f"Below each number: {far[:1].lower()}{far[1:]}",
        notes=tuple(notes),
        head=tuple(shortened(name) for name, _ in ordered),
        rows=tuple(rows),
        left=left,
        cut=max(0, len(found) - MOST_ROWS),
        private=found.private,
        headline=f"{len(found):,} row{'s' * (len(found) != 1)}",
    )


def _cell(value: float, error: float | None, bound: float) -> tuple[str, list[str]]:
    if math.isnan(value):
        return "too few records", []
    usual = of_error(error, bound)
    text = rounded(value, usual, bound)
    if bound == 0.0:
        return text, ["exactly"]
    parts = [] if usual is None else [f"usually ± {off_by(value, text, usual, 2)}"]
    parts.append(f"provably ± {off_by(value, text, bound)}" if math.isfinite(bound) else "nothing is proved")
    return text, parts


# -- what an answer would cost ------------------------------------------------------------------------------


def explained_of(
    found: Explanation, n: int, beta: float, wish: Wished | None = None, *, wishes: bool = False
) -> list[str]:
    """Return what a question may cost who asks, and what it would be worth to them, in sentences.

    Args:
        wishes: Whether it can be asked how exact an answer is to be.
    """
    many, known = found.answers, found.constants + found.repeats
    said = [f"It asks for {many:,} number{'s' * (many != 1)}."]
    worth = _worth(found, n, beta)
    if wish is not None and (found.payable or found.free):
        worth = [f"The answer would be as exact as you ask: {wish.said}."]
    if found.free:
        one = "It is" if many == 1 else "All are"
        exactly = " exactly enough" if wish is not None else ""
        return [*said, f"{one} known already{exactly}, so it costs nothing.", *worth]
    if known:
        said.append(f"{known:,} of them {'is' if known == 1 else 'are'} known already, and free.")
    if not found.payable:
        what = "measuring" if wish is None else "an answer so exact"
        said.append(
            f"Too little is left to pay for {what}, so nothing would be measured or spent: you would get "
            "what was learned so far, without a check."
        )
        if wish is not None:
            said.append("Ask less exactly: that costs less.")
        elif wishes and found.left > 0.0:
            said.append("Say how exact you need it: that can cost less.")
    else:
        price = f"It costs you at most {part(min(1.0, found.at_most + found.tables))} of the budget"
        if wish is not None and found.of_part is not None:
            price = f"It costs you at most {two_digits(found.at_most)} of the budget"
            price += f", {two_digits(found.of_part)} of your share"
        one = "It is" if many - known == 1 else "All are" if _all_bought(found) else f"{found.bought:,} are"
        if found.bought:
            price += f". {one} measured for this question"
        if _all_bought(found):
            said.append(f"{price}.")
        else:
            others = "the others cost nothing" if found.bought else "nothing"
            said.append(f"{price}; {others}, if what was learned so far is good enough.")
    if found.shared:
        said.append(
            f"Whoever asks next also buys tables for {part(found.shared)} of the budget, which serve "
            "everybody: no share pays for them."
        )
    return [*said, *worth]


def _all_bought(found: Explanation) -> bool:
    """Whether all that is not known is bought by itself: no test decides whether it is measured."""
    if found.prices:
        return not any(one.taken and one.way == "test" for one in found.prices)
    return 0 < found.bought == found.answers - found.constants - found.repeats


def cost_said(paid: Mapping[str, float], status: str) -> str:
    """Return what a user has paid for an answer; "" where it is not known, or the status says it."""
    if not paid:
        return ""
    if not paid["paid"]:
        return "" if status.endswith(("free.", "spent on it.")) else "It cost you nothing."
    of_budget, of_share = two_digits(paid["paid"]), two_digits(paid["paid_of_part"])
    return f"It cost you {of_budget} of the budget, {of_share} of your share."


def exactness_of(facts: PublicFacts, spanned: bool) -> dict[str, Any] | None:
    """Return what the page says of how exact one can ask; None where one cannot."""
    if spanned:
        return None
    wish = facts.within
    usual = "by what was learned so far, or a measurement"
    if wish is not None:
        usual = f"{PROVABLY if wish.certain else USUALLY} within {100 * wish.radius:.3g} % of all records"
    finest = f"{100 * facts.finest:.3g}" if facts.finest else ""
    return {"usual": usual, "finest": finest}


def too_fine(finest: float, n: int) -> str:
    """Return that a wish is finer than one may have, in words."""
    return (
        f"You may ask for numbers within {100 * finest:.3g} % of all records, that is "
        f"{n * finest:,.6g}, and this needs finer ones. Ask less exactly; nothing was spent."
    )


def _worth(found: Explanation, n: int, beta: float) -> list[str]:
    sure = 1.0 - beta
    usual = of_error(found.expected, found.bound_easy)
    finite = math.isfinite(found.bound_easy)
    if found.bound_derived is not None:
        if math.isinf(found.bound_derived):
            return ["It would be over so few records that nothing could be said of it: widen the condition."]
        return [f"The result: provably within {upward(found.bound_derived)}."]
    if found.bound_easy == 0.0:
        return ["The answer would be exact."]
    far = reach(
        None if usual is None else whole_records(n * usual),
        whole_records(n * found.bound_easy) if finite else None,
        sure,
    )
    each = "The answer" if found.answers == 1 else "Each number"
    said = [f"{each}: {far[:1].lower()}{far[1:]}" if far != NOTHING else far]
    if found.payable and not (found.free or _all_bought(found)) and math.isfinite(found.bound_hard):
        said.append(f"If it is measured: provably within {whole_records(n * found.bound_hard)}.")
    return said


# -- the page of a user -------------------------------------------------------------------------------------


def gauge_of(view: Shown, you: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is left, of the whole budget and of a user's share, in words and as drawings."""
    statistics = view.statistics
    left = max(0.0, 1.0 - statistics.spent)
    own = you["left"] / you["share"] if you["share"] else 0.0
    shared = float(view.owed / view.account.capacity) if view.account.capacity else 0.0
    begun = bool(view.account.spent)
    return {
        "all": left_of_all(view.hits_left(None), left),
        "own": left_of_own(you, not isinstance(view, Grown)),
        "all_bar": bare(share(left, "left of the budget, of all")),
        "own_bar": bare(share(own, "left of your share")),
        "first": "" if begun or not shared else part(shared),
        "restarts": statistics.restarts_left,
    }


def left_of_all(measured_left: int, left: float) -> str:
    """Return what is left of the whole budget, in words; `page.js` says the same."""
    return f"Of the whole budget: {part(left)} is left, enough for {_measurements(measured_left)}."


def left_of_own(you: Mapping[str, Any], wishes: bool) -> str:
    """Return what is left of a user's share, in words; `page.js` says the same.

    Args:
        wishes: Whether it can be asked how exact an answer is to be.
    """
    own = you["left"] / you["share"] if you["share"] else 0.0
    if you["hard_left"]:
        return f"Of your share: {part(own)} is left, enough for {_measurements(you['hard_left'])}."
    unless = ", unless you say how exact you need it and that costs less" if wishes and you["left"] else ""
    return (
        f"Of your share {part(own)} is left, too little for a measurement: new questions are answered "
        f"from what was learned so far, without a check{unless}. What was told before stays free."
    )


def _measurements(many: int) -> str:
    return f"at least {many:,} measurement{'s' * (many != 1)}" if many else "no further measurement"


def record_rows(latest: Sequence[tuple[int, Answer]]) -> list[tuple[str, str, str, str]]:
    """Return answers as rows of a table, the newest first."""
    rows: list[tuple[str, str, str, str]] = []
    parts = 0
    for _, one in reversed(latest):
        said = in_words(one.query)
        if said.startswith(PIECE):
            parts = parts + 1 if rows and rows[-1][0] == said else 1
            if parts > 1:
                rows[-1] = (said, f"{parts:,} numbers", "", "")
                continue
        rows.append((said, *_record(one)))
    return rows


def _record(one: Answer) -> tuple[str, str, str]:
    bound = (one.n or 0) * one.error_bound
    if isinstance(one.value, np.ndarray):
        return f"{one.value.size:,} numbers", "", short_status(one)
    usual = of_error(one.count_expected_error, bound)
    off = usual if usual is not None else bound
    far = "" if one.error_bound == 0.0 or not math.isfinite(off) else f"± {whole_records(off)}"
    return records(float(one.count)), far, short_status(one)


def attributes_of(domain: Domain) -> list[dict[str, Any]]:
    """Return what is known of a record: names, values, and labels to choose from."""
    return [
        {
            "name": name,
            "values": values_of(kind),
            "options": _options(kind),
            "ordered": bool(kind.ordered),
        }
        for name, kind in domain
    ]


def _options(kind: Any) -> list[str]:
    if isinstance(kind, Categorical) or kind.size <= MOST_OPTIONS:
        labels = [kind.label(code) for code in range(min(kind.size, MOST_OPTIONS))]
        return ["missing" if one is None else str(one)[:200] for one in labels]
    return []


def form_of(domain: Domain, form: Mapping[str, str], grown: Grown | None) -> dict[str, Any]:
    """Return what the form offers, and what it holds."""
    kinds = [*KINDS.items(), *([] if grown is None else [SERIES])]
    rows = [{part: form.get(f"{part}{row}", "") for part in "aovw"} for row in range(ROWS)]
    return {
        "kinds": kinds,
        "operators": [*OPERATORS.items()],
        "names": list(domain.names),
        "held": {name: form.get(name, "") for name in HELD},
        "rows": rows,
        "labels": [] if grown is None else sorted(grown.labels),
    }


def periods_of(grown: Grown) -> dict[str, Any]:
    """Return what periods there are, and what of them is protected."""
    rows = [
        (label_, level, f"{n:,}", "late rows of earlier ones among them" if late else "")
        for label_, n, level, _, late in grown.rows()
    ]
    return {"rows": rows, "protects": _capital(f"{grown.protects}."), "opened": len(rows) <= FEW}


def history_rows(put: Sequence[Put], headline: Any) -> list[dict[str, str]]:
    """Return a user's questions as rows, each with its address and what it was told, where that is kept."""
    return [
        {
            "query": one.query,
            "said": _capital(shortened(one.said, 160)),
            "when": f"{datetime.datetime.fromtimestamp(one.when, datetime.UTC):%Y-%m-%d %H:%M}",
            "told": headline(one.query),
        }
        for one in put
    ]


def title_of(view: Shown) -> str:
    """Return what the page is about."""
    return f"Private answers about {view.n:,} {whose(view.statistics.unit)}"


def problem_of(problem: Problem) -> dict[str, str]:
    """Return a refusal in words."""
    code = problem.code
    return {
        "title": TITLES.get(code, "This cannot be answered"),
        "detail": problem.detail or SENTENCES.get(code, "The request cannot be read."),
    }
