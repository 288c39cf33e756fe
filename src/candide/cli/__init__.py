"""The command line: a thin face over the library. Each command reads its options, calls one function, prints."""

from candide.cli.run import cli, main

__all__ = ["cli", "main"]
