"""The vocabularies of a CTranslate2 folder, and the SentencePiece models beside them."""

from __future__ import annotations

from pathlib import Path

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLED
from translucid.interop.imported import LONGEST_JSON, Keys, all_are, read_file, read_json
from translucid.interop.pieces import FAIRSEQ, Vocabulary, adapted_models, languages_in, only_here, read_sentencepiece

OURS = "tokenizer.model", "source.model"
"""The files of which our own exports have one."""


def read_pieces(folder: Path, side: str) -> list[str]:
    """Read the list of pieces of a side, in the order of their rows.

    Raises:
        UserError: there is no list, or it is damaged.
    """
    names = []
    for which in ("shared", side):  # by the version of CTranslate2 that has written the folder
        names += [f"{which}_vocabulary.json", f"{which}_vocabulary.txt"]
    for name in names:
        file = folder / name
        if not file.exists():
            continue
        if file.suffix == ".json":
            found = read_json(file)
        else:
            try:
                found = read_file(file, LONGEST_JSON).decode().removesuffix("\n").split("\n")
            except UnicodeDecodeError as error:
                raise UserError("is not UTF-8", file=file, fix="Get the folder again.") from error
        if not isinstance(found, list) or not all_are(str, found):
            raise UserError("is not a list of pieces", file=file, fix="Get the folder again.")
        if len({*found}) != len(found):
            raise UserError("has a piece twice", file=file, fix="Get the folder again.")
        return found
    raise UserError(f"has no vocabulary: neither {' nor '.join(names)}", file=folder, fix="Is the folder complete?")


def our_tokenizer(folder: Path, lists: dict[str, list[str]]) -> tuple[Tokenizer, dict[str, str]]:
    """Read the tokenizer of our own export, and the pieces of its languages by their codes.

    Raises:
        UserError: the tokenizer is damaged, or does not belong to the lists of pieces.
    """
    for name in ("tokenizer.model", "source.model", "target.model"):
        if (folder / name).exists():
            parsed = read_sentencepiece(folder / name)
            if name != "target.model":
                controls = [p.piece for p in parsed.pieces if p.type == parsed.SentencePiece.CONTROL]
    tokenizer = Tokenizer.load(folder)
    pieces = {
        "source": tokenizer.source_pieces(range(tokenizer.source_size)),
        "target": tokenizer.target_vocabulary,
    }
    for side, names in lists.items():
        if names[len(SPECIAL) :] != pieces[side][len(SPECIAL) :]:
            what = f"the {side} vocabulary is not that of the SentencePiece model beside it"
            raise UserError(what, file=folder, fix="Take all files from one export.")
    return tokenizer, languages_in(controls)


def their_tokenizer(folder: Path, source: Vocabulary, target: Vocabulary) -> tuple[Tokenizer, dict[str, str]]:
    """Make a tokenizer from SentencePiece models with other ids; return it with the pieces of languages by their codes.

    Pieces that only SentencePiece has are added to the vocabularies.

    Raises:
        UserError: there are no SentencePiece models, or they are damaged.
    """
    names = [FAIRSEQ] if (folder / FAIRSEQ).exists() else ["source.spm", "target.spm"]
    parsed = []
    for name in names:
        if not (folder / name).exists():
            fix = "Copy it there from the model that was converted (ct2-transformers-converter --copy_files)."
            raise UserError(f"has no SentencePiece model {name}", file=folder, fix=fix)
        parsed.append(read_sentencepiece(folder / name))
    models, languages = adapted_models(parsed, (source, target)[: len(parsed)])
    if len(parsed) == 1:  # there may be two lists of pieces for one model
        target.add_unknown(only_here(parsed[0], target.names))
    return Tokenizer(*models), languages


def vocabulary_of(names: list[str], keys: Keys, zero_start: bool) -> Vocabulary:
    """Return our ids for a list of pieces.

    Args:
        names: the pieces in the order of their rows.
        keys: the keys of the folder's config.json.
        zero_start: whether the decoder begins without an embedding.

    Raises:
        UserError: a special token is missing, or the model is from OpenNMT.
    """
    ids = {name: row for row, name in enumerate(names)}
    if "<blank>" in ids:
        what = "is a model of OpenNMT, which reads sources without an end token"
        raise UserError(what, file=keys.file, fix="Models of Marian, M2M100 and NLLB can be imported.")

    def row(key: str, default: str) -> int:
        name = keys.text(key, default)
        if name not in ids:
            raise UserError(f"{key} is {name!r:.50}, which is not in the vocabulary", file=keys.file)
        return ids[name]

    unknown, end = row("unk_token", SPELLED.unknown), row("eos_token", SPELLED.end)
    start = None if zero_start else row("decoder_start_token", SPELLED.start)
    return Vocabulary.of(ids, len(names), pad=ids.get(SPELLED.pad), unknown=unknown, start=start, end=end)
