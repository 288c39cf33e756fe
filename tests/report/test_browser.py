"""The page in a real browser: its probabilities are Python's, nothing goes wrong in it, and nothing leaves it."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.report import browser
from tests.report.test_page import HOSTILE, mixed
from tests.tables import table

import candide as cd

pytestmark = pytest.mark.skipif(browser.found() is None, reason="Chromium is not installed")

READY = "!!globalThis.candide?.probabilities"
OPEN_ALL = (
    "document.getElementById('more')?.click(); document.querySelectorAll('details').forEach((one) => one.open = true)"
)


@pytest.fixture(scope="module")
def tab():
    with browser.tab() as one:
        yield one


@pytest.fixture
def show(tab, tmp_path):
    """What opens a page in the browser, and waits until a case can be tried."""

    def opened(text, fragment="", ready=True):
        path = tmp_path / "report.html"
        path.write_text(text)
        tab.said.clear()
        tab.requests.clear()
        tab.look(1280)
        tab.open(path, fragment)
        if ready:
            tab.until(READY)
        return tab

    return opened


def plain(rows):
    """Rows of columns as JSON has them: what is missing is null."""
    names, columns = list(rows), [pa.array(v, from_pandas=True).to_pylist() for v in rows.values()]
    return json.dumps([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])


def on_the_page(tab, rows):
    """(row, class) the probabilities that the page shows of each row."""
    script = f"{plain(rows)}.map((row) => {{ candide.set(row); return candide.probabilities(); }})"
    return np.array(tab.run(script))


def test_a_mixed_table_is_scored_on_the_page_as_in_python(show):
    X, y = mixed()
    model = cd.BayesClassifier().fit(X, y)
    fresh, _ = mixed(1000, seed=5)
    fresh["kind"][::40] = "never seen"
    page = show(model.report())
    assert any(len(one.columns) == 2 for one in _voices(model))
    np.testing.assert_allclose(on_the_page(page, fresh), model.predict_proba(fresh), rtol=0, atol=1e-9)
    assert page.said == []


def _voices(model):
    from candide.explain.terms import list_terms

    return list_terms(model.fitted_)


@pytest.mark.all_cases
def test_adult_is_scored_on_the_page_as_in_python(show, tmp_path):
    model = cd.fit(table("adult_train.parquet"), target="class")
    test = pa.parquet.read_table(table("adult_test.parquet")).slice(0, 1000)
    rows = {name: test.column(name).to_pylist() for name in test.column_names if name != "class"}
    pa.parquet.write_table(test, tmp_path / "rows.parquet")
    scored = model.predict_table(str(tmp_path / "rows.parquet"))
    known = np.array([scored.column(f"p_{label}").to_numpy() for label in model.classes_]).T
    text = model.report()
    assert len(text.encode()) <= 200_000
    np.testing.assert_allclose(on_the_page(show(text), rows), known, rtol=0, atol=1e-9)


def test_three_classes_and_dates_are_scored_on_the_page_as_in_python(show):
    rng = np.random.default_rng(2)
    y = rng.choice(["a", "b", "c"], 400)
    day = np.datetime64("2024-01-01") + (rng.integers(0, 300, 400) + 60 * (y == "b")).astype("timedelta64[D]")
    X = {"day": day, "x": rng.normal(size=400) + (y == "c"), "n": rng.poisson(3 + 2 * (y == "a")).astype(float)}
    model = cd.NaiveBayes(events={"n": "poisson"}).fit(X, y)
    shown = {**X, "day": [str(one) for one in day]}
    page = show(model.report({**X, "y": y}, target="y"))
    np.testing.assert_allclose(on_the_page(page, shown), model.predict_proba(X), rtol=0, atol=1e-9)


def test_everything_opens_without_an_error_and_without_a_request(show):
    X, y = mixed()
    labels = np.where(X["kind"] == "b", "maybe it was sold to somebody", np.strings.add(y, ", it was or was not sold"))
    model = cd.BayesClassifier().fit(X, labels)
    page = show(model.report({**X, "sold": labels}, target="sold"))
    page.run(OPEN_ALL)
    for c in range(3):
        page.run(f"chosen.value = '{c}'; chosen.dispatchEvent(new Event('change'))")
    page.run("document.querySelectorAll('#try button').forEach((one) => one.click())")
    page.until("document.querySelectorAll('details.term .drawn').length >= 4")
    assert page.said == []
    assert [url[:8] for url in page.requests] == ["file:///"]
    for width in (400, 1280):
        page.look(width)
        assert page.run("document.documentElement.scrollWidth") <= width


def test_total_effects_and_what_is_left_add_up_to_the_score(show):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 2000))
    z = x + 0.3 * rng.normal(size=2000)
    y = np.where(rng.random(2000) < 1 / (1 + np.exp(-(x + 0.5 * z + x * w))), "yes", "no")
    page = show(cd.BayesClassifier().fit({"x": x, "z": z, "w": w}, y).report())
    read = "[...document.querySelectorAll('.axes > .line')].map((one) => [one.firstChild, one.lastChild])"
    read += ".map((pair) => pair.map((node) => node?.textContent))"
    for row in ({"x": 1.5, "z": 1.2, "w": 0.5}, {"x": -1.0, "z": -1.0, "w": 0.0}, {"x": 1.0}):
        page.run(f"candide.set({json.dumps(row)})")
        lines = {name: float(text.replace("\u2212", "-")) for name, text in page.run(read)[1:] if text}
        total = lines.pop("total")
        assert sum(lines.values()) == pytest.approx(total, abs=0.05)
        assert np.sign(lines["x"]) == np.sign(row["x"])  # the own term of x or z has a negative weight


def test_the_answer_of_two_classes_needs_no_scrolling(show):
    page = show(cd.BayesClassifier().fit(*mixed()).report())
    for width in (400, 1280):
        page.look(width)
        assert (
            page.run(
                "(({scrollHeight, clientHeight}) => scrollHeight - clientHeight)(document.querySelector('.answer'))"
            )
            == 0
        )


def test_text_and_many_columns_are_scored_on_the_page_as_in_python(show):
    rng = np.random.default_rng(3)
    y = rng.choice(["up", "down"], 200)
    wide = {f"c{j}": rng.normal(size=200) + 0.5 * (y == "up") * (j % 5 == 0) for j in range(300)}
    model = cd.BayesClassifier().fit(wide, y)
    rows = {name: column[:20] for name, column in wide.items()}
    np.testing.assert_allclose(on_the_page(show(model.report()), rows), model.predict_proba(rows), rtol=0, atol=1e-9)
    words = [f"w{i}x{j}" for i in range(60) for j in range(60)]
    notes = [" ".join(rng.choice(words, 60)) + (" good" if one == "up" else " bad") for one in y]
    text = cd.TextNB().fit(notes, y)
    [name] = text.fitted_.plan.columns
    known = text.predict_proba(notes[:50])
    np.testing.assert_allclose(on_the_page(show(text.report()), {name: notes[:50]}), known, rtol=0, atol=1e-9)


def test_many_classes_have_their_curves_and_confusions_or_a_note(show):
    rng = np.random.default_rng(0)
    code = rng.integers(0, 100, 2000)
    X = {"tens": code // 10 + rng.normal(size=2000), "ones": code % 10 + rng.normal(size=2000)}
    y = [f"class {c:02d}" for c in code]
    page = show(cd.BayesClassifier().fit(X, y).report({**X, "y": y}, target="y"), ready=False)
    page.run("document.getElementById('confusions').open = true")
    page.until("document.querySelectorAll('#confusions tbody tr').length * 3 === known.confusions.length")
    choose = "chosen.value = String({}); chosen.dispatchEvent(new Event('change')); "
    seen = "[document.querySelector('.figures').hidden, document.getElementById('uncurved').hidden]"
    assert page.run(choose.format("known.curves.findIndex((one) => !one)") + seen) == [True, False]
    assert page.run(choose.format("known.positive") + seen) == [False, True]
    assert page.said == []


def test_names_that_are_markup_are_text_in_a_browser(show):
    names = [f"{HOSTILE} {i}" for i in range(5)]
    X, y = mixed(names=names, level=HOSTILE)
    y = np.where(y == "yes", HOSTILE, "no")
    page = show(cd.BayesClassifier().fit(X, y).report({**X, "t": y}, target="t"))
    page.run(OPEN_ALL)
    assert page.run("document.querySelectorAll('img, iframe').length") == 0
    assert page.run("document.querySelectorAll('script').length") == 5
    assert names[0] in page.run("document.getElementById('try').textContent")
    assert page.said == []


def test_a_column_of_any_name_has_its_typical_value_and_a_line(show):
    table = {"__proto__": ["a", "a", "b"] * 40, "n" * 500: [0.0, 0.5, 1.0] * 40, "y": ["yes", "no", "no"] * 40}
    page = show(cd.fit(table, "y", model="naive").report())
    assert page.run("document.querySelector('#try select[aria-label=__proto__]').value") == "0"
    assert page.run("document.querySelector('#try .name[title]').getBoundingClientRect().height") < 100
    assert page.said == []


def test_a_case_is_decided_by_the_policy_of_the_model(show):
    X, y = mixed()
    model = cd.BayesClassifier().fit(X, y)
    rows = {name: column[:200] for name, column in X.items()}
    script = f"{plain(rows)}.map((row) => {{ candide.set(row); return candide.decision(); }})"
    for policy in (None, {"costs": {("yes", "no"): 5}, "abstain_cost": 0.7}, {"threshold": 0.2, "abstain_below": 0.75}):
        decided = model.with_policy(policy)
        page = show(decided.report())
        given = [-1 if label is None else list(model.classes_).index(label) for label in decided.predict(rows)]
        assert page.run(script) == given
        assert set(given) == ({0, 1} if policy is None else {-1, 0, 1})
        shown = page.run("document.querySelector('.decision')?.innerText ?? ''")
        assert shown.startswith("Decision: ") == (policy is not None)


def test_a_case_is_kept_in_the_address(show, tmp_path):
    X, y = mixed()
    text = cd.BayesClassifier().fit(X, y).report()
    page = show(text)
    page.run("candide.set({size: 1.25, valve: 'open', note: 'good & fine #1'})")
    before = page.run("candide.probabilities()")
    page.until("location.hash.includes('fine')")
    fragment = page.run("location.hash")
    page.ask("Page.navigate", url="about:blank")
    again = show(text, fragment)
    assert again.run("candide.probabilities()") == before
    assert "good%20%26%20fine" in fragment


def test_values_are_set_by_keys_by_dragging_and_to_missing(show):
    X, y = mixed()
    page = show(cd.BayesClassifier().fit(X, y).report())
    slide = "document.querySelector('#try input[type=range]')"
    name, before = page.run(f"[{slide}.getAttribute('aria-label'), {slide}.getAttribute('aria-valuetext')]")
    assert name == "size"
    page.run(f"{slide}.focus()")
    for kind in ("keyDown", "keyUp"):
        page.ask("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    after = page.run(f"{slide}.getAttribute('aria-valuetext')")
    assert float(after) > float(before)
    page.run(f"{slide}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    sides = "(({left, top, width, height}) => [left, top, width, height])"
    box = page.run(f"{sides}({slide}.previousElementSibling.getBoundingClientRect())")
    at = box[0] + 0.9 * box[2], box[1] + 0.5 * box[3]
    for kind in ("mousePressed", "mouseReleased"):
        page.ask("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)
    assert float(page.run(f"{slide}.getAttribute('aria-valuetext')")) > float(after) + 0.5
    page.run(f"{slide}.closest('.control').querySelector('button').click()")
    assert page.run(f"{slide}.getAttribute('aria-valuetext')") == "missing"


def test_a_page_without_script_shows_its_pictures(show, tab):
    X, y = mixed()
    text = cd.BayesClassifier().fit(X, y).report({**X, "sold": y}, target="sold")
    tab.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page = show(text, ready=False)
    finally:
        tab.ask("Emulation.setScriptExecutionDisabled", value=False)
    seen = "[...document.querySelectorAll('svg')].filter((one) => one.getBoundingClientRect().width > 50).length"
    assert page.run(seen) >= 6


def test_paper_is_light_and_shows_the_bars(show):
    page = show(cd.BayesClassifier().fit(*mixed()).report())
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.ask("Emulation.setEmulatedMedia", media="print", features=dark)
    try:
        style = "getComputedStyle(document.querySelector('.importance .bar'))"
        assert page.run("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        assert page.run(f"{style}.printColorAdjust || {style}.webkitPrintColorAdjust") == "exact"
    finally:
        page.ask("Emulation.setEmulatedMedia", media="", features=[])


@pytest.mark.skipif("CANDIDE_AXE" not in os.environ, reason="CANDIDE_AXE names no axe.min.js (npm install axe-core)")
@pytest.mark.parametrize("dark", [False, True])
def test_no_serious_fault_of_accessibility(show, dark):
    X, y = mixed()
    page = show(cd.BayesClassifier().fit(X, y).report({**X, "sold": y}, target="sold"))
    page.look(1280, dark=dark)
    page.run(OPEN_ALL)
    page.run(Path(os.environ["CANDIDE_AXE"]).read_text())
    told = "({violations}) => violations.map((one) => [one.impact, one.id, one.nodes[0].html.slice(0, 200)])"
    faults = page.run(f"axe.run().then({told})")
    assert [one for one in faults if one[0] in ("serious", "critical")] == []
