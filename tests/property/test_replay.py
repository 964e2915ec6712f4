"""A session is a function of its transcript: hypothesis and easy answers follow from what is public."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.ledger import Easy, Forfeited, Hard, Reserved
from onlineic.noise import SimulatedNoise
from onlineic.session import replay
from support.sessions import all_spent

DOMAIN = ic.Domain.of(a=3, b=2)
RULES = [
    ic.MultiplicativeWeights(),
    ic.MultiplicativeWeights(variant="book"),
    ic.MultiplicativeWeights(rate=3.0),
    ic.Perceptron(),
    ic.Perceptron(variant="book"),
    ic.Median(size=6),
]

queries = st.one_of(
    st.tuples(st.integers(0, 2), st.integers(0, 2)).map(
        lambda ends: ic.where(a=ic.between(min(ends), max(ends)))
    ),
    st.tuples(st.integers(0, 2), st.integers(0, 1)).map(lambda point: ic.where(a=point[0], b=point[1])),
    st.lists(st.integers(0, 16), min_size=6, max_size=6).map(lambda w: np.array(w) / 16),
)
streams = st.lists(queries, min_size=1, max_size=40)
tables = st.lists(st.integers(0, 50_000), min_size=6, max_size=6).filter(any)


def opened(counts, rule, seed):
    data = PrivateData(np.array(counts), DOMAIN)
    return ic.OnlineIC(
        data,
        ic.Budget(5.0),
        hard_answers=15,
        threshold=0.05,
        update=rule,
        sparse="laplace",
        noise=SimulatedNoise(seed),
    )


def state(hypothesis):
    if isinstance(hypothesis, ic.Histogram):
        return hypothesis.probabilities().tobytes()
    if hasattr(hypothesis, "cells"):
        return hypothesis.cells().tobytes()
    return hypothesis.databases.tobytes()


@pytest.mark.parametrize("rule", RULES, ids=repr)
@settings(max_examples=25)
@given(counts=tables, asked=streams, seed=st.integers(0, 99), batch=st.booleans())
def test_the_hypothesis_follows_from_the_transcript_alone_bit_for_bit(rule, counts, asked, seed, batch):
    session = opened(counts, rule, seed)
    if batch:
        session.answer_many(asked)
    else:
        for query in asked:
            session.answer(query)
    again = replay(session.transcript, DOMAIN, session.plan.update, session.plan.alpha)

    assert state(session.hypothesis) == state(again)


@given(counts=tables, asked=streams, seed=st.integers(0, 99))
def test_every_answer_is_in_the_transcript_or_follows_from_it(counts, asked, seed):
    session = opened(counts, RULES[0], seed)
    answers = session.answer_many(asked)
    tested = [answer for answer in answers if answer.status in ("easy", "hard")]
    records = [record for record in session.transcript if isinstance(record, Easy | Hard)]
    rebuilt = ic.Histogram(DOMAIN)
    constants = sum(_bound(query).constant is not None for query in asked)

    assert len(records) == len(tested) - constants
    told = iter(
        answer for query, answer in zip(asked, answers, strict=True) if _bound(query).constant is None
    )
    for place, record in enumerate(records):
        answer = next(answer for answer in told if answer.status in ("easy", "hard"))
        most = session.n << record.query.grid_bits
        guess = min(max(round(most * rebuilt.evaluate(record.query)), 0), most)
        assert guess == record.guess
        if isinstance(record, Easy):
            assert ("easy", record.guess / most) == (answer.status, answer.value)
        else:
            assert ("hard", float(record.measurement.values[0])) == (answer.status, answer.value)
            earlier = [r.measurement for r in records[: place + 1] if isinstance(r, Hard)]
            rebuilt = session.plan.update.update(rebuilt, tuple(earlier), session.plan.alpha)


def _bound(query):
    return (query if isinstance(query, ic.where().__class__) else ic.dense(query)).bind(DOMAIN)


@given(counts=tables, asked=streams, seed=st.integers(0, 99))
def test_charges_come_first_and_add_up(counts, asked, seed):
    """Every test stands behind a reservation that no earlier hard answer has used up."""
    session = opened(counts, RULES[0], seed)
    session.answer_many(asked)
    covered, used = False, 0
    for record in session.transcript:
        if isinstance(record, Reserved):
            assert not covered
            covered = True
        elif isinstance(record, Easy | Hard):
            assert covered
            if isinstance(record, Hard):
                covered, used = False, used + record.charge.amount
        else:
            assert not isinstance(record, Forfeited)
    standing = session.reserved

    assert used + (standing.amount if covered else 0) == all_spent(session) <= 5


@settings(max_examples=20)
@given(counts=tables, asked=streams, seed=st.integers(0, 99))
def test_the_same_noise_gives_the_same_session_and_neighbours_get_the_same_questions(counts, asked, seed):
    first, second = (opened(counts, RULES[0], seed) for _ in range(2))

    assert first.answer_many(asked) == second.answer_many(asked)
    assert state(first.hypothesis) == state(second.hypothesis)


def test_an_easy_query_moved_behind_the_last_hard_one_changes_no_number():
    # each scale has a stream of its own here: only the order of its own draws could matter
    counts = [50_000, 0, 0, 0, 0, 9]
    hard, easy = ic.where(a=0), ic.where(a=0, b=1)
    before, after = opened(counts, RULES[0], 3), opened(counts, RULES[0], 3)
    early = before.answer_many([hard, hard])
    late = after.answer_many([hard, easy, hard])

    assert early[0] == late[0]
    assert early[1] == late[2]


@pytest.mark.parametrize("rule", [RULES[0], RULES[1], RULES[3], ic.Median(variant="dimension")], ids=repr)
def test_a_textbook_session_replays_with_its_plan(rule):
    counts = [5_000_000, 0, 1_000_000, 0, 400_000, 9]
    data = PrivateData(np.array(counts), DOMAIN)
    session = ic.OnlineIC.textbook(
        data, epsilon=10.0, alpha=0.15, max_queries=60, update=rule, noise=SimulatedNoise(2)
    )
    session.answer_many([ic.where(a=a, b=b) for a in range(3) for b in range(2)] * 10)
    again = replay(session.transcript, DOMAIN, session.plan.update, session.plan.alpha)

    assert 1 <= session.statistics().hard
    assert state(session.hypothesis) == state(again)
