"""Text as an event model: the probabilities of CountVectorizer with scikit-learn's classifiers, and laws of its own."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import dirichlet_multinomial
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from tests import tables

import candide as cd
from candide.conjugate import token_estimates
from candide.data.documents import Documents
from candide.errors import InputError
from candide.events import Text
from candide.events.text import DEFAULT_TEXT
from candide.kernels import text as kernel
from candide.priors import Dirichlet
from candide.tally import TokenCounts

SIZES = {"sms_spam": 5574, "newsgroups20": 4000, "reuters_r8": 4000, "sentence_polarity": 4000}
WORDS = ["ant", "bee", "cat", "dog", "eel"]


@cache
def rows(name):
    table = pq.read_table(tables.corpus(name))
    some = np.random.default_rng(0).permutation(len(table))[: SIZES[name] if kernel.compiled else 600]
    table = table.take(some)
    return table["text"].to_pylist(), np.array(table["class"].to_pylist())


def halves(name):
    documents, y = rows(name)
    half = len(y) * 2 // 3
    return documents[:half], y[:half], documents[half:], y[half:]


@pytest.mark.parametrize(
    "ngrams", [pytest.param((1, 1), id="words"), pytest.param((1, 2), id="bigrams", marks=pytest.mark.all_cases)]
)
@pytest.mark.parametrize(
    ("model", "theirs", "settings"),
    [
        ("multinomial", MultinomialNB(), {}),
        ("multinomial", MultinomialNB(alpha=0.01), {"alpha": 0.01}),
        ("bernoulli", BernoulliNB(), {}),
        ("complement", ComplementNB(), {}),
        ("complement", ComplementNB(alpha=0.1, norm=True), {"alpha": 0.1, "norm": True}),
    ],
    ids=lambda x: str(x) if not isinstance(x, dict) else "",
)
@pytest.mark.parametrize("name", SIZES)
def test_probabilities_are_those_of_scikit_learn(name, model, theirs, settings, ngrams):
    train, y, test, _ = halves(name)
    vectorizer = CountVectorizer(ngram_range=ngrams)
    want = theirs.fit(vectorizer.fit_transform(train), y).predict_proba(vectorizer.transform(test))
    ours = cd.TextNB(model, ngrams=ngrams, **settings, weights=None).fit(train, y)
    np.testing.assert_allclose(ours.predict_proba(test), want, rtol=0, atol=1e-9)
    assert ours.predict(test).tolist() == theirs.predict(vectorizer.transform(test)).tolist()


@pytest.mark.parametrize("sublinear", [False, True])
@pytest.mark.parametrize(("model", "theirs"), [("multinomial", MultinomialNB()), ("complement", ComplementNB())])
def test_idf_and_sublinear_counts_are_those_of_tfidftransformer(model, theirs, sublinear):
    train, y, test, _ = halves("sms_spam")
    vectorizer, weigher = CountVectorizer(), TfidfTransformer(norm=None, sublinear_tf=sublinear)
    X = weigher.fit_transform(vectorizer.fit_transform(train))
    want = theirs.fit(X, y).predict_proba(weigher.transform(vectorizer.transform(test)))
    ours = cd.TextNB(model, idf=True, sublinear=sublinear, weights=None).fit(train, y)
    np.testing.assert_allclose(ours.predict_proba(test), want, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("low", "high"), [(0.01, 1.0), (0.0, 0.1), (0.005, 0.2)])
def test_pruning_by_share_is_that_of_countvectorizer(low, high):
    train, y, test, _ = halves("sms_spam")
    vectorizer = CountVectorizer(min_df=low, max_df=high)
    want = MultinomialNB().fit(vectorizer.fit_transform(train), y).predict_proba(vectorizer.transform(test))
    ours = cd.TextNB(weights=None).fit(train, y)
    pruned = ours.with_prior(min_share=low, max_share=high)
    np.testing.assert_allclose(pruned.predict_proba(test), want, rtol=0, atol=1e-9)
    assert pruned.counts_.tallies[0].n_tokens == ours.counts_.tallies[0].n_tokens  # nothing counted is lost


def test_pruning_by_count_keeps_what_occurs_often():
    train, y, test, _ = halves("sms_spam")
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(train)
    often = np.asarray(X.sum(axis=0)).ravel() >= 5
    want = MultinomialNB().fit(X[:, often], y).predict_proba(vectorizer.transform(test)[:, often])
    np.testing.assert_allclose(
        cd.TextNB(min_count=5, weights=None).fit(train, y).predict_proba(test), want, rtol=0, atol=1e-9
    )


def test_hashed_terms_score_as_hashingvectorizer_does():
    train, y, _, _ = halves("sms_spam")
    X = HashingVectorizer(n_features=2**6, norm=None, alternate_sign=False).transform(train)
    for model, theirs in (("multinomial", MultinomialNB()), ("bernoulli", BernoulliNB())):
        want = theirs.fit(X, y).predict_proba(X)
        np.testing.assert_allclose(
            cd.TextNB(model, bits=6, weights=None).fit(train, y).predict_proba(train), want, atol=1e-9
        )


def test_signed_buckets_disturb_less_than_they_are_few():
    train, y, test, truth = halves("sms_spam")
    accuracy = (cd.TextNB(bits=18, signed=True, weights=None).fit(train, y).predict(test) == truth).mean()
    assert accuracy > (cd.TextNB(weights=None).fit(train, y).predict(test) == truth).mean() - 0.01


def few(model, **settings):
    event = Text(model=model, **settings)
    documents = Documents.from_column(["ant bee ant", "cat", None, "dog ant dog", "eel eel bee"])
    return event, TokenCounts.from_rows(documents, np.array([0, 1, 1, 1, 0]), n_classes=2, spec=event.spec(1))


@pytest.mark.parametrize("how", ["mle", "map", "mean"])
def test_the_multinomial_is_a_probability_of_one_term(how):
    event, tally = few("multinomial", prior=Dirichlet(1.5))
    p = np.exp(event.estimate(tally, how=how).log_prob(Documents.from_column(WORDS)))
    np.testing.assert_allclose(p.sum(axis=0), 1.0, rtol=1e-12)
    if how == "mle":
        np.testing.assert_allclose(p[:, 0], [2 / 6, 2 / 6, 0, 0, 2 / 6], rtol=1e-12)


def test_bernoulli_is_a_probability_of_every_set_of_terms():
    event, tally = few("bernoulli")
    sets = [" ".join(w for i, w in enumerate(WORDS) if mask >> i & 1) for mask in range(32)]
    p = np.exp(event.estimate(tally).log_prob(Documents.from_column(sets)))
    np.testing.assert_allclose(p.sum(axis=0), 1.0, rtol=1e-12)


@given(st.lists(st.sampled_from(WORDS), max_size=9))
def test_polya_is_the_dirichlet_multinomial(words):
    event, tally = few("polya")
    fit = event.estimate(tally)
    p = np.exp(fit.log_prob(Documents.from_column([" ".join(words)])))[0]
    x = np.array([words.count(w) for w in tally.token_texts()])
    arrangements = np.exp(gammaln(x.sum() + 1) - gammaln(x + 1).sum())
    have = np.zeros((2, 5))
    have[tally.class_of_cell, tally.word] = tally.documents
    for c in range(2):
        s = token_estimates.fit_concentration(have[c].sum(), tally.n[c, 0], tally.length[c, 0])
        alpha = s * (have[c] + 1.0) / (have[c] + 1.0).sum()
        want = dirichlet_multinomial(alpha, max(1, x.sum())).pmf(x) if x.sum() else 1.0
        assert p[c] * arrangements == pytest.approx(want, rel=1e-8)


def test_repeats_count_less_under_polya():
    documents = [" ".join(["ant"] * 9 + ["bee", "cat"]), "ant bee cat dog", "eel " * 8 + "dog bee", "eel dog cat"] * 10
    y = ["a", "a", "b", "b"] * 10
    burst = ["eel " * 12 + "ant ant"]
    plain, polya = (
        cd.TextNB(m, weights=None).fit(documents, y).predict_log_proba(burst)[0] for m in ("multinomial", "polya")
    )
    assert abs(polya[1] - polya[0]) < abs(plain[1] - plain[0]) / 3


@pytest.mark.parametrize("model", ["multinomial", "bernoulli"])
def test_evidence_is_the_chain_of_predictions(model):
    event = Text(model=model, prior=Dirichlet(0.7))
    documents, y, total = ["ant", "bee", "ant", "ant"], np.zeros(4, np.intp), 0.0
    spec = event.spec(1)
    known = TokenCounts.from_rows(
        Documents.from_column(["ant bee"]), y[:1], n_classes=1, spec=spec
    )  # the vocabulary, then forgotten
    whole = TokenCounts.from_rows(Documents.from_column(documents), y, n_classes=1, spec=spec)
    for i, document in enumerate(documents):
        before = TokenCounts.from_rows(Documents.from_column(documents[:i]), y[:i], n_classes=1, spec=spec)
        counts = {w: (before.class_counts(w)[0][0] if w in before.token_texts() else 0.0) for w in ("ant", "bee")}
        n = i if model == "bernoulli" else sum(counts.values())
        for word, count in counts.items():
            if model == "bernoulli":
                total += np.log(((count if word == document else n - count) + 0.7) / (n + 1.4))
            elif word == document:
                total += np.log((count + 0.7) / (n + 1.4))
    assert event.evidence(whole)[0, 0] == pytest.approx(total, rel=1e-12)
    assert known.n_tokens == 2


def test_a_class_without_words_and_an_absent_document():
    event = Text()
    tally = TokenCounts.from_rows(
        Documents.from_column(["ant bee", ""]), np.array([0, 1]), n_classes=2, spec=event.spec(1)
    )
    for how in ("mle", "mean"):
        got = event.estimate(tally, how=how).log_prob(Documents.from_column(["ant", None, "", "new"]))
        np.testing.assert_allclose(np.exp(got[0]), [0.5, 0.5])
        assert not got[1:].any()


def test_documents_drawn_from_the_model_have_its_words():
    documents, y = ["ant ant ant bee"] * 30, ["a"] * 30
    model = cd.TextNB(weights=None).fit([*documents, "cat cat cat cat"], [*y, "b"])
    drawn, labels = model.sample(200, random_state=0)
    mine = " ".join(d for d, label in zip(drawn, labels, strict=True) if label == "a").split()
    assert mine.count("ant") / len(mine) == pytest.approx(91 / 123, abs=0.06)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"model": "multinomal"}, "did you mean 'multinomial'"),
        ({"min_share": 2}, "share of the documents"),
        ({"bits": 8, "signed": True, "idf": True}, "signed"),
        ({"norm": True}, "complement"),
    ],
)
def test_settings_that_are_refused(settings, error):
    with pytest.raises(InputError, match=error):
        Text(**settings)


@pytest.mark.parametrize("model", ["bernoulli", "complement", "polya"])
def test_models_that_need_a_prior_raise_without_one(model):
    event, tally = few(model)
    with pytest.raises(InputError, match="use estimate='mean'"):
        event.estimate(tally, how="mle")
    with pytest.raises(InputError, match="one alpha"):
        event.estimate(tally, Dirichlet((1.0, 2.0)))


def test_words_that_one_document_has_stay_and_pairs_do_not():
    texts = [f"rare{i} common word" for i in range(60)] + ["common word"]
    tally = TokenCounts.from_rows(
        Documents.from_column(texts), np.zeros(61, np.intp), n_classes=1, spec=DEFAULT_TEXT.spec(1)
    )
    assert set(DEFAULT_TEXT.weighted_counts(tally).tally.keys()) == {b"common", b"word", b"common word"} | {
        f"rare{i}".encode() for i in range(60)
    }
    hashed = replace(DEFAULT_TEXT, bits=20)
    tally = TokenCounts.from_rows(Documents.from_column(texts), np.zeros(61, np.intp), n_classes=1, spec=hashed.spec(1))
    assert hashed.weighted_counts(tally).tally.n_tokens == 3  # of a bucket nobody knows what it was
