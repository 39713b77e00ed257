"""The reference of the Python library: the public interface, from the docstrings."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import translucid

HOUSE = Path(translucid.__file__).parents[1]
ROOMS = {
    "api": "`Translator` and its results.",
    "attention": "Scores, weights, context; masks; heads.",
    "layers": "Embeddings, positions, residual sublayers, feed-forward and recurrent layers.",
    "models": "The protocol of all models, and the models.",
    "data": "Readers, tokenizers, batches, cleaning.",
    "corpora": "The phrasebook: a generated corpus with gold alignments.",
    "decoding": "Greedy search, beam search and sampling.",
    "evaluation": "BLEU, chrF, chrF++, TER, alignment error rate, calibration.",
    "inspection": "Attention maps, alignments, explanations, plots.",
    "terminology": "Term lists, matching, inflected forms, usage.",
    "runs": "Configuration, presets, the run folder.",
    "training": "Objective, schedules, trainer, checkpoints.",
    "language": "Language models and text classifiers: models, data, evaluation, generation, embeddings.",
    "captions": "Image captioners: models, images, search, evaluation, explanations, generated scenes.",
    "memory": "Memories of any corpus; near matches beside the source.",
}
BITEXT = "[Documents, translation memories and bilingual files](../bitext.md), without Translucid."


def write(staged: Path, described: bool) -> None:
    """Write a page for each package, and an index; the pages have only headings unless `described`."""
    folder = staged / "python"
    folder.mkdir()
    lines = [
        "# Python",
        "",
        "The letters of tensor shapes are explained in [shapes.py](../../src/translucid/ground/shapes.py).",
        "",
    ]
    lines += ["| | |", "| --- | --- |"]
    packages = {f"translucid.{room}": what for room, what in ROOMS.items()} | {"bitext": BITEXT}
    for package, what in packages.items():
        page = [f"# {package}", "", what, ""]
        if names := getattr(import_module(package), "__all__", []):
            page += [f"Public names: {', '.join(f'`{name}`' for name in names)}.", ""]
        for module in _modules(HOUSE / package.replace(".", "/")):
            page += _section(module, package, described)
        (folder / f"{package}.md").write_text("\n".join(page), encoding="utf-8")
        lines.append(f"| [{package}]({package}.md) | {what} |")
    lines += ["", "```{toctree}", ":hidden:", "", *packages, "```", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def _section(module: str, package: str, described: bool) -> list[str]:
    """Return the Markdown of a module; a package's own module has no heading."""
    told = [f".. automodule:: {module}"]
    if (HOUSE / module.replace(".", "/")).is_dir():
        told.append("   :no-members:")  # they are in separate modules
    heading = [] if module == package else [f"## {module.removeprefix(f'{package}.')}", ""]
    return [*heading, *(["```{eval-rst}", *told, "```", ""] if described else [])]


def _modules(room: Path) -> list[str]:
    """Return the documented modules of a package, those in folders last."""
    files = [file for file in sorted(room.rglob("*.py"), key=lambda file: (len(file.parts), file)) if _speaks(file)]
    names = [".".join(file.relative_to(HOUSE).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names]


def _speaks(file: Path) -> bool:
    return file.read_text(encoding="utf-8").startswith('"""')
