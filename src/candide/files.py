"""Files: replaced whole or not at all, never where something would be lost, and changed by one process at a time.

The lock is an advisory lock of the operating system (``flock``; on Windows ``locking``) on a small file beside the
model. The system gives it up when its holder ends, however it ends, so no lock is ever stale, and nobody must guess
from a process number whether its owner still lives.

>>> import tempfile
>>> path = os.path.join(tempfile.mkdtemp(), "a.txt")
>>> with lock_file(path):
...     write_atomically(path, [b"one ", b"piece"])
>>> open(path).read(), os.listdir(os.path.dirname(path))
('one piece', ['a.txt'])
"""

import errno
import glob
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from candide.errors import BusyError, InputError

_LOCK_POLL_SECONDS = 0.005  # seconds between two looks at a lock
_FORCE_REMEDY = "name another file, or pass --force (force=True) to write there all the same"
_temporaries: set[str] = set()  # files and folders of this process that should not outlast it
_DISK_FULL_ERRORS = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_QUOTED_TEXT = re.compile(r"""(['"])((?:(?!\1).|\1\1)+)\1""", re.DOTALL)
_STALE_SECONDS = 3600.0  # seconds after which a temporary file is one that a killed process left


def check_output(
    path: str | os.PathLike,
    inputs: Iterable[str | os.PathLike] = (),
    *,
    is_own_file: Callable[[str], bool],
    force: bool = False,
) -> None:
    """Refuse an output by which something would be lost, before any work is done for it.

    It may not be one of the inputs, by whatever name, nor a file that Candide did not make, as ``ours`` tells, unless
    that is wanted by ``force``. A folder, a pipe or a device is refused always: it would be replaced, not written to.
    """
    name = os.fspath(path)
    if not os.path.isdir(os.path.dirname(os.path.realpath(name))):
        folder = os.path.dirname(os.path.realpath(name) if os.path.islink(name) else name)
        remedy = "make it first, or write elsewhere"
        raise InputError(f"{name}: there is no folder {folder!r}", value=name, remedy=remedy)
    there = _stat_regular(name)
    if there is None or force:
        return
    if any(_is_same_file(one, there) for one in inputs):
        raise InputError(f"{name} is one of the inputs, which would be lost", value=name, remedy=_FORCE_REMEDY)
    if not is_own_file(name):
        what = "holds something else" if there.st_size else "is empty"
        raise InputError(f"{name} is there already, and {what}", value=name, remedy=_FORCE_REMEDY)


def _stat_regular(name: str) -> os.stat_result | None:
    """What is known of a file, None where there is none; an error where it is no regular one."""
    try:
        there = os.stat(name)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(there.st_mode):
        raise InputError(f"{name} is no regular file", value=name, remedy="name a file to write")
    return there


def _is_same_file(path: str | os.PathLike, other_stat: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), other_stat)  # through links of either sort
    except OSError:
        return False


def write_atomically(
    path: str | os.PathLike, chunks: Iterable[Any], check: Callable[[str], None] = lambda temporary: None
) -> None:
    """Replace a file by some pieces of bytes, whole or not at all; ``check`` may refuse the new file by its name."""
    with replace_file(path) as temporary:
        with open(temporary, "wb", buffering=0) as out:
            for piece in chunks:
                _write_all(out, memoryview(piece))
        check(temporary)


@contextmanager
def replace_file(path: str | os.PathLike) -> Iterator[str]:
    """The name of a file to write, in the same folder: it goes to the disk and takes the other's place, or is removed.

    The mode of the file is kept, and a link still points to it: what is replaced is the file, not the link.
    """
    target = os.path.realpath(path)
    _stat_regular(target)
    temporary = _sibling_path(target, f"{os.getpid()}.{time.monotonic_ns():x}.tmp")
    _temporaries.add(temporary)
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        _copy_mode(temporary, target)  # before anything is in it
        yield temporary
        _copy_mode(temporary, target)  # who wrote it may have made it anew
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if error.errno not in _DISK_FULL_ERRORS:
            raise
        what, remedy = (
            f"cannot write {os.fspath(path)}: {os.strerror(error.errno or 0)}",
            "make room, or name another place",
        )
        raise InputError(what, value=os.fspath(path), remedy=remedy) from None
    finally:
        remove_temporary(temporary)
    _sync_folder(os.path.dirname(target))


def temporary_file(ending: str = "") -> str:
    """The name of an empty file for this process alone, until it is removed."""
    name = _temporary(ending)
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return name


def temporary_folder() -> str:
    """The same of a folder."""
    name = _temporary("")
    os.mkdir(name, 0o700)
    return name


def _temporary(ending: str) -> str:
    """A name that nobody has, known before there is anything of that name: a stop may come at any moment."""
    import tempfile  # here: loading a model has no use for it

    name = os.path.join(tempfile.gettempdir(), f"candide-{os.urandom(8).hex()}{ending}")
    _temporaries.add(name)
    return name


def remove_temporary(temporary: str) -> None:
    """Remove a temporary file or folder, if it is there still."""
    if os.path.isdir(temporary):
        import shutil

        shutil.rmtree(temporary, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(temporary)
    _temporaries.discard(temporary)


def remove_temporaries() -> None:
    """Remove all that are left, where the process is about to end."""
    for name in list(_temporaries):
        remove_temporary(name)


def _copy_mode(temporary: str, target: str) -> None:
    """Give a file the mode of the one that it will replace."""
    with suppress(FileNotFoundError):
        os.chmod(temporary, os.stat(target).st_mode & 0o7777)


def _write_all(out: Any, piece: memoryview) -> None:
    while len(piece):
        piece = piece[out.write(piece) :]


def _sync_folder(folder: str) -> None:
    """Only then does the new name outlast a power cut; where folders cannot be opened, the system sees to it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sibling_path(path: str, ending: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{ending}")


@contextmanager
def lock_file(path: str | os.PathLike, timeout: float = 30.0) -> Iterator[None]:
    """Hold the lock of a file; a BusyError after ``wait`` seconds in vain."""
    target = os.path.realpath(path)
    name = _sibling_path(target, "lock")
    handle = _acquire_lock(name, os.fspath(path), timeout)
    try:
        _remove_stale(target)
        yield
    finally:
        with suppress(OSError):  # while it is held: who waits for it looks whether the name is still its own
            os.unlink(name)
        os.close(handle)


def _acquire_lock(name: str, path: str, wait: float) -> int:
    end = time.monotonic() + wait
    while True:
        handle = os.open(name, os.O_CREAT | os.O_RDWR, 0o666)
        if _try_lock(handle):
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(name)):
                    return handle
            os.close(handle)  # the holder before has removed this file; there is, or will be, another
            continue
        os.close(handle)
        if time.monotonic() >= end:
            raise BusyError(f"{path} is being changed by another process; waited {wait:g} s; try again")
        time.sleep(_LOCK_POLL_SECONDS)


def _try_lock(handle: int) -> bool:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_stale(target: str) -> None:
    """Remove temporary files that killed processes left long ago."""
    folder, name = os.path.split(target)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(f".{name}.") and entry.name.endswith(".tmp"):
                with suppress(OSError):
                    if time.time() - entry.stat().st_mtime > _STALE_SECONDS:
                        os.unlink(entry.path)


def input_files(*data: Any) -> Iterator[Any]:
    """The files behind models or data: a path, a folder, a glob, a query, standard input (its descriptor).

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for name in ("a.csv", "b.csv"):
    ...     open(os.path.join(folder, name), "w").close()
    >>> [sorted(map(os.path.basename, input_files(f"{folder}{rest}"))) for rest in ("", "/*.csv", "/a.csv")]
    [['a.csv', 'b.csv'], ['a.csv', 'b.csv'], ['a.csv']]
    >>> [os.path.basename(name) for name in input_files(f"SELECT * FROM '{folder}/b.csv'")]
    ['b.csv']
    """
    for source in data:
        if isinstance(source, str) and source == "-":
            yield from _standard_input()
        elif isinstance(source, str | os.PathLike):
            yield from _files_in_name(os.fspath(source))
        else:
            yield from getattr(source, "files", ())  # of an Arrow dataset


def _files_in_name(name: str) -> Iterator[str]:
    if os.path.isdir(name):
        yield from (os.path.join(folder, file) for folder, _, files in os.walk(name) for file in files)
    elif os.path.exists(name):
        yield name
    else:  # a glob, a table within a file, or a query with names in quotes
        for text in {name, name.partition("::")[0], *(match[2] for match in _QUOTED_TEXT.finditer(name))}:
            yield from glob.glob(text, recursive=True)


def _standard_input() -> Iterator[int]:
    try:
        yield sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):  # none, or not a file
        return
