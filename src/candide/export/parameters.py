"""Parameters: all numbers of a model as plain data, from which a scorer elsewhere gives the same probabilities.

Distributions and encodings describe themselves (``to_export_dict``); here they are put together, with names, levels and
encodings once each. Numbers are those of the model to the last bit; infinities and NaN are strings, as JSON has none.
:func:`pack_json` writes a long list of numbers as the base64 of its doubles where that is shorter: a double takes
eleven characters, its decimals up to twenty. The text is ASCII without ``<``, ``>`` or ``&``, so it can be embedded in
a script of a web page.

>>> from candide.demo import garden
>>> found = export_parameters(FittedModel(garden()))
>>> list(found), found["classes"]
(['format', 'classes', 'log_prior', 'columns', 'scores', 'reads', 'parts'], ['lavender', 'sage', 'thyme'])
>>> found["columns"][3]
{'name': 'soil', 'kind': 'level', 'levels': ['chalk', 'clay', 'sand']}
>>> [(part["score"][-1], part["reads"]) for part in found["parts"]][2]
(['lookup'], [3, 4])
"""

import base64
import datetime as dt
import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from candide.data.table import Name
from candide.data.value_identity import to_timestamp
from candide.errors import InputError
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart

_MIN_PACKED_LENGTH = 8  # shorter lists of numbers stay readable
_UNPACKED_KEYS = ("classes", "levels")  # lists of values, whose numbers stay as they are written
_MAX_EXACT_INTEGER = 1 << 53  # up to here an integer is exact as a double
_NON_FINITE_NAMES = {"NaN", "Infinity", "-Infinity"}

FORMAT = 2  # of the parameters: a scorer refuses another
_SAMPLE_ROWS, _TAIL_SHARE = 1000, 0.01  # sampled rows for the range of a number, and the proportion left out of it
_EPOCH = dt.datetime(1970, 1, 1)


def export_parameters(fitted: FittedModel) -> dict[str, Any]:
    """The numbers of a model as lists, numbers, strings and dictionaries that JSON can hold.

    Raise an InputError that names the columns whose distribution has no score expression.
    """
    builder = _ParameterBuilder(fitted)
    each = zip(fitted.plan.parts, fitted.model.distributions, strict=True)
    parts = [builder.part(part, distribution) for part, distribution in each]
    found = {
        "format": FORMAT,
        "classes": [_label(value) for value in fitted.labels.values],
        "log_prior": fitted.model.log_prior,
        "columns": builder.columns(),
        "scores": builder.scores,
        "reads": builder.reads,
        "parts": parts,
    }
    if (curve := fitted.model.calibrator) is not None:
        found["calibrator"] = curve.to_export_dict()
    if (rule := fitted.decision_rule) is not None:
        found["policy"] = rule.to_export_dict()
    if fitted.na:
        found["na"] = fitted.na
    return _to_plain(found)


class _ParameterBuilder:
    """The encodings of all columns, each once, and the levels and ranges of the columns."""

    def __init__(self, fitted: FittedModel):
        self.fitted = fitted
        self.column_index = {name: i for i, name in enumerate(fitted.plan.columns)}
        self.reads: list[dict[str, Any]] = []
        self._read_index: dict[Any, int] = {}
        self._levels: dict[Name, dict[Any, int]] = {}
        self._kinds: dict[Name, str] = {}
        self._scores: dict[tuple[float, ...], int] = {}
        self._ranges: dict[Name, tuple[float, float]] = {}

    def part(self, part: PlanPart, distribution: Any) -> dict[str, Any]:
        """One distribution, how its columns are read, and the names of its terms."""
        try:
            rule = distribution.to_export_dict()
            bins = rule.pop("bins", None)
            encodings: Sequence[Any] = part.encodings
            if bins is not None:
                encodings = [one.coarsen(some) for one, some in zip(encodings, bins, strict=True)]
            reads = [self._add_read(name, encoding) for name, encoding in zip(part.columns, encodings, strict=True)]
            prototypes = {} if part.prototypes is None else {"prototypes": part.prototypes.to_export_dict()}
        except InputError as error:
            what = f"cannot be exported: {error.problem}"
            column = part.columns[0] if len(part.columns) == 1 else part.columns
            raise InputError(what, column=column, value=part.event.name, remedy=error.remedy or "") from None
        self._add_ranges(part, distribution)
        return {"reads": reads, **prototypes, "terms": self._terms(part), "features": distribution.n_features, **rule}

    def _terms(self, part: PlanPart) -> list[dict[str, Any]]:
        """The columns of each term, and its title where that is not their names."""
        whole = part.event.is_joint and not part.is_joint_term  # one distribution of all its columns
        units = [part.columns] if whole else part.event.term_names(part.columns)
        titles = (
            part.event.term_titles(part.columns, part.encodings)
            if part.is_joint_term
            else map(_interaction_name, units)
        )
        each = zip(units, titles, strict=True)
        named = [(unit, {"name": title} if title != _interaction_name(unit) else {}) for unit, title in each]
        return [{"columns": [self.column_index[name] for name in unit], **title} for unit, title in named]

    def _add_read(self, name: Name, encoding: Any) -> int:
        """The index of the way in which a column is read."""
        kind = encoding.value_kind
        self._kinds[name] = self._kinds.get(name, kind) if encoding.is_read_as_text else kind
        if (name, encoding) not in self._read_index:
            self._read_index[name, encoding] = len(self.reads)
            self.reads.append(
                {"column": self.column_index[name], **self._share_levels_and_scores(name, encoding.to_export_dict())}
            )
        return self._read_index[name, encoding]

    def _share_levels_and_scores(self, name: Name, read: dict[str, Any]) -> dict[str, Any]:
        """A way to read, with its levels by their indices among those of the column, and shared scores."""
        if "scores" in read:
            self._scores.setdefault(read["scores"], len(self._scores))
            return {**read, "scores": self._scores[read["scores"]]}
        if "levels" not in read:
            return read
        known = self._levels.setdefault(name, {})
        at = [known.setdefault((isinstance(level, bool), level), len(known)) for level in read["levels"]]
        return {**read, "levels": at}

    @property
    def scores(self) -> list[tuple[float, ...]]:
        """Normal scores of ranks: the same for many columns without repeated values."""
        return list(self._scores)

    def _add_ranges(self, part: PlanPart, distribution: Any) -> None:
        """The approximate range of each column, for interfaces that let people enter values."""
        drawn: Any = None
        for j, (name, encoding) in enumerate(zip(part.columns, part.encodings, strict=True)):
            if encoding.is_read_as_text:
                continue
            ends = encoding.value_range()
            if ends is None and name not in self._ranges:
                drawn = _draw_rows(distribution) if drawn is None else drawn
                ends = _rounded_range(encoding.decode(drawn[:, j])) if len(drawn) else None
            if ends is not None:
                low, high = self._ranges.get(name, ends)
                self._ranges[name] = min(low, ends[0]), max(high, ends[1])

    def columns(self) -> list[dict[str, Any]]:
        """Name and kind of each column, its levels or the range of its numbers, and how its text is to be read."""
        out = []
        for name in self.fitted.plan.columns:
            levels = [level for _, level in self._levels.get(name, {})]
            about: dict[str, Any] = {"name": name, "kind": self._kind(name, levels)}
            if levels:
                about["levels"] = [_level(level) for level in levels]
            if name in self._ranges:
                about["range"] = self._ranges[name]
            if (how := self.fitted.text_formats.get(str(name))) is not None:
                about["text_formats"] = how.to_export_dict()
            out.append(about)
        return out

    def _kind(self, name: Name, levels: Sequence[Any]) -> str:
        if name in self.fitted.dates:
            return "date"
        if name in self.fitted.times and not levels:
            return "time"
        return "boolean" if levels and all(isinstance(level, bool) for level in levels) else self._kinds[name]


def _draw_rows(distribution: Any) -> Any:
    """Sampled rows of a distribution; none where it cannot sample."""
    try:
        return distribution.sample_block(np.arange(_SAMPLE_ROWS) % distribution.n_classes, np.random.default_rng(0))
    except InputError:
        return np.empty((0, distribution.n_features))


def _rounded_range(drawn: Any) -> tuple[float, float]:
    """The range of some numbers without their tails, in a few digits."""
    low, high = np.quantile(drawn, [_TAIL_SHARE / 2, 1 - _TAIL_SHARE / 2]).tolist()
    return float(f"{low:.4g}"), float(f"{high:.4g}")


def _interaction_name(names: Sequence[Name]) -> str:
    return " x ".join(map(str, names))


def _level(value: Any) -> Any:
    """A level: plain values as they are; dates, times and durations with their text, type and value."""
    if isinstance(value, str | int | float):
        return value
    means = to_timestamp(value)
    since = means - _EPOCH if isinstance(means, dt.datetime) else means
    kind = "moment" if isinstance(means, dt.datetime) else "duration"
    days = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    return {"text": str(value), "type": "day" if days else kind, "value": since // dt.timedelta(microseconds=1)}


def _label(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else str(value)


def _to_plain(value: Any) -> Any:
    """Arrays as flat lists, and names for infinities and NaN."""
    if isinstance(value, Mapping):
        return {key: _to_plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return [_to_plain(one) for one in value.ravel().tolist()]
    if isinstance(value, list | tuple):
        return [_to_plain(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, np.generic):
        return _to_plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def pack_json(parameters: Any) -> str:
    """Parameters as text: compact, and safe within a script of a page."""
    text = json.dumps(_pack(parameters), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _pack(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: [_pack(each) for each in one] if key in _UNPACKED_KEYS else _pack(one) for key, one in value.items()
        }
    if isinstance(value, list):
        plain = [_pack(one) for one in value]
        return _shorter_encoding(value, plain) if any(isinstance(one, float) for one in value) else plain
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT_INTEGER and str(value) != "-0.0":
        return int(value)
    return value


def _shorter_encoding(values: list[Any], plain: list[Any]) -> Any:
    """A list of numbers, or names of infinities and NaN, in the shorter of both formats."""
    if len(values) < _MIN_PACKED_LENGTH or not all(
        isinstance(one, float | int) or one in _NON_FINITE_NAMES for one in values
    ):
        return plain
    doubles = struct.pack(f"<{len(values)}d", *map(float, values))
    packed = base64.b64encode(doubles).decode()
    return packed if len(packed) < len(json.dumps(plain, separators=(",", ":"))) else plain
