"""Sheets, SQLite, DuckDB, ARFF: the same rows, whatever program they come from. What is not read says what it is."""

import datetime as dt
import gzip
import sqlite3
import zipfile
from xml.sax.saxutils import escape

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import candide as cd
from candide import store
from candide.engines.reading import ReadOptions
from candide.errors import InputError, MissingLibraryError, SourceError
from candide.fit_source import fit_model
from candide.store.update import count_like
from candide.validation.evaluation import evaluate

N = 90
rng = np.random.default_rng(3)
CLASS = rng.integers(0, 2, N)
ROWS = {
    "size": [None if i % 9 == 0 else round(float(v), 3) for i, v in enumerate(rng.normal(2 + CLASS, 1, N))],
    "rooms": [int(v) for v in rng.integers(1, 9, N)],
    "zip": [f"{v:05d}" for v in rng.choice([501, 94103, 10115], N)],
    "street": [("Elm, \"old\" St", "O'Hara", "ünïcode")[v] for v in rng.integers(0, 3, N)],
    "sold": [dt.date(2024, 1, 1) + dt.timedelta(int(v)) for v in rng.integers(0, 300, N)],
    "y": [("no", "yes")[v] for v in CLASS],
}  # fmt: skip


def xlsx(path, sheets):
    """A workbook by hand: numbers, text and dates."""

    def cell(value):
        if value is None:
            return "<c/>"
        if isinstance(value, bool):
            return f'<c t="b"><v>{int(value)}</v></c>'
        if isinstance(value, dt.date):
            return f'<c s="1"><v>{(value - dt.date(1899, 12, 30)).days}</v></c>'
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
        return f"<c><v>{value!r}</v></c>"

    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts = "http://schemas.openxmlformats.org/package/2006/relationships"
    names = "".join(f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"/>' for i, n in enumerate(sheets, 1))
    links = "".join(
        f'<Relationship Id="r{i}" Type="{rel}/worksheet" Target="worksheets/s{i}.xml"/>'
        for i, _ in enumerate(sheets, 1)
    )
    styles = '<cellXfs><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs>'
    with zipfile.ZipFile(path, "w") as out:
        root = f'<Relationship Id="w" Type="{rel}/officeDocument" Target="xl/workbook.xml"/>'
        out.writestr("_rels/.rels", f'<Relationships xmlns="{parts}">{root}</Relationships>')
        out.writestr("xl/workbook.xml", f'<workbook {main} xmlns:r="{rel}"><sheets>{names}</sheets></workbook>')
        link = f'<Relationship Id="s" Type="{rel}/styles" Target="styles.xml"/>'
        out.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{parts}">{links}{link}</Relationships>')
        out.writestr("xl/styles.xml", f"<styleSheet {main}>{styles}</styleSheet>")
        for i, rows in enumerate(sheets.values(), 1):
            body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
            out.writestr(f"xl/worksheets/s{i}.xml", f"<worksheet {main}><sheetData>{body}</sheetData></worksheet>")
    return path


def table_of(rows):
    return [list(rows), *map(list, zip(*rows.values(), strict=True))]


def sqlite(path, rows, table="homes"):
    con = sqlite3.connect(path)
    kinds = [{"size": "REAL", "rooms": "INTEGER"}.get(name, "TEXT") for name in rows]
    con.execute(f"CREATE TABLE {table} ({', '.join(f'{n} {k}' for n, k in zip(rows, kinds, strict=True))})")
    values = [[str(v) if isinstance(v, dt.date) else v for v in row] for row in table_of(rows)[1:]]
    con.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows))})", values)
    con.execute("CREATE TABLE other (x)")
    con.commit()
    con.close()
    return path


def database(path, rows):
    homes = pa.table(rows)
    con = duckdb.connect(str(path))
    con.register("given", homes)
    con.execute("CREATE TABLE homes AS SELECT * FROM given; CREATE TABLE other (x INT)")
    con.close()
    return path


def arff(path, rows):
    def field(value):
        if value is None:
            return "?"
        return str(value) if isinstance(value, float | int) else "'" + str(value).replace("'", "\\'") + "'"

    def nominal(name):
        return "{" + ", ".join(map(field, sorted(set(rows[name])))) + "}"

    kinds = {"size": "REAL", "rooms": "integer", "zip": nominal("zip"), "street": "string", "sold": "DATE 'yyyy-MM-dd'"}
    lines = ["% a comment", "@RELATION homes", "", *(f"@attribute {n} {kinds.get(n) or nominal(n)}" for n in rows)]
    lines += ["@DATA", "% another", *(", ".join(map(field, row)) for row in table_of(rows)[1:])]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def sources(tmp_path):
    arff(tmp_path / "homes.arff", ROWS)
    (tmp_path / "homes.arff.gz").write_bytes(gzip.compress((tmp_path / "homes.arff").read_bytes()))
    pq.write_table(pa.table(ROWS), tmp_path / "odd.csv")
    return {
        "xlsx": xlsx(tmp_path / "homes.xlsx", {"homes": table_of(ROWS), "notes": []}),
        "sheet": f"{xlsx(tmp_path / 'two.xlsx', {'x': [['a'], [1]], 'homes': table_of(ROWS)})}::homes",
        "sqlite": f"{sqlite(tmp_path / 'lite.db', ROWS)}::homes",
        "duckdb": f"{database(tmp_path / 'duck.db', ROWS)}::homes",
        "arff": tmp_path / "homes.arff",
        "arff.gz": tmp_path / "homes.arff.gz",
        "parquet by another name": tmp_path / "odd.csv",
    }


ENTRY_POINTS = ["xlsx", "sheet", "sqlite", "duckdb", "arff", "arff.gz", "parquet by another name"]


@pytest.mark.parametrize("kind", ENTRY_POINTS)
def test_the_same_rows_from_every_program(kind, tmp_path):
    data = sources(tmp_path)[kind]
    plain = pa.table(ROWS)
    here, there = (
        fit_model(data, "y", events={"street": "categorical"}, model="naive"),
        fit_model(plain, "y", events={"street": "categorical"}, model="naive"),
    )
    assert {c.name: c.kind for c in here.columns} == {c.name: c.kind for c in there.columns}
    assert here.fitted.counts.plan == there.fitted.counts.plan
    for mine, theirs in zip(here.fitted.counts.tallies, there.fitted.counts.tallies, strict=True):
        for name, state in mine.arrays().items():
            np.testing.assert_allclose(state, theirs.arrays()[name], rtol=1e-12)
    a, b = (cd.predict_table(here.fitted, one).to_pydict() for one in (data, plain))
    assert a["prediction"] == b["prediction"]
    np.testing.assert_allclose(a["p_yes"], b["p_yes"], rtol=1e-12)
    assert evaluate(there.fitted, data).accuracy == evaluate(there.fitted, plain).accuracy
    assert count_like(there.fitted, data).class_weight.tolist() == there.fitted.counts.class_weight.tolist()


def test_a_table_must_be_named_where_there_are_several(tmp_path):
    for path in (sqlite(tmp_path / "lite.db", ROWS), database(tmp_path / "duck.db", ROWS)):
        with pytest.raises(SourceError) as error:
            fit_model(path, "y", model="naive")
        assert "homes" in error.value.problem
        assert f"{path}::" in error.value.remedy
        with pytest.raises(SourceError) as error:
            fit_model(f"{path}::nosuch", "y", model="naive")
        assert error.value.value == "nosuch"
        assert fit_model(path, "y", reading=ReadOptions(table="homes"), model="naive").fitted.counts.n_rows == N
    book = xlsx(tmp_path / "two.xlsx", {"a": [["x"], [1]], "b": [["x"], [1]]})
    with pytest.raises(SourceError, match=r"its sheets are \['a', 'b'\]"):
        fit_model(book, "y", model="naive")
    (tmp_path / "rows.csv").write_text("x,y\n1,a\n2,b\n")
    with pytest.raises(SourceError) as error:
        fit_model(f"{tmp_path / 'rows.csv'}::sheet", "y", model="naive")
    assert error.value.value == "sheet"


def test_sheets_with_holes_and_names_twice(tmp_path):
    rows = [[], ["size", None, "size", "on", "y"], [1.5, "u", 7, True, "a"], [], ["n/a", "v", 8.25, False, "b"]]
    learned = fit_model(xlsx(tmp_path / "a.xlsx", {"s": rows}), "y", model="naive")
    assert [(c.name, c.kind) for c in learned.columns] == [
        ("size", "number"), ("column1", "category"), ("size_1", "number"), ("on", "category"),
    ]  # fmt: skip
    assert learned.fitted.counts.n_rows == 2
    assert [one.column for one in learned.notes if one.code == "column-renamed"] == ["size_1"]
    with pytest.raises(SourceError, match="empty sheet"):
        fit_model(xlsx(tmp_path / "b.xlsx", {"s": []}), "y", model="naive")


def test_without_the_library_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(MissingLibraryError) as error:
        fit_model(xlsx(tmp_path / "a.xlsx", {"s": [["x", "y"], [1, "a"]]}), "y", model="naive")
    assert "candide[excel]" in error.value.remedy


def test_sparse_arff(tmp_path):
    path = tmp_path / "a.arff"
    rows = "{1 5, 2 b}\n{0 2.5}\n{}\n{0 1, 1 ?}\n"
    path.write_text("@attribute x real\n@attribute n numeric\n@attribute y {a, b}\n@data\n" + rows)
    census = fit_model(path, "y", model="naive").fitted.counts
    assert census.class_weight.tolist() == [3, 1]
    np.testing.assert_allclose(census.tallies[0].mean, [[3.5 / 3, 0], [0, 5]])
    assert census.tallies[0].n.tolist() == [[3, 2], [1, 1]]


@pytest.mark.parametrize(
    ("text", "line", "attributes"),
    [
        ("@attribute x real\n@attribute y {a,b}\n@data\n1,a\n2\n", 5, {"value": 1}),
        ("@attribute x real\n@attribute y {a,b}\n@data\n1,a\nmany,b\n", 5, {"column": "x", "value": "many"}),
        ("@attribute x relational\n@data\n", 1, {"value": "relational"}),
        ("@attribute x real\n@attribute y {a,b}\n@data\n{7 1}\n", 4, {"value": 7}),
    ],
)
def test_what_is_wrong_in_arff_is_named(text, line, attributes, tmp_path):
    (tmp_path / "a.arff").write_text(text)
    with pytest.raises(SourceError) as error:
        fit_model(tmp_path / "a.arff", "y", model="naive")
    assert error.value.line == line
    assert {name: getattr(error.value, name) for name in attributes} == attributes


@pytest.mark.parametrize(
    ("path", "what", "remedy"),
    [
        ("https://example.org/a.csv", "on the web", "download"),
        ("s3://bucket/a.parquet", "object store", "aws s3 cp"),
        ("gs://bucket/a.parquet", "object store", "gcloud"),
        ("mysql://host/db", "database", "Arrow"),
        ("file:///data/a.csv", "address of a file", "/data/a.csv"),
    ],
)
def test_addresses_are_recognised(path, what, remedy):
    with pytest.raises(SourceError, match=what) as error:
        fit_model(path, "y", model="naive")
    assert remedy in error.value.remedy


def test_archives_and_strange_files_are_named_in_the_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.writestr("rows.csv", "x,y\n1,a\n")
    store.save(fit_model(pa.table(ROWS), "y", model="naive").fitted, tmp_path / "m.candide")
    strange = {
        "a.zip": ((tmp_path / "a.zip").read_bytes(), "a zip archive that holds rows.csv", "unzip a.zip"),
        "b.csv": ((tmp_path / "a.zip").read_bytes(), "zip archive", "unzip"),
        "c.zip": ((tmp_path / "a.zip").read_bytes()[:40], "damaged", "again"),
        "a.csv": (gzip.compress(b"x,y\n1,a\n"), "gzip", ".gz"),
        "a.tar.gz": (gzip.compress(b"x"), "tar archive", "tar -xf"),
        "a.pkl": (b"\x80\x04", "pickle", "Parquet"),
        "a.dta": (b"s", "Stata", "read_stata"),
        "a.pdf": (b"%PDF-1.7", "PDF", "CSV"),
        "a.db": (b"no database at all", "not a database", "name"),
        "m.txt": ((tmp_path / "m.candide").read_bytes(), "a model", "data"),
    }
    for name, (content, what, remedy) in strange.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError, match=what) as error:
            fit_model(tmp_path / name, "y", model="naive")
        assert remedy in error.value.remedy, name
    with pytest.raises(SourceError, match="zip archive") as error:
        fit_model(f"{tmp_path / 'a.zip'}::rows", "y", model="naive")
    assert "unzip a.zip" in error.value.remedy


def test_of_workbooks_one_is_read_at_a_time(tmp_path):
    (tmp_path / "books").mkdir()
    for name in "ab":
        xlsx(tmp_path / "books" / f"{name}.xlsx", {"s": [["x", "y"], [1, "a"]]})
    for path in (tmp_path / "books", tmp_path / "books" / "*.xlsx"):
        with pytest.raises(SourceError, match="xlsx") as error:
            fit_model(path, "y", model="naive")
        assert "one" in error.value.remedy


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\xff\xfe", "is empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b'x,y\n1,a\n"2,b\n3,a\n', "not closed"),
        (b"x,y\r\n1,a\n2,b\r\n3,a\n", "end in"),
    ],
)
def test_what_is_wrong_with_a_csv_is_described(content, what, tmp_path):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=what) as error:
        fit_model(tmp_path / "a.csv", "y", model="naive")
    assert "Error" not in str(error.value)
