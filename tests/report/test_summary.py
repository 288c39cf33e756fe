"""Summaries: plain records, one for every command; what renders them only arranges what they hold."""

import importlib.metadata
import json
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.architecture import ROOT, imports

import candide as cd
from candide import demo, store
from candide.cli import cli
from candide.cli.inspect import inspect_installation
from candide.errors import InputError
from candide.explain.columns import score_model_features
from candide.fit_source import fit_model
from candide.model.fitted import FittedModel
from candide.model.settings import Settings
from candide.report import summary, terminal
from candide.report.records import Summary
from candide.report.summary import fits
from candide.report.summary.columns import ColumnSummary, sort_by_importance
from candide.validation.cross_validation import compare_settings, cross_validate
from candide.validation.evaluation import evaluate_rows

PLANTS, HERBS = demo.garden_rows(300, seed=4)
TABLE = {**PLANTS, "herb": HERBS}
MAIL = {"body": ["free prize", "see you", "free lunch", "see five"] * 3, "kind": ["spam", "ham", "spam", "ham"] * 3}


@pytest.fixture(scope="module")
def learned():
    return fit_model(TABLE, "herb", events={"flowers": "poisson"}, model="naive")


@pytest.fixture(scope="module")
def found(learned):
    """A summary of every kind."""
    model, half = (
        learned.fitted,
        fit_model({k: v[:150] for k, v in TABLE.items()}, "herb", model="naive").fitted,
    )
    text = fit_model(MAIL, "kind", events={"body": "text"}, model="naive").fitted
    [explained] = cd.explain_rows(model, TABLE, [2])
    weighted = fit_model(TABLE, "herb", model="bayes", keep_held_out=True)
    return [
        summary.summarize_model(model),
        summary.summarize_model(model.without_counts()),
        summary.summarize_model(text),
        summary.summarize_fit(
            learned,
            cross_validate(TABLE, "herb", folds=3, model="naive"),
            "m.candide",
            ["candide show m.candide"],
        ),
        summary.summarize_fit(weighted),
        fits.summarize_held_out(weighted.fitted, weighted.held_out),
        summary.summarize_scores(model, cd.evaluate(model, TABLE)),
        summary.DecisionSummary(*explained),
        summary.summarize_text(text, "free prize"),
        summary.summarize_rows(cd.predict_table(model, TABLE)),
        summary.summarize_scores(
            model.with_policy({"abstain_below": 0.9}), cd.evaluate(model, TABLE, policy={"abstain_below": 0.9})
        ),
        summary.summarize_adaptation("m.candide", cd.adapt_prior(model, TABLE), "c.candide"),
        summary.summarize_drift(cd.detect_drift(model, TABLE)),
        summary.summarize_settings(
            compare_settings(TABLE, "herb", {name: {"model": "naive"} for name in "ab"}, folds=3)
        ),
        summary.summarize_diff(cd.diff_models(half, fit_model(TABLE, "herb", model="naive").fitted)),
        summary.summarize_update(
            "m.candide", "counted into", cd.update_model(model, {**TABLE, "herb": ["mint"] * 300})
        ),
        summary.summarize_check("rows.csv", "herb", cd.check_data({**TABLE, "kg": ["kg"] * 300}, "herb")),
        summary.summarize_merge(["a", "b"], model, "c.candide", "tally"),
        summary.summarize_reweight("m.candide", cd.reweight_model(weighted.fitted, TABLE), "c.candide"),
        summary.summarize_plot("m.candide", {"what": "regions", "note": "of two"}, "p.png", "png"),
        summary.summarize_demo(demo.run_demo(400)),
        summary.summarize_page(model, evaluate_rows(model, TABLE, max_errors=2)),
        summary.summarize_page(text.without_counts()),
        summary.ReportSummary("m.candide", "report.html", 1000, ("Performance: not evaluated",)),
        summary.ExportSummary("m.candide", "js", "JavaScript", "m.js", 1000),
        summary.ScoredFileSummary(3, "out.csv"),
        summary.ServerStateSummary("state.db", 3, "m.candide"),
        summary.ExportSummary("m.candide", "javascript", "JavaScript", "m.js", 100),
    ]


def values(record):
    """All that a record holds, at any depth."""
    if is_dataclass(record):
        for field in fields(record):
            yield from values(getattr(record, field.name))
    elif isinstance(record, dict):
        for key, value in record.items():
            yield key
            yield from values(value)
    elif isinstance(record, list | tuple):
        for value in record:
            yield from values(value)
    else:
        yield record


def test_every_record_is_plain_and_rendered_both_ways(found):
    assert {kind for kind in Summary.__subclasses__() if "report" in kind.__module__} <= set(map(type, found))
    for one in found:
        assert not any(isinstance(value, np.ndarray | np.generic) for value in values(one))
        assert str(one) == repr(one) == terminal.render_text(one)
        assert str(one).strip()
        assert json.loads(json.dumps(one.to_dict(), default=str))


def test_printed_it_is_what_the_command_shows(learned, tmp_path, monkeypatch):
    store.save(learned.fitted, tmp_path / "m.candide")
    for width in (60, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        shown = CliRunner().invoke(cli, ["show", str(tmp_path / "m.candide")]).output
        assert str(summary.summarize_model(cd.load(tmp_path / "m.candide"))) == "\n".join(
            line.rstrip() for line in shown.strip("\n").splitlines()
        )
    facts = CliRunner().invoke(cli, ["show", str(tmp_path / "m.candide"), "--json"]).output
    assert json.loads(facts) == json.loads(json.dumps(summary.summarize_model(learned.fitted).to_dict(), default=str))


def test_an_estimator_is_a_model(learned):
    model = cd.NaiveBayes({"flowers": "poisson"}).fit(PLANTS, HERBS)
    one, other = summary.summarize_model(model), summary.summarize_model(model.fitted_)
    assert one == other
    assert one.rows == 300
    assert one.target is None
    assert [c.column for c in one.columns] == list(one.importances)
    assert summary.summarize_scores(model, cd.evaluate(model.fitted_, TABLE, "herb")).labels == tuple(model.classes_)


def test_scored_rows_on_a_terminal(learned):
    scored = cd.predict_table(learned.fitted, TABLE, keep=["soil"])
    one = summary.summarize_rows(scored)
    assert (one.rows, len(one.first_rows), one.columns[0], one.result_columns[0]) == (300, 20, "soil", "prediction")
    title, heads, *rows = str(one).splitlines()
    assert title == "300 rows, the first 20"
    assert heads.split()[:2] == ["soil", "prediction"]
    assert len(rows) == 20


@pytest.mark.parametrize(
    ("events", "seen"),
    [
        ("gaussian", {"mean", "sd"}),
        ("poisson", {"mean"}),
        ("lognormal", {"mean", "sd"}),
        ("categorical", {"level"}),
        ("bernoulli", {"level"}),
        ("text", {"token"}),
    ],
)
def test_every_tally_gives_the_seen_levels_of_a_column(events, seen):
    x = ["one", "two", "three", "one"] if events == "text" else [1, 2, 3, 1]
    fitted = fit_model({"x": x, "y": ["a", "b", "a", "b"]}, "y", events={"x": events}, model="naive").fitted
    [one] = summary.summarize_model(fitted).columns
    assert set(one.statistics) == seen
    assert one.weight == 4
    assert one.missing == 0


def test_columns_whose_strength_is_not_known_come_last():
    some = [ColumnSummary(name, "gaussian", importance=s) for name, s in [("a", None), ("b", -1.0), ("c", 2.0)]]
    assert [one.column for one in sort_by_importance(some)] == ["c", "b", "a"]


RENDERERS = [ROOT / "report" / "terminal.py", ROOT / "report" / "records.py"]


@pytest.mark.parametrize("path", RENDERERS, ids=lambda p: p.name)
def test_renderers_compute_nothing(path):
    rooms = {found.package for found in imports(path)} - {None}
    assert rooms <= {"report", "formatting", "explain"}, "a renderer needs records and words"
    assert not {found.name.partition(".")[0] for found in imports(path)} & {"numpy", "scipy", "pyarrow"}


def test_a_model_without_rows():
    census = demo.garden()
    assert summary.summarize_model(FittedModel(census - census)).classes == ()
    one = summary.summarize_model(FittedModel(census.declare_classes() - census))
    assert [each.proportion for each in one.classes] == [0.0] * 3
    assert len(one.notes) == 5
    assert "empty" in str(one)


def test_the_log_loss_of_a_note_is_that_of_the_table():
    rng = np.random.default_rng(0)
    x = rng.standard_t(1, 400)
    copies = {f"x{i}": x + rng.normal(0, 0.01, 400) for i in range(6)}
    rows = copies | {"y": list(np.where(rng.random(400) < 0.5, "a", "b"))}
    validation = cross_validate(rows, "y", folds=7, model="naive")
    found = summary.summarize_scores(validation.fit_result.fitted, validation.folds, ["a word"])
    loss = found.metrics["log_loss"]
    assert loss.value == validation.total.log_loss != loss.fold_mean  # folds are of 57 and 58 rows
    assert found.notes[0] == "a word"
    assert f"{loss.value:.4f}" in found.notes[1]
    assert f"{loss.baseline:.4f}" in found.notes[1]


def test_intervals_by_folds_say_so_and_that_few_folds_are_coarse():
    validation = cross_validate(TABLE, "herb", folds=4, model="naive")
    found = summary.summarize_scores(validation.fit_result.fitted, validation.folds, intervals_by="folds")
    accuracy = found.metrics["accuracy"]
    assert (accuracy.low, accuracy.high) == validation.intervals(by="folds")["accuracy"]
    assert validation.intervals(by="folds") != validation.intervals()
    assert "4 folds are coarse" in found.notes[-1]
    assert "interval over other folds" in str(found)
    assert found.to_dict()["intervals_by"] == "folds"
    assert not any(
        "coarse" in one for one in summary.summarize_scores(validation.fit_result.fitted, validation.folds).notes
    )


def test_the_scores_of_folds_are_those_of_the_confusion_matrix_beside_them():
    rows = TABLE | {"herb": ["rare" if i % 100 == 0 else "common" for i in range(300)]}  # three rows in ten folds
    validation = cross_validate(rows, "herb", folds=10, model="naive")
    found = summary.summarize_scores(validation.fit_result.fitted, validation.folds)
    assert {name: metric.value for name, metric in found.metrics.items()} == validation.total.metrics()
    right = [row[c] / sum(row) for c, row in enumerate(found.confusion)]
    facts = found.to_dict()["metrics"]["balanced_accuracy"]
    assert facts["value"] == pytest.approx(np.mean(right))
    assert facts["fold_mean"] == pytest.approx(np.mean([fold.balanced_accuracy for fold in validation.folds]))
    assert facts["value"] < facts["fold_mean"] - 0.1  # which hears nothing of a class where a fold has none of it
    for printed in (str(found), str(validation)):
        assert f"{np.mean(right):.4f}" in printed
        assert f"{facts['fold_mean']:.4f}" not in printed


@pytest.mark.parametrize("width", [110, 80, 60, 50])
def test_names_that_differ_do_so_when_they_are_cut(monkeypatch, width):
    ends = ["a float", "a non-float", "b float", "b non-float"]
    rows = TABLE | {"herb": [f"windows of buildings, {ends[i % 4]}" for i in range(300)]}
    fitted = fit_model(rows, "herb", model="naive").fitted
    monkeypatch.setenv("COLUMNS", str(width))
    lines = str(summary.summarize_scores(fitted, cd.evaluate(fitted, rows))).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("true "))
    assert max(map(len, lines[at:])) <= width
    heading = re.split(r"  +", lines[at])
    assert len(set(heading)) == len(heading) == 5
    assert len({re.split(r"  +", line)[0] for line in lines[at + 1 :]}) == len(lines[at + 1 :]) == 4


def test_a_wrong_event_model_is_named_and_no_information_exceeds_the_entropy():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 600)
    narrow = rng.normal(0, np.where(y == 0, 1e-3, 1.0))
    narrow[np.flatnonzero(y == 0)[0]] = 0.5  # which no Gaussian of the others expects
    rows, settings = {"narrow": narrow, "fine": rng.normal(y * 0.3), "y": y}, Settings(estimate="mle")
    validation = cross_validate(rows, "y", events="gaussian", settings=settings, model="naive")
    fitted = validation.fit_result.fitted
    entropy = -np.log(fitted.class_proportions) @ fitted.class_proportions
    assert fitted.column_evidence["narrow"] == pytest.approx(entropy)
    assert score_model_features(fitted).for_column("narrow").evidence_per_row == pytest.approx(entropy)
    [note] = summary.summarize_scores(fitted, validation.folds).notes
    assert "'narrow'" in note
    assert "'fine'" not in note


def test_no_record_prints_arrays(learned):
    validation, scores = (
        cross_validate(TABLE, "herb", folds=3, model="naive"),
        cd.evaluate(learned.fitted, TABLE),
    )
    change = cd.update_model(learned.fitted, TABLE)
    for record in (validation, validation.total, validation.folds, scores, scores.ranks, learned, change):
        assert "array" not in repr(record) + str(record)
    assert f"log_loss                   {scores.log_loss:.4f}" in str(scores)
    assert str(learned.fitted.without_counts()) == "<FittedModel of 'herb', without counts>"
    assert str(replace(learned.fitted, target=None).without_counts()) == "<FittedModel, without counts>"


def test_some_classes_and_columns_alone(learned):
    whole = summary.summarize_model(learned.fitted)
    some = summary.summarize_model(learned.fitted, classes=["thyme", "sage"], columns=["soil"])
    assert [one.label for one in some.classes] == ["thyme", "sage"]
    [soil] = some.columns
    before = next(one for one in whole.columns if one.column == "soil")
    assert soil.conditionals == {name: (c, b) for name, (_, b, c) in before.conditionals.items()}
    assert "height_cm" not in str(some)
    assert [one["label"] for one in some.to_dict()["classes"]] == ["thyme", "sage"]
    for wrong in ({"classes": ["mint"]}, {"columns": ["smell"]}):
        with pytest.raises(InputError):
            summary.summarize_model(learned.fitted, **wrong)


def test_many_classes_stand_one_below_another():
    rows = {"x": [float(i % 37) for i in range(260)], "y": [f"class {i % 26}" for i in range(260)]}
    shown = str(summary.summarize_model(fit_model(rows, "y", model="naive").fitted))
    assert "not shown" not in shown
    assert len([line for line in shown.splitlines() if line.startswith("class 25 ")]) == 2


def test_columns_modelled_together_have_one_figure():
    fitted = fit_model(TABLE, "herb", events={("height_cm", "leaf_mm"): "gaussian-full"}, model="naive").fitted
    strength = f"{fitted.column_evidence['height_cm']:.3f}"
    shown = str(summary.summarize_model(fitted)).partition("Association")[0]
    assert shown.count(strength) == 1
    assert [line.split()[-1] for line in shown.splitlines() if line.startswith("(height_cm, leaf_mm)")] == [strength]


def test_terms_are_shown_as_the_distribution_has_them():
    fitted = fit_model(MAIL, "kind", events={"body": "text"}, model="naive").fitted
    [body] = summary.summarize_model(fitted).columns
    assert all(0 < p < 1 for shares in body.conditionals.values() for p in shares)


def test_doctor_lists_every_library_that_is_needed():
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = {
        name: some for name, some in project["optional-dependencies"].items() if name not in ("test", "docs", "dev")
    }
    needed = [*project["dependencies"], *(one for some in extras.values() for one in some)]
    assert {name.partition(">")[0] for name in needed} <= set(inspect_installation())


def test_doctor_says_which_extra_has_a_library_that_is_not_installed(monkeypatch):
    def lacking(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", lacking)
    assert inspect_installation()["adbc-driver-postgresql"] == "not installed: candide[postgres]"


def test_weights_of_a_merged_model_are_said_to_be_averaged(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    fitted = cd.fit({"x": x, "y": np.where(x + rng.normal(size=200) > 0, "yes", "no")}, "y").fitted_
    store.save(fitted + fitted + fitted, tmp_path / "m.candide")
    merged = summary.summarize_model(tmp_path / "m.candide")
    assert merged.weights_note == "weights averaged over 3 models, learned on 600 of 600 rows"
    assert any("averaged over 3 models" in note for note in merged.notes)
    left = summary.summarize_model(fitted.subtract_counts(fitted.counts))
    assert left.rows == 0
    assert left.weights_note.endswith("the counts now hold 0 rows")
