"""TextNB: the scikit-learn face of documents, whatever holds them."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests import tables

import candide as cd
from candide.errors import InputError, NotCountedError
from candide.kernels import text as kernel

DOCUMENTS = ["Free prize, call now", "See you at five", "Free call", "five more to see", "prize prize prize", "you see"]
LABELS = ["spam", "ham", "spam", "ham", "spam", "ham"]
NEW = ["a free prize", "see you", "", "unheard of"]


@pytest.fixture(scope="module")
def model():
    return cd.TextNB(weights=None).fit(DOCUMENTS, LABELS)


@pytest.mark.parametrize(
    "hold",
    [
        tuple,
        lambda x: np.array(x, object),
        np.array,
        lambda x: np.array(x, object)[:, None],
        pd.Series,
        lambda x: pd.Series(x, dtype="string[pyarrow]"),
        lambda x: pd.DataFrame({"body": x}),
        pl.Series,
        lambda x: pl.DataFrame({"body": x}),
        lambda x: {"body": x},
        pa.array,
        lambda x: pa.chunked_array([x[:2], x[2:]]),
        lambda x: pa.array(x, pa.large_string()),
        lambda x: pa.array(x, pa.string_view()),
        lambda x: pa.array(x).dictionary_encode(),
        lambda x: [d.encode() for d in x],
        iter,
    ],
)
def test_whatever_holds_the_documents(model, hold):
    other = cd.TextNB(weights=None).fit(hold(DOCUMENTS), LABELS)
    np.testing.assert_array_equal(other.predict_proba(hold(NEW)), model.predict_proba(NEW))


def test_word_numbers_are_words(model):
    words = sorted({w for d in DOCUMENTS for w in d.lower().replace(",", "").split() if len(w) > 1})
    numbers = [[words.index(w) for w in d.lower().replace(",", "").split() if len(w) > 1] for d in DOCUMENTS]
    other = cd.TextNB(weights=None).fit(numbers, LABELS)
    want = model.predict_proba([DOCUMENTS[0], "see see"])
    np.testing.assert_allclose(other.predict_proba([numbers[0], [words.index("see")] * 2]), want, rtol=1e-12)


def test_the_contract(model):
    assert model.classes_.tolist() == ["ham", "spam"]
    assert model.predict(NEW[:2]).tolist() == ["spam", "ham"]
    assert model.score(DOCUMENTS, LABELS) == 1.0
    np.testing.assert_allclose(model.predict_proba(NEW).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_proba(NEW)[2:], 0.5)  # nothing known of these but the class shares
    np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW)), model.predict_proba(NEW))
    assert model.predict([]).tolist() == []
    with pytest.raises(NotFittedError):
        cd.TextNB(weights=None).predict(NEW)
    copy = clone(cd.TextNB("complement", ngrams=(1, 2), stop_words=["the"]))
    assert copy.get_params()["ngrams"] == (1, 2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(NEW), model.predict_proba(NEW))


def test_it_works_in_pipelines_and_searches():
    strip = FunctionTransformer(lambda docs: [d.replace("call", "") for d in docs])
    assert make_pipeline(strip, cd.TextNB(weights=None)).fit(DOCUMENTS, LABELS).predict(["free"]).tolist() == ["spam"]
    assert cross_val_score(cd.TextNB(weights=None), DOCUMENTS * 3, LABELS * 3, cv=3).mean() > 0.9
    search = GridSearchCV(
        cd.TextNB(weights=None), {"alpha": [0.01, 1.0], "ngrams": [(1, 1), (1, 2)], "model": ["complement"]}, cv=3
    )
    assert search.fit(DOCUMENTS * 3, LABELS * 3).best_score_ > 0.9


@pytest.mark.parametrize("settings", [{}, {"model": "bernoulli", "ngrams": (1, 2)}, {"bits": 6}])
def test_parts_add_up_and_come_off_again(settings):
    whole = cd.TextNB(**settings, weights=None).fit(DOCUMENTS, LABELS)
    chunks = cd.TextNB(**settings, weights=None)
    for i in range(0, 6, 2):
        chunks.partial_fit(DOCUMENTS[i : i + 2], LABELS[i : i + 2])
    a, b = (
        cd.TextNB(**settings, weights=None).partial_fit(DOCUMENTS[s], LABELS[s]) for s in (slice(0, 3), slice(3, 6))
    )
    for other in (chunks, a + b, sum([a, b]), a + b + a - a):
        np.testing.assert_allclose(other.predict_proba(NEW), whole.predict_proba(NEW), rtol=1e-12)
    with pytest.raises(NotCountedError, match=r"token b?'"):
        a - cd.TextNB(**settings, weights=None).partial_fit(["unheard words"], ["spam"])


def test_another_prior_needs_no_documents(model):
    want = cd.TextNB("bernoulli", alpha=0.1, class_prior="uniform").fit(DOCUMENTS, LABELS)
    got = model.with_prior(0.1, class_prior="uniform", model="bernoulli")
    np.testing.assert_array_equal(got.predict_proba(NEW), want.predict_proba(NEW))
    with pytest.raises(InputError, match="ngrams: this changes what is counted"):
        model.with_prior(ngrams=(1, 2))


def test_top_terms_are_the_largest_log_odds(model):
    [first, second, *_] = model.top_words("spam", 6)
    assert (first.word, first.count, first.other_count) == ("prize", 4.0, 0.0)
    n, rest, v = 9, 10, 10  # terms of spam, of ham, and different ones
    assert first.log_odds == pytest.approx(np.log((4 + 1) / (n + v) / ((0 + 1) / (rest + v))))
    assert {second.word, model.top_words("spam", 6)[2].word} == {"call", "free"}
    assert model.top_words("ham", 1)[0].word == "see"
    assert len(model.top_words("ham", 100)) == v
    with pytest.raises(InputError, match="unknown class 'spa'; did you mean 'spam'"):
        model.top_words("spa")


def test_weights_are_copies():
    weighed = cd.TextNB(weights=None).fit(DOCUMENTS, LABELS, sample_weight=[2, 1, 0, 1, 1, 3])
    copies = [0, 0, 1, 3, 4, 5, 5, 5]
    want = cd.TextNB(weights=None).fit([DOCUMENTS[i] for i in copies], [LABELS[i] for i in copies])
    np.testing.assert_allclose(weighed.predict_proba(NEW), want.predict_proba(NEW), rtol=1e-12)


def test_a_model_file_keeps_it(model, tmp_path):
    other = cd.TextNB(stop_words=list(ENGLISH_STOP_WORDS), ngrams=(1, 2), idf=True, weights=None).fit(DOCUMENTS, LABELS)
    for each in (model, other):
        each.save(tmp_path / "text.candide")
        loaded = cd.load(tmp_path / "text.candide")
        np.testing.assert_array_equal(loaded.predict_proba(NEW), each.predict_proba(NEW))
        frame = cd.NaiveBayes.from_fitted(loaded.fitted_)  # the same counts as a table of one column
        np.testing.assert_array_equal(frame.predict_proba({"text": NEW}), each.predict_proba(NEW))


@pytest.mark.parametrize(
    ("X", "error"),
    [
        ("one document", "a single str"),
        (np.eye(6), "takes documents"),
        (pd.DataFrame({"a": DOCUMENTS, "b": DOCUMENTS}), "one column of documents, got 2"),
        ([1.5] * 6, r"\(row 0\): 1\.5 is not a document"),
        ([], r"0 sample\(s\)"),
        (DOCUMENTS[:5], "inconsistent numbers"),
    ],
)
def test_what_is_refused(X, error):
    with pytest.raises(InputError, match=error):
        cd.TextNB(weights=None).fit(X, LABELS)


# Accuracy on real documents: one set of options each, found in docs/how-to/text.md -----------------------------------

needs_speed = pytest.mark.skipif(kernel.compiled is None, reason="takes minutes without the compiled loops")


def corpus(name):
    rows = pq.read_table(tables.corpus(name))
    return (np.array(rows[c].to_pylist(), object) for c in ("text", "class", "split"))


@needs_speed
def test_spam_in_five_folds():
    documents, y, _ = corpus("sms_spam")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    assert cross_val_score(cd.TextNB(weights=None), documents, y, cv=folds).mean() >= 0.986


@needs_speed
@pytest.mark.parametrize(
    ("name", "settings", "least"),
    [
        ("newsgroups20", {"model": "complement", "ngrams": (1, 2), "sublinear": True, "alpha": 0.1}, 0.85),
        ("reuters_r8", {"model": "complement", "ngrams": (1, 2)}, 0.96),
    ],
)
def test_official_test_sets(name, settings, least):
    """With the options that cross-validation on the training documents chooses (``python -m benchmarks corpora``)."""
    documents, y, split = corpus(name)
    train, test = split == "train", split == "test"
    model = cd.TextNB(**settings, weights=None).fit(documents[train], y[train])
    assert (model.predict(documents[test]) == y[test]).mean() >= least
