"""What a question costs and is worth to who asks it: the same before and after, whatever part they have."""

import contextlib
import json
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.service import Users
from onlineic.session import Quota
from support.served import served

DOMAIN = ic.Domain.of({f"x{place}": ["0", "1"] for place in range(10)})
COUNTS = np.random.default_rng(4).multinomial(30_000, np.random.default_rng(5).dirichlet(np.full(1024, 0.1)))
TABLE = COUNTS.reshape(DOMAIN.shape)
PARITY = {
    "or": [{"x0": "0", "x1": "0", "x8": "0"}, {"x3": "1", "x5": "1", "x7": "0"}, {"x6": "1", "x2": "0"}]
}


def opened(path):
    data = ic.PrivateData(TABLE, DOMAIN)
    return ic.OnlineIC(data, ic.Budget(1.0, 1e-9), ledger=path, table="t", durability="all")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with served(opened(folder / "a.db"), folder, ["ann", "bob", "eve"]) as running:
        with contextlib.closing(Users(running.users)) as users:
            users.quota("eve", share=0)
            users.quota("ann", share=1e-9)
        yield running


def remote(server, who):
    return ic.connect(server.url, server.tokens[who])


def test_before_the_first_question_it_is_said_what_that_buys_for_everybody(server):
    with remote(server, "eve") as eve, remote(server, "bob") as bob:
        before, without = bob.explain({"x0": "0"}), eve.explain({"x0": "0"})
        eve.answer({"x0": "0"})
        nothing = bob.statistics().spent
        answer = bob.answer({"x1": "0"})
        after, bought = bob.explain({"x2": "0"}), bob.statistics().bought

    assert "easy" == answer.status
    assert 0.0 == nothing == without.shared  # who cannot pay sets nothing in motion
    assert 0.1 < before.shared < 1.0
    assert bought == pytest.approx(before.shared)
    assert 0.0 == after.shared
    assert before.payable
    assert not without.payable


@pytest.mark.parametrize("who", ["ann", "eve"])
def test_who_cannot_pay_is_told_the_bound_that_the_answer_then_has(server, who):
    with remote(server, "bob") as bob:
        bob.answer({"x1": "0"})
    with remote(server, who) as asker:
        said = asker.explain(PARITY)
        answer = asker.answer(PARITY)
        mean = asker.explain("SELECT COUNT(*) FROM t WHERE x4 = '1'")

    assert not said.payable
    assert ("untested", answer.error_bound) == (answer.status, said.bound_easy)
    assert said.bound_hard == answer.error_bound
    assert 0 == said.hits_left
    assert not mean.payable


def test_what_can_still_be_paid_follows_the_part_and_not_the_budget(server):
    told = {}
    for who in ("ann", "bob", "eve"):
        with remote(server, who) as asker:
            told[who] = asker.part()["hard_left"], asker.explain(PARITY).hits_left
            everybody = asker.statistics().hard_left

    assert (0, 0) == told["ann"] == told["eve"]
    assert 0 < told["bob"][0] <= everybody
    assert told["bob"][0] == told["bob"][1]


def test_a_view_explains_for_the_owner_of_a_quota(tmp_path):
    with opened(tmp_path / "b.db") as session:
        session.answer({"x1": "0"})
        view = session.view()
        capacity = view.account.capacity
        free, all_of_it = view.explain(PARITY), view.explain(PARITY, quota=Quota("a", capacity))
        price = Fraction(free.price) * capacity
        enough = view.explain(PARITY, quota=Quota("a", price * Fraction(1001, 1000)))
        less = view.explain(PARITY, quota=Quota("a", price * Fraction(999, 1000)))
        paid = session.paid_by(Quota("a", price * Fraction(999, 1000))).answer(PARITY)

    assert free == attrs.evolve(all_of_it, of_part=None)
    assert all_of_it.of_part == pytest.approx(all_of_it.at_most)
    assert (enough.payable, enough.hits_left, enough.bound_easy) == (True, 1, free.bound_easy)
    assert not less.payable
    assert ("untested", less.bound_easy) == (paid.status, paid.error_bound)


def test_too_few_records_cross_the_network_as_an_infinite_bound(tmp_path):
    domain = ic.Domain.of(age=range(20, 40), sex=["F", "M"])
    table = np.zeros(domain.shape, int)
    table[0, 0], table[:, 1] = 2, 500
    session = ic.OnlineIC(
        ic.PrivateData(table, domain),
        ic.Budget(1.0, 1e-9),
        ledger=tmp_path / "a.db",
        table="t",
        durability="all",
    )
    session.answer({"age": 21})
    statement = "SELECT AVG(age) FROM t WHERE sex = 'F' AND age > 30"
    near = session.explain(statement)
    with served(session, tmp_path, ["ann"]) as server, remote(server, "ann") as far:
        told, plain = far.explain(statement), far.explain({"sex": "F"})

    assert math.inf == near.bound_derived == told.bound_derived
    assert repr(near) == repr(told)
    assert None is plain.bound_derived
    assert None is json.loads(json.dumps(near.to_dict()))["bound_derived"]
