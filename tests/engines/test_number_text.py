"""What text is a number: the same through every entry point."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import candide as cd
from candide.data.text_formats import parse_plain_number
from candide.errors import InputError

NUMBERS = {"1_000": 1000.0, "5\u00a0": 5.0, "\u00a05": 5.0, "5\u202f": 5.0, " 7\t": 7.0, "+2.5": 2.5, "1e3": 1000.0}
NUMBERS |= {"\t\u00a05": 5.0, "5\u202f\t": 5.0, "\u202f\u00a0 5\f": 5.0, "\v5": 5.0}
WORDS = ["\u0661\u0662", "\uff15", "1__0", "_1", "0x10", "5\u3000", "five", "1 000"]


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"])[rng.integers(0, 2, 400)]
    return cd.fit({"x": rng.normal(4, 3, 400) + 2 * (y == "a"), "y": y}, target="y", model="naive")


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_one_everywhere(text, model, tmp_path):
    want = model.predict_proba({"x": [NUMBERS[text]]})
    assert parse_plain_number(text) == NUMBERS[text]
    for rows in ({"x": [text]}, {"x": np.array([text], object)}, pa.table({"x": [text]}), {"x": np.array([text])}):
        np.testing.assert_array_equal(model.predict_proba(rows), want)
    path = tmp_path / "rows.csv"
    path.write_text(f'x\n"{text}"\n', encoding="utf-8")
    for source in (path, {"x": [text]}):
        table = model.predict_table(source)
        found = [table.column(i)[0].as_py() for i in (1, 2)]
        np.testing.assert_allclose(found, want[0], rtol=1e-12)
    np.testing.assert_allclose(_exported(model, text), want[0], rtol=1e-9)
    np.testing.assert_allclose(_in_sql(model, text), want[0], rtol=1e-9)


@pytest.mark.parametrize("text", WORDS)
def test_a_word_is_none_anywhere(text, model, tmp_path):
    with pytest.raises(ValueError, match=r"number|float"):
        parse_plain_number(text)
    for rows in ({"x": [text]}, {"x": np.array([text])}):
        with pytest.raises(InputError) as error:
            model.predict(rows)
        assert error.value.value == text
    path = tmp_path / "rows.csv"
    path.write_text(f'x\n"{text}"\n', encoding="utf-8")
    if text != "1 000":  # which alone in its column has parted thousands, with a note
        with pytest.raises(InputError):
            model.predict_table(path)
    with pytest.raises(ValueError, match="is not a number"):
        _exported(model, text)


def test_a_number_is_one_in_postgres(model, postgres):
    rows = postgres.make(pa.table({"id": range(len(NUMBERS)), "x": [*NUMBERS]}), "number_text")
    query = cd.export_model(model.fitted_, "sql", dialect="postgres", table="number_text", keep=["id"])
    found = {row[0]: row[-2:] for row in postgres.run(query)}
    want = model.predict_proba({"x": [*NUMBERS.values()]})
    np.testing.assert_allclose([found[i] for i in range(len(NUMBERS))], want, rtol=1e-9)
    table = model.predict_table(rows)
    np.testing.assert_allclose(np.column_stack([table["p_a"], table["p_b"]]), want, rtol=1e-12)


def test_columns_of_such_numbers_are_decided_in_the_same_way(tmp_path):
    """Blanks at the end do not make numbers words; underscores do, for they part the letters of codes."""
    y = ["a", "b", "a"] * 20
    for texts, event in (
        (["5\u00a0", "6.5\u00a0", "7"], "gaussian"),
        (["2024_01", "2024_02", "2023_12"], "categorical"),
    ):
        path = tmp_path / "rows.csv"
        path.write_text("x,y\n" + "".join(f"{x},{label}\n" for x, label in zip(texts * 20, y, strict=True)))
        for made in (
            cd.fit(path, target="y", model="naive"),
            cd.fit({"x": texts * 20, "y": y}, target="y", model="naive"),
            cd.NaiveBayes().fit({"x": texts * 20}, y),
        ):
            assert [part.event.name for part in made.counts_.plan.parts] == [event]


def _exported(model, text):
    held: dict = {"__name__": "exported"}
    exec(compile(cd.export_model(model.fitted_, "python"), "model.py", "exec"), held)
    return held["score"]({"x": text})["probabilities"]


def _in_sql(model, text):
    query = cd.export_model(model.fitted_, "sql", dialect="duckdb", table="rows")
    with duckdb.connect() as con:
        con.execute("CREATE TABLE rows AS SELECT CAST($1 AS VARCHAR) AS x", [text])
        return con.execute(query).fetchall()[0][-2:]
