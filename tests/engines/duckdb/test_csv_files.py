"""CSV files as RFC 4180 has them: every row that Python's csv module reads is read, or an error names the line.

A line that is longer or shorter than the others does not cost the header: it is named.
"""

import csv
import gzip
import io
import random
from contextlib import suppress

import pytest

import candide as cd
from candide.engines.base import open_source
from candide.engines.duckdb.csv_files import distinct_names
from candide.engines.reading import ReadOptions
from candide.errors import InputError, SourceError
from candide.fit_source import fit_model

PLAIN = ["'", "a", "yes", "no", "O'Brien", "'yes'", "it's", "' '", "1", "2.5", "x'", "'x", "rock 'n' roll", "", "é"]
QUOTED = ['"', 'say "hi"', "two\nlines", "two\r\nlines", '""', ",", ";", "|", "\t", "\\", '\\"', "'a,b'", "#"]


def written(rng: random.Random) -> tuple[str, str]:
    """A small table as text, and its delimiter; one in four is damaged."""
    delimiter, end = rng.choice(",,,;\t|"), rng.choice(["\n", "\r\n"])
    n_columns, n_rows = rng.randint(2, 5), rng.choice([1, 2, 5, 20, 60])
    values = [
        rng.choice([PLAIN, PLAIN, PLAIN + QUOTED + [delimiter], ["1", "-2", "0.5", ""]]) for _ in range(n_columns)
    ]
    names = [f"c{j}" for j in range(n_columns)]
    names[0] = rng.choice(["c0", "c0", "it's", "'q'", "two\nlines", f"x{delimiter}y"])
    out = io.StringIO()
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    rows = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    rows.writerows([names, *([rng.choice(v) for v in values] for _ in range(n_rows))])
    text, damage = out.getvalue(), rng.random()
    if damage < 0.1:  # a row that is too long or too short
        lines = text.split(end)
        i = rng.randrange(1, len(lines))
        lines[i] = lines[i] + f"{delimiter}more" if damage < 0.05 else lines[i].rpartition(delimiter)[0]
        text = end.join(lines)
    elif damage < 0.2:
        i = rng.randrange(len(text))
        text = text[:i] + '"' + text[i:]
    text = text.rstrip("\r\n") if rng.random() < 0.2 else text + end * rng.choice([0, 0, 0, 1, 3])
    return rng.choice(["", "", "\ufeff"]) + text, delimiter


def expected(text: str, delimiter: str) -> list[list[str]] | None:
    """The records of a text, its header first; None where it is not RFC 4180."""
    try:
        found = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    rows = [row for row in found if row]
    return rows if len(set(map(len, rows))) == 1 else None


def read(path, **how) -> list[tuple]:
    with open_source(str(path), ReadOptions(**how)) as source:
        return [tuple(source.columns), *source.fetch_rows(f"SELECT * FROM {source.view}")]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", ["found out", "said", "two files"])
def test_rows_are_those_of_the_csv_module_or_an_error_names_the_line(how, seed, tmp_path):
    rng = random.Random(f"{how} {seed}")
    for _ in range(18):
        text, delimiter = written(rng)
        (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
        rows = expected(text, delimiter)
        options = {"delimiter": delimiter, "header": True} if how != "found out" else {}
        if how == "two files":
            (tmp_path / "b.csv").write_text(text, encoding="utf-8", newline="")
        path = tmp_path if how == "two files" else tmp_path / "a.csv"
        if rows is None:
            with suppress(SourceError):  # a stray quote may leave what can be read
                read(path, **options)
            continue
        found = read(path, **options)
        values = [tuple(value or None for value in row) for row in rows[1:]]
        assert found[1:] == values * (2 if how == "two files" else 1), text


def table(rows: list[tuple[str, str]]) -> str:
    return "name,x,y\n" + "".join(f"{name},{i % 7},{label}\n" for i, (name, label) in enumerate(rows))


def test_an_apostrophe_is_a_letter(tmp_path):
    """At either end of a field, where it was taken for a quotation mark."""
    path = tmp_path / "names.csv"
    path.write_text(table([("'x'", "'yes'"), ("x", "yes"), ("'t Hooft", "'yes'"), ("the Joneses'", "no")] * 10))
    model = cd.fit(path, target="y", model="naive", events={"name": "categorical"})
    assert model.classes_.tolist() == ["'yes'", "no", "yes"]
    assert model.counts_.class_weight.tolist() == [20, 10, 10]
    [part] = [part for part in model.counts_.plan.parts if part.columns == ("name",)]
    assert set(part.levels[0].values) == {"'x'", "x", "'t Hooft", "the Joneses'"}


def test_an_apostrophe_far_below_changes_nothing(tmp_path):
    path = tmp_path / "long.csv"
    rows = [("a", "yes"), ("b", "no")] * 5000
    path.write_text(table([*rows, ("'c", "no"), *rows, ("d'", "no")]))
    assert len(read(path)) == 20_003


def test_another_quote_is_an_option(tmp_path):
    path = tmp_path / "single.csv"
    path.write_text("name,y\n'Smith, J',a\n'O''Brien',b\n")
    assert read(path, quote="'")[1:] == [("Smith, J", "a"), ("O'Brien", "b")]
    path.write_text('name,y\n"5"" disk,a\n"b,b\n')
    assert read(path, quote="")[1:] == [('"5"" disk', "a"), ('"b', "b")]


@pytest.mark.parametrize("quote", ["ab", ",", "\n"])
def test_a_quote_that_cannot_be_is_an_error(quote, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(InputError) as error:
        read(tmp_path / "a.csv", quote=quote, delimiter=",")
    assert error.value.value == quote


def test_quotes_escaped_by_backslashes_are_still_found(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('name,y\n"say \\"hi\\", he said","a"\n"C:\\\\dir","b"\n')
    assert read(path)[1:] == [('say "hi", he said', "a"), ("C:\\dir", "b")]


def test_a_header_that_cannot_be_read_is_named(tmp_path):
    """It used to cost all rows."""
    path = tmp_path / "a.csv"
    path.write_text('"c"0","c1"\n"yes","b"\n"no","c"\n')
    with pytest.raises(SourceError) as error:
        read(path)
    assert error.value.line == 1


def test_a_name_of_two_lines_after_the_mark_of_utf_8(tmp_path):
    path = tmp_path / "sheet.csv"
    path.write_text('\ufeff"two\nlines";c1\r\n"a";b\r\nc;d\r\n', newline="")
    assert read(path) == [("two\nlines", "c1"), ("a", "b"), ("c", "d")]


@pytest.mark.parametrize("extra", ["c0,c1,c2", "c0"])
def test_a_header_of_another_length_is_named(extra, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"{extra}\na,b\na,c\nb,c\n")
    with pytest.raises(SourceError) as error:
        read(path, header=True)
    assert error.value.line == 1
    if "," in extra:  # else it may be a title
        with pytest.raises(SourceError):
            read(path)


def test_a_row_of_another_length_in_one_of_several_files_is_named(tmp_path):
    """Each file was guessed anew, and its rows became names of new columns."""
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,y\nyes,no,more\n")
    with pytest.raises(SourceError) as error:
        read(tmp_path)
    assert error.value.line == 2


ROWS = "".join(f"{i % 7}.5,{'uv'[i % 3 > 0]},{'pq'[i % 2]}\n" for i in range(100))
HEADER = "size,kind,y\n"


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("line", ["1.5", "1.5,u", "1.5,u,p,9", "1.5,u,p,9,9,9"])
@pytest.mark.parametrize("after", ["", ROWS], ids=["last", "within"])
@pytest.mark.parametrize("before", ["", "a title\n\n", "sales in June, in Munich\n"], ids=["", "title", "comma"])
def test_the_line_is_named(before, line, after, packed, tmp_path):
    path = tmp_path / ("rows.csv.gz" if packed else "rows.csv")
    text = f"{before}{HEADER}{ROWS}{line}\n{after}".encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(SourceError, match="fields where 3 are expected") as error:
        fit_model(path, "y", model="naive")
    assert error.value.line == before.count("\n") + 102
    assert error.value.value == min(4, line.count(",") + 1)  # it is read no further


@pytest.mark.parametrize("name", ["", "*.csv"], ids=["folder", "glob"])
@pytest.mark.parametrize("line", ["1.5,u", '1.5,"u,p'])
def test_the_file_of_a_folder_is_named(name, line, tmp_path):
    (tmp_path / "may.csv").write_text(HEADER + ROWS)
    (tmp_path / "june.csv").write_text(f"{HEADER}{ROWS}{line}\n")
    with pytest.raises(SourceError) as error:
        fit_model(str(tmp_path / name), "y", model="naive")
    assert (error.value.source, error.value.line) == (str(tmp_path / "june.csv"), 102)


@pytest.mark.parametrize("before", ["", "a title\n\n", "sales in June, in Munich\n"])
def test_without_it_all_is_read(before, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"{before}{HEADER}{ROWS}")
    assert fit_model(path, "y", model="naive").fitted.counts.plan.columns == ("size", "kind")


def test_fewer_names_than_fields_are_named(tmp_path):
    path = tmp_path / "rows.csv"  # as R writes a table with the names of its rows
    path.write_text(HEADER + "".join(f"r{i},{i % 7}.5,{'uv'[i % 3 > 0]},{'pq'[i % 2]}\n" for i in range(50)))
    with pytest.raises(SourceError, match="3 names where the rows have 4 fields") as error:
        fit_model(path, "y", model="naive")
    assert (error.value.line, error.value.value) == (1, 3)


@pytest.mark.parametrize("line", ["5,6", "5", "5,6,7,8"])
def test_in_a_file_of_few_lines(line, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"a,b,y\n1,2,x\n3,4,z\n{line}\n")
    with pytest.raises(SourceError) as error:
        fit_model(path, "y", model="naive")
    assert error.value.line == 4


def test_names_are_distinct_to_sql():
    assert distinct_names(["size", "", "Size"]) == ["size", "column1", "Size_1"]


def test_lines_of_any_length_are_an_error(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\nc,d,e\nf,g,h,i\nj,k,l,m,n\n")
    with pytest.raises(SourceError):
        fit_model(path, "a", model="naive")
