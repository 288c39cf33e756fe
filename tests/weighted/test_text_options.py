"""Text options are chosen by documents held out of counts and weights, where the gain is clear."""

from dataclasses import replace

import numpy as np
import pytest

import candide as cd
from candide.data.documents import Documents
from candide.distributions.token_weights import TextWeighting, TokenWeights
from candide.encoding.tokens import BINARY, PLAIN
from candide.errors import InputError
from candide.events.text import DEFAULT_TEXT, Text
from candide.priors import Dirichlet
from candide.tally import TokenCounts
from candide.weighted import held_out_tokens, text_options

CHOSEN = replace(DEFAULT_TEXT, choose_weighting=True)
COMMON = [f"word{i}" for i in range(60)]


def counted(texts, y, event=DEFAULT_TEXT):
    return TokenCounts.from_rows(Documents.from_column(texts), y, n_classes=int(y.max()) + 1, spec=event.spec(1))


def chosen(texts, y, event=CHOSEN, weight=None):
    return listener(texts, y, event, weight).choose_weighting(np.log(np.bincount(y) / len(y)))


def listener(texts, y, event=CHOSEN, weight=None):
    return text_options.TextOptionSearch(event, counted(texts, y, event), None, Documents.from_column(texts), y, weight)


def in_order(n, seed=0):
    """Only the order of two words tells the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    pairs = [("good not", "not good")[c] for c in y]
    return [" ".join([*rng.choice(COMMON, 6), pair]) for pair in pairs], y


def independent(n, seed=0):
    """Naive Bayes is right: words are drawn one by one, of documents short and long."""
    rng = np.random.default_rng(seed)
    y, share = rng.integers(0, 2, n), rng.dirichlet(np.full(60, 2.0), 2)
    return [" ".join(rng.choice(COMMON, rng.choice([2, 10, 80]), p=share[c])) for c in y], y


def test_tokens_of_power_0_become_those_of_another_power():
    texts, y = independent(80)
    tally, how = counted(texts, y), TextWeighting(power=1.0)
    want = held_out_tokens.held_out_tokens(DEFAULT_TEXT, tally, None, Documents.from_column(texts), y, power=1.0)
    got = text_options.apply_text_weighting(
        held_out_tokens.held_out_tokens(DEFAULT_TEXT, tally, None, Documents.from_column(texts), y, power=0.0), how
    )
    np.testing.assert_allclose(got.x, want.x, rtol=1e-5)
    assert got.scale == pytest.approx(want.scale)


def test_words_without_pairs_score_as_words_among_pairs():
    texts, y = in_order(80)
    said = held_out_tokens.held_out_tokens(
        DEFAULT_TEXT, counted(texts, y), None, Documents.from_column(texts), y, power=0.0
    )
    single = np.array([b" " not in key for key in said.keys()])  # noqa: SIM118
    got = text_options.apply_text_weighting(said, TextWeighting(power=0.0, max_words=1))
    assert got.keys() == [key for key, one in zip(said.keys(), single, strict=True) if one]
    np.testing.assert_allclose(got.scores(np.ones(len(got.group))), said.scores(single.astype(float)), atol=1e-4)


def test_raw_counts_are_recovered_from_logs():
    texts, y = ["tea tea tea cup", "tea cup", "rail cup cup", "rail tea"] * 5, np.array([0, 0, 1, 1] * 5)
    said = text_options.apply_text_weighting(
        held_out_tokens.held_out_tokens(
            DEFAULT_TEXT, counted(texts, y), None, Documents.from_column(texts), y, power=0.0
        ),
        TextWeighting(0.0, count_mode=PLAIN),
    )
    at = said.keys().index(b"tea")
    mine = said.token[: said.ends[1]] == at
    np.testing.assert_allclose(said.x[: said.ends[1]][mine], 3.0, rtol=1e-5)


def test_the_held_out_loss_is_that_of_a_model_without_the_documents():
    texts, y = independent(400)
    shares = np.log(np.bincount(y) / len(y))
    [held, trial], *_ = listener(texts, y).trials(shares)
    rest = np.setdiff1d(np.arange(400), held)
    model = cd.TextNB(select_options=False).fit([texts[i] for i in rest], y[rest])
    p = model.predict_proba([texts[i] for i in held])[np.arange(len(held)), y[held]]
    assert trial.loss(TextWeighting()).mean() == pytest.approx(-np.log(p).mean(), rel=0.05)


def test_pairs_stay_where_order_matters_and_length_counts_where_words_are_independent():
    assert chosen(*in_order(400)).max_words == 0
    how = chosen(*independent(600))
    assert how.power == 0.0
    assert how.loss < 0.5 < how.unweighted_loss + 0.5
    assert np.isfinite(how.unweighted_loss)


def test_random_labels_leave_little_weight_to_words():
    rng = np.random.default_rng(3)
    texts, y = in_order(400)[0], rng.integers(0, 2, 400)
    model = cd.TextNB(select_options=True).fit(texts, y)
    p = model.predict_proba(in_order(300, 9)[0])
    assert np.abs(p - 0.5).mean() < 0.2


def test_gains_are_paired_and_weighted():
    before, after = np.array([1.0] * 50 + [0.5] * 50), np.array([0.5] * 50 + [1.0] * 50)
    assert not text_options.is_improvement(before, after)
    assert text_options.is_improvement(before, after, np.repeat([1.0, 0.0], 50))


@pytest.mark.parametrize("n", [20, 99])
def test_few_documents_choose_one_weight_a_group(n):
    texts, y = in_order(n)
    assert chosen(texts, y) == TextWeighting(strength=np.inf)  # they cannot tell words apart either
    assert cd.TextNB().fit(texts, y).fitted_.term_weights.token_weights[0].weighting == TextWeighting(strength=np.inf)


def test_options_are_searched_for_few_documents_or_on_request():
    texts, y = independent(1200)
    few = cd.TextNB().fit(texts[:600], y[:600])
    assert np.isfinite(few.fitted_.term_weights.token_weights[0].weighting.loss)
    assert (
        cd.TextNB(select_options=False).fit(texts[:600], y[:600]).fitted_.term_weights.token_weights[0].weighting
        == TextWeighting()
    )
    assert cd.TextNB().fit(texts, y).fitted_.term_weights.token_weights[0].weighting == TextWeighting()
    assert np.isfinite(
        cd.TextNB(select_options=True).fit(texts, y).fitted_.term_weights.token_weights[0].weighting.loss
    )


@pytest.mark.parametrize("event", [Text(), Text(ngrams=(2, 2)), Text(analyzer="char_wb"), Text(bits=8)], ids=str)
def test_changes_that_make_no_difference_are_skipped(event):
    event = replace(event, choose_weighting=True, prior=Dirichlet(0.5))
    how = chosen(*in_order(200), event)
    assert how.max_words == 0
    assert how.count_mode == -1


@pytest.mark.parametrize("detail", ["tally", "explain", "score"])
@pytest.mark.parametrize(
    "how", [TextWeighting(0.0, 1, PLAIN, 3.0), TextWeighting(1.0, 0, BINARY, np.inf), TextWeighting(has_weights=False)]
)
def test_every_weighting_predicts_explains_and_is_saved(how, detail, tmp_path, monkeypatch):
    monkeypatch.setattr(text_options.TextOptionSearch, "choose_weighting", lambda *given: how)
    texts, y = in_order(200)
    model = cd.TextNB().fit(texts, y)
    assert model.fitted_.term_weights.token_weights[0].weighting == how
    model.save(tmp_path / "m", detail=detail)
    again = cd.load(tmp_path / "m")
    np.testing.assert_allclose(again.predict_proba(texts), model.predict_proba(texts))
    log_p = np.sort(model.predict_log_proba(texts[:20]), axis=1)
    for row, found in zip(log_p, model.explain(texts[:20]), strict=True):
        assert found.log_odds == pytest.approx(row[-1] - row[-2], abs=1e-9)
    if how.max_words:
        assert not any(
            " " in word.word and word.log_odds for word in model.explain(texts[:1])[0].contributions[0].words
        )


def test_weights_under_different_weightings_are_not_averaged():
    words, raw = (
        TokenWeights.from_tokens([b"tea"], [w], 0.1, how)
        for w, how in ((0.4, TextWeighting(max_words=1)), (0.8, TextWeighting()))
    )
    assert words.average(raw, 0.3) is words
    assert words.average(raw, 0.7) is raw
    assert words.average(raw, 0.5) is raw.average(words, 0.5)
    assert raw.average(TokenWeights.from_tokens([b"tea"], [0.2], 0.1), 0.5).weight.tolist() == [0.5]


@pytest.mark.parametrize(("at", "value"), [(0, 2.0), (0, np.nan), (1, 0.5), (2, 7.0), (3, 0.0), (3, np.nan), (4, 2.0)])
def test_an_invalid_weighting_in_a_file_is_refused(at, value):
    array = TextWeighting().to_array()
    assert repr(TextWeighting.from_array(array)) == repr(TextWeighting())
    array[at] = value
    with pytest.raises(InputError):
        TextWeighting.from_array(array)
    with pytest.raises(InputError):
        TextWeighting.from_array(array[:3])


def test_classes_of_one_document_are_not_held_out():
    texts = [f"word{i} tea" for i in range(150)]
    assert chosen(texts, np.arange(150)) == TextWeighting()
    assert len(cd.TextNB().fit(texts, np.arange(150)).fitted_.plan.parts) == 1
    y = np.concatenate([np.arange(120) % 2, np.arange(2, 32)])
    [held, _], *_ = listener(texts, y).trials(np.zeros(32))
    assert set(y[held]) == {0, 1}
