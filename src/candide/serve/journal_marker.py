"""Marker: how many entries of a journal were answered for, in a small file beside it that tells when some are lost.

SQLite passes over a damaged end of its log without a word. The marker is written after each commit and never waited
for: it survives a process that is killed, and after a loss of power says too little at worst.

>>> import tempfile
>>> marker = JournalMarker(os.path.join(tempfile.mkdtemp(), "state.db"))
>>> marker.write(41)
>>> marker.write(7)
>>> JournalMarker(marker.path.removesuffix("-last")).read()
7
"""

import contextlib
import os
import zlib


class JournalMarker:
    """The number of the last entry that was answered for; 0 where that is not known."""

    def __init__(self, journal: str):
        self.path = f"{journal}-last"
        self._file: int | None = None

    def read(self) -> int:
        with contextlib.suppress(OSError, ValueError, IndexError), open(self.path, "rb") as file:
            said = file.read(64).split()
            if int(said[1]) == zlib.crc32(said[0]):
                return int(said[0])
        return 0

    def write(self, seq: int) -> None:
        told = b"%020d" % seq
        with contextlib.suppress(OSError):  # it helps to tell of losses, and is needed for nothing else
            if self._file is None:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            os.pwrite(self._file, b"%s %010d\n" % (told, zlib.crc32(told)), 0)

    def close(self, remove: bool) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if remove:
            with contextlib.suppress(OSError):
                os.remove(self.path)
