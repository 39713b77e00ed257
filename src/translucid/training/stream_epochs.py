"""Pass after pass over running text, each a pure function of the seed and its number."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from translucid.data.stream import Stream, Windows
from translucid.training.epochs import AHEAD, Shared
from translucid.training.workers import Workers


class StreamEpochs:
    """Running text in rows, cut in another way each epoch. Of several processes, each has its own rows always."""

    def __init__(self, stream: Stream, *, seed: int, workers: Workers | None = None) -> None:
        """Nothing is cut yet; `seed` decides how it is."""
        self.stream, self.seed, self.workers = stream, seed, workers or Workers()
        self._cut: tuple[int, Windows] | None = None

    def size(self, epoch: int) -> int:
        """See `Epochs`."""
        return len(self._windows(epoch).ends)

    def done(self, epoch: int, batch: int) -> float:
        """See `Epochs`."""
        windows = self._windows(epoch)
        return float(windows.ends[batch - 1] / windows.columns) if batch else 0.0

    def batches(self, epoch: int, first: int = 0) -> Iterator[Shared]:
        """See `Epochs`.

        The shorter a window, the smaller its step: its gradient is a mean over fewer tokens (Merity et al. 2018,
        section 5).
        """
        windows = self._windows(epoch)
        coming: deque[Future[Shared]] = deque()
        with ThreadPoolExecutor(1) as worker:
            for number in range(first, len(windows.ends)):
                coming.append(worker.submit(self._window, windows, number))
                if len(coming) > AHEAD:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()

    def _window(self, windows: Windows, number: int) -> Shared:
        whole = self.stream.batch(windows, number)
        asked = int(whole.labels.ne(0).sum())
        mine = slice(self.workers.rank, None, self.workers.count)
        rows = None if self.workers.rank >= self.stream.rows else whole.rows(mine).prepared()
        return Shared(rows, max(asked, 1), min(1.0, float(windows.lengths[number]) / self.stream.window))

    def _windows(self, epoch: int) -> Windows:
        if self._cut is None or self._cut[0] != epoch:
            self._cut = epoch, self.stream.varied(self.seed, epoch)
        return self._cut[1]
