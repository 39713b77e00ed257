"""The epochs of running text. The windows of an epoch depend on nothing but the seed and its number."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from translucid.data.stream import Stream, Windows
from translucid.training.epochs import SharedBatch, prefetched
from translucid.training.workers import Workers


class StreamEpochs:
    """Running text in rows, divided into other windows each epoch. Each process always has the same rows."""

    def __init__(self, stream: Stream, *, seed: int, workers: Workers | None = None) -> None:
        """Store the settings; `seed` determines the windows."""
        self.stream, self.seed, self.workers = stream, seed, workers or Workers()
        self._last_windows: tuple[int, Windows] | None = None
        """The last epoch and its windows."""

    def size(self, epoch: int) -> int:
        """Return the number of windows of an epoch."""
        return len(self._windows(epoch).ends)

    def done(self, epoch: int, batch: int) -> float:
        """Return the share of an epoch's tokens before window `batch`."""
        windows = self._windows(epoch)
        return float(windows.ends[batch - 1] / windows.columns) if batch else 0.0

    def batches(self, epoch: int, first: int = 0) -> Iterator[SharedBatch]:
        """Yield the windows of an epoch from window `first` on, prepared in the background."""
        windows = self._windows(epoch)
        yield from prefetched(partial(self._window, windows), range(first, len(windows.ends)))

    def _window(self, windows: Windows, number: int) -> SharedBatch:
        batch = self.stream.batch(windows, number)
        labels = int(batch.labels.ne(0).sum())  # 0 is padding
        rows = None
        if self.workers.rank < self.stream.rows:
            rows = batch.rows(slice(self.workers.rank, None, self.workers.count)).prepared()
        # The gradient of a shorter window is a mean over fewer tokens, so its step is smaller (Merity et al. 2018,
        # section 5).
        rate = min(1.0, float(windows.lengths[number]) / self.stream.window)
        return SharedBatch(rows, max(labels, 1), rate)

    def _windows(self, epoch: int) -> Windows:
        if self._last_windows is None or self._last_windows[0] != epoch:
            self._last_windows = epoch, self.stream.random_windows(self.seed, epoch)
        return self._last_windows[1]
