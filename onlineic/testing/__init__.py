"""Checks for authors of update rules and hypotheses, and scripted noise."""

from onlineic.noise.scripted import ScriptedNoise
from onlineic.testing.checks import check_hypothesis, check_update_rule

__all__ = ["ScriptedNoise", "check_hypothesis", "check_update_rule"]
