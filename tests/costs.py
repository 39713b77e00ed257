"""The cost of test files: which ones need a browser, train models or take long.

Each test gets the markers of its file. `make quick` does not even import these files, as that takes time too; `make
test` runs the slowest files first, so that none of them is still running when all others have ended.
"""

from fnmatch import fnmatch
from functools import cache, partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BROWSER = (
    "tests/interop/test_web.py",
    "tests/lessons/test_accessible.py",
    "tests/lessons/test_figures.py",
    "tests/lessons/test_live.py",
    "tests/serving/test_page*.py",
)
TRAIN = (
    "tests/contracts/test_*.py",
    "tests/learning/test_*.py",
    "tests/reliability/test_*.py",
    "tests/training/test_*.py",
)
SECONDS = {
    "tests/documents/test_derived_growth.py": 32,
    "tests/reliability/test_reliability.py": 32,
    "tests/serving/test_page_accessible.py": 30,
    "tests/serving/test_page_seeing.py": 27,
    "tests/interop/test_onnx.py": 30,
    "tests/distillation/test_distilling.py": 22,
    "tests/serving/test_page_images.py": 21,
    "tests/lessons/test_notebooks.py": 21,
    "tests/devices/test_models.py": 20,
    "tests/contracts/test_promises.py": 20,
    "tests/combinations/test_pairs.py": 20,
    "tests/training/test_starts.py": 19,
    "tests/lessons/test_accessible.py": 17,
    "tests/structure/test_walkthrough.py": 17,
    "tests/training/test_resume.py": 17,
    "tests/training/test_trainer.py": 17,
    "tests/cli/test_classify.py": 17,
    "tests/serving/test_page_habits.py": 17,
    "tests/training/test_self_critical.py": 16,
    "tests/jobs/test_processes.py": 16,
    "tests/devices/test_whole_commands.py": 16,
    "tests/interop/test_huggingface_export.py": 16,
    "tests/cli/test_kinds.py": 16,
    "tests/serving/test_captioning.py": 16,
    "benchmarks/gpu/test_gpu.py": 16,
    "tests/jobs/test_cluster.py": 15,
    "tests/training/test_fine_tuning.py": 15,
    "tests/platforms/test_commands.py": 15,
    "tests/training/test_running_text.py": 14,
    "tests/training/test_images.py": 14,
    "tests/cli/test_outputs.py": 14,
    "tests/serving/test_page.py": 14,
    "tests/lessons/test_pages.py": 14,
    "tests/kernels/test_onednn.py": 14,
    "tests/documents/test_growth.py": 13,
    "tests/cli/test_looking_at_images.py": 13,
    "tests/serving/test_host_check.py": 13,
    "tests/serving/test_page_documents.py": 13,
    "tests/engines/test_onnx_engine.py": 13,
    "tests/distillation/test_interrupted.py": 12,
    "tests/interop/test_huggingface.py": 12,
    "tests/cli/test_others.py": 12,
    "tests/structure/test_site.py": 12,
    "tests/structure/test_blocks.py": 12,
    "tests/lessons/test_figures.py": 11,
    "tests/runs/test_pretrained.py": 11,
    "tests/cli/test_looking.py": 11,
    "tests/cli/test_back_translation.py": 11,
    "tests/learning/test_copy.py": 10,
    "tests/serving/test_clients.py": 10,
    "tests/serving/test_siege.py": 9,
    "tests/decoding/test_alignment_layer.py": 9,
    "tests/serving/test_libretranslate.py": 9,
    "tests/documents/test_html.py": 9,
    "tests/training/test_compiled.py": 8,
    "tests/hostile/test_hostile_input.py": 6,
    "tests/jobs/test_captioning.py": 6,
    "tests/distillation/test_report.py": 6,
    "tests/interop/test_multilingual_exports.py": 6,
    "tests/interop/test_ctranslate2_import.py": 5,
    "tests/interop/test_through.py": 5,
    "tests/serving/test_documents.py": 5,
    "tests/cli/test_without_extras.py": 4,
    "tests/combinations/test_text.py": 4,
    "tests/language/test_embedder.py": 4,
    "tests/models/test_transformer.py": 4,
    "tests/cli/test_train.py": 4,
    "tests/cli/test_interruptions.py": 4,
    "tests/devices/test_commands.py": 4,
    "tests/data/test_protected_spans.py": 4,
    "tests/api/test_validation_fitting.py": 4,
    "tests/documents/test_markdown.py": 3,
    "tests/test_library.py": 3,
    "tests/cli/test_documents.py": 3,
    "tests/cli/test_translating_with_memory.py": 3,
    "tests/language/test_generator.py": 3,
    "tests/serving/test_fair_scheduler.py": 3,
    "tests/serving/test_answers.py": 3,
    "tests/serving/test_hostile_documents.py": 3,
    "tests/cli/test_memory_learning.py": 3,
    "tests/inspection/test_pictures.py": 3,
    "tests/serving/test_memory.py": 3,
    "tests/cli/test_confidence.py": 3,
    "tests/cli/test_taught_links.py": 3,
    "tests/engines/test_ctranslate2.py": 3,
    "tests/decoding/test_constrained_decoding.py": 3,
    "tests/combinations/test_run_state.py": 3,
    "tests/serving/test_names.py": 2,
}
"""Approximate CPU seconds of the files that take longest."""
_FILES = {"browser": BROWSER, "train": TRAIN, "slow": tuple(SECONDS)}


def file_of(path: Path) -> str:
    """Return the path of a file in the repository."""
    return path.relative_to(ROOT).as_posix()


@cache
def markers_of(file: str) -> list[str]:
    """Return the markers of all tests of a file."""
    matches = partial(fnmatch, file)
    return [marker for marker, patterns in _FILES.items() if any(map(matches, patterns))]


def missing() -> list[str]:
    """Return the patterns above that no longer match a file."""
    patterns = {pattern for files in _FILES.values() for pattern in files}
    return sorted(pattern for pattern in patterns if not any(ROOT.glob(pattern)))
