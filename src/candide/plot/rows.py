"""Rows of a source for a picture: the few columns it shows, or the posteriors of all, read in a stream.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> data = {"height_cm": [20.0, 50.0], "herb": ["thyme", None]}
>>> columns, codes = Rows(data, "herb").columns(Drawable.of(Fitted(garden())), ["height_cm"])
>>> columns["height_cm"].tolist(), codes.tolist()
([20.0, 50.0], [2, -1])
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from candide.engines.base import Source, Watch, open_source, silent
from candide.engines.reading import Reading
from candide.errors import InputError, unknown
from candide.plot.drawable import Drawable
from candide.rows.table import Name
from candide.tasks.columns import columns_of
from candide.tasks.models import reading_of
from candide.tasks.scoring import labelled


@dataclass(frozen=True)
class Rows:
    """A source, the column of the labels, and how it is read."""

    data: Any
    target: str | None = None
    reading: Reading | None = None
    watch: Watch = silent

    def columns(self, drawable: Drawable, features: Sequence[Name]) -> tuple[dict[Name, Any], NDArray | None]:
        """Some columns of all rows, and the class codes, -1 where absent; None where the labels are not there."""
        with open_source(self.data, reading_of(drawable.fitted, self.reading)) as source, self.watch(source, "reading"):
            target = self._target(drawable, source, needed=False)
            return columns_of(source, drawable.fitted, features, target)

    def posteriors(self, drawable: Drawable) -> Iterator[tuple[NDArray, NDArray]]:
        """log p(class | x), (row, class), and class codes, batch by batch, of the rows that have a known class."""
        with open_source(self.data, reading_of(drawable.fitted, self.reading)) as source, self.watch(source, "scoring"):
            target = self._target(drawable, source, needed=True)
            found = labelled(source, drawable.fitted, target, lambda log_posterior, y, _: (log_posterior, y))
            yield from found.results
        found.left_out.tell(target, stacklevel=3)

    def _target(self, drawable: Drawable, source: Source, *, needed: bool) -> Any:
        name = self.target or drawable.fitted.target
        if name in source.columns:
            return name
        if needed and name is None:
            raise InputError("the model does not say which column it learned; name the column of labels: --target COL")
        if needed or self.target is not None:
            raise unknown("target", name, source.columns)
        return None
