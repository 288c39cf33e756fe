"""Bad input: an error of this package's type that names what and where, and a fitted drop-in that is left as it was."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError
from tests.estimators.dropins.dropin_cases import NAMES, SPARSE, assert_same_state, ours, rows, state

from candide.errors import CandideError, InputError, InputTypeError

COUNTS = ("CategoricalNB", "ComplementNB", "MultinomialNB")


def broken(name, value):
    X, y = rows(name)
    X[5, 2] = value
    return X, y


def cut(name):
    return rows(name)[0][:-1]


def with_text(name):
    X = rows(name)[0].astype(object)
    X[5, 2] = "forty"
    return X


def weights(value):
    w = np.ones(120)
    w[7] = value
    return w


class At:
    """What an error says, and where: NaN stands for any value."""

    def __init__(self, pattern, row=5, column=2, value=np.nan):
        self.pattern, self.row, self.column, self.value = pattern, row, column, value


@contextmanager
def refuses(error, what):
    with pytest.raises(error, match=what.pattern if isinstance(what, At) else what) as caught:
        yield caught
    if isinstance(what, At):
        assert (caught.value.row, caught.value.column) == (what.row, what.column)
        assert what.value != what.value or caught.value.value == what.value


# What is passed instead of good X, y or sample_weight; which drop-ins refuse it; the error; what it says of it: a
# pattern, or the pattern and the row, column and value that it names.
BAD = {
    "nan": (NAMES, InputError, At("contains NaN: nan"), lambda n: {"X": broken(n, np.nan)[0]}),
    "inf": (NAMES, InputError, At("contains infinity.*inf", value=np.inf), lambda n: {"X": broken(n, np.inf)[0]}),
    "minus inf": (
        NAMES, InputError, At("(infinity|Negative).*-inf", value=-np.inf), lambda n: {"X": broken(n, -np.inf)[0]},
    ),
    "float32 nan": (NAMES, InputError, At("NaN"), lambda n: {"X": broken(n, np.nan)[0].astype("f4")}),
    "nan in fortran order": (
        NAMES, InputError, At("NaN"), lambda n: {"X": np.asfortranarray(broken(n, np.nan)[0])},
    ),
    "nan in a named column": (
        NAMES, InputError, At("NaN", column="c2"),
        lambda n: {"X": pd.DataFrame(broken(n, np.nan)[0]).add_prefix("c")},
    ),
    "nan of a row that weighs nothing": (
        NAMES, InputError, At("NaN"),
        lambda n: {"X": broken(n, np.nan)[0], "sample_weight": (np.arange(120) != 5) * 1.0},
    ),
    "nan of a row that weighs next to nothing": (
        NAMES, InputError, At("NaN"),
        lambda n: {"X": broken(n, np.nan)[0], "sample_weight": np.where(np.arange(120) == 5, 1e-15, 1.0)},
    ),
    "row of nan": (NAMES, InputError, At("NaN", row=0, column=0), lambda n: {"X": np.full((120, 6), np.nan)}),
    "sparse nan": (
        SPARSE, InputError, At("NaN"), lambda n: {"X": scipy.sparse.csr_array(broken(n, np.nan)[0])},
    ),
    "sparse inf": (
        SPARSE, InputError, At("infinity", value=np.inf), lambda n: {"X": scipy.sparse.csr_array(broken(n, np.inf)[0])},
    ),
    "sparse nan that weighs nothing": (
        SPARSE, InputError, At("NaN"),
        lambda n: {"X": scipy.sparse.csr_array(broken(n, np.nan)[0]), "sample_weight": (np.arange(120) != 5) * 1.0},
    ),
    "negative": (COUNTS, InputError, At("Negative values.*-1", value=-1), lambda n: {"X": broken(n, -1)[0]}),
    "sparse negative": (
        ("ComplementNB", "MultinomialNB"), InputError, At("Negative values.*-1", value=-1),
        lambda n: {"X": scipy.sparse.csr_array(broken(n, -1)[0])},
    ),
    "text among objects": (NAMES, InputError, At("'forty'", value="forty"), lambda n: {"X": with_text(n)}),
    "array of text": (NAMES, InputError, At("", value="forty"), lambda n: {"X": with_text(n).astype(str)}),
    "text in a list": (NAMES, InputError, At("'forty'", value="forty"), lambda n: {"X": with_text(n).tolist()}),
    "complex": (NAMES, InputError, r"Complex data not supported", lambda n: {"X": rows(n)[0] + 1j}),
    "one dimension": (NAMES, InputError, r"Expected 2D array, got 1D", lambda n: {"X": np.arange(120.0)}),
    "three dimensions": (NAMES, InputError, r"dim 3", lambda n: {"X": np.zeros((120, 2, 2))}),
    "scalar": (NAMES, InputError, r"Expected 2D array, got scalar", lambda n: {"X": 3.0}),
    "ragged": (NAMES, InputError, r"inhomogeneous", lambda n: {"X": [[1, 2], [1]] * 60}),
    "no rows": (NAMES, InputError, r"0 sample\(s\)", lambda n: {"X": np.empty((0, 6)), "y": []}),
    "no columns": (NAMES, InputError, r"0 feature\(s\)", lambda n: {"X": np.empty((120, 0))}),
    "sparse where dense is needed": (
        ("CategoricalNB", "GaussianNB"), InputTypeError, r"[Ss]parse data was passed",
        lambda n: {"X": scipy.sparse.csr_array(rows(n)[0])},
    ),
    "y too short": (NAMES, InputError, r"120 rows in X, 119 labels in y", lambda n: {"y": rows(n)[1][:-1]}),
    "X too short": (NAMES, InputError, r"119 rows in X, 120 labels in y", lambda n: {"X": cut(n)}),
    "y missing": (NAMES, InputError, r"y is None", lambda n: {"y": None}),
    "y with None": (NAMES, InputError, At("y contains NaN", 1, None, None), lambda n: {"y": ["a", None] + ["b"] * 118}),
    "y with nan": (NAMES, InputError, At("y contains NaN", 1, None), lambda n: {"y": [0.0, np.nan] + [1.0] * 118}),
    "y continuous": (
        NAMES, InputError, At("Unknown label type", None, None, 0.5), lambda n: {"y": [0.5] + [1.0] * 119},
    ),
    "y of two columns": (NAMES, InputError, r"y should be a 1d array", lambda n: {"y": np.zeros((120, 2), int)}),
    "weight negative": (
        NAMES, InputError, At("sample_weight: -2", 7, None, -2.0), lambda n: {"sample_weight": weights(-2)},
    ),
    "weight nan": (NAMES, InputError, At("sample_weight: nan", 7, None), lambda n: {"sample_weight": weights(np.nan)}),
    "weight inf": (
        NAMES, InputError, At("sample_weight: inf", 7, None, np.inf), lambda n: {"sample_weight": weights(np.inf)},
    ),
    "weights too few": (NAMES, InputError, r"sample_weight.shape == \(3,\)", lambda n: {"sample_weight": np.ones(3)}),
    "weights of two columns": (NAMES, InputError, r"must be 1D", lambda n: {"sample_weight": np.ones((120, 2))}),
    "weights all zero": (NAMES, InputError, r"at least one non-zero", lambda n: {"sample_weight": np.zeros(120)}),
    "weights of text": (NAMES, InputError, r"weight must hold numbers", lambda n: {"sample_weight": ["a"] * 120}),
}  # fmt: skip
CASES = [pytest.param(name, *case[1:], id=f"{name}-{what}") for what, case in BAD.items() for name in case[0]]


@pytest.mark.parametrize(("name", "error", "message", "bad"), CASES)
def test_fit_refuses(name, error, message, bad):
    X, y = rows(name)
    with refuses(error, message) as caught:
        ours(name).fit(**({"X": X, "y": y} | bad(name)))
    assert isinstance(caught.value, ValueError | TypeError)
    assert isinstance(caught.value, CandideError)


@pytest.mark.parametrize(("name", "error", "message", "bad"), CASES)
def test_refused_partial_fit_changes_nothing(name, error, message, bad):
    X, y = rows(name)
    model = ours(name).fit(X, y)
    before = state(name, model, X)
    with refuses(error, message):
        model.partial_fit(**({"X": X, "y": y} | bad(name)))
    assert_same_state(before, state(name, model, X))


@pytest.mark.parametrize(("name", "error", "message", "bad"), CASES)
def test_refused_fit_changes_nothing(name, error, message, bad):
    X, y = rows(name)
    model = ours(name).fit(X, y)
    before = state(name, model, X)
    with refuses(error, message):
        model.fit(**({"X": X, "y": y} | bad(name)))
    assert_same_state(before, state(name, model, X))


@pytest.mark.parametrize("verb", ["predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", NAMES)
def test_scoring_refuses_what_is_not_finite(name, value, verb):
    model = ours(name).fit(*rows(name))
    with refuses(InputError, At("NaN|infinity|Negative")):
        getattr(model, verb)(broken(name, value)[0])
    if name in SPARSE:
        with refuses(InputError, At("NaN|infinity")):
            getattr(model, verb)(scipy.sparse.csr_array(broken(name, value)[0]))


@pytest.mark.parametrize("name", NAMES)
def test_scoring_refuses_bad_shapes_and_text(name):
    X, y = rows(name)
    model = ours(name).fit(X, y)
    for bad, message in [
        (X[:, :4], f"X has 4 features, but {name} is expecting 6 features as input"),
        (np.zeros((2, 6, 2)), "dim 3"),
        (X[0], "Expected 2D array, got 1D"),
        (X[:0], r"0 sample\(s\)"),
        (with_text(name), At("'forty'", value="forty")),
    ]:
        with refuses(InputError, message):
            model.predict(bad)
    with pytest.raises(InputError, match="X has 4 features"):
        model.partial_fit(X[:, :4], y)


def test_negative_categories_are_refused_at_predict():
    model = ours("CategoricalNB").fit(*rows("CategoricalNB"))
    for X in (np.array([[0, 0, -3, 0, 0, 0]]), np.array([[0, 0, -3.0, 0, 0, 0]])):
        with refuses(InputError, At("Negative values in data passed to CategoricalNB.*-3", 0, 2, -3)):
            model.predict_proba(X)


@pytest.mark.parametrize("name", NAMES)
def test_classes_of_a_stream(name):
    X, y = rows(name)
    with pytest.raises(InputError, match="classes must be passed on the first call"):
        ours(name).partial_fit(X, y)
    with pytest.raises(InputError, match=r"target label\(s\) \[2\] in y do not exist in the initial classes \[0 1\]"):
        ours(name).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(InputError, match="names a class twice"):
        ours(name).partial_fit(X, y, classes=[0, 1, 2, 2])
    model = ours(name).partial_fit(X, y, classes=[2, 1, 0])
    before = state(name, model, X)
    with pytest.raises(InputError, match="not the same as on last call to partial_fit"):
        model.partial_fit(X, y, classes=[0, 1, 2, 3])
    with pytest.raises(InputError, match=r"target label\(s\) \[9\] in y do not exist"):
        model.partial_fit(X[:3], [0, 9, 1])
    assert_same_state(before, state(name, model, X))


@pytest.mark.parametrize("name", NAMES)
def test_not_fitted(name):
    model = ours(name)
    X = rows(name)[0]
    for verb in ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba"):
        with pytest.raises(NotFittedError, match=name):
            getattr(model, verb)(X)
    assert not hasattr(model, "class_count_")
    with pytest.raises(NotFittedError):
        _ = model.class_count_


BAD_SETTINGS = [
    ("GaussianNB", {"var_smoothing": -1.0}, "var_smoothing"),
    ("GaussianNB", {"priors": [0.5, 0.5]}, "Number of priors must match number of classes"),
    ("GaussianNB", {"priors": [0.5, 0.5, 0.5]}, "sum of the priors should be 1"),
    ("GaussianNB", {"priors": [-0.5, 1.0, 0.5]}, "non-negative"),
    ("BernoulliNB", {"binarize": -0.5}, "binarize"),
    ("BernoulliNB", {"alpha": [1.0, 2.0]}, "should contains `n_features`"),
    ("MultinomialNB", {"alpha": -1.0}, "alpha"),
    ("MultinomialNB", {"alpha": [1, 1, 1, 1, 1, -0.1]}, "All values in alpha must be greater than 0"),
    ("MultinomialNB", {"alpha": [1, 1, 1, 1, 1, np.nan]}, "All values in alpha must be greater than 0"),
    ("MultinomialNB", {"class_prior": [0.5, 0.5]}, "Number of priors must match number of classes"),
    ("MultinomialNB", {"class_prior": [-0.5, 1.0, 0.5]}, "non-negative"),
    ("MultinomialNB", {"fit_prior": "yes"}, "fit_prior"),
    ("ComplementNB", {"norm": 3}, "norm"),
    ("CategoricalNB", {"alpha": [1.0] * 6}, "alpha"),
    ("CategoricalNB", {"min_categories": [2, 2]}, "'min_categories' should have shape"),
    ("CategoricalNB", {"min_categories": [1.5] * 6}, "'min_categories' should have integral type"),
    ("CategoricalNB", {"min_categories": 0}, "min_categories"),
]


@pytest.mark.parametrize(("name", "settings", "message"), BAD_SETTINGS)
def test_settings_are_checked_when_rows_come(name, settings, message):
    X, y = rows(name)
    model = ours(name).fit(X, y)
    before = state(name, model, X)
    model.set_params(**settings)
    for verb in (model.fit, model.partial_fit):
        with pytest.raises(InputError, match=message):
            verb(X, y)
        assert_same_state(before, state(name, model, X))


def test_a_parameter_of_the_wrong_kind_is_also_scikit_learns_error():
    with pytest.raises(InvalidParameterError, match="'alpha' parameter of MultinomialNB"):
        ours("MultinomialNB", alpha="much").fit(*rows("MultinomialNB"))


def test_a_threshold_cannot_change_within_a_stream():
    X, y = rows("BernoulliNB")
    model = ours("BernoulliNB", binarize=0.0).fit(X, y)
    before = state("BernoulliNB", model, X)
    for other in (1.0, None):
        model.set_params(binarize=other)
        with pytest.raises(InputError, match="binarize was changed"):
            model.partial_fit(np.minimum(X, 1), y)
    assert_same_state(before, state("BernoulliNB", model, X))


def test_fractions_above_one_are_refused():
    with pytest.raises(InputError, match="fractions of a yes must lie between 0 and 1"):
        ours("BernoulliNB", binarize=None).fit([[3.0], [0.0]], [0, 1])


def test_a_category_that_is_not_a_position():
    with pytest.raises(InputError, match="4000000001 categories") as caught:
        ours("CategoricalNB").fit(np.array([[0, 4_000_000_000], [1, 2]]), [0, 1])
    assert caught.value.column == 1
    assert "OrdinalEncoder" in caught.value.remedy


def test_values_whose_squares_overflow():
    with pytest.raises(InputError, match="too large"):
        ours("GaussianNB").fit([[1e200], [-1e200], [1.0]], [0, 0, 1])


def test_no_variance_at_all_is_named():
    X, y = [[1.0, 2.0], [1.0, 3.0], [2.0, 4.0], [3.0, 5.0]], [0, 0, 1, 1]
    with pytest.raises(InputError, match="class 0: all values are the same") as caught:
        ours("GaussianNB", var_smoothing=0.0).fit(X, y)
    assert caught.value.column == 0
    assert np.isfinite(ours("GaussianNB").fit(X, y).predict_proba(X)).all()
