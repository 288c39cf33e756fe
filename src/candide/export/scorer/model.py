"""The scorer of an exported model, of the standard library alone.

``load(parameters)`` gives a model, and ``model.score(row)`` what each voice adds to each class, in nats, and the
probabilities, as Candide has them. A row is a dictionary of values by column; None, NaN and "" are missing.

>>> number = {"format": 2, "classes": ["low", "top"], "log_prior": [-0.7, -0.7], "scores": [],
...     "columns": [{"name": "x", "kind": "number"}], "reads": [{"column": 0, "read": "number"}],
...     "parts": [{"reads": [0], "features": 1, "voices": [{"columns": [0]}], "rule": "normal",
...         "loc": [1, 3], "inverse": [1, 1], "constant": [0, 0]}]}
>>> found = load(number).score({"x": "2.5"})
>>> found["label"], [round(p, 3) for p in found["probabilities"]], found["voices"][0]["contributions"]
('top', [0.269, 0.731], [-1.125, -0.125])
"""

import csv
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from candide.export.scorer.numbers import interpolate, log_sum_exp, normalised, numbers
from candide.export.scorer.policy import decision
from candide.export.scorer.reads import READS, likeness
from candide.export.scorer.rules import RULES
from candide.export.scorer.values import NUMBER, Levels

FORMAT = 2
Row = dict[Any, Any]
Terms = list[list[float]]  # (feature, class)


class Voice:
    """What some columns say together, or one alone: ``say(row)`` gives nats, one a class."""

    def __init__(self, name: str, columns: list[str], part: int, terms: Callable[[Row], Terms], feature: int | None):
        self.name, self.columns, self.part = name, columns, part
        self._terms, self._feature = terms, feature  # None: all features of the part together

    def say(self, row: Row) -> list[float]:
        return self.of(self._terms(row))

    def of(self, terms: Terms) -> list[float]:
        """Its own of the terms of its part."""
        return [sum(own) for own in zip(*terms, strict=True)] if self._feature is None else terms[self._feature]


class Model:
    """Columns, classes and voices of an exported model; ``score(row)`` says all of a row."""

    def __init__(self, parameters: dict[str, Any]):
        if parameters["format"] != FORMAT:
            raise ValueError(f"parameters of format {parameters['format']}, not {FORMAT}")
        self.classes, self.columns = parameters["classes"], parameters["columns"]
        self.log_prior = numbers(parameters["log_prior"])
        self._na = set(parameters.get("na", ()))
        self._never = {float(text) for text in self._na if NUMBER.fullmatch(text)}
        known = [{**column, "known": Levels(column.get("levels", []))} for column in self.columns]
        scores, of = [numbers(one) for one in parameters["scores"]], [known[r["column"]] for r in parameters["reads"]]
        each = zip(parameters["reads"], of, strict=True)
        reads = [(column["name"], READS[read["read"]](read, column, scores)) for read, column in each]
        self._parts = [self._part(part, reads) for part in parameters["parts"]]
        curve = parameters.get("curve", {"stated": [], "true": []})
        self._curve = [(numbers(a), numbers(b)) for a, b in zip(curve["stated"], curve["true"], strict=True)]
        self._shift = numbers(curve.get("shift", []))
        self._decide = decision(parameters["policy"], len(self.classes)) if "policy" in parameters else None
        self.voices = [voice for i, part in enumerate(parameters["parts"]) for voice in self._voices(part, i)]

    def _part(self, part: dict[str, Any], reads: list[Any]) -> Callable[[Row], Terms]:
        """What a part says of a row, weighted."""
        own, rule = [reads[i] for i in part["reads"]], RULES[part["rule"]](part, len(self.classes))
        like = likeness(part["together"]) if "together" in part else list
        weight = numbers(part.get("weight", []))

        def terms(row: Row) -> Terms:
            said = rule(like([one for name, read in own for one in read(self._value(row, name))]))
            if not weight:
                return said
            return [[w * t if w else 0.0 for t in own] for w, own in zip(weight, said, strict=True)]

        return terms

    def _voices(self, part: dict[str, Any], i: int) -> Iterator[Voice]:
        for j, voice in enumerate(part["voices"]):
            columns = [str(self.columns[at]["name"]) for at in voice["columns"]]
            whole = len(part["voices"]) == 1  # a law of all its columns may have several features
            yield Voice(voice.get("name", " x ".join(columns)), columns, i, self._parts[i], None if whole else j)

    def _value(self, row: Row, name: Any) -> Any:
        value = row.get(name, row.get(str(name)))  # columns of an array are known by their numbers
        if not self._na:
            return value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number and not isinstance(value, str):
            return value
        return None if value in (self._never if number else self._na) else value

    def score(self, row: Row) -> dict[str, Any]:
        """The log prior, what every voice adds to each class, the scores, the probabilities and the label.

        The label is None where the policy of the model leaves the row to a person.
        """
        terms, scores = [part(row) for part in self._parts], list(self.log_prior)
        each = [(voice, voice.of(terms[voice.part])) for voice in self.voices]
        for _, said in each:
            scores = [a + b for a, b in zip(scores, said, strict=True)]
        impossible = max(scores) == -math.inf  # under every class
        logs = list(self.log_prior) if impossible else normalised(scores)
        logs = self._bent(logs) if self._curve else logs
        clear = logs if self._curve or impossible else scores
        given = clear.index(max(clear)) if self._decide is None else self._decide(logs)
        return {
            "log_prior": list(self.log_prior),
            "voices": [{"name": one.name, "columns": one.columns, "contributions": said} for one, said in each],
            "scores": scores,
            "probabilities": [math.exp(one) for one in logs],
            "label": None if given < 0 else self.classes[given],
        }

    def _bent(self, logs: list[float]) -> list[float]:
        """Log-probabilities bent to what came true."""
        if len(logs) == 2:
            true = interpolate(logs[1] - logs[0], *self._curve[0])
            joint = [-log_sum_exp([0.0, true]), -log_sum_exp([0.0, -true])]
        else:
            each = zip(logs, self._curve, strict=True)
            joint = [-log_sum_exp([0.0, -interpolate(log_odds(one), *own)]) for one, own in each]
        if self._shift:
            joint = [one + other for one, other in zip(joint, self._shift, strict=True)]
        elif len(logs) == 2:
            return joint
        return normalised(joint)


def log_odds(log: float) -> float:
    rest = -math.expm1(min(log, 0.0))
    return 700.0 if rest == 0 else min(max(log - math.log(rest), -700.0), 700.0)


def load(parameters: dict[str, Any]) -> Model:
    """A model from the parameters that Candide exported."""
    return Model(parameters)


def scored(model: Model, lines: Iterable[str]) -> Iterator[list[Any]]:
    """A CSV file scored: a header and the prediction and the probabilities of every row."""
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


def main(model: Model, arguments: list[str]) -> str | None:
    """Score a CSV file that is named in the arguments of a program; what went wrong, in one line."""
    if len(arguments) != 2:
        return f"usage: python {arguments[0]} ROWS.csv > SCORED.csv"
    try:
        with open(arguments[1], newline="", encoding="utf-8-sig") as lines:
            csv.writer(sys.stdout).writerows(scored(model, lines))
    except (OSError, ValueError, csv.Error) as error:
        return f"{arguments[1]}: {error.strerror if isinstance(error, OSError) else error}"
    return None
