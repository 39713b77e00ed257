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
    "tests/documents/test_derived_growth.py": 40,
    "tests/documents/test_growth.py": 32,
    "tests/serving/test_page_accessible.py": 31,
    "tests/interop/test_onnx.py": 29,
    "tests/reliability/test_reliability.py": 29,
    "tests/serving/test_page_seeing.py": 24,
    "tests/training/test_ddp.py": 23,
    "tests/lessons/test_accessible.py": 22,
    "tests/lessons/test_notebooks.py": 22,
    "tests/structure/test_walkthrough.py": 21,
    "tests/engines/test_onnx_engine.py": 20,
    "tests/serving/test_siege.py": 20,
    "tests/training/test_starts.py": 20,
    "tests/combinations/test_pairs.py": 17,
    "tests/distillation/test_distilling.py": 17,
    "tests/devices/test_whole_commands.py": 16,
    "tests/api/test_translator.py": 14,
    "tests/devices/test_models.py": 14,
    "tests/serving/test_page_habits.py": 14,
    "tests/serving/test_page_images.py": 14,
    "tests/training/test_directions.py": 14,
    "tests/distillation/test_interrupted.py": 13,
    "tests/serving/test_page_documents.py": 13,
    "tests/cli/test_others.py": 12,
    "tests/interop/test_multilingual_exports.py": 12,
    "tests/serving/test_page_limits.py": 12,
    "tests/training/test_fine_tuning.py": 12,
    "tests/cli/test_taught_links.py": 11,
    "tests/hostile/test_hostile_input.py": 11,
    "tests/lessons/test_figures.py": 11,
    "tests/platforms/test_commands.py": 11,
    "tests/jobs/test_cluster.py": 10,
    "tests/learning/test_copy.py": 10,
    "tests/serving/test_page.py": 10,
    "tests/test_placeholders.py": 10,
    "tests/training/test_bilstm_training.py": 10,
    "tests/training/test_compiled.py": 10,
    "tests/training/test_resume.py": 10,
    "tests/cli/test_outputs.py": 9,
    "tests/devices/test_commands.py": 9,
    "tests/engines/test_ctranslate2.py": 9,
    "tests/structure/test_blocks.py": 9,
    "tests/structure/test_site.py": 9,
    "tests/training/test_added_language.py": 9,
    "tests/training/test_images.py": 9,
    "tests/cli/test_confidence.py": 8,
    "tests/cli/test_looking.py": 8,
    "tests/cli/test_train.py": 8,
    "tests/inspection/test_ablation.py": 8,
    "tests/serving/test_clients.py": 8,
    "tests/serving/test_host_check.py": 8,
    "tests/serving/test_many_languages.py": 8,
    "tests/serving/test_mcp.py": 8,
    "tests/training/test_distillation.py": 8,
    "tests/training/test_self_critical.py": 8,
    "tests/training/test_trainer.py": 8,
    "tests/cli/test_kinds.py": 7,
    "tests/contracts/test_batch_independence.py": 7,
    "tests/data/test_protected_spans.py": 7,
    "tests/engines/test_trials.py": 7,
    "tests/interop/test_huggingface_export.py": 7,
    "tests/cli/test_classify.py": 6,
    "tests/contracts/test_promises.py": 6,
    "tests/distillation/test_int8.py": 6,
    "tests/distillation/test_report.py": 6,
    "tests/engines/test_engines.py": 6,
    "tests/engines/test_term_constraint.py": 6,
    "tests/inspection/test_head_importance.py": 6,
    "tests/interop/test_huggingface.py": 6,
    "tests/platforms/test_portability.py": 6,
    "tests/serving/test_documents.py": 6,
    "tests/serving/test_page_look.py": 6,
    "tests/training/test_context.py": 6,
    "tests/training/test_selection.py": 6,
    "tests/training/test_trackers.py": 6,
    "tests/api/test_validation_fitting.py": 5,
    "tests/cli/test_back_translation.py": 5,
    "tests/cli/test_interruptions.py": 5,
    "tests/cli/test_looking_at_images.py": 5,
    "tests/cli/test_without_extras.py": 5,
    "tests/combinations/test_run_state.py": 5,
    "tests/decoding/test_constrained_decoding.py": 5,
    "tests/documents/test_markdown.py": 5,
    "tests/interop/test_ctranslate2_import.py": 5,
    "tests/jobs/test_processes.py": 5,
    "tests/runs/test_pretrained.py": 5,
    "tests/serving/test_answers.py": 5,
    "tests/serving/test_libretranslate.py": 5,
    "tests/serving/test_names.py": 5,
    "tests/training/test_running_text.py": 5,
    "benchmarks/gpu/test_gpu.py": 4,
    "tests/cli/test_memory_learning.py": 4,
    "tests/documents/test_html.py": 4,
    "tests/inspection/test_pictures.py": 4,
    "tests/kernels/test_onednn.py": 4,
    "tests/serving/test_captioning.py": 4,
    "tests/serving/test_hostile_documents.py": 4,
    "tests/serving/test_memory.py": 4,
    "tests/cli/test_documents.py": 3,
    "tests/decoding/test_alignment_layer.py": 3,
    "tests/interop/test_through.py": 3,
    "tests/language/test_embedder.py": 3,
    "tests/models/test_transformer.py": 3,
    "tests/test_library.py": 3,
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
