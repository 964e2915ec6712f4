"""Queries as JSON and dicts: every form says what its expression says, and is refused in JSON."""

import json
import math

import numpy as np
import pytest

import onlineic as ic
from onlineic import at_least, below, between, one_of, span, where
from onlineic.ask.json import (
    described,
    parsed_line,
    parsed_query,
    shared,
    within_read,
    within_written,
)
from onlineic.errors import InvalidQueryError
from onlineic.queries import Within
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


# -- rates --

DAYS = ic.Domain.of(age=range(17, 91), sex=["F", "M"], day=ic.dates("2023-01-01", "2024-12-31"))
CUT = {"cut": "age", "at": [30, 65], "labels": ["young", "grown", "old"]}
CASE = {"case": [{"when": {"age": {"below": 30}}, "then": "young"}], "else": "others", "name": "ages"}


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ({"share": {"sex": "F"}}, None),
        ({"share": {"sex": "F"}, "where": {"age": {"below": 30}}}, None),
        ({"share": {"sex": "F"}, "by": ["age"]}, ("age",)),
        ({"share": {"sex": "F"}, "by": [CUT]}, (ic.cut("age", [30, 65], ["young", "grown", "old"]),)),
        ({"share": {"sex": "F"}, "by": [CASE, "sex"]},
         (ic.case({"young": where(age=below(30))}, "others").called("ages"), "sex")),
        ({"share": {"age": 20}, "by": [{"date_trunc": "month", "of": "day"}]},
         (ic.date_trunc("day", "month"),)),
        ({"share": {"age": 20}, "by": [{"extract": "year", "of": "day"}]}, (ic.extract("day", "year"),)),
    ],
)  # fmt: skip
def test_a_rate_is_read_as_it_is_written(written, keys):
    share = shared(json.loads(json.dumps(written)), DAYS)

    assert keys == share.by
    assert share == parsed_query(json.dumps(written), DAYS)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"share": {"sex": "F"}, "of": "age"}, "a share must be written"),
        ({"share": 3}, "a query must be a JSON object"),
        ({"share": {"sex": "X"}}, "sex must be one of its 2 values"),
        ({"share": {"sex": "F"}, "where": {"ag": 3}}, "did you mean 'age'"),
        ({"share": {"sex": "F"}, "by": ["ag"]}, "did you mean 'age'"),
        ({"share": {"sex": "F"}, "by": [3]}, "a key must be the name of an attribute or one of"),
        ({"share": {"sex": "F"}, "by": [{"cut": "age", "at": [30], "of": "age"}]}, "a key must be"),
        ({"share": {"sex": "F"}, "by": [{"cut": ["age"], "at": [30]}]}, "attribute must be"),
        ({"share": {"sex": "F"}, "by": [{"cut": "age"}]}, "at must be"),
        ({"share": {"sex": "F"}, "by": [{"cut": "age", "at": "30"}]}, "at must be"),
        ({"share": {"sex": "F"}, "by": [{"extract": "year"}]}, "attribute must be"),
        ({"share": {"sex": "F"}, "by": [{"extract": "age", "of": "day"}]}, "part must be"),
        ({"share": {"sex": "F"}, "by": [{"date_trunc": "month", "of": "age"}]}, "age must hold dates"),
        ({"share": {"sex": "F"}, "by": [{"case": 3}]}, "case must hold a list"),
        ({"share": {"sex": "F"}, "by": [{"case": [{"when": {"sex": "F"}, "then": [1]}]}]}, "labels must be"),
        ({"share": {"sex": "F"}, "by": [{**CUT, "name": 3}]}, "name"),
        ({"share": {"sex": "F"}, "by": ["age", "age"]}, None),
    ],
)
def test_what_is_no_rate_is_refused(written, told):
    if told is None:
        session = ic.OnlineIC(ic.PrivateData(np.ones(DAYS.shape, np.int64), DAYS), ic.Budget(1.0))
        with pytest.raises(InvalidQueryError, match="different"):
            shared(written, DAYS).asked(session)
        return
    with pytest.raises(InvalidQueryError, match=told):
        shared(written, DAYS)


@pytest.mark.parametrize(
    ("written", "wish"),
    [
        (0.01, Within(0.01)),
        ({"certain": 1}, Within(1.0)),
        ({"expected": 0.02, "parts": 3}, Within(0.02, certain=False, parts=3)),
        ({"certain": 0.5, "parts": 2}, Within(0.5, parts=2)),
    ],
)
def test_a_wish_is_read_and_written(written, wish):
    assert within_read(written) == wish == within_read(within_written(wish))
    assert parsed_line(json.dumps({"age": 30, "within": written}), DOMAIN)[1] == wish


@pytest.mark.parametrize(
    "written",
    [0, -1, "1%", True, None, [], {}, {"expected": 0.1, "certain": 0.1}, {"expected": 0.1, "parts": 0},
     {"certain": 1, "steepness": 3}, {"certain": 1, "parts": 2**41}],
)  # fmt: skip
def test_a_wish_that_is_none_is_refused(written):
    with pytest.raises(InvalidQueryError):
        within_read(written)


def test_an_attribute_called_within_hides_the_wish():
    domain = ic.Domain.of(within=range(3))
    question, wish = parsed_line('{"within": 1}', domain)
    assert wish is None
    assert question.bind(domain) == described({"within": 1}, domain).bind(domain)
    with pytest.raises(InvalidQueryError, match="nothing but what is counted"):
        parsed_query('{"age": 30, "within": 1}', DOMAIN)
