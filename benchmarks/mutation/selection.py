"""Which lines are mutated, and which tests run on a mutant, in which order."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.costs import markers_of

ROOT = Path(__file__).resolve().parents[2]
TESTS = {
    "kernels": "kernels attention layers training/test_objective.py contracts",
    "attention": "attention kernels layers models contracts reference",
    "layers": "layers contracts models attention reference devices/test_models.py",
    "models": "models contracts reference layers runs/test_configuration.py decoding api/test_translator.py "
    "devices/test_models.py",
    "training": "training cli/test_train.py cli/test_kinds.py cli/test_memory_learning.py",
    "training/hardware/ddp.py": "training/test_ddp.py",
    "training/hardware/sharding.py": "training/test_ddp.py",
    "decoding": "decoding contracts api/test_translator.py cli/test_translate.py inspection devices/test_searches.py",
    "evaluation": "evaluation cli/test_compare.py cli/test_others.py cli/test_translate.py training/test_trainer.py",
    "data": "data cli/test_clean.py training/test_data_loader.py",
    "bitext": "documents memory data/test_lines.py",
    "bitext/documents": "documents cli/test_documents.py",
    "bitext/memory": "memory cli/test_memory.py",
    "bitext/readers": "data documents",
    "memory": "memory cli/test_memory.py",
    "engines": "engines cli/test_translate.py training/test_terms.py api/test_translator.py combinations",
    "terminology": "terminology engines cli/test_terms.py",
    "api": "api combinations cli/test_translate.py cli/test_others.py cli/test_classify.py cli/test_confidence.py "
    "cli/test_embedding.py cli/test_generate.py cli/test_taught_links.py jobs/test_captioning.py",
    "interop": "interop",
    "serving": "serving",
    "live": "live cli/test_live.py serving/test_live.py",
    "retrieval": "retrieval",
    "circuits": "circuits serving/test_circuits.py",
    "captions": "captions jobs/test_captioning.py reference/test_captioner_numpy.py training/test_images.py "
    "training/test_self_critical.py models/test_attention_losses.py cli/test_looking_at_images.py "
    "inspection/test_explain_images.py serving/test_captioning.py serving/test_caption_fields.py",
    "language": "language layers/test_elmo_layers.py training/test_bilstm_training.py training/test_running_text.py "
    "training/test_stream_validator.py cli/test_classify.py cli/test_embedding.py cli/test_generate.py "
    "serving/test_text_models.py",
    **{
        package: package
        for package in ("cli", "corpora", "distillation", "ground", "inspection", "jobs", "lessons", "runs")
    },
}
"""The tests of each package; two files have their own."""
LEFT_OUT = {"training": "tests/training/test_ddp.py"}
"""Tests of a package that take too long to run after each change, besides those that need a browser."""


def place_of(changed: str) -> str:
    """Return the key of a file's tests."""
    return changed if changed in TESTS else room_of(changed)


def room_of(changed: str) -> str:
    """Return the package of a file: `training`, `bitext/documents`; `bitext` for the files that are in none."""
    folders = changed.split("/")[:-1]
    return "/".join(folders[:2]) if folders[0] == "bitext" else folders[0]


def tests_of(place: str) -> list[str]:
    """Return the test files of a package, except those that take too long after each change."""
    files = []
    for name in TESTS[place].split():
        test = ROOT / "tests" / name
        test_files = sorted(test.rglob("test_*.py")) if test.is_dir() else [test]
        files += [file.relative_to(ROOT).as_posix() for file in test_files if file.exists()]
    return [file for file in files if "browser" not in markers_of(file) and file != LEFT_OUT.get(place)]


def nearest_tests(changed: str, tests: Sequence[str]) -> list[str]:
    """Return the tests that are named after the changed file or its folder, and those that import it."""
    below_package = Path(changed).relative_to(room_of(changed)).with_suffix("").parts
    words = [word.removesuffix("s") for word in "_".join(below_package).split("_")]

    def is_named(test: str) -> bool:
        return any(word in Path(test).stem for word in words)

    by_name = list(filter(is_named, tests))
    module = ".".join(Path(changed).with_suffix("").parts)
    if not module.startswith("bitext."):
        module = f"translucid.{module}"
    parent, name = module.rsplit(".", 1)
    imported = re.compile(rf"\b{module}\b|from {parent} import .*\b{name}\b")
    importing = [test for test in tests if imported.search((ROOT / test).read_text(encoding="utf-8"))]
    # Those that are named and import it come first: they take the least time and detect the most.
    nearest = dict.fromkeys([*by_name, *importing])
    return sorted(nearest, key=lambda test: (test in by_name) + (test in importing), reverse=True)


def changed_lines(commit: str, folder: Path) -> dict[str, set[int]]:
    """Return the numbers of the lines that have changed since a commit, by Python file below a folder."""
    command = ["git", "diff", "-U0", "--diff-filter=d", "--relative", commit, "--", "*.py"]
    difference = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    lines: dict[str, set[int]] = {}
    name = ""
    for line in difference.splitlines():
        if line.startswith("+++ b/"):
            name = line.removeprefix("+++ b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, size = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(name, set()).update(range(first, first + size))
    return lines
