"""Texts: the tokens of a document.

>>> read = {"analyzer": "word", "lowercase": True, "ngrams": [1, 2], "stop_words": [], "bits": 0, "signed": False}
>>> count_tokens(read, "Free, FREE prize")
Counter({'free': 2, 'prize': 1, 'free free': 1, 'free prize': 1})
"""

import math
import re
from collections import Counter
from typing import Any

WORD, SPACES = re.compile(r"(?u)\b\w\w+\b"), re.compile(r"\s\s+")
COUNT_TRANSFORMS = (float, lambda n: 1.0, lambda n: 1.0 + math.log(n))  # plain, binary, sublinear


def split_tokens(read: dict[str, Any], value: Any) -> list[str]:
    """The tokens of a text or of a list of words: n-grams of words, of characters, or of characters within words."""
    within = read["analyzer"] == "char_wb"
    if isinstance(value, list | tuple):
        units = [str(word) for word in value]
    else:
        text = value.lower() if read["lowercase"] else value
        if read["analyzer"] == "char":
            return join_runs(SPACES.sub(" ", text), read["ngrams"], "")
        own = WORD if read.get("pattern") is None else re.compile(read["pattern"])
        units = text.split() if within else own.findall(text)
    if within:
        return [term for word in units for term in join_runs(f" {word} ", read["ngrams"], "") or [f" {word} "]]
    stop, longest = set(read["stop_words"]), read.get("max_token_length") or math.inf
    return join_runs([word for word in units if word not in stop and len(word) <= longest], read["ngrams"], " ")


def join_runs(units: Any, ngrams: list[int], gap: str) -> list[str]:
    lengths = range(ngrams[0], min(ngrams[1], len(units)) + 1)
    return [gap.join(units[i : i + n]) for n in lengths for i in range(len(units) - n + 1)]


def count_tokens(read: dict[str, Any], value: Any) -> Counter:
    """How often each token occurs in a text, by its key."""
    return Counter(
        split_tokens(read, value) if not read["bits"] else [hash_bucket(read, t) for t in split_tokens(read, value)]
    )


def hash_bucket(read: dict[str, Any], token: str) -> str:
    hashed = murmur(token.encode("utf-8", "surrogatepass"))
    return f"{abs(hashed) % (1 << read['bits'])}{'-' if read['signed'] and hashed < 0 else ''}"


def murmur(key: bytes) -> int:
    """MurmurHash3 of 32 bits (Appleby), seed 0, as a signed number."""
    full, h = 0xFFFFFFFF, 0
    padded = key + bytes(-len(key) % 4)
    for i in range(0, len(padded), 4):
        k = int.from_bytes(padded[i : i + 4], "little") * 0xCC9E2D51 & full
        h ^= (k << 15 | k >> 17) * 0x1B873593 & full
        if i + 4 <= len(key):  # the last, incomplete word is not mixed
            h = ((h << 13 | h >> 19) & full) * 5 + 0xE6546B64 & full
    h ^= len(key)
    h = (h ^ h >> 16) * 0x85EBCA6B & full
    h = (h ^ h >> 13) * 0xC2B2AE35 & full
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
