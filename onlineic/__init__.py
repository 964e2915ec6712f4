"""Online differentially private answers to linear queries, by the OnlineIC framework."""

__version__ = "0.1.0"
