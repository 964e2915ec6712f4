"""The public universe: named finite attributes, and the cells that they span."""

from onlineic.domain.attributes import (
    Attribute,
    Binned,
    Categorical,
    IntegerRange,
    Label,
    binned,
    column_array,
    shown,
)
from onlineic.domain.domain import Domain, optional
from onlineic.domain.grid import Grid

__all__ = [
    "Attribute",
    "Binned",
    "Categorical",
    "Domain",
    "Grid",
    "IntegerRange",
    "Label",
    "binned",
    "column_array",
    "optional",
    "shown",
]
