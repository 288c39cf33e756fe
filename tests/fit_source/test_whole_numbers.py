"""Columns of few integers: amounts or codes, as the counts decide, from every kind of source."""

from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import candide as cd
from candide.cli import cli
from candide.fit_source import fit_model
from candide.report import summary
from candide.validation.cross_validation import cross_validate

RNG = np.random.default_rng(0)
N = 3000
CODE = RNG.integers(1, 8, N)  # a code of a region, whose odds go up and down
Y = np.where(RNG.random(N) < np.array([0.9, 0.1, 0.85, 0.15, 0.9, 0.1, 0.8])[CODE - 1], "buys", "leaves")
ROOMS = np.clip(np.round(RNG.normal(np.where(Y == "buys", 6.0, 7.5), 1.5)), 1, 14).astype(int)  # an amount
TABLE = pd.DataFrame({"code": CODE, "rooms": ROOMS, "y": Y})


def events_of(fitted):
    return {name: part.event.name for part in fitted.plan.parts for name in part.columns}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("codes")
    TABLE.to_csv(path / "t.csv", index=False)
    pq.write_table(pa.Table.from_pandas(TABLE), path / "t.parquet")
    TABLE.astype({"code": float}).to_csv(path / "floats.csv", index=False)
    return path


@pytest.mark.parametrize("door", ["t.csv", "t.parquet", "frame"])
def test_codes_are_categories_and_amounts_are_numbers(folder, door):
    learned = fit_model(TABLE if door == "frame" else str(folder / door), "y", model="naive")
    assert events_of(learned.fitted) == {"code": "categorical", "rooms": "gaussian"}
    notes = summary.summarize_fit(learned).notes
    assert [("'code'" in note, "'rooms'" in note) for note in notes if "whole numbers" in note] == [(True, False)]
    as_numbers = fit_model(TABLE, "y", events={"code": "gaussian", "rooms": "gaussian"}, model="naive").fitted
    right = [(fitted.classify(TABLE) == Y).mean() for fitted in (learned.fitted, as_numbers)]
    assert right[0] > 0.8 > 0.7 > right[1]
    for other in (TABLE, TABLE.astype(float, errors="ignore"), pd.read_csv(folder / "floats.csv")):
        np.testing.assert_allclose(learned.fitted.posterior(other[["code", "rooms"]]), learned.fitted.posterior(TABLE))


def test_codes_and_amounts_equal_their_event_models(folder):
    """What is taken for an amount is what counting it as one gives; what is taken for a code, as categories."""
    events = {"code": "categorical", "rooms": "gaussian"}
    model, told = (
        cd.NaiveBayes().fit(TABLE[["code", "rooms"]], Y),
        cd.NaiveBayes(events).fit(TABLE[["code", "rooms"]], Y),
    )
    np.testing.assert_allclose(model.predict_log_proba(TABLE), told.predict_log_proba(TABLE), rtol=1e-9)
    assert np.isfinite(model.predict_log_proba({"code": [9], "rooms": [40]})).all()  # an amount may go on


def test_models_add_and_decide_again():
    halves = [cd.fit(part, target="y", model="naive") for part in (TABLE[:1500], TABLE[1500:])]
    whole, both = cd.fit(TABLE, target="y", model="naive"), halves[0] + halves[1]
    np.testing.assert_allclose(both.predict_log_proba(TABLE), whole.predict_log_proba(TABLE), rtol=1e-9)
    assert events_of(both.fitted_) == events_of(whole.fitted_)
    less = both - halves[1]
    np.testing.assert_allclose(less.predict_log_proba(TABLE), halves[0].predict_log_proba(TABLE), rtol=1e-9)
    # with rows of many different values they are amounts
    wide = TABLE.assign(code=RNG.integers(0, 5000, N))
    for one, other in (
        (whole, cd.fit(wide, target="y", model="naive")),
        (cd.fit(wide, target="y", model="naive"), whole),
    ):
        merged = one + other
        assert events_of(merged.fitted_) == {"code": "gaussian", "rooms": "gaussian"}
        alike = cd.NaiveBayes("gaussian").fit(pd.concat([TABLE, wide])[["code", "rooms"]], np.r_[Y, Y])
        np.testing.assert_allclose(merged.predict_log_proba(TABLE), alike.predict_log_proba(TABLE), rtol=1e-6)


def test_given_events_take_precedence(folder):
    for asked, want in [
        ({"code": "gaussian"}, {"code": "gaussian", "rooms": "gaussian"}),
        ({"*": "categorical"}, {"code": "categorical", "rooms": "categorical"}),
        ({"*": "categorical", "rooms": "poisson"}, {"code": "categorical", "rooms": "poisson"}),
    ]:
        assert events_of(fit_model(str(folder / "t.csv"), "y", events=asked, model="naive").fitted) == want
        assert events_of(cd.NaiveBayes(asked).fit(TABLE[["code", "rooms"]], Y).fitted_) == want
    out = CliRunner().invoke(
        cli, ["fit", str(folder / "t.csv"), "-t", "y", "-o", str(folder / "m.candide"), "--event", "*=categorical"]
    )
    assert out.exit_code == 0, out.output
    assert set(events_of(cd.load(folder / "m.candide").fitted_).values()) == {"categorical"}


def test_files_folds_and_reports_use_the_decision(folder):
    model = cd.fit(TABLE, target="y", model="naive")
    model.save(folder / "both.candide")
    model.save(folder / "score.candide", detail="score")
    for name in ("both", "score"):
        np.testing.assert_allclose(
            cd.load(folder / f"{name}.candide").predict_log_proba(TABLE), model.predict_log_proba(TABLE), rtol=1e-12
        )
    assert cross_validate(TABLE, "y", folds=5, model="naive").total.accuracy > 0.8
    shown = CliRunner().invoke(cli, ["show", str(folder / "both.candide")]).output
    assert "categorical" in shown
    assert {one.column: one.event for one in model.feature_scores()} == {"code": "categorical", "rooms": "gaussian"}


def test_plain_arrays_are_numbers():
    assert events_of(cd.NaiveBayes().fit(TABLE[["code", "rooms"]].to_numpy(), Y).fitted_) == {
        0: "gaussian",
        1: "gaussian",
    }


def test_many_values_make_a_number():
    """The first rows of a sorted table show few of them; levels must not pile up."""
    rows = pd.DataFrame({"hour": np.repeat(np.arange(100), 3000), "y": np.resize(["a", "b", "b"], 300_000)})
    learned = fit_model(rows, "y", model="naive")
    assert [c.kind for c in learned.columns] == ["whole"]
    assert [part.event.name for part in learned.fitted.counts.plan.parts] == ["gaussian"]
    fitted = cd.NaiveBayes().fit(rows[["hour"]], rows["y"])
    assert [part.event.name for part in fitted.counts_.plan.parts] == ["gaussian"]
    days = [rows[(rows["hour"] >= at) & (rows["hour"] < at + 10)] for at in range(0, 80, 10)]
    models = [cd.fit(day, target="y", model="naive") for day in days]
    assert [part.event.name for part in models[0].counts_.plan.parts] == ["whole"]
    both = reduce(add, models)
    assert [part.event.name for part in both.counts_.plan.parts] == ["gaussian"]
    assert both.counts_.tallies[0].n.sum() == 240_000


def test_a_model_is_updated_from_any_source(folder):
    """Whole numbers of a CSV, of floats and of a frame are the same levels."""
    model = fit_model(TABLE, "y", model="naive").fitted
    for rows in (str(folder / "t.csv"), str(folder / "t.parquet"), TABLE, pd.read_csv(folder / "floats.csv")):
        more = cd.update_model(model, rows).fitted
        assert more.counts.n_rows == 2 * N
        np.testing.assert_allclose(more.posterior(TABLE), (model + model).posterior(TABLE), rtol=1e-9)
        assert cd.forget_rows(more, rows).fitted.counts.n_rows == N
        scored = cd.evaluate(model, rows)
        assert scored.accuracy == pytest.approx((model.classify(TABLE) == Y).mean())
