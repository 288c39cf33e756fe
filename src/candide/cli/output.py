"""Commands that write a model for others: report, plot and export."""

from typing import Any

import rich_click as click

from candide.cli.completion import KeywordParam
from candide.cli.group import cli, print_code, show_result
from candide.cli.options import AS_JSON, MODEL, TARGET, WEIGHT, output_option, reading_options
from candide.errors import InputError

_PLOTS_OF_MODEL = ("densities", "regions", "surface", "ellipses", "means", "network", "term", "nomogram")
_PLOTS_OF_ROWS = ("discriminant", "calibration", "confusion", "roc", "pr", "lift", "coverage", "thresholds")


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data", required=False)
@output_option("PAGE", "Write this .html file.", required=True)
@TARGET
@WEIGHT
@click.option("--full", is_flag=True, help="Leave nothing out, however large the page grows.")
@reading_options
@AS_JSON
def report(model: str, data: str | None, output: str, as_json: bool, **options: Any) -> None:
    """Write a report of a model: its terms, how good it is on DATA, its largest errors, and data warnings.

    It is one file that needs no network. Without DATA it shows the model alone, and says what is missing.

    Examples: `candide report adult.candide test.csv -o report.html`, `candide report adult.candide -o model.html`
    """
    from candide import api
    from candide.cli.progress import show_progress

    show_result(api.write_report(model, output, data, watch=show_progress(not as_json), **options), as_json)


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data", required=False)
@output_option("PICTURE", "Write this .png, .svg or .pdf file.", required=True)
@click.option(
    "--what",
    "-w",
    default="densities",
    show_default=True,
    type=KeywordParam([*_PLOTS_OF_MODEL, *_PLOTS_OF_ROWS]),
    metavar="NAME",
    help=f"{', '.join(_PLOTS_OF_MODEL)}; and from labelled rows {', '.join(_PLOTS_OF_ROWS)}.",
)
@click.option(
    "--feature",
    "-f",
    "features",
    multiple=True,
    metavar="COL",
    help="Column to draw (repeatable; two of them are a pair term). Default: the most important.",
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="CLASS",
    help="Class to draw: two for a surface, any number for means, one for other plots of a class.",
)
@click.option("--shape", metavar="ROWSxCOLUMNS", help="Shape of the images of class means, such as 28x28.")
@TARGET
@click.option(
    "--kind",
    type=KeywordParam(["strip", "histogram", "bars", "surface", "contour"]),
    metavar="NAME",
    help="Kind of a discriminant plot: strip, histogram, bars; of a surface: surface, contour.",
)
@click.option(
    "--bins", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="Bins of a calibration plot."
)
@click.option("--normalise", is_flag=True, help="Show proportions instead of rows in a confusion matrix.")
@click.option(
    "--dpi", default=150, show_default=True, type=click.IntRange(20, 1200), metavar="N", help="Dots per inch of a .png."
)
@reading_options
@AS_JSON
def plot(
    model: str, data: str | None, output: str, what: str, shape: str | None, as_json: bool, **options: Any
) -> None:
    """Draw a model, or how well it does on labelled rows. Without DATA the plot comes from the counts.

    Examples: `candide plot iris.candide -o densities.png`,
    `candide plot iris.candide iris.csv -o regions.svg --what regions --feature petal_length --feature petal_width`,
    `candide plot digits.candide -o means.png --what means --shape 28x28`,
    `candide plot adult.candide -o pair.png --what term --feature age --feature workclass`
    """
    from candide import api
    from candide.cli.progress import show_progress

    sides, watch = _parse_shape(shape), show_progress(not as_json)
    show_result(api.plot_model(model, output, what, data, shape=sides, watch=watch, **options), as_json)


def _parse_shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(side.strip().isdecimal() for side in sides):
        remedy = "pass rows and columns, such as --shape 28x28"
        raise InputError(f"--shape {text!r} is not a valid shape", value=text, remedy=remedy)
    return tuple(int(side) for side in sides)


@cli.command()
@click.argument("model", type=MODEL)
@click.option(
    "--to",
    metavar="NAME",
    required=True,
    type=KeywordParam(["js", "onnx", "python", "sql"]),
    help="js (an ES module), python (a module without dependencies), onnx, or sql (one SELECT).",
)
@click.option("--dialect", metavar="DIALECT", help="For sql: duckdb, postgres, spark, sqlite, snowflake, bigquery, ...")
@click.option("--table", metavar="TABLE", help="For sql: the table to score.")
@click.option("--keep", multiple=True, metavar="COL", help="For sql: a column of the table to keep (repeatable).")
@output_option("FILE", "Write this file. Default: print it.")
@AS_JSON
def export(model: str, to: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Export a model as one file in another language, which scores rows without Candide.

    Its probabilities are those of `candide predict`. A Python module scores a CSV file by itself:
    `python adult.py new.csv`. A query scores the rows of a table where they are.

    Examples: `candide export adult.candide --to js -o adult.mjs`,
    `candide export adult.candide --to python -o adult.py`, `candide export adult.candide --to onnx -o adult.onnx`,
    `candide export adult.candide --to sql --dialect postgres --table people --keep id`
    """
    from candide import api
    from candide.export.targets import find_target
    from candide.report import summary

    target = find_target(to)
    if output is None and target.is_binary:
        raise InputError(f"{target.description} is not text and cannot be printed", remedy="name a file: -o FILE")
    program = api.export_model(model, to, output, **options)
    if output is None:
        print_code(str(program))
    else:
        size = len(program.encode("utf-8") if isinstance(program, str) else program)
        show_result(summary.ExportSummary(model, to, target.description, output, size), as_json)
