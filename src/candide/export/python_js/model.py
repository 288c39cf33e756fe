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

from candide.data.text_formats import NUMBER
from candide.export.python_js.numbers import decode_numbers, interpolate, log_normalize, log_sum_exp, split_rows
from candide.export.python_js.operations import compile_score
from candide.export.python_js.reads import READERS, prototype_similarity
from candide.export.python_js.values import LevelLookup

FORMAT = 2
Row = dict[Any, Any]
Contributions = list[list[float]]  # (feature, class)


def make_decision_rule(policy: dict[str, Any], k: int) -> Callable[[list[float]], int]:
    """A function from log-probabilities to the index of a class, -1 where the model abstains."""
    costs, positive = split_rows(decode_numbers(policy.get("costs", [])), k), policy.get("positive")
    abstain_cost, least = float(policy.get("abstain_cost", math.inf)), float(policy.get("log_abstain", -math.inf))

    def decide(logs: list[float]) -> int:
        if costs:
            p = [math.exp(log) for log in logs]
            expected = [
                sum(a * cost for a, cost in zip(p, by_truth, strict=True)) for by_truth in zip(*costs, strict=True)
            ]
            return -1 if min(expected) > abstain_cost else expected.index(min(expected))
        if positive is None:
            return logs.index(max(logs))
        rest = [-math.inf if c == positive else log for c, log in enumerate(logs)]
        is_positive = logs[positive] - log_sum_exp(rest) >= float(policy["log_odds"])
        return positive if is_positive else rest.index(max(rest))

    return lambda logs: -1 if max(logs) < least else decide(logs)


class ExportedTerm:
    """A term of one or several columns: ``contributions(row)`` has a number for each class."""

    def __init__(
        self, name: str, columns: list[str], part: int, score: Callable[[Row], Contributions], feature: int | None
    ):
        self.name, self.columns, self.part = name, columns, part
        self._score, self._feature = score, feature  # None: all features of the part together

    def contributions(self, row: Row) -> list[float]:
        return self.select_contributions(self._score(row))

    def select_contributions(self, of_part: Contributions) -> list[float]:
        """The contributions of the term among those of its part."""
        return of_part[self._feature] if self._feature is not None else [sum(c) for c in zip(*of_part, strict=True)]


class ExportedModel:
    """The columns, classes and terms of an exported model; ``score(row)`` scores a row."""

    def __init__(self, parameters: dict[str, Any]):
        if parameters["format"] != FORMAT:
            raise ValueError(f"parameters of format {parameters['format']}, not {FORMAT}")
        self.classes, self.columns = parameters["classes"], parameters["columns"]
        self.log_prior = decode_numbers(parameters["log_prior"])
        self._na = set(parameters.get("na", ()))
        self._missing_numbers = {float(text) for text in self._na if NUMBER.fullmatch(text)}
        columns = [{**column, "known": LevelLookup(column.get("levels", []))} for column in self.columns]
        scores = [decode_numbers(values) for values in parameters["scores"]]
        pairs = [(read, columns[read["column"]]) for read in parameters["reads"]]
        reads = [(column["name"], READERS[read["read"]](read, column, scores)) for read, column in pairs]
        self._parts = [self._compile_part(part, reads) for part in parameters["parts"]]
        curves = parameters.get("calibrator", {"stated": [], "true": []})
        stated, true = (list(map(decode_numbers, curves[name])) for name in ("stated", "true"))
        self._calibrator = list(zip(stated, true, strict=True))
        self._prior_shift = decode_numbers(curves.get("shift", []))
        self._decide = make_decision_rule(parameters["policy"], len(self.classes)) if "policy" in parameters else None
        self.terms = [term for i, part in enumerate(parameters["parts"]) for term in self._build_terms(part, i)]

    def _compile_part(self, part: dict[str, Any], reads: list[Any]) -> Callable[[Row], Contributions]:
        """The weighted contributions of a part."""
        part_reads, score = [reads[i] for i in part["reads"]], compile_score(part, len(self.classes))
        prepare = prototype_similarity(part["prototypes"]) if "prototypes" in part else list
        weight = decode_numbers(part.get("weight", []))

        def contributions(row: Row) -> Contributions:
            out = score(prepare([x for name, read in part_reads for x in read(self._value(row, name))]))
            if not weight:
                return out
            return [[w * value if w else 0.0 for value in values] for w, values in zip(weight, out, strict=True)]

        return contributions

    def _build_terms(self, part: dict[str, Any], i: int) -> Iterator[ExportedTerm]:
        for j, term in enumerate(part["terms"]):
            columns = [str(self.columns[at]["name"]) for at in term["columns"]]
            feature = j if len(part["terms"]) > 1 else None  # a joint distribution may have several features
            yield ExportedTerm(term.get("name", " x ".join(columns)), columns, i, self._parts[i], feature)

    def _value(self, row: Row, name: Any) -> Any:
        value = row.get(name, row.get(str(name)))  # columns of an array have numbers for names
        if isinstance(value, str):
            return None if value in self._na else value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if is_number and value in self._missing_numbers else value

    def score(self, row: Row) -> dict[str, Any]:
        """The log prior, the contributions of every term, the scores, the probabilities and the label.

        The label is None where the model abstains.
        """
        parts, scores = [part(row) for part in self._parts], list(self.log_prior)
        terms: list[dict[str, Any]] = [
            {"name": term.name, "columns": term.columns, "contributions": term.select_contributions(parts[term.part])}
            for term in self.terms
        ]
        for term in terms:
            scores = [a + b for a, b in zip(scores, term["contributions"], strict=True)]
        impossible = max(scores) == -math.inf  # under every class
        logs = list(self.log_prior) if impossible else log_normalize(scores)
        logs = self._calibrate(logs) if self._calibrator else logs
        best = logs if self._calibrator or impossible else scores
        label = best.index(max(best)) if self._decide is None else self._decide(logs)
        return {
            "log_prior": list(self.log_prior),
            "terms": terms,
            "scores": scores,
            "probabilities": [math.exp(log) for log in logs],
            "label": None if label < 0 else self.classes[label],
        }

    def _calibrate(self, logs: list[float]) -> list[float]:
        if len(logs) == 2:
            true = interpolate(logs[1] - logs[0], *self._calibrator[0])
            joint = [-log_sum_exp([0.0, true]), -log_sum_exp([0.0, -true])]
        else:
            pairs = zip(logs, self._calibrator, strict=True)
            joint = [-log_sum_exp([0.0, -interpolate(log_odds(log), *curve)]) for log, curve in pairs]
        if self._prior_shift:
            joint = [log + shift for log, shift in zip(joint, self._prior_shift, strict=True)]
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
    columns, header = [str(column["name"]) for column in model.columns], list(rows.fieldnames or ())
    for name in columns:
        if header.count(name) > 1:
            raise ValueError(f"the column {name!r} is there twice; rename one of them in the header")
    absent = [name for name in columns if name not in header]
    if absent and len(absent) == len(columns):
        raise ValueError(f"none of the columns {', '.join(columns)}; pass a CSV file with a header, and with commas")
    if absent:
        print(f"missing in every row: {', '.join(absent)}", file=sys.stderr)
    yield ["prediction", *(f"p_{label}" for label in model.classes)]
    for row in rows:
        try:
            scored = model.score(dict(row))
        except ValueError as error:
            raise ValueError(f"line {rows.line_num}: {error}") from None
        yield [scored["label"], *scored["probabilities"]]


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
