"""What all figures share. They use `matplotlib.figure.Figure` alone: no window, no global state.

Colours are those of Okabe and Ito, told apart by colour-blind readers, and line styles differ too.
"""

from typing import TYPE_CHECKING, Any

from onlineic.display.text import LONGEST, shortened
from onlineic.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 3)), (0, (1, 2)))


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure of this size in inches.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "matplotlib must be installed for figures; run pip install 'onlineic[plot]'."
        ) from None
    return Figure(figsize=(width, height), layout="constrained", dpi=120)


def plain(label: Any, longest: int = LONGEST) -> str:
    """Return a label as text that matplotlib does not take for a formula."""
    return shortened(label, longest).replace("$", r"\$")


def bare(axes: "Axes") -> None:
    """Draw a grid behind the data, and no frame at the top and at the right."""
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
