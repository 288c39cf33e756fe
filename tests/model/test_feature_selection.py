"""Columns are chosen from the counts: after merges anew, in every fold for itself, and kept in the model file."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import StratifiedKFold, cross_val_score

import candide as cd
from candide.engines.base import Folds, open_source
from candide.errors import InputError, ModelFileError
from candide.events import Gaussian
from candide.fit_source import fit_model
from candide.metrics.scores import Scores
from candide.model.fitted import FittedModel
from candide.model.settings import Settings
from candide.store import container, load, save
from candide.validation.cross_validation import cross_validate
from candide.validation.evaluation import evaluate


def made(n=300, noise=6, seed=0):
    """Two columns that tell of the class, one of them categories, among columns of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    columns = {f"noise{i}": rng.normal(size=n) for i in range(noise)}
    columns["signal"] = rng.normal(y)
    columns["kind"] = np.where(rng.random(n) < 0.5, y, rng.integers(0, 4, n)).astype(str)
    columns["coin"] = rng.integers(0, 2, n).astype(str)
    return columns, y


def test_the_best_are_chosen_and_only_they_are_needed():
    X, y = made()
    model = cd.NaiveBayes(select=2).fit(X, y)
    assert set(model.fitted_.plan.columns) == {"signal", "kind"}
    alone = {name: X[name] for name in ("signal", "kind")}
    expected = cd.NaiveBayes().fit(alone, y).predict_proba(alone)
    np.testing.assert_allclose(model.predict_proba(alone), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    with pytest.warns(UserWarning, match="'signal'"):  # missing in every row, as a gap is
        model.predict({"kind": X["kind"]})


def test_evidence_selects_informative_columns_and_at_least_one():
    X, y = made()
    model = cd.NaiveBayes(select="evidence").fit(X, y)
    positive = {score.column for score in model.feature_scores() if score.evidence > 0}
    assert set(model.fitted_.plan.columns) == positive
    assert {"signal", "kind"} <= positive < set(X)
    noise = {name: values for name, values in X.items() if name.startswith("noise")}
    nothing = cd.NaiveBayes(select="evidence").fit(noise, y)
    assert nothing.fitted_.plan.columns == (nothing.feature_scores()[0].column,)


def test_the_choice_can_be_made_again_without_the_data():
    X, y = made()
    whole = cd.NaiveBayes().fit(X, y)
    chosen = whole.with_prior(select=3)
    np.testing.assert_allclose(chosen.predict_proba(X), cd.NaiveBayes(select=3).fit(X, y).predict_proba(X), rtol=1e-12)
    back = chosen.with_prior(select=len(X))
    np.testing.assert_allclose(back.predict_proba(X), whole.predict_proba(X), rtol=1e-12)
    assert chosen.get_params()["select"] == 3


def test_merges_updates_and_removals_choose_anew():
    X, y = made(400)
    parts = [({k: v[a:b] for k, v in X.items()}, y[a:b]) for a, b in ((0, 30), (30, 400))]
    whole = cd.NaiveBayes(select=2).fit(X, y)
    small, rest = (cd.NaiveBayes(select=2).fit(*part) for part in parts)
    for model in (small + rest, cd.NaiveBayes(select=2).fit(*parts[0]).partial_fit(*parts[1])):
        assert model.fitted_.plan.columns == whole.fitted_.plan.columns
        np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-9)
    left = cd.NaiveBayes(select=2).fit(X, y).forget(*parts[1])
    assert left.fitted_.plan.columns == small.fitted_.plan.columns
    np.testing.assert_allclose(left.predict_proba(X), small.predict_proba(X), rtol=1e-6)


def test_arrays_are_as_wide_as_those_counted():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 9))
    X[:, 6] += y
    model = cd.NaiveBayes(select=1).fit(X, y)
    assert model.fitted_.plan.columns == (6,)
    np.testing.assert_allclose(
        model.predict_proba(X), cd.NaiveBayes().fit(X[:, [6]], y).predict_proba(X[:, [6]]), rtol=1e-12
    )
    with pytest.raises(InputError, match="expecting 9 features"):
        model.predict(X[:, :7])
    sampled, labels = model.sample(5, random_state=0)
    assert sampled.shape == (5, 9)
    assert np.isfinite(sampled[:, 6]).all()
    assert np.isnan(np.delete(sampled, 6, axis=1)).all()
    assert len(model.predict(sampled)) == len(labels)


@pytest.mark.parametrize("event", ["multinomial", "poisson", "bernoulli"])
def test_sparse_rows(event):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 100)
    X = rng.poisson(0.5 + y[:, None] * (np.arange(20) % 7 == 3))
    dense, sparse = cd.NaiveBayes(event, select=3).fit(X, y), cd.NaiveBayes(event, select=3).fit(csr_array(X), y)
    assert dense.fitted_.plan.columns == sparse.fitted_.plan.columns == (3, 10, 17)
    by_hand = cd.NaiveBayes(event).fit(X[:, [3, 10, 17]], y).predict_proba(X[:, [3, 10, 17]])
    np.testing.assert_allclose(dense.predict_proba(X), by_hand, rtol=1e-10)
    np.testing.assert_allclose(sparse.predict_proba(csr_array(X)), by_hand, rtol=1e-10)


def test_a_prior_with_a_value_a_column_goes_with_its_columns():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 100)
    X = rng.poisson(1.0 + y[:, None] * (np.arange(6) >= 4))
    alpha = np.arange(1.0, 7.0)
    model = cd.NaiveBayes(cd.events.Multinomial(prior=cd.priors.Dirichlet(alpha)), select=2).fit(X, y)
    chosen = list(model.fitted_.plan.columns)
    by_hand = cd.NaiveBayes(cd.events.Multinomial(prior=cd.priors.Dirichlet(alpha[chosen]))).fit(X[:, chosen], y)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X[:, chosen]), rtol=1e-12)


def test_columns_modelled_together_are_chosen_together():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 300)
    pair = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 300) + y[:, None] * [1.0, -1.0]
    X = {"a": pair[:, 0], "b": pair[:, 1], **{f"n{i}": rng.normal(size=300) for i in range(5)}}
    events = {("a", "b"): Gaussian(covariance="full")}
    model = cd.NaiveBayes(events, select=1).fit(X, y)
    assert model.fitted_.plan.columns == ("a", "b")
    both = {"a": X["a"], "b": X["b"]}
    np.testing.assert_allclose(
        model.predict_proba(both), cd.NaiveBayes(events).fit(both, y).predict_proba(both), rtol=1e-10
    )


@pytest.mark.parametrize("select", [0, -1, 0.5, 2.0, "best", True, [1], "10"])
def test_what_is_not_a_choice_is_an_error(select):
    X, y = made(40)
    with pytest.raises(InputError, match=r"select: .*pass a number of columns >= 1, 'evidence'"):
        cd.NaiveBayes(select=select).fit(X, y)


def test_more_than_there_are_is_all_and_numpys_numbers_are_numbers():
    X, y = made(40)
    assert len(cd.NaiveBayes(select=1000).fit(X, y).fitted_.plan.columns) == len(X)
    assert len(cd.NaiveBayes(select=np.int64(2)).fit(X, y).fitted_.plan.columns) == 2


def test_columns_without_evidence_cannot_be_chosen_from():
    X = np.random.default_rng(5).poisson(2.0, (20, 3))
    with pytest.raises(InputError, match=r"select: the columns 0, 1, 2 have no evidence under Complement"):
        cd.NaiveBayes("complement", select=2).fit(X, np.arange(20) % 2)


@pytest.mark.parametrize("detail", ["tally", "explain", "score"])
def test_the_choice_is_kept_in_the_model_file(tmp_path, detail):
    X, y = made()
    model = cd.NaiveBayes(select=2).fit(X, y)
    model.save(tmp_path / "m.candide", detail=detail)
    loaded = cd.load(tmp_path / "m.candide")
    assert loaded.fitted_.settings.select == 2
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), rtol=1e-10)
    if detail == "tally":
        assert loaded.counts_.plan.columns == tuple(X)
        np.testing.assert_allclose((loaded + model).predict_proba(X)[:5].sum(1), 1.0)
        assert len(loaded.with_prior(select=5).fitted_.plan.columns) == 5


def test_a_file_without_its_counts_takes_arrays_of_any_width_it_can_read(tmp_path):
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 100)
    X = rng.normal(size=(100, 8))
    X[:, 4] += 2 * y
    model = cd.NaiveBayes(select=1).fit(X, y)
    model.save(tmp_path / "m.candide", detail="score")
    loaded = cd.load(tmp_path / "m.candide")
    for width in (5, 8):
        np.testing.assert_allclose(loaded.predict_proba(X[:, :width]), model.predict_proba(X), rtol=1e-10)
    with pytest.raises(InputError, match="expecting 8 features"):
        loaded.predict(X[:, :4])


@pytest.mark.parametrize("select", [0, True, "all", 1.5])
def test_a_file_with_another_choice_is_refused(tmp_path, select):
    X, y = made(40)
    path = tmp_path / "m.candide"
    save(FittedModel(cd.NaiveBayes().fit(X, y).counts_, Settings(select=2)), path)
    header, arrays = container.unpack_container(memoryview(path.read_bytes()), verify=True)
    header["settings"]["select"] = select
    path.write_bytes(b"".join(container.pack_container(header, arrays)))
    with pytest.raises(ModelFileError):
        load(path)


def test_tables_are_fitted_and_scored_by_the_chosen_columns(tmp_path):
    X, y = made()
    data = pa.table({**X, "y": y})
    model = cd.fit(data, target="y", select=2, model="naive")
    in_memory = cd.NaiveBayes(select=2).fit(X, y)
    assert model.fitted_.plan.columns == in_memory.fitted_.plan.columns
    scored = cd.predict_table(model.fitted_, {"signal": X["signal"], "kind": X["kind"]})
    np.testing.assert_array_equal(scored["prediction"].to_numpy(), in_memory.predict(X))
    assert evaluate(model.fitted_, data).accuracy == pytest.approx((in_memory.predict(X) == y).mean())


def folds_of(data, folds, seed):
    with open_source(data) as source:
        batches = source.batches([data.column_names[0]], 1 << 17, Folds(folds, seed, "y"))
        return np.concatenate([batch.column(1).to_numpy() for batch in batches])


@pytest.mark.parametrize("select", [1, 4, "evidence"])
def test_every_fold_chooses_for_itself(select):
    """Cross-validation from fold tallies equals choosing and fitting on the rows of the other folds, by hand."""
    X, y = made(90, seed=3)
    data = pa.table({**X, "y": y})
    validation = cross_validate(data, "y", folds=6, settings=Settings(select=select), model="naive")
    fold = folds_of(data, 6, 0)
    choices = set()
    for f, scores in enumerate(validation.folds):
        train, test = ({k: v[at] for k, v in X.items()} for at in (fold != f, fold == f))
        model = cd.NaiveBayes(select=select).fit(train, y[fold != f])
        choices.add(model.fitted_.plan.columns)
        by_hand = Scores.from_log_posterior(model.predict_log_proba(test), y[fold == f])
        assert scores.metrics() == pytest.approx(by_hand.metrics(), rel=1e-9, abs=1e-12)
        np.testing.assert_array_equal(scores.confusion, by_hand.confusion)
    if select == 4:
        assert len(choices) > 1, "the folds should differ, or this shows nothing"


def noise(n=60, d=1500, seed=11):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.permutation(np.arange(n) % 2)


def test_selection_inside_the_folds_does_not_leak():
    """Of pure noise nothing can be learned: choosing inside the folds says so, choosing beforehand does not."""
    X, y = noise()
    data = pa.table({**{f"g{j}": X[:, j] for j in range(X.shape[1])}, "y": y})
    inside = cross_validate(data, "y", folds=10, settings=Settings(select=20), model="naive").total.accuracy
    best = cd.NaiveBayes(select=20).fit(X, y).fitted_.plan.columns
    before = cross_validate(data.select([*(f"g{j}" for j in best), "y"]), "y", folds=10, model="naive").total.accuracy
    assert 0.3 < inside < 0.7  # chance is .5, with a standard error of .065
    assert before > 0.9


def test_scikit_learns_cross_validation_does_not_leak_either():
    X, y = noise()
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    inside = cross_val_score(cd.NaiveBayes(select=20), X, y, cv=folds).mean()
    best = list(cd.NaiveBayes(select=20).fit(X, y).fitted_.plan.columns)
    assert 0.3 < inside < 0.7
    assert cross_val_score(cd.NaiveBayes(), X[:, best], y, cv=folds).mean() > 0.9


def test_learn_keeps_all_counts():
    X, y = made()
    fitted = fit_model(pa.table({**X, "y": y}), "y", settings=Settings(select=1), model="naive").fitted
    assert len(fitted.counts.plan.columns) == len(X)
    assert len(fitted.plan.columns) == 1
    assert len((fitted + fitted).plan.columns) == 1
