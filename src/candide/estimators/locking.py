"""Turns: what changes an object is done by one thread at a time, so that none loses what another counted.

The locks stand beside the objects, not in them: these are pickled, copied and cloned as before.

>>> class Count:
...     n = 0
>>> count = Count()
>>> with lock_of(count):
...     count.n += 1
>>> vars(count)
{'n': 1}
"""

import os
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary

_locks: "WeakKeyDictionary[Any, Any]" = WeakKeyDictionary()
_guard = Lock()


def lock_of(instance: object) -> Any:
    """The lock of an object, to be held while it is changed; a thread that has it may take it again."""
    with _guard:
        return _locks.setdefault(instance, RLock())


def _reset_locks() -> None:
    """In a process that was forked nobody is left who would give a turn back."""
    global _guard
    _guard = Lock()
    _locks.clear()


os.register_at_fork(after_in_child=_reset_locks) if hasattr(os, "register_at_fork") else None
