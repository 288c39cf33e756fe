"""Precision and F1 are printed with the class or the average they are of, and no baseline where there is none."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn import metrics as sk

import candide as cd
from candide.cli import cli
from candide.report import build, summary
from candide.validation.cross_validation import compare_settings, cross_validate


def table(k, n=300):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    score = x + rng.normal(size=n)
    names = np.array(["no", "yes"] if k == 2 else ["low", "mid", "high"])
    return {"x": x, "y": names[np.digitize(score, [1.0] if k == 2 else [-1.0, 1.0])]}


TITLES = {2: ["precision (yes)", "f1 (yes)", "PR-AUC (yes)"],
          3: ["precision (macro)", "f1 (macro)", "auc (macro)", "PR-AUC (macro)"]}  # fmt: skip


@pytest.mark.parametrize("k", [2, 3])
def test_every_printout_names_what_a_metric_is_of(k, tmp_path):
    rows = table(k)
    model = cd.fit(rows, "y", model="naive")
    scores = cd.evaluate(model, rows, "y")
    folds = cross_validate(rows, "y", folds=3, model="naive")
    compared = compare_settings(rows, "y", {"one": {"model": "naive"}, "two": {"model": "naive"}}, folds=3)
    printed = [
        str(summary.summarize_scores(model, scores)),
        str(summary.summarize_settings(compared)),
        str(folds),
        folds._repr_html_(),
        build.build_report(model, rows, "y").text,
    ]
    for text in printed:
        assert all(title in text.replace("average_precision", "PR-AUC") for title in TITLES[k])
    for text in (str(scores), scores._repr_html_()):
        assert ("f1 (second class)" if k == 2 else "f1 (macro)") in text
    of = "yes" if k == 2 else "macro"
    for found in (summary.summarize_scores(model, scores).to_dict(), summary.summarize_settings(compared).to_dict()):
        assert json.dumps(found)
        classes = found.get("metric_classes") or {n: m["positive_class"] for n, m in found["metrics"].items()}
        assert classes["precision"] == classes["f1"] == of


def test_of_two_classes_precision_and_f1_are_those_of_the_second():
    rows = table(2)
    model = cd.fit(rows, "y", model="naive")
    found = {
        name: metric.value
        for name, metric in summary.summarize_scores(model, cd.evaluate(model, rows, "y")).metrics.items()
    }
    given = model.predict({"x": rows["x"]})
    assert found["precision"] == pytest.approx(sk.precision_score(rows["y"], given, pos_label="yes"))
    assert found["f1"] == pytest.approx(sk.f1_score(rows["y"], given, pos_label="yes"))


@pytest.mark.parametrize("k", [2, 3])
def test_the_calibration_error_has_no_baseline(k, tmp_path):
    rows = table(k)
    model = cd.fit(rows, "y", model="naive")
    found = summary.summarize_scores(model, cd.evaluate(model, rows, "y"))
    [line] = (line for line in str(found).splitlines() if line.startswith("calibration error"))
    assert "0.0000" not in line
    assert found.to_dict()["metrics"]["calibration_error"]["baseline"] is None
    page = build.build_report(model, rows, "y").text
    assert ">nan<" not in page
    assert '<td class="n soft">0.0000</td><td class="soft">confidence' not in page


def test_the_command_prints_it_in_json(tmp_path):
    import pyarrow as pa
    from pyarrow import csv

    csv.write_csv(pa.table(table(2)), tmp_path / "t.csv")
    typed = ["evaluate", str(tmp_path / "t.csv"), "--target", "y", "--folds", "3", "--model", "naive", "--json"]
    found = json.loads(CliRunner().invoke(cli, typed, catch_exceptions=False).output)
    assert {n for n, m in found["metrics"].items() if m["positive_class"] == "yes"} == {
        "precision",
        "f1",
        "average_precision",
    }
    assert found["metrics"]["precision"]["value"] == pytest.approx(found["by_class"][1]["precision"])
