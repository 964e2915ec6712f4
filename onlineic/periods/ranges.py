"""A range of periods as one who answers: each question goes to the nodes that cover it, and counts add.

Proof: docs/theory/periods.md, 13.6, 13.7.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.ask.bind import as_condition, bind_question, check_many
from onlineic.ask.json import described
from onlineic.display.text import shortened
from onlineic.domain.dates import Dates, dates
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, checked_list, shown
from onlineic.periods.book import MOST_AXES, PeriodsBook, range_nats
from onlineic.periods.conditions import EVERYBODY, NOBODY, asked_of, runs
from onlineic.periods.pooled import Fit, Known, chosen_radius
from onlineic.plan.plan import Plan
from onlineic.queries.answers import Answer, Law, Status
from onlineic.queries.expressions import Expression
from onlineic.queries.marginals import Key, Marginal, Question
from onlineic.queries.query import Query
from onlineic.questions.derived import Answering
from onlineic.questions.linear import PublicFacts, known_error
from onlineic.questions.synthetic import Synthetic, check_sampled, drawn
from onlineic.session.asking import check_answers

# of beta, each node that an answer is made of gets this part, and the estimates of all ranges the other half
MOST_PARTS = 64
NODE_SHARE = 1.0 / (2 * MOST_PARTS)
RANGE_SHARE = 0.5
COUNT_SHARE = RANGE_SHARE / 16  # taken from that half, for numbers of records, where they are private
ORDER: tuple[Status, ...] = ("repeat", "easy", "hard", "untested")  # what is worst of the parts is said
ROUNDED_UP = 1.0 + 1e-9


class Node(Protocol):
    """What a range asks of one node: a session, or one as an asker has it."""

    @property
    def plan(self) -> Plan:
        """As it was settled."""

    def answer_many(self, queries: Any) -> Any:
        """Answer queries in order."""

    def told(self, question: Any) -> Answer | None:
        """Return what was told of a question; asks nothing."""

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return bounds that hold at once."""


class Nodes(Protocol):
    """What a range asks: the nodes of a table that grows."""

    @property
    def book(self) -> PeriodsBook:
        """Blocks and nodes."""

    @property
    def domain(self) -> Domain:
        """Of the records."""

    @property
    def beta(self) -> float:
        """Of every stated bound over at most 64 nodes."""

    @property
    def private(self) -> bool:
        """False: simulated noise."""

    def node(self, label: str) -> "Node":
        """Return the session of a node."""

    def fit(self, labels: tuple[str, ...]) -> Fit | None:
        """Return the fit to the pooled tables of some nodes, or None."""

    def known(self, label: str, query: Query) -> Known | None:
        """Return what all tables of a node say of a query, or None."""

    def finer(self, label: str, query: Query) -> tuple[float, float] | None:
        """Return (fraction, standard error) that the tables of a node's own blocks say of a query."""

    def learned(self, label: str) -> Any:
        """Return the hypothesis of a node that has released something."""


@final
@attrs.frozen(eq=False)
class _Part:
    """One question of one node, and of which question of the range it is a part.

    Attributes:
        number: Of the question of the range.
        run: The first of the periods that are asked alike.
    """

    number: int
    run: int
    node: str
    question: Any


Held = Sequence[tuple[_Part, Answer]]


@final
class Range(Answering):
    """The periods from one to another: it answers what a session does, and questions about the period too.

    The attribute of the period is called as the finest level, "month" say, and its values are the labels of
    the periods. A question goes to the nodes of least predicted variance that cover its periods, each of
    which tests and pays by itself; counts add. Made by `Periods.over`.

    Args:
        blocks: Of the range, in order.
    """

    def __init__(self, nodes: Nodes, blocks: tuple[str, ...]) -> None:
        self._nodes, self._blocks = nodes, blocks
        self._name = nodes.book.calendar.finest
        self._kind: Dates = dates(blocks[0], blocks[-1], by=self._name)
        self._domain = Domain.of({self._name: self._kind, **dict(nodes.domain)})
        self._end = [*nodes.book.blocks].index(blocks[-1]) + 1
        self._n, self._n_bound = nodes.book.number(blocks), self._off(0, len(blocks) - 1)
        if not self._n:
            raise InvalidParameterError(
                f"periods must have records to be asked, got none from {blocks[0]} to {blocks[-1]}; ask "
                "others."
            )

    @property
    def facts(self) -> PublicFacts:
        """What is public of the range: the period of a record is an attribute of its domain.

        Numbers of records are those of all its periods. Beta is that of the periods, more over more than 64
        nodes.
        """
        beta = every_beta(self._nodes.book, self._nodes.beta, self._blocks)
        return PublicFacts(self._domain, self._n, beta, self._n_bound)

    def _off(self, first: int, last: int) -> int:
        """Return how far the number of records of some periods of the range may be off."""
        return self._nodes.book.n_bound(self._blocks[first : last + 1], COUNT_SHARE * self._nodes.beta)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The periods of the range, in order."""
        return self._blocks

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that a question about all of the range is asked of."""
        return self._nodes.book.cover(self._blocks)

    def bind(self, question: Any) -> Question:
        """Return a question as it is over the range, if it can be asked; asks nothing.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If it cannot be asked.
        """
        read = self._read(question)
        for _, _, one in self._runs(read):
            if one is not NOBODY and one is not EVERYBODY:
                bind_question(one, self._nodes.domain)
        alone = isinstance(read, Query | np.ndarray)
        return bind_question(read, self._nodes.domain if alone else self._domain)

    def answer(self, query: Any) -> Answer:
        """Answer one query about the range.

        Args:
            query: Expression, Marginal, text or dict, or array of weights over the attributes of one period.
                Conditions may name the period, as any other attribute of dates.

        Returns:
            Its `error_bound` holds with probability 1 - beta. It is "hard" where one of its parts is, and
            "untested" where one is that.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If the query cannot be asked; nothing was
                spent.
        """
        return self.answer_many([query])[0]

    def answer_many(self, queries: Any) -> list[Answer]:
        """Answer queries in order; each node is asked all that concerns it at once.

        All queries are checked before the first is answered.
        """
        check_many(queries)
        asked = [self._read(one) for one in checked_list("queries", queries, remedy="write [query, ...]")]
        return [self._summed(*one) for one in zip(asked, self._asked(asked), strict=True)]

    def _read(self, query: Any) -> Any:
        """Return a question as an expression, a cross table, or what is asked of every node alike."""
        if type(query) is dict:
            query = described(query, self._domain)
        query = as_condition(query, self._domain)
        if isinstance(query, Query):
            bind_question(query, self._nodes.domain)
        elif not isinstance(query, np.ndarray):
            bind_question(query, self._domain)
        return query

    def _runs(self, question: Any) -> list[tuple[int, int, Any]]:
        """Return (first, last, question) of periods that are asked alike; each alone in a table by period."""
        inner = asked_of(question, self._name, self._kind)
        rows = self._rows(question)
        if rows is None:
            return runs(inner)
        ends = [
            0,
            *(np.flatnonzero(np.diff(rows)) + 1).tolist(),
            len(inner),
        ]  # of the periods of one row each
        found = list[tuple[int, int, Any]]()
        for start, stop in pairwise(ends):
            found += [(start + first, start + last, one) for first, last, one in runs(inner[start:stop])]
        return found

    def _rows(self, question: Any) -> Ints | None:
        """Return of every period the row of a table by period that it is in; None of other questions."""
        if type(question) is not Marginal or self._name not in question.names:
            return None
        keys = [key for name, key in zip(question.names, question.keys, strict=True) if name == self._name]
        groups = [self._of_period(key) for key in keys]
        rows = np.zeros(len(self._blocks), np.int64)
        for classes, labels in groups:
            rows = rows * len(labels) + classes
        return rows

    def _of_period(self, key: Key) -> tuple[Ints, tuple[Any, ...]]:
        """Return the group of every period by a key that is made of it, and the labels of the groups."""
        if isinstance(key, str):
            return np.arange(len(self._blocks)), self._blocks
        found = key.over(self._domain)
        return np.asarray(found.classes), found.labels

    def _asked(self, asked: Sequence[Any]) -> list[list[tuple[_Part, Answer]]]:
        """Return of every question its parts with the answers of their nodes.

        All are bound, and all nodes are there, before one is asked.
        """
        parts, by_node = self._parts(asked), dict[str, list[int]]()
        for place, part in enumerate(parts):
            by_node.setdefault(part.node, []).append(place)
        sessions = {node: self._nodes.node(node) for node in by_node}
        held: list[list[tuple[_Part, Answer]]] = [[] for _ in asked]
        answers: dict[int, Answer] = {}
        for node, places in by_node.items():
            found = sessions[node].answer_many([parts[place].question for place in places])
            answers.update(zip(places, found, strict=True))
        for place, part in enumerate(parts):
            held[part.number].append((part, answers[place]))
        return held

    def _parts(self, asked: Sequence[Any]) -> list[_Part]:
        """Return what is asked of the nodes for all questions, bound to see that it can be."""
        parts = list[_Part]()
        for number, question in enumerate(asked):
            for first, last, one in self._runs(question):
                if one is not NOBODY and one is not EVERYBODY:
                    bind_question(one, self._nodes.domain)
                    nodes = self._nodes.book.cover(self._blocks[first : last + 1])
                    parts += [_Part(number, first, node, one) for node in nodes]
        return parts

    def _told(self, part: _Part) -> Answer | None:
        """Return what its node told of a part, or what it is whatever the data; asks nothing."""
        node = self._nodes.node(part.node)
        bound = bind_question(part.question, self._nodes.domain, node.plan.weight_bits)
        if bound.constant is not None:
            return self._answer(bound.constant / (1 << bound.grid_bits), "repeat", 0.0)
        return node.told(part.question)

    def _summed(self, question: Any, held: Held) -> Answer:
        """Return the answer to one query, from those of its nodes."""
        if type(question) is Marginal:
            return self._table(question, held)
        sure, off = self._sure(question)
        value = self._sum(sure, held)
        bound = off + math.fsum(self._share(part) * answer.error_bound for part, answer in held)
        status = _worst(answer.status for _, answer in held)
        moved = self._moved(held) if status in ("easy", "repeat") else 0.0
        value, bound = value + moved, bound + abs(moved)
        expected = self._expected(held)
        known, most = self._known(held), 1.0 + self.n_bound / self.n
        estimate = error = None
        if known is not None:
            estimate, error = self._estimate(sure, held, known)
            if len(held) > 1 and all(one.gaussian for one in known):
                rounded = max(answer.query.rounding for _, answer in held if isinstance(answer.query, Query))
                radius = self._radius(held, known) + self.n_bound / self.n + rounded
                offered = [(value, expected)]
                if status in ("easy", "repeat"):
                    offered += [(min(max(estimate, 0.0), most), error), *self._fit(held)]
                # an average of fits keeps what each of them gets wrong: what is expected to err least
                offered.sort(key=lambda one: math.inf if math.isnan(one[1]) else one[1])
                for other, error_of in offered:
                    reach = (abs(other - estimate) + radius) * ROUNDED_UP
                    if reach < bound:
                        value, bound, expected = other, reach, error_of
                        break
        bound = min(bound, max(value, most - value)) if math.isfinite(bound) else bound
        law: Law | None = None if estimate is None else "gaussian"
        query = bind_question(question, self._domain) if type(question) is Expression else None
        if self.n_bound and sure:  # how far the released numbers of whole periods usually are off is not told
            expected = math.nan
        return self._answer(value, status, bound, estimate, error, query, law, expected)

    def _answer(
        self,
        value: Any,
        status: Status,
        bound: float,
        estimate: float | None = None,
        error: float | None = None,
        query: Any = None,
        law: Law | None = None,
        expected: Any = math.nan,
    ) -> Answer:
        n, private = self.n, self._nodes.private
        return Answer(
            value,
            n * value,
            status,
            bound,
            private,
            estimate,
            error,
            query,
            n,
            law=law,
            n_bound=self.n_bound,
            expected_error=None if np.isnan(expected).any() else expected,
            beta=self.beta,
        )

    def _share(self, part: _Part) -> float:
        return self._nodes.book.n(part.node) / self.n

    def _sure(self, question: Any) -> tuple[float, float]:
        """Return (fraction, how far it may be off) of all records of some periods: their number is known."""
        book = self._nodes.book
        held = [(first, last) for first, last, one in self._runs(question) if one is EVERYBODY]
        records = sum(book.number(self._blocks[first : last + 1]) for first, last in held)
        return records / self.n, sum(self._off(*run) for run in held) / self.n

    def _sum(self, sure: float, held: Held) -> float:
        return sure + math.fsum(self._share(part) * float(answer) for part, answer in held)

    def _expected(self, held: Held) -> float:
        """Return what the sum of answers errs by, as if those of one run erred alike: fits hide the same."""
        errors: dict[int, float] = {}
        for part, answer in held:
            errors[part.run] = errors.get(part.run, 0.0) + self._share(part) * known_error(answer)
        return math.hypot(*errors.values())

    def _known(self, held: Held) -> list[Known] | None:
        """Return what the tables of each part's node say of it, where all say something."""
        found = list[Known]()
        for part, answer in held:
            query = answer.query
            simple = isinstance(query, Query) and query.box is not None and len(query.axes) <= MOST_AXES
            known = self._nodes.known(part.node, query) if simple and isinstance(query, Query) else None
            if known is None:
                return None
            found.append(known)
        return found or None

    def _estimate(self, sure: float, held: Held, known: Sequence[Known]) -> tuple[float, float]:
        """Return the unbiased estimate that the tables of all parts make, and its standard error."""
        shares = [self._share(part) for part, _ in held]
        value = sure + math.fsum(share * one.value for share, one in zip(shares, known, strict=True))
        return value, math.hypot(*[share * one.error for share, one in zip(shares, known, strict=True)])

    def _radius(self, held: Held, known: Sequence[Known]) -> float:
        """Return how far the estimate may be off, for all conjunctions and ranges at once (theory 13.6).

        Periods that are asked alike are a range of their own. The radii of several add.
        """
        book, domain = self._nodes.book, self._nodes.domain
        share = RANGE_SHARE if book.counting is None else RANGE_SHARE - COUNT_SHARE
        runs: dict[int, list[int]] = {}
        for place, (part, _) in enumerate(held):
            runs.setdefault(part.run, []).append(place)
        radius = 0.0
        for places in runs.values():
            queries = [answer.query for _, answer in (held[place] for place in places)]
            nats = max(
                range_nats(book.calendar, self._blocks, self._end, domain, query)
                for query in queries
                if isinstance(query, Query)
            )
            radius += chosen_radius(
                [self._share(held[place][0]) for place in places],
                [known[place] for place in places],
                [book.n(held[place][0].node) for place in places],
                nats - math.log(share * self._nodes.beta),
            )
        return radius

    def _fit(self, held: Held) -> list[tuple[float, float]]:
        """Return (fraction, expected error) of the fit to pooled tables, if all periods are asked alike."""
        nodes, query = tuple(part.node for part, _ in held), held[0][1].query
        if nodes != self.nodes or len({part.run for part, _ in held}) > 1 or not isinstance(query, Query):
            return []
        fit = self._nodes.fit(nodes)
        if fit is None:
            return []
        return [(float(fit.hypothesis.evaluate(query)), fit.predictor.error(query))]

    def _moved(self, held: Held) -> float:
        """Return by what the tables of finer periods move the answers of closed ones.

        Each answer is averaged with what these say, by one over the squares of the expected errors.
        """
        moved = 0.0
        for part, answer in held:
            own, query = answer.expected_error, answer.query
            known = self._nodes.finer(part.node, query) if own and isinstance(query, Query) else None
            if own and known is not None:
                value, error = known
                weight = own**2 / (own**2 + error**2)
                moved += self._share(part) * weight * (value - float(answer))
        return moved

    def _table(self, question: Marginal, held: Held) -> Answer:
        """Return a cross table of the range, the period perhaps among its attributes."""
        bound_to, status = question.bind(self._domain), _worst(answer.status for _, answer in held)
        value, bound, expected = self._cells(question, held)
        return self._answer(value, status, bound, query=bound_to, expected=expected)

    def _cells(self, question: Marginal, held: Held) -> tuple[Floats, float, Floats]:
        """Return (cells, bound, expected errors) of a cross table, from the tables of its nodes."""
        rows = self._rows(question)
        whole = question.bind(self._domain).cells.shape
        keys = [place for place, name in enumerate(question.names) if name == self._name]
        shape = tuple(size for place, size in enumerate(whole) if place not in keys)
        groups = tuple(whole[place] for place in keys)
        values = np.zeros((math.prod(groups), *shape))
        bounds, errors = np.zeros(len(values)), np.zeros(values.shape)
        for first, last, one in self._runs(question):
            if one is EVERYBODY:
                at = 0 if rows is None else int(rows[first])
                values[at] += self._nodes.book.number(self._blocks[first : last + 1]) / self.n
                bounds[at] += self._off(first, last) / self.n
                errors[at] += math.nan if self.n_bound else 0.0
        for part, answer in held:
            at = 0 if rows is None else int(rows[part.run])
            values[at] += self._share(part) * np.asarray(answer.value)
            bounds[at] += self._share(part) * answer.error_bound
            errors[at] += self._share(part) * known_error(answer)
        value, expected = (
            np.moveaxis(each.reshape(*groups, *shape), range(len(keys)), keys) for each in (values, errors)
        )
        return value, float(bounds.max()), expected

    def synthetic(self, rows: int, seed: int = 0) -> Synthetic:
        """Return synthetic records of the range: free, and without any guarantee.

        Each period has its part of the rows, by its number of records, drawn from the hypothesis of its own
        session; its label stands with them. So a series over time is that of the periods, and the whole errs
        as their sum does: of a closed year alone ask its session, `periods["2025"].synthetic(rows)`.

        Args:
            seed: Public: the records follow from it and the hypotheses.

        Raises:
            InvalidParameterError: If a number is outside its range, or a hypothesis cannot be sampled.
            SessionStateError: If the session of a period has released nothing yet: nothing is bought for
                this.
        """
        book = self._nodes.book
        held = [label for label in self._blocks if book.blocks[label].n]
        learned = {label: self._nodes.learned(label) for label in held}
        for hypothesis in learned.values():
            rows, seed = check_sampled(hypothesis, rows, seed)
        ends = np.cumsum([book.number([label]) for label in held])
        ends = np.rint(ends / ends[-1] * rows).astype(np.int64)  # parts that sum to all
        columns: dict[str, list[Any]] = {name: [] for name in self._domain.names}
        for place, (label, many) in enumerate(zip(held, np.diff(ends, prepend=0).tolist(), strict=True)):
            if many:
                rows_of = drawn(learned[label], many, seed + (place << 32))  # no two periods draw alike
                for name, values in {self._name: [label] * many, **rows_of}.items():
                    columns[name] += values
        return Synthetic(columns, seed, self._nodes.private)

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return bounds on answers of this range that hold all at once, with probability 1 - beta.

        In the event of each node all of its answers hold together, and so their sums do. To the bound of an
        answer is added how far it is from the sum of what the nodes told: a quarter may have been closed
        since.

        Args:
            queries: Iterable of Expression, Marginal, text or dict.
            answers: What this range answered to each.

        Returns:
            Fractions; inf where a part was left untested.

        Raises:
            InvalidParameterError: If a question was never asked: nothing is asked here.
        """
        chosen = checked_list("queries", queries, remedy="write them in brackets")
        given = checked_list("answers", answers, remedy="write what answer_many returned")
        asked = [self._read(one) for one in chosen]
        check_answers([self.bind(one) for one in chosen], given)
        bounds, by_node = np.zeros(len(asked)), dict[str, list[tuple[_Part, Answer]]]()
        told: list[list[tuple[_Part, Answer]]] = [[] for _ in asked]
        unknown = np.zeros(len(asked))
        for part in self._parts(asked):
            if (known := self._told(part)) is not None:
                told[part.number].append((part, known))
            elif given[part.number].status == "untested":
                unknown[part.number] = math.inf
            else:
                raise InvalidParameterError(
                    f"queries must be answered by this range, got {shown(chosen[part.number], 200)}, of "
                    f"which {part.node} has told nothing; nothing was asked: ask answer_many first."
                )
        for at, (question, answer, held) in enumerate(zip(asked, given, told, strict=True)):
            sure, bounds[at] = self._sure(question)
            for part, one in held:
                by_node.setdefault(part.node, []).append((part, one))
            if held and type(question) is Marginal:  # the nodes speak of their tables of now
                bounds[at] += np.abs(answer.value - self._cells(question, held)[0]).max()
            elif held:  # the nodes speak of their sum
                bounds[at] += abs(float(answer) - self._sum(sure, held))
        for node, held in by_node.items():
            own = self._nodes.node(node).joint_bounds(
                [part.question for part, _ in held], [answer for _, answer in held]
            )
            for (part, _), reach in zip(held, own.tolist(), strict=True):
                bounds[part.number] += self._share(part) * reach
        return bounds + unknown

    def __repr__(self) -> str:
        nodes = shortened(", ".join(self.nodes), 60)
        return f"Range({self._blocks[0]} to {self._blocks[-1]}, n={self.n}, nodes {nodes})"


def every_beta(book: PeriodsBook, beta: float, blocks: Sequence[str] | None = None) -> float:
    """Return the failure probability of all bounds over some blocks, or all, and the coarser periods in them.

    Args:
        beta: Of the periods, which up to 64 nodes keep.
    """
    held = [*book.blocks] if blocks is None else blocks
    nodes = len(held) + book.calendar.coarser(held)
    return min(1.0, beta * (RANGE_SHARE + NODE_SHARE * max(MOST_PARTS, nodes)))


def _worst(statuses: Iterable[Status]) -> Status:
    """Return the status of an answer that is made of several; of none, nobody is asked: a repeat is free."""
    return max(statuses, key=ORDER.index, default="repeat")
