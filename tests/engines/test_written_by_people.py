"""Numbers, prices, percentages and dates as people write them are numbers and dates, told as such and remembered."""

import datetime as dt
import gzip
import warnings

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import candide as cd
from candide import store
from candide.data.notes import DataWarning
from candide.engines.reading import ReadOptions
from candide.errors import InputError, SourceError
from candide.fit_source import fit_model
from candide.store.update import count_like
from candide.validation.cross_validation import cross_validate
from candide.validation.evaluation import evaluate

N = 60


def written(tmp_path, columns, name="rows.csv", delimiter=","):
    """A CSV whose fields are all in quotes."""
    columns = {**columns, "y": [("a", "b")[i % 2] for i in range(len(next(iter(columns.values()))))]}
    lines = [delimiter.join(f'"{v}"' for v in row) for row in zip(*columns.values(), strict=True)]
    path = tmp_path / name
    path.write_text("\n".join([delimiter.join(columns), *lines]) + "\n", encoding="utf-8")
    return str(path)


def mean(learned):
    """The mean of the first column."""
    tally = learned.fitted.counts.tallies[0]
    return float((tally.n[:, 0] * tally.mean[:, 0]).sum() / tally.n[:, 0].sum())


def days(*date):
    return (dt.date(*date) - dt.date(1970, 1, 1)).days


VALUES = {  # what is written, what it means, and the kind of the column
    "thousands": (["1,234.56", "378.5", "12,345,678"], [1234.56, 378.5, 12345678.0], "number"),
    "german": (["1.234,56", "378,5", "12.345.678"], [1234.56, 378.5, 12345678.0], "number"),
    "swiss": (["1'234.56", "1\u2019378.5", "12"], [1234.56, 1378.5, 12.0], "number"),
    "french": (["1 234,56", "1\u00a0378,5", "12\u202f345"], [1234.56, 1378.5, 12345.0], "number"),
    "euros": (["€ 378.54", "€1,200.00", "-€ 5"], [378.54, 1200.0, -5.0], "number"),
    "euros after": (["378,54 €", "1.200,00€", "5 EUR".replace("EUR", "€")], [378.54, 1200.0, 5.0], "number"),
    "dollars": (["$5", "$6.50", "7"], [5.0, 6.5, 7.0], "number"),
    "code": (["CHF 5", "CHF 6.50", "CHF 1'007"], [5.0, 6.5, 1007.0], "number"),
    "percent": (["14.3%", "2 %", "-0.5%"], [0.143, 0.02, -0.005], "number"),
    "signs": (["+1,234.5", "-2", " 3.25 "], [1234.5, -2.0, 3.25], "number"),
    "minus": (["−1,234.5", "2", "3.25"], [-1234.5, 2.0, 3.25], "number"),  # noqa: RUF001
    "words for missing": (["1.234,5", "n/a", "2,5"], [1234.5, np.nan, 2.5], "number"),
    "german dates": (["13.10.2024", "1.2.2023"], [days(2024, 10, 13), days(2023, 2, 1)], "date"),
    "british dates": (["13/10/2024", "01/02/2023"], [days(2024, 10, 13), days(2023, 2, 1)], "date"),
    "american dates": (["10/13/2024", "01/02/2023"], [days(2024, 10, 13), days(2023, 1, 2)], "date"),
    "with time": (["13.10.2024 12:00", "1.2.2023 6:00"], [days(2024, 10, 13) + 0.5, days(2023, 2, 1) + 0.25], "date"),
    "noon": (["10/13/2024 12:00 PM", "1/2/2023 6:00 AM"], [days(2024, 10, 13) + 0.5, days(2023, 1, 2) + 0.25], "date"),
    "months by name": (["13 Oct 2024", "1 Feb 2023"], [days(2024, 10, 13), days(2023, 2, 1)], "date"),
    "two digits": (["13.10.24", "01.02.23"], [days(2024, 10, 13), days(2023, 2, 1)], "date"),
}  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
@pytest.mark.parametrize("packed", [True, False], ids=["file", "object"])
def test_formats_are_read_reported_and_stored(case, packed, tmp_path):
    texts, want, kind = VALUES[case]
    path = written(tmp_path, {"x": texts * N})
    learned = fit_model(path, "y", model="naive")
    assert {c.name: c.kind for c in learned.columns} == {"x": kind}
    assert mean(learned) == pytest.approx(np.nanmean(want), rel=1e-12)
    [told] = [remark for remark in learned.notes if remark.code.startswith("read-as")]
    assert told.column == "x"
    assert "--event x=categorical" in told.remedy
    fitted = store.loads(store.dumps(learned.fitted)) if packed else learned.fitted
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is read as before is not told again
        for text, value in zip(texts, want, strict=True):
            line = written(tmp_path, {"x": [text]}, "line.csv")
            tally = count_like(fitted, line).tallies[0]
            assert tally.n.sum() == (value == value)
            assert tally.mean.max(initial=0, where=tally.n > 0) == pytest.approx(max(value, 0) if value == value else 0)
            assert cd.predict_table(fitted, line).num_rows == 1
        assert cd.update_model(fitted, path).n_rows == evaluate(fitted, path).n == len(texts) * N
    assert (
        cross_validate(path, "y", folds=3, model="naive").fit_result.fitted.text_formats == learned.fitted.text_formats
    )


def test_the_order_of_a_date_is_remembered(tmp_path):
    texts = ["13/10/2024", "03/04/2024", "05/06/2024"] * N
    fitted = fit_model(written(tmp_path, {"x": texts}), "y", model="naive").fitted
    line = written(tmp_path, {"x": ["03/04/2024"]}, "line.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert count_like(fitted, line).tallies[0].mean.max() == days(2024, 4, 3)


def test_thousands_are_remembered(tmp_path):
    fitted = fit_model(written(tmp_path, {"x": ["1.234,5", "2.345", "3,25"] * N}), "y", model="naive").fitted
    line = written(tmp_path, {"x": ["1.234"]}, "line.csv")
    assert count_like(fitted, line).tallies[0].mean.max() == 1234
    other = written(tmp_path, {"x": ["12.5"]}, "other.csv")  # cannot be spelled as the model's
    with pytest.warns(DataWarning, match="written otherwise"):
        assert count_like(fitted, other).tallies[0].mean.max() == 12.5


OPEN = {  # a column that leaves it open, another that tells or does not, an option; what the first value means
    "point alone": (["1.234", "2.345"], [], {}, 1.234),
    "point, others have commas": (["1.234", "2.345"], ["1,5", "2,25"], {}, 1234.0),
    "point, others have points": (["1.234", "2.345"], ["1.5", "2.25"], {}, 1.234),
    "point, said": (["1.234", "2.345"], [], {"decimal": ","}, 1234.0),
    "comma alone": (["1,234", "2,345"], [], {}, 1234.0),
    "comma, others have commas": (["1,234", "2,345"], ["1,5", "2,25"], {}, 1.234),
    "comma, said": (["1,234", "2,345"], [], {"decimal": ","}, 1.234),
    "slashes alone": (["03/04/2024", "05/06/2024"], [], {}, days(2024, 3, 4)),
    "slashes, others tell": (["03/04/2024", "05/06/2024"], ["13/04/2024", "01/01/2024"], {}, days(2024, 4, 3)),
    "slashes, decimal commas": (["03/04/2024", "05/06/2024"], ["1,5", "2,25"], {}, days(2024, 4, 3)),
    "slashes, said": (["03/04/2024", "05/06/2024"], [], {"day_first": True}, days(2024, 4, 3)),
    "dashes, said": (["03-04-2024", "05-06-2024"], [], {"day_first": False}, days(2024, 3, 4)),
}


@pytest.mark.parametrize("case", OPEN)
def test_what_is_ambiguous_has_a_rule_and_is_reported(case, tmp_path):
    texts, others, option, want = OPEN[case]
    columns = {"x": [texts[0], texts[1]] * N, **({"z": others * N} if others else {})}
    learned = fit_model(written(tmp_path, columns), "y", reading=ReadOptions(**option), model="naive")
    assert learned.fitted.counts.tallies[0].mean[0, 0] == want
    [told] = [remark for remark in learned.notes if remark.code == "read-as-open"]
    assert told.column == "x"
    assert "--decimal" in told.remedy or "day-first" in told.remedy


def test_what_appears_far_down_is_an_error_and_not_read_wrongly(tmp_path):
    head = ["1,250", "2,300"] * 15_000
    with pytest.raises(InputError) as error:
        fit_model(written(tmp_path, {"x": [*head, "12,5"]}), "y", model="naive")
    assert (error.value.column, error.value.value) == ("x", "12,5")
    with pytest.raises(InputError) as error:
        fit_model(written(tmp_path, {"x": [*["03/04/2024"] * 30_000, "13/04/2024"]}), "y", model="naive")
    assert (error.value.column, error.value.value) == ("x", "13/04/2024")


@pytest.mark.parametrize(
    "texts",
    [
        ["€ 5", "$ 6", "€ 7"],  # of two currencies
        ["14%", "0.14", "15%"],  # of hundredths and of ones
        ["13/13/2024", "01/02/2024"],
        ["13/10/2024", "10/13/2024"],  # in two orders
        ["1.2.3", "1.2.10"],
        ["192.168.0.1", "10.0.0.1"],
        ["5 kg", "6 kg"],
    ],
)
def test_what_is_neither_stays_text(texts, tmp_path):
    learned = fit_model(written(tmp_path, {"x": texts * N}), "y", model="naive")
    assert [c.kind for c in learned.columns] == ["category"]
    assert learned.fitted.text_formats == {}


def test_codes_that_begin_with_zero_are_categories(tmp_path):
    zips = ["01234", "98101", "00501", "60601"] * N
    path = written(tmp_path, {"zip": zips})
    learned = fit_model(path, "y", model="naive")
    assert learned.fitted.counts.plan.parts[0].levels[0].values == ("00501", "01234", "60601", "98101")
    [told] = [remark for remark in learned.notes if remark.code == "leading-zeros"]
    assert told.column == "zip"
    assert "--event zip=gaussian" in told.remedy
    asked = fit_model(path, "y", events={"zip": "gaussian"}, model="naive")
    assert mean(asked) == pytest.approx(np.mean([int(z) for z in zips]))
    line = written(tmp_path, {"zip": ["00501"]}, "line.csv")
    assert count_like(learned.fitted, line).tallies[0].counts.sum() == 1
    assert count_like(asked.fitted, line).tallies[0].mean.max() == 501


def test_asked_for_as_categories_they_stay_as_they_are_written(tmp_path):
    path = written(tmp_path, {"x": ["€ 5", "€ 6"] * N})
    fitted = fit_model(path, "y", events={"x": "categorical"}, model="naive").fitted
    assert fitted.counts.plan.parts[0].levels[0].values == ("€ 5", "€ 6")
    assert fitted.text_formats == {}


def test_many_equal_notes_are_reported_at_once(tmp_path):
    columns = {f"x{i}": ["1,5", "2,25", "3"] * N for i in range(30)}
    learned = fit_model(written(tmp_path, columns), "y", model="naive")
    assert len([remark for remark in learned.notes if remark.code == "read-as"]) == 1


def test_a_merged_model_knows_the_spellings_of_both(tmp_path):
    a = fit_model(written(tmp_path, {"x": ["1,5", "2,25"] * N}), "y", model="naive").fitted
    b = fit_model(written(tmp_path, {"x": ["1.5", "2.25"] * N}), "y", model="naive").fitted
    assert (a + b).text_formats == (b + a).text_formats == a.text_formats


def test_text_of_a_frame_or_a_typed_file_is_read_as_the_model_knows_it(tmp_path):
    texts = {"x": ["1.234,5 €", "2,25", "n/a"] * N, "d": ["13/04/2024", "03/04/2024", "05/06/2024"] * N}
    path = written(tmp_path, texts)
    fitted = fit_model(path, "y", model="naive").fitted
    frame = pa.table({**texts, "y": ["a", "b"] * (3 * N // 2)})
    pq.write_table(frame, tmp_path / "rows.parquet")
    want = cd.predict_table(fitted, path, keep=["x", "d"])
    for source in (frame, frame.to_pandas(), str(tmp_path / "rows.parquet"), duckdb.from_arrow(frame)):
        assert cd.predict_table(fitted, source, keep=["x", "d"]).to_pydict() == want.to_pydict()
        assert count_like(fitted, source).tallies[0].mean.tolist() == fitted.counts.tallies[0].mean.tolist()
    with pytest.raises(InputError) as error:
        cd.predict_table(fitted, pa.table({"x": ["much"], "d": ["13/04/2024"]}))
    assert (error.value.column, error.value.value) == ("x", "much")


@pytest.mark.parametrize("packed", [True, False])
def test_what_meant_missing_means_it_again(packed, tmp_path):
    texts = {"x": ["1.5", "-999", "2.5"] * N, "k": ["u", "?", "v"] * N}
    path, na = written(tmp_path, texts), ReadOptions(na=("-999", "?"))
    fitted = fit_model(path, "y", reading=na, model="naive").fitted
    fitted = store.loads(store.dumps(fitted)) if packed else fitted
    assert cd.predict_table(fitted, path).equals(cd.predict_table(fitted, path, **vars(na)))
    assert evaluate(fitted, path).log_loss == evaluate(fitted, path, reading=na).log_loss
    assert cd.update_model(fitted, path).fitted.counts.tallies[0].n.sum() == 4 * N
    other = fit_model(path, "y", reading=ReadOptions(na="u"), model="naive").fitted
    assert (fitted + other).na == ("-999", "?", "u")


ISO = ["2024-10-13", "2023-02-01"] * (N // 2)


def test_dates_as_sql_writes_them_are_read_by_a_model_of_others(tmp_path):
    own = written(tmp_path, {"x": ["13.10.2024", "01.02.2023"] * (N // 2)})
    other = written(tmp_path, {"x": ISO}, "iso.csv")
    fitted = fit_model(own, "y", model="naive").fitted
    with pytest.warns(DataWarning) as told:
        assert cd.predict_table(fitted, other).equals(cd.predict_table(fitted, own))
    remarks = [one.message.note for one in told if isinstance(one.message, DataWarning)]
    assert [one.code for one in remarks if one.column == "x"] == ["read-as"]
    with pytest.warns(DataWarning):
        assert mean(cd.update_model(fitted, other)) == pytest.approx(mean(fit_model(own, "y", model="naive")))


@pytest.mark.parametrize("form", ["{}", "{}T00:00:00.000", "{} 00:00"])
def test_json_lines_spell_dates_as_a_csv_does(form, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"x": "{form.format(ISO[i])}", "y": "{"ab"[i % 2]}"}}\n' for i in range(N)))
    learned = fit_model(str(path), "y", model="naive")
    assert learned.columns[0].kind == "date"
    assert mean(learned) == (days(2024, 10, 13) + days(2023, 2, 1)) / 2


@pytest.mark.parametrize("texts", [ISO, ["13.10.2024", "01.02.2023"] * (N // 2), ["1,5", "2,5"] * (N // 2)])
def test_text_in_memory_is_read_as_a_table_is(texts, tmp_path):
    model = cd.fit(written(tmp_path, {"x": texts}), target="y", model="naive")
    frame = {"x": texts[:2]}
    assert model.predict_proba(frame)[0, 0] == pytest.approx(model.predict_table(frame)["p_a"][0].as_py())
    with pytest.raises(InputError) as caught:
        model.predict_proba({"x": ["soon", texts[0]]})
    assert (caught.value.column, caught.value.value) == ("x", "soon")


@pytest.mark.parametrize("packed", ["csv", "parquet", "frame", "relation", "json"])
def test_a_number_that_means_missing_does_so_however_it_is_written(packed, tmp_path):
    x, job = [-999.0, 1.25, 2.5, 9.0] * N, ["none", "cook", "smith", "cook"] * N
    table = pa.table(
        {"x": x, "whole": [9999, *(7 * i * i % 1000 for i in range(4 * N - 1))], "job": job, "y": ["a", "b"] * 2 * N}
    )
    paths = {kind: str(tmp_path / f"rows.{kind}") for kind in ("csv", "parquet", "json")}
    own = duckdb.connect()
    own.register("rows", table)
    for path in paths.values():
        own.sql("FROM rows").write_csv(path) if path.endswith("csv") else own.sql(f"COPY rows TO '{path}'")
    data = {**paths, "frame": table.to_pandas(), "relation": own.sql("FROM rows")}[packed]
    reading = ReadOptions(na=("-999", "9999", "none"))
    fitted = fit_model(data, "y", reading=reading, model="naive").fitted
    there = {name: tally.n[:, j].sum() for part, tally in zip(fitted.plan.parts, fitted.counts.tallies, strict=True)
             for j, name in enumerate(part.columns)}  # fmt: skip
    assert there == {"x": 3 * N, "whole": 4 * N - 1, "job": 3 * N}
    assert fitted.na == reading.na_values
    kept = cd.predict_table(fitted, data, keep=["x", "job"])
    assert [float(v) for v in kept["x"].to_pylist()] == x
    assert kept["job"].to_pylist() == job
    absent = {"x": [None], "whole": [9999], "job": [None]}
    assert kept["p_a"][0].as_py() == pytest.approx(cd.predict_table(fitted, absent)["p_a"][0].as_py())
    here = cd.NaiveBayes.from_fitted(fitted).predict_proba(table.drop_columns("y"))
    assert here[:, 0] == pytest.approx(kept["p_a"].to_numpy())


@pytest.mark.parametrize("numbers", [2, 90])
def test_a_stray_word_is_named_and_its_remedy_works(numbers, tmp_path):
    texts = ["-", "n/a", "seven teen", *(str(12 + i % numbers) for i in range(4 * N))]
    path = written(tmp_path, {"x": texts})
    [told] = [one for one in fit_model(path, "y", model="naive").notes if one.code == "numbers-as-text"]
    assert "'seven teen'" in told.text
    assert "n/a" not in told.text
    assert "--na 'seven teen' (na=[...])" in told.remedy
    mended = fit_model(
        path,
        "y",
        events={"x": "gaussian"} if numbers == 2 else "auto",
        reading=ReadOptions(na="seven teen"),
        model="naive",
    )
    assert mended.fitted.counts.tallies[0].n.sum() == 4 * N


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("title", ["Sales in June", "sep=;", "\ufeffSales in June\n\nof all shops"])
@pytest.mark.parametrize("own", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_lines_above_the_header_are_reported_however_they_end(title, own, end, packed, tmp_path):
    rows = ["size;job;y", *(f"{i % 7}.5;{('cook', 'smith')[i % 2]};{'ab'[i % 2]}" for i in range(N)), ""]
    path, pack = (tmp_path / "rows.csv.gz", gzip.compress) if packed else (tmp_path / "rows.csv", bytes)
    text = f"{title}\n".replace("\n", own).encode() + end.join(rows).encode()
    path.write_bytes(pack(text))
    learned = fit_model(str(path), "y", model="naive")
    assert (learned.fitted.counts.n_rows, [c.name for c in learned.columns]) == (N, ["size", "job"])
    [told] = [one for one in learned.notes if one.code == "lines-above"]
    assert title.strip("\ufeff").split("\n")[0] in told.text
    path.write_bytes(pack(text + f"1.5;cook{end}".encode()))
    with pytest.raises(SourceError) as caught:
        fit_model(str(path), "y", model="naive")
    assert caught.value.line == title.count("\n") + N + 3


def test_empty_lines_above_the_header_give_no_note(tmp_path):
    path = written(tmp_path, {"x": [i % 9 / 2 for i in range(N)]})
    (tmp_path / "rows.csv").write_text("\n\n" + (tmp_path / "rows.csv").read_text())
    assert "lines-above" not in {one.code for one in fit_model(path, "y", model="naive").notes}
