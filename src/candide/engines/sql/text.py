"""SQL text: names and values quoted as the standard has it, so that nothing a user wrote reaches SQL unquoted.

>>> identifier('say "hi"; drop'), literal("it's")
('"say ""hi""; drop"', "'it''s'")
"""

from collections.abc import Iterable


def identifier(name: str) -> str:
    """A column or table name, always quoted."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """A text value."""
    return "'" + value.replace("'", "''") + "'"


def literals(values: Iterable[str]) -> str:
    """A list of text values.

    >>> literals(["a", "it's"])
    "['a', 'it''s']"
    """
    return f"[{', '.join(map(literal, values))}]"


def tuple_of(values: Iterable[str]) -> str:
    """Text values for IN.

    >>> tuple_of(["a"])
    "('a')"
    """
    return f"({', '.join(map(literal, values))})"
