"""Translation on a Ray cluster, or with Ray on this machine: Ray Data maps windows of a file over a pool of workers.

Workers read the file and the run folder from their paths, so every machine must have access to them.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from translucid.ground.errors import UserError, missing_package
from translucid.jobs.job import Done, Executor, LineJob, Worker
from translucid.jobs.windows import Place, Reader, Window
from translucid.kernels.devices import tune_cpu
from translucid.kernels.machine import has_pytorch

if TYPE_CHECKING:
    import pyarrow

LOCAL = "local"
"""The address that starts Ray on this machine."""
_BLOCKS = 10_000
"""The maximum number of blocks of a data set; with fewer windows, each is written as soon as its turn comes."""


@contextmanager
def ray_cluster(job: LineJob, file: Path, address: str, workers: int | None = None) -> Iterator[Executor]:
    """Connect to a cluster, and disconnect at the end.

    Args:
        job: the job.
        file: the input.
        address: the address of the cluster; `auto` for the one to which this machine belongs, `local` for a new one on
            this machine alone. An existing connection is kept.
        workers: the number of workers, each with a GPU of the cluster, or a CPU if it has none; all if not given.

    Raises:
        UserError: Ray is not installed, or there is no such cluster.
    """
    ray = _ray()
    is_new_connection = not ray.is_initialized()
    if is_new_connection:
        try:
            options = {"include_dashboard": False} if address == LOCAL else {}
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = str(error).strip().split("\n")[0].rstrip(".")
            fix = 'Start a cluster with ray start --head, or use `address="local"`.'
            raise UserError(f"there is no Ray cluster at {address} ({reason})", fix=fix) from error
    try:
        # Errors that the user can correct are raised here, before any worker starts.
        Worker(replace(job, run=job.run.resolve(), device="cpu"), threads=1)
        yield _Mapping(ray, job, file, workers)
    finally:
        if is_new_connection:
            ray.shutdown()


class _Mapping:
    """Runs a job by Ray Data."""

    def __init__(self, ray: Any, job: LineJob, file: Path, workers: int | None) -> None:
        resources = ray.cluster_resources()
        use_gpu = job.device.startswith("cuda") or (job.device == "auto" and resources.get("GPU", 0) >= 1)
        if use_gpu:  # Ray shows each worker one GPU, which is `cuda` there
            self.device, self.share, count = "cuda", {"num_gpus": 1}, resources.get("GPU", 1)
        else:
            self.device = "cpu" if job.device == "auto" else job.device
            self.share, count = {"num_cpus": 1}, resources.get("CPU", 1)
        self.workers = workers or max(1, int(count))
        self.job = replace(job, run=job.run.resolve(), device=self.device)
        self.ray, self.file = ray, file.resolve()

    def __call__(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Done]]:
        """Process windows; the text is read once to find their places, and workers read the lines again."""
        places: list[Window] = []
        rows: list[dict[str, int | bytes]] = []
        for window in windows:
            places.append(replace(window, lines=[], earlier=[]))
            rows.append(
                {
                    "number": len(rows),
                    "line": window.before.lines,
                    "start": window.before.bytes,
                    "size": window.after.bytes - window.before.bytes,
                    "crc": _checksum(window.lines),
                    "earlier": b"\n".join(window.earlier),
                }
            )
        if not rows:
            return
        dataset = self._dataset(rows)
        for number, row in enumerate(self._rows(dataset)):
            if row["number"] != number:
                raise RuntimeError(f"Ray gave window {row['number']} for window {number}")
            if row["error"]:
                raise UserError(row["error"].removesuffix("."))
            notes = json.loads(row["notes"])
            warnings = list(map(tuple, notes["warnings"]))  # JSON has lists
            yield places[number], Done(row["text"], warnings, notes["bad"])

    def _rows(self, dataset: Any) -> Iterator[dict[str, Any]]:
        errors = self.ray.exceptions
        try:
            for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
                yield from batch.to_pylist()
        except errors.RayError as error:
            if isinstance(error, errors.RayTaskError):  # an error in our code, not of the cluster
                raise
            fix = "The same command continues from what is written."
            raise UserError(f"Ray has given up ({str(error).splitlines()[0]})", fix=fix) from error

    def _dataset(self, rows: list[dict[str, int | bytes]]) -> Any:
        data = self.ray.data
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        context.execution_options.preserve_order = True
        blocks = min(len(rows), _BLOCKS)
        return data.from_items(rows, override_num_blocks=blocks).map_batches(
            _Mapper,
            fn_constructor_args=(self.job, self.file),
            batch_size=1,
            batch_format="pyarrow",
            compute=data.ActorPoolStrategy(size=min(self.workers, blocks)),
            **self.share,
        )


class _Mapper:
    """A worker for Ray Data, which creates one for each actor and calls it with a row for each window."""

    def __init__(self, job: LineJob, file: Path) -> None:
        self.job, self.file = job, file

    @cached_property
    def worker(self) -> Worker:
        if has_pytorch():
            import torch

            torch.set_num_threads(1)
        return Worker(self.job, threads=1)

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        if has_pytorch():
            tune_cpu()  # Ray may call from another thread than before
        return pyarrow.Table.from_pylist([self._answer(**row) for row in batch.to_pylist()])

    def _answer(self, number: int, line: int, start: int, size: int, crc: int, earlier: bytes) -> dict[str, Any]:
        row = {"number": number, "text": b"", "notes": "", "error": ""}
        with self.file.open("rb") as stream:
            stream.seek(start)
            (window,) = Reader(BytesIO(stream.read(size)), self.job.window, wrapped=self.job.wrapped).windows()
        try:
            if _checksum(window.lines) != crc:
                raise UserError("the input has changed while it was translated", file=self.file)
            earlier_lines = earlier.split(b"\n") if line else []
            done = self.worker.work(replace(window, before=Place(lines=line), earlier=earlier_lines))
        except UserError as error:  # Ray would wrap an exception in one of its own
            return row | {"error": str(error)}
        return row | {"text": done.text, "notes": json.dumps({"warnings": done.warnings, "bad": done.bad})}


def _checksum(lines: Sequence[bytes]) -> int:
    return crc32(b"\n".join(lines))


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves the machine
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # Ray reports a dead worker, whose windows another one translates, on standard output: among the translations.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise missing_package("`ray_cluster`", error.name or str(error), "cluster") from error
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    return ray
