"""Whatever a session is made from comes back from its file as it was, and the session goes on."""

import datetime
import inspect
import json
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic import audit
from onlineic.data import PrivateData
from onlineic.domain.dates import UNITS
from onlineic.errors import (
    BudgetExceededError,
    BudgetsAddWarning,
    InvalidDomainError,
    InvalidParameterError,
    LedgerError,
    LedgerMismatchError,
)
from onlineic.ledger import read
from onlineic.plan import DemandPurchases, TestsOnly
from support.ledgers import DOMAIN, LABEL, quick_folder, table

BUDGET = ic.Budget(1.0, 1e-6)
# letters of every kind, marks that turn the direction, halves of pairs, and what JSON escapes
TEXT = st.text(st.sampled_from('aZ09 \t\n"\\/\x00\x7fäßİ\u202e\u2028\ud800日😀\U0010ffff'), max_size=4)
WHOLE = st.integers(-(2**61), 2**61)
NUMBER = st.floats(allow_nan=False) | st.integers(-(2**60), 2**60)
WORD = TEXT | WHOLE | st.booleans() | st.floats(allow_nan=False)
ZONES = st.sampled_from([None, "UTC", "Europe/Paris", "America/St_Johns"])


@st.composite
def categories(draw):
    labels = draw(
        st.lists(TEXT, min_size=1, max_size=4, unique=True)
        | st.lists(WHOLE, min_size=1, max_size=4, unique=True)
        | st.just([True, False])
    )
    other = draw(st.sampled_from([False, True, "rest"]))
    words = draw(st.lists(WORD, max_size=4))
    synonyms = {word: draw(st.sampled_from(labels)) for word in words}
    return ic.categorical(labels, synonyms=synonyms, other=other)


@st.composite
def numbers(draw):
    edges = sorted(draw(st.lists(NUMBER, min_size=2, max_size=5, unique_by=float)), key=float)
    if draw(st.booleans()):
        return ic.binned(edges, clip=draw(st.booleans()))
    whole = sorted({math.floor(edge) for edge in edges if math.isfinite(edge)})
    assume(len({float(edge) for edge in whole}) > 1)
    return attrs.evolve(ic.binned([0, 1]), edges=whole, integer=True, clip=draw(st.booleans()))


@st.composite
def periods(draw):
    ends = st.datetimes(datetime.datetime(1000, 1, 1), datetime.datetime(9998, 12, 30))
    first, by = draw(ends), draw(st.sampled_from(UNITS))
    last = min(
        first + datetime.timedelta(minutes=draw(st.integers(0, 2000))), datetime.datetime(9998, 12, 30)
    )
    return ic.dates(first, last, by=by, clip=draw(st.booleans()), zone=draw(ZONES))


@st.composite
def ranges(draw):
    first = draw(WHOLE)
    return ic.integers(first, first + draw(st.integers(0, 5)), clip=draw(st.booleans()))


@st.composite
def kinds(draw):
    kind = draw(categories() | numbers() | periods() | ranges())
    if draw(st.booleans()):
        kind = ic.optional(kind)
        kind = attrs.evolve(kind, markers=tuple(draw(st.lists(TEXT, max_size=3, unique=True))))
    return kind


@st.composite
def domains(draw):
    names = draw(st.lists(TEXT.filter(bool), min_size=1, max_size=3, unique=True))
    try:
        return ic.Domain.of({name: draw(kinds()) for name in names})
    except InvalidDomainError:  # a word with two meanings
        return assume(False)


def labels_of(domain):
    """Return names and labels with their types, as an analyst sees them."""
    return [(name, [repr(kind.label(code)) for code in range(min(kind.size, 50))]) for name, kind in domain]


def both_ways(path, data, budget=BUDGET, table=LABEL, **given):
    """Return two ways to go on with a file: by its settings, and by what it says alone."""
    brought = {name: given[name] for name in ("update", "prior") if name in given}
    return (
        lambda: ic.OnlineIC(data(), budget, ledger=path, table=table, **given),
        lambda: ic.OnlineIC.resume(path, data(), table=table, **brought),
    )


@given(domains())
def test_a_domain_comes_back_equal_also_from_a_text_whose_keys_were_sorted(domain):
    again = ic.Domain.from_json(domain.to_json())
    ordered = ic.Domain.from_json(json.dumps(json.loads(domain.to_json()), sort_keys=True))

    assert domain == again
    assert labels_of(domain) == labels_of(again)
    assert domain.attributes == tuple(ordered.attribute(name) for name in domain.names)


@settings(max_examples=20)
@given(domains(), TEXT.filter(str.strip))
def test_a_session_over_any_domain_and_label_goes_on_or_is_refused_before_there_is_a_file(domain, label):
    assume(1 < domain.size <= 5_000)
    counts = np.zeros(domain.size, np.int64)
    counts[0] = 1_000
    question = ic.dense(np.arange(domain.size).reshape(domain.shape) % 2.0)
    with quick_folder() as folder:
        path = folder / "session.db"
        try:
            session = ic.OnlineIC(PrivateData(counts, domain), BUDGET, ledger=path, table=label)
        except InvalidParameterError:  # of texts that a file does not give back
            assert not path.exists()
            return
        with session:
            told, plan = session.answer(question), session.plan
        for again in both_ways(path, lambda: PrivateData(counts, domain), table=label):
            with again() as session:
                answer = session.answer(question)
            assert (plan, domain, told.value) == (session.plan, session.domain, answer.value)
            assert "repeat" == answer.status
        assert domain == read(path).domain()


KEYWORDS = {
    "budget": [
        ic.Budget(Fraction(1, 3), Fraction(1, 10**7)),
        ic.Budget(np.float32(0.3), 1e-7),
        ic.Budget(30.0, 1e-7, allow_large_epsilon=True),
        ic.Budget(2.0),
        ic.TableBudget(BUDGET).share(0.5),
    ],
    "rows_per_person": [np.int64(2)],
    "hard_answers": [np.uint8(5)],
    "certify": [0.3, Fraction(3, 10)],
    "max_queries": [3, np.int16(50)],
    "beta": [Fraction(1, 20), np.float32(0.05), np.longdouble(0.1)],
    "update": [ic.MultiplicativeWeights(), ic.MaximumEntropy(), ic.Perceptron()],
    "sparse": ["exponential", np.str_("gumbel")],
    "release": ["answer", "partition"],
    "threshold": [Fraction(1, 100), np.float64(0.01)],
    "prior": [ic.Histogram(DOMAIN)],
    "exhausted": ["raise"],
    "restarts": [np.int64(3)],
    "purchases": [TestsOnly(), DemandPurchases()],
    "within": [0.3, np.float32(0.25), ic.expected(Fraction(1, 4))],
    "questions": [
        ["a"],
        np.int16(5),
        [ic.where(a=1), ic.marginal("a", "b")],
        [ic.dense(np.eye(DOMAIN.size)[0])],
    ],
}
NOT_IN_THE_FILE = {"self", "data", "ledger", "table", "durability", "noise", "progress"}
TRIED_ELSEWHERE = {"counted"}  # of a private number of records: in test_private_numbers


def test_the_keywords_that_are_tried_are_all_that_a_file_holds():
    assert {*KEYWORDS} == {*inspect.signature(ic.OnlineIC.__init__).parameters} - (
        NOT_IN_THE_FILE | TRIED_ELSEWHERE
    )


@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")
@pytest.mark.parametrize(
    ("name", "value"), [(name, one) for name, tried in KEYWORDS.items() for one in tried]
)
def test_a_plan_comes_back_equal_whatever_it_was_made_from(name, value):
    chosen = {"budget": BUDGET, name: value}
    with quick_folder() as folder:
        path = folder / "session.db"
        with ic.OnlineIC(table(), chosen.pop("budget"), ledger=path, table=LABEL, **chosen) as session:
            session.answer(ic.where(a=1))
        for again in both_ways(path, table, **{"budget": BUDGET, name: value}):
            with again() as other:
                assert session.plan == other.plan
                assert other.answer(ic.where(a=1)).status in ("repeat", "untested")
        assert audit.verified(read(path), prior=chosen.get("prior")).whole


# --- what is refused -------------------------------------------------------------------------------------


SYNONYMS = {"male": "M", "f": "F", 2: "F"}  # in no order
PEOPLE = {
    "sex": ic.categorical(["F", "M"], synonyms=SYNONYMS, other=True),
    "age": ic.integers(0, 3, clip=True),
    "pay": ic.binned([0, 1.5, 4, 9]),
    "day": ic.optional(ic.dates("2024-01", "2024-03", by="month"), ["?", "-"]),
}


def people(n=500, **other):
    domain = ic.Domain.of({**PEOPLE, **other})
    return PrivateData(np.full(domain.size, n), domain)


@pytest.fixture
def path():
    with quick_folder() as folder:
        path = folder / "session.db"
        with ic.OnlineIC(people(), BUDGET, ledger=path, table=LABEL, max_queries=50) as session:
            session.answer(ic.where(sex="F"))
        yield path


def test_a_domain_whose_synonyms_are_written_in_no_order_is_resumed(path):
    turned = dict(reversed(SYNONYMS.items()))
    for data in (people(), people(sex=ic.categorical(["F", "M"], synonyms=turned, other=True))):
        with ic.OnlineIC.resume(path, data) as session:
            assert "repeat" == session.answer(ic.where(sex="F")).status


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"sex": ic.categorical(["F", "M"], synonyms={"male": "M"}, other=True)}, "sex has synonyms="),
        ({"sex": ic.categorical(["F", "M"], synonyms=SYNONYMS, other="rest")}, "sex has other='other', got"),
        ({"sex": ic.categorical(["F", "M"], synonyms={**SYNONYMS, "2": "F"}, other=True)}, "synonyms="),
        ({"age": ic.integers(0, 3)}, "age has clip=True, got False"),
        ({"age": ["a", "b", "c", "d"]}, "age is a IntegerRange, got a Categorical"),
        ({"pay": ic.binned([0, 1.5, 5, 9])}, r"pay has edges=\(0.0, 1.5, 4.0, 9.0\), got \(0.0, 1.5, 5.0"),
        ({"day": ic.optional(PEOPLE["day"], ["?"])}, r"day has markers=\('-', '\?'\), got \('\?',\)"),
        ({"day": ic.optional(ic.dates("2024-01", "2024-03", by="month", zone="UTC"))}, "day has markers="),
        ({"more": 1}, "with the attributes .* in this order, got"),
    ],
)
def test_another_domain_is_refused_by_attribute_and_field_and_nothing_is_written(path, other, named):
    before = path.read_bytes()
    for again in both_ways(path, lambda: people(**other), max_queries=50):
        with pytest.raises(LedgerMismatchError, match=named) as error:
            again()
        assert "leave the ledger out" not in str(error.value)
    assert before == path.read_bytes()


def no_total(data):
    data.draw_on(ic.TableBudget(ic.Budget(0.1, 1e-9)))
    return data


def used(data):
    ic.offline.median(data, "age", 0.1)
    return data


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (lambda path: ic.OnlineIC.resume(path, people(n=501)), LedgerMismatchError),
        (lambda path: ic.OnlineIC.resume(path, people(), table="another"), LedgerMismatchError),
        (lambda path: ic.OnlineIC.resume(path, people(), prior=ic.Histogram(people().domain)), LedgerError),
        (lambda path: ic.OnlineIC(people(), BUDGET, ledger=path, table=LABEL, max_queries=51), LedgerError),
        (lambda path: ic.OnlineIC.resume(path, no_total(people())), BudgetExceededError),
        (lambda path: ic.OnlineIC.resume(path, used(people())), BudgetsAddWarning),  # as an error
    ],
    ids=["n", "label", "prior", "setting", "total", "warning"],
)
def test_a_refused_resume_writes_nothing(path, refused, error):
    before = path.read_bytes()
    with pytest.raises(error):
        refused(path)
    assert before == path.read_bytes()
    with ic.OnlineIC.resume(path, people()) as session:
        assert "repeat" == session.answer(ic.where(sex="F")).status


@pytest.mark.parametrize("given", [{"table": "\ud83d\ude00"}, {"max_queries": 10**5000}])
def test_what_a_file_would_not_give_back_is_refused_before_there_is_one(given):
    with quick_folder() as folder:
        with pytest.raises(InvalidParameterError):
            ic.OnlineIC(table(), BUDGET, ledger=folder / "session.db", **{"table": LABEL} | given)
        assert [] == [*folder.iterdir()]


def test_files_that_begin_at_one_moment_are_two_and_each_is_charged(monkeypatch):
    class Frozen(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 11, 25, tzinfo=tz)

    monkeypatch.setattr(datetime, "datetime", Frozen)
    with quick_folder() as folder:
        data, total = table(), ic.TableBudget(BUDGET)
        data.draw_on(total)
        for name in "abc":
            with ic.OnlineIC(data, total.share(0.25), ledger=folder / name, table=LABEL):
                pass
        assert (3, 3) == (len(total.drawn), len({one.file for one in total.drawn}))
