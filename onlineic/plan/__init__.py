"""What a session buys and why, from public facts alone: purchases, prices, thresholds, forecasts.

No module here can import the table (tests/test_layers.py).
"""

from onlineic.plan.certificates import textbook_plan
from onlineic.plan.demand import DemandPurchases
from onlineic.plan.forecasts import EngineForecast, Forecast
from onlineic.plan.older import BoughtBefore, TablesBefore
from onlineic.plan.plan import ALL_HARD, EASY_OR_HARD, KNOWN, Plan
from onlineic.plan.planning import session_plan, settled_purchases
from onlineic.plan.purchase import Purchase
from onlineic.plan.purchase_rule import Facts, PurchaseRule, TestsOnly
from onlineic.plan.settings import Settings
from onlineic.plan.spending import Spending, Spent
from onlineic.plan.studies import StudyCost, StudyForecast, forecast
from onlineic.sparse.kinds import SparseName

__all__ = [
    "ALL_HARD",
    "EASY_OR_HARD",
    "KNOWN",
    "BoughtBefore",
    "DemandPurchases",
    "EngineForecast",
    "Facts",
    "Forecast",
    "Plan",
    "Purchase",
    "PurchaseRule",
    "Settings",
    "SparseName",
    "Spending",
    "Spent",
    "StudyCost",
    "StudyForecast",
    "TablesBefore",
    "TestsOnly",
    "forecast",
    "session_plan",
    "settled_purchases",
    "textbook_plan",
]
