"""Input columns: how rows to be scored differ from the columns of a model, and the notes on that.

Columns are matched by name, in any order. A column that the rows lack is missing in every row, with a warning; rows
that have none of the model's columns are an error. Other columns are ignored, with a warning if the name is similar to
one of the model's; the server, whose clients see no source file, warns of all of them. A column in which every value is
an unseen level is probably written differently.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Block
from candide.data.labels import Labels
from candide.data.notes import Note
from candide.data.table import Name
from candide.errors import InputError
from candide.model.plan import Plan

_MAX_SEARCHED_NAMES = 1000  # unknown names that are compared
_MAX_SUGGESTIONS = 3  # in one message
_MAX_NAME_LENGTH = 100  # characters of a name for which a similar one is searched
_N_FIRST_ROWS = 64  # rows that show a seen level of most columns


def compare_columns(
    where: str,
    columns: Collection[Any],
    expected: Sequence[Any],
    ignored: Iterable[Any] = (),
    *,
    name_all: bool = False,
) -> list[Note]:
    """Return the warnings on the columns of rows to be scored; raise an error if none is expected.

    ``ignored`` are further names that may be present: the target, or columns that were left out of the model. With
    ``name_all`` every other column is named, also one that is similar to none of the model's.
    """
    given, read = dict.fromkeys(map(str, columns)), dict.fromkeys(map(str, expected))
    known = {*read, *map(str, ignored)}
    unknown = [name for name in given if name not in known][:_MAX_SEARCHED_NAMES]
    absent = [name for name in read if name not in given]
    similar = similar_names(absent, unknown)
    hint = format_suggestion(similar)
    if absent and len(absent) == len(read):
        present = formatting.format_list(list(given))
        what = f"{where} has none of the model's columns {formatting.format_list(absent)}; it has {present}"
        raise InputError(what, value=absent, remedy=hint)
    notes = []
    if absent:
        text = f"{where} lacks {formatting.format_list(absent)}: taken as missing in every row"
        notes.append(Note("column-absent", text, absent[0], hint, tuple(absent)))
    by_letters = {_normalise_name(name): name for name in read if name in given} if unknown else {}
    for name in unknown:
        if name not in similar.values() and _normalise_name(name) in by_letters:
            remedy = f"the model reads {by_letters[_normalise_name(name)]!r}"
            notes.append(Note("column-unknown", f"{where}: column {name!r} is ignored", name, remedy, (name,)))
    if name_all and unknown:
        named = {*similar.values(), *(note.column for note in notes)}
        notes += unread_columns(where, [name for name in unknown if name not in named], read)
    return notes


def unread_columns(where: str, columns: Iterable[Any], known: Iterable[Any]) -> list[Note]:
    """Return a warning on the columns that a model does not read, with similar names that it does."""
    names = tuple(map(str, known))
    read = set(names)
    unknown = [name for name in map(str, columns) if name not in read][:_MAX_SEARCHED_NAMES]
    if not unknown:
        return []
    short = [name for name in unknown[:_MAX_SUGGESTIONS] if len(name) <= _MAX_NAME_LENGTH]
    similar = {name: close for name in short if (close := nearest_name(name, names))}
    listed = f"columns {formatting.format_list(unknown)} are" if len(unknown) > 1 else f"column {unknown[0]!r} is"
    text = f"{where}: {listed} ignored"
    return [Note("column-unknown", text, unknown[0], format_suggestion(similar), tuple(unknown))]


@lru_cache(1024)
def nearest_name(name: str, known: tuple[str, ...]) -> str:
    return similar_names([name], known[:_MAX_SEARCHED_NAMES]).get(name, "")


def similar_names(absent: Sequence[str], unknown: Sequence[str]) -> dict[str, str]:
    """Return, for some of the absent names, the most similar unknown one."""
    others = {name.lower(): name for name in unknown}
    pairs = ((name, get_close_matches(name.lower(), others, 1)) for name in absent[:_MAX_SUGGESTIONS])
    return {name: others[close[0]] for name, close in pairs if close}


def format_suggestion(similar: dict[str, str]) -> str:
    listed = ", ".join(f"{given!r} for {name!r}" for name, given in similar.items())
    return f"did you mean {listed}?" if listed else ""


def _normalise_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


class UnseenValues:
    """Finds columns in which every value is an unseen level. Blocks may be observed on several threads."""

    def __init__(self, plan: Plan):
        self._parts = [(i, part) for i, part in enumerate(plan.parts) if part.block_kind == "codes"]
        self._unmatched = {(i, j) for i, part in self._parts for j, e in enumerate(part.encodings) if e.is_read_as_text}
        self._unseen: set[tuple[int, int]] = set()  # columns with an unseen level

    def observe(self, blocks: Sequence[Block]) -> None:
        for i, part in self._parts:
            for j in range(len(part.columns)):
                if (i, j) not in self._unmatched:
                    continue
                codes, n = np.asarray(blocks[i])[:, j], len(part.levels[j])
                for chunk in (codes[:_N_FIRST_ROWS], codes[_N_FIRST_ROWS:]):
                    if ((chunk >= 0) & (chunk < n)).any():
                        self._unmatched.discard((i, j))
                        break
                    if (chunk == n).any():
                        self._unseen.add((i, j))

    def add(self, other: "UnseenValues") -> None:
        self._unmatched &= other._unmatched
        self._unseen |= other._unseen

    def notes(self) -> list[Note]:
        """Return one note on all columns in which every value is unseen."""
        unseen = self._unmatched & self._unseen
        columns = dict[Name, Labels]()  # a column of joint terms is in several parts
        for i, part in self._parts:
            for j, name in enumerate(part.columns):
                if (i, j) in unseen:
                    columns.setdefault(name, part.levels[j])
        if not columns:
            return []
        [levels, *others] = columns.values()
        known_levels = f" ({formatting.format_list(levels.values, 5)})" if not others and len(levels) else ""
        names = tuple(columns)
        text = f"{formatting.format_columns(names)}: no value is known to the model{known_levels}"
        return [Note("unseen", text, names[0], "write values as in the training rows", names)]
