"""The kinds of models: one table of tasks, each with its models and with what the rest of the core calls for it.

The core translates. Every other task is an extension: a package that registers a `Task` as an entry point of the group
`translucid.kinds`. Its members are references such as `my_package.model:MyOptions`, which are imported when they are
first used, so that a command pays only for the task of its run.

Our own extensions are in `BUILT_IN`, too: they are found without reading the metadata of all installed packages, which
takes as long as a short translation, and in a checkout whose metadata is older than its files. The entry points of
other packages are read when a name is not in the table. This runs their code, as an import does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

GROUP = "translucid.kinds"
"""The group of entry points."""
BUILT_IN = (
    "translucid.captions.kinds:CAPTIONING",
    "translucid.language.kinds:CLASSIFICATION",
    "translucid.language.kinds:LANGUAGE_MODELING",
)
"""The tasks of our own extensions."""
EXTENSIONS = (
    "translucid.live.kinds:LIVE",
    "translucid.circuits.kinds:CIRCUITS",
    "translucid.retrieval.kinds:RETRIEVAL",
)
"""Our extensions without models of their own."""


@dataclass(frozen=True)
class Served:
    """A task on the server."""

    model: str
    """The class of its models, with a class method `load(run, *, device)`."""
    reads: str
    """What its models read, for `GET /models`."""
    shows: str
    """The word before the names of its models when the server starts."""
    does: str
    """What its models do, for error messages."""
    routes: Mapping[str, tuple[str, str]]
    """For each method and path, such as `POST /label`, the handler and the fields of its requests: a method of a class
    of `serving.requests.Handlers`, and a subclass of `serving.requests.Fields`. Error messages name the first path. The
    handlers need PyTorch, and are imported when they are first used; the fields do not need it."""
    explanations: tuple[str, Mapping[str, tuple[str, str]]] | None = None
    """The name under which `GET /frontend/settings` lists the methods that explain its models, and the packages that
    methods need further, as in `inspection.explain.available_methods`."""


@dataclass(frozen=True)
class Task:
    """A task and the kinds of models for it. References are `module:name`."""

    reads: str
    """The input of its models, which names the task: `ModelShape.reads` of their options."""
    does: str
    """What its models do, such as `translates text`."""
    command: str
    """The command for it."""
    kinds: Mapping[str, str]
    """The class of the options, a `ModelShape`, for each value of `model.kind`."""
    dataset: str
    """The `training.dataset.Dataset` that prepares its corpora, made from a configuration and these corpora."""
    reads_pairs: bool = True
    """Whether a corpus has pairs, rather than texts or texts with labels."""
    loss: str | None = None
    """A function from a model to the `training.objective.LossFunction` of its batches, possibly a `CarriedLoss`; by
    default that of its target tokens."""
    presets: str | None = None
    """Its presets by name, if it has any."""
    problems: str | None = None
    """A function from a configuration to what is wrong with its settings for these models."""
    commands: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Its commands by name, such as `label` or `data label`, each with its heading in `translucid --help`, or ""
    in a group, and its function, or the group of its commands, a `typer.Typer`."""
    views: Mapping[str, str] = field(default_factory=dict)
    """What shared commands, such as `look` or `draw attention`, call for a run of it in place of their own work."""
    served: Served | None = None
    """What the server offers, if anything."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings such as `data.shift` that only its models have, each with the message for other models."""


@dataclass(frozen=True)
class PageSection:
    """A section of the server's page for translators, whose module is loaded when the section is first opened."""

    name: str
    """Its name in the page's address."""
    label: str
    """The text of the button that opens it."""
    module: str
    """The name of its JavaScript module, which exports `initSection(root, settings)`."""
    files: str
    """A function that returns the contents of its files by their names, which needs no PyTorch."""


@dataclass(frozen=True)
class InspectorTabs:
    """Tabs of the inspector of translations on the server's page, whose modules are loaded when they are opened."""

    tabs: Mapping[str, tuple[str, str]]
    """For each name, the text of its button, and the name of its JavaScript module, which exports `showTab(inspector)`
    (see `inspector.js`)."""
    parts: Mapping[str, str]
    """For the names of tabs of the core, the modules of what is shown below them, which export
    `showPart(inspector, root)`, called again when another map is chosen."""
    files: str
    """A function that returns the contents of their files by their names, which needs no PyTorch."""
    is_offered: str
    """A function that returns whether the page offers them for the model of a run folder, which needs no PyTorch."""


@dataclass(frozen=True)
class LessonFigures:
    """What the figures of lessons about an extension need. References are `module:name`."""

    records: Mapping[str, str]
    """By the name of a lesson, a function to the record that its figure shows, plain values: from a translator, a
    sentence, its translation, and what the lesson chooses."""
    is_ready: str
    """A function that returns whether a run folder has what the records need."""
    page: str
    """The folder of the JavaScript modules that the figures import."""
    styles: tuple[str, ...]
    """The names of the style sheets in this folder that they need."""


@dataclass(frozen=True)
class Extension:
    """What a package adds to translators, without a kind of model of its own. References are `module:name`."""

    methods: Mapping[str, str] = field(default_factory=dict)
    """What methods of `Translator` call, by their names: functions whose first argument is the translator."""
    interventions: Mapping[str, str] = field(default_factory=dict)
    """What the options of `cli.option.Interventions` call, by their names: functions from the run folder and the values
    of the option to an `inspection.intervention.Intervention`."""
    commands: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """As in `Task`."""
    routes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """As in `Served`."""
    sockets: Mapping[str, str] = field(default_factory=dict)
    """The handlers of WebSockets by their paths, as in `Served.routes`."""
    section: PageSection | None = None
    """What it adds to the server's page, if anything."""
    tabs: InspectorTabs | None = None
    """What it adds to the inspector of translations on this page, if anything."""
    lessons: LessonFigures | None = None
    """What lessons about it need, if there are any."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Groups of a run's configuration, each with the function that chooses it when a way to read word alignments is
    chosen: from a translator, all ways, the best first, and sentence pairs."""


TRANSLATION = Task(
    reads="text",
    does="translates text",
    command="translate",
    kinds={
        "transformer": "translucid.models.model_options:TransformerOptions",
        "recurrent": "translucid.models.model_options:RecurrentOptions",
        "attention-only": "translucid.models.model_options:AttentionOnlyOptions",
        "custom": "translucid.models.model_options:CustomOptions",
    },
    dataset="translucid.training.text:TextDataset",
)


def resolved(reference: str) -> Any:
    """Import what a reference `module:name` names; `name` may be dotted."""
    module, _, names = reference.partition(":")
    found = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


@cache
def tasks() -> tuple[Task, ...]:
    """Return the tasks of the core and of our own extensions."""
    return TRANSLATION, *map(resolved, BUILT_IN)


@cache
def installed_tasks() -> tuple[Task, ...]:
    """Return the tasks of other packages, which this imports."""
    ours = set(BUILT_IN)
    return tuple(entry.load() for entry in entry_points(group=GROUP) if entry.value not in ours)


@cache
def extensions() -> tuple[Extension, ...]:
    """Return our extensions of translators."""
    return tuple(map(resolved, EXTENSIONS))


def page_sections() -> list[PageSection]:
    """Return the sections that our extensions add to the server's page."""
    return [extension.section for extension in extensions() if extension.section]


def page_files() -> dict[str, str]:
    """Return the texts of the files that our extensions add to the server's page, by their names."""
    texts: dict[str, str] = {}
    for extension in extensions():
        for part in (extension.section, extension.tabs):
            if part:
                texts.update(resolved(part.files)())
    return texts


def inspector_tabs(run: Path) -> dict[str, list[dict[str, str]]]:
    """Return what our extensions offer for the model of a run folder, tabs and parts, as the server's page reads it."""
    tabs, parts = [], []
    for extension in extensions():
        if extension.tabs and resolved(extension.tabs.is_offered)(run):
            for name, (label, module) in extension.tabs.tabs.items():
                tabs.append({"name": name, "label": label, "module": module})
            for tab, module in extension.tabs.parts.items():
                parts.append({"tab": tab, "module": module})
    return {"tabs": tabs, "parts": parts} if tabs or parts else {}


def lesson_figures() -> list[LessonFigures]:
    """Return what lessons about our extensions need."""
    return [extension.lessons for extension in extensions() if extension.lessons]


def figures_of_lesson(name: str) -> LessonFigures | None:
    """Return what a lesson needs of an extension; None if it is not about one."""
    return next((figures for figures in lesson_figures() if name in figures.records), None)


def extension_method(name: str) -> Callable[..., Any]:
    """Import what a method of `Translator` calls."""
    references = [extension.methods[name] for extension in extensions() if name in extension.methods]
    method: Callable[..., Any] = resolved(references[0])
    return method


def extension_intervention(name: str) -> Callable[..., Any]:
    """Import what an option for interventions calls."""
    references = [extension.interventions[name] for extension in extensions() if name in extension.interventions]
    function: Callable[..., Any] = resolved(references[0])
    return function


def all_tasks() -> Iterator[Task]:
    """Yield the tasks of the core and of our extensions, then those of other packages, which are read only then."""
    yield from tasks()
    yield from installed_tasks()


def task_of(reads: str) -> Task:
    """Return the task whose models have this input."""
    return next(task for task in all_tasks() if task.reads == reads)


def options_of_kind(kind: object) -> type[BaseModel] | None:
    """Return the class of the options of a kind of model, a `ModelShape`; None if there is no such kind."""
    if isinstance(kind, str):
        for task in all_tasks():
            if kind in task.kinds:
                options: type[BaseModel] = resolved(task.kinds[kind])
                return options
    return None
