"""The pictures of the lectures, drawn by the scripts in examples/: what is drawn is where theory puts it."""

import importlib.util
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

FOLDER = Path(__file__).resolve().parents[2] / "examples"


def script(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(name, tmp_path_factory):
    folder = tmp_path_factory.mktemp(name)
    module = script(name)
    return module, module.main(folder), folder


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    return drawn("iris", tmp_path_factory)


@pytest.fixture(scope="module")
def pocket(tmp_path_factory):
    return drawn("one_pocket", tmp_path_factory)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return drawn("height_and_weight", tmp_path_factory)


def lines(ax):
    """The boundaries drawn, as lists of points."""
    found = [c for c in ax.collections if type(c).__name__ == "QuadContourSet"]
    return [
        path.vertices[start:stop]
        for one in found
        for path in one.get_paths()
        for start, stop in _pieces(path)
        if stop - start > 1
    ]


def _pieces(path):
    if path.codes is None:
        return [(0, len(path.vertices))]
    starts = np.append(np.flatnonzero(path.codes == path.MOVETO), len(path.vertices))
    return list(pairwise(starts))


def bend(points):
    """How far the points are from their best line, against how long it is."""
    centred = points - points.mean(axis=0)
    long, wide = np.linalg.svd(centred, compute_uv=False)[:2]
    return wide / long


def log_ratio(at, X, y, a, b, deviation):
    """log p(a, x) / p(b, x) by scipy, of two Gaussian features."""
    rows = np.column_stack(list(X.values()))
    score = [
        np.log((y == c).mean()) + stats.norm.logpdf(at, rows[y == c].mean(axis=0), deviation(rows, y, c)).sum(axis=1)
        for c in (a, b)
    ]
    return score[0] - score[1]


def learned(rows, y, c):
    return rows[y == c].std(axis=0)


def shared(rows, y, c):
    residual = np.concatenate([rows[y == k] - rows[y == k].mean(axis=0) for k in np.unique(y)])
    return np.sqrt((residual**2).mean(axis=0))


def one(rows, y, c):
    return 1.0


DEVIATION = {"learned": learned, "shared": shared, "fixed": one}


@pytest.mark.parametrize("example", ["iris", "pocket", "people"])
def test_every_picture_is_written(example, request):
    _, found, folder = request.getfixturevalue(example)
    written = {path.stem: path.read_bytes()[:8] for path in folder.glob("*.png")}
    assert set(written) == set(found)
    assert set(written.values()) == {b"\x89PNG\r\n\x1a\n"}


@pytest.mark.parametrize("variance", ["learned", "shared", "fixed"])
def test_two_species_part_where_their_densities_are_equal(iris, variance):
    module, found, _ = iris
    _, ax = found[f"iris_two_{variance}"]
    X, y = module.rows(module.TWO, module.SEPAL)
    [line] = lines(ax)
    f = log_ratio(line, X, y, *module.TWO, DEVIATION[variance])
    assert np.abs(f).max() < (2e-3 if variance == "learned" else 1e-9)
    assert (bend(line) < 1e-9) == (variance != "learned")
    assert len([c for c in ax.collections if type(c).__name__ == "PathCollection"]) == 2


@pytest.mark.parametrize("variance", ["learned", "shared", "fixed"])
def test_three_species_meet_along_two_boundaries(iris, variance):
    module, found, _ = iris
    model, ax = found[f"iris_three_{variance}"]
    X, y = module.rows(module.THREE, module.PETAL)
    for line in lines(ax):
        ratios = [log_ratio(line, X, y, a, b, DEVIATION[variance]) for a, b in (module.THREE[:2], module.THREE[1:])]
        nearest = np.min(np.abs(ratios), axis=0)
        assert nearest.max() < (0.02 if variance == "learned" else 1e-8)
        assert (bend(line) < 1e-8) == (variance != "learned")
    codes = ax.images[0].get_array()
    assert set(np.unique(codes)) == {0, 1, 2}
    assert [t.get_text() for t in ax.get_legend().get_texts()] == list(module.THREE)
    at = {"petal length (cm)": [1.5, 4.2, 6.0], "petal width (cm)": [0.2, 1.3, 2.2]}
    assert model.predict(at).tolist() == list(module.THREE)


@pytest.mark.parametrize("variance", ["learned", "shared"])
def test_the_surface_runs_from_minus_one_to_one(iris, variance):
    module, found, _ = iris
    model, ax = found[f"iris_surface_{variance}"]
    [surface] = [c for c in ax.collections if type(c).__name__ == "Poly3DCollection"]
    corners = np.vstack([np.asarray(face)[:1] for face in surface._faces])
    p = model.predict_proba(dict(zip(module.SEPAL, corners[:, :2].T, strict=True)))
    np.testing.assert_allclose(corners[:, 2], p[:, 1] - p[:, 0], atol=1e-9)
    assert corners[:, 2].min() < -0.99
    assert corners[:, 2].max() > 0.99
    assert ax.get_title().startswith("p(versicolor | x) - p(setosa | x)")


def test_the_pocket_is_ringed_in(pocket):
    module, found, _ = pocket
    X, y = module.rows()
    model, ax = found["one_pocket_learned"]
    [ring] = lines(ax)
    assert np.allclose(ring[0], ring[-1])  # closed
    assert np.abs(log_ratio(ring, X, y, "around", "pocket", learned)).max() < 0.02
    assert ax.images[0].get_array().mean() < 0.2  # most of the plane is outside
    law = model.fitted_.model.distributions[0]
    square = 1 / law.variance[1] - 1 / law.variance[0]
    centre = (law.loc[1] / law.variance[1] - law.loc[0] / law.variance[0]) / square
    middle = (ring.min(axis=0) + ring.max(axis=0)) / 2
    np.testing.assert_allclose(middle, centre, atol=0.02)
    half = np.ptp(ring, axis=0) / 2
    assert half[0] / half[1] == pytest.approx(np.sqrt(square[1] / square[0]), rel=0.01)  # an ellipse of those squares


def test_with_one_variance_there_is_no_pocket(pocket):
    module, found, _ = pocket
    X, y = module.rows()
    [line] = lines(found["one_pocket_shared"][1])
    assert bend(line) < 1e-9
    np.testing.assert_allclose(log_ratio(line, X, y, "around", "pocket", shared), 0, atol=1e-9)


def test_the_ellipses_of_the_pocket(pocket):
    module, found, _ = pocket
    X, y = module.rows()
    rows = np.column_stack(list(X.values()))
    patches = found["one_pocket_ellipses"][1].patches
    assert len(patches) == 4
    for patch, (who, level) in zip(patches, [(w, k) for w in ("around", "pocket") for k in (1, 2)], strict=True):
        want = level * np.sort(rows[y == who].std(axis=0))[::-1]
        np.testing.assert_allclose([patch.width / 2, patch.height / 2], want)


def test_height_and_weight_have_two_gaussians_each(people):
    module, found, _ = people
    X, y = module.rows()
    _, axes = found["height_and_weight_densities"]
    for ax, name in zip(axes, (module.HEIGHT, module.WEIGHT), strict=True):
        assert ax.get_xlabel() == name
        for line in ax.lines:
            x, density = line.get_xydata().T
            mine = X[name][y == line.get_label()]
            law = stats.norm(mine.mean(), mine.std())
            np.testing.assert_allclose(density, law.pdf(x), rtol=1e-8)
            assert trapezoid(density, x) == pytest.approx(law.cdf(x[-1]) - law.cdf(x[0]), abs=1e-4)
            assert law.cdf(x[-1]) - law.cdf(x[0]) > 0.997  # nobody weighs less than nothing
        assert [sum(b.get_height() * b.get_width() for b in bars) for bars in ax.containers] == pytest.approx([1, 1])


@pytest.mark.parametrize(("picture", "deviation"), [("quadratic", learned), ("linear", shared)])
def test_adults_and_children_part_by_a_curve_or_a_line(people, picture, deviation):
    module, found, _ = people
    X, y = module.rows()
    _, ax = found[f"height_and_weight_{picture}"]
    [line] = lines(ax)
    f = log_ratio(line, X, y, "adult", "child", deviation)
    assert np.abs(f).max() < (5e-3 if picture == "quadratic" else 1e-9)
    assert (bend(line) < 1e-9) == (picture == "linear")
    assert len(ax.patches) == 6  # three contours of two classes
    rows = np.column_stack(list(X.values()))
    for i, patch in enumerate(ax.patches):
        who, level = ("adult", "child")[i // 3], i % 3 + 1
        want = level * np.sort(np.broadcast_to(deviation(rows, y, who), 2))[::-1]
        np.testing.assert_allclose([patch.width / 2, patch.height / 2], want)
