"""Very many classes and levels: memory has a bound."""

import importlib

import numpy as np

import candide as cd
from candide.data.labels import Labels, sort_key
from candide.tally import Moments

CLASSES, ROWS, MOST = 4000, 5000, 1 << 23


def test_rows_are_scored_in_blocks_that_shrink_with_the_number_of_classes(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(2 * CLASSES) % CLASSES
    rows = {"x": rng.normal(y % 7), "word": rng.choice(["ant", "bee"], len(y))}
    model = cd.NaiveBayes().partial_fit(rows, y, classes=np.arange(CLASSES))
    task = importlib.import_module("candide.engines.predictions")
    blocks, scored = [], task.score_batch

    def noted(*asked):
        out = scored(*asked)
        blocks.append(out[0].shape)
        return out

    monkeypatch.setattr(task, "score_batch", noted)
    rows = {"x": rng.normal(size=ROWS), "word": rng.choice(["ant", "bee"], ROWS)}
    table = model.predict_table(rows)
    assert sum(n for n, _ in blocks) == ROWS
    assert max(n * k for n, k in blocks) <= MOST
    some = rng.integers(0, ROWS, 50)
    want = model.predict_proba({name: column[some] for name, column in rows.items()})
    for c in rng.integers(0, CLASSES, 20):
        np.testing.assert_allclose(table[f"p_{c}"].to_numpy()[some], want[:, c], rtol=1e-9)
    assert table["prediction"].to_numpy()[some].tolist() == want.argmax(axis=1).tolist()


def test_classes_are_pooled_in_few_additions(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 1001, 5000)
    x = rng.normal(y, 1.0)[:, None]
    tally, steps = Moments.from_rows(x, y, n_classes=1001), []
    plus = Moments.__add__
    monkeypatch.setattr(Moments, "__add__", lambda a, b: steps.append(1) or plus(a, b))
    pooled = tally.pool()
    assert len(steps) < 20
    assert pooled.n.tolist() == [[5000.0]]
    np.testing.assert_allclose([pooled.mean[0, 0], pooled.m2[0, 0]], [x.mean(), x.var() * 5000], rtol=1e-9)


def test_text_is_sorted_and_coded_as_mixed_values_are():
    words = [f"user{i * 7919 % 1000}" for i in range(1000)]
    mixed = [*words, 3, 1.5, False, None]
    assert Labels.from_values(words).values == tuple(sorted(words, key=sort_key))
    assert Labels.from_values(np.array(mixed, object)).values[3:] == Labels.from_values(words).values
    known = Labels.from_values(words[:500])
    assert known.encode(words).tolist() == known.encode(np.array([*words, None], object)).tolist()[:-1]
