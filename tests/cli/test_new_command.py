"""A new command is one function of the package and one of the command line, which this file adds."""

import json
from dataclasses import dataclass

import pytest
import rich_click as click
from click.testing import CliRunner

from candide.cli import cli
from candide.cli import options as shared
from candide.cli.group import iterate_commands, show_result
from candide.engines.base import open_source
from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.report.records import Summary


@dataclass(frozen=True, repr=False)
class ColumnNames(Summary):
    """The columns of a source."""

    columns: tuple[str, ...]

    @property
    def headline(self) -> str:
        return f"columns: {', '.join(self.columns)}"


def list_columns(data, **reading) -> ColumnNames:
    """The function of the package."""
    with open_source(data, ReadOptions(**reading)) as source:
        return ColumnNames(tuple(source.columns))


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(cli, "commands", dict(cli.commands))

    @cli.command()
    @click.argument("data")
    @shared.reading_options
    @shared.AS_JSON
    def columns(data, as_json, **options):
        """List the columns of a table. Example: `candide columns data.csv`"""
        show_result(list_columns(data, **options), as_json)

    return lambda *words: CliRunner().invoke(cli, ["columns", *map(str, words)])


def test_it_is_listed_and_has_help(run):
    assert "columns" in dict(iterate_commands(cli))
    assert "List the columns of a table." in run("--help").output


def test_it_prints_for_people_and_programs(run, tmp_path):
    path = tmp_path / "herbs.csv"
    path.write_text("leaf;size\nlong;3\n")
    assert "columns: leaf, size" in run(path).output
    assert json.loads(run(path, "--json").output)["columns"] == ["leaf", "size"]


def test_it_has_the_options_of_reading_and_their_errors(run, tmp_path):
    path = tmp_path / "herbs.csv"
    path.write_text("leaf|size\nlong|3\n")
    assert json.loads(run(path, "--delimiter", "|", "--json").output)["columns"] == ["leaf", "size"]
    assert isinstance(run(path, "--delimiter", "").exception, InputError)
