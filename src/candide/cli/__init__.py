"""The command line: each command reads its options, calls one function of api, and prints the result."""

from candide.cli.run import cli, main

__all__ = ["cli", "main"]
