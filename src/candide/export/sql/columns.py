"""Columns: how a query reads a column of the table, as numbers and as keys that are compared with levels.

>>> from candide.engines.sql.dialects.registry import get_dialect
>>> age = QueryColumn(Layers(get_dialect("trino"), "t"), {"name": "age", "kind": "number"}, ["-1"])
>>> age.read_number()
'TRY_CAST(t0."age" AS DOUBLE)'
>>> print(age.read_key(["cook", "smith"]))
NULLIF(NULLIF(CAST(t0."age" AS VARCHAR), ''), '-1')
"""

import datetime as dt
import math
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from candide.errors import InputError
from candide.export.scorer.values import COMPACT, MISSING, NUMBER, UNSEEN_LEVEL, LevelLookup, parse_value
from candide.export.sql.layers import Layers, format_number

_MAX_DOUBLE = format_number(1.7976931348623157e308)
_MAX_EXACT_INTEGER = 2**53  # up to here an integer is exact as a double
_NUMBER_TAG, _BOOLEAN_TAG = "number ", "boolean "  # prefixes of keys that are not text
_EPOCH = dt.datetime(1970, 1, 1)
_DAY = 86_400_000_000  # microseconds
_SAME = {",": (), ".": (), " ": ("\u00a0", "\u202f"), "'": ("\u2019",)}  # as marks between thousands
_BOOLEAN_WORDS = {
    True: ("true", "1", "1.0", "yes", "y", "t", "on"),
    False: ("false", "0", "0.0", "no", "n", "f", "off"),
}


class QueryColumn:
    """A column of the table."""

    def __init__(self, layers: Layers, schema: dict[str, Any], na: Sequence[str] = ()):
        self.layers, self.dialect, self.schema, self.na = layers, layers.dialect, schema, list(na)
        self.name = schema["name"]
        self.raw = layers.column(str(self.name))

    @cached_property
    def number_name(self) -> str:
        """The number; NULL where it is missing, and where it is not finite."""
        return self._finite(self.layers.add_read(self.read_number()))

    def level_key(self, levels: Sequence[Any]) -> str:
        """The key that is compared with levels; NULL where the value is missing."""
        name = self.layers.add_read(self.read_key(levels))
        return self._finite(name) if _level_type(levels) is float else name

    def _finite(self, x: str) -> str:
        never = [format_number(float(text)) for text in self.na if NUMBER.fullmatch(text)]
        there = f"{x} BETWEEN -{_MAX_DOUBLE} AND {_MAX_DOUBLE}"  # false for NaN in every database
        there += f" AND {x} NOT IN ({', '.join(never)})" if never else ""
        return self.layers.add_value(f"CASE WHEN {there} THEN {x} END")

    def read_number(self) -> str:
        """A number, or days of a date, a time or a duration; text in the format of the training rows.

        A column of another type is an error in databases that have types.
        """
        how, kind = self.schema.get("text_formats"), self.schema["kind"]
        is_text, own = self.dialect.text_test.replace("{}", self.raw), self._typed_number(kind)
        if how is not None:
            read = self._formatted_number(how, kind)
        elif kind == "time":
            read = self.dialect.clock_template.replace("{}", self._text(["", *self.na]))
        elif kind == "date" and own != (days := self.dialect.days_template.replace("{}", self._utc)):
            read = self._if_written_as_date(days)
        elif kind == "date" and is_text and self.dialect.date_text_test:
            return f"CASE WHEN {is_text} AND NOT ({self._is_written_as_date}) THEN NULL ELSE {own} END"
        else:
            return own
        return f"CASE WHEN {is_text} THEN {read} ELSE {own} END" if is_text else read

    def _typed_number(self, kind: str) -> str:
        """The number of a value that is not text."""
        if kind == "time" and not self.dialect.clock_template:
            what = f"it holds times of day or durations, which a query of {self.dialect.name} cannot read"
            raise InputError(what, column=self.name, remedy="export it to python or js, or fit it as numbers")
        if kind == "time" or (kind == "date" and self.dialect.reads_dates_by_type):
            return self._temporal(kind)
        if kind != "date":
            return self.dialect.typed_number(self.raw, str(self.name))
        when = self._utc if "text_formats" not in self.schema else self.dialect.moment_template.replace("{}", self._utc)
        return self.dialect.days_template.replace(
            "{}", when
        )  # text has no days, even in a branch that is never evaluated

    def _temporal(self, kind: str) -> str:
        """The days of a column of dates or times; an error for other types, or NULL in databases without types."""
        if not self.dialect.time_test:
            return "NULL"
        is_day, is_time = (one.replace("{}", self.raw) for one in (self.dialect.day_test, self.dialect.time_test))
        what = "dates" if kind == "date" else "times of day or durations"
        message = self.dialect.quote_string(f"column {str(self.name)!r} does not hold {what}, as the training rows do")
        fail = (
            self.dialect.error_template.replace("{}", self.raw)
            .replace("{type}", self.dialect.double_type)
            .replace("{what}", message)
        )
        of_kind = is_day if kind == "date" else f"{is_time} AND NOT {is_day}"
        typed = self.dialect.typed_number(self.raw, str(self.name))
        present = f"LOWER({self.dialect.text_template.replace('{}', self.raw)}) <> 'nan'"  # not true for NULL
        return f"CASE WHEN {of_kind} THEN {typed} WHEN {present} THEN {fail} END"

    def _if_written_as_date(self, days: str) -> str:
        """The days of text that is a date with dashes: databases differ in what other text they take for dates."""
        return f"CASE WHEN {self._is_written_as_date} THEN {days} END" if self.dialect.date_text_test else days

    @property
    def _is_written_as_date(self) -> str:
        return self.dialect.date_text_test.replace("{}", self._text([]))

    def _formatted_number(self, how: dict[str, Any], kind: str) -> str:
        """The number of a text in the format of the training rows."""
        text = self._text(["", *self.na])
        if kind == "time":
            read = self.dialect.clock_template.replace("{}", text)
        else:
            read = self._date(text, how["date"]) if kind == "date" else self._normalized_text(text, how)
        gone = ", ".join(map(self.dialect.quote_string, dict.fromkeys((*MISSING, *how["missing"]))))
        return f"CASE WHEN LOWER({text}) NOT IN ({gone}) THEN {read} END"

    def _text(self, missing: Sequence[str], text: str = "TRIM({})", end: str = "") -> str:
        text = text.replace("{}", self.dialect.text_template.replace("{}", self.raw))
        for one in missing:
            text = f"NULLIF({text}, {self.dialect.quote_string(one + end)})"
        return text

    def _normalized_text(self, text: str, how: dict[str, Any]) -> str:
        """The number of a text; NULL in another format, which may have another unit."""
        there = self._has_format(text, how)
        for old, new in how.get("put", ()):
            text = f"REPLACE({text}, {self.dialect.quote_string(old)}, {self.dialect.quote_string(new)})"
        read = self.dialect.read_double(self.dialect.concat_template.format(text, "'e-2'") if how["percent"] else text)
        return f"CASE WHEN {there} THEN {read} END" if there else read

    def _has_format(self, text: str, how: dict[str, Any]) -> str:
        """A condition that a text has the number format of the training rows; "" for plain numbers."""
        if "pattern" not in how:
            return ""
        if self.dialect.match_template:
            return self.dialect.match_template.replace("{}", text).replace(
                "{pattern}", self.dialect.quote_string(_portable(how["pattern"]))
            )
        for same in _SAME[how["thousands"]] if how["thousands"] else ():
            text = f"REPLACE({text}, {self.dialect.quote_string(same)}, {self.dialect.quote_string(how['thousands'])})"
        padded = self.dialect.concat_template.format(
            self.dialect.concat_template.format(self.dialect.quote_string("x"), text), self.dialect.quote_string("x")
        )
        each = [self._is_like(padded, pattern) for pattern in _other_formats(how)]
        signed = [self._is_like(padded, f"*{how['unit']}x")] if how["percent"] else []
        return " AND ".join([*signed, *(f"NOT {one}" for one in each)])

    def _is_like(self, text: str, pattern: str) -> str:
        """A condition that a text matches a pattern, in which * is any text and % stands for itself."""
        if "LIKE" in self.dialect.like_template:
            pattern = pattern.replace("%", "[%]").replace("*", "%")
        return self.dialect.like_template.replace("{}", text).replace("{pattern}", self.dialect.quote_string(pattern))

    def _date(self, text: str, form: str) -> str:
        from sqlglot import exp

        dashed = self.dialect.days_template.replace("{}", self.dialect.moment_template.replace("{}", text))
        if not form:
            return self._if_written_as_date(dashed)
        if not self.dialect.parses_dates:
            what = f"its dates are text in the form {form}, which {self.dialect.name} cannot read"
            raise InputError(what, column=self.name, remedy="convert it to a column of dates, and fit again")
        moment = exp.StrToTime(this=exp.column("x"), format=exp.Literal.string(form)).sql(self.dialect.name)
        moment = self.dialect.moment_template.replace(
            "{}", moment.replace("x", text, 1)
        )  # without a zone, not in that of the session
        days = self.dialect.days_template.replace("{}", moment)
        if not (self.dialect.match_template and self.dialect.date_text_test):
            return days
        fits = self.dialect.match_template.replace("{}", text).replace(
            "{pattern}", self.dialect.quote_string(_date_pattern(form))
        )
        return f"CASE WHEN {fits} THEN {days} WHEN {self._is_written_as_date} THEN {dashed} END"

    def read_key(self, levels: Sequence[Any]) -> str:
        sort = _level_type(levels)
        if sort is float:
            self._check_integers(levels)
            return self._single_value(self._number_or_unseen(self._exact(levels)), self.dialect.double_type)
        if sort is bool:
            return self._single_value(f"LOWER({self._text([''], '{}')})")
        if sort in ("day", "moment"):
            return self._single_value(self._timestamp_or_unseen(levels, sort), "DATE" if sort == "day" else "TIMESTAMP")
        if sort is not str:
            what = "its levels are times, or of several types"
            raise InputError(what, column=self.name, remedy="export it to python or js")
        text = self._text(
            [*([] if "" in levels else [""]), *self.na], self.dialect.exact_text_template, self.dialect.exact_text_end
        )
        return self._single_value(self._tagged(text, self._number_levels(levels), levels))

    def _single_value(self, key: str, kind: str = "TEXT") -> str:
        """The key of a value; an error for a list or a structure, where the database has types."""
        if not self.dialect.nested_test:
            return key
        what = self.dialect.quote_string(
            f"column {str(self.name)!r} holds lists or structures; expected one value in each row"
        )
        nested, fail = (one.replace("{}", self.raw) for one in (self.dialect.nested_test, self.dialect.error_template))
        fail = fail.replace("{type}", kind).replace("{what}", what)
        return f"CASE WHEN {nested} AND {self.raw} IS NOT NULL THEN {fail} ELSE {key} END"

    def _timestamp_or_unseen(self, levels: Sequence[Any], sort: str) -> str:
        """A day or a time; for other values a day that is not among the levels."""
        when, text = getattr(self.dialect, f"{sort}_template").replace("{}", self._utc), self._text(["", *self.na])
        other = self._timestamp_literal({"value": self._unused_day(levels)}, sort)
        return f"CASE WHEN {when} IS NULL AND {text} IS NOT NULL THEN {other} ELSE {when} END"

    @staticmethod
    def _unused_day(levels: Sequence[Any]) -> int:
        """The microseconds of a day that is not among the levels."""
        used = {level["value"] for level in levels}
        return next(day for day in range(-(2**55) // _DAY * _DAY, 0, _DAY) if day not in used)

    @property
    def _utc(self) -> str:
        return self.dialect.utc_template.replace("{}", self.raw)

    def _exact(self, levels: Sequence[float]) -> str:
        """A number; a 32-bit one by its decimals, where a level has more than 32 bits."""
        x, is_short = self.dialect.read_double(self.raw), self.dialect.float32_test.replace("{}", self.raw)
        if not is_short or all(abs(level) < _MAX_EXACT_INTEGER and _to_float32(level) == level for level in levels):
            return x
        spelled = self.dialect.cast_double(self.dialect.text_template.replace("{}", self.raw))
        return f"CASE WHEN {is_short} THEN {spelled} ELSE {x} END"

    def _number_or_unseen(self, x: str) -> str:
        """A number; for text that is not a finite number, and for infinity, the largest double: an unseen level."""
        text = self._text(["", *self.na])
        if not self.dialect.number_template:
            return x
        is_text = self.dialect.text_test.replace("{}", self.raw)
        words = f"WHEN LOWER({text}) = 'true' THEN 1e0 WHEN LOWER({text}) = 'false' THEN 0e0"
        absent = f"WHEN {f'NOT {is_text} AND ' if is_text else ''}LOWER({text}) = 'nan' THEN NULL"
        finite = f"WHEN {x} BETWEEN -{_MAX_DOUBLE} AND {_MAX_DOUBLE} THEN {x}"
        return f"CASE {finite} {words} {absent} WHEN {text} <> '' THEN {_MAX_DOUBLE} END"

    def _tagged(self, text: str, meant: dict[float, list[int]], levels: Sequence[str]) -> str:
        """Text; a number of the table is the one level with that value, or among several the one with the same text.

        The same holds for booleans, dates, times of day and durations.
        """
        if times := self._time_levels(levels):
            x, is_time = (
                self.dialect.typed_number(self.raw, str(self.name)),
                self.dialect.time_test.replace("{}", self.raw),
            )
            span, is_day = (
                self.dialect.integer_text_template.replace("{}", f"{x} * 864e8"),
                self.dialect.day_test.replace("{}", self.raw),
            )
            named = self.dialect.concat_template.format(f"CASE WHEN {is_day} THEN 'moment ' ELSE 'duration ' END", span)
            own = ", ".join(self.dialect.quote_string(levels[place]) for places in times.values() for place in places)
            text = f"CASE WHEN {is_time} AND {text} NOT IN ({own}) THEN {named} ELSE {text} END"
        if self._boolean_levels(levels):
            truth = self.dialect.boolean_test.replace("{}", self.raw)
            named = self.dialect.concat_template.format(f"'{_BOOLEAN_TAG}'", text)
            text = f"CASE WHEN {truth} THEN {named} ELSE {text} END"
        if not meant:
            return text
        x, is_text = self.dialect.read_double(text), self.dialect.text_test.replace("{}", self.raw)
        several = [
            self.dialect.quote_string(levels[place]) for places in meant.values() if len(places) > 1 for place in places
        ]
        alone = f" AND {text} NOT IN ({', '.join(several)})" if several else ""
        return f"CASE WHEN NOT {is_text} AND {x} IS NOT NULL{alone} THEN {self._tag(x)} ELSE {text} END"

    def _tag(self, x: str) -> str:
        text = self.dialect.text_template.replace("{}", x)
        return self.dialect.concat_template.format(f"'{_NUMBER_TAG}'", text)

    def _boolean_levels(self, levels: Sequence[str]) -> dict[str, int]:
        """The indices of the levels that booleans stand for, where their text differs from that of the database."""
        known = LevelLookup(list(levels)) if self.dialect.boolean_test else None
        found = {word: known.find(word == "true") for word in ("true", "false")} if known else {}
        same = all(place == UNSEEN_LEVEL or levels[place] == word for word, place in found.items())
        return {} if same else {word: place for word, place in found.items() if place != UNSEEN_LEVEL}

    def _number_levels(self, levels: Sequence[str]) -> dict[float, list[int]]:
        """The numbers that levels represent, and their indices; 1 and 0 may be booleans."""
        found: dict[float, list[int]] = {}
        for place, level in enumerate(levels if self.dialect.text_test and self.dialect.number_template else ()):
            if NUMBER.fullmatch(level) and math.isfinite(x := float(level)):
                found.setdefault(x, []).append(place)
        known = LevelLookup(list(levels))
        for one in (1, 0) if self.dialect.text_test and self.dialect.number_template else ():
            if one not in found and (place := known.find(one)) != UNSEEN_LEVEL:
                found[float(one)] = [place]
        return found

    def _time_levels(self, levels: Sequence[str]) -> dict[str, list[int]]:
        """The dates, times of day and durations that levels represent, in microseconds, and their indices."""
        found: dict[str, list[int]] = {}
        for place, level in enumerate(levels if self.dialect.time_test else ()):
            means = parse_value(level)
            since = means - _EPOCH if isinstance(means, dt.datetime) else means
            if isinstance(since, dt.timedelta):
                kind = "moment" if isinstance(means, dt.datetime) else "duration"
                found.setdefault(f"{kind} {since // dt.timedelta(microseconds=1)}", []).append(place)
        return found

    def _check_integers(self, levels: Sequence[Any]) -> None:
        for level in levels:
            if isinstance(level, int) and abs(level) > _MAX_EXACT_INTEGER:
                what = "cannot be exported to SQL: a level that is not exact as a 64-bit number"
                remedy = "fit it as text, or export it to python"
                raise InputError(what, column=self.name, value=level, remedy=remedy)

    def level_keys(self, levels: Sequence[Any]) -> list[tuple[str, int]]:
        """The keys of each level in the query, and its index; a boolean may be a word or a number."""
        sort, out = _level_type(levels), []
        for place, level in enumerate(levels):
            if sort is bool:
                out += [(f"'{word}'", place) for word in _BOOLEAN_WORDS[level]]
            elif sort is float:
                out.append((format_number(level), place))
            elif sort is str:
                out.append((self.dialect.quote_string(level + self.dialect.exact_text_end), place))
            else:
                out.append((self._timestamp_literal(level, str(sort)), place))
        if sort is str:
            alone = {x: places[0] for x, places in self._number_levels(levels).items() if len(places) == 1}
            out += [(self._tag(self.dialect.cast_double(format_number(x))), place) for x, place in alone.items()]
            out += [(f"'{_BOOLEAN_TAG}{word}'", place) for word, place in self._boolean_levels(levels).items()]
            out += [(f"'{text}'", places[0]) for text, places in self._time_levels(levels).items() if len(places) == 1]
        return out

    def _timestamp_literal(self, level: dict[str, Any], sort: str) -> str:
        when = _EPOCH + dt.timedelta(microseconds=level["value"])
        text = f"{when:%Y-%m-%d}" if sort == "day" else when.isoformat(" ", "microseconds")
        return getattr(self.dialect, f"{sort}_template").replace("{}", f"'{text}'")


def _portable(pattern: str) -> str:
    """A pattern for text without white space around it, without backslashes, which databases read differently.

    >>> _portable(r"[ \\t\\n\\r\\f\\v]*(?:\\$)?[0-9]+")
    '^[ ]*([$])?[0-9]+$'
    """
    plain = pattern.replace(r"\t\n\r\f\v", "").replace("(?:", "(")
    return "^" + re.sub(r"\\(.)", _in_class, plain) + "$"


def _date_pattern(form: str) -> str:
    """A pattern for dates in a strptime format: databases accept other text, too.

    >>> _date_pattern("%d.%m.%Y")
    '^[0-9]{1,2}[.][0-9]{1,2}[.][0-9]{4}$'
    """
    if form == COMPACT:
        return "^[1-9][0-9]{7}$"
    codes = {"Y": "[0-9]{4}", "y": "[0-9]{2}", "B": "[A-Za-z]+", "b": "[A-Za-z]+", "p": "[AaPp][Mm]"}
    return "^" + re.sub("%(.)", lambda code: codes.get(code[1], "[0-9]{1,2}"), form.replace(".", "[.]")) + "$"


def _in_class(escaped: re.Match[str]) -> str:
    return f"[{escaped[1]}]"


def _other_formats(how: dict[str, Any]) -> list[str]:
    """Patterns that a number in this format, between two letters, does not match: groups of two digits, and so on."""
    digit, unit, part, decimal = "[0-9]", how["unit"], how["thousands"], how["decimal"]
    out = [f"*{digit}*{unit}*{digit}*"] if unit else []
    if unit or decimal == ",":
        out.append("*[eE][-+0-9]*")
    if decimal == ",":  # a point would be read as the decimal mark
        out += [] if part == "." else ["*.*"]
    if part:
        ends = ["", digit, 2 * digit]
        out += [f"*{part}{end}[^0-9]*" for end in ends]
        out += [f"*{part}{4 * digit}*", f"*{4 * digit}{part}*", f"*[^0-9]{part}{digit}*", f"*{decimal}*{part}{digit}*"]
        out += [f"*[^0-9]0{end}{part}*" for end in ends]
    return out


def _to_float32(x: float) -> float:
    """A number to 32 bits."""
    return float(np.float32(x))


def _level_type(levels: Sequence[Any]) -> Any:
    """The type of levels, by name for days and moments; None if they have several types."""
    sorts = {level["type"] if isinstance(level, dict) else type(level) for level in levels} or {str}
    if sorts <= {int, float}:
        return float
    if sorts == {"day", "moment"}:
        return "moment"
    [first, *others] = sorts
    return None if others or first == "duration" else first
