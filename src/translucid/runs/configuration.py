"""The whole configuration of a run: one YAML file, four groups of keys, every value checked.

Some settings cannot change when a run is resumed (`fixed_settings`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, reduce
from itertools import chain
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, Field, SerializeAsAny, ValidationError, model_validator

from translucid.data.tokenizing.tokenizer import TokenizerOptions
from translucid.decoding.decoding_options import DecodingOptions
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UPGRADING, UserError, nearest
from translucid.ground.option_group import OptionGroup
from translucid.kernels.devices import certainly_cpu, choose_device
from translucid.models.kinds import resolved, task_of, tasks
from translucid.models.model_options import (
    AttentionOnlyOptions,
    ContextualOptions,
    RecurrentOptions,
    TransformerOptions,
)
from translucid.models.model_shape import ModelShape, OfKind
from translucid.runs.data_options import DataOptions
from translucid.runs.directions import languages_of
from translucid.runs.presets import all_presets, preset_named
from translucid.runs.settings import (
    RENAMED,
    RENAMED_VALUES,
    Settings,
    assigned,
    merged,
    read_settings,
    short_repr,
    with_original_names,
    without_none,
)
from translucid.runs.training_options import TrainingOptions

_DEFAULTS = DataOptions()
_FOR_PAIRS = (
    "subword_dropout", "placeholders", "weights", "temperature", "reverse", "both_directions", "synthetic",
    "target_text", "mix", "valid_general", "train_alignments", "context", "formality",
)  # fmt: skip
"""Settings of `data` that only corpora of sentence pairs have."""

_ONE_DIRECTION = (
    ("training", "init_encoder"), ("training", "init_decoder"), ("training", "elmo"),
    ("training", "guided_alignment"),
)  # fmt: skip
"""Settings, by group, that a run with several directions can't have."""


class LiveSettings(OptionGroup):
    """How live translation decides when to write; `translucid tune alignments` and the end of a training choose it."""

    attention: str | None = None
    """The attention that is read, such as `decoder.1.cross`; by default, that from which word alignments are read."""
    alpha: list[Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=list, max_length=1000)
    """EDAtt's threshold for a lag of 1, 2 ... words; the last one for larger lags. Without any, it is 0.3."""


class Configuration(OptionGroup):
    """All settings of a run."""

    preset: str | None = None
    """The preset that the other settings start from (`translucid models` lists them)."""
    model: Annotated[SerializeAsAny[ModelShape], OfKind("transformer")] = Field(default_factory=TransformerOptions)
    """The network; by default a Transformer."""
    data: DataOptions = Field(default_factory=DataOptions)
    """The corpus."""
    training: TrainingOptions = Field(default_factory=TrainingOptions)
    """The options of the training."""
    decoding: DecodingOptions = Field(default_factory=DecodingOptions)
    """The options of decoding; those of a command take precedence."""
    alignment: AlignmentOptions = Field(default_factory=AlignmentOptions)
    """The attention from which word alignments are read."""
    live: LiveSettings = Field(default_factory=LiveSettings)
    """When live translation writes."""
    versions: dict[str, str] = Field(default_factory=dict)
    """The versions of the packages that wrote this file, for the record."""

    @model_validator(mode="after")
    def _fits_together(self) -> Configuration:
        problems = chain(
            self._problems_of_data(),
            self._problems_of_sources(),
            self._problems_of_fine_tuning(),
            self._problems_of_training(),
        )
        for problem in problems:
            raise ValueError(problem)
        return self

    def _problems_of_data(self) -> Iterator[str]:
        """Yield what is wrong with the data for this model."""
        tokenizer, model = self.data.tokenizer, self.model
        if model.share_embeddings and not (tokenizer.joint or tokenizer.shared_ids):
            yield (
                "model.share_embeddings needs one joint vocabulary: "
                "set data.tokenizer.joint=true or model.share_embeddings=false"
            )
        task = task_of(model.reads)
        if task.problems:
            yield from resolved(task.problems)(self)
        for other in tasks():
            if other.reads != model.reads:
                yield from (message for key, message in other.settings.items() if self.value(key))
        if self.data.is_multilingual:
            for group, name in _ONE_DIRECTION:
                if getattr(getattr(self, group), name):
                    yield f"{group}.{name} is for a single direction, and data.train has several: leave it out"

    def _problems_of_sources(self) -> Iterator[str]:
        """Yield what is wrong with the language models that a translator is initialized from."""
        if not isinstance(self.model, ContextualOptions):
            for name in ("init_encoder", "init_decoder", "elmo"):
                if getattr(self.training, name):
                    yield f"training.{name} is for translators, Transformers or recurrent"
        elif self.model.elmo and self.training.sharded:
            yield "training.sharded is not for models with ELMo (model.elmo)"
        elif self.model.elmo and self.data.context:
            yield "data.context is not for models with model.elmo, which reads one sentence"
        elif self.training.elmo and not self.model.elmo:
            yield "training.elmo names a run, and model.elmo not its shape: give it as `elmo`"

    def _problems_of_fine_tuning(self) -> Iterator[str]:
        """Yield what is wrong with the options of fine-tuning for this model."""
        added, base_run = self.data.tokenizer.added, self.training.begin_from
        for name in ("distillation_weight", "teachers"):
            if getattr(self.training, name) and self.model.reads != "text":
                yield f"training.{name} is for translators"
        if self.training.soft_targets and self.data.subword_dropout:
            yield "training.soft_targets and data.subword_dropout do not go together: pieces differ in each epoch"
        if self.training.soft_targets and self.data.context:
            yield "training.soft_targets and data.context do not go together: sources differ in each epoch"
        if self.training.adapter_rank and not isinstance(self.model, TransformerOptions):
            yield "training.adapter_rank is for Transformers"
        if added and (self.model.reads != "text" or not base_run):
            yield "data.tokenizer.added is for fine-tuning translators: name the initial run with `training.begin_from`"
        if added and self.training.adapter_rank:
            yield "training.adapter_rank is for the vocabulary as it is, without data.tokenizer.added and new languages"
        if self.data.valid_general and not base_run:
            yield "data.valid_general is for fine-tuning: name the initial run with `training.begin_from`"

    def _problems_of_guided_alignment(self) -> Iterator[str]:
        """Yield why guided alignment of a decoder layer, or of the last one, is not for this model."""
        count, layer = self.model.cross_attentions, self.training.guided_layer
        if not isinstance(self.model, TransformerOptions | RecurrentOptions | AttentionOnlyOptions):
            yield "training.guided_alignment is for translators: Transformers, recurrent ones or attention-only"
        elif not count:
            yield "training.guided_alignment is for models with attention, and model.attention is none"
        elif layer is not None and layer >= count:
            yield f"training.guided_layer={layer}: the layers are 0 to {count - 1}"

    def _problems_of_training(self) -> Iterator[str]:
        """Yield which ways of training are not for this model."""
        if self.training.compile is True:
            if not self.model.compiles:
                yield "training.compile is for Transformers that translate or write captions"
            if isinstance(self.model, TransformerOptions) and self.model.elmo:
                yield "training.compile is not for models with model.elmo"
        if self.training.packed:
            if not isinstance(self.model, TransformerOptions) or self.model.elmo or not self.model.source_end:
                yield "training.packed is for Transformers that translate, with model.source_end, without model.elmo"
            if self.training.teachers and not self.training.soft_targets:
                yield "training.packed needs training.soft_targets for training.teachers"
        if self.training.prefixes and self.model.reads != "text":
            yield "training.prefixes is for translators"
        if self.training.guided_alignment:
            yield from self._problems_of_guided_alignment()
        if self.data.train_alignments and not self.training.needs_word_links:
            yield "data.train_alignments is for training.guided_alignment: set that to 0.1, for instance"

    @property
    def pair_settings(self) -> list[str]:
        """The names of the settings that are set and that only corpora of sentence pairs have."""
        return [f"data.{name}" for name in _FOR_PAIRS if getattr(self.data, name) != getattr(_DEFAULTS, name)]

    def value(self, key: str) -> Any:
        """Return the value of a setting, such as `data.context`."""
        return reduce(getattr, key.split("."), self)

    @cached_property
    def vocabulary_given(self) -> bool:
        """Whether the user has set data.tokenizer.vocabulary; the size of a preset may be adapted to the text.

        `resolve` sets it. For a configuration from a file, it is whether the size differs from that of the preset. It
        is not a setting, so configurations are compared without it.
        """
        preset = preset_named(self.preset)
        settings = preset.settings if preset else {}
        default = TokenizerOptions.model_fields["vocabulary"].default
        size: int = settings.get("data", {}).get("tokenizer", {}).get("vocabulary", default)
        return self.data.tokenizer.vocabulary != size

    def with_vocabulary(self, size: int) -> Configuration:
        """Return the configuration with another size of the vocabulary."""
        tokenizer = self.data.tokenizer.model_copy(update={"vocabulary": size})
        return self.model_copy(update={"data": self.data.model_copy(update={"tokenizer": tokenizer})})

    def decoding_with(self, changes: Mapping[str, Any]) -> DecodingOptions:
        """Return the decoding options with some of them changed by name; None leaves an option unchanged.

        Raises:
            UserError: a value is wrong.
        """
        return checked(DecodingOptions, {**self.decoding.model_dump(), **without_none(changes)})

    def between(self, source: str | None, target: str | None) -> Configuration:
        """Return the configuration with two other languages of a multilingual model, as `DataOptions.between` does."""
        return self.model_copy(update={"data": self.data.between(source, target)})

    def refuse_other_input(self, kind: str, run: Path) -> None:
        """Check that a run's model has this kind of input, such as `text`.

        Raises:
            UserError: it has another kind of input.
        """
        if self.model.reads != kind:
            task = task_of(self.model.reads)
            raise UserError(task.does, file=run, fix=f"Use translucid {task.command}.")

    @property
    def longest(self) -> int:
        """The maximum number of tokens of a side (with start or end token) in training and in a call of the model."""
        return min(self.data.max_tokens, self.model.longest or self.data.max_tokens)

    def to_yaml(self) -> str:
        """Return the text of `config.yaml`, with all values."""
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # in C where there is LibYAML: a sixth of the time
        text: str = yaml.dump(self.model_dump(mode="json"), Dumper=dumper, sort_keys=False, allow_unicode=True)
        return text


def resolve(
    file: Path | None = None,
    preset: str | None = None,
    assignments: Iterable[str] = (),
    overrides: Mapping[str, Any] | None = None,
    initial_settings: Settings | None = None,
    *,
    is_recipe: bool = False,
    on_gpu: bool = False,
) -> Configuration:
    """Combine the sources of a configuration: preset, earlier run, file, assignments, overrides; later ones win.

    Args:
        file: a file with settings.
        preset: the name of the preset; by default that of the file.
        assignments: strings `key=value`.
        overrides: values by dotted key.
        initial_settings: the settings of an earlier run (`runs.initialization`). Its tokenizer also wins over the file,
            because the weights depend on it.
        is_recipe: whether the file is one of our recipes, whose size of the vocabulary is a proposal, like a preset's.
        on_gpu: whether the preset's batches are those for a GPU.

    Raises:
        UserError: the file can't be read, or a key or value is unknown.
    """
    settings = _without_learned(read_settings(file) if file else {})
    own_settings = assigned(settings, assignments, overrides or {})
    if initial_settings:
        initial_settings = _suited(initial_settings, own_settings)
        settings = merged(initial_settings, settings)
        settings = merged(settings, {"data": {"tokenizer": initial_settings["data"]["tokenizer"]}})
    name = preset or settings.get("preset")
    preset_settings: Settings = {}
    if isinstance(name, str):
        named_preset = preset_named(name)
        if named_preset is None:
            raise UserError(
                f"there is no preset {name!r}", file=None if preset else file, fix=nearest(name, all_presets())
            )
        preset_settings = merged({"preset": name}, named_preset.settings)
        if on_gpu and named_preset.batch_tokens_on_gpu:
            preset_settings = merged(preset_settings, {"training": {"batch_tokens": named_preset.batch_tokens_on_gpu}})
    # What the user has set, without the proposals of a preset or a recipe.
    explicit = assigned((initial_settings or {}) if is_recipe else settings, assignments, overrides or {})
    settings = merged(preset_settings, {**settings, "preset": name})
    configuration = validated(assigned(settings, assignments, overrides or {}), file)
    # Sets the cached property; pydantic allows no assignment.
    configuration.__dict__["vocabulary_given"] = "vocabulary" in explicit.get("data", {}).get("tokenizer", {})
    return configuration


def _without_learned(settings: Settings) -> Settings:
    """Return the settings of a file without what the weights of the run have learned that the file belongs to."""
    data = settings.get("data")
    if not isinstance(data, dict):
        return settings
    return {**settings, "data": {key: value for key, value in data.items() if key != "learned"}}


def _suited(initial_settings: Settings, own_settings: Settings) -> Settings:
    """Return the settings of a multilingual run without its languages if the names of all training files have some."""
    initial_data, own_data = initial_settings["data"], own_settings.get("data")
    if not isinstance(own_data, dict) or not initial_data["tokenizer"].get("languages"):
        return initial_settings
    names: list[object] = []
    for key in ("train", "mix", "synthetic"):
        names += own_data.get(key) or ()
    if not names or not all(isinstance(name, str) and languages_of(name) for name in names):
        return initial_settings
    return {**initial_settings, "data": {**initial_data, "source_language": None, "target_language": None}}


def batches_for_gpu(device: str, earlier: Configuration | None) -> bool:
    """Whether a training on a device has its preset's batches for a GPU.

    `earlier`: the configuration of the run that is resumed, if any. It keeps its batches on every device, because its
    place in the data counts them.

    Raises:
        UserError: there is no such device.
    """
    if earlier is None:
        return not certainly_cpu(device) and choose_device(device).type == "cuda"
    preset = preset_named(earlier.preset)
    return preset is not None and earlier.training.batch_tokens == preset.batch_tokens_on_gpu


def resumed(configuration: Configuration, assignments: Iterable[str], overrides: Mapping[str, Any]) -> Configuration:
    """Change settings of a run that keep its weights valid: limits, files, decoding.

    Raises:
        UserError: the shape of the model, the tokens or the order of the data would change.
    """
    return resumable(configuration, validated(assigned(configuration.model_dump(), assignments, overrides)))


def resumable(before: Configuration, after: Configuration) -> Configuration:
    """Return `after` if a run that was started with `before` can be resumed with it.

    Raises:
        UserError: the shape of the model, the tokens or the order of the data would change.
    """
    # Facts such as labels, and the size of the vocabulary, may have been read from the training text.
    if type(after.model) is type(before.model):
        after = after.model_copy(update={"model": after.model.completed(before.model)})
    if not after.vocabulary_given:
        after = after.with_vocabulary(before.data.tokenizer.vocabulary)
    values_before, values_after = fixed_values(before), fixed_values(after)
    for key in values_after | values_before:
        if values_after.get(key) != values_before.get(key):
            raise UserError(f"{key} can't change in a resumed run", fix="Begin a new run with another `out`.")
    return after


def validated(settings: Settings, file: Path | None = None) -> Configuration:
    """Check the keys and values of a configuration, as `checked` does."""
    return checked(Configuration, settings, file)


Options = TypeVar("Options", bound=BaseModel)


def checked(
    options: type[Options],
    settings: Settings,
    file: Path | None = None,
    *,
    fix: str = "`keys()` lists all keys.",
) -> Options:
    """Return a group of options with the given settings, after checking each key and value.

    `fix`: the remedy for a wrong value.

    Raises:
        UserError: a key or value is wrong; the message suggests the most similar one.
    """
    try:
        return options.model_validate(settings)
    except ValidationError as error:
        detail = error.errors()[0]
        key, group = ".".join(map(str, detail["loc"])), _group_at(options, settings, detail["loc"][:-1])
        if current := RENAMED.get(key):
            raise UserError(f"the key {key!r} is now {current!r}", file=file, fix=UPGRADING) from error
        if detail["type"] == "extra_forbidden":
            parent = key.removesuffix(str(detail["loc"][-1]))
            keys = [f"{parent}{field}" for field in group.model_fields]
            raise UserError(f"there is no key {key!r}", file=file, fix=nearest(key, keys)) from error
        if detail["type"] == "unknown_kind":
            kind, kinds = detail["ctx"]["kind"], detail["ctx"]["kinds"]
            raise UserError(f"{key}.kind: there is no {kind!r}", file=file, fix=nearest(kind, kinds)) from error
        values = RENAMED_VALUES.get(key, {})
        if isinstance(detail["input"], str) and detail["input"] in values:
            value = values[detail["input"]]
            raise UserError(f"{key}: {detail['input']!r} is now {value!r}", file=file, fix=UPGRADING) from error
        reason = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "value_error":  # raised by a validator of ours, whose message is complete
            raise UserError(f"{key}: {reason}" if key else reason, file=file) from error
        raise UserError(f"{key}: {reason}, not {short_repr(detail['input'])}", file=file, fix=fix) from error


def _group_at(options: type[BaseModel], settings: Any, location: Iterable[int | str]) -> type[BaseModel]:
    """Follow the location of a pydantic error through settings; return the group of options at its end."""
    for name in location:
        field = options.model_fields.get(str(name))
        if field is None:
            break
        settings = settings.get(name) if isinstance(settings, Mapping) else None
        marks = [mark for mark in field.metadata if isinstance(mark, OfKind)]
        group = marks[0].options_of(settings) if marks else field.annotation
        if not (isinstance(group, type) and issubclass(group, BaseModel)):
            break
        options = group
    return options


_FIXED = (
    "model", "data.tokenizer", "data.filter", "data.max_tokens", "data.subword_dropout", "data.weights",
    "data.temperature", "data.mirror", "data.shift", "training.seed", "training.batch_tokens", "training.accumulate",
    "training.optimizer", "training.begin_from", "training.layer_decay", "training.unfreeze",
)  # fmt: skip
"""Keys that can't change in a resumed run: its weights, its tokens or its place in the data would become invalid."""
_FIXED_LATER = (
    "data.reverse", "data.both_directions", "data.mix", "data.terms", "data.placeholders", "training.init_encoder",
    "training.init_decoder", "training.elmo", "training.freeze", "training.l2_sp", "training.distillation_weight",
    "training.adapter_rank", "training.teachers", "training.soft_targets", "training.guided_alignment",
    "training.guided_layer", "training.prefixes", "training.packed", "data.context", "data.formality",
)  # fmt: skip
"""More such keys. They are compared only if they are set, because older checkpoints lack them."""
FIXED_SETTINGS = "a setting that can not change (model, data, seed)"
"""The name of their fingerprint in a checkpoint."""


def fixed_settings(configuration: Configuration) -> str:
    """Return the settings that a resumed run can't change, as text."""
    return json.dumps(with_original_names(fixed_values(configuration)), sort_keys=True)


def fixed_values(configuration: Configuration) -> dict[str, Any]:
    """Return these settings by their keys."""
    settings = configuration.model_dump(mode="json")
    # Without the names of the files, which may be moved; a digest of their content is compared elsewhere.
    settings["data"]["mix"] = list(settings["data"]["mix"].values())

    def value(key: str) -> Any:
        return reduce(getitem, key.split("."), settings)

    keys = [*_FIXED, *configuration.model.own_fixed_settings]
    keys += filter(value, _FIXED_LATER)
    if configuration.training.adapter_rank:
        keys += ["training.adapter_scale", "training.adapter_parts"]
    return {key: value(key) for key in keys}
