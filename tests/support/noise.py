"""Sources of noise that do as they are told."""

import numpy as np

from onlineic.noise import Noise, SimulatedNoise

FAR = 4  # times a bound that may fail once in twenty: noise without a seed lies beyond it once in millions


class Silent(Noise):
    """No noise at all: tests compare the numbers themselves. Gumbel tests fire or do not, as `word` says."""

    simulated = True

    def __init__(self, word=0):
        self.word = word

    def words(self, size):
        return np.full(size, self.word, np.uint64)

    def geometric(self, scale, size):
        return np.zeros(size, np.int64)

    discrete_laplace = discrete_gaussian = geometric

    calls = 0

    def unread(self, count, since):
        pass


class Wrapped(Noise):
    """Simulated noise; a subclass changes what its test is about."""

    simulated = True

    def __init__(self, seed):
        self.inner = SimulatedNoise(seed)

    def words(self, size):
        return self.inner.words(size)

    def geometric(self, scale, size):
        return self.inner.geometric(scale, size)

    def discrete_laplace(self, scale, size):
        return self.inner.discrete_laplace(scale, size)

    def discrete_gaussian(self, sigma, size):
        return self.inner.discrete_gaussian(sigma, size)

    @property
    def calls(self):
        return self.inner.calls

    def unread(self, count, since):
        self.inner.unread(count, since)


class Released(Wrapped):
    """Noise that makes a neighbour release what was released: what may differ is its likelihood."""

    def __init__(self, held=None):
        super().__init__(1)
        self.held, self.drawn = held, []

    def discrete_gaussian(self, sigma, size):
        drawn, place = super().discrete_gaussian(sigma, size), len(self.drawn)
        if self.held is not None and place < len(self.held) and len(self.held[place]) == size:
            drawn = self.held[place]  # else something else is bought, and all is lost
        self.drawn.append((sigma, drawn))
        return drawn
