"""One line of a file or a prompt: a question in JSON, a statement in SQL, or a condition as in SQL."""

import re
from collections.abc import Callable
from typing import Any, final

import attrs

from onlineic.ask.json import parsed_line
from onlineic.ask.json_keys import Share
from onlineic.domain.domain import Domain
from onlineic.queries.within import Within

HELP = """\
One question a line:
  {"age": [30, 50], "sex": "F"}                        JSON: a closed range, a label
  {"age": {"from": 30, "below": 50}}                   half-open; "to" includes its end; or one end alone
  {"sex": {"one_of": ["F", "M"]}}  {"sex": {"not": "F"}}  {"sex": null}
  {"not": {"age": 30, "sex": "F"}}  {"or": [{..}, {..}]}   all other records; either
  {"marginal": ["sex", "region"], "where": {"age": 30}}   a cross table
  {"age": 30, "within": 0.01}   within 1 % of the records; usually: "within": {"expected": 0.01}
  {"share": {"sex": "F"}, "where": {"age": 30}, "by": ["region"]}   a rate, by group or not
  age BETWEEN 30 AND 50 AND sex = 'F'                  a condition (needs onlineic[sql])
  SELECT sex, COUNT(*) FROM t WHERE age > 30 GROUP BY sex   a statement about t (needs onlineic[sql])
Lines that begin with # and empty ones are skipped.
At a prompt also: explain QUESTION, left, domain, help, quit."""

SELECT = re.compile(r"select\b", re.IGNORECASE)


@final
@attrs.frozen
class Asked:
    """A question, how to ask it of a session, and how exact it is to be, if it says that."""

    question: Any
    of: Callable[[Any], Any]
    within: Within | None = None


def read_question(text: str, domain: Domain) -> Asked:
    """Return the question that a line is.

    Raises:
        InvalidQueryError: If it cannot be read; with a remedy in the line's own language.
    """
    if text.startswith("{"):
        question, wish = parsed_line(text, domain)
        if isinstance(question, Share):
            return Asked(question, question.asked)
        return Asked(question, lambda session: session.answer(question, within=wish), wish)
    if SELECT.match(text):
        return Asked(text, lambda session: session.sql(text))
    return Asked(text, lambda session: session.answer(text))
