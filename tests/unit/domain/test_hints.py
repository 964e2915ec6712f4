"""Remedies of common mistakes: what they say works when it is followed."""

import re

import numpy as np
import pytest

import onlineic as ic
from onlineic import at_least, below, between, span, where
from onlineic.errors import InvalidQueryError
from onlineic.slips import nearest
from support.noise import Silent

DOMAIN = ic.Domain.of(age=range(17, 91), sex=["F", "M"], pay=ic.binned([0, 10, 20]), city=["Rome", "Romford"])
WORDS = {"at_least": at_least, "below": below, "between": between, "span": span, "inf": np.inf}


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("Female", ["F", "M"], "F"),
        ("male", ["F", "M"], "M"),
        ("f", ["F", "M"], "F"),
        ("whit", ["White", "Black"], "White"),
        ("agee", ["age", "sex"], "age"),
        ("  AGE ", ["age", "sex"], "age"),
        ("X", ["F", "M"], None),
        ("", ["F", "M"], None),
        ("R", ["Romford", "Romulus"], None),
        (3, [30, 4], 30),
        (None, ["None of these"], "None of these"),
    ],
)
def test_the_nearest_word_is_guessed_where_there_is_one(word, known, found):
    assert found == nearest(word, known)


@pytest.mark.parametrize("word", [between, span])
@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 30), (17, 200), (0, 200), (-9, -1), (100, 200), (30, 99.5), (0, np.inf), (-np.inf, 99)],
)
def test_a_range_outside_is_refused_with_one_inside_that_works(word, low, high):
    with pytest.raises(InvalidQueryError) as found:
        where(age=word(low, high)).bind(DOMAIN)
    written = re.search(r"write (\w+\([^)]*\))", str(found.value)).group(1)

    where(age=eval(written, WORDS)).bind(DOMAIN)


def test_between_0_and_30_is_told_to_be_between_17_and_30():
    with pytest.raises(InvalidQueryError, match=re.escape("write between(17, 30), or at_least or below")):
        where(age=between(0, 30)).bind(DOMAIN)


@pytest.mark.parametrize("attribute", ["age", "sex", "pay"])
def test_a_missing_cell_that_is_not_there_is_told_by_name(attribute):
    with pytest.raises(InvalidQueryError, match=rf"{attribute} must have a cell.*declare it optional"):
        where({attribute: None}).bind(DOMAIN)


def test_lists_and_single_queries_in_the_wrong_place_have_a_remedy():
    data = ic.PrivateData.from_records(
        {"age": [20] * 50_000, "sex": ["F"] * 50_000, "pay": [5] * 50_000, "city": ["Rome"] * 50_000}, DOMAIN
    )
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=Silent())
    with pytest.raises(InvalidQueryError, match=re.escape("write marginal('age', 'sex').")):
        ic.marginal(["age", "sex"])
    for one in (where(sex="F"), {"sex": "F"}, "sex", np.ones(DOMAIN.size), ic.marginal("sex"), None):
        with pytest.raises(InvalidQueryError, match=r"write \[query, ...\], or answer\(query\) for one"):
            session.answer_many(one)
    assert 0 == session.statistics().asked
