"""Levels of an attribute: nested, with whole bins and the missing cell apart; none is lost."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.interactions.levels import levels_of
from onlineic.queries.cuts import GRID

LONG = 10**6
KINDS = {
    "labels": (["a", "b", "c"], (1, 3)),
    "range": (range(40), (1, 10, 40)),
    "optional": (ic.optional(range(40)), (1, 11, 41)),
    "number": (ic.number(0, 1, bins=64), (1, 4, 16, 64, 128)),
    "optional number": (ic.optional(ic.number(0, 1, bins=64)), (1, 5, 17, 65, 129)),
    "uneven": (ic.optional(range(50)), (1, 4, 13, 51)),
    "long": (range(LONG), (1, 4, 16, 64, 256, 1024, GRID)),
    "optional long": (ic.optional(range(LONG)), (1, 5, 17, 65, 257, 1025, GRID + 1)),
    "optional minutes": (
        ic.optional(ic.dates("2020-01-01T00:00", "2020-12-31T23:59", by="minute")),
        (1, 5, 17, 65, 257, 1025, GRID + 1),
    ),
    "one": (range(1), (1,)),
    "one or none": (ic.optional(range(1)), (1, 2)),
}


@pytest.fixture(params=KINDS)
def levels(request):
    kind, parts = KINDS[request.param]
    (found,) = levels_of(ic.Domain.of(x=kind))
    assert parts == found.parts
    return found


def test_each_level_is_made_of_whole_parts_of_the_next(levels):
    for coarse, fine in zip(levels.classes, levels.classes[1:], strict=False):
        assert len(np.unique(fine)) == len({*zip(fine.tolist(), coarse.tolist(), strict=True)})


def test_the_missing_cell_is_a_part_by_itself_but_of_the_whole(levels):
    for classes in levels.classes[1:] if levels.missing else ():
        assert 1 == np.count_nonzero(classes == classes[-1])


def test_both_ends_of_a_bin_lie_in_one_part_but_of_the_codes():
    (levels,) = levels_of(ic.Domain.of(x=ic.optional(ic.number(0, 1, bins=64))))
    for classes in levels.classes[:-1]:
        assert classes[:-1:2].tolist() == classes[1::2].tolist()
    assert [*range(64), 64] == [*levels.classes[-2][:-1:2], levels.classes[-2][-1]]


def test_what_the_levels_say_adds_up_to_the_counts(levels):
    counts = np.random.default_rng(1).normal(size=levels.parts[-1])
    said = [
        levels.even(levels.between(counts, levels.finest, level), level) for level in range(len(levels.parts))
    ]

    assert counts == pytest.approx(np.sum(np.broadcast_arrays(*said), axis=0), abs=1e-12)


def test_a_question_asks_of_counts_what_its_weights_say_at_each_level(levels):
    rng = np.random.default_rng(2)
    counts, weights = rng.normal(size=(2, levels.parts[-1]))
    asked = 0.0
    for level in range(len(levels.parts)):
        beyond = levels.beyond(weights, level)
        asked += float(beyond @ levels.between(counts, levels.finest, level))

    assert asked == pytest.approx(float(weights @ counts), abs=1e-9)
