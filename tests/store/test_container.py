"""The container: its header, and files that are something else."""

import json

import pytest

from candide import store
from candide.demo import garden
from candide.errors import InputError, ModelFileError
from candide.model.fitted import FittedModel
from candide.store import container


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
