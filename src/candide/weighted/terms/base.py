"""What every kind of joint term is: an event model of several columns that adds to the columns' own terms.

A kind is one class in one file of this package and one line in ``TERMS``. As an event model
it names its tally kind, estimates its distribution and gives leave-one-out contributions; as a term it also proposes
itself for a sample. ``is_joint`` says whether each term has a weight prior of its own or shares one with its part.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from candide.data.blocks import Codes
from candide.data.table import Name
from candide.encoding import Encoding
from candide.events.base import EventModel, Support
from candide.model.plan import PlanPart
from candide.registry import Registry

if TYPE_CHECKING:
    from candide.distributions import Distribution
    from candide.weighted.selection import TermSelector


class JointTerm(EventModel):
    """A kind of term. Its scores are not densities: samples and log p(x) come from the columns' own distributions."""

    has_density: ClassVar[bool] = False
    support: ClassVar[Support | None] = None
    drops_negative: ClassVar[bool] = False  # whether terms with a negative weight leave the model (``select_terms``)

    @classmethod
    def distribution_class(cls) -> "type[Distribution]":
        """What it is estimated as. A model file finds the class by the name of the kind; loading must not need it."""
        raise NotImplementedError(f"kind of term {cls.__name__}: give distribution_class()")

    @classmethod
    def initial_parts(cls, selector: "TermSelector") -> Sequence[PlanPart]:
        """The parts to add before the first weights are learned."""
        return ()

    @classmethod
    def tested_parts(cls, selector: "TermSelector") -> Iterable[PlanPart]:
        """Propose parts that improve on the terms so far; each is added, and weights are learned, before the next."""
        return ()

    def n_candidates(self, columns: Sequence[Name], n_columns: int) -> int:
        """How many terms a part of ``columns`` was selected from, in a model of so many columns."""
        return len(self.term_names(columns))

    def select_terms(self, kept: Codes) -> Self:
        """The event model of some of its terms."""
        return self

    def information(self, tally: Any) -> None:
        return None

    def association_test(self, tally: Any) -> None:
        return None


def make_part(event: EventModel, columns: Sequence[tuple[Name, Encoding]]) -> PlanPart:
    """A part of columns with their encodings."""
    names, encodings = zip(*columns, strict=True)
    return PlanPart(event, names, encodings)


# The kinds by name, one line each; they are proposed in this order.
TERMS: Registry[JointTerm] = Registry(
    "candide.weighted.terms",
    {"discriminant": "Discriminant", "prototype": "PrototypeTerm", "interaction": "Interaction"},
)
