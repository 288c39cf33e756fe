"""Commands that learn from a table: check, fit and evaluate."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import rich_click as click

from candide.cli.group import cli, load_to_predict, show_result
from candide.cli.options import (
    AS_JSON,
    DECISION_NAMES,
    FOLD_BY,
    LEARNING_NAMES,
    MODEL,
    READING_NAMES,
    learning_options,
    output_option,
    parse_learning_options,
    parse_planning_options,
    parse_policy,
    planning_options,
    policy_and_target_options,
    reading_options,
    typed_arguments,
)
from candide.cli.sql import fit_counts
from candide.engines.addresses import redact_address
from candide.errors import InputError
from candide.model.settings import CALIBRATIONS

if TYPE_CHECKING:
    from candide.decisions.thresholds import ThresholdChoice
    from candide.model.fitted import FittedModel
    from candide.model.policy import Policy
    from candide.validation.cross_validation import Validation
    from candide.validation.held_out import FitResult


EXIT_FINDINGS = 3  # exit status of a check that found something


@cli.command()
@click.argument("data")
@click.option("--target", "-t", required=True, metavar="COL", help="The column to learn.")
@planning_options
@reading_options
@AS_JSON
def check(data: str, target: str, as_json: bool, **options: Any) -> None:
    """Look for what may be wrong with a table before a model is fitted to it, and say what to do.

    Columns that give the class away, copies, identifiers, constants, values that stand for "missing", names that differ
    in case or spaces only, levels and classes of too few rows. Exit status: 0 where nothing is found, 3 where something
    is.

    Example: `candide check adult.parquet --target class`
    """
    from candide import operations
    from candide.cli import progress
    from candide.report import summary

    planning = parse_planning_options(options, data)
    with progress.show_progress(not as_json) as watch:
        found = operations.check_data(data, target, watch=watch, **planning)
    show_result(summary.summarize_check(redact_address(data), target, found), as_json)
    if found.findings:
        raise SystemExit(EXIT_FINDINGS)


@cli.command()
@click.argument("data", required=False)
@click.option("--target", "-t", metavar="COL", help="The column to learn.")
@click.option(
    "--from-counts",
    type=MODEL,
    metavar="FILE",
    help="Instead of DATA, the CSV that the query of candide sql count returned; the model is naive Bayes.",
)
@output_option("MODEL", "Where to keep the model (a .candide file).")
@click.option("--folds", type=click.IntRange(2), metavar="N", help="Cross-validate with this many folds as well.")
@FOLD_BY
@click.option("--quick", is_flag=True, help="Do not try a weighted model on rows held out.")
@click.option(
    "--calibration",
    type=click.Choice(list(CALIBRATIONS)),
    help="Bend the probabilities of a weighted model to what came true of rows held out.",
)
@click.option(
    "--like",
    type=MODEL,
    metavar="MODEL",
    help="Count with the bins and pairs of this model, so that both can be merged.",
)
@click.option(
    "--provenance/--no-provenance",
    default=True,
    help="Whether the model keeps its source, rows, date, version and options.",
)
@policy_and_target_options
@learning_options
@reading_options
@AS_JSON
def fit(
    data: str | None,
    target: str | None,
    from_counts: str | None,
    output: str | None,
    force: bool,
    folds: int | None,
    fold_by: str | None,
    quick: bool,
    calibration: str | None,
    like: str | None,
    provenance: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Fit a model to a table: CSV, Parquet, JSON lines, Arrow, a folder, a database, a workbook, ARFF, a query, or `-`.

    Costs, a threshold or --abstain-below are kept with the model, and decide wherever it predicts.

    Examples: `candide fit adult.parquet --target class -o adult.candide`,
    `candide fit --from-counts counts.csv -o adult.candide`
    """
    if from_counts is not None:
        fit_counts(from_counts, data, target, output, force, provenance, as_json, options)
        return
    if data is None or target is None:
        raise click.UsageError("Missing argument 'DATA'." if data is None else "Missing option '--target' / '-t'.")
    from candide import operations, store
    from candide.cli import progress
    from candide.report import summary
    from candide.store import outputs
    from candide.store.provenance import make_provenance as provenance_of

    outputs.check_destination(output, data, like, force=force)
    if like is not None:
        from candide.operations.fit import resolve_model_kind

        options["model"] = resolve_model_kind(like, options["model"])
    policy, aim = parse_policy(options)
    folds = folds or (10 if aim else None)
    learning = parse_learning_options(options, data)
    if folds and like is not None:
        remedy = "leave --folds out, and cross-validate the table by itself: candide evaluate"
        raise InputError("--folds chooses the grids and pairs of each fold, and not those of --like", remedy=remedy)
    if folds and calibration:
        remedy = "leave --folds out: what is printed then is of the calibrated model"
        raise InputError("--folds cross-validates a model that is not calibrated", value=folds, remedy=remedy)
    if fold_by and not folds:
        raise InputError("--fold-by divides rows into folds", value=fold_by, remedy="pass --folds N with it")
    with progress.show_progress(not as_json) as watch:
        again = {"policy": policy, "folds": folds, "fold_by": fold_by, "watch": watch, **learning}
        validation = operations.cross_validate(data, target, **again) if folds else None
        how = {"calibration": calibration, "keep_held_out": not quick, "like": like, **learning}
        learned = validation.fit_result if validation else operations.fit_model(data, target, watch=watch, **how)
    at = choose_threshold(validation, policy, aim)
    learned = _apply_policy(learned, policy, at)
    if output:
        typed = typed_arguments([*LEARNING_NAMES, "like", *DECISION_NAMES, *READING_NAMES])
        origin = {} if not provenance else provenance_of(data, learned.fitted.counts.n_rows, typed)
        store.save(learned.fitted, output, provenance=origin, force=force)
    commands = _next_commands(data, target, output, like, bool(validation))
    show_result(summary.summarize_fit(learned, validation, output, commands, at), as_json)


def choose_threshold(
    validation: "Validation | None", policy: "Policy | None", aim: dict[str, float]
) -> "ThresholdChoice | None":
    """The threshold that is to reach something, where one is asked for."""
    if validation is None or not aim:
        return None
    from candide.decisions.thresholds import select_threshold

    positive = None if policy is None else policy.positive
    return select_threshold(validation.folds, validation.fit_result.fitted.labels, positive=positive, **aim)


def _apply_policy(fit_result: "FitResult", policy: "Policy | None", threshold: "ThresholdChoice | None") -> "FitResult":
    """What was learned with the policy that it decides by, and a word on what was chosen."""
    if threshold is None:
        return fit_result if policy is None else replace(fit_result, fitted=fit_result.fitted.with_policy(policy))
    from candide.data.notes import Note
    from candide.report.summary.scores import describe_chosen_threshold

    remark = Note("threshold-chosen", describe_chosen_threshold(threshold.expected_metrics))
    return replace(
        fit_result, fitted=fit_result.fitted.with_policy(threshold.policy), notes=[*fit_result.notes, remark]
    )


def _next_commands(data: str, target: str, output: str | None, like: str | None, validated: bool) -> list[str]:
    """Commands to go on with, ready to be copied: with the options that were typed for learning and reading."""
    data, learning, reading = (
        redact_address(data),
        typed_arguments([*LEARNING_NAMES, *DECISION_NAMES]),
        typed_arguments(READING_NAMES),
    )
    if output:
        steps: list[Sequence[str]] = [
            ["predict", output, "NEW_DATA", *reading, "-o", "scored.parquet"],
            ["explain", output, "NEW_DATA", *reading, "--row", "1"],
            ["show", output],
            ["report", output, "NEW_DATA", *reading, "-o", "report.html"],
        ]
    else:
        steps = [
            [
                "fit",
                data,
                "--target",
                target,
                *typed_arguments([*LEARNING_NAMES, "like", *DECISION_NAMES]),
                *reading,
                "-o",
                "model.candide",
            ]
        ]
    if like is not None:
        steps.append(["merge", like, output or "model.candide", "-o", "all.candide"])
    elif not validated:
        steps.append(["evaluate", data, "--target", target, "--folds", "10", *learning, *reading])
    return [f"candide {shlex.join(step)}" for step in steps]


@cli.command()
@click.argument("what", nargs=-1, required=True, metavar="DATA | MODEL DATA")
@click.option("--target", "-t", metavar="COL", help="The column to learn; the model's own where a model is given.")
@click.option("--folds", default=10, show_default=True, type=click.IntRange(2), metavar="N", help="How many folds.")
@click.option("--seed", default=0, show_default=True, help="Which division into folds.")
@FOLD_BY
@click.option(
    "--intervals-by",
    type=click.Choice(["rows", "folds"]),
    default="rows",
    show_default=True,
    help="What is drawn for intervals of metrics: rows, or whole folds, whose rows may depend on each other.",
)
@policy_and_target_options
@learning_options
@reading_options
@AS_JSON
def evaluate(
    what: tuple[str, ...],
    target: str | None,
    folds: int,
    seed: int,
    fold_by: str | None,
    intervals_by: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Cross-validate on a table without refitting, or score a model on labelled rows.

    With costs, a threshold or --abstain-below the figures are those of the decisions, with what they cost.
    --at-precision and --at-recall choose a threshold, and tell what it comes to on rows that have not chosen it.

    Examples: `candide evaluate adult.csv --target class --folds 10`, `candide evaluate adult.candide test.csv`
    """
    from candide import operations
    from candide.cli import progress
    from candide.report import summary

    fitted = _model_to_evaluate(what, target)
    prior = options.get("class_prior") if fitted is not None and typed_arguments({"class_prior"}) else None
    policy, aim = parse_policy(options, prior)
    if fitted is not None and aim:
        remedy = "choose it by folds: candide evaluate DATA --target COL, and pass it as --threshold"
        raise InputError("a threshold that is chosen on the rows it is judged by promises too much", remedy=remedy)
    learning = parse_learning_options(options, what[-1])
    with progress.show_progress(not as_json) as watch:
        if fitted is not None:
            how = {name: learning[name] for name in ("weight", "reading")}
            fitted = fitted.with_policy(policy)
            found = summary.summarize_scores(fitted, operations.evaluate(fitted, what[1], target, watch=watch, **how))
        else:
            how = {"folds": folds, "seed": seed, "fold_by": fold_by, "policy": policy, "watch": watch, **learning}
            validation = operations.cross_validate(what[0], str(target), **how)
            learned = validation.fit_result
            at = choose_threshold(validation, policy, aim)
            found = summary.summarize_scores(learned.fitted, validation.folds, learned.note_texts, at, intervals_by)
    show_result(found, as_json)


def _model_to_evaluate(what: tuple[str, ...], target: str | None) -> "FittedModel | None":
    """The model where MODEL and DATA are given, None where DATA alone; an error where they do not go together."""
    from candide.store import is_model_file

    if len(what) > 2:
        raise InputError(f"{len(what)} arguments", value=what, remedy="pass DATA with --target, or MODEL and DATA")
    if len(what) == 1:
        if is_model_file(what[0]):
            remedy = f"pass DATA to score it on: candide evaluate {what[0]} DATA"
            raise InputError(f"{what[0]} is a model", value=what[0], remedy=remedy)
        if target is None:
            raise InputError("say which column to learn: --target COL")
        return None
    fitted = load_to_predict(*what)
    if given := typed_arguments(
        {"folds", "seed", "fold_by", "intervals_by", *LEARNING_NAMES} - {"weight", "class_prior"}
    ):
        named = ", ".join(word.partition("=")[0] for word in given if word.startswith("--"))
        raise InputError(
            f"{named}: {what[0]} is fitted already",
            value=named,
            remedy=f"this is for cross-validation, candide evaluate {what[1]} "
            f"--target {target or fitted.target or 'COL'} ...",
        )
    if target is None and fitted.target is None:
        remedy = "name the column of the labels: --target COL"
        raise InputError(f"{what[0]} does not say which column it learned", value=what[0], remedy=remedy)
    return fitted
