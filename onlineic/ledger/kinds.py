"""What a line of a ledger says: one table of the kinds of lines, and how each field is written and read.

The names of kinds and fields stand in files: they stay, whatever a class is called. What is read is
distrusted: of another form, or outside its range, it raises, whichever exception that is.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.of_table import TableCharge
from onlineic.domain.domain import Domain
from onlineic.ledger.records import (
    Annotation,
    BlockBegun,
    BoughtTables,
    Certified,
    Checkpoint,
    Closed,
    CountPaid,
    Drawn,
    Easy,
    EasyBatch,
    Forfeited,
    Hard,
    NodeOpened,
    Noted,
    Paid,
    Record,
    Reserved,
    Resumed,
    Shared,
    Single,
    ToldAnswer,
    UpdateFailed,
)
from onlineic.queries.batch import Boxes, Queries, code_type
from onlineic.queries.exact import (
    floats_from_json,
    floats_to_json,
    integers_from_json,
    integers_to_json,
    question_from_json,
    question_to_json,
    target_from_json,
    target_to_json,
)
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.queries.within import Within

DURABILITIES = ("hits", "all")
LINK = 32  # bytes
Line = dict[str, Any]


class _Form(NamedTuple):
    """How a value is written to a line, and read from it; the value `left_out` is not written."""

    write: Callable[[Any], Any]
    read: Callable[[Any, Any], Any]
    left_out: Any = ...


def _holding(holds: Callable[[Any], bool]) -> _Form:
    """Return the form of a value that is written as it is, and must meet a condition when it is read."""
    return _Form(lambda value: value, lambda written, _: _checked(written, holds))


def _checked(value: Any, holds: Callable[[Any], bool]) -> Any:
    if not holds(value):
        raise ValueError
    return value


def _tuple(one: _Form) -> _Form:
    return _Form(
        lambda values: [one.write(value) for value in values],
        lambda written, domain: tuple(one.read(part, domain) for part in _checked(written, _is_list)),
    )


def _or_none(one: _Form) -> _Form:
    return _Form(
        lambda value: None if value is None else one.write(value),
        lambda written, domain: None if written is None else one.read(written, domain),
    )


def _object(
    make: Callable[..., Any], holds: Callable[[Any], bool] = lambda _: True, /, **forms: Any
) -> _Form:
    """Return the form of an object: by the names in the file the forms of fields, or (field, form).

    An object that was read must meet the condition `holds`.
    """
    pairs = {at: (at, form) if isinstance(form, _Form) else form for at, form in forms.items()}
    fields = [(at, name, form, form.left_out is not ...) for at, (name, form) in pairs.items()]

    def write(one: Any) -> Line:
        values = [(at, getattr(one, name), form, can_miss) for at, name, form, can_miss in fields]
        return {
            at: form.write(value)
            for at, value, form, can_miss in values
            if not can_miss or value != form.left_out
        }

    def read(line: Line, domain: Domain | None) -> Any:
        values = {
            name: form.read(line[at], domain)
            for at, name, form, can_miss in fields
            if not can_miss or at in line
        }
        return _checked(make(**values), holds)

    return _Form(write, read)


def _is_list(value: Any) -> bool:
    return type(value) is list


def _one_of(*choices: str) -> _Form:
    return _holding(lambda one: one in choices)


def _told(written: Any, _: Domain) -> float | tuple[float, ...]:
    cells = written if _is_list(written) else [written]
    _checked(cells, lambda cells: cells and all(type(one) is float and math.isfinite(one) for one in cells))
    return tuple(cells) if cells is written else cells[0]


TEXT = _holding(lambda one: type(one) is str)
WHOLE = _holding(lambda one: type(one) is int)
COUNT = _holding(lambda one: type(one) is int and one >= 0)
TRUTH = _holding(lambda one: type(one) is bool)
NUMBER = _holding(lambda one: type(one) is float and 0.0 <= one < math.inf)
FILE = _holding(lambda one: len(bytes.fromhex(one)) in (0, LINK))
HEAD = _Form(bytes.hex, lambda written, _: bytes.fromhex(written))
TOLD = _Form(lambda value: value, _told)
FRACTION = _Form(str, lambda written, _: Fraction(written))
ORDER = FRACTION._replace(left_out=None)
FLOATS = _Form(floats_to_json, lambda written, _: floats_from_json(written))
QUESTION = _Form(question_to_json, question_from_json)
GUESS = _Form(
    lambda guess: guess if isinstance(guess, int) else list(guess),
    lambda written, _: tuple(map(int, written)) if isinstance(written, list) else int(written),
)
CHARGE = _object(Charge, amount=FRACTION, event=TEXT, unit=TEXT, order=ORDER)
ACCOUNT = _object(Filter, capacity=FRACTION, unit=TEXT, order=ORDER)
BUDGET = _object(partial(Budget, allow_large_epsilon=True), epsilon=NUMBER, delta=NUMBER, order=ORDER)


def account_to_json(account: Filter) -> Line:
    """Return an account as JSON, without what is spent."""
    written: Line = ACCOUNT.write(account)
    return written


def account_from_json(written: Line) -> Filter:
    """Return the account, nothing spent."""
    account: Filter = ACCOUNT.read(written, None)
    return account


def _measurement_to_json(one: Measurement, question: Any = None) -> Line:
    target = {} if one.target is question else target_to_json(one.target)
    return {**target, "values": floats_to_json(one.values), "scale": one.scale}


def _measurement(written: Line, domain: Domain, question: Any = None) -> Measurement:
    own = "partition" not in written and "query" not in written
    target = question if own else target_from_json(written, domain)
    values, scale = floats_from_json(written["values"]), float(written["scale"])
    blocks = target.blocks if isinstance(target, Partition) else 1
    if values.shape != (blocks,) or not np.isfinite([*values, scale]).all() or scale <= 0.0:
        raise ValueError
    return Measurement(target, values, scale)


def _is_of_its_blocks(one: Easy) -> bool:
    """Whether a number was tested of a query, and one of each block of a cross table."""
    blocks = one.query.partition.blocks if isinstance(one.query, BoundMarginal) else None
    return (len(one.guess) if isinstance(one.guess, tuple) else None) == blocks


TABLES = _tuple(_Form(_measurement_to_json, _measurement))
HEARD = _tuple(QUESTION)._replace(left_out=())
WITHIN = _object(Within, radius=NUMBER, certain=TRUTH, parts=COUNT, steepness=COUNT)._replace(left_out=None)
WISH = _object(dict, within=WITHIN)
EASY = _object(Easy, _is_of_its_blocks, query=QUESTION, guess=GUESS)


def _hard_to_json(one: Hard | Single) -> Line:
    released = _measurement_to_json(one.measurement, one.query)
    charge = CHARGE.write(one.charge)
    return {**EASY.write(one), "released": released, "charge": charge, **WISH.write(one)}


def _hard(line: Line, domain: Domain) -> Hard:
    asked = EASY.read(line, domain)
    released = _measurement(line["released"], domain, asked.query)
    wish = WISH.read(line, domain)
    return Hard(asked.query, asked.guess, released, CHARGE.read(line["charge"], domain), **wish)


def _single(line: Line, domain: Domain) -> Single:
    one = _hard(line, domain)
    own = one.query.partition if isinstance(one.query, BoundMarginal) else one.query
    if one.measurement.target != own:
        raise ValueError
    return Single(one.query, one.guess, one.measurement, one.charge, one.within)


def _batch_to_json(batch: EasyBatch) -> Line:
    boxes = [
        {
            "axes": list(group.axes),
            "places": integers_to_json(group.places),
            "low": integers_to_json(group.low),
            "high": integers_to_json(group.high),
            "turned": integers_to_json(group.turned.astype(np.int64)),
            **({} if group.roundings is None else {"roundings": floats_to_json(group.roundings)}),
        }
        for group in batch.queries.boxes
    ]
    others = [[place, question_to_json(query)] for place, query in batch.queries.others]
    guesses = integers_to_json(batch.guesses)
    return {"count": len(batch), "boxes": boxes, "others": others, "guesses": guesses}


def _batch(line: Line, domain: Domain) -> EasyBatch:
    count, kind, boxes = int(line["count"]), code_type(domain), []
    for group in line["boxes"]:
        axes = tuple(map(int, group["axes"]))
        places = integers_from_json(group["places"], (-1,)).astype(np.int32)
        low, high = (integers_from_json(group[name], (len(places), len(axes))) for name in ("low", "high"))
        sizes = np.array([domain.shape[axis] for axis in axes], np.int64)
        if ((low < 0) | (low >= high) | (high > sizes) | (high - low == sizes)).any():
            raise ValueError
        turned = integers_from_json(group["turned"], (len(places),)).astype(np.bool_)
        roundings = None
        if "roundings" in group:  # part of the bound of each answer
            roundings = floats_from_json(group["roundings"])
            if roundings.shape != places.shape or not ((roundings >= 0) & (roundings <= 1)).all():
                raise ValueError
        boxes.append(Boxes(axes, places, low.astype(kind), high.astype(kind), turned, roundings))
    others = tuple((int(place), question_from_json(query, domain)) for place, query in line["others"])
    held = [place for group in boxes for place in group.places.tolist()] + [place for place, _ in others]
    if sorted(held) != list(range(count)) or not all(isinstance(query, Query) for _, query in others):
        raise ValueError
    queries = Queries.recorded(domain, boxes, others, count)  # type: ignore[arg-type]
    return EasyBatch(queries, integers_from_json(line["guesses"], (count,)))


def _kind(made: type[Any], /, *holds: Callable[[Any], bool], **forms: Any) -> tuple[type[Any], _Form]:
    return made, _object(made, *holds, **forms)


TAKEN = _object(TableCharge, charge=CHARGE, apart=FRACTION)
DRAWN = _object(dict, budget=BUDGET, account=_or_none(ACCOUNT), what=_one_of("session", "release"), file=FILE)
KINDS: Mapping[str, tuple[type[Any], _Form]] = {
    "easy": (Easy, EASY),
    "certified": _kind(
        Certified, lambda one: isinstance(one.query, Query) and isinstance(one.guess, int),
        query=QUESTION, guess=GUESS, within=WITHIN._replace(left_out=...),
    ),
    "easy_batch": (EasyBatch, _Form(_batch_to_json, _batch)),
    "hard": (Hard, _Form(_hard_to_json, _hard)),
    "single": (Single, _Form(_hard_to_json, _single)),
    "opened": _kind(
        BoughtTables, released=("measurements", TABLES), charge=CHARGE, heard=HEARD, within=WITHIN
    ),
    "reserved": _kind(Reserved, charge=CHARGE),
    "burned": _kind(Forfeited, charge=CHARGE, reason=_one_of("interrupted", "restarted", "closed", "bought")),
    "update_failed": _kind(UpdateFailed, error=TEXT),
    "closed": _kind(Closed, constants=COUNT, repeats=COUNT, untested=COUNT, rounding=NUMBER),
    "resumed": _kind(Resumed, version=TEXT, durability=_one_of(*DURABILITIES)),
    # annotations of records
    "checkpoint": _kind(
        Checkpoint, lambda one: one.parameters != (),
        records=COUNT, values=FLOATS, version=COUNT, failures=COUNT, parameters=_or_none(_tuple(FLOATS)),
    ),
    "told": _kind(ToldAnswer, record=COUNT, value=TOLD),
    "paid": _kind(Paid, lambda one: one.name != "", record=COUNT, name=TEXT),
    # of the total of a table, and of one that grows
    "drawn": (Drawn, _Form(
        lambda one: {**TAKEN.write(one.taken), **DRAWN.write(one)},
        lambda line, domain: Drawn(TAKEN.read(line, domain), **DRAWN.read(line, domain)),
    )),
    "noted": _kind(Noted, lambda one: len(one.head) == LINK, file=TEXT, lines=WHOLE, head=HEAD),
    "shared": _kind(Shared, lambda one: one.account.order is not None, account=ACCOUNT, apart=FRACTION),
    "count": _kind(CountPaid, label=TEXT, charge=CHARGE),
    "block": _kind(
        BlockBegun, lambda one: one.drawn is None or one.n == max(1, one.drawn),
        label=TEXT, n=COUNT, late=TRUTH, drawn=WHOLE._replace(left_out=None),
    ),
    "node": _kind(NodeOpened, label=TEXT, blocks=_tuple(TEXT), file=FILE, charge=CHARGE),
}  # fmt: skip
NAMES = {record: name for name, (record, _) in KINDS.items()}


def line_of(record: Record | Annotation) -> Line:
    """Return a record as a JSON object, without its place in a file."""
    name = NAMES[type(record)]
    return {"kind": name, **KINDS[name][1].write(record)}


def read_line(line: Line, domain: Domain) -> Record | Annotation:
    """Return the record of a line; whatever is raised means that it has none."""
    record: Record | Annotation = KINDS[line["kind"]][1].read(line, domain)
    return record
