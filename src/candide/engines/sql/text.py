"""SQL text: names and values quoted as the standard has it, so that nothing a user wrote reaches SQL unquoted.

>>> quote_identifier('say "hi"; drop'), quote_text("it's")
('"say ""hi""; drop"', "'it''s'")
"""

from collections.abc import Iterable


def quote_identifier(name: str) -> str:
    """A column or table name, always quoted."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """A text value."""
    return "'" + value.replace("'", "''") + "'"


def quote_texts(values: Iterable[str]) -> str:
    """A list of text values.

    >>> quote_texts(["a", "it's"])
    "['a', 'it''s']"
    """
    return f"[{', '.join(map(quote_text, values))}]"


def quote_tuple(values: Iterable[str]) -> str:
    """Text values for IN.

    >>> quote_tuple(["a"])
    "('a')"
    """
    return f"({', '.join(map(quote_text, values))})"
