"""How a query reads a column of the table: as a number, and as a key that is compared with levels."""

import datetime as dt
import math
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from candide.data.text_formats import COMPACT, MISSING_MARKERS, NUMBER, parse_value, to_timestamp
from candide.errors import InputError
from candide.export.parameters import MAX_EXACT_INTEGER
from candide.export.python_js.values import EPOCH, UNSEEN_LEVEL, LevelLookup
from candide.export.sql.layers import Layers, format_number

_MAX_DOUBLE = format_number(1.7976931348623157e308)
_NUMBER_TAG, _BOOLEAN_TAG = "number ", "boolean "  # prefixes of keys that are not text
_DAY = 86_400_000_000  # microseconds
_EQUIVALENT_MARKS = {" ": ("\u00a0", "\u202f"), "'": ("\u2019",)}  # between thousands
_DATE_CODES = {"Y": "[0-9]{4}", "y": "[0-9]{2}", "B": "[A-Za-z]+", "b": "[A-Za-z]+", "p": "[AaPp][Mm]"}  # of strptime
_BOOLEAN_WORDS = {
    True: ("true", "1", "1.0", "yes", "y", "t", "on"),
    False: ("false", "0", "0.0", "no", "n", "f", "off"),
}


class QueryColumn:
    def __init__(self, layers: Layers, schema: dict[str, Any], na: Sequence[str] = ()):
        self.layers, self.dialect, self.schema, self.na = layers, layers.dialect, schema, list(na)
        self.name = schema["name"]
        self.raw = layers.column(str(self.name))

    @cached_property
    def number_name(self) -> str:
        """The name of the number; NULL where it is missing or not finite."""
        return self._finite(self.layers.add_read(self.read_number()))

    def level_key(self, levels: Sequence[Any]) -> str:
        """The name of the key that is compared with levels; NULL where the value is missing."""
        name = self.layers.add_read(self.read_key(levels))
        return self._finite(name) if _level_type(levels) is float else name

    def _finite(self, x: str) -> str:
        markers = [format_number(float(text)) for text in self.na if NUMBER.fullmatch(text)]
        present = f"{x} BETWEEN -{_MAX_DOUBLE} AND {_MAX_DOUBLE}"  # false for NaN in every database
        present += f" AND {x} NOT IN ({', '.join(markers)})" if markers else ""
        return self.layers.add_value(f"CASE WHEN {present} THEN {x} END")

    def _fill(self, template: str, **values: str) -> str:
        """A template of the dialect, of the column."""
        return _fill(template, self.raw, **values)

    def _text(self, missing: Sequence[str], template: str = "TRIM({})", end: str = "") -> str:
        """The column as text, NULL for the texts that mean a missing value."""
        text = template.replace("{}", self._fill(self.dialect.text_template))
        for marker in missing:
            text = f"NULLIF({text}, {self.dialect.quote_string(marker + end)})"
        return text

    @property
    def _trimmed_text(self) -> str:
        return self._text(["", *self.na])

    @property
    def _utc(self) -> str:
        return self._fill(self.dialect.utc_template)

    def _days(self, moment: str) -> str:
        return self.dialect.days_template.replace("{}", moment)

    # Numbers

    def read_number(self) -> str:
        """A number, or days of a date, a time or a duration; text in the format of the training rows.

        A column of another type is an error in databases that have types.
        """
        text_formats, kind = self.schema.get("text_formats"), self.schema["kind"]
        is_text, typed = self._fill(self.dialect.text_test), self._typed_number(kind)
        if kind == "time":
            from_text = self.dialect.clock_template.replace("{}", self._trimmed_text)
        elif text_formats is not None and kind == "date":
            from_text = self._date(self._trimmed_text, text_formats["date"])
        elif text_formats is not None:
            from_text = self._normalized_text(self._trimmed_text, text_formats)
        elif kind == "date" and typed != (days := self._days(self._utc)):
            from_text = self._if_dashed_date(days)
        elif kind == "date" and is_text and self.dialect.date_text_test:
            return f"CASE WHEN {is_text} AND NOT ({self._is_dashed_date}) THEN NULL ELSE {typed} END"
        else:
            return typed
        if text_formats is not None:
            markers = dict.fromkeys((*MISSING_MARKERS, *text_formats["missing"]))
            missing = ", ".join(map(self.dialect.quote_string, markers))
            from_text = f"CASE WHEN LOWER({self._trimmed_text}) NOT IN ({missing}) THEN {from_text} END"
        return f"CASE WHEN {is_text} THEN {from_text} ELSE {typed} END" if is_text else from_text

    def _typed_number(self, kind: str) -> str:
        """The number of a value that is not text."""
        if kind == "time" and not self.dialect.clock_template:
            what = f"it holds times of day or durations, which a query of {self.dialect.name} cannot read"
            raise InputError(what, column=self.name, remedy="export it to python or js, or fit it as numbers")
        if kind not in ("date", "time"):
            return self.dialect.typed_number(self.raw, str(self.name))
        if kind == "date" and not self.dialect.reads_dates_by_type:
            # text has no days, even in a branch that is never evaluated
            is_cast = "text_formats" in self.schema
            return self._days(self.dialect.moment_template.replace("{}", self._utc) if is_cast else self._utc)
        if not self.dialect.time_test:
            return "NULL"  # a database without types
        is_day, is_time = self._fill(self.dialect.day_test), self._fill(self.dialect.time_test)
        expected = "dates" if kind == "date" else "times of day or durations"
        fail = self._fail(self.dialect.double_type, f"does not hold {expected}, as the training rows do")
        has_kind = is_day if kind == "date" else f"{is_time} AND NOT {is_day}"
        typed = self.dialect.typed_number(self.raw, str(self.name))
        present = f"LOWER({self._fill(self.dialect.text_template)}) <> 'nan'"  # not true for NULL
        return f"CASE WHEN {has_kind} THEN {typed} WHEN {present} THEN {fail} END"

    def _fail(self, kind: str, problem: str) -> str:
        """End the query with an error in place of a value of a type."""
        message = self.dialect.quote_string(f"column {str(self.name)!r} {problem}")
        return self._fill(self.dialect.error_template, type=kind, what=message)

    @property
    def _is_dashed_date(self) -> str:
        return self.dialect.date_text_test.replace("{}", self._text([]))

    def _if_dashed_date(self, days: str) -> str:
        """The days of text that is a date with dashes: databases differ in what other text they take for dates."""
        return f"CASE WHEN {self._is_dashed_date} THEN {days} END" if self.dialect.date_text_test else days

    def _normalized_text(self, text: str, formats: dict[str, Any]) -> str:
        """The number of a text; NULL in another format than that of the training rows, which may have another unit."""
        condition, marked = "", text
        if "pattern" in formats and self.dialect.match_template:
            # for trimmed text, without backslashes, which databases read differently
            pattern = formats["pattern"].replace(r"\t\n\r\f\v", "").replace("(?:", "(")
            condition = self._matches(text, "^" + re.sub(r"\\(.)", r"[\1]", pattern) + "$")
        elif "pattern" in formats:
            for mark in _EQUIVALENT_MARKS.get(formats["thousands"] or "", ()):
                marked = self._replace(marked, mark, formats["thousands"])
            x, concat = self.dialect.quote_string("x"), self.dialect.concat_template
            padded = concat.format(concat.format(x, marked), x)
            signed = [self._is_like(padded, f"*{formats['unit']}x")] if formats["percent"] else []
            others = [f"NOT {self._is_like(padded, other)}" for other in _other_formats(formats)]
            condition = " AND ".join([*signed, *others])
        for old, new in formats.get("put", ()):
            text = self._replace(text, old, new)
        text = self.dialect.concat_template.format(text, "'e-2'") if formats["percent"] else text
        number = self.dialect.read_double(text)
        return f"CASE WHEN {condition} THEN {number} END" if condition else number

    def _replace(self, text: str, old: str, new: str) -> str:
        return f"REPLACE({text}, {self.dialect.quote_string(old)}, {self.dialect.quote_string(new)})"

    def _matches(self, text: str, pattern: str) -> str:
        return _fill(self.dialect.match_template, text, pattern=self.dialect.quote_string(pattern))

    def _is_like(self, text: str, pattern: str) -> str:
        """A condition that a text matches a pattern, in which * is any text and % stands for itself."""
        if "LIKE" in self.dialect.like_template:
            pattern = pattern.replace("%", "[%]").replace("*", "%")
        return _fill(self.dialect.like_template, text, pattern=self.dialect.quote_string(pattern))

    def _date(self, text: str, form: str) -> str:
        from sqlglot import exp

        dashed = self._days(self.dialect.moment_template.replace("{}", text))
        if not form:
            return self._if_dashed_date(dashed)
        if not self.dialect.parses_dates:
            what = f"its dates are text in the form {form}, which {self.dialect.name} cannot read"
            raise InputError(what, column=self.name, remedy="convert it to a column of dates, and fit again")
        moment = exp.StrToTime(this=exp.column("x"), format=exp.Literal.string(form)).sql(self.dialect.name)
        # without a time zone, not in that of the session
        days = self._days(self.dialect.moment_template.replace("{}", moment.replace("x", text, 1)))
        if not (self.dialect.match_template and self.dialect.date_text_test):
            return days
        pattern = re.sub("%(.)", lambda code: _DATE_CODES.get(code[1], "[0-9]{1,2}"), form.replace(".", "[.]"))
        pattern = "[1-9][0-9]{7}" if form == COMPACT else pattern  # databases accept other text, too
        matches = self._matches(text, f"^{pattern}$")
        return f"CASE WHEN {matches} THEN {days} WHEN {self._is_dashed_date} THEN {dashed} END"

    # Levels

    def read_key(self, levels: Sequence[Any]) -> str:
        kind = _level_type(levels)
        if kind is float:
            for level in levels:
                if isinstance(level, int) and abs(level) > MAX_EXACT_INTEGER:
                    what = "cannot be exported to SQL: a level that is not exact as a 64-bit number"
                    remedy = "fit it as text, or export it to python"
                    raise InputError(what, column=self.name, value=level, remedy=remedy)
            return self._single_value(self._number_or_unseen(levels), self.dialect.double_type)
        if kind is bool:
            return self._single_value(f"LOWER({self._text([''], '{}')})")
        if kind in ("day", "moment"):  # for other values a day that is not among the levels
            used = {level["value"] for level in levels}
            unused_day = next(day for day in range(-(2**55) // _DAY * _DAY, 0, _DAY) if day not in used)
            when = getattr(self.dialect, f"{kind}_template").replace("{}", self._utc)
            unseen = self._timestamp_literal({"value": unused_day}, kind)
            key = f"CASE WHEN {when} IS NULL AND {self._trimmed_text} IS NOT NULL THEN {unseen} ELSE {when} END"
            return self._single_value(key, "DATE" if kind == "day" else "TIMESTAMP")
        if kind is not str:
            what = "its levels are times, or of several types"
            raise InputError(what, column=self.name, remedy="export it to python or js")
        missing = [*([] if "" in levels else [""]), *self.na]
        text = self._text(missing, self.dialect.exact_text_template, self.dialect.exact_text_end)
        return self._single_value(self._tagged_text(text, levels))

    def _single_value(self, key: str, kind: str = "TEXT") -> str:
        """The key of a value; an error for a list or a structure, where the database has types."""
        if not self.dialect.nested_test:
            return key
        fail = self._fail(kind, "holds lists or structures; expected one value in each row")
        nested = self._fill(self.dialect.nested_test)
        return f"CASE WHEN {nested} AND {self.raw} IS NOT NULL THEN {fail} ELSE {key} END"

    def _number_or_unseen(self, levels: Sequence[float]) -> str:
        """A number; for text that is not a finite number, and for infinity, the largest double: an unseen level.

        A 32-bit number is read by its decimals, where a level has more than 32 bits.
        """
        x, is_short = self.dialect.read_double(self.raw), self._fill(self.dialect.float32_test)
        if is_short and any(abs(y) >= MAX_EXACT_INTEGER or float(np.float32(y)) != y for y in levels):
            decimals = self.dialect.cast_double(self._fill(self.dialect.text_template))
            x = f"CASE WHEN {is_short} THEN {decimals} ELSE {x} END"
        if not self.dialect.number_template:
            return x
        text, is_text = self._trimmed_text, self._fill(self.dialect.text_test)
        words = f"WHEN LOWER({text}) = 'true' THEN 1e0 WHEN LOWER({text}) = 'false' THEN 0e0"
        absent = f"WHEN {f'NOT {is_text} AND ' if is_text else ''}LOWER({text}) = 'nan' THEN NULL"
        finite = f"WHEN {x} BETWEEN -{_MAX_DOUBLE} AND {_MAX_DOUBLE} THEN {x}"
        return f"CASE {finite} {words} {absent} WHEN {text} <> '' THEN {_MAX_DOUBLE} END"

    def _tagged_text(self, text: str, levels: Sequence[str]) -> str:
        """Text; a number of the table is the one level with that value, or among several the one with the same text.

        The same holds for booleans, dates, times of day and durations.
        """
        dialect, concat = self.dialect, self.dialect.concat_template
        if times := self._time_levels(levels):
            is_time, is_day = self._fill(dialect.time_test), self._fill(dialect.day_test)
            micros = f"{dialect.typed_number(self.raw, str(self.name))} * 864e8"
            tag = f"CASE WHEN {is_day} THEN 'moment ' ELSE 'duration ' END"
            tagged = concat.format(tag, dialect.integer_text_template.replace("{}", micros))
            texts = ", ".join(dialect.quote_string(levels[place]) for places in times.values() for place in places)
            text = f"CASE WHEN {is_time} AND {text} NOT IN ({texts}) THEN {tagged} ELSE {text} END"
        if self._boolean_levels(levels):
            tagged = concat.format(f"'{_BOOLEAN_TAG}'", text)
            text = f"CASE WHEN {self._fill(dialect.boolean_test)} THEN {tagged} ELSE {text} END"
        if not (numbers := self._number_levels(levels)):
            return text
        x, is_text = dialect.read_double(text), self._fill(dialect.text_test)
        shared = [places for places in numbers.values() if len(places) > 1]
        texts = ", ".join(dialect.quote_string(levels[place]) for places in shared for place in places)
        other = f" AND {text} NOT IN ({texts})" if shared else ""
        return f"CASE WHEN NOT {is_text} AND {x} IS NOT NULL{other} THEN {self._tag_number(x)} ELSE {text} END"

    def _tag_number(self, x: str) -> str:
        return self.dialect.concat_template.format(f"'{_NUMBER_TAG}'", self.dialect.text_template.replace("{}", x))

    def _boolean_levels(self, levels: Sequence[str]) -> dict[str, int]:
        """The indices of the levels that booleans stand for, where their text differs from that of the database."""
        if not self.dialect.boolean_test:
            return {}
        lookup = LevelLookup(list(levels))
        places = {word: lookup.find(word == "true") for word in ("true", "false")}
        places = {word: place for word, place in places.items() if place != UNSEEN_LEVEL}
        return {} if all(levels[place] == word for word, place in places.items()) else places

    def _number_levels(self, levels: Sequence[str]) -> dict[float, list[int]]:
        """The numbers that levels represent, and their indices; 1 and 0 may be booleans."""
        if not (self.dialect.text_test and self.dialect.number_template):
            return {}
        out: dict[float, list[int]] = {}
        for place, level in enumerate(levels):
            if NUMBER.fullmatch(level) and math.isfinite(x := float(level)):
                out.setdefault(x, []).append(place)
        lookup = LevelLookup(list(levels))
        for bit in (1, 0):
            if bit not in out and (place := lookup.find(bit)) != UNSEEN_LEVEL:
                out[float(bit)] = [place]
        return out

    def _time_levels(self, levels: Sequence[str]) -> dict[str, list[int]]:
        """The dates, times of day and durations that levels represent, in microseconds, and their indices."""
        out: dict[str, list[int]] = {}
        for place, level in enumerate(levels if self.dialect.time_test else ()):
            value = to_timestamp(parse_value(level))
            is_moment = isinstance(value, dt.datetime)
            since = value - EPOCH if is_moment else value
            if isinstance(since, dt.timedelta):
                tag = "moment" if is_moment else "duration"
                out.setdefault(f"{tag} {since // dt.timedelta(microseconds=1)}", []).append(place)
        return out

    def level_keys(self, levels: Sequence[Any]) -> list[tuple[str, int]]:
        """The keys of each level in the query, and its index; a boolean may be a word or a number."""
        kind = _level_type(levels)
        if kind is bool:
            return [(f"'{word}'", place) for place, level in enumerate(levels) for word in _BOOLEAN_WORDS[level]]
        if kind is float:
            return [(format_number(level), place) for place, level in enumerate(levels)]
        if kind is not str:
            return [(self._timestamp_literal(level, str(kind)), place) for place, level in enumerate(levels)]
        end = self.dialect.exact_text_end
        out = [(self.dialect.quote_string(level + end), place) for place, level in enumerate(levels)]
        for x, places in self._number_levels(levels).items():
            if len(places) == 1:
                out.append((self._tag_number(self.dialect.cast_double(format_number(x))), places[0]))
        out += [(f"'{_BOOLEAN_TAG}{word}'", place) for word, place in self._boolean_levels(levels).items()]
        times = self._time_levels(levels).items()
        return out + [(f"'{text}'", places[0]) for text, places in times if len(places) == 1]

    def _timestamp_literal(self, level: dict[str, Any], kind: str) -> str:
        when = EPOCH + dt.timedelta(microseconds=level["value"])
        text = f"{when:%Y-%m-%d}" if kind == "day" else when.isoformat(" ", "microseconds")
        return getattr(self.dialect, f"{kind}_template").replace("{}", f"'{text}'")


def _fill(template: str, x: str, **values: str) -> str:
    """A template with a value for ``{}`` and for each name."""
    values[""] = x
    return re.sub(r"\{(\w*)\}", lambda match: values.get(match[1], match[0]), template)


def _other_formats(formats: dict[str, Any]) -> list[str]:
    """Patterns that a number in this format, between two letters, does not match: groups of two digits, and so on."""
    digit, unit, mark, decimal = "[0-9]", formats["unit"], formats["thousands"], formats["decimal"]
    out = [f"*{digit}*{unit}*{digit}*"] if unit else []
    if unit or decimal == ",":
        out.append("*[eE][-+0-9]*")
    if decimal == "," and mark != ".":  # a point would be read as the decimal mark
        out.append("*.*")
    if mark:
        ends = ["", digit, 2 * digit]
        out += [f"*{mark}{end}[^0-9]*" for end in ends]
        out += [f"*{mark}{4 * digit}*", f"*{4 * digit}{mark}*", f"*[^0-9]{mark}{digit}*", f"*{decimal}*{mark}{digit}*"]
        out += [f"*[^0-9]0{end}{mark}*" for end in ends]
    return out


def _level_type(levels: Sequence[Any]) -> Any:
    """The type of levels, by name for days and moments; None if they have several types."""
    kinds = {level["type"] if isinstance(level, dict) else type(level) for level in levels} or {str}
    if kinds <= {int, float}:
        return float
    if kinds == {"day", "moment"}:
        return "moment"
    [first, *others] = kinds
    return None if others or first == "duration" else first
