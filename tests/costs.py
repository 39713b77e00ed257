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
    "tests/live/test_recording.py",
    "tests/serving/test_page*.py",
)
TRAIN = (
    "tests/contracts/test_*.py",
    "tests/learning/test_*.py",
    "tests/reliability/test_*.py",
    "tests/training/test_*.py",
)
SECONDS = {
    "tests/serving/test_page_accessible.py": 75,
    "tests/reliability/test_reliability.py": 48,
    "tests/lessons/test_notebooks.py": 45,
    "tests/serving/test_page_seeing.py": 40,
    "tests/training/test_compiled.py": 37,
    "tests/devices/test_models.py": 35,
    "tests/serving/test_page_documents.py": 35,
    "tests/structure/test_walkthrough.py": 35,
    "tests/contracts/test_promises.py": 34,
    "tests/devices/test_whole_commands.py": 33,
    "tests/serving/test_siege.py": 33,
    "tests/combinations/test_pairs.py": 30,
    "tests/distillation/test_distilling.py": 30,
    "tests/documents/test_growth.py": 30,
    "tests/interop/test_web.py": 30,
    "tests/training/test_ddp.py": 30,
    "tests/interop/test_huggingface_export.py": 29,
    "tests/documents/test_derived_growth.py": 25,
    "tests/engines/test_ctranslate2.py": 25,
    "tests/training/test_packed.py": 24,
    "tests/cli/test_kinds.py": 22,
    "tests/platforms/test_commands.py": 22,
    "tests/serving/test_page_habits.py": 22,
    "tests/distillation/test_interrupted.py": 20,
    "tests/engines/test_trials.py": 20,
    "tests/serving/test_page_images.py": 20,
    "tests/structure/test_site.py": 20,
    "tests/training/test_starts.py": 20,
    "tests/distillation/test_report.py": 19,
    "tests/jobs/test_cluster.py": 18,
    "tests/structure/test_blocks.py": 18,
    "tests/serving/test_page_live.py": 17,
    "tests/training/test_images.py": 17,
    "tests/cli/test_taught_links.py": 16,
    "tests/cli/test_train.py": 16,
    "tests/engines/test_engines.py": 16,
    "tests/api/test_validation_fitting.py": 15,
    "tests/cli/test_classify.py": 15,
    "tests/data/test_protected_spans.py": 15,
    "tests/engines/test_onnx_engine.py": 15,
    "tests/lessons/test_accessible.py": 15,
    "tests/serving/test_host_check.py": 15,
    "tests/cli/test_looking.py": 14,
    "tests/cli/test_others.py": 14,
    "tests/contracts/test_batch_independence.py": 14,
    "tests/engines/test_agreement.py": 14,
    "tests/learning/test_copy.py": 14,
    "tests/serving/test_page_memory.py": 14,
    "tests/training/test_resume.py": 14,
    "tests/cli/test_outputs.py": 13,
    "tests/hostile/test_hostile_input.py": 13,
    "tests/serving/test_page.py": 13,
    "tests/training/test_self_critical.py": 13,
    "tests/cli/test_back_translation.py": 12,
    "tests/devices/test_commands.py": 12,
    "tests/interop/test_huggingface.py": 12,
    "tests/lessons/test_figures.py": 11,
    "tests/platforms/test_portability.py": 11,
    "tests/serving/test_clients.py": 11,
    "tests/training/test_trainer.py": 11,
    "tests/cli/test_confidence.py": 10,
    "tests/serving/test_libretranslate.py": 10,
    "tests/serving/test_page_limits.py": 10,
    "tests/training/test_added_language.py": 10,
    "tests/training/test_running_text.py": 10,
    "tests/cli/test_fine_tuning.py": 9,
    "tests/documents/test_markdown.py": 9,
    "tests/serving/test_documents.py": 9,
    "tests/serving/test_page_look.py": 9,
    "tests/serving/test_page_why.py": 9,
    "tests/training/test_fine_tuning.py": 9,
    "tests/training/test_trackers.py": 9,
    "tests/interop/test_onnx.py": 8,
    "tests/jobs/test_processes.py": 8,
    "tests/serving/test_answers.py": 8,
    "tests/serving/test_many_languages.py": 8,
    "tests/serving/test_mcp.py": 8,
    "tests/test_placeholders.py": 8,
    "tests/api/test_translator.py": 7,
    "tests/cli/test_documents.py": 7,
    "tests/cli/test_interruptions.py": 7,
    "tests/cli/test_looking_at_images.py": 7,
    "tests/decoding/test_constrained_decoding.py": 7,
    "tests/inspection/test_head_importance.py": 7,
    "tests/language/test_embedder.py": 7,
    "tests/test_library.py": 7,
    "tests/training/test_directions.py": 7,
    "tests/cli/test_memory_learning.py": 6,
    "tests/cli/test_without_extras.py": 6,
    "tests/engines/test_term_constraint.py": 6,
    "tests/inspection/test_pictures.py": 6,
    "tests/interop/test_multilingual_exports.py": 6,
    "tests/training/test_distillation.py": 6,
    "tests/training/test_terms.py": 6,
    "benchmarks/gpu/test_gpu.py": 5,
    "tests/decoding/test_alignment_layer.py": 5,
    "tests/distillation/test_int8.py": 5,
    "tests/models/test_transformer.py": 5,
    "tests/runs/test_pretrained.py": 5,
    "tests/serving/test_captioning.py": 5,
    "tests/serving/test_hostile_documents.py": 5,
    "tests/serving/test_memory.py": 5,
    "tests/serving/test_names.py": 5,
    "tests/training/test_context.py": 5,
    "tests/training/test_guided_alignment.py": 5,
    "tests/training/test_prefixes.py": 5,
    "tests/training/test_selection.py": 5,
    "tests/combinations/test_run_state.py": 4,
    "tests/inspection/test_ablation.py": 4,
    "tests/interop/test_ctranslate2_import.py": 4,
    "tests/interop/test_through.py": 4,
    "tests/kernels/test_onednn.py": 4,
    "tests/training/test_bilstm_training.py": 4,
    "tests/training/test_reserved.py": 4,
    "tests/documents/test_html.py": 3,
    "tests/training/test_quantized_weights.py": 3,
    "tests/training/test_validation_data.py": 3,
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
