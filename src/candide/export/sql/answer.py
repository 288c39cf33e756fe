"""Answer: scores become probabilities, and probabilities a decision."""

import math
from collections.abc import Sequence
from typing import Any

from candide.export.scorer.numbers import decode_numbers, split_rows
from candide.export.sql.expressions import IMPOSSIBLE_SCORE, guarded_exp, largest_of, sum_of
from candide.export.sql.layers import Layers, format_number
from candide.export.sql.lookups import count_edges_below, line_segments
from candide.export.sql.scoring import ScoringQuery

_MAX_LOG_ODDS = 700.0  # log-odds


def add_probabilities(scoring: ScoringQuery) -> tuple[list[str], list[str]]:
    """The names of the probabilities, and of what is the largest for the most probable class."""
    layers, prior = scoring.layers, decode_numbers(scoring.parameters["log_prior"])
    each = zip(prior, scoring.class_terms, strict=True)
    scores = [
        layers.add_value(layers.dialect.cast_double(_total(layers, [format_number(start), *terms])))
        for start, terms in each
    ]
    top = largest_of(layers, scores)
    if scoring.has_impossible:  # in no class: then nothing is known but their shares
        held = zip(scores, prior, strict=True)
        never = f"CASE WHEN {top} < {IMPOSSIBLE_SCORE} THEN"
        scores = [layers.add_value(f"{never} {format_number(start)} ELSE {one} END") for one, start in held]
        top = largest_of(layers, scores)
    less = [layers.add_value(f"{score} - {top}") for score in scores]
    shares = [layers.add_value(guarded_exp(one)) for one in less]
    if "curve" in scoring.parameters:
        shares = _calibrate(layers, shares, less, scoring.parameters["curve"])
        return _normalize(layers, shares), shares
    return _normalize(layers, shares), scores


def _total(layers: Layers, terms: Sequence[str]) -> str:
    """The sum of terms; those of one layer are added up in the next, for a query has room for so many columns."""
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
    """Shares that are bent to what came true, and turned to other shares of the classes."""
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
    ends = f"WHEN {rest} <= 0e0 THEN {format_number(_MAX_LOG_ODDS)} WHEN {shares[c]} <= 0e0 THEN {format_number(-_MAX_LOG_ODDS)}"
    return layers.add_value(f"CASE {ends} ELSE {log}({shares[c]}) - {log}({rest}) END")


def _interpolate(layers: Layers, x: str, knots: Sequence[float], values: Sequence[float]) -> str:
    """The straight lines through knots, level beyond the ends."""
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
    """The label of a row: that of the most probable class, or what a policy says; NULL where it is left open."""
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
    """The label of the largest number, or the least; of several alike that of the first."""
    best = largest_of(layers, names, least)
    cases = [f"WHEN {name} = {best} THEN {label}" for name, label in zip(names, labels, strict=True)]
    return f"CASE {' '.join(cases)} END"


def _decide_by_threshold(
    layers: Layers, p: Sequence[str], clear: Sequence[str], labels: Sequence[str], c: int, log_odds: float
) -> str:
    """A class from some odds on, elsewhere the most probable of the others."""
    others = [i for i in range(len(p)) if i != c]
    rest = layers.add_value(sum_of([p[i] for i in others]))
    odds = format_number(math.exp(min(log_odds, _MAX_LOG_ODDS)))
    taken = f"{p[c]} >= {odds} * {rest}" if log_odds < _MAX_LOG_ODDS else f"{rest} <= 0e0"
    other = _first_best(layers, [clear[i] for i in others], [labels[i] for i in others])
    return f"CASE WHEN {taken} THEN {labels[c]} ELSE {other} END"
