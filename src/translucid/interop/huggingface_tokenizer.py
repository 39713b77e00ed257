"""The files of which Hugging Face makes its tokenizers: SentencePiece models, lists of pieces, what is special."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from translucid.data.tokenizing.tokenizer import LARGEST, Tokenizer
from translucid.ground.atomic import write_atomically
from translucid.ground.reading import read_at_most
from translucid.ground.special import SPELLED
from translucid.interop.huggingface_rows import Rows
from translucid.interop.pieces import model_of, pieces_of

FAIRSEQ = "sentencepiece.bpe.model"
_SPECIAL = {"pad_token": SPELLED.pad, "unk_token": SPELLED.unknown, "eos_token": SPELLED.end}


def save_json(file: Path, content: Any, *, indent: int | None = 2) -> None:
    """Write a JSON file as Hugging Face does."""
    write_atomically(file, (json.dumps(content, indent=indent, ensure_ascii=False) + "\n").encode())


def save_marian(
    folder: Path,
    tokenizer: Tokenizer,
    rows: Mapping[str, Rows],
    *,
    longest: int,
    languages: tuple[str | None, str | None],
) -> None:
    """Write a MarianTokenizer.

    Args:
        folder: where.
        tokenizer: ours; its SentencePiece models go as they are, as only their pieces are looked at, not their ids.
        rows: by side, which may be one vocabulary.
        longest: tokens of a text, at most.
        languages: codes of source and target, if known.
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
    told: Sequence[str],
    *,
    longest: int,
    languages: tuple[str | None, str | None],
) -> None:
    """Write an M2M100Tokenizer or an NllbTokenizer, by how the languages are written.

    Args:
        folder: where.
        tokenizer: ours.
        rows: the vocabulary.
        told: names of the rows that stand for a language, in their order.
        longest: tokens of a text, at most.
        languages: codes of source and target, if known.
    """
    tokenizer.save(folder)
    file = folder / "tokenizer.model"
    parsed = pieces_of(read_at_most(file, LARGEST), file)
    file.unlink()
    first = rows.vocabulary[told[0]]
    pieces = rows.names[:first]
    write_atomically(folder / FAIRSEQ, model_of(parsed, [SPELLED.unknown, SPELLED.start, SPELLED.end, *pieces[4:]]))
    m2m = told[0].startswith("__")
    special = [*enumerate(pieces[:4]), *((rows.vocabulary[name], name) for name in told)]
    facts = {
        "tokenizer_class": "M2M100Tokenizer" if m2m else "NllbTokenizer",
        "src_lang": languages[0],
        "tgt_lang": languages[1],
        "bos_token": SPELLED.start,
        "sep_token": SPELLED.end,
        "additional_special_tokens": [*told],
        "added_tokens_decoder": {str(row): _added(name) for row, name in special},
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
    }
    if m2m:
        facts |= {"language_codes": "m2m100", "num_madeup_words": len(rows.names) - first - len(told)}
        save_json(folder / "vocab.json", {name: row for row, name in enumerate(pieces)})
    save_json(folder / "tokenizer_config.json", facts | _SPECIAL)


def _added(name: str) -> dict[str, Any]:
    flags = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False)
    return {"content": name, **flags, "special": True}
