"""A private number of records: released first, known with a bound, refused where it is taken as public."""

import itertools
import math
import pickle
import warnings

import attrs
import numpy as np
import pytest

import onlineic as ic
import onlineic.session.counting
from onlineic import baselines, offline
from onlineic.accounting import ADD_REMOVE, REPLACE_ONE, ReplaceRows, laplace_charge
from onlineic.audit import total_report, verified
from onlineic.data import PrivateData
from onlineic.display.text import probability
from onlineic.domain import Unit
from onlineic.errors import (
    BudgetsAddWarning,
    InvalidDataError,
    InvalidParameterError,
    LargeDeltaWarning,
    LedgerMismatchError,
    TooFewRecordsError,
    TooLargeError,
)
from onlineic.known_noise import Estimates, TableDesign
from onlineic.ledger import MemoryLedger, read
from onlineic.noise import SimulatedNoise
from onlineic.plan import KNOWN
from onlineic.queries import Partition
from onlineic.queries.counted import Counted, divided, divided_beta
from onlineic.sparse import GumbelSparse

DOMAIN = ic.Domain.of(age=range(8), sex=["F", "M"])
BUDGET = ic.Budget(1.0, 1e-6)
PRIVATE = ic.Budget(1.0, 1e-6, neighbours=ADD_REMOVE)
DRAW = np.random.default_rng(7)
ROWS = {"age": DRAW.integers(0, 8, 4000), "sex": DRAW.choice(["F", "M"], 4000).tolist()}


def table(**settings):
    return PrivateData.from_records(ROWS, DOMAIN, neighbours="add-remove", **settings)


def opened(seed=1, budget=BUDGET, **settings):
    return ic.OnlineIC(table(), budget, noise=SimulatedNoise(seed), max_queries=50, **settings)


def test_the_table_does_not_tell_its_number():
    data = table(n_at_most=5000)

    for ask in (lambda: data.n, lambda: data.mass):
        with pytest.raises(InvalidParameterError, match="n must be released by a session"):
            ask()
    assert "4000" not in repr(data)
    assert "at most 5,000" in repr(data)
    assert (ADD_REMOVE, 5000) == (data.neighbours, data.n_at_most)


def test_a_session_releases_it_and_says_how_sure_it_is():
    session = opened()

    assert session.n != 4000
    assert abs(session.n - 4000) <= session.n_bound < 200
    assert f"n={session.n} ± {session.n_bound}, protects one record, and whether it is there" in repr(session)
    assert f"{session.n:,} ± {session.n_bound:,} records: released first" in str(session.summary())
    assert session.statistics().counted.n == session.n == session.statistics().to_dict()["counted"]["n"]
    assert 0.05 == session.beta == session.statistics().beta


def test_all_records_are_known_as_well_as_their_number():
    session = opened()
    everybody = session.answer(ic.where())

    assert (1.0, session.n) == (everybody.value, everybody.count)
    assert session.n_bound == pytest.approx(everybody.count_bound)
    assert 0.0 == session.answer(~ic.where()).error_bound  # nobody is nobody
    assert session.explain(ic.where()).bound_easy == pytest.approx(everybody.error_bound)
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    assert session.sql("SELECT COUNT(*) FROM t").count_bound == pytest.approx(session.n_bound)


@pytest.mark.parametrize("many", [False, True])
def test_one_minus_an_answer_is_bounded_with_the_number_of_records(many):
    session = opened()
    asked = [ic.where(age=ic.between(2, 4), sex="F"), ~ic.where(age=ic.between(2, 4), sex="F")]
    one, other = session.answer_many(asked) if many else map(session.answer, asked)

    assert "repeat" == other.status
    assert other.value == pytest.approx(1.0 - one.value)
    assert other.count_bound == pytest.approx(one.count_bound + session.n_bound)
    joint = session.joint_bounds(asked, [one, other])
    assert joint[1] >= joint[0]


def test_fractions_carry_the_error_of_the_number():
    session = opened()
    answer = session.answer(ic.where(sex="F"))
    share = session.n_bound / session.n

    assert answer.fraction_bound == pytest.approx((answer.error_bound + answer.value * share) / (1.0 - share))
    assert f"± {session.n_bound}" not in repr(answer)
    assert {"n_bound", "fraction_bound"} <= answer.to_dict().keys()
    copy = pickle.loads(pickle.dumps(answer))
    assert (copy, copy.n_bound, copy.fraction_bound) == (answer, answer.n_bound, answer.fraction_bound)
    plain = ic.OnlineIC(PrivateData.from_records(ROWS, DOMAIN), BUDGET, noise=SimulatedNoise(1))
    answer = plain.answer(ic.where(sex="F"))
    assert (0, 0) == (plain.n_bound, answer.n_bound)
    assert answer.error_bound == answer.fraction_bound
    assert "n_bound" not in answer.to_dict()


def misses(seed):
    """Return how far answers of a session are off, over what they say, at most."""
    session, ages, women = opened(seed), ROWS["age"], np.array(ROWS["sex"]) == "F"
    found = [(session.n, 4000, session.n_bound)]
    for low, high in itertools.combinations(range(0, 8, 2), 2):
        inside = (ages >= low) & (ages <= high)
        for query, truth in (
            (ic.where(age=ic.between(low, high)), inside),
            (~ic.where(age=ic.between(low, high), sex="F"), ~(inside & women)),
        ):
            answer = session.answer(query)
            found.append((answer.count, truth.sum(), answer.count_bound))
            found.append((answer.value, truth.mean(), answer.fraction_bound))
    mean, total, median = session.mean("age"), session.sum("age"), session.median("age")
    found.append((mean.value, ages.mean(), mean.error_bound))
    found.append((total.value, ages.sum(), total.error_bound))
    rank = np.mean(ages <= median.value)
    below = np.mean(ages < median.value)
    found.append((0.0, max(0.0, below - 0.5, 0.5 - rank), median.rank_error))
    women_mean = session.mean("age", ic.where(sex="F"))
    found.append((women_mean.value, ages[women].mean(), women_mean.error_bound))
    return max(abs(one - truth) / bound for one, truth, bound in found)


def test_bounds_hold_as_often_as_is_said():
    worst = [misses(seed) for seed in range(25)]

    assert sum(one > 1.0 for one in worst) <= 3  # each with probability .05 at most, and mostly far less


BLOCKS = [
    Partition(DOMAIN, (0, 1), (np.arange(8), np.arange(2))),
    Partition(DOMAIN, (0,), (np.arange(8),)),
    Partition(DOMAIN, (0,), (np.arange(8) // 2,)),
]
UNEVEN = [*BLOCKS[:2], Partition(DOMAIN, (0,), (np.repeat([0, 1], [6, 2]),))]
THREE = ic.Domain.of(a=range(3), b=range(3), c=range(3))
PAIRS = [Partition(THREE, axes, (np.arange(3), np.arange(3))) for axes in ((0, 1), (0, 2), (1, 2))]


def asked_of(domain):
    """Return conjunctions, complements and weights over a domain."""
    names = domain.names
    sides = [
        [None, ic.between(0, 1), ic.between(1, 2), ic.one_of(0, 2)] if kind.ordered else [None, kind.label(0)]
        for kind in domain.attributes
    ]
    found = []
    for chosen in itertools.product(*sides):
        held = {name: one for name, one in zip(names, chosen, strict=True) if one is not None}
        if held:
            found += [ic.where(held), ~ic.where(held)]
    first = np.linspace(0.0, 1.0, domain.shape[0])
    return [*found, ic.where({names[0]: ic.weights(first)}), ic.where({names[0]: ic.weights(first[::-1])})]


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    "targets",
    [BLOCKS, BLOCKS[:1], BLOCKS[1:], PAIRS, UNEVEN],
    ids=["all", "cells", "levels", "pairs", "uneven"],
)
def test_brackets_hold_whatever_the_number_of_records_is(targets, pure):
    domain, n, slack = targets[0].domain, 10**9, 0.01  # noise is nothing beside it
    design = TableDesign(targets, [1.0] * len(targets), pure)
    cells = np.random.default_rng(3).dirichlet(np.full(domain.size, 0.3)).reshape(domain.shape)
    missed = 0
    for whole in (1.0 - slack, 1.0, 1.0 + slack):
        truth = whole * cells
        others = [tuple({*range(truth.ndim)} - {*target.axes}) for target in targets]
        values = [
            np.asarray(target.measure(truth.sum(axis=axes)), float)
            for target, axes in zip(targets, others, strict=True)
        ]
        honest, slip = (Estimates(design, values, n, 0.05, one) for one in (slack, 0.0))
        for expression in asked_of(domain):
            query = expression.bind(domain)
            if query.constant is not None:
                continue
            exact = float((truth * query.weights()).sum()) / 2**query.grid_bits
            if (found := honest.bracket(query)) is not None:
                assert found[0] <= exact <= found[1]
            slipped = slip.bracket(query)
            missed += slipped is None or not slipped[0] <= exact <= slipped[1]
    assert missed  # a bracket that takes n for the number of records does not hold


@pytest.mark.parametrize("targets", [BLOCKS, PAIRS, UNEVEN], ids=["all", "pairs", "uneven"])
def test_a_bracket_counts_as_much_of_the_unknown_number_as_its_estimate_does(targets):
    """Of a sixteenth of all cells a sixteenth of what n may be off, but where levels are uneven."""
    domain, n, slack, off = targets[0].domain, 10**9, 0.01, 0.007
    design = TableDesign(targets, [1.0] * len(targets), False)
    truth = np.full(domain.shape, (1.0 + off) / domain.size)
    others = [tuple({*range(truth.ndim)} - {*target.axes}) for target in targets]
    values = [
        np.asarray(target.measure(truth.sum(axis=axes)), float)
        for target, axes in zip(targets, others, strict=True)
    ]
    held = Estimates(design, values, n, 0.05, slack, slack)
    first, second = domain.names[:2]
    for condition in (0, 2, ic.between(1, 2)):
        query = ic.where({first: condition, second: domain.attributes[1].label(0)}).bind(domain)
        exact = (1.0 + off) * float(query.weights().mean())
        (low, high), (value, error) = held.bracket(query), held.point(query)
        counted = abs(value - exact) / off

        assert slack * counted == pytest.approx((high - low) / 2.0, abs=1e-6)
        assert slack * counted == pytest.approx(error, abs=1e-6)
        assert counted <= 0.3


@pytest.mark.parametrize("pure", [False, True])
def test_a_condition_that_all_records_meet_may_be_more_than_the_released_number(pure):
    n, slack, cells = 10**9, 0.01, np.zeros((8, 2))
    cells[3, 0] = 1.0 + slack
    design = TableDesign(BLOCKS[:2], [1.0, 1.0], pure)
    values = [cells.ravel(), cells.sum(axis=1)]
    held = Estimates(design, values, n, 0.05, slack)
    for expression in (ic.where(age=3), ic.where(sex="F"), ic.where(age=ic.between(2, 5), sex="F")):
        low, high = held.bracket(expression.bind(DOMAIN))
        assert low <= 1.0 + slack <= high <= 1.0 + slack + 1e-6


def test_an_interval_reaches_to_all_records_where_there_may_be_more_than_the_released_number():
    fewer = ic.Answer(1.0, 3990.0, "easy", 0.1, True, 4000 / 3990, 1e-4, n=3990, law="gaussian", n_bound=30)
    public = ic.Answer(1.0, 3990.0, "easy", 0.1, True, 4000 / 3990, 1e-4, n=3990, law="gaussian")

    low, high = fewer.interval(0.95)
    assert low <= 4000 / 3990 <= high
    assert (
        1.0 + 30 / 3990
        == ic.Answer(1.0, 3990.0, "easy", 0.1, True, 2.0, 1e-4, n=3990, n_bound=30).interval()[1]
    )
    assert 1.0 == public.interval(0.95)[1]


def test_intervals_of_a_summary_count_on_the_number_of_records_too():
    session = opened(beta=0.1)
    session.answer(ic.where(age=2))

    said = str(session.summary())

    assert session.statistics().counted.beta > 0
    sure = 1.0 - KNOWN * session.plan.beta - session.statistics().counted.beta
    assert f"with probability {probability(sure)}; the numbers" in said
    assert probability(sure) != probability(1.0 - KNOWN * session.plan.beta)


def test_a_file_holds_what_was_counted(tmp_path):
    path = tmp_path / "file.db"
    with ic.OnlineIC(table(), BUDGET, ledger=path, table="t", max_queries=50) as session:
        answer, n = session.answer(ic.where(sex="F")), session.n
    with ic.OnlineIC.resume(path, table()) as again:
        assert (n, session.n_bound, session.beta) == (again.n, again.n_bound, again.beta)
        assert answer == again.answer(ic.where(sex="F")) or again.answer(ic.where(sex="F")).status == "repeat"
    with ic.OnlineIC(table(), BUDGET, ledger=path, table="t", max_queries=50) as again:
        assert n == again.n  # nothing is counted twice
    report = verified(read(path))
    assert report.whole
    assert (n, "one record, and whether it is there at all") == (report.counted.n, report.protects)
    with pytest.raises(LedgerMismatchError, match="neighbours must be 'add-remove', as the ledger"):
        ic.OnlineIC.resume(path, PrivateData.from_records(ROWS, DOMAIN))
    plain = tmp_path / "plain.db"
    ic.OnlineIC(PrivateData.from_records(ROWS, DOMAIN), BUDGET, ledger=plain, table="t").close()
    with pytest.raises(LedgerMismatchError, match="neighbours must be 'replace-one', as the ledger"):
        ic.OnlineIC.resume(plain, table())


def test_an_audit_sees_a_number_with_less_noise_than_is_paid(tmp_path, monkeypatch):
    drawn_number = onlineic.session.counting.drawn_number
    persons = {**ROWS, "id": np.arange(4000) // 2}
    for name, unit, less in (
        ("a", None, 1),
        ("b", Unit("id"), 1),
        ("c", Unit("id", weigh="rows", at_most=2), 1),
        ("d", None, 2),
        ("e", Unit("id", weigh="rows", at_most=2), 2),
    ):

        def sharper(*told, less=less):
            found = drawn_number(*told)
            return attrs.evolve(found, scale=found.scale / less)

        monkeypatch.setattr("onlineic.session.session.drawn_number", sharper)
        data = PrivateData.from_records(persons if unit else ROWS, DOMAIN, unit=unit, neighbours="add-remove")
        path = tmp_path / f"{name}.db"
        ic.OnlineIC(data, BUDGET, ledger=path, table="t", max_queries=50).close()
        report = verified(read(path))
        assert report.whole is (less == 1)
        assert less == 1 or "the number of records has less noise than is paid" in report.problems


def test_persons_are_counted_as_persons():
    rows = {**ROWS, "id": np.arange(4000) // 4}
    data = PrivateData.from_records(rows, DOMAIN, unit=Unit("id"), neighbours="add-remove")
    session = ic.OnlineIC(data, BUDGET, noise=SimulatedNoise(2), max_queries=50)
    answer = session.answer(ic.where(sex="F"))

    assert abs(session.n - 1000) <= session.n_bound
    assert 2**26 == data.n_at_most  # 64 parts of each
    assert "all rows of a person (by 'id'), weighed to one, and whether it is there at all" in repr(session)
    assert abs(answer.count - 500) < answer.count_bound
    assert "persons" in repr(answer)
    assert session.mean("age").count == pytest.approx(session.n)


def test_the_whole_budget_is_spent_before_anything_is_drawn():
    data = table()

    class Broken(SimulatedNoise):
        def discrete_laplace(self, scale, size):
            raise OSError("no entropy")

    with pytest.raises(ic.errors.SessionSealedError):
        ic.OnlineIC(data, BUDGET, noise=Broken(1))
    assert () == data.budgets  # simulated
    ic.OnlineIC(data, BUDGET)
    (spent,) = data.budgets
    assert (1.0, 1e-6, ADD_REMOVE) == (spent.epsilon, spent.delta, spent.neighbours)
    first, rest = divided(BUDGET)
    assert first.epsilon_exact + rest.epsilon_exact <= BUDGET.epsilon_exact
    assert (0.0, 1e-6) == (first.delta, rest.delta)
    assert 0.05 == sum(divided_beta(0.05))


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda data: ic.OnlineIC(data, BUDGET, certify=0.1), "certify must be None"),
        (lambda data: ic.OnlineIC.textbook(data, epsilon=1.0), 'neighbours must be "replace-one" in text'),
        (lambda data: ic.OnlineIC(data, BUDGET, max_queries=0), "max_queries"),
        (lambda data: ic.OnlineIC(data, BUDGET, prior="x"), "prior"),
        (lambda data: offline.mean(data, "age", epsilon=1.0), "n must be released by a session"),
        (lambda data: offline.median(data, "age", epsilon=1.0), "n must be released by a session"),
        (lambda data: data.spend(BUDGET), "budget must be for the neighbours of the table"),
        (lambda data: data.draw_on(ic.TableBudget(BUDGET)), "total must be for the neighbours of the table"),
    ],
    ids=["certify", "textbook", "max_queries", "prior", "mean", "median", "spend", "total"],
)
def test_what_needs_a_public_number_is_refused_and_nothing_is_spent(ask, match):
    data = table()

    with pytest.raises(ic.errors.OnlineICError, match=match):
        ask(data)
    assert () == data.budgets
    assert 0 == data.reads


def test_what_is_proven_for_a_public_number_alone_refuses_such_a_table():
    data, asked = table(), [ic.where(sex="F")]
    for ask in (
        lambda: offline.private_cdf(data, "age", epsilon=1.0),
        lambda: offline.mwem(data, asked, PRIVATE),
        lambda: offline.auto_avg(data, "age", epsilon=1.0, count="noisy"),
        lambda: offline.clipping_bound(data, "age", epsilon=1.0),
        lambda: offline.small_database(data, asked, epsilon=1.0, size=2),
        lambda: offline.iterative_construction(data, asked, PRIVATE, alpha=0.2),
        lambda: offline.threshold_database(data, "age", epsilon=1.0),
        lambda: offline.fraction(data, asked[0]),
        lambda: offline.column_mean(data, "age"),
        # these take a number that was counted
        lambda: baselines.PerQueryNoise(data, BUDGET, answers=5),
        lambda: baselines.noisy_histogram(data, BUDGET),
        lambda: offline.most_popular(data, "age", epsilon=1.0),
    ):
        with pytest.raises(InvalidParameterError, match="n must be released by a session"):
            ask()
    assert () == data.budgets


def test_budgets_are_for_the_neighbours_of_the_table():
    with pytest.raises(InvalidParameterError, match="budget must be for the neighbours of the table"):
        ic.OnlineIC(PrivateData.from_records(ROWS, DOMAIN), ic.Budget(1.0, 1e-6, neighbours=ADD_REMOVE))
    assert REPLACE_ONE == PrivateData.from_records(ROWS, DOMAIN).neighbours


class Below(SimulatedNoise):
    """Draws a number below 0."""

    def __init__(self):
        super().__init__(1)

    def discrete_laplace(self, scale, size):
        return np.full(size, -3)


def test_too_many_or_none_at_loading():
    with pytest.raises(InvalidDataError, match="at most n_at_most=3,999, got more") as raised:
        table(n_at_most=3999)
    assert "4000" not in str(raised.value)
    with pytest.raises(InvalidParameterError, match="neighbours must be"):
        PrivateData.from_records(ROWS, DOMAIN, neighbours="add")
    with pytest.raises(InvalidParameterError, match="n_at_most"):
        table(n_at_most=0)
    with pytest.raises(InvalidParameterError, match=r'n_at_most must be left out .*neighbours="add-remove"'):
        PrivateData.from_records(ROWS, DOMAIN, n_at_most=5000)
    many = ic.Domain.of(a=range(2**14), b=range(2**13))
    with pytest.raises(TooLargeError, match="time of a read would tell"):
        PrivateData.from_records({"a": [1], "b": [1]}, many, neighbours="add-remove")
    none = PrivateData.from_counts({"age": [0], "sex": ["F"]}, [0], DOMAIN, neighbours="add-remove")
    with pytest.raises(TooFewRecordsError, match="released number of records must be at least 1"):
        ic.OnlineIC(none, BUDGET, noise=Below())
    with pytest.raises(InvalidDataError, match="one or more"):
        PrivateData.from_counts({"age": [0], "sex": ["F"]}, [0], DOMAIN)


def test_a_delta_is_compared_with_the_released_number():
    with pytest.warns(LargeDeltaWarning, match="n="):
        ic.OnlineIC(table(), ic.Budget(1.0, 1e-2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ic.OnlineIC(table(), ic.Budget(1.0, 1e-9))
        ic.OnlineIC(table(), ic.Budget(1.0, 1e-2))  # the number is drawn and paid: nothing stops it any more


def test_a_used_ledger_is_refused_before_anything_is_counted():
    used = MemoryLedger()
    ic.OnlineIC(table(), BUDGET, ledger=used).answer(ic.where(sex="F"))
    data = table()
    with pytest.raises(LedgerMismatchError, match="ledger must be new"):
        ic.OnlineIC(data, BUDGET, ledger=used)
    assert () == data.budgets


def test_a_count_has_its_bound():
    counted = Counted(1000, divided(BUDGET)[0].epsilon_exact ** -1, 0.05)
    expected = math.log(1 / 0.05) * 20

    assert abs(counted.bound - expected) <= 1
    assert counted.slack == counted.bound / 1000
    for wrong in ({"n": 0}, {"scale": 0.5}, {"beta": 0.0}):
        with pytest.raises(InvalidParameterError):
            Counted(**{"n": 5, "scale": counted.scale, "beta": 0.5, **wrong})


@pytest.mark.parametrize("rows", [1, 2, 5, 20])
def test_a_person_with_so_many_rows_pays_for_the_count_and_all_else_together_once(rows):
    session = opened(rows_per_person=rows)
    count = rows / session.statistics().counted.scale
    rest = rows * session.plan.sparse.epsilon

    assert 0.99 < count + rest <= 1.0


def test_what_is_made_of_a_table_is_not_made_public_by_that():
    data = table()
    for made, most in ((data.projected("age"), 2**31), (PrivateData.union([data, table()]), 2**32)):
        assert (ADD_REMOVE, most) == (made.neighbours, made.n_at_most)
        with pytest.raises(InvalidParameterError, match="n must be released by a session"):
            _ = made.n
    with pytest.raises(InvalidParameterError, match="n_at_most=6,442,450,944 in all"):
        PrivateData.union([table(), table(), table()])
    with pytest.raises(InvalidParameterError, match="all public or all private"):
        PrivateData.union([table(), PrivateData.from_records(ROWS, DOMAIN)])
    held = ic.Periods(None, DOMAIN, BUDGET, levels=("month",))
    dated = held.loading("2026-01", "day")
    rows = {**ROWS, "day": ["2026-01-02"] * 4000}
    with pytest.raises(InvalidParameterError):
        held.add("2026-01", PrivateData.from_records(rows, dated, neighbours="add-remove"))
    assert {} == dict(held.blocks)


def test_a_table_of_nobody_is_loaded_as_one_of_one_is():
    none = {"age": np.zeros(0, int), "sex": [], "id": []}
    one = {"age": [1], "sex": ["F"], "id": ["a"]}
    for unit in (None, Unit("id"), Unit("id", weigh="rows", at_most=2)):
        for rows in (none, one):
            kept = {name: rows[name] for name in (("age", "sex", "id") if unit else ("age", "sex"))}
            loaded = PrivateData.from_records(kept, DOMAIN, unit=unit, neighbours="add-remove")
            with pytest.raises(TooFewRecordsError):
                ic.OnlineIC(loaded, BUDGET, noise=Below())
    counted = PrivateData.from_counts(
        {"age": np.zeros(0, int), "sex": []}, np.zeros(0, int), DOMAIN, neighbours="add-remove"
    )
    assert "n private" in repr(counted)
    numbers = ic.Domain.of(cost=ic.number(0, 10, bins=2))
    for unit, rows in itertools.product(
        (None, Unit("id")), ({"cost": [], "id": []}, {"cost": [1], "id": [1]})
    ):
        loaded = PrivateData.from_records(rows, numbers, unit=unit, neighbours="add-remove")
        with pytest.raises(TooFewRecordsError):
            ic.OnlineIC(loaded, BUDGET, noise=Below())


def test_columns_that_do_not_fit_do_not_tell_how_many_rows_there_are():
    for columns in ({"age": [1] * 321, "sex": ["F"] * 320}, {"age": np.ones((321, 2)), "sex": ["F"] * 321}):
        with pytest.raises(InvalidDataError) as raised:
            PrivateData.from_records(columns, DOMAIN, neighbours="add-remove")
        assert "32" not in str(raised.value)


def test_a_mechanism_of_a_number_of_records_is_refused_by_name():
    data, paid = table(), ic.Budget(1.0, 1e-6, neighbours=ADD_REMOVE)
    made = GumbelSparse.calibrated(paid, n=4000, hard_answers=5, max_queries=50)
    with pytest.raises(InvalidParameterError, match=r"sparse must be a name .*, got a GumbelSparse"):
        ic.OnlineIC(data, BUDGET, sparse=made)
    assert () == data.budgets


def test_a_count_that_no_ledger_holds_is_not_drawn_again(tmp_path, monkeypatch):
    path = tmp_path / "a.db"

    def full(*_, **__):
        raise OSError("no space")

    with monkeypatch.context() as broken:
        broken.setattr("onlineic.session.durable.LedgerFile.opened", full)
        with pytest.raises(OSError, match="no space"):
            ic.OnlineIC(table(), BUDGET, ledger=path, table="t")
    data = table()
    with pytest.raises(LedgerMismatchError, match="no number of records was drawn"):
        ic.OnlineIC(data, BUDGET, ledger=path, table="t")
    assert () == data.budgets
    link = tmp_path / "link.db"
    link.symlink_to(path)  # the mark is that of the file, whatever its name
    with pytest.raises(LedgerMismatchError, match="no number of records was drawn"):
        ic.OnlineIC(data, BUDGET, ledger=link, table="t")
    (tmp_path / "a.db.counting").unlink()
    with ic.OnlineIC(data, BUDGET, ledger=path, table="t"):
        assert not (tmp_path / "a.db.counting").exists()


def test_where_no_ledger_may_lie_or_nothing_can_be_spent_no_count_is_marked(tmp_path, monkeypatch):
    data = table()
    with pytest.raises(InvalidParameterError, match="ledger must lie in a directory"):
        ic.OnlineIC(data, BUDGET, ledger=tmp_path / "none" / "a.db", table="t")
    monkeypatch.setattr("onlineic.ledger.place._file_system", lambda _: "nfs")
    with pytest.raises(InvalidParameterError, match="ledger must lie on a local drive"):
        ic.OnlineIC(data, BUDGET, ledger=tmp_path / "a.db", table="t")
    monkeypatch.undo()
    monkeypatch.setattr("os.getpid", lambda: 0)  # as in a fork
    with pytest.raises(ic.errors.ForkedSessionError):
        ic.OnlineIC(data, BUDGET, ledger=tmp_path / "a.db", table="t")
    monkeypatch.undo()
    assert [] == [*tmp_path.iterdir()]
    assert () == data.budgets


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_sessions_share_a_total_of_which_each_pays_for_its_number(delta):
    data, total = table(), ic.TableBudget(ic.Budget(1.0, delta, neighbours=ADD_REMOVE))
    data.draw_on(total)
    sessions = [ic.OnlineIC(data, total.share(0.5)) for _ in range(2)]

    assert total.left < 1e-9
    assert all(abs(one.n - 4000) < 3 * one.n_bound for one in sessions)
    assert all(ADD_REMOVE == one.neighbours for one in data.budgets)
    assert 4 == len(total.drawn) == len(data.budgets)  # a number and a session, twice
    for session, (count, rest) in zip(
        sessions, zip(total.drawn[::2], total.drawn[1::2], strict=True), strict=True
    ):
        scale = session.statistics().counted.scale
        if total.order is None:
            assert 1 / scale <= count.taken.charge.amount
        else:
            assert laplace_charge(total.order, scale, 1) <= count.taken.charge.amount
        assert session.plan.drawn.capacity <= rest.taken.charge.amount
        assert 20 > rest.taken.charge.amount / count.taken.charge.amount > 5
    data = table()
    data.draw_on(total)
    with pytest.raises(ic.errors.BudgetExceededError):
        ic.OnlineIC(data, total.share(0.1))
    assert (0, ()) == (data.reads, data.budgets)


def test_a_total_in_a_file_knows_what_was_counted(tmp_path):
    path, kept = tmp_path / "total.db", tmp_path / "session.db"
    with ic.TableBudget(PRIVATE, ledger=path, table="t") as total:
        data = table()
        data.draw_on(total)
        with ic.OnlineIC(data, total.share(0.5), ledger=kept, table="t", max_queries=50) as session:
            n = session.n
    with ic.TableBudget(PRIVATE, ledger=path, table="t") as total:
        data = table()
        data.draw_on(total)
        with ic.OnlineIC.resume(kept, data) as again:
            assert (n, 2) == (again.n, len(total.drawn))
    assert total_report(read(path)).whole
    assert verified(read(kept)).whole
    other = ic.TableBudget(PRIVATE)  # which has heard of neither
    data = table()
    data.draw_on(other)
    with ic.OnlineIC.resume(kept, data) as again:
        assert (n, 2) == (again.n, len(other.drawn))
        assert 0.5 == pytest.approx(float(other.left), abs=1e-9)


def test_a_total_of_rows_pays_by_the_row_and_of_parts_of_persons_none():
    rows = {**ROWS, "id": np.arange(4000) // 4}
    scales = []
    for unit, most in ((None, 1), (Unit("id", units=1), 1), (Unit("id", weigh="rows", at_most=3), 3)):
        used = rows if unit else ROWS
        data = PrivateData.from_records(used, DOMAIN, unit=unit, neighbours="add-remove")
        total = ic.TableBudget(PRIVATE, rows_per_person=most)
        data.draw_on(total)
        scales.append(ic.OnlineIC(data, total.share(1)).statistics().counted.scale)
    assert scales[0] == scales[1]
    assert 2.9 < scales[2] / scales[0] < 3.5  # three steps of a row, and delta is less for each
    data = PrivateData.from_records(rows, DOMAIN, unit=Unit("id"), neighbours="add-remove")
    with pytest.raises(InvalidParameterError, match="total must be left out with parts of persons"):
        data.draw_on(ic.TableBudget(PRIVATE, rows_per_person=64))
    with pytest.raises(InvalidParameterError, match=r"rows_per_person=3\)"):
        PrivateData.from_records(
            rows, DOMAIN, unit=Unit("id", weigh="rows", at_most=3), neighbours="add-remove"
        ).draw_on(ic.TableBudget(PRIVATE))
    data = table()
    data.draw_on(ic.TableBudget(ic.Budget(1.0, neighbours=ADD_REMOVE)))
    session = ic.OnlineIC(data, ic.Budget(0.5), rows_per_person=5)
    assert 0.99 < 5 / session.statistics().counted.scale * 40 <= 1.0
    assert 0.5 / 5 == pytest.approx(sum(one.budget.epsilon for one in data.total.drawn))


def test_a_forecast_takes_the_price_of_the_number_off():
    of_rows, private = ic.forecast(DOMAIN, 4000, BUDGET), ic.forecast(DOMAIN, 4000, PRIVATE)
    errors = [{row.engine: row.rms for row in told.engines} for told in (of_rows, private)]

    # one cell moves in place of two, and .95 of epsilon is left
    ratio = errors[1]["one noisy histogram"] / errors[0]["one noisy histogram"]
    assert 0.5 / 0.95 == pytest.approx(ratio)
    assert max(errors[1][engine] / errors[0][engine] for engine in errors[0] if "session" in engine) < 1.1
    few = ic.Domain.of(**dict.fromkeys("abcd", 20))
    pairs = [ic.forecast(few, 40_000, budget) for budget in (BUDGET, PRIVATE)]
    least, other = (next(row.rms for row in told.engines if row.start == "pairs") for told in pairs)
    assert 1.2 < least / other < 1.42


def test_a_number_of_simulated_noise_is_told_to_no_private_session():
    data = PrivateData.from_records(
        {"a": np.arange(5000) % 30}, ic.Domain.of(a=range(30)), neighbours="add-remove"
    )
    simulated = offline.count(data, epsilon=0.5, noise=SimulatedNoise(0))

    with pytest.raises(InvalidParameterError, match="counted must be drawn by the system's noise"):
        ic.OnlineIC(data, ic.Budget(1.0), counted=simulated)
    assert () == data.budgets
    session = ic.OnlineIC(data, ic.Budget(1.0), counted=simulated, noise=SimulatedNoise(1))
    assert (simulated.n, False) == (session.n, session.answer(ic.where(a=3)).private)


def test_a_budget_that_names_other_neighbours_is_refused():
    three = ic.Budget(1.0, 1e-6, neighbours=ReplaceRows(3))
    for ask in (
        lambda data: ic.OnlineIC(data, three),
        lambda data: baselines.PerQueryNoise(data, three, answers=1, counted=offline.count(table(), 0.1)),
    ):
        data = table()
        with pytest.raises(InvalidParameterError, match="budget must be for the neighbours of the table"):
            ask(data)
        assert () == data.budgets


def test_a_session_that_was_told_its_number_goes_on_without_a_total_alone(tmp_path):
    """The total would take a share for a number that the session never drew, and less for all else."""
    path, data = tmp_path / "told.db", table()
    told = offline.count(data, epsilon=0.05)
    with warnings.catch_warnings(action="ignore", category=BudgetsAddWarning):
        ic.OnlineIC(data, BUDGET, counted=told, sparse="laplace", ledger=path, table="t").close()

    data, total = table(), ic.TableBudget(ic.Budget(4.0, 1e-4, neighbours=ADD_REMOVE))
    data.draw_on(total)
    with pytest.raises(InvalidParameterError, match="data must be without a total to go on with a session"):
        ic.OnlineIC.resume(path, data)
    assert 1 == total.left
    ic.OnlineIC.resume(path, table()).close()
