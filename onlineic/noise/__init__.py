"""The only source of randomness: exact integer noise from the system, and a simulation of it that says so."""

from onlineic.noise.sources import (
    Noise,
    SimulatedNoise,
    SystemNoise,
    checked_source,
    public_generator,
    scale_at_least,
)

__all__ = ["Noise", "SimulatedNoise", "SystemNoise", "checked_source", "public_generator", "scale_at_least"]
