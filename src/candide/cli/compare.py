"""The command that compares settings."""

import shlex
from typing import Any

import rich_click as click

from candide.cli.group import cli, show_result
from candide.cli.options import (
    AS_JSON,
    FOLD_BY,
    LEARNING_NAMES,
    learning_options,
    parse_learning_options,
    reading_options,
    several_models_options,
    typed_arguments,
)
from candide.errors import InputError
from candide.model.settings import DEFAULT_SETTINGS


@cli.command()
@click.argument("data")
@click.option("--target", "-t", required=True, metavar="COL", help="The column to learn.")
@several_models_options
@click.option(
    "--try",
    "tries",
    multiple=True,
    metavar="'OPTIONS'",
    help="A setting as the options of fit that make it, such as --try '--model naive --select 10' (repeatable).",
)
@click.option("--folds", default=10, show_default=True, type=click.IntRange(2), metavar="N", help="How many folds.")
@click.option("--seed", default=0, show_default=True, help="Which division into folds.")
@FOLD_BY
@reading_options
@AS_JSON
def compare(
    data: str,
    target: str,
    tries: tuple[str, ...],
    folds: int,
    seed: int,
    fold_by: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Cross-validate several settings on the same folds, and say which differences are more than chance.

    Each --model and each --try is a setting; other options are of all of them. The first is what the others are
    compared with. Without any, naive Bayes is compared with the weighted model.

    Examples: `candide compare adult.parquet --target class --model naive --model bayes`,
    `candide compare adult.csv -t class --try '--model naive' --try '--model naive --event age=binned'`
    """
    from candide import operations
    from candide.cli import progress
    from candide.report import summary

    models = options.pop("model") or (() if tries else tuple(DEFAULT_SETTINGS))
    texts = [f"--model {name}" for name in models] + list(tries)
    common = typed_arguments(set(LEARNING_NAMES) - {"model"})
    variants = dict[str, Any]()
    for text in texts:
        if _setting_name(text) in variants:
            remedy = "name each setting once; --try '--model naive --select 10' makes another of the same model"
            raise InputError(f"{_setting_name(text)} is named twice", value=text, remedy=remedy)
        variants[_setting_name(text)] = _parse_setting([*common, *_split_arguments(text)], data, options)
    shared = next(iter(variants.values()))
    how = {"fold_by": fold_by, "weight": shared["weight"], "reading": shared["reading"]}
    each = {name: {k: v for k, v in one.items() if k not in how} for name, one in variants.items()}
    with progress.show_progress(not as_json) as watch:
        found = operations.compare_settings(data, target, each, folds=folds, seed=seed, watch=watch, **how)
    show_result(summary.summarize_settings(found), as_json)


@click.command()
@learning_options
def _setting(**options: Any) -> None:
    """A setting: the options of learning."""


def _parse_setting(arguments: list[str], data: str, options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of learning that some words are, read as those of a command are."""
    with _setting.make_context("--try", arguments) as context:
        reading = {name: value for name, value in options.items() if name not in LEARNING_NAMES}
        return parse_learning_options({**context.params, **reading}, data)


def _split_arguments(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        remedy = "pass options of fit, such as --try '--model naive --select 10'"
        raise InputError(f"--try {text!r}: {str(error).lower()}", value=text, remedy=remedy) from None


def _setting_name(text: str) -> str:
    """A setting by its options; of a model alone its name, and "defaults" where there are none."""
    words = text.split()
    return words[1] if len(words) == 2 and words[0] == "--model" else text.strip() or "defaults"
