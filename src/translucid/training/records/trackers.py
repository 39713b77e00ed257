"""Experiment trackers: TensorBoard, Weights & Biases, MLflow and Trackio, each through its own package.

A tracker works in a thread of its own, so that a slow or failing one neither stops nor slows down a training. The
environment variables of the packages set addresses, keys, projects and offline modes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout, suppress
from importlib.util import find_spec
from queue import Full, Queue
from secrets import token_hex
from threading import Thread
from typing import Any, NamedTuple, Protocol

from bitext.reading import refuse_unsafe
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import install_command, missing_package
from translucid.runs.run_folder import RunFolder

PROJECT = "translucid"
"""The project (in MLflow, the experiment) if the environment names none."""
MAX_WAITING = 10_000
"""The maximum number of rows that wait for a tracker; later ones are left out."""
LAST_SECONDS = 60.0
"""The time that a training waits for its trackers at its end."""
_MAX_PARAMETER_LENGTH = 500
"""The maximum number of characters of a value, which all versions of MLflow accept."""
_MAX_PARAMETERS = 100
"""The maximum number of parameters that MLflow accepts at a time."""


class TrackedRun(NamedTuple):
    """The run that a tracker records, as it is when the tracker starts."""

    folder: RunFolder
    step: int
    """The update from which the training continues; 0 for a new one."""
    identity: str
    """The tracker's identifier of the run, if it was tracked before; otherwise empty."""

    @property
    def name(self) -> str:
        """The name of the run folder, with that of its parent if it is one of several seeds."""
        path = self.folder.path.resolve()
        return f"{path.parent.name}-{path.name}" if path.name.startswith("seed-") else path.name

    def settings(self) -> dict[str, Any]:
        """Return all settings of the run by key, such as `training.seed`."""
        return _flat(self.folder.configuration().model_dump(mode="json"), "")


def _flat(settings: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return nested settings by keys such as `data.tokenizer.vocabulary`."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        # Groups have names of fields as keys; `data.mix` has names of files, which trackers may not accept.
        if isinstance(value, dict) and value and all(map(str.isidentifier, value)):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


class Tracker(Protocol):
    """The interface of a tracker."""

    identity: str
    """The tracker's identifier of the run; empty if the tracker does not need it to continue the run."""

    def log(self, figures: Mapping[str, float], step: int, text: str) -> None:
        """Record figures by name, such as `training/loss`; `text` is Markdown with the samples of a validation."""

    def close(self) -> None:
        """Send everything, and mark the run as finished."""


class TensorBoard:
    """Writes events to the run folder; it discards later events of an earlier process."""

    identity = ""

    def __init__(self, run: TrackedRun) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(run.folder.path), purge_step=run.step + 1)

    def log(self, figures: Mapping[str, float], step: int, text: str) -> None:
        """Write a scalar for each figure, and the samples, which no other tracker gets: they stay in the run folder."""
        for name, value in figures.items():
            self.writer.add_scalar(name, value, step)
        if text:
            self.writer.add_text("validation/samples", text, step)

    def close(self) -> None:
        """Flush the file."""
        self.writer.close()


class WandB:
    """Weights & Biases; `WANDB_PROJECT`, `WANDB_MODE=offline`."""

    def __init__(self, run: TrackedRun) -> None:
        import wandb

        # Without a key, `init` would ask for one on the terminal.
        if wandb.setup().settings.mode in ("online", "run") and not wandb.login(prompt=False):
            raise RuntimeError("there is no API key: run `wandb login`, or set WANDB_MODE=offline")
        self.identity = run.identity or token_hex(4)
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=run.name,
            id=self.identity,
            resume="allow",
            config=run.settings(),
            dir=os.environ.get("WANDB_DIR") or str(run.folder.trackers_folder),
            reinit="create_new",
            # The progress bar uses the console.
            settings=wandb.Settings(silent=True, console="off"),
        )

    def log(self, figures: Mapping[str, float], step: int, text: str) -> None:
        """Record a row; W&B ignores rows of steps before the last one, which a resumed training repeats."""
        self.run.log(dict(figures), step=step)

    def close(self) -> None:
        """Upload what is left."""
        self.run.finish()


class MLflow:
    """MLflow; `MLFLOW_TRACKING_URI`, such as `sqlite:///mlflow.db`, and `MLFLOW_EXPERIMENT_NAME`."""

    def __init__(self, run: TrackedRun) -> None:
        import mlflow
        from mlflow.entities import Param

        self.client = mlflow.MlflowClient()
        self.identity = run.identity
        if self.identity:
            self.client.update_run(self.identity, "RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        experiment = self.client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment else self.client.create_experiment(name)
        self.identity = self.client.create_run(number, run_name=run.name).info.run_id
        # Parameters can't be changed later, so those of the beginning stay.
        parameters = [Param(key, str(value)[:_MAX_PARAMETER_LENGTH]) for key, value in run.settings().items()]
        for first in range(0, len(parameters), _MAX_PARAMETERS):
            self.client.log_batch(self.identity, params=parameters[first : first + _MAX_PARAMETERS])

    def log(self, figures: Mapping[str, float], step: int, text: str) -> None:
        """Record a row."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self.client.log_batch(self.identity, [Metric(name, value, now, step) for name, value in figures.items()])

    def close(self) -> None:
        """Mark the run as finished."""
        self.client.set_terminated(self.identity)


class Trackio:
    """Trackio; `TRACKIO_DIR` for local data, `TRACKIO_SPACE_ID`, and `TRACKIO_PROJECT`."""

    def __init__(self, run: TrackedRun) -> None:
        import trackio

        # Trackio continues the last run with the same name, which another run folder may have.
        self.identity = run.identity or f"{run.name}-{token_hex(2)}"
        with redirect_stdout(sys.stderr):
            self.run = trackio.init(
                os.environ.get("TRACKIO_PROJECT", PROJECT),
                self.identity,
                config=run.settings(),
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )

    def log(self, figures: Mapping[str, float], step: int, text: str) -> None:
        """Record a row."""
        self.run.log(dict(figures), step=step)

    def close(self) -> None:
        """Send what is left."""
        with redirect_stdout(sys.stderr):
            self.run.finish()


TRACKERS: dict[str, Callable[[TrackedRun], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "mlflow": MLflow,
    "trackio": Trackio,
}
"""The trackers by their name in `training.trackers`, which is that of their package."""


def is_installed(name: str) -> bool:
    """Whether the package of a tracker is installed."""
    spec = find_spec(name)
    # Some trackers write into a folder with their name, which Python would import as an empty package without a file.
    return spec is not None and spec.origin is not None


def check_packages(names: Iterable[str]) -> str:
    """Check that the packages of trackers are installed; return a note if only TensorBoard, the default, is missing.

    Raises:
        UserError: another one is not installed.
    """
    missing = [name for name in names if not is_installed(name)]
    for name in missing:
        if name != "tensorboard":
            raise missing_package(f"training.trackers={name}", name, name)
    if missing:
        return f"without TensorBoard all figures are in metrics.jsonl alone; for its events: {install_command('train')}"
    return ""


class Background:
    """Passes rows to a tracker in a thread of its own."""

    def __init__(self, name: str, folder: RunFolder, step: int) -> None:
        """Start a tracker of a run that is at `step`; this does not wait for it."""
        self.name, self.folder, self.step = name, folder, step
        self.warning = ""
        """Why figures are missing in the tracker; empty if none are."""
        self._rows: Queue[tuple[Mapping[str, float], int, str] | None] = Queue(MAX_WAITING)
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def log(self, figures: Mapping[str, float], step: int, text: str = "") -> None:
        """Pass a row on; it is left out if the tracker has failed or is far behind."""
        if not self._thread.is_alive():
            return
        try:
            self._rows.put_nowait((figures, step, text))
        except Full:
            self.warning = self.warning or "is too slow: some figures are left out"

    def close(self) -> None:
        """Let the tracker finish; `wait` waits for it."""
        with suppress(Full):  # then it is far behind or hangs, and the warning is already there
            self._rows.put_nowait(None)

    def wait(self, seconds: float) -> None:
        """Wait for the end of the tracker, for at most this number of seconds."""
        self._thread.join(max(seconds, 0))
        if self._thread.is_alive():
            self.warning = self.warning or f"did not finish within {LAST_SECONDS:.0f} seconds: some figures are missing"

    def _work(self) -> None:
        try:
            tracker = self._start()
            while row := self._rows.get():
                tracker.log(*row)
            tracker.close()
        except (Exception, SystemExit) as error:
            first_line = str(error).strip().partition("\n")[0]
            self.warning = f"failed, and gets no more figures ({type(error).__name__}: {first_line})"

    def _start(self) -> Tracker:
        """Start the tracker, and save its identifier of the run."""
        folder = self.folder.trackers_folder
        if self.name != "tensorboard":
            folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.name}.id"
        refuse_unsafe(file, self.folder.path, 1000)
        identity = file.read_text("utf-8").strip() if file.exists() else ""
        tracker = TRACKERS[self.name](TrackedRun(self.folder, self.step, identity))
        if tracker.identity != identity:
            write_atomically(file, f"{tracker.identity}\n".encode())
        return tracker
