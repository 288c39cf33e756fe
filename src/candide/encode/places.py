"""Places: where the terms of a document stand in it, letter by letter, for those who show it.

>>> list(located("Free prize!", Tokens(ngrams=(1, 2))))
[('free', ((0, 4),)), ('prize', ((5, 10),)), ('free prize', ((0, 4), (5, 10)))]
"""

import re
from collections.abc import Iterator, Sequence

from candide.encode.tokens import Tokens

Span = tuple[int, int]
_WORD, _SPACES = r"(?u)\b\w\w+\b", r"\s\s+|."


def located(text: str, tokens: Tokens) -> Iterator[tuple[str, tuple[Span, ...]]]:
    """Every term of a document, and the spans of its words or characters; the terms are those of ``terms_of``."""
    units, gap = _units(text, tokens)
    for n in range(tokens.ngrams[0], min(tokens.ngrams[1], len(units)) + 1):
        for i in range(len(units) - n + 1):
            some = units[i : i + n]
            yield gap.join(unit for unit, _ in some), tuple(span for _, span in some)


def _units(text: str, tokens: Tokens) -> tuple[Sequence[tuple[str, Span]], str]:
    """The words or characters of a document with their spans, and what stands between them in a term."""
    small = text.lower() if tokens.lowercase else text
    # A capital may have a small letter of two characters. In all there are as many as the letters have one by one.
    lengths = [len(letter.lower()) for letter in text] if tokens.lowercase else [1] * len(text)
    owner = [i for i, n in enumerate(lengths) for _ in range(n)]
    if tokens.analyzer == "char":
        found = [(" " if len(run[0]) > 1 else run[0], run.span()) for run in re.finditer(_SPACES, small, re.DOTALL)]
    else:
        matches = re.finditer(tokens.pattern or _WORD, small)
        found = [(match[len(match.groups())], match.span(len(match.groups()))) for match in matches]
        stop, longest = set(tokens.stop_words), tokens.max_token_length or len(small)
        found = [(word, span) for word, span in found if word not in stop and len(word) <= longest]
    inside = [(unit, (owner[a], owner[b - 1] + 1) if b > a else (0, 0)) for unit, (a, b) in found]
    return inside, "" if tokens.analyzer == "char" else " "
