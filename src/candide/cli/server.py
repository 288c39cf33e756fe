"""Commands that serve a model, and export what a server has learned."""

import os
import re
from pathlib import Path
from typing import Any

import rich_click as click

from candide.cli.group import cli, show_result, summary
from candide.cli.options import AS_JSON, MODEL, TARGET, output_option
from candide.errors import InputError, MissingLibraryError


@cli.command()
@click.argument("model", type=MODEL)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 for any free one."
)
@click.option(
    "--token",
    envvar="CANDIDE_TOKEN",
    metavar="TOKEN",
    help="Token that requests which change the model must send; CANDIDE_TOKEN hides it from other users.",
)
@click.option("--private", is_flag=True, help="Require the token on every request except probes.")
@click.option("--public", is_flag=True, help="Listen beyond this machine without a token.")
@click.option("--learn", metavar="STATE", type=MODEL, help="Learn and forget rows, and store them in this file.")
@click.option("--target", "-t", metavar="COL", help="Column of the labels. Default: that of the model.")
@click.option("--allow-new-classes", is_flag=True, help="Learn rows of classes that the model does not know.")
@click.option("--window", metavar="TIME", help="Forget rows after this time: 30d, 12h, 90m.")
@click.option("--half-life", metavar="TIME", help="Halve the weight of counts after this time: 30d.")
@click.option(
    "--peer",
    "peers",
    metavar="URL",
    multiple=True,
    help="Another server of this model, whose learned rows are added (repeatable).",
)
@click.option("--name", metavar="NAME", help="Name of the model in paths. Default: that of its file.")
@click.option("--quiet", is_flag=True, help="Do not log requests.")
def serve(
    model: str, host: str, port: int, token: str | None, public: bool, name: str | None, quiet: bool, **options: Any
) -> None:
    """Serve a model over HTTP: predict and explain rows as JSON, CSV or Arrow, also with MLflow and Triton clients.

    `/docs` lists the endpoints. Every request logs a line of JSON on standard error, without any of its values. SIGTERM
    stops the server once open requests are answered. With --learn it counts rows in and out; they are on disk before a
    request is answered.

    Examples: `candide serve adult.candide`, `CANDIDE_TOKEN=... candide serve adult.candide --host 0.0.0.0 --port 80`,
    `candide serve adult.candide --learn adult.db --window 30d`
    """
    from candide.store.file import load_fitted

    try:
        from candide.serve import app
        from candide.serve.run import check_host, log_to_stderr, open_socket, run
    except ModuleNotFoundError as error:
        remedy = "pip install 'candide[serve]'"
        raise MissingLibraryError(f"serving a model needs {error.name}", remedy=remedy) from None
    check_host(host, token is not None, public)
    if options["private"] and token is None:
        raise InputError("--private needs a token", remedy="pass --token (or CANDIDE_TOKEN)")
    journal, target, peers = options.pop("learn"), options["target"], options["peers"]
    needs_journal = [target and not peers, *(options[key] for key in ("window", "half_life", "allow_new_classes"))]
    if journal is None and any(needs_journal):
        raise InputError("these options need --learn", remedy="name the file to store learned rows: --learn state.db")
    fitted = load_fitted(model)
    for key in ("window", "half_life"):
        options[key] = None if options[key] is None else parse_duration(options[key])
    options |= {"journal_path": journal, "log": None if quiet else log_to_stderr}
    with open_socket(host, port) as bound:
        served = app(fitted, name=name or Path(model).stem, token=token, **options)
        run(served, bound, host, lambda address: click.echo(f"serving {model} at {address}/docs", err=True))


@cli.command("export-state")
@click.argument("state", type=MODEL)
@output_option("MODEL", "Write the model to this file.", required=True)
@TARGET
@click.option(
    "--subtract", metavar="MODEL", type=MODEL, help="Subtract the counts of this model, to merge only what is new."
)
@AS_JSON
def export_state(state: str, output: str, force: bool, target: str | None, subtract: str | None, as_json: bool) -> None:
    """Write what a server has learned as a model file.

    The server must be stopped; a running one gives the same by GET /state. To merge several servers that started with
    the same model, subtract that model from each, and merge the results with it.

    Examples: `candide export-state adult.db -o adult.candide`,
    `candide export-state north.db --subtract adult.candide -o north.candide`
    """
    from candide import files, store
    from candide.serve.journal import Clock, Journal
    from candide.serve.learned_state import replay_journal
    from candide.store.file import load_fitted

    if not os.path.isfile(state):
        raise InputError(f"{state} does not exist", value=state, remedy="name the file of --learn")
    files.check_output(output, state, is_own_file=store.is_model_file, force=force)
    journal = Journal(state)
    try:
        if journal.is_new:
            raise InputError(f"{state} has no learned rows", value=state)
        learned = replay_journal(journal, target)
        now = Clock(journal.latest_time(), learned.decay.half_life)()
    finally:
        journal.close()
    fitted = (learned if subtract is None else learned.without_base(load_fitted(subtract))).model_at(now)
    store.save(fitted, output, force=force)
    show_result(summary.ServerStateSummary(state, fitted.counts.n_rows, output), as_json)


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def parse_duration(text: str) -> float:
    """The seconds of a duration, such as 90m."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if not match or not float(match[1]):
        raise InputError(f"{text!r} is not a valid duration", value=text, remedy="pass such as 30d, 12h or 90m")
    return float(match[1]) * _UNITS[match[2]]
