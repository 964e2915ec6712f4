"""Bounds from noise whose law is known: estimates from all released tables, and their errors."""

from onlineic.known_noise.estimates import Estimates, Family, TableDesign

__all__ = [
    "Estimates",
    "Family",
    "TableDesign",
]
