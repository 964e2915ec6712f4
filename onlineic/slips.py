"""Slips of a caller: an argument or a name that does not exist is told with the one that was meant.

Python's own words name neither; `public` marks what is called by name, once for each function and class.
"""

import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from onlineic.errors import InvalidCallError, shown

__all__ = ["Spelled", "meant", "nearest", "public", "unknown"]

T = TypeVar("T")
LONGEST_LIST = 300  # characters of a list of arguments
# what other libraries and textbooks call it: {what the call or the class must have: what to write}
MEANT: dict[str, dict[str, str]] = {
    # arguments
    "sep": {"delimiter": "write delimiter=';'"},
    "na_values": {"missing": "write missing=['NA']"},
    "na": {"missing": "write missing=['NA']"},
    "epsilon": {
        "budget": "write budget=Budget(epsilon=1.0, delta=1e-9)",
        "statistics": "write statistics().budget.epsilon",
    },
    "eps": {"budget": "write budget=Budget(epsilon=1.0, delta=1e-9)"},
    "delta": {"budget": "write budget=Budget(epsilon=1.0, delta=1e-9)"},
    "alpha": {"certify": "an accuracy to certify is certify=0.05"},
    "accuracy": {"certify": "an accuracy to certify is certify=0.05"},
    "T": {
        "hard_answers": "the number of updates to plan for is hard_answers=20",
        "alpha": "it follows from alpha=0.1",
    },
    "c": {
        "hard_answers": "the number of updates to plan for is hard_answers=20",
        "alpha": "it follows from alpha=0.1",
    },
    "k": {"max_queries": "the length of the stream is max_queries=1000"},
    "eta": {
        "update": "a rule has its own step: write update=MultiplicativeWeights(rate=0.1)",
        "rate": "write rate=0.1",
    },
    "learning_rate": {
        "update": "a rule has its own step: write update=MultiplicativeWeights(rate=0.1)",
        "rate": "write rate=0.1",
    },
    "seed": {
        "noise": "noise that can be repeated protects nobody; to simulate write noise=SimulatedNoise(1)"
    },
    "neighbors": {"hard_answers": "the table tells: PrivateData.from_records(.., neighbours='add-remove')"},
    "neighbours": {"hard_answers": "the table tells: PrivateData.from_records(.., neighbours='add-remove')"},
    "unit": {"hard_answers": "the table tells: PrivateData.from_records(.., unit=Unit(person='id'))"},
    "domain": {"hard_answers": "the table has its domain already: leave it out"},
    "by": {"attribute": "by group write group_by('sex', aggregate='mean', of='age')"},
    "groupby": {"attribute": "by group write group_by('sex', aggregate='mean', of='age')"},
    "group_by": {"attribute": "by group write group_by('sex', aggregate='mean', of='age')"},
    "freq": {"by": "write by='month'"},
    "tz": {"zone": "write zone='Europe/Paris'"},
    "format": {"formats": "write formats=['%d/%m/%Y']"},
    "min": {
        "low": "write low=",
        "first": "write first=",
        "quantile": "the least value is one person's, and never released; write quantile('age', 0.01)",
    },
    "max": {
        "high": "write high=",
        "last": "write last=",
        "quantile": "the largest value is one person's, and never released; write quantile('age', 0.99)",
    },
    "low": {"first": "write first=", "bracket": "write bracket[0]"},
    "high": {"last": "write last=", "bracket": "write bracket[1]"},
    "rows": {"units": "all rows of a person count as one; write weigh='rows', at_most=10 to count rows"},
    # names
    "from_pandas": {"from_frame": "write from_frame(table, domain)"},
    "from_polars": {"from_frame": "write from_frame(table, domain)"},
    "from_arrow": {"from_frame": "write from_frame(table, domain)"},
    "from_dataframe": {"from_frame": "write from_frame(table, domain)"},
    "from_parquet": {"from_frame": "write from_frame('FILE.parquet', domain)"},
    "from_dict": {
        "from_records": "write from_records(columns, domain)",
        "of": "write Domain.of(age=range(17, 91), sex=['F', 'M'])",
    },
    "from_sql": {"from_dbapi": "write from_dbapi(connection, 'table', domain)"},
    "from_data": {"of": "a domain is public, never read from the table: write Domain.of(age=range(17, 91))"},
    "infer": {"of": "a domain is public, never read from the table: write Domain.of(age=range(17, 91))"},
    "read_csv": {
        "from_csv": "write from_csv('FILE.csv', domain)",
        "PrivateData": "write PrivateData.from_csv('FILE.csv', domain)",
    },
    "columns": {"domain": "write domain.names", "names": "write names"},
    "shape": {"domain": "write domain.shape"},
    "head": {"domain": "records are private: ask OnlineIC(data, budget)"},
    "counts": {"domain": "counts are private: ask OnlineIC(data, budget)"},
    "count": {"answer": "write answer(where(..)).count"},
    "query": {"answer": "write answer(where(..))"},
    "ask": {"answer": "write answer(where(..))"},
    "describe": {"summary": "write summary()"},
    "budget": {"statistics": "write statistics().budget"},
    "budget_left": {"statistics": "write 1 - statistics().spent"},
    "remaining": {"statistics": "write 1 - statistics().spent"},
    "average": {"mean": "write mean('age')"},
    "avg": {"mean": "write mean('age')"},
    "std": {"variance": "write variance('age').value ** 0.5", "standard_error": "write standard_error"},
    "percentile": {"quantile": "write quantile('age', 0.9)"},
    "value_counts": {"histogram": "write histogram('sex')"},
    "crosstab": {"answer": "write answer(marginal('sex', 'race'))"},
    "bound": {"error_bound": "write error_bound"},
    "margin": {"error_bound": "write error_bound"},
    "ci": {"bracket": "write bracket"},
    "lower": {"bracket": "write bracket[0]"},
    "upper": {"bracket": "write bracket[1]"},
    "result": {"value": "write value"},
    "at_most": {"below": "write below(51) for at most 50"},
    "less_than": {"below": "write below(50)"},
    "above": {"at_least": "write at_least(31) for above 30"},
    "greater_than": {"at_least": "write at_least(31) for above 30"},
    "isin": {"one_of": "write one_of('F', 'M')"},
    "Session": {"OnlineIC": "write OnlineIC(data, budget)"},
    "mean": {"OnlineIC": "a session is asked: OnlineIC(data, budget).mean('age')"},
    "histogram": {"OnlineIC": "a session is asked: OnlineIC(data, budget).histogram('age')"},
}


def nearest(word: object, known: Iterable[object]) -> object | None:
    """Return the one of some names or labels that a word is most likely meant for, or None.

    The same but for case, then a close spelling, then the only one that begins the word or that it begins:
    'Female' is meant for 'F'.
    """
    import difflib  # of a message alone: imported with it

    text = (word if isinstance(word, str) else shown(word))[:99].strip().casefold()
    names = {str(name).strip().casefold(): name for name in known}
    if text in names:
        return names[text]
    close = difflib.get_close_matches(text, names, 1)
    if close:
        return names[close[0]]
    begun = [name for name in names if name and text and (text.startswith(name) or name.startswith(text))]
    return names[begun[0]] if len(begun) == 1 else None


def meant(word: str, known: Collection[str]) -> str | None:
    """Return what to write in place of a word that is none of the known ones, as a sentence, or None."""
    for needed, text in MEANT.get(word, {}).items():
        if needed in known:
            return f"{text}."
    near = nearest(word, known)
    return None if near is None else f"did you mean {shown(near, 200)}?"


def unknown(of: str, name: str, known: Callable[[], Iterable[str]]) -> AttributeError:
    """Return the error of a name that something, called `of`, does not have."""
    hint = None
    if name[:1] != "_":  # Python looks for those by itself, and often
        names = [one for one in known() if one[0] != "_"]
        hint = None if name in names else meant(name, names)
    return AttributeError(f"{of} has no attribute {shown(name)}; {hint or f'see dir({of}).'}")


class Spelled(type):
    """The class of a class whose loaders are looked for by the names that other libraries have."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise unknown(cls.__name__, name, lambda: dir(cls))


def public(thing: T) -> T:
    """Mark a function or class of the public face: it tells a slip in its arguments, or in a name of its own.

    Of a class all public methods are marked that it defines itself. A call that Python itself refuses, since
    its arguments do not fit, raises `InvalidCallError`; nothing has run then. Every other call is as it was.
    """
    if not isinstance(thing, type):
        return _checked(thing)  # type: ignore[arg-type, return-value]
    for name, held in list(vars(thing).items()):
        inner = held.__func__ if isinstance(held, classmethod | staticmethod) else held
        if (name[0] == "_" and name != "__init__") or not inspect.isfunction(inner):
            continue
        if hasattr(inner, "__wrapped__"):  # a loader tells it itself, and keeps its columns out of frames
            continue
        marked = _checked(inner)
        setattr(thing, name, marked if inner is held else type(held)(marked))
    if not any("__getattr__" in vars(base) for base in thing.__mro__):
        thing.__getattr__ = _no_attribute  # type: ignore[attr-defined]
    return thing


def _no_attribute(self: object, name: str) -> Any:
    raise unknown(type(self).__name__, name, lambda: dir(type(self)))


def _checked(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def door(*given: Any, **named: Any) -> Any:
        try:
            return call(*given, **named)
        except TypeError as error:
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None:  # from inside: no fault of the arguments
                raise
        raise wrong_call(call, given, named)

    return door


def wrong_call(call: Callable[..., Any], given: Sequence[Any], named: Collection[str]) -> InvalidCallError:
    """Return what is wrong with the arguments of a call that Python has refused; quotes no value of them.

    Args:
        given: Values without a name, of a method with its object or class.
        named: Names of the others.
    """
    parameters, name, doc = [*inspect.signature(call).parameters.values()], call.__name__, call.__doc__
    if given and parameters[:1] and parameters[0].name in ("self", "cls"):
        owner = given[0] if isinstance(given[0], type) else type(given[0])
        made = name == "__init__"
        name, doc = (owner.__name__, owner.__doc__) if made else (f"{owner.__name__}.{name}", doc)
        parameters, given = parameters[1:], given[1:]
    by_place = [
        one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    known = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    example = _example(name, doc)
    for word in named:
        if word not in known:
            instead = meant(word, known) or _listed(word, known)
            return InvalidCallError(f"{name} must get arguments that it has, got {shown(word)}; {instead}")
    if len(given) > len(by_place):
        most = f"{len(by_place)} without a name" + (f" ({_cut(by_place)})" if by_place else "")
        others = _cut([f"{one}=.." for one in known if one not in by_place])
        remedy = (
            f"write {example}" if example else f"name the others: {others}" if others else "leave them out"
        )
        return InvalidCallError(f"{name} must get at most {most}, got {len(given)} values; {remedy}.")
    twice = [one for one in by_place[: len(given)] if one in named]
    if twice:
        return InvalidCallError(f"{name} must get {twice[0]} once, got it twice; leave out one of them.")
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [one for one in parameters if one.default is one.empty and one.kind not in several]
    lacking = [one.name for one in needed if one.name not in {*named, *by_place[: len(given)]}]
    call_of_it = example or f"{name}({', '.join(one.name for one in needed)})"
    return InvalidCallError(f"{name} must get {' and '.join(lacking)}, got none; write {call_of_it}.")


def _listed(word: str, known: Sequence[str]) -> str:
    """Return what arguments there are, and where something by attribute goes, as a condition."""
    said = f"it has {_cut(known)}" if known else "it has none"
    for argument, text in (
        ("where", f"a condition on attributes is where={{{shown(word)}: ..}}"),
        ("query", f"a condition on attributes is where({word}=..)"),
        ("attributes", f"write Domain.of({word}=range(17, 91))"),
    ):
        if argument in known:
            return f"{said}; {text}."
    return f"{said}."


def _cut(words: Sequence[str]) -> str:
    text = ", ".join(words)
    return text if len(text) <= LONGEST_LIST else text[: LONGEST_LIST - 3] + "..."


def _example(name: str, doc: str | None) -> str | None:
    """Return a call as its documentation writes one first, if it does."""
    lines = (line.strip() for line in (doc or "").splitlines())
    written = rf"[\w.]*\b{re.escape(name.rpartition('.')[2])}\(.*\)"
    found = (re.search(written, line) for line in lines if line.startswith(">>> "))
    return next((one[0] for one in found if one), None)
