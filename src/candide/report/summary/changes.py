"""Changes: what moved between two models, and what counting into a model, or out of it, did to it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from candide.data.table import Name
from candide.decisions.prior_shift import AdaptedModel
from candide.explain.compare import ClassChange, ColumnChange, LevelChange, ModelComparison
from candide.model.fitted import FittedModel
from candide.operations.update import NewClass, UpdateResult
from candide.report.records import Summary
from candide.weighted.reweight import stale_notes


@dataclass(frozen=True, repr=False)
class DiffSummary(Summary):
    """What moved between two models, most surprising first."""

    rows: tuple[int, int]
    classes: tuple[ClassChange, ...]
    columns: tuple[ColumnChange, ...]
    levels: tuple[LevelChange, ...]
    skipped_columns: tuple[Name, ...]
    dates: frozenset[str] = frozenset()  # columns whose numbers are days since 1970


@dataclass(frozen=True, repr=False)
class UpdateSummary(Summary):
    """What counting rows into a model, or out of it, did."""

    model: str
    action: str  # "counted into", "taken out of"
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
class ReweightSummary(Summary):
    """Weights that were learned again."""

    model: str
    rows: int  # from which
    rows_in_model: int
    weights: str  # the same in words
    output: str | None = None  # None: in the model's own file


def summarize_diff(comparison: ModelComparison) -> DiffSummary:
    """The summary of a comparison."""
    return DiffSummary(
        comparison.rows,
        tuple(comparison.classes),
        tuple(comparison.columns),
        tuple(comparison.levels),
        tuple(comparison.skipped_columns),
        comparison.dates,
    )


def summarize_update(model: str, action: str, change: UpdateResult, output: str | None = None) -> UpdateSummary:
    """The summary of a change that was made to a model file, or is kept in another."""
    after = change.fitted.counts
    weights = dict(zip(after.labels.values, after.class_weight.tolist(), strict=True))
    return UpdateSummary(
        model, action, change.n_rows, after.n_rows, weights, tuple(change.new_classes), tuple(change.note_texts), output
    )


def summarize_merge(models: Collection[Any], merged: FittedModel, output: str, detail: str) -> MergeSummary:
    """The summary of a sum of models."""
    return MergeSummary(len(models), merged.counts.n_rows, output, detail, tuple(map(str, stale_notes(merged))))


def summarize_reweight(model: str, change: UpdateResult, output: str | None = None) -> ReweightSummary:
    """The summary of weights that were learned again."""
    counted, voices = change.fitted.counts.n_rows, change.fitted.term_weights
    return ReweightSummary(model, change.n_rows, counted, voices.training_summary(counted) if voices else "", output)


_NAIVE_BAYES_NOTE = (
    "naive Bayes is too sure where columns repeat each other, and then these shares are further off than they say: "
    "a weighted model (candide fit --model bayes) is not"
)


@dataclass(frozen=True)
class ClassProportionSummary:
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
    class_proportions: tuple[ClassProportionSummary, ...]
    output: str | None
    notes: tuple[str, ...] = ()


def summarize_adaptation(model: str, adaptation: AdaptedModel, output: str | None = None) -> AdaptSummary:
    """The summary of a model that was adapted."""
    each = []
    for label, after in adaptation.proportions_after.items():
        half = 1.959964 * adaptation.standard_error[label]  # of a standard normal, 95 % lie within so many deviations
        low, high = max(after - half, 0.0), min(after + half, 1.0)
        each.append(ClassProportionSummary(label, adaptation.proportions_before[label], after, low, high))
    fitted = adaptation.fitted
    several = len(fitted.plan.columns) > 1 or any(part.block_kind == "documents" for part in fitted.plan.parts)
    is_naive = fitted.term_weights is None and fitted.unadjusted_model.calibrator is None and several
    return AdaptSummary(model, adaptation.n_rows, tuple(each), output, (_NAIVE_BAYES_NOTE,) if is_naive else ())
