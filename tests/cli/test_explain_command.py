"""candide explain: which class, and how much each column speaks for it."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.typed import lines as ask
from tests.cli.typed import run

import candide as cd
from candide import demo
from candide.errors import InputError
from candide.explain.rows import explain_table

PLANTS, HERBS = demo.garden_rows(300, seed=5)
EVENTS = {"flowers": "poisson", ("height_cm", "leaf_mm"): "gaussian-full"}


@pytest.fixture(scope="module")
def garden(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    columns = {name: pa.array(column, from_pandas=True) for name, column in PLANTS.items()}
    pq.write_table(pa.table({**columns, "herb": HERBS}), folder / "plants.parquet")
    done = run(
        "fit",
        "--model=naive",
        folder / "plants.parquet",
        "-t",
        "herb",
        "-o",
        folder / "m.candide",
        "--event",
        "flowers=poisson",
    )
    assert done.exit_code == 0
    return folder


def row_of(i):
    return {name: [column[i] if column[i] == column[i] else None] for name, column in PLANTS.items()}


def alone(row, names):
    return {name: value if name in names else [None] for name, value in row.items()}


def test_a_contribution_is_the_change_when_all_other_columns_are_missing(garden):
    model = cd.load(garden / "m.candide")
    for i, facts in zip([0, 6, 7, 8], ask("explain", garden / "m.candide", garden / "plants.parquet", "--row", 1,
                                          "--rows", "7-9"), strict=True):  # fmt: skip
        row = row_of(i)
        assert (facts["row"], facts["label"]) == (i + 1, HERBS[i])
        p = model.predict_proba(row)[0]
        second, first = np.argsort(p)[-2:]
        assert [facts["prediction"], facts["runner_up"]] == model.classes_[[first, second]].tolist()
        assert [facts["probability"], facts["runner_up_probability"]] == pytest.approx(p[[first, second]])

        def log_odds(some, first=first, second=second):
            log_p = model.predict_log_proba(some)[0]
            return log_p[first] - log_p[second]

        prior = log_odds(alone(row, ()))
        assert facts["class_prior"] == pytest.approx(prior)
        assert facts["log_odds"] == pytest.approx(log_odds(row))
        parts = {one["column"]: (one["value"], one["log_odds"]) for one in facts["contributions"]}
        assert {name: value for name, (value, _) in parts.items()} == {name: value for name, [value] in row.items()}
        for name in row:
            assert parts[name][1] == pytest.approx(log_odds(alone(row, (name,))) - prior, abs=1e-9)
        sizes = [abs(one["log_odds"]) for one in facts["contributions"]]
        assert sizes == sorted(sizes, reverse=True)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["predictive", "mean", "map"]), st.lists(st.integers(0, 299), min_size=1, max_size=5))
def test_contributions_add_up_to_the_log_odds(estimate, rows):
    model = cd.NaiveBayes(EVENTS, estimate=estimate).fit(PLANTS, HERBS)
    some = {name: column[rows] for name, column in PLANTS.items()}
    log_p = np.sort(model.predict_log_proba(some), axis=1)
    decisions = explain_table(model.fitted_, some)
    np.testing.assert_allclose([d.log_odds for d in decisions], log_p[:, -1] - log_p[:, -2], atol=1e-9)
    assert [d.prediction for d in decisions] == model.predict(some).tolist()


def test_columns_modelled_jointly_contribute_as_one():
    model = cd.NaiveBayes(EVENTS).fit(PLANTS, HERBS)
    [decision] = explain_table(model.fitted_, {**row_of(3), "height_cm": [50.0], "leaf_mm": [None]})
    together = next(r for r in decision.contributions if isinstance(r.column, tuple))
    assert (together.column, together.value) == (("height_cm", "leaf_mm"), (50.0, None))
    assert len(decision.contributions) == 4


def test_for_a_person(garden):
    shown = run("explain", garden / "m.candide", garden / "plants.parquet", "--row", 2).output
    lines = [line.split() for line in shown.splitlines()]
    [facts] = ask("explain", garden / "m.candide", garden / "plants.parquet", "--row", 2)
    assert f"{facts['prediction']}, p > 0.9999; then {facts['runner_up']}, p < 0.0001" in shown  # neither 0 nor 1
    assert f"labelled {HERBS[1]}" in shown
    at = lines.index(["column", "value", "log-odds"])
    assert [line[0] for line in lines[at + 1 : at + 6]] == [one["column"] for one in facts["contributions"]]
    assert [float(line[-1]) for line in lines[at + 1 : at + 6]] == [
        round(c["log_odds"], 3) for c in facts["contributions"]
    ]
    assert ["total", f"{facts['log_odds']:+.3f}"] in lines


def test_a_model_without_counts_explains_the_same(garden, tmp_path):
    assert run("merge", garden / "m.candide", "-o", tmp_path / "s.candide", "--detail", "score").exit_code == 0
    rows = garden / "plants.parquet", "--rows", "1-20"
    assert ask("explain", tmp_path / "s.candide", *rows) == ask("explain", garden / "m.candide", *rows)


def test_standard_input_missing_values_and_levels_never_seen(garden):
    text = "soil,height_cm,leaf_mm,flowers,scented\npeat,50.5,,3,yes\n"
    [facts] = ask("explain", garden / "m.candide", "-", stdin=text)
    parts = {one["column"]: one for one in facts["contributions"]}
    assert (parts["soil"]["value"], parts["soil"]["is_seen"]) == ("peat", False)
    assert (parts["leaf_mm"]["value"], parts["leaf_mm"]["log_odds"]) == (None, 0.0)
    assert (parts["height_cm"]["value"], facts["label"]) == (50.5, None)
    assert "peat (never seen)" in run("explain", garden / "m.candide", "-", stdin=text).output


def test_text_and_dates_are_shown_as_they_were_given(tmp_path):
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(i * 37) for i in range(8)]
    rows = pa.table(
        {"day": days, "body": ["free prize"] * 4 + ["see you at five"] * 4, "kind": ["spam"] * 4 + ["ham"] * 4}
    )
    pq.write_table(rows, tmp_path / "mail.parquet")
    fit = ("fit", tmp_path / "mail.parquet", "-t", "kind", "-o", tmp_path / "m.candide", "--event", "body=text")
    assert run(*fit).exit_code == 0
    [facts] = ask("explain", tmp_path / "m.candide", tmp_path / "mail.parquet", "--row", 5)
    assert {one["column"]: one["value"] for one in facts["contributions"]} == {
        "day": "2024-05-28",
        "body": "see you at five",
    }
    assert facts["prediction"] == "ham"


def test_an_impossible_value_decides_for_the_other_class(tmp_path):
    rows = {"soil": ["sand", "sand", "clay", "chalk"], "pot": ["red", "blue", "red", "red"]}
    path = tmp_path / "m.candide"
    cd.NaiveBayes(estimate="mle").fit(rows, ["a", "a", "b", "b"]).save(path)
    (tmp_path / "rows.csv").write_text("soil,pot\nsand,red\nclay,blue\n")
    one, none = ask("explain", path, tmp_path / "rows.csv", "--rows", "1,2")
    assert (one["prediction"], one["contributions"][0]) == (
        "a",
        {"column": "soil", "value": "sand", "log_odds": None, "is_seen": True},
    )
    assert (none["probability"], none["runner_up_probability"]) == (0.5, 0.5)  # impossible under both
    assert none["log_odds"] == none["class_prior"] == 0.0
    assert "+inf" in run("explain", path, tmp_path / "rows.csv").output


@pytest.mark.parametrize(
    ("rows", "value", "remedy"),
    [
        ("0", (0, 0), "rows are counted from 1, and a range goes up"),
        ("3,9-3", (9, 3), "rows are counted from 1, and a range goes up"),
        ("first", "first", "pass a number, such as 7, or a range, such as 3-9"),
        ("3-", "3-", "pass a number, such as 7, or a range, such as 3-9"),
    ],
)
def test_what_is_not_a_row(garden, rows, value, remedy):
    result = run("explain", garden / "m.candide", garden / "plants.parquet", f"--rows={rows}")
    error = result.exception
    assert isinstance(error, InputError)
    assert (error.value, error.remedy) == (value, remedy)
    assert not result.stdout


def test_row_0_is_an_error_in_python(garden):
    with pytest.raises(InputError, match="rows: 0 is not a valid row or range; rows are counted from 1"):
        list(cd.explain_rows(garden / "m.candide", garden / "plants.parquet", rows=[0]))


def test_rows_that_there_are_not(garden):
    error = run("explain", garden / "m.candide", garden / "plants.parquet", "--rows=299-302").exception
    assert isinstance(error, InputError)
    assert str(error).startswith("row 301: ")
    assert "plants.parquet has 300 rows" in str(error)


def test_one_class_leaves_nothing_to_decide():
    model = cd.NaiveBayes().partial_fit({"a": [1.0, 2.0]}, ["x", "x"])
    with pytest.raises(InputError, match="one class only, 'x'"):
        explain_table(model.fitted_, {"a": [1.0]})


NOTES = ["free prize call now", "see you at five", "free call for you", "at home now", "prize prize prize now"] * 6
KINDS = ["spam", "ham", "spam", "ham", "spam"] * 6


@pytest.mark.parametrize("how", ["multinomial", "bernoulli", "complement", "polya"])
def test_tokens_of_a_document_add_up_to_its_contribution(how):
    rows = {"note": NOTES, "size": np.arange(30.0) % 7}
    model = cd.NaiveBayes({"note": cd.events.Text(model=how)}).fit(rows, KINDS)
    some = {"note": ["free prize, free for you and unheard of", "", None], "size": [3.0, 4.0, 1.0]}
    decisions = model.explain(some)
    for i, decision in enumerate(decisions):
        one = next(one for one in decision.contributions if one.column == "note")
        assert one.log_odds == pytest.approx(sum(word.log_odds for word in one.words) + one.remainder)
        counts = {word.word: word.count for word in one.words}
        assert counts == ({"free": 2, "prize": 1, "for": 1, "you": 1} if i == 0 else {})
    if how == "multinomial":
        assert decisions[0].contributions[0].remainder == pytest.approx(0.0, abs=1e-12)
    assert "  free" in str(decisions[0])


def test_tokens_are_shown_and_described(tmp_path):
    pq.write_table(pa.table({"note": NOTES, "kind": KINDS}), tmp_path / "m.parquet")
    assert (
        run(
            "fit", "--model=naive", tmp_path / "m.parquet", "-t", "kind", "--event", "note=text", "-o", tmp_path / "m"
        ).exit_code
        == 0
    )
    [facts] = ask("explain", tmp_path / "m", tmp_path / "m.parquet", "--row", 5)
    [column] = facts["contributions"]
    assert [word["word"] for word in column["words"]] == ["prize", "now"]
    assert sum(word["log_odds"] for word in column["words"]) == pytest.approx(column["log_odds"])
    shown = run("explain", tmp_path / "m", tmp_path / "m.parquet", "--row", 5).output.split()
    assert shown[shown.index("prize", shown.index("word")) :][:3] == [
        "prize",
        "3",
        f"{column['words'][0]['log_odds']:+.3f}",
    ]


def test_very_many_columns_are_cut_in_print_and_still_add_up():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 90)), np.arange(60) % 2
    [decision] = cd.GaussianNB().fit(X + y[:, None], y).explain(X[:1] + 9)
    lines = str(decision).splitlines()
    assert len(lines) == 24
    assert lines[0] == "1, p > 0.999, against 0, p < 0.001"
    assert lines[-2].startswith("and 70 more")
    assert sum(float(line.split()[-1]) for line in lines[2:]) == pytest.approx(decision.log_odds, abs=0.2)
