"""Progress of long work, on a terminal only: how far, how many rows, how fast."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from candide.engines.base import Watch, no_progress

_DELAY_SECONDS = 1.0  # seconds before anything is shown


@contextmanager
def show_progress(enabled: bool) -> Iterator[Watch]:
    """A watch that draws on a terminal, or shows nothing."""
    if not enabled or not sys.stderr.isatty():
        yield no_progress
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

    @contextmanager
    def watch(source: Any, what: str) -> Iterator[None]:
        source.start_progress()
        done = threading.Event()
        drawer = threading.Thread(target=_draw, args=(bar, source, what, done), daemon=True)
        drawer.start()
        try:
            yield
        finally:
            done.set()
            drawer.join()

    yield watch


def _draw(bar: Any, source: Any, what: str, done: threading.Event) -> None:
    if done.wait(_DELAY_SECONDS):
        return
    start, share = time.monotonic() - _DELAY_SECONDS, 0.0
    with bar:
        task = bar.add_task(what, total=1.0, rate="")
        while not done.wait(0.1):
            now, rows = source.progress(), source.rows_read
            share = max(share, now)  # rows may have to be read once more
            rate = f"{rows / (time.monotonic() - start):,.0f} rows/s" if rows else ""
            bar.update(task, total=1.0 if now >= 0 else None, completed=share, rate=rate)
        bar.remove_task(task)
