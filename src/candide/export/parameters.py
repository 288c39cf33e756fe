"""All numbers of a model as plain data, from which a scorer elsewhere gives the same probabilities.

Distributions and encodings describe themselves (``to_export_dict``); names, levels and encodings are shared. Numbers
are those of the model to the last bit; infinities and NaN are strings, as JSON has none. :func:`pack_json` writes a
long list of numbers as the base64 of its doubles where that is shorter, in ASCII without ``<``, ``>`` or ``&``, so that
it can be embedded in a script of a web page.
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
from candide.data.text_formats import to_timestamp
from candide.errors import InputError
from candide.export.python_js.values import EPOCH
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart

_MIN_PACKED_LENGTH = 8  # shorter lists of numbers stay readable
_UNPACKED_KEYS = ("classes", "levels")  # lists of values, whose numbers stay as they are written
MAX_EXACT_INTEGER = 1 << 53  # up to here an integer is exact as a double
_NON_FINITE_NAMES = {"NaN", "Infinity", "-Infinity"}

EXPORT_MARKER = "A model exported by Candide. Made by a program: export it again instead of changing it."
FORMAT = 2  # of the parameters: a scorer refuses another
_SAMPLE_ROWS, _TAIL = 1000, 0.01  # sampled rows for the range of a number, and the proportion left out of it


def export_parameters(fitted: FittedModel) -> dict[str, Any]:
    """The numbers of a model as lists, numbers, strings and dictionaries that JSON can hold.

    Raise an InputError that names the columns whose distribution has no score expression.
    """
    builder = _ParameterBuilder(fitted)
    pairs = zip(fitted.plan.parts, fitted.model.distributions, strict=True)
    parts = [builder.part(part, distribution) for part, distribution in pairs]
    out = {
        "format": FORMAT,
        "classes": [label if isinstance(label, str | int | float) else str(label) for label in fitted.labels.values],
        "log_prior": fitted.model.log_prior,
        "columns": builder.columns(),
        "scores": list(builder.scores),
        "reads": builder.reads,
        "parts": parts,
    }
    if (calibrator := fitted.model.calibrator) is not None:
        out["calibrator"] = calibrator.to_export_dict()
    if (rule := fitted.decision_rule) is not None:
        out["policy"] = rule.to_export_dict()
    if fitted.na:
        out["na"] = fitted.na
    return _to_plain(out)


class _ParameterBuilder:
    """The encodings of all columns, each once, and the levels and ranges of the columns."""

    def __init__(self, fitted: FittedModel):
        self.fitted = fitted
        self.column_index = {name: i for i, name in enumerate(fitted.plan.columns)}
        self.reads: list[dict[str, Any]] = []
        self._read_index: dict[Any, int] = {}
        self._levels: dict[Name, dict[Any, int]] = {}
        self._kinds: dict[Name, str] = {}
        self.scores: dict[tuple[float, ...], int] = {}  # normal scores, shared by columns without repeated values
        self._ranges: dict[Name, tuple[float, float]] = {}

    def part(self, part: PlanPart, distribution: Any) -> dict[str, Any]:
        """One distribution, how its columns are read, and its terms by their columns, with titles of their own."""
        try:
            rule = distribution.to_export_dict()
            bins = rule.pop("bins", None)
            encodings: Sequence[Any] = part.encodings
            if bins is not None:
                encodings = [encoding.coarsen(groups) for encoding, groups in zip(encodings, bins, strict=True)]
            reads = [self._add_read(name, encoding) for name, encoding in zip(part.columns, encodings, strict=True)]
            prototypes = {} if part.prototypes is None else {"prototypes": part.prototypes.to_export_dict()}
        except InputError as error:
            what = f"cannot be exported: {error.problem}"
            column = part.columns[0] if len(part.columns) == 1 else part.columns
            raise InputError(what, column=column, value=part.event.name, remedy=error.remedy or "") from None
        self._add_ranges(part, distribution)
        whole = part.event.is_joint and not part.is_joint_term  # one distribution of all its columns
        terms = [part.columns] if whole else part.event.term_names(part.columns)
        names = [" x ".join(map(str, columns)) for columns in terms]
        titles = part.event.term_titles(part.columns, part.encodings) if part.is_joint_term else names
        out: list[dict[str, Any]] = [{"columns": [self.column_index[name] for name in columns]} for columns in terms]
        for term, name, title in zip(out, names, titles, strict=True):
            term |= {"name": title} if title != name else {}
        return {"reads": reads, **prototypes, "terms": out, "features": distribution.n_features, **rule}

    def _add_read(self, name: Name, encoding: Any) -> int:
        """The index of the way in which a column is read."""
        kind = encoding.value_kind
        self._kinds[name] = self._kinds.get(name, kind) if encoding.is_read_as_text else kind
        if (name, encoding) not in self._read_index:
            self._read_index[name, encoding] = len(self.reads)
            read = {"column": self.column_index[name], **encoding.to_export_dict()}
            if "scores" in read:
                read["scores"] = self.scores.setdefault(read["scores"], len(self.scores))
            elif "levels" in read:  # by their indices among those of the column
                known = self._levels.setdefault(name, {})
                keys = [(isinstance(level, bool), level) for level in read["levels"]]
                read["levels"] = [known.setdefault(key, len(known)) for key in keys]
            self.reads.append(read)
        return self._read_index[name, encoding]

    def _add_ranges(self, part: PlanPart, distribution: Any) -> None:
        """The approximate range of each column, for interfaces in which people enter values."""
        sample: Any = None
        for j, (name, encoding) in enumerate(zip(part.columns, part.encodings, strict=True)):
            if encoding.is_read_as_text:
                continue
            ends = encoding.value_range()
            if ends is None and name not in self._ranges:
                sample = _draw_rows(distribution) if sample is None else sample
                if len(sample):  # without the tails, to four digits
                    quantiles = np.quantile(encoding.decode(sample[:, j]), [_TAIL / 2, 1 - _TAIL / 2])
                    low, high = (float(f"{x:.4g}") for x in quantiles.tolist())
                    ends = low, high
            if ends is not None:
                low, high = self._ranges.get(name, ends)
                self._ranges[name] = min(low, ends[0]), max(high, ends[1])

    def columns(self) -> list[dict[str, Any]]:
        """Name and kind of each column, its levels or the range of its numbers, and how its text is to be read."""
        out = []
        for name in self.fitted.plan.columns:
            levels = [level for _, level in self._levels.get(name, {})]
            kind = "boolean" if levels and all(isinstance(level, bool) for level in levels) else self._kinds[name]
            kind = "time" if name in self.fitted.times and not levels else kind
            about: dict[str, Any] = {"name": name, "kind": "date" if name in self.fitted.dates else kind}
            if levels:
                about["levels"] = [_level(level) for level in levels]
            if name in self._ranges:
                about["range"] = self._ranges[name]
            if (how := self.fitted.text_formats.get(str(name))) is not None:
                about["text_formats"] = how.to_export_dict()
            out.append(about)
        return out


def _draw_rows(distribution: Any) -> Any:
    """Sampled rows of a distribution; none where it cannot sample."""
    try:
        return distribution.sample_block(np.arange(_SAMPLE_ROWS) % distribution.n_classes, np.random.default_rng(0))
    except InputError:
        return np.empty((0, distribution.n_features))


def _level(value: Any) -> Any:
    """A level: plain values as they are; dates, times and durations with their text, type and value."""
    if isinstance(value, str | int | float):
        return value
    means = to_timestamp(value)
    since = means - EPOCH if isinstance(means, dt.datetime) else means
    kind = "moment" if isinstance(means, dt.datetime) else "duration"
    days = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    return {"text": str(value), "type": "day" if days else kind, "value": since // dt.timedelta(microseconds=1)}


def _to_plain(value: Any) -> Any:
    """Arrays as flat lists, and names for infinities and NaN."""
    if isinstance(value, Mapping):
        return {key: _to_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return list(map(_to_plain, value.ravel().tolist()))
    if isinstance(value, list | tuple):
        return list(map(_to_plain, value))
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
    """A value with each list of numbers, or names of infinities and NaN, in the shorter of both formats."""
    if isinstance(value, dict):
        return {key: list(map(_pack, x)) if key in _UNPACKED_KEYS else _pack(x) for key, x in value.items()}
    if isinstance(value, list):
        plain = list(map(_pack, value))
        is_long = len(value) >= _MIN_PACKED_LENGTH and any(isinstance(x, float) for x in value)
        if not is_long or not all(isinstance(x, float | int) or x in _NON_FINITE_NAMES for x in value):
            return plain
        packed = base64.b64encode(struct.pack(f"<{len(value)}d", *map(float, value))).decode()
        return packed if len(packed) < len(json.dumps(plain, separators=(",", ":"))) else plain
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT_INTEGER and str(value) != "-0.0":
        return int(value)
    return value
