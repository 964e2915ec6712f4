"""The session: OnlineIC itself, its plan, its answers and its public record."""

from onlineic.session.answers import AnswerBook
from onlineic.session.belief import Belief, measured, replay
from onlineic.session.columns import Answers
from onlineic.session.core import Core
from onlineic.session.explain import Explanation
from onlineic.session.prices import Prices
from onlineic.session.session import OnlineIC
from onlineic.session.statistics import SessionStatistics
from onlineic.session.summary import BelievedMarginal, Summary

__all__ = [
    "AnswerBook",
    "Answers",
    "Belief",
    "BelievedMarginal",
    "Core",
    "Explanation",
    "OnlineIC",
    "Prices",
    "SessionStatistics",
    "Summary",
    "measured",
    "replay",
]
