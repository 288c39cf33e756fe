"""The pages of a server, also in a real browser, and its OpenAPI description."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.report import browser
from tests.serve.client import ask
from tests.serve.conftest import table
from tests.serve.test_run import started

import candide as cd
from candide import store
from candide.serve import app


def test_it_asks_for_every_column(models):
    answer = ask(app(models["documents"], name="<b>"), "/")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    text = answer.body.decode()
    assert "<title>&lt;b&gt;</title>" in text
    known = json.loads(text.partition('id="settings">')[2].partition("</script>")[0])
    assert [(one["name"], one["kind"]) for one in known["fields"]] == [("text", "text"), ("year", "number")]
    assert known["target"] is None
    assert (known["classes"], known["names"]) == (["dry", "wet"], ["dry", "wet"])


def test_classes_are_named_as_in_answers():
    """By what Python calls them, where JSON has another word."""
    served = app(cd.NaiveBayes().fit({"a": [1.0, 2.0, 3.0, 5.0]}, [True, False, True, False]).fitted_)
    known = json.loads(ask(served, "/").body.decode().partition('id="settings">')[2].partition("</script>")[0])
    assert known["classes"] == [False, True]
    assert {f"p_{name}" for name in known["names"]} < ask(served, "/predict", {"a": 1.0}).json.keys()


@pytest.mark.all_cases
@pytest.mark.skipif(browser.found() is None, reason="Chromium is not installed")
def test_in_a_browser(tmp_path):
    columns, y = table(60, seed=3)
    columns["soil"] = ["</script>" if soil == "sand" else soil for soil in columns["soil"]]
    fitted = replace(cd.NaiveBayes().fit(columns, y).fitted_, target="fate")
    fitted = fitted.with_policy(cd.Policy(threshold=0.2, positive="stay"))
    store.save(fitted, tmp_path / "m.candide")
    process, port = started(str(tmp_path / "m.candide"), "--learn", str(tmp_path / "state.db"), "--quiet")
    try:
        with browser.tab() as tab:
            tab.ask("Page.navigate", url=f"http://127.0.0.1:{port}/")
            tab.until("!!globalThis.candide && document.getElementById('answer').textContent !== ''")
            row = tab.run("candide.row()")
            assert set(row) == set(columns)
            answer = "document.getElementById('answer').textContent"
            changes = {"height": 9.5, "soil": "clay", "wet": 1, "age": None, "site": "s0", "kind": "elm"}
            before = tab.run(answer)
            tab.run(f"Object.entries({json.dumps(changes)}).forEach(([name, value]) => candide.sets[name](value))")
            tab.until(f"{answer} !== {json.dumps(before)}")
            assert tab.run("candide.row()") == {**row, **changes}
            wanted = fitted.posterior({name: [value] for name, value in {**row, **changes}.items()})[0]
            label = "stay"  # by the threshold, though it is the less probable
            assert wanted[1] < 0.4
            assert tab.run(answer) == f"{label}, {100 * wanted[1]:.1f}%"
            assert tab.run("document.getElementById('classes').rows[0].textContent").startswith("cut")
            other = next(one for one in fitted.labels.values if one != label)
            for n in range(40):  # the page offers the other class, until the model is convinced
                if tab.run(answer).startswith(other):
                    break
                tab.run("document.getElementById('teach').click()")
                tab.until(f"document.getElementById('learned').textContent.includes('counted {61 + n} rows')")
                time.sleep(0.05)
                tab.until("document.getElementById('problem').textContent === ''")
            assert n > 0
            assert tab.run(answer).startswith(other)
            assert tab.run("document.getElementById('last').rows.length") >= 2
            assert tab.said == []
            assert all(url.startswith(f"http://127.0.0.1:{port}/") for url in tab.requests)
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.mark.parametrize("estimator", [cd.BayesClassifier, cd.NaiveBayes])
def test_it_starts_with_typical_values(estimator):
    """The median of numbers and the most frequent level: not the middle of a long tail, nor the first level."""
    rng = np.random.default_rng(0)
    amount, soil = rng.lognormal(7, 1.2, 1000).round(2), rng.choice(["clay", "peat", "sand"], 1000, p=[0.1, 0.7, 0.2])
    y = np.where(rng.random(1000) < 0.08 + 0.8 * (amount > 9000), "yes", "no")
    day = np.datetime64("2024-01-01") + rng.integers(0, 300, 1000)
    fitted = estimator().fit({"amount": amount, "soil": soil, "day": day}, y).fitted_
    text = ask(app(fitted), "/").body.decode()
    known = json.loads(text.partition('id="settings">')[2].partition("</script>")[0])
    row = {one["name"]: one["value"] for one in known["fields"]}
    low, high = np.quantile(amount, [0.3, 0.75])
    assert low < row["amount"] < high < (amount.min() + amount.max()) / 2
    assert row["soil"] == "peat"
    assert row["day"].startswith("2024-0")
    assert ask(app(fitted), "/predict", row).json["p_yes"] == pytest.approx(np.mean(y == "yes"), abs=0.1)


def test_no_typical_value_is_known_without_counts(models):
    text = ask(app(models["naive"].without_counts()), "/").body.decode()
    known = json.loads(text.partition('id="settings">')[2].partition("</script>")[0])
    assert "value" not in next(one for one in known["fields"] if one["name"] == "soil")


def test_warnings_are_in_the_schema(served):
    known = ask(served, "/openapi.json").json["components"]["schemas"]
    [note] = ask(served, "/predict", {"height": 12.0}).json["warnings"]
    assert note.keys() == known["Warning"]["properties"].keys()
    for name in ("Prediction", "Decision", "Labels"):
        assert known[name]["properties"]["warnings"]["items"] == {"$ref": "#/components/schemas/Warning"}
        assert "warnings" not in known[name]["required"]
