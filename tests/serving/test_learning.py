"""Adapters that a server learns from corrections; other processes stand in for the command that learns."""

import logging
import os
import shutil
import sys
import time

import pytest
import torch
from fastapi.testclient import TestClient

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.cli import main
from translucid.memory.learned_adapters import learned_adapters
from translucid.runs.adapters import save_adapter
from translucid.runs.run_folder import RunFolder
from translucid.serving import learning
from translucid.serving.app import create_app
from translucid.serving.catalog import load
from translucid.serving.memory import ServerMemory
from translucid.serving.server_options import ServerOptions

from .test_documents import wait_until

LANGUAGES = {"source": "en", "target": "es"}
TEXT = "I like soccer"


@pytest.fixture(scope="module")
def lesson(run, tmp_path_factory):
    """A folder with an adapter of the run that changes its translations, and one that changes nothing."""
    folder = tmp_path_factory.mktemp("lesson")
    generator, run_folder = torch.Generator().manual_seed(1), RunFolder(run)
    for name, scale in (("new", 1.0), ("initial", 0.0)):
        (folder / name).mkdir()
        differences = {}
        for weight_name, weight in Translator.load(run, "cpu", "torch").model.named_parameters():
            if weight.dim() == 2 and "feed_forward" in weight_name:
                up = scale * torch.randn(len(weight), 1, generator=generator)
                differences[weight_name] = up, torch.randn(1, weight.size(1), generator=generator)
        save_adapter(RunFolder(folder / name), differences, 1.0, run_folder.model_digest(), {})
    return folder


@pytest.fixture
def learned(lesson, tmp_path, monkeypatch):
    """A function that lets the next processes leave an adapter, or end with a message and no adapter."""

    def teach(name="", seconds=0.2):
        def command(run, memory, out):
            program = f"import os, shutil, sys, time; time.sleep({seconds}); "
            if name:
                program += f"shutil.copytree({str(lesson / name)!r}, {str(out)!r}); "
                program += f"open({str(tmp_path / 'priority')!r}, 'w').write(str(os.nice(0)))"
            else:
                program += "sys.exit('error: has 2 pairs. At least 20 are needed.')"
            return [sys.executable, "-S", "-c", program]

        monkeypatch.setattr(learning, "learning_command", command)

    return teach


@pytest.fixture
def client(run, tmp_path):
    """A client of a server that learns after each two corrections."""
    options = ServerOptions(hosts=("testserver",))
    catalog = load([str(run)], "cpu", options)
    memory = ServerMemory.open(tmp_path / "mine.memory", ("en", "es"), grows=True)
    memory.learn(catalog.find("en", "es").translator, 2)
    with TestClient(create_app(catalog, options, memory)) as client:
        client.memory = memory
        yield client


def suggest(client, *numbers):
    for number in numbers:
        assert client.post("/suggest", json={**LANGUAGES, "q": f"Dog {number}", "s": f"Perro {number}"}).is_success


def look(client):
    answer = client.post("/look", json={**LANGUAGES, "q": TEXT}).json()
    return answer["translation"], answer.get("adapter")


def test_translations_change_after_each_few_corrections_and_back_by_a_command(client, learned, tmp_path, capfd):
    learned("new")
    plain = look(client)
    assert plain[1] is None
    suggest(client, 1)
    assert client.memory.learner._thread is None
    suggest(client, 1, 2)  # the first is there already
    wait_until(lambda: look(client)[1])
    first = look(client)
    assert first[0] != plain[0] and first[1]["number"] == 1 and first[1]["when"].startswith("20")
    assert client.post("/translate", json={**LANGUAGES, "q": TEXT}).json()["translatedText"] == first[0]
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, os.getpid())
        assert int((tmp_path / "priority").read_text()) == min(own + learning.LESS_PRIORITY, 19)
    for number in (2, 3):
        wait_until(lambda: not client.memory.learner._thread.is_alive())
        suggest(client, 2 * number, 2 * number + 1)
        wait_until(lambda number=number: look(client)[1]["number"] == number)
    wait_until(lambda: not client.memory.learner._thread.is_alive())
    assert [*learned_adapters(tmp_path / "mine.memory")] == [2, 3] and not [*tmp_path.glob("*.learning")]
    arguments = ["memory", "forget", str(tmp_path / "mine.memory")]
    assert main.run(arguments) == 0 and "adapter-2.safetensors applies again" in capfd.readouterr().err
    assert look(client)[1]["number"] == 2
    assert main.run(arguments) == 0 and "there is no other" in capfd.readouterr().err
    assert look(client) == plain
    assert main.run(arguments) == 2 and "no server has learned from it" in capfd.readouterr().err


def test_what_fails_or_would_be_forgotten_changes_nothing(client, learned, tmp_path, caplog):
    plain, numbers = look(client), iter(range(9))
    messages = {"": "has 2 pairs. At least 20 are needed.", "initial": "would have forgotten too much"}
    for name, message in messages.items():
        learned(name)
        with caplog.at_level(logging.WARNING, "translucid.serving"):
            suggest(client, next(numbers), next(numbers))
            wait_until(lambda message=message: message in caplog.text)
        wait_until(lambda: not client.memory.learner._thread.is_alive())
        assert look(client) == plain and learned_adapters(tmp_path / "mine.memory") == {}


def test_a_server_that_stops_ends_the_process_and_one_that_starts_uses_the_adapter(client, run, learned, tmp_path):
    learned("new")
    plain = look(client)
    suggest(client, 1, 2)
    wait_until(lambda: look(client)[1])
    expected = look(client)
    wait_until(lambda: not client.memory.learner._thread.is_alive())
    learned("new", seconds=60)
    suggest(client, 3, 4)
    wait_until(lambda: client.memory.learner._process.poll() is None)
    client.memory.learner.close()
    assert client.memory.learner._process.poll() not in (None, 0)  # it did not end by itself
    suggest(client, 5, 6)  # nothing more is learned
    catalog = load([str(run)], "cpu", ServerOptions())
    again = ServerMemory.open(tmp_path / "mine.memory", ("en", "es"), grows=False)
    again.learn(catalog.find("en", "es").translator, 2)
    translator = again.changed(catalog.find("en", "es").translator)
    assert translator.translate(TEXT).text == expected[0] != plain[0] and again.learned == expected[1]
    other = Translator.load(shutil.copytree(run, tmp_path / "other"), "cpu")
    assert again.changed(other) is other
    again.close()
    catalog.close()


def test_several_memories_take_turns(run, learned, tmp_path):
    learned("new", seconds=1)
    events = []
    learners = []
    for name in "ab":
        used = lambda adapter, name=name: events.append((name, time.monotonic()))  # noqa: E731
        learners.append(learning.AdapterLearner(run, tmp_path / f"{name}.memory", 1, used))
        learners[-1].corrected(1)
    wait_until(lambda: len(events) == 2)
    assert events[1][1] - events[0][1] >= 1
    for learner in learners:
        learner.corrected(1)
    wait_until(lambda: any(learner._process.poll() is None for learner in learners))
    for learner in learners:
        learner.close()
    assert len(events) == 2 and not any(learner._thread.is_alive() for learner in learners)


def test_the_command_is_one_of_ours(run, tmp_path, capfd):
    memory = tmp_path / "a.memory"
    with TranslationMemory.open(memory, write=True) as opened:
        opened.add([Pair("You sing.", "Cantas.")], "Ana")
    command = learning.learning_command(run, memory, tmp_path / "out")
    assert command[:3] == [sys.executable, "-m", "translucid"] and "training.adapter_rank=8" in command
    assert main.run(command[3:]) == 2 and "has 1 pairs. At least 20 are needed" in capfd.readouterr().err
