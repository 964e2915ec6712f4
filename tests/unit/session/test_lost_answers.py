"""What a ledger file says of answers that a killed process gave, and of weights that were rounded."""

from unittest.mock import patch

import attrs
import numpy as np

import onlineic as ic
from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.ledger import read
from support.ledgers import quick_folder, with_ledger


def test_a_joint_bound_covers_easy_answers_that_no_record_holds():
    """Process one gave four that only their test bounds; process two one that the tables bound better."""
    domain = ic.Domain.of(a=6, b=7, c=8, d=6)
    generator = np.random.default_rng(3)
    counts = generator.multinomial(30_000, generator.dirichlet(np.full(domain.size, 0.2))).reshape(
        domain.shape
    )
    data = PrivateData(counts, domain)
    joint = [
        ic.where(
            a=ic.one_of(*range(size)), b=ic.one_of(*range(size)), c=ic.one_of(*range(size)), d=ic.one_of(0)
        )
        for size in (1, 2, 3, 4)
    ]
    for _ in range(50):  # until no test of a private session is hard by its noise
        with quick_folder() as folder:
            path = folder / "ledger.db"
            session, ledger = with_ledger(
                ic.OnlineIC,
                data,
                ic.Budget(1.0, 1e-9),
                ledger=path,
                table="made up",
                questions=[("a",), ("b",)],  # whose tables do not bound what four attributes hold
            )
            answers = session.answer_many(joint)
            before = session.joint_bounds(joint, answers)
            ledger.release()  # as a kill does: easy answers that wait for a hit are lost
            with ic.OnlineIC.resume(path, data) as session:
                answers.append(session.answer(ic.where(a=0)))
                recorded = session.statistics().easy
                after = session.joint_bounds(joint, answers[:4])
        if {"easy"} == {answer.status for answer in answers}:
            break

    assert ({"easy"}, 1) == ({answer.status for answer in answers}, recorded)
    assert (after >= before - 1e-12).all()


def test_a_file_is_read_again_behind_weights_that_are_rounded_by_more_than_one():
    """Ten factors of the coarsest grid are rounded by a tenth each, or more."""
    domain = ic.Domain.of(**{f"a{place}": 2 for place in range(10)})
    data = PrivateData(np.bincount(np.arange(2_000) % 1024, minlength=1024).reshape(domain.shape), domain)
    question = ic.where({f"a{place}": ic.weights([0.3, 0.6]) for place in range(10)})
    with quick_folder() as folder:
        path = folder / "ledger.db"
        with ic.OnlineIC(data, ic.Budget(1.0, 1e-9), ledger=path, table="made up") as session:
            rounding = question.bind(domain, session.plan.sparse.grid_bits).rounding
            session.answer(question)
        report = verified(read(path))
        with ic.OnlineIC.resume(path, data) as session:
            assert session.statistics().asked == 1

    assert rounding > 1.0
    assert () == report.problems


def test_a_rule_without_parameters_is_replayed():
    domain = ic.Domain.of(a=6, b=4)
    counts = np.arange(24).reshape(6, 4) * 40
    data = PrivateData(counts, domain)
    with quick_folder() as folder:
        path = folder / "ledger.db"
        with patch.object(ic.MaximumEntropy, "parameters", lambda *_: ()):
            with ic.OnlineIC(data, ic.Budget(1.0, 1e-9), ledger=path, table="made up") as session:
                values = [session.answer(ic.where(a=code)).value for code in range(6)]
            with ic.OnlineIC.resume(path, data) as session:
                assert values == [session.answer(ic.where(a=code)).value for code in range(6)]


def test_questions_may_be_any_iterable():
    domain = ic.Domain.of(a=6, b=4)
    data = PrivateData(np.arange(24).reshape(6, 4) * 40, domain)
    plans = [
        ic.OnlineIC(data, ic.Budget(1.0, 1e-9), questions=told, noise=ic.noise.SimulatedNoise(1)).plan
        for told in (["a"], iter(["a"]))
    ]

    assert attrs.evolve(plans[0]) == plans[1]
