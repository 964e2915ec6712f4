"""Real tables that come with the package."""

from onlineic.datasets.adult import adult5

__all__ = ["adult5"]
