"""JSON: summaries as facts for a program. Nothing is worked out here; keys are part of what Candide promises.

>>> from candide.report.summary import WrittenSummary
>>> dumps(WrittenSummary(12, "scored.csv"))
'{"rows": 12, "output": "scored.csv"}'
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from functools import singledispatch
from typing import Any

from candide.explain.rows import Contribution
from candide.report import summary
from candide.report.doctor import Installation
from candide.report.record import Summary


def dumps(found: Any) -> str:
    """A summary, or facts, as one line of JSON; what JSON cannot say, NaN and the infinities, is null."""
    return json.dumps(_plain(facts(found)), allow_nan=False, default=str)


@singledispatch
def facts(found: Any) -> Any:
    """The facts of a summary; of what is no summary, itself."""
    return _fields(found) if isinstance(found, Summary) else found


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


@facts.register
def _(found: summary.ModelSummary) -> dict[str, Any]:
    known: dict[str, Any] = {
        "rows": found.rows,
        "classes": _shares(found.classes),
        "strengths": found.strengths or {},
        "target": found.target,
        "estimate": found.estimate,
        "select": found.select,
        "provenance": found.provenance,
        "columns": [
            {"column": one.column, "event": one.event, **({"date": True} if one.is_date else {}), "given": one.given}
            for one in found.columns
        ],
    }
    if found.voices is not None:
        known["weights_learned_on"], known["weights"] = found.voices.rows, found.weights
        known["bias"] = {str(one.label): one.bias for one in found.classes}
        known["voices"] = [
            {name: value for name, value in _fields(one).items() if name not in ("part", "feature")}
            for one in found.voices
        ]
        known["silent"] = list(map(_fields, found.voices.silent))
        known["effects"] = list(map(_fields, found.effects))
    if found.scores is not None:
        known |= {"scores": list(map(_fields, found.scores)), "notes": found.notes}
    return known


@facts.register
def _(found: summary.FitSummary) -> dict[str, Any]:
    known: dict[str, Any] = {
        "rows": found.rows,
        "target": found.target,
        "classes": _shares(found.classes),
        "columns": [{"column": one.column, "kind": one.kind, "event": one.event} for one in found.columns],
        "strengths": found.strengths,
        "notes": found.notes,
        "output": found.output,
    }
    if found.trust is not None:
        known["held_out"] = facts(found.trust)
    return known if found.validation is None else {**known, "cross_validation": facts(found.validation)}


@facts.register
def _(found: summary.DemoSummary) -> dict[str, Any]:
    metrics = {one.name: one.value for one in found.scores.metrics}
    of = {one.name: one.of for one in found.scores.metrics if one.of}
    return {"rows": found.rows, "trained_on": found.trained_on, **metrics, "metrics_of": of}


@facts.register
def _(found: summary.ScoreSummary) -> dict[str, Any]:
    return {
        "rows": found.rows,
        "folds": found.folds,
        "intervals_by": found.intervals_by,
        **{one.name: _metric(one) for one in found.metrics},
        "metrics_of": {one.name: one.of for one in found.metrics if one.of},
        "baseline": {one.name: one.baseline for one in found.metrics if one.baseline == one.baseline},
        "notes": found.notes,
        "classes": found.labels,
        "confusion": found.confusion,
        "by_class": list(map(_fields, found.by_class)),
        "averages": found.averages,
        "top": {str(k): share for k, share in found.top.items()},
        "calibration": [dict(zip(("stated", "observed", "rows"), one, strict=True)) for one in found.calibration],
        "calibration_words": found.calibration_words,
        "thresholds": list(map(_fields, found.thresholds)),
        "curves": list(map(_fields, found.curves)),
        **({} if found.decided is None else {"decided": _fields(found.decided)}),
        **({} if found.chosen is None else {"chosen": _fields(found.chosen)}),
    }


@facts.register
def _(found: summary.AdaptSummary) -> dict[str, Any]:
    return {**_fields(found), "shares": list(map(_fields, found.shares))}


@facts.register
def _(found: summary.DriftSummary) -> dict[str, Any]:
    said = {name: one and _fields(one) for name, one in (("before", found.before), ("after", found.after))}
    shares = {name: one and {**one, "shares": _by_label(one["shares"])} for name, one in said.items()}
    return {**_fields(found), "columns": list(map(_fields, found.columns)), **shares}


@facts.register
def _(found: summary.CompareSummary) -> dict[str, Any]:
    return {**_fields(found), "differences": list(map(_fields, found.differences))}


@facts.register
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
        "columns": [_said(one) for one in decision.contributions],
    }


def _said(one: Contribution) -> dict[str, Any]:
    """What a voice says; of a document its terms too, of columns together their name, of numbers their place."""
    known = {name: getattr(one, name) for name in ("column", "value", "nats", "known")}
    known |= {name: getattr(one, name) for name in ("voice", "cells", "like") if getattr(one, name)}
    return {**known, "words": list(map(_fields, one.words))} if one.words else known


@facts.register
def _(found: summary.TextSummary) -> dict[str, Any]:
    words = [{"term": one.term, "count": one.count, "weight": one.weight} for one in found.words]
    return {"prediction": found.prediction, "probabilities": _by_label(found.probabilities), "words": words}


@facts.register
def _(found: summary.ChangeSummary) -> dict[str, Any]:
    moves = {name: list(map(_fields, getattr(found, name))) for name in ("classes", "columns", "levels")}
    return {"rows": found.rows, **moves, "left_out": found.left_out}


@facts.register
def _(found: summary.CheckSummary) -> dict[str, Any]:
    return {**_fields(found), "findings": list(map(_fields, found.findings))}


@facts.register
def _(found: summary.UpdateSummary) -> dict[str, Any]:
    new = [{"class": one.label, "rows": one.rows, "did_you_mean": one.did_you_mean} for one in found.new_classes]
    return {
        "model": found.model,
        "output": found.output,
        "rows": found.rows,
        "rows_in_model": found.rows_in_model,
        "classes": _by_label(found.classes),
        "new_classes": new,
        "notes": found.notes,
    }


@facts.register
def _(found: summary.PictureSummary) -> dict[str, Any]:
    return dict(found.drawn)


@facts.register
def _(found: Installation) -> dict[str, Any]:
    return dict(found.findings)


@facts.register
def _(found: summary.PageSummary) -> dict[str, Any]:
    verdict = found.verdict
    return {
        "title": found.title,
        "model": facts(found.model),
        "data": found.data,
        "scores": None if verdict is None else facts(verdict.scores),
        "verdict": () if verdict is None else verdict.sentences,
        "voices": list(map(_fields, found.voices)),
        "surprises": [{**_fields(one), "decision": one.decision and facts(one.decision)} for one in found.surprises],
        "findings": [] if found.check is None else facts(found.check)["findings"],
        "gaps": list(map(_fields, found.gaps)),
    }


def _metric(one: summary.MetricSummary) -> dict[str, float]:
    return {name: getattr(one, name) for name in ("value", "fold_mean", "fold_sd", "low", "high")}


def _shares(classes: tuple[summary.ClassSummary, ...]) -> dict[str, float]:
    return {str(one.label): one.share for one in classes}


def _by_label(values: Mapping[Any, float]) -> dict[str, float]:
    return {str(label): value for label, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
