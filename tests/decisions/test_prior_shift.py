"""Shares of classes told by rows without labels."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests import tables

import candide as cd
from candide.cli import cli
from candide.decisions.prior_shift import fit_class_proportions
from candide.errors import InputError
from candide.metrics.scores import Scores

KEYS = ("a", "b", "c")


def rows(n, mix, seed=0):
    """Three classes of two numbers and a category, independent within each class."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=mix)
    soil = np.array(["clay", "sand", "chalk"])[(y + (rng.random(n) < 0.3)) % 3]
    columns = {"u": rng.normal(1.2 * y, 1.0), "v": rng.normal(-0.8 * y, 1.0)}
    return {**columns, "soil": soil}, np.array(KEYS)[y]


@pytest.mark.parametrize("kind", ["naive", "bayes"])
@pytest.mark.parametrize("calibration", [None, "logistic"])
@pytest.mark.parametrize("mix", [(0.02, 0.38, 0.6), (0.8, 0.15, 0.05)])
def test_a_known_shift_is_found(kind, calibration, mix):
    if kind == "naive" and calibration:
        pytest.skip("calibration is for weighted models")
    X, y = rows(6000, (0.4, 0.3, 0.3))
    model = cd.fit({**X, "y": y}, "y", model=kind, **({"calibration": calibration} if calibration else {}))
    new, truth = rows(20_000, mix, seed=1)
    found = cd.adapt_prior(model, new)
    real = np.array([(truth == key).mean() for key in KEYS])
    assert [found.proportions_after[key] for key in KEYS] == pytest.approx(real, abs=0.01)
    assert [
        abs(found.proportions_after[key] - real[i]) < 4 * found.standard_error[key] + 0.003
        for i, key in enumerate(KEYS)
    ] == [True] * 3
    assert found.n_rows == 20_000
    codes = np.searchsorted(KEYS, truth)
    before, after = (
        Scores.from_log_posterior(np.log(m.predict_proba(new)), codes).log_loss for m in (model, model.adapt(new))
    )
    assert after < before


def test_em_is_at_the_top_of_the_likelihood():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 500)
    found, error = fit_class_proportions(q, np.full(3, 1 / 3))
    best = np.log(q @ found).sum()
    for _ in range(200):
        other = found + rng.normal(0, 0.01, 3)
        other = np.maximum(other, 0) / np.maximum(other, 0).sum()
        assert np.log(q @ other).sum() <= best + 1e-6
    assert (error > 0).all()


def test_deviations_are_those_of_repeated_rows():
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = rng.random(400) < 0.3
        x = rng.normal(2.0 * y, 1.0)
        q = np.exp(np.stack([-0.5 * x**2, -0.5 * (x - 2) ** 2], axis=1))
        found.append(
            (*fit_class_proportions(q, np.array([0.5, 0.5]))[0], fit_class_proportions(q, np.array([0.5, 0.5]))[1][1])
        )
    _, share, error = np.array(found).T
    assert share.mean() == pytest.approx(0.3, abs=0.01)
    assert share.std() == pytest.approx(error.mean(), rel=0.15)


def test_twice_adapted_is_adapted_once():
    X, y = rows(3000, (0.4, 0.3, 0.3))
    model = cd.NaiveBayes().fit(X, y)
    new, _ = rows(3000, (0.1, 0.1, 0.8), seed=2)
    once = model.adapt(new)
    assert once.adapt(new).fitted_.policy.class_prior == pytest.approx(once.fitted_.policy.class_prior)
    with_costs = model.with_policy(costs={("a", "b"): 3}).adapt(new)
    assert with_costs.fitted_.policy.costs == {("a", "b"): 3}


def test_the_command(tmp_path):
    X, y = rows(2000, (0.4, 0.3, 0.3))
    cd.fit({**X, "y": y}, "y", model="naive").save(tmp_path / "m.candide")
    new, _ = rows(2000, (0.1, 0.2, 0.7), seed=3)
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(new), tmp_path / "new.parquet")
    typed = ["adapt", str(tmp_path / "m.candide"), str(tmp_path / "new.parquet"), "-o", str(tmp_path / "n.candide")]
    text = CliRunner().invoke(cli, typed, catch_exceptions=False).output
    assert "n.candide" in text
    assert "naive Bayes is overconfident" in text
    facts = json.loads(CliRunner().invoke(cli, [*typed, "--json"], catch_exceptions=False).output)
    assert [one["label"] for one in facts["class_proportions"]] == list(KEYS)
    assert all(one["low"] <= one["after"] <= one["high"] for one in facts["class_proportions"])
    loaded = cd.load(tmp_path / "n.candide").fitted_.policy.class_prior
    assert loaded["c"] == pytest.approx(facts["class_proportions"][2]["after"])


def test_rows_without_information():
    X, y = rows(500, (0.4, 0.3, 0.3))
    model = cd.NaiveBayes().fit(X, y)
    with pytest.raises(InputError, match="none of the model's columns"):
        cd.adapt_prior(model, {"other": [1.0, 2.0]})
    with pytest.raises(InputError, match="no rows"):
        cd.adapt_prior(model, {name: values[:0] for name, values in X.items()})


@pytest.mark.parametrize("share", [0.02, 0.6])
def test_adult_reweighted(share):
    import pyarrow.parquet as pq

    train, test = (pq.read_table(tables.table(f"adult_{part}.parquet")).to_pandas() for part in ("train", "test"))
    model = cd.fit(train.sample(12_000, random_state=0), "class")
    rich = (test["class"] == ">50K").to_numpy()
    rng = np.random.default_rng(0)
    yes, no = np.flatnonzero(rich), np.flatnonzero(~rich)
    n = int(min(len(yes) / share, len(no) / (1 - share)))
    drawn = [rng.choice(rows, int(n * part), replace=False) for rows, part in ((yes, share), (no, 1 - share))]
    some = test.iloc[np.concatenate(drawn)]
    found = cd.adapt_prior(model, some.drop(columns="class"))
    assert found.proportions_after[">50K"] == pytest.approx(share, abs=0.03)
    before, after = (cd.evaluate(m, some, "class").log_loss for m in (model, found.fitted))
    assert after < before


@pytest.mark.parametrize("kind", ["naive", "bayes"])
@pytest.mark.parametrize("n", [1, 50])
def test_rows_without_information_give_no_proportions(kind, n, tmp_path):
    X, y = rows(600, (0.4, 0.3, 0.3))
    model = cd.fit({**X, "y": y}, "y", model=kind)
    with pytest.raises(InputError) as caught:
        cd.adapt_prior(model, {name: [None] * n for name in X}, tmp_path / "m.candide")
    assert caught.value.value == n
    assert not (tmp_path / "m.candide").exists()
