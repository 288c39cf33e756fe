"""The command that makes a page to look at."""

from typing import Any

import rich_click as click

from candide.cli.group import cli, load_to_predict, show_result
from candide.cli.options import AS_JSON, MODEL, TARGET, WEIGHT, output_option, reading_options
from candide.engines.reading import ReadOptions


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data", required=False)
@output_option("PAGE", "An .html file.", required=True)
@TARGET
@WEIGHT
@click.option("--full", is_flag=True, help="Draw every chart, however large the page grows.")
@reading_options
@AS_JSON
def report(
    model: str,
    data: str | None,
    output: str,
    force: bool,
    target: str | None,
    weight: str | None,
    full: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Write an HTML report: terms, performance on DATA, largest errors, data warnings.

    The report is one file that needs no network. Without DATA it shows the model alone, and lists what is missing.

    Examples: `candide report adult.candide test.csv -o report.html`, `candide report adult.candide -o model.html`
    """
    from candide.cli import progress
    from candide.report import html
    from candide.report.build import build_report, write_report
    from candide.store import outputs

    outputs.check_destination(output, model, data, ours=html.is_page, force=force)  # before any work is done
    fitted = load_to_predict(model, data)
    with progress.show_progress(not as_json) as watch:
        how: dict[str, Any] = {"weight": weight, "full": full, "reading": ReadOptions(**options), "watch": watch}
        made = build_report(fitted, data, target, **how)
    show_result(write_report(made, model, output, data, force=force), as_json)
