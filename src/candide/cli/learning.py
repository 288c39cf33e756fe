"""Commands that learn from a table: check, fit and evaluate."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import rich_click as click

from candide.cli.group import cli, load_to_predict, show_result
from candide.cli.options import (
    AS_JSON,
    DECIDING,
    FOLD_BY,
    LEARNING,
    MODEL,
    READING,
    aim_options,
    learning_of,
    learning_options,
    output_option,
    planning_of,
    planning_options,
    policy_from,
    reading_options,
    retyped,
)
from candide.cli.sql import fit_counts
from candide.engines.addresses import shown
from candide.errors import InputError
from candide.model.settings import CALIBRATIONS

if TYPE_CHECKING:
    from candide.model.fitted import Fitted
    from candide.model.policy import Policy
    from candide.tasks.decide import Chosen
    from candide.tasks.learn import Learned
    from candide.tasks.validate import Validation


FOUND = 3  # exit status of a check that found something


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
    from candide import tasks
    from candide.cli import progress
    from candide.report import summary

    planning = planning_of(options, data)
    with progress.watching(not as_json) as watch:
        found = tasks.check(data, target, watch=watch, **planning)
    show_result(summary.of_check(shown(data), target, found), as_json)
    if found.findings:
        raise SystemExit(FOUND)


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
@aim_options
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
    from candide import store, tasks
    from candide.cli import progress
    from candide.report import summary
    from candide.tasks import outputs
    from candide.tasks.provenance import of as provenance_of

    outputs.check(output, data, like, force=force)
    if like is not None:
        from candide.tasks.alike import model_like

        options["model"] = model_like(like, options["model"])
    policy, aim = policy_from(options)
    folds = folds or (10 if aim else None)
    learning = learning_of(options, data)
    if folds and like is not None:
        remedy = "leave --folds out, and cross-validate the table by itself: candide evaluate"
        raise InputError("--folds chooses the grids and pairs of each fold, and not those of --like", remedy=remedy)
    if folds and calibration:
        remedy = "leave --folds out: what is printed then is of the calibrated model"
        raise InputError("--folds cross-validates a model that is not calibrated", value=folds, remedy=remedy)
    if fold_by and not folds:
        raise InputError("--fold-by divides rows into folds", value=fold_by, remedy="pass --folds N with it")
    with progress.watching(not as_json) as watch:
        again = {"policy": policy, "folds": folds, "fold_by": fold_by, "watch": watch, **learning}
        validation = tasks.cross_validate(data, target, **again) if folds else None
        how = {"calibration": calibration, "trust": not quick, "like": like, **learning}
        learned = validation.learned if validation else tasks.learn(data, target, watch=watch, **how)
    at = chosen(validation, policy, aim)
    learned = _deciding(learned, policy, at)
    if output:
        typed = retyped([*LEARNING, "like", *DECIDING, *READING])
        origin = {} if not provenance else provenance_of(data, learned.fitted.census.n_rows, typed)
        store.save(learned.fitted, output, provenance=origin, force=force)
    commands = _next_commands(data, target, output, like, bool(validation))
    show_result(summary.of_fit(learned, validation, output, commands, at), as_json)


def chosen(validation: "Validation | None", policy: "Policy | None", aim: dict[str, float]) -> "Chosen | None":
    """The threshold that is to reach something, where one is asked for."""
    if validation is None or not aim:
        return None
    from candide.tasks.decide import choose

    positive = None if policy is None else policy.positive
    return choose(validation.folds, validation.learned.fitted.labels, positive=positive, **aim)


def _deciding(learned: "Learned", policy: "Policy | None", found: "Chosen | None") -> "Learned":
    """What was learned with the policy that it decides by, and a word on what was chosen."""
    if found is None:
        return learned if policy is None else replace(learned, fitted=learned.fitted.with_policy(policy))
    from candide.report.summary.scores import chosen_words
    from candide.rows.remarks import Remark

    remark = Remark("threshold-chosen", chosen_words(found.expected))
    return replace(learned, fitted=learned.fitted.with_policy(found.policy), remarks=[*learned.remarks, remark])


def _next_commands(data: str, target: str, output: str | None, like: str | None, validated: bool) -> list[str]:
    """Commands to go on with, ready to be copied: with the options that were typed for learning and reading."""
    data, learning, reading = shown(data), retyped([*LEARNING, *DECIDING]), retyped(READING)
    if output:
        steps: list[Sequence[str]] = [
            ["predict", output, "NEW_DATA", *reading, "-o", "scored.parquet"],
            ["explain", output, "NEW_DATA", *reading, "--row", "1"],
            ["show", output],
            ["report", output, "NEW_DATA", *reading, "-o", "report.html"],
        ]
    else:
        steps = [
            ["fit", data, "--target", target, *retyped([*LEARNING, "like", *DECIDING]), *reading, "-o", "model.candide"]
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
@aim_options
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
    from candide import tasks
    from candide.cli import progress
    from candide.report import summary

    fitted = _model_to_evaluate(what, target)
    prior = options.get("class_prior") if fitted is not None and retyped({"class_prior"}) else None
    policy, aim = policy_from(options, prior)
    if fitted is not None and aim:
        remedy = "choose it by folds: candide evaluate DATA --target COL, and pass it as --threshold"
        raise InputError("a threshold that is chosen on the rows it is judged by promises too much", remedy=remedy)
    learning = learning_of(options, what[-1])
    with progress.watching(not as_json) as watch:
        if fitted is not None:
            how = {name: learning[name] for name in ("weight", "reading")}
            fitted = fitted.with_policy(policy)
            found = summary.of_scores(fitted, tasks.evaluate(fitted, what[1], target, watch=watch, **how))
        else:
            how = {"folds": folds, "seed": seed, "fold_by": fold_by, "policy": policy, "watch": watch, **learning}
            validation = tasks.cross_validate(what[0], str(target), **how)
            learned = validation.learned
            at = chosen(validation, policy, aim)
            found = summary.of_scores(learned.fitted, validation.folds, learned.notes, at, intervals_by)
    show_result(found, as_json)


def _model_to_evaluate(what: tuple[str, ...], target: str | None) -> "Fitted | None":
    """The model where MODEL and DATA are given, None where DATA alone; an error where they do not go together."""
    from candide.store import is_model

    if len(what) > 2:
        raise InputError(f"{len(what)} arguments", value=what, remedy="pass DATA with --target, or MODEL and DATA")
    if len(what) == 1:
        if is_model(what[0]):
            remedy = f"pass DATA to score it on: candide evaluate {what[0]} DATA"
            raise InputError(f"{what[0]} is a model", value=what[0], remedy=remedy)
        if target is None:
            raise InputError("say which column to learn: --target COL")
        return None
    fitted = load_to_predict(*what)
    if given := retyped({"folds", "seed", "fold_by", "intervals_by", *LEARNING} - {"weight", "class_prior"}):
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
