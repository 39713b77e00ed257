"""The whole configuration of a run: one YAML file, four groups of keys, every value checked."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Mapping
from functools import cached_property, reduce
from operator import getitem
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from translucid.data.tokenizing.tokenizer_options import TokenizerOptions
from translucid.decoding.decoding_options import DecodingOptions
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UserError, nearest
from translucid.ground.option_group import OptionGroup
from translucid.models.captioner_options import CaptionerOptions, CaptioningShape, CaptioningTransformerOptions
from translucid.models.classifier_options import ClassifierOptions
from translucid.models.language_options import LanguageShape, TransformerLanguageOptions
from translucid.models.model_options import ModelOptions, ToldOfContext, TransformerOptions
from translucid.runs.data_options import DataOptions
from translucid.runs.presets import PRESETS, preset_named
from translucid.runs.renamed_settings import with_original_names
from translucid.runs.settings import Settings, assigned, merged, read_settings
from translucid.runs.training_options import TrainingOptions

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100

_FIXED = (
    "model",
    "data.tokenizer",
    "data.filter",
    "data.max_tokens",
    "data.subword_dropout",
    "data.weights",
    "data.temperature",
    "data.mirror",
    "data.shift",
    "training.seed",
    "training.batch_tokens",
    "training.accumulate",
    "training.optimizer",
    "training.begin_from",
    "training.layer_decay",
    "training.unfreeze",
)
"""Keys that a resumed run can't change: its weights, its tokens or its place in the data would lose their meaning."""
_FIXED_LATER = (
    *("data.reverse", "data.mix", "data.terms", "training.init_encoder", "training.init_decoder", "training.elmo"),
    *(
        "data.placeholders",
        "training.freeze",
        "training.l2_sp",
        "training.distillation_weight",
        "training.adapter_rank",
    ),
)
"""More such keys; one that is not set is not named, as there are checkpoints that have none of it."""


_READERS = {
    "text": ("translates text", "Use translucid translate."),
    "images": ("writes about images", "Use translucid caption."),
    "running text": ("is a language model", "Use translucid generate."),
    "texts with labels": ("says what a text is", "Use translucid classify."),
}
"""By what a model reads: what it does, and what it is for."""


_AS_IT_IS = DataOptions()
_FOR_PAIRS = (
    "subword_dropout",
    "placeholders",
    "weights",
    "temperature",
    "reverse",
    "synthetic",
    "target_text",
    "mix",
    "valid_general",
)


class Configuration(OptionGroup):
    """Everything that decides a run."""

    preset: str | None = None
    """The preset that the other settings start from (`translucid models` lists them)."""
    model: ModelOptions = Field(default_factory=TransformerOptions, discriminator="kind")
    """The network: a Transformer, unless `model.kind` says otherwise."""
    data: DataOptions = Field(default_factory=DataOptions)
    """The corpus."""
    training: TrainingOptions = Field(default_factory=TrainingOptions)
    """How to train."""
    decoding: DecodingOptions = Field(default_factory=DecodingOptions)
    """How to translate, unless the command says otherwise."""
    alignment: AlignmentOptions = Field(default_factory=AlignmentOptions)
    """Where word alignments are read."""
    versions: dict[str, str] = Field(default_factory=dict)
    """What wrote this file; for the record."""

    @field_validator("model", mode="before")
    @classmethod
    def _a_transformer_by_default(cls, model: Any) -> Any:
        return {"kind": "transformer", **model} if isinstance(model, dict) else model

    @model_validator(mode="after")
    def _sharing_needs_one_vocabulary(self) -> Configuration:
        tokenizer = self.data.tokenizer
        if self.model.share_embeddings and not (tokenizer.joint or tokenizer.shared_ids):
            raise ValueError(
                "model.share_embeddings needs one joint vocabulary: "
                "set data.tokenizer.joint=true or model.share_embeddings=false"
            )
        return self

    @model_validator(mode="after")
    def _what_only_text_has(self) -> Configuration:
        only = [n for n in _FOR_PAIRS if getattr(self.data, n) != getattr(_AS_IT_IS, n)]
        if isinstance(self.model, CaptioningShape):
            if only:
                raise ValueError(f"data.{only[0]} is for sentence pairs, not for images with captions")
            if self.model.image_encoder.frozen and (self.data.mirror or self.data.shift):
                raise ValueError("data.mirror and data.shift change pixels, of which a frozen network sees no more")
        elif self.data.mirror or self.data.shift:
            raise ValueError("data.mirror and data.shift are for images")
        elif isinstance(self.model, LanguageShape | ClassifierOptions):
            if self.training.sharded:
                raise ValueError("training.sharded is not for language models and classifiers")
            if only:
                raise ValueError(f"data.{only[0]} is for sentence pairs, not for running text")
            if isinstance(self.model, TransformerLanguageOptions) and self.model.context > (w := self.training.window):
                raise ValueError(
                    f"model.context={self.model.context} is more than training.window={w}, over which it learns to "
                    "look back: raise the one or lower the other"
                )
            if not self.data.tokenizer.joint:
                raise ValueError("data.tokenizer.joint=false is for two languages, and running text has one vocabulary")
        if self.data.images and not isinstance(self.model, CaptioningShape):
            raise ValueError("data.images is for captioners: choose a model that reads images, such as caption-soft")
        return self

    @model_validator(mode="after")
    def _who_begins_with_models_of_language(self) -> Configuration:
        if isinstance(self.model, ToldOfContext):
            if self.model.elmo and self.training.sharded:
                raise ValueError("training.sharded is not for models that ELMo tells of their source")
            if self.training.elmo and not self.model.elmo:
                raise ValueError("training.elmo names a run, and model.elmo not its shape: give it as train --elmo")
        else:
            for name in ("init_encoder", "init_decoder", "elmo"):
                if getattr(self.training, name):
                    raise ValueError(f"training.{name} is for translators, Transformers or recurrent")
        return self

    @model_validator(mode="after")
    def _who_is_fine_tuned(self) -> Configuration:
        if self.training.distillation_weight and self.model.reads != "text":
            raise ValueError("training.distillation_weight is for translators")
        if self.training.adapter_rank and not isinstance(self.model, TransformerOptions):
            raise ValueError("training.adapter_rank is for Transformers")
        if self.data.tokenizer.added and (self.model.reads != "text" or not self.training.begin_from):
            raise ValueError(
                "data.tokenizer.added is for translators that begin as another run: name it with train --init-from"
            )
        if self.data.tokenizer.added and self.training.adapter_rank:
            raise ValueError("training.adapter_rank is for the vocabulary as it is, without data.tokenizer.added")
        if self.data.valid_general and not self.training.begin_from:
            raise ValueError(
                "data.valid_general is for what is fine-tuned: name what it begins as with train --init-from"
            )
        return self

    @model_validator(mode="after")
    def _who_is_compiled(self) -> Configuration:
        if self.training.compile:
            if not isinstance(self.model, TransformerOptions | CaptioningTransformerOptions):
                raise ValueError("training.compile is for Transformers that translate or write captions")
            if isinstance(self.model, TransformerOptions) and self.model.elmo:
                raise ValueError("training.compile is not for models with model.elmo")
        return self

    @model_validator(mode="after")
    def _who_learns_from_its_own_captions(self) -> Configuration:
        if self.training.self_critical:
            if not isinstance(self.model, CaptioningShape):
                raise ValueError("training.self_critical is for models that write about images, such as caption-soft")
            if isinstance(self.model, CaptionerOptions) and self.model.attention == "hard":
                raise ValueError("training.self_critical does not teach model.attention=hard where to look")
            if self.training.sharded:
                raise ValueError("training.self_critical draws captions from whole models, not from training.sharded")
        return self

    @cached_property
    def vocabulary_given(self) -> bool:
        """Whether the user has set data.tokenizer.vocabulary; a preset's number gives way to what the text supports.

        `resolve` knows; of a configuration that was read again, the preset's own number tells. That is no setting: two
        configurations are equal without it.
        """
        preset = preset_named(self.preset) if self.preset else None
        proposed = preset.settings if preset else {}
        default = TokenizerOptions.model_fields["vocabulary"].default
        size: int = proposed.get("data", {}).get("tokenizer", {}).get("vocabulary", default)
        return self.data.tokenizer.vocabulary != size

    def with_vocabulary(self, size: int) -> Configuration:
        """Return the configuration with the size that the vocabulary has in the end."""
        tokenizer = self.data.tokenizer.model_copy(update={"vocabulary": size})
        return self.model_copy(update={"data": self.data.model_copy(update={"tokenizer": tokenizer})})

    def searching(self, given: Mapping[str, Any]) -> DecodingOptions:
        """Return how to search when some options are given by name; one that is None is as the run has it.

        Raises:
            UserError: a value is wrong.
        """
        changes = {name: value for name, value in given.items() if value is not None}
        return checked(DecodingOptions, {**self.decoding.model_dump(), **changes})

    def between(self, source: str | None, target: str | None) -> Configuration:
        """Return the configuration with other languages of a model that has many; see `DataOptions.between`."""
        return self.model_copy(update={"data": self.data.between(source, target)})

    def refuse_other_reader(self, wanted: str, run: Path) -> None:
        """Check what a run's model reads; see `ModelShape`.

        Raises:
            UserError: it reads something else.
        """
        if self.model.reads != wanted:
            does, fix = _READERS[self.model.reads]
            raise UserError(does, file=run, fix=fix)

    @property
    def longest(self) -> int:
        """Tokens on either side, start or end token included, that the model meets in training and takes at once."""
        return min(self.data.max_tokens, self.model.longest or self.data.max_tokens)

    def to_yaml(self) -> str:
        """Return the text of `config.yaml`, every value spelled out."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def resolve(
    file: Path | None = None,
    preset: str | None = None,
    assignments: Iterable[str] = (),
    overrides: Mapping[str, Any] | None = None,
    begun: Settings | None = None,
    *,
    shipped: bool = False,
) -> Configuration:
    """Put a configuration together; what comes later wins.

    Args:
        file: of settings.
        preset: by name; that of the file if not given.
        assignments: `key=value`.
        overrides: by key.
        begun: what is taken over from an earlier run, see `runs.beginning`; it wins over the preset only,
            but for its tokenizer.
        shipped: whether the file is a recipe of ours, whose numbers are a proposal like those of a preset.

    Raises:
        UserError: the file can't be read, or a key or value is not one of ours.
    """
    settings = merged(begun or {}, read_settings(file) if file else {})
    if begun:  # a tokenizer that is there already is what it is
        settings = merged(settings, {"data": {"tokenizer": begun["data"]["tokenizer"]}})
    name = preset or settings.get("preset")
    base: Settings = {}
    if isinstance(name, str):
        start = preset_named(name)
        if start is None:
            raise UserError(f"there is no preset {name!r}", file=None if preset else file, fix=nearest(name, PRESETS))
        base = merged({"preset": name}, start.settings)
    given = assigned(begun or {} if shipped else settings, assignments, overrides or {})
    settings = merged(base, {**settings, "preset": name})
    found = validated(assigned(settings, assignments, overrides or {}), file)
    found.__dict__["vocabulary_given"] = "vocabulary" in given.get("data", {}).get("tokenizer", {})
    return found


def resumed(configuration: Configuration, assignments: Iterable[str], overrides: Mapping[str, Any]) -> Configuration:
    """Change a run's configuration where that keeps its weights meaningful: limits, files, decoding.

    Raises:
        UserError: the shape of the model, the tokens or the order of the data would change.
    """
    return unchanged(configuration, validated(assigned(configuration.model_dump(), assignments, overrides)))


def unchanged(before: Configuration, after: Configuration) -> Configuration:
    """Return `after`, if a run that was begun with `before` can go on with it.

    Raises:
        UserError: the shape of the model, the tokens or the order of the data would change.
    """
    if isinstance(after.model, ClassifierOptions) and not after.model.labels:  # which the data has told since
        assert isinstance(before.model, ClassifierOptions)
        model = after.model.model_copy(update={"labels": before.model.labels})
        after = after.model_copy(update={"model": model})
    if not after.vocabulary_given:
        after = after.with_vocabulary(before.data.tokenizer.vocabulary)
    fixed, wanted = _fixed(before), _fixed(after)
    for key in wanted | fixed:
        if wanted.get(key) != fixed.get(key):
            raise UserError(f"{key} can't change in a resumed run", fix="Begin a new run with another --out.")
    return after


def fixed_settings(configuration: Configuration) -> str:
    """Return the settings that a resumed run can't change, as text."""
    return json.dumps(with_original_names(_fixed(configuration)), sort_keys=True)


def _fixed(configuration: Configuration) -> dict[str, Any]:
    settings = configuration.model_dump(mode="json")
    keys = (*_FIXED, "training.window") if isinstance(configuration.model, LanguageShape) else _FIXED
    settings["data"]["mix"] = [*settings["data"]["mix"].values()]  # the files are known by what is in them
    keys = (*keys, *(key for key in _FIXED_LATER if reduce(getitem, key.split("."), settings)))
    if configuration.training.adapter_rank:
        keys = (*keys, "training.adapter_scale", "training.adapter_parts")
    return {key: reduce(getitem, key.split("."), settings) for key in keys}


def validated(settings: Settings, file: Path | None = None) -> Configuration:
    """Check every key and value of a configuration; see `checked`."""
    return checked(Configuration, settings, file)


Options = TypeVar("Options", bound=BaseModel)


def checked(options: type[Options], settings: Settings, file: Path | None = None) -> Options:
    """Check every key and value of any group of options.

    Raises:
        UserError: naming the first wrong one, and the nearest that is right.
    """
    try:
        return options.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        parents, group = _found(options, first["loc"][:-1])
        key = ".".join(_found(options, first["loc"])[0])
        if first["type"] == "extra_forbidden":
            known = [".".join([*parents, field]) for field in group.model_fields]
            raise UserError(f"there is no key {key!r}", file=file, fix=nearest(key, known)) from error
        if first["type"] == "union_tag_invalid":
            kinds = [str(kind.model_fields["kind"].default) for kind in get_args(group.model_fields[key].annotation)]
            given = first["ctx"]["tag"]
            raise UserError(f"{key}.kind: there is no {given!r}", file=file, fix=nearest(given, kinds)) from error
        reason = first["msg"].removeprefix("Value error, ")
        if first["type"] == "value_error":  # one of ours, which says it all
            raise UserError(f"{key}: {reason}" if key else reason, file=file) from error
        fix = "`translucid models --keys` lists all keys."
        raise UserError(f"{key}: {reason}, not {_shown(first['input'])}", file=file, fix=fix) from error


def _shown(value: Any) -> str:
    """Return a value as it is written in Python, the middle left out of a long one."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # which Python raises where a number has more than 4,300 digits
        return "such a long number"


def _found(options: Any, place: tuple[int | str, ...]) -> tuple[list[str], Any]:
    """Follow a place in pydantic's words: the keys on the way, and the group of options that it leads to."""
    keys = []
    for part in place:
        kinds = get_args(options)
        if kinds and all(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds):
            options = next(kind for kind in kinds if kind.model_fields["kind"].default == part)
            continue
        keys.append(str(part))
        field = options.model_fields.get(part) if hasattr(options, "model_fields") else None
        options = field.annotation if field else None
    return keys, options
