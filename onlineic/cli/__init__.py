"""The command line."""

from onlineic.cli.main import main
from onlineic.datasets.adult import adult_domain

__all__ = ["adult_domain", "main"]
