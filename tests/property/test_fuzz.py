"""Twelve thousand inputs through the public interface: a named refusal or an answer, and nothing besides.

Deselected unless asked for: `make fuzz`, or `pytest -m fuzz`, some minutes.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic import baselines, offline
from onlineic.accounting import zcdp_delta, zcdp_order, zcdp_rho
from onlineic.data import PrivateData
from onlineic.errors import OnlineICError
from onlineic.noise import SimulatedNoise
from support.sessions import all_spent

pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("ignore::UserWarning")]
MANY = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
DOMAIN = ic.Domain.of(a=4, b=["x", "y", "z"], c=ic.binned([0.0, 1.0, 2.5]))
SECRET = 76_543_219
COUNTS = np.zeros(DOMAIN.shape, int)
COUNTS[0, 0, 0], COUNTS[2, 1, 1], COUNTS[3, 2, 0] = SECRET, 5_000, 777_777
DATA = PrivateData(COUNTS, DOMAIN)
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.fractions(),
    st.sampled_from([5e-324, 1e-310, 1e308, 10**400, -(10**400), np.float32(0.5), np.int8(3), np.nan, True]),
)
objects = st.one_of(
    st.none(),
    st.booleans(),
    numbers,
    st.text(max_size=8),
    st.binary(max_size=8),
    st.lists(numbers, max_size=5),
    st.dictionaries(st.text(max_size=3), numbers, max_size=3),
    st.sampled_from(
        [object(), np.zeros(3), np.zeros((2, 2)), np.array(["x"]), 1j, {}, [], (), range(4), abs]
    ),
)
names = st.one_of(st.sampled_from(["a", "b", "c"]), st.text(max_size=3))
conditions = st.one_of(
    objects,
    st.builds(lambda low, high: ("between", low, high), objects, objects),
    st.builds(lambda values: ("one_of", values), st.lists(objects, max_size=3)),
    st.builds(lambda values: ("weights", values), st.lists(numbers, max_size=5)),
)


def condition(written):
    if isinstance(written, tuple) and len(written) > 1 and isinstance(written[0], str):
        kind, *rest = written
        return {"between": ic.between, "one_of": lambda v: ic.one_of(*v), "weights": ic.weights}[kind](*rest)
    return written


def outcome(call):
    """Return a result, or the name and the text of a refusal; anything else is a failure."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except OnlineICError as refused:
        found = refused
    text = str(found)
    assert str(SECRET) not in text
    assert "777777" not in text
    assert len(text) < 2000
    return found


@settings(max_examples=6000, **MANY)
@given(written=st.dictionaries(names, conditions, max_size=3), raw=objects, many=st.booleans())
def test_whatever_is_asked_is_answered_or_refused_by_name(written, raw, many):
    session = SESSION
    before = (all_spent(session), len(session.transcript), TABLE.reads)

    def ask():
        query = ic.where({name: condition(one) for name, one in written.items()}) if written else raw
        return session.answer_many([query])[0] if many else session.answer(query)

    found = outcome(ask)
    if isinstance(found, OnlineICError):
        assert before == (all_spent(session), len(session.transcript), TABLE.reads)
    else:
        assert np.isfinite(found.value).all()
        assert found.status in ("easy", "hard", "repeat", "untested")


TABLE = PrivateData(COUNTS, DOMAIN)
SESSION = ic.OnlineIC(
    TABLE,
    ic.Budget(1.0),
    hard_answers=3,
    threshold=0.1,
    sparse="laplace",
    noise=SimulatedNoise(4),
)
NOISE = SimulatedNoise(7)
CALLS = {
    "Budget": lambda x, y: ic.Budget(x, y),
    "order": lambda x, y: ic.Budget(1.0, y, order=x),
    "TableBudget": lambda x, y: ic.TableBudget(ic.Budget(1.0, 1e-9), order=x, apart=y),
    "rows": lambda x, y: ic.TableBudget(ic.Budget(1.0, 1e-9), rows_per_person=x),
    "share": lambda x, y: ic.TableBudget(ic.Budget(1.0, 1e-9)).share(x),
    "draw_on": lambda x, y: PrivateData(COUNTS, DOMAIN).draw_on(x),
    "session": lambda x, y: ic.OnlineIC(
        DATA, ic.Budget(1.0), noise=SimulatedNoise(1), rows_per_person=x, beta=y
    ),
    "threshold": lambda x, y: ic.OnlineIC(
        DATA, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1), threshold=x, max_queries=y
    ),
    "table": lambda x, y: ic.OnlineIC(DATA, ic.Budget(1.0), table=x, durability=y),
    "forecast": lambda x, y: ic.forecast(DOMAIN, x, ic.Budget(1.0), y),
    "between": lambda x, y: ic.where(c=ic.between(x, y)).bind(DOMAIN),
    "domain": lambda x, y: ic.Domain.of(a=x, b=y),
    "binned": lambda x, y: ic.binned(x),
    "counts": lambda x, y: PrivateData(x, DOMAIN),
    "records": lambda x, y: PrivateData.from_records({"a": x, "b": y, "c": [1.0]}, DOMAIN),
    "median": lambda x, y: offline.median(DATA, x, y, noise=NOISE),
    "cdf": lambda x, y: offline.private_cdf(DATA, "a", x, beta=y, noise=NOISE),
    "baseline": lambda x, y: baselines.PerQueryNoise(DATA, ic.Budget(1.0), answers=x, beta=y, noise=NOISE),
    "zcdp": lambda x, y: (zcdp_rho(x, y), zcdp_order(x, y)),
    "zcdp_delta": lambda x, y: zcdp_delta(x, y),
}


@settings(max_examples=6000, **MANY)
@given(name=st.sampled_from(sorted(CALLS)), x=objects, y=objects)
def test_whatever_is_given_is_taken_or_refused_by_name(name, x, y):
    reads, budgets = DATA.reads, DATA.budgets
    found = outcome(lambda: CALLS[name](x, y))

    if isinstance(found, OnlineICError):
        assert reads == DATA.reads
    assert budgets == DATA.budgets
