"""Real tables that come with the package."""

from onlineic.datasets.adult import adult5, adult5_domain

__all__ = ["adult5", "adult5_domain"]
