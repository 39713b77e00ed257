"""The table of kinds of models: our own, and those of other packages."""

import sys
from types import ModuleType

import pytest

from translucid import UserError
from translucid.cli.main import run, tree
from translucid.models import kinds
from translucid.models.kinds import Task, options_of_kind, task_of
from translucid.models.model_options import TransformerOptions
from translucid.runs.configuration import resolve
from translucid.runs.presets import Preset


class Entry:
    """An entry point."""

    value = "parsers.task:PARSING"

    def load(self):
        return Task(
            reads="trees",
            does="parses",
            command="parse",
            kinds={"tree": "parsers:TreeOptions"},
            dataset="parsers:Trees",
            presets="parsers:PRESETS",
            commands={"parse": ("Translate", "parsers:parse")},
        )


@pytest.fixture
def parsers(monkeypatch):
    """Another package that is installed; returns what its command was called with."""
    module, calls = ModuleType("parsers"), []

    class TreeOptions(TransformerOptions):
        kind: str = "tree"

    def parse(text: str, depth: int = 2) -> None:
        """Parse a text."""
        calls.append((text, depth))

    module.TreeOptions, module.parse = TreeOptions, parse
    module.PRESETS = {"bush": Preset("small trees", {"model": {"kind": "tree", "width": 12}})}
    monkeypatch.setitem(sys.modules, "parsers", module)
    monkeypatch.setattr(kinds, "entry_points", lambda group: [Entry()] if group == "translucid.kinds" else [])
    kinds.installed_tasks.cache_clear()
    yield calls
    kinds.installed_tasks.cache_clear()
    tree().commands.pop("parse", None)


def test_kinds_presets_and_commands_of_another_package(parsers):
    assert task_of("trees").does == "parses"
    assert resolve(preset="bush").model.width == 12 and resolve(assignments=["model.kind=tree"]).model.kind == "tree"
    assert run(["parse", "a b", "--depth", "3"]) == 0 and parsers == [("a b", 3)]


def test_entry_points_are_read_only_for_unknown_names(monkeypatch):
    def refuse(group):
        raise AssertionError("reading them takes milliseconds")

    monkeypatch.setattr(kinds, "entry_points", refuse)
    kinds.installed_tasks.cache_clear()
    assert resolve(preset="small").model.kind == "transformer"
    for task in kinds.tasks():
        for kind in task.kinds:
            assert options_of_kind(kind).model_fields["kind"].default == kind
            assert task_of(task.reads) is task


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["model.kind=captionr"], "model.kind: there is no 'captionr'. Did you mean 'captioner'"),
        (
            ["model.kind=classifier", "model.language.kind=language-lst"],
            "model.language.kind: there is no 'language-lst'",
        ),
        (["model.kind=classifier", "model.language.widht=3"], "there is no key 'model.language.widht'"),
        (["model.elmo.kind=language-lstm"], "model.elmo.kind: there is no 'language-lstm'"),
        (["model=3"], "model: Input should be a valid dictionary or object to extract fields from, not 3"),
    ],
)
def test_unknown_kinds_and_keys_are_named(assignments, message):
    with pytest.raises(UserError) as error:
        resolve(assignments=assignments)
    assert message in str(error.value)
