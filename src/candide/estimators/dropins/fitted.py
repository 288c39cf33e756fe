"""What a drop-in keeps: counts, and the settings they are read with. Parameters are estimated from them at first use.

Counts add. The settings are those of the last ``fit`` or ``partial_fit``, as in scikit-learn, where a later
``set_params`` changes nothing until then.

>>> from candide.tally import Moments
>>> def count(x, y):
...     labels = Labels.of(np.array([0, 1]))
...     return Counts(labels, np.bincount(y, minlength=2) * 1.0, Moments.of(np.array(x), np.array(y), n_classes=2))
>>> whole = count([[1.0], [3.0]], [0, 0]) + count([[5.0]], [1])
>>> whole.class_weight.tolist(), whole.tally.mean.tolist()
([2.0, 1.0], [[2.0], [5.0]])
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from candide.model.model import Model
from candide.rows.blocks import Floats
from candide.rows.labels import Labels


@dataclass(frozen=True, eq=False)
class Counts:
    """Labels, the weight of each class, and the tally of the one block."""

    labels: Labels
    class_weight: Floats  # (classes,)
    tally: Any

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.labels, self.class_weight + other.class_weight, self.tally + other.tally)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Counts under an event model and its prior."""

    counts: Counts
    event: Any  # an EventModel
    prior: Any  # a Prior it knows
    how: str
    class_log_prior: Floats  # (classes,)

    @property
    def tally(self) -> Any:
        """The counts as the event model reads them."""
        return self.counts.tally

    @cached_property
    def distribution(self) -> Any:
        """The event model's Distribution, with attributes of its own."""
        return self.event.estimate(self.tally, self.prior, self.how)

    @cached_property
    def model(self) -> Model:
        return Model(self.class_log_prior, (self.distribution,), absent_allowed=False)

    def settle(self) -> None:
        """Estimate now, so that an error shows in ``fit``."""
        _ = self.model


class SureFitted(Fitted):
    """Level or word counts under a Dirichlet: their estimate cannot fail, so it waits for its first use."""

    def settle(self) -> None:
        pass


def log_shares(weight: Floats) -> Floats:
    """log of each weight's share; -inf where it is zero."""
    with np.errstate(divide="ignore"):
        return np.log(weight) - np.log(weight.sum())


def shown(state: Floats) -> Floats:
    """An attribute's view of the state: to be read, since a tally is a value that nobody changes."""
    view = state.view()
    view.flags.writeable = False
    return view
