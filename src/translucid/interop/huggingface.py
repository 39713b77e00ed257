"""From a Hugging Face folder of MarianMT, M2M100 or NLLB to a run; of Pegasus too, if it has a vocabulary of Marian.

All are Transformers of "Attention Is All You Need": Marian's with layer normalisation behind each sublayer, the
others' in front of it. What differs from ours is the order of the sinusoids, the nonlinearity, where the special tokens
are among the rows, and how text becomes rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translucid.data.tokenizing.tokenizer import LARGEST, Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.huggingface_names import SIDES, block_names, last_norm
from translucid.interop.imported import Imported, Keys, read_file, read_json
from translucid.interop.pieces import LANGUAGE, Vocabulary, languages_in, only_here, pieces_of, rewritten
from translucid.interop.weights import read_weights

if TYPE_CHECKING:
    from torch import Tensor

KINDS = {"marian": "MarianMT", "m2m_100": "M2M100", "pegasus": "Pegasus"}
"""What each `model_type` is called."""
NONLINEARITIES = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
"""Ours by Hugging Face's names."""


def from_huggingface(folder: Path) -> Imported:
    """Read a Hugging Face folder.

    Raises:
        UserError: it is not complete, damaged, or of a model that we do not have.
    """
    file = folder / "config.json"
    keys = Keys(read_json(file, 1 << 20), file)
    kind = keys.text("model_type")
    if kind not in KINDS:
        raise UserError(
            f"model_type={kind!r:.50} is not supported", file=file, fix="marian, m2m_100 and NLLB can be imported."
        )
    marian = kind != "m2m_100"
    model = _shape(keys, marian=marian, pre=kind != "marian")
    tensors = read_weights(folder)
    tied = keys.flag("tie_word_embeddings", True)
    one_list = keys.flag("share_encoder_decoder_embeddings", True)
    embeddings = _embeddings(tensors, shared=tied and one_list, tied=tied, folder=folder)
    sizes = {side: len(matrix) for side, matrix in embeddings.items()}
    read = _marian_vocabularies if marian else _many_languages
    source, target, tokenizer, languages = read(folder, keys, sizes)
    zero_start = marian and not embeddings["target"][target.rows[2]].any()
    joint, shared = tokenizer.joint, source is target
    one_matrix = shared and embeddings["source"] is embeddings["target"]
    model |= {"zero_start": bool(zero_start), "share_embeddings": one_matrix, "tie_output": tied}
    told = "target in the source" if marian else "each on its own side"
    options = {"joint": joint, "shared_ids": shared and not joint, "languages": languages, "told": told}
    return Imported(
        kind=KINDS[kind],
        settings={
            "model": model,
            "data": {
                "tokenizer": options | {"vocabulary": len(target.names)},
                "max_tokens": min(keys.number("max_position_embeddings", 512), 1 << 14),
            },
            "decoding": {"beam": min(max(keys.number("num_beams", 5), 1), 10)},
        },
        tensors=_renamed(tensors, embeddings, source, target, folder=folder),
        tokenizer=tokenizer,
    )


def _shape(keys: Keys, *, marian: bool, pre: bool) -> dict[str, Any]:
    keys.refuse("normalize_before", unless=pre)
    keys.refuse("normalize_embedding", unless=False)
    keys.refuse("add_bias_logits", unless=False)
    keys.refuse("add_final_layer_norm", unless=pre)
    keys.refuse("static_position_embeddings", unless=True)
    keys.refuse("is_encoder_decoder", unless=True)
    activation = keys.text("activation_function", "relu")
    if activation not in NONLINEARITIES:
        keys.unsupported("activation_function", activation)
    for what in ("attention_heads", "ffn_dim"):
        if keys.number(f"decoder_{what}") != keys.number(f"encoder_{what}"):
            keys.unsupported(f"decoder_{what}", f"{keys.number(f'decoder_{what}')} unlike the encoder's")
    return {
        "kind": "transformer",
        "width": keys.number("d_model"),
        "heads": keys.number("encoder_attention_heads"),
        "feed_forward": keys.number("encoder_ffn_dim"),
        "encoder_layers": keys.number("encoder_layers"),
        "decoder_layers": keys.number("decoder_layers"),
        "dropout": keys.share("dropout", 0.1, most=0.9),
        "norm": "pre" if pre else "post",
        "nonlinearity": NONLINEARITIES[activation],
        "positions": "sinusoidal-halves" if marian else "sinusoidal-tensor2tensor",
        "first_position": 0 if marian else 2,
        "scale_embeddings": keys.flag("scale_embedding", not marian),
    }


_SHARED = "model.shared.weight"


def _embeddings(tensors: Mapping[str, Tensor], *, shared: bool, tied: bool, folder: Path) -> dict[str, Tensor]:
    """Return the matrices of `source`, `target` and `output`, each [V, D], as `transformers` uses them.

    What is shared is in the file once, as `model.shared`. Where nothing is tied, `transformers` 5 writes that as well,
    and uses only the matrix of each side.

    Args:
        tensors: of the folder.
        shared: whether both sides have one matrix.
        tied: whether the output has that of the target side.
        folder: for messages.

    Raises:
        UserError: one is missing, or is no matrix.
    """
    found: dict[str, Tensor] = {}
    for side, coder in (("source", "encoder"), ("target", "decoder")):
        names = [f"model.{coder}.embed_tokens.weight", _SHARED]
        found[side] = _first(tensors, names[::-1] if shared else names, folder)
    output = ["lm_head.weight", "model.decoder.embed_tokens.weight", _SHARED]
    found["output"] = found["target"] if tied else _first(tensors, output, folder)
    return found


def _first(tensors: Mapping[str, Tensor], names: Sequence[str], folder: Path) -> Tensor:
    """Return the first of some matrices that there is."""
    for name in names:
        if name in tensors and tensors[name].dim() == 2:
            return tensors[name]
    raise UserError(f"has no weights {names[0]}", file=folder, fix="Is the folder complete?")


_Read = tuple[Vocabulary, Vocabulary, Tokenizer, dict[str, str]]


def _marian_vocabularies(folder: Path, keys: Keys, sizes: Mapping[str, int]) -> _Read:
    """Two SentencePiece models, and one list of pieces for both or one each."""
    spm = {side: folder / f"{side}.spm" for side in ("source", "target")}
    parsed = {side: pieces_of(read_file(file, LARGEST), file) for side, file in spm.items()}
    shared = keys.flag("share_encoder_decoder_embeddings", True)
    files = {"source": folder / "vocab.json", "target": folder / ("vocab.json" if shared else "target_vocab.json")}
    lists = {side: _ids(file) for side, file in files.items()}
    pad, end = keys.number("pad_token_id"), keys.number("eos_token_id")
    start = keys.number("decoder_start_token_id", pad)

    def vocabulary(side: str) -> Vocabulary:
        unknown = lists[side].get("<unk>")
        if unknown is None:
            raise UserError("has no piece <unk>", file=files[side], fix="Is the folder complete?")
        return Vocabulary.of(lists[side], sizes[side], pad=pad, unknown=unknown, start=start, end=end)

    source = vocabulary("source")
    target = source if shared else vocabulary("target")
    source.add_unknown(only_here(parsed["source"], source.names))
    target.add_unknown(only_here(parsed["target"], target.names))
    languages = languages_in(source.names, "marian")
    models = [
        rewritten(parsed[side], of.names, languages.values()) for side, of in (("source", source), ("target", target))
    ]
    return source, target, Tokenizer(*models), languages


def _many_languages(folder: Path, keys: Keys, sizes: Mapping[str, int]) -> _Read:
    """One SentencePiece model; its pieces, and those of languages, in Fairseq's order."""
    file = folder / "sentencepiece.bpe.model"
    parsed = pieces_of(read_file(file, LARGEST), file)
    ids = _ids(folder / "vocab.json") if (folder / "vocab.json").exists() else _fairseq_ids(parsed)
    ids = {**ids, **_added(folder, len(ids))}
    unknown = ids.get("<unk>", 3)
    pad, end = keys.number("pad_token_id", 1), keys.number("eos_token_id", 2)
    start = keys.number("decoder_start_token_id", end)
    ids = {piece: row for piece, row in ids.items() if row < sizes["source"]}
    vocabulary = Vocabulary.of(ids, sizes["source"], pad=pad, unknown=unknown, start=start, end=end)
    vocabulary.said[SPECIAL.start] = False  # nor does `generate` say it: see `_generation` of the export
    vocabulary.add_unknown(only_here(parsed, vocabulary.names))
    languages = languages_in(vocabulary.names, "m2m", "nllb")
    if not languages:
        raise UserError("names no languages", file=folder, fix="It needs tokenizer_config.json or tokenizer.json.")
    return vocabulary, vocabulary, Tokenizer(rewritten(parsed, vocabulary.names, languages.values())), languages


def _ids(file: Path) -> dict[str, int]:
    found = read_json(file)
    if not isinstance(found, dict) or not all(type(row) is int for row in found.values()):
        raise UserError("is not a list of pieces with their rows", file=file, fix="Get the folder again.")
    if len({*found.values()}) != len(found):
        raise UserError("gives two pieces the same row", file=file, fix="Get the folder again.")
    return found


def _fairseq_ids(parsed: Any) -> dict[str, int]:
    """Return the rows of a SentencePiece model's pieces as Fairseq numbers them: four of its own, then the others."""
    special = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    return special | {p.piece: row for row, p in enumerate(parsed.pieces, 1) if row > 3}


def _added(folder: Path, first: int) -> dict[str, int]:
    """Return the rows of the pieces of languages, as one of the files of a tokenizer gives them."""
    whole = folder / "tokenizer.json"
    if whole.exists():
        added = read_json(whole).get("added_tokens", [])
        found = {t.get("content"): t.get("id") for t in added if isinstance(t, dict)}
        if languages := {
            n: i for n, i in found.items() if isinstance(n, str) and type(i) is int and LANGUAGE.fullmatch(n)
        }:
            return languages
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        if not (folder / name).exists():
            continue
        facts = Keys(read_json(folder / name), folder / name).values
        decoder = facts.get("added_tokens_decoder")
        if isinstance(decoder, dict):
            rows = {t.get("content"): int(i) for i, t in decoder.items() if isinstance(t, dict) and str(i).isdecimal()}
            if languages := {n: i for n, i in rows.items() if isinstance(n, str) and LANGUAGE.fullmatch(n)}:
                return languages
        listed = facts.get("extra_special_tokens") or facts.get("additional_special_tokens")
        if isinstance(listed, list):
            names = [n for n in listed if isinstance(n, str) and LANGUAGE.fullmatch(n)]
            if names:
                return {n: first + i for i, n in enumerate(names)}
    return {}


def _renamed(
    tensors: Mapping[str, Tensor],
    embeddings: Mapping[str, Tensor],
    source: Vocabulary,
    target: Vocabulary,
    *,
    folder: Path,
) -> dict[str, Tensor]:
    """Return the weights by our names."""
    import torch

    ours: dict[str, Tensor] = {
        "source_embedding.tokens.weight": source.embeddings(embeddings["source"]),
        "target_embedding.tokens.weight": target.embeddings(embeddings["target"]),
        "output.weight": target.embeddings(embeddings["output"]),
    }
    bias = tensors.get("final_logits_bias")
    ours["output.bias"] = target.bias(None if bias is None else bias.flatten())

    def take(ours_name: str, names: tuple[str, ...]) -> None:
        for part in ("weight", "bias"):
            parts = [f"{name}.{part}" for name in names]
            if missing := [name for name in parts if name not in tensors]:
                raise UserError(f"has no weights {missing[0]}", file=folder, fix="Is the folder complete?")
            ours[f"{ours_name}.{part}"] = torch.cat([tensors[name] for name in parts])

    for side in SIDES:
        layers = {name.split(".")[3] for name in tensors if name.startswith(f"model.{side}.layers.")}
        for i in sorted(layers):
            for mine, theirs in block_names(side, i):
                take(mine, theirs)
        norm, their_norm = last_norm(side)
        if f"{their_norm}.weight" in tensors:
            take(norm, (their_norm,))
    return ours
