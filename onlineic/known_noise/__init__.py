"""Bounds from noise whose law is known: estimates from all released tables, and their errors."""

from onlineic.known_noise.estimates import Estimates, Family, TableDesign
from onlineic.known_noise.instalments import Instalments

__all__ = [
    "Estimates",
    "Family",
    "Instalments",
    "TableDesign",
]
