"""Mixtures of products, fitted again after each release: for domains whose cells cannot be held."""

from typing import ClassVar, final

import attrs

from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, TooLargeError, checked_integer, checked_real, set_fields
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.by_sets import joint
from onlineic.hypothesis.local_fits import LocalFits
from onlineic.hypothesis.mixture import Mixture, uniform_mixture
from onlineic.hypothesis.mixture_fit import fit_mixture, misfit_of, usable
from onlineic.queries.partitions import Measurement
from onlineic.slips import public
from onlineic.updates.base import UpdateRule

SPREAD = 0.3  # of logits around the start: equal components would stay equal
MOST_NUMBERS = 2**22  # parameters of a mixture: a fit takes some 10 s there
LEAST_COMPONENTS = 20  # with fewer a mixture holds next to nothing
# 2 loss / values of a first fit from which on the tables say more than it holds: found by experiment
UNFIT = 2.0
MISSED = 10  # the mixture misses one release of so many at most, of sets that are fitted by themselves


@public
@final
@attrs.frozen
class MixtureOfProducts(UpdateRule[Mixture | LocalFits]):
    """h = sum_k w_k prod_a p_ka, fitted to everything released: cost and memory do not grow with the domain.

    A first fit takes `first_steps` from independent attributes; each later one goes on from the last for
    `steps`. Where the first leaves the released tables farther than their noise (2 loss / values above 2),
    sets of a few attributes are fitted by themselves from then on (`hypothesis.LocalFits`), and the mixture
    is fitted again for what these do not hold, or once a tenth more was released. Deterministic
    post-processing of released tables with a public seed: free of charge, and replayed bit for bit on the
    same machine.

    No T(alpha) is proven: `update_bound` is None. A measurement of a single query is used unless it has more
    than 2^12 weights over several attributes jointly; such are answered, and ignored here. Where the cells
    can be held `MaximumEntropy` is better.

    Args:
        components: K, of domains whose attributes have few codes together: fewer where K times those would
            exceed 2^22.
        first_steps, steps: Gradient steps of the first fit, and of each later one. Few are a regulariser.
        rate: Of the first fit, logits a step; of later ones a fifth of it.
        misfit: In [0, 1). The first fit stops once 2 loss / values measured is this small: far below 1 the
            noise is fitted.
        seed: Public.
    """

    fits_all: ClassVar[bool] = True

    components: int = 200
    first_steps: int = 300
    steps: int = 40
    rate: float = 0.2
    misfit: float = 0.9
    seed: int = 0

    def __attrs_post_init__(self) -> None:
        set_fields(
            self,
            components=checked_integer(
                "components", self.components, at_least=LEAST_COMPONENTS, at_most=2**16
            ),
            first_steps=checked_integer("first_steps", self.first_steps, at_least=1),
            steps=checked_integer("steps", self.steps, at_least=1),
            rate=checked_real("rate", self.rate, above=0.0, at_most=10.0),
            misfit=checked_real("misfit", self.misfit, at_least=0.0, below=1.0),
            seed=checked_integer("seed", self.seed, at_least=0),
        )

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Mixture | LocalFits:
        prior = joint(prior)
        if prior is not None:
            if not isinstance(prior, Mixture) or prior.domain != domain:
                raise InvalidParameterError(
                    f"prior must be a Mixture over the session's domain, got a {type(prior).__name__}."
                )
            return prior
        codes = sum(domain.shape)
        components = min(self.components, MOST_NUMBERS // codes)
        if components < LEAST_COMPONENTS:
            raise TooLargeError(
                f"attributes must have at most {MOST_NUMBERS // LEAST_COMPONENTS:,} codes together for a "
                f"mixture, got {codes:,}; bin the longest."
            )
        return uniform_mixture(domain, components, SPREAD, self.seed)

    def update(
        self, hypothesis: Mixture | LocalFits, measurements: tuple[Measurement, ...], alpha: float
    ) -> Mixture | LocalFits:
        if not any(map(usable, measurements[hypothesis.fitted :])):
            return hypothesis  # nothing new that can be fitted
        if isinstance(hypothesis, LocalFits):
            kept, seen = LocalFits(hypothesis.mixture, measurements), hypothesis.mixture.fitted
            few = MISSED * (len(measurements) - seen) <= seen
            if few and all(kept.holds(one.target) for one in measurements[hypothesis.fitted :]):
                return kept  # their sets are fitted by themselves: a fit of the mixture would take seconds
            fitted = fit_mixture(hypothesis.mixture, measurements, self.steps, self.rate / 5.0)
            return LocalFits(fitted, measurements)
        if hypothesis.fitted:
            return fit_mixture(hypothesis, measurements, self.steps, self.rate / 5.0)
        fitted = fit_mixture(hypothesis, measurements, self.first_steps, self.rate, self.misfit)
        return LocalFits(fitted, measurements) if misfit_of(fitted, measurements) > UNFIT else fitted

    def most_passes(self, releases: int) -> int:
        return max(self.first_steps + 1, self.steps)  # once more to see what the first fit leaves

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return None
