"""What questions ask of a table and what tables say of it, by subspaces of nested levels."""

from onlineic.interactions.demand import Asked, Demand, asked_of
from onlineic.interactions.designs import Design, cheapest
from onlineic.interactions.levels import Levels, levels_of
from onlineic.interactions.predictor import Predictor
from onlineic.interactions.sizes import Sizes, Table, expected_misfit, informed

__all__ = [
    "Asked",
    "Demand",
    "Design",
    "Levels",
    "Predictor",
    "Sizes",
    "Table",
    "asked_of",
    "cheapest",
    "expected_misfit",
    "informed",
    "levels_of",
]
