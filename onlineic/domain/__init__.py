"""The public universe: named finite attributes, and the cells that they span."""

from onlineic.domain.attributes import (
    Attribute,
    Binned,
    Categorical,
    IntegerRange,
    Label,
    binned,
    boolean,
    categorical,
    integers,
    number,
)
from onlineic.domain.columns import column_array
from onlineic.domain.dates import Dates, dates
from onlineic.domain.domain import Domain, from_column, optional
from onlineic.domain.grid import Grid
from onlineic.domain.misfits import Misfit
from onlineic.domain.unit import Unit

__all__ = [
    "Attribute",
    "Binned",
    "Categorical",
    "Dates",
    "Domain",
    "Grid",
    "IntegerRange",
    "Label",
    "Misfit",
    "Unit",
    "binned",
    "boolean",
    "categorical",
    "column_array",
    "dates",
    "from_column",
    "integers",
    "number",
    "optional",
]
