"""What a release costs: budgets, charges, filters and compositions, exact and rounded to the private side."""

from onlineic.accounting.blocks import BlockAccount
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.composition import (
    advanced_composition,
    advanced_share,
    exact_delta,
    exact_share,
    gaussian_delta,
    gaussian_mu,
    zcdp_delta,
    zcdp_order,
    zcdp_rho,
)
from onlineic.accounting.neighbours import ADD_REMOVE, REPLACE_ONE, Neighbours, ReplaceRows
from onlineic.accounting.of_table import TableCharge, alike, per_person, per_row, share_of, table_charge
from onlineic.accounting.renyi import (
    TICK,
    gaussian_charge,
    gumbel_charge,
    laplace_charge,
    loss_bound,
    renyi_capacity,
    renyi_epsilon,
)

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "TICK",
    "BlockAccount",
    "Budget",
    "Charge",
    "Filter",
    "Neighbours",
    "ReplaceRows",
    "TableCharge",
    "advanced_composition",
    "advanced_share",
    "alike",
    "exact_delta",
    "exact_share",
    "gaussian_charge",
    "gaussian_delta",
    "gaussian_mu",
    "gumbel_charge",
    "laplace_charge",
    "loss_bound",
    "per_person",
    "per_row",
    "renyi_capacity",
    "renyi_epsilon",
    "share_of",
    "table_charge",
    "zcdp_delta",
    "zcdp_order",
    "zcdp_rho",
]
