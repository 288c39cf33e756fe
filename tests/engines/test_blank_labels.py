"""A label that is empty or blank text is missing through every entry point that reads a table."""

import pyarrow as pa
import pytest
from tests.engines.test_counts import in_duckdb
from tests.engines.test_entry_points_fuzz import ENTRY_POINTS

import candide as cd
from candide.data.notes import DataWarning

ROWS = pa.table(
    {
        "size": [float(i % 11) for i in range(120)],
        "kind": [*"abcd"] * 30,
        "y": (["no", "yes", "no", "", "yes", "  "] * 20),
    }
)
NOTE = "40 rows have no value of 'y' and were left out"


def check(data, model):
    with pytest.warns(DataWarning, match=NOTE):
        fitted = cd.fit(data, "y", model=model)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.counts_.n_rows == 80
    with pytest.warns(DataWarning, match=NOTE):
        assert cd.evaluate(fitted, data).n == 80


@pytest.mark.parametrize("model", ["naive", "bayes"])
@pytest.mark.parametrize("name", [name for name in ENTRY_POINTS if name != "query"])
def test_blank_labels_are_left_out_with_a_note(name, model, tmp_path):
    check(ENTRY_POINTS[name](ROWS, tmp_path), model)


def test_blank_labels_of_a_dictionary_are_left_out():
    check(ROWS.set_column(2, "y", ROWS["y"].combine_chunks().dictionary_encode()), "naive")


def test_blank_labels_of_postgres_are_left_out(postgres):
    check(postgres.make(ROWS, "blank_labels"), "naive")


def test_blank_labels_of_pasted_counts_are_left_out(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(in_duckdb(ROWS, cd.make_counting_query(ROWS, "y", table="rows", dialect="duckdb"))))
    learned = cd.fit_from_counts(path)
    assert learned.fitted.labels.values == ("no", "yes")
    assert NOTE in map(str, learned.notes)


def test_a_table_of_blank_labels_has_no_labels():
    with pytest.raises(cd.errors.InputError, match="has a label"):
        cd.fit(ROWS.set_column(2, "y", pa.array([""] * 120)), "y", model="naive")


def test_estimators_keep_empty_text_as_a_class():
    model = cd.NaiveBayes().fit(ROWS.drop(["y"]), ROWS["y"].to_pylist())
    assert model.classes_.tolist() == ["", "  ", "no", "yes"]
    assert cd.evaluate(model, ROWS, target="y").n == 120
