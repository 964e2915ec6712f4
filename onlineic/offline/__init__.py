"""Mechanisms that see all their questions at once, on the same noise, queries, rules and accounting."""
