"""Rows of a source for a picture: the few columns it shows, or the posteriors of all, read in a stream.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> data = {"height_cm": [20.0, 50.0], "herb": ["thyme", None]}
>>> columns, codes = PlotRows(data, "herb").columns(Drawable.from_model(FittedModel(garden())), ["height_cm"])
>>> columns["height_cm"].tolist(), codes.tolist()
([20.0, 50.0], [2, -1])
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from candide.data.table import Name
from candide.engines.base import Source, Watch, no_progress, open_source
from candide.engines.reading import ReadOptions
from candide.engines.scoring import score_labelled
from candide.errors import InputError, unknown_name_error
from candide.explain.source_columns import read_columns
from candide.plot.drawable import Drawable
from candide.store.models import make_read_options


@dataclass(frozen=True)
class PlotRows:
    """A source, the column of the labels, and how it is read."""

    data: Any
    target: str | None = None
    reading: ReadOptions | None = None
    progress: Watch = no_progress

    def columns(self, drawable: Drawable, features: Sequence[Name]) -> tuple[dict[Name, Any], NDArray | None]:
        """Some columns of all rows, and the class codes, -1 where absent; None where the labels are not there."""
        with (
            open_source(self.data, make_read_options(drawable.fitted, self.reading)) as source,
            self.progress(source, "reading"),
        ):
            target = self._label_column(drawable, source, needed=False)
            return read_columns(source, drawable.fitted, features, target)

    def posteriors(self, drawable: Drawable) -> Iterator[tuple[NDArray, NDArray]]:
        """log p(class | x), (row, class), and class codes, batch by batch, of the rows that have a known class."""
        with (
            open_source(self.data, make_read_options(drawable.fitted, self.reading)) as source,
            self.progress(source, "scoring"),
        ):
            target = self._label_column(drawable, source, needed=True)
            found = score_labelled(source, drawable.fitted, target, lambda log_posterior, y, _: (log_posterior, y))
            yield from found.results
        found.skipped_rows.warn(target, stacklevel=3)

    def _label_column(self, drawable: Drawable, source: Source, *, needed: bool) -> Any:
        name = self.target or drawable.fitted.target
        if name in source.columns:
            return name
        if needed and name is None:
            raise InputError("the model does not say which column it learned; name the column of labels: --target COL")
        if needed or self.target is not None:
            raise unknown_name_error("target", name, source.columns)
        return None
