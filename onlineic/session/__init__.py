"""The session: OnlineIC itself, its plan, its answers and its public record."""

from onlineic.session.answers import SessionStatistics
from onlineic.session.belief import Belief, measured, replay
from onlineic.session.columns import Answers
from onlineic.session.derived import Answering, Derived, mean, total
from onlineic.session.forecasts import EngineForecast, Forecast, forecast
from onlineic.session.plan import (
    ALL_HARD,
    EASY_OR_HARD,
    KNOWN,
    Plan,
    SparseName,
    session_plan,
    textbook_plan,
)
from onlineic.session.session import OnlineIC
from onlineic.session.spending import Spending

__all__ = [
    "ALL_HARD",
    "EASY_OR_HARD",
    "KNOWN",
    "Answering",
    "Answers",
    "Belief",
    "Derived",
    "EngineForecast",
    "Forecast",
    "OnlineIC",
    "Plan",
    "SessionStatistics",
    "SparseName",
    "Spending",
    "forecast",
    "mean",
    "measured",
    "replay",
    "session_plan",
    "textbook_plan",
    "total",
]
