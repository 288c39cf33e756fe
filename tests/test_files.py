"""A file is replaced whole or not at all."""

import os
import stat

import pytest

from candide.files import replace_file, write_atomically


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
