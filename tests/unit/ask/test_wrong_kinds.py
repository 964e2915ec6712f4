"""Arguments of another kind than a call takes: refused by name, whatever their own code raises."""

import itertools

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import bounds, evaluate, offline
from onlineic.accounting import alike, per_person, renyi_capacity
from onlineic.ask import described, parsed_query
from onlineic.datasets import find
from onlineic.domain import Binned, Categorical
from onlineic.errors import InvalidInputError, InvalidParameterError, checked_integer, checked_real
from onlineic.mechanisms import quantile_scores
from onlineic.noise import SimulatedNoise, scale_at_least
from onlineic.queries import Grouping, pooled
from onlineic.questions import mean
from onlineic.testing import ScriptedNoise, check_update_rule

DOMAIN = ic.Domain.of(age=4, sex=["F", "M"])
DATA = ic.PrivateData(np.full((4, 2), 500), DOMAIN)
BUDGET = ic.Budget(1.0, 1e-9)


class Never:
    """Raises at whatever is asked of it."""

    def _never(self, *given):
        raise RuntimeError("never ask")

    __iter__ = __hash__ = __eq__ = __repr__ = __array__ = __len__ = _never


class Endless:
    def __iter__(self):
        return itertools.repeat(self)


class Keys:
    def keys(self):
        return ["age", "sex"]


def opened():
    return ic.OnlineIC(DATA, BUDGET, questions=9, noise=SimulatedNoise(1))


CALLS = {
    "exceptions of data": lambda: offline.exceptions(DATA, ["age"], of="sex"),
    "exceptions given a number": lambda: offline.exceptions(DOMAIN, 3, of="sex"),
    "distinct labels of data": lambda: offline.distinct_count(DATA, "age"),
    "distinct labels of nothing": lambda: offline.distinct_count(DOMAIN, Never()),
    "a fraction of a domain": lambda: offline.fraction(DOMAIN, ic.where(age=1)),
    "bounds of answers to a number": lambda: opened().joint_bounds(3, []),
    "bounds of one answer": lambda: opened().joint_bounds([], 3),
    "bounds of what raises": lambda: opened().joint_bounds(Never(), Never()),
    "a summary of a number": lambda: opened().summary(attributes=3),
    "a summary of what raises": lambda: opened().summary(attributes=Never()),
    "many queries of what raises": lambda: opened().answer_many(Never()),
    "many queries that never end": lambda: opened().answer_many(Endless()),
    "groups that never end": lambda: opened().group_by(Endless()),
    "ragged weights": lambda: ic.rescaled([[1.0], [1.0, 2.0]]),
    "weights that raise": lambda: ic.rescaled(Never()),
    "missing texts that raise": lambda: ic.optional(["a", "b"], Never()),
    "a domain file of nothing": lambda: ic.Domain.from_json(None),
    "a size that is a span of time": lambda: ic.Domain.of(a=np.timedelta64(3, "ns")),
    "a unit that is an array": lambda: ic.dates("2024-01", "2024-03", by=np.zeros(2)),
    "a unit that raises": lambda: ic.dates("2024-01", "2024-03", by=Never()),
    "questions that cannot be hashed": lambda: ic.forecast(DOMAIN, 1000, BUDGET, questions=[[[]]]),
    "questions that never end": lambda: ic.forecast(DOMAIN, 1000, BUDGET, questions=Endless()),
    "alternatives that are an array": lambda: described({"or": np.zeros(2)}, DOMAIN),
    "alternatives that raise": lambda: described({"or": Never()}, DOMAIN),
    "a line that is none": lambda: parsed_query(None, DOMAIN),
    "a name that raises": lambda: DOMAIN.axis(Never()),
    "a name of thousands of digits": lambda: DOMAIN.axis(10**5000),
    "edges that never end": lambda: ic.binned(Endless()),
    "edges that are a number": lambda: Binned(3.0),
    "labels that are a number": lambda: Categorical(3),
    "a table of nothing": lambda: ic.marginal("age").bind(DATA),
    "a mean of a domain": lambda: mean(DOMAIN, "age"),
    "traces that are a number": lambda: evaluate.coverage(3),
    "a stream of thin air": lambda: evaluate.exact_values(DOMAIN, []),
    "a bound that is no function": lambda: bounds.least_update_alpha(3.0, 4),
    "a radius that is no function": lambda: bounds.best_net(3.0, 4, 100, 1.0),
    "a budget that is none": lambda: alike(1.0),
    "a charge of a span of time": lambda: renyi_capacity(np.timedelta64(3, "ns"), 1.0, 1e-9),
    "a table that cannot be hashed": lambda: find([]),
    "draws that are a number": lambda: ScriptedNoise(3),
    "a measurement of words": lambda: ic.Measurement(ic.where(age=1).bind(DOMAIN), "words", None),
    "truths that are a number": lambda: check_update_rule(ic.MaximumEntropy(), truths=3),
    "labels that never end": lambda: ic.Domain.of(a=Endless()),
    "labels that are one number": lambda: ic.optional(np.array(5.0)),
    "columns of what has keys alone": lambda: DOMAIN.columns_of(Keys()),
    "columns and a person without a name": lambda: DOMAIN.columns_of({}, []),
    "measurements that are words": lambda: pooled(["words"]),
    "a grouping of a table": lambda: Grouping(DATA, "age", ()),
    "a grouping by what has no truth value": lambda: Grouping("bins", "age", (), name=ic.where(age=1)),
    "parts by an array": lambda: DATA.cut_into(np.zeros(3)),
    "optima by what has no truth value": lambda: offline.linear_programs_above(
        DATA, ["age"], 3, threshold=1, epsilon=1.0, optima=np.zeros(3)
    ),
    "groups within, by what has no truth value": lambda: opened().group_by(
        "sex", aggregate=np.zeros(3), within=0.01
    ),
    "a scale that is a span of time": lambda: scale_at_least(np.timedelta64(3, "ns")),
    "a share that is a span of time": lambda: quantile_scores(np.array([3, 4]), np.timedelta64(1, "ns")),
    "an end that is a span of time": lambda: ic.Grid(np.timedelta64(1, "ns"), 4.0, points=5),
    "a person's part of a number": lambda: per_person(1.0, 1),
    "a bound of updates that is a table": lambda: bounds.least_epsilon(
        update_bound=DATA, alpha=0.1, n=100, max_queries=9
    ),
    "a table where a budget stands": lambda: ic.PrivateData(np.ones(8), DOMAIN).spend(DATA),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_what_is_of_another_kind_is_refused_by_name(call):
    with pytest.raises(InvalidInputError, match="must"):
        call()


def test_prices_that_are_none_are_refused_by_name():
    explained = opened().explain(ic.where(age=1))

    with pytest.raises(InvalidParameterError, match="prices must be a list of Price"):
        attrs.evolve(explained, prices=["words"])


def test_a_top_of_no_number_is_refused_before_anything_is_asked():
    session = opened()

    with pytest.raises(InvalidParameterError, match="k must be"):
        session.top("age", 0)
    assert () == session.transcript


def test_a_dialect_of_thousands_of_digits_is_refused_by_name():
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    with pytest.raises(InvalidInputError, match="must"):
        opened().sql("SELECT COUNT(*) FROM t", dialect=10**5000)


@pytest.mark.parametrize("checked", [checked_integer, checked_real])
def test_a_span_of_time_is_no_number(checked):
    with pytest.raises(InvalidParameterError, match=r"n must be an? (integer|number)"):
        checked("n", np.timedelta64(3, "s"))


def test_explain_takes_a_hundred_alternations_and_no_more():
    """Formerly 250 of them were a RecursionError of the repr."""
    session, query = opened(), ic.where(age=0)
    for place in range(100):
        query = (query | ic.where(age=1)) if place % 2 else (query & ic.where(age=0))

    assert "where(age=0)" in session.explain(query).asked
    with pytest.raises(InvalidInputError, match="nest at most 100"):
        _ = query & ic.where(age=0)


def test_a_cross_table_where_queries_are_wanted_is_told_to_be_asked_by_its_cells():
    with pytest.raises(InvalidInputError, match="got a Marginal; ask its cells one by one by where"):
        evaluate.exact_values(DATA, [ic.marginal("age")])
