"""Changes: what moved between two models, and what counting into a model, or out of it, did to it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from candide.explain.compare import ClassMove, ColumnMove, Comparison, LevelMove
from candide.model.fitted import Fitted
from candide.report.record import Summary
from candide.rows.table import Name
from candide.tasks.adapt import Adapted
from candide.tasks.update import Change, NewClass
from candide.tasks.weighing import stale


@dataclass(frozen=True, repr=False)
class ChangeSummary(Summary):
    """What moved between two models, most surprising first."""

    rows: tuple[int, int]
    classes: tuple[ClassMove, ...]
    columns: tuple[ColumnMove, ...]
    levels: tuple[LevelMove, ...]
    left_out: tuple[Name, ...]
    dates: frozenset[str] = frozenset()  # columns whose numbers are days since 1970


@dataclass(frozen=True, repr=False)
class UpdateSummary(Summary):
    """What counting rows into a model, or out of it, did."""

    model: str
    done: str  # "counted into", "taken out of"
    rows: int
    rows_in_model: int
    classes: Mapping[Any, float]  # weights
    new_classes: tuple[NewClass, ...]
    notes: tuple[str, ...]
    output: str | None = None  # None: in the model's own file


@dataclass(frozen=True, repr=False)
class MergeSummary(Summary):
    """A sum of models."""

    models: int
    rows: int
    output: str
    detail: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class WeighSummary(Summary):
    """Weights that were learned again."""

    model: str
    rows: int  # from which
    rows_in_model: int
    weights: str  # the same in words
    output: str | None = None  # None: in the model's own file


def of_changes(found: Comparison) -> ChangeSummary:
    """The summary of a comparison."""
    return ChangeSummary(
        found.rows,
        tuple(found.classes),
        tuple(found.columns),
        tuple(found.levels),
        tuple(found.left_out),
        found.dates,
    )


def of_update(model: str, done: str, change: Change, output: str | None = None) -> UpdateSummary:
    """The summary of a change that was made to a model file, or is kept in another."""
    after = change.fitted.census
    weights = dict(zip(after.labels.values, after.class_weight.tolist(), strict=True))
    return UpdateSummary(
        model, done, change.rows, after.n_rows, weights, tuple(change.new_classes), tuple(change.notes), output
    )


def of_merge(models: Collection[Any], whole: Fitted, output: str, detail: str) -> MergeSummary:
    """The summary of a sum of models."""
    return MergeSummary(len(models), whole.census.n_rows, output, detail, tuple(map(str, stale(whole))))


def of_weigh(model: str, change: Change, output: str | None = None) -> WeighSummary:
    """The summary of weights that were learned again."""
    counted, voices = change.fitted.census.n_rows, change.fitted.voices
    return WeighSummary(model, change.rows, counted, voices.said(counted) if voices else "", output)


_NAIVE = (
    "naive Bayes is too sure where columns repeat each other, and then these shares are further off than they say: "
    "a weighted model (candide fit --model bayes) is not"
)


@dataclass(frozen=True)
class ShareSummary:
    """The share of a class before and after a model was adapted, and between which values the latter lies (95 %)."""

    label: Any
    before: float
    after: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class AdaptSummary(Summary):
    """What new rows say of the shares of the classes."""

    model: str
    rows: int
    shares: tuple[ShareSummary, ...]
    output: str | None
    notes: tuple[str, ...] = ()


def of_adapted(model: str, found: Adapted, output: str | None = None) -> AdaptSummary:
    """The summary of a model that was adapted."""
    each = []
    for label, after in found.after.items():
        half = 1.959964 * found.error[label]  # of a standard normal, 95 % lie within so many deviations
        low, high = max(after - half, 0.0), min(after + half, 1.0)
        each.append(ShareSummary(label, found.before[label], after, low, high))
    fitted = found.fitted
    several = len(fitted.plan.columns) > 1 or any(part.holds == "documents" for part in fitted.plan.parts)
    is_naive = fitted.voices is None and fitted.learned.curve is None and several
    return AdaptSummary(model, found.rows, tuple(each), output, (_NAIVE,) if is_naive else ())
