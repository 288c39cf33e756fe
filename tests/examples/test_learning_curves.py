"""Learning curves: the same draws by hand, laws of the summary, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest
from learning_curves import LearningCurves, learning_curves, plot_learning_curves
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB

import candide as cd
from candide.errors import InputError


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 3)) + y[:, None], y


def by_hand(model, X, y, size, draw, scaled):
    """The definition, written out: shuffle, a third to test, a row of each class first."""
    order = np.random.default_rng([0, draw]).permutation(len(y))
    test, pool = order[: round(len(y) / 3)], order[round(len(y) / 3) :].tolist()
    firsts = sorted(next(i for i, row in enumerate(pool) if y[row] == c) for c in (0, 1))
    train = ([pool[i] for i in firsts] + [row for i, row in enumerate(pool) if i not in firsts])[:size]
    if scaled:
        X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    return np.mean(model.fit(X[train], y[train]).predict(X[test]) != y[test])


@pytest.mark.parametrize(
    ("name", "model", "scaled"),
    [
        ("naive Bayes", GaussianNB(var_smoothing=0), False),
        ("logistic regression", LogisticRegression(max_iter=2000), True),
        ("perceptron", Perceptron(random_state=0), True),
    ],
)
def test_errors_are_those_of_the_definition(name, model, scaled):
    X, y = rows()
    models = {name: cd.NaiveBayes(estimate="mle") if name == "naive Bayes" else model}
    curves = learning_curves(X, y, models=models, sizes=[12, 40, 80], draws=3)
    wanted = [[by_hand(model, X, y, size, draw, scaled) for draw in range(3)] for size in (12, 40, 80)]
    np.testing.assert_allclose(curves.errors[0], wanted)
    np.testing.assert_allclose(curves.mean[0], np.mean(wanted, axis=1))


def test_categories_and_gaps_are_taken():
    rng = np.random.default_rng(1)
    y = rng.choice(["a", "b"], 150)
    X = {"word": np.where(rng.random(150) < 0.8, y, "c").astype(object), "size": rng.normal(size=150)}
    X["word"][:5], X["size"][5:9] = None, np.nan
    curves = learning_curves(X, y, sizes=[20, 100], draws=4)
    assert curves.names == ("naive Bayes", "logistic regression", "perceptron")
    assert (curves.mean[:2, -1] < 0.2).all()  # the word tells, in four cases of five
    assert (curves.low <= curves.mean).all()
    assert (curves.mean <= curves.high).all()


def test_the_same_seed_gives_the_same_curves_and_another_others():
    X, y = rows()
    first, again, other = (learning_curves(X, y, sizes=[10, 40], draws=2, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.errors, again.errors)
    assert (first.errors != other.errors).any()


def test_crossings_of_known_lines():
    """Straight in log m: the gap goes from .1 at m = 10 to -.1 at m = 1000, so it is 0 at 100."""
    sizes = np.array([10, 1000])
    flat, falling = np.full((2, 4), 0.2), np.array([[0.3] * 4, [0.1] * 4])
    curves = LearningCurves(sizes, ("naive Bayes", "b", "ahead", "never"), np.stack([flat, falling, flat - 0.1, flat]))
    found = curves.crossings()
    assert found["b"] == pytest.approx(100)
    assert (found["ahead"], found["never"]) == (0.0, None)
    assert curves.describe_comparison("b") == "ahead, then behind from 100"
    assert [curves.describe_comparison(name) for name in ("ahead", "never")] == ["behind throughout", "even"]


def test_a_lead_within_the_noise_is_none():
    rng = np.random.default_rng(0)
    errors = np.stack([np.full((3, 50), 0.2), 0.199 + rng.normal(0, 0.1, (3, 50))])
    curves = LearningCurves(np.array([10, 20, 40]), ("naive Bayes", "other"), errors)
    assert curves.crossings() == {"other": None}


def test_naive_bayes_leads_early_on_rows_of_its_own_model():
    """Ng and Jordan: rows needed grow with log d for naive Bayes, with d for logistic regression."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 900)
    X = rng.normal(size=(900, 40)) + 0.4 * y[:, None]
    curves = learning_curves(X, y, sizes=[120, 600], draws=10, models={
        "naive Bayes": cd.NaiveBayes(cd.events.Gaussian(covariance="tied-diagonal")),
        "logistic regression": LogisticRegression(C=np.inf, max_iter=200),
    })  # fmt: skip
    early, late = curves.mean[1] - curves.mean[0]
    assert early > 0.04
    assert late < early / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": [1]}, "sizes must lie between 2"),
        ({"sizes": [500]}, "80, the rows left"),
        ({"draws": 0}, "draws must be at least 1"),
        ({"y": np.zeros(120)}, "two classes"),
    ],
)
def test_what_cannot_be_drawn_is_refused(change, message):
    X, y = rows()
    with pytest.raises(InputError, match=message):
        learning_curves(X, change.pop("y", y), **change)


def test_text_is_refused_by_name():
    words = ["see you at five tomorrow", "call now for a free prize", "the meeting is moved again"] * 20
    with pytest.raises(InputError, match="column 'body' is text"):
        learning_curves({"body": [f"{w} {i}" for i, w in enumerate(words)]}, ["a", "b", "a"] * 20)


def test_naive_bayes_is_solid_and_the_others_are_dashed():
    mean = np.array([[0.3, 0.2, 0.18], [0.4, 0.22, 0.15], [0.5, 0.3, 0.2]])
    names = ("naive Bayes", "logistic regression", "GaussianNB")
    curves = SimpleNamespace(sizes=[10, 40, 640], names=names, mean=mean, low=mean - 0.02, high=mean + 0.03)
    ax = plot_learning_curves(curves)
    assert {line.get_label(): line.get_linestyle() for line in ax.lines} == dict(
        zip(names, ("-", "--", "-"), strict=True)
    )
    for i, (line, band) in enumerate(zip(ax.lines, ax.collections, strict=True)):
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([[10, 40, 640], mean[i]]))
        y = band.get_paths()[0].vertices[:, 1]
        assert (y.min(), y.max()) == pytest.approx((mean[i].min() - 0.02, mean[i].max() + 0.03))
    assert ax.get_xscale() == "log"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["10", "40", "640"]


def test_learning_curves_of_the_wrong_shape_are_refused():
    curves = SimpleNamespace(sizes=[1, 2], names=["a"], mean=np.ones((2, 2)), low=np.ones((1, 2)), high=np.ones((1, 2)))
    with pytest.raises(cd.errors.InputError, match="a row a name"):
        plot_learning_curves(curves)
