"""Commands that learn from a table: check, fit and evaluate."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rich_click as click

from candide.cli.group import cli, load_to_predict, show_result
from candide.cli.options import (
    AS_JSON,
    LEARNING,
    MODEL,
    READING,
    learning_of,
    learning_options,
    output_option,
    planning_of,
    planning_options,
    reading_options,
    retyped,
)
from candide.errors import InputError
from candide.model.settings import CALIBRATIONS

if TYPE_CHECKING:
    from candide.model.fitted import Fitted


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
    show_result(summary.of_check(data, target, found), as_json)
    if found.findings:
        raise SystemExit(FOUND)


@cli.command()
@click.argument("data")
@click.option("--target", "-t", required=True, metavar="COL", help="The column to learn.")
@output_option("MODEL", "Where to keep the model (a .candide file).")
@click.option("--folds", type=click.IntRange(2), metavar="N", help="Cross-validate with this many folds as well.")
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
    help="Count as this model does, with its grids and pairs, so that both can be merged.",
)
@click.option(
    "--provenance/--no-provenance",
    default=True,
    help="Whether the model keeps its source, rows, date, version and options.",
)
@learning_options
@reading_options
@AS_JSON
def fit(
    data: str,
    target: str,
    output: str | None,
    force: bool,
    folds: int | None,
    quick: bool,
    calibration: str | None,
    like: str | None,
    provenance: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Fit a model to a table: CSV, Parquet, JSON lines, Arrow, a folder, a database, a workbook, ARFF, a query, or `-`.

    Example: `candide fit adult.parquet --target class -o adult.candide`
    """
    from candide import store, tasks
    from candide.cli import progress
    from candide.report import summary
    from candide.tasks import outputs
    from candide.tasks.provenance import of as provenance_of

    outputs.check(output, data, like, force=force)
    if like is not None:
        from candide.tasks.alike import model_like

        options["model"] = model_like(like, options["model"])
    learning = learning_of(options, data)
    if folds and like is not None:
        remedy = "leave --folds out, and cross-validate the table by itself: candide evaluate"
        raise InputError("--folds chooses the grids and pairs of each fold, and not those of --like", remedy=remedy)
    if folds and calibration:
        remedy = "leave --folds out: what is printed then is of the calibrated model"
        raise InputError("--folds cross-validates a model that is not calibrated", value=folds, remedy=remedy)
    with progress.watching(not as_json) as watch:
        validation = tasks.cross_validate(data, target, folds=folds, watch=watch, **learning) if folds else None
        how = {"calibration": calibration, "trust": not quick, "like": like, **learning}
        learned = validation.learned if validation else tasks.learn(data, target, watch=watch, **how)
    if output:
        typed = retyped([*LEARNING, "like", *READING])
        origin = {} if not provenance else provenance_of(data, learned.fitted.census.n_rows, typed)
        store.save(learned.fitted, output, provenance=origin, force=force)
    commands = _next_commands(data, target, output, like, bool(validation))
    show_result(summary.of_fit(learned, validation, output, commands), as_json)


def _next_commands(data: str, target: str, output: str | None, like: str | None, validated: bool) -> list[str]:
    """Commands to go on with, ready to be copied: with the options that were typed for learning and reading."""
    learning, reading = retyped(LEARNING), retyped(READING)
    if output:
        steps: list[Sequence[str]] = [
            ["predict", output, "NEW_DATA", *reading, "-o", "scored.parquet"],
            ["explain", output, "NEW_DATA", *reading, "--row", "1"],
            ["show", output],
        ]
    else:
        steps = [["fit", data, "--target", target, *retyped([*LEARNING, "like"]), *reading, "-o", "model.candide"]]
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
@learning_options
@reading_options
@AS_JSON
def evaluate(what: tuple[str, ...], target: str | None, folds: int, seed: int, as_json: bool, **options: Any) -> None:
    """Cross-validate on a table without refitting, or score a model on labelled rows.

    Examples: `candide evaluate adult.csv --target class --folds 10`, `candide evaluate adult.candide test.csv`
    """
    from candide import tasks
    from candide.cli import progress
    from candide.report import summary

    fitted = _model_to_evaluate(what, target)
    learning = learning_of(options, what[-1])
    with progress.watching(not as_json) as watch:
        if fitted is not None:
            how = {name: learning[name] for name in ("weight", "reading")}
            found = summary.of_scores(fitted, tasks.evaluate(fitted, what[1], target, watch=watch, **how))
        else:
            validation = tasks.cross_validate(what[0], str(target), folds=folds, seed=seed, watch=watch, **learning)
            learned = validation.learned
            found = summary.of_scores(learned.fitted, validation.folds, learned.notes)
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
    if given := retyped({"folds", "seed", *LEARNING} - {"weight"}):
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
