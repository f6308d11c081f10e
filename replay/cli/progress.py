"""Progress on stderr, with rate and time left; only on a terminal, and only for what takes over a second."""

import sys
import time

from replay.report.wording import duration, size
from replay.run import Progress

PATIENCE_SECONDS = 1.0
INTERVAL_SECONDS = 0.1


class ProgressLine:
    """One line that is written over and wiped at the end."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown_at = 0.0
        self._is_shown = False

    def __call__(self, progress: Progress) -> None:
        """Show how far it is."""
        now = time.monotonic()
        if now - self._began < PATIENCE_SECONDS or now - self._shown_at < INTERVAL_SECONDS:
            return
        self._shown_at, self._is_shown = now, True
        sys.stderr.write("\r\x1b[K" + describe(progress, now - self._began))
        sys.stderr.flush()

    def wipe(self) -> None:
        """Remove the line, if there is one."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def describe(progress: Progress, seconds: float) -> str:
    """Return the line: `reading 120.0 MiB of 1.2 GiB, 24.1 MiB/s, 45 s left`."""
    if not progress.total:
        return f"{progress.stage} ..."
    parts = [f"{progress.stage} {size(progress.done)} of {size(progress.total)}"]
    if progress.done and seconds > 0:
        rate = progress.done / seconds
        parts += [f"{size(int(rate))}/s", f"{duration((progress.total - progress.done) / rate)} left"]
    return ", ".join(parts)
