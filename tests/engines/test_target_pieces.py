"""In zero-shot directions, only pieces of the target language are candidates."""

import math
import shutil
from itertools import pairwise

import numpy as np
import pytest
import torch

from tests.conftest import SHAPE
from translucid.api.translator import Translator
from translucid.cli.main import run
from translucid.data.readers.corpus import read_pairs
from translucid.decoding.constrained_decoding import Constraints, Edges, Form, RequiredPhrase
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.engines.target_pieces import language_pieces, pieces_file
from translucid.engines.tuned import load_tuned
from translucid.ground.special import SPECIAL
from translucid.runs.run_folder import RunFolder

TEXTS = ["Me gusta la playa.", "El perro es grande.", "No."]


@pytest.fixture(scope="module")
def three_languages(corpus, tmp_path_factory):
    """Return a barely trained run from English to Spanish and to capital letters, and back."""
    folder = tmp_path_factory.mktemp("three")
    for split in ("train", "test"):
        lines = [f"{pair.source}\t{pair.target.upper()}\n" for pair in read_pairs(corpus / f"{split}.tsv")]
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    train, valid = ([f"{corpus}/{split}.tsv:en-es", f"{folder}/{split}.tsv:en-fr"] for split in ("train", "test"))
    settings = [*SHAPE, "training.max_steps=6", "model.norm=post", "data.tokenizer.vocabulary=300"]
    out = ["--out", str(folder / "run"), "--no-tune", "--both-directions", "--set", *settings]
    assert run(["train", "--train", *train, "--valid", *valid, *out]) == 0
    return folder / "run"


def capitals(translator):
    """Return the ids of all pieces without lower-case letters, and of single characters."""
    pieces = enumerate(translator.tokenizer.target_vocabulary)
    return {number for number, piece in pieces if len(piece) == 1 or not any(map(str.islower, piece))}


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize("between", [False, True])
def test_only_pieces_of_the_target_language_are_written(three_languages, engine, between):
    if between:
        translator = Translator.load(three_languages, "cpu", engine, source="en", target="fr").between("es", None)
    else:
        translator = Translator.load(three_languages, "cpu", engine, source="es", target="fr")
    allowed = capitals(translator)
    sources = [[*ids, SPECIAL.end] for ids in translator.tokenizer.encode_source(TEXTS)]
    for options in (DecodingOptions(beam=1), DecodingOptions(beam=3, no_repeat_ngram=2)):
        written = {
            token for nbest in translator.engine.decode(SearchRequest(sources, options)) for token in nbest[0].tokens
        }
        assert written <= allowed
    _, best = translator.torch_engine.traced(sources[0], DecodingOptions(beam=2))
    assert set(best.tokens) <= allowed


def test_constraints_may_have_other_pieces(three_languages):
    translator = Translator.load(three_languages, "cpu", source="es", target="fr")
    (source,), (phrase,) = translator.tokenizer.encode_source(TEXTS[:1]), translator.tokenizer.encode_target(["playa"])
    assert not set(phrase) <= capitals(translator)
    no_edges = torch.zeros(translator.tokenizer.target_size, dtype=torch.bool)
    constraints = Constraints([[RequiredPhrase((Form(tuple(phrase)),))]], Edges(no_edges, no_edges))
    ids, options = [[*source, SPECIAL.end]], DecodingOptions(beam=4)
    ((best, *_),) = translator.torch_engine.decode(SearchRequest(ids, options), constraints=constraints)
    assert set(best.tokens) <= capitals(translator) | set(phrase) and math.isfinite(best.score)
    assert tuple(phrase) in pairwise(best.tokens)


def test_candidates_of_one_direction_are_not_saved_for_all(three_languages, tmp_path, monkeypatch):
    folder = shutil.copytree(three_languages, tmp_path / "run")
    monkeypatch.setattr(
        "translucid.engines.choosing.TOLERANCE", -1.0
    )  # as if the fast engine computed other log-probabilities
    translator = Translator.load(folder, "cpu", source="es", target="fr")
    assert translator.engine.name == "torch" and translator.engine.considered == "target-language pieces"
    tuned = load_tuned(folder)
    assert (tuned.engine, tuned.considered) == ("torch", "all pieces")


def test_trained_directions_have_all_pieces(three_languages):
    folder = RunFolder(three_languages)
    data = folder.configuration().data
    assert pieces_file(folder, ("es", "fr"), data)
    assert pieces_file(folder, ("en", "fr"), data) is None
    assert Translator.load(three_languages, "cpu", "torch", source="en", target="fr").torch_engine.shortlist is None


def test_a_piece_belongs_to_a_language_that_has_it_nearly_as_often(three_languages):
    tokenizer = RunFolder(three_languages).tokenizer()
    pieces = tokenizer.target_vocabulary
    word_ids = [number for number, piece in enumerate(pieces) if len(piece) > 2 and number > 4 and piece.isalpha()][:3]
    counts = {"fr": np.zeros(len(pieces), np.int64), "de": np.zeros(len(pieces), np.int64)}
    counts["fr"][word_ids] = 1000, 1, 9
    counts["de"][word_ids] = 0, 989, 11
    ids = language_pieces(counts, tokenizer)
    assert set(word_ids) & set(ids["fr"].tolist()) == {word_ids[0], word_ids[2]}
    assert set(word_ids) & set(ids["de"].tolist()) == {word_ids[1], word_ids[2]}
    assert {number for number, piece in enumerate(pieces) if len(piece) == 1} <= set(ids["de"].tolist())


def test_a_warning_recommends_the_pivot(three_languages, capsys):
    arguments = ["translate", str(three_languages), TEXTS[2], "--engine", "torch", "--target-language", "fr"]
    assert run([*arguments, "--source-language", "es"]) == 0
    assert "no training pair is from es to fr; --pivot en is usually better" in capsys.readouterr().err
    for options in (["--source-language", "es", "--pivot", "en"], ["--source-language", "en"]):
        assert run([*arguments, *options]) == 0
        assert "no training pair" not in capsys.readouterr().err
