"""Files that a command wrote: scored rows, a picture, a model in another language."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from candide.report.records import Summary


@dataclass(frozen=True, repr=False)
class ScoredFileSummary(Summary):
    """Scored rows in a file."""

    rows: int
    output: str


@dataclass(frozen=True, repr=False)
class ServerStateSummary(Summary):
    """What a server has learned, in a model file."""

    state: str  # the journal
    rows: int  # that the model has counted
    output: str


@dataclass(frozen=True, repr=False)
class PlotSummary(Summary):
    """A picture of a model in a file."""

    model: str
    plot_name: str  # the kind of picture
    output: str
    plot_facts: Mapping[str, Any]  # what it shows: features, rows, a note
    note: str | None = None


@dataclass(frozen=True, repr=False)
class ExportSummary(Summary):
    """A model in another language, in a file."""

    model: str
    target: str  # the name of the target
    description: str  # what that is called
    output: str
    size_bytes: int


def summarize_plot(model: str, drawn: Mapping[str, Any], output: str, image_format: str) -> PlotSummary:
    """The summary of a picture and what it shows, drawn into a file of some format."""
    known = {**drawn, "output": output, "format": image_format}
    return PlotSummary(model, drawn["what"], output, known, drawn.get("note"))
