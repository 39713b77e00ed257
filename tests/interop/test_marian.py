"""Marian's .npz files are imported as runs and exported again, checked against CTranslate2's converter."""

import io
import shutil
from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import torch
import yaml

from tests.probes.foreign import SHORT, marian_file, sentences
from translucid.api.translator import Translator
from translucid.ground.errors import UserError
from translucid.interop.importing import import_model
from translucid.interop.marian import read_vocabulary
from translucid.interop.marian_export import export_marian
from translucid.interop.pieces import pieces_of
from translucid.layers.positions import sinusoidal_positions
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions

TEXTS = sentences()[0][:12]
OPTIONS = {
    "relu": {"activation": "relu"},
    "swish": {},
    "norm in front": {"norm": "pre"},
    "output apart": {"ties": "src"},
    "languages apart": {"ties": "target"},
    "all apart": {"ties": "none"},
}


@pytest.fixture(params=OPTIONS)
def folder(request, tmp_path):
    marian_file(tmp_path / "theirs", **OPTIONS[request.param])
    return tmp_path / "theirs"


def convert_with_ctranslate2(folder: Path, out: Path) -> ctranslate2.Translator:
    """Convert a model with CTranslate2's own converter, using Marian's sinusoidal positions instead of its own."""
    from ctranslate2.converters import MarianConverter  # imports `transformers`

    arrays = dict(np.load(folder / "model.npz"))
    arrays["Wpos"] = sinusoidal_positions(500, 16, kind="sinusoidal-tensor2tensor").numpy()
    np.savez(folder / "model-with-positions.npz", **arrays)
    MarianConverter(str(folder / "model-with-positions.npz"), [str(folder / "vocab.yml")] * 2).convert(str(out))
    (folder / "model-with-positions.npz").unlink()
    return ctranslate2.Translator(str(out), intra_threads=1)


def test_imported_models_give_the_same_probabilities(folder, tmp_path):
    reference = convert_with_ctranslate2(folder, tmp_path / "ct2")
    import_model(folder / "model.npz", tmp_path / "run")
    translator = Translator.load(tmp_path / "run", "cpu", "torch")
    tokenizer = translator.tokenizer
    targets = sentences()[1][: len(TEXTS)]
    sources, target_ids = tokenizer.encode_source(list(TEXTS)), tokenizer.encode_target(list(targets))
    names = set(read_vocabulary((folder / "vocab.yml").read_bytes(), folder))
    compared = 0
    for source, target in zip(sources, target_ids, strict=True):
        pieces = tokenizer.source_pieces(source), tokenizer.target_pieces(target)
        if not {*pieces[0], *pieces[1]} <= names:
            continue
        compared += 1
        expected = reference.score_batch([pieces[0]], [pieces[1]])[0].log_probs
        with torch.inference_mode():
            logits = translator.model(torch.tensor([[*source, 3]]), torch.tensor([[2, *target]]))[0]
        log_probs = logits.log_softmax(-1)[torch.arange(len(target) + 1), [*target, 3]]
        np.testing.assert_allclose(log_probs, expected, atol=1e-4)
    assert compared > 2


def test_an_exported_model_is_imported_again_unchanged(folder, tmp_path):
    import_model(folder, tmp_path / "run")
    before = Translator.load(tmp_path / "run", "cpu", "torch")
    export_marian(before.model, before.tokenizer, tmp_path / "back", beam=5)
    import_model(tmp_path / "back", tmp_path / "again")
    after = Translator.load(tmp_path / "again", "cpu", "torch")
    assert before.model.options == after.model.options
    ids = before.tokenizer.encode_source(list(TEXTS))
    assert ids == after.tokenizer.encode_source(list(TEXTS))
    source, target = torch.tensor([[*ids[0], 3]]), torch.tensor([[2, *ids[1]]])
    with torch.inference_mode():
        logits, logits_again = (
            translator.model(source, target)[..., [1, *range(3, translator.tokenizer.target_size)]]
            for translator in (before, after)
        )
    is_finite = logits > -50  # pieces that are never written have an arbitrary very low logit
    torch.testing.assert_close(logits[is_finite], logits_again[is_finite], atol=1e-5, rtol=0)
    assert [t.text for t in before.translate(TEXTS, **SHORT)] == [t.text for t in after.translate(TEXTS, **SHORT)]


def test_the_folder_names_its_files_and_holds_marians_ids(tmp_path):
    marian_file(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")
    translator = Translator.load(tmp_path / "run", "cpu", "torch")
    export_marian(translator.model, translator.tokenizer, tmp_path / "back", beam=3)
    decoder_settings = yaml.safe_load((tmp_path / "back" / "decoder.yml").read_text())
    assert decoder_settings["models"] == ["model.npz"] and decoder_settings["beam-size"] == 3
    assert {*decoder_settings["vocabs"]} == {file.name for file in (tmp_path / "back").glob("*.spm")}
    arrays = np.load(tmp_path / "back" / "model.npz")
    model_settings = yaml.safe_load(arrays["special:model.yml"].tobytes().rstrip(b"\0"))
    assert model_settings["transformer-postprocess"] == "dan" and model_settings["tied-embeddings-all"]
    theirs = np.load(tmp_path / "theirs" / "model.npz")
    np.testing.assert_array_equal(arrays["encoder_l1_self_Wk"], theirs["encoder_l1_self_Wk"])
    np.testing.assert_array_equal(arrays["Wemb"][:2], theirs["Wemb"][:2])


MARIAN_DEFAULTS = """
    lemma-dim-emb: 0
    lemma-dependency: ""
    factors-combine: sum
    factors-dim-emb: 0
    layer-normalization: false
    input-types: []
    output-omit-bias: false
    transformer-no-projection: false
    transformer-rnn-projection: false
    transformer-no-bias: false
    transformer-no-affine: false
    transformer-pool: false
    transformer-decoder-dim-ffn: 0
    transformer-ffn-depth: 2
    transformer-decoder-ffn-depth: 0
    transformer-aan-depth: 2
    transformer-aan-nogate: false
    transformer-decoder-autoreg: self-attention
    transformer-tied-layers: []
    transformer-guided-alignment-layer: last
    transformer-postprocess-emb: d
    transformer-train-position-embeddings: false
    transformer-depth-scaling: false
    bert-train-type-embeddings: true
    bert-type-vocab-size: 2
    ulr: false
    ulr-dim-emb: 0
    ulr-trainable-transformation: false
"""
"""What `marian --type transformer --dump-config` prints for options that none of our models sets."""


@pytest.fixture(scope="module", params=["post", "pre"])
def exported_run(request, tmp_path_factory):
    """The export of a run that was imported from Marian."""
    root = tmp_path_factory.mktemp(request.param)
    marian_file(root / "theirs", norm=request.param)
    import_model(root / "theirs", root / "run")
    translator = Translator.load(root / "run", "cpu", "torch")
    export_marian(translator.model, translator.tokenizer, root / "out", beam=5)
    return request.param, root / "out"


def test_missing_options_have_the_defaults_of_marian(exported_run):
    norm, folder = exported_run
    settings = yaml.safe_load(np.load(folder / "model.npz")["special:model.yml"].tobytes().rstrip(b"\0"))
    defaults = yaml.safe_load(MARIAN_DEFAULTS)
    assert {name: settings.get(name) for name in defaults} == defaults
    assert settings["transformer-postprocess-top"] == ("n" if norm == "pre" else "")
    assert (settings["dim-emb"], settings["enc-depth"], settings["dec-depth"]) == (16, 2, 2)
    assert (settings["transformer-dim-ffn"], settings["transformer-ffn-activation"]) == (24, "swish")


def test_marians_sentencepiece_model_has_an_end_and_an_unknown_token_and_no_others(exported_run):
    _, folder = exported_run
    settings = yaml.safe_load(np.load(folder / "model.npz")["special:model.yml"].tobytes().rstrip(b"\0"))
    for file, size in zip((folder / "source.spm", folder / "target.spm"), settings["dim-vocabs"], strict=True):
        model = pieces_of(file.read_bytes(), file)
        spec = model.trainer_spec
        assert (spec.eos_id, spec.unk_id, spec.pad_id, spec.bos_id) == (0, 1, -1, -1)
        assert [piece.piece for piece in model.pieces[:2]] == ["</s>", "<unk>"]
        assert spec.vocab_size == len(model.pieces) == size


def test_layers_may_share_their_weights(tmp_path):
    marian_file(tmp_path / "theirs", **{"transformer-tied-layers": [1, 1]})
    import_model(tmp_path / "theirs", tmp_path / "run")
    weights = dict(Translator.load(tmp_path / "run", "cpu", "torch").model.named_parameters())
    for name in ("self_attention.query.weight", "feed_forward.inner.bias", "residuals.2.norm.weight"):
        assert torch.equal(weights[f"decoder.0.{name}"], weights[f"decoder.1.{name}"])
        assert not torch.equal(
            weights["encoder.0.feed_forward.inner.bias"], weights["encoder.1.feed_forward.inner.bias"]
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "amun"}, "type='amun' is not supported"),
        (
            {"transformer-decoder-autoreg": "average-attention"},
            "transformer-decoder-autoreg='average-attention' is not",
        ),
        ({"transformer-decoder-autoreg": "rnn"}, "dec-cell='gru' is not supported"),
        ({"activation": "gelu"}, "transformer-ffn-activation='gelu' is not supported"),
        ({"transformer-postprocess": "nda"}, "transformer-postprocess='nda' is not supported"),
        ({"transformer-train-position-embeddings": True}, "transformer-train-position-embeddings=True"),
        ({"dim-vocabs": [7, 7]}, "does not fit embeddings of 7 rows"),
        ({"enc-depth": 3}, "has no weights encoder_l3_self_Wq"),
        ({"dec-depth": 10**9}, "transformer-tied-layers"),
        ({"dim-emb": "wide"}, "dim-emb is 'wide', not a whole number"),
    ],
)
def test_unsupported_options_are_refused_in_one_line(tmp_path, changes, message):
    marian_file(tmp_path / "theirs", **changes)
    with pytest.raises(UserError) as error:
        import_model(tmp_path / "theirs", tmp_path / "run")
    assert message in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def truncate(folder):
    file = folder / "model.npz"
    file.write_bytes(file.read_bytes()[:-500])


def pickle_config(folder):
    content = io.BytesIO()
    np.savez(content, **{"special:model.yml": np.array([{"a": 1}], object)})
    (folder / "model.npz").write_bytes(content.getvalue())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, "is damaged, or no .npz file"),
        (pickle_config, "is damaged, or no .npz file"),
        (lambda f: (f / "vocab.yml").write_text("a: b\n"), "vocab.yml:1: is not a piece and its row"),
        (lambda f: (f / "vocab.yml").write_text("</s>: 0\n<unk>: 0\n"), "two pieces the same row"),
        (lambda f: (f / "vocab.yml").write_text("a: 0\n"), "has no <unk> or no </s>"),
        (lambda f: (f / "target.spm").unlink(), "target.spm: is missing"),
        (lambda f: shutil.copy(f / "model.npz", f / "other.npz"), "holds 2 model files"),
    ],
)
def test_incomplete_folders_are_refused_in_one_line(tmp_path, damage, message):
    marian_file(tmp_path / "theirs")
    damage(tmp_path / "theirs")
    with pytest.raises(UserError) as error:
        import_model(tmp_path / "theirs", tmp_path / "run")
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_vocabulary_is_read_line_by_line():
    lines = ['"</s>": 0', "<unk>: 1", r'"\"": 2', "'it''s': 3", r'? "\x85"', ": 4", r'"▁\u00e9": 5', "y: 6", '":": 7']
    text = "\n".join([*lines, r'"a\\b": 8', "~: 9", '"\t": 10', ""])
    vocabulary = read_vocabulary(text.encode(), Path("vocab.yml"))
    assert [*vocabulary] == ["</s>", "<unk>", '"', "it's", "\x85", "▁é", "y", ":", "a\\b", "~", "\t"]
    assert [*vocabulary.values()] == [*range(11)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": "sinusoidal"}, "model.positions=sinusoidal is another function than Marian computes"),
        ({"zero_start": False}, "model.zero_start=False is another function"),
        ({"nonlinearity": "gelu"}, "Marian has no model.nonlinearity=gelu"),
    ],
)
def test_models_that_marian_lacks_are_refused(small_run, tmp_path, changes, message):
    options = {"width": 16, "heads": 2, "feed_forward": 24, "positions": "sinusoidal-tensor2tensor", "zero_start": True}
    tokenizer = Translator.load(small_run, "cpu", "torch").tokenizer
    size = tokenizer.source_size
    model = build_model(TransformerOptions(**options | changes), size, size)
    with pytest.raises(UserError, match=message):
        export_marian(model, tokenizer, tmp_path / "out", beam=5)
