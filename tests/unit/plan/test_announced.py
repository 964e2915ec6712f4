"""What is told of the questions to come chooses what is prepared; the bound on all answers does not."""

import itertools
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidParameterError, InvalidQueryError, LedgerMismatchError
from onlineic.ledger import BoughtTables, read
from onlineic.plan import DemandPurchases, session_plan
from onlineic.plan.announced import Announcement
from onlineic.plan.settings import Settings
from onlineic.queries.batch import Queries
from onlineic.queries.expressions import joint
from onlineic.sparse import UnconditionalNumbers
from support.ledgers import LABEL, quick_folder, table

DOMAIN = ic.Domain.of(a=75, b=16, c=5, d=2, e=2)
LISTENED = ic.Domain.of({f"x{number}": 12 for number in range(14)})
BUDGET, PURE = ic.Budget(1.0, 1e-9), ic.Budget(1.0)
PARITY = np.indices((2, 2, 2)).sum(axis=0) % 2.0
BITS = ic.Domain.of(dict.fromkeys("abcdefghij", 2))


def told(questions):
    return Settings(BUDGET, questions=questions).announced


def arrays(count, shape=BITS.shape):
    rng = np.random.default_rng(1)
    return [ic.dense(rng.integers(0, 2, shape).astype(float)) for _ in range(count)]


@pytest.mark.parametrize("budget", [BUDGET, PURE], ids=["usual", "pure"])
@pytest.mark.parametrize("wish", [{}, {"release": "answer"}, {"hard_answers": 50}], ids=repr)
@pytest.mark.parametrize("n", [48_842, 10**6])
@pytest.mark.parametrize("domain", [DOMAIN, LISTENED, ic.Domain.of(a=500), ic.Domain.of(a=4, b=3)], ids=repr)
def test_what_is_bounded_chooses_neither_start_nor_purchases(domain, n, wish, budget):
    plans = [
        session_plan(domain, n, budget, max_queries=bounded, **wish) for bounded in (5, 50, 10_000, 10**6)
    ]

    assert not any(isinstance(plan.sparse, UnconditionalNumbers) for plan in plans)
    assert all(plan.purchases == plans[0].purchases for plan in plans)
    assert 1 == len({plan.hard_answers for plan in plans})
    assert [5, 50, 10_000, 10**6] == [plan.max_queries for plan in plans]


def test_a_number_of_few_questions_has_each_of_them_measured():
    plan = session_plan(DOMAIN, 48_842, BUDGET, questions=5)
    by_list = session_plan(DOMAIN, 48_842, BUDGET, questions=[ic.where(a=code, b=1) for code in range(5)])

    assert (10_000, 5) == (plan.max_queries, plan.purchases.count)
    assert plan.purchases.rent > DemandPurchases().rent
    assert (5, plan.purchases.rent) == (by_list.purchases.count, by_list.purchases.rent)
    assert "numbers" == ic.forecast(DOMAIN, 48_842, BUDGET, questions=5).start
    assert "pairs" == ic.forecast(DOMAIN, 48_842, BUDGET, 5).start
    assert isinstance(
        session_plan(DOMAIN, 48_842, BUDGET, certify=0.3, questions=5).sparse, UnconditionalNumbers
    )


def test_questions_that_are_listed_are_counted_once_each_and_name_their_attributes():
    asked = [ic.where(a=1), ic.where(a=1), ic.marginal("b", "c"), joint(("b", "d"), np.eye(16)[:, :2])]
    bound = [one.bind(DOMAIN) for one in asked]

    assert Announcement(3, (("a",), ("b", "c"), ("b", "d"))) == told(asked) == told(bound)
    assert Announcement(2, (("a",),)) == told(Queries.where(DOMAIN, {"a": [1, 2]}))
    assert Announcement(None, (("a",), ("b", "c"))) == told(["a", ("c", "b")])
    assert told(["a", ic.where(b=1)]).count is None  # nobody says how many questions will join a


@pytest.mark.parametrize(
    ("question", "dense"),
    [
        (ic.dense(PARITY), True),
        (ic.dense(PARITY.ravel()), True),
        (ic.dense(PARITY).bind(ic.Domain.of(a=2, b=2, c=2)), True),
        (~ic.dense(PARITY) & ic.where(a=1), True),
        (joint(("a", "b", "c"), PARITY), True),
        (ic.dense(np.indices((2, 2, 2)).sum(axis=0) / 3.0), False),
        (joint(("a", "b"), np.eye(2)), False),
        (ic.where(a=1) | ic.where(b=1), False),
    ],
)
def test_a_list_with_a_dense_question_is_of_a_dense_stream(question, dense):
    assert dense == told([ic.where(a=1), question]).dense


def test_for_dense_questions_that_are_listed_all_cells_are_bought():
    plan = session_plan(BITS, 10**5, BUDGET, questions=arrays(300))

    assert [BITS.size] == [target.blocks for target in plan.first_tables.targets]
    assert "cells" == ic.forecast(BITS, 10**5, BUDGET, questions=arrays(300)).start
    assert 3 == session_plan(BITS, 10**5, BUDGET, questions=arrays(3)).purchases.count


@pytest.mark.parametrize(
    ("sets", "count", "after", "parts"),
    [
        ((), None, (1, 4, 16, 64, 256, 1024), (8, 13, 16, 18, 19, 20)),
        ((), 2000, (1, 4, 16, 64, 256, 1024), (8, 13, 16, 18, 19, 20)),
        ((), 1000, (1, 4, 16, 64, 256), (8, 13, 16, 18, 20)),
        ((), 256, (1, 4, 16, 64), (8, 13, 16, 20)),
        ((), 10, (1, 4), (8, 20)),
        ((), 4, (1,), (20,)),
        ((), 1, (1,), (20,)),
        (((0, 1),), None, (1, 4, 16, 64, 256, 1024), (18, "18.4", "18.8", "19.2", "19.6", 20)),
        (((0, 1),), 65, (1, 4, 16, 64), (18, "18.4", "18.8", 20)),
        (((0, 1),), 64, (1, 4, 16), (18, "18.4", 20)),
        (((0, 1),), 4, (1,), (20,)),
    ],
)
def test_all_purchases_are_spent_by_the_end_of_the_questions_that_were_announced(sets, count, after, parts):
    rule = DemandPurchases.of(sets, None, count)

    assert (after, tuple(Fraction(part) / 20 for part in parts)) == (rule.after, rule.parts)
    assert sets == rule.announced
    assert rule.lookahead(rule.start()) == max(after[-1], count if count and count <= 1024 else 0)
    assert (rule.rent == 0) is bool(sets or count)  # what was told needs no numbers


def test_a_session_that_listens_hears_all_that_was_announced_and_has_spent_it_by_then():
    columns = {name: np.random.default_rng(2).integers(0, 12, 5_000) for name in LISTENED.names}
    pairs = [*itertools.combinations(LISTENED.names, 2)]
    asked = [ic.where({one: 1, other: 2}) for one, other in pairs]
    spent = {}
    number = {"purchases": DemandPurchases.of((), None, len(asked))}  # where tables are expected to tell more
    for label, told in (
        ("nothing", {}), ("number", number), ("sets", {"questions": pairs}), ("list", {"questions": asked})
    ):  # fmt: skip
        data = ic.PrivateData.from_records(columns, LISTENED)
        session = ic.OnlineIC(data, BUDGET, noise=ic.noise.SimulatedNoise(1), **told)
        session.answer_many(asked)
        rule, account = session.plan.purchases, session.plan.sparse.account()
        bought = (one.charge.amount for one in session.transcript if isinstance(one, BoughtTables))
        spent[label] = float(sum(bought) / rule.planned(account))
        if label != "nothing":
            assert (91 if label == "list" or label == "sets" else 0) == len(rule.announced)

    assert spent["nothing"] < 0.91 < 0.97 < spent["number"] <= 1
    assert 0.95 < min(spent["sets"], spent["list"])


@pytest.mark.parametrize(
    "questions",
    [0, -1, True, False, 2.5, float("nan"), 2**63, "a", b"a", [], {}, [()], [("a", "a")], [3], [ic.where()]],
    ids=repr,
)
def test_what_announces_nothing_is_refused_by_name(questions):
    with pytest.raises(InvalidParameterError, match=r"questions must .*(got|none)") as error:
        Settings(BUDGET, questions=questions)

    assert "; " in str(error.value)
    with pytest.raises(InvalidParameterError, match="questions must"):
        ic.forecast(DOMAIN, 1_000, BUDGET, questions=questions)


def test_sets_contradict_what_is_settled_and_a_number_does_not():
    for settled in ({"certify": 0.3}, {"release": "answer"}, {"prior": ic.Histogram(DOMAIN)}):
        assert 5 == Settings(BUDGET, questions=5, **settled).announced.count
        with pytest.raises(InvalidParameterError, match="questions must be None or a number"):
            Settings(BUDGET, questions=["a"], **settled)


# of one code of six: a sixth of all, squared, and what it says beyond that
EXPECTED = {
    "class": "Expected",
    "fields": {"axes": [0], "share": 1.0, "energies": [0.027777777777777776, 0.8333333333333335]},
}


@pytest.mark.parametrize(
    ("questions", "written"),
    [
        (None, None),
        (np.int16(5), 5),
        (["b", ("b", "a")], [["a", "b"], ["b"]]),
        (
            [ic.where(a=1)],
            {
                "class": "Announcement",
                "fields": {"count": 1, "sets": [["a"]], "dense": False, "expected": [EXPECTED]},
            },
        ),
    ],
    ids=repr,
)
def test_a_file_holds_what_was_told_and_is_opened_by_it_alone(questions, written):
    with quick_folder() as folder:
        path = folder / "told.db"
        more = {"ledger": path, "table": LABEL}
        with ic.OnlineIC(table(), BUDGET, questions=questions, **more) as session:
            session.answer(ic.where(a=1))
        assert written == read(path).beginning["settings"].get("questions")
        with ic.OnlineIC(table(), BUDGET, questions=questions, **more) as again:
            assert "repeat" == again.answer(ic.where(a=1)).status
        with pytest.raises(LedgerMismatchError, match="questions must be"):
            ic.OnlineIC(table(), BUDGET, questions=7, **more)


def test_an_announcement_is_taken_as_it_is_read():
    settings = Settings(BUDGET, questions=[("a", "b")])

    assert settings == attrs.evolve(settings) == Settings(BUDGET, questions=settings.questions)
    assert Announcement(count=7) == told(Announcement(count=7))
    for bad in ({"count": 0}, {"count": True}, {"sets": [()]}, {"sets": 3}):
        with pytest.raises(InvalidParameterError, match="questions must"):
            Announcement(**bad)


def test_arrays_of_weights_are_announced_as_they_are_asked():
    weights = [np.eye(8)[place] for place in range(3)]

    assert told([ic.dense(one) for one in weights]) == told(weights) == told(np.eye(8)[:3])
    assert 3 == told(weights).count
    assert told([("a", "b")]) == told([np.array(["a", "b"])])
    with pytest.raises(InvalidQueryError, match=r"weights must lie in \[0, 1\], got weights\[0\]=2"):
        told([np.full(8, 2.0)])


@pytest.mark.parametrize(
    "questions",
    [
        [ic.dense(np.zeros((75, 16)))],
        [ic.where(b=3), np.zeros(7)],
        [ic.where(a=75)],
        [ic.where(d=1) & ~ic.where(c=5), "a"],
        [ic.marginal("a", where=ic.where(e=2))],
        [ic.where(a=1).bind(BITS)],
    ],
    ids=repr,
)
def test_questions_that_no_session_could_be_asked_are_refused_before_anything_is_spent(questions, tmp_path):
    data = ic.PrivateData.from_records({name: [0, 1] * 500 for name in DOMAIN.names}, DOMAIN)
    calls = (
        lambda: ic.forecast(DOMAIN, 1000, BUDGET, questions=questions),
        lambda: session_plan(DOMAIN, 1000, BUDGET, questions=questions),
        lambda: ic.OnlineIC(data, BUDGET, questions=questions, ledger=tmp_path / "l.db", table="t"),
    )
    for call in calls:
        with pytest.raises((InvalidQueryError, ic.errors.DomainMismatchError)):
            call()
    assert [] == [*tmp_path.glob("l.db")]


def test_what_was_announced_is_kept_without_its_questions_once_they_have_been_looked_at(tmp_path):
    data = ic.PrivateData.from_records({name: [0, 1] * 500 for name in BITS.names}, BITS)
    questions = [*arrays(3), ic.where(a=1)]
    kept = told(questions)
    assert 4 == len(kept.asked)
    assert () == kept.of_domain(BITS).asked
    assert kept == kept.of_domain(BITS)
    assert "asked" not in repr(kept)
    with ic.OnlineIC(data, BUDGET, questions=questions, ledger=tmp_path / "l.db", table="t"):
        pass
    held = read(tmp_path / "l.db").beginning["settings"]["questions"]["fields"]
    assert {"count", "sets", "dense"} == held.keys()
