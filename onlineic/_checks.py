"""What a session must be opened with: checked by name before anything is built."""

from onlineic.accounting import Budget
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError
from onlineic.ledger import Ledger, MemoryLedger
from onlineic.noise import SystemNoise, checked_source
from onlineic.updates import UpdateRule

__all__ = ["check_choices", "check_types"]


def check_types(data: object, budget: object, update: object) -> None:
    """Raise `InvalidParameterError` unless these are a table, a budget and an update rule or None."""
    if not isinstance(data, PrivateData):
        raise InvalidParameterError(
            f"data must be a PrivateData, got a {type(data).__name__}; write PrivateData.from_records(...)."
        )
    if not isinstance(budget, Budget):
        raise InvalidParameterError(
            f"budget must be a Budget, got a {type(budget).__name__}; write Budget(epsilon=1.0, delta=1e-9)."
        )
    if update is not None and not isinstance(update, UpdateRule):
        raise InvalidParameterError(
            f"update must be an UpdateRule, got a {type(update).__name__}; write MultiplicativeWeights()."
        )


def check_choices(exhausted: object, ledger: object, noise: object) -> None:
    """Raise `InvalidParameterError` unless these are choices that a session knows."""
    if not isinstance(exhausted, str) or exhausted not in ("untested", "raise"):
        raise InvalidParameterError(
            f"exhausted must be 'untested' or 'raise', got exhausted={exhausted!r:.60}."
        )
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidParameterError(f"ledger must be a Ledger or None, got a {type(ledger).__name__}.")
    simulated = noise is not None and type(checked_source(noise)) is not SystemNoise
    if simulated and ledger is not None and not isinstance(ledger, MemoryLedger):
        raise InvalidParameterError("ledger must be None with simulated noise: such answers are not private.")
