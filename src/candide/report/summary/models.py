"""A fitted model: classes, columns, terms and scores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data.table import Name
from candide.errors import unknown_name_error
from candide.explain import terms as of_terms
from candide.explain.columns import FEATURE_TABLE, FeatureScore, score_model_features
from candide.explain.effects import Effects
from candide.explain.terms import InactiveTerm, Term, TermList
from candide.model.fitted import FittedModel
from candide.report import records
from candide.report.records import MAX_TABLE_ROWS, Paragraph, Section, Summary, notes, section, table
from candide.report.summary import columns as of_columns
from candide.report.summary.columns import ClassSummary, ColumnSummary, EffectSummary
from candide.store.file import ModelLike, load_fitted
from candide.weighted.fit import stale_notes

_MAX_NOTEBOOK_TERMS = 8  # terms in the frame of a notebook
_PROVENANCE_FIELDS = "source fitted_rows date version options"  # in the order in which they are shown
_TERM_CAPTION = "weight: 1 is the weight of a column in naive Bayes; importance: mean absolute change of the log-odds"
_OWN_TERM_CAPTION = (
    "own term: what a column contributes beside its joint terms; a negative weight corrects these. "
    "The total effect of the column is listed above."
)


def _effects_hint(model: "ModelSummary") -> str:
    c = of_columns.default_class(np.array([row.proportion for row in model.classes]))
    return f"on the log-odds of {formatting.format_label(model.classes[c].label)}, over all terms of a column"


def _terms_caption(model: Any) -> str:
    has_own_term = any(term.kind == "own term" for term in model.terms)
    return f"{_TERM_CAPTION}. {_OWN_TERM_CAPTION}" if has_own_term else _TERM_CAPTION


def _inactive_section(record: Any, inactive: Sequence[InactiveTerm]) -> Iterator[Section]:
    rows = [(str(term.column), str(term), "") for term in inactive[:MAX_TABLE_ROWS]]
    more = len(inactive) - len(rows)
    rows += [("", f"and {formatting.format_count(more, 'more column')}", "")] if more else []
    yield records.LabelledParagraphs(rows, "Not used on their own", label_style="")


@dataclass(frozen=True, repr=False, kw_only=True)
class ModelSummary(Summary):
    """A fitted model."""

    rows: int | None  # None: no counts are kept
    target: str | None
    estimate: str
    class_prior: str
    select: int | str | None
    provenance: Mapping[str, str]
    policy: str = ""  # how it decides, where that is not by the most probable class
    weights_note: str | None = None  # on which rows the weights of terms were learned; None: every column counts once
    training_rows: int | None = None  # how many these were
    classes: tuple[ClassSummary, ...] = field(metadata=of_columns.CLASSES)
    effects: tuple[EffectSummary, ...] = field(
        default=(),
        metadata=table(
            "Total effects of columns",
            *of_columns.EFFECT_TABLE,
            hint=_effects_hint,
            when=lambda effects: any(effect.n_terms > 1 for effect in effects),
        ),
    )
    terms: tuple[Term, ...] | None = field(
        default=None,
        metadata=table(
            "Terms by importance",
            *of_terms.TERM_TABLE,
            hint=lambda model: of_terms.describe_kinds(of_terms.count_kinds(model.terms)),
            caption=_terms_caption,
        ),
    )
    inactive_terms: tuple[InactiveTerm, ...] = field(default=(), metadata=section(_inactive_section))
    columns: tuple[ColumnSummary, ...] = field(metadata=of_columns.COLUMNS)  # those used have conditionals
    importances: Mapping[Name, float] | None
    notes: tuple[str, ...] = field(default=(), metadata=notes())
    scores: tuple[FeatureScore, ...] | None = field(
        default=None,
        metadata=table(
            "Association with the class",
            *FEATURE_TABLE,
            hint="evidence: log Bayes factor; information: mutual information, in nats",
        ),
    )
    is_filtered: bool = field(default=False, metadata=records.INTERNAL)  # whether columns or classes were selected

    frame = "candide show"

    @property
    def headline(self) -> str:
        counted = "no counts kept" if self.rows is None else formatting.format_count(self.rows)
        target = "" if self.target is None else f"predicts {self.target!r}; "
        lines = [f"{counted}; {target}estimate: {self.estimate}; class prior: {self.class_prior}"]
        lines += [f"decides: {self.policy}"] if self.policy else []
        lines += [self.weights_note] if self.weights_note is not None else []
        if self.provenance:
            order = sorted(self.provenance.items(), key=lambda pair: _PROVENANCE_FIELDS.find(pair[0]))
            known = [f"{name.replace('_', ' ')}: {formatting.truncate(value, 60)}" for name, value in order if value]
            is_changed = self.rows is not None and self.provenance.get("fitted_rows") not in (None, str(self.rows))
            lines.append("; ".join([*known, *(["changed since"] if is_changed else [])]))
        return "\n".join(lines)

    def sections(self, *names: str) -> Iterator[Section]:
        """Yield the model, then each column given the class; of selected columns or classes these first."""
        labels = [row.label for row in self.classes]
        given = [of_columns.conditional_table(c, labels) for c in self.columns if c.conditionals is not None]
        if names or not self.is_filtered:
            yield from super().sections(*names)
        if self.is_filtered and not names:
            yield Paragraph(self.headline, frame=self.frame)
            yield from super().sections("classes")
            yield from given
            yield from super().sections("effects", "terms", "inactive_terms")
        elif not names:
            yield from given[:MAX_TABLE_ROWS]
            if more := len(given[MAX_TABLE_ROWS:]):
                yield Paragraph(f"and {formatting.format_count(more, 'more column')}; --json lists all", "dim")


def summarize_model(
    model: ModelLike, max_levels: int = 12, *, classes: Sequence[Any] = (), columns: Sequence[Any] = ()
) -> ModelSummary:
    """Return the summary of a model or model file, with at most ``max_levels`` levels or words of a column.

    ``classes`` and ``columns`` select what is shown; by default all.
    """
    fitted = load_fitted(model)
    whole, terms = _summarize_fitted(fitted, max_levels)
    if not classes and not columns:
        return whole
    at = [_find_position("class", name, [row.label for row in whole.classes]) for name in classes]
    at = at or list(range(len(whole.classes)))
    shown = [column for column in whole.columns if column.conditionals is not None]
    for term in terms or ():
        if term.title in columns and len(term.columns) > 1:
            cells = of_terms.build_term_cells(fitted, term).strongest(max_levels)
            values = {name: tuple(log_odds.tolist()) for name, log_odds in cells}
            title = "contribution to the log-odds of each class"
            shown.append(ColumnSummary(term.title, term.kind, conditionals=values, conditional_title=title))
    if columns:
        shown = [shown[_find_position("column", name, [c.column for c in shown])] for name in columns]
    names = [column.column for column in shown]
    if terms is not None and columns:
        terms = terms.select(names)
    for i, column in enumerate(shown):
        given = column.conditionals and {name: tuple(v[c] for c in at) for name, v in column.conditionals.items()}
        shown[i] = replace(column, conditionals=given)
    return replace(
        whole,
        classes=tuple(whole.classes[c] for c in at),
        columns=tuple(shown),
        terms=None if terms is None else terms.terms,
        inactive_terms=() if terms is None else terms.inactive,
        effects=tuple(effect for effect in whole.effects if not columns or effect.column in names),
        is_filtered=True,
    )


def _find_position(what: str, name: Any, names: Sequence[Any]) -> int:
    """Return where a class or a column is, by its name or by its name as text."""
    either = [*names, *map(str, names)]
    if name not in either:
        raise unknown_name_error(what, name, names)
    return either.index(name) % len(names)


def _summarize_fitted(fitted: FittedModel, max_levels: int) -> tuple[ModelSummary, TermList | None]:
    settings, has_classes = fitted.settings, len(fitted.labels) > 0  # none are left where every row was forgotten
    effects = Effects(fitted) if has_classes and fitted.term_weights is not None else None
    counted = of_columns.summarize_counted_columns(fitted)
    if has_classes:
        counted = of_columns.summarize_conditionals(fitted, max_levels)
    columns, terms = of_columns.sort_columns(counted, effects), None if effects is None else effects.terms
    weights, lines = fitted.term_weights, list[str]()
    if weights is not None:
        lines.append(weights.training_summary(weights.n_counted_rows if fitted.n_rows is None else fitted.n_rows))
        for part, tokens in zip(fitted.plan.parts, weights.token_weights or (), strict=False):
            if tokens is not None:
                description = tokens.weighting.describe(part.event.token_description)  # type: ignore[attr-defined]
                lines.append(f"{part.columns[0]}: {description}")
    summary = ModelSummary(
        rows=fitted.n_rows,
        target=fitted.target,
        estimate=settings.estimate,
        class_prior=str(settings.class_prior),
        select=settings.select,
        provenance=dict(fitted.provenance),
        classes=of_columns.summarize_classes(fitted),
        columns=columns,
        importances=of_columns.importances(columns) if fitted.has_counts else fitted.column_evidence,
        scores=tuple(score_model_features(fitted)) if fitted.has_counts and has_classes else None,
        notes=(*of_columns.column_notes(columns), *map(str, stale_notes(fitted))),
        terms=None if terms is None else terms.terms,
        inactive_terms=() if terms is None else terms.inactive,
        effects=of_columns.summarize_effects(effects) if effects else (),
        weights_note=None if weights is None else "\n".join(lines),
        training_rows=None if terms is None else terms.training_rows,
        policy=_policy_note(fitted),
    )
    return summary, terms


def _policy_note(fitted: FittedModel) -> str:
    return fitted.policy.describe(fitted.labels) if fitted.policy else ""


def render_model_html(title: str, fitted: FittedModel) -> str:
    """Return a model for a notebook: what it was fitted on, and its most important terms."""
    labels = formatting.format_list([str(label) for label in fitted.labels.values], 5)
    rows = "" if fitted.n_rows is None else f"{formatting.format_count(fitted.n_rows)}, "
    note = f"{rows}{formatting.format_count(len(fitted.labels), 'class', 'classes')}: {labels}; report() shows more"
    policy = _policy_note(fitted)
    terms = of_terms.list_terms(fitted) if len(fitted.labels) > 1 else TermList(())
    return terms.to_html(title, _MAX_NOTEBOOK_TERMS, f"decides: {policy}; {note}" if policy else note)
