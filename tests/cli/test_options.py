"""Options of the command line are the fields of their records: a new setting is a field and a use of it."""

from dataclasses import MISSING, dataclass, fields

import numpy as np
import pytest
import rich_click as click
from click.testing import CliRunner

import candide as cd
from candide.cli import cli
from candide.cli.options import options_from_fields
from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.model.settings import DEFAULT_SETTINGS, Settings, parse_class_prior, parse_select, setting


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


def test_settings_of_the_weighted_model_are_options_and_reach_the_fit(tmp_path):
    model, data = tmp_path / "m.candide", tmp_path / "rows.csv"
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(400, 2))
    labels = np.where((numbers > 0).sum(axis=1) % 2, "odd", "even")  # only the pair of columns predicts the class
    data.write_text("a,b,y\n" + "".join(f"{a},{b},{y}\n" for (a, b), y in zip(numbers, labels, strict=True)))
    for terms in ("columns", "interactions"):
        words = ["fit", data, "-t", "y", "--quick", "--terms", terms, "--sample-rows", "300", "--random-state", "7"]
        assert CliRunner().invoke(cli, [*map(str, words), "-o", str(model), "--force"]).exit_code == 0
        fitted = cd.load(model)
        assert fitted.get_params() == cd.BayesClassifier(terms=terms, sample_rows=300, random_state=7).get_params()
        assert ("pair" in {term.kind for term in fitted.terms_}) == (terms == "interactions")
    error = CliRunner().invoke(cli, [*map(str, words), "--model", "naive"]).exception
    assert isinstance(error, InputError)
    assert error.value == "interactions"


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


def test_a_duration_is_read_in_seconds():
    from candide.cli.server import parse_duration

    assert [parse_duration(text) for text in ("90m", "1.5d")] == [5400.0, 129600.0]


@pytest.mark.parametrize("model", ["bayes", "naive"])
def test_help_of_the_class_prior_gives_each_default(model):
    name, text = DEFAULT_SETTINGS[model].class_prior, fields(Settings)[0].metadata["help"]
    assert f"{name} (default{' of naive' if model == 'naive' else ''})" in text
    assert parse_class_prior(name) == name
