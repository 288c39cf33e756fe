"""Numbers and dates as people write them in a CSV are what they are in a file with types."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import candide as cd
from candide.engines.duckdb.number_formats import choose_formats, date_examples, format_options
from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.fit_source import fit_model
from candide.model.fitted import FittedModel
from candide.store.update import count_like
from candide.validation.cross_validation import cross_validate
from candide.validation.evaluation import evaluate

N = 120


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    days = [dt.date(2024, 1, 1) + dt.timedelta(int(d)) for d in rng.integers(0, 200, N) + 90 * y]
    return {
        "size": np.round(rng.normal(5 + y, 1, N), 2).tolist(),
        "day": days,
        "at": [dt.datetime.combine(d, dt.time(int(h))) for d, h in zip(days, rng.integers(0, 24, N), strict=True)],
        "kind": np.array(["NA", "b", "-"])[rng.integers(0, 3, N)].tolist(),  # words for missing are levels among words
        "y": np.array(["no", "yes"])[y].tolist(),
    }


def write(path, rows, delimiter=",", comma=False, missing=()):
    """As a spreadsheet would; ``missing`` are words that stand in the first rows of size, one after another."""
    sizes = [*missing, *(str(v) for v in rows["size"][len(missing) :])]
    sizes = [s.replace(".", ",") for s in sizes] if comma else sizes
    columns = [sizes, *(map(str, rows[name]) for name in ("day", "at", "kind", "y"))]
    lines = [delimiter.join(line) for line in zip(*columns, strict=True)]
    path.write_text("\n".join([delimiter.join(rows), *lines]) + "\n")
    return str(path)


def typed(rows, n_missing=0):
    return pa.table({**rows, "size": pa.array([None] * n_missing + rows["size"][n_missing:], pa.float64())})


def same(a, b):
    assert a.plan == b.plan
    for mine, theirs in zip(a.tallies, b.tallies, strict=True):
        for name, state in mine.arrays().items():
            np.testing.assert_allclose(state, theirs.arrays()[name], rtol=1e-12)


@pytest.mark.parametrize("comma", [False, True], ids=["point", "comma"])
@pytest.mark.parametrize("missing", [(), ("NA", "n/a", "-", "null", "?", " None")], ids=["whole", "missing"])
def test_counted_scored_and_updated_the_same(rows, tmp_path, comma, missing):
    path = write(tmp_path / "rows.csv", rows, ";" if comma else ",", comma, missing)
    table = typed(rows, len(missing))
    here, there = fit_model(path, "y", model="naive"), fit_model(table, "y", model="naive")
    same(here.fitted.counts, there.fitted.counts)
    assert {c.name: c.kind for c in here.columns} == {"size": "number", "day": "date", "at": "date", "kind": "category"}
    assert any("decimal commas" in note for note in here.note_texts) == comma
    assert any("taken as missing" in note for note in here.note_texts) == bool(missing)
    assert cd.predict_table(here.fitted, path).equals(cd.predict_table(here.fitted, table))
    assert evaluate(here.fitted, path).log_loss == pytest.approx(evaluate(here.fitted, table).log_loss, rel=1e-12)
    total = [cross_validate(source, "y", folds=4, model="naive").total.log_loss for source in (path, table)]
    assert total[0] == pytest.approx(total[1], rel=1e-12)
    fitted = FittedModel(here.fitted.counts, target="y")
    same(count_like(fitted, path), count_like(fitted, table))


def test_a_comma_before_three_digits_may_part_thousands(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("price;y\n" + "1,250;a\n2,300;b\n3,125;a\n" * 9)
    learned = fit_model(str(path), "y", events={"price": "gaussian"}, model="naive")
    assert learned.fitted.counts.tallies[0].mean.tolist() == [[2187.5], [2300.0]]
    assert [remark.code for remark in learned.notes] == ["read-as-open"]


def test_a_column_of_mostly_numbers_is_pointed_out(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "age,n,y\n" + "".join(f"{20 + i},{i % 5},{'ab'[i % 2]}\n" for i in range(40)) + "old,1,a\nyoung,2,b\n"
    )
    notes = fit_model(str(path), "y", model="naive").note_texts
    assert notes[0].startswith("column 'age' is read as text because of 'old', 'young'; to read it as numbers, fix")


def test_what_is_not_a_number_further_down_is_named(rows, tmp_path):
    path = write(tmp_path / "rows.csv", rows, ";", comma=True, missing=("NA",))
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    many = [lines[0], *lines[1:] * 250, "much;2024-01-01;2024-01-01 00:00:00;b;no"]
    (tmp_path / "rows.csv").write_text("\n".join(many) + "\n")
    with pytest.raises(InputError, match="is not a number") as error:
        fit_model(path, "y", model="naive")
    assert (error.value.column, error.value.value) == ("size", "much")


@pytest.mark.parametrize("missing", [[], ["NA"]], ids=["plain", "missing"])
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2", "3"], "number"),
        (["1.5", "2", "3"], "number"),
        (["2024-01-01", "2024-02-29"], "date"),
        (["2024-01-01 10:00", "2024-02-29 11:30"], "date"),
    ],
)
def test_the_error_names_column_value_and_what_was_expected(values, kind, missing, tmp_path):
    path, values = tmp_path / "rows.csv", values + missing
    head = "".join(f"{values[i % len(values)]},{'ab'[i % 2]}\n" for i in range(30_000))
    path.write_text(f"x,y\n{head}soon,a\n")
    with pytest.raises(InputError, match=f"is not a {kind}") as error:
        fit_model(str(path), "y", model="naive")
    assert (error.value.column, error.value.value) == ("x", "soon")
    assert "--event x=categorical" in error.value.remedy
    assert "--na 'soon'" in error.value.remedy


def test_a_column_may_decide_the_format_of_another():
    prices, sizes = (format_options(None, pa.array(values)) for values in (["1.234", "2.345"], ["1,5", "2"]))
    assert {key: (how.decimal, how.thousands) for key, how in prices.formats.items()} == {
        ".": (".", ""),
        ",": (",", "."),
    }
    chosen = choose_formats({"price": prices, "size": sizes}, ReadOptions())
    assert {name: key for name, (_, key) in chosen.items()} == {"price": ",", "size": ","}


@pytest.mark.parametrize(
    ("values", "examples"),
    [
        (["2024-01-05", "06.01.2024", "2024-01-07"], ["06.01.2024", "2024-01-05"]),
        (["13/10/2024", "10/13/2024"], ["13/10/2024", "10/13/2024"]),
        (["a", "b"], []),
    ],
)
def test_examples_of_dates_in_several_formats(values, examples):
    assert date_examples(pa.array(values)) == examples
