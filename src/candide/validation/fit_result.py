"""What a fit returns: the model, its columns, notes, and scores of held-out rows."""

from dataclasses import dataclass, field

from candide.data.column_types import ColumnSchema
from candide.data.notes import Note
from candide.model.fitted import FittedModel
from candide.validation.held_out import HeldOutScores


@dataclass(frozen=True)
class FitResult:
    """A fitted model, what was made of each column, and remarks a person should see."""

    fitted: FittedModel
    columns: list[ColumnSchema]
    notes: list[Note] = field(default_factory=list)
    held_out: HeldOutScores | None = None  # of a weighted model, where it was asked for

    @property
    def note_texts(self) -> list[str]:
        """The remarks as sentences."""
        return [str(remark) for remark in self.notes]
