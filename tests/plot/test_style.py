"""Names stay readable and apart: many classes, long names, letters that the usual font lacks."""

import itertools
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

import candide as cd
from candide import plot
from candide.data.notes import DataWarning
from candide.plot import style
from candide.plot.picture import PLOTS, PlotRows, PlotSpec, draw_plot, write_figure


def table(k, names=None, n=1500):
    """Rows of k classes with numbers, counts and levels, and the label in the last column."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    names = names or [f"class {i:02d}" for i in range(k)]
    X = {
        "a": y % 6 + rng.normal(0, 0.6, n),
        "b": y // 6 + rng.normal(0, 0.6, n),
        "level": np.where(rng.random(n) < 0.5, "other", [f"level {v % 5}" for v in y]),
        "seen": rng.poisson(y / 4 + 1),
    }
    return X, np.array(names, object)[y]


@given(st.lists(st.text(st.characters(categories=["L", "P"], codec="utf-8"), max_size=40), unique=True, max_size=8))
def test_names_that_are_cut_stay_apart(names):
    shown = style.shorten_names([f"the same beginning of every name {name}" for name in names], 16)
    assert all(len(text) <= 17 for text in shown)  # a dollar is written with a stroke before it
    assert len(set(shown)) == len({" ".join(name.split()) for name in names})


def test_a_name_that_is_not_cut_stays_as_it_is():
    assert style.shorten_names(["yes", "yes", "no"]) == ["yes", "yes", "no"]
    assert style.shorten_names(["a" * 30, "b" * 30], 10) == ["aaaaaaaaa…", "bbbbbbbbb…"]


def visible(figure):
    from matplotlib.text import Text

    renderer = figure.canvas.get_renderer()
    return [
        (text.get_text(), text.get_window_extent(renderer))
        for text in figure.findobj(Text)
        if re.search(r"^[^$]*[a-z]", text.get_text())  # a tick that is a number may stand out of view
    ]


def ticks_of(ax, axis):
    renderer = ax.figure.canvas.get_renderer()
    found = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    return [t.get_window_extent(renderer) for t in found if t.get_text() and not t.get_rotation() % 90]


@pytest.mark.all_cases
@pytest.mark.parametrize(("make", "k"), [(cd.NaiveBayes, 2), (cd.BayesClassifier, 26), (cd.NaiveBayes, 100)])
def test_every_picture_of_few_and_many_classes_has_its_names_inside_and_none_on_another(make, k):
    X, y = table(k)
    model = make().fit(X, y)
    rows = PlotRows({**X, "y": y}, "y")
    for what in set(PLOTS) - {"means", "ellipses"}:
        one = ("discriminant", "term", "thresholds", "nomogram")
        classes = tuple(sorted(set(y))[:2]) if what == "surface" else (y[0],) if what in one else ()
        figure, _ = draw_plot(
            model, PlotSpec(what, features=("a", "b") if what == "regions" else (), classes=classes), rows
        )
        FigureCanvasAgg(figure).draw()
        width, height = figure.canvas.get_width_height()
        for text, box in visible(figure):
            assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= -2, (what, text)
        for ax in figure.axes:
            for one, next_one in itertools.pairwise(ticks_of(ax, "y") if what != "surface" else []):
                assert not one.overlaps(next_one), what
            if what == "confusion":
                assert not any(one.overlaps(other) for one, other in itertools.pairwise(ticks_of(ax, "x")))


def test_many_classes_are_rows_of_a_heat_map_and_no_slivers():
    X, y = table(26)
    model = cd.NaiveBayes(estimate="mle").fit(X, y)
    levels = plot.densities(model, feature="level")
    assert levels.get_legend() is None
    assert not levels.containers
    shares = levels.images[0].get_array()  # (class, level)
    assert [t.get_text() for t in levels.get_yticklabels()] == sorted(set(y))
    level = [t.get_text() for t in levels.get_xticklabels()]
    for c, name in enumerate(sorted(set(y))):
        want = [np.mean(X["level"][y == name] == v) for v in level]
        np.testing.assert_allclose(shares[c], want)
    numbers = plot.densities(model, X, y, feature="a")
    [mesh] = numbers.collections
    density = mesh.get_array().reshape(26, -1)
    assert density.shape[0] == 26
    assert density.argmax(axis=1)[0] < density.argmax(axis=1)[5]  # class 0 is at 0, class 5 at 5


def test_a_legend_names_no_more_classes_than_there_are_colours():
    assert len({style.colour(i) for i in range(style.MAX_COLOURS)}) == style.MAX_COLOURS
    assert style.colour(style.MAX_COLOURS) == style.colour(0)
    X, y = table(style.MAX_COLOURS + 1)
    model = cd.NaiveBayes("gaussian").fit({"a": X["a"], "b": X["b"]}, y)
    for draw in (plot.regions, plot.ellipses):
        ax = draw(model)
        assert ax.get_legend() is None
        assert {"class 00", "class 20"} <= {t.get_text() for t in ax.texts}


def test_classes_with_one_beginning_are_distinguished():
    names = [f"the answer given in the second of the two interviews was {v}" for v in ("yes", "no", "none at all")]
    X, y = table(3, names)
    model = cd.NaiveBayes().fit(X, y)
    ax = plot.confusion(model, X, y)
    shown = [t.get_text() for t in ax.get_xticklabels()]
    assert len(set(shown)) == 3
    assert len({t.get_text() for t in plot.densities(model, feature="a").get_legend().get_texts()}) == 3


@pytest.fixture
def chinese_font(tmp_path):
    """A font that has three letters and nothing else."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen
    from matplotlib import font_manager

    pen = TTGlyphPen(None)
    for at, move in (
        ((100, 0), pen.moveTo),
        ((100, 800), pen.lineTo),
        ((800, 800), pen.lineTo),
        ((800, 0), pen.lineTo),
    ):
        move(at)
    pen.closePath()
    glyph = pen.glyph()
    builder = FontBuilder(1000, isTTF=True)
    letters = {ord(letter): f"uni{ord(letter):04X}" for letter in "花草树"}
    builder.setupGlyphOrder([".notdef", *letters.values()])
    builder.setupCharacterMap(letters)
    builder.setupGlyf(dict.fromkeys([".notdef", *letters.values()], glyph))
    builder.setupHorizontalMetrics(dict.fromkeys([".notdef", *letters.values()], (900, 100)))
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    builder.setupNameTable({"familyName": "Three Letters", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(tmp_path / "three.ttf")
    before = list(font_manager.fontManager.ttflist)
    font_manager.fontManager.addfont(tmp_path / "three.ttf")
    yield "Three Letters"
    font_manager.fontManager.ttflist[:] = before


def drawn(names, path):
    X, y = table(3, names)
    figure, _ = draw_plot(cd.NaiveBayes().fit(X, y), PlotSpec("densities", features=("a",)))
    return write_figure(figure, path)


def test_letters_that_the_font_lacks_are_taken_from_one_that_has_them(chinese_font, tmp_path):
    assert chinese_font in style.find_fonts(set("花草"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn(["花", "草", "树"], tmp_path / "a.png")


def test_letters_that_no_font_has_are_reported_once(tmp_path):
    lacking = "\U0010fffd\U0010fffc"  # of private use: in no font
    with pytest.warns() as told:
        drawn([lacking[0], lacking[1], "c"], tmp_path / "a.png")
    [remark] = [w.message.note for w in told if isinstance(w.message, DataWarning)]
    assert remark.code == "font-missing"
    assert lacking[0] in remark.text
    assert (tmp_path / "a.png").exists()
    assert len(told) == 1


def test_letters_that_cannot_be_seen_are_spaces():
    assert style.shorten("red\x00\x1b[31m soil") == "red [31m soil"
    assert style.shorten_names(["a\x07b", "two\nlines"]) == ["a b", "two\nlines"]
