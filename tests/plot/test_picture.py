"""Pictures of real tables: columns of every kind, dates, long tails, text, and columns that hold nothing."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from scipy import stats

import candide as cd
from candide import plot
from candide.demo import garden, garden_rows
from candide.model.fitted import FittedModel
from candide.plot.picture import PlotRows, PlotSpec, draw_plot
from candide.plot.style import PALETTE

SPAM = ["free prize call", "free call now", "prize prize now", "see you", "you see me now", "call me"]
KINDS = ["spam", "spam", "spam", "ham", "ham", "ham"]


def drawn(model, *args, **wish):
    figure, facts = draw_plot(model, PlotSpec("densities", **wish), *args)
    return figure, facts["features"]


@pytest.mark.parametrize("features", [(), ("soil", "scented"), ("height_cm", "flowers"), ("scented", "leaf_mm")])
@pytest.mark.parametrize("with_rows", [False, True])
def test_one_legend_names_the_classes_in_their_colours_whatever_is_drawn(features, with_rows):
    table, y = garden_rows(300, 0)
    given = [PlotRows({**table, "herb": y}, "herb")] if with_rows else []
    figure, names = drawn(FittedModel(garden()), *given, features=features)
    [legend] = figure.legends
    told = [text.get_text() for text in legend.get_texts()]
    bars = set(names) & {"soil", "scented"}
    assert told == ["lavender", "sage", "thyme", *(["proportion in the data"] if with_rows and bars else [])]
    colours = [h.get_color() if hasattr(h, "get_color") else h.get_facecolor() for h in legend.legend_handles[:3]]
    assert tuple(map(to_hex, colours)) == PALETTE[:3]
    assert not any(ax.get_legend() for ax in figure.axes)


def test_panels_of_bars_that_would_have_the_same_legend_share_it():
    import matplotlib.pyplot as plt

    left, right = plt.subplots(1, 2)[1]
    for ax, name in ((left, "soil"), (right, "scented")):
        plot.densities(FittedModel(garden()), feature=name, ax=ax)
    assert left.get_legend() is None
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["lavender", "sage", "thyme"]


def spam_odds(label):
    """Log-odds of every term for a class against the other, each count with one more."""
    words = [
        Counter(w for t, k in zip(SPAM, KINDS, strict=True) if (k == label) == mine for w in t.split())
        for mine in (1, 0)
    ]
    every = set(words[0]) | set(words[1])
    share = [{w: (one[w] + 1) / (sum(one.values()) + len(every)) for w in every} for one in words]
    return {w: np.log(share[0][w] / share[1][w]) for w in every}


@pytest.mark.parametrize("detail", ["tally", "explain", "score"])
def test_text_is_drawn_as_the_tokens_of_each_class(detail, tmp_path):
    cd.TextNB(weights=None).fit(SPAM, KINDS).save(tmp_path / "m.candide", detail=detail)
    ax = plot.densities(cd.load(tmp_path / "m.candide"), feature="text")
    terms = [text.get_text() for text in ax.get_yticklabels()]
    assert [bars.get_label() for bars in ax.containers] == ["ham", "spam"]
    for c, bars in enumerate(ax.containers):
        odds = spam_odds(bars.get_label())
        found = {terms[round(b.get_y() + b.get_height() / 2)]: b.get_width() for b in bars}
        assert found == pytest.approx({term: odds[term] for term in found})
        assert max(odds, key=odds.get) in found
        assert min(found.values()) > 0
        assert {to_hex(b.get_facecolor()) for b in bars} == {PALETTE[c]}


def test_columns_that_hold_nothing_are_left_out_and_text_is_drawn_beside_numbers():
    table = {"text": SPAM, "split": [None] * 6, "none": [np.nan] * 6, "length": [float(len(t)) for t in SPAM]}
    model = cd.NaiveBayes({"text": "text", "split": "categorical", "none": "gaussian"}).fit(table, KINDS)
    figure, names = drawn(model.fitted_, PlotRows(pd.DataFrame(table).assign(kind=KINDS), "kind"))
    assert set(names) == {"text", "length"}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ham", "spam"]
    assert all(ax.lines or ax.containers for ax in figure.axes)


@pytest.mark.parametrize("make", [cd.NaiveBayes, cd.GaussianNB, cd.GaussianBayes])
def test_without_a_name_the_most_informative_column_is_drawn(make):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = np.column_stack([rng.normal(size=200), rng.normal(3 * y), rng.normal(y)])
    want = 1 if make is not cd.GaussianBayes else 0  # columns modelled together tell together
    assert plot.densities(make().fit(X, y), X, y).get_xlabel() == f"feature {want}"


def test_nothing_is_drawn_below_0_of_a_column_that_is_never_negative():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 200)
    gain = np.where(rng.random(400) < 0.8, 0.0, rng.gamma(2, 20_000, 400))
    model = cd.NaiveBayes("gaussian").fit({"gain": gain, "change": gain - 5000}, y)
    X = {"gain": gain, "change": gain - 5000}
    ax = plot.densities(model, X, y, feature="gain")
    assert min(line.get_xdata().min() for line in ax.lines) == 0
    assert ax.get_xlim()[0] == 0
    assert max(line.get_xdata().max() for line in ax.lines) >= gain.max()
    ax = plot.densities(model, X, y, feature="change")  # which is negative
    assert ax.get_xlim()[0] < -5000
    absent = {name: np.full(400, np.nan) for name in X}
    assert plot.densities(model, absent, y, feature="gain").get_xlim()[0] < 0  # rows that say nothing limit nothing


def labels(axis):
    axis.figure.draw_without_rendering()
    return [tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_text()]


@pytest.mark.parametrize("scale", [1e-7, 0.01, 1.0, 2.2e4, 3e8])
@pytest.mark.parametrize("centre", [0.0, 1.36, 1e3])
def test_tick_labels_do_not_overlap_and_differ(scale, centre):
    rng = np.random.default_rng(0)
    X = scale * (centre + rng.normal(size=(200, 2)))
    model = cd.NaiveBayes("gaussian").fit(X, rng.integers(0, 2, 200))
    figure, _ = drawn(model.fitted_, features=(0, 1))
    plane = plot.regions(model, X, resolution=20)
    for axis in [*(ax.xaxis for ax in figure.axes), plane.xaxis]:
        boxes = [label.get_window_extent() for label in labels(axis)]
        inside = [b for b in boxes if axis.axes.bbox.x0 - 1 <= (b.x0 + b.x1) / 2 <= axis.axes.bbox.x1 + 1]
        assert len(inside) >= 3
        assert all(a.x1 < b.x0 for a, b in pairwise(inside))
        texts = [label.get_text() for label in labels(axis)]
        assert len(set(texts)) == len(texts)


def test_dates_are_shown_as_dates():
    rng = np.random.default_rng(0)
    y = np.repeat(["old", "new"], 100)
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.normal(120 * (y == "new"), 40).round(), unit="D")
    frame = pd.DataFrame({"day": days, "size": rng.normal(size=200), "wait": days - days[0]})
    model = cd.NaiveBayes().fit(frame, y)
    curve = plot.densities(model, frame, y, feature="day")
    plane = plot.regions(model, frame, y, features=("size", "day"), resolution=20)
    plot.ellipses(model, features=("size", "day"), ax=plane)  # knows no dates, and leaves them
    figure, _ = drawn(model.fitted_, PlotRows(frame.assign(kind=y), "kind"), features=("day",))
    for axis in (curve.xaxis, plane.yaxis, figure.axes[0].xaxis):
        found = {label.get_text() for label in labels(axis)}
        assert "2021" in found | {axis.get_offset_text().get_text()}
        assert found <= {"2020", "2021", *pd.date_range("2021-01-01", periods=12, freq="MS").strftime("%b")}
    low, high = figure.axes[0].get_xlim()  # where the days of the rows are
    assert low < (days.min() - pd.Timestamp(0)).days < (days.max() - pd.Timestamp(0)).days < high
    for name in ("size", "wait"):
        assert not {label.get_text() for label in labels(plot.densities(model, frame, y, feature=name).xaxis)} & {
            "2021"
        }


def test_a_dollar_is_written_as_it_is():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(80) % 2 == 0, "$a$", "x_$1")
    X = {"$cost$": rng.normal(size=80) + (y == "$a$")}
    model = cd.NaiveBayes().fit(X, y)
    for ax in (plot.discriminant(model, X, y), plot.calibration(model, X, y)):
        for text in (ax.get_xlabel(), ax.get_ylabel()):
            assert "\\\\$" not in text  # escaped once
        assert r"\$" in ax.get_xlabel()


def test_a_narrow_peak_is_in_the_picture():
    ax = plot.posterior_curve((1, 1), counts=(9990, 10))
    assert ax.get_ylim()[1] > stats.beta(9991, 11).pdf(0.999)


def test_a_row_far_away_does_not_hide_the_classes():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=300), np.where(np.arange(300) % 2 == 0, "p", "q")
    ax = plot.densities(cd.NaiveBayes().fit({"v": x}, y), {"v": np.append(x, 1e5)}, np.append(y, "p"), feature="v")
    assert max(line.get_ydata().max() for line in ax.lines) > 0.3  # of a standard normal it is 0.4
    assert ax.get_ylim()[1] > 0.3
