"""Tables in which a library's own idea of equal, of a name or of a number would give other counts."""

import datetime
import zoneinfo

import pytest

from onlineic.data import PrivateData
from onlineic.data.coding import Batch, coded, places
from onlineic.domain import Domain, dates, integers
from onlineic.queries import where


def counted(data, name):
    """Return the counts of an attribute that is alone."""
    labels = [data.domain.attribute(name).label(code) for code in range(data.domain.size)]
    return [data.exact_counts(where({name: label}).bind(data.domain)) for label in labels]


def csv_table(tmp_path, text, domain, **options):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return PrivateData.from_csv(path, domain, **options)


# ---------------------------------------------------------------- values that Python takes for equal

HOURS = Domain.of(x=dates("2024-10-27T00", "2024-10-27T02", by="hour", zone="UTC"))


def autumn():
    """Both passes of a clock through half past two."""
    first = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Paris"))
    return first, first.replace(fold=1)


def test_the_hour_that_comes_twice_in_autumn_is_two_hours():
    first, second = autumn()
    assert first == second

    data = PrivateData.from_records({"x": [first, second, second]}, HOURS)

    assert [1, 2, 0] == counted(data, "x")


def test_the_hour_that_comes_twice_is_two_hours_in_every_batch():
    first, second = autumn()
    batches = [Batch([places(values)], None, 5) for values in ([first, second], [second, first, second])]
    columns, _ = coded(batches, HOURS)

    assert [0, 1, 1, 0, 1] == columns[0].tolist()


# ---------------------------------------------------------------- whole numbers that no float holds


@pytest.mark.parametrize("beside", [2**63, -(2**70)])
def test_whole_numbers_keep_their_value_beside_larger_ones(tmp_path, beside):
    domain = Domain.of(x=integers(2**53, 2**53 + 3, clip=True))
    data = PrivateData.from_records({"x": [beside, 2**53 + 1, 1]}, domain)
    file = csv_table(tmp_path, f"x\n{beside}\n{2**53 + 1}\n1\n", domain)

    assert [1 + (beside < 0), 1, 0, beside > 0] == counted(data, "x") == counted(file, "x")
