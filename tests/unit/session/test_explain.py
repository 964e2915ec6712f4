"""What `explain` says before a question is asked, and that it touches nothing."""

import math

import numpy as np
import pytest

import onlineic as ic
from onlineic import between, where
from onlineic.errors import InvalidQueryError, SessionStateError
from onlineic.noise import SimulatedNoise
from onlineic.plan import TestsOnly
from support.noise import Wrapped
from support.sessions import WIDE, WIDE_COUNTS, Still, begun

F = where(b=1)


class Watched(Wrapped):
    """Counts the draws."""

    draws = 0

    def words(self, size):
        self.draws += 1
        return super().words(size)

    def geometric(self, scale, size):
        self.draws += 1
        return super().geometric(scale, size)

    def discrete_laplace(self, scale, size):
        self.draws += 1
        return super().discrete_laplace(scale, size)

    def discrete_gaussian(self, sigma, size):
        self.draws += 1
        return super().discrete_gaussian(sigma, size)


def opened(**options):
    noise = Watched(3)
    data = ic.PrivateData(WIDE_COUNTS, WIDE)
    return begun(ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=noise, **options)), data, noise


QUESTIONS = [
    F,
    where(),
    where(a=0) | where(c=between(2, 9)),
    ic.marginal("a", "b", where=where(c=3)),
    where(c=ic.weights(np.linspace(0, 1, 20))),
    np.linspace(0, 1, WIDE.size),
    [F, ~F, where(a=0)],
    [],
    lambda session: session.mean("c"),
    lambda session: session.median("c", F),
    lambda session: session.group_by(["a", "b"], aggregate="sum", of="c"),
    lambda session: session.cdf("c", where(a=0, b=2)),
]


@pytest.mark.parametrize("options", [{}, {"sparse": "laplace", "hard_answers": 3}, {"max_queries": 20}])
def test_explaining_touches_neither_data_nor_ledger_nor_noise(options):
    session, data, noise = opened(**options)
    session.answer(where(a=3))

    def seen():
        reserved = session.reserved
        return data.reads, noise.draws, len(session.transcript), reserved, session.statistics()

    before = seen()
    for question in QUESTIONS:
        session.explain(question)

    assert before == seen()


def test_an_explanation_has_a_fixed_text_and_no_private_number():
    """Two tables that differ in everything but n say the same before anything is bought."""
    told = []
    for counts in (WIDE_COUNTS, np.roll(WIDE_COUNTS, 1, axis=2)):
        session = ic.OnlineIC(
            ic.PrivateData(counts, WIDE), ic.Budget(1.0, 1e-9), noise=Watched(3), purchases=ic.TestsOnly()
        )
        told.append([session.explain(question) for question in QUESTIONS])

    assert told[0] == told[1]
    assert "lambda" not in repr(told)


@pytest.mark.parametrize("question", QUESTIONS[:6])
def test_the_easy_bound_is_that_of_the_answer_and_then_it_is_known(question):
    session, *_ = opened()
    told = session.explain(question)
    answer = session.answer(question)
    again = session.explain(question)

    assert "easy" == answer.status
    assert told.bound_easy == answer.error_bound
    assert told.free == (told.form == "constant")
    assert again.free
    assert (0.0, 0.0, again.bound_easy) == (again.price, again.at_most, answer.error_bound)


@pytest.mark.parametrize("question", [where(a=0, c=3), where(c=between(0, 14)), ic.marginal("a", "c")])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sparse": "laplace", "hard_answers": 2},
        {"release": "answer"},
        {"release": "partition", "hard_answers": 3},
    ],
)
def test_the_price_and_the_hard_bound_are_those_of_a_hit(question, options):
    session, *_ = opened(update=Still(), max_queries=100, **options)
    before = float(session.account.spent / session.account.capacity)
    told = session.explain(question)
    answer = session.answer(question)
    after = float(session.account.spent / session.account.capacity)

    assert "hard" == answer.status
    assert told.price == pytest.approx(after - before, rel=1e-12)
    assert told.left == pytest.approx(1.0 - before, rel=1e-12)
    assert (
        0.4 * told.bound_hard <= answer.error_bound <= told.bound_hard
    )  # nothing was learned: it is as measured


@pytest.mark.parametrize("options", [{"purchases": ic.TestsOnly(), "hard_answers": 8}, {"threshold": 0.03}])
def test_no_hard_answer_is_bounded_more_widely_than_was_told(options):
    """Also where what was learned is released, as far as may be from what was measured."""
    hard = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        cells = rng.multinomial(400, rng.dirichlet(np.full(32, 0.2))).reshape(8, 4)
        data = ic.PrivateData(cells, ic.Domain.of(a=8, b=4))
        options = {"threshold": 0.05} | options
        session = ic.OnlineIC(data, ic.Budget(2.0, 1e-6), noise=SimulatedNoise(seed), **options)
        for asked in range(8):
            wrong = session.hypothesis.probabilities().reshape(8, 4) > cells / 400
            question = ic.dense(wrong) if asked % 2 else where(a=between(asked // 2, 4))
            told, answer = session.explain(question), session.answer(question)
            hard += answer.status == "hard"
            if answer.status == "hard":
                assert answer.error_bound <= told.bound_hard * (1.0 + 1e-9)

    assert hard >= 6


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_hit_uses_up_what_a_dearer_easy_question_has_left_standing(delta):
    """A cheap question behind a dear one that was easy is paid by what was set aside for the dear one."""
    data = ic.PrivateData(np.array([50_000, 0, 0, 0, 50_000, 0, 0, 0]), ic.Domain.of(a=8))
    session = ic.OnlineIC(
        data,
        ic.Budget(1.0, delta),
        update=Still(),
        release="answer",
        threshold=0.005,
        max_queries=20,
        noise=SimulatedNoise(5),
    )
    cheap = where(a=ic.weights([0.05] + 7 * [0.0]))
    alone = session.explain(cheap).price
    assert "easy" == session.answer(where(a=between(0, 3))).status
    before, told = session.account.spent, session.explain([cheap, where(a=between(0, 3))])
    assert "hard" == session.answer(cheap).status
    spent = float((session.account.spent - before) / session.account.capacity)

    assert spent > alone
    assert (spent, spent) == (told.price, told.at_most)


def test_before_the_first_tables_are_bought_the_easy_bound_does_not_rest_on_the_values_of_the_start():
    """A bound is cut at the far end of [0, 1]: nobody knows yet how far from the value that will be."""
    data = ic.PrivateData(np.array([30, 0, 0, 0] * 4 + [5] * 16).reshape(8, 4), ic.Domain.of(a=8, b=4))
    half = np.zeros((8, 4))
    half[:, :2] = half[0, 2] = 1.0
    for seed in range(8):
        session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), max_queries=1000, noise=SimulatedNoise(seed))
        told = session.explain(half)
        if not len(session.transcript):
            answer = session.answer(half)
            assert answer.error_bound <= (told.bound_easy if answer.status == "easy" else told.bound_hard)


def test_the_first_hit_of_a_run_pays_for_its_threshold_too():
    session, *_ = opened(update=Still(), sparse="exponential", hard_answers=2, purchases=ic.TestsOnly())
    capacity, told = session.account.capacity, session.explain(where(a=0, c=3))

    assert "hard" == session.answer(where(a=0, c=3)).status
    assert told.price == float(session.account.spent / capacity)
    assert told.price > session.explain(where(a=1, c=3)).price


def test_what_cannot_be_paid_any_more_is_said():
    session, *_ = opened(update=Still(), max_queries=100, hard_answers=1, sparse="laplace")
    while session.statistics().hard_left:
        session.answer(where(a=0, c=session.statistics().asked))
    told = session.explain(where(a=1, c=2))

    assert not told.payable
    assert 0 == told.hits_left
    assert "untested" in repr(told)
    assert "untested" == session.answer(where(a=1, c=2)).status


def test_a_list_counts_what_it_repeats_itself_and_what_is_constant():
    session, *_ = opened()
    told = session.explain([F, ~F, where(a=0), where()])
    one = session.explain(F)

    assert (4, 1, 1) == (told.answers, told.constants, told.repeats)
    assert "several" == told.form
    assert told.at_most == pytest.approx(2 * one.price)
    assert ("b", "a") == told.attributes
    assert "4 answers, 2 known and free" in repr(told)


@pytest.mark.parametrize(
    ("question", "form", "attributes", "support", "bits"),
    [
        (F, "product", ("b",), 1 / 3, 0),
        (where(a=0, c=between(0, 4)), "product", ("a", "c"), 1 / 16, 0),
        (where(a=0) | where(b=0), "complement", ("a", "b"), 1 - (3 / 4) * (2 / 3), 0),
        (where(a=0, b=0) | where(a=1, c=0), "joint", ("a", "b", "c"), 1 / 12 + 1 / 80, 0),
        (where(a=9 - 9) & where(a=1), "constant", (), 0.0, 0),
        (where(a=ic.weights([0, 0.5, 1, 0])), "product", ("a",), 0.5, 1),
        (ic.marginal("b", where=where(a=0)), "table", ("a", "b"), 0.25, 0),
    ],
)
def test_form_attributes_support_and_grid(question, form, attributes, support, bits):
    told = opened()[0].explain(question)

    assert (form, attributes, bits) == (told.form, told.attributes, told.grid_bits)
    assert told.support == pytest.approx(support)


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.mean("c"),
        lambda session: session.sum("c", F),
        lambda session: session.quantile("c", 0.3, F),
        lambda session: session.group_by("b", aggregate="mean", of="c"),
        lambda session: session.cdf("c"),
    ],
)
def test_a_derived_question_becomes_the_answers_that_it_takes_with_the_bound_it_will_have(ask):
    session, *_ = opened()
    told = session.explain(ask)
    found = ask(session)

    assert told.answers == len(found.answers)
    assert {"easy"} == {answer.status for answer in found.answers}
    assert session.explain(ask).free
    for name in ("error_bound", "rank_error"):
        if hasattr(found, name):
            assert told.bound_derived == pytest.approx(getattr(found, name), rel=1e-3)


def test_a_mean_over_too_few_has_no_bound_before_it_is_asked():
    assert (
        math.inf == opened()[0].explain(lambda session: session.mean("c", where(a=0, b=0, c=7))).bound_derived
    )


def test_what_cannot_be_asked_is_refused_and_a_closed_session_says_so():
    session, *_ = opened()
    for question in (where(z=1), [F, where(z=1)], 3, lambda session: session.mean("z")):
        with pytest.raises(InvalidQueryError):
            session.explain(question)
    session.close()
    with pytest.raises(SessionStateError):
        session.explain(F)


def test_a_textbook_session_explains_with_the_bound_of_its_theorem():
    data = ic.PrivateData(10**7 * np.ones(4, np.int64), ic.Domain.of(a=4))
    session = ic.OnlineIC.textbook(data, epsilon=1.0, max_queries=10, noise=Watched(1))
    told = session.explain(where(a=1))

    assert told.bound_easy == told.bound_hard == pytest.approx(session.plan.error_bound)


def test_the_bound_of_a_measured_answer_of_few_records_is_not_cut():
    """A number is released as it was drawn: with so much noise it lies far outside of [0, 1]."""
    data = ic.PrivateData.from_records({"x": np.arange(10) % 5}, ic.Domain.of(x=5))
    session = ic.OnlineIC(data, ic.Budget(0.1, 1e-9), purchases=TestsOnly(), noise=SimulatedNoise(1))
    told = session.explain(ic.where(x=2))

    assert told.bound_easy <= 1.0 < 10.0 < told.bound_hard


def test_bounds_of_a_measured_answer_or_of_a_private_n_may_be_beyond_1():
    """A number with much noise is released as it was drawn; few records among a noisy n are far from it."""
    domain = ic.Domain.of(x=range(8), y=range(9), z=range(30))
    columns, beyond = {name: np.zeros(400, int) for name in domain.names}, 0
    for seed in (0, 3, 7):
        data = ic.PrivateData.from_records(columns, domain, neighbours="add-remove", n_at_most=1000)
        session = ic.OnlineIC(data, ic.Budget(0.05, 1e-6), noise=SimulatedNoise(seed), questions=10)
        for place in range(3):
            question = ic.where(x=ic.below(place + 1), y=0, z=ic.below(3 + place))
            told, answer = session.explain(question), session.answer(question)
            stated = told.bound_hard if answer.status == "hard" else told.bound_easy
            assert answer.error_bound <= stated * (1 + 1e-9)
            beyond += answer.error_bound > 1.0
    assert beyond > 3
