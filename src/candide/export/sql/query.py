"""A model as one SELECT: the label and the probability of every class, for each row of a table."""

import math
import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from candide import formatting
from candide.data.notes import Note, issue_warnings
from candide.engines.sql.dialect import Dialect
from candide.engines.sql.dialects.registry import DIALECTS, get_dialect
from candide.errors import InputError
from candide.export.parameters import EXPORT_MARKER, export_parameters
from candide.export.python_js.numbers import decode_numbers, split_rows
from candide.export.sql.layers import IMPOSSIBLE_SCORE, Layers, format_number, guarded_exp, largest_of, sum_of
from candide.export.sql.lookups import ScoringQuery, count_edges_below, line_segments
from candide.export.sql.operations import add_score
from candide.model.fitted import FittedModel

_MAX_LOG_ODDS = 700.0  # log-odds

_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")


def write_select(fitted: FittedModel, *, dialect: str = "", table: str = "", kept_columns: Sequence[str] = ()) -> str:
    """The text of a query; ``kept_columns`` of the table stand before the prediction."""
    if not dialect:
        remedy = f"pass --dialect (dialect=...), one of {', '.join(DIALECTS)}"
        raise InputError("a query needs a dialect of SQL", remedy=remedy)
    target = get_dialect(dialect)
    if not table:
        raise InputError("a query needs a table", value=table, remedy="name it: table=... (--table)")
    parameters = export_parameters(fitted)
    known: dict[str, str] = {}
    for name in (str(column["name"]) for column in parameters["columns"]):
        if (other := known.setdefault(target.fold_case(name), name)) != name:
            what = f"cannot be exported: {target.name} cannot distinguish it from {other!r}"
            raise InputError(what, column=name, value=other, remedy="rename one of them, and fit again")
    layers = Layers(target, _quote_table(table, target))
    names = _output_names(kept_columns, parameters["classes"], target)
    kept = [layers.add_read(layers.column(name)) for name in kept_columns]
    scoring = ScoringQuery(layers, parameters)
    for part in parameters["parts"]:
        add_score(scoring, part)
    p, scores = _add_probabilities(scoring)
    label = _add_decision(scoring, p, scores, [_label(value, target) for value in parameters["classes"]])
    text = "a row in which one of {} is missing has no prediction: {} columns are modelled together"
    groups = [text.format(formatting.format_list(group), len(group)) for group in scoring.complete_groups]
    issue_warnings([Note("missing-together", what, remedy="export it to python or js") for what in groups])
    query = layers.sql(list(zip([*kept, label, *p], map(target.quote, names), strict=True)))
    return f"-- {EXPORT_MARKER}\n{query}\n"


def _output_names(keep: Sequence[str], classes: Sequence[Any], dialect: Dialect) -> list[str]:
    if "" in keep:
        raise InputError("a column to keep needs a name", value="", remedy="name it, or leave it out")
    names = [*keep, "prediction", *(f"p_{label}" for label in classes)]
    folded = [dialect.fold_case(name) for name in names]
    for at, name in enumerate(names):
        if names.count(name) > 1 or (at < len(keep) and folded.count(folded[at]) > 1):
            what = f"the query would have two columns {name!r}"
            raise InputError(what, value=name, remedy="keep other columns, or rename it")
    return names


def _quote_table(name: str, dialect: Dialect) -> str:
    """A table with or without a schema; its name is quoted, so that its case is kept."""
    if _TEMPLATE.fullmatch(name.strip()):
        return name  # dbt fills it in
    if "{{" in name:
        remedy = "name one table, or one template: {{ ref('people') }}"
        raise InputError("more than a template", value=name, remedy=remedy)
    try:
        table = exp.to_table(name, dialect=dialect.name)
    except (SqlglotError, ValueError):
        return dialect.quote(name)
    for part in table.parts if not dialect.folds_table else ():
        if isinstance(part, exp.Identifier):
            part.set("quoted", True)
    return table.sql(dialect.name)


def _label(value: Any, dialect: Dialect) -> str:
    if isinstance(value, bool):
        return dialect.booleans[value]
    if isinstance(value, float):
        return dialect.cast_double(format_number(value))
    return dialect.quote_string(value) if isinstance(value, str) else str(value)


def _add_probabilities(scoring: ScoringQuery) -> tuple[list[str], list[str]]:
    """The names of the probabilities, and of values that are largest for the most probable class."""
    layers, prior = scoring.layers, list(map(format_number, decode_numbers(scoring.parameters["log_prior"])))
    cast, summands = layers.dialect.cast_double, zip(prior, scoring.class_terms, strict=True)
    scores = [layers.add_value(cast(_total(layers, [start, *terms]))) for start, terms in summands]
    top = largest_of(layers, scores)
    if scoring.has_impossible:  # impossible in every class: then the prior decides
        case = f"CASE WHEN {top} < {IMPOSSIBLE_SCORE} THEN"
        pairs = zip(scores, prior, strict=True)
        scores = [layers.add_value(f"{case} {start} ELSE {score} END") for score, start in pairs]
        top = largest_of(layers, scores)
    logs = [layers.add_value(f"{score} - {top}") for score in scores]
    weights = [layers.add_value(guarded_exp(log)) for log in logs]
    if "calibrator" in scoring.parameters:
        scores = weights = _calibrate(layers, weights, logs, scoring.parameters["calibrator"])
    total = layers.add_value(sum_of(weights))
    return [layers.add_value(f"{weight} / {total}") for weight in weights], scores


def _total(layers: Layers, terms: Sequence[str]) -> str:
    """The sum of terms; those of one layer are added up in the next, to limit the number of columns."""
    by_depth: dict[int, list[str]] = {}
    for term in terms:
        by_depth.setdefault(layers.depth(term), []).append(term)
    *lower, last = (by_depth[depth] for depth in sorted(by_depth))
    summands: list[str] = []
    for group in lower:
        summands += group
        summands = [layers.add_value(sum_of(summands))] if len(group) > 1 else summands
    return sum_of([*summands, *last])


def _calibrate(layers: Layers, weights: Sequence[str], logs: Sequence[str], calibrator: dict[str, Any]) -> list[str]:
    """Calibrated probabilities, adjusted to another class prior; they may not sum to one."""
    stated, true = (list(map(decode_numbers, calibrator[name])) for name in ("stated", "true"))
    if len(weights) == 2:
        odds = _interpolate(layers, layers.add_value(f"{logs[1]} - {logs[0]}"), stated[0], true[0])
        out = [_logistic(layers, layers.add_value(f"-{odds}")), _logistic(layers, odds)]
    else:
        all_odds = [_log_odds(layers, weights, c) for c in range(len(weights))]
        curves = zip(all_odds, stated, true, strict=True)
        out = [_logistic(layers, _interpolate(layers, odds, knots, values)) for odds, knots, values in curves]
    shift = decode_numbers(calibrator.get("shift", [0.0] * len(out)))
    pairs = zip(out, shift, strict=True)
    return [layers.add_value(f"{p} * {format_number(math.exp(log))}") if log else p for p, log in pairs]


def _log_odds(layers: Layers, weights: Sequence[str], c: int) -> str:
    rest, log = layers.add_value(sum_of([*weights[:c], *weights[c + 1 :]])), layers.dialect.log_function
    most = format_number(_MAX_LOG_ODDS)
    ends = f"WHEN {rest} <= 0e0 THEN {most} WHEN {weights[c]} <= 0e0 THEN -{most}"
    return layers.add_value(f"CASE {ends} ELSE {log}({weights[c]}) - {log}({rest}) END")


def _interpolate(layers: Layers, x: str, knots: Sequence[float], values: Sequence[float]) -> str:
    """Linear interpolation, constant beyond the ends."""
    code = layers.add_value(count_edges_below(x, knots))
    table = layers.join_by_code(code, range(len(knots) + 1))
    a, b, c = (table.numbers(numbers.tolist()) for numbers in line_segments(knots, values))
    return layers.add_value(f"{a} + {b} * ({x} - {c})")


def _logistic(layers: Layers, x: str) -> str:
    """1 / (1 + exp(-x)), from the side on which the exponential is small."""
    size = layers.add_value(f"-ABS({x})")
    small = layers.add_value(guarded_exp(size))
    return layers.add_value(f"CASE WHEN {x} < 0e0 THEN {small} ELSE 1e0 END / (1e0 + {small})")


def _add_decision(scoring: ScoringQuery, p: Sequence[str], scores: Sequence[str], labels: Sequence[str]) -> str:
    """The label of a row: the most probable class, or the decision of a policy; NULL where the model abstains."""
    layers, policy = scoring.layers, scoring.parameters.get("policy", {})
    if "costs" in policy:
        costs = []
        for by_truth in zip(*split_rows(decode_numbers(policy["costs"]), scoring.n_classes), strict=True):
            expected = [f"{format_number(cost)} * {q}" for cost, q in zip(by_truth, p, strict=True)]
            costs.append(layers.add_value(sum_of(expected)))
        label = _first_best(layers, costs, labels, least=True)
        if "abstain_cost" in policy:
            lowest = largest_of(layers, costs, smallest=True)
            label = f"CASE WHEN {lowest} > {format_number(float(policy['abstain_cost']))} THEN NULL ELSE {label} END"
    elif "positive" in policy:  # if its odds reach a threshold, else the most probable of the others
        c, log_odds = policy["positive"], float(policy["log_odds"])
        others = [i for i in range(len(p)) if i != c]
        rest = layers.add_value(sum_of([p[i] for i in others]))
        odds = format_number(math.exp(min(log_odds, _MAX_LOG_ODDS)))
        is_positive = f"{p[c]} >= {odds} * {rest}" if log_odds < _MAX_LOG_ODDS else f"{rest} <= 0e0"
        other = _first_best(layers, [scores[i] for i in others], [labels[i] for i in others])
        label = f"CASE WHEN {is_positive} THEN {labels[c]} ELSE {other} END"
    else:
        label = _first_best(layers, scores, labels)
    if "log_abstain" not in policy:
        return label
    least = format_number(math.exp(float(policy["log_abstain"])))
    return f"CASE WHEN {largest_of(layers, p)} < {least} THEN NULL ELSE {label} END"


def _first_best(layers: Layers, names: Sequence[str], labels: Sequence[str], least: bool = False) -> str:
    """The label of the largest number, or the least; the first of equals."""
    best = largest_of(layers, names, least)
    cases = [f"WHEN {name} = {best} THEN {label}" for name, label in zip(names, labels, strict=True)]
    return f"CASE {' '.join(cases)} END"
