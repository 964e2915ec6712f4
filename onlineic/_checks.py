"""What a session must be opened with: checked by name before anything is built."""

from onlineic.errors import InvalidParameterError
from onlineic.ledger import Ledger, MemoryLedger
from onlineic.noise import SystemNoise, checked_source

__all__ = ["check_choices"]


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
