"""The command that writes a model in another language."""

import rich_click as click

from candide.cli.group import cli, load_to_predict, show_result
from candide.cli.options import AS_JSON, MODEL, output_option


@cli.command()
@click.argument("model", type=MODEL)
@click.option("--to", metavar="NAME", required=True, help="js (an ES module) or python (a module without packages).")
@output_option("FILE", "Where to write it; printed if not given.")
@AS_JSON
def export(model: str, to: str, output: str | None, force: bool, as_json: bool) -> None:
    """Write a model as one file of another language, which scores rows without Candide.

    Its probabilities are those of `candide predict`. A module of Python scores a CSV file by itself:
    `python adult.py new.csv`.

    Examples: `candide export adult.candide --to js -o adult.mjs`,
    `candide export adult.candide --to python -o adult.py`
    """
    from candide import tasks
    from candide.export.targets import is_exported, target
    from candide.report import summary
    from candide.tasks import outputs

    chosen = target(to)  # errors before any work is done
    outputs.check(output, model, ours=is_exported, force=force)
    text = tasks.export(load_to_predict(model), to, output, force=force)
    if output is None:
        click.echo(text, nl=False)
    else:
        show_result(summary.ExportSummary(model, to, chosen.what, output, len(text.encode("utf-8"))), as_json)
