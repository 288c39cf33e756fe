"""Levels that the database looks up while a file is scored are those that were counted, whatever their spelling."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import candide as cd
from candide.estimators.naive_bayes import NaiveBayes
from candide.fit_source import fit_model
from candide.model.fitted import FittedModel
from candide.store.update import count_like

ODD = ["", " ", "'", "''", "a'b", '"', "\\", "\\'", "%s", "{}", "?", "$1", "--", ";", "É", "é", "e\u0301", "😀"]
ODD += ["\n", "\t", "A", "a", "1", "1.0", "01", "true", "NULL", "nan", "None", "x" * 300, "ß", "SS", "\u200b", "a\0b"]
text = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=("Cs",)), max_size=6)


def streamed(fitted, rows, path):
    """p(class) of rows that are read from a file."""
    pq.write_table(rows, path)
    scored = cd.predict_table(fitted, str(path))
    return np.column_stack([scored[f"p_{label}"].to_numpy() for label in fitted.labels.values])


def same_in_a_file_and_in_memory(known, asked, folder):
    """Every column is a level; the class follows from where a row stands, so that each level tells of it."""
    y = pa.array([f"class {i % 3}" for i in range(known.num_rows)])
    pq.write_table(known.append_column("y", y), folder / "known.parquet")
    events = dict.fromkeys(known.column_names, "categorical")
    fitted = fit_model(str(folder / "known.parquet"), "y", events=events, model="naive").fitted
    found = streamed(fitted, asked, folder / "asked.parquet")
    np.testing.assert_allclose(found, NaiveBayes.from_fitted(fitted).predict_proba(asked), rtol=1e-12)
    return fitted


@pytest.mark.all_cases
@settings(max_examples=60, deadline=None)
@given(st.lists(text, min_size=3, max_size=30, unique=True), st.lists(st.none() | text, min_size=1, max_size=30))
def test_whatever_their_spelling(tmp_path_factory, known, asked):
    known, asked = (
        pa.table({"a": pa.array(known, pa.string())}),
        pa.table({"a": pa.array(asked, pa.string())}),
    )
    same_in_a_file_and_in_memory(known, asked, tmp_path_factory.mktemp("levels"))


@pytest.mark.parametrize("n", [250, 260, 3000])
def test_few_and_many(n, tmp_path):
    """Few are spelt in the query, many are looked up afterwards; a level never seen and a missing one are neither."""
    rng = np.random.default_rng(0)
    names = np.array([f"level {i}" for i in range(n)], object)
    known = pa.table({"many": np.tile(names, 2), "few": names[rng.integers(0, 5, 2 * n)]})
    wider = np.array([*names, "level x", None], object)
    asked = pa.table({"many": wider[rng.integers(0, n + 2, 999)], "few": wider[rng.integers(-7, 5, 999)]})
    same_in_a_file_and_in_memory(known, asked, tmp_path)


def test_numbers_truths_and_text_side_by_side(tmp_path):
    rng = np.random.default_rng(1)
    known = pa.table(
        {
            "number": rng.integers(0, 4, 300),
            "truth": rng.random(300) < 0.4,
            "text": np.array(["1", "2", "x"], object)[rng.integers(0, 3, 300)],
            "digits": np.array(["1", "2"], object)[rng.integers(0, 2, 300)],
        }
    )
    fitted = same_in_a_file_and_in_memory(known, known.slice(0, 100), tmp_path)
    spelt = known.set_column(0, "number", known["number"].cast(pa.string()))
    found = streamed(fitted, spelt, tmp_path / "spelt.parquet")  # a number that is spelt is that number
    np.testing.assert_allclose(found, streamed(fitted, known, tmp_path / "known2.parquet"), rtol=1e-12)


@pytest.mark.parametrize("moment", [dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 13, 30)], ids=["date", "time"])
def test_dates_are_the_same_levels_through_every_entry_point(moment, tmp_path):
    days = [moment + dt.timedelta(i) for i in range(3)]
    column, y = [days[i % 3] for i in range(60)], ["ab"[i % 3 == 0] for i in range(60)]
    table = pa.table({"day": column, "y": y})
    pq.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("day,y\n" + "".join(f"{d},{c}\n" for d, c in zip(column, y, strict=True)))
    entry_points = [str(tmp_path / "rows.parquet"), str(tmp_path / "rows.csv"), table]
    events = {"day": "categorical"}
    models = [fit_model(entry_point, "y", events=events, model="naive").fitted for entry_point in entry_points]
    models.append(NaiveBayes(events).fit({"day": column}, y).fitted_)
    want = NaiveBayes(events).fit({"day": [str(d) for d in column]}, y).predict_proba({"day": [str(d) for d in column]})
    for fitted in models:
        for entry_point in entry_points:
            scored = cd.predict_table(fitted, entry_point)
            found = np.column_stack([scored[f"p_{label}"].to_numpy() for label in "ab"])
            np.testing.assert_allclose(found, want, rtol=1e-12)
            more = fitted.counts + count_like(FittedModel(fitted.counts, target="y"), entry_point)
            assert (more.n_rows, len(more.plan.parts[0].levels[0])) == (120, 3)
