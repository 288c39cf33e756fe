"""The commands that serve a model, and give what it has learned meanwhile."""

import os
import re
from pathlib import Path
from typing import Any

import rich_click as click

from candide.cli.group import cli, load_model, load_to_predict, show_result
from candide.cli.options import AS_JSON, MODEL, output_option
from candide.errors import InputError, MissingLibraryError


@cli.command()
@click.argument("model", type=MODEL)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="The port; 0: any.")
@click.option(
    "--token",
    envvar="CANDIDE_TOKEN",
    metavar="TOKEN",
    help="What a request that changes the model must bring. CANDIDE_TOKEN says it unseen by other users.",
)
@click.option("--private", is_flag=True, help="Ask for the token on every request but a probe.")
@click.option("--public", is_flag=True, help="Listen beyond this machine without a token.")
@click.option("--learn", metavar="STATE", type=MODEL, help="Learn and forget, and keep that in this file.")
@click.option("--target", "-t", metavar="COL", help="The column of labels to learn; the model's own if not given.")
@click.option("--allow-new-classes", is_flag=True, help="Learn rows of classes that the model does not know.")
@click.option("--window", metavar="TIME", help="Forget what was learned so long ago: 30d, 12h, 90m.")
@click.option("--half-life", metavar="TIME", help="Let what was counted weigh half as much after so long: 30d.")
@click.option(
    "--peer",
    "peers",
    metavar="URL",
    multiple=True,
    help="Another server of this model: add what it has learned. Any number.",
)
@click.option("--name", metavar="NAME", help="The model's name in paths; that of its file if not given.")
@click.option("--quiet", is_flag=True, help="Write no line for each request.")
def serve(
    model: str,
    host: str,
    port: int,
    token: str | None,
    private: bool,
    public: bool,
    learn: str | None,
    target: str | None,
    allow_new_classes: bool,
    window: str | None,
    half_life: str | None,
    peers: tuple[str, ...],
    name: str | None,
    quiet: bool,
) -> None:
    """Answer over HTTP: predict and explain rows, as JSON, CSV or Arrow, in the words of MLflow's and Triton's clients.

    `/docs` says what may be asked. Every request writes a line of JSON on standard error, without any of its values.
    SIGTERM stops it once what was asked is answered. With --learn it counts rows in and out; what it has answered for
    is on the disk.

    Examples: `candide serve adult.candide`, `CANDIDE_TOKEN=... candide serve adult.candide --host 0.0.0.0 --port 80`,
    `candide serve adult.candide --learn adult.db --window 30d`
    """
    try:
        from candide.serve import app
        from candide.serve.run import check_host, log_to_stderr, open_socket, run
    except ModuleNotFoundError as error:
        remedy = "pip install 'candide[serve]'"
        raise MissingLibraryError(f"to serve a model {error.name} is needed", remedy=remedy) from None
    check_host(host, token is not None, public)
    if private and token is None:
        raise InputError("--private asks for a token, and there is none", remedy="pass --token (or CANDIDE_TOKEN)")
    if learn is None and ((target and not peers) or window or half_life or allow_new_classes):
        raise InputError("nothing is learned", remedy="name the file that keeps it: --learn state.db")
    fitted = load_to_predict(model)
    how: dict[str, Any] = {"journal_path": learn, "target": target, "allow_new_classes": allow_new_classes}
    how |= {"private": private, "peers": peers}
    spans = {"window": window, "half_life": half_life}
    how |= {one: None if span is None else parse_duration(span) for one, span in spans.items()}
    with open_socket(host, port) as listening:
        served = app(fitted, name=name or Path(model).stem, token=token, log=None if quiet else log_to_stderr, **how)
        run(served, listening, host, lambda address: click.echo(f"serving {model} at {address}/docs", err=True))


@cli.command("export-state")
@click.argument("state", type=MODEL)
@output_option("MODEL", "Where to keep the model.", required=True)
@click.option("--target", "-t", metavar="COL", help="The column of the labels; the model's own if not given.")
@click.option(
    "--less", metavar="MODEL", type=MODEL, help="Without what this model had counted: what is new, to be merged."
)
@AS_JSON
def export_state(state: str, output: str, force: bool, target: str | None, less: str | None, as_json: bool) -> None:
    """Write what a server has learned as a model file.

    The server must be stopped; of one that runs, GET /state gives the same.

    Several servers that began with the same model are added up by what is new in each (--less) and that model.

    Examples: `candide export-state adult.db -o adult.candide`,
    `candide export-state north.db --less adult.candide -o north.candide`
    """
    from candide import store
    from candide.report import summary
    from candide.serve import learned_state as states
    from candide.serve.journal import Journal
    from candide.store import outputs

    if not os.path.isfile(state):
        raise InputError(f"{state} is not there", value=state, remedy="name the file that --learn named")
    outputs.check_destination(output, state, force=force)
    journal = Journal(state)
    try:
        if journal.is_new:
            raise InputError(f"{state} has learned nothing", value=state)
        found = states.replay_journal(journal, target)
        now = states.Clock(journal.latest_time(), found.decay.half_life)()
    finally:
        journal.close()
    fitted = (found if less is None else found.without_base(load_model(less))).model_at(now)
    store.save(fitted, output, force=force)
    show_result(summary.ServerStateSummary(state, fitted.counts.n_rows, output), as_json)


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def parse_duration(text: str) -> float:
    """A length of time.

    >>> parse_duration("90m"), parse_duration("1.5d")
    (5400.0, 129600.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if not found or not float(found[1]):
        raise InputError(f"{text!r} is no length of time", value=text, remedy="write such as 30d, 12h or 90m")
    return float(found[1]) * _UNITS[found[2]]
