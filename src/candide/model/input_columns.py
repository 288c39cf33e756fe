"""Input columns: one rule, through every entry point, for rows that do not have exactly the columns of a model.

Columns are matched by name, in any order. One that rows to be scored lack is missing in every row, with a warning;
rows that have none of the model's columns are an error. Other columns are ignored, with a warning where the name
resembles one of the model's; the server, whose clients see no source file, warns of all of them.

>>> compare_columns("rows.csv", ["Age", "job"], ("age", "job"))[0].remedy
"did you mean 'Age' for 'age'?"
>>> [str(note) for note in compare_columns("rows.csv", ["age", "job", "Job"], ("age", "job"))]
["rows.csv: column 'Job' is ignored; the model reads 'job'"]
"""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from candide import formatting
from candide.data.notes import Note
from candide.errors import InputError

_MAX_SEARCHED_NAMES = 1000  # unknown names among which a similar one is searched
_MAX_SUGGESTIONS = 3  # suggested spellings in one message
_LONGEST = 100  # letters of a name that a nearest one is searched for


def compare_columns(
    where: str,
    columns: Collection[Any],
    expected: Sequence[Any],
    ignored: Iterable[Any] = (),
    *,
    name_all: bool = False,
) -> list[Note]:
    """Return the warnings on the columns of rows to be scored; raise an error where none is expected.

    ``ignored`` are further names that may be there: the target, or columns that were left out of the model.
    With ``name_all`` every other column is named, also one that resembles none of the model's.
    """
    given, wanted = dict.fromkeys(map(str, columns)), dict.fromkeys(map(str, expected))
    known = {*wanted, *map(str, ignored)}
    unknown = [name for name in given if name not in known][:_MAX_SEARCHED_NAMES]
    absent = [name for name in wanted if name not in given]
    near = similar_names(absent, unknown)
    hint = format_suggestion(near)
    if absent and len(absent) == len(wanted):
        what = f"{where} has none of the model's columns {formatting.format_list(absent)}; it has {formatting.format_list(list(given))}"
        raise InputError(what, value=absent, remedy=hint)
    notes = []
    if absent:
        text = f"{where} lacks {formatting.format_list(absent)}: taken as missing in every row"
        notes.append(Note("column-absent", text, absent[0], hint, tuple(absent)))
    by_letters = {_normalise_name(name): name for name in wanted if name in given} if unknown else {}
    for name in unknown:
        if name not in near.values() and _normalise_name(name) in by_letters:
            text = f"{where}: column {name!r} is ignored"
            remedy = f"the model reads {by_letters[_normalise_name(name)]!r}"
            notes.append(Note("column-unknown", text, name, remedy, (name,)))
    if name_all and unknown:
        told = {*near.values(), *(note.column for note in notes)}
        notes += unread_columns(where, [name for name in unknown if name not in told], wanted)
    return notes


def unread_columns(where: str, columns: Iterable[Any], known: Iterable[Any]) -> list[Note]:
    """Return a warning on the columns that a model does not read, with the nearest names that it does.

    >>> str(unread_columns("the request", ["age", "jobs", "id"], ["age", "job"])[0])
    "the request: columns 'jobs', 'id' are ignored; did you mean 'job' for 'jobs'?"
    """
    names = tuple(map(str, known))
    there = set(names)
    unknown = [name for name in map(str, columns) if name not in there][:_MAX_SEARCHED_NAMES]
    if not unknown:
        return []
    short = [name for name in unknown[:_MAX_SUGGESTIONS] if len(name) <= _LONGEST]
    near = {name: close for name in short if (close := nearest_name(name, names))}
    listed = f"columns {formatting.format_list(unknown)} are" if len(unknown) > 1 else f"column {unknown[0]!r} is"
    return [Note("column-unknown", f"{where}: {listed} ignored", unknown[0], format_suggestion(near), tuple(unknown))]


@lru_cache(1024)
def nearest_name(name: str, known: tuple[str, ...]) -> str:
    """Return the known name that is spelled most like another one, empty where none is.

    >>> nearest_name("Jobs", ("age", "job")), nearest_name("id", ("age", "job"))
    ('job', '')
    """
    return similar_names([name], known[:_MAX_SEARCHED_NAMES]).get(name, "")


def similar_names(absent: Sequence[str], unknown: Sequence[str]) -> dict[str, str]:
    """Return, for some of the absent names, the unknown one that is spelled most like it.

    >>> similar_names(["age", "job"], ["AGE ", "colour"])
    {'age': 'AGE '}
    """
    others = {name.lower(): name for name in unknown}
    pairs = [
        (name, close) for name in absent[:_MAX_SUGGESTIONS] for close in get_close_matches(name.lower(), others, 1)
    ]
    return {name: others[close] for name, close in pairs}


def format_suggestion(similar: dict[str, str]) -> str:
    """Return the question that suggests spellings, empty where there is none.

    >>> format_suggestion({"age": "Age"}), format_suggestion({})
    ("did you mean 'Age' for 'age'?", '')
    """
    listed = ", ".join(f"{given!r} for {wanted!r}" for wanted, given in similar.items())
    return f"did you mean {listed}?" if listed else ""


def _normalise_name(name: str) -> str:
    """Return a name without case, blanks and punctuation."""
    return re.sub(r"[\W_]+", "", name).casefold()
