"""Queries as JSON and dicts: every form says what its expression says, and is refused in JSON."""

import json
import math

import numpy as np
import pytest

import onlineic as ic
from onlineic import at_least, below, between, one_of, span, where
from onlineic.ask.json import described, parsed_query
from onlineic.errors import InvalidQueryError
from support.noise import Silent

DOMAIN = ic.Domain.of(
    age=range(17, 91),
    sex=["F", "M"],
    pay=ic.binned([0, 10, 20, 50]),
    weeks=ic.binned([0, 13, 52], integer=True),
    score=ic.optional(range(5)),
    grade=[10, 20, 30],
)


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ({"age": [30, 50], "sex": "F"}, where(age=between(30, 50), sex="F")),
        ({"age": (30, 50)}, where(age=between(30, 50))),
        ({"age": {"from": 20, "below": 65}}, where(age=span(20, 65))),
        ({"age": {"at_least": 20, "below": 65}}, where(age=span(20, 65))),
        ({"age": {"from": 20, "to": 64}}, where(age=between(20, 64))),
        ({"age": {"from": 20}}, where(age=at_least(20))),
        ({"age": {"below": 65}}, where(age=below(65))),
        ({"age": {"to": 64}}, where(age=between(-math.inf, 64))),
        ({"age": {"to": 64}}, where(age=below(65))),
        ({"age": {"not": {"from": 20, "below": 65}}}, where(age=~span(20, 65))),
        ({"pay": {"from": 10, "below": 50}}, where(pay=span(10, 50))),
        ({"pay": "[10, 20)"}, where(pay=span(10, 20))),
        ({"weeks": {"to": 12}}, where(weeks=below(13))),
        ({"score": None}, where(score=None)),
        ({"age": {"from": 50, "to": 20}}, where(age=between(50, 20))),
        ({"grade": {"one_of": [10, 30]}}, where(grade=one_of(10, 30))),
        ({"or": [{"age": 20}, {"sex": "F"}]}, where(age=20) | where(sex="F")),
        ({"and": [{"age": [20, 30]}, {"not": {"sex": "F"}}]}, where(age=between(20, 30)) & ~where(sex="F")),
        ({"not": {"or": [{"age": 20}, {"sex": "F"}]}}, ~(where(age=20) | where(sex="F"))),
        ({"age": np.int16(20)}, where(age=20)),
        ({"age": [np.int64(20), np.float32(30)]}, where(age=between(20, 30))),
        ({}, where()),
    ],
)
def test_a_dict_is_the_query_it_says_and_the_same_as_its_line(written, query):
    expected = query.bind(DOMAIN)

    assert expected == described(written, DOMAIN).bind(DOMAIN)
    assert expected == parsed_query(json.dumps(written, default=lambda number: number.item()), DOMAIN).bind(
        DOMAIN
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"sex": "Female"}, "did you mean 'F'?"),
        ({"sx": "F"}, "did you mean 'sex'?"),
        ({"sex": ["F", "M"]}, '{"one_of": [..]}'),
        ({"grade": [10, 30]}, "no range, being categorical"),
        ({"age": [30]}, "list of length 1"),
        ({"age": [True, 30]}, "two ends as a range"),
        ({"age": {"from": 20, "at_least": 30}}, "one end on each side, got 'from' and 'at_least'"),
        ({"age": {"to": 20, "below": 30}}, "one end on each side"),
        ({"age": {"from": None}}, "numbers or dates as ends"),
        ({"age": {"from": "x", "to": 3}}, "numbers or dates as ends"),
        ({"age": {}}, "got an object with other content"),
        ({"age": {"above": 3}}, '{"from": 20, "below": 65}'),
        ({"sex": {"from": "F"}}, "numbers or dates as ends"),
        ({"sex": {"from": 3}}, 'write {"one_of": [..]}'),
        ({"age": [0, 30]}, "[17, 30]"),
        ({"age": {"from": 0}}, "inside [17, 90]"),
        ({"pay": 15}, '{"from": 10, "below": 20}'),
        ({"pay": [10, 20]}, '{"from": 10, "below": 20}'),
        ({"pay": {"from": 12}}, "nearest edges are 10 and 20"),
        ({"age": None}, '"missing": true'),
        ({"or": {"age": 3}}, '{"or": [{..}, {..}]}'),
        ({"or": []}, "got an empty one"),
        ({"or": [3]}, "JSON object"),
        ({"not": [3]}, "JSON object"),
        ({"age": object()}, "got a object"),
        ({3: 4}, "attribute must be"),
    ],
)
def test_what_a_dict_cannot_say_is_refused_in_json(written, said):
    with pytest.raises(InvalidQueryError) as found:
        described(written, DOMAIN)

    assert said in str(found.value)
    assert "span(" not in str(found.value)
    assert "between(" not in str(found.value)


def test_deep_nesting_is_refused_by_name():
    written = {"age": 20}
    for _ in range(20_000):
        written = {"not": written}
    with pytest.raises(InvalidQueryError, match="nest a few hundred"):
        described(written, DOMAIN)


def test_a_session_takes_dicts_one_at_a_time_and_among_others():
    data = ic.PrivateData.from_records(
        {"age": [20] * 50_000, "sex": ["F", "M"] * 25_000, "pay": [5.0] * 50_000, "weeks": [3] * 50_000,
         "score": [1] * 50_000, "grade": [10] * 50_000}, DOMAIN,
    )  # fmt: skip
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=Silent())
    first = session.answer({"age": [17, 40], "sex": "F"})
    again = session.answer_many(
        [where(age=between(17, 40), sex="F"), {"age": [17, 40], "sex": "F"}, {"sex": "M"}]
    )

    assert [first.value] * 2 == [answer.value for answer in again[:2]]
    assert ["repeat", "repeat"] == [answer.status for answer in again[:2]]
    before = session.statistics()
    with pytest.raises(InvalidQueryError, match="did you mean 'F'"):
        session.answer({"sex": "Female"})
    assert before == session.statistics()
