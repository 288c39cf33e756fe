"""A file is replaced whole or not at all."""

import os
import stat

import pytest

from candide.errors import InputError
from candide.files import check_output, input_files, lock_file, replace_file, write_atomically


def test_what_is_written_elsewhere_takes_the_place_of_the_file(tmp_path):
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    with replace_file(link) as temporary:
        os.unlink(temporary)  # as one who makes the file anew
        with open(temporary, "w") as out:
            out.write("new")
        assert path.read_text() == "old"
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode), link.is_symlink()) == ("new", 0o640, True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "link"]


def test_nothing_is_left_of_what_fails(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), replace_file(path):
        raise RuntimeError
    with pytest.raises(TypeError):
        write_atomically(path, [b"one", None])
    assert (path.read_text(), [p.name for p in tmp_path.iterdir()]) == ("old", ["a.txt"])


def test_a_lock_leaves_nothing_behind(tmp_path):
    path = tmp_path / "a.txt"
    with lock_file(path):
        write_atomically(path, [b"one ", b"piece"])
    assert (path.read_text(), [p.name for p in tmp_path.iterdir()]) == ("one piece", ["a.txt"])


def test_inputs_are_found_in_queries_and_never_overwritten(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("age,job")
    assert list(input_files(f"SELECT * FROM '{path}'", {"age": [30]})) == [str(path)]
    with pytest.raises(InputError, match="one of the inputs"):
        check_output(path, {"age": [30]}, path, is_own_file=lambda name: True)
    with pytest.raises(InputError, match="holds something else"):
        check_output(path, is_own_file=lambda name: False)
    check_output(path, is_own_file=lambda name: True)
