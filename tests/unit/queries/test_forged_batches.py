"""Batches that claim a sensitivity which nobody has checked are refused, however they are looked at."""

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import DomainMismatchError, InvalidQueryError
from onlineic.queries import Boxes, Queries

SMALL, WIDE = ic.Domain.of(a=2, b=2), ic.Domain.of(a=9, b=9)
FORGED = Queries(
    SMALL,
    (
        Boxes(
            (0, 0),
            np.zeros(1, np.int32),
            np.array([[0, 1]], np.int32),
            np.array([[1, 2]], np.int32),
            np.zeros(1, np.bool_),
        ),
    ),
    (),
    1,
)


class Twice(dict):
    """A mapping that names its attribute twice, as a table with two columns of one name does."""

    def items(self):
        return [("a", [0, 1]), ("a", [1, 1])]


@pytest.mark.parametrize(
    "look", [lambda batch: batch[0], lambda batch: batch[::-1], list, lambda batch: batch[:1][0]]
)
def test_no_row_of_a_batch_put_together_by_hand_is_handed_out(look):
    with pytest.raises(InvalidQueryError, match=r"Queries\.where"):
        look(FORGED)


def test_a_session_answers_no_batch_put_together_by_hand():
    session = ic.OnlineIC(ic.PrivateData(np.full(4, 100), SMALL), ic.Budget(1.0))
    length = len(session.transcript)
    with pytest.raises(InvalidQueryError, match=r"Queries\.where"):
        session.answer_many(FORGED)

    assert len(session.transcript) == length


def test_a_query_of_another_domain_or_one_that_was_altered_joins_no_batch():
    query = ic.where(a=8).bind(WIDE)
    with pytest.raises(DomainMismatchError):
        Queries.bound(SMALL, [query])
    with pytest.raises(InvalidQueryError, match="bind"):
        Queries.bound(WIDE, [attrs.evolve(query, complement=True)])


def test_an_attribute_that_is_named_twice_is_refused():
    with pytest.raises(InvalidQueryError, match="once"):
        Queries.where(SMALL, Twice(a=[0, 1]))


def test_the_columns_of_a_batch_cannot_be_changed_behind_its_check():
    given = np.array([0, 1])
    for batch in (
        Queries.where(SMALL, {"a": given}),
        Queries.where(SMALL, {"a": given, "b": np.array([[0.5, 0.25], [0.0, 1.0]])}),
        Queries.bound(SMALL, [ic.where(a=0).bind(SMALL), ic.where(a=0, b=1).bind(SMALL)]),
    ):
        for group in batch.boxes:
            for array in (group.places, group.low, group.high, group.turned):
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 0
    given[:] = 7  # the caller's own stays his
    assert given.flags.writeable


def test_a_recorded_batch_is_checked_again():
    batch = Queries.where(WIDE, {"a": ([0, 3, 2], [2, 5, 9]), "b": ([1, 0, 0], [4, 9, 9])})
    again = Queries.recorded(WIDE, batch.boxes, batch.others, len(batch))
    assert [query.key for query in again] == [query.key for query in batch]

    (group, *_), length = batch.boxes, len(batch)
    for changed in (
        {"low": group.low - 10},
        {"high": group.high + 9},
        {"low": group.high},
        {"axes": (group.axes[0],) * len(group.axes)} if len(group.axes) > 1 else {"axes": (0, 0)},
        {"axes": (7,) * len(group.axes)},
        {"places": group.places + 1},
    ):
        with pytest.raises(InvalidQueryError, match="record"):
            Queries.recorded(WIDE, [attrs.evolve(group, **changed), *batch.boxes[1:]], batch.others, length)
