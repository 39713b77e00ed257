"""A run that begins with what others have learned: their tokenizers, the shapes of their models, and their weights."""

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
"""How a translator that begins as another one is trained, unless told otherwise; docs/fine-tuning.md has the trials."""


_TAKEN_OVER = ("source_language", "target_language", "reverse", "placeholders")


def settings_from(run: Path, preset: str | None) -> dict[str, Any]:
    """Return the settings that a run which begins from another one takes over.

    Args:
        run: the other one.
        preset: what the new one is to be; what the other one was if not given.

    Raises:
        UserError: it is no run, or a model of this kind can't begin with its weights.
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
    tokenizer = {**before.data.tokenizer.model_dump(), "added": 0}
    begun = {"preset": before.preset} if preset is None else {}
    data = {name: getattr(before.data, name) for name in _TAKEN_OVER}
    training = {"begin_from": str(run), **(FINE_TUNING if before.model.reads == "text" else {})}
    if before.data.tokenizer.told == "each on its own side":
        training["freeze"] = ["output.bias"]  # M2M100 and NLLB have none, and are to be given away in their own form
    return {**begun, "training": training, "data": {"tokenizer": tokenizer, **data}, "model": model}


def begun_tokenizer(configuration: Configuration, learn: Callable[[], Tokenizer], corpora: Corpora) -> Tokenizer:
    """Return the tokenizer of a new run: that of the runs it begins with, or a new one where there is none.

    Args:
        configuration: of the run.
        learn: gives a new one.
        corpora: of the run; one that is extended gets words of these, but of none that are mixed in.

    Raises:
        UserError: it has no tag, and there are synthetic pairs; or it lacks reserved pieces and can't get them.
    """
    options, pretrained = configuration.training, Pretrained.of(configuration.training)
    if not options.begin_from and not any(pretrained):
        return learn()
    given = RunFolder(Path(options.begin_from)).tokenizer() if options.begin_from else pretrained.tokenizer(None)
    found = given or pretrained.tokenizer(learn())
    assert found is not None
    if configuration.data.synthetic and found.tag is None:
        where = options.begin_from or options.init_encoder or options.elmo
        fix = "Begin without it, or give the synthetic pairs with --train, untagged."
        raise UserError("has no tag for synthetic pairs in its vocabulary", file=where, fix=fix)
    data = configuration.data
    if not found.reserves(data.reserved):
        if not options.begin_from or options.adapter_rank:
            wanted = [f"data.{name}" for name in ("placeholders", "terms", "fuzzy_matches") if getattr(data, name)]
            names = " and ".join(wanted)
            what = f"the vocabulary lacks the pieces of {names}, and can't get any"
            raise UserError(what, fix=f"Begin from a whole run and train all of it, or leave {names} out.")
        found = reserving(found, data.reserved)
    if not data.tokenizer.added:
        return found
    own = chain.from_iterable(corpora.train[: len(corpora.train) - len(data.mix)])
    pairs = keep(own, data.filter, Skipped())
    return extended(found, pairs, data.tokenizer.added, shared_ids=data.tokenizer.shared_ids)


def lacks_pieces(configuration: Configuration) -> bool:
    """Whether the run that another one begins with knows some pieces not at all that the configuration reserves."""
    folder = configuration.training.begin_from
    return folder is not None and not RunFolder(Path(folder)).tokenizer().reserves(configuration.data.reserved)


def begin(model: Model, options: TrainingOptions, tokenizer: Tokenizer) -> None:
    """Let a fresh model have the weights of the runs that it begins with, if there are any.

    Args:
        model: the fresh one.
        options: name the runs.
        tokenizer: of the model, which may have more pieces than that of the run.

    Raises:
        UserError: a run has no weights, or they do not fit.
    """
    if options.begin_from:
        _begin_from(model, RunFolder(Path(options.begin_from)), tokenizer)
    Pretrained.of(options).begin(model)


def _begin_from(model: Model, run: RunFolder, tokenizer: Tokenizer) -> None:
    """Let a model begin with the weights of a run; a classifier may begin with those of a language model.

    The rows of pieces that the run does not have begin as the mean of those of the pieces that they were cut into.

    Raises:
        UserError: the run has no weights, or they do not fit.
    """
    tensors = load_tensors(run.model_file)[0]
    language = getattr(model, "language", None)
    if language is not None and not any(name.startswith("language.") for name in tensors):
        load_weights(language, tensors, run.model_file)
        return
    own = unshared(model)
    for name in tensors.keys() & own.keys():
        if name.startswith("second.") and own[name].shape != tensors[name].shape:  # other labels
            tensors[name] = own[name]
    if (before := run.tokenizer()).fingerprint != tokenizer.fingerprint:
        _extend(tensors, own, before, tokenizer)
    load_weights(model, tensors, run.model_file)


def _extend(tensors: dict[str, Tensor], own: dict[str, Tensor], before: Tokenizer, now: Tokenizer) -> None:
    """Give the weights that have a row for each piece the rows of more pieces."""
    import torch

    sources, targets = parts_of_new(before, now)
    for name in tensors.keys() & own.keys():
        parts = sources if name.startswith("source_embedding.") else targets
        tensor = tensors[name]
        if len(own[name]) == len(tensor) + len(parts) > len(tensor):
            means = [tensor[ids].mean(0) for ids in parts]
            tensors[name] = torch.cat([tensor, torch.stack(means)])
