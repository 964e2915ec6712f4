"""The command line."""

from onlineic.cli.main import main

__all__ = ["main"]
