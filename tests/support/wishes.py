"""A table and a stream that wishes are tried on."""

import numpy as np

import onlineic as ic
from onlineic.evaluate import random_stream
from onlineic.noise import SimulatedNoise

DOMAIN = ic.Domain.of(a=range(12), b=["u", "v", "w"], c=range(8), d=["no", "yes"])
GENERATOR = np.random.default_rng(20261129)
COUNTS = GENERATOR.multinomial(40_000, GENERATOR.dirichlet(np.full(DOMAIN.size, 0.3))).reshape(DOMAIN.shape)
DATA = ic.PrivateData(COUNTS, DOMAIN)
BUDGET = ic.Budget(1.0, 1e-9)
STREAM = random_stream(DOMAIN, 120, 5)


def opened(seed=0, **options):
    return ic.OnlineIC(DATA, BUDGET, noise=SimulatedNoise(seed), **options)
