"""Multi30k with a joint BPE vocabulary of 10,000, the same for every toolkit: `python prepare.py FOLDER`."""

import gzip
import sys
from pathlib import Path

import sentencepiece
from common import DATA

SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


def main() -> None:
    corpus = Path(sys.argv[1])
    DATA.mkdir(parents=True, exist_ok=True)
    for name, stem in SPLITS.items():
        for language in ("en", "de"):
            packed = (corpus / f"{stem}.lc.norm.tok.{language}.gz").read_bytes()
            (DATA / f"{name}.{language}").write_bytes(gzip.decompress(packed))
    sentencepiece.SentencePieceTrainer.train(
        input=f"{DATA}/train.en,{DATA}/train.de",
        model_prefix=f"{DATA}/bpe",
        model_type="bpe",
        vocab_size=9999,
        character_coverage=1.0,
        eos_id=0,
        unk_id=1,
        bos_id=2,
        pad_id=-1,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=f"{DATA}/bpe.model")
    pieces = [model.id_to_piece(i) for i in range(model.get_piece_size())]
    (DATA / "vocabulary.txt").write_text("".join(f"{piece}\n" for piece in [*pieces, "<pad>"]), encoding="utf-8")
    (DATA / "pieces.txt").write_text("".join(f"{piece}\n" for piece in pieces[3:]), encoding="utf-8")
    for name in SPLITS:
        for language in ("en", "de"):
            lines = (DATA / f"{name}.{language}").read_text(encoding="utf-8").splitlines()
            coded = [" ".join(model.encode(line.strip(), out_type=str)) + "\n" for line in lines]
            (DATA / f"{name}.bpe.{language}").write_text("".join(coded), encoding="utf-8")


if __name__ == "__main__":
    main()
