"""The reference of the Python library: the public interface, from the docstrings."""

from __future__ import annotations

from pathlib import Path

import translucid

HOUSE = Path(translucid.__file__).parent
ROOMS = {
    "api": "`Translator`, `Captioner`, `Generator`, `TextClassifier`, `Embedder`, and their results.",
    "attention": "Scores, weights, context; masks; heads.",
    "layers": "Embeddings, positions, residual sublayers, feed-forward and recurrent layers.",
    "models": "The protocol of all models, and the models.",
    "data": "Readers, tokenizers, batches, images, cleaning.",
    "corpora": "The phrasebook and the scenes: generated corpora with gold alignments and boxes.",
    "decoding": "Greedy search, beam search and sampling.",
    "evaluation": "BLEU, chrF, TER, CIDEr, alignment error rate, calibration.",
    "inspection": "Attention maps, alignments, explanations, plots.",
    "terminology": "Term lists, matching, inflected forms, usage.",
    "runs": "Configuration, presets, the run folder.",
    "training": "Objective, schedules, trainer, checkpoints.",
    "memory": "Translation memories.",
    "documents": "Document formats.",
}


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
    for room, what in ROOMS.items():
        title = f"translucid.{room}"
        page = [f"# {title}", "", what, ""]
        for module in _modules(HOUSE / room):
            page += _section(module, room, described)
        (folder / f"{room}.md").write_text("\n".join(page), encoding="utf-8")
        lines.append(f"| [{title}]({room}.md) | {what} |")
    lines += ["", "```{toctree}", ":hidden:", "", *ROOMS, "```", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def _section(module: str, room: str, described: bool) -> list[str]:
    """Return the Markdown of a module; a package's own module has no heading."""
    told = [f".. automodule:: translucid.{module}"]
    if (HOUSE / module.replace(".", "/")).is_dir():
        told.append("   :no-members:")  # they are in separate modules
    heading = [] if module == room else [f"## {module.removeprefix(f'{room}.')}", ""]
    return [*heading, *(["```{eval-rst}", *told, "```", ""] if described else [])]


def _modules(room: Path) -> list[str]:
    """Return the documented modules of a package, those in folders last."""
    files = [file for file in sorted(room.rglob("*.py"), key=lambda file: (len(file.parts), file)) if _speaks(file)]
    names = [".".join(file.relative_to(HOUSE).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names]


def _speaks(file: Path) -> bool:
    return file.read_text(encoding="utf-8").startswith('"""')
