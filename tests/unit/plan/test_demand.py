"""What is bought by what is asked: questions that buy nothing, and questions in a batch."""

import numpy as np
import pytest

import onlineic as ic
from onlineic import where
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError
from onlineic.interactions.demand import Demand, asked_of
from onlineic.ledger import Opened
from onlineic.plan.demand import DemandPurchases, cheapest
from onlineic.queries.partitions import Partition

DOMAIN = ic.Domain.of(a=5, b=3, c=6, d=1)
COUNTS = np.random.default_rng(1).multinomial(2_000, np.full(DOMAIN.size, 1.0 / DOMAIN.size))


def listening(domain=DOMAIN, counts=COUNTS):
    data = PrivateData(counts.reshape(domain.shape), domain)
    noise = ic.noise.SimulatedNoise(1)
    return ic.OnlineIC(data, ic.Budget(1.0, 1e-9), purchases=DemandPurchases(), noise=noise)


def bought(session):
    return [record for record in session.transcript if isinstance(record, Opened)]


@pytest.mark.parametrize("domain", [ic.Domain.of(a=1, b=1), ic.Domain.of(a=1, b=2)])
def test_a_cross_table_of_one_code_buys_nothing_of_its_own(domain):
    session = listening(domain, np.full(domain.shape, 50))

    assert session.answer(ic.marginal("a")).value.shape == (1,)


def test_a_table_of_one_code_behind_others_buys_nothing():
    session = listening()
    session.answer(where(a=1))
    before = len(bought(session))
    session.answer(ic.marginal("d"))

    assert before == len(bought(session)) == 1


def test_nothing_is_bought_where_all_tables_have_too_many_blocks():
    long = ic.Domain.of(a=[f"code {code}" for code in range(2**16 + 1)], b=2)
    design = cheapest(
        long,
        Demand.of_one(long, asked_of(Partition(long, (0,), (np.arange(2**16 + 1),)).block(0))),
        None,
        1e6,
    )

    assert design.parts == {}
    assert design.before == design.after > 0.0


@pytest.mark.parametrize("again", [0, 3])
def test_a_batch_buys_and_answers_as_its_questions_do_one_by_one(again):
    """The question behind the fourth tested one was asked before: it is answered by the new instalment."""
    questions = [where(a=code, b=1) for code in range(4)]
    questions.append(questions[again])
    alone, batch = listening(), listening()
    answers = [alone.answer(question) for question in questions]
    together = batch.answer_many(questions)

    assert [one.status for one in answers] == [one.status for one in together]
    assert [one.value for one in answers] == [one.value for one in together]
    targets = [[[part.target for part in one.measurements] for one in bought(one)] for one in (alone, batch)]
    assert targets[0] == targets[1]
    assert len(targets[0]) >= 2


@pytest.mark.parametrize("made", [{"share": 0}, {"after": (2, 3)}, {"after": (1,)}, {"one": 2}])
def test_shares_and_counts_that_do_not_rise_are_refused(made):
    with pytest.raises(InvalidParameterError, match="purchases must have"):
        DemandPurchases(**made)
