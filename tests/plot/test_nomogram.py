"""What stands on the lines of a nomogram adds up to the log-odds of the model."""

import re

import numpy as np
import pytest

import candide as cd
from candide import plot
from candide.demo import garden_rows
from candide.plot.drawable import Drawable
from candide.plot.nomogram import nomogram_lines
from candide.plot.picture import PlotSpec, draw_plot


def table(n=600):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = {
        "size": y + rng.normal(0, 1, n),
        "soil": np.where(rng.random(n) < 0.6, np.array(["clay", "sand"])[y], "chalk"),
        "seen": rng.choice(["no", "yes"], n),
    }
    return X, np.array(["low", "tall"])[y]


def shown(ax):
    """Where names stand, by row of the picture and text."""
    return {(round(t.get_position()[1]), t.get_text()): t.get_position()[0] for t in ax.texts}


def test_of_two_classes_the_values_of_a_row_add_up_to_its_log_odds():
    X, y = table()
    model = cd.NaiveBayes().fit(X, y)
    lines = {one.name: one for one in nomogram_lines(Drawable.from_model(model), 1)}
    size, soil, seen = lines["size"], lines["soil"], lines["seen"]
    prior = model.fitted_.model.log_prior
    for i, value in enumerate(size.values):
        for level, nats in zip(soil.values, soil.log_odds, strict=True):
            total = (
                size.log_odds[i]
                + nats
                + dict(zip(seen.values, seen.log_odds, strict=True))["yes"]
                + prior[1]
                - prior[0]
            )
            row = {"size": [float(value)], "soil": [level], "seen": ["yes"]}
            low, tall = model.predict_log_proba(row)[0]
            assert total == pytest.approx(tall - low, abs=1e-9)


def test_of_a_weighted_model_a_line_is_what_explain_says():
    X, y = table()
    model = cd.BayesClassifier().fit(X, y)
    [soil] = nomogram_lines(Drawable.from_model(model), 1, ["soil"])
    for level, nats in zip(soil.values, soil.log_odds, strict=True):
        why = model.explain({"size": [0.5], "soil": [level], "seen": ["yes"]})[0]
        [said] = [one.log_odds for one in why.contributions if one.title == "soil"]
        assert said == pytest.approx(nats if why.prediction == "tall" else -nats, abs=1e-9)


def test_the_last_line_turns_a_sum_into_a_probability():
    X, y = table()
    model = cd.NaiveBayes().fit(X, y)
    ax = plot.nomogram(model)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[-1] == "sum: p(tall)"
    prior = model.fitted_.model.log_prior
    found = shown(ax)
    for p in ("0.1", "0.5", "0.9"):
        at = found[len(names) - 1, p]
        odds = at + prior[1] - prior[0]
        assert 1 / (1 + np.exp(-odds)) == pytest.approx(float(p))


def test_of_more_classes_it_is_one_against_the_mean_of_the_others_and_has_no_last_line():
    plants, herb = garden_rows(500, seed=0)
    model = cd.NaiveBayes(estimate="mle").fit(plants, herb)
    ax = plot.nomogram(model, positive="sage", features=["soil"])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["soil"]
    law = {c: plants["soil"][herb == c] for c in sorted(set(herb))}
    share = {c: np.mean(herb == c) for c in law}
    logs = {c: np.log(np.mean([v == "clay" for v in law[c] if v is not None])) for c in law}
    others = share["lavender"] * logs["lavender"] + share["thyme"] * logs["thyme"]
    assert shown(ax)[0, "clay"] == pytest.approx(logs["sage"] - others / (share["lavender"] + share["thyme"]), abs=1e-6)


def test_what_has_no_line_is_told():
    rng = np.random.default_rng(0)
    X = {"valve": rng.choice(["open", "shut"], 400), "pump": rng.choice(["on", "off"], 400)}
    y = np.where((X["valve"] == "open") == (X["pump"] == "on"), "safe", "risk")
    X["heat"] = (y == "safe") + rng.normal(0, 1, 400)
    ax = plot.nomogram(cd.BayesClassifier().fit(X, y))
    assert re.search(r"not on a line: what is left of \d pairs?", ax.get_title(loc="right"))


@pytest.mark.parametrize(
    "how",
    [
        {"features": ["nobody"], "positive": "sage"},
        {"positive": "nobody"},
        {},  # of three classes, one has to be named
    ],
)
def test_refused(how):
    plants, herb = garden_rows(200, seed=0)
    with pytest.raises(cd.errors.InputError):
        plot.nomogram(cd.NaiveBayes().fit(plants, herb), **how)


def test_a_model_of_text_alone_has_none():
    model = cd.TextNB().fit(["free prize", "see you", "free call", "you see"], ["spam", "ham", "spam", "ham"])
    with pytest.raises(cd.errors.InputError) as error:
        plot.nomogram(model)
    assert "densities" in error.value.remedy


def test_a_column_that_says_far_too_much_does_not_flatten_the_others():
    X, y = table()
    X["gain"] = np.where(y == "tall", 1000.0 * np.abs(X["size"]), 0.001 * X["size"])
    ax = plot.nomogram(cd.NaiveBayes("gaussian").fit({k: v for k, v in X.items() if k in ("gain", "size")}, y))
    assert max(np.abs(ax.get_xlim())) < 12


def test_the_command_line_draws_it_too():
    X, y = table()
    figure, facts = draw_plot(cd.NaiveBayes().fit(X, y), PlotSpec("nomogram", classes=("low",)))
    assert facts["positive"] == "low"
    assert "log-odds of low against tall" in figure.axes[0].get_xlabel()
