"""The command that serves a model."""

from pathlib import Path

import rich_click as click

from candide.cli.group import cli, load_to_predict
from candide.cli.options import MODEL
from candide.errors import MissingLibraryError


@cli.command()
@click.argument("model", type=MODEL)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="The port; 0: any.")
@click.option(
    "--token",
    envvar="CANDIDE_TOKEN",
    metavar="TOKEN",
    help="What every request but a probe must bring. CANDIDE_TOKEN says it unseen by other users of the machine.",
)
@click.option("--public", is_flag=True, help="Listen beyond this machine without a token.")
@click.option("--name", metavar="NAME", help="The model's name in paths; that of its file if not given.")
@click.option("--quiet", is_flag=True, help="Write no line for each request.")
def serve(model: str, host: str, port: int, token: str | None, public: bool, name: str | None, quiet: bool) -> None:
    """Answer over HTTP: predict and explain rows, as JSON, CSV or Arrow, in the words of MLflow's and Triton's clients.

    `/docs` says what may be asked. Every request writes a line of JSON on standard error, without any of its values.
    SIGTERM stops it once what was asked is answered.

    Examples: `candide serve adult.candide`, `CANDIDE_TOKEN=... candide serve adult.candide --host 0.0.0.0 --port 80`
    """
    try:
        from candide.serve import app
        from candide.serve.run import check_host, run, to_stderr
    except ModuleNotFoundError as error:
        remedy = "pip install 'candide[serve]'"
        raise MissingLibraryError(f"to serve a model {error.name} is needed", remedy=remedy) from None
    check_host(host, token is not None, public)
    fitted = load_to_predict(model)
    served = app(fitted, name=name or Path(model).stem, token=token, log=None if quiet else to_stderr)
    run(served, host, port, lambda address: click.echo(f"serving {model} at {address}/docs", err=True))
