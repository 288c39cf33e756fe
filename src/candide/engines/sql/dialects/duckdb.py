"""How DuckDB spells what is its own: compensated sums, histograms, the codes of an enumeration."""

from sqlglot import exp

from candide.engines.sql.dialect import Dialect, Expr, call, days_of_seconds, number
from candide.rows.labels import Labels
from candide.rows.spelling import BLANKS

_FINE = "TIMESTAMPTZ_NS"  # which no function takes
_ZONED = ("TIMESTAMP WITH TIME ZONE", _FINE)
IS_ZONED = f"TYPEOF({{}}) IN {_ZONED}"
_NUMBERS = "'^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN|VARCHAR|JSON|ENUM.*|\"NULL\")$'"
_BLANKS = ", ".join(f"CHR({ord(blank)})" for blank in BLANKS)


class DuckDBDialect(Dialect):
    name = "duckdb"
    read = (  # of text without blanks around it, too
        f"COALESCE(TRY_CAST({{}} AS DOUBLE), TRY_CAST(TRIM(CAST({{}} AS VARCHAR), CONCAT({_BLANKS})) AS DOUBLE))"
    )
    read_typed = (  # TYPEOF of a column is a constant, and the other branches cost nothing
        f"CASE WHEN REGEXP_MATCHES(TYPEOF({{}}), {_NUMBERS}) THEN {read} "
        f"WHEN {IS_ZONED} THEN EPOCH(TRY_CAST({{}} AS TIMESTAMPTZ)) / 86400e0 "
        "WHEN REGEXP_MATCHES(TYPEOF({}), '^(DATE|TIMESTAMP)') THEN EPOCH(TRY_CAST({} AS TIMESTAMP)) / 86400e0 "
        "WHEN TYPEOF({}) LIKE 'TIME%' THEN EPOCH(TRY_CAST({} AS TIME)) / 86400e0 "
        "WHEN TYPEOF({}) = 'INTERVAL' THEN EPOCH(TRY_CAST({} AS INTERVAL)) / 86400e0 "
        "WHEN {} IS NOT NULL THEN ERROR('column ' || {name} || ': cannot read ' || TYPEOF({}) || ' as a number') END"
    )
    grouping_sets = True

    def total(self, x: Expr) -> Expr:
        return call("fsum", x)  # compensated

    def mean(self, x: Expr) -> Expr:
        return call("favg", x)  # plain avg loses digits at mean 1e8

    def variance(self, x: Expr) -> Expr:
        return exp.VariancePop(this=x)

    def log_gamma(self, x: Expr) -> Expr:
        return call("lgamma", x)

    def days(self, x: Expr, kind: str) -> Expr:
        return days_of_seconds(call("epoch", exp.cast(x, "TIMESTAMPTZ") if kind == _FINE else x))

    def hash(self, x: Expr) -> Expr:
        return call("hash", x)

    def hex(self, x: Expr, digits: int) -> Expr:
        return exp.cast(exp.Concat(expressions=[exp.Literal.string("0x"), call("left", x, number(digits))]), "INT")

    def level(self, x: Expr, kind: str) -> Expr:
        """Finer and zoned times as timestamps in UTC, a float by its shortest decimal, of JSON what it says."""
        if kind in _ZONED:
            return call("make_timestamp", call("epoch_us", exp.cast(x, "TIMESTAMPTZ")))
        if kind in ("FLOAT", "TIME_NS", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S"):
            whole = {"FLOAT": "DOUBLE"}.get(kind, kind.partition("_")[0])
            return exp.cast(exp.cast(x, "TEXT") if kind == "FLOAT" else x, whole)
        if kind == "JSON":
            return call("json_extract_string", x, exp.Literal.string("$"))
        return x if kind == "INTERVAL" else super().level(x, kind)

    def histogram(self, x: Expr) -> Expr:
        return call("histogram", x)

    def code(self, x: Expr, levels: Labels) -> Expr:
        """In a column that its file holds as a dictionary each word is looked up once."""
        words = exp.DataType(this=exp.DataType.Type.ENUM, expressions=[exp.Literal.string(v) for v in levels.values])
        known = call("enum_code", exp.TryCast(this=x, to=words))
        code = exp.Coalesce(this=exp.cast(known, "INT"), expressions=[exp.Literal.number(len(levels))])
        absent = exp.If(this=exp.Is(this=x.copy(), expression=exp.Null()), true=exp.Literal.number(-1))
        return exp.Case(ifs=[absent], default=code)
