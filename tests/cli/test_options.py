"""Options of the command line are the fields of their records: a new setting is a field and a use of it."""

from dataclasses import MISSING, dataclass, fields

import pytest
import rich_click as click
from click.testing import CliRunner

from candide.cli import cli
from candide.cli.options import options_from_fields
from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.model.settings import Settings, parse_select, setting


@pytest.mark.parametrize(("record", "commands"), [
    (Settings, ["fit", "evaluate"]),
    (ReadOptions, ["fit", "evaluate", "predict", "explain", "update", "forget", "plot"]),
])  # fmt: skip
def test_every_field_that_can_be_typed_is_an_option_with_its_help(record, commands):
    for name in commands:
        options = {option.name: option for option in cli.commands[name].params}
        for field in fields(record):
            assert (field.name in options) == field.metadata["typed"]
            if field.metadata["typed"]:
                assert options[field.name].help == field.metadata["help"]
                assert field.default is not MISSING


def test_a_record_of_ones_own():
    @dataclass(frozen=True)
    class Wishes:
        colour: str = setting("red", "Of the flower.", choices=("red", "blue"))
        deep: int | None = setting(None, "In the soil.", parse=int, least=2)
        tall: bool | None = setting(None, "As a tree.", parse=bool)
        near: tuple[str, ...] = setting((), "What stands beside it.", metavar="HERB", repeated=True)
        columns: int | str | None = setting(None, "Which.", parse=parse_select)
        secret: object = setting(None, "Of the gardener.", typed=False)

    met = []
    command = click.Command(
        "plant", params=options_from_fields(Wishes), callback=lambda **given: met.append(Wishes(**given))
    )

    def plant(*words):
        return CliRunner().invoke(command, words)

    assert plant().exit_code == 0
    assert met.pop() == Wishes()
    assert plant("--colour", "blue", "--deep", "3", "--no-tall", "--near", "sage", "--near", "mint").exit_code == 0
    assert met.pop() == Wishes("blue", 3, False, ("sage", "mint"))
    assert plant("--columns", "4").exit_code == 0
    assert met.pop().columns == 4
    for wrong in (("--colour", "grey"), ("--deep", "1"), ("--deep", "far"), ("--secret", "x")):
        assert plant(*wrong).exit_code == 2
    error = plant("--columns", "0").exception
    assert isinstance(error, InputError)
    assert error.problem.startswith("--columns: '0'")
    assert (error.value, error.remedy) == ("0", "pass a number of columns >= 1, or 'evidence'")
