"""The session: OnlineIC itself, its plan, its answers and its public record."""

from onlineic.session.answers import AnswerBook, SessionStatistics
from onlineic.session.belief import Belief, measured, replay
from onlineic.session.calibration import SparseName
from onlineic.session.certificates import textbook_plan
from onlineic.session.columns import Answers
from onlineic.session.core import Core
from onlineic.session.derived import Answering
from onlineic.session.distributions import Cdf, Quantile, cdf, quantile
from onlineic.session.explain import Explanation
from onlineic.session.forecasts import EngineForecast, Forecast, forecast
from onlineic.session.groups import Groups, group_by
from onlineic.session.means import Derived, mean, total
from onlineic.session.plan import ALL_HARD, EASY_OR_HARD, KNOWN, Plan
from onlineic.session.planning import session_plan
from onlineic.session.prices import Prices
from onlineic.session.purchases import Facts, PlannedPurchases, PurchaseRule
from onlineic.session.session import OnlineIC
from onlineic.session.spending import Spending, Spent
from onlineic.session.statements import AnswerTable
from onlineic.session.summary import BelievedMarginal, Summary
from onlineic.session.synthetic import Synthetic

__all__ = [
    "ALL_HARD",
    "EASY_OR_HARD",
    "KNOWN",
    "AnswerBook",
    "AnswerTable",
    "Answering",
    "Answers",
    "Belief",
    "BelievedMarginal",
    "Cdf",
    "Core",
    "Derived",
    "EngineForecast",
    "Explanation",
    "Facts",
    "Forecast",
    "Groups",
    "OnlineIC",
    "Plan",
    "PlannedPurchases",
    "Prices",
    "PurchaseRule",
    "Quantile",
    "SessionStatistics",
    "SparseName",
    "Spending",
    "Spent",
    "Summary",
    "Synthetic",
    "cdf",
    "forecast",
    "group_by",
    "mean",
    "measured",
    "quantile",
    "replay",
    "session_plan",
    "textbook_plan",
    "total",
]
