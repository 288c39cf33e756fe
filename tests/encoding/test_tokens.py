"""Terms are CountVectorizer's, to the last word; the compiled loops and their Python twin agree on anything at all."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from tests import tables

from candide.data.documents import Documents
from candide.encoding import tokens as text
from candide.encoding.tokens import Tokens, count_tokens, tokenize
from candide.errors import InputError, UnknownNameError
from candide.kernels import text as kernel
from candide.kernels.text import TokenKernel, hash_to_bucket

CORPORA = ["sms_spam", "newsgroups20", "reuters_r8", "sentence_polarity"]
NASTY = [
    "İstanbul", "ß", "ΟΔΥΣΣΕΥΣ", "Σ", "ς", "ǅ", "ﬁn", "Ⱥ", "ẞ", "naïve", "e\u0301te\u0301", "\u0307", "²³", "½",
    "٣٤", "नमस्ते", "日本語", "👍🏽", "👨‍👩‍👧", "\u200f", "\u202e", "\x00", "a\x00b", "\ud800", "x\udfffy",
    "\U0010ffff", "\xa0", "\u3000", "\x1c",
    "_", "__init__", "l'été", "A", "AB", "K", "\u212a", "\u2028", "\r\n", "  ", "\t", "Å", "\u01c5\u0130",
]  # fmt: skip
texts = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=30),
    st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=6), st.just(" ")), max_size=12).map("".join),
)
settings_of = st.builds(
    Tokens,
    analyzer=st.sampled_from(["word", "char", "char_wb"]),
    lowercase=st.booleans(),
    ngrams=st.sampled_from([(1, 1), (1, 2), (2, 3), (1, 4), (3, 5)]),
    stop_words=st.sampled_from([(), ("ab", "i̇stanbul", "naïve")]),
    max_token_length=st.sampled_from([None, 3]),
)


def counted(documents, tokens):
    """Every term of some documents with its count and its number of documents."""
    found = count_tokens(
        Documents.from_column(documents), np.zeros(len(documents), np.intp), None, n_classes=1, tokens=tokens
    )
    cells = zip(found.word.tolist(), found.total.tolist(), found.documents.tolist(), strict=True)
    keys = found.keys()
    return {keys[i].decode("utf-8", "surrogatepass"): (n, d) for i, n, d in cells}


def by_definition(documents, tokens):
    total, have = Counter(), Counter()
    for document in documents:
        terms = [] if document is None else tokenize(document, tokens)
        total.update(terms)
        have.update(set(terms))
    return {term: (float(n), float(have[term])) for term, n in total.items()}


# scikit-learn ---------------------------------------------------------------------------------------------------------


@pytest.mark.all_cases
@pytest.mark.parametrize("ngrams", [(1, 1), (1, 2)], ids=["words", "bigrams"])
@pytest.mark.parametrize("name", CORPORA)
def test_terms_and_counts_are_those_of_countvectorizer(name, ngrams):
    rows = pq.read_table(tables.corpus(name))
    documents, labels = rows["text"].to_pylist(), np.array(rows["class"].to_pylist())
    classes, y = np.unique(labels, return_inverse=True)
    theirs = CountVectorizer(ngram_range=ngrams)
    X = theirs.fit_transform(documents)
    member = csr_array((np.ones(len(y)), (y, np.arange(len(y)))))
    for column in (documents, rows["text"]) if kernel.compiled else (documents,):
        found = count_tokens(
            Documents.from_column(column), y, None, n_classes=len(classes), tokens=Tokens(ngrams=ngrams)
        )
        names = found.keys()
        words = [key.decode() for key in names]
        assert len(words) == len(theirs.vocabulary_)
        place = np.array([theirs.vocabulary_[word] for word in words])
        for mine, matrix in ((found.total, X), (found.documents, X > 0)):
            mine = csr_array((mine, place[found.word], found.classes), (len(classes), X.shape[1]))
            assert abs(mine - member @ matrix.astype(float)).max() == 0
        np.testing.assert_array_equal(found.length, np.bincount(y, np.asarray(X.sum(axis=1)).ravel()))


@pytest.mark.parametrize("documents", ["sms_spam", "made"])
def test_characters_within_words_are_those_of_countvectorizer(documents):
    if documents == "made":
        documents = ["我想喝茶 你呢", "สวัสดีครับ", "a bb\tccc\n\ndddd  ", "", " \u3000 ", "İI " * 3, "x" * 70_000]
    else:
        documents = pq.read_table(tables.corpus("sms_spam"))["text"].to_pylist()
    for ngrams in [(3, 5), (1, 2), (4, 4)]:
        theirs = CountVectorizer(analyzer="char_wb", ngram_range=ngrams)
        n = np.asarray(theirs.fit_transform(documents).sum(axis=0)).ravel()
        found = counted(documents, Tokens("char_wb", ngrams=ngrams))
        assert {term: total for term, (total, _) in found.items()} == {
            term: n[at] for term, at in theirs.vocabulary_.items()
        }


@given(st.lists(texts, min_size=1, max_size=6), settings_of)
def test_the_definition_is_countvectorizers(documents, tokens):
    analyse = CountVectorizer(
        analyzer=tokens.analyzer,
        lowercase=tokens.lowercase,
        ngram_range=tokens.ngrams,
        stop_words=list(tokens.stop_words) or None,
    ).build_analyzer()
    if tokens.max_token_length is None or tokens.analyzer != "word":
        for document in documents:
            assert Counter(tokenize(document, tokens)) == Counter(analyse(document))


@given(st.lists(texts, max_size=8))
def test_hashed_terms_are_those_of_hashingvectorizer(documents):
    documents = [d.encode("utf-8", "replace").decode() for d in documents]
    for signed in (False, True):
        tokens = Tokens(bits=4, signed=signed)
        found = count_tokens(
            Documents.from_column(documents), np.zeros(len(documents), np.intp), None, n_classes=1, tokens=tokens
        )
        mine = np.zeros(16)
        mine[[int.from_bytes(found.keys()[i], "little") for i in found.word]] = found.total
        theirs = HashingVectorizer(n_features=16, norm=None, alternate_sign=signed).transform(documents or [""])
        np.testing.assert_array_equal(mine, np.asarray(theirs.sum(axis=0)).ravel())


# Compiled and twin ----------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.none(), texts), max_size=8), settings_of)
def test_counting_python_strings_follows_the_definition(documents, tokens):
    assert counted(documents, tokens) == by_definition(documents, tokens)


@given(
    st.lists(st.one_of(st.none(), texts), max_size=8),
    settings_of,
    st.sampled_from([pa.string(), pa.large_string()]),
)
def test_counting_arrow_strings_follows_the_definition(documents, tokens, kind):
    sound = [d if d is None else d.encode("utf-8", "replace").decode() for d in documents]
    padded = pa.array(["lead", None, *sound, "tail"], kind)
    assert counted(padded[2 : 2 + len(sound)], tokens) == by_definition(sound, tokens)


@given(st.lists(st.binary(max_size=40), max_size=6), st.sampled_from(["replace", "ignore"]), settings_of)
def test_bytes_are_decoded_by_the_rule(documents, errors, tokens):
    tokens = Tokens(tokens.analyzer, tokens.lowercase, tokens.ngrams, errors=errors)
    want = by_definition([d.decode("utf-8", errors) for d in documents], tokens)
    assert counted(documents, tokens) == want
    assert counted(pa.array(documents, pa.binary()), tokens) == want


@given(st.binary(max_size=12))
def test_invalid_utf8_is_an_error_that_names_the_row(document):
    try:
        document.decode()
    except UnicodeDecodeError:
        for column in ([b"fine", document], pa.array([b"fine", document], pa.binary())):
            with pytest.raises(InputError, match=r"row 1: byte 0x.. at position \d+ is not valid UTF-8"):
                counted(column, Tokens())
    else:
        assert counted([document], Tokens()) == by_definition([document.decode()], Tokens())


@given(st.lists(st.tuples(texts, st.integers(0, 2), st.sampled_from([0.0, 0.5, 2.0])), max_size=8), st.booleans())
def test_compiled_and_reference_kernel_count_classes_and_weights_equally(rows, sublinear):
    documents, y, weight = ([r[i] for r in rows] for i in range(3))
    y, weight, tokens = np.array(y, np.intp), np.array(weight, float), Tokens(sublinear=sublinear)
    keys = [[t.encode("utf-8", "surrogatepass") for t in tokenize(d, tokens)] for d in documents]
    order = np.argsort(y, kind="stable")
    counts = TokenKernel(bits=0, signs=False).count(
        keys, order, y, weight, n_classes=3, manner=tokens.count_mode, signed=False
    )
    reference = text.CountedTokens(*counts)
    compiled = count_tokens(Documents.from_column(documents), y, weight, n_classes=3, tokens=tokens)
    for c in range(3):
        tables = []
        for found in (compiled, reference):
            at, names = slice(found.classes[c], found.classes[c + 1]), found.keys()
            cells = zip(found.word[at], found.total[at], found.documents[at], strict=True)
            tables.append({names[i]: (n, d) for i, n, d in cells})
        assert tables[0].keys() == tables[1].keys()
        for key, (n, d) in tables[0].items():
            assert (n, d) == pytest.approx(tables[1][key], rel=1e-14)
    np.testing.assert_allclose(compiled.length, reference.length, rtol=1e-13)


@given(st.lists(texts, max_size=6), settings_of, st.sampled_from([0, 3]))
def test_sparse_rows_are_the_counts_of_each_document(documents, tokens, bits):
    tokens = Tokens(tokens.analyzer, tokens.lowercase, tokens.ngrams, bits=bits)
    found = count_tokens(
        Documents.from_column(documents), np.zeros(len(documents), np.intp), None, n_classes=1, tokens=tokens
    )
    words = kernel.Words(found.letters, found.starts)
    times, place, ends = text.token_rows(words, Documents.from_column(documents), tokens)
    for row, document in enumerate(documents):
        keys = [t.encode("utf-8", "surrogatepass") for t in tokenize(document, tokens)]
        if bits:
            keys = [hash_to_bucket(key, bits)[0] for key in keys]
        mine = slice(ends[row], ends[row + 1])
        assert {found.keys()[i]: n for i, n in zip(place[mine], times[mine], strict=True)} == Counter(keys)


def test_every_character_has_the_case_and_kind_that_python_gives_it():
    tabled = kernel.character_table(True).tolist()
    info = [*tabled, *range(len(tabled), 0x110000)]  # what has no entry is only itself
    assert [c for c in range(0x110000) if info[c] & kernel.SPECIAL] == [0x130, 0x3A3]
    for c in range(0x110000):
        low = chr(c).lower()
        if not info[c] & kernel.SPECIAL:
            assert len(low) == 1
            assert info[c] & 0x1FFFFF == ord(low)
            assert bool(info[c] & kernel.WORD) == (low.isalnum() or low == "_")
        assert bool(info[c] & kernel.SPACE) == chr(c).isspace()


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [[], [""], [None, float("nan")], ["the", " \t\n"], ["a", "I"], ["\x00", "\u200f"]])
def test_documents_without_terms(column):
    assert counted(column, Tokens(stop_words=("the",))) == {}


def test_a_token_of_ten_megabytes():
    long = "Ab" * 5_000_000
    assert counted([f"x {long} yz yz"], Tokens(ngrams=(1, 2))) == by_definition(
        [f"x {long} yz yz"], Tokens(ngrams=(1, 2))
    )
    assert counted([long], Tokens(max_token_length=20)) == {}
    n, ends = len(long) - 3, {" ab": 1, "ab ": 1, " aba": 1, "bab ": 1}
    want = {"aba": n // 2 + 1, "bab": n // 2 + 1, "abab": n // 2 + 1, "baba": n // 2}
    assert {term: total for term, (total, _) in counted([long], Tokens("char_wb", ngrams=(3, 4))).items()} == {
        **want,
        **ends,
    }


def test_a_document_of_a_hundred_megabytes():
    unit = "Lorem ipsum 0815, dolor — sit. "
    n = 100_000_000 // len(unit.encode()) if kernel.compiled else 1000
    for column in ([unit * n], pa.array([unit * n])):
        found = counted(column, Tokens(ngrams=(1, 2)))
        assert (found["lorem"], found["sit lorem"]) == ((n, 1), (n - 1, 1))
        assert len(found) == 10


def test_what_is_not_a_document_is_named_with_its_row():
    with pytest.raises(InputError, match=r"row 1: 3\.5 is not a document"):
        counted(["fine", 3.5], Tokens())
    with pytest.raises(InputError, match="a single str where documents are expected"):
        Documents.from_column("one document")
    with pytest.raises(InputError, match="int64 cannot hold documents"):
        Documents.from_column(pa.array([1, 2]))


def test_lists_of_words_and_of_numbers_are_taken_as_divided():
    assert counted([["New York", "a"], ["a"]], Tokens()) == {"New York": (1, 1), "a": (2, 2)}
    assert counted([[7, 7, 12], np.array([12])], Tokens()) == {"7": (2, 1), "12": (2, 2)}
    assert counted(pa.array([[7, 7, 12], None]), Tokens()) == {"7": (2, 1), "12": (1, 1)}


def test_given_words_are_words_of_which_characters_are_taken():
    assert counted([["ab", 7]], Tokens("char_wb")) == dict.fromkeys([" ab", "ab ", " ab ", " 7 "], (1, 1))


def test_usual_runs_are_those_of_the_units():
    assert [Tokens(analyzer).ngrams for analyzer in ("word", "char", "char_wb")] == [(1, 1), (1, 1), (3, 5)]


def test_an_own_pattern():
    assert counted(["b-2 or not b-2"], Tokens(pattern=r"\b\w-\d\b")) == {"b-2": (2, 1)}
    assert counted(["id=7 id=8"], Tokens(pattern=r"id=(\d)")) == {"7": (1, 1), "8": (1, 1)}


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ({"analyzer": "words"}, "did you mean 'word'"),
        ({"errors": "skip"}, "rule for invalid UTF-8"),
        ({"stop_words": "english"}, "pass the words themselves"),
        ({"ngrams": (2, 1)}, "shortest <= longest"),
        ({"ngrams": 2}, "pass a pair"),
        ({"bits": 29}, "2\\*\\*28"),
        ({"signed": True}, "need hashed tokens"),
        ({"max_token_length": 0}, "pass 1 or more"),
        ({"pattern": "("}, "not a valid regular expression"),
        ({"pattern": "(a)(b)"}, "2 groups"),
        ({"pattern": "a", "analyzer": "char"}, "no meaning"),
        ({"pattern": "a", "analyzer": "char_wb"}, "no meaning"),
    ],
)
def test_settings_that_are_refused(setting, error):
    with pytest.raises((InputError, UnknownNameError), match=error):
        Tokens(**setting)


def test_the_choice_of_kernels_reaches_text():
    code = "from candide.kernels import text; print(text.NAME)"
    for choice, name in (("numpy", "python"), ("auto", kernel.NAME)):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"CANDIDE_KERNELS": choice}
        )
        assert done.stdout.strip() == name or kernel.NAME == "python"
