"""Documents: counting and scoring against CountVectorizer + MultinomialNB, with memcpy and a bare byte loop as limits.

The documents are the 20 newsgroups (``CANDIDE_DATA``, else beside the repository), repeated.
"""

import os
import time
from pathlib import Path

import numpy as np

from benchmarks import results
from benchmarks.measure import high_water, peak_megabytes, seconds

FOLDER = Path(os.environ.get("CANDIDE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
FILE = FOLDER / "text" / "newsgroups20.parquet"

_PEAK = """
from benchmarks.measure import high_water
import pyarrow as pa, pyarrow.parquet as pq
rows = pq.read_table({path!r})
column = pa.concat_tables([rows] * {times})["text"].combine_chunks()
documents, y = column.to_pylist(), rows["class"].to_pylist() * {times}
import candide
from candide import TextNB
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
before = high_water(reset=True)
{work}
print(high_water() - before)
"""
_OURS = "TextNB(ngrams=(1, {n}), weights=None).fit(documents, y)"
_THEIRS = "MultinomialNB().fit(CountVectorizer(ngram_range=(1, {n})).fit_transform(documents), y)"
_HASHED = (
    "TextNB(bits={bits}, weights=None).fit(documents, [int(v) % {k} for v in range(len(y))]).predict(documents[:2000])"
)


def run(*, quick: bool = False) -> str:
    """Measure and print everything; return the section for RESULTS.md."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pq.read_table(FILE)
    times = 1 if quick else 3
    column = pa.concat_tables([rows] * times)["text"].combine_chunks()
    documents, y = column.to_pylist(), rows["class"].to_pylist() * times
    megabytes = column.nbytes / 1e6
    print(f"{len(documents):,} documents, {megabytes:.0f} MB")
    lines = _fit(documents, column, y, megabytes, quick) + _predict(documents, y, quick)
    lines += _limits(column, y, megabytes) + _memory(times, quick) + _buckets(documents, times) + _stream(quick)
    head = f"20 newsgroups repeated to {megabytes:.0f} MB, {len(documents):,} documents, 20 classes."
    return f"{head}\n\n" + results.table(["work", "candide", "other", "ratio", "asked"], lines)


def _fit(documents: list, column: object, y: list, megabytes: float, quick: bool) -> list[list[str]]:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    from candide import TextNB

    lines, repeat = [], 1 if quick else 2
    for n, asked in ((1, ("at least 12", "at least 15")), (2, ("at least 10", ""))):
        theirs, strings, arrow = seconds(
            lambda n=n: MultinomialNB().fit(CountVectorizer(ngram_range=(1, n)).fit_transform(documents), y),
            lambda n=n: TextNB(ngrams=(1, n), weights=None).fit(documents, y),
            lambda n=n: TextNB(ngrams=(1, n), weights=None).fit(column, y),
            repeat=repeat,
            budget=120,
        )
        name = "words" if n == 1 else "words and bigrams"
        for what, ours, wish in (("Python strings", strings, asked[0]), ("an Arrow column", arrow, asked[1])):
            text = f"fit {name} from {what}, seconds ({megabytes / ours:.0f} MB/s)"
            lines.append(_line(text, ours, theirs, theirs / ours, wish))
    return lines


def _predict(documents: list, y: list, quick: bool) -> list[list[str]]:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    from candide import TextNB

    vectorizer = CountVectorizer()
    theirs = MultinomialNB().fit(vectorizer.fit_transform(documents), y)
    ours = TextNB(weights=None).fit(documents, y)
    b, a = seconds(
        lambda: theirs.predict(vectorizer.transform(documents)),
        lambda: ours.predict(documents),
        repeat=1 if quick else 2,
    )
    return [_line("predict from Python strings, seconds", a, b, b / a, "at least 10")]


def _limits(column: object, y: list, megabytes: float) -> list[list[str]]:
    from candide.data.documents import Documents
    from candide.encoding.tokens import Tokens, count_tokens
    from candide.kernels import text as kernel

    documents, classes = Documents.from_column(column), np.unique(y, return_inverse=True)[1]
    letters = documents.letters
    assert letters is not None
    to, fold = np.empty_like(letters), kernel.ascii_fold_table(True)
    loops = [lambda: np.copyto(to, letters)]
    loops += [lambda: kernel.compiled.bare(letters, fold)] if kernel.compiled else []
    mine, *limits = seconds(
        lambda: count_tokens(documents, classes, None, n_classes=20, tokens=Tokens()), *loops, repeat=3
    )
    names = ["memcpy", "a byte loop that looks every byte up and does nothing"]
    return [
        _line(f"count words on one core, MB/s, beside {name}", megabytes / mine, megabytes / limit, limit / mine, "")
        for name, limit in zip(names, limits, strict=False)
    ]


def _memory(times: int, quick: bool) -> list[list[str]]:
    lines = []
    for n in (1,) if quick else (1, 2):
        strings, arrow, theirs = (
            peak_megabytes(_PEAK.format(path=str(FILE), times=times, work=work.format(n=n)))
            for work in (_OURS, _OURS.replace("documents", "column"), _THEIRS)
        )
        name = "words" if n == 1 else "words and bigrams"
        for what, ours in (("Python strings", strings), ("an Arrow column", arrow)):
            text = f"memory taken by the fit, {name} from {what}, MB, without the documents"
            lines.append(_line(text, ours, theirs, ours / max(theirs, 1), "at most 0.25"))
    return lines


def _buckets(documents: list, times: int) -> list[list[str]]:
    from candide import TextNB

    lines, y = [], np.arange(len(documents)) % 20
    small, large = seconds(
        lambda: TextNB(bits=18, weights=None).fit(documents, y),
        lambda: TextNB(bits=26, weights=None).fit(documents, y),
        repeat=2,
    )
    lines.append(_line("fit 2**26 buckets, 20 classes, seconds, against 2**18", large, small, large / small, "about 1"))
    for bits, k in ((26, 20), (28, 2)):
        peak = peak_megabytes(_PEAK.format(path=str(FILE), times=times, work=_HASHED.format(bits=bits, k=k)))
        name = f"memory taken by fit and predict with 2**{bits} buckets, {k} classes, MB"
        lines.append(_line(name, peak, 12_000, peak / 12_000, "at most 12,000 MB"))
    return lines


def _stream(quick: bool) -> list[list[str]]:
    """Made documents of 100 words out of a million, a billion words in all, added batch by batch to hashed counts.

    Then the same with pairs of words, and weights that a batch teaches again when the documents have doubled.
    """
    from candide import TextNB
    from candide.data.documents import Documents
    from candide.encoding.tokens import Tokens
    from candide.tally import TallySpec, TokenCounts

    rng, spec = np.random.default_rng(0), TallySpec("token_counts", (Tokens(bits=20),))
    pools = []
    for _ in range(4):
        words = np.char.add("w", (rng.zipf(1.3, (20_000, 100)) % 1_000_000).astype(str))
        pools.append(Documents.from_column([" ".join(row) for row in words.tolist()]))
    y = rng.integers(0, 2, 20_000)
    batches = 10 if quick else 500
    whole = TokenCounts.from_rows(pools[0], y, n_classes=2, spec=spec)
    before, start = high_water(reset=True), time.perf_counter()
    for i in range(1, batches):
        whole = whole + TokenCounts.from_rows(pools[i % 4], y, n_classes=2, spec=spec)
    took = time.perf_counter() - start
    grown = high_water() - before
    tokens = whole.length.sum()
    name = f"{tokens:,.0f} words streamed into 2**20 buckets: million words a second; MB of memory it grew by"
    lines = [_line(name, tokens / took / 1e6, grown, 0.0, "constant memory")]
    model = TextNB(bits=20).partial_fit(pools[0], y)
    before, start = high_water(reset=True), time.perf_counter()
    for i in range(1, batches):
        model.partial_fit(pools[i % 4], y)
    took = time.perf_counter() - start
    summary = model.fitted_.term_weights.training_summary(model.counts_.n_rows)
    name = f"the same, and their pairs, with learned weights ({summary})"
    return [*lines, _line(name, tokens / took / 1e6, high_water() - before, 0.0, "constant memory")]


def _line(name: str, ours: float, other: float, ratio: float, asked: str) -> list[str]:
    line = [name, f"{ours:,.3g}", f"{other:,.3g}", f"{ratio:.2f}", asked]
    print(" | ".join(line), flush=True)
    return line
