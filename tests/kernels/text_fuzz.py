"""The compiled text kernels against their reference, on random documents and settings.

python tests/kernels/text_fuzz.py [SECONDS] [SEED]
"""

import random
import sys
import time
from collections import Counter

import numpy as np

from candide.data.documents import Documents
from candide.encoding.tokens import Tokens, count_tokens, score_documents, token_rows, tokenize
from candide.kernels import text as kernel

PIECES = [
    *"aA zZ09_-.,!?\t\n\r\x00\x1c\x85\xa0",
    *"éÉßñİıſΣςσ日本語😀🙂\u0301\u200f\u202e\u2028\ufeff\udc80\ud800\uffff\U0010ffff",
    "free",
    "Prize",
    "call now",
    "a" * 15,
    "b" * 16,
    "c" * 17,
    "word" * 30,
]


def document(rng):
    """A document of any sort: text of any width, bytes that may be no UTF-8, nothing."""
    sizes = [1, 5, 20], [0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 100], [1000, 5000], [40000]
    size = rng.choice(rng.choices(sizes, [100, 50, 1, 0.1])[0])
    letters = PIECES[: rng.choice([10, 18, len(PIECES)])] + PIECES[-7:]
    text = "".join(rng.choices(letters, k=size))
    sort = rng.random()
    if sort < 0.05:
        return None
    if sort < 0.3:
        return text.encode("utf-8", "surrogatepass" if rng.random() < 0.5 else "replace")[
            : rng.randint(0, 4 * size + 1)
        ]
    if sort < 0.35:
        return rng.randbytes(size)
    return text


def settings(rng):
    """Tokens of any sort."""
    analyzer, low = rng.choices(["word", "char", "char_wb"], [2, 1, 1])[0], rng.randint(1, 4)
    bits = rng.choice([0, 0, 1, 5, 18])
    signed = bool(bits) and rng.random() < 0.5
    return Tokens(
        analyzer=analyzer,
        lowercase=rng.random() < 0.7,
        ngrams=(low, low + rng.randint(0, 4)),
        stop_words=tuple(rng.sample(["free", "aa", "call", "日本", "c" * 17, ""], rng.randint(0, 4))),
        max_token_length=rng.choice([None, None, 1, 2, 16, 10**30]),
        errors=rng.choice(["replace", "ignore"]),
        bits=bits,
        signed=signed,
        sublinear=not signed and rng.random() < 0.3,  # with tokens of two signs in one bucket the order would matter
    )


def columns(rng, texts):
    """The same documents as Python objects, and as an Arrow column where they can be one."""
    import pyarrow as pa

    yield Documents.from_column(texts)
    as_bytes = [t.encode("utf-8", "surrogatepass") if isinstance(t, str) else t for t in texts]
    column = pa.array(as_bytes, pa.large_binary() if rng.random() < 0.5 else pa.binary())
    start = rng.randint(0, len(texts))
    yield Documents.from_column(pa.concat_arrays([column[start:], column]))[len(texts) - start :]


def cells_of(counted):
    """{(class, key): (total, documents)} of a count."""
    keys = counted.keys()
    owner = np.repeat(np.arange(len(counted.classes) - 1), np.diff(counted.classes)).tolist()
    found = zip(owner, counted.word.tolist(), counted.total.tolist(), counted.documents.tolist(), strict=True)
    return {(c, keys[w]): (round(t, 6), round(d, 6)) for c, w, t, d in found}


def keys_of(text, tokens):
    """The terms of a document as keys."""
    return None if text is None else [term.encode("utf-8", "surrogatepass") for term in tokenize(text, tokens)]


def once(rng):
    """One set of documents, counted, listed, scored, merged: by the compiled loops and by the reference."""
    tokens, k = settings(rng), rng.randint(1, 4)
    texts = [document(rng) for _ in range(rng.choice([0, 1, 3, 12]))]
    y = np.array([rng.randrange(k) for _ in texts], np.int64)
    weight = None if rng.random() < 0.5 else np.array([rng.choice([0.0, 0.5, 1.0, 2.0]) for _ in texts])
    for documents in columns(rng, texts):
        mine = count_tokens(documents, y, weight, n_classes=k, tokens=tokens)
        keys = [keys_of(documents.text(i, tokens.errors), tokens) for i in range(len(texts))]
        plain = kernel.TokenKernel(bits=tokens.bits, signs=False)
        w = np.ones(len(y)) if weight is None else weight
        order = np.argsort(y, kind="stable")
        theirs = type(mine)(
            *plain.count(keys, order, y, w, n_classes=k, manner=tokens.count_mode, signed=tokens.signed)
        )
        assert cells_of(mine) == cells_of(theirs)
        np.testing.assert_allclose(mine.length, theirs.length, rtol=1e-9)
        _looked_up(rng, documents, tokens, mine, keys)
    return mine


def _looked_up(rng, documents, tokens, counted, keys):
    """Known terms listed and scored, with some unknown."""
    known = sorted(set(counted.keys()))[:: rng.randint(1, 2)]
    if tokens.signed:
        known = [key + bytes([sign]) for key in known for sign in (0, 1)]
    letters, starts = kernel.join_keys(known)
    words = kernel.Words(letters, starts)
    plain = kernel.TokenKernel(bits=tokens.bits, signs=tokens.signed)
    slow = kernel.ReferenceWords(letters, starts)
    got, want = token_rows(words, documents, tokens), plain.rows(slow, keys)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
    for i in range(len(documents)):
        mine, theirs = (
            {p: x for x, p in zip(r[0][r[2][i] : r[2][i + 1]], r[1][r[2][i] : r[2][i + 1]], strict=True)}
            for r in (got, want)
        )
        assert mine == theirs
    k, n = rng.randint(1, 3), len(known)
    ends = np.concatenate([[0], np.cumsum([rng.choice([0, 1, k]) for _ in known])]).astype(np.int64)
    column = np.concatenate([np.sort(rng.sample(range(k), m)) for m in np.diff(ends)] or [np.empty(0)]).astype(np.int32)
    delta = np.array([rng.gauss(0, 1) for _ in column])
    unit, base = (None if rng.random() < 0.5 else np.array([rng.random() for _ in range(n)]) for _ in range(2))
    out, other, sums = np.zeros((len(documents), k)), np.zeros((len(documents), k)), np.zeros((len(documents), 2))
    manner = rng.choice([kernel.PLAIN, kernel.BINARY, kernel.SUBLINEAR])
    got_sums = score_documents(words, documents, tokens, (ends, column, delta, unit, base), out, manner)
    plain.score(slow, keys, ends, column, delta, unit, base, other, sums, manner=manner)
    np.testing.assert_allclose(out, other, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got_sums, sums, rtol=1e-9, atol=1e-9)


def merged(a, b):
    """Two counts of the same number of classes, added by the compiled loops and by the reference."""
    found = []
    for unite, sum_cells in (
        (kernel.unite, kernel.sum_cells),
        (kernel.reference_unite, kernel.reference_sum_cells),
    ):
        places, new = unite(a.letters, a.starts, b.letters, b.starts)
        n_terms = len(a.starts) - 1 + len(new)
        cells = sum_cells(a[2:6], b[2:6], places, n_terms)
        theirs = b.keys()
        letters, starts = kernel.join_keys(a.keys() + [theirs[i] for i in new.tolist()])
        found.append(cells_of(type(a)(letters, starts, *cells, a.length)))
    assert found[0] == found[1]


def run(seconds, seed):
    """Try for so many seconds; how many sets of documents were tried."""
    assert kernel.compiled is not None, "the kernels are not compiled"
    rng, tried, before, end = random.Random(seed), Counter(), {}, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            counted = once(rng)
            k = len(counted.classes)
            if k in before:
                merged(before[k], counted)
                tried["merged"] += 1
            before[k] = counted
        except Exception as error:
            raise AssertionError(f"set {tried['sets']} of seed {seed}: {error}") from error
        tried["sets"] += 1
    return tried


if __name__ == "__main__":
    print(dict(run(float((sys.argv[1:] or ["60"])[0]), int((sys.argv[2:] or ["0"])[0]))))
