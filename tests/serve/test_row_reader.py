"""Rows of a request become the blocks of a table in memory."""


def test_the_cache_of_values_is_bounded(models):
    from candide.serve.row_reader import RowReader

    reader = RowReader(models["naive"])
    for i in range(10_000):
        reader.read_row({"height": float(i), "site": f"x{i}", "soil": "y" * 200})
    assert max(len(column._cache) for column in reader._columns) <= 4096
    assert not any(type(key) is str and len(key) > 100 for column in reader._columns for key in column._cache)
