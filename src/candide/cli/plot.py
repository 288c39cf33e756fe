"""The command that draws."""

from typing import Any

import rich_click as click

from candide.cli.completion import KeywordParam
from candide.cli.group import cli, load_model, show_result
from candide.cli.options import AS_JSON, MODEL, output_option, reading_options
from candide.engines.reading import ReadOptions
from candide.errors import InputError

_PLOTS_OF_MODEL = ("densities", "regions", "surface", "ellipses", "means", "network", "term", "nomogram")
_PLOTS_OF_ROWS = ("discriminant", "calibration", "confusion", "roc", "pr", "lift", "coverage", "thresholds")


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data", required=False)
@output_option("PICTURE", "A .png, .svg or .pdf file.", required=True)
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
    help="A column to draw (repeatable; two of them are a pair that speaks together); the strongest if not given.",
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="CLASS",
    help="A class: two for a surface, any for means, one for all others that are of a class.",
)
@click.option("--shape", metavar="ROWSxCOLUMNS", help="Of the images of class means, such as 28x28.")
@click.option("--target", "-t", metavar="COL", help="The column of the labels in DATA; the model's own if not given.")
@click.option(
    "--kind",
    type=KeywordParam(["strip", "histogram", "bars", "surface", "contour"]),
    metavar="NAME",
    help="Of a discriminant: strip, histogram, bars; of a surface: surface, contour.",
)
@click.option("--bins", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="Of a calibration.")
@click.option("--normalise", is_flag=True, help="Shares instead of numbers of rows in a confusion matrix.")
@click.option(
    "--dpi", default=150, show_default=True, type=click.IntRange(20, 1200), metavar="N", help="Dots per inch of a .png."
)
@reading_options
@AS_JSON
def plot(model: str, data: str | None, output: str, force: bool, as_json: bool, **options: Any) -> None:
    """Draw a model: what it learned, and with rows how well it does on them. Without DATA it draws from the counts.

    Examples: `candide plot iris.candide -o densities.png`,
    `candide plot iris.candide iris.csv -o regions.svg --what regions --feature petal_length --feature petal_width`,
    `candide plot digits.candide -o means.png --what means --shape 28x28`,
    `candide plot adult.candide -o pair.png --what term --feature age --feature workclass`
    """
    from candide.cli import progress
    from candide.plot.data import PlotRows
    from candide.plot.picture import PlotSpec, draw_plot, image_format, is_candide_image, write_figure
    from candide.report import summary
    from candide.store import outputs

    image_format(output)  # an error before any work is done
    outputs.check_destination(output, model, data, ours=is_candide_image, force=force)
    names = ("features", "classes", "kind", "bins", "normalise")
    spec = PlotSpec(
        options.pop("what"), **{name: options.pop(name) for name in names}, shape=_parse_shape(options.pop("shape"))
    )
    target, dpi = options.pop("target"), options.pop("dpi")
    fitted, reading = load_model(model), ReadOptions(**options)
    with progress.show_progress(not as_json) as watch:
        rows = None if data is None else PlotRows(data, target, reading, watch)
        figure, drawn = draw_plot(fitted, spec, rows)
        form = write_figure(figure, output, dpi, force=force)
    show_result(summary.summarize_plot(model, drawn, output, form), as_json)


def _parse_shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(side.strip().isdecimal() for side in sides):
        remedy = "pass rows and columns, such as --shape 28x28"
        raise InputError(f"--shape {text!r} is no shape", value=text, remedy=remedy)
    return tuple(int(side) for side in sides)
