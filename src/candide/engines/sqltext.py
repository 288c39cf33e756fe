"""SQL text: names and values quoted by sqlglot, so that nothing a user wrote reaches SQL unquoted.

>>> identifier('say "hi"; drop'), literal("it's")
('"say ""hi""; drop"', "'it''s'")
"""

from sqlglot import exp


def identifier(name: str, dialect: str = "duckdb") -> str:
    """A column or table name, always quoted."""
    return exp.to_identifier(name, quoted=True).sql(dialect)


def literal(value: str, dialect: str = "duckdb") -> str:
    """A text value."""
    return exp.Literal.string(value).sql(dialect)
