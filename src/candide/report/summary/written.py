"""Files that a command wrote: scored rows, a picture, a model in another language."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from candide.report.record import Summary


@dataclass(frozen=True, repr=False)
class WrittenSummary(Summary):
    """Scored rows in a file."""

    rows: int
    output: str


@dataclass(frozen=True, repr=False)
class StateSummary(Summary):
    """What a server has learned, in a model file."""

    state: str  # the journal
    rows: int  # that the model has counted
    output: str


@dataclass(frozen=True, repr=False)
class PictureSummary(Summary):
    """A picture of a model in a file."""

    model: str
    what: str  # the kind of picture
    output: str
    drawn: Mapping[str, Any]  # what it shows: features, rows, a note
    note: str | None = None


@dataclass(frozen=True, repr=False)
class ExportSummary(Summary):
    """A model in another language, in a file."""

    model: str
    to: str  # the name of the target
    what: str  # what that is called
    output: str
    bytes: int


def of_picture(model: str, drawn: Mapping[str, Any], output: str, form: str) -> PictureSummary:
    """The summary of a picture and what it shows, drawn into a file of some format."""
    known = {**drawn, "output": output, "format": form}
    return PictureSummary(model, drawn["what"], output, known, drawn.get("note"))
