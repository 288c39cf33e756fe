"""A model as one SELECT: the label and the probability of every class, for each row of a table.

>>> from candide.demo import garden
>>> text = write_select(FittedModel(garden()), dialect="sqlite", table="plants", kept_columns=["bed"])
>>> text.splitlines()[0][:40], text.count("LEFT JOIN")
('-- A model exported by Candide. Made by ', 4)
"""

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
from candide.export.modules import EXPORT_MARKER
from candide.export.parameters import export_parameters
from candide.export.scorer.numbers import decode_numbers, split_rows
from candide.export.sql.expressions import IMPOSSIBLE_SCORE, guarded_exp, largest_of, sum_of
from candide.export.sql.layers import Layers, format_number
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
    kept_columns, found = [kept_columns] if isinstance(kept_columns, str) else kept_columns, export_parameters(fitted)
    _check_columns([str(column["name"]) for column in found["columns"]], target)
    layers = Layers(target, _table(table, target))
    names = _names(kept_columns, found["classes"], target)
    kept = [layers.add_read(layers.column(name)) for name in kept_columns]
    scoring = ScoringQuery(layers, found)
    for part in found["parts"]:
        add_score(scoring, part)
    p, clear = add_probabilities(scoring)
    label = add_decision(scoring, p, clear, [_label(value, target) for value in found["classes"]])
    issue_warnings(_notes(scoring))
    query = layers.sql(list(zip([*kept, label, *p], map(target.quote, names), strict=True)))
    return f"-- {EXPORT_MARKER}\n{query}\n"


def _names(keep: Sequence[str], classes: Sequence[Any], dialect: Dialect) -> list[str]:
    if "" in keep:
        raise InputError("a column to keep needs a name", value="", remedy="name it, or leave it out")
    names = [*keep, "prediction", *(f"p_{label}" for label in classes)]
    same = [dialect.fold_case(name) for name in names]
    for at, name in enumerate(names):
        if names.count(name) > 1 or (at < len(keep) and same.count(same[at]) > 1):
            what = f"the query would have two columns {name!r}"
            raise InputError(what, value=name, remedy="keep other columns, or rename it")
    return names


def _check_columns(names: Sequence[str], dialect: Dialect) -> None:
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(dialect.fold_case(name), name)
        if other != name:
            what = f"cannot be exported: {dialect.name} cannot distinguish it from {other!r}"
            raise InputError(what, column=name, value=other, remedy="rename one of them, and fit again")


def _table(name: str, dialect: Dialect) -> str:
    """A table with or without a schema; its name is quoted, so that its case is kept."""
    if _TEMPLATE.fullmatch(name.strip()):
        return name  # dbt fills it in
    if "{{" in name:
        remedy = "name one table, or one template: {{ ref('people') }}"
        raise InputError("more than a template", value=name, remedy=remedy)
    try:
        found = exp.to_table(name, dialect=dialect.name)
    except (SqlglotError, ValueError):
        return dialect.quote(name)
    for part in found.parts if not dialect.folds_table else ():
        if isinstance(part, exp.Identifier):
            part.set("quoted", True)
    return found.sql(dialect.name)


def _label(value: Any, dialect: Dialect) -> str:
    if isinstance(value, bool):
        return dialect.booleans[value]
    if isinstance(value, float):
        return dialect.cast_double(format_number(value))
    return dialect.quote_string(value) if isinstance(value, str) else str(value)


def _notes(scoring: ScoringQuery) -> list[Note]:
    text = "a row in which one of {} is missing has no prediction: {} columns are modelled together"
    return [
        Note(
            "missing-together", text.format(formatting.format_list(some), len(some)), remedy="export it to python or js"
        )
        for some in scoring.complete_groups
    ]


def add_probabilities(scoring: ScoringQuery) -> tuple[list[str], list[str]]:
    """The names of the probabilities, and of values that are largest for the most probable class."""
    layers, prior = scoring.layers, decode_numbers(scoring.parameters["log_prior"])
    each = zip(prior, scoring.class_terms, strict=True)
    scores = [
        layers.add_value(layers.dialect.cast_double(_total(layers, [format_number(start), *terms])))
        for start, terms in each
    ]
    top = largest_of(layers, scores)
    if scoring.has_impossible:  # impossible in every class: then the prior decides
        held = zip(scores, prior, strict=True)
        never = f"CASE WHEN {top} < {IMPOSSIBLE_SCORE} THEN"
        scores = [layers.add_value(f"{never} {format_number(start)} ELSE {one} END") for one, start in held]
        top = largest_of(layers, scores)
    less = [layers.add_value(f"{score} - {top}") for score in scores]
    shares = [layers.add_value(guarded_exp(one)) for one in less]
    if "calibrator" in scoring.parameters:
        shares = _calibrate(layers, shares, less, scoring.parameters["calibrator"])
        return _normalize(layers, shares), shares
    return _normalize(layers, shares), scores


def _total(layers: Layers, terms: Sequence[str]) -> str:
    """The sum of terms; those of one layer are added up in the next, to limit the number of columns."""
    by_depth: dict[int, list[str]] = {}
    for term in terms:
        by_depth.setdefault(layers.depth(term), []).append(term)
    *before, last = (by_depth[depth] for depth in sorted(by_depth))
    sofar: list[str] = []
    for some in before:
        sofar = [layers.add_value(sum_of([*sofar, *some]))] if len(some) > 1 else [*sofar, *some]
    return sum_of([*sofar, *last])


def _normalize(layers: Layers, weights: Sequence[str]) -> list[str]:
    total = layers.add_value(sum_of(weights))
    return [layers.add_value(f"{share} / {total}") for share in weights]


def _calibrate(
    layers: Layers, class_probabilities: Sequence[str], less: Sequence[str], calibrator: dict[str, Any]
) -> list[str]:
    """Calibrated probabilities, adjusted to another class prior."""
    curves = [
        (decode_numbers(a), decode_numbers(b)) for a, b in zip(calibrator["stated"], calibrator["true"], strict=True)
    ]
    if len(class_probabilities) == 2:
        true = _interpolate(layers, layers.add_value(f"{less[1]} - {less[0]}"), *curves[0])
        out = [_logistic(layers, layers.add_value(f"-{true}")), _logistic(layers, true)]
    else:
        odds = [_log_odds(layers, class_probabilities, c) for c in range(len(class_probabilities))]
        each = zip(odds, curves, strict=True)
        out = [_logistic(layers, _interpolate(layers, one, *own)) for one, own in each]
    turned = zip(out, decode_numbers(calibrator.get("shift", [0.0] * len(out))), strict=True)
    return [layers.add_value(f"{one} * {format_number(math.exp(nats))}") if nats else one for one, nats in turned]


def _log_odds(layers: Layers, shares: Sequence[str], c: int) -> str:
    rest, log = layers.add_value(sum_of([one for i, one in enumerate(shares) if i != c])), layers.dialect.log_function
    ends = (
        f"WHEN {rest} <= 0e0 THEN {format_number(_MAX_LOG_ODDS)} "
        f"WHEN {shares[c]} <= 0e0 THEN {format_number(-_MAX_LOG_ODDS)}"
    )
    return layers.add_value(f"CASE {ends} ELSE {log}({shares[c]}) - {log}({rest}) END")


def _interpolate(layers: Layers, x: str, knots: Sequence[float], values: Sequence[float]) -> str:
    """Linear interpolation, constant beyond the ends."""
    code = layers.add_value(count_edges_below(x, knots))
    table = layers.join_by_code(code, range(len(knots) + 1))
    a, b, c = (table.numbers(one.tolist()) for one in line_segments(knots, values))
    return layers.add_value(f"{a} + {b} * ({x} - {c})")


def _logistic(layers: Layers, x: str) -> str:
    """1 / (1 + exp(-x)), from the side on which the exponential is small."""
    size = layers.add_value(f"-ABS({x})")
    small = layers.add_value(guarded_exp(size))
    return layers.add_value(f"CASE WHEN {x} < 0e0 THEN {small} ELSE 1e0 END / (1e0 + {small})")


def add_decision(scoring: ScoringQuery, p: Sequence[str], clear: Sequence[str], labels: Sequence[str]) -> str:
    """The label of a row: the most probable class, or the decision of a policy; NULL where the model abstains."""
    layers, policy = scoring.layers, scoring.parameters.get("policy", {})
    given = _first_best(layers, clear, labels)
    if "costs" in policy:
        by_class = zip(*split_rows(decode_numbers(policy["costs"]), scoring.n_classes), strict=True)  # given
        costs = [
            layers.add_value(sum_of([f"{format_number(x)} * {q}" for x, q in zip(own, p, strict=True)]))
            for own in by_class
        ]
        given = _first_best(layers, costs, labels, least=True)
        if "referral" in policy:
            lowest = largest_of(layers, costs, smallest=True)
            given = f"CASE WHEN {lowest} > {format_number(float(policy['referral']))} THEN NULL ELSE {given} END"
    elif "positive" in policy:
        given = _decide_by_threshold(layers, p, clear, labels, policy["positive"], float(policy["log_odds"]))
    if "log_abstain" not in policy:
        return given
    enough = format_number(math.exp(float(policy["log_abstain"])))
    return f"CASE WHEN {largest_of(layers, p)} < {enough} THEN NULL ELSE {given} END"


def _first_best(layers: Layers, names: Sequence[str], labels: Sequence[str], least: bool = False) -> str:
    """The label of the largest number, or the least; the first of equals."""
    best = largest_of(layers, names, least)
    cases = [f"WHEN {name} = {best} THEN {label}" for name, label in zip(names, labels, strict=True)]
    return f"CASE {' '.join(cases)} END"


def _decide_by_threshold(
    layers: Layers, p: Sequence[str], clear: Sequence[str], labels: Sequence[str], c: int, log_odds: float
) -> str:
    """One class if its odds reach a threshold, else the most probable of the others."""
    others = [i for i in range(len(p)) if i != c]
    rest = layers.add_value(sum_of([p[i] for i in others]))
    odds = format_number(math.exp(min(log_odds, _MAX_LOG_ODDS)))
    taken = f"{p[c]} >= {odds} * {rest}" if log_odds < _MAX_LOG_ODDS else f"{rest} <= 0e0"
    other = _first_best(layers, [clear[i] for i in others], [labels[i] for i in others])
    return f"CASE WHEN {taken} THEN {labels[c]} ELSE {other} END"
