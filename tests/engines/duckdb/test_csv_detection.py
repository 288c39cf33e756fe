"""A line that is longer or shorter than the others does not cost the header: it is named."""

import gzip

import pytest

from candide.errors import SourceError
from candide.fit_source import fit_model

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
