"""The number of records where it is private: charged, drawn once before a session is planned, then public.

Given that number, the session is one of a table of which it takes this number for n: whatever the table is,
each of its tests and releases moves by no more than the relation says. So the two compose: theory 1.9.

Proof: docs/theory/queries.md, 1.9.
"""

import contextlib
from fractions import Fraction

import attrs

from onlineic.accounting.budget import Budget, Filter
from onlineic.accounting.neighbours import ADD_REMOVE, REPLACE_ONE
from onlineic.accounting.renyi import renyi_capacity
from onlineic.data.private import PrivateData, warn_large_delta
from onlineic.data.release import FAILED, guarded, is_private, log_failure, records_of
from onlineic.domain.unit import parts_of, persons_of
from onlineic.errors import InvalidParameterError, LargeDeltaWarning, TooFewRecordsError
from onlineic.mechanisms.additive import LaplaceMechanism
from onlineic.noise.sources import Noise
from onlineic.plan.settings import Settings
from onlineic.queries.counted import Counted, divided, divided_beta
from onlineic.queries.expressions import where
from onlineic.session.durable import LedgerFile
from onlineic.sparse.base import NumericSparse


def with_relation(data: PrivateData, settings: Settings) -> Settings:
    """Return settings whose budget is for the neighbours of the table.

    Raises:
        InvalidParameterError: If a setting needs a public number of records; nothing was spent.
    """
    if data.neighbours != ADD_REMOVE:
        data.check_neighbours(settings.budget)
        return settings
    # REPLACE_ONE is what a budget says where nobody named neighbours
    if settings.budget.neighbours not in (REPLACE_ONE, ADD_REMOVE):
        raise InvalidParameterError(
            f"budget must be for the neighbours of the table, {data.neighbours}, got one for "
            f"{settings.budget.neighbours}; nothing was spent: leave neighbours= of the budget out."
        )
    if settings.certify is not None:
        raise InvalidParameterError(
            f'certify must be None with neighbours="add-remove", got certify={settings.certify}: a '
            "certificate is of fractions of a public n; leave it out, or load the table without neighbours=."
        )
    if isinstance(settings.sparse, NumericSparse):
        raise InvalidParameterError(
            'sparse must be a name with neighbours="add-remove", got a '
            f"{type(settings.sparse).__name__}, which was made for a number of records: that is released "
            "first; write sparse='gumbel' or 'exponential'."
        )
    return attrs.evolve(settings, budget=attrs.evolve(settings.budget, neighbours=data.neighbours))


def check_told(data: PrivateData, told: Counted | None, noise: Noise | None) -> None:
    """Raise `InvalidParameterError` unless this number of records can take the place of one drawn here.

    A number of simulated noise tells the exact one to whoever knows the seed: no session that is stamped
    private, and no file, takes it.
    """
    if told is None:
        return
    records_of(data, told)  # refuses what is none, and one where the number is public
    if not told.private and (noise is None or is_private(noise)):
        raise InvalidParameterError(
            "counted must be drawn by the system's noise for a private session, got one of simulated noise; "
            "write counted=offline.count(data, epsilon=0.05), or give the session simulated noise too."
        )
    if data.total is not None:
        raise InvalidParameterError(
            "counted must be None on a total, whose shares pay for a number each, got one; leave it out."
        )


def after_count(settings: Settings) -> Settings:
    """Return the settings that are left once the number of records is paid from budget and beta."""
    return attrs.evolve(settings, budget=divided(settings.budget)[1], beta=divided_beta(settings.beta)[1])


def rest_of(data: PrivateData, settings: Settings) -> Budget:
    """Return what is spent on a row as the session itself begins.

    On a total the number of records was drawn before, by itself; without one all is spent with it.
    """
    if data.n_at_most is None or data.total is None:
        return settings.of_row
    return after_count(settings).of_row


def pay_again(data: PrivateData, settings: Settings, file: str) -> None:
    """Draw the number of records of a session that goes on, on a total that does not know its file."""
    if data.n_at_most is not None and data.total is not None and data.total.known(file) is None:
        data.spend(_count_of(settings), what="session", rows_per_person=settings.rows_per_person)


def drawn_number(
    data: PrivateData, settings: Settings, noise: Noise, file: LedgerFile | None = None
) -> Counted:
    """Release the number of records, or persons: all of the session's budget is spent before it is drawn.

    Of a share of a total the number's part is, and the rest as the session begins. Beside the `file` that is
    to hold the number a mark is left before that.

    Raises:
        TooFewRecordsError: If the released number is below 1: nothing can be asked.
        SessionSealedError: If the read or the draw failed; the budget stays spent.
    """
    moved = settings.rows_per_person if data.unit is None else data.unit.sensitivity
    if data.total is not None:
        if data.unit is not None:  # a total adds up what all parts of a person cost, of which one moves by 1
            moved = 1
        if is_private(noise):  # the number and the rest are drawn one after the other
            data.check_affords(settings.of_row, _account(settings.budget))
    if file is not None:
        file.begin_count()
    try:
        if is_private(noise):
            spent = settings.of_row if data.total is None else _count_of(settings)
            data.spend(spent, what="session", rows_per_person=settings.rows_per_person)
    except BaseException:  # nothing was drawn
        if file is not None:
            file.end_count()
        raise
    mechanism = LaplaceMechanism(divided(settings.budget)[0].epsilon, moved)
    released = _drawn(data, mechanism, noise)
    if released < 1:
        raise TooFewRecordsError(
            f"the released number of records must be at least 1 to be asked about, got {released}; the "
            "budget is spent: there are too few for this epsilon."
        )
    found = Counted(
        min(released, data.n_at_most or released),
        mechanism.scale,
        divided_beta(settings.beta)[0],
        private=is_private(noise),
    )
    if is_private(noise):
        with contextlib.suppress(LargeDeltaWarning):  # where it is an error: the number is drawn and paid
            warn_large_delta(settings.of_row, parts_of(found.n, data.unit))
    return found


def number_of(data: PrivateData, mechanism: LaplaceMechanism, noise: Noise) -> int:
    """Return the number of records, or persons, with noise: whoever calls has paid for it before.

    Raises:
        SessionSealedError: If the read or the draw failed; what was paid stays paid.
    """
    return _drawn(data, mechanism, noise)


def _drawn(data: PrivateData, mechanism: LaplaceMechanism, noise: Noise) -> int:
    """Draw the number of records, or persons: the only line that reads it."""
    everybody = where().bind(data.domain)
    return guarded(
        lambda: int(mechanism.release(persons_of(data.exact_counts(everybody), data.unit), noise)[0]),
        log_failure,
        FAILED,
    )


def _count_of(settings: Settings) -> Budget:
    """Return what the number of records costs a row."""
    return attrs.evolve(settings, budget=divided(settings.budget)[0]).of_row


def _account(budget: Budget) -> Filter | None:
    """Return the account of a share of a total."""
    if budget.order is None:
        return None
    capacity = renyi_capacity(budget.order, budget.epsilon, budget.delta)
    return Filter(Fraction(capacity), "ticks", budget.order)
