"""Weights of words, learned from documents held out of the counts: by the formulas, and by another optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from candide.data.documents import Documents
from candide.events import Text
from candide.events.text import DEFAULT_TEXT
from candide.priors import Dirichlet
from candide.tally import TokenCounts
from candide.weighted.text import leave_one_out, token_weights

VOCABULARY = np.array(["tea", "milk", "free", "prize", "call", "five", "naïve", "you", "see", "now"])


def corpus(seed=0, n=60, k=3):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % k)
    share = rng.dirichlet(np.full(len(VOCABULARY), 0.7), k)
    texts = [" ".join(rng.choice(VOCABULARY, rng.integers(0, 9), p=share[c])) for c in y]
    return texts, y.astype(np.int64)


def said(event, texts, y, k=3, weight=None, power=0.5, **how):
    tally = TokenCounts.from_rows(Documents.from_column(texts), y, weight, n_classes=k, spec=event.spec(1))
    return tally, leave_one_out.held_out_tokens(
        event, tally, None, Documents.from_column(texts), y, weight, power=power, **how
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("event", [DEFAULT_TEXT, Text(sublinear=True), Text(prior=Dirichlet(0.3), bits=8)], ids=str)
def test_a_document_is_left_out_of_its_own_counts(event, weighted):
    """Against counts made again without the document, in the vocabulary of all of them."""
    texts, y = corpus()
    texts[7] += " alone"
    weight = np.random.default_rng(1).uniform(0.5, 3, len(y)) if weighted else None
    tally, found = said(event, texts, y, weight=weight, power=0.0)
    scores, kept = found.scores(np.ones(len(found.group))), event.weighted_counts(tally)
    alpha, names = event._alpha(event._resolve(None)), {key: i for i, key in enumerate(kept.tally.keys())}
    for i in (0, 7, 23):
        rest = [j for j in range(len(y)) if j != i]
        w = None if weight is None else weight[rest]
        left = TokenCounts.from_rows(
            Documents.from_column([texts[j] for j in rest]), y[rest], w, n_classes=3, spec=event.spec(1)
        )
        one = TokenCounts.from_rows(
            Documents.from_column([texts[i]]), np.zeros(1, int), n_classes=1, spec=event.spec(1)
        )
        counts, others = np.zeros((3, len(names))), set()
        for c, place, n in zip(left.class_of_cell, left.word, left.total, strict=True):
            if (key := left.key(place)) in names:
                counts[c, names[key]] = n
                others.add(key)
        x = {key: n for key, n in zip(one.keys(), one.total, strict=True) if key in names}
        total = kept.sum_by_class(kept.total)
        w_i = 1.0 if weight is None else weight[i]
        total[y[i]] -= w_i * sum(x.values())
        want = np.zeros(3)
        for key, n in x.items():
            if key in others:
                want += n * (np.log(counts[:, names[key]] + alpha) - np.log(total + alpha * kept.n_tokens))
        got = scores[i]
        np.testing.assert_allclose(got - got.mean(), want - want.mean(), atol=2e-4)  # of single precision


def test_long_documents_say_less_a_word():
    texts, y = corpus()
    whole, root = (said(DEFAULT_TEXT, texts, y, power=power)[1] for power in (0.0, 0.5))
    length = np.bincount(np.repeat(np.arange(len(y)), np.diff(whole.ends)), whole.x, len(y))
    there = length > 0
    one = np.ones(len(whole.group))
    ratio = root.scores(one)[there] * root.scale / whole.scores(one)[there]
    np.testing.assert_allclose(ratio[:, 0], length[there] ** -0.5, rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_maximum_is_that_of_another_optimiser(weighted):
    texts, y = corpus(2, n=40, k=2)
    weight = np.random.default_rng(3).uniform(0.5, 2, len(y)) if weighted else None
    _, found = said(Text(sublinear=True), texts, y, 2)
    offset = np.log([0.3, 0.7])
    [learned] = token_weights.learn_joint_token_weights([found], offset, weight)
    v, g = len(found.group), found.n_groups
    each = np.stack([found.scores(np.eye(v)[j]) for j in range(v)], axis=2)  # (document, class, term)
    often = np.where(np.diff(found.ends) > 0, 1.0 if weight is None else weight, 0.0)  # of no words, none
    assert found.is_informative.all()

    def objective(q):
        w, b, mean = q[:v], q[v : v + 2], q[v + 2 :]
        joint = each @ w + offset + b
        loss = often @ (logsumexp(joint, axis=1) - joint[np.arange(len(y)), y])
        away = w - mean[found.group]
        from_one = mean / found.scale - 1.0
        held = found.weighting.strength * away @ away + from_one @ from_one + token_weights.TOKEN_BIAS_STRENGTH * b @ b
        return loss + 0.5 * held

    peer = minimize(objective, np.zeros(v + 2 + g), method="BFGS", options={"gtol": 1e-6})
    order = np.argsort(found.keys())
    np.testing.assert_allclose(learned.token_weights.weight * found.scale, peer.x[:v][order], atol=2e-2)
    at = np.concatenate([peer.x[:v]])
    at[order] = learned.token_weights.weight * found.scale
    mine = minimize(lambda q: objective(np.append(at, q)), peer.x[v:], method="BFGS").fun
    assert mine <= peer.fun * (1 + 1e-5)


def test_terms_of_few_documents_are_of_one_kind():
    texts, y = corpus(5, n=79)
    assert said(DEFAULT_TEXT, texts, y)[1].n_groups == 1
    texts, y = corpus(5, n=80)
    assert said(DEFAULT_TEXT, texts, y)[1].n_groups > 1


def test_classes_of_few_documents_teach_nothing():
    texts, y = [f"word{i} common" for i in range(12)] * 2, np.arange(24) % 12
    _, found = said(DEFAULT_TEXT, texts, y, 12)
    assert not found.is_informative.any()
    [learned] = token_weights.learn_joint_token_weights([found], np.log(np.full(12, 1 / 12)))
    np.testing.assert_allclose(learned.token_weights.weight, 1.0, atol=1e-6)
    np.testing.assert_allclose(learned.bias, 0.0, atol=1e-9)


def test_where_to_begin_makes_no_difference():
    texts, y = corpus(4, n=90)
    _, found = said(DEFAULT_TEXT, texts, y)
    [first] = token_weights.learn_joint_token_weights([found], np.log(np.ones(3) / 3))
    [again] = token_weights.learn_joint_token_weights([found], np.log(np.ones(3) / 3), start=[first.token_weights])
    np.testing.assert_allclose(first.contributions, again.contributions, atol=2e-2)


def test_terms_are_grouped_by_words_and_rarity():
    texts, y = corpus(5, n=200)
    _, found = said(DEFAULT_TEXT, texts, y)
    keys, have = np.array(found.keys()), np.bincount(found.token, minlength=len(found.group))
    for g in range(found.n_groups):
        mine = found.group == g
        assert len({key.count(b" ") for key in keys[mine]}) == 1
        others = have[mine] - 1
        assert np.log2(others.max()) < np.floor(np.log2(others.min())) + 1


def test_documents_that_were_not_counted_lose_nothing():
    texts, y = corpus()
    tally, _ = said(DEFAULT_TEXT, texts, y)
    fresh = leave_one_out.held_out_tokens(
        DEFAULT_TEXT, tally, None, Documents.from_column(texts), y, power=0.0, is_counted=False
    )
    assert not fresh.own_class_correction.any()
    law = DEFAULT_TEXT.estimate(tally)
    want, got = law.log_prob(Documents.from_column(texts)), fresh.scores(np.ones(len(fresh.group)))
    np.testing.assert_allclose(got - got.mean(1, keepdims=True), want - want.mean(1, keepdims=True), atol=1e-3)


def test_documents_that_are_read_in_pieces_are_those_read_at_once():
    """So many letters that they are read some documents at a time, beside each document alone."""
    texts, y = corpus(6, n=300)
    texts = [f"{text} {'and so on ' * 400}" for text in texts]
    tally, found = said(DEFAULT_TEXT, texts, y)
    keys, weight = found.keys(), np.random.default_rng(7).uniform(size=len(found.group))
    scores = found.scores(weight) * found.scale
    for i in (0, 100, 299):
        alone = leave_one_out.held_out_tokens(
            DEFAULT_TEXT, tally, None, Documents.from_column(texts[i : i + 1]), y[i : i + 1], power=0.5
        )
        mine = [keys.index(key) for key in map(bytes, alone.keys())]
        np.testing.assert_allclose(alone.scores(weight[mine])[0] * alone.scale, scores[i], rtol=1e-4, atol=1e-5)
