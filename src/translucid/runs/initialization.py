"""Initialization of a run from other runs: their tokenizers, the shapes of their models, and their weights.

A translator can be initialized from language models, in two ways:

Encoder and decoder (Ramachandran et al. 2017, arXiv 1611.02683, section 2.1): a language model of the source language
initializes the encoder, one of the target language the decoder, with their vocabularies, embeddings and common layers;
the decoder also gets the output projection. Only the cross-attention is new. At first it adds nothing, so that the
decoder starts as the language model.

ELMo (Peters et al. 2018, arXiv 1802.05365): the encoder also reads the representation of each token in a bidirectional
language model of the source language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from translucid.data.filtering import Filter, Skipped, keep
from translucid.data.tokenizing.extending import parts_of_new, with_language, with_reserved, with_tag, with_words
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import FORMALITY, SPECIAL
from translucid.models.kinds import options_of_kind
from translucid.models.model_shape import ModelShape
from translucid.runs.corpus_files import Corpora
from translucid.runs.presets import kind_of_preset
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors, load_weights, refuse_misfits, shapes, unshared

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


LANGUAGES = "source_language", "target_language"
"""The options with the languages that a multilingual run translates between if no others are requested."""
_INHERITED = (*LANGUAGES, "learned", "reverse", "placeholders", "formality")


def settings_from(run: Path, preset: str | None) -> dict[str, Any]:
    """Return the settings that a new run takes over from another run.

    Args:
        run: the folder of the other run.
        preset: the preset of the new run; by default that of the other run.

    Raises:
        UserError: there is no such run, or a model of this kind can't be initialized from it.
    """
    base = RunFolder(run).configuration()
    kind = kind_of_preset(preset)
    model = base.model.model_dump()
    if kind not in {None, base.model.kind}:
        options = options_of_kind(kind)
        if options and issubclass(options, ModelShape):
            model = options.begun_from(base.model, run)
    data = {name: getattr(base.data, name) for name in _INHERITED}
    data["tokenizer"] = base.data.tokenizer.model_dump(exclude={"added"})
    training: dict[str, Any] = {"begin_from": str(run)}
    if base.model.reads == "text":
        training |= FINE_TUNING
    settings: dict[str, Any] = {"training": training, "data": data, "model": model}
    if preset is None:
        settings["preset"] = base.preset
    return settings


def begin(model: Model, options: TrainingOptions, tokenizer: Tokenizer) -> None:
    """Initialize a new model with the weights of other runs, if there are any.

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
    """Initialize a model with the weights of a run, or the model that it builds on.

    The row of a piece that the run lacks is the mean of the rows of the pieces into which the run cuts it.

    Raises:
        UserError: the run has no weights, or they do not fit.
    """
    tensors, _ = load_tensors(run.model_file)
    language = getattr(model, "language", None)
    if language is not None and not any(name.startswith("language.") for name in tensors):
        load_weights(language, tensors, run.model_file)
        return
    weights = unshared(model)
    for name in tensors.keys() & weights.keys():
        if name.startswith("second.") and weights[name].shape != tensors[name].shape:  # other labels
            tensors[name] = weights[name]
    base_tokenizer = run.tokenizer()
    if base_tokenizer.fingerprint != tokenizer.fingerprint:
        language_pieces = run.configuration().data.tokenizer.languages.values()
        _extend(tensors, weights, *parts_of_new(base_tokenizer, tokenizer, language_pieces))
        if tokenizer.has_formality and not base_tokenizer.has_formality:
            _separate(tensors, [tokenizer.source_id(token) for token in FORMALITY.values()])
    load_weights(model, tensors, run.model_file)


def _extend(
    tensors: dict[str, Tensor], weights: dict[str, Tensor], sources: list[list[int]], targets: list[list[int]]
) -> None:
    """Add rows for the additional pieces to the weights that have a row for each piece.

    A new row is the mean of the rows of its parts, or of all but special pieces if it has none. Then no logit of a new
    piece exceeds those of all former pieces at first, and the translations of greedy search stay.

    Args:
        tensors: the former weights.
        weights: the weights of the new model.
        sources: the former ids of the parts of each new source piece.
        targets: those of each new target piece.
    """
    import torch

    for name in tensors.keys() & weights.keys():
        parts = sources if name.startswith("source_embedding.") else targets
        tensor = tensors[name]
        if len(weights[name]) == len(tensor) + len(parts) > len(tensor):
            # Not of padding and the like: imported models exclude them by a bias of -100.
            pieces = range(len(SPECIAL), len(tensor))
            means = [tensor[ids or pieces].mean(0) for ids in parts]
            tensors[name] = torch.cat([tensor, torch.stack(means)])


def _separate(tensors: dict[str, Tensor], ids: Sequence[int]) -> None:
    """Move the embeddings of two new source tokens apart, each by half the mean norm of an embedding.

    With equal embeddings, hundreds of updates teach the model hardly any difference between them.
    """
    import torch

    for name in tensors:
        if name.startswith("source_embedding.") and name.endswith("tokens.weight"):
            rows = tensors[name].clone()
            direction = torch.randn(rows.size(1), generator=torch.Generator().manual_seed(1)).to(rows)
            step = direction * (rows.norm(dim=1).mean() / direction.norm() / 2)
            for number, sign in zip(ids, (1, -1), strict=True):
                rows[number] += sign * step
            tensors[name] = rows


class Pretrained(NamedTuple):
    """The runs of the language models that initialize a translator, None where there is none."""

    encoder: RunFolder | None = None
    decoder: RunFolder | None = None
    elmo: RunFolder | None = None

    @classmethod
    def of(cls, options: TrainingOptions) -> Pretrained:
        """Return the runs that the options name."""
        return cls(*map(_run, (options.init_encoder, options.init_decoder, options.elmo)))

    def settings(self, preset: str | None) -> dict[str, Any]:
        """Return the settings that the translator takes over.

        Args:
            preset: the preset of the translator, if one is given.

        Raises:
            UserError: a run is not of a suitable language model, or the runs do not fit together or to the preset.
        """
        halves = list(filter(None, (self.encoder, self.decoder)))
        model: dict[str, Any] = {}
        if halves:
            model = _shape(halves[0])
        kind = kind_of_preset(preset)
        if halves and kind not in {None, model["kind"]}:
            what = f"initializes translators of the kind {model['kind']}, and {preset} is none"
            raise UserError(what, file=halves[0].path, fix="Give another `model`, or another run.")
        for run in halves[1:]:
            _refuse_other_shape(model, halves[0], run)
        if self.elmo:
            model["elmo"] = self.elmo.configuration().model.as_elmo(self.elmo.path)
        if self.encoder and self.elmo and self.encoder.tokenizer().fingerprint != self.elmo.tokenizer().fingerprint:
            what = f"has another vocabulary than {self.encoder.path}, and a source is cut in one way"
            raise UserError(what, file=self.elmo.path, fix="Train both language models from the same text.")
        tokenizer = self.tokenizer(None)
        joint = tokenizer is not None and tokenizer.joint
        runs = {"init_encoder": self.encoder, "init_decoder": self.decoder, "elmo": self.elmo}
        training = {name: str(run.path) for name, run in runs.items() if run}
        first_run = next(filter(None, runs.values()))
        return {
            "model": {**model, "share_embeddings": joint},
            "data": {"tokenizer": first_run.configuration().data.tokenizer.model_dump() | {"joint": joint}},
            "training": training,
        }

    def tokenizer(self, default: Tokenizer | None) -> Tokenizer | None:
        """Return the source side of the encoder's tokenizer with the target side of the decoder's.

        Args:
            default: the tokenizer of a side without a language model; if it is None, both sides must have one, or the
                result is None.
        """
        encoder = self.encoder or self.elmo
        source = encoder.tokenizer() if encoder else default
        target = self.decoder.tokenizer() if self.decoder else default
        return Tokenizer.paired(source, target) if source and target else None

    def begin(self, model: Model) -> None:
        """Initialize a translator with the weights of the language models.

        Raises:
            UserError: they don't fit.
        """
        weights = unshared(model)
        for run, rename in ((self.encoder, _in_encoder), (self.decoder, _in_decoder)):
            if run is None:
                continue
            tensors = {}
            for language_name, tensor in _stacked(load_tensors(run.model_file)[0]).items():
                name = rename(language_name, weights)
                if name in weights:
                    tensors[name] = tensor
            refuse_misfits(shapes({name: weights[name] for name in tensors}), shapes(tensors), run.model_file)
            for name, tensor in tensors.items():
                weights[name].copy_(tensor)
        if self.decoder:
            _disable_cross_attention(weights)
        if self.elmo:
            language: Model = model.get_submodule("source_embedding.language")  # type: ignore[assignment]
            load_weights(language, load_tensors(self.elmo.model_file)[0], self.elmo.model_file)


def _run(name: str | None) -> RunFolder | None:
    return RunFolder(Path(name)) if name else None


def _shape(run: RunFolder) -> dict[str, Any]:
    """Return the options of a translator whose encoder or decoder a run's model can initialize."""
    return run.configuration().model.translator_of_same_shape(run.path)


def _refuse_other_shape(shape: dict[str, Any], first_run: RunFolder, run: RunFolder) -> None:
    for name, value in _shape(run).items():
        if shape.get(name) != value:
            what = f"would make a translator with model.{name}={value}, and {first_run.path} one with {shape.get(name)}"
            raise UserError(what, file=run.path, fix="Both halves need language models of one shape.")


def _stacked(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of LSTM layers to those of PyTorch's `nn.LSTM`, which has a second, redundant bias."""
    names = {"w": "weight_ih", "u": "weight_hh", "b": "bias_ih"}
    renamed = {}
    for name, tensor in tensors.items():
        if name.startswith("layers."):
            _, layer, kind = name.split(".")
            renamed[f"recurrence.rnn.{names[kind]}_l{layer}"] = tensor
            if kind == "b":
                renamed[f"recurrence.rnn.bias_hh_l{layer}"] = tensor.new_zeros(tensor.shape)
        else:
            renamed[name] = tensor
    return renamed


def _in_encoder(name: str, weights: dict[str, Tensor]) -> str:
    """Return the name that a language model's weight has in a translator's encoder, "" if it has none."""
    module, _, name_in_module = name.partition(".")
    if module == "embedding":
        plain = f"source_embedding.{name_in_module}"
        # With ELMo, the embedding is part of a module that adds ELMo's vectors.
        return plain if plain in weights else f"source_embedding.embedding.{name_in_module}"
    modules = {"decoder": "encoder", "decoder_norm": "encoder_norm", "recurrence": "encoder.recurrence"}
    return f"{modules[module]}.{name_in_module}" if module in modules else ""


def _in_decoder(name: str, weights: dict[str, Tensor]) -> str:
    """Return the name that a language model's weight has in a translator's decoder."""
    module, _, name_in_module = name.partition(".")
    if module == "embedding":
        target = f"target_embedding.{name_in_module}"
        return target if target in weights else _in_encoder(name, weights)  # both sides share the embedding
    if module == "decoder":  # a translator has cross-attention between self-attention and feed-forward layer
        return name.replace(".residuals.1.", ".residuals.2.")
    return f"decoder.{name}" if module == "recurrence" else name


def _disable_cross_attention(weights: dict[str, Tensor]) -> None:
    """Let cross-attention add nothing, so that the decoder computes what the language model would."""
    for name, tensor in weights.items():
        if name.startswith("decoder.") and ".cross_attention.output." in name:
            tensor.zero_()
        if name == "decoder.combine.weight":  # tanh(W_c [c; h]), where h is the state of the language model
            tensor.zero_()
            tensor[:, -len(tensor) :].fill_diagonal_(1)


def initial_tokenizer(
    configuration: Configuration, learn: Callable[[], Tokenizer], corpora: Corpora, tell: Callable[[str], None]
) -> Tokenizer:
    """Return the tokenizer of a new run: that of the runs from which it is initialized, or a new one.

    Args:
        configuration: the configuration of the run.
        learn: a function that learns a new tokenizer.
        corpora: the corpora of the run. A vocabulary is extended by words of these, without those that are mixed in.
        tell: called with a line for the user.

    Raises:
        UserError: the tokenizer lacks the tag of synthetic pairs, or reserved pieces, and can't be extended.
    """
    options, pretrained = configuration.training, Pretrained.of(configuration.training)
    if not options.begin_from and not options.teachers and not any(pretrained):
        return learn()
    if options.teachers:
        tokenizer = _tokenizer_of_teacher(RunFolder(Path(options.teachers[0])), configuration)
    elif options.begin_from:
        tokenizer = RunFolder(Path(options.begin_from)).tokenizer()
    else:
        pretrained_tokenizer = pretrained.tokenizer(None) or pretrained.tokenizer(learn())
        assert pretrained_tokenizer is not None
        tokenizer = pretrained_tokenizer
    data = configuration.data
    extensible = options.begin_from and not options.adapter_rank
    if data.synthetic and tokenizer.tag is None:
        if not extensible:
            run = options.begin_from or options.init_encoder or options.elmo or options.teachers[0]
            fix = "Begin without it, or give the synthetic pairs with `train`, untagged."
            raise UserError("has no tag for synthetic pairs in its vocabulary, and can't get one", file=run, fix=fix)
        tokenizer = with_tag(tokenizer, shared_ids=data.tokenizer.shared_ids)
    if not tokenizer.reserves(data.reserved):
        if not extensible:
            options_with_pieces = "placeholders", "terms", "fuzzy_matches", "context", "formality"
            names = " and ".join(f"data.{name}" for name in options_with_pieces if getattr(data, name))
            what = f"the vocabulary lacks the pieces of {names}, and can't get any"
            raise UserError(what, fix=f"Begin from a whole run and train all of it, or leave {names} out.")
        tokenizer = with_reserved(tokenizer, data.reserved)
    if languages := _new_languages(configuration):
        data = configuration.data
        pieces = [piece for piece in data.tokenizer.languages.values() if not tokenizer.reserves([piece])]
        texts, other_texts = (_Texts(corpora, data.filter, languages, of_new=of_new) for of_new in (True, False))
        return with_language(tokenizer, texts, other_texts, data.tokenizer.added, pieces, tell)
    if not data.tokenizer.added:
        return tokenizer
    domain_corpora = chain.from_iterable(corpora.train[: len(corpora.train) - len(data.mixed_shares)])
    pairs = keep(domain_corpora, data.filter, Skipped())
    return with_words(tokenizer, pairs, data.tokenizer.added, shared_ids=data.tokenizer.shared_ids)


def _new_languages(configuration: Configuration) -> set[str]:
    """Return the languages of the training files that the run to be fine-tuned lacks.

    Raises:
        UserError: that run is not multilingual, or its vocabulary can't be extended.
    """
    data, training = configuration.data, configuration.training
    if not training.begin_from or not data.tokenizer.languages:
        return set()
    base = RunFolder(Path(training.begin_from)).configuration().data
    if not base.tokenizer.languages:
        what = "translates one direction and has no pieces for languages, so it can't learn others"
        raise UserError(what, file=training.begin_from, fix="Begin from a multilingual run, or train all files anew.")
    new_languages = set(chain.from_iterable(data.corpus_directions)) - set(base.all_languages)
    if new_languages and (training.adapter_rank or not data.tokenizer.joint):
        reason = "training.adapter_rank" if training.adapter_rank else "a vocabulary for each side"
        what = f"the model lacks {' and '.join(sorted(new_languages))}, and can't learn more languages with {reason}"
        raise UserError(what, file=training.begin_from, fix="Train the whole model, with a joint vocabulary.")
    return new_languages


@dataclass(frozen=True)
class _Texts:
    """The texts of the languages that a vocabulary gets, or of the others, from all training corpora."""

    corpora: Corpora
    pair_filter: Filter
    new_languages: Set[str]
    of_new: bool

    def __iter__(self) -> Iterator[str]:
        for index in sorted(chain.from_iterable(self.corpora.texts.values())):
            for pair in keep(self.corpora.train[index], self.pair_filter, Skipped()):
                for language, text in zip(self.corpora.directions[index], pair, strict=True):
                    if (language in self.new_languages) == self.of_new:
                        yield text


def _tokenizer_of_teacher(teacher: RunFolder, configuration: Configuration) -> Tokenizer:
    """Return the tokenizer of a teacher.

    Raises:
        UserError: the new run has other settings of the tokenizer.
    """
    settings = configuration.data.tokenizer.model_dump()
    for name, value in teacher.configuration().data.tokenizer.model_dump().items():
        if name != "added" and settings[name] != value:
            what = f"has data.tokenizer.{name}={value}, but the new run, which gets its vocabulary, {settings[name]}"
            raise UserError(what, file=teacher.path, fix="Set the same, or leave training.teachers out.")
    return teacher.tokenizer()


def lacks_pieces(configuration: Configuration) -> bool:
    """Whether the run to be fine-tuned lacks reserved pieces that the configuration needs."""
    folder = configuration.training.begin_from
    return folder is not None and not RunFolder(Path(folder)).tokenizer().reserves(configuration.data.reserved)
