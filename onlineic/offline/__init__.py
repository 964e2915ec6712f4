"""Mechanisms that see all their questions at once, on the same noise, queries, rules and accounting.

Each takes a `PrivateData` and an epsilon or `Budget` of its own (budgets add), checks everything public, is
charged, and only then reads. n is public, neighbours replace one record.
"""

from onlineic.offline.auto_average import AutoAverage as AutoAverage
from onlineic.offline.auto_average import auto_avg as auto_avg
from onlineic.offline.cdf import PrivateCdf as PrivateCdf
from onlineic.offline.cdf import private_cdf as private_cdf
from onlineic.offline.cdf import threshold_functions as threshold_functions
from onlineic.offline.clipping import ClippingBound as ClippingBound
from onlineic.offline.clipping import clipping_bound as clipping_bound
from onlineic.offline.construction import Construction as Construction
from onlineic.offline.iterative_construction import iterative_construction as iterative_construction
from onlineic.offline.linear_programs import ProgramsAbove as ProgramsAbove
from onlineic.offline.linear_programs import linear_programs_above as linear_programs_above
from onlineic.offline.means import Mean as Mean
from onlineic.offline.means import mean as mean
from onlineic.offline.mwem import mwem as mwem
from onlineic.offline.programs import LinearPrograms as LinearPrograms
from onlineic.offline.range_queries import LargeCounts as LargeCounts
from onlineic.offline.range_queries import range_queries as range_queries
from onlineic.offline.selection import Choice as Choice
from onlineic.offline.selection import median as median
from onlineic.offline.selection import most_popular as most_popular
from onlineic.offline.selection import quantile as quantile
from onlineic.offline.small_database import small_database as small_database
from onlineic.offline.threshold_database import threshold_database as threshold_database
