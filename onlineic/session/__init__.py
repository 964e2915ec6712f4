"""The session: OnlineIC itself, its plan, its answers and its public record."""

from onlineic.session.answers import AnswerBook
from onlineic.session.asking import Asking, Outcome
from onlineic.session.belief import Belief, replay
from onlineic.session.columns import Answers
from onlineic.session.core import Core
from onlineic.session.explain import Explanation, Price
from onlineic.session.prices import Prices
from onlineic.session.quota import Quota
from onlineic.session.session import OnlineIC
from onlineic.session.statistics import SessionStatistics
from onlineic.session.summary import BelievedMarginal, Summary
from onlineic.session.view import View
from onlineic.session.wish_spending import WishSpending

__all__ = [
    "AnswerBook",
    "Answers",
    "Asking",
    "Belief",
    "BelievedMarginal",
    "Core",
    "Explanation",
    "OnlineIC",
    "Outcome",
    "Price",
    "Prices",
    "Quota",
    "SessionStatistics",
    "Summary",
    "View",
    "WishSpending",
    "replay",
]
