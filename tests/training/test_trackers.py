"""Experiment trackers: logged figures, failures, and the real packages without a network."""

import io
import json
import sqlite3
import struct
import threading
import time
from itertools import chain
from pathlib import Path

import pytest
import torch

from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.runs.training_options import TrainingOptions
from translucid.training.records import record, trackers
from translucid.training.records.record import Progress
from translucid.training.records.trackers import Background, TrackedRun, check_packages
from translucid.training.validation import Validation


@pytest.fixture
def starts(monkeypatch):
    """Replace Weights & Biases, and record what the tracker gets in a dictionary for each start."""
    started = []

    class Tracker:
        def __init__(self, run):
            self.identity = run.identity or "first"
            self.got = {
                "name": run.name,
                "seed": run.settings()["training.seed"],
                "before": run.identity,
                "step": run.step,
            }
            self.got |= {"rows": [], "closed": False, "thread": threading.current_thread()}
            started.append(self.got)

        def log(self, figures, step, text):
            self.got["rows"].append((step, dict(figures)))

        def close(self):
            self.got["closed"] = True

    monkeypatch.setitem(trackers.TRACKERS, "wandb", Tracker)
    monkeypatch.setattr(trackers, "is_installed", lambda name: True)
    monkeypatch.setattr(record, "is_installed", lambda name: True)
    return started


def expected_rows(run):
    """Return the rows of metrics.jsonl as trackers get them."""
    rows = []
    for row in RunFolder(run).metrics():
        kind, step = row.pop("kind"), row.pop("step")
        if kind == "validation":
            del row["seconds"]
        rows.append((step, {f"{kind}/{name}": pytest.approx(value, rel=1e-5) for name, value in row.items()}))
    return rows


def test_a_tracker_gets_the_rows_of_metrics_and_continues_the_same_run(train, starts, monkeypatch, tmp_path):
    output, settings = io.StringIO(), ["training.precision=float32", "training.trackers=[wandb]"]
    train(tmp_path / "run", *settings, "training.max_steps=7", output=output)
    train(tmp_path / "run", *settings, resume=True, output=output)
    first, second = starts
    assert [(start["before"], start["step"]) for start in starts] == [("", 0), ("first", 7)]
    assert (first["name"], first["seed"], first["closed"], second["closed"]) == ("run", 1, True, True)
    assert threading.main_thread() not in (first["thread"], second["thread"])
    assert first["rows"] + second["rows"] == expected_rows(tmp_path / "run")
    assert "the tracker" not in output.getvalue()
    # The same training with a tracker that fails.
    monkeypatch.setitem(trackers.TRACKERS, "wandb", lambda run: {}["key"])
    train(tmp_path / "failing", *settings, "training.max_steps=7", output=output)
    line = (
        "warning: the tracker wandb failed, and gets no more figures (KeyError: 'key'); metrics.jsonl has all of them\n"
    )
    assert output.getvalue().count("the tracker") == output.getvalue().count(line) == 1
    train(tmp_path / "failing", *settings, "training.trackers=[]", resume=True)
    (tensors, _), (failing_tensors, _) = (
        load_tensors(tmp_path / name / "model.safetensors") for name in ("run", "failing")
    )
    assert all(torch.equal(tensors[name], failing_tensors[name]) for name in tensors)


def test_a_tracker_gets_the_comparison_at_the_end(starts, configured):
    best, last = (Validation(loss, 9.0, 0.5, {"bleu": 100 * loss}, 100 * loss, []) for loss in (0.25, 0.5))
    written = record.Record(configured, TrainingOptions(trackers=["wandb"]), 0, pytest.fail)
    written.write_selection(Progress(step=14, best_step=14, seconds=3.5), 7, best, last)
    written.close()
    expected = {"sentences": 0, "kept_step": 14, "best_step": 7}
    expected |= {"best_score": 25, "best_loss": 0.25, "last_score": 50, "last_loss": 0.5}
    assert starts[0]["rows"] == [(14, {f"selection/{name}": value for name, value in expected.items()})]
    assert configured.metrics() == [{"kind": "selection", "step": 14, "seconds": 3.5, **expected}]


def test_training_does_not_wait_for_a_tracker_that_hangs(starts, monkeypatch, configured):
    hanging = threading.Event()
    monkeypatch.setattr(trackers, "MAX_WAITING", 2)
    monkeypatch.setitem(trackers.TRACKERS, "wandb", lambda run: hanging.wait())
    background = Background("wandb", configured, 0)
    for step in range(3):
        assert background.warning == ""
        background.log({"training/loss": 1.0}, step)
    assert background.warning == "is too slow: some figures are left out"
    background.close()
    background.warning = ""
    background.wait(0.01)
    assert background.warning == "did not finish within 60 seconds: some figures are missing"
    hanging.set()


def test_a_missing_package_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    for name in ("wandb", "mlflow", "trackio"):
        with pytest.raises(
            UserError, match=rf"training\.trackers={name} needs the package {name}\. Install it with pip"
        ):
            check_packages(["tensorboard", name])
    assert "without TensorBoard all figures are in metrics.jsonl" in check_packages(["tensorboard"])
    assert check_packages([]) == ""
    monkeypatch.undo()
    (tmp_path / "folder_of_a_tracker").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert not trackers.is_installed("folder_of_a_tracker") and trackers.is_installed("json")


def test_names_and_settings_of_a_run(configured):
    settings = TrackedRun(configured, 0, "").settings()
    assert settings["training.seed"] == 5 and settings["data.mix"] == {"c.tsv": 0.5}
    assert isinstance(settings["data.tokenizer.vocabulary"], int)
    assert TrackedRun(RunFolder(Path("runs/base/seed-3")), 0, "").name == "base-seed-3"


@pytest.fixture
def configured(tmp_path):
    """Return a run folder that holds only a configuration."""
    run = RunFolder(tmp_path / "mine")
    run.path.mkdir()
    files = ["data.train=[a.tsv]", "data.mix={c.tsv: 0.5}", "training.seed=5"]
    run.save_configuration(resolve(preset="tiny", assignments=files))
    return run


def log_twice(name, run):
    """Log a row as two processes in turn would; the second continues the run of the first."""
    identities = []
    for step in (0, 10):
        time.sleep(step / 9)  # Weights & Biases names a folder by the second in which a process starts
        background = Background(name, run, step)
        background.log({"training/loss": 2.5 - step / 10, "validation/bleu.en-fr": 30.25}, step + 5)
        background.close()
        background.wait(300)
        assert background.warning == ""
        identities.append((run.trackers_folder / f"{name}.id").read_text())
    assert identities[0] == identities[1]
    return identities[0].strip()


def records(file):
    """Yield the records of an offline run of Weights & Biases, a log in LevelDB's format with blocks of 32 KiB."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, content = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:  # the rest of a block is padding
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        at += 7 + length
        if at > len(data):
            return
        content += data[at - length : at]
        if kind in (1, 4):  # a full record, or the last part of one
            yield Record.FromString(content)
            content = b""


def finished_records(file):
    """Return the records of a finished run; the process of Weights & Biases may still be writing the last ones."""
    until = time.monotonic() + 300
    while True:
        written = list(records(file))
        if written and written[-1].WhichOneof("record_type") == "exit":
            return written
        assert time.monotonic() < until, "the run has no end"
        time.sleep(0.05)


def test_weights_and_biases_offline(configured, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    identity = log_twice("wandb", configured)
    files = sorted(configured.trackers_folder.glob(f"wandb/offline-run-*-{identity}/run-{identity}.wandb"))
    assert len(files) == 2
    rows, settings, names = [], {}, set()
    for written in chain.from_iterable(map(finished_records, files)):
        kind = written.WhichOneof("record_type")
        if kind == "history":
            row = {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in written.history.item}
            rows.append((written.history.step.num, row["training/loss"], row["validation/bleu.en-fr"]))
        elif kind == "run":
            names.add((written.run.run_id, written.run.display_name, written.run.project))
            settings |= {item.key: json.loads(item.value_json) for item in written.run.config.update}
    assert sorted(rows) == [(5, 2.5, 30.25), (15, 1.5, 30.25)]
    assert names == {(identity, "mine", "translucid")}
    assert settings["training.seed"] == 5


def needs(name):
    """Skip a test of a package that is not installed by default."""
    return pytest.mark.skipif(not trackers.is_installed(name), reason=f"make test-trackers installs {name}")


@needs("mlflow")
def test_mlflow_with_sqlite(configured, monkeypatch, tmp_path):
    import mlflow

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    identity = log_twice("mlflow", configured)
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    run = client.get_run(identity)
    assert (run.info.run_name, run.info.status, run.data.params["training.seed"]) == ("mine", "FINISHED", "5")
    history = client.get_metric_history(identity, "training/loss")
    assert sorted((metric.step, metric.value) for metric in history) == [(5, 2.5), (15, 1.5)]
    assert run.data.metrics["validation/bleu.en-fr"] == 30.25


@needs("trackio")
def test_trackio_on_this_machine(configured, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    identity = log_twice("trackio", configured)
    assert identity.startswith("mine-")
    assert capfd.readouterr().out == ""
    (file,) = (tmp_path / "trackio").glob("translucid*.db")
    with sqlite3.connect(file) as database:
        rows = database.execute("select run_name, step, metrics from metrics order by step").fetchall()
        ((settings,),) = database.execute("select config from configs").fetchall()
    assert [(name, step) for name, step, _ in rows] == [(identity, 5), (identity, 15)]
    assert [json.loads(row)["training/loss"] for _, _, row in rows] == [2.5, 1.5]
    assert json.loads(settings)["training.seed"] == 5
