"""Commands that present models: show, diff, drift, report, plot and export; demo and doctor."""

from typing import Any

import rich_click as click

from candide.cli.completion import KeywordParam
from candide.cli.group import cli, print_code, show_progress, show_result, summary
from candide.cli.group import models as api
from candide.cli.options import AS_JSON, MODEL, TARGET, WEIGHT, output_option, reading_options
from candide.errors import InputError

_PLOTS_OF_MODEL = ("densities", "regions", "surface", "ellipses", "means", "network", "term", "nomogram")
_PLOTS_OF_ROWS = ("discriminant", "calibration", "confusion", "roc", "pr", "lift", "coverage", "thresholds")
_LIBRARIES = (
    *("numpy", "scipy", "scikit-learn", "narwhals", "pyarrow", "duckdb", "sqlglot", "threadpoolctl", "rich"),
    *("rich-click", "jinja2", "pandas", "polars"),
)
_EXTRAS = {
    "plot": ("matplotlib",),
    "excel": ("python-calamine",),
    "postgres": ("adbc-driver-manager", "adbc-driver-postgresql"),
    "spark": ("pyspark",),
    "onnx": ("onnx",),
    "serve": ("msgspec", "uvicorn", "httptools", "uvloop"),
    "mlflow": ("mlflow-skinny",),
}
_KERNEL_NOTES = {
    "avx2": "avx2 (compiled, for this processor)",
    "baseline": "baseline (compiled, for any processor)",
    "numpy": "numpy (not compiled, slower: install a C compiler and reinstall)",
}


@cli.command()
@click.argument("model", type=MODEL)
@click.option("--levels", default=12, show_default=True, help="Number of levels of a category to show.")
@click.option("--class", "classes", multiple=True, metavar="CLASS", help="Show this class only (repeatable).")
@click.option("--column", "columns", multiple=True, metavar="COL", help="Show this column only (repeatable).")
@AS_JSON
def show(model: str, levels: int, classes: tuple[str, ...], columns: tuple[str, ...], as_json: bool) -> None:
    """Show a model: the class prior, and every column given the class; or some of the columns and classes.

    Examples: `candide show adult.candide`, `candide show letters.candide --class A --class B --column width`
    """
    show_result(api.describe_model(model, levels, classes=classes, columns=columns), as_json)


@cli.command()
@click.argument("before", type=MODEL)
@click.argument("after", type=MODEL)
@click.option(
    "--limit", default=12, show_default=True, type=click.IntRange(1), metavar="N", help="Differences of each kind."
)
@AS_JSON
def diff(before: str, after: str, limit: int, as_json: bool) -> None:
    """Show the differences between two models: classes, columns and levels, largest first.

    Example: `candide diff may.candide june.candide`
    """
    show_result(summary.summarize_diff(api.diff_models(before, after, limit)), as_json)


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@click.option("--before", metavar="DATA", help="Training rows of the model, to compare log p(x) with.")
@reading_options
@AS_JSON
def drift(model: str, data: str, before: str | None, as_json: bool, **options: Any) -> None:
    """Detect drift between training data and new, unlabelled rows: columns, log p(x), expected accuracy.

    Example: `candide drift adult.candide new.csv --before adult.parquet`
    """
    result = api.detect_drift(model, data, before=before, watch=show_progress(not as_json), **options)
    show_result(summary.summarize_drift(result), as_json)


@cli.command()
@click.option(
    "--rows", default=20_000, show_default=True, type=click.IntRange(40), metavar="N", help="Number of rows to make."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the random numbers.")
@AS_JSON
def demo(rows: int, seed: int, as_json: bool) -> None:
    """Make a mixed table, fit it, evaluate on held-out rows, show the result.

    Example: `candide demo --rows 100000`
    """
    from candide.demo import run_demo

    show_result(summary.summarize_demo(run_demo(rows, seed)), as_json)


@cli.command()
@AS_JSON
def doctor(as_json: bool) -> None:
    """Show what this installation runs on: kernels, threads, versions.

    Example: `candide doctor`
    """
    installed = inspect_installation()
    if as_json:
        show_result(installed, as_json)
    else:
        width = max(map(len, installed))
        click.echo("\n".join(f"{name:{width}} {value}" for name, value in installed.items()))


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

    It is one file that needs no network. Without DATA it shows the model alone, and lists what is missing.

    Examples: `candide report adult.candide test.csv -o report.html`, `candide report adult.candide -o model.html`
    """
    show_result(api.write_report(model, data, output, watch=show_progress(not as_json), **options), as_json)


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
    sides = None if shape is None else shape.lower().split("x")
    if sides is not None and (len(sides) != 2 or not all(side.strip().isdecimal() for side in sides)):
        remedy = "pass rows and columns, such as --shape 28x28"
        raise InputError(f"--shape {shape!r} is not a valid shape", value=shape, remedy=remedy)
    options |= {"shape": sides and tuple(map(int, sides)), "watch": show_progress(not as_json)}
    show_result(api.plot_model(model, data, output, what, **options), as_json)


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
    from candide.export.targets import find_target

    target = find_target(to)
    if output is None and target.is_binary:
        raise InputError(f"{target.description} is not text and cannot be printed", remedy="name a file: -o FILE")
    program = api.export_model(model, to, output, **options)
    if output is None:
        print_code(str(program))
    else:
        size = len(program.encode("utf-8") if isinstance(program, str) else program)
        show_result(summary.ExportSummary(model, to, target.description, output, size), as_json)


def inspect_installation() -> dict[str, str]:
    """The versions of Candide, Python and the libraries, the kernels and the number of threads."""
    import platform
    from importlib import metadata

    from candide import __version__, kernels
    from candide.kernels import threads

    def version(name: str, remedy: str = "") -> str:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return f"not installed{remedy}"

    versions = {"candide": __version__, "python": platform.python_version(), "kernels": _KERNEL_NOTES[kernels.NAME]}
    versions |= {"threads": str(threads.thread_count())} | {name: version(name) for name in _LIBRARIES}
    return versions | {name: version(name, f": candide[{extra}]") for extra, names in _EXTRAS.items() for name in names}
