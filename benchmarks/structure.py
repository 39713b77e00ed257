"""Figures about the structure of the source, for comparing commits: `python -m benchmarks.structure [CHECKOUT]`.

It reads files and imports nothing of the package. No test enforces the figures.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

EXTENSIONS = {
    "captions or images": re.compile("caption|image", re.IGNORECASE),
    "language models or classifiers": re.compile("language model|classif|elmo|ulmfit|embedder", re.IGNORECASE),
}
"""Words of the extensions, which the core should not mention."""
NOT_CORE = {"captions", "language", "corpora", "distillation"}
"""Packages above the core, and those that generate corpora."""
FLAG = re.compile(r"(?<![\w-])--(?!head|nproc|copy|porcelain|untracked|sparse|beach|size=)[a-z][a-z-]+")
"""A flag in a message, except those of other programs and examples."""
STYLES = re.compile(r"var\(--|--(ratio|picture): ")
"""Styles of pages, whose variables look like flags."""


def tracked(root: Path, *patterns: str) -> list[Path]:
    """Return the files that git tracks."""
    command = ["git", "ls-files", "--", *patterns]
    names = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    return [root / name for name in names if (root / name).is_file()]


def lines_of(files: list[Path]) -> int:
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def imported(file: Path, modules: set[str]) -> set[str]:
    """Return the modules of ours that a file imports anywhere, also in functions and for types."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names & modules


def cycles(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """Yield the sets of files that import each other (strongly connected components, Tarjan 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(name: str) -> Iterator[list[str]]:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in order:
                yield from visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            component = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(component) > 1:
                yield component

    for name in sorted(graph):
        if name not in order:
            yield from visit(name)


def flags_in_messages(file: Path) -> int:
    """Return the number of lines with a string, other than a docstring, that names a flag of the command line."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in described and FLAG.search(node.value) and not STYLES.search(node.value):
            found.add(node.lineno)
    return len(found)


def is_core(file: Path) -> bool:
    """Return whether a file below `src` belongs to the core of translucid."""
    package, *inside = file.parts
    return package == "translucid" and inside[0] not in NOT_CORE


def members(file: Path, name: str) -> int:
    """Return the number of public methods and properties that a class itself defines."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            functions = [part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
            return len({part.name for part in functions if not part.name.startswith("_")})
    return 0


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    source = tracked(root, "src/*.py")
    total = lines_of(source)
    texts = {file: file.read_text(encoding="utf-8") for file in source}
    imports = sum(len(re.findall(r"^\s*(?:from|import) ", text, re.MULTILINE)) for text in texts.values())
    names = {file: ".".join(file.relative_to(root / "src").with_suffix("").parts) for file in source}
    modules = {name.removesuffix(".__init__") for name in names.values()}
    graph = {names[file].removesuffix(".__init__"): imported(file, modules) for file in source}
    # The commands of extensions belong to the command line, too.
    outside = [
        file for file in source if "translucid/cli/" not in file.as_posix() and "translucid.cli" not in texts[file]
    ]
    rows = {
        "Python lines in src": total,
        "files in src": len(source),
        "import statements per 1,000 lines": round(1000 * imports / total),
        "groups of files that import each other": len(list(cycles(graph))),
        "lines outside cli/ whose messages name a flag": sum(map(flags_in_messages, outside)),
        "calls of refuse_*": sum(len(re.findall(r"(?<!def )\brefuse_\w+\(", text)) for text in texts.values()),
        "public members that Translator defines": members(root / "src/translucid/api/translator.py", "Translator"),
        "lines of tests": lines_of(tracked(root, "tests/*.py")),
        "pages of docs": len([page for page in tracked(root, "docs/*.md") if not {"claims", "site"} & {*page.parts}]),
    }
    core = {file: text for file, text in texts.items() if is_core(file.relative_to(root / "src"))}
    for what, words in EXTENSIONS.items():
        rows[f"files of the core that mention {what}"] = sum(bool(words.search(text)) for text in core.values())
    for what, value in rows.items():
        print(f"{value:>8,}  {what}")


if __name__ == "__main__":
    main()
