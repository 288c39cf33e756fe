"""Checking a table: every defect is planted, found under its code and in its column; clean tables have none."""

import datetime as dt

import numpy as np
import pytest
from click.testing import CliRunner
from tests.tables import table

import candide as cd
from candide.cli import cli
from candide.data.notes import DataWarning
from candide.data.table import Table
from candide.errors import InputError
from candide.fit_source import fit_model

N = 400
RNG = np.random.default_rng(7)
Y = RNG.choice(["no", "yes"], N, p=[0.7, 0.3])
CLEAN = {
    "age": RNG.normal(40, 12, N).round(1),
    "visits": RNG.poisson(2.0, N).astype(float),
    "job": RNG.choice(["cook", "smith", "clerk"], N),
    "score": RNG.normal(Y == "yes", 1.0),
}


def found(**columns):
    """What is found in a clean table with some more columns: codes with the columns they are about."""
    rows = {**CLEAN, "y": Y} | {name: np.asarray(column) for name, column in columns.items()}
    return [(one.code, one.column) for one in cd.check_data(rows, "y").findings]


def test_nothing_is_found_in_a_clean_table():
    assert found() == []


SHUFFLED = RNG.permutation(N).astype(float)
PLANTED = {
    "a category made from the class": ("leak", "x", np.where(Y == "yes", "cured", "ill")),
    "made from it but for a row": ("leak", "x", np.where((Y == "yes") & (np.arange(N) > 3), "cured", "ill")),
    "a number above a threshold": ("leak", "x", RNG.uniform(1, 2, N) + 5 * (Y == "yes")),
    "an amount in one class only": ("leak", "x", RNG.lognormal(0, 2, N) * (Y == "yes")),
    "classes in bands": ("leak", "x", RNG.uniform(0, 1, N) + 2 * (Y == "yes") + 4 * RNG.integers(0, 3, N)),
    "one value": ("constant", "x", ["kg"] * N),
    "one number": ("constant", "x", np.full(N, 0.1)),
    "a copy": ("copy", "x", CLEAN["age"]),
    "a copy in another unit": ("copy", "x", -1.8 * CLEAN["age"] + 32),
    "a copy in other words": ("copy", "x", np.array(["W-" + job.upper() for job in CLEAN["job"]])),
    "-999": ("sentinel", "x", np.where(SHUFFLED < 8, -999.0, CLEAN["age"][::-1])),
    "9999": ("sentinel", "x", np.where(SHUFFLED < 8, 9999.0, RNG.normal(50, 9, N))),
    "-1 among amounts": ("sentinel", "x", np.where(SHUFFLED < 40, -1.0, RNG.integers(0, 300, N))),
    "0 among heights": ("sentinel", "x", np.where(SHUFFLED < 8, 0.0, RNG.normal(170, 9, N))),
    "empty text": ("sentinel", "x", np.where(SHUFFLED < 8, "", CLEAN["job"][::-1])),
    "a question mark": ("sentinel", "x", np.where(SHUFFLED < 8, "?", CLEAN["job"][::-1])),
    "ids in any order": ("identifier", "x", 10_000 + SHUFFLED),
    "case": ("level-spelling", "x", RNG.choice(["Red", "red", "blue"], N)),
    "spaces": ("level-spelling", "x", RNG.choice(["dark red", " dark  red", "blue"], N)),
    "few rows a level": ("many-levels", "x", [f"user {i}" for i in RNG.integers(0, 300, N)]),
    "missing in one class": (
        "missing-by-class",
        "x",
        [None if k and i % 2 else v for i, (v, k) in enumerate(zip(CLEAN["age"][::-1], Y == "yes", strict=True))],
    ),
    "there in one class": (
        "missing-by-class",
        "x",
        [v if k else None for v, k in zip(CLEAN["job"][::-1], Y == "yes", strict=True)],
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_defect_is_found(what):
    code, column, values = PLANTED[what]
    assert (code, column) in found(**{column: values})


@pytest.mark.parametrize(
    "values",
    [
        RNG.poisson(0.3, N).astype(float),  # nought is what most rows have
        np.where(SHUFFLED < 300, 0.0, RNG.normal(1900, 200, N)),  # and here too, far from the others
        RNG.integers(0, 10**7, N).astype(float),  # all different by chance
        RNG.normal(CLEAN["age"], 1.0),  # much like a column, and not the same
        np.where(SHUFFLED < 1, 9.0, 0.0),  # a rare flag
        1.7e12 + RNG.normal(0, 1, N).round(2),  # instants within a few milliseconds
        1e15 + RNG.integers(0, 2, N),  # which differ in their last digit
        RNG.choice([None, 1.5, 2.5, 3.5], N),  # missing in all classes
        np.linspace(900, 999, N).round(0),  # up to 999, in no leap
    ],
)
def test_what_is_not_a_defect_is_left_alone(values):
    assert found(x=values) == []


def test_two_rare_flags_that_agree_are_not_copies():
    assert found(a=[0] * (N - 1) + [1], b=[0] * (N - 1) + [1]) == []


def classes_found(y):
    return [one.code for one in cd.check_data({**CLEAN, "y": y}, "y").findings]


def test_classes():
    assert classes_found(np.where(np.arange(N) < 4, "maybe", Y)) == ["few-rows"]
    assert classes_found(np.where(np.arange(N) % 20 == 0, "yes", "no")) == ["imbalance"]
    assert "sentinel" in classes_found(np.where(SHUFFLED < 90, "?", Y))
    assert "sentinel" not in classes_found(np.where(Y == "yes", "+", "-"))
    assert "label-spelling" in classes_found(np.where(SHUFFLED < 90, "YES ", Y))


@pytest.mark.parametrize("door", [dict, Table.from_data])
def test_rows_come_from_all_over_a_long_table(door):
    x = RNG.normal(0, 1, 60_000)
    rows = {"x": x, "late": np.where(np.arange(60_000) < 30_000, x, x[::-1]), "y": np.tile(["a", "b"], 30_000)}
    assert cd.check_data(door(rows), "y").findings == []
    rows["late"] = x
    assert [(one.code, one.column) for one in cd.check_data(door(rows), "y").findings] == [("copy", "late")]


def test_a_fit_reports_the_same_by_warnings():
    rows = {**CLEAN, "y": Y, "outcome": np.where(Y == "yes", "cured", "ill")}
    with pytest.warns(DataWarning) as told:
        cd.fit(rows, "y", model="naive")
    assert [(one.message.note.code, one.message.note.column) for one in told] == [("leak", "outcome")]


def test_a_fit_is_short_where_much_is_found():
    rows = {**CLEAN, "y": Y} | {f"k{i}": [i] * N for i in range(9)}
    remarks = fit_model(rows, "y", model="naive").notes
    assert [one.code for one in remarks] == ["constant"] * 3
    assert "6 more" in remarks[-1].remedy
    assert len(cd.check_data(rows, "y").findings) == 9


def test_weighted_rows_are_found_the_same():
    rows = {**CLEAN, "y": Y, "w": np.full(N, 0.01), "x": np.where(Y == "yes", "cured", "ill")}
    assert [one.code for one in cd.check_data(rows, "y", weight="w").findings] == ["leak"]


def test_the_command_says_by_its_status_whether_something_was_found(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n" + "".join(f"{v},{y}\n" for v, y in zip(CLEAN["age"], Y, strict=True)))
    assert CliRunner().invoke(cli, ["check", str(path), "-t", "y"]).exit_code == 0
    path.write_text("a,b,y\n" + "".join(f"{v},kg,{y}\n" for v, y in zip(CLEAN["age"], Y, strict=True)))
    shown = CliRunner().invoke(cli, ["check", str(path), "-t", "y"])
    assert shown.exit_code == 3
    assert "'b'" in shown.output
    assert CliRunner().invoke(cli, ["check", str(path), "-t", "y", "--drop", "b"]).exit_code == 0


# On real tables: what is known of them, and not a word more.
KNOWN = {
    "adult_train": [("sentinel", "capital_gain"), ("copy", "education_num")],
    "bank": [("sentinel", "pdays")],
    "breast_cancer_wisconsin": [],
    "car_evaluation": [],
    "german_credit": [],
    "glass": [("few-rows", None)],
    "heart_cleveland": [],
    "ionosphere": [("constant", "a02")],
    "iris": [],
    "letter": [("repeated-rows", None)],
    "mushroom": [("constant", "veil-type")],
    "nursery": [("few-rows", None)],
    "pima_diabetes": [("sentinel", "plas"), ("sentinel", "pres"), ("sentinel", "mass")],
    "segment": [("repeated-rows", None), ("constant", "region-pixel-count")],
    "sonar": [],
    "tic_tac_toe": [],
}


@pytest.mark.parametrize("name", KNOWN)
def test_real_tables(name):
    assert [(one.code, one.column) for one in cd.check_data(table(f"{name}.parquet"), "class").findings] == KNOWN[name]


def test_a_column_of_whole_numbers_is_reported_once():
    """Though both its counts and its rows give the class away."""
    rows = {"size": [float(i % 3) for i in range(90)], "y": ["a" if i % 3 == 0 else "b" for i in range(90)]}
    assert [one.code for one in fit_model(rows, "y", model="naive").notes] == ["leak"]


def test_an_infinity_among_few_numbers_names_its_column():
    rows = {"b": [1.5, 2.5] * 30, "size": [float(i % 4) for i in range(59)] + [float("inf")], "y": ["a", "b", "b"] * 20}
    with pytest.raises(InputError, match="column 'size': infinity") as caught:
        fit_model(rows, "y", model="naive")
    assert caught.value.row is None


# What files that were joined or typed by hand have


def _checked(tmp_path, lines):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return cd.check_data(path, "y").findings


def test_a_header_among_the_rows_is_named(tmp_path):
    rows = [f"{i % 37},{'cook' if i % 3 else 'smith'},{'ab'[i % 2]}" for i in range(120)]
    found = _checked(tmp_path, ["age,job,y", *rows[:70], "age,job,y", *rows[70:]])
    assert found[0].code == "repeated-header"
    assert set(found[0].columns) == {"age", "job", "y"}
    assert "line 72 repeats the header and is left out" in found[0].text
    assert "repeated-header" not in {one.code for one in _checked(tmp_path, ["age,job,y", *rows])}
    own = [f"{i % 37},{'job' if i % 3 else 'smith'},{'ab'[i % 2]}" for i in range(120)]  # one name that is a level, too
    assert "repeated-header" not in {one.code for one in _checked(tmp_path, ["age,job,y", *own])}


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "dos"])
def test_a_header_among_the_rows_hides_nothing(end, tmp_path):
    """Rows that repeat the header are left out of all other checks, of the fit and of what is scored."""
    rows = [f"{i % 37}.5,{'cook' if i % 3 else 'smith'},{'uv'[i % 2]},{'ab'[i % 2]}" for i in range(120)]
    header, plain, joined = "age,job,leak,y", tmp_path / "plain.csv", tmp_path / "joined.csv"
    plain.write_text(end.join([header, *rows]), newline="")
    joined.write_text(end.join([header, *rows[:70], header, *rows[70:], header]), newline="")
    want, found = cd.check_data(plain, "y"), cd.check_data(joined, "y")
    assert [one.code for one in want.findings] == ["leak"]
    assert [one.code for one in found.findings] == ["repeated-header", "leak"]
    assert "lines 72, 123 repeat" in found.findings[0].text
    assert found.counts.n_rows == want.counts.n_rows == 120
    learned = fit_model(joined, "y", model="naive")
    assert [one.code for one in learned.notes] == ["repeated-header", "leak"]
    assert learned.fitted.counts.plan == fit_model(plain, "y", model="naive").fitted.counts.plan
    with pytest.warns(DataWarning, match="repeat the header"):
        assert cd.predict_table(learned.fitted, joined).num_rows == 120
    with pytest.warns(DataWarning, match="repeat the header"):
        assert cd.evaluate(learned.fitted, joined).n == 120


def test_a_header_among_the_rows_of_a_frame_hides_nothing():
    rows = {"age": [f"{i % 37}.5" for i in range(120)], "leak": ["uv"[i % 2] for i in range(120)], "y": ["a", "b"] * 60}
    joined = {name: [*values[:70], name, *values[70:]] for name, values in rows.items()}
    found = cd.check_data(joined, "y")
    assert [one.code for one in found.findings] == ["repeated-header", "leak"]
    assert "row 70 repeats the names of the columns and is left out" in found.findings[0].text
    assert found.counts.plan == cd.check_data(rows, "y").counts.plan


@pytest.mark.parametrize(
    "form",
    [("%Y-%m-%d", "%d.%m.%Y"), ("%d/%m/%Y", "%m/%d/%Y"), ("%d %b %Y", "%Y/%m/%d")],
    ids=["iso", "order", "words"],
)
def test_dates_in_several_formats_are_named(form, tmp_path):
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(120)]
    rows = [f"{day.strftime(form[i % 2])},{i % 7}.5,{'ab'[i % 2]}" for i, day in enumerate(days)]
    [found] = [one for one in _checked(tmp_path, ["day,x,y", *rows]) if one.code == "mixed-dates"]
    assert found.column == "day"
    same = [f"{day.strftime(form[0])},{i % 7}.5,{'ab'[i % 2]}" for i, day in enumerate(days)]
    assert not [one for one in _checked(tmp_path, ["day,x,y", *same]) if one.code == "mixed-dates"]


def test_two_words_for_missing_in_one_column_are_named(tmp_path):
    jobs = ["cook", "smith", "?", "unknown", "baker", "N/A"]
    rows = [f"{jobs[i % 6]},{i % 5}.5,{'ab'[i % 2]}" for i in range(120)]
    [found] = [one for one in _checked(tmp_path, ["job,x,y", *rows]) if one.code == "missing-words"]
    assert found.column == "job"
    assert all(word in found.text for word in ("?", "unknown", "N/A"))
    none = [f"{('cook', 'none', 'unknown')[i % 3]},{i % 5}.5,{'ab'[i % 2]}" for i in range(120)]  # which may be levels
    assert not [one for one in _checked(tmp_path, ["job,x,y", *none]) if one.code == "missing-words"]


def test_two_words_for_missing_among_numbers_are_named(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [f"{('?', 'n/a')[i % 2] if i % 5 == 0 else i % 40},{'ab'[i % 2]}" for i in range(120)]
    path.write_text("\n".join(["n,y", *rows]) + "\n")
    [told] = [one for one in cd.check_data(path, "y").notes if one.code == "taken-as-missing"]
    assert "'?', 'n/a'" in told.text


def test_a_leak_is_found_under_labels_that_are_written_in_several_ways(tmp_path):
    rng = np.random.default_rng(0)
    labels = [("yes", "Yes", "YES ", "no", "No", " NO")[i] for i in rng.integers(0, 6, 400)]
    yes = [label.strip().lower() == "yes" for label in labels]
    level = ["paid" if one else "open" for one in yes]
    number = [100 + rng.random() if one else 5 * rng.random() for one in yes]
    rows = [f"{a},{b:.4f},{rng.normal():.3f},{c}" for a, b, c in zip(level, number, labels, strict=True)]
    found = _checked(tmp_path, ["state,paid,noise,y", *rows])
    assert {one.column for one in found if one.code == "leak"} == {"state", "paid"}
    assert "label-spelling" in {one.code for one in found}


@pytest.mark.parametrize("times", [2, 5])
def test_copies_of_rows_are_not_a_leak(times):
    """A copy of a row has its class, and its values that no other row has."""
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=200), "z": rng.normal(size=200), "code": [f"c{i // 2 * 7 % 97}" for i in range(200)]}
    rows |= {"place": rng.permutation([f"p{i}" for i in range(100)] * 2), "y": rng.integers(0, 2, 200)}
    copied = np.repeat(np.arange(200), times)
    found = cd.check_data({name: np.asarray(column)[copied] for name, column in rows.items()}, "y")
    assert [one.column for one in found.findings if one.code == "leak"] == []
    assert [one.code for one in found.findings].count("repeated-rows") == 1


@pytest.mark.parametrize("other", ["yes", "Yes"])
def test_missing_by_class_unites_spellings_of_a_label(other):
    """As the check for leaks does."""
    y = [("yes" if i % 7 else other) if i % 2 else "no" for i in range(400)]
    late = [i % 5 + 0.5 if i % 4 < 3 else None for i in range(400)]
    found = cd.check_data({"x": [float(i % 13) for i in range(400)], "late": late, "y": y}, "y").findings
    [text] = [one.text for one in found if one.code == "missing-by-class"]
    assert text == "column 'late' is missing in rows of class 'yes' only (100 rows)"


def test_a_rare_class_is_no_reason_to_rebalance():
    """See docs/how-to/class-imbalance.md."""
    rows = {"x": [float(i % 13) for i in range(400)], "y": ["a" if i % 20 else "b" for i in range(400)]}
    [found] = [one for one in cd.check_data(rows, "y").findings if one.code == "imbalance"]
    assert "uniform" not in str(found)
    assert "no rebalancing" in found.remedy


def test_an_identifier_is_noted_where_some_rows_are_repeated():
    """As it is by fit."""
    rng = np.random.default_rng(0)
    n = 30_000
    rows = {"code": rng.permutation(n) + 1, "x": rng.normal(size=n), "y": np.array(["a", "b"])[rng.integers(2, size=n)]}
    again = rng.choice(n, n * 3 // 100, replace=False)
    rows = {name: np.concatenate([values, values[again]]) for name, values in rows.items()}
    found = {one.column: one.text for one in cd.check_data(rows, "y").findings if one.code == "identifier"}
    assert found == {"code": "column 'code' looks like an identifier: 30,000 whole numbers, one for each distinct row"}
    other = {**rows, "code": np.concatenate([rows["code"][:n], rng.integers(1, n, len(again))])}  # of other rows
    assert not [one for one in cd.check_data(other, "y").findings if one.code == "identifier"]
