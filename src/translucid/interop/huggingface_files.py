"""The files of a tokenizer at Hugging Face."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bitext.languages import Languages
from bitext.reading import read_at_most
from translucid.data.tokenizing.tokenizer import LARGEST, Tokenizer
from translucid.ground.atomic import write_atomically
from translucid.ground.special import SPELLINGS
from translucid.interop.hub import FAIRSEQ
from translucid.interop.huggingface_rows import Rows
from translucid.interop.pieces import model_of, pieces_of

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
