"""Commands that evaluate: evaluate, and compare for several settings."""

import shlex
from typing import Any

import rich_click as click

from candide.cli.group import cli, show_result
from candide.cli.options import (
    AS_JSON,
    FOLD_BY,
    LEARNING_NAMES,
    READING_NAMES,
    TARGET_TO_LEARN,
    learning_options,
    parse_learning_options,
    parse_policy,
    policy_and_aim_options,
    reading_options,
    several_models_options,
    typed_arguments,
)
from candide.errors import InputError
from candide.model.settings import DEFAULT_SETTINGS

_FOLDS = click.option(
    "--folds", default=10, show_default=True, type=click.IntRange(2), metavar="N", help="Number of folds."
)
_SEED = click.option("--seed", default=0, show_default=True, help="Seed of the division into folds.")


@cli.command()
@click.argument("what", nargs=-1, required=True, metavar="DATA | MODEL DATA")
@click.option("--target", "-t", metavar="COL", help="Column to predict. Default: that of the model, if one is given.")
@_FOLDS
@_SEED
@FOLD_BY
@click.option(
    "--intervals-by",
    type=click.Choice(["rows", "folds"]),
    default="rows",
    show_default=True,
    help="Resample rows for the intervals of metrics, or whole folds, whose rows may depend on each other.",
)
@policy_and_aim_options
@learning_options
@reading_options
@AS_JSON
def evaluate(what: tuple[str, ...], target: str | None, intervals_by: str, as_json: bool, **options: Any) -> None:
    """Cross-validate on a table without refitting, or score a model on labelled rows.

    With costs, a threshold or --abstain-below the figures are those of the decisions, with their cost. --at-precision
    and --at-recall select a threshold, and estimate its metrics on folds that did not select it.

    Examples: `candide evaluate adult.csv --target class --folds 10`, `candide evaluate adult.candide test.csv`
    """
    if _is_model_given(what, target):
        _evaluate_model(what[0], what[1], target, as_json, options)
    else:
        _evaluate_folds(what[0], str(target), intervals_by, as_json, options)


def _evaluate_folds(data: str, target: str, intervals_by: str, as_json: bool, options: dict[str, Any]) -> None:
    from candide import api
    from candide.cli.progress import show_progress
    from candide.report import summary

    policy, aim = parse_policy(options)
    keywords = {name: options.pop(name) for name in ("folds", "seed", "fold_by")} | aim
    keywords |= {"watch": show_progress(not as_json), **parse_learning_options(options, data)}
    validation = api.cross_validate(data, target, policy=policy, warn=False, **keywords)
    result, threshold = validation.fit_result, validation.threshold
    show_result(
        summary.summarize_scores(result.fitted, validation.folds, result.note_texts, threshold, intervals_by), as_json
    )


def _evaluate_model(model: str, data: str, target: str | None, as_json: bool, options: dict[str, Any]) -> None:
    from candide import api
    from candide.cli.progress import show_progress
    from candide.report import summary
    from candide.store.models import load_fitted

    fitted = load_fitted(model)
    _refuse_learning_options(model, data, target or fitted.target)
    policy, aim = parse_policy(options, options["class_prior"] if typed_arguments({"class_prior"}) else None)
    if aim:
        remedy = "select it by folds: candide evaluate DATA --target COL, and pass it as --threshold"
        raise InputError("a threshold that is selected on the rows it is scored on is optimistic", remedy=remedy)
    fitted = fitted.with_policy(policy)
    keywords = {name: options[name] for name in ("weight", *READING_NAMES)}
    scores = api.evaluate(fitted, data, target, watch=show_progress(not as_json), **keywords)
    show_result(summary.summarize_scores(fitted, scores), as_json)


def _is_model_given(what: tuple[str, ...], target: str | None) -> bool:
    """Whether MODEL and DATA are given, or DATA alone; an error for anything else."""
    from candide.store import is_model_file

    if len(what) > 2:
        raise InputError(f"{len(what)} arguments", value=what, remedy="pass DATA with --target, or MODEL and DATA")
    if len(what) == 1 and is_model_file(what[0]):
        remedy = f"pass DATA to score it on: candide evaluate {what[0]} DATA"
        raise InputError(f"{what[0]} is a model", value=what[0], remedy=remedy)
    if len(what) == 1 and target is None:
        raise InputError("expected the column to predict", remedy="pass --target COL")
    return len(what) == 2


def _refuse_learning_options(model: str, data: str, target: str | None) -> None:
    """Refuse options of cross-validation with a model, and a model without a target."""
    names = {"folds", "seed", "fold_by", "intervals_by", *LEARNING_NAMES} - {"weight", "class_prior"}
    if typed := typed_arguments(names):
        switches = ", ".join(argument.partition("=")[0] for argument in typed if argument.startswith("--"))
        remedy = f"this is for cross-validation, candide evaluate {data} --target {target or 'COL'} ..."
        raise InputError(f"{switches}: {model} is already fitted", value=switches, remedy=remedy)
    if target is None:
        remedy = "name the column of the labels: --target COL"
        raise InputError(f"{model} does not record which column it predicts", value=model, remedy=remedy)


@cli.command()
@click.argument("data")
@TARGET_TO_LEARN
@several_models_options
@click.option(
    "--try",
    "tries",
    multiple=True,
    metavar="'OPTIONS'",
    help="A setting as options of fit, such as --try '--model naive --select 10' (repeatable).",
)
@_FOLDS
@_SEED
@FOLD_BY
@reading_options
@AS_JSON
def compare(data: str, target: str, tries: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Cross-validate several settings on the same folds, and test which differences exceed chance.

    Each --model and each --try is a setting; other options apply to all of them. The others are compared with the
    first. By default, naive Bayes is compared with the weighted model.

    Examples: `candide compare adult.parquet --target class --model naive --model bayes`,
    `candide compare adult.csv -t class --try '--model naive' --try '--model naive --event age=binned'`
    """
    from candide import api
    from candide.cli.progress import show_progress
    from candide.report import summary

    models = options["model"] or (() if tries else tuple(DEFAULT_SETTINGS))
    common = typed_arguments(set(LEARNING_NAMES) - {"model"})
    reading = {name: options[name] for name in READING_NAMES}
    settings = dict[str, dict[str, Any]]()
    for text in [*(f"--model {name}" for name in models), *tries]:
        if (name := _setting_name(text)) in settings:
            remedy = "name each setting once; --try '--model naive --select 10' makes another of the same model"
            raise InputError(f"{name} is named twice", value=text, remedy=remedy)
        settings[name] = _parse_setting([*common, *_split_arguments(text)], data, reading)
    shared = {"weight": next(iter(settings.values()))["weight"], **reading}
    each = {name: {key: v for key, v in setting.items() if key not in shared} for name, setting in settings.items()}
    keywords = {name: options[name] for name in ("folds", "seed", "fold_by")} | shared
    comparison = api.compare_settings(data, target, each, watch=show_progress(not as_json), **keywords)
    show_result(summary.summarize_settings(comparison), as_json)


@click.command()
@learning_options
def _setting(**options: Any) -> None:
    """A setting: the options of learning."""


def _parse_setting(arguments: list[str], data: str, reading: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a fit, from arguments as they are typed."""
    with _setting.make_context("--try", arguments) as context:
        return parse_learning_options({**context.params, **reading}, data)


def _split_arguments(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        remedy = "pass options of fit, such as --try '--model naive --select 10'"
        raise InputError(f"--try {text!r}: {str(error).lower()}", value=text, remedy=remedy) from None


def _setting_name(text: str) -> str:
    """A setting by its options; a model alone by its name, and "defaults" where there are none."""
    words = text.split()
    return words[1] if len(words) == 2 and words[0] == "--model" else text.strip() or "defaults"
