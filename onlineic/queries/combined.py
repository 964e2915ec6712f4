"""What adds, subtracts, multiplies and divides: the signs between results, whatever works them out.

Answers stand in a lower row than what is made of several. So the wing of questions brings, when it is
imported, the one function that works out two sides of a sign.
"""

from collections.abc import Callable
from typing import Any, NoReturn

Worked = Callable[[str, Any, Any], Any]
_BROUGHT: list[Worked] = []
UNTAUGHT = "results must be combined where sessions are known; write import onlineic.questions first."
ONLY_SIGNS = (
    "a result must be combined by + - * and /, got another operation; compute with its value, and carry "
    "error_bound along."
)
NO_ORDER = (
    "a result has no order, since its bound may leave it open: compare value, or look at the interval of a "
    "difference."
)


def bring(worked: Worked) -> Worked:
    """Take in the function that works out two sides of a sign."""
    _BROUGHT[:] = [worked]
    return worked


def _worked(sign: str, left: Any, right: Any) -> Any:
    if not _BROUGHT:
        raise TypeError(UNTAUGHT)
    return _BROUGHT[0](sign, left, right)


class Combined:
    """A result that can stand on one side of a sign."""

    __slots__ = ()
    __array_ufunc__ = None  # so that a numpy number leaves arithmetic to the result

    def __add__(self, other: Any) -> Any:
        return _worked("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return _worked("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return _worked("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _worked("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return _worked("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _worked("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _worked("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _worked("/", other, self)

    def __neg__(self) -> Any:
        return _worked("*", -1, self)

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(ONLY_SIGNS)

    def _refuse_order(self, _: object) -> NoReturn:
        raise TypeError(NO_ORDER)

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __abs__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse_order
