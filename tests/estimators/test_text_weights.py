"""TextNB with weights of words: better answers, honest probabilities, and models that still add."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from tests.tables import corpus

import candide as cd
from candide.data.notes import DataWarning
from candide.errors import InputError
from candide.events.text import DEFAULT_TEXT
from candide.model.settings import WeightedSettings

RNG = np.random.default_rng(0)
COMMON = np.array([f"word{i}" for i in range(40)])
TOPICS = {"tea": ["leaf", "cup", "green"], "rail": ["train", "track", "late"], "sea": ["wave", "salt", "ship"]}


def story(n, seed):
    """Documents whose telling words come in bursts: naive Bayes is far too sure of them."""
    rng = np.random.default_rng(seed)
    y = rng.choice(list(TOPICS), n)
    texts = []
    for label in y:
        topic = label if rng.random() < 0.8 else rng.choice(list(TOPICS))
        said = list(rng.choice(COMMON, rng.integers(3, 30)))
        texts.append(" ".join(rng.permutation([*said, *list(rng.choice(TOPICS[topic], 3)) * rng.integers(1, 5)])))
    return texts, y


TEXTS, Y = story(600, 1)
NEW, TRUTH = story(400, 2)


def log_loss(model, X=NEW, y=TRUTH):
    p = model.predict_proba(X)
    return float(-np.log(p[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean())


def known(model):
    return model.fitted_.term_weights.token_weights[0].keys()


@pytest.fixture(scope="module")
def model():
    return cd.TextNB().fit(TEXTS, Y)


def test_probabilities_are_honest_where_those_of_naive_bayes_are_not(model):
    plain = cd.TextNB(weights=None).fit(TEXTS, Y)
    assert log_loss(model) < 0.9 < 1.1 < log_loss(plain)
    p = model.predict_proba(NEW)
    sure, right = p.max(axis=1), model.predict(NEW) == TRUTH
    assert abs(sure.mean() - right.mean()) < 0.03


def test_without_weights_it_is_scikit_learns():
    vector = CountVectorizer()
    want = MultinomialNB().fit(vector.fit_transform(TEXTS), Y).predict_proba(vector.transform(NEW))
    np.testing.assert_allclose(cd.TextNB(weights=None).fit(TEXTS, Y).predict_proba(NEW), want, atol=1e-9)


def test_explanations_add_up_to_the_log_odds(model):
    log_p = np.sort(model.predict_log_proba(NEW[:50]), axis=1)
    for row, found in zip(log_p, model.explain(NEW[:50]), strict=True):
        assert found.log_odds == pytest.approx(row[-1] - row[-2], abs=1e-9)
        [one] = found.contributions
        assert sum(word.log_odds for word in one.words) == pytest.approx(one.log_odds, abs=1e-9)


def test_the_reweighted_sum_of_parts_is_the_whole(model):
    parts = [cd.TextNB().fit(TEXTS[s], Y[s]) for s in (slice(0, 300), slice(300, 600))]
    both = parts[0] + parts[1]
    assert (
        both.fitted_.term_weights.training_summary(600) == "weights averaged over 2 models, learned on 600 of 600 rows"
    )
    assert log_loss(both) < log_loss(cd.TextNB(weights=None).fit(TEXTS, Y))
    np.testing.assert_allclose(both.reweight(TEXTS, Y).predict_proba(NEW), model.predict_proba(NEW), atol=1e-3)
    left = (model + parts[1]) - parts[1]
    counts = [one.counts_.tallies[0].arrays()["total"] for one in (left, model)]
    np.testing.assert_allclose(*counts, rtol=1e-12)


def test_forgotten_words_have_no_weight():
    texts, y = [*TEXTS, "zanzibar wave", "zanzibar salt"], [*Y, "sea", "sea"]
    model = cd.TextNB().fit(texts, y)
    assert b"zanzibar" in known(model)
    model.forget(texts[-2:], y[-2:])
    assert not any(b"zanzibar" in key for key in known(model))


@pytest.mark.parametrize("detail", ["tally", "explain", "score"])
def test_files_bring_it_back(model, detail, tmp_path):
    model.save(tmp_path / "m", detail=detail)
    again = cd.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    np.testing.assert_allclose(again.log_density(NEW), model.log_density(NEW))
    assert again.get_params() == model.get_params()


def test_densities_and_samples_are_those_of_words_that_count_once(model):
    given = {"ngrams": (1, 2), "sublinear": True, "min_documents": 2, "alpha": 0.5, "class_prior": "jeffreys"}
    plain = cd.TextNB(weights=None, **given).fit(TEXTS, Y)
    np.testing.assert_allclose(model.log_density(NEW), plain.log_density(NEW))
    assert model.sample(5, random_state=0)[0] == plain.sample(5, random_state=0)[0]


def test_top_words_have_the_largest_weights(model):
    assert {"green", "cup"} <= {term.word for term in model.top_words("tea", 4)}


@pytest.mark.parametrize("n", [2, 3, 5, 200])
def test_one_document_a_class_predicts_its_class(n):
    texts = [f"word{c} common thing{c % 2}" for c in range(n)]
    model = cd.TextNB(select_options=False).fit(texts, np.arange(len(texts)))
    assert model.predict(texts).tolist() == list(range(len(texts)))


@pytest.mark.parametrize("copies", [1, 3])
def test_a_class_of_a_few_documents_is_known_by_their_words(copies):
    texts = [f"usual text here number {i % 50}" for i in range(100)] + ["rare prize"] * copies
    model = cd.TextNB().fit(texts, ["h"] * 100 + ["s"] * copies)
    assert model.predict(["rare prize", "usual text"]).tolist() == ["s", "h"]


@pytest.mark.parametrize("n", [20, 60, 400])
def test_random_labels_give_about_the_class_proportions(n):
    losses = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        texts = [" ".join(rng.choice([f"w{i}x" for i in range(300)], 60)) for _ in range(n + 300)]
        y = np.append([0, 1], (rng.random(n + 298) < 0.2).astype(int))
        p = cd.TextNB(select_options=False).fit(texts[:n], y[:n]).predict_proba(texts[n:])
        share = np.bincount(y[:n]) / n
        losses.append([-np.log(p[np.arange(300), y[n:]]).mean(), -np.log(share[y[n:]]).mean()])
    learned, shares = np.mean(losses, axis=0)
    assert learned < shares + 0.15


def test_a_stream_learns_again_when_documents_have_doubled():
    model = cd.TextNB()
    for start in range(0, 600, 100):
        model.partial_fit(TEXTS[start : start + 100], Y[start : start + 100], classes=list(TOPICS))
    assert model.fitted_.term_weights.n_counted_rows == 400
    assert log_loss(model) < log_loss(cd.TextNB(weights=None).fit(TEXTS, Y))


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_stream_of_single_documents_is_naive_bayes(at_once):
    model = cd.TextNB()
    for start in range(0, 600, at_once):
        model.partial_fit(TEXTS[start : start + at_once], Y[start : start + at_once], classes=list(TOPICS))
    assert log_loss(model) < log_loss(cd.TextNB(weights=None).fit(TEXTS, Y))
    assert model.reweight(TEXTS, Y).fitted_.term_weights.n_learned_rows == 600


def test_weights_of_rows_count_as_copies(model):
    w = RNG.integers(0, 3, 600).astype(float)
    weighed = cd.TextNB(weights=None, ngrams=(1, 2)).fit(TEXTS, Y, sample_weight=w)
    copies = np.repeat(np.arange(600), w.astype(int))
    want = cd.TextNB(weights=None, ngrams=(1, 2)).fit([TEXTS[i] for i in copies], Y[copies])
    np.testing.assert_allclose(weighed.predict_proba(NEW), want.predict_proba(NEW), atol=1e-9)
    assert log_loss(cd.TextNB().fit(TEXTS, Y, sample_weight=w)) < 0.95


def test_some_of_the_documents_are_enough_to_learn_from():
    model = cd.TextNB(sample_rows=200).fit(TEXTS, Y)
    assert model.fitted_.term_weights.n_learned_rows == 200
    assert model.counts_.n_rows == 600
    assert log_loss(model) < 0.95


@pytest.mark.parametrize(
    ("texts", "y"),
    [
        (["", "", None], ["a", "b", "a"]),
        (["one", "two", "one two"], ["a", "b", "a"]),
        (["word " * 100_000, "other", "word"], ["a", "b", "b"]),
        (["\0 \ud800 x\0y", "日本 語", "русский текст"] * 2, ["a", "b", "c"] * 2),
    ],
    ids=["nothing", "three", "one word a hundred thousand times", "any script"],
)
def test_odd_documents_leave_probabilities(texts, y):
    model = cd.TextNB().fit(texts, y)
    p = model.predict_proba([*texts, "never met", ""])
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    shares = (model.counts_.class_weight + 0.5) / (len(y) + 0.5 * len(model.classes_))
    np.testing.assert_allclose(p[-2:], [shares, shares], atol=1e-12)  # where nothing is known


def test_documents_without_known_words_have_the_class_proportions(model, tmp_path):
    """Whatever was learned of others: calibrated or not, through files, as a sum, and as explained."""
    nothing, y = ["", "unheard of", None], np.where(Y == "sea", "sea", "land")
    table = cd.BayesClassifier(calibration="logistic").fit({"said": TEXTS}, y)
    for i, (one, X) in enumerate(((model, nothing), (model + model, nothing), (table, {"said": nothing}))):
        weight = one.counts_.class_weight
        shares = (weight + 0.5) / (weight.sum() + 0.5 * len(weight))
        np.testing.assert_allclose(one.predict_proba(X), np.tile(shares, (3, 1)), atol=1e-9)
        for detail in ("tally", "score"):
            one.save(tmp_path / f"{detail}{i}", detail=detail)
            np.testing.assert_array_equal(cd.load(tmp_path / f"{detail}{i}").predict_proba(X), one.predict_proba(X))
        for row, found in zip(np.sort(one.predict_log_proba(X)), one.explain(X), strict=True):
            assert found.log_odds == pytest.approx(row[-1] - row[-2], abs=1e-9)


def test_a_class_of_one_document_does_not_take_those_of_which_little_is_known():
    model = cd.TextNB().fit(TEXTS, ["alone", *Y[1:]])
    p = model.predict_proba(["word1", "word2 word3"])
    assert p[:, model.classes_.tolist().index("alone")].max() < 0.05


@pytest.mark.parametrize("weight", [1e-100, 1e20, 1e45, 1e140])
def test_weights_of_rows_and_of_the_prior_may_be_very_small_or_large(weight):
    found = cd.TextNB().fit(TEXTS, Y, sample_weight=np.full(len(Y), weight))
    assert np.isfinite(found.predict_proba(NEW)).all()
    assert np.isfinite(cd.TextNB(alpha=weight).fit(TEXTS, Y).predict_proba(NEW)).all()


def test_an_empty_vocabulary_leaves_the_class_proportions():
    model = cd.TextNB(min_count=1e6).fit(TEXTS, Y)
    shares = np.unique(Y, return_counts=True)[1] / len(Y)
    np.testing.assert_allclose(model.predict_proba(NEW[:3]), np.tile(shares, (3, 1)), atol=1e-3)


def test_hashed_terms_and_characters_have_weights_too():
    for settings in (
        {"bits": 12},
        {"analyzer": "char", "ngrams": (3, 4)},
        {"analyzer": "char_wb"},
        {"analyzer": "char_wb", "bits": 14},
    ):
        assert log_loss(cd.TextNB(**settings).fit(TEXTS, Y)) < 0.95


def test_models_without_weights_are_errors():
    with pytest.raises(InputError) as error:
        cd.TextNB("bernoulli", weights="learned").fit(TEXTS, Y)
    assert error.value.value == "learned"
    with pytest.raises(InputError) as error:
        cd.TextNB(weights="some").fit(TEXTS, Y)
    assert error.value.value == "some"
    assert cd.TextNB("bernoulli").fit(TEXTS, Y).fitted_.term_weights is None


def test_text_and_columns_are_weighted_together():
    rng = np.random.default_rng(5)
    y = np.where(rng.random(500) < 0.5, "ham", "spam")
    hour = np.where(y == "spam", rng.normal(3, 3, 500), rng.normal(14, 5, 500))
    words = [" ".join([*rng.choice(COMMON, 8), *(["prize"] * (c == "spam") * (rng.random() < 0.5))]) for c in y]
    X = {"hour": hour, "body": words}
    both = cd.BayesClassifier().fit({n: v[:300] for n, v in X.items()}, y[:300])
    alone = [cd.BayesClassifier().fit({n: X[n][:300]}, y[:300]) for n in X]
    rest = {n: v[300:] for n, v in X.items()}
    of = [log_loss(one, {n: rest[n]}, y[300:]) for one, n in zip(alone, X, strict=True)]
    assert log_loss(both, rest, y[300:]) < min(of)
    for row, found in zip(np.sort(both.predict_log_proba(rest)), both.explain(rest), strict=True):
        assert found.log_odds == pytest.approx(row[-1] - row[-2], abs=1e-9)


def test_words_learn_from_more_rows_than_other_terms(monkeypatch):
    """Five times as many: all voices where they are words, else words alone."""
    alone = cd.BayesClassifier(sample_rows=100).fit({"body": TEXTS}, Y)
    assert alone.fitted_.term_weights.n_learned_rows == 500
    X = {"body": TEXTS, "hour": np.random.default_rng(3).normal(size=600) + (Y == "sea")}
    usual = {"body": replace(DEFAULT_TEXT, choose_weighting=False)}
    both = cd.BayesClassifier(usual, sample_rows=100).fit(X, Y)
    assert both.fitted_.term_weights.n_learned_rows == 100
    place = next(i for i, part in enumerate(both.counts_.plan.parts) if part.event.weights_tokens)
    monkeypatch.setattr(WeightedSettings, "max_documents", 100)
    few = cd.BayesClassifier(usual, sample_rows=100).fit(X, Y)
    assert len(both.fitted_.term_weights.token_weights[place].weight) > 1.3 * len(
        few.fitted_.term_weights.token_weights[place].weight
    )
    new = {"body": NEW, "hour": np.random.default_rng(4).normal(size=400) + (TRUTH == "sea")}
    assert log_loss(both, new) < log_loss(few, new)
    for row, found in zip(np.sort(both.predict_log_proba(new)), both.explain(new), strict=True):
        assert found.log_odds == pytest.approx(row[-1] - row[-2], abs=1e-9)


def test_several_texts_learn_beside_each_other():
    """From more rows than other voices do, as from the same."""
    half = [" ".join(text.split()[::2]) for text in TEXTS]
    X = {"body": TEXTS, "again": half, "hour": np.random.default_rng(3).normal(size=600) + (Y == "sea")}
    new = {"body": NEW, "again": [" ".join(text.split()[::2]) for text in NEW], "hour": np.zeros(400)}
    more, same = (cd.BayesClassifier(sample_rows=rows).fit(X, Y) for rows in (150, 600))
    assert log_loss(more, new) < 1.05 * log_loss(same, new)


@pytest.mark.parametrize(("name", "least", "most"), [("sms_spam", 0.98, 0.07), ("reuters_r8", 0.965, 0.11)])
def test_real_documents(name, least, most):
    found = pq.read_table(corpus(name)).to_pylist()
    split = np.array([row["split"] == "test" or (not row["split"] and i % 5 == 0) for i, row in enumerate(found)])
    train, test = ([row["text"] for row, there in zip(found, split == side, strict=True) if there] for side in (0, 1))
    labels = np.array([row["class"] for row in found])
    y, truth = labels[~split], labels[split]
    model = cd.TextNB().fit(train, y)
    assert (model.predict(test) == truth).mean() >= least
    assert log_loss(model, test, truth) <= most


def test_english_stop_words_are_those_of_scikit_learn():
    texts, y = ["the cup of tea", "the train is late"] * 9, ["tea", "rail"] * 9
    model = cd.TextNB(stop_words="english", weights=None).fit(texts, y)
    assert sorted(model.counts_.tallies[0].token_texts()) == ["cup", "late", "tea", "train"]
    assert sorted(CountVectorizer(stop_words="english").fit(texts).vocabulary_) == ["cup", "late", "tea", "train"]


def test_another_prior_drops_weights_that_it_cannot_have(model):
    careful = model.with_prior(model="complement")
    assert careful.fitted_.term_weights is None
    assert careful.counts_ is not None
    assert (careful.predict(NEW) == TRUTH).mean() > 0.7
    assert model.with_prior(class_prior="uniform").fitted_.term_weights is not None


def names(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return ["".join(rng.choice(list("bcdfgklmn"), 3)) + ("ova" if c else "ez") for c in y], y


def test_models_with_and_without_characters_add():
    many, few = cd.TextNB().fit(*names(400, 1)), cd.TextNB().fit(*names(20, 2))
    assert [len(one.fitted_.plan.parts) for one in (many, few)] == [2, 1]
    for a, b in ((many, few), (few, many)):
        with pytest.warns(DataWarning, match="characters"):
            both = a + b
        assert both.counts_.n_rows == 420
        words = cd.TextNB(characters=False)
        whole = words.fit(
            np.concatenate([names(400, 1)[0], names(20, 2)[0]]), np.append(names(400, 1)[1], names(20, 2)[1])
        )
        assert both.counts_.tallies[0].n_tokens == whole.counts_.tallies[0].n_tokens
        assert ((both - few).counts_.class_weight == many.counts_.class_weight).all()
    twice = many + many
    assert len(twice.fitted_.plan.parts) == 2
    assert twice.predict(["Ivanova", "Lopez"]).tolist() == [1, 0]
