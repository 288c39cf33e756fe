"""Commands as a person types them."""

import json

import pytest
from click.testing import CliRunner

from candide import cli


def run(*args, width=None, stdin=None):
    """The result of a command, in a terminal of this width."""
    env = {"COLUMNS": str(width)} if width else {}
    return CliRunner(env=env).invoke(cli.cli, [str(a) for a in args], input=stdin)


def output(*args):
    """What a command that does its work prints."""
    result = run(*args)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def lines(*args, stdin=None):
    """The facts of a command, a line each, which must be JSON as it is defined: no NaN, no Infinity."""
    result = run(*args, "--json", stdin=stdin)
    assert result.exit_code == 0, (result.output, result.exception)
    refuse = lambda name: pytest.fail(f"{name} is not JSON")  # noqa: E731
    return [json.loads(line, parse_constant=refuse) for line in result.stdout.splitlines()]


def ask(*args):
    """The facts of a command that has one line of them."""
    [facts] = lines(*args)
    return facts
