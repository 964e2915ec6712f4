"""What a session believes, as a function of its public transcript.

Proof: docs/theory/session.md, 4.1.
"""

import contextlib
import itertools
import math
from collections.abc import Iterable
from typing import Any, final

import attrs

from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError
from onlineic.hypothesis.base import Hypothesis
from onlineic.ledger.records import Checkpoint, Record, UpdateFailed, measured
from onlineic.ledger.transcript import Transcript
from onlineic.queries.partitions import Measurement
from onlineic.queries.query import Query
from onlineic.slips import public
from onlineic.updates.base import HasParameters, UpdateRule


@final
@attrs.frozen(eq=False)
class Belief:
    """The hypothesis and the measurements it rests on; replaced as a whole by one assignment.

    Attributes:
        measurements: Oldest first.
        version: Updates so far.
        failures: Updates that failed; the hypothesis stayed as it was.
    """

    hypothesis: Hypothesis
    measurements: tuple[Measurement, ...] = ()
    version: int = 0
    failures: int = 0

    @classmethod
    def begun(cls, update: UpdateRule[Any], domain: Domain, prior: Hypothesis | None) -> "Belief":
        """Return the start of a rule.

        Raises:
            InvalidParameterError: If what the rule starts from is no hypothesis over the domain.
        """
        start: object = update.init(domain, prior)  # of a rule that anybody may have written
        if not isinstance(start, Hypothesis):
            raise InvalidParameterError(
                f"{type(update).__name__}.init must return a hypothesis, got a {type(start).__name__}; "
                "return Histogram(domain), or an object with domain, supports, evaluate and evaluate_many."
            )
        if start.domain != domain:
            raise InvalidParameterError(
                f"{type(update).__name__}.init must return a hypothesis over the domain that it was "
                "given, got one over another; return Histogram(domain)."
            )
        return cls(start)

    def learned(self, released: tuple[Measurement, ...], update: UpdateRule[Any], alpha: float) -> "Belief":
        """Return the belief after the rule has seen new measurements; raises what the rule raises.

        Raises:
            ArithmeticError: If the new hypothesis does not give a finite number for what was measured.
        """
        measurements = (*self.measurements, *released)
        hypothesis = update.update(self.hypothesis, measurements, alpha)
        target = released[-1].target
        query = target if isinstance(target, Query) else target.block(0)
        if not math.isfinite(hypothesis.evaluate(query)):
            raise ArithmeticError("the updated hypothesis must be finite.")
        return attrs.evolve(self, hypothesis=hypothesis, measurements=measurements, version=self.version + 1)

    def restored(
        self, records: Iterable[Record], update: UpdateRule[Any], alpha: float, known: Checkpoint
    ) -> "Belief":
        """Return the belief after these records, restored from the parameters of their checkpoint.

        Where there are none, or they are of another version of the rule, the updates are repeated.
        """
        follows = [*itertools.pairwise([*records, None])]
        belief = self
        if known.parameters is not None and isinstance(update, HasParameters):
            learned = tuple(
                itertools.chain.from_iterable(measured(record) for record, _ in follows if record)
            )
            with contextlib.suppress(Exception):
                hypothesis = update.restored(self.hypothesis, learned, known.parameters)
                return Belief(hypothesis, learned, known.version, known.failures)
        for record, following in follows:
            released = () if record is None else measured(record)
            if released and isinstance(following, UpdateFailed):
                belief = belief.unmoved(released)
            elif released:
                belief = belief.learned(released, update, alpha)
        return belief

    def after(self, released: tuple[Measurement, ...]) -> "Belief":
        """Return the belief with one more release, whose hypothesis is restored later from parameters."""
        measurements = (*self.measurements, *released)
        return attrs.evolve(self, measurements=measurements, version=self.version + 1)

    def unmoved(self, released: tuple[Measurement, ...]) -> "Belief":
        """Return the belief after a failed update: the measurements stand, the hypothesis is kept."""
        measurements = (*self.measurements, *released)
        return attrs.evolve(self, measurements=measurements, failures=self.failures + 1)


@public
def replay(
    records: Iterable[Record],
    domain: Domain,
    update: UpdateRule[Any],
    alpha: float,
    prior: Hypothesis | None = None,
) -> Hypothesis:
    """Return the hypothesis of a session, rebuilt bit for bit from its public transcript alone.

    Args:
        records: `OnlineIC.transcript`, or a beginning of it.
        update, alpha: `update` and `alpha` of `OnlineIC.plan`.
    """
    belief = Belief.begun(update, domain, prior)
    records = list(records.records if isinstance(records, Transcript) else records)
    for record, following in itertools.zip_longest(records, records[1:]):
        released = measured(record)
        if released and isinstance(following, UpdateFailed):
            belief = belief.unmoved(released)
        elif released:
            belief = belief.learned(released, update, alpha)
    return belief.hypothesis
