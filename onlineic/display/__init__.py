"""How released facts are shown: as text, as HTML without scripts, as figures and as data frames."""

from onlineic.display.figures import COLOURS, DASHES, bare, new_figure, plain
from onlineic.display.frames import Framed, free_name, pandas_frame, polars_frame
from onlineic.display.html import bars, card, escaped, facts, heading, note, page, share, span_bar, table
from onlineic.display.text import aligned, cut_rows, decimals, records, shortened, to_its_bound

__all__ = [
    "COLOURS",
    "DASHES",
    "Framed",
    "aligned",
    "bare",
    "bars",
    "card",
    "cut_rows",
    "decimals",
    "escaped",
    "facts",
    "free_name",
    "heading",
    "new_figure",
    "note",
    "page",
    "pandas_frame",
    "plain",
    "polars_frame",
    "records",
    "share",
    "shortened",
    "span_bar",
    "table",
    "to_its_bound",
]
