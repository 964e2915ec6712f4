"""The trivial baselines behind the session's interface: per-query noise, noisy tables, one noisy histogram.

They are real (epsilon, delta) mechanisms for replace-one neighbours with public n, or for those that add or
remove a record with the number that `offline.count` released. Where one of them wins, use it.

Proof: docs/theory/mechanisms.md, 9.1, 9.2.
"""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NoReturn, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.accounting.budget import Budget
from onlineic.accounting.neighbours import ADD_REMOVE, REPLACE_ONE
from onlineic.ask.bind import bind_query
from onlineic.baselines.noise import Choice, GridNoise, Name, least_noise, moments, moved_to
from onlineic.data.private import PrivateData
from onlineic.data.release import (
    charged,
    check_outside,
    check_types,
    checked_noise,
    guarded,
    is_private,
    log_failure,
    most_of,
    records_of,
    released,
    stamp,
)
from onlineic.display.html import card, facts
from onlineic.domain.domain import Domain
from onlineic.errors import (
    ForkedSessionError,
    InvalidParameterError,
    SessionSealedError,
    SessionStateError,
    TooLargeError,
    checked_integer,
    checked_real,
    shown,
)
from onlineic.noise.sources import Noise
from onlineic.queries.answers import Answer, Status
from onlineic.queries.counted import Counted
from onlineic.queries.expressions import Expression
from onlineic.queries.memory import AnswerMemory
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query, totals
from onlineic.queries.tables import Tables
from onlineic.reentry import NonReentrantLock

PREFIX_CELLS = 2**22
MAX_CELLS = 2**26  # of a table
SEALED = (
    "a baseline must not have been interrupted between reading the data and its answers, but was: its budget "
    "stays spent; ask again what it has released, or make another (budgets add)."
)


@final
@attrs.frozen
class BaselineStatistics:
    """A snapshot of a baseline: public facts only, named as in `SessionStatistics`.

    Attributes:
        asked, easy, hard, repeat, untested: Answers by status: easy are constants, hard are measured,
            untested have no bound.
        hard_left: Measured answers that can still be paid; None: no limit.
        spent: Share of the budget that is used up, in [0, 1].
        deviation: Standard deviation of one released number, fraction of records.
        sealed: Whether a read was interrupted: only what was released before is answered.
        private: False: simulated or foreign noise, NOT PRIVATE.
    """

    asked: int
    easy: int
    hard: int
    repeat: int
    untested: int
    hard_left: int | None
    spent: float
    budget: Budget
    noise: Name
    deviation: float
    sealed: bool
    private: bool

    def _repr_html_(self) -> str:
        told = [(name.replace("_", " "), value) for name, value in attrs.asdict(self, recurse=False).items()]
        return card("Statistics of a baseline", facts(told[:-1]), private=self.private)


@final
class PerQueryNoise:
    """Fresh noise on every answer, at the full budget for a number of answers fixed in advance.

    Laplace noise of scale k/epsilon counts is pure; Gaussian noise has sigma = sqrt(k)/mu counts
    (`baselines.noise.least_noise`). The budget is charged here, for all the answers; each is counted as used
    before the data are read for it. A failure between the read and its answers seals the baseline: whatever
    needs another read is refused by `SessionSealedError`; with `cache`, what was released before is given
    again.

    Dwork & Roth (2014), Theorems 3.6 and 3.16.

    Args:
        answers: At least 1. k, answers that are paid for; with `cache`, distinct ones. Later queries are
            untested: they are answered by their share of the domain, without a look at the data.
        noise_law: Best: the law of the smaller variance at this budget.
        cache: Whether a repeated query (or its complement) gets its first answer again, free.
        beta: In (0, 1). Failure probability of an answer's `error_bound`.
        counted: Where the number of records is private: as `offline.count` released it, which has a beta of
            its own.
        noise: By default the system's entropy.

    Raises:
        InvalidParameterError: Also for Gaussian noise with delta = 0.
        InfeasibleAccuracyError: If the noise would leave the samplers' range.
        SessionStateError: If it was made before: a budget is paid once, for one baseline.
    """

    __slots__ = ("_left", "_memory", "_paid", "_process", "_radius", "_sealed", "_shell")

    def __init__(
        self,
        data: PrivateData,
        budget: Budget,
        *,
        answers: int,
        noise_law: Choice = "gaussian",
        cache: bool = False,
        beta: float = 0.05,
        counted: Counted | None = None,
        noise: Noise | None = None,
    ) -> None:
        if hasattr(self, "_shell"):
            raise SessionStateError("a baseline must be made once, got __init__ again; make a new one.")
        paid = checked_integer("answers", answers, at_least=1)
        budget = _of_table(data, budget)
        moved = budget.neighbours.number(0, 1)
        shell = _Shell(data, budget, (paid * moved, paid * moved**2), noise_law, beta, noise, counted)
        radius = shell.law.radius(shell.beta)
        charged(data, budget, shell.noise)
        # nothing answers before: a constructor that is refused leaves what others may still hold
        self._paid = self._left = paid
        self._shell, self._radius = shell, radius
        self._memory = AnswerMemory(lasting=True) if cache else None
        self._sealed = False
        self._process = os.getpid()

    def answer(self, query: Expression | Query | Any) -> Answer:
        """Answer one query, as `answer_many` does."""
        return self.answer_many([query])[0]

    def answer_many(self, queries: Iterable[Expression | Query | Any]) -> list[Answer]:
        """Answer queries in order, all checked before the first is.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If a query cannot be asked; nothing was
                spent.
            SessionSealedError: If a read failed, now or before, and a query has no answer from then. Its
                cause is not chained: a traceback could hold a private number.
            ForkedSessionError: In another process than that which made the baseline.
        """
        if os.getpid() != self._process:  # before the lock: in a forked process nobody may ever release it
            raise ForkedSessionError(
                "a baseline must be used in the process that made it, got a forked one; make another there."
            )
        asked = list(queries)  # a generator may ask on its own
        return self._shell.lock.run(lambda: self._answered(asked))

    def _answered(self, queries: list[Any]) -> list[Answer]:
        bound = self._shell.bound(queries)
        if self._sealed and any(query.constant is None and not self._known(query) for query in bound):
            raise SessionSealedError(SEALED)
        fresh = iter(self._measured(self._payable(bound)))
        return [self._released(query, fresh) for query in bound]

    def _payable(self, queries: Sequence[Query]) -> list[Query]:
        """The queries that will be measured, in order: a function of the queries and what is left."""
        new: list[Query] = []
        seen: set[tuple[Any, ...]] = set()
        for query in queries:
            if query.constant is None and query.key not in seen and not self._known(query):
                new.append(query)
                if self._memory is not None:
                    seen.add(query.key)
        return new[: self._left]

    def _measured(self, queries: list[Query]) -> list[float]:
        """Noisy counts: charged, then read, then drawn; sealed until they are here, if ever."""
        if not queries:
            return []
        shell, bits = self._shell, self._shell.law.grid_bits
        shifts = np.array([bits - query.grid_bits for query in queries])

        def private() -> list[float]:
            exact = shell.data.exact_counts_many(queries) << shifts
            numbers = exact + shell.law.draw(shell.noise, len(queries))
            return [math.ldexp(number, -bits) for number in numbers.tolist()]

        check_outside(shell.data, shell.noise)
        self._sealed = True  # a second Ctrl-C finds it closed
        self._left -= len(queries)
        numbers = guarded(private, log_failure, SEALED)
        self._sealed = False
        return numbers

    def _known(self, query: Query) -> bool:
        return self._memory is not None and self._memory.recall(query, 0) is not None

    def _released(self, query: Query, fresh: Iterator[float]) -> Answer:
        if query.constant is not None:
            return self._shell.constant(query)
        known = self._memory.recall(query, 0) if self._memory is not None else None
        if known is not None:
            value, slack = known.again(query)
            if query.complement != known.question.complement:  # one minus it
                slack += self._shell.off / self._shell.n
            return self._shell.answer(query, "repeat", value, known.radius + slack)
        count = next(fresh, None)
        if count is None:
            return self._shell.untested(query)
        n = self._shell.n
        answer = self._shell.answer(query, "hard", count / n, self._radius / n + query.rounding)
        if self._memory is not None:
            self._memory.remember(query, answer.value, answer.error_bound, 0)
        return answer

    def statistics(self) -> BaselineStatistics:
        return self._shell.lock.run(
            lambda: self._shell.statistics(
                left=0 if self._sealed else self._left,
                spent=(self._paid - self._left) / self._paid,
                sealed=self._sealed,
            )
        )

    def __repr__(self) -> str:
        cached = ", cached" if self._memory is not None else ""
        left = "sealed" if self._sealed else f"{self._left} of {self._paid} answers left"
        return f"PerQueryNoise({self._shell.describe()}, {left}{cached})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("PerQueryNoise cannot be copied: its budget would be copied too.")


@final
class NoisyTables:
    """Noisy marginal tables of attribute sets named in advance, released once; every answer is free.

    One release of m tables has L1 sensitivity 2m and squared L2 sensitivity 2m. A query f on a table of C
    cells is answered by f . v + mean(f) (n - sum v), which uses that n is public: its variance is (f . f -
    (sum f)^2/C) times that of a cell. Nothing is clipped. A query takes the smallest table that holds its
    attributes; one that no table holds is untested: it gets its share of the domain.

    Privacy holds for every analyst. `error_bound` holds for queries chosen without knowledge of the noise: an
    analyst who asks for the cells that look too large can be off by far more.

    Dwork & Roth (2014), Theorem 3.6 and Example 3.2 (histograms), with sensitivity 2m for replaced records.

    Args:
        tables: Iterable of iterables of attribute names. The attribute sets; duplicates count once.
        noise_law, beta, counted, noise: As in `PerQueryNoise`.
    """

    __slots__ = ("_held", "_radius", "_shell", "_supersets")

    def __init__(
        self,
        data: PrivateData,
        budget: Budget,
        tables: Iterable[Iterable[str]],
        *,
        noise_law: Choice = "best",
        beta: float = 0.05,
        counted: Counted | None = None,
        noise: Noise | None = None,
    ) -> None:
        budget = _of_table(data, budget)
        sets = _attribute_sets(data.domain, tables)
        _check_cells(data.domain, sets)
        near = budget.neighbours
        moved = len(sets) * near.table_l1(), len(sets) * near.table_squared()
        self._shell = shell = _Shell(data, budget, moved, noise_law, beta, noise, counted)
        self._held: dict[tuple[int, ...], tuple[Domain, Tables]] = {}
        self._supersets: dict[tuple[int, ...], tuple[int, ...] | None] = {}
        self._radius = lru_cache(maxsize=None)(partial(shell.law.sum_radius, shell.beta))
        targets = [
            Partition(data.domain, axes, tuple(np.arange(data.domain.shape[axis]) for axis in axes))
            for axes in sets
        ]
        bits = shell.law.grid_bits

        def noisy(target: Partition) -> Floats:
            cells = (data.exact_counts(target) << bits) + shell.law.draw(shell.noise, target.blocks)
            return np.ldexp(cells.astype(np.float64), -bits)

        all_noisy = released(data, budget, shell.noise, lambda: [noisy(target) for target in targets])
        for target, counts in zip(targets, all_noisy, strict=True):
            counts += (shell.n - counts.sum()) / counts.size  # the linear optimum, as n is public
            names = tuple(data.domain.names[axis] for axis in target.axes)
            self._held[target.axes] = (
                data.domain.project(*names),
                Tables(counts.reshape(target.shape), PREFIX_CELLS),
            )

    def answer(self, query: Expression | Query | Any) -> Answer:
        return self.answer_many([query])[0]

    def answer_many(self, queries: Iterable[Expression | Query | Any]) -> list[Answer]:
        asked = list(queries)  # a generator may ask on its own
        return self._shell.lock.run(lambda: self._answered(asked))

    def _answered(self, queries: list[Any]) -> list[Answer]:
        bound = self._shell.bound(queries)
        places: dict[tuple[int, ...], list[int]] = {}
        for index, query in enumerate(bound):
            table = self._table_of(query.axes)
            if query.constant is None and table is not None:
                places.setdefault(table, []).append(index)
        values = np.full(len(bound), np.nan)
        for axes, members in places.items():
            domain, cells = self._held[axes]
            moved = [moved_to(bound[index], axes, domain) for index in members]
            units = np.array([1 << bound[index].grid_bits for index in members])
            values[members] = totals(moved, cells, self._shell.n) / units
        return [self._released(*pair) for pair in zip(bound, values.tolist(), strict=True)]

    def _table_of(self, axes: tuple[int, ...]) -> tuple[int, ...] | None:
        """The smallest table over a superset of the axes, or None."""
        if axes not in self._supersets:
            fitting = [held for held in self._held if set(axes) <= set(held)]
            self._supersets[axes] = min(fitting, key=lambda held: self._held[held][0].size, default=None)
        return self._supersets[axes]

    def _released(self, query: Query, count: float) -> Answer:
        if query.constant is not None:
            return self._shell.constant(query)
        table = self._table_of(query.axes)
        if table is None:
            return self._shell.untested(query)
        n, cells = self._shell.n, self._held[table][0].size
        total, squares = moments(query)
        spread = max(0.0, squares - total * total) * cells  # f . f - (sum f)^2 / C
        support = round(total * cells) if query.grid_bits == 0 else None
        mean = 1.0 - total if query.complement else total
        radius = self._radius(spread, support, cells) + mean * self._shell.off
        return self._shell.answer(query, "hard", count / n, radius / n + query.rounding)

    def statistics(self) -> BaselineStatistics:
        return self._shell.lock.run(lambda: self._shell.statistics(None, 1.0, sealed=False))

    def __repr__(self) -> str:
        return f"NoisyTables({self._shell.describe()}, {len(self._held)} tables)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("NoisyTables cannot be copied: it holds the private table.")


def noisy_histogram(
    data: PrivateData,
    budget: Budget,
    *,
    noise_law: Choice = "best",
    beta: float = 0.05,
    counted: Counted | None = None,
    noise: Noise | None = None,
) -> NoisyTables:
    """Return the one noisy table of all attributes: Lap(2/epsilon) a cell, or N(0, 2/mu^2) where less noisy.

    Args:
        data, budget, noise_law, beta, counted, noise: As in `NoisyTables`.
    """
    check_types(data, budget)
    return NoisyTables(
        data, budget, [data.domain.names], noise_law=noise_law, beta=beta, counted=counted, noise=noise
    )


@final
class _Shell:
    """What all baselines share: checked arguments, the law, binding and counting."""

    __slots__ = ("_counts", "beta", "budget", "data", "law", "lock", "n", "noise", "off", "private")

    def __init__(
        self,
        data: PrivateData,
        budget: Budget,
        moved: tuple[int, int],
        law: str,
        beta: float,
        noise: Noise | None,
        counted: Counted | None,
    ) -> None:
        self.data, self.budget = data, budget
        self.n, self.off = records_of(data, counted)
        self.beta = checked_real("beta", beta, above=0.0, below=1.0)
        self.law: GridNoise = least_noise(most_of(data), budget, moved[0], law, moved[1])
        self.noise = checked_noise(noise)
        self.private = is_private(self.noise) and (counted is None or counted.private)
        self.lock = NonReentrantLock("a baseline")
        self._counts: dict[Status, int] = {"easy": 0, "hard": 0, "repeat": 0, "untested": 0}

    def bound(self, queries: Iterable[Any]) -> list[Query]:
        return [bind_query(query, self.data.domain, self.law.grid_bits) for query in queries]

    def answer(self, query: Query, status: Status, value: float, error_bound: float) -> Answer:
        self._counts[status] += 1
        return Answer(
            value,
            self.n * value,
            status,
            error_bound,
            self.private,
            query=query,
            n=self.n,
            n_bound=self.off,
            beta=self.beta,
        )

    def constant(self, query: Query) -> Answer:
        value = (query.constant or 0) / (1 << query.grid_bits)
        return self.answer(query, "easy", value, query.rounding + value * self.off / self.n)

    def untested(self, query: Query) -> Answer:
        share = moments(query)[0]
        return self.answer(query, "untested", 1.0 - share if query.complement else share, math.inf)

    def statistics(self, left: int | None, spent: float, sealed: bool) -> BaselineStatistics:
        return BaselineStatistics(
            asked=sum(self._counts.values()),
            **self._counts,
            hard_left=left,
            spent=spent,
            budget=self.budget,
            noise=self.law.name,
            deviation=self.law.deviation / self.n,
            sealed=sealed,
            private=self.private,
        )

    def describe(self) -> str:
        n = f"{self.n} ± {self.off}" if self.off else f"{self.n}"
        return (
            f"n={n}, epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}, "
            f"{self.law.name} noise of {self.law.deviation:.4g} records{stamp(self.private)}"
        )


def _of_table(data: PrivateData, budget: Budget) -> Budget:
    """Return the budget for the neighbours of the table, if these are a table and a budget."""
    check_types(data, budget)
    if data.neighbours != ADD_REMOVE:
        return budget
    if budget.neighbours not in (REPLACE_ONE, ADD_REMOVE):
        raise InvalidParameterError(
            f"budget must be for the neighbours of the table, {data.neighbours}, got one for "
            f"{budget.neighbours}; nothing was spent: leave neighbours= of the budget out."
        )
    return attrs.evolve(budget, neighbours=data.neighbours)


def _attribute_sets(domain: Domain, tables: Iterable[Iterable[str]]) -> list[tuple[int, ...]]:
    """Distinct axes of the tables, in order."""
    sets = []
    for names in tables:
        if isinstance(names, str):
            raise InvalidParameterError(
                f"tables must be lists of attribute names, got the text {shown(names)}; write [[..], ..]."
            )
        sets.append(domain.project_axes(*names))
    if not sets or not all(sets):
        raise InvalidParameterError("tables must be one or more sets of attributes, got none; name some.")
    return list(dict.fromkeys(sets))


def _check_cells(domain: Domain, sets: Sequence[tuple[int, ...]]) -> None:
    """Refuse tables that do not fit into memory, before anything is charged."""
    cells = max(math.prod(domain.shape[axis] for axis in axes) for axes in sets)
    if cells > MAX_CELLS:
        raise TooLargeError(
            f"tables must have at most {MAX_CELLS:,} cells each, got {cells:,}; name smaller sets of "
            "attributes."
        )
