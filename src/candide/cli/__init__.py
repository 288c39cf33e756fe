"""The command line: each command reads its options, calls one function of api, and prints the result."""

from candide.cli import evaluate, fit, inspect, predict, server, update  # noqa: F401  commands
from candide.cli.group import cli, main

__all__ = ["cli", "main"]
