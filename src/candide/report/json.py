"""JSON: summaries as facts for a program. Nothing is worked out here; keys are part of what Candide promises.

>>> from candide.report.summary import ScoredFileSummary
>>> dumps(ScoredFileSummary(12, "scored.csv"))
'{"rows": 12, "output": "scored.csv"}'
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from functools import singledispatch
from typing import Any

from candide.explain.decisions import Contribution
from candide.report import summary
from candide.report.doctor import Installation
from candide.report.records import Summary


def dumps(record: Any) -> str:
    """A summary, or facts, as one line of JSON; what JSON cannot say, NaN and the infinities, is null."""
    return json.dumps(_to_json_value(to_facts(record)), allow_nan=False, default=str)


@singledispatch
def to_facts(found: Any) -> Any:
    """The facts of a summary; of what is no summary, itself."""
    return _fields(found) if isinstance(found, Summary) else found


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


@to_facts.register
def _(found: summary.ModelSummary) -> dict[str, Any]:
    known: dict[str, Any] = {
        "rows": found.rows,
        "classes": _class_proportions(found.classes),
        "strengths": found.importances or {},
        "target": found.target,
        "estimate": found.estimate,
        "select": found.select,
        "provenance": found.provenance,
        "columns": [
            {
                "column": one.column,
                "event": one.event,
                **({"date": True} if one.is_date else {}),
                "given": one.conditionals,
            }
            for one in found.columns
        ],
    }
    if found.terms is not None:
        known["weights_learned_on"], known["weights"] = found.terms.training_rows, found.weights_note
        known["bias"] = {str(one.label): one.intercept for one in found.classes}
        known["voices"] = [
            {name: value for name, value in _fields(one).items() if name not in ("part_index", "feature_index")}
            for one in found.terms
        ]
        known["silent"] = list(map(_fields, found.terms.inactive))
        known["effects"] = list(map(_fields, found.effects))
    if found.scores is not None:
        known |= {"scores": list(map(_fields, found.scores)), "notes": found.notes}
    return known


@to_facts.register
def _(found: summary.FitSummary) -> dict[str, Any]:
    known: dict[str, Any] = {
        "rows": found.rows,
        "target": found.target,
        "classes": _class_proportions(found.classes),
        "columns": [{"column": one.column, "kind": one.kind, "event": one.event} for one in found.columns],
        "strengths": found.importances,
        "notes": found.notes,
        "output": found.output,
    }
    if found.held_out is not None:
        known["held_out"] = to_facts(found.held_out)
    return known if found.validation is None else {**known, "cross_validation": to_facts(found.validation)}


@to_facts.register
def _(found: summary.DemoSummary) -> dict[str, Any]:
    metrics = {one.name: one.value for one in found.scores.metrics}
    of = {one.name: one.positive_class for one in found.scores.metrics if one.positive_class}
    return {"rows": found.rows, "trained_on": found.training_rows, **metrics, "metric_classes": of}


@to_facts.register
def _(found: summary.ScoreSummary) -> dict[str, Any]:
    return {
        "rows": found.rows,
        "folds": found.folds,
        "intervals_by": found.intervals_by,
        **{one.name: _metric_facts(one) for one in found.metrics},
        "metric_classes": {one.name: one.positive_class for one in found.metrics if one.positive_class},
        "baseline": {one.name: one.baseline for one in found.metrics if one.baseline == one.baseline},
        "notes": found.notes,
        "classes": found.labels,
        "confusion": found.confusion,
        "by_class": list(map(_fields, found.by_class)),
        "averages": found.averages,
        "top": {str(k): share for k, share in found.top_k_accuracy.items()},
        "calibration": [dict(zip(("stated", "observed", "rows"), one, strict=True)) for one in found.calibration],
        "calibration_words": found.calibration_note,
        "thresholds": list(map(_fields, found.thresholds)),
        "curves": list(map(_fields, found.curves)),
        **({} if found.policy_result is None else {"decided": _fields(found.policy_result)}),
        **({} if found.chosen_threshold is None else {"chosen": _fields(found.chosen_threshold)}),
    }


@to_facts.register
def _(found: summary.AdaptSummary) -> dict[str, Any]:
    return {**_fields(found), "class_proportions": list(map(_fields, found.class_proportions))}


@to_facts.register
def _(found: summary.DriftSummary) -> dict[str, Any]:
    said = {name: one and _fields(one) for name, one in (("before", found.before), ("after", found.after))}
    shares = {
        name: one and {**one, "class_proportions": _by_label(one["class_proportions"])} for name, one in said.items()
    }
    return {**_fields(found), "columns": list(map(_fields, found.columns)), **shares}


@to_facts.register
def _(found: summary.CompareSummary) -> dict[str, Any]:
    return {**_fields(found), "differences": list(map(_fields, found.differences))}


@to_facts.register
def _(found: summary.DecisionSummary) -> dict[str, Any]:
    decision = found.decision
    return {
        "row": found.row,
        "label": found.label,
        "prediction": decision.prediction,
        "probability": decision.probability,
        "runner_up": decision.runner_up,
        "runner_up_probability": decision.runner_up_probability,
        "log_odds": decision.log_odds,
        "class_prior": decision.class_prior,
        **({"calibration": decision.calibration} if decision.calibration else {}),
        "columns": [_contribution_facts(one) for one in decision.contributions],
    }


def _contribution_facts(contribution: Contribution) -> dict[str, Any]:
    """What a voice says; of a document its terms too, of columns together their name, of numbers their place."""
    known = {name: getattr(contribution, name) for name in ("column", "value", "log_odds", "is_seen")}
    known |= {
        name: getattr(contribution, name)
        for name in ("term", "cells", "nearest_prototype")
        if getattr(contribution, name)
    }
    return {**known, "words": list(map(_fields, contribution.words))} if contribution.words else known


@to_facts.register
def _(found: summary.TextSummary) -> dict[str, Any]:
    words = [{"term": one.word, "count": one.count, "weight": one.log_odds} for one in found.words]
    return {"prediction": found.prediction, "probabilities": _by_label(found.probabilities), "words": words}


@to_facts.register
def _(found: summary.DiffSummary) -> dict[str, Any]:
    moves = {name: list(map(_fields, getattr(found, name))) for name in ("classes", "columns", "levels")}
    return {"rows": found.rows, **moves, "left_out": found.skipped_columns}


@to_facts.register
def _(found: summary.CheckSummary) -> dict[str, Any]:
    return {**_fields(found), "findings": list(map(_fields, found.findings))}


@to_facts.register
def _(found: summary.UpdateSummary) -> dict[str, Any]:
    new = [{"class": one.label, "rows": one.weight, "did_you_mean": one.did_you_mean} for one in found.new_classes]
    return {
        "model": found.model,
        "output": found.output,
        "rows": found.rows,
        "rows_in_model": found.rows_in_model,
        "classes": _by_label(found.classes),
        "new_classes": new,
        "notes": found.notes,
    }


@to_facts.register
def _(found: summary.PlotSummary) -> dict[str, Any]:
    return dict(found.plot_facts)


@to_facts.register
def _(found: Installation) -> dict[str, Any]:
    return dict(found.findings)


@to_facts.register
def _(found: summary.PageSummary) -> dict[str, Any]:
    verdict = found.assessment
    return {
        "title": found.title,
        "model": to_facts(found.model),
        "data": found.data,
        "scores": None if verdict is None else to_facts(verdict.scores),
        "verdict": () if verdict is None else verdict.sentences,
        "voices": list(map(_fields, found.terms)),
        "surprises": [
            {**_fields(one), "decision": one.decision and to_facts(one.decision)} for one in found.largest_errors
        ],
        "findings": [] if found.check is None else to_facts(found.check)["findings"],
        "gaps": list(map(_fields, found.missing_sections)),
    }


def _metric_facts(one: summary.MetricSummary) -> dict[str, float]:
    return {name: getattr(one, name) for name in ("value", "fold_mean", "fold_sd", "low", "high")}


def _class_proportions(classes: tuple[summary.ClassSummary, ...]) -> dict[str, float]:
    return {str(one.label): one.proportion for one in classes}


def _by_label(values: Mapping[Any, float]) -> dict[str, float]:
    return {str(label): value for label, value in values.items()}


def _to_json_value(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _to_json_value(one) for key, one in value.items()}
    return [_to_json_value(one) for one in value] if isinstance(value, list | tuple) else value
