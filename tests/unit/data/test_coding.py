"""Columns of values to columns of codes, batch by batch."""

import numpy as np
import pytest

from onlineic.data.coding import Batch, coded, places
from onlineic.domain import Domain
from onlineic.errors import InvalidDataError

DOMAIN = Domain.of(age=range(3))


def batches(*parts):
    total = sum(map(len, parts))
    return [Batch([places(part)], None, total) for part in parts]


def test_values_are_coded_alike_in_every_batch():
    (codes,), records = coded(batches([2, 0, 2], [0, 1], [2]), DOMAIN)

    assert [2, 0, 2, 0, 1, 2] == codes.tolist()
    assert records is None


@pytest.mark.parametrize("later", [True, 1.5, "1", None, [1], 3], ids=repr)
def test_a_value_that_equals_one_of_an_earlier_batch_is_told_from_it_by_its_type(later):
    with pytest.raises(InvalidDataError, match="age must"):
        coded(batches([1, 0], [later]), DOMAIN)


def test_equal_values_of_other_types_have_places_of_their_own():
    values, found = places([1, True, 1.0, 1])

    assert [int, bool, float] == [type(value) for value in values]
    assert np.array_equal([0, 1, 2, 0], found)
