"""Ctrl-C and SIGTERM: what is saved, and which exit code is returned."""

import os
import signal
import subprocess
import sys
import time

import pytest

from translucid.ground.interruption import Interrupted
from translucid.runs.run_folder import RunFolder
from translucid.training.trainer import Trainer

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture
def interrupted_updates(monkeypatch):
    """Send the process a signal before each update: interrupted_updates(signal.SIGINT)."""
    update = Trainer._update

    def patch_updates(number):
        def interrupted(self, *args):
            os.kill(os.getpid(), number)
            return update(self, *args)

        monkeypatch.setattr(Trainer, "_update", interrupted)

    return patch_updates


@pytest.mark.parametrize("number", CODES)
def test_a_training_saves_and_says_so_by_its_exit_code(call, corpus, small_run, tmp_path, interrupted_updates, number):
    interrupted_updates(number)
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    result = call("train", "--init-from", small_run, *files, "--out", tmp_path / "run")
    assert result.code == CODES[number]
    assert f"resume with translucid train --resume --out {tmp_path / 'run'}" in result.err
    assert RunFolder(tmp_path / "run").load_state()[1]["place"]["step"] == 1
    assert call("train", "--resume", "--out", tmp_path / "run").code == CODES[number]


@pytest.mark.parametrize(("command", "number"), [("demo", signal.SIGINT), ("memory learn", signal.SIGTERM)])
def test_every_other_training_command_saves_and_returns_its_exit_code(
    call, corpus, small_run, tmp_path, interrupted_updates, monkeypatch, number, command
):
    interrupted_updates(number)
    monkeypatch.setattr("translucid.lessons.demonstration.SIZES", {"train": 4000, "valid": 20, "test": 20})
    arguments = [*command.split(), "--out", tmp_path / "run"]
    if command == "memory learn":
        arguments[2:2] = [small_run, corpus / "train.tsv"]
    assert call(*arguments).code == CODES[number]
    assert RunFolder(tmp_path / "run").load_state()[1]["place"]["step"] == 1


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize(
    ("command", "target"),
    [
        (["evaluate", "RUN", "--test", "PAIRS"], "translucid.api.evaluation.scoring.score"),
        (["translate", "RUN", "--input", "TEXT"], "translucid.jobs.running.run"),
        (["tune", "speed", "RUN"], "translucid.engines.tuning.find_fastest"),
        (["data", "clean", "PAIRS", "--out", "OUT.tsv"], "translucid.data.cleaning.Cleaner"),
        (["export", "RUN", "OUT"], "translucid.api.translator.Translator.load"),
    ],
)
def test_every_long_command_tells_by_its_exit_code(
    call, corpus, small_run, tmp_path, monkeypatch, number, command, target
):
    def interrupted(*args, **kwargs):
        raise Interrupted(number) if number == signal.SIGTERM else KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(target, interrupted)
    text = corpus / "interrupted.txt"
    text.write_text("A dog.\n")
    names = {"RUN": small_run, "PAIRS": corpus / "test.tsv", "TEXT": text}
    assert call(*(names.get(word, word) for word in command)).code == CODES[number]
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(os.name != "posix", reason="signals are sent")
@pytest.mark.parametrize("number", CODES)
def test_a_process_that_is_told_to_end_leaves_nothing_half_written(small_run, tmp_path, number):
    out = tmp_path / "out.txt"
    command = [sys.executable, "-m", "translucid", "translate", str(small_run), "--input", "-", "--output", str(out)]
    # Some shells start background processes with Ctrl-C ignored, which this process would inherit.
    program = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = subprocess.Popen([sys.executable, "-c", program, *command], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    while not (tmp_path / ".out.txt.lock").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == CODES[number], stderr
    assert b"interrupted" in stderr and not [*tmp_path.iterdir()]
