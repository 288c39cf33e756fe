"""What cannot be drawn is refused in words: what is wrong, and what to do."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression

import candide as cd
from candide import plot
from candide.demo import garden, garden_rows
from candide.errors import InputError
from candide.model.fitted import FittedModel

GARDEN = FittedModel(garden())
IRIS = load_iris()
MODEL = cd.NaiveBayes().fit(IRIS.data, IRIS.target_names[IRIS.target])
TWO = ("height_cm", "leaf_mm")
BLANK = cd.NaiveBayes({"none": "gaussian", "gaps": "categorical"}).fit(
    {"none": [np.nan, np.nan], "gaps": [None, None], "size": [1.0, 2.0]}, ["a", "b"]
)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: plot.regions(GARDEN), r"5 features: height_cm, leaf_mm, flowers, soil, scented; name two.*features="),
        (lambda: plot.ellipses(MODEL), "4 features: 0, 1, 2, 3; name two"),
        (
            lambda: plot.regions(cd.NaiveBayes().fit(IRIS.data[:, :1], IRIS.target)),
            "the model has one, 0; draw its densities",
        ),
        (lambda: plot.regions(GARDEN, features=("height_cm",)), "two features, and 1 were named"),
        (lambda: plot.regions(GARDEN, features=("height_cm", "height_cm")), "are the same"),
        (lambda: plot.regions(GARDEN, features=("hight_cm", "leaf_mm")), "unknown feature 'hight_cm'; did you mean"),
        (
            lambda: plot.regions(GARDEN, features=("soil", "leaf_mm")),
            "'soil': it holds categories .*needs numbers",
        ),
        (lambda: plot.regions(MODEL, features=(0, 9)), "unknown feature 9"),
        (lambda: plot.regions(GARDEN, features=TWO, resolution=1), "resolution: 1"),
        (
            lambda: plot.ellipses(GARDEN, features=("flowers", "leaf_mm")),
            "'flowers': it is poisson, and ellipses",
        ),
        (lambda: plot.ellipses(GARDEN, features=TWO, levels=(0,)), "deviations above 0"),
        (lambda: plot.posterior_surface(GARDEN, features=TWO), r"two classes, and the model has 3.*classes=\(a, b\)"),
        (lambda: plot.posterior_surface(GARDEN, features=TWO, classes=("sage",)), "and 1 were named"),
        (lambda: plot.posterior_surface(GARDEN, features=TWO, classes=("sage", "sge")), "did you mean 'sage'"),
        (lambda: plot.posterior_surface(GARDEN, features=TWO, classes=("sage", "sage")), "itself is 0"),
        (lambda: plot.posterior_surface(GARDEN, features=TWO, kind="srface"), "did you mean 'surface'"),
        (lambda: plot.densities(GARDEN, feature="sol"), "unknown feature 'sol'; did you mean 'soil'"),
        (lambda: plot.class_means(MODEL, (28, 28)), r"shape 28x28: the model has 4 columns.*such as 2x2"),
        (lambda: plot.class_means(MODEL, "big"), "shape 'big'"),
        (lambda: plot.class_means(GARDEN, (1, 5)), "'soil': its levels are not numbers"),
        (lambda: plot.class_means(MODEL, (2, 2), axes=[]), "3 classes and 0 axes"),
        (lambda: plot.discriminant(MODEL, IRIS.data, IRIS.target), r"between two classes.*has 3.*positive="),
        (
            lambda: plot.discriminant(MODEL, IRIS.data, MODEL.predict(IRIS.data), positive="rose"),
            "unknown class 'rose'",
        ),
        (lambda: plot.confusion(MODEL, IRIS.data, ["rose"] * 150), "unknown class in y 'rose'"),
        (lambda: plot.confusion(MODEL, IRIS.data, ["setosa"]), "150 rows and 1 label;"),
        (lambda: plot.confusion(GARDEN, {"soil": ["clay"]}, ["sage"]), "column 'height_cm': missing"),
        (lambda: plot.calibration(MODEL, None, ["a"]), "not with a model"),
        (lambda: plot.calibration([0.2, 1.4], None, [0, 1]), "between 0 and 1"),
        (lambda: plot.calibration([0.2, 0.4, 0.1], None, [0, 1, 2]), "name its class: positive"),
        (lambda: plot.calibration(MODEL, IRIS.data, MODEL.predict(IRIS.data), bins=0), "bins: 0"),
        (lambda: plot.regions(GARDEN, y=["sage"], features=TWO), "y was given without X"),
        (lambda: plot.densities(GARDEN, y=["sage"], feature="soil"), "y was given without X"),
        (lambda: plot.network(GARDEN, features=["sol"]), "did you mean 'soil'"),
        (lambda: plot.network(GARDEN, features=[]), "at least one"),
        (lambda: plot.regions(cd.NaiveBayes()), "NaiveBayes: it is not fitted yet; call fit"),
        (lambda: plot.regions(LogisticRegression()), "not an estimator of Candide"),
        (lambda: plot.regions("model"), "cannot draw str"),
        (lambda: plot.densities(BLANK, feature="none"), "'none' was missing in every row counted"),
        (lambda: plot.densities(BLANK, feature="gaps"), "'gaps' was missing in every row counted"),
    ],
)
def test_refused(call, told):
    with pytest.raises(InputError, match=told):
        call()


def test_a_surface_on_flat_axes_is_refused():
    import matplotlib.pyplot as plt

    with pytest.raises(InputError, match='projection="3d"'):
        plot.posterior_surface(GARDEN, features=TWO, classes=("sage", "thyme"), ax=plt.subplots()[1])


def test_a_missing_column_of_the_rows_is_named():
    table, y = garden_rows(20, 0)
    del table["leaf_mm"]
    with pytest.raises(InputError, match="column 'leaf_mm' is missing; the rows have height_cm"):
        plot.regions(GARDEN, table, y, features=TWO)


def test_without_matplotlib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from candide import plot\nfrom candide.demo import garden\nfrom candide.model.fitted import FittedModel\n"
        "try:\n    plot.network(FittedModel(garden()))\n"
        "except ImportError as error:\n    print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingLibraryError pictures need matplotlib")
    assert "pip install 'candide[plot]'" in done.stdout


def test_importing_plot_imports_no_matplotlib():
    code = "import sys, candide.plot; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_features_may_be_named_by_position_and_rows_be_an_array():
    names = list(IRIS.feature_names)
    model = cd.NaiveBayes().fit(dict(zip(names, IRIS.data.T, strict=True)), IRIS.target)
    ax = plot.regions(model, IRIS.data, IRIS.target, features=(2, "petal width (cm)"), resolution=20)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (names[2], names[3])
    drawn = np.vstack([c.get_offsets() for c in ax.collections if type(c).__name__ == "PathCollection"])
    assert len(drawn) == 150


def test_a_constant_column_and_rows_without_labels_are_drawn():
    digits = load_digits()
    model = cd.NaiveBayes("gaussian").fit(digits.data, digits.target)
    ax = plot.regions(model, digits.data, features=(0, 20), resolution=20)  # pixel 0 is always 0
    assert len(ax.collections) >= 1
    [mesh] = plot.densities(model, digits.data, feature=0).collections  # of ten classes, a row each
    assert np.isfinite(mesh.get_array()).all()


def test_a_picture_is_written_whole_or_not_at_all(tmp_path):
    from candide.plot.picture import write_figure

    class Broken:
        def savefig(self, out, **_):
            out.write(b"half a picture")
            raise OSError("no more room")

    path = tmp_path / "p.png"
    path.write_bytes(b"the one before")
    with pytest.raises(OSError, match="no more room"):
        write_figure(Broken(), path, force=True)
    assert path.read_bytes() == b"the one before"
    assert [p.name for p in tmp_path.iterdir()] == ["p.png"]


def test_a_model_of_one_class_is_drawn_without_a_boundary():
    X = IRIS.data[:50, :2]
    model = cd.GaussianNB().fit(X, np.zeros(50))
    ax = plot.regions(model, X, np.zeros(50), resolution=20)
    assert (ax.images[0].get_array() == 0).all()
    assert len(ax.collections) == 1  # the points
    with pytest.raises(InputError, match="between two classes, and the model has 1"):
        plot.discriminant(model, X, np.zeros(50), positive=0.0)
    assert plot.confusion(model, X, np.zeros(50)).images[0].get_array().tolist() == [[1.0]]
    assert plot.densities(model, X, np.zeros(50), feature=0).lines
