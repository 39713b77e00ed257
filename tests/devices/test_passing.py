"""The device that a caller names is passed on to the function that uses it."""

from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

import translucid
from translucid.captions.demonstration import train_caption_demo
from translucid.cli.main import run
from translucid.cli.memory import _train_update
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.tuned import Tuned
from translucid.engines.tuning import Tuning
from translucid.ground.console import Console
from translucid.jobs.cluster import ray_cluster
from translucid.jobs.job import TranslationJob
from translucid.jobs.processes import processes
from translucid.lessons.demonstration import train_demo
from translucid.lessons.runs import demo_run, recurrent_run
from translucid.runs.configuration import resolve
from translucid.training.experiment import run_experiment
from translucid.training.post_training import measure_trained

PAIRS = [("uno", "one")]
QUIET = Console(quiet=True)
LESSON = SimpleNamespace(configuration=None, general=(), pairs=1, held_out=1)
TRAINED = SimpleNamespace(
    device="cpu",
    workers=SimpleNamespace(leads=True),
    finished=True,
    progress=SimpleNamespace(best_score=1.0),
    validator=SimpleNamespace(comparable=float),
    run=SimpleNamespace(path="", configuration=resolve),
)


def save_tuning(out):
    """Save the result of `translucid tune`, which converts the model for the CPU."""
    out.mkdir()
    tokenizer = SimpleNamespace(target_word_starts=lambda: [True], target_opening=[])
    folder = SimpleNamespace(path=out)
    fields = {"configuration": resolve(), "model": None, "tokenizer": tokenizer}
    tuning = SimpleNamespace(folder=folder, on_gpu=False, **fields)
    Tuning.save(tuning, SimpleNamespace(is_meaningful=True, tuned=Tuned()), 1.0, None)


class ReachedError(Exception):
    """The function has been called."""


@pytest.mark.parametrize(
    ("target", "call"),
    [
        ("lessons.demonstration.train_demo", lambda out: run(["demo", "--out", str(out), "--device", "cpu"])),
        (
            "captions.demonstration.train_caption_demo",
            lambda out: run(["demo", "--captions", "--out", str(out), "--device", "cpu"]),
        ),
        (
            "lessons.demonstration.prepared",
            lambda out: train_demo(out, overwrite=False, device="cpu", console=QUIET),
        ),
        ("lessons.runs.train_demo", lambda out: demo_run(out, "cpu")),
        ("lessons.runs.run_experiment", lambda out: recurrent_run("dot", out, "cpu")),
        (
            "captions.demonstration.run_experiment",
            lambda out: train_caption_demo(out, overwrite=False, device="cpu", console=QUIET),
        ),
        (
            "training.train.run_experiment",
            lambda out: translucid.train(PAIRS, out, valid=PAIRS, settings={"training.batch_tokens": 9}, device="cpu"),
        ),
        ("training.experiment.prepared", lambda out: run_experiment(resolve(), out, device="cpu")),
        ("training.experiment.prepared", lambda out: _train_update(LESSON, out, False, "cpu", None, QUIET)),
        ("training.post_training.fit_validation_scores", lambda out: measure_trained(TRAINED, QUIET)),
        ("engines.tuning.choose_engine", lambda out: save_tuning(out)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_device_is_passed_on(target, call, tmp_path, monkeypatch):
    devices = []

    def reach(*rest, device, **options):
        devices.append(device)
        raise ReachedError

    monkeypatch.setattr(f"translucid.{target}", reach)
    # Nothing is trained, so little text is enough.
    monkeypatch.setattr("translucid.lessons.demonstration.SIZES", dict.fromkeys(["train", "valid", "test"], 2))
    monkeypatch.setattr("translucid.lessons.runs.PAIRS", 2)
    monkeypatch.setattr("translucid.captions.demonstration.pretrained_weights", lambda: None)
    monkeypatch.setattr("translucid.captions.demonstration.SCENES", 20)
    with suppress(ReachedError):  # commands catch and report it
        call(tmp_path / "run")
    assert devices == ["cpu"]


def test_the_demo_measures_its_validation_sentences_on_the_device(tmp_path, monkeypatch):
    devices = []

    @contextmanager
    def prepared(configuration, folder, **options):
        (folder / "phrasebook").mkdir(parents=True)
        yield SimpleNamespace(fit=lambda display: None), None

    monkeypatch.setattr("translucid.lessons.demonstration.prepared", prepared)
    monkeypatch.setattr("translucid.lessons.demonstration.SIZES", dict.fromkeys(["train", "valid", "test"], 2))
    monkeypatch.setattr(
        "translucid.lessons.demonstration.fit_validation_scores", lambda run, console, device: devices.append(device)
    )
    train_demo(tmp_path / "run", overwrite=False, device="cpu", console=QUIET)
    assert devices == ["cpu"]


def test_each_process_of_a_job_has_its_own_gpu(monkeypatch):
    jobs = []

    class Process:
        process = SimpleNamespace(kill=lambda: None, join=lambda: None)
        pipe = SimpleNamespace(close=lambda: None)

        def __init__(self, job, threads):
            jobs.append(job)

        def receive(self):
            return "cuda"

    monkeypatch.setattr("translucid.jobs.processes._Process", Process)
    monkeypatch.setattr("translucid.jobs.processes.device_of_worker", lambda device, i: f"{device}:{i}")
    with processes(TranslationJob(Path("run"), DecodingOptions(), device="cuda"), 2) as executor:
        assert executor.device == "cuda" and [job.device for job in jobs] == ["cuda:0", "cuda:1"]


def test_a_cluster_checks_a_job_on_the_cpu_and_gives_each_worker_a_gpu(monkeypatch):
    ray = SimpleNamespace(is_initialized=lambda: True, cluster_resources=lambda: {"GPU": 2.0})
    jobs = []
    monkeypatch.setattr("translucid.jobs.cluster._ray", lambda: ray)
    monkeypatch.setattr("translucid.jobs.cluster.Worker", lambda job, threads: jobs.append(job))
    with ray_cluster(TranslationJob(Path("run"), DecodingOptions()), Path("file"), "auto") as mapping:
        assert (jobs[0].device, mapping.job.device, mapping.workers) == ("cpu", "cuda", 2)
