"""The student: its preset, by the size of the data and the model, its training, and what int8 weights cost it in BLEU.

If that loss is too large, the student is fine-tuned with quantized weights.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from translucid.api.translator import Translator
from translucid.data.readers.corpus import sources_of, targets_of
from translucid.data.seen_sentences import learn_from_teachers
from translucid.distillation.report import MEGABYTE
from translucid.distillation.request import Request
from translucid.distillation.stages import Results
from translucid.engines.ctranslate2.conventions import position_rows
from translucid.engines.tuned import Tuned
from translucid.engines.tuning import SENTENCES, Tuning, engine_for
from translucid.evaluation.metrics import Criterion
from translucid.ground.console import Console
from translucid.models.build import meta_model
from translucid.models.model_options import TransformerOptions
from translucid.runs.configuration import Configuration, resolve
from translucid.runs.presets import recipe, recipes
from translucid.runs.run_folder import DISTILLATION, RunFolder
from translucid.runs.settings import read_settings
from translucid.runs.staging import configuration_to_resume, configuration_to_train
from translucid.runs.tensor_file import read_header
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


ALLOWED = 0.3
"""The largest loss of BLEU, or of chrF where BLEU is too low to tell, for which a student is not fine-tuned."""
UPDATES = 300
"""The number of updates of the fine-tuning."""
RATE = 0.1
"""The factor of its learning rate: that of the student's training is too high for a trained model."""
FINE_TUNED = "int8"
"""The folder of the fine-tuned run, inside that of the distillation; removed at the end."""


class Scores(BaseModel):
    """The scores of a student with each type of weights, by CTranslate2."""

    model_config = ConfigDict(frozen=True)

    metric: Literal["BLEU", "chrF"]
    float32: float
    int8: float

    @property
    def loss(self) -> float:
        """The score that int8 loses."""
        return self.float32 - self.int8


class Int8Check(BaseModel):
    """The result of the check."""

    model_config = ConfigDict(frozen=True)

    before: Scores
    after: Scores | None = None
    """The scores after fine-tuning with quantized weights, if the loss was too large."""
    kept: bool = False
    """Whether the student has the fine-tuned weights now: only if int8 translates better with them."""

    def __str__(self) -> str:
        before, after = self.before, self.after
        line = f"{before.metric} {before.float32:.2f} with float32, {before.int8:.2f} with int8"
        if after is None:
            return line
        outcome = "kept" if self.kept else "not kept"
        return f"{line}; {after.int8:.2f} after fine-tuning with quantized weights, which is {outcome}"


def check_int8(
    student: Path,
    *,
    console: Console,
    valid: list[str] | None = None,
    source: str | None = None,
    target: str | None = None,
    device: str = "auto",
    updates: int = UPDATES,
) -> Int8Check | None:
    """Compare a student with int8 and with float32 weights, and fine-tune it with quantized weights if int8 costs much.

    The student's training pairs and settings are used again, with a lower learning rate. An interrupted fine-tuning
    is resumed by the next call.

    Args:
        student: the run folder of the student.
        console: shows the progress.
        valid: files of validation pairs; those of the student by default.
        source: the code of the source language, for a multilingual model.
        target: the code of the target language.
        device: the device of the fine-tuning.
        updates: the number of updates of the fine-tuning.

    Returns:
        The scores; None if CTranslate2 does not run the model.

    Raises:
        UserError: the run is damaged, or files do not exist.
    """
    from translucid.training.experiment import run_experiment

    languages = {"source": source, "target": target}
    before = int8_scores(student, console, valid, **languages)
    if before is None:
        return None
    if before.loss <= ALLOWED:
        return Int8Check(before=before)
    console.print(f"int8 costs {before.loss:.2f} {before.metric}: fine-tuning with quantized weights", soft_wrap=True)
    fine_tuned = student / DISTILLATION / FINE_TUNED
    fine_tuned.parent.mkdir(exist_ok=True)
    configuration = fine_tuning_configuration(student, updates)
    run_experiment(configuration, fine_tuned, resume=True, device=device, console=console)
    after = int8_scores(fine_tuned, console, valid, **languages)
    assert after is not None
    kept = after.metric == before.metric and after.int8 > before.int8
    if kept:
        adopt_weights(student, fine_tuned)
    shutil.rmtree(fine_tuned)
    return Int8Check(before=before, after=after, kept=kept)


def int8_scores(
    run: Path, console: Console, valid: list[str] | None = None, *, source: str | None, target: str | None
) -> Scores | None:
    """Return the scores of a run by CTranslate2 on its validation pairs; None if CTranslate2 does not run the model."""
    tuning = Tuning.of(run, console=console, valid=valid, source=source, target=target)
    if tuning.configurations([])[0].engine != "ctranslate2":
        return None
    pairs = tuning.corpora.valid[:SENTENCES]
    translator = Translator.open(tuning.folder, tuning.configuration, "cpu", "torch")
    texts = []
    for weights in ("float32", "int8"):
        tuned = Tuned.model_validate({"quantization": weights})
        engine = engine_for(translator.torch_engine, translator.tokenizer, tuned, None)
        translations = replace(translator, engine=engine).translate(sources_of(pairs), split=False)
        texts.append([translation.text for translation in translations])
    criterion = Criterion([targets_of(pairs)], tuning.configuration.data.languages[1])
    float32 = criterion.choose_metric(texts[0])
    return Scores.model_validate({"metric": criterion.name, "float32": float32, "int8": criterion.score(texts[1])})


def fine_tuning_configuration(student: Path, updates: int) -> Configuration:
    """Return the configuration of the fine-tuning: that of the student, with a few updates at a low learning rate."""
    configuration = RunFolder(student).configuration()
    options = configuration.training
    changes: Mapping[str, Any] = {
        "begin_from": str(student),
        "init_encoder": None,
        "init_decoder": None,
        "elmo": None,
        "quantized_weights": True,
        "learning_rate": RATE * options.learning_rate,
        "schedule": "inverse-root",
        "warmup": max(updates // 10, 1),
        "cooldown": 0.5,
        "averaging": 0.99,
        "max_steps": updates,
        "max_epochs": None,
        "max_minutes": None,
        "patience": None,
        "validate_every": max(updates // 3, 1),
        # They belong to the initialization of the student, which may have been fine-tuned itself.
        "l2_sp": 0.0,
        "distillation_weight": 0.0,
        "teachers": [],
        "adapter_rank": 0,
        "sharded": False,
    }
    return configuration.model_copy(update={"training": options.model_copy(update=changes)})


def adopt_weights(student: Path, fine_tuned: Path) -> None:
    """Replace the weights of a run by those of a run that has fine-tuned it, and record it."""
    folder, fine_tuned_folder = RunFolder(student), RunFolder(fine_tuned)
    configuration, tokenizer = fine_tuned_folder.configuration(), fine_tuned_folder.tokenizer()
    facts, origin = read_header(fine_tuned_folder.model_file)[1], folder.model_digest()
    folder.save_model(fine_tuned_folder.load_model(configuration, tokenizer), tokenizer, facts)
    for line in fine_tuned_folder.provenance_file.read_text(encoding="utf-8").splitlines():
        folder.add_provenance(json.loads(line) | {"fine-tuned": "with quantized weights", "model before": origin})
