"""What a statement makes of its aggregates: arithmetic, functions and cases, as a tree without SQL."""

from typing import Literal, final

import attrs

Sign = Literal[
    "+", "-", "*", "/", "abs", "round", "root", "nullif", "coalesce", "greatest", "least", "correlation"
]


@final
@attrs.frozen
class Part:
    """An aggregate, by its place."""

    place: int


@final
@attrs.frozen
class Known:
    """A number that is written; NaN is NULL."""

    value: float


@final
@attrs.frozen
class Made:
    """An operation on parts; `digits` are of round."""

    sign: Sign
    parts: tuple["Formula", ...]
    digits: int = 0


@final
@attrs.frozen
class Choice:
    """One formula where a test holds of a group, another where it does not."""

    test: "Test"
    one: "Formula"
    other: "Formula"


@final
@attrs.frozen
class Compared:
    """Two formulas beside each other."""

    one: "Formula"
    operator: str
    other: "Formula"
    negated: bool = False


@final
@attrs.frozen
class IsNull:
    """Whether a formula is NULL."""

    one: "Formula"
    negated: bool


@final
@attrs.frozen
class OfKey:
    """Whether the label of a key is one of some, by their places."""

    key: int
    places: frozenset[int]


@final
@attrs.frozen
class Joined:
    """Tests of which all must hold, or one."""

    every: bool
    parts: tuple["Test", ...]


Formula = Part | Known | Made | Choice
Test = Compared | IsNull | OfKey | Joined


def parts_of(formula: Formula | Test) -> set[int]:
    """Return the places of the aggregates that a formula names."""
    if isinstance(formula, Part):
        return {formula.place}
    if isinstance(formula, Choice):
        return parts_of(formula.test) | parts_of(formula.one) | parts_of(formula.other)
    if isinstance(formula, Compared):
        return parts_of(formula.one) | parts_of(formula.other)
    if isinstance(formula, IsNull):
        return parts_of(formula.one)
    if isinstance(formula, Made | Joined):
        return {place for part in formula.parts for place in parts_of(part)}
    return set()


def factored(formula: Formula) -> tuple[float, Formula]:
    """Return a formula as a number times what is left of it."""
    if isinstance(formula, Made) and formula.sign == "*":
        factor, rest = 1.0, list[Formula]()
        for part in formula.parts:
            if isinstance(part, Known):
                factor *= part.value
            else:
                inner, left = factored(part)
                factor *= inner
                rest.append(left)
        if len(rest) == 1:
            return factor, rest[0]
    if isinstance(formula, Made) and formula.sign == "/" and isinstance(formula.parts[1], Known):
        factor, rest_of = factored(formula.parts[0])
        if formula.parts[1].value:
            return factor / formula.parts[1].value, rest_of
    return 1.0, formula


def times(factor: float, formula: Formula) -> Formula:
    """Return a formula times a number."""
    return formula if factor == 1.0 else Made("*", (Known(factor), formula))
