"""The container: its header, its strings, and files that are something else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from candide import store
from candide.demo import garden
from candide.errors import InputError, ModelFileError
from candide.model.fitted import FittedModel
from candide.store import container
from candide.store.container import StringPool, StringReader
from candide.store.values import unpack_value


@pytest.fixture
def path(tmp_path):
    store.save(FittedModel(garden()), tmp_path / "m.candide")
    return tmp_path / "m.candide"


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', "[" * 100_000, '{"a": NaN}', '{"a": ' + "9" * 5000 + "}", "{", "7"]
)
def test_a_header_that_is_not_plain_json_is_rejected(text):
    with pytest.raises(ModelFileError):
        container.parse_json(text.encode())


def test_a_header_longer_than_allowed_is_rejected_before_it_is_read(tmp_path):
    path = tmp_path / "m.candide"
    with path.open("wb") as file:
        file.write((50 << 20).to_bytes(8, "little"))
        file.truncate(60 << 20)
    with pytest.raises(ModelFileError, match="not a complete Candide model file"):
        store.load(path)


def test_other_files_are_rejected(tmp_path):
    entry = json.dumps({"a": {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}}).encode()
    (tmp_path / "other.safetensors").write_bytes(len(entry).to_bytes(8, "little") + entry + bytes(24))
    (tmp_path / "empty").touch()
    for name in ("other.safetensors", "empty", "absent", "."):
        with pytest.raises(ModelFileError, match=str(tmp_path / name)):
            store.load(tmp_path / name)


def test_saving_too_much_for_a_header_is_an_error(tmp_path):

    with pytest.raises(InputError, match="holds at most"):
        container.pack_container({"names": ["x" * 1000] * 2000}, {})
    assert json.loads("{}") == {}


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
