"""Small sessions on scripted noise against stored transcripts: every scale asked, in order, every answer.

The stored answers also follow from a second telling of the published algorithm in plain integers, below.
"""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import onlineic as ic
from onlineic.ledger import Hard
from onlineic.testing import ScriptedNoise

DOMAIN = ic.Domain.of(a=4, b=2)
COUNTS = [[40_000_000, 0], [5, 10_000_000], [0, 0], [29_999_995, 20_000_000]]
N = 10**8
QUERIES = {
    "a=0": ic.where(a=0),
    "a=1,b=0": ic.where(a=1, b=0),
    "a=0..1": ic.where(a=ic.between(0, 1)),
    "not a=0": ~ic.where(a=0),
    "b=1": ic.where(b=1),
    "half": ic.dense(np.full((4, 2), 0.5) + np.array([[0.25, 0.0]] * 4)),
    "everybody": ic.where(),
    "a=2": ic.where(a=2),
    "a=3": ic.where(a=3),
}
NAMES = ["textbook", "practical", "exhausted"]


def stored(name):
    return json.loads(Path(__file__).with_name(f"session_{name}.json").read_text(encoding="utf-8"))


def opened(golden):
    data = ic.PrivateData(np.array(COUNTS), DOMAIN)
    noise = ScriptedNoise(golden["draws"])
    settings = golden["settings"]
    if golden["mode"] == "textbook":
        return ic.OnlineIC.textbook(data, noise=noise, **settings), noise
    budget = ic.Budget(settings.pop("epsilon"), settings.pop("delta", 0.0))
    constant = ic.MultiplicativeWeights(rate=2.0 * settings["threshold"])  # 4 alpha, threshold 2 alpha
    return ic.OnlineIC(data, budget, noise=noise, sparse="laplace", update=constant, **settings), noise


def played(golden):
    session, noise = opened(golden)
    answers = [session.answer(QUERIES[name]) for name in golden["queries"]]
    return session, noise, answers


@pytest.mark.parametrize("name", NAMES)
def test_a_session_on_a_script_is_the_stored_one(name):
    golden = stored(name)
    session, noise, answers = played(golden)

    assert golden["answers"] == [[answer.status, answer.value, answer.error_bound] for answer in answers]
    assert golden["asked"] == [[method, str(scale), size] for method, scale, size in noise.scales]
    assert golden["records"] == [type(record).__name__ for record in session.transcript]
    assert noise.exhausted


@pytest.mark.parametrize("name", NAMES)
def test_the_scales_are_those_of_the_published_algorithm(name):
    golden = stored(name)
    session, noise, _ = played(golden)
    cutoff, epsilon = session.plan.hard_answers, Fraction(session.statistics().budget.epsilon)
    threshold = Fraction(9 * cutoff, 4) / epsilon * 2**20  # grid units
    rounded = [Fraction(math.ceil(scale)) for scale in (threshold, 2 * threshold)]
    expected = {*rounded, *(Fraction(9 * cutoff) / epsilon * 2**k for k in (0, 2))}

    assert {scale for _, scale, _ in noise.scales} <= expected
    assert {rounded[0], rounded[1]} <= {scale for _, scale, _ in noise.scales}


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_answers_follow_from_the_algorithm_alone(name):
    golden = stored(name)
    session, _, _ = played(golden)
    plan = session.plan
    draws = iter(golden["draws"])
    weights = {label: np.array(QUERIES[label].bind(DOMAIN, 20).weights()) for label in golden["queries"]}
    bits = {label: QUERIES[label].bind(DOMAIN, 20).grid_bits for label in golden["queries"]}
    belief = np.full((4, 2), 1 / 8)
    rate = plan.alpha / 2 if plan.textbook else 4 * plan.alpha
    tau = math.ceil(golden["threshold"] * (N << 20)) + 1
    memory, hits, rho, answers = {}, 0, None, []
    for label in golden["queries"]:
        most = N << bits[label]
        weight = weights[label]
        twin = ((1 << bits[label]) - weight).tobytes()
        if len(set(weight.ravel().tolist())) == 1:
            answers.append(("easy", float(weight.ravel()[0]) / 2 ** bits[label]))
            continue
        if weight.tobytes() in memory or twin in memory:
            value = memory.get(weight.tobytes())
            answers.append(("repeat", value if value is not None else 1.0 - memory[twin]))
            continue
        guess = round(most * float((weight * belief).sum() / 2 ** bits[label]))
        if hits == plan.hard_answers:
            answers.append(("untested", guess / most))
            continue
        exact = int((weight * np.array(COUNTS)).sum())
        gap = (exact - guess) << (20 - bits[label])
        if rho is None:
            rho = next(draws)
        sides = (gap, -gap) if plan.textbook else (abs(gap),)
        if any(value + next(draws) >= tau + rho for value in sides):
            value = (exact + next(draws)) / most
            answers.append(("hard", value))
            belief = belief * np.exp(
                math.copysign(rate, value - (weight * belief).sum() / 2 ** bits[label])
                * weight
                / 2 ** bits[label]
            )
            belief /= belief.sum()
            hits, rho = hits + 1, None
            if plan.textbook:
                memory.clear()
            else:
                memory[weight.tobytes()] = value
        else:
            answers.append(("easy", guess / most))
            memory[weight.tobytes()] = guess / most

    assert [status for status, _ in answers] == [answer[0] for answer in golden["answers"]]
    assert [value for _, value in answers] == pytest.approx([a[1] for a in golden["answers"]], abs=2 / N)
    assert None is next(draws, None)


def test_the_scales_of_one_easy_one_hard_and_one_more_test_are_those_of_the_book():
    # in counts: 22.5, 45, 45, 90, 22.5; the tests live on a grid of 2^-20 counts, the number on counts
    session = ic.OnlineIC(
        ic.PrivateData(np.array(COUNTS), DOMAIN),
        ic.Budget(1.0),
        hard_answers=10,
        threshold=0.2,
        sparse="laplace",
        noise=(noise := ScriptedNoise([0] * 6)),
    )
    statuses = [session.answer(QUERIES[name]).status for name in ("a=0", "a=3", "a=1,b=0")]
    grid = 2**20

    assert ["easy", "hard", "easy"] == statuses
    assert [22.5 * grid, 45 * grid, 45 * grid, 90, 22.5 * grid, 45 * grid] == [s for _, s, _ in noise.scales]
    assert 1 == sum(isinstance(record, Hard) for record in session.transcript)
