"""Files: replaced completely or not at all, never where data would be lost, and changed by one process at a time.

The lock is an advisory lock of the operating system (``flock``; on Windows ``locking``) on a small file beside the
model. The system releases it when its holder ends, so that no lock is ever stale.
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

from candide.errors import BusyError, InputError, InputTypeError

_LOCK_POLL_SECONDS = 0.005  # between two attempts to lock
_FORCE_REMEDY = "name another file, or pass --force (force=True) to write there all the same"
_temporaries: set[str] = set()  # files and folders to remove when this process ends
_DISK_FULL_ERRORS = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_QUOTED_TEXT = re.compile(r"""(['"])((?:(?!\1).|\1\1)+)\1""", re.DOTALL)
_STALE_SECONDS = 3600.0  # age of a temporary file that a killed process must have left


def check_output(
    path: str | os.PathLike | None, *inputs: Any, is_own_file: Callable[[str], bool], force: bool = False
) -> None:
    """Refuse an output path that would lose something; call it before any work is done for the output.

    The path may not be one of the files behind ``inputs`` (models and data in any form), nor a file that Candide did
    not write (``is_own_file``), unless ``force`` is set. Folders, pipes and devices are always refused.
    """
    if path is None:
        return
    if not isinstance(path, str | os.PathLike):
        remedy = "pass a path; labels are a column of the data, named by target: {**X, 'label': y}, target='label'"
        raise InputTypeError(f"expected the path of an output file, got {type(path).__name__}", remedy=remedy)
    name = os.fspath(path)
    if not os.path.isdir(os.path.dirname(os.path.realpath(name))):
        folder = os.path.dirname(os.path.realpath(name) if os.path.islink(name) else name)
        remedy = "create it first, or write elsewhere"
        raise InputError(f"{name}: there is no folder {folder!r}", value=name, remedy=remedy)
    existing = _stat_regular(name)
    if existing is None or force:
        return
    for file in input_files(*inputs):
        with suppress(OSError):
            if os.path.samestat(os.stat(file), existing):  # through symbolic and hard links
                raise InputError(f"{name} is one of the inputs, which would be lost", value=name, remedy=_FORCE_REMEDY)
    if not is_own_file(name):
        what = "holds something else" if existing.st_size else "is empty"
        raise InputError(f"{name} exists already, and {what}", value=name, remedy=_FORCE_REMEDY)


def input_files(*inputs: Any) -> Iterator[Any]:
    """Yield the files behind a path, a folder, a glob or a query, and the descriptor of standard input."""
    for data in inputs:
        if isinstance(data, str) and data == "-":
            with suppress(AttributeError, OSError, ValueError):  # no standard input, or one without a descriptor
                yield sys.stdin.fileno()
        elif not isinstance(data, str | os.PathLike):
            yield from getattr(data, "files", ())  # of an Arrow dataset
        elif os.path.isdir(name := os.fspath(data)):
            yield from (os.path.join(folder, file) for folder, _, files in os.walk(name) for file in files)
        elif os.path.exists(name):
            yield name
        else:  # a glob, a table within a file, or a query with names in quotes
            for text in {name, name.partition("::")[0], *(match[2] for match in _QUOTED_TEXT.finditer(name))}:
                yield from glob.glob(text, recursive=True)


def _stat_regular(name: str) -> os.stat_result | None:
    """Return the status of a file, None if there is none; raise an error if it is not a regular file."""
    try:
        status = os.stat(name)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{name} is not a regular file", value=name, remedy="name a file to write")
    return status


def write_atomically(
    path: str | os.PathLike, chunks: Iterable[Any], check: Callable[[str], None] = lambda temporary: None
) -> None:
    """Replace a file by chunks of bytes, completely or not at all; ``check`` may reject the new file by its name."""
    with replace_file(path) as temporary:
        with open(temporary, "wb") as out:
            out.writelines(chunks)
        check(temporary)


@contextmanager
def replace_file(path: str | os.PathLike) -> Iterator[str]:
    """Yield the name of a temporary file in the same folder, which then replaces the file, or is removed on an error.

    The mode of the file is kept, and a symbolic link still points to it.
    """
    target = os.path.realpath(path)
    _stat_regular(target)
    temporary = _sibling_path(target, f"{os.getpid()}.{time.monotonic_ns():x}.tmp")
    _temporaries.add(temporary)
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        _copy_mode(temporary, target)  # before anything is in it
        yield temporary
        _copy_mode(temporary, target)  # the writer may have created it again
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if error.errno not in _DISK_FULL_ERRORS:
            raise
        what = f"cannot write {os.fspath(path)}: {os.strerror(error.errno or 0)}"
        raise InputError(what, value=os.fspath(path), remedy="free some space, or write elsewhere") from None
    finally:
        remove_temporary(temporary)
    with suppress(OSError):  # a new name survives a power cut then; systems that cannot open folders do it themselves
        folder = os.open(os.path.dirname(target), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def temporary_file(ending: str = "", *, is_folder: bool = False) -> str:
    """Create an empty file or a folder for this process and return its name."""
    import tempfile  # here: loading a model does not need it

    name = os.path.join(tempfile.gettempdir(), f"candide-{os.urandom(8).hex()}{ending}")
    _temporaries.add(name)  # before the file exists, because the process may be stopped at any moment
    if is_folder:
        os.mkdir(name, 0o700)
    else:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return name


def remove_temporary(temporary: str) -> None:
    if os.path.isdir(temporary):
        import shutil

        shutil.rmtree(temporary, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(temporary)
    _temporaries.discard(temporary)


def remove_temporaries() -> None:
    """Remove all that are left, when the process is about to end."""
    for name in list(_temporaries):
        remove_temporary(name)


def _copy_mode(temporary: str, target: str) -> None:
    with suppress(FileNotFoundError):
        os.chmod(temporary, os.stat(target).st_mode & 0o7777)


def _sibling_path(path: str, ending: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{ending}")


@contextmanager
def lock_file(path: str | os.PathLike, timeout: float = 30.0) -> Iterator[None]:
    """Hold the lock of a file; raise a BusyError after ``timeout`` seconds."""
    target = os.path.realpath(path)
    name = _sibling_path(target, "lock")
    handle = _acquire_lock(name, os.fspath(path), timeout)
    try:
        _remove_stale(target)
        yield
    finally:
        with suppress(OSError):  # while it is held: a waiting process checks that the name is still its own
            os.unlink(name)
        os.close(handle)


def _acquire_lock(name: str, path: str, timeout: float) -> int:
    end = time.monotonic() + timeout
    while True:
        handle = os.open(name, os.O_CREAT | os.O_RDWR, 0o666)
        if _try_lock(handle):
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(name)):
                    return handle
            os.close(handle)  # the last holder has removed this file: try again with a new one
            continue
        os.close(handle)
        if time.monotonic() >= end:
            raise BusyError(f"{path} is being changed by another process; waited {timeout:g} s; try again")
        time.sleep(_LOCK_POLL_SECONDS)


def _try_lock(handle: int) -> bool:
    with suppress(OSError if sys.platform == "win32" else BlockingIOError):
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _remove_stale(target: str) -> None:
    folder, name = os.path.split(target)
    for path in glob.glob(os.path.join(glob.escape(folder), f".{glob.escape(name)}.*.tmp")):
        with suppress(OSError):
            if time.time() - os.stat(path).st_mtime > _STALE_SECONDS:
                os.unlink(path)
