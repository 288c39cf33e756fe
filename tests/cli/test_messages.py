"""What commands say when something is amiss, or worth a word; and what they print on a narrow terminal."""

import io
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from tests.cli.typed import ask, run

import candide as cd
from candide import demo
from candide.errors import CandideError, ModelFileError
from candide.events import EVENTS

RNG = np.random.default_rng(2)


def failure(*args):
    """The error with which a command ends."""
    result = run(*args)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, CandideError)
    return result.exception


@pytest.fixture(scope="module")
def herbs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messages")
    plants, y = demo.garden_rows(600, seed=8)
    columns = {name: pa.array(column, from_pandas=True) for name, column in plants.items()}
    pyarrow.csv.write_csv(pa.table({**columns, "herb": y}), folder / "herbs.csv")
    assert (
        run("fit", "--model=naive", folder / "herbs.csv", "-t", "herb", "-o", folder / "herbs.candide").exit_code == 0
    )
    return folder


def model_of(folder, text, *options, target="y"):
    (folder / "rows.csv").write_text(text)
    done = run("fit", folder / "rows.csv", "-t", target, "-o", folder / "m.candide", *options)
    assert done.exit_code == 0, done.exception
    return folder / "m.candide", done.output


SMALL = "age,job,y\n30,cook,no\n41,smith,yes\n35,cook,no\n52,smith,yes\n"


# Commands that belong together, and those that do not.


@pytest.mark.parametrize(
    "option",
    ["--estimate=mle", "--drop=soil", "--event=soil=categorical", "--select=2", "--folds=3",
     "--seed=1", "--intervals-by=folds"],
)  # fmt: skip
def test_a_fitted_model_takes_no_options_of_learning(herbs, option):
    error = failure("evaluate", herbs / "herbs.candide", herbs / "herbs.csv", option)
    assert error.value == option.partition("=")[0]
    assert f"cross-validation, candide evaluate {herbs / 'herbs.csv'} --target herb" in error.remedy


def test_a_fitted_model_takes_the_options_of_reading(herbs):
    assert ask("evaluate", herbs / "herbs.candide", herbs / "herbs.csv", "--na", "nothing", "-t", "herb")["rows"] == 600


def test_a_model_alone_asks_for_data(herbs):
    for more in ((), ("--target", "herb")):
        error = failure("evaluate", herbs / "herbs.candide", *more)
        assert error.value == str(herbs / "herbs.candide")
        assert error.remedy == f"pass DATA to score it on: candide evaluate {herbs / 'herbs.candide'} DATA"
    assert str(failure("evaluate", herbs / "herbs.csv")) == "expected the column to predict; pass --target COL"
    assert failure("evaluate", *[herbs / "herbs.csv"] * 3).remedy == "pass DATA with --target, or MODEL and DATA"


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "update", "forget"])
def test_swapped_arguments(herbs, command):
    before = (herbs / "herbs.candide").read_bytes()
    error = failure(command, herbs / "herbs.csv", herbs / "herbs.candide")
    assert error.value == str(herbs / "herbs.csv")
    assert error.remedy == f"did you mean: candide {command} {herbs / 'herbs.candide'} {herbs / 'herbs.csv'}"
    assert isinstance(failure(command, herbs / "herbs.csv", herbs / "herbs.csv"), ModelFileError)
    assert (herbs / "herbs.candide").read_bytes() == before


def test_a_model_that_does_not_know_its_target_asks_for_it(herbs, tmp_path):
    plants, y = demo.garden_rows(200, seed=8)
    cd.NaiveBayes().fit(plants, y).save(tmp_path / "m.candide")
    error = failure("evaluate", tmp_path / "m.candide", herbs / "herbs.csv")
    assert error.remedy == "name the column of the labels: --target COL"
    assert ask("evaluate", tmp_path / "m.candide", herbs / "herbs.csv", "-t", "herb")["rows"] == 600


# What comes next.


def joined(shown):
    """Lines as a shell reads them."""
    return re.sub(r" \\\n +", " ", shown)


def test_the_next_commands_repeat_the_options_and_run(tmp_path):
    rows = SMALL.replace("job", "the job").replace("35", "?") * 1 + "38,cook,no\n44,smith,yes\n"
    options = ("--drop", "age", "--event", "the job=categorical", "--class-prior", "uniform", "--na", "?", "--header")
    folder = tmp_path / "a folder"
    folder.mkdir()
    _, output = model_of(folder, rows, *options)
    shown = output.partition("Next")[2]
    steps = [line.strip() for line in joined(shown).splitlines() if line.strip()]
    assert [step.split()[1] for step in steps] == ["predict", "explain", "show", "report", "evaluate"]
    assert steps[4].endswith(
        "--target y --folds 10 --event 'the job=categorical' --drop age --class-prior uniform --na '?' --header"
    )
    assert "--na '?' --header" in steps[0]
    assert "--drop" not in steps[0]
    new = f"'{folder}/rows.csv'"
    script = f"set -e\n{shown}".replace("NEW_DATA", new).replace("--folds 10", "--folds 2")
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, cwd=tmp_path, env={"PATH": path})
    assert done.returncode == 0, done.stderr


def test_shares_of_classes_are_repeated_as_they_are_typed(tmp_path):
    _, output = model_of(tmp_path, SMALL, "--class-prior", "no=.2,yes=.8")
    assert "--class-prior no=0.2,yes=0.8" in joined(output.partition("Next")[2])


def test_an_option_whose_value_looks_like_one_is_joined_to_it(tmp_path):
    _, output = model_of(tmp_path, SMALL, "--na=-", "--no-header", target="column2")
    assert "--na=- --no-header" in output


def test_the_next_commands_are_broken_as_a_shell_reads_them_in_a_narrow_terminal(tmp_path):
    (tmp_path / "rows.csv").write_text(SMALL)
    output = run(
        "fit", tmp_path / "rows.csv", "-t", "y", "--event", "job=categorical", "--drop", "age", width=50
    ).output
    assert f"  candide fit {tmp_path / 'rows.csv'} --target y --event job=categorical --drop age -o" in joined(output)
    assert [line for line in output.splitlines() if len(line) > 50 and "rows.csv" not in line] == []


# Changing a model.


def test_a_label_mistyped_is_named_as_a_new_class(tmp_path):
    path, _ = model_of(tmp_path, "w,y\n1,Iris-setosa\n2,Iris-setosa\n5,Iris-virginica\n6,Iris-virginica\n")
    (tmp_path / "more.csv").write_text("w,y\n1.5,iris-setosa\n7,Iris-virginica\n8,elm\n9,elm\n")
    result = run("update", path, tmp_path / "more.csv")
    assert "new class 'iris-setosa' (1 row); did you mean 'Iris-setosa'?" in result.output
    assert "new class 'elm' (2 rows)\n" in result.output
    (tmp_path / "more.csv").write_text("w,y\n1.5,Iris-Setosa\n1.5,elm\n")
    facts = ask("update", path, tmp_path / "more.csv")
    assert [(new["label"], new["weight"]) for new in facts["new_classes"]] == [("Iris-Setosa", 1.0)]
    assert facts["new_classes"][0]["did_you_mean"].casefold() == "iris-setosa"
    assert ask("forget", path, tmp_path / "more.csv")["new_classes"] == []


def test_a_model_without_rows_says_so(tmp_path):
    path, _ = model_of(tmp_path, SMALL)
    facts = ask("forget", path, tmp_path / "rows.csv")
    assert facts["rows_in_model"] == 0
    assert "has no rows left" in facts["notes"][0]
    for command in ("predict", "evaluate", "explain"):
        assert "no rows left" in str(run(command, path, tmp_path / "rows.csv").exception)
    assert ask("show", path)["classes"] == []
    assert ask("update", path, tmp_path / "rows.csv")["rows_in_model"] > 0


def test_one_row_is_one_row(tmp_path):
    path, _ = model_of(tmp_path, SMALL)
    (tmp_path / "one.csv").write_text("age,job,y\n30,cook,no\n")
    assert "1 row counted into" in run("update", path, tmp_path / "one.csv").output
    assert "Evaluated on 1 row " in run("evaluate", path, tmp_path / "one.csv").output
    assert "1 row scored into" in run("predict", path, tmp_path / "one.csv", "-o", tmp_path / "out.csv").output


# Facts.


def test_json_has_no_nan(tmp_path):
    path, _ = model_of(tmp_path, SMALL)
    (tmp_path / "no.csv").write_text("age,job,y\n30,cook,no\n33,cook,no\n")
    facts = ask("evaluate", path, tmp_path / "no.csv")
    assert facts["metrics"]["auc"]["value"] is None
    assert facts["metrics"]["accuracy"]["value"] == 1.0
    apart = {"job": ["cook", "smith"], "car": ["van", "cab"]}
    cd.NaiveBayes(estimate="mle").fit(apart, ["a", "b"]).save(tmp_path / "s.candide")
    (tmp_path / "odd.csv").write_text("job,car\ncook,cab\n")  # impossible
    assert ask("predict", tmp_path / "s.candide", tmp_path / "odd.csv")["log_density"] is None


def test_the_baseline_is_that_of_the_class_shares(herbs, tmp_path):
    rows = pyarrow.csv.read_csv(herbs / "herbs.csv").to_pandas()
    test = rows.sample(200, random_state=1, weights=np.where(rows.herb == "sage", 3.0, 1.0))
    test.to_csv(tmp_path / "test.csv", index=False)
    facts = ask("evaluate", herbs / "herbs.candide", tmp_path / "test.csv")
    found = {name: metric["baseline"] for name, metric in facts["metrics"].items()}
    dummy = DummyClassifier(strategy="prior").fit(rows, rows.herb)
    p = dummy.predict_proba(test)
    assert found["accuracy"] == accuracy_score(test.herb, dummy.predict(test))
    assert found["log_loss"] == pytest.approx(log_loss(test.herb, p))
    assert found["brier"] == pytest.approx(brier_score_loss(test.herb, p, labels=dummy.classes_, scale_by_half=False))
    assert found["auc"] == 0.5
    assert f"{found['log_loss']:.4f}" in run("evaluate", herbs / "herbs.candide", tmp_path / "test.csv").output


def test_probabilities_worse_than_none_are_remarked(herbs, tmp_path):
    y = RNG.integers(0, 2, 400)
    same = RNG.normal(0.3 * y).round(3)
    rows = pa.table({**{f"copy{i}": same for i in range(30)}, "kind": pa.array(y).cast(pa.string())})
    pq.write_table(rows, tmp_path / "same.parquet")
    facts = ask("evaluate", "--model=naive", tmp_path / "same.parquet", "-t", "kind", "--folds", 4)
    assert facts["metrics"]["log_loss"]["value"] > facts["metrics"]["log_loss"]["baseline"]
    assert "worse than" in facts["notes"][-1]  # after the copies
    assert (
        "note  the log loss"
        in run("evaluate", "--model=naive", tmp_path / "same.parquet", "-t", "kind", "--folds", 4).output
    )
    assert ask("evaluate", herbs / "herbs.candide", herbs / "herbs.csv")["notes"] == []


# Event models.


def test_columns_named_together_are_split_unless_one_has_that_name(tmp_path):
    rows = {"b": RNG.integers(0, 9, 60), "c": RNG.integers(0, 9, 60), "d,e": RNG.integers(0, 9, 60)}
    pq.write_table(pa.table({**rows, "y": ["u", "v"] * 30}), tmp_path / "rows.parquet")
    fit = ("fit", tmp_path / "rows.parquet", "-t", "y", "--model=naive")
    for option, expected in [
        ("b,c=multinomial", {"b": "multinomial", "c": "multinomial", "d,e": "gaussian"}),
        ("b,c=poisson", {"b": "poisson", "c": "poisson", "d,e": "gaussian"}),
        ("d,e=poisson", {"b": "gaussian", "c": "gaussian", "d,e": "poisson"}),
    ]:
        assert {c["column"]: c["event"] for c in ask(*fit, "--event", option)["columns"]} == expected
    ask(*fit, "--event", "b,c=gaussian-full", "-o", tmp_path / "m.candide")
    assert [part.event.is_joint for part in cd.load(tmp_path / "m.candide").fitted_.plan.parts] == [True, False]
    assert str(failure(*fit, "--event", "b,c=poison")).startswith("unknown event 'poison'; did you mean 'poisson'?")
    text = "b,c,y\n1,2,u\n3,1,v\n2,2,u\n4,1,v\n"
    assert run("fit", "--model=naive", "-", "-t", "y", "--event", "b,c=poisson", stdin=text).exit_code == 0


def test_the_help_names_every_event_model():
    for command in ("fit", "evaluate"):
        shown = " ".join(run(command, "--help").output.replace("│", " ").split())
        for name in EVENTS:
            assert name in shown


# Columns.


def test_an_empty_column_is_noted(tmp_path):
    path, output = model_of(tmp_path, SMALL.replace("job,", "job,void,").replace("k,", "k,,").replace("h,", "h,,"))
    assert "note  column 'void' is empty" in output
    [line] = [line for line in output.splitlines() if line.startswith("void")]
    assert line.split()[1:] == ["categorical", "empty", "100.0%", "0.000"]
    shown = run("show", path).output
    assert "0 levels" not in output + shown
    assert "column 'void' is empty: no row has a value, so it is not used" in ask("show", path)["notes"]


def test_strengths_are_those_of_the_priors_of_the_model(herbs, tmp_path):
    plants, y = demo.garden_rows(400, seed=8)
    model = cd.NaiveBayes(
        {"flowers": "poisson"}, param_priors={"gaussian": cd.priors.NormalInverseGamma(0.0, 5.0, 3.0, 4.0)}
    )
    model.fit(plants, y).save(tmp_path / "m.candide")
    facts = ask("show", tmp_path / "m.candide")
    assert facts["importances"] == pytest.approx(
        {score["column"]: score["evidence_per_row"] for score in facts["scores"]}
    )
    assert facts["importances"] != pytest.approx(ask("show", herbs / "herbs.candide")["importances"])
    lines = [line.split() for line in run("show", tmp_path / "m.candide").output.splitlines() if "leaf_mm" in line]
    assert float(lines[0][-1]) == float(lines[1][3])  # in both tables


def test_columns_given_the_class_come_strongest_first_with_mean_and_deviation(herbs):
    facts = ask("show", herbs / "herbs.candide")
    names = [column["column"] for column in facts["columns"]]
    assert names == list(facts["importances"])
    assert names != ["height_cm", "leaf_mm", "flowers", "soil", "scented"]
    leaf = facts["columns"][0]
    rows = pyarrow.csv.read_csv(herbs / "herbs.csv").to_pandas().groupby("herb")["leaf_mm"]
    assert list(leaf["conditionals"])[:2] == ["mean", "sd"]
    df, loc, scale = (np.array(leaf["conditionals"][name]) for name in ("df", "loc", "scale"))
    assert leaf["conditionals"]["mean"] == pytest.approx(loc.tolist())  # of the law that scores
    assert leaf["conditionals"]["sd"] == pytest.approx((scale * np.sqrt(df / (df - 2))).tolist())
    assert leaf["conditionals"]["mean"] == pytest.approx(
        rows.mean().tolist(), rel=1e-3
    )  # which is near to that of the rows
    assert leaf["conditionals"]["sd"] == pytest.approx(rows.std(ddof=0).tolist(), rel=0.03)
    shown = run("show", herbs / "herbs.candide").output
    after = shown.partition("leaf_mm (gaussian, given the class)")[2].splitlines()[2:5]
    assert [line.split()[0] for line in after] == ["mean", "sd", "df"]
    assert [line.split()[0] for line in shown.splitlines() if "given the class" in line] == names


def test_without_counts_mean_and_deviation_are_those_of_the_distribution(tmp_path):
    cd.NaiveBayes().fit({"a": [1.0, 2.0, 4.0, 7.0, 9.0, 9.5]}, [0, 0, 0, 1, 1, 1]).save(tmp_path / "m", detail="score")
    given = ask("show", tmp_path / "m")["columns"][0]["conditionals"]
    assert given["mean"] == given["loc"]
    df, scale = np.array(given["df"]), np.array(given["scale"])
    assert given["sd"] == pytest.approx((scale * np.sqrt(df / (df - 2))).tolist())


# A narrow terminal.


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_table_is_wider_than_the_terminal_and_no_row_takes_two_lines(herbs, width):
    output = run("show", herbs / "herbs.candide", width=width).output
    tables = [table.strip("\n").splitlines() for table in output.split("\n\n") if table.strip("\n")]
    assert max(map(len, output.splitlines())) <= width
    names = ["leaf_mm", "height_cm", "flowers", "soil", "scented"]
    by_title = {title: lines for title, *lines in tables}
    scores = next(lines for title, lines in by_title.items() if title.startswith("Association with"))
    assert {line.split()[0] for line in scores[1:]} == set(names)
    assert len(scores) == 6
    heads = scores[0].split()
    assert ("event" in heads) == (width >= 80)
    assert heads[-1] == "p"
    for name in names:
        assert any(title.startswith(name) and title.endswith(", given the class)") for title in by_title)


def test_a_name_of_two_lines_has_one_row():
    from candide.report import terminal
    from candide.report.records import TableSection

    console = terminal.Console(width=80, record=True, file=io.StringIO())
    terminal.print_section(console, TableSection.from_cells("1 row", ["column", "a\nb"], [["two\nlines", "1"]]))
    assert [line.split() for line in console.export_text().splitlines()[1:]] == [
        ["column", "a", "b"],
        ["two", "lines", "1"],
    ]


def test_scored_rows_keep_the_prediction_where_space_is_short():
    from candide.report import terminal
    from candide.report.records import Column, TableSection

    names = ["id", *(f"kept{i}" for i in range(9)), "prediction", "p_no", "p_yes", "log_density"]
    rows = [["17", *["something"] * 9, "yes", "0.2500", "0.7500", "-12.2500"]]
    columns = [Column(name, "", is_text=name == "prediction", is_required=name in names[10:]) for name in names]
    console = terminal.Console(width=80, record=True, file=io.StringIO())
    terminal.print_section(console, TableSection("1 row", columns, rows))
    title, heads, cells = console.export_text().splitlines()
    assert title == "1 row (6 more columns not shown)"
    assert heads.split() == ["id", "kept0", "kept1", "kept2", *names[10:]]
    assert cells.split() == ["17", *["something"] * 3, *rows[0][10:]]


def test_classes_that_do_not_fit_are_counted(tmp_path):
    names = [f"a class with a long name, number {i}" for i in range(9)]
    rows = {"x": [f"level {i % 17}" for i in range(180)], "y": np.array(names)[np.arange(180) % 9]}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    assert (
        run("fit", "--model=naive", tmp_path / "rows.parquet", "-t", "y", "-o", tmp_path / "m.candide").exit_code == 0
    )
    output = run("show", tmp_path / "m.candide", width=60).output
    assert max(map(len, output.splitlines())) <= 60
    [title] = [line for line in output.splitlines() if line.startswith("x (categorical")]
    shown = output.partition(title)[2].splitlines()[1].split("…")
    assert f"({9 - len(shown) + 1} more columns not shown)" in title


# Files and settings.


@pytest.mark.parametrize("command", ["fit", "predict", "merge"])
def test_a_folder_that_is_not_there_is_named_before_any_work(herbs, tmp_path, command):
    out = tmp_path / "nowhere" / "out.csv"
    args = {
        "fit": (tmp_path / "none.csv", "-t", "herb"),
        "predict": (herbs / "herbs.candide", tmp_path / "none.csv"),
        "merge": (herbs / "herbs.candide",),
    }[command]
    error = failure(command, *args, "-o", out)
    assert str(error) == f"{out}: there is no folder '{out.parent}'; create it first, or write elsewhere"
    assert (error.value, error.remedy) == (str(out), "create it first, or write elsewhere")


def test_the_folder_of_a_link_that_leads_nowhere_is_named(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "nowhere" / "out.csv")
    error = failure("fit", "none.csv", "-t", "herb", "-o", tmp_path / "link.csv")
    assert f"there is no folder '{tmp_path.resolve() / 'nowhere'}'" in str(error)


def test_threads_must_be_a_number(herbs):
    command = [sys.executable, "-m", "candide", "predict", herbs / "herbs.candide", herbs / "herbs.csv"]
    done = subprocess.run(command, env={**os.environ, "CANDIDE_THREADS": "two"}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("candide: CANDIDE_THREADS: 'two' is not a number of threads; set a whole number")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["show", "merge", "diff", "predict", "update", "plot"])
def test_data_in_the_place_of_a_model_are_distinguished_from_a_damaged_model(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(SMALL)
    more = {"merge": ("-o", "m.candide"), "plot": ("-o", "m.png"), "show": ()}.get(command, ("rows.csv",))
    error = failure(command, "rows.csv", *more)
    assert (error.problem, error.value) == ("rows.csv is data, not a model", "rows.csv")
    assert "candide fit rows.csv --target COLUMN" in error.remedy


@pytest.mark.parametrize("command", ["predict", "update", "evaluate"])
def test_data_are_not_blamed_for_a_damaged_model(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(SMALL)
    (tmp_path / "m.candide").write_bytes(b"cut")
    assert "m.candide: not a complete Candide model file" in str(failure(command, "m.candide", "rows.csv"))


def test_notes_are_wrapped_where_the_width_is_known(tmp_path):
    path, _ = model_of(tmp_path, SMALL)
    (tmp_path / "new.csv").write_text("age\n30\n")
    told = [ended(tmp_path, "predict", path, "new.csv", COLUMNS=width) for width in ("40", "")]
    assert max(map(len, told[0].splitlines())) <= 40
    assert told[0].startswith("note: ")
    assert " ".join(told[0].split()) == " ".join(told[1].split())


def ended(folder, *args, **env):
    command = [sys.executable, "-m", "candide", *map(str, args)]
    return subprocess.run(command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True).stderr


def test_several_names_in_one_option(tmp_path):
    path, _ = model_of(tmp_path, SMALL)
    (tmp_path / "rows.csv").write_text(SMALL)
    names = ",".join(SMALL.split("\n")[0].split(",")[:2])
    assert "repeat the option" in failure("predict", path, tmp_path / "rows.csv", "--keep", names).remedy


def test_doctor_has_its_findings_below_one_another():
    lines = run("doctor").output.strip().splitlines()
    width = max(len(line.split()[0]) for line in lines)
    assert {line[width] for line in lines} == {" "}
    assert " " not in {line[width + 1] for line in lines}


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "update"])
def test_a_word_where_a_number_is_expected(tmp_path, command):
    path, _ = model_of(tmp_path, SMALL)
    (tmp_path / "new.csv").write_text(SMALL.replace("35", "forty"))
    rows = ("--row", "3") if command == "explain" else ()
    text = str(failure(command, path, tmp_path / "new.csv", *rows))
    assert "'forty' is not a number; pass --na 'forty' (na=[...]) if it means a missing value" in text
    assert "a model fitted with --event age=categorical" in text
    assert run(command, path, tmp_path / "new.csv", *rows, "--na", "forty").exit_code == 0


def test_a_column_that_is_absent_is_not_taken_for_the_target(tmp_path):
    model, _ = model_of(tmp_path, SMALL.replace("age", "ye"))
    (tmp_path / "new.csv").write_text("job,y,yes\ncook,no,30\n")
    told = run("predict", model, tmp_path / "new.csv").stderr
    assert "did you mean 'yes' for 'ye'?" in told
    (tmp_path / "new.csv").write_text("job,y\ncook,no\n")
    assert "did you mean" not in run("predict", model, tmp_path / "new.csv").stderr
    assert "did you mean" not in str(failure("fit", "--model=naive", tmp_path / "rows.csv", "-t", "y", "--drop", "yy"))
