"""update, merge, forget and diff, as a person types them."""

import re

import numpy as np
import pytest
from tests.cli.typed import ask, output, run

import candide as cd
from candide import demo, store

NAMES = ["height_cm", "leaf_mm", "flowers", "soil", "scented", "herb"]


def write(path, rows):
    text = [",".join("" if v is None or v != v else str(v) for v in row) for row in rows]
    path.write_text("\n".join([",".join(NAMES), *text]) + "\n")


@pytest.fixture(scope="module")
def herbs(tmp_path_factory):
    """Three tables of herbs and a model of each, all counted in the same way."""
    folder = tmp_path_factory.mktemp("algebra")
    table, y = demo.garden_rows(900, seed=3)
    rows = list(zip(*table.values(), y, strict=True))
    events = [x for n in ("height_cm", "leaf_mm") for x in ("--event", f"{n}=gaussian")]
    events += [x for n in ("soil", "scented") for x in ("--event", f"{n}=categorical")]
    events += ["--event", "flowers=poisson"]
    for i, name in enumerate(("may", "june", "july")):
        write(folder / f"{name}.csv", rows[300 * i : 300 * i + 300])
        ask("fit", "--model=naive", folder / f"{name}.csv", "-t", "herb", "-o", folder / f"{name}.candide", *events)
    write(folder / "all.csv", rows)
    ask("fit", "--model=naive", folder / "all.csv", "-t", "herb", "-o", folder / "all.candide", *events)
    return folder


def counts(path):
    census = store.load(path).counts
    return [census.class_weight, *(a for t in census.tallies for a in t.arrays().values())]


def same(a, b):
    for x, y in zip(counts(a), counts(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


def copy(herbs, tmp_path, name):
    path = tmp_path / f"{name}.candide"
    path.write_bytes((herbs / f"{name}.candide").read_bytes())
    return path


def test_update_counts_more_rows_into_the_file(herbs, tmp_path):
    path = copy(herbs, tmp_path, "may")
    assert ask("update", path, herbs / "june.csv")["rows_in_model"] == 600
    facts = ask("update", path, herbs / "july.csv")
    assert (facts["rows"], facts["rows_in_model"]) == (300, 900)
    same(path, herbs / "all.candide")


def test_merge_adds_files(herbs, tmp_path):
    out = tmp_path / "sum.candide"
    facts = ask("merge", *(herbs / f"{n}.candide" for n in ("may", "june", "july")), "-o", out)
    assert facts["rows"] == 900
    same(out, herbs / "all.candide")


def test_forget_takes_rows_out_again(herbs, tmp_path):
    path = copy(herbs, tmp_path, "all")
    assert ask("forget", path, herbs / "july.csv")["rows_in_model"] == 600
    ask("merge", herbs / "may.candide", herbs / "june.candide", "-o", tmp_path / "two.candide")
    same(path, tmp_path / "two.candide")


def test_forgetting_what_was_never_counted_changes_nothing(herbs, tmp_path):
    path = copy(herbs, tmp_path, "may")
    before = path.read_bytes()
    result = run("forget", path, herbs / "all.csv")
    assert result.exit_code == 1
    assert path.read_bytes() == before


def test_update_can_let_the_past_fade(herbs, tmp_path):
    path = copy(herbs, tmp_path, "may")
    ask("update", path, herbs / "june.csv", "--scale", 0.5)
    expected = 0.5 * counts(herbs / "may.candide")[0] + counts(herbs / "june.candide")[0]
    np.testing.assert_allclose(counts(path)[0], expected)


def test_new_classes_and_levels_may_come(herbs, tmp_path):
    path = copy(herbs, tmp_path, "may")
    write(tmp_path / "new.csv", [(30.0, 10.0, 4, "peat", "yes", "mint"), (31.0, None, 5, None, "no", "mint")])
    ask("update", path, tmp_path / "new.csv")
    model = cd.load(path)
    assert model.classes_.tolist() == ["lavender", "mint", "sage", "thyme"]
    assert "peat" in next(p for p in model.fitted_.plan.parts if "soil" in p.columns).levels[0].values


def test_diff_says_what_moved(herbs, tmp_path):
    path = copy(herbs, tmp_path, "may")
    write(tmp_path / "chalky.csv", [(22.0, 9.0, 15, "chalk", "yes", "thyme")] * 400)
    ask("update", path, tmp_path / "chalky.csv")
    facts = ask("diff", herbs / "may.candide", path)
    assert facts["rows"] == [300, 700]
    assert facts["classes"][0]["label"] == "thyme"
    assert facts["levels"][0]["column"] == "soil"
    # The flowers of thyme are as they were; of others what they share with it moved, a little.
    assert {m["label"] for m in facts["columns"][:4]} == {"thyme"}
    assert (
        sum(m["divergence"] for m in facts["columns"] if m["label"] != "thyme")
        < 0.05 * facts["columns"][0]["divergence"]
    )
    surprises = [m["surprise"] for m in facts["columns"]]
    assert surprises == sorted(surprises, reverse=True)
    text = run("diff", herbs / "may.candide", path)
    assert text.exit_code == 0
    for word in ("300 rows before, 700 after", "Classes by surprise", "thyme", "soil = chalk", "surprise"):
        assert word in text.output
    assert "no change beyond chance" in run("diff", path, path).output
    twice = copy(herbs, tmp_path, "may")
    ask("update", twice, herbs / "may.csv")  # what is there twice moves by the prior alone
    little = run("diff", herbs / "may.candide", twice).output
    assert "Classes: no change beyond chance" in little
    assert not re.search(r" 0\.0\s", little)  # a move that is no surprise is not shown


def test_a_model_without_counts_predicts_and_shows_but_does_not_merge(herbs, tmp_path):
    for detail in ("score", "explain"):
        out = tmp_path / f"{detail}.candide"
        ask("merge", herbs / "all.candide", "-o", out, "--detail", detail)
        full, small = (run("predict", p, herbs / "may.csv", "--json") for p in (herbs / "all.candide", out))
        assert full.exit_code == small.exit_code == 0
        assert full.output == small.output
        shown = ask("show", out)
        proportions = [
            [one["proportion"] for one in facts["classes"]] for facts in (shown, ask("show", herbs / "all.candide"))
        ]
        assert proportions[0] == pytest.approx(proportions[1])
        assert bool(shown["importances"]) == (detail == "explain")
        assert run("show", out).exit_code == 0
        for command in (
            ("update", out, herbs / "may.csv"),
            ("merge", out, herbs / "may.candide", "-o", tmp_path / "x"),
        ):
            result = run(*command)
            assert result.exit_code == 1
            assert "has no counts" in str(result.exception)


def test_errors_name_both_files(herbs, tmp_path):
    ask(
        "fit",
        "--model=naive",
        herbs / "may.csv",
        "-t",
        "herb",
        "-o",
        tmp_path / "b.candide",
        "--event",
        "flowers=gaussian",
    )
    for command in (("merge", herbs / "may.candide", tmp_path / "b.candide", "-o", tmp_path / "c.candide"),
                    ("diff", herbs / "may.candide", tmp_path / "b.candide")):  # fmt: skip
        result = run(*command)
        assert result.exit_code == 1
        assert "may.candide" in str(result.exception)
        assert "b.candide" in str(result.exception)
    assert not (tmp_path / "c.candide").exists()


@pytest.mark.parametrize("command", ["update", "merge", "forget", "diff"])
def test_help_has_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"candide {command}" in result.output


@pytest.fixture
def weighted(herbs, tmp_path):
    """A weighted model of the herbs of May, in a file that does not say what it learned."""
    import pandas as pd

    may = pd.read_csv(herbs / "may.csv")
    cd.BayesClassifier().fit(may.drop(columns="herb"), may["herb"]).save(tmp_path / "may.candide")
    return tmp_path / "may.candide"


def test_reweight_learns_the_weights_again(herbs, weighted, tmp_path):
    facts = ask(
        "reweight", weighted, herbs / "may.csv", "-t", "herb", "--sample-rows", 100, "-o", tmp_path / "less.candide"
    )
    assert (facts["rows"], facts["rows_in_model"], facts["output"]) == (100, 300, str(tmp_path / "less.candide"))
    assert store.load(tmp_path / "less.candide").term_weights.n_learned_rows == 100
    assert store.load(weighted).term_weights.n_learned_rows == 300
    shown = run("reweight", weighted, herbs / "may.csv", "-t", "herb")
    assert "300 of 300 rows" in " ".join(shown.output.split())
    swapped = run("reweight", herbs / "may.csv", weighted)
    assert "did you mean: candide reweight" in str(swapped.exception)


def test_reweight_refuses_rows_of_another_month_unless_declared(herbs, weighted):
    result = run("reweight", weighted, herbs / "june.csv", "-t", "herb")
    assert result.exit_code == 1
    assert "--rows-are-new" in result.exception.remedy
    assert ask("reweight", weighted, herbs / "june.csv", "-t", "herb", "--rows-are-new")["rows"] == 300


def test_commands_say_when_weights_are_old(herbs, weighted, tmp_path):
    table = (herbs / "may.csv").read_text().splitlines(keepends=True)
    (tmp_path / "some.csv").write_text("".join(table[:51]))
    assert "50 rows were forgotten" in ask("forget", weighted, tmp_path / "some.csv", "-t", "herb")["notes"][0]
    assert "50 rows were forgotten" in " ".join(run("show", weighted).output.split())
    merged = ask("merge", weighted, weighted, weighted, "-o", tmp_path / "sum.candide")
    assert "candide reweight" in merged["notes"][0]
    (tmp_path / "rest.csv").write_text("".join([table[0], *table[51:]]))
    ask("reweight", weighted, tmp_path / "rest.csv", "-t", "herb")
    assert "weights learned on 250 of 250 rows" in " ".join(run("show", weighted).output.split())


def test_fit_like_a_model_and_merge(herbs, weighted, tmp_path):
    shown = run("fit", herbs / "june.csv", "-t", "herb", "--like", weighted, "-o", tmp_path / "june.candide")
    assert f"candide merge {weighted} {tmp_path / 'june.candide'}" in shown.output
    merged = ask("merge", weighted, tmp_path / "june.candide", "-o", tmp_path / "all.candide")
    assert merged["rows"] == store.load(tmp_path / "all.candide").term_weights.n_learned_rows == 600
    for odd in (("--folds", "3"), ("--event", "soil=categorical"), ("--drop", "soil")):
        result = run("fit", herbs / "june.csv", "-t", "herb", "--like", weighted, *odd)
        assert result.exit_code == 1
        assert result.exception.remedy
    same_file = run("fit", herbs / "june.csv", "-t", "herb", "--like", weighted, "-o", weighted)
    assert "force" in same_file.exception.remedy


@pytest.mark.parametrize(
    ("command", "model", "data", "rows"), [("update", "may", "june", 600), ("forget", "all", "july", 600)]
)
def test_a_changed_model_may_be_kept_in_another_file(herbs, tmp_path, command, model, data, rows):
    path, out = copy(herbs, tmp_path, model), tmp_path / "out.candide"
    before = path.read_bytes()
    facts = ask(command, path, herbs / f"{data}.csv", "-o", out)
    assert (facts["rows_in_model"], facts["output"]) == (rows, str(out))
    assert path.read_bytes() == before
    assert cd.load(out).counts_.n_rows == rows
    ask(command, path, herbs / f"{data}.csv")  # in its own file
    same(path, out)


@pytest.mark.parametrize("command", ["update", "forget", "reweight"])
def test_what_is_not_a_model_is_not_replaced_by_one(herbs, weighted, tmp_path, command):
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    result = run(command, weighted, herbs / "may.csv", "-o", other)
    assert result.exit_code == 1
    assert "--force" in result.exception.remedy
    assert other.read_text() == "mine"


def test_forget_says_what_counts_cannot_prove(herbs, tmp_path):
    path = copy(herbs, tmp_path, "all")
    notes = ask("forget", path, herbs / "july.csv")["notes"]
    assert any("cannot prove" in note for note in notes)
    assert not any("cannot prove" in note for note in ask("update", path, herbs / "july.csv")["notes"])
    text = " ".join(run("forget", "--help").output.split())
    assert "cannot prove that a row was counted" in text
    assert "were never counted are an error" not in text


def test_merge_of_models_fitted_apart_has_the_command_that_mends_it(herbs, tmp_path):
    for name in ("may", "june"):
        ask("fit", herbs / f"{name}.csv", "-t", "herb", "--quick", "-o", tmp_path / f"{name}.candide")
    typed = ("merge", tmp_path / "may.candide", tmp_path / "june.candide", "-o", tmp_path / "sum.candide")
    remedy = run(*typed).exception.remedy
    command = remedy.partition("candide fit DATA")[2].removesuffix(" (like=...)").split()
    assert command[:2] == ["--target", "herb"]
    ask("fit", herbs / "june.csv", *command, "--quick")
    assert ask(*typed)["rows"] == 600
    assert "--like" in run("merge", "--help").output


@pytest.mark.parametrize("command", ["update", "forget"])
def test_rows_without_a_label_are_noted(command, tmp_path):
    rows, model = tmp_path / "rows.csv", tmp_path / "model.candide"
    rows.write_text("x,y\n" + "".join(f"{i % 7}.5,{'ab'[i % 2]}\n" for i in range(60)))
    ask("fit", rows, "--target", "y", "-o", model)
    rows.write_text("x,y\n0.5,a\n1.5,\n2.5,\n")
    facts = ask(command, model, rows, "-o", tmp_path / "changed.candide")
    assert facts["rows"] == 1
    assert "2 rows have no value of 'y' and were left out" in facts["notes"]
    assert "2 rows have no value of 'y' and were left out" in output(command, model, rows)
