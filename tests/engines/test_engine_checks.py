"""Every engine passes the published checks, whatever holds the rows."""

from itertools import count

import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.engines.sqlite_engine import SQLite
from tests.engines.test_engines import as_sqlite

from candide.engines.base import get_engine
from candide.engines.duckdb.source import DuckDB
from candide.testing import check_engine


@pytest.mark.all_cases
@pytest.mark.parametrize("name", ["arrays", "duckdb"])
def test_rows_in_memory(name):
    check_engine(get_engine(name))


WRITERS = {"rows.parquet": pyarrow.parquet.write_table, "rows.csv": pyarrow.csv.write_csv}


@pytest.mark.all_cases
@pytest.mark.parametrize("name", WRITERS)
def test_files(tmp_path, name):
    def make(table):
        WRITERS[name](table, tmp_path / name)
        return str(tmp_path / name)

    check_engine(get_engine("duckdb"), make, typed=name != "rows.csv")


@pytest.mark.all_cases
def test_an_engine_of_ones_own(tmp_path):
    number = count()
    check_engine(SQLite(), lambda table: as_sqlite(table, tmp_path / f"{next(number)}.db"), typed=False)


class Narrow(DuckDB):
    """As if every table were too wide for a query: all is counted from batches."""

    max_columns = max_levels = 0


@pytest.mark.all_cases
@pytest.mark.parametrize("name", WRITERS)
def test_tables_too_wide_for_a_query(tmp_path, name):
    def make(table):
        WRITERS[name](table, tmp_path / name)
        return str(tmp_path / name)

    check_engine(Narrow(), make, typed=name != "rows.csv")
