"""Export runs to Hugging Face folders, which `AutoModelForSeq2SeqLM` and `AutoTokenizer` load, with the same logits.

| a run with | becomes |
| --- | --- |
| post-norm (layer normalization after each sublayer) | MarianMT |
| pre-norm | Pegasus, the same architecture with that difference, with the tokenizer of MarianMT |
| pre-norm and the positions of M2M100 | M2M100 or NLLB |

The positions of the first two have all sines first, then all cosines; the channels of runs that were trained with
alternating ones are reordered (`sines_first`).

MarianTokenizer accepts any order of the vocabulary. Runs that we train keep theirs; a model without a start embedding
gets the order of OPUS: `</s>` and `<unk>` first, and last `<pad>`, with which its decoder begins. M2M100 and NLLB have
the order of Fairseq. Rows that an import has added (`Vocabulary.add_unknown`) are removed: both tokenizers replace
unknown pieces by `<unk>`.

A model card, README.md, has metadata for the search of the Hub.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from bitext.languages import Languages
from bitext.reading import read_at_most
from translucid import __version__
from translucid.data.tokenizing.tokenizer import LARGEST, Tokenizer
from translucid.ground.atomic import export_folder, write_atomically
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLINGS
from translucid.interop.hub import FAIRSEQ
from translucid.interop.huggingface import layer_names
from translucid.interop.imported import SIDES, separated
from translucid.interop.pieces import NEVER, model_of, pieces_of
from translucid.layers.positions import sinusoidal_positions
from translucid.models.model_options import Choices, TransformerOptions, unknown_option
from translucid.models.protocol import SequenceModel
from translucid.runs.configuration import Configuration

MARKER = "generation_config.json", "a model of Hugging Face"
"""A file by which an exported folder is recognized, and the name of its kind."""
_CLASSES = {
    "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration",
}
_FIX = "Use `export_ctranslate2`."
_COMPUTED: Choices = {
    "decoder": ("self-attention",),
    "norm": ("pre", "post"),
    "nonlinearity": ("relu", "swish", "gelu"),
    "positions": ("sinusoidal", "sinusoidal-halves", "sinusoidal-tensor2tensor", "learned", "none"),
    "first_position": range(1 << 20),
    "scale_embeddings": (False, True),
    "zero_start": (False, True),
}
"""The choices that the checks below tell apart."""
_READ = ".tokens.weight", ".query.weight", ".key_value.weight", ".inner.weight"
"""Name endings of matrices whose columns are channels, as are those of `output.weight`, which computes the logits."""
_WRITE = "attention.output.weight", "attention.output.bias", ".outer.weight", ".outer.bias", "norm.weight", "norm.bias"
"""Name endings of matrices, biases and norms whose rows are channels."""


def export_huggingface(
    model: SequenceModel,
    tokenizer: Tokenizer,
    configuration: Configuration,
    out: Path,
    *,
    measures: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    extra_files: Mapping[str, bytes] = MappingProxyType({}),
) -> str:
    """Write a folder atomically.

    Args:
        model: a translator.
        tokenizer: the model's tokenizer.
        configuration: the configuration of the run.
        out: the folder.
        measures: the measures of the validation that selected the weights, for the model card.
        overwrite: whether to replace an existing export.
        extra_files: the content of further files by name.

    Returns:
        The name of the class in `transformers`.

    Raises:
        UserError: the model is of a kind that can't be exported, or the folder exists already or can't be written.
    """
    with export_folder(out, overwrite, *MARKER) as folder:
        kind = _kind(configuration)
        options = configuration.model
        assert isinstance(options, TransformerOptions)
        tensors = {name: tensor.detach().float().cpu() for name, tensor in model.state_dict().items()}
        if options.positions == "sinusoidal":
            tensors = sines_first(tensors, options.width)
        rows = _rows(kind, tokenizer, configuration, options, tensors)
        longest = max(configuration.data.max_tokens, 512)
        languages = configuration.data.languages
        pieces = configuration.data.tokenizer.languages
        if kind == "m2m_100":
            names = sorted(pieces.values(), key=rows["target"].vocabulary.__getitem__)
            save_fairseq(folder, tokenizer, rows["target"], names, longest=longest, languages=languages)
        else:
            save_marian(folder, tokenizer, rows, longest=longest, languages=languages)
        save_json(folder / "config.json", _config(kind, options, rows, longest))
        save_json(folder / MARKER[0], _generation(configuration, rows["target"], longest))
        hf_weights = _renamed(tensors, options, rows)
        if kind == "m2m_100":
            del hf_weights["final_logits_bias"]  # all zeros, which this class does not have
        if kind == "pegasus":  # the class computes the table as well, but warns if it is missing
            table = sinusoidal_positions(longest, options.width, kind="sinusoidal-halves")
            hf_weights |= {f"model.{side}.embed_positions.weight": table.clone() for side in SIDES}
        write_atomically(folder / "model.safetensors", save(hf_weights, {"format": "pt"}))
        by_language, files = kind == "m2m_100", configuration.data.train
        card = ModelCard(_CLASSES[kind], languages, pieces, by_language, longest, files, measures or {})
        write_atomically(folder / "README.md", card.text().encode())
        for name, content in extra_files.items():
            write_atomically(folder / name, content)
    return _CLASSES[kind]


def _kind(configuration: Configuration) -> str:
    """Return the `model_type` for a run.

    Raises:
        UserError: no class of `transformers` has such a model.
    """
    o = configuration.model
    if not isinstance(o, TransformerOptions):
        raise UserError(f"a model of the kind {o.kind} has none like it at Hugging Face", fix="Use it as it is.")
    if o.elmo:
        raise UserError("Hugging Face has no translator that reads its source with ELMo", fix="Use the model as it is.")
    if o.decoder == "ssru":
        raise UserError(
            "Hugging Face has no translator with model.decoder=ssru", fix="Use `export_onnx` or `export_marian`."
        )
    if key := unknown_option(o, _COMPUTED):
        raise UserError(f"Hugging Face has no translator with model.{key}={getattr(o, key)}", fix="Use `export_onnx`.")
    is_multilingual = configuration.data.tokenizer.marks_sources and bool(configuration.data.tokenizer.languages)
    if o.positions == "sinusoidal-tensor2tensor" and o.norm == "pre" and is_multilingual:
        kind, first_position = "m2m_100", 2
    elif o.positions in ("sinusoidal", "sinusoidal-halves") and not is_multilingual:
        kind, first_position = ("marian" if o.norm == "post" else "pegasus"), 0
    else:
        what = f"model.positions={o.positions} with model.norm={o.norm}"
        raise UserError(f"Hugging Face has no translator with {what}", fix=_FIX)
    if o.first_position != first_position:
        raise UserError(f"{_CLASSES[kind]} has no model.first_position={o.first_position}", fix=_FIX)
    if kind != "marian" and not o.share_embeddings:
        raise UserError(f"{_CLASSES[kind]} has no model.share_embeddings=false", fix=_FIX)
    return kind


def _rows(
    kind: str,
    tokenizer: Tokenizer,
    configuration: Configuration,
    options: TransformerOptions,
    tensors: dict[str, Tensor],
) -> dict[str, Rows]:
    """Return the vocabulary of each side; the same object if both share it.

    Raises:
        UserError: M2M100's tokenizer or class has nothing like it.
    """
    source, target = tensors["source_embedding.tokens.weight"], tensors["target_embedding.tokens.weight"]
    bias = tensors["output.bias"]
    target_count = original_size(target, bias)
    target_names = tokenizer.target_pieces(range(target_count))
    if kind == "m2m_100":
        same_start = bool((target[SPECIAL.start] == target[SPECIAL.end]).all())
        rows = fairseq_rows(target_names, [*configuration.data.tokenizer.languages.values()], same_start=same_start)
        output_ids = [our_id for our_id in rows.ids if our_id not in (SPECIAL.pad, SPECIAL.start)]  # see `_generation`
        if options.zero_start or bias[output_ids].any():
            raise UserError("M2M100 adds no bias to its logits, and this model has learned one", fix=_FIX)
        return {"source": rows, "target": rows}
    if options.share_embeddings:
        rows = marian_rows(target_names, as_opus=options.zero_start)
        return {"source": rows, "target": rows}
    source_count = original_size(source)
    # With different sizes, padding would have different rows on the two sides.
    as_opus = options.zero_start and source_count == target_count
    return {
        "source": marian_rows(tokenizer.source_pieces(range(source_count)), as_opus=as_opus),
        "target": marian_rows(target_names, as_opus=as_opus),
    }


def _config(kind: str, o: TransformerOptions, rows: dict[str, Rows], longest: int) -> dict[str, Any]:
    """Return the content of config.json."""
    source, target = rows["source"], rows["target"]
    shape: dict[str, Any] = {}
    for side, layers in zip(SIDES, (o.encoder_layers, o.decoder_layers), strict=True):
        shape |= {f"{side}_layers": layers, f"{side}_attention_heads": o.heads, f"{side}_ffn_dim": o.feed_forward}
        shape[f"{side}_layerdrop"] = 0.0
    if kind == "marian":
        shape |= {"decoder_vocab_size": len(target.ids), "share_encoder_decoder_embeddings": source is target}
    return {
        "architectures": [_CLASSES[kind]],
        "model_type": kind,
        "is_encoder_decoder": True,
        "vocab_size": len(source.ids),
        "d_model": o.width,
        **shape,
        "activation_function": o.nonlinearity,
        "dropout": o.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "scale_embedding": o.scale_embeddings,
        "tie_word_embeddings": o.tie_output,
        "max_position_embeddings": longest,
        "pad_token_id": target.pad,
        "bos_token_id": None,
        "eos_token_id": target.end,
        "decoder_start_token_id": target.start,
        "forced_eos_token_id": target.end,
        "torch_dtype": "float32",
    }


def _generation(configuration: Configuration, rows: Rows, longest: int) -> dict[str, Any]:
    """Return the defaults of `generate`, which are those of our search where it has the same options."""
    decoding = configuration.decoding
    never = {rows.pad, rows.ids.index(SPECIAL.unknown), rows.start} - {rows.end}
    return {
        "num_beams": decoding.beam,
        "length_penalty": decoding.length_penalty,
        "no_repeat_ngram_size": decoding.no_repeat_ngram,
        "max_length": longest,
        "bad_words_ids": [[row] for row in sorted(never)],
        "pad_token_id": rows.pad,
        "eos_token_id": rows.end,
        "decoder_start_token_id": rows.start,
        "forced_eos_token_id": rows.end,
    }


def _renamed(weights: dict[str, Tensor], o: TransformerOptions, rows: dict[str, Rows]) -> dict[str, Tensor]:
    """Return the weights by Hugging Face's names, under all names that a version of `transformers` expects."""
    source, target = rows["source"], rows["target"]
    source_embeddings = weights["source_embedding.tokens.weight"][source.ids]
    target_embeddings = weights["target_embedding.tokens.weight"][target.ids]
    projection, bias = weights["output.weight"][target.ids], weights["output.bias"][target.ids]
    if o.zero_start:
        if o.tie_output and target_embeddings[target.start].any():  # its logit changes, but the token is never output
            bias[target.start] = NEVER
        target_embeddings[target.start] = 0.0
        if source is target:
            source_embeddings[source.start] = 0.0
        if o.tie_output:
            projection[target.start] = 0.0
    hf_weights = {
        "model.encoder.embed_tokens.weight": source_embeddings,
        "model.decoder.embed_tokens.weight": target_embeddings,
    }
    if source is target:
        hf_weights["model.shared.weight"] = source_embeddings.clone()
    if not o.tie_output:
        hf_weights["lm_head.weight"] = projection
    hf_weights["final_logits_bias"] = bias[None]
    names = layer_names((o.encoder_layers, o.decoder_layers), pre=o.norm == "pre")
    for name, weight, layer_bias in separated(names, weights):
        hf_weights[f"{name}.weight"], hf_weights[f"{name}.bias"] = weight, layer_bias
    # Copies, since safetensors does not save tensors that share memory.
    return {name: tensor.contiguous().clone() for name, tensor in hf_weights.items()}


def sines_first(tensors: Mapping[str, Tensor], width: int) -> dict[str, Tensor]:
    """Return the weights of a Transformer with `sinusoidal` positions for `sinusoidal-halves`.

    All blocks share the sum of embedding, position and the outputs of the sublayers. If the channels of that sum, of
    the matrices that read and write it, and of the norms are reordered together, no logit changes (except for
    rounding). So a model that was trained with alternating sines and cosines becomes one with all sines first.

    Args:
        tensors: the weights by our names.
        width: the width D of the model.
    """
    order = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])

    reordered = {}
    for name, tensor in tensors.items():
        # `attention.output.weight` ends in `output.weight`, but writes channels: the whole name decides.
        if name == "output.weight" or name.endswith(_READ):
            tensor = tensor[:, order]
        elif name.endswith(_WRITE):
            tensor = tensor[order]
        reordered[name] = tensor
    return reordered


_SPECIAL = {"pad_token": SPELLINGS.pad, "unk_token": SPELLINGS.unknown, "eos_token": SPELLINGS.end}


def save_json(file: Path, content: Any) -> None:
    """Write a JSON file as Hugging Face does."""
    write_atomically(file, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def save_marian(
    folder: Path,
    tokenizer: Tokenizer,
    rows: Mapping[str, Rows],
    *,
    longest: int,
    languages: Languages,
) -> None:
    """Write a MarianTokenizer.

    Args:
        folder: the folder of the files.
        tokenizer: our tokenizer; its SentencePiece models are copied, since only their pieces matter, not their ids.
        rows: the vocabulary of each side, or one for both.
        longest: the largest number of tokens of a text.
        languages: the codes of source and target, where known.
    """
    tokenizer.save(folder)
    for side in ("source", "target"):
        name = "tokenizer" if tokenizer.joint else side
        write_atomically(folder / f"{side}.spm", read_at_most(folder / f"{name}.model", LARGEST))
    for name in ("tokenizer", "source", "target"):
        (folder / f"{name}.model").unlink(missing_ok=True)
    separate = rows["source"] is not rows["target"]
    save_json(folder / "vocab.json", rows["source"].vocabulary)
    if separate:
        save_json(folder / "target_vocab.json", rows["target"].vocabulary)
    facts = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0],
        "target_lang": languages[1],
        "separate_vocabs": separate,
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
    }
    save_json(folder / "tokenizer_config.json", facts | _SPECIAL)


def save_fairseq(
    folder: Path,
    tokenizer: Tokenizer,
    rows: Rows,
    pieces: Sequence[str],
    *,
    longest: int,
    languages: Languages,
) -> None:
    """Write an M2M100Tokenizer or an NllbTokenizer, depending on the spelling of the languages.

    Args:
        folder: the folder of the files.
        tokenizer: our tokenizer.
        rows: the vocabulary.
        pieces: the pieces that stand for a language, in the order of their rows.
        longest: the largest number of tokens of a text.
        languages: the codes of source and target, where known.
    """
    tokenizer.save(folder)
    file = folder / "tokenizer.model"
    parsed = pieces_of(read_at_most(file, LARGEST), file)
    file.unlink()
    vocabulary = rows.vocabulary
    language_row = vocabulary[pieces[0]]
    names = rows.names[:language_row]
    write_atomically(
        folder / FAIRSEQ, model_of(parsed, [SPELLINGS.unknown, SPELLINGS.start, SPELLINGS.end, *names[4:]])
    )
    m2m = pieces[0].startswith("__")
    decoder = {}
    flags = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False)
    for name in (*names[:4], *pieces):
        decoder[str(vocabulary[name])] = {"content": name, **flags, "special": True}
    facts = {
        "tokenizer_class": "M2M100Tokenizer" if m2m else "NllbTokenizer",
        "src_lang": languages[0],
        "tgt_lang": languages[1],
        "bos_token": SPELLINGS.start,
        "sep_token": SPELLINGS.end,
        "additional_special_tokens": [*pieces],
        "added_tokens_decoder": decoder,
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
    }
    if m2m:
        facts |= {"language_codes": "m2m100", "num_madeup_words": len(rows.names) - language_row - len(pieces)}
        save_json(folder / "vocab.json", {name: row for row, name in enumerate(names)})
    save_json(folder / "tokenizer_config.json", facts | _SPECIAL)


_CODES = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy id ig
ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so
sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu
"""
M2M100 = _CODES.split()
"""The languages of M2M100's tokenizer, which expects their rows in this order after those of the pieces."""


@dataclass(frozen=True)
class Rows:
    """A vocabulary in another order."""

    ids: list[int]
    """Our id of each row."""
    names: list[str]
    """The piece of each row."""
    pad: int
    """The row of padding."""
    start: int
    """The row of the decoder's first input."""
    end: int
    """The row of the end token."""

    @property
    def vocabulary(self) -> dict[str, int]:
        """The rows by name."""
        return {name: row for row, name in enumerate(self.names)}


def original_size(embeddings: Tensor, bias: Tensor | None = None) -> int:
    """Return the number of ids that the model had originally; those after them were added by an import.

    Args:
        embeddings: [V, D].
        bias: the bias of the logits [V]; None for a source that shares nothing with the target.
    """
    # An import gives these pieces a copy of the unknown row, and a logit that they never reach.
    added = (embeddings == embeddings[SPECIAL.unknown]).all(1)
    if bias is not None:
        added &= bias == NEVER
    original = (~added).nonzero()
    return max(len(SPECIAL), int(original.max()) + 1)


def marian_rows(names: list[str], *, as_opus: bool) -> Rows:
    """Put our ids into an order for MarianTokenizer.

    Args:
        names: the pieces of those ids that are kept.
        as_opus: whether the decoder begins with padding, whose embedding is zero, as in models of OPUS.
    """
    pad, unknown, _, end = SPELLINGS
    piece_ids = [*range(len(SPECIAL), len(names))]
    pieces = [names[i] for i in piece_ids]
    if as_opus:
        pad_row = len(piece_ids) + 2
        return Rows(
            [SPECIAL.end, SPECIAL.unknown, *piece_ids, SPECIAL.start], [end, unknown, *pieces, pad], pad_row, pad_row, 0
        )
    return Rows([*SPECIAL, *piece_ids], [*SPELLINGS, *pieces], *(SPECIAL.pad, SPECIAL.start, SPECIAL.end))


def fairseq_rows(names: list[str], languages: list[str], *, same_start: bool) -> Rows:
    """Put our ids into the order of M2M100 and NLLB: four special tokens, pieces, languages, all others.

    Args:
        names: the pieces of those ids that are kept.
        languages: the pieces that stand for a language.
        same_start: whether the decoder begins with the end token, as theirs does; otherwise with `<s>`.

    Raises:
        UserError: M2M100's tokenizer has other languages.
    """
    pad, unknown, start, end = SPELLINGS
    ids_by_name = {name: i for i, name in enumerate(names) if i >= len(SPECIAL)}
    start_id = SPECIAL.start
    if same_start:
        # The model never uses the row of `<s>`: an import calls it `<row 0>`, otherwise padding takes its place.
        start_id = ids_by_name.pop("<row 0>", SPECIAL.pad)
    language_names = {*languages}
    pieces, language_ids, other_ids = [], [], []
    for name, i in ids_by_name.items():
        if name in language_names:
            language_ids.append(i)
        elif name.startswith("<row "):
            other_ids.append(i)
        else:
            pieces.append(i)
    if languages[0].startswith("__") and [names[i].strip("_") for i in language_ids] != M2M100:
        what = f"knows {len(languages)} languages, and M2M100's tokenizer knows other ones"
        raise UserError(f"the model {what}", fix="Use `export_ctranslate2`.")
    row_ids = [*pieces, *language_ids, *other_ids]
    ids = [start_id, SPECIAL.pad, SPECIAL.end, SPECIAL.unknown, *row_ids]
    row_names = [start, pad, end, unknown, *[names[i] for i in row_ids]]
    return Rows(ids, row_names, 1, 2 if same_start else 0, 2)


_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z]+)*")
_METRICS = {"bleu": "BLEU", "chrf": "chrF"}


@dataclass(frozen=True)
class ModelCard:
    """What the card of a model says."""

    kind: str
    """The class of the model in `transformers`."""
    languages: Languages
    """The codes of source and target, where known."""
    pieces: Mapping[str, str]
    """For a multilingual model, the piece of each language."""
    by_language: bool
    """Whether each side has its own language token, as in M2M100; otherwise the source has the target's."""
    longest: int = 512
    """The largest number of tokens of a text."""
    files: Sequence[str] = ()
    """The files of the training text. Only their names are written, as folders may be private."""
    measures: Mapping[str, object] = field(default_factory=dict)
    """The measures of the best validation by name, such as `bleu`, or `bleu.en-fr` for one direction."""

    @property
    def title(self) -> str:
        """The direction, if there is one."""
        codes = [code for code in self.languages if code]
        return " to ".join(codes) if len(codes) == 2 else "translation"

    def scores(self) -> Iterator[tuple[str, str, float]]:
        """Yield the direction, the metric and the value of each score."""
        for name, value in self.measures.items():
            metric, _, direction = name.partition(".")
            if metric in _METRICS and isinstance(value, float):
                yield direction.replace("-", " to ", 1) or self.title, metric, round(value, 2)

    def text(self) -> str:
        """Return the content of README.md."""
        sections = (self._metadata(), self._usage(), self._data(), self._scores(), self._limits())
        return "\n".join(chain.from_iterable(sections))

    def _metadata(self) -> list[str]:
        codes = [code for code in (*self.languages, *self.pieces) if code and _CODE.fullmatch(code)]
        lines = ["---"]
        if codes:
            lines.append(f"language: {json.dumps(list(dict.fromkeys(codes)))}")
        lines += ["library_name: transformers", "pipeline_tag: translation", "tags: [translation]"]
        # Values are in JSON, which is YAML.
        results = []
        for direction, metric, value in self.scores():
            results.append(
                {
                    "task": {"type": "translation", "name": direction},
                    "dataset": {"type": "validation", "name": "validation sentences"},
                    "metrics": [{"type": metric, "name": _METRICS[metric], "value": value}],
                }
            )
        if results:
            lines += ["model-index:", f"- name: {json.dumps(self.title)}", "  results:"]
            lines += [f"  - {json.dumps(result)}" for result in results]
        return [*lines, "---", ""]

    def _usage(self) -> list[str]:
        generate_arguments, options, text = "", "", '"…"'
        if self.by_language:
            names = [*(code for code in self.languages if code), *sorted(self.pieces)][:2]
            options = f', src_lang="{names[0]}"'
            generate_arguments = f', forced_bos_token_id=tokenizer.convert_tokens_to_ids("{self.pieces[names[-1]]}")'
        elif self.pieces:
            name = self.pieces.get(self.languages[1] or "") or min(self.pieces.values())
            text = f'"{name} …"'
        return [
            f"# {self.title}",
            "",
            f"A `{self.kind}`, written by `translucid export --to huggingface` ({__version__}).",
            "",
            "```python",
            "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
            "",
            f'tokenizer = AutoTokenizer.from_pretrained("."{options})',
            'model = AutoModelForSeq2SeqLM.from_pretrained(".")',
            f'batch = tokenizer([{text}], return_tensors="pt", padding=True)',
            f"print(tokenizer.batch_decode(model.generate(**batch{generate_arguments}), skip_special_tokens=True))",
            "```",
            "",
            "`translucid import FOLDER RUN` makes a run of this folder.",
            "",
        ]

    def _data(self) -> list[str]:
        names = [f"`{PurePath(file).name}`" for file in self.files]
        trained = f"Trained on {', '.join(names)}." if names else "The run does not record what it was trained on."
        return ["## Data", "", trained, ""]

    def _scores(self) -> list[str]:
        rows = [f"| {direction} | {_METRICS[metric]} | {value:.2f} |" for direction, metric, value in self.scores()]
        if not rows:
            return ["## Scores", "", "No scores are recorded.", ""]
        return [
            "## Scores",
            "",
            "| direction | metric | score |",
            "| --- | --- | ---: |",
            *rows,
            "",
            "sacreBLEU on validation sentences, with greedy search. The weights were selected on these sentences,",
            "which makes the scores slightly optimistic: measure on a test set of your own.",
            "",
        ]

    def _limits(self) -> list[str]:
        return [
            "## Limits",
            "",
            f"A text may have {self.longest:,} tokens. Text that differs from the training data is translated worse.",
            "Translations can be fluent and wrong; a person should check those that matter. Biases of the training",
            "data were not measured. This card names no licence: add `license:` above before you publish the model.",
            "",
        ]
