"""The student: its preset, by the size of the data and of the model, and its training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from translucid.data.seen_sentences import learn_from_teachers
from translucid.distillation.measuring import MEGABYTE
from translucid.distillation.request import Request
from translucid.distillation.stages import Results
from translucid.engines.ctranslate2.conventions import position_rows
from translucid.ground.console import Console
from translucid.models.build import meta_model
from translucid.models.model_options import TransformerOptions
from translucid.runs.configuration import Configuration, resolve
from translucid.runs.presets import recipe, recipes
from translucid.runs.run_folder import RunFolder
from translucid.runs.settings import read_settings
from translucid.runs.staging import configuration_to_resume, configuration_to_train
from translucid.training.experiment import prepared
from translucid.training.post_training import measure_trained

STUDENTS = {"student-base": 5_000_000, "student-tiny": 20_000, "student-demo": 0}
"""The presets of students, the largest first, each with the least number of pairs for which it is chosen."""
GUIDED = 0.1
"""The weight of guided alignment."""
SOFT_TARGETS = 16
"""The number of tokens of the teachers that are stored for word-level distillation; they have nearly all of the
probability."""
SCALE, WEIGHT = 4, 4
"""Bytes of the scale of a row of int8 weights, and of a weight that is no int8."""
POSITION = 2
"""Bytes of a number in the table of positions."""
PIECE, NORMALIZER = 28, 240_000
"""Bytes of a piece in an exported tokenizer and vocabulary, and of SentencePiece's table of characters."""


def estimated_bytes(configuration: Configuration) -> int:
    """Return about how many bytes a model takes when it is exported with int8 weights and its tokenizer."""
    vocabulary = configuration.data.tokenizer.vocabulary
    model = meta_model(configuration.model, vocabulary, vocabulary)
    size = PIECE * vocabulary + NORMALIZER
    shape = configuration.model
    if isinstance(shape, TransformerOptions):
        size += POSITION * position_rows(shape) * shape.width
    for weight in model.parameters():
        if weight.dim() > 1:
            size += weight.numel() + SCALE * weight.size(0)
        else:
            size += WEIGHT * weight.numel()
    return size


def chosen_preset(request: Request, pairs: int) -> str | None:
    """Return the preset of the student: that of the request, or the largest that fits the number of pairs and the size.

    None if the request has a file of settings instead. The smallest preset is returned if all are too large.

    Args:
        request: the bound of the size, and perhaps a preset.
        pairs: the number of pairs that the student learns from.
    """
    if request.preset or request.config:
        return request.preset
    for name, min_pairs in STUDENTS.items():
        max_megabytes = request.bounds.megabytes
        fits = max_megabytes is None or estimated_bytes(resolve(preset=name)) <= max_megabytes * MEGABYTE
        if pairs >= min_pairs and fits:
            return name
    return name


def student_configuration(
    request: Request,
    preset: str | None,
    files: Mapping[str, Sequence[Path]],
    earlier: Configuration | None = None,
) -> Configuration:
    """Return the configuration of the student's training.

    Args:
        request: the file of settings, and single settings.
        preset: the preset.
        files: the files of each setting, such as `data.train`.
        earlier: the configuration of the training that is resumed, if any.

    Raises:
        UserError: a setting is wrong, or one of the resumed training has changed.
    """
    config = recipe(request.config) if request.config else None
    source, target = request.configuration.data.languages
    overrides: dict[str, Any] = {"data.source_language": source, "data.target_language": target}
    if request.word_level is not None:
        tokenizer = request.configuration.data.tokenizer.model_dump() | {"added": 0}
        overrides |= {f"data.tokenizer.{name}": value for name, value in tokenizer.items()}
        overrides["training.teachers"] = list(map(str, request.teachers))
        overrides["training.distillation_weight"] = request.word_level
    for key, names in files.items():
        overrides[key] = list(map(str, names))
    return configuration_to_train(
        earlier,
        request.device,
        overrides,
        file=config,
        preset=preset,
        assignments=[*_defaults(request, config), *request.settings],
        is_recipe=config in recipes().values(),
    )


def _defaults(request: Request, config: Path | None) -> Iterator[str]:
    """Yield the settings that a student has by default, except for those in the file of settings."""
    training_settings = (read_settings(config).get("training") if config else None) or {}
    if request.align and "guided_alignment" not in training_settings:
        yield f"training.guided_alignment={GUIDED}"
    if request.word_level and "soft_targets" not in training_settings:
        yield f"training.soft_targets={SOFT_TARGETS}"


def train_student(
    request: Request,
    preset: str | None,
    files: Mapping[str, Sequence[Path]],
    *,
    console: Console,
    command: Sequence[str] | None = None,
) -> Results:
    """Train the student in its run folder, or continue an interrupted training; return its figures.

    The kept weights are a running average (`training.averaging`).

    Raises:
        UserError: a setting is wrong, or has changed.
        Interrupted: by Ctrl-C or SIGTERM, after everything has been saved.
    """
    run = RunFolder(request.out)
    configuration = student_configuration(request, preset, files, configuration_to_resume(run))
    with prepared(configuration, request.out, resume=True, device=request.device, console=console, command=command) as (
        trainer,
        display,
    ):
        learn_from_teachers(run.path, request.teachers)
        trainer.fit(display)
    measure_trained(trainer, console)
    progress = trainer.progress
    return {
        "model": run.model_digest(),
        "steps": progress.step,
        "seconds": round(progress.seconds, 1),
        "best step": progress.best_step,
        "score": trainer.validator.describe(progress.best_score) if progress.best_score is not None else None,
    }
