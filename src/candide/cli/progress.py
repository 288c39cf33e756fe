"""A progress bar for work longer than a second, on a terminal only: how far, how many rows, how fast."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from candide.engines.base import Watch, no_progress

_DELAY_SECONDS = 1.0  # before anything is shown


def show_progress(enabled: bool) -> Watch:
    """A progress display on a terminal; one that shows nothing elsewhere, or if it is not enabled."""
    return _watch if enabled and sys.stderr.isatty() else no_progress


@contextmanager
def _watch(source: Any, what: str) -> Iterator[None]:
    source.start_progress()
    done = threading.Event()
    drawer = threading.Thread(target=_draw, args=(source, what, done), daemon=True)
    drawer.start()
    try:
        yield
    finally:
        done.set()
        drawer.join()


def _draw(source: Any, what: str, done: threading.Event) -> None:
    if done.wait(_DELAY_SECONDS):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        transient=True,
    )
    start, completed = time.monotonic() - _DELAY_SECONDS, 0.0
    with bar:
        task = bar.add_task(what, total=1.0, rate="")
        while not done.wait(0.1):
            fraction, rows = source.progress(), source.rows_read
            completed = max(completed, fraction)  # rows may have to be read once more
            rate = f"{rows / (time.monotonic() - start):,.0f} rows/s" if rows else ""
            bar.update(task, total=1.0 if fraction >= 0 else None, completed=completed, rate=rate)
        bar.remove_task(task)
