"""Answers that wait, and those that were sorted in, are recalled alike: keys of one word and of several."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.queries import AnswerMemory, Queries
from onlineic.queries import memory as memory_module
from onlineic.queries.query import boxed

SHORT = ic.Domain.of(a=50, b=40, c=30)  # keys of one word
LONG = ic.Domain.of(dict.fromkeys("abc", 2**15))  # of two


def boxes(domain, count, seed):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        ends = np.sort(rng.integers(0, domain.shape[0] - 20, (3, 2)), axis=1).tolist()
        some = {name: ic.between(*pair) for name, pair in zip("abc", ends, strict=True) if rng.random() < 0.7}
        made.append(ic.where(some or {"a": 3}).bind(domain))
    return made


@pytest.mark.parametrize("domain", [SHORT, LONG])
def test_what_was_sorted_in_is_found_again_and_nothing_else(domain, monkeypatch):
    monkeypatch.setattr(memory_module, "WAITING", 20)
    memory = AnswerMemory(lasting=True)
    asked = list(dict.fromkeys(boxes(domain, 300, 1)))
    for place, query in enumerate(asked):
        memory.remember(query, place / 1000, 0.1 + place, 0)
    others = [query for query in boxes(domain, 300, 2) if query not in set(asked)]

    found = [memory.recall(query, 5) for query in asked]
    assert len(asked) == len(memory)
    assert [place / 1000 for place in range(len(asked))] == [one.value for one in found]
    assert [0.1 + place for place in range(len(asked))] == [one.radius for one in found]
    assert asked == [one.question for one in found]
    assert {None} == {memory.recall(query, 5) for query in others}
    assert len(others) > 100


@pytest.mark.parametrize("domain", [SHORT, LONG])
def test_a_later_answer_takes_the_place_of_an_earlier_one_wherever_both_stand(domain, monkeypatch):
    """Among those that wait, in the small run, and merged into the large one; turned, and rounded."""
    monkeypatch.setattr(memory_module, "WAITING", 10)
    memory = AnswerMemory(lasting=True)
    asked = list(dict.fromkeys(boxes(domain, 120, 3)))
    turned = [boxed(domain, one.axes, *one.box, True, 0.0) for one in asked[5:25]]
    told = {}
    for version, some in enumerate([asked, asked[:40], asked[20:30], turned, asked]):
        for place, query in enumerate(some):
            told[query.key] = (query, version + place / 1000, version)
            memory.remember(query, version + place / 1000, 0.5, version)
        found = memory.recall_many(Queries.bound(domain, asked), version)

        alone = [memory.recall(query, version) for query in asked]
        assert [told[query.key] for query in asked] == [
            (one.question, one.value, one.version) for one in alone
        ]
        assert found.known.all()
        assert [told[query.key][1] for query in asked] == found.values.tolist()
        assert [told[query.key][0] != query for query in asked] == found.turned.tolist()
