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

__all__ = [
    "Attribute",
    "Binned",
    "Categorical",
    "Domain",
    "IntegerRange",
    "Label",
    "binned",
    "column_array",
    "optional",
    "shown",
]
