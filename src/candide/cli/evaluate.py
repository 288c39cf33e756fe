"""Commands that evaluate: evaluate, and compare for several settings."""

import shlex
from typing import Any

import rich_click as click

from candide.cli import options as shared
from candide.cli.group import cli, show_progress, show_result, summary
from candide.cli.group import fitting as api
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
@shared.FOLD_BY
@click.option(
    "--intervals-by",
    type=click.Choice(["rows", "folds"]),
    default="rows",
    show_default=True,
    help="Resample rows for the intervals of metrics, or whole folds, whose rows may depend on each other.",
)
@shared.policy_and_aim_options
@shared.learning_options
@shared.reading_options
@shared.AS_JSON
def evaluate(what: tuple[str, ...], target: str | None, intervals_by: str, as_json: bool, **options: Any) -> None:
    """Cross-validate on a table without refitting, or score a model on labelled rows.

    With costs, a threshold or --abstain-below the figures are those of the decisions, with their cost. --at-precision
    and --at-recall select a threshold, and estimate its metrics on folds that did not select it.

    Examples: `candide evaluate adult.csv --target class --folds 10`, `candide evaluate adult.candide test.csv`
    """
    from candide.store import is_model_file

    if len(what) > 2:
        raise InputError(f"{len(what)} arguments", value=what, remedy="pass DATA with --target, or MODEL and DATA")
    if len(what) == 2:
        _evaluate_model(*what, target, as_json, options)
        return
    [data] = what
    if is_model_file(data):
        remedy = f"pass DATA to score it on: candide evaluate {data} DATA"
        raise InputError(f"{data} is a model", value=data, remedy=remedy)
    if target is None:
        raise InputError("expected the column to predict", remedy="pass --target COL")
    policy, aim = shared.parse_policy(options)
    keywords = {name: options.pop(name) for name in ("folds", "seed", "fold_by")} | aim
    keywords |= {"watch": show_progress(not as_json), **shared.parse_learning_options(options, data)}
    validation = api.cross_validate(data, target, policy=policy, warn=False, **keywords)
    result, threshold = validation.fit_result, validation.threshold
    scores = summary.summarize_scores(result.fitted, validation.folds, result.note_texts, threshold, intervals_by)
    show_result(scores, as_json)


def _evaluate_model(model: str, data: str, target: str | None, as_json: bool, options: dict[str, Any]) -> None:
    from candide.api import models as api
    from candide.store.file import load_fitted

    fitted = load_fitted(model)
    names = {"folds", "seed", "fold_by", "intervals_by", *shared.LEARNING_NAMES} - {"weight", "class_prior"}
    if typed := shared.typed_arguments(names):
        switches = ", ".join(argument.partition("=")[0] for argument in typed if argument.startswith("--"))
        name = target or fitted.target or "COL"
        remedy = f"this is for cross-validation, candide evaluate {data} --target {name} ..."
        raise InputError(f"{switches}: {model} is already fitted", value=switches, remedy=remedy)
    if (target or fitted.target) is None:
        remedy = "name the column of the labels: --target COL"
        raise InputError(f"{model} does not record which column it predicts", value=model, remedy=remedy)
    class_prior = options["class_prior"] if shared.typed_arguments({"class_prior"}) else None
    policy, aim = shared.parse_policy(options, class_prior)
    if aim:
        remedy = "select it by folds: candide evaluate DATA --target COL, and pass it as --threshold"
        raise InputError("a threshold that is selected on the rows it is scored on is optimistic", remedy=remedy)
    fitted = fitted.with_policy(policy)
    keywords = {name: options[name] for name in ("weight", *shared.READING_NAMES)}
    scores = api.evaluate(fitted, data, target, watch=show_progress(not as_json), **keywords)
    show_result(summary.summarize_scores(fitted, scores), as_json)


@cli.command()
@click.argument("data")
@shared.TARGET_TO_LEARN
@shared.several_models_options
@click.option(
    "--try",
    "tries",
    multiple=True,
    metavar="'OPTIONS'",
    help="A setting as options of fit, such as --try '--model naive --select 10' (repeatable).",
)
@_FOLDS
@_SEED
@shared.FOLD_BY
@shared.reading_options
@shared.AS_JSON
def compare(data: str, target: str, tries: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Cross-validate several settings on the same folds, and test which differences exceed chance.

    Each --model and each --try is a setting; other options apply to all of them. The others are compared with the
    first. By default, naive Bayes is compared with the weighted model.

    Examples: `candide compare adult.parquet --target class --model naive --model bayes`,
    `candide compare adult.csv -t class --try '--model naive' --try '--model naive --event age=binned'`
    """
    models = options["model"] or (() if tries else tuple(DEFAULT_SETTINGS))
    common = shared.typed_arguments(set(shared.LEARNING_NAMES) - {"model"})
    reading = {name: options[name] for name in shared.READING_NAMES}
    settings = dict[str, dict[str, Any]]()
    for text in [*(f"--model {name}" for name in models), *tries]:
        words = text.split()
        name = words[1] if len(words) == 2 and words[0] == "--model" else text.strip() or "defaults"
        if name in settings:
            remedy = "name each setting once; --try '--model naive --select 10' makes another of the same model"
            raise InputError(f"{name} is named twice", value=text, remedy=remedy)
        settings[name] = _parse_setting(text, common, data, reading)
    for_all = {"weight": next(iter(settings.values()))["weight"], **reading}
    each = {name: {key: v for key, v in setting.items() if key not in for_all} for name, setting in settings.items()}
    keywords = {name: options[name] for name in ("folds", "seed", "fold_by")} | for_all
    comparison = api.compare_settings(data, target, each, watch=show_progress(not as_json), **keywords)
    show_result(summary.summarize_settings(comparison), as_json)


@click.command()
@shared.learning_options
def _setting(**options: Any) -> None: ...


def _parse_setting(text: str, common: list[str], data: str, reading: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a fit, from the options of --try and those that all settings have."""
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        remedy = "pass options of fit, such as --try '--model naive --select 10'"
        raise InputError(f"--try {text!r}: {str(error).lower()}", value=text, remedy=remedy) from None
    with _setting.make_context("--try", [*common, *arguments]) as context:
        return shared.parse_learning_options({**context.params, **reading}, data)
