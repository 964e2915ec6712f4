"""A real table that comes with the package, and public ones that are fetched."""

from onlineic.datasets.adult import adult5, adult5_domain
from onlineic.datasets.fetch import CATALOGUE, Dataset, fetch, find, folder_of_data

__all__ = ["CATALOGUE", "Dataset", "adult5", "adult5_domain", "fetch", "find", "folder_of_data"]
