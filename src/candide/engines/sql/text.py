"""SQL text: names and values quoted by sqlglot, so that nothing a user wrote reaches SQL unquoted.

>>> identifier('say "hi"; drop'), literal("it's")
('"say ""hi""; drop"', "'it''s'")
"""

from collections.abc import Iterable

from sqlglot import exp


def identifier(name: str, dialect: str = "duckdb") -> str:
    """A column or table name, always quoted."""
    return exp.to_identifier(name, quoted=True).sql(dialect)


def literal(value: str, dialect: str = "duckdb") -> str:
    """A text value."""
    return exp.Literal.string(value).sql(dialect)


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
