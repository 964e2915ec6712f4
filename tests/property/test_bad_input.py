"""Bad input to a session: a named refusal, nothing changed or drawn, and the same words on neighbours."""

import hashlib
import math
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import InvalidInputError, OnlineICError
from onlineic.ledger import Easy, Hard
from onlineic.noise import SimulatedNoise
from support.noise import Wrapped
from support.sessions import all_spent

DOMAIN = ic.Domain.of(a=4, b=["x", "y", "z"], c=ic.binned([0.0, 1.0, 2.5]))
SHAPE = DOMAIN.shape
SECRET = 76_543_219


class Watched(Wrapped):
    """Writes down what it is asked for."""

    def __init__(self):
        super().__init__(4)
        self.drawn = []

    def discrete_laplace(self, scale, size):
        self.drawn.append((scale, size))
        return super().discrete_laplace(scale, size)

    words = geometric = discrete_gaussian = None  # of other mechanisms


def neighbours():
    """Two sessions, with table and noise, at one point of a stream, on tables that differ in one record."""
    counts = np.zeros(SHAPE, int)
    counts[0, 0, 0], counts[2, 1, 1], counts[3, 2, 0] = SECRET, 5_000, 777_777
    other = counts.copy()
    other[2, 1, 1] -= 1
    other[1, 1, 1] += 1
    sessions = {}
    for table in (counts, other):
        data, noise = PrivateData(table, DOMAIN), Watched()
        session = ic.OnlineIC(
            data,
            ic.Budget(1.0),
            hard_answers=3,
            threshold=0.1,
            sparse="laplace",
            noise=noise,
        )
        session.answer_many([ic.where(a=0), ic.where(a=1, b="y")])
        sessions[session] = data, noise
    return sessions


SESSIONS = neighbours()


def digest(session, held):
    """All that an answer may change: hypothesis, charges, records, noise, reads, counters."""
    data, noise = held
    records = [
        (type(record).__name__, record.guess, record.query.key)
        if isinstance(record, Easy | Hard)
        else repr(record)
        for record in session.transcript
    ]
    state = (
        session.hypothesis.probabilities().tobytes(),
        all_spent(session),
        records,
        data.reads,
        session.statistics(),
        noise.drawn,
    )
    return hashlib.sha256(repr(state).encode()).hexdigest()


def refusal(session, query, many):
    try:
        session.answer_many([ic.where(a=2), query]) if many else session.answer(query)
    except OnlineICError as error:
        return type(error), str(error)
    raise AssertionError(f"accepted: {query!r}")


bad_number = st.one_of(
    st.sampled_from([math.nan, math.inf, -math.inf, -1e-300, 1.0 + 1e-15, 2.0, -1.0]),
    st.floats(min_value=1.0000001, allow_nan=False),
    st.floats(max_value=-1e-12, allow_nan=False),
)


@st.composite
def spoilt_weights(draw):
    weights = np.array(draw(st.lists(st.floats(0, 1), min_size=24, max_size=24))).reshape(SHAPE)
    weights.ravel()[draw(st.integers(0, 23))] = draw(bad_number)
    return weights if draw(st.booleans()) else weights.ravel()


wrong_shape = st.one_of(
    st.lists(st.integers(0, 5), min_size=0, max_size=4).map(lambda shape: np.zeros(shape)),
    st.sampled_from([np.zeros((2, 3, 4)), np.zeros(23), np.zeros(25), np.zeros((24, 1)), np.zeros(())]),
).filter(lambda array: array.shape not in (SHAPE, (24,)))
wrong_kind = st.sampled_from(
    [
        np.array(["0.5"] * 24),
        np.zeros(24, complex),
        np.array([None] * 24),
        np.array([object()] * 24),
        np.zeros(24, "datetime64[s]"),
        np.zeros(24, [("a", float)]),
        np.ma.masked_array(np.zeros(24), mask=[1] + [0] * 23),
    ]
)
not_data = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.lists(st.floats(0, 1), max_size=24),
    st.dictionaries(
        st.text(max_size=3).filter(lambda name: name not in DOMAIN.names),
        st.integers(),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(
        [
            lambda row: row["a"] == 1,
            abs,
            pickle.dumps(1),
            object(),
            scipy.sparse.eye(4),
            ic.Histogram(DOMAIN),
            DOMAIN,
            ic.Answer,
            Ellipsis,
            range(3),
            ic.between(1, 2),
        ]
    ),
)
unknown = st.text(min_size=1, max_size=8).filter(lambda name: name not in DOMAIN.names)
misfits = st.one_of(  # expressions that can be written but do not fit the domain
    unknown.map(lambda name: ic.where({name: 1})),
    st.one_of(st.integers(4, 10**6), st.integers(-(10**6), -1)).map(lambda label: ic.where(a=label)),
    st.text(max_size=5).filter(lambda text: text not in ("x", "y", "z")).map(lambda text: ic.where(b=text)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: ic.where(b=number)),
    st.integers(0, 9).map(lambda low: ic.where(b=ic.between(low, low + 1))),
    st.lists(st.floats(0, 1), max_size=9)
    .filter(lambda w: len(w) not in (0, 4))
    .map(lambda w: ic.where(a=ic.weights(w))),
    st.sampled_from(
        [
            ic.where(a=None),
            ic.where(b="X"),
            ic.where(a=True),
            ic.where(a=1.5),
            ic.where(c=1.7),
            ic.where(c=ic.between(0.3, 1.9)),
            ~ic.where(agee=1),
            ic.where(a=1) | ic.where(d=1),
            ic.dense(np.zeros(7)),
            ic.where(q=1).bind(ic.Domain.of(q=3)),
            ic.where(a=1).bind(ic.Domain.of(a=4)),
        ]
    ),
)
bad_queries = st.one_of(spoilt_weights(), wrong_shape, wrong_kind, not_data, misfits)


@settings(max_examples=150)
@given(query=bad_queries, many=st.booleans())
def test_a_query_that_cannot_be_asked_is_refused_by_name_and_changes_nothing(query, many):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    before = [digest(*each) for each in SESSIONS.items()]
    (kind, text), (other_kind, other_text) = (refusal(session, query, many) for session in SESSIONS)

    assert issubclass(kind, InvalidInputError)
    assert (kind, text) == (other_kind, other_text)
    assert before == [digest(*each) for each in SESSIONS.items()]
    assert str(SECRET) not in text
    assert "777777" not in text
    assert len(text) < 1000


def test_what_was_refused_leaves_no_trace_in_later_answers():
    """Noise that was drawn ahead, what is remembered and the secret threshold show in them alone."""
    spoilt, clean = (next(iter(neighbours().items())) for _ in range(2))
    for query in (np.full(SHAPE, math.nan), np.zeros(23), ic.where(a=7), ic.where(b="X"), None):
        for many in (False, True):
            refusal(spoilt[0], query, many)
    later = [
        ic.where(a=2),
        ic.where(a=0),
        ic.where(c=ic.span(0.0, 1.0)),
        ic.where(a=3, b="z"),
        ic.where(a=1, b="y"),
    ]

    assert [spoilt[0].answer(query) for query in later] == [clean[0].answer(query) for query in later]
    assert digest(*spoilt) == digest(*clean)


@settings(max_examples=30)
@given(queries=st.one_of(st.none(), st.integers(), st.floats(), st.just(ic.where(a=1)), st.just(object())))
def test_what_is_no_sequence_of_queries_is_refused_by_name(queries):
    before = [digest(*each) for each in SESSIONS.items()]
    texts = set()
    for session in SESSIONS:
        with pytest.raises(InvalidInputError, match="queries must be") as refused:
            session.answer_many(queries)
        texts.add(str(refused.value))

    assert 1 == len(texts)
    assert before == [digest(*each) for each in SESSIONS.items()]


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from([5e-324, 1e-310, 1e308, 10**400, -(10**400), [], {}, object(), np.zeros(3), b"x", 1j]),
)
SETTINGS = {
    "epsilon": 1.0, "delta": 0.0, "hard_answers": 3, "certify": None, "beta": 0.05, "max_queries": 100,
    "threshold": None, "exhausted": "untested", "update": None, "prior": None, "ledger": None, "noise": None,
    "data": None,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")
@pytest.mark.filterwarnings("ignore::onlineic.errors.BudgetsAddWarning")  # all on one table
@pytest.mark.filterwarnings("ignore::onlineic.errors.LargeDeltaWarning")
@settings(max_examples=200)
@given(name=st.sampled_from(sorted(SETTINGS)), value=anything, textbook=st.booleans())
def test_a_session_opens_or_refuses_by_name(name, value, textbook):
    """The argument that cannot be is refused with a named class, in the same words on neighbouring tables."""
    outcomes = set()
    for held, _ in SESSIONS.values():
        given_settings = SETTINGS | {"data": held, name: value}
        reads = held.reads
        data = given_settings.pop("data")
        opened_before = len(held.budgets)
        try:
            if textbook:
                for absent in ("hard_answers", "threshold", "prior"):
                    given_settings.pop(absent)
                given_settings["alpha"] = given_settings.pop("certify")
                opened = ic.OnlineIC.textbook(data, **given_settings)
            else:
                budget = ic.Budget(given_settings.pop("epsilon"), given_settings.pop("delta"))
                opened = ic.OnlineIC(data, budget, **given_settings)
            outcomes.add(("opened", repr(opened)))
            assert 0 == len(opened.transcript)
        except OnlineICError as error:
            outcomes.add((type(error).__name__, str(error)))
            assert len(held.budgets) == opened_before
        assert reads == held.reads

    assert 1 == len(outcomes)
    assert str(SECRET) not in next(iter(outcomes))[1]


def test_copies_of_what_holds_private_numbers_are_refused():
    (session, (data, _)), *_ = SESSIONS.items()
    for private in (session, data, SimulatedNoise(4)):
        with pytest.raises(TypeError):
            pickle.dumps(private)
