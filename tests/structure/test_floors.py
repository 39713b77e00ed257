"""Each package imports only from those below it, and nothing private is set from outside."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

import translucid
from translucid.models import kinds

SOURCE = Path(translucid.__file__).parents[1]
LAYERS = [
    "bitext",
    "ground",
    "kernels",
    "attention",
    "layers",
    "models",
    "data",
    "corpora",
    "memory",
    "decoding",
    "evaluation",
    "terminology",
    "inspection",
    "runs",
    "engines",
    "interop",
    "api",
    "training",
    "jobs",
    "distillation",
    "serving",
    "lessons",
    "cli",
    "language",
    "captions",
    "live",
    "circuits",
    "retrieval",
]
"""Packages from the bottom up: each imports only from those above it in this list. `bitext` stands beside ours."""
EXTENSIONS = {"language", "captions", "live", "circuits", "retrieval"}
"""Packages for other tasks than translating whole texts. No other package imports them or names their modules."""
ENTRIES = ["__init__", "__main__"]
FILES = sorted([*(SOURCE / "bitext").rglob("*.py"), *(SOURCE / "translucid").rglob("*.py")])


def package_of(file: Path) -> str:
    top, inside, *_ = file.relative_to(SOURCE).parts
    return inside.removesuffix(".py") if top == "translucid" else top


def nodes_of(source: str) -> list[ast.AST]:
    """Return all nodes of a source."""
    return [*ast.walk(ast.parse(source))]


class Contents(NamedTuple):
    """The properties of a file that these tests check."""

    packages: set[str]
    """Packages of ours that it imports."""
    modules: set[str]
    """Dotted names of all that it imports."""
    modules_at_once: set[str]
    """Those of them that it imports outside functions."""
    extensions: set[str]
    """Extensions that its strings name."""
    private: list[str]
    """Private attributes that it sets from outside."""
    defined_twice: list[str]
    """Names that the module defines more than once."""


@cache
def contents(file: Path) -> Contents:
    """Parse a file, once for all tests."""
    nodes = nodes_of(file.read_text(encoding="utf-8"))
    (module, *_) = nodes
    assert isinstance(module, ast.Module)
    return Contents(
        imported_packages(nodes),
        imported_modules(nodes),
        imported_modules(module.body),
        named_extensions(nodes),
        private_attributes_set(nodes),
        names_defined_twice(nodes),
    )


def imported_packages(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the packages of ours that are imported, also inside functions."""
    packages = set()
    for name in imported_modules(nodes):
        parts = name.split(".")
        if parts[0] == "bitext":
            packages.add("bitext")
        elif parts[0] == "translucid" and len(parts) > 1 and parts[1] in LAYERS:
            packages.add(parts[1])
    return packages


def imported_modules(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the dotted names of all that is imported, also inside functions."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def all_imports() -> dict[str, set[str]]:
    """Return what each package imports from others."""
    imports: dict[str, set[str]] = {}
    for file in FILES:
        package = package_of(file)
        imports.setdefault(package, set()).update(contents(file).packages - {package})
    return imports


def test_every_package_is_in_the_list():
    assert {package_of(file) for file in FILES} == {*LAYERS, *ENTRIES}


def test_the_diagram_of_contributing_is_the_same_list():
    text = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    diagram = text.split("## Layers")[1].split("```")[1].splitlines()[1:]
    assert [line.split()[0] for line in diagram] == LAYERS[::-1]


def test_imports_go_down():
    upwards = {}
    for file in FILES:
        package = package_of(file)
        if package in ENTRIES:  # they import lazily what users ask for
            continue
        below = LAYERS[: LAYERS.index(package)]
        if above := contents(file).packages - {package, *below}:
            upwards[str(file.relative_to(SOURCE))] = above
    assert not upwards


GENERATORS = {
    "translucid.corpora.phrasebook": {
        "cli/data.py",
        "lessons/demonstration.py",
        "lessons/recording.py",
        "lessons/runs.py",
    },
    "translucid.captions.scenes": {"captions/commands.py", "captions/demonstration.py", "captions/pointing.py"},
    "translucid.captions.pointing": set[str](),
}
"""The generated corpora, and the files that import them: commands that write or demonstrate them, and gold boxes."""


def test_other_commands_do_not_import_the_generated_corpora():
    importers = {module: set[str]() for module in GENERATORS}
    for file in FILES:
        for module in GENERATORS:
            # Without a file of gold boxes, nothing needs the words of the scenes: only functions import them.
            is_pointing = module.endswith("pointing")
            imported_here = contents(file).modules_at_once if is_pointing else contents(file).modules
            name = file.relative_to(SOURCE / "translucid" if "translucid" in file.parts else SOURCE).as_posix()
            is_own = name.startswith(module.removeprefix("translucid.").replace(".", "/"))
            if not is_own and any(imported.startswith(f"{module}.") for imported in imported_here):
                importers[module].add(name)
    assert importers == GENERATORS


def named_extensions(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the extensions that strings name, such as a reference `translucid.captions.model:CaptioningLSTM`."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update(re.findall(r"\btranslucid\.(\w+)\.\w", node.value))
    return names & EXTENSIONS


def test_the_core_does_not_know_the_extensions():
    """Their records are named in one place, and are found there even if the installed metadata is older."""
    knowing = {}
    for file in FILES:
        if package_of(file) in EXTENSIONS | {*ENTRIES}:
            continue
        if names := contents(file).extensions | (contents(file).packages & EXTENSIONS):
            knowing[str(file.relative_to(SOURCE / "translucid"))] = names
    assert knowing == {"models/kinds.py": EXTENSIONS}
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(project["entry-points"][kinds.GROUP].values()) == sorted(kinds.BUILT_IN)


def test_services_of_the_server_do_not_import_routes():
    """Routes and dialects of other programs call services, and not each other; the table of paths knows both."""
    serving = SOURCE / "translucid" / "serving"
    handlers = tuple(f"translucid.serving.{name}" for name in ("routes", "dialects", "routing"))
    upwards = {}
    for file in serving.rglob("*.py"):
        name = file.relative_to(serving).as_posix()
        own = f"translucid.serving.{file.parent.name}."
        modules = contents(file).modules
        above = {module for module in modules if module.startswith(handlers) and not module.startswith(own)}
        if above and name not in ("app.py", "routing.py"):
            upwards[name] = above
    assert not upwards


def test_extensions_do_not_import_each_other():
    for file in FILES:
        package = package_of(file)
        if package in EXTENSIONS:
            assert not contents(file).packages & (EXTENSIONS - {package}), file


def test_knowing_an_extension_is_detected():
    assert named_extensions(nodes_of("f('translucid.captions.model:X')")) == {"captions"}
    assert named_extensions(nodes_of("f('translucid.captioning', 'captions')")) == set()


@pytest.mark.parametrize("package", ["runs", "engines", "api"])
def test_inference_does_not_need_training(package):
    """No import of the inference packages leads to training, even indirectly."""
    imports = all_imports()
    reached, next_ones = set(), {package}
    while next_ones:
        reached |= next_ones
        next_ones = set().union(*(imports[name] for name in next_ones)) - reached
    assert "models" in reached
    assert not reached & {"training", "jobs", "serving", "lessons", "cli"}


def test_upward_imports_are_detected():
    inside = "def f():\n    from translucid.training.trainer import Trainer"
    assert imported_packages(nodes_of(inside)) == {"training"}
    several = "from translucid import decoding, __version__\nimport translucid.cli.main\nimport bitext"
    assert imported_packages(nodes_of(several)) == {"bitext", "decoding", "cli"}


def _sets_an_attribute(function: ast.expr) -> bool:
    """Whether a function that is called is `setattr` or `object.__setattr__`."""
    if isinstance(function, ast.Attribute):
        return function.attr == "__setattr__" and ast.unparse(function.value) == "object"
    return isinstance(function, ast.Name) and function.id == "setattr"


def private_attributes_set(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the attributes beginning with `_` that are set on anything but `self` and `cls`."""
    attributes = []
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del) and node.attr.startswith("_"):
            if ast.unparse(node.value) not in {"self", "cls"} and not node.attr.startswith("__"):
                attributes.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and _sets_an_attribute(node.func):
            target, *name = node.args[:2]
            private = any(isinstance(target, ast.Constant) and str(target.value).startswith("_") for target in name)
            if private and ast.unparse(target) not in {"self", "cls"}:
                attributes.append(ast.unparse(node))
    return attributes


def test_nothing_private_is_set_from_outside():
    by_file = {str(file.relative_to(SOURCE)): contents(file).private for file in FILES}
    assert not {file: attributes for file, attributes in by_file.items() if attributes}


def test_private_attributes_set_from_outside_are_detected():
    code = "self._a = cls._b = 1\nother._c, self.d._e = 1, 2\nother._f += 1\nsetattr(other, '_g', 1)\nx.__doc__ = ''"
    assert {*private_attributes_set(nodes_of(code))} == {
        "other._c",
        "self.d._e",
        "other._f",
        "setattr(other, '_g', 1)",
    }


def defined_names(statement: ast.AST) -> list[str]:
    """Return the names that a statement of a module defines; none for an overload, whose name is defined again."""
    if isinstance(statement, ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        is_overload = any(ast.unparse(decorator) == "overload" for decorator in statement.decorator_list)
        return [] if is_overload else [statement.name]
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    nodes = chain.from_iterable(map(ast.walk, targets))
    return [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def names_defined_twice(nodes: Sequence[ast.AST]) -> list[str]:
    """Return the names that a module, the first node, defines more than once: functions read the last value only."""
    module = nodes[0]
    assert isinstance(module, ast.Module)
    names = Counter(chain.from_iterable(map(defined_names, module.body)))
    return [name for name, count in names.items() if count > 1]


def test_no_module_defines_a_name_twice():
    by_file = {str(file.relative_to(SOURCE)): contents(file).defined_twice for file in FILES}
    assert not {file: names for file, names in by_file.items() if names}


def test_names_defined_twice_are_detected():
    code = "A = 1\nB, C = 1, 2\ndef f(): A = 3\nA: int = 2\nclass C: B = 2\n@overload\ndef g(): ...\ndef g(): ..."
    assert names_defined_twice(nodes_of(code)) == ["A", "C"]
