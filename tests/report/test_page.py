"""The page of a model: what stands in it, that names are text, what is said where parts are missing, and its size."""

import html.parser
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from tests.cli.typed import ask, output, run

import candide as cd
from candide.demo import garden, garden_rows
from candide.errors import InputError
from candide.model.fitted import FittedModel
from candide.report.build import build_report
from candide.report.html.charts import script_json
from candide.validation.evaluation import evaluate_rows

HOSTILE = '"><img src=x onerror="alert(1)"></script><script>alert(\'2\')</script>&amp;\u2028{{ 7 * 7 }}'


class Reader(html.parser.HTMLParser):
    """The tags of a page, and its text outside scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.scripts, self._inside = [], [], "", [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *one) for one in attrs]
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data


def mixed(n=600, seed=0, names=("size", "kind", "valve", "pump", "note"), level="a"):
    """Numbers, levels, a pair that decides together, text, and missing values."""
    rng = np.random.default_rng(seed)
    kind, valve, pump = rng.choice([level, "b", "c"], n), rng.choice(["open", "shut"], n), rng.choice(["on", "off"], n)
    size = rng.normal(size=n) + (kind == level)
    y = np.where((((valve == "open") == (pump == "on")) ^ (rng.random(n) < 0.15)) | (size > 1.2), "yes", "no")
    words = np.where((y == "yes") ^ (rng.random(n) < 0.35), "good fine bright", "bad dull dark")
    note = [f"{' '.join(rng.permutation(w.split())[:2])} thing number {i % 7} of the day" for i, w in enumerate(words)]
    found = {
        names[0]: np.where(rng.random(n) < 0.1, np.nan, size),
        names[1]: np.where(rng.random(n) < 0.1, None, kind.astype(object)),
        names[2]: valve,
        names[3]: pump,
        names[4]: np.array(note, object),
    }
    return found, y


@pytest.fixture(scope="module")
def model():
    X, y = mixed()
    return cd.BayesClassifier().fit(X, y)


def test_a_page_shows_every_part(model):
    X, y = mixed(seed=1)
    page = Reader(model.report({**X, "sold": y}, target="sold"))
    for part in ("Performance", "Terms by importance", "Confusion matrix", "Largest errors", "Data warnings"):
        assert part in page.text
    for name in X:
        assert name in page.text
    assert "valve x pump" in page.text
    assert page.tags.count("svg") >= 4


def test_a_page_reports_drift(model):
    X, y = mixed(seed=1)
    like = build_report(model, {**X, "sold": y}, "sold").page.drift
    assert like.drifted_columns == ()
    moved = {**X, "valve": np.full(len(y), "open")}
    page = build_report(model, {**moved, "sold": y}, "sold")
    assert page.page.drift.drifted_columns == ("valve",)
    assert "Columns that drifted beyond chance" in page.text
    assert "Columns that drifted beyond chance" in build_report(model, moved).text  # labels or not
    assert page.page.drift.notes
    assert all(one in Reader(page.text).text for one in page.page.drift.notes)  # what was not compared
    assert build_report(model.fitted_.without_counts(), {**X, "sold": y}, "sold").page.drift is None


def test_rows_that_were_left_out_are_reported_on_the_page(model):
    X, y = mixed(seed=1)
    labels = np.where(np.arange(len(y)) < 7, "perhaps", y).astype(object)
    labels[7:10] = None
    some = {name: column for name, column in X.items() if name != "pump"}
    with pytest.warns(UserWarning, match="perhaps"):
        text = Reader(model.report({**some, "sold": labels}, target="sold")).text
    assert "7 rows have a label the model does not know ('perhaps') and were left out" in text
    assert "3 rows have no value of 'sold' and were left out" in text
    assert "lacks 'pump': taken as missing in every row" in text


def test_the_baseline_names_its_class():
    X, y = mixed()
    model = cd.BayesClassifier().fit(X, np.where(np.arange(len(y)) < 500, "no", y))
    rows, truth = mixed(seed=1)
    found = build_report(model, {**rows, "sold": np.where(truth == "no", "yes", truth)}, "sold").page.assessment
    assert "always predicting no, the most frequent class, gives 0%" in found.sentences[0]


def test_a_typical_row_has_values_that_were_seen():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], 500)
    gain = np.where(rng.random(500) < 0.3 + 0.4 * (y == "a"), rng.integers(100, 9000, 500), 0)
    model = cd.BayesClassifier().fit({"gain": gain, "size": rng.normal(size=500) + (y == "b")}, y)
    typical = {one.columns: one.typical_value for one in build_report(model).page.terms}
    assert np.median(gain) == 0 == typical["gain",]


def test_a_page_asks_for_nothing_from_elsewhere(model):
    page = Reader(model.report())
    assert not {"img", "iframe", "object", "embed", "base"} & set(page.tags)
    links = [value for _, name, value in page.attributes if name in ("src", "href", "action", "data")]
    assert all(value.startswith(("#", "data:")) for value in links)
    policy = dict(
        one[1:] for one in page.attributes if one[0] == "meta" and one[1] == "content" and "default" in one[2]
    )
    assert policy["content"].startswith("default-src 'none'")


def test_hostile_names_and_levels_are_text():
    names = [f"{HOSTILE} {i}" for i in range(5)]
    X, y = mixed(names=names, level=HOSTILE)
    y = np.where(y == "yes", HOSTILE, "no")
    model = cd.BayesClassifier().fit(X, y)
    text = model.report({**X, f"target {HOSTILE}": y}, target=f"target {HOSTILE}")
    page = Reader(text)
    plain = Reader(cd.BayesClassifier().fit(*mixed()).report())
    assert not {"img", "iframe"} & set(page.tags)
    assert page.tags.count("script") == plain.tags.count("script")
    assert not [one for one in page.attributes if one[1].startswith("on")]
    assert names[0] in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "\u2028" not in "".join(page.scripts)


@pytest.mark.parametrize("value", [HOSTILE, {"a": ["<", "&", "\u2029"]}, "]]>--><!--"])
def test_json_in_a_script_is_the_same_and_ends_nothing(value):
    text = script_json(value)
    assert json.loads(text) == value
    assert not re.search("[<>&\u2028\u2029]", text)


def test_a_model_without_data_counts_or_target_says_what_is_missing():
    fitted = FittedModel(garden())
    alone = build_report(fitted)
    assert [one.section for one in alone.page.missing_sections] == ["Performance"]
    assert "candide report MODEL DATA" in alone.text
    bare = build_report(fitted.without_counts())
    assert [one.section for one in bare.page.missing_sections] == ["Performance", "Counts"]
    assert ">rows<" in alone.text
    assert ">rows<" not in bare.text
    plants, _ = garden_rows(50, seed=0)
    assert [one.section for one in build_report(fitted, plants).page.missing_sections] == ["Performance"]
    named = FittedModel(garden(), target="herb")
    assert "has no column &#39;herb&#39;" in build_report(named, plants).text


@pytest.mark.parametrize("labels", [[None, None], ["mint", "mint"], []])
def test_rows_without_a_label_that_is_known_have_a_page_without_scores(labels):
    plants, herbs = garden_rows(300, seed=0)
    model = cd.fit({**plants, "herb": herbs}, "herb", model="naive")
    new = {name: values[: len(labels)] for name, values in plants.items()}
    made = build_report(model, pa.table({**new, "herb": pa.array(labels, pa.string())}))
    [gap] = made.page.missing_sections
    assert (gap.section, made.page.assessment) == ("Performance", None)
    assert "pass rows whose &#39;herb&#39; is known" in made.text


def test_a_page_describes_a_policy():
    plants, herbs = garden_rows(300, seed=0)
    table = {**plants, "herb": herbs}
    made = build_report(cd.fit(table, "herb", model="naive").with_policy(threshold=0.2, positive="sage"), table)
    assert made.page.assessment.sentences[0] == "Decision policy: 'sage' if its probability is at least 0.2."
    assert "Policy(" not in made.text


def test_names_turn_no_line_of_a_page_round():
    names = ("size", "kind\u202e", "valve", "pump", "note")
    text = build_report(cd.BayesClassifier().fit(*mixed(300, names=names))).text
    assert "kind\u202e" not in text[: text.index("<script")]
    assert "kind " in text


@pytest.mark.parametrize("kind", ["naive", "bayes"])
def test_every_detail_of_a_model_file_has_a_page(kind, tmp_path):
    plants, herbs = garden_rows(300, seed=0)
    table = {**plants, "herb": herbs}
    for detail in ("tally", "explain", "score"):
        cd.fit(table, "herb", model=kind).save(tmp_path / "m.candide", detail=detail)
        model = cd.load(tmp_path / "m.candide")
        assert [one.section for one in build_report(model).page.missing_sections] == [
            "Performance",
            *(["Counts"] if detail != "tally" else []),
        ]
        assert build_report(model, table).page.assessment is not None


def test_a_model_of_one_class_has_a_page():
    page = build_report(cd.GaussianNB().fit([[1.0], [2.0]], ["x", "x"]))
    assert "fewer than two classes" in page.text


def test_every_estimator_has_a_page():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.repeat(["a", "b", "c"], 20)
    counts = np.abs(X).round()
    texts = [f"{word} and some more words of the same sort {i}" for i, word in enumerate(y)]
    models = [cd.GaussianNB().fit(X, y), cd.GaussianBayes().fit(X, y), cd.MultinomialNB().fit(counts, y)]
    models += [cd.BernoulliNB().fit(X, y), cd.CategoricalNB().fit(counts, y), cd.ComplementNB().fit(counts, y)]
    models += [
        cd.TextNB().fit(texts, y),
        cd.TextNB(weights=None).fit(texts, y),
        cd.NaiveBayes("poisson").fit(counts, y),
    ]
    for one in models:
        assert Reader(one.report()).tags.count("section") == 4, type(one).__name__


def test_the_rows_that_surprised_it_most_are_those_of_least_probability():
    fitted = FittedModel(garden())
    plants, herbs = garden_rows(700, seed=3)
    labels = np.array(herbs, object)
    labels[::50] = None  # rows without a label are left out, and the others keep their numbers
    found = evaluate_rows(fitted, {**plants, "herb": labels}, "herb", max_errors=5)
    p = fitted.posterior(plants)
    known = [i for i in range(700) if labels[i] is not None]
    lost = {i: -np.log(p[i, fitted.labels.values.index(labels[i])]) for i in known}
    worst = sorted(known, key=lambda i: -lost[i])[:5]
    assert [one.row - 1 for one in found.largest_errors] == worst
    np.testing.assert_allclose([one.log_loss for one in found.largest_errors], [lost[i] for i in worst], rtol=1e-9)
    assert [one.row for one in found.explanations] == [one.row for one in found.largest_errors]
    right = np.mean([fitted.labels.values[p[i].argmax()] == labels[i] for i in known])
    assert found.scores.accuracy == pytest.approx(right)


@pytest.mark.all_cases
def test_sizes_stay_within_what_a_mail_takes():
    rng = np.random.default_rng(0)
    for columns, most in ((100, 250_000), (1000, 1_000_000)):
        y = rng.choice(["up", "down"], 200)
        X = rng.normal(size=(200, columns)) + 0.7 * (y == "up")[:, None]
        model = cd.BayesClassifier().fit({f"column {j}": X[:, j] for j in range(columns)}, y)
        made = build_report(model)
        assert len(made.text.encode()) <= most
        assert made.page.parameters or columns < 1000  # of so many columns there is room to try a case
        if columns == 100:
            assert len(model.report(full=True)) > len(made.text)


def test_a_page_of_many_classes_is_small_and_says_what_it_leaves_out():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 100, 2000)
    X = {"tens": code // 10 + rng.normal(size=2000), "ones": code % 10 + rng.normal(size=2000)}
    y = [f"class {c:02d}" for c in code]
    model = cd.BayesClassifier().fit(X, y)
    made = build_report(model, {**X, "y": y}, "y")
    assert len(made.text.encode()) <= 250_000
    text = " ".join(Reader(made.text).text.split())
    assert re.search(r"it has the curves of \d+ of 100 classes", text)
    assert "there is no interval for auc, weighted auc, average precision" in text
    [data] = [json.loads(one) for one in Reader(made.text).scripts if one.startswith('{"classes"')]
    drawn = [c for c, curve in enumerate(data["curves"]) if curve]
    assert made.page.default_class in drawn
    wrong = np.array(made.page.assessment.scores.confusion) * (1 - np.eye(100))
    told = np.array(data["confusions"]).reshape(-1, 3)
    assert len(told) + data["rarer"] == (wrong > 0).sum()
    assert all(wrong[int(true), int(given)] == n for true, given, n in told)


def test_a_case_whose_numbers_do_not_fit_is_left_out_with_its_size():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 100, 2000).astype(str)
    X = {f"c{j}": rng.choice(list("abcdefghijkl"), 2000) for j in range(50)}
    made = build_report(cd.NaiveBayes().fit(X, y))
    assert not made.page.parameters
    [gap] = [one for one in made.page.missing_sections if one.section == "What if"]
    assert re.search(r"the page would have .*\d kB", gap.reason)
    assert "--full" in gap.remedy
    assert build_report(cd.NaiveBayes().fit(X, y), full=True).page.parameters


def test_the_command_writes_a_page_and_nothing_over_what_is_not_its_own(tmp_path):
    X, y = mixed(200)
    table = tmp_path / "rows.csv"
    columns = {name: pa.array(values.tolist(), from_pandas=True) for name, values in X.items()}
    pyarrow.csv.write_csv(pa.table({**columns, "sold": y}), table)
    model, page = tmp_path / "m.candide", tmp_path / "report.html"
    output("fit", table, "--target", "sold", "-o", model, "--quick")
    told = ask("report", model, table, "-o", page)
    assert told["size_bytes"] == page.stat().st_size
    assert told["missing_sections"] == []
    assert "Optimistic." in page.read_text()
    output("report", model, "-o", page)  # over a page of its own
    page.write_text("my own notes")
    for args in (("report", model, "-o", page), ("report", model, table, "-o", table)):
        before, result = args[-1].read_bytes(), run(*args)
        assert isinstance(result.exception, InputError)
        assert "--force" in result.exception.remedy
        assert args[-1].read_bytes() == before
    output("report", model, "-o", page, "--force")
    assert page.read_text().startswith("<!doctype html>")


def test_standard_input_is_refused():
    with pytest.raises(InputError) as error:
        build_report(FittedModel(garden()), "-")
    assert error.value.value == "-"


def test_a_model_without_active_terms_has_a_page_without_a_case():
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=300), "y": rng.choice(["a", "b"], 300)}
    made = build_report(cd.fit(rows, "y"), rows, "y")
    assert not made.page.terms
    assert 'id="parameters"' not in made.text
    assert any("no better than" in sentence for sentence in made.page.assessment.sentences)
