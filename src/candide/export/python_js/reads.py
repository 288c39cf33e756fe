"""How values are read: a number, a code (-1 missing, the number of levels if unseen), scores or the tokens of a text.

>>> READERS["grid"]({"edges": [27, 41]}, {"name": "age", "kind": "number"})("30")
[1]
>>> read = {"analyzer": "word", "lowercase": True, "ngrams": [1, 2], "stop_words": [], "bits": 0, "signed": False}
>>> count_tokens(read, "Free, FREE prize")
Counter({'free': 2, 'prize': 1, 'free free': 1, 'free prize': 1})
"""

import math
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from candide.encoding.tokens import tokenize
from candide.export.python_js.numbers import cholesky, count_below, decode_numbers, interpolate, solve_lower, split_rows
from candide.export.python_js.values import MISSING_LEVEL, find_level, read_number_value, read_text_value
from candide.kernels.text import hash_to_bucket

Reader = Callable[[Any], list[Any]]  # from a value to what a score takes


def split_tokens(read: dict[str, Any], value: Any) -> list[str]:
    """The tokens of a text or of a list of words."""
    return tokenize(value, SimpleNamespace(**{"pattern": None, "max_token_length": None, **read}))


def count_tokens(read: dict[str, Any], value: Any) -> Counter:
    """How often each token occurs in a text, by its key: the token or its hash bucket."""
    tokens = split_tokens(read, value)
    return Counter([hash_bucket(read, token) for token in tokens] if read["bits"] else tokens)


def hash_bucket(read: dict[str, Any], token: str) -> str:
    bucket, sign = hash_to_bucket(token.encode("utf-8", "surrogatepass"), read["bits"])
    return f"{int.from_bytes(bucket, 'little')}{'-' if read['signed'] and sign < 0 else ''}"


def read_grid(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Reader:
    edges = decode_numbers(read["edges"])
    return lambda value: [-1 if (x := read_number_value(column, value)) != x else count_below(edges, x)]


def read_levels(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Reader:
    code, unseen = {place: i for i, place in enumerate(read["levels"])}, len(read["levels"])
    code[MISSING_LEVEL] = -1
    return lambda value: [code.get(find_level(column, value), unseen)]


def read_score(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Reader:
    knots, scores = decode_numbers(read["values"]), shared[read["scores"]]
    return lambda value: [0.0 if (x := read_number_value(column, value)) != x else interpolate(x, knots, scores)]


def read_indicators(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Reader:
    each = list(zip(read["levels"], decode_numbers(read["yes"]), decode_numbers(read["no"]), strict=True))

    def indicators(value: Any) -> list[Any]:
        at = find_level(column, value)
        return [0.0 if at == MISSING_LEVEL else yes if level == at else no for level, yes, no in each]

    return indicators


def read_tokens(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Reader:
    return lambda value: [None if (text := read_text_value(column, value)) is None else count_tokens(read, text)]


READERS: dict[str, Callable[..., Reader]] = {
    "number": lambda read, column, shared: lambda value: [read_number_value(column, value)],
    "grid": read_grid,
    "levels": read_levels,
    "score": read_score,
    "indicators": read_indicators,
    "tokens": read_tokens,
}


def prototype_similarity(read: dict[str, Any]) -> Callable[[list[float]], list[float]]:
    """Decorrelated similarities to the prototypes."""
    held = decode_numbers(read["rows"])
    prototypes, scale = split_rows(held, len(held) // read["n"]), math.sqrt(read["n"])
    factor = -0.5 / read["length_scale"] ** 2

    def similarity(a: list[float], b: list[float]) -> float:
        return math.exp(factor * math.dist(a, b) ** 2)

    lower = [[*(similarity(a, b) for b in prototypes[:i]), 1.0 + read["ridge"]] for i, a in enumerate(prototypes)]
    root = cholesky(lower)
    return lambda row: [z * scale for z in solve_lower(root, [similarity(each, row) for each in prototypes])]
