"""The number of records where it is private: one noisy count, that other mechanisms are told.

Proof: docs/theory/queries.md, 1.9.
"""

from onlineic.data.private import PrivateData
from onlineic.errors import InvalidParameterError, TooFewRecordsError
from onlineic.mechanisms.additive import LaplaceMechanism
from onlineic.noise.sources import Noise
from onlineic.offline.release import Release
from onlineic.queries.counted import Counted
from onlineic.queries.expressions import where


def count(data: PrivateData, epsilon: float, *, beta: float = 0.01, noise: Noise | None = None) -> Counted:
    """Return M + Z for M records, Z discrete Laplace of scale 1/epsilon: (epsilon, 0)-private.

    For `mean`, `quantile`, `median`, `most_popular` and baselines on the same table: their `counted`.

    Dwork & Roth (2014), Theorem 3.6: a record that comes or goes moves M by one.

    Args:
        data: Loaded with neighbours="add-remove".
        epsilon: In (0, 20].
        beta: In (0, 1). Failure probability of its `bound`.

    Raises:
        InvalidParameterError: If the number of records is public, or an argument is outside its range.
        TooFewRecordsError: If what is released is below 1: nothing can be asked. Epsilon is spent.

    Examples:
        >>> from onlineic import offline
        >>> ages, domain = {"age": np.arange(9_000) % 90}, ic.Domain.of(age=range(90))
        >>> data = ic.PrivateData.from_records(ages, domain, neighbours="add-remove")
        >>> data.draw_on(ic.TableBudget(ic.Budget(2.0, neighbours=ic.accounting.ADD_REMOVE)))
        >>> counted = offline.count(data, epsilon=0.2)
        >>> abs(counted.n - 9_000) < 110, counted.bound  # ln(100)/.2, which one of a hundred exceeds
        (True, 23)
        >>> abs(offline.median(data, "age", epsilon=1.0, counted=counted).value - 45) < 5
        True
    """
    release = Release.pure(data, epsilon, noise, beta)
    if data.n_at_most is None:
        raise InvalidParameterError(
            f"data must have a private number of records to count them, got n={data.n}; use data.n."
        )
    mechanism, everybody = LaplaceMechanism(release.budget.epsilon), where().bind(data.domain)
    found = release.read(lambda: int(mechanism.release(data.exact_counts(everybody), release.noise)[0]))
    if found < 1:
        raise TooFewRecordsError(
            f"the released number of records must be at least 1 to be asked about, got {found}; the "
            "budget is spent: there are too few for this epsilon."
        )
    return Counted(min(found, data.n_at_most), mechanism.scale, release.beta, private=release.private)
