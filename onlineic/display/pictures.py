"""A figure and axes that show themselves in a notebook, where pyplot knows of neither. Needs matplotlib."""

import io
from typing import Any, final

from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure


@final
class Picture(Figure):
    """A figure that a notebook shows as a picture; so it does with axes that are added to it."""

    def add_subplot(self, *args: Any, **kwargs: Any) -> Any:
        if "projection" not in kwargs and "polar" not in kwargs:
            kwargs.setdefault("axes_class", PictureAxes)
        return super().add_subplot(*args, **kwargs)

    def _repr_png_(self) -> bytes:
        return _png(self.canvas)


@final
class PictureAxes(Axes):
    """Axes for which a notebook shows the figure that they stand in."""

    def _repr_png_(self) -> bytes:
        return _png(self.figure.canvas)


def _png(canvas: FigureCanvasBase) -> bytes:
    held = io.BytesIO()
    canvas.print_figure(held, format="png")
    return held.getvalue()
