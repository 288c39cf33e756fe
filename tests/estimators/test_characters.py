"""Runs of characters beside words: two voices of one column, whose weights are learned together."""

import numpy as np
import pytest
from sklearn.base import clone

import candide as cd
from candide.data.documents import Documents
from candide.errors import InputError
from candide.events.text import CHARACTER_TEXT, DEFAULT_TEXT
from candide.tally import TokenCounts
from candide.weighted import held_out_tokens, token_optimizer
from candide.weighted.held_out_tokens import concatenate_tokens

SYLLABLES = ["ka", "to", "mi", "ra", "su", "ne"], ["sch", "berg", "er", "lin", "hof", "au"]
SIGNS = [chr(0x4E00 + i) for i in range(200)]
TELLING = ["茶叶", "杯子"], ["火车", "铁路"]


def names(n, seed):
    """Names, each met about once, of two languages."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return ["".join(rng.choice(SYLLABLES[c], rng.integers(2, 6))) for c in y], y


def without_spaces(n, seed):
    """Sentences of signs, of which a pair tells."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    signs = [[*rng.choice(SIGNS, 6), rng.choice(TELLING[c]), *rng.choice(SIGNS, 6)] for c in y]
    return ["".join(one) for one in signs], y


def log_loss(model, X, y):
    return float(-np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean())


def parts(model):
    return len(model.fitted_.plan.parts)


@pytest.fixture(scope="module")
def model():
    return cd.TextNB(characters=True).fit(*names(300, 1))


@pytest.mark.parametrize("made", [names, without_spaces])
def test_characters_are_added_where_words_are_new(made):
    model, words_only = (cd.TextNB(characters=characters).fit(*made(400, 1)) for characters in (None, False))
    assert (parts(model), parts(words_only)) == (2, 1)
    assert log_loss(model, *made(300, 2)) < 0.7 * log_loss(words_only, *made(300, 2))


def test_characters_are_not_added_to_long_documents_or_noise():
    rng = np.random.default_rng(0)
    common = [f"word{i}" for i in range(40)]
    y = rng.integers(0, 2, 300)
    long = [" ".join([*rng.choice(common, 12), ("tea", "rail")[c]]) for c in y]
    assert parts(cd.TextNB().fit(long, y)) == 1
    assert parts(cd.TextNB().fit(names(300, 1)[0], rng.integers(0, 2, 300))) == 1
    assert parts(cd.TextNB().fit(*names(60, 1))) == 1  # few tell nothing beyond chance


def test_explanations_add_up_and_name_the_term(model):
    X = names(20, 3)[0]
    log_p = np.sort(model.predict_log_proba(X), axis=1)
    for row, found in zip(log_p, model.explain(X), strict=True):
        assert found.log_odds == pytest.approx(row[-1] - row[-2], abs=1e-9)
        assert [one.title for one in found.contributions if one.log_odds][:1] == ["text, characters"]
    assert {one.title for one in model.terms_} == {"text", "text, characters"}
    assert model.top_words(1, 2)


def test_the_density_and_samples_are_those_of_the_words(model):
    X, y = names(300, 1)
    plain = cd.TextNB(characters=False).fit(X, y)
    np.testing.assert_allclose(model.log_density(X[:9]), plain.log_density(X[:9]))
    assert model.sample(4, random_state=0)[0] == plain.sample(4, random_state=0)[0]


@pytest.mark.parametrize("detail", ["tally", "explain", "score"])
def test_files_bring_it_back(model, detail, tmp_path):
    model.save(tmp_path / "m", detail=detail)
    again = cd.load(tmp_path / "m")
    X = names(50, 4)[0]
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.get_params() == model.get_params() == clone(model).get_params()


def test_models_add_subtract_and_are_reweighted(model):
    (X, y), (more, z) = names(300, 1), names(200, 5)
    other = cd.TextNB(characters=True).fit(more, z)
    both = model + other
    whole = cd.TextNB(characters=True).fit([*X, *more], [*y, *z])
    np.testing.assert_allclose(both.reweight([*X, *more], [*y, *z]).predict_proba(X), whole.predict_proba(X), atol=2e-3)
    left = (model + other) - other
    for a, b in zip(left.counts_.tallies, model.counts_.tallies, strict=True):
        np.testing.assert_allclose(a.arrays()["total"], b.arrays()["total"])
    stream = cd.TextNB(characters=True).partial_fit(X, y, classes=[0, 1]).partial_fit(more, z)
    assert stream.counts_.n_rows == 500
    np.testing.assert_allclose(stream.counts_.tallies[1].n, whole.counts_.tallies[1].n)
    model.with_prior(class_prior="uniform").predict(X[:3])
    assert parts(model.with_prior(model="complement")) == 1


def test_hashed_characters_are_used_too():
    X, y = names(300, 1)
    assert log_loss(cd.TextNB(characters=True, bits=14).fit(X, y), *names(200, 2)) < 0.3


@pytest.mark.parametrize("settings", [{"weights": None}, {"analyzer": "char_wb"}, {"model": "bernoulli"}])
def test_characters_need_words_with_weights(settings):
    with pytest.raises(InputError) as error:
        cd.TextNB(characters=True, **settings).fit(*names(60, 1))
    assert error.value.value is True
    assert parts(cd.TextNB(**settings).fit(*names(200, 1))) == 1


def test_joined_parts_have_the_scores_of_each():
    X, y = names(80, 1)
    said = []
    for event in (DEFAULT_TEXT, CHARACTER_TEXT):
        tally = TokenCounts.from_rows(Documents.from_column(X), y, n_classes=2, spec=event.spec(1))
        said.append(held_out_tokens.held_out_tokens(event, tally, None, Documents.from_column(X), y, power=0.5))
    rng = np.random.default_rng(0)
    each = [rng.normal(size=len(one.group)) for one in said]
    both = concatenate_tokens(said)
    want = sum(one.scores(w) for one, w in zip(said, each, strict=True))
    np.testing.assert_allclose(both.scores(np.concatenate(each)), want, atol=1e-4)
    assert both.keys() == said[0].keys() + said[1].keys()


def test_weights_learned_together_are_those_that_alternate_to_the_end():
    """The problem is convex: by turns, each given what the other says, weights come to the same scores."""
    X, y = names(120, 1)
    said, offset = [], np.log([0.5, 0.5])
    for event in (DEFAULT_TEXT, CHARACTER_TEXT):
        tally = TokenCounts.from_rows(Documents.from_column(X), y, n_classes=2, spec=event.spec(1))
        said.append(held_out_tokens.held_out_tokens(event, tally, None, Documents.from_column(X), y, power=0.5))
    together = token_optimizer.learn_joint_token_weights(said, offset, tolerance=1e-12)
    turns = [np.zeros((120, 2))] * 2
    bias = together[0].bias
    for _ in range(40):
        for i in (0, 1):
            found = token_optimizer.learn_joint_token_weights([said[i]], offset + turns[1 - i], tolerance=1e-12)[0]
            turns[i] = found.contributions
    got = together[0].contributions + together[1].contributions + bias
    want = turns[0] + turns[1] + found.bias
    np.testing.assert_allclose(got[:, 0] - got[:, 1], want[:, 0] - want[:, 1], atol=0.05)
