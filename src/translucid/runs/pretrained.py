"""Translators that begin with what language models have learned.

The halves (Ramachandran et al. 2017, arXiv 1611.02683, section 2.1): a model of the source language becomes the
encoder, one of the target language the decoder, with their vocabularies, their embeddings, the layers that both have,
and, of the decoder, the output projection. What looks from one half to the other is new, and the decoder begins as the
language model that it was: what it looks at adds nothing yet.

ELMo (Peters et al. 2018, arXiv 1802.05365): a bidirectional model of the source language reads along, and what it makes
of each token is told to the encoder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.models.language_options import BiLSTMLanguageOptions, LSTMLanguageOptions, TransformerLanguageOptions
from translucid.runs.presets import kind_of_preset
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.runs.weight_loading import load_weights, refuse_misfits, unshared

if TYPE_CHECKING:
    from torch import Tensor

    from translucid.models.protocol import Model
    from translucid.runs.training_options import TrainingOptions


class Pretrained(NamedTuple):
    """The runs of language models with which a translator begins, as far as it does."""

    encoder: RunFolder | None = None
    decoder: RunFolder | None = None
    elmo: RunFolder | None = None

    @classmethod
    def of(cls, options: TrainingOptions) -> Pretrained:
        """Return those that a configuration names."""
        names = options.init_encoder, options.init_decoder, options.elmo
        return cls(*(RunFolder(Path(name)) if name else None for name in names))

    def settings(self, preset: str | None) -> dict[str, Any]:
        """Return the settings that the translator takes over.

        Args:
            preset: what it is to be, if that is said.

        Raises:
            UserError: one is no run of a language model that this can be done with, or they do not go together, or
                make no translator of that kind.
        """
        halves = [run for run in (self.encoder, self.decoder) if run]
        model = _shape(halves[0]) if halves else {}
        kind = kind_of_preset(preset)
        if halves and kind not in {None, model["kind"]}:
            what = f"is a model with which a translator of the kind {model['kind']} begins, and {preset} is none"
            raise UserError(what, file=halves[0].path, fix="Give another --model, or another run.")
        for run in halves[1:]:
            _refuse_other_shape(model, halves[0], run)
        if self.elmo:
            model["elmo"] = _bidirectional(self.elmo).model_dump()
        if self.encoder and self.elmo and self.encoder.tokenizer().fingerprint != self.elmo.tokenizer().fingerprint:
            what = f"has another vocabulary than {self.encoder.path}, and a source is cut in one way"
            raise UserError(what, file=self.elmo.path, fix="Train both language models from the same text.")
        found = self.tokenizer(None)
        joint = found is not None and found.joint
        first = next(run for run in self if run)
        tokenizer = first.configuration().data.tokenizer.model_dump() | {"joint": joint}
        keys = ("init_encoder", "init_decoder", "elmo")
        return {
            "model": {**model, "share_embeddings": joint},
            "data": {"tokenizer": tokenizer},
            "training": {key: str(run.path) for key, run in zip(keys, self, strict=True) if run},
        }

    def tokenizer(self, learned: Tokenizer | None) -> Tokenizer | None:
        """Return the source side of the encoder's tokenizer beside the target side of the decoder's.

        Args:
            learned: serves the side that begins anew; without it, None is returned if there is such a side.
        """
        read = self.encoder or self.elmo
        source = read.tokenizer() if read else learned
        target = self.decoder.tokenizer() if self.decoder else learned
        return Tokenizer.paired(source, target) if source and target else None

    def begin(self, model: Model) -> None:
        """Let a fresh translator have the weights of the language models.

        Raises:
            UserError: they don't fit.
        """
        own = unshared(model)
        for run, named in ((self.encoder, _in_encoder), (self.decoder, _in_decoder)):
            if run:
                given = {named(name, own): tensor for name, tensor in _stacked(load_tensors(run.model_file)[0]).items()}
                given = {name: tensor for name, tensor in given.items() if name in own}
                wanted, found = ({name: tensors[name].shape for name in given} for tensors in (own, given))
                refuse_misfits(wanted, found, run.model_file)
                for name, tensor in given.items():
                    own[name].copy_(tensor)
        if self.decoder:
            _look_at_nothing(own)
        if self.elmo:
            language: Model = model.get_submodule("source_embedding.language")  # type: ignore[assignment]
            load_weights(language, load_tensors(self.elmo.model_file)[0], self.elmo.model_file)


def _shape(run: RunFolder) -> dict[str, Any]:
    """Return the options of a translator whose half a run's model can be."""
    model = run.configuration().model
    if isinstance(model, TransformerLanguageOptions):
        same = model.model_dump(include={"width", "heads", "feed_forward", "norm", "tie_output"})
        return {"kind": "transformer", **same, "encoder_layers": model.layers, "decoder_layers": model.layers}
    if not isinstance(model, LSTMLanguageOptions):
        what = f"holds a model of the kind {model.kind}, with which no half of a translator begins"
        raise UserError(what, file=run.path, fix="Give the run of an lm-transformer or an lm-lstm.")
    if model.backwards:
        raise UserError("reads backwards, and a translator does not", file=run.path, fix="Give another run.")
    if model.layers > 1 and model.hidden != model.width:
        what = f"has model.hidden={model.hidden} and model.width={model.width}, and a translator has one width"
        raise UserError(what, file=run.path, fix="Train the language model with both alike.")
    same = model.model_dump(include={"width", "layers", "tie_output"})
    return {"kind": "recurrent", "cell": "lstm", "bidirectional": False, **same}


def _refuse_other_shape(shape: dict[str, Any], first: RunFolder, run: RunFolder) -> None:
    for name, value in _shape(run).items():
        if shape.get(name) != value:
            what = f"would make a translator with model.{name}={value}, and {first.path} one with {shape.get(name)}"
            raise UserError(what, file=run.path, fix="Both halves need language models of one shape.")


def _bidirectional(run: RunFolder) -> BiLSTMLanguageOptions:
    model = run.configuration().model
    if not isinstance(model, BiLSTMLanguageOptions):
        what = f"holds a model of the kind {model.kind}, which does not read from both ends"
        raise UserError(what, file=run.path, fix="Give the run of an lm-bilstm.")
    if model.characters:
        what = "reads its pieces by their characters, which a translator does not"
        raise UserError(what, file=run.path, fix="Train one with model.characters=false.")
    return model


def _stacked(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Name the weights of LSTM layers as PyTorch's stack of layers does, which has two biases where one would do."""
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


def _in_encoder(name: str, own: dict[str, Tensor]) -> str:
    """Return what a weight of a language model is called in a translator's encoder, "" if there is none."""
    room, _, rest = name.partition(".")
    if room == "embedding":
        plain = f"source_embedding.{rest}"
        return plain if plain in own else f"source_embedding.embedding.{rest}"  # ELMo's vectors are added to it
    places = {"decoder": "encoder", "decoder_norm": "encoder_norm", "recurrence": "encoder.recurrence"}
    return f"{places[room]}.{rest}" if room in places else ""


def _in_decoder(name: str, own: dict[str, Tensor]) -> str:
    """Return what a weight of a language model is called in a translator's decoder."""
    room, _, rest = name.partition(".")
    if room == "embedding":
        target = f"target_embedding.{rest}"
        return target if target in own else _in_encoder(name, own)  # both sides share it
    if room == "decoder":  # behind self-attention stands cross-attention, and then feed-forward
        return name.replace(".residuals.1.", ".residuals.2.")
    return f"decoder.{name}" if room == "recurrence" else name


def _look_at_nothing(own: dict[str, Tensor]) -> None:
    """Let what a decoder looks at add nothing, so that it writes what the language model would."""
    for name, tensor in own.items():
        if name.startswith("decoder.") and ".cross_attention.output." in name:
            tensor.zero_()
        if name == "decoder.combine.weight":  # tanh(W_c [c; h]), h that of the language model
            tensor.zero_()
            tensor[:, -len(tensor) :].fill_diagonal_(1)
