"""Names, labels and levels in one buffer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide.errors import ModelFileError
from candide.store.strings import StringPool, StringReader
from candide.store.values import unpack_value


@given(st.lists(st.lists(st.one_of(st.text(), st.text(st.sampled_from("a\né")), st.integers(), st.booleans(),
                                   st.floats(allow_nan=False)))))  # fmt: skip
def test_any_values_come_back_from_the_pool(lists):
    pool = StringPool()
    sizes = [pool.add(tuple(values)) for values in lists]
    if not sum(sizes):
        return
    reader = StringReader(pool.arrays())
    for values, size in zip(lists, sizes, strict=True):
        back = reader.take(size)
        assert list(back) == values
        assert list(map(type, back)) == list(map(type, values))
    reader.check_all_used()


@pytest.mark.parametrize("packed", [["date", "2024-02-30"], ["time"], ["str", "x"], ["date", 5], "2024-02-29"])
def test_a_time_in_a_file_is_checked(packed):
    with pytest.raises(ModelFileError):
        unpack_value({"time": packed}, {})
