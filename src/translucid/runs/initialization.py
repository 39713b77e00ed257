"""Initialisation of a run from other runs: their tokenizers, the shapes of their models, and their weights."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translucid.data.filtering import Skipped, keep
from translucid.data.tokenizing.extending import extended, parts_of_new, reserving
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.runs.corpus_files import Corpora
from translucid.runs.presets import kind_of_preset
from translucid.runs.pretrained import Pretrained
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.runs.weight_loading import load_weights, unshared

if TYPE_CHECKING:
    from torch import Tensor

    from translucid.models.protocol import Model
    from translucid.runs.configuration import Configuration
    from translucid.runs.training_options import TrainingOptions

FINE_TUNING: dict[str, Any] = {
    "optimizer": "muon",
    "learning_rate": 0.0005,
    "warmup": 50,
    "cooldown": 0.5,
    "batch_tokens": 2048,
    "averaging": 0.99,
    "max_epochs": 30,
    "validate_every": 100,
}
"""The default options for fine-tuning a translator; docs/fine-tuning.md has the experiments."""


_TAKEN_OVER = ("source_language", "target_language", "reverse", "placeholders")


def settings_from(run: Path, preset: str | None) -> dict[str, Any]:
    """Return the settings that a new run takes over from another run.

    Args:
        run: the folder of the other run.
        preset: the preset of the new run; by default that of the other run.

    Raises:
        UserError: there is no such run, or a model of this kind can't be initialised from it.
    """
    before = RunFolder(run).configuration()
    kind = kind_of_preset(preset)
    model = before.model.model_dump()
    if kind == "classifier" and before.model.kind != "classifier":
        if before.model.kind not in {"language-lstm", "language-bilstm"}:
            what = f"holds a model of the kind {before.model.kind}, from which no classifier begins"
            raise UserError(what, file=run, fix="Give the run of a language model, such as lm-lstm or lm-bilstm.")
        model = {"kind": "classifier", "language": model}
    elif kind not in {None, before.model.kind}:
        what = f"holds a model of the kind {before.model.kind}, not {kind}"
        raise UserError(what, file=run, fix="Leave --model out, or give the run of another model.")
    data = {name: getattr(before.data, name) for name in _TAKEN_OVER}
    data["tokenizer"] = {**before.data.tokenizer.model_dump(), "added": 0}
    training: dict[str, Any] = {"begin_from": str(run)}
    if before.model.reads == "text":
        training |= FINE_TUNING
    if before.data.tokenizer.told == "each on its own side":
        # M2M100 and NLLB have no such bias, so a trained one could not be exported to their format.
        training["freeze"] = ["output.bias"]
    settings: dict[str, Any] = {"training": training, "data": data, "model": model}
    if preset is None:
        settings["preset"] = before.preset
    return settings


def begun_tokenizer(configuration: Configuration, learn: Callable[[], Tokenizer], corpora: Corpora) -> Tokenizer:
    """Return the tokenizer of a new run: that of the runs from which it is initialised, or a new one.

    Args:
        configuration: the configuration of the run.
        learn: a function that learns a new tokenizer.
        corpora: the corpora of the run. A vocabulary is extended by words of these, without those that are mixed in.

    Raises:
        UserError: the tokenizer has no tag for synthetic pairs, or lacks reserved pieces and can't be extended.
    """
    options, pretrained = configuration.training, Pretrained.of(configuration.training)
    if not options.begin_from and not any(pretrained):
        return learn()
    if options.begin_from:
        tokenizer = RunFolder(Path(options.begin_from)).tokenizer()
    else:
        paired = pretrained.tokenizer(None) or pretrained.tokenizer(learn())
        assert paired is not None
        tokenizer = paired
    if configuration.data.synthetic and tokenizer.tag is None:
        where = options.begin_from or options.init_encoder or options.elmo
        fix = "Begin without it, or give the synthetic pairs with --train, untagged."
        raise UserError("has no tag for synthetic pairs in its vocabulary", file=where, fix=fix)
    data = configuration.data
    if not tokenizer.reserves(data.reserved):
        if not options.begin_from or options.adapter_rank:
            wanted = [f"data.{name}" for name in ("placeholders", "terms", "fuzzy_matches") if getattr(data, name)]
            names = " and ".join(wanted)
            what = f"the vocabulary lacks the pieces of {names}, and can't get any"
            raise UserError(what, fix=f"Begin from a whole run and train all of it, or leave {names} out.")
        tokenizer = reserving(tokenizer, data.reserved)
    if not data.tokenizer.added:
        return tokenizer
    of_domain = chain.from_iterable(corpora.train[: len(corpora.train) - len(data.mix)])
    pairs = keep(of_domain, data.filter, Skipped())
    return extended(tokenizer, pairs, data.tokenizer.added, shared_ids=data.tokenizer.shared_ids)


def lacks_pieces(configuration: Configuration) -> bool:
    """Whether the run to be fine-tuned lacks reserved pieces that the configuration needs."""
    folder = configuration.training.begin_from
    return folder is not None and not RunFolder(Path(folder)).tokenizer().reserves(configuration.data.reserved)


def begin(model: Model, options: TrainingOptions, tokenizer: Tokenizer) -> None:
    """Initialise a new model with the weights of other runs, if there are any.

    Args:
        model: the new model.
        options: the options that name the runs.
        tokenizer: the tokenizer of the model, which may have more pieces than that of the run.

    Raises:
        UserError: a run has no weights, or they do not fit.
    """
    if options.begin_from:
        _begin_from(model, RunFolder(Path(options.begin_from)), tokenizer)
    Pretrained.of(options).begin(model)


def _begin_from(model: Model, run: RunFolder, tokenizer: Tokenizer) -> None:
    """Initialise a model with the weights of a run; a classifier also with those of a language model.

    The row of a piece that the run lacks is the mean of the rows of the pieces into which the run cuts it.

    Raises:
        UserError: the run has no weights, or they do not fit.
    """
    tensors, _ = load_tensors(run.model_file)
    language = getattr(model, "language", None)
    if language is not None and not any(name.startswith("language.") for name in tensors):
        load_weights(language, tensors, run.model_file)
        return
    own = unshared(model)
    for name in tensors.keys() & own.keys():
        if name.startswith("second.") and own[name].shape != tensors[name].shape:  # other labels
            tensors[name] = own[name]
    before = run.tokenizer()
    if before.fingerprint != tokenizer.fingerprint:
        _extend(tensors, own, before, tokenizer)
    load_weights(model, tensors, run.model_file)


def _extend(tensors: dict[str, Tensor], own: dict[str, Tensor], before: Tokenizer, now: Tokenizer) -> None:
    """Add rows for the additional pieces to the weights that have a row for each piece."""
    import torch

    sources, targets = parts_of_new(before, now)
    for name in tensors.keys() & own.keys():
        parts = sources if name.startswith("source_embedding.") else targets
        tensor = tensors[name]
        if len(own[name]) == len(tensor) + len(parts) > len(tensor):
            means = [tensor[ids].mean(0) for ids in parts]
            tensors[name] = torch.cat([tensor, torch.stack(means)])
