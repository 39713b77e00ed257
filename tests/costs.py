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
    "tests/reliability/test_reliability.py": 140,
    "tests/serving/test_page_accessible.py": 105,
    "tests/interop/test_onnx.py": 100,
    "tests/lessons/test_figures.py": 45,
    "tests/serving/test_siege.py": 43,
    "tests/structure/test_walkthrough.py": 40,
    "tests/learning/test_copy.py": 39,
    "tests/documents/test_growth.py": 38,
    "tests/jobs/test_processes.py": 35,
    "tests/cli/test_looking_at_images.py": 35,
    "tests/serving/test_page_why.py": 32,
    "tests/training/test_workers.py": 28,
    "tests/serving/test_page_limits.py": 28,
    "tests/serving/test_page_images.py": 27,
    "tests/hostile/test_hostile_input.py": 26,
    "tests/structure/test_site.py": 20,
    "tests/jobs/test_cluster.py": 20,
    "tests/serving/test_clients.py": 20,
    "tests/training/test_images.py": 20,
    "tests/training/test_fine_tuning.py": 17,
    "tests/lessons/test_live.py": 16,
    "tests/serving/test_serve_command.py": 15,
    "tests/devices/test_models.py": 15,
    "tests/serving/test_page.py": 15,
    "tests/training/test_self_critical.py": 15,
    "tests/cli/test_generate.py": 14,
    "tests/documents/test_strings.py": 14,
    "tests/decoding/test_alignment_layer.py": 13,
    "tests/models/test_transformer.py": 8,
    "tests/lessons/test_pages.py": 10,
    "tests/training/test_running_text.py": 10,
    "tests/lessons/test_notebooks.py": 8,
    "tests/devices/test_commands.py": 8,
    "tests/training/test_trainer.py": 8,
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
