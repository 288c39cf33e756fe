"""Commands that make a model, ask it, and show it."""

from typing import Any

import rich_click as click

from candide.cli.group import AS_JSON, cli, learning_of, learning_options, print_json, reading_of, reading_options
from candide.errors import InputError


@cli.command()
@click.argument("data")
@click.option("--target", "-t", required=True, metavar="COL", help="The column to learn.")
@click.option(
    "--output",
    "-o",
    metavar="MODEL",
    type=click.Path(dir_okay=False),
    help="Where to keep the model (a .candide file).",
)
@click.option("--folds", type=click.IntRange(2), help="Cross-validate with this many folds as well.")
@learning_options
@reading_options
@AS_JSON
def fit(data: str, target: str, output: str | None, folds: int | None, as_json: bool, **options: Any) -> None:
    """Fit a model to a table: CSV, Parquet, JSON lines, Arrow, a folder, a DuckDB file, an SQL query, or `-`.

    Example: `candide fit adult.parquet --target income -o adult.candide`
    """
    from candide import progress, report, store, tables

    learning = learning_of(options)
    with progress.watching(not as_json) as watch:
        validation = tables.cross_validate(data, target, folds=folds, watch=watch, **learning) if folds else None
        learned = validation.learned if validation else tables.learn(data, target, watch=watch, **learning)
    if output:
        store.save(learned.fitted, output)
    if as_json:
        print_json(report.fit_facts(learned, validation, output))
    else:
        report.show_fit(learned, validation, data, output)


@cli.command()
@click.argument("model", type=click.Path(dir_okay=False))
@click.argument("data", required=False)
@click.option("--text", metavar="TEXT", help="Score this one document instead of DATA, and say which words decided.")
@click.option(
    "--output",
    "-o",
    metavar="OUT",
    type=click.Path(dir_okay=False),
    help="A .parquet, .csv, .tsv or .jsonl file; else the terminal.",
)
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
    from candide import progress, report, store, tables

    fitted, reading = store.load(model), reading_of(options)
    if (data is None) == (text is None):
        raise InputError("pass DATA, or one document with --text")
    if text is not None:
        facts = report.text_facts(fitted, text)
        print_json(facts) if as_json else report.show_text(facts)
        return
    with progress.watching(output is not None and not as_json) as watch:
        result = tables.predict(fitted, data, out=output, keep=keep, reading=reading, watch=watch)
    if output is None:
        report.show_rows(result, as_json)
    elif as_json:
        print_json({"rows": result, "output": output})
    else:
        report.say(f"{result:,} rows scored into {output}")


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
    from candide import progress, report, store, tables

    if len(what) > 2:
        raise InputError("pass DATA with --target, or MODEL and DATA")
    if len(what) == 1 and target is None:
        raise InputError("say which column to learn: --target COL")
    learning = learning_of(options)
    with progress.watching(not as_json) as watch:
        if len(what) == 2:
            fitted = store.load(what[0])
            scores = tables.evaluate(
                fitted, what[1], target, weight=learning["weight"], reading=learning["reading"], watch=watch
            )
            folds_scores, labels = [scores], fitted.labels
        else:
            validation = tables.cross_validate(what[0], str(target), folds=folds, seed=seed, watch=watch, **learning)
            folds_scores, labels = validation.folds, validation.learned.fitted.census.labels
    if as_json:
        print_json(report.score_facts(folds_scores, labels))
    else:
        report.show_scores(folds_scores, labels)


@cli.command()
@click.argument("model", type=click.Path(dir_okay=False))
@click.option("--levels", default=12, show_default=True, help="How many levels of a category to show.")
@AS_JSON
def show(model: str, levels: int, as_json: bool) -> None:
    """Show a model: the class prior, and every column given the class.

    Example: `candide show adult.candide`
    """
    from candide import report, store

    fitted = store.load(model)
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
    from candide.doctor import findings

    facts = findings()
    if as_json:
        print_json(facts)
    else:
        click.echo("\n".join(f"{name:14} {value}" for name, value in facts.items()))
