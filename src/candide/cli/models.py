"""Commands that make a model, ask it, and show it."""

from typing import Any

import rich_click as click
from rich.markup import escape

from candide import wording
from candide.cli.group import cli, is_model, load_model, print_json, warn_if_empty
from candide.cli.options import (
    AS_JSON,
    LEARNING,
    MODEL,
    READING,
    learning_of,
    learning_options,
    output_option,
    reading_options,
    retyped,
)
from candide.engines.reading import Reading
from candide.errors import InputError


@cli.command()
@click.argument("data")
@click.option("--target", "-t", required=True, metavar="COL", help="The column to learn.")
@output_option("MODEL", "Where to keep the model (a .candide file).")
@click.option("--folds", type=click.IntRange(2), help="Cross-validate with this many folds as well.")
@learning_options
@reading_options
@AS_JSON
def fit(data: str, target: str, output: str | None, folds: int | None, as_json: bool, **options: Any) -> None:
    """Fit a model to a table: CSV, Parquet, JSON lines, Arrow, a folder, a DuckDB file, an SQL query, or `-`.

    Example: `candide fit adult.parquet --target income -o adult.candide`
    """
    from candide import report, store, tasks
    from candide.cli import progress

    learning = learning_of(options, data)
    with progress.watching(not as_json) as watch:
        validation = tasks.cross_validate(data, target, folds=folds, watch=watch, **learning) if folds else None
        learned = validation.learned if validation else tasks.learn(data, target, watch=watch, **learning)
    if output:
        store.save(learned.fitted, output)
    if as_json:
        print_json(report.fit_facts(learned, validation, output))
    else:
        report.show_fit(learned, validation, data, output, retyped(LEARNING), retyped(READING))


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data", required=False)
@click.option("--text", metavar="TEXT", help="Score this one document instead of DATA, and say which words decided.")
@output_option("OUT", "A .parquet, .csv, .tsv or .jsonl file; else the terminal.")
@click.option("--keep", multiple=True, metavar="COL", help="Pass an input column through (repeatable; 'all' for all).")
@reading_options
@AS_JSON
def predict(
    model: str,
    data: str | None,
    text: str | None,
    output: str | None,
    keep: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Score a table: the prediction, the probability of each class, and log p(x) of every row.

    Examples: `candide predict adult.candide new.csv -o scored.parquet --keep id`,
    `candide predict sms.candide --text "free prize, call now"`
    """
    from candide import report, tasks
    from candide.cli import progress

    fitted, reading = load_model(model, data), Reading(**options)
    warn_if_empty(model, fitted)
    if (data is None) == (text is None):
        raise InputError("pass DATA, or one document with --text")
    if text is not None:
        facts = report.text_facts(fitted, text)
        print_json(facts) if as_json else report.show_text(facts)
        return
    with progress.watching(output is not None and not as_json) as watch:
        result: Any = tasks.predict(fitted, data, out=output, keep=keep, reading=reading, watch=watch)
    if output is not None:
        print_json({"rows": result, "output": output}) if as_json else report.say(
            escape(f"{wording.plural(result)} scored into {output}")
        )
    elif as_json:
        for row in result.to_pylist():
            print_json(row)
    else:
        report.show_rows(result)


@cli.command()
@click.argument("what", nargs=-1, required=True, metavar="DATA | MODEL DATA")
@click.option("--target", "-t", metavar="COL", help="The column to learn; the model's own where a model is given.")
@click.option("--folds", default=10, show_default=True, type=click.IntRange(2), help="How many folds.")
@click.option("--seed", default=0, show_default=True, help="Which division into folds.")
@learning_options
@reading_options
@AS_JSON
def evaluate(what: tuple[str, ...], target: str | None, folds: int, seed: int, as_json: bool, **options: Any) -> None:
    """Cross-validate on a table without refitting, or score a model on labelled rows.

    Examples: `candide evaluate adult.csv --target income --folds 10`, `candide evaluate adult.candide test.csv`
    """
    from candide import report, tasks
    from candide.cli import progress

    fitted = _model_to_evaluate(what, target)
    learning = learning_of(options, what[-1])
    with progress.watching(not as_json) as watch:
        if fitted is not None:
            how = {name: learning[name] for name in ("weight", "reading")}
            scores = [tasks.evaluate(fitted, what[1], target, watch=watch, **how)]
        else:
            validation = tasks.cross_validate(what[0], str(target), folds=folds, seed=seed, watch=watch, **learning)
            scores, fitted = validation.folds, validation.learned.fitted
    if as_json:
        print_json(report.score_facts(scores, fitted.labels, report.shares(fitted)))
    else:
        report.show_scores(scores, fitted.labels, report.shares(fitted))


def _model_to_evaluate(what: tuple[str, ...], target: str | None) -> Any:
    """The model where MODEL and DATA are given, None where DATA alone; and what is amiss with them, said."""
    if len(what) > 2:
        raise InputError("pass DATA with --target, or MODEL and DATA")
    if len(what) == 1:
        if is_model(what[0]):
            raise InputError(f"{what[0]} is a model; pass DATA to score it on: candide evaluate {what[0]} DATA")
        if target is None:
            raise InputError("say which column to learn: --target COL")
        return None
    fitted = load_model(*what)
    if given := retyped({"folds", "seed", *LEARNING} - {"weight"}):
        named = ", ".join(word.partition("=")[0] for word in given if word.startswith("--"))
        raise InputError(
            f"{named}: {what[0]} is fitted already; this is for cross-validation, candide evaluate {what[1]} "
            f"--target {target or fitted.target or 'COL'} ..."
        )
    if target is None and fitted.target is None:
        raise InputError(f"{what[0]} does not say which column it learned; name the column of the labels: --target COL")
    warn_if_empty(what[0], fitted)
    return fitted


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@click.option(
    "--row",
    "--rows",
    "rows",
    multiple=True,
    metavar="N|A-B",
    help="Which row of DATA, counted from 1, or which rows: 3,7-9 (repeatable). The first if not given.",
)
@reading_options
@AS_JSON
def explain(model: str, data: str, rows: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Say why rows are given their class: how much each column speaks for it, in nats, against the runner-up.

    With --json there is one object a row, each on a line of its own.

    Examples: `candide explain adult.candide new.csv --row 7`, `candide explain adult.candide new.csv --rows 3,7-9`
    """
    from candide import report, tasks

    fitted, ranges = load_model(model, data), [_range(text) for row in rows or ["1"] for text in row.split(",")]
    warn_if_empty(model, fitted)
    for row, label, decision in tasks.explain(fitted, data, ranges, Reading(**options)):
        if as_json:
            print_json(report.decision_facts(row, label, decision))
        else:
            report.show_decision(row, label, decision)


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not (first.strip().isdecimal() and (last.strip().isdecimal() or not dash)):
        raise InputError(f"--row {text!r}: pass a number, such as 7, or a range, such as 3-9")
    ends = int(first), int(last or first)
    if not 1 <= ends[0] <= ends[1]:
        raise InputError(f"--row {text!r}: rows are counted from 1, and a range goes up")
    return ends


@cli.command()
@click.argument("model", type=MODEL)
@click.option("--levels", default=12, show_default=True, help="How many levels of a category to show.")
@AS_JSON
def show(model: str, levels: int, as_json: bool) -> None:
    """Show a model: the class prior, and every column given the class.

    Example: `candide show adult.candide`
    """
    from candide import report

    fitted = load_model(model)
    if as_json:
        print_json(report.model_facts(fitted, levels))
    else:
        report.show_model(fitted, levels)


@cli.command()
@click.option("--rows", default=20_000, show_default=True, type=click.IntRange(40), help="How many rows to make.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random numbers.")
@AS_JSON
def demo(rows: int, seed: int, as_json: bool) -> None:
    """Make a mixed table, fit it, evaluate on held-out rows, show the result.

    Example: `candide demo --rows 100000`
    """
    from candide import report
    from candide.demo import run

    result = run(rows, seed)
    if as_json:
        print_json({"rows": rows, "trained_on": result.learned.fitted.census.n_rows, **result.scores.metrics()})
    else:
        report.show_demo(result)


@cli.command()
@AS_JSON
def doctor(as_json: bool) -> None:
    """Say what this installation runs on: kernels, threads, versions.

    Example: `candide doctor`
    """
    from candide.report.doctor import findings

    facts = findings()
    if as_json:
        print_json(facts)
    else:
        click.echo("\n".join(f"{name:14} {value}" for name, value in facts.items()))
