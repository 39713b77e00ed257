"""Ctrl-C and SIGTERM: what is saved, and what exit code the next command of a script sees."""

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
    """Let the process be sent a signal before each update: interrupted_updates(signal.SIGINT)."""
    update = Trainer._update

    def interrupting(number):
        def interrupted(self, *given):
            os.kill(os.getpid(), number)
            return update(self, *given)

        monkeypatch.setattr(Trainer, "_update", interrupted)

    return interrupting


@pytest.mark.parametrize("number", CODES)
def test_a_training_saves_and_says_so_by_its_exit_code(call, corpus, small_run, tmp_path, interrupted_updates, number):
    interrupted_updates(number)
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    done = call("train", "--init-from", small_run, *files, "--out", tmp_path / "run")
    assert done.code == CODES[number]
    assert f"resume with translucid train --resume --out {tmp_path / 'run'}" in done.err
    assert RunFolder(tmp_path / "run").load_state()[1]["place"]["step"] == 1
    assert call("train", "--resume", "--out", tmp_path / "run").code == CODES[number]


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("command", ["demo", "memory learn"])
def test_so_does_every_other_command_that_trains(
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
    ("command", "where"),
    [
        (["evaluate", "RUN", "--test", "PAIRS"], "translucid.api.scoring.score"),
        (["translate", "RUN", "--input", "TEXT"], "translucid.jobs.running.run"),
        (["tune", "RUN"], "translucid.engines.tuning.find_fastest"),
        (["data", "clean", "PAIRS", "--out", "OUT.tsv"], "translucid.data.cleaning.cleaner.Cleaner"),
        (["export", "RUN", "OUT"], "translucid.api.translator.Translator.load"),
    ],
)
def test_every_long_command_tells_by_its_exit_code(
    call, corpus, small_run, tmp_path, monkeypatch, number, command, where
):
    def interrupted(*given, **more):
        raise Interrupted(number) if number == signal.SIGTERM else KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(where, interrupted)
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
    # Some shells let what they start in the background ignore Ctrl-C, which would go on to this process.
    heard = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    process = subprocess.Popen([sys.executable, "-c", heard, *command], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    while not (tmp_path / ".out.txt.lock").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=300)
    assert process.returncode == CODES[number], said
    assert b"interrupted" in said and not [*tmp_path.iterdir()]
