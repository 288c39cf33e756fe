"""A file gives back the estimator that was saved, with all its parameters."""

import numpy as np
import pytest
from tests.store.forged_files import forge, set_field

import candide as cd
from candide import store
from candide.errors import ModelFileError
from candide.estimators.argument_checks import freeze
from candide.events import Gaussian, Multinomial, Text
from candide.priors import Dirichlet, Jeffreys, NormalInverseWishart

TEXTS = ["free prize call now", "see you at five then", "free call for you all", "so much for that"]
SAID = ["spam", "ham", "spam", "ham"]
RNG = np.random.default_rng(0)
ROWS = {name: RNG.poisson(4.0, 40).astype(float) for name in "abcd"}
Y = RNG.integers(0, 2, 40)
FULL = Gaussian(covariance="full")

MODELS = {
    "text as a table": (cd.NaiveBayes({"text": "text"}), {"text": TEXTS}, SAID),
    "text under a prior of the model": (
        cd.NaiveBayes({"text": "text"}, param_priors=Dirichlet(0.1)),
        {"text": TEXTS},
        SAID,
    ),
    "characters": (cd.TextNB(analyzer="char_wb", weights=None), TEXTS, SAID),
    "text under an own prior": (cd.NaiveBayes({"text": Text(prior=Jeffreys())}), {"text": TEXTS}, SAID),
    "text, chosen": (cd.NaiveBayes({"text": "text"}, select=1), {"text": TEXTS}, SAID),
    "a group, chosen": (cd.NaiveBayes({tuple("abcd"): FULL}, select=1), ROWS, Y),
    "a group": (cd.NaiveBayes({tuple("abcd"): FULL}, class_prior=[0.3, 0.7]), ROWS, Y),
    "a group under an own prior": (
        cd.NaiveBayes({tuple("abcd"): Gaussian(covariance="full", prior=NormalInverseWishart(kappa=0.5))}), ROWS, Y),
    "groups of words": (cd.NaiveBayes({("a", "b"): Multinomial(), ("c", "d"): Multinomial()}), ROWS, Y),
    "documents": (cd.TextNB(alpha=0.2, ngrams=(1, 2), idf=True, weights=None), TEXTS, SAID),
    "documents, complement": (cd.TextNB("complement", norm=True, estimate="map", alpha=2.0), TEXTS, SAID),
    "documents of given classes": (cd.TextNB(class_prior="empirical", weights=None), TEXTS, SAID),
    "documents of given shares": (cd.TextNB(class_prior={"ham": 0.2, "spam": 0.8}, weights=None), TEXTS, SAID),
    "documents by event": (cd.TextNB(estimate={"text": "mean"}, weights=None), TEXTS, SAID),
}  # fmt: skip
for covariance in ("full", "tied", "diagonal", "tied-diagonal", "spherical", "fixed"):
    MODELS[covariance] = (cd.GaussianBayes(covariance, fixed=0.5, class_prior="uniform"), ROWS, Y)
COUNTS = RNG.poisson(2.0, (40, 40))
MODELS |= {
    "inferred": (cd.NaiveBayes(), ROWS, Y),
    "one event for all": (cd.NaiveBayes("poisson", select=2), ROWS, Y),
    "GaussianNB": (cd.GaussianNB(priors=[0.3, 0.7], var_smoothing=1e-3), np.column_stack(list(ROWS.values())), Y),
    "BernoulliNB": (cd.BernoulliNB(binarize=1.0, alpha=0.5), COUNTS, Y),
    "MultinomialNB": (cd.MultinomialNB(alpha=np.linspace(0.1, 2, 40), class_prior=[2, 1]), COUNTS, Y),
    "ComplementNB": (cd.ComplementNB(norm=True, alpha=0), COUNTS + 1, Y),
    "CategoricalNB": (cd.CategoricalNB(min_categories=[12] * 40, fit_prior=False), COUNTS, Y),
}


def same_settings(again, model):
    assert freeze(again.get_params(deep=False)) == freeze(model.get_params(deep=False))


@pytest.mark.parametrize("detail", ["tally", "score"])
@pytest.mark.parametrize("name", MODELS)
def test_the_class_and_its_settings_come_back(name, detail, tmp_path):
    model, X, y = MODELS[name]
    model.fit(X, y).save(tmp_path / "m", detail=detail)
    again = cd.load(tmp_path / "m")
    assert type(again) is type(model)
    same_settings(again, model)
    assert again.n_features_in_ == model.n_features_in_
    np.testing.assert_array_equal(again.classes_, model.classes_)
    np.testing.assert_array_equal(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    again.save(tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_goes_on_as_the_one_that_was_saved(name, tmp_path):
    model, X, y = MODELS[name]
    model.fit(X, y).save(tmp_path / "m", provenance={"source": "a test"})
    again = cd.load(tmp_path / "m")
    want = (model + model).predict_log_proba(X)
    for other in (again + again, again.with_prior() + model, again.partial_fit(X, y), cd.load(tmp_path / "m") + model):
        np.testing.assert_allclose(other.predict_log_proba(X), want, rtol=1e-10)
    assert (again + model).fitted_.provenance == again.with_prior().fitted_.provenance == {"source": "a test"}
    from sklearn.base import clone

    fresh = clone(again).fit(X, y)
    assert fresh.fitted_.plan == model.fitted_.plan
    np.testing.assert_allclose(fresh.predict_log_proba(X), model.predict_log_proba(X), rtol=1e-12)


def test_the_usual_class_prior_of_documents_stays_the_usual_one(tmp_path):
    """That of another model of text is another."""
    for given, wanted in (("auto", "uniform"), ("empirical", "empirical")):
        cd.TextNB(class_prior=given, weights=None).fit(TEXTS[:3], SAID[:3]).save(tmp_path / "m")
        again = cd.load(tmp_path / "m").with_prior(model="complement")
        assert again.fitted_.settings.class_prior == wanted


def test_an_updated_file_is_still_of_its_class(tmp_path):
    cd.GaussianBayes("diagonal").fit(ROWS, Y).save(tmp_path / "m")
    store.update_file(tmp_path / "m", lambda fitted: fitted + fitted)
    assert type(cd.load(tmp_path / "m")) is cd.GaussianBayes


def test_what_an_own_class_inherits_from_is_kept(tmp_path):
    class Mine(cd.GaussianBayes):
        pass

    Mine("diagonal").fit(ROWS, Y).save(tmp_path / "m")
    assert type(cd.load(tmp_path / "m")) is cd.GaussianBayes


@pytest.mark.parametrize("name", ["text as a table", "documents", "full", "GaussianNB", "a group"])
def test_a_file_that_names_no_estimator_is_a_naive_bayes(name, tmp_path):
    model, X, y = MODELS[name]
    model.fit(X, y).save(tmp_path / "m")
    forge(tmp_path / "m", lambda header, arrays: header.pop("estimator"))
    again = cd.load(tmp_path / "m")
    assert type(again) is cd.NaiveBayes
    X = {"text": X} if name == "documents" else X
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X if name != "documents" else X["text"]))


@pytest.mark.parametrize(
    "wrong",
    [
        ("estimator", "name", "TextNB"),
        ("estimator", "name", "GaussianBayes"),
        ("estimator", "name", "GaussianNB"),
        ("estimator", "params", {}),
        ("estimator", "params", "class_prior", "uniform"),
        ("estimator", "params", "wings", 2),
        ("estimator", "params", "select", {"sequence": [1]}),
    ],
)
def test_parameters_that_do_not_suit_the_counts_are_refused(wrong, tmp_path):
    cd.NaiveBayes("poisson", class_prior=[0.2, 0.8]).fit(ROWS, Y).save(tmp_path / "m")
    forge(tmp_path / "m", set_field(wrong[-1], *wrong[:-1]))
    name = wrong[2] if wrong[1] == "name" else "NaiveBayes"
    with pytest.raises(ModelFileError, match=f"m: invalid parameters of {name}: "):
        cd.load(tmp_path / "m")
    assert store.load(tmp_path / "m").labels.values == (0, 1)


def test_long_events_are_kept_in_the_plan(tmp_path):
    X = {f"x{i}": np.arange(6.0) + i for i in range(100)}
    model = cd.NaiveBayes(dict.fromkeys(list(X)[:90], "poisson")).fit(X, [0, 0, 0, 1, 1, 1])
    model.save(tmp_path / "m")
    again = cd.load(tmp_path / "m")
    assert again.fitted_.plan == model.fitted_.plan
    assert again.forget({name: x[:1] for name, x in X.items()}, [0]).counts_.n_rows == 5
