"""What tests cost: which need a browser, which train models, and which take long.

Each test gets the markers of its file. `make quick` leaves these files out, unread, as importing them takes time too;
`make test` begins with the files that take longest, so that no process ends with one of them.
"""

from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BROWSER = (
    "tests/lessons/test_figures.py",
    "tests/lessons/test_live.py",
    "tests/serving/test_page*.py",
    "tests/serving/test_text_models.py",
)
TRAIN = (
    "tests/contracts/test_*.py",
    "tests/learning/test_*.py",
    "tests/reliability/test_*.py",
    "tests/training/test_*.py",
)
SECONDS = {
    "tests/interop/test_onnx.py": 116,
    "tests/devices/test_whole_commands.py": 107,
    "tests/combinations/test_pairs.py": 88,
    "tests/interop/test_huggingface.py": 85,
    "tests/serving/test_page_accessible.py": 75,
    "tests/documents/test_growth.py": 75,
    "tests/contracts/test_promises.py": 64,
    "tests/interop/test_through.py": 63,
    "tests/reliability/test_reliability.py": 58,
    "tests/serving/test_page_seeing.py": 55,
    "tests/jobs/test_processes.py": 53,
    "tests/lessons/test_figures.py": 52,
    "tests/hostile/test_hostile_input.py": 48,
    "tests/interop/test_marian.py": 46,
    "tests/training/test_starts.py": 45,
    "tests/documents/test_generated.py": 43,
    "tests/combinations/test_text.py": 41,
    "tests/interop/test_huggingface_export.py": 40,
    "tests/training/test_self_critical.py": 39,
    "tests/serving/test_siege.py": 36,
    "tests/learning/test_copy.py": 36,
    "tests/devices/test_models.py": 36,
    "tests/serving/test_page_images.py": 35,
    "tests/engines/test_term_constraint.py": 34,
    "tests/serving/test_page_habits.py": 33,
    "tests/training/test_images.py": 33,
    "tests/cli/test_outputs.py": 30,
    "tests/serving/test_page_limits.py": 30,
    "tests/training/test_fine_tuning.py": 30,
    "tests/contracts/test_batch_independence.py": 29,
    "tests/documents/test_html.py": 28,
    "tests/cli/test_looking_at_images.py": 26,
    "tests/training/test_resume.py": 25,
    "tests/training/test_compiled.py": 25,
    "tests/serving/test_page.py": 25,
    "tests/structure/test_walkthrough.py": 24,
    "tests/cli/test_classify.py": 24,
    "tests/documents/test_kept_elements.py": 23,
    "tests/serving/test_page_documents.py": 22,
    "tests/cli/test_looking.py": 22,
    "tests/jobs/test_cluster.py": 22,
    "tests/platforms/test_commands.py": 21,
    "tests/training/test_trainer.py": 20,
    "tests/cli/test_others.py": 20,
    "tests/structure/test_blocks.py": 20,
    "tests/serving/test_captioning.py": 20,
    "tests/data/test_placeholder_syntax.py": 20,
    "tests/cli/test_back_translation.py": 20,
    "tests/cli/test_confidence.py": 18,
    "tests/cli/test_kinds.py": 18,
    "tests/cli/test_train.py": 18,
    "tests/serving/test_clients.py": 18,
    "tests/documents/test_markdown.py": 18,
    "tests/serving/test_page_look.py": 17,
    "tests/decoding/test_constraints.py": 17,
    "tests/data/test_store.py": 17,
    "tests/serving/test_text_models.py": 16,
    "tests/serving/test_names.py": 16,
    "tests/decoding/test_torch_engine.py": 16,
    "tests/engines/test_engines.py": 15,
    "tests/cli/test_without_extras.py": 14,
    "tests/memory/test_finding.py": 14,
    "tests/lessons/test_notebooks.py": 14,
    "tests/data/test_sentences.py": 14,
}
"""CPU seconds of the files that take longest, about."""
_FILES = {"browser": BROWSER, "train": TRAIN, "slow": tuple(SECONDS)}


def file_of(path: Path) -> str:
    """Return a file by its path in the repository."""
    return path.relative_to(ROOT).as_posix()


def markers_of(file: str) -> list[str]:
    """Return the markers of all tests of a file."""
    return [marker for marker, files in _FILES.items() if any(fnmatch(file, pattern) for pattern in files)]


def missing() -> list[str]:
    """Return what stands above and is no file any more."""
    patterns = {pattern for files in _FILES.values() for pattern in files}
    return sorted(pattern for pattern in patterns if not any(ROOT.glob(pattern)))
