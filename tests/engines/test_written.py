"""Results as programs write them into files: read alike, or refused in words that say what to do."""

import csv
import gzip
import io
import re

import pytest
from tests.cli.typed import run
from tests.engines.test_counts import EVENTS, asked, in_duckdb, table
from tests.engines.test_engines import same

import candide as cd
from candide.engines.sql.offline_query import FIGURES
from candide.errors import InputError, SourceError


@pytest.fixture(scope="module")
def plain() -> list[list[str]]:
    rows = table()
    lines = [*csv.reader(in_duckdb(rows, asked(rows, "duckdb", *EVENTS["weighted"])))]
    held = [[cell.lower() for cell in lines[0]], *lines[1:]]
    return [[cell.replace("\n", " ") for cell in line] for line in held]  # some programs cannot write these


def text_of(lines, separator=",", quoted=True) -> str:
    if not quoted:
        return "".join(separator.join(line) + "\n" for line in lines)
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(lines)
    return out.getvalue()


def nulls(lines, null: str):
    """Empty cells, but for the names of labels and levels, which may be empty text."""
    return [[null if cell == "" and i != 3 else cell for i, cell in enumerate(line)] for line in lines]


def backslashes(lines):
    return [[cell.replace("\\", "\\\\").replace("\t", "\\t") for cell in line] for line in lines]


def commas(lines, thousands=False):
    at = [i for i, name in enumerate(lines[0]) if name in FIGURES]
    out = [list(line) for line in lines]
    for line in out[1:]:
        for i in (i for i in at if line[i]):
            line[i] = f"{float(line[i]):,}" if thousands else line[i].replace(".", ",")
    return out


def escaped(lines) -> str:
    """As Spark writes a CSV."""
    out = io.StringIO()
    how = csv.writer(out, doublequote=False, escapechar="\\", quoting=csv.QUOTE_ALL, lineterminator="\n")
    how.writerows(lines)
    return out.getvalue()


WRITTEN = {
    "a footer": lambda lines: text_of(lines) + f"({len(lines) - 1} rows)\n\n",
    "bars and a footer": lambda lines: text_of(lines, "|", quoted=False) + f"({len(lines) - 1} rows)\n",
    "psql with its time": lambda lines: f"Timing is on.\n{text_of(lines)}Time: 12,345 ms\n",
    "what Excel says": lambda lines: "\ufeffsep=;\r\n" + text_of(lines, ";"),
    "decimal commas": lambda lines: text_of(commas(lines), ";"),
    "decimal commas in quotes": lambda lines: text_of(commas(lines)),
    "tabs, nothing quoted": lambda lines: text_of(lines, "\t", quoted=False),
    "COPY": lambda lines: text_of(backslashes(nulls(lines, "\\N")), "\t", quoted=False),
    "mysql --batch": lambda lines: text_of(backslashes(nulls(lines, "NULL")), "\t", quoted=False),
    "Spark": escaped,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_way_of_writing_is_the_same(plain, name):
    wanted = cd.fit_from_counts(text_of(plain).splitlines(keepends=True))
    found = cd.fit_from_counts(WRITTEN[name](plain).splitlines(keepends=True))
    same(found.fitted.counts, wanted.fitted.counts)
    assert [one.code for one in found.notes] == [one.code for one in wanted.notes]


def drawn(lines) -> str:
    width = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    held = [" | ".join(cell.ljust(n) for cell, n in zip(line, width, strict=True)) for line in lines]
    return "\n".join([held[0], "-+-".join("-" * n for n in width), *held[1:]])


REFUSED = {
    "drawn for the eye": (drawn, "--csv"),
    "drawn between bars": (lambda lines: re.sub("(?m)^|$", "|", drawn(lines).replace("+", "|")), "--csv"),
    "without a header": (lambda lines: text_of(lines[1:]), "header"),
    "a footer of more rows": (lambda lines: text_of(lines) + "(9999 rows)\n", "--csv"),
    "marks of thousands": (lambda lines: text_of(commas(lines, thousands=True)), "--decimal"),
    "text that is not quoted": (lambda lines: text_of(lines, quoted=False), "--csv"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_a_guess_is_refused(plain, name):
    how, remedy = REFUSED[name]
    with pytest.raises(InputError) as error:
        cd.fit_from_counts(how(plain).splitlines(keepends=True))
    assert remedy in error.value.remedy


def test_points_that_mark_thousands_are_refused(plain):
    at = [plain[0].index(name) for name in ("rows", "table_rows")]
    lines = [[f"{float(c) / 1000}" if i in at and c else c for i, c in enumerate(line)] for line in plain[1:]]
    with pytest.raises(InputError) as error:
        cd.fit_from_counts(text_of([plain[0], *lines]).splitlines(keepends=True))
    assert "thousands" in error.value.problem


def test_thousands_separators_are_read_where_the_decimal_is_declared(plain):
    wanted = cd.fit_from_counts(text_of(plain).splitlines(keepends=True))
    lines = text_of(commas(plain, thousands=True)).splitlines(keepends=True)
    same(cd.fit_from_counts(lines, decimal=".").fitted.counts, wanted.fitted.counts)


@pytest.mark.parametrize(("decimal", "written"), [(",", "20.0"), (",", "1.234E5"), (".", "2,5"), (".", "1.5,000")])
def test_figures_that_do_not_fit_the_declared_decimal_are_refused(plain, decimal, written):
    """A point that is taken out of 20.0 would make ten times as many of them."""
    at = plain[0].index("n")
    lines = commas(plain) if decimal == "," else [list(line) for line in plain]
    cd.fit_from_counts(text_of(lines).splitlines(keepends=True), decimal=decimal)
    row = next(i for i, line in enumerate(lines) if line[0] == "class")
    lines[row][at] = written
    with pytest.raises(InputError) as error:
        cd.fit_from_counts(text_of(lines).splitlines(keepends=True), decimal=decimal)
    assert (error.value.value, error.value.row) == (written, row + 1)
    assert "--decimal" in error.value.remedy


def test_a_result_with_points_is_not_read_with_commas(plain):
    with pytest.raises(InputError, match="not a number with the decimal mark ','"):
        cd.fit_from_counts(text_of(plain).splitlines(keepends=True), decimal=",")


def test_digits_that_a_program_left_out(plain):
    """The middle is that of the plan, so that fifteen digits lose nothing; fewer are told of."""
    wanted = cd.fit_from_counts(text_of(plain).splitlines(keepends=True)).fitted.counts
    at = [i for i, name in enumerate(plain[0]) if name in FIGURES]
    for digits, told in ((15, []), (11, ["rounded"]), (6, ["rounded"])):
        lines = [[f"{float(c):.{digits}g}" if i in at and c else c for i, c in enumerate(line)] for line in plain[1:]]
        found = cd.fit_from_counts(text_of([plain[0], *lines]).splitlines(keepends=True))
        assert [one.code for one in found.notes if one.code == "rounded"] == told
        mean, sd = wanted.tallies[0].mean, (wanted.tallies[0].m2 / wanted.tallies[0].n) ** 0.5
        assert (abs(found.fitted.counts.tallies[0].mean - mean) < 10.0 ** (2 - digits) * sd).all()


def test_a_middle_that_was_changed_is_refused(plain):
    at = plain[0].index("middle")
    lines = [[*line[:at], "17.5", *line[at + 1 :]] if line[0] == "numbers" else line for line in plain]
    with pytest.raises(InputError) as error:
        cd.fit_from_counts(text_of(lines).splitlines(keepends=True))
    assert "changed" in error.value.problem


def test_files_in_other_encodings_packed_or_missing(plain, tmp_path):
    lines = [[cell.replace("日本", "") for cell in line] for line in plain]
    text, counts = text_of(lines), tmp_path / "counts.csv"
    wanted = cd.fit_from_counts(text.splitlines(keepends=True)).fitted.counts
    for encoding in ("utf-16", "cp1252"):
        counts.write_bytes(text.encode(encoding))
        same(cd.fit_from_counts(counts).fitted.counts, wanted)
        assert run("fit", "--from-counts", counts, "--encoding", encoding).exit_code == 0
    (tmp_path / "counts.csv.gz").write_bytes(gzip.compress(text.encode()))
    same(cd.fit_from_counts(tmp_path / "counts.csv.gz").fitted.counts, wanted)
    with pytest.raises(SourceError, match="no such file"):
        cd.fit_from_counts(tmp_path / "none.csv")
    counts.write_text(text.replace("\nclass", "\nclas", 1))
    with pytest.raises(SourceError) as error:
        cd.fit_from_counts(counts)
    assert (error.value.source, error.value.line) == (str(counts), text[: text.index("\nclass")].count("\n") + 2)
