"""Trees of texts that differ in their numbers and texts alone: parsed once for all of a shape.

A shape is the tokens of a text without the literals that a condition compares with. A tree is kept once its
shape came twice, if every literal stands in one node of it and the tree of the text itself is the same with
its literals put in. It is handed to one reader at a time: whoever comes meanwhile parses.
"""

import contextlib
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from typing import Any, final

import attrs

MOST_KEPT = 64  # shapes
PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)
# before which a text is compared as it is: after others, such as names of types, the parser looks into it
BEFORE_TEXTS = ("EQ", "NEQ", "GT", "GTE", "LT", "LTE", "COMMA", "L_PAREN", "BETWEEN", "AND", "LIKE", "ILIKE")

Parse = Callable[[list[Any]], Any]  # tokens to their tree


@final
@attrs.frozen(eq=False)
class _Shape:
    """A tree, and the nodes of its literals in the order of the text."""

    tree: Any
    literals: list[Any]

    def filled(self, texts: Sequence[str]) -> Any:
        """Return the tree with other literals."""
        for node, text in zip(self.literals, texts, strict=True):
            node.args["this"] = text
        return self.tree


@final
class Shapes:
    """The shapes of texts that were read."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Shape | None] = {}  # None: it came once

    def __len__(self) -> int:
        return len(self._known)

    @contextlib.contextmanager
    def tree(self, tokens: list[Any], kind: Hashable, parse: Parse) -> Iterator[Any]:
        """Yield the tree of tokens, which must not be used later.

        Args:
            tokens: List of sqlglot's tokens.
            kind: Dialect, and what the text is: part of its shape.
            parse: (tokens) -> tree. Whatever it raises is raised.
        """
        places = [place for place in range(len(tokens)) if _is_open(tokens, place)]
        texts = [tokens[place].text for place in places]
        opened = {*places}
        shape = (kind, *(_fixed(token, place in opened) for place, token in enumerate(tokens)))
        came = shape in self._known
        held = self._known.pop(shape, None)
        if held is None:
            tree = parse(tokens)
            if came:
                held = _learned(tokens, places, tree, parse)
        else:
            tree = held.filled(texts)
        try:
            yield tree
        finally:
            while len(self._known) >= MOST_KEPT:
                self._known.pop(next(iter(self._known)), None)
            self._known[shape] = held


@cache
def kind_of(token_type: Any) -> str:
    """Return the name of a type of tokens: asked of the enum each time, names are a tenth of a statement."""
    return str(token_type.name)


def _learned(tokens: list[Any], places: Sequence[int], tree: Any, parse: Parse) -> _Shape | None:
    """Return the shape of tokens, if each literal is one node of their tree and changes nothing else."""
    marks = {place: _mark(tokens[place], number) for number, place in enumerate(places)}
    marked = [
        token if place not in marks else _with(token, marks[place]) for place, token in enumerate(tokens)
    ]
    try:
        other = parse(marked)
        nodes: dict[str, list[Any]] = {}
        for node in other.walk():
            if type(node).__name__ == "Literal":
                nodes.setdefault(str(node.this), []).append(node)
        found = [nodes[marks[place]] for place in places]
        if any(len(held) != 1 for held in found):
            return None
        shape = _Shape(other, [held[0] for held in found])
        filled = shape.filled([tokens[place].text for place in places])
        return shape if repr(filled) == repr(tree) else None
    except Exception:  # a text that takes no other literal has a shape of its own
        return None


def _is_open(tokens: list[Any], place: int) -> bool:
    """Return whether a token is a literal that may be another in the same tree."""
    kind = kind_of(tokens[place].token_type)
    if kind == "NUMBER":
        return PLAIN.fullmatch(tokens[place].text) is not None
    return kind == "STRING" and place > 0 and kind_of(tokens[place - 1].token_type) in BEFORE_TEXTS


def _fixed(token: Any, opened: bool) -> Hashable:
    return token.token_type if opened else (token.token_type, token.text)


def _mark(token: Any, number: int) -> str:
    return (
        f"{8_750_193_000 + number}" if kind_of(token.token_type) == "NUMBER" else f"text {number} of 8750193"
    )


def _with(token: Any, text: str) -> Any:
    return type(token)(token.token_type, text, token.line, token.col, token.start, token.end)
