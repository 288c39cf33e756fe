"""ROC, precision-recall, lift, coverage and thresholds are those of scikit-learn and of plain counting."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

import candide as cd
from candide import plot
from candide.plot import style
from candide.plot.picture import PlotRows, PlotSpec, draw_plot


@pytest.fixture(scope="module")
def judged():
    cancer = load_breast_cancer(as_frame=True)
    kind = cancer.target_names[cancer.target]
    model = cd.BayesClassifier().fit(cancer.data[:300], kind[:300])
    return model, cancer.data[300:], kind[300:]


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def points(ax, i=0):
    x, y = ax.lines[i].get_data()
    return np.asarray(x, float), np.asarray(y, float)


def test_roc_is_scikit_learns(judged):
    model, X, y = judged
    p = model.predict_proba(X)[:, 1]
    x, found = points(plot.roc(model, X, y))
    fpr, tpr, _ = roc_curve(y == model.classes_[1], p, drop_intermediate=False)
    np.testing.assert_allclose(np.trapezoid(found, x), np.trapezoid(tpr, fpr), rtol=1e-12)
    assert {*zip(x.round(9), found.round(9), strict=True)} <= {*zip(fpr.round(9), tpr.round(9), strict=True)}
    auc = roc_auc_score(y == model.classes_[1], p)
    assert texts(plot.roc(model, X, y)) == [f"{model.classes_[1]}: AUC {auc:.3f}", "by chance"]


def test_precision_recall_is_scikit_learns(judged):
    model, X, y = judged
    p = model.predict_proba(X)[:, list(model.classes_).index("malignant")]
    ax = plot.precision_recall(model, X, y, positive="malignant")
    x, found = points(ax)
    precision, recall, _ = precision_recall_curve(y == "malignant", p)
    ours = {*zip(x.round(9), found.round(9), strict=True)}
    assert {*zip(recall.round(9), precision.round(9), strict=True)} <= ours
    assert f"{average_precision_score(y == 'malignant', p):.3f}" in texts(ax)[0]
    assert points(ax, 1)[1][0] == pytest.approx(np.mean(y == "malignant"))


def test_lift_is_counted_from_the_most_probable_row_down(judged):
    model, X, y = judged
    p = model.predict_proba(X)[:, list(model.classes_).index("malignant")]
    x, found = points(plot.lift(model, X, y, positive="malignant"))
    order = np.argsort(-p, kind="stable")
    hits = np.cumsum(y[order] == "malignant")
    for share, value in zip(x[1:], found[1:], strict=True):
        n = round(share * len(y))
        if n < len(y) and p[order][n - 1] > p[order][n]:  # no tie is cut
            assert value == pytest.approx(hits[n - 1] / n / np.mean(y == "malignant"))
    assert (x[-1], found[-1]) == (1, pytest.approx(1))


def test_coverage_is_the_accuracy_of_the_surest_rows(judged):
    model, X, y = judged
    p = model.predict_proba(X).max(axis=1)
    right = model.predict(X) == y
    ax = plot.coverage(model, X, y)
    x, found = points(ax)
    assert x.min() * len(y) >= 19.9
    for share, value in zip(x, found, strict=True):
        sure = np.sort(p)[::-1][round(share * len(y)) - 1]
        assert value == pytest.approx(right[p >= sure].mean())
    assert found[-1] == pytest.approx(right.mean())
    marks = {text.get_text(): text.xy for text in ax.texts}
    for said, (share, value) in marks.items():
        assert share == pytest.approx(np.mean(p >= float(said)))
        assert value == pytest.approx(right[p >= float(said)].mean())


def test_thresholds_are_what_rows_above_them_are(judged):
    model, X, y = judged
    p, own = model.predict_proba(X)[:, list(model.classes_).index("malignant")], y == "malignant"
    ax = plot.thresholds(model, X, y, positive="malignant")
    found = {line.get_label(): np.asarray(line.get_data(), float) for line in ax.lines}
    for at in (0.1, 0.5, 0.9):
        taken = p >= at
        want = {
            "precision": own[taken].mean(),
            "recall": own[taken].sum() / own.sum(),
            "F1": 2 * own[taken].sum() / (taken.sum() + own.sum()),
            "proportion of rows predicted": taken.mean(),
        }
        for name, value in want.items():
            x, y_ = found[name]
            assert y_[np.searchsorted(x, at)] == pytest.approx(value), (name, at)


def test_of_many_classes_the_hardest_have_colours_and_the_others_are_grey():
    digits = load_digits()
    model = cd.GaussianNB(var_smoothing=0.1).fit(digits.data[:1000], digits.target[:1000])
    test = digits.data[1000:], digits.target[1000:]
    ax = plot.roc(model, *test)
    p = model.predict_proba(test[0])
    auc = [roc_auc_score(test[1] == c, p[:, c]) for c in range(10)]
    named = {int(text.split(":")[0]) for text in texts(ax)[:8]}
    assert named == set(np.argsort(auc)[: style.MAX_LEGEND_CLASSES].tolist())
    assert texts(ax)[8:] == ["2 more, with higher values", "by chance"]
    alone = plot.roc(model, *test, positive=3)
    assert len(texts(alone)) == 2


def test_a_cross_validation_is_drawn_with_its_own_rows(judged):
    _, X, y = judged
    crossed = cd.cross_validate(X.assign(kind=y), "kind", folds=3)
    ax = plot.roc(crossed)
    assert f"{crossed.total.auc:.3f}" in texts(ax)[0]
    with pytest.raises(cd.errors.InputError) as error:
        plot.lift(crossed, X, y)
    assert error.value.remedy


@pytest.mark.parametrize("what", ["roc", "pr", "lift", "coverage", "thresholds"])
def test_the_command_line_draws_what_python_draws(judged, what):
    model, X, y = judged
    classes = () if what == "coverage" else ("malignant",)
    figure, facts = draw_plot(model, PlotSpec(what, classes=classes), PlotRows(X.assign(kind=y), "kind"))
    function = {"pr": plot.precision_recall}.get(what) or getattr(plot, what)
    same = function(model, X, y, **({"positive": "malignant"} if classes else {}))
    for line, other in zip(figure.axes[0].lines, same.lines, strict=True):
        np.testing.assert_allclose(np.array(line.get_data(), float), np.array(other.get_data(), float), rtol=1e-9)
    assert facts["rows"] == len(y)
    with pytest.raises(cd.errors.InputError):
        draw_plot(model, PlotSpec(what))


@pytest.mark.parametrize(
    "call",
    [
        lambda m, X, y: plot.roc(m, X),
        lambda m, X, y: plot.roc(m, X, [None] * len(y)),
        lambda m, X, y: plot.lift(m, X, y, positive="nobody"),
        lambda m, X, y: plot.thresholds(cd.NaiveBayes().fit([[0.0], [1.0], [2.0]], list("abc")), [[0.0]], ["a"]),
    ],
)
def test_refused(judged, call):
    with pytest.raises(cd.errors.InputError):
        call(*judged)
