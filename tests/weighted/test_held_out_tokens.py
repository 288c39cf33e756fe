"""Tokens of documents left out of the counts: by the formulas, and against counts without the document."""

import numpy as np
import pytest

from candide.data.documents import Documents
from candide.events import Text
from candide.events.text import DEFAULT_TEXT
from candide.priors import Dirichlet
from candide.tally import TokenCounts
from candide.weighted import held_out_tokens

VOCABULARY = np.array(["tea", "milk", "free", "prize", "call", "five", "naïve", "you", "see", "now"])


def corpus(seed=0, n=60, k=3):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % k)
    share = rng.dirichlet(np.full(len(VOCABULARY), 0.7), k)
    texts = [" ".join(rng.choice(VOCABULARY, rng.integers(0, 9), p=share[c])) for c in y]
    return texts, y.astype(np.int64)


def leave_out(event, texts, y, k=3, weight=None, power=0.5, **how):
    tally = TokenCounts.from_rows(Documents.from_column(texts), y, weight, n_classes=k, spec=event.spec(1))
    return tally, held_out_tokens.held_out_tokens(
        event, tally, None, Documents.from_column(texts), y, weight, power=power, **how
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("event", [DEFAULT_TEXT, Text(sublinear=True), Text(prior=Dirichlet(0.3), bits=8)], ids=str)
def test_a_document_is_left_out_of_its_own_counts(event, weighted):
    """Against counts made again without the document, in the vocabulary of all of them."""
    texts, y = corpus()
    texts[7] += " alone"
    weight = np.random.default_rng(1).uniform(0.5, 3, len(y)) if weighted else None
    tally, found = leave_out(event, texts, y, weight=weight, power=0.0)
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
        total = kept.tally.sum_by_class(kept.total)
        w_i = 1.0 if weight is None else weight[i]
        total[y[i]] -= w_i * sum(x.values())
        want = np.zeros(3)
        for key, n in x.items():
            if key in others:
                want += n * (np.log(counts[:, names[key]] + alpha) - np.log(total + alpha * kept.n_tokens))
        got = scores[i]
        np.testing.assert_allclose(got - got.mean(), want - want.mean(), atol=2e-4)  # of single precision


def test_tokens_count_less_in_long_documents():
    texts, y = corpus()
    whole, root = (leave_out(DEFAULT_TEXT, texts, y, power=power)[1] for power in (0.0, 0.5))
    length = np.bincount(np.repeat(np.arange(len(y)), np.diff(whole.ends)), whole.x, len(y))
    there = length > 0
    one = np.ones(len(whole.group))
    ratio = root.scores(one)[there] * root.scale / whole.scores(one)[there]
    np.testing.assert_allclose(ratio[:, 0], length[there] ** -0.5, rtol=1e-4)


def test_tokens_of_few_documents_are_one_group():
    texts, y = corpus(5, n=79)
    assert leave_out(DEFAULT_TEXT, texts, y)[1].n_groups == 1
    texts, y = corpus(5, n=80)
    assert leave_out(DEFAULT_TEXT, texts, y)[1].n_groups > 1


def test_tokens_are_grouped_by_words_and_rarity():
    texts, y = corpus(5, n=200)
    _, found = leave_out(DEFAULT_TEXT, texts, y)
    keys, have = np.array(found.keys()), np.bincount(found.token, minlength=len(found.group))
    for g in range(found.n_groups):
        mine = found.group == g
        assert len({key.count(b" ") for key in keys[mine]}) == 1
        others = have[mine] - 1
        assert np.log2(others.max()) < np.floor(np.log2(others.min())) + 1


def test_uncounted_documents_are_not_left_out():
    texts, y = corpus()
    tally, _ = leave_out(DEFAULT_TEXT, texts, y)
    fresh = held_out_tokens.held_out_tokens(
        DEFAULT_TEXT, tally, None, Documents.from_column(texts), y, power=0.0, is_counted=False
    )
    assert not fresh.own_class_correction.any()
    distribution = DEFAULT_TEXT.estimate(tally)
    want, got = distribution.log_prob(Documents.from_column(texts)), fresh.scores(np.ones(len(fresh.group)))
    np.testing.assert_allclose(got - got.mean(1, keepdims=True), want - want.mean(1, keepdims=True), atol=1e-3)


def test_documents_read_in_chunks_equal_those_read_at_once():
    """Documents so long that they are read in chunks, against each document alone."""
    texts, y = corpus(6, n=300)
    texts = [f"{text} {'and so on ' * 400}" for text in texts]
    tally, found = leave_out(DEFAULT_TEXT, texts, y)
    keys, weight = found.keys(), np.random.default_rng(7).uniform(size=len(found.group))
    scores = found.scores(weight) * found.scale
    for i in (0, 100, 299):
        alone = held_out_tokens.held_out_tokens(
            DEFAULT_TEXT, tally, None, Documents.from_column(texts[i : i + 1]), y[i : i + 1], power=0.5
        )
        mine = [keys.index(key) for key in map(bytes, alone.keys())]
        np.testing.assert_allclose(alone.scores(weight[mine])[0] * alone.scale, scores[i], rtol=1e-4, atol=1e-5)
