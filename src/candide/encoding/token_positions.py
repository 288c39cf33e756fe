"""Places: where the terms of a document stand in it, letter by letter, for those who show it.

>>> list(locate_tokens("Free prize!", Tokens(ngrams=(1, 2))))
[('free', ((0, 4),)), ('prize', ((5, 10),)), ('free prize', ((0, 4), (5, 10)))]
"""

import re
from collections.abc import Iterator

from candide.encoding.tokens import Tokens

Span = tuple[int, int]


def locate_tokens(text: str, tokens: Tokens) -> Iterator[tuple[str, tuple[Span, ...]]]:
    """Every term of a document, and the spans of its words or characters; the terms are those of ``terms_of``."""
    gap = " " if tokens.analyzer == "word" else ""
    low, high = tokens.ngrams
    for units in _token_runs(text, tokens):
        # Within words, a word that is shorter than all n-grams is a term itself.
        shortest = min(low, len(units)) if tokens.analyzer == "char_wb" else low
        for n in range(shortest, min(high, len(units)) + 1):
            for i in range(len(units) - n + 1):
                some = units[i : i + n]
                yield gap.join(unit for unit, _ in some), tuple(span for _, span in some)


def _token_runs(text: str, tokens: Tokens) -> Iterator[list[tuple[str, Span]]]:
    """The runs of words or characters, with their spans, inside which terms lie."""
    small = text.lower() if tokens.lowercase else text
    # A capital may have a small letter of two characters. In all there are as many as the letters have one by one.
    lengths = [len(letter.lower()) for letter in text] if tokens.lowercase else [1] * len(text)
    owner = [i for i, n in enumerate(lengths) for _ in range(n)]

    def place(start: int, end: int) -> Span:
        return (owner[start], owner[end - 1] + 1) if end > start else (0, 0)

    if tokens.analyzer == "char":
        found = re.finditer(r"\s\s+|.", small, re.DOTALL)
        yield [(" " if len(run[0]) > 1 else run[0], place(*run.span())) for run in found]
    elif tokens.analyzer == "char_wb":
        for word in re.finditer(r"\S+", small):
            letters = [(small[i], place(i, i + 1)) for i in range(*word.span())]
            yield [(" ", letters[0][1]), *letters, (" ", letters[-1][1])]  # a blank at both ends, which has no place
    else:
        stop, longest = set(tokens.stop_words), tokens.max_token_length or len(small)
        matches = re.finditer(tokens.pattern or r"(?u)\b\w\w+\b", small)
        words = [(match[len(match.groups())], match.span(len(match.groups()))) for match in matches]
        yield [(word, place(*span)) for word, span in words if word not in stop and len(word) <= longest]
