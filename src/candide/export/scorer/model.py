"""The scorer of an exported model; it needs only the standard library.

``load(parameters)`` gives a model, and ``model.score(row)`` the contribution of each term to each class and the
probabilities, as Candide computes them. A row is a dictionary of values by column; None, NaN and "" are missing.

>>> number = {"format": 2, "classes": ["low", "top"], "log_prior": [-0.7, -0.7], "scores": [],
...     "columns": [{"name": "x", "kind": "number"}], "reads": [{"column": 0, "read": "number"}],
...     "parts": [{"reads": [0], "features": 1, "terms": [{"columns": [0]}], "loc": [1, 3],
...         "score": [["subtract", "x", "loc"], ["square", "#0", 1], ["multiply", "#1", -0.5]]}]}
>>> found = load(number).score({"x": "2.5"})
>>> found["label"], [round(p, 3) for p in found["probabilities"]], found["terms"][0]["contributions"]
('top', [0.269, 0.731], [-1.125, -0.125])
"""

import csv
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from candide.export.scorer.numbers import decode_numbers, interpolate, log_normalize, log_sum_exp, split_rows
from candide.export.scorer.operations import compile_score
from candide.export.scorer.reads import READERS, prototype_similarity
from candide.export.scorer.values import NUMBER, LevelLookup

FORMAT = 2
Row = dict[Any, Any]
Contributions = list[list[float]]  # (feature, class)


def make_decision_rule(policy: dict[str, Any], k: int) -> Callable[[list[float]], int]:
    """A function from log-probabilities to the index of a class, -1 where the model abstains."""
    costs, positive = split_rows(decode_numbers(policy.get("costs", [])), k), policy.get("positive")
    referral, least = float(policy.get("referral", math.inf)), float(policy.get("log_abstain", -math.inf))

    def given(logs: list[float]) -> int:
        if costs:
            shares = [math.exp(one) for one in logs]
            expected = [sum(p * cost for p, cost in zip(shares, own, strict=True)) for own in zip(*costs, strict=True)]
            return -1 if min(expected) > referral else expected.index(min(expected))
        if positive is None:
            return logs.index(max(logs))
        rest = [-math.inf if c == positive else one for c, one in enumerate(logs)]
        taken = logs[positive] - log_sum_exp(rest) >= float(policy["log_odds"])
        return positive if taken else rest.index(max(rest))

    return lambda logs: -1 if max(logs) < least else given(logs)


class ExportedTerm:
    """A term of one or several columns: ``contributions(row)`` has a number for each class."""

    def __init__(
        self,
        name: str,
        columns: list[str],
        part: int,
        contributions: Callable[[Row], Contributions],
        feature: int | None,
    ):
        self.name, self.columns, self.part = name, columns, part
        self._contributions, self._feature = contributions, feature  # None: all features of the part together

    def contributions(self, row: Row) -> list[float]:
        return self.select_contributions(self._contributions(row))

    def select_contributions(self, part_contributions: Contributions) -> list[float]:
        """Its own contributions among those of its part."""
        return (
            [sum(own) for own in zip(*part_contributions, strict=True)]
            if self._feature is None
            else part_contributions[self._feature]
        )


class ExportedModel:
    """The columns, classes and terms of an exported model; ``score(row)`` scores a row."""

    def __init__(self, parameters: dict[str, Any]):
        if parameters["format"] != FORMAT:
            raise ValueError(f"parameters of format {parameters['format']}, not {FORMAT}")
        self.classes, self.columns = parameters["classes"], parameters["columns"]
        self.log_prior = decode_numbers(parameters["log_prior"])
        self._na = set(parameters.get("na", ()))
        self._missing_numbers = {float(text) for text in self._na if NUMBER.fullmatch(text)}
        known = [{**column, "known": LevelLookup(column.get("levels", []))} for column in self.columns]
        scores = [decode_numbers(one) for one in parameters["scores"]]
        each = [(read, known[read["column"]]) for read in parameters["reads"]]
        reads = [(column["name"], READERS[read["read"]](read, column, scores)) for read, column in each]
        self._parts = [self._part(part, reads) for part in parameters["parts"]]
        curve = parameters.get("calibrator", {"stated": [], "true": []})
        self._calibrator = [
            (decode_numbers(a), decode_numbers(b)) for a, b in zip(curve["stated"], curve["true"], strict=True)
        ]
        self._prior_shift = decode_numbers(curve.get("shift", []))
        self._decide = make_decision_rule(parameters["policy"], len(self.classes)) if "policy" in parameters else None
        self.terms = [voice for i, part in enumerate(parameters["parts"]) for voice in self._build_terms(part, i)]

    def _part(self, part: dict[str, Any], reads: list[Any]) -> Callable[[Row], Contributions]:
        """The weighted contributions of a part."""
        own, rule = [reads[i] for i in part["reads"]], compile_score(part, len(self.classes))
        like = prototype_similarity(part["prototypes"]) if "prototypes" in part else list
        weight = decode_numbers(part.get("weight", []))

        def terms(row: Row) -> Contributions:
            said = rule(like([one for name, read in own for one in read(self._value(row, name))]))
            if not weight:
                return said
            return [[w * t if w else 0.0 for t in own] for w, own in zip(weight, said, strict=True)]

        return terms

    def _build_terms(self, part: dict[str, Any], i: int) -> Iterator[ExportedTerm]:
        for j, voice in enumerate(part["terms"]):
            columns = [str(self.columns[at]["name"]) for at in voice["columns"]]
            whole = len(part["terms"]) == 1  # a joint distribution may have several features
            yield ExportedTerm(voice.get("name", " x ".join(columns)), columns, i, self._parts[i], None if whole else j)

    def _value(self, row: Row, name: Any) -> Any:
        value = row.get(name, row.get(str(name)))  # columns of an array have numbers for names
        if not self._na:
            return value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number and not isinstance(value, str):
            return value
        return None if value in (self._missing_numbers if number else self._na) else value

    def score(self, row: Row) -> dict[str, Any]:
        """The log prior, the contributions of every term, the scores, the probabilities and the label.

        The label is None where the model abstains.
        """
        terms, scores = [part(row) for part in self._parts], list(self.log_prior)
        each = [(voice, voice.select_contributions(terms[voice.part])) for voice in self.terms]
        for _, said in each:
            scores = [a + b for a, b in zip(scores, said, strict=True)]
        impossible = max(scores) == -math.inf  # under every class
        logs = list(self.log_prior) if impossible else log_normalize(scores)
        logs = self._calibrate(logs) if self._calibrator else logs
        clear = logs if self._calibrator or impossible else scores
        given = clear.index(max(clear)) if self._decide is None else self._decide(logs)
        return {
            "log_prior": list(self.log_prior),
            "terms": [{"name": one.name, "columns": one.columns, "contributions": said} for one, said in each],
            "scores": scores,
            "probabilities": [math.exp(one) for one in logs],
            "label": None if given < 0 else self.classes[given],
        }

    def _calibrate(self, logs: list[float]) -> list[float]:
        """Calibrated log-probabilities."""
        if len(logs) == 2:
            true = interpolate(logs[1] - logs[0], *self._calibrator[0])
            joint = [-log_sum_exp([0.0, true]), -log_sum_exp([0.0, -true])]
        else:
            each = zip(logs, self._calibrator, strict=True)
            joint = [-log_sum_exp([0.0, -interpolate(log_odds(one), *own)]) for one, own in each]
        if self._prior_shift:
            joint = [one + other for one, other in zip(joint, self._prior_shift, strict=True)]
        elif len(logs) == 2:
            return joint
        return log_normalize(joint)


def log_odds(log: float) -> float:
    rest = -math.expm1(min(log, 0.0))
    return 700.0 if rest == 0 else min(max(log - math.log(rest), -700.0), 700.0)


def load(parameters: dict[str, Any]) -> ExportedModel:
    """A model from the parameters that Candide exported."""
    return ExportedModel(parameters)


def score_csv(model: ExportedModel, lines: Iterable[str]) -> Iterator[list[Any]]:
    """The scores of a CSV file: a header, then the prediction and the probabilities of every row."""
    rows = csv.DictReader(lines)
    wanted = [str(column["name"]) for column in model.columns]
    names = list(rows.fieldnames or ())
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise ValueError(f"the column {twice[0]!r} is there twice; rename one of them in the header")
    absent = [name for name in wanted if name not in names]
    if absent and len(absent) == len(wanted):
        raise ValueError(f"none of the columns {', '.join(wanted)}; pass a CSV file with a header, and with commas")
    if absent:
        print(f"missing in every row: {', '.join(absent)}", file=sys.stderr)
    yield ["prediction", *(f"p_{label}" for label in model.classes)]
    for row in rows:
        try:
            found = model.score(dict(row))
        except ValueError as error:
            raise ValueError(f"line {rows.line_num}: {error}") from None
        yield [found["label"], *found["probabilities"]]


def main(model: ExportedModel, arguments: list[str]) -> str | None:
    """Score the CSV file named in the arguments of a program; return an error message of one line."""
    if len(arguments) != 2:
        return f"usage: python {arguments[0]} ROWS.csv > SCORED.csv"
    try:
        with open(arguments[1], newline="", encoding="utf-8-sig") as lines:
            csv.writer(sys.stdout).writerows(score_csv(model, lines))
    except (OSError, ValueError, csv.Error) as error:
        return f"{arguments[1]}: {error.strerror if isinstance(error, OSError) else error}"
    return None
