"""The trivial baselines behind the session's interface. Where one of them wins, use it."""

from onlineic.baselines.engines import BaselineStatistics, NoisyTables, PerQueryNoise, noisy_histogram

__all__ = ["BaselineStatistics", "NoisyTables", "PerQueryNoise", "noisy_histogram"]
