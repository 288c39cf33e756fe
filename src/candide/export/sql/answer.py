"""Answer: scores become probabilities, and probabilities a decision."""

import math
from collections.abc import Sequence
from typing import Any

from candide.export.scorer.numbers import numbers, rows
from candide.export.sql.expressions import IMPOSSIBLE, added, guarded_exp
from candide.export.sql.layers import Layers
from candide.export.sql.lookups import lines, search
from candide.export.sql.scoring import Scoring
from candide.export.sql.words import number

_MANY = 50  # arguments of one function
_FARTHEST = 700.0  # log-odds


def probabilities(scoring: Scoring) -> tuple[list[str], list[str]]:
    """The names of the probabilities, and of what is the largest for the most probable class."""
    layers, prior = scoring.layers, numbers(scoring.parameters["log_prior"])
    each = zip(prior, scoring.terms, strict=True)
    scores = [layers.let(layers.words.double(_total(layers, [number(start), *terms]))) for start, terms in each]
    top = most(layers, scores)
    if scoring.impossible:  # in no class: then nothing is known but their shares
        held = zip(scores, prior, strict=True)
        never = f"CASE WHEN {top} < {IMPOSSIBLE} THEN"
        scores = [layers.let(f"{never} {number(start)} ELSE {one} END") for one, start in held]
        top = most(layers, scores)
    less = [layers.let(f"{score} - {top}") for score in scores]
    shares = [layers.let(guarded_exp(one)) for one in less]
    if "curve" in scoring.parameters:
        shares = _bent(layers, shares, less, scoring.parameters["curve"])
        return _divided(layers, shares), shares
    return _divided(layers, shares), scores


def _total(layers: Layers, terms: Sequence[str]) -> str:
    """The sum of terms; those of one layer are added up in the next, for a query has room for so many columns."""
    by_depth: dict[int, list[str]] = {}
    for term in terms:
        by_depth.setdefault(layers.depth(term), []).append(term)
    *before, last = (by_depth[depth] for depth in sorted(by_depth))
    sofar: list[str] = []
    for some in before:
        sofar = [layers.let(added([*sofar, *some]))] if len(some) > 1 else [*sofar, *some]
    return added([*sofar, *last])


def _divided(layers: Layers, shares: Sequence[str]) -> list[str]:
    total = layers.let(added(shares))
    return [layers.let(f"{share} / {total}") for share in shares]


def most(layers: Layers, names: Sequence[str], least: bool = False) -> str:
    """The name of the largest of some numbers, or of the least."""
    of = layers.words.least if least else layers.words.most
    while len(names) > 1:
        names = [
            layers.let(of(*names[at : at + _MANY]) if len(names[at : at + _MANY]) > 1 else names[at])
            for at in range(0, len(names), _MANY)
        ]
    return names[0]


def _bent(layers: Layers, shares: Sequence[str], less: Sequence[str], curve: dict[str, Any]) -> list[str]:
    """Shares that are bent to what came true, and turned to other shares of the classes."""
    curves = [(numbers(a), numbers(b)) for a, b in zip(curve["stated"], curve["true"], strict=True)]
    if len(shares) == 2:
        true = _interpolated(layers, layers.let(f"{less[1]} - {less[0]}"), *curves[0])
        out = [_logistic(layers, layers.let(f"-{true}")), _logistic(layers, true)]
    else:
        odds = [_log_odds(layers, shares, c) for c in range(len(shares))]
        each = zip(odds, curves, strict=True)
        out = [_logistic(layers, _interpolated(layers, one, *own)) for one, own in each]
    turned = zip(out, numbers(curve.get("shift", [0.0] * len(out))), strict=True)
    return [layers.let(f"{one} * {number(math.exp(nats))}") if nats else one for one, nats in turned]


def _log_odds(layers: Layers, shares: Sequence[str], c: int) -> str:
    rest, log = layers.let(added([one for i, one in enumerate(shares) if i != c])), layers.words.log
    ends = f"WHEN {rest} <= 0e0 THEN {number(_FARTHEST)} WHEN {shares[c]} <= 0e0 THEN {number(-_FARTHEST)}"
    return layers.let(f"CASE {ends} ELSE {log}({shares[c]}) - {log}({rest}) END")


def _interpolated(layers: Layers, x: str, knots: Sequence[float], values: Sequence[float]) -> str:
    """The straight lines through knots, level beyond the ends."""
    code = layers.let(search(x, knots))
    table = layers.by_code(code, range(len(knots) + 1))
    a, b, c = (table.numbers(one.tolist()) for one in lines(knots, values))
    return layers.let(f"{a} + {b} * ({x} - {c})")


def _logistic(layers: Layers, x: str) -> str:
    """1 / (1 + exp(-x)), from the side on which the exponential is small."""
    size = layers.let(f"-ABS({x})")
    small = layers.let(guarded_exp(size))
    return layers.let(f"CASE WHEN {x} < 0e0 THEN {small} ELSE 1e0 END / (1e0 + {small})")


def decision(scoring: Scoring, p: Sequence[str], clear: Sequence[str], labels: Sequence[str]) -> str:
    """The label of a row: that of the most probable class, or what a policy says; NULL where it is left open."""
    layers, policy = scoring.layers, scoring.parameters.get("policy", {})
    given = _first(layers, clear, labels)
    if "costs" in policy:
        by_class = zip(*rows(numbers(policy["costs"]), scoring.k), strict=True)  # given
        costs = [layers.let(added([f"{number(x)} * {q}" for x, q in zip(own, p, strict=True)])) for own in by_class]
        given = _first(layers, costs, labels, least=True)
        if "referral" in policy:
            lowest = most(layers, costs, least=True)
            given = f"CASE WHEN {lowest} > {number(float(policy['referral']))} THEN NULL ELSE {given} END"
    elif "positive" in policy:
        given = _from_threshold(layers, p, clear, labels, policy["positive"], float(policy["log_odds"]))
    if "log_abstain" not in policy:
        return given
    enough = number(math.exp(float(policy["log_abstain"])))
    return f"CASE WHEN {most(layers, p)} < {enough} THEN NULL ELSE {given} END"


def _first(layers: Layers, names: Sequence[str], labels: Sequence[str], least: bool = False) -> str:
    """The label of the largest number, or the least; of several alike that of the first."""
    best = most(layers, names, least)
    cases = [f"WHEN {name} = {best} THEN {label}" for name, label in zip(names, labels, strict=True)]
    return f"CASE {' '.join(cases)} END"


def _from_threshold(
    layers: Layers, p: Sequence[str], clear: Sequence[str], labels: Sequence[str], c: int, log_odds: float
) -> str:
    """A class from some odds on, elsewhere the most probable of the others."""
    others = [i for i in range(len(p)) if i != c]
    rest = layers.let(added([p[i] for i in others]))
    odds = number(math.exp(min(log_odds, _FARTHEST)))
    taken = f"{p[c]} >= {odds} * {rest}" if log_odds < _FARTHEST else f"{rest} <= 0e0"
    other = _first(layers, [clear[i] for i in others], [labels[i] for i in others])
    return f"CASE WHEN {taken} THEN {labels[c]} ELSE {other} END"
